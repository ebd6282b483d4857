// Pipeline text in and out: `simplify,tile-contraction{tile=16 guards=none},place-memory`.
// A value is text up to a blank or '}'; in double quotes it may hold those too (\" and \\ stand for " and \).
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/similar_name.h"
#include "passes/pipeline.h"

namespace apl {

namespace {

// "did you mean 'x'?", or nothing.
std::string suggest(std::string_view word, const std::vector<std::string>& names) {
  const std::optional<std::string> similar = similar_name(word, names);
  return similar ? fmt::format("did you mean '{}'?", *similar) : std::string();
}

std::string_view type_name(const OptionValue& value) {
  if (std::holds_alternative<bool>(value)) return "true or false";
  if (std::holds_alternative<std::int64_t>(value)) return "an integer";
  return "text";
}

struct Word {
  std::string text;
  std::size_t begin = 0;
  std::size_t end = 0;
  bool quoted = false;
};

class Parser {
 public:
  Parser(std::string_view text, const PassRegistry& registry) : text_(text) { pipeline_.registry = registry; }

  Result<Pipeline> parse() {
    skip_blanks();
    if (at_end()) return std::move(pipeline_);
    for (;;) {
      if (!parse_pass()) return std::move(*error_);
      skip_blanks();
      if (at_end()) return std::move(pipeline_);
      if (text_[position_] != ',') {
        fail(position_, position_, fmt::format("expected ',' between passes, found '{}'", text_[position_]));
        return std::move(*error_);
      }
      ++position_;
    }
  }

 private:
  bool at_end() const { return position_ >= text_.size(); }
  void skip_blanks() {
    while (!at_end() && is_blank(text_[position_])) ++position_;
  }
  static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
  static bool is_special(char c) { return is_blank(c) || c == ',' || c == '{' || c == '}' || c == '='; }

  // `begin` and `end` are the first and the last character meant.
  bool fail(std::size_t begin, std::size_t end, std::string message, std::string hint = {}) {
    const auto column = [](std::size_t at) { return static_cast<std::uint32_t>(at + 1); };
    const Location location{1, column(begin), 1, column(std::max(begin, end))};
    Diagnostic error = make_error(Code::command_bad_pipeline, location,
                                  fmt::format("{} (character {} of the pipeline)", message, begin + 1));
    error.file = "<pipeline>";
    error.hint = std::move(hint);
    error.notes.push_back({fmt::format("the pipeline is: {}", text_), {}});
    error_ = std::move(error);
    return false;
  }

  Word word() {
    skip_blanks();
    Word result{.begin = position_};
    while (!at_end() && !is_special(text_[position_])) result.text += text_[position_++];
    result.end = result.begin == position_ ? position_ : position_ - 1;
    return result;
  }

  bool parse_pass() {
    const Word name = word();
    if (name.text.empty()) return fail(name.begin, name.end, "expected the name of a pass");
    const std::vector<PassInfo>& passes = pipeline_.registry.passes();
    const auto found = std::ranges::find(passes, name.text, &PassInfo::name);
    if (found == passes.end()) {
      std::vector<std::string> names;
      for (const PassInfo& pass : passes) names.push_back(pass.name);
      fail(name.begin, name.end, fmt::format("there is no pass '{}'", name.text), suggest(name.text, names));
      error_->notes.push_back({fmt::format("the passes are: {}", fmt::join(names, ", ")), {}});
      return false;
    }
    std::map<std::string, OptionValue> options;
    for (const PassOption& option : found->options) options[option.name] = option.default_value;
    skip_blanks();
    if (!at_end() && text_[position_] == '{' && !parse_options(*found, options)) return false;
    pipeline_.order.push_back(static_cast<std::size_t>(found - passes.begin()));
    pipeline_.options.push_back(std::move(options));
    return true;
  }

  bool parse_options(const PassInfo& pass, std::map<std::string, OptionValue>& options) {
    const std::size_t open = position_++;
    std::vector<std::string> seen;
    for (;;) {
      skip_blanks();
      if (at_end()) return fail(open, open, fmt::format("the '{{' after '{}' is never closed", pass.name));
      if (text_[position_] == '}') {
        ++position_;
        return true;
      }
      const Word name = word();
      if (name.text.empty()) {
        return fail(position_, position_,
                    fmt::format("expected an option of '{}', found '{}'", pass.name, text_[position_]));
      }
      if (std::ranges::find(seen, name.text) != seen.end()) {
        return fail(name.begin, name.end, fmt::format("option '{}' is given twice", name.text));
      }
      seen.push_back(name.text);
      const auto declared = std::ranges::find(pass.options, name.text, &PassOption::name);
      if (declared == pass.options.end()) return unknown_option(pass, name);
      const std::optional<OptionValue> value = parse_value(*declared, name);
      if (!value) return false;
      options[name.text] = *value;
    }
  }

  bool unknown_option(const PassInfo& pass, const Word& name) {
    std::vector<std::string> names;
    for (const PassOption& option : pass.options) names.push_back(option.name);
    fail(name.begin, name.end, fmt::format("pass '{}' has no option '{}'", pass.name, name.text),
         suggest(name.text, names));
    error_->notes.push_back({names.empty() ? fmt::format("'{}' has no options", pass.name)
                                           : fmt::format("its options are: {}", fmt::join(names, ", ")),
                             {}});
    return false;
  }

  // The value after the option's name. A flag alone is `true`.
  std::optional<OptionValue> parse_value(const PassOption& option, const Word& name) {
    skip_blanks();
    const bool given = !at_end() && text_[position_] == '=';
    if (!given) {
      if (std::holds_alternative<bool>(option.default_value)) return OptionValue(true);
      fail(name.begin, name.end,
           fmt::format("option '{}' needs a value: {}={}", option.name, option.name, type_name(option.default_value)));
      return std::nullopt;
    }
    ++position_;
    const std::optional<Word> value = value_word();
    if (!value) return std::nullopt;
    if (std::holds_alternative<std::string>(option.default_value)) return OptionValue(value->text);
    if (std::holds_alternative<bool>(option.default_value)) {
      if (value->text == "true") return OptionValue(true);
      if (value->text == "false") return OptionValue(false);
    } else {
      std::int64_t number = 0;
      const char* end = value->text.data() + value->text.size();
      const auto [stop, status] = std::from_chars(value->text.data(), end, number);
      if (status == std::errc() && stop == end && !value->text.empty()) return OptionValue(number);
    }
    fail(value->begin, value->end,
         fmt::format("option '{}' takes {}, not '{}'", option.name, type_name(option.default_value), value->text));
    return std::nullopt;
  }

  std::optional<Word> value_word() {
    skip_blanks();
    if (at_end() || text_[position_] != '"') {
      Word result{.begin = position_};
      while (!at_end() && !is_blank(text_[position_]) && text_[position_] != '}') result.text += text_[position_++];
      result.end = result.begin == position_ ? position_ : position_ - 1;
      return result;
    }
    Word result{.begin = position_++, .quoted = true};
    while (!at_end() && text_[position_] != '"') {
      if (text_[position_] == '\\' && position_ + 1 < text_.size()) ++position_;
      result.text += text_[position_++];
    }
    if (at_end()) {
      fail(result.begin, result.begin, "the text is never closed");
      return std::nullopt;
    }
    result.end = position_++;
    return result;
  }

  std::string_view text_;
  std::size_t position_ = 0;
  Pipeline pipeline_;
  std::optional<Diagnostic> error_;
};

std::string value_text(const OptionValue& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const std::int64_t* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  const std::string& text = std::get<std::string>(value);
  if (!text.empty() && text.find_first_of(" \t\r\n}\"\\") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace

Result<Pipeline> parse_pipeline(std::string_view text, const PassRegistry& registry) {
  return Parser(text, registry).parse();
}

std::string Pipeline::to_text() const {
  std::vector<std::string> steps;
  for (std::size_t k = 0; k < order.size(); ++k) {
    const PassInfo& pass = registry.passes()[order[k]];
    std::vector<std::string> given;  // only what differs from the defaults, so that usual pipelines stay short
    for (const PassOption& option : pass.options) {
      const auto found = options[k].find(option.name);
      if (found == options[k].end() || found->second == option.default_value) continue;
      given.push_back(fmt::format("{}={}", option.name, value_text(found->second)));
    }
    steps.push_back(given.empty() ? pass.name : fmt::format("{}{{{}}}", pass.name, fmt::join(given, " ")));
  }
  return fmt::format("{}", fmt::join(steps, ","));
}

std::string standard_pipeline(Stage until, Machine machine, bool variants) {
  return standard_pipeline(until, machine, variants, PassRegistry());
}

std::string standard_pipeline(Stage until, Machine machine, bool variants, const PassRegistry& registry) {
  const bool gpu = machine == Machine::gpu;
  std::vector<std::string> passes;
  const auto add = [&](std::initializer_list<std::string_view> more) {
    for (const std::string_view pass : more)
      if (!pass.empty()) passes.emplace_back(pass);
  };
  const auto insert = [&](InsertionPoint point) {
    const auto found = registry.insertions().find(point);
    if (found != registry.insertions().end()) passes.insert(passes.end(), found->second.begin(), found->second.end());
  };
  insert(InsertionPoint::start);
  // GPUs convert f16 in an instruction.
  add({"inline", "differentiate", "simplify", "cse", gpu ? "sink-conversions{halves}" : "sink-conversions"});
  insert(InsertionPoint::before_fuse);
  add({"fuse", "simplify", "cse", "elide-copies"});
  insert(InsertionPoint::soac_end);
  const auto text = [&] { return fmt::format("{}", fmt::join(passes, ",")); };
  if (until == Stage::soac) return text();
  add({gpu ? "extract-kernels" : "extract-kernels{few-threads}", "simplify", "cse"});
  insert(InsertionPoint::kernel_start);
  add({gpu ? "sparsify" : "sparsify{few-threads}"});
  insert(InsertionPoint::before_tiling);
  add({!gpu ? "tile-contraction{packed}" : variants ? "tile-contraction{variants}" : "tile-contraction"});
  insert(InsertionPoint::after_tiling);
  // Neighbouring threads of a CPU do not read memory together.
  add({gpu ? "coalesce" : "", "simplify"});
  insert(InsertionPoint::kernel_end);
  if (until == Stage::kernel) return text();
  add({"place-memory"});
  insert(InsertionPoint::memory_end);
  return text();
}

}  // namespace apl
