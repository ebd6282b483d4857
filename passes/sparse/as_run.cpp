#include "passes/sparse/as_run.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "passes/sparse/halves.h"

namespace apl::sparse {
namespace {

constexpr std::size_t kHalfRows = 32;

// Of 8, 16 and 32 rows, higher ones counted with the highest that there is; 0: nothing is selected.
std::int64_t height_of(const std::vector<GroupPlan>& groups, const CostModel& model) {
  std::int64_t highest = 0;
  for (const std::int64_t height : kWindowHeights)
    if (model.has_block(height)) highest = height;
  std::array<std::int64_t, kHalfRows + 1> rows{};
  for (const GroupPlan& group : groups)
    for (const Selection& selection : group.selections)
      rows[static_cast<std::size_t>(std::min<std::int64_t>(selection.height, highest))] += selection.height;
  std::int64_t most = 0;
  for (const std::int64_t height : kWindowHeights)
    if (height <= highest && rows[static_cast<std::size_t>(height)] > rows[static_cast<std::size_t>(most)])
      most = height;
  return most;
}

void add_windows(GroupPlan& group, std::int64_t height, std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; row += height)
    group.selections.push_back({static_cast<std::uint8_t>(height), static_cast<std::uint8_t>(row / height), 1});
}

std::vector<GroupPlan> samples_as_run(const std::vector<GroupPlan>& groups) {
  const auto selected = std::ranges::count_if(groups, [](const GroupPlan& group) { return !group.selections.empty(); });
  GroupPlan all{{}, Remainder::segment};
  if (selected > 0 && 2 * selected >= std::ssize(groups)) {
    all.remainder = Remainder::ell;
    add_windows(all, kWindowHeights[0], 0, kGroupRows);
  }
  return std::vector<GroupPlan>(groups.size(), all);
}

}  // namespace

std::vector<GroupPlan> as_run(const std::vector<GroupPlan>& groups, Operator op, const CostModel& model) {
  if (op == Operator::sddmm) return samples_as_run(groups);
  const std::int64_t height = height_of(groups, model);
  std::vector<GroupPlan> run;
  run.reserve(groups.size());
  for (const GroupPlan& group : groups) {
    GroupPlan& made = run.emplace_back(GroupPlan{{}, group.remainder});
    for (std::int64_t begin = 0; height > 0 && begin < kGroupRows; begin += kHalfRows) {
      const std::int64_t end = begin + static_cast<std::int64_t>(kHalfRows);
      const bool is_selected = std::ranges::any_of(group.selections, [&](const Selection& selection) {
        return selection.window * selection.height < end && (selection.window + 1) * selection.height > begin;
      });
      if (is_selected) add_windows(made, height, begin, end);
    }
  }
  return run;
}

}  // namespace apl::sparse
