#include "passes/analysis/structure.h"

#include <unordered_map>

#include "ir/walk.h"

namespace apl {

namespace {

// Writes every field; what is bound inside is numbered in the order of its binding.
class Writer {
 public:
  explicit Writer(const ValueTable& values) : values_(values) {}

  std::string take() { return std::move(key_); }

  void at(Value v) {
    const auto found = inside_.find(v);
    found == inside_.end() ? put('v', v.id) : put('b', found->second);
  }
  void at(const Operand& x) {
    if (x.is_value()) return at(x.value());
    put('c', static_cast<std::uint64_t>(x.constant().type()));
    put(':', x.constant().bits());
  }
  void at(const Poly& p) {
    key_ += '[';
    for (const Term& term : p.terms()) {
      put('+', static_cast<std::uint64_t>(term.coefficient));
      for (const Factor& factor : term.factors) at(factor);
    }
    key_ += ']';
  }
  void at(const Factor& factor) {
    if (!factor.opaque) return at(factor.symbol);
    put('o', static_cast<std::uint64_t>(factor.opaque->kind));
    at(factor.opaque->a);
    at(factor.opaque->b);
  }
  void at(const Lmad& lmad) {
    at(lmad.offset());
    for (const LmadDim& dim : lmad.dims()) at(dim.size), at(dim.stride);
  }
  void at(const Type& type) {
    put('t', static_cast<std::uint64_t>(type.kind) * 64 + static_cast<std::uint64_t>(type.element));
    at(type.shape);
  }
  void at(const DimIndex& dim) {
    at(dim.start);
    if (!dim.count) return;
    key_ += '~';
    at(*dim.count);
    at(dim.stride);
  }
  void at(const ReduceOp& reduce) {
    at(reduce.op);
    at(reduce.neutral);
    put('k', (reduce.commutative ? 1 : 0) + (reduce.scan ? 2 : 0));
  }
  void at(const SegDim& dim) { at(dim.bound); }
  void at(const TileExtent::Part& part) { at(part.axis), at(part.bound); }
  void at(const TileExtent& e) { at(e.bound), at(e.tile), at(e.reg), at(e.split); }
  void at(const KernelResult& result) { put('r', static_cast<std::uint64_t>(result.kind)), at(result.extents); }
  void at(const TileGuard::Part& part) { at(part.bound), at(part.stride); }
  void at(const TileGuard& guard) {
    at(guard.start);
    if (guard.bound) at(*guard.bound);
    key_ += ';';
    at(guard.split);
  }
  void at(const TileDim& dim) { at(dim.tile), at(dim.reg); }
  void at(const TileOperand& operand) { at(operand.tile), at(operand.axes); }
  void at(int number) { put('i', static_cast<std::uint64_t>(number)); }
  void at(const std::string& text) {
    put('"', text.size());
    key_ += text;
  }
  void at(const std::variant<std::string, Operand>& piece) {
    std::visit([&](const auto& x) { at(x); }, piece);
  }
  template <class T>
  void at(const std::vector<T>& items) {
    put('(', items.size());
    for (const T& item : items) at(item);
  }
  void at(const Lambda& lambda) {
    key_ += '\\';
    bind_all(lambda.params);
    at(*lambda.body);
  }
  void at(const Body& body) {
    key_ += '{';
    for (const Stm& stm : body.stms) {
      op(stm.op);
      at(stm.certificates);
      bind_all(stm.pattern);
    }
    at(body.results);
    key_ += '}';
  }

  void op(const Op& op) {
    put('O', op.index());
    std::visit(*this, op);
  }

  void operator()(const Use& op) { at(op.x); }
  void operator()(const Unary& op) { enumerator(op.op), at(op.x); }
  void operator()(const Binary& op) { enumerator(op.op), at(op.x), at(op.y); }
  void operator()(const Compare& op) { enumerator(op.op), at(op.x), at(op.y); }
  void operator()(const Convert& op) { enumerator(op.to), at(op.x), put('?', op.same_bits ? 1 : 0); }
  void operator()(const SizeExpr& op) { at(op.value); }
  void operator()(const Index& op) { at(op.array), at(op.dims), put('?', op.checked ? 1 : 0); }
  void operator()(const Update& op) { at(op.array), at(op.dims), at(op.value), put('?', op.checked ? 1 : 0); }
  void operator()(const Iota& op) { enumerator(op.element), at(op.count), at(op.start), at(op.stride); }
  void operator()(const Replicate& op) { at(op.shape), at(op.value); }
  void operator()(const Scratch& op) { enumerator(op.element), at(op.shape); }
  void operator()(const Copy& op) { at(op.array); }
  void operator()(const Rearrange& op) { at(op.array), at(op.permutation); }
  void operator()(const Manifest& op) { at(op.array), at(op.permutation); }
  void operator()(const Reshape& op) { at(op.array), at(op.shape); }
  void operator()(const ArrayLit& op) { at(op.element), at(op.elements); }
  void operator()(const Assert& op) { at(op.condition), at(op.message); }
  void operator()(const If& op) { at(op.condition), at(*op.then_body), at(*op.else_body); }
  void operator()(const Loop& op) {
    at(op.initial);
    at(op.bound);
    bind_all(op.params);
    if (op.index) bind(op.index);
    at(*op.body);
  }
  void operator()(const Apply& op) { at(op.function), at(op.arguments); }
  void operator()(const GetSize& op) {
    at(op.name);
    enumerator(op.size_class);
    put('d', static_cast<std::uint64_t>(op.default_value));
  }
  void operator()(const Screma& op) {
    at(op.widths);
    at(op.inputs);
    bind_all(op.indices);
    at(op.map);
    at(op.reduces);
  }
  void operator()(const Scatter& op) {
    at(op.widths);
    at(op.inputs);
    at(op.targets);
    put('n', op.rank);
    bind_all(op.indices);
    at(op.map);
    put('o', op.op ? 1 : 0);
    if (op.op) at(*op.op);
  }
  void operator()(const SegOp& op) {
    enumerator(op.level);
    at(op.space);
    at(op.results);
    for (const SegDim& dim : op.space) bind(dim.index);
    at(*op.body);
  }
  void operator()(const SharedArray& op) { enumerator(op.element), at(op.layout); }
  void operator()(const CopyTile& op) { at(op.target), at(op.source), at(op.window), at(op.guards), at(op.pad); }
  void operator()(const TileContract& op) {
    at(op.space), at(op.depth), at(op.accumulators), at(op.operands), at(op.map), at(op.reduce);
  }
  void operator()(const Alloc& op) { at(op.bytes), enumerator(op.space); }
  void operator()(std::monostate) {}

 private:
  void put(char tag, std::uint64_t number) {
    key_ += tag;
    key_ += std::to_string(number);
    key_ += ' ';
  }
  template <class E>
  void enumerator(E e) {
    put('e', static_cast<std::uint64_t>(e));
  }
  void bind(Value v) {
    inside_.insert_or_assign(v, inside_.size());
    at(values_.type(v));
  }
  void bind_all(const std::vector<Value>& binders) {
    for (const Value v : binders) bind(v);
    key_ += '.';
  }

  const ValueTable& values_;
  std::unordered_map<Value, std::uint64_t> inside_;
  std::string key_;
};

}  // namespace

std::string structural_key(const Op& op, const ValueTable& values) {
  Writer writer(values);
  writer.op(op);
  return writer.take();
}

std::string structural_key(const Lambda& lambda, const ValueTable& values) {
  Writer writer(values);
  writer.at(lambda);
  return writer.take();
}

}  // namespace apl
