// The rules of scalar and array operations.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ir/attributes.h"
#include "ir/verify/check.h"

namespace apl::verifier {
namespace {

// The element type of a scalar operand, or nothing after a report.
std::optional<ScalarType> scalar_type(Check& check, const Stm& stm, const Operand& x) {
  const Type type = check.type(x);
  if (type.is_scalar()) return type.element;
  check.broken(stm, fmt::format("operand {} of type {} should be a scalar", check.text(x), check.text(type)));
  return std::nullopt;
}

bool need_array(Check& check, const Stm& stm, Value v) {
  if (check.type(v).is_array()) return true;
  check.broken(stm, fmt::format("{} of type {} should be an array", check.name(v), check.text(check.type(v))));
  return false;
}

template <class BinaryLike>
void check_pair(Check& check, const Stm& stm, const BinaryLike& op) {
  auto x = scalar_type(check, stm, op.x);
  auto y = scalar_type(check, stm, op.y);
  if (!x || !y) return;
  if (*x != *y)
    check.broken(stm, fmt::format("the operands of {} have types {} and {}", to_text(op.op), to_text(*x), to_text(*y)));
  else if (!accepts(op.op, *x))
    check.broken(stm, fmt::format("{} has no meaning for {}", to_text(op.op), to_text(*x)));
}

void check_sizes(Check& check, const Stm& stm, const std::vector<Poly>& polys) {
  for (const Poly& poly : polys) check_size(check, stm, poly);
}

bool check_dims(Check& check, const Stm& stm, Value array, const std::vector<DimIndex>& dims) {
  if (!need_array(check, stm, array)) return false;
  for (const DimIndex& dim : dims) {
    check_size(check, stm, dim.start);
    if (dim.count) check_size(check, stm, *dim.count);
    check_size(check, stm, dim.stride);
  }
  const std::size_t rank = check.type(array).rank();
  if (dims.size() <= rank) return true;
  check.broken(stm, fmt::format("{} indices for {} of rank {}", dims.size(), check.name(array), rank));
  return false;
}

void check_permutation(Check& check, const Stm& stm, Value array, const std::vector<int>& permutation) {
  if (!need_array(check, stm, array)) return;
  std::vector<int> sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  bool is_permutation = sorted.size() == check.type(array).rank();
  for (std::size_t k = 0; is_permutation && k < sorted.size(); ++k) is_permutation = sorted[k] == static_cast<int>(k);
  if (!is_permutation)
    check.broken(stm, fmt::format("({}) is no permutation of the {} dims of {}", fmt::join(permutation, ", "),
                                  check.type(array).rank(), check.name(array)));
}

}  // namespace

void check_op(Check&, const Stm&, const Use&) {}

void check_op(Check& check, const Stm& stm, const Unary& op) {
  auto x = scalar_type(check, stm, op.x);
  if (x && !accepts(op.op, *x)) check.broken(stm, fmt::format("{} has no meaning for {}", to_text(op.op), to_text(*x)));
}

void check_op(Check& check, const Stm& stm, const Binary& op) { check_pair(check, stm, op); }
void check_op(Check& check, const Stm& stm, const Compare& op) { check_pair(check, stm, op); }
void check_op(Check& check, const Stm& stm, const Convert& op) {
  auto from = scalar_type(check, stm, op.x);
  if (!from || !op.same_bits) return;
  const auto has_bits = [](ScalarType type) { return is_integer(type) || is_float(type); };
  if (!has_bits(*from) || !has_bits(op.to) || bit_width(*from) != bit_width(op.to))
    check.broken(stm, fmt::format("a {} has not the bits of a {}", to_text(*from), to_text(op.to)));
}
void check_op(Check& check, const Stm& stm, const SizeExpr& op) { check_size(check, stm, op.value); }
void check_op(Check& check, const Stm& stm, const Index& op) { check_dims(check, stm, op.array, op.dims); }

void check_op(Check& check, const Stm& stm, const Update& op) {
  if (!check_dims(check, stm, op.array, op.dims)) return;
  const Type part = result_types(Index{op.array, op.dims, false}, check.values()).front();
  const Type value = check.type(op.value);
  if (!check.compatible(part, value))
    check.broken(stm, fmt::format("a part of type {} is replaced by {} of type {}", check.text(part),
                                  check.text(op.value), check.text(value)));
}

void check_op(Check& check, const Stm& stm, const Iota& op) {
  check_size(check, stm, op.count);
  if (!is_integer(op.element) && !is_float(op.element))
    check.broken(stm, fmt::format("an iota of {}", to_text(op.element)));
  for (const Operand& x : {op.start, op.stride})
    if (auto type = scalar_type(check, stm, x); type && *type != op.element)
      check.broken(stm,
                   fmt::format("{} of type {} in an iota of {}", check.text(x), to_text(*type), to_text(op.element)));
}

void check_op(Check& check, const Stm& stm, const Replicate& op) {
  check_sizes(check, stm, op.shape);
  if (op.shape.empty()) check.broken(stm, "a replicate without dims");
  if (check.type(op.value).is_memory()) check.broken(stm, "memory is replicated");
}

void check_op(Check& check, const Stm& stm, const Scratch& op) { check_sizes(check, stm, op.shape); }
void check_op(Check& check, const Stm& stm, const Copy& op) { need_array(check, stm, op.array); }
void check_op(Check& check, const Stm& stm, const Rearrange& op) {
  check_permutation(check, stm, op.array, op.permutation);
}
void check_op(Check& check, const Stm& stm, const Manifest& op) {
  check_permutation(check, stm, op.array, op.permutation);
}

void check_op(Check& check, const Stm& stm, const Reshape& op) {
  check_sizes(check, stm, op.shape);
  if (op.shape.empty()) return check.broken(stm, "a reshape to a scalar");
  if (!need_array(check, stm, op.array)) return;
  const Type& from = check.type(op.array);
  if (!check.may_be_equal(product(from.shape), product(op.shape)))
    check.broken(stm, fmt::format("{} of type {} has not as many elements as {}", check.name(op.array),
                                  check.text(from), check.text(Type::array(from.element, op.shape))));
}

void check_op(Check& check, const Stm& stm, const ArrayLit& op) {
  check_sizes(check, stm, op.element.shape);
  for (const Operand& x : op.elements)
    if (!check.compatible(check.type(x), op.element))
      check.broken(stm, fmt::format("{} of type {} in an array of {}", check.text(x), check.text(check.type(x)),
                                    check.text(op.element)));
}

void check_op(Check& check, const Stm& stm, const Assert& op) {
  if (auto type = scalar_type(check, stm, op.condition); type && *type != ScalarType::boolean)
    check.broken(stm, fmt::format("the condition {} has type {}", check.text(op.condition), to_text(*type)));
  // What is traced may be an array.
  if (has_attribute(stm.attributes, attribute::trace)) return;
  for (const auto& piece : op.message)
    if (const Operand* x = std::get_if<Operand>(&piece)) scalar_type(check, stm, *x);
}

void check_op(Check& check, const Stm& stm, const GetSize& op) {
  if (op.name.empty()) check.broken(stm, "a tuning parameter without a name");
  if (op.default_value < 1)
    check.broken(stm, fmt::format("the default of `{}` is {}, but sizes are at least 1", op.name, op.default_value));
}

void check_op(Check& check, const Stm& stm, const Alloc& op) { check_size(check, stm, op.bytes); }

}  // namespace apl::verifier
