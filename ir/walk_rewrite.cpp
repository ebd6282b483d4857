// Rewriting operations: substitution, fresh copies, inlining of lambdas.
#include "ir/builder.h"
#include "ir/fields.h"
#include "ir/walk.h"

namespace apl {

Operand substitute(const Operand& operand, const Substitution& map) {
  if (operand.is_constant()) return operand;
  auto found = map.find(operand.value());
  return found == map.end() ? operand : found->second;
}

Value substitute(Value value, const Substitution& map) {
  auto found = map.find(value);
  return found == map.end() || !found->second.is_value() ? value : found->second.value();
}

namespace {

std::function<std::optional<Poly>(Value)> poly_replacer(const Substitution& map) {
  return [&map](Value symbol) -> std::optional<Poly> {
    auto found = map.find(symbol);
    if (found == map.end()) return std::nullopt;
    return as_poly(found->second);
  };
}

}  // namespace

Poly substitute(const Poly& poly, const Substitution& map) {
  if (map.empty()) return poly;
  return poly.substitute(poly_replacer(map));
}

Lmad substitute(const Lmad& lmad, const Substitution& map) {
  if (map.empty()) return lmad;
  return lmad.substitute(poly_replacer(map));
}

Type substitute(const Type& type, const Substitution& map) {
  Type result = type;
  for (Poly& size : result.shape) size = substitute(size, map);
  if (type.memory)
    result.memory = std::make_shared<const MemoryBinding>(
        MemoryBinding{substitute(type.memory->block, map), substitute(type.memory->layout, map)});
  return result;
}

namespace {

// Replaces every use in an operation's own fields.
struct ReplaceUses : UsesOnly {
  const Substitution& map;

  using UsesOnly::operator();
  void operator()(Value& v) const { v = substitute(v, map); }
  void operator()(Operand& x) const { x = substitute(x, map); }
  void operator()(Poly& p) const { p = substitute(p, map); }
  void operator()(Lmad& lmad) const { lmad = substitute(lmad, map); }
  void operator()(Type& type) const { type = substitute(type, map); }
};

// Replaces what is bound and the nested bodies, through two functions; a body after what is bound for it.
template <class OnBinder, class OnBody>
struct ReplaceNested {
  const OnBinder& on_binder;
  const OnBody& on_body;

  template <class T>
  void operator()(const T&) const {}
  void operator()(Binder& binder) const { binder = on_binder(binder); }
  void operator()(OptionalBinder& binder) const {
    if (binder) binder = on_binder(binder);
  }
  void operator()(Binders& binders) const {
    for (Value& v : binders) v = on_binder(v);
  }
  void operator()(BodyPtr& body) const { body = on_body(body); }
};

template <class OnBinder, class OnBody>
Op replaced(const Op& op, const Substitution& map, const OnBinder& on_binder, const OnBody& on_body) {
  Op result = op;
  for_each_leaf(result, ReplaceUses{{}, map});
  for_each_leaf(result, ReplaceNested<OnBinder, OnBody>{on_binder, on_body});
  return result;
}

bool mentions(const Type& type, const Substitution& map) {
  bool found = false;
  for_each_use(type, [&](Value v) { found = found || map.count(v) != 0; });
  return found;
}

void update_type(Value v, const Substitution& map, ValueTable& values) {
  if (mentions(values.type(v), map)) values.set_type(v, substitute(values.type(v), map));
}

}  // namespace

Op substitute(const Op& op, const Substitution& map, ValueTable& values) {
  if (map.empty()) return op;
  const auto on_body = [&](const BodyPtr& body) { return substitute(body, map, values); };
  const auto on_binder = [&](Value v) {
    update_type(v, map, values);
    return v;
  };
  return replaced(op, map, on_binder, on_body);
}

Stm substitute(const Stm& stm, const Substitution& map, ValueTable& values) {
  Stm result = stm;
  result.op = substitute(stm.op, map, values);
  for (Value& certificate : result.certificates) certificate = substitute(certificate, map);
  for (Value v : stm.pattern) update_type(v, map, values);
  return result;
}

BodyPtr substitute(const BodyPtr& body, const Substitution& map, ValueTable& values) {
  if (map.empty()) return body;
  // Sharing: a body that mentions nothing of the map stays the same object.
  bool touched = false;
  for (Value v : free_values(*body, values)) touched = touched || map.count(v) != 0;
  if (!touched) return body;
  Body result;
  for (const Stm& stm : body->stms) result.stms.push_back(substitute(stm, map, values));
  for (const Operand& operand : body->results) result.results.push_back(substitute(operand, map));
  return std::make_shared<const Body>(std::move(result));
}

Lambda substitute(const Lambda& lambda, const Substitution& map, ValueTable& values) {
  for (Value param : lambda.params) update_type(param, map, values);
  return {lambda.params, substitute(lambda.body, map, values)};
}

Op map_bodies(const Op& op, const std::function<BodyPtr(const BodyPtr&)>& rewrite) {
  Op result = op;
  const auto same = [](Value v) { return v; };
  for_each_leaf(result, ReplaceNested<decltype(same), std::function<BodyPtr(const BodyPtr&)>>{same, rewrite});
  return result;
}

namespace {

Value fresh(Value v, Substitution& map, const ValueTable& from, ValueTable& to) {
  Value copy = to.add(substitute(from.type(v), map), from.name(v));
  map.insert_or_assign(v, Operand(copy));
  return copy;
}

}  // namespace

BodyPtr copy_fresh(const BodyPtr& body, Substitution& map, const ValueTable& from, ValueTable& to,
                   const std::function<Location(const Location&)>& locate) {
  const auto on_body = [&](const BodyPtr& inner) { return copy_fresh(inner, map, from, to, locate); };
  const auto on_binder = [&](Value v) { return fresh(v, map, from, to); };
  Body result;
  for (const Stm& stm : body->stms) {
    Stm copy = stm;
    if (locate) copy.location = locate(stm.location);
    copy.op = replaced(stm.op, map, on_binder, on_body);
    for (Value& certificate : copy.certificates) certificate = substitute(certificate, map);
    for (Value& v : copy.pattern) v = fresh(v, map, from, to);
    result.stms.push_back(std::move(copy));
  }
  for (const Operand& operand : body->results) result.results.push_back(substitute(operand, map));
  return std::make_shared<const Body>(std::move(result));
}

Lambda copy_fresh(const Lambda& lambda, Substitution map, const ValueTable& from, ValueTable& to) {
  Lambda result;
  for (Value param : lambda.params) result.params.push_back(fresh(param, map, from, to));
  result.body = copy_fresh(lambda.body, map, from, to);
  return result;
}

std::vector<Operand> inline_lambda(const Lambda& lambda, const std::vector<Operand>& arguments, ValueTable& values,
                                   std::vector<Stm>& out) {
  Substitution map;
  for (std::size_t k = 0; k < lambda.params.size(); ++k) map.insert_or_assign(lambda.params[k], arguments[k]);
  BodyPtr body = copy_fresh(lambda.body, map, values, values);
  out.insert(out.end(), body->stms.begin(), body->stms.end());
  return body->results;
}

}  // namespace apl
