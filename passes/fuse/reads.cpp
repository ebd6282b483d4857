// Elements that are read by index, computed where they are read.
//
//   let {ps} = map(i < n, {xs}, f)
//   let {qs} = map(j < n + m, {}, \{} -> { ... if c { let {p} = ps[j] in {p} } else { let {q} = rs[j - n] in {q} } ...
//   })
// =>
//   let {qs} = map(j < n + m, {}, \{} -> { ... if c { let {x} = xs[j] let {p} = f(x) in {p} } else { ... } ... })
//
// So that the parts of a concatenation are never made. Only code that costs less than the load that it saves, or that
// is read once; only if no one else needs the array; only reads that are done once for an index of their map.
#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <set>

#include "ir/walk.h"
#include "passes/analysis/cheap.h"
#include "passes/fuse/fuse.h"
#include "passes/fuse/readers.h"

namespace apl {

namespace {

// More than this is not copied to where it is read.
constexpr std::size_t kMostStatements = 24;

// Statements that are cheap, and branches between such.
bool is_repeatable(const Body& body, const ValueTable& values, std::size_t& statements) {
  Body straight;
  for (const Stm& stm : body.stms) {
    if (++statements > kMostStatements) return false;
    const If* branch = get_if<If>(stm);
    if (branch == nullptr) {
      straight.stms.push_back(stm);
    } else if (!stm.certificates.empty() || !is_repeatable(*branch->then_body, values, statements) ||
               !is_repeatable(*branch->else_body, values, statements)) {
      return false;
    }
  }
  return is_cheap(straight, values);
}

class ReadInliner {
 public:
  ReadInliner(const Stm& producer, std::size_t result, ValueTable& values)
      : map_(std::get<Screma>(producer.op)),
        element_(element_of(*map_.map.body, result, values)),
        read_(free_values(*element_, values)),
        array_(producer.pattern[result]),
        values_(values) {}

  // The statement with all reads replaced; nullopt if it needs the array all the same.
  std::optional<Stm> rewrite(const Stm& stm) {
    Stm made = stm;
    if (Screma* screma = std::get_if<Screma>(&made.op)) {
      screma->map.body = rewrite(screma->map.body);
    } else if (Scatter* scatter = std::get_if<Scatter>(&made.op)) {
      scatter->map.body = rewrite(scatter->map.body);
    }
    return free_values(made.op, values_).contains(array_) ? std::nullopt : std::optional(std::move(made));
  }

  std::size_t sites() const { return sites_; }

 private:
  // What makes one result of the lambda, and nothing else.
  static BodyPtr element_of(const Body& body, std::size_t result, const ValueTable& values) {
    std::set<Value> needed;
    if (body.results[result].is_value()) needed.insert(body.results[result].value());
    std::vector<Stm> stms;
    for (auto stm = body.stms.rbegin(); stm != body.stms.rend(); ++stm) {
      if (std::ranges::none_of(stm->pattern, [&](Value v) { return needed.contains(v); })) continue;
      needed.merge(free_values(stm->op, values));
      stms.push_back(*stm);
    }
    std::ranges::reverse(stms);
    return make_body(std::move(stms), {body.results[result]});
  }

  BodyPtr rewrite(const BodyPtr& old) {
    std::vector<Stm> stms;
    for (const Stm& stm : old->stms) {
      if (const Index* index = get_if<Index>(stm); index != nullptr && reads(*index)) {
        compute(stm, *index, stms);
        continue;
      }
      stms.push_back(stm);
      if (std::holds_alternative<If>(stm.op))
        stms.back().op = map_bodies(stm.op, [&](const BodyPtr& inner) { return rewrite(inner); });
    }
    return make_body(std::move(stms), old->results);
  }

  bool reads(const Index& index) const {
    return index.array == array_ && !index.checked && index.dims.size() == map_.widths.size() &&
           std::ranges::none_of(index.dims, &DimIndex::is_slice);
  }

  void compute(const Stm& read, const Index& index, std::vector<Stm>& out) {
    ++sites_;
    Substitution here;
    const std::size_t first = out.size();
    for (const auto& [index, dim] : ranges::views::zip(map_.indices, index.dims)) {
      if (!read_.contains(index)) continue;
      if (const std::optional<Value> symbol = dim.start.symbol()) {
        here.insert_or_assign(index, Operand(*symbol));
        continue;
      }
      const Value at = values_.add(Type::scalar(ScalarType::i64), values_.name(index));
      out.push_back({.pattern = {at}, .op = SizeExpr{dim.start}, .location = read.location});
      here.insert_or_assign(index, Operand(at));
    }
    for (const auto& [input, param] : ranges::views::zip(map_.inputs, map_.map.params)) {
      if (!read_.contains(param)) continue;
      const Value x = values_.add(values_.type(param), values_.name(param));
      out.push_back({.pattern = {x}, .op = Index{input, index.dims}, .location = read.location});
      here.insert_or_assign(param, Operand(x));
    }
    const BodyPtr body = copy_fresh(element_, here, values_, values_);
    out.insert(out.end(), body->stms.begin(), body->stms.end());
    // What the read relies on, what takes its place relies on.
    for (std::size_t k = first; k < out.size(); ++k)
      out[k].certificates.insert(out[k].certificates.end(), read.certificates.begin(), read.certificates.end());
    Stm named = read;
    named.op = Use{body->results.front()};
    out.push_back(std::move(named));
  }

  const Screma& map_;
  BodyPtr element_;
  std::set<Value> read_;  // by the element, of the map's own
  Value array_;
  ValueTable& values_;
  std::size_t sites_ = 0;
};

// Maps of scalar code whose inputs stay as they are.
bool is_candidate(const Stm& stm, const ValueTable& values, const Consumption& consumption) {
  const Screma* map = get_if<Screma>(stm);
  if (map == nullptr || !map->reduces.empty() || !stm.certificates.empty() || !stm.attributes.empty()) return false;
  const auto is_scalar = [&](const auto& x) { return values.type(x).is_scalar(); };
  std::size_t statements = 0;
  if (!std::ranges::all_of(map->map.params, is_scalar) || !std::ranges::all_of(map->map.body->results, is_scalar) ||
      !is_repeatable(*map->map.body, values, statements))
    return false;
  return std::ranges::none_of(free_values(stm.op, values),
                              [&](Value v) { return values.type(v).is_array() && consumption.consumed(v); });
}

std::size_t loads_of(const Screma& map) {
  std::size_t loads = map.inputs.size();
  for_each_stm(*map.map.body, [&](const Stm& stm) { loads += std::holds_alternative<Index>(stm.op) ? 1 : 0; });
  return loads;
}

void drop_result(Stm& producer, std::size_t result) {
  const auto at = static_cast<std::ptrdiff_t>(result);
  Screma& map = std::get<Screma>(producer.op);
  std::vector<Operand> results = map.map.body->results;
  results.erase(results.begin() + at);
  producer.pattern.erase(producer.pattern.begin() + at);
  map.map.body = make_body(map.map.body->stms, std::move(results));
}

}  // namespace

std::vector<ScatterFusion> compute_where_read(std::vector<Stm>& stms, const std::vector<Operand>& results,
                                              ValueTable& values, const Consumption& consumption) {
  std::vector<ScatterFusion> all;
  Readers readers(stms, values);
  std::set<Value> returned;
  for (const Operand& result : results)
    if (result.is_value()) returned.insert(result.value());
  for (std::size_t p = 0; p < stms.size(); ++p) {
    if (!is_candidate(stms[p], values, consumption)) continue;
    for (std::size_t result = stms[p].pattern.size(); result-- > 0;) {
      const Value array = stms[p].pattern[result];
      const std::set<std::size_t> places = readers.of(array);
      if (places.empty() || returned.contains(array) || consumption.consumed(array)) continue;
      ReadInliner inliner(stms[p], result, values);
      std::vector<std::pair<std::size_t, Stm>> rewritten;
      bool all_read = true;
      for (const std::size_t k : places) {
        std::optional<Stm> made = inliner.rewrite(stms[k]);
        all_read = made.has_value();
        if (!all_read) break;
        rewritten.emplace_back(k, std::move(*made));
      }
      if (!all_read || rewritten.empty()) continue;
      if (inliner.sites() > 1 && loads_of(std::get<Screma>(stms[p].op)) > 1) continue;
      all.push_back({.name = std::string(values.name(array)), .at = stms[rewritten.front().first], .why = {}});
      for (auto& [k, stm] : rewritten) {
        stms[k] = std::move(stm);
        readers.update(k, stms[k]);
      }
      drop_result(stms[p], result);
    }
  }
  std::erase_if(stms, [](const Stm& stm) { return stm.pattern.empty() && std::holds_alternative<Screma>(stm.op); });
  return all;
}

}  // namespace apl
