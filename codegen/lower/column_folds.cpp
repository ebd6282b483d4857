// Maps on GPUs that fold along one dim of an array whose neighbours lie along another, such as products of a transposed
// matrix and a vector: of elements of one or two bytes a thread reads those of four neighbouring results at once.
// Threads are as many as before; where rows are not aligned each has one result, else the first quarter of them have
// all.
//
//   if (m % 4 == 0 && apl_aligned<8>(A)) {
//     if (thread < n * m / 4) {
//       for (from < rows - 7; 8 at once) {
//         for (row < 8) { apl_load<4>(A, (from + row) * m + first, A_r + row * 4); x_r[row] = x(from + row); }
//         for (row < 8) for (next < 4) r_folded[next] += A_r[row * 4 + next] * x_r[row];
//       }
//       the rows that are left
//       apl_store<4>(r, first, r_folded);
//     }
//   } else if (thread < n * m) {
//     one result
//   }
//
// One element of two bytes a thread is half of what a load can have at no cost: such folds took 1.5 times as long as
// those of floats, with half the bytes (32768 x 32768 on an H200). Elements of four bytes gain nothing.
#include "codegen/lower/column_folds.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/lower/map_windows.h"
#include "ir/layouts.h"
#include "ir/walk.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

namespace {

constexpr std::int64_t kNeighbours = 4, kFewBytes = 2, kRowsAtOnce = 8, kResident = 4;

Stmt for_neighbours(const std::string& next, KernelBlock each) {
  Stmt loop = for_loop(kInt, next, number_of(kNeighbours), std::move(each));
  loop.unroll = true;
  return loop;
}

}  // namespace

ColumnFolds::ColumnFolds(Kernel& kernel, const SegOp& op) : KernelPart(kernel), op_(op) {
  const ValueTable& table = unit_.function.values;
  if (op.space.empty() || stm_.pattern.empty() || apl::can_fail(*op.body, table)) return;
  const SegDim& last = op.space.back();
  if (const auto known = last.bound.constant(); known && *known % kNeighbours != 0) return;
  const auto is_number = [&](Value v) {
    const Type& type = table.type(v);
    return type.element != ScalarType::unit && type.rank() == op.space.size();
  };
  if (!std::ranges::all_of(stm_.pattern, is_number)) return;
  for (const Stm& stm : op.body->stms) {
    const Screma* fold = get_if<Screma>(stm);
    if (fold == nullptr ? !is_scalar_code(stm, table) : fold_ != nullptr || !is_scalar_fold(*fold, table)) return;
    if (fold != nullptr) fold_ = &stm;
    // What comes before the fold is one for all neighbours; views of arrays are what moves along them.
    if (fold_ == nullptr && table.type(stm.pattern.front()).is_scalar() &&
        free_values(stm.op, table).contains(last.index))
      return;
  }
  if (fold_ == nullptr) return;
  const Screma& fold = std::get<Screma>(fold_->op);
  bool alike = fold.widths.size() == 1 && !fold.widths.front().mentions(last.index);
  for (const ReduceOp& reduce : fold.reduces)
    for (const Operand& start : reduce.neutral)
      alike = alike && (!start.is_value() || outside_.contains(start.value()));
  if (!alike) return;
  for (std::size_t k = 0; k < fold.inputs.size(); ++k)
    add_read(fold.map.params[k], fold.inputs[k], {DimIndex::fix(Poly(fold.indices.front()))}, fold_->location);
  for (const Stm& stm : fold.map.body->stms)
    if (const Index* index = get_if<Index>(stm)) add_read(stm.pattern.front(), index->array, index->dims, stm.location);
}

// What must be a multiple for positions to be of neighbours that begin at one; nullopt: they are no neighbours.
std::optional<Poly> ColumnFolds::row_of(const Poly& position) const {
  const Value last = op_.space.back().index;
  Poly row = position - Poly(last);
  if (row.mentions(last)) return std::nullopt;
  return row;
}

Poly ColumnFolds::result_position(Value result) const {
  std::vector<DimIndex> dims;
  for (const SegDim& dim : op_.space) dims.push_back(DimIndex::fix(Poly(dim.index)));
  return index_layout(unit_.function.type(result).memory->layout, dims).offset();
}

void ColumnFolds::add_read(Value element, Value array, const std::vector<DimIndex>& dims, Location location) {
  const Type& type = unit_.function.type(element);
  const Type& source = unit_.function.type(array);
  if (!type.is_scalar() || type.element == ScalarType::unit || !source.memory) return;
  const Poly position = index_layout(source.memory->layout, dims).offset();
  const bool wide = byte_size(type.element) <= kFewBytes && row_of(position);
  if (!wide && position.mentions(op_.space.back().index)) return;
  const Screma& fold = std::get<Screma>(fold_->op);
  // What the fold's function computes is not known where rows are read.
  bool is_known = true;
  position.for_each_symbol([&](Value v) {
    is_known = is_known && (v == fold.indices.front() || outside_.contains(v) ||
                            std::ranges::find(op_.space, v, &SegDim::index) != op_.space.end());
  });
  if (!is_known) return;
  const Kernel::Buffer& from = buffer(source.memory->block, location);
  if (from.kind != BufferKind::global_in) return;
  reads_.push_back({element, position, from.name, wide ? kNeighbours : 1});
}

bool ColumnFolds::have_neighbours() const {
  return std::ranges::any_of(reads_, [](const Read& read) { return read.count > 1; });
}

bool ColumnFolds::is_read(Value element) const {
  return std::ranges::find(reads_, element, &Read::element) != reads_.end();
}

void ColumnFolds::run() {
  // Left alone, ptxas gives such a kernel 32 registers, and has one or two loads under way.
  if (unit_.dialect().bounds_have_blocks) function_.resident = kResident;
  KernelBlock& out = function_.body;
  std::vector<std::string> names;
  std::vector<ExprPtr> sizes;
  ExprPtr total = number_of(1);
  for (const SegDim& dim : op_.space) {
    names.push_back(unit_.name(dim.index));
    sizes.push_back(values_.poly(dim.bound));
    total = mul(total, sizes.back());
  }
  const std::string thread = unit_.fresh("thread");
  const ExprPtr block_start = infix("*", call("apl_block", {}), number_of(threads_));
  out.push_back(declare(kIndex, thread, infix("+", block_start, call("apl_thread", {}))));
  ExprPtr wide;
  const auto also = [&](const ExprPtr& test) { wide = wide ? infix("&&", wide, test) : test; };
  std::vector<Poly> rows{op_.space.back().bound};
  for (const Read& read : reads_) {
    if (read.count == 1) continue;
    const std::int64_t bytes = kNeighbours * byte_size(unit_.function.type(read.element).element);
    also(call(fmt::format("apl_aligned<{}>", bytes), {variable(read.source)}));
    rows.push_back(*row_of(read.position));
  }
  // Results that are neighbours, too, are written at once.
  for (const Value result : stm_.pattern) {
    const std::optional<Poly> row = row_of(result_position(result));
    if (!row) continue;
    const Type& type = unit_.function.type(result);
    const std::int64_t bytes = std::min<std::int64_t>(kBytesOfAccess, kNeighbours * byte_size(type.element));
    also(call(fmt::format("apl_aligned<{}>", bytes), {variable(buffer(type.memory->block, stm_.location).name)}));
    rows.push_back(*row);
  }
  if (const ExprPtr aligned_rows = aligned(rows, kNeighbours)) also(aligned_rows);
  KernelBlock quarter{
      kernel::branch(infix("<", variable(thread), infix("/", total, number_of(kNeighbours))), at_once(thread, sizes))};
  KernelBlock one;
  const std::vector<ExprPtr> at = unflatten(thread, sizes, names, kIndex, one);
  for (std::size_t k = 0; k < at.size(); ++k) values_.scalars[op_.space[k].index] = at[k];
  body(*op_.body, one);
  for (std::size_t k = 0; k < stm_.pattern.size(); ++k)
    store(stm_.pattern[k], at, op_.body->results[k], stm_.location, one);
  out.push_back(
      kernel::branch(wide, std::move(quarter), {kernel::branch(infix("<", variable(thread), total), std::move(one))}));
}

KernelBlock ColumnFolds::at_once(const std::string& thread, const std::vector<ExprPtr>& sizes) {
  const ValueTable& table = unit_.function.values;
  const Screma& fold_op = std::get<Screma>(fold_->op);
  const Value last = op_.space.back().index;
  const std::string next = unit_.fresh("next"), first = unit_.fresh("first");
  std::vector<std::string> names;
  std::vector<ExprPtr> fewer = sizes;
  fewer.back() = infix("/", sizes.back(), number_of(kNeighbours));
  for (const SegDim& dim : op_.space) names.push_back(unit_.fresh(unit_.name(dim.index)));
  KernelBlock out, starts, results;
  std::vector<ExprPtr> at = unflatten(thread, fewer, names, kIndex, out);
  out.push_back(declare(kIndex, first, infix("*", at.back(), number_of(kNeighbours))));
  const ExprPtr own = plus(variable(first), variable(next));
  at.back() = own;
  for (std::size_t k = 0; k < at.size(); ++k) values_.scalars[op_.space[k].index] = at[k];
  const auto behind = std::ranges::find_if(op_.body->stms, [&](const Stm& stm) { return &stm == fold_; });
  values_.scalars[last] = variable(first);
  for (auto stm = op_.body->stms.begin(); stm != behind; ++stm) statement(*stm, out);
  values_.scalars[last] = own;
  std::vector<std::string> folded;
  for (const Value accumulator : fold_->pattern) {
    const CType type{table.type(accumulator).element, false};
    folded.push_back(unit_.fresh(table.name(accumulator) + "_folded"));
    out.push_back(declare_array(type, folded.back(), kNeighbours));
    results.push_back(declare(type, unit_.name(accumulator), element(folded.back(), variable(next))));
  }
  std::size_t number = 0;
  for (const ReduceOp& reduce : fold_op.reduces)
    for (const Operand& neutral : reduce.neutral)
      starts.push_back(assign(element(folded[number++], variable(next)), values_.operand(neutral)));
  out.push_back(for_neighbours(next, std::move(starts)));
  // All of some rows are read before the first is folded.
  const std::string from = unit_.fresh("from"), bound = unit_.fresh("bound");
  out.push_back(declare(kIndex, bound, values_.poly(fold_op.widths.front())));
  const ExprPtr rows = number_of(kRowsAtOnce);
  Stmt many = for_loop(kIndex, from, infix("-", variable(bound), number_of(kRowsAtOnce - 1)),
                       fold_rows(from, kRowsAtOnce, first, next, folded));
  many.step = rows;
  out.push_back(std::move(many));
  Stmt left = for_loop(kIndex, from, variable(bound), fold_rows(from, 1, first, next, folded));
  left.from = infix("-", variable(bound), infix("%", variable(bound), rows));
  left.unroll = true;
  left.unroll_by = kRowsAtOnce / 2;
  out.push_back(std::move(left));
  for (auto stm = behind + 1; stm != op_.body->stms.end(); ++stm) statement(*stm, results);
  KernelBlock stores;
  for (std::size_t k = 0; k < stm_.pattern.size(); ++k) {
    const Type& type = table.type(stm_.pattern[k]);
    const Poly position = result_position(stm_.pattern[k]);
    if (!row_of(position)) {
      store(stm_.pattern[k], at, op_.body->results[k], stm_.location, results);
      continue;
    }
    const std::string made = unit_.fresh(table.name(stm_.pattern[k]) + "_r");
    out.push_back(declare_array({type.element, false}, made, kNeighbours));
    results.push_back(assign(element(made, variable(next)), values_.operand(op_.body->results[k])));
    values_.scalars[last] = variable(first);
    const ExprPtr start = values_.poly(position);
    values_.scalars[last] = own;
    const std::int64_t width = std::min(kNeighbours, kBytesOfAccess / byte_size(type.element));
    for (std::int64_t from = 0; from < kNeighbours; from += width)
      stores.push_back(do_call(fmt::format("apl_store<{}>", width),
                               {variable(buffer(type.memory->block, stm_.location).name), plus(start, number_of(from)),
                                from == 0 ? variable(made) : infix("+", variable(made), number_of(from))}));
  }
  out.push_back(for_neighbours(next, std::move(results)));
  out.insert(out.end(), stores.begin(), stores.end());
  return out;
}

// `count` rows from number `from` of them on.
KernelBlock ColumnFolds::fold_rows(const std::string& from, std::int64_t count, const std::string& first,
                                   const std::string& next, const std::vector<std::string>& folded) {
  const ValueTable& table = unit_.function.values;
  const Screma& fold_op = std::get<Screma>(fold_->op);
  const Value index = fold_op.indices.front(), last = op_.space.back().index;
  const std::string row = unit_.fresh("row");
  const ExprPtr own = values_.scalars.at(last);
  const Stmt here = declare(kIndex, unit_.name(index), plus(variable(from), variable(row)));
  const auto for_rows = [&](KernelBlock body) {
    Stmt loop = for_loop(kInt, row, number_of(count), std::move(body));
    loop.unroll = true;
    return loop;
  };
  KernelBlock out, load{here}, each, ends;
  std::map<Value, ExprPtr> held;
  values_.scalars[last] = variable(first);
  for (const Read& read : reads_) {
    const std::string array = unit_.fresh(table.name(read.element) + "_r");
    const ExprPtr position = values_.poly(read.position);
    out.push_back(declare_array({table.type(read.element).element, false}, array, count * read.count));
    if (read.count == 1) {
      load.push_back(assign(element(array, variable(row)), element(read.source, position)));
      held[read.element] = element(array, variable(row));
    } else {
      const ExprPtr at = mul(variable(row), number_of(kNeighbours));
      load.push_back(do_call(fmt::format("apl_load<{}>", kNeighbours),
                             {variable(read.source), position, infix("+", variable(array), at)}));
      held[read.element] = element(array, plus(at, variable(next)));
    }
  }
  values_.scalars[last] = own;
  const auto declare_read = [&](Value v) {
    each.push_back(declare({table.type(v).element, false}, unit_.name(v), held.at(v)));
  };
  std::vector<Value> inputs, params;
  for (std::size_t k = 0; k < fold_op.inputs.size(); ++k) {
    if (is_read(fold_op.map.params[k])) {
      declare_read(fold_op.map.params[k]);
    } else {
      inputs.push_back(fold_op.inputs[k]), params.push_back(fold_op.map.params[k]);
    }
  }
  stream(inputs, params, fold_op.indices, fold_->location, each);
  for (const Stm& stm : fold_op.map.body->stms) {
    if (is_read(stm.pattern.front()))
      declare_read(stm.pattern.front());
    else
      statement(stm, each);
  }
  std::size_t number = 0;
  for (const ReduceOp& reduce : fold_op.reduces) {
    std::vector<Value> accumulators;
    std::vector<Operand> elements;
    for (std::size_t k = 0; k < reduce.neutral.size(); ++k, ++number) {
      const Value accumulator = fold_->pattern[number];
      const ExprPtr mine = element(folded[number], variable(next));
      each.push_back(declare({table.type(accumulator).element, false}, unit_.name(accumulator), mine, false));
      ends.push_back(assign(mine, variable(unit_.name(accumulator))));
      accumulators.push_back(accumulator);
      elements.push_back(fold_op.map.body->results[number]);
    }
    fold(reduce, accumulators, elements, fold_->location, each);
  }
  each.insert(each.end(), ends.begin(), ends.end());
  out.push_back(for_rows(std::move(load)));
  out.push_back(for_rows({here, for_neighbours(next, std::move(each))}));
  return out;
}

}  // namespace apl::lower
