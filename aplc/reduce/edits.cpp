#include "aplc/reduce/edits.h"

#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <functional>
#include <map>

#include "ir/attributes.h"
#include "ir/print.h"
#include "ir/walk.h"

namespace aplc::reduce {
namespace {

using namespace apl;

void add_symbols(const Type& type, std::set<Value>& used) {
  for_each_use(type, [&](Value v) { used.insert(v); });
}

// What a statement reads, in its types too.
std::set<Value> reads(const Stm& stm, const ValueTable& values) {
  std::set<Value> used = free_values(stm.op, values);
  used.insert(stm.certificates.begin(), stm.certificates.end());
  for (const Value v : stm.pattern) add_symbols(values.type(v), used);
  for (const Value v : stm.pattern) used.erase(v);
  return used;
}

// Whether a type stands where only sizes and parameters are known.
bool is_expressible(const Type& type, const Function& function) {
  bool fine = !type.memory && !type.is_memory();
  for_each_use(type, [&](Value v) {
    fine = fine && (std::ranges::count(function.sizes, v) != 0 || std::ranges::count(function.params, v) != 0);
  });
  return fine;
}

// The entry as it has to look after parameters or results changed; attributes that speak of them are dropped.
void renew_entry(Function& function) {
  erase_attribute(function.attributes, attribute::param_type);
  erase_attribute(function.attributes, attribute::result_type);
  erase_attribute(function.attributes, attribute::type_name);
  erase_attribute(function.attributes, attribute::sparse);
  if (!function.entry) return;
  EntryInfo info{.name = function.entry->name, .params = {}, .param_values = {}, .results = {}};
  for (const Value param : function.params) {
    if (function.type(param).is_memory()) continue;
    Type type = function.type(param);
    type.unique = false;
    type.memory = nullptr;
    info.params.push_back({function.values.name(param), print(type, function)});
    info.param_values.push_back(1);
  }
  for (Type type : function.results) {
    type.unique = false;
    type.memory = nullptr;
    info.results.push_back({print(type, function)});
  }
  function.entry = std::move(info);
}

// The bodies below, each with what is bound around it that the function does not bind.
void for_each_nested(const Body& body, const std::function<void(const BodyPtr&)>& visit) {
  for (const Stm& stm : body.stms)
    for_each_body(stm.op, [&](const BodyPtr& inner) {
      visit(inner);
      for_each_nested(*inner, visit);
    });
}

template <class T>
void keep_where(std::vector<T>& items, const std::vector<bool>& kept) {
  std::size_t k = 0;
  std::erase_if(items, [&](const T&) { return !kept[k++]; });
}

BodyPtr with_results_of(const BodyPtr& body, const std::vector<bool>& kept) {
  std::vector<Operand> results = body->results;
  keep_where(results, kept);
  return make_body(body->stms, std::move(results));
}

// The statements whose values something reads, innermost ones too; `edit` may change a statement that stays, given what
// is read after it, before its bodies are looked at.
template <class Edit>
BodyPtr keep_read(const BodyPtr& body, const ValueTable& values, const Edit& edit) {
  std::set<Value> used;
  for (const Operand& result : body->results)
    if (result.is_value()) used.insert(result.value());
  std::vector<Stm> stms;
  for (std::size_t k = body->stms.size(); k-- > 0;) {
    Stm stm = body->stms[k];
    const auto is_used = [&](Value v) { return used.contains(v); };
    if (!stm.pattern.empty() && std::ranges::none_of(stm.pattern, is_used)) continue;
    edit(stm, used);
    stm.op = map_bodies(stm.op, [&](const BodyPtr& inner) { return keep_read(inner, values, edit); });
    used.merge(reads(stm, values));
    stms.push_back(std::move(stm));
  }
  std::ranges::reverse(stms);
  return make_body(std::move(stms), body->results);
}

// ---- results and inputs that nothing reads ----------------------------------------------------------

class Pruner {
 public:
  explicit Pruner(ValueTable& values) : values_(values) {}

  BodyPtr run(const BodyPtr& body) {
    return keep_read(body, values_, [this](Stm& stm, const std::set<Value>& used) { prune(stm, used); });
  }

 private:
  void prune(Stm& stm, const std::set<Value>& used) {
    std::vector<bool> kept;
    for (const Value v : stm.pattern) kept.push_back(used.contains(v));
    // Sizes of other results.
    for (std::size_t k = 0; k < kept.size(); ++k)
      if (kept[k])
        for_each_use(values_.type(stm.pattern[k]), [&](Value v) {
          for (std::size_t j = 0; j < kept.size(); ++j)
            if (stm.pattern[j] == v) kept[j] = true;
        });
    if (is_branch(stm.op)) {
      stm.op = map_bodies(stm.op, [&](const BodyPtr& inner) { return with_results_of(inner, kept); });
      keep_where(stm.pattern, kept);
    } else if (auto* soac = std::get_if<Screma>(&stm.op)) {
      prune(*soac, kept);
      keep_where(stm.pattern, kept);
    } else if (auto* loop = std::get_if<Loop>(&stm.op)) {
      prune(*loop, kept);
      keep_where(stm.pattern, kept);
    }
  }

  // `kept`: of the results; an operator keeps all or none.
  void prune(Screma& soac, std::vector<bool>& kept) const {
    std::vector<bool> results = kept;
    std::size_t first = 0;
    std::vector<bool> operators;
    for (const ReduceOp& reduce : soac.reduces) {
      const std::size_t count = reduce.neutral.size();
      const bool any = std::any_of(kept.begin() + static_cast<std::ptrdiff_t>(first),
                                   kept.begin() + static_cast<std::ptrdiff_t>(first + count), [](bool b) { return b; });
      operators.push_back(any);
      for (std::size_t k = 0; k < count; ++k) kept[first + k] = results[first + k] = any;
      first += count;
    }
    keep_where(soac.reduces, operators);
    soac.map.body = with_results_of(soac.map.body, results);
    const std::set<Value> read = free_values(*soac.map.body, values_);
    std::vector<bool> inputs;
    for (const Value param : soac.map.params) inputs.push_back(read.contains(param));
    keep_where(soac.inputs, inputs);
    keep_where(soac.map.params, inputs);
  }

  // A parameter stays if its result is read, or if what stays needs it.
  void prune(Loop& loop, std::vector<bool>& kept) const {
    if (!loop.index && !kept.empty()) kept[0] = true;
    for (bool changed = true; changed;) {
      changed = false;
      const std::set<Value> read = free_values(*without_dead_code(with_results_of(loop.body, kept), values_), values_);
      for (auto&& [keep, param] : ranges::views::zip(kept, loop.params))
        if (!keep && read.contains(param)) keep = changed = true;
    }
    keep_where(loop.params, kept);
    keep_where(loop.initial, kept);
    loop.body = with_results_of(loop.body, kept);
  }

  ValueTable& values_;
};

// ---- removing statements ----------------------------------------------------------------------------

class Cutter {
 public:
  Cutter(const Function& function, const std::set<Value>& removed, Cut how)
      : function_(function), removed_(removed), how_(how) {}

  std::optional<Function> run() {
    BodyPtr body = rewrite(function_.body);
    if (map_.empty()) return std::nullopt;
    resolve();
    function_.body = substitute(body, map_, function_.values);
    if (added_) renew_entry(function_);
    return std::move(function_);
  }

 private:
  BodyPtr rewrite(const BodyPtr& body) {
    std::vector<Stm> stms;
    for (const Stm& stm : body->stms) {
      if (!stm.pattern.empty() && removed_.contains(stm.pattern.front()) && replace(stm)) continue;
      Stm kept = stm;
      kept.op = map_bodies(stm.op, [&](const BodyPtr& inner) { return rewrite(inner); });
      stms.push_back(std::move(kept));
    }
    return make_body(std::move(stms), body->results);
  }

  // Whether every value of the pattern has a replacement.
  bool replace(const Stm& stm) {
    Substitution found;
    const std::size_t params = function_.params.size();
    for (const Value v : stm.pattern) {
      const auto by = replacement(stm, v);
      if (!by) {
        function_.params.resize(params);
        return false;
      }
      found.emplace(v, *by);
    }
    added_ = added_ || function_.params.size() != params;
    map_.insert(found.begin(), found.end());
    return true;
  }

  std::optional<Operand> replacement(const Stm& stm, Value v) {
    const Type& type = function_.type(v);
    if (type.is_memory()) return std::nullopt;
    if (how_ == Cut::forward || how_ == Cut::last) {
      std::optional<Operand> operand;
      for_each_use(stm.op, [&](Value use) {
        if ((!operand || how_ == Cut::last) && function_.type(use).same(type)) operand = use;
      });
      if (operand) return operand;
    }
    if (type.is_scalar() && type.element == ScalarType::unit) return Operand(Scalar::unit());
    if (how_ != Cut::constant)
      if (const auto param = parameter(v)) return param;
    if (type.is_scalar()) return Operand(Scalar::zero(type.element));
    return std::nullopt;
  }

  std::optional<Operand> parameter(Value v) {
    Type type = function_.type(v);
    type.unique = how_ == Cut::consumed && type.is_array();
    if (!is_expressible(type, function_)) return std::nullopt;
    const Value param = function_.values.add(std::move(type), function_.values.name(v));
    function_.params.push_back(param);
    return Operand(param);
  }

  // A replacement may be a value that is itself replaced.
  void resolve() {
    for (auto& [from, to] : map_)
      for (std::size_t steps = 0; to.is_value() && map_.contains(to.value()) && steps < map_.size(); ++steps)
        to = map_.at(to.value());
  }

  Function function_;
  const std::set<Value>& removed_;
  Cut how_;
  Substitution map_;
  bool added_ = false;
};

}  // namespace

BodyPtr without_dead_code(const BodyPtr& body, const ValueTable& values) {
  return keep_read(body, values, [](Stm&, const std::set<Value>&) {});
}

Function pruned(const Function& function) {
  Function result = function;
  result.body = Pruner(result.values).run(without_dead_code(function.body, function.values));
  result.body = without_dead_code(result.body, result.values);
  return result;
}

std::vector<Value> statements(const Function& function) {
  std::vector<Value> all;
  for_each_stm(*function.body, [&](const Stm& stm) {
    if (!stm.pattern.empty()) all.push_back(stm.pattern.front());
  });
  return all;
}

std::optional<Function> cut(const Function& function, const std::set<Value>& removed, Cut how) {
  return Cutter(function, removed, how).run();
}

std::optional<Function> truncated(const Function& function, std::size_t count) {
  const Body& body = *function.body;
  if (count == 0 || count >= body.stms.size() || !function.result_sizes.empty()) return std::nullopt;
  std::set<Value> later;
  for (std::size_t k = count; k < body.stms.size(); ++k) later.merge(reads(body.stms[k], function.values));
  for (const Operand& result : body.results)
    if (result.is_value()) later.insert(result.value());
  Function next = function;
  next.results.clear();
  std::vector<Operand> results;
  const std::vector<Stm> stms(body.stms.begin(), body.stms.begin() + static_cast<std::ptrdiff_t>(count));
  for (const Stm& stm : stms)
    for (const Value v : stm.pattern) {
      const Type& type = function.type(v);
      const bool is_unit = type.is_scalar() && type.element == ScalarType::unit;
      if (!later.contains(v) || is_unit || !is_expressible(type, function)) continue;
      results.emplace_back(v);
      next.results.push_back(type);
    }
  if (results.empty()) return std::nullopt;
  next.body = make_body(stms, std::move(results));
  renew_entry(next);
  return next;
}

std::optional<Function> with_results(const Function& function, const std::vector<std::size_t>& kept) {
  if (kept.empty() || kept.size() == function.results.size() || !function.result_sizes.empty()) return std::nullopt;
  Function next = function;
  next.results.clear();
  std::vector<Operand> results;
  for (const std::size_t k : kept) {
    results.push_back(function.body->results[k]);
    next.results.push_back(function.results[k]);
  }
  next.body = make_body(function.body->stms, std::move(results));
  renew_entry(next);
  return next;
}

std::size_t count_bodies(const Function& function) {
  std::size_t count = 0;
  for_each_nested(*function.body, [&](const BodyPtr&) { ++count; });
  return count;
}

std::optional<Function> focused(const Function& function, std::size_t body) {
  BodyPtr inner;
  std::size_t at = 0;
  for_each_nested(*function.body, [&](const BodyPtr& each) {
    if (at++ == body) inner = each;
  });
  if (!inner || inner->results.empty()) return std::nullopt;
  Function next = function;
  next.result_sizes.clear();
  std::set<Value> read = free_values(*inner, function.values);
  for (const Operand& result : inner->results)
    if (result.is_value()) {
      read.insert(result.value());
      add_symbols(function.type(result.value()), read);
    }
  // Sizes of what is read, and of those.
  for (std::size_t before = 0; before != read.size();) {
    before = read.size();
    for (const Value v : std::vector<Value>(read.begin(), read.end())) add_symbols(function.type(v), read);
  }
  std::set<Value> bound;
  for_each_stm(*inner, [&](const Stm& stm) {
    bound.insert(stm.pattern.begin(), stm.pattern.end());
    for_each_binder(stm.op, [&](Value v) { bound.insert(v); });
  });
  next.params.clear();
  for (const Value v : read) {
    if (bound.contains(v) || std::ranges::count(function.sizes, v) != 0) continue;
    if (function.type(v).is_memory()) return std::nullopt;
    next.params.push_back(v);
  }
  next.results.clear();
  for (const Operand& result : inner->results) {
    const Type type = next.values.type(result);
    if (!is_expressible(type, next)) return std::nullopt;
    next.results.push_back(type);
  }
  next.body = inner;
  renew_entry(next);
  return next;
}

std::vector<Function> unwrapped(const Function& function, Value statement) {
  std::vector<Function> all;
  const auto with = [&](const std::function<std::optional<Body>(const Stm&)>& inside) {
    Function next = function;
    Substitution map;
    const std::function<BodyPtr(const BodyPtr&)> rewrite = [&](const BodyPtr& body) {
      std::vector<Stm> stms;
      for (const Stm& stm : body->stms) {
        const bool here = !stm.pattern.empty() && stm.pattern.front() == statement;
        if (const auto inner = here ? inside(stm) : std::nullopt) {
          stms.insert(stms.end(), inner->stms.begin(), inner->stms.end());
          for (const auto& [made, result] : ranges::views::zip(stm.pattern, inner->results)) map.emplace(made, result);
          continue;
        }
        Stm kept = stm;
        kept.op = map_bodies(stm.op, rewrite);
        stms.push_back(std::move(kept));
      }
      return make_body(std::move(stms), body->results);
    };
    const BodyPtr body = rewrite(function.body);
    if (map.empty()) return;
    next.body = substitute(body, map, next.values);
    all.push_back(std::move(next));
  };
  constexpr std::size_t kMostAlternatives = 3;
  for (std::size_t k = 0; k < kMostAlternatives; ++k)
    with([k](const Stm& stm) -> std::optional<Body> {
      const std::vector<BodyPtr> bodies = branches(stm.op);
      return k < bodies.size() ? std::optional(*bodies[k]) : std::nullopt;
    });
  ValueTable values = function.values;
  with([&](const Stm& stm) -> std::optional<Body> {
    const auto* loop = get_if<Loop>(stm);
    if (!loop) return std::nullopt;
    Substitution map;
    for (const auto& [param, initial] : ranges::views::zip(loop->params, loop->initial)) map.emplace(param, initial);
    if (loop->index) map.emplace(loop->index, Scalar::integer(ScalarType::i64, 0));
    return *substitute(loop->body, map, values);
  });
  return all;
}

std::optional<Function> replaced(const Function& function, Value param, const Operand& by) {
  Function next = function;
  if (std::erase(next.sizes, param) + std::erase(next.params, param) == 0) return std::nullopt;
  const Substitution map{{param, by}};
  next.body = substitute(function.body, map, next.values);
  for (const std::vector<Value>& values : {next.sizes, next.params})
    for (const Value v : values) next.values.set_type(v, substitute(next.type(v), map));
  for (Type& type : next.results) type = substitute(type, map);
  renew_entry(next);
  return next;
}

std::optional<Function> without_unused_params(const Function& function) {
  std::set<Value> read = free_values(*function.body, function.values);
  for (const Operand& result : function.body->results)
    if (result.is_value()) read.insert(result.value());
  for (const Type& type : function.results) add_symbols(type, read);
  Function next = function;
  for (bool changed = true; changed;) {
    changed = false;
    std::set<Value> needed = read;
    for (const Value v : next.params)
      if (read.contains(v)) add_symbols(function.type(v), needed);
    changed = needed.size() != read.size();
    read = std::move(needed);
  }
  const std::size_t before = next.params.size() + next.sizes.size();
  std::erase_if(next.params, [&](Value v) { return !read.contains(v); });
  // A size that only the body reads is given by the shape of a parameter, which has to stay.
  std::set<Value> given;
  for (const Value v : next.params) add_symbols(next.type(v), given);
  for (const Value size : next.sizes) {
    if (!read.contains(size) || given.contains(size)) continue;
    for (const Value v : function.params) {
      std::set<Value> symbols;
      add_symbols(function.type(v), symbols);
      if (!symbols.contains(size)) continue;
      next.params.push_back(v);
      given.merge(symbols);
      break;
    }
  }
  std::erase_if(next.sizes, [&](Value v) { return !read.contains(v) && !given.contains(v); });
  if (next.params.size() + next.sizes.size() == before) return std::nullopt;
  renew_entry(next);
  return next;
}

}  // namespace aplc::reduce
