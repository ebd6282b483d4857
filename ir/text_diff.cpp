#include "ir/text_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <vector>

namespace apl {

namespace {

constexpr std::size_t kContext = 3;

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

struct Edit {
  char mark;  // ' ', '-' or '+'
  std::string_view line;
};

using Lines = std::span<const std::string_view>;

// The edits of a longest common subsequence, by the quadratic table; of parts without common ends, as long as the
// table has a size that can be afforded. Else all is replaced.
void add_edits(Lines a, Lines b, std::vector<Edit>& result) {
  constexpr std::size_t kMostCells = 50'000'000;
  if (a.size() > kMostCells / (b.size() + 1)) {
    for (const std::string_view line : a) result.push_back({'-', line});
    for (const std::string_view line : b) result.push_back({'+', line});
    return;
  }
  const std::size_t width = b.size() + 1;
  std::vector<std::uint32_t> common((a.size() + 1) * width);  // of the tails from i and j
  for (std::size_t i = a.size(); i-- > 0;)
    for (std::size_t j = b.size(); j-- > 0;)
      common[i * width + j] = a[i] == b[j] ? common[(i + 1) * width + j + 1] + 1
                                           : std::max(common[(i + 1) * width + j], common[i * width + j + 1]);
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() || j < b.size()) {
    if (i < a.size() && j < b.size() && a[i] == b[j])
      result.push_back({' ', a[i]}), ++i, ++j;
    else if (j == b.size() || (i < a.size() && common[(i + 1) * width + j] >= common[i * width + j + 1]))
      result.push_back({'-', a[i++]});
    else
      result.push_back({'+', b[j++]});
  }
}

std::vector<Edit> edits(Lines a, Lines b) {
  std::vector<Edit> result;
  std::size_t head = 0;
  while (head < a.size() && head < b.size() && a[head] == b[head]) result.push_back({' ', a[head++]});
  a = a.subspan(head);
  b = b.subspan(head);
  std::size_t tail = 0;
  while (tail < a.size() && tail < b.size() && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;
  add_edits(a.first(a.size() - tail), b.first(b.size() - tail), result);
  for (const std::string_view line : a.last(tail)) result.push_back({' ', line});
  return result;
}

void put_hunk(std::string& out, const std::vector<Edit>& all, std::size_t begin, std::size_t end) {
  const auto count = [&](std::size_t first, std::size_t last, char other) {
    return std::count_if(all.begin() + static_cast<std::ptrdiff_t>(first),
                         all.begin() + static_cast<std::ptrdiff_t>(last),
                         [&](const Edit& edit) { return edit.mark != other; });
  };
  const auto range = [&](char other) {
    const auto length = count(begin, end, other);
    return fmt::format("{},{}", count(0, begin, other) + (length > 0 ? 1 : 0), length);
  };
  fmt::format_to(std::back_inserter(out), "@@ -{} +{} @@\n", range('+'), range('-'));
  for (std::size_t k = begin; k < end; ++k) {
    out += all[k].mark;
    out += all[k].line;
    if (!all[k].line.ends_with('\n')) out += "\n\\ no newline at the end\n";
  }
}

}  // namespace

std::string text_diff(std::string_view expected, std::string_view actual, std::string_view expected_name,
                      std::string_view actual_name) {
  if (expected == actual) return {};
  std::string out = fmt::format("--- {}\n+++ {}\n", expected_name, actual_name);
  const std::vector<Edit> all = edits(lines_of(expected), lines_of(actual));
  std::size_t k = 0;
  while (true) {
    while (k < all.size() && all[k].mark == ' ') ++k;
    if (k == all.size()) return out;
    const std::size_t begin = k > kContext ? k - kContext : 0;
    // A hunk ends where twice the context is unchanged.
    std::size_t last = k;
    for (; k < all.size() && k <= last + 2 * kContext; ++k)
      if (all[k].mark != ' ') last = k;
    k = last + 1;
    put_hunk(out, all, begin, std::min(last + 1 + kContext, all.size()));
  }
}

}  // namespace apl
