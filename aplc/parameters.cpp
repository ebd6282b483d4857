#include "aplc/parameters.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <sstream>
#include <string_view>

namespace aplc {
namespace {

using Parameter = std::pair<std::string, std::int64_t>;

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\v\f";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::optional<Parameter> split_parameter(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) return std::nullopt;
  const std::string_view name = without_blanks(text.substr(0, equals));
  const std::string_view number = without_blanks(text.substr(equals + 1));
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (name.empty() || number.empty() || error != std::errc() || end != number.data() + number.size())
    return std::nullopt;
  return Parameter(name, value);
}

apl::Diagnostic bad_parameter(std::string message) {
  return apl::make_error(apl::Code::command_bad_parameter, {}, std::move(message));
}

// ENTRY.T_d, ENTRY.R_d and ENTRY.stages, whatever stands before.
bool is_tile_number(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return false;
  const std::string_view last = name.substr(dot + 1);
  return last.starts_with("T_") || last.starts_with("R_") || last == "stages";
}

apl::Status check_domain(const Parameter& parameter) {
  constexpr std::int64_t kMostTile = std::int64_t{1} << 20;
  const auto& [name, value] = parameter;
  if (is_tile_number(name) && value > kMostTile)
    return bad_parameter(fmt::format("{}={}: a tile number is {} at most", name, value, kMostTile));
  return apl::Unit{};
}

}  // namespace

apl::Result<Parameter> parse_parameter(const std::string& text) {
  auto parameter = split_parameter(text);
  if (!parameter || parameter->second < 1)
    return bad_parameter(fmt::format("--param {}: expected NAME=VALUE with a whole number of at least 1", text));
  if (auto fits = check_domain(*parameter); !fits) return std::move(fits).error();
  return std::move(*parameter);
}

apl::Result<Parameters> parse_tuning(const std::string& text, std::map<std::string, std::uint32_t>* lines_of) {
  Parameters parameters;
  std::istringstream lines(text);
  std::uint32_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::string_view rest = without_blanks(line);
    if (rest.empty()) continue;
    constexpr std::size_t kMostShown = 80;
    const auto parameter = split_parameter(rest);
    apl::Status fits = apl::Unit{};
    if (!parameter || parameter->second < 0) {
      fits = bad_parameter(fmt::format("tuning file: expected NAME=VALUE with a whole number, found `{}{}`",
                                       rest.substr(0, kMostShown), rest.size() > kMostShown ? "..." : ""));
    } else {
      fits = check_domain(*parameter);
    }
    if (!fits) {
      apl::Diagnostic error = std::move(fits).error();
      error.location = {number, 1, number, 1};
      return error;
    }
    if (lines_of != nullptr) (*lines_of)[parameter->first] = number;
    parameters.erase(parameter->first);
    if (parameter->second > 0) parameters.insert(*parameter);
  }
  return parameters;
}

apl::Result<Parameter> parse_size(const std::string& text) {
  auto size = split_parameter(text);
  if (size && size->second >= 1) return std::move(*size);
  return apl::make_error(apl::Code::command_bad_argument, {},
                         fmt::format("--size {}: expected NAME=NUMBER, of at least 1", text));
}

}  // namespace aplc
