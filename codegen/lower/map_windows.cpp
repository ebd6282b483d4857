// Maps on GPUs that fold windows, such as convolutions: a thread takes four results one below the other, so that rows
// which their windows share, and what the windows are weighted by, are read once for all of them.
//
//   const int64_t stacks = (n / 4) * m;
//   if (thread < stacks) {
//     const int64_t i_first = thread / m * 4, j = thread % m;
//     for (next < 4) { r_r[next] = the fold at i_first + next, j; }    // all unrolled: of equal reads one is left
//     for (next < 4) ys(i_first + next, j) = r_r[next];
//   } else {
//     what is left below whole stacks, one by one
//   }
//
// A thread's loads are what such a kernel waits for: of seven by seven floats it has 30 for a result instead of 98.
// Rows are read as before, neighbours by neighbours. Of a window whose size is known only when the program runs, or
// that is large, all four are folded in one nest of loops, so that they share what does not move with the row, indices
// and loops:
//
//     for (a < k) for (b < k)
//       for (next < 4) r_folded[next] = op(r_folded[next], the element a, b of the window at i_first + next, j);
//
// Fires where the reads of a fold move on along the second last dim as they do along the window, and all else is scalar
// code that cannot fail.
#include "codegen/lower/map_windows.h"

#include <algorithm>
#include <optional>

#include "ir/layouts.h"
#include "ir/walk.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

namespace {

constexpr std::int64_t kStack = 4;
// Elements of a window, and statements of a fold's function.
constexpr std::int64_t kMostWindow = 64;
constexpr std::size_t kMostWindowStatements = 8;

// Whether all of its elements are known, and few enough to be unrolled.
bool is_small(const Screma& fold) {
  std::int64_t elements = 1;
  for (const Poly& width : fold.widths) {
    const std::optional<std::int64_t> known = width.constant();
    if (!known || *known > kMostWindow) return false;
    elements *= *known;
  }
  return elements <= kMostWindow;
}

}  // namespace

bool is_scalar_fold(const Screma& fold, const ValueTable& values) {
  if (fold.reduces.empty() || fold.scans() || fold.map.body->stms.size() > kMostWindowStatements) return false;
  const auto plain = [&](const Stm& stm) { return is_scalar_code(stm, values); };
  return fold.map.body->results.size() == fold.reduced_count() && std::ranges::all_of(fold.map.body->stms, plain) &&
         std::ranges::all_of(fold.reduces, [&](const ReduceOp& reduce) {
           return std::ranges::all_of(reduce.op.params, [&](Value v) { return values.type(v).is_scalar(); }) &&
                  std::ranges::all_of(reduce.op.body->stms, plain);
         });
}

MapWindows::MapWindows(Kernel& kernel, const SegOp& op) : KernelPart(kernel), op_(op) {
  const ValueTable& table = unit_.function.values;
  if (op.space.size() < 2 || apl::can_fail(*op.body, table)) return;
  if (const auto rows = op.space[op.space.size() - 2].bound.constant(); rows && *rows < kStack) return;
  bool reads = false, all_small = true, starts_outside = true;
  const auto is_outside = [&](const Operand& x) { return !x.is_value() || outside_.contains(x.value()); };
  std::size_t folds = 0;
  for (const Stm& stm : op.body->stms) {
    const Screma* fold = get_if<Screma>(stm);
    if (fold == nullptr ? !is_scalar_code(stm, table) : !is_scalar_fold(*fold, table)) return;
    if (fold == nullptr) continue;
    reads = reads || reads_window(*fold);
    all_small = all_small && is_small(*fold);
    if (folds++ == 0) fold_ = &stm;
    for (const ReduceOp& reduce : fold->reduces)
      for (const Operand& start : reduce.neutral) starts_outside = starts_outside && is_outside(start);
  }
  if (all_small) {
    fold_ = nullptr;
  } else if (folds != 1 || !starts_outside || !goes_as_far(std::get<Screma>(fold_->op))) {
    return;
  }
  const auto is_number = [&](Value v) {
    const Type& type = table.type(v);
    return type.element != ScalarType::unit && type.rank() == op.space.size();
  };
  overlap_ = reads && std::ranges::all_of(stm_.pattern, is_number);
}

// Whether the fold has as many elements in each thread.
bool MapWindows::goes_as_far(const Screma& fold) const {
  bool known = true;
  for (const Poly& width : fold.widths) width.for_each_symbol([&](Value v) { known = known && outside_.contains(v); });
  return known;
}

// Whether a read of the fold moves on along the second last dim as along the window.
bool MapWindows::reads_window(const Screma& fold) const {
  const Value row = op_.space[op_.space.size() - 2].index;
  return std::ranges::any_of(fold.map.body->stms, [&](const Stm& stm) {
    const Index* index = get_if<Index>(stm);
    if (index == nullptr || !outside_.contains(index->array)) return false;
    const Type& source = unit_.function.type(index->array);
    if (!source.memory) return false;
    const Poly position = index_layout(source.memory->layout, index->dims).offset();
    const auto along = position.linear_in(row);
    return along && !along->coefficient.is_zero() && std::ranges::any_of(fold.indices, [&](Value k) {
             const auto moves = position.linear_in(k);
             return moves && moves->coefficient == along->coefficient;
           });
  });
}

// The result at these indices, on its own.
void MapWindows::one(const std::vector<ExprPtr>& indices, Block& out) {
  for (std::size_t k = 0; k < indices.size(); ++k) values_.scalars[op_.space[k].index] = indices[k];
  body(*op_.body, out);
  for (std::size_t k = 0; k < stm_.pattern.size(); ++k)
    store(stm_.pattern[k], indices, op_.body->results[k], stm_.location, out);
}

// The fold of all four in one nest of loops, then what each of them makes of it.
void MapWindows::fold_together(const std::string& next, Block& out, Block& results) {
  const Screma& fold_op = std::get<Screma>(fold_->op);
  const Location location = fold_->location;
  const ValueTable& table = unit_.function.values;
  const auto for_all = [&](Block each) {
    Stmt loop = for_loop(kInt, next, number_of(kStack), std::move(each));
    loop.unroll = true;
    return loop;
  };
  Block starts, one, ends;
  for (const Stm& stm : op_.body->stms) {
    if (&stm == fold_) break;
    statement(stm, one);
    statement(stm, results);
  }
  stream(fold_op.inputs, fold_op.map.params, fold_op.indices, location, one);
  body(*fold_op.map.body, one);
  std::size_t first = 0;
  for (const ReduceOp& reduce : fold_op.reduces) {
    std::vector<Value> accumulators;
    std::vector<Operand> elements;
    for (std::size_t k = 0; k < reduce.neutral.size(); ++k, ++first) {
      const Value accumulator = fold_->pattern[first];
      const CType type{table.type(accumulator).element, false};
      const std::string array = unit_.fresh(table.name(accumulator) + "_folded");
      const ExprPtr own = element(array, variable(next));
      out.push_back(declare_array(type, array, kStack));
      starts.push_back(assign(own, values_.operand(reduce.neutral[k])));
      one.push_back(declare(type, unit_.name(accumulator), own, false));
      results.push_back(declare(type, unit_.name(accumulator), own));
      ends.push_back(assign(own, variable(unit_.name(accumulator))));
      accumulators.push_back(accumulator);
      elements.push_back(fold_op.map.body->results[first]);
    }
    fold(reduce, accumulators, elements, location, one);
  }
  one.insert(one.end(), ends.begin(), ends.end());
  out.push_back(for_all(std::move(starts)));
  around_loops(fold_op.indices, fold_op.widths, {for_all(std::move(one))}, out);
  bool is_behind = false;
  for (const Stm& stm : op_.body->stms) {
    if (is_behind) statement(stm, results);
    is_behind = is_behind || &stm == fold_;
  }
}

void MapWindows::run() {
  KernelBlock& out = function_.body;
  const std::size_t row = op_.space.size() - 2;
  std::vector<std::string> names, names_below;
  std::vector<ExprPtr> sizes, stacked, left;
  for (const SegDim& dim : op_.space) {
    names.push_back(unit_.name(dim.index));
    names_below.push_back(unit_.fresh(names.back()));
    sizes.push_back(values_.poly(dim.bound));
  }
  const ExprPtr stack = number_of(kStack);
  stacked = left = sizes;
  stacked[row] = infix("/", sizes[row], stack);
  left[row] = infix("%", sizes[row], stack);
  const auto all_of = [](const std::vector<ExprPtr>& factors) {
    ExprPtr total = number_of(1);
    for (const ExprPtr& size : factors) total = mul(total, size);
    return total;
  };
  const std::string thread = unit_.fresh("thread"), stacks = unit_.fresh("stacks"), first = unit_.fresh("first"),
                    next = unit_.fresh("next"), other = unit_.fresh("element"), below = unit_.fresh("below"),
                    others = unit_.fresh("others");
  const ExprPtr block_start = infix("*", call("apl_block", {}), number_of(threads_));
  out.push_back(declare(kIndex, thread, infix("+", block_start, call("apl_thread", {}))));
  out.push_back(declare(kIndex, stacks, all_of(stacked)));
  // Four results, each a row further on.
  KernelBlock whole, results, stores;
  std::vector<std::string> stack_names = names, made;
  stack_names[row] = unit_.fresh(names[row] + "_stack");
  std::vector<ExprPtr> at = unflatten(thread, stacked, stack_names, kIndex, whole);
  whole.push_back(declare(kIndex, first, infix("*", at[row], stack)));
  at[row] = plus(variable(first), variable(next));
  for (std::size_t k = 0; k < at.size(); ++k) values_.scalars[op_.space[k].index] = at[k];
  if (fold_ != nullptr) {
    fold_together(next, whole, results);
  } else {
    body(*op_.body, results);
  }
  for (std::size_t k = 0; k < stm_.pattern.size(); ++k) {
    const CType type{unit_.function.type(stm_.pattern[k]).element, false};
    made.push_back(unit_.fresh(unit_.function.values.name(stm_.pattern[k]) + "_r"));
    whole.push_back(declare_array(type, made[k], kStack));
    results.push_back(assign(element(made[k], variable(next)), values_.operand(op_.body->results[k])));
    stores.push_back(assign(element_of(stm_.pattern[k], at, stm_.location), element(made[k], variable(next))));
  }
  for (KernelBlock* each : {&results, &stores}) {
    Stmt loop = for_loop(kInt, next, stack, std::move(*each));
    loop.unroll = true;
    whole.push_back(std::move(loop));
  }
  // Of the rest a thread has four at most, too: so many threads are left.
  KernelBlock rest, single;
  rest.push_back(declare(kIndex, others, all_of(left)));
  const ExprPtr threads_left = infix("/", infix("+", variable(others), number_of(kStack - 1)), stack);
  rest.push_back(declare(kIndex, below, threads_left));
  const ExprPtr own = infix("-", variable(thread), variable(stacks));
  single.push_back(declare(kIndex, other, infix("+", own, infix("*", variable(next), variable(below)))));
  KernelBlock inside;
  std::vector<ExprPtr> at_below = unflatten(other, left, names_below, kIndex, inside);
  at_below[row] = plus(infix("-", sizes[row], left[row]), at_below[row]);
  one(at_below, inside);
  const ExprPtr is_own = infix("&&", infix("<", own, variable(below)), infix("<", variable(other), variable(others)));
  single.push_back(kernel::branch(is_own, std::move(inside)));
  rest.push_back(for_loop(kInt, next, stack, std::move(single)));
  out.push_back(kernel::branch(infix("<", variable(thread), variable(stacks)), std::move(whole), std::move(rest)));
  function_.indices = kStack;
}

}  // namespace apl::lower
