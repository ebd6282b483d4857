// SpMM for few columns: a block copies its slice of B to shared memory once and gathers from there.
//
// Rows are dealt out to the blocks like cards, longest first, so that blocks have alike much; a warp has one row at a
// time, whose non-zeros its groups share by fours.
template <int lanes, int elements, int warps, class T, class Result, class Epilogue>
APL_DEVICE void apl_sparse_spmm_staged(unsigned block, unsigned blocks, unsigned slice, const apl_sparse_rows<T>& a,
                                       const apl_in<T>& b, int32_t b_row, int32_t b_rows, const apl_out<Result>& c,
                                       int32_t c_row, int32_t width, const Epilogue& epilogue) {
  typedef typename apl_sparse_sum<T>::type Sum;
  constexpr int groups = APL_WARP / lanes, row = lanes * elements;
  const int group = apl_lane() / lanes, q = apl_lane() % lanes;
  const apl_shared<T> slice_of_b = apl_shared_at<T>(0, int64_t(b_rows) * row);
  for (int i = apl_thread(); i < b_rows * lanes; i += warps * APL_WARP) {
    const int32_t from = int32_t(slice * lanes + i % lanes) * elements;
    apl_cp_async<elements* int(sizeof(T))>(slice_of_b, i * elements, b,
                                           int64_t(i / lanes) * b_row + (from < width ? from : 0));
  }
  apl_cp_async_commit();
  apl_cp_async_wait<0>();
  apl_barrier();
  const int32_t j = int32_t(slice * lanes + q) * elements;
  for (int64_t index = block + int64_t(apl_warp()) * blocks; index < a.rows; index += int64_t(warps) * blocks) {
    int32_t record[4];
    apl_load<4>(a.record, index * 4, record);
    Sum sums[elements];
    APL_UNROLL
    for (int e = 0; e < elements; ++e) sums[e] = Sum(0);
    for (int i = group * 4; i < record[2]; i += groups * 4) {
      int32_t column[4];
      T value[4];
      apl_load<4>(a.column, int64_t(record[1]) + i, column);
      apl_load<4>(a.value, int64_t(record[1]) + i, value);
      APL_UNROLL
      for (int k = 0; k < 4; ++k) {
        T x[elements];
        apl_load<elements>(slice_of_b, (column[k] * lanes + q) * elements, x);
        apl_sparse_add<elements>(sums, value[k], x);
      }
    }
    APL_UNROLL
    for (int distance = lanes; distance < APL_WARP; distance *= 2) {
      APL_UNROLL
      for (int e = 0; e < elements; ++e) {
        const Sum other = apl_shuffle_xor(sums[e], distance);
        sums[e] = apl_sparse_plus(sums[e], other);
      }
    }
    if (group != 0 || j >= width) continue;
    APL_UNROLL
    for (int e = 0; e < elements; ++e) sums[e] = epilogue(sums[e], record[0], j + e);
    apl_sparse_write<elements>(c, int64_t(record[0]) * c_row + j, sums);
  }
}
