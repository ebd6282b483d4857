#include "tests/golden_runner/file.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "ir/host_value.h"
#include "ir/sparse_arguments.h"

namespace apl::golden {

namespace {

constexpr std::string_view kOutput = "-- OUTPUT\n";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// `a=1 b=2`
std::optional<std::map<std::string, std::int64_t>> assignments(std::string_view text) {
  std::map<std::string, std::int64_t> result;
  std::istringstream words{std::string(text)};
  std::string word;
  while (words >> word) {
    const std::size_t equals = word.find('=');
    std::int64_t value = 0;
    const char* end = word.data() + word.size();
    if (equals == std::string::npos || equals == 0 || equals + 1 == word.size()) return std::nullopt;
    if (std::from_chars(word.data() + equals + 1, end, value).ptr != end) return std::nullopt;
    result[word.substr(0, equals)] = value;
  }
  if (result.empty()) return std::nullopt;
  return result;
}

// "mm.A 2x3 1 0 0 0 2.5 inf"
std::optional<KnownMatrix> matrix(const std::string& text) {
  std::istringstream in(text);
  std::string name;
  std::int64_t rows = 0, columns = 0;
  char times = 0;
  if (!(in >> name >> rows >> times >> columns) || times != 'x' || rows < 0 || columns < 0) return std::nullopt;
  const std::size_t dot = name.find('.');
  if (dot == std::string::npos) return std::nullopt;
  std::vector<float> elements;
  for (std::string word; in >> word;) {
    char* end = nullptr;
    elements.push_back(std::strtof(word.c_str(), &end));
    if (*end != '\0') return std::nullopt;
  }
  if (static_cast<std::int64_t>(elements.size()) != rows * columns) return std::nullopt;
  const HostValue dense = HostValue::array(ScalarType::f32, {rows, columns}, elements);
  return KnownMatrix{name.substr(0, dot), name.substr(dot + 1), "0123456789abcdef",
                     std::make_shared<const HostCsr>(to_csr(dense))};
}

// Takes one directive; returns why it cannot.
std::string take_directive(File& file, std::string_view name, std::string_view value) {
  const auto once = [&](std::string& field) -> std::string {
    if (value.empty()) return fmt::format("{} says nothing", name);
    if (!field.empty()) return fmt::format("{} stands twice", name);
    field = value;
    return {};
  };
  if (name == "RUN") return once(file.pipeline);
  if (name == "NO-LAW") return once(file.no_law);
  if (name == "WANT") {
    file.wants.emplace_back(value);
    return value.empty() ? "WANT says nothing" : "";
  }
  if (name == "ERROR") {
    std::string code = file.error.value_or("");
    std::string why = once(code);
    file.error = code;
    return why;
  }
  if (name == "MATRIX") {
    const auto known = matrix(std::string(value));
    if (!known) return fmt::format("{} takes ENTRY.NAME ROWSxCOLUMNS and the elements, not '{}'", name, value);
    file.matrices.push_back(*known);
    return {};
  }
  if (name == "PARAM" || name == "SIZES") {
    const auto values = assignments(value);
    if (!values) return fmt::format("{} takes assignments such as `n=5`, not '{}'", name, value);
    if (name == "SIZES")
      file.sizes.push_back(*values);
    else
      file.parameters.insert(values->begin(), values->end());
    return {};
  }
  return fmt::format("there is no directive {}; known are RUN PARAM MATRIX SIZES WANT IDEMPOTENT ERROR NO-LAW", name);
}

bool is_directive_name(std::string_view name) {
  return !name.empty() && name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ-") == std::string_view::npos;
}

// Returns why the line, a comment, cannot be taken.
std::string take_comment(File& file, std::string_view comment) {
  if (comment == "IDEMPOTENT") {
    file.idempotent = true;
    return {};
  }
  const std::size_t colon = comment.find(':');
  if (colon == std::string_view::npos || !is_directive_name(comment.substr(0, colon))) return {};  // prose
  return take_directive(file, comment.substr(0, colon), trimmed(comment.substr(colon + 1)));
}

}  // namespace

Result<File> parse_file(const std::string& path, const std::string& text) {
  File file;
  file.path = path;
  std::size_t split = text.starts_with(kOutput) ? 0 : text.find("\n" + std::string(kOutput));
  if (split == std::string::npos) {
    file.head = text;
  } else {
    if (split != 0) ++split;
    file.head = text.substr(0, split);
    file.recorded = text.substr(split + kOutput.size());
  }
  std::istringstream lines(file.head);
  std::string line;
  bool leading = true;
  for (std::uint32_t number = 1; std::getline(lines, line); ++number) {
    const std::string_view content = trimmed(line);
    if (!content.starts_with("--")) {
      leading = leading && content.empty();
      continue;
    }
    std::string why;
    const std::string_view comment = trimmed(content.substr(2));
    if (leading) {
      why = take_comment(file, comment);
    } else if (comment.starts_with("RUN:") || comment.starts_with("WANT:")) {
      why = "directives stand before the input";
    }
    if (why.empty()) continue;
    Diagnostic error = make_error(Code::command_bad_argument, {number, 1, number, 1}, std::move(why));
    error.file = path;
    return error;
  }
  if (file.pipeline.empty()) {
    Diagnostic error = make_error(Code::command_bad_argument, {}, "a golden file needs a line `-- RUN: pipeline`");
    error.file = path;
    return error;
  }
  return file;
}

Result<File> read_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  if (stream) text << stream.rdbuf();
  if (!stream) return make_error(Code::command_no_such_file, {}, fmt::format("{} cannot be read", path));
  return parse_file(path, text.str());
}

Status write_recorded(const File& file, std::string_view recorded) {
  const std::string temporary = file.path + ".new";
  {
    std::ofstream stream(temporary, std::ios::binary);
    stream << file.head;
    if (!file.head.empty() && !file.head.ends_with('\n')) stream << '\n';
    stream << kOutput << recorded;
    stream.close();
    if (!stream) return make_error(Code::command_no_such_file, {}, fmt::format("{} cannot be written", temporary));
  }
  std::error_code error;
  std::filesystem::rename(temporary, file.path, error);
  if (error)
    return make_error(Code::command_no_such_file, {},
                      fmt::format("{} cannot be replaced: {}", file.path, error.message()));
  return Unit{};
}

}  // namespace apl::golden
