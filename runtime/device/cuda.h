// The part of device.h for nvcc and NVRTC: what CUDA calls its barriers and atomic steps, and its asynchronous copies.

#define APL_DEVICE __device__ __forceinline__
// Of the program, called in several places.
#define APL_FUNCTION static __device__ __noinline__
#define APL_PRAGMA(text) _Pragma(#text)
#define APL_UNROLL _Pragma("unroll")
#define APL_UNROLL_BY(rounds) APL_PRAGMA(unroll(rounds))
// Threads of a block, and how many blocks a multiprocessor is to hold.
#define APL_KERNEL(...) extern "C" __global__ __launch_bounds__(__VA_ARGS__)
#define apl_fetch_add atomicAdd
#define apl_fetch_min atomicMin
#define apl_fetch_max atomicMax
#define apl_fetch_and atomicAnd
#define apl_fetch_or atomicOr
#define apl_fetch_xor atomicXor

// Of the threads of a warp, which all come to it.
APL_DEVICE void apl_warp_barrier() { __syncwarp(); }

// What no thread writes while the kernel runs.
template <class T>
APL_DEVICE T apl_read(const T* data) {
  return __ldg(data);
}

// Waits before the next try, twice as long each time: one of the thousands of threads that may want an element gets it,
// and the tries of all others are what that one has to wait for.
APL_DEVICE void apl_back_off(unsigned& tries) {
  __nanosleep(tries);
  if (tries < 1u << 15) tries *= 2;
}

template <class T>
struct apl_traits;
// The number itself, in a way that the compiler cannot see through: the register that is stored, whose place in a
// vector is given, then need not be that of an accumulator, which can lie where no operand of its bank does.
template <class T>
APL_DEVICE T apl_apart(T number) {
  unsigned threads;
  asm("mov.u32 %0, %%ntid.x;" : "=r"(threads));
  const unsigned nothing = threads >> 16;
  if constexpr (apl_traits<T>::is_float && sizeof(T) == 4) {
    number *= __uint_as_float(0x3f800000u | nothing);  // by one
  } else if constexpr (sizeof(T) == 4) {
    unsigned bits;
    memcpy(&bits, &number, 4);
    bits ^= nothing;
    memcpy(&number, &bits, 4);
  }
  return number;
}

template <class T>
struct apl_shared;
// Starts a copy of `bytes` (4, 8 or 16, both addresses so aligned) into shared memory; the thread that started it has
// it after apl_cp_async_wait, the others after the next barrier.
template <int bytes, class T, class I, class From, class J>
APL_DEVICE void apl_cp_async(const apl_shared<T>& to, I to_index, const From& from, J from_index) {
#if __CUDA_ARCH__ >= 800
  unsigned target = static_cast<unsigned>(__cvta_generic_to_shared(to.data + to_index));
  if constexpr (bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(target), "l"(from.data + from_index) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(target), "l"(from.data + from_index), "n"(bytes)
                 : "memory");
#else
  for (int i = 0; i < bytes / int(sizeof(T)); ++i) to.data[to_index + i] = from.data[from_index + i];
#endif
}
// Or zeros, for which nothing is read and the address may be any.
template <int bytes, class T, class I, class From, class J>
APL_DEVICE void apl_cp_async_or_zeros(const apl_shared<T>& to, I to_index, const From& from, J from_index,
                                      bool is_inside) {
#if __CUDA_ARCH__ >= 800
  unsigned target = static_cast<unsigned>(__cvta_generic_to_shared(to.data + to_index));
  if constexpr (bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(from.data + from_index),
                 "r"(is_inside ? 16 : 0)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(target), "l"(from.data + from_index),
                 "r"(is_inside ? bytes : 0), "n"(bytes)
                 : "memory");
#else
  for (int i = 0; i < bytes / int(sizeof(T)); ++i) to.data[to_index + i] = is_inside ? from.data[from_index + i] : T(0);
#endif
}
// Closes a group of copies; apl_cp_async_wait<n> waits until at most the last n groups are under way.
APL_DEVICE void apl_cp_async_commit() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int groups>
APL_DEVICE void apl_cp_async_wait() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory");
#endif
}
