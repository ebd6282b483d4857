#include "tests/contractions/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "codegen/codegen.h"
#include "codegen/host/variants.h"
#include "frontend/frontend.h"
#include "ir/interpret.h"
#include "ir/walk.h"
#include "passes/pipeline.h"
#include "runtime/program/program.h"
#include "tests/random/child.h"

namespace apl::contraction_tests {

namespace {

using Values = std::vector<HostValue>;
using Clock = std::chrono::steady_clock;
using random_tests::Message;
using random_tests::Send;

constexpr std::chrono::seconds kReferenceTime{10};

struct Case {
  testing::Sizes sizes;
  Values inputs, expected;
};

struct Candidate {
  std::size_t number = 0;
  Spec* spec = nullptr;
  std::vector<Parameter> parameters;
  std::vector<Case> cases;
  int tiled = 0, fast = 0, comparisons = 0;
  std::string refusals;
};
using Batch = std::vector<Candidate>;

std::map<std::string, std::int64_t> parameters_of(const Batch& batch) {
  std::map<std::string, std::int64_t> all;
  for (const Candidate& c : batch)
    for (const auto& [name, number] : c.spec->plan) all[c.spec->entry + "." + name] = number;
  return all;
}

std::string describe(const Case& c) {
  std::string text;
  for (const auto& [name, value] : c.sizes) text += fmt::format("{}={} ", name, value);
  text += "\ninputs:\n";
  for (const HostValue& input : c.inputs) text += "  " + input.to_text().substr(0, 1000) + "\n";
  return text;
}

std::string describe(const Values& values) {
  std::string text;
  for (const HostValue& value : values) text += "  " + value.to_text().substr(0, 1000) + "\n";
  return text;
}

// Plans and sizes are drawn in the child: "T_a=3 stages=2;a=5 q=1;a=2 q=4".
std::string numbers_to_text(const Spec& spec) {
  const auto list = [](const std::map<std::string, std::int64_t>& numbers) {
    std::string text;
    for (const auto& [name, number] : numbers) text += fmt::format("{}={} ", name, number);
    return text;
  };
  std::string text = list(spec.plan);
  for (const testing::Sizes& sizes : spec.sizes) text += ";" + list(sizes);
  return text;
}

void numbers_from_text(const std::string& text, Spec& spec) {
  std::istringstream parts(text);
  std::string part;
  spec.sizes.clear();
  for (bool first = true; std::getline(parts, part, ';'); first = false) {
    std::map<std::string, std::int64_t> numbers;
    std::istringstream words(part);
    for (std::string word; words >> word;) {
      const std::size_t equals = word.find('=');
      numbers[word.substr(0, equals)] = std::stoll(word.substr(equals + 1));
    }
    if (first) {
      spec.plan = std::move(numbers);
    } else {
      spec.sizes.push_back(std::move(numbers));
    }
  }
}

// Works in the child.
class Checker {
 public:
  Checker(const CheckOptions& options, const Send& send) : options_(options), send_(send) {}

  // What fails for several together is tried again for halves, so that it is one's own failure in the end.
  void run(Batch batch) {
    if (batch.empty() || everything(batch)) return;
    if (batch.size() == 1) {
      fail(batch[0], where_, error_);
      return;
    }
    const auto middle = batch.begin() + static_cast<std::ptrdiff_t>(batch.size() / 2);
    run(Batch(batch.begin(), middle));
    run(Batch(middle, batch.end()));
  }

 private:
  void begin(const Candidate& c, const std::string& where) { send_({'b', c.number, where, ""}); }

  void fail(const Candidate& c, const std::string& where, const std::string& message, bool limitation = false) {
    send_({limitation || limitation_ ? 'u' : 'f', c.number, where, message});
  }

  // False, with the reason in where_ and error_.
  bool stop(const std::string& where, const Diagnostic& error) {
    where_ = fmt::format("{} [{}]", where, code_text(error.code));
    error_ = error.message;
    if (error.location) error_ = fmt::format("{}:{}: {}", error.location.line, error.location.column, error_);
    for (const Note& note : error.notes) error_ += "\nnote: " + note.message;
    limitation_ = code_fault(error.code) == Fault::limitation;
    return false;
  }

  bool everything(Batch& batch) {
    limitation_ = false;
    begin(batch[0], "front end, compiling");
    std::string text;
    for (const Candidate& c : batch) text += to_source(*c.spec) + "\n";
    std::optional<Diagnostic> error;
    const auto module = compile({"contractions.fut", text}, [&](const Diagnostic& d) {
      if (!error) error = d;
    });
    if (!module) return stop("front end", *error);
    begin(batch[0], "passes, compiling");
    if (!plan(batch, *module)) return false;
    Module tiled;
    std::map<Machine, ProgramText> texts;
    for (const Machine machine : {Machine::gpu, Machine::cpu})
      if (!lower(batch, *module, machine, tiled, texts)) return false;
    const Batch all = batch;
    interpret_all(batch, *module, tiled);
    for (const std::string& backend : options_.backends) {
      if (batch.empty()) break;
      begin(batch[0], backend + ", compiling");
      ProgramOptions load;
      load.backend = backend;
      load.device_record = backend == "emulate" ? options_.device : "";
      load.c_flags = options_.c_flags;
      auto program = apl::Program::load(texts[backend == "c" ? Machine::cpu : Machine::gpu].host, load);
      // What failed before is said again if halves are tried.
      if (!program) return batch = all, stop(backend, program.error());
      std::erase_if(batch, [&](Candidate& c) {
        begin(c, backend);
        return !std::all_of(c.cases.begin(), c.cases.end(), [&](const Case& one) {
          return same(c, backend, one, program->call(c.spec->entry, one.inputs));
        });
      });
    }
    for (const Candidate& c : batch)
      send_({'a', c.number, fmt::format("{} {} {}", c.tiled, c.fast, c.comparisons), c.refusals});
    return true;
  }

  // Which parameters there are, then numbers for them and for the sizes.
  bool plan(Batch& batch, const Module& module) {
    Module kernel = module;
    PipelineOptions options;
    std::map<std::string, Candidate*> by_name;
    for (Candidate& c : batch) by_name[c.spec->entry] = &c, c.parameters.clear(), c.refusals.clear(), c.tiled = 0;
    options.remarks = [&](const Remark& remark) {
      const auto found = by_name.find(remark.function);
      if (found == by_name.end() || remark.pass != "tile-contraction") return;
      if (remark.code == "tiled") {
        ++found->second->tiled;
      } else {
        found->second->refusals += remark.code + " ";
      }
    };
    options.verify_each = false;
    const auto pipeline = parse_pipeline(standard_pipeline(Stage::kernel, Machine::gpu), PassRegistry::builtin());
    if (const Status status = run_pipeline(kernel, *pipeline, options); !status) return stop("passes", status.error());
    for (const FunctionPtr& function : kernel.functions) {
      if (!function->is_entry()) continue;
      Candidate& c = *by_name.at(function->entry->name);
      for_each_stm(*function->body, [&](const Stm& stm) {
        const auto* size = get_if<GetSize>(stm);
        if (size == nullptr) return;
        const std::string prefix = c.spec->entry + ".";
        if (!size->name.starts_with(prefix + "T_") && !size->name.starts_with(prefix + "R_")) return;
        c.parameters.push_back(
            {size->name.substr(prefix.size()), size->size_class == SizeClass::tile_size, size->default_value});
      });
      if (!c.spec->sizes.empty()) continue;
      draw_plan(*c.spec, c.parameters);
      draw_sizes(*c.spec, c.parameters);
    }
    return true;
  }

  // Of variants that were drawn those that the contractions have.
  static void leave_variants(Batch& batch, const Module& memory) {
    for (const Candidate& c : batch)
      for (const FunctionPtr& function : memory.functions)
        for_each_stm(*function->body, [&](const Stm& stm) {
          const Choose* choose = get_if<Choose>(stm);
          if (choose != nullptr && choose->parameter == c.spec->entry + ".variant" &&
              lower::refuse_variant(*choose, stm.location, parameters_of({c})))
            c.spec->plan.erase("variant");
        });
  }

  // The text for a machine. Blocks that are too large for any device get smaller tiles.
  bool lower(Batch& batch, const Module& module, Machine machine, Module& tiled,
             std::map<Machine, ProgramText>& texts) {
    for (int again = 0;; ++again) {
      PipelineOptions options;
      options.parameters = parameters_of(batch);
      if (machine == Machine::gpu)
        options.after_pass = [&](const PassReport& report, const Module& after) {
          if (report.pass == "tile-contraction") tiled = after;
        };
      Module memory = module;
      const auto pipeline =
          parse_pipeline(standard_pipeline(Stage::memory, machine, options_.plans > 1), PassRegistry::builtin());
      if (const Status status = run_pipeline(memory, *pipeline, options); !status)
        return stop("passes", status.error());
      leave_variants(batch, memory);
      CodegenOptions codegen;
      codegen.parameters = parameters_of(batch);
      codegen.plans = options_.plans;
      auto text = generate(memory, machine == Machine::gpu ? target_ : c_target(), codegen);
      // The numbers of one contraction alone can be blamed: a batch is divided.
      if (!text && text.error().code == Code::command_bad_parameter && batch.size() == 1 && again < 8) {
        shrink_plan(*batch.front().spec, batch.front().parameters);
        continue;
      }
      if (!text) return stop("code generation", text.error());
      bool fits = true;
      for (const KernelInfo& kernel : text->kernel_infos)
        for (Candidate& c : batch)
          if (machine == Machine::gpu && kernel.shared_bytes > target_.block_shared &&
              kernel.name.starts_with(c.spec->entry + "_"))
            fits = false, shrink_plan(*c.spec, c.parameters);
      if (!fits && again < 8) continue;
      if (machine == Machine::gpu)
        for (Candidate& c : batch) {
          c.fast = fast_kernels(*text, c.spec->entry);
          send_({'n', c.number, "", numbers_to_text(*c.spec)});
        }
      texts[machine] = *std::move(text);
      return true;
    }
  }

  // Kernels with tables of rows, which the mainloop alone has.
  static int fast_kernels(const ProgramText& text, const std::string& entry) {
    int count = 0;
    for (const KernelInfo& kernel : text.kernel_infos) {
      if (!kernel.name.starts_with(entry + "_")) continue;
      const std::size_t begin = text.kernels.find("void " + kernel.name + "(");
      const std::size_t end = text.kernels.find("\n}\n", begin);
      count += text.kernels.substr(begin, end - begin).find(" result_rows") != std::string::npos ? 1 : 0;
    }
    return count;
  }

  void interpret_all(Batch& batch, const Module& module, const Module& tiled) {
    std::erase_if(batch, [&](Candidate& c) {
      begin(c, "interpreter");
      c.cases.clear();
      c.comparisons = 0;
      const Function& entry = *module.find_entry(c.spec->entry);
      for (const testing::Sizes& sizes : c.spec->sizes) {
        auto inputs = testing::random_arguments(entry, sizes, c.spec->seed + 1);
        if (!inputs) return fail(c, "inputs", inputs.error().message), true;
        Case one{sizes, *std::move(inputs), {}};
        auto expected = interpret_one(module, c, one.inputs, 1);
        if (!expected && expected.error().code == Code::run_stopped) continue;
        if (!expected) return fail(c, "interpreter", expected.error().message + "\n" + describe(one)), true;
        one.expected = *std::move(expected);
        c.cases.push_back(std::move(one));
      }
      begin(c, "interpreter after tile-contraction");
      return !std::all_of(c.cases.begin(), c.cases.end(), [&](const Case& one) {
        const auto got = interpret_one(tiled, c, one.inputs, c.spec->seed + 7);
        if (!got && got.error().code == Code::run_stopped) return true;
        return same(c, "interpreter after tile-contraction", one, got);
      });
    });
  }

  Result<Values> interpret_one(const Module& module, const Candidate& c, const Values& inputs, std::uint64_t seed) {
    InterpretOptions options;
    options.seed = seed;
    options.parameters = parameters_of({c});
    const auto end = Clock::now() + kReferenceTime;
    options.stop = [end] { return Clock::now() > end; };
    return interpret(module, c.spec->entry, inputs, options);
  }

  bool same(Candidate& c, const std::string& where, const Case& one, const Result<Values>& got) {
    if (got && testing::same_results(*got, one.expected)) return ++c.comparisons, true;
    if (!got) {
      fail(c, where, got.error().message + "\n" + describe(one), code_fault(got.error().code) == Fault::limitation);
      return false;
    }
    fail(c, where, fmt::format("{}expected:\n{}got:\n{}", describe(one), describe(one.expected), describe(*got)));
    return false;
  }

  const CheckOptions& options_;
  const Target target_ = *find_target(options_.device.empty() ? "cuda" : options_.device);
  const Send& send_;
  std::string where_, error_;
  bool limitation_ = false;
};

}  // namespace

std::vector<Report> check(std::vector<Spec>& specs, const CheckOptions& options, const std::function<bool()>& stop) {
  std::map<std::size_t, Report> reports;
  for (;;) {
    Batch left;
    for (std::size_t k = 0; k < specs.size(); ++k)
      if (reports.count(k) == 0) left.push_back({k, &specs[k], {}, {}, 0, 0, 0, {}});
    if (left.empty() || stop()) break;
    const auto messages =
        random_tests::in_child([&](const Send& send) { Checker(options, send).run(left); }, options.patience_s, stop);
    const std::size_t before = reports.size();
    for (const Message& m : messages) {
      if (m.kind == 'n') {
        numbers_from_text(m.text, specs[m.number]);
        continue;
      }
      Report report{m.number, static_cast<Outcome>(m.kind), m.where, m.text, 0, 0, {}, 0};
      if (report.outcome == Outcome::agrees) {
        std::istringstream(m.where) >> report.tiled >> report.fast >> report.comparisons;
        report.refusals = m.text;
      }
      reports.emplace(m.number, std::move(report));  // the first one counts
    }
    if (reports.size() == before) break;
  }
  std::vector<Report> all;
  for (auto& [number, report] : reports) all.push_back(std::move(report));
  return all;
}

std::string describe(const Spec& spec) {
  std::string text = fmt::format("{}, {}\n{}", to_text(spec.op), apl::to_text(spec.type), to_source(spec));
  for (const auto& [name, number] : spec.plan) text += fmt::format(" --param {}.{}={}", spec.entry, name, number);
  for (const testing::Sizes& sizes : spec.sizes) {
    text += "\nsizes:";
    for (const auto& [name, size] : sizes) text += fmt::format(" {}={}", name, size);
  }
  return text + "\n";
}

}  // namespace apl::contraction_tests
