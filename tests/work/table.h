// What the law of work allows, and where it is broken today.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/module.h"

namespace apl::work_tests {

// The work that a later stage may do for one unit of the text's: 2, or what an operation in the text allows.
double allowed_factor(const Module& text);

// An entry that breaks the law. It has to break it: one that no longer does is taken out here.
struct Known {
  std::string_view program;  // the file's name
  std::string_view entry;
  std::string_view size;
  std::string_view why;
};
const std::vector<Known>& known_violations();

}  // namespace apl::work_tests
