// What packed contractions ask of the machine: its vectors, its dot instructions and its second cache.
#ifndef APL_PACKED_MACHINE_H
#define APL_PACKED_MACHINE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

// Vectors of the machine that the compiler knows: bytes of one, and how many registers there are.
#if defined(__AVX512F__) && (!defined(__clang__) || defined(APL_WIDE_VECTORS))
#define APL_VECTOR_BYTES 64
#define APL_VECTOR_REGISTERS 32
#elif defined(__AVX512VL__)
#define APL_VECTOR_BYTES 32
#define APL_VECTOR_REGISTERS 32
#elif defined(__AVX__)
#define APL_VECTOR_BYTES 32
#define APL_VECTOR_REGISTERS 16
#elif defined(__aarch64__)
#define APL_VECTOR_BYTES 16
#define APL_VECTOR_REGISTERS 32
#else
#define APL_VECTOR_BYTES 16
#define APL_VECTOR_REGISTERS 16
#endif

// Of vectors that are written as such: clang prefers narrower ones for those that it makes itself.
#ifdef __AVX512F__
#define APL_EXPLICIT_BYTES 64
#else
#define APL_EXPLICIT_BYTES APL_VECTOR_BYTES
#endif

#define APL_PACKED_LEAST(a, b) ((a) < (b) ? (a) : (b))
#ifndef APL_INLINE
#define APL_INLINE static inline __attribute__((always_inline))
#endif

// A micro-kernel may fuse a product with the sum that it goes to, and uses the widest vectors. Where its loop begins
// must not depend on what stands before: instructions are fetched by lines, and a loop across one more took 1.3 times
// as long.
#if defined(__clang__)
#ifdef __AVX512F__
#define APL_WIDEST __attribute__((min_vector_width(512)))
#else
#define APL_WIDEST
#endif
#define APL_MICRO_KERNEL APL_WIDEST
#define APL_FUSED _Pragma("clang fp contract(fast)")
#else
#ifdef __AVX512F__
#define APL_WIDEST __attribute__((target("prefer-vector-width=512")))
#else
#define APL_WIDEST
#endif
#define APL_MICRO_KERNEL __attribute__((aligned(64), optimize("fp-contract=fast", "align-loops=64"))) APL_WIDEST
#define APL_FUSED
#endif

// Straight code of very many products: the passes that look for more than sums to fuse take most of the time to compile
// and find nothing.
#if defined(__clang__)
#define APL_SECTION
#else
#define APL_SECTION __attribute__((optimize("O1", "expensive-optimizations", "fp-contract=fast"))) APL_WIDEST
#endif

// Dot instructions: lanes of 32 bits are pairs of 16-bit integers, whose products are added to sums of 32 bits.
typedef int32_t apl_dot_pair __attribute__((may_alias));
typedef int32_t apl_dot_wide __attribute__((vector_size(APL_VECTOR_BYTES), may_alias));
typedef int32_t apl_dot_narrow __attribute__((vector_size(16), may_alias));
#define APL_DOT_BY_SHIFTS(sum, m, n) ((sum) + ((m) << 16 >> 16) * ((n) << 16 >> 16) + ((m) >> 16) * ((n) >> 16))
#if defined(__AVX512VNNI__) && defined(__AVX512VL__) && defined(__clang__)
#define APL_DOT_64(sum, m, n) __builtin_ia32_vpdpwssd512(sum, m, n)
#define APL_DOT_32(sum, m, n) __builtin_ia32_vpdpwssd256(sum, m, n)
#define APL_DOT_16(sum, m, n) __builtin_ia32_vpdpwssd128(sum, m, n)
#elif defined(__AVX512VNNI__) && defined(__AVX512VL__)
#define APL_DOT_64(sum, m, n) __builtin_ia32_vpdpwssd_v16si(sum, m, n)
#define APL_DOT_32(sum, m, n) __builtin_ia32_vpdpwssd_v8si(sum, m, n)
#define APL_DOT_16(sum, m, n) __builtin_ia32_vpdpwssd_v4si(sum, m, n)
#else
#define APL_DOT_64 APL_DOT_BY_SHIFTS
#ifdef __AVX2__
typedef int16_t apl_dot_halves_32 __attribute__((vector_size(32)));
#define APL_DOT_32(sum, m, n) \
  ((sum) + (apl_dot_wide)__builtin_ia32_pmaddwd256((apl_dot_halves_32)(m), (apl_dot_halves_32)(n)))
#else
#define APL_DOT_32 APL_DOT_BY_SHIFTS
#endif
#ifdef __SSE2__
typedef int16_t apl_dot_halves_16 __attribute__((vector_size(16)));
#define APL_DOT_16(sum, m, n) \
  ((sum) + (apl_dot_narrow)__builtin_ia32_pmaddwd128((apl_dot_halves_16)(m), (apl_dot_halves_16)(n)))
#else
#define APL_DOT_16 APL_DOT_BY_SHIFTS
#endif
#endif
APL_INLINE apl_dot_narrow apl_dot_narrow_pairs(apl_dot_narrow sum, apl_dot_narrow m, apl_dot_narrow n) {
  return APL_DOT_16(sum, m, n);
}
APL_INLINE apl_dot_wide apl_dot_wide_pairs(apl_dot_wide sum, apl_dot_wide m, apl_dot_wide n) {
#if APL_VECTOR_BYTES == 64
  return APL_DOT_64(sum, m, n);
#elif APL_VECTOR_BYTES == 32
  return APL_DOT_32(sum, m, n);
#else
  return APL_DOT_16(sum, m, n);
#endif
}

// Bytes of the second cache: as Linux tells, else as many as is common.
static inline int64_t apl_packed_second_cache(void) {
#ifdef APL_PACKED_SECOND_CACHE
  return APL_PACKED_SECOND_CACHE;
#else
  enum { kCaches = 8 };
  const int64_t common = (int64_t)1024 * 1024, least = common / 4, most = 4 * common;
  static int64_t known;
  int64_t bytes = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (bytes > 0) return bytes;
  bytes = common;
  for (int index = 0; index < kCaches; ++index) {
    char name[96];
    int level = 0, kilobytes = 0;
    (void)snprintf(name, sizeof name, "/sys/devices/system/cpu/cpu0/cache/index%d/level", index);
    FILE* file = fopen(name, "r");
    if (!file) break;
    const bool second = fscanf(file, "%d", &level) == 1 && level == 2;
    (void)fclose(file);
    if (!second) continue;
    (void)snprintf(name, sizeof name, "/sys/devices/system/cpu/cpu0/cache/index%d/size", index);
    file = fopen(name, "r");
    if (!file) break;
    if (fscanf(file, "%dK", &kilobytes) == 1 && kilobytes > 0) bytes = (int64_t)kilobytes * 1024;
    (void)fclose(file);
    break;
  }
  bytes = bytes < least ? least : bytes > most ? most : bytes;
  // All threads have the number of the first: memory is asked for and used by it.
  int64_t first = 0;
  const bool is_first = __atomic_compare_exchange_n(&known, &first, bytes, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return is_first ? bytes : first;
#endif
}

#endif
