// Compiles texts of n and of 4n parts and counts what the compiler allocates: a count is the same on every machine and
// however busy it is. Nearly all that the compiler does allocates, so work that grows with the square of the text
// shows.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "codegen/codegen.h"
#include "frontend/frontend.h"
#include "passes/pipeline.h"
#include "tests/command_line.h"
#include "tests/scaling/kinds.h"

namespace {

std::size_t allocations = 0, allocated_bytes = 0;

void* counted(std::size_t bytes) {
  ++allocations;
  allocated_bytes += bytes;
  if (void* data = std::malloc(bytes > 0 ? bytes : 1)) return data;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes); }
void* operator new[](std::size_t bytes) { return counted(bytes); }
void operator delete(void* data) noexcept { std::free(data); }
void operator delete[](void* data) noexcept { std::free(data); }
void operator delete(void* data, std::size_t) noexcept { std::free(data); }
void operator delete[](void* data, std::size_t) noexcept { std::free(data); }

namespace apl::scaling_tests {

namespace {

constexpr std::size_t kFactor = 4;
// 4 is linear, and sorted containers cost a little more; 16 is quadratic.
constexpr double kMostGrowth = 5.5;

struct Work {
  std::size_t count = 0, bytes = 0;
};

[[noreturn]] void fail(const std::string& what) {
  fmt::print("{}\n", what);
  std::exit(1);
}

// What each stage of the text's way to programs for both machines allocated; passes that run several times are summed.
class Stages {
 public:
  explicit Stages(const std::string& text) {
    std::string errors;
    std::optional<Module> module =
        compile({.name = "text.fut", .text = text}, [&](const Diagnostic& d) { errors += d.message + "\n"; });
    if (!module) fail(errors);
    note("front end");
    for (const Machine machine : {Machine::cpu, Machine::gpu}) {
      const std::string where = machine == Machine::cpu ? ", CPU" : ", GPU";
      Module copy = *module;
      const auto pipeline = parse_pipeline(standard_pipeline(Stage::memory, machine), PassRegistry::builtin());
      if (!pipeline) fail(pipeline.error().message);
      PipelineOptions options;
      options.after_pass = [&](const PassReport& report, const Module&) { note(report.pass + where); };
      if (auto ran = run_pipeline(copy, *pipeline, options); !ran) fail(ran.error().message);
      auto code = generate(copy, machine == Machine::cpu ? c_target() : cuda_target());
      if (!code) fail(code.error().message);
      note("code" + where);
    }
  }

  const std::map<std::string, Work>& work() const { return work_; }

 private:
  void note(const std::string& stage) {
    Work& work = work_[stage];
    work.count += allocations - before_.count;
    work.bytes += allocated_bytes - before_.bytes;
    before_ = {allocations, allocated_bytes};
  }

  Work before_{allocations, allocated_bytes};
  std::map<std::string, Work> work_;
};

// Stages that allocate less than this hardly matter, and what they do at every size hides how they grow.
constexpr std::size_t kLeastBytes = 64 * 1024;

bool is_linear(const Kind& kind, double scale, bool verbose) {
  const auto size = static_cast<std::size_t>(static_cast<double>(kind.size) * scale);
  const Stages small(kind.text(size)), large(kind.text(kFactor * size));
  bool all = true;
  for (const auto& [stage, work] : large.work()) {
    const Work& before = small.work().at(stage);
    const double by_count = static_cast<double>(work.count) / static_cast<double>(before.count + 1);
    const double by_bytes = static_cast<double>(work.bytes) / static_cast<double>(before.bytes + 1);
    const bool fine = work.bytes < kLeastBytes || std::max(by_count, by_bytes) <= kMostGrowth;
    all = all && fine;
    if (verbose || !fine)
      fmt::print("{:20} {:24} {:6} parts: {:9} allocations, {:11} bytes; {} times as many: {:5.2f}, {:5.2f} times{}\n",
                 kind.name, stage, size, before.count, before.bytes, kFactor, by_count, by_bytes,
                 fine ? "" : "  TOO MUCH");
  }
  return all;
}

}  // namespace

}  // namespace apl::scaling_tests

int main(int argc, char** argv) {
  using namespace apl::scaling_tests;
  apl::CommandLine line("Whether the compiler's allocations are linear in the text.");
  std::vector<std::string> wanted;
  double scale = 1;
  bool verbose = false;
  line.arguments("kinds", wanted, "kinds of texts (default: all)");
  line.option("--scale", scale, "multiplies the sizes");
  line.flag("--verbose", verbose, "prints every stage");
  if (const auto code = line.parse(argc, argv)) return *code;
  std::size_t tested = 0, wrong = 0;
  for (const Kind& kind : all_kinds()) {
    if (!wanted.empty() && std::ranges::find(wanted, kind.name) == wanted.end()) continue;
    ++tested;
    if (!is_linear(kind, scale, verbose)) ++wrong;
  }
  fmt::print("{} kinds of texts, {} of which take more than linear work\n", tested, wrong);
  return tested > 0 && wrong == 0 ? 0 : 1;
}
