#include "ir/similar_name.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace apl {

namespace {

// The number of insertions, removals, replacements and swaps of neighbours that turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::vector<std::size_t> next(row.size(), i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      next[j + 1] = std::min({row[j] + (a[i] == b[j] ? 0 : 1), next[j] + 1, row[j + 1] + 1});
      const bool swapped = i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j];
      if (swapped) next[j + 1] = std::min(next[j + 1], before[j - 1] + 1);
    }
    before = std::exchange(row, std::move(next));
  }
  return row.back();
}

}  // namespace

std::optional<std::string> similar_name(std::string_view word, const std::vector<std::string>& names) {
  // What is as short as this is near to everything.
  if (word.size() < 3) return std::nullopt;
  const std::size_t limit = std::min<std::size_t>(2, word.size() / 3);
  std::size_t best = limit + 1;
  const std::string* nearest = nullptr;
  for (const std::string& name : names) {
    const std::size_t distance = edit_distance(word, name);
    if (distance < best) best = distance, nearest = &name;
  }
  return nearest == nullptr ? std::nullopt : std::optional(*nearest);
}

}  // namespace apl
