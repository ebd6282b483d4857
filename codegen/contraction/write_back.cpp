// The mainloop of a contraction: results from registers to memory (codegen/contraction/tile_loop.cpp).
#include <algorithm>
#include <functional>
#include <set>

#include <fmt/format.h>

#include "codegen/contraction/mainloop.h"
#include "codegen/lower/lower.h"
#include "ir/walk.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

void MainloopLowering::mainloop_write(const SegOp& op, KernelBlock& out) {
  Mainloop& mainloop = *mainloop_;
  const ValueTable& values = unit_.function.values;
  const MnDim &m_dim = mainloop.mn_dims[0], &n_dim = mainloop.mn_dims[1];
  const Lmad& layout = values.type(stm_.pattern[0]).memory->layout;
  const TileExtent& extent = op.results[0].extents[n_dim.dim];
  const auto axis =
      static_cast<std::size_t>(extent.split.empty() ? static_cast<int>(n_dim.dim) : extent.split.back().axis);
  const bool contiguous = unit_.fold(layout.dims()[axis].stride) == 1;
  const ExprPtr here = mul(mainloop.half, number_of(m_dim.extent));
  const auto row_of = [&](const ExprPtr& i) {
    const ExprPtr group = mul(infix("/", i, number_of(m_dim.vector)), number_of(m_dim.lanes * m_dim.vector));
    return plus(plus(variable(m_dim.first), group), infix("%", i, number_of(m_dim.vector)));
  };
  struct Result {
    std::string target, acc;
    ScalarType element;
  };
  std::vector<Result> results;
  for (std::size_t k = 0; k < op.results.size(); ++k) {
    const Type& type = values.type(stm_.pattern[k]);
    results.push_back({buffer(type.memory->block, stm_.location).name,
                       buffer(values.type(op.body->results[k].value()).memory->block, stm_.location).name,
                       type.element});
  }
  out.push_back(comment("write-back; what is out of range is dropped"));

  if (mainloop.matrix()) {
    matrix_write(op, contiguous, out);
    return;
  }
  // Vectors, straight from registers.
  KernelBlock direct;
  const std::int64_t groups = n_dim.each / n_dim.vector;
  const std::string columns = unit_.fresh("columns"), g = unit_.fresh("g"), i = unit_.fresh("i"), z = unit_.fresh("z");
  direct.push_back(declare_array(kIndex, columns, groups));
  direct.push_back(unrolled(
      g, groups,
      {assign(kernel::element(columns, variable(g)),
              kernel::element(n_dim.results,
                              plus(variable(n_dim.first), mul(variable(g), number_of(n_dim.lanes * n_dim.vector)))))}));
  KernelBlock stores;
  for (const Result& result : results)
    stores.push_back(do_call(fmt::format("apl_store<{}>", n_dim.vector),
                             {variable(result.target), plus(variable(z), kernel::element(columns, variable(g))),
                              plus(plus(variable(result.acc), mul(variable(i), number_of(n_dim.each))),
                                   mul(variable(g), number_of(n_dim.vector)))}));
  const auto inside = [](const ExprPtr& a, const ExprPtr& b) {
    return infix("&&", infix(">=", a, number_of(0)), infix(">=", b, number_of(0)));
  };
  KernelBlock row{declare(kIndex, z, kernel::element(m_dim.results, plus(here, row_of(variable(i)))))};
  row.push_back(unrolled(
      g, groups, {kernel::branch(inside(variable(z), kernel::element(columns, variable(g))), std::move(stores))}));
  direct.push_back(unrolled(i, m_dim.each, std::move(row)));
  if (n_dim.vector == 1) {
    append(out, std::move(direct));
    return;
  }

  // By way of shared memory: a warp puts down one row of each of its M lanes and picks up neighbours.
  KernelBlock staged;
  const std::int64_t width = n_dim.lanes * n_dim.each, per_warp = m_dim.lanes * width;
  const std::string wide = unit_.fresh("column"), part = unit_.fresh("c"), line = unit_.fresh("l");
  staged.push_back(declare_array(kIndex, columns, (width + unit_.target.warp - 1) / unit_.target.warp));
  const ExprPtr column = plus(variable(mainloop.lane), mul(variable(part), number_of(unit_.target.warp)));
  const std::int64_t parts = (width + unit_.target.warp - 1) / unit_.target.warp;
  const auto beyond = [&](ExprPtr value) {
    return width % unit_.target.warp == 0 ? value : select(infix("<", column, number_of(width)), value, number_of(-1));
  };
  staged.push_back(
      unrolled(part, parts,
               {assign(kernel::element(columns, variable(part)),
                       beyond(kernel::element(n_dim.results, plus(variable(n_dim.warp_first), column))))}));
  const ExprPtr warp_at = mul(infix("/", variable(mainloop.thread), number_of(unit_.target.warp)), number_of(per_warp));
  for (const Result& result : results) {
    Stmt shared;
    shared.kind = Stmt::Kind::shared;
    shared.name = unit_.fresh(result.target + "_s");
    shared.type = {result.element, false};
    shared.count = mainloop.threads / unit_.target.warp * per_warp;
    shared.offset = (shared_bytes_ + 15) / 16 * 16;
    shared_bytes_ = shared.offset + shared.count * static_cast<std::int64_t>(byte_size(result.element));
    staged.push_back(shared);
    const std::string j = unit_.fresh("i"), h = unit_.fresh("g"), y = unit_.fresh("z");
    KernelBlock pass{do_call("apl_warp_barrier", {})};
    const ExprPtr mine =
        infix("/", infix("-", variable(m_dim.first), variable(m_dim.warp_first)), number_of(m_dim.vector));
    const ExprPtr put = plus(plus(warp_at, mul(mine, number_of(width))),
                             plus(infix("-", variable(n_dim.first), variable(n_dim.warp_first)),
                                  mul(variable(h), number_of(n_dim.lanes * n_dim.vector))));
    pass.push_back(unrolled(h, groups,
                            {do_call(fmt::format("apl_store<{}>", n_dim.vector),
                                     {variable(shared.name), put,
                                      plus(plus(variable(result.acc), mul(variable(j), number_of(n_dim.each))),
                                           mul(variable(h), number_of(n_dim.vector)))})}));
    pass.push_back(do_call("apl_warp_barrier", {}));
    const ExprPtr their =
        plus(plus(variable(m_dim.warp_first),
                  plus(mul(infix("/", variable(j), number_of(m_dim.vector)), number_of(m_dim.lanes * m_dim.vector)),
                       infix("%", variable(j), number_of(m_dim.vector)))),
             mul(variable(line), number_of(m_dim.vector)));
    KernelBlock lines{declare(kIndex, y, kernel::element(m_dim.results, plus(here, their)))};
    const ExprPtr got =
        kernel::element(shared.name, plus(plus(warp_at, mul(variable(line), number_of(width))), column));
    KernelBlock put_down{
        assign(kernel::element(result.target, plus(variable(y), kernel::element(columns, variable(part)))), got)};
    const ExprPtr beside = infix(">=", kernel::element(columns, variable(part)), number_of(0));
    lines.push_back(kernel::branch(infix(">=", variable(y), number_of(0)),
                                   {unrolled(part, parts, {kernel::branch(beside, std::move(put_down))})}));
    pass.push_back(unrolled(line, m_dim.lanes, std::move(lines)));
    staged.push_back(unrolled(j, m_dim.each, std::move(pass)));
  }
  if (!contiguous) {
    append(out, std::move(staged));
    return;
  }
  out.push_back(kernel::branch(aligned_results(op), std::move(direct), std::move(staged)));
}

// Whether the N dim's vectors of results are aligned in memory.
ExprPtr MainloopLowering::aligned_results(const SegOp& op) {
  const ValueTable& values = unit_.function.values;
  const MnDim& n_dim = mainloop_->mn_dims[1];
  const Lmad& layout = values.type(stm_.pattern[0]).memory->layout;
  const TileExtent& extent = op.results[0].extents[n_dim.dim];
  const auto axis =
      static_cast<std::size_t>(extent.split.empty() ? static_cast<int>(n_dim.dim) : extent.split.back().axis);
  // A vector lies inside the innermost dim, with those that lie together with it, or beyond all.
  std::set<std::size_t> inner{axis};
  Poly together = extent.split.empty() ? extent.bound : extent.split.back().bound;
  for (std::size_t p = extent.split.size(); p-- > 1;) {
    const auto outer = static_cast<std::size_t>(extent.split[p - 1].axis);
    if (layout.dims()[outer].stride != layout.dims()[axis].stride * together) break;
    together *= extent.split[p - 1].bound;
    inner.insert(outer);
  }
  std::vector<Poly> positions{together, layout.offset()};
  for (std::size_t d = 0; d < layout.dims().size(); ++d)
    if (!inner.contains(d)) positions.push_back(layout.dims()[d].stride);
  ExprPtr test;
  for (const Value result : stm_.pattern) {
    const Type& type = values.type(result);
    const auto bytes = n_dim.vector * static_cast<std::int64_t>(byte_size(type.element));
    const ExprPtr base =
        call(fmt::format("apl_aligned<{}>", bytes), {variable(buffer(type.memory->block, stm_.location).name)});
    test = test ? infix("&&", test, base) : base;
  }
  if (const ExprPtr sizes = aligned(positions, n_dim.vector)) test = infix("&&", test, sizes);
  return test;
}

}  // namespace apl::lower
