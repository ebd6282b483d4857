// The kernel of `aplc cuda --emit=kernel -e mm0 examples/mm0.fut`, as a program: checked in some places, and its speed.
//   nvcc -O3 -std=c++17 -arch=sm_90 -I FOLDER bench/kernel_file.cu -o kernel_file    with FOLDER/mm0.cu; arguments: sizes
#include "mm0.cu"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

static void check(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::printf("%s\n", cudaGetErrorString(status));
  std::exit(1);
}

int main(int argc, char **argv) {
  const int64_t a = argc > 1 ? std::atoll(argv[1]) : 4096, b = argc > 2 ? std::atoll(argv[2]) : a,
                q = argc > 3 ? std::atoll(argv[3]) : a;
  std::vector<float> x(a * q), y(b * q), z(a * b);
  for (size_t k = 0; k < x.size(); ++k) x[k] = static_cast<float>(k * 7 % 11) - 5;
  for (size_t k = 0; k < y.size(); ++k) y[k] = static_cast<float>(k * 5 % 13) - 6;
  float *X, *Y, *Z;
  check(cudaMalloc(&X, x.size() * 4));
  check(cudaMalloc(&Y, y.size() * 4));
  check(cudaMalloc(&Z, z.size() * 4));
  check(cudaMemcpy(X, x.data(), x.size() * 4, cudaMemcpyHostToDevice));
  check(cudaMemcpy(Y, y.data(), y.size() * 4, cudaMemcpyHostToDevice));
  cudaStream_t stream;
  cudaEvent_t start, stop;
  check(cudaStreamCreate(&stream));
  check(cudaEventCreate(&start));
  check(cudaEventCreate(&stop));
  constexpr int kRuns = 20;
  for (int run = -5; run < kRuns; ++run) {
    if (run == 0) check(cudaEventRecord(start, stream));
    check(mm0(a, b, q, X, Y, Z, stream));
  }
  check(cudaEventRecord(stop, stream));
  check(cudaStreamSynchronize(stream));
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, start, stop));
  check(cudaMemcpy(z.data(), Z, z.size() * 4, cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (int64_t k = 0; k < 1000; ++k) {
    const int64_t i = k * 7919 % a, j = k * 104729 % b;
    float sum = 0;  // small integers: exact in any order
    for (int64_t l = 0; l < q; ++l) sum += x[i * q + l] * y[j * q + l];
    wrong += z[i * b + j] != sum;
  }
  std::printf("mm0 %lld %lld %lld: %.1f TFLOP/s, %d of 1000 elements wrong\n", static_cast<long long>(a),
              static_cast<long long>(b), static_cast<long long>(q),
              2e-9 * static_cast<double>(a) * static_cast<double>(b) * static_cast<double>(q) * kRuns / milliseconds, wrong);
  return wrong != 0;
}
