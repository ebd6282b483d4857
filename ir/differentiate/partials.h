// Derivatives of scalar operations, and sums of tangents.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "ir/builder.h"

namespace apl::differentiation {

// Whether values of the type have tangents. Integers and bools have them too, as in Futhark; those of bools are added
// by `or` and multiplied by `and`.
bool has_tangents(const Type& type);
// The operation that adds tangents of the type.
BinaryOp addition(ScalarType type);
// Whether the derivative of the operation on the type is not zero wherever it exists.
bool has_derivative(UnaryOp op, ScalarType type);
bool has_derivative(BinaryOp op, ScalarType type);
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
// The derivative of a polynomial by one of its symbols. It has no divisions, minima or maxima (as_operations).
Poly derivative(const Poly& poly, Value symbol);
// Whether the polynomial has divisions, minima or maxima.
bool has_opaque_factors(const Poly& poly);
// Statements that compute the polynomial, in which its divisions, minima and maxima are scalar operations; their values
// are new ones. The last one binds the polynomial's value.
std::vector<Stm> as_operations(ValueTable& values, const Poly& poly, Location location);

Operand zero_of(Builder& b, const Type& type);             // a constant, or a fresh array
Operand sum_of(Builder& b, Operand x, Operand y);          // element by element
Operand sum_over(Builder& b, Value array, std::size_t n);  // over the `n` outermost dims

}  // namespace apl::differentiation
