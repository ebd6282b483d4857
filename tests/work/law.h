// The law of work: no pass makes a program do asymptotically more than its text says. The interpreter counts what a
// program costs (ir/work.h) as the front end gives it, inlined and differentiated, and at the ends of the stages;
// each size in turn is n and 4n while the others stay n. With W the count of the text and V that of a later stage:
//   V(4n) <= factor * W(4n) + constant                     the factor is 2, or that of the table (table.h)
//   V(4n) / V(n) <= 1.25 * W(4n) / W(n)                    unless V(4n) - V(n) <= W(4n) - W(n)
// The exception is for passes that remove what grows slowest: V / V grows then, though no statement does. Where the
// second fails alone it has to fail from 4n to 16n, too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/module.h"
#include "ir/work.h"
#include "passes/pipeline.h"
#include "tests/testing.h"

namespace apl::work_tests {

inline constexpr std::int64_t kSizeFactor = 4;  // between the two values of a size
inline constexpr double kSlack = 256;           // what may always be done besides

// A program at the end of a stage, for one machine.
struct Version {
  std::string name;  // "kernel stage, GPU"
  Module module;
};

struct Versions {
  Module text;  // inlined and differentiated
  std::vector<Version> later;
};

// Contractions are left as they are for CPUs, and have the plain alternative for GPUs: guards and padding of tiles say
// nothing at the sizes of a test.
Result<Versions> make_versions(const Module& module, const PassRegistry& registry);

// The module after a pipeline.
Result<Module> run_passes(const Module& module, const std::string& pipeline, const PassRegistry& registry,
                          const PipelineOptions& options = {});
// The entry with the functions that it calls, alone.
Module alone(const Module& module, const std::string& entry);

// What a run of an entry costs.
struct Run {
  WorkCount count;
  std::int64_t elements = 0;  // of arguments and results
};
// With `most` a run that costs about as much or more is stopped and costs what it did until then.
Result<Run> measure(const Module& module, const std::string& entry, const std::vector<HostValue>& arguments,
                    std::optional<std::int64_t> most = {});

// What a program as the front end gives it costs. An update is in place in the language, but the front end copies what
// is overwritten, and elide-copies removes that: such copies cost nothing. Arguments and results cost a copy each: an
// entry copies arguments that it overwrites, and results are in row-major order.
Work work_of_text(const Module& module, const Run& run);
// What a program at a later stage costs, without what blocks do in shared memory: tiles have guards and padding, which
// are all that shows at the sizes of a test.
Work work_of_version(const Module& module, const Run& run);

// The sizes that an entry is tried with, and its arguments for them.
class Inputs {
 public:
  // nullopt with the reason in `why` if the text fails for all that is tried.
  static std::optional<Inputs> find(const Module& text, const std::string& entry, std::string& why);

  const std::vector<std::string>& names() const { return names_; }  // those that vary
  std::int64_t size() const { return size_; }
  // All sizes are `size()`, that of `name` `value`.
  Result<std::vector<HostValue>> arguments(const std::string& name, std::int64_t value) const;

 private:
  const Function* function_ = nullptr;
  std::vector<std::string> names_;
  testing::Sizes fixed_;  // integer parameters that do not vary
  std::int64_t size_ = 0;
  bool natural_ = false;  // no element is negative
};

struct Violation {
  std::string size;  // that was multiplied by 4
  std::string text;
};

struct Outcome {
  int compared = 0;                   // pairs of counts
  std::vector<std::string> left_out;  // with the reason
  std::vector<Violation> violations;
};

Outcome check_entry(const Versions& versions, const std::string& entry);

// The law of derivatives (derivatives.cpp), for an entry with derivatives as the front end gives it.
bool has_derivatives(const Module& module, const std::string& entry);
Outcome check_derivatives(const Module& module, const std::string& entry);

}  // namespace apl::work_tests
