#include "aplc/tune_cover.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace aplc {
namespace {

using apl::Value;

// As much of every magnitude as fits into a memory; the same ones every time.
std::vector<apl_contraction> random_sizes(const apl::PlanData& data, int count) {
  constexpr double kLargest = 2e9, kMostBits = 13;
  std::mt19937_64 random(1);
  std::vector<apl_contraction> all;
  const std::set<Value> symbols = data.symbols();
  for (int tries = 0; static_cast<int>(all.size()) < count && tries < 50 * count && !symbols.empty(); ++tries) {
    std::map<Value, std::int64_t> sizes;
    for (Value v : symbols)
      sizes[v] = static_cast<std::int64_t>(std::exp2(static_cast<double>(random() % 1024) / 1024 * kMostBits));
    apl_contraction c;
    apl::fill_in(
        data, [&](Value v) { return sizes.at(v); }, c);
    double points = data.result_bytes;
    for (std::size_t d = 0; d < data.space_rank; ++d) points *= static_cast<double>(c.dims[d].size);
    bool fits = points > 0 && points < kLargest;
    for (int o = 0; o < c.operand_count && fits; ++o) {
      double elements = c.operands[o].bytes;
      for (int d = 0; d < c.dim_count; ++d)
        if (c.operands[o].strides[d] != 0) elements *= static_cast<double>(c.dims[d].size);
      fits = elements < kLargest;
    }
    if (fits) all.push_back(c);
  }
  return all;
}

}  // namespace

Parameters covering_numbers(const apl::Module& module, const std::vector<std::pair<std::string, Sizes>>& datasets,
                            const apl_device& device, const CoverOptions& options) {
  constexpr std::size_t kMostSizes = 128;  // that are looked at
  Parameters all;
  for (const apl::FunctionPtr& function : module.functions) {
    if (!function->entry) continue;
    const std::vector<PlannedContraction> contractions = find_planned(module, function->entry->name, {}, {});
    for (std::size_t k = 0; k < contractions.size(); ++k) {
      const apl::PlanData& data = contractions[k].data;
      if (data.schedule.unit == apl::Schedule::Unit::packed) continue;
      std::vector<apl_contraction> sizes;
      for (const auto& [entry, names] : datasets) {
        if (entry != function->entry->name) continue;
        const auto of_dataset = find_planned(module, entry, names, {});
        if (k < of_dataset.size() && of_dataset[k].contraction) sizes.push_back(*of_dataset[k].contraction);
      }
      if (data.symbols().empty() && contractions[k].contraction) sizes.push_back(*contractions[k].contraction);
      for (const apl_contraction& c : random_sizes(data, options.random)) sizes.push_back(c);
      sizes.resize(std::min(sizes.size(), kMostSizes));
      if (sizes.empty()) continue;
      std::vector<apl_plan> plans(static_cast<std::size_t>(std::clamp(options.most, 1, APL_MAX_PLANS)));
      double worst = 0;
      const int count = apl_plan_cover(sizes.data(), static_cast<int>(sizes.size()), nullptr, &device, options.within,
                                       static_cast<int>(plans.size()), plans.data(), &worst);
      print_out("{}: {} plans are within {:.2f} of the best for each of {} sizes on {}\n",
                data.parameters.substr(0, data.parameters.size() - std::min<std::size_t>(1, data.parameters.size())),
                count, worst, sizes.size(), device.name);
      for (int p = 0; p < count; ++p) {
        const std::string list = fmt::format("{}plan{}.", data.parameters, p + 1);
        const auto add = [&](Value v, int number) {
          if (v) all[list + apl::parameter_name(*function, v).substr(data.parameters.size())] = number;
        };
        for (std::size_t d = 0; d < data.dims().size(); ++d) {
          add(apl::parameter_of(data.dims()[d].tile), plans[static_cast<std::size_t>(p)].tile[d]);
          add(apl::parameter_of(data.dims()[d].reg), plans[static_cast<std::size_t>(p)].reg[d]);
        }
        if (plans[static_cast<std::size_t>(p)].stages > 0)
          all[list + "stages"] = plans[static_cast<std::size_t>(p)].stages;
      }
    }
  }
  return all;
}

}  // namespace aplc
