// Loops and branches in reverse. A loop keeps what its parameters are in each iteration:
//
//   loop {x = x0} for i < n { .. in {x1} }
// =>
//   loop {x = x0, xs = scratch} for i < n { let {xs1} = xs with [i] = x .. in {x1, xs1} }
// and, where the cotangent of its result is known,
//   loop {dx = dr, dfree = ..} for k < n { let {i} = n - 1 - k   let {x} = xs[i]   body, and its transpose .. in {..} }
#include <fmt/format.h>
#include <range/v3/view/zip.hpp>

#include <algorithm>

#include "ir/differentiate/reverse.h"

namespace apl::differentiation {

namespace {

// How many iterations a while loop makes: it runs once without results.
Poly iterations_of(Builder& b, const Loop& op) {
  Loop count = op;
  Substitution map;
  for (Value& param : count.params) {
    const Value fresh = b.values().add(substitute(b.values().type(param), map), b.values().name(param));
    map.insert_or_assign(param, Operand(fresh));
    param = fresh;
  }
  const BodyPtr body = copy_fresh(op.body, map, b.values(), b.values());
  const Value counter = b.values().add(Type::scalar(ScalarType::i64), "count");
  count.params.push_back(counter);
  count.initial.push_back(i64_constant(0));
  count.body = b.body([&](Builder& inner) {
    inner.append_all(body->stms);
    std::vector<Operand> results = body->results;
    results.emplace_back(inner.size(Poly(counter) + 1));
    return results;
  });
  return Poly(b.let_many({"last"}, std::move(count)).back());
}

}  // namespace

Kept Reverse::keep(Builder& b, const Stm& stm, const Loop& op) {
  Kept kept;
  Loop both = op;
  if (op.index) {
    kept.count = op.bound;
  } else {
    kept.count = iterations_of(b, op);
    both.index = values_.add(Type::scalar(ScalarType::i64), "i");
    both.bound = kept.count;
  }
  std::set<Value> params(op.params.begin(), op.params.end());
  std::vector<Stm> updates;
  std::vector<Operand> results = op.body->results;
  Stm made = stm;
  const std::set<Value> read = free_values(*op.body, values_);
  for (const Value param : op.params) {
    const Type& type = values_.type(param);
    for (const Poly& size : type.shape)
      size.for_each_symbol([&](Value v) {
        if (params.contains(v))
          throw Refusal{make_error(Code::unsupported_construct, stm.location,
                                   "the derivative of a loop that changes the sizes of arrays cannot be compiled yet")};
      });
    if (!read.contains(param)) {
      kept.arrays.emplace_back();
      continue;
    }
    // No iteration may mean a bound below zero.
    const Type whole = Type::array(type.element, type.shape).array_of({poly_max(kept.count, 0)});
    const Value start = b.let(values_.name(param) + "_kept", Scratch{whole.element, whole.shape});
    const Value tape = values_.add(whole, values_.name(param) + "_kept");
    const Value next = values_.add(whole, values_.name(param) + "_kept");
    updates.push_back({.pattern = {next},
                       .op = Update{tape, {DimIndex::fix(Poly(both.index))}, Operand(param), false},
                       .location = stm.location,
                       .certificates = {},
                       .attributes = {}});
    both.params.push_back(tape);
    both.initial.emplace_back(start);
    results.emplace_back(next);
    made.pattern.push_back(values_.add(whole, values_.name(param) + "_kept"));
    kept.arrays.push_back(made.pattern.back());
  }
  updates.insert(updates.end(), op.body->stms.begin(), op.body->stms.end());
  both.body = make_body(std::move(updates), std::move(results));
  made.op = std::move(both);
  b.append(std::move(made));
  return kept;
}

std::vector<Value> Reverse::backwards(
    Builder& b, const Poly& count, std::vector<Operand> carried, const std::vector<Value>& outer,
    const std::function<std::vector<Operand>(Builder&, const Poly&, const std::vector<Value>&)>& fill) {
  const std::size_t n = carried.size();
  for (const Value v : outer) carried.push_back(cotangent_or_zero(b, Operand(v)));
  const std::vector<Value> results = b.for_loop_many({"d"}, count, carried, [&](Builder& inner, BoundValues all) {
    const auto first = all.begin() + 1;
    const std::vector<Value> own(first, first + static_cast<std::ptrdiff_t>(n));
    Cotangents start;
    for (std::size_t k = 0; k < outer.size(); ++k) start.emplace(outer[k], Operand(all[1 + n + k]));
    return scope(std::move(start), [&] {
      std::vector<Operand> next = fill(inner, count - 1 - Poly(all[0]), own);
      for (const Value v : outer) next.push_back(*cotangent(Operand(v)));
      return next;
    });
  });
  for (std::size_t k = 0; k < outer.size(); ++k) cotangents_->insert_or_assign(outer[k], Operand(results[n + k]));
  return {results.begin(), results.begin() + static_cast<std::ptrdiff_t>(n)};
}

void Reverse::back(Builder& b, const Stm& stm, const Loop& op, const Kept& kept) {
  std::vector<std::size_t> varying;
  std::vector<Operand> carried;
  for (std::size_t k = 0; k < op.params.size(); ++k) {
    if (!activity_.contains(op.params[k])) continue;
    varying.push_back(k);
    carried.push_back(cotangent_or_zero(b, Operand(stm.pattern[k])));
  }
  std::vector<Value> outer = active_free(*op.body);
  std::erase_if(outer, [&](Value v) { return std::ranges::find(op.params, v) != op.params.end(); });
  const std::vector<Value> first =
      backwards(b, kept.count, carried, outer, [&](Builder& inner, const Poly& at, const std::vector<Value>& seeds) {
        const Value i = inner.size(at, "i");
        Substitution map;
        if (op.index) map.insert_or_assign(op.index, Operand(i));
        std::map<std::size_t, Value> params;
        for (std::size_t k = 0; k < op.params.size(); ++k) {
          const Value now =
              kept.arrays[k] == Value() ? Value() : inner.index(kept.arrays[k], {Poly(i)}, values_.name(op.params[k]));
          if (now == Value()) continue;
          map.insert_or_assign(op.params[k], Operand(now));
          if (activity_.contains(op.params[k])) activity_.add(now);
          params.emplace(k, now);
        }
        const BodyPtr body = copy_fresh(op.body, map, values_, values_);
        activity_.learn(*body);
        sweep(inner, *body, [&] {
          for (const auto& [which, seed] : ranges::views::zip(varying, seeds))
            add(inner, body->results[which], Operand(seed));
        });
        std::vector<Operand> next;
        for (const std::size_t k : varying) {
          const auto param = params.find(k);
          next.push_back(param == params.end() ? zero_of(inner, values_.type(op.params[k]))
                                               : cotangent_or_zero(inner, Operand(param->second)));
        }
        return next;
      });
  for (const auto& [which, value] : ranges::views::zip(varying, first)) add(b, op.initial[which], Operand(value));
}

void Reverse::back(Builder& b, const Stm& stm, const If& op) {
  std::set<Value> both;
  for (const BodyPtr& body : {op.then_body, op.else_body}) {
    const std::vector<Value> read = active_free(*body);
    both.insert(read.begin(), read.end());
  }
  const std::vector<Value> outer(both.begin(), both.end());
  if (outer.empty()) return;
  const auto branch = [&](const BodyPtr& old) {
    return b.body([&](Builder& inner) {
      Cotangents start;
      for (const Value v : outer)
        if (const auto known = cotangent(Operand(v))) start.emplace(v, *known);
      std::vector<Operand> seeds;
      for (const Value v : stm.pattern) seeds.push_back(cotangent(Operand(v)).value_or(Operand()));
      return scope(std::move(start), [&] {
        Substitution map;
        const BodyPtr body = copy_fresh(old, map, values_, values_);
        activity_.learn(*body);
        sweep(inner, *body, [&] {
          for (const auto& [seed, result] : ranges::views::zip(seeds, body->results))
            if (seed != Operand()) add(inner, result, seed);
        });
        std::vector<Operand> results;
        for (const Value v : outer) results.push_back(cotangent_or_zero(inner, Operand(v)));
        return results;
      });
    });
  };
  const BodyPtr then_body = branch(op.then_body), else_body = branch(op.else_body);
  const std::vector<Value> results = b.let_many({"d"}, If{op.condition, then_body, else_body});
  for (const auto& [value, result] : ranges::views::zip(outer, results))
    cotangents_->insert_or_assign(value, Operand(result));
}

}  // namespace apl::differentiation
