// Looking at operations: uses, bodies, binders, free values.
#include "ir/walk.h"

namespace apl {
namespace {

using Visit = std::function<void(Value)>;

struct Uses {
  const Visit& visit;

  void at(Value v) const { visit(v); }
  void at(const Operand& x) const {
    if (x.is_value()) visit(x.value());
  }
  void at(const Poly& p) const { p.for_each_symbol(visit); }
  void at(const Lmad& lmad) const {
    at(lmad.offset());
    for (const LmadDim& dim : lmad.dims()) at(dim.size), at(dim.stride);
  }
  void at(const Type& type) const { for_each_use(type, visit); }
  void at(const DimIndex& dim) const {
    at(dim.start);
    if (dim.count) at(*dim.count);
    at(dim.stride);
  }
  template <class T>
  void at(const std::vector<T>& items) const {
    for (const T& item : items) at(item);
  }
  void at(const ReduceOp& reduce) const { at(reduce.neutral); }
  void at(const TileExtent::Part& part) const { at(part.bound); }
  void at(const TileExtent& e) const { at(e.bound), at(e.tile), at(e.reg), at(e.split); }
  void at(const KernelResult& result) const { at(result.extents); }
  void at(const SegDim& dim) const { at(dim.bound); }
  void at(const TileGuard::Part& part) const { at(part.bound), at(part.stride); }
  void at(const TileGuard& guard) const {
    at(guard.start);
    if (guard.bound) at(*guard.bound);
    at(guard.split);
  }
  void at(const TileDim& dim) const { at(dim.tile), at(dim.reg); }
  void at(const TileOperand& operand) const { at(operand.tile); }

  void operator()(const Use& op) const { at(op.x); }
  void operator()(const Unary& op) const { at(op.x); }
  void operator()(const Binary& op) const { at(op.x), at(op.y); }
  void operator()(const Compare& op) const { at(op.x), at(op.y); }
  void operator()(const Convert& op) const { at(op.x); }
  void operator()(const SizeExpr& op) const { at(op.value); }
  void operator()(const Index& op) const { at(op.array), at(op.dims); }
  void operator()(const Update& op) const { at(op.array), at(op.dims), at(op.value); }
  void operator()(const Iota& op) const { at(op.count), at(op.start), at(op.stride); }
  void operator()(const Replicate& op) const { at(op.shape), at(op.value); }
  void operator()(const Scratch& op) const { at(op.shape); }
  void operator()(const Copy& op) const { at(op.array); }
  void operator()(const Rearrange& op) const { at(op.array); }
  void operator()(const Manifest& op) const { at(op.array); }
  void operator()(const Reshape& op) const { at(op.array), at(op.shape); }
  void operator()(const ArrayLit& op) const { at(op.element), at(op.elements); }
  void operator()(const Assert& op) const {
    at(op.condition);
    for (const auto& piece : op.message)
      if (const Operand* x = std::get_if<Operand>(&piece)) at(*x);
  }
  void operator()(const If& op) const { at(op.condition); }
  void operator()(const Loop& op) const { at(op.initial), at(op.bound); }
  void operator()(const Apply& op) const { at(op.arguments); }
  void operator()(const GetSize&) const {}
  void operator()(const Screma& op) const { at(op.widths), at(op.inputs), at(op.reduces); }
  void operator()(const Scatter& op) const {
    at(op.widths), at(op.inputs), at(op.targets);
    if (op.op) at(*op.op);
  }
  void operator()(const SegOp& op) const { at(op.space), at(op.results); }
  void operator()(const SharedArray& op) const { at(op.layout); }
  void operator()(const CopyTile& op) const { at(op.target), at(op.source), at(op.window), at(op.guards), at(op.pad); }
  void operator()(const TileContract& op) const {
    at(op.space), at(op.depth), at(op.accumulators), at(op.operands), at(op.reduce);
  }
  void operator()(const Alloc& op) const { at(op.bytes); }
  void operator()(std::monostate) const {}
};

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

void for_each_use(const Op& op, const std::function<void(Value)>& visit) { std::visit(Uses{visit}, op); }

void for_each_use(const Type& type, const std::function<void(Value)>& visit) {
  for (const Poly& size : type.shape) size.for_each_symbol(visit);
  if (!type.memory) return;
  visit(type.memory->block);
  Uses{visit}.at(type.memory->layout);
}

void for_each_body(const Op& op, const std::function<void(const BodyPtr&)>& visit) {
  if (const If* branch = std::get_if<If>(&op)) visit(branch->then_body), visit(branch->else_body);
  if (const Loop* loop = std::get_if<Loop>(&op)) visit(loop->body);
  if (const Screma* screma = std::get_if<Screma>(&op)) {
    visit(screma->map.body);
    for (const ReduceOp& reduce : screma->reduces) visit(reduce.op.body);
  }
  if (const Scatter* scatter = std::get_if<Scatter>(&op)) {
    visit(scatter->map.body);
    if (scatter->op) visit(scatter->op->op.body);
  }
  if (const SegOp* seg = std::get_if<SegOp>(&op)) visit(seg->body);
  if (const TileContract* tile = std::get_if<TileContract>(&op)) visit(tile->map.body), visit(tile->reduce.op.body);
}

void for_each_binder(const Op& op, const std::function<void(Value)>& visit) {
  auto all = [&](const std::vector<Value>& binders) {
    for (Value v : binders) visit(v);
  };
  if (const Loop* loop = std::get_if<Loop>(&op)) {
    all(loop->params);
    if (loop->index) visit(loop->index);
  }
  if (const Screma* screma = std::get_if<Screma>(&op)) {
    all(screma->indices), all(screma->map.params);
    for (const ReduceOp& reduce : screma->reduces) all(reduce.op.params);
  }
  if (const Scatter* scatter = std::get_if<Scatter>(&op)) {
    all(scatter->indices), all(scatter->map.params);
    if (scatter->op) all(scatter->op->op.params);
  }
  if (const SegOp* seg = std::get_if<SegOp>(&op))
    for (const SegDim& dim : seg->space) visit(dim.index);
  if (const TileContract* tile = std::get_if<TileContract>(&op)) all(tile->map.params), all(tile->reduce.op.params);
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

bool can_fail(const Op& op, const ValueTable& values) {
  if (const Binary* binary = std::get_if<Binary>(&op)) {
    bool divides = binary->op == BinaryOp::div || binary->op == BinaryOp::quot || binary->op == BinaryOp::mod ||
                   binary->op == BinaryOp::rem;
    bool safe_divisor = binary->y.is_constant() && binary->y.constant() != Scalar::zero(binary->y.constant().type());
    return divides && is_integer(values.type(binary->x).element) && !safe_divisor;
  }
  if (const Index* index = std::get_if<Index>(&op)) return index->checked;
  if (const Update* update = std::get_if<Update>(&op)) return update->checked;
  if (std::holds_alternative<Assert>(op) || std::holds_alternative<Apply>(op)) return true;
  // Sizes that are not known to be >= 0 are checked when the array is made.
  if (std::holds_alternative<Iota>(op) || std::holds_alternative<Replicate>(op) || std::holds_alternative<Scratch>(op))
    return true;
  bool inside = false;
  for_each_body(op, [&](const BodyPtr& body) { inside = inside || can_fail(*body, values); });
  return inside;
}

bool can_fail(const Body& body, const ValueTable& values) {
  for (const Stm& stm : body.stms)
    if (can_fail(stm.op, values)) return true;
  return false;
}

}  // namespace apl
