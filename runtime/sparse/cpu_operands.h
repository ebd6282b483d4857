// Products of programs over the non-zeros of an argument, on CPUs. What is made of an argument is kept for the next
// call with it: at first its rows as they are, which costs next to nothing, and tiles once so much was computed with it
// that packing them pays.
#ifndef APL_SPARSE_CPU_OPERANDS_H
#define APL_SPARSE_CPU_OPERANDS_H

#include "runtime/backends/context.h"
#include "runtime/sparse/cpu.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { APL_SPARSE_CPU_KNOWN = 8 };

struct apl_sparse_cpu_operand {
  uint64_t pattern;  // the number of its columns' array
  int sddmm;         // its row starts are counted from the rows, which is all that there is
  struct apl_sparse_cpu_packed* packed;
  struct apl_sparse_tiles* tiles;  // null: rows as they are
  int64_t spent;                   // iterations of dense loops so far
  int is_resolved;                 // whether tiles pay was asked
  // Packed values, where they cannot be used as they are.
  void* packed_values;
  size_t capacity;
  uint64_t values;  // the number of the array that they are from; 0: they are to be set again
};

// Zeros, but for `threads`, at first. `call` is the product that was asked for last: it is done when all threads that
// entered apl_sparse_cpu_work with it are back.
struct apl_sparse_cpu_operands {
  int threads;
  int count;
  struct apl_sparse_cpu_operand known[APL_SPARSE_CPU_KNOWN];
  struct apl_sparse_cpu_call call;
};

// `pattern` and `values` are numbers of the arrays `column` and `values`: the same number means the same contents, 0
// that they are never seen again. A plan, if any, is packed at once. `threads` stays 0 if the program's own kernel is
// to run, else it says how many are worth it. Gives an enum apl_sparse_status.
APL_SPARSE_API int apl_sparse_cpu_product(struct apl_sparse_cpu_operands* operands,
                                          const struct apl_sparse_product* product, uint64_t pattern, uint64_t values,
                                          const struct apl_sparse_plan* plan, int32_t* threads);
APL_SPARSE_API int apl_sparse_cpu_sddmm(struct apl_sparse_cpu_operands* operands,
                                        const struct apl_sparse_sddmm_product* sddmm, uint64_t pattern, uint64_t values,
                                        const struct apl_sparse_plan* plan, int32_t* threads);
APL_SPARSE_API void apl_sparse_cpu_forget(struct apl_sparse_cpu_operands* operands);
// What was made of one pattern: where another plan is for it from now on.
APL_SPARSE_API void apl_sparse_cpu_forget_pattern(struct apl_sparse_cpu_operands* operands, uint64_t pattern);

#ifdef __cplusplus
}
#endif

#endif
