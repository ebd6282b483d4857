#include "codegen/host/variants.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ir/walk.h"

namespace apl::lower {
namespace {

constexpr std::string_view kNames[] = {"", "tiled", "split", "untiled",
                                       "transposed"};  // of alternatives, by enum apl_variant
static_assert(std::size(kNames) == APL_VARIANTS);

}  // namespace

std::vector<std::pair<const Choose*, std::shared_ptr<Variants>>> find_variants(
    Unit& unit, const CodegenOptions& options, const std::map<Value, std::shared_ptr<PlanKernels>>& plan_kernels) {
  std::vector<std::pair<const Choose*, std::shared_ptr<Variants>>> all;
  for_each_stm(*unit.function.body, [&](const Stm& stm) {
    const Choose* choose = get_if<Choose>(stm);
    if (choose == nullptr || !is_of_variants(*choose)) return;
    for (const Choose::Alternative& alternative : choose->alternatives)
      if (variant_number(alternative) == 0)
        unsupported(
            stm.location,
            fmt::format("the variant `{}` of a contraction, which the model of tiles does not know", alternative.name));
    Variants found;
    for (const Choose::Alternative& alternative : choose->alternatives)
      for_each_stm(*alternative.body, [&](const Stm& kernel) {
        const auto planned = kernel.pattern.empty() ? plan_kernels.end() : plan_kernels.find(kernel.pattern.front());
        if (planned == plan_kernels.end()) return;
        std::shared_ptr<PlanKernels>* its = found.planned(variant_number(alternative));
        if (its == nullptr)
          unsupported(stm.location, fmt::format("plans of the variant `{}` of a contraction, which the host does not "
                                                "choose among",
                                                alternative.name));
        *its = planned->second;
      });
    if (!found.tiled) return;
    if (found.parts) found.splits = found.parts->data.splits();
    const auto given = options.parameters.find(choose->parameter);
    if (given != options.parameters.end())
      found.only = static_cast<int>(std::clamp<std::int64_t>(given->second, 1, APL_VARIANTS - 1));
    if (found.splits) unit.forget_tile(found.splits);
    all.emplace_back(choose, std::make_shared<Variants>(found));
  });
  return all;
}

std::shared_ptr<PlanKernels>* Variants::planned(int variant) {
  switch (variant) {
    case APL_VARIANT_TILED: return &tiled;
    case APL_VARIANT_SPLIT: return &parts;
    case APL_VARIANT_TRANSPOSED: return &transposed;
    default: return nullptr;
  }
}

bool is_of_variants(const Choose& choose) {
  return choose.by == Choose::By::model &&
         std::ranges::all_of(choose.alternatives, [](const Choose::Alternative& alternative) {
           bool nested = false;
           for_each_stm(*alternative.body, [&](const Stm& stm) { nested = nested || get_if<Choose>(stm); });
           return !nested && alternative.condition == Operand(Scalar::boolean(true));
         });
}

int variant_number(const Choose::Alternative& alternative) {
  const auto* found = std::find(std::begin(kNames) + 1, std::end(kNames), alternative.name);
  return found == std::end(kNames) ? 0 : static_cast<int>(found - std::begin(kNames));
}

void write_choice(Variants& variants, Unit& unit, Values& values, Writer& out) {
  static_assert(APL_VARIANTS == 5);  // a list of kernels has the number of its variant
  variants.name = unit.fresh_in_file(variants.tiled->name + "_variants",
                                     {"_data", "_transposed", "_splits", "_0", "_1", "_2", "_3", "_4"});
  variants.number = unit.fresh("variant");
  std::string splits = variants.name + "_splits";
  if (variants.splits) splits = unit.name(variants.splits);
  out.line("");
  out.line("const struct apl_contraction {}_data = {};", variants.name, contraction_text(variants.tiled->data, values));
  std::string transposed = "NULL";
  if (variants.transposed) {
    transposed = fmt::format("&{}_transposed", variants.name);
    out.line("const struct apl_contraction {}_transposed = {};", variants.name,
             contraction_text(variants.transposed->data, values));
  }
  out.line("int64_t {} = {}, {} = 1;", variants.number, static_cast<int>(APL_VARIANT_TILED), splits);
  out.line("status = ctx->backend->choose_variant(ctx, &{0}_data, {4}, &{0}, {1}, &{2}, &{3});", variants.name,
           variants.only, variants.number, splits, transposed);
  out.line("if (status != APL_SUCCESS) goto done;");
}

void declare_variants(const Variants& variants, Target target, Writer& declarations) {
  std::vector<std::string> lists(APL_VARIANTS, "NULL");
  for (int k = 0; k < APL_VARIANTS && target.on_device(); ++k) {
    if (variants.kernels[k].empty()) continue;
    lists[static_cast<std::size_t>(k)] = fmt::format("{}_{}", variants.name, k);
    declarations.line("static const char *const {}_{}[] = {{\"{}\", NULL}};", variants.name, k,
                      fmt::join(variants.kernels[k], "\", \""));
  }
  const auto set = [](const std::shared_ptr<PlanKernels>& plan_kernels) {
    return plan_kernels && plan_kernels->open ? fmt::format("&{}_set", plan_kernels->name) : std::string("NULL");
  };
  declarations.line("static const struct apl_variant_set {} = {{{}, {}, {}, {{{}}}}};", variants.name,
                    set(variants.tiled), set(variants.parts), set(variants.transposed), fmt::join(lists, ", "));
}

}  // namespace apl::lower
