#include "codegen/kernel/loop_functions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "codegen/kernel/words.h"

namespace apl::kernel {

namespace {

// "float *A", "int64_t n".
std::string declared(const LoopName& name, std::string_view qualifier = "") {
  const bool is_pointer = name.type.ends_with('*');
  return fmt::format("{}{}{}{}", name.type, is_pointer ? "" : " ", qualifier, name.name);
}

template <class F>
std::string list_of(const std::vector<const LoopName*>& names, F text_of) {
  std::vector<std::string> list;
  for (const LoopName* name : names)
    if (name->literal.empty()) list.push_back(text_of(*name));
  return fmt::format("{}", fmt::join(list, ", "));
}

}  // namespace

// In the order of their declarations.
std::vector<const LoopName*> LoopFunctions::read_by(std::string_view body) const {
  std::set<std::string_view> words;
  for_each_word(body, [&](std::string_view word) { words.insert(word); });
  std::vector<const LoopName*> names;
  for (const auto& scope : scopes_)
    for (const LoopName& name : scope)
      if (words.contains(name.name)) names.push_back(&name);
  return names;
}

void LoopFunctions::write_names(const std::string& of, const std::vector<const LoopName*>& names) {
  out_.open("struct apl_names{} {{", of);
  for (const LoopName* name : names)
    if (name->literal.empty()) out_.line("{};", declared(*name));
  out_.close("}};");
}

void LoopFunctions::write_loop(const std::string& of, const std::vector<const LoopName*>& names,
                               std::string_view body) {
  const std::string parameters =
      list_of(names, [](const LoopName& name) { return declared(name, name.is_alone ? "restrict " : ""); });
  out_.open("static void apl_loop{}(int64_t apl_begin, int64_t apl_end{}{}) {{", of, parameters.empty() ? "" : ", ",
            parameters);
  for (const LoopName* name : names)
    if (!name->literal.empty()) out_.line("const {} = {};", declared(*name), name->literal);
  out_.raw(body);
  out_.close("}}");
}

void LoopFunctions::write_part(const std::string& of, const std::vector<const LoopName*>& names) {
  const std::string arguments = list_of(names, [](const LoopName& name) { return "all->" + name.name; });
  out_.open("static void apl_part{}(const void *names, int64_t begin, int64_t end) {{", of);
  out_.line("{}", arguments.empty() ? "(void)names;" : fmt::format("const struct apl_names{} *const all = names;", of));
  out_.line("apl_loop{}(begin, end{}{});", of, arguments.empty() ? "" : ", ", arguments);
  out_.close("}}");
}

std::string LoopFunctions::add(std::string_view body, std::string_view rounds, std::string_view most) {
  ++count_;
  for (const LoopName* name : read_by(body))
    if (!name->literal.empty()) literals_.insert(name->name);
  const std::string of = count_ == 1 ? "_of_" + function_ : fmt::format("_{}_of_{}", count_, function_);
  const std::vector<const LoopName*> names = read_by(body);
  const std::string values = list_of(names, [](const LoopName& name) { return name.name; });
  if (!values.empty()) write_names(of, names);
  write_loop(of, names, body);
  write_part(of, names);
  const std::string given =
      values.empty() ? std::string("NULL") : fmt::format("&(const struct apl_names{}){{{}}}", of, values);
  return fmt::format("apl_loop(apl_part{}, {}, {}, {});", of, given, rounds, most);
}

std::string LoopFunctions::without_unread(const std::string& text) const {
  if (literals_.empty()) return text;
  std::map<std::string_view, int> counts;
  for_each_word(text, [&](std::string_view word) { ++counts[word]; });
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string_view line(text.data() + at, end - at);
    const bool is_unread = line.find("const ") == line.find_first_not_of(' ') &&
                           std::ranges::any_of(literals_, [&](const std::string& name) {
                             return counts[name] == 1 && line.find(" " + name + " = ") != std::string_view::npos;
                           });
    if (!is_unread) result += line;
    at = end;
  }
  return result;
}

}  // namespace apl::kernel
