// The values of A, given in the order of the non-zeros, go to the positions that a packed operand has for them; 0 is in
// the padding.
APL_KERNEL(256) void APL_SPARSE_CLEAR(apl_out<APL_SPARSE_TYPE> to, int64_t count) {
  const int64_t at = apl_block() * 256 + apl_thread();
  if (at < count) to(at) = APL_SPARSE_TYPE(0);
}
APL_SPARSE_EXPORT(APL_SPARSE_CLEAR)

APL_KERNEL(256)
void APL_SPARSE_PLACE(apl_in<APL_SPARSE_TYPE> values, apl_in<uint32_t> slot, int64_t count,
                      apl_out<APL_SPARSE_TYPE> to) {
  const int64_t at = apl_block() * 256 + apl_thread();
  if (at < count) to(slot(at)) = APL_SPARSE_TYPE(values(at));
}
APL_SPARSE_EXPORT(APL_SPARSE_PLACE)
