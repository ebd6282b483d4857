// Single elements of operands, where no tile is copied: under their conditions, and where arrays of indices say.
#include <range/v3/view/zip.hpp>

#include "passes/tile_contraction/tile.h"

namespace apl::tile {
namespace {

Value flat(Value array, Builder& host) {
  const Type type = host.values().type(array);
  if (type.rank() == 1) return array;
  return host.let(host.values().name(array), Reshape{array, {product(type.shape)}});
}

}  // namespace

FlatOperand flat_operand(const ContractionOperand& operand, Builder& host) {
  FlatOperand made;
  if (!operand.index) made.array = flat(operand.base, host);
  for (const ContractionGather& gather : operand.gathers) made.positions.push_back(flat(gather.base, host));
  for (const ContractionRead& read : operand.also)
    made.also.push_back(read.base ? std::optional(flat(*read.base, host)) : std::nullopt);
  return made;
}

Value read_element(const Contraction& contraction, const ContractionOperand& operand, const FlatOperand& from,
                   const Substitution& indices, Builder& out) {
  const ValueTable& values = out.values();
  const auto here = [&](const ContractionAffine& at) {
    Poly position = at.offset;
    for (const auto& [stride, dim] : ranges::views::zip(at.strides, contraction.dims))
      if (!stride.is_zero()) position += stride * Poly(dim.index);
    return substitute(position, indices);
  };
  const auto read = [&](Builder& body) {
    Poly position = here({operand.offset, operand.strides});
    for (const auto& [gather, positions] : ranges::views::zip(operand.gathers, from.positions)) {
      Value at = body.index(positions, {here(gather.at)}, "at");
      if (values.type(at).element != ScalarType::i64) at = body.convert(ScalarType::i64, at);
      position += substitute(gather.stride, indices) * Poly(at);
    }
    const Value element =
        from.array ? body.index(from.array, {position}, values.name(operand.element)) : body.size(position, "at");
    if (!operand.map) return element;
    std::vector<Operand> elements{element};
    for (const auto& [also, array] : ranges::views::zip(operand.also, from.also)) {
      const Poly at_also = here(also.at);
      elements.emplace_back(array ? body.index(*array, {at_also}, "also") : body.size(at_also, "at"));
    }
    const Lambda map = copy_fresh(*operand.map, indices, body.values(), body.values());
    return inline_lambda(map, elements, body.values(), body.stms()).front().value();
  };
  if (operand.conditions.empty()) return read(out);
  std::optional<Operand> inside;
  const auto also = [&](Operand holds) {
    inside = inside ? Operand(out.binary(BinaryOp::conj, *inside, holds, "inside")) : holds;
  };
  for (const ContractionCondition& condition : operand.conditions) {
    const Operand at = out.size(here(condition.at), "at");
    also(out.compare(CompareOp::le, i64_constant(0), at, "inside"));
    if (condition.bound)
      also(out.compare(CompareOp::lt, at, out.size(substitute(*condition.bound, indices), "bound"), "inside"));
  }
  If guarded{*inside, {}, make_body({}, {operand.otherwise})};
  guarded.then_body = out.body([&](Builder& body) { return std::vector<Operand>{read(body)}; });
  const Type type = Type::scalar(operand.otherwise.type());
  return out.let_typed({values.name(operand.element)}, {type}, std::move(guarded)).front();
}

}  // namespace apl::tile
