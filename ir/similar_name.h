// The name that somebody meant who wrote another.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace apl {

// The name with the fewest letters inserted, removed, replaced or exchanged with their neighbour: at most two, or one
// where `word` is short, and none where it has less than three letters. Of equally near names the first.
std::optional<std::string> similar_name(std::string_view word, const std::vector<std::string>& names);

}  // namespace apl
