// The reference executor for one element type: `real`, names ending in APL_SPARSE_NAME. Included by execute.c.

static void APL_SPARSE_NAME(add_row)(real value, const real* b, int64_t count, real* c) {
  for (int64_t j = 0; j < count; ++j) c[j] += value * b[j];
}

static void APL_SPARSE_NAME(multiply_part)(const struct apl_sparse_tiles* t, const real* values, const real* b,
                                           int64_t dense, int64_t begin, int64_t count, real* c) {
  for (int64_t k = 0; k < t->blocks; ++k) {
    const struct apl_sparse_block* block = &t->block[k];
    for (int64_t n = 0; n < block->steps * APL_SPARSE_STEP * block->height; ++n) {
      const int32_t source = t->block_source[block->first_element + n];
      if (source < 0) continue;
      const int64_t step = n / (APL_SPARSE_STEP * block->height), in_step = n % (APL_SPARSE_STEP * block->height);
      const int64_t position = block->position + in_step / APL_SPARSE_STEP;
      const int64_t row = t->row_order ? t->row_order[position] : position;
      const int64_t column = t->block_column[(block->first_step + step) * APL_SPARSE_STEP + in_step % APL_SPARSE_STEP];
      APL_SPARSE_NAME(add_row)(values[source], b + column * dense + begin, count, c + row * dense + begin);
    }
  }
  for (int64_t k = 0; k < t->ell_tiles; ++k) {
    const struct apl_sparse_ell* tile = &t->ell_tile[k];
    for (int64_t n = 0; n < (int64_t)tile->ell_rows * tile->width; ++n) {
      const int32_t source = t->ell_source[tile->first_element + n];
      if (source < 0) continue;
      const int64_t row = t->ell_row[tile->first_ell_row + n / tile->width];
      const int64_t column = t->ell_column[tile->first_element + n];
      APL_SPARSE_NAME(add_row)(values[source], b + column * dense + begin, count, c + row * dense + begin);
    }
  }
  for (int64_t n = 0; n < t->segment_elements; ++n) APL_SPARSE_NAME(add_row)
  (values[t->segment_source[n]], b + t->segment_column[n] * dense + begin, count,
   c + t->segment_row[n] * dense + begin);
}

void APL_SPARSE_NAME(apl_sparse_spmm)(const struct apl_sparse_tiles* tiles, const real* values, const real* b,
                                      int64_t dense, int64_t part, real* c) {
  for (int64_t k = 0; k < tiles->rows * dense; ++k) c[k] = 0;
  const int64_t step = part > 0 ? part : dense;
  for (int64_t begin = 0; begin < dense; begin += step)
    APL_SPARSE_NAME(multiply_part)(tiles, values, b, dense, begin, dense - begin < step ? dense - begin : step, c);
}

static real APL_SPARSE_NAME(sample)(const real* x, const real* y, int64_t dense) {
  real sum = 0;
  for (int64_t k = 0; k < dense; ++k) sum += x[k] * y[k];
  return sum;
}

void APL_SPARSE_NAME(apl_sparse_sddmm)(const struct apl_sparse_tiles* t, const real* values, const real* x,
                                       const real* y, int64_t dense, real* result) {
  for (int64_t k = 0; k < t->blocks; ++k) {
    const struct apl_sparse_block* block = &t->block[k];
    for (int64_t n = 0; n < block->steps * APL_SPARSE_STEP * block->height; ++n) {
      const int32_t source = t->block_source[block->first_element + n];
      if (source < 0) continue;
      const int64_t step = n / (APL_SPARSE_STEP * block->height), in_step = n % (APL_SPARSE_STEP * block->height);
      const int64_t position = block->position + in_step / APL_SPARSE_STEP;
      const int64_t row = t->row_order ? t->row_order[position] : position;
      const int64_t column = t->block_column[(block->first_step + step) * APL_SPARSE_STEP + in_step % APL_SPARSE_STEP];
      result[source] = values[source] * APL_SPARSE_NAME(sample)(x + row * dense, y + column * dense, dense);
    }
  }
  for (int64_t k = 0; k < t->ell_tiles; ++k) {
    const struct apl_sparse_ell* tile = &t->ell_tile[k];
    for (int64_t n = 0; n < (int64_t)tile->ell_rows * tile->width; ++n) {
      const int32_t source = t->ell_source[tile->first_element + n];
      if (source < 0) continue;
      const int64_t row = t->ell_row[tile->first_ell_row + n / tile->width];
      const int64_t column = t->ell_column[tile->first_element + n];
      result[source] = values[source] * APL_SPARSE_NAME(sample)(x + row * dense, y + column * dense, dense);
    }
  }
  for (int64_t n = 0; n < t->segment_elements; ++n) {
    const int32_t source = t->segment_source[n];
    result[source] = values[source] *
                     APL_SPARSE_NAME(sample)(x + t->segment_row[n] * dense, y + t->segment_column[n] * dense, dense);
  }
}
