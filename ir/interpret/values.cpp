// Reading values: operands, polynomials, arrays.
#include <fmt/format.h>

#include <algorithm>

#include "ir/interpret/machine.h"

namespace apl::interpreter {
namespace {

using Scalars = std::vector<Scalar>;

std::uint64_t evaluate_poly(const Poly& poly, const Scalars& scalars);

std::uint64_t evaluate_opaque(const OpaqueNode& node, const Scalars& scalars) {
  const auto a = static_cast<std::int64_t>(evaluate_poly(node.a, scalars));
  const auto b = static_cast<std::int64_t>(evaluate_poly(node.b, scalars));
  if (node.kind == OpaqueKind::min) return static_cast<std::uint64_t>(std::min(a, b));
  if (node.kind == OpaqueKind::max) return static_cast<std::uint64_t>(std::max(a, b));
  if (b == 0) fail(Code::run_division_by_zero, "division by zero");
  if (b < 0) fail(Code::bug_internal, fmt::format("a size is divided by {}.", b));
  std::int64_t quotient = a / b;
  const std::int64_t rest = a % b;
  if (node.kind == OpaqueKind::floor_div && rest < 0) --quotient;
  if (node.kind == OpaqueKind::ceil_div && rest > 0) ++quotient;
  return static_cast<std::uint64_t>(quotient);
}

// Modulo 2^64, as i64 arithmetic of the IR is.
std::uint64_t evaluate_poly(const Poly& poly, const Scalars& scalars) {
  std::uint64_t sum = 0;
  for (const Term& term : poly.terms()) {
    auto product = static_cast<std::uint64_t>(term.coefficient);
    for (const Factor& factor : term.factors)
      product *= factor.opaque ? evaluate_opaque(*factor.opaque, scalars) : scalars[factor.symbol.id].bits();
    sum += product;
  }
  return sum;
}

}  // namespace

std::int64_t Machine::integer(const Poly& poly) const {
  return static_cast<std::int64_t>(evaluate_poly(poly, frame_->scalars));
}

std::vector<std::int64_t> Machine::sizes(const std::vector<Poly>& polys, std::string_view what) {
  std::vector<std::int64_t> result;
  result.reserve(polys.size());
  for (const Poly& poly : polys) {
    const std::int64_t size = integer(poly);
    if (size < 0) fail(Code::run_negative_size, fmt::format("{} of size {}.", what, size));
    result.push_back(size);
  }
  return result;
}

const Array& Machine::any_array(Value v) {
  const Array& array = frame_->arrays[v.id];
  if (!array.storage) fail(Code::bug_internal, fmt::format("array `{}` is used after it was consumed.", name(v)));
  return array;
}

const Array& Machine::readable(Value v) {
  const Array& array = any_array(v);
  if (array.private_rank != 0)
    fail(Code::run_race,
         fmt::format("`{}` is private to threads: only an inblock segmap over the same space may index it.", name(v)));
  return array;
}

Array Machine::take(Value v) {
  const std::vector<Value>& movable = stm_lifetimes_->movable;
  any_array(v);
  if (std::find(movable.begin(), movable.end(), v) != movable.end()) return consume(v);
  return frame_->arrays[v.id];
}

Array Machine::consume(Value v) {
  any_array(v);
  Array array = std::move(frame_->arrays[v.id]);
  frame_->arrays[v.id] = {};
  return array;
}

Datum Machine::read(const Operand& x) {
  if (x.is_constant() || is_scalar(x.value())) return {true, scalar(x), {}};
  return {false, {}, any_array(x.value())};
}

Datum Machine::take_datum(const Operand& x) {
  if (x.is_constant() || is_scalar(x.value())) return {true, scalar(x), {}};
  return {false, {}, take(x.value())};
}

Datum Machine::take_result(const Body& body, const BodyLifetimes& lifetimes, std::size_t k) {
  const Operand& x = body.results[k];
  if (x.is_constant() || is_scalar(x.value())) return {true, scalar(x), {}};
  return {false, {}, lifetimes.take_result[k] ? consume(x.value()) : any_array(x.value())};
}

Scalar Machine::element(Value array_name, const Array& array, std::int64_t position) {
  if (!memory_.is_defined(array, position)) {
    std::string at;
    std::int64_t rest = position - array.offset;
    const bool invertible = array.row_major();
    if (invertible) {
      std::vector<std::int64_t> indices;
      unflatten(rest, shape_of(array), indices);
      for (std::int64_t i : indices) at += fmt::format("{}{}", at.empty() ? "[" : ", ", i);
      at += "] ";
    }
    fail(Code::run_undefined_read,
         fmt::format("element {}of `{}` is read before it is written.", at, name(array_name)));
  }
  count_read(1);
  return memory_.load(array, position);
}

std::string plain_text(const Scalar& scalar) {
  std::string text = scalar.to_text();
  const std::string_view suffix = to_text(scalar.type());
  if (is_integer(scalar.type()) || is_float(scalar.type()))
    if (text.size() > suffix.size() && text.ends_with(suffix)) text.resize(text.size() - suffix.size());
  return text;
}

}  // namespace apl::interpreter
