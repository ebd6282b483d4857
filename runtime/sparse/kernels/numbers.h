// What the kernels of sparse products share: element types and their sums, results on their way to memory.

// Kernels are named by macros, which must be replaced first.
#define APL_SPARSE_EXPORT(kernel) APL_EXPORT(kernel)

// Floats of 16 bits are added as float, all else as it is.
template <class T>
struct apl_sparse_sum {
  typedef T type;
};
template <>
struct apl_sparse_sum<apl_half> {
  typedef float type;
};
template <>
struct apl_sparse_sum<apl_bfloat> {
  typedef float type;
};
template <class T>
struct apl_sparse_is_half {
  static constexpr bool value = false;
};
template <>
struct apl_sparse_is_half<apl_half> {
  static constexpr bool value = true;
};

template <class Sum>
APL_DEVICE Sum apl_sparse_plus(Sum a, Sum b) {
  if constexpr (apl_traits<Sum>::is_float)
    return a + b;
  else
    return apl_add<Sum>(a, b);
}

template <class Sum>
APL_DEVICE Sum apl_sparse_times(Sum a, Sum b) {
  if constexpr (apl_traits<Sum>::is_float)
    return a * b;
  else
    return apl_mul<Sum>(a, b);
}

// sums[e] += value * x[e]
template <int count, class T, class Sum>
APL_DEVICE void apl_sparse_add(Sum* sums, T value, const T* x) {
  APL_UNROLL
  for (int e = 0; e < count; ++e) sums[e] = apl_sparse_plus(sums[e], apl_sparse_times(Sum(value), Sum(x[e])));
}

// `count` results side by side, rounded to T, in accesses of up to 16 bytes; the address is a multiple of an access'
// size. They leave the second cache to what is gathered.
template <int count, class T, class Sum>
APL_DEVICE void apl_sparse_write(const apl_out<T>& to, int64_t at, const Sum* sums) {
  constexpr int bytes = count * sizeof(T);
  if constexpr (bytes < 4) {
    APL_UNROLL
    for (int e = 0; e < count; ++e) to(at + e) = T(sums[e]);
  } else {
    uint32_t words[bytes / 4];
    if constexpr (apl_sparse_is_half<T>::value) {
      APL_UNROLL
      for (int w = 0; w < bytes / 4; ++w) words[w] = apl_half_pair(sums[2 * w], sums[2 * w + 1]);
    } else {
      T rounded[count];
      APL_UNROLL
      for (int e = 0; e < count; ++e) rounded[e] = T(sums[e]);
      apl_copy_bytes(words, rounded, bytes);
    }
    constexpr int piece = bytes < 16 ? bytes : 16;
    APL_UNROLL
    for (int w = 0; w < bytes; w += piece) apl_stream_words<piece / 4>(to, at + w / int(sizeof(T)), words + w / 4);
  }
}

// What is done with a sum before it is written: nothing. Programs that add a bias or an activation put a type of
// their own in its place, which is passed to the kernel by value. SDDMM has the non-zero's number, too.
struct apl_sparse_same {
  int32_t unused;
  template <class Sum>
  APL_DEVICE Sum operator()(Sum sum, int64_t, int64_t, int64_t = 0) const {
    return sum;
  }
};
