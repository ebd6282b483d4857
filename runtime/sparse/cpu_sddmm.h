// SDDMM: a part of cpu_kernels.h, whose macros it uses.

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

// The sums of four vectors, together: a step each halves all of them.
APL_SPARSE_INLINE void APL_SPARSE_NAME(four_lanes_sums)(const vector sums[4], real all[4]) {
#ifdef APL_SPARSE_FOUR_LANES
  typedef real APL_SPARSE_NAME(four) __attribute__((vector_size(16)));
  APL_SPARSE_NAME(four) part[4];
  EACH(j, 4) {
    APL_SPARSE_NAME(four) parts[APL_SPARSE_VECTOR / 16];
    memcpy(parts, &sums[j], sizeof parts);
    for (int half = APL_SPARSE_VECTOR / 32; half > 0; half /= 2)
      for (int k = 0; k < half; ++k) parts[k] += parts[k + half];
    part[j] = parts[0];
  }
  const APL_SPARSE_NAME(four) low =
      __builtin_shufflevector(part[0], part[1], 0, 4, 1, 5) + __builtin_shufflevector(part[0], part[1], 2, 6, 3, 7);
  const APL_SPARSE_NAME(four) high =
      __builtin_shufflevector(part[2], part[3], 0, 4, 1, 5) + __builtin_shufflevector(part[2], part[3], 2, 6, 3, 7);
  const APL_SPARSE_NAME(four) both =
      __builtin_shufflevector(low, high, 0, 1, 4, 5) + __builtin_shufflevector(low, high, 2, 3, 6, 7);
  memcpy(all, &both, sizeof both);
#else
  EACH(j, 4) all[j] = APL_SPARSE_NAME(lanes_sum)(sums[j]);
#endif
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
  if (k + LANES <= dense) {
    EACH(i, rows)
    EACH(j, columns) sum[i][j][0] += LOAD(x[i] + k) * LOAD(y[j] + k);
    k += LANES;
  }
  EACH(i, rows) {
    vector both[4];
    EACH(j, columns) both[j] = sum[i][j][0] + sum[i][j][1];
    if (columns == 4) {
      APL_SPARSE_NAME(four_lanes_sums)(both, sample[i]);
    } else {
      EACH(j, columns) sample[i][j] = APL_SPARSE_NAME(lanes_sum)(both[j]);
    }
    for (int64_t remainder = k; remainder < dense; ++remainder)
      EACH(j, columns) sample[i][j] += NUMBER(x[i][remainder]) * NUMBER(y[j][remainder]);
  }
}

// So much of a row of y is fetched before it is needed: its first line where y lies in a cache, as the rest follows by
// itself and fetching it costs as much as loading it.
APL_SPARSE_INLINE int64_t APL_SPARSE_NAME(fetched)(const struct apl_sparse_cpu_call* call) {
  const int64_t row = call->dense * (int64_t)sizeof(element);
  return call->packed->tiles->columns * row > 4 << 20 ? row : 1;
}

// Results of up to four non-zeros: at `source`, where -1 wants none, or contiguous from `first` on.
APL_SPARSE_INLINE void APL_SPARSE_NAME(put_samples)(const struct apl_sparse_cpu_call* call, const int32_t* source,
                                                    int64_t first, const real* value, const real* sample, int count) {
  output* result = (output*)call->result;
  const int is_together = !source || (count == 4 && source[0] >= 0 && source[1] == source[0] + 1 &&
                                      source[2] == source[0] + 2 && source[3] == source[0] + 3);
  if (source && is_together) first = source[0];
  if (count == 4 && is_together) {
    EACH(j, 4) result[first + j] = (output)(real)(value[j] * sample[j]);
    return;
  }
  for (int j = 0; j < count; ++j) {
    const int64_t to = source ? source[j] : first + j;
    if (to >= 0) result[to] = (output)(real)(value[j] * sample[j]);
  }
}

// Samples of one row of x, kept in `vectors` registers that have all of it, with four of y.
APL_SPARSE_INLINE void APL_SPARSE_NAME(kept_sddmm)(const vector* x, const element* const y[4], const int vectors,
                                                   real sample[4]) {
  vector sum[4];
  EACH(j, 4) sum[j] = x[0] * LOAD(y[j]);
  for (int v = 1; v < vectors; ++v) EACH(j, 4) sum[j] += x[v] * LOAD(y[j] + v * LANES);
  APL_SPARSE_NAME(four_lanes_sums)(sum, sample);
}

// Samples of one row with `count` columns, four at a time; of fewer some are made twice. Rows of y that are needed
// next, `ahead` of them, are fetched before. `vectors`: of the dense loop, if they are few; 0: any number of terms.
APL_SPARSE_INLINE void APL_SPARSE_NAME(sddmm_columns)(const struct apl_sparse_cpu_call* call, int64_t row,
                                                      const int32_t* column, const int32_t* source, int64_t first,
                                                      const real* value, int64_t count, int64_t ahead,
                                                      const int vectors) {
  const element *x = (const element*)call->x + row * call->x_stride, *y = (const element*)call->y;
  const int64_t fetched = APL_SPARSE_NAME(fetched)(call);
  vector kept[4];
  EACH(v, 4) if (v < vectors) kept[v] = LOAD(x + v * LANES);
  for (int64_t k = 0; k < count; k += 4) {
    const element* columns[4];
    real sample[1][4];
    const int here = count - k < 4 ? (int)(count - k) : 4;
    EACH(j, 4) columns[j] = y + column[k + (j < here ? j : 0)] * call->y_stride;
    for (int j = 0; j < here && k + j < ahead; ++j) APL_SPARSE_FETCH(y + column[k + j + 4] * call->y_stride, fetched);
    if (vectors > 0) {
      APL_SPARSE_NAME(kept_sddmm)(kept, columns, vectors, sample[0]);
    } else if (here >= 3) {
      APL_SPARSE_NAME(samples)(&x, columns, call->dense, 1, 4, sample);
    } else if (here == 2) {
      APL_SPARSE_NAME(samples)(&x, columns, call->dense, 1, 2, sample);
    } else {
      APL_SPARSE_NAME(samples)(&x, columns, call->dense, 1, 1, sample);
    }
    APL_SPARSE_NAME(put_samples)(call, source ? source + k : NULL, first + k, value + k, sample[0], here);
  }
}

APL_SPARSE_APART void APL_SPARSE_NAME(sddmm_row)(const struct apl_sparse_cpu_call* call, int64_t row,
                                                 const int32_t* column, const int32_t* source, int64_t first,
                                                 const real* value, int64_t count, int64_t ahead) {
#define COLUMNS(vectors) APL_SPARSE_NAME(sddmm_columns)(call, row, column, source, first, value, count, ahead, vectors)
  switch (call->dense % LANES == 0 ? call->dense / LANES : 0) {
    case 1: COLUMNS(1); break;
    case 2: COLUMNS(2); break;
    case 4: COLUMNS(4); break;
    default: COLUMNS(0);
  }
#undef COLUMNS
}

// Samples whose rows are given, too, four at a time.
APL_SPARSE_APART void APL_SPARSE_NAME(sddmm_pairs)(const struct apl_sparse_cpu_call* call, const int32_t* row,
                                                   const int32_t* column, const int32_t* source, int64_t first,
                                                   const real* value, int64_t count, int64_t ahead) {
  const int64_t dense = call->dense, fetched = APL_SPARSE_NAME(fetched)(call);
  for (int64_t n = 0; n < count; n += 4) {
    const element *x[4], *y[4];
    const int64_t left = count - n;
    EACH(j, 4) {
      const int64_t here = n + (j < left ? j : 0);
      x[j] = (const element*)call->x + row[here] * call->x_stride;
      y[j] = (const element*)call->y + column[here] * call->y_stride;
    }
    for (int64_t j = n; j < n + 4 && j < ahead; ++j)
      APL_SPARSE_FETCH((const element*)call->y + column[j + 8] * call->y_stride, fetched);
    vector sum[4], other[4];
    EACH(j, 4) sum[j] = other[j] = (vector){0};
    int64_t k = 0;
    for (; k + 2 * LANES <= dense; k += 2 * LANES) EACH(j, 4) {
        sum[j] += LOAD(x[j] + k) * LOAD(y[j] + k);
        other[j] += LOAD(x[j] + k + LANES) * LOAD(y[j] + k + LANES);
      }
    if (k + LANES <= dense) {
      EACH(j, 4) sum[j] += LOAD(x[j] + k) * LOAD(y[j] + k);
      k += LANES;
    }
    real sample[4];
    EACH(j, 4) sum[j] += other[j];
    APL_SPARSE_NAME(four_lanes_sums)(sum, sample);
    for (; k < dense; ++k) EACH(j, 4) sample[j] += NUMBER(x[j][k]) * NUMBER(y[j][k]);
    APL_SPARSE_NAME(put_samples)
    (call, source ? source + n : NULL, first + n, value + n, sample, left < 4 ? (int)left : 4);
  }
}

// Short rows of an ELL tile: what is wanted of them, whatever their rows are.
static void APL_SPARSE_NAME(sddmm_ell)(const struct apl_sparse_cpu_call* call, const struct apl_sparse_ell* tile,
                                       const real* value, int far) {
  enum { kTogether = 128 };
  const struct apl_sparse_tiles* t = call->packed->tiles;
  int32_t row[kTogether], column[kTogether], source[kTogether];
  real values[kTogether];
  int64_t count = 0;
  for (int64_t list = 0, at = tile->first_element; list < tile->ell_rows; ++list) {
    if (count + tile->width > kTogether) {
      APL_SPARSE_NAME(sddmm_pairs)(call, row, column, source, 0, values, count, far ? count - 8 : 0);
      count = 0;
    }
    // No branch on what is padding: nobody foresees it.
    for (int32_t k = 0; k < tile->width; ++k, ++at) {
      row[count] = t->ell_row[tile->first_ell_row + list];
      column[count] = t->ell_column[at];
      source[count] = t->ell_source[at];
      values[count] = value[at - tile->first_element];
      count += source[count] >= 0;
    }
  }
  APL_SPARSE_NAME(sddmm_pairs)(call, row, column, source, 0, values, count, far ? count - 8 : 0);
}

static void APL_SPARSE_NAME(sddmm_block)(const struct apl_sparse_cpu_call* call, int64_t index) {
  const struct apl_sparse_tiles* t = call->packed->tiles;
  const struct apl_sparse_block* block = &t->block[index];
  output* result = (output*)call->result;
  for (int64_t step = 0; step < block->steps; ++step)
    for (int64_t i = 0; i < block->height && block->position + i < t->rows; i += 2) {
      const int64_t both = block->position + i + 1 < t->rows;
      const int64_t first = block->first_element + (step * block->height + i) * APL_SPARSE_STEP;
      const int32_t *column = t->block_column + (block->first_step + step) * APL_SPARSE_STEP,
                    *source = t->block_source + first;
      const real* value = (const real*)call->values + first;
      const element* x[2];
      for (int64_t row = 0; row < 2; ++row)
        x[row] = (const element*)call->x + cpu_row_at(t, block->position + i + (row && both)) * call->x_stride;
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
            if (source[at] >= 0) result[source[at]] = (output)(real)(value[at] * sample[row][k]);
          }
      }
    }
}
