// Smaller contractions that fail as the first one did.
#include <algorithm>
#include <chrono>

#include "tests/contractions/check.h"

namespace apl::contraction_tests {

namespace {

void separate(Axis& axis) {
  axis.joined = false;
  if (axis.view == View::window) axis.view = View::plain;
}

// Without a dim of the space or of the reduction.
std::optional<Spec> without_dim(const Spec& spec, std::size_t dim) {
  const bool in_space = dim < spec.space_rank;
  if ((in_space ? spec.space_rank : spec.dims.size() - spec.space_rank) == 1) return std::nullopt;
  Spec smaller = spec;
  smaller.dims.erase(smaller.dims.begin() + static_cast<std::ptrdiff_t>(dim));
  smaller.space_rank -= in_space ? 1 : 0;
  const auto remove = [&](std::vector<Axis>& axes) {
    for (Axis& axis : axes) separate(axis);
    std::erase_if(axes, [&](const Axis& axis) { return axis.dim == dim; });
    for (Axis& axis : axes) axis.dim -= axis.dim > dim ? 1 : 0;
    return !axes.empty();
  };
  for (std::vector<Axis>& axes : smaller.operands)
    if (!remove(axes)) return std::nullopt;
  remove(smaller.residual);
  for (FactorSpec& factor : smaller.factors)
    if (!factor.axes.empty() && !remove(factor.axes)) factor.factor = Factor::function;
  // A size that nothing has is no argument any more.
  for (testing::Sizes& sizes : smaller.sizes)
    std::erase_if(sizes, [&](const auto& size) {
      return std::none_of(smaller.dims.begin(), smaller.dims.end(), [&](const Dim& d) { return d.size == size.first; });
    });
  return smaller;
}

}  // namespace

std::vector<Spec> simpler(const Spec& spec) {
  std::vector<Spec> all;
  const auto add = [&](auto&& change) {
    Spec smaller = spec;
    change(smaller);
    all.push_back(std::move(smaller));
  };
  if (spec.sizes.size() > 1)
    for (std::size_t k = 0; k < spec.sizes.size(); ++k) add([&](Spec& s) { s.sizes = {spec.sizes[k]}; });
  for (std::size_t d = 0; d < spec.dims.size(); ++d)
    if (auto smaller = without_dim(spec, d)) all.push_back(*std::move(smaller));
  if (!spec.plan.empty()) add([](Spec& s) { s.plan.clear(); });
  for (std::size_t o = 0; o < spec.operands.size(); ++o) {
    const auto in_order = [](const Axis& a, const Axis& b) { return a.dim < b.dim; };
    if (!std::is_sorted(spec.operands[o].begin(), spec.operands[o].end(), in_order))
      add([&](Spec& s) {
        for (Axis& axis : s.operands[o]) separate(axis);
        std::sort(s.operands[o].begin(), s.operands[o].end(), in_order);
      });
    for (std::size_t k = 0; k < spec.operands[o].size(); ++k)
      if (spec.operands[o][k].joined || spec.operands[o][k].view != View::plain)
        add([&](Spec& s) { s.operands[o][k] = {s.operands[o][k].dim}; });
  }
  if (spec.operands.size() > 2) add([](Spec& s) { s.operands.pop_back(); });
  if (!spec.factors.empty()) add([](Spec& s) { s.factors.clear(); });
  for (std::size_t o = 0; o < spec.factors.size(); ++o)
    if (spec.factors[o].factor != Factor::element) add([&](Spec& s) { s.factors[o] = {}; });
  if (spec.otherwise != 0) add([](Spec& s) { s.otherwise = 0; });
  if (!spec.residual.empty()) add([](Spec& s) { s.residual.clear(); });
  if (spec.op != Operator::sum) add([](Spec& s) { s.op = Operator::sum, s.residual.clear(); });
  if (spec.type != ScalarType::i32) add([](Spec& s) { s.type = ScalarType::i32; });
  if (spec.rows) add([](Spec& s) { s.rows = false; });
  if (spec.fold != Fold::nested && spec.op != Operator::argmin) add([](Spec& s) { s.fold = Fold::nested; });
  if (!spec.attribute.empty()) add([](Spec& s) { s.attribute.clear(); });
  if (spec.says_commutative) add([](Spec& s) { s.says_commutative = false; });
  for (const auto& [name, number] : spec.plan) {
    add([&](Spec& s) { s.plan.erase(name); });
    if (number > 1) add([&](Spec& s) { s.plan[name] = 1; });
    if (number > 3) add([&](Spec& s) { s.plan[name] = number / 2; });
  }
  for (std::size_t k = 0; k < spec.sizes.size(); ++k)
    for (const auto& [name, size] : spec.sizes[k])
      for (const std::int64_t less : {std::int64_t{1}, size / 2, size - 1})
        if (less >= 1 && less < size) add([&](Spec& s) { s.sizes[k][name] = less; });
  std::erase_if(all, [](const Spec& s) { return !fits(s.op, s.type); });
  return all;
}

Spec shrink(const Spec& spec, const Report& report, const CheckOptions& options, int seconds,
            const std::function<bool()>& stop) {
  CheckOptions quick = options;
  quick.patience_s = 10;
  // No backend is needed for what the interpreter shows.
  std::erase_if(quick.backends, [&](const std::string& b) { return report.where.find(b) == std::string::npos; });
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  const auto over = [&] { return stop() || std::chrono::steady_clock::now() > end; };
  Spec best = spec;
  for (bool smaller = true; smaller && !over();) {
    smaller = false;
    for (const Spec& simple : simpler(best)) {
      if (over()) break;
      std::vector<Spec> one{simple};
      const std::vector<Report> reports = check(one, quick, over);
      if (reports.empty() || reports[0].outcome != Outcome::fails || reports[0].where != report.where) continue;
      best = one[0];
      smaller = true;
      break;
    }
  }
  return best;
}

}  // namespace apl::contraction_tests
