// Fields, indices and slices.
#include <utility>

#include "frontend/types/checker.h"

namespace apl::frontend {

namespace {

// The number that a literal is, also with a minus.
std::optional<std::int64_t> number(const Expr& expr) {
  if (const auto* negate = std::get_if<Negate>(&expr.node)) {
    const auto value = number(*negate->x);
    return value ? std::optional(-*value) : std::nullopt;
  }
  const auto* literal = std::get_if<NumberLiteral>(&expr.node);
  if (literal && !literal->is_float && literal->too_large.empty() && literal->integer <= INT64_MAX)
    return static_cast<std::int64_t>(literal->integer);
  const auto* typed = std::get_if<Literal>(&expr.node);
  return typed && typed->value.type() == ScalarType::i64 ? std::optional(typed->value.as_int()) : std::nullopt;
}

}  // namespace

// The type of a field; where the record's type is not known yet, it is resolved later.
Ty Checker::field(Ty record, const std::string& name, Location location) {
  if (store_.get_if<TyError>(record)) return store_.error();
  const TyNode& node = store_.node(record);
  if (std::holds_alternative<TyVar>(node)) {
    const Ty result = fresh(location);
    pending_.push_back({record, name, result, location, in_section_});
    return result;
  }
  if (const auto* known = std::get_if<TyRecord>(&node))
    for (const auto& [label, type] : known->fields)
      if (label == name) return type;
  const bool fields = store_.get_if<TyRecord>(record) != nullptr;
  std::vector<std::string> labels;
  if (const auto* known = std::get_if<TyRecord>(&node))
    for (const auto& [label, type] : known->fields) labels.push_back(label);
  report_unknown(Code::type_mismatch, location,
                 "A value of type " + store_.to_text(record) + " has no field \"" + name + "\"" +
                     (fields ? ". Cannot unify record type with one that has it" : ""),
                 name, std::move(labels));
  return store_.error();
}

void Checker::solve_fields(bool last) {
  bool progress = true;
  while (progress && !pending_.empty()) {
    progress = false;
    std::vector<PendingField> open = std::exchange(pending_, {});
    for (PendingField& wanted : open) {
      if (store_.get_if<TyVar>(wanted.record)) {
        pending_.push_back(std::move(wanted));
        continue;
      }
      progress = true;
      unify(wanted.result, field(wanted.record, wanted.name, wanted.location), wanted.location,
            (wanted.section ? "Cannot apply function: field \"" : "Field \"") + wanted.name +
                "\" does not have expected type");
    }
  }
  if (!last) return;
  // Where something else is wrong, that may be why the type is not known.
  const bool failed = failed_;
  for (const PendingField& wanted : pending_)
    if (!failed)
      report(Code::type_ambiguous, wanted.location,
             "The type whose field \"" + wanted.name + "\" is taken is ambiguous here; a type annotation resolves it");
  pending_.clear();
}

// The number of elements of a slice, where its bounds tell it.
Size Checker::slice_size(const IndexDim& dim, Size whole, std::uint32_t unknown_at) {
  int budget = 16;
  const auto start = dim.start ? as_size(*dim.start, budget) : std::nullopt;
  const auto end = dim.end ? as_size(*dim.end, budget) : std::nullopt;
  const bool known = start.has_value() == (dim.start != nullptr) && end.has_value() == (dim.end != nullptr);
  const std::optional<std::int64_t> stride = dim.stride ? number(*dim.stride) : 1;
  if (known && stride == 1) {
    if (!start || (store_.get_if<SizeConst>(*start) && store_.get_if<SizeConst>(*start)->value == 0))
      return end.value_or(whole);
    return store_.size_op('-', end.value_or(whole), *start);
  }
  if (stride == -1 && !dim.start && !dim.end) return whole;
  if (stride == -1 && start && end) return store_.size_op('-', *start, *end);
  for (const ExprPtr* part : {&dim.start, &dim.end})
    if (*part && (stride == 1 || stride == -1)) warn_of_binding(**part);
  return unknown_size("this slice", dim.location, unknown_at);
}

Ty Checker::index_type(Ty array, const std::vector<IndexDim>& dims, Location location, std::uint32_t unknown_at) {
  const Ty i64 = store_.scalar(ScalarType::i64);
  std::vector<Size> kept;
  Ty element = array;
  for (const IndexDim& dim : dims) {
    Size size = store_.size_variable(level_, dim.location);
    const Ty row = fresh(dim.location);
    const auto* known = store_.get_if<TyArray>(element);
    if (known) {
      size = known->size;
      element = known->element;
    } else {
      if (!unify(store_.array(size, row), element, location, "Only an array can be indexed"))
        element = store_.error();
      else
        element = row;
    }
    if (!dim.slice) {
      const Ty index = infer(*dim.start);
      require(index, {.scalars = kIntegers}, dim.location, "An index must be an integer");
      continue;
    }
    for (const ExprPtr* part : {&dim.start, &dim.end, &dim.stride})
      if (*part) check(**part, i64, "The bounds of a slice must be of type i64");
    kept.push_back(slice_size(dim, size, unknown_at));
  }
  if (store_.get_if<TyError>(element)) return element;
  for (auto size = kept.rbegin(); size != kept.rend(); ++size) element = store_.array(*size, element);
  return element;
}

Ty Checker::step_types(Ty type, const std::vector<AccessStep>& steps, std::uint32_t unknown_at) {
  for (const AccessStep& step : steps)
    type =
        step.is_field ? field(type, step.field, step.location) : index_type(type, step.dims, step.location, unknown_at);
  return type;
}

// What an update replaces: the new value may have any size where a slice is replaced, which is checked when the program
// runs.
Ty Checker::updated_part(Ty type, const std::vector<AccessStep>& steps, std::uint32_t unknown_at) {
  const Ty part = step_types(type, steps, unknown_at);
  if (steps.empty() || steps.back().is_field) return part;
  std::vector<const IndexDim*> slices;
  for (const IndexDim& dim : steps.back().dims)
    if (dim.slice) slices.push_back(&dim);
  std::vector<Size> sizes;
  Ty element = part;
  for (const IndexDim* dim : slices) {
    const auto* array = store_.get_if<TyArray>(element);
    if (array == nullptr) return part;
    const bool whole = !dim->start && !dim->end && !dim->stride;
    sizes.push_back(whole ? array->size : store_.size_variable(level_, dim->location));
    element = array->element;
  }
  for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) element = store_.array(*size, element);
  return element;
}

}  // namespace apl::frontend
