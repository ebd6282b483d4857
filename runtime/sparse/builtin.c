// Plans without a search.
#include <stdlib.h>

#include "runtime/sparse/sparse.h"

// Whether neighbouring rows share columns: non-zeros a column of 8 rows, in some of the groups.
static int rows_share_columns(const struct apl_sparse_csr* matrix, int* share) {
  enum { kLooks = 256 };
  const int64_t groups = (matrix->rows + APL_SPARSE_GROUP - 1) / APL_SPARSE_GROUP;
  const int64_t stride = groups / kLooks + 1;
  struct apl_sparse_group group = {0};
  int64_t entries = 0, vectors = 0;
  for (int64_t g = 0; g < groups; g += stride) {
    if (apl_sparse_group_read(&group, matrix, NULL, g)) return APL_SPARSE_OUT_OF_MEMORY;
    entries += group.entries;
    for (int64_t k = 0; k < group.columns; ++k)
      for (int part = 0; part < APL_SPARSE_GROUP; part += 8) vectors += (group.rows[k] >> part & 255) != 0;
  }
  apl_sparse_group_free(&group);
  *share = 2 * entries >= 3 * vectors && entries > 0;
  return APL_SPARSE_FINE;
}

int apl_sparse_plan_builtin(const struct apl_sparse_csr* matrix, struct apl_sparse_plan** plan) {
  int share = 0;
  *plan = NULL;
  if (rows_share_columns(matrix, &share)) return APL_SPARSE_OUT_OF_MEMORY;
  struct apl_sparse_plan* made = calloc(1, sizeof *made);
  if (!made) return APL_SPARSE_OUT_OF_MEMORY;
  made->rows = matrix->rows;
  made->columns = matrix->columns;
  made->nonzeros = matrix->nonzeros;
  made->hash = apl_sparse_hash(matrix);
  made->dense_size = made->dense_part = 128;
  for (int32_t width = 1; width <= 64; width *= 2) made->width[made->widths++] = width;
  made->ell_elements = 1024;
  made->segment_length = 128;
  made->stretch = calloc(1, sizeof *made->stretch);
  made->selection = calloc(10, sizeof *made->selection);
  if (!made->stretch || !made->selection) {
    apl_sparse_plan_free(made);
    return APL_SPARSE_OUT_OF_MEMORY;
  }
  made->stretches = matrix->rows > 0;
  made->stretch[0].groups = (matrix->rows + APL_SPARSE_GROUP - 1) / APL_SPARSE_GROUP;
  if (share) {
    for (uint8_t window = 0; window < 2; ++window)
      made->selection[made->stretch[0].selections++] = (struct apl_sparse_selection){32, window, 4};
    for (uint8_t window = 0; window < 8; ++window)
      made->selection[made->stretch[0].selections++] = (struct apl_sparse_selection){8, window, 2};
  }
  *plan = made;
  return APL_SPARSE_FINE;
}
