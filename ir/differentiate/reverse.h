// Reverse mode: the function's statements, then their transposes from the last to the first.
#pragma once

#include <map>
#include <set>

#include "ir/differentiate/activity.h"
#include "ir/differentiate/partials.h"
#include "ir/walk.h"

namespace apl::differentiation {

// Cotangents of values that a scope reads or binds, as far as there are any; else they are zero. In the order of
// values, so that the text is the same every time.
using Cotangents = std::map<Value, Operand>;

// What the statements before the transposed ones keep for these.
struct Kept {
  std::vector<Value> arrays;  // of a loop: each parameter that its body reads, in each iteration
  Poly count;                 // of a loop: iterations
};

// What the lambda of a map adds to single rows of an array that it reads beside its inputs: added up outside by one
// histogram, so that no index of the map has a cotangent of the whole array.
struct RowSum {
  Value array;
  std::vector<Poly> widths;       // of the maps inside of the lambda that it comes from
  std::vector<Operand> position;  // arrays of these widths, or scalars
  Operand row;                    // the same of rows
};
struct RowSums {
  std::set<Value> arrays;
  std::vector<RowSum> sums;
  std::size_t known = 0;  // values that have been made before the lambda's own
};

class Reverse {
 public:
  Reverse(ValueTable& values, const RemarkSink& remarks, std::string function)
      : values_(values), remarks_(remarks), function_(std::move(function)), activity_(values) {}

  // Appends to `b` what the op's function computes of its arguments, and the cotangents of these; gives the operation's
  // results. The function's body is prepared (ir/differentiate/prepare.h).
  std::vector<Operand> run(Builder& b, const Derivative& op);

 private:
  // reverse.cpp: scopes and simple statements
  bool active(const Operand& x) const { return activity_.contains(x); }
  std::optional<Operand> cotangent(const Operand& x) const;
  Operand cotangent_or_zero(Builder& b, const Operand& x);
  void add(Builder& b, const Operand& x, const Operand& more);
  bool has_cotangent(const std::vector<Value>& pattern) const;
  std::vector<Value> active_free(const Body& body) const;
  // The statements, forth and back; `seed` gives the body's results their cotangents between the two.
  void sweep(Builder& b, const Body& body, const std::function<void()>& seed);
  // The same on a fresh copy of a body, with cotangents of its own; gives its results, with `map` applied.
  template <class Fill>
  auto scope(Cotangents start, const Fill& fill);
  Kept forth(Builder& b, const Stm& stm);
  void back(Builder& b, const Stm& stm, const Kept& kept);
  void simple(Builder& b, const Stm& stm);
  void back_size(Builder& b, const Poly& size, const Operand& seed, Location location);
  // A value of its own for `x`, that the substitution puts in the place of `param`.
  Value fresh_param(Builder& b, Value param, const Operand& x, Substitution& map);

  // reverse_control.cpp
  Kept keep(Builder& b, const Stm& stm, const Loop& op);
  void back(Builder& b, const Stm& stm, const Loop& op, const Kept& kept);
  void back(Builder& b, const Stm& stm, const If& op);
  // From the last iteration to the first: `fill` gets the index and the cotangents of `carried`, and gives their next
  // ones; those of `outer` are in the scope. `carried` is what they start as; gives what they end as.
  std::vector<Value> backwards(
      Builder& b, const Poly& count, std::vector<Operand> carried, const std::vector<Value>& outer,
      const std::function<std::vector<Operand>(Builder&, const Poly& i, const std::vector<Value>& carried)>& fill);

  // reverse_soacs.cpp
  void back(Builder& b, const Stm& stm, const Screma& op);
  void back_map(Builder& b, const Stm& stm, const Screma& op);
  void back_sum(Builder& b, const Stm& stm, const Screma& op);
  void back_extremum(Builder& b, const Stm& stm, const Screma& op);
  void back_reduce(Builder& b, const Stm& stm, const Screma& op);
  void back_scan(Builder& b, const Stm& stm, const Screma& op);
  void add_rows(Builder& b, const RowSum& sum);
  void back_scatter(Builder& b, const Stm& stm, const Scatter& op, const Kept& kept);
  void back_hist(Builder& b, const Stm& stm, const Scatter& op, const Kept& kept);

  void remark(Location location, const std::string& message) const;

  ValueTable& values_;
  const RemarkSink& remarks_;
  std::string function_;
  Activity activity_;
  Cotangents* cotangents_ = nullptr;  // of the scope
  RowSums* row_sums_ = nullptr;       // of the scope, if it is a map's lambda
};

template <class Fill>
auto Reverse::scope(Cotangents start, const Fill& fill) {
  Cotangents* const outer = cotangents_;
  RowSums* const outer_sums = row_sums_;
  cotangents_ = &start;
  row_sums_ = nullptr;
  auto result = fill();
  cotangents_ = outer;
  row_sums_ = outer_sums;
  return result;
}

// Of `\\x y -> op(x, y)`, or of maps of that over rows.
std::optional<BinaryOp> as_elementwise_op(const Lambda& lambda);

}  // namespace apl::differentiation
