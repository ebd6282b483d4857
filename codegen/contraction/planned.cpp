#include "codegen/contraction/planned.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "ir/walk.h"

namespace apl {
namespace {

using Numbers = std::map<std::string, std::int64_t>;

void visit_kernels(const Body& body, const std::function<void(const Stm&)>& visit) {
  for (const Stm& stm : body.stms) {
    if (get_if<SegOp>(stm)) visit(stm);
    if (get_if<Loop>(stm) || is_branch(stm.op))
      for_each_body(stm.op, [&](const BodyPtr& inner) { visit_kernels(*inner, visit); });
  }
}

// Sizes by value: those of the names, and what the host computes of them.
std::map<Value, std::int64_t> known_values(const Function& function, const Numbers& sizes) {
  std::map<Value, std::int64_t> known;
  const auto note = [&](Value v) {
    if (const auto found = sizes.find(function.values.name(v)); found != sizes.end()) known[v] = found->second;
  };
  for (Value v : function.sizes) note(v);
  for (Value v : function.params)
    if (function.type(v).is_scalar()) note(v);
  for (const Stm& stm : function.body->stms) {
    const SizeExpr* size = get_if<SizeExpr>(stm);
    if (!size) continue;
    bool all = true;
    size->value.for_each_symbol([&](Value v) { all = all && known.contains(v); });
    if (!all) continue;
    if (const auto number = size->value.evaluate([&](Value v) { return known.at(v); }))
      known[stm.pattern.front()] = *number;
  }
  return known;
}

// Kernels of one contraction, of which one runs, as one.
void join_variants(const Function& function, const Numbers& given, std::vector<PlannedContraction>& all) {
  for (PlannedContraction& whole : all) {
    if (whole.data.splits() || whole.entry != function.entry->name) continue;
    const std::string name = whole.data.parameters + "variant";
    for_each_stm(*function.body, [&](const Stm& stm) {
      const Choose* choose = get_if<Choose>(stm);
      whole.has_variants = whole.has_variants || (choose && choose->parameter == name);
    });
    if (const auto only = given.find(name); only != given.end()) whole.only = static_cast<int>(only->second);
    for (PlannedContraction& part : all)
      if (whole.has_variants && part.data.splits() && part.data.parameters == whole.data.parameters)
        whole.parts = part.data;
    for (PlannedContraction& other : all)
      if (whole.has_variants && other.data.parameters == whole.data.parameters + "transposed.")
        whole.transposed = other.data, whole.of_transposed = other.contraction;
  }
  std::erase_if(all, [&](const PlannedContraction& one) {
    return std::any_of(all.begin(), all.end(), [&](const PlannedContraction& whole) {
      return (whole.parts && one.data.splits() && one.data.parameters == whole.data.parameters) ||
             (whole.transposed && one.data.parameters == whole.transposed->parameters);
    });
  });
}

// The variant that a program takes with these sizes.
void choose_variant(const Function& function, const apl_device& device, int most, ChosenKernel& chosen) {
  const PlannedContraction planned = chosen.shown;
  const auto plans_of = [&](const PlanData& data) {
    return program_plans(data, function, planned.given, planned.forced, device, most);
  };
  std::vector<apl_plan> parts, others;
  if (planned.parts) parts = plans_of(*planned.parts);
  if (planned.of_transposed) others = plans_of(*planned.transposed);
  const auto list = [](const std::vector<apl_plan>& plans) {
    return apl_plan_list{plans.data(), static_cast<int>(plans.size()), nullptr};
  };
  const apl_plan_list of_whole = list(chosen.candidates), of_parts = list(parts), of_others = list(others);
  const apl_variant_lists lists{&of_whole, parts.empty() ? nullptr : &of_parts,
                                others.empty() ? nullptr : &*planned.of_transposed, &of_others};
  apl_variant_choice choice;
  if (apl_variant_select(&*planned.contraction, &lists, planned.only, &device, &choice) == 0) return;
  chosen.choice = choice;
  if (choice.variant == APL_VARIANT_UNTILED) chosen.seconds = choice.seconds[APL_VARIANT_UNTILED];
  apl_contraction split;
  if (choice.variant == APL_VARIANT_TRANSPOSED) {
    chosen.shown.contraction = planned.of_transposed;
    chosen.shown.data = *planned.transposed;
    chosen.candidates = std::move(others);
  } else if (choice.variant == APL_VARIANT_SPLIT &&
             apl_contraction_parts(planned.contraction->parts_transposed != 0 && planned.of_transposed
                                       ? &*planned.of_transposed
                                       : &*planned.contraction,
                                   choice.splits, &split) != 0) {
    chosen.seconds = choice.seconds[APL_VARIANT_SPLIT];
    chosen.shown.contraction = split;
    chosen.shown.data = *planned.parts;
    chosen.candidates = std::move(parts);
  }
}

}  // namespace

std::vector<PlannedContraction> find_planned(const Module& module, const std::string& entry, const Numbers& sizes,
                                             const Numbers& given) {
  std::vector<PlannedContraction> all;
  for (const FunctionPtr& function : module.functions) {
    if (!function->entry || (!entry.empty() && function->entry->name != entry)) continue;
    const auto known = known_values(*function, sizes);
    visit_kernels(*function->body, [&](const Stm& stm) {
      auto data = plan_data(stm, *function);
      if (!data) return;
      PlannedContraction planned{.entry = function->entry->name, .data = std::move(*data), .given = given};
      forced_numbers(planned.data, *function, given, planned.forced);
      const auto symbols = planned.data.symbols();
      if (std::all_of(symbols.begin(), symbols.end(), [&](Value v) { return known.contains(v); }))
        fill_in(
            planned.data, [&](Value v) { return known.at(v); }, planned.contraction.emplace());
      all.push_back(std::move(planned));
    });
    join_variants(*function, given, all);
  }
  return all;
}

ChosenKernel choose_kernel(const PlannedContraction& planned, const Function& function, const apl_device& device,
                           int most) {
  ChosenKernel chosen{planned, {}, {}, {}, {}};
  if (planned.data.schedule.unit == Schedule::Unit::packed) {
    chosen.seconds = apl_packed_estimate(&*planned.contraction, &device);
    return chosen;
  }
  chosen.candidates = program_plans(planned.data, function, planned.given, planned.forced, device, most);
  if (planned.has_variants) choose_variant(function, device, most, chosen);
  if (chosen.choice && chosen.choice->variant == APL_VARIANT_UNTILED) return chosen;
  const apl_contraction& c = *chosen.shown.contraction;
  const std::vector<apl_plan>& plans = chosen.candidates;
  const int best = apl_plan_best_of(&c, plans.data(), static_cast<int>(plans.size()), &device, nullptr);
  if (best >= 0) chosen.plan = plans[static_cast<std::size_t>(best)];
  if (apl_plan_choice choice; !chosen.plan && apl_plan_select(&c, &planned.forced, &device, &choice) != 0)
    chosen.plan = choice.best;
  if (!chosen.plan) return chosen;
  apl_plan_cost cost;
  apl_plan_estimate(&c, &*chosen.plan, &device, &cost);
  if (!chosen.seconds) chosen.seconds = cost.seconds;
  return chosen;
}

}  // namespace apl
