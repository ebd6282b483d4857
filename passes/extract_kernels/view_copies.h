// Copies that views hide, as maps over their elements.
#pragma once

#include <optional>
#include <vector>

#include "ir/module.h"

namespace apl {

// What was made of one view.
struct ViewCopy {
  enum class Why : std::uint8_t {
    row,      // a map returns the view as its row
    reshape,  // the array has no index function in its new shape
  };
  Why why;
  Stm at;  // the map, or the reshape
};

// Rewrites the function so that no thread copies an array element by element where a view is all that the program says.
// Returns what was rewritten, in order; nothing: the function is as it was.
std::vector<ViewCopy> make_view_copies(Function& function);

// The same of the rows of one statement, and of those of maps in it; nullopt: none is a view.
std::optional<std::vector<Stm>> with_copied_rows(const Stm& map, ValueTable& values);

}  // namespace apl
