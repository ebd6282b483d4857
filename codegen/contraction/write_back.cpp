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

namespace {

// Where N's rows are the block's, more lines at once make barriers fewer.
MatrixStaging matrix_staging(const MnDim& m_dim, const MnDim& n_dim) {
  constexpr std::int64_t kLine = 32, kLineApart = 40, kBlockEach = 4, kBlockApart = 4;
  if (n_dim.warps == 1) return {m_dim.warps, 1, m_dim.lanes, kLine, kLineApart};
  return {1, kBlockEach, kBlockEach * m_dim.lanes, n_dim.extent, n_dim.extent + kBlockApart};
}

}  // namespace

// Kept across the products, positions would be more registers than are left beside the sums of matrix units.
void MainloopLowering::declare_results_positions(KernelBlock& out) {
  if (!mainloop_->matrix()) return;
  const std::string thread = unit_.fresh("thread");
  out.push_back(declare(kInt, thread, call("apl_anew", {variable(mainloop_->thread)})));
  declare_positions(variable(thread), out);
}

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
  const bool has_code = mainloop.stored_stm != nullptr;
  if (has_code) prepare_stored_code(op);
  const std::vector<Passage> all = passages(op);
  out.push_back(comment(has_code ? "code after the reduction and write-back; what is out of range is dropped"
                                 : "write-back; what is out of range is dropped"));

  if (mainloop.matrix()) {
    declare_results_positions(out);
    if (contiguous)
      matrix_write_staged(op, out);
    else
      matrix_write(op, out);
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
  const ExprPtr vector = number_of(n_dim.vector);
  const auto column_of = [&](const ExprPtr& j) {
    const ExprPtr group = mul(infix("/", j, vector), number_of(n_dim.lanes * n_dim.vector));
    return plus(plus(variable(n_dim.first), group), infix("%", j, vector));
  };
  const auto is_inside = [](const ExprPtr& at) { return infix(">=", at, number_of(0)); };
  const std::vector<std::string> of_column = stored_reads(
      1, n_dim.each, column_of,
      [&](const ExprPtr& j) { return is_inside(kernel::element(columns, infix("/", j, vector))); }, direct);
  const auto in_row = [&](const ExprPtr& row) { return [&, row](const ExprPtr&) { return row; }; };
  KernelBlock row{declare(kIndex, z, kernel::element(m_dim.results, plus(here, row_of(variable(i)))))};
  const std::vector<std::string> of_row =
      stored_reads(0, 1, in_row(row_of(variable(i))), in_row(is_inside(variable(z))), row);
  KernelBlock stores;
  for (const Passage& passage : all)
    append(stores, store_vector(passage, plus(mul(variable(i), number_of(n_dim.each)), mul(variable(g), vector)),
                                plus(variable(z), kernel::element(columns, variable(g))), [&](const ExprPtr& e) {
                                  const ExprPtr j = plus(mul(variable(g), vector), e);
                                  const ExprPtr first = plus(variable(n_dim.first),
                                                             mul(variable(g), number_of(n_dim.lanes * n_dim.vector)));
                                  return StoredPlace{row_of(variable(i)), plus(first, e), j, of_row, of_column};
                                }));
  const auto inside = [](const ExprPtr& a, const ExprPtr& b) {
    return infix("&&", infix(">=", a, number_of(0)), infix(">=", b, number_of(0)));
  };
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
  const auto in_line = [&](const ExprPtr& nth) {
    return plus(variable(mainloop.lane), mul(nth, number_of(unit_.target.warp)));
  };
  const ExprPtr column = in_line(variable(part));
  const std::int64_t parts = (width + unit_.target.warp - 1) / unit_.target.warp;
  const auto beyond = [&](ExprPtr value) {
    return width % unit_.target.warp == 0 ? value : select(infix("<", column, number_of(width)), value, number_of(-1));
  };
  staged.push_back(
      unrolled(part, parts,
               {assign(kernel::element(columns, variable(part)),
                       beyond(kernel::element(n_dim.results, plus(variable(n_dim.warp_first), column))))}));
  const ExprPtr warp_at = mul(variable(mainloop.warp), number_of(per_warp));
  const std::vector<std::string> of_columns = stored_reads(
      1, parts, [&](const ExprPtr& nth) { return plus(variable(n_dim.warp_first), in_line(nth)); },
      [&](const ExprPtr& nth) { return is_inside(kernel::element(columns, nth)); }, staged);
  for (const Passage& passage : all) {
    Stmt shared;
    shared.kind = Stmt::Kind::shared;
    shared.name = unit_.fresh(passage.targets[0] + "_s");
    shared.type = {passage.element, false};
    shared.count = mainloop.threads / unit_.target.warp * per_warp;
    shared.offset = (shared_bytes_ + 15) / 16 * 16;
    shared_bytes_ = shared.offset + shared.count * static_cast<std::int64_t>(byte_size(passage.element));
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
                                      plus(plus(variable(passage.from), mul(variable(j), number_of(n_dim.each))),
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
    KernelBlock line_of{};
    const std::vector<std::string> of_line = stored_reads(0, 1, in_row(their), nullptr, line_of);
    KernelBlock put_down =
        store_element(passage, got, plus(variable(y), kernel::element(columns, variable(part))),
                      {their, plus(variable(n_dim.warp_first), column), variable(part), of_line, of_columns});
    line_of.push_back(unrolled(
        part, parts, {kernel::branch(is_inside(kernel::element(columns, variable(part))), std::move(put_down))}));
    lines.push_back(kernel::branch(is_inside(variable(y)), std::move(line_of)));
    pass.push_back(unrolled(line, m_dim.lanes, std::move(lines)));
    staged.push_back(unrolled(j, m_dim.each, std::move(pass)));
  }
  if (!contiguous) {
    append(out, std::move(staged));
    return;
  }
  out.push_back(kernel::branch(aligned_results(op), std::move(direct), std::move(staged)));
}

// Straight from registers where no neighbours in a row of results lie together.
void MainloopLowering::matrix_write(const SegOp& op, KernelBlock& out) {
  const Mainloop& mainloop = *mainloop_;
  const MnDim &m_dim = mainloop.mn_dims[0], &n_dim = mainloop.mn_dims[1];
  const auto place = [&](const MnDim& mn, const ExprPtr& i) {
    const ExprPtr group = mul(infix("/", i, number_of(mn.vector)), number_of(mn.lanes * mn.vector));
    return plus(plus(variable(mn.first), group), infix("%", i, number_of(mn.vector)));
  };
  const std::string i = unit_.fresh("i"), j = unit_.fresh("j"), z = unit_.fresh("z"), column = unit_.fresh("column");
  const ExprPtr at_row = place(m_dim, variable(i)), at_column = place(n_dim, variable(j));
  const auto same = [](const ExprPtr& at) { return [at](const ExprPtr&) { return at; }; };
  const auto is_inside = [](const ExprPtr& at) { return infix(">=", at, number_of(0)); };
  KernelBlock row, store;
  const std::vector<std::string> of_row = stored_reads(0, 1, same(at_row), same(is_inside(variable(z))), row);
  const std::vector<std::string> of_column = stored_reads(1, 1, same(at_column), nullptr, store);
  for (const Passage& passage : passages(op))
    append(store,
           store_element(passage,
                         kernel::element(passage.from, plus(mul(variable(i), number_of(n_dim.each)), variable(j))),
                         plus(variable(z), variable(column)), {at_row, at_column, number_of(0), of_row, of_column}));
  KernelBlock each{declare(kIndex, column, call("apl_read_anew", {variable(n_dim.results), at_column}))};
  each.push_back(kernel::branch(infix("&&", is_inside(variable(z)), is_inside(variable(column))), std::move(store)));
  const ExprPtr here = mul(mainloop.half, number_of(m_dim.extent));
  row.insert(row.begin(), declare(kIndex, z, kernel::element(m_dim.results, plus(here, at_row))));
  row.push_back(unrolled(j, n_dim.each, std::move(each)));
  out.push_back(unrolled(i, m_dim.each, std::move(row)));
}

// By way of shared memory: threads put down some rows of their sums and pick up neighbours, a warp a line, also where
// rows are aligned: from registers a warp writes a sector of each of eight rows, which took longer. The last
// step's tiles have room for them: all products are done, and copies into that stage wait for the next step's barrier.
void MainloopLowering::matrix_write_staged(const SegOp& op, KernelBlock& out) {
  const Mainloop& mainloop = *mainloop_;
  const MnDim &m_dim = mainloop.mn_dims[0], &n_dim = mainloop.mn_dims[1];
  const std::int64_t warp = unit_.target.warp;
  const MatrixStaging staging = matrix_staging(m_dim, n_dim);
  const bool is_warps = n_dim.warps == 1;
  // The larger tile's; others need not fit.
  const auto stage_of = [&](const auto& of) {
    return buffer(of.first, stm_.location).count / mainloop.stages * of.second.element_bytes();
  };
  const auto& largest = *std::ranges::max_element(mainloop.tiles, {}, stage_of);
  const std::int64_t stage_bytes = stage_of(largest);
  const auto pass_barrier = [&] { return is_warps ? do_call("apl_warp_barrier", {}) : barrier(); };
  std::int64_t widest = 0;
  for (const Passage& passage : passages(op))
    widest = std::max(widest, static_cast<std::int64_t>(byte_size(passage.element)));
  for (const Passage& passage : passages(op)) {
    const auto bytes = static_cast<std::int64_t>(byte_size(passage.element));
    Stmt shared;
    shared.kind = Stmt::Kind::shared;
    shared.name = unit_.fresh(passage.targets[0] + "_s");
    shared.type = {passage.element, false};
    ExprPtr from = number_of(0);
    if (staging.elements() * bytes <= stage_bytes) {
      // Other warps' products read it; where lines are the block's, so does its barrier say.
      if (is_warps) out.push_back(barrier());
      shared.offset = largest.second.offset;
      shared.count = mainloop.stages * stage_bytes / bytes;
      if (mainloop.loop != nullptr) {
        const ExprPtr stage = variable(mainloop.stage);
        const ExprPtr last =
            select(infix("==", stage, number_of(0)), number_of(mainloop.stages - 1), infix("-", stage, number_of(1)));
        from = mul(last, number_of(stage_bytes / bytes));
      }
    } else {
      if (own_staging_ < 0) {
        own_staging_ = (shared_bytes_ + 15) / 16 * 16;
        shared_bytes_ = own_staging_ + staging.elements() * widest;
      }
      shared.offset = own_staging_;
      shared.count = staging.elements();
    }
    out.push_back(shared);
    const std::string first = unit_.fresh("staged");
    if (is_warps) from = plus(from, mul(variable(mainloop.warp), number_of(staging.lines * staging.apart)));
    out.push_back(declare(kInt, first, from));
    const std::int64_t parts = staging.width / warp,
                       groups = staging.width / (n_dim.warps * n_dim.lanes * n_dim.vector);
    const std::string c = unit_.fresh("c"), i = unit_.fresh("i"), e = unit_.fresh("e"), g = unit_.fresh("g"),
                      line = unit_.fresh("l"), part = unit_.fresh("part"), columns = unit_.fresh("columns"),
                      z = unit_.fresh("z");
    const ExprPtr lane = variable(mainloop.lane);
    const auto in_line = [&](const ExprPtr& at) { return plus(lane, mul(at, number_of(warp))); };
    // Of a warp the columns from c * width on, of the block all.
    const ExprPtr piece = mul(variable(c), number_of(staging.width));
    KernelBlock columns_of{
        declare_array(kIndex, columns, parts),
        unrolled(part, parts,
                 {assign(kernel::element(columns, variable(part)),
                         call("apl_read_anew", {variable(n_dim.results), plus(piece, in_line(variable(part)))}))})};
    const auto rows_from = [&](const ExprPtr& row) {
      return mul(infix("/", row, number_of(m_dim.vector)), number_of(m_dim.lanes * m_dim.vector));
    };
    const ExprPtr my_line =
        plus(plus(infix("-", variable(m_dim.first), variable(m_dim.warp_first)), rows_from(variable(e))),
             infix("%", variable(e), number_of(m_dim.vector)));
    const ExprPtr row = plus(mul(variable(i), number_of(staging.each)), variable(e));
    const ExprPtr nth =
        plus(mul(variable(c), number_of(groups * n_dim.vector)), mul(variable(g), number_of(n_dim.vector)));
    const ExprPtr put = plus(plus(variable(first), mul(my_line, number_of(staging.apart))),
                             plus(variable(n_dim.first), mul(variable(g), number_of(n_dim.lanes * n_dim.vector))));
    KernelBlock store{do_call(
        fmt::format("apl_store<{}>", n_dim.vector),
        {variable(shared.name), put, plus(plus(variable(passage.from), mul(row, number_of(n_dim.each))), nth)})};
    KernelBlock pass{pass_barrier(), unrolled(e, staging.each, {unrolled(g, groups, std::move(store))}),
                     pass_barrier()};
    // Lines are shared out among the warps that put them down.
    const std::int64_t warps = is_warps ? 1 : mainloop.threads / warp;
    const ExprPtr nth_line =
        is_warps ? variable(line) : plus(mul(variable(line), number_of(warps)), variable(mainloop.warp));
    const ExprPtr at_row =
        plus(plus(variable(m_dim.warp_first), rows_from(mul(variable(i), number_of(staging.each)))), nth_line);
    const ExprPtr got = kernel::element(
        shared.name, plus(plus(variable(first), mul(nth_line, number_of(staging.apart))), in_line(variable(part))));
    const ExprPtr column = kernel::element(columns, variable(part));
    const auto same = [](const ExprPtr& at) { return [at](const ExprPtr&) { return at; }; };
    const std::vector<std::string> of_column = stored_reads(
        1, parts, [&](const ExprPtr& nth_part) { return plus(piece, in_line(nth_part)); },
        [&](const ExprPtr& nth_part) { return infix(">=", kernel::element(columns, nth_part), number_of(0)); },
        columns_of);
    KernelBlock line_of;
    const std::vector<std::string> of_line = stored_reads(0, 1, same(at_row), nullptr, line_of);
    KernelBlock write{kernel::branch(
        infix(">=", column, number_of(0)),
        store_element(passage, got, plus(variable(z), column),
                      {at_row, plus(piece, in_line(variable(part))), variable(part), of_line, of_column}))};
    line_of.push_back(unrolled(part, parts, std::move(write)));
    KernelBlock pick{declare(kIndex, z,
                             call("apl_read_anew", {variable(m_dim.results),
                                                    plus(mul(mainloop.half, number_of(m_dim.extent)), at_row)})),
                     kernel::branch(infix(">=", variable(z), number_of(0)), std::move(line_of))};
    if (staging.lines % warps != 0)
      pick = {kernel::branch(infix("<", nth_line, number_of(staging.lines)), std::move(pick))};
    pass.push_back(unrolled(line, (staging.lines + warps - 1) / warps, std::move(pick)));
    columns_of.push_back(unrolled(i, m_dim.each / staging.each, std::move(pass)));
    out.push_back(unrolled(c, n_dim.extent / staging.width, std::move(columns_of)));
  }
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
  for (const Stm& stm : mainloop_->stored_beside) {
    const Type& type = values.type(std::get<Index>(stm.op).array);
    const auto bytes = n_dim.vector * static_cast<std::int64_t>(byte_size(type.element));
    test =
        infix("&&", test,
              call(fmt::format("apl_aligned<{}>", bytes), {variable(buffer(type.memory->block, stm_.location).name)}));
  }
  if (const ExprPtr sizes = aligned(positions, n_dim.vector)) test = infix("&&", test, sizes);
  return test;
}

}  // namespace apl::lower
