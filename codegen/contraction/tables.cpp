// The mainloop of a contraction: tables of where rows lie in memory (codegen/contraction/tile_loop.cpp). An M or N dim
// may be many dims flattened, whose indices are worked out here, once a row; neighbours that are one dim in memory cost
// no division.
#include <algorithm>

#include "codegen/contraction/mainloop.h"
#include "codegen/lower/lower.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

// What an array of indices says, `further` from where the block begins; nothing where nothing is reduced, as it need
// not be there.
ExprPtr MainloopLowering::index_element(const TileGather& gather, const ExprPtr& further) {
  const MemoryBinding& from = *unit_.function.type(gather.positions).memory;
  const ExprPtr at = plus(values_.poly(from.layout.offset() + gather.at.start), further);
  ExprPtr element = cast(kIndex, kernel::element(buffer(from.block, stm_.location).name, at));
  if (mainloop_->reduces) element = select(mainloop_->reduces, element, number_of(0));
  return mul(element, values_.poly(gather.stride));
}

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
  // Each row adds so much to a number: a sum over the indices along it.
  struct Rows {
    const OperandTile* tile;
    std::string table;
    std::vector<Poly> along;  // of a row that is not flattened, which begins with the block
    bool is_position = false;
    std::size_t first = 0;  // of the strides, its own and those of its arrays of indices
  };
  std::vector<Rows> rows;
  const auto add = [&](const OperandTile& tile, const std::string& table, const std::vector<Poly>& along) -> Rows& {
    Rows& made = rows.emplace_back(Rows{&tile, table, along, false, strides.size()});
    strides.push_back(along.size() > 1 ? along : std::vector<Poly>{});
    return made;
  };
  for (auto& [block, tile] : mainloop.tiles) {
    for (const TileNumber* number : numbers_of(tile))
      if (!number->tables[s].empty()) add(tile, number->tables[s], number->at.strides[*tile.row_axes[s]]);
    if (tile.mn != s) continue;
    std::vector<Poly> along{tile.stride};
    if (!tile.split.empty()) along.clear();
    for (const TileGuard::Part& part : tile.split) along.push_back(part.stride);
    add(tile, tile.rows, along).is_position = true;
    for (const TileGather& gather : tile.gathers) {
      const std::vector<Poly>& of_index = gather.at.strides[tile.row_axis];
      strides.push_back(of_index.size() > 1 ? of_index : std::vector<Poly>{});
    }
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
  const auto along_rows = [&](const std::vector<Poly>& along, std::size_t of) {
    return along.size() > 1 ? position_in(strides[of]) : mul(variable(m), values_.poly(along[0]));
  };
  for (const Rows& of : rows) {
    const OperandTile& tile = *of.tile;
    ExprPtr number = along_rows(of.along, of.first);
    for (std::size_t g = 0; of.is_position && g < tile.gathers.size(); ++g)
      number = plus(number, index_element(tile.gathers[g],
                                          along_rows(tile.gathers[g].at.strides[tile.row_axis], of.first + 1 + g)));
    inner.push_back(assign(kernel::element(of.table, mainloop_slot(s, variable(m))),
                           select(variable(inside), number, number_of(of.is_position ? kRowOutside : 0))));
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
