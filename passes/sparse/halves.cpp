#include "passes/sparse/halves.h"

#include <algorithm>
#include <bit>

namespace apl::sparse {
namespace {

constexpr std::size_t kParts = 4;  // of 8 rows, in a half

std::int64_t steps_of(std::int64_t columns) { return (columns + kStepColumns - 1) / kStepColumns; }

}  // namespace

void Halves::look(const RowGroup& group, std::int64_t index, const CostModel& model) {
  for (std::size_t h = 0; h < 2; ++h) {
    Half& half = halves_[static_cast<std::size_t>(2 * index) + h];
    std::array<std::array<std::int64_t, kParts>, 3> shared{}, own{};
    std::uint32_t rows = 0;
    std::int64_t entries = 0, columns = 0;
    for (const std::uint64_t all : group.rows) {
      const auto here = static_cast<std::uint32_t>(all >> (32 * h));
      if (here == 0) continue;
      rows |= here;
      ++columns;
      entries += std::popcount(here);
      unsigned met = 0;
      for (std::size_t part = 0; part < kParts; ++part)
        met |= static_cast<unsigned>((here >> (8 * part) & 255U) != 0) << part;
      for (std::size_t k = 0; k < 3; ++k)
        for (std::size_t window = 0; window < kParts >> k; ++window) {
          const unsigned inside = met >> (window << k) & ((1U << (1U << k)) - 1);
          if (inside == 0) continue;
          const bool is_shared = k == 0 || (inside & (inside - 1)) != 0;
          if (is_shared) {
            ++shared[k][window];
          } else {
            ++own[k][(window << k) + static_cast<std::size_t>(std::countr_zero(inside))];
          }
        }
    }
    half.rows = {TileShape::Kind::segment, false, std::popcount(rows), entries, columns};
    half.rows_cost = entries == 0 ? 0 : model.cost(half.rows);
    for (std::size_t k = 0; k < 3; ++k) {
      Windows& windows = half.windows[k];
      windows = {};
      for (const std::int64_t count : shared[k]) windows.steps += steps_of(count);
      for (const std::int64_t count : own[k]) windows.own += steps_of(count);
      windows.cost = static_cast<double>(kParts >> k) * model.block(kWindowHeights[k], 0) +
                     model.block(kWindowHeights[k], windows.steps) - model.block(kWindowHeights[k], 0) +
                     model.block(8, windows.own) - model.block(8, 0);
    }
  }
}

std::vector<GroupPlan> Halves::compose(std::size_t height, double bias) const {
  const auto count = std::ranges::count_if(halves_, [&](const Half& half) { return is_windows(half, height, bias); });
  const auto with_rows = std::ranges::count_if(halves_, [](const Half& half) { return half.rows.elements > 0; });
  if (count == 0 || count == with_rows) return {};
  std::vector<GroupPlan> plans(halves_.size() / 2);
  const auto rows = static_cast<std::uint8_t>(kWindowHeights[height]);
  for (std::size_t k = 0; k < halves_.size(); ++k) {
    if (!is_windows(halves_[k], height, bias)) continue;
    const auto windows = static_cast<std::uint8_t>(32 / rows);
    for (std::uint8_t window = 0; window < windows; ++window)
      plans[k / 2].selections.push_back({rows, static_cast<std::uint8_t>(k % 2 * windows + window), 1});
  }
  return plans;
}

std::vector<TileShape> Halves::shapes(std::size_t height, double bias) const {
  std::vector<TileShape> shapes;
  for (const Half& half : halves_) {
    if (half.rows.elements == 0) continue;
    if (!is_windows(half, height, bias)) {
      shapes.push_back(half.rows);
      continue;
    }
    const Windows& windows = half.windows[height];
    shapes.push_back({TileShape::Kind::block, false, kWindowHeights[height], windows.steps, 0});
    if (windows.own > 0) shapes.push_back({TileShape::Kind::block, false, 8, windows.own, 0});
  }
  return shapes;
}

}  // namespace apl::sparse
