// The inside of a generated library: what stands behind Futhark's C API. The embedding puts these headers one behind
// the other into the library's one file, where everything is static.
#ifndef APL_OBJECT_H
#define APL_OBJECT_H

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/backends/context.h"

// ---- what the program says of itself ----

enum apl_api_kind { APL_API_SCALAR, APL_API_ARRAY, APL_API_OPAQUE };

// The arrays of a sparse operand.
enum apl_soa_field {
  APL_FIELD_SHAPE,
  APL_FIELD_VALUES,
  APL_FIELD_ROW_START,
  APL_FIELD_ROW,
  APL_FIELD_COLUMN,
  APL_FIELD_COLUMN_START,
  APL_FIELD_BY_COLUMN
};

struct apl_api_type;
struct apl_api_field {
  const char* name;
  const struct apl_api_type* type;
  int32_t first;  // of its values among those of the whole
};

// A constructor of a sum type: parts of its payload, whose `first` counts its places, and the values of the type that
// these places are.
struct apl_api_variant {
  const char* name;
  int32_t part_count;
  const struct apl_api_field* parts;
  int32_t place_count;
  const int32_t* places;
};

// A type at the program's border. Every one of them is a few values, each a scalar or an array.
struct apl_api_type {
  const char* name;  // "[][]f32", "i32", or that of an opaque type
  int32_t kind;
  int32_t element, rank;  // of a scalar or an array
  int32_t value_count;
  const struct apl_api_type* const* values;  // of an opaque type
  int32_t field_count;
  const struct apl_api_field* fields;  // of a tuple or a record
  const int32_t* soa;                  // of a sparse operand: the apl_soa_field of each value; else NULL
  int32_t variant_count;
  const struct apl_api_variant* variants;  // of a sum type, whose first value is the constructor's number
  const struct apl_api_type* item;         // of an array of opaque values: theirs; its fields are arrays of theirs
  int32_t outer;                           // and how many dims it has of them
};

struct apl_api_entry {
  const char* name;
  apl_entry function;
  int32_t input_count;
  const struct apl_api_type* const* inputs;
  const struct apl_api_type* output;
  const char* const* names;     // of the inputs
  const int32_t* const* picks;  // which values of a sparse input it takes: how many, and their numbers; NULL: all
};

struct apl_api_parameter {
  const char* name;
  const char* kind;  // Futhark's class
};

// Lists end with a NULL name.
struct apl_api_program {
  const char* file;
  const struct apl_location* locations;
  const char* kernels;                         // text that is compiled with the context; may be NULL
  const struct apl_lazy_kernel* lazy_kernels;  // texts that are compiled when they are chosen; may be NULL
  const char* device;  // record of the machine that plans are chosen for; "": the one that is there
  const struct apl_api_entry* entries;
  const struct apl_api_type* const* types;  // ends with NULL
  const struct apl_api_parameter* parameters;
  int32_t parameter_count;
  const struct apl_constant* constants;  // ends with a NULL name; may be NULL
};
static const struct apl_api_program apl_this_program;

struct apl_device_record {
  const char *name, *text;
};

// ---- contexts ----

struct futhark_context_config {
  int debugging, profiling, logging, threads;
  int in_use;
  char* cache_file;
  char* device;
  char** options;  // of the kernels' compiler
  int option_count;
  void* stream;
  int (*allocate)(void* user, void** data, size_t bytes, void* stream);
  void (*release)(void* user, void* data, void* stream);
  void* user;
  size_t* parameters;  // one a parameter of the program; 0: as it likes
};

// What was chosen for a kernel with the sizes of its last calls, and which of its plans spilled.
enum { APL_KNOWN_CHOICES = 16 };
struct apl_choices {
  const struct apl_plan_set* set;
  struct apl_contraction sizes[APL_KNOWN_CHOICES];
  int32_t plans[APL_KNOWN_CHOICES];
  int32_t known, next;
  struct apl_known_variant {
    struct apl_contraction sizes;
    int64_t variant, splits;
  } variants[APL_KNOWN_CHOICES];  // of the contraction
  int32_t known_variants, next_variant;
  unsigned char banned[APL_MAX_PLANS];
};

struct apl_sparse_plan;

// An array of an entry's arguments. The same number means the same contents; 0: nobody knows.
struct apl_argument {
  const void* data;
  uint64_t number;
  struct apl_sparse_plan* const* plans;  // of its sparse operand, or null: for products, and for SDDMM
};

// A call of an entry: its name, and when it began and ended, in nanoseconds of a clock.
struct apl_event {
  const char* name;
  bool is_kernel;  // else a call of an entry
  int64_t start, end;
};

// Arguments that were held against a matrix that there is code for (embedded/known.h).
enum { APL_SEEN_MATRICES = 8 };
struct apl_seen_matrix {
  const struct apl_known_matrix* matrix;  // null: nothing
  uint64_t numbers[3];                    // of the arrays
  int32_t is_it;
};

struct apl_machine;  // the backend's own

// `base` comes first: a pointer to it is one to the context.
struct futhark_context {
  struct apl_context base;
  struct futhark_context_config* config;
  struct apl_machine* machine;
  struct apl_device device;
  pthread_mutex_t lock;
  char* error;
  FILE* log;
  int profiling;
  struct apl_choices** choices;
  int32_t choice_count;
  int64_t bytes, peak_bytes;  // of the backend's memory in use, as asked for
  struct apl_event* events;   // calls of entries and launches of kernels while profiling
  int64_t event_count, event_capacity;
  uint64_t storages;                     // made so far
  const struct apl_argument* arguments;  // of the call that runs
  int32_t argument_count;
  struct apl_seen_matrix seen[APL_SEEN_MATRICES];
  uint32_t next_seen;
  struct apl_value** constants;  // the values of each, or NULL
};

static inline struct futhark_context* apl_of(struct apl_context* base) { return (struct futhark_context*)base; }

// Between two times in microseconds; what there is no memory for is left out.
static void apl_add_event(struct futhark_context* ctx, const char* name, bool is_kernel, double start, double end);

// The call's argument that has this array.
static struct apl_argument apl_argument_of(const struct futhark_context* ctx, const void* data) {
  for (int32_t k = 0; k < ctx->argument_count; ++k)
    if (ctx->arguments[k].data == data) return ctx->arguments[k];
  return (struct apl_argument){data, 0, NULL};
}

// A text in memory that the caller frees, as printf makes it.
static char* apl_text(const char* format, ...) __attribute__((format(printf, 1, 2)));
static char* apl_text(const char* format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  const int length = vsnprintf(NULL, 0, format, arguments);
  va_end(arguments);
  char* text = length < 0 ? NULL : malloc((size_t)length + 1);
  if (text) vsnprintf(text, (size_t)length + 1, format, again);
  va_end(again);
  return text;
}
static char* apl_copied(const char* text) { return text ? apl_text("%s", text) : NULL; }

// Gives `status`, with a text for it. The first error stays until it is asked for.
static int apl_error(struct futhark_context* ctx, int status, char* text) {
  if (ctx->error) {
    free(text);
  } else {
    ctx->error = text;
  }
  return status;
}
// The same for a backend's function: the text is put where generated code looks for it.
static int apl_backend_error(struct apl_context* base, int status, const char* format, ...)
    __attribute__((format(printf, 3, 4)));
static int apl_backend_error(struct apl_context* base, int status, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(base->error, sizeof base->error, format, arguments);
  va_end(arguments);
  return status;
}

// A check of a kernel that failed: its message, each `%lld` replaced by the next of the cell's values, and its
// location.
static int apl_failed_check(struct apl_context* base, const struct apl_failure* failure) {
  const struct apl_location* location = &base->locations[failure->location];
  const char* from = location->message;
  size_t used = 0;
  for (int next = 0; *from && used + 24 < sizeof base->error;) {
    if (strncmp(from, "%lld", 4) == 0 && next < APL_FAILURE_VALUES) {
      used += (size_t)sprintf(base->error + used, "%lld", (long long)failure->values[next++]);
      from += 4;
    } else {
      base->error[used++] = *from++;
    }
  }
  base->error[used] = '\0';
  base->error_code = failure->code;
  base->error_line = location->line;
  base->error_column = location->column;
  base->error_call = location->call;
  base->call_count = failure->call_count;
  memcpy(base->calls, failure->calls, sizeof base->calls);
  return APL_PROGRAM_ERROR;
}

// The values of a constant, which the context keeps until it is freed. Values whose checks failed are not kept.
static int apl_constant_values(struct apl_context* base, int32_t number, const struct apl_value** values) {
  struct futhark_context* ctx = apl_of(base);
  const struct apl_constant* constant = &apl_this_program.constants[number];
  if (!ctx->constants) return apl_backend_error(base, APL_OUT_OF_MEMORY, "out of memory");
  if (!ctx->constants[number]) {
    struct apl_value* made = calloc((size_t)constant->count + 1, sizeof *made);
    if (!made) return apl_backend_error(base, APL_OUT_OF_MEMORY, "out of memory");
    int status = constant->make(base, NULL, made);
    const bool is_made = status == APL_SUCCESS;
    if (is_made) status = base->backend->synchronise(base);
    if (status != APL_SUCCESS) {
      for (int32_t k = 0; k < constant->count && is_made; ++k)
        if (made[k].data) base->backend->release(base, made[k].data);
      free(made);
      return status;
    }
    ctx->constants[number] = made;
  }
  *values = ctx->constants[number];
  return APL_SUCCESS;
}

// Those of all, as a context is made: what fails is the context's error.
static int apl_make_constants(struct futhark_context* ctx) {
  const struct apl_constant* constants = apl_this_program.constants;
  int32_t count = 0;
  while (constants && constants[count].name) ++count;
  ctx->constants = calloc((size_t)count + 1, sizeof *ctx->constants);
  if (!ctx->constants) return apl_backend_error(&ctx->base, APL_OUT_OF_MEMORY, "out of memory");
  const struct apl_value* values = NULL;
  for (int32_t k = 0; k < count; ++k) {
    const int status = apl_constant_values(&ctx->base, k, &values);
    if (status != APL_SUCCESS) return status;
  }
  return APL_SUCCESS;
}
static void apl_free_constants(struct futhark_context* ctx) {
  const struct apl_constant* constants = apl_this_program.constants;
  for (int32_t k = 0; ctx->constants && constants && constants[k].name; ++k) {
    for (int32_t v = 0; ctx->constants[k] && v < constants[k].count; ++v)
      if (ctx->constants[k][v].data) ctx->base.backend->release(&ctx->base, ctx->constants[k][v].data);
    free(ctx->constants[k]);
  }
  free(ctx->constants);
}

static void apl_log(struct futhark_context* ctx, const char* format, ...) __attribute__((format(printf, 2, 3)));
static void apl_log(struct futhark_context* ctx, const char* format, ...) {
  if (!ctx->config->logging && !ctx->config->debugging) return;
  va_list arguments;
  va_start(arguments, format);
  vfprintf(ctx->log, format, arguments);
  va_end(arguments);
  fputc('\n', ctx->log);
}

static double apl_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

// ---- what a backend gives ----

static const struct apl_backend apl_the_backend;
// Sets machine, device and failure cell.
static int apl_machine_open(struct futhark_context* ctx);
static void apl_machine_close(struct futhark_context* ctx);
static int apl_machine_clear(struct futhark_context* ctx);  // memory that is kept for later
// What was made of the array with this number, other than by a plan that it has now.
static void apl_machine_forget(struct futhark_context* ctx, uint64_t number);
// How many threads the calling thread's parallel regions have from now on, and what they had; 0: it stays as it is.
static int apl_swap_threads(int threads);
// Compiles the kernel of a plan, if that was not done yet, and says what it spills, in bytes a thread.
static int apl_machine_prepare(struct futhark_context* ctx, const char* kernel, int32_t* spilled);

#endif
