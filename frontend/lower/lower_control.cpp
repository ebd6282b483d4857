// Branches, loops, asserts and the operators that evaluate their second operand only where it matters.
#include <algorithm>
#include <utility>

#include "frontend/lower/lowerer.h"
#include "ir/walk.h"

namespace apl::frontend {

namespace {

// A second operand of `&&` with more statements than this is worth skipping.
constexpr std::size_t kMaxEager = 8;

}  // namespace

// A nested body: what `fill` lowers goes into it.
BodyPtr Lowerer::body(const std::function<std::vector<Operand>()>& fill) {
  return builder_->body([&](Builder& inner) {
    Builder* outer = std::exchange(builder_, &inner);
    std::vector<Operand> results = fill();
    builder_ = outer;
    return results;
  });
}

StaticValue Lowerer::lower_if(const IfExpr& branch) {
  const Operand condition = operand(lower(*branch.condition));
  StaticValue form;
  std::vector<Type> types;
  const BodyPtr then_body = body([&] {
    form = lower(*branch.then_value);
    std::vector<Operand> results = leaves(form);
    for (const Operand& result : results) types.push_back(type_of(result));
    return results;
  });
  bool differ = false;
  const BodyPtr else_body = body([&] {
    std::vector<Operand> results = leaves(lower(*branch.else_value));
    // Sizes that are equal by type may still be written in two ways.
    for (std::size_t k = 0; k < results.size(); ++k) {
      differ = differ || type_of(results[k]).rank() != types[k].rank();
      if (!differ) results[k] = operand(coerced(StaticValue(results[k]), types[k].shape));
    }
    return results;
  });
  if (differ) unsupported(location_, "branches of different forms");
  require_outer_sizes(types, {then_body, else_body}, "the result of 'if'");
  const std::vector<Value> values = builder_->let_many({"r"}, If{condition, then_body, else_body});
  return with_leaves(form, {values.begin(), values.end()});
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
  if (!checked_indices_) return lower(*assertion.value);
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

StaticValue Lowerer::lower_loop(const LoopExpr& loop) {
  const StaticValue initial = loop.initial ? lower(*loop.initial) : implied_initial(*loop.pattern);
  std::vector<Operand> start = leaves(initial);
  Loop result;
  std::vector<Type> types;
  for (const Operand& operand : start) {
    types.push_back(type_of(operand));
    result.params.push_back(builder_->values().add(types.back(), "x"));
  }
  std::vector<Operand> params(result.params.begin(), result.params.end());
  const StaticValue state = with_leaves(initial, params);
  const auto* loop_while = std::get_if<While>(&loop.form);
  std::optional<StaticValue> bound, array;
  if (const auto* less = std::get_if<ForLess>(&loop.form)) {
    bound = lower(*less->bound);
    result.bound = index(convert(ScalarType::i64, *bound));
  } else if (const auto* in = std::get_if<ForIn>(&loop.form)) {
    array = lower(*in->array);
    result.bound = length(*array);
  } else {
    // The condition is a parameter of its own, first; before the loop it is that of the initial values.
    bind_pattern(*loop.pattern, initial);
    start.insert(start.begin(), operand(lower(*loop_while->condition)));
    const Type boolean = Type::scalar(ScalarType::boolean);
    result.params.insert(result.params.begin(), builder_->values().add(boolean, "going"));
  }
  if (!loop_while) result.index = builder_->values().add(Type::scalar(ScalarType::i64), "i");
  result.initial = start;
  result.body = body([&] {
    bind_pattern(*loop.pattern, state);
    if (const auto* less = std::get_if<ForLess>(&loop.form)) {
      const StaticValue i = convert(scalar_type(checked_.pattern_types[less->pattern_id]), leaf(result.index));
      name_value(i, less->name);
      frame_->values[checked_.pattern_binders[less->pattern_id]] = i;
    } else if (const auto* in = std::get_if<ForIn>(&loop.form)) {
      bind_pattern(*in->pattern, take_dims(*array, {DimIndex::fix(Poly(result.index))}, false));
    }
    const StaticValue next = lower(*loop.body);
    std::vector<Operand> results = leaves(next);
    for (std::size_t k = 0; k < results.size(); ++k)
      results[k] = operand(coerced(StaticValue(results[k]), types[k].shape));
    if (loop_while) {
      bind_pattern(*loop.pattern, with_leaves(next, results));
      results.insert(results.begin(), operand(lower(*loop_while->condition)));
    }
    return results;
  });
  std::vector<Value> values = builder_->let_many({"r"}, std::move(result));
  if (loop_while) values.erase(values.begin());
  return with_leaves(initial, {values.begin(), values.end()});
}

}  // namespace apl::frontend
