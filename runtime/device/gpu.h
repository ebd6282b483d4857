// The part of device.h that the dialects of GPUs have in common: arrays, atomic steps, locks, wide accesses. What they
// differ in stands before (cuda.h, hip.h).

#define APL_EXPORT(kernel)

APL_DEVICE int apl_thread() { return static_cast<int>(threadIdx.x); }
APL_DEVICE int64_t apl_block() { return static_cast<int64_t>(blockIdx.x); }
APL_DEVICE int apl_threads() { return static_cast<int>(blockDim.x); }
APL_DEVICE void apl_barrier() { __syncthreads(); }

// Global arrays are passed by value as one pointer. An apl_in is not written while the kernel runs.
template <class T>
struct apl_in {
  const T* data;
  template <class I>
  APL_DEVICE T operator()(I index) const {
    return apl_read(data + index);
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
  extern __shared__ __align__(1024) unsigned char apl_shared_memory[];
  return {reinterpret_cast<T*>(apl_shared_memory + offset)};
}

// 2 if it is the first check that failed, else 1: what a function that kernels call gives then.
template <class... Numbers>
APL_DEVICE int apl_fail(apl_failure* failure, int32_t code, int32_t location, Numbers... numbers) {
  if (atomicCAS(&failure->code, 0, code) != 0) return 1;
  failure->location = location;
  int64_t* next = failure->values;
  ((*next++ = int64_t(numbers)), ...);
  failure->call_count = 0;
  return 2;
}

// What a call of a function gave; if the first failed check is in it, the cell gets to know the call.
APL_DEVICE int apl_called(apl_failure* failure, int went, int32_t call) {
  if (went == 2 && call > 0 && failure->call_count < 16) failure->calls[failure->call_count++] = call;
  return went;
}

// Whether a check failed before, as a word of the device's memory says.
APL_DEVICE void apl_mark_failed(int32_t* failed) { atomicCAS(failed, 0, 1); }
APL_DEVICE bool apl_has_failed(const int32_t* failed) { return *failed != 0; }

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
APL_ATOMIC(add, apl_fetch_add)
APL_ATOMIC(min, apl_fetch_min)
APL_ATOMIC(max, apl_fetch_max)
APL_ATOMIC(and, apl_fetch_and)
APL_ATOMIC(or, apl_fetch_or)
APL_ATOMIC(xor, apl_fetch_xor)
#undef APL_ATOMIC

// What blocks publish. A fence orders what its thread did before it for all who see what it posts, and behind it what
// others did before they posted; atomic accesses order nothing of themselves. A ticket is how many came before,
// from 0 to `last`; then it is 0 again.
APL_DEVICE void apl_fence() { __threadfence(); }
template <class T, class I>
APL_DEVICE T apl_look(const apl_out<T>& cells, I index) {
  return *const_cast<const volatile T*>(cells.data + index);
}
template <class T, class I>
APL_DEVICE void apl_post(const apl_out<T>& cells, I index, T value) {
  *const_cast<volatile T*>(cells.data + index) = value;
}
template <class I>
APL_DEVICE uint32_t apl_ticket(const apl_out<uint32_t>& cells, I index, uint32_t last) {
  return atomicInc(reinterpret_cast<unsigned*>(cells.data + index), last);
}

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
template <int count, class T, class Array, class I>
APL_DEVICE void apl_store(const Array& to, I index, const T* from) {
  typedef apl_vector<count * sizeof(T), T> vector;
  vector stored;
#pragma unroll
  for (int i = 0; i < count; ++i) stored.elements[i] = apl_apart(from[i]);
  *reinterpret_cast<vector*>(to.data + index) = stored;
}

#define apl_cp_async4 apl_cp_async<4>
#define apl_cp_async8 apl_cp_async<8>
#define apl_cp_async16 apl_cp_async<16>

template <class T>
struct apl_number {
  typedef T type;
};
