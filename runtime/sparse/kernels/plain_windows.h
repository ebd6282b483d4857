// SpMM by windows of 8 or 16 rows for every type, without matrix units: what a window gathers of B serves all of its
// rows. The arrays are those of windows.h.
//
// A warp has all of a window's sums for APL_WARP `elements` columns of C, so levels need no atomic additions. Four
// columns of A at a time: four gathers are in flight, and each row's four values come by one load, the same for all
// lanes.
template <int parts, int elements, class T, class Sum>
APL_DEVICE void apl_sparse_plain_steps(Sum (*sums)[8][elements], const apl_in<int32_t>& columns, int32_t first,
                                       const apl_in<T>& values, int32_t unit, int from, int stride, int steps,
                                       const apl_in<T>& b, int32_t b_row) {
  for (int s = from; s < steps; s += stride) {
    APL_UNROLL_BY(2)
    for (int quad = 0; quad < 16; quad += 4) {
      int32_t column[4];
      T x[4][elements];
      apl_load<4>(columns, (int64_t(first) + s) * 16 + quad, column);
      APL_UNROLL
      for (int k = 0; k < 4; ++k) apl_load<elements>(b, int64_t(column[k]) * b_row, x[k]);
      APL_UNROLL
      for (int h = 0; h < parts; ++h) {
        APL_UNROLL
        for (int r = 0; r < 8; ++r) {
          T value[4];
          apl_load<4>(values, ((int64_t(unit) + s * parts + h) * 8 + r) * 16 + quad, value);
          APL_UNROLL
          for (int k = 0; k < 4; ++k) apl_sparse_add<elements>(sums[h][r], value[k], x[k]);
        }
      }
    }
  }
}

template <int parts, int elements, int split, int slices, int warps, class T, class Result, class Epilogue>
APL_DEVICE void apl_sparse_spmm_plain_windows(unsigned block, unsigned slice_group, const apl_sparse_windows<T>& a,
                                              const apl_in<T>& b, int32_t b_row, const apl_out<Result>& c,
                                              int32_t c_row, int32_t width, const Epilogue& epilogue) {
  typedef typename apl_sparse_sum<T>::type Sum;
  constexpr int threads = warps * APL_WARP;
  const int warp = apl_warp();
  const int share = warp % split, slice = int(slice_group) * slices + warp / split % slices;
  const int index = int(block) * (warps / split / slices) + warp / split / slices;
  const bool is_there = index < a.windows && slice * APL_WARP * elements < width;
  if (split == 1 && !is_there) return;
  Sum sums[parts][8][elements];
  APL_UNROLL
  for (int h = 0; h < parts; ++h) {
    APL_UNROLL
    for (int r = 0; r < 8; ++r) {
      APL_UNROLL
      for (int e = 0; e < elements; ++e) sums[h][r][e] = Sum(0);
    }
  }
  const int32_t mine = (slice * APL_WARP + apl_lane()) * elements;
  const bool is_inside = mine < width;  // other lanes gather what is there, and drop it
  const int32_t j = is_inside ? mine : 0;
  int32_t window[4] = {-1, 0, 0, 0};
  if (is_there) {
    apl_load<4>(a.window, int64_t(index) * 4, window);
    const apl_in<T> columns_of_b{b.data + j};
    if (window[2] != 0)
      apl_sparse_plain_steps<parts, elements>(sums, a.column, window[1], a.value, window[3], share, split, window[2],
                                              columns_of_b, b_row);
    APL_UNROLL
    for (int h = 0; h < parts; ++h) {
      int32_t part[2];
      apl_load<2>(a.part, (int64_t(window[0]) * parts + h) * 2, part);
      const int32_t unit = window[3] + window[2] * (parts - 1) + (part[0] - window[1]);
      if (part[1] != 0)
        apl_sparse_plain_steps<1, elements>(sums + h, a.column, part[0], a.value, unit, share, split, part[1],
                                            columns_of_b, b_row);
    }
  }
  if constexpr (split > 1) {
    const apl_shared<Sum> shares = apl_shared_at<Sum>(0, threads * parts * 8 * elements);
    if (share != 0) {
      APL_UNROLL
      for (int n = 0; n < parts * 8 * elements; ++n)
        shares(n * threads + apl_thread()) = sums[n / (8 * elements)][n / elements % 8][n % elements];
    }
    apl_barrier();
    if (share != 0 || !is_there) return;
    APL_UNROLL
    for (int n = 0; n < parts * 8 * elements; ++n) {
      Sum& sum = sums[n / (8 * elements)][n / elements % 8][n % elements];
      APL_UNROLL
      for (int other = 1; other < split; ++other)
        sum = apl_sparse_plus(sum, Sum(shares(n * threads + apl_thread() + other * APL_WARP)));
    }
  }
  if (!is_inside) return;
  APL_UNROLL
  for (int h = 0; h < parts; ++h) {
    APL_UNROLL
    for (int r = 0; r < 8; ++r) {
      const int32_t row = a.row((int64_t(window[0]) * parts + h) * 8 + r);
      if (row < 0) continue;
      APL_UNROLL
      for (int e = 0; e < elements; ++e) sums[h][r][e] = epilogue(sums[h][r][e], row, j + e);
      apl_sparse_write<elements>(c, int64_t(row) * c_row + j, sums[h][r]);
    }
  }
}
