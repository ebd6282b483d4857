// What the cores reach at best, for benchmarks on the CPU: products fused with sums in registers, and memory.
#include <omp.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef __aarch64__
#define REGISTER "w"
#else
#define REGISTER "v"
#endif
#ifdef __AVX512F__
#define BYTES 64
#elif defined(__AVX__)
#define BYTES 32
#else
#define BYTES 16
#endif
typedef float lanes __attribute__((vector_size(BYTES)));
typedef double wide_lanes __attribute__((vector_size(BYTES)));

enum { kChains = 12, kSteps = 1 << 22, kTimes = 5 };

#define PEAK(NAME, VECTOR)                                                                        \
  static double NAME(void) {                                                                      \
    double seconds = 0;                                                                           \
    for (int r = 0; r < kTimes; ++r) {                                                            \
      const double begin = omp_get_wtime();                                                       \
      _Pragma("omp parallel") {                                                                   \
        VECTOR x = {0}, y = {0}, sums[kChains] = {{0}};                                           \
        __asm__ volatile("" : "+" REGISTER(x), "+" REGISTER(y));                                  \
        for (int s = 0; s < kSteps; ++s) {                                                        \
          _Pragma("GCC unroll 12") for (int c = 0; c < kChains; ++c) sums[c] = x * y + sums[c];   \
          __asm__ volatile(""                                                                     \
                           : "+" REGISTER(sums[0]), "+" REGISTER(sums[1]), "+" REGISTER(sums[2]), \
                             "+" REGISTER(sums[3]));                                              \
        }                                                                                         \
        for (int c = 0; c < kChains; ++c) __asm__ volatile("" ::REGISTER(sums[c]));               \
      }                                                                                           \
      const double now = omp_get_wtime() - begin;                                                 \
      if (r == 0 || now < seconds) seconds = now;                                                 \
    }                                                                                             \
    const double lanes_of = (double)(BYTES / sizeof(((VECTOR){0})[0]));                           \
    return 2 * lanes_of * kChains * kSteps * omp_get_max_threads() / seconds;                     \
  }
PEAK(peak_single, lanes)
PEAK(peak_double, wide_lanes)

// Operations a second of fused products and sums, of f32 or f64, on all threads.
double peak_of(int bytes) { return bytes == 4 ? peak_single() : peak_double(); }

// Bytes a second: of a sum that only reads (streams = 1), or of a triad, which reads two arrays and writes one.
double bytes_of(int streams) {
  const int64_t n = (int64_t)1 << 25;
  float* const a = aligned_alloc(64, (size_t)n * 4);
  float* const b = aligned_alloc(64, (size_t)n * 4);
  float* const c = aligned_alloc(64, (size_t)n * 4);
  double seconds = 0;
  if (!a || !b || !c) return 0;
#pragma omp parallel for
  for (int64_t k = 0; k < n; ++k) a[k] = 1, b[k] = 2, c[k] = 3;
  for (int r = 0; r < kTimes; ++r) {
    const double begin = omp_get_wtime();
    float sum = 0;
    if (streams == 1) {
#pragma omp parallel for simd reduction(+ : sum)
      for (int64_t k = 0; k < n; ++k) sum += a[k];
    } else {
#pragma omp parallel for simd
      for (int64_t k = 0; k < n; ++k) a[k] = b[k] + 3.0F * c[k];
    }
    __asm__ volatile("" ::REGISTER(sum));
    const double now = omp_get_wtime() - begin;
    if (r == 0 || now < seconds) seconds = now;
  }
  free(a), free(b), free(c);
  return (double)(n * 4 * (streams == 1 ? 1 : 3)) / seconds;
}
