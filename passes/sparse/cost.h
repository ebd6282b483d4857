// What a sub-task costs on one worker, and a task partition on all (STile, 3.2 and definition 6). The formulas are in
// docs/sparse.md.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "passes/sparse/profile.h"

namespace apl::sparse {

struct Problem {
  Operator op = Operator::spmm;
  std::int64_t dense = 128;        // iterations of the dense loop
  std::int64_t element_bytes = 2;  // of values and of the dense matrices: 1, 2, 4 or 8
};

// All that the cost of a tile depends on.
struct TileShape {
  enum class Kind : std::uint8_t { block, ell, segment } kind = Kind::ell;
  bool shared = false;        // another tile has one of its rows: results are added atomically
  std::int64_t rows = 0;      // block: height; ell: rows; segment: distinct rows
  std::int64_t elements = 0;  // block: steps; ell: width; segment: non-zeros
  std::int64_t columns = 0;   // distinct ones of ell and segment
};

class CostModel {
 public:
  // `part` iterations of the dense loop are one sub-task.
  CostModel(const Profile& profile, const Problem& problem, std::int64_t part);

  // Whether there are blocks of this height, and the cost of a tile of so many steps.
  bool has_block(std::int64_t height) const { return step_[height_index(height)] > 0; }
  bool has_blocks() const { return has_block(8) || has_block(16) || has_block(32) || has_block(64); }
  double block(std::int64_t height, std::int64_t steps) const {
    return tile_ + static_cast<double>(steps) * step_[height_index(height)];
  }
  // Of one sub-task, in nanoseconds.
  double cost(const TileShape& shape) const;
  // How many sub-tasks a tile makes.
  std::int64_t parts() const { return (problem_.dense + part_ - 1) / part_; }
  // Of all sub-tasks of these tiles on all workers, launch included.
  double total(std::span<const TileShape> shapes) const;
  double dense_product(std::int64_t rows, std::int64_t columns) const;

 private:
  static std::size_t height_index(std::int64_t height) {
    return height == 8 ? 0 : height == 16 ? 1 : height == 32 ? 2 : 3;
  }

  const Profile& profile_;
  Problem problem_;
  std::int64_t part_;
  std::array<double, 4> step_{};  // 0: no such blocks
  double tile_;
};

// The least squares line through points: slope and intercept (algorithm 1). The slope is 0 if all x are the same.
std::pair<double, double> fit_line(std::span<const double> x, std::span<const double> y);

// A sub-task that ran, with and without atomic additions, on one of workers that were all busy (algorithm 1).
struct Sample {
  TileShape shape;
  double nanoseconds = 0, atomic_nanoseconds = 0;
};
// The coefficients of one kind of tiles from what was measured, all of it with the same part.
Coefficients fit(const Profile& profile, const Problem& problem, std::int64_t part, std::span<const Sample> samples);

}  // namespace apl::sparse
