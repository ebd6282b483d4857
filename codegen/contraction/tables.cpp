// The mainloop of a contraction: tables of where rows lie in memory (codegen/contraction/tile_loop.cpp). An M or N dim
// may be many dims flattened, whose indices are worked out here, once a row; neighbours that are one dim in memory cost
// no division.
#include <algorithm>

#include "codegen/contraction/mainloop.h"
#include "codegen/lower/lower.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

void MainloopLowering::fill_mainloop_tables(const SegOp& op, std::size_t s, KernelBlock& out) {
  Mainloop& mainloop = *mainloop_;
  const MnDim& mn = mainloop.mn_dims[s];
  const TileExtent& extent = op.results[0].extents[mn.dim];
  const Lmad& layout = unit_.function.type(stm_.pattern[0]).memory->layout;
  const std::string m = unit_.fresh("m"), at = unit_.fresh("at");
  KernelBlock inner;
  const ExprPtr start = values_.poly(Poly(op.space[mn.dim].index) * extent.tile * extent.reg);
  inner.push_back(declare(kIndex, at, plus(start, variable(m))));
  const std::string inside = unit_.fresh("inside");
  inner.push_back(declare({ScalarType::boolean, false}, inside, infix("<", variable(at), values_.poly(extent.bound))));
  // One index for each dim that is flattened into it, and for neighbours that lie together in all arrays.
  std::vector<Poly> bounds{extent.bound};
  std::vector<std::vector<Poly>> strides{{layout.dims()[mn.dim].stride}};  // of the result, then of the tiles
  if (!extent.split.empty()) bounds.clear(), strides[0].clear();
  for (const TileExtent::Part& part : extent.split) {
    bounds.push_back(part.bound);
    strides[0].push_back(layout.dims()[static_cast<std::size_t>(part.axis)].stride);
  }
  std::vector<OperandTile*> tiles;
  for (auto& [block, tile] : mainloop.tiles) {
    if (tile.mn != s) continue;
    tiles.push_back(&tile);
    // A row that is not flattened begins with the block.
    std::vector<Poly>& of_tile = strides.emplace_back();
    for (const TileGuard::Part& part : tile.split) of_tile.push_back(part.stride);
  }
  for (std::size_t p = 1; p < bounds.size();) {
    const bool together = std::ranges::all_of(
        strides, [&](const std::vector<Poly>& of) { return of.empty() || of[p - 1] == of[p] * bounds[p]; });
    if (!together) {
      ++p;
      continue;
    }
    bounds[p - 1] *= bounds[p];
    bounds.erase(bounds.begin() + static_cast<std::ptrdiff_t>(p));
    for (std::vector<Poly>& of : strides)
      if (!of.empty()) of.erase(of.begin() + static_cast<std::ptrdiff_t>(p) - 1);
  }
  std::vector<ExprPtr> digits{variable(at)};
  if (bounds.size() > 1) {
    std::vector<ExprPtr> sizes;
    std::vector<std::string> names;
    for (const Poly& bound : bounds) {
      sizes.push_back(values_.poly(bound));
      names.push_back(unit_.fresh("i"));
    }
    digits = unflatten(at, sizes, names, kIndex, inner);
  }
  const auto position_in = [&](const std::vector<Poly>& of) {
    ExprPtr position = number_of(0);
    for (std::size_t p = 0; p < of.size(); ++p) position = plus(position, mul(digits[p], values_.poly(of[p])));
    return position;
  };
  for (std::size_t t = 0; t < tiles.size(); ++t) {
    const OperandTile& tile = *tiles[t];
    const ExprPtr position =
        tile.split.empty() ? mul(variable(m), values_.poly(tile.stride)) : position_in(strides[t + 1]);
    inner.push_back(assign(kernel::element(tile.rows, mainloop_slot(s, variable(m))),
                           select(variable(inside), position, number_of(kRowOutside))));
  }
  // The M dim's table has what is the same for the whole block, too.
  ExprPtr position = position_in(strides[0]);
  if (s == 0) {
    Poly fixed = layout.offset();
    for (std::size_t d = 0; d < op.space.size(); ++d) {
      if (d == mainloop.mn_dims[0].dim || d == mainloop.mn_dims[1].dim) continue;
      const auto& split = op.results[0].extents[d].split;
      fixed +=
          Poly(op.space[d].index) * layout.dims()[split.empty() ? d : static_cast<std::size_t>(split[0].axis)].stride;
    }
    position = plus(values_.poly(fixed), position);
  }
  inner.push_back(assign(kernel::element(mn.results, mainloop_slot(s, variable(m))),
                         select(variable(inside), position, number_of(-1))));
  Stmt loop = for_loop(kInt, m, number_of(mn.extent), std::move(inner));
  loop.from = variable(mainloop.thread);
  loop.step = number_of(mainloop.threads);
  out.push_back(std::move(loop));
}

}  // namespace apl::lower
