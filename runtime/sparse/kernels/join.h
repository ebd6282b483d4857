// Adds up the sums of a row's pieces, one after the other, and does with the whole sum what is done with those of other
// rows: after the kernel that made them, so that a result depends on no order of blocks.
APL_KERNEL(128)
void APL_SPARSE_JOIN(apl_in<int32_t> cut, apl_in<apl_sparse_sum<APL_SPARSE_TYPE>::type> piece, int32_t column_blocks,
                     apl_out<APL_SPARSE_RESULT> c, int32_t c_row, int32_t width, APL_SPARSE_EPILOGUE epilogue) {
  typedef apl_sparse_sum<APL_SPARSE_TYPE>::type Sum;
  const int64_t which = apl_block() / column_blocks;
  const int32_t j = int32_t(apl_block() % column_blocks) * 128 + apl_thread();
  if (j >= width) return;
  int32_t row[4];
  apl_load<4>(cut, which * 4, row);
  Sum sum = Sum(0);
  for (int32_t k = 0; k < row[2]; ++k) sum = apl_sparse_plus(sum, Sum(piece(int64_t(row[1] + k) * width + j)));
  c(int64_t(row[0]) * c_row + j) = APL_SPARSE_RESULT(epilogue(sum, row[0], j));
}
APL_SPARSE_EXPORT(APL_SPARSE_JOIN)
