// Sampled products: a part of cpu_kernels.h, whose macros it uses.

// Halves of halves: lanes one after the other would wait for each other.
APL_SPARSE_INLINE real APL_SPARSE_NAME(lanes_sum)(const vector sums) {
  typedef real APL_SPARSE_NAME(quarter) __attribute__((vector_size(16)));
  APL_SPARSE_NAME(quarter) parts[APL_SPARSE_VECTOR / 16];
  memcpy(parts, &sums, sizeof parts);
  for (int half = APL_SPARSE_VECTOR / 32; half > 0; half /= 2)
    for (int k = 0; k < half; ++k) parts[k] += parts[k + half];
  real all[16 / sizeof(real)];
  memcpy(all, parts, sizeof all);
  for (int half = 8 / sizeof(real); half > 0; half /= 2)
    for (int k = 0; k < half; ++k) all[k] = (real)(all[k] + all[k + half]);
  return all[0];
}

// Samples: `rows` rows of x with `columns` of y, up to four, two vectors at a time.
APL_SPARSE_INLINE void APL_SPARSE_NAME(samples)(const element* const* x, const element* const y[4], int64_t dense,
                                                const int rows, const int columns, real sample[][4]) {
  vector sum[2][4][2];
  EACH(i, rows)
  EACH(j, columns)
  EACH(v, 2) sum[i][j][v] = (vector){0};
  int64_t k = 0;
  for (; k + 2 * LANES <= dense; k += 2 * LANES) EACH(v, 2)
  EACH(i, rows) {
    const vector here = LOAD(x[i] + k + v * LANES);
    EACH(j, columns) sum[i][j][v] += here * LOAD(y[j] + k + v * LANES);
  }
  EACH(i, rows)
  EACH(j, columns) {
    const vector both = sum[i][j][0] + sum[i][j][1];
    real all = APL_SPARSE_NAME(lanes_sum)(both);
    for (int64_t rest = k; rest < dense; ++rest) all += (real)x[i][rest] * (real)y[j][rest];
    sample[i][j] = all;
  }
}

// Samples of one row with `count` columns; sources of -1 want none.
APL_SPARSE_APART void APL_SPARSE_NAME(sample_row)(const struct apl_sparse_cpu_call* call, int64_t row,
                                                  const int32_t* column, const int32_t* source, const real* value,
                                                  int64_t count) {
  const element *x = (const element*)call->x + row * call->x_stride, *y = (const element*)call->y;
  element* result = (element*)call->result;
  for (int64_t k = 0; k < count;) {
    const element* columns[4];
    real sample[1][4];
    const int here = count - k >= 4 ? 4 : count - k >= 2 ? 2 : 1;
    for (int j = 0; j < here; ++j) columns[j] = y + column[k + j] * call->y_stride;
    if (here == 4) {
      APL_SPARSE_NAME(samples)(&x, columns, call->dense, 1, 4, sample);
    } else if (here == 2) {
      APL_SPARSE_NAME(samples)(&x, columns, call->dense, 1, 2, sample);
    } else {
      APL_SPARSE_NAME(samples)(&x, columns, call->dense, 1, 1, sample);
    }
    for (int j = 0; j < here; ++j)
      if (source[k + j] >= 0) result[source[k + j]] = (element)(real)(value[k + j] * sample[0][j]);
    k += here;
  }
}

static void APL_SPARSE_NAME(sample_block)(const struct apl_sparse_cpu_call* call, int64_t index) {
  const struct apl_sparse_tiles* t = call->form->tiles;
  const struct apl_sparse_block* block = &t->block[index];
  element* result = (element*)call->result;
  for (int64_t step = 0; step < block->steps; ++step)
    for (int64_t i = 0; i < block->height && block->position + i < t->rows; i += 2) {
      const int64_t both = block->position + i + 1 < t->rows;
      const int64_t first = block->first_element + (step * block->height + i) * APL_SPARSE_STEP;
      const int32_t *column = t->block_column + (block->first_step + step) * APL_SPARSE_STEP,
                    *source = t->block_source + first;
      const real* value = (const real*)call->values + first;
      const element* x[2];
      for (int64_t row = 0; row < 2; ++row)
        x[row] = (const element*)call->x + row_at(t, block->position + i + (row && both)) * call->x_stride;
      for (int j = 0; j < APL_SPARSE_STEP; j += 4) {
        int32_t any = -1;  // some are missing in most blocks, all four of both rows in many
        for (int k = j; k < j + 4; ++k) any &= source[k] & source[k + APL_SPARSE_STEP];
        if (any == -1) continue;
        const element* y[4];
        real sample[2][4];
        for (int k = 0; k < 4; ++k) y[k] = (const element*)call->y + column[j + k] * call->y_stride;
        APL_SPARSE_NAME(samples)(x, y, call->dense, 2, 4, sample);
        for (int row = 0; row < 2; ++row)
          for (int k = 0; k < 4; ++k) {
            const int64_t at = row * APL_SPARSE_STEP + j + k;
            if (source[at] >= 0) result[source[at]] = (element)(real)(value[at] * sample[row][k]);
          }
      }
    }
}
