// What generated host code (C11) and a backend say to each other. A generated program is one C file
// that includes this header and defines, per entry, `apl_entry_NAME` and, for backends that compile
// kernels apart (cuda, emulate), `apl_kernel_text`. It calls nothing but the functions of `backend`,
// so the same text runs on the CPU, on a GPU and in emulation.
#ifndef APL_CONTEXT_H
#define APL_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

#include "machine/tiles/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

#define APL_MAX_RANK 32

// What a generated file exports; a library of one file keeps it to itself.
#ifndef APL_PROGRAM
#define APL_PROGRAM
#endif

enum apl_type {
#define APL_SCALAR(name, NAME, ...) APL_##NAME,
#include "ir/scalar_types.def"
};

static inline const char* apl_text_of_type(enum apl_type type) {
  static const char* const texts[] = {
#define APL_SCALAR(name, NAME, text, ...) text,
#include "ir/scalar_types.def"
  };
  return texts[type];
}

// 0 on success; the error text is in the context. The numbers are Futhark's.
enum apl_status { APL_SUCCESS = 0, APL_ERROR = 1, APL_PROGRAM_ERROR = 2, APL_OUT_OF_MEMORY = 3 };

// A scalar (rank 0, in `scalar`) or a row-major array whose `data` lies in the backend's memory.
struct apl_value {
  int32_t type;
  int32_t rank;
  int64_t shape[APL_MAX_RANK];
  void* data;
  union {
#define APL_SCALAR(name, NAME, text, kind, arithmetic, bytes, bits, mantissa, lowest, kernel_type, host_type) \
  host_type name;
#include "ir/scalar_types.def"
  } scalar;
};

// The failure cell: what a failed check in a kernel leaves behind; the first writer wins.
// `code` 0 is "none"; `location` indexes apl_locations[] of the generated file; `values` fill its message.
enum apl_failure_code {
  APL_OK = 0,
  APL_INDEX = 1,
  APL_ASSERT = 2,
  APL_DIV_ZERO = 3,
  APL_NO_CAPACITY = 4,
  APL_SCATTERED_TWICE = 5,
  APL_NEGATIVE_SIZE = 6
};
// A slice of three dims has nine numbers, and the array three more.
#define APL_FAILURE_VALUES 12
// Of calls around a check that are remembered, the innermost ones.
#define APL_MOST_CALLS 16
struct apl_failure {
  int32_t code;
  int32_t location;
  int64_t values[APL_FAILURE_VALUES];
  // The calls of functions that the check came by, one more than the number of each one's location, the innermost
  // first.
  int32_t call_count;
  int32_t calls[APL_MOST_CALLS];
};

// Where a check stands in the source, and its message: `%lld` stands for the next of `values`. If it came there by a
// call that was inlined, `call` is one more than the number of the call's location, which has no message; else 0.
struct apl_location {
  int32_t line, column, call;
  const char* message;
};

struct apl_launch {
  const char* kernel;    // name of the kernel in apl_kernel_text
  int64_t blocks;        // grid size, 1-D; 0 means nothing to do
  int32_t threads;       // block size, 1-D
  int32_t shared_bytes;  // dynamic shared memory
  int32_t arg_count;
  void** args;  // pointers to the argument values, in the kernel's order
};

// A number of a plan that has a name outside.
struct apl_plan_parameter {
  const char* name;
  int32_t number;  // enum apl_plan_number
  int32_t dim;
};

// The kernels of a contraction, one for each plan.
struct apl_plan_set {
  const char* name;  // of the result, for messages
  int32_t count;
  const char* const* kernels;  // their names, or NULL where they are functions of the file
  const struct apl_plan* plans;
  const struct apl_plan_parameter* parameters;  // ends with a NULL name
};

// The variants of a contraction (enum apl_variant): kernels of their plans, and those beside them, which are compiled
// when their variant is chosen (their names end with NULL).
struct apl_variant_set {
  const struct apl_plan_set* plans[APL_VARIANTS];  // NULL: there is no such variant, or it has no plans
  const char* const* kernels[APL_VARIANTS];
};

// A kernel whose text is compiled when it is chosen: of apl_lazy_kernels[], which ends with a NULL name.
struct apl_lazy_kernel {
  const char* name;
  const char* text;
};

// What is done with each result before it is written: a type of kernel text with
// `template <class Sum> APL_DEVICE Sum operator()(Sum sum, int64_t row, int64_t column) const`, handed over by value.
// For SDDMM with the number of the non-zero behind the column.
struct apl_sparse_epilogue {
  const char* type;  // its name, which is a part of the kernel's
  const char* text;  // its definition
  const void* value;
};

// C[rows][width] = after(A B), B[columns][width], over the non-zeros of a sparse argument of the entry: `row_start` and
// `column` are its arrays, `values` one for each non-zero. All types are one; rows of B and C lie so many elements
// apart.
struct apl_sparse_product {
  int32_t type;
  int32_t is_wide;  // C has the type of the sums: f32 where elements are floats of 16 bits
  int64_t rows, columns, nonzeros, width;
  const void *row_start, *column, *values;
  const void* b;
  int64_t b_row;
  void* c;
  int64_t c_row;
  const struct apl_sparse_epilogue* epilogue;  // NULL: nothing
};
// result[e] = after(values[e] * sum over k < depth of x[row of e][k] y[column of e][k]).
struct apl_sparse_sddmm_product {
  int32_t type;
  int32_t is_wide;  // results have the type of the sums
  int64_t rows, columns, nonzeros, depth;
  const void *row, *column;
  const void* values;  // NULL: 1
  const void* x;
  int64_t x_row;
  const void* y;
  int64_t y_row;
  void* result;
  const struct apl_sparse_epilogue* epilogue;  // NULL: nothing
};

// A matrix that a program has code for, with its structure and values: what apl_sparse_key (runtime/sparse/known.h)
// makes of it.
struct apl_known_matrix {
  uint64_t key;
  int64_t rows, columns, nonzeros;
  int32_t type;  // of its values
};

struct apl_context;
struct apl_value;
typedef int (*apl_entry)(struct apl_context* ctx, const struct apl_value* inputs, struct apl_value* outputs);

// A constant of the program that takes more than a few scalar operations: `make` gives its values, without inputs.
struct apl_constant {
  const char* name;
  apl_entry make;
  int32_t count;  // of its values
};

// Of memory by `allocate_cell`, at most.
#define APL_CELL_BYTES 8

struct apl_backend {
  const char* name;  // "c", "cuda", "emulate"
  // All return an apl_status and set the context's error text on failure.
  int (*allocate)(struct apl_context* ctx, int64_t bytes, const char* what, void** data);
  int (*release)(struct apl_context* ctx, void* data);
  int (*upload)(struct apl_context* ctx, void* data, const void* host, int64_t bytes);
  int (*download)(struct apl_context* ctx, void* host, const void* data, int64_t bytes);
  int (*copy)(struct apl_context* ctx, void* to, const void* from, int64_t bytes);
  int (*launch)(struct apl_context* ctx, const struct apl_launch* launch);
  // The plan for these sizes, by machine/tiles/plan.h.
  int (*choose)(struct apl_context* ctx, const struct apl_contraction* contraction, const struct apl_plan_set* set,
                int32_t* plan);
  // How a contraction is computed with these sizes (enum apl_variant; `only`: if not 0, which one), and in how many
  // parts. `contractions` has what is left to tile by variant, that of the tiled one at least; NULL: the same.
  int (*choose_variant)(struct apl_context* ctx, const struct apl_contraction* const* contractions,
                        const struct apl_variant_set* set, int only, int64_t* variant, int64_t* splits);
  // Memory of the backend's own for what the blocks of a kernel publish: zeros, which kernels leave so. It is
  // there until more is asked for, or the backend ends.
  int (*zeros)(struct apl_context* ctx, int64_t bytes, void** data);
  // A scalar's memory that kernels write and the host alone reads, by `download` as any other; released as such. May be
  // null, and leaves `data` null where none is free.
  int (*allocate_cell)(struct apl_context* ctx, void** data);
  // Waits, then reports a failed check (APL_PROGRAM_ERROR) or a fault of the device.
  int (*synchronise)(struct apl_context* ctx);
  // Compiles a kernel text, unless one was compiled under this name before. Null where kernels are part of the program.
  int (*load)(struct apl_context* ctx, const char* name, const char* kernel_text);
  // The same of `defines` and the text behind them: what is known when the program runs, as constants of the kernel.
  // May be null.
  int (*load_with)(struct apl_context* ctx, const char* name, const char* defines, const char* kernel_text);
  // The end of an entry: the same, or nothing where somebody else waits later.
  int (*finish)(struct apl_context* ctx);
  // By kernels of the runtime (sparse/device_operand.h, sparse/cpu_operands.h). `done` stays 0 where there are none, or
  // none that pay: then the program's own are launched. May be null.
  int (*sparse_product)(struct apl_context* ctx, const struct apl_sparse_product* product, int32_t* done);
  int (*sparse_sddmm_product)(struct apl_context* ctx, const struct apl_sparse_sddmm_product* sddmm, int32_t* done);
  // On the host the threads of the program do it: what was asked for last is done when all that came are back; `done`
  // says how many are worth it.
  void (*sparse_work)(struct apl_context* ctx);
  // Whether these arrays of a sparse argument are that matrix; `is_it` stays 0 where they are not, or are no
  // argument's. May be null.
  int (*is_known_matrix)(struct apl_context* ctx, const struct apl_known_matrix* matrix, const void* row_start,
                         const void* column, const void* values, int32_t* is_it);
  // The values of a constant, by its number in apl_constants[]. They are made when they are asked for first, and stay
  // the context's.
  int (*constant)(struct apl_context* ctx, int32_t number, const struct apl_value** values);
};

struct apl_context {
  const struct apl_backend* backend;
  void* state;                           // the backend's own
  struct apl_failure* failure;           // in the backend's memory: the last argument of every kernel that can fail
  const struct apl_location* locations;  // set by the loader from the generated file's apl_locations
  char error[1024];                      // text of the last error, "" if none
  int32_t error_code;                    // apl_failure_code of a check that the host code made, and its location
  int32_t error_line, error_column, error_call;
  // The calls of functions that the last failed check came by, as in apl_failure: behind those of its location.
  int32_t call_count;
  int32_t calls[APL_MOST_CALLS];
  // A word of the device's memory that is not 0 once a check failed in a kernel, until the host learns of it: an
  // argument of kernels that would stray on what is missing then.
  int32_t* failed;
};

// Exported by every generated file.
//   int apl_entry_NAME(struct apl_context *ctx, const struct apl_value *inputs, struct apl_value *outputs);
//   const struct apl_location apl_locations[];
//   const char apl_kernel_text[];   (cuda, emulate)
//   const struct apl_lazy_kernel apl_lazy_kernels[];   (cuda, emulate; where there are any)
//   const struct apl_constant apl_constants[];   (ends with a NULL name; where there are any)
// Inputs stay the caller's. Outputs' data are allocated through `backend` and become the caller's.

#ifdef __cplusplus
}
#endif
#endif
