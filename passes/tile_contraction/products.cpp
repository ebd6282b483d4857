// Sums of products as matrix units do them, which widen both factors and multiply, and do nothing else.
//
// Sums in 16 bits, as sums in f32:
//
//   R[a, b] = sum in f16 over q of X[a, q] * Y[q, b]     =>     R[a, b] = f16 (sum in f32 of f32 X[a, q] * f32 Y[q, b])
//
// Products of f16 are exact in f32, and a sum is rounded once instead of in each step.
//
// Factors that no step of the reduction changes, behind the sum:
//
//   R[a, b] = sum over q of s * f32 X[a, q] * f32 Y[q, b]
//     =>  R[a, b] = s * sum over q of f32 X[a, q] * f32 Y[q, b]
//
// An element of an array that varies along dims of the result alone, as a scale for each row, is such a factor. In
// integers that wrap around it is the same. Of f16 no sum overflows f32 whatever the factors are, so it is nearer to
// the true sum than a rounding in each step; where `s` is not a finite number, nor is the result in either form unless
// the sum is zero. Where operands are bf16, f32 or f64 a product may overflow that a small `s` would have kept finite,
// so that there the program has to say it (why_no_matrix_units).
#include <algorithm>
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/schedule.h"
#include "ir/walk.h"
#include "passes/tile_contraction/tile.h"

namespace apl::tile {

void classify_dims(Contraction& contraction) {
  const auto count = [&](auto&& is_it) { return std::ranges::count_if(contraction.operands, is_it); };
  const auto counted = count([&](const ContractionOperand& operand) {
    for (std::size_t d = 0; d < contraction.space_rank; ++d)
      if (operand.varies(d)) return true;
    return false;
  });
  for (std::size_t d = 0; d < contraction.space_rank; ++d) {
    const auto varying = count([&](const ContractionOperand& operand) { return operand.varies(d); });
    contraction.dims[d].dim_class = varying == 0         ? DimClass::invariant
                                    : varying == counted ? DimClass::batch
                                                         : DimClass::free;
  }
}

bool is_plain_sum(const Contraction& contraction, const ValueTable& values) {
  return contraction.reduce.neutral.size() == 1 && as_binary_op(contraction.reduce.op) == BinaryOp::add &&
         contraction.reduce.neutral[0] == Operand(Scalar::zero(values.type(contraction.reduce.op.params[0]).element));
}

namespace {

// The contraction with both factors widened to `wide`, multiplied and summed in that; `finish` makes what was the sum.
Contraction sum_of_products(const Contraction& contraction, ScalarType wide, ValueTable& values,
                            const std::function<Value(Builder&, Value)>& finish) {
  Builder builder(values);
  builder.set_location(contraction.location);
  Contraction changed = contraction;
  std::vector<Type> factors;
  for (const ContractionOperand& operand : changed.operands) factors.push_back(values.type(operand.element));
  changed.map = builder.lambda(factors, {"x", "y"}, [&](Builder& body, const std::vector<Value>& params) {
    const Value x = body.convert(wide, params[0]), y = body.convert(wide, params[1]);
    return std::vector<Operand>{body.binary(BinaryOp::mul, x, y)};
  });
  for (std::size_t k = 0; k < 2; ++k) changed.operands[k].element = changed.map.params[k];
  changed.reduce = builder.reduce_op(BinaryOp::add, Scalar::zero(wide));
  changed.after = builder.lambda({Type::scalar(wide)}, {"sum"}, [&](Builder& body, const std::vector<Value>& params) {
    const Value sum = finish(body, params[0]);
    if (!contraction.after) return std::vector<Operand>(contraction.results.size(), Operand(sum));
    std::vector<Stm> stms;
    std::vector<Operand> results = inline_lambda(*contraction.after, {Operand(sum)}, values, stms);
    body.append_all(stms);
    return results;
  });
  return changed;
}

// What the map multiplies: elements of operands, by parameter, and numbers that no step changes.
struct Factors {
  std::vector<std::size_t> elements;
  std::vector<Operand> others;
  bool is_product = false;       // of nothing else
  bool is_conditional = false;   // of what a condition decides
  bool rounds_products = false;  // elements are multiplied before they are widened
};

Factors factors_of(const Lambda& map) {
  Factors found;
  if (map.body->results.size() != 1) return found;
  found.is_product = true;
  std::function<void(const Operand&, bool)> visit = [&](const Operand& x, bool widened) {
    if (!x.is_value()) {
      found.others.push_back(x);
      return;
    }
    const auto param = std::ranges::find(map.params, x.value());
    if (param != map.params.end()) {
      found.elements.push_back(static_cast<std::size_t>(param - map.params.begin()));
      return;
    }
    const auto made = std::ranges::find_if(
        map.body->stms, [&](const Stm& stm) { return std::ranges::find(stm.pattern, x.value()) != stm.pattern.end(); });
    if (made == map.body->stms.end()) {
      found.others.push_back(x);
      return;
    }
    if (const Binary* binary = get_if<Binary>(*made); binary != nullptr && binary->op == BinaryOp::mul) {
      found.rounds_products = found.rounds_products || widened;
      visit(binary->x, widened);
      visit(binary->y, widened);
    } else if (const Convert* convert = get_if<Convert>(*made); convert != nullptr && !convert->same_bits) {
      visit(convert->x, true);
    } else {
      found.is_product = false;
      found.is_conditional = found.is_conditional || is_branch(made->op);
    }
  };
  visit(map.body->results[0], false);
  return found;
}

bool are(const std::vector<Value>& params, const ValueTable& values, std::initializer_list<ScalarType> types) {
  return std::ranges::all_of(params,
                             [&](Value v) { return std::ranges::find(types, values.type(v).element) != types.end(); });
}

}  // namespace

std::optional<Contraction> widen_sums(const Contraction& contraction, ValueTable& values) {
  if (contraction.map.params.size() != 2 || as_binary_op(contraction.map) != BinaryOp::mul ||
      !is_plain_sum(contraction, values))
    return std::nullopt;
  const ScalarType narrow = values.type(contraction.reduce.op.params[0]).element;
  if (narrow != ScalarType::f16 && narrow != ScalarType::bf16) return std::nullopt;
  return sum_of_products(contraction, ScalarType::f32, values,
                         [&](Builder& body, Value sum) { return body.convert(narrow, sum); });
}

namespace {

// Whether an operand that no step changes can be read by index behind the sum: its axes are the array's own dims, and
// not those of another shape that its elements are given in the program.
bool is_whole_array(const ContractionOperand& operand, const ValueTable& values) {
  const Type& type = values.type(operand.base);
  if (!operand.exact || !operand.is_plain() || operand.index || !operand.offset.is_zero() ||
      type.rank() != operand.axes.size())
    return false;
  const std::vector<Poly> strides = Lmad::row_major(type.shape).strides();
  for (std::size_t k = 0; k < strides.size(); ++k)
    if (operand.strides[static_cast<std::size_t>(operand.axes[k])] != strides[k]) return false;
  return true;
}

// Whether each varies along a dim of the result that the other does not.
bool are_two_sides(const ContractionOperand& x, const ContractionOperand& y, std::size_t space_rank) {
  bool own_x = false, own_y = false;
  for (std::size_t d = 0; d < space_rank; ++d) {
    own_x = own_x || (x.varies(d) && !y.varies(d));
    own_y = own_y || (y.varies(d) && !x.varies(d));
  }
  return own_x && own_y;
}

}  // namespace

std::optional<Contraction> scale_sums(const Contraction& contraction, ValueTable& values) {
  using enum ScalarType;
  if (!is_plain_sum(contraction, values)) return std::nullopt;
  Factors factors = factors_of(contraction.map);
  std::ranges::sort(factors.elements);
  const bool once = std::ranges::adjacent_find(factors.elements) == factors.elements.end();
  if (!factors.is_product || factors.rounds_products || !once ||
      factors.elements.size() != contraction.map.params.size())
    return std::nullopt;
  std::vector<Value> steps;
  std::vector<const ContractionOperand*> changed, scales;
  for (const ContractionOperand& operand : contraction.operands) {
    if (!contraction.is_resident(operand)) {
      steps.push_back(operand.element);
      changed.push_back(&operand);
    } else if (is_whole_array(operand, values)) {
      scales.push_back(&operand);
    } else {
      return std::nullopt;
    }
  }
  if (steps.size() != 2 || (factors.others.empty() && scales.empty())) return std::nullopt;
  // Without the scales there must be something left to tile.
  if (!scales.empty() && !are_two_sides(*changed[0], *changed[1], contraction.space_rank)) return std::nullopt;
  const ScalarType sum = values.type(contraction.reduce.op.params[0]).element;
  const bool exact = sum == i32 || sum == u32;
  // One of 8 bits is a number of f16 (factors.cpp).
  const bool halves = are(steps, values, {f16, i8, u8}) && !are(steps, values, {i8, u8});
  if (!(sum == f32 && halves) && !(exact && are(steps, values, {i8, u8}))) return std::nullopt;
  if (std::ranges::any_of(scales, [&](const auto* scale) { return values.type(scale->element).element != sum; }))
    return std::nullopt;
  // A factor of another type is converted where it is multiplied.
  const auto type_of = [&](const Operand& x) {
    return x.is_value() ? values.type(x.value()).element : x.constant().type();
  };
  if (std::ranges::any_of(factors.others, [&](const Operand& factor) { return type_of(factor) != sum; }))
    return std::nullopt;
  Contraction product = contraction;
  std::erase_if(product.operands, [&](const ContractionOperand& o) { return contraction.is_resident(o); });
  if (!scales.empty()) classify_dims(product);
  return sum_of_products(product, sum, values, [&](Builder& body, Value scaled) {
    for (const Operand& factor : factors.others) scaled = body.binary(BinaryOp::mul, factor, scaled);
    for (const ContractionOperand* scale : scales) {
      std::vector<Poly> at;
      for (const int axis : scale->axes) at.emplace_back(contraction.dims[static_cast<std::size_t>(axis)].index);
      const Value element = body.index(scale->base, at, values.name(scale->element));
      scaled = body.binary(BinaryOp::mul, element, scaled);
    }
    return scaled;
  });
}

std::optional<MissedUnits> why_no_matrix_units(const Contraction& contraction, const std::vector<Attribute>& attributes,
                                               ValueTable& values) {
  using enum ScalarType;
  if (!is_plain_sum(contraction, values)) return std::nullopt;
  const ScalarType sum = values.type(contraction.reduce.op.params[0]).element;
  std::vector<Value> steps;  // elements that steps change
  std::vector<const ContractionOperand*> changed;
  std::vector<std::string> names;
  for (std::size_t o = 0; o < contraction.operands.size(); ++o) {
    if (contraction.is_resident(contraction.operands[o]) || contraction.operands[o].index ||
        values.type(contraction.operands[o].element).element == boolean)
      continue;
    steps.push_back(contraction.operands[o].element);
    changed.push_back(&contraction.operands[o]);
    names.push_back(values.name(contraction.operands[o].base));
  }
  // Sums in f16 are those of computed factors: others are sums in f32 now. Of bytes that are widened to f16 one is
  // none.
  const auto is_byte = [&](Value v) { return are({v}, values, {i8, u8}); };
  const bool wide = (sum == f32 || sum == f16) && !std::ranges::all_of(steps, is_byte);
  const bool halves = wide && (are(steps, values, {f16, i8, u8}) || are(steps, values, {bf16, i8, u8}));
  const bool bytes = (sum == i32 || sum == u32) && are(steps, values, {i8, u8});
  const bool doubles = sum == f64 && are(steps, values, {f64});
  if (!halves && !bytes && !doubles) return std::nullopt;
  const Factors factors = factors_of(contraction.map);
  if (auto missed = factors.is_product ? std::nullopt : why_not_computed(contraction, attributes, values))
    return missed;
  if (factors.is_conditional)
    return MissedUnits{"matrix units multiply in each step, and here a condition decides what is summed",
                       "make one of two matrices zero before, where its products are not summed"};
  if (!factors.is_product || factors.elements.size() < 2) return std::nullopt;
  if (factors.rounds_products)
    return MissedUnits{"elements are multiplied before they are widened, so that each product is rounded",
                       "widen both factors, and multiply then"};
  if (steps.size() > 2)
    return MissedUnits{fmt::format("matrix units multiply two elements, and here elements of {} are multiplied",
                                   fmt::format("`{}`, `{}` and `{}`", names[0], names[1], names[2])),
                       "multiply one of two matrices by the third array before"};
  if (factors.others.empty() && contraction.operands.size() == 2) return std::nullopt;
  if (steps.size() == 2 && !are_two_sides(*changed[0], *changed[1], contraction.space_rank))
    return MissedUnits{
        fmt::format("matrix units multiply two elements that each vary along a dim of the result of their "
                    "own, and those of `{}` and `{}` do not",
                    names[0], names[1]),
        "sum their products once for all that they are multiplied by"};
  return MissedUnits{"matrix units multiply two elements, and here each product is multiplied by another number, too",
                     "multiply the sum by that number, or one of the matrices by it before"};
}

}  // namespace apl::tile
