// What depends on the order of the dims in memory: injectivity, overlap, recovery of the layout.
#include <algorithm>
#include <numeric>

#include "ir/lmad.h"

namespace apl {
namespace {

// Constant LMADs of up to this many points are enumerated: the answer is then always known.
constexpr std::int64_t kMaxPoints = 4096;

std::optional<std::vector<std::int64_t>> constant_points(const Lmad& lmad) {
  std::int64_t count = 1;
  if (!lmad.offset().constant()) return std::nullopt;
  for (const LmadDim& dim : lmad.dims()) {
    const auto size = dim.size.constant();
    if (!size || !dim.stride.constant()) return std::nullopt;
    if (*size <= 0) return std::vector<std::int64_t>{};
    if (*size > kMaxPoints || (count *= *size) > kMaxPoints) return std::nullopt;
  }
  auto points = lmad.points([](Value) { return std::int64_t{0}; });
  if (points) std::sort(points->begin(), points->end());
  return points;
}

// yes: some size is 0; no: all are at least 1.
Proof prove_empty(const Lmad& lmad, const SizeFacts& facts) {
  bool inhabited = true;
  for (const LmadDim& dim : lmad.dims()) {
    const Proof empty = prove_less(dim.size, 1, facts);
    if (empty == Proof::yes) return Proof::yes;
    inhabited = inhabited && empty == Proof::no;
  }
  return inhabited ? Proof::no : Proof::unknown;
}

// The same points with positive strides, without dims of one element. nullopt: the sign of a stride is not
// known, or it is 0. For arrays that have an element.
std::optional<Lmad> upright(const Lmad& lmad, const SizeFacts& facts) {
  Poly offset = lmad.offset();
  std::vector<LmadDim> dims;
  for (const LmadDim& dim : lmad.dims()) {
    if (dim.size.is_one()) continue;
    if (prove_less(0, dim.stride, facts) == Proof::yes) {
      dims.push_back(dim);
    } else if (prove_less(dim.stride, 0, facts) == Proof::yes) {
      offset += dim.stride * (dim.size - 1);
      dims.push_back({dim.size, -dim.stride});
    } else {
      return std::nullopt;
    }
  }
  return Lmad(std::move(offset), std::move(dims));
}

// Positions of `strides` (all positive), the greatest first; nullopt where two cannot be compared.
std::optional<std::vector<int>> descending(const std::vector<Poly>& strides, const SizeFacts& facts) {
  std::vector<int> left(strides.size());
  std::iota(left.begin(), left.end(), 0);
  const auto stride = [&strides](int k) -> const Poly& { return strides[static_cast<std::size_t>(k)]; };
  std::vector<int> result;
  while (!left.empty()) {
    const auto greatest = std::find_if(left.begin(), left.end(), [&](int k) {
      return std::all_of(left.begin(), left.end(),
                         [&](int other) { return prove_non_negative(stride(k) - stride(other), facts) == Proof::yes; });
    });
    if (greatest == left.end()) return std::nullopt;
    result.push_back(*greatest);
    left.erase(greatest);
  }
  return result;
}

// Whether sums of i_k * strides[k] with 0 <= i_k <= extents[k] are all different: sorted, each stride is more
// than the reach of the smaller ones.
bool nests(const std::vector<Poly>& strides, const std::vector<Poly>& extents, const SizeFacts& facts) {
  const auto order = descending(strides, facts);
  if (!order) return false;
  Poly reach = 0;
  return std::all_of(order->rbegin(), order->rend(), [&](int position) {
    const auto k = static_cast<std::size_t>(position);
    const bool clears = prove_less(reach, strides[k], facts) == Proof::yes;
    reach += strides[k] * extents[k];
    return clears;
  });
}

// The last point of an upright LMAD.
Poly last_point(const Lmad& lmad) {
  Poly result = lmad.offset();
  for (const LmadDim& dim : lmad.dims()) result += dim.stride * (dim.size - 1);
  return result;
}

// Both LMADs as boxes of indices of one system of strides: `a` from 0, `b` from `start`.
struct Boxes {
  std::vector<Poly> strides;
  std::vector<Poly> a;  // last index
  std::vector<Poly> start;
  std::vector<Poly> b;  // last index, counted from start
};

std::optional<Boxes> common_boxes(const Lmad& a, const Lmad& b, const SizeFacts& facts) {
  Boxes boxes;
  for (const Lmad* lmad : {&a, &b}) {
    for (const LmadDim& dim : lmad->dims()) {
      if (std::find(boxes.strides.begin(), boxes.strides.end(), dim.stride) == boxes.strides.end()) {
        boxes.strides.push_back(dim.stride);
      }
    }
  }
  const auto order = descending(boxes.strides, facts);
  if (!order) return std::nullopt;
  std::vector<Poly> sorted;
  for (const int k : *order) sorted.push_back(boxes.strides[static_cast<std::size_t>(k)]);
  boxes.strides = std::move(sorted);
  const auto last_index = [](const Lmad& lmad, const Poly& stride) {
    Poly last = 0;  // two dims of one stride overlap, but reach no further than this
    for (const LmadDim& dim : lmad.dims()) {
      if (dim.stride == stride) last += dim.size - 1;
    }
    return last;
  };
  Poly distance = b.offset() - a.offset();
  for (const Poly& stride : boxes.strides) {
    boxes.a.push_back(last_index(a, stride));
    boxes.b.push_back(last_index(b, stride));
    auto [quotient, rest] = distance.divide(stride);
    boxes.start.push_back(std::move(quotient));
    distance = std::move(rest);
  }
  // The strides may not suffice to reach b's offset: then what is left is a dim of its own.
  if (!distance.is_zero()) {
    boxes.strides.push_back(1);
    boxes.a.push_back(0);
    boxes.b.push_back(0);
    boxes.start.push_back(std::move(distance));
  }
  return boxes;
}

// Where the digits of points do not carry, boxes that miss each other in one digit have no point in common,
// and boxes that meet in all digits have one.
Proof boxes_disjoint(const Boxes& boxes, const SizeFacts& facts) {
  std::vector<Poly> extents;
  bool apart = false;
  bool meet = true;
  for (std::size_t k = 0; k < boxes.strides.size(); ++k) {
    const Poly b_end = boxes.start[k] + boxes.b[k];
    const Proof b_after = prove_less(boxes.a[k], boxes.start[k], facts);
    const Proof b_before = prove_less(b_end, 0, facts);
    apart = apart || b_after == Proof::yes || b_before == Proof::yes;
    meet = meet && b_after == Proof::no && b_before == Proof::no;
    extents.push_back(poly_max(boxes.a[k], b_end) - poly_min(0, boxes.start[k]));
  }
  if (!apart) return meet ? Proof::no : Proof::unknown;
  return nests(boxes.strides, extents, facts) ? Proof::yes : Proof::unknown;
}

std::int64_t common_stride(const Lmad& a, const Lmad& b) {
  std::int64_t result = 0;
  for (const Lmad* lmad : {&a, &b}) {
    for (const LmadDim& dim : lmad->dims()) {
      for (const Term& term : dim.stride.terms()) {
        if (term.coefficient == INT64_MIN) return 1;
        result = std::gcd(result, term.coefficient);
      }
    }
  }
  return result;
}

}  // namespace

void assume_inhabited(SizeFacts& facts, const Lmad& lmad) {
  for (const LmadDim& dim : lmad.dims()) facts.non_negative(dim.size - 1);
}

std::optional<std::vector<int>> order_by_stride(const Lmad& lmad, const SizeFacts& facts) {
  SizeFacts known = facts;
  assume_inhabited(known, lmad);
  std::vector<Poly> magnitudes;
  for (const LmadDim& dim : lmad.dims()) {
    const Proof forward = prove_non_negative(dim.stride, known);
    if (forward == Proof::unknown) return std::nullopt;
    magnitudes.push_back(forward == Proof::yes ? dim.stride : -dim.stride);
  }
  return descending(magnitudes, known);
}

Proof Lmad::injective(const SizeFacts& facts) const {
  if (const auto points = constant_points(*this)) {
    return std::adjacent_find(points->begin(), points->end()) == points->end() ? Proof::yes : Proof::no;
  }
  const Proof empty = prove_empty(*this, facts);
  if (empty == Proof::yes) return Proof::yes;
  SizeFacts known = facts;
  assume_inhabited(known, *this);
  if (const auto lmad = upright(*this, known)) {
    std::vector<Poly> extents;
    for (const LmadDim& dim : lmad->dims()) extents.push_back(dim.size - 1);
    if (nests(lmad->strides(), extents, known)) return Proof::yes;
  }
  if (empty != Proof::no) return Proof::unknown;
  // Two neighbours along a dim of stride 0, or along two dims of one magnitude of stride, are one point.
  const auto has_neighbours = [&facts](const LmadDim& dim) { return prove_less(1, dim.size, facts) == Proof::yes; };
  for (std::size_t k = 0; k < rank(); ++k) {
    if (!has_neighbours(dims_[k])) continue;
    if (dims_[k].stride.is_zero()) return Proof::no;
    for (std::size_t l = 0; l < k; ++l) {
      const bool same = dims_[k].stride == dims_[l].stride || dims_[k].stride == -dims_[l].stride;
      if (same && has_neighbours(dims_[l])) return Proof::no;
    }
  }
  return Proof::unknown;
}

Proof Lmad::disjoint(const Lmad& other, const SizeFacts& facts) const {
  const auto points = constant_points(*this);
  const auto other_points = constant_points(other);
  if (points && other_points) {
    std::vector<std::int64_t> common;
    std::set_intersection(points->begin(), points->end(), other_points->begin(), other_points->end(),
                          std::back_inserter(common));
    return common.empty() ? Proof::yes : Proof::no;
  }
  const Proof empty = prove_empty(*this, facts);
  const Proof other_empty = prove_empty(other, facts);
  if (empty == Proof::yes || other_empty == Proof::yes) return Proof::yes;

  SizeFacts known = facts;
  assume_inhabited(known, *this);
  assume_inhabited(known, other);
  const std::int64_t step = common_stride(*this, other);
  if (step > 1 && prove_divisible(other.offset() - offset_, step, known) == Proof::no) return Proof::yes;

  Proof result = Proof::unknown;
  const auto a = upright(*this, known);
  const auto b = upright(other, known);
  if (a && b) {
    if (prove_less(last_point(*a), b->offset(), known) == Proof::yes) return Proof::yes;
    if (prove_less(last_point(*b), a->offset(), known) == Proof::yes) return Proof::yes;
    if (const auto boxes = common_boxes(*a, *b, known)) result = boxes_disjoint(*boxes, known);
    if (result == Proof::yes) return result;
  }
  // That they meet is shown for arrays that have an element.
  const bool inhabited = empty == Proof::no && other_empty == Proof::no;
  const bool same_start = prove_equal(offset_, other.offset(), facts) == Proof::yes;
  return inhabited && (result == Proof::no || same_start) ? Proof::no : Proof::unknown;
}

LayoutOrder recover_order(const Lmad& lmad) {
  LayoutOrder result;
  std::vector<int> left;
  for (std::size_t k = 0; k < lmad.rank(); ++k) {
    const LmadDim& dim = lmad.dims()[k];
    (dim.size.is_one() || dim.stride.is_zero() ? result.aside : left).push_back(static_cast<int>(k));
  }
  const auto dim = [&lmad](int k) -> const LmadDim& { return lmad.dims()[static_cast<std::size_t>(k)]; };
  Poly expected = 1;
  while (!left.empty()) {
    const auto next = std::find_if(left.begin(), left.end(), [&](int k) { return dim(k).stride == expected; });
    if (next == left.end()) break;
    if (result.order.empty()) result.unit = *next;
    expected *= dim(*next).size;
    result.order.insert(result.order.begin(), *next);
    left.erase(next);
  }
  result.exact = left.empty();
  if (!result.exact) {
    result.reason = result.unit ? "a stride is not the product of the sizes further in" : "no dimension has stride 1";
    std::vector<LmadDim> rest;
    for (const int k : left) rest.push_back(dim(k));
    // What is left lies further out than the chain: sorting it by stride is all that can be done.
    SizeFacts facts;
    assume_inhabited(facts, lmad);
    if (const auto order = order_by_stride(Lmad(0, rest), facts)) {
      std::vector<int> outer;
      for (const int position : *order) outer.push_back(left[static_cast<std::size_t>(position)]);
      result.order.insert(result.order.begin(), outer.begin(), outer.end());
    }
  }
  result.order.insert(result.order.end(), result.aside.begin(), result.aside.end());
  return result;
}

}  // namespace apl
