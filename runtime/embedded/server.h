// A generated library as a server: commands on standard input, a line each, in Futhark's server protocol.
#ifndef APL_SERVER_H
#define APL_SERVER_H

#include "runtime/embedded/server_values.h"

// ---- commands: `words` are what follows the command's name ----

static void apl_do_call(struct apl_server* server, char** words, int count) {
  const struct apl_api_entry* entry = apl_get_entry(server, words[0]);
  if (!entry) return;
  if (count != 2 + entry->input_count) {
    apl_refuse(server, "%s: 1 output and %d inputs are wanted", entry->name, entry->input_count);
    return;
  }
  const void* arguments[APL_SERVER_WORDS];
  if (!apl_is_new(server, words[1])) return;
  for (int32_t k = 0; k < entry->input_count; ++k) {
    const struct apl_object* object = apl_get(server, words[2 + k]);
    if (!object) return;
    if (object->type != entry->inputs[k]) {
      apl_refuse(server, "Input %d of %s is a %s, not a %s", k, entry->name, entry->inputs[k]->name,
                 object->type->name);
      return;
    }
    arguments[k] = apl_argument(object);
  }
  struct apl_object* out = NULL;
  const double start = apl_now();
  int status = apl_call_object(server->ctx, entry, arguments, &out);
  if (status == APL_SUCCESS) {
    status = futhark_context_sync(server->ctx);
    if (status != APL_SUCCESS) apl_drop_object(server->ctx, out);
  }
  const double time = apl_now() - start;
  if (!apl_server_check(server, status)) return;
  apl_set(server, words[1], out);
  printf("runtime: %lld\n", (long long)time);
}

static void apl_do_restore(struct apl_server* server, char** words, int count) {
  size_t size = 0;
  char* text = apl_read_file(words[0], &size);
  if (!text) {
    apl_refuse(server, "Failed to open %s", words[0]);
    return;
  }
  struct apl_reader in = {text, text + size, ""};
  for (int k = 1; k + 1 < count && !server->failed; k += 2) {
    const struct apl_api_type* type = apl_get_type(server, words[k + 1]);
    if (!type || !apl_is_new(server, words[k])) break;
    struct apl_object* object = apl_make_object(type);
    const bool ok = object && apl_read_object(server->ctx, &in, object);
    if (ok) {
      apl_set(server, words[k], object);
      continue;
    }
    if (object) apl_drop_object(server->ctx, object);
    if (in.problem[0]) {
      apl_refuse(server, "Failed to restore variable %s of type %s: %s", words[k], type->name, in.problem);
    } else {
      apl_server_check(server, APL_ERROR);
    }
  }
  // What was copied to the device is there before its text goes.
  if (!server->failed) apl_server_check(server, futhark_context_sync(server->ctx));
  free(text);
}

// A variable, and the file of a plan for it.
static void apl_do_set_plan(struct apl_server* server, char** words, int count) {
  (void)count;
  struct apl_object* object = apl_get(server, words[0]);
  if (!object) return;
  size_t size = 0;
  char* text = object->type->soa ? apl_read_file(words[1], &size) : NULL;
  if (!object->type->soa) {
    apl_refuse(server, "Not a sparse operand: %s", words[0]);
  } else if (!text) {
    apl_refuse(server, "Failed to open %s", words[1]);
  }
#if APL_HAS_SPARSE_TYPES
  if (text) apl_server_check(server, apl_set_plan(server->ctx, object, text, size));
#endif
  free(text);
}

static void apl_do_store(struct apl_server* server, char** words, int count) {
  FILE* file = fopen(words[0], "wb");
  if (!file) {
    apl_refuse(server, "Failed to open %s", words[0]);
    return;
  }
  for (int k = 1; k < count && !server->failed; ++k) {
    const struct apl_object* object = apl_get(server, words[k]);
    if (object && object->type->soa) {
      apl_refuse(server, "Sparse operands cannot be stored: %s", words[k]);
      break;
    }
    for (int32_t part = 0; object && part < object->type->value_count && !server->failed; ++part)
      apl_server_check(server, apl_write_item(server->ctx, file, &object->items[part], true));
  }
  if (fclose(file) != 0) apl_refuse(server, "Failed to write %s", words[0]);
}

static void apl_do_free(struct apl_server* server, char** words, int count) {
  for (int k = 0; k < count; ++k) {
    struct apl_variable* variable = apl_find_variable(server, words[k]);
    if (!variable) {
      apl_refuse(server, "Unknown variable: %s", words[k]);
      return;
    }
    apl_unset(server, variable);
  }
}

static void apl_do_rename(struct apl_server* server, char** words, int count) {
  (void)count;
  struct apl_variable* variable = apl_find_variable(server, words[0]);
  if (!variable) {
    apl_refuse(server, "Unknown variable: %s", words[0]);
  } else if (apl_is_new(server, words[1])) {
    free(variable->name);
    variable->name = apl_copied(words[1]);
  }
}

static void apl_do_inputs(struct apl_server* server, char** words, int count) {
  (void)count;
  const struct apl_api_entry* entry = apl_get_entry(server, words[0]);
  for (int32_t k = 0; entry && k < entry->input_count; ++k) puts(entry->inputs[k]->name);
}
static void apl_do_output(struct apl_server* server, char** words, int count) {
  (void)count;
  const struct apl_api_entry* entry = apl_get_entry(server, words[0]);
  if (entry) puts(entry->output->name);
}
static void apl_do_attributes(struct apl_server* server, char** words, int count) {
  (void)count;
  apl_get_entry(server, words[0]);
}
static void apl_do_fields(struct apl_server* server, char** words, int count) {
  (void)count;
  const struct apl_api_type* type = apl_get_type(server, words[0]);
  // Of an array of records, those of an element: `zip` wants arrays of them.
  if (type && type->item) type = type->item;
  if (type && !apl_is_record(type)) apl_refuse(server, "Not a record type: %s", type->name);
  for (int32_t f = 0; type && f < type->field_count; ++f)
    printf("%s %s\n", type->fields[f].name, type->fields[f].type->name);
}
static void apl_do_kind(struct apl_server* server, char** words, int count) {
  (void)count;
  const struct apl_api_type* type = apl_get_type(server, words[0]);
  if (type)
    puts(type->kind == APL_API_SCALAR ? "primitive"
         : apl_is_array(type)         ? "array"
         : type->variant_count        ? "sum"
         : apl_is_record(type)        ? "record"
                                      : "opaque");
}
static void apl_do_type(struct apl_server* server, char** words, int count) {
  (void)count;
  const struct apl_object* object = apl_get(server, words[0]);
  if (object) puts(object->type->name);
}
static void apl_do_rank(struct apl_server* server, char** words, int count) {
  (void)count;
  const struct apl_api_type* type = apl_get_array_type(server, words[0]);
  if (type) printf("%d\n", apl_outer_rank(type));
}
static void apl_do_elemtype(struct apl_server* server, char** words, int count) {
  (void)count;
  const struct apl_api_type* type = apl_get_array_type(server, words[0]);
  if (type) puts(apl_item_name(type));
}
static void apl_do_shape(struct apl_server* server, char** words, int count) {
  (void)count;
  const struct apl_object* object = apl_get_array(server, words[0]);
  for (int32_t d = 0; object && d < apl_outer_rank(object->type); ++d)
    printf("%lld\n", (long long)apl_outer_shape(object)[d]);
}
static void apl_do_entry_points(struct apl_server* server, char** words, int count) {
  (void)server, (void)words, (void)count;
  for (const struct apl_api_entry* entry = apl_this_program.entries; entry->name; ++entry) puts(entry->name);
}
static void apl_do_types(struct apl_server* server, char** words, int count) {
  (void)server, (void)words, (void)count;
  for (const struct apl_api_type* const* type = apl_this_program.types; *type; ++type) puts((*type)->name);
}
static void apl_do_clear(struct apl_server* server, char** words, int count) {
  (void)words, (void)count;
  apl_server_check(server, futhark_context_clear_caches(server->ctx));
}
static void apl_do_report(struct apl_server* server, char** words, int count) {
  (void)words, (void)count;
  char* report = futhark_context_report(server->ctx);
  if (report) fputs(report, stdout);
  free(report);
}
static void apl_do_pause(struct apl_server* server, char** words, int count) {
  (void)words, (void)count;
  futhark_context_pause_profiling(server->ctx);
}
static void apl_do_unpause(struct apl_server* server, char** words, int count) {
  (void)words, (void)count;
  futhark_context_unpause_profiling(server->ctx);
}
static void apl_do_set_tuning_param(struct apl_server* server, char** words, int count) {
  (void)count;
  struct futhark_context* ctx = server->ctx;
  if (futhark_context_config_set_tuning_param(ctx->config, words[0], (size_t)strtoull(words[1], NULL, 10)) != 0) {
    apl_refuse(server, "Unknown tuning parameter: %s", words[0]);
    return;
  }
  // What was chosen before was chosen without it.
  while (ctx->choice_count > 0) free(ctx->choices[--ctx->choice_count]);
}
static void apl_do_tuning_params(struct apl_server* server, char** words, int count) {
  (void)count;
  const struct apl_api_entry* entry = apl_get_entry(server, words[0]);
  const size_t length = strlen(words[0]);
  for (int k = 0; entry && k < apl_this_program.parameter_count; ++k) {
    const struct apl_api_parameter* parameter = &apl_this_program.parameters[k];
    if (strncmp(parameter->name, words[0], length) == 0 && parameter->name[length] == '.')
      printf("%s (%s)\n", parameter->name, parameter->kind);
  }
}
static void apl_do_tuning_param_class(struct apl_server* server, char** words, int count) {
  (void)count;
  for (int k = 0; k < apl_this_program.parameter_count; ++k)
    if (strcmp(apl_this_program.parameters[k].name, words[0]) == 0) {
      puts(apl_this_program.parameters[k].kind);
      return;
    }
  apl_refuse(server, "Unknown tuning parameter: %s", words[0]);
}

struct apl_command {
  const char* name;
  int words;  // after the name
  bool more;  // or more than those
  void (*run)(struct apl_server*, char**, int);
};
static const struct apl_command apl_commands[] = {
    {"call", 2, true, apl_do_call},
    {"restore", 1, true, apl_do_restore},
    {"store", 1, true, apl_do_store},
    {"free", 0, true, apl_do_free},
    {"rename", 2, false, apl_do_rename},
    {"inputs", 1, false, apl_do_inputs},
    {"output", 1, false, apl_do_output},
    {"attributes", 1, false, apl_do_attributes},
    {"fields", 1, false, apl_do_fields},
    {"project", 3, false, apl_do_project},
    {"new", 2, true, apl_do_new},
    {"new_array", 2, true, apl_do_new_array},
    {"index", 2, true, apl_do_index},
    {"set", 2, true, apl_do_set},
    {"zip", 2, true, apl_do_zip},
    {"unzip", 1, true, apl_do_unzip},
    {"variants", 1, false, apl_do_variants},
    {"variant", 1, false, apl_do_variant},
    {"construct", 3, true, apl_do_construct},
    {"destruct", 1, true, apl_do_destruct},
    {"kind", 1, false, apl_do_kind},
    {"type", 1, false, apl_do_type},
    {"rank", 1, false, apl_do_rank},
    {"elemtype", 1, false, apl_do_elemtype},
    {"shape", 1, false, apl_do_shape},
    {"entry_points", 0, false, apl_do_entry_points},
    {"types", 0, false, apl_do_types},
    {"clear", 0, false, apl_do_clear},
    {"report", 0, false, apl_do_report},
    {"pause_profiling", 0, false, apl_do_pause},
    {"unpause_profiling", 0, false, apl_do_unpause},
    {"set_plan", 2, false, apl_do_set_plan},
    {"set_tuning_param", 2, false, apl_do_set_tuning_param},
    {"tuning_params", 1, false, apl_do_tuning_params},
    {"tuning_param_class", 1, false, apl_do_tuning_param_class},
};

// Words between blanks; `"..."` is one.
static int apl_split(char* line, char** words) {
  int count = 0;
  for (char* at = line; count < APL_SERVER_WORDS;) {
    while (*at && isspace((unsigned char)*at)) ++at;
    if (!*at) break;
    const bool quoted = *at == '"';
    if (quoted) ++at;
    words[count++] = at;
    while (*at && (quoted ? *at != '"' : !isspace((unsigned char)*at))) ++at;
    if (*at) *at++ = '\0';
  }
  return count;
}

static void apl_serve(struct apl_server* server, char** words, int count) {
  for (size_t k = 0; k < sizeof apl_commands / sizeof apl_commands[0]; ++k) {
    const struct apl_command* command = &apl_commands[k];
    if (strcmp(command->name, words[0]) != 0) continue;
    const int given = count - 1;
    if (given < command->words || (given > command->words && !command->more)) {
      apl_refuse(server, "%s takes %d words%s, not %d", command->name, command->words, command->more ? " or more" : "",
                 given);
    } else {
      command->run(server, words + 1, given);
    }
    return;
  }
  apl_refuse(server, "Unknown command: %s", words[0]);
}

int main(int argc, char** argv) {
  static const struct option known[] = {APL_COMMON_OPTIONS, {NULL, 0, NULL, 0}};
  struct futhark_context_config* cfg = futhark_context_config_new();
  if (!cfg) apl_die("out of memory");
  for (int option; (option = getopt_long(argc, argv, "hDLPd:", known, NULL)) != -1;) {
    if (apl_take_option(cfg, option)) continue;
    if (option != 'h') return 1;
    printf("Usage: %s [OPTION]...\nReads commands from standard input.\n%s", argv[0], apl_common_help);
    return 0;
  }
  struct apl_server server = {futhark_context_new(cfg), NULL, 0, false};
  if (!server.ctx) apl_die("out of memory");
  apl_check(server.ctx, APL_SUCCESS);
  char* line = NULL;
  size_t capacity = 0;
  puts("%%% OK");
  fflush(stdout);
  while (getline(&line, &capacity, stdin) >= 0) {
    char* words[APL_SERVER_WORDS];
    const int count = apl_split(line, words);
    if (count == 0) continue;
    server.failed = false;
    apl_serve(&server, words, count);
    puts("%%% OK");
    fflush(stdout);
  }
  free(line);
  while (server.count > 0) apl_unset(&server, &server.variables[server.count - 1]);
  free(server.variables);
  futhark_context_free(server.ctx);
  futhark_context_config_free(cfg);
  return 0;
}

#endif
