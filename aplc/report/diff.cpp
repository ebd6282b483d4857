// Two texts side by side.
#include <fmt/format.h>

#include "aplc/report/report.h"
#include "ir/text_diff.h"

namespace aplc::report_page {

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '"')
      result += "&quot;";
    else
      result += c;
  }
  return result;
}

std::string side_by_side(const std::string& before, const std::string& after) {
  const std::string diff = apl::text_diff(before, after);
  std::string table =
      "<div class=scroll><table class=diff><thead><tr><th scope=col>before<th scope=col>after</thead>\n";
  std::vector<std::string> removed, added;
  const auto flush = [&] {
    for (std::size_t k = 0; k < std::max(removed.size(), added.size()); ++k)
      table += fmt::format("<tr><td{}>{}<td{}>{}\n", k < removed.size() ? " class=removed" : "",
                           k < removed.size() ? escaped(removed[k]) : "", k < added.size() ? " class=added" : "",
                           k < added.size() ? escaped(added[k]) : "");
    removed.clear();
    added.clear();
  };
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < diff.size(); ++number) {
    const std::size_t end = std::min(diff.find('\n', begin), diff.size());
    const std::string line = diff.substr(begin, end - begin);
    begin = end + 1;
    if (number < 2 || line.empty()) continue;  // the names of the texts
    const std::string rest = line.substr(1);
    if (line[0] == '-') {
      removed.push_back(rest);
    } else if (line[0] == '+') {
      added.push_back(rest);
    } else {
      flush();
      table += line[0] == '@' ? fmt::format("<tr class=gap><td colspan=2>{}\n", escaped(line))
                              : fmt::format("<tr><td>{}<td>{}\n", escaped(rest), escaped(rest));
    }
  }
  flush();
  return table + "</table></div>\n";
}

}  // namespace aplc::report_page
