// Tiles of computed factors (passes/tile_contraction/factors.cpp): elements of all arrays are read to registers,
// mapped, and written to shared memory, a thread's neighbours as 16 bytes where tiles lie as matrix units read them.
// Beyond the source a tile has zeros, whatever the map makes of them.
#include <algorithm>

#include <fmt/format.h>

#include "codegen/contraction/mainloop.h"
#include "codegen/lower/lower.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

namespace {

// What is read waits for memory at once, in so many registers: more where sums leave them.
constexpr std::int64_t kWordsAtOnce = 16, kWordsBesideFewSums = 32, kSumsThatAreFew = 32;

// An array that is read, and where, for row m and step q: `begin` + q * `per_step` + what a table has for the row.
struct ComputedRead {
  ScalarType element{};
  std::string array;  // empty: the position itself
  ExprPtr begin, per_step;
  std::string rows;       // the table; empty: rows change nothing
  bool together = false;  // neighbours of a group lie together, if rows of the tile do
  bool same = false;      // all of a group are one element
  std::string held;       // variable: what was read
};

bool is_one_along(const std::vector<Poly>& strides) { return !strides.empty() && strides.back().is_one(); }

}  // namespace

KernelBlock MainloopLowering::copy_computed(const CopiedTile& copied) {
  const OperandTile& tile = copied.tile;
  const CopyTile& op = copied.op;
  const ValueTable& values = unit_.function.values;
  const std::int64_t rows = mainloop_->mn_of(tile).extent, threads = mainloop_->threads;
  const bool along_depth = !mainloop_->matrix() || tile.lies_by_depth();
  const std::int64_t width = mainloop_->matrix() ? tile.vector() : 1;
  const std::int64_t row_width = along_depth ? 1 : width, step_width = along_depth ? width : 1;
  const std::int64_t row_groups = rows / row_width, step_groups = tile.depth / step_width;
  const std::int64_t total = row_groups * step_groups, count = (total + threads - 1) / threads;

  std::vector<ComputedRead> readings;
  readings.push_back({.element = values.type(op.source).element,
                      .array = copied.source->text,
                      .begin = copied.begin,
                      .per_step = copied.step_stride,
                      .rows = tile.rows,
                      .together = along_depth ? tile.by_depth : tile.by_row});
  for (std::size_t r = 0; r < op.also.size(); ++r) {
    ComputedRead& made = readings.emplace_back();
    made.element = ScalarType::i64;
    made.begin = copied.also[r], made.per_step = copied.also_strides[r];
    made.rows = tile.also[r].tables[tile.mn];
    if (const std::optional<Value>& array = op.also[r].array) {
      const MemoryBinding& from = *values.type(*array).memory;
      made.element = values.type(*array).element;
      made.array = buffer(from.block, stm_.location).name;
      made.begin = plus(values_.poly(from.layout.offset()), made.begin);
    }
    made.together = along_depth ? number(made.per_step) == 1 : is_one_along(op.also[r].at.strides[tile.row_axis]);
    made.same = along_depth ? number(made.per_step) == 0 : made.rows.empty();
  }
  constexpr std::int64_t kWord = 4;
  std::int64_t words = 0;
  for (const ComputedRead& reading : readings)
    words += ((reading.same ? 1 : width) * byte_size(reading.element) + kWord - 1) / kWord;
  const std::int64_t registers = mainloop_->registers <= kSumsThatAreFew ? kWordsBesideFewSums : kWordsAtOnce;
  const std::int64_t at_once = std::clamp<std::int64_t>(registers / words, 1, count);

  const std::string e = unit_.fresh("e"), k = unit_.fresh("k"), x = unit_.fresh("x"), m = unit_.fresh("m"),
                    q = unit_.fresh("q"), from_thread = unit_.fresh("thread"), made = unit_.fresh("made"),
                    left = unit_.fresh("left"), nth = unit_.fresh("i");
  const ExprPtr row = variable(m), step = variable(q);
  const auto slot = [&](const ExprPtr& ahead) { return mainloop_slot(tile.mn, plus(row, ahead)); };
  const auto is_row = [&](const ExprPtr& ahead) {
    return call("apl_is_row", {kernel::element(tile.rows, slot(ahead))});
  };

  // Group k of those that a thread reads at once: its first row and step, and how many of it are in the source.
  const auto each = [&](KernelBlock body) {
    const ExprPtr inner = number_of(tile.by_depth ? step_groups : row_groups);
    const ExprPtr fast = infix("%", variable(x), inner), slow = infix("/", variable(x), inner);
    KernelBlock located{declare(kInt, m, mul(tile.by_depth ? slow : fast, number_of(row_width))),
                        declare(kInt, q, mul(tile.by_depth ? fast : slow, number_of(step_width)))};
    ExprPtr inside = copied.outer_inside;
    const auto also = [&](const ExprPtr& test) { inside = inside ? infix("&&", inside, test) : test; };
    ExprPtr most = number_of(width);
    if (along_depth) {
      also(is_row(number_of(0)));
      if (copied.left) most = call("apl_index_min", {most, infix("-", copied.left, step)});
    } else if (copied.left) {
      also(infix("<", step, copied.left));
    }
    located.push_back(declare(kInt, left, inside ? select(inside, most, number_of(0)) : most));
    append(located, std::move(body));
    const ExprPtr group = plus(mul(variable(e), number_of(at_once)), variable(k));
    KernelBlock all{declare(kInt, x, plus(variable(from_thread), mul(group, number_of(threads))))};
    if (total % threads == 0 && count % at_once == 0) {
      append(all, std::move(located));
    } else {
      all.push_back(kernel::branch(infix("<", variable(x), number_of(total)), std::move(located)));
    }
    return unrolled(k, at_once, std::move(all));
  };
  // Whether element `ahead` of a group is in the source.
  const auto is_inside = [&](const ExprPtr& ahead) {
    const ExprPtr test = infix("<", ahead, variable(left));
    return along_depth ? test : infix("&&", test, is_row(ahead));
  };
  const auto position = [&](const ComputedRead& reading, const ExprPtr& ahead) {
    const ExprPtr at = plus(reading.begin, mul(along_depth ? plus(step, ahead) : step, reading.per_step));
    if (reading.rows.empty()) return at;
    return plus(at, kernel::element(reading.rows, slot(along_depth ? number_of(0) : ahead)));
  };

  KernelBlock declared{declare(kInt, from_thread, call("apl_anew", {variable(mainloop_->thread)}))}, loads, stores;
  for (ComputedRead& reading : readings) {
    if (reading.array.empty()) continue;
    const std::int64_t elements = reading.same ? 1 : width;
    reading.held = unit_.fresh("held");
    declared.push_back(declare_array({reading.element, false}, reading.held, at_once * elements));
    const ExprPtr first = mul(variable(k), number_of(elements)), zero = literal(Scalar::zero(reading.element));
    const auto load = [&](const ExprPtr& ahead) {
      return assign(kernel::element(reading.held, plus(first, ahead)),
                    select(is_inside(ahead), kernel::element(reading.array, position(reading, ahead)), zero));
    };
    if (elements == 1) {
      // One of a group is for all whose rows are inside.
      const ExprPtr test = infix("<", number_of(0), variable(left));
      const ExprPtr any = along_depth || reading.same ? test : infix("&&", test, is_row(number_of(0)));
      loads.push_back(assign(kernel::element(reading.held, first),
                             select(any, kernel::element(reading.array, position(reading, number_of(0))), zero)));
    } else if (reading.together && along_depth) {
      loads.push_back(
          do_call(fmt::format("apl_load_run<{}>", width), {variable(reading.array), position(reading, number_of(0)),
                                                           variable(left), plus(variable(reading.held), first)}));
    } else if (reading.together) {
      const ExprPtr begin = plus(reading.begin, mul(step, reading.per_step));
      loads.push_back(do_call(fmt::format("apl_load_run_of_rows<{}>", width),
                              {variable(reading.array), begin, variable(reading.rows), slot(number_of(0)),
                               infix("<", number_of(0), variable(left)), plus(variable(reading.held), first)}));
    } else {
      loads.push_back(unrolled(nth, width, {load(variable(nth))}));
    }
  }
  // The map, then the guard: what it makes of an element that is none is dropped.
  const ExprPtr ahead = width == 1 ? number_of(0) : variable(nth);
  KernelBlock map;
  std::vector<ExprPtr> elements;
  for (const ComputedRead& reading : readings) {
    if (reading.array.empty()) {
      elements.push_back(position(reading, ahead));
    } else {
      const ExprPtr first = mul(variable(k), number_of(reading.same ? 1 : width));
      elements.push_back(kernel::element(reading.held, reading.same ? first : plus(first, ahead)));
    }
  }
  const ExprPtr value = inline_lambda(*op.map, elements, map).front();
  const ExprPtr guarded = select(is_inside(ahead), value, values_.operand(op.pad));
  if (width == 1) {
    const ExprPtr to = plus(copied.stage, plus(mul(step, number_of(copied.step_size)), row_in_tile(tile, row, step)));
    map.push_back(assign(kernel::element(copied.target->text, to), guarded));
    append(stores, std::move(map));
  } else {
    map.push_back(assign(kernel::element(made, ahead), guarded));
    stores.push_back(declare_array({tile.element, false}, made, width));
    stores.push_back(unrolled(nth, width, std::move(map)));
    stores.push_back(do_call(fmt::format("apl_store<{}>", width),
                             {copied.target, plus(copied.stage, matrix_position(tile, row, step)), variable(made)}));
  }
  declared.push_back(each(std::move(loads)));
  declared.push_back(each(std::move(stores)));
  return KernelBlock{for_loop(kInt, e, number_of((count + at_once - 1) / at_once), std::move(declared))};
}

}  // namespace apl::lower
