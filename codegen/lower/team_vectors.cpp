// Reductions in any order whose threads read neighbouring elements at once, where these are contiguous and aligned:
//
//   if (apl_aligned<16>(xs) && n % 4 == 0) {
//     for (round < rounds - 1; 2 at once) { apl_load<4>(xs, i * n + ((round << shift) + lane) * 4, xs_r); s += ... }
//     the last one of an odd number, the elements behind the last four
//   } else {
//     in rounds, as in team.cpp
//   }
#include <fmt/format.h>

#include <algorithm>

#include "codegen/lower/team.h"
#include "ir/layouts.h"
#include "ir/team.h"
#include "ir/walk.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

// Neighbours of an input at once, from the index on that is declared, into `to`; gives whether that can be, null if it
// never can.
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

// Whether all inputs of a reduction can be read so; null: never.
ExprPtr Team::can_read_wide(const Screma& op, const Stm& stm) {
  ExprPtr all;
  for (std::size_t k = 0; k < op.inputs.size(); ++k) {
    if (const Type& type = unit_.function.type(op.map.params[k]); !type.is_scalar() || type.element == ScalarType::unit)
      continue;
    KernelBlock unused;
    const ExprPtr can = wide_read(op, stm, k, number_of(0), unused);
    if (!can) return nullptr;
    all = all ? infix("&&", all, can) : can;
  }
  return all;
}

// `count` times neighbours, a team apart, from number `first` of them on: all are read before the first is folded.
KernelBlock Team::fold_vectors(const Screma& op, const Stm& stm, const ExprPtr& first, std::int64_t count) {
  const std::string next = unit_.fresh("next"), index = unit_.name(op.indices.front());
  const ExprPtr each = number_of(kNeighboursAtOnce), shift = variable(team_.shift), lane = variable(team_.lane);
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
  if (free_values(op.map, unit_.function.values).contains(op.indices.front()))
    read.push_back(declare(kIndex, index, infix("+", start_of(vector), inside)));
  for (std::size_t k = 0; k < op.inputs.size(); ++k) {
    const Value param = op.map.params[k];
    const Type& type = unit_.function.type(param);
    if (!type.is_scalar() || type.element == ScalarType::unit) continue;
    const std::string array = unit_.fresh(unit_.function.values.name(param) + "_r");
    out.push_back(declare_array({type.element, false}, array, count * kNeighboursAtOnce));
    wide_read(op, stm, k, infix("+", variable(array), infix("*", variable(next), each)), load);
    read.push_back(declare({type.element, false}, unit_.name(param), element(array, variable(next))));
  }
  std::map<Value, std::string> elements;
  for (const Value acc : stm.pattern) {
    elements[acc] = unit_.fresh(unit_.function.values.name(acc) + "_read");
    out.push_back(declare_array({unit_.function.type(acc).element, false}, elements[acc], count * kNeighboursAtOnce));
  }
  const auto read_of = [&](Value acc) { return element(elements.at(acc), variable(next)); };
  body(*op.map.body, read);
  for (std::size_t k = 0; k < stm.pattern.size(); ++k)
    read.push_back(assign(read_of(stm.pattern[k]), values_.operand(op.map.body->results[k])));
  out.push_back(loop(count, std::move(load)));
  out.push_back(loop(count * kNeighboursAtOnce, std::move(read)));
  fold_with(op, stm.pattern, nullptr, read_of, folded);
  out.push_back(loop(count * kNeighboursAtOnce, std::move(folded)));
  return out;
}

// The same elements as in rounds, but each thread has neighbours of them, so that a load has 16 bytes.
KernelBlock Team::share_in_vectors(const Screma& op, const Stm& stm, const ExprPtr& bound) {
  // Left alone, ptxas gives such a kernel 32 registers where it takes some more, and spills one or two.
  constexpr std::size_t kSmallBody = 4;
  constexpr std::int64_t kResident = 6;
  if (look_back_words(op, unit_.function.values) == 1 && op.map.body->stms.size() <= kSmallBody &&
      unit_.dialect().bounds_have_blocks)
    function_.resident = kResident;
  const ExprPtr team = variable(team_.size), shift = variable(team_.shift), lane = variable(team_.lane);
  const ExprPtr one = number_of(1), each = number_of(kNeighboursAtOnce);
  constexpr std::int64_t kVectorsAtOnce = kRoundsAtOnce / kNeighboursAtOnce;
  static_assert(kVectorsAtOnce == 2);
  const std::string vectors = unit_.fresh("vectors"), rounds = unit_.fresh("rounds"), round = unit_.fresh("round"),
                    rest = unit_.fresh("rest");
  KernelBlock out;
  out.push_back(declare(kIndex, vectors, infix("/", bound, each)));
  const ExprPtr left = infix("-", variable(vectors), lane), above = infix("-", team, one);
  out.push_back(declare(kIndex, rounds, infix(">>", infix("+", left, above), shift)));
  const ExprPtr whole = infix("-", variable(rounds), one);
  Stmt many = for_loop(kIndex, round, whole, fold_vectors(op, stm, variable(round), kVectorsAtOnce));
  many.step = number_of(kVectorsAtOnce);
  out.push_back(std::move(many));
  const ExprPtr is_odd = infix("==", infix("%", variable(rounds), number_of(kVectorsAtOnce)), one);
  out.push_back(kernel::branch(is_odd, fold_vectors(op, stm, whole, 1)));
  const ExprPtr here = variable(rest);
  Stmt others = for_loop(kIndex, rest, bound,
                         fold_element(op, stm, team_.first.empty() ? here : infix("+", variable(team_.first), here)));
  others.from = infix("+", infix("*", variable(vectors), each), lane);
  others.step = team;
  out.push_back(std::move(others));
  return out;
}

}  // namespace apl::lower
