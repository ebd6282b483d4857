// The table of diagnostic codes, and the text of diagnostics and remarks.
#include "ir/diagnostic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace apl {
namespace {

struct CodeInfo {
  std::string_view text;
  Fault fault;
  std::string_view summary;
};

constexpr auto kCodes = std::to_array<CodeInfo>({
#define APL_DIAGNOSTIC(name, text, fault, summary) {text, Fault::fault, summary},
#include "ir/diagnostics.def"
#undef APL_DIAGNOSTIC
});

const CodeInfo& info(Code code) { return kCodes[static_cast<std::size_t>(code)]; }

std::string_view severity_text(Severity severity) {
  switch (severity) {
    case Severity::error: return "error";
    case Severity::warning: return "warning";
    case Severity::note: return "note";
  }
  return "";
}

// `file.fut:3:8: `, as much of it as is known.
std::string location_text(std::string_view file, Location location) {
  std::string text(file);
  if (location) text += fmt::format("{}{}:{}", text.empty() ? "" : ":", location.line, location.column);
  return text.empty() ? text : text + ": ";
}

std::optional<std::string_view> line_of(std::string_view source, std::uint32_t number) {
  for (; number > 1; --number) {
    const std::size_t end = source.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    source.remove_prefix(end + 1);
  }
  const std::string_view line = source.substr(0, source.find('\n'));
  return line.ends_with('\r') ? line.substr(0, line.size() - 1) : line;
}

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// What stands under `text`: as wide as it is on a terminal, tabs kept.
std::string under(std::string_view text, char mark) {
  std::string result;
  for (const char c : text) {
    if (!continues_character(c)) result += c == '\t' && mark == ' ' ? '\t' : mark;
  }
  return result;
}

// Of longer lines only what stands around the range is shown, so many bytes.
constexpr std::size_t kMaxExcerpt = 200;
constexpr std::size_t kShownBefore = 60;  // bytes before the range

// The source line, or the part of it around the range, and a caret range below it; a range of several lines is marked
// to the end of its first.
std::string excerpt(std::string_view source, Location location) {
  if (source.empty() || !location || location.column == 0) return "";
  const auto line = line_of(source, location.line);
  const std::size_t begin = location.column - 1;
  if (!line || begin > line->size()) return "";
  std::size_t end = begin + 1;
  if (location.end_line > location.line) end = line->size();
  if (location.end_line == location.line) end = std::max<std::size_t>(end, location.end_column);
  std::size_t first = 0, last = line->size();
  if (line->size() > kMaxExcerpt) {
    first = begin > kShownBefore ? std::min(begin - kShownBefore, line->size() - kMaxExcerpt) : 0;
    last = first + kMaxExcerpt;
    while (first < begin && continues_character((*line)[first])) ++first;
    while (last < line->size() && continues_character((*line)[last])) ++last;
  }
  end = std::min(end, last);
  const std::string_view before = first > 0 ? "..." : "";
  const std::string_view after = last < line->size() ? "..." : "";
  std::string marks = end > begin ? under(line->substr(begin, end - begin), '~') : "~";
  marks.front() = '^';
  return fmt::format("  {}{}{}\n  {}{}{}\n", before, line->substr(first, last - first), after,
                     std::string(before.size(), ' '), under(line->substr(first, begin - first), ' '), marks);
}

}  // namespace

std::string_view code_text(Code code) { return info(code).text; }
Fault code_fault(Code code) { return info(code).fault; }
std::string_view code_summary(Code code) { return info(code).summary; }

Diagnostic make_error(Code code, Location location, std::string message) {
  Diagnostic diagnostic;
  diagnostic.code = code;
  diagnostic.location = location;
  diagnostic.message = std::move(message);
  return diagnostic;
}

Note called_from(Location call) { return {"called from here", call}; }

namespace {

// A name or number of the program that a message quotes may be as long as the program.
constexpr std::size_t kMaxMessage = 4000;

std::string shortened(std::string_view text) {
  if (text.size() <= kMaxMessage) return std::string(text);
  std::size_t first = kMaxMessage / 2, last = text.size() - kMaxMessage / 2;
  while (continues_character(text[first])) --first;
  while (continues_character(text[last])) ++last;
  return fmt::format("{} ... {}", text.substr(0, first), text.substr(last));
}

}  // namespace

std::string render(const Diagnostic& diagnostic, std::string_view file, std::string_view source) {
  if (!diagnostic.file.empty() && diagnostic.file != file) {
    file = diagnostic.file;
    source = {};
  }
  std::string text =
      fmt::format("{}{}: {} [{}]\n", location_text(file, diagnostic.location), severity_text(diagnostic.severity),
                  shortened(diagnostic.message), code_text(diagnostic.code));
  text += excerpt(source, diagnostic.location);
  for (const Note& note : diagnostic.notes) {
    text +=
        fmt::format("{}note: {}\n", note.location ? location_text(file, note.location) : "", shortened(note.message));
    text += excerpt(source, note.location);
  }
  if (!diagnostic.hint.empty()) text += fmt::format("hint: {}\n", diagnostic.hint);
  return text;
}

std::string render(const Remark& remark, std::string_view file) {
  std::string facts;
  for (const auto& [key, value] : remark.facts) {
    facts += fmt::format("{}{}={}", facts.empty() ? "" : ", ", key, value);
  }
  if (!facts.empty()) facts = fmt::format(" {{{}}}", facts);
  std::string text = fmt::format("{}remark: {}{} [{}:{}]", location_text(file, remark.location), remark.message, facts,
                                 remark.pass, remark.code);
  if (!remark.suggestion.empty()) text += fmt::format("\nhint: {}", remark.suggestion);
  return text;
}

}  // namespace apl
