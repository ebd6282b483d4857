#include "codegen/emit/device_subset.h"

#include <algorithm>
#include <set>
#include <vector>

#include "codegen/emit/words.h"

namespace apl {
namespace {

using Lines = std::vector<std::string>;

Lines lines_of(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

// Without the lines that are for emulation, for compilation when the program runs, or for other dialects: these
// conditions are decided, all others stay.
Lines for_dialect(const Lines& all, const Dialect& dialect) {
  const auto asks_for_dialect = [](const std::string& line) {
    return std::ranges::any_of(dialect_names(), [&](std::string_view name) {
      const std::string_view macro = find_dialect(name)->macro;
      return !macro.empty() && line.find(macro) != std::string::npos;
    });
  };
  const auto is_guard = [](const std::string& line) {
    return (line.starts_with("#ifndef APL_") || line.starts_with("#define APL_")) && line.ends_with("_H");
  };
  struct Condition {
    bool decided, taken;
  };
  std::vector<Condition> open;
  Lines kept;
  const auto is_in = [&] { return std::ranges::all_of(open, [](Condition c) { return !c.decided || c.taken; }); };
  for (const std::string& line : all) {
    if (line.starts_with("#if")) {
      const bool decided = line.find("APL_EMULATE") != std::string::npos ||
                           line.find("__CUDACC_RTC__") != std::string::npos || is_guard(line) || asks_for_dialect(line);
      bool taken = line.find("!defined") != std::string::npos || line.starts_with("#ifndef");
      if (line.find(dialect.macro) != std::string::npos) taken = !taken;
      if (!decided && is_in()) kept.push_back(line);
      open.push_back({decided, taken});
    } else if (line.starts_with("#else") && open.back().decided) {
      open.back().taken = !open.back().taken;
    } else if (line.starts_with("#endif")) {
      const bool decided = open.back().decided;
      open.pop_back();
      if (!decided && is_in()) kept.push_back(line);
    } else if (is_in() && !line.starts_with("#include") && !is_guard(line)) {
      kept.push_back(line);
    }
  }
  return kept;
}

// Names of ours: apl_... and APL_...
std::vector<std::string> names_in(std::string_view text) {
  std::vector<std::string> names = words_in(text);
  std::erase_if(names, [](const std::string& word) { return !word.starts_with("apl_") && !word.starts_with("APL_"); });
  return names;
}

std::string without_comments(const std::string& line) { return line.substr(0, line.find("//")); }

// A definition with the comment before it.
struct Definition {
  std::string text;
  std::string code;     // without comments
  std::string name;     // what it defines
  std::string special;  // of a specialisation: the type of ours that it is for
  bool undefines = false;
  bool is_used = false;
};

void name_definition(Definition& definition) {
  const std::string& code = definition.code;
  std::vector<std::string> names = names_in(code);
  if (names.empty()) return;
  definition.name = names.front();
  definition.undefines = code.starts_with("#undef");
  if (code.starts_with("#")) return;
  // A macro that makes functions: APL_ATOMIC(add, ...) is apl_atomic_add, APL_BINARY(apl_add, ...) apl_add.
  if (names.front().starts_with("APL_") && code.starts_with(names.front() + "(")) {
    const std::size_t from = names.front().size() + 1;
    const std::string argument = code.substr(from, code.find_first_of(",)", from) - from);
    definition.name = names.front() == "APL_ATOMIC"  ? "apl_atomic_" + argument
                      : names.front() == "APL_FETCH" ? "apl_fetch_" + argument
                                                     : argument;
    return;
  }
  const std::size_t structure = code.find("struct apl_");
  const std::size_t brace = code.find('{'), parenthesis = code.find('(');
  if (structure != std::string::npos && structure < std::min(brace, parenthesis)) {
    const std::size_t from = structure + 7;
    std::size_t end = from;
    while (end < code.size() && is_word(code[end])) ++end;
    definition.name = code.substr(from, end - from);
    if (end < code.size() && code[end] == '<') {
      const auto parts = names_in(code.substr(end, code.find('>', end) - end));
      if (!parts.empty()) definition.special = parts.front();
    }
    return;
  }
  // A function, or a variable: the name before what follows it.
  for (std::size_t at = code.find("apl_"); at != std::string::npos; at = code.find("apl_", at + 1)) {
    if (at > 0 && is_word(code[at - 1])) continue;
    std::size_t end = at;
    while (end < code.size() && is_word(code[end])) ++end;
    if (end < code.size() && (code[end] == '(' || code[end] == '[')) {
      definition.name = code.substr(at, end - at);
      return;
    }
    // A member that is defined outside: of a template for one type.
    if (code[end] == '<' && code.find(">::operator", end) != std::string::npos) {
      definition.name = code.substr(at, end - at);
      const auto parts = names_in(code.substr(end, code.find('>', end) - end));
      if (!parts.empty()) definition.special = parts.front();
      return;
    }
  }
}

std::vector<Definition> definitions_of(const Lines& lines) {
  std::vector<Definition> all;
  Definition now;
  int braces = 0, parentheses = 0, conditions = 0;
  for (const std::string& line : lines) {
    const std::string code = without_comments(line);
    // What stands in conditions of its own, as the default of a macro, is one definition.
    const bool begins = line.starts_with("#if"), ends = line.starts_with("#endif");
    if (conditions > 0 || (now.code.empty() && begins)) {
      conditions += begins ? 1 : ends ? -1 : 0;
      now.text += line + "\n";
      if (!begins && !ends) now.code += code + "\n";
      if (conditions > 0) continue;
      name_definition(now);
      all.push_back(std::move(now));
      now = {};
      continue;
    }
    const std::size_t last = code.find_last_not_of(' ');
    if (now.code.empty() && last == std::string::npos) {
      // A blank line parts what stands before from what comes.
      if (line.empty()) {
        now = {};
      } else {
        now.text += line + "\n";
      }
      continue;
    }
    now.text += line + "\n";
    now.code += code + "\n";
    const bool is_directive = now.code[0] == '#';
    for (char c : code) {
      braces += c == '{' ? 1 : c == '}' ? -1 : 0;
      parentheses += c == '(' ? 1 : c == ')' ? -1 : 0;
    }
    const char end = last == std::string::npos ? ' ' : code[last];
    const bool is_whole =
        is_directive ? end != '\\' : braces == 0 && parentheses == 0 && (end == ';' || end == '}' || end == ')');
    if (!is_whole) continue;
    name_definition(now);
    all.push_back(std::move(now));
    now = {};
    braces = parentheses = 0;
  }
  return all;
}

}  // namespace

std::string device_subset(std::string_view header, std::string_view text, const Dialect& dialect) {
  std::vector<Definition> all = definitions_of(for_dialect(lines_of(header), dialect));
  std::set<std::string> wanted;
  for (std::string& name : names_in(text)) wanted.insert(std::move(name));
  for (bool changed = true; changed;) {
    changed = false;
    for (Definition& definition : all) {
      if (definition.is_used || definition.undefines || !wanted.contains(definition.name)) continue;
      if (!definition.special.empty() && !wanted.contains(definition.special)) continue;
      definition.is_used = changed = true;
      for (std::string& name : names_in(definition.code)) {
        // That there is a version for a type does not make the type used.
        if (name != definition.special) wanted.insert(std::move(name));
      }
    }
  }
  std::set<std::string> used;
  for (const Definition& definition : all)
    if (definition.is_used) used.insert(definition.name);
  std::string result;
  for (const Definition& definition : all) {
    if (!definition.is_used && !(definition.undefines && used.contains(definition.name))) continue;
    // Short ones without a comment stay together.
    const bool is_line = std::ranges::count(definition.text, '\n') == 1;
    if (!result.empty() && !is_line) result += '\n';
    result += definition.text;
  }
  return result;
}

}  // namespace apl
