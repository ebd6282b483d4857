#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <regex>

#include "aplc/reduce/reduce.h"
#include "frontend/frontend.h"
#include "frontend/syntax/children.h"
#include "frontend/syntax/parser.h"

namespace aplc::reduce {
namespace {

using namespace apl;
using namespace apl::frontend;

constexpr auto kIgnore = [](const Diagnostic&) {};

struct Range {
  std::size_t begin = 0, end = 0;  // the end is behind the last character
};

// An expression of the text and those right below it; of a chain of lets its bindings, too.
struct Part {
  Range range;
  std::vector<Range> children;
  std::vector<Range> bindings;
};

// The text as a tree of ranges, outermost parts first.
class Parts {
 public:
  explicit Parts(const std::string& text) : text_(text) {
    lines_.push_back(0);
    for (std::size_t k = 0; k < text.size(); ++k)
      if (text[k] == '\n') lines_.push_back(k + 1);
    const auto program = parse_program(text, kIgnore);
    for (const Declaration& declaration : program.declarations) {
      declarations.push_back(range(declaration.location));
      const auto* definition = std::get_if<Definition>(&declaration.node);
      if (!definition) continue;
      for (const PatternPtr& param : definition->params) params.push_back(range(param->location));
      for (const TypeParam& param : definition->type_params) params.push_back(range(param.location));
      if (definition->body) add(*definition->body);
    }
  }

  std::vector<Range> declarations, params;
  std::vector<Part> parts;

 private:
  Range range(const Location& location) const {
    const auto offset = [&](std::uint32_t line, std::uint32_t column) {
      return line == 0 || line > lines_.size() ? text_.size() : std::min(lines_[line - 1] + column - 1, text_.size());
    };
    return {offset(location.line, location.column),
            std::min(offset(location.end_line, location.end_column) + 1, text_.size())};
  }

  void add(const Expr& expr) {
    Part part{.range = range(expr.location), .children = {}, .bindings = {}};
    for_each_child(expr, [&](const Expr& child) { part.children.push_back(range(child.location)); });
    if (const auto* lets = std::get_if<LetExpr>(&expr.node))
      for (const LetBinding& binding : lets->bindings) part.bindings.push_back(range(binding.location));
    parts.push_back(std::move(part));
    for_each_child(expr, [&](const Expr& child) { add(child); });
  }

  const std::string& text_;
  std::vector<std::size_t> lines_;
};

class SourceReducer {
 public:
  SourceReducer(const std::string& name, const std::string& text, const Oracle& oracle)
      : name_(name), text_(text), oracle_(oracle), compiles_(compiles(text)) {}

  std::string run() {
    for (;;) {
      const std::string before = text_;
      comments();
      ranges([](const Parts& parts) { return parts.declarations; }, "declarations");
      lets();
      expressions();
      ranges([](const Parts& parts) { return parts.params; }, "parameters");
      matches(std::regex(R"(#\[[^\]]*\])"), "attributes");
      matches(std::regex(R"( *\n(?=\s*\n)|[ \t]+(?=\n)|[ \t]+(?=[ \t]))"), "blanks");
      if (text_ == before || oracle_.stopped()) return text_;
    }
  }

 private:
  bool compiles(const std::string& text) const { return apl::compile({name_, text, {}}, kIgnore).has_value(); }

  static std::size_t weight(const std::string& text) {
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](unsigned char c) { return std::isspace(c) == 0; }));
  }

  bool offer(const std::string& candidate, const std::string& what) {
    const auto measure = [](const std::string& text) { return std::tuple(weight(text), text.size(), text); };
    if (oracle_.stopped() || measure(candidate) >= measure(text_)) return false;
    if (compiles_ && !compiles(candidate)) return false;
    oracle_.progress(fmt::format("{} characters, {}", weight(text_), what));
    if (!oracle_.interesting(candidate)) return false;
    text_ = candidate;
    return true;
  }

  std::string without(const std::vector<Range>& ranges) const {
    std::string text = text_;
    for (std::size_t k = ranges.size(); k-- > 0;)
      text.erase(ranges[k].begin, std::min(ranges[k].end, text.size()) - ranges[k].begin);
    return text;
  }

  // Chunks of ranges that do not overlap, from halves to single ones.
  void ranges(const std::function<std::vector<Range>(const Parts&)>& of, const std::string& what) {
    std::vector<Range> all = of(Parts(text_));
    for (std::size_t size = std::max<std::size_t>(1, all.size() / 2);; size /= 2) {
      for (std::size_t end = all.size(); end > 0;) {
        const std::size_t begin = end > size ? end - size : 0;
        std::vector<Range> chunk(all.begin() + static_cast<std::ptrdiff_t>(begin),
                                 all.begin() + static_cast<std::ptrdiff_t>(end));
        std::ranges::sort(chunk, {}, &Range::begin);
        if (offer(without(chunk), what)) all = of(Parts(text_));
        end = std::min(begin, all.size());
      }
      if (size == 1) return;
    }
  }

  void comments() {
    ranges(
        [this](const Parts&) {
          std::vector<Range> lines;
          for (std::size_t begin = 0; begin < text_.size();) {
            const std::size_t end = std::min(text_.find('\n', begin), text_.size() - 1) + 1;
            const std::size_t first = text_.find_first_not_of(" \t", begin);
            if (first != std::string::npos && text_.compare(first, 2, "--") == 0) lines.push_back({begin, end});
            begin = end;
          }
          return lines;
        },
        "comments");
  }

  void matches(const std::regex& form, const std::string& what) {
    ranges(
        [&](const Parts&) {
          std::vector<Range> all;
          for (std::sregex_iterator match(text_.begin(), text_.end(), form), last; match != last; ++match)
            all.push_back({static_cast<std::size_t>(match->position()),
                           static_cast<std::size_t>(match->position() + match->length())});
          return all;
        },
        what);
  }

  std::string piece(const Range& range) const { return text_.substr(range.begin, range.end - range.begin); }

  std::string replaced(const Range& range, const std::string& by) const {
    return text_.substr(0, range.begin) + by + text_.substr(range.end);
  }

  // A chain of lets with these bindings only.
  std::string with_bindings(const Part& part, const std::vector<std::size_t>& kept) const {
    std::string text;
    for (const std::size_t k : kept) {
      std::string binding = piece(part.bindings[k]);
      if (!binding.starts_with("let")) binding.insert(0, "let ");
      text += binding + "\n  ";
    }
    return text + (kept.empty() ? "" : "in ") + piece(part.children.back());
  }

  void lets() {
    for (std::size_t p = 0; p < Parts(text_).parts.size(); ++p) {
      const auto part = [&] { return Parts(text_).parts[p]; };
      const auto count = [&] {
        const Parts parts(text_);
        return p < parts.parts.size() ? parts.parts[p].bindings.size() : 0;
      };
      if (count() == 0) continue;
      for (std::size_t size = std::max<std::size_t>(1, count() / 2);; size /= 2) {
        for (std::size_t end = count(); end > 0;) {
          const std::size_t begin = end > size ? end - size : 0;
          std::vector<std::size_t> kept;
          for (std::size_t k = 0; k < count(); ++k)
            if (k < begin || k >= end) kept.push_back(k);
          const Part lets = part();
          offer(replaced(lets.range, with_bindings(lets, kept)), "bindings");
          end = std::min(begin, count());
        }
        if (size == 1 || count() == 0) break;
      }
    }
  }

  // Each expression by one below it, or by a constant.
  void expressions() {
    for (std::size_t p = 0;; ++p) {
      const Parts parts(text_);
      if (p >= parts.parts.size() || oracle_.stopped()) return;
      const Part& part = parts.parts[p];
      bool done = false;
      const auto put = [&](const std::string& text) {
        done = done || offer(replaced(part.range, text), "expressions") ||
               offer(replaced(part.range, "(" + text + ")"), "expressions");
      };
      for (const char* constant : {"0", "1", "true", "0.0", "1.0", "[]"})
        if (piece(part.range).size() > 1 && !done) put(constant);
      for (const Range& child : part.children)
        if (!done) put(piece(child));
      // What took its place is tried in turn.
      if (done) --p;
    }
  }

  const std::string& name_;
  std::string text_;
  const Oracle& oracle_;
  bool compiles_;
};

}  // namespace

std::string reduce_source(const std::string& name, const std::string& text, const Oracle& oracle) {
  return SourceReducer(name, text, oracle).run();
}

}  // namespace aplc::reduce
