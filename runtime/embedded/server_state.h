// What a generated server knows while it runs: its variables, and what commands name.
#ifndef APL_SERVER_STATE_H
#define APL_SERVER_STATE_H

#include "runtime/embedded/items.h"
#include "runtime/embedded/options.h"

enum { APL_SERVER_WORDS = 256 };  // of a command, at most

struct apl_variable {
  char* name;
  struct apl_object* object;
};
struct apl_server {
  struct futhark_context* ctx;
  struct apl_variable* variables;
  size_t count;
  bool failed;
};

static void apl_refuse(struct apl_server* server, const char* format, ...) __attribute__((format(printf, 2, 3)));
static void apl_refuse(struct apl_server* server, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (!server->failed) puts("%%% FAILURE");
  server->failed = true;
  vprintf(format, arguments);
  putchar('\n');
  va_end(arguments);
}
// True if all is well; else the context's error is said.
static bool apl_server_check(struct apl_server* server, int status) {
  if (status == APL_SUCCESS && !server->ctx->error) return true;
  if (server->ctx->base.error[0]) apl_report_error(server->ctx, status);
  char* error = futhark_context_get_error(server->ctx);
  apl_refuse(server, "%s", error ? error : "unknown error");
  free(error);
  return false;
}

static struct apl_variable* apl_find_variable(struct apl_server* server, const char* name) {
  for (size_t k = 0; k < server->count; ++k)
    if (strcmp(server->variables[k].name, name) == 0) return &server->variables[k];
  return NULL;
}
static struct apl_object* apl_get(struct apl_server* server, const char* name) {
  struct apl_variable* found = apl_find_variable(server, name);
  if (!found) apl_refuse(server, "Unknown variable: %s", name);
  return found ? found->object : NULL;
}
static bool apl_is_new(struct apl_server* server, const char* name) {
  if (!apl_find_variable(server, name)) return true;
  apl_refuse(server, "Variable already exists: %s", name);
  return false;
}
static void apl_set(struct apl_server* server, const char* name, struct apl_object* object) {
  struct apl_variable* grown = realloc(server->variables, (server->count + 1) * sizeof *grown);
  if (!grown) apl_die("out of memory");
  server->variables = grown;
  server->variables[server->count++] = (struct apl_variable){apl_copied(name), object};
}
static void apl_unset(struct apl_server* server, struct apl_variable* variable) {
  apl_drop_object(server->ctx, variable->object);
  free(variable->name);
  *variable = server->variables[--server->count];
}

static const struct apl_api_type* apl_get_type(struct apl_server* server, const char* name) {
  for (const struct apl_api_type* const* type = apl_this_program.types; *type; ++type)
    if (strcmp((*type)->name, name) == 0) return *type;
  apl_refuse(server, "Unknown type: %s", name);
  return NULL;
}
static const struct apl_api_entry* apl_get_entry(struct apl_server* server, const char* name) {
  const struct apl_api_entry* entry = apl_find_entry(name);
  if (!entry) apl_refuse(server, "Unknown entry point: %s", name);
  return entry;
}
static const struct apl_api_field* apl_get_field(struct apl_server* server, const struct apl_api_type* type,
                                                 const char* name) {
  // Those of an array of records are had by `unzip`.
  for (int32_t f = 0; !type->item && f < type->field_count; ++f)
    if (strcmp(type->fields[f].name, name) == 0) return &type->fields[f];
  apl_refuse(server, "Type %s has no field %s", type->name, name);
  return NULL;
}

#endif
