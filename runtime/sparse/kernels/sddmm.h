// SDDMM: result[n] = after(values[n] * sum over k of X[row of n][k] Y[column of n][k]), in the order of the non-zeros.

// By coordinates: a group of lanes has four non-zeros, loads of both rows next to each other, and adds by shuffles.
// `are_aligned`: four results may be written at once.
template <int lanes, int elements, int warps, bool is_scaled, class T, class Result, class Epilogue>
APL_DEVICE void apl_sparse_sddmm_coordinates(unsigned block, const apl_in<int32_t>& row, const apl_in<int32_t>& column,
                                             const apl_in<T>& values, int32_t nonzeros, const apl_in<T>& x,
                                             int32_t x_row, const apl_in<T>& y, int32_t y_row, int32_t depth,
                                             const apl_out<Result>& result, bool are_aligned,
                                             const Epilogue& epilogue) {
  typedef typename apl_sparse_sum<T>::type Sum;
  const int q = apl_lane() % lanes;
  const int64_t first = (int64_t(block) * (warps * APL_WARP / lanes) + apl_thread() / lanes) * 4;
  const bool is_there = first < nonzeros;
  int32_t i[4], j[4];  // the lists are padded to a multiple of four
  apl_load<4>(row, is_there ? first : 0, i);
  apl_load<4>(column, is_there ? first : 0, j);
  Sum sums[4];
  APL_UNROLL
  for (int n = 0; n < 4; ++n) sums[n] = Sum(0);
  for (int32_t k = q * elements; k < depth; k += lanes * elements) {
    T from_x[4][elements], from_y[4][elements];
    APL_UNROLL
    for (int n = 0; n < 4; ++n) {
      apl_load<elements>(y, int64_t(j[n]) * y_row + k, from_y[n]);
      apl_load<elements>(x, int64_t(i[n]) * x_row + k, from_x[n]);
    }
    APL_UNROLL
    for (int n = 0; n < 4; ++n) {
      APL_UNROLL
      for (int e = 0; e < elements; ++e) apl_sparse_add<1>(&sums[n], from_x[n][e], &from_y[n][e]);
    }
  }
  APL_UNROLL
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    APL_UNROLL
    for (int n = 0; n < 4; ++n) {
      const Sum other = apl_shuffle_xor(sums[n], distance);
      sums[n] = apl_sparse_plus(sums[n], other);
    }
  }
  if (q != 0 || !is_there) return;
  const int count = nonzeros - first < 4 ? int(nonzeros - first) : 4;
  for (int n = 0; n < 4; ++n) {
    if (n >= count) break;
    if constexpr (is_scaled) sums[n] = apl_sparse_times(sums[n], Sum(T(values(first + n))));
    sums[n] = epilogue(sums[n], i[n], j[n], first + n);
  }
  if (count == 4 && are_aligned) {
    apl_sparse_write<4>(result, first, sums);
  } else {
    for (int n = 0; n < count; ++n) result(first + n) = Result(sums[n]);
  }
}

// On the tensor cores, floats of 16 bits with sums in f32: windows of 8 rows of X, whose columns come in steps of 16.
// For each step and row a mask says which of the 16 results are wanted; the position of a result is the count of those
// before it, so no number is stored for each of them. Terms come in pieces of `quads` times 32; if one has all, X's
// rows stay in registers, else they are read again for each step, from the first cache.
struct apl_sparse_sddmm_packed {
  apl_in<int32_t> task;    // window, first step, steps, nothing
  apl_in<int32_t> start;   // of each row of each task: the position of its first result
  apl_in<int32_t> row;     // of each row of each window; -1: none
  apl_in<int32_t> column;  // [step][16]
  apl_in<int32_t> mask;    // [step][8] of 16 bits each
  int32_t tasks;
};

// Elements k .. k + 7 of a row that begins at `from`, in accesses of `wide` elements; 0 behind its end.
template <int wide, bool is_whole, class T>
APL_DEVICE void apl_sparse_load_eight(const apl_in<T>& array, int64_t from, int32_t k, int32_t depth, uint32_t* words) {
  T elements[8];
  APL_UNROLL
  for (int e = 0; e < 8; e += wide) {
    if (is_whole || k + e < depth) {
      apl_load<wide>(array, from + k + e, elements + e);
    } else {
      for (int n = 0; n < wide; ++n) elements[e + n].bits = 0;
    }
  }
  apl_copy_bytes(words, elements, 16);
}

template <int quads, bool is_one_piece, int wide, bool is_whole, int warps, bool is_scaled, class T, class Result,
          class Epilogue>
APL_DEVICE void apl_sparse_sddmm_windows(unsigned block, const apl_sparse_sddmm_packed& a, const apl_in<T>& values,
                                         const apl_in<T>& x, int32_t x_row, const apl_in<T>& y, int32_t y_row,
                                         int32_t depth, const apl_out<Result>& result, const Epilogue& epilogue) {
  const int lane = apl_lane(), g = lane / 4, t = lane % 4;
  const int index = int(block) * warps + apl_warp();
  if (index >= a.tasks) return;
  int32_t task[4], rows[2], start[2];
  apl_load<4>(a.task, int64_t(index) * 4, task);
  // Columns and masks of the next step are on their way while this one's rows of Y are.
  int32_t columns[2];
  uint32_t masks;
  const auto look_at = [&](int s) {
    const int64_t step = int64_t(task[1]) + s;
    columns[0] = a.column(step * 16 + g);
    columns[1] = a.column(step * 16 + g + 8);
    masks = uint32_t(a.mask(step * 4 + t));
  };
  look_at(0);
  apl_load<2>(a.row, int64_t(task[0]) * 8 + t * 2, rows);
  apl_load<2>(a.start, int64_t(index) * 8 + t * 2, start);
  const int32_t own_row = a.row(int64_t(task[0]) * 8 + g);
  uint32_t of_x[quads][4];
  const auto load_x = [&](int32_t begin) {
    APL_UNROLL
    for (int q = 0; q < quads; ++q) {
      of_x[q][0] = of_x[q][1] = of_x[q][2] = of_x[q][3] = 0;
      if (own_row >= 0)
        apl_sparse_load_eight<wide, is_whole>(x, int64_t(own_row) * x_row, begin + q * 32 + t * 8, depth, of_x[q]);
    }
  };
  if constexpr (is_one_piece) load_x(0);
  for (int s = 0; s < task[2]; ++s) {
    const int32_t own_columns[2] = {columns[0], columns[1]};
    const uint32_t own_masks = masks;
    look_at(s + 1 < task[2] ? s + 1 : s);
    // Two chains of products, which do not wait for each other.
    float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f}, others[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int32_t begin = 0; begin < (is_one_piece ? 1 : depth); begin += quads * 32) {
      uint32_t of_y[2][quads][4];
      APL_UNROLL
      for (int q = 0; q < quads; ++q) {
        APL_UNROLL
        for (int r = 0; r < 2; ++r)
          apl_sparse_load_eight<wide, is_whole>(y, int64_t(own_columns[r]) * y_row, begin + q * 32 + t * 8, depth,
                                                of_y[r][q]);
      }
      if constexpr (!is_one_piece) load_x(begin);
      APL_UNROLL
      for (int q = 0; q < quads; ++q) {
        const uint32_t first[4] = {of_y[0][q][0], of_y[1][q][0], of_y[0][q][1], of_y[1][q][1]};
        const uint32_t second[4] = {of_y[0][q][2], of_y[1][q][2], of_y[0][q][3], of_y[1][q][3]};
        apl_mma<T>(sums, first, of_x[q]);
        apl_mma<T>(others, second, of_x[q] + 2);
      }
    }
    APL_UNROLL
    for (int e = 0; e < 4; ++e) sums[e] += others[e];
    APL_UNROLL
    for (int r = 0; r < 2; ++r) {
      const uint32_t mask = r == 0 ? own_masks & 0xffff : own_masks >> 16;
      APL_UNROLL
      for (int c = 0; c < 2; ++c) {
        const int slot = g + 8 * c;
        if ((mask >> slot & 1) == 0) continue;
        const int64_t place = start[r] + apl_ones(mask & ((1u << slot) - 1));
        float sum = sums[2 * c + r];
        if constexpr (is_scaled) sum *= float(values(place));
        result(place) = Result(epilogue(sum, rows[r], own_columns[c], place));
      }
      start[r] += apl_ones(mask);
    }
  }
}

#if APL_SPARSE_QUADS
APL_KERNEL(APL_SPARSE_WARPS* APL_WARP)
void APL_SPARSE_NAME(apl_in<int32_t> task, apl_in<int32_t> start, apl_in<int32_t> row, apl_in<int32_t> column,
                     apl_in<int32_t> mask, int32_t tasks, apl_in<APL_SPARSE_TYPE> values, apl_in<APL_SPARSE_TYPE> x,
                     int32_t x_row, apl_in<APL_SPARSE_TYPE> y, int32_t y_row, int32_t depth,
                     apl_out<APL_SPARSE_RESULT> result, APL_SPARSE_EPILOGUE epilogue) {
  apl_sparse_sddmm_windows<APL_SPARSE_QUADS, APL_SPARSE_ONE_PIECE, APL_SPARSE_ELEMENTS, APL_SPARSE_WHOLE,
                           APL_SPARSE_WARPS, APL_SPARSE_SCALED>(
      unsigned(apl_block()), apl_sparse_sddmm_packed{task, start, row, column, mask, tasks}, values, x, x_row, y, y_row,
      depth, result, epilogue);
}
#else
APL_KERNEL(APL_SPARSE_WARPS* APL_WARP)
void APL_SPARSE_NAME(apl_in<int32_t> row, apl_in<int32_t> column, apl_in<APL_SPARSE_TYPE> values, int32_t nonzeros,
                     apl_in<APL_SPARSE_TYPE> x, int32_t x_row, apl_in<APL_SPARSE_TYPE> y, int32_t y_row, int32_t depth,
                     apl_out<APL_SPARSE_RESULT> result, int32_t are_aligned, APL_SPARSE_EPILOGUE epilogue) {
  apl_sparse_sddmm_coordinates<APL_SPARSE_LANES, APL_SPARSE_ELEMENTS, APL_SPARSE_WARPS, APL_SPARSE_SCALED>(
      unsigned(apl_block()), row, column, values, nonzeros, x, x_row, y, y_row, depth, result, are_aligned != 0,
      epilogue);
}
#endif
APL_SPARSE_EXPORT(APL_SPARSE_NAME)
