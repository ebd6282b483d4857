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
  if (!op.where.empty()) return false;
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

namespace {

// Each copy under way has its address in registers; all of many would not leave enough for the accumulators.
constexpr std::int64_t kAtOnce = 4;
Stmt some_at_once(const std::string& index, std::int64_t count, KernelBlock body) {
  Stmt loop = unrolled(index, count, std::move(body));
  if (count > kAtOnce) loop.unroll_by = kAtOnce;
  return loop;
}

KernelBlock guarded(KernelBlock body, const ExprPtr& i, std::int64_t bound, bool always) {
  if (always) return body;
  return KernelBlock{kernel::branch(infix("<", i, number_of(bound)), std::move(body))};
}

// Whether `width` elements are copied without going through registers.
bool is_async(const OperandTile& tile, std::int64_t width) {
  return tile.copy_bytes > 0 && width * tile.element_bytes() >= 4;
}

}  // namespace

ExprPtr CopiedTile::inside(const ExprPtr& step) const {
  if (!left) return outer_inside;
  const ExprPtr test = infix("<", step, left);
  return outer_inside ? infix("&&", outer_inside, test) : test;
}

KernelBlock CopiedTile::in_outer_loops(KernelBlock body) const {
  for (std::size_t k = outer.size(); k-- > 0;)
    if (outer[k].size > 1) {
      KernelBlock around{for_loop(kInt, outer[k].index, number_of(outer[k].size), std::move(body))};
      body = std::move(around);
    }
  return body;
}

// The copy, and a variable of where it begins in the source.
CopiedTile MainloopLowering::describe_copy(const CopyTile& op, Value copied, const ExprPtr& stage, KernelBlock& out) {
  const Mainloop& mainloop = *mainloop_;
  const ValueTable& values = unit_.function.values;
  const Value block = mainloop.copied.at(copied);
  const Lmad& layout = values.type(copied).memory->layout;
  const MemoryBinding& source = *values.type(op.source).memory;
  CopiedTile copy{.op = op, .tile = mainloop.tiles.at(block), .padded = !mainloop_reads_no_pad(op, copied)};
  copy.target = variable(buffer(block, stm_.location).name);
  copy.source = variable(buffer(source.block, stm_.location).name);
  copy.stage = mainloop_stage(block, stage);
  copy.thread = variable(mainloop.thread);
  if (mainloop.tf32_products > 0) {
    // What is worked out of it is not to stay in registers, of which products of tf32 take nearly all.
    copy.thread = variable(unit_.fresh("thread"));
    out.push_back(declare(kInt, copy.thread->text, call("apl_anew", {variable(mainloop.thread)})));
  }
  ExprPtr start = values_.poly(source.layout.offset() + op.window.offset());
  for (std::size_t k = 0; k < copy.tile.axes.size(); ++k) {
    const auto d = static_cast<std::size_t>(copy.tile.axes[k]);
    if (d < mainloop.space_rank) continue;
    const TileGuard& guard = op.guards[k];
    const std::int64_t size = *unit_.fold(op.window.dims()[k].size), apart = *unit_.fold(layout.dims()[k].stride);
    const ExprPtr stride = values_.poly(op.window.dims()[k].stride);
    if (d - mainloop.space_rank == mainloop.inner_depth) {
      copy.step_stride = stride, copy.step_size = apart;
      if (!guard.bound) continue;
      // Kept from step to step, where the remainder begins would be more registers than are left beside the sums.
      copy.left = variable(unit_.fresh("left"));
      const ExprPtr in_source = infix("-", values_.poly(*guard.bound), values_.poly(guard.start));
      out.push_back(declare(kInt, copy.left->text,
                            call("apl_anew", {cast(kInt, call("apl_index_min", {number_of(size), in_source}))})));
      continue;
    }
    copy.outer.push_back({size == 1 ? "" : unit_.fresh("q"), size});
    const ExprPtr i = size == 1 ? number_of(0) : variable(copy.outer.back().index);
    start = plus(start, mul(i, stride));
    copy.stage = plus(copy.stage, mul(i, number_of(apart)));
    if (!guard.bound) continue;
    const ExprPtr test = infix("<", plus(values_.poly(guard.start), i), values_.poly(*guard.bound));
    copy.outer_inside = copy.outer_inside ? infix("&&", copy.outer_inside, test) : test;
  }
  copy.begin = variable(unit_.fresh("from"));
  out.push_back(declare(kIndex, copy.begin->text, start));
  number_conditions(copy, out);
  return copy;
}

// A variable for a number at the first row and the first step, and what each step adds.
std::pair<ExprPtr, ExprPtr> MainloopLowering::number_at(const CopiedTile& copy, const TileAffine& at,
                                                        KernelBlock& out) {
  ExprPtr number = values_.poly(at.start), along = number_of(0);
  std::size_t loop = 0;
  for (std::size_t k = 0; k < copy.tile.axes.size(); ++k) {
    const auto d = static_cast<std::size_t>(copy.tile.axes[k]);
    if (d < mainloop_->space_rank) continue;
    const ExprPtr stride = values_.poly(at.strides[k][0]);
    if (d - mainloop_->space_rank == mainloop_->inner_depth) {
      along = stride;
      continue;
    }
    const CopiedTile::OuterLoop& outer = copy.outer[loop++];
    number = plus(number, mul(outer.size == 1 ? number_of(0) : variable(outer.index), stride));
  }
  const std::string name = unit_.fresh("number");
  out.push_back(declare(kIndex, name, number));
  return {variable(name), along};
}

// What conditions ask for, and where further arrays are read.
void MainloopLowering::number_conditions(CopiedTile& copy, KernelBlock& out) {
  for (const TileCondition& condition : copy.op.where) {
    const auto [number, along] = number_at(copy, condition.at, out);
    copy.numbers.push_back(number);
    copy.number_strides.push_back(along);
  }
  for (const TileRead& read : copy.op.also) {
    const auto [number, along] = number_at(copy, read.at, out);
    copy.also.push_back(number);
    copy.also_strides.push_back(along);
  }
}

// Whether row `m` is read at this step; null: it is anyway.
ExprPtr MainloopLowering::conditions_hold(const CopiedTile& copy, const ExprPtr& m, const ExprPtr& step) {
  ExprPtr all;
  const auto also = [&](const ExprPtr& test) { all = all ? infix("&&", all, test) : test; };
  for (std::size_t c = 0; c < copy.numbers.size(); ++c) {
    const std::string& table = copy.tile.mn == kNoMnDim ? std::string() : copy.tile.conditions[c].tables[copy.tile.mn];
    ExprPtr number = plus(copy.numbers[c], mul(step, copy.number_strides[c]));
    if (!table.empty()) number = plus(number, kernel::element(table, mainloop_slot(copy.tile.mn, m)));
    also(infix("<=", number_of(0), number));
    if (const auto& bound = copy.op.where[c].bound) also(infix("<", number, values_.poly(*bound)));
  }
  return all;
}

// Under conditions: element by element, neighbouring threads along what is contiguous.
KernelBlock MainloopLowering::copy_each(const CopiedTile& copy) {
  const OperandTile& tile = copy.tile;
  const std::int64_t rows = mainloop_->mn_of(tile).extent, threads = mainloop_->threads, total = rows * tile.depth;
  const std::string e = unit_.fresh("e"), x = unit_.fresh("x"), m = unit_.fresh("m"), q = unit_.fresh("q");
  const ExprPtr inner = number_of(tile.by_depth ? tile.depth : rows);
  const ExprPtr fast = infix("%", variable(x), inner), slow = infix("/", variable(x), inner);
  KernelBlock body{declare(kInt, m, tile.by_depth ? slow : fast), declare(kInt, q, tile.by_depth ? fast : slow)};
  const ExprPtr step = variable(q);
  const ExprPtr row = row_in_tile(tile, variable(m), step);
  const ExprPtr to = plus(copy.stage, plus(mul(step, number_of(copy.step_size)), row));
  const ExprPtr at = plus(plus(copy.begin, row_in_source(tile, variable(m))), mul(step, copy.step_stride));
  CopiedTile conditional = copy;
  conditional.outer_inside = conditions_hold(copy, variable(m), step);
  if (copy.outer_inside) conditional.outer_inside = infix("&&", copy.outer_inside, conditional.outer_inside);
  const std::string from = unit_.fresh("at");
  body.push_back(declare(kIndex, from, at));
  const ExprPtr row_inside = row_is_inside(tile, variable(from), body);
  append(body, copy_elements(conditional, to, variable(from), step, 1, row_inside));
  KernelBlock each{declare(kInt, x, plus(copy.thread, mul(variable(e), number_of(threads))))};
  append(each, guarded(std::move(body), variable(x), total, total % threads == 0));
  return KernelBlock{some_at_once(e, (total + threads - 1) / threads, std::move(each))};
}

// The thread's elements of an operand that no step changes.
void MainloopLowering::read_resident(const CopyTile& op, OperandTile& tile, KernelBlock& out) {
  const ValueTable& values = unit_.function.values;
  const MemoryBinding& source = *values.type(op.source).memory;
  tile.registers = unit_.fresh(values.name(op.source) + "_r");
  const std::array<std::string, 2> nth{unit_.fresh("i"), unit_.fresh("j")}, row{unit_.fresh("m"), unit_.fresh("n")};
  std::int64_t count = 1;
  for (std::size_t s = 0; s < 2; ++s)
    if (tile.row_axes[s]) count *= mainloop_->mn_dims[s].each;
  out.push_back(comment(fmt::format("elements of {}, for all steps", values.name(op.source))));
  out.push_back(declare_array({tile.element, false}, tile.registers, count));
  const auto value_of = [&](const TileNumber& number) {
    ExprPtr value = values_.poly(number.at.start);
    for (std::size_t s = 0; s < 2; ++s)
      if (!number.tables[s].empty())
        value = plus(value, kernel::element(number.tables[s], mainloop_slot(s, variable(row[s]))));
    return value;
  };
  ExprPtr inside;
  const auto also = [&](const ExprPtr& test) { inside = inside ? infix("&&", inside, test) : test; };
  for (std::size_t c = 0; c < op.where.size(); ++c) {
    const ExprPtr number = value_of(tile.conditions[c]);
    also(infix("<=", number_of(0), number));
    if (op.where[c].bound) also(infix("<", number, values_.poly(*op.where[c].bound)));
  }
  ExprPtr position = plus(values_.poly(source.layout.offset()), value_of(tile.position));
  for (std::size_t g = 0; g < op.gathers.size(); ++g) {
    TileGather gather = op.gathers[g];
    gather.at.start = Poly(0);
    position = plus(position, index_element(gather, value_of(tile.positions[g])));
  }
  ExprPtr value = kernel::element(buffer(source.block, stm_.location).name, position);
  if (inside) value = select(inside, value, values_.operand(op.pad));
  ExprPtr here = number_of(0);
  for (std::size_t s = 0; s < 2; ++s)
    if (tile.row_axes[s]) here = plus(mul(here, number_of(mainloop_->mn_dims[s].each)), variable(nth[s]));
  KernelBlock body{assign(kernel::element(tile.registers, here), value)};
  for (std::size_t s = 2; s-- > 0;) {
    if (!tile.row_axes[s]) continue;
    const MnDim& mn = mainloop_->mn_dims[s];
    const ExprPtr group = mul(infix("/", variable(nth[s]), number_of(mn.vector)), number_of(mn.lanes * mn.vector));
    const ExprPtr place = plus(plus(variable(mn.first), group), infix("%", variable(nth[s]), number_of(mn.vector)));
    KernelBlock rows{declare(kInt, row[s], place)};
    append(rows, std::move(body));
    body = {unrolled(nth[s], mn.each, std::move(rows))};
  }
  append(out, std::move(body));
}

// Whether a tile of the cores is copied by vectors of rows where these are aligned.
bool MainloopLowering::has_row_vectors(const OperandTile& tile) const {
  return tile.conditions.empty() && !tile.by_depth && tile.by_row && tile.vector() > 1 && tile.copy_bytes != 4 &&
         mainloop_->mn_of(tile).extent % tile.vector() == 0;
}

void MainloopLowering::mainloop_copy(const CopyTile& op, Value copied, const ExprPtr& stage, KernelBlock& out) {
  if (OperandTile& tile = mainloop_->tiles.at(mainloop_->copied.at(copied)); tile.resident)
    return read_resident(op, tile, out);
  out.push_back(comment(fmt::format("tile of {}", unit_.function.values.name(op.source))));
  KernelBlock all;
  const CopiedTile copy = describe_copy(op, copied, stage, all);
  const OperandTile& tile = copy.tile;
  if (mainloop_->matrix()) {
    append(all, copy_matrix_tile(copy));
  } else if (op.map) {
    append(all, copy_computed(copy));
  } else if (!copy.numbers.empty()) {
    append(all, copy_each(copy));
  } else if (tile.by_depth && tile.element_bytes() < 4 && tile.copy_bytes == 16 && tile.depth % tile.vector() == 0) {
    all.push_back(kernel::branch(matrix_alignment(op, tile), copy_vectors_along_depth(copy), {copy_along_depth(copy)}));
  } else if (tile.by_depth) {
    all.push_back(copy_along_depth(copy));
  } else if (has_row_vectors(tile)) {
    KernelBlock vectors = copy_along_rows(copy, tile.vector()), singles = copy_along_rows(copy, 1);
    all.push_back(kernel::branch(mainloop_alignment(op, tile, tile.vector()), std::move(vectors), std::move(singles)));
  } else {
    append(all, copy_along_rows(copy, 1));
  }
  append(out, copy.in_outer_loops(std::move(all)));
  copies_pending_ = true;
}

// A variable: whether the row that begins at `at` is one of the operand. Null: there is but one, which is.
ExprPtr MainloopLowering::row_is_inside(const OperandTile& tile, const ExprPtr& at, KernelBlock& out) {
  if (tile.mn == kNoMnDim) return nullptr;
  const std::string inside = unit_.fresh("inside");
  out.push_back(declare({ScalarType::boolean, false}, inside, call("apl_is_row", {at})));
  return variable(inside);
}

// `width` elements, at that step of the innermost dim of the depth. For a row outside nothing is copied: what its tile
// has is dropped with its results (zero_outside).
KernelBlock MainloopLowering::copy_elements(const CopiedTile& copy, const ExprPtr& to, const ExprPtr& at,
                                            const ExprPtr& step, std::int64_t width, const ExprPtr& row_inside) {
  const ExprPtr inside = copy.inside(step);
  ExprPtr test = inside && !copy.padded ? inside : nullptr;
  KernelBlock made;
  const bool async = is_async(copy.tile, width);
  if (async) {
    made.push_back(
        do_call(fmt::format("apl_cp_async{}", width * copy.tile.element_bytes()), {copy.target, to, copy.source, at}));
    if (row_inside) test = test ? infix("&&", test, row_inside) : row_inside;
  }
  for (std::int64_t e = 0; e < width && !async; ++e) {
    ExprPtr value = kernel::element(copy.source->text, plus(at, number_of(e)));
    if (row_inside) value = select(row_inside, value, literal(Scalar::zero(copy.tile.element)));
    made.push_back(assign(kernel::element(copy.target->text, plus(to, number_of(e))), value));
  }
  // One test a copy, so that it is a predicate and no branch.
  if (test) made = {kernel::branch(test, std::move(made))};
  if (!inside || !copy.padded) return made;
  KernelBlock pads;
  for (std::int64_t e = 0; e < width; ++e)
    pads.push_back(assign(kernel::element(copy.target->text, plus(to, number_of(e))), values_.operand(copy.op.pad)));
  return KernelBlock{kernel::branch(inside, std::move(made), std::move(pads))};
}

// Zeros for rows of tiles that no copy fills, as they are outside of the operand in one of the block's tiles: once,
// before the first copies. `end_of_m` is the M dim's index behind the block's last tile.
void MainloopLowering::zero_outside(const SegOp& op, const ExprPtr& end_of_m, KernelBlock& out) {
  if (mainloop_->matrix()) return;
  std::array<KernelBlock, 2> fills;
  for (const auto& [block, tile] : mainloop_->tiles) {
    // What goes through registers writes zeros itself.
    const bool is_async = tile.element_bytes() >= 4 || has_row_vectors(tile);
    if (tile.mn == kNoMnDim || tile.copy_bytes == 0 || !is_async) continue;
    const auto& memory = buffer(block, stm_.location);
    fills[tile.mn].push_back(do_call("apl_zero_tile", {variable(memory.name), number_of(memory.count),
                                                       variable(mainloop_->thread), number_of(mainloop_->threads)}));
  }
  for (std::size_t s = 0; s < 2; ++s) {
    if (fills[s].empty()) continue;
    const std::size_t dim = mainloop_->mn_dims[s].dim;
    const TileExtent& extent = op.results[0].extents[dim];
    const ExprPtr end = s == 0 ? end_of_m : plus(values_.scalars.at(op.space[dim].index), number_of(1));
    const ExprPtr rows = mul(end, values_.poly(extent.tile * extent.reg));
    const std::string outside = unit_.fresh(s == 0 ? "rows_outside" : "columns_outside");
    out.push_back(declare({ScalarType::boolean, false}, outside, infix(">", rows, values_.poly(extent.bound))));
    out.push_back(kernel::branch(variable(outside), std::move(fills[s])));
  }
}

ExprPtr MainloopLowering::row_in_source(const OperandTile& tile, const ExprPtr& m) {
  return tile.mn == kNoMnDim ? number_of(0) : kernel::element(tile.rows, mainloop_slot(tile.mn, m));
}

// Where row m of that step lies, from where the step does.
ExprPtr MainloopLowering::row_in_tile(const OperandTile& tile, const ExprPtr& m, const ExprPtr& step) {
  return tile.swizzled ? infix("^", m, call(tile.swizzle(), {step})) : m;
}

// Eight neighbouring threads along the depth, where memory is contiguous: a swizzled transposition.
Stmt MainloopLowering::copy_along_depth(const CopiedTile& copy) {
  const OperandTile& tile = copy.tile;
  const std::int64_t extent = mainloop_->mn_of(tile).extent, rows = mainloop_->threads / kUnrolled;
  const std::int64_t pieces = (tile.depth + kUnrolled - 1) / kUnrolled;
  const std::string m = unit_.fresh("m"), to = unit_.fresh("to"), at = unit_.fresh("at"), i = unit_.fresh("i");
  const std::string c = pieces == 1 ? "" : unit_.fresh("c");
  const ExprPtr thread = copy.thread, first = infix("%", thread, number_of(kUnrolled));
  const ExprPtr ahead = pieces == 1 ? number_of(0) : variable(c);
  const ExprPtr step = plus(first, mul(ahead, number_of(kUnrolled)));
  KernelBlock row_declared;
  const ExprPtr row_inside = row_is_inside(tile, variable(at), row_declared);
  KernelBlock piece = copy_elements(copy, plus(variable(to), mul(ahead, number_of(kUnrolled * copy.step_size))),
                                    plus(variable(at), mul(ahead, number_of(kUnrolled))), step, 1, row_inside);
  piece = guarded(std::move(piece), step, tile.depth, copy.inside_tile() || tile.depth % kUnrolled == 0);
  const ExprPtr place = plus(mul(first, number_of(copy.step_size)), row_in_tile(tile, variable(m), first));
  KernelBlock row{declare(kInt, to, plus(copy.stage, place)),
                  declare(kIndex, at, plus(plus(copy.begin, row_in_source(tile, variable(m))), first))};
  append(row, std::move(row_declared));
  if (pieces == 1) {
    append(row, std::move(piece));
  } else {
    row.push_back(some_at_once(c, pieces, std::move(piece)));
  }
  KernelBlock body{declare(kInt, m, plus(infix("/", thread, number_of(kUnrolled)), mul(variable(i), number_of(rows))))};
  append(body, guarded(std::move(row), variable(m), extent, extent % rows == 0));
  return unrolled(i, (extent + rows - 1) / rows, std::move(body));
}

// Elements of less than four bytes, which are not copied asynchronously: 16 bytes of a row at once through registers,
// where these are aligned. Neighbouring threads have neighbouring rows, whose elements of a step they put down
// together.
KernelBlock MainloopLowering::copy_vectors_along_depth(const CopiedTile& copy) {
  const OperandTile& tile = copy.tile;
  const std::int64_t extent = mainloop_->mn_of(tile).extent, threads = mainloop_->threads, width = tile.vector();
  const std::int64_t total = extent * (tile.depth / width);
  const std::string e = unit_.fresh("e"), x = unit_.fresh("x"), m = unit_.fresh("m"), q = unit_.fresh("q"),
                    at = unit_.fresh("at"), k = unit_.fresh("k"), held = unit_.fresh("held");
  const ExprPtr step = plus(variable(q), variable(k));
  const ExprPtr here = plus(plus(copy.begin, row_in_source(tile, variable(m))), variable(q));
  KernelBlock body{declare(kInt, m, infix("%", variable(x), number_of(extent))),
                   declare(kInt, q, mul(infix("/", variable(x), number_of(extent)), number_of(width))),
                   declare(kIndex, at, here), declare_array({tile.element, false}, held, width)};
  ExprPtr inside = row_is_inside(tile, variable(at), body);
  if (const ExprPtr test = copy.inside(variable(q))) inside = infix("&&", test, inside);
  const ExprPtr other = copy.padded ? values_.operand(copy.op.pad) : literal(Scalar::zero(tile.element));
  KernelBlock load{do_call(fmt::format("apl_load<{}>", width), {copy.source, variable(at), variable(held)})};
  KernelBlock fill{unrolled(k, width, {assign(kernel::element(held, variable(k)), other)})};
  body.push_back(kernel::branch(inside, std::move(load), std::move(fill)));
  const ExprPtr to = plus(copy.stage, plus(mul(step, number_of(copy.step_size)), row_in_tile(tile, variable(m), step)));
  body.push_back(
      unrolled(k, width, {assign(kernel::element(copy.target->text, to), kernel::element(held, variable(k)))}));
  KernelBlock each{declare(kInt, x, plus(copy.thread, mul(variable(e), number_of(threads))))};
  append(each, guarded(std::move(body), variable(x), total, total % threads == 0));
  return KernelBlock{some_at_once(e, (total + threads - 1) / threads, std::move(each))};
}

// Neighbouring threads take neighbouring rows, `width` each.
KernelBlock MainloopLowering::copy_along_rows(const CopiedTile& copy, std::int64_t width) {
  const OperandTile& tile = copy.tile;
  const std::int64_t groups = mainloop_->mn_of(tile).extent / width, threads = mainloop_->threads;
  const std::string e = unit_.fresh("e");
  if (threads % groups == 0 || groups % threads == 0) return copy_same_rows(copy, width, e);
  const std::int64_t total = groups * tile.depth;
  const std::string x = unit_.fresh("x");
  const ExprPtr m = mul(infix("%", variable(x), number_of(groups)), number_of(width));
  const ExprPtr step = infix("/", variable(x), number_of(groups));
  KernelBlock body{declare(kInt, x, plus(copy.thread, mul(variable(e), number_of(threads))))};
  const std::string at = unit_.fresh("at");
  KernelBlock made{declare(kIndex, at, plus(plus(copy.begin, row_in_source(tile, m)), mul(step, copy.step_stride)))};
  const ExprPtr row_inside = row_is_inside(tile, variable(at), made);
  const ExprPtr place = plus(mul(step, number_of(copy.step_size)), row_in_tile(tile, m, step));
  append(made, copy_elements(copy, plus(copy.stage, place), variable(at), step, width, row_inside));
  append(body, guarded(std::move(made), variable(x), total, copy.inside_tile() || total % threads == 0));
  return KernelBlock{some_at_once(e, (total + threads - 1) / threads, std::move(body))};
}

// The same, where a thread has the same rows all along: one after the other where they are more than threads.
KernelBlock MainloopLowering::copy_same_rows(const CopiedTile& copy, std::int64_t width, const std::string& e) {
  const OperandTile& tile = copy.tile;
  const std::int64_t groups = mainloop_->mn_of(tile).extent / width, threads = mainloop_->threads;
  const std::int64_t steps = std::max<std::int64_t>(threads / groups, 1);
  const std::int64_t rounds = std::max<std::int64_t>(groups / threads, 1), count = (tile.depth + steps - 1) / steps;
  const std::string to = unit_.fresh("to"), at = unit_.fresh("at"), m = unit_.fresh("m"), apart = unit_.fresh("apart");
  const std::string q = steps == 1 ? "" : unit_.fresh("q"), round = rounds == 1 ? "" : unit_.fresh("i");
  const bool goes_on = count > kAtOnce;
  const ExprPtr thread = copy.thread, first = steps == 1 ? number_of(0) : variable(q);
  ExprPtr group =
      rounds == 1 ? infix("%", thread, number_of(groups)) : plus(thread, mul(variable(round), number_of(threads)));
  if (groups == threads) group = thread;
  KernelBlock made{declare(kInt, m, mul(group, number_of(width)))};
  if (steps > 1) made.push_back(declare(kInt, q, infix("/", thread, number_of(groups))));
  // Where a swizzle has a row differs from copy to copy: by its bit of value 4 alone, where steps are multiples of
  // that.
  const bool moves = tile.swizzled && steps % 4 != 0;
  const ExprPtr begin = plus(copy.stage, mul(first, number_of(copy.step_size)));
  made.push_back(declare(kInt, to, moves ? begin : plus(begin, row_in_tile(tile, variable(m), first))));
  made.push_back(declare(
      kIndex, at, plus(plus(copy.begin, row_in_source(tile, variable(m))), mul(first, copy.step_stride)), !goes_on));
  made.push_back(declare(kIndex, apart, mul(number_of(steps), copy.step_stride)));
  const ExprPtr row_inside = row_is_inside(tile, variable(at), made);
  // One test for all copies of a row where they are many: predicates of each would be kept in registers.
  const bool once = goes_on && row_inside && is_async(tile, width);
  const ExprPtr step = plus(first, mul(variable(e), number_of(steps)));
  const ExprPtr from_here = goes_on ? variable(at) : plus(variable(at), mul(variable(e), variable(apart)));
  ExprPtr place = variable(to);
  if (moves) place = plus(place, row_in_tile(tile, variable(m), step));
  if (tile.swizzled && steps % 8 == 4 && tile.element_bytes() != 8)
    place = infix("^", place, infix("&", mul(variable(e), number_of(steps)), number_of(4)));
  const ExprPtr step_to = plus(place, mul(variable(e), number_of(steps * copy.step_size)));
  KernelBlock each = guarded(copy_elements(copy, step_to, from_here, step, width, once ? nullptr : row_inside), step,
                             tile.depth, copy.inside_tile() || tile.depth % steps == 0);
  // Left alone, all multiples of the distance would be kept in registers throughout the loop over the depth.
  if (goes_on) each.push_back(assign(variable(at), plus(variable(at), variable(apart))));
  Stmt all = some_at_once(e, count, std::move(each));
  made.push_back(once ? kernel::branch(row_inside, {std::move(all)}) : std::move(all));
  return rounds == 1 ? std::move(made) : KernelBlock{unrolled(round, rounds, std::move(made))};
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
  std::vector<Poly> all = positions;
  for (const TileGather& gather : op.gathers) all.push_back(gather.stride);
  if (const ExprPtr sizes = aligned(all, width)) test = infix("&&", test, sizes);
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
