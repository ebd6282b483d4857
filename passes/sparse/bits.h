// Counting bits without an instruction for it: programs run on every x86-64, where std::popcount is a call.
#pragma once

#include <cstdint>

namespace apl::sparse {

// In each byte the number of bits that it had.
constexpr std::uint64_t byte_counts(std::uint64_t x) {
  x -= x >> 1 & 0x5555555555555555U;
  x = (x & 0x3333333333333333U) + (x >> 2 & 0x3333333333333333U);
  return (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0FU;
}

constexpr int count_bits(std::uint64_t x) { return static_cast<int>(byte_counts(x) * 0x0101010101010101U >> 56); }

}  // namespace apl::sparse
