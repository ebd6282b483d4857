// Looking at operations: uses, bodies, binders, free values.
#include <algorithm>
#include <optional>

#include "ir/calls.h"
#include "ir/fields.h"
#include "ir/node_info.h"
#include "ir/walk.h"

namespace apl {
namespace {

using Visit = std::function<void(Value)>;

struct Uses : UsesOnly {
  const Visit& visit;

  using UsesOnly::operator();
  void operator()(Value v) const { visit(v); }
  void operator()(const Operand& x) const {
    if (x.is_value()) visit(x.value());
  }
  void operator()(const Poly& p) const { p.for_each_symbol(visit); }
  void operator()(const Lmad& lmad) const {
    (*this)(lmad.offset());
    for (const LmadDim& dim : lmad.dims()) (*this)(dim.size), (*this)(dim.stride);
  }
  void operator()(const Type& type) const { for_each_use(type, visit); }
};

// Calls on_binder for each value that an operation binds and on_body for each nested body, in order; a body comes after
// what is bound for it.
template <class OnBinder, class OnBody>
struct Nested {
  const OnBinder& on_binder;
  const OnBody& on_body;

  template <class T>
  void operator()(const T&) const {}
  void operator()(const Binder& binder) const { on_binder(binder); }
  void operator()(const OptionalBinder& binder) const {
    if (binder) on_binder(binder);
  }
  void operator()(const Binders& binders) const {
    for (const Value v : binders) on_binder(v);
  }
  void operator()(const BodyPtr& body) const { on_body(body); }
};

template <class OnBinder, class OnBody>
void for_each_nested(const Op& op, const OnBinder& on_binder, const OnBody& on_body) {
  for_each_leaf(op, Nested<OnBinder, OnBody>{on_binder, on_body});
}

// What is bound so far and read from outside, for one walk over nested bodies.
class FreeValues {
 public:
  explicit FreeValues(const ValueTable& values) : values_(values) {}

  void op(const Op& op) {
    for_each_binder(op, [&](Value v) { bind(v); });
    for_each_use(op, [&](Value v) { read(v); });
    for_each_body(op, [&](const BodyPtr& inner) { body(*inner); });
  }
  void body(const Body& body) {
    for (const Stm& stm : body.stms) {
      op(stm.op);
      for (Value certificate : stm.certificates) read(certificate);
      for (Value v : stm.pattern) bind(v);
    }
    for (const Operand& result : body.results)
      if (result.is_value()) read(result.value());
  }
  void lambda(const Lambda& lambda) {
    for (Value param : lambda.params) bind(param);
    body(*lambda.body);
  }
  std::set<Value> take() {
    // A value may be read (in a shape) before the walk meets its binder.
    for (Value v : bound_) read_.erase(v);
    return std::move(read_);
  }

 private:
  void bind(Value v) {
    bound_.insert(v);
    for_each_use(values_.type(v), [&](Value symbol) { read(symbol); });
  }
  void read(Value v) {
    if (!bound_.count(v)) read_.insert(v);
  }

  const ValueTable& values_;
  std::set<Value> bound_, read_;
};

}  // namespace

void for_each_use(const Op& op, const Visit& visit) { for_each_leaf(op, Uses{{}, visit}); }

void for_each_use(const Type& type, const Visit& visit) {
  for (const Poly& size : type.shape) size.for_each_symbol(visit);
  if (!type.memory) return;
  visit(type.memory->block);
  Uses{{}, visit}(type.memory->layout);
}

void for_each_body(const Op& op, const std::function<void(const BodyPtr&)>& visit) {
  for_each_nested(
      op, [](Value) {}, visit);
}

bool has_bodies(const Op& op) {
  bool found = false;
  for_each_body(op, [&](const BodyPtr&) { found = true; });
  return found;
}

void for_each_binder(const Op& op, const Visit& visit) {
  for_each_nested(op, visit, [](const BodyPtr&) {});
}

void for_each_scope(const Op& op, const std::function<void(const std::vector<Value>&, const BodyPtr&)>& visit) {
  std::vector<Value> bound;
  for_each_nested(
      op, [&](Value v) { bound.push_back(v); },
      [&](const BodyPtr& body) {
        visit(bound, body);
        bound.clear();
      });
}

void for_each_stm(const Body& body, const std::function<void(const Stm&)>& visit) {
  for (const Stm& stm : body.stms) {
    visit(stm);
    for_each_body(stm.op, [&](const BodyPtr& inner) { for_each_stm(*inner, visit); });
  }
}

std::set<Value> free_values(const Body& body, const ValueTable& values) {
  FreeValues walk(values);
  walk.body(body);
  return walk.take();
}

std::set<Value> free_values(const Op& op, const ValueTable& values) {
  FreeValues walk(values);
  walk.op(op);
  return walk.take();
}

std::set<Value> free_values(const Lambda& lambda, const ValueTable& values) {
  FreeValues walk(values);
  walk.lambda(lambda);
  return walk.take();
}

const Stm* defining_stm(const Body& body, Value value) {
  for (const Stm& stm : body.stms)
    for (Value v : stm.pattern)
      if (v == value) return &stm;
  return nullptr;
}

std::optional<BinaryOp> as_binary_op(const Lambda& lambda) {
  if (lambda.params.size() != 2 || lambda.body->stms.size() != 1 || lambda.body->results.size() != 1)
    return std::nullopt;
  const Stm& stm = lambda.body->stms.front();
  const Binary* binary = get_if<Binary>(stm);
  if (!binary || lambda.body->results.front() != Operand(stm.pattern.front())) return std::nullopt;
  Operand a(lambda.params[0]), b(lambda.params[1]);
  bool in_order = binary->x == a && binary->y == b;
  bool swapped = binary->x == b && binary->y == a;
  if (in_order || (swapped && is_commutative(binary->op))) return binary->op;
  return std::nullopt;
}

bool is_commutative(BinaryOp op) {
  switch (op) {
    case BinaryOp::add:
    case BinaryOp::mul:
    case BinaryOp::min:
    case BinaryOp::max:
    case BinaryOp::conj:
    case BinaryOp::disj:
    case BinaryOp::exor: return true;
    default: return false;
  }
}

bool is_identity(const Lambda& lambda) {
  if (!lambda.body->stms.empty() || lambda.body->results.size() != lambda.params.size()) return false;
  for (std::size_t k = 0; k < lambda.params.size(); ++k)
    if (lambda.body->results[k] != Operand(lambda.params[k])) return false;
  return true;
}

namespace {

bool divides_by_zero(const Binary& op, const ValueTable& values) {
  const bool divides = division_of(op.op) == op.op;
  const bool safe_divisor = op.y.is_constant() && op.y.constant() != Scalar::zero(op.y.constant().type());
  return divides && is_integer(values.type(op.x).element) && !safe_divisor;
}

}  // namespace

bool can_fail(const Op& op, const ValueTable& values) {
  switch (node_info(op).failure) {
    case Failure::never: return false;
    case Failure::division: return divides_by_zero(std::get<Binary>(op), values);
    case Failure::bounds: {
      const Index* index = std::get_if<Index>(&op);
      return index ? index->checked : std::get<Update>(op).checked;
    }
    case Failure::always: return true;
    case Failure::bodies: break;
  }
  bool inside = false;
  for_each_body(op, [&](const BodyPtr& body) { inside = inside || can_fail(*body, values); });
  return inside;
}

bool can_fail(const Body& body, const ValueTable& values) {
  for (const Stm& stm : body.stms)
    if (can_fail(stm.op, values)) return true;
  return false;
}

bool is_scalar_function(const Function& function, const FindFunction& find) {
  std::set<const Function*> seen;
  std::vector<const Function*> rest{&function};
  while (!rest.empty()) {
    const Function* next = rest.back();
    rest.pop_back();
    if (next == nullptr) return false;
    if (!seen.insert(next).second) continue;
    const auto is_scalar = [&](Value v) { return next->type(v).is_scalar(); };
    if (!next->sizes.empty() || !std::ranges::all_of(next->params, is_scalar)) return false;
    bool scalars = std::ranges::all_of(next->results, [](const Type& type) { return type.is_scalar(); });
    for_each_stm(*next->body, [&](const Stm& stm) {
      const bool computes = std::holds_alternative<Use>(stm.op) || std::holds_alternative<Unary>(stm.op) ||
                            std::holds_alternative<Binary>(stm.op) || std::holds_alternative<Compare>(stm.op) ||
                            std::holds_alternative<Convert>(stm.op) || std::holds_alternative<SizeExpr>(stm.op) ||
                            std::holds_alternative<Assert>(stm.op) || std::holds_alternative<If>(stm.op) ||
                            std::holds_alternative<Loop>(stm.op) || std::holds_alternative<Apply>(stm.op);
      scalars = scalars && computes && std::ranges::all_of(stm.pattern, is_scalar);
      if (const Apply* call = get_if<Apply>(stm)) rest.push_back(find(call->function));
    });
    if (!scalars) return false;
  }
  return true;
}

std::vector<Stm> bind_call(const Stm& call, const Function& callee, const Body& body, const ValueTable& values) {
  std::vector<Stm> made;
  const auto bind = [&](Value v, Op op) {
    made.push_back({.pattern = {v},
                    .op = std::move(op),
                    .location = call.location,
                    .certificates = call.certificates,
                    .attributes = {}});
  };
  const std::size_t sizes = callee.result_sizes.size();
  for (std::size_t s = 0; s < sizes; ++s) {
    std::optional<Poly> size;
    for (std::size_t k = 0; k < callee.results.size(); ++k)
      for (std::size_t d = 0; d < callee.results[k].rank() && !size; ++d)
        if (callee.results[k].shape[d] == Poly(callee.result_sizes[s])) size = values.type(body.results[k]).shape[d];
    bind(call.pattern[s], SizeExpr{size.value_or(0)});
  }
  for (std::size_t k = 0; k < body.results.size(); ++k) {
    const Value v = call.pattern[sizes + k];
    const bool decided = std::ranges::any_of(callee.results[k].shape, [&](const Poly& size) {
      return std::ranges::any_of(callee.result_sizes, [&](Value s) { return size.mentions(s); });
    });
    if (decided)
      bind(v, Reshape{body.results[k].value(), values.type(v).shape});
    else
      bind(v, Use{body.results[k]});
  }
  return made;
}

std::vector<BodyPtr> branches(const Op& op) {
  if (const If* branch = std::get_if<If>(&op)) return {branch->then_body, branch->else_body};
  std::vector<BodyPtr> bodies;
  if (const Choose* choose = std::get_if<Choose>(&op))
    for (const Choose::Alternative& alternative : choose->alternatives) bodies.push_back(alternative.body);
  return bodies;
}

}  // namespace apl
