// Numbers (decimal, 0x, 0b, 0r, hexadecimal floats, `_` between digits, suffixes), characters and strings.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>

#include "frontend/syntax/cursor.h"
#include "frontend/syntax/lexer.h"

namespace apl::frontend {

namespace {

constexpr std::uint32_t kCodePoints = 0x110000;

bool is_digit_of(char c, int base) {
  if (base == 2) return c == '0' || c == '1';
  if (base == 8) return c >= '0' && c <= '7';
  if (base == 16) return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  return c >= '0' && c <= '9';
}

bool is_roman(char c) { return c != '\0' && std::string_view("IVXLCDM").find(c) != std::string_view::npos; }

unsigned digit_value(char c) {
  if (c >= 'a') return static_cast<unsigned>(c - 'a') + 10;
  if (c >= 'A') return static_cast<unsigned>(c - 'A') + 10;
  return static_cast<unsigned>(c - '0');
}

// Digits of `base`, `_` dropped.
std::string take_digits(Cursor& cursor, int base) {
  std::string digits;
  while (is_digit_of(cursor.peek(), base) || cursor.peek() == '_') {
    if (cursor.peek() != '_') digits += cursor.peek();
    cursor.advance();
  }
  return digits;
}

double parse_real(const std::string& digits, std::chars_format format) {
  double value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value, format);
  if (result.ec != std::errc::result_out_of_range) return value;
  // Too large or too small; the sign of the exponent tells which.
  const std::size_t exponent = digits.find_first_of("eEpP");
  const bool tiny = exponent != std::string::npos && exponent + 1 < digits.size() && digits[exponent + 1] == '-';
  return tiny || digits.starts_with("0.0") ? 0.0 : HUGE_VAL;
}

// The double next to an integer of any length.
double real_of_digits(const std::string& digits, unsigned base) {
  if (base == 10) return parse_real(digits, std::chars_format::general);
  if (base == 16) return parse_real(digits, std::chars_format::hex);
  std::string hexadecimal;  // four binary digits each
  for (std::size_t k = 0; k < digits.size();) {
    unsigned value = 0;
    do value = value * 2 + digit_value(digits[k++]);
    while ((digits.size() - k) % 4 != 0);
    hexadecimal += "0123456789abcdef"[value];
  }
  return parse_real(hexadecimal, std::chars_format::hex);
}

void set_integer(NumberToken& number, const std::string& digits, unsigned base) {
  for (char c : digits) {
    std::uint64_t next = 0;
    if (__builtin_mul_overflow(number.integer, std::uint64_t{base}, &next) ||
        __builtin_add_overflow(next, std::uint64_t{digit_value(c)}, &next))
      number.overflow = true;
    number.integer = number.integer * base + digit_value(c);  // the low bits
  }
  if (number.overflow) number.real = real_of_digits(digits, base);
}

void set_roman(NumberToken& number, std::string_view digits) {
  auto value = [](char c) {
    switch (c) {
      case 'I': return 1;
      case 'V': return 5;
      case 'X': return 10;
      case 'L': return 50;
      case 'C': return 100;
      case 'D': return 500;
      default: return 1000;
    }
  };
  std::int64_t sum = 0;
  for (std::size_t k = 0; k < digits.size(); ++k) {
    const bool subtract = k + 1 < digits.size() && value(digits[k]) < value(digits[k + 1]);
    sum += subtract ? -value(digits[k]) : value(digits[k]);
  }
  number.integer = static_cast<std::uint64_t>(sum);
}

void take_suffix(Cursor& cursor, NumberToken& number, bool integers, bool floats = true) {
  for (std::string_view suffix : {"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64"}) {
    const bool is_float_suffix = suffix[0] == 'f';
    if (!(is_float_suffix ? floats : integers) || !cursor.starts_with(suffix)) continue;
    cursor.advance(suffix.size());
    number.suffix = scalar_type_from_text(suffix);
    number.plain = false;
    if (is_float_suffix && !number.is_float) {
      number.is_float = true;
      if (!number.overflow) number.real = static_cast<double>(number.integer);
    }
    return;
  }
}

void lex_hexadecimal(Cursor& cursor, NumberToken& number) {
  cursor.advance(2);
  std::string digits = take_digits(cursor, 16);
  // A hexadecimal float must have an exponent: `0x1.8p3`.
  std::size_t ahead = 1;
  while (is_digit_of(cursor.peek(ahead), 16) || cursor.peek(ahead) == '_') ++ahead;
  const bool point = cursor.peek() == '.' && ahead > 1 && (cursor.peek(ahead) == 'p' || cursor.peek(ahead) == 'P');
  if (!point) {
    set_integer(number, digits, 16);
    return take_suffix(cursor, number, true);
  }
  cursor.advance();
  digits += '.' + take_digits(cursor, 16);
  digits += 'p';
  cursor.advance();
  if (cursor.peek() == '-') digits += '-';
  if (cursor.peek() == '-' || cursor.peek() == '+') cursor.advance();
  digits += take_digits(cursor, 10);
  number.is_float = true;
  number.real = parse_real(digits, std::chars_format::hex);
  take_suffix(cursor, number, false);
}

void lex_decimal(Cursor& cursor, NumberToken& number, bool after_dot) {
  std::string digits = take_digits(cursor, 10);
  number.plain = true;
  set_integer(number, digits, 10);
  // After a dot no float may stand: `x.0.1` is two projections.
  if (after_dot) return take_suffix(cursor, number, true, false);
  auto as_float = [&] { number.is_float = true, number.plain = false; };
  if (cursor.peek() == '.' && is_digit_of(cursor.peek(1), 10)) {
    as_float();
    cursor.advance();
    digits += '.' + take_digits(cursor, 10);
  }
  const std::size_t sign = cursor.peek(1) == '-' || cursor.peek(1) == '+' ? 1 : 0;
  if ((cursor.peek() == 'e' || cursor.peek() == 'E') && is_digit_of(cursor.peek(1 + sign), 10)) {
    as_float();
    digits += 'e';
    if (cursor.peek(1) == '-') digits += '-';
    cursor.advance(1 + sign);
    while (is_digit_of(cursor.peek(), 10)) digits += cursor.peek(), cursor.advance();
  }
  if (number.is_float) number.real = parse_real(digits, std::chars_format::general);
  take_suffix(cursor, number, !number.is_float);
  if (number.suffix && is_float(*number.suffix)) number.real = parse_real(digits, std::chars_format::general);
}

// What stands after a backslash: a code point in digits (decimal, or after `x` or `o`), or a letter or sign that means
// a character. It is behind the cursor in any case.
std::optional<std::uint32_t> take_escape(Cursor& cursor) {
  const int base = cursor.peek() == 'x' ? 16 : cursor.peek() == 'o' ? 8 : 10;
  const std::size_t digits = base == 10 ? 0 : 1;
  if (is_digit_of(cursor.peek(digits), base)) {
    std::uint32_t code = 0;
    for (cursor.advance(digits); is_digit_of(cursor.peek(), base); cursor.advance())
      code = std::min(code * static_cast<unsigned>(base) + digit_value(cursor.peek()), kCodePoints);
    return code < kCodePoints ? std::optional(code) : std::nullopt;
  }
  constexpr std::string_view kLetters = "ntrabfv\\\"'";
  constexpr std::string_view kMeanings = "\n\t\r\a\b\f\v\\\"'";
  const std::size_t known = cursor.at_end() ? std::string_view::npos : kLetters.find(cursor.peek());
  do cursor.advance();
  while ((static_cast<unsigned char>(cursor.peek()) & 0xC0U) == 0x80U);
  return known == std::string_view::npos ? std::nullopt
                                         : std::optional<std::uint32_t>(static_cast<unsigned char>(kMeanings[known]));
}

// The character of the escape here. One that is none makes the token an error at its location.
std::uint32_t lex_escape(Cursor& cursor, Token& token) {
  Cursor escape = cursor;
  escape.mark();
  escape.advance();
  const std::optional<std::uint32_t> code = take_escape(escape);
  const std::size_t from = cursor.position();
  cursor.advance(escape.position() - from);
  if (!code && token.kind != TokenKind::error) {
    token.kind = TokenKind::error;
    token.text = "unknown escape '" + std::string(cursor.slice(from)) + "'";
    token.location = escape.finish();
  }
  return code.value_or(0);
}

std::size_t utf8_length(char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (byte < 0xC0) return 1;
  if (byte < 0xE0) return 2;
  return byte < 0xF0 ? 3 : 4;
}

void append_utf8(std::string& text, std::uint32_t code) {
  auto put = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) return put(0xC0 | (code >> 6)), put(0x80 | (code & 63));
  if (code < 0x10000) return put(0xE0 | (code >> 12)), put(0x80 | ((code >> 6) & 63)), put(0x80 | (code & 63));
  put(0xF0 | ((code >> 18) & 7)), put(0x80 | ((code >> 12) & 63)), put(0x80 | ((code >> 6) & 63)),
      put(0x80 | (code & 63));
}

}  // namespace

void lex_number(Cursor& cursor, Token& token) {
  const std::size_t from = cursor.position();
  const bool after_dot = cursor.previous() == '.';
  token.kind = TokenKind::number;
  const char second = static_cast<char>(cursor.peek(1) | 0x20);
  if (cursor.peek() == '0' && second == 'x' && is_digit_of(cursor.peek(2), 16)) {
    lex_hexadecimal(cursor, token.number);
  } else if (cursor.peek() == '0' && second == 'b' && is_digit_of(cursor.peek(2), 2)) {
    cursor.advance(2);
    set_integer(token.number, take_digits(cursor, 2), 2);
    take_suffix(cursor, token.number, true);
  } else if (cursor.peek() == '0' && second == 'r' && is_roman(cursor.peek(2))) {
    cursor.advance(2);
    std::string digits;
    while (is_roman(cursor.peek()) || cursor.peek() == '_') {
      if (cursor.peek() != '_') digits += cursor.peek();
      cursor.advance();
    }
    set_roman(token.number, digits);
    take_suffix(cursor, token.number, true);
  } else {
    lex_decimal(cursor, token.number, after_dot);
  }
  token.text = cursor.slice(from);
}

bool at_character(const Cursor& cursor) {
  if (cursor.peek(1) == '\\') {
    std::size_t ahead = 2;
    if (!is_digit_of(cursor.peek(ahead), 10)) return cursor.peek(ahead + 1) == '\'';
    while (is_digit_of(cursor.peek(ahead), 10)) ++ahead;
    return cursor.peek(ahead) == '\'';
  }
  if (cursor.peek(1) == '\'' || cursor.peek(1) == '\n' || cursor.peek(1) == '\0') return false;
  return cursor.peek(1 + utf8_length(cursor.peek(1))) == '\'';
}

void lex_character(Cursor& cursor, Token& token) {
  const std::size_t from = cursor.position();
  cursor.advance();
  std::uint32_t code = 0;
  token.kind = TokenKind::character;
  if (cursor.peek() == '\\') {
    code = lex_escape(cursor, token);
  } else {
    const std::size_t length = utf8_length(cursor.peek());
    const auto first = static_cast<unsigned char>(cursor.peek());
    code = length == 1 ? first : first & (0xFFU >> (length + 1));
    for (std::size_t k = 1; k < length; ++k) code = code << 6 | (static_cast<unsigned char>(cursor.peek(k)) & 63U);
    cursor.advance(length);
  }
  cursor.advance();
  token.number.integer = code;
  if (token.kind != TokenKind::error) token.text = cursor.slice(from);
}

void lex_string(Cursor& cursor, Token& token) {
  cursor.advance();
  token.kind = TokenKind::string;
  std::string bytes;
  while (!cursor.at_end() && cursor.peek() != '"' && cursor.peek() != '\n') {
    if (cursor.peek() == '\\' && cursor.peek(1) != '\n') {
      append_utf8(bytes, lex_escape(cursor, token));
    } else {
      bytes += cursor.peek();
      cursor.advance();
    }
  }
  if (cursor.peek() == '"') {
    cursor.advance();
    if (token.kind == TokenKind::string) token.text = std::move(bytes);
    return;
  }
  token.kind = TokenKind::error;
  token.text = "this string has no end on its line";
  token.location = {};
}

}  // namespace apl::frontend
