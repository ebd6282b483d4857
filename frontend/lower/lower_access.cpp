// Fields, indices, slices and updates.
#include <utility>

#include "frontend/lower/lowerer.h"

namespace apl::frontend {

StaticValue Lowerer::project(const StaticValue& value, const std::string& field) {
  const StaticValue* part = value.field(field);
  if (part == nullptr) unsupported(location_, "the field \"" + field + "\" of this value");
  return *part;
}

Poly Lowerer::as_index(const Expr& expr) { return index(convert(ScalarType::i64, lower(expr))); }

// How many steps of `step` > 0 there are in `distance`, as Futhark counts them: (distance + step - 1) / step, rounded
// towards zero, so that an end that lies less than two steps before the start makes an empty slice, too.
static Poly steps_in(const Poly& distance, const Poly& step) {
  if (step == Poly(1)) return distance;
  return poly_max(ceil_div(distance, step), poly_min(0, ceil_div(distance + step - 1, step)));
}

// Elements start, start + stride, ... before `end`; a negative stride begins at the last element.
DimIndex Lowerer::slice_of(const IndexDim& dim, const Poly& size) {
  const Poly stride = dim.stride ? as_index(*dim.stride) : Poly(1);
  const auto step = stride.constant();
  if (!step || *step == 0 || *step == INT64_MIN) return slice_by(dim, size, operand(StaticValue(stride)));
  const Poly start = dim.start ? as_index(*dim.start) : *step > 0 ? Poly(0) : size - 1;
  const Poly end = dim.end ? as_index(*dim.end) : *step > 0 ? size : Poly(-1);
  const Poly distance = safe_size(*step > 0 ? end - start : start - end), length = *step > 0 ? stride : -stride;
  const bool whole = !dim.start && !dim.end;
  return DimIndex::slice(start, whole ? ceil_div(distance, length) : steps_in(distance, length), stride);
}

// A slice whose stride only the run tells: its sign says where the slice starts and ends that does not say so itself.
DimIndex Lowerer::slice_by(const IndexDim& dim, const Poly& size, const Operand& stride) {
  const Operand zero = i64_constant(0);
  const Operand down = builder_->compare(CompareOp::lt, stride, zero);
  const auto given = [&](const ExprPtr& part) { return part ? std::optional(as_index(*part)) : std::nullopt; };
  const auto start = given(dim.start), end = given(dim.end);
  const auto number = [&](const Poly& poly) { return operand(StaticValue(poly)); };
  // The smallest number has no opposite; one step of the next leaves every array, too.
  const Value reach = builder_->binary(BinaryOp::max, stride, i64_constant(-INT64_MAX));
  const Poly first_up = start.value_or(0), first_down = start.value_or(size - 1);
  const std::vector<Operand> up = {number(first_up), number(end.value_or(size) - first_up), stride};
  const std::vector<Operand> downwards = {number(first_down), number(first_down - end.value_or(-1)),
                                          Operand(builder_->unary(UnaryOp::neg, reach))};
  const std::vector<Value> chosen =
      builder_->let_many({"start", "distance", "step"}, If{down, make_body({}, downwards), make_body({}, up)});
  if (checked_indices_) {
    const Value moves = builder_->compare(CompareOp::ne, stride, zero);
    builder_->let("c", Assert{moves,
                              {"Index [", Operand(chosen[0]), ":", number(end.value_or(size)), ":", stride,
                               "] out of bounds for array of shape [", number(size), "]."}});
  }
  const Poly count = limited(steps_in(Poly(chosen[1]), poly_max(Poly(chosen[2]), 1)));
  return DimIndex::slice(Poly(chosen[0]), count, as_poly(stride));
}

std::vector<DimIndex> Lowerer::dims_of(const StaticValue& array, const std::vector<IndexDim>& dims) {
  const std::vector<Poly> sizes = shape(array);
  std::vector<DimIndex> result;
  for (std::size_t k = 0; k < dims.size(); ++k) {
    if (dims[k].slice)
      result.push_back(slice_of(dims[k], k < sizes.size() ? sizes[k] : Poly(0)));
    else
      result.push_back(DimIndex::fix(as_index(*dims[k].start)));
  }
  return result;
}

StaticValue Lowerer::take_dims(const StaticValue& array, const std::vector<DimIndex>& dims, bool checked) {
  if (dims.empty()) return array;
  return map_leaves(array, [&](const StaticValue& leaf) {
    const Value base = this->array(leaf);
    return scalar(builder_->let(builder_->values().name(base), Index{base, dims, checked}));
  });
}

StaticValue Lowerer::lower_index(const StaticValue& array, const std::vector<IndexDim>& dims) {
  return take_dims(array, dims_of(array, dims), checked_indices_);
}

StaticValue Lowerer::access(const StaticValue& value, const std::vector<AccessStep>& steps) {
  StaticValue result = value;
  for (const AccessStep& step : steps)
    result = step.is_field ? project(result, step.field) : lower_index(result, step.dims);
  return result;
}

StaticValue Lowerer::update(const StaticValue& source, const std::vector<AccessStep>& steps, std::size_t step,
                            const StaticValue& value) {
  if (step == steps.size()) return value;
  if (steps[step].is_field) {
    StaticValue::Fields fields = *source.fields();
    for (auto& [name, field] : fields)
      if (name == steps[step].field) field = update(field, steps, step + 1, value);
    return StaticValue(std::move(fields));
  }
  const std::vector<DimIndex> dims = dims_of(source, steps[step].dims);
  StaticValue part = value;
  if (step + 1 < steps.size()) part = update(take_dims(source, dims, checked_indices_), steps, step + 1, value);
  const std::vector<Operand> parts = leaves(part);
  std::vector<Operand> results;
  for (const Operand& leaf : leaves(source)) {
    // The source may be used again: whether it is not, and the copy can go, is for later passes to find out.
    const Value fresh = builder_->let("a", Copy{array(StaticValue(leaf))});
    std::vector<Poly> wanted;
    for (const DimIndex& dim : dims)
      if (dim.is_slice()) wanted.push_back(*dim.count);
    const Type type = type_of(leaf).row(dims.size());
    wanted.insert(wanted.end(), type.shape.begin(), type.shape.end());
    const StaticValue given(parts[results.size()]);
    const std::vector<Poly> actual = shape(given);
    require_shape(wanted, actual, std::string(to_text(type.element)));
    const Operand element = operand(wanted.empty() ? given : with_sizes(given, wanted));
    results.emplace_back(builder_->let("a", Update{fresh, dims, element, checked_indices_}));
  }
  return with_leaves(source, results);
}

}  // namespace apl::frontend
