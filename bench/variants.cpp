// The variants of a product of matrices (tile-contraction's `variants`), measured beside what the model says.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/ablation.h"
#include "bench/cases.h"
#include "machine/target/records.h"
#include "machine/tiles/plan.h"

namespace apl::bench {
namespace {

struct Sizes {
  std::int64_t m, n, q;
};

Case product_case(const Sizes& s) {
  return {fmt::format("{} x {} x {}", s.m, s.n, s.q), "mm1.fut", "mm1", "aq", "qb", "ab",
          {{'a', s.m}, {'b', s.n}, {'q', s.q}}};
}

apl_contraction contraction_of_product(const Sizes& s) {
  apl_contraction c{};
  c.dim_count = 3, c.space_rank = 2, c.operand_count = 2;
  c.result_bytes = c.widest_result = c.accumulator_bytes = 4;
  c.operations = 1;
  c.dims[0] = {s.m, APL_DIM_M, 0}, c.dims[1] = {s.n, APL_DIM_N, 0}, c.dims[2] = {s.q, APL_DIM_CONTRACTED, 0};
  c.operands[0] = {.bytes = 4, .strides = {s.q, 0, 1}}, c.operands[1] = {.bytes = 4, .strides = {0, 1, s.n}};
  return c;
}

}  // namespace

bool run_variants(const AblationOptions& options, nlohmann::ordered_json& all) {
  constexpr Sizes kSizes[] = {{64, 64, 1000000},  {32, 32, 1000000}, {16, 16, 100000},   {128, 128, 100000},
                              {256, 256, 100000}, {512, 512, 20000}, {300, 300, 4000},   {64, 64, 2000},
                              {1, 4096, 4096},    {4096, 1, 4096},   {1024, 1024, 1024}, {100, 100, 100},
                              {16, 16, 16},       {4096, 4096, 4},   {4096, 4096, 1}};
  const auto name_of = [](int variant) { return variant == 0 ? "chosen" : apl_variant_name(variant); };
  const auto device = find_device("h200");
  if (!device) return false;
  ProgramOptions load;
  load.backend = options.backend;
  bool ok = true;
  std::vector<Program> programs;
  for (int variant = 0; variant < APL_VARIANTS; ++variant) {
    auto program =
        load_file(options.examples + "/mm1.fut", variant == 0 ? Parameters{} : Parameters{{"mm1.variant", variant}},
                  load, std::max(2, usual_plans(options.backend)));
    if (!program) {
      fmt::print("variant {}: {}\n", name_of(variant), program.error().message);
      return false;
    }
    programs.push_back(std::move(*program));
  }
  const auto width_of = [](int variant) { return variant == 0 ? 10 : variant == APL_VARIANT_SPLIT ? 26 : 20; };
  fmt::print("\nWays of computing C = A B, us measured (as the model says, on an H200)\n{:<20}", "m x n x q");
  for (int variant = 0; variant < APL_VARIANTS; ++variant) fmt::print(" {:>{}}", name_of(variant), width_of(variant));
  fmt::print("\n");
  for (Sizes s : kSizes) {
    if (options.small)
      s = {std::min<std::int64_t>(s.m, 64), std::min<std::int64_t>(s.n, 64), std::min<std::int64_t>(s.q, 512)};
    const Case c = product_case(s);
    const apl_contraction contraction = contraction_of_product(s);
    const apl_plan_list any{};
    apl_variant_choice choice;
    apl_variant_lists lists{};
    lists.plans[APL_VARIANT_TILED] = lists.plans[APL_VARIANT_SPLIT] = &any;
    apl_variant_select(&contraction, &lists, 0, &*device, &choice);
    const std::vector<HostValue> inputs = random_inputs(c);
    fmt::print("{:<20}", c.name);
    for (int variant = 0; variant < APL_VARIANTS; ++variant) {
      Program& program = programs[static_cast<std::size_t>(variant)];
      const int width = width_of(variant);
      // What no reduction is long enough for falls back on tiling.
      if (variant == APL_VARIANT_SPLIT && choice.splits < 2) {
        fmt::print(" {:>{}}", "-", width);
        continue;
      }
      // What is hopeless is measured once.
      const bool hopeless = variant != 0 && choice.seconds[variant] > 10 * choice.seconds[choice.variant];
      const int runs = hopeless ? 1 : options.runs;
      auto result = program.call(c.entry, inputs);
      auto times = result ? program.benchmark(c.entry, inputs, runs) : Result<std::vector<double>>(result.error());
      const Check checked = times ? check(c, inputs, (*result)[0]) : Check{false, 0, 0, "error"};
      ok = ok && checked.ok;
      if (!times || !checked.ok) {
        fmt::print(" {:>{}}", checked.message, width);
        all["variants"][c.name][name_of(variant)] = times ? checked.message : times.error().message;
        continue;
      }
      const double middle = median(*std::move(times));
      all["variants"][c.name][name_of(variant)] = middle;
      std::string said;
      if (variant != 0 && choice.seconds[variant] >= 0) said = fmt::format(" ({:.4g})", choice.seconds[variant] * 1e6);
      if (variant == APL_VARIANT_SPLIT) said += fmt::format(" by {}", choice.splits);
      fmt::print(" {:>{}}", fmt::format("{:.4g}{}", middle, said), width);
      std::fflush(stdout);
    }
    fmt::print("\n");
    all["variants"][c.name]["model chooses"] = name_of(choice.variant);
  }
  return ok;
}

}  // namespace apl::bench
