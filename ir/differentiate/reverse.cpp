#include "ir/differentiate/reverse.h"

#include <fmt/format.h>
#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <numeric>
#include <ranges>

namespace apl::differentiation {

std::vector<Operand> Reverse::run(Builder& b, const Derivative& op) {
  for (std::size_t k = 0; k < op.arguments.size(); ++k) {
    const Value param = op.function.params[k];
    b.append({.pattern = {param}, .op = Use{op.arguments[k]}, .location = {}, .certificates = {}, .attributes = {}});
    activity_.add(param);
  }
  activity_.learn(*op.function.body);
  std::vector<Operand> results = op.function.body->results;
  scope({}, [&] {
    sweep(b, *op.function.body, [&] {
      for (const auto& [seed, result] : ranges::views::zip(op.seeds, results)) add(b, result, seed);
    });
    for (const Value param : op.function.params) results.push_back(cotangent_or_zero(b, param));
    return 0;
  });
  return results;
}

std::optional<Operand> Reverse::cotangent(const Operand& x) const {
  if (x.is_constant()) return std::nullopt;
  const auto found = cotangents_->find(x.value());
  return found == cotangents_->end() ? std::nullopt : std::optional(found->second);
}

Operand Reverse::cotangent_or_zero(Builder& b, const Operand& x) {
  const std::optional<Operand> known = cotangent(x);
  return known ? *known : zero_of(b, b.type(x));
}

void Reverse::add(Builder& b, const Operand& x, const Operand& more) {
  if (!active(x)) return;
  const auto [at, fresh] = cotangents_->try_emplace(x.value(), more);
  if (!fresh) at->second = sum_of(b, at->second, more);
}

bool Reverse::has_cotangent(const std::vector<Value>& pattern) const {
  return std::ranges::any_of(pattern, [&](Value v) { return cotangents_->contains(v); });
}

std::vector<Value> Reverse::active_free(const Body& body) const {
  std::vector<Value> result;
  for (const Value v : free_values(body, values_))
    if (activity_.contains(v)) result.push_back(v);
  return result;
}

Value Reverse::fresh_param(Builder& b, Value param, const Operand& x, Substitution& map) {
  const Value made = b.let(values_.name(param), Use{x});
  map.insert_or_assign(param, Operand(made));
  if (activity_.contains(param)) activity_.add(made);
  return made;
}

void Reverse::sweep(Builder& b, const Body& body, const std::function<void()>& seed) {
  std::vector<Kept> kept;
  for (const Stm& stm : body.stms) {
    b.set_location(stm.location);
    kept.push_back(forth(b, stm));
  }
  seed();
  for (std::size_t k = body.stms.size(); k-- > 0;) {
    const Stm& stm = body.stms[k];
    b.set_location(stm.location);
    if (has_cotangent(stm.pattern)) back(b, stm, kept[k]);
    for (const Value v : stm.pattern) cotangents_->erase(v);
  }
}

Kept Reverse::forth(Builder& b, const Stm& stm) {
  const bool varies = std::ranges::any_of(stm.pattern, [&](Value v) { return activity_.contains(v); });
  if (const Loop* loop = get_if<Loop>(stm); loop != nullptr && varies) return keep(b, stm, *loop);
  Kept kept;
  // A histogram's targets, which it consumes.
  if (const Scatter* scatter = get_if<Scatter>(stm); scatter != nullptr && varies && scatter->op)
    for (const Value target : scatter->targets) kept.arrays.push_back(b.let("before", Copy{target}));
  b.append(stm);
  return kept;
}

void Reverse::back(Builder& b, const Stm& stm, const Kept& kept) {
  if (const Loop* loop = get_if<Loop>(stm)) return back(b, stm, *loop, kept);
  if (const If* branch = get_if<If>(stm)) return back(b, stm, *branch);
  if (const Screma* screma = get_if<Screma>(stm)) return back(b, stm, *screma);
  if (const Scatter* scatter = get_if<Scatter>(stm)) return back_scatter(b, stm, *scatter, kept);
  simple(b, stm);
}

void Reverse::back_size(Builder& b, const Poly& size, const Operand& seed, Location location) {
  if (!has_opaque_factors(size)) {
    std::set<Value> symbols;
    size.for_each_symbol([&](Value v) { symbols.insert(v); });
    for (const Value v : symbols)
      if (activity_.contains(v)) add(b, v, b.size(derivative(size, v) * as_poly(seed), "d"));
    return;
  }
  const std::vector<Stm> parts = as_operations(values_, size, location);
  for (const Stm& part : parts) {
    activity_.learn(part);
    b.append(part);
  }
  add(b, parts.back().pattern.front(), seed);
  for (std::size_t k = parts.size(); k-- > 0;) {
    if (has_cotangent(parts[k].pattern)) simple(b, parts[k]);
    cotangents_->erase(parts[k].pattern.front());
  }
}

void Reverse::simple(Builder& b, const Stm& stm) {
  const Value y = stm.pattern.front();
  const Operand seed = *cotangent(Operand(y));
  if (const Use* op = get_if<Use>(stm)) {
    add(b, op->x, seed);
  } else if (const Unary* op = get_if<Unary>(stm)) {
    if (active(op->x)) add(b, op->x, times_derivative(b, *op, y, seed, stm.location));
  } else if (const Binary* op = get_if<Binary>(stm)) {
    for (const bool by_y : {false, true}) {
      const Operand& x = by_y ? op->y : op->x;
      if (!active(x)) continue;
      if (const std::optional<Operand> part = times_derivative(b, *op, by_y, y, seed, stm.location)) add(b, x, *part);
    }
  } else if (const Convert* op = get_if<Convert>(stm)) {
    if (active(op->x)) add(b, op->x, b.let("d", Convert{b.type(op->x).element, seed, op->same_bits}));
  } else if (const SizeExpr* op = get_if<SizeExpr>(stm)) {
    back_size(b, op->value, seed, stm.location);
  } else if (const Index* op = get_if<Index>(stm)) {
    if (!activity_.contains(op->array)) return;
    if (row_sums_ != nullptr && row_sums_->arrays.contains(op->array) &&
        std::ranges::none_of(op->dims, &DimIndex::is_slice)) {
      RowSum sum{.array = op->array, .widths = {}, .position = {}, .row = seed};
      for (const DimIndex& dim : op->dims) {
        const std::optional<Operand> known = as_operand(dim.start);
        sum.position.push_back(known ? *known : Operand(b.size(dim.start, "at")));
      }
      row_sums_->sums.push_back(std::move(sum));
      return;
    }
    const Value whole = cotangent_or_zero(b, op->array).value();
    const Operand old = b.let("d", Index{whole, op->dims, false});
    const Operand sum = sum_of(b, old, seed);
    const Value copy = b.let("ds", Copy{whole});
    cotangents_->insert_or_assign(op->array, b.let("ds", Update{copy, op->dims, sum, false}));
  } else if (const Update* op = get_if<Update>(stm)) {
    if (active(op->value)) add(b, op->value, b.let("d", Index{seed.value(), op->dims, false}));
    if (!activity_.contains(op->array)) return;
    const Value copy = b.let("ds", Copy{seed.value()});
    add(b, op->array, b.let("ds", Update{copy, op->dims, zero_of(b, b.type(op->value)), false}));
  } else if (const Replicate* op = get_if<Replicate>(stm)) {
    add(b, op->value, sum_over(b, seed.value(), op->shape.size()));
  } else if (const Copy* op = get_if<Copy>(stm)) {
    add(b, op->array, seed);
  } else if (get_if<Rearrange>(stm) || get_if<Manifest>(stm)) {
    const Rearrange* view = get_if<Rearrange>(stm);
    const std::vector<int>& order = view ? view->permutation : get_if<Manifest>(stm)->permutation;
    std::vector<int> inverse(order.size());
    for (std::size_t k = 0; k < order.size(); ++k) inverse[static_cast<std::size_t>(order[k])] = static_cast<int>(k);
    add(b, view ? view->array : get_if<Manifest>(stm)->array, b.rearrange(seed.value(), inverse));
  } else if (const Reshape* op = get_if<Reshape>(stm)) {
    add(b, op->array, b.let("ds", Reshape{seed.value(), values_.type(op->array).shape}));
  } else if (const ArrayLit* op = get_if<ArrayLit>(stm)) {
    for (std::size_t k = 0; k < op->elements.size(); ++k)
      if (active(op->elements[k])) add(b, op->elements[k], b.index(seed.value(), {static_cast<std::int64_t>(k)}, "d"));
  } else if (const Iota* op = get_if<Iota>(stm)) {
    if (activity_.contains(op->count)) {
      const Operand sum = sum_over(b, seed.value(), 1);
      const bool is_size = op->element == ScalarType::i64;
      back_size(b, op->count, is_size ? sum : Operand(b.convert(ScalarType::i64, sum, "d")), stm.location);
    }
    if (active(op->start)) add(b, op->start, sum_over(b, seed.value(), 1));
    if (!active(op->stride)) return;
    const Value numbers = b.let(
        "numbers", Iota{op->element, op->count, Scalar::zero(op->element),
                        is_float(op->element) ? Scalar::floating(op->element, 1) : Scalar::integer(op->element, 1)});
    add(b, op->stride,
        b.redomap("d", b.reduce_op(BinaryOp::add, Scalar::zero(op->element)), {seed.value(), numbers},
                  [](Builder& inner, BoundValues x) { return Operand(inner.binary(BinaryOp::mul, x[0], x[1], "d")); }));
  } else {
    refuse_derivative(op_name(stm.op), stm.location);
  }
}

void Reverse::remark(Location location, const std::string& message) const {
  if (!remarks_) return;
  remarks_({.kind = RemarkKind::missed,
            .pass = "differentiate",
            .code = "sequential-derivative",
            .location = location,
            .function = function_,
            .message = message});
}

}  // namespace apl::differentiation
