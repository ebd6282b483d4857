// Array programs as loops that one writes in C, beside bench/programs_cpu.fut: compiled for the machine, with fast
// maths, so that sums may be ordered anew and functions be vectors. Results go to memory of the caller; by
// bench/programs_cpu.py.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

float c_sum(int64_t n, const float* xs) {
  float s = 0;
#pragma omp parallel for simd reduction(+ : s)
  for (int64_t i = 0; i < n; ++i) s += xs[i];
  return s;
}

float c_dot(int64_t n, const float* xs, const float* ys) {
  float s = 0;
#pragma omp parallel for simd reduction(+ : s)
  for (int64_t i = 0; i < n; ++i) s += xs[i] * ys[i];
  return s;
}

// Blocks: the largest of each, then its place in the block that has the largest of all.
int64_t c_argmax(int64_t n, const float* xs) {
  enum { kBlock = 4096 };
  float most = -INFINITY;
  int64_t at = n;
#pragma omp parallel
  {
    float mine = -INFINITY;
    int64_t block_of_mine = n;
#pragma omp for schedule(static)
    for (int64_t b = 0; b < n; b += kBlock) {
      const int64_t end = b + kBlock < n ? b + kBlock : n;
      float m = -INFINITY;
#pragma omp simd reduction(max : m)
      for (int64_t i = b; i < end; ++i) m = xs[i] > m ? xs[i] : m;
      if (m > mine) mine = m, block_of_mine = b;
    }
#pragma omp critical
    if (mine > most || (mine == most && block_of_mine < at)) most = mine, at = block_of_mine;
  }
  while (at < n && xs[at] != most) ++at;
  return at;
}

void c_prefix_sums(int64_t n, const float* xs, float* out) {
  float s = 0;
  for (int64_t i = 0; i < n; ++i) out[i] = s += xs[i];
}

void c_chain(int64_t n, const float* xs, float* out) {
#pragma omp parallel for simd
  for (int64_t i = 0; i < n; ++i) out[i] = expf(sqrtf(xs[i]) * 0.5f - 1);
}

int64_t c_even(int64_t n, const int32_t* xs, int32_t* out) {
  int64_t kept = 0;
  for (int64_t i = 0; i < n; ++i) {
    out[kept] = xs[i];
    kept += xs[i] % 2 == 0;
  }
  return kept;
}

void c_counts(int64_t k, int64_t n, const int32_t* keys, int32_t* out) {
  memset(out, 0, (size_t)k * sizeof *out);
#pragma omp parallel for reduction(+ : out[:k])
  for (int64_t i = 0; i < n; ++i) ++out[keys[i]];
}

void c_rows(int64_t n, int64_t m, const float* xss, float* out) {
#pragma omp parallel for
  for (int64_t i = 0; i < n; ++i) {
    float s = 0;
    for (int64_t j = 0; j < m; ++j) s += xss[i * m + j];
    out[i] = s;
  }
}

void c_columns(int64_t n, int64_t m, const float* xss, float* out) {
  memset(out, 0, (size_t)m * sizeof *out);
#pragma omp parallel for reduction(+ : out[:m])
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < m; ++j) out[j] += xss[i * m + j];
}

void c_turned(int64_t n, int64_t m, const float* xss, float* out) {
  enum { kTile = 16 };
#pragma omp parallel for
  for (int64_t jj = 0; jj < m; jj += kTile)
    for (int64_t ii = 0; ii < n; ii += kTile)
      for (int64_t j = jj; j < jj + kTile && j < m; ++j)
        for (int64_t i = ii; i < ii + kTile && i < n; ++i) out[j * n + i] = xss[i * m + j];
}

void c_reversed(int64_t a, int64_t b, int64_t c, const float* xsss, float* out) {
  enum { kTile = 16 };
#pragma omp parallel for
  for (int64_t j = 0; j < b; ++j)
    for (int64_t kk = 0; kk < c; kk += kTile)
      for (int64_t ii = 0; ii < a; ii += kTile)
        for (int64_t k = kk; k < kk + kTile && k < c; ++k)
          for (int64_t i = ii; i < ii + kTile && i < a; ++i) out[(k * b + j) * a + i] = xsss[(i * b + j) * c + k];
}

void c_softmax(int64_t n, int64_t m, const float* xss, float* out) {
#pragma omp parallel for
  for (int64_t i = 0; i < n; ++i) {
    float most = xss[i * m], sum = 0;
    for (int64_t j = 0; j < m; ++j) most = xss[i * m + j] > most ? xss[i * m + j] : most;
    for (int64_t j = 0; j < m; ++j) sum += out[i * m + j] = expf(xss[i * m + j] - most);
    for (int64_t j = 0; j < m; ++j) out[i * m + j] /= sum;
  }
}

void c_layernorm(int64_t n, int64_t m, const float* xss, float* out) {
#pragma omp parallel for
  for (int64_t i = 0; i < n; ++i) {
    float mean = 0, variance = 0;
    for (int64_t j = 0; j < m; ++j) mean += xss[i * m + j];
    mean /= m;
    for (int64_t j = 0; j < m; ++j) variance += (xss[i * m + j] - mean) * (xss[i * m + j] - mean);
    const float scale = 1 / sqrtf(variance / m + 1e-5f);
    for (int64_t j = 0; j < m; ++j) out[i * m + j] = (xss[i * m + j] - mean) * scale;
  }
}

static inline float distribution(float d) {
  const float k = 1 / (1 + 0.2316419f * fabsf(d));
  const float polynomial =
      k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
  const float tail = 0.39894228f * expf(-0.5f * d * d) * polynomial;
  return d > 0 ? 1 - tail : tail;
}

void c_black_scholes(int64_t n, const float* prices, const float* strikes, const float* years, float* calls,
                     float* puts) {
  const float r = 0.02f, v = 0.3f;
#pragma omp parallel for simd
  for (int64_t i = 0; i < n; ++i) {
    const float s = prices[i], x = strikes[i], t = years[i];
    const float d1 = (logf(s / x) + (r + 0.5f * v * v) * t) / (v * sqrtf(t));
    const float c1 = distribution(d1), c2 = distribution(d1 - v * sqrtf(t)), discounted = x * expf(-r * t);
    calls[i] = s * c1 - discounted * c2;
    puts[i] = discounted * (1 - c2) - s * (1 - c1);
  }
}

void c_bodies(int64_t n, const float* xs, const float* ys, const float* zs, const float* ms, float* ax, float* ay,
              float* az) {
#pragma omp parallel for
  for (int64_t i = 0; i < n; ++i) {
    float a = 0, b = 0, c = 0;
    for (int64_t j = 0; j < n; ++j) {
      const float dx = xs[j] - xs[i], dy = ys[j] - ys[i], dz = zs[j] - zs[i];
      const float inverse = 1 / sqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
      const float s = ms[j] * inverse * inverse * inverse;
      a += s * dx, b += s * dy, c += s * dz;
    }
    ax[i] = a, ay[i] = b, az[i] = c;
  }
}

// `out` and `other` are both of n by m.
void c_heat(int32_t steps, int64_t n, int64_t m, const float* start, float* out, float* other) {
  float *u = steps % 2 ? other : out, *v = steps % 2 ? out : other;
  memcpy(u, start, (size_t)(n * m) * sizeof *u);
  memcpy(v, start, (size_t)(n * m) * sizeof *v);
  for (int32_t step = 0; step < steps; ++step) {
#pragma omp parallel for
    for (int64_t i = 1; i < n - 1; ++i)
#pragma omp simd
      for (int64_t j = 1; j < m - 1; ++j)
        v[i * m + j] = u[i * m + j] + 0.1f * (u[(i - 1) * m + j] + u[(i + 1) * m + j] + u[i * m + j - 1] +
                                              u[i * m + j + 1] - 4 * u[i * m + j]);
    float* const done = v;
    v = u, u = done;
  }
}

static inline void window(int64_t size, int64_t n, int64_t m, const float* xss, const float* w, float* out) {
  const int64_t rows = n - size + 1, columns = m - size + 1;
#pragma omp parallel for
  for (int64_t i = 0; i < rows; ++i)
#pragma omp simd
    for (int64_t j = 0; j < columns; ++j) {
      float s = 0;
      for (int64_t a = 0; a < size; ++a)
        for (int64_t b = 0; b < size; ++b) s += xss[(i + a) * m + j + b] * w[a * size + b];
      out[i * columns + j] = s;
    }
}
void c_window_3(int64_t n, int64_t m, const float* xss, const float* w, float* out) { window(3, n, m, xss, w, out); }
void c_window_7(int64_t n, int64_t m, const float* xss, const float* w, float* out) { window(7, n, m, xss, w, out); }

void c_mandelbrot(int64_t side, int32_t limit, int32_t* out) {
#pragma omp parallel for schedule(dynamic)
  for (int64_t i = 0; i < side; ++i)
    for (int64_t j = 0; j < side; ++j) {
      const float x = (float)j / side * 3 - 2, y = (float)i / side * 3 - 1.5f;
      float a = 0, b = 0;
      int32_t steps = 0;
      for (; steps < limit && a * a + b * b < 4; ++steps) {
        const float next = a * a - b * b + x;
        b = 2 * a * b + y, a = next;
      }
      out[i * side + j] = steps;
    }
}

// One step: of each of n points of `dims` coordinates the nearest of k centres, and the means of the points of each.
void c_kmeans(int64_t n, int64_t dims, int64_t k, const float* points, const float* centres, float* out) {
  int32_t* const sizes = calloc((size_t)k, sizeof *sizes);
  memset(out, 0, (size_t)(k * dims) * sizeof *out);
#pragma omp parallel for reduction(+ : sizes[:k], out[:k * dims])
  for (int64_t i = 0; i < n; ++i) {
    float least = INFINITY;
    int64_t which = 0;
    for (int64_t c = 0; c < k; ++c) {
      float distance = 0;
      for (int64_t d = 0; d < dims; ++d) {
        const float along = points[i * dims + d] - centres[c * dims + d];
        distance += along * along;
      }
      if (distance < least) least = distance, which = c;
    }
    ++sizes[which];
    for (int64_t d = 0; d < dims; ++d) out[which * dims + d] += points[i * dims + d];
  }
  for (int64_t c = 0; c < k; ++c)
    for (int64_t d = 0; d < dims; ++d) out[c * dims + d] /= (float)(sizes[c] > 1 ? sizes[c] : 1);
  free(sizes);
}

void c_paths(int64_t n, const float* edges, float* d) {
  memcpy(d, edges, (size_t)(n * n) * sizeof *d);
  for (int64_t k = 0; k < n; ++k)
#pragma omp parallel for
    for (int64_t i = 0; i < n; ++i) {
      const float to = d[i * n + k];
#pragma omp simd
      for (int64_t j = 0; j < n; ++j) {
        const float by = to + d[k * n + j];
        d[i * n + j] = by < d[i * n + j] ? by : d[i * n + j];
      }
    }
}

void c_lu(int64_t n, const float* matrix, float* a) {
  memcpy(a, matrix, (size_t)(n * n) * sizeof *a);
  for (int64_t k = 0; k + 1 < n; ++k)
#pragma omp parallel for
    for (int64_t i = k + 1; i < n; ++i) {
      const float factor = a[i * n + k] /= a[k * n + k];
#pragma omp simd
      for (int64_t j = k + 1; j < n; ++j) a[i * n + j] -= factor * a[k * n + j];
    }
}

// Radix sort by digits of eight bits; `other` is of n, too, and the result is in `out`.
void c_sorted(int64_t n, const int32_t* xs, int32_t* out, int32_t* other) {
  const int32_t* from = xs;
  for (int pass = 0; pass < 4; ++pass) {
    int32_t* const to = pass % 2 ? out : other;
    const uint32_t flip = pass == 3 ? 0x80 : 0;
    int64_t at[256] = {0}, sum = 0;
    for (int64_t i = 0; i < n; ++i) ++at[((uint32_t)from[i] >> 8 * pass & 255) ^ flip];
    for (int d = 0; d < 256; ++d) {
      const int64_t count = at[d];
      at[d] = sum, sum += count;
    }
    for (int64_t i = 0; i < n; ++i) to[at[((uint32_t)from[i] >> 8 * pass & 255) ^ flip]++] = from[i];
    from = to;
  }
}

// Stockham's, with the roots of unity in arrays; a and b are of n, too.
void c_fft(int64_t n, const float* re, const float* im, float* out_re, float* out_im, float* a, float* b) {
  float* const roots = malloc((size_t)n * sizeof *roots);
  for (int64_t q = 0; q < n / 2; ++q) {
    const double angle = -M_PI * (double)q / (double)(n / 2);
    roots[2 * q] = (float)cos(angle), roots[2 * q + 1] = (float)sin(angle);
  }
  const float *x = re, *y = im;
  int odd = __builtin_ctzll((unsigned long long)n) % 2;
  for (int64_t stride = 1; stride < n; stride *= 2, odd = !odd) {
    float *u = odd ? out_re : a, *v = odd ? out_im : b;
#pragma omp parallel for
    for (int64_t q = 0; q < n / 2 / stride; ++q) {
      const float c = roots[2 * q * stride], s = roots[2 * q * stride + 1];
#pragma omp simd
      for (int64_t r = 0; r < stride; ++r) {
        const int64_t p = q * stride + r;
        const float dx = x[p] - x[p + n / 2], dy = y[p] - y[p + n / 2];
        u[2 * q * stride + r] = x[p] + x[p + n / 2], v[2 * q * stride + r] = y[p] + y[p + n / 2];
        u[(2 * q + 1) * stride + r] = dx * c - dy * s, v[(2 * q + 1) * stride + r] = dx * s + dy * c;
      }
    }
    x = u, y = v;
  }
  free(roots);
}

void c_small_products(int64_t n, const float* xs, const float* ys, float* out) {
#pragma omp parallel for
  for (int64_t e = 0; e < n; ++e)
    for (int64_t i = 0; i < 4; ++i)
      for (int64_t j = 0; j < 4; ++j) {
        float s = 0;
        for (int64_t k = 0; k < 4; ++k) s += xs[e * 16 + i * 4 + k] * ys[e * 16 + k * 4 + j];
        out[e * 16 + i * 4 + j] = s;
      }
}

void c_attention(int64_t h, int64_t n, int64_t d, const float* qs, const float* ks, const float* vs, float* out) {
#pragma omp parallel
  {
    float* const shares = malloc((size_t)n * sizeof *shares);
#pragma omp for collapse(2)
    for (int64_t head = 0; head < h; ++head)
      for (int64_t i = 0; i < n; ++i) {
        const float *q = qs + (head * n + i) * d, *k = ks + head * n * d, *v = vs + head * n * d;
        float *to = out + (head * n + i) * d, most = -INFINITY, sum = 0;
        for (int64_t j = 0; j < n; ++j) {
          float s = 0;
          for (int64_t c = 0; c < d; ++c) s += q[c] * k[j * d + c];
          shares[j] = s / sqrtf((float)d);
          most = shares[j] > most ? shares[j] : most;
        }
        for (int64_t j = 0; j < n; ++j) sum += shares[j] = expf(shares[j] - most);
        memset(to, 0, (size_t)d * sizeof *to);
        for (int64_t j = 0; j < n; ++j)
          for (int64_t c = 0; c < d; ++c) to[c] += shares[j] / sum * v[j * d + c];
      }
    free(shares);
  }
}
