// Straight code as a type of kernel text that is called with a sum, its row, its column and perhaps the non-zero's
// number (context.h's apl_sparse_epilogue): what it reads are members, in the order of the parameters.
#pragma once

#include <string>
#include <vector>

#include "codegen/kernel/kernel_language.h"

namespace apl::kernel {

struct Functor {
  std::string name;
  CType sum_type;                    // of the sum as the code has it
  std::string sum;                   // names in the code
  std::string row, column, nonzero;  // "": it does not read it
  bool counts_nonzeros = false;      // it is called with the non-zero's number
  ExprPtr result;
  std::vector<Param> members;  // parameters of the code that are not those above
};
std::string print(const Functor& functor, const Function& code, const Dialect& dialect);

}  // namespace apl::kernel
