// A text as a string literal of C, a line of it a line.
#pragma once

#include <string>
#include <string_view>

namespace apl {

inline std::string c_string(std::string_view text) {
  std::string result = "\"";
  for (std::size_t k = 0; k < text.size(); ++k) {
    const char c = text[k];
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      result += "\\n\"\n  \"";
    } else if (byte < 0x20 || byte == 0x7f) {
      // Three digits, so that one that follows is not taken for a part of it.
      result += '\\';
      for (const unsigned shift : {6U, 3U, 0U}) result += static_cast<char>('0' + (byte >> shift & 7U));
    } else {
      // Two question marks may start a trigraph.
      if (c == '"' || c == '\\' || (c == '?' && k > 0 && text[k - 1] == '?')) result += '\\';
      result += c;
    }
  }
  return result + "\"";
}

}  // namespace apl
