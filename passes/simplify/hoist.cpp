// Invariant code moves out of loops, lambdas and kernels.
//
//   screma(m, {A}, \ {row} -> let n2 = mul(n, 2) ...)   =>   let n2 = mul(n, 2)  screma(m, {A}, \ {row} -> ...)
//
// Only what cannot fail moves: the body may run for no index at all. An element read moves only within a thread: on
// the host it would be a transfer from the device. Kernels give up scalars and views, never arrays.
//
//   screma(m, {A}, \ {row} -> let c = assert(p, ...) ...)   =>   let none = le(m, 0)  let q = or(p, none)
//                                                                let c = assert(q, ...)  screma(m, {A}, \ {row} -> ...)
//
// A check that nothing before it in the body can keep from being made is made before, unless there is no index.
#include <algorithm>

#include "passes/simplify/simplifier.h"

namespace apl {

void Simplifier::hoist(const Op& op, Body& inner) {
  std::unordered_set<Value> local;
  for_each_binder(op, [&](Value v) { local.insert(v); });
  std::optional<std::vector<Poly>> widths;
  if (const auto* screma = std::get_if<Screma>(&op)) widths = screma->widths;
  if (const auto* scatter = std::get_if<Scatter>(&op)) widths = scatter->widths;
  if (const auto* loop = std::get_if<Loop>(&op); loop != nullptr && loop->index) widths = {loop->bound};
  std::vector<Stm> kept;
  for (Stm& stm : inner.stms) {
    const bool is_check = std::holds_alternative<Assert>(stm.op) && widths && stm.attributes.empty();
    bool invariant = is_check || may_hoist(stm, op);
    const auto check = [&](Value v) { invariant = invariant && !local.contains(v); };
    if (invariant) {
      for (const Value v : free_values(stm.op, values())) check(v);
      for (const Value v : stm.certificates) check(v);
      for (const Value v : stm.pattern) for_each_use(values().type(v), check);
    }
    if (invariant && is_check) {
      hoist_check(std::move(stm), *widths);
    } else if (invariant) {
      out_->push_back(std::move(stm));
      changed_ = true;
    } else {
      // What may fail before a check fails first.
      if (widths && !harmless(stm.op)) widths.reset();
      local.insert(stm.pattern.begin(), stm.pattern.end());
      kept.push_back(std::move(stm));
    }
  }
  inner.stms = std::move(kept);
}

void Simplifier::hoist_check(Stm stm, const std::vector<Poly>& widths) {
  Assert check = std::get<Assert>(stm.op);
  for (const Poly& width : widths) {
    if (non_negative(width - 1)) continue;
    const std::optional<Operand> known = as_operand(width);
    const Operand count = known ? *known : emit(stm, "n", SizeExpr{width});
    const Operand none = emit(stm, "none", Compare{CompareOp::le, count, i64_constant(0)});
    check.condition = emit(stm, "passed", Binary{BinaryOp::disj, check.condition, none});
  }
  stm.op = std::move(check);
  define(stm);
  out_->push_back(std::move(stm));
  changed_ = true;
}

bool Simplifier::may_hoist(const Stm& stm, const Op& from) const {
  if (!stm.attributes.empty() || places(stm)) return false;
  const bool kernel = std::holds_alternative<SegOp>(from);
  const bool parallel = kernel || std::holds_alternative<Screma>(from) || std::holds_alternative<Scatter>(from);
  const bool to_host = parallel_depth_ == (parallel ? 1 : 0);
  const auto read = [&](const Index& index) {
    return function_.values.type(stm.pattern.front()).is_scalar() && !index.dims.empty();
  };
  if (const auto* index = get_if<Index>(stm)) {
    if (read(*index) && (to_host || kernel)) return false;
    return harmless(stm.op);
  }
  const bool scalar = std::holds_alternative<Unary>(stm.op) || std::holds_alternative<Binary>(stm.op) ||
                      std::holds_alternative<Compare>(stm.op) || std::holds_alternative<Convert>(stm.op) ||
                      std::holds_alternative<SizeExpr>(stm.op);
  const bool view = std::holds_alternative<Rearrange>(stm.op) || std::holds_alternative<Reshape>(stm.op);
  if (scalar || view) return harmless(stm.op);
  const bool makes_array = std::holds_alternative<Screma>(stm.op) || std::holds_alternative<Iota>(stm.op) ||
                           std::holds_alternative<Replicate>(stm.op);
  if (!makes_array || kernel || (to_host && module_.stage != Stage::soac)) return false;
  const bool overwritten = std::ranges::any_of(stm.pattern, [&](Value v) { return consumption_.consumed(v); });
  return !overwritten && harmless(stm.op);
}

bool Simplifier::harmless(const Poly& poly) const {
  return std::ranges::all_of(poly.terms(), [&](const Term& term) {
    return std::ranges::all_of(term.factors, [&](const Factor& factor) {
      if (!factor.opaque) return true;
      const OpaqueNode& node = *factor.opaque;
      const bool divides = node.kind == OpaqueKind::ceil_div || node.kind == OpaqueKind::floor_div;
      return harmless(node.a) && harmless(node.b) && (!divides || non_negative(node.b - 1));
    });
  });
}

bool Simplifier::harmless(const Op& op) const {
  if (const auto* size = std::get_if<SizeExpr>(&op)) return harmless(size->value);
  if (const auto* index = std::get_if<Index>(&op)) return in_bounds(function_.values.type(index->array), index->dims);
  if (const auto* iota = std::get_if<Iota>(&op)) return harmless(iota->count) && non_negative(iota->count);
  if (const auto* replicate = std::get_if<Replicate>(&op)) {
    return std::ranges::all_of(replicate->shape, [&](const Poly& p) { return harmless(p) && non_negative(p); });
  }
  if (const auto* reshape = std::get_if<Reshape>(&op)) {
    return std::ranges::all_of(reshape->shape, [&](const Poly& p) { return harmless(p); });
  }
  if (!has_bodies(op)) return !can_fail(op, function_.values);
  const auto* screma = std::get_if<Screma>(&op);
  if (screma == nullptr) return false;
  bool inside = true;
  for_each_body(op, [&](const BodyPtr& body) {
    inside = inside && std::ranges::all_of(body->stms, [&](const Stm& stm) { return harmless(stm.op); });
  });
  return inside && std::ranges::all_of(screma->widths, [&](const Poly& p) { return harmless(p) && non_negative(p); });
}

}  // namespace apl
