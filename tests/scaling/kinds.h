// Texts that grow, one kind each: what was quadratic once, or may become it.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace apl::scaling_tests {

struct Kind {
  std::string name;
  std::size_t size = 0;  // at which it is measured first
  std::function<std::string(std::size_t)> text;
};

std::vector<Kind> all_kinds();

}  // namespace apl::scaling_tests
