// A line diff in unified form.
#pragma once

#include <string>
#include <string_view>

namespace apl {

// The lines of two texts, in the manner of `diff -u`; empty for equal texts.
std::string text_diff(std::string_view before, std::string_view after, std::string_view before_name = "before",
                      std::string_view after_name = "after");

}  // namespace apl
