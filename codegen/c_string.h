// A text as a string literal of C, a line of it a line.
#pragma once

#include <string>
#include <string_view>

namespace apl {

inline std::string c_string(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n') {
      result += "\\n\"\n  \"";
    } else {
      result += c;
    }
  }
  return result + "\"";
}

}  // namespace apl
