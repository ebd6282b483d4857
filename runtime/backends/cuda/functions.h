// The CUDA driver's API, as much as is used of it, in C: for the runtime in C++ (where a namespace is around it) and
// for generated libraries.
#ifndef APL_CUDA_FUNCTIONS_H
#define APL_CUDA_FUNCTIONS_H

// What cuda.h declares; the names are its own.
typedef unsigned long long CUdeviceptr;
typedef int CUdevice;
typedef struct CUctx_st* CUcontext;
typedef struct CUmod_st* CUmodule;
typedef struct CUfunc_st* CUfunction;
typedef struct CUstream_st* CUstream;
typedef struct CUevent_st* CUevent;

enum {
  kOutOfMemory = 2,               // CUDA_ERROR_OUT_OF_MEMORY
  kClockRate = 13,                // CU_DEVICE_ATTRIBUTE_CLOCK_RATE, kHz
  kMultiprocessors = 16,          // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
  kMemoryClockRate = 36,          // CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, kHz
  kMemoryBusWidth = 37,           // CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, bits
  kMultiprocessorThreads = 39,    // CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR
  kMultiprocessorShared = 81,     // CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR
  kMultiprocessorRegisters = 82,  // CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR
  kBlockShared = 97,              // CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
  kCapabilityMajor = 75,          // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
  kCapabilityMinor = 76,          // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
  kMaxThreadsPerBlock = 0,        // CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
  kStaticSharedBytes = 1,         // CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
  kLocalBytes = 3,                // CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES
  kRegisters = 4,                 // CU_FUNC_ATTRIBUTE_NUM_REGS
  kMaxDynamicSharedBytes = 8,     // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
  kNonBlocking = 1,               // CU_STREAM_NON_BLOCKING
  kHostMapped = 2,                // CU_MEMHOSTALLOC_DEVICEMAP
};

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
  X(context_limit, "cuCtxGetLimit", (size_t*, int))                                                               \
  X(set_context_limit, "cuCtxSetLimit", (int, size_t))                                                            \
  X(stream_create, "cuStreamCreate", (CUstream*, unsigned))                                                       \
  X(stream_destroy, "cuStreamDestroy_v2", (CUstream))                                                             \
  X(stream_synchronise, "cuStreamSynchronize", (CUstream))                                                        \
  X(allocate, "cuMemAlloc_v2", (CUdeviceptr*, size_t))                                                            \
  X(free, "cuMemFree_v2", (CUdeviceptr))                                                                          \
  X(host_allocate, "cuMemHostAlloc", (void**, size_t, unsigned))                                                  \
  X(host_free, "cuMemFreeHost", (void*))                                                                          \
  X(to_device, "cuMemcpyHtoDAsync_v2", (CUdeviceptr, const void*, size_t, CUstream))                              \
  X(to_host, "cuMemcpyDtoHAsync_v2", (void*, CUdeviceptr, size_t, CUstream))                                      \
  X(copy, "cuMemcpyDtoDAsync_v2", (CUdeviceptr, CUdeviceptr, size_t, CUstream))                                   \
  X(set_bytes, "cuMemsetD8Async", (CUdeviceptr, unsigned char, size_t, CUstream))                                 \
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

#endif
