// Branches, loops, asserts and the operators that evaluate their second operand only where it matters.
#include <fmt/format.h>
#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <utility>

#include "frontend/lower/lowerer.h"
#include "ir/nesting.h"
#include "ir/walk.h"

namespace apl::frontend {

namespace {

// A second operand of `&&` with more statements than this is worth skipping.
constexpr std::size_t kMaxEager = 8;
// What passes put around code nests it more deeply.
constexpr int kMostNestedBodies = kDeepestBodies - 20;

}  // namespace

// A nested body: what `fill` lowers goes into it.
BodyPtr Lowerer::body(const std::function<std::vector<Operand>()>& fill) {
  if (++known_.bodies > kMostNestedBodies)
    unsupported(location_, fmt::format("code that expands to loops, branches and functions nested more than {} deep",
                                       kMostNestedBodies));
  const std::size_t counts = known_.new_counts.size(), products = known_.new_products.size(),
                    constants = known_.new_constants.size();
  BodyPtr made = builder_->body([&](Builder& inner) {
    Builder* outer = std::exchange(builder_, &inner);
    levels_.push_back({&inner, static_cast<std::uint32_t>(inner.values().size()), {}});
    std::vector<Operand> results = fill();
    for (const Poly& size : levels_.back().named) known_.named.erase(size);
    levels_.pop_back();
    builder_ = outer;
    return results;
  });
  --known_.bodies;
  // What was checked inside is known there alone.
  for (; known_.new_counts.size() > counts; known_.new_counts.pop_back()) known_.counts.erase(known_.new_counts.back());
  for (; known_.new_products.size() > products; known_.new_products.pop_back())
    known_.products.erase(known_.new_products.back());
  for (; known_.new_constants.size() > constants; known_.new_constants.pop_back())
    known_.constants.erase(known_.new_constants.back());
  return made;
}

// What leaves two branches: the shape of each part in either, and the sizes on which they differ.
struct Lowerer::Joined {
  std::vector<Poly> yes_sizes, no_sizes;
  std::vector<std::vector<Poly>> yes_shapes, no_shapes;
  struct Decided {
    std::size_t part, dim, size;
  };
  std::vector<Decided> decided;  // which dims of which parts are those sizes
};

StaticValue Lowerer::lower_branch(const Expr& expr, const Operand& condition,
                                  const std::function<StaticValue()>& then_value,
                                  const std::function<StaticValue()>& else_value) {
  const auto first_inner = static_cast<std::uint32_t>(builder_->values().size());
  StaticValue form;
  const BodyPtr yes = body([&] {
    form = then_value();
    return leaves(form);
  });
  const BodyPtr no = body([&] { return leaves(else_value()); });
  if (auto unknown = checked_.unknown_sizes.find(expr.id); unknown != checked_.unknown_sizes.end())
    forget(unknown->second);
  const auto joined = join(yes->results, no->results, checked_.types[expr.id], first_inner);
  if (!joined) unsupported(location_, "branches of different forms");
  std::vector<std::string> names(joined->yes_sizes.size(), "d");
  names.resize(names.size() + yes->results.size(), "r");
  const std::vector<Value> values =
      builder_->let_many(names, If{condition, handing_on(yes, joined->yes_sizes, joined->yes_shapes),
                                   handing_on(no, joined->no_sizes, joined->no_shapes)});
  const std::vector<Value> parts(values.begin() + static_cast<std::ptrdiff_t>(joined->yes_sizes.size()), values.end());
  for (const auto& [part, dim, size] : joined->decided) {
    Type type = type_of(parts[part]);
    type.shape[dim] = Poly(values[size]);
    builder_->values().set_type(parts[part], std::move(type));
    know_count(Poly(values[size]));
  }
  return with_leaves(form, {parts.begin(), parts.end()});
}

// Sizes that are equal by type may still be written in two ways; others that differ are results of their own.
std::optional<Lowerer::Joined> Lowerer::join(const std::vector<Operand>& yes, const std::vector<Operand>& no, Ty type,
                                             std::uint32_t first_inner) {
  const std::vector<std::vector<SizeArgument>> declared = leaf_shapes(type);
  if (yes.size() != no.size()) return std::nullopt;
  const auto is_outer = [&](const Poly& size) {
    bool outer = true;
    size.for_each_symbol([&](Value symbol) { outer = outer && symbol.id < first_inner; });
    return outer;
  };
  const auto size_by_type = [&](std::size_t k, std::size_t d) -> std::optional<Poly> {
    if (declared.size() != yes.size() || d >= declared[k].size()) return std::nullopt;
    auto size = size_value(declared[k][d].size, declared[k][d].frame);
    return size && is_outer(*size) ? size : std::nullopt;
  };
  Joined result;
  for (std::size_t k = 0; k < yes.size(); ++k) {
    result.yes_shapes.push_back(type_of(yes[k]).shape);
    result.no_shapes.push_back(type_of(no[k]).shape);
    if (result.yes_shapes[k].size() != result.no_shapes[k].size()) return std::nullopt;
    for (std::size_t d = 0; d < result.yes_shapes[k].size(); ++d) {
      Poly& a = result.yes_shapes[k][d];
      Poly& b = result.no_shapes[k][d];
      if (a == b) continue;
      if (const auto size = size_by_type(k, d)) {
        a = b = *size;
        continue;
      }
      std::size_t s = 0;
      while (s < result.yes_sizes.size() && !(result.yes_sizes[s] == a && result.no_sizes[s] == b)) ++s;
      result.decided.push_back({k, d, s});
      if (s < result.yes_sizes.size()) continue;
      result.yes_sizes.push_back(a);
      result.no_sizes.push_back(b);
    }
  }
  return result;
}

// The body with sizes before its results, which get these shapes.
BodyPtr Lowerer::handing_on(const BodyPtr& inner, const std::vector<Poly>& sizes,
                            const std::vector<std::vector<Poly>>& shapes) {
  return body([&] {
    builder_->append_all(inner->stms);
    std::vector<Operand> results;
    for (const Poly& size : sizes) results.push_back(operand(StaticValue(size)));
    for (const auto& [result, shape] : ranges::views::zip(inner->results, shapes))
      results.push_back(operand(coerced(StaticValue(result), shape)));
    return results;
  });
}

// What computes the sizes in these types goes before the body, if it needs nothing of the parameters: an array of rows
// needs their sizes even where it has no row. The body without it.
BodyPtr Lowerer::hoist_sizes(const BodyPtr& inner, const std::vector<Value>& params, const std::vector<Type>& types) {
  std::map<Value, std::size_t> made;  // by which statement
  for (std::size_t k = 0; k < inner->stms.size(); ++k)
    for (const Value v : inner->stms[k].pattern) made.emplace(v, k);
  std::vector<Value> needed;
  for (const Type& type : types)
    for (const Poly& size : type.shape) size.for_each_symbol([&](Value symbol) { needed.push_back(symbol); });
  std::set<std::size_t> moved;
  while (!needed.empty()) {
    const Value v = needed.back();
    needed.pop_back();
    if (std::ranges::find(params, v) != params.end()) return inner;
    const auto found = made.find(v);
    if (found == made.end() || !moved.insert(found->second).second) continue;
    const Stm& stm = inner->stms[found->second];
    const std::set<Value> read = free_values(stm.op, builder_->values());
    needed.insert(needed.end(), read.begin(), read.end());
    needed.insert(needed.end(), stm.certificates.begin(), stm.certificates.end());
    for (const Value result : stm.pattern)
      for_each_use(builder_->values().type(result), [&](Value size) { needed.push_back(size); });
  }
  std::vector<Stm> rest;
  for (std::size_t k = 0; k < inner->stms.size(); ++k) {
    if (moved.contains(k))
      builder_->append(inner->stms[k]);
    else
      rest.push_back(inner->stms[k]);
  }
  return moved.empty() ? inner : make_body(std::move(rest), inner->results);
}

// Sizes of what leaves a body must be known outside of it.
void Lowerer::require_outer_sizes(const std::vector<Type>& types, const std::vector<BodyPtr>& inner,
                                  const std::string& what) {
  std::set<Value> bound;
  for (const BodyPtr& body : inner)
    for (const Stm& stm : body->stms) bound.insert(stm.pattern.begin(), stm.pattern.end());
  for (const Type& type : types)
    for (const Poly& size : type.shape)
      size.for_each_symbol([&](Value symbol) {
        if (bound.count(symbol) > 0) unsupported(location_, what + " whose size is known only inside");
      });
}

StaticValue Lowerer::lower_short_circuit(const Infix& infix, bool both) {
  const Operand x = operand(lower(*infix.x));
  std::optional<Operand> y;
  const BodyPtr second = body([&] {
    y = operand(lower(*infix.y));
    return std::vector<Operand>{*y};
  });
  if (!can_fail(*second, builder_->values()) && second->stms.size() <= kMaxEager) {
    builder_->append_all(second->stms);
    return binary(both ? BinaryOp::conj : BinaryOp::disj, StaticValue(x), StaticValue(*y));
  }
  const BodyPtr known = make_body({}, {Operand(Scalar::boolean(!both))});
  const Value result = builder_->let("c", both ? If{x, second, known} : If{x, known, second});
  return StaticValue(Operand(result));
}

StaticValue Lowerer::lower_assert(const AssertExpr& assertion) {
  if (!checked_indices_ || unused_ == frame_) return lower(*assertion.value);
  const Operand condition = operand(lower(*assertion.condition));
  const Value certificate =
      builder_->let("c", Assert{condition, {"Assertion is false: " + to_text(*assertion.condition)}});
  const std::size_t before = builder_->stms().size();
  const StaticValue value = lower(*assertion.value);
  std::vector<Stm>& stms = builder_->stms();
  for (std::size_t k = before; k < stms.size(); ++k) stms[k].certificates.push_back(certificate);
  return value;
}

StaticValue Lowerer::implied_initial(const Pattern& pattern) {
  if (const auto* typed = std::get_if<PatternTyped>(&pattern.node)) return implied_initial(*typed->pattern);
  if (const auto* tuple = std::get_if<PatternTuple>(&pattern.node)) {
    Values elements;
    for (const PatternPtr& element : tuple->elements) elements.push_back(implied_initial(*element));
    return tuple_value(std::move(elements));
  }
  if (const auto* record = std::get_if<PatternRecord>(&pattern.node)) {
    StaticValue::Fields fields;
    for (const auto& field : record->fields) fields.emplace_back(field.name, implied_initial(*field.value));
    return StaticValue(std::move(fields));
  }
  return use(checked_.implied.at(pattern.id));
}

// The parameters of a loop: sizes that iterations change, then the parts of its state.
struct Lowerer::LoopState {
  const LoopExpr& loop;
  const std::vector<BinderId>& varying;             // what the sizes are called inside
  std::vector<std::vector<SizeArgument>> declared;  // sizes of the parts, by type
  std::vector<Operand> start;                       // of the parts
  // Sizes without a name, which a module hides: of each the dims that have it, as (part, dim).
  std::vector<std::vector<std::pair<std::size_t, std::size_t>>> hidden = {};
  std::vector<Value> sizes = {}, params = {};  // sizes: those that vary, then those that are hidden
  std::uint32_t first_inner = 0;
};

// Of each size that varies, what it is in these parts.
std::vector<Poly> Lowerer::loop_sizes(const LoopState& state, const std::vector<Operand>& leaves) {
  std::vector<Poly> result;
  for (BinderId binder : state.varying) {
    std::optional<Poly> size;
    for (std::size_t k = 0; k < leaves.size() && k < state.declared.size(); ++k) {
      const std::vector<Poly> shape = type_of(leaves[k]).shape;
      for (std::size_t d = 0; d < shape.size() && d < state.declared[k].size() && !size; ++d) {
        const auto* name = store_.get_if<SizeName>(state.declared[k][d].size);
        if (name && name->binder == binder) size = shape[d];
      }
    }
    if (!size) unsupported(location_, "a loop whose sizes depend on each other");
    result.push_back(*size);
  }
  for (const auto& dims : state.hidden) {
    const auto [part, dim] = dims.front();
    result.push_back(type_of(leaves[part]).shape[dim]);
  }
  return result;
}

// Parts of one value of an abstract type share its hidden sizes; those of two values are any two sizes.
void Lowerer::find_hidden_sizes(LoopState& state, const std::vector<std::size_t>& owners) {
  std::map<std::pair<std::size_t, std::uint32_t>, std::size_t> known;
  for (std::size_t k = 0; k < state.start.size() && k < state.declared.size(); ++k) {
    const std::size_t rank = type_of(state.start[k]).shape.size();
    for (std::size_t d = 0; d < rank && d < state.declared[k].size(); ++d) {
      const Size size = store_.find(state.declared[k][d].size);
      if (store_.get_if<SizeVar>(size) == nullptr) continue;
      const auto [found, is_new] = known.try_emplace({owners[k], size.id}, state.hidden.size());
      if (is_new) state.hidden.emplace_back();
      state.hidden[found->second].emplace_back(k, d);
    }
  }
}

void Lowerer::bind_loop_sizes(const LoopState& state, const std::vector<Poly>& sizes) {
  for (const auto& [name, size] : ranges::views::zip(state.varying, sizes)) frame_->values[name] = StaticValue(size);
}

// Each size of a parameter is what it starts as, if it does not vary or is a parameter itself.
void Lowerer::type_loop_params(LoopState& state) {
  for (std::size_t k = 0; k < state.params.size(); ++k) {
    Type type = type_of(state.start[k]);
    for (std::size_t d = 0; d < type.rank() && k < state.declared.size() && d < state.declared[k].size(); ++d) {
      const auto size = size_value(state.declared[k][d].size, state.declared[k][d].frame);
      bool inner = false;
      if (size) size->for_each_symbol([&](Value symbol) { inner = inner || symbol.id >= state.first_inner; });
      if (inner) type.shape[d] = *size;
    }
    for (std::size_t h = 0; h < state.hidden.size(); ++h)
      for (const auto& [part, dim] : state.hidden[h])
        if (part == k) type.shape[dim] = Poly(state.sizes[state.varying.size() + h]);
    builder_->values().set_type(state.params[k], std::move(type));
  }
}

// What a loop starts with or an iteration gives: the parts, those that may be sizes as such, and the sizes that vary.
struct Lowerer::LoopValues {
  std::vector<Operand> parts;
  std::vector<std::optional<Poly>> numbers;
  std::vector<Poly> sizes;
};

Lowerer::LoopValues Lowerer::loop_values(const LoopState& state, const StaticValue& value) {
  LoopValues result;
  result.parts = leaves(value);
  map_leaves(value, [&](const StaticValue& leaf) {
    result.numbers.push_back(leaf.index() ? std::optional(*leaf.index()) : std::nullopt);
    return leaf;
  });
  result.sizes = loop_sizes(state, result.parts);
  return result;
}

// A part on its way to its parameter, whose shape may mention other parameters: they are on their way with it.
Operand Lowerer::loop_operand(const LoopState& state, std::size_t leaf, const LoopValues& all) {
  std::vector<Poly> wanted = builder_->values().type(state.params[leaf]).shape;
  if (wanted.empty()) return all.parts[leaf];
  const std::vector<Poly> actual = type_of(all.parts[leaf]).shape;
  for (std::size_t d = 0; d < wanted.size(); ++d) {
    bool by_value = false;  // a size that the program itself yields need not be right
    wanted[d] = wanted[d].substitute([&](Value symbol) -> std::optional<Poly> {
      if (auto size = std::ranges::find(state.sizes, symbol); size != state.sizes.end())
        return all.sizes[static_cast<std::size_t>(size - state.sizes.begin())];
      const auto part = std::ranges::find(state.params, symbol);
      if (part == state.params.end()) return std::nullopt;
      by_value = true;
      return all.numbers[static_cast<std::size_t>(part - state.params.begin())];
    });
    if (by_value && d < actual.size())
      require_shape({wanted[d]}, {actual[d]}, std::string(to_text(type_of(all.parts[leaf]).element)));
  }
  return operand(with_sizes(StaticValue(all.parts[leaf]), wanted));
}

StaticValue Lowerer::lower_loop(const Expr& expr, const LoopExpr& loop) {
  const StaticValue initial = loop.initial ? lower(*loop.initial) : implied_initial(*loop.pattern);
  static const std::vector<BinderId> kNone;
  const auto varying = checked_.loop_sizes.find(expr.id);
  std::vector<std::size_t> owners;
  LoopState state{.loop = loop,
                  .varying = varying == checked_.loop_sizes.end() ? kNone : varying->second,
                  .declared = leaf_shapes(checked_.pattern_types[loop.pattern->id], &owners),
                  .start = leaves(initial)};
  find_hidden_sizes(state, owners);
  const auto* loop_while = std::get_if<While>(&loop.form);
  Loop result;
  std::optional<StaticValue> bound, array;
  if (const auto* less = std::get_if<ForLess>(&loop.form)) {
    bound = lower(*less->bound);
    result.bound = index(convert(ScalarType::i64, *bound));
  } else if (const auto* in = std::get_if<ForIn>(&loop.form)) {
    array = lower(*in->array);
    result.bound = length(*array);
  }
  const LoopValues first = loop_values(state, initial);
  const std::vector<Poly>& start_sizes = first.sizes;
  std::optional<Operand> going;
  if (loop_while) {
    // The condition is a parameter of its own, first; before the loop it is that of the initial values.
    bind_loop_sizes(state, start_sizes);
    bind_pattern(*loop.pattern, initial);
    going = operand(lower(*loop_while->condition));
    result.params.push_back(builder_->values().add(Type::scalar(ScalarType::boolean), "going"));
    result.initial.push_back(*going);
  }
  state.first_inner = static_cast<std::uint32_t>(builder_->values().size());
  for (std::size_t k = 0; k < start_sizes.size(); ++k)
    state.sizes.push_back(builder_->values().add(Type::scalar(ScalarType::i64), "d"));
  for (const Operand& operand : state.start) state.params.push_back(builder_->values().add(type_of(operand), "x"));
  const StaticValue inside = with_leaves(initial, std::vector<Operand>(state.params.begin(), state.params.end()));
  bind_loop_sizes(state, {state.sizes.begin(), state.sizes.end()});
  bind_pattern(*loop.pattern, inside);
  type_loop_params(state);
  for (const Poly& size : start_sizes) result.initial.push_back(operand(StaticValue(size)));
  for (std::size_t k = 0; k < state.start.size(); ++k) result.initial.push_back(loop_operand(state, k, first));
  result.params.insert(result.params.end(), state.sizes.begin(), state.sizes.end());
  result.params.insert(result.params.end(), state.params.begin(), state.params.end());
  if (!loop_while) {
    result.index = builder_->values().add(Type::scalar(ScalarType::i64), "i");
    known_.indices[result.index] = result.bound;
  }
  for (const Value size : state.sizes) know_count(Poly(size));
  result.body = body([&] {
    if (const auto* less = std::get_if<ForLess>(&loop.form)) {
      const StaticValue i = convert(scalar_type(checked_.pattern_types[less->pattern_id]), leaf(result.index));
      name_value(i, less->name);
      frame_->values[checked_.pattern_binders[less->pattern_id]] = i;
    } else if (const auto* in = std::get_if<ForIn>(&loop.form)) {
      bind_pattern(*in->pattern, take_dims(*array, {DimIndex::fix(Poly(result.index))}, false));
    }
    const StaticValue next = lower(*loop.body);
    const LoopValues given = loop_values(state, next);
    if (given.parts.size() != state.params.size()) unsupported(location_, "a loop whose body has another form");
    std::vector<Operand> parts, results;
    for (std::size_t k = 0; k < given.parts.size(); ++k) parts.push_back(loop_operand(state, k, given));
    if (loop_while) {
      bind_loop_sizes(state, given.sizes);
      bind_pattern(*loop.pattern, with_leaves(next, parts));
      results.push_back(operand(lower(*loop_while->condition)));
    }
    for (const Poly& size : given.sizes) results.push_back(operand(StaticValue(size)));
    results.insert(results.end(), parts.begin(), parts.end());
    return results;
  });
  std::vector<std::string> names(result.params.size(), "r");
  const std::size_t before = result.params.size() - state.params.size();
  std::fill(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(before), "d");
  const std::vector<Value> values = builder_->let_many(names, std::move(result));
  for (std::size_t k = before - state.sizes.size(); k < before; ++k) know_count(Poly(values[k]));
  return with_leaves(initial, {values.begin() + static_cast<std::ptrdiff_t>(before), values.end()});
}

}  // namespace apl::frontend
