#include "aplc/explain_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "aplc/test/executable.h"
#include "codegen/contraction/plan_kernels.h"
#include "ir/print.h"
#include "ir/sparse_arguments.h"
#include "ir/walk.h"
#include "suite/test_block.h"

namespace aplc {
namespace {

using apl::Value;

std::string bytes_text(double bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(kUnits)) bytes /= 1024, ++unit;
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

std::string time_text(double seconds) { return fmt::format("{:.1f} us", seconds * 1e6); }

using Facts = std::vector<std::pair<std::string, std::string>>;

// Rows, columns and depth of a block.
std::string block_text(const apl_contraction& c, const apl_plan& plan) {
  std::vector<std::string> extents;
  for (int d = 0; d < c.dim_count; ++d) {
    const int extent = plan.tile[d] * (d < c.space_rank ? plan.reg[d] : 1);
    if (extent > 1) extents.push_back(std::to_string(extent));
  }
  return extents.empty() ? "1" : fmt::format("{}", fmt::join(extents, " x "));
}

// "128 x 16 elements, 8.0 KiB": of each operand, in the order of its dims in the contraction.
void add_tiles(const PlannedContraction& planned, const apl_plan& plan, Facts& facts) {
  const apl_contraction& c = *planned.contraction;
  for (std::size_t k = 0; k < planned.data.schedule.operands.size(); ++k) {
    const apl::Schedule::Operand& operand = planned.data.schedule.operands[k];
    std::vector<std::string> extents;
    double elements = 1;
    for (int d = 0; d < c.dim_count; ++d) {
      const int extent = plan.tile[d] * (d < c.space_rank ? plan.reg[d] : 1);
      if (extent == 1 || operand.strides[static_cast<std::size_t>(d)].is_zero()) continue;
      extents.push_back(std::to_string(extent));
      elements *= extent;
    }
    facts.emplace_back(
        "tile." + operand.name,
        fmt::format("{} elements, {} a stage", extents.empty() ? "1" : fmt::format("{}", fmt::join(extents, " x ")),
                    bytes_text(elements * byte_size(operand.element))));
  }
}

std::string cost_text(const apl_plan_cost& cost) {
  return fmt::format("{}: arithmetic {}, shared memory {}, memory {}, latency {}", time_text(cost.seconds),
                     time_text(cost.arithmetic), time_text(cost.shared), time_text(cost.memory),
                     time_text(cost.latency));
}

// Who multiplies, where matrix units know the products.
std::string products_text(const apl_contraction& c, const apl_plan& plan, const apl_device& device) {
  if (device.matrix_units == 0) return fmt::format("by multiply-adds: {} has no matrix units", device.name);
  apl_mn_dim m_dim, n_dim;
  const bool shared = apl_plan_mainloop(&c, &plan, device.warp, 1, &m_dim, &n_dim) != 0;
  const bool fits = c.operands[0].bytes == 4   ? m_dim.vector == 8
                    : c.operands[0].bytes <= 2 ? apl_matrix_rows(&m_dim, &n_dim) >= 0
                                               : true;
  if (!shared || !fits) return "by multiply-adds: the plan's tiles do not suit the matrix units";
  if (c.operands[0].bytes != 4) return "by matrix units";
  return c.matrix == 3 ? "three of tf32 by matrix units each" : "of tf32 by matrix units";
}

void add_cost(const apl_contraction& c, const apl_plan& plan, const apl_plan_cost& cost, const apl_device& device,
              double operations, Facts& facts) {
  const bool gpu = device.warp > 0;
  facts.emplace_back("kernel", !gpu ? "loops" : cost.has_mainloop ? "mainloop" : "general");
  if (gpu && c.matrix > 0) facts.emplace_back("products", products_text(c, plan, device));
  if (gpu) {
    facts.emplace_back("threads", fmt::format("{} a block", cost.threads));
    facts.emplace_back("registers", fmt::format("about {} a thread", cost.registers));
    facts.emplace_back("occupancy", fmt::format("{} blocks a multiprocessor, {:.0f}% of its threads",
                                                cost.blocks_per_multiprocessor, 100 * cost.occupancy));
  }
  facts.emplace_back("shared-memory", bytes_text(static_cast<double>(cost.block_shared)) + " a block");
  facts.emplace_back("blocks", fmt::format("{} in {:.2f} waves", cost.blocks, cost.waves));
  facts.emplace_back("memory-bytes", fmt::format("{}, {} with what is read again from the cache",
                                                 bytes_text(cost.memory_bytes), bytes_text(cost.cache_bytes)));
  if (gpu) {
    facts.emplace_back("shared-bytes", bytes_text(cost.shared_bytes));
    facts.emplace_back("bank-conflicts", fmt::format("reads take {:.1f} passes, copies {:.1f} (1: none)",
                                                     cost.read_conflicts, cost.write_conflicts));
  }
  facts.emplace_back("cost", cost_text(cost));
  if (cost.seconds > 0)
    facts.emplace_back("rate", fmt::format("{:.3g} operations a second", operations / cost.seconds));
}

// That a program for the device may have of a contraction.
int kernels_for(const apl_device& device) { return plans_for(device.warp > 0 ? "cuda" : "c"); }

// The variant that a program takes with these sizes, and what the others would take.
void add_variant(const PlannedContraction& planned, const apl::ChosenKernel& chosen, const apl_device& device,
                 Facts& facts) {
  if (!chosen.choice) return;
  const apl_variant_choice& choice = *chosen.choice;
  static constexpr const char* kWords[] = {
      // by enum apl_variant
      "", "tiled", "split into {} parts", "not tiled", "with transposed operands", "with aligned operands"};
  static_assert(std::size(kWords) == APL_VARIANTS);
  std::vector<std::string> variants;
  for (int variant = APL_VARIANT_TILED; variant < APL_VARIANTS; ++variant)
    if (choice.seconds[variant] >= 0)
      variants.push_back(fmt::format("{} {}", fmt::format(fmt::runtime(kWords[variant]), choice.splits),
                                     time_text(choice.seconds[variant])));
  facts.emplace_back("variants", fmt::format("{}", fmt::join(variants, ", ")));
  if (choice.padded_seconds >= 0)
    facts.emplace_back("padding", fmt::format("tiled without a remainder step, if padding is proved: {}",
                                              time_text(choice.padded_seconds)));
  facts.emplace_back("variant", apl_variant_name(choice.variant));
  if (const apl_contraction& left = *chosen.shown.contraction; left.copies > 0)
    facts.emplace_back(choice.variant == APL_VARIANT_ALIGNED ? "aligned" : "transposed",
                       fmt::format("{} of the operands by kernels before, {}", left.copies,
                                   time_text(apl_copies_estimate(&left, &device))));
  if (!chosen.shown.data.splits()) return;
  facts.emplace_back("splits", std::to_string(choice.splits));
  facts.emplace_back("join", time_text(apl_join_estimate(&*planned.contraction, choice.splits, &device)));
}

// What a program asks when it loads the kernel of a plan.
struct Loading {
  const apl::Module& module;
  const apl::Function& function;
  const apl_device& device;
  const apl::SpillCheck& check;
};

// As the runtime does: a plan whose kernel spills gives way to the next, and if there is none the first one stays. Then
// the plans that are left, of which the cheapest would be the next.
void choose_loaded(const apl::ChosenKernel& chosen, const Loading& loading, apl_plan& plan, ExplainedPlan& explained,
                   Facts& facts) {
  const apl_contraction& c = *chosen.shown.contraction;
  const std::vector<apl_plan>& plans = chosen.candidates;
  std::vector<unsigned char> left_out(plans.size());
  const auto best = [&] {
    return apl_plan_best_of(&c, plans.data(), static_cast<int>(plans.size()), &loading.device, left_out.data());
  };
  const auto numbers = [&](const apl_plan& one) { return numbers_text(chosen.shown, loading.function, one); };
  const apl_plan first = plan;
  std::string asked = "no compiler was asked (--ptxas)";
  int at = best();
  while (at >= 0 && loading.check) {
    const auto k = static_cast<std::size_t>(at);
    const std::string kernel = apl::lower::plan_kernel_text(loading.module, loading.function, chosen.shown.data,
                                                            plans[k], apl::cuda_target(), loading.device);
    const auto spilled = loading.check(kernel);
    if (!spilled) {
      asked = "not known: " + spilled.error().message.substr(0, spilled.error().message.find('\n'));
      break;
    }
    const int bytes = spilled->empty() ? 0 : spilled->begin()->second;
    asked = "none";
    if (bytes == 0) break;
    facts.emplace_back(fmt::format("dropped-{}", ++explained.dropped),
                       fmt::format("{}: its kernel spills {} bytes a thread", numbers(plans[k]), bytes));
    left_out[k] = 1;
    at = best();
  }
  if (at >= 0) plan = plans[static_cast<std::size_t>(at)];
  if (at < 0 && explained.dropped > 0) facts.emplace_back("kept", "the first, as the kernels of all plans spill");
  if (at < 0) plan = first;
  if (explained.dropped == 0) facts.emplace_back("dropped", asked);
  if (at < 0) return;
  left_out[static_cast<std::size_t>(at)] = 1;
  const int next = best();
  if (next < 0) return;
  apl_plan_cost cost;
  apl_plan_estimate(&c, &plans[static_cast<std::size_t>(next)], &loading.device, &cost);
  facts.emplace_back("next", fmt::format("{}, {}, if this one's kernel spilled when it is loaded",
                                         numbers(plans[static_cast<std::size_t>(next)]), time_text(cost.seconds)));
}

Facts facts_of(const PlannedContraction& planned, const Loading& loading, const Sizes& sizes,
               ExplainedPlan& explained) {
  const apl::Function& function = loading.function;
  const apl_device& device = loading.device;
  std::string &message = explained.remark.message, &suggestion = explained.remark.suggestion;
  Facts facts{{"device", device.name}};
  const bool packed = planned.data.schedule.unit == apl::Schedule::Unit::packed;
  if (!planned.contraction && packed) {
    message = "packed for a micro-kernel; blocks are cut when sizes are known";
    return facts;
  }
  if (!planned.contraction) {
    message = "sizes are not known: these are the plans that a program chooses among when it runs";
    std::vector<std::string> names;
    for (Value v : planned.data.symbols()) names.push_back(fmt::format("--size {}=...", function.values.name(v)));
    suggestion = fmt::format("{}", fmt::join(names, " "));
    int k = 0;
    for (const apl_plan& plan :
         apl::program_plans(planned.data, function, planned.given, planned.forced, device, kernels_for(device)))
      facts.emplace_back(fmt::format("plan-{}", ++k), numbers_text(planned, function, plan));
    return facts;
  }
  std::vector<std::string> given;
  for (const auto& [name, size] : sizes) given.push_back(fmt::format("{}={}", name, size));
  if (!given.empty()) facts.emplace_back("sizes", fmt::format("{}", fmt::join(given, " ")));
  const apl::ChosenKernel chosen = apl::choose_kernel(planned, function, device, kernels_for(device));
  explained.seconds = chosen.seconds;
  if (packed) {
    const apl_contraction& c = *planned.contraction;
    double operations = 2;
    for (int d = 0; d < c.dim_count; ++d) operations *= static_cast<double>(c.dims[d].size);
    facts.emplace_back("kernel", "a micro-kernel on packed panels; its tile is what the vector registers hold");
    facts.emplace_back("rate", fmt::format("{:.3g} operations a second", operations / *explained.seconds));
    message = fmt::format("packed for a micro-kernel, {}", time_text(*explained.seconds));
    return facts;
  }
  add_variant(planned, chosen, device, facts);
  if (chosen.choice) explained.variant = apl_variant_name(chosen.choice->variant);
  if (chosen.choice && chosen.choice->variant == APL_VARIANT_UNTILED) {
    message = fmt::format("not tiled: one thread a point, {}", time_text(*chosen.seconds));
    return facts;
  }
  const apl_contraction& c = *chosen.shown.contraction;
  apl_plan_choice choice;
  if (apl_plan_select(&c, &planned.forced, &device, &choice) == 0) {
    message = "no plan works: " + apl::refusal_text(chosen.shown.data, function, c, planned.forced, device);
    return facts;
  }
  // What runs is the best of the program's plans; what is best of all may be another plan.
  apl_plan plan = *chosen.plan;
  Facts loaded;
  if (device.warp > 0 && !chosen.candidates.empty()) choose_loaded(chosen, loading, plan, explained, loaded);
  apl_plan_cost cost;
  apl_plan_estimate(&c, &plan, &device, &cost);
  double operations = 2;
  for (int d = 0; d < c.dim_count; ++d) operations *= static_cast<double>(c.dims[d].size);
  facts.emplace_back("plan", numbers_text(chosen.shown, function, plan));
  facts.emplace_back("block", block_text(c, plan));
  add_tiles(chosen.shown, plan, facts);
  add_cost(c, plan, cost, device, operations, facts);
  if (choice.fault == APL_PLAN_REGISTERS)
    facts.emplace_back("spills",
                       fmt::format("{} registers a thread are needed, there are {}", choice.needed, choice.limit));
  facts.emplace_back("considered", fmt::format("{} plans, of which the program has {}", choice.considered,
                                               std::max<std::size_t>(chosen.candidates.size(), 1)));
  facts.insert(facts.end(), loaded.begin(), loaded.end());
  const bool is_best = numbers_text(chosen.shown, function, plan) == numbers_text(chosen.shown, function, choice.best);
  if (!is_best || choice.has_runner_up) {
    const apl_plan_cost& other = is_best ? choice.runner_up_cost : choice.cost;
    facts.emplace_back("runner-up", numbers_text(chosen.shown, function, is_best ? choice.runner_up : choice.best));
    facts.emplace_back("runner-up-cost", cost_text(other));
  }
  message = fmt::format("tiles of {}, {}", block_text(c, plan), time_text(cost.seconds));
  if (explained.dropped > 0)
    message += fmt::format("; {} that the model prefers {} dropped when {} loaded",
                           explained.dropped == 1 ? "a plan" : fmt::format("{} plans", explained.dropped),
                           explained.dropped == 1 ? "is" : "are", explained.dropped == 1 ? "it is" : "they are");
  explained.tiled = true;
  explained.contraction = c;
  explained.plan = plan;
  explained.cost = cost;
  for (const apl::Schedule::Operand& operand : chosen.shown.data.schedule.operands)
    explained.operands.push_back(operand.name);
  return facts;
}

}  // namespace

Sizes sizes_of(const apl::Function& entry, const std::vector<apl::HostValue>& inputs) {
  Sizes sizes;
  const auto add = [&](const apl::Poly& dim, std::int64_t size) {
    if (const auto symbol = dim.symbol()) sizes[entry.values.name(*symbol)] = size;
  };
  std::vector<apl::Value> params;
  for (const apl::Value param : entry.params)
    if (!entry.type(param).is_memory()) params.push_back(param);
  const std::vector<apl::SparseSoa> soas = apl::find_soas(entry);
  std::size_t at = 0;  // of the parameters: a matrix is several of them where it is a struct of arrays
  for (const apl::HostValue& input : inputs) {
    if (at >= params.size()) break;
    const apl::Type& type = entry.type(params[at]);
    if (const auto soa = std::ranges::find(soas, at, &apl::SparseSoa::first);
        soa != soas.end() && input.rank() == 2 && type.rank() == 3) {
      add(type.shape[1], input.shape[0]);
      add(type.shape[2], input.shape[1]);
      const auto values = std::ranges::find(soa->fields, apl::SoaField::values) - soa->fields.begin();
      add(entry.type(params[at + static_cast<std::size_t>(values)]).shape[0], apl::to_csr(input).nonzeros());
      at += soa->fields.size();
      continue;
    }
    if (type.is_scalar() && type.element == apl::ScalarType::i64 && input.data.size() == sizeof(std::int64_t)) {
      std::int64_t number = 0;
      std::copy_n(reinterpret_cast<const char*>(input.data.data()), sizeof number, reinterpret_cast<char*>(&number));
      sizes[entry.values.name(params[at])] = number;
    }
    for (std::size_t d = 0; d < type.rank() && d < input.shape.size(); ++d) add(type.shape[d], input.shape[d]);
    ++at;
  }
  return sizes;
}

std::optional<std::vector<apl::HostValue>> first_inputs(const std::string& file, const std::string& text,
                                                        const apl::Function& entry) {
  const auto spec = apl::suite::parse_test_blocks(text);
  if (!spec || !entry.entry) return std::nullopt;
  for (const apl::suite::CaseGroup& group : spec->groups) {
    const std::vector<std::string>& names = group.entries;
    const std::string& name = entry.entry->name;
    if (names.empty() ? name != "main" : std::find(names.begin(), names.end(), name) == names.end()) continue;
    for (const apl::suite::Case& one : group.cases)
      if (auto inputs = case_inputs(file, one.input, entry)) return std::move(*inputs);
  }
  return std::nullopt;
}

Sizes first_dataset(const std::string& file, const std::string& text, const apl::Function& entry) {
  const auto inputs = first_inputs(file, text, entry);
  return inputs ? sizes_of(entry, *inputs) : Sizes{};
}

std::string numbers_text(const PlannedContraction& planned, const apl::Function& function, const apl_plan& plan) {
  std::vector<std::string> numbers;
  const auto add = [&](Value v, int number) {
    if (v) numbers.push_back(fmt::format("{}={}", apl::parameter_name(function, v), number));
  };
  for (std::size_t d = 0; d < planned.data.dims().size(); ++d) {
    add(apl::parameter_of(planned.data.dims()[d].tile), plan.tile[d]);
    add(apl::parameter_of(planned.data.dims()[d].reg), plan.reg[d]);
  }
  if (plan.stages > 0) numbers.push_back(fmt::format("{}stages={}", planned.data.parameters, plan.stages));
  return fmt::format("{}", fmt::join(numbers, " "));
}

std::vector<ExplainedPlan> explained_plans(const apl::Module& module, const apl::Function& entry, const Sizes& sizes,
                                           const apl_device& device, const Parameters& given,
                                           const apl::SpillCheck& check) {
  std::vector<ExplainedPlan> all;
  for (const PlannedContraction& planned : find_planned(module, entry.entry->name, sizes, given)) {
    ExplainedPlan explained{
        {apl::RemarkKind::analysis, "plan", "plan", planned.data.location, planned.entry, {}, {}, {}}};
    explained.parameters = planned.data.parameters;
    explained.remark.facts = facts_of(planned, {module, entry, device, check}, sizes, explained);
    all.push_back(std::move(explained));
  }
  return all;
}

std::vector<apl::Remark> explain_plans(const apl::Module& module, const Sizes& sizes, const std::string& file,
                                       const std::string& text, const apl_device& device, const Parameters& given,
                                       const apl::SpillCheck& check) {
  std::vector<apl::Remark> remarks;
  for (const apl::FunctionPtr& function : module.functions) {
    if (!function->entry) continue;
    const Sizes all = sizes.empty() ? first_dataset(file, text, *function) : sizes;
    for (ExplainedPlan& plan : explained_plans(module, *function, all, device, given, check))
      remarks.push_back(std::move(plan.remark));
  }
  return remarks;
}

}  // namespace aplc
