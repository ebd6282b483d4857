// What a device costs: the numbers of the cost model, kept in text files (docs/sparse.md), so that a device can be
// added without a compiler.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/diagnostic.h"

namespace apl::sparse {

// spmm: C[i, j] += A[i, k] B[k, j] with A sparse; its dense loop is j, and may be cut.
// sddmm: C[i, j] = A[i, j] * sum of X[i, k] Y[j, k]; its dense loop k is a sum, and stays whole.
enum class Operator : std::uint8_t { spmm, sddmm };
std::string_view to_text(Operator op);

// Nanoseconds of one worker from the roofline number R, in bytes: a R + b; with atomic additions c R'/R + d times that.
struct Coefficients {
  double a = 0, b = 0, c = 1, d = 0;
  bool operator==(const Coefficients&) const = default;
};

// One step of a block tile: `height` rows of 16 columns for `dense` iterations of the dense loop.
struct BlockCost {
  Operator op = Operator::spmm;
  std::int64_t height = 0, dense = 0;
  double nanoseconds = 0;
  std::int64_t bytes = 0;  // of an element that this is for, as matrix units have types; 0: of any
  bool operator==(const BlockCost&) const = default;
};

struct Profile {
  std::string name;
  bool gpu = false;   // else a CPU
  int workers = 1;    // multiprocessors, or cores
  double launch = 0;  // nanoseconds that every product takes
  double peak = 1;    // operations a byte: peak rate over bandwidth
  // Of the dense product on the whole device: operations a nanosecond for elements of 1, 2, 4 and 8 bytes, and
  // nanoseconds that every one takes.
  std::array<double, 4> dense_rates{1, 1, 1, 1};
  double dense_launch = 0;
  Coefficients spmm_ell, spmm_segments, sddmm_ell, sddmm_segments;
  double block_tile = 0;  // nanoseconds that every block tile takes
  std::vector<BlockCost> blocks;
  std::vector<std::int64_t> widths;  // of ELL rows, rising
  std::int64_t ell_elements = 1024, segment_length = 128;

  bool operator==(const Profile&) const = default;
};

// Code syntax.error with the line.
Result<Profile> parse_profile(std::string_view text);
std::string to_text(const Profile& profile);
// "h200" or "cpu"; nullptr for other names.
const Profile* builtin_profile(std::string_view name);

}  // namespace apl::sparse
