// What the cores of this machine reach at best: products fused with sums in registers, caches, memory. For records of
// CPUs (aplc/calibrate/host_record.h) and for benchmarks. Compiled for the machine that it runs on, with OpenMP.
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
#define REGISTERS 32
#elif defined(__AVX__)
#define BYTES 32
#define REGISTERS 16
#else
#define BYTES 16
#ifdef __aarch64__
#define REGISTERS 32
#else
#define REGISTERS 16
#endif
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

// Cycles a second of one core: sums of which each waits for the one before it take a cycle each.
double clock_of(void) {
  double seconds = 0;
  for (int r = 0; r < kTimes; ++r) {
    const double begin = omp_get_wtime();
    int64_t sum = r;
    for (int s = 0; s < kSteps; ++s) {
      // The loop's own counter goes beside them.
#pragma GCC unroll 16
      for (int c = 0; c < 16; ++c) {
        sum += s;
        __asm__ volatile("" : "+r"(sum));
      }
    }
    const double now = omp_get_wtime() - begin;
    if (r == 0 || now < seconds) seconds = now;
  }
  return 16.0 * kSteps / seconds;
}

// Bytes a second that all threads read together, each `bytes` of its own, again and again.
double read_of(int64_t bytes) {
  const int64_t n = bytes / BYTES, times = ((int64_t)1 << 28) / bytes + 1;
  double seconds = 0;
  for (int r = 0; r < kTimes; ++r) {
    double begin = 0, end = 0;
#pragma omp parallel
    {
      lanes* const data = aligned_alloc(BYTES, (size_t)(n * BYTES));
      lanes sums[4] = {{0}};
      if (data)
        for (int64_t k = 0; k < n; ++k) data[k] = sums[0];
#pragma omp barrier
#pragma omp single
      begin = omp_get_wtime();
      for (int64_t t = 0; data && t < times; ++t) {
        for (int64_t k = 0; k + 4 <= n; k += 4)
          for (int c = 0; c < 4; ++c) sums[c] += data[k + c];
        __asm__ volatile("" : "+" REGISTER(sums[0]) : : "memory");
      }
#pragma omp barrier
#pragma omp single
      end = omp_get_wtime();
      for (int c = 0; c < 4; ++c) __asm__ volatile("" ::REGISTER(sums[c]));
      free(data);
    }
    if (r == 0 || end - begin < seconds) seconds = end - begin;
  }
  return (double)(n * BYTES * times) * omp_get_max_threads() / seconds;
}

int threads_of(void) { return omp_get_max_threads(); }

// Floats of 32 bits in all vector registers of a core.
int register_floats_of(void) { return BYTES / 4 * REGISTERS; }
