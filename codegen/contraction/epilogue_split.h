// The code after a contraction's reduction, apart from what it reads once for all elements of a row or of a column of
// the block (codegen/contraction/epilogue.cpp, stored_code.cpp).
#pragma once

#include <array>
#include <set>
#include <vector>

#include "ir/module.h"

namespace apl::lower {

// The code of an element, with the reads that are done once for all elements of a column or of a row.
struct Epilogue {
  struct Shared {
    std::vector<Stm> reads;
    std::vector<Stm> before;          // of the code, what they and their conditions follow from
    std::vector<Operand> conditions;  // under which they are inside
  };
  Lambda map;                    // without those reads: what they give are its last parameters
  std::array<Shared, 2> shared;  // along M alone, along N alone
};

// `indices`: of M and of N in the code; `sizes`: of the results along them. `all_inside`: the code is for elements
// inside of the results alone, so it needs no branch for others.
Epilogue split_epilogue(const Lambda& map, const std::array<std::set<Value>, 2>& indices,
                        const std::array<Poly, 2>& sizes, bool all_inside, const ValueTable& values);

// Whether the code needs one of these values.
bool uses_any(const std::vector<Stm>& code, const std::set<Value>& of, const ValueTable& values);
bool uses_any(const Body& body, const std::set<Value>& of, const ValueTable& values);

// The kernel's segmap whose code after the reduction is done where results are stored: it has one sum, all results are
// its own, and it reads an array along both M and N, or, behind matrix units of 8 and 16 bits, along either. None: it
// is done before, on the elements in registers.
const Stm* stored_code(const SegOp& kernel, const ValueTable& values);

}  // namespace apl::lower
