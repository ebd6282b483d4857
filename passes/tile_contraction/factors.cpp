// Factors of matrix units' products that are more than an element:
//
//   R[a, b] = sum over q of f(X[a, q], M[a, q], s[q], q) * Y[q, b]     =>     R[a, b] = sum over q of F[a, q] * Y[q, b]
//
// where F is no array: its elements are computed while tiles of X are copied (`copy_tile ... map`), once for each
// element of a tile, by the program's own operations in their types. The units multiply numbers of a narrow type that
// are widened, so what is computed in a wider one must be a number of the narrow one in any case: a choice, or the
// larger, of such numbers is; a sum or a product of widened ones is not, and stays with multiply-adds of single
// numbers.
//
// Refused, each with a reason of its own (why_no_matrix_units):
//   - both factors vary along one free dim, or one along none: there are no M and N dims
//   - no array of the factor varies along all dims of it, so that nothing says where its tiles are
//   - an array is read under a condition, or beside the first one where an array of indices says
//   - it is computed in a wider type
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "ir/attributes.h"
#include "ir/walk.h"
#include "passes/tile_contraction/tile.h"

namespace apl::tile {
namespace {

// One of the two that are multiplied.
struct ComputedFactor {
  Operand value;
  const Stm* made = nullptr;           // by what, if it is no element
  std::vector<std::size_t> operands;   // that it is made of, in order
  std::vector<std::size_t> uniform;    // elements that are the same for all of a block, likewise
  std::vector<bool> dims;              // along which one of these varies
  std::optional<std::size_t> primary;  // the operand whose tiles are copied
  ScalarType narrow{};                 // of its tiles
};

class ComputedFactors {
 public:
  ComputedFactors(const Contraction& contraction, const std::vector<Attribute>& attributes, ValueTable& values)
      : contraction_(contraction), attributes_(attributes), values_(values), map_(contraction.map) {}

  // Whether there are factors to compute, and what is in the way.
  struct Found {
    bool any = false;
    std::optional<MissedUnits> missed{};
  };
  Found find() {
    const Stm* made = map_.body->results.size() == 1 ? made_by(map_.body->results[0]) : nullptr;
    const Binary* product = made != nullptr ? get_if<Binary>(*made) : nullptr;
    if (product == nullptr || product->op != BinaryOp::mul || !is_plain_sum(contraction_, values_)) return {};
    factors_ = {describe(product->x), describe(product->y)};
    sum_ = values_.type(map_.body->results[0]).element;
    if (std::ranges::any_of(factors_, [](const ComputedFactor& factor) { return factor.operands.empty(); })) return {};
    std::optional<MissedUnits> missed = find_types();
    const auto is_element = [&](const ComputedFactor& factor) { return !is_computed(factor); };
    if (std::ranges::all_of(factors_, is_element)) return {};
    if (!missed) missed = find_dims();
    return {true, std::move(missed)};
  }

  // What find() found, as a contraction of two operands.
  Contraction made() {
    Contraction changed = contraction_;
    changed.operands.clear();
    if (*factors_[1].primary < *factors_[0].primary) std::swap(factors_[0], factors_[1]);
    std::vector<Type> types;
    for (const ComputedFactor& factor : factors_) {
      changed.operands.push_back(operand(factor));
      types.push_back(Type::scalar(factor.narrow));
    }
    Builder builder(values_);
    builder.set_location(contraction_.location);
    changed.map = builder.lambda(types, {"x", "y"}, [&](Builder& body, const std::vector<Value>& params) {
      std::vector<Operand> wide(params.begin(), params.end());
      for (Operand& x : wide)
        if (values_.type(x).element != sum_) x = body.convert(sum_, x);
      return std::vector<Operand>{body.binary(BinaryOp::mul, wide[0], wide[1])};
    });
    for (std::size_t k = 0; k < 2; ++k) changed.operands[k].element = changed.map.params[k];
    classify_dims(changed);
    return changed;
  }

 private:
  const Stm* made_by(const Operand& x) const { return x.is_value() ? defining_stm(*map_.body, x.value()) : nullptr; }

  // The statements that a value follows from, in order.
  std::vector<Stm> needed(const Operand& x) const {
    std::set<Value> wanted;
    if (x.is_value()) wanted.insert(x.value());
    std::vector<Stm> stms;
    for (std::size_t k = map_.body->stms.size(); k-- > 0;) {
      const Stm& stm = map_.body->stms[k];
      if (std::ranges::none_of(stm.pattern, [&](Value v) { return wanted.contains(v); })) continue;
      wanted.merge(free_values(stm.op, values_));
      stms.push_back(stm);
    }
    std::ranges::reverse(stms);
    return stms;
  }

  ComputedFactor describe(const Operand& x) const {
    ComputedFactor factor{.value = x, .made = made_by(x), .operands = {}, .uniform = {}, .dims = {}, .primary = {}};
    std::set<Value> read;
    if (x.is_value()) read.insert(x.value());
    for (const Stm& stm : needed(x)) read.merge(free_values(stm.op, values_));
    factor.dims.assign(contraction_.dims.size(), false);
    for (std::size_t o = 0; o < contraction_.operands.size(); ++o) {
      const ContractionOperand& operand = contraction_.operands[o];
      if (!read.contains(operand.element)) continue;
      factor.operands.push_back(o);
      for (std::size_t d = 0; d < contraction_.dims.size(); ++d) factor.dims[d] = factor.dims[d] || operand.varies(d);
    }
    for (std::size_t u = 0; u < contraction_.uniform.size(); ++u)
      if (read.contains(contraction_.uniform[u].element)) factor.uniform.push_back(u);
    return factor;
  }

  // More than an element that units widen.
  bool is_computed(const ComputedFactor& factor) const {
    if (factor.made == nullptr) return false;
    const Convert* convert = get_if<Convert>(*factor.made);
    return convert == nullptr || convert->same_bits || made_by(convert->x) != nullptr ||
           values_.type(convert->x).element != factor.narrow;
  }

  std::string names(const ComputedFactor& factor) const {
    std::vector<std::string> all;
    for (std::size_t o : factor.operands)
      if (!contraction_.operands[o].index) all.push_back("`" + values_.name(contraction_.operands[o].base) + "`");
    return all.empty() ? "indices" : fmt::format("{}", fmt::join(all, " and "));
  }

  MissedUnits missed(const ComputedFactor& factor, const std::string& why) const {
    return {fmt::format("a factor is computed from {}, {}", names(factor), why),
            "compute that factor before, in a line of its own, as an array whose elements are multiplied here"};
  }

  std::optional<MissedUnits> find_dims() {
    const std::size_t rank = contraction_.space_rank, all = contraction_.dims.size();
    for (std::size_t k = 0; k < 2; ++k) {
      const auto own = [&](std::size_t d) { return factors_[k].dims[d] && !factors_[1 - k].dims[d]; };
      bool found = false;
      for (std::size_t d = 0; d < rank; ++d) found = found || own(d);
      if (found) continue;
      return missed(factors_[is_computed(factors_[k]) ? k : 1 - k],
                    "and the two factors do not vary along different dims of the result");
    }
    for (ComputedFactor& factor : factors_) {
      for (std::size_t o : factor.operands) {
        const ContractionOperand& operand = contraction_.operands[o];
        bool varies = !operand.index;
        for (std::size_t d = 0; d < all; ++d) varies = varies && operand.varies(d) == factor.dims[d];
        // The widest one is copied in the largest pieces.
        const auto bytes = [&](std::size_t other) {
          return byte_size(values_.type(contraction_.operands[other].element).element);
        };
        if (varies && (!factor.primary || bytes(o) > bytes(*factor.primary))) factor.primary = o;
      }
      if (!factor.dims[all - 1])
        return missed(factor, "and one factor is the same along the innermost dim of the reduction");
      if (!factor.primary) return missed(factor, "and none of these varies along all dims that they do together");
      if (!is_computed(factor)) continue;
      for (std::size_t o : factor.operands) {
        const ContractionOperand& operand = contraction_.operands[o];
        if (!operand.conditions.empty()) return missed(factor, "and it is read under a condition on indices");
        if (o != *factor.primary && !operand.gathers.empty())
          return missed(factor, "and one of these is read where an array of indices says");
      }
      for (std::size_t u : factor.uniform)
        if (!contraction_.uniform[u].is_plain())
          return missed(factor, "and a number that is read under a condition, or where an array of indices says");
    }
    return std::nullopt;
  }

  // The types of the tiles.
  std::optional<MissedUnits> find_types() {
    using enum ScalarType;
    const bool of_tf32 =
        has_attribute(attributes_, attribute::tf32) || has_attribute(attributes_, attribute::f32_3xtf32);
    const auto both = [&](ScalarType type) {
      for (ComputedFactor& factor : factors_) factor.narrow = type;
      return std::nullopt;
    };
    const auto fits = [&](ScalarType type) {
      return std::ranges::all_of(factors_, [&](const ComputedFactor& factor) { return is_exact(type, factor.value); });
    };
    if (sum_ == f16 || sum_ == f64) return both(sum_);
    if (sum_ == f32) {
      for (const ScalarType type : {f16, bf16})
        if (fits(type)) return both(type);
      if (of_tf32) return both(f32);
    }
    if (sum_ == i32 || sum_ == u32) {
      bool fit = true;
      for (ComputedFactor& factor : factors_) {
        factor.narrow = is_exact(i8, factor.value) ? i8 : u8;
        fit = fit && is_exact(factor.narrow, factor.value);
      }
      if (fit) return std::nullopt;
    }
    for (const ComputedFactor& factor : factors_)
      if (std::ranges::none_of(std::array{f16, bf16, i8, u8},
                               [&](ScalarType type) { return is_exact(type, factor.value); }))
        return missed(factor, fmt::format("in {}, and matrix units multiply numbers that are widened", to_text(sum_)));
    return missed(factors_[0], "and the other factor is of another type than matrix units widen with it");
  }

  // Whether a value of the sum's type is a number of `narrow`, whatever elements are.
  bool is_exact(ScalarType narrow, const Operand& x) const { return is_exact(narrow, x, *map_.body); }
  bool is_exact(ScalarType narrow, const Operand& x, const Body& body) const {
    if (x.is_constant()) return is_exact_constant(narrow, x.constant());
    const Stm* made = defining_stm(body, x.value());
    if (made == nullptr && &body != map_.body.get()) return is_exact(narrow, x);
    if (made == nullptr || made->pattern.size() != 1) return false;
    if (const Use* use = get_if<Use>(*made)) return is_exact(narrow, use->x, body);
    if (const If* branch = get_if<If>(*made))
      return is_exact(narrow, branch->then_body->results[0], *branch->then_body) &&
             is_exact(narrow, branch->else_body->results[0], *branch->else_body);
    if (const Binary* binary = get_if<Binary>(*made))
      return (binary->op == BinaryOp::max || binary->op == BinaryOp::min) && is_exact(narrow, binary->x, body) &&
             is_exact(narrow, binary->y, body);
    if (const Unary* unary = get_if<Unary>(*made))
      return is_float(narrow) && (unary->op == UnaryOp::neg || unary->op == UnaryOp::abs) &&
             is_exact(narrow, unary->x, body);
    const Convert* convert = get_if<Convert>(*made);
    if (convert == nullptr || convert->same_bits) return false;
    const ScalarType from = values_.type(convert->x).element;
    // Numbers of 8 bits have no more digits than bf16.
    return from == narrow || from == ScalarType::boolean ||
           (is_float(narrow) && (from == ScalarType::i8 || from == ScalarType::u8));
  }

  static bool is_exact_constant(ScalarType narrow, const Scalar& x) {
    if (is_float(narrow))
      return is_float(x.type()) && Scalar::floating(narrow, x.as_float()).as_float() == x.as_float();
    const std::int64_t number = x.as_int();
    return narrow == ScalarType::i8 ? number >= -128 && number < 128 : number >= 0 && number < 256;
  }

  // The element itself, or its operand with the map that makes it.
  ContractionOperand operand(const ComputedFactor& factor) const {
    ContractionOperand made = contraction_.operands[*factor.primary];
    const ScalarType narrow = factor.narrow;
    Operand value = factor.value;
    std::vector<Stm> stms = needed(value);
    // What is widened is the number that is wanted.
    if (!stms.empty())
      if (const Convert* convert = get_if<Convert>(stms.back());
          convert != nullptr && !convert->same_bits && values_.type(convert->x).element == narrow) {
        value = convert->x;
        stms = needed(value);
      }
    if (stms.empty()) return made;
    Lambda map;
    map.params.push_back(made.element);
    for (std::size_t o : factor.operands) {
      if (o == *factor.primary) continue;
      const ContractionOperand& other = contraction_.operands[o];
      map.params.push_back(other.element);
      made.also.push_back({other.index ? std::nullopt : std::optional(other.base), {other.offset, other.strides}});
    }
    // Copies run ahead of what a block reads once.
    for (std::size_t u : factor.uniform) {
      const ContractionOperand& other = contraction_.uniform[u];
      map.params.push_back(other.element);
      made.also.push_back({other.base, {other.offset, other.strides}});
    }
    Builder body(values_);
    body.set_location(contraction_.location);
    body.append_all(stms);
    if (values_.type(value).element != narrow) value = body.convert(narrow, value);
    map.body = body.finish({value});
    made.map = copy_fresh(map, {}, values_, values_);
    return made;
  }

  const Contraction& contraction_;
  const std::vector<Attribute>& attributes_;
  ValueTable& values_;
  const Lambda& map_;
  std::array<ComputedFactor, 2> factors_;
  ScalarType sum_{};
};

}  // namespace

std::optional<Contraction> compute_factors(const Contraction& contraction, const std::vector<Attribute>& attributes,
                                           ValueTable& values) {
  ComputedFactors factors(contraction, attributes, values);
  const auto found = factors.find();
  if (!found.any || found.missed) return std::nullopt;
  return factors.made();
}

std::optional<MissedUnits> why_not_computed(const Contraction& contraction, const std::vector<Attribute>& attributes,
                                            ValueTable& values) {
  return ComputedFactors(contraction, attributes, values).find().missed;
}

}  // namespace apl::tile
