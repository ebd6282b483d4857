// What elements that a sparse array does not have fold into a reduction: nothing, or terms that stand for all of them.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "passes/analysis/zero_propagation.h"

namespace apl::sparsify {

// What stands for the absent elements from one index to another, by operator.
enum class Absent : std::uint8_t {
  nothing,  // their terms are the neutral element
  once,     // one term for all of a row: max, whose terms are 0
  first,    // of each run of neighbours its first one: of the argmax with the smallest index
  last,     // its last one
};

struct AbsentTerms {
  std::vector<Absent> operators;  // one for each of the reduction's
  std::vector<std::variant<Scalar, Poly>>
      results;  // of the map function: a number, or an i64 that rises with the index

  bool have(Absent kind) const;
  bool are_nothing() const;
  bool are_runs() const { return have(Absent::first) || have(Absent::last); }
};

// For a reduction along its dim `dim`, where `zero` are 0. `around` is an operation that has it in its bodies, or
// itself: its conditions count.
std::variant<AbsentTerms, Reason> absent_terms(const Screma& reduction, std::size_t dim, const std::vector<Value>& zero,
                                               const Op& around, const std::string& name, const ValueTable& values);

// The terms of operator `r` at an index, as operands.
std::vector<Operand> terms_at(const AbsentTerms& terms, const Screma& reduction, std::size_t r, std::size_t dim,
                              const Poly& at, const Substitution& here, Builder& out);

}  // namespace apl::sparsify
