// LMADs: construction, indexing, enumeration, text. Changes of shape are in ir/lmad_reshape.cpp, what needs the
// order of the dims in ir/lmad_order.cpp.
#include "ir/lmad.h"

#include <fmt/format.h>

#include <algorithm>

namespace apl {
namespace {

std::string list_text(const std::vector<Poly>& polys, const std::function<std::string(Value)>& name_of) {
  std::string text;
  for (const Poly& poly : polys) text += (text.empty() ? "" : ", ") + poly.to_string(name_of);
  return "[" + text + "]";
}

}  // namespace

Lmad Lmad::row_major(const std::vector<Poly>& shape) {
  Lmad result(0, std::vector<LmadDim>(shape.size()));
  Poly stride = 1;
  for (std::size_t k = shape.size(); k-- > 0; stride *= shape[k]) result.dims_[k] = {shape[k], stride};
  return result;
}

Lmad Lmad::padded(const std::vector<Poly>& shape, std::size_t j) {
  Lmad result = row_major(shape);
  const auto split = shape.begin() + static_cast<std::ptrdiff_t>(std::min(j + 1, shape.size()));
  const Poly inner = product({split, shape.end()});
  Poly stride = inner + (1 - remainder(inner, 2));  // eqs 19 and 21
  for (auto k = static_cast<std::size_t>(split - shape.begin()); k-- > 0; stride *= shape[k]) {
    result.dims_[k].stride = stride;  // eq 22
  }
  return result;
}

std::vector<Poly> Lmad::shape() const {
  std::vector<Poly> result;
  for (const LmadDim& dim : dims_) result.push_back(dim.size);
  return result;
}

std::vector<Poly> Lmad::strides() const {
  std::vector<Poly> result;
  for (const LmadDim& dim : dims_) result.push_back(dim.stride);
  return result;
}

Poly Lmad::element_count() const { return product(shape()); }

Poly Lmad::apply(const std::vector<Poly>& indices) const {
  Poly result = offset_;
  for (std::size_t k = 0; k < dims_.size(); ++k) result += indices[k] * dims_[k].stride;
  return result;
}

Poly Lmad::apply_flat(const Poly& flat) const { return apply(unflatten_index(flat, shape())); }

Lmad Lmad::permute(const std::vector<int>& permutation) const {
  Lmad result(offset_, {});
  for (const int k : permutation) result.dims_.push_back(dims_[static_cast<std::size_t>(k)]);
  return result;
}

Lmad Lmad::slice(std::size_t k, const Poly& start, const Poly& count, const Poly& step) const {
  Lmad result = *this;
  result.offset_ += start * dims_[k].stride;
  result.dims_[k] = {count, dims_[k].stride * step};
  return result;
}

Lmad Lmad::index(std::size_t k, const Poly& i) const {
  Lmad result = *this;
  result.offset_ += i * dims_[k].stride;
  result.dims_.erase(result.dims_.begin() + static_cast<std::ptrdiff_t>(k));
  return result;
}

Lmad Lmad::expand(std::size_t k, const Poly& size) const {
  Lmad result = *this;
  result.dims_.insert(result.dims_.begin() + static_cast<std::ptrdiff_t>(k), {size, 0});
  return result;
}

Lmad Lmad::substitute(const std::function<std::optional<Poly>(Value)>& replace) const {
  Lmad result = *this;
  result.offset_ = offset_.substitute(replace);
  for (LmadDim& dim : result.dims_) dim = {dim.size.substitute(replace), dim.stride.substitute(replace)};
  return result;
}

Proof Lmad::contiguous(const SizeFacts& facts) const {
  Proof result = Proof::yes;
  bool inhabited = true;
  Poly expected = 1;
  for (std::size_t k = dims_.size(); k-- > 0;) {
    const auto& [size, stride] = dims_[k];
    const Proof empty = prove_less(size, 1, facts);
    if (empty == Proof::yes) return Proof::yes;
    inhabited = inhabited && empty == Proof::no;
    const Proof right_stride = prove_equal(stride, expected, facts);
    expected *= size;
    if (right_stride == Proof::yes || prove_equal(size, 1, facts) == Proof::yes) continue;
    const bool wrong = right_stride == Proof::no && prove_less(1, size, facts) == Proof::yes;
    if (result != Proof::no) result = wrong ? Proof::no : Proof::unknown;
  }
  return result == Proof::no && !inhabited ? Proof::unknown : result;
}

std::optional<std::vector<std::int64_t>> Lmad::points(const std::function<std::int64_t(Value)>& value_of) const {
  const auto offset = offset_.evaluate(value_of);
  if (!offset) return std::nullopt;
  std::vector<std::int64_t> result{*offset};
  for (const LmadDim& dim : dims_) {
    const auto size = dim.size.evaluate(value_of);
    const auto stride = dim.stride.evaluate(value_of);
    if (!size || !stride) return std::nullopt;
    std::vector<std::int64_t> next;
    for (const std::int64_t point : result) {
      for (std::int64_t i = 0; i < *size; ++i) next.push_back(point + i * *stride);
    }
    result = std::move(next);
  }
  return result;
}

std::string Lmad::to_string(const std::function<std::string(Value)>& name_of) const {
  return fmt::format("{{offset: {}; shape: {}; strides: {}}}", offset_.to_string(name_of), list_text(shape(), name_of),
                     list_text(strides(), name_of));
}

std::vector<Poly> unflatten_index(const Poly& flat, const std::vector<Poly>& shape) {
  std::vector<Poly> result;
  Poly rest = flat;
  for (const LmadDim& dim : Lmad::row_major(shape).dims()) {
    result.push_back(floor_div(rest, dim.stride));
    rest -= result.back() * dim.stride;
  }
  return result;
}

}  // namespace apl
