#include "codegen/contraction/planned.h"

#include <algorithm>
#include <array>
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

// Which variant of `whole` the other is (enum apl_variant), by the names of its parameters: parts have those of the
// whole, other variants their own, behind the variant's name. 0: none.
int variant_of(const PlannedContraction& whole, const PlannedContraction& other) {
  const std::string &prefix = whole.data.parameters, &own = other.data.parameters;
  if (own == prefix) return other.data.splits() ? APL_VARIANT_SPLIT : 0;
  int variant = APL_VARIANTS - 1;
  while (variant > 0 && own != prefix + apl_variant_name(variant) + ".") --variant;
  return variant;
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
    for (const PlannedContraction& other : all)
      if (const int variant = whole.has_variants ? variant_of(whole, other) : 0; variant != 0)
        whole.variants.emplace(variant, PlannedContraction::Variant{other.data, other.contraction});
  }
  std::erase_if(all, [&](const PlannedContraction& one) {
    return std::any_of(all.begin(), all.end(), [&](const PlannedContraction& whole) {
      return whole.has_variants && whole.variants.contains(variant_of(whole, one));
    });
  });
}

// The variant that a program takes with these sizes.
void choose_variant(const Function& function, const apl_device& device, int most, ChosenKernel& chosen) {
  const PlannedContraction planned = chosen.shown;
  std::map<int, std::vector<apl_plan>> plans{{APL_VARIANT_TILED, chosen.candidates}};
  for (const auto& [number, variant] : planned.variants)
    plans[number] = program_plans(variant.data, function, planned.given, planned.forced, device, most);
  std::array<apl_plan_list, APL_VARIANTS> of_variants{};
  apl_variant_lists lists{};
  for (const auto& [number, all] : plans) {
    const auto v = static_cast<std::size_t>(number);
    of_variants[v] = {all.data(), static_cast<int>(all.size()), nullptr};
    if (!all.empty() || number == APL_VARIANT_TILED) lists.plans[v] = &of_variants[v];
    // Of parts it follows from their number, which is chosen with them.
    const auto found = planned.variants.find(number);
    if (number != APL_VARIANT_SPLIT && found != planned.variants.end() && found->second.contraction)
      lists.contractions[v] = &*found->second.contraction;
  }
  apl_variant_choice choice;
  if (apl_variant_select(&*planned.contraction, &lists, planned.only, &device, &choice) == 0) return;
  chosen.choice = choice;
  if (choice.variant == APL_VARIANT_TILED) return;
  chosen.seconds = choice.seconds[choice.variant];
  const auto found = planned.variants.find(choice.variant);
  if (found == planned.variants.end()) return;
  chosen.shown.data = found->second.data;
  chosen.shown.contraction = found->second.contraction;
  chosen.candidates = std::move(plans.at(choice.variant));
  if (choice.variant != APL_VARIANT_SPLIT) return;
  const apl_contraction* whole = apl_contraction_to_split(&*planned.contraction, &lists);
  if (apl_contraction split; apl_contraction_parts(whole, choice.splits, &split) != 0) chosen.shown.contraction = split;
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
