// What bench/programs_gpu.py compares with beside torch: CUB's device-wide algorithms, and loops in plain CUDA as one
// writes them. Functions take results, then arguments, then the sizes of the arrays, and work on the legacy default
// stream; another number than 0 is CUDA's error.
#include <cstdint>

#include <cub/cub.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

namespace {

// CUB asks for its memory first; kept for the next call.
template <class Call>
int with_memory(Call call) {
  static void *memory = nullptr;
  static size_t held = 0;
  size_t bytes = 0;
  if (cudaError_t error = call(nullptr, bytes)) return error;
  if (bytes > held) {
    cudaFree(memory);
    held = 0;
    if (cudaError_t error = cudaMalloc(&memory, bytes)) return error;
    held = bytes;
  }
  if (cudaError_t error = call(memory, bytes)) return error;
  return cudaGetLastError();
}

struct Above {
  __device__ bool operator()(float x) const { return x > 0.5f; }
};

struct Pair {
  float a, b;
};

struct Compose {
  __device__ Pair operator()(Pair x, Pair y) const { return {x.a + y.a, fmaxf(x.b + y.a, y.b)}; }
};

struct Zip {
  const float *a, *b;
  __device__ Pair operator()(int64_t i) const { return {a[i], b[i]}; }
};

__global__ void bodies(float *ax, float *ay, float *az, const float *xs, const float *ys, const float *zs, const float *ms,
                       int n) {
  __shared__ float4 tile[256];
  int i = blockIdx.x * 256 + threadIdx.x;
  float x = i < n ? xs[i] : 0, y = i < n ? ys[i] : 0, z = i < n ? zs[i] : 0, a = 0, b = 0, c = 0;
  for (int first = 0; first < n; first += 256) {
    int j = first + threadIdx.x;
    tile[threadIdx.x] = j < n ? make_float4(xs[j], ys[j], zs[j], ms[j]) : make_float4(0, 0, 0, 0);
    __syncthreads();
#pragma unroll 16
    for (int k = 0; k < 256; ++k) {
      float4 other = tile[k];
      float dx = other.x - x, dy = other.y - y, dz = other.z - z;
      float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
      float s = other.w * inverse * inverse * inverse;
      a += s * dx;
      b += s * dy;
      c += s * dz;
    }
    __syncthreads();
  }
  if (i < n) ax[i] = a, ay[i] = b, az[i] = c;
}

__global__ void heat_2d(float *v, const float *u, int n, int m) {
  int j = blockIdx.x * 32 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y;
  if (i >= n || j >= m) return;
  size_t at = (size_t)i * m + j;
  float here = u[at];
  v[at] = i == 0 || j == 0 || i == n - 1 || j == m - 1
              ? here
              : here + 0.1f * (u[at - m] + u[at + m] + u[at - 1] + u[at + 1] - 4 * here);
}

__global__ void heat_3d(float *v, const float *u, int n, int m, int k) {
  int z = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, x = blockIdx.z;
  if (y >= m || z >= k) return;
  size_t plane = (size_t)m * k, at = x * plane + (size_t)y * k + z;
  float here = u[at];
  v[at] = x == 0 || y == 0 || z == 0 || x == n - 1 || y == m - 1 || z == k - 1
              ? here
              : here + 0.1f * (u[at - plane] + u[at + plane] + u[at - k] + u[at + k] + u[at - 1] + u[at + 1] - 6 * here);
}

__global__ void life(uint8_t *v, const uint8_t *u, int n, int m) {
  int j = blockIdx.x * 32 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y;
  if (i >= n || j >= m) return;
  size_t up = (size_t)(i == 0 ? n - 1 : i - 1) * m, down = (size_t)(i == n - 1 ? 0 : i + 1) * m, here = (size_t)i * m;
  int left = j == 0 ? m - 1 : j - 1, right = j == m - 1 ? 0 : j + 1;
  int around = u[up + left] + u[up + j] + u[up + right] + u[here + left] + u[here + right] + u[down + left] + u[down + j] +
               u[down + right];
  v[here + j] = around == 3 || (around == 2 && u[here + j]);
}

__global__ void window_7(float *out, const float *in, const float *w, int n, int m) {
  __shared__ float tile[14][38], weights[49];
  int x0 = blockIdx.x * 32, y0 = blockIdx.y * 8, thread = threadIdx.y * 32 + threadIdx.x;
  if (thread < 49) weights[thread] = w[thread];
  for (int k = thread; k < 14 * 38; k += 256) {
    int y = y0 + k / 38, x = x0 + k % 38;
    tile[k / 38][k % 38] = y < n && x < m ? in[(size_t)y * m + x] : 0;
  }
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int a = 0; a < 7; ++a)
#pragma unroll
    for (int b = 0; b < 7; ++b) sum += tile[threadIdx.y + a][threadIdx.x + b] * weights[a * 7 + b];
  if (y0 + threadIdx.y < n - 6 && x0 + threadIdx.x < m - 6)
    out[(size_t)(y0 + threadIdx.y) * (m - 6) + x0 + threadIdx.x] = sum;
}

__global__ void transpose_last(float *out, const float *in, int64_t rows, int64_t columns) {
  __shared__ float tile[32][33];
  int64_t x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8)
    if (x < columns && y + k < rows) tile[threadIdx.y + k][threadIdx.x] = in[(y + k) * columns + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8)
    if (x < rows && y + k < columns) out[(y + k) * rows + x] = tile[threadIdx.x][threadIdx.y + k];
}

__global__ void paths(float *d, int n, int k) {
  int j = blockIdx.x * 32 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y;
  if (i < n && j < n) d[i * n + j] = fminf(d[i * n + j], d[i * n + k] + d[k * n + j]);
}

__global__ void lu_column(float *a, int n, int k) {
  int i = k + 1 + blockIdx.x * 128 + threadIdx.x;
  if (i < n) a[i * n + k] /= a[k * n + k];
}

__global__ void lu_rest(float *a, int n, int k) {
  int j = k + 1 + blockIdx.x * 32 + threadIdx.x, i = k + 1 + blockIdx.y * 8 + threadIdx.y;
  if (i < n && j < n) a[i * n + j] -= a[i * n + k] * a[k * n + j];
}

__global__ void mandelbrot(int *out, int side, int limit) {
  int j = blockIdx.x * 32 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y;
  if (i >= side || j >= side) return;
  float x = (float)j / side * 3 - 2, y = (float)i / side * 3 - 1.5f, a = 0, b = 0;
  int steps = 0;
  while (steps < limit && a * a + b * b < 4) {
    float next = a * a - b * b + x;
    b = 2 * a * b + y;
    a = next;
    ++steps;
  }
  out[i * side + j] = steps;
}

dim3 blocks_2d(int64_t rows, int64_t columns) { return dim3((columns + 31) / 32, (rows + 7) / 8); }

// Steps from one array to another and back; the start stays as it is, so that a call can be repeated.
template <class T, class Step>
int steps_of(T *out, const T *start, int64_t count, int steps, Step step) {
  static T *other = nullptr;
  static int64_t held = 0;
  if (held < count) {
    cudaFree(other);
    if (cudaError_t error = cudaMalloc(&other, count * sizeof(T))) return error;
    held = count;
  }
  const T *from = start;
  for (int k = 0; k < steps; ++k) {
    T *to = (steps - k) % 2 ? out : other;
    step(to, from);
    from = to;
  }
  return cudaGetLastError();
}

}  // namespace

extern "C" {

int peer_sum(float *out, const float *in, int64_t n) {
  return with_memory([&](void *memory, size_t &bytes) { return cub::DeviceReduce::Sum(memory, bytes, in, out, n); });
}

int peer_scan_f32(float *out, const float *in, int64_t n) {
  return with_memory([&](void *memory, size_t &bytes) { return cub::DeviceScan::InclusiveSum(memory, bytes, in, out, n); });
}

int peer_scan_i32(int *out, const int *in, int64_t n) {
  return with_memory([&](void *memory, size_t &bytes) { return cub::DeviceScan::InclusiveSum(memory, bytes, in, out, n); });
}

// Into pairs that lie side by side, in memory of its own.
int peer_scan_pairs(float *, float *, const float *a, const float *b, int64_t n, int64_t) {
  static Pair *pairs = nullptr;
  static int64_t held = 0;
  if (held < n) {
    cudaFree(pairs);
    if (cudaError_t error = cudaMalloc(&pairs, n * sizeof(Pair))) return error;
    held = n;
  }
  auto in = thrust::make_transform_iterator(thrust::counting_iterator<int64_t>(0), Zip{a, b});
  return with_memory(
      [&](void *memory, size_t &bytes) { return cub::DeviceScan::InclusiveScan(memory, bytes, in, pairs, Compose{}, n); });
}

int peer_kept(float *out, const float *in, int64_t n) {
  static int64_t *count = nullptr;
  if (!count && cudaMalloc(&count, sizeof *count)) return cudaErrorMemoryAllocation;
  return with_memory(
      [&](void *memory, size_t &bytes) { return cub::DeviceSelect::If(memory, bytes, in, out, count, n, Above{}); });
}

// With 2^26 bins it asks for more memory than an H100 has, and ends with an access out of bounds on an H200.
int peer_counts(int *out, int64_t k, const int *keys, int64_t n) {
  if (k > 1 << 22) return cudaErrorNotSupported;
  return with_memory([&](void *memory, size_t &bytes) {
    return cub::DeviceHistogram::HistogramEven(memory, bytes, keys, out, (int)k + 1, 0, (int)k, n);
  });
}

int peer_sorted(int *out, const int *in, int64_t n) {
  return with_memory([&](void *memory, size_t &bytes) { return cub::DeviceRadixSort::SortKeys(memory, bytes, in, out, n); });
}

int peer_bodies(float *ax, float *ay, float *az, const float *xs, const float *ys, const float *zs, const float *ms, int64_t n,
                int64_t, int64_t, int64_t) {
  bodies<<<(n + 255) / 256, 256>>>(ax, ay, az, xs, ys, zs, ms, n);
  return cudaGetLastError();
}

int peer_heat_2d(float *out, int steps, const float *start, int64_t n, int64_t m) {
  return steps_of(out, start, n * m, steps,
                  [&](float *to, const float *from) { heat_2d<<<blocks_2d(n, m), dim3(32, 8)>>>(to, from, n, m); });
}

int peer_heat_3d(float *out, int steps, const float *start, int64_t n, int64_t m, int64_t k) {
  return steps_of(out, start, n * m * k, steps, [&](float *to, const float *from) {
    dim3 blocks = blocks_2d(m, k);
    blocks.z = n;
    heat_3d<<<blocks, dim3(32, 8)>>>(to, from, n, m, k);
  });
}

int peer_life(uint8_t *out, int steps, const uint8_t *start, int64_t n, int64_t m) {
  return steps_of(out, start, n * m, steps,
                  [&](uint8_t *to, const uint8_t *from) { life<<<blocks_2d(n, m), dim3(32, 8)>>>(to, from, n, m); });
}

int peer_window_7(float *out, const float *in, const float *w, int64_t n, int64_t m, int64_t, int64_t) {
  window_7<<<blocks_2d(n - 6, m - 6), dim3(32, 8)>>>(out, in, w, n, m);
  return cudaGetLastError();
}

int peer_transposed(float *out, const float *in, int64_t n, int64_t m) {
  transpose_last<<<dim3((m + 31) / 32, (n + 31) / 32), dim3(32, 8)>>>(out, in, n, m);
  return cudaGetLastError();
}

// The first two dims are one for this order.
int peer_cab(float *out, const float *in, int64_t a, int64_t b, int64_t c) { return peer_transposed(out, in, a * b, c); }

int peer_paths(float *out, const float *in, int64_t n, int64_t) {
  cudaMemcpyAsync(out, in, n * n * sizeof(float), cudaMemcpyDeviceToDevice);
  for (int k = 0; k < n; ++k) paths<<<blocks_2d(n, n), dim3(32, 8)>>>(out, n, k);
  return cudaGetLastError();
}

int peer_lu(float *out, const float *in, int64_t n, int64_t) {
  cudaMemcpyAsync(out, in, n * n * sizeof(float), cudaMemcpyDeviceToDevice);
  for (int k = 0; k + 1 < n; ++k) {
    lu_column<<<(n - k + 126) / 128, 128>>>(out, n, k);
    lu_rest<<<blocks_2d(n - k - 1, n - k - 1), dim3(32, 8)>>>(out, n, k);
  }
  return cudaGetLastError();
}

int peer_mandelbrot(int *out, int64_t side, int limit) {
  mandelbrot<<<blocks_2d(side, side), dim3(32, 8)>>>(out, side, limit);
  return cudaGetLastError();
}
}
