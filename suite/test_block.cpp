#include "suite/test_block.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "ir/host_value.h"

namespace apl::suite {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

bool contains(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The lines of a block after `==`, without their `--`, and the number of the first.
struct Block {
  std::string text;
  std::uint32_t first_line = 0;
};

// As in Futhark, a block begins with `-- ==`; lines that differ from it only by blanks go to `unread`.
std::vector<Block> find_blocks(std::string_view source, std::vector<std::uint32_t>& unread) {
  std::vector<Block> blocks;
  bool in_block = false;
  std::uint32_t number = 0;
  while (!source.empty()) {
    ++number;
    const std::size_t end = source.find('\n');
    std::string_view line = source.substr(0, end);
    source.remove_prefix(end == std::string_view::npos ? source.size() : end + 1);
    if (!line.starts_with("--")) {
      in_block = false;
      continue;
    }
    const bool begins_block = line.starts_with("-- ==");
    line.remove_prefix(2);
    if (in_block) {
      blocks.back().text.append(line).append("\n");
    } else if (trimmed(line) == "==") {
      in_block = begins_block;
      if (begins_block) {
        blocks.push_back({"", number + 1});
      } else {
        unread.push_back(number);
      }
    }
  }
  return blocks;
}

// The first error ends the reading: after it every method returns as soon as it can.
class BlockParser {
 public:
  BlockParser(const Block& block, bool is_first, TestSpec& spec)
      : text_(block.text), line_(block.first_line), is_first_(is_first), spec_(spec) {}

  std::optional<Diagnostic> run() {
    if (is_first_ && take_word("tags")) tags();
    if (is_first_ && take("error:")) {
      spec_.compile_error = rest_of_line();
      skip_blanks();
      if (at_ < text_.size()) fail("nothing may follow `error:` in a block of a program that must not compile");
    } else if (take("property:")) {
      properties();
    } else {
      cases();
    }
    if (error_.empty()) return std::nullopt;
    const auto before = text_.substr(0, error_at_);
    const auto line = line_ + static_cast<std::uint32_t>(std::count(before.begin(), before.end(), '\n'));
    const std::size_t newline = before.rfind('\n');
    const auto column =
        static_cast<std::uint32_t>(3 + before.size() - (newline == std::string_view::npos ? 0 : newline + 1));
    return make_error(Code::syntax_error, {line, column, line, column}, "test block: " + error_);
  }

 private:
  void fail(std::string message) {
    if (!error_.empty()) return;
    error_ = std::move(message);
    error_at_ = at_;
  }
  void skip_blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }
  bool take(std::string_view token) {
    skip_blanks();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  static bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || std::string_view("_-./'").find(c) != std::string_view::npos;
  }
  std::string_view peek_word() {
    skip_blanks();
    std::size_t end = at_;
    while (end < text_.size() && is_word(text_[end])) ++end;
    return text_.substr(at_, end - at_);
  }
  bool take_word(std::string_view word) {
    if (peek_word() != word) return false;
    at_ += word.size();
    return true;
  }
  std::string found() {
    skip_blanks();
    return at_ < text_.size() ? fmt::format("`{}`", text_.substr(at_, text_.find_first_of(" \n", at_) - at_))
                              : "the end of the block";
  }
  std::string rest_of_line() {
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    const std::string_view line = text_.substr(at_, end - at_);
    at_ = end;
    return std::string(trimmed(line));
  }
  static std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> words;
    for (text = trimmed(text); !text.empty(); text = trimmed(text)) {
      const std::size_t end = std::min(text.find_first_of(" \t\r\n"), text.size());
      words.emplace_back(text.substr(0, end));
      text.remove_prefix(end);
    }
    return words;
  }

  // `{ ... }`, braces nested, strings as they are.
  std::string braces() {
    if (!take("{")) {
      fail(fmt::format("expected `{{`, found {}", found()));
      return {};
    }
    const std::size_t from = at_;
    int depth = 1;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '"') {
        for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_)
          if (text_[at_] == '\\') ++at_;
        if (at_ >= text_.size()) break;
      }
      if (c == '{') ++depth;
      if (c == '}' && --depth == 0) {
        std::string inner(trimmed(text_.substr(from, at_ - from)));
        ++at_;
        return inner;
      }
    }
    at_ = from - 1;
    fail("a `{` without its `}`");
    return {};
  }

  // The word after `@`.
  std::string file_name() {
    skip_blanks();
    const std::size_t end = std::min(text_.find_first_of(" \t\r\n", at_), text_.size());
    std::string name(text_.substr(at_, end - at_));
    at_ = end;
    if (name.empty()) fail("expected the name of a file");
    return name;
  }

  void tags() { spec_.tags = words_of(braces()); }

  void properties() {
    do {
      const std::vector<std::string> names = words_of(rest_of_line());
      if (names.empty()) fail("expected the names of entries after `property:`");
      spec_.properties.insert(spec_.properties.end(), names.begin(), names.end());
    } while (take("property:"));
    skip_blanks();
    if (at_ < text_.size()) fail(fmt::format("expected `property:` or the end of the block, found {}", found()));
  }

  void cases() {
    CaseGroup group;
    if (take("entry:")) {
      group.entries = words_of(rest_of_line());
    } else {
      group.entries = {"main"};
    }
    while (error_.empty() && at_case()) group.cases.push_back(one_case(group.cases.size()));
    if (!group.cases.empty()) spec_.groups.push_back(std::move(group));
    while (error_.empty() && take_word("structure")) structure();
    while (error_.empty() && take("warning:")) spec_.warnings.push_back(rest_of_line());
    skip_blanks();
    if (at_ < text_.size()) fail(fmt::format("expected a case, `structure` or `warning:`, found {}", found()));
  }

  bool at_case() {
    const std::string_view word = peek_word();
    if (at_ < text_.size() && text_[at_] == '"') return true;
    if (word.empty() || word == "structure") return false;
    return !(word == "warning" && text_.substr(at_ + word.size(), 1) == ":");
  }

  Case one_case(std::size_t index) {
    Case result;
    if (take("\"")) {
      const std::size_t end = text_.find('"', at_);
      if (end == std::string_view::npos) {
        fail("a name without its closing quote");
        return result;
      }
      result.name = std::string(text_.substr(at_, end - at_));
      at_ = end + 1;
    }
    for (std::string_view word = peek_word(); !word.empty() && word != "input"; word = peek_word()) {
      result.tags.emplace_back(word);
      at_ += word.size();
    }
    if (peek_word() != "input") {
      fail(fmt::format("expected `input`, found {}", found()));
      return result;
    }
    const auto before = text_.substr(0, at_);
    result.line = line_ + static_cast<std::uint32_t>(std::count(before.begin(), before.end(), '\n'));
    at_ += std::string_view("input").size();
    const bool is_script = result.has_tag("script");
    if (take("@")) {
      result.input = {is_script ? Input::Kind::script_file : Input::Kind::file, file_name()};
    } else {
      const auto kind = is_script                  ? Input::Kind::script
                        : result.has_tag("random") ? Input::Kind::random
                                                   : Input::Kind::values;
      result.input = {kind, braces()};
    }
    expectation(result.expected);
    if (result.name.empty()) result.name = default_name(result.input, index);
    return result;
  }

  void expectation(Expected& expected) {
    if (take("error:")) {
      expected = {Expected::Kind::error, rest_of_line()};
    } else if (take_word("auto")) {
      if (!take_word("output")) fail(fmt::format("expected `output` after `auto`, found {}", found()));
      expected.kind = Expected::Kind::automatic;
    } else if (take_word("output")) {
      if (take("@")) {
        expected = {Expected::Kind::file, file_name()};
      } else {
        expected = {Expected::Kind::values, braces()};
      }
    }
  }

  void structure() {
    Structure result;
    for (std::string_view word = peek_word(); !word.empty(); word = peek_word()) {
      result.pipelines.emplace_back(word);
      at_ += word.size();
    }
    const std::size_t start = at_;
    const std::vector<std::string> words = words_of(braces());
    for (std::size_t k = 0; k < words.size(); k += 2) {
      int count = -1;
      if (k + 1 < words.size()) std::from_chars(words[k + 1].data(), words[k + 1].data() + words[k + 1].size(), count);
      if (count < 0) {
        at_ = start;
        fail(fmt::format("expected a number after {}", words[k]));
      }
      result.counts.emplace_back(words[k], count);
    }
    spec_.structures.push_back(std::move(result));
  }

  std::string_view text_;
  std::uint32_t line_;
  bool is_first_;
  TestSpec& spec_;
  std::size_t at_ = 0;
  std::string error_;
  std::size_t error_at_ = 0;
};

}  // namespace

bool Case::has_tag(std::string_view tag) const { return contains(tags, tag); }
bool TestSpec::has_tag(std::string_view tag) const { return contains(tags, tag); }

std::string default_name(const Input& input, std::size_t index) {
  constexpr std::size_t kLongest = 50;
  switch (input.kind) {
    case Input::Kind::file:
    case Input::Kind::script_file:
      return input.text.ends_with(".gz") ? input.text.substr(0, input.text.size() - 3) : input.text;
    case Input::Kind::random:
    case Input::Kind::script: {
      std::string name;
      for (char c : input.text)
        if (!is_blank(c)) {
          name += c;
        } else if (!name.ends_with(' ')) {
          name += ' ';
        }
      return name;
    }
    case Input::Kind::values: break;
  }
  std::string values = input.text;
  if (auto parsed = parse_values(input.text, OutOfRange::wrap)) {
    values.clear();
    for (const HostValue& value : *parsed) values += (values.empty() ? "" : " ") + value.to_text();
  }
  if (values.size() > kLongest) values = values.substr(0, kLongest) + "...";
  return fmt::format("#{} (\"{}\")", index, values);
}

Result<TestSpec> parse_test_blocks(std::string_view source) {
  TestSpec spec;
  const std::vector<Block> blocks = find_blocks(source, spec.unread);
  for (std::size_t k = 0; k < blocks.size(); ++k) {
    if (spec.compile_error) {
      const std::uint32_t line = blocks[k].first_line;
      return make_error(Code::syntax_error, {line, 1, line, 1},
                        "test block: a program that must not compile has no other block");
    }
    if (auto error = BlockParser(blocks[k], k == 0, spec).run()) return *error;
  }
  return spec;
}

}  // namespace apl::suite
