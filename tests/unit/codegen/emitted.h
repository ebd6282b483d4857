// From an example to its generated program, with tile numbers so small that a handful of elements fills several tiles.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "codegen/codegen.h"
#include "frontend/frontend.h"
#include "ir/walk.h"
#include "passes/pipeline.h"
#include "tests/unit/codegen/kernels.h"

namespace emitted {

using kernels::contains;
using kernels::take;

inline apl::Module compiled(const std::string& file, const std::string& text) {
  auto module = apl::compile({file, text}, [](const apl::Diagnostic& d) { FAIL(d.message); });
  REQUIRE(module);
  return *module;
}

// The front end's module of examples/NAME.fut, without other entries than `entry`; all of them if that is empty.
inline apl::Module example(const std::string& name, const std::string& entry = "") {
  const std::string file = std::string(APL_SOURCE_DIR) + "/examples/" + name + ".fut";
  std::ifstream in(file);
  REQUIRE_MESSAGE(in, file);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  // The place of the tree is not in the text.
  apl::Module module = compiled(name + ".fut", text);
  if (!entry.empty())
    std::erase_if(module.functions,
                  [&](const apl::FunctionPtr& f) { return f->is_entry() && f->entry->name != entry; });
  REQUIRE_FALSE(module.functions.empty());
  return module;
}

using Numbers = std::map<std::string, std::int64_t>;

inline apl::Module at(apl::Stage stage, apl::Module module, const Numbers& numbers = {}) {
  apl::PipelineOptions options;
  options.parameters = numbers;
  auto pipeline = take(apl::parse_pipeline(apl::standard_pipeline(stage), apl::PassRegistry::builtin()));
  take(apl::run_pipeline(module, pipeline, options));
  return module;
}

// Two threads a dim, one or two registers in turn, and reduction tiles of three.
inline Numbers small_tiles(const apl::Module& module) {
  Numbers numbers;
  int registers = 0;
  for (const apl::FunctionPtr& function : at(apl::Stage::kernel, module).functions)
    apl::for_each_stm(*function->body, [&](const apl::Stm& stm) {
      const auto* size = apl::get_if<apl::GetSize>(stm);
      if (!size) return;
      if (size->size_class == apl::SizeClass::tile_size)
        numbers[size->name] = contains(size->name, ".T_q") ? 3 : 2;
      else
        numbers[size->name] = 1 + registers++ % 2;
    });
  return numbers;
}

inline apl::ProgramText text_of(const apl::Module& module, apl::Target target, const Numbers& numbers = {}) {
  apl::CodegenOptions options;
  options.parameters = numbers;
  return take(apl::generate(at(apl::Stage::memory, module, numbers), target, options));
}

// So many levels of functions, each of which calls the one before in two places or three: of scalars, in a map and on
// the host, and of arrays whose sizes they decide.
inline std::string levels_of_calls(int levels) {
  std::string text =
      "def s0 (x: i32) : i32 = if x > 100 then x / 3 else loop y = x for i < x do if y > i then y - 2 * i else y * 3\n"
      "def a0 (x: i64) : []i64 = if x % 2 == 0 then iota (x % 5) else if x < 100 then [x, x + 1] else []\n";
  for (int k = 1; k <= levels; ++k) {
    const std::string level = std::to_string(k), before = std::to_string(k - 1);
    text += "def s" + level + " (x: i32) : i32 = if x > " + level + " then s" + before + " x + s" + before +
            " (x + 1) else s" + before + " (x - 1)\n";
    text += "def a" + level + " (x: i64) : []i64 = if x % " + level + " == 0 then a" + before + " x ++ a" + before +
            " (x + 1) else a" + before + " (x - 1)\n";
  }
  const std::string last = std::to_string(levels);
  return text + "entry main (xs: []i32) : ([]i32, i32, []i64) =\n  (map s" + last + " xs, s" + last +
         " (i32.i64 (length xs)), a" + last + " (length xs))\n";
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines(1);
  for (char c : text) {
    if (c == '\n')
      lines.emplace_back();
    else
      lines.back() += c;
  }
  return lines;
}

inline std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

}  // namespace emitted
