// The lexical rules that printer and parser share.
#pragma once

#include <string>
#include <string_view>

namespace apl {

constexpr bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_name_rest(char c) { return is_name_start(c) || is_digit(c) || c == '\''; }

// Words that cannot name a value. Names of operations are not among them where a `(` tells them apart.
bool is_reserved(std::string_view word);

// Shaped like a name: as one of a function, an entry or an attribute it may stand without quotes. One of a
// value must not be reserved either.
bool is_name_shaped(std::string_view text);

// In quotes, with escapes for `"`, `\` and control characters; other bytes stand as they are.
std::string quote(std::string_view text);
// As it is where it is a name or a number, else quoted: the argument of an attribute.
std::string argument_text(std::string_view text);
// As it is where it is a name, else quoted.
std::string name_or_quote(std::string_view text);

}  // namespace apl
