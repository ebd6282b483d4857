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
//   R[a, b] = sum over q of s * f32 X[a, q] * f32 Y[q, b]     =>     R[a, b] = s * sum over q of f32 X[a, q] * f32 Y[q,
//   b]
//
// In integers that wrap around it is the same. Of f16 no sum overflows f32 whatever the factors are, so it is nearer to
// the true sum than a rounding in each step; where `s` is not a finite number, nor is the result in either form unless
// the sum is zero. Where operands are bf16, f32 or f64 a product may overflow that a small `s` would have kept finite,
// so that there the program has to say it (why_no_matrix_units).
#include <algorithm>
#include <array>
#include <functional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/schedule.h"
#include "ir/walk.h"
#include "passes/tile_contraction/tile.h"

namespace apl::tile {
namespace {

bool is_plain_sum(const Contraction& contraction, const ValueTable& values) {
  return contraction.reduce.neutral.size() == 1 && as_binary_op(contraction.reduce.op) == BinaryOp::add &&
         contraction.reduce.neutral[0] == Operand(Scalar::zero(values.type(contraction.reduce.op.params[0]).element));
}

// The contraction with both factors widened to `wide`, multiplied and summed in that; `finish` makes what was the sum.
Contraction sum_of_products(const Contraction& contraction, ScalarType wide, ValueTable& values,
                            const std::function<Value(Builder&, Value)>& finish) {
  const Lambda& map = contraction.map;
  Builder builder(values);
  builder.set_location(contraction.location);
  Contraction changed = contraction;
  const std::vector<Type> factors{values.type(map.params[0]), values.type(map.params[1])};
  changed.map = builder.lambda(factors, {"x", "y"}, [&](Builder& body, const std::vector<Value>& params) {
    const Value x = body.convert(wide, params[0]), y = body.convert(wide, params[1]);
    return std::vector<Operand>{body.binary(BinaryOp::mul, x, y)};
  });
  // Elements of operands are the map's parameters.
  for (ContractionOperand& operand : changed.operands)
    for (std::size_t k = 0; k < 2; ++k)
      if (operand.element == map.params[k]) operand.element = changed.map.params[k];
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

std::optional<Contraction> scale_sums(const Contraction& contraction, ValueTable& values) {
  using enum ScalarType;
  if (contraction.map.params.size() != 2 || !is_plain_sum(contraction, values)) return std::nullopt;
  Factors factors = factors_of(contraction.map);
  std::ranges::sort(factors.elements);
  if (!factors.is_product || factors.rounds_products || factors.others.empty() ||
      factors.elements != std::vector<std::size_t>{0, 1})
    return std::nullopt;
  const ScalarType sum = values.type(contraction.reduce.op.params[0]).element;
  const bool exact = sum == i32 || sum == u32;
  if (!(sum == f32 && are(contraction.map.params, values, {f16})) &&
      !(exact && are(contraction.map.params, values, {i8, u8})))
    return std::nullopt;
  // A factor of another type is converted where it is multiplied.
  const auto type_of = [&](const Operand& x) {
    return x.is_value() ? values.type(x.value()).element : x.constant().type();
  };
  if (std::ranges::any_of(factors.others, [&](const Operand& factor) { return type_of(factor) != sum; }))
    return std::nullopt;
  return sum_of_products(contraction, sum, values, [&](Builder& body, Value scaled) {
    for (const Operand& factor : factors.others) scaled = body.binary(BinaryOp::mul, factor, scaled);
    return scaled;
  });
}

namespace {

// The parameters of the map that a value follows from.
std::set<Value> params_of(const Operand& x, const Lambda& map, const ValueTable& values) {
  std::set<Value> wanted;
  if (x.is_value()) wanted.insert(x.value());
  for (std::size_t k = map.body->stms.size(); k-- > 0;) {
    const Stm& stm = map.body->stms[k];
    if (std::ranges::any_of(stm.pattern, [&](Value v) { return wanted.contains(v); }))
      wanted.merge(free_values(stm.op, values));
  }
  std::erase_if(wanted, [&](Value v) { return std::ranges::find(map.params, v) == map.params.end(); });
  return wanted;
}

// A product of two factors, each of elements of its own, of which one is more than an element.
std::optional<MissedUnits> why_computed(const Contraction& contraction, const ValueTable& values) {
  const Lambda& map = contraction.map;
  const auto made_by = [&](const Operand& x) {
    const auto made = std::ranges::find_if(map.body->stms, [&](const Stm& stm) {
      return x.is_value() && std::ranges::find(stm.pattern, x.value()) != stm.pattern.end();
    });
    return made == map.body->stms.end() ? nullptr : &*made;
  };
  const Stm* made = made_by(map.body->results[0]);
  const Binary* product = made != nullptr ? get_if<Binary>(*made) : nullptr;
  if (product == nullptr || product->op != BinaryOp::mul) return std::nullopt;
  const std::array<std::set<Value>, 2> from{params_of(product->x, map, values), params_of(product->y, map, values)};
  const bool apart = std::ranges::none_of(from[0], [&](Value v) { return from[1].contains(v); });
  if (!apart || from[0].empty() || from[1].empty()) return std::nullopt;
  for (std::size_t k = 0; k < 2; ++k) {
    const Stm* factor = made_by(k == 0 ? product->x : product->y);
    if (factor == nullptr || get_if<Convert>(*factor)) continue;
    std::vector<std::string> names;
    for (const ContractionOperand& operand : contraction.operands)
      if (from[k].contains(operand.element) && !operand.index) names.push_back("`" + values.name(operand.base) + "`");
    const std::string of = fmt::format("{}", fmt::join(names, " and "));
    return MissedUnits{
        fmt::format("matrix units multiply elements of two arrays, and here a factor is computed from {} in each step",
                    of),
        "compute that factor before, in a line of its own, as an array whose elements are multiplied here"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<MissedUnits> why_no_matrix_units(const Contraction& contraction, const ValueTable& values) {
  using enum ScalarType;
  if (!is_plain_sum(contraction, values)) return std::nullopt;
  const ScalarType sum = values.type(contraction.reduce.op.params[0]).element;
  std::vector<Value> steps;  // elements that steps change
  std::vector<std::string> names;
  for (std::size_t o = 0; o < contraction.operands.size(); ++o) {
    if (contraction.is_resident(contraction.operands[o]) || contraction.operands[o].index ||
        values.type(contraction.operands[o].element).element == boolean)
      continue;
    steps.push_back(contraction.operands[o].element);
    names.push_back(values.name(contraction.operands[o].base));
  }
  const bool halves = sum == f32 && (are(steps, values, {f16}) || are(steps, values, {bf16}));
  const bool bytes = (sum == i32 || sum == u32) && are(steps, values, {i8, u8});
  const bool doubles = sum == f64 && are(steps, values, {f64});
  if (!halves && !bytes && !doubles) return std::nullopt;
  const Factors factors = factors_of(contraction.map);
  if (factors.is_conditional)
    return MissedUnits{"matrix units multiply in each step, and here a condition decides what is summed",
                       "make one of two matrices zero before, where its products are not summed"};
  if (!factors.is_product) return why_computed(contraction, values);
  if (factors.elements.size() < 2) return std::nullopt;
  if (factors.rounds_products)
    return MissedUnits{"elements are multiplied before they are widened, so that each product is rounded",
                       "widen both factors, and multiply then"};
  if (steps.size() > 2)
    return MissedUnits{fmt::format("matrix units multiply two elements, and here elements of {} are multiplied",
                                   fmt::format("`{}`, `{}` and `{}`", names[0], names[1], names[2])),
                       "multiply one of two matrices by the third array before"};
  if (!factors.others.empty() || contraction.operands.size() > 2)
    return MissedUnits{"matrix units multiply two elements, and here each product is multiplied by another number, too",
                       "multiply the sum by that number, or one of the matrices by it before"};
  return std::nullopt;
}

}  // namespace apl::tile
