// Compositions that the kernels for GPUs run as they are: every 32 rows are gathered, or are windows of one height.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "passes/sparse/cost.h"
#include "passes/sparse/plan.h"
#include "passes/sparse/row_group.h"

namespace apl::sparse {

constexpr std::array<std::int64_t, 3> kWindowHeights = {8, 16, 32};

// The 32 rows of each half of a group, in one order of the rows.
class Halves {
 public:
  explicit Halves(std::int64_t groups) : halves_(static_cast<std::size_t>(2 * groups)) {}

  // May be called from several threads for different groups.
  void look(const RowGroup& group, std::int64_t index, const CostModel& model);

  // Halves whose windows cost less than `bias` times what they cost gathered are windows, `kWindowHeights[height]` rows
  // high. Empty where all halves are alike: plans of one format are that.
  std::vector<GroupPlan> compose(std::size_t height, double bias) const;
  // The tiles of that.
  std::vector<TileShape> shapes(std::size_t height, double bias) const;

 private:
  // Columns that two of a window's parts of 8 rows meet are steps of the window, the others of their part.
  struct Windows {
    std::int64_t steps = 0, own = 0;
    double cost = 0;
  };
  struct Half {
    TileShape rows;
    double rows_cost = 0;
    std::array<Windows, 3> windows;
  };

  static bool is_windows(const Half& half, std::size_t height, double bias) {
    return half.rows.elements > 0 && half.windows[height].cost < bias * half.rows_cost;
  }

  std::vector<Half> halves_;
};

}  // namespace apl::sparse
