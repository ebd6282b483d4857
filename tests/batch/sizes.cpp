#include "tests/batch/sizes.h"

#include <cstdint>
#include <string>

namespace apl::testing {

std::vector<Try> size_sets(const Function& entry, bool large) {
  std::vector<std::string> names;
  for (Value size : entry.sizes) names.push_back(entry.values.name(size));
  std::vector<std::int64_t> values{0, 1, 2, 4, 5};
  if (names.size() <= 3) values = {0, 1, 3, 4, 7, 16, 17};
  if (large)
    values =
        names.size() <= 3 ? std::vector<std::int64_t>{0, 1, 31, 128, 257} : std::vector<std::int64_t>{0, 1, 4, 7, 16};
  std::vector<Try> sets;
  for (std::int64_t all : values) {
    if (names.size() > 3 && all > 4) continue;
    // 4096 elements take as long as all the others, and 4913 are no fewer kinds of tiles.
    if (names.size() == 3 && all == 16) continue;
    Try next{{}, all == 1 || all == values.back()};
    for (const std::string& name : names) next.sizes[name] = all;
    sets.push_back(next);
  }
  for (const std::string& changed : names)
    for (std::int64_t value : values) {
      Try next{{}, value == 0 || value == values.back()};
      std::int64_t other = 2;
      for (const std::string& name : names) next.sizes[name] = name == changed ? value : (other = 5 - other);
      sets.push_back(next);
    }
  return sets;
}

}  // namespace apl::testing
