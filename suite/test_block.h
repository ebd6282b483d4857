// The test blocks of a Futhark program: comments that say on which inputs to run it and what must come out.
//
//   -- Adds.
//   -- ==
//   -- entry: main
//   -- "small" nobench input { 1 2 } output { 3 }
//   -- random input { i32 i32 } auto output
//   -- input @ data/large.in output @ data/large.out
//   -- input { 1 } error: Index .* out of bounds
//   -- structure gpu { SegMap 1 }
//
//   -- ==
//   -- property: is_sorted
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/diagnostic.h"

namespace apl::suite {

struct Input {
  enum class Kind : std::uint8_t { values, file, random, script, script_file };
  Kind kind = Kind::values;
  std::string text;  // values, the file's name as it is written, types and literals, or a script
};

struct Expected {
  enum class Kind : std::uint8_t { nothing, values, file, automatic, error };
  Kind kind = Kind::nothing;  // nothing: it must run, whatever comes out
  std::string text;           // values, the file's name, or the regular expression of a run-time error
};

struct Case {
  std::string name;  // as given, or made from the input; see default_name
  std::vector<std::string> tags;
  Input input;
  Expected expected;
  std::uint32_t line = 0;  // of the word `input`

  bool has_tag(std::string_view tag) const;
};

// The cases of one block, each meant for each of the entries.
struct CaseGroup {
  std::vector<std::string> entries;
  std::vector<Case> cases;
};

// Exact numbers of operations after a pipeline of Futhark's: `structure gpu { SegMap 1 /SegMap/Loop 2 }`.
struct Structure {
  std::vector<std::string> pipelines;  // empty: soacs
  std::vector<std::pair<std::string, int>> counts;
};

struct TestSpec {
  std::vector<std::string> tags;
  std::optional<std::string> compile_error;  // a regular expression: the program must not compile
  std::vector<std::string> properties;       // entries with #[prop]: true for every argument
  std::vector<CaseGroup> groups;
  std::vector<Structure> structures;
  std::vector<std::string> warnings;  // regular expressions
  std::vector<std::uint32_t> unread;  // lines with `==` that begin no block, as `--==`: only `-- ==` does

  bool has_tag(std::string_view tag) const;
};

// All blocks of a program. A program without blocks has an empty spec. Code syntax.error, with the location.
Result<TestSpec> parse_test_blocks(std::string_view source);

// How a case without a name is called: its file without .gz, its types, or `#i ("values")` cut at 50 characters.
std::string default_name(const Input& input, std::size_t index);

}  // namespace apl::suite
