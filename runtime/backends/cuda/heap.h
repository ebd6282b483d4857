// The heap that kernels allocate from (apl_heap of runtime/device/numbers.h), in C: for the runtime in C++ and for
// generated libraries.
#ifndef APL_CUDA_HEAP_H
#define APL_CUDA_HEAP_H

#include <stddef.h>
#include <string.h>

enum {
  kMallocHeapSize = 2,    // CU_LIMIT_MALLOC_HEAP_SIZE
  kHeapOfThread = 4096,   // bytes of each thread that runs at once
  kThreadsAtOnce = 65536  // of a device that says nothing of its multiprocessors
};

// How many bytes kernels of this text should find there; 0: they allocate nothing. CUDA's own heap has 8 MiB, which is
// 30 bytes for each thread of a large GPU. It can be made larger only before a kernel that allocates was launched; what
// it lacks then is an error of the thread that asks for it.
static inline size_t apl_heap_bytes(const char* text, int multiprocessors, int threads_of_each) {
  if (strstr(text, "apl_heap<") == NULL) return 0;
  const int known = multiprocessors > 0 && threads_of_each > 0;
  return (known ? (size_t)multiprocessors * (size_t)threads_of_each : (size_t)kThreadsAtOnce) * kHeapOfThread;
}

// Makes the heap larger, by the driver's functions: by as much as is wanted, or by half of that and so on, where the
// device does not have it. What else the driver may say is no reason to ask again.
static inline void apl_grow_heap(size_t wanted, int (*limit)(size_t*, int), int (*set_limit)(int, size_t)) {
  const int kNoMemory = 2;  // CUDA_ERROR_OUT_OF_MEMORY
  size_t bytes = 0;
  if (wanted == 0 || limit(&bytes, kMallocHeapSize) != 0) return;
  while (wanted > bytes && set_limit(kMallocHeapSize, wanted) == kNoMemory) wanted /= 2;
}

#endif
