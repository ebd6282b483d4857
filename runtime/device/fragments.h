// Products of two tiles in shared memory by matrix units, from tiles as multiply-adds have them: of f64, and of f32 by
// tf32. Each thread loads its fragments.
#ifndef APL_DEVICE_FRAGMENTS_H
#define APL_DEVICE_FRAGMENTS_H

// sums[16][8] += a[16][4] b[4][8], shared out over a warp's lanes as PTX's mma.m16n8k4 of f64 does: lane 4 g + t has of
// a (g, t), (g + 8, t), of b (t, g), of the sums (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1).
#if defined(APL_EMULATE)
inline void apl_mma_doubles(double* sums, const double* a, double b, int line = __builtin_LINE()) {
  uint32_t words[6];
  __builtin_memcpy(words, a, 16);
  __builtin_memcpy(words + 4, &b, 8);
  apl_exchange<6>(words, line, [&](const uint32_t(*lanes)[8]) {
    for (int e = 0; e < 4; ++e)
      for (int k = 0; k < 4; ++k) {
        double x, y;
        __builtin_memcpy(&x, lanes[apl_lane() / 4 * 4 + k] + e / 2 * 2, 8);
        __builtin_memcpy(&y, lanes[(apl_lane() % 4 * 2 + e % 2) * 4 + k] + 4, 8);
        sums[e] += x * y;
      }
  });
}
#elif defined(__HIP__)
APL_DEVICE void apl_mma_doubles(double* sums, const double* a, double b);
#else
APL_DEVICE void apl_mma_doubles(double* sums, const double* a, double b) {
#if __CUDA_ARCH__ >= 900  // where m8n8k4 is half as fast, and deeper ones need more warps to be as fast
  asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
      : "+d"(sums[0]), "+d"(sums[1]), "+d"(sums[2]), "+d"(sums[3])
      : "d"(a[0]), "d"(a[1]), "d"(b));
#elif __CUDA_ARCH__ >= 800
  APL_UNROLL
  for (int e = 0; e < 2; ++e)
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
        : "+d"(sums[e * 2]), "+d"(sums[e * 2 + 1])
        : "d"(a[e]), "d"(b));
#else
  // Devices without it, which are given programs for others: by multiply-adds.
  const int lane = apl_lane();
  APL_UNROLL
  for (int e = 0; e < 4; ++e) {
    APL_UNROLL
    for (int k = 0; k < 4; ++k)
      sums[e] += __shfl_sync(~0u, a[e / 2], lane / 4 * 4 + k) * __shfl_sync(~0u, b, (lane % 4 * 2 + e % 2) * 4 + k);
  }
#endif
}
#endif

// Eight steps of the depth of a product of two tiles of f64, whose sums a warp's threads keep as the mainloop of
// contractions does: along P a thread of eight has rows `p_first` + i, `p_vector` neighbours at a time, along Q one of
// four has pairs of rows, of which `q_first` is the warp's first. Tiles hold the rows of a step one after the other,
// `step` elements a step, from `at` on; swizzled ones xor-ed by apl_swizzle. `flipped`: sums lie with P innermost.
template <int p_each, int q_each, int p_vector, bool p_swizzled, bool q_swizzled, bool flipped>
APL_DEVICE void apl_multiply_doubles(double* sums, const apl_shared<double>& p, int p_at, int p_step, int p_first,
                                     const apl_shared<double>& q, int q_at, int q_step, int q_first) {
  const int group = apl_lane() / 4, depth = apl_lane() % 4;
  // Both halves are loaded before the first one's products, which the second one's loads go beside.
  double of_p[2][p_each], of_q[2][q_each / 2];
  APL_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int k = depth + half * 4;
    APL_UNROLL
    for (int i = 0; i < p_each; i += p_vector) {
      const int row = p_first + i * 8;
      apl_load<p_vector>(p, p_at + k * p_step + (p_swizzled ? row ^ apl_swizzle<8>(k) : row), of_p[half] + i);
    }
    APL_UNROLL
    for (int j = 0; j < q_each; j += 2) {
      const int row = q_first + j * 4 + group;
      of_q[half][j / 2] = q(q_at + k * q_step + (q_swizzled ? row ^ apl_swizzle<8>(k) : row));
    }
  }
  APL_UNROLL
  for (int half = 0; half < 2; ++half) {
    APL_UNROLL
    for (int i = 0; i < p_each; i += 2) {
      APL_UNROLL
      for (int j = 0; j < q_each; j += 2) {
        double part[4];
        APL_UNROLL
        for (int e = 0; e < 4; ++e)
          part[e] = sums[flipped ? (j + e % 2) * p_each + i + e / 2 : (i + e / 2) * q_each + j + e % 2];
        apl_mma_doubles(part, of_p[half] + i, of_q[half][j / 2]);
        APL_UNROLL
        for (int e = 0; e < 4; ++e)
          sums[flipped ? (j + e % 2) * p_each + i + e / 2 : (i + e / 2) * q_each + j + e % 2] = part[e];
      }
    }
  }
}

// sums[16][8] += a[16][8] b[8][8] of factors of tf32, of which the low 13 bits are zeros, shared out over a warp's
// lanes as PTX's mma.m16n8k8 does: lane 4 g + t has of a (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4), of b (t, g),
// (t + 4, g), of the sums (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1).
#if defined(APL_EMULATE)
// What a unit makes of a sum and some products, which are exact: all are cut off at the last bit of a float as large as
// the largest of them, and so is their sum. Machines keep some bits more, so that errors here are none too small.
inline float apl_unit_sum(float sum, const float (*factors)[2], int count) {
  double terms[17] = {sum}, total = 0;
  int top = -1000;
  for (int k = 0; k < count; ++k) terms[k + 1] = static_cast<double>(factors[k][0]) * factors[k][1];
  for (int k = 0; k <= count; ++k) {
    int exponent = 0;
    total += terms[k];
    if (terms[k] != 0 && !__builtin_isnan(terms[k]) && !__builtin_isinf(terms[k])) {
      __builtin_frexp(terms[k], &exponent);
      if (exponent > top) top = exponent;
    }
  }
  if (!(__builtin_fabs(total) < 3e38) || top == -1000) return static_cast<float>(total);
  const auto cut = [](double x, int last) {  // towards zero, at bit `last`
    return __builtin_ldexp(__builtin_trunc(__builtin_ldexp(x, -last)), last);
  };
  double kept = 0;
  for (int k = 0; k <= count; ++k) kept += cut(terms[k], top - 24);
  int exponent = 0;
  __builtin_frexp(kept, &exponent);
  return static_cast<float>(cut(kept, exponent - 24));
}
inline void apl_mma_tf32(float* sums, const uint32_t* a, const uint32_t* b, int line = __builtin_LINE()) {
  const uint32_t words[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
  apl_exchange<6>(words, line, [&](const uint32_t(*lanes)[8]) {
    for (int e = 0; e < 4; ++e) {
      float factors[8][2];
      for (int k = 0; k < 8; ++k) {
        const uint32_t of_a = lanes[apl_lane() / 4 * 4 + k % 4][e / 2 + k / 4 * 2] & 0xffffe000u;
        const uint32_t of_b = lanes[(apl_lane() % 4 * 2 + e % 2) * 4 + k % 4][4 + k / 4] & 0xffffe000u;
        __builtin_memcpy(&factors[k][0], &of_a, 4);
        __builtin_memcpy(&factors[k][1], &of_b, 4);
      }
      sums[e] = apl_unit_sum(sums[e], factors, 8);
    }
  });
}
#elif defined(__HIP__)
APL_DEVICE void apl_mma_tf32(float* sums, const uint32_t* a, const uint32_t* b);
#else
APL_DEVICE void apl_mma_tf32(float* sums, const uint32_t* a, const uint32_t* b) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  // Devices without it, which are given programs for others: by multiply-adds.
  const int lane = apl_lane();
  APL_UNROLL
  for (int e = 0; e < 4; ++e) {
    APL_UNROLL
    for (int k = 0; k < 8; ++k)
      sums[e] += __uint_as_float(__shfl_sync(~0u, a[e / 2 + k / 4 * 2], lane / 4 * 4 + k % 4)) *
                 __uint_as_float(__shfl_sync(~0u, b[k / 4], (lane % 4 * 2 + e % 2) * 4 + k % 4));
  }
#endif
}
#endif

// A number as tf32, the nearest, and what is left of it, as tf32 too: together they have 22 of its 24 bits and more.
template <int products>
APL_DEVICE void apl_split(float x, uint32_t& high, uint32_t& low) {
  uint32_t bits;
  apl_copy_bytes(&bits, &x, 4);
  high = (bits + 0x1000u) & 0xffffe000u;
  if constexpr (products == 3) {
    float rounded;
    apl_copy_bytes(&rounded, &high, 4);
    const float left = x - rounded;
    apl_copy_bytes(&low, &left, 4);
    low = (low + 0x1000u) & 0xffffe000u;
  }
}

// Eight steps of the depth of a product of two tiles of f32 by one product of tf32, or by three: of the factors'
// larger parts, and of each larger one with the smaller part of the other. Units cut off what they add, so the three
// are added up from zero, and by multiply-adds to the sum. A warp's threads keep sums as the mainloop of contractions
// does: along P a thread of eight has rows `p_first` + i, four neighbours at a time, along Q one of four has eight
// neighbours at a time, of which `q_first` is the warp's first. Tiles are those of apl_multiply_doubles. Sums lie with
// P innermost.
template <int products, int p_each, int q_each, bool p_swizzled, bool q_swizzled>
APL_DEVICE void apl_multiply_floats(float* sums, const apl_shared<float>& p, int p_at, int p_step, int p_first,
                                    const apl_shared<float>& q, int q_at, int q_step, int q_first) {
  const int lane = apl_anew(apl_lane()), group = lane / 4, depth = lane % 4;
  float of_q[q_each / 2][2];
  APL_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int k = depth + half * 4;
    APL_UNROLL
    for (int j = 0; j < q_each / 2; j += 4) {
      const int row = q_first + j * 8 + group * 4;
      float four[4];
      apl_load<4>(q, q_at + k * q_step + (q_swizzled ? row ^ apl_swizzle(k) : row), four);
      APL_UNROLL
      for (int e = 0; e < 4; ++e) of_q[j + e][half] = four[e];
    }
  }
  APL_UNROLL
  for (int i = 0; i < p_each; i += 4) {
    uint32_t p_high[2][4], p_low[2][4];
    APL_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int k = depth + half * 4, row = p_first + i * 8;
      float of_p[4];
      apl_load<4>(p, p_at + k * p_step + (p_swizzled ? row ^ apl_swizzle(k) : row), of_p);
      APL_UNROLL
      for (int e = 0; e < 4; ++e)
        apl_split<products>(of_p[e], p_high[e / 2][half * 2 + e % 2], p_low[e / 2][half * 2 + e % 2]);
    }
    // Four rows of Q that a thread loads are each one's of a product, whose sums are those of its rows `n` and 4 more
    // of eight. Four products are under way at once, and factors are split for them: more would not leave enough
    // registers.
    APL_UNROLL
    for (int n = 0; n < q_each / 2; n += 2) {
      const auto sum_of = [&](int product, int e) -> float& {
        const int row = n + product / 2;
        return sums[(row / 4 * 8 + row % 4 + e % 2 * 4) * p_each + i + product % 2 * 2 + e / 2];
      };
      uint32_t q_high[2][2], q_low[2][2];
      APL_UNROLL
      for (int k = 0; k < 4; ++k)
        apl_split<products>(of_q[n + k / 2][k % 2], q_high[k / 2][k % 2], q_low[k / 2][k % 2]);
      float part[4][4];
      APL_UNROLL
      for (int x = 3 - products; x < 3; ++x) {
        APL_UNROLL
        for (int product = 0; product < 4; ++product) {
          APL_UNROLL
          for (int e = 0; e < 4 && x == 3 - products; ++e) part[product][e] = products == 3 ? 0 : sum_of(product, e);
          apl_mma_tf32(part[product], x == 0 ? p_low[product % 2] : p_high[product % 2],
                       x == 1 ? q_low[product / 2] : q_high[product / 2]);
        }
      }
      APL_UNROLL
      for (int product = 0; product < 4; ++product) {
        APL_UNROLL
        for (int e = 0; e < 4; ++e)
          sum_of(product, e) = products == 3 ? sum_of(product, e) + part[product][e] : part[product][e];
      }
    }
  }
}
#endif
