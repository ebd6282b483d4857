// The part of device.h for the host's compiler: arrays and barriers that tell the emulator of every access.

#define APL_DEVICE inline
#define APL_FUNCTION inline
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
  unsigned char* lanes;  // what the running block's warps exchange (warp.h)
  // Between blocks: what a thread did before is done for those that see what it posts, and what it saw is so behind it;
  // and an atomic access: 2 as above, 5 reads, 6 writes.
  void (*fence)(void* self, int line);
  void (*atomic)(void* self, const void* base, int64_t index, int bytes, int write, int line);
};
static const apl_emulator* apl_emu;
extern "C" void apl_emulator_attach(const apl_emulator* emulator) { apl_emu = emulator; }
extern "C" int apl_emulator_warp() { return APL_WARP; }

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

// 2 if it is the first check that failed, else 1: what a function that kernels call gives then.
template <class... Numbers>
int apl_fail(apl_failure* failure, int32_t code, int32_t location, Numbers... numbers) {
  if (failure->code != 0) return 1;
  failure->code = code;
  failure->location = location;
  int64_t* next = failure->values;
  ((*next++ = int64_t(numbers)), ...);
  failure->call_count = 0;
  return 2;
}

// What a call of a function gave; if the first failed check is in it, the cell gets to know the call.
inline int apl_called(apl_failure* failure, int went, int32_t call) {
  if (went == 2 && call > 0 && failure->call_count < 16) failure->calls[failure->call_count++] = call;
  return went;
}

// The word is the failure cell's first.
inline void apl_mark_failed(int32_t*) {}
inline bool apl_has_failed(const int32_t* failed) { return *failed != 0; }

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
// Between blocks (gpu.h).
inline void apl_fence(int line = __builtin_LINE()) { apl_emu->fence(apl_emu->self, line); }
template <class T, class I>
T apl_look(const apl_out<T>& cells, I index, int line = __builtin_LINE()) {
  apl_emu->atomic(apl_emu->self, cells.data, static_cast<int64_t>(index), sizeof(T), 5, line);
  return cells.data[index];
}
template <class T, class I>
void apl_post(const apl_out<T>& cells, I index, T value, int line = __builtin_LINE()) {
  apl_emu->atomic(apl_emu->self, cells.data, static_cast<int64_t>(index), sizeof(T), 6, line);
  cells.data[index] = value;
}
template <class I>
uint32_t apl_ticket(const apl_out<uint32_t>& cells, I index, uint32_t last, int line = __builtin_LINE()) {
  apl_emu->atomic(apl_emu->self, cells.data, static_cast<int64_t>(index), sizeof(uint32_t), 2, line);
  const uint32_t seen = cells.data[index];
  cells.data[index] = seen >= last ? 0 : seen + 1;
  return seen;
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
template <int bytes, class T, class I, class From, class J>
void apl_cp_async_or_zeros(const apl_shared<T>& to, I to_index, const From& from, J from_index, bool is_inside,
                           int line = __builtin_LINE()) {
  apl_emu->copy(apl_emu->self, to.offset, to.count, static_cast<int64_t>(to_index), is_inside ? from.data : nullptr,
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

// A kernel that was ended by a fault has left products that it had not waited for (matrix.h).
inline void apl_forget_products();

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
  apl_forget_products();
  caller::spread(kernel, args, typename caller::template count<sizeof...(Parameters)>::type());
}
#define APL_EXPORT(kernel) \
  extern "C" void kernel##_call(void** args) { apl_call(kernel, args); }
