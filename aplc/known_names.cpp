#include "aplc/known_names.h"

#include <fmt/format.h>

#include "aplc/registry.h"
#include "aplc/sparse/constants.h"
#include "codegen/contraction/plan_data.h"
#include "codegen/host/variants.h"
#include "ir/attributes.h"
#include "ir/similar_name.h"
#include "ir/walk.h"
#include "machine/tiles/plan.h"
#include "passes/pipeline.h"

namespace aplc {
namespace {

// Beside the numbers of its tiles, which are in the IR, a contraction has these.
constexpr const char* kOfContractions[] = {"variant", "splits",  "mainloop",        "copy",
                                           "stages",  "swizzle", "tiles_per_block", "remainder"};

void add_names(const apl::Module& module, std::set<std::string>& names) {
  for (const apl::FunctionPtr& function : module.functions) {
    if (!function->body) continue;
    apl::for_each_stm(*function->body, [&](const apl::Stm& stm) {
      if (const auto* size = apl::get_if<apl::GetSize>(stm)) names.insert(size->name);
      if (const auto* choose = apl::get_if<apl::Choose>(stm)) names.insert(choose->parameter);
      if (const auto param = apl::find_attribute(stm.attributes, apl::attribute::param))
        names.insert(std::get<0>(*param));
    });
  }
}

// Lists of plans have a contraction's numbers once more each: mm.plan2.T_a.
void add_contractions(std::set<std::string>& names) {
  std::set<std::string> more;
  for (const std::string& name : names) {
    const std::size_t dot = name.rfind('.');
    if (dot == std::string::npos) continue;
    const std::string prefix = name.substr(0, dot + 1), last = name.substr(dot + 1);
    const bool is_tile = last.starts_with("T_") || last.starts_with("R_");
    if (!is_tile) continue;
    for (const char* own : kOfContractions) more.insert(prefix + own);
    for (int k = 1; k <= APL_MAX_PLANS; ++k)
      for (const std::string& number : {last, std::string("stages"), std::string("tiles_per_block")})
        more.insert(fmt::format("{}plan{}.{}", prefix, k, number));
  }
  names.merge(more);
}

std::string similar(const std::string& name, const std::set<std::string>& known) {
  const auto found = apl::similar_name(name, {known.begin(), known.end()});
  return found ? fmt::format("did you mean '{}'?", *found) : "";
}

const GivenName* first_unknown(const std::vector<GivenName>& given, const std::set<std::string>& known) {
  for (const GivenName& name : given)
    if (!known.contains(name.name)) return &name;
  return nullptr;
}

// Names that sizes are given by.
void add_sizes(const apl::Module& module, std::set<std::string>& names) {
  for (const apl::FunctionPtr& function : module.functions) {
    const apl::ValueTable& values = function->values;
    for (const apl::Value size : function->sizes) names.insert(values.name(size));
    for (std::uint32_t id = 0; id < values.size(); ++id)
      apl::for_each_use(values.type(apl::Value{id}), [&](apl::Value v) {
        if (values.type(v).is_scalar()) names.insert(values.name(v));
      });
  }
}

// Variants of contractions that are asked for by numbers which they do not have.
apl::Status check_variants(const apl::Module& module, const Parameters& values) {
  std::optional<apl::Diagnostic> refusal;
  for (const apl::FunctionPtr& function : module.functions) {
    if (!function->body) continue;
    apl::for_each_stm(*function->body, [&](const apl::Stm& stm) {
      const auto* choose = apl::get_if<apl::Choose>(stm);
      if (choose != nullptr && !refusal) refusal = apl::lower::refuse_variant(*choose, stm.location, values);
    });
  }
  if (refusal) return std::move(*refusal);
  return apl::Unit{};
}

}  // namespace

apl::Status check_parameters(const std::vector<GivenName>& given, const Parameters& values,
                             const std::set<std::string>& marked, const apl::Module& front,
                             const apl::Module* compiled) {
  std::set<std::string> known = marked;
  add_names(front, known);
  sparse::add_constant_parameters(front, known);
  if (compiled != nullptr) {
    add_names(*compiled, known);
    if (auto fine = check_variants(*compiled, values); !fine) return fine;
  }
  add_contractions(known);
  for (const apl::Machine machine : {apl::Machine::gpu, apl::Machine::cpu}) {
    if (first_unknown(given, known) == nullptr) return apl::Unit{};
    if (front.stage != apl::Stage::soac) break;
    const auto pipeline =
        apl::parse_pipeline(apl::standard_pipeline(apl::Stage::memory, machine, true, registry()), registry());
    apl::Module made = front;
    apl::PipelineOptions options;
    options.parameters = values;
    // What is wrong with the program is said where it is compiled.
    if (!pipeline || !apl::run_pipeline(made, *pipeline, options)) continue;
    add_names(made, known);
    add_contractions(known);
  }
  const GivenName* unknown = first_unknown(given, known);
  if (unknown == nullptr) return apl::Unit{};
  apl::Diagnostic error = apl::make_error(
      apl::Code::command_bad_parameter, unknown->location,
      unknown->file.empty() ? fmt::format("--param {}: the program has no tuning parameter of this name", unknown->name)
                            : fmt::format("the program has no tuning parameter `{}`", unknown->name));
  error.file = unknown->file;
  error.hint = similar(unknown->name, known);
  return error;
}

apl::Status check_sizes(const std::map<std::string, std::int64_t>& sizes, const apl::Module& front,
                        const apl::Module& compiled) {
  std::set<std::string> known;
  add_sizes(front, known);
  add_sizes(compiled, known);
  for (const auto& [name, size] : sizes) {
    if (known.contains(name)) continue;
    apl::Diagnostic error =
        apl::make_error(apl::Code::command_bad_argument, {},
                        fmt::format("--size {}={}: the program has no size of this name", name, size));
    error.hint = similar(name, known);
    return error;
  }
  return apl::Unit{};
}

}  // namespace aplc
