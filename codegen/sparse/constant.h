// Code for products with a matrix that is known when the program is compiled: its structure and values are the code.
// The text is written from the matrix, not from IR; what it means is the kernel whose place it takes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "codegen/sparse/proxy.h"
#include "codegen/sparse/sections.h"
#include "ir/op.h"

namespace apl::lower {

struct ConstantProduct {
  std::string name;                 // of the function, in the file
  const HostCsr* matrix = nullptr;  // its values have the type of B's elements
  SparseSchedule::Sections sections;
  ScalarType result = ScalarType::unit;  // of C
  std::optional<ProxyOptions> proxy;     // instead of the product itself
  std::optional<std::int64_t> b_row;     // how far rows of B lie apart, if that is known
};

// The functions, and which section runs which one.
SectionUses constant_functions(const ConstantProduct& product);

// What sums are in: f32 for floats of 16 bits, the type itself for others.
ScalarType constant_sum_type(ScalarType element);

// A number as C, C++ and CUDA write it, exactly; finite.
std::string constant_text(const HostValue& values, std::int64_t nonzero);

// C11 with vectors of gcc and clang:
//   static void NAME(const void* b, int64_t b_row, void* c, int64_t c_row, int64_t width)
// makes all of C with the threads of runtime/backends/threads.h. `width` is a multiple of nothing, and at least
// `sections.columns`.
std::string print_constant_c(const ConstantProduct& product);

// A kernel for GPUs. What is known when the program runs are macros that stand before: APL_CONSTANT_NAME, the kernel's
// name, and APL_CONSTANT_B_ROW, how far rows of B lie apart. Its arguments are B, C, how far rows of C lie apart (i64),
// the width (i64), and the epilogue, if there is one. It has a block for each section and strip of columns, a group of
// threads for each piece, and a thread for each column: `blocks` times the strips are launched.
struct DeviceText {
  std::string text;
  std::int64_t sections = 0, threads = 0, shared_bytes = 0;
};
// `epilogue`: the name of its type and its definition, or empty texts.
DeviceText print_constant_device(const ConstantProduct& product, const std::string& epilogue_type,
                                 const std::string& epilogue_text, int warp);

}  // namespace apl::lower
