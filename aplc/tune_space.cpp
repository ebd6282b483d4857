#include "aplc/tune_space.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace aplc {
namespace {

constexpr double kHopeless = 3, kMostOfShared = 0.75;
constexpr int kTiles[] = {1, 2, 4, 8, 16, 32, 64, 128}, kRegs[] = {1, 2, 4, 5, 8, 10, 16};
constexpr int kDepths[] = {1, 2, 4, 8, 16, 32, 64, 128}, kStages[] = {2, 3, 4};

class Space {
 public:
  Space(const apl::Function& function, const std::vector<PlannedContraction>& datasets, const apl_device& device)
      : function_(function), datasets_(datasets), device_(device), c_(*datasets[0].contraction) {}

  std::vector<TuneCandidate> run() {
    find_leads();
    plan_ = {};
    for (int d = 0; d < c_.dim_count; ++d) plan_.tile[d] = plan_.reg[d] = 1;
    plan_.stages = 3;
    enumerate_dim(0);
    std::stable_sort(all_.begin(), all_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<TuneCandidate> candidates;
    for (const auto& [predicted, plan] : all_) {
      if (predicted > kHopeless * all_.front().first) break;
      candidates.push_back({parameters(plan), predicted});
    }
    return candidates;
  }

 private:
  // The innermost dims of the two innermost sets of free dims: of M and N, where these are.
  void find_leads() {
    const auto alike = [&](int d, int e) {
      for (int o = 0; o < c_.operand_count; ++o)
        if ((c_.operands[o].strides[d] != 0) != (c_.operands[o].strides[e] != 0)) return false;
      return true;
    };
    has_mn_dims_ = apl_plan_has_mn_dims(&c_) != 0;
    std::vector<std::vector<int>> sets;
    for (int d = c_.space_rank; d-- > 0;) {
      if (c_.dims[d].kind < APL_DIM_FREE || c_.dims[d].kind > APL_DIM_N || c_.dims[d].fixed) continue;
      auto found = std::find_if(sets.begin(), sets.end(), [&](const auto& set) { return alike(set[0], d); });
      if (found == sets.end()) {
        sets.push_back({d});
      } else {
        found->push_back(d);
      }
    }
    if (sets.size() > 2) sets.resize(2);
    for (const std::vector<int>& set : sets) {
      leads_.push_back(set[0]);
      if (!has_mn_dims_ && set.size() > 1) seconds_.push_back(set[1]);
    }
  }

  void enumerate_dim(std::size_t k) {
    if (k == leads_.size()) {
      second(0);
      return;
    }
    const bool gpu = device_.warp > 0;
    for (int tile : kTiles)
      for (int reg : kRegs) {
        if (gpu && tile > 64) continue;
        plan_.tile[leads_[k]] = tile;
        plan_.reg[leads_[k]] = reg;
        enumerate_dim(k + 1);
      }
  }

  // Short dims: registers of the next one, too.
  void second(std::size_t k) {
    if (k < seconds_.size()) {
      for (int reg : {1, 2, 4}) {
        plan_.reg[seconds_[k]] = reg;
        second(k + 1);
      }
      return;
    }
    // Blocks that no depth makes better are dropped first.
    std::int64_t threads = 1, registers = 1;
    bool all_have_registers = true;
    for (int lead : leads_) {
      threads *= plan_.tile[lead], registers *= plan_.reg[lead];
      all_have_registers = all_have_registers && plan_.reg[lead] > 1;
    }
    if (device_.warp > 0) {
      if ((threads & (threads - 1)) != 0 || threads < 32 || threads > 1024 || !all_have_registers) return;
    } else if (threads * registers > 64 * 1024) {
      return;
    }
    depth(c_.dim_count - 1);
  }

  void depth(int d) {
    if (d < c_.space_rank) {
      for (int stages : kStages) {
        plan_.stages = stages;
        consider();
        if (device_.warp == 0 || !has_mn_dims_) break;
      }
      return;
    }
    std::int64_t longest = 1;
    for (const PlannedContraction& one : datasets_) longest = std::max(longest, one.contraction->dims[d].size);
    const bool innermost = d + 1 == c_.dim_count;
    for (int depth_here : kDepths) {
      if (c_.dims[d].fixed && depth_here > 1) break;
      if (depth_here > 1 && depth_here >= 2 * longest) break;
      if (!innermost && depth_here > 16) break;
      if (innermost && !c_.dims[d].fixed && depth_here < std::min<std::int64_t>(8, longest)) continue;
      plan_.tile[d] = depth_here;
      depth(d - 1);
    }
  }

  void consider() {
    double product = 0;
    for (const PlannedContraction& one : datasets_) {
      std::int64_t needed = 0, limit = 0;
      if (apl_plan_check(&*one.contraction, &plan_, &device_, &needed, &limit) != APL_PLAN_FINE) return;
      apl_plan_cost cost;
      apl_plan_estimate(&*one.contraction, &plan_, &device_, &cost);
      product += std::log(cost.seconds);
    }
    if (!balanced()) return;
    const double predicted = std::exp(product / static_cast<double>(datasets_.size()));
    // Few of very many are wanted, and the best so far bounds them.
    if (!all_.empty() && predicted > kHopeless * least_) return;
    least_ = all_.empty() ? predicted : std::min(least_, predicted);
    all_.emplace_back(predicted, plan_);
  }

  bool balanced() const {
    if (device_.warp == 0) return true;
    double total = 0, most = 0;
    for (int o = 0; o < c_.operand_count; ++o) {
      double elements = c_.operands[o].bytes;
      for (int d = 0; d < c_.dim_count; ++d)
        if (c_.operands[o].strides[d] != 0) elements *= plan_.tile[d] * (d < c_.space_rank ? plan_.reg[d] : 1);
      total += elements;
      most = std::max(most, elements);
    }
    return c_.operand_count < 2 || most <= kMostOfShared * total;
  }

  Parameters parameters(const apl_plan& plan) const {
    Parameters all;
    const apl::PlanData& data = datasets_[0].data;
    for (std::size_t d = 0; d < data.dims().size(); ++d) {
      if (auto tile = apl::parameter_of(data.dims()[d].tile)) all[apl::parameter_name(function_, tile)] = plan.tile[d];
      if (auto reg = apl::parameter_of(data.dims()[d].reg)) all[apl::parameter_name(function_, reg)] = plan.reg[d];
    }
    if (device_.warp > 0 && has_mn_dims_) all[data.parameters + "stages"] = plan.stages;
    return all;
  }

  const apl::Function& function_;
  const std::vector<PlannedContraction>& datasets_;
  const apl_device& device_;
  const apl_contraction& c_;
  bool has_mn_dims_ = false;
  std::vector<int> leads_, seconds_;
  apl_plan plan_{};
  double least_ = 0;
  std::vector<std::pair<double, apl_plan>> all_;
};

// Numbers of parts for reductions that the model would split, or nearly: tile numbers are the model's.
std::vector<TuneCandidate> splits_worth_trying(const std::vector<PlannedContraction>& datasets,
                                               const apl_device& device) {
  constexpr double kNearly = 1.5;
  std::map<std::int64_t, double> parts;  // and the least time predicted for a dataset
  for (const PlannedContraction& one : datasets) {
    const apl_plan_list any{};
    apl_variant_choice choice;
    apl_variant_lists lists{};
    lists.plans[APL_VARIANT_TILED] = lists.plans[APL_VARIANT_SPLIT] = &any;
    apl_variant_select(&*one.contraction, &lists, 0, &device, &choice);
    const double split = choice.seconds[APL_VARIANT_SPLIT], tiled = choice.seconds[APL_VARIANT_TILED];
    if (split < 0 || split > kNearly * tiled) continue;
    for (const std::int64_t count : {choice.splits / 2, choice.splits, choice.splits * 2})
      if (count > 1) parts.try_emplace(count, count == choice.splits ? split : 1.1 * split);
  }
  std::vector<TuneCandidate> all;
  for (const auto& [count, seconds] : parts)
    all.push_back({{{datasets[0].data.parameters + "splits", count}}, seconds});
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.predicted < b.predicted; });
  return all;
}

}  // namespace

std::vector<TuneCandidate> tune_space(const apl::Function& function, const std::vector<PlannedContraction>& datasets,
                                      const apl_device& device) {
  if (datasets.empty()) return {};
  for (const PlannedContraction& one : datasets)
    if (!one.contraction) return {};
  std::vector<TuneCandidate> all = Space(function, datasets, device).run();
  if (device.warp == 0) return all;
  const std::vector<TuneCandidate> splits = splits_worth_trying(datasets, device);
  all.insert(all.begin(), splits.begin(), splits.end());
  return all;
}

namespace {

// The model is not trusted further than it was right elsewhere, however well the first candidates agree with it.
constexpr double kLeastSpread = 0.05;

double normal_below(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

}  // namespace

void ExpectedGain::add(double predicted, double measured) {
  if (predicted > 0 && measured > 0) logs_.push_back(std::log(measured / predicted));
}

double ExpectedGain::improvement(double predicted, double best) const {
  if (logs_.empty() || predicted <= 0 || best <= 0) return 1;
  const auto count = static_cast<double>(logs_.size());
  double mean = 0, squares = 0;
  for (const double x : logs_) mean += x / count;
  for (const double x : logs_) squares += (x - mean) * (x - mean);
  const double spread = std::max(kLeastSpread, logs_.size() > 1 ? std::sqrt(squares / (count - 1)) : 0);
  // Of X = exp(N(at, spread)), in units of `best`: E max(0, 1 - X).
  const double at = std::log(predicted / best) + mean, z = -at / spread;
  return normal_below(z) - std::exp(at + spread * spread / 2) * normal_below(z - spread);
}

}  // namespace aplc
