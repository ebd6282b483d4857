// Changes of shape that stay LMADs: flatten, unflatten, reshape, compose. Each says why where it cannot.
#include <algorithm>

#include "ir/lmad.h"

namespace apl {
namespace {

Lmad::Outcome refuse(std::string reason) { return {std::nullopt, std::move(reason)}; }

// One dim for `dims`, if their strides chain. Dims of size 1 are no obstacle, whatever their strides.
std::optional<LmadDim> merge(const std::vector<LmadDim>& dims) {
  LmadDim merged{1, dims.empty() ? Poly(1) : dims.back().stride};
  for (std::size_t k = dims.size(); k-- > 0;) {
    if (dims[k].size.is_one()) continue;
    if (merged.size.is_one()) {
      merged = dims[k];
    } else if (dims[k].stride == merged.stride * merged.size) {
      merged.size *= dims[k].size;
    } else {
      return std::nullopt;
    }
  }
  return merged;
}

// The dims of row-major order within a dim of this stride.
std::vector<LmadDim> spread(const std::vector<Poly>& sizes, const Poly& stride) {
  std::vector<LmadDim> result = Lmad::row_major(sizes).dims();
  for (LmadDim& dim : result) dim.stride *= stride;
  return result;
}

std::vector<LmadDim> without_unit_sizes(const std::vector<LmadDim>& dims) {
  std::vector<LmadDim> result;
  for (const LmadDim& dim : dims) {
    if (!dim.size.is_one()) result.push_back(dim);
  }
  return result;
}

// As few dims as possible for the same points in the same order.
std::vector<LmadDim> coalesced(const std::vector<LmadDim>& dims) {
  std::vector<LmadDim> result;
  for (const LmadDim& dim : without_unit_sizes(dims)) {
    if (!result.empty()) {
      if (auto merged = merge({result.back(), dim})) {
        result.back() = std::move(*merged);
        continue;
      }
    }
    result.push_back(dim);
  }
  return result;
}

// The groups of a reshape: the sizes before `old_end` and `new_end` have equal products, for the first time
// since the group began. Products of no shorter groups can be compared where sizes are symbols.
struct Group {
  std::size_t old_begin, old_end, new_begin, new_end;
};

std::vector<Group> find_groups(const std::vector<LmadDim>& old_dims, const std::vector<Poly>& new_sizes) {
  std::vector<Poly> new_products{1};
  for (const Poly& size : new_sizes) new_products.push_back(new_products.back() * size);
  std::vector<Group> groups;
  Poly old_product = 1;
  std::size_t old_begin = 0;
  std::size_t new_begin = 0;
  for (std::size_t k = 0; k < old_dims.size(); ++k) {
    old_product *= old_dims[k].size;
    const auto from = new_products.begin() + static_cast<std::ptrdiff_t>(new_begin) + 1;
    const auto found = std::find(from, new_products.end(), old_product);
    if (found == new_products.end()) continue;
    const auto new_end = static_cast<std::size_t>(found - new_products.begin());
    groups.push_back({old_begin, k + 1, new_begin, new_end});
    old_begin = k + 1;
    new_begin = new_end;
  }
  return groups;
}

// Dims of size 1 get the stride that row-major order would give them.
std::vector<LmadDim> insert_unit_sizes(const std::vector<LmadDim>& dims, const std::vector<Poly>& shape) {
  std::vector<LmadDim> result(shape.size());
  Poly stride = 1;
  auto next = dims.rbegin();
  for (std::size_t k = shape.size(); k-- > 0;) {
    result[k] = shape[k].is_one() ? LmadDim{1, stride} : *next++;
    stride = result[k].stride * result[k].size;
  }
  return result;
}

}  // namespace

Lmad::Outcome Lmad::flatten(std::size_t first, std::size_t last) const {
  if (first > last || last >= rank()) return refuse("there are no such dimensions");
  const auto begin = dims_.begin() + static_cast<std::ptrdiff_t>(first);
  const auto end = dims_.begin() + static_cast<std::ptrdiff_t>(last) + 1;
  auto merged = merge({begin, end});
  if (!merged && element_count().is_zero()) merged = {product(Lmad(0, {begin, end}).shape()), 1};
  if (!merged) return refuse("the strides of the flattened dimensions do not follow from each other");
  Lmad result(offset_, {dims_.begin(), begin});
  result.dims_.push_back(*merged);
  result.dims_.insert(result.dims_.end(), end, dims_.end());
  return {std::move(result), {}};
}

Lmad::Outcome Lmad::unflatten(std::size_t k, const std::vector<Poly>& sizes) const {
  if (k >= rank()) return refuse("there is no such dimension");
  if (product(sizes) != dims_[k].size) return refuse("the sizes cannot be shown to multiply to that of the dimension");
  const auto split_dim = dims_.begin() + static_cast<std::ptrdiff_t>(k);
  const std::vector<LmadDim> inner = spread(sizes, split_dim->stride);
  Lmad result(offset_, {dims_.begin(), split_dim});
  result.dims_.insert(result.dims_.end(), inner.begin(), inner.end());
  result.dims_.insert(result.dims_.end(), split_dim + 1, dims_.end());
  return {std::move(result), {}};
}

Lmad::Outcome Lmad::reshape(const std::vector<Poly>& shape) const {
  const Poly count = element_count();
  if (product(shape) != count) return refuse("the element counts cannot be shown to be equal");
  if (count.is_zero()) return {Lmad(offset_, row_major(shape).dims()), {}};
  const std::vector<LmadDim> old_dims = without_unit_sizes(dims_);
  std::vector<Poly> new_sizes = shape;
  std::erase_if(new_sizes, [](const Poly& size) { return size.is_one(); });

  std::vector<LmadDim> new_dims;
  for (const Group& group : find_groups(old_dims, new_sizes)) {
    const auto merged = merge({old_dims.begin() + static_cast<std::ptrdiff_t>(group.old_begin),
                               old_dims.begin() + static_cast<std::ptrdiff_t>(group.old_end)});
    if (!merged) return refuse("dimensions that are merged do not follow from each other in memory");
    const auto dims = spread({new_sizes.begin() + static_cast<std::ptrdiff_t>(group.new_begin),
                              new_sizes.begin() + static_cast<std::ptrdiff_t>(group.new_end)},
                             merged->stride);
    new_dims.insert(new_dims.end(), dims.begin(), dims.end());
  }
  return {Lmad(offset_, insert_unit_sizes(new_dims, shape)), {}};
}

// A row-major position is a number whose digits are the indices. The digits of the offset and strides of
// `view` are found by division; adding them up digit by digit is right if no digit carries.
Lmad::Outcome Lmad::compose(const Lmad& view, const SizeFacts& facts) const {
  if (element_count().is_zero()) return {Lmad(offset_, view.dims()), {}};  // then the view has no element either
  const std::vector<LmadDim> dims = coalesced(dims_);
  std::vector<Poly> sizes;
  for (const LmadDim& dim : dims) sizes.push_back(dim.size);
  const std::vector<LmadDim> digit_dims = row_major(sizes).dims();
  const auto digits = [&digit_dims](const Poly& number) {
    const bool negative = !number.is_zero() && number.terms()[0].coefficient < 0;
    std::vector<Poly> result;
    Poly rest = negative ? -number : number;
    for (const LmadDim& split_dim : digit_dims) {
      auto [quotient, remainder] = rest.divide(split_dim.stride);
      result.push_back(negative ? -quotient : quotient);
      rest = std::move(remainder);
    }
    return result;
  };

  SizeFacts known = facts;
  assume_inhabited(known, *this);
  assume_inhabited(known, view);
  const std::vector<Poly> start = digits(view.offset());
  std::vector<Poly> low = start;
  std::vector<Poly> high = start;
  Lmad result(offset_, view.dims());
  for (std::size_t k = 0; k < dims.size(); ++k) result.offset_ += start[k] * dims[k].stride;
  for (LmadDim& dim : result.dims_) {
    const std::vector<Poly> steps = dim.size.is_one() ? std::vector<Poly>(dims.size()) : digits(dim.stride);
    dim.stride = 0;
    for (std::size_t k = 0; k < dims.size(); ++k) {
      dim.stride += steps[k] * dims[k].stride;
      const Proof forward = prove_non_negative(steps[k], known);
      if (forward == Proof::unknown) return refuse("the sign of a stride of the view is not known");
      (forward == Proof::yes ? high : low)[k] += steps[k] * (dim.size - 1);
    }
  }
  // The outermost digit is in range because the whole position is.
  for (std::size_t k = 1; k < dims.size(); ++k) {
    if (prove_non_negative(low[k], known) != Proof::yes || prove_less(high[k], sizes[k], known) != Proof::yes) {
      return refuse("the view may run over the end of a row that does not lie next to the following one in memory");
    }
  }
  return {std::move(result), {}};
}

}  // namespace apl
