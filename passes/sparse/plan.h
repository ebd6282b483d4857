// What a search found: how the non-zeros of one matrix become tiles. Its text is read by runtime/sparse, which
// makes the tiles.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "passes/sparse/cost.h"
#include "passes/sparse/row_group.h"

namespace apl::sparse {

struct GroupPlan {
  std::vector<Selection> selections;
  Remainder remainder = Remainder::ell;
  bool operator==(const GroupPlan&) const = default;
};

struct Plan {
  Problem problem;
  std::int64_t rows = 0, columns = 0, nonzeros = 0;
  std::uint64_t hash = 0;               // pattern_hash
  std::int64_t part = 1;                // iterations of the dense loop in one sub-task
  bool dense = false;                   // no tiles: the dense product is cheaper
  std::string order = "natural";        // how the order was made
  std::vector<std::int32_t> row_order;  // empty: as they are
  RemainderShape remainder;
  std::vector<GroupPlan> groups;

  std::string device;                                      // the profile
  double cost = 0;                                         // nanoseconds by the model
  std::vector<std::pair<std::string, double>> considered;  // all that were compared, the cheapest first
  std::vector<std::pair<std::string, double>> measured;    // those that were run, the fastest first
  std::string how_measured = "measured";
  bool complete = true;  // false: the search was stopped
  double seconds = 0;
};

std::string to_text(const Plan& plan);

}  // namespace apl::sparse
