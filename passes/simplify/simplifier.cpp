#include "passes/simplify/simplifier.h"

#include <range/v3/view/zip.hpp>

#include <algorithm>

namespace apl {

namespace {

// A statement is rewritten until no rule fires; the bound only guards against two rules that undo each other.
constexpr int kMaxRewrites = 32;

// Where an index or an update is.
std::vector<DimIndex>* places_of(Op& op) {
  if (Index* index = std::get_if<Index>(&op)) return &index->dims;
  if (Update* update = std::get_if<Update>(&op)) return &update->dims;
  return nullptr;
}

}  // namespace

Simplifier::Simplifier(Function& function, const Module& module)
    : function_(function), module_(module), consumption_(function, &module) {
  for (const Value size : function.sizes) know_dim(size);
  for (const Value param : function.params) know_shape(function.type(param));
}

bool Simplifier::run() {
  function_.body = body(function_.body);
  return changed_;
}

BodyPtr Simplifier::body(const BodyPtr& body, bool reduction_operator) {
  Out inner;
  inner.reserve(body->stms.size());
  Out* const outer = std::exchange(out_, &inner);
  const bool was_operator = std::exchange(in_operator_, reduction_operator);
  const bool changed_before = std::exchange(changed_, false);
  const std::size_t learned = learned_.size();
  for (const Stm& stm : body->stms) statement(stm);
  std::vector<Operand> results;
  for (const Operand& result : body->results) {
    results.push_back(rewrite(result));
    changed_ = changed_ || results.back() != result;
  }
  const bool changed_here = changed_;
  forget(learned);
  out_ = outer;
  in_operator_ = was_operator;
  changed_ = changed_before || changed_here;
  return changed_here ? make_body(std::move(inner), std::move(results)) : body;
}

void Simplifier::statement(Stm stm) {
  rewrite_uses(stm);
  for (int round = 0; round < kMaxRewrites; ++round) {
    const Fired fired = apply_rules(stm);
    if (fired == Fired::none) break;
    changed_ = true;
    if (fired == Fired::gone) return;
  }
  for (const Value value : stm.pattern) rewrite_type(value);
  nested_bodies(stm);
  define(stm);
  out_->push_back(std::move(stm));
}

void Simplifier::rewrite_uses(Stm& stm) {
  bool touched = false;
  const auto check = [&](Value v) { touched = touched || replaced_.contains(v) || sizes_.contains(v); };
  for_each_use(stm.op, check);
  if (touched) {
    // Where elements lie: any number that is the same modulo 2^64 will do. All others are sizes.
    const std::vector<DimIndex>* const places = places_of(stm.op);
    const bool number = places != nullptr || get_if<SizeExpr>(stm) != nullptr;
    const std::vector<DimIndex> before = places ? *places : std::vector<DimIndex>{};
    const UseMap map{.operand =
                         [&](const Operand& x) {
                           Operand result = rewrite(x);
                           changed_ = changed_ || result != x;
                           return result;
                         },
                     .value =
                         [&](Value v) {
                           const Value result = rewrite(v);
                           changed_ = changed_ || result != v;
                           return result;
                         },
                     .poly =
                         [&](const Poly& p) {
                           Poly result = number ? rewrite(p) : rewrite_size(p);
                           changed_ = changed_ || (places == nullptr && !(result == p));
                           return result;
                         }};
    stm.op = map_uses(stm.op, map);
    for (std::size_t k = 0; k < before.size(); ++k) {
      DimIndex& dim = (*places_of(stm.op))[k];
      if (dim.count) dim.count = rewrite_size(*before[k].count);
      changed_ =
          changed_ || !(dim.start == before[k].start && dim.stride == before[k].stride && dim.count == before[k].count);
    }
  }
  std::vector<Value> certificates;
  for (const Value certificate : stm.certificates) {
    const Operand now = rewrite(Operand(certificate));
    if (now.is_value()) certificates.push_back(now.value());  // a check that was proved needs no certificate
    changed_ = changed_ || now != Operand(certificate);
  }
  stm.certificates = std::move(certificates);
}

void Simplifier::rewrite_type(Value value) {
  const Type& type = values().type(value);
  bool touched = false;
  for_each_use(type, [&](Value v) { touched = touched || replaced_.contains(v) || sizes_.contains(v); });
  if (touched) {
    const UseMap map{.operand = [&](const Operand& x) { return rewrite(x); },
                     .value = [&](Value v) { return rewrite(v); },
                     .poly = [&](const Poly& p) { return rewrite_size(p); }};
    values().set_type(value, map_uses(type, map));
    changed_ = true;
  }
  know_shape(values().type(value));
}

// What a value stands for may itself have been replaced since.
Operand Simplifier::rewrite(const Operand& operand) const {
  Operand now = operand;
  while (now.is_value()) {
    const auto found = replaced_.find(now.value());
    if (found == replaced_.end()) break;
    now = found->second;
  }
  return now;
}

Value Simplifier::rewrite(Value value) const {
  const Operand now = rewrite(Operand(value));
  return now.is_value() ? now.value() : value;
}

Poly Simplifier::rewrite(const Poly& poly) const {
  std::unordered_set<Value> divided;
  for (const Term& term : poly.terms())
    for (const Factor& factor : term.factors)
      if (factor.opaque) Poly(factor).for_each_symbol([&](Value v) { divided.insert(v); });
  return poly.substitute([&](Value v) -> std::optional<Poly> {
    const Operand now = rewrite(Operand(v));
    if (!now.is_value()) return as_poly(now);
    if (const auto size = sizes_.find(now.value()); size != sizes_.end()) {
      const bool may_wrap = divided.contains(v) && !size->second.symbol() && !size_like(size->second);
      if (!may_wrap) return size->second;
    }
    return now.value() == v ? std::nullopt : std::optional<Poly>(now.value());
  });
}

// The same of a size of an array: passes take quotients of it, so that a number which may wrap stays behind its name.
Poly Simplifier::rewrite_size(const Poly& poly) const {
  Poly all = rewrite(poly);
  if (safe_size(all)) return all;
  return poly.substitute([&](Value v) -> std::optional<Poly> {
    const Operand now = rewrite(Operand(v));
    if (!now.is_value()) return as_poly(now);
    if (const auto size = sizes_.find(now.value()); size != sizes_.end() && safe_size(size->second))
      return size->second;
    return now.value() == v ? std::nullopt : std::optional<Poly>(now.value());
  });
}

void Simplifier::bind(Value result, const Operand& stands_for) {
  replaced_.insert_or_assign(result, stands_for);
  changed_ = true;
}

Fired Simplifier::use(Stm& stm, const Operand& x) {
  bind(stm.pattern.front(), x);
  return Fired::gone;
}

Operand Simplifier::emit(const Stm& at, std::string name, Op op) {
  const std::vector<Type> types = result_types(op, values(), &module_);
  const Value value = values().add(types.front(), std::move(name));
  statement({.pattern = {value}, .op = std::move(op), .location = at.location, .certificates = at.certificates});
  return rewrite(Operand(value));
}

void Simplifier::nested_bodies(Stm& stm) {
  const auto rewrite_binders = [&] { for_each_binder(stm.op, [&](Value v) { rewrite_type(v); }); };
  // Of a body that runs for each index below these bounds, none of which is 0 then. What is hoisted runs anyway.
  const auto enter = [&](const BodyPtr& inner, const std::vector<Poly>& bounds) {
    const std::size_t learned = learned_.size();
    for (const Poly& bound : bounds)
      if (const auto symbol = bound.symbol()) know_size(*symbol, 1);
    BodyPtr result = body(inner);
    forget(learned);
    Body kept = *result;
    hoist(stm.op, kept);
    return kept.stms.size() == result->stms.size() ? result : make_body(std::move(kept.stms), std::move(kept.results));
  };
  if (If* branch = std::get_if<If>(&stm.op)) {
    const std::size_t learned = learned_.size();
    for (const bool holds : {true, false}) {
      BodyPtr& inner = holds ? branch->then_body : branch->else_body;
      know_condition(branch->condition, holds);
      inner = body(inner);
      forget(learned);
    }
  } else if (is_branch(stm.op)) {
    stm.op = map_bodies(stm.op, [&](const BodyPtr& inner) { return body(inner); });
  } else if (Loop* loop = std::get_if<Loop>(&stm.op)) {
    rewrite_binders();
    if (loop->index) know_index(loop->index, loop->bound);
    loop->body = enter(loop->body, loop->index ? std::vector<Poly>{loop->bound} : std::vector<Poly>{});
  } else if (Screma* screma = std::get_if<Screma>(&stm.op)) {
    rewrite_binders();
    for (const auto& [index, width] : ranges::views::zip(screma->indices, screma->widths)) know_index(index, width);
    ++parallel_depth_;
    screma->map.body = enter(screma->map.body, screma->widths);
    for (ReduceOp& reduce : screma->reduces) reduce.op.body = body(reduce.op.body, true);
    --parallel_depth_;
  } else if (Scatter* scatter = std::get_if<Scatter>(&stm.op)) {
    rewrite_binders();
    for (const auto& [index, width] : ranges::views::zip(scatter->indices, scatter->widths)) know_index(index, width);
    ++parallel_depth_;
    scatter->map.body = enter(scatter->map.body, scatter->widths);
    if (scatter->op) scatter->op->op.body = body(scatter->op->op.body, true);
    --parallel_depth_;
  } else if (SegOp* kernel = std::get_if<SegOp>(&stm.op)) {
    std::vector<Poly> bounds;
    for (const SegDim& dim : kernel->space) {
      know_index(dim.index, dim.bound);
      bounds.push_back(dim.bound);
    }
    ++parallel_depth_;
    const bool was_in_team = std::exchange(in_team_, kernel->team.has_value());
    kernel->body = enter(kernel->body, bounds);
    in_team_ = was_in_team;
    --parallel_depth_;
  } else if (CopyTile* copy = std::get_if<CopyTile>(&stm.op); copy != nullptr && copy->map) {
    rewrite_binders();
    ++parallel_depth_;
    copy->map->body = body(copy->map->body, true);
    --parallel_depth_;
  } else if (TileContract* tile = std::get_if<TileContract>(&stm.op)) {
    rewrite_binders();
    ++parallel_depth_;
    tile->map.body = body(tile->map.body, true);
    tile->reduce.op.body = body(tile->reduce.op.body, true);
    --parallel_depth_;
  }
}

// Remembers what later rules look through.
void Simplifier::define(const Stm& stm) {
  if (const Assert* check = get_if<Assert>(stm)) know_condition(check->condition, true);
  if (stm.pattern.size() != 1 || places(stm)) return;
  const Value value = stm.pattern.front();
  if (const If* branch = get_if<If>(stm); branch != nullptr && values().type(value).is_scalar())
    branches_.insert_or_assign(value, *branch);
  // What relies on a check must not be looked through: its user could then move before the check.
  if (!has_bodies(stm.op) && stm.certificates.empty()) definitions_.insert_or_assign(value, stm.op);
  if (std::optional<Poly> size = as_size(stm)) {
    sizes_.insert_or_assign(value, std::move(*size));
  } else if (const SizeExpr* named = get_if<SizeExpr>(stm)) {
    if (non_negative(named->value)) know_size(value, non_negative(named->value - 1) ? 1 : 0);
  }
  if (std::holds_alternative<GetSize>(stm.op)) know_size(value, 1);
  if (const auto* converted = get_if<Convert>(stm)) know_converted(value, *converted);
}

bool Simplifier::places(const Stm& stm) const {
  return module_.stage == Stage::memory && std::ranges::any_of(stm.pattern, [&](Value v) {
           const Type& type = function_.values.type(v);
           return type.is_array() || type.is_memory();
         });
}

Fired Simplifier::apply_rules(Stm& stm) {
  if (places(stm)) return Fired::none;
  // A rule may replace stm.op, so each gets the operation by value.
  const Op op = stm.op;
  if (const auto* o = std::get_if<Use>(&op)) return use(stm, o->x);
  if (const auto* o = std::get_if<Unary>(&op)) return unary(stm, *o);
  if (const auto* o = std::get_if<Binary>(&op)) return binary(stm, *o);
  if (const auto* o = std::get_if<Compare>(&op)) return compare(stm, *o);
  if (const auto* o = std::get_if<Convert>(&op)) return convert(stm, *o);
  if (const auto* o = std::get_if<SizeExpr>(&op)) return size(stm, *o);
  if (const auto* o = std::get_if<Assert>(&op)) return assertion(stm, *o);
  if (const auto* o = std::get_if<Index>(&op)) return index(stm, *o);
  if (const auto* o = std::get_if<Rearrange>(&op)) return rearrange(stm, *o);
  if (const auto* o = std::get_if<Reshape>(&op)) return reshape(stm, *o);
  if (const auto* o = std::get_if<Copy>(&op)) return copy(stm, *o);
  if (const auto* o = std::get_if<Manifest>(&op)) return manifest(stm, *o);
  if (const auto* o = std::get_if<Replicate>(&op)) return replicate(stm, *o);
  if (const auto* o = std::get_if<If>(&op)) return branch(stm, *o);
  if (const auto* o = std::get_if<Choose>(&op)) return choose(stm, *o);
  if (const auto* o = std::get_if<Loop>(&op)) return loop(stm, *o);
  if (const auto* o = std::get_if<Apply>(&op)) return call(stm, *o);
  if (const auto* o = std::get_if<Screma>(&op)) return screma(stm, *o);
  if (const auto* o = std::get_if<Scatter>(&op)) return scatter(stm, *o);
  return Fired::none;
}

}  // namespace apl
