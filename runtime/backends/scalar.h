// The IR's scalar operations in C11, for generated host code and the C back end; device.h has the same for kernels.
// Integers wrap (generated code is compiled with -fwrapv). Division by zero gives 0: generated code checks before.
#ifndef APL_SCALAR_H
#define APL_SCALAR_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "context.h"

// A call that may set errno is in the way of vectors, and gcc asks the command line for that, not `#pragma GCC
// optimize`.
#ifdef __GNUC__
#define APL_NO_ERRNO __attribute__((__const__))
APL_NO_ERRNO double sqrt(double);
APL_NO_ERRNO float sqrtf(float);
#endif

// Loops over elements are made vectors of with these functions in them, too: glibc has them for vectors of every width
// (libmvec, at most 4 units in the last place), which -lm finds. The compiler knows them by their declarations.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__) && \
    !defined(APL_NO_VECTOR_MATH)
#define APL_VECTOR_MATH APL_NO_ERRNO __attribute__((__simd__("notinbranch")))
#define APL_VECTOR_FUNCTION(NAME)      \
  APL_VECTOR_MATH double NAME(double); \
  APL_VECTOR_MATH float NAME##f(float);
#if __GLIBC_PREREQ(2, 22)
APL_VECTOR_FUNCTION(exp)
APL_VECTOR_FUNCTION(log)
APL_VECTOR_FUNCTION(sin)
APL_VECTOR_FUNCTION(cos)
APL_VECTOR_MATH double pow(double, double);
APL_VECTOR_MATH float powf(float, float);
#endif
#if __GLIBC_PREREQ(2, 35)
APL_VECTOR_FUNCTION(tan)
APL_VECTOR_FUNCTION(asin)
APL_VECTOR_FUNCTION(acos)
APL_VECTOR_FUNCTION(atan)
APL_VECTOR_FUNCTION(sinh)
APL_VECTOR_FUNCTION(cosh)
APL_VECTOR_FUNCTION(tanh)
APL_VECTOR_FUNCTION(asinh)
APL_VECTOR_FUNCTION(acosh)
APL_VECTOR_FUNCTION(atanh)
APL_VECTOR_FUNCTION(erf)
APL_VECTOR_FUNCTION(erfc)
APL_VECTOR_FUNCTION(exp2)
APL_VECTOR_FUNCTION(log2)
APL_VECTOR_FUNCTION(log10)
APL_VECTOR_FUNCTION(log1p)
APL_VECTOR_FUNCTION(expm1)
APL_VECTOR_FUNCTION(cbrt)
APL_VECTOR_MATH double hypot(double, double);
APL_VECTOR_MATH float hypotf(float, float);
APL_VECTOR_MATH double atan2(double, double);
APL_VECTOR_MATH float atan2f(float, float);
#endif
#endif

// Generated code names all that an entry and a kernel are given, and has the whole runtime, whatever of it is used.
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wunused-const-variable"
#pragma GCC diagnostic ignored "-Wunused-function"
#ifdef __clang__
#pragma clang diagnostic ignored "-Wpass-failed"  // a scan is a loop there
#endif

// Inlined also where a function has options of its own for vectors.
#ifndef APL_INLINE
#define APL_INLINE static inline __attribute__((always_inline))
#endif

// No types of ISO C.
__extension__ typedef __int128 apl_wide;
__extension__ typedef unsigned __int128 apl_wide_unsigned;

#define APL_INTEGER_COMMON(T, N)                                                                                    \
  APL_INLINE T apl_min_##N(T a, T b) { return b < a ? b : a; }                                                      \
  APL_INLINE T apl_max_##N(T a, T b) { return a < b ? b : a; }                                                      \
  APL_INLINE T apl_shl_##N(T a, T b) { return (uint64_t)b >= 8 * sizeof(T) ? 0 : (T)((uint64_t)a << (uint64_t)b); } \
  static inline T apl_popc_##N(T a) {                                                                               \
    T n = 0;                                                                                                        \
    for (unsigned i = 0; i < 8 * sizeof(T); ++i) n += (T)(((uint64_t)a >> i) & 1);                                  \
    return n;                                                                                                       \
  }                                                                                                                 \
  static inline T apl_clz_##N(T a) {                                                                                \
    T n = 0;                                                                                                        \
    for (int i = 8 * (int)sizeof(T) - 1; i >= 0 && (((uint64_t)a >> i) & 1) == 0; --i) ++n;                         \
    return n;                                                                                                       \
  }

#define APL_SIGNED(T, N)                                                                                          \
  APL_INTEGER_COMMON(T, N)                                                                                        \
  APL_INLINE T apl_div_##N(T a, T b) {                                                                            \
    if (b == 0) return 0;                                                                                         \
    if (b == -1) return (T)(0 - a);                                                                               \
    T q = (T)(a / b);                                                                                             \
    return (T)(a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q);                                                     \
  }                                                                                                               \
  APL_INLINE T apl_mod_##N(T a, T b) {                                                                            \
    if (b == 0 || b == -1) return 0;                                                                              \
    T r = (T)(a % b);                                                                                             \
    return (T)(r != 0 && (r < 0) != (b < 0) ? r + b : r);                                                         \
  }                                                                                                               \
  APL_INLINE T apl_quot_##N(T a, T b) { return b == 0 ? 0 : b == -1 ? (T)(0 - a) : (T)(a / b); }                  \
  APL_INLINE T apl_rem_##N(T a, T b) { return b == 0 || b == -1 ? 0 : (T)(a % b); }                               \
  APL_INLINE T apl_mul_hi_##N(T a, T b) { return (T)(((apl_wide)a * b) >> (8 * sizeof(T))); }                     \
  APL_INLINE T apl_shr_##N(T a, T b) { return (uint64_t)b >= 8 * sizeof(T) ? (T)(a < 0 ? -1 : 0) : (T)(a >> b); } \
  static inline T apl_pow_##N(T base, T exponent) {                                                               \
    if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;                       \
    T result = 1;                                                                                                 \
    for (; exponent != 0; exponent = (T)(exponent / 2), base = (T)(base * base))                                  \
      if (exponent % 2 != 0) result = (T)(result * base);                                                         \
    return result;                                                                                                \
  }                                                                                                               \
  APL_INLINE T apl_abs_##N(T a) { return (T)(a < 0 ? 0 - a : a); }                                                \
  APL_INLINE T apl_sgn_##N(T a) { return (T)((a > 0) - (a < 0)); }

#define APL_UNSIGNED(T, N)                                                                             \
  APL_INTEGER_COMMON(T, N)                                                                             \
  APL_INLINE T apl_div_##N(T a, T b) { return b == 0 ? 0 : (T)(a / b); }                               \
  APL_INLINE T apl_mod_##N(T a, T b) { return b == 0 ? 0 : (T)(a % b); }                               \
  APL_INLINE T apl_quot_##N(T a, T b) { return apl_div_##N(a, b); }                                    \
  APL_INLINE T apl_rem_##N(T a, T b) { return apl_mod_##N(a, b); }                                     \
  APL_INLINE T apl_mul_hi_##N(T a, T b) { return (T)(((apl_wide_unsigned)a * b) >> (8 * sizeof(T))); } \
  APL_INLINE T apl_shr_##N(T a, T b) { return b >= 8 * sizeof(T) ? 0 : (T)(a >> b); }                  \
  static inline T apl_pow_##N(T base, T exponent) {                                                    \
    T result = 1;                                                                                      \
    for (; exponent != 0; exponent = (T)(exponent / 2), base = (T)(base * base))                       \
      if (exponent % 2 != 0) result = (T)(result * base);                                              \
    return result;                                                                                     \
  }                                                                                                    \
  APL_INLINE T apl_abs_##N(T a) { return a; }                                                          \
  APL_INLINE T apl_sgn_##N(T a) { return a != 0; }

APL_SIGNED(int8_t, i8)
APL_SIGNED(int16_t, i16)
APL_SIGNED(int32_t, i32)
APL_SIGNED(int64_t, i64)
APL_UNSIGNED(uint8_t, u8)
APL_UNSIGNED(uint16_t, u16)
APL_UNSIGNED(uint32_t, u32)
APL_UNSIGNED(uint64_t, u64)

#define APL_FLOAT(T, N, BITS)                                                   \
  APL_INLINE T apl_sgn_##N(T a) { return a != a ? a : (T)((a > 0) - (a < 0)); } \
  APL_INLINE BITS apl_to_bits_##N(T a) {                                        \
    BITS bits;                                                                  \
    __builtin_memcpy(&bits, &a, sizeof bits);                                   \
    return bits;                                                                \
  }                                                                             \
  APL_INLINE T apl_from_bits_##N(BITS bits) {                                   \
    T a;                                                                        \
    __builtin_memcpy(&a, &bits, sizeof a);                                      \
    return a;                                                                   \
  }
// IEEE 754's minNum and maxNum, of comparisons: vectors have these.
#define APL_FLOAT_LIMITS(T, N)          \
  APL_INLINE T apl_fmin_##N(T a, T b) { \
    const T least = a < b ? a : b;      \
    return b == b ? least : a;          \
  }                                     \
  APL_INLINE T apl_fmax_##N(T a, T b) { \
    const T most = a > b ? a : b;       \
    return b == b ? most : a;           \
  }
APL_FLOAT_LIMITS(float, f32)
APL_FLOAT_LIMITS(double, f64)
APL_INLINE float apl_rsqrt_f32(float a) { return 1 / sqrtf(a); }
APL_INLINE double apl_rsqrt_f64(double a) { return 1 / sqrt(a); }
APL_FLOAT(float, f32, uint32_t)
APL_FLOAT(double, f64, uint64_t)

// A float like this number in which the last bit says that it is not exact, so that nothing is rounded twice.
APL_INLINE float apl_float_to_be_rounded(double x) {
  const float near = (float)x;
  uint32_t bits = apl_to_bits_f32(near);
  if (x == x && (double)near != x) bits = (bits - (fabs((double)near) > fabs(x) ? 1 : 0)) | 1;
  return apl_from_bits_f32(bits);
}

// f16, computed with as floats. Compilers without the type have their bits.
#if defined(__FLT16_MAX__)
__extension__ typedef _Float16 apl_half;
APL_INLINE float apl_from_half(apl_half a) { return (float)a; }
APL_INLINE apl_half apl_to_half(float x) { return (apl_half)x; }
APL_INLINE apl_half apl_to_half_of_f64(double x) { return (apl_half)x; }
APL_INLINE uint16_t apl_to_bits_f16(apl_half a) {
  uint16_t bits;
  __builtin_memcpy(&bits, &a, sizeof bits);
  return bits;
}
APL_INLINE apl_half apl_from_bits_f16(uint16_t bits) {
  apl_half a;
  __builtin_memcpy(&a, &bits, sizeof a);
  return a;
}
#else
typedef struct {
  uint16_t bits;
} apl_half;
APL_INLINE uint16_t apl_to_bits_f16(apl_half a) { return a.bits; }
APL_INLINE apl_half apl_from_bits_f16(uint16_t bits) { return (apl_half){bits}; }
static inline float apl_from_half(apl_half a) {
  const uint32_t sign = (uint32_t)(a.bits & 0x8000) << 16, rest = a.bits & 0x7fff;
  if (rest >= 0x7c00) return apl_from_bits_f32(sign | 0x7f800000 | (rest & 0x3ff) << 13 | (rest > 0x7c00) << 22);
  // Bits of a half as those of a float are 2^112 too small, subnormal or not.
  return apl_from_bits_f32(sign | apl_to_bits_f32(apl_from_bits_f32(rest << 13) * 0x1p112f));
}
static inline apl_half apl_to_half(float x) {
  const uint32_t bits = apl_to_bits_f32(x), rest = bits & 0x7fffffff;
  const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
  if (rest > 0x7f800000) return apl_from_bits_f16((uint16_t)(sign | 0x7e00 | (rest >> 13 & 0x3ff)));
  if (rest >= 0x477ff000) return apl_from_bits_f16(sign | 0x7c00);  // 65520 and more
  // Below 2^-14 the sum with 1/2 has the half's last place as its own.
  if (rest < 0x38800000)
    return apl_from_bits_f16((uint16_t)(sign | (apl_to_bits_f32(apl_from_bits_f32(rest) + 0.5f) - 0x3f000000)));
  return apl_from_bits_f16((uint16_t)(sign | ((rest + 0xfff + (rest >> 13 & 1) - 0x38000000) >> 13)));
}
APL_INLINE apl_half apl_to_half_of_f64(double x) { return apl_to_half(apl_float_to_be_rounded(x)); }
#endif
static inline apl_half apl_sgn_f16(apl_half a) {
  const float x = apl_from_half(a);
  return x != x ? a : apl_to_half((float)((x > 0) - (x < 0)));
}
static inline apl_half apl_nextafter_f16(apl_half a, apl_half b) {
  const float x = apl_from_half(a), y = apl_from_half(b);
  if (x != x || y != y) return apl_to_half(x + y);
  if (x == y) return b;
  if (x == 0) return apl_from_bits_f16(y < 0 ? 0x8001 : 1);
  return apl_from_bits_f16((uint16_t)(apl_to_bits_f16(a) + ((x < y) == (x > 0) ? 1 : -1)));
}

// bf16, which is kept and converted, and never computed with: the upper half of a float, rounded to even; a NaN is
// quiet.
typedef struct {
  uint16_t bits;
} apl_bfloat;
APL_INLINE uint16_t apl_to_bits_bf16(apl_bfloat a) { return a.bits; }
APL_INLINE apl_bfloat apl_from_bits_bf16(uint16_t bits) { return (apl_bfloat){bits}; }
APL_INLINE float apl_from_bf16(apl_bfloat a) { return apl_from_bits_f32((uint32_t)a.bits << 16); }
APL_INLINE apl_bfloat apl_to_bf16(float x) {
  const uint32_t bits = apl_to_bits_f32(x);
  return apl_from_bits_bf16(x != x ? 0x7fc0 : (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16));
}
APL_INLINE apl_bfloat apl_to_bf16_of_f64(double x) { return apl_to_bf16(apl_float_to_be_rounded(x)); }

// Float to integer: towards zero, saturated, a negative number to an unsigned type by way of the signed one of that
// width; NaN and the infinities give 0. gcc takes there and back for trunc, which keeps the sign of a number below 1.
#define APL_FROM_FLOAT(T, N, low, high, SIGNED)        \
  APL_INLINE T apl_from_float_##N(double x) {          \
    if (!isfinite(x) || (x > -1 && x < 1)) return 0;   \
    if (x <= (double)(low)) return (T)(low);           \
    if (x >= (double)(high)) return high;              \
    return (T)(-1) > 0 && x < 0 ? (T)(SIGNED)x : (T)x; \
  }
APL_FROM_FLOAT(int8_t, i8, INT8_MIN, INT8_MAX, int8_t)
APL_FROM_FLOAT(int16_t, i16, INT16_MIN, INT16_MAX, int16_t)
APL_FROM_FLOAT(int32_t, i32, INT32_MIN, INT32_MAX, int32_t)
APL_FROM_FLOAT(int64_t, i64, INT64_MIN, INT64_MAX, int64_t)
APL_FROM_FLOAT(uint8_t, u8, INT8_MIN, UINT8_MAX, int8_t)
APL_FROM_FLOAT(uint16_t, u16, INT16_MIN, UINT16_MAX, int16_t)
APL_FROM_FLOAT(uint32_t, u32, INT32_MIN, UINT32_MAX, int32_t)
APL_FROM_FLOAT(uint64_t, u64, INT64_MIN, UINT64_MAX, int64_t)

// Index arithmetic.
// Divisions are not inlined: a compiler moves a call without effects out of a loop, but not a division, which may trap.
#define APL_PURE __attribute__((const, noinline, unused))
static APL_PURE int64_t apl_floor_div(int64_t a, int64_t b) { return apl_div_i64(a, b); }
static APL_PURE int64_t apl_ceil_div(int64_t a, int64_t b) { return -apl_div_i64(-a, b); }
APL_INLINE int64_t apl_index_min(int64_t a, int64_t b) { return b < a ? b : a; }
APL_INLINE int64_t apl_index_max(int64_t a, int64_t b) { return a < b ? b : a; }

// The first failed check stays; the others are dropped. The numbers of its message follow. 2 if it is the first, else
// 1: what a function that kernels call gives then.
static inline int apl_fail_with(struct apl_failure* failure, int32_t code, int32_t location, const int64_t* numbers,
                                size_t count) {
  int32_t none = 0;
  if (!__atomic_compare_exchange_n(&failure->code, &none, code, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return 1;
  failure->location = location;
  for (size_t k = 0; k < count; ++k) failure->values[k] = numbers[k];
  failure->call_count = 0;
  return 2;
}
// What a call of a function gave; if the first failed check is in it, the cell gets to know the call.
static inline int apl_called(struct apl_failure* failure, int went, int32_t call) {
  if (went == 2 && call > 0 && failure->call_count < APL_MOST_CALLS) failure->calls[failure->call_count++] = call;
  return went;
}
// The same of a function of the host.
static inline int apl_host_called(struct apl_context* ctx, int status, int32_t call) {
  if (status == APL_PROGRAM_ERROR && call > 0 && ctx->call_count < APL_MOST_CALLS) ctx->calls[ctx->call_count++] = call;
  return status;
}
#define APL_NUMBERS(...) (const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)
#define apl_fail(failure, code, ...) apl_fail_at(failure, code, __VA_ARGS__, 0)
#define apl_fail_at(failure, code, location, ...) apl_fail_with(failure, code, location, APL_NUMBERS(__VA_ARGS__))

// ---- sizes of memory ----

// More elements than memory has bytes; the interpreter's arrays end there, too.
#define APL_MOST_ELEMENTS ((int64_t)1 << 48)

// The product of sizes that are not negative, or the largest number where it is none.
static inline int64_t apl_size_product(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

// An array that is to be made: bytes of an element, sizes, and the statement's location and the call it came by, as in
// struct apl_location. With `kernel_checks` the kernel that makes it finds out itself that a size is negative.
struct apl_extent {
  int64_t width;
  const int64_t* shape;
  int32_t rank, line, column, call;
  bool kernel_checks;
};
#define APL_EXTENT(width, line, column, call, ...) \
  ((struct apl_extent){width, APL_NUMBERS(__VA_ARGS__), line, column, call, false})
#define APL_CHECKED_EXTENT(width, line, column, call, ...) \
  ((struct apl_extent){width, APL_NUMBERS(__VA_ARGS__), line, column, call, true})

// An error of the statement that makes the array, unless a check in a kernel failed before: it may be why.
static inline int apl_refuse_extent(struct apl_context* ctx, struct apl_extent extent, int status, int32_t code) {
  const int before = ctx->backend->synchronise(ctx);
  if (before != APL_SUCCESS) return before;
  ctx->error_code = code;
  ctx->error_line = extent.line;
  ctx->error_column = extent.column;
  ctx->error_call = extent.call;
  size_t at = (size_t)snprintf(ctx->error, sizeof ctx->error, "an array of shape ");
  for (int32_t d = 0; d < extent.rank && at < sizeof ctx->error; ++d)
    at += (size_t)snprintf(ctx->error + at, sizeof ctx->error - at, "[%lld]", (long long)extent.shape[d]);
  if (at < sizeof ctx->error) snprintf(ctx->error + at, sizeof ctx->error - at, " has too many elements.");
  return status;
}
static inline int apl_refuse_size(struct apl_context* ctx, struct apl_extent extent, int64_t size) {
  const int status = apl_refuse_extent(ctx, extent, APL_PROGRAM_ERROR, APL_NEGATIVE_SIZE);
  if (ctx->error_code == APL_NEGATIVE_SIZE)
    snprintf(ctx->error, sizeof ctx->error, "an array of size %lld.", (long long)size);
  return status;
}

// How many bytes the array has: no size may be negative, and their product must be a number of elements; but one
// without elements that a kernel has for each of no indices may be of any size.
static inline int apl_bytes_of(struct apl_context* ctx, struct apl_extent extent, int64_t* bytes) {
  int64_t count = 1;
  *bytes = 0;
  for (int32_t d = 0; d < extent.rank; ++d)
    if (extent.shape[d] == 0) return APL_SUCCESS;
  for (int32_t d = 0; d < extent.rank; ++d) {
    if (extent.shape[d] < 0) return extent.kernel_checks ? APL_SUCCESS : apl_refuse_size(ctx, extent, extent.shape[d]);
    count = apl_size_product(count, extent.shape[d]);
  }
  if (count > APL_MOST_ELEMENTS) return apl_refuse_extent(ctx, extent, APL_OUT_OF_MEMORY, APL_NO_CAPACITY);
  *bytes = count * extent.width;
  return APL_SUCCESS;
}

// Memory for an array. If there is none, that is an error of the statement that makes it.
static inline int apl_allocate(struct apl_context* ctx, struct apl_extent extent, const char* what, void** data) {
  int64_t bytes = 0;
  const int status = apl_bytes_of(ctx, extent, &bytes);
  return status == APL_SUCCESS ? ctx->backend->allocate(ctx, bytes, what, data) : status;
}

// Room for `count` elements, what was there lost; false if there is no memory.
static inline bool apl_grow(void** data, int64_t* capacity, int64_t count, int64_t width) {
  if (count > APL_MOST_ELEMENTS) return false;
  const int64_t bytes = count * width;
  if (bytes <= *capacity) return true;
  free(*data);
  *data = malloc((size_t)bytes);
  *capacity = *data ? bytes : 0;
  return *data != NULL;
}

// The same in the backend's memory, for blocks that loops of the host allocate again and again.
static inline int apl_reserve_bytes(struct apl_context* ctx, int64_t bytes, const char* what, void** data,
                                    int64_t* capacity) {
  if (*data && bytes <= *capacity) return APL_SUCCESS;
  if (*data) ctx->backend->release(ctx, *data);
  *data = NULL;
  *capacity = 0;
  const int status = ctx->backend->allocate(ctx, bytes, what, data);
  if (status == APL_SUCCESS) *capacity = bytes;
  return status;
}
// The memory of a scalar that kernels make for the host; a loop of the host takes the same again.
static inline int apl_allocate_cell(struct apl_context* ctx, int64_t bytes, const char* what, void** data) {
  if (*data) return APL_SUCCESS;
  const int status = ctx->backend->allocate_cell ? ctx->backend->allocate_cell(ctx, data) : APL_SUCCESS;
  return status == APL_SUCCESS && !*data ? ctx->backend->allocate(ctx, bytes, what, data) : status;
}
static inline int apl_reserve(struct apl_context* ctx, struct apl_extent extent, const char* what, void** data,
                              int64_t* capacity) {
  int64_t bytes = 0;
  const int status = apl_bytes_of(ctx, extent, &bytes);
  return status == APL_SUCCESS ? apl_reserve_bytes(ctx, bytes, what, data, capacity) : status;
}

// The arrays of threads, each with an array of its own; sizes below 0 are of arrays that no thread makes. If not every
// thread makes one (`may_lack`), there may be no memory: then a thread that makes one fails.
static inline int apl_reserve_threads(struct apl_context* ctx, bool may_lack, struct apl_extent extent,
                                      const char* what, void** data, int64_t* capacity) {
  int64_t bytes = extent.width;
  for (int32_t d = 0; d < extent.rank; ++d)
    if (extent.shape[d] <= 0) bytes = 0;
  for (int32_t d = 0; d < extent.rank && bytes != 0; ++d) bytes = apl_size_product(bytes, extent.shape[d]);
  const int status = apl_reserve_bytes(ctx, bytes, what, data, capacity);
  if (status != APL_OUT_OF_MEMORY || !may_lack) return status;
  ctx->error[0] = '\0';
  return APL_SUCCESS;
}

static inline void apl_swap(void** a, int64_t* a_capacity, void** b, int64_t* b_capacity) {
  void* data = *a;
  const int64_t capacity = *a_capacity;
  *a = *b;
  *a_capacity = *b_capacity;
  *b = data;
  *b_capacity = capacity;
}

// ---- what is traced, on standard error ----

// Whether the text, read as a number of the type, is x.
static inline bool apl_reads_as(const char* text, double x, enum apl_type type) {
  switch (type) {
    case APL_F16: return apl_from_half(apl_to_half(strtof(text, NULL))) == (float)x;
    case APL_BF16: return apl_from_bf16(apl_to_bf16(strtof(text, NULL))) == (float)x;
    case APL_F32: return strtof(text, NULL) == (float)x;
    default: return strtod(text, NULL) == x;
  }
}

// With as few digits as tell the number from its neighbours of the type.
static inline void apl_trace_float(double x, enum apl_type type) {
  char text[48];
  if (x != x || x - x != 0) {
    fprintf(stderr, "%s%s.%s", x < 0 ? "-" : "", apl_text_of_type(type), x != x ? "nan" : "inf");
    return;
  }
  for (int digits = 1; digits <= 17; ++digits) {
    snprintf(text, sizeof text, "%.*g", digits, x);
    if (apl_reads_as(text, x, type)) break;
  }
  bool is_whole = true;
  for (const char* c = text; *c; ++c) is_whole = is_whole && *c != '.' && *c != 'e';
  fprintf(stderr, "%s%s%s", text, is_whole ? ".0" : "", apl_text_of_type(type));
}

// The number in `scalar`, as files of values have it.
static inline void apl_trace_number(const struct apl_value* x) {
  const char* const type = apl_text_of_type(x->type);
  switch (x->type) {
    case APL_I8: fprintf(stderr, "%d%s", x->scalar.i8, type); break;
    case APL_I16: fprintf(stderr, "%d%s", x->scalar.i16, type); break;
    case APL_I32: fprintf(stderr, "%ld%s", (long)x->scalar.i32, type); break;
    case APL_I64: fprintf(stderr, "%lld%s", (long long)x->scalar.i64, type); break;
    case APL_U8: fprintf(stderr, "%u%s", x->scalar.u8, type); break;
    case APL_U16: fprintf(stderr, "%u%s", x->scalar.u16, type); break;
    case APL_U32: fprintf(stderr, "%lu%s", (unsigned long)x->scalar.u32, type); break;
    case APL_U64: fprintf(stderr, "%llu%s", (unsigned long long)x->scalar.u64, type); break;
    case APL_F16: apl_trace_float(apl_from_half(apl_from_bits_f16(x->scalar.f16)), x->type); break;
    case APL_BF16: apl_trace_float(apl_from_bf16(apl_from_bits_bf16(x->scalar.bf16)), x->type); break;
    case APL_F32: apl_trace_float((double)x->scalar.f32, x->type); break;
    case APL_F64: apl_trace_float(x->scalar.f64, x->type); break;
    case APL_BOOL: fputs(x->scalar.boolean ? "true" : "false", stderr); break;
    default: fputs("()", stderr); break;
  }
}

// A scalar, or an array whose element (i, j, ...) lies at `offset + i * strides[0] + j * strides[1] + ...` of `data`,
// in elements of `width` bytes.
static inline int apl_trace(struct apl_context* ctx, const char* words, const struct apl_value* x, int64_t width,
                            int64_t offset, const int64_t* strides) {
  int64_t at[APL_MAX_RANK] = {0}, count = 1;
  for (int32_t d = 0; d < x->rank; ++d) count *= x->shape[d];
  const int before = x->rank > 0 ? ctx->backend->synchronise(ctx) : APL_SUCCESS;
  if (before != APL_SUCCESS) return before;
  fputs(words, stderr);
  if (count == 0) {
    fputs("empty(", stderr);
    for (int32_t d = 0; d < x->rank; ++d) fprintf(stderr, "[%lld]", (long long)x->shape[d]);
    fprintf(stderr, "%s)", apl_text_of_type(x->type));
  }
  for (int64_t k = 0; k < count; ++k) {
    // Brackets of rows that begin here, and behind the element of those that end.
    int32_t whole = 0;
    for (int32_t d = x->rank; d > 0 && at[d - 1] == 0; --d) ++whole;
    if (k > 0) fputs(", ", stderr);
    for (int32_t d = 0; d < whole; ++d) fputs("[", stderr);
    struct apl_value element = *x;
    if (x->rank > 0) {
      int64_t place = offset;
      for (int32_t d = 0; d < x->rank; ++d) place += at[d] * strides[d];
      const int status =
          width == 0 ? APL_SUCCESS
                     : ctx->backend->download(ctx, &element.scalar, (const char*)x->data + place * width, width);
      if (status != APL_SUCCESS) return status;
    }
    apl_trace_number(&element);
    for (int32_t d = x->rank; d > 0; --d) {
      if (++at[d - 1] < x->shape[d - 1]) break;
      at[d - 1] = 0;
      fputs("]", stderr);
    }
  }
  fputs("\n", stderr);
  return APL_SUCCESS;
}

#endif
