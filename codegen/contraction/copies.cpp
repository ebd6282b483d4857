// The mainloop of a contraction: copies of tiles (codegen/contraction/tile_loop.cpp).
#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "codegen/contraction/mainloop.h"
#include "codegen/lower/lower.h"
#include "ir/walk.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

// Row m in a table. Those of the M dim have two halves, for a tile and the next.
ExprPtr MainloopLowering::mainloop_slot(std::size_t mn, const ExprPtr& m) {
  return mn == 0 ? plus(mul(mainloop_->half, number_of(mainloop_->mn_dims[0].extent)), m) : m;
}

ExprPtr MainloopLowering::mainloop_stage(Value block, const ExprPtr& stage) {
  return mul(stage, number_of(buffer(block, stm_.location).count / mainloop_->stages));
}

// Whether the contraction stops, in every dim of the depth, where the source does.
bool MainloopLowering::mainloop_reads_no_pad(const CopyTile& op, Value copied) {
  const OperandTile& tile = mainloop_->tiles.at(mainloop_->copied.at(copied));
  const TileContract& reader = *mainloop_->readers.at(copied);
  for (std::size_t k = 0; k < tile.axes.size(); ++k) {
    const auto d = static_cast<std::size_t>(tile.axes[k]);
    const TileGuard& guard = op.guards[k];
    if (d < mainloop_->space_rank || !guard.bound) continue;
    const Poly left = *guard.bound - guard.start;
    const Poly& depth = reader.depth[d - mainloop_->space_rank];
    if (depth != left && depth != poly_min(op.window.dims()[k].size, left)) return false;
  }
  return true;
}

void MainloopLowering::mainloop_copy(const CopyTile& op, Value copied, const ExprPtr& stage, KernelBlock& out) {
  Mainloop& mainloop = *mainloop_;
  const ValueTable& values = unit_.function.values;
  const Value block = mainloop.copied.at(copied);
  const OperandTile& tile = mainloop.tiles.at(block);
  const MnDim& mn = mainloop.mn_of(tile);
  const Lmad& layout = values.type(copied).memory->layout;
  const MemoryBinding& source = *values.type(op.source).memory;
  const std::string target = buffer(block, stm_.location).name, from = buffer(source.block, stm_.location).name;
  const auto bytes = static_cast<std::int64_t>(byte_size(tile.element));
  out.push_back(comment(fmt::format("tile of {}", values.name(op.source))));

  // Loops over the outer dims of the depth; the innermost is shared out among threads.
  struct Axis {
    std::string name;
    std::int64_t size;
  };
  std::vector<Axis> outer;
  ExprPtr start = values_.poly(source.layout.offset() + op.window.offset()), stage_start = mainloop_stage(block, stage);
  ExprPtr outer_inside, step_stride = number_of(0), inner_start, inner_bound;
  std::int64_t step_size = 0;
  for (std::size_t k = 0; k < tile.axes.size(); ++k) {
    const auto d = static_cast<std::size_t>(tile.axes[k]);
    if (d < mainloop.space_rank) continue;
    const TileGuard& guard = op.guards[k];
    const std::int64_t size = *unit_.fold(op.window.dims()[k].size), apart = *unit_.fold(layout.dims()[k].stride);
    const ExprPtr stride = values_.poly(op.window.dims()[k].stride);
    if (d - mainloop.space_rank == mainloop.inner_depth) {
      step_stride = stride, step_size = apart;
      if (guard.bound) inner_start = values_.poly(guard.start), inner_bound = values_.poly(*guard.bound);
      continue;
    }
    outer.push_back({size == 1 ? "" : unit_.fresh("q"), size});
    const ExprPtr i = size == 1 ? number_of(0) : variable(outer.back().name);
    start = plus(start, mul(i, stride));
    stage_start = plus(stage_start, mul(i, number_of(apart)));
    if (!guard.bound) continue;
    const ExprPtr test = infix("<", plus(values_.poly(guard.start), i), values_.poly(*guard.bound));
    outer_inside = outer_inside ? infix("&&", outer_inside, test) : test;
  }
  // What the contraction does not read needs no pad.
  const bool padded = !mainloop_reads_no_pad(op, copied);
  const bool inside_tile = inner_bound && !padded;  // what is inside the source is inside the tile, too
  const std::string begin = unit_.fresh("from");
  KernelBlock all{declare(kIndex, begin, start)};
  const auto in_outer_loops = [&] {
    for (std::size_t k = outer.size(); k-- > 0;)
      if (outer[k].size > 1) {
        Stmt loop = for_loop(kInt, outer[k].name, number_of(outer[k].size), std::move(all));
        all.clear();
        all.push_back(std::move(loop));
      }
  };
  // `width` elements, at depth q.
  const auto element = [&](const ExprPtr& to, const ExprPtr& at, const ExprPtr& q, std::int64_t width) {
    ExprPtr inside = outer_inside;
    if (inner_bound) {
      const ExprPtr test = infix("<", plus(inner_start, q), inner_bound);
      inside = inside ? infix("&&", inside, test) : test;
    }
    KernelBlock copy;
    if (tile.copy_bytes > 0 && width * bytes >= 4) {
      copy.push_back(do_call(fmt::format("apl_cp_async{}", width * bytes), {variable(target), to, variable(from), at}));
    } else {
      for (std::int64_t e = 0; e < width; ++e)
        copy.push_back(
            assign(kernel::element(target, plus(to, number_of(e))), kernel::element(from, plus(at, number_of(e)))));
    }
    if (!inside) return copy;
    if (!padded) return KernelBlock{kernel::branch(inside, std::move(copy))};
    KernelBlock pads;
    for (std::int64_t e = 0; e < width; ++e)
      pads.push_back(assign(kernel::element(target, plus(to, number_of(e))), values_.operand(op.pad)));
    return KernelBlock{kernel::branch(inside, std::move(copy), std::move(pads))};
  };
  const ExprPtr thread = variable(mainloop.thread);
  const auto row_at = [&](const ExprPtr& m) {
    return tile.mn == kNoMnDim ? number_of(0) : kernel::element(tile.rows, mainloop_slot(tile.mn, m));
  };
  const auto guarded = [](KernelBlock body, const ExprPtr& i, std::int64_t bound, bool always) {
    if (always) return body;
    return KernelBlock{kernel::branch(infix("<", i, number_of(bound)), std::move(body))};
  };
  if (mainloop.matrix()) {
    CopiedTile parts{variable(target), variable(from), variable(begin), stage_start, step_stride, outer_inside, {}};
    if (inner_bound) parts.inside = [=](const ExprPtr& q) { return infix("<", plus(inner_start, q), inner_bound); };
    append(all, copy_matrix_tile(op, tile, parts));
    in_outer_loops();
    append(out, std::move(all));
    copies_pending_ = true;
    return;
  }
  // Each copy under way has its address in registers; all of many would not leave enough for the accumulators.
  constexpr std::int64_t kAtOnce = 4;
  const auto some_at_once = [](const std::string& index, std::int64_t count, KernelBlock body) {
    Stmt loop = unrolled(index, count, std::move(body));
    if (count > kAtOnce) loop.unroll_by = kAtOnce;
    return loop;
  };
  using Position = std::function<ExprPtr(const ExprPtr& m, const ExprPtr& piece)>;
  // `columns` neighbouring threads along the depth, where memory is contiguous, with `width` elements each; the next
  // elements of a thread are `further` on in the tile.
  const auto along_depth = [&](std::int64_t columns, std::int64_t width, const Position& place, std::int64_t further) {
    const std::int64_t rows = mainloop.threads / columns,
                       pieces = (tile.depth + columns * width - 1) / (columns * width);
    const std::string m = unit_.fresh("m"), to = unit_.fresh("to"), at = unit_.fresh("at"), i = unit_.fresh("i");
    const std::string c = pieces == 1 ? "" : unit_.fresh("c");
    const ExprPtr piece = infix("%", thread, number_of(columns)), first = mul(piece, number_of(width));
    const ExprPtr ahead = pieces == 1 ? number_of(0) : variable(c);
    const ExprPtr q = plus(first, mul(ahead, number_of(columns * width)));
    KernelBlock copy = element(plus(variable(to), mul(ahead, number_of(further))),
                               plus(variable(at), mul(ahead, number_of(columns * width))), q, width);
    copy = guarded(std::move(copy), q, tile.depth, inside_tile || tile.depth % (columns * width) == 0);
    KernelBlock row{declare(kInt, to, plus(stage_start, place(variable(m), piece))),
                    declare(kIndex, at, plus(plus(variable(begin), row_at(variable(m))), first))};
    if (pieces == 1) {
      append(row, std::move(copy));
    } else {
      row.push_back(some_at_once(c, pieces, std::move(copy)));
    }
    KernelBlock body{declare(kInt, m, plus(infix("/", thread, number_of(columns)), mul(variable(i), number_of(rows))))};
    append(body, guarded(std::move(row), variable(m), mn.extent, mn.extent % rows == 0));
    return unrolled(i, (mn.extent + rows - 1) / rows, std::move(body));
  };
  // Neighbouring threads take neighbouring rows, `width` each.
  const auto along_rows = [&](std::int64_t width) {
    const std::int64_t groups = mn.extent / width, steps = std::max<std::int64_t>(mainloop.threads / groups, 1);
    const std::string e = unit_.fresh("e");
    if (mainloop.threads % groups == 0 || groups % mainloop.threads == 0) {
      // The same rows all along, one after the other where they are more than threads.
      const std::int64_t rounds = std::max<std::int64_t>(groups / mainloop.threads, 1),
                         count = (tile.depth + steps - 1) / steps;
      const std::string to = unit_.fresh("to"), at = unit_.fresh("at"), m = unit_.fresh("m"),
                        apart = unit_.fresh("apart");
      const std::string q = steps == 1 ? "" : unit_.fresh("q"), round = rounds == 1 ? "" : unit_.fresh("i");
      const bool goes_on = count > kAtOnce;
      const ExprPtr first = steps == 1 ? number_of(0) : variable(q);
      ExprPtr group = rounds == 1 ? infix("%", thread, number_of(groups))
                                  : plus(thread, mul(variable(round), number_of(mainloop.threads)));
      if (groups == mainloop.threads) group = thread;
      KernelBlock made{declare(kInt, m, mul(group, number_of(width)))};
      if (steps > 1) made.push_back(declare(kInt, q, infix("/", thread, number_of(groups))));
      made.push_back(declare(kInt, to, plus(stage_start, plus(mul(first, number_of(step_size)), variable(m)))));
      made.push_back(
          declare(kIndex, at, plus(plus(variable(begin), row_at(variable(m))), mul(first, step_stride)), !goes_on));
      made.push_back(declare(kIndex, apart, mul(number_of(steps), step_stride)));
      const ExprPtr here = plus(first, mul(variable(e), number_of(steps)));
      const ExprPtr from_here = goes_on ? variable(at) : plus(variable(at), mul(variable(e), variable(apart)));
      KernelBlock copy =
          guarded(element(plus(variable(to), mul(variable(e), number_of(steps * step_size))), from_here, here, width),
                  here, tile.depth, inside_tile || tile.depth % steps == 0);
      // Left alone, all multiples of the distance would be kept in registers throughout the loop over the depth.
      if (goes_on) copy.push_back(assign(variable(at), plus(variable(at), variable(apart))));
      made.push_back(some_at_once(e, count, std::move(copy)));
      return rounds == 1 ? std::move(made) : KernelBlock{unrolled(round, rounds, std::move(made))};
    }
    const std::int64_t total = groups * tile.depth;
    const std::string x = unit_.fresh("x");
    const ExprPtr m = mul(infix("%", variable(x), number_of(groups)), number_of(width));
    const ExprPtr q = infix("/", variable(x), number_of(groups));
    KernelBlock body{declare(kInt, x, plus(thread, mul(variable(e), number_of(mainloop.threads))))};
    KernelBlock copy = element(plus(stage_start, plus(mul(q, number_of(step_size)), m)),
                               plus(plus(variable(begin), row_at(m)), mul(q, step_stride)), q, width);
    append(body, guarded(std::move(copy), variable(x), total, inside_tile || total % mainloop.threads == 0));
    return KernelBlock{some_at_once(e, (total + mainloop.threads - 1) / mainloop.threads, std::move(body))};
  };
  const std::int64_t width = 16 / bytes;
  if (tile.by_depth) {
    // Eight threads along the depth: a swizzled transposition.
    const Position across = [&](const ExprPtr& m, const ExprPtr& q) {
      return plus(mul(q, number_of(step_size)), tile.swizzled ? infix("^", m, call("apl_swizzle", {q})) : m);
    };
    all.push_back(along_depth(kUnrolled, 1, across, kUnrolled * step_size));
  } else if (tile.by_row && width > 1 && tile.copy_bytes != 4 && mn.extent % width == 0) {
    KernelBlock vectors = along_rows(width), singles = along_rows(1);
    all.push_back(kernel::branch(mainloop_alignment(op, tile, width), std::move(vectors), std::move(singles)));
  } else {
    append(all, along_rows(1));
  }
  in_outer_loops();
  append(out, std::move(all));
  copies_pending_ = true;
}

// Whether vectors of rows can be copied: a variable of the block, worked out once a tile.
ExprPtr MainloopLowering::mainloop_alignment(const CopyTile& op, const OperandTile& tile, std::int64_t width) {
  const MemoryBinding& source = *unit_.function.type(op.source).memory;
  // A vector lies inside the innermost dim, with those that lie together with it, or beyond all.
  const TileGuard& rows = op.guards[tile.row_axis];
  std::vector<Poly> positions;
  std::size_t apart = rows.split.empty() ? 0 : rows.split.size() - 1;
  if (!rows.split.empty()) {
    Poly together = rows.split.back().bound;
    while (apart > 0 && rows.split[apart - 1].stride == rows.split.back().stride * together)
      together *= rows.split[--apart].bound;
    positions.push_back(together);
  } else if (rows.bound) {
    positions.push_back(*rows.bound);
  }
  positions.push_back(source.layout.offset());
  positions.push_back(op.window.offset());
  for (std::size_t k = 0; k < tile.axes.size(); ++k)
    if (k != tile.row_axis) positions.push_back(op.window.dims()[k].stride);
  for (std::size_t p = 0; p < apart; ++p) positions.push_back(tile.split[p].stride);
  return alignment_variable(op, positions, width);
}

// A variable of the block: the source and these positions in it are multiples of `width` elements.
ExprPtr MainloopLowering::alignment_variable(const CopyTile& op, const std::vector<Poly>& positions,
                                             std::int64_t width) {
  const MemoryBinding& source = *unit_.function.type(op.source).memory;
  ExprPtr test = call("apl_aligned<16>", {variable(buffer(source.block, stm_.location).name)});
  if (const ExprPtr sizes = aligned(positions, width)) test = infix("&&", test, sizes);
  std::string& name = mainloop_->alignments[kernel::print(test, unit_.dialect())];
  if (!name.empty()) return variable(name);
  name = unit_.fresh(unit_.function.values.name(op.source) + "_aligned");
  mainloop_declarations_.push_back(declare({ScalarType::boolean, false}, name, test));
  return variable(name);
}

void MainloopLowering::finish_copies(KernelBlock& out) {
  if (!copies_pending_) return;
  copies_pending_ = false;
  out.push_back(do_call("apl_cp_async_commit", {}));
  out.push_back(do_call("apl_cp_async_wait<0>", {}));
  if (mainloop_->matrix()) out.push_back(do_call("apl_matrix_publish", {}));
}

}  // namespace apl::lower
