#include "passes/analysis/map_uses.h"

namespace apl {

namespace {

struct Mapper {
  const UseMap& map;

  void at(Value& v) const { v = map.value(v); }
  void at(Operand& x) const { x = map.operand(x); }
  void at(Poly& p) const { p = map.poly(p); }
  void at(Lmad& lmad) const {
    Poly offset = map.poly(lmad.offset());
    std::vector<LmadDim> dims = lmad.dims();
    for (LmadDim& dim : dims) at(dim.size), at(dim.stride);
    lmad = Lmad(std::move(offset), std::move(dims));
  }
  void at(Type& type) const { type = map_uses(type, map); }
  void at(DimIndex& dim) const {
    at(dim.start);
    if (dim.count) at(*dim.count);
    at(dim.stride);
  }
  void at(TileGuard::Part& part) const { at(part.bound), at(part.stride); }
  void at(TileExtent::Part& part) const { at(part.bound); }
  void at(TileGuard& guard) const {
    at(guard.start);
    if (guard.bound) at(*guard.bound);
    at(guard.split);
  }
  void at(TileDim& dim) const { at(dim.tile), at(dim.reg); }
  void at(TileOperand& operand) const { at(operand.tile); }
  void at(TileExtent& extent) const { at(extent.bound), at(extent.tile), at(extent.reg), at(extent.split); }
  void at(KernelResult& result) const { at(result.extents); }
  void at(SegDim& dim) const { at(dim.bound); }
  void at(ReduceOp& reduce) const { at(reduce.neutral); }
  template <class T>
  void at(std::vector<T>& items) const {
    for (T& item : items) at(item);
  }

  void operator()(Use& op) const { at(op.x); }
  void operator()(Unary& op) const { at(op.x); }
  void operator()(Binary& op) const { at(op.x), at(op.y); }
  void operator()(Compare& op) const { at(op.x), at(op.y); }
  void operator()(Convert& op) const { at(op.x); }
  void operator()(SizeExpr& op) const { at(op.value); }
  void operator()(Index& op) const { at(op.array), at(op.dims); }
  void operator()(Update& op) const { at(op.array), at(op.dims), at(op.value); }
  void operator()(Iota& op) const { at(op.count), at(op.start), at(op.stride); }
  void operator()(Replicate& op) const { at(op.shape), at(op.value); }
  void operator()(Scratch& op) const { at(op.shape); }
  void operator()(Copy& op) const { at(op.array); }
  void operator()(Rearrange& op) const { at(op.array); }
  void operator()(Manifest& op) const { at(op.array); }
  void operator()(Reshape& op) const { at(op.array), at(op.shape); }
  void operator()(ArrayLit& op) const { at(op.element), at(op.elements); }
  void operator()(Assert& op) const {
    at(op.condition);
    for (auto& piece : op.message) {
      if (Operand* x = std::get_if<Operand>(&piece)) at(*x);
    }
  }
  void operator()(If& op) const { at(op.condition); }
  void operator()(Loop& op) const { at(op.initial), at(op.bound); }
  void operator()(Apply& op) const { at(op.arguments); }
  void operator()(GetSize&) const {}
  void operator()(Screma& op) const { at(op.widths), at(op.inputs), at(op.reduces); }
  void operator()(Scatter& op) const {
    at(op.widths), at(op.inputs), at(op.targets);
    if (op.op) at(*op.op);
  }
  void operator()(SegOp& op) const { at(op.space), at(op.results); }
  void operator()(SharedArray& op) const { at(op.layout); }
  void operator()(CopyTile& op) const { at(op.target), at(op.source), at(op.window), at(op.guards), at(op.pad); }
  void operator()(TileContract& op) const {
    at(op.space), at(op.depth), at(op.accumulators), at(op.operands), at(op.reduce);
  }
  void operator()(Alloc& op) const { at(op.bytes); }
  void operator()(std::monostate) const {}
};

}  // namespace

Op map_uses(const Op& op, const UseMap& map) {
  Op result = op;
  std::visit(Mapper{map}, result);
  return result;
}

Type map_uses(const Type& type, const UseMap& map) {
  Type result = type;
  const Mapper mapper{map};
  mapper.at(result.shape);
  if (type.memory) {
    MemoryBinding binding = *type.memory;
    mapper.at(binding.block);
    mapper.at(binding.layout);
    result.memory = std::make_shared<const MemoryBinding>(std::move(binding));
  }
  return result;
}

}  // namespace apl
