// Tokens of the textual IR.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/diagnostic.h"

namespace apl {

struct Token {
  enum class Kind : std::uint8_t { name, number, string, symbol, end };

  Kind kind = Kind::end;
  std::string_view text;  // into the parsed text
  std::string value;      // of a string: its characters, escapes resolved
  Location location;

  bool is(std::string_view symbol_or_word) const {
    return (kind == Kind::symbol || kind == Kind::name) && text == symbol_or_word;
  }
};

// What lexer and parser throw at the first error; parse_module turns it into a diagnostic. An exception, because
// every step of a recursive descent would have to pass a Result on; it never leaves parse_module.
struct SyntaxError {
  Location location;
  std::string message;
};

// The tokens, ended by one of kind `end`. Numbers are as they stand (`3i32`, `1.5e-3f32`, `17`), and so are
// the constants `f32.nan` and `f32.inf`, which are names here.
std::vector<Token> tokenise(std::string_view text);

}  // namespace apl
