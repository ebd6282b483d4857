// LMAD: linear memory access descriptor (T eq 8), the index function of an array:
//   L(i_1, ..., i_n) = offset + i_1*stride_1 + ... + i_n*stride_n,  0 <= i_k < size_k.
// Offset >= 0, sizes >= 0, strides any integer (0 = broadcast, negative = reversal); all counted in elements.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/poly.h"

namespace apl {

struct LmadDim {
  Poly size;
  Poly stride;
  bool operator==(const LmadDim&) const = default;
};

class Lmad {
 public:
  Lmad() = default;
  Lmad(Poly offset, std::vector<LmadDim> dims) : offset_(std::move(offset)), dims_(std::move(dims)) {}

  // Offset 0, strides the products of the sizes further in (T eq 11).
  static Lmad row_major(const std::vector<Poly>& shape);
  // Row-major with the dims after `j` (0-based) padded together to an odd number of elements: T eqs 19-23,
  // with eq 23's range starting at j+2. Strides stay polynomials: the pad is 1 - (inner mod 2).
  static Lmad padded(const std::vector<Poly>& shape, std::size_t j);

  const Poly& offset() const { return offset_; }
  const std::vector<LmadDim>& dims() const& { return dims_; }
  std::vector<LmadDim> dims() && { return std::move(dims_); }  // of a temporary: nothing dangles
  std::size_t rank() const { return dims_.size(); }
  std::vector<Poly> shape() const;
  std::vector<Poly> strides() const;
  Poly element_count() const;  // product of the sizes

  Poly apply(const std::vector<Poly>& indices) const;       // T eq 12; indices.size() == rank()
  Poly apply_flat(const Poly& flat) const;                  // T eq 14: unflatten by the sizes, then apply
  Lmad permute(const std::vector<int>& permutation) const;  // result dim k = this dim permutation[k]
  // Dim k becomes start + i*step for i < count.
  Lmad slice(std::size_t k, const Poly& start, const Poly& count, const Poly& step) const;
  Lmad index(std::size_t k, const Poly& i) const;      // dim k fixed and removed
  Lmad expand(std::size_t k, const Poly& size) const;  // a new dim k of stride 0
  Lmad substitute(const std::function<std::optional<Poly>(Value)>& replace) const;

  // An LMAD or the reason why the result is none. (A plain pair: the reason is for remarks.)
  struct Outcome;
  Outcome flatten(std::size_t first, std::size_t last) const;  // dims [first, last] into one
  Outcome unflatten(std::size_t k, const std::vector<Poly>& sizes) const;
  // The same elements in row-major order under another shape.
  Outcome reshape(const std::vector<Poly>& shape) const;
  // This array seen through `view`, whose points are row-major positions in this array (the caller's promise).
  // The facts serve to show that no index runs over the end of a row.
  Outcome compose(const Lmad& view, const SizeFacts& facts = {}) const;

  Proof contiguous(const SizeFacts& facts = {}) const;  // points are offset, offset+1, ..., in index order
  // Sound; complete for constants up to some thousand points, and for what nests: each stride is more than the
  // reach of all smaller ones.
  Proof injective(const SizeFacts& facts = {}) const;                    // no two indices give one point
  Proof disjoint(const Lmad& other, const SizeFacts& facts = {}) const;  // no point in common

  // All points in index order for given symbol values; for tests and small arrays.
  std::optional<std::vector<std::int64_t>> points(const std::function<std::int64_t(Value)>& value_of) const;

  bool operator==(const Lmad&) const = default;
  // `{offset: o; shape: [a, b]; strides: [b, 1]}`
  std::string to_string(const std::function<std::string(Value)>& name_of) const;

 private:
  Poly offset_;
  std::vector<LmadDim> dims_;
};

struct Lmad::Outcome {
  std::optional<Lmad> lmad;
  std::string reason;  // why not, if there is none

  explicit operator bool() const { return lmad.has_value(); }
  const Lmad& operator*() const { return *lmad; }
  const Lmad* operator->() const { return &*lmad; }
};

// Eq 13: the indices of position `flat` in row-major order, as polynomials with floor_div.
std::vector<Poly> unflatten_index(const Poly& flat, const std::vector<Poly>& shape);

// Adds what holds if the array has an element, that its sizes are at least 1: for questions whose answer does
// not matter for an empty array.
void assume_inhabited(SizeFacts& facts, const Lmad& lmad);

// The dims by descending magnitude of stride, with negative strides made positive; nullopt where two strides
// cannot be compared. The results are positions in `lmad`. For arrays that have an element.
std::optional<std::vector<int>> order_by_stride(const Lmad& lmad, const SizeFacts& facts = {});

// Recovery of the order of dims from strides in O(n^2) (it replaces the search of T listing 7): the
// permutation that sorts the dims outermost first. Dims of size 1 or stride 0 are set aside and come last.
// `exact` says that the strides, rebuilt from the sizes in that order, are the given ones. Where the chain
// breaks (padding, slices), the other dims are ordered by the magnitude of their strides if those can be
// compared, else they are missing from `order`; `unit` still names the unit-stride dim if there is one.
struct LayoutOrder {
  std::vector<int> order;
  std::vector<int> aside;
  std::optional<int> unit;
  bool exact = false;
  std::string reason;
};
LayoutOrder recover_order(const Lmad& lmad);

}  // namespace apl
