#include "codegen/host/variants.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ir/walk.h"

namespace apl::lower {
namespace {

constexpr std::string_view kVariantName = "variant", kSplitsName = "splits";

}  // namespace

std::map<Value, std::shared_ptr<Variants>> find_variants(
    Unit& unit, const CodegenOptions& options, const std::map<Value, std::shared_ptr<PlanKernels>>& plan_kernels) {
  std::map<std::string, Variants> by_prefix;
  for_each_stm(*unit.function.body, [&](const Stm& stm) {
    const GetSize* size = get_if<GetSize>(stm);
    if (size == nullptr) return;
    const std::string prefix = size->name.substr(0, size->name.rfind('.') + 1), name = size->name.substr(prefix.size());
    if (name == kVariantName) by_prefix[prefix].variant = stm.pattern.front();
    if (name == kSplitsName) by_prefix[prefix].splits = stm.pattern.front();
  });
  std::map<Value, std::shared_ptr<Variants>> all;
  for (auto& [prefix, found] : by_prefix) {
    if (!found.variant) continue;
    for (const auto& [kernel, of_kernel] : plan_kernels) {
      if (of_kernel->data.parameters != prefix) continue;
      (of_kernel->data.symbols().contains(found.splits) ? found.parts : found.tiled) = of_kernel;
    }
    if (!found.tiled) continue;
    const auto given = options.parameters.find(prefix + std::string(kVariantName));
    if (given != options.parameters.end()) found.only = static_cast<int>(std::clamp<std::int64_t>(given->second, 1, 3));
    unit.forget_tile(found.variant);
    if (found.splits) unit.forget_tile(found.splits);
    all.emplace(found.variant, std::make_shared<Variants>(found));
  }
  return all;
}

void write_choice(Variants& variants, Unit& unit, Values& values, Writer& out) {
  variants.name = unit.fresh_in_file(variants.tiled->name + "_variants", {"_data", "_splits", "_0", "_1", "_2"});
  const std::string& variant = unit.name(variants.variant);
  std::string splits = variants.name + "_splits";
  if (variants.splits) splits = unit.name(variants.splits);
  out.line("");
  out.line("const struct apl_contraction {}_data = {};", variants.name, contraction_text(variants.tiled->data, values));
  out.line("int64_t {} = {}, {} = 1;", variant, static_cast<int>(APL_VARIANT_TILED), splits);
  out.line("status = ctx->backend->choose_variant(ctx, &{0}_data, &{0}, {1}, &{2}, &{3});", variants.name,
           variants.only, variant, splits);
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
  declarations.line("static const struct apl_variant_set {} = {{{}, {}, {{{}}}}};", variants.name, set(variants.tiled),
                    set(variants.parts), fmt::join(lists, ", "));
}

}  // namespace apl::lower
