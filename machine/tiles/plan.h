// Which tile numbers a contraction runs with on a device: one model for generated programs, for `aplc explain`,
// `aplc tune` and the tests, so that what is explained is what runs. Plain C11 without allocations and statics.
//
// A contraction is given as data: its dims with sizes, what its operands and results look like in memory, what one
// point costs. A plan is a number for each of its tile parameters. Where there are M and N dims (the schedule that
// tile-contraction made says which) GPUs have the mainloop of codegen/contraction; all else has the general kernel of
// codegen/lower/block.cpp.
#ifndef APL_PLAN_SELECT_H
#define APL_PLAN_SELECT_H

#include <stdint.h>

// A library of one file keeps these functions to itself.
#ifndef APL_PLAN_API
#define APL_PLAN_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define APL_PLAN_DIMS 16
#define APL_PLAN_OPERANDS 6
#define APL_MAX_PLANS 24        // at most in a generated program, for one contraction
#define APL_PLAN_MOST_LANES 64  // of a warp, and banks of shared memory

// The roles of a schedule's dims (ir/op.h), in the same order.
enum apl_dim_kind { APL_DIM_BATCH, APL_DIM_INVARIANT, APL_DIM_FREE, APL_DIM_M, APL_DIM_N, APL_DIM_CONTRACTED };

struct apl_plan_dim {
  int64_t size;
  int32_t kind;
  int32_t fixed;  // no parameters: one thread and one register, or one deep
};

struct apl_plan_operand {
  int32_t bytes;       // an element
  int32_t conditions;  // under which an element is read
  // Numbers that differ from row to row of M, and of N: what conditions ask for, and positions in further arrays; of
  // operands that no step changes in their own, too.
  int32_t row_numbers[2];
  // Of a computed factor: instructions for an element while its tile is copied, those that read further arrays with
  // them, and the bytes of all that is read for it; 0: a tile has what the array has.
  int32_t computed, read_bytes;
  int64_t strides[APL_PLAN_DIMS];  // in elements, one a dim; 0: it does not vary along it
};

// Space dims first, outermost first, then contracted ones; results are dense in the order of the space dims.
struct apl_contraction {
  int32_t dim_count, space_rank, operand_count;
  int32_t result_bytes, widest_result;  // of all results' elements together, and of the widest
  int32_t accumulator_bytes;            // of one point's accumulators
  int32_t epilogue_arrays;              // that the epilogue reads
  int32_t stored_sum_bytes;             // a sum, if the epilogue is done where results are stored; else 0
  int32_t general;                      // not the mainloop, even where there are M and N dims
  int32_t matrix;                       // products of matrix units that make one of these; 0: it is none for them
  int32_t copies;                       // operands that kernels before transpose or align,
  int64_t copied_bytes;                 // and what these write
  int32_t parts_transposed;             // split, its parts are of the contraction with transposed operands
  float operations;                     // a point, in multiply-adds of 32-bit floats at the full rate
  struct apl_plan_dim dims[APL_PLAN_DIMS];
  struct apl_plan_operand operands[APL_PLAN_OPERANDS];
};

enum apl_device_kind { APL_DEVICE_GPU, APL_DEVICE_CPU };

// A machine; text of the same names is in machine/target/records.
struct apl_device {
#define APL_DEVICE_NAME(name) char name[32];
#define APL_DEVICE_TEXT(name) char name[128];
#define APL_DEVICE_KIND(name) int32_t name;  // enum apl_device_kind
#define APL_DEVICE_FLAG(name) int32_t name;
#define APL_DEVICE_INT32(name) int32_t name;
#define APL_DEVICE_INT64(name) int64_t name;
#define APL_DEVICE_REAL(name) double name;
#define APL_DEVICE_FIELD(type, name, needed) APL_DEVICE_##type(name)
#include "machine/tiles/device_fields.def"
#undef APL_DEVICE_NAME
#undef APL_DEVICE_TEXT
#undef APL_DEVICE_KIND
#undef APL_DEVICE_FLAG
#undef APL_DEVICE_INT32
#undef APL_DEVICE_INT64
#undef APL_DEVICE_REAL
};

// A number for each parameter: threads and registers of free dims, the depth of contracted ones (in `tile`).
struct apl_plan {
  int32_t tile[APL_PLAN_DIMS], reg[APL_PLAN_DIMS];
  int32_t stages, tiles_per_block;  // of the mainloop; 0 tiles: as the code generator likes
};

// What the model says of a plan.
struct apl_plan_cost {
  double seconds;                              // all of it
  double arithmetic, shared, memory, latency;  // its parts, which overlap
  double memory_bytes, cache_bytes, shared_bytes;
  double read_conflicts, write_conflicts;  // passes of shared memory for one access, of one that is free of conflicts
  int64_t blocks;
  double waves, occupancy;
  int32_t has_mainloop;                                   // whether it has the mainloop
  int32_t threads, registers, blocks_per_multiprocessor;  // registers a thread, as estimated
  int64_t block_shared;                                   // bytes of shared memory a block
};

// Why a plan is not valid.
enum apl_plan_fault {
  APL_PLAN_FINE,
  APL_PLAN_RANGE,      // a number is below 1
  APL_PLAN_THREADS,    // too many threads a block
  APL_PLAN_REGISTERS,  // accumulators would spill
  APL_PLAN_SHARED,     // too much shared memory a block
  APL_PLAN_BLOCKS,     // more blocks than a launch can have
};

// Valid: the launch succeeds and nothing spills (T 6.3). `limit` and `needed` are what the fault is about.
APL_PLAN_API enum apl_plan_fault apl_plan_check(const struct apl_contraction* contraction, const struct apl_plan* plan,
                                                const struct apl_device* device, int64_t* needed, int64_t* limit);

APL_PLAN_API void apl_plan_estimate(const struct apl_contraction* contraction, const struct apl_plan* plan,
                                    const struct apl_device* device, struct apl_plan_cost* cost);

// Numbers that are given; 0 is free.
struct apl_forced {
  int32_t tile[APL_PLAN_DIMS], reg[APL_PLAN_DIMS];
  int32_t stages, tiles_per_block;
};

// A number of a plan.
enum apl_plan_number { APL_NUMBER_TILE, APL_NUMBER_REG, APL_NUMBER_STAGES };

struct apl_plan_choice {
  struct apl_plan best, runner_up;
  struct apl_plan_cost cost, runner_up_cost;
  int32_t has_runner_up;
  int32_t considered;  // how many plans were valid
  // Where no plan is valid: what is wrong with the nearest, and a given number that would work if it were smaller.
  enum apl_plan_fault fault;
  int64_t needed, limit;
  int32_t conflict_number, conflict_dim;  // enum apl_plan_number
  int32_t conflict_works;                 // 0: no single one helps
};

// The best valid plan around what is forced. 0: there is none, see `fault`. `forced` may be null.
APL_PLAN_API int apl_plan_select(const struct apl_contraction* contraction, const struct apl_forced* forced,
                                 const struct apl_device* device, struct apl_plan_choice* choice);

// The best of a few plans; -1: none is valid. `banned` may be null, else one a plan.
APL_PLAN_API int apl_plan_best_of(const struct apl_contraction* contraction, const struct apl_plan* plans, int count,
                                  const struct apl_device* device, const unsigned char* banned);

// Calls `visit` for every plan worth a thought, valid or not, in order of preference; it stops on a non-zero result,
// which is given.
typedef int (*apl_plan_visit)(const struct apl_plan* plan, void* context);
APL_PLAN_API int apl_plan_enumerate(const struct apl_contraction* contraction, const struct apl_forced* forced,
                                    const struct apl_device* device, apl_plan_visit visit, void* context);

// At most `most` plans, such that for each contraction (all alike but for sizes and strides) the best of them is within
// `factor` of its best plan, as far as that many can: how many there are. The first one is that of the first
// contraction, and `worst` the largest ratio that is left.
APL_PLAN_API int apl_plan_cover(const struct apl_contraction* contractions, int count, const struct apl_forced* forced,
                                const struct apl_device* device, double factor, int most, struct apl_plan* plans,
                                double* worst);

// ---- how a contraction is computed ----

// Tiled; tiled in parts of the outermost contracted dim, whose results a second kernel joins; one thread a point, which
// reads everything itself; tiled, with operands that are transposed by kernels before; or with all of them in rows of
// whole vectors along one depth.
enum apl_variant {
  APL_VARIANT_TILED = 1,
  APL_VARIANT_SPLIT,
  APL_VARIANT_UNTILED,
  APL_VARIANT_TRANSPOSED,
  APL_VARIANT_ALIGNED,
  APL_VARIANTS
};

// What the textual IR calls the alternative; "": there is none of this number.
APL_PLAN_API const char* apl_variant_name(int variant);

// Plans to choose among, and which are struck out (null: none are). Null `plans`: any plan will do.
struct apl_plan_list {
  const struct apl_plan* plans;
  int count;
  const unsigned char* banned;
};

struct apl_variant_choice {
  int32_t variant;               // 0: none has a valid plan
  int64_t splits;                // parts of the outermost contracted dim that suit best; 1: it cannot be split
  double seconds[APL_VARIANTS];  // by variant; below 0: none is valid
  // Padding instead of a remainder step, for the best tiled plan: what it takes. It was slower wherever it was
  // measured.
  double padded_seconds;
};

// What there is to choose among, by variant: plans (null: there is no such variant, or it has none, as the untiled
// one), and what is left to tile where kernels before change that (null: the contraction).
struct apl_variant_lists {
  const struct apl_plan_list* plans[APL_VARIANTS];
  const struct apl_contraction* contractions[APL_VARIANTS];
};

// The contraction whose reduction a split cuts: the whole, or the one of transposed operands.
APL_PLAN_API const struct apl_contraction* apl_contraction_to_split(const struct apl_contraction* whole,
                                                                    const struct apl_variant_lists* lists);

// The cheapest variant. `only` restricts to one variant; 0: any.
APL_PLAN_API int apl_variant_select(const struct apl_contraction* contraction, const struct apl_variant_lists* lists,
                                    int only, const struct apl_device* device, struct apl_variant_choice* choice);

// The contraction of so many parts, which are a batch dim; 0: there are too many dims.
APL_PLAN_API int apl_contraction_parts(const struct apl_contraction* contraction, int64_t splits,
                                       struct apl_contraction* parts);

// What joining parts costs, transposing operands before, packed panels on a CPU, and one thread a point, in seconds.
APL_PLAN_API double apl_join_estimate(const struct apl_contraction* contraction, int64_t splits,
                                      const struct apl_device* device);
APL_PLAN_API double apl_copies_estimate(const struct apl_contraction* contraction, const struct apl_device* device);
APL_PLAN_API double apl_packed_estimate(const struct apl_contraction* contraction, const struct apl_device* device);
APL_PLAN_API double apl_untiled_estimate(const struct apl_contraction* contraction, const struct apl_device* device);
// The time of a plan with padding, by that of the same with a remainder step.
APL_PLAN_API double apl_padded_estimate(const struct apl_contraction* contraction, const struct apl_plan* plan,
                                        const struct apl_device* device);

// ---- what the code generator and the model agree on ----

// The M or N dim of the mainloop: rows of a tile, and how a block's warps share them.
struct apl_mn_dim {
  int64_t extent;
  int64_t warps, lanes, each;  // their product is the extent
  int64_t vector;              // neighbouring rows of a thread
};
// The threads of a warp, which are so many, and rows of a thread along M and N: fewest rows loaded for a step of the
// depth. 0: the numbers do not fit together.
APL_PLAN_API int apl_mn_share(int64_t warp, int64_t threads, int64_t registers, int64_t vector,
                              struct apl_mn_dim* m_dim, struct apl_mn_dim* n_dim);

// Whether a GPU's block has the mainloop with these numbers, and how its warps share M and N: one element along all
// other dims, tiles of M and N that whole warps share.
// `matrix_units`: the machine has some; where the numbers suit them, the block is shared out as their products are.
APL_PLAN_API int apl_plan_mainloop(const struct apl_contraction* contraction, const struct apl_plan* plan, int64_t warp,
                                   int matrix_units, struct apl_mn_dim* m_dim, struct apl_mn_dim* n_dim);
// Whether M and N, so shared out, are for matrix units, and which of them the 64 rows of their products run along:
// 0 (M), 1 (N), -1: they are not.
APL_PLAN_API int apl_matrix_rows(const struct apl_mn_dim* m_dim, const struct apl_mn_dim* n_dim);
// Whether there are M and N dims.
APL_PLAN_API int apl_plan_has_mn_dims(const struct apl_contraction* contraction);

// Lines `name = value`, `#` comments, up to a profile of the search for sparse formats. 0: `line` is wrong or a value
// is missing.
APL_PLAN_API int apl_device_parse(const char* text, struct apl_device* device, int* line);

#ifdef __cplusplus
}
#endif
#endif
