#include "passes/analysis/map_uses.h"

#include "ir/fields.h"

namespace apl {

namespace {

struct Mapper : UsesOnly {
  const UseMap& map;

  using UsesOnly::operator();
  void operator()(Value& v) const { v = map.value(v); }
  void operator()(Operand& x) const { x = map.operand(x); }
  void operator()(Poly& p) const { p = map.poly(p); }
  void operator()(Lmad& lmad) const {
    Poly offset = map.poly(lmad.offset());
    std::vector<LmadDim> dims = lmad.dims();
    for (LmadDim& dim : dims) (*this)(dim.size), (*this)(dim.stride);
    lmad = Lmad(std::move(offset), std::move(dims));
  }
  void operator()(Type& type) const { type = map_uses(type, map); }
};

}  // namespace

Op map_uses(const Op& op, const UseMap& map) {
  Op result = op;
  for_each_leaf(result, Mapper{{}, map});
  return result;
}

Type map_uses(const Type& type, const UseMap& map) {
  Type result = type;
  const Mapper mapper{{}, map};
  for_each_leaf(result.shape, mapper);
  if (type.memory) {
    MemoryBinding binding = *type.memory;
    mapper(binding.block);
    mapper(binding.layout);
    result.memory = std::make_shared<const MemoryBinding>(std::move(binding));
  }
  return result;
}

}  // namespace apl
