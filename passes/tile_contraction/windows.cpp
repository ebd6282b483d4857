#include "passes/tile_contraction/windows.h"

#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/print.h"
#include "ir/walk.h"

namespace apl::tile {
namespace {

// "<T_q, T_a*R_a> at strides <a, 1> from a*T_q*tile_q"; an axis over several dims has a stride for each.
std::string window_text(const CopyTile& copy, const Function& function) {
  std::vector<std::string> sizes, strides;
  for (std::size_t k = 0; k < copy.window.rank(); ++k) {
    const LmadDim& dim = copy.window.dims()[k];
    sizes.push_back(print(dim.size, function));
    if (copy.guards[k].split.empty()) {
      strides.push_back(print(dim.stride, function));
      continue;
    }
    std::vector<std::string> parts;
    for (const TileGuard::Part& part : copy.guards[k].split)
      parts.push_back(fmt::format("{}:{}", print(part.bound, function), print(part.stride, function)));
    strides.push_back(fmt::format("({})", fmt::join(parts, ", ")));
  }
  return fmt::format("<{}> at strides <{}> from {}", fmt::join(sizes, ", "), fmt::join(strides, ", "),
                     print(copy.window.offset(), function));
}

std::string tile_text(const SharedArray& tile, const Function& function) {
  std::vector<std::string> sizes, strides;
  for (const LmadDim& dim : tile.layout.dims()) {
    sizes.push_back(print(dim.size, function));
    strides.push_back(print(dim.stride, function));
  }
  return fmt::format("<{}> at strides <{}>", fmt::join(sizes, ", "), fmt::join(strides, ", "));
}

}  // namespace

RemarkFacts window_facts(const SegOp& kernel, const Function& function) {
  RemarkFacts facts;
  std::set<std::string> said;
  for_each_stm(*kernel.body, [&](const Stm& stm) {
    if (const CopyTile* copy = get_if<CopyTile>(stm)) {
      const std::string name = "window." + function.values.name(copy->source);
      if (said.insert(name).second) facts.emplace_back(name, window_text(*copy, function));
    } else if (const SharedArray* tile = get_if<SharedArray>(stm)) {
      facts.emplace_back("shared." + function.values.name(stm.pattern.front()), tile_text(*tile, function));
    }
  });
  return facts;
}

}  // namespace apl::tile
