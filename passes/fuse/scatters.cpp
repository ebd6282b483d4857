// Maps that make what a scatter or histogram streams: computed where it is used.
#include <algorithm>
#include <set>

#include "ir/walk.h"
#include "passes/fuse/fuse.h"

namespace apl {
namespace {

class IntoScatters {
 public:
  IntoScatters(std::vector<Stm>& stms, const std::vector<Operand>& results, ValueTable& values,
               const Consumption& consumption)
      : stms_(stms), results_(results), values_(values), consumption_(consumption) {}

  std::vector<ScatterFusion> run() {
    std::vector<ScatterFusion> all;
    for (std::size_t k = 0; k < stms_.size(); ++k) {
      if (!get_if<Scatter>(stms_[k])) continue;
      for (std::size_t p = k; p-- > 0;) {
        if (!streams(k, p)) continue;
        ScatterFusion fusion{.name = std::string(values_.name(stms_[p].pattern.front())), .at = stms_[k], .why = {}};
        fusion.why = obstacle(p, k);
        if (fusion.why) {
          all.push_back(std::move(fusion));
          continue;
        }
        fuse(p, k);
        fusion.at = stms_[k - 1];
        all.push_back(std::move(fusion));
        --k;
      }
    }
    return all;
  }

 private:
  bool streams(std::size_t scatter, std::size_t producer) const {
    const Screma* screma = get_if<Screma>(stms_[producer]);
    const std::vector<Value>& inputs = std::get<Scatter>(stms_[scatter].op).inputs;
    return screma && std::ranges::any_of(stms_[producer].pattern,
                                         [&](Value v) { return std::ranges::find(inputs, v) != inputs.end(); });
  }

  std::optional<NotFused> obstacle(std::size_t producer, std::size_t scatter) const {
    const Screma& map = std::get<Screma>(stms_[producer].op);
    const Scatter& into = std::get<Scatter>(stms_[scatter].op);
    const std::string name = "'" + std::string(values_.name(stms_[producer].pattern.front())) + "'";
    if (!map.reduces.empty())
      return NotFused{"needed-between",
                      name + " is known only after " + (map.scans() ? "all indices before" : "the whole reduction"),
                      {}};
    if (map.widths != into.widths)
      return NotFused{"width-mismatch", name + " is made over other widths than it is used over", {}};
    for (const Value made : stms_[producer].pattern) {
      bool elsewhere = std::ranges::find(results_, Operand(made)) != results_.end();
      for (std::size_t k = 0; k < stms_.size(); ++k)
        elsewhere = elsewhere || (k != scatter && free_values(stms_[k].op, values_).contains(made));
      elsewhere = elsewhere || std::ranges::find(into.targets, made) != into.targets.end() ||
                  free_values(into.map, values_).contains(made) ||
                  (into.op && free_values(into.op->op, values_).contains(made));
      if (elsewhere) return NotFused{"producer-used-elsewhere", name + " is also read elsewhere", {}};
    }
    // Each index of a scatter is one thread's.
    if (holds_screma(*map.map.body))
      return NotFused{
          "would-lose-parallelism", "the rows of " + name + " are computed in parallel, and would not be", {}};
    // What the map reads must still be there, and must not force a copy of what is scattered into.
    std::set<Value> copied;
    for (std::size_t k = 0; k < scatter; ++k)
      if (const Copy* copy = get_if<Copy>(stms_[k]);
          copy && std::ranges::find(into.targets, stms_[k].pattern.front()) != into.targets.end())
        copied.insert(copy->array);
    for (const Value v : free_values(stms_[producer].op, values_)) {
      if (!values_.type(v).is_array()) continue;
      if (consumption_.consumed(v) || copied.contains(v))
        return NotFused{"consumed-between", "what " + name + " is made of is overwritten in place", {}};
    }
    return std::nullopt;
  }

  void fuse(std::size_t producer, std::size_t scatter) {
    const Stm from = stms_[producer];
    const Screma& map = std::get<Screma>(from.op);
    Stm& stm = stms_[scatter];
    Scatter next = std::get<Scatter>(stm.op);
    Substitution renaming;
    for (std::size_t k = 0; k < map.indices.size(); ++k)
      renaming.insert_or_assign(map.indices[k], Operand(next.indices[k]));
    const BodyPtr made = substitute(map.map.body, renaming, values_);
    std::vector<Value> inputs = map.inputs, params = map.map.params;
    Substitution rows;
    for (std::size_t k = 0; k < next.inputs.size(); ++k) {
      const auto at = std::ranges::find(from.pattern, next.inputs[k]);
      if (at != from.pattern.end()) {
        const Operand& row = made->results[static_cast<std::size_t>(at - from.pattern.begin())];
        rows.insert_or_assign(next.map.params[k], substitute(row, renaming));
        continue;
      }
      const auto same = std::ranges::find(inputs, next.inputs[k]);
      if (same != inputs.end()) {
        rows.insert_or_assign(next.map.params[k], Operand(params[static_cast<std::size_t>(same - inputs.begin())]));
        continue;
      }
      inputs.push_back(next.inputs[k]);
      params.push_back(next.map.params[k]);
    }
    const BodyPtr used = substitute(next.map.body, rows, values_);
    std::vector<Stm> stms = made->stms;
    stms.insert(stms.end(), used->stms.begin(), used->stms.end());
    std::vector<Operand> results;
    for (const Operand& x : used->results) results.push_back(substitute(x, rows));
    next.inputs = std::move(inputs);
    next.map.params = std::move(params);
    next.map.body = make_body(std::move(stms), std::move(results));
    stm.op = std::move(next);
    stm.certificates.insert(stm.certificates.end(), from.certificates.begin(), from.certificates.end());
    stms_.erase(stms_.begin() + static_cast<std::ptrdiff_t>(producer));
  }

  std::vector<Stm>& stms_;
  const std::vector<Operand>& results_;
  ValueTable& values_;
  const Consumption& consumption_;
};

}  // namespace

std::vector<ScatterFusion> fuse_into_scatters(std::vector<Stm>& stms, const std::vector<Operand>& results,
                                              ValueTable& values, const Consumption& consumption) {
  return IntoScatters(stms, results, values, consumption).run();
}

}  // namespace apl
