// Derivatives of scalar operations, and sums of tangents.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "ir/builder.h"

namespace apl::differentiation {

// Of what kind tangents are: integers have them too, as Futhark's do.
bool is_number(const Type& type);
// Whether it is not zero wherever it exists.
bool has_derivative(UnaryOp op);
bool has_derivative(BinaryOp op);
// Thrown for what cannot be differentiated; caught where a module is.
struct Refusal {
  Diagnostic diagnostic;
};

// For an operation that has one, which is not known here.
[[noreturn]] void refuse_derivative(std::string_view op, Location location);

// The product of a tangent (or cotangent) and the derivative of y = op(x).
Operand times_derivative(Builder& b, const Unary& op, Operand y, Operand tangent, Location location);
// The same for z = op(x, y), by x or by y; none where that is zero everywhere.
std::optional<Operand> times_derivative(Builder& b, const Binary& op, bool by_y, Operand z, Operand tangent,
                                        Location location);
// The derivative of a polynomial by one of its symbols; divisions, minima and maxima count as constant.
Poly derivative(const Poly& poly, Value symbol);

Operand zero_of(Builder& b, const Type& type);             // a constant, or a fresh array
Operand sum_of(Builder& b, Operand x, Operand y);          // element by element
Operand sum_over(Builder& b, Value array, std::size_t n);  // over the `n` outermost dims

}  // namespace apl::differentiation
