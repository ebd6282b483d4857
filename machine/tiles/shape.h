// What a plan makes of a contraction on a device: the block, its kernel, its memory. Of this folder only.
#ifndef APL_PLAN_SHAPE_H
#define APL_PLAN_SHAPE_H

#include "machine/tiles/plan.h"

enum { APL_NO_MN_DIM = 2 };  // of a tile that runs along the depth alone

// How an operand's tile is copied to shared memory.
enum apl_tile_copy { APL_COPY_VECTORS, APL_COPY_ROWS, APL_COPY_DEPTH, APL_COPY_SCATTERED };

struct apl_tile_shape {
  int64_t rows, depth;  // of the tile; rows of a step of the depth
  int64_t registers;    // rows of one thread, in a general kernel
  int32_t bytes;        // an element
  int32_t mn;           // 0 slow, 1 fast, or none
  int32_t resident;     // no step changes it: in the mainloop it is in registers,
  int32_t along[2];     // of M's rows, of N's, or of both
  enum apl_tile_copy copy;
};

struct apl_plan_shape {
  int has_mn_dims, has_mainloop, matrix;  // matrix: whole steps are products of matrix units
  int tf32;                               // products of tf32 by matrix units that make one of f32, or 0
  int64_t threads, registers, depth;      // depth: of all contracted dims' tiles together
  int64_t blocks, points;                 // points of the result
  int64_t rows[2], rows_size[2];          // of a block and of the result, by M and N; without them all in [1]
  int64_t steps, reduction;               // steps of the depth loop, and points of the reduction
  struct apl_mn_dim mn_dims[2];
  struct apl_tile_shape tiles[APL_PLAN_OPERANDS];
  int64_t shared;                     // bytes a block
  int64_t block_accumulators;         // bytes a block
  int64_t thread_registers;           // 32-bit, estimated: what it takes, or would like to
  int64_t needed_registers;           // below which accumulators spill
  int64_t blocks_per_multiprocessor;  // resident
  int aligned_result;                 // results can be written as vectors
};

enum { kPlanStages = 3 };  // where none are asked for

// Products are cut off here, so that nothing overflows.
#define APL_PLAN_MANY (INT64_C(1) << 56)

static inline int64_t apl_times(int64_t a, int64_t b) {
  if (a <= 0 || b <= 0) return 0;
  // Hardly any product is large, and divisions are slow.
  if ((a | b) >> 28 == 0) return a * b;
  return a > APL_PLAN_MANY / b ? APL_PLAN_MANY : a * b;
}
// Whether kernels are blocks of threads that run in warps beside each other and share a memory. Else the threads of a
// block are loops of one core, whose cache is that memory.
static inline int apl_has_warps(const struct apl_device* device) { return device->warp > 0; }
// Along which some operands vary.
static inline int apl_is_free(const struct apl_contraction* c, int d) {
  return c->dims[d].kind >= APL_DIM_FREE && c->dims[d].kind <= APL_DIM_N;
}
// 0 for M, 1 for N, -1 for others.
static inline int apl_mn_of(const struct apl_contraction* c, int d) {
  return c->dims[d].kind == APL_DIM_M ? 0 : c->dims[d].kind == APL_DIM_N ? 1 : -1;
}
// Whether no step of the reduction changes the operand.
static inline int apl_is_resident(const struct apl_contraction* c, int o) {
  for (int d = c->space_rank; d < c->dim_count; ++d)
    if (c->operands[o].strides[d] != 0) return 0;
  return 1;
}
// Whether products are those of matrix units with tiles of their own, which are of 16 or of 8 bits.
APL_PLAN_API int apl_has_matrix_tiles(const struct apl_contraction* c);
// How many products of tf32 make one, where it is of f32; or 0.
APL_PLAN_API int apl_tf32_products(const struct apl_contraction* c);
static inline int64_t apl_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
static inline int64_t apl_least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t apl_most(int64_t a, int64_t b) { return a > b ? a : b; }

// What plans of one contraction have in common, and what the last one's block was shared out like: zeroed for the first
// plan, then left alone.
struct apl_plan_known {
  int filled, has_mn_dims, shared;
  int64_t threads, registers;  // of `mn_dims`
  struct apl_mn_dim mn_dims[2];
};
APL_PLAN_API void apl_plan_shape_with(const struct apl_contraction* c, const struct apl_plan* plan,
                                      const struct apl_device* device, struct apl_plan_known* known,
                                      struct apl_plan_shape* shape);
APL_PLAN_API void apl_plan_shape_of(const struct apl_contraction* c, const struct apl_plan* plan,
                                    const struct apl_device* device, struct apl_plan_shape* shape);
APL_PLAN_API enum apl_plan_fault apl_plan_fault_of(const struct apl_plan_shape* shape, const struct apl_device* device,
                                                   int64_t* needed, int64_t* limit);
APL_PLAN_API void apl_plan_cost_of(const struct apl_contraction* c, const struct apl_plan* plan,
                                   const struct apl_plan_shape* shape, const struct apl_device* device,
                                   struct apl_plan_cost* cost);

#endif
