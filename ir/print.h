// Textual IR out. Printer and parser (ir/parse.h) are inverse, byte for byte; grammar in docs/ir.md.
#pragma once

#include <string>

#include "ir/module.h"

namespace apl {

struct PrintOptions {
  // Trailing `@line:column-line:column` on statements; in a module also the calls that were inlined, each after `from`.
  bool locations = false;
};

std::string print(const Module& module, const PrintOptions& options = {});
std::string print(const Function& function, const PrintOptions& options = {});
// For messages and tests: one statement, type or polynomial with the function's names.
std::string print(const Stm& stm, const Function& function);
std::string print(const Type& type, const Function& function);
std::string print(const Poly& poly, const Function& function);
std::string print(const Operand& operand, const Function& function);

}  // namespace apl
