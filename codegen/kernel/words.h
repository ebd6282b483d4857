// The words of generated text: names, keywords and numbers.
#pragma once

#include <cctype>
#include <string_view>

namespace apl::kernel {

// Calls `visit` for each word in order.
template <class Visit>
void for_each_word(std::string_view text, Visit visit) {
  const auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && is_part(text[end])) ++end;
    if (end > at) visit(text.substr(at, end - at));
    at = end + 1;
  }
}

}  // namespace apl::kernel
