// Diagnostics that comments of a text expect (`aplc opt --verify-diagnostics`), as MLIR's tests write them.
//
//   let {y : i32} = add(x, z)  -- expected-error {{unknown name}}
//   -- expected-error@+1 {{two entries have this name}}
//   -- expected-remark@* {{is tiled [tile-contraction:tiled]}}
//
// Kinds are error, warning, note and remark. Without `@` the diagnostic is on the comment's line; `@+N` and `@-N` count
// lines from there, `@above` and `@below` are the neighbours, `@*` is any place or none. The text in braces is part of
// `message [code]`. Every error and warning has to be expected; notes and remarks only may be.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/diagnostic.h"

namespace aplc {

struct Expectation {
  std::string kind;
  std::optional<std::uint32_t> line;  // none: any
  std::string text;
  std::uint32_t at = 0;  // the line of the comment
};

// Code command.bad-argument for a comment that says `expected-` and cannot be read.
apl::Result<std::vector<Expectation>> read_expectations(const std::string& text);

// One error, of code check.diagnostics, for each expectation that nothing meets and each error or warning that is
// expected by none.
std::vector<apl::Diagnostic> compare_diagnostics(const std::vector<Expectation>& expected,
                                                 const std::vector<apl::Diagnostic>& diagnostics,
                                                 const std::vector<apl::Remark>& remarks);

}  // namespace aplc
