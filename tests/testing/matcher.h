// Equality of operations up to a renaming of values.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "ir/module.h"

namespace apl::testing {

class Matcher {
 public:
  Matcher(const Function& a, const Function& b) : a_(a), b_(b) {}

  // Empty if the functions are equal, else where they first differ.
  std::string function();

 private:
  bool bind(Value x, Value y);
  bool bind(const std::vector<Value>& x, const std::vector<Value>& y);
  bool bound_types(const std::vector<Value>& x, const std::vector<Value>& y);

  bool same(Value x, Value y) const;
  bool same(const Poly& x, const Poly& y) const;
  bool same(const Operand& x, const Operand& y) const;
  bool same(const Lmad& x, const Lmad& y) const;
  bool same(const Type& x, const Type& y) const;
  bool same(const DimIndex& x, const DimIndex& y) const;
  bool same(const Attribute& x, const Attribute& y) const;
  bool same(const KernelResult& x, const KernelResult& y) const;
  bool same(const TileGuard& x, const TileGuard& y) const;
  bool same(const TileCondition& x, const TileCondition& y) const {
    return same(x.at.start, y.at.start) && same(x.at.strides, y.at.strides) && same(x.bound, y.bound);
  }
  bool same(const TileGather& x, const TileGather& y) const {
    return same(x.positions, y.positions) && same(x.at.start, y.at.start) && same(x.at.strides, y.at.strides) &&
           same(x.stride, y.stride);
  }
  bool same(const TileRead& x, const TileRead& y) const {
    return x.array.has_value() == y.array.has_value() && (!x.array || same(*x.array, *y.array)) &&
           same(x.at.start, y.at.start) && same(x.at.strides, y.at.strides);
  }
  bool same(const TileOperand& x, const TileOperand& y) const;
  bool same(const std::variant<std::string, Operand>& x, const std::variant<std::string, Operand>& y) const;
  template <class T>
  bool same(const std::vector<T>& x, const std::vector<T>& y) const {
    if (x.size() != y.size()) return false;
    for (std::size_t k = 0; k < x.size(); ++k)
      if (!same(x[k], y[k])) return false;
    return true;
  }
  template <class T>
  bool same(const std::optional<T>& x, const std::optional<T>& y) const {
    return x.has_value() == y.has_value() && (!x || same(*x, *y));
  }

  // Not const: they bind.
  bool match(const BodyPtr& x, const BodyPtr& y);
  bool match(const Lambda& x, const Lambda& y);
  bool match(const ReduceOp& x, const ReduceOp& y);
  bool match(const Stm& x, const Stm& y);

  bool match(const Use& x, const Use& y) { return same(x.x, y.x); }
  bool match(const Unary& x, const Unary& y) { return x.op == y.op && same(x.x, y.x); }
  bool match(const Binary& x, const Binary& y) { return x.op == y.op && same(x.x, y.x) && same(x.y, y.y); }
  bool match(const Compare& x, const Compare& y) { return x.op == y.op && same(x.x, y.x) && same(x.y, y.y); }
  bool match(const Convert& x, const Convert& y) {
    return x.to == y.to && x.same_bits == y.same_bits && same(x.x, y.x);
  }
  bool match(const SizeExpr& x, const SizeExpr& y) { return same(x.value, y.value); }
  bool match(const Index& x, const Index& y) {
    return same(x.array, y.array) && same(x.dims, y.dims) && x.checked == y.checked;
  }
  bool match(const Update& x, const Update& y) {
    return same(x.array, y.array) && same(x.dims, y.dims) && same(x.value, y.value) && x.checked == y.checked;
  }
  bool match(const Iota& x, const Iota& y) {
    return x.element == y.element && same(x.count, y.count) && same(x.start, y.start) && same(x.stride, y.stride);
  }
  bool match(const Replicate& x, const Replicate& y) { return same(x.shape, y.shape) && same(x.value, y.value); }
  bool match(const Scratch& x, const Scratch& y) { return x.element == y.element && same(x.shape, y.shape); }
  bool match(const Copy& x, const Copy& y) { return same(x.array, y.array); }
  bool match(const Rearrange& x, const Rearrange& y) {
    return same(x.array, y.array) && x.permutation == y.permutation;
  }
  bool match(const Manifest& x, const Manifest& y) { return same(x.array, y.array) && x.permutation == y.permutation; }
  bool match(const Reshape& x, const Reshape& y) { return same(x.array, y.array) && same(x.shape, y.shape); }
  bool match(const ArrayLit& x, const ArrayLit& y) {
    return same(x.element, y.element) && same(x.elements, y.elements);
  }
  bool match(const Assert& x, const Assert& y) { return same(x.condition, y.condition) && same(x.message, y.message); }
  bool match(const If& x, const If& y);
  bool match(const Choose& x, const Choose& y);
  bool same(const Schedule& x, const Schedule& y) const;
  bool same(const SparseSchedule& x, const SparseSchedule& y) const;
  bool match(const Loop& x, const Loop& y);
  bool match(const Apply& x, const Apply& y) { return x.function == y.function && same(x.arguments, y.arguments); }
  bool match(const GetSize& x, const GetSize& y) {
    return x.name == y.name && x.size_class == y.size_class && x.default_value == y.default_value;
  }
  bool match(const Screma& x, const Screma& y);
  bool match(const Scatter& x, const Scatter& y);
  bool match(const Derivative& x, const Derivative& y);
  bool match(const SegOp& x, const SegOp& y);
  bool match(const SharedArray& x, const SharedArray& y) { return x.element == y.element && same(x.layout, y.layout); }
  bool match(const CopyTile& x, const CopyTile& y);
  bool match(const TileContract& x, const TileContract& y);
  bool match(const Alloc& x, const Alloc& y) { return same(x.bytes, y.bytes) && x.space == y.space; }
  bool match(std::monostate, std::monostate) { return true; }

  const Function& a_;
  const Function& b_;
  std::unordered_map<Value, Value> there_;  // a's values to b's
  std::unordered_map<Value, Value> back_;
  std::string where_;  // the innermost statements that differ
};

}  // namespace apl::testing
