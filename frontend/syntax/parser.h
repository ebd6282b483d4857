// Tokens to the AST of ast.h: recursive descent over Futhark's grammar and precedences.
#pragma once

#include <string_view>

#include "frontend/syntax/ast.h"
#include "frontend/syntax/lexer.h"
#include "ir/diagnostic.h"

namespace apl::frontend {

// Never fails: a declaration that does not parse is reported and left out, and the next one is tried, so that
// one run reports several errors. Nesting is limited, so that no input overflows the stack.
Program parse_program(std::string_view text, const DiagnosticSink& sink);

// The declarations of another file of the program: their locations carry its number, their ids go on from the
// program's.
std::vector<Declaration> parse_file(std::string_view text, std::uint32_t file, Program& program,
                                    const DiagnosticSink& sink);

// A type standing alone with type parameters before it: `'a [n]. [n]a -> a`, as the prelude's table writes them.
struct TypeSignature {
  std::vector<TypeParam> params;
  TypeExprPtr type;
  std::uint32_t expr_count = 0;  // all ids are below this
};
// Its expressions (sizes) are numbered from `first_expr` on, so that they can share tables with a program's.
TypeSignature parse_signature(std::string_view text, std::uint32_t first_expr = 0);

// How tightly an operator binds, by its longest built-in prefix: `+^` binds like `+`.
struct Fixity {
  int precedence = 0;
  bool right = false;
};
Fixity fixity_of(std::string_view op);

}  // namespace apl::frontend
