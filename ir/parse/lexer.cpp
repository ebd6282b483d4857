#include "ir/parse/lexer.h"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "ir/print/words.h"
#include "ir/scalar.h"

namespace apl {

namespace {

// Longer symbols first.
constexpr auto kSymbols =
    std::to_array<std::string_view>({"#[", "#{", "->", "<-", ":+", "{", "}", "(", ")", "[", "]",
                                     ",",  ":",  ";",  "=",  "<",  "+", "-", "*", "/", "@", "\\"});

std::optional<int> hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return std::nullopt;
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::vector<Token> run() {
    std::vector<Token> tokens;
    while (true) {
      skip_blanks();
      tokens.push_back(next());
      if (tokens.back().kind == Token::Kind::end) return tokens;
    }
  }

 private:
  bool done(std::size_t ahead = 0) const { return position_ + ahead >= text_.size(); }
  char at(std::size_t ahead = 0) const { return done(ahead) ? '\0' : text_[position_ + ahead]; }
  bool starts(std::string_view prefix) const { return text_.substr(position_).starts_with(prefix); }

  void skip_blanks() {
    while (!done()) {
      if (starts("--")) {
        while (!done() && at() != '\n') ++position_;
      } else if (at() == '\n') {
        ++position_, ++line_;
        line_start_ = position_;
      } else if (at() == ' ' || at() == '\t' || at() == '\r') {
        ++position_;
      } else {
        return;
      }
    }
  }

  // The place of the text from `begin` up to here; all tokens stand on one line.
  Location location(std::size_t begin) const {
    const auto column = static_cast<std::uint32_t>(begin - line_start_ + 1);
    const auto length = static_cast<std::uint32_t>(position_ > begin ? position_ - begin : 1);
    return {line_, column, line_, column + length - 1};
  }

  Token make(Token::Kind kind, std::size_t begin) const {
    return {kind, text_.substr(begin, position_ - begin), {}, location(begin)};
  }

  [[noreturn]] void fail(std::size_t begin, std::string message) const {
    throw SyntaxError{location(begin), std::move(message)};
  }

  Token next() {
    const std::size_t begin = position_;
    if (done()) return make(Token::Kind::end, begin);
    if (is_name_start(at())) return name();
    if (is_digit(at())) return number();
    if (at() == '"') return string();
    for (std::string_view symbol : kSymbols) {
      if (!starts(symbol)) continue;
      position_ += symbol.size();
      return make(Token::Kind::symbol, begin);
    }
    const auto byte = static_cast<unsigned char>(at());
    ++position_;
    if (byte < 0x20 || byte >= 0x7f) fail(begin, fmt::format("unexpected byte 0x{:02x}", byte));
    fail(begin, fmt::format("unexpected character `{}`", static_cast<char>(byte)));
  }

  Token name() {
    const std::size_t begin = position_;
    while (is_name_rest(at())) ++position_;
    // `f32.nan` and `f32.inf`
    const auto type = scalar_type_from_text(text_.substr(begin, position_ - begin));
    if (at() == '.' && type && is_float(*type)) {
      ++position_;
      while (is_name_rest(at())) ++position_;
    }
    return make(Token::Kind::name, begin);
  }

  Token number() {
    const std::size_t begin = position_;
    while (is_name_rest(at()) || at() == '.') {
      const bool exponent = (at() == 'e' || at() == 'E') && (at(1) == '-' || at(1) == '+') && is_digit(at(2));
      position_ += exponent ? 2 : 1;
    }
    return make(Token::Kind::number, begin);
  }

  Token string() {
    const std::size_t begin = position_++;
    std::string value;
    while (at() != '"') {
      if (done() || at() == '\n') fail(begin, "this string has no end on its line");
      value += at() == '\\' ? escape() : text_[position_++];
    }
    ++position_;
    Token token = make(Token::Kind::string, begin);
    token.value = std::move(value);
    return token;
  }

  char escape() {
    const std::size_t begin = position_++;
    const char c = at();
    if (!done()) ++position_;
    switch (c) {
      case '"': return '"';
      case '\\': return '\\';
      case 'n': return '\n';
      case 't': return '\t';
      case 'x': {
        const auto high = hex_digit(at());
        const auto low = hex_digit(at(1));
        if (high && low) {
          position_ += 2;
          return static_cast<char>(*high * 16 + *low);
        }
        break;
      }
      default: break;
    }
    fail(begin, "unknown escape; known are \\\" \\\\ \\n \\t \\xHH");
  }

  std::string_view text_;
  std::size_t position_ = 0;
  std::uint32_t line_ = 1;
  std::size_t line_start_ = 0;
};

}  // namespace

std::vector<Token> tokenise(std::string_view text) { return Lexer(text).run(); }

}  // namespace apl
