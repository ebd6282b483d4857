// The choice among plans of a kernel: by the model, then by what the compiler made of them.
#include <fmt/format.h>

#include <array>

#include "runtime/program/bridge.h"

namespace apl::program {

namespace {

// Of one kernel: all else is the same.
bool same_sizes(const apl_contraction& a, const apl_contraction& b) {
  for (int d = 0; d < a.dim_count; ++d) {
    if (a.dims[d].size != b.dims[d].size) return false;
    for (int o = 0; o < a.operand_count; ++o)
      if (a.operands[o].strides[d] != b.operands[o].strides[d]) return false;
  }
  return true;
}

}  // namespace

void Bridge::plans(Plans plans) {
  plans_ = std::move(plans);
  for (const apl_lazy_kernel* plan = plans_.lazy_kernels; plan != nullptr && plan->name != nullptr; ++plan)
    lazy_kernels_.emplace(plan->name, plan->text);
}

int Bridge::choose(apl_context* ctx, const apl_contraction* contraction, const apl_plan_set* set, std::int32_t* plan) {
  auto chosen = of(ctx).choose(*contraction, *set);
  if (!chosen) return finish(ctx, std::move(chosen).error());
  *plan = *chosen;
  return APL_SUCCESS;
}

Result<std::int32_t> Bridge::choose(const apl_contraction& contraction, const apl_plan_set& set) {
  constexpr std::size_t kKnown = 16;
  auto [at, is_new] = choices_.try_emplace(&set);
  Choices& choices = at->second;
  if (is_new) choices.spilled.assign(static_cast<std::size_t>(set.count), 0);
  for (const auto& [sizes, plan] : choices.known)
    if (same_sizes(sizes, contraction)) return plan;
  const auto best = [&](const unsigned char* left_out) {
    return apl_plan_best_of(&contraction, set.plans, set.count, &plans_.device, left_out);
  };
  // A kernel that spills is slower than the model thinks. If all of them do, the first choice stands, for other sizes,
  // too.
  std::int32_t chosen = -1;
  for (int first = -1; chosen < 0;) {
    const int plan = best(choices.spilled.data());
    if (plan < 0 && first < 0) first = best(nullptr);
    if (plan < 0 && first < 0)
      return make_error(Code::unsupported_backend, {},
                        fmt::format("none of the {} plans of kernel `{}` fits device {}: compile for it with --device",
                                    set.count, set.name, plans_.device.name));
    if (plan < 0 || set.kernels == nullptr) {
      chosen = plan < 0 ? first : plan;
      if (plan < 0 && plans_.log)
        plans_.log(fmt::format("kernel {} spills, and there is no plan that does not: it runs", set.kernels[first]));
      break;
    }
    const std::string kernel = set.kernels[plan];
    if (auto loaded = load_kernel(kernel); !loaded) return std::move(loaded).error();
    auto spilled = backend_->spilled_bytes(kernel);
    if (!spilled) return std::move(spilled).error();
    if (*spilled == 0) {
      chosen = plan;
      break;
    }
    if (first < 0) first = plan;
    choices.spilled[static_cast<std::size_t>(plan)] = 1;
    if (plans_.log)
      plans_.log(fmt::format("kernel {} spills {} bytes a thread; the next plan takes its place", kernel, *spilled));
  }
  if (choices.known.size() < kKnown) {
    choices.known.emplace_back(contraction, chosen);
  } else {
    choices.known[choices.next++ % kKnown] = {contraction, chosen};
  }
  return chosen;
}

int Bridge::choose_variant(apl_context* ctx, const apl_contraction* const* contractions, const apl_variant_set* set,
                           int only, std::int64_t* variant, std::int64_t* splits) {
  return finish(ctx, of(ctx).choose_variant(contractions, *set, only, *variant, *splits));
}

Status Bridge::choose_variant(const apl_contraction* const* contractions, const apl_variant_set& set, int only,
                              std::int64_t& variant, std::int64_t& splits) {
  constexpr std::size_t kKnown = 16;
  const apl_contraction& contraction = *contractions[APL_VARIANT_TILED];
  VariantChoices& choices = variants_[&set];
  for (const VariantChoices::Known& known : choices.known)
    if (same_sizes(known.contraction, contraction)) {
      variant = known.variant, splits = known.splits;
      return Unit{};
    }
  std::array<apl_plan_list, APL_VARIANTS> plans{};
  apl_variant_lists lists{};
  for (std::size_t v = 0; v < plans.size(); ++v) {
    const apl_plan_set* of_variant = set.plans[v];
    if (of_variant == nullptr) continue;
    const auto spilled = choices_.find(of_variant);
    plans[v] = {of_variant->plans, of_variant->count,
                spilled == choices_.end() ? nullptr : spilled->second.spilled.data()};
    lists.plans[v] = &plans[v];
    lists.contractions[v] = contractions[v];
  }
  apl_variant_choice choice;
  // Where no plan fits, the choice among them says so.
  if (apl_variant_select(&contraction, &lists, only, &plans_.device, &choice) == 0) choice.variant = APL_VARIANT_TILED;
  for (const char* const* kernel = set.kernels[choice.variant]; kernel != nullptr && *kernel != nullptr; ++kernel)
    if (auto loaded = load_kernel(*kernel); !loaded) return loaded;
  variant = choice.variant;
  splits = variant == APL_VARIANT_SPLIT ? choice.splits : 1;
  const VariantChoices::Known made{contraction, variant, splits};
  if (choices.known.size() < kKnown) {
    choices.known.push_back(made);
  } else {
    choices.known[choices.next++ % kKnown] = made;
  }
  return Unit{};
}

Status Bridge::load_kernel(const std::string& kernel) {
  const auto plan = lazy_kernels_.find(kernel);
  if (plan == lazy_kernels_.end()) return Unit{};
  const std::string_view text = plan->second;
  lazy_kernels_.erase(plan);
  return backend_->load(text);
}

}  // namespace apl::program
