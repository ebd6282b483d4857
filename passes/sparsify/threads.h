// Reads of sparse arrays wherever they are in a kernel: reductions along a row or column, and single elements.
#pragma once

#include "passes/analysis/absent.h"
#include "passes/sparsify/accesses.h"

namespace apl::sparsify {

// What became of one kernel, or of another statement with bodies.
struct ThreadReads {
  Stm stm;
  std::vector<const SparseArray*> reductions;  // that go over non-zeros: whose
  std::vector<const SparseArray*> look_ups;    // of elements in their rows: whose
  // Why a reduction, or an element, reads an array as a dense one: by the array.
  std::map<Value, Reason> refused;
  bool has_changed() const { return !reductions.empty() || !look_ups.empty(); }
};

// A reduction in the statement that goes along a whole row (column) of a sparse array goes over its non-zeros; what
// else it reads are elements that are looked up in their rows, unless these are all elements of the matrix. `accesses`
// has the views that the statement reads.
ThreadReads read_in_threads(const Stm& stm, const SparseArrays& arrays, const Accesses& accesses, ValueTable& values);

}  // namespace apl::sparsify
