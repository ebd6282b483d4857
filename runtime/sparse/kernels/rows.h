// SpMM by rows: B's rows are gathered once for each non-zero.
//
// A row is read by a group of lanes, each of which owns some columns of C, four non-zeros at a time: one load of four
// column numbers, one of four values, four gathers in flight. Rows come in three classes, longest first: long ones are
// shared by a block's groups, medium ones by a warp's, short ones have one group; so no group has many rounds. A row
// that would be long for a block is cut into pieces, whose sums another kernel adds up (join.h). Lists of non-zeros are
// padded to fours by a column that is there and the value 0: a guard would cost the loads their overlap.
template <class T>
struct apl_sparse_rows {
  apl_in<int32_t> record;  // row, start, padded length, 0 or 1 and the piece's number; of each row or piece of one
  apl_in<int32_t> column;
  apl_in<T> value;
  int32_t longs, mediums, rows;

  template <int warps>
  APL_DEVICE unsigned medium_blocks() const {
    return unsigned(mediums + warps - 1) / warps;
  }
};

// `has_pieces`: sums of pieces go to `piece`, [piece][width].
template <int lanes, int elements, int warps, bool is_ahead, bool has_pieces, class T, class Result, class Epilogue>
APL_DEVICE void apl_sparse_spmm_rows(unsigned block, unsigned slice, const apl_sparse_rows<T>& a, const apl_in<T>& b,
                                     int32_t b_row, const apl_out<Result>& c, int32_t c_row, int32_t width,
                                     const apl_out<typename apl_sparse_sum<T>::type>& piece, const Epilogue& epilogue) {
  typedef typename apl_sparse_sum<T>::type Sum;
  constexpr int groups = APL_WARP / lanes;
  const int warp = apl_warp(), group = apl_lane() / lanes, q = apl_lane() % lanes;
  const unsigned medium_blocks = a.template medium_blocks<warps>();
  const bool is_long = block < unsigned(a.longs), is_medium = !is_long && block < a.longs + medium_blocks;
  int index, part, parts;  // of the row: which of its parts is ours
  if (is_long) {
    index = int(block);
    part = warp * groups + group;
    parts = warps * groups;
  } else if (is_medium) {
    index = a.longs + int(block - a.longs) * warps + warp;
    part = group;
    parts = groups;
    if (index >= a.longs + a.mediums) return;
  } else {
    index = a.longs + a.mediums + (int(block - a.longs - medium_blocks) * warps + warp) * groups + group;
    part = 0;
    parts = 1;
  }
  int32_t record[4] = {-1, 0, 0, 0};
  if (index < a.rows) apl_load<4>(a.record, int64_t(index) * 4, record);
  const int32_t mine = int32_t(slice * lanes + q) * elements;
  const bool is_inside = mine < width;  // other lanes gather what is there, and drop it
  const int32_t j = is_inside ? mine : 0;
  const apl_in<T> columns_of_b{b.data + j};
  Sum sums[elements];
  APL_UNROLL
  for (int e = 0; e < elements; ++e) sums[e] = Sum(0);
  int32_t column[4];
  T value[4];
  // Indices of the next round are on their way while this one's gathers are: of the last four again, in the last round.
  const int last = record[2] - 4;
  int i = part * 4;
  if (is_ahead && i <= last) {
    apl_load<4>(a.column, int64_t(record[1]) + i, column);
    apl_load<4>(a.value, int64_t(record[1]) + i, value);
  }
  for (; i <= last; i += parts * 4) {
    T x[4][elements];
    if constexpr (!is_ahead) {
      apl_load<4>(a.column, int64_t(record[1]) + i, column);
      apl_load<4>(a.value, int64_t(record[1]) + i, value);
    }
    APL_UNROLL
    for (int k = 0; k < 4; ++k) apl_load<elements>(columns_of_b, int64_t(column[k]) * b_row, x[k]);
    T factor[4];
    APL_UNROLL
    for (int k = 0; k < 4; ++k) factor[k] = value[k];
    if constexpr (is_ahead) {
      const int64_t next = record[1] + int64_t(i + parts * 4 <= last ? i + parts * 4 : last);
      apl_load<4>(a.column, next, column);
      apl_load<4>(a.value, next, value);
    }
    APL_UNROLL
    for (int k = 0; k < 4; ++k) apl_sparse_add<elements>(sums, factor[k], x[k]);
  }
  if (is_long || is_medium) {
    APL_UNROLL
    for (int distance = lanes; distance < APL_WARP; distance *= 2) {
      APL_UNROLL
      for (int e = 0; e < elements; ++e) {
        const Sum other = apl_shuffle_xor(sums[e], distance);
        sums[e] = apl_sparse_plus(sums[e], other);
      }
    }
    if (is_long) {
      constexpr int row = lanes * elements;
      const apl_shared<Sum> parts_of_sum = apl_shared_at<Sum>(0, warps * row);
      if (group == 0) {
        APL_UNROLL
        for (int e = 0; e < elements; ++e) parts_of_sum(warp * row + q * elements + e) = sums[e];
      }
      apl_barrier();
      if (warp != 0 || group != 0) return;
      for (int other = 1; other < warps; ++other) {
        APL_UNROLL
        for (int e = 0; e < elements; ++e)
          sums[e] = apl_sparse_plus(sums[e], Sum(parts_of_sum(other * row + q * elements + e)));
      }
    }
    if (group != 0) return;
  }
  if (record[0] < 0 || !is_inside) return;
  if constexpr (has_pieces) {
    if (record[3] > 0) {
      apl_sparse_write<elements>(piece, int64_t(record[3] - 1) * width + j, sums);
      return;
    }
  }
  APL_UNROLL
  for (int e = 0; e < elements; ++e) sums[e] = epilogue(sums[e], record[0], j + e);
  apl_sparse_write<elements>(c, int64_t(record[0]) * c_row + j, sums);
}
