// All that a generated kernel may use beside plain C++. Two implementations behind one set of names: CUDA (nvcc and
// NVRTC) and emulation (APL_EMULATE: the host's compiler), where every access to global and shared memory is shown to
// the emulator first. Kernel text is the same for both.
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
};

struct apl_half;    // f16
struct apl_bfloat;  // bf16

#if defined(APL_EMULATE)
// ---- emulation --------------------------------------------------------------------------------------------------

#define APL_DEVICE inline
#define APL_UNROLL
#define APL_UNROLL_BY(rounds)
#define APL_KERNEL(...) extern "C"

// What the emulator gives to kernels. The functions are called before the access that they report; if it is a
// fault they do not come back.
struct apl_emulator {
  void* self;
  const int32_t* thread;  // that runs now
  const int64_t* block;
  const int32_t* threads;
  unsigned char* shared_memory;  // the running block's dynamic shared memory
  void (*barrier)(void* self, int line);
  // `write`: 0 reads, 1 writes, 2 does both in one atomic step; a scatter writes another value (3), the same (4)
  void (*global)(void* self, const void* base, int64_t index, int bytes, int write, int line);
  void (*shared)(void* self, int64_t offset, int64_t count, int64_t index, int bytes, int write, int line);
  void (*copy)(void* self, int64_t offset, int64_t count, int64_t index, const void* base, int64_t from, int elements,
               int bytes, int line);
  void (*commit)(void* self);
  void (*wait)(void* self, int groups, int line);
  void (*warp_barrier)(void* self, int line);
  // A scatter's write comes next: the location of its message, and the indices of the element.
  void (*scatter)(void* self, int location, int count, const int64_t* at, int line);
};
static const apl_emulator* apl_emu;
extern "C" void apl_emulator_attach(const apl_emulator* emulator) { apl_emu = emulator; }

static bool apl_holds_lock;  // the thread that runs: what it does is one step for others that lock

inline int apl_thread() { return *apl_emu->thread; }
inline int64_t apl_block() { return *apl_emu->block; }
inline int apl_threads() { return *apl_emu->threads; }
inline void apl_barrier(int line = __builtin_LINE()) { apl_emu->barrier(apl_emu->self, line); }
inline void apl_warp_barrier(int line = __builtin_LINE()) { apl_emu->warp_barrier(apl_emu->self, line); }

// An element about to be read or written. Array: apl_out or apl_shared.
template <class T, class Array>
struct apl_element {
  Array array;
  int64_t index;
  int line;
  operator T() const {
    array.touch(index, 0, line);
    return array.data[index];
  }
  const apl_element& operator=(T value) const {
    array.touch(index, 1, line);
    array.data[index] = value;
    return *this;
  }
  const apl_element& operator=(const apl_element& other) const { return *this = T(other); }
  const apl_element& operator+=(T value) const { return *this = T(T(*this) + value); }
  const apl_element& operator-=(T value) const { return *this = T(T(*this) - value); }
  const apl_element& operator*=(T value) const { return *this = T(T(*this) * value); }
};

template <class T>
struct apl_in {
  const T* data;
  template <class I>
  T operator()(I index, int line = __builtin_LINE()) const {
    apl_emu->global(apl_emu->self, data, static_cast<int64_t>(index), sizeof(T), 0, line);
    return data[static_cast<int64_t>(index)];
  }
};

template <class T>
struct apl_out {
  T* data;
  template <class I>
  apl_element<T, apl_out> operator()(I index, int line = __builtin_LINE()) const {
    return {*this, static_cast<int64_t>(index), line};
  }
  void touch(int64_t index, int write, int line) const {
    apl_emu->global(apl_emu->self, data, index, sizeof(T), apl_holds_lock ? 2 : write, line);
  }
};

template <class T>
struct apl_shared {
  T* data;
  int64_t offset, count;
  template <class I>
  apl_element<T, apl_shared> operator()(I index, int line = __builtin_LINE()) const {
    return {*this, static_cast<int64_t>(index), line};
  }
  void touch(int64_t index, int write, int line) const {
    apl_emu->shared(apl_emu->self, offset, count, index, sizeof(T), apl_holds_lock ? 2 : write, line);
  }
};

template <class T>
apl_shared<T> apl_shared_at(int64_t offset, int64_t count) {
  return {reinterpret_cast<T*>(apl_emu->shared_memory + offset), offset, count};
}

template <class... Numbers>
void apl_fail(apl_failure* failure, int32_t code, int32_t location, Numbers... numbers) {
  if (failure->code != 0) return;
  failure->code = code;
  failure->location = location;
  int64_t* next = failure->values;
  ((*next++ = int64_t(numbers)), ...);
}

// The element becomes what `op` makes of it, in one atomic step.
template <template <class> class Array, class T, class Operator>
void apl_update(const Array<T>& array, int64_t index, const Operator& op, int line = __builtin_LINE()) {
  array.touch(index, 2, line);
  array.data[index] = T(op(array.data[index]));
}
// What the source calls an element that a scatter writes: the location of its message, and the indices.
struct apl_at {
  int location, count;
  int64_t indices[12];
  template <class... Indices>
  explicit apl_at(int message, Indices... all) : location(message), count(sizeof...(all)), indices{int64_t(all)...} {}
};
// A scatter's write: other threads may write the same into the element, and nothing else.
template <template <class> class Array, class T>
void apl_atomic_store(const Array<T>& array, int64_t index, T y, const apl_at& at, int line = __builtin_LINE()) {
  apl_emu->scatter(apl_emu->self, at.location, at.count, at.indices, line);
  array.touch(index, __builtin_memcmp(array.data + index, &y, sizeof y) == 0 ? 4 : 3, line);
  array.data[index] = y;
}
// Threads run one at a time.
inline void apl_back_off(unsigned&) {}
inline bool apl_lock(int64_t) { return apl_holds_lock = true; }
inline void apl_unlock(int64_t) { apl_holds_lock = false; }
template <int, class Locks>
bool apl_lock_in(const Locks&, int64_t) {
  return apl_holds_lock = true;
}
template <int, class Locks>
void apl_unlock_in(const Locks&, int64_t) {
  apl_holds_lock = false;
}
#define APL_ATOMIC(name, expression)                                                               \
  template <template <class> class Array, class T>                                                 \
  void apl_atomic_##name(const Array<T>& array, int64_t index, T y, int line = __builtin_LINE()) { \
    apl_update(                                                                                    \
        array, index, [=](T x) { return T(expression); }, line);                                   \
  }
APL_ATOMIC(add, x + y)
APL_ATOMIC(min, y < x ? y : x)
APL_ATOMIC(max, x < y ? y : x)
APL_ATOMIC(and, x& y)
APL_ATOMIC(or, x | y)
APL_ATOMIC(xor, x ^ y)
#undef APL_ATOMIC

template <int count, class T, class I>
void apl_load(const apl_shared<T>& from, I index, T* to, int line = __builtin_LINE()) {
  for (int i = 0; i < count; ++i) to[i] = from(index + i, line);
}
template <int count, class T, class Array, class I>
void apl_store(const Array& to, I index, const T* from, int line = __builtin_LINE()) {
  for (int i = 0; i < count; ++i) to(index + i, line) = from[i];
}

template <int bytes, class T, class I, class From, class J>
void apl_cp_async(const apl_shared<T>& to, I to_index, const From& from, J from_index, int line = __builtin_LINE()) {
  apl_emu->copy(apl_emu->self, to.offset, to.count, static_cast<int64_t>(to_index), from.data,
                static_cast<int64_t>(from_index), bytes / sizeof(T), sizeof(T), line);
}
inline void apl_cp_async_commit() { apl_emu->commit(apl_emu->self); }
template <int groups>
void apl_cp_async_wait(int line = __builtin_LINE()) {
  apl_emu->wait(apl_emu->self, groups, line);
}
#define apl_cp_async4 apl_cp_async<4>
#define apl_cp_async8 apl_cp_async<8>
#define apl_cp_async16 apl_cp_async<16>

// The type of a number, also where an element stands for it.
template <class T>
struct apl_number {
  typedef T type;
};
template <class T, class Array>
struct apl_number<apl_element<T, Array>> {
  typedef T type;
};

// Calls a kernel with arguments given as pointers to their values, as the CUDA driver does.
template <class... Parameters>
struct apl_caller {
  template <unsigned... I>
  struct indices {};
  template <unsigned N, unsigned... I>
  struct count : count<N - 1, N - 1, I...> {};
  template <unsigned... I>
  struct count<0, I...> {
    typedef indices<I...> type;
  };
  template <unsigned... I>
  static void spread(void (*kernel)(Parameters...), void** args, indices<I...>) {
    kernel(*static_cast<Parameters*>(args[I])...);
  }
};
template <class... Parameters>
void apl_call(void (*kernel)(Parameters...), void** args) {
  typedef apl_caller<Parameters...> caller;
  caller::spread(kernel, args, typename caller::template count<sizeof...(Parameters)>::type());
}
#define APL_EXPORT(kernel) \
  extern "C" void kernel##_call(void** args) { apl_call(kernel, args); }

#else
// ---- CUDA -------------------------------------------------------------------------------------------------------

#define APL_DEVICE __device__ __forceinline__
#define APL_PRAGMA(text) _Pragma(#text)
#define APL_UNROLL _Pragma("unroll")
#define APL_UNROLL_BY(rounds) APL_PRAGMA(unroll(rounds))
// Threads of a block, and how many blocks a multiprocessor is to hold.
#define APL_KERNEL(...) extern "C" __global__ __launch_bounds__(__VA_ARGS__)
#define APL_EXPORT(kernel)

APL_DEVICE int apl_thread() { return static_cast<int>(threadIdx.x); }
APL_DEVICE int64_t apl_block() { return static_cast<int64_t>(blockIdx.x); }
APL_DEVICE int apl_threads() { return static_cast<int>(blockDim.x); }
APL_DEVICE void apl_barrier() { __syncthreads(); }
// Of the threads of a warp, which all come to it.
APL_DEVICE void apl_warp_barrier() { __syncwarp(); }

// Global arrays are passed by value as one pointer. An apl_in is not written while the kernel runs.
template <class T>
struct apl_in {
  const T* data;
  template <class I>
  APL_DEVICE T operator()(I index) const {
    return __ldg(data + index);
  }
};
template <>
struct apl_in<bool> {
  const bool* data;
  template <class I>
  APL_DEVICE bool operator()(I index) const {
    return data[index];
  }
};
template <>
struct apl_in<apl_half> {
  const apl_half* data;
  template <class I>
  APL_DEVICE apl_half operator()(I index) const;
};
template <>
struct apl_in<apl_bfloat> {
  const apl_bfloat* data;
  template <class I>
  APL_DEVICE apl_bfloat operator()(I index) const;
};

template <class T>
struct apl_out {
  T* data;
  template <class I>
  APL_DEVICE T& operator()(I index) const {
    return data[index];
  }
};

template <class T>
struct apl_shared {
  T* data;
  template <class I>
  APL_DEVICE T& operator()(I index) const {
    return data[index];
  }
};

template <class T>
APL_DEVICE apl_shared<T> apl_shared_at(int offset, int) {
  extern __shared__ __align__(16) unsigned char apl_shared_memory[];
  return {reinterpret_cast<T*>(apl_shared_memory + offset)};
}

template <class... Numbers>
APL_DEVICE void apl_fail(apl_failure* failure, int32_t code, int32_t location, Numbers... numbers) {
  if (atomicCAS(&failure->code, 0, code) != 0) return;
  failure->location = location;
  int64_t* next = failure->values;
  ((*next++ = int64_t(numbers)), ...);
}

// Waits before the next try, twice as long each time: one of the thousands of threads that may want an element gets it,
// and the tries of all others are what that one has to wait for.
APL_DEVICE void apl_back_off(unsigned& tries) {
  __nanosleep(tries);
  if (tries < 1u << 15) tries *= 2;
}

// The element becomes what `op` makes of it, in one atomic step: `op` runs again if another thread was faster.
template <template <class> class Array, class T, class Operator>
APL_DEVICE void apl_update(const Array<T>& array, int64_t index, const Operator& op) {
  if constexpr (sizeof(T) == 8) {
    auto* word = reinterpret_cast<unsigned long long*>(array.data + index);
    for (unsigned tries = 1;; apl_back_off(tries)) {
      const unsigned long long seen = *const_cast<volatile unsigned long long*>(word);
      T value;
      memcpy(&value, &seen, sizeof(T));
      value = op(value);
      unsigned long long made;
      memcpy(&made, &value, sizeof(T));
      if (atomicCAS(word, seen, made) == seen) return;
    }
  } else {
    // Small elements share a word with their neighbours.
    const auto address = reinterpret_cast<unsigned long long>(array.data + index);
    auto* word = reinterpret_cast<unsigned*>(address & ~3ull);
    const unsigned shift = unsigned(address & 3) * 8;
    const unsigned mask = (sizeof(T) == 4 ? ~0u : (1u << (8 * sizeof(T) % 32)) - 1) << shift;
    for (unsigned tries = 1;; apl_back_off(tries)) {
      const unsigned seen = *const_cast<volatile unsigned*>(word);
      const unsigned bits = (seen & mask) >> shift;
      T value;
      memcpy(&value, &bits, sizeof(T));
      value = op(value);
      unsigned made = 0;
      memcpy(&made, &value, sizeof(T));
      if (atomicCAS(word, seen, (seen & ~mask) | (made << shift)) == seen) return;
    }
  }
}

template <class T>
struct apl_native {
  typedef T type;
};
template <>
struct apl_native<int64_t> {
  typedef long long type;
};
template <>
struct apl_native<uint64_t> {
  typedef unsigned long long type;
};
// What the hardware does in one instruction; add wraps whatever the sign.
template <template <class> class Array>
APL_DEVICE void apl_atomic_add(const Array<int64_t>& array, int64_t index, int64_t y) {
  atomicAdd(reinterpret_cast<unsigned long long*>(array.data + index), static_cast<unsigned long long>(y));
}
#define APL_ATOMIC(name, function)                                                   \
  template <template <class> class Array, class T>                                   \
  APL_DEVICE void apl_atomic_##name(const Array<T>& array, int64_t index, T y) {     \
    typedef typename apl_native<T>::type native;                                     \
    function(reinterpret_cast<native*>(array.data + index), static_cast<native>(y)); \
  }
APL_ATOMIC(add, atomicAdd)
APL_ATOMIC(min, atomicMin)
APL_ATOMIC(max, atomicMax)
APL_ATOMIC(and, atomicAnd)
APL_ATOMIC(or, atomicOr)
APL_ATOMIC(xor, atomicXor)
#undef APL_ATOMIC

// What the source calls an element, for emulation.
struct apl_at {
  template <class... Indices>
  APL_DEVICE explicit apl_at(int, Indices...) {}
};
template <template <class> class Array, class T>
APL_DEVICE void apl_atomic_store(const Array<T>& array, int64_t index, T y, const apl_at&) {
  array.data[index] = y;
}

// A lock for an element; elements may share one. A thread holds one at a time.
__device__ unsigned apl_locks[1 << 14];
APL_DEVICE bool apl_lock(int64_t index) {
  if (atomicCAS(&apl_locks[index & ((1 << 14) - 1)], 0u, 1u) != 0) return false;
  __threadfence();
  return true;
}
APL_DEVICE void apl_unlock(int64_t index) {
  __threadfence();
  atomicExch(&apl_locks[index & ((1 << 14) - 1)], 0u);
}
// The same for elements in shared memory: a block's own locks, a power of two in number, all 0 before.
template <int count>
APL_DEVICE bool apl_lock_in(const apl_shared<uint32_t>& locks, int64_t index) {
  if (atomicCAS(&locks.data[index & (count - 1)], 0u, 1u) != 0) return false;
  __threadfence_block();
  return true;
}
template <int count>
APL_DEVICE void apl_unlock_in(const apl_shared<uint32_t>& locks, int64_t index) {
  __threadfence_block();
  atomicExch(&locks.data[index & (count - 1)], 0u);
}

// `count` neighbouring elements at once, `count` times their size a power of two up to 16 and both addresses so
// aligned.
template <unsigned bytes, class T>
struct alignas(bytes) apl_vector {
  T elements[bytes / sizeof(T)];
};
template <int count, class T, class I>
APL_DEVICE void apl_load(const apl_shared<T>& from, I index, T* to) {
  typedef apl_vector<count * sizeof(T), T> vector;
  const vector loaded = *reinterpret_cast<const vector*>(from.data + index);
#pragma unroll
  for (int i = 0; i < count; ++i) to[i] = loaded.elements[i];
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
template <int count, class T, class Array, class I>
APL_DEVICE void apl_store(const Array& to, I index, const T* from) {
  typedef apl_vector<count * sizeof(T), T> vector;
  vector stored;
#pragma unroll
  for (int i = 0; i < count; ++i) stored.elements[i] = apl_apart(from[i]);
  *reinterpret_cast<vector*>(to.data + index) = stored;
}

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
#define apl_cp_async4 apl_cp_async<4>
#define apl_cp_async8 apl_cp_async<8>
#define apl_cp_async16 apl_cp_async<16>

template <class T>
struct apl_number {
  typedef T type;
};

#endif

// ---- both -------------------------------------------------------------------------------------------------------
// The meaning of the IR's operations on numbers (ir/scalar.h). Integer division by zero gives 0: kernels check before.

// Whether an array starts at a multiple of so many bytes.
template <unsigned bytes, class Array>
APL_DEVICE bool apl_aligned(const Array& array) {
  return reinterpret_cast<unsigned long long>(array.data) % bytes == 0;
}

// What row numbers of a tile are xor-ed with at depth q: a transposing copy of eight steps by four rows, and reads of
// four neighbouring rows, then each touch every bank of shared memory once.
APL_DEVICE constexpr int apl_swizzle(int q) { return (q & 3) * 8 ^ (q & 4); }

// The unsigned integer of so many bytes.
template <unsigned bytes>
struct apl_word;
template <>
struct apl_word<2> {
  typedef uint16_t type;
};
template <>
struct apl_word<4> {
  typedef uint32_t type;
};
template <>
struct apl_word<8> {
  typedef uint64_t type;
};
template <class T>
APL_DEVICE typename apl_word<sizeof(T)>::type apl_to_bits(T number) {
  union {
    T number;
    typename apl_word<sizeof(T)>::type bits;
  } both;
  both.number = number;
  return both.bits;
}
template <class T>
APL_DEVICE T apl_from_bits(typename apl_word<sizeof(T)>::type bits) {
  union {
    typename apl_word<sizeof(T)>::type bits;
    T number;
  } both;
  both.bits = bits;
  return both.number;
}

#if defined(APL_EMULATE)
// Counts in units of the last place; a mantissa that rounds up carries into the exponent.
inline uint16_t apl_half_bits(double x) {
  const unsigned sign = static_cast<unsigned>(apl_to_bits(x) >> 63) << 15;
  const double magnitude = fabs(x);
  if (x != x) return 0x7e00;
  if (magnitude == 0) return static_cast<uint16_t>(sign);
  if (magnitude >= 65520) return static_cast<uint16_t>(sign | 0x7c00);
  int exponent = ilogb(magnitude);
  if (exponent < -14) exponent = -14;
  const unsigned units = static_cast<unsigned>(rint(ldexp(magnitude, 10 - exponent)));
  return static_cast<uint16_t>(sign | (units + (static_cast<unsigned>(exponent + 14) << 10)));
}
inline uint16_t apl_half_bits(float x) { return apl_half_bits(static_cast<double>(x)); }
inline float apl_half_number(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  float number = ldexpf(static_cast<float>(exponent == 0 ? fraction : fraction + 1024), (exponent ? exponent : 1) - 25);
  if (exponent == 31) number = fraction ? NAN : INFINITY;
  return bits >> 15 ? -number : number;
}
#else
APL_DEVICE uint16_t apl_half_bits(double x) {
  uint16_t bits;
  asm("cvt.rn.f16.f64 %0, %1;" : "=h"(bits) : "d"(x));
  return bits;
}
APL_DEVICE uint16_t apl_half_bits(float x) {
  uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
APL_DEVICE float apl_half_number(uint16_t bits) {
  float number;
  asm("cvt.f32.f16 %0, %1;" : "=f"(number) : "h"(bits));
  return number;
}
#endif

// f16: computed as float, rounded once when it is made of a number.
struct apl_half {
  uint16_t bits;
  apl_half() = default;
#define APL_HALF_OF(T, Wide) \
  APL_DEVICE apl_half(T number) : bits(apl_half_bits(static_cast<Wide>(number))) {}
  APL_HALF_OF(float, float)
  APL_HALF_OF(double, double)
  APL_HALF_OF(int, double)
  APL_HALF_OF(unsigned, double)
  APL_HALF_OF(long, double)
  APL_HALF_OF(unsigned long, double)
  APL_HALF_OF(long long, double)
  APL_HALF_OF(unsigned long long, double)
#undef APL_HALF_OF
  APL_DEVICE operator float() const { return apl_half_number(bits); }
};

// bf16: kept and converted, never computed with; the upper half of a float, rounded to even. A NaN is quiet.
APL_DEVICE float apl_bfloat_number(uint16_t bits) { return apl_from_bits<float>(static_cast<uint32_t>(bits) << 16); }
APL_DEVICE uint16_t apl_bfloat_bits(float x) {
  const uint32_t bits = apl_to_bits(x);
  return static_cast<uint16_t>(x != x ? 0x7fc0 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
struct apl_bfloat {
  uint16_t bits;
  apl_bfloat() = default;
  APL_DEVICE explicit apl_bfloat(float number) : bits(apl_bfloat_bits(number)) {}
  APL_DEVICE operator float() const { return apl_bfloat_number(bits); }
};
APL_DEVICE float apl_from_bf16(apl_bfloat x) { return x; }
APL_DEVICE apl_bfloat apl_to_bf16(float x) { return apl_bfloat(x); }
// By a float that remembers in its last bit that it is not exact, so that nothing is rounded twice.
APL_DEVICE apl_bfloat apl_to_bf16_of_f64(double x) {
  const float near = static_cast<float>(x);
  uint32_t bits = apl_to_bits(near);
  if (x == x && static_cast<double>(near) != x) bits = (bits - (fabs(static_cast<double>(near)) > fabs(x) ? 1 : 0)) | 1;
  return apl_bfloat(apl_from_bits<float>(bits));
}

#if !defined(APL_EMULATE)
template <class I>
APL_DEVICE apl_half apl_in<apl_half>::operator()(I index) const {
  return data[index];
}
template <class I>
APL_DEVICE apl_bfloat apl_in<apl_bfloat>::operator()(I index) const {
  return data[index];
}
#endif

template <class T>
struct apl_traits {
  static constexpr bool is_float = false;
  static constexpr bool is_signed = T(-1) < T(0);
};
template <>
struct apl_traits<float> {
  static constexpr bool is_float = true;
  static constexpr bool is_signed = true;
};
template <>
struct apl_traits<apl_half> {
  static constexpr bool is_float = true;
  static constexpr bool is_signed = true;
};
template <>
struct apl_traits<apl_bfloat> {
  static constexpr bool is_float = true;
  static constexpr bool is_signed = true;
};
template <>
struct apl_traits<double> {
  static constexpr bool is_float = true;
  static constexpr bool is_signed = true;
};

// The type of an operation: the one asked for, as in apl_add<int8_t>(x, 1); else that of the numbers if they are alike,
// else as in C.
template <class Asked, class A, class B = A>
struct apl_result {
  typedef Asked type;
};
template <class A, class B>
struct apl_result<void, A, B> {
  typedef decltype(true ? typename apl_number<A>::type() : typename apl_number<B>::type()) type;
};

APL_DEVICE float apl_fmin(float a, float b) { return fminf(a, b); }
APL_DEVICE double apl_fmin(double a, double b) { return fmin(a, b); }
APL_DEVICE float apl_fmax(float a, float b) { return fmaxf(a, b); }
APL_DEVICE double apl_fmax(double a, double b) { return fmax(a, b); }
APL_DEVICE float apl_fmod(float a, float b) { return fmodf(a, b); }
APL_DEVICE double apl_fmod(double a, double b) { return fmod(a, b); }
APL_DEVICE float apl_fpow(float a, float b) { return powf(a, b); }
APL_DEVICE double apl_fpow(double a, double b) { return pow(a, b); }

// A function of numbers; `body` sees them as `a` and `b` of the operation's type T.
#define APL_BINARY(name, body)                                       \
  template <class Asked = void, class A, class B>                    \
  APL_DEVICE typename apl_result<Asked, A, B>::type name(A x, B y) { \
    typedef typename apl_result<Asked, A, B>::type T;                \
    const T a = static_cast<T>(x), b = static_cast<T>(y);            \
    body                                                             \
  }
#define APL_UNARY(name, body)                                \
  template <class Asked = void, class A>                     \
  APL_DEVICE typename apl_result<Asked, A>::type name(A x) { \
    typedef typename apl_result<Asked, A>::type T;           \
    const T a = static_cast<T>(x);                           \
    body                                                     \
  }

// Wrapping arithmetic: signed overflow has no meaning in C++.
APL_BINARY(apl_add, { return T(uint64_t(a) + uint64_t(b)); })
APL_BINARY(apl_sub, { return T(uint64_t(a) - uint64_t(b)); })
APL_BINARY(apl_mul, { return T(uint64_t(a) * uint64_t(b)); })
APL_UNARY(apl_neg, { return T(uint64_t(0) - uint64_t(a)); })

// A NaN operand gives the other one.
APL_BINARY(apl_min, {
  if constexpr (apl_traits<T>::is_float)
    return apl_fmin(a, b);
  else
    return b < a ? b : a;
})
APL_BINARY(apl_max, {
  if constexpr (apl_traits<T>::is_float)
    return apl_fmax(a, b);
  else
    return a < b ? b : a;
})

// quot and rem round to zero; div and mod down, so that mod has the divisor's sign; float mod has the dividend's. The
// one overflow, lowest / -1, wraps.
APL_BINARY(apl_quot, {
  if (b == 0) return T(0);
  if constexpr (apl_traits<T>::is_signed) {
    if (b == T(-1)) return T(uint64_t(0) - uint64_t(a));
  }
  return T(a / b);
})
APL_BINARY(apl_rem, {
  if (b == 0) return T(0);
  if constexpr (apl_traits<T>::is_signed) {
    if (b == T(-1)) return T(0);
  }
  return T(a % b);
})
APL_BINARY(apl_div, {
  if constexpr (apl_traits<T>::is_float) {
    return a / b;
  } else if constexpr (apl_traits<T>::is_signed) {
    const T quotient = apl_quot(a, b);
    return T(quotient - T(apl_rem(a, b) != 0 && (a < 0) != (b < 0)));
  } else {
    return apl_quot(a, b);
  }
})
APL_BINARY(apl_mod, {
  if constexpr (apl_traits<T>::is_float) {
    return apl_fmod(a, b);
  } else if constexpr (apl_traits<T>::is_signed) {
    const T rest = apl_rem(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? T(rest + b) : rest;
  } else {
    return apl_rem(a, b);
  }
})

// Integers: a negative exponent gives the integer part, 0 or +-1.
APL_BINARY(apl_pow, {
  if constexpr (apl_traits<T>::is_float) {
    return apl_fpow(a, b);
  } else {
    if constexpr (apl_traits<T>::is_signed) {
      if (b < 0 && a != 1 && a != T(-1)) return T(0);
    }
    uint64_t result = 1;
    uint64_t base = uint64_t(a);
    for (uint64_t exponent = uint64_t(b); exponent != 0; exponent >>= 1, base *= base)
      if (exponent & 1) result *= base;
    return T(result);
  }
})

// Amounts of the width or more, and negative ones, leave 0 or copies of the sign.
APL_BINARY(apl_shl, { return uint64_t(b) >= 8 * sizeof(T) ? T(0) : T(uint64_t(a) << uint64_t(b)); })
APL_BINARY(apl_shr, {
  if (uint64_t(b) < 8 * sizeof(T)) return T(a >> b);
  if constexpr (apl_traits<T>::is_signed) return a < 0 ? T(-1) : T(0);
  return T(0);
})

// The upper halves of 64-bit products.
#if defined(APL_EMULATE)
inline int64_t apl_high_bits(int64_t a, int64_t b) { return int64_t((static_cast<__int128>(a) * b) >> 64); }
inline uint64_t apl_high_bits(uint64_t a, uint64_t b) {
  return uint64_t((static_cast<unsigned __int128>(a) * b) >> 64);
}
#else
APL_DEVICE int64_t apl_high_bits(int64_t a, int64_t b) { return __mul64hi(a, b); }
APL_DEVICE uint64_t apl_high_bits(uint64_t a, uint64_t b) { return __umul64hi(a, b); }
#endif
APL_BINARY(apl_mul_hi, {
  if constexpr (sizeof(T) == 8)
    return apl_high_bits(a, b);
  else if constexpr (apl_traits<T>::is_signed)
    return T((int64_t(a) * int64_t(b)) >> (8 * sizeof(T)));
  else
    return T((uint64_t(a) * uint64_t(b)) >> (8 * sizeof(T)));
})

APL_BINARY(apl_nextafter, {
  if constexpr (sizeof(T) != 2) {
    return nextafter(a, b);
  } else {
    if (a != a || b != b) return T(a + b);
    if (a == b) return b;
    if (a == 0) return apl_from_bits<T>(b < 0 ? 0x8001 : 1);
    return apl_from_bits<T>(uint16_t(apl_to_bits(a) + ((a < b) == (a > 0) ? 1 : -1)));
  }
})

#if defined(APL_EMULATE)
inline int apl_count_ones(uint64_t bits) { return __builtin_popcountll(bits); }
inline int apl_leading_zeros(uint64_t bits) { return bits == 0 ? 64 : __builtin_clzll(bits); }
#else
APL_DEVICE int apl_count_ones(uint64_t bits) { return __popcll(bits); }
APL_DEVICE int apl_leading_zeros(uint64_t bits) { return __clzll(static_cast<long long>(bits)); }
#endif
// The bits of a number without copies of its sign.
template <class T>
APL_DEVICE uint64_t apl_bits(T a) {
  return uint64_t(a) & (~uint64_t(0) >> (64 - 8 * sizeof(T)));
}
APL_UNARY(apl_popc, { return T(apl_count_ones(apl_bits(a))); })
APL_UNARY(apl_clz, { return T(apl_leading_zeros(apl_bits(a)) - int(64 - 8 * sizeof(T))); })
APL_UNARY(apl_abs, {
  if constexpr (apl_traits<T>::is_float)
    return fabs(a);
  else if constexpr (apl_traits<T>::is_signed)
    return a < 0 ? T(uint64_t(0) - uint64_t(a)) : a;
  else
    return a;
})
APL_UNARY(apl_sgn, {
  if constexpr (apl_traits<T>::is_float)
    return a != a ? a : T((a > 0) - (a < 0));
  else if constexpr (apl_traits<T>::is_signed)
    return T((a > 0) - (a < 0));
  else
    return T(a != 0);
})

// Float to integer: towards zero, saturated, a negative number to an unsigned type by way of the signed one of that
// width; NaN and the infinities give 0.
template <class T>
APL_DEVICE T apl_from_float(double x) {
  constexpr uint64_t sign_bit = uint64_t(1) << (8 * sizeof(T) - 1);
  if (!(fabs(x) < INFINITY)) return T(0);
  if (x < -double(sign_bit)) return T(sign_bit);
  if constexpr (apl_traits<T>::is_signed) {
    if (x >= double(sign_bit)) return T(sign_bit - 1);
  } else {
    if (x >= 2 * double(sign_bit)) return T(-1);
    if (x < 0) return T(int64_t(x));
  }
  return T(x);
}

// More elements than memory has bytes.
#define APL_MOST_ELEMENTS ((int64_t)1 << 48)

// The product of sizes that are not negative, or the largest number where it is none.
APL_DEVICE int64_t apl_size_product(int64_t a, int64_t b) {
  const int64_t most = ~((int64_t)1 << 63);
  return b > 0 && a > most / b ? most : a * b;
}

// Whether there was no memory for the threads' arrays.
template <class T>
APL_DEVICE bool apl_lacks(apl_out<T> arrays) {
  return arrays.data == nullptr;
}

// Memory of one thread, for arrays whose size is known only there. Ends with the thread.
template <class T>
struct apl_heap {
  T* data = nullptr;
  int64_t capacity = 0;

  apl_heap() = default;
  apl_heap(const apl_heap&) = delete;
  APL_DEVICE ~apl_heap() { free(data); }
  // Room for `count` elements, what was there lost; false if there is no memory.
  APL_DEVICE bool grow(int64_t count) {
    if (count > APL_MOST_ELEMENTS) return false;
    if (count <= capacity) return true;
    free(data);
    data = static_cast<T*>(malloc(static_cast<size_t>(count) * sizeof(T)));
    capacity = data == nullptr ? 0 : count;
    return data != nullptr;
  }
  template <class I>
  APL_DEVICE T& operator[](I index) const {
    return data[index];
  }
};

// Index arithmetic; divisors are positive.
APL_BINARY(apl_floor_div, { return apl_div(a, b); })
APL_BINARY(apl_floor_mod, { return apl_mod(a, b); })
APL_BINARY(apl_ceil_div, {
  const T quotient = apl_div(a, b);
  return T(quotient + T(b != 0 && quotient * b != a));
})
APL_DEVICE int64_t apl_index_min(int64_t a, int64_t b) { return b < a ? b : a; }
APL_DEVICE int64_t apl_index_max(int64_t a, int64_t b) { return a < b ? b : a; }

#undef APL_BINARY
#undef APL_UNARY

#endif
