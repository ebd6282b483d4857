// Rewriting operations: substitution, fresh copies, inlining of lambdas.
#include "ir/builder.h"
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

// Replaces every use in an operation's own fields; bodies and binders go through two hooks, so that plain
// substitution and fresh copies share this one walk.
struct Replace {
  const Substitution& map;
  const std::function<BodyPtr(const BodyPtr&)>& on_body;
  const std::function<Value(Value)>& on_binder;

  Value at(Value v) const { return substitute(v, map); }
  Operand at(const Operand& x) const { return substitute(x, map); }
  Poly at(const Poly& p) const { return substitute(p, map); }
  Lmad at(const Lmad& l) const { return substitute(l, map); }
  Type at(const Type& t) const { return substitute(t, map); }
  DimIndex at(const DimIndex& d) const {
    return {at(d.start), d.count ? std::optional(at(*d.count)) : std::nullopt, at(d.stride)};
  }
  TileExtent::Part at(const TileExtent::Part& p) const { return {p.axis, at(p.bound)}; }
  TileExtent at(const TileExtent& e) const { return {at(e.bound), at(e.tile), at(e.reg), at(e.split)}; }
  KernelResult at(const KernelResult& r) const { return {r.kind, at(r.extents)}; }
  TileGuard::Part at(const TileGuard::Part& p) const { return {at(p.bound), at(p.stride)}; }
  TileGuard at(const TileGuard& g) const {
    return {at(g.start), g.bound ? std::optional(at(*g.bound)) : std::nullopt, at(g.split)};
  }
  TileDim at(const TileDim& d) const { return {at(d.tile), at(d.reg)}; }
  TileOperand at(const TileOperand& o) const { return {at(o.tile), o.axes}; }
  template <class T>
  std::vector<T> at(const std::vector<T>& items) const {
    std::vector<T> result;
    result.reserve(items.size());
    for (const T& item : items) result.push_back(at(item));
    return result;
  }
  std::vector<Value> bind(const std::vector<Value>& binders) const {
    std::vector<Value> result;
    for (Value v : binders) result.push_back(on_binder(v));
    return result;
  }
  Lambda lambda(const Lambda& l) const {
    std::vector<Value> params = bind(l.params);
    return {std::move(params), on_body(l.body)};
  }
  ReduceOp reduce(const ReduceOp& r) const {
    std::vector<Operand> neutral = at(r.neutral);
    return {lambda(r.op), std::move(neutral), r.commutative, r.scan};
  }

  Op operator()(const Use& op) const { return Use{at(op.x)}; }
  Op operator()(const Unary& op) const { return Unary{op.op, at(op.x)}; }
  Op operator()(const Binary& op) const { return Binary{op.op, at(op.x), at(op.y)}; }
  Op operator()(const Compare& op) const { return Compare{op.op, at(op.x), at(op.y)}; }
  Op operator()(const Convert& op) const { return Convert{op.to, at(op.x), op.same_bits}; }
  Op operator()(const SizeExpr& op) const { return SizeExpr{at(op.value)}; }
  Op operator()(const Index& op) const { return Index{at(op.array), at(op.dims), op.checked}; }
  Op operator()(const Update& op) const { return Update{at(op.array), at(op.dims), at(op.value), op.checked}; }
  Op operator()(const Iota& op) const { return Iota{op.element, at(op.count), at(op.start), at(op.stride)}; }
  Op operator()(const Replicate& op) const { return Replicate{at(op.shape), at(op.value)}; }
  Op operator()(const Scratch& op) const { return Scratch{op.element, at(op.shape)}; }
  Op operator()(const Copy& op) const { return Copy{at(op.array)}; }
  Op operator()(const Rearrange& op) const { return Rearrange{at(op.array), op.permutation}; }
  Op operator()(const Manifest& op) const { return Manifest{at(op.array), op.permutation}; }
  Op operator()(const Reshape& op) const { return Reshape{at(op.array), at(op.shape)}; }
  Op operator()(const ArrayLit& op) const { return ArrayLit{at(op.element), at(op.elements)}; }
  Op operator()(const Assert& op) const {
    Assert result{at(op.condition), op.message};
    for (auto& piece : result.message)
      if (Operand* x = std::get_if<Operand>(&piece)) *x = at(*x);
    return result;
  }
  Op operator()(const If& op) const { return If{at(op.condition), on_body(op.then_body), on_body(op.else_body)}; }
  Op operator()(const Loop& op) const {
    std::vector<Operand> initial = at(op.initial);
    Poly bound = at(op.bound);
    Value index = op.index ? on_binder(op.index) : op.index;
    std::vector<Value> params = bind(op.params);
    return Loop{std::move(params), std::move(initial), index, std::move(bound), on_body(op.body)};
  }
  Op operator()(const Apply& op) const { return Apply{op.function, at(op.arguments)}; }
  Op operator()(const GetSize& op) const { return op; }
  Op operator()(const Screma& op) const {
    Screma result;
    result.widths = at(op.widths);
    result.inputs = at(op.inputs);
    result.indices = bind(op.indices);
    result.map = lambda(op.map);
    for (const ReduceOp& r : op.reduces) result.reduces.push_back(reduce(r));
    return result;
  }
  Op operator()(const Scatter& op) const {
    Scatter result;
    result.widths = at(op.widths);
    result.inputs = at(op.inputs);
    result.targets = at(op.targets);
    result.rank = op.rank;
    result.indices = bind(op.indices);
    result.map = lambda(op.map);
    if (op.op) result.op = reduce(*op.op);
    return result;
  }
  Op operator()(const SegOp& op) const {
    SegOp result;
    result.level = op.level;
    for (const SegDim& dim : op.space) result.space.push_back({dim.index, at(dim.bound)});
    result.results = at(op.results);
    for (SegDim& dim : result.space) dim.index = on_binder(dim.index);
    result.body = on_body(op.body);
    return result;
  }
  Op operator()(const SharedArray& op) const { return SharedArray{op.element, at(op.layout)}; }
  Op operator()(const CopyTile& op) const {
    return CopyTile{at(op.target), at(op.source), at(op.window), at(op.guards), at(op.pad)};
  }
  Op operator()(const TileContract& op) const {
    TileContract result;
    result.space = at(op.space);
    result.depth = at(op.depth);
    result.accumulators = at(op.accumulators);
    result.operands = at(op.operands);
    result.map = lambda(op.map);
    result.reduce = reduce(op.reduce);
    return result;
  }
  Op operator()(const Alloc& op) const { return Alloc{at(op.bytes), op.space}; }
  Op operator()(std::monostate) const { return std::monostate{}; }
};

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
  const std::function<BodyPtr(const BodyPtr&)> on_body = [&](const BodyPtr& body) {
    return substitute(body, map, values);
  };
  const std::function<Value(Value)> on_binder = [&](Value v) {
    update_type(v, map, values);
    return v;
  };
  return std::visit(Replace{map, on_body, on_binder}, op);
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
  if (If* branch = std::get_if<If>(&result)) {
    branch->then_body = rewrite(branch->then_body);
    branch->else_body = rewrite(branch->else_body);
  } else if (Loop* loop = std::get_if<Loop>(&result)) {
    loop->body = rewrite(loop->body);
  } else if (Screma* screma = std::get_if<Screma>(&result)) {
    screma->map.body = rewrite(screma->map.body);
    for (ReduceOp& reduce : screma->reduces) reduce.op.body = rewrite(reduce.op.body);
  } else if (Scatter* scatter = std::get_if<Scatter>(&result)) {
    scatter->map.body = rewrite(scatter->map.body);
    if (scatter->op) scatter->op->op.body = rewrite(scatter->op->op.body);
  } else if (SegOp* seg = std::get_if<SegOp>(&result)) {
    seg->body = rewrite(seg->body);
  } else if (TileContract* tile = std::get_if<TileContract>(&result)) {
    tile->map.body = rewrite(tile->map.body);
    tile->reduce.op.body = rewrite(tile->reduce.op.body);
  }
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
  const std::function<BodyPtr(const BodyPtr&)> on_body = [&](const BodyPtr& inner) {
    return copy_fresh(inner, map, from, to, locate);
  };
  const std::function<Value(Value)> on_binder = [&](Value v) { return fresh(v, map, from, to); };
  Body result;
  for (const Stm& stm : body->stms) {
    Stm copy = stm;
    if (locate) copy.location = locate(stm.location);
    copy.op = std::visit(Replace{map, on_body, on_binder}, stm.op);
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
