// Parts of the matcher (passes/analysis/contraction_matcher.cpp).
#pragma once

#include <set>

#include "passes/analysis/contractions.h"

namespace apl {

inline Refusal unmatched(std::string code, Location location, std::string message, std::string suggestion = {}) {
  return {std::move(code), location, std::move(message), std::move(suggestion)};
}

// An index, a transpose or another name: the layout says where its elements are.
bool is_contraction_view(const Stm& stm);

// The operands and the map function, classes of dims and orders of axes. `before`: the statements of the kernel that
// the redomap needs; `local`: what the kernel binds. The dims are known.
std::optional<Refusal> match_operands(const std::vector<const Stm*>& before, const Screma& redomap,
                                      const Layouts& layouts, const std::set<Value>& local, Contraction& contraction,
                                      ValueTable& values);

}  // namespace apl
