#include "aplc/expectations.h"

#include <fmt/format.h>

#include <regex>

namespace aplc {
namespace {

struct Said {
  std::string kind;
  std::uint32_t line = 0;
  std::string text;
  bool must_be_expected = false;
};

std::string severity_text(apl::Severity severity) {
  switch (severity) {
    case apl::Severity::error: return "error";
    case apl::Severity::warning: return "warning";
    case apl::Severity::note: return "note";
  }
  return "error";
}

std::vector<Said> all_said(const std::vector<apl::Diagnostic>& diagnostics, const std::vector<apl::Remark>& remarks) {
  std::vector<Said> said;
  for (const apl::Diagnostic& diagnostic : diagnostics) {
    said.push_back({severity_text(diagnostic.severity), diagnostic.location.line,
                    fmt::format("{} [{}]", diagnostic.message, apl::code_text(diagnostic.code)),
                    diagnostic.severity != apl::Severity::note});
    for (const apl::Note& note : diagnostic.notes) said.push_back({"note", note.location.line, note.message});
    if (!diagnostic.hint.empty()) said.push_back({"note", diagnostic.location.line, diagnostic.hint});
  }
  for (const apl::Remark& remark : remarks)
    said.push_back(
        {"remark", remark.location.line, fmt::format("{} [{}:{}]", remark.message, remark.pass, remark.code)});
  return said;
}

}  // namespace

apl::Result<std::vector<Expectation>> read_expectations(const std::string& text) {
  static const std::regex kForm(
      R"(expected-(error|warning|note|remark)(@(\+\d+|-\d+|above|below|\*))?\s*\{\{(.*?)\}\})");
  std::vector<Expectation> all;
  std::uint32_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    const std::size_t comment = line.find("--");
    if (comment == std::string::npos) continue;
    const std::string said = line.substr(comment);
    std::size_t found = 0;
    for (std::sregex_iterator match(said.begin(), said.end(), kForm), last; match != last; ++match, ++found) {
      Expectation expected{.kind = (*match)[1], .line = number, .text = (*match)[4], .at = number};
      const std::string place = (*match)[3];
      if (place == "*") {
        expected.line.reset();
      } else if (!place.empty()) {
        const int offset = place == "above" ? -1 : place == "below" ? 1 : std::stoi(place);
        expected.line = static_cast<std::uint32_t>(static_cast<int>(number) + offset);
      }
      all.push_back(std::move(expected));
    }
    static const std::regex kWord(R"(expected-(error|warning|note|remark))");
    const auto words =
        static_cast<std::size_t>(std::distance(std::sregex_iterator(said.begin(), said.end(), kWord), {}));
    if (words != found)
      return apl::make_error(
          apl::Code::command_bad_argument, {number, static_cast<std::uint32_t>(comment + 1)},
          "an expected diagnostic has the form `expected-KIND@PLACE {{text}}`, with @+N, @-N, @above, "
          "@below, @* or no place");
  }
  return all;
}

std::vector<apl::Diagnostic> compare_diagnostics(const std::vector<Expectation>& expected,
                                                 const std::vector<apl::Diagnostic>& diagnostics,
                                                 const std::vector<apl::Remark>& remarks) {
  const std::vector<Said> said = all_said(diagnostics, remarks);
  std::vector<bool> met(said.size());
  std::vector<apl::Diagnostic> errors;
  for (const Expectation& expectation : expected) {
    bool found = false;
    for (std::size_t k = 0; k < said.size() && !found; ++k) {
      found = !met[k] && said[k].kind == expectation.kind && (!expectation.line || *expectation.line == said[k].line) &&
              said[k].text.find(expectation.text) != std::string::npos;
      if (found) met[k] = true;
    }
    if (!found)
      errors.push_back(apl::make_error(
          apl::Code::check_diagnostics, {expectation.at, 1, expectation.at, 1},
          fmt::format("expected {} \"{}\" {} was not reported", expectation.kind, expectation.text,
                      expectation.line ? fmt::format("on line {}", *expectation.line) : std::string("at any place"))));
  }
  for (std::size_t k = 0; k < said.size(); ++k) {
    if (met[k] || !said[k].must_be_expected) continue;
    const apl::Location place = said[k].line ? apl::Location{said[k].line, 1, said[k].line, 1} : apl::Location{};
    errors.push_back(apl::make_error(apl::Code::check_diagnostics, place,
                                     fmt::format("unexpected {}: {}", said[k].kind, said[k].text)));
  }
  return errors;
}

}  // namespace aplc
