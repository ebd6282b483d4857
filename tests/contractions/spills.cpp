#include "tests/contractions/spills.h"

#include <fmt/format.h>
#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include "codegen/contraction/plan_kernels.h"
#include "codegen/host/variants.h"
#include "codegen/lower/lower.h"
#include "frontend/frontend.h"
#include "machine/target/records.h"
#include "passes/pipeline.h"
#include "runtime/backends/cuda/ptxas.h"
#include "tests/contractions/defaults.h"

namespace apl::contraction_tests {

namespace {

using lower::PlanKernels;
using lower::Variants;

struct Family {
  std::shared_ptr<PlanKernels> plan_kernels;
  std::vector<std::string> kernels;    // by plan
  std::vector<unsigned char> spilled;  // by plan
};

struct Subject {
  testing::Sizes sizes;
  FunctionPtr function;
  std::shared_ptr<Variants> variants;
  std::array<Family, APL_VARIANTS> families;
};

struct SpillBatch {
  std::vector<Subject> subjects;
  std::map<std::string, std::string> texts;  // of kernels
};

// Names of kernels by the list that generated host code has for them, and the lists of variants by the set of these
// ("": there is none).
struct KernelLists {
  std::map<std::string, std::vector<std::string>> kernels;
  std::map<std::string, std::array<std::string, APL_VARIANTS>> variants;
};

KernelLists kernel_lists(const std::string& host) {
  static const std::regex kList(R"(static const char \*const (\w+)_kernels\[\] = \{([^}]*)\};)");
  static const std::regex kName(R"re("(\w+)")re");
  static const std::regex kVariants(R"(apl_variant_set (\w+) = \{\{([^}]*)\})"), kSet(R"(&(\w+)_set|NULL)");
  KernelLists lists;
  for (std::sregex_iterator at(host.begin(), host.end(), kList), end; at != end; ++at) {
    const std::string names = (*at)[2];
    for (std::sregex_iterator name(names.begin(), names.end(), kName); name != end; ++name)
      lists.kernels[(*at)[1]].push_back((*name)[1]);
  }
  for (std::sregex_iterator at(host.begin(), host.end(), kVariants), end; at != end; ++at) {
    const std::string sets = (*at)[2];
    auto& list = lists.variants[(*at)[1]];
    std::transform(std::sregex_iterator(sets.begin(), sets.end(), kSet), end, list.begin(),
                   [](const std::smatch& set) { return set[1].str(); });
  }
  return lists;
}

Result<SpillBatch> make_batch(const std::vector<Measured>& programs) {
  std::string text;
  for (const Measured& program : programs) text += program.source + "\n";
  std::optional<Diagnostic> error;
  auto module = compile({"spills.fut", text}, [&](const Diagnostic& d) {
    if (!error) error = d;
  });
  if (!module) return *error;
  PipelineOptions options;
  options.verify_each = false;
  const auto pipeline = parse_pipeline(standard_pipeline(Stage::memory, Machine::gpu, true), PassRegistry::builtin());
  if (Status status = run_pipeline(*module, *pipeline, options); !status) return std::move(status).error();
  CodegenOptions codegen;
  codegen.plans = APL_MAX_PLANS;
  SpillBatch batch;
  auto program = lower::generate_edited(*module, cuda_target(), codegen, [&](const kernel::Function& made) {
    batch.texts[made.name] = kernel::print(made, *find_dialect("cuda"));
  });
  if (!program) return std::move(program).error();
  const auto lists = kernel_lists(program->host);
  lower::FileScope file(*module);
  for (const Measured& asked : programs) {
    const auto function = std::ranges::find_if(
        module->functions, [&](const FunctionPtr& f) { return f->entry && f->entry->name == asked.entry; });
    if (function == module->functions.end()) return make_error(Code::bug_internal, {}, "an entry is gone");
    lower::Unit unit(**function, cuda_target(), {}, file);
    const auto plan_kernels = lower::find_plan_kernels(unit, codegen);
    const auto variants = lower::find_variants(unit, codegen, plan_kernels);
    Subject& subject = batch.subjects.emplace_back();
    subject.sizes = asked.sizes;
    subject.function = *function;
    if (variants.empty()) continue;  // by other kernels
    if (variants.size() > 1) return make_error(Code::bug_internal, {}, asked.entry + " has several contractions");
    subject.variants = variants.begin()->second;
    const auto& sets = lists.variants.at(subject.variants->tiled().name + "_variants");
    for (auto&& [family, plan_kernels, set] : ranges::views::zip(subject.families, subject.variants->plans, sets)) {
      if (!plan_kernels) continue;
      family.plan_kernels = plan_kernels;
      family.kernels = lists.kernels.at(set);
      family.spilled.assign(family.kernels.size(), 0);
    }
  }
  return batch;
}

apl_contraction contraction_of(const Subject& subject, const Family& family, std::int64_t splits) {
  const PlanData& data = family.plan_kernels->data;
  apl_contraction made;
  fill_in(
      data, [&](Value v) { return v == data.splits() ? splits : subject.sizes.at(subject.function->values.name(v)); },
      made);
  return made;
}

apl_plan_list list_of(const Family& family) {
  if (!family.plan_kernels) return {};
  return {family.plan_kernels->plans.data(), static_cast<int>(family.kernels.size()), family.spilled.data()};
}

struct Choice {
  Family* family = nullptr;  // none: one thread a point
  std::size_t plan = 0;
  apl_contraction contraction;
};

// As runtime/program/bridge_plans.cpp chooses.
Choice choose(Subject& subject, const apl_device& device) {
  std::array<apl_plan_list, APL_VARIANTS> plans{};
  std::array<apl_contraction, APL_VARIANTS> contractions{};
  apl_variant_lists lists{};
  for (std::size_t v = 0; v < plans.size(); ++v) {
    const Family& family = subject.families[v];
    if (!family.plan_kernels) continue;
    plans[v] = list_of(family);
    lists.plans[v] = &plans[v];
    if (family.plan_kernels->data.splits()) continue;
    contractions[v] = contraction_of(subject, family, 1);
    lists.contractions[v] = &contractions[v];
  }
  apl_variant_choice variant;
  if (apl_variant_select(&contractions[APL_VARIANT_TILED], &lists, 0, &device, &variant) == 0)
    variant.variant = APL_VARIANT_TILED;
  Family& family = subject.families.at(static_cast<std::size_t>(variant.variant));
  if (!family.plan_kernels) return {};
  Choice choice{&family, 0, contraction_of(subject, family, variant.splits)};
  const apl_plan_list list = list_of(*choice.family);
  const int best = apl_plan_best_of(&choice.contraction, list.plans, list.count, &device, list.banned);
  choice.plan = best < 0 ? 0 : static_cast<std::size_t>(best);
  return choice;
}

// The first `count` plans that a program would try, were each before it to spill.
std::vector<Choice> first_choices(Subject& subject, const apl_device& device, std::size_t count) {
  const auto kept = subject.families;
  std::vector<Choice> made;
  while (made.size() < count) {
    const Choice next = choose(subject, device);
    if (!next.family || next.family->spilled[next.plan] != 0) break;
    made.push_back(next);
    next.family->spilled[next.plan] = 1;
  }
  for (auto&& [family, before] : ranges::views::zip(subject.families, kept)) family.spilled = before.spilled;
  return made;
}

// Of these kernels, in one translation unit.
Result<std::map<std::string, KernelResources>> compile_kernels(const SpillBatch& batch,
                                                               const std::set<std::string>& names) {
  if (names.empty()) return std::map<std::string, KernelResources>();
  std::string text;
  for (const std::string& name : names) text += batch.texts.at(name) + "\n";
  auto made = ask_ptxas(text, "sm_90a", std::filesystem::temp_directory_path().string());
  if (!made) return made;
  for (const std::string& name : names)
    if (!made->contains(name)) return make_error(Code::bug_internal, {}, "ptxas says nothing of " + name);
  return made;
}

std::string describe_plan(const apl_contraction& c, const apl_plan& plan, const apl_device& device) {
  apl_plan_cost cost;
  apl_plan_estimate(&c, &plan, &device, &cost);
  std::int64_t needed = 0, limit = 0;
  apl_plan_check(&c, &plan, &device, &needed, &limit);
  std::string text = fmt::format("{} kernel, {} threads, {} a multiprocessor, {} predicted,",
                                 cost.has_mainloop != 0 ? "mainloop" : "general", cost.threads,
                                 cost.blocks_per_multiprocessor, cost.registers);
  text += fmt::format(" {:.1f} us,", 1e6 * cost.seconds);
  for (int d = 0; d < c.dim_count; ++d)
    if (c.dims[d].fixed == 0) text += fmt::format(" {}x{}", plan.tile[d], d < c.space_rank ? plan.reg[d] : 1);
  return text + fmt::format(" {} stages, operands of {} and {} bytes, {} dims", plan.stages, c.operands[0].bytes,
                            c.operands[1].bytes, c.dim_count);
}

// Of some programs.
struct Tally {
  std::size_t kernels = 0, spilling = 0, replaced = 0, untiled = 0, failed = 0;
};

// With `first` above 1 also of the plans that would be next.
bool look_at(const std::vector<Measured>& programs, bool every_plan, bool print, std::size_t first,
             const std::function<bool()>& stop, Tally& tally) {
  const auto device = find_device("h200");
  const auto say = [&](const Choice& choice, const KernelResources& made) {
    fmt::print("{}: {} registers, spills {}, {} on the stack; {}\n", choice.family->kernels[choice.plan],
               made.registers, made.spilled, made.stack,
               describe_plan(choice.contraction, choice.family->plan_kernels->plans[choice.plan], *device));
    std::fflush(stdout);
  };
  auto batch = make_batch(programs);
  if (!batch) {
    fmt::print("FAILED: {}\n", batch.error().message);
    return false;
  }
  std::map<std::string, KernelResources> known;
  // Until no plan is struck out any more.
  for (bool again = true; again && !stop();) {
    again = false;
    std::set<std::string> wanted;
    std::vector<Choice> choices;
    for (Subject& subject : batch->subjects) {
      if (!subject.variants) {
        choices.emplace_back();
        continue;
      }
      choices.push_back(choose(subject, *device));
      for (const Choice& next : first_choices(subject, *device, first))
        if (known.empty()) wanted.insert(next.family->kernels[next.plan]);
      if (choices.back().family) wanted.insert(choices.back().family->kernels[choices.back().plan]);
      for (Family& family : subject.families)
        for (std::size_t k = 0; every_plan && k < family.kernels.size(); ++k) wanted.insert(family.kernels[k]);
    }
    std::erase_if(wanted, [&](const std::string& name) { return known.contains(name); });
    if (wanted.empty()) {
      for (const Choice& choice : choices) tally.untiled += choice.family == nullptr ? 1 : 0;
      break;
    }
    auto made = compile_kernels(*batch, wanted);
    if (!made) {
      fmt::print("FAILED: {}\n", made.error().message);
      return false;
    }
    known.merge(*made);
    for (Subject& subject : batch->subjects)
      for (Family& family : subject.families)
        for (std::size_t k = 0; k < family.kernels.size(); ++k) {
          const auto found = known.find(family.kernels[k]);
          if (found == known.end() || !wanted.contains(found->first)) continue;
          ++tally.kernels;
          const bool spills = found->second.stack > 0;
          tally.spilling += spills ? 1 : 0;
          if (spills || print) say({&family, k, contraction_of(subject, family, 2)}, found->second);
          family.spilled[k] = spills ? 1 : 0;
          again = again || spills;
        }
  }
  for (Subject& subject : batch->subjects) {
    if (!subject.variants) continue;
    const Choice last = choose(subject, *device);
    if (!last.family) continue;
    if (print)
      fmt::print("chosen {}: {}\n", last.family->kernels[last.plan],
                 describe_plan(last.contraction, last.family->plan_kernels->plans[last.plan], *device));
    const bool some = std::ranges::count(last.family->spilled, 1) > 0, this_one = last.family->spilled[last.plan] != 0;
    tally.replaced += some && !this_one ? 1 : 0;
    tally.failed += this_one ? 1 : 0;
  }
  return true;
}

void say_all(const Tally& tally, std::size_t count) {
  fmt::print(
      "spills: {} kernels compiled, {} spill; {} of {} contractions have another plan for that, {} none, {} are not "
      "tiled\n",
      tally.kernels, tally.spilling, tally.replaced, count, tally.failed, tally.untiled);
}

}  // namespace

bool run_spills(const ThesisOptions& options, bool every_plan, const std::function<bool()>& stop) {
  Tally tally;
  for (std::uint64_t first = 0; first < options.count && !stop(); first += options.batch) {
    std::vector<Measured> programs;
    for (std::uint64_t k = first; k < std::min(first + options.batch, options.count); ++k) {
      const Spec spec = default_spec(options.seed + k, options.small);
      programs.push_back({spec.entry, to_source(spec), spec.sizes[0]});
    }
    if (!look_at(programs, every_plan, every_plan, 1, stop, tally)) return false;
  }
  say_all(tally, options.count);
  return tally.failed == 0;
}

bool run_suite_spills(const std::vector<Measured>& suite, std::size_t every, std::size_t batch, bool print,
                      std::size_t first_plans, const std::function<bool()>& stop) {
  Tally tally;
  std::vector<Measured> chosen;
  for (std::size_t k = 0; k < suite.size(); k += std::max<std::size_t>(every, 1)) chosen.push_back(suite[k]);
  for (std::size_t first = 0; first < chosen.size() && !stop(); first += batch) {
    const auto begin = chosen.begin() + static_cast<std::ptrdiff_t>(first);
    const std::size_t count = std::min(batch, chosen.size() - first);
    if (!look_at({begin, begin + static_cast<std::ptrdiff_t>(count)}, false, print, first_plans, stop, tally))
      return false;
  }
  say_all(tally, chosen.size());
  return tally.spilling == 0;
}

}  // namespace apl::contraction_tests
