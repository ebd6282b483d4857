// Lets and loops: scopes, and sizes that leave them.
#include <algorithm>
#include <utility>

#include "frontend/types/checker.h"

namespace apl::frontend {

namespace {

constexpr Constraint kLoop{.first_order = true, .reason = "a loop parameter"};
constexpr int kMaxSizeNodes = 32;
constexpr int kMaxEscape = 32;

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

void Checker::let_pattern(const LetPattern& let) {
  for (const TypeParam& size : let.sizes)
    report(Code::unsupported_construct, size.location, "sizes bound by 'let' cannot be compiled yet");
  // A type before `=` is what the value is checked against, so that its lambdas know it.
  const Ty type = infer(*let.value);
  ++level_;
  Names names;
  pattern(*let.pattern, type, names);
  const Pattern* name = let.pattern.get();
  while (const auto* typed = std::get_if<PatternTyped>(&name->node)) name = typed->pattern.get();
  if (!std::holds_alternative<PatternName>(name->node)) return;
  int budget = kMaxSizeNodes;
  if (store_.as_scalar(type) != ScalarType::i64 && !store_.get_if<TyVar>(type)) return;
  // The name itself is in scope now; what it stands for was said before it was.
  const BinderId binder = out_.pattern_binders[name->id];
  if (auto size = as_size(*let.value, budget); size && !mentions(*size, binder)) let_sizes_[binder] = *size;
}

bool Checker::mentions(Size size, BinderId binder) const {
  bool found = false;
  store_.walk_size(size, [&](Size, const SizeNode& node) {
    const auto* name = std::get_if<SizeName>(&node);
    found = found || (name && name->binder == binder);
  });
  return found;
}

// Of a local function only sizes become parameters by themselves; its types are the same wherever it is used, but
// for type parameters that are written.
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
  }
  for (BinderId binder : scheme.sizes) store_.binder(binder).level = outer + 1;
  generalise(type, outer, nullptr, scheme.sizes);
  ++level_;
  const BinderId binder = bind(let.name, binding.location, type);
  out_.types[binding.id] = type;
  out_.binding_binders[binding.id] = binder;
  local_schemes_[binder] = std::move(scheme);
}

void Checker::let_update(const LetUpdate& let, const LetBinding& binding) {
  auto resolution = resolve(let.name);
  if (!resolution) {
    infer(*let.value);
    return;
  }
  const Ty type = instantiate(*resolution, let.name.location, binding.id);
  out_.names[binding.id] = std::move(*resolution);
  const Ty target = step_types(type, let.steps, binding.id);
  check(*let.value, target, "The new value does not have expected type");
  ++level_;
  out_.types[binding.id] = type;
  out_.binding_binders[binding.id] = bind(let.name.text, binding.location, type);
}

// A size in terms of what is in scope at `level`, where lets tell.
std::optional<Size> Checker::resolved(Size size, std::uint32_t level, int depth) {
  if (depth > kMaxEscape) return std::nullopt;
  TypeMap map;
  bool all = true;
  store_.walk_size(size, [&](Size, const SizeNode& node) {
    const auto* name = std::get_if<SizeName>(&node);
    if (name == nullptr || store_.binder(name->binder).level <= level) return;
    const auto let = let_sizes_.find(name->binder);
    if (let == let_sizes_.end()) {
      all = false;
      return;
    }
    map.sizes.emplace(name->binder, let->second);
  });
  if (!all) return std::nullopt;
  if (map.sizes.empty()) return size;
  return resolved(store_.substitute(size, map), level, depth + 1);
}

// Whether the size is one that a message can name.
bool Checker::is_small(Size size) const {
  int nodes = 0;
  store_.walk_size(size, [&](Size, const SizeNode&) { ++nodes; });
  return nodes <= kMaxSizeNodes;
}

// The type of a let outside of it: inner sizes are replaced by what they were bound to, where that is a size; the
// others are from now on sizes of the outer scope, known once the let is evaluated.
Ty Checker::escape(Ty type, std::uint32_t level) {
  TypeMap map;
  for (BinderId binder : store_.free_sizes(type, level)) {
    const auto let = let_sizes_.find(binder);
    const auto size = let == let_sizes_.end() ? std::nullopt : resolved(let->second, level, 0);
    if (size && is_small(*size))
      map.sizes.emplace(binder, *size);
    else
      store_.binder(binder).level = level;
  }
  type = store_.substitute(type, map);
  store_.lower_level(type, level);
  return type;
}

Ty Checker::infer_loop(const LoopExpr& loop) {
  const Ty initial = loop.initial ? infer(*loop.initial) : implied_initial(*loop.pattern);
  Ty type = initial;
  Scope scope(*this);
  const auto* less = std::get_if<ForLess>(&loop.form);
  Ty bound, array;
  if (less) {
    bound = infer(*less->bound);
    require(bound, {.scalars = kIntegers}, less->bound->location, "The bound of a loop must be an integer");
  }
  if (const auto* in = std::get_if<ForIn>(&loop.form)) {
    array = store_.array(store_.size_variable(level_, in->array->location), fresh(in->array->location));
    check(*in->array, array, "Only an array can be looped over");
  }
  ++level_;
  Names names;
  pattern(*loop.pattern, type, names);
  type = out_.pattern_types[loop.pattern->id];
  require(type, kLoop, loop.pattern->location, "This loop is not possible");
  if (less) {
    out_.pattern_types[less->pattern_id] = bound;
    out_.pattern_binders[less->pattern_id] = bind(less->name, less->location, bound);
    claim(names, less->name, less->location);
  } else if (const auto* in = std::get_if<ForIn>(&loop.form)) {
    pattern(*in->pattern, store_.get_if<TyArray>(array) ? store_.get_if<TyArray>(array)->element : store_.error(),
            names);
  } else {
    check(*std::get<While>(loop.form).condition, store_.scalar(ScalarType::boolean),
          "The condition of 'while' does not have expected type");
  }
  ++level_;
  check(*loop.body, type, "Loop body does not have expected type");
  return type;
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
