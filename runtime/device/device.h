// All that a generated kernel may use beside plain C++. Three implementations behind one set of names: CUDA (nvcc and
// NVRTC), HIP (hipcc and clang) and emulation (APL_EMULATE: the host's compiler), where every access to global and
// shared memory is shown to the emulator first. Kernel text is the same for all of them.
//
//   APL_KERNEL(256) void NAME(apl_in<float> A, apl_out<float> C, int64_t m, apl_failure *failure) {
//     const apl_shared<float> a_s = apl_shared_at<float>(0, 1024);  // byte offset and element count
//     a_s(apl_thread()) = A(apl_block() * 256 + apl_thread());
//     apl_barrier();
//     ...
//   }
//   APL_EXPORT(NAME)
//
// An element of an apl_out or an apl_shared stands for an lvalue; `auto x = C(i)` does not read it in emulation, so
// variables are declared with their type.
#ifndef APL_DEVICE_H
#define APL_DEVICE_H

#if defined(__CUDACC_RTC__)
// NVRTC has no standard headers, and its mathematics needs none.
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#else
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#endif

// The failure cell, as in context.h: the first failed check since the host last looked.
struct apl_failure {
  int32_t code;
  int32_t location;
  int64_t values[12];
  int32_t call_count;
  int32_t calls[16];
};

// Threads that take each instruction together: texts for machines that have others say how many before.
#ifndef APL_WARP
#define APL_WARP 32
#endif

struct apl_half;    // f16
struct apl_bfloat;  // bf16

#if defined(APL_EMULATE)
#include "runtime/device/emulated.h"
#else
#if defined(__HIP__)
#include "runtime/device/hip.h"
#else
#include "runtime/device/cuda.h"
#endif
#include "runtime/device/gpu.h"
#endif

#include "runtime/device/numbers.h"
#include "runtime/device/warp.h"

#include "runtime/device/matrix.h"

#include "runtime/device/fragments.h"

#endif
