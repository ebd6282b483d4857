// Diagnostics: the table of codes, and the text that people see.
#include "ir/diagnostic.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace apl {
namespace {

struct Entry {
  Code code;
  std::string name;
};

const std::vector<Entry> kEntries{
#define APL_DIAGNOSTIC(name, text, fault, summary) {Code::name, #name},
#include "ir/diagnostics.def"
#undef APL_DIAGNOSTIC
};

TEST_CASE("codes are sorted, and their texts and names agree") {
  for (std::size_t k = 0; k < kEntries.size(); ++k) {
    std::string text(code_text(kEntries[k].code));
    CHECK_FALSE(code_summary(kEntries[k].code).empty());
    CHECK((k == 0 || code_text(kEntries[k - 1].code) < text));
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c == '.' || c == '-'; }, '_');
    CHECK(text == kEntries[k].name);
  }
  CHECK(code_text(Code::type_size_mismatch) == "type.size-mismatch");
}

TEST_CASE("the group of a code decides whose fault it is") {
  for (const Entry& entry : kEntries) {
    const std::string_view text = code_text(entry.code);
    if (text.starts_with("bug.")) CHECK(code_fault(entry.code) == Fault::bug);
    if (text.starts_with("command.")) CHECK(code_fault(entry.code) == Fault::command_line);
    if (text.starts_with("machine.")) CHECK(code_fault(entry.code) == Fault::machine);
    if (text.starts_with("unsupported.")) CHECK(code_fault(entry.code) == Fault::limitation);
    if (text.starts_with("type.")) CHECK(code_fault(entry.code) == Fault::program);
  }
}

Diagnostic mismatch(Location location) {
  return make_error(Code::type_size_mismatch, location, "operand has 4 columns, 5 are needed");
}

TEST_CASE("a diagnostic shows the source line and a caret range, then notes and hint") {
  const std::string source = "def f [n] (a: [n]i32) =\n\n  map2 g a b\n";
  Diagnostic diagnostic = mismatch({3, 10, 3, 12});
  diagnostic.notes.push_back({"the size comes from here", {1, 8, 1, 8}});
  diagnostic.notes.push_back({"sizes are compared as polynomials", {}});
  diagnostic.hint = "swap the arguments";
  CHECK(render(diagnostic, "file.fut", source) ==
        "file.fut:3:10: error: operand has 4 columns, 5 are needed [type.size-mismatch]\n"
        "    map2 g a b\n"
        "           ^~~\n"
        "file.fut:1:8: note: the size comes from here\n"
        "  def f [n] (a: [n]i32) =\n"
        "         ^\n"
        "note: sizes are compared as polynomials\n"
        "hint: swap the arguments\n");
}

TEST_CASE("without a place, a source or a file, what is known is shown") {
  CHECK(render(mismatch({}), "file.fut", "x") ==
        "file.fut: error: operand has 4 columns, 5 are needed [type.size-mismatch]\n");
  CHECK(render(mismatch({3, 10, 3, 12}), "file.fut", "") ==
        "file.fut:3:10: error: operand has 4 columns, 5 are needed [type.size-mismatch]\n");
  CHECK(render(mismatch({}), "", "") == "error: operand has 4 columns, 5 are needed [type.size-mismatch]\n");
  CHECK(render(mismatch({2, 1, 2, 1}), "", "") ==
        "2:1: error: operand has 4 columns, 5 are needed [type.size-mismatch]\n");
  Diagnostic elsewhere = mismatch({1, 1, 1, 1});
  elsewhere.file = "lib.fut";
  elsewhere.severity = Severity::warning;
  CHECK(render(elsewhere, "file.fut", "not lib.fut\n") ==
        "lib.fut:1:1: warning: operand has 4 columns, 5 are needed [type.size-mismatch]\n");
}

// The two lines under the message.
std::string shown(Location location, std::string_view source) {
  const std::string text = render(mismatch(location), "f", source);
  return text.substr(text.find('\n') + 1);
}

TEST_CASE("carets stand under what they mean") {
  CHECK(shown({1, 2, 1, 3}, "\tab = 1") == "  \tab = 1\n  \t^~\n");  // a tab is one column
  CHECK(shown({1, 2, 1, 4}, "\tab = 1") == "  \tab = 1\n  \t^~~\n");
  CHECK(shown({1, 8, 1, 8}, "-- \xC3\xA9\xC3\xA9 x") ==
        "  -- \xC3\xA9\xC3\xA9 x\n       ^\n");                  // bytes, not characters
  CHECK(shown({1, 3, 2, 1}, "a (b\nc)") == "  a (b\n    ^~\n");  // ends in a later line
  CHECK(shown({1, 4, 1, 4}, "abc") == "  abc\n     ^\n");        // the end of the text
  CHECK(shown({2, 1, 0, 0}, "a\r\nbc\r\n") == "  bc\n  ^\n");    // no end given
  CHECK(shown({1, 2, 1, 99}, "abc") == "  abc\n   ^~\n");
  CHECK(shown({9, 1, 9, 1}, "abc") == "");
  CHECK(shown({1, 99, 1, 99}, "abc") == "");
}

TEST_CASE("of a long line the part around the range is shown") {
  const std::string line = std::string(70, 'a') + "(here)" + std::string(1000000, 'b');
  CHECK(shown({1, 71, 1, 76}, line) == "  ..." + std::string(60, 'a') + "(here)" + std::string(134, 'b') + "...\n" +
                                           std::string(65, ' ') + "^~~~~~\n");
  CHECK(shown({1, 1, 1, 2}, line) == "  " + line.substr(0, 200) + "...\n  ^~\n");
  // To the end of the text, and not beyond it.
  const std::string end = std::string(300, 'a') + "z";
  CHECK(shown({1, 301, 1, 301}, end) ==
        "  ..." + std::string(199, 'a') + "z\n" + std::string(2 + 3 + 199, ' ') + "^\n");
  CHECK(shown({1, 302, 1, 302}, end) ==
        "  ..." + std::string(199, 'a') + "z\n" + std::string(2 + 3 + 200, ' ') + "^\n");
  // A range of several lines, or one longer than what is shown, is marked as far as the line is.
  CHECK(shown({1, 2, 9, 1}, end).ends_with("\n   ^" + std::string(198, '~') + "\n"));
  // Characters are whole.
  std::string accents;
  for (int k = 0; k < 300; ++k) accents += "\xC3\xA9";
  const std::string cut = shown({1, 302, 1, 302}, accents);
  CHECK(cut.starts_with("  ...\xC3\xA9"));
  CHECK(cut.find("\xC3\xA9...\n") != std::string::npos);
  CHECK(cut.find('\xC3') == 5);
}

TEST_CASE("of a message as long as a program both ends are shown") {
  std::string name;
  for (int k = 0; k < 100000; ++k) name += "\xC3\xA9";
  const std::string text = render(make_error(Code::type_unknown_name, {}, "Unknown name \"" + name + "\""), "f", "");
  CHECK(text.size() < 5000);
  CHECK(text.starts_with("f: error: Unknown name \"\xC3\xA9"));
  CHECK(text.find("\xC3\xA9 ... \xC3\xA9") != std::string::npos);
  CHECK(text.ends_with("\xC3\xA9\" [type.unknown-name]\n"));
}

TEST_CASE("a remark is one line with its facts, and its suggestion below") {
  Remark remark;
  remark.kind = RemarkKind::missed;
  remark.pass = "tile-contraction";
  remark.code = "operand-variant-to-all";
  remark.location = {3, 8, 3, 9};
  remark.message = "not tiled";
  remark.facts = {{"operand", "X"}, {"dims", "3"}};
  CHECK(render(remark, "file.fut") ==
        "file.fut:3:8: remark: not tiled {operand=X, dims=3} [tile-contraction:operand-variant-to-all]");
  remark.facts.clear();
  remark.location = {};
  remark.suggestion = "transpose X";
  CHECK(render(remark, "file.fut") ==
        "file.fut: remark: not tiled [tile-contraction:operand-variant-to-all]\nhint: transpose X");
}

TEST_CASE("a result holds a value or the reason why there is none") {
  const auto half = [](int number) -> Result<int> {
    if (number % 2 == 0) return number / 2;
    return mismatch({1, 1, 1, 1});
  };
  CHECK(half(4));
  CHECK(*half(4) == 2);
  CHECK_FALSE(half(3));
  CHECK(half(3).error().code == Code::type_size_mismatch);
}

}  // namespace
}  // namespace apl
