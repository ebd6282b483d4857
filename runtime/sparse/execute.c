// What tiles mean: products over the tiles as plain loops, one after the other. Compiled kernels are held against
// it.
#include "runtime/sparse/sparse.h"

typedef void (*element_visitor)(void* state, int32_t source, int64_t row, int64_t column);

// Every element of every tile that is no padding, tile by tile.
static void visit_elements(const struct apl_sparse_tiles* t, element_visitor visit, void* state) {
  for (int64_t k = 0; k < t->blocks; ++k) {
    const struct apl_sparse_block* block = &t->block[k];
    for (int64_t n = 0; n < block->steps * APL_SPARSE_STEP * block->height; ++n) {
      const int32_t source = t->block_source[block->first_element + n];
      if (source < 0) continue;
      const int64_t step = n / (APL_SPARSE_STEP * block->height), in_step = n % (APL_SPARSE_STEP * block->height);
      const int64_t position = block->position + in_step / APL_SPARSE_STEP;
      const int64_t row = t->row_order ? t->row_order[position] : position;
      visit(state, source, row,
            t->block_column[(block->first_step + step) * APL_SPARSE_STEP + in_step % APL_SPARSE_STEP]);
    }
  }
  for (int64_t k = 0; k < t->ell_tiles; ++k) {
    const struct apl_sparse_ell* tile = &t->ell_tile[k];
    for (int64_t n = 0; n < (int64_t)tile->ell_rows * tile->width; ++n) {
      const int32_t source = t->ell_source[tile->first_element + n];
      if (source < 0) continue;
      visit(state, source, t->ell_row[tile->first_ell_row + n / tile->width], t->ell_column[tile->first_element + n]);
    }
  }
  for (int64_t n = 0; n < t->segment_elements; ++n)
    visit(state, t->segment_source[n], t->segment_row[n], t->segment_column[n]);
}

#define real float
#define APL_SPARSE_NAME(name) name##_f32
#include "runtime/sparse/execute_type.h"
#undef APL_SPARSE_NAME
#undef real

#define real double
#define APL_SPARSE_NAME(name) name##_f64
#include "runtime/sparse/execute_type.h"
#undef APL_SPARSE_NAME
#undef real
