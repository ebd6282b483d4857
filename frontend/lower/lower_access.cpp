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

// Elements start, start + stride, ... before `end`; a negative stride begins at the last element.
DimIndex Lowerer::slice_of(const IndexDim& dim, const Poly& size) {
  const Poly stride = dim.stride ? as_index(*dim.stride) : Poly(1);
  const auto step = stride.constant();
  if (!step || *step == 0 || *step == INT64_MIN) unsupported(dim.location, "a slice whose stride is not a constant");
  const Poly start = dim.start ? as_index(*dim.start) : *step > 0 ? Poly(0) : size - 1;
  const Poly end = dim.end ? as_index(*dim.end) : *step > 0 ? size : Poly(-1);
  const Poly count = *step > 0 ? ceil_div(end - start, stride) : ceil_div(start - end, -stride);
  return DimIndex::slice(start, count, stride);
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
    for (std::size_t k = 0; k < wanted.size() && k < actual.size(); ++k) require_size(wanted[k], actual[k]);
    const Operand element = operand(wanted.empty() ? given : with_sizes(given, wanted));
    results.emplace_back(builder_->let("a", Update{fresh, dims, element, checked_indices_}));
  }
  return with_leaves(source, results);
}

}  // namespace apl::frontend
