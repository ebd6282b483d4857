// Scatters to one set of positions become one.
//
//   let {A1} = scatter(i < n, {is, xs}, \ {at, x} -> {at, x}, {A} at 1)
//   let {B1} = scatter(i < n, {is, ys}, \ {at, y} -> {at, y}, {B} at 1)
// =>
//   let {A1, B1} = scatter(i < n, {is, xs, ys}, \ {at, x, y} -> {at, x, y}, {A, B} at 1)
//
// The second moves up to the first, and what it needs from between them before that.
#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <set>

#include "ir/walk.h"
#include "passes/analysis/structure.h"
#include "passes/fuse/fuse.h"

namespace apl {

namespace {

class ScatterPair {
 public:
  ScatterPair(std::vector<Stm>& stms, std::size_t first, std::size_t second, ValueTable& values,
              const Consumption& consumption)
      : stms_(stms), first_(first), second_(second), values_(values), consumption_(consumption) {}

  // Merges the two, if they write to the same positions and nothing between them is in the way.
  bool run() {
    const Scatter& a = std::get<Scatter>(stms_[first_].op);
    const Scatter& b = std::get<Scatter>(stms_[second_].op);
    if (a.op || b.op || a.widths != b.widths || a.rank != b.rank || !same_places(a, b) || !clear_between(b))
      return false;
    Stm merged = stms_[first_];
    merged.op = both(a, b);
    for (const Value v : stms_[second_].pattern) merged.pattern.push_back(v);
    for (const Value v : stms_[second_].certificates) merged.certificates.push_back(v);
    std::vector<Stm> order(stms_.begin(), stms_.begin() + static_cast<std::ptrdiff_t>(first_));
    for (const std::size_t k : moved_) order.push_back(stms_[k]);
    order.push_back(std::move(merged));
    for (std::size_t k = first_ + 1; k < stms_.size(); ++k)
      if (k != second_ && !moved_.contains(k)) order.push_back(stms_[k]);
    stms_ = std::move(order);
    return true;
  }

 private:
  bool same_places(const Scatter& a, const Scatter& b) {
    const auto space = [&](const Scatter& scatter) {
      const std::vector<Poly>& shape = values_.type(scatter.targets.front()).shape;
      return std::vector<Poly>(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(scatter.rank));
    };
    if (space(a) != space(b)) return false;
    // What the second lambda has in common with the first.
    for (const auto& [second, first] : ranges::views::zip(b.indices, a.indices))
      same_.insert_or_assign(second, Operand(first));
    for (std::size_t k = 0; k < b.inputs.size(); ++k) {
      const auto input = std::ranges::find(a.inputs, b.inputs[k]);
      if (input != a.inputs.end())
        same_.insert_or_assign(b.map.params[k],
                               Operand(a.map.params[static_cast<std::size_t>(input - a.inputs.begin())]));
    }
    for (const Stm& stm : b.map.body->stms) {
      const std::string key = structural_key(substitute(stm.op, same_, values_), values_);
      for (const Stm& other : a.map.body->stms) {
        if (other.pattern.size() != stm.pattern.size() || structural_key(other.op, values_) != key) continue;
        for (const auto& [second, first] : ranges::views::zip(stm.pattern, other.pattern))
          same_.insert_or_assign(second, Operand(first));
        common_.insert(&stm);
        break;
      }
    }
    for (std::size_t k = 0; k < a.rank; ++k)
      if (substitute(b.map.body->results[k], same_) != a.map.body->results[k]) return false;
    return true;
  }

  // What stands between them either goes before the first, because the second needs it, or stays behind both.
  bool clear_between(const Scatter& b) {
    std::set<Value> needed = free_values(Op(b), values_);
    for (const Value v : stms_[second_].certificates) needed.insert(v);
    for (std::size_t k = second_; k-- > first_ + 1;) {
      const Stm& stm = stms_[k];
      std::set<Value> read = free_values(stm.op, values_);
      read.insert(stm.certificates.begin(), stm.certificates.end());
      for (const Value v : stm.pattern) for_each_use(values_.type(v), [&](Value size) { read.insert(size); });
      if (std::ranges::any_of(stm.pattern, [&](Value v) { return needed.contains(v); })) {
        if (!movable(stm.op)) return false;
        needed.merge(read);
        moved_.insert(k);
      } else if (std::ranges::any_of(read, [&](Value v) { return overwritten(v); })) {
        return false;
      }
    }
    return std::ranges::none_of(stms_[first_].pattern, [&](Value v) { return needed.contains(v); });
  }

  static bool movable(const Op& op) {
    return !std::holds_alternative<Update>(op) && !std::holds_alternative<Scatter>(op) &&
           !std::holds_alternative<Loop>(op) && !std::holds_alternative<If>(op) && !std::holds_alternative<Apply>(op) &&
           !std::holds_alternative<Screma>(op);
  }

  bool overwritten(Value v) const {
    const std::vector<Value>& own = stms_[first_].pattern;
    return values_.type(v).is_array() && consumption_.consumed(v) && std::ranges::find(own, v) == own.end();
  }

  Scatter both(const Scatter& a, const Scatter& b) {
    Scatter result = a;
    for (const auto& [input, param] : ranges::views::zip(b.inputs, b.map.params)) {
      if (same_.contains(param)) continue;
      result.inputs.push_back(input);
      result.map.params.push_back(param);
    }
    std::vector<Stm> stms = a.map.body->stms;
    for (const Stm& stm : b.map.body->stms)
      if (!common_.contains(&stm)) stms.push_back(substitute(stm, same_, values_));
    std::vector<Operand> results = a.map.body->results;
    for (std::size_t k = b.rank; k < b.map.body->results.size(); ++k)
      results.push_back(substitute(b.map.body->results[k], same_));
    result.targets.insert(result.targets.end(), b.targets.begin(), b.targets.end());
    result.map.body = make_body(std::move(stms), std::move(results));
    return result;
  }

  std::vector<Stm>& stms_;
  std::size_t first_;
  std::size_t second_;
  ValueTable& values_;
  const Consumption& consumption_;
  Substitution same_;
  std::set<const Stm*> common_;  // statements of the second lambda that the first has, too
  std::set<std::size_t> moved_;
};

}  // namespace

std::vector<ScatterFusion> fuse_scatter_pairs(std::vector<Stm>& stms, ValueTable& values,
                                              const Consumption& consumption) {
  std::vector<ScatterFusion> all;
  for (std::size_t first = 0; first < stms.size(); ++first) {
    if (!get_if<Scatter>(stms[first])) continue;
    for (std::size_t second = first + 1; second < stms.size(); ++second) {
      if (!get_if<Scatter>(stms[second])) continue;
      const std::string name = values.name(stms[second].pattern.front());
      if (!ScatterPair(stms, first, second, values, consumption).run()) continue;
      // The pair stands at the place of the first, behind what moved.
      while (!get_if<Scatter>(stms[first])) ++first;
      all.push_back({.name = name, .at = stms[first], .why = {}});
      second = first;
    }
  }
  return all;
}

}  // namespace apl
