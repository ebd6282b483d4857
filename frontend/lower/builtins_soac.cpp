// map, reduce and their kin, and functions on functions.
#include <range/v3/view/zip.hpp>

#include <utility>

#include "frontend/lower/lowerer.h"
#include "ir/walk.h"

namespace apl::frontend {

// The rows of the arrays inside a lambda over `widths`, which gets the leaves that must be streamed.
Lowerer::Values Lowerer::stream(const std::vector<Poly>& widths, const std::vector<Value>& indices,
                                const Values& arrays, std::vector<Value>& inputs, std::vector<Value>& params) {
  Values rows;
  for (const StaticValue& array : arrays) {
    rows.push_back(map_leaves(with_length(array, widths.front()), [&](const StaticValue& leaf) {
      const Value base = this->array(leaf);
      // An element of `iota n` is the index itself.
      if (iotas_.count(base) > 0) return StaticValue(Poly(indices.front()));
      const Value row = builder_->values().add(builder_->values().type(base).row(), "x");
      inputs.push_back(base);
      params.push_back(row);
      return this->leaf(row);
    }));
  }
  return rows;
}

// A map over `widths`: `fill` lowers one element, from the rows of the arrays and the indices.
StaticValue Lowerer::screma(const std::vector<Poly>& widths, const Values& arrays,
                            const std::function<StaticValue(const Values&, const std::vector<Value>&)>& fill) {
  Screma map;
  map.widths = widths;
  for (std::size_t k = 0; k < widths.size(); ++k)
    map.indices.push_back(builder_->values().add(Type::scalar(ScalarType::i64), "i"));
  for (const auto& [width, index] : ranges::views::zip(widths, map.indices)) known_.indices[index] = width;
  const Values rows = stream(widths, map.indices, arrays, map.inputs, map.map.params);
  StaticValue form;
  std::vector<Type> types;
  map.map.body = body([&] {
    form = fill(rows, map.indices);
    if (!form.is_first_order()) unsupported(location_, "an array of functions");
    std::vector<Operand> results = leaves(form);
    for (const Operand& result : results) types.push_back(type_of(result));
    return results;
  });
  std::vector<Value> params = map.map.params;
  params.insert(params.end(), map.indices.begin(), map.indices.end());
  map.map.body = hoist_sizes(map.map.body, params, types);
  require_outer_sizes(types, {map.map.body}, "an array element");
  for (const Type& type : types)
    for (const Poly& size : type.shape) check_size(size, "an array");
  const std::vector<Value> results = builder_->let_many({"xs"}, std::move(map));
  for (const Value result : results)
    if (type_of(result).rank() > 1) made_at_[result] = location_;
  if (form.fields() && form.fields()->empty()) return StaticValue(Operand(results.front()));
  std::size_t next = 0;
  return map_leaves(form, [&](const StaticValue&) { return StaticValue(Operand(results[next++])); });
}

StaticValue Lowerer::map(const StaticValue& function, const Values& arrays) {
  return screma({length(arrays.front())}, arrays,
                [&](const Values& rows, const std::vector<Value>&) { return apply(function, rows); });
}

StaticValue Lowerer::tabulate(const std::vector<Poly>& widths, std::size_t dim, const StaticValue& function) {
  if (dim == 0)
    for (const Poly& width : widths) check_size(width, "a map");
  return screma({widths[dim]}, {}, [&](const Values&, const std::vector<Value>& indices) {
    const StaticValue rest = apply(function, {StaticValue(Poly(indices.front()))});
    return dim + 1 == widths.size() ? rest : tabulate(widths, dim + 1, rest);
  });
}

StaticValue Lowerer::builtin_function(Builtin builtin) {
  static constexpr PreludeEntry kEntries[] = {
      {Builtin::add, "+", 2, {}, {}},   {Builtin::mul, "*", 2, {}, {}},   {Builtin::min, "min", 2, {}, {}},
      {Builtin::max, "max", 2, {}, {}}, {Builtin::both, "&&", 2, {}, {}}, {Builtin::either, "||", 2, {}, {}},
  };
  for (const PreludeEntry& entry : kEntries)
    if (entry.builtin == builtin)
      return make_closure({.what = Closure::Builtin{&entry, nullptr, nullptr}, .arity = 2, .arguments = {}});
  unsupported(location_, "this operator");
}

// Whether the operator is one of the prelude's that commute, so that no pass has to find it out again.
bool Lowerer::is_commutative(const StaticValue& op) const {
  const Closure* closure = op.closure();
  const auto* builtin = closure && closure->arguments.empty() ? std::get_if<Closure::Builtin>(&closure->what) : nullptr;
  if (builtin == nullptr) return false;
  switch (builtin->entry->builtin) {
    case Builtin::add:
    case Builtin::mul:
    case Builtin::min:
    case Builtin::max:
    case Builtin::both:
    case Builtin::either:
    case Builtin::bit_and:
    case Builtin::bit_or:
    case Builtin::bit_xor: return true;
    default: return false;
  }
}

// The operator over rows of the given types.
ReduceOp Lowerer::reduce_op(const StaticValue& op, const StaticValue& neutral, const std::vector<Type>& rows) {
  ReduceOp operation;
  operation.commutative = is_commutative(op);
  operation.neutral = leaves(neutral);
  std::vector<Operand> left, right;
  for (const Type& row : rows) left.emplace_back(builder_->values().add(row, "a"));
  for (const Operand& operand : left) right.emplace_back(builder_->values().add(type_of(operand), "b"));
  for (const Operand& operand : left) operation.op.params.push_back(operand.value());
  for (const Operand& operand : right) operation.op.params.push_back(operand.value());
  for (auto&& [neutral, like] : ranges::views::zip(operation.neutral, left))
    neutral = operand(coerced(StaticValue(neutral), type_of(like).shape));
  operation.op.body = body([&] {
    std::vector<Operand> results = leaves(apply(op, {with_leaves(neutral, left), with_leaves(neutral, right)}));
    for (auto&& [result, like] : ranges::views::zip(results, left))
      result = operand(coerced(StaticValue(result), type_of(like).shape));
    return results;
  });
  return operation;
}

StaticValue Lowerer::reduce(const StaticValue& op, const StaticValue& neutral, const StaticValue& array,
                            bool commutative, bool scan) {
  Screma reduction;
  reduction.widths = {length(array)};
  reduction.indices = {builder_->values().add(Type::scalar(ScalarType::i64), "i")};
  std::vector<Operand> rows;
  std::vector<Type> types;
  for (const Operand& leaf : leaves(with_length(array, reduction.widths.front()))) {
    const Value base = this->array(StaticValue(leaf));
    types.push_back(builder_->values().type(base).row());
    const Value element = builder_->values().add(types.back(), "x");
    reduction.inputs.push_back(base);
    reduction.map.params.push_back(element);
    rows.emplace_back(element);
  }
  reduction.map.body = make_body({}, rows);
  ReduceOp operation = reduce_op(op, neutral, types);
  operation.commutative = operation.commutative || commutative;
  operation.scan = scan;
  reduction.reduces.push_back(std::move(operation));
  const std::vector<Value> results = builder_->let_many({scan ? "scanned" : "r"}, std::move(reduction));
  return with_leaves(neutral, {results.begin(), results.end()});
}

// The scan without each index's own element: that of the index before.
StaticValue Lowerer::exscan(const StaticValue& op, const StaticValue& neutral, const StaticValue& array) {
  const StaticValue scanned = reduce(op, neutral, array, false, true);
  return screma({length(array)}, {}, [&](const Values&, const std::vector<Value>& indices) {
    const Poly i(indices.front());
    const Value is_first = builder_->compare(CompareOp::eq, Operand(indices.front()), i64_constant(0));
    const BodyPtr first = body([&] { return leaves(neutral); });
    const BodyPtr other = body([&] { return leaves(take_dims(scanned, {DimIndex::fix(i - 1)}, false)); });
    const std::vector<Value> results = builder_->let_many({"x"}, If{is_first, first, other});
    return with_leaves(neutral, {results.begin(), results.end()});
  });
}

// `target` with the values where the indices, a scalar or a tuple each, say; folded in if there is an operator.
StaticValue Lowerer::scatter(const StaticValue& target, const StaticValue& places, const StaticValue& given,
                             const StaticValue* op, const StaticValue* neutral) {
  Scatter result;
  result.widths = {length(places)};
  result.indices = {builder_->values().add(Type::scalar(ScalarType::i64), "i")};
  result.rank = leaves(places).size();
  std::vector<Type> rows;
  for (const Operand& leaf : leaves(target)) {
    // As with updates: whether the copy can go is for later passes to find out.
    result.targets.push_back(builder_->let("xs", Copy{array(StaticValue(leaf))}));
    rows.push_back(builder_->values().type(result.targets.back()).row(result.rank));
  }
  const Values parts = stream(result.widths, result.indices, {places, given}, result.inputs, result.map.params);
  result.map.body = body([&] {
    std::vector<Operand> results = leaves(parts[0]);
    std::size_t k = 0;
    for (const Operand& row : leaves(parts[1])) {
      results.push_back(operand(coerced(StaticValue(row), rows[k].shape)));
      ++k;
    }
    return results;
  });
  if (op != nullptr) result.op = reduce_op(*op, *neutral, rows);
  const std::vector<Value> results = builder_->let_many({"xs"}, std::move(result));
  return with_leaves(target, {results.begin(), results.end()});
}

// The function's value and, in the direction of the seed, its tangent or cotangent.
StaticValue Lowerer::derivative(Derivative::Mode mode, const StaticValue& function, const StaticValue& argument,
                                const StaticValue& seed) {
  const bool forward = mode == Derivative::Mode::forward;
  Derivative result{.mode = mode, .arguments = leaves(argument), .seeds = leaves(seed), .function = {}};
  std::vector<Operand> params;
  for (const Operand& leaf : result.arguments) {
    result.function.params.push_back(builder_->values().add(type_of(leaf), "x"));
    params.emplace_back(result.function.params.back());
  }
  StaticValue form;
  std::vector<Type> types;
  const bool in_derivative = std::exchange(in_derivative_, true);
  result.function.body = body([&] {
    form = apply(function, {with_leaves(argument, params)});
    std::vector<Operand> results = leaves(form);
    for (const Operand& operand : results) types.push_back(type_of(operand));
    return results;
  });
  in_derivative_ = in_derivative;
  result.function.body = hoist_sizes(result.function.body, result.function.params, types);
  require_outer_sizes(types, {result.function.body}, "the derivative of a function with a result");
  for (std::size_t k = 0; k < result.seeds.size(); ++k) {
    const Type like = forward ? type_of(result.arguments[k]) : types[k];
    result.seeds[k] = operand(coerced(StaticValue(result.seeds[k]), like.shape));
  }
  const std::vector<Value> made = builder_->let_many({"y"}, std::move(result));
  const auto middle = made.begin() + static_cast<std::ptrdiff_t>(types.size());
  return tuple_value(
      {with_leaves(form, {made.begin(), middle}), with_leaves(forward ? form : argument, {middle, made.end()})});
}

// A loop that starts with `initial` and runs `bound` times, or else as long as `going` holds.
StaticValue Lowerer::repeat(const StaticValue& initial, const std::optional<Poly>& bound,
                            const std::function<StaticValue(const StaticValue& state)>& going,
                            const std::function<StaticValue(const StaticValue& state, const Poly& i)>& next) {
  Loop loop;
  loop.initial = leaves(initial);
  std::vector<Operand> params;
  for (const Operand& operand : loop.initial) {
    loop.params.push_back(builder_->values().add(type_of(operand), "a"));
    params.emplace_back(loop.params.back());
  }
  const auto go_on = [&](std::vector<Operand>& results) {
    if (!bound) results.insert(results.begin(), operand(going(with_leaves(initial, results))));
  };
  if (bound) {
    loop.index = builder_->values().add(Type::scalar(ScalarType::i64), "i");
    loop.bound = *bound;
  } else {
    loop.params.insert(loop.params.begin(), builder_->values().add(Type::scalar(ScalarType::boolean), "going"));
  }
  go_on(loop.initial);
  loop.body = body([&] {
    const Poly i = bound ? Poly(loop.index) : Poly(0);
    std::vector<Operand> results = leaves(next(with_leaves(initial, params), i));
    for (auto&& [result, param] : ranges::views::zip(results, params))
      result = operand(coerced(StaticValue(result), type_of(param).shape));
    go_on(results);
    return results;
  });
  std::vector<Value> results = builder_->let_many({"r"}, std::move(loop));
  if (!bound) results.erase(results.begin());
  return with_leaves(initial, {results.begin(), results.end()});
}

// The elements whose flags `keeps` accepts, in order: a scan says where each goes, a scatter brings them there. Their
// number, if it is not given, is what the scan ends with.
StaticValue Lowerer::kept(const StaticValue& flags, const std::function<StaticValue(const StaticValue&)>& keeps,
                          const std::optional<Poly>& count, const StaticValue& array) {
  const Poly n = length(array);
  const StaticValue ones = screma({n}, {flags}, [&](const Values& rows, const std::vector<Value>&) {
    return StaticValue(Operand(builder_->convert(ScalarType::i64, operand(keeps(rows[0])))));
  });
  const StaticValue ends =
      reduce(builtin_function(Builtin::add), scalar(Scalar::integer(ScalarType::i64, 0)), ones, true, true);
  Poly size;
  if (count) {
    size = *count;
  } else {
    const Value some = builder_->compare(CompareOp::lt, i64_constant(0), operand(StaticValue(n)));
    const BodyPtr last = body([&] { return leaves(take_dims(ends, {DimIndex::fix(n - 1)}, false)); });
    size = Poly(builder_->let("kept", If{some, last, make_body({}, {i64_constant(0)})}));
    know_count(size);
  }
  Scatter result;
  result.widths = {n};
  result.indices = {builder_->values().add(Type::scalar(ScalarType::i64), "i")};
  for (const Operand& leaf : leaves(array)) {
    Type type = type_of(leaf);
    type.shape.front() = size;
    result.targets.push_back(builder_->let("xs", Scratch{type.element, type.shape}));
  }
  const Values parts = stream(result.widths, result.indices, {flags, ends, array}, result.inputs, result.map.params);
  result.map.body = body([&] {
    const BodyPtr place = body([&] { return std::vector<Operand>{operand(StaticValue(index(parts[1]) - 1))}; });
    const Value at = builder_->let("at", If{operand(keeps(parts[0])), place, make_body({}, {i64_constant(-1)})});
    std::vector<Operand> results = leaves(parts[2]);
    results.insert(results.begin(), Operand(at));
    return results;
  });
  const std::vector<Value> results = builder_->let_many({"xs"}, std::move(result));
  return with_leaves(array, {results.begin(), results.end()});
}

StaticValue Lowerer::filter(const StaticValue& predicate, const StaticValue& array) {
  const StaticValue flags = map(predicate, {array});
  return kept(
      flags, [](const StaticValue& flag) { return flag; }, {}, array);
}

// The elements that each predicate is the first to hold for, then the rest.
StaticValue Lowerer::partition(const Values& predicates, const StaticValue& array) {
  const StaticValue classes = screma({length(array)}, {array}, [&](const Values& rows, const std::vector<Value>&) {
    StaticValue result = scalar(Scalar::integer(ScalarType::i8, static_cast<std::int64_t>(predicates.size())));
    for (std::size_t k = predicates.size(); k-- > 0;) {
      const BodyPtr here = make_body({}, {Operand(Scalar::integer(ScalarType::i8, static_cast<std::int64_t>(k)))});
      result = StaticValue(Operand(
          builder_->let("part", If{operand(apply(predicates[k], {rows[0]})), here, make_body({}, {operand(result)})})));
    }
    return result;
  });
  Values parts;
  Poly rest = length(array);
  for (std::size_t k = 0; k <= predicates.size(); ++k) {
    const StaticValue wanted = scalar(Scalar::integer(ScalarType::i8, static_cast<std::int64_t>(k)));
    const auto keeps = [&](const StaticValue& part) { return compare(CompareOp::eq, part, wanted); };
    parts.push_back(kept(classes, keeps, k == predicates.size() ? std::optional(rest) : std::nullopt, array));
    rest -= length(parts.back());
  }
  return tuple_value(std::move(parts));
}

std::optional<StaticValue> Lowerer::run_soac(const Closure::Builtin& builtin, const Values& x) {
  auto neutral = [&](std::int64_t value) {
    const ScalarType type = *builtin.use->module;
    return is_float(type) ? scalar(Scalar::floating(type, static_cast<double>(value)))
                          : scalar(Scalar::integer(type, value));
  };
  auto truth = [&](bool value) { return StaticValue(Operand(Scalar::boolean(value))); };
  switch (builtin.entry->builtin) {
    case Builtin::map: return map(x[0], {x.begin() + 1, x.end()});
    case Builtin::reduce: return reduce(x[0], x[1], x[2], false);
    case Builtin::reduce_comm: return reduce(x[0], x[1], x[2], true);
    case Builtin::filter: return filter(x[0], x[1]);
    case Builtin::partition: return partition({x.begin(), x.end() - 1}, x.back());
    case Builtin::scan: return reduce(x[0], x[1], x[2], false, true);
    case Builtin::exscan: return exscan(x[0], x[1], x[2]);
    case Builtin::scatter: return scatter(x[0], x[1], x[2]);
    case Builtin::spread: return scatter(replicate(index(x[0]), x[1]), x[2], x[3]);
    case Builtin::reduce_by_index: return scatter(x[0], x[3], x[4], &x[1], &x[2]);
    case Builtin::hist: return scatter(replicate(index(x[2]), x[1]), x[3], x[4], &x[0], &x[1]);
    case Builtin::jvp2: return derivative(Derivative::Mode::forward, x[0], x[1], x[2]);
    case Builtin::vjp2: return derivative(Derivative::Mode::reverse, x[0], x[1], x[2]);
    case Builtin::sum: return reduce(builtin_function(Builtin::add), neutral(0), x[0], true);
    case Builtin::product: return reduce(builtin_function(Builtin::mul), neutral(1), x[0], true);
    case Builtin::minimum:
      return reduce(builtin_function(Builtin::min), *run_constant(Builtin::highest, *builtin.use->module), x[0], true);
    case Builtin::maximum:
      return reduce(builtin_function(Builtin::max), *run_constant(Builtin::lowest, *builtin.use->module), x[0], true);
    case Builtin::all:
      return reduce(builtin_function(Builtin::both), truth(true), x.size() == 1 ? x[0] : map(x[0], {x[1]}), true);
    case Builtin::any:
      return reduce(builtin_function(Builtin::either), truth(false), x.size() == 1 ? x[0] : map(x[0], {x[1]}), true);
    case Builtin::foldl:
    case Builtin::foldr: {
      const bool left = builtin.entry->builtin == Builtin::foldl;
      const Poly count = length(x[2]);
      return repeat(x[1], count, {}, [&](const StaticValue& state, const Poly& i) {
        const StaticValue element = take_dims(x[2], {DimIndex::fix(left ? i : count - 1 - i)}, false);
        return left ? apply(x[0], {state, element}) : apply(x[0], {element, state});
      });
    }
    case Builtin::iterate:
      return repeat(x[2], index(convert(ScalarType::i64, x[0])), {},
                    [&](const StaticValue& state, const Poly&) { return apply(x[1], {state}); });
    case Builtin::iterate_until:
    case Builtin::iterate_while:
      return repeat(
          x[2], {},
          [&](const StaticValue& state) {
            const StaticValue holds = apply(x[0], {state});
            return builtin.entry->builtin == Builtin::iterate_while ? holds : unary(UnaryOp::complement, holds);
          },
          [&](const StaticValue& state, const Poly&) { return apply(x[1], {state}); });
    case Builtin::tabulate: {
      std::vector<Poly> widths;
      for (std::size_t k = 0; k + 1 < x.size(); ++k) widths.push_back(safe_size(index(x[k])));
      return tabulate(widths, 0, x.back());
    }
    case Builtin::pipe_right: return apply(x[1], {x[0]});
    case Builtin::pipe_left: return apply(x[0], {x[1]});
    case Builtin::then: return apply(x[1], {apply(x[0], {x[2]})});
    case Builtin::after: return apply(x[0], {apply(x[1], {x[2]})});
    case Builtin::id:
    case Builtin::constant: return x[0];
    case Builtin::opaque:
      if (builtin.entry->name == "trace") trace(x[0], "");
      return x[0];
    case Builtin::flip: return apply(x[0], {x[2], x[1]});
    case Builtin::curry: return apply(x[0], {tuple_value({x[1], x[2]})});
    case Builtin::uncurry: return apply(x[0], {project(x[1], "0"), project(x[1], "1")});
    default: return std::nullopt;
  }
}

StaticValue Lowerer::use_builtin(const Closure::Builtin& builtin) {
  if (builtin.entry->arity > 0)
    return make_closure({.what = builtin, .arity = static_cast<std::size_t>(builtin.entry->arity), .arguments = {}});
  if (auto constant = run_constant(builtin.entry->builtin, *builtin.use->module)) return *constant;
  unsupported(location_, "\"" + std::string(builtin.entry->name) + "\"");
}

StaticValue Lowerer::run_builtin(const Closure::Builtin& builtin, const Values& arguments) {
  if (auto result = run_scalar_builtin(builtin, arguments)) return *result;
  if (auto result = run_array_builtin(builtin, arguments)) return *result;
  if (auto result = run_soac(builtin, arguments)) return *result;
  unsupported(location_, "\"" + std::string(builtin.entry->name) + "\"");
}

}  // namespace apl::frontend
