// Kernels whose teams hold the rows that they work on (ir/team.h), on GPUs: each element of a row belongs to one
// thread, which has it in a register from the operation that makes or first reads it to the end.
//
//   float x_r[16];                                              // of the row x
//   for (round < 16) x_r[round] = at < n ? x(i * n + at) : 0;
//   float m = -inf;
//   for (round < 16) m = at < n ? max(m, x_r[round]) : m;
//   m = what the team's threads have together;                  // by shuffles and shared memory (team.cpp)
//   float y_r[16];
//   for (round < 16) y_r[round] = exp(x_r[round] - m);
//   for (round < 16) if (at < n) y(i * n + at) = y_r[round];
//
// The threads have elements in turn (at = lane + round * team), or, where no operation asks for an order and rows are
// multiples of them, four neighbours in turn, which are read and written at once where the arrays are aligned.
//
// All rounds' loops are unrolled, in groups that are left out where the row ends before them, and code that cannot do
// harm is done beyond the row's end, too, so that no round has a branch. Operators that do not commute, and scans, go
// through rounds in order: each warp scans its elements of a round, and what a warp has is folded behind the warps
// before it and the rounds before. The host has seen that a row has no more elements than its team holds.
#include "codegen/lower/team.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/layouts.h"
#include "ir/team.h"
#include "ir/walk.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

namespace {

// Rounds between which no branch stands.
constexpr std::int64_t kRowGroup = kNeighboursAtOnce;
static_assert(kRowElements % kRowGroup == 0);

// Whether the code may run for an element that is not there: it reads nothing by index and divides no integers.
bool is_harmless(const Body& body, const ValueTable& values) {
  bool harmless = true;
  for_each_stm(body, [&](const Stm& stm) {
    const Binary* binary = get_if<Binary>(stm);
    const bool divides = binary != nullptr && !is_float(values.type(binary->x).element) &&
                         (division_of(binary->op) || binary->op == BinaryOp::pow);
    harmless = harmless && !divides && !get_if<Index>(stm) && !get_if<If>(stm);
  });
  return harmless;
}

}  // namespace

// Whether no operator of the rows' needs its elements in order.
bool Team::keeps_no_order(const SegOp& op) const {
  return std::ranges::all_of(op.body->stms, [](const Stm& stm) {
    const Screma* screma = get_if<Screma>(stm);
    return screma == nullptr || std::ranges::all_of(screma->reduces, [](const ReduceOp& reduce) {
             Screma alone;
             alone.reduces = {reduce};
             return !reduce.scan && folds_in_any_order(alone);
           });
  });
}

// The loop over the groups of a thread's elements. Those that no thread of the team has are left out, so that short
// rows do not pay for long ones.
kernel::Stmt Team::for_groups(const std::string& group, KernelBlock body) {
  const ExprPtr begin = infix("<<", infix("*", variable(group), number_of(kRowGroup)), variable(team_.shift));
  Stmt loop = for_loop(kInt, group, number_of(kRowElements / kRowGroup),
                       {kernel::branch(infix("<", begin, variable(team_.width)), std::move(body))});
  loop.unroll = true;
  return loop;
}

// The loop over the elements of a group; `body` sees which one by `round`, and its index in the row by `at`, if that is
// not empty.
kernel::Stmt Team::each_of_group(const std::string& group, const std::string& round, const std::string& at,
                                 KernelBlock body) {
  const std::string next = unit_.fresh("next");
  const ExprPtr first = infix("*", variable(group), number_of(kRowGroup)), lane = variable(team_.lane);
  KernelBlock all{declare(kInt, round, infix("+", first, variable(next)))};
  if (!at.empty() && team_.each.empty()) {
    all.push_back(declare(kIndex, at, infix("+", lane, infix("<<", variable(round), variable(team_.shift)))));
  } else if (!at.empty()) {
    const ExprPtr own = infix("+", infix("<<", first, variable(team_.shift)), infix("*", lane, variable(team_.each)));
    all.push_back(declare(kIndex, at, infix("+", own, infix("*", variable(next), variable(team_.apart)))));
  }
  std::ranges::move(body, std::back_inserter(all));
  Stmt loop = for_loop(kInt, next, number_of(kRowGroup), std::move(all));
  loop.unroll = true;
  return loop;
}

// The loop over a thread's elements.
kernel::Stmt Team::for_rounds(const std::string& round, KernelBlock body) {
  const std::string group = unit_.fresh("group");
  return for_groups(group, {each_of_group(group, round, "", std::move(body))});
}

// The same; `body` sees the element's index in the row, too.
kernel::Stmt Team::for_elements_of_row(const std::string& round, const std::string& at, KernelBlock body) {
  const std::string group = unit_.fresh("group");
  return for_groups(group, {each_of_group(group, round, at, std::move(body))});
}

// The row of an array at `indices`, of which the last is 0, and in `can` whether all rows so far can be accessed by
// neighbours; nullopt if this one never can.
std::optional<Team::Neighbours> Team::neighbours_in(Value row, const std::vector<DimIndex>& indices,
                                                    const std::string& held, Location location, ExprPtr& can) {
  const Type& type = unit_.function.type(row);
  const Lmad& layout = type.memory->layout;
  const Kernel::Buffer& array = buffer(type.memory->block, location);
  const bool is_global = array.kind == BufferKind::global_in || array.kind == BufferKind::global_out;
  if (team_.each.empty() || !is_global || layout.dims().back().stride != Poly(1)) return std::nullopt;
  const Poly rest = index_layout(layout, indices).offset();
  const std::int64_t bytes = std::min(kBytesOfAccess, kRowGroup * byte_size(type.element));
  can = infix("&&", can, call(fmt::format("apl_aligned<{}>", bytes), {variable(array.name)}));
  if (const ExprPtr offset = aligned({rest}, kRowGroup)) can = infix("&&", can, offset);
  return Neighbours{array.name, held, rest};
}

// Reads or writes rows in groups, by `access` where `can` holds, else by `others`, which see an element as `round` and
// `at`. Elements beyond the row's end are `beyond`.
void Team::in_vectors(const std::string& access, const std::vector<Neighbours>& rows, const ExprPtr& can,
                      const std::string& round, const std::string& at, KernelBlock others, KernelBlock beyond,
                      KernelBlock& out) {
  const std::string wide = unit_.fresh("wide"), group = unit_.fresh("group"), first = unit_.fresh("first");
  const ExprPtr own = infix("*", variable(group), number_of(kRowGroup));
  KernelBlock at_once{declare(
      kIndex, first,
      infix("+", infix("<<", own, variable(team_.shift)), infix("*", variable(team_.lane), number_of(kRowGroup))))};
  KernelBlock inside;
  for (const Neighbours& row : rows)
    inside.push_back(do_call(fmt::format("{}<{}>", access, kRowGroup),
                             {variable(row.array), infix("+", values_.poly(row.rest), variable(first)),
                              infix("+", variable(row.held), own)}));
  if (!beyond.empty()) beyond = {each_of_group(group, round, "", std::move(beyond))};
  at_once.push_back(
      kernel::branch(infix("<", variable(first), variable(team_.width)), std::move(inside), std::move(beyond)));
  out.push_back(declare({ScalarType::boolean, false}, wide, can));
  Stmt one_by_one = each_of_group(group, round, at, std::move(others));
  out.push_back(for_groups(group, {kernel::branch(variable(wide), std::move(at_once), {std::move(one_by_one)})}));
}

// Registers for a row.
std::string Team::hold_row(Value row, const std::string& hint, KernelBlock& out) {
  const std::string name = unit_.fresh(hint);
  out.push_back(declare_array({unit_.function.type(row).element, false}, name, kRowElements));
  rows_.insert_or_assign(row, name);
  return name;
}

// Rows that are read for the first time.
void Team::read_rows(const Screma& op, const Stm& stm, KernelBlock& out) {
  const ValueTable& table = unit_.function.values;
  const std::string round = unit_.fresh("round"), at = unit_.name(op.indices.front());
  KernelBlock inside, zeros;
  std::vector<Neighbours> rows;
  ExprPtr can = infix("!=", variable(team_.each), number_of(1));
  for (std::size_t k = 0; k < op.inputs.size(); ++k) {
    const Value row = op.inputs[k], param = op.map.params[k];
    const ScalarType type = table.type(param).element;
    if (type == ScalarType::unit || rows_.contains(row)) continue;
    const std::string name = hold_row(row, table.name(param) + "_r", out);
    if (const auto found = neighbours_in(row, {DimIndex::fix(Poly(0))}, name, stm.location, can))
      rows.push_back(*found);
    zeros.push_back(assign(element(name, variable(round)), values_.constant(Scalar::zero(type))));
    inside.push_back(assign(element(name, variable(round)), element_of(row, {variable(at)}, stm.location)));
  }
  if (inside.empty()) return;
  const bool all = rows.size() == inside.size();
  KernelBlock each = zeros;
  each.push_back(kernel::branch(infix("<", variable(at), variable(team_.width)), std::move(inside)));
  if (all) return in_vectors("apl_load", rows, can, round, at, std::move(each), std::move(zeros), out);
  out.push_back(for_elements_of_row(round, at, std::move(each)));
}

void Team::share_row(const Screma& op, const Stm& stm, KernelBlock& out) {
  const ValueTable& table = unit_.function.values;
  read_rows(op, stm, out);
  const std::string round = unit_.fresh("round"), at = unit_.name(op.indices.front());
  const ExprPtr inside = infix("<", variable(at), variable(team_.width));
  KernelBlock each, made;
  for (std::size_t k = 0; k < op.inputs.size(); ++k) {
    const Type& type = table.type(op.map.params[k]);
    if (type.element == ScalarType::unit) continue;
    each.push_back(
        declare({type.element, false}, unit_.name(op.map.params[k]), element(rows_.at(op.inputs[k]), variable(round))));
  }
  body(*op.map.body, made);
  // What operators fold in any order is folded by each thread; what needs the order is kept.
  Screma free;
  std::vector<Value> accumulators;
  std::map<Value, ExprPtr> taken;
  struct Ordered {
    Screma op;
    std::vector<Value> accumulators, results;
    std::vector<std::string> elements;
  };
  std::vector<Ordered> ordered;
  std::size_t next = 0;
  KernelBlock beyond;
  const auto keep = [&](const std::string& row, const Operand& result, const Operand& otherwise) {
    const ExprPtr target = element(row, variable(round));
    made.push_back(assign(target, values_.operand(result)));
    beyond.push_back(assign(target, values_.operand(otherwise)));
  };
  for (const ReduceOp& reduce : op.reduces) {
    Screma alone;
    alone.reduces = {reduce};
    const bool any_order = !reduce.scan && folds_in_any_order(alone);
    Ordered in_order{alone, {}, {}, {}};
    for (std::size_t k = 0; k < reduce.neutral.size(); ++k, ++next) {
      const Value result = stm.pattern[next];
      const CType type{table.type(reduce.op.params[k]).element, false};
      if (any_order) {
        accumulators.push_back(result);
        out.push_back(declare(type, unit_.name(result), values_.operand(reduce.neutral[k]), false));
        taken[result] = values_.operand(op.map.body->results[next]);
        continue;
      }
      in_order.accumulators.push_back(reduce.op.params[k]);
      in_order.results.push_back(result);
      const std::string& hint = table.name(result);
      if (reduce.scan) {
        in_order.elements.push_back(hold_row(result, hint + "_r", out));
      } else {
        in_order.elements.push_back(unit_.fresh(hint + "_r"));
        out.push_back(declare_array(type, in_order.elements.back(), kRowElements));
      }
      keep(in_order.elements.back(), op.map.body->results[next], reduce.neutral[k]);
    }
    if (any_order) {
      free.reduces.push_back(reduce);
    } else {
      ordered.push_back(std::move(in_order));
    }
  }
  for (; next < stm.pattern.size(); ++next) {
    const Operand& result = op.map.body->results[next];
    keep(hold_row(stm.pattern[next], table.name(stm.pattern[next]) + "_r", out), result,
         Scalar::zero(table.type(result).element));
  }
  const auto take = [&](Value acc) { return taken.at(acc); };
  if (is_harmless(*op.map.body, table)) {
    // Neutral elements beyond the end are needed by what needs the order alone.
    if (!accumulators.empty()) fold_with(free, accumulators, nullptr, take, made, inside);
    each.insert(each.end(), made.begin(), made.end());
    if (!ordered.empty()) each.push_back(kernel::branch(prefix("!", inside), std::move(beyond)));
  } else {
    if (!accumulators.empty()) fold_with(free, accumulators, nullptr, take, made);
    each.push_back(kernel::branch(inside, std::move(made), std::move(beyond)));
  }
  const bool knows = !accumulators.empty() || !ordered.empty() || !is_harmless(*op.map.body, table) ||
                     free_values(*op.map.body, table).contains(op.indices.front());
  out.push_back(knows ? for_elements_of_row(round, at, std::move(each)) : for_rounds(round, std::move(each)));
  if (!accumulators.empty()) {
    fold_warp(free, accumulators, true, out);
    fold_warps(free, accumulators, out);
  }
  for (const Ordered& each_in_order : ordered)
    fold_in_order(each_in_order.op, each_in_order.accumulators, each_in_order.elements, each_in_order.results, out);
}

// A scan of the elements, which become what it gives; a reduction's results are what it gives at the end.
void Team::fold_in_order(const Screma& op, const std::vector<Value>& accumulators,
                         const std::vector<std::string>& elements, const std::vector<Value>& results,
                         KernelBlock& out) {
  const ExprPtr team = variable(team_.size), one = number_of(1), always = number_of(1);
  const ExprPtr warp = number_of(unit_.target.warp), thread = call("apl_thread", {});
  const std::int64_t warps = threads_ / unit_.target.warp;
  const std::string width = unit_.fresh("width"), step = unit_.fresh("step"), round = unit_.fresh("round"),
                    place = unit_.fresh("place"), own_warp = unit_.fresh("warp"), first = unit_.fresh("first"),
                    other = unit_.fresh("warp");
  const auto type_of = [&](Value acc) { return CType{unit_.function.type(acc).element, false}; };
  const auto own = [&](Value acc) { return variable(unit_.name(acc)); };
  std::map<Value, std::string> held, carries, shared;
  for (std::size_t k = 0; k < accumulators.size(); ++k) {
    held[accumulators[k]] = elements[k];
    carries[accumulators[k]] = unit_.fresh(unit_.function.values.name(results[k]) + "_before");
    out.push_back(declare(type_of(accumulators[k]), carries[accumulators[k]],
                          values_.operand(op.reduces.front().neutral[k]), false));
    shared[accumulators[k]] = unit_.fresh(unit_.function.values.name(results[k]) + "_s");
    out.push_back(shared_array(shared[accumulators[k]], type_of(accumulators[k]), kRowElements * warps));
  }
  const auto element_here = [&](Value acc) { return element(held.at(acc), variable(round)); };
  out.push_back(declare(kInt, width, select(infix("<", team, warp), team, warp)));
  out.push_back(declare(kInt, place, infix("&", thread, infix("-", variable(width), one))));
  const ExprPtr lane = call("apl_lane", {}), reaches = infix("<=", variable(step), variable(place));
  const auto shuffled = [&](Value acc, const ExprPtr& from) { return call("apl_shuffle", {own(acc), from}); };
  // Each warp's elements of a round; the rounds take a step together, so that shuffles do not wait for each other.
  KernelBlock one_step;
  for (const Value acc : accumulators)
    one_step.push_back(declare(type_of(acc), unit_.name(acc), element_here(acc), false));
  const ExprPtr from = infix("-", lane, select(reaches, variable(step), number_of(0)));
  fold_with(
      op, accumulators, always, [&](Value acc) { return shuffled(acc, from); }, one_step, reaches);
  for (const Value acc : accumulators) one_step.push_back(assign(element_here(acc), own(acc)));
  Stmt lanes = for_loop(kInt, step, variable(width), {for_rounds(round, std::move(one_step))});
  lanes.from = one;
  lanes.step = variable(step);
  out.push_back(std::move(lanes));
  // `value` behind what came before: the row's element, and what comes before the next.
  const auto carry = [&](const std::function<ExprPtr(Value)>& value, const std::function<ExprPtr(Value)>& target,
                         const ExprPtr& where, KernelBlock& into) {
    KernelBlock block;
    for (const Value acc : accumulators) block.push_back(declare(type_of(acc), unit_.name(acc), value(acc), false));
    fold_with(
        op, accumulators, always, [&](Value acc) { return variable(carries.at(acc)); }, block);
    for (const Value acc : accumulators)
      block.push_back(assign(target(acc), where ? select(where, own(acc), target(acc)) : own(acc)));
    into.push_back(scope_of(std::move(block)));
  };
  const auto carry_of = [&](Value acc) { return variable(carries.at(acc)); };
  // A team within a warp.
  KernelBlock narrow;
  std::map<Value, std::string> totals;
  for (const Value acc : accumulators) {
    totals[acc] = unit_.fresh("total");
    narrow.push_back(
        declare(type_of(acc), totals[acc],
                call("apl_shuffle", {element_here(acc), infix("|", lane, infix("-", variable(width), one))})));
  }
  const bool scans = op.reduces.front().scan;  // of a reduction only the end is wanted
  if (scans) carry(element_here, element_here, nullptr, narrow);
  carry([&](Value acc) { return variable(totals.at(acc)); }, carry_of, nullptr, narrow);
  // Several warps: what each has of each round is in shared memory.
  const auto of_warp = [&](Value acc, const std::string& which) {
    return element(shared.at(acc), infix("+", infix("*", variable(round), number_of(warps)), variable(which)));
  };
  KernelBlock wide, leads, each, each_warp;
  wide.push_back(declare(kInt, own_warp, infix("/", thread, warp)));
  wide.push_back(declare(kInt, first, infix("/", infix("-", thread, variable(team_.lane)), warp)));
  for (const Value acc : accumulators) leads.push_back(assign(of_warp(acc, own_warp), element_here(acc)));
  wide.push_back(
      kernel::branch(infix("==", variable(place), infix("-", warp, one)), {for_rounds(round, std::move(leads))}));
  wide.push_back(barrier());
  if (scans) carry(element_here, element_here, infix("==", variable(other), variable(own_warp)), each_warp);
  carry([&](Value acc) { return of_warp(acc, other); }, carry_of, nullptr, each_warp);
  Stmt in_turn = for_loop(kInt, other, infix("+", variable(first), infix("/", team, warp)), std::move(each_warp));
  in_turn.from = variable(first);
  wide.push_back(for_rounds(round, {std::move(in_turn)}));
  out.push_back(kernel::branch(infix(">", team, warp), std::move(wide), {for_rounds(round, std::move(narrow))}));
  for (std::size_t k = 0; k < results.size(); ++k)
    if (unit_.function.type(results[k]).is_scalar())
      out.push_back(declare(type_of(accumulators[k]), unit_.name(results[k]), carry_of(accumulators[k])));
}

// Rows that the kernel returns, each element by the thread that has it.
void Team::write_held_rows(const SegOp& op, const std::vector<ExprPtr>& indices, KernelBlock& out) {
  const std::string round = unit_.fresh("round"), at = unit_.fresh("at");
  KernelBlock rows;
  std::vector<Neighbours> wide;
  std::vector<DimIndex> first;
  for (const SegDim& dim : op.space) first.push_back(DimIndex::fix(Poly(dim.index)));
  first.push_back(DimIndex::fix(Poly(0)));
  ExprPtr can = infix("&&", team_.has_index, infix("!=", variable(team_.each), number_of(1)));
  for (std::size_t k = 0; k < stm_.pattern.size(); ++k) {
    const Operand& result = op.body->results[k];
    if (!result.is_value() || unit_.function.type(result.value()).is_scalar()) continue;
    std::vector<ExprPtr> all = indices;
    all.push_back(variable(at));
    const std::string& held = rows_.at(result.value());
    if (const auto found = neighbours_in(stm_.pattern[k], first, held, stm_.location, can)) wide.push_back(*found);
    rows.push_back(assign(element_of(stm_.pattern[k], all, stm_.location), element(held, variable(round))));
  }
  if (rows.empty()) return;
  const bool all = wide.size() == rows.size();
  const ExprPtr inside = infix("&&", team_.has_index, infix("<", variable(at), variable(team_.width)));
  KernelBlock each{kernel::branch(inside, std::move(rows))};
  if (all) return in_vectors("apl_store", wide, can, round, at, std::move(each), {}, out);
  out.push_back(for_elements_of_row(round, at, std::move(each)));
}

}  // namespace apl::lower
