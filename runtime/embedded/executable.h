// The program around a generated library: values of an entry on standard input, its result on standard output.
#ifndef APL_EXECUTABLE_H
#define APL_EXECUTABLE_H

#include "runtime/embedded/options.h"

struct apl_run_options {
  const char* entry;
  FILE* times;
  int runs;
  bool binary, silent;
  char** files;
  int file_count;
  char** plans;  // NAME=FILE each
  int plan_count;
};

// The sparse input that the text before `=` names; -1: there is none.
static int32_t apl_find_sparse(const struct apl_api_entry* entry, const char* text) {
  const char* equals = strchr(text, '=');
  for (int32_t k = 0; equals && k < entry->input_count; ++k)
    if (entry->inputs[k]->soa && strlen(entry->names[k]) == (size_t)(equals - text) &&
        strncmp(entry->names[k], text, (size_t)(equals - text)) == 0)
      return k;
  return -1;
}

// The file for a sparse input, `NAME=@FILE` on the command line; NULL: it comes from standard input.
static const char* apl_file_of(const struct apl_run_options* options, const char* name) {
  const size_t length = strlen(name);
  for (int k = 0; k < options->file_count; ++k)
    if (strncmp(options->files[k], name, length) == 0 && options->files[k][length] == '=')
      return options->files[k] + length + 2;
  return NULL;
}
static void apl_check_files(const struct apl_run_options* options, const struct apl_api_entry* entry) {
  for (int k = 0; k < options->file_count; ++k) {
    const char* equals = strchr(options->files[k], '=');
    if (!equals || equals[1] != '@')
      apl_die("`%s`: values are read from standard input, but for NAME=@FILE of a sparse operand", options->files[k]);
    if (apl_find_sparse(entry, options->files[k]) < 0)
      apl_die("`%s`: %s has no sparse operand of this name", options->files[k], entry->name);
  }
  for (int k = 0; k < options->plan_count; ++k)
    if (apl_find_sparse(entry, options->plans[k]) < 0)
      apl_die("--plan %s: %s has no sparse operand of this name", options->plans[k], entry->name);
}

static void apl_follow_plans(struct futhark_context* ctx, const struct apl_run_options* options,
                             const struct apl_api_entry* entry, struct apl_object** inputs) {
  (void)ctx, (void)inputs;
  for (int k = 0; k < options->plan_count; ++k) {
    const char* file = strchr(options->plans[k], '=') + 1;
    size_t size = 0;
    char* text = apl_read_file(file, &size);
    if (!text) apl_die("cannot read %s", file);
#if APL_HAS_SPARSE_TYPES
    struct apl_object* operand = inputs[apl_find_sparse(entry, options->plans[k])];
    if (apl_set_plan(ctx, operand, text, size) != APL_SUCCESS) {
      char* error = futhark_context_get_error(ctx);
      apl_die("--plan %s: %s", options->plans[k], error ? error : "unknown error");
    }
#endif
    free(text);
  }
}

static void apl_read_input(struct futhark_context* ctx, const struct apl_run_options* options,
                           const struct apl_api_entry* entry, int32_t input, struct apl_reader* in,
                           struct apl_object* object) {
  const char* file = apl_file_of(options, entry->names[input]);
  struct apl_reader from_file = {NULL, NULL, ""};
  char* text = NULL;
  if (file) {
    size_t size = 0;
    text = apl_read_file(file, &size);
    if (!text) apl_die("cannot read %s", file);
    from_file.at = text;
    from_file.end = text + size;
    in = &from_file;
  }
  if (!apl_read_object(ctx, in, object)) {
    if (in->problem[0])
      apl_die("input #%d of %s, of type %s: %s", input, entry->name, entry->inputs[input]->name, in->problem);
    apl_check(ctx, APL_ERROR);
  }
  free(text);
}

// Each run has inputs of its own.
static void apl_run(struct futhark_context* ctx, const struct apl_run_options* options) {
  const struct apl_api_entry* entry = apl_find_entry(options->entry ? options->entry : "main");
  // Without a name, and without a main, the only one there is.
  if (!entry && !options->entry && apl_this_program.entries[0].name && !apl_this_program.entries[1].name)
    entry = apl_this_program.entries;
  if (!entry) {
    fprintf(stderr, "No entry point `%s`; there are:\n", options->entry ? options->entry : "main");
    for (entry = apl_this_program.entries; entry->name; ++entry) fprintf(stderr, "  %s\n", entry->name);
    exit(1);
  }
  apl_check_files(options, entry);
  size_t size = 0;
  char* text = apl_read_all(stdin, &size);
  struct apl_reader in = {text, text + size, ""};
  struct apl_object** inputs = calloc((size_t)entry->input_count + 1, sizeof *inputs);
  const void** arguments = calloc((size_t)entry->input_count + 1, sizeof *arguments);
  if (!text || !inputs || !arguments) apl_die("out of memory");
  for (int32_t k = 0; k < entry->input_count; ++k) {
    inputs[k] = apl_make_object(entry->inputs[k]);
    if (!inputs[k]) apl_die("out of memory");
    apl_read_input(ctx, options, entry, k, &in, inputs[k]);
    arguments[k] = apl_argument(inputs[k]);
  }
  apl_skip(&in);
  if (in.at != in.end)
    apl_die("there is more on standard input than the %d values of %s", entry->input_count, entry->name);
  apl_follow_plans(ctx, options, entry, inputs);
  // One run more when time counts.
  const int warm = options->times || options->runs > 1 ? 1 : 0;
  struct apl_object* result = NULL;
  for (int run = -warm; run < options->runs; ++run) {
    apl_drop_object(ctx, result);
    apl_check(ctx, futhark_context_sync(ctx));
    const double start = apl_now();
    apl_check(ctx, apl_call_object(ctx, entry, arguments, &result));
    apl_check(ctx, futhark_context_sync(ctx));
    if (run >= 0 && options->times) fprintf(options->times, "%lld\n", (long long)(apl_now() - start));
  }
  for (int32_t part = 0; part < entry->output->value_count && !options->silent; ++part)
    apl_check(ctx, apl_write_item(ctx, stdout, &result->items[part], options->binary));
  apl_drop_object(ctx, result);
  for (int32_t k = 0; k < entry->input_count; ++k) apl_drop_object(ctx, inputs[k]);
  free(inputs);
  free(arguments);
  free(text);
}

int main(int argc, char** argv) {
  static const struct option known[] = {APL_COMMON_OPTIONS,
                                        {"entry-point", required_argument, NULL, 'e'},
                                        {"write-runtime-to", required_argument, NULL, 't'},
                                        {"runs", required_argument, NULL, 'r'},
                                        {"binary-output", no_argument, NULL, 'b'},
                                        {"no-print-result", no_argument, NULL, 'n'},
                                        {"plan", required_argument, NULL, APL_OPTION_PLAN},
                                        {NULL, 0, NULL, 0}};
  struct futhark_context_config* cfg = futhark_context_config_new();
  struct apl_run_options options = {.runs = 1, .plans = calloc((size_t)argc, sizeof *options.plans)};
  if (!cfg || !options.plans) apl_die("out of memory");
  for (int option; (option = getopt_long(argc, argv, "hDLPd:e:t:r:bn", known, NULL)) != -1;) {
    if (apl_take_option(cfg, option)) continue;
    switch (option) {
      case 'e': options.entry = optarg; break;
      case 't':
        options.times = fopen(optarg, "w");
        if (!options.times) apl_die("cannot write %s", optarg);
        break;
      case 'r': options.runs = atoi(optarg) > 0 ? atoi(optarg) : 1; break;
      case 'b': options.binary = true; break;
      case 'n': options.silent = true; break;
      case APL_OPTION_PLAN: options.plans[options.plan_count++] = optarg; break;
      case 'h':
        printf(
            "Usage: %s [OPTION]... [NAME=@FILE]...\nReads the values of an entry from standard input, writes its "
            "result.\n%s%s",
            argv[0], apl_common_help,
            "  -e, --entry-point NAME   the entry to call (main)\n"
            "  -t, --write-runtime-to F microseconds of each run, a line each, without input and output\n"
            "  -r, --runs N             how often to call it; then one run more goes before\n"
            "  -b, --binary-output      write the result in the binary format\n"
            "  -n, --no-print-result    do not write it\n"
            "      --plan NAME=FILE     a plan of `aplc sparse search` for the sparse operand of this name\n"
            "  NAME=@FILE               the sparse operand of this name: a Matrix Market file of coordinates\n");
        return 0;
      default: return 1;
    }
  }
  options.files = argv + optind;
  options.file_count = argc - optind;
  struct futhark_context* ctx = futhark_context_new(cfg);
  if (!ctx) apl_die("out of memory");
  apl_check(ctx, APL_SUCCESS);
  apl_run(ctx, &options);
  if (cfg->profiling) {
    char* report = futhark_context_report(ctx);
    if (report) fputs(report, stderr);
    free(report);
  }
  if (options.times && fclose(options.times) != 0) apl_die("cannot write the times of runs: %s", strerror(errno));
  if (fflush(stdout) != 0 || ferror(stdout)) apl_die("cannot write standard output: %s", strerror(errno));
  free(options.plans);
  futhark_context_free(ctx);
  futhark_context_config_free(cfg);
  return 0;
}

#endif
