// Operands that kernels before transpose, so that tiles are copied in the order in which results are written:
//
//   X_t : [batch][outer free..][depth..][inner free..] = X, each in the order of the space and of the reduction
//
// The inner ones are as many as a tile is wide, so that what a block reads lies together: with all of them inside of
// the depth steps are megabytes apart (a short reduction took four times as long, waiting for its pages). The kernel
// behind them is that of a product of two matrices with rows along M and N, whatever the layouts were; its reduction
// dims lie together and become one (merge.cpp). What the copies cost is the model's to say (machine/tiles/variant.c):
// a transposition reads and writes an operand once, where its tiles are copied as often as there are tiles of the other
// one.
//
// Matrix units read operands of 8 bits along the depth alone: such a one becomes [batch][free..][depth..], with the
// dim innermost along which the other operand is contiguous.
#include <algorithm>

#include "passes/tile_contraction/tile.h"

namespace apl::tile {
namespace {

// How the kernel behind reads rows of an operand that lie along the depth.
enum class AlongDepth : std::uint8_t {
  turned,  // the mainloop of the cores, which transposes them while it copies
  asis,    // matrix units of 16 bits
  only,    // matrix units of 8 bits, and no others
};

AlongDepth read_along_depth(const Schedule& schedule) {
  const auto all_of_size = [&](int bytes) {
    return std::ranges::all_of(schedule.operands,
                               [&](const Schedule::Operand& o) { return byte_size(o.element) == bytes; });
  };
  if (schedule.unit != Schedule::Unit::matrix) return AlongDepth::turned;
  return all_of_size(1) ? AlongDepth::only : all_of_size(2) ? AlongDepth::asis : AlongDepth::turned;
}

bool is_depth(const Contraction& contraction, int axis) {
  return static_cast<std::size_t>(axis) >= contraction.space_rank;
}
bool is_free(const Contraction& contraction, int axis) {
  return !is_depth(contraction, axis) && contraction.dims[static_cast<std::size_t>(axis)].dim_class == DimClass::free;
}

// Whether copies of its tiles cannot follow both the operand and the result.
bool wants_transposition(const Contraction& contraction, const ContractionOperand& operand, AlongDepth along_depth) {
  if (!may_be_copied(contraction, operand)) return false;
  const int fast = operand.axes.back();
  const bool is_innermost = static_cast<std::size_t>(fast) == innermost_reduction(contraction);
  if (is_depth(contraction, fast)) return along_depth == AlongDepth::turned || !is_innermost;
  if (along_depth == AlongDepth::only) return true;
  int last_free = 0;
  for (int axis : operand.axes)
    if (is_free(contraction, axis)) last_free = std::max(last_free, axis);
  return fast != last_free;
}

// The dims of an operand in their new order.
std::vector<int> transposed_axes(const Contraction& contraction, const ContractionOperand& operand,
                                 AlongDepth along_depth) {
  constexpr std::int64_t kWide = 128;  // a tile
  std::vector<int> axes, depth, inner;
  for (std::size_t d = 0; d < contraction.dims.size(); ++d) {
    const int axis = static_cast<int>(d);
    if (!operand.varies(d)) continue;
    (d >= contraction.space_rank ? depth : axes).push_back(axis);
  }
  if (along_depth == AlongDepth::only) {
    const auto last = std::ranges::find(depth, static_cast<int>(innermost_reduction(contraction)));
    if (last != depth.end()) std::rotate(last, last + 1, depth.end());
    axes.insert(axes.end(), depth.begin(), depth.end());
    return axes;
  }
  const auto size = [&](int axis) { return contraction.dims[static_cast<std::size_t>(axis)].size.constant(); };
  std::int64_t width = 1;
  while (!axes.empty() && contraction.dims[static_cast<std::size_t>(axes.back())].dim_class == DimClass::free &&
         width < kWide) {
    // Neighbours in the results, whose sizes are known.
    if (!inner.empty() && axes.back() + 1 != inner.front()) break;
    inner.insert(inner.begin(), axes.back());
    axes.pop_back();
    width *= size(inner.front()).value_or(kWide);
  }
  axes.insert(axes.end(), depth.begin(), depth.end());
  axes.insert(axes.end(), inner.begin(), inner.end());
  return axes;
}

}  // namespace

bool may_be_copied(const Contraction& contraction, const ContractionOperand& operand) {
  return !operand.index && operand.exact && operand.is_plain() && operand.axes.size() >= 2 &&
         std::ranges::any_of(operand.axes, [&](int axis) { return is_depth(contraction, axis); }) &&
         std::ranges::any_of(operand.axes, [&](int axis) { return is_free(contraction, axis); });
}

std::vector<std::size_t> operands_to_transpose(const Contraction& contraction, const Schedule& schedule) {
  std::vector<std::size_t> all;
  for (std::size_t o = 0; o < contraction.operands.size(); ++o)
    if (wants_transposition(contraction, contraction.operands[o], read_along_depth(schedule))) all.push_back(o);
  return all;
}

bool reads_scattered(const Contraction& contraction) {
  return std::ranges::any_of(contraction.operands, [&](const ContractionOperand& operand) {
    return wants_transposition(contraction, operand, AlongDepth::asis);
  });
}

Value copied_in_order(const Contraction& contraction, const ContractionOperand& operand, const std::vector<int>& axes,
                      const std::vector<ContractionDim>& over, Builder& host) {
  ValueTable& values = host.values();
  std::vector<Poly> before;
  for (int axis : operand.axes) before.push_back(contraction.dims[static_cast<std::size_t>(axis)].size);
  const Type type = values.type(operand.base);
  Value base = operand.base;
  // A part of an array is read by positions.
  const bool is_part = operand.offset != Poly(0) || product(type.shape) != product(before);
  if (is_part && type.rank() != 1) base = host.let(values.name(base), Reshape{base, {product(type.shape)}});
  if (!is_part && type.shape != before) base = host.let(values.name(base), Reshape{base, before});
  SegOp copy{.level = SegLevel::thread, .space = {}, .body = {}, .results = {{KernelResult::Kind::returns, {}}}};
  std::vector<Poly> at(axes.size());
  Poly position = operand.offset;
  for (int axis : axes) {
    const ContractionDim& dim = over[static_cast<std::size_t>(axis)];
    const Value index = values.add(Type::scalar(ScalarType::i64), dim.name);
    copy.space.push_back({index, dim.size});
    at[static_cast<std::size_t>(std::ranges::find(operand.axes, axis) - operand.axes.begin())] = Poly(index);
    position += operand.strides[static_cast<std::size_t>(axis)] * Poly(index);
  }
  if (is_part) at = {position};
  copy.body = host.body(
      [&](Builder& point) { return std::vector<Operand>{point.index(base, at, values.name(operand.element))}; });
  return host.let(values.name(operand.base) + "_t", std::move(copy));
}

void lies_in_order(ContractionOperand& operand, Value base, const std::vector<int>& axes,
                   const std::vector<ContractionDim>& dims) {
  std::vector<Poly> sizes;
  for (int axis : axes) sizes.push_back(dims[static_cast<std::size_t>(axis)].size);
  const std::vector<Poly> strides = Lmad::row_major(sizes).strides();
  operand.base = base;
  operand.axes = axes;
  operand.offset = Poly(0);
  operand.strides.assign(dims.size(), Poly(0));
  for (std::size_t k = 0; k < axes.size(); ++k) operand.strides[static_cast<std::size_t>(axes[k])] = strides[k];
}

Contraction transpose_operands(const Contraction& contraction, const std::vector<std::size_t>& which,
                               const Schedule& schedule, Builder& host) {
  Contraction changed = contraction;
  for (std::size_t o : which) {
    const ContractionOperand& operand = contraction.operands[o];
    const std::vector<int> axes = transposed_axes(contraction, operand, read_along_depth(schedule));
    lies_in_order(changed.operands[o], copied_in_order(contraction, operand, axes, contraction.dims, host), axes,
                  contraction.dims);
  }
  return changed;
}

}  // namespace apl::tile
