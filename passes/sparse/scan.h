// Numbers in large texts: what the readers of matrix files share.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "ir/diagnostic.h"

namespace apl::sparse {

// Where in a text a number could not be read.
struct Scanner {
  const char* at;
  const char* end;

  void blanks() {
    while (at != end && (*at == ' ' || *at == '\t' || *at == '\r')) ++at;
  }
  bool line_ends() {
    blanks();
    return at == end || *at == '\n';
  }
  // Digits alone; false and `at` at the culprit if there are none or too many.
  bool natural(std::int64_t& number) {
    blanks();
    const char* first = at;
    std::int64_t value = 0;
    while (at != end && *at >= '0' && *at <= '9' && at - first < 18) value = value * 10 + (*at++ - '0');
    number = value;
    if (at == first || (at != end && *at >= '0' && *at <= '9')) {
      at = first;
      return false;
    }
    return true;
  }
  bool real(double& number) {
    blanks();
    const char* first = at;
    if (at != end && *at == '+') ++at;
    const auto [stop, error] = std::from_chars(at, end, number);
    if (error == std::errc::result_out_of_range) {
      number = std::strtod(std::string(at, stop).c_str(), nullptr);  // infinite, or too small for a normal number
    } else if (error != std::errc()) {
      at = first;
      return false;
    }
    at = stop;
    return true;
  }
};

// Line and column of a position in the text.
Location location_in(std::string_view text, const char* at);

// At most this many rows or columns are believed of a text of this length: starts of rows are allocated for them.
constexpr std::int64_t believable_size(std::size_t text_length) {
  return 1'000'000 + 8 * static_cast<std::int64_t>(text_length);
}

}  // namespace apl::sparse
