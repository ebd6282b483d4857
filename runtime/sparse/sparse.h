// Sparse operands at run time, in C11: a plan says how the non-zeros of a matrix become tiles, the packer makes them in
// linear time, and the reference executor computes with them.
//
// Rows are taken in groups of 64, in the plan's order. In each group the plan's selections act from left to right:
// `16@2>=3` takes, of the group's third 16 rows, all columns that have at least 3 non-zeros not taken yet, and makes
// them one block tile. The remainder becomes ELL rows (`ell`) or nnz segments (`segments`). Groups share no row: a
// worker that has all tiles of a group needs no atomic additions.
#ifndef APL_SPARSE_H
#define APL_SPARSE_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/sparse/csr.h"

// A library of one file keeps its functions to itself.
#ifndef APL_SPARSE_API
#define APL_SPARSE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum { APL_SPARSE_GROUP = 64, APL_SPARSE_STEP = 16, APL_SPARSE_MAX_WIDTHS = 16 };

enum apl_sparse_status {
  APL_SPARSE_FINE = 0,
  APL_SPARSE_MALFORMED = 1,
  APL_SPARSE_OUT_OF_MEMORY = 2,
  APL_SPARSE_TOO_LARGE = 3,  // more values than 32 bits can number
  APL_SPARSE_PADDED = 4      // the plan's tiles would be little but padding
};
// What a status says of a matrix and its plan, as a part of a sentence.
APL_SPARSE_API const char* apl_sparse_status_text(int status);

// The key of plans: a hash of sizes and positions of the non-zeros.
APL_SPARSE_API uint64_t apl_sparse_hash(const struct apl_sparse_csr* matrix);

struct apl_sparse_selection {
  uint8_t height;     // 8, 16, 32 or 64
  uint8_t window;     // which part of the group of that height
  uint8_t threshold;  // 1 .. height
};

// So many groups one after the other that are treated alike.
struct apl_sparse_stretch {
  int64_t groups;
  int64_t first, selections;  // in `selection`
  int segments;               // the remainder becomes nnz segments, else ELL rows
};

struct apl_sparse_plan {
  int64_t rows, columns, nonzeros;
  uint64_t hash;
  int sddmm;                                     // meant for SDDMM; any plan is right for either
  int dense;                                     // the plan is not to make tiles: multiply the dense matrix
  int64_t dense_size;                            // iterations of the dense loop that it is meant for
  int64_t dense_part;                            // in how many at a time the loop is cut
  int32_t* row_order;                            // the row at each position; null: as they are
  int32_t widths, width[APL_SPARSE_MAX_WIDTHS];  // of ELL rows, rising
  int64_t ell_elements;                          // at most, of one ELL tile
  int64_t segment_length;
  int64_t stretches;
  struct apl_sparse_stretch* stretch;
  struct apl_sparse_selection* selection;
};

// Reads a plan's text. On failure the message says why, and in which line.
APL_SPARSE_API int apl_sparse_plan_parse(const char* text, size_t length, struct apl_sparse_plan** plan, char* message,
                                         size_t size);
// Whether the plan is for this matrix; else the message goes on after `the plan`, and says what differs.
APL_SPARSE_API int apl_sparse_plan_fits(const struct apl_sparse_plan* plan, const struct apl_sparse_csr* matrix,
                                        char* message, size_t size);
// A plan without a search: windows of 32 and 8 rows where neighbouring rows share columns, ELL rows elsewhere.
APL_SPARSE_API int apl_sparse_plan_builtin(const struct apl_sparse_csr* matrix, struct apl_sparse_plan** plan);
APL_SPARSE_API void apl_sparse_plan_free(struct apl_sparse_plan* plan);

// `position` counts rows in the plan's order. Steps have 16 columns; a step that is not full repeats a column, with
// sources of -1. Columns of a block: step k has column[16 * (first_step + k) ..]. Elements, row by row within a step:
// source[first_element + 16 * height * k ..] is the non-zero that stands there, or -1 for a zero.
struct apl_sparse_block {
  int64_t position, first_step, steps, first_element;
  int32_t height;
};
// Rows of `width` elements each.
struct apl_sparse_ell {
  int64_t first_ell_row, first_element;
  int32_t ell_rows, width;
};
struct apl_sparse_segment {
  int64_t first;
  int32_t count;
};

struct apl_sparse_tiles {
  int64_t rows, columns, nonzeros, groups;
  int32_t* row_order;  // null: as they are
  // Tiles of group g are those from [g] up to [g + 1].
  int64_t *group_block, *group_ell, *group_segment;
  int64_t blocks, steps, block_elements;
  struct apl_sparse_block* block;
  int32_t *block_column, *block_source;
  int64_t ell_tiles, ell_rows, ell_elements;
  struct apl_sparse_ell* ell_tile;
  int32_t *ell_row, *ell_column, *ell_source;
  int64_t segments, segment_elements;
  struct apl_sparse_segment* segment;
  int32_t *segment_row, *segment_column, *segment_source;
};

// A plan for another matrix, or for a dense product, is malformed. Tiles of more than 32 elements for each non-zero and
// each row, and four million beside them, are refused before there is memory for them.
APL_SPARSE_API int apl_sparse_pack(const struct apl_sparse_csr* matrix, const struct apl_sparse_plan* plan,
                                   struct apl_sparse_tiles** tiles);
APL_SPARSE_API void apl_sparse_tiles_free(struct apl_sparse_tiles* tiles);

// C[rows][dense] = A B with B[columns][dense]; values are those of the matrix the tiles were made from. C need not be
// set before. The dense loop goes in parts of `part` (0: whole).
APL_SPARSE_API void apl_sparse_spmm_f32(const struct apl_sparse_tiles* tiles, const float* values, const float* b,
                                        int64_t dense, int64_t part, float* c);
APL_SPARSE_API void apl_sparse_spmm_f64(const struct apl_sparse_tiles* tiles, const double* values, const double* b,
                                        int64_t dense, int64_t part, double* c);
// result[n] = values[n] * sum over k of x[row of n][k] * y[column of n][k], for every non-zero n.
APL_SPARSE_API void apl_sparse_sddmm_f32(const struct apl_sparse_tiles* tiles, const float* values, const float* x,
                                         const float* y, int64_t dense, float* result);
APL_SPARSE_API void apl_sparse_sddmm_f64(const struct apl_sparse_tiles* tiles, const double* values, const double* x,
                                         const double* y, int64_t dense, double* result);

// The non-zeros of one group by column, for the packer and for plans: of distinct column k, rows[k] has a bit for each
// row of the group, and source[first[k] ..] its non-zeros in that order.
struct apl_sparse_group {
  int64_t columns, entries, capacity;
  int32_t *column, *source;
  int64_t* first;
  uint64_t* rows;
  uint64_t* key[2];
  int32_t* order[2];
};
APL_SPARSE_API int apl_sparse_group_read(struct apl_sparse_group* group, const struct apl_sparse_csr* matrix,
                                         const int32_t* row_order, int64_t index);
APL_SPARSE_API void apl_sparse_group_free(struct apl_sparse_group* group);

#ifdef __cplusplus
}
#endif

#endif
