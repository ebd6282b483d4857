// Loops that accumulate.
//
//   loop {acc : f32 = 0.0f32} for k < q { ... let {next} = add(acc, x) in {next} }      where ... does not use acc
// =>
//   redomap(k < q, {}, \{} -> { ... in {x} }, {\{a, b} -> {add(a, b)}, {0.0f32}})
//
// The start must be the operator's neutral element, so that the order in which one thread computes stays the same bit
// for bit; what tiles the reduction later may associate it differently, as it may any reduction.
#include <limits>
#include <set>

#include "ir/builder.h"
#include "ir/walk.h"
#include "passes/fuse/fuse.h"

namespace apl {

namespace {

bool is_neutral(BinaryOp op, const Operand& start) {
  if (!start.is_constant()) return false;
  const Scalar& value = start.constant();
  const ScalarType type = value.type();
  const auto is = [&](const Scalar& other) { return value == other; };
  const auto integer = [&](std::int64_t x) { return is_integer(type) && is(Scalar::integer(type, x)); };
  const auto number = [&](double x) { return is_float(type) && is(Scalar::floating(type, x)); };
  const std::int64_t highest_bits = is_signed(type) ? (std::int64_t{1} << (bit_width(type) - 1)) : 0;
  switch (op) {
    case BinaryOp::add: return integer(0) || number(0) || number(-0.0);
    case BinaryOp::mul: return integer(1) || number(1);
    case BinaryOp::min:
      return number(std::numeric_limits<double>::infinity()) || integer(is_signed(type) ? ~highest_bits : -1);
    case BinaryOp::max: return number(-std::numeric_limits<double>::infinity()) || integer(highest_bits);
    case BinaryOp::conj: return integer(-1) || is(Scalar::boolean(true));
    case BinaryOp::disj: return integer(0) || is(Scalar::boolean(false));
    case BinaryOp::exor: return integer(0) || is(Scalar::boolean(false));
    default: return false;
  }
}

struct Accumulation {
  BinaryOp op;
  Operand added;
};

}  // namespace

std::optional<Stm> loop_as_reduction(const Stm& stm, ValueTable& values) {
  const Loop* loop = get_if<Loop>(stm);
  if (loop == nullptr || !loop->index || loop->params.empty()) return std::nullopt;
  const std::set<Value> accumulators(loop->params.begin(), loop->params.end());
  std::vector<Accumulation> found;
  std::set<const Stm*> updates;
  for (std::size_t k = 0; k < loop->params.size(); ++k) {
    const Operand& result = loop->body->results[k];
    const Stm* update = result.is_value() ? defining_stm(*loop->body, result.value()) : nullptr;
    const Binary* binary = update != nullptr ? get_if<Binary>(*update) : nullptr;
    if (binary == nullptr || !is_commutative(binary->op) || !is_neutral(binary->op, loop->initial[k]))
      return std::nullopt;
    const Operand param = loop->params[k];
    const bool first = binary->x == param;
    if (first == (binary->y == param)) return std::nullopt;
    found.push_back({binary->op, first ? binary->y : binary->x});
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
  for (const Accumulation& accumulation : found) rest.results.push_back(accumulation.added);
  for (const Value v : free_values(rest, values)) {
    if (accumulators.contains(v) || updated.contains(v)) return std::nullopt;
  }
  if (updates.size() != found.size()) return std::nullopt;

  Screma screma{.widths = {loop->bound}, .indices = {loop->index}};
  screma.map.body = std::make_shared<const Body>(std::move(rest));
  Builder builder(values);
  for (std::size_t k = 0; k < found.size(); ++k) {
    const Type type = Type::scalar(values.type(loop->params[k]).element);
    const BinaryOp op = found[k].op;
    Lambda lambda = builder.lambda({type, type}, {values.name(loop->params[k]), "x"},
                                   [&](Builder& inner, const std::vector<Value>& params) {
                                     return std::vector<Operand>{inner.binary(op, params[0], params[1], "r")};
                                   });
    screma.reduces.push_back({.op = std::move(lambda), .neutral = {loop->initial[k]}, .commutative = true});
  }
  Stm result = stm;
  result.op = std::move(screma);
  return result;
}

}  // namespace apl
