#include "codegen/host/variants.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ir/walk.h"

namespace apl::lower {

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
        found.plans.at(static_cast<std::size_t>(variant_number(alternative))) = planned->second;
      });
    if (!found.plans[APL_VARIANT_TILED]) return;
    if (const auto& parts = found.plans[APL_VARIANT_SPLIT]) found.splits = parts->data.splits();
    if (auto refusal = refuse_variant(*choose, stm.location, options.parameters))
      throw Unsupported{std::move(*refusal)};
    if (const auto given = options.parameters.find(choose->parameter); given != options.parameters.end())
      found.only = static_cast<int>(given->second);
    if (found.splits) unit.forget_tile(found.splits);
    all.emplace_back(choose, std::make_shared<Variants>(found));
  });
  return all;
}

bool is_of_variants(const Choose& choose) {
  return choose.by == Choose::By::model &&
         std::ranges::all_of(choose.alternatives, [](const Choose::Alternative& alternative) {
           bool nested = false;
           for_each_stm(*alternative.body, [&](const Stm& stm) { nested = nested || get_if<Choose>(stm); });
           return !nested && alternative.condition == Operand(Scalar::boolean(true));
         });
}

std::optional<Diagnostic> refuse_variant(const Choose& choose, Location location,
                                         const std::map<std::string, std::int64_t>& parameters) {
  const auto given = parameters.find(choose.parameter);
  if (given == parameters.end() || !is_of_variants(choose)) return std::nullopt;
  std::vector<std::string> there;
  for (const Choose::Alternative& alternative : choose.alternatives) {
    const int number = variant_number(alternative);
    if (number == given->second) return std::nullopt;
    there.push_back(fmt::format("{} ({})", number, alternative.name));
  }
  std::ranges::sort(there);
  return make_error(Code::command_bad_parameter, location,
                    fmt::format("{}={}: the contraction has no such variant; there are: {}", choose.parameter,
                                given->second, fmt::join(there, ", ")));
}

int variant_number(const Choose::Alternative& alternative) {
  int number = APL_VARIANTS - 1;
  while (number > 0 && apl_variant_name(number) != alternative.name) --number;
  return number;
}

void write_choice(Variants& variants, Unit& unit, Values& values, Writer& out) {
  variants.name = unit.fresh_in_file(variants.tiled().name + "_variants", {"_data", "_of", "_splits", "_kernels"});
  variants.number = unit.fresh("variant");
  std::string splits = variants.name + "_splits";
  if (variants.splits) splits = unit.name(variants.splits);
  std::vector<std::string> data, of(APL_VARIANTS, "NULL");
  for (std::size_t v = 0; v < variants.plans.size(); ++v) {
    // Parts are those of the whole.
    if (!variants.plans[v] || variants.plans[v]->data.splits()) continue;
    data.push_back(fmt::format("[{}] = {}", v, contraction_text(variants.plans[v]->data, values)));
    of[v] = fmt::format("&{}_data[{}]", variants.name, v);
  }
  out.line("");
  out.line("const struct apl_contraction {}_data[] = {{{}}};", variants.name, fmt::join(data, ", "));
  out.line("const struct apl_contraction *const {}_of[] = {{{}}};", variants.name, fmt::join(of, ", "));
  out.line("int64_t {} = {}, {} = 1;", variants.number, static_cast<int>(APL_VARIANT_TILED), splits);
  out.line("status = ctx->backend->choose_variant(ctx, {0}_of, &{0}, {1}, &{2}, &{3});", variants.name, variants.only,
           variants.number, splits);
  out.line("if (status != APL_SUCCESS) goto done;");
}

void declare_variants(const Variants& variants, Target target, Writer& declarations) {
  std::vector<std::string> kernels, lists(APL_VARIANTS, "NULL"), sets(APL_VARIANTS, "NULL");
  std::size_t most = 0;
  for (std::size_t v = 0; v < variants.plans.size(); ++v) {
    if (variants.plans[v] && variants.plans[v]->open) sets[v] = fmt::format("&{}_set", variants.plans[v]->name);
    const std::vector<std::string>& beside = variants.kernels[v];
    if (!target.on_device() || beside.empty()) continue;
    kernels.push_back(fmt::format("[{}] = {{\"{}\"}}", v, fmt::join(beside, "\", \"")));
    lists[v] = fmt::format("{}_kernels[{}]", variants.name, v);
    most = std::max(most, beside.size());
  }
  if (most > 0)  // a list ends with NULL
    declarations.line("static const char *const {}_kernels[][{}] = {{{}}};", variants.name, most + 1,
                      fmt::join(kernels, ", "));
  declarations.line("static const struct apl_variant_set {} = {{{{{}}}, {{{}}}}};", variants.name,
                    fmt::join(sets, ", "), fmt::join(lists, ", "));
}

}  // namespace apl::lower
