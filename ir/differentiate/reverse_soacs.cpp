// Maps, reductions and scans in reverse.
//
// A map's transpose is a map of its lambda's transpose. A sum's is a copy for each element, a prefix sum's the sums
// from the other end, a minimum's goes to the first element that is the minimum. Any other reduction a_1 + .. + a_n is,
// for each i, l_i + a_i + r_i with what comes before and after by two scans. Any other scan goes back from its last
// element in a loop.
#include <fmt/format.h>
#include <range/v3/view/zip.hpp>

#include <algorithm>

#include "ir/differentiate/elements.h"
#include "ir/differentiate/reverse.h"

namespace apl::differentiation {

std::optional<BinaryOp> as_elementwise_op(const Lambda& lambda) {
  if (const auto op = as_binary_op(lambda)) return op;
  if (lambda.params.size() != 2 || lambda.body->stms.size() != 1 || lambda.body->results.size() != 1) return {};
  const Stm& stm = lambda.body->stms.front();
  const Screma* map = get_if<Screma>(stm);
  if (map == nullptr || !map->reduces.empty() || map->inputs.size() != 2 || stm.pattern.size() != 1) return {};
  if (lambda.body->results.front() != Operand(stm.pattern.front())) return {};
  const bool in_order = map->inputs[0] == lambda.params[0] && map->inputs[1] == lambda.params[1];
  const bool swapped = map->inputs[0] == lambda.params[1] && map->inputs[1] == lambda.params[0];
  const auto op = in_order || swapped ? as_elementwise_op(map->map) : std::nullopt;
  return op && (in_order || is_commutative(*op)) ? op : std::nullopt;
}

namespace {

// Of each result alone, as (a, b), (c, d) -> (a + c, b + d).
bool is_sum(const ReduceOp& op) {
  const std::size_t n = op.neutral.size();
  if (n == 1) return as_elementwise_op(op.op) == BinaryOp::add;
  if (op.op.body->stms.size() != n) return false;
  for (std::size_t k = 0; k < n; ++k) {
    const Operand& result = op.op.body->results[k];
    const Stm* stm = result.is_value() ? defining_stm(*op.op.body, result.value()) : nullptr;
    if (stm == nullptr) return false;
    const Lambda one{{op.op.params[k], op.op.params[n + k]}, make_body({*stm}, {result})};
    if (as_elementwise_op(one) != BinaryOp::add) return false;
  }
  return true;
}

Value reversed(Builder& b, Value array) {
  const Poly count = b.values().type(array).shape.front();
  return b.let("rev", Index{array, {DimIndex::slice(count - 1, count, -1)}, false});
}

// What a scan has before index i, from one end or the other.
std::vector<Operand> before(Builder& b, const std::vector<Value>& scanned, const std::vector<Operand>& neutral,
                            const Poly& i) {
  const Value is_first = b.compare(CompareOp::eq, b.size(i, "i"), i64_constant(0));
  const std::vector<Value> result = b.if_else_many(
      {"before"}, Operand(is_first), [&](Builder&) { return neutral; },
      [&](Builder& inner) {
        std::vector<Operand> rows;
        for (const Value array : scanned) rows.emplace_back(inner.index(array, {i - 1}));
        return rows;
      });
  return {result.begin(), result.end()};
}

std::vector<Value> scan_of(Builder& b, const ReduceOp& op, const std::vector<Value>& inputs, bool from_the_end) {
  ReduceOp scan = op;
  scan.scan = true;
  if (from_the_end) {
    const auto half = scan.op.params.begin() + static_cast<std::ptrdiff_t>(op.neutral.size());
    std::rotate(scan.op.params.begin(), half, scan.op.params.end());
  }
  std::vector<Value> arrays = inputs;
  if (from_the_end)
    for (Value& array : arrays) array = reversed(b, array);
  return b.screma({"scanned"}, {b.values().type(inputs.front()).shape.front()}, arrays,
                  [](Builder&, BoundValues all) { return std::vector<Operand>(all.begin() + 1, all.end()); }, {scan});
}

}  // namespace

void Reverse::back(Builder& b, const Stm& stm, const Screma& op) {
  if (op.reduces.empty()) return back_map(b, stm, op);
  const ReduceOp& reduce = op.reduces.front();
  const bool sum = is_sum(reduce);
  if (sum && !reduce.scan) return back_sum(b, stm, op);
  std::vector<Value> outer = active_free(*reduce.op.body);
  std::erase_if(outer, [&](Value v) { return std::ranges::find(reduce.op.params, v) != reduce.op.params.end(); });
  const bool varies =
      !outer.empty() || std::ranges::any_of(reduce.neutral, [&](const Operand& x) { return active(x); });
  if (varies) return back_scan(b, stm, op);
  if (sum) return back_sum(b, stm, op);
  if (reduce.scan) return back_scan(b, stm, op);
  const std::optional<BinaryOp> binary = as_binary_op(reduce.op);
  if (binary == BinaryOp::min || binary == BinaryOp::max) return back_extremum(b, stm, op);
  back_reduce(b, stm, op);
}

void Reverse::back_map(Builder& b, const Stm& stm, const Screma& op) {
  Screma result;
  result.widths = op.widths;
  result.inputs = op.inputs;
  RowSums sums;
  sums.known = values_.size();
  Substitution map;
  const auto fresh = [&](Value v) {
    const Value made = values_.add(values_.type(v), values_.name(v));
    map.insert_or_assign(v, Operand(made));
    if (activity_.contains(v)) activity_.add(made);
    return made;
  };
  for (const Value index : op.indices) result.indices.push_back(fresh(index));
  std::vector<Value> varying;  // numbers of inputs
  for (const Value param : op.map.params) result.map.params.push_back(fresh(param));
  std::vector<std::pair<std::size_t, Value>> seeds;
  for (std::size_t k = 0; k < stm.pattern.size(); ++k) {
    const std::optional<Operand> seed = cotangent(Operand(stm.pattern[k]));
    if (!seed) continue;
    result.inputs.push_back(seed->value());
    seeds.emplace_back(k, values_.add(b.type(*seed).row(op.widths.size()), "d"));
    result.map.params.push_back(seeds.back().second);
  }
  std::vector<Value> outer = active_free(*op.map.body);
  std::erase_if(outer, [&](Value v) { return std::ranges::find(op.map.params, v) != op.map.params.end(); });
  for (const Value v : outer)
    if (values_.type(v).is_array()) sums.arrays.insert(v);
  std::vector<Value> whole;  // of `outer` those that get a cotangent for each index
  result.map.body = b.body([&](Builder& inner) {
    return scope({}, [&] {
      row_sums_ = &sums;
      const BodyPtr body = copy_fresh(op.map.body, map, values_, values_);
      activity_.learn(*body);
      sweep(inner, *body, [&] {
        for (const auto& [k, seed] : seeds) add(inner, body->results[k], Operand(seed));
      });
      std::vector<Operand> results;
      for (const auto& [input, param] : ranges::views::zip(op.inputs, result.map.params))
        if (active(input)) results.push_back(cotangent_or_zero(inner, Operand(param)));
      for (const Value v : outer) {
        const std::optional<Operand> its = cotangent(Operand(v));
        if (!its) continue;
        whole.push_back(v);
        results.push_back(*its);
      }
      for (const RowSum& sum : sums.sums) {
        results.insert(results.end(), sum.position.begin(), sum.position.end());
        results.push_back(sum.row);
      }
      return results;
    });
  });
  // Arrays that are sums over all indices are made as such where that takes no array for each index.
  std::vector<Operand> kept = result.map.body->results;
  std::size_t number =
      static_cast<std::size_t>(std::ranges::count_if(op.inputs, [&](Value v) { return activity_.contains(v); }));
  std::vector<Value> summed;
  for (const Value v : whole) {
    const Type& type = values_.type(v);
    const std::optional<Value> sum = type.is_array() ? sum_of_rows(b, result, kept[number], type.shape) : std::nullopt;
    if (sum) {
      kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(number));
      add(b, Operand(v), Operand(*sum));
    } else {
      ++number;
      summed.push_back(v);
    }
  }
  whole = std::move(summed);
  if (kept.empty()) return;
  result.map.body = make_body(result.map.body->stms, std::move(kept));
  const std::vector<Poly> widths = op.widths;
  const std::vector<Value> made = b.let_many({"ds"}, std::move(result));
  auto next = made.begin();
  for (const Value input : op.inputs)
    if (activity_.contains(input)) add(b, Operand(input), Operand(*next++));
  for (const Value v : whole) add(b, Operand(v), sum_over(b, *next++, widths.size()));
  for (RowSum& sum : sums.sums) {
    for (Operand& position : sum.position) position = *next++;
    sum.row = *next++;
    sum.widths.insert(sum.widths.begin(), widths.begin(), widths.end());
    // Arrays of the enclosing lambda are added up in it, and so is what has no regular shape outside.
    bool outside = row_sums_ != nullptr && row_sums_->arrays.contains(sum.array);
    for (const Poly& width : sum.widths)
      width.for_each_symbol([&](Value v) { outside = outside && v.id < row_sums_->known; });
    if (outside)
      row_sums_->sums.push_back(sum);
    else
      add_rows(b, sum);
  }
}

void Reverse::add_rows(Builder& b, const RowSum& sum) {
  const Value old = cotangent_or_zero(b, Operand(sum.array)).value();
  const Type row = values_.type(sum.array).row(sum.position.size());
  Scatter scatter;
  scatter.widths = sum.widths;
  for (std::size_t k = 0; k < sum.widths.size(); ++k)
    scatter.indices.push_back(values_.add(Type::scalar(ScalarType::i64), "i"));
  for (const Operand& position : sum.position) scatter.inputs.push_back(position.value());
  scatter.inputs.push_back(sum.row.value());
  std::vector<Operand> results;
  for (const Value input : scatter.inputs) {
    scatter.map.params.push_back(values_.add(values_.type(input).row(sum.widths.size()), "x"));
    results.emplace_back(scatter.map.params.back());
  }
  scatter.map.body = make_body({}, std::move(results));
  scatter.rank = sum.position.size();
  scatter.targets = {b.let("ds", Copy{old})};
  scatter.op = b.reduce_op({zero_of(b, row)}, [](Builder& inner, BoundValues x) {
    return std::vector<Operand>{sum_of(inner, Operand(x[0]), Operand(x[1]))};
  });
  scatter.op->commutative = true;
  cotangents_->insert_or_assign(sum.array, Operand(b.let("ds", std::move(scatter))));
}

// Sums, and sums of all prefixes.
void Reverse::back_sum(Builder& b, const Stm& stm, const Screma& op) {
  const ReduceOp& reduce = op.reduces.front();
  for (std::size_t k = 0; k < op.inputs.size(); ++k) {
    const std::optional<Operand> seed = cotangent(Operand(stm.pattern[k]));
    if (!seed) continue;
    if (!reduce.scan) {
      add(b, reduce.neutral[k], *seed);
      if (activity_.contains(op.inputs[k])) add(b, op.inputs[k], b.let("ds", Replicate{op.widths, *seed}));
    } else if (activity_.contains(op.inputs[k])) {
      const Type row = b.type(*seed).row();
      ReduceOp sum = b.reduce_op({zero_of(b, row)}, [](Builder& inner, BoundValues x) {
        return std::vector<Operand>{sum_of(inner, Operand(x[0]), Operand(x[1]))};
      });
      sum.commutative = true;
      add(b, op.inputs[k], reversed(b, scan_of(b, sum, {seed->value()}, true).front()));
    }
  }
}

void Reverse::back_extremum(Builder& b, const Stm& stm, const Screma& op) {
  const Value input = op.inputs.front();
  if (!activity_.contains(input)) return;
  const Operand seed = *cotangent(Operand(stm.pattern.front()));
  const Poly count = op.widths.front();
  const Operand none = b.size(count, "n");
  ReduceOp first = b.reduce_op(BinaryOp::min, Scalar::zero(ScalarType::i64));
  first.neutral = {none};
  const Value position =
      b.screma({"position"}, {count}, {input},
               [&](Builder& inner, BoundValues all) {
                 const Value same = inner.compare(CompareOp::eq, Operand(all[1]), Operand(stm.pattern.front()));
                 return std::vector<Operand>{inner.if_else(
                     "at", Operand(same), [&](Builder&) { return Operand(all[0]); }, [&](Builder&) { return none; })};
               },
               {first})
          .front();
  add(b, Operand(input), b.tabulate("ds", {count}, [&](Builder& inner, BoundValues all) {
    const Value here = inner.compare(CompareOp::eq, Operand(all[0]), Operand(position));
    return Operand(inner.if_else(
        "d", Operand(here), [&](Builder&) { return seed; },
        [&](Builder&) { return Operand(Scalar::zero(b.type(seed).element)); }));
  }));
}

void Reverse::back_reduce(Builder& b, const Stm& stm, const Screma& op) {
  const ReduceOp& reduce = op.reduces.front();
  const std::size_t n = reduce.neutral.size();
  const Poly count = op.widths.front();
  const std::vector<Value> from_start = scan_of(b, reduce, op.inputs, false);
  const std::vector<Value> from_end = scan_of(b, reduce, op.inputs, true);
  std::vector<Operand> seeds;
  for (const Value v : stm.pattern) seeds.push_back(cotangent(Operand(v)).value_or(Operand()));
  std::vector<Value> varying;
  for (const Value input : op.inputs)
    if (activity_.contains(input)) varying.push_back(input);
  const std::vector<Value> made =
      b.screma({"ds"}, {count}, op.inputs,
               [&](Builder& inner, BoundValues all) {
                 const Poly i(all[0]);
                 const std::vector<Operand> left = before(inner, from_start, reduce.neutral, i);
                 const std::vector<Operand> right = before(inner, from_end, reduce.neutral, count - 1 - i);
                 return scope({}, [&] {
                   Substitution first, second;
                   for (std::size_t k = 0; k < n; ++k) {
                     if (activity_.contains(op.inputs[k])) activity_.add(all[1 + k]);
                     first.insert_or_assign(reduce.op.params[k], left[k]);
                     first.insert_or_assign(reduce.op.params[n + k], Operand(all[1 + k]));
                   }
                   const BodyPtr with_left = copy_fresh(reduce.op.body, first, values_, values_);
                   for (std::size_t k = 0; k < n; ++k) {
                     second.insert_or_assign(reduce.op.params[k], with_left->results[k]);
                     second.insert_or_assign(reduce.op.params[n + k], right[k]);
                   }
                   const BodyPtr with_right = copy_fresh(reduce.op.body, second, values_, values_);
                   Body body{.stms = with_left->stms, .results = with_right->results};
                   body.stms.insert(body.stms.end(), with_right->stms.begin(), with_right->stms.end());
                   activity_.learn(body);
                   sweep(inner, body, [&] {
                     for (std::size_t k = 0; k < n; ++k)
                       if (seeds[k] != Operand()) add(inner, body.results[k], seeds[k]);
                   });
                   std::vector<Operand> results;
                   for (std::size_t k = 0; k < n; ++k)
                     if (activity_.contains(op.inputs[k]))
                       results.push_back(cotangent_or_zero(inner, Operand(all[1 + k])));
                   return results;
                 });
               },
               {});
  for (const auto& [value, cotangent] : ranges::views::zip(varying, made)) add(b, Operand(value), Operand(cotangent));
}

void Reverse::back_scan(Builder& b, const Stm& stm, const Screma& op) {
  const ReduceOp& reduce = op.reduces.front();
  const std::size_t n = reduce.neutral.size();
  const Poly count = op.widths.front();
  remark(stm.location, reduce.scan
                           ? "the derivative of this scan goes from its last element to its first in a loop"
                           : "the derivative of this reduction goes from its last element to its first in a loop");
  std::vector<Value> scanned = stm.pattern;
  if (!reduce.scan) scanned = scan_of(b, reduce, op.inputs, false);
  std::vector<std::size_t> varying;
  for (std::size_t k = 0; k < n; ++k)
    if (activity_.contains(reduce.op.params[k])) varying.push_back(k);
  std::vector<Operand> carried, seeds;
  for (const std::size_t k : varying) {
    seeds.push_back(cotangent_or_zero(b, Operand(stm.pattern[k])));
    carried.push_back(reduce.scan ? zero_of(b, values_.type(stm.pattern[k]).row()) : seeds.back());
  }
  for (const std::size_t k : varying) carried.push_back(zero_of(b, values_.type(op.inputs[k])));
  std::vector<Value> outer = active_free(*reduce.op.body);
  std::erase_if(outer, [&](Value v) { return std::ranges::find(reduce.op.params, v) != reduce.op.params.end(); });
  const std::size_t m = varying.size();
  const std::vector<Value> made =
      backwards(b, count, carried, outer, [&](Builder& inner, const Poly& at, const std::vector<Value>& now) {
        const Poly i(inner.size(at, "i"));
        const std::vector<Operand> left = before(inner, scanned, reduce.neutral, i);
        Substitution map;
        std::vector<Value> a, x;
        for (std::size_t k = 0; k < n; ++k) {
          a.push_back(fresh_param(inner, reduce.op.params[k], left[k], map));
          x.push_back(fresh_param(inner, reduce.op.params[n + k], Operand(inner.index(op.inputs[k], {i})), map));
        }
        const BodyPtr body = copy_fresh(reduce.op.body, map, values_, values_);
        activity_.learn(*body);
        sweep(inner, *body, [&] {
          for (std::size_t j = 0; j < m; ++j) {
            Operand seed(now[j]);
            if (reduce.scan) seed = sum_of(inner, seed, Operand(inner.index(seeds[j].value(), {i}, "d")));
            add(inner, body->results[varying[j]], seed);
          }
        });
        std::vector<Operand> next;
        for (const std::size_t k : varying) next.push_back(cotangent_or_zero(inner, Operand(a[k])));
        for (std::size_t j = 0; j < m; ++j) {
          const Value copy = inner.let("ds", Copy{now[m + j]});
          const Operand row = cotangent_or_zero(inner, Operand(x[varying[j]]));
          next.emplace_back(inner.let("ds", Update{copy, {DimIndex::fix(i)}, row, false}));
        }
        return next;
      });
  for (std::size_t j = 0; j < m; ++j) {
    add(b, reduce.neutral[varying[j]], Operand(made[j]));
    add(b, Operand(op.inputs[varying[j]]), Operand(made[m + j]));
  }
}

}  // namespace apl::differentiation
