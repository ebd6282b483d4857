#include "codegen/emit/host_subset.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "codegen/emit/words.h"

namespace apl {
namespace {

constexpr std::string_view kAlwaysInline = "APL_INLINE ";

// The text with each word that has a replacement replaced, and what ## joins joined.
std::string substituted(std::string_view text, const std::map<std::string, std::string>& words) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    if (text.substr(at, 2) == "##") {
      at += 2;
    } else if (!is_word(text[at])) {
      result += text[at++];
    } else {
      std::size_t end = at;
      while (end < text.size() && is_word(text[end])) ++end;
      const std::string word(text.substr(at, end - at));
      const auto found = words.find(word);
      result += found == words.end() ? word : found->second;
      at = end;
    }
  }
  return result;
}

// Parts between commas, without blanks around them.
std::vector<std::string> list(std::string_view text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',') {
      parts.emplace_back();
    } else if (c != ' ' || !parts.back().empty()) {
      parts.back() += c;
    }
  }
  for (std::string& part : parts)
    while (part.ends_with(' ')) part.pop_back();
  return parts;
}

struct Macro {
  std::vector<std::string> params;
  std::vector<std::string> lines;
};

struct HostFunction {
  std::string name, text;
};

class Reader {
 public:
  std::vector<HostFunction> functions;

  void line(const std::string& line) {
    if (in_macro_) return macro_line(line);
    if (!now_.text.empty()) return add(line);
    if (line.starts_with("#define ") && line.ends_with('\\')) return start_macro(line);
    if (line.starts_with("#if")) ++conditions_;
    if (line.starts_with("#endif")) --conditions_;
    // The header's own guard is one condition; what else is conditional is for compilers with types that others lack.
    if (conditions_ > 1) return;
    const bool always = line.starts_with(kAlwaysInline);
    if ((always || line.starts_with("static ")) && line.find('(') != std::string::npos) {
      const std::size_t open = line.find('(');
      std::size_t from = open;
      while (from > 0 && is_word(line[from - 1])) --from;
      now_.name = line.substr(from, open - from);
      add("inline" + line.substr(always ? kAlwaysInline.size() - 1 : line.find(' ', 7)));
    } else if (const auto macro = macros_.find(line.substr(0, line.find('('))); macro != macros_.end()) {
      const std::size_t open = line.find('(');
      const std::vector<std::string> arguments = list(line.substr(open + 1, line.rfind(')') - open - 1));
      std::map<std::string, std::string> words;
      for (std::size_t k = 0; k < arguments.size() && k < macro->second.params.size(); ++k)
        words[macro->second.params[k]] = arguments[k];
      const std::vector<std::string> lines = macro->second.lines;
      for (const std::string& one : lines) this->line(substituted(one, words));
    }
  }

 private:
  void start_macro(const std::string& line) {
    const std::size_t open = line.find('('), close = line.find(')');
    macro_ = line.substr(8, open - 8);
    macros_[macro_] = {list(line.substr(open + 1, close - open - 1)), {}};
    in_macro_ = true;
  }
  void macro_line(std::string line) {
    in_macro_ = line.ends_with('\\');
    if (in_macro_) line.pop_back();
    while (line.ends_with(' ')) line.pop_back();
    macros_[macro_].lines.push_back(line.starts_with("  ") ? line.substr(2) : line);
  }
  void add(const std::string& line) {
    now_.text += line + "\n";
    for (const char c : line) braces_ += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (braces_ > 0 || line.find_last_of("{};") == std::string::npos) return;
    if (now_.text.find('{') != std::string::npos) functions.push_back(now_);
    now_ = {};
  }

  std::map<std::string, Macro> macros_;
  std::string macro_;
  bool in_macro_ = false;
  int conditions_ = 0, braces_ = 0;
  HostFunction now_;
};

}  // namespace

std::string host_subset(std::string_view header, const std::set<std::string>& names) {
  Reader reader;
  while (!header.empty()) {
    const std::size_t end = header.find('\n');
    reader.line(std::string(header.substr(0, end)));
    header.remove_prefix(end == std::string_view::npos ? header.size() : end + 1);
  }
  std::set<std::string> wanted = names;
  std::set<const HostFunction*> used;
  for (bool changed = true; changed;) {
    changed = false;
    for (const HostFunction& function : reader.functions) {
      if (!wanted.contains(function.name) || !used.insert(&function).second) continue;
      for (std::string& word : words_in(function.text)) wanted.insert(std::move(word));
      changed = true;
    }
  }
  std::string result;
  for (const HostFunction& function : reader.functions)
    if (used.contains(&function)) result += function.text;
  return result;
}

}  // namespace apl
