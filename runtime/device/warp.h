// What kernels that work by warps use beside device.h, in its two implementations: wide loads and stores, the values of
// other lanes, the tensor cores' product of small matrices. Their blocks have whole warps, and all lanes of a warp come
// to each shuffle and product.
#ifndef APL_DEVICE_WARP_H
#define APL_DEVICE_WARP_H

APL_DEVICE int apl_lane() { return static_cast<int>(static_cast<unsigned>(apl_thread()) % APL_WARP); }
APL_DEVICE int apl_warp() { return static_cast<int>(static_cast<unsigned>(apl_thread()) / APL_WARP); }

#if defined(APL_EMULATE)

inline void apl_copy_bytes(void* to, const void* from, int bytes) { __builtin_memcpy(to, from, bytes); }

// Every lane shows some words, and `use` sees those of its warp's lanes.
template <int count, class Use>
void apl_exchange(const uint32_t* words, int line, const Use& use) {
  auto* of_threads = reinterpret_cast<uint32_t(*)[8]>(apl_emu->lanes);
  __builtin_memcpy(of_threads[apl_thread()], words, count * sizeof(uint32_t));
  apl_warp_barrier(line);
  use(of_threads + apl_thread() / APL_WARP * APL_WARP);
  apl_warp_barrier(line);
}

template <class T>
T apl_shuffle_xor(T value, int mask, int line = __builtin_LINE()) {
  uint32_t words[2] = {};
  __builtin_memcpy(words, &value, sizeof(T));
  apl_exchange<2>(words, line,
                  [&](const uint32_t(*lanes)[8]) { __builtin_memcpy(&value, lanes[apl_lane() ^ mask], sizeof(T)); });
  return value;
}

template <class T>
T apl_shuffle(T value, int lane, int line = __builtin_LINE()) {
  uint32_t words[2] = {};
  __builtin_memcpy(words, &value, sizeof(T));
  apl_exchange<2>(words, line, [&](const uint32_t(*lanes)[8]) { __builtin_memcpy(&value, lanes[lane], sizeof(T)); });
  return value;
}

// The first lane for which it holds; as many as there are if it does for none. All lanes come to it.
inline int apl_first_lane(bool holds, int line = __builtin_LINE()) {
  const uint32_t word = holds;
  int first = 0;
  apl_exchange<1>(&word, line, [&](const uint32_t(*lanes)[8]) {
    while (first < APL_WARP && lanes[first][0] == 0) ++first;
  });
  return first;
}

// The access of so many bytes at an element; a fault if it is not aligned, or if there is no such element.
template <int bytes, class T>
void apl_touch_wide(const T* data, int64_t index, int write, int line) {
  const int64_t offset = index * static_cast<int64_t>(sizeof(T));
  const bool is_aligned = offset % bytes == 0;
  if (!is_aligned) apl_emu->global(apl_emu->self, data, index, sizeof(T), write, line);
  apl_emu->global(apl_emu->self, is_aligned ? data : data + index, is_aligned ? offset / bytes : 0, bytes, write, line);
}

template <int count, class T, class I>
void apl_load(const apl_in<T>& from, I index, T* to, int line = __builtin_LINE()) {
  constexpr int bytes = count * sizeof(T), piece = bytes < 16 ? bytes : 16;
  for (int at = 0; at < count; at += piece / int(sizeof(T)))
    apl_touch_wide<piece>(from.data, static_cast<int64_t>(index) + at, 0, line);
  __builtin_memcpy(to, from.data + index, bytes);
}
template <int count, class T, class I>
void apl_store(const apl_out<T>& to, I index, const T* from, int line = __builtin_LINE()) {
  apl_touch_wide<count * sizeof(T)>(to.data, static_cast<int64_t>(index), 1, line);
  __builtin_memcpy(to.data + index, from, count * sizeof(T));
}
template <int words, class T, class I>
void apl_load_words(const apl_in<T>& from, I index, uint32_t* to, int line = __builtin_LINE()) {
  static_assert(words == 1 || words == 2 || words == 4, "no device has such an access");
  apl_touch_wide<words * 4>(from.data, static_cast<int64_t>(index), 0, line);
  __builtin_memcpy(to, from.data + index, words * 4);
}
template <int words, class T, class I>
void apl_store_words(const apl_out<T>& to, I index, const uint32_t* from, int line = __builtin_LINE()) {
  static_assert(words == 1 || words == 2 || words == 4, "no device has such an access");
  apl_touch_wide<words * 4>(to.data, static_cast<int64_t>(index), 1, line);
  __builtin_memcpy(to.data + index, from, words * 4);
}

template <int words, class T, class I>
void apl_stream_words(const apl_out<T>& to, I index, const uint32_t* from, int line = __builtin_LINE()) {
  apl_store_words<words>(to, index, from, line);
}

inline uint32_t apl_low_halves(uint32_t a, uint32_t b) { return (a & 0xffff) | b << 16; }
inline uint32_t apl_high_halves(uint32_t a, uint32_t b) { return a >> 16 | (b & 0xffff0000u); }
inline int apl_ones(uint32_t bits) { return __builtin_popcount(bits); }
// Number `which` of two in a word.
template <class T>
float apl_number_of(uint32_t pair, int which) {
  T number;
  number.bits = static_cast<uint16_t>(pair >> 16 * which);
  return number;
}
inline uint32_t apl_half_pair(float low, float high) {
  return apl_half_bits(low) | static_cast<uint32_t>(apl_half_bits(high)) << 16;
}

template <class T>
void apl_mma(float* sums, const uint32_t* a, const uint32_t* b, int line = __builtin_LINE()) {
  const uint32_t words[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
  apl_exchange<6>(words, line, [&](const uint32_t(*lanes)[8]) {
    for (int e = 0; e < 4; ++e) {
      const int row = e / 2, column = apl_lane() % 4 * 2 + e % 2;
      float sum = sums[e];
      for (int k = 0; k < 16; ++k) {
        const uint32_t from_a = lanes[apl_lane() / 4 * 4 + k % 8 / 2][row + k / 8 * 2];
        const uint32_t from_b = lanes[column * 4 + k % 8 / 2][4 + k / 8];
        sum += apl_number_of<T>(from_a, k % 2) * apl_number_of<T>(from_b, k % 2);
      }
      sums[e] = sum;
    }
  });
}

#else

APL_DEVICE void apl_copy_bytes(void* to, const void* from, int bytes) { memcpy(to, from, bytes); }

template <int bytes>
struct apl_chunk;
template <>
struct apl_chunk<1> {
  typedef unsigned char type;
};
template <>
struct apl_chunk<2> {
  typedef unsigned short type;
};
template <>
struct apl_chunk<4> {
  typedef unsigned type;
};
template <>
struct apl_chunk<8> {
  typedef uint2 type;
};
template <>
struct apl_chunk<16> {
  typedef uint4 type;
};

// The value of a lane: `by_mask`, of the one whose number differs in these bits. All lanes of the warp come to it.
template <bool by_mask, class Word>
APL_DEVICE Word apl_shuffle_word(Word bits, int lane) {
#if defined(__HIP__)
  return by_mask ? __shfl_xor(bits, lane, APL_WARP) : __shfl(bits, lane, APL_WARP);
#else
  return by_mask ? __shfl_xor_sync(~0u, bits, lane) : __shfl_sync(~0u, bits, lane);
#endif
}
template <bool by_mask, class T>
APL_DEVICE T apl_shuffled(T value, int lane) {
  if constexpr (sizeof(T) == 8) {
    unsigned long long bits;
    memcpy(&bits, &value, 8);
    bits = apl_shuffle_word<by_mask>(bits, lane);
    memcpy(&value, &bits, 8);
  } else {
    unsigned bits = 0;
    memcpy(&bits, &value, sizeof(T));
    bits = apl_shuffle_word<by_mask>(bits, lane);
    memcpy(&value, &bits, sizeof(T));
  }
  return value;
}
template <class T>
APL_DEVICE T apl_shuffle_xor(T value, int mask) {
  return apl_shuffled<true>(value, mask);
}
template <class T>
APL_DEVICE T apl_shuffle(T value, int lane) {
  return apl_shuffled<false>(value, lane);
}

// The first lane for which it holds; as many as there are if it does for none. All lanes come to it.
APL_DEVICE int apl_first_lane(bool holds) {
#if defined(__HIP__)
  const unsigned long long lanes = __ballot(holds);
  return lanes == 0 ? APL_WARP : __ffsll(lanes) - 1;
#else
  const unsigned lanes = __ballot_sync(~0u, holds);
  return lanes == 0 ? APL_WARP : __ffs(lanes) - 1;
#endif
}

// `count` neighbouring elements, in accesses of up to 16 bytes; the address is a multiple of an access' size.
template <int count, class T, class I>
APL_DEVICE void apl_load(const apl_in<T>& from, I index, T* to) {
  constexpr int bytes = count * sizeof(T), piece = bytes < 16 ? bytes : 16;
  typedef typename apl_chunk<piece>::type chunk;
  const auto* source = reinterpret_cast<const chunk*>(from.data + index);
#pragma unroll
  for (int at = 0; at < bytes / piece; ++at) {
    const chunk loaded = apl_read(source + at);
    memcpy(reinterpret_cast<char*>(to) + at * piece, &loaded, piece);
  }
}
// The same as words of 32 bits, at most four.
template <int words, class T, class I>
APL_DEVICE void apl_load_words(const apl_in<T>& from, I index, uint32_t* to) {
  typedef typename apl_chunk<words * 4>::type chunk;
  const chunk loaded = apl_read(reinterpret_cast<const chunk*>(from.data + index));
  memcpy(to, &loaded, words * 4);
}
template <int words, class T, class I>
APL_DEVICE void apl_store_words(const apl_out<T>& to, I index, const uint32_t* from) {
  typedef typename apl_chunk<words * 4>::type chunk;
  chunk stored;
  memcpy(&stored, from, words * 4);
  *reinterpret_cast<chunk*>(to.data + index) = stored;
}

// The same, of what the kernel does not read: in the second cache it is what makes room for others.
template <int words, class T, class I>
APL_DEVICE void apl_stream_words(const apl_out<T>& to, I index, const uint32_t* from) {
#if defined(__HIP__)
  apl_store_words<words>(to, index, from);
#else
  typedef typename apl_chunk<words * 4>::type chunk;
  chunk stored;
  memcpy(&stored, from, words * 4);
  __stcs(reinterpret_cast<chunk*>(to.data + index), stored);
#endif
}

// Two halves in a word: the low ones of two words, the high ones; of numbers as f16.
APL_DEVICE uint32_t apl_low_halves(uint32_t a, uint32_t b) { return __byte_perm(a, b, 0x5410); }
APL_DEVICE uint32_t apl_high_halves(uint32_t a, uint32_t b) { return __byte_perm(a, b, 0x7632); }
APL_DEVICE int apl_ones(uint32_t bits) { return __popc(bits); }
#if defined(__HIP__)
APL_DEVICE uint32_t apl_half_pair(float low, float high) {
  return apl_half_bits(low) | static_cast<uint32_t>(apl_half_bits(high)) << 16;
}
#else
APL_DEVICE uint32_t apl_half_pair(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
#endif

// sums[16][8] += a[16][16] b[16][8] of T, a float of 16 bits, shared out over the lanes as PTX's mma.m16n8k16 does:
// lane 4 g + t has of a the pairs at (g, 2t), (g + 8, 2t), (g, 2t + 8), (g + 8, 2t + 8), of b those at (2t, g), (2t +
// 8, g) along k, of the sums (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1).
#if !defined(__HIP__)  // whose machines' matrix units do not have it
#define APL_MMA(name)                                              \
  asm("mma.sync.aligned.m16n8k16.row.col.f32." name "." name       \
      ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]) \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

template <class T>
APL_DEVICE void apl_mma(float* sums, const uint32_t* a, const uint32_t* b) {
#if __CUDA_ARCH__ >= 800
  if constexpr (apl_traits<T>::is_bfloat)
    APL_MMA("bf16");
  else
    APL_MMA("f16");
#else
  // Devices without it, which are given programs for others: by the cores.
  const int lane = apl_lane();
  APL_UNROLL
  for (int e = 0; e < 4; ++e) {
    APL_UNROLL
    for (int k = 0; k < 16; ++k) {
      const uint32_t of_a = __shfl_sync(~0u, a[e / 2 + k / 8 * 2], lane / 4 * 4 + k % 8 / 2);
      const uint32_t of_b = __shfl_sync(~0u, b[k / 8], (lane % 4 * 2 + e % 2) * 4 + k % 8 / 2);
      T x, y;
      x.bits = static_cast<uint16_t>(of_a >> 16 * (k % 2));
      y.bits = static_cast<uint16_t>(of_b >> 16 * (k % 2));
      sums[e] += static_cast<float>(x) * static_cast<float>(y);
    }
  }
#endif
}
#undef APL_MMA
#else
template <class T>
APL_DEVICE void apl_mma(float* sums, const uint32_t* a, const uint32_t* b);
#endif

#endif

// What a block publishes: a value and a number that is not 0. Each 4 bytes of the value are in one cell with the
// number, so that no cell is seen without it, in whatever order cells are written and read.
template <class T>
APL_DEVICE void apl_publish(const apl_out<uint64_t>& cells, int64_t at, uint32_t number, T value) {
  uint64_t bits = 0;
  apl_copy_bytes(&bits, &value, sizeof(T));
  for (unsigned k = 0; k < sizeof(T); k += 4)
    apl_post(cells, at + k / 4, static_cast<uint64_t>(number) << 32 | (bits >> 8 * k & 0xffffffffu));
}
// The number, and the value with it; 0 if there is none, or another one is being published.
template <class T>
APL_DEVICE uint32_t apl_published(const apl_out<uint64_t>& cells, int64_t at, T* value) {
  const uint64_t first = apl_look(cells, at);
  uint64_t bits = first & 0xffffffffu;
  uint32_t number = static_cast<uint32_t>(first >> 32);
  if constexpr (sizeof(T) > 4) {
    const uint64_t second = apl_look(cells, at + 1);
    bits |= second << 32;
    if (static_cast<uint32_t>(second >> 32) != number) number = 0;
  }
  apl_copy_bytes(value, &bits, sizeof(T));
  return number;
}
#endif
