// Sums over the non-zeros of a row (or column), as kernels.
#pragma once

#include "passes/sparsify/nonzeros.h"
#include "passes/sparsify/sparsify.h"

namespace apl::sparsify {

// An operand that has A's pattern, with the dims of its batches; by its elements.
struct SparseOperand {
  const SparseArray* array = nullptr;
  std::vector<std::size_t> batches;
};
using SparseOperands = std::map<Value, SparseOperand>;

// Operands of another pattern, or of A's read at another place, along the last dim of the space.
struct SecondOperands {
  const Pattern* pattern = nullptr;
  bool by_columns = false;  // the summed dim counts its columns
  SparseOperands elements;
  const SparseArray* array = nullptr;  // one of them
};

// Elements of an array by the indices of the dims: each axis of the array is one dim, or else as one row of elements.
struct Reader {
  const ContractionOperand* operand = nullptr;
  Value array;                                      // none: the elements are indices, or those of a sparse array
  std::vector<std::optional<std::size_t>> by_axis;  // dims; empty: by position
};

class Sums {
 public:
  // `own` is the space dim of A's rows (or columns), `summed` the contracted dim of the others.
  Sums(const Contraction& contraction, const Pattern& pattern, const SparseOperands& ours, std::size_t own,
       std::size_t summed, bool by_columns, Builder& host);

  // A thread for each element.
  SegOp elements();
  // A thread for each row of elements, where there are rows and one summed dim.
  bool has_rows() const;
  SegOp rows();
  // The rows of sums go over the non-zeros of these operands, whose absent elements change nothing.
  void meet(SecondOperands second) { second_ = std::move(second); }
  // Kernels over the tiles of a plan, which give what `kernel` does; its operator is commutative, and A's columns are
  // summed.
  void tiles(const Stm& kernel, bool fused);

 private:
  struct Nonzero {
    Value other;                      // the index in the other dim (i64)
    std::map<Value, Value> elements;  // of the operands, by what stands for them in the map function
  };
  Value index_value(const std::string& hint);
  // The row of a tile (i64), and its part of the sums.
  std::vector<Operand> tile_row(TileKind kind, const Poly& at, Substitution here, Builder& out);
  Scatter tile_kernel(const std::vector<TileKind>& kinds, const std::vector<Value>& targets);
  void open_space(SegOp& made, std::size_t dims);
  NonzeroRange range(const SegOp& made, Builder& thread);
  Nonzero nonzero(const NonzeroRange& range, Value p, Builder& term);
  // Elements of operands at a non-zero of theirs; `here` has the batches' indices.
  std::map<Value, Value> read_at(const SparseOperands& operands, const Poly& at, const Substitution& here,
                                 Builder& term);
  // One step of a row of sums: at a non-zero of A, over the row's elements.
  std::vector<Value> add_to_row(const Nonzero& nonzero, const std::vector<Value>& rows, const std::vector<Type>& types,
                                Builder& step);
  // The operands' elements at a non-zero; `here` has the space's indices.
  Nonzero elements_at(Value other, const Poly& at, const Substitution& here, Builder& term);
  // The map function's results for a non-zero, where `here` has all indices.
  std::vector<Operand> term(const Nonzero& nonzero, Substitution here, Builder& out);
  std::vector<Operand> epilogue(const std::vector<Operand>& sums, const Substitution& here, Builder& out);

  const Contraction& contraction_;
  const Pattern& pattern_;
  const SparseOperands ours_;
  std::size_t own_, summed_;
  bool by_columns_;
  Builder& host_;
  ValueTable& values_;
  std::vector<Reader> readers_, uniform_;
  std::optional<SecondOperands> second_;
  Substitution here_;  // the space's indices
};

}  // namespace apl::sparsify
