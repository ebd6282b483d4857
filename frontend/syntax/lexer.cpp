#include "frontend/syntax/lexer.h"

#include <algorithm>
#include <array>

#include "frontend/syntax/cursor.h"

namespace apl::frontend {

namespace {

constexpr std::array<std::string_view, 25> kKeywords = {
    "true", "false", "if",   "then",    "else",   "def",  "let",   "loop",   "in",    "val",   "for",  "do",
    "with", "local", "open", "include", "import", "type", "entry", "module", "while", "match", "case", "assert"};

// Longest first, so that the first that fits is the longest match. `=`, `->` and `!` count only where the run of
// operator characters is exactly that.
constexpr std::array<std::string_view, 25> kPunctuation = {"???", "..<", "..>", "...", "'^", "'~", "#[", "..", ":>",
                                                           "(",   ")",   "[",   "]",   "{",  "}",  ",",  ":",  "\\",
                                                           ".",   "_",   "~",   "`",   "'",  "?",  "$"};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_constituent(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '\''; }

bool at_identifier(const Cursor& cursor, std::size_t ahead = 0) {
  const char c = cursor.peek(ahead);
  return is_letter(c) || (c == '_' && (is_letter(cursor.peek(ahead + 1)) || is_digit(cursor.peek(ahead + 1))));
}

std::size_t identifier_length(const Cursor& cursor, std::size_t ahead) {
  std::size_t length = 0;
  while (is_constituent(cursor.peek(ahead + length))) ++length;
  return length;
}

// The length of `a.b.` before an operator, 0 if this is no qualified operator.
std::size_t qualifier_length(const Cursor& cursor) {
  std::size_t length = 0;
  while (at_identifier(cursor, length)) {
    length += identifier_length(cursor, length);
    if (cursor.peek(length) != '.') return 0;
    ++length;
    if (is_operator_start(cursor.peek(length))) return length;
  }
  return 0;
}

void lex_operator(Cursor& cursor, Token& token) {
  const std::size_t from = cursor.position();
  while (is_operator_char(cursor.peek())) cursor.advance();
  token.text = cursor.slice(from);
  const bool reserved = token.text == "=" || token.text == "->" || token.text == "!";
  token.kind = reserved && token.qualifier.empty() ? TokenKind::punctuation : TokenKind::op;
}

void lex_identifier(Cursor& cursor, Token& token) {
  if (const std::size_t qualifier = qualifier_length(cursor); qualifier > 0) {
    const std::size_t from = cursor.position();
    cursor.advance(qualifier);
    token.qualifier = cursor.slice(from);
    token.qualifier.pop_back();
    lex_operator(cursor, token);
    return;
  }
  const std::size_t from = cursor.position();
  cursor.advance(identifier_length(cursor, 0));
  token.text = cursor.slice(from);
  const bool keyword = std::find(kKeywords.begin(), kKeywords.end(), token.text) != kKeywords.end();
  token.kind = keyword ? TokenKind::keyword : TokenKind::identifier;
}

void lex_punctuation(Cursor& cursor, Token& token) {
  if (cursor.peek() == '[' &&
      (is_constituent(cursor.previous()) || cursor.previous() == ')' || cursor.previous() == ']')) {
    cursor.advance();
    token.kind = TokenKind::index;
    token.text = "[";
    return;
  }
  for (std::string_view text : kPunctuation) {
    if (!cursor.starts_with(text)) continue;
    cursor.advance(text.size());
    token.kind = TokenKind::punctuation;
    token.text = text;
    return;
  }
  if (cursor.peek() == '#' && at_identifier(cursor, 1)) {
    cursor.advance();
    const std::size_t from = cursor.position();
    cursor.advance(identifier_length(cursor, 0));
    token.kind = TokenKind::constructor;
    token.text = cursor.slice(from);
    return;
  }
  const auto byte = static_cast<unsigned char>(cursor.peek());
  // The bytes of one character of UTF-8 make one error.
  cursor.advance();
  if (byte >= 0x80)
    while ((static_cast<unsigned char>(cursor.peek()) & 0xC0U) == 0x80U) cursor.advance();
  token.kind = TokenKind::error;
  token.text = "this character means nothing here";
}

void skip_blanks(Cursor& cursor) {
  while (!cursor.at_end()) {
    const char c = cursor.peek();
    if (c == ' ' || (c >= '\t' && c <= '\r')) {
      cursor.advance();
    } else if (cursor.starts_with("--")) {
      while (!cursor.at_end() && cursor.peek() != '\n') cursor.advance();
    } else {
      return;
    }
  }
}

void lex_token(Cursor& cursor, Token& token) {
  const char c = cursor.peek();
  if (at_identifier(cursor)) return lex_identifier(cursor, token);
  if (is_digit(c)) return lex_number(cursor, token);
  if (c == '"') return lex_string(cursor, token);
  if (c == '\'' && at_character(cursor)) return lex_character(cursor, token);
  if (is_operator_start(c)) return lex_operator(cursor, token);
  lex_punctuation(cursor, token);
}

}  // namespace

bool is_operator_start(char c) {
  return std::string_view("+-*/%=!><|&^").find(c) != std::string_view::npos && c != '\0';
}
bool is_operator_char(char c) { return is_operator_start(c) || c == '.'; }

std::string Token::describe() const {
  switch (kind) {
    case TokenKind::end: return "end of file";
    case TokenKind::error: return "this";
    case TokenKind::string: return "a string";
    case TokenKind::constructor: return "'#" + text + "'";
    default: return "'" + (qualifier.empty() ? "" : qualifier + ".") + text + "'";
  }
}

std::vector<Token> lex(std::string_view text) {
  std::vector<Token> tokens;
  Cursor cursor(text);
  for (;;) {
    skip_blanks(cursor);
    cursor.mark();
    Token token;
    if (!cursor.at_end()) lex_token(cursor, token);
    if (!token.location) token.location = cursor.finish();
    if (token.kind == TokenKind::end) token.location.end_column = token.location.column;
    tokens.push_back(std::move(token));
    if (tokens.back().kind == TokenKind::end) return tokens;
  }
}

}  // namespace apl::frontend
