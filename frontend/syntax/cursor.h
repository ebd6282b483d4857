// A position in source text that keeps count of lines and columns.
#pragma once

#include <cstdint>
#include <string_view>

#include "ir/diagnostic.h"

namespace apl::frontend {

class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  bool at_end() const { return position_ >= text_.size(); }
  // The character `ahead` of here; 0 past the end.
  char peek(std::size_t ahead = 0) const { return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0'; }
  char previous() const { return position_ == 0 ? '\n' : text_[position_ - 1]; }
  bool starts_with(std::string_view prefix) const { return text_.substr(position_).starts_with(prefix); }
  std::size_t position() const { return position_; }
  std::string_view slice(std::size_t from) const { return text_.substr(from, position_ - from); }

  void advance(std::size_t count = 1) {
    for (; count > 0 && position_ < text_.size(); --count) {
      if (text_[position_] == '\n') {
        ++line_;
        column_ = 1;
      } else {
        ++column_;
      }
      ++position_;
    }
  }

  // Begins a token here; `finish` gives its location.
  void mark() { start_line_ = line_, start_column_ = column_; }
  Location finish() const {
    // A token never ends right after a newline, so the last column is on the same line.
    return {.line = start_line_,
            .column = start_column_,
            .end_line = line_,
            .end_column = column_ > 1 ? column_ - 1 : column_};
  }

 private:
  std::string_view text_;
  std::size_t position_ = 0;
  std::uint32_t line_ = 1, column_ = 1;
  std::uint32_t start_line_ = 1, start_column_ = 1;
};

// Numbers and quoted text, in lexer_literals.cpp.
struct Token;
void lex_number(Cursor& cursor, Token& token);
void lex_character(Cursor& cursor, Token& token);
void lex_string(Cursor& cursor, Token& token);
// Whether a character literal begins here (and not the `'` of a type parameter).
bool at_character(const Cursor& cursor);

}  // namespace apl::frontend
