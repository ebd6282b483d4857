// Every program in docs/language.md's tables of messages gives the message beside it.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "tests/unit/frontend/support.h"

namespace apl::frontend {

namespace {

struct Row {
  std::string program, message;
};

// The rows `| PROGRAM | MESSAGE [code] ... |` between backticks.
std::vector<Row> documented() {
  std::vector<Row> rows;
  std::ifstream file(APL_SOURCE_DIR "/docs/language.md");
  for (std::string line; std::getline(file, line);) {
    const std::size_t middle = line.find("` | `");
    if (!line.starts_with("| `") || middle == std::string::npos) continue;
    Row row{line.substr(3, middle - 3), line.substr(middle + 5)};
    const std::size_t end = row.message.find("]`");
    if (end == std::string::npos) continue;
    row.message.resize(end + 1);
    // In tables a bar is escaped.
    for (std::string* text : {&row.program, &row.message})
      for (std::size_t at = text->find("\\|"); at != std::string::npos; at = text->find("\\|")) text->erase(at, 1);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

TEST_CASE("the documented messages are those that programs get") {
  const std::vector<Row> rows = documented();
  CHECK(rows.size() >= 30);
  for (const Row& row : rows) {
    CAPTURE(row.program);
    CAPTURE(row.message);
    const test::Outcome outcome = test::compile_text(row.program);
    const bool said = std::ranges::any_of(outcome.diagnostics, [&](const Diagnostic& diagnostic) {
      const std::string text = diagnostic.message + " [" + std::string(code_text(diagnostic.code)) + "]";
      return row.message.starts_with("... ") ? text.ends_with(row.message.substr(3)) : text == row.message;
    });
    CHECK_MESSAGE(said, outcome.messages());
  }
}

}  // namespace apl::frontend
