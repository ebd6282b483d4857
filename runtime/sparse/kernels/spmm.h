// C[i][j] = after(sum over k of A[i][k] B[k][j]): blocks of windows first, then those of rows; all in one launch. Sums
// of pieces of rows are joined by a second one.
// Slices of C's columns are the outer order, so that a slice of B stays in the cache.
#if APL_SPARSE_STAGED
APL_KERNEL(APL_SPARSE_BOUNDS)
void APL_SPARSE_NAME(apl_in<int32_t> record, apl_in<int32_t> column, apl_in<APL_SPARSE_TYPE> value, int32_t rows,
                     int32_t blocks, apl_in<APL_SPARSE_TYPE> b, int32_t b_row, int32_t b_rows,
                     apl_out<APL_SPARSE_RESULT> c, int32_t c_row, int32_t width, APL_SPARSE_EPILOGUE epilogue) {
  const unsigned block = unsigned(apl_block());
  apl_sparse_spmm_staged<APL_SPARSE_LANES, APL_SPARSE_ELEMENTS, APL_SPARSE_WARPS>(
      block % unsigned(blocks), unsigned(blocks), block / unsigned(blocks),
      apl_sparse_rows<APL_SPARSE_TYPE>{record, column, value, 0, 0, rows}, b, b_row, b_rows, c, c_row, width, epilogue);
}
#else
APL_KERNEL(APL_SPARSE_BOUNDS)
void APL_SPARSE_NAME(apl_in<int32_t> record, apl_in<int32_t> column, apl_in<APL_SPARSE_TYPE> value, int32_t longs,
                     int32_t mediums, int32_t rows, int32_t row_blocks, apl_in<int32_t> window, apl_in<int32_t> part,
                     apl_in<int32_t> window_row, apl_in<int32_t> step_column, apl_in<APL_SPARSE_TYPE> step_value,
                     int32_t windows, int32_t window_blocks, int32_t slice_groups, apl_in<APL_SPARSE_TYPE> b,
                     int32_t b_row, apl_out<APL_SPARSE_RESULT> c, int32_t c_row, int32_t width,
                     apl_out<apl_sparse_sum<APL_SPARSE_TYPE>::type> piece, APL_SPARSE_EPILOGUE epilogue) {
  unsigned block = unsigned(apl_block());
#if APL_SPARSE_PARTS
  const unsigned of_windows = unsigned(window_blocks) * unsigned(slice_groups);
  if (block < of_windows) {
#if APL_SPARSE_MATRIX_UNITS
    apl_sparse_spmm_windows<APL_SPARSE_PARTS, APL_SPARSE_WINDOW_ELEMENTS, APL_SPARSE_FLIGHT, APL_SPARSE_SPLIT,
                            APL_SPARSE_SLICES, APL_SPARSE_WARPS>(
#else
    apl_sparse_spmm_plain_windows<APL_SPARSE_PARTS, APL_SPARSE_WINDOW_ELEMENTS, APL_SPARSE_SPLIT, APL_SPARSE_SLICES,
                                  APL_SPARSE_WARPS>(
#endif
        block % unsigned(window_blocks), block / unsigned(window_blocks),
        apl_sparse_windows<APL_SPARSE_TYPE>{window, part, window_row, step_column, step_value, windows}, b, b_row, c,
        c_row, width, epilogue);
    return;
  }
  block -= of_windows;
#endif
#if APL_SPARSE_LANES
  apl_sparse_spmm_rows<APL_SPARSE_LANES, APL_SPARSE_ELEMENTS, APL_SPARSE_WARPS, APL_SPARSE_AHEAD, APL_SPARSE_CUT>(
      block % unsigned(row_blocks), block / unsigned(row_blocks),
      apl_sparse_rows<APL_SPARSE_TYPE>{record, column, value, longs, mediums, rows}, b, b_row, c, c_row, width, piece,
      epilogue);
#endif
}
#endif
APL_SPARSE_EXPORT(APL_SPARSE_NAME)
