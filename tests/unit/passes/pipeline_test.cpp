// What the pass manager guarantees, shown with passes that break their promises.
#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "ir/builder.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/walk.h"
#include "passes/pipeline.h"

namespace {

using namespace apl;

constexpr std::string_view kProgram = R"(stage soac

entry main (x : "f32") : {"f32"}
fun main [] (x : f32) : {f32} = {
  let {y : f32} = add(x, 1.0f32)
  let {z : f32} = mul(y, y)
  in {z}
}
)";

Module program() {
  auto module = parse_module(kProgram, "test");
  REQUIRE(module);
  return *module;
}

PassInfo pass(std::string name, std::function<Result<Change>(Module&, PassContext&)> run) {
  PassInfo info;
  info.name = std::move(name);
  info.run = std::move(run);
  return info;
}

Result<Change> rename_function(Module& module, PassContext&) {
  Function function = *module.functions.front();
  function.name += "_";
  module.functions.front() = std::make_shared<const Function>(std::move(function));
  return Change::yes;
}

Result<Change> drop_first_statement(Module& module, PassContext&) {
  Function function = *module.functions.front();
  std::vector<Stm> stms(function.body->stms.begin() + 1, function.body->stms.end());
  function.body = make_body(std::move(stms), function.body->results);
  module.functions.front() = std::make_shared<const Function>(std::move(function));
  return Change::yes;
}

Result<Change> lies(Module& module, PassContext& context) {
  return rename_function(module, context) ? Change::no : Change::no;
}

PassRegistry strange_passes() {
  PassRegistry result;
  result.add(pass("rename", rename_function));
  result.add(pass("nothing", [](Module&, PassContext&) -> Result<Change> { return Change::no; }));
  result.add(pass("break", drop_first_statement));
  result.add(pass("lie", lies));
  result.add(pass("throw", [](Module& module, PassContext& context) -> Result<Change> {
    static_cast<void>(rename_function(module, context));
    throw std::runtime_error("out of luck");
  }));
  result.add(pass("refuse", [](Module& module, PassContext& context) -> Result<Change> {
    static_cast<void>(rename_function(module, context));
    return make_error(Code::unsupported_construct, {}, "not today");
  }));
  PassInfo lowers = pass("lower", [](Module& module, PassContext&) -> Result<Change> {
    module.stage = Stage::kernel;
    return Change::yes;
  });
  lowers.takes = stage_bit(Stage::soac);
  lowers.gives = [](Stage) { return Stage::kernel; };
  result.add(lowers);
  lowers.name = "lower-not";
  lowers.run = [](Module&, PassContext&) -> Result<Change> { return Change::yes; };
  result.add(lowers);
  PassInfo kernel_only = pass("kernel-only", [](Module&, PassContext&) -> Result<Change> { return Change::no; });
  kernel_only.takes = stage_bit(Stage::kernel);
  result.add(kernel_only);
  return result;
}

Status run(Module& module, std::string_view text, const PipelineOptions& options = {}) {
  const auto pipeline = parse_pipeline(text, strange_passes());
  REQUIRE(pipeline);
  return run_pipeline(module, *pipeline, options);
}

bool has_note(const Diagnostic& error, std::string_view text) {
  for (const Note& note : error.notes) {
    if (note.message.find(text) != std::string::npos) return true;
  }
  return false;
}

TEST_CASE("passes run in order and each sees what the one before left") {
  Module module = program();
  std::vector<std::string> seen;
  PipelineOptions options;
  options.after_pass = [&](const PassReport& report, const Module& after) {
    seen.push_back(report.pass + ":" + (report.change == Change::yes ? "yes " : "no ") + after.functions[0]->name);
    CHECK(report.time.count() >= 0);
  };
  REQUIRE(run(module, "rename,nothing,rename", options));
  CHECK(seen == std::vector<std::string>{"rename:yes main_", "nothing:no main_", "rename:yes main__"});
}

TEST_CASE("on error the module is as it was before the pass that failed") {
  for (const char* text : {"rename,break", "rename,lie", "rename,throw", "rename,refuse"}) {
    Module module = program();
    const Status status = run(module, text);
    REQUIRE_MESSAGE(!status, text);
    CHECK_MESSAGE(module.functions[0]->name == "main_", text);
  }
}

TEST_CASE("an invalid module after a pass is our bug, with what replays it") {
  Module module = program();
  PipelineOptions options;
  options.parameters = {{"main.T_a", 4}};
  const Status status = run(module, "nothing,break,rename", options);
  REQUIRE(!status);
  const Diagnostic& error = status.error();
  CHECK(error.code == Code::bug_verifier);
  CHECK(error.message.find("'break'") != std::string::npos);
  CHECK(has_note(error, "reproducer pipeline: break,rename"));
  CHECK(has_note(error, "reproducer parameters: main.T_a=4"));
  CHECK(has_note(error, "reproducer module:\n" + std::string(kProgram)));
}

TEST_CASE("Change::no is checked against the printed module") {
  Module module = program();
  const Status status = run(module, "lie");
  REQUIRE(!status);
  CHECK(status.error().code == Code::bug_verifier);
  CHECK(status.error().message.find("says that it changed nothing") != std::string::npos);
}

TEST_CASE("without verify_each neither is looked at, and Change::no keeps the old module") {
  Module module = program();
  PipelineOptions options;
  options.verify_each = false;
  REQUIRE(run(module, "lie", options));
  CHECK(module.functions[0]->name == "main");
  REQUIRE(run(module, "break", options));
  CHECK(module.functions[0]->body->stms.size() == 1);
}

TEST_CASE("an exception is our bug, not the caller's crash") {
  Module module = program();
  const Status status = run(module, "throw");
  REQUIRE(!status);
  CHECK(status.error().code == Code::bug_internal);
  CHECK(status.error().message.find("out of luck") != std::string::npos);
  CHECK(has_note(status.error(), "reproducer pipeline: throw"));
}

TEST_CASE("a refusal keeps its code and names the pass; it carries no reproducer") {
  Module module = program();
  const Status status = run(module, "refuse");
  REQUIRE(!status);
  CHECK(status.error().code == Code::unsupported_construct);
  CHECK(has_note(status.error(), "'refuse'"));
  CHECK(!has_note(status.error(), "reproducer"));
}

TEST_CASE("a wrong order of stages is found before anything runs") {
  struct Case {
    const char* text;
    const char* message;
  };
  const Case cases[] = {
      {"rename,kernel-only",
       "pass 'kernel-only' takes a module at stage kernel, but after 'rename' it is at stage soac"},
      {"kernel-only", "but here it is at stage soac"},
      {"lower,rename,lower", "pass 'lower' takes a module at stage soac, but after 'rename' it is at stage kernel"},
  };
  for (const Case& c : cases) {
    Module module = program();
    bool ran = false;
    PipelineOptions options;
    options.after_pass = [&](const PassReport&, const Module&) { ran = true; };
    const Status status = run(module, c.text, options);
    REQUIRE_MESSAGE(!status, c.text);
    CHECK(status.error().code == Code::command_bad_pipeline);
    CHECK_MESSAGE(status.error().message.find(c.message) != std::string::npos, status.error().message);
    CHECK(!ran);
  }
  Module module = program();
  CHECK(run(module, "lower,kernel-only"));
  CHECK(module.stage == Stage::kernel);
}

TEST_CASE("calls are not inlined once their functions are kernels, which other kernels cannot hold") {
  auto module = parse_module(R"(stage soac

fun twice [n] (xs : [n]i32) : {[n]i32} = {
  let {ys : [n]i32} = map(i < n, {xs}, \{x : i32} -> { let {y : i32} = add(x, x) in {y} })
  in {ys}
}

entry main (xss : "[m][n]i32") : {"[m][n]i32"}
fun main [m, n] (xss : [m][n]i32) : {[m][n]i32} = {
  let {yss : [m][n]i32} = map(i < m, {xss}, \{xs : [n]i32} -> { let {ys : [n]i32} = apply twice(n, xs) in {ys} })
  in {yss}
}
)",
                             "test");
  REQUIRE(module);
  const PassRegistry builtin = PassRegistry::builtin();
  Module called = *module;
  CHECK(run_pipeline(called, *parse_pipeline("inline,extract-kernels", builtin), {}));
  const Status status = run_pipeline(*module, *parse_pipeline("extract-kernels,inline", builtin), {});
  REQUIRE_FALSE(status);
  CHECK(status.error().code == Code::command_bad_pipeline);
}

TEST_CASE("a pass that leaves another stage than it declares is caught") {
  Module module = program();
  const Status status = run(module, "lower-not");
  REQUIRE(!status);
  CHECK(status.error().code == Code::bug_verifier);
  CHECK(status.error().message.find("left the module at stage soac, not kernel") != std::string::npos);
}

TEST_CASE("disabled passes are left out, of the check of stages too") {
  Module module = program();
  PipelineOptions options;
  options.disabled = {"rename", "kernel-only", "throw"};
  REQUIRE(run(module, "rename,kernel-only,throw,nothing", options));
  CHECK(module.functions[0]->name == "main");
}

TEST_CASE("a pass that takes no derivatives says that differentiate comes before it") {
  auto derivative = parse_module(R"(stage soac

entry main (x : "f32") : {"f32"}
fun main [] (x : f32) : {f32} = {
  let {y : f32, dy : f32} = jvp({x}, {1.0f32}, \{a : f32} -> { let {b : f32} = mul(a, a) in {b} })
  in {dy}
}
)",
                                 "test");
  REQUIRE(derivative);
  for (const std::string name : {"elide-copies", "extract-kernels"}) {
    CAPTURE(name);
    const auto alone = parse_pipeline("simplify," + name, PassRegistry::builtin());
    const auto after = parse_pipeline("differentiate," + name, PassRegistry::builtin());
    REQUIRE(alone);
    REQUIRE(after);
    Module module = *derivative;
    const Status refused = run_pipeline(module, *alone, {});
    REQUIRE(!refused);
    CHECK(refused.error().code == Code::command_bad_pipeline);
    CHECK(refused.error().message == "pass '" + name +
                                         "' takes no derivatives, but the program has some: 'differentiate' comes "
                                         "before it");
    CHECK(run_pipeline(module, *after, {}));
    module = *derivative;
    PipelineOptions options;
    options.disabled = {"differentiate"};
    CHECK(!run_pipeline(module, *after, options));
    module = program();
    CHECK(run_pipeline(module, *alone, {}));  // without derivatives nothing is needed
  }
}

TEST_CASE("stop is asked before each pass") {
  Module module = program();
  int asked = 0;
  PipelineOptions options;
  options.stop = [&] { return ++asked == 2; };
  const Status status = run(module, "rename,rename,rename", options);
  REQUIRE(!status);
  CHECK(status.error().code == Code::run_stopped);
  CHECK(module.functions[0]->name == "main_");
}

TEST_CASE("an invalid module is refused before the first pass") {
  Module module = program();
  PassContext none;
  REQUIRE(drop_first_statement(module, none));
  const Status status = run(module, "nothing");
  REQUIRE(!status);
  CHECK(status.error().code == Code::ir_invalid);
}

TEST_CASE("a pass gets its own options, the caller's parameters and the caller's sink") {
  PassInfo info = pass("ask", [](Module&, PassContext& context) -> Result<Change> {
    CHECK(context.flag("fast"));
    CHECK(context.integer("depth") == 7);
    CHECK(context.text("mode") == "plain");
    CHECK(context.parameters.at("f.T") == 3);
    CHECK_THROWS_AS(context.flag("undeclared"), std::out_of_range);
    CHECK_THROWS_AS(context.integer("fast"), std::out_of_range);
    context.remark({.pass = "ask", .code = "asked"});
    return Change::no;
  });
  info.options = {{"fast", false, ""}, {"depth", std::int64_t{1}, ""}, {"mode", std::string("plain"), ""}};
  PassRegistry one;
  one.add(info);
  const auto pipeline = parse_pipeline("ask{fast depth=7}", one);
  REQUIRE(pipeline);
  std::vector<Remark> remarks;
  PipelineOptions options;
  options.parameters = {{"f.T", 3}};
  options.remarks = [&](const Remark& remark) { remarks.push_back(remark); };
  Module module = program();
  REQUIRE(run_pipeline(module, *pipeline, options));
  REQUIRE(remarks.size() == 1);
  CHECK(remarks[0].code == "asked");
}

}  // namespace
