// Scatters and histograms in reverse. A row that was added gets the cotangent of the element where it went; of several
// that a scatter wrote to one element, the last.
// Histograms of other operators are computed once more, one element after the other, to know what each was folded into.
#include <range/v3/view/zip.hpp>

#include <algorithm>

#include "ir/differentiate/reverse.h"

namespace apl::differentiation {

namespace {

Operand in_bounds(Builder& b, const std::vector<Operand>& position, const Type& array) {
  std::optional<Operand> result;
  const auto both = [&](Operand more) {
    result = result ? Operand(b.binary(BinaryOp::conj, *result, more, "inside")) : more;
  };
  for (const auto& [at, size] : ranges::views::zip(position, array.shape)) {
    both(b.compare(CompareOp::le, i64_constant(0), at));
    both(b.compare(CompareOp::lt, at, Operand(b.size(size))));
  }
  return *result;
}

std::vector<DimIndex> row_at(const std::vector<Operand>& position) {
  std::vector<DimIndex> dims;
  for (const Operand& x : position) dims.push_back(DimIndex::fix(as_poly(x)));
  return dims;
}

// For each element the last index that names it, or -1.
Value last_writers(Builder& b, const Scatter& op, const std::vector<Value>& positions, const Type& target) {
  Scatter writers;
  writers.widths = op.widths;
  writers.indices = {b.values().add(Type::scalar(ScalarType::i64), "i")};
  writers.inputs = positions;
  for (std::size_t d = 0; d < op.rank; ++d)
    writers.map.params.push_back(b.values().add(Type::scalar(ScalarType::i64), "at"));
  std::vector<Operand> results(writers.map.params.begin(), writers.map.params.end());
  results.emplace_back(writers.indices.front());
  writers.map.body = make_body({}, std::move(results));
  writers.rank = op.rank;
  const auto end = target.shape.begin() + static_cast<std::ptrdiff_t>(op.rank);
  writers.targets = {b.let("writers", Replicate{{target.shape.begin(), end}, i64_constant(-1)})};
  writers.op = b.reduce_op(BinaryOp::max, Scalar::integer(ScalarType::i64, -1));
  return b.let("writers", std::move(writers));
}

}  // namespace

void Reverse::back_scatter(Builder& b, const Stm& stm, const Scatter& op, const Kept& kept) {
  if (op.op && as_elementwise_op(op.op->op) != BinaryOp::add) return back_hist(b, stm, op, kept);
  const std::vector<Value> positions(op.inputs.begin(), op.inputs.begin() + static_cast<std::ptrdiff_t>(op.rank));
  Value writers;
  for (std::size_t k = 0; k < op.targets.size(); ++k) {
    const std::optional<Operand> seed = cotangent(Operand(stm.pattern[k]));
    if (!seed) continue;
    const Type whole = b.type(*seed), row = whole.row(op.rank);
    const Value given = op.inputs[op.rank + k];
    if (activity_.contains(given)) {
      if (!op.op && writers == Value()) writers = last_writers(b, op, positions, whole);
      const std::vector<Value> made =
          b.screma({"ds"}, op.widths, positions,
                   [&](Builder& inner, BoundValues all) {
                     const std::vector<Operand> position(all.begin() + 1, all.end());
                     const Operand inside = in_bounds(inner, position, whole);
                     Operand counts = inside;
                     if (!op.op)
                       counts = inner.if_else(
                           "last", inside,
                           [&](Builder& then) {
                             const Value writer = then.let("writer", Index{writers, row_at(position), false});
                             return Operand(then.compare(CompareOp::eq, Operand(writer), Operand(all[0])));
                           },
                           [&](Builder&) { return Operand(Scalar::boolean(false)); });
                     return std::vector<Operand>{inner.if_else(
                         "d", counts,
                         [&](Builder& then) {
                           return Operand(then.let("d", Index{seed->value(), row_at(position), false}));
                         },
                         [&](Builder& otherwise) { return zero_of(otherwise, row); })};
                   },
                   {});
      add(b, Operand(given), Operand(made.front()));
    }
    if (op.op) {
      add(b, Operand(op.targets[k]), *seed);
    } else if (activity_.contains(op.targets[k])) {
      Scatter zeros;
      zeros.widths = op.widths;
      zeros.indices = {values_.add(Type::scalar(ScalarType::i64), "i")};
      zeros.inputs = positions;
      for (std::size_t d = 0; d < op.rank; ++d)
        zeros.map.params.push_back(values_.add(Type::scalar(ScalarType::i64), "at"));
      zeros.map.body = b.body([&](Builder& inner) {
        std::vector<Operand> results(zeros.map.params.begin(), zeros.map.params.end());
        results.push_back(zero_of(inner, row));
        return results;
      });
      zeros.rank = op.rank;
      zeros.targets = {b.let("ds", Copy{seed->value()})};
      add(b, Operand(op.targets[k]), Operand(b.let("ds", std::move(zeros))));
    }
  }
}

void Reverse::back_hist(Builder& b, const Stm& stm, const Scatter& op, const Kept& kept) {
  const ReduceOp& fold = *op.op;
  const std::size_t n = op.targets.size();
  std::vector<Value> outer = active_free(*fold.op.body);
  std::erase_if(outer, [&](Value v) { return std::ranges::find(fold.op.params, v) != fold.op.params.end(); });
  if (!outer.empty())
    throw Refusal{make_error(Code::unsupported_construct, stm.location,
                             "the derivative of a histogram whose operator reads what varies cannot be compiled yet")};
  remark(stm.location, "the derivative of this histogram goes through its elements in a loop");
  const Poly count = op.widths.front();
  const Type whole = values_.type(op.targets.front());
  const auto position_at = [&](Builder& at, const Poly& i) {
    std::vector<Operand> position;
    for (std::size_t d = 0; d < op.rank; ++d) position.emplace_back(at.index(op.inputs[d], {i}, "at"));
    return position;
  };
  const auto with = [](Builder& at, Value array, std::vector<DimIndex> dims, const Operand& row) {
    const Value copy = at.let("xs", Copy{array});
    return Operand(at.let("xs", Update{copy, std::move(dims), row, false}));
  };
  // What each element was folded into.
  std::vector<Operand> start;
  for (const Value array : kept.arrays) start.emplace_back(array);
  for (std::size_t k = 0; k < n; ++k) start.push_back(zero_of(b, values_.type(op.inputs[op.rank + k])));
  const std::vector<Value> forth = b.for_loop_many({"xs"}, count, start, [&](Builder& inner, BoundValues all) {
    const Poly i(all[0]);
    const std::vector<Operand> position = position_at(inner, i);
    const std::vector<Value> now(all.begin() + 1, all.end());
    const std::vector<Value> next = inner.if_else_many(
        {"xs"}, in_bounds(inner, position, whole),
        [&](Builder& then) {
          std::vector<Operand> arguments, old, results;
          for (std::size_t k = 0; k < n; ++k) {
            // A copy: the array is written next.
            const Value row = then.let("old", Index{now[k], row_at(position), false});
            old.emplace_back(values_.type(row).is_array() ? then.let("old", Copy{row}) : row);
          }
          arguments = old;
          for (std::size_t k = 0; k < n; ++k) arguments.emplace_back(then.index(op.inputs[op.rank + k], {i}));
          const std::vector<Operand> folded = inline_lambda(fold.op, arguments, values_, then.stms());
          for (std::size_t k = 0; k < n; ++k) results.push_back(with(then, now[k], row_at(position), folded[k]));
          for (std::size_t k = 0; k < n; ++k) results.push_back(with(then, now[n + k], {DimIndex::fix(i)}, old[k]));
          return results;
        },
        [&](Builder&) { return std::vector<Operand>(now.begin(), now.end()); });
    return std::vector<Operand>(next.begin(), next.end());
  });
  std::vector<std::size_t> varying;
  for (std::size_t k = 0; k < n; ++k)
    if (activity_.contains(stm.pattern[k])) varying.push_back(k);
  const std::size_t m = varying.size();
  std::vector<Operand> carried;
  for (const std::size_t k : varying) carried.push_back(cotangent_or_zero(b, Operand(stm.pattern[k])));
  for (const std::size_t k : varying) carried.push_back(zero_of(b, values_.type(op.inputs[op.rank + k])));
  const std::vector<Value> made =
      backwards(b, count, carried, {}, [&](Builder& inner, const Poly& at, const std::vector<Value>& now) {
        const Poly i(inner.size(at, "i"));
        const std::vector<Operand> position = position_at(inner, i);
        const std::vector<Value> next = inner.if_else_many(
            {"ds"}, in_bounds(inner, position, whole),
            [&](Builder& then) {
              return scope({}, [&] {
                Substitution map;
                std::vector<Value> a, x;
                for (std::size_t k = 0; k < n; ++k) {
                  a.push_back(fresh_param(then, fold.op.params[k], Operand(then.index(forth[n + k], {i})), map));
                  const Value row = then.index(op.inputs[op.rank + k], {i});
                  x.push_back(fresh_param(then, fold.op.params[n + k], Operand(row), map));
                }
                const BodyPtr body = copy_fresh(fold.op.body, map, values_, values_);
                activity_.learn(*body);
                sweep(then, *body, [&] {
                  for (std::size_t j = 0; j < m; ++j)
                    add(then, body->results[varying[j]],
                        Operand(then.let("d", Index{now[j], row_at(position), false})));
                });
                std::vector<Operand> results;
                for (std::size_t j = 0; j < m; ++j)
                  results.push_back(
                      with(then, now[j], row_at(position), cotangent_or_zero(then, Operand(a[varying[j]]))));
                for (std::size_t j = 0; j < m; ++j)
                  results.push_back(
                      with(then, now[m + j], {DimIndex::fix(i)}, cotangent_or_zero(then, Operand(x[varying[j]]))));
                return results;
              });
            },
            [&](Builder&) { return std::vector<Operand>(now.begin(), now.end()); });
        return std::vector<Operand>(next.begin(), next.end());
      });
  for (std::size_t j = 0; j < m; ++j) {
    add(b, Operand(op.targets[varying[j]]), Operand(made[j]));
    add(b, Operand(op.inputs[op.rank + varying[j]]), Operand(made[m + j]));
  }
}

}  // namespace apl::differentiation
