// Products of two tiles in shared memory by matrix units, from tiles of their own (from those of the cores:
// fragments.h): of floats of 16 bits with sums in f32, of integers of 8 bits with sums in 32 (whose signs may differ,
// and which wrap around). A warpgroup of 128 threads multiplies 64 rows of tile p by all rows of tile q: on machines
// with `wgmma` by that, which reads both tiles itself while its threads go on; on others by apl_mma.
//
// A tile lies as `wgmma` reads it (PTX, matrix descriptors). By depth: a row's 32, 64 or 128 bytes of steps together;
// all tiles of 8 bits, and those of 16 whose source is contiguous there. Else 64 rows of a step together. Pieces of 16
// bytes are xor-ed among themselves, so that neither copies nor products meet in a bank. A tile begins at a multiple of
// 1024 bytes.
#ifndef APL_DEVICE_MATRIX_H
#define APL_DEVICE_MATRIX_H

// Where element (row, step) of a tile lies, in elements, of `bytes` each.
template <int depth, bool by_depth, int bytes = 2>
APL_DEVICE int apl_matrix_position(int row, int step) {
  if (by_depth) {
    constexpr int together = 16 / bytes, pieces = depth / together;
    return row * depth + (((step / together) ^ (row * pieces / 8 % pieces)) * together) + step % together;
  }
  return row / 64 * (64 * depth) + step * 64 + (((row / 8 % 8) ^ (step % 8)) * 8) + row % 8;
}

// 16 bytes of neighbouring elements of 8 or 16 bits through registers, from any address: the first `count`, zeros
// behind. And of neighbouring rows, which begin where a table says; not `inside`: zeros. And from registers into a
// tile.
#if defined(APL_EMULATE)
template <template <class> class Array, class T>
void apl_load_piece(const Array<T>& from, int64_t at, int64_t count, uint32_t* words, int line = __builtin_LINE()) {
  T elements[16 / sizeof(T)] = {};
  for (int k = 0; k < int(16 / sizeof(T)) && k < count; ++k) elements[k] = T(from(at + k, line));
  __builtin_memcpy(words, elements, 16);
}
template <template <class> class Array, class T>
void apl_load_piece_of_rows(const Array<T>& from, int64_t at, const apl_shared<int64_t>& rows, int slot, bool inside,
                            uint32_t* words, int line = __builtin_LINE()) {
  T elements[16 / sizeof(T)] = {};
  for (int k = 0; k < int(16 / sizeof(T)) && inside; ++k) {
    const int64_t row = int64_t(rows(slot + k, line));
    if (apl_is_row(row)) elements[k] = T(from(at + row, line));
  }
  __builtin_memcpy(words, elements, 16);
}
template <class T, class I>
void apl_store_piece(const apl_shared<T>& to, I index, const uint32_t* words, int line = __builtin_LINE()) {
  T elements[16 / sizeof(T)];
  __builtin_memcpy(elements, words, 16);
  apl_store<int(16 / sizeof(T))>(to, index, elements, line);
}
#else
template <template <class> class Array, class T>
APL_DEVICE void apl_load_piece(const Array<T>& from, int64_t at, int64_t count, uint32_t* words) {
  typedef typename apl_chunk<sizeof(T)>::type element;
  constexpr int most = 16 / sizeof(T), in_word = 4 / sizeof(T), bits = 8 * sizeof(T);
  const element* const source = reinterpret_cast<const element*>(from.data + at);
  // Elements of the first one's word before it.
  const int before = static_cast<int>(reinterpret_cast<unsigned long long>(source) % 4 / sizeof(T));
  uint32_t all[5] = {};
  if (count < most) {
    APL_UNROLL
    for (int k = 0; k < most; ++k)
      if (k < count) all[k / in_word] |= static_cast<uint32_t>(source[k]) << k % in_word * bits;
    APL_UNROLL
    for (int w = 0; w < 4; ++w) words[w] = all[w];
    return;
  }
  // Whole words, and element by element what shares a word with others.
  const auto* const inner = reinterpret_cast<const uint32_t*>(source + (in_word - before) % in_word);
  if (before == 0) {
    APL_UNROLL
    for (int w = 0; w < 4; ++w) all[w] = inner[w];
  } else {
    APL_UNROLL
    for (int w = 0; w < 3; ++w) all[w + 1] = inner[w];
    APL_UNROLL
    for (int k = 0; k < in_word; ++k) {
      const uint32_t number = static_cast<uint32_t>(source[k >= before ? k - before : most - before + k]) << k * bits;
      all[0] |= k >= before ? number : 0;
      all[4] |= k < before ? number : 0;
    }
  }
  APL_UNROLL
  for (int w = 0; w < 4; ++w)
    words[w] = static_cast<uint32_t>((static_cast<uint64_t>(all[w + 1]) << 32 | all[w]) >> before * bits);
}
template <template <class> class Array, class T>
APL_DEVICE void apl_load_piece_of_rows(const Array<T>& from, int64_t at, const apl_shared<int64_t>& rows, int slot,
                                       bool inside, uint32_t* words) {
  typedef typename apl_chunk<sizeof(T)>::type element;
  constexpr int most = 16 / sizeof(T), in_word = 4 / sizeof(T), bits = 8 * sizeof(T);
  const int64_t first = rows.data[slot];
  const bool are_together = apl_is_row(first) && rows.data[slot + most - 1] == first + most - 1;
  if (are_together || !inside) {
    apl_load_piece(from, at + first, inside ? most : 0, words);
    return;
  }
  APL_UNROLL
  for (int w = 0; w < 4; ++w) words[w] = 0;
  APL_UNROLL
  for (int k = 0; k < most; ++k) {
    const int64_t row = rows.data[slot + k];
    if (!apl_is_row(row)) continue;
    const uint32_t number = *reinterpret_cast<const element*>(from.data + (at + row));
    words[k / in_word] |= number << k % in_word * bits;
  }
}
template <class T, class I>
APL_DEVICE void apl_store_piece(const apl_shared<T>& to, I index, const uint32_t* words) {
  *reinterpret_cast<uint4*>(to.data + index) = make_uint4(words[0], words[1], words[2], words[3]);
}
#endif

// `width` neighbouring elements to registers: the first `count`, zeros behind. And of neighbouring rows, which begin
// where a table says; not `inside`: zeros.
#if defined(APL_EMULATE)
template <int width, template <class> class Array, class T>
void apl_load_run(const Array<T>& from, int64_t at, int count, T* to, int line = __builtin_LINE()) {
  for (int k = 0; k < width; ++k) to[k] = k < count ? T(from(at + k, line)) : T(0);
}
template <int width, template <class> class Array, class T>
void apl_load_run_of_rows(const Array<T>& from, int64_t at, const apl_shared<int64_t>& rows, int slot, bool inside,
                          T* to, int line = __builtin_LINE()) {
  for (int k = 0; k < width; ++k) {
    const int64_t row = inside ? int64_t(rows(slot + k, line)) : 0;
    to[k] = inside && apl_is_row(row) ? T(from(at + row, line)) : T(0);
  }
}
#else
template <int width, template <class> class Array, class T>
APL_DEVICE void apl_load_run(const Array<T>& from, int64_t at, int count, T* to) {
  constexpr int bytes = width * sizeof(T) < 16 ? width * sizeof(T) : 16, in_vector = bytes / sizeof(T);
  typedef apl_vector<bytes, T> vector;
  const T* const source = from.data + at;
  if (count >= width && reinterpret_cast<unsigned long long>(source) % bytes == 0) {
    APL_UNROLL
    for (int v = 0; v < width / in_vector; ++v) {
      const vector loaded = reinterpret_cast<const vector*>(source)[v];
      APL_UNROLL
      for (int k = 0; k < in_vector; ++k) to[v * in_vector + k] = loaded.elements[k];
    }
    return;
  }
  APL_UNROLL
  for (int k = 0; k < width; ++k) to[k] = k < count ? source[k] : T(0);
}
template <int width, template <class> class Array, class T>
APL_DEVICE void apl_load_run_of_rows(const Array<T>& from, int64_t at, const apl_shared<int64_t>& rows, int slot,
                                     bool inside, T* to) {
  const int64_t first = rows.data[slot];
  if (!inside || (apl_is_row(first) && rows.data[slot + width - 1] == first + width - 1)) {
    apl_load_run<width>(from, at + first, inside ? width : 0, to);
    return;
  }
  APL_UNROLL
  for (int k = 0; k < width; ++k) {
    const int64_t row = rows.data[slot + k];
    to[k] = apl_is_row(row) ? from.data[at + row] : T(0);
  }
}
#endif

// Of a thread's sums, the one of its row i of two (8 apart) and its column j of q_each (pairs, 8 apart).
#define APL_MATRIX_SUM(i, j) sums[flipped ? (j)*2 + (i) : (i)*q_each + (j)]

#if defined(APL_EMULATE)

// Products happen when they are waited for: what is written into their tiles before that is seen.
struct apl_product {
  void (*run)(const void* values);
  alignas(8) unsigned char values[120];
};
enum { kAplProducts = 32 };
struct apl_products {
  apl_product waiting[kAplProducts];
  int count, groups, ends[kAplProducts];  // where each group ends
};
static apl_products apl_thread_products[1024];

template <class Product>
void apl_multiply_later(const Product& product) {
  static_assert(sizeof(Product) <= sizeof(apl_product::values), "a product has more values");
  apl_products& all = apl_thread_products[apl_thread()];
  if (all.count == kAplProducts) __builtin_trap();
  apl_product& next = all.waiting[all.count++];
  next.run = [](const void* values) { (*static_cast<const Product*>(values))(); };
  __builtin_memcpy(next.values, &product, sizeof product);
}

// What sums are made in: integers wrap around.
inline float apl_matrix_factor(apl_half x) { return float(x); }
inline float apl_matrix_factor(apl_bfloat x) { return float(x); }
inline uint32_t apl_matrix_factor(int8_t x) { return static_cast<uint32_t>(static_cast<int32_t>(x)); }
inline uint32_t apl_matrix_factor(uint8_t x) { return x; }

template <int depth, int q_each, bool p_by_depth, bool q_by_depth, bool flipped, class S, class P, class Q, class I,
          class J>
void apl_matrix_multiply(S* sums, const apl_shared<P>& p, I p_at, const apl_shared<Q>& q, J q_at,
                         int line = __builtin_LINE()) {
  typedef decltype(apl_matrix_factor(P())) factor;
  const int row = apl_warp() * 16 + apl_lane() / 4, column = apl_lane() % 4 * 2;
  const int p_from = static_cast<int>(p_at), q_from = static_cast<int>(q_at);
  apl_multiply_later([=] {
    for (int k = 0; k < depth; ++k) {
      factor x[2];
      for (int i = 0; i < 2; ++i)
        x[i] =
            apl_matrix_factor(P(p(p_from + apl_matrix_position<depth, p_by_depth, sizeof(P)>(row + i * 8, k), line)));
      for (int j = 0; j < q_each; ++j) {
        const factor y = apl_matrix_factor(
            Q(q(q_from + apl_matrix_position<depth, q_by_depth, sizeof(Q)>(column + j / 2 * 8 + j % 2, k), line)));
        for (int i = 0; i < 2; ++i)
          APL_MATRIX_SUM(i, j) = static_cast<S>(static_cast<factor>(APL_MATRIX_SUM(i, j)) + x[i] * y);
      }
    }
  });
}
inline void apl_matrix_publish() {}
template <int count, class S>
void apl_matrix_start(S*) {}
inline void apl_forget_products() {
  apl_thread_products[apl_thread()].count = apl_thread_products[apl_thread()].groups = 0;
}
inline void apl_matrix_commit() {
  apl_products& all = apl_thread_products[apl_thread()];
  all.ends[all.groups++] = all.count;
}
template <int groups>
void apl_matrix_wait() {
  apl_products& all = apl_thread_products[apl_thread()];
  const int over = all.groups - groups, done = over > 0 ? all.ends[over - 1] : 0;
  if (over <= 0) return;
  for (int k = 0; k < done; ++k) all.waiting[k].run(all.waiting[k].values);
  for (int k = done; k < all.count; ++k) all.waiting[k - done] = all.waiting[k];
  for (int g = over; g < all.groups; ++g) all.ends[g - over] = all.ends[g] - done;
  all.count -= done, all.groups -= over;
}
template <int count, class S>
void apl_matrix_finish(S*) {
  apl_matrix_wait<0>();
}

inline int apl_anew(int x) { return x; }
inline int64_t apl_anew(int64_t x) { return x; }
template <class T, class I>
T apl_read_anew(const apl_shared<T>& table, I index, int line = __builtin_LINE()) {
  return table(index, line);
}

#else

// The same number and element, in a way that the compiler neither shares nor moves out of loops: sums take most of the
// registers. Of positions: steps from one to the next stay additions, which it makes multiplications of.
#if defined(__HIP__)
APL_DEVICE int apl_anew(int x) { return x; }
APL_DEVICE int64_t apl_anew(int64_t x) { return x; }
#else
APL_DEVICE int apl_anew(int x) {
  int y;
  asm volatile("mov.u32 %0, %1;" : "=r"(y) : "r"(x));
  return y;
}
APL_DEVICE int64_t apl_anew(int64_t x) {
  int64_t y;
  asm volatile("mov.b64 %0, %1;" : "=l"(y) : "l"(x));
  return y;
}
#endif
template <class T, class I>
APL_DEVICE T apl_read_anew(const apl_shared<T>& table, I index) {
  return *const_cast<const volatile T*>(table.data + index);
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

template <int count, class S>
APL_DEVICE void apl_matrix_start(S* sums);

APL_DEVICE void apl_matrix_keep(float& sum) { asm volatile("" : "+f"(sum)::"memory"); }
APL_DEVICE void apl_matrix_keep(int32_t& sum) { asm volatile("" : "+r"(sum)::"memory"); }
APL_DEVICE void apl_matrix_keep(uint32_t& sum) { asm volatile("" : "+r"(sum)::"memory"); }
// Before the first products: the compiler is to have the `count` sums where the matrix units keep them.
template <int count, class S>
APL_DEVICE void apl_matrix_start(S* sums) {
  APL_UNROLL
  for (int k = 0; k < count; ++k) apl_matrix_keep(sums[k]);
}

// Tells the matrix units of what threads wrote into tiles, before the barrier that tells other threads.
APL_DEVICE void apl_matrix_publish() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
APL_DEVICE void apl_matrix_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Waits until at most the last `groups` committed groups of products are under way.
template <int groups>
APL_DEVICE void apl_matrix_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(groups) : "memory");
}
// Waits for all of them: the thread's `count` sums are there.
template <int count, class S>
APL_DEVICE void apl_matrix_finish(S* sums) {
  apl_matrix_wait<0>();
  APL_UNROLL
  for (int k = 0; k < count; ++k) apl_matrix_keep(sums[k]);
}

// PTX's description of a tile: its address, how far apart 64 rows (of tiles that are not by depth) and groups of eight
// lines are, and over how many bytes pieces are xor-ed.
template <int depth, bool by_depth, int bytes>
APL_DEVICE uint64_t apl_matrix_tile(unsigned address) {
  constexpr uint64_t lines = by_depth ? depth * bytes : 128, mode = lines == 128 ? 1 : lines == 64 ? 2 : 3;
  constexpr uint64_t panels = by_depth ? 16 : depth * 128;
  return (address & 0x3ffff) >> 4 | panels >> 4 << 16 | lines * 8 >> 4 << 32 | mode << 62;
}

#define APL_NAMES_32                                                                                               \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29," \
  "%30,%31"
#define APL_NAMES_64                                                                                              \
  APL_NAMES_32                                                                                                    \
  ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58," \
  "%59,%60,%61,%62,%63"
#define APL_NAMES_128                                                                                                 \
  APL_NAMES_64                                                                                                        \
  ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91," \
  "%92,%93,%94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,"  \
  "%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
// Register n of the sums is that of row n / 2 % 2, column n / 4 * 2 + n % 2.
#define APL_SUM(kind, n) kind(APL_MATRIX_SUM((n) / 2 % 2, (n) / 4 * 2 + (n) % 2))
#define APL_SUMS_8(kind, n)                                                                                 \
  APL_SUM(kind, n), APL_SUM(kind, n + 1), APL_SUM(kind, n + 2), APL_SUM(kind, n + 3), APL_SUM(kind, n + 4), \
      APL_SUM(kind, n + 5), APL_SUM(kind, n + 6), APL_SUM(kind, n + 7)
#define APL_SUMS_32(kind, n) \
  APL_SUMS_8(kind, n), APL_SUMS_8(kind, n + 8), APL_SUMS_8(kind, n + 16), APL_SUMS_8(kind, n + 24)
#define APL_SUMS_64(kind, n) APL_SUMS_32(kind, n), APL_SUMS_32(kind, n + 32)
#define APL_SUMS_128(kind, n) APL_SUMS_64(kind, n), APL_SUMS_64(kind, n + 64)
// Of `columns` columns: `types` is what PTX calls the kind of product, `orders` what else says of floats.
#define APL_WGMMA(kind, types, columns, registers, a, b, orders, ...)                                               \
  asm volatile(                                                                                                     \
      "{\n.reg .pred p;\nsetp.eq.b32 p, 0, 0;\n"                                                                    \
      "wgmma.mma_async.sync.aligned.m64n" #columns types " {" APL_NAMES_##registers "}, %" #a ", %" #b ", p" orders \
                                                                                    ";\n}\n"                        \
      : APL_SUMS_##registers(kind, 0)                                                                               \
      : "l"(of_p), "l"(of_q)__VA_ARGS__)
#define APL_ORDERS , "n"(p_by_depth ? 0 : 1), "n"(q_by_depth ? 0 : 1)
#define APL_WGMMA_FLOATS(type)                                                                       \
  if constexpr (q_each == 64)                                                                        \
    APL_WGMMA("+f", "k16.f32." type "." type, 256, 128, 128, 129, ", 1, 1, %130, %131", APL_ORDERS); \
  else if constexpr (q_each == 32)                                                                   \
    APL_WGMMA("+f", "k16.f32." type "." type, 128, 64, 64, 65, ", 1, 1, %66, %67", APL_ORDERS);      \
  else                                                                                               \
    APL_WGMMA("+f", "k16.f32." type "." type, 64, 32, 32, 33, ", 1, 1, %34, %35", APL_ORDERS)
#define APL_WGMMA_BYTES(types)                                 \
  if constexpr (q_each == 64)                                  \
    APL_WGMMA("+r", "k32.s32." types, 256, 128, 128, 129, ""); \
  else if constexpr (q_each == 32)                             \
    APL_WGMMA("+r", "k32.s32." types, 128, 64, 64, 65, "");    \
  else                                                         \
    APL_WGMMA("+r", "k32.s32." types, 64, 32, 32, 33, "")

template <int depth, int q_each, bool p_by_depth, bool q_by_depth, bool flipped, class S, class P, class Q>
APL_DEVICE void apl_matrix_multiply(S* sums, const apl_shared<P>& p, int p_at, const apl_shared<Q>& q, int q_at) {
  static_assert(q_each == 16 || q_each == 32 || q_each == 64, "tile q has 64, 128 or 256 rows");
  static_assert(sizeof(P) == 2 || (p_by_depth && q_by_depth), "tiles of 8 bits lie by depth");
  constexpr int bytes = sizeof(P);
  // The warpgroup's number, which the compiler is to know as the same for all of its threads.
  const int group = __shfl_sync(~0u, apl_thread() / 128, 0);
  const unsigned from_p = static_cast<unsigned>(__cvta_generic_to_shared(p.data)) + (p_at + group * 64 * depth) * bytes;
  const unsigned from_q = static_cast<unsigned>(__cvta_generic_to_shared(q.data)) + q_at * bytes;
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  APL_UNROLL
  for (int k = 0; k < depth * bytes / 32; ++k) {
    const uint64_t of_p = apl_matrix_tile<depth, p_by_depth, bytes>(from_p + k * (p_by_depth ? 32 : 2048));
    const uint64_t of_q = apl_matrix_tile<depth, q_by_depth, bytes>(from_q + k * (q_by_depth ? 32 : 2048));
    if constexpr (bytes == 1) {
      constexpr bool p_has_sign = P(-1) < P(0), q_has_sign = Q(-1) < Q(0);
      if constexpr (p_has_sign && q_has_sign) {
        APL_WGMMA_BYTES("s8.s8");
      } else if constexpr (p_has_sign) {
        APL_WGMMA_BYTES("s8.u8");
      } else if constexpr (q_has_sign) {
        APL_WGMMA_BYTES("u8.s8");
      } else {
        APL_WGMMA_BYTES("u8.u8");
      }
    } else if constexpr (apl_traits<P>::is_bfloat) {
      APL_WGMMA_FLOATS("bf16");
    } else {
      APL_WGMMA_FLOATS("f16");
    }
  }
}
#undef APL_NAMES_32
#undef APL_NAMES_64
#undef APL_NAMES_128
#undef APL_SUM
#undef APL_SUMS_8
#undef APL_SUMS_32
#undef APL_SUMS_64
#undef APL_SUMS_128
#undef APL_WGMMA
#undef APL_ORDERS
#undef APL_WGMMA_FLOATS
#undef APL_WGMMA_BYTES

#else

template <int count, class S>
APL_DEVICE void apl_matrix_start(S*) {}
APL_DEVICE void apl_matrix_publish() {}
APL_DEVICE void apl_matrix_commit() {}
template <int groups>
APL_DEVICE void apl_matrix_wait() {}
template <int count, class S>
APL_DEVICE void apl_matrix_finish(S*) {}

// sums[16][8] += a[16][32] b[32][8] of bytes, shared out over the lanes as PTX's mma.m16n8k32 does: as apl_mma, with
// four steps where that has pairs.
#if defined(__HIP__)
template <class P, class Q, class S>
APL_DEVICE void apl_mma_bytes(S* sums, const uint32_t* a, const uint32_t* b);
#else
#define APL_MMA(types)                                                                                            \
  asm("mma.sync.aligned.m16n8k32.row.col.s32." types ".s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])                                                \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
template <class P, class Q, class S>
APL_DEVICE void apl_mma_bytes(S* sums, const uint32_t* a, const uint32_t* b) {
#if __CUDA_ARCH__ >= 800
  constexpr bool p_has_sign = P(-1) < P(0), q_has_sign = Q(-1) < Q(0);
  if constexpr (p_has_sign && q_has_sign)
    APL_MMA("s8.s8");
  else if constexpr (p_has_sign)
    APL_MMA("s8.u8");
  else if constexpr (q_has_sign)
    APL_MMA("u8.s8");
  else
    APL_MMA("u8.u8");
#else
  // Devices without it, which are given programs for others: by the cores.
  const int lane = apl_lane();
  APL_UNROLL
  for (int e = 0; e < 4; ++e) {
    APL_UNROLL
    for (int k = 0; k < 32; ++k) {
      const uint32_t of_a = __shfl_sync(~0u, a[e / 2 + k / 16 * 2], lane / 4 * 4 + k % 16 / 4);
      const uint32_t of_b = __shfl_sync(~0u, b[k / 16], (lane % 4 * 2 + e % 2) * 4 + k % 16 / 4);
      const P x = static_cast<P>(of_a >> 8 * (k % 4));
      const Q y = static_cast<Q>(of_b >> 8 * (k % 4));
      const int32_t product = static_cast<int32_t>(x) * static_cast<int32_t>(y);
      sums[e] = static_cast<S>(static_cast<uint32_t>(sums[e]) + static_cast<uint32_t>(product));
    }
  }
#endif
}
#undef APL_MMA
#endif

// As many steps of a row as 32 bits hold from k on, the first one lowest.
template <int depth, bool by_depth, class T>
APL_DEVICE uint32_t apl_matrix_word(const apl_shared<T>& tile, int at, int row, int k) {
  const int first = at + apl_matrix_position<depth, by_depth, sizeof(T)>(row, k);
  if constexpr (by_depth) {
    return *reinterpret_cast<const uint32_t*>(tile.data + first);
  } else {
    const int second = at + apl_matrix_position<depth, by_depth, sizeof(T)>(row, k + 1);
    return tile.data[first].bits | static_cast<uint32_t>(tile.data[second].bits) << 16;
  }
}

template <int depth, int q_each, bool p_by_depth, bool q_by_depth, bool flipped, class S, class P, class Q>
APL_DEVICE void apl_matrix_multiply(S* sums, const apl_shared<P>& p, int p_at, const apl_shared<Q>& q, int q_at) {
  constexpr int word = 4 / sizeof(P), steps = 8 * word;  // of 32 bits, of a product
  const int row = apl_warp() * 16 + apl_lane() / 4, column = apl_lane() / 4, depth_at = apl_lane() % 4 * word;
  APL_UNROLL
  for (int k = 0; k < depth; k += steps) {
    uint32_t of_p[4], of_q[2];
    APL_UNROLL
    for (int e = 0; e < 4; ++e)
      of_p[e] = apl_matrix_word<depth, p_by_depth>(p, p_at, row + e % 2 * 8, k + depth_at + e / 2 * (steps / 2));
    APL_UNROLL
    for (int j = 0; j < q_each; j += 2) {
      APL_UNROLL
      for (int e = 0; e < 2; ++e)
        of_q[e] = apl_matrix_word<depth, q_by_depth>(q, q_at, column + j * 4, k + depth_at + e * (steps / 2));
      S part[4];
      APL_UNROLL
      for (int e = 0; e < 4; ++e) part[e] = APL_MATRIX_SUM(e / 2, j + e % 2);
      if constexpr (sizeof(P) == 1) {
        apl_mma_bytes<P, Q>(part, of_p, of_q);
      } else {
        apl_mma<P>(part, of_p, of_q);
      }
      APL_UNROLL
      for (int e = 0; e < 4; ++e) APL_MATRIX_SUM(e / 2, j + e % 2) = part[e];
    }
  }
}

#endif
#endif

#endif
