// What is certain of values where elements of a sparse array are absent. Used by sparsify, and by extract-kernels,
// which asks whether a sum over a sparse array can be a sum over its non-zeros.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "ir/builder.h"
#include "ir/module.h"
#include "ir/walk.h"

namespace apl::sparsify {

// Why a kernel that reads a sparse array is left as it is.
struct Reason {
  std::string code, message, suggestion;
};

// What a value is for certain if elements of the sparse array are 0 and all others are any finite numbers. Inside of a
// branch its condition is known to hold, or not to: `if d == 0 then 0 else a / d` is 0 where a is.
class ZeroPropagation {
 public:
  explicit ZeroPropagation(const ValueTable& values) : values_(values) {}

  void know(Value value, Scalar is) { facts_.known.insert_or_assign(value, is); }
  // `before` comes before `after` in every order that a comparison of both asks for: they are indices.
  void know_order(Value before, Value after) { order_.insert({before, after}); }
  // An infinity that the code itself has, as min and max do for their neutral elements, may meet the zeros: 0 * inf is
  // NaN.
  void look_for_infinities(const Body& body);
  void look_for_infinities(const std::vector<Operand>& operands);
  void run(const Body& body);
  std::optional<Scalar> of(const Operand& operand) const;
  // The value that this one always is, itself if no other.
  Operand same_as(const Operand& operand) const;
  // Whether a dividend was 0 and its divisor not known to be another number.
  bool has_undecided_quotient() const { return has_undecided_quotient_; }
  // What is known of one result of a body.
  struct Known {
    std::optional<Scalar> is;
    Operand same_as;
    bool never_zero = false, positive = false;
  };
  // The body's results are noted when it is run, so that conditions around it count: none if it never was.
  void watch(const Body& body) { watched_ = &body; }
  const std::optional<std::vector<Known>>& watched() const { return watched_results_; }

 private:
  // What holds inside of a branch alone.
  struct Facts {
    std::unordered_map<Value, Scalar> known;
    std::unordered_map<Value, Operand> same;
    std::set<Value> never_zero, positive;
  };
  void statement(const Stm& stm);
  std::optional<Scalar> scalar(const Stm& stm);
  std::optional<Scalar> binary(const Binary& op);
  std::optional<Scalar> comparison(const Compare& compare) const;
  void branch(const If& branch, const Stm& stm);
  std::vector<Known> results_of(const Body& body) const;
  std::vector<Known> results_assuming(const Operand& condition, bool holds, const Body& body);
  void assume(const Operand& condition, bool holds);
  void assume_either(const std::vector<std::pair<Operand, bool>>& one,
                     const std::vector<std::pair<Operand, bool>>& other);
  void assume_comparison(const Compare& compare, bool holds);
  template <class T>
  const T* defined_by(const Operand& x) const;
  bool is_never_zero(const Operand& x) const;
  bool is_positive(const Operand& x) const;
  bool is_non_negative(const Operand& x) const;
  void reduction(const Screma& screma, const Stm& stm);

  const ValueTable& values_;
  Facts facts_;
  std::unordered_map<Value, const Stm*> definitions_;
  std::set<std::pair<Value, Value>> order_;
  const Body* watched_ = nullptr;
  std::optional<std::vector<Known>> watched_results_;
  bool has_undecided_quotient_ = false;
  bool finite_ = true;
};

// Why a reduction is not one over non-zeros, as what it folds for an absent element is not known to change nothing.
Reason zero_not_neutral(const std::string& name, const ZeroPropagation& zeros);

// Equal, but for the sign of a zero.
bool same_number(const Scalar& a, const Scalar& b);

}  // namespace apl::sparsify
