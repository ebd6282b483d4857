#include "ir/text_diff.h"
#include "tests/testing.h"

namespace apl::testing {

std::string text_diff(std::string_view expected, std::string_view actual, std::string_view expected_name,
                      std::string_view actual_name) {
  return apl::text_diff(expected, actual, expected_name, actual_name);
}

}  // namespace apl::testing
