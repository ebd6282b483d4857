// Loops that accumulate.
//
//   loop {acc : f32 = 0.0f32} for k < q { ... let {next} = add(acc, x) in {next} }      where ... does not use acc
// =>
//   redomap(k < q, {}, \{} -> { ... in {x} }, {\{a, b} -> {add(a, b)}, {0.0f32}})
//
// A loop that starts elsewhere starts from the neutral element, and what it started from is put before the result: the
// operator is associative. The order in which one thread computes stays the same bit for bit where the start is neutral
// or the operator is exact; what tiles the reduction later may associate it differently, as it may any reduction.
// `sub(acc, x)` is `add(acc, neg(x))`.
#include <range/v3/view/zip.hpp>

#include <limits>
#include <set>

#include "ir/builder.h"
#include "ir/walk.h"
#include "passes/fuse/fuse.h"

namespace apl {

namespace {

// What the operator leaves everything as it is with; nullopt: it has none that is known here.
std::optional<Scalar> neutral_of(BinaryOp op, ScalarType type) {
  const std::int64_t highest_bits =
      is_integer(type) && is_signed(type) ? static_cast<std::int64_t>(std::uint64_t{1} << (bit_width(type) - 1)) : 0;
  const auto number = [&](std::int64_t x, double y) -> std::optional<Scalar> {
    if (is_integer(type)) return Scalar::integer(type, x);
    if (is_float(type)) return Scalar::floating(type, y);
    return std::nullopt;
  };
  const auto bits = [&](std::int64_t x, bool y) -> std::optional<Scalar> {
    if (is_integer(type)) return Scalar::integer(type, x);
    if (type == ScalarType::boolean) return Scalar::boolean(y);
    return std::nullopt;
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (op) {
    case BinaryOp::add: return number(0, 0);
    case BinaryOp::mul: return number(1, 1);
    case BinaryOp::min: return number(is_signed(type) ? ~highest_bits : -1, kInfinity);
    case BinaryOp::max: return number(highest_bits, -kInfinity);
    case BinaryOp::conj: return bits(-1, true);
    case BinaryOp::disj: return bits(0, false);
    case BinaryOp::exor: return bits(0, false);
    default: return std::nullopt;
  }
}

bool is_neutral(const Scalar& neutral, BinaryOp op, const Operand& start) {
  if (!start.is_constant()) return false;
  const ScalarType type = neutral.type();
  const bool also = op == BinaryOp::add && is_float(type) && start.constant() == Scalar::floating(type, -0.0);
  return start.constant() == neutral || also;
}

// Whether it gives the same in whatever order values are combined.
bool is_exact(BinaryOp op, ScalarType type) { return !is_float(type) || op == BinaryOp::min || op == BinaryOp::max; }

struct Accumulation {
  BinaryOp op;
  Operand added;
  Scalar neutral;
  bool negated = false;
};

}  // namespace

std::optional<LoopReduction> loop_as_reduction(const Stm& stm, bool reorder, ValueTable& values) {
  const Loop* loop = get_if<Loop>(stm);
  if (loop == nullptr || !loop->index || loop->params.empty()) return std::nullopt;
  const std::set<Value> accumulators(loop->params.begin(), loop->params.end());
  std::vector<Accumulation> found;
  std::set<const Stm*> updates;
  for (std::size_t k = 0; k < loop->params.size(); ++k) {
    const Operand& result = loop->body->results[k];
    const Stm* update = result.is_value() ? defining_stm(*loop->body, result.value()) : nullptr;
    const Binary* binary = update != nullptr ? get_if<Binary>(*update) : nullptr;
    if (binary == nullptr) return std::nullopt;
    const Operand param = loop->params[k];
    const bool first = binary->x == param;
    const bool negated = binary->op == BinaryOp::sub && first;
    const BinaryOp op = negated ? BinaryOp::add : binary->op;
    const ScalarType type = values.type(loop->params[k]).element;
    const std::optional<Scalar> neutral = neutral_of(op, type);
    if (!neutral || !is_commutative(op) || first == (binary->y == param)) return std::nullopt;
    if (!is_neutral(*neutral, op, loop->initial[k]) && !reorder && !is_exact(op, type)) return std::nullopt;
    found.push_back({op, first ? binary->y : binary->x, *neutral, negated});
    updates.insert(update);
  }
  Body rest;
  std::set<Value> updated;
  for (const Stm& inner : loop->body->stms) {
    if (updates.contains(&inner)) {
      updated.insert(inner.pattern.begin(), inner.pattern.end());
      continue;
    }
    rest.stms.push_back(inner);
  }
  for (const Accumulation& accumulation : found) {
    rest.results.push_back(accumulation.added);
    if (!accumulation.negated) continue;
    const ScalarType type = accumulation.neutral.type();
    const Value negative = values.add(Type::scalar(type), "negative");
    rest.stms.push_back(
        {.pattern = {negative}, .op = Unary{UnaryOp::neg, accumulation.added}, .location = stm.location});
    rest.results.back() = negative;
  }
  for (const Value v : free_values(rest, values)) {
    if (accumulators.contains(v) || updated.contains(v)) return std::nullopt;
  }
  if (updates.size() != found.size()) return std::nullopt;
  // Without elements of arrays there is nothing to gain.
  bool reads = false, from_neutral = true;
  for_each_stm(rest, [&](const Stm& inner) { reads = reads || get_if<Index>(inner) != nullptr; });
  for (const auto& [sum, initial] : ranges::views::zip(found, loop->initial))
    from_neutral = from_neutral && is_neutral(sum.neutral, sum.op, initial) && !sum.negated;
  if (!from_neutral && !reads) return std::nullopt;

  Screma screma{.widths = {loop->bound}, .indices = {loop->index}};
  screma.map.body = std::make_shared<const Body>(std::move(rest));
  Builder builder(values);
  LoopReduction made{.reduction = stm, .after = {}};
  for (std::size_t k = 0; k < found.size(); ++k) {
    const Type type = Type::scalar(values.type(loop->params[k]).element);
    const BinaryOp op = found[k].op;
    Lambda lambda = builder.lambda({type, type}, {values.name(loop->params[k]), "x"},
                                   [&](Builder& inner, const std::vector<Value>& params) {
                                     return std::vector<Operand>{inner.binary(op, params[0], params[1], "r")};
                                   });
    const bool neutral = is_neutral(found[k].neutral, op, loop->initial[k]);
    screma.reduces.push_back({.op = std::move(lambda),
                              .neutral = {neutral ? loop->initial[k] : Operand(found[k].neutral)},
                              .commutative = true});
    if (neutral) continue;
    const Value folded = values.add(type, values.name(stm.pattern[k]));
    made.after.push_back(
        {.pattern = {stm.pattern[k]}, .op = Binary{op, loop->initial[k], folded}, .location = stm.location});
    made.reduction.pattern[k] = folded;
  }
  made.reduction.op = std::move(screma);
  return made;
}

}  // namespace apl
