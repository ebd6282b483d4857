// Reductions in any order whose threads read neighbouring elements at once, where these are contiguous and aligned:
//
//   if (apl_aligned<16>(xs) && n % 4 == 0) {
//     for (round < rounds - 1; 2 at once) { apl_load<4>(xs, i * n + ((round << shift) + lane) * 4, xs_r); s += ... }
//     the last one of an odd number, the elements behind the last four; of elements of one or two bytes, eight
//   } else {
//     in rounds, as in team.cpp
//   }
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "codegen/lower/team.h"
#include "ir/layouts.h"
#include "ir/team.h"
#include "ir/walk.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

namespace {

// A thread's neighbours, of which two times so many are read at once: 16 bytes of elements of two.
constexpr std::int64_t kFewBytesRead = 2, kManyNeighbours = 8, kVectorsAtOnce = 2;

}  // namespace

// Neighbours of a scan's input at once, from the index on that is declared, into `to`; gives whether that can be, null
// if it never can.
ExprPtr Team::wide_read(const Screma& op, const Stm& stm, std::size_t input, const ExprPtr& to, KernelBlock& read) {
  const Type& type = unit_.function.type(op.inputs[input]);
  const Value index = op.indices.front();
  const Poly position = index_layout(type.memory->layout, {DimIndex::fix(Poly(index))}).offset();
  const Poly rest = position - Poly(index);
  bool moves = false;
  rest.for_each_symbol([&](Value v) { moves = moves || v == index; });
  const Kernel::Buffer& source = buffer(type.memory->block, stm.location);
  if (moves || source.kind != BufferKind::global_in) return nullptr;
  const std::int64_t bytes = std::min(kBytesOfAccess, kNeighboursAtOnce * byte_size(type.element));
  read.push_back(
      do_call(fmt::format("apl_load<{}>", kNeighboursAtOnce), {variable(source.name), values_.poly(position), to}));
  const ExprPtr pointer = call(fmt::format("apl_aligned<{}>", bytes), {variable(source.name)});
  const ExprPtr offset = aligned({rest}, kNeighboursAtOnce);
  return offset ? infix("&&", pointer, offset) : pointer;
}

// What is read along the reduction: the inputs, and what the function reads itself.
std::vector<Team::WideRead> Team::wide_reads(const Screma& op, const Stm& stm) {
  const Value index = op.indices.front();
  std::vector<WideRead> reads;
  std::set<Value> made(op.map.params.begin(), op.map.params.end());
  const auto add = [&](Value element, Value array, const std::vector<DimIndex>& dims, Location location, bool must) {
    const Type& type = unit_.function.type(element);
    if (!type.is_scalar() || type.element == ScalarType::unit) return true;
    const Type& source = unit_.function.type(array);
    if (!source.memory) return false;
    const Poly position = index_layout(source.memory->layout, dims).offset();
    const Poly rest = position - Poly(index);
    bool known = true, fits = must;
    rest.for_each_symbol([&](Value v) { known = known && v != index && !made.contains(v); });
    for (const Term& term : rest.terms())
      if (term.factors.empty()) fits = fits || term.coefficient % kManyNeighbours == 0;
    if (std::ranges::none_of(rest.terms(), [](const Term& term) { return term.factors.empty(); })) fits = true;
    const Kernel::Buffer& from = buffer(source.memory->block, location);
    if (!known || !fits || from.kind != BufferKind::global_in) return false;
    reads.push_back({element, position, rest, from.name});
    return true;
  };
  for (std::size_t k = 0; k < op.inputs.size(); ++k)
    if (!add(op.map.params[k], op.inputs[k], {DimIndex::fix(Poly(index))}, stm.location, true)) return {};
  for (const Stm& inner : op.map.body->stms) made.insert(inner.pattern.begin(), inner.pattern.end());
  for (const Stm& inner : op.map.body->stms)
    if (const Index* read = get_if<Index>(inner))
      add(inner.pattern.front(), read->array, read->dims, inner.location, false);
  return reads;
}

std::int64_t Team::neighbours_of(const std::vector<WideRead>& reads) const {
  const auto is_small = [&](const WideRead& read) {
    return byte_size(unit_.function.type(read.element).element) <= static_cast<int>(kFewBytesRead);
  };
  return std::ranges::all_of(reads, is_small) ? kManyNeighbours : kNeighboursAtOnce;
}

// Whether all of these can be read so; null: never.
ExprPtr Team::can_read_wide(const std::vector<WideRead>& reads) {
  const std::int64_t neighbours = neighbours_of(reads);
  ExprPtr all;
  const auto also = [&](const ExprPtr& test) { all = all ? infix("&&", all, test) : test; };
  for (const WideRead& read : reads) {
    const auto width = neighbours * static_cast<std::int64_t>(byte_size(unit_.function.type(read.element).element));
    also(call(fmt::format("apl_aligned<{}>", std::min(kBytesOfAccess, width)), {variable(read.source)}));
    if (const ExprPtr offset = aligned({read.rest}, neighbours)) also(offset);
  }
  return all;
}

// `count` times neighbours, a team apart, from number `first` of them on: all are read before the first is folded.
KernelBlock Team::fold_vectors(const Screma& op, const Stm& stm, const std::vector<WideRead>& reads,
                               const ExprPtr& first, std::int64_t count) {
  const std::int64_t neighbours = neighbours_of(reads);
  const std::string next = unit_.fresh("next"), index = unit_.name(op.indices.front());
  const ExprPtr each = number_of(neighbours), shift = variable(team_.shift), lane = variable(team_.lane);
  const auto loop = [&](std::int64_t bound, KernelBlock block) {
    Stmt result = for_loop(kInt, next, number_of(bound), std::move(block));
    result.unroll = true;
    return result;
  };
  const auto start_of = [&](const ExprPtr& vector) {
    const ExprPtr number = infix("+", infix("<<", infix("+", first, vector), shift), lane);
    const ExprPtr here = infix("*", number, each);
    return team_.first.empty() ? here : infix("+", variable(team_.first), here);
  };
  KernelBlock out, load{declare(kIndex, index, start_of(variable(next)))}, read, folded;
  const ExprPtr vector = infix("/", variable(next), each), inside = infix("%", variable(next), each);
  std::map<Value, ExprPtr> held;
  for (const WideRead& wide : reads) {
    const ScalarType type = unit_.function.type(wide.element).element;
    const std::string array = unit_.fresh(unit_.function.values.name(wide.element) + "_r");
    out.push_back(declare_array({type, false}, array, count * neighbours));
    load.push_back(do_call(fmt::format("apl_load<{}>", neighbours),
                           {variable(wide.source), values_.poly(wide.position),
                            infix("+", variable(array), infix("*", variable(next), each))}));
    held[wide.element] = element(array, variable(next));
  }
  const auto declare_read = [&](Value v) {
    read.push_back(declare({unit_.function.type(v).element, false}, unit_.name(v), held.at(v)));
  };
  // Rows that it takes lie where the index says.
  const bool takes_rows =
      std::ranges::any_of(op.map.params, [&](Value param) { return unit_.function.type(param).is_array(); });
  const bool uses_index = std::ranges::any_of(op.map.body->stms, [&](const Stm& inner) {
    return !held.contains(inner.pattern.front()) &&
           free_values(inner.op, unit_.function.values).contains(op.indices.front());
  });
  if (takes_rows || uses_index || std::ranges::any_of(op.map.body->results, [&](const Operand& result) {
        return result.is_value() && result.value() == op.indices.front();
      }))
    read.push_back(declare(kIndex, index, infix("+", start_of(vector), inside)));
  for (const Value param : op.map.params)
    if (held.contains(param)) declare_read(param);
  std::map<Value, std::string> elements;
  for (const Value acc : stm.pattern) {
    elements[acc] = unit_.fresh(unit_.function.values.name(acc) + "_read");
    out.push_back(declare_array({unit_.function.type(acc).element, false}, elements[acc], count * neighbours));
  }
  const auto read_of = [&](Value acc) { return element(elements.at(acc), variable(next)); };
  for (const Stm& inner : op.map.body->stms) {
    if (held.contains(inner.pattern.front()))
      declare_read(inner.pattern.front());
    else
      statement(inner, read);
  }
  for (std::size_t k = 0; k < stm.pattern.size(); ++k)
    read.push_back(assign(read_of(stm.pattern[k]), values_.operand(op.map.body->results[k])));
  out.push_back(loop(count, std::move(load)));
  out.push_back(loop(count * neighbours, std::move(read)));
  fold_with(op, stm.pattern, nullptr, read_of, folded);
  out.push_back(loop(count * neighbours, std::move(folded)));
  return out;
}

// The same elements as in rounds, but each thread has neighbours of them, so that a load has 16 bytes.
KernelBlock Team::share_in_vectors(const Screma& op, const Stm& stm, const std::vector<WideRead>& reads,
                                   const ExprPtr& bound) {
  // Left alone, ptxas gives such a kernel 32 registers where it takes some more, and spills one or two.
  constexpr std::size_t kSmallBody = 4;
  constexpr std::int64_t kResident = 6;
  if (neighbours_of(reads) == kNeighboursAtOnce && look_back_words(op, unit_.function.values) == 1 &&
      op.map.body->stms.size() <= kSmallBody && unit_.dialect().bounds_have_blocks)
    function_.resident = kResident;
  const ExprPtr team = variable(team_.size), shift = variable(team_.shift), lane = variable(team_.lane);
  const ExprPtr one = number_of(1), each = number_of(neighbours_of(reads));
  const std::string vectors = unit_.fresh("vectors"), rounds = unit_.fresh("rounds"), round = unit_.fresh("round"),
                    rest = unit_.fresh("rest");
  KernelBlock out;
  out.push_back(declare(kIndex, vectors, infix("/", bound, each)));
  const ExprPtr left = infix("-", variable(vectors), lane), above = infix("-", team, one);
  out.push_back(declare(kIndex, rounds, infix(">>", infix("+", left, above), shift)));
  const ExprPtr whole = infix("-", variable(rounds), one);
  Stmt many = for_loop(kIndex, round, whole, fold_vectors(op, stm, reads, variable(round), kVectorsAtOnce));
  many.step = number_of(kVectorsAtOnce);
  out.push_back(std::move(many));
  const ExprPtr is_odd = infix("==", infix("%", variable(rounds), number_of(kVectorsAtOnce)), one);
  out.push_back(kernel::branch(is_odd, fold_vectors(op, stm, reads, whole, 1)));
  const ExprPtr here = variable(rest);
  Stmt others = for_loop(kIndex, rest, bound,
                         fold_element(op, stm, team_.first.empty() ? here : infix("+", variable(team_.first), here)));
  others.from = infix("+", infix("*", variable(vectors), each), lane);
  others.step = team;
  out.push_back(std::move(others));
  return out;
}

}  // namespace apl::lower
