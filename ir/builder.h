// Builds bodies statement by statement; types of results are derived.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/module.h"

namespace apl {

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
  void append(Stm stm) { stms_.push_back(std::move(stm)); }
  void append_all(const std::vector<Stm>& stms) { stms_.insert(stms_.end(), stms.begin(), stms.end()); }

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

  std::vector<Stm>& stms() { return stms_; }
  std::vector<Stm> take() { return std::move(stms_); }
  BodyPtr finish(std::vector<Operand> results) { return make_body(std::move(stms_), std::move(results)); }

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
