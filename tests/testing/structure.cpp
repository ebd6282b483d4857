// Counting operations by their position in the nest of operations.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "ir/print/printer.h"
#include "ir/walk.h"
#include "tests/testing.h"

namespace apl::testing {

namespace {

// What an operation may be called in a path; the first is its usual name.
std::vector<std::string> names_of(const Op& op) {
  const std::string name(op_name(op));
  if (const auto* unary = std::get_if<Unary>(&op)) return {std::string(to_text(unary->op)), name};
  if (const auto* binary = std::get_if<Binary>(&op)) return {std::string(to_text(binary->op)), name};
  if (const auto* compare = std::get_if<Compare>(&op)) return {std::string(to_text(compare->op)), name};
  if (const auto* screma = std::get_if<Screma>(&op)) return {std::string(keyword(*screma)), name};
  if (const auto* seg = std::get_if<SegOp>(&op)) return {fmt::format("{}({})", name, to_text(seg->level)), name};
  if (const auto* loop = std::get_if<Loop>(&op)) return {name, loop->index ? "loop(for)" : "loop(while)"};
  return {name};
}

std::set<std::string, std::less<>> known_names() {
  std::set<std::string, std::less<>> names = {"map",         "reduce",         "redomap",       "loop(for)",
                                              "loop(while)", "segmap(thread)", "segmap(block)", "segmap(inblock)"};
#define APL_NODE(Struct, text, ...) names.insert(text);
#define APL_UNARY(name, text, domain) names.insert(text);
#define APL_BINARY(name, text, domain) names.insert(text);
#define APL_COMPARE(name, text, domain) names.insert(text);
#include "ir/ops.def"
  return names;
}

struct Path {
  bool anchored = false;
  std::vector<std::string> names;
};

Path parse_path(std::string_view text) {
  Path path;
  path.anchored = text.starts_with('/');
  if (path.anchored) text.remove_prefix(1);
  while (true) {
    const std::size_t slash = text.find('/');
    path.names.emplace_back(text.substr(0, slash));
    if (slash == std::string_view::npos) return path;
    text.remove_prefix(slash + 1);
  }
}

using Nest = std::vector<std::vector<std::string>>;  // the names of each operation, outermost first

bool matches(const Nest& nest, const Path& path) {
  if (nest.size() < path.names.size() || (path.anchored && nest.size() != path.names.size())) return false;
  const std::size_t skip = nest.size() - path.names.size();
  for (std::size_t k = 0; k < path.names.size(); ++k)
    if (std::ranges::find(nest[skip + k], path.names[k]) == nest[skip + k].end()) return false;
  return true;
}

void for_each_nest(const BodyPtr& body, Nest& nest, const std::function<void(const Nest&)>& visit) {
  if (!body) return;
  for (const Stm& stm : body->stms) {
    nest.push_back(names_of(stm.op));
    visit(nest);
    for_each_body(stm.op, [&](const BodyPtr& inner) { for_each_nest(inner, nest, visit); });
    nest.pop_back();
  }
}

void for_each_nest(const Module& module, const std::function<void(const Nest&)>& visit) {
  Nest nest;
  for (const FunctionPtr& function : module.functions) for_each_nest(function->body, nest, visit);
}

// All paths with their counts, for messages.
std::string overview(const Module& module) {
  std::map<std::string, std::size_t> counts;
  for_each_nest(module, [&](const Nest& nest) {
    std::string path;
    for (const auto& names : nest) path += "/" + names.front();
    ++counts[path];
  });
  std::string text;
  for (const auto& [path, count] : counts) fmt::format_to(std::back_inserter(text), "\n  {} {}", path, count);
  return text;
}

}  // namespace

std::size_t count_structure(const Module& module, std::string_view path_text) {
  const Path path = parse_path(path_text);
  std::size_t count = 0;
  for_each_nest(module, [&](const Nest& nest) { count += matches(nest, path) ? 1 : 0; });
  return count;
}

Verdict has_structure(const Module& module, std::string_view expectation) {
  const auto known = known_names();
  std::istringstream words{std::string(expectation)};
  std::string path;
  std::string failures;
  while (words >> path) {
    std::string count_text;
    std::size_t wanted = 0;
    words >> count_text;
    const char* end = count_text.data() + count_text.size();
    if (count_text.empty() || std::from_chars(count_text.data(), end, wanted).ptr != end)
      return Verdict::no(fmt::format("'{}' is followed by '{}', not by a count", path, count_text));
    // A misspelt name would be found 0 times for ever.
    for (const std::string& name : parse_path(path).names)
      if (!known.contains(name)) return Verdict::no(fmt::format("'{}' in '{}' names no operation", name, path));
    const std::size_t found = count_structure(module, path);
    if (found != wanted)
      fmt::format_to(std::back_inserter(failures), "{} occurs {} times, not {}\n", path, found, wanted);
  }
  if (failures.empty()) return {};
  return Verdict::no(failures + "the module has" + overview(module));
}

}  // namespace apl::testing
