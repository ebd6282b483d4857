// Lets and loops: scopes, and sizes that leave them.
#include <algorithm>
#include <functional>
#include <utility>

#include "frontend/types/checker.h"

namespace apl::frontend {

namespace {

// Types whose parts are shared may be far larger written out; those of programs are not.
constexpr std::size_t kMaxCountedType = 2000;
constexpr Constraint kLoop{.first_order = true, .reason = "a loop parameter"};
constexpr int kMaxSizeNodes = 32;
constexpr int kMaxEscape = 32;
// The sizes of a loop's parameters may change if its type has no more nodes than this.
constexpr std::size_t kMaxLoopType = 2000;

}  // namespace

Ty Checker::infer_let(const LetExpr& let, Ty expected) {
  const std::uint32_t level = level_;
  Ty type;
  {
    Scope scope(*this);
    for (const LetBinding& binding : let.bindings) {
      if (const auto* pattern = std::get_if<LetPattern>(&binding.node))
        let_pattern(*pattern);
      else if (const auto* function = std::get_if<LetFunction>(&binding.node))
        let_function(*function, binding);
      else
        let_update(std::get<LetUpdate>(binding.node), binding);
    }
    type = infer(*let.body, expected);
  }
  return escape(type, level);
}

// `let [n] (xs: [n]t) = ...` names sizes of the value; nothing else says what they are.
void Checker::let_pattern(const LetPattern& let) {
  // A type before `=` is what the value is checked against, so that its lambdas know it.
  const Ty type = infer(*let.value);
  TypeMap flexible;
  const std::uint32_t outer = level_;
  ++level_;
  Names names;
  std::vector<ParamId> no_types;
  std::vector<BinderId> sizes;
  const auto first = static_cast<BinderId>(store_.binder_count());
  enter_type_params(let.sizes, names, &no_types, &sizes);
  for (BinderId size : sizes) {
    const Size variable = store_.size_variable(outer, store_.binder(size).location);
    flexible.sizes.emplace(size, variable);
    let_sizes_[size] = variable;
    const std::string name = "\"" + store_.binder(size).name + "\"";
    instances_.push_back({{}, variable, store_.binder(size).location, name, true});
  }
  const int errors = errors_;
  own_names_ = OwnNames{first, std::move(flexible)};
  pattern(*let.pattern, type, names);
  own_names_.reset();
  require_irrefutable(*let.pattern);
  std::unordered_set<BinderId> mentioned, concrete;
  sizes_in(*let.pattern, mentioned, concrete);
  for (BinderId size : sizes) {
    if (errors_ != errors || concrete.contains(size)) continue;
    const std::string name = "[" + store_.binder(size).name + "]";
    report(Code::type_ambiguous, store_.binder(size).location,
           mentioned.contains(size)
               ? "Cannot bind " + name + " as it is never used as the size of a concrete (non-function) value."
               : "Size " + name + " unused in pattern: nothing says what it is");
  }
  out_.pattern_sizes[let.pattern->id] = std::move(sizes);
  const Pattern* name = let.pattern.get();
  while (const auto* typed = std::get_if<PatternTyped>(&name->node)) name = typed->pattern.get();
  if (!std::holds_alternative<PatternName>(name->node)) return;
  int budget = kMaxSizeNodes;
  if (store_.as_scalar(type) != ScalarType::i64 && !store_.get_if<TyVar>(type)) return;
  // The name itself is in scope now; what it stands for was said before it was.
  const BinderId binder = out_.pattern_binders[name->id];
  if (auto size = as_size(*let.value, budget); size && !store_.mentions(*size, binder)) let_sizes_[binder] = *size;
}

// Names of sizes in the types that are written in a pattern, and those among them that are not of functions alone.
void Checker::sizes_in(const Pattern& pattern, std::unordered_set<BinderId>& names,
                       std::unordered_set<BinderId>& concrete) {
  const auto sizes_in = [&](const Pattern& part) { this->sizes_in(part, names, concrete); };
  if (const auto* typed = std::get_if<PatternTyped>(&pattern.node)) {
    const Ty type = out_.pattern_types[pattern.id];
    store_.mentioned(type, names);
    concrete.merge(sizes_of({type}));
    with_sizes(type, [&](Size size) {
      store_.walk_size(size, [&](Size, const SizeNode& node) {
        if (const auto* name = std::get_if<SizeName>(&node)) concrete.insert(name->binder);
      });
      return size;
    });
    sizes_in(*typed->pattern);
  } else if (const auto* tuple = std::get_if<PatternTuple>(&pattern.node)) {
    for (const PatternPtr& element : tuple->elements) sizes_in(*element);
  } else if (const auto* record = std::get_if<PatternRecord>(&pattern.node)) {
    for (const auto& field : record->fields) sizes_in(*field.value);
  } else if (const auto* constructor = std::get_if<PatternConstructor>(&pattern.node)) {
    for (const PatternPtr& part : constructor->payload) sizes_in(*part);
  }
}

// Of a local function sizes become parameters by themselves, types only those that are written: others are the same
// wherever it is used, but for sizes in what functions give that it is applied to.
void Checker::let_function(const LetFunction& let, const LetBinding& binding) {
  Scheme scheme;
  Ty type;
  const std::uint32_t outer = level_;
  {
    Scope scope(*this);
    ++level_;
    Names names;
    enter_type_params(let.type_params, names, &scheme.params, &scheme.sizes);
    type = infer_function(let.params, let.result.get(), *let.body, {}, names);
    solve_fields(false);
    solve_constructors(false);
  }
  for (BinderId binder : scheme.sizes) store_.binder(binder).level = outer + 1;
  scheme.written = scheme.params.size();
  const std::unordered_set<std::uint32_t> unused = unused_variables(type);
  std::unordered_set<std::uint32_t> own = results_of_functions(type);
  own.insert(unused.begin(), unused.end());
  generalise(type, outer, &scheme.params, scheme.sizes, &own);
  for (const std::uint32_t variable : unused)
    if (const auto* param = store_.get_if<TyParam>(Ty{variable})) scheme.unused.insert(param->param);
  ++level_;
  const BinderId binder = bind(let.name, binding.location, type);
  out_.types[binding.id] = type;
  out_.binding_binders[binding.id] = binder;
  local_schemes_[binder] = std::move(scheme);
}

// Variables that are a part of one parameter and of nothing else: of what the function does not look at.
std::unordered_set<std::uint32_t> Checker::unused_variables(Ty type) const {
  std::unordered_map<std::uint32_t, int> times;
  if (store_.tree_size(type) > kMaxCountedType) return {};
  // Parts may be shared, and count wherever they stand.
  const std::function<void(Ty)> count = [&](Ty part) {
    part = store_.find(part);
    const TyNode& node = store_.node(part);
    if (std::holds_alternative<TyVar>(node)) ++times[part.id];
    if (const auto* array = std::get_if<TyArray>(&node)) count(array->element);
    if (const auto* arrow = std::get_if<TyArrow>(&node)) count(arrow->from), count(arrow->to);
    if (const auto* record = std::get_if<TyRecord>(&node))
      for (const auto& [name, field] : record->fields) count(field);
    if (const auto* sum = std::get_if<TySum>(&node))
      for (const auto& [name, payload] : sum->constructors) std::ranges::for_each(payload, count);
    if (const auto* abstract = std::get_if<TyAbstract>(&node)) std::ranges::for_each(abstract->types, count);
  };
  count(type);
  std::unordered_set<std::uint32_t> unused;
  for (const auto* arrow = store_.get_if<TyArrow>(type); arrow != nullptr; arrow = store_.get_if<TyArrow>(arrow->to)) {
    const auto* variable = store_.get_if<TyVar>(arrow->from);
    const std::uint32_t id = store_.find(arrow->from).id;
    if (variable != nullptr && !variable->constraint.equality && times[id] == 1) unused.insert(id);
  }
  return unused;
}

// Variables that parameters of function type give.
std::unordered_set<std::uint32_t> Checker::results_of_functions(Ty type) const {
  std::unordered_set<std::uint32_t> results;
  for (const auto* arrow = store_.get_if<TyArrow>(type); arrow != nullptr; arrow = store_.get_if<TyArrow>(arrow->to)) {
    Ty given = arrow->from;
    while (const auto* inner = store_.get_if<TyArrow>(given)) given = inner->to;
    const auto* variable = store_.get_if<TyVar>(given);
    if (variable != nullptr && !variable->constraint.equality && store_.find(given) != store_.find(arrow->from))
      results.insert(store_.find(given).id);
  }
  return results;
}

void Checker::check_local_uses() {
  std::unordered_map<ParamId, Ty> first;
  for (const LocalUse& use : std::exchange(local_uses_, {})) {
    const auto [before, is_first] = first.emplace(use.param, use.type);
    if (is_first) continue;
    const auto clash = unifier_.unify(loosened(before->second), loosened(use.type));
    if (clash)
      mismatch(*clash, use.location, before->second, use.type,
               "Cannot apply \"" + store_.binder(use.function).name + "\" to " +
                   (use.unused ? "arguments" : "functions with results") + " of several types");
  }
}

void Checker::let_update(const LetUpdate& let, const LetBinding& binding) {
  auto resolution = resolve(let.name);
  if (!resolution) {
    infer(*let.value);
    return;
  }
  const Ty type = instantiate(*resolution, let.name.location, binding.id);
  out_.names[binding.id] = std::move(*resolution);
  const Ty target = updated_part(type, let.steps, binding.id);
  check(*let.value, target, "The new value does not have expected type");
  ++level_;
  out_.types[binding.id] = type;
  out_.binding_binders[binding.id] = bind(let.name.text, binding.location, type);
}

// A size in terms of names that are visible elsewhere, where lets tell.
std::optional<Size> Checker::resolved(Size size, const Visible& visible, int depth) {
  if (depth > kMaxEscape) return std::nullopt;
  TypeMap map;
  bool all = true;
  store_.walk_size(size, [&](Size, const SizeNode& node) {
    const auto* name = std::get_if<SizeName>(&node);
    if (name == nullptr || visible(name->binder)) return;
    const auto let = let_sizes_.find(name->binder);
    if (let == let_sizes_.end()) {
      all = false;
      return;
    }
    map.sizes.emplace(name->binder, let->second);
  });
  if (!all) return std::nullopt;
  if (map.sizes.empty()) return size;
  return resolved(store_.substitute(size, map), visible, depth + 1);
}

// The type with those names replaced that are not visible elsewhere, where lets tell what they are.
Ty Checker::with_visible_sizes(Ty type, const Visible& visible) {
  TypeMap map;
  for (BinderId binder : store_.free_sizes(type, 0)) {
    const auto let = visible(binder) ? let_sizes_.end() : let_sizes_.find(binder);
    const auto size = let == let_sizes_.end() ? std::nullopt : resolved(let->second, visible, 0);
    if (size && is_small(*size)) map.sizes.emplace(binder, *size);
  }
  return store_.substitute(type, map);
}

// Whether the size is one that a message can name.
bool Checker::is_small(Size size) const {
  int nodes = 0;
  store_.walk_size(size, [&](Size, const SizeNode&) { ++nodes; });
  return nodes <= kMaxSizeNodes;
}

// The type of a let outside of it: inner sizes are replaced by what they were bound to, where that is a polynomial; the
// others are from now on sizes of the outer scope, known once the let is evaluated.
Ty Checker::escape(Ty type, std::uint32_t level) {
  const Visible visible = [&](BinderId binder) { return store_.binder(binder).level <= level; };
  TypeMap map;
  for (BinderId binder : store_.free_sizes(type, level)) {
    const auto let = let_sizes_.find(binder);
    const auto size = let == let_sizes_.end() ? std::nullopt : resolved(let->second, visible, 0);
    if (size && is_small(*size) && store_.is_polynomial(*size))
      map.sizes.emplace(binder, *size);
    else
      store_.binder(binder).level = level;
  }
  type = store_.substitute(type, map);
  store_.lower_level(type, level);
  return type;
}

// What is known of the sizes of a loop's parameters while its body is checked. Each may change from one iteration to
// the next, so each is a variable at first.
struct Checker::LoopSizes {
  struct Param {
    Size variable, initial;
  };
  std::vector<Param> params;
  std::vector<BinderId> varying;  // what the loop's sizes that do change are inside of it
  std::uint32_t outer = 0;        // level
  Location location;
};

Ty Checker::infer_loop(const Expr& expr, const LoopExpr& loop) {
  const Ty initial = loop.initial ? infer(*loop.initial) : implied_initial(*loop.pattern);
  LoopSizes sizes{.params = {}, .varying = {}, .outer = level_, .location = loop.pattern->location};
  Ty type = initial;
  BinderId inside = 0;
  {
    Scope scope(*this);
    Ty bound, array;
    if (const auto* less = std::get_if<ForLess>(&loop.form)) {
      bound = infer(*less->bound);
      require(bound, {.scalars = kIntegers}, less->bound->location, "The bound of a loop must be an integer");
    } else if (const auto* in = std::get_if<ForIn>(&loop.form)) {
      array = store_.array(store_.size_variable(level_, in->array->location), fresh(in->array->location));
      check(*in->array, array, "Iteratee of a for-in loop must be an array");
    }
    inside = static_cast<BinderId>(store_.binder_count());
    ++level_;
    if (store_.tree_size(initial) <= kMaxLoopType)
      type = with_sizes(initial, [&](Size size) {
        sizes.params.push_back({store_.size_variable(level_, loop.pattern->location), size});
        return sizes.params.back().variable;
      });
    unifier_.add_loop_parameter(type);
    Names names;
    pattern(*loop.pattern, type, names);
    require_irrefutable(*loop.pattern);
    type = out_.pattern_types[loop.pattern->id];
    require(type, kLoop, loop.pattern->location, "This loop is not possible");
    loop_form(loop, bound, array, names);
    ++level_;
    const Ty body = infer(*loop.body, type);
    const std::string what = "Loop body does not have expected type";
    if (sizes.params.empty() || store_.tree_size(body) > kMaxLoopType) {
      unify(type, body, loop.body->location, what);
    } else if (const auto clash = unifier_.unify(loosened(type), loosened(body))) {
      mismatch(*clash, loop.body->location, type, body, what);
    } else {
      resolve_loop_sizes(sizes, type, body);
      std::vector<BinderId> own;
      binders_of(*loop.pattern, own);
      check_loop_scope(type, own, loop.pattern->location);
      own.insert(own.end(), sizes.varying.begin(), sizes.varying.end());
      unify(any_sizes(type, own), initial, loop.pattern->location, "Initial loop values do not have expected type");
      unify(any_sizes(type, own), body, loop.body->location, what);
    }
  }
  out_.loop_sizes[expr.id] = std::move(sizes.varying);
  type = without_inner_sizes(type, inside, expr, "this loop", "an iteration may change it");
  store_.lower_level(type, level_);
  return type;
}

// The size of a parameter may be another one that is a number, but not what is computed from others.
void Checker::check_loop_scope(Ty params, const std::vector<BinderId>& own, Location location) {
  std::unordered_set<BinderId> mentioned;
  store_.mentioned(params, mentioned);
  for (BinderId binder : own)
    if (store_.as_scalar(store_.binder(binder).type) != ScalarType::i64 && mentioned.contains(binder))
      report(Code::type_size_mismatch, location,
             "The loop parameters are inferred to have type " + store_.to_text(params) + ", but \"" +
                 store_.binder(binder).name + "\" is not in scope where the loop starts");
}

void Checker::loop_form(const LoopExpr& loop, Ty bound, Ty array, Names& names) {
  if (const auto* less = std::get_if<ForLess>(&loop.form)) {
    out_.pattern_types[less->pattern_id] = bound;
    out_.pattern_binders[less->pattern_id] = bind(less->name, less->location, bound);
    claim(names, less->name, less->location);
  } else if (const auto* in = std::get_if<ForIn>(&loop.form)) {
    pattern(*in->pattern, store_.get_if<TyArray>(array) ? store_.get_if<TyArray>(array)->element : store_.error(),
            names);
    require_irrefutable(*in->pattern);
  } else {
    check(*std::get<While>(loop.form).condition, store_.scalar(ScalarType::boolean),
          "The condition of 'while' does not have expected type");
  }
}

// Which of the loop's sizes stay what they start as, whatever the others do; the rest are sizes of the loop's own.
void Checker::resolve_loop_sizes(LoopSizes& sizes, Ty params, Ty body) {
  TypeMap constant;  // the sizes that may still turn out to stay
  for (const LoopSizes::Param& param : sizes.params)
    if (const Size root = store_.find(param.variable); store_.get_if<SizeVar>(root))
      constant.size_variables.emplace(root.id, param.initial);
  const auto own = constant.size_variables;
  std::vector<std::pair<Size, Size>> pairs;
  Ty ignored;
  const auto pair = [&](Size param, Size next) {
    param = store_.find(param);
    if (own.contains(param.id)) pairs.emplace_back(param, next);
    return param;
  };
  unifier_.join(params, body, pair, ignored);
  for (bool again = true; again;) {
    again = false;
    for (const auto& [param, next] : pairs) {
      const auto stays = constant.size_variables.find(param.id);
      if (stays == constant.size_variables.end()) continue;
      if (unifier_.alike(store_.substitute(next, constant), stays->second)) continue;
      constant.size_variables.erase(stays);
      again = true;
    }
  }
  for (const auto& [id, initial] : own) {
    const Size variable{id};
    if (constant.size_variables.contains(id)) {
      unifier_.unify(initial, variable);
      continue;
    }
    const SizeVar open = *store_.get_if<SizeVar>(variable);
    if (open.level <= sizes.outer) {
      report(Code::type_size_mismatch, sizes.location,
             "Loop-variant size: a size of this loop parameter, which the loop's body changes, would have to be known "
             "outside of the loop");
      store_.bind(variable, initial);
      continue;
    }
    sizes.varying.push_back(store_.add_binder({.kind = Binder::Kind::unknown_size,
                                               .name = "this loop",
                                               .location = sizes.location,
                                               .level = sizes.outer + 1,
                                               .type = store_.scalar(ScalarType::i64),
                                               .why = "an iteration may change it"}));
    store_.bind(variable, store_.name(sizes.varying.back()));
  }
}

// The type with any size where one of these stands.
Ty Checker::any_sizes(Ty type, const std::vector<BinderId>& sizes) {
  TypeMap any;
  for (BinderId size : sizes) any.sizes.emplace(size, store_.size_variable(level_, {}));
  return store_.substitute(type, any);
}

// `loop x for ...` starts with the x outside.
Ty Checker::implied_initial(const Pattern& pattern) {
  if (const auto* typed = std::get_if<PatternTyped>(&pattern.node)) return implied_initial(*typed->pattern);
  if (const auto* name = std::get_if<PatternName>(&pattern.node)) {
    const Name source{.qualifiers = {}, .text = name->name, .location = pattern.location};
    auto resolution = resolve(source);
    if (!resolution) return store_.error();
    const Ty type = instantiate(*resolution, pattern.location, kNoId);
    out_.implied[pattern.id] = std::move(*resolution);
    return type;
  }
  if (const auto* tuple = std::get_if<PatternTuple>(&pattern.node)) {
    std::vector<Ty> elements;
    for (const PatternPtr& element : tuple->elements) elements.push_back(implied_initial(*element));
    return store_.tuple(elements);
  }
  if (const auto* record = std::get_if<PatternRecord>(&pattern.node)) {
    std::vector<std::pair<std::string, Ty>> fields;
    for (const auto& field : record->fields) fields.emplace_back(field.name, implied_initial(*field.value));
    return store_.record(std::move(fields));
  }
  report(Code::syntax_error, pattern.location, "a loop over '_' needs an initial value");
  return store_.error();
}

}  // namespace apl::frontend
