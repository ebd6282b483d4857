// Walkers and substitution: what every pass uses to look at and rewrite operations.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "ir/module.h"

namespace apl {

// ---- looking --------------------------------------------------------------------------------------

// Every value that `op` reads itself: operands, symbols of polynomials, arrays; not what nested bodies read.
void for_each_use(const Op& op, const std::function<void(Value)>& visit);
// Symbols in the shape, and in the memory binding, of a type.
void for_each_use(const Type& type, const std::function<void(Value)>& visit);
// The bodies of an operation that runs one of them (If, Choose), in order; none of other operations.
std::vector<BodyPtr> branches(const Op& op);
inline bool is_branch(const Op& op) { return std::holds_alternative<If>(op) || std::holds_alternative<Choose>(op); }

// Every nested body (If, Loop, lambdas, SegOp), in order.
void for_each_body(const Op& op, const std::function<void(const BodyPtr&)>& visit);
bool has_bodies(const Op& op);
// Values that `op` binds for its nested bodies: loop parameters and index, lambda parameters, space indices.
void for_each_binder(const Op& op, const std::function<void(Value)>& visit);
// Every nested body with the values that are bound for it.
void for_each_scope(const Op& op, const std::function<void(const std::vector<Value>&, const BodyPtr&)>& visit);
// Every statement of the body and of all bodies inside, outermost first.
void for_each_stm(const Body& body, const std::function<void(const Stm&)>& visit);
// Values read in the body (or op, or lambda) but bound outside it. Shapes of bound values count as reads.
std::set<Value> free_values(const Body& body, const ValueTable& values);
std::set<Value> free_values(const Op& op, const ValueTable& values);
std::set<Value> free_values(const Lambda& lambda, const ValueTable& values);

// ---- rewriting ------------------------------------------------------------------------------------

using Substitution = std::unordered_map<Value, Operand>;

Operand substitute(const Operand& operand, const Substitution& map);
Value substitute(Value value, const Substitution& map);  // the replacement must be a value
Poly substitute(const Poly& poly, const Substitution& map);
Lmad substitute(const Lmad& lmad, const Substitution& map);
Type substitute(const Type& type, const Substitution& map);
// Uses replaced everywhere, nested bodies included; binders stay. Types of values bound inside are
// updated in `values` when they mention a replaced value.
Op substitute(const Op& op, const Substitution& map, ValueTable& values);
Stm substitute(const Stm& stm, const Substitution& map, ValueTable& values);
BodyPtr substitute(const BodyPtr& body, const Substitution& map, ValueTable& values);
Lambda substitute(const Lambda& lambda, const Substitution& map, ValueTable& values);

// The operation with each nested body replaced by what `rewrite` gives; pointers that stay equal are shared.
Op map_bodies(const Op& op, const std::function<BodyPtr(const BodyPtr&)>& rewrite);

// A copy with fresh values for everything bound inside, after applying `map` (extended in place).
// `from` is the table that the original's types are in; new values go to `to` (may be the same table).
// `locate`, if given, says where the copies of statements are in the source.
BodyPtr copy_fresh(const BodyPtr& body, Substitution& map, const ValueTable& from, ValueTable& to,
                   const std::function<Location(const Location&)>& locate = {});
Lambda copy_fresh(const Lambda& lambda, Substitution map, const ValueTable& from, ValueTable& to);

// The lambda's body on given arguments: its statements are appended to `out`, its results returned.
std::vector<Operand> inline_lambda(const Lambda& lambda, const std::vector<Operand>& arguments, ValueTable& values,
                                   std::vector<Stm>& out);

// ---- recognising ----------------------------------------------------------------------------------

// The operator if the lambda is `\x y -> op(x, y)` on its parameters (in either order for commutative ops).
std::optional<BinaryOp> as_binary_op(const Lambda& lambda);
// add, mul, min, max, and, or, xor (on floats: commutative bit for bit, though not associative).
bool is_commutative(BinaryOp op);
bool is_identity(const Lambda& lambda);  // results are exactly the parameters, no statements
// Can evaluating it fail: by what ir/ops.def says of the operation, and its operands.
bool can_fail(const Op& op, const ValueTable& values);
bool can_fail(const Body& body, const ValueTable& values);

// The first statement that binds `value` in `body` itself, or null.
const Stm* defining_stm(const Body& body, Value value);

template <class T>
const T* get_if(const Stm& stm) {
  return std::get_if<T>(&stm.op);
}

}  // namespace apl
