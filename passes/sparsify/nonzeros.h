// Statements that go through the non-zeros of a row or column, or look one up.
#pragma once

#include "passes/sparsify/sparsify.h"

namespace apl::sparsify {

// The non-zeros of a row (column): from `first` on, `count` of them, up to `last`.
struct NonzeroRange {
  Value first, last, count;
};
NonzeroRange nonzero_range(const Pattern& pattern, const Poly& at, bool by_columns, Builder& out,
                           const std::vector<Value>& certificates = {});

// A non-zero: where it is in the array of values, and its index in the other dim (i64).
struct NonzeroAt {
  Poly nonzero;
  Value other;
};
// The one at `position`, counted row by row (column by column); `name` is that of the other dim's index.
NonzeroAt nonzero_at(const Pattern& pattern, const Poly& position, bool by_columns, const std::string& name,
                     Builder& out);

// The array's element at any row and column, by a binary search among the row's non-zeros: the value `element`.
void look_up(Value element, const SparseArray& array, const std::vector<Poly>& batches, const Poly& row,
             const Poly& column, const std::vector<Value>& certificates, Builder& out);

// The certificate of a check that fails as the index does, which has no slices.
Value check_index(const Index& index, const Location& location, ValueTable& values, Builder& out);

}  // namespace apl::sparsify
