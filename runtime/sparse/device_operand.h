// Sparse operands of compiled kernels (sparse/kernels/): what their arrays look like, made in linear time from a matrix
// and a plan; which kernel runs, by rules that the options override; and one call an operator that runs it through a
// context, on cuda and in emulation alike.
#ifndef APL_SPARSE_DEVICE_PACKED_H
#define APL_SPARSE_DEVICE_PACKED_H

#include "machine/tiles/plan.h"
#include "runtime/backends/context.h"
#include "runtime/sparse/sparse.h"

#ifdef __cplusplus
extern "C" {
#endif

// What the rules look at.
struct apl_sparse_statistics {
  int64_t rows, columns, nonzeros, longest;  // row
  double mean;                               // non-zeros a row
  double shared;                             // non-zeros a column of 8 rows, in a sample
  double steps[3];                           // of windows of 8, 16 and 32 rows, by the sample
  double units[3];                           // of 8 rows in these
  int32_t longest_window[3];                 // steps, of those in the sample
};
APL_SPARSE_API int apl_sparse_measure(const struct apl_sparse_csr* matrix, const int32_t* row_order,
                                      struct apl_sparse_statistics* statistics);

// 0: what takes least by the model.
struct apl_sparse_options {
  int32_t window;     // rows of a window: 8, 16 or 32; -1: no windows, all rows are gathered
  int32_t warp_row;   // rows from so many non-zeros on have a warp,
  int32_t block_row;  // and from so many on a block
  int32_t piece;      // rows of more non-zeros are cut into pieces of so many, which are rows to the above; -1: none is
  int32_t sorted;     // rows by length: 1; as they are in each class: -1
  int32_t apart;      // rows of so many non-zeros are in no window
  int32_t lanes;      // that have a row
  int32_t ahead;      // indices of gathered rows are loaded a round ahead: 1; not: -1
  int32_t split;      // warps that have a window: 1, 2, 4 or 8
  int32_t slices;     // of columns beside each other in a block of windows: 1, 2 or 4
  int32_t staged;     // B through shared memory: 1; not: -1
  int32_t resident;   // blocks a multiprocessor is to hold, for the compiler
  int32_t task;       // steps of a task, in SDDMM on tensor cores
  const int32_t* row_order;  // of SpMM, where a plan has none: the row at each position; null: as they are
};

// SpMM's arrays. A row is either in a window or in the rows' part, so that it has one owner; a plan's windows are where
// it has selections. Values stand in one array, which holds first those of the rows' part, then those of the windows.
struct apl_sparse_packed {
  const struct apl_device* device;  // that it was made for, which outlives it
  struct apl_sparse_statistics statistics;
  int64_t rows, columns, nonzeros;
  // Rows that are gathered: {row, start, length padded to fours, 0}, in three classes (kernels/rows.h). A row that is
  // cut has a record for each of its pieces, whose last number is the piece's and 1.
  int32_t longs, mediums, records;
  int32_t* record;
  int64_t row_elements;  // a multiple of 16
  int32_t longest[3];    // padded length, of each class
  int32_t sorted;        // by length; -1: as they are in each class
  int32_t* row_column;
  // Rows that are cut: {row, first piece, pieces, 0}.
  int32_t cuts, pieces;
  int32_t* cut;
  // Windows of 8 `parts` rows (kernels/windows.h); no parts: no windows.
  int32_t parts, windows;
  int32_t *window, *part, *window_row;
  int64_t steps, units;    // units of 8 rows in them
  int32_t longest_window;  // steps
  int32_t* step_column;
  // Where the value of each non-zero goes, in an array of `values`.
  int64_t values;
  uint32_t* slot;
};
// For a C of so many columns: any other will do, too, if not as fast.
APL_SPARSE_API int apl_sparse_packed_make(const struct apl_sparse_csr* matrix, const struct apl_sparse_plan* plan,
                                          const struct apl_device* device, int32_t type, int64_t width,
                                          const struct apl_sparse_options* options, struct apl_sparse_packed** packed);
APL_SPARSE_API void apl_sparse_packed_free(struct apl_sparse_packed* packed);

// An order of the rows by which SpMM takes less by the model, if it is worth making (sparse/reorder.c): within its
// doubt, of matrices for which that takes no longer than packing some times. `order` is null where it is not, and is to
// be freed.
struct apl_sparse_reordering {
  int32_t* order;
  double before, after;  // microseconds by the model; 0: nobody looked
};
APL_SPARSE_API int apl_sparse_reorder(const struct apl_sparse_csr* matrix, const struct apl_device* device,
                                      int32_t type, int64_t width, struct apl_sparse_reordering* found);

// SDDMM's arrays: a list of coordinates, and windows of 8 rows where tensor cores are worth it (kernels/sddmm.h).
struct apl_sparse_sddmm_packed {
  const struct apl_device* device;
  struct apl_sparse_statistics statistics;
  int64_t rows, columns, nonzeros;
  int32_t *row, *column;               // padded to fours
  int32_t tasks, windows, task_steps;  // at most, of a task
  int64_t steps;
  int32_t *task, *start, *window_row, *step_column;
  uint16_t* mask;
};
APL_SPARSE_API int apl_sparse_sddmm_packed_make(const struct apl_sparse_csr* matrix, const struct apl_sparse_plan* plan,
                                                const struct apl_device* device, int32_t type, int64_t depth,
                                                const struct apl_sparse_options* options,
                                                struct apl_sparse_sddmm_packed** packed);
APL_SPARSE_API void apl_sparse_sddmm_packed_free(struct apl_sparse_sddmm_packed* packed);

// Microseconds on the device, by a model that is fitted in f16 and counts the bytes of other types (device_cost.c): of
// the product with this operand, of SDDMM, and of a dense product of rows times depth and depth times columns. For SpMM
// the depth is that of A's columns.
APL_SPARSE_API double apl_sparse_microseconds(const struct apl_sparse_packed* packed, int32_t type, int64_t width);
APL_SPARSE_API double apl_sparse_sddmm_microseconds(const struct apl_sparse_sddmm_packed* packed, int32_t type,
                                                    int64_t depth);
APL_SPARSE_API double apl_sparse_dense_microseconds(const struct apl_device* device, int32_t type, int64_t rows,
                                                    int64_t depth, int64_t columns);
// Whether to say 'dense': it is faster, or the model cannot tell. Said wrongly it costs up to 1.3 times the time in the
// recorded products, not said it may cost several times.
APL_SPARSE_API int apl_sparse_prefers_dense(const struct apl_device* device, double sparse, double dense);

// A packed operand on a device, and what runs there. `is_wide`, which may be set before each call: results have the
// type of the sums, f32 where elements are floats of 16 bits. Functions give an apl_status; the context has the error's
// text.
struct apl_sparse_operand {
  int32_t type, is_wide;
  struct apl_sparse_packed packed;  // without its host arrays
  void *record, *row_column, *cut, *window, *part, *window_row, *step_column, *slot, *value;
};
APL_SPARSE_API int apl_sparse_upload(struct apl_context* ctx, const struct apl_sparse_packed* packed, int32_t type,
                                     struct apl_sparse_operand* operand);
// `values` are on the device, in the order of the non-zeros; they may be set again at any time.
APL_SPARSE_API int apl_sparse_set_values(struct apl_context* ctx, struct apl_sparse_operand* operand,
                                         const void* values);
APL_SPARSE_API int apl_sparse_release(struct apl_context* ctx, struct apl_sparse_operand* operand);

struct apl_sparse_sddmm_operand {
  int32_t type, is_wide;
  struct apl_sparse_sddmm_packed packed;  // without its host arrays
  void *row, *column, *task, *start, *window_row, *step_column, *mask;
};
APL_SPARSE_API int apl_sparse_upload_sddmm(struct apl_context* ctx, const struct apl_sparse_sddmm_packed* packed,
                                           int32_t type, struct apl_sparse_sddmm_operand* operand);
APL_SPARSE_API int apl_sparse_release_sddmm(struct apl_context* ctx, struct apl_sparse_sddmm_operand* operand);

// A dense array on the device: rows lie `row` elements apart, elements of a row side by side.
struct apl_sparse_dense {
  void* data;
  int64_t row;
};

// C[rows][width] = after(A B), B[columns][width]. C need not be set before. `options` and `after` may be null.
APL_SPARSE_API int apl_sparse_spmm(struct apl_context* ctx, const struct apl_sparse_operand* a,
                                   struct apl_sparse_dense b, struct apl_sparse_dense c, int64_t width,
                                   const struct apl_sparse_options* options,
                                   const struct apl_sparse_epilogue* epilogue);
// result[n] = after(values[n] * sum over k of x[row of n][k] y[column of n][k]); without `values` they are 1.
// `after` is called with n, too.
APL_SPARSE_API int apl_sparse_sddmm(struct apl_context* ctx, const struct apl_sparse_sddmm_operand* a,
                                    const void* values, struct apl_sparse_dense x, struct apl_sparse_dense y,
                                    int64_t depth, void* result, const struct apl_sparse_epilogue* epilogue);

// For another library's dense product, of what stands at `value` then: all elements of the matrix, row by row, whose
// zeros are stored. Its sums, [rows][width] in their own type, are the pieces of apl_sparse_join (device_kernel.h).
APL_SPARSE_API int apl_sparse_packed_dense(const struct apl_sparse_csr* matrix, const struct apl_device* device,
                                           struct apl_sparse_packed** packed);
// result[n] = after(values[n] * all[row of n][column of n]) of a list of coordinates, where `all` has the sums of every
// row of X and row of Y.
APL_SPARSE_API int apl_sparse_sample(struct apl_context* ctx, const struct apl_sparse_sddmm_operand* a,
                                     const void* values, const void* all, void* result,
                                     const struct apl_sparse_epilogue* epilogue);

// The parts of kernel texts.
enum apl_sparse_text {
  APL_SPARSE_TEXT_WARP,
  APL_SPARSE_TEXT_NUMBERS,
  APL_SPARSE_TEXT_ROWS,
  APL_SPARSE_TEXT_WINDOWS,
  APL_SPARSE_TEXT_STAGED,
  APL_SPARSE_TEXT_SPMM,
  APL_SPARSE_TEXT_SDDMM,
  APL_SPARSE_TEXT_VALUES,
  APL_SPARSE_TEXT_JOIN,
  APL_SPARSE_TEXT_PLAIN_WINDOWS,
  APL_SPARSE_TEXT_SAMPLE
};
APL_SPARSE_API const char* apl_sparse_kernel_part(enum apl_sparse_text part);

#ifdef __cplusplus
}
#endif

#endif
