#include "tests/oracle/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include "codegen/codegen.h"
#include "frontend/frontend.h"
#include "ir/interpret.h"
#include "passes/pipeline.h"
#include "runtime/program/program.h"
#include "tests/random/child.h"
#include "tests/testing.h"

namespace apl::oracle {

namespace {

using random_tests::in_child;
using random_tests::Message;
using random_tests::Send;
using Values = std::vector<HostValue>;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kMostSteps = 3'000'000;

struct Call {
  Values inputs;
  Outcome expected;
};

struct Candidate {
  std::size_t number = 0;
  const Case* of = nullptr;
  Module module;
  std::map<std::string, std::int64_t> parameters;
  std::vector<Call> calls;
};

std::string describe(const Values& values) {
  std::string text;
  for (const HostValue& value : values) text += "  " + value.to_text().substr(0, 1500) + "\n";
  return text;
}

std::string describe(const Outcome& outcome) {
  return outcome.failures.empty() ? describe(outcome.results) : "  error: " + outcome.failures.front() + "\n";
}

// Bit for bit, but that a NaN is a NaN: the oracle has one for all.
bool same_values(const Values& got, const Values& expected) {
  if (got.size() != expected.size()) return false;
  for (std::size_t k = 0; k < got.size(); ++k) {
    if (got[k].type != expected[k].type || got[k].shape != expected[k].shape) return false;
    if (got[k].data == expected[k].data) continue;
    if (!is_real(got[k].type)) return false;
    for (std::int64_t at = 0; at < got[k].element_count(); ++at)
      if (!(got[k].at(at) == expected[k].at(at))) return false;
  }
  return true;
}

bool same_failure(const Diagnostic& error, const std::vector<std::string>& expected) {
  return std::any_of(expected.begin(), expected.end(), [&](const std::string& message) {
    // A size below zero is told of by what would have it: by the array, or by a check before it.
    if (message == "size")
      return error.code == Code::run_negative_size || error.message.starts_with("Range ") ||
             (error.code == Code::run_assertion && error.message.find(" of size -") != std::string::npos);
    return error.message.starts_with(message);
  });
}

// Works in the child.
class Checker {
 public:
  Checker(const CheckOptions& options, const Send& send) : options_(options), send_(send) {}

  void run(const std::vector<std::pair<std::size_t, const Case*>>& cases) {
    std::vector<Candidate> ready;
    for (const auto& [number, one] : cases) {
      Candidate candidate{number, one, {}, {}, {}};
      if (prepare(candidate)) ready.push_back(std::move(candidate));
    }
    for (const std::string& backend : options_.backends) run_backend(backend, ready);
    for (const Candidate& c : ready) report(c, Verdict::agrees, {}, std::to_string(agreed_[c.number]));
  }

 private:
  void begin(const Candidate& c, const std::string& where) { send_({'b', c.number, where, ""}); }
  void report(const Candidate& c, Verdict verdict, const std::string& where, const std::string& message) {
    send_({static_cast<char>(verdict), c.number, where, message});
  }

  bool refused(const Candidate& c, const std::string& where, const Diagnostic& error) {
    std::string message = error.message;
    if (error.location) message = fmt::format("{}:{}: {}", error.location.line, error.location.column, message);
    for (const Note& note : error.notes) message += "\nnote: " + note.message;
    const bool limited = code_fault(error.code) == Fault::limitation;
    report(c, limited ? Verdict::unsupported : Verdict::differs, limited ? where + ": " + error.message : where,
           message);
    return false;
  }

  // Evaluates, interprets, and runs the passes: what is not supported does not stop the others.
  bool prepare(Candidate& c) {
    begin(c, "front end");
    std::optional<Diagnostic> error;
    auto module = compile({"oracle.fut", source(c.of->program)}, [&](const Diagnostic& d) {
      if (!error) error = d;
    });
    if (!module) return refused(c, "front end", *error);
    c.module = *std::move(module);
    if (c.of->program.seed % 2 == 0) c.parameters = testing::small_tiles(c.module);
    begin(c, "oracle");
    for (const Arguments& arguments : c.of->arguments) {
      try {
        c.calls.push_back({host_arguments(c.of->program, arguments), evaluate(c.of->program, arguments, kMostSteps)});
      } catch (const std::length_error&) {
      }
    }
    begin(c, "interp");
    InterpretOptions options;
    options.parameters = c.parameters;
    for (const Call& call : c.calls)
      if (!same(c, "interp", call, interpret(c.module, c.of->program.name, call.inputs, options))) return false;
    begin(c, "passes");
    PipelineOptions passes;
    passes.parameters = c.parameters;
    passes.verify_each = false;
    for (const Machine machine : {Machine::cpu, Machine::gpu}) {
      const auto pipeline = parse_pipeline(standard_pipeline(Stage::memory, machine), PassRegistry::builtin());
      Module memory = c.module;
      if (const Status status = run_pipeline(memory, *pipeline, passes); !status)
        return refused(c, "passes", status.error());
    }
    return true;
  }

  bool same(const Candidate& c, const std::string& where, const Call& call, const Result<Values>& got) {
    const bool good = got ? call.expected.failures.empty() && same_values(*got, call.expected.results)
                          : same_failure(got.error(), call.expected.failures);
    if (good) {
      ++agreed_[c.number];
      return true;
    }
    report(c, Verdict::differs, where,
           fmt::format("inputs:\n{}expected:\n{}got:\n{}", describe(call.inputs), describe(call.expected),
                       got ? describe(*got) : "  error: " + got.error().message + "\n"));
    return false;
  }

  // All programs in one text, so that the machine's compiler runs once.
  Result<apl::Program> load(const std::string& backend, const std::vector<Candidate>& all) {
    std::string text;
    CodegenOptions codegen;
    for (const Candidate& c : all) {
      text += source(c.of->program) + "\n";
      codegen.parameters.insert(c.parameters.begin(), c.parameters.end());
    }
    std::optional<Diagnostic> error;
    auto module = compile({"oracle.fut", text}, [&](const Diagnostic& d) {
      if (!error) error = d;
    });
    if (!module) return *error;
    PipelineOptions options;
    options.parameters = codegen.parameters;
    options.verify_each = false;
    const bool is_c = backend == "c";
    const auto pipeline =
        parse_pipeline(standard_pipeline(Stage::memory, is_c ? Machine::cpu : Machine::gpu), PassRegistry::builtin());
    if (const Status status = run_pipeline(*module, *pipeline, options); !status) return status.error();
    const auto generated = generate(*module, is_c ? c_target() : cuda_target(), codegen);
    if (!generated) return generated.error();
    ProgramOptions load_options;
    load_options.backend = backend;
    load_options.c_flags = options_.c_flags;
    return apl::Program::load(generated->host, load_options);
  }

  // Those that agree remain.
  void run_backend(const std::string& backend, std::vector<Candidate>& all) {
    if (all.empty()) return;
    begin(all.front(), backend + ": compiling");
    Result<apl::Program> program = load(backend, all);
    if (!program && all.size() > 1) {  // halves, so that few compilations find the culprit
      const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
      std::vector<Candidate> first(all.begin(), middle), second(middle, all.end());
      run_backend(backend, first);
      run_backend(backend, second);
      first.insert(first.end(), second.begin(), second.end());
      all = std::move(first);
      return;
    }
    if (!program) {
      refused(all.front(), backend, program.error());
      all.clear();
      return;
    }
    std::vector<Candidate> good;
    for (const Candidate& c : all) {
      begin(c, backend);
      bool agrees = true;
      for (const Call& call : c.calls)
        agrees = agrees && same(c, backend, call, program->call(c.of->program.name, call.inputs));
      if (agrees) good.push_back(c);
    }
    all = std::move(good);
  }

  const CheckOptions& options_;
  const Send& send_;
  std::map<std::size_t, std::int64_t> agreed_;
};

}  // namespace

std::vector<Report> check(const std::vector<Case>& cases, const CheckOptions& options,
                          const std::function<bool()>& stop) {
  std::vector<Report> all;
  std::vector<std::pair<std::size_t, const Case*>> left;
  for (std::size_t k = 0; k < cases.size(); ++k) left.emplace_back(k, &cases[k]);
  while (!left.empty() && !stop()) {
    const auto work = [&](const Send& send) { Checker(options, send).run(left); };
    const std::vector<Message> messages = in_child(work, options.patience_s, stop);
    if (messages.empty()) break;
    for (const Message& m : messages) all.push_back({m.number, static_cast<Verdict>(m.kind), m.where, m.text});
    // After a crash those without a report are tried again.
    std::erase_if(left, [&](const auto& one) {
      return std::any_of(messages.begin(), messages.end(), [&](const Message& m) { return m.number == one.first; });
    });
  }
  std::sort(all.begin(), all.end(), [](const Report& a, const Report& b) { return a.number < b.number; });
  return all;
}

Case shrink(const Case& whole, const Report& report, const CheckOptions& options, int seconds,
            const std::function<bool()>& stop) {
  CheckOptions quick = options;
  quick.patience_s = 10;
  // No compiler is needed for what the interpreter shows.
  std::erase_if(quick.backends, [&](const std::string& b) { return report.where.find(b) == std::string::npos; });
  const auto end = Clock::now() + std::chrono::seconds(seconds);
  const auto over = [&] { return stop() || Clock::now() > end; };
  const auto still_differs = [&](const Case& candidate) {
    const std::vector<Report> reports = check({candidate}, quick, over);
    return !reports.empty() && reports.front().verdict == Verdict::differs && reports.front().where == report.where;
  };
  Case best = whole;
  for (std::size_t k = 0; k < best.arguments.size() && best.arguments.size() > 1 && !over();) {
    Case candidate = best;
    candidate.arguments.erase(candidate.arguments.begin() + static_cast<std::ptrdiff_t>(k));
    if (still_differs(candidate)) {
      best = std::move(candidate);
    } else {
      ++k;
    }
  }
  for (bool smaller = true; smaller && !over();) {
    smaller = false;
    for (const Tree& body : simpler(best.program.body)) {
      if (over()) break;
      Case candidate = best;
      candidate.program.body = body;
      if (!still_differs(candidate)) continue;
      best = std::move(candidate);
      smaller = true;
      break;
    }
  }
  return best;
}

}  // namespace apl::oracle
