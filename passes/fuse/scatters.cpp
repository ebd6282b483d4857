// Maps that make what a scatter or histogram streams: computed where it is used. A reshape between the two, of one dim
// to one dim, only says that two sizes are equal: the scatter runs over the size of what it reads.
#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "ir/walk.h"
#include "passes/analysis/cheap.h"
#include "passes/fuse/fuse.h"
#include "passes/fuse/readers.h"

namespace apl {
namespace {

class IntoScatters {
 public:
  IntoScatters(std::vector<Stm>& stms, const std::vector<Operand>& results, ValueTable& values,
               const Consumption& consumption)
      : stms_(stms), values_(values), consumption_(consumption), readers_(stms, values) {
    for (const Operand& result : results)
      if (result.is_value()) returned_.insert(result.value());
    for (std::size_t k = 0; k < stms_.size(); ++k)
      for (const Value v : stms_[k].pattern) definers_.emplace(v, k);
  }

  std::vector<ScatterFusion> run() {
    std::vector<ScatterFusion> all;
    for (std::size_t k = 0; k < stms_.size(); ++k) {
      if (!get_if<Scatter>(stms_[k])) continue;
      look_through_reshapes(k);
      // What a producer reads was made before it.
      for (std::optional<std::size_t> p = last_producer(k, k); p; p = last_producer(k, *p)) {
        ScatterFusion fusion{.name = std::string(values_.name(stms_[*p].pattern.front())), .at = stms_[k], .why = {}};
        fusion.why = obstacle(*p, k);
        if (!fusion.why) {
          fuse(*p, k);
          fusion.at = stms_[k];
        }
        all.push_back(std::move(fusion));
      }
    }
    std::size_t k = 0;
    std::erase_if(stms_, [&](const Stm&) { return gone_.contains(k++); });
    return all;
  }

 private:
  // Where all that the scatter streams are such reshapes. Those that nobody needs after that are gone.
  void look_through_reshapes(std::size_t scatter) {
    Scatter through = std::get<Scatter>(stms_[scatter].op);
    if (through.widths.size() != 1 || through.inputs.empty()) return;
    std::vector<Poly> widths;
    std::set<std::size_t> views;
    std::vector<Value> certificates = stms_[scatter].certificates;
    for (Value& input : through.inputs) {
      const auto view = definers_.find(input);
      const Reshape* reshape = view != definers_.end() ? get_if<Reshape>(stms_[view->second]) : nullptr;
      if (reshape == nullptr || values_.type(input).rank() != 1 || consumption_.consumed(reshape->array)) return;
      const std::vector<Poly>& shape = values_.type(reshape->array).shape;
      if (shape.size() != 1 || (!widths.empty() && widths != shape)) return;
      widths = shape;
      input = reshape->array;
      views.insert(view->second);
      const std::vector<Value>& checks = stms_[view->second].certificates;
      certificates.insert(certificates.end(), checks.begin(), checks.end());
    }
    through.widths = widths;
    stms_[scatter].op = std::move(through);
    stms_[scatter].certificates = std::move(certificates);
    readers_.update(scatter, stms_[scatter]);
    for (const std::size_t view : views)
      if (!read_elsewhere(stms_[view].pattern.front(), scatter)) drop(view);
  }

  void drop(std::size_t k) {
    stms_[k] = {};
    readers_.update(k, stms_[k]);
    gone_.insert(k);
  }

  // The last Screma before statement `before` whose results the scatter streams.
  std::optional<std::size_t> last_producer(std::size_t scatter, std::size_t before) const {
    std::optional<std::size_t> last;
    for (const Value input : std::get<Scatter>(stms_[scatter].op).inputs) {
      const auto made = definers_.find(input);
      if (made == definers_.end() || made->second >= before || !get_if<Screma>(stms_[made->second])) continue;
      if (!last || *last < made->second) last = made->second;
    }
    return last;
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
    bool others = false;
    for (const Value made : stms_[producer].pattern) {
      const bool streamed = std::ranges::find(into.inputs, made) != into.inputs.end();
      if (!read_elsewhere(made, scatter)) continue;
      if (streamed)
        return NotFused{"producer-used-elsewhere", "'" + values_.name(made) + "' is also read elsewhere", {}};
      others = true;
    }
    if (others && !is_cheap(*map.map.body, values_))
      return NotFused{"would-duplicate-work", "what is made beside " + name + " would be computed again", {}};
    // Each index of a scatter is one thread's.
    if (holds_screma(*map.map.body))
      return NotFused{
          "would-lose-parallelism", "the rows of " + name + " are computed in parallel, and would not be", {}};
    // What the map reads must still be there, and must not force a copy of what is scattered into.
    std::set<Value> copied;
    for (const Value target : into.targets) {
      const auto made = definers_.find(target);
      if (const Copy* copy = made != definers_.end() ? get_if<Copy>(stms_[made->second]) : nullptr)
        copied.insert(copy->array);
    }
    for (const Value v : free_values(stms_[producer].op, values_)) {
      if (!values_.type(v).is_array()) continue;
      if (consumption_.consumed(v) || copied.contains(v))
        return NotFused{"consumed-between", "what " + name + " is made of is overwritten in place", {}};
    }
    return std::nullopt;
  }

  bool read_elsewhere(Value made, std::size_t scatter) const {
    if (returned_.contains(made)) return true;
    const std::set<std::size_t>& readers = readers_.of(made);
    if (readers.size() > (readers.contains(scatter) ? 1 : 0)) return true;
    const Scatter& into = std::get<Scatter>(stms_[scatter].op);
    return std::ranges::find(into.targets, made) != into.targets.end() ||
           free_values(into.map, values_).contains(made) ||
           (into.op && free_values(into.op->op, values_).contains(made));
  }

  // Whether others need results of the producer; if so, it keeps those.
  bool keep_others(std::size_t producer, std::size_t scatter) {
    Stm rest = stms_[producer];
    Screma& map = std::get<Screma>(rest.op);
    std::vector<Operand> results;
    rest.pattern.clear();
    for (std::size_t k = 0; k < stms_[producer].pattern.size(); ++k) {
      const Value made = stms_[producer].pattern[k];
      if (!read_elsewhere(made, scatter)) continue;
      rest.pattern.push_back(made);
      results.push_back(map.map.body->results[k]);
    }
    if (results.empty()) return false;
    Substitution indices;
    map.map =
        copy_fresh(Lambda{map.map.params, make_body(map.map.body->stms, std::move(results))}, {}, values_, values_);
    for (Value& index : map.indices) {
      const Value fresh = values_.add(values_.type(index), values_.name(index));
      indices.insert_or_assign(index, Operand(fresh));
      index = fresh;
    }
    map.map.body = substitute(map.map.body, indices, values_);
    stms_[producer] = std::move(rest);
    readers_.update(producer, stms_[producer]);
    return true;
  }

  void fuse(std::size_t producer, std::size_t scatter) {
    const Stm from = stms_[producer];
    const Screma& map = std::get<Screma>(from.op);
    Stm& stm = stms_[scatter];
    Scatter next = std::get<Scatter>(stm.op);
    Substitution renaming;
    for (const auto& [index, own] : ranges::views::zip(map.indices, next.indices))
      renaming.insert_or_assign(index, Operand(own));
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
    readers_.update(scatter, stm);
    if (!keep_others(producer, scatter)) drop(producer);
  }

  std::vector<Stm>& stms_;
  ValueTable& values_;
  const Consumption& consumption_;
  Readers readers_;
  std::unordered_set<Value> returned_;
  std::unordered_map<Value, std::size_t> definers_;
  std::unordered_set<std::size_t> gone_;  // empty statements
};

}  // namespace

std::vector<ScatterFusion> fuse_into_scatters(std::vector<Stm>& stms, const std::vector<Operand>& results,
                                              ValueTable& values, const Consumption& consumption) {
  if (std::ranges::none_of(stms, [](const Stm& stm) { return get_if<Scatter>(stm) != nullptr; })) return {};
  return IntoScatters(stms, results, values, consumption).run();
}

}  // namespace apl
