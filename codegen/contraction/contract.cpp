// The mainloop of a contraction: the products of two tiles in shared memory (codegen/contraction/tile_loop.cpp).
#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "codegen/contraction/mainloop.h"
#include "codegen/lower/lower.h"
#include "ir/walk.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

namespace {

constexpr std::int64_t kMostNeighbours = 4;  // rows that are loaded at once, and that a swizzle leaves together

// Of an operand whose tile is "X_s_3": "X_r".
std::string registers_name(const ValueTable& values, Value tile) {
  const std::string& name = values.name(tile);
  return name.substr(0, name.find("_s")) + "_r";
}

}  // namespace

void MainloopLowering::mainloop_contract(const TileContract& op, const Stm& stm, const ExprPtr& stage,
                                         KernelBlock& out) {
  Mainloop& mainloop = *mainloop_;
  const ValueTable& values = unit_.function.values;
  const std::size_t rank = op.space.size();
  std::vector<std::string> names;
  std::vector<ExprPtr> at;
  const std::vector<Schedule::Dim>& dims = std::get<SegOp>(stm_.op).schedule->dims;
  const auto depths = dims.end() - static_cast<std::ptrdiff_t>(op.depth.size());
  for (std::size_t d = 0; d < op.depth.size(); ++d) {
    // Of outer dims a step has at most as many as the tile, and at least one.
    const bool is_outer = d + 1 < op.depth.size();
    const bool one = unit_.fold(op.depth[d]) == 1 || (is_outer && unit_.fold(depths[d].tile) == 1);
    names.push_back(one ? "" : unit_.fresh("q"));
    at.push_back(one ? number_of(0) : variable(names.back()));
  }
  // One step of the depth; `ahead` is added to the innermost index, and `period` is what the swizzle depends on.
  const auto step = [&](const ExprPtr& ahead, const ExprPtr& period) {
    KernelBlock body;
    std::vector<std::string> registers;
    for (std::size_t o = 0; o < op.operands.size(); ++o) {
      const TileOperand& operand = op.operands[o];
      const Value block = mainloop.copied.at(operand.tile);
      const OperandTile& tile = mainloop.tiles.at(block);
      if (tile.resident) {
        registers.push_back(tile.registers);
        continue;
      }
      const MnDim& mn = mainloop.mn_of(tile);
      const Lmad& layout = values.type(operand.tile).memory->layout;
      ExprPtr position = mainloop_stage(block, stage);
      for (std::size_t k = 0; k < operand.axes.size(); ++k) {
        const auto d = static_cast<std::size_t>(operand.axes[k]);
        if (d < rank) continue;
        const ExprPtr q = d - rank == mainloop.inner_depth ? plus(at[d - rank], ahead) : at[d - rank];
        position = plus(position, mul(q, number_of(*unit_.fold(layout.dims()[k].stride))));
      }
      const std::string name = buffer(block, stm.location).name;
      registers.push_back(unit_.fresh(registers_name(values, operand.tile)));
      body.push_back(declare_array({tile.element, false}, registers.back(), mn.each));
      const std::int64_t group = mn.lanes * mn.vector;  // rows that a warp reads at once
      const std::int64_t at_once = std::min(mn.vector, kMostNeighbours);
      const auto load = [&](const ExprPtr& g, std::int64_t ahead_in_group) {
        const ExprPtr further = mul(g, number_of(group));
        const ExprPtr first = plus(variable(mn.first), number_of(ahead_in_group));
        ExprPtr row = tile.mn == kNoMnDim ? number_of(0) : plus(first, further);
        if (tile.swizzled) {
          // Groups are powers of two, so that their bits can be swizzled apart from the thread's.
          const std::int64_t mask = (mn.lanes * mn.each - 1) & ~(group - 1) & (kSwizzled - 1);
          const ExprPtr swizzle = call(tile.swizzle(), {period});
          const auto part = [&](std::int64_t bits) {
            return bits == kSwizzled - 1 ? swizzle : infix("&", swizzle, number_of(bits));
          };
          row = plus(infix("^", first, part(kSwizzled - 1 - mask)),
                     mask == 0 ? further : infix("^", further, part(mask)));
        }
        const ExprPtr to =
            plus(plus(variable(registers.back()), mul(g, number_of(mn.vector))), number_of(ahead_in_group));
        return do_call(fmt::format("apl_load<{}>", at_once), {variable(name), plus(position, row), to});
      };
      const auto loads = [&](const ExprPtr& g) {
        KernelBlock all;
        for (std::int64_t row = 0; row < mn.vector; row += at_once) all.push_back(load(g, row));
        return all;
      };
      if (mn.each == mn.vector) {
        append(body, loads(number_of(0)));
      } else {
        const std::string g = unit_.fresh("g");
        body.push_back(unrolled(g, mn.each / mn.vector, loads(variable(g))));
      }
    }
    // Columns outside, rows back and forth: neighbouring products share an operand.
    const std::int64_t rows = mainloop.mn_dims[0].each, columns = mainloop.mn_dims[1].each;
    const std::string n = unit_.fresh("n"), i = unit_.fresh("i"), m = unit_.fresh("m");
    KernelBlock inner{declare(
        kInt, m,
        select(infix("&", variable(n), number_of(1)), infix("-", number_of(rows - 1), variable(i)), variable(i)))};
    std::vector<ExprPtr> elements;
    for (std::size_t o = 0; o < op.operands.size(); ++o) {
      const OperandTile& tile = mainloop.tiles.at(mainloop.copied.at(op.operands[o].tile));
      ExprPtr mine = tile.mn == kNoMnDim ? number_of(0) : variable(tile.mn == 0 ? m : n);
      if (tile.resident && tile.row_axes[0]) mine = variable(m);
      if (tile.resident && tile.row_axes[1])
        mine = tile.row_axes[0] ? plus(mul(variable(m), number_of(columns)), variable(n)) : variable(n);
      elements.push_back(kernel::element(registers[o], mine));
    }
    std::vector<ExprPtr> mapped = inline_lambda(op.map, elements, inner);
    std::vector<ExprPtr> accumulators;
    for (Value acc : op.accumulators)
      accumulators.push_back(kernel::element(buffer(values.type(acc).memory->block, stm.location).name,
                                             plus(mul(variable(m), number_of(columns)), variable(n))));
    std::vector<ExprPtr> arguments = accumulators;
    arguments.insert(arguments.end(), mapped.begin(), mapped.end());
    std::vector<ExprPtr> reduced = inline_lambda(op.reduce.op, arguments, inner);
    // All results first: one may be computed from another's old value.
    for (std::size_t k = 0; k < reduced.size() && reduced.size() > 1; ++k) {
      const std::string next = unit_.fresh("next");
      inner.push_back(declare({values.type(op.accumulators[k]).element, false}, next, reduced[k]));
      reduced[k] = variable(next);
    }
    for (std::size_t k = 0; k < reduced.size(); ++k) inner.push_back(assign(accumulators[k], reduced[k]));
    KernelBlock row;
    row.push_back(unrolled(i, rows, std::move(inner)));
    body.push_back(unrolled(n, columns, std::move(row)));
    return body;
  };

  KernelBlock all;
  const Poly& inner = op.depth.back();
  const auto constant = unit_.fold(inner);
  if (mainloop.matrix()) {
    all = matrix_product(op, stm, stage, at);
  } else if (constant == 1) {
    all = step(number_of(0), number_of(0));
  } else {
    // Eight steps at once, as far as they go.
    const std::string& q = names.back();
    const CType type = constant ? kInt : kIndex;
    const std::string u = unit_.fresh("u");
    const ExprPtr bound = values_.poly(inner);
    const auto eight = [&] {
      if (mainloop.has_fragments()) return fragments_product(op, stm, stage, at);
      return KernelBlock{unrolled(u, kUnrolled, step(variable(u), variable(u)))};
    };
    if (!constant) all.push_back(declare(kInt, q, number_of(0), false));
    if (!constant || *constant >= kUnrolled) {
      Stmt n_dim = for_loop(type, q, bound, {});
      n_dim.body = eight();
      if (constant) {
        n_dim.value = number_of(*constant / kUnrolled * kUnrolled);
        n_dim.step = number_of(kUnrolled);
        n_dim.unroll = mainloop.doubles;  // the next steps' loads beside the products of these
        all.push_back(std::move(n_dim));
      } else {
        Stmt loop;
        loop.kind = Stmt::Kind::while_loop;
        loop.value = infix("<=", plus(variable(q), number_of(kUnrolled)), bound);
        loop.body = std::move(n_dim.body);
        loop.body.push_back(assign(variable(q), plus(variable(q), number_of(kUnrolled))));
        all.push_back(std::move(loop));
      }
    }
    if (!constant) {
      Stmt remainder;
      remainder.kind = Stmt::Kind::while_loop;
      remainder.value = infix("<", variable(q), bound);
      remainder.body = step(number_of(0), variable(q));
      remainder.body.push_back(assign(variable(q), plus(variable(q), number_of(1))));
      all.push_back(std::move(remainder));
    } else if (*constant % kUnrolled != 0) {
      Stmt remainder = for_loop(kInt, q, number_of(*constant), step(number_of(0), variable(q)));
      remainder.from = number_of(*constant / kUnrolled * kUnrolled);
      all.push_back(std::move(remainder));
    }
  }
  for (std::size_t e = op.depth.size() - 1; e-- > 0;)
    if (!names[e].empty()) {
      Stmt loop = for_loop(kIndex, names[e], values_.poly(op.depth[e]), std::move(all));
      all.clear();
      all.push_back(std::move(loop));
    }
  if (mainloop.matrix() && mainloop.loop == nullptr) start_products(stm, out);
  append(out, std::move(all));
  if (!mainloop.matrix()) return;
  out.push_back(do_call("apl_matrix_commit", {}));
  if (mainloop.loop == nullptr) finish_products(stm, out);
}

}  // namespace apl::lower
