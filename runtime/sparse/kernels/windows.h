// SpMM of floats of 16 bits by windows of 8, 16 or 32 rows on the tensor cores, sums in f32.
//
// A window's columns come in steps of 16. Those that two or more of its parts of 8 rows meet are shared steps, with
// values for all of the window; the others are steps of one part. One warp has all of a window's sums for 8 `elements`
// columns of C, so levels need no atomic additions. In the product the window's rows are the dim of 8; the gathered
// rows of B are the dim of 16, straight from memory: lane 4 g + t loads, of the step's columns 4t .. 4t + 3, the
// elements g * `elements` .., and as both operands may name k and the columns of C as they like, a pair of elements is
// the rows g and g + 8 of one product.
template <class T>
struct apl_sparse_windows {
  apl_in<int32_t> window;  // number, first step, shared steps, first unit of 8 rows' values; of each window
  apl_in<int32_t> part;    // first step, steps; of each part of each window, by number
  apl_in<int32_t> row;     // of each row in each window, by number; -1: none
  apl_in<int32_t> column;  // [step][16]; of a window its shared steps, then its parts'
  apl_in<T> value;         // [unit][8 rows][16 columns]; a shared step has one unit a part
  int32_t windows;
};

// Adds the steps `from`, `from` + `stride` .. of `steps` to the sums of `parts` parts, `flight` steps at a time.
template <int parts, int elements, int flight, int unroll, class T>
APL_DEVICE void apl_sparse_steps(float (*sums)[(elements + 1) / 2][4], const apl_in<int32_t>& columns, int32_t first,
                                 const apl_in<T>& values, int32_t unit, int from, int stride, int steps,
                                 const apl_in<T>& b, int32_t b_row) {
  constexpr int words = (elements + 1) / 2;
  // Numbers of steps and values within a window are short.
  const apl_in<int32_t> own_columns{columns.data + int64_t(first) * 16 + apl_lane() % 4 * 4};
  const apl_in<T> own_values{values.data + int64_t(unit) * 128 + apl_lane() * 4};
  int32_t column[flight][4];
  APL_UNROLL
  for (int u = 0; u < flight; ++u) {
    const int step = from + u < steps ? from + u : steps - 1;
    apl_load<4>(own_columns, step * 16, column[u]);
  }
  APL_UNROLL_BY(unroll)
  for (int s = from; s < steps; s += stride) {
    uint32_t x[flight][4][words], value[flight][parts][2];
    APL_UNROLL
    for (int u = 0; u < flight; ++u) {
      APL_UNROLL
      for (int k = 0; k < 4; ++k) {
        if constexpr (elements > 1)
          apl_load_words<words>(b, int64_t(column[u][k]) * b_row, x[u][k]);
        else
          x[u][k][0] = b(int64_t(column[u][k]) * b_row).bits;
      }
    }
    APL_UNROLL
    for (int u = 0; u < flight; ++u) {
      // A step too many multiplies by 0.
      const bool is_step = u == 0 || s + u < steps;
      APL_UNROLL
      for (int h = 0; h < parts; ++h) {
        value[u][h][0] = value[u][h][1] = 0;
        if (is_step) apl_load_words<2>(own_values, ((s + u) * parts + h) * 128, value[u][h]);
      }
    }
    APL_UNROLL
    for (int u = 0; u < flight; ++u) {
      const int step = s + stride + u < steps ? s + stride + u : steps - 1;
      apl_load<4>(own_columns, step * 16, column[u]);
    }
    APL_UNROLL
    for (int u = 0; u < flight; ++u) {
      APL_UNROLL
      for (int m = 0; m < words; ++m) {
        const uint32_t side[4] = {apl_low_halves(x[u][0][m], x[u][1][m]), apl_high_halves(x[u][0][m], x[u][1][m]),
                                  apl_low_halves(x[u][2][m], x[u][3][m]), apl_high_halves(x[u][2][m], x[u][3][m])};
        APL_UNROLL
        for (int h = 0; h < parts; ++h) apl_mma<T>(sums[h][m], side, value[u][h]);
      }
    }
  }
}

// `split` warps share a window's steps; a block's warps have `slices` slices of C's columns beside each other, so that
// they read the same values.
template <int parts, int elements, int flight, int split, int slices, int warps, class T, class Result, class Epilogue>
APL_DEVICE void apl_sparse_spmm_windows(unsigned block, unsigned slice_group, const apl_sparse_windows<T>& a,
                                        const apl_in<T>& b, int32_t b_row, const apl_out<Result>& c, int32_t c_row,
                                        int32_t width, const Epilogue& epilogue) {
  constexpr int words = (elements + 1) / 2, threads = warps * 32, unroll = parts == 4 ? 1 : 2;
  const int warp = apl_warp(), lane = apl_lane(), g = lane / 4, t = lane % 4;
  const int share = warp % split, slice = int(slice_group) * slices + warp / split % slices;
  const int index = int(block) * (warps / split / slices) + warp / split / slices;
  // No lane of the warp has anything to do; where warps share windows, they meet at a barrier below.
  const bool is_there = index < a.windows && slice * 8 * elements < width;
  if (split == 1 && !is_there) return;
  float sums[parts][words][4];
  APL_UNROLL
  for (int h = 0; h < parts; ++h) {
    APL_UNROLL
    for (int m = 0; m < words; ++m) {
      APL_UNROLL
      for (int e = 0; e < 4; ++e) sums[h][m][e] = 0.0f;
    }
  }
  const int32_t mine = (slice * 8 + g) * elements;
  const bool is_inside = mine < width;  // other lanes gather what is there, and drop it
  const int32_t j = is_inside ? mine : 0;
  int32_t window[4] = {-1, 0, 0, 0};
  if (is_there) {
    apl_load<4>(a.window, int64_t(index) * 4, window);
    const apl_in<T> columns_of_b{b.data + j};
    if (window[2] != 0)
      apl_sparse_steps<parts, elements, flight, unroll>(sums, a.column, window[1], a.value, window[3], share * flight,
                                                        split * flight, window[2], columns_of_b, b_row);
    APL_UNROLL
    for (int h = 0; h < parts; ++h) {
      int32_t part[2];
      apl_load<2>(a.part, (int64_t(window[0]) * parts + h) * 2, part);
      const int32_t unit = window[3] + window[2] * (parts - 1) + (part[0] - window[1]);
      if (part[1] != 0)
        apl_sparse_steps<1, elements, flight, unroll>(sums + h, a.column, part[0], a.value, unit, share * flight,
                                                      split * flight, part[1], columns_of_b, b_row);
    }
  }
  if constexpr (split > 1) {
    const apl_shared<float> shares = apl_shared_at<float>(0, threads * parts * words * 4);
    if (share != 0) {
      APL_UNROLL
      for (int n = 0; n < parts * words * 4; ++n)
        shares(n * threads + apl_thread()) = sums[n / (words * 4)][n / 4 % words][n % 4];
    }
    apl_barrier();
    if (share != 0 || !is_there) return;
    APL_UNROLL
    for (int n = 0; n < parts * words * 4; ++n) {
      APL_UNROLL
      for (int other = 1; other < split; ++other)
        sums[n / (words * 4)][n / 4 % words][n % 4] += shares(n * threads + apl_thread() + other * 32);
    }
  }
  if (!is_inside) return;
  APL_UNROLL
  for (int h = 0; h < parts; ++h) {
    int32_t row[2];
    apl_load<2>(a.row, (int64_t(window[0]) * parts + h) * 8 + t * 2, row);
    APL_UNROLL
    for (int r = 0; r < 2; ++r) {
      if (row[r] < 0) continue;
      float results[2 * words];
      APL_UNROLL
      for (int e = 0; e < elements; ++e) results[e] = epilogue(sums[h][e / 2][r + e % 2 * 2], row[r], j + e);
      apl_sparse_write<elements>(c, int64_t(row[r]) * c_row + j, results);
    }
  }
}
