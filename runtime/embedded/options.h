// What executables and servers have in common: options that configure a context.
#ifndef APL_OPTIONS_H
#define APL_OPTIONS_H

#include <errno.h>
#include <getopt.h>

#include "runtime/embedded/matrix.h"

static void apl_die(const char* format, ...) __attribute__((format(printf, 1, 2), noreturn));
static void apl_die(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
  exit(1);
}
static void apl_check(struct futhark_context* ctx, int status) {
  char* error = ctx->error || status == APL_SUCCESS ? futhark_context_get_error(ctx) : NULL;
  if (error || status != APL_SUCCESS)
    apl_die("%s", error ? error : ctx->base.error[0] ? ctx->base.error : "unknown error");
}

static void apl_set_parameter(struct futhark_context_config* cfg, char* text) {
  char* equals = strchr(text, '=');
  char* end = NULL;
  const char* number = equals ? equals + 1 + strspn(equals + 1, " \t") : "";
  const unsigned long long value = strtoull(number, &end, 10);
  if (!equals || *number < '0' || *number > '9' || *end) apl_die("`%s` is no NAME=VALUE", text);
  while (equals > text && (equals[-1] == ' ' || equals[-1] == '\t')) --equals;
  *equals = '\0';
  if (futhark_context_config_set_tuning_param(cfg, text, (size_t)value) != 0)
    apl_die("no tuning parameter `%s`; --print-params lists them", text);
}

// A line NAME=VALUE each, with blanks anywhere.
static void apl_read_tuning(struct futhark_context_config* cfg, const char* file) {
  FILE* in = fopen(file, "r");
  char line[4096];
  if (!in) apl_die("cannot read %s", file);
  while (fgets(line, sizeof line, in)) {
    size_t length = strlen(line);
    while (length > 0 && strchr(" \t\r\n", line[length - 1])) line[--length] = '\0';
    char* first = line + strspn(line, " \t");
    if (*first) apl_set_parameter(cfg, first);
  }
  fclose(in);
}

enum apl_long_option {
  APL_OPTION_CACHE = 256,
  APL_OPTION_PARAMS,
  APL_OPTION_PARAM,
  APL_OPTION_TUNING,
  APL_OPTION_THREADS,
  APL_OPTION_NVRTC,
  APL_OPTION_PLAN
};

#define APL_COMMON_OPTIONS                                                                                          \
  {"help", no_argument, NULL, 'h'}, {"debugging", no_argument, NULL, 'D'}, {"log", no_argument, NULL, 'L'},         \
      {"profile", no_argument, NULL, 'P'}, {"device", required_argument, NULL, 'd'},                                \
      {"cache-file", required_argument, NULL, APL_OPTION_CACHE},                                                    \
      {"print-params", no_argument, NULL, APL_OPTION_PARAMS}, {"param", required_argument, NULL, APL_OPTION_PARAM}, \
      {"tuning", required_argument, NULL, APL_OPTION_TUNING},                                                       \
      {"num-threads", required_argument, NULL, APL_OPTION_THREADS}, {                                               \
    "nvrtc-option", required_argument, NULL, APL_OPTION_NVRTC                                                       \
  }

static const char apl_common_help[] =
    "  -h, --help               this text\n"
    "  -D, --debugging          check after every entry\n"
    "  -L, --log                say on standard error what is compiled and chosen\n"
    "  -P, --profile            measure entries\n"
    "  -d, --device NAME|#N     the device to use (CUDA)\n"
    "      --cache-file FILE    keep machine code of kernels there (CUDA)\n"
    "      --nvrtc-option OPT   one more for the kernels' compiler (CUDA)\n"
    "      --num-threads N      threads to use (C)\n"
    "      --print-params       list the tuning parameters, with their classes\n"
    "      --param NAME=VALUE   set one\n"
    "      --tuning FILE        set those of a file, a line NAME=VALUE each\n";

// True if it was one of the common ones.
static bool apl_take_option(struct futhark_context_config* cfg, int option) {
  switch (option) {
    case 'D': futhark_context_config_set_debugging(cfg, 1); return true;
    case 'L': futhark_context_config_set_logging(cfg, 1); return true;
    case 'P': futhark_context_config_set_profiling(cfg, 1); return true;
    case APL_OPTION_CACHE: futhark_context_config_set_cache_file(cfg, optarg); return true;
    case APL_OPTION_PARAM: apl_set_parameter(cfg, optarg); return true;
    case APL_OPTION_TUNING: apl_read_tuning(cfg, optarg); return true;
    case APL_OPTION_THREADS: futhark_context_config_set_num_threads(cfg, atoi(optarg)); return true;
#if defined(FUTHARK_BACKEND_cuda)
    case 'd': futhark_context_config_set_device(cfg, optarg); return true;
    case APL_OPTION_NVRTC: futhark_context_config_add_nvrtc_option(cfg, optarg); return true;
#else
    case 'd':
    case APL_OPTION_NVRTC: apl_die("this program uses no device");
#endif
    case APL_OPTION_PARAMS:
      for (int k = 0; k < futhark_get_tuning_param_count(); ++k)
        printf("%s (%s)\n", futhark_get_tuning_param_name(k), futhark_get_tuning_param_class(k));
      exit(0);
    default: return false;
  }
}

static const struct apl_api_entry* apl_find_entry(const char* name) {
  for (const struct apl_api_entry* entry = apl_this_program.entries; entry->name; ++entry)
    if (strcmp(entry->name, name) == 0) return entry;
  return NULL;
}

// The entry's inputs as apl_call_entry wants them.
static const void* apl_argument(const struct apl_object* object) {
  return object->type->kind == APL_API_SCALAR ? (const void*)&object->items[0].value.scalar : (const void*)object;
}
// The result, whatever it is, as an object.
static int apl_call_object(struct futhark_context* ctx, const struct apl_api_entry* entry, const void* const* inputs,
                           struct apl_object** out) {
  if (entry->output->kind != APL_API_SCALAR) return apl_call_entry(ctx, entry, inputs, out);
  *out = apl_make_object(entry->output);
  if (!*out) return apl_error(ctx, APL_OUT_OF_MEMORY, apl_copied("out of memory"));
  const int status = apl_call_entry(ctx, entry, inputs, &(*out)->items[0].value.scalar);
  if (status == APL_SUCCESS) return status;
  free(*out);
  *out = NULL;
  return status;
}

#endif
