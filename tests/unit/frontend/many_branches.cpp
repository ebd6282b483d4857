// `match` with hundreds of cases and chains of hundreds of `else if`: each value comes to the first branch that it
// fits, after all passes, too, and nothing is nested deeply.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "codegen/codegen.h"
#include "ir/interpret.h"
#include "ir/walk.h"
#include "passes/pipeline.h"
#include "tests/unit/frontend/support.h"

namespace apl::frontend {

namespace {

int depth_of(const Body& body) {
  int most = 0;
  for (const Stm& stm : body.stms)
    for_each_body(stm.op, [&](const BodyPtr& inner) { most = std::max(most, 1 + depth_of(*inner)); });
  return most;
}

std::string lines(int count, const std::function<std::string(int)>& line) {
  std::string text;
  for (int k = 0; k < count; ++k) text += line(k) + "\n";
  return text;
}

struct BranchProgram {
  std::string name, text;
  std::vector<std::int64_t> arguments;
  std::function<std::int64_t(std::int64_t)> result;
};

// Constructors of which some have payloads; a tag is a byte.
BranchProgram constructors(int count) {
  const std::string type = "type t =" + lines(count, [](int k) {
                             return fmt::format("{}#c{}{}", k == 0 ? "  " : "| ", k, k % 3 == 0 ? " i64" : "");
                           });
  const std::string make = "def make (x: i64): t = match x\n" + lines(count, [&](int k) {
                             return fmt::format("  case {} -> #c{}{}", k + 1 < count ? std::to_string(k) : "_", k,
                                                k % 3 == 0 ? " (x * 10)" : "");
                           });
  const std::string use =
      "def use (v: t): i64 = match v\n" + lines(count, [](int k) {
        return fmt::format("  case #c{} -> {}", k, k % 3 == 0 ? std::string("v") : fmt::format("{}", 1000 + k));
      });
  BranchProgram program{fmt::format("{} constructors", count), type + make, {}, {}};
  for (std::string::size_type at = 0, next = 0; at < use.size(); at = next + 1) {
    next = use.find('\n', at);
    std::string line = use.substr(at, next - at);
    if (line.ends_with("-> v")) line.replace(line.find(" ->"), 3, " y ->"), line.back() = 'y';
    program.text += line + "\n";
  }
  program.text += "def main (xs: []i64) = map (\\x -> use (make x)) xs\n";
  for (int k = 0; k < count; ++k) program.arguments.push_back(k);
  program.result = [](std::int64_t x) { return x % 3 == 0 ? x * 10 : 1000 + x; };
  return program;
}

// Numbers with gaps between them, negative ones too, and a case for the others.
BranchProgram scattered(int count) {
  BranchProgram program{fmt::format("{} scattered numbers", count), {}, {}, {}};
  program.text = "def main (xs: []i64) = map (\\x -> match x\n" +
                 lines(count, [](int k) { return fmt::format("  case {} -> {}", 7 * ((k * 37) % 300) - 900, k); }) +
                 "  case _ -> -1) xs\n";
  for (int x = -920; x < 1300; x += 3) program.arguments.push_back(x);
  program.arguments.insert(program.arguments.end(), {INT64_MIN, INT64_MAX});
  program.result = [count](std::int64_t x) {
    for (int k = 0; k < count; ++k)
      if (x == 7 * ((k * 37) % 300) - 900) return std::int64_t{k};
    return std::int64_t{-1};
  };
  return program;
}

// Two scalars of which cases ask for one, the other or both, some of them in vain: the first that fits is taken.
BranchProgram pairs(int count) {
  struct Case {
    int a, b;  // -1: any
  };
  std::vector<Case> cases;
  for (int k = 0; k < count; ++k)
    cases.push_back({k % 5 == 3 ? -1 : (k * 7) % 40, k % 3 == 1 || k % 5 == 3 ? (k * 11) % 6 : -1});
  const auto part = [](int x) { return x < 0 ? std::string("_") : std::to_string(x); };
  BranchProgram program{fmt::format("{} pairs", count), {}, {}, {}};
  program.text = "def main (xs: []i64) = map (\\x -> match (u8.i64 (x / 6), {y = x % 6})\n" +
                 lines(count,
                       [&](int k) {
                         const Case& c = cases[static_cast<std::size_t>(k)];
                         return fmt::format("  case ({}, {{y = {}}}) -> {}i64", part(c.a), part(c.b), k);
                       }) +
                 "  case _ -> -1) xs\n";
  for (int x = 0; x < 300; ++x) program.arguments.push_back(x);
  program.result = [cases](std::int64_t x) {
    for (std::size_t k = 0; k < cases.size(); ++k)
      if ((cases[k].a < 0 || cases[k].a == x / 6) && (cases[k].b < 0 || cases[k].b == x % 6))
        return static_cast<std::int64_t>(k);
    return std::int64_t{-1};
  };
  return program;
}

// Conditions that overlap; the last one is not asked for where another holds: it would divide by zero.
BranchProgram chain(int count) {
  BranchProgram program{fmt::format("a chain of {} branches", count), {}, {}, {}};
  program.text = "def main (xs: []i64) = map (\\x ->\n" +
                 lines(count, [](int k) { return fmt::format("  if x < {} then x * {} else", 3 * k, k + 1); }) +
                 fmt::format("  if 10 / (x - {}) == 10 then 0i64 else -x) xs\n", 3 * count - 4);
  for (int x = -2; x < 3 * count + 5; x += x < 40 ? 1 : 17) program.arguments.push_back(x);
  program.result = [count](std::int64_t x) {
    for (int k = 0; k < count; ++k)
      if (x < 3 * k) return x * (k + 1);
    return x == 3 * count - 3 ? std::int64_t{0} : -x;
  };
  return program;
}

std::vector<std::int64_t> results_of(const Module& module, const BranchProgram& program) {
  const auto count = static_cast<std::int64_t>(program.arguments.size());
  const auto results = interpret(module, "main", {HostValue::array(ScalarType::i64, {count}, program.arguments)});
  REQUIRE_MESSAGE(results, results.error().message);
  std::vector<std::int64_t> numbers;
  for (std::int64_t k = 0; k < count; ++k) numbers.push_back(results->front().at(k).as_int());
  return numbers;
}

}  // namespace

TEST_CASE("hundreds of cases and branches compile, and each value comes to the first that it fits") {
  for (const BranchProgram& program :
       {constructors(9), constructors(97), constructors(256), scattered(9), scattered(230), pairs(12), pairs(150),
        chain(8), chain(9), chain(99), chain(1000)}) {
    CAPTURE(program.name);
    const test::Outcome outcome = test::compile_text(program.text);
    REQUIRE_MESSAGE(outcome.module, outcome.messages());
    std::vector<std::int64_t> wanted;
    for (const std::int64_t x : program.arguments) wanted.push_back(program.result(x));
    CHECK(results_of(*outcome.module, program) == wanted);
    CHECK(depth_of(*outcome.module->find("main")->body) <= 30);
    for (const Machine machine : {Machine::cpu, Machine::gpu}) {
      Module module = *outcome.module;
      const auto pipeline = parse_pipeline(standard_pipeline(Stage::memory, machine), PassRegistry::builtin());
      REQUIRE(pipeline);
      const auto ran = run_pipeline(module, *pipeline, {});
      REQUIRE_MESSAGE(ran, ran.error().message);
      CHECK(results_of(module, program) == wanted);
      CHECK(generate(module, machine == Machine::cpu ? c_target() : cuda_target()));
    }
  }
}

TEST_CASE("code that expands to deeply nested bodies is a limitation, not a mistake of the program") {
  // Functions that take functions are expanded where they are called.
  std::string text = "def f0 (g: i64 -> i64) (x: i64): i64 = if x > 0 then g x else x / 3\n";
  for (int k = 1; k < 190; ++k)
    text += fmt::format("def f{} (g: i64 -> i64) (x: i64): i64 = if x > {} then f{} g (x - 1) else g x\n", k, k, k - 1);
  const test::Outcome outcome = test::compile_text(text + "entry main (x: i64) = f189 (\\y -> y + 1) x\n");
  REQUIRE(!outcome.module);
  CHECK(outcome.messages().find("nested more than 180 deep") != std::string::npos);
  CHECK(code_fault(outcome.diagnostics.front().code) == Fault::limitation);
}

}  // namespace apl::frontend
