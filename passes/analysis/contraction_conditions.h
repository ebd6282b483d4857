// What the code of a contraction's kernel says of numbers and conditions, as far as that is affine.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "passes/analysis/contractions.h"

namespace apl {

class Definitions {
 public:
  explicit Definitions(const ValueTable& values) : values_(values) {}

  // Statements that may be looked at, with those in their bodies; they outlive this.
  void add(const Stm& stm);

  // Null where the value is bound elsewhere.
  const Stm* find(Value v) const;
  // An i64 as a polynomial of values that are none of those made here by arithmetic.
  std::optional<Poly> number(const Operand& x) const;
  // Polynomials that are all non-negative if and only if the condition has this outcome; nullopt: there are none.
  std::optional<std::vector<Poly>> when(const Operand& condition, bool outcome) const;

 private:
  std::optional<std::vector<Poly>> all_of(const Operand& a, const Operand& b, bool outcome) const;

  const ValueTable& values_;
  std::map<Value, const Stm*> made_;
};

// offset + sum of strides[d] * dims[d].index; or the dim in which it is not affine.
struct AffineOutcome {
  ContractionAffine affine;
  std::optional<std::size_t> not_affine_in;
};
AffineOutcome affine_in_dims(const Contraction& contraction, const Poly& number);

// The same as conditions, two that bound one number from both sides as one; nullopt: not all are affine in the dims.
std::optional<std::vector<ContractionCondition>> conditions_of(const Contraction& contraction,
                                                               const std::vector<Poly>& non_negative);

}  // namespace apl
