// The mainloop of a contraction by matrix units (runtime/device/matrix.h): tiles of both operands lie in shared memory
// as the units read them, each in the order of its source, so that 16 bytes are copied at once whichever dim is
// contiguous; warpgroups of 128 threads multiply 64 rows of one by all rows of the other. Beyond the source tiles hold
// zeros: the last step is as deep as the others.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "codegen/contraction/mainloop.h"
#include "codegen/lower/lower.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

namespace {

// How a block's threads share the copies of a tile, `vector` elements each: neighbours along what is contiguous. Copy e
// of a thread is of element (row, step) of thread + e * threads.
struct Sharing {
  std::int64_t threads, inner, count;  // copies of a row or a step, and of a thread
  std::int64_t vector, total;
  bool by_depth;

  // Rows (or steps) between a thread's copies; the other index is the same for all of them.
  std::int64_t apart() const { return threads / inner; }
  // Pieces are xor-ed by rows and steps modulo 8.
  bool is_affine() const { return threads % inner == 0 && apart() % 8 == 0 && total % threads == 0; }
};

Sharing share_copies(const OperandTile& tile, std::int64_t rows, std::int64_t threads, std::int64_t vector) {
  const std::int64_t total = rows * tile.depth / vector;
  return {threads,      (tile.by_depth ? tile.depth : rows) / vector, (total + threads - 1) / threads, vector, total,
          tile.by_depth};
}

// What goes through registers: so many loads wait for memory at once. Pieces of 16 bytes: several where sums leave
// registers for them.
constexpr std::int64_t kPieceWords = 4, kSinglesAtOnce = 8;
constexpr std::int64_t kFewSums = 32, kPiecesBesideFew = 2;

}  // namespace

// Where a thread's copies of vectors come from, beside where the step begins: once a tile. Where they go to: once.
void MainloopLowering::declare_matrix_copies(KernelBlock& out) {
  const ValueTable& values = unit_.function.values;
  for (auto& [block, tile] : mainloop_->tiles) {
    std::string name = values.name(block);
    if (name.ends_with("_mem")) name.resize(name.size() - 4);
    const std::int64_t rows = mainloop_->mn_of(tile).extent;
    if (!tile.has_vectors()) continue;
    const Sharing sharing = share_copies(tile, rows, mainloop_->threads, tile.vector());
    const ExprPtr thread = variable(mainloop_->thread);
    const ExprPtr fast = mul(infix("%", thread, number_of(sharing.inner)), number_of(tile.vector()));
    const ExprPtr slow = infix("/", thread, number_of(sharing.inner));
    tile.first_row = unit_.fresh(name + "_row"), tile.first_step = unit_.fresh(name + "_step");
    tile.to = unit_.fresh(name + "_to"), tile.from = unit_.fresh(name + "_from");
    out.push_back(declare(kInt, tile.first_row, tile.by_depth ? slow : fast));
    out.push_back(declare(kInt, tile.first_step, tile.by_depth ? fast : slow));
    out.push_back(declare(kInt, tile.to, matrix_position(tile, variable(tile.first_row), variable(tile.first_step))));
    out.push_back(declare_array(kIndex, tile.from, tile.by_depth ? sharing.count : 1));
  }
}

void MainloopLowering::place_matrix_copies(KernelBlock& out) {
  for (const auto& [block, tile] : mainloop_->tiles) {
    const std::int64_t rows = mainloop_->mn_of(tile).extent;
    if (!tile.has_vectors()) continue;
    const Sharing sharing = share_copies(tile, rows, mainloop_->threads, tile.vector());
    const auto row_at = [&](const ExprPtr& m) { return kernel::element(tile.rows, mainloop_slot(tile.mn, m)); };
    if (!tile.by_depth) {
      out.push_back(assign(kernel::element(tile.from, number_of(0)), row_at(variable(tile.first_row))));
      continue;
    }
    const std::string e = unit_.fresh("e");
    const ExprPtr row = plus(variable(tile.first_row), mul(variable(e), number_of(sharing.apart())));
    KernelBlock place{assign(kernel::element(tile.from, variable(e)), plus(row_at(row), variable(tile.first_step)))};
    if (sharing.total % sharing.threads != 0)
      place = {kernel::branch(infix("<", row, number_of(rows)), std::move(place))};
    out.push_back(unrolled(e, sharing.count, std::move(place)));
  }
}

ExprPtr MainloopLowering::matrix_position(const OperandTile& tile, const ExprPtr& row, const ExprPtr& step) {
  const std::string bytes = tile.element_bytes() == 2 ? "" : fmt::format(", {}", tile.element_bytes());
  return call(fmt::format("apl_matrix_position<{}, {}{}>", tile.depth, tile.lies_by_depth(), bytes), {row, step});
}

KernelBlock MainloopLowering::copy_matrix_tile(const CopiedTile& copied) {
  if (copied.op.map) return copy_computed(copied);
  const OperandTile& tile = copied.tile;
  const std::int64_t rows = mainloop_->mn_of(tile).extent, threads = mainloop_->threads;
  // 16 bytes at once, or zeros beyond the source.
  const auto copy_or_zeros = [&](const ExprPtr& to, const ExprPtr& at, const ExprPtr& m, const ExprPtr& q,
                                 const ExprPtr& row) {
    ExprPtr inside = call("apl_is_row", {row});
    if (const ExprPtr test = conditions_hold(copied, m, q)) inside = infix("&&", inside, test);
    if (const ExprPtr test = copied.inside(q)) inside = infix("&&", inside, test);
    return do_call("apl_cp_async_or_zeros<16>", {copied.target, to, copied.source, at, inside});
  };
  const auto vectors = [&] {
    const Sharing sharing = share_copies(tile, rows, threads, tile.vector());
    const std::string e = unit_.fresh("e"), at = unit_.fresh("at");
    const ExprPtr ahead = mul(variable(e), number_of(sharing.apart()));
    const ExprPtr first_row = variable(tile.first_row), first_step = variable(tile.first_step);
    const ExprPtr row = tile.by_depth ? plus(first_row, ahead) : first_row;
    const ExprPtr step = tile.by_depth ? first_step : plus(first_step, ahead);
    const std::int64_t line = tile.by_depth ? tile.depth : kMatrixLine;
    const ExprPtr to = sharing.is_affine()
                           ? plus(variable(tile.to), mul(variable(e), number_of(sharing.apart() * line)))
                           : matrix_position(tile, row, step);
    KernelBlock all, body;
    ExprPtr source = plus(copied.begin, kernel::element(tile.from, variable(e)));
    if (!tile.by_depth) {
      all.push_back(declare(
          kIndex, at,
          plus(plus(copied.begin, kernel::element(tile.from, number_of(0))), mul(first_step, copied.step_stride)),
          false));
      source = variable(at);
    }
    const ExprPtr of_row = kernel::element(tile.from, tile.by_depth ? variable(e) : number_of(0));
    body = {copy_or_zeros(plus(copied.stage, to), source, row, step, of_row)};
    if (!tile.by_depth)
      body.push_back(assign(variable(at), plus(variable(at), mul(number_of(sharing.apart()), copied.step_stride))));
    if (sharing.total % threads != 0)
      body = {kernel::branch(infix("<", tile.by_depth ? row : step, number_of(tile.by_depth ? rows : tile.depth)),
                             std::move(body))};
    all.push_back(unrolled(e, sharing.count, std::move(body)));
    return all;
  };
  // The same 16 bytes through registers, from any address: some at once, as each waits for memory.
  const auto pieces = [&] {
    const Sharing sharing = share_copies(tile, rows, threads, tile.vector());
    const std::int64_t at_once = mainloop_->registers <= kFewSums ? kPiecesBesideFew : 1;
    const std::string words = unit_.fresh("words"), row_anew = unit_.fresh("row"), step_anew = unit_.fresh("step");
    // What is worked out of them is not to stay in registers.
    KernelBlock all{declare_array({ScalarType::u32, false}, words, at_once * kPieceWords),
                    declare(kInt, row_anew, call("apl_anew", {variable(tile.first_row)})),
                    declare(kInt, step_anew, call("apl_anew", {variable(tile.first_step)}))};
    for (std::int64_t from = 0; from < sharing.count; from += at_once) {
      const std::int64_t count = std::min(at_once, sharing.count - from);
      const std::string e = unit_.fresh("e");
      const ExprPtr nth = plus(variable(e), number_of(from)), ahead = mul(nth, number_of(sharing.apart()));
      const ExprPtr first_row = variable(row_anew), first_step = variable(step_anew);
      const ExprPtr row = tile.by_depth ? plus(first_row, ahead) : first_row;
      const ExprPtr step = tile.by_depth ? first_step : plus(first_step, ahead);
      const ExprPtr piece = plus(variable(words), mul(variable(e), number_of(kPieceWords)));
      KernelBlock load, store;
      if (tile.by_depth) {
        const ExprPtr of_row = kernel::element(tile.from, nth);
        ExprPtr left = number_of(tile.vector());
        if (copied.left) left = call("apl_index_min", {left, infix("-", copied.left, step)});
        ExprPtr inside = call("apl_is_row", {of_row});
        if (const ExprPtr test = conditions_hold(copied, row, step)) inside = infix("&&", inside, test);
        if (copied.outer_inside) inside = infix("&&", inside, copied.outer_inside);
        load.push_back(do_call("apl_load_piece",
                               {copied.source, plus(copied.begin, of_row), select(inside, left, number_of(0)), piece}));
      } else {
        const ExprPtr test = copied.inside(step);
        load.push_back(do_call("apl_load_piece_of_rows",
                               {copied.source, plus(copied.begin, mul(step, copied.step_stride)), variable(tile.rows),
                                mainloop_slot(tile.mn, row), test ? test : literal(Scalar::boolean(true)), piece}));
      }
      store.push_back(
          do_call("apl_store_piece", {copied.target, plus(copied.stage, matrix_position(tile, row, step)), piece}));
      const auto in_tile = [&](KernelBlock body) {
        if (sharing.total % threads == 0) return body;
        return KernelBlock{kernel::branch(
            infix("<", tile.by_depth ? row : step, number_of(tile.by_depth ? rows : tile.depth)), std::move(body))};
      };
      all.push_back(unrolled(e, count, in_tile(std::move(load))));
      all.push_back(unrolled(e, count, in_tile(std::move(store))));
    }
    return all;
  };
  // Element by element, some at once.
  const auto singles = [&] {
    const Sharing sharing = share_copies(tile, rows, threads, 1);
    const std::string e = unit_.fresh("e"), k = unit_.fresh("k"), x = unit_.fresh("x"), m = unit_.fresh("m"),
                      q = unit_.fresh("q"), row = unit_.fresh("row"), read = unit_.fresh("read"),
                      from_thread = unit_.fresh("thread");
    const std::int64_t at_once = std::min(kSinglesAtOnce, sharing.count);
    const bool whole = sharing.total % threads == 0 && sharing.count % at_once == 0;
    // Element k of those that a thread copies at once.
    const auto each = [&](KernelBlock body) {
      const ExprPtr fast = infix("%", variable(x), number_of(sharing.inner));
      const ExprPtr slow = infix("/", variable(x), number_of(sharing.inner));
      const ExprPtr nth = plus(mul(variable(e), number_of(at_once)), variable(k));
      KernelBlock located{declare(kInt, m, tile.by_depth ? slow : fast), declare(kInt, q, tile.by_depth ? fast : slow)};
      append(located, std::move(body));
      KernelBlock all{declare(kInt, x, plus(variable(from_thread), mul(nth, number_of(threads))))};
      if (whole) {
        append(all, std::move(located));
      } else {
        all.push_back(kernel::branch(infix("<", variable(x), number_of(sharing.total)), std::move(located)));
      }
      return unrolled(k, at_once, std::move(all));
    };
    const ExprPtr at = plus(plus(copied.begin, variable(row)), mul(variable(q), copied.step_stride));
    ExprPtr inside = call("apl_is_row", {variable(row)});
    if (const ExprPtr test = conditions_hold(copied, variable(m), variable(q))) inside = infix("&&", inside, test);
    if (const ExprPtr test = copied.inside(variable(q))) inside = infix("&&", inside, test);
    KernelBlock load{declare(kIndex, row, kernel::element(tile.rows, mainloop_slot(tile.mn, variable(m)))),
                     assign(kernel::element(read, variable(k)), select(inside, kernel::element(copied.source->text, at),
                                                                       literal(Scalar::zero(tile.element))))};
    KernelBlock store{assign(
        kernel::element(copied.target->text, plus(copied.stage, matrix_position(tile, variable(m), variable(q)))),
        kernel::element(read, variable(k)))};
    KernelBlock body{declare(kInt, from_thread, call("apl_anew", {variable(mainloop_->thread)})),
                     declare_array({tile.element, false}, read, at_once)};
    body.push_back(each(std::move(load)));
    body.push_back(each(std::move(store)));
    return KernelBlock{for_loop(kInt, e, number_of((sharing.count + at_once - 1) / at_once), std::move(body))};
  };
  // A vector is under the conditions of its first element.
  const bool one_condition = std::ranges::all_of(
      copied.number_strides, [&](const ExprPtr& along) { return tile.by_depth && number(along) == 0; });
  if (!tile.has_vectors() || !one_condition) return singles();
  if (mainloop_->aligned) return vectors();
  return {kernel::branch(vector_alignment(copied.op, tile), vectors(), pieces())};
}

ExprPtr MainloopLowering::vector_alignment(const CopyTile& op, const OperandTile& tile) {
  return tile.by_depth ? matrix_alignment(op, tile) : mainloop_alignment(op, tile, tile.vector());
}

// Whether all copies of matrix units are of vectors. Then a block runs a tile loop of its own: what copies through
// registers keep between steps, and work out anew, would make each step longer. Null: some are never, or several blocks
// share a multiprocessor, which leaves too few registers for two loops: kernels spilled 8 to 36 bytes.
ExprPtr MainloopLowering::all_aligned() {
  if (!mainloop_->matrix() || function_.resident > 1) return nullptr;
  ExprPtr all;
  for (const auto& [copy, copied] : mainloop_->main.copies) {
    const OperandTile& tile = mainloop_->tiles.at(mainloop_->copied.at(copied));
    if (!tile.has_vectors() || !copy->where.empty()) return nullptr;
    const ExprPtr aligned = vector_alignment(*copy, tile);
    all = all ? infix("&&", all, aligned) : aligned;
  }
  return all;
}

// Whether vectors along the depth can be copied: rows and steps of outer dims are apart by such, and so is the end.
ExprPtr MainloopLowering::matrix_alignment(const CopyTile& op, const OperandTile& tile) {
  const MemoryBinding& source = *unit_.function.type(op.source).memory;
  std::vector<Poly> positions{source.layout.offset(), op.window.offset()};
  for (std::size_t k = 0; k < tile.axes.size(); ++k) {
    const auto d = static_cast<std::size_t>(tile.axes[k]);
    if (k == tile.row_axis && !tile.split.empty()) {
      for (const TileGuard::Part& part : tile.split) positions.push_back(part.stride);
    } else if (d < mainloop_->space_rank || d - mainloop_->space_rank != mainloop_->inner_depth) {
      positions.push_back(op.window.dims()[k].stride);
    } else if (op.guards[k].bound) {
      positions.push_back(*op.guards[k].bound);
    }
  }
  return alignment_variable(op, positions, tile.vector());
}

KernelBlock MainloopLowering::matrix_product(const TileContract& op, const Stm& stm, const ExprPtr& stage,
                                             const std::vector<ExprPtr>& at) {
  Mainloop& mainloop = *mainloop_;
  const ValueTable& values = unit_.function.values;
  const std::size_t rank = op.space.size(), rows = static_cast<std::size_t>(mainloop.matrix_rows);
  std::array<std::vector<ExprPtr>, 2> operands;
  std::array<bool, 2> by_depth{};
  std::int64_t depth = 0;
  for (const TileOperand& operand : op.operands) {
    const Value block = mainloop.copied.at(operand.tile);
    const OperandTile& tile = mainloop.tiles.at(block);
    const Lmad& layout = values.type(operand.tile).memory->layout;
    ExprPtr position = mainloop_stage(block, stage);
    for (std::size_t k = 0; k < operand.axes.size(); ++k) {
      const auto d = static_cast<std::size_t>(operand.axes[k]);
      if (d >= rank && d - rank != mainloop.inner_depth)
        position = plus(position, mul(at[d - rank], number_of(*unit_.fold(layout.dims()[k].stride))));
    }
    const std::size_t which = tile.mn == rows ? 0 : 1;
    operands[which] = {variable(buffer(block, stm.location).name), position};
    by_depth[which] = tile.lies_by_depth();
    depth = tile.depth;
  }
  std::vector<ExprPtr> arguments{variable(buffer(values.type(op.accumulators[0]).memory->block, stm.location).name)};
  for (const auto& operand : operands) arguments.insert(arguments.end(), operand.begin(), operand.end());
  return {do_call(fmt::format("apl_matrix_multiply<{}, {}, {}, {}, {}>", depth, mainloop.mn_dims[1 - rows].each,
                              by_depth[0], by_depth[1], rows == 1),
                  std::move(arguments))};
}

// Eight steps of f64 or of f32 by tf32, from tiles as multiply-adds have them.
KernelBlock MainloopLowering::fragments_product(const TileContract& op, const Stm& stm, const ExprPtr& stage,
                                                const std::vector<ExprPtr>& at) {
  Mainloop& mainloop = *mainloop_;
  const ValueTable& values = unit_.function.values;
  const std::size_t rank = op.space.size(), p_dim = mainloop.mn_dims[0].lanes == 8 ? 0 : 1;
  std::array<std::vector<ExprPtr>, 2> operands;
  std::array<bool, 2> swizzled{};
  for (const TileOperand& operand : op.operands) {
    const Value block = mainloop.copied.at(operand.tile);
    const OperandTile& tile = mainloop.tiles.at(block);
    const Lmad& layout = values.type(operand.tile).memory->layout;
    ExprPtr position = mainloop_stage(block, stage);
    std::int64_t apart = 0;
    for (std::size_t k = 0; k < operand.axes.size(); ++k) {
      const auto d = static_cast<std::size_t>(operand.axes[k]);
      if (d < rank) continue;
      const std::int64_t stride = *unit_.fold(layout.dims()[k].stride);
      if (d - rank == mainloop.inner_depth) apart = stride;
      position = plus(position, mul(at[d - rank], number_of(stride)));
    }
    const std::size_t which = tile.mn == p_dim ? 0 : 1;
    const MnDim& mn = mainloop.mn_of(tile);
    operands[which] = {variable(buffer(block, stm.location).name), position, number_of(apart),
                       variable(which == 0 ? mn.first : mn.warp_first)};
    swizzled[which] = tile.swizzled;
  }
  const MnDim &p = mainloop.mn_dims[p_dim], &q = mainloop.mn_dims[1 - p_dim];
  std::vector<ExprPtr> arguments{variable(buffer(values.type(op.accumulators[0]).memory->block, stm.location).name)};
  for (const auto& operand : operands) arguments.insert(arguments.end(), operand.begin(), operand.end());
  if (mainloop.tf32_products > 0)
    return {do_call(fmt::format("apl_multiply_floats<{}, {}, {}, {}, {}>", mainloop.tf32_products, p.each, q.each,
                                swizzled[0], swizzled[1]),
                    std::move(arguments))};
  return {do_call(fmt::format("apl_multiply_doubles<{}, {}, {}, {}, {}, {}>", p.each, q.each, p.vector, swizzled[0],
                              swizzled[1], p_dim == 1),
                  std::move(arguments))};
}

// Before the first products, and when their sums are wanted.
void MainloopLowering::start_products(const Stm& stm, KernelBlock& out) { on_sums("apl_matrix_start", stm, out); }
void MainloopLowering::finish_products(const Stm& stm, KernelBlock& out) { on_sums("apl_matrix_finish", stm, out); }
void MainloopLowering::on_sums(const char* function, const Stm& stm, KernelBlock& out) {
  const TileContract* contract = mainloop_->readers.begin()->second;
  const Value block = unit_.function.values.type(contract->accumulators[0]).memory->block;
  out.push_back(
      do_call(fmt::format("{}<{}>", function, mainloop_->registers), {variable(buffer(block, stm.location).name)}));
}

}  // namespace apl::lower
