// Pipelines: ordered passes with options, written as text and run by the pass manager.
//   pipeline := pass (',' pass)*        pass := name [ '{' option (' ' option)* '}' ]      option := name [ '=' value ]
//   inline,simplify,cse,sink-conversions{halves},fuse,simplify,extract-kernels,simplify,tile-contraction,place-memory
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "passes/pass.h"

namespace apl {

struct PipelineStep {
  const PassInfo* pass = nullptr;
  std::map<std::string, OptionValue> options;
};

struct Pipeline {
  PassRegistry registry;
  std::vector<std::size_t> order;  // indices into registry.passes()
  std::vector<std::map<std::string, OptionValue>> options;
  std::string to_text() const;  // parse(to_text()) gives the same pipeline
};

Result<Pipeline> parse_pipeline(std::string_view text, const PassRegistry& registry);

// What the code will run on: a GPU wants all parallelism there is, a CPU enough for a few threads.
enum class Machine : std::uint8_t { gpu, cpu };

// The usual pipelines, as text: up to the end of a stage; "memory" is what code generation wants.
// With `variants` contractions have several ways to be computed, among which generated code chooses (a GPU's alone).
std::string standard_pipeline(Stage until, Machine machine = Machine::gpu, bool variants = false);
// The same with what the registry inserts.
std::string standard_pipeline(Stage until, Machine machine, bool variants, const PassRegistry& registry);

// One application of a pass. Applications are numbered from 1 in the order of the pipeline, without disabled passes.
struct PassReport {
  std::string pass;
  Change change = Change::no;
  std::chrono::nanoseconds time{};
  std::size_t application = 0;
  std::size_t applications = 0;  // of the whole pipeline
};

// The remark of a pass after which a kernel is no longer what its schedule says (ir/schedule.h).
inline constexpr std::string_view kScheduleDropped = "schedule-dropped";

struct PipelineOptions {
  RemarkSink remarks;
  std::map<std::string, std::int64_t> parameters;
  std::vector<std::string> disabled;  // passes to leave out
  bool verify_each = true;            // verify the module after each pass, and that Change::no is true
  std::function<bool()> stop;         // asked before each pass; true ends the run with an error
  std::function<void(const PassReport&, const Module&)> after_pass;  // printing, timing, tests
  std::function<void(const PassReport&, const Module&)> before_pass;
  // Applications with higher numbers are skipped, but for required passes.
  std::optional<std::size_t> limit;
  std::function<void(const PassReport&)> skipped;
};

// Whether a pass runs whatever the limit is: it is declared as required, or gives another stage.
bool is_required(const PassInfo& pass, Stage stage);

// Runs the passes in order. On error the module is as it was before the pass that failed, and the diagnostic
// names the pass; a broken invariant carries the pipeline and IR that reproduce it in its notes.
Status run_pipeline(Module& module, const Pipeline& pipeline, const PipelineOptions& options);

}  // namespace apl
