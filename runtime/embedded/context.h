// Configurations and contexts of a generated library, and calls of its entries.
#ifndef APL_LIBRARY_CONTEXT_H
#define APL_LIBRARY_CONTEXT_H

#include "runtime/embedded/object.h"

struct futhark_context_config* futhark_context_config_new(void) {
  struct futhark_context_config* cfg = calloc(1, sizeof *cfg);
  if (!cfg) return NULL;
  cfg->parameters = calloc((size_t)apl_this_program.parameter_count + 1, sizeof *cfg->parameters);
  if (cfg->parameters) return cfg;
  free(cfg);
  return NULL;
}

void futhark_context_config_free(struct futhark_context_config* cfg) {
  if (!cfg || cfg->in_use) return;
  for (int k = 0; k < cfg->option_count; ++k) free(cfg->options[k]);
  free(cfg->options);
  free(cfg->cache_file);
  free(cfg->device);
  free(cfg->parameters);
  free(cfg);
}

void futhark_context_config_set_debugging(struct futhark_context_config* cfg, int flag) { cfg->debugging = flag; }
void futhark_context_config_set_profiling(struct futhark_context_config* cfg, int flag) { cfg->profiling = flag; }
void futhark_context_config_set_logging(struct futhark_context_config* cfg, int flag) { cfg->logging = flag; }
void futhark_context_config_set_num_threads(struct futhark_context_config* cfg, int n) { cfg->threads = n; }
void futhark_context_config_set_cache_file(struct futhark_context_config* cfg, const char* file) {
  free(cfg->cache_file);
  cfg->cache_file = apl_copied(file);
}

int futhark_context_config_set_tuning_param(struct futhark_context_config* cfg, const char* name, size_t value) {
  for (int k = 0; k < apl_this_program.parameter_count; ++k) {
    if (strcmp(apl_this_program.parameters[k].name, name) != 0) continue;
    cfg->parameters[k] = value;
    return 0;
  }
  return 1;
}

int futhark_get_tuning_param_count(void) { return apl_this_program.parameter_count; }
const char* futhark_get_tuning_param_name(int i) { return apl_this_program.parameters[i].name; }
const char* futhark_get_tuning_param_class(int i) { return apl_this_program.parameters[i].kind; }

// What the backend or generated code has to say of a call that failed.
static int apl_report_error(struct futhark_context* ctx, int status) {
  struct apl_context* base = &ctx->base;
  const char* text = base->error[0] ? base->error : "unknown error";
  if (base->error_line > 0) {
    const char* file = apl_this_program.file;
    char* trace =
        apl_text("Error: %s\n\nBacktrace:\n-> #0  %s:%d:%d\n", text, file, base->error_line, base->error_column);
    const struct apl_location* call;
    int depth = 0;
    // Calls that were inlined around the check, then for each call of a function it and those around it.
    for (int32_t k = -1; k < base->call_count; ++k)
      for (int32_t next = k < 0 ? base->error_call : base->calls[k]; trace && next > 0; next = call->call) {
        call = &base->locations[next - 1];
        char* longer = apl_text("%s   #%-2d %s:%d:%d\n", trace, ++depth, file, call->line, call->column);
        free(trace);
        trace = longer;
      }
    apl_error(ctx, status, trace);
  } else {
    apl_error(ctx, status, apl_text("%s%s", status == APL_PROGRAM_ERROR ? "Error: " : "", text));
  }
  base->error[0] = '\0';
  base->error_code = APL_OK;
  base->error_line = base->error_column = base->error_call = base->call_count = 0;
  return status;
}

struct futhark_context* futhark_context_new(struct futhark_context_config* cfg) {
  if (cfg->in_use) return NULL;
  struct futhark_context* ctx = calloc(1, sizeof *ctx);
  if (!ctx) return NULL;
  cfg->in_use = 1;
  ctx->config = cfg;
  ctx->log = stderr;
  ctx->profiling = cfg->profiling;
  ctx->base.backend = &apl_the_backend;
  ctx->base.locations = apl_this_program.locations;
  pthread_mutex_init(&ctx->lock, NULL);
#if APL_HAS_PLANS
  int line = 0;
  if (apl_this_program.device[0]) apl_device_parse(apl_this_program.device, &ctx->device, &line);
#endif
  int status = apl_machine_open(ctx);
  if (status == APL_SUCCESS) {
    const int before = apl_swap_threads(cfg->threads);
    status = apl_make_constants(ctx);
    apl_swap_threads(before);
  }
  if (status != APL_SUCCESS) apl_report_error(ctx, status);
  return ctx;
}

void futhark_context_free(struct futhark_context* ctx) {
  if (!ctx) return;
  if (ctx->machine) {
    apl_free_constants(ctx);
    apl_machine_close(ctx);
  }
  for (int32_t k = 0; k < ctx->choice_count; ++k) free(ctx->choices[k]);
  free(ctx->choices);
  free(ctx->events);
  free(ctx->error);
  pthread_mutex_destroy(&ctx->lock);
  ctx->config->in_use = 0;
  free(ctx);
}

// False, with an error, if there is no machine.
static bool apl_enter(struct futhark_context* ctx) {
  pthread_mutex_lock(&ctx->lock);
  if (ctx->machine) return true;
  if (!ctx->error) ctx->error = apl_copied("the context could not be made");
  pthread_mutex_unlock(&ctx->lock);
  return false;
}
static int apl_leave(struct futhark_context* ctx, int status) {
  if (status != APL_SUCCESS && !ctx->base.error[0] && !ctx->error)
    apl_backend_error(&ctx->base, status, "%s", status == APL_OUT_OF_MEMORY ? "out of memory" : "the call failed");
  if (status != APL_SUCCESS && ctx->base.error[0]) apl_report_error(ctx, status);
  pthread_mutex_unlock(&ctx->lock);
  return status;
}

int futhark_context_sync(struct futhark_context* ctx) {
  if (!apl_enter(ctx)) return APL_ERROR;
  return apl_leave(ctx, ctx->base.backend->synchronise(&ctx->base));
}

char* futhark_context_get_error(struct futhark_context* ctx) {
  char* error = ctx->error;
  ctx->error = NULL;
  return error;
}

int futhark_context_clear_caches(struct futhark_context* ctx) {
  if (!apl_enter(ctx)) return APL_ERROR;
  ctx->event_count = 0;
  return apl_leave(ctx, apl_machine_clear(ctx));
}

void futhark_context_set_logging_file(struct futhark_context* ctx, FILE* file) { ctx->log = file; }
void futhark_context_pause_profiling(struct futhark_context* ctx) { ctx->profiling = 0; }
void futhark_context_unpause_profiling(struct futhark_context* ctx) { ctx->profiling = ctx->config->profiling; }

static void apl_add_event(struct futhark_context* ctx, const char* name, bool is_kernel, double start, double end) {
  if (ctx->event_count == ctx->event_capacity) {
    const int64_t capacity = ctx->event_capacity ? 2 * ctx->event_capacity : 64;
    struct apl_event* grown = realloc(ctx->events, (size_t)capacity * sizeof *grown);
    if (!grown) return;
    ctx->events = grown;
    ctx->event_capacity = capacity;
  }
  ctx->events[ctx->event_count++] = (struct apl_event){name, is_kernel, (int64_t)(start * 1e3), (int64_t)(end * 1e3)};
}

// The report's bytes without its end; as many of them as there is room for.
static size_t apl_report_into(const struct futhark_context* ctx, char* text, size_t room) {
  size_t size = (size_t)snprintf(text, room, "{\"memory\": {\"current\": %lld, \"peak\": %lld}, \"events\": [",
                                 (long long)ctx->bytes, (long long)ctx->peak_bytes);
  for (int64_t k = 0; k < ctx->event_count; ++k) {
    const struct apl_event* event = &ctx->events[k];
    // Names of entries and kernels are identifiers: nothing in them wants to be escaped.
    size += (size_t)snprintf(size < room ? text + size : NULL, size < room ? room - size : 0,
                             "%s{\"name\": \"%s\", \"kind\": \"%s\", \"start\": %lld, \"end\": %lld}", k ? ", " : "",
                             event->name, event->is_kernel ? "kernel" : "call", (long long)event->start,
                             (long long)event->end);
  }
  return size + (size_t)snprintf(size < room ? text + size : NULL, size < room ? room - size : 0, "]}\n");
}

char* futhark_context_report(struct futhark_context* ctx) {
  pthread_mutex_lock(&ctx->lock);
  const size_t size = apl_report_into(ctx, NULL, 0);
  char* text = malloc(size + 1);
  if (text) apl_report_into(ctx, text, size + 1);
  pthread_mutex_unlock(&ctx->lock);
  return text;
}

#endif
