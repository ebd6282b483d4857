// The CUDA driver's API, as much as is used of it, found at run time.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ir/diagnostic.h"

namespace apl::cuda {

// What cuda.h declares; the names are its own.
using CUdeviceptr = unsigned long long;
using CUdevice = int;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;

inline constexpr int kOutOfMemory = 2;            // CUDA_ERROR_OUT_OF_MEMORY
inline constexpr int kClockRate = 13;             // CU_DEVICE_ATTRIBUTE_CLOCK_RATE, kHz
inline constexpr int kProcessors = 16;            // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
inline constexpr int kMemoryClockRate = 36;       // CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, kHz
inline constexpr int kMemoryBusWidth = 37;        // CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, bits
inline constexpr int kProcessorThreads = 39;      // CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR
inline constexpr int kProcessorShared = 81;       // CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR
inline constexpr int kProcessorRegisters = 82;    // CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR
inline constexpr int kBlockShared = 97;           // CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
inline constexpr int kCapabilityMajor = 75;       // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
inline constexpr int kCapabilityMinor = 76;       // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
inline constexpr int kMaxThreadsPerBlock = 0;     // CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
inline constexpr int kStaticSharedBytes = 1;      // CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
inline constexpr int kLocalBytes = 3;             // CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES
inline constexpr int kRegisters = 4;              // CU_FUNC_ATTRIBUTE_NUM_REGS
inline constexpr int kMaxDynamicSharedBytes = 8;  // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
inline constexpr unsigned kNonBlocking = 1;       // CU_STREAM_NON_BLOCKING

// X(member, symbol, parameters)
#define APL_CUDA_FUNCTIONS(X)                                                                                     \
  X(init, "cuInit", (unsigned))                                                                                   \
  X(device_count, "cuDeviceGetCount", (int*))                                                                     \
  X(device_get, "cuDeviceGet", (CUdevice*, int))                                                                  \
  X(device_attribute, "cuDeviceGetAttribute", (int*, int, CUdevice))                                              \
  X(device_name, "cuDeviceGetName", (char*, int, CUdevice))                                                       \
  X(primary_retain, "cuDevicePrimaryCtxRetain", (CUcontext*, CUdevice))                                           \
  X(primary_release, "cuDevicePrimaryCtxRelease_v2", (CUdevice))                                                  \
  X(context_push, "cuCtxPushCurrent_v2", (CUcontext))                                                             \
  X(context_pop, "cuCtxPopCurrent_v2", (CUcontext*))                                                              \
  X(stream_create, "cuStreamCreate", (CUstream*, unsigned))                                                       \
  X(stream_destroy, "cuStreamDestroy_v2", (CUstream))                                                             \
  X(stream_synchronise, "cuStreamSynchronize", (CUstream))                                                        \
  X(allocate, "cuMemAlloc_v2", (CUdeviceptr*, std::size_t))                                                       \
  X(free, "cuMemFree_v2", (CUdeviceptr))                                                                          \
  X(to_device, "cuMemcpyHtoDAsync_v2", (CUdeviceptr, const void*, std::size_t, CUstream))                         \
  X(to_host, "cuMemcpyDtoHAsync_v2", (void*, CUdeviceptr, std::size_t, CUstream))                                 \
  X(copy, "cuMemcpyDtoDAsync_v2", (CUdeviceptr, CUdeviceptr, std::size_t, CUstream))                              \
  X(set_bytes, "cuMemsetD8Async", (CUdeviceptr, unsigned char, std::size_t, CUstream))                            \
  X(module_load, "cuModuleLoadData", (CUmodule*, const void*))                                                    \
  X(module_unload, "cuModuleUnload", (CUmodule))                                                                  \
  X(get_function, "cuModuleGetFunction", (CUfunction*, CUmodule, const char*))                                    \
  X(function_attribute, "cuFuncGetAttribute", (int*, int, CUfunction))                                            \
  X(set_function_attribute, "cuFuncSetAttribute", (CUfunction, int, int))                                         \
  X(launch, "cuLaunchKernel",                                                                                     \
    (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**, void**)) \
  X(event_create, "cuEventCreate", (CUevent*, unsigned))                                                          \
  X(event_record, "cuEventRecord", (CUevent, CUstream))                                                           \
  X(event_synchronise, "cuEventSynchronize", (CUevent))                                                           \
  X(event_elapsed, "cuEventElapsedTime", (float*, CUevent, CUevent))                                              \
  X(event_destroy, "cuEventDestroy_v2", (CUevent))                                                                \
  X(error_name, "cuGetErrorName", (int, const char**))                                                            \
  X(error_string, "cuGetErrorString", (int, const char**))

struct Driver {
#define APL_CUDA_DECLARE(member, symbol, parameters) int(*member) parameters = nullptr;
  APL_CUDA_FUNCTIONS(APL_CUDA_DECLARE)
#undef APL_CUDA_DECLARE

  // Found and started. unsupported.backend if there is none.
  static Result<Driver> open(const std::vector<std::string>& folders);

  // "CUDA: WHAT: cudaErrorName (text)"; run.out-of-memory or bug.internal.
  Status check(int result, const std::string& what) const;
  Diagnostic error(int result, const std::string& what) const;
};

// Makes a context current on this thread, and what was current before again at the end.
class CurrentContext {
 public:
  CurrentContext(const Driver& driver, CUcontext context) : driver_(driver) {
    is_pushed_ = driver.context_push(context) == 0;
  }
  ~CurrentContext() {
    CUcontext ignored = nullptr;
    if (is_pushed_) driver_.context_pop(&ignored);
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

 private:
  const Driver& driver_;
  bool is_pushed_ = false;
};

}  // namespace apl::cuda
