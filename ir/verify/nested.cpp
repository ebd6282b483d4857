// The rules of operations with bodies and lambdas, up to the soac stage; and of calls.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ir/verify/check.h"
#include "ir/walk.h"

namespace apl::verifier {
namespace {

// What `from`, the sizes among the values bound together, have become in `to`.
Substitution where_bound(const Check& check, const std::vector<Value>& from, const std::vector<Operand>& to) {
  Substitution map;
  const Type size = Type::scalar(ScalarType::i64);
  for (std::size_t k = 0; k < from.size() && k < to.size(); ++k)
    if (check.type(from[k]).same(size) && check.type(to[k]).same(size)) map.emplace(from[k], to[k]);
  return map;
}

}  // namespace

namespace {

void check_condition(Check& check, const Stm& stm, const Operand& condition) {
  if (!check.type(condition).same(Type::scalar(ScalarType::boolean)))
    check.broken(stm,
                 fmt::format("the condition {} has type {}", check.text(condition), check.text(check.type(condition))));
}

void check_branches(Check& check, const Stm& stm, const std::vector<Operand>& a, const std::vector<Operand>& b) {
  if (a.size() != b.size())
    return check.broken(stm, fmt::format("the branches give {} and {} results", a.size(), b.size()));
  for (std::size_t k = 0; k < a.size(); ++k)
    if (!check.similar(check.type(a[k]), check.type(b[k])))
      check.broken(stm, fmt::format("result {} of the branches has types {} and {}", k + 1,
                                    check.text(check.type(a[k])), check.text(check.type(b[k]))));
  // A size that the branches decide is one of the results: in each branch it is what that branch gives.
  for (const std::vector<Operand>* given : {&a, &b}) {
    if (stm.pattern.size() != given->size()) continue;
    const Substitution sizes = where_bound(check, stm.pattern, *given);
    for (std::size_t k = 0; k < stm.pattern.size(); ++k) {
      const Type wanted = substitute(check.type(stm.pattern[k]), sizes);
      const Type actual = check.type((*given)[k]);
      if (!check.compatible(wanted, actual))
        check.broken(stm, fmt::format("{} of type {} is {} of type {} in a branch", check.name(stm.pattern[k]),
                                      check.text(wanted), check.text((*given)[k]), check.text(actual)));
    }
  }
}

}  // namespace

void check_op(Check& check, const Stm& stm, const If& op) {
  check_condition(check, stm, op.condition);
  check_branches(check, stm, op.then_body->results, op.else_body->results);
}

void check_op(Check& check, const Stm& stm, const Choose& op) {
  if (op.alternatives.empty()) return check.broken(stm, "there is no alternative");
  std::set<std::string> names;
  for (const Choose::Alternative& alternative : op.alternatives) {
    check_condition(check, stm, alternative.condition);
    if (!names.insert(alternative.name).second)
      check.broken(stm, fmt::format("two alternatives have the name '{}'", alternative.name));
    if (alternative.body != op.alternatives.front().body)
      check_branches(check, stm, op.alternatives.front().body->results, alternative.body->results);
  }
  const Operand& last = op.alternatives.back().condition;
  if (last != Operand(Scalar::boolean(true))) check.broken(stm, "the last alternative may not always run");
}

void check_op(Check& check, const Stm& stm, const Loop& op) {
  check_size(check, stm, op.bound);
  const std::size_t n = op.params.size();
  if (op.initial.size() != n || op.body->results.size() != n)
    return check.broken(stm, fmt::format("the loop has {} parameters, {} initial values and {} results", n,
                                         op.initial.size(), op.body->results.size()));
  // A size among the parameters changes from one iteration to the next.
  const Substitution at_first = where_bound(check, op.params, op.initial);
  const Substitution at_next = where_bound(check, op.params, op.body->results);
  for (std::size_t k = 0; k < n; ++k) {
    const Type initial = check.type(op.initial[k]);
    const Type next = check.type(op.body->results[k]);
    const Type first = substitute(check.type(op.params[k]), at_first);
    if (!check.compatible(first, initial))
      check.broken(stm, fmt::format("{} of type {} starts as {} of type {}", check.name(op.params[k]),
                                    check.text(first), check.text(op.initial[k]), check.text(initial)));
    const Type later = substitute(check.type(op.params[k]), at_next);
    if (!check.compatible(later, next))
      check.broken(stm, fmt::format("{} of type {} becomes {} of type {}", check.name(op.params[k]), check.text(later),
                                    check.text(op.body->results[k]), check.text(next)));
  }
  if (op.index) {
    if (!check.type(op.index).same(Type::scalar(ScalarType::i64)))
      check.broken(stm,
                   fmt::format("the index {} has type {}", check.name(op.index), check.text(check.type(op.index))));
  } else if (n == 0 || !check.type(op.params.front()).same(Type::scalar(ScalarType::boolean))) {
    check.broken(stm, "the first parameter of a while loop is its condition, a bool");
  }
}

void check_op(Check& check, const Stm& stm, const Apply& op) {
  const Function* callee = check.find(op.function);
  if (!callee) return check.broken(stm, fmt::format("there is no function `{}`", op.function));
  for (const Value size : callee->result_sizes)
    if (std::ranges::none_of(callee->results, [&](const Type& type) {
          return std::ranges::find(type.shape, Poly(size)) != type.shape.end();
        }))
      check.broken(stm, fmt::format("`{}` gives a size that is no dim of its results", op.function));
  const std::size_t needed = callee->sizes.size() + callee->params.size();
  if (op.arguments.size() != needed)
    return check.broken(stm, fmt::format("`{}` takes {} arguments, sizes included, but gets {}", op.function, needed,
                                         op.arguments.size()));
  for (std::size_t k = 0; k < needed; ++k) {
    const bool is_size = k < callee->sizes.size();
    const Type& formal = callee->type(is_size ? callee->sizes[k] : callee->params[k - callee->sizes.size()]);
    const Type actual = check.type(op.arguments[k]);
    // The shapes are in terms of another function's values: they are compared at run time.
    if (check.similar(formal, actual)) continue;
    check.broken(stm, fmt::format("argument {} of `{}`, {}, has type {}", k + 1, op.function,
                                  check.text(op.arguments[k]), check.text(actual)));
  }
}

void check_reduce(Check& check, const Stm& stm, const ReduceOp& reduce) {
  const std::size_t n = reduce.neutral.size();
  const Lambda& op = reduce.op;
  if (op.params.size() != 2 * n || op.body->results.size() != n)
    return check.broken(stm, fmt::format("a reduction over {} values has {} parameters and {} results", n,
                                         op.params.size(), op.body->results.size()));
  for (std::size_t k = 0; k < n; ++k) {
    const Type neutral = check.type(reduce.neutral[k]);
    for (const Type& type : {check.type(op.params[k]), check.type(op.params[n + k]), check.type(op.body->results[k])})
      if (!check.compatible(type, neutral))
        check.broken(stm, fmt::format("a reduction with a neutral element of type {} works on {}", check.text(neutral),
                                      check.text(type)));
  }
}

void check_reduced(Check& check, const Stm& stm, const Lambda& map, const std::vector<const ReduceOp*>& reduces) {
  std::size_t k = 0;
  for (const ReduceOp* reduce : reduces) {
    for (const Operand& neutral : reduce->neutral) {
      if (k >= map.body->results.size())
        return check.broken(stm, fmt::format("the map function gives {} results, too few for its reductions",
                                             map.body->results.size()));
      const Type result = check.type(map.body->results[k++]);
      if (!check.compatible(result, check.type(neutral)))
        check.broken(stm, fmt::format("{} is reduced with a neutral element of type {}", check.text(result),
                                      check.text(check.type(neutral))));
    }
  }
}

namespace {

// What Screma and Scatter stream.
void check_streams(Check& check, const Stm& stm, const std::vector<Poly>& widths, const std::vector<Value>& indices,
                   const std::vector<Value>& inputs, const Lambda& map) {
  if (widths.empty()) check.broken(stm, fmt::format("a {} without widths", op_name(stm.op)));
  for (const Poly& width : widths) check_size(check, stm, width);
  if (indices.size() != widths.size())
    check.broken(stm, fmt::format("{} indices for {} widths", indices.size(), widths.size()));
  for (Value index : indices)
    if (!check.type(index).same(Type::scalar(ScalarType::i64)))
      check.broken(stm, fmt::format("the index {} has type {}", check.name(index), check.text(check.type(index))));
  if (map.params.size() != inputs.size())
    return check.broken(
        stm, fmt::format("the map function has {} parameters for {} inputs", map.params.size(), inputs.size()));
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const Type& input = check.type(inputs[k]);
    bool fits = input.is_array() && input.rank() >= widths.size();
    for (std::size_t d = 0; fits && d < widths.size(); ++d) fits = check.may_be_equal(input.shape[d], widths[d]);
    if (!fits) {
      check.broken(stm,
                   fmt::format("{} of type {} does not have the widths", check.name(inputs[k]), check.text(input)));
      continue;
    }
    const Type row = input.row(widths.size());
    if (const Type& param = check.type(map.params[k]); !check.compatible(param, row))
      check.broken(stm, fmt::format("{} of type {} gets rows of type {}", check.name(map.params[k]), check.text(param),
                                    check.text(row)));
  }
}

}  // namespace

void check_op(Check& check, const Stm& stm, const Screma& op) {
  check_streams(check, stm, op.widths, op.indices, op.inputs, op.map);
  std::vector<const ReduceOp*> reduces;
  for (const ReduceOp& reduce : op.reduces) {
    check_reduce(check, stm, reduce);
    reduces.push_back(&reduce);
  }
  check_reduced(check, stm, op.map, reduces);
}

void check_op(Check& check, const Stm& stm, const Scatter& op) {
  // What streams into the lambda is as in a map.
  check_streams(check, stm, op.widths, op.indices, op.inputs, op.map);
  const std::vector<Operand>& rows = op.map.body->results;
  if (op.targets.empty()) return check.broken(stm, "no array is written");
  if (rows.size() != op.rank + op.targets.size())
    return check.broken(stm, fmt::format("{} indices and {} arrays take as many results, but there are {}", op.rank,
                                         op.targets.size(), rows.size()));
  for (std::size_t k = 0; k < op.rank; ++k)
    if (!check.type(rows[k]).same(Type::scalar(ScalarType::i64)))
      check.broken(stm, fmt::format("the index {} has type {}", check.text(rows[k]), check.text(check.type(rows[k]))));
  for (std::size_t k = 0; k < op.targets.size(); ++k) {
    const Type& target = check.type(op.targets[k]);
    const Type row = check.type(rows[op.rank + k]);
    if (!target.is_array() || target.rank() < op.rank || !check.compatible(row, target.row(op.rank))) {
      check.broken(stm, fmt::format("a row of type {} does not fit {} of type {}", check.text(row),
                                    check.name(op.targets[k]), check.text(target)));
    } else if (op.op && k < op.op->neutral.size() && !check.compatible(row, check.type(op.op->neutral[k]))) {
      check.broken(stm, fmt::format("{} is folded with a neutral element of type {}", check.text(row),
                                    check.text(check.type(op.op->neutral[k]))));
    }
  }
  if (!op.op) return;
  check_reduce(check, stm, *op.op);
  if (op.op->neutral.size() != op.targets.size())
    check.broken(stm,
                 fmt::format("the operator folds {} values into {} arrays", op.op->neutral.size(), op.targets.size()));
}

void check_op(Check& check, const Stm& stm, const Derivative& op) {
  const auto check_all = [&](const auto& wanted, const auto& given, const char* what) {
    if (wanted.size() != given.size())
      return check.broken(stm, fmt::format("{} {} for {} values", given.size(), what, wanted.size()));
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      if (const Type type = check.type(wanted[k]), its = check.type(given[k]); !check.compatible(type, its))
        check.broken(stm,
                     fmt::format("one of the {} is of type {}, {} is needed", what, check.text(its), check.text(type)));
    }
  };
  check_all(op.function.params, op.arguments, "arguments");
  if (op.mode == Derivative::Mode::forward)
    check_all(op.function.params, op.seeds, "tangents");
  else
    check_all(op.function.body->results, op.seeds, "cotangents");
}

}  // namespace apl::verifier
