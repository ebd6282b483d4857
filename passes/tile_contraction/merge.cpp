// Neighbouring reduction dims that lie together in all arrays as one dim:
//
//   R[a] = sum over q, r of X[a, q*r' + r] * Y[q*r' + r]     =>     sum over p < q'*r' of X[a, p] * Y[p]
//
// One loop instead of two, whose tiles cross the border between them: no tile of a short inner dim is mostly empty. The
// order of the steps stays as it was. Dims of the space stay the program's own: where M and N flatten them,
// neighbours cost nothing (codegen/contraction/tables.cpp).
#include <algorithm>
#include <set>

#include "passes/analysis/contraction_facts.h"
#include "passes/tile_contraction/tile.h"

namespace apl::tile {

Contraction merge_reductions(const Contraction& contraction, const std::function<bool(const std::string&)>& is_given,
                             ValueTable& values) {
  Contraction merged = contraction;
  merged.dims.clear();
  std::vector<int> now(contraction.dims.size());  // of a dim: what it is a part of
  std::vector<std::size_t> innermost;             // of a new dim: its innermost part
  std::set<std::string> names;
  for (const ContractionDim& dim : contraction.dims) names.insert(dim.name);
  for (const std::vector<std::size_t>& group : merged_dims(contraction)) {
    const bool together = group.front() >= contraction.space_rank && std::ranges::none_of(group, [&](std::size_t d) {
                            return is_given(contraction.dims[d].name);
                          });
    for (std::size_t d : group) {
      const ContractionDim& dim = contraction.dims[d];
      if (d == group.front() || !together) {
        merged.dims.push_back(dim);
        innermost.push_back(d);
      } else {
        ContractionDim& all = merged.dims.back();
        all.size *= dim.size;
        all.name += "_" + dim.name;
        innermost.back() = d;
      }
      now[d] = static_cast<int>(merged.dims.size()) - 1;
    }
    if (!together || group.size() == 1) continue;
    ContractionDim& all = merged.dims.back();
    const std::string name = all.name;
    for (int n = 2; !names.insert(all.name).second; ++n) all.name = name + "_" + std::to_string(n);
    all.index = values.add(Type::scalar(ScalarType::i64), all.name);
  }
  for (auto* operands : {&merged.operands, &merged.uniform})
    for (ContractionOperand& operand : *operands) {
      for_each_affine(operand, [&](const Poly&, std::vector<Poly>& strides) {
        std::vector<Poly> of_all;
        for (std::size_t d : innermost) of_all.push_back(strides[d]);
        strides = std::move(of_all);
      });
      const std::vector<int> axes = std::move(operand.axes);
      operand.axes.clear();
      for (int axis : axes) {
        const int to = now[static_cast<std::size_t>(axis)];
        if (std::ranges::find(operand.axes, to) == operand.axes.end()) operand.axes.push_back(to);
      }
    }
  return merged;
}

std::size_t innermost_reduction(const Contraction& contraction) {
  // How many operands are contiguous along it; none where it is too short for a tile, as the 3 of a window.
  constexpr std::int64_t kShort = 8;
  const auto is_short = [&](std::size_t d) { return contraction.dims[d].size.constant().value_or(kShort) < kShort; };
  const auto contiguous = [&](std::size_t d) -> std::ptrdiff_t {
    if (is_short(d)) return -1;
    return std::ranges::count_if(contraction.operands,
                                 [&](const ContractionOperand& operand) { return operand.strides[d].is_one(); });
  };
  std::size_t best = contraction.dims.size() - 1;
  for (std::size_t d = best; d-- > contraction.space_rank;)
    if (contiguous(d) > contiguous(best)) best = d;
  return best;
}

Contraction order_reductions(const Contraction& contraction) {
  const std::size_t count = contraction.dims.size(), first = contraction.space_rank;
  const auto op = as_binary_op(contraction.reduce.op);
  if (count < first + 2 || !(contraction.reduce.commutative || (op && is_commutative(*op)))) return contraction;
  const std::size_t best = innermost_reduction(contraction);
  if (best == count - 1) return contraction;
  std::vector<std::size_t> order;  // new dim k is the old dim order[k]
  for (std::size_t d = 0; d < count; ++d)
    if (d != best) order.push_back(d);
  order.push_back(best);
  Contraction ordered = contraction;
  for (std::size_t k = 0; k < count; ++k) ordered.dims[k] = contraction.dims[order[k]];
  for (auto* operands : {&ordered.operands, &ordered.uniform})
    for (ContractionOperand& operand : *operands) {
      for_each_affine(operand, [&](const Poly&, std::vector<Poly>& strides) {
        const std::vector<Poly> before = strides;
        for (std::size_t k = 0; k < count; ++k) strides[k] = before[order[k]];
      });
      for (int& axis : operand.axes)
        axis = static_cast<int>(std::ranges::find(order, static_cast<std::size_t>(axis)) - order.begin());
    }
  return ordered;
}

}  // namespace apl::tile
