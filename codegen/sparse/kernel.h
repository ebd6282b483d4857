// A kernel over the non-zeros of a sparse argument, as codegen/sparse/products looks at it: its one sum, what is read
// where, and what stands behind the sum.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "codegen/sparse/products.h"
#include "ir/sparse_soa.h"

namespace apl::lower {

class SparseKernel {
 public:
  // `why` (may be null) is set when something does not fit.
  SparseKernel(const Stm& stm, const apl::Function& function, std::string* why);

  // Always nullopt: with the reason.
  std::nullopt_t refuse(std::string reason) const {
    if (why_ != nullptr && why_->empty()) *why_ = std::move(reason);
    return std::nullopt;
  }

  // Whether it belongs to a sparse operand at all.
  bool is_sparse() const { return is_sparse_; }
  bool fits() const { return fits_; }
  const SegOp& op() const { return *op_; }
  const Screma& sum() const { return *sum_; }
  Value summed() const { return sum_stm_->pattern.front(); }
  Operand term() const { return sum_->map.body->results.front(); }
  Operand result() const { return op_->body->results.front(); }
  const Type& type(Value v) const { return function_.type(v); }

  template <class T>
  const T* defined_by(const Operand& x) const {
    const auto found = x.is_value() ? definitions_.find(x.value()) : definitions_.end();
    return found == definitions_.end() ? nullptr : std::get_if<T>(&found->second->op);
  }
  // Through conversions between floats of the same argument.
  Operand bare(const Operand& x) const;
  // Element `at` of a whole one-dimensional array.
  std::optional<Value> element_of(const Operand& x, const Poly& at) const;
  bool is_whole(Value array) const;
  // What an index of type i32 was converted from, if x is one.
  std::optional<Operand> narrow(Value x) const;
  // The element's position in its block, where x is an element that is read; parameters of the sum, too.
  std::optional<std::pair<Value, Poly>> position(const Operand& x) const;
  ScalarType element_type(const Operand& x) const { return function_.values.type(x).element; }

  // position = offset + row * i + j (or with no j), with nothing else that the kernel computes.
  std::optional<DenseRows> rows(const std::pair<Value, Poly>& at, Value i, std::optional<Value> j) const;
  // position = offset + nonzero, where the offset has no more of the space than the batches of `nonzero`'s array.
  std::optional<Nonzeros> nonzeros(const std::pair<Value, Poly>& at, const Poly& nonzero) const;
  // The indices in a position that are elements `nonzero` of arrays.
  struct ReadIndex {
    Value index, array;
  };
  std::vector<ReadIndex> read_indices(const Poly& position, const Poly& nonzero) const;

  // values[first + p] times another factor, on either side, where p < count goes over the non-zeros of row i.
  struct RowTerms {
    Value i, row_start;
    Nonzeros values;
    ScalarType type{};  // of the values
    Poly nonzero;       // first + p
    Operand other;
    std::vector<SegDim> others;  // of the space
  };
  std::optional<RowTerms> row_terms(const Operand& term, Value p, Poly count) const;

  // The struct of arrays that has the array as that field.
  struct Parameter {
    Poly rows, columns, nonzeros;
  };
  std::optional<Parameter> parameter(Value array, SoaField field) const;

  // The statements that make the result from the sum and from `given`, which the runtime's kernels know; nullopt if
  // they cannot stand behind one. None: the result is the sum, perhaps rounded.
  std::optional<std::vector<Stm>> epilogue(const std::vector<Value>& given) const;
  // The same, in the body of a lambda over sums, or behind the loop.
  std::optional<std::vector<Stm>> epilogue(const Body* lambda, const Operand& result, Value sum,
                                           const std::vector<Value>& given) const;
  // Why a loop cannot make the results from sums that are where they belong; empty if it can.
  std::string why_not_in_place(const SparseEpilogue& epilogue) const;

 private:
  void define(const Stm& inner, bool in_sum);

  const apl::Function& function_;
  const Stm& stm_;
  std::string* why_;
  const SegOp* op_ = nullptr;
  const Screma* sum_ = nullptr;
  const Stm* sum_stm_ = nullptr;
  bool is_straight_ = true;  // no branch or loop before the sum or in it, no other sum
  bool is_sparse_ = false, fits_ = false;
  std::map<Value, const Stm*> definitions_;
  std::set<Value> local_;
};

}  // namespace apl::lower
