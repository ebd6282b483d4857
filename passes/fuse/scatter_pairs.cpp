// Scatters to one set of positions become one.
//
//   let {A1} = scatter(i < n, {is, xs}, \ {at, x} -> {at, x}, {A} at 1)
//   let {B1} = scatter(i < n, {is, ys}, \ {at, y} -> {at, y}, {B} at 1)
// =>
//   let {A1, B1} = scatter(i < n, {is, xs, ys}, \ {at, x, y} -> {at, x, y}, {A, B} at 1)
//
// The second moves up to the first, and what it needs from between them before that. Statements of the lambdas that
// compute the same from the same inputs have one number in all of them, so scatters to the same positions have one key.
// Of very many with one key, or with very many statements between them, some stay apart.
#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <list>
#include <set>
#include <unordered_map>

#include "ir/walk.h"
#include "passes/analysis/structure.h"
#include "passes/fuse/fuse.h"

namespace apl {

namespace {

// Scatters with the same key that may fail to merge with one, and statements between two that merge.
constexpr std::size_t kMostTries = 64;
constexpr std::size_t kMostBetween = 1024;

class ScatterPairs {
 public:
  ScatterPairs(std::vector<Stm>& stms, ValueTable& values, const Consumption& consumption)
      : stms_(stms), values_(values), consumption_(consumption) {}

  std::vector<ScatterFusion> run() {
    for (Stm& stm : stms_) {
      items_.push_back({.stm = std::move(stm), .read = {}, .numbers = {}, .alike = nullptr});
      const Position item = std::prev(items_.end());
      item->read = read_by(item->stm);
      const Scatter* scatter = get_if<Scatter>(item->stm);
      if (scatter == nullptr || scatter->op) continue;
      item->alike = &alike_[places_key(*scatter, item->numbers)];
      item->alike->push_back(item);
    }
    std::vector<ScatterFusion> all;
    for (Position item = items_.begin(); item != items_.end(); ++item)
      if (item->alike != nullptr) merge_others_into(item, all);
    stms_.clear();
    for (Item& item : items_) stms_.push_back(std::move(item.stm));
    return all;
  }

 private:
  struct Item;
  using Position = std::list<Item>::iterator;
  struct Item {
    Stm stm;
    std::set<Value> read;              // certificates and sizes of what it makes, too
    std::vector<std::size_t> numbers;  // of a scatter: of the statements of its lambda
    std::list<Position>* alike;        // scatters to the same positions, it and those behind it; null: no scatter
  };

  std::set<Value> read_by(const Stm& stm) const {
    std::set<Value> read = free_values(stm.op, values_);
    read.insert(stm.certificates.begin(), stm.certificates.end());
    for (const Value v : stm.pattern) for_each_use(values_.type(v), [&](Value size) { read.insert(size); });
    return read;
  }

  // Equal for scatters to the same positions of arrays of the same shape.
  std::string places_key(const Scatter& scatter, std::vector<std::size_t>& numbers) {
    Substitution same;
    for (std::size_t k = 0; k < scatter.indices.size(); ++k) {
      if (k == indices_.size()) indices_.push_back(scatter.indices[k]);
      same.insert_or_assign(scatter.indices[k], Operand(indices_[k]));
    }
    for (const auto& [param, input] : ranges::views::zip(scatter.map.params, scatter.inputs))
      same.insert_or_assign(param, Operand(input));
    for (const Stm& stm : scatter.map.body->stms) {
      const auto [found, is_new] =
          numbered_.try_emplace(structural_key(stm.op, same, values_), Numbered{numbered_.size(), stm.pattern});
      numbers.push_back(found->second.number);
      for (const auto& [own, first] : ranges::views::zip(stm.pattern, found->second.pattern))
        same.insert_or_assign(own, Operand(first));
    }
    Scatter places{.widths = scatter.widths, .rank = scatter.rank};
    const std::vector<Poly>& shape = values_.type(scatter.targets.front()).shape;
    const auto rank = static_cast<std::ptrdiff_t>(scatter.rank);
    places.widths.insert(places.widths.end(), shape.begin(), shape.begin() + rank);
    const std::vector<Operand>& results = scatter.map.body->results;
    places.map.body = make_body({}, {results.begin(), results.begin() + rank});
    return structural_key(Op(std::move(places)), same, values_);
  }

  void merge_others_into(Position first, std::vector<ScatterFusion>& all) {
    std::list<Position>& others = *first->alike;
    others.pop_front();
    std::size_t tries = 0;
    for (auto second = others.begin(); second != others.end() && tries < kMostTries;) {
      const std::string name = values_.name((*second)->stm.pattern.front());
      if (!merge(first, *second)) {
        ++tries, ++second;
        continue;
      }
      all.push_back({.name = name, .at = first->stm, .why = {}});
      items_.erase(*second);
      second = others.erase(second);
    }
  }

  // Whether nothing between the two was in the way.
  bool merge(Position first, Position second) {
    std::vector<Position> moved;
    if (!clear_between(first, second, moved)) return false;
    merge_lambdas(*first, *second);
    Stm& stm = first->stm;
    stm.pattern.insert(stm.pattern.end(), second->stm.pattern.begin(), second->stm.pattern.end());
    stm.certificates.insert(stm.certificates.end(), second->stm.certificates.begin(), second->stm.certificates.end());
    first->read.merge(second->read);
    for (const Position item : moved) items_.splice(first, items_, item);
    return true;
  }

  // What stands between them either goes before the first, because the second needs it, or stays behind both.
  bool clear_between(Position first, Position second, std::vector<Position>& moved) const {
    std::set<Value> needed = second->read;
    std::size_t between = 0;
    for (Position item = std::prev(second); item != first; --item) {
      if (++between > kMostBetween) return false;
      if (std::ranges::any_of(item->stm.pattern, [&](Value v) { return needed.contains(v); })) {
        if (!movable(item->stm.op)) return false;
        needed.insert(item->read.begin(), item->read.end());
        moved.push_back(item);
      } else if (std::ranges::any_of(item->read, [&](Value v) { return overwritten(v, first->stm.pattern); })) {
        return false;
      }
    }
    std::ranges::reverse(moved);
    return std::ranges::none_of(first->stm.pattern, [&](Value v) { return needed.contains(v); });
  }

  static bool movable(const Op& op) {
    return !std::holds_alternative<Update>(op) && !std::holds_alternative<Scatter>(op) &&
           !std::holds_alternative<Loop>(op) && !std::holds_alternative<If>(op) && !std::holds_alternative<Apply>(op) &&
           !std::holds_alternative<Screma>(op);
  }

  bool overwritten(Value v, const std::vector<Value>& own) const {
    return values_.type(v).is_array() && consumption_.consumed(v) && std::ranges::find(own, v) == own.end();
  }

  // The lambda of the first does the second's work, too, but for what it has already.
  void merge_lambdas(Item& first, const Item& second) {
    Scatter& a = std::get<Scatter>(first.stm.op);
    const Scatter& b = std::get<Scatter>(second.stm.op);
    Substitution same;
    for (const auto& [own, index] : ranges::views::zip(b.indices, a.indices))
      same.insert_or_assign(own, Operand(index));
    for (const auto& [input, param] : ranges::views::zip(b.inputs, b.map.params)) {
      const auto has = std::ranges::find(a.inputs, input);
      if (has != a.inputs.end()) {
        same.insert_or_assign(param, Operand(a.map.params[static_cast<std::size_t>(has - a.inputs.begin())]));
        continue;
      }
      a.inputs.push_back(input);
      a.map.params.push_back(param);
    }
    std::vector<Stm> stms = a.map.body->stms;
    std::unordered_map<std::size_t, std::size_t> has;  // where statements of these numbers are
    for (std::size_t k = 0; k < first.numbers.size(); ++k) has.emplace(first.numbers[k], k);
    for (const auto& [stm, number] : ranges::views::zip(b.map.body->stms, second.numbers)) {
      if (const auto found = has.find(number); found != has.end()) {
        for (const auto& [own, other] : ranges::views::zip(stm.pattern, stms[found->second].pattern))
          same.insert_or_assign(own, Operand(other));
        continue;
      }
      stms.push_back(substitute(stm, same, values_));
      first.numbers.push_back(number);
    }
    std::vector<Operand> results = a.map.body->results;
    for (std::size_t k = b.rank; k < b.map.body->results.size(); ++k)
      results.push_back(substitute(b.map.body->results[k], same));
    a.targets.insert(a.targets.end(), b.targets.begin(), b.targets.end());
    a.map.body = make_body(std::move(stms), std::move(results));
  }

  struct Numbered {
    std::size_t number;
    std::vector<Value> pattern;  // of the first such statement
  };

  std::vector<Stm>& stms_;
  ValueTable& values_;
  const Consumption& consumption_;
  std::list<Item> items_;
  std::unordered_map<std::string, std::list<Position>> alike_;
  std::unordered_map<std::string, Numbered> numbered_;
  std::vector<Value> indices_;  // what stands for those of all scatters
};

}  // namespace

std::vector<ScatterFusion> fuse_scatter_pairs(std::vector<Stm>& stms, ValueTable& values,
                                              const Consumption& consumption) {
  const auto is_scatter = [](const Stm& stm) { return get_if<Scatter>(stm) != nullptr; };
  if (std::ranges::count_if(stms, is_scatter) < 2) return {};
  return ScatterPairs(stms, values, consumption).run();
}

}  // namespace apl
