#include "suite/pattern.h"

#include <fmt/format.h>
#include <regex.h>

#include <array>

namespace apl::suite {

Result<bool> matches(const std::string& pattern, const std::string& text) {
  if (pattern.empty()) return true;
  regex_t compiled;
  if (const int problem = regcomp(&compiled, pattern.c_str(), REG_EXTENDED | REG_NOSUB)) {
    std::array<char, 200> words{};
    regerror(problem, &compiled, words.data(), words.size());
    return make_error(Code::syntax_error, {}, fmt::format("regular expression `{}`: {}", pattern, words.data()));
  }
  const bool found = regexec(&compiled, text.c_str(), 0, nullptr, 0) == 0;
  regfree(&compiled);
  return found;
}

}  // namespace apl::suite
