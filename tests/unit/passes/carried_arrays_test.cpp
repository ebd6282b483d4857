// Programs whose loops carry arrays through branches and inner loops (tests/programs/carried_through_branches.fut):
// what an iteration costs does not grow with the arrays. Kernels in loops are those that the programs ask for, and host
// code copies no array.
#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "codegen/codegen.h"
#include "frontend/frontend.h"
#include "ir/walk.h"
#include "passes/pipeline.h"

namespace apl {

namespace {

// Statements inside of loops that write a whole array: kernels of the host, copies in threads.
int writes_in_loops(const Body& body, bool in_loop) {
  int count = 0;
  for (const Stm& stm : body.stms) {
    if (in_loop && (get_if<SegOp>(stm) || get_if<Copy>(stm))) ++count;
    const bool inside = in_loop || get_if<Loop>(stm);
    for_each_body(stm.op, [&](const BodyPtr& inner) { count += writes_in_loops(*inner, inside); });
  }
  return count;
}

Module program() {
  const std::string path = std::string(APL_SOURCE_DIR) + "/tests/programs/carried_through_branches.fut";
  std::ifstream file(path);
  REQUIRE(file);
  std::stringstream text;
  text << file.rdbuf();
  auto module = compile({.name = path, .text = text.str()}, {});
  REQUIRE(module);
  return *std::move(module);
}

}  // namespace

TEST_CASE("arrays that loops carry through branches are not copied") {
  // A step of `life` and of `wave`, the array that `grow` doubles and the one that `either` reverses; `eliminate` keeps
  // two rows and writes them back.
  const std::map<std::string, int> wanted = {{"life", 1}, {"wave", 1}, {"grow", 1}, {"either", 1}, {"eliminate", 4}};
  for (const Machine machine : {Machine::cpu, Machine::gpu}) {
    Module module = program();
    const auto pipeline = parse_pipeline(standard_pipeline(Stage::memory, machine), PassRegistry::builtin());
    REQUIRE(pipeline);
    REQUIRE(run_pipeline(module, *pipeline, {}));
    for (const FunctionPtr& function : module.functions) {
      CAPTURE(function->name);
      const auto found = wanted.find(function->name);
      CHECK(writes_in_loops(*function->body, false) == (found == wanted.end() ? 0 : found->second));
    }
    const auto code = generate(module, machine == Machine::cpu ? c_target() : cuda_target());
    REQUIRE(code);
    CHECK(code->host.find("backend->copy(") == std::string::npos);
  }
}

}  // namespace apl
