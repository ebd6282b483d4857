// Straight code as a type of kernel text that is called with a sum, its row and its column (device_form.h's
// apl_sparse_after): what it reads are members, in the order of the parameters.
#pragma once

#include <string>
#include <vector>

#include "codegen/kernel_language.h"

namespace apl::kernel {

struct Functor {
  std::string name;
  CType sum_type;           // of the sum as the code has it
  std::string sum;          // names in the code
  std::string row, column;  // "": there is none
  ExprPtr result;
  std::vector<Param> members;  // parameters of the code that are not the three above
};
std::string print(const Functor& functor, const Function& code);

}  // namespace apl::kernel
