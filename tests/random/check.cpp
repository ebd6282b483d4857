#include "tests/random/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include "codegen/codegen.h"
#include "frontend/frontend.h"
#include "ir/interpret.h"
#include "passes/pipeline.h"
#include "runtime/backends/cuda.h"
#include "runtime/program/program.h"
#include "tests/batch/batch.h"
#include "tests/random/child.h"
#include "tests/random/work.h"

namespace apl::random_tests {

namespace {

using Values = std::vector<HostValue>;
using Clock = std::chrono::steady_clock;

// What the program itself may cost on the interpreter; inputs that cost more time or memory are left out.
constexpr std::chrono::milliseconds kReferenceTime{400};
bool is_too_large(const Diagnostic& error) {
  return error.code == Code::run_stopped || error.code == Code::run_out_of_memory;
}

struct Case {
  testing::Sizes sizes;
  Values inputs, expected;
};

struct Candidate {
  std::size_t number = 0;
  const Program* program = nullptr;
  Module module;
  std::map<std::string, std::int64_t> parameters;
  std::vector<Case> cases;
  // Of programs whose work is linear: the work of the source at the sizes of `linear_in` and at four times these.
  std::array<std::int64_t, 2> work_at{};
};

testing::Sizes scaled(testing::Sizes sizes, std::int64_t factor) {
  for (auto& [name, size] : sizes) size *= factor;
  return sizes;
}

std::string describe(const Case& c) {
  std::string text;
  for (const auto& [name, value] : c.sizes) text += fmt::format("{}={} ", name, value);
  text += "\ninputs:\n";
  for (const HostValue& input : c.inputs) text += "  " + input.to_text().substr(0, 2000) + "\n";
  return text;
}

std::string describe(const Values& values) {
  std::string text;
  for (const HostValue& value : values) text += "  " + value.to_text().substr(0, 2000) + "\n";
  return text;
}

// Works in the child.
class Checker {
 public:
  using Send = std::function<void(const Report&)>;
  using Begin = std::function<void(std::size_t program, const std::string& where)>;
  Checker(const CheckOptions& options, Begin begin, Send send)
      : options_(options), begin_(std::move(begin)), send_(std::move(send)) {}

  void run(const std::vector<std::pair<std::size_t, const Program*>>& programs) {
    std::vector<Candidate> ready;
    for (const auto& [number, program] : programs) {
      Candidate candidate{number, program, {}, {}, {}};
      if (interpret_stages(candidate)) ready.push_back(std::move(candidate));
    }
    for (const std::string& backend : options_.backends) run_backend(backend, ready);
    if (!options_.backends.empty()) check_work(ready);
    for (const Candidate& candidate : ready)
      send_({candidate.number, Outcome::agrees, {}, std::to_string(agreed_[candidate.number])});
  }

 private:
  // False, for use in conditions.
  bool fail(const Candidate& c, const std::string& where, const std::string& message) {
    send_({c.number, Outcome::fails, where, message});
    return false;
  }

  // An error of the compiler: a limitation, or a failure.
  bool refused(const Candidate& c, const std::string& where, const Diagnostic& error) {
    std::string message = error.message;
    for (const Note& note : error.notes) message += "\nnote: " + note.message;
    if (code_fault(error.code) == Fault::limitation) {
      send_({c.number, Outcome::unsupported, where + ": " + error.message, message});
      return false;
    }
    return fail(c, fmt::format("{} [{}]", where, code_text(error.code)), message);
  }

  Result<Values> interpret_case(const Module& module, const Candidate& c, const Values& inputs, std::uint64_t seed,
                                std::chrono::milliseconds time) {
    InterpretOptions options;
    options.seed = seed;
    options.parameters = c.parameters;
    const auto end = Clock::now() + time;
    options.stop = [end] { return Clock::now() > end; };
    return interpret(module, c.program->entry, inputs, options);
  }

  bool interpret_stages(Candidate& c) {
    begin_(c.number, "front end");
    std::optional<Diagnostic> error;
    const std::string text = to_text(c.program->definitions);
    auto module = compile({"random.fut", text}, [&](const Diagnostic& d) {
      if (!error) error = d;
    });
    if (!module) {
      if (error->location)
        error->message = fmt::format("{}:{}: {}", error->location.line, error->location.column, error->message);
      return refused(c, "front end", *error);
    }
    c.module = *std::move(module);
    // Half of the programs have tiles that are small and partial.
    if (c.program->seed % 2 == 0) c.parameters = testing::small_tiles(c.module);
    if (options_.threshold > 0)
      for (const auto& [name, number] : testing::thresholds(c.module, options_.threshold)) c.parameters[name] = number;
    begin_(c.number, "interpreter");
    const Function& entry = *c.module.find_entry(c.program->entry);
    for (const testing::Sizes& sizes : c.program->sizes) {
      auto inputs = testing::random_arguments(entry, sizes, c.program->seed + 1);
      if (!inputs) return fail(c, "inputs", inputs.error().message);
      Case one{sizes, *std::move(inputs), {}};
      auto expected = interpret_case(c.module, c, one.inputs, 1, kReferenceTime);
      if (!expected && is_too_large(expected.error())) continue;
      if (!expected) return fail(c, "interpreter", expected.error().message + "\n" + describe(one));
      one.expected = *std::move(expected);
      c.cases.push_back(std::move(one));
    }
    return !options_.stages || check_stages(c);
  }

  bool check_stages(const Candidate& c) {
    std::vector<std::pair<std::string, Module>> stages;
    begin_(c.number, "passes");
    PipelineOptions options;
    options.parameters = c.parameters;
    options.disabled = c.program->disabled;
    options.after_pass = [&](const PassReport& report, const Module& after) {
      if (report.change == Change::yes) stages.emplace_back(report.pass, after);
    };
    const std::string passes = c.program->order.empty() ? standard_pipeline(Stage::memory, Machine::gpu)
                                                        : fmt::format("{}", fmt::join(c.program->order, ","));
    const auto pipeline = parse_pipeline(passes, PassRegistry::builtin());
    Module memory = c.module;
    if (const Status status = run_pipeline(memory, *pipeline, options); !status) {
      // What was wrong before counts, too.
      if (!compare_stages(c, stages)) return false;
      return refused(c, "pipeline", status.error());
    }
    return compare_stages(c, stages);
  }

  bool compare_stages(const Candidate& c, const std::vector<std::pair<std::string, Module>>& stages) {
    for (const auto& [pass, module] : stages) {
      const std::string where = "interpreter after " + pass;
      begin_(c.number, where);
      for (const Case& one : c.cases) {
        const auto got = interpret_case(module, c, one.inputs, c.program->seed + 7, kReferenceTime * 20);
        if (!got && got.error().code == Code::run_stopped) continue;
        if (!same(c, where, one, got)) return false;
      }
    }
    return true;
  }

  bool same(const Candidate& c, const std::string& where, const Case& one, const Result<Values>& got) {
    if (!got) return fail(c, where, got.error().message + "\n" + describe(one));
    if (testing::same_results(*got, one.expected)) {
      ++agreed_[c.number];
      return true;
    }
    return fail(c, where,
                fmt::format("{}expected:\n{}got:\n{}", describe(one), describe(one.expected), describe(*got)));
  }

  // Without a program where nothing is to run: "nvrtc".
  testing::LoadModule loader(const std::string& backend) const {
    ProgramOptions options = options_.compiler.program_options();
    options.backend = backend;
    if (options_.as_users && backend == "c") return testing::load_as_users_do(options);
    return [options](const Module& module, CodegenOptions codegen) -> Result<std::optional<apl::Program>> {
      const auto generated = generate(module, options.backend == "c" ? c_target() : cuda_target(), codegen);
      if (!generated) return generated.error();
      if (options.backend == "nvrtc") {
        if (generated->kernels.empty()) return std::optional<apl::Program>();
        const auto cubin = compile_with_nvrtc(generated->kernels, "sm_90");
        return cubin ? Result<std::optional<apl::Program>>(std::nullopt) : cubin.error();
      }
      auto loaded = apl::Program::load(generated->host, options);
      if (!loaded) return std::move(loaded).error();
      return std::optional<apl::Program>(*std::move(loaded));
    };
  }

  testing::Batch batch_of(const std::vector<Candidate>& all, const std::string& backend, testing::LoadModule load) {
    std::vector<testing::BatchProgram> programs;
    for (const Candidate& c : all) programs.push_back({&c.module, c.parameters});
    // The passes that programs of one batch lack are the same.
    return testing::Batch(programs, {backend, all.front().program->disabled, std::move(load)});
  }

  // Those that agree remain.
  void run_backend(const std::string& backend, std::vector<Candidate>& all) {
    if (all.empty()) return;
    begin_(all.front().number, backend + ": compiling");
    const testing::Batch batch = batch_of(all, backend, loader(backend));
    std::vector<Candidate> good;
    for (std::size_t k = 0; k < all.size(); ++k) {
      const Candidate& c = all[k];
      if (const auto& refusal = batch.refusal(k)) {
        refused(c, refusal->by_pipeline ? "pipeline" : backend, refusal->error);
        continue;
      }
      bool agrees = true;
      if (batch.is_loaded(k)) begin_(c.number, backend);
      for (const Case& one : c.cases)
        agrees = agrees && (!batch.is_loaded(k) || same(c, backend, one, batch.call(k, c.program->entry, one.inputs)));
      if (agrees) good.push_back(c);
    }
    all = std::move(good);
  }

  // Those whose work grows as their source's does, or that are not about work, remain.
  void check_work(std::vector<Candidate>& all) {
    std::vector<Candidate> good, linear;
    for (Candidate& c : all) (c.program->linear_in.empty() ? good : linear).push_back(std::move(c));
    all = std::move(good);
    if (linear.empty()) return;
    begin_(linear.front().number, "work: compiling");
    auto load = load_counting("cc");
    if (!load) {
      for (const Candidate& c : linear) refused(c, "work", load.error());
      return;
    }
    const testing::Batch batch = batch_of(linear, "c", *std::move(load));
    for (std::size_t k = 0; k < linear.size(); ++k)
      if (grows_as_source(linear[k], batch, k)) all.push_back(std::move(linear[k]));
  }

  // The scalar operations of the source, and one for each element of an argument: an array that the program overwrites
  // may be copied.
  bool count_source(Candidate& c, std::size_t which, const testing::Sizes& sizes, const Values& inputs) {
    WorkCount count;
    InterpretOptions options;
    options.work = &count;
    if (const auto results = interpret(c.module, c.program->entry, inputs, options); !results)
      return fail(c, "work", results.error().message);
    c.work_at[which] = count.sum().operations + sizes.begin()->second;
    return true;
  }

  // A program that ends early does less than four times as much at four times its size, or more: only the source says
  // how much.
  bool grows_as_source(Candidate& c, const testing::Batch& batch, std::size_t k) {
    if (batch.refusal(k)) return refused(c, "work", batch.refusal(k)->error);
    begin_(c.number, "work");
    std::array<std::int64_t, 2> work{};
    for (std::size_t larger = 0; larger < work.size(); ++larger) {
      const testing::Sizes sizes = scaled(c.program->linear_in, larger == 0 ? 1 : 4);
      const auto inputs = testing::random_arguments(*c.module.find_entry(c.program->entry), sizes, c.program->seed);
      if (!inputs) return fail(c, "work", inputs.error().message);
      if (!count_source(c, larger, sizes, *inputs)) return false;
      const std::int64_t before = counted_work();
      const auto results = batch.call(k, c.program->entry, *inputs);
      if (!results) return fail(c, "work", results.error().message);
      work[larger] = counted_work() - before;
    }
    const std::int64_t most = most_work(work[0], c.work_at[0], c.work_at[1]);
    if (work[0] > 0 && work[1] <= most) {
      ++agreed_[c.number];
      return true;
    }
    return fail(c, "work",
                fmt::format("{} basic blocks and words copied at n = {}, {} at 4 n; at most {} are allowed, since the "
                            "source has {} and {} operations",
                            work[0], c.program->linear_in.begin()->second, work[1], most, c.work_at[0], c.work_at[1]));
  }

  const CheckOptions& options_;
  Begin begin_;
  Send send_;
  std::map<std::size_t, std::int64_t> agreed_;
};

std::vector<Report> reports_of(const std::vector<std::pair<std::size_t, const Program*>>& programs,
                               const CheckOptions& options, const std::function<bool()>& stop) {
  const auto work = [&](const Send& send) {
    Checker(
        options,
        [&](std::size_t program, const std::string& where) {
          send({'b', program, where, ""});
        },
        [&](const Report& r) {
          send({static_cast<char>(r.outcome), r.program, r.where, r.message});
        })
        .run(programs);
  };
  std::vector<Report> reports;
  for (const Message& m : in_child(work, options.patience_s, stop))
    reports.push_back({m.number, static_cast<Outcome>(m.kind), m.where, m.text});
  return reports;
}

}  // namespace

std::vector<Report> check(const std::vector<Program>& programs, const CheckOptions& options,
                          const std::function<bool()>& stop) {
  std::vector<Report> all;
  std::vector<std::pair<std::size_t, const Program*>> left;
  for (std::size_t k = 0; k < programs.size(); ++k) left.emplace_back(k, &programs[k]);
  while (!left.empty() && !stop()) {
    const std::vector<Report> reports = reports_of(left, options, stop);
    if (reports.empty()) break;
    all.insert(all.end(), reports.begin(), reports.end());
    // After a crash those without a report are tried again.
    std::erase_if(left, [&](const auto& one) {
      return std::any_of(reports.begin(), reports.end(), [&](const Report& r) { return r.program == one.first; });
    });
  }
  std::sort(all.begin(), all.end(), [](const Report& a, const Report& b) { return a.program < b.program; });
  return all;
}

Program shrink(const Program& program, const Report& report, const CheckOptions& options, int seconds,
               const std::function<bool()>& stop) {
  CheckOptions quick = options;
  quick.patience_s = 10;
  // No back end is needed for what the interpreter shows, and no other one for what one shows.
  if (report.where != "work")
    std::erase_if(quick.backends, [&](const std::string& b) { return report.where.find(b) == std::string::npos; });
  const auto end = Clock::now() + std::chrono::seconds(seconds);
  const auto over = [&] { return stop() || Clock::now() > end; };
  const auto still_fails = [&](const Program& candidate) {
    const std::vector<Report> reports = check({candidate}, quick, over);
    return !reports.empty() && reports.front().outcome == Outcome::fails && reports.front().where == report.where;
  };
  Program best = program;
  for (bool smaller = true; smaller && !over();) {
    smaller = false;
    for (std::size_t k = 0; k < best.sizes.size() && best.sizes.size() > 1 && !over();) {
      Program candidate = best;
      candidate.sizes.erase(candidate.sizes.begin() + static_cast<std::ptrdiff_t>(k));
      if (still_fails(candidate)) {
        best = std::move(candidate);
      } else {
        ++k;
      }
    }
    for (std::size_t k = 0; k < best.order.size() && !over();) {
      Program candidate = best;
      candidate.order.erase(candidate.order.begin() + static_cast<std::ptrdiff_t>(k));
      if (!candidate.order.empty() && still_fails(candidate)) {
        best = std::move(candidate);
      } else {
        ++k;
      }
    }
    for (const std::vector<Expr>& definitions : simpler(best.definitions)) {
      if (over()) break;
      Program candidate = best;
      candidate.definitions = definitions;
      if (!still_fails(candidate)) continue;
      best = std::move(candidate);
      smaller = true;
      break;
    }
  }
  return best;
}

}  // namespace apl::random_tests
