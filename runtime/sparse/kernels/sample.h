// Of all sums of a dense product those at the non-zeros, in their order, and what is done with them.
APL_KERNEL(256)
void APL_SPARSE_NAME(apl_in<int32_t> row, apl_in<int32_t> column, apl_in<APL_SPARSE_TYPE> values, int64_t nonzeros,
                     apl_in<apl_sparse_sum<APL_SPARSE_TYPE>::type> all, int64_t columns,
                     apl_out<APL_SPARSE_RESULT> result, APL_SPARSE_EPILOGUE epilogue) {
  typedef apl_sparse_sum<APL_SPARSE_TYPE>::type Sum;
  const int64_t n = apl_block() * 256 + apl_thread();
  if (n >= nonzeros) return;
  const int32_t i = row(n), j = column(n);
  Sum sum = Sum(all(i * columns + j));
#if APL_SPARSE_SCALED
  sum = apl_sparse_times(sum, Sum(APL_SPARSE_TYPE(values(n))));
#endif
  result(n) = APL_SPARSE_RESULT(epilogue(sum, i, j, n));
}
APL_SPARSE_EXPORT(APL_SPARSE_NAME)
