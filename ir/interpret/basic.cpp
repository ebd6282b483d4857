// Scalar operations, checks, tuning parameters.
#include <fmt/format.h>

#include "ir/attributes.h"
#include "ir/interpret/machine.h"

namespace apl::interpreter {
void Machine::exec(const Stm& stm, const Use& op) { bind(stm.pattern.front(), take_datum(op.x)); }

void Machine::exec(const Stm& stm, const Unary& op) {
  const Scalar& x = scalar(op.x);
  if (auto result = evaluate(op.op, x)) return set(stm.pattern.front(), *result);
  fail(Code::bug_internal, fmt::format("{} has no meaning for {}.", to_text(op.op), x.to_text()));
}

void Machine::exec(const Stm& stm, const Binary& op) {
  const Scalar& x = scalar(op.x);
  const Scalar& y = scalar(op.y);
  if (auto result = evaluate(op.op, x, y)) return set(stm.pattern.front(), *result);
  if (division_of(op.op) && is_integer(y.type()) && y.bits() == 0) fail(Code::run_division_by_zero, "division by zero");
  fail(Code::bug_internal, fmt::format("{} has no meaning for {} and {}.", to_text(op.op), x.to_text(), y.to_text()));
}

void Machine::exec(const Stm& stm, const Compare& op) {
  const Scalar& x = scalar(op.x);
  const Scalar& y = scalar(op.y);
  if (auto result = evaluate(op.op, x, y)) return set(stm.pattern.front(), *result);
  fail(Code::bug_internal, fmt::format("{} has no meaning for {} and {}.", to_text(op.op), x.to_text(), y.to_text()));
}

void Machine::exec(const Stm& stm, const Convert& op) {
  set(stm.pattern.front(), convert(scalar(op.x), op.to, op.same_bits));
}

void Machine::exec(const Stm& stm, const SizeExpr& op) {
  set(stm.pattern.front(), Scalar::integer(ScalarType::i64, integer(op.value)));
}

void Machine::trace(const Assert& op) {
  std::string line;
  for (const auto& piece : op.message) {
    const Operand* x = std::get_if<Operand>(&piece);
    if (x == nullptr) {
      line += std::get<std::string>(piece);
    } else if (x->is_constant() || is_scalar(x->value())) {
      line += scalar(*x).to_text();
    } else {
      line += to_host({false, {}, readable(x->value())}, 0).to_text();
    }
  }
  options_.trace(line);
}

void Machine::exec(const Stm& stm, const Assert& op) {
  if (options_.trace && has_attribute(stm.attributes, attribute::trace)) trace(op);
  if (scalar(op.condition).as_bool()) return set(stm.pattern.front(), Scalar::unit());
  std::string message;
  for (const auto& piece : op.message) {
    const Operand* x = std::get_if<Operand>(&piece);
    message += x ? plain_text(scalar(*x)) : std::get<std::string>(piece);
  }
  fail(Code::run_assertion, message.empty() ? "Assertion is false." : message);
}

void Machine::exec(const Stm& stm, const GetSize& op) {
  auto found = options_.parameters.find(op.name);
  const std::int64_t size = found == options_.parameters.end() ? op.default_value : found->second;
  if (size < 1) fail(Code::command_bad_parameter, fmt::format("{}={}: a parameter is at least 1.", op.name, size));
  set(stm.pattern.front(), Scalar::integer(ScalarType::i64, size));
}

void Machine::exec(const Stm&, const Derivative&) {
  fail(Code::bug_internal, "a derivative that was not replaced before the program runs.");
}
void Machine::exec(const Stm&, std::monostate) { fail(Code::bug_internal, "a statement without an operation."); }

}  // namespace apl::interpreter
