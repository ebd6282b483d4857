// Builds bodies statement by statement; types of results are derived. Nothing is checked here: a value of another
// function, or an operand of a wrong type, is an error that the verifier reports (ir/verify.h).
//
// A product of matrices, of A : [m][q]f32 and the transposed Bt : [n][q]f32:
//
//   const ReduceOp sum = b.reduce_op(BinaryOp::add, Scalar::zero(ScalarType::f32));
//   const Value C = b.map("C", {A}, [&](Builder& b, BoundValues a) {
//     return b.map("row", {Bt}, [&](Builder& b, BoundValues bt) {
//       return b.redomap("c", sum, {a[0], bt[0]}, [](Builder& b, BoundValues x) {
//         return b.binary(BinaryOp::mul, x[0], x[1]);
//       });
//     });
//   });
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/module.h"

namespace apl {

class Builder;
// What a nested body gets: the rows of a SOAC's inputs, a loop's parameters, or the indices of a space.
using BoundValues = const std::vector<Value>&;
// Appends to the inner builder and returns the results: one, or any number.
using FillOne = std::function<Operand(Builder&, BoundValues)>;
using FillMany = std::function<std::vector<Operand>(Builder&, BoundValues)>;

class Builder {
 public:
  explicit Builder(ValueTable& values, const Module* module = nullptr) : values_(values), module_(module) {}

  ValueTable& values() { return values_; }
  void set_location(Location location) { location_ = location; }

  // Appends `let name = op`; the type is derived. The op has exactly one result.
  Value let(std::string name, Op op);
  // The same for operations with any number of results; names are cycled if there are fewer.
  std::vector<Value> let_many(const std::vector<std::string>& names, Op op);
  // With types given, for If, Loop and Apply results whose derived type is not the wanted one.
  std::vector<Value> let_typed(const std::vector<std::string>& names, const std::vector<Type>& types, Op op);
  void append(Stm stm);
  void append_all(const std::vector<Stm>& stms);

  Value binary(BinaryOp op, Operand x, Operand y, std::string name = "x");
  Value unary(UnaryOp op, Operand x, std::string name = "x");
  Value compare(CompareOp op, Operand x, Operand y, std::string name = "c");
  Value convert(ScalarType to, Operand x, std::string name = "x");
  Value bitcast(ScalarType to, Operand x, std::string name = "x");
  Value size(Poly value, std::string name = "n");
  Value index(Value array, std::vector<Poly> at, std::string name = "x", bool checked = false);
  Value rearrange(Value array, std::vector<int> permutation, std::string name = "t");

  Type type(const Operand& operand) const { return values_.type(operand); }

  // Builds a nested body over the same values: `fill` appends to the inner builder and returns its results.
  BodyPtr body(const std::function<std::vector<Operand>(Builder&)>& fill);
  // Makes parameters of the given types, then the body from them.
  Lambda lambda(const std::vector<Type>& params, const std::vector<std::string>& names,
                const std::function<std::vector<Operand>(Builder&, const std::vector<Value>&)>& fill);

  // ---- SOACs: the lambda gets a row of each input ----

  // x `op` y on the type of the neutral element; the other fields may be set afterwards.
  ReduceOp reduce_op(BinaryOp op, Scalar neutral);
  // Any operator: the lambda gets the values on the left, then those on the right.
  ReduceOp reduce_op(const std::vector<Operand>& neutral, const FillMany& fill);

  Value map(std::string name, const std::vector<Value>& inputs, const FillOne& fill);
  std::vector<Value> map_many(const std::vector<std::string>& names, const std::vector<Value>& inputs,
                              const FillMany& fill);
  // Of indices alone: an array of shape `widths` ++ row shape.
  Value tabulate(std::string name, std::vector<Poly> widths, const FillOne& fill);
  Value reduce(std::string name, ReduceOp op, Value input);
  Value scan(std::string name, ReduceOp op, Value input);
  // A map whose results are reduced, without an array between.
  Value redomap(std::string name, ReduceOp op, const std::vector<Value>& inputs, const FillOne& fill);
  // What the others are made of: `fill` gets the indices, then the rows, and gives the operands of each operator, then
  // the rows of mapped arrays.
  std::vector<Value> screma(const std::vector<std::string>& names, std::vector<Poly> widths,
                            const std::vector<Value>& inputs, const FillMany& fill, std::vector<ReduceOp> reduces);

  // ---- control ----

  Value if_else(std::string name, Operand condition, const std::function<Operand(Builder&)>& then_fill,
                const std::function<Operand(Builder&)>& else_fill);
  std::vector<Value> if_else_many(const std::vector<std::string>& names, Operand condition,
                                  const std::function<std::vector<Operand>(Builder&)>& then_fill,
                                  const std::function<std::vector<Operand>(Builder&)>& else_fill);
  // The body gets the index, then the parameters, and gives their next values.
  Value for_loop(std::string name, Poly bound, Operand initial, const FillOne& fill);
  std::vector<Value> for_loop_many(const std::vector<std::string>& names, Poly bound,
                                   const std::vector<Operand>& initial, const FillMany& fill);
  // Runs as long as the first parameter is true.
  std::vector<Value> while_loop(const std::vector<std::string>& names, const std::vector<Operand>& initial,
                                const FillMany& fill);

  std::vector<Stm>& stms() { return stms_; }
  std::vector<Stm> take() { return std::move(stms_); }
  BodyPtr finish(std::vector<Operand> results);

 private:
  ValueTable& values_;
  const Module* module_;
  Location location_;
  std::vector<Stm> stms_;
};

inline Operand i64_constant(std::int64_t x) { return Scalar::integer(ScalarType::i64, x); }
// A symbol or constant polynomial as an operand, if it is one.
std::optional<Operand> as_operand(const Poly& p);
// An i64 operand as a polynomial.
Poly as_poly(const Operand& operand);

}  // namespace apl
