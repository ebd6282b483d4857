// Source text to tokens: longest match, one pass, never fails. What is no token becomes an `error` token with
// the reason, and the parser reports it where it meets it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/diagnostic.h"
#include "ir/scalar.h"

namespace apl::frontend {

enum class TokenKind : std::uint8_t {
  end,
  error,        // text: the reason
  identifier,   // text: the name
  constructor,  // text: the name, without `#`
  number,       // text: the digits as written, `literal` says what they mean
  character,    // literal: its code point
  string,       // text: its bytes, escapes resolved
  op,           // text: the operator, qualifier: `i32` of `i32.+`
  keyword,      // text
  punctuation,  // text: ( ) [ ] { } , : :> -> \ . .. ... ..< ..> = ! _ ~ ` ' '^ '~ ? ??? $ #[
  index,        // a `[` with no space before it, after a name, `)` or `]`
};

// What a number token says.
struct NumberToken {
  bool is_float = false;
  bool plain = false;         // decimal digits only: may name a tuple field
  std::uint64_t integer = 0;  // of an integer
  bool overflow = false;      // the integer does not fit 64 bits
  double real = 0;            // of a float, and of an integer that does not fit
  std::optional<ScalarType> suffix;
};

struct Token {
  TokenKind kind = TokenKind::end;
  Location location;
  std::string text;
  std::string qualifier;  // of `op`, without the last dot
  NumberToken number;

  bool is(TokenKind k, std::string_view t) const { return kind == k && text == t; }
  bool is_keyword(std::string_view t) const { return is(TokenKind::keyword, t); }
  bool is_punctuation(std::string_view t) const { return is(TokenKind::punctuation, t); }
  bool is_op(std::string_view t) const { return is(TokenKind::op, t) && qualifier.empty(); }
  // `[` in either form.
  bool is_bracket() const { return kind == TokenKind::index || is_punctuation("["); }
  // As it is named in messages: `'let'`, `end of file`.
  std::string describe() const;
};

// The tokens of `text`, ended by one of kind `end`. Comments are dropped.
std::vector<Token> lex(std::string_view text);

// Whether `c` may begin an operator, or go on with it.
bool is_operator_start(char c);
bool is_operator_char(char c);

}  // namespace apl::frontend
