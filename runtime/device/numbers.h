// The part of device.h that both implementations have: the meaning of the IR's operations on numbers (ir/scalar.h).
// Integer division by zero gives 0: kernels check before.

// Whether an array starts at a multiple of so many bytes.
template <unsigned bytes, class Array>
APL_DEVICE bool apl_aligned(const Array& array) {
  return reinterpret_cast<unsigned long long>(array.data) % bytes == 0;
}

// What row numbers of a tile are xor-ed with at depth q: a transposing copy of eight steps by four rows, and reads of
// four neighbouring rows, then each touch every bank of shared memory once. So do reads of four steps of four pairs of
// rows of 8 bytes.
template <int bytes = 4>
APL_DEVICE constexpr int apl_swizzle(int q) {
  return bytes == 8 ? (q & 3) * 4 : (q & 3) * 8 ^ (q & 4);
}

// Whether a row of a tile is one of its operand, by where its copy begins: far below all positions where it is none.
APL_DEVICE bool apl_is_row(int64_t from) { return static_cast<int>(from >> 32) > -(1 << 29); }

// Zeros in a tile of shared memory; each thread of the block has its share.
template <class T>
APL_DEVICE void apl_zero_tile(const apl_shared<T>& tile, int count, int thread, int threads) {
  for (int e = thread; e < count; e += threads) tile(e) = static_cast<T>(0.0f);
}

// The unsigned integer of so many bytes.
template <unsigned bytes>
struct apl_word;
template <>
struct apl_word<2> {
  typedef uint16_t type;
};
template <>
struct apl_word<4> {
  typedef uint32_t type;
};
template <>
struct apl_word<8> {
  typedef uint64_t type;
};
template <class T>
APL_DEVICE typename apl_word<sizeof(T)>::type apl_to_bits(T number) {
  union {
    T number;
    typename apl_word<sizeof(T)>::type bits;
  } both;
  both.number = number;
  return both.bits;
}
template <class T>
APL_DEVICE T apl_from_bits(typename apl_word<sizeof(T)>::type bits) {
  union {
    typename apl_word<sizeof(T)>::type bits;
    T number;
  } both;
  both.bits = bits;
  return both.number;
}

#if defined(APL_EMULATE)
// Counts in units of the last place; a mantissa that rounds up carries into the exponent.
inline uint16_t apl_half_bits(double x) {
  const unsigned sign = static_cast<unsigned>(apl_to_bits(x) >> 63) << 15;
  const double magnitude = fabs(x);
  if (x != x) return 0x7e00;
  if (magnitude == 0) return static_cast<uint16_t>(sign);
  if (magnitude >= 65520) return static_cast<uint16_t>(sign | 0x7c00);
  int exponent = ilogb(magnitude);
  if (exponent < -14) exponent = -14;
  const unsigned units = static_cast<unsigned>(rint(ldexp(magnitude, 10 - exponent)));
  return static_cast<uint16_t>(sign | (units + (static_cast<unsigned>(exponent + 14) << 10)));
}
inline uint16_t apl_half_bits(float x) { return apl_half_bits(static_cast<double>(x)); }
inline float apl_half_number(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  float number = ldexpf(static_cast<float>(exponent == 0 ? fraction : fraction + 1024), (exponent ? exponent : 1) - 25);
  if (exponent == 31) number = fraction ? NAN : INFINITY;
  return bits >> 15 ? -number : number;
}
#else
#if defined(__HIP__)
APL_DEVICE uint16_t apl_half_bits(double x) { return apl_to_bits(static_cast<_Float16>(x)); }
APL_DEVICE uint16_t apl_half_bits(float x) { return apl_to_bits(static_cast<_Float16>(x)); }
APL_DEVICE float apl_half_number(uint16_t bits) { return static_cast<float>(apl_from_bits<_Float16>(bits)); }
#else
APL_DEVICE uint16_t apl_half_bits(double x) {
  uint16_t bits;
  asm("cvt.rn.f16.f64 %0, %1;" : "=h"(bits) : "d"(x));
  return bits;
}
APL_DEVICE uint16_t apl_half_bits(float x) {
  uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
APL_DEVICE float apl_half_number(uint16_t bits) {
  float number;
  asm("cvt.f32.f16 %0, %1;" : "=f"(number) : "h"(bits));
  return number;
}
#endif
#endif

// f16: computed as float, rounded once when it is made of a number.
struct apl_half {
  uint16_t bits;
  apl_half() = default;
#define APL_HALF_OF(T, Wide) \
  APL_DEVICE apl_half(T number) : bits(apl_half_bits(static_cast<Wide>(number))) {}
  APL_HALF_OF(float, float)
  APL_HALF_OF(double, double)
  APL_HALF_OF(int, double)
  APL_HALF_OF(unsigned, double)
  APL_HALF_OF(long, double)
  APL_HALF_OF(unsigned long, double)
  APL_HALF_OF(long long, double)
  APL_HALF_OF(unsigned long long, double)
#undef APL_HALF_OF
  APL_DEVICE operator float() const { return apl_half_number(bits); }
};

// bf16: kept and converted, never computed with; the upper half of a float, rounded to even. A NaN is quiet.
APL_DEVICE float apl_bfloat_number(uint16_t bits) { return apl_from_bits<float>(static_cast<uint32_t>(bits) << 16); }
APL_DEVICE uint16_t apl_bfloat_bits(float x) {
  const uint32_t bits = apl_to_bits(x);
  return static_cast<uint16_t>(x != x ? 0x7fc0 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
struct apl_bfloat {
  uint16_t bits;
  apl_bfloat() = default;
  APL_DEVICE explicit apl_bfloat(float number) : bits(apl_bfloat_bits(number)) {}
  APL_DEVICE operator float() const { return apl_bfloat_number(bits); }
};
APL_DEVICE float apl_from_bf16(apl_bfloat x) { return x; }
APL_DEVICE apl_bfloat apl_to_bf16(float x) { return apl_bfloat(x); }
// By a float that remembers in its last bit that it is not exact, so that nothing is rounded twice.
APL_DEVICE apl_bfloat apl_to_bf16_of_f64(double x) {
  const float near = static_cast<float>(x);
  uint32_t bits = apl_to_bits(near);
  if (x == x && static_cast<double>(near) != x) bits = (bits - (fabs(static_cast<double>(near)) > fabs(x) ? 1 : 0)) | 1;
  return apl_bfloat(apl_from_bits<float>(bits));
}

#if !defined(APL_EMULATE)
template <class I>
APL_DEVICE apl_half apl_in<apl_half>::operator()(I index) const {
  return data[index];
}
template <class I>
APL_DEVICE apl_bfloat apl_in<apl_bfloat>::operator()(I index) const {
  return data[index];
}
#endif

template <class T>
struct apl_traits {
  static constexpr bool is_float = false;
  static constexpr bool is_signed = T(-1) < T(0);
};
template <>
struct apl_traits<float> {
  static constexpr bool is_float = true;
  static constexpr bool is_signed = true;
};
template <>
struct apl_traits<apl_half> {
  static constexpr bool is_bfloat = false;
  static constexpr bool is_float = true;
  static constexpr bool is_signed = true;
};
template <>
struct apl_traits<apl_bfloat> {
  static constexpr bool is_bfloat = true;
  static constexpr bool is_float = true;
  static constexpr bool is_signed = true;
};
template <>
struct apl_traits<double> {
  static constexpr bool is_float = true;
  static constexpr bool is_signed = true;
};

// The type of an operation: the one asked for, as in apl_add<int8_t>(x, 1); else that of the numbers if they are alike,
// else as in C.
template <class Asked, class A, class B = A>
struct apl_result {
  typedef Asked type;
};
template <class A, class B>
struct apl_result<void, A, B> {
  typedef decltype(true ? typename apl_number<A>::type() : typename apl_number<B>::type()) type;
};

APL_DEVICE float apl_fmin(float a, float b) { return fminf(a, b); }
APL_DEVICE double apl_fmin(double a, double b) { return fmin(a, b); }
APL_DEVICE float apl_fmax(float a, float b) { return fmaxf(a, b); }
APL_DEVICE double apl_fmax(double a, double b) { return fmax(a, b); }
APL_DEVICE float apl_fmod(float a, float b) { return fmodf(a, b); }
APL_DEVICE double apl_fmod(double a, double b) { return fmod(a, b); }
APL_DEVICE float apl_fpow(float a, float b) { return powf(a, b); }
APL_DEVICE double apl_fpow(double a, double b) { return pow(a, b); }

// A function of numbers; `body` sees them as `a` and `b` of the operation's type T.
#define APL_BINARY(name, body)                                       \
  template <class Asked = void, class A, class B>                    \
  APL_DEVICE typename apl_result<Asked, A, B>::type name(A x, B y) { \
    typedef typename apl_result<Asked, A, B>::type T;                \
    const T a = static_cast<T>(x), b = static_cast<T>(y);            \
    body                                                             \
  }
#define APL_UNARY(name, body)                                \
  template <class Asked = void, class A>                     \
  APL_DEVICE typename apl_result<Asked, A>::type name(A x) { \
    typedef typename apl_result<Asked, A>::type T;           \
    const T a = static_cast<T>(x);                           \
    body                                                     \
  }

// Wrapping arithmetic: signed overflow has no meaning in C++.
APL_BINARY(apl_add, { return T(uint64_t(a) + uint64_t(b)); })
APL_BINARY(apl_sub, { return T(uint64_t(a) - uint64_t(b)); })
APL_BINARY(apl_mul, { return T(uint64_t(a) * uint64_t(b)); })
APL_UNARY(apl_neg, { return T(uint64_t(0) - uint64_t(a)); })

// A NaN operand gives the other one.
APL_BINARY(apl_min, {
  if constexpr (apl_traits<T>::is_float)
    return apl_fmin(a, b);
  else
    return b < a ? b : a;
})
APL_BINARY(apl_max, {
  if constexpr (apl_traits<T>::is_float)
    return apl_fmax(a, b);
  else
    return a < b ? b : a;
})

// quot and rem round to zero; div and mod down, so that mod has the divisor's sign; float mod has the dividend's. The
// one overflow, lowest / -1, wraps.
APL_BINARY(apl_quot, {
  if (b == 0) return T(0);
  if constexpr (apl_traits<T>::is_signed) {
    if (b == T(-1)) return T(uint64_t(0) - uint64_t(a));
  }
  return T(a / b);
})
APL_BINARY(apl_rem, {
  if (b == 0) return T(0);
  if constexpr (apl_traits<T>::is_signed) {
    if (b == T(-1)) return T(0);
  }
  return T(a % b);
})
APL_BINARY(apl_div, {
  if constexpr (apl_traits<T>::is_float) {
    return a / b;
  } else if constexpr (apl_traits<T>::is_signed) {
    const T quotient = apl_quot(a, b);
    return T(quotient - T(apl_rem(a, b) != 0 && (a < 0) != (b < 0)));
  } else {
    return apl_quot(a, b);
  }
})
APL_BINARY(apl_mod, {
  if constexpr (apl_traits<T>::is_float) {
    return apl_fmod(a, b);
  } else if constexpr (apl_traits<T>::is_signed) {
    const T rest = apl_rem(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? T(rest + b) : rest;
  } else {
    return apl_rem(a, b);
  }
})

// Integers: a negative exponent gives the integer part, 0 or +-1.
APL_BINARY(apl_pow, {
  if constexpr (apl_traits<T>::is_float) {
    return apl_fpow(a, b);
  } else {
    if constexpr (apl_traits<T>::is_signed) {
      if (b < 0 && a != 1 && a != T(-1)) return T(0);
    }
    uint64_t result = 1;
    uint64_t base = uint64_t(a);
    for (uint64_t exponent = uint64_t(b); exponent != 0; exponent >>= 1, base *= base)
      if (exponent & 1) result *= base;
    return T(result);
  }
})

// Amounts of the width or more, and negative ones, leave 0 or copies of the sign.
APL_BINARY(apl_shl, { return uint64_t(b) >= 8 * sizeof(T) ? T(0) : T(uint64_t(a) << uint64_t(b)); })
APL_BINARY(apl_shr, {
  if (uint64_t(b) < 8 * sizeof(T)) return T(a >> b);
  if constexpr (apl_traits<T>::is_signed) return a < 0 ? T(-1) : T(0);
  return T(0);
})

// The upper halves of 64-bit products.
#if defined(APL_EMULATE)
inline int64_t apl_high_bits(int64_t a, int64_t b) { return int64_t((static_cast<__int128>(a) * b) >> 64); }
inline uint64_t apl_high_bits(uint64_t a, uint64_t b) {
  return uint64_t((static_cast<unsigned __int128>(a) * b) >> 64);
}
#else
APL_DEVICE int64_t apl_high_bits(int64_t a, int64_t b) { return __mul64hi(a, b); }
APL_DEVICE uint64_t apl_high_bits(uint64_t a, uint64_t b) { return __umul64hi(a, b); }
#endif
APL_BINARY(apl_mul_hi, {
  if constexpr (sizeof(T) == 8)
    return apl_high_bits(a, b);
  else if constexpr (apl_traits<T>::is_signed)
    return T((int64_t(a) * int64_t(b)) >> (8 * sizeof(T)));
  else
    return T((uint64_t(a) * uint64_t(b)) >> (8 * sizeof(T)));
})

APL_BINARY(apl_nextafter, {
  if constexpr (sizeof(T) != 2) {
    return nextafter(a, b);
  } else {
    if (a != a || b != b) return T(a + b);
    if (a == b) return b;
    if (a == 0) return apl_from_bits<T>(b < 0 ? 0x8001 : 1);
    return apl_from_bits<T>(uint16_t(apl_to_bits(a) + ((a < b) == (a > 0) ? 1 : -1)));
  }
})

#if defined(APL_EMULATE)
inline int apl_count_ones(uint64_t bits) { return __builtin_popcountll(bits); }
inline int apl_leading_zeros(uint64_t bits) { return bits == 0 ? 64 : __builtin_clzll(bits); }
#else
APL_DEVICE int apl_count_ones(uint64_t bits) { return __popcll(bits); }
APL_DEVICE int apl_leading_zeros(uint64_t bits) { return __clzll(static_cast<long long>(bits)); }
#endif
// The bits of a number without copies of its sign.
template <class T>
APL_DEVICE uint64_t apl_bits(T a) {
  return uint64_t(a) & (~uint64_t(0) >> (64 - 8 * sizeof(T)));
}
APL_UNARY(apl_popc, { return T(apl_count_ones(apl_bits(a))); })
APL_UNARY(apl_clz, { return T(apl_leading_zeros(apl_bits(a)) - int(64 - 8 * sizeof(T))); })
// div and mod by a number that all threads have: where it is a power of two, as many are, a shift does.
APL_BINARY(apl_div_uniform, {
  if (b > 0 && (b & T(b - 1)) == 0) return T(a >> (63 - apl_leading_zeros(apl_bits(b))));
  return apl_div(a, b);
})
APL_BINARY(apl_mod_uniform, {
  if (b > 0 && (b & T(b - 1)) == 0) return T(a & T(b - 1));
  return apl_mod(a, b);
})
template <class T>
APL_DEVICE void apl_sincos(T x, T* sine, T* cosine) {
#if defined(APL_EMULATE)
  *sine = sin(x), *cosine = cos(x);
#else
  if constexpr (sizeof(T) == 4)
    sincosf(x, sine, cosine);
  else
    sincos(x, sine, cosine);
#endif
}
APL_UNARY(apl_abs, {
  if constexpr (apl_traits<T>::is_float)
    return fabs(a);
  else if constexpr (apl_traits<T>::is_signed)
    return a < 0 ? T(uint64_t(0) - uint64_t(a)) : a;
  else
    return a;
})
APL_UNARY(apl_sgn, {
  if constexpr (apl_traits<T>::is_float)
    return a != a ? a : T((a > 0) - (a < 0));
  else if constexpr (apl_traits<T>::is_signed)
    return T((a > 0) - (a < 0));
  else
    return T(a != 0);
})

// GPUs have an instruction for it, with an error of at most two units in the last place.
#if defined(APL_EMULATE)
inline float apl_inverse_root(float x) { return 1 / sqrtf(x); }
inline double apl_inverse_root(double x) { return 1 / sqrt(x); }
#else
APL_DEVICE float apl_inverse_root(float x) { return rsqrtf(x); }
APL_DEVICE double apl_inverse_root(double x) { return rsqrt(x); }
#endif
APL_UNARY(apl_rsqrt, { return apl_inverse_root(a); })

// Float to integer: towards zero, saturated, a negative number to an unsigned type by way of the signed one of that
// width; NaN and the infinities give 0.
template <class T>
APL_DEVICE T apl_from_float(double x) {
  constexpr uint64_t sign_bit = uint64_t(1) << (8 * sizeof(T) - 1);
  if (!(fabs(x) < INFINITY)) return T(0);
  if (x < -double(sign_bit)) return T(sign_bit);
  if constexpr (apl_traits<T>::is_signed) {
    if (x >= double(sign_bit)) return T(sign_bit - 1);
  } else {
    if (x >= 2 * double(sign_bit)) return T(-1);
    if (x < 0) return T(int64_t(x));
  }
  return T(x);
}

// More elements than memory has bytes.
#define APL_MOST_ELEMENTS ((int64_t)1 << 48)

// The product of sizes that are not negative, or the largest number where it is none.
APL_DEVICE int64_t apl_size_product(int64_t a, int64_t b) {
  const int64_t most = ~((int64_t)1 << 63);
  return b > 0 && a > most / b ? most : a * b;
}

// Whether there was no memory for the threads' arrays.
template <class T>
APL_DEVICE bool apl_lacks(apl_out<T> arrays) {
  return arrays.data == nullptr;
}

// Memory of one thread, for arrays whose size is known only there. Ends with the thread.
template <class T>
struct apl_heap {
  T* data = nullptr;
  int64_t capacity = 0;

  apl_heap() = default;
  apl_heap(const apl_heap&) = delete;
  APL_DEVICE ~apl_heap() { free(data); }
  // Room for `count` elements, what was there lost; false if there is no memory.
  APL_DEVICE bool grow(int64_t count) {
    if (count > APL_MOST_ELEMENTS) return false;
    if (count <= capacity) return true;
    free(data);
    data = static_cast<T*>(malloc(static_cast<size_t>(count) * sizeof(T)));
    capacity = data == nullptr ? 0 : count;
    return data != nullptr;
  }
  template <class I>
  APL_DEVICE T& operator[](I index) const {
    return data[index];
  }
};

// Index arithmetic; divisors are positive.
APL_BINARY(apl_floor_div, { return apl_div(a, b); })
APL_BINARY(apl_floor_mod, { return apl_mod(a, b); })
APL_BINARY(apl_ceil_div, {
  const T quotient = apl_div(a, b);
  return T(quotient + T(b != 0 && quotient * b != a));
})
APL_DEVICE int64_t apl_index_min(int64_t a, int64_t b) { return b < a ? b : a; }
APL_DEVICE int64_t apl_index_max(int64_t a, int64_t b) { return a < b ? b : a; }

#undef APL_BINARY
#undef APL_UNARY
