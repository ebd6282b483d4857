// The forward walk of simplify and what its rules share. Rules are grouped by operation, one file a group; each
// looks at one statement whose operands are already simplified and at the definitions before it.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/builder.h"
#include "ir/poly_range.h"
#include "ir/walk.h"
#include "passes/analysis/consumption.h"
#include "passes/analysis/map_uses.h"

namespace apl {

// What a rule did with a statement.
enum class Fired : std::uint8_t {
  none,   // nothing
  again,  // changed it: other rules may now apply
  gone,   // its results stand for something else (bind): it is dropped
};

class Simplifier {
 public:
  // Works on `function` in place; `stage` decides what may move to the host.
  Simplifier(Function& function, const Module& module);

  // One walk over the body. True if something changed.
  bool run();

 private:
  using Out = std::vector<Stm>;

  // ---- the walk (simplifier.cpp)
  BodyPtr body(const BodyPtr& body, bool reduction_operator = false);
  void statement(Stm stm);
  void rewrite_uses(Stm& stm);
  void rewrite_type(Value value);
  Operand rewrite(const Operand& operand) const;
  Value rewrite(Value value) const;
  Poly rewrite(const Poly& poly) const;
  Poly rewrite_size(const Poly& poly) const;
  void nested_bodies(Stm& stm);
  void define(const Stm& stm);
  Fired apply_rules(Stm& stm);

  // ---- for rules
  ValueTable& values() { return function_.values; }
  // Statements made before the one at hand; they are simplified as they come.
  Operand emit(const Stm& at, std::string name, Op op);
  // Whether the statement says where an array or block lies. Others may read or write there under another name, so at
  // the memory stage such a statement stays where and what it is.
  bool places(const Stm& stm) const;
  void bind(Value result, const Operand& stands_for);
  Fired use(Stm& stm, const Operand& x);  // the statement's only result is x
  template <class T>
  const T* definition(const Operand& operand) const;
  template <class T>
  const T* definition(Value value) const;
  std::string name_of(const Stm& stm) const { return function_.values.name(stm.pattern.front()); }

  // ---- questions about sizes (sizes.cpp)
  SizeFacts facts_for(const std::vector<const Poly*>& polys) const;
  bool non_negative(const Poly& p) const;
  bool less(const Poly& a, const Poly& b) const;
  bool in_bounds(const Type& array, const std::vector<DimIndex>& dims) const;
  bool in_bounds_either_way(const Type& array, const std::vector<DimIndex>& dims);
  bool size_like(const Poly& p) const;  // all its symbols are known to be bounded: sizes and indices
  bool safe_size(const Poly& p) const;  // may be the size of an array (ir/poly_range.h)
  std::optional<Poly::Division> parts_of_flat(const Poly& x, const Poly& y) const;
  static std::pair<std::int64_t, std::int64_t> range_of(ScalarType type);
  bool stays_in(const Operand& x, ScalarType type) const;
  void know_converted(Value value, const Convert& op);
  void know_index(Value index, const Poly& bound);
  void know_size(Value size, std::int64_t at_least);
  void know_dim(Value size);
  void know_shape(const Type& type);
  void know_condition(const Operand& condition, bool holds);
  void know_compared(const Compare& compare, bool holds);
  void know_non_zero(const Compare& compare, bool holds);
  bool never_zero(const Operand& x) const;
  void know_non_negative(const Poly& p);
  void forget(std::size_t learned);                   // what was learned since there were so many facts
  std::optional<Poly> as_size(const Stm& stm) const;  // what an i64 statement computes

  // ---- rules (scalars.cpp, indices.cpp, views.cpp, branches.cpp, soacs.cpp)
  Fired unary(Stm& stm, const Unary& op);
  Fired binary(Stm& stm, const Binary& op);
  std::optional<BinaryOp> simpler_division(const Binary& op) const;
  Fired wrapped_index(Stm& stm, const Binary& op);
  Fired compare(Stm& stm, const Compare& op);
  Fired convert(Stm& stm, const Convert& op);
  Fired size(Stm& stm, const SizeExpr& op);
  Fired assertion(Stm& stm, const Assert& op);
  Fired index(Stm& stm, const Index& op);
  Fired index_of_view(Stm& stm, const Index& op);
  Fired index_of_slice(Stm& stm, const Index& op, const Index& slice);
  Fired index_of_rearrange(Stm& stm, const Index& op, const Rearrange& source);
  Fired index_of_reshape(Stm& stm, const Index& op, const Reshape& source);
  Fired index_of_replicate(Stm& stm, const Index& op, const Replicate& source);
  Fired index_of_iota(Stm& stm, const Index& op, const Iota& source);
  Fired rearrange(Stm& stm, const Rearrange& op);
  Fired reshape(Stm& stm, const Reshape& op);
  Fired copy(Stm& stm, const Copy& op);
  bool may_be_one(Value copy, Value array) const;
  bool copy_of_transposed(Stm& stm, Value array);
  Fired manifest(Stm& stm, const Manifest& op);
  Fired replicate(Stm& stm, const Replicate& op);
  Fired taken(const Stm& stm, const Body& body);  // the statement stands for the body
  Fired branch(Stm& stm, const If& op);
  Fired choose(Stm& stm, const Choose& op);
  Fired loop(Stm& stm, const Loop& op);
  Fired computed(const Stm& stm);
  Fired call(const Stm& stm, const Apply& op);
  Fired screma(Stm& stm, const Screma& op);
  Fired scatter(Stm& stm, const Scatter& op);
  template <class Soac>
  Fired soac_inputs(Stm& stm, const Soac& op);
  Fired screma_results(Stm& stm, const Screma& op);
  bool map_of_view(const Stm& stm, const Screma& op, std::size_t result, Value row);
  Fired screma_of_flattened(Stm& stm, const Screma& op);
  std::optional<std::vector<Poly>> flattened_dims(const Screma& op) const;
  std::optional<std::pair<std::size_t, std::vector<Poly>>> divided_dim(const Screma& op) const;
  Fired split_dim(Stm& stm, const Screma& op, std::size_t split, const std::vector<Poly>& dims);
  // Statements that compute element `index` of an iota; nullopt for element types whose arithmetic rounds.
  std::optional<Operand> iota_element(const Iota& iota, const Poly& index, Location location, Out& out);

  // ---- code motion out of loops, lambdas and kernels (hoist.cpp)
  void hoist(const Op& op, Body& inner);
  bool may_hoist(const Stm& stm, const Op& from) const;
  void hoist_check(Stm stm, const std::vector<Poly>& widths);
  bool harmless(const Op& op) const;  // cannot fail where it did not run before
  bool harmless(const Poly& poly) const;

  Function& function_;
  const Module& module_;
  Consumption consumption_;
  Substitution replaced_;
  std::unordered_map<Value, Poly> sizes_;  // i64 values that are polynomials over others
  std::unordered_map<Value, Op> definitions_;
  std::unordered_map<Value, If> branches_;  // scalars that are one of two
  struct Bounds {
    std::vector<Poly> low, high;
    SymbolRange::Kind kind = SymbolRange::Kind::number;
    bool non_zero = false;  // an integer of any type
  };
  SymbolRange range_of(Value v, int depth) const;
  SymbolRange interval_of(const Poly& p) const;
  RangeOf ranges(int depth) const;
  void know_product(const std::vector<Factor>& sizes);
  bool of_one_array(const std::vector<Factor>& sizes) const;
  std::unordered_map<Value, Bounds> bounds_;
  // Of whom, and what was known before; nobody: the last product.
  std::vector<std::pair<Value, Bounds>> learned_;
  std::set<std::vector<Factor>> products_;
  std::vector<std::vector<Factor>> learned_products_;
  Out* out_ = nullptr;
  int parallel_depth_ = 0;  // enclosing parallel constructs
  bool in_operator_ = false;
  bool in_team_ = false;  // in a kernel whose teams share its one operation
  bool changed_ = false;
};

template <class T>
const T* Simplifier::definition(Value value) const {
  const auto found = definitions_.find(value);
  return found == definitions_.end() ? nullptr : std::get_if<T>(&found->second);
}

template <class T>
const T* Simplifier::definition(const Operand& operand) const {
  return operand.is_value() ? definition<T>(operand.value()) : nullptr;
}

}  // namespace apl
