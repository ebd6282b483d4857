// What hipcc has of its own, as far as kernels use it: for clang's parser on machines without HIP's headers.
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(threads) __attribute__((launch_bounds(threads)))
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(bytes) __attribute__((aligned(bytes)))

#pragma clang force_cuda_host_device begin
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#pragma clang force_cuda_host_device end

struct dim3 {
  unsigned x, y, z;
};
extern const __device__ __attribute__((weak)) dim3 threadIdx, blockIdx, blockDim;

struct uint2 {
  unsigned x, y;
};
struct uint4 {
  unsigned x, y, z, w;
};

__device__ uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w);

__device__ float rsqrtf(float x);
__device__ double rsqrt(double x);
__device__ void __syncthreads();
__device__ void __threadfence();
__device__ void __threadfence_block();
__device__ int atomicCAS(int* at, int seen, int made);
__device__ unsigned atomicCAS(unsigned* at, unsigned seen, unsigned made);
__device__ unsigned long long atomicCAS(unsigned long long* at, unsigned long long seen, unsigned long long made);
__device__ unsigned atomicExch(unsigned* at, unsigned made);
__device__ unsigned atomicInc(unsigned* at, unsigned last);
__device__ unsigned long long atomicAdd(unsigned long long* at, unsigned long long more);
__device__ unsigned __shfl_xor(unsigned value, int mask, int width);
__device__ unsigned long long __shfl_xor(unsigned long long value, int mask, int width);
__device__ unsigned __shfl(unsigned value, int lane, int width);
__device__ unsigned long long __shfl(unsigned long long value, int lane, int width);
__device__ long long __mul64hi(long long a, long long b);
__device__ unsigned long long __umul64hi(unsigned long long a, unsigned long long b);
__device__ unsigned long long __ballot(int holds);
__device__ int __ffsll(unsigned long long bits);
__device__ int __popc(unsigned bits);
__device__ int __popcll(unsigned long long bits);
__device__ int __clzll(long long bits);
__device__ unsigned __byte_perm(unsigned a, unsigned b, unsigned selector);
