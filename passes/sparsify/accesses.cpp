#include "passes/sparsify/accesses.h"

#include <algorithm>

#include "ir/walk.h"

namespace apl::sparsify {
namespace {

// Of `source` under the dims of an index; those that are not named are whole.
Access indexed(Access source, const std::vector<DimIndex>& dims) {
  std::vector<std::optional<std::size_t>> kept;  // by axis of the source, its axis of the result
  std::size_t rank = 0, axes = dims.size();
  for (const Access::Dim& dim : source.dims)
    if (dim.axis) axes = std::max(axes, *dim.axis + 1);
  for (std::size_t axis = 0; axis < axes; ++axis)
    kept.push_back(axis >= dims.size() || dims[axis].is_slice() ? std::optional(rank++) : std::nullopt);
  for (Access::Dim& dim : source.dims) {
    if (!dim.axis) continue;
    const std::size_t axis = *dim.axis;
    if (axis < dims.size()) {
      dim.start += dim.stride * dims[axis].start;
      dim.stride *= dims[axis].stride;
    }
    dim.axis = kept[axis];
  }
  return source;
}

}  // namespace

bool Access::is_element() const {
  return std::ranges::none_of(dims, [](const Dim& dim) { return dim.axis.has_value(); });
}

std::vector<Poly> Access::batches() const {
  std::vector<Poly> indices;
  for (std::size_t d = 0; d + 2 < dims.size(); ++d) indices.push_back(dims[d].start);
  return indices;
}

std::optional<Access> Accesses::find(Value value) const {
  if (const auto known = accesses_.find(value); known != accesses_.end()) return known->second;
  if (!arrays_.contains(value)) return std::nullopt;
  Access whole{.base = value, .dims = {}};
  for (std::size_t d = 0; d < values_.type(value).rank(); ++d) whole.dims.push_back({.axis = d});
  return whole;
}

void Accesses::enter(const Stm& stm) {
  for_each_body(stm.op, [&](const BodyPtr& inner) { enter(*inner); });
  if (stm.pattern.size() != 1) return;
  std::optional<Access> made;
  if (const Index* index = get_if<Index>(stm); index != nullptr && !index->checked) {
    if (made = find(index->array); made) made = indexed(*std::move(made), index->dims);
  } else if (const Rearrange* turned = get_if<Rearrange>(stm)) {
    if (made = find(turned->array); made)
      for (Access::Dim& dim : made->dims)
        if (dim.axis)
          dim.axis = static_cast<std::size_t>(std::ranges::find(turned->permutation, static_cast<int>(*dim.axis)) -
                                              turned->permutation.begin());
  } else if (const Use* use = get_if<Use>(stm); use != nullptr && use->x.is_value()) {
    made = find(use->x.value());
  }
  if (!made) return;
  made->certificates.insert(made->certificates.end(), stm.certificates.begin(), stm.certificates.end());
  accesses_.insert_or_assign(stm.pattern.front(), *std::move(made));
}

void Accesses::enter(const Body& body) {
  for (const Stm& stm : body.stms) enter(stm);
}

}  // namespace apl::sparsify
