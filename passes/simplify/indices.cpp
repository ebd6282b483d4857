// Indexing: checks proved away, and an index of a view made an index of what it views.
//
//   let xs = A[i]                let x = xs[k]   =>   let x = A[i, k]
//   let B = rearrange(A, (1,0))  let x = B[j, k] =>   let x = A[k, j]         B[j] => A[:, j]
//   let B = reshape(A, [m][n])   let x = B[i, j] =>   let x = A[i*n + j]      and back where i*n + j is what is there
//   let B = replicate([m], v)    let x = B[i]    =>   v                       iota, copy, array literal likewise
//
// A checked index is looked through only where the check stays the same: never through a slice or a reshape, whose
// bounds are narrower than those of the array below. Arrays that are overwritten somewhere are not looked through.
#include <algorithm>

#include "passes/simplify/simplifier.h"

namespace apl {

namespace {

bool is_whole(const DimIndex& dim, const Poly& size) {
  return dim.is_slice() && dim.start.is_zero() && dim.stride.is_one() && *dim.count == size;
}

bool all_fixed(const std::vector<DimIndex>& dims, std::size_t count) {
  return std::all_of(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(count),
                     [](const DimIndex& dim) { return !dim.is_slice(); });
}

// `outer` within what `inner` takes of a dim.
DimIndex compose(const DimIndex& inner, const DimIndex& outer) {
  const Poly start = inner.start + inner.stride * outer.start;
  return outer.is_slice() ? DimIndex::slice(start, *outer.count, inner.stride * outer.stride) : DimIndex::fix(start);
}

}  // namespace

Fired Simplifier::index(Stm& stm, const Index& op) {
  const Type& array = values().type(op.array);
  Index result = op;
  while (!result.dims.empty() && is_whole(result.dims.back(), array.shape[result.dims.size() - 1])) {
    result.dims.pop_back();
  }
  if (result.dims.empty()) return use(stm, op.array);
  if (result.checked && (in_bounds(array, result.dims) || in_bounds_either_way(array, result.dims)))
    result.checked = false;
  if (result.dims.size() != op.dims.size() || result.checked != op.checked) {
    stm.op = std::move(result);
    return Fired::again;
  }
  return index_of_view(stm, op);
}

Fired Simplifier::index_of_view(Stm& stm, const Index& op) {
  if (const auto* source = definition<Rearrange>(op.array)) return index_of_rearrange(stm, op, *source);
  const auto look_through = [&](Value base) {
    if (consumption_.consumed(base) || consumption_.consumed(op.array)) return Fired::none;
    stm.op = Index{base, op.dims, op.checked};
    return Fired::again;
  };
  if (const auto* source = definition<Copy>(op.array)) return look_through(source->array);
  if (op.checked) return Fired::none;
  if (const auto* source = definition<Index>(op.array)) return index_of_slice(stm, op, *source);
  if (const auto* source = definition<Reshape>(op.array)) return index_of_reshape(stm, op, *source);
  if (const auto* source = definition<Replicate>(op.array)) return index_of_replicate(stm, op, *source);
  if (const auto* source = definition<Iota>(op.array)) return index_of_iota(stm, op, *source);
  if (const auto* source = definition<ArrayLit>(op.array); source != nullptr && op.dims.size() == 1) {
    const std::optional<std::int64_t> at = op.dims[0].is_slice() ? std::nullopt : op.dims[0].start.constant();
    if (at && *at >= 0 && *at < static_cast<std::int64_t>(source->elements.size()) &&
        !consumption_.consumed(op.array)) {
      return use(stm, source->elements[static_cast<std::size_t>(*at)]);
    }
  }
  return Fired::none;
}

Fired Simplifier::index_of_slice(Stm& stm, const Index& op, const Index& slice) {
  Index result{.array = slice.array};
  std::size_t next = 0;
  for (const DimIndex& dim : slice.dims) {
    const bool named = dim.is_slice() && next < op.dims.size();
    result.dims.push_back(named ? compose(dim, op.dims[next++]) : dim);
  }
  result.dims.insert(result.dims.end(), op.dims.begin() + static_cast<std::ptrdiff_t>(next), op.dims.end());
  stm.op = std::move(result);
  return Fired::again;
}

Fired Simplifier::index_of_rearrange(Stm& stm, const Index& op, const Rearrange& source) {
  const Type& base = values().type(source.array);
  Index result{.array = source.array, .checked = op.checked};
  for (const Poly& size : base.shape) result.dims.push_back(DimIndex::slice(0, size));
  std::vector<int> kept;  // source dims that remain, in the order of the result
  for (std::size_t k = 0; k < source.permutation.size(); ++k) {
    const int from = source.permutation[k];
    if (k < op.dims.size()) result.dims[static_cast<std::size_t>(from)] = op.dims[k];
    if (k >= op.dims.size() || op.dims[k].is_slice()) kept.push_back(from);
  }
  if (std::ranges::is_sorted(kept)) {
    stm.op = std::move(result);
    return Fired::again;
  }
  std::vector<int> sorted = kept;
  std::ranges::sort(sorted);
  std::vector<int> permutation;
  for (const int from : kept) {
    permutation.push_back(static_cast<int>(std::ranges::find(sorted, from) - sorted.begin()));
  }
  const Operand rows = emit(stm, name_of(stm), std::move(result));
  if (!rows.is_value()) return Fired::none;
  stm.op = Rearrange{rows.value(), std::move(permutation)};
  return Fired::again;
}

// Dims of source and result are matched in groups of equal element count, from the outside in; a group is handled if
// it is one dim before and after, one dim split into several, or several dims joined into one.
Fired Simplifier::index_of_reshape(Stm& stm, const Index& op, const Reshape& source) {
  const std::vector<Poly>& from = values().type(source.array).shape;
  const std::vector<Poly>& to = source.shape;
  Index result{.array = source.array};
  std::size_t s = 0;
  std::size_t t = 0;
  while (t < op.dims.size()) {
    if (s >= from.size()) return Fired::none;
    const std::size_t first = t;
    Poly of_source = from[s++];
    Poly of_result = to[t++];
    if (of_source == of_result) {
      result.dims.push_back(op.dims[first]);
      continue;
    }
    const std::size_t s0 = s - 1;
    while (t < to.size() && !(of_source == of_result)) of_result *= to[t++];
    if (of_source == of_result) {  // split: op.dims[first, t) of one dim
      if (t > op.dims.size() ||
          !all_fixed({op.dims.begin() + static_cast<std::ptrdiff_t>(first), op.dims.end()}, t - 1 - first)) {
        return Fired::none;
      }
      DimIndex dim = op.dims[t - 1];
      Poly stride = to[t - 1];
      for (std::size_t k = t - 1; k-- > first;) {
        dim.start += op.dims[k].start * stride;
        stride *= to[k];
      }
      result.dims.push_back(std::move(dim));
      continue;
    }
    t = first + 1;
    of_result = to[first];
    while (s < from.size() && !(of_source == of_result)) of_source *= from[s++];
    if (!(of_source == of_result) || op.dims[first].is_slice()) return Fired::none;
    // Joined: the position is taken apart where it says itself which digit is which.
    Poly rest = op.dims[first].start;
    Poly stride = of_source;
    for (std::size_t k = s0; k < s; ++k) {
      const std::optional<Poly> inner = stride.divide_exact(from[k]);
      if (!inner) return Fired::none;
      stride = *inner;
      const Poly::Division division = rest.divide(stride);
      if (!non_negative(division.remainder) || !less(division.remainder, stride)) return Fired::none;
      if (!non_negative(division.quotient) || !less(division.quotient, from[k])) return Fired::none;
      result.dims.push_back(DimIndex::fix(division.quotient));
      rest = division.remainder;
    }
  }
  // Dims that were not named must be the same before and after.
  if (!std::equal(from.begin() + static_cast<std::ptrdiff_t>(s), from.end(),
                  to.begin() + static_cast<std::ptrdiff_t>(t), to.end())) {
    return Fired::none;
  }
  stm.op = std::move(result);
  return Fired::again;
}

Fired Simplifier::index_of_replicate(Stm& stm, const Index& op, const Replicate& source) {
  if (consumption_.consumed(op.array)) return Fired::none;
  std::vector<Poly> shape;
  for (std::size_t k = 0; k < source.shape.size(); ++k) {
    if (k >= op.dims.size())
      shape.push_back(source.shape[k]);
    else if (op.dims[k].is_slice())
      shape.push_back(*op.dims[k].count);
  }
  Operand value = source.value;
  if (op.dims.size() > source.shape.size()) {
    std::vector<DimIndex> dims(op.dims.begin() + static_cast<std::ptrdiff_t>(source.shape.size()), op.dims.end());
    value = emit(stm, name_of(stm), Index{value.value(), std::move(dims)});
  }
  if (shape.empty()) return use(stm, value);
  stm.op = Replicate{std::move(shape), value};
  return Fired::again;
}

Fired Simplifier::index_of_iota(Stm& stm, const Index& op, const Iota& source) {
  if (consumption_.consumed(op.array) || !all_fixed(op.dims, 1)) return Fired::none;
  Out computed;
  const std::optional<Operand> element = iota_element(source, op.dims[0].start, stm.location, computed);
  if (!element) return Fired::none;
  for (Stm& made : computed) statement(std::move(made));
  return use(stm, rewrite(*element));
}

std::optional<Operand> Simplifier::iota_element(const Iota& iota, const Poly& index, Location location, Out& out) {
  if (!is_integer(iota.element)) return std::nullopt;
  const auto let = [&](std::string name, ScalarType type, Op op) {
    const Value value = values().add(Type::scalar(type), std::move(name));
    out.push_back({.pattern = {value}, .op = std::move(op), .location = location});
    return Operand(value);
  };
  if (iota.element == ScalarType::i64) {
    const Poly element = as_poly(iota.start) + as_poly(iota.stride) * index;
    if (const std::optional<Operand> known = as_operand(element)) return *known;
    return let("i", ScalarType::i64, SizeExpr{element});
  }
  const std::optional<Operand> known = as_operand(index);
  Operand element = known ? *known : let("i", ScalarType::i64, SizeExpr{index});
  element = let("i", iota.element, Convert{iota.element, element});
  element = let("i", iota.element, Binary{BinaryOp::mul, element, iota.stride});
  return let("i", iota.element, Binary{BinaryOp::add, element, iota.start});
}

}  // namespace apl
