// The part of device.h for hipcc and clang: what HIP calls its barriers and atomic steps. There are no asynchronous
// copies: they go through registers. Warps are waves, of APL_WARP threads.

#define APL_DEVICE __device__ __forceinline__
// Of the program, called in several places.
#define APL_FUNCTION static __device__ __attribute__((noinline))
#define APL_PRAGMA(text) _Pragma(#text)
#define APL_UNROLL _Pragma("unroll")
#define APL_UNROLL_BY(rounds) APL_PRAGMA(unroll(rounds))
// Threads of a block; HIP's second number counts waves, and is left to the compiler.
#define APL_KERNEL(threads, ...) extern "C" __global__ __launch_bounds__(threads)

// Of the threads of a wave, which all come to it: they are in step, only the compiler must not move accesses.
APL_DEVICE void apl_warp_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}

// What no thread writes while the kernel runs.
template <class T>
APL_DEVICE T apl_read(const T* data) {
  return *data;
}

#define APL_FETCH(name)                                                           \
  template <class T>                                                              \
  APL_DEVICE void apl_fetch_##name(T* at, T y) {                                  \
    __hip_atomic_fetch_##name(at, y, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); \
  }
APL_FETCH(add)
APL_FETCH(min)
APL_FETCH(max)
APL_FETCH(and)
APL_FETCH(or)
APL_FETCH(xor)
#undef APL_FETCH

// Waits before the next try, twice as long each time, in units of 64 clocks.
APL_DEVICE void apl_back_off(unsigned& tries) {
  for (unsigned waited = 0; waited < tries; waited += 64) __builtin_amdgcn_s_sleep(1);
  if (tries < 1u << 12) tries *= 2;
}

// Of use where registers have banks.
template <class T>
APL_DEVICE T apl_apart(T number) {
  return number;
}

template <class T>
struct apl_shared;
// A copy of `bytes` (4, 8 or 16, both addresses so aligned) into shared memory; others have it after the next barrier.
template <int bytes, class T, class I, class From, class J>
APL_DEVICE void apl_cp_async(const apl_shared<T>& to, I to_index, const From& from, J from_index) {
  struct alignas(bytes) words {
    unsigned word[bytes / 4];
  };
  *reinterpret_cast<words*>(to.data + to_index) = *reinterpret_cast<const words*>(from.data + from_index);
}
// Or zeros.
template <int bytes, class T, class I, class From, class J>
APL_DEVICE void apl_cp_async_or_zeros(const apl_shared<T>& to, I to_index, const From& from, J from_index,
                                      bool is_inside) {
  if (is_inside) return apl_cp_async<bytes>(to, to_index, from, from_index);
  for (int i = 0; i < bytes / int(sizeof(T)); ++i) to.data[to_index + i] = T(0);
}
APL_DEVICE void apl_cp_async_commit() {}
template <int groups>
APL_DEVICE void apl_cp_async_wait() {}
