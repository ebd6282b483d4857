// The operators' texts.
#pragma once

#include <string>
#include <vector>

#include "tests/contractions/spec.h"

namespace apl::contraction_tests {

struct OperatorText {
  std::string op, neutral;  // for reduce
  std::string sum;          // the prelude's function for it, or empty
  std::string result;       // type of an element
  int arrays = 1;           // that stand for one operand
  ScalarType stored{};      // type of the operands' elements
};
OperatorText operator_text(const Spec& spec);

// What is multiplied for an element, with one of a further array if there is one.
std::string factor_text(Factor factor, ScalarType type, const std::string& element, const std::string& further,
                        const std::string& index);

// The map function: of an element of each array, operand by operand, and of the reduction's index (argmin).
std::string map_text(const Spec& spec, const std::vector<std::string>& elements, const std::string& index);

}  // namespace apl::contraction_tests
