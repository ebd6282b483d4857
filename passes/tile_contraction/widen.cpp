// Sums of products of 16-bit floats in f32, which is what matrix units do:
//
//   R[a, b] = sum in f16 over q of X[a, q] * Y[q, b]     =>     R[a, b] = f16 (sum in f32 of f32 X[a, q] * f32 Y[q, b])
//
// Products of f16 are exact in f32, and a sum is rounded once instead of in each step.
#include "ir/schedule.h"
#include "passes/tile_contraction/tile.h"

namespace apl::tile {

std::optional<Contraction> widen_sums(const Contraction& contraction, ValueTable& values) {
  const Lambda& map = contraction.map;
  if (map.params.size() != 2 || as_binary_op(map) != BinaryOp::mul ||
      as_binary_op(contraction.reduce.op) != BinaryOp::add)
    return std::nullopt;
  const ScalarType narrow = values.type(contraction.reduce.op.params[0]).element;
  if (narrow != ScalarType::f16 && narrow != ScalarType::bf16) return std::nullopt;
  if (contraction.reduce.neutral[0] != Operand(Scalar::zero(narrow))) return std::nullopt;
  Builder builder(values);
  builder.set_location(contraction.location);
  Contraction widened = contraction;
  const std::vector<Type> factors{values.type(map.params[0]), values.type(map.params[1])};
  widened.map = builder.lambda(factors, {"x", "y"}, [&](Builder& body, const std::vector<Value>& params) {
    const Value x = body.convert(ScalarType::f32, params[0]), y = body.convert(ScalarType::f32, params[1]);
    return std::vector<Operand>{body.binary(BinaryOp::mul, x, y)};
  });
  // Elements of operands are the map's parameters.
  for (ContractionOperand& operand : widened.operands)
    for (std::size_t k = 0; k < 2; ++k)
      if (operand.element == map.params[k]) operand.element = widened.map.params[k];
  widened.reduce = builder.reduce_op(BinaryOp::add, Scalar::zero(ScalarType::f32));
  widened.after =
      builder.lambda({Type::scalar(ScalarType::f32)}, {"sum"}, [&](Builder& body, const std::vector<Value>& params) {
        const Value sum = body.convert(narrow, params[0]);
        if (!contraction.after) return std::vector<Operand>(contraction.results.size(), Operand(sum));
        std::vector<Stm> stms;
        std::vector<Operand> results = inline_lambda(*contraction.after, {Operand(sum)}, values, stms);
        body.append_all(stms);
        return results;
      });
  return widened;
}

}  // namespace apl::tile
