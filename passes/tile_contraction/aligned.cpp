// Operands that kernels before bring into the rows that matrix units of 8 and 16 bits are fed from:
//
//   X_a : [batch][free..][depth..] = X, with zeros behind the innermost depth up to whole vectors of 16 bytes
//
// Tiles are copied in pieces of 16 bytes where these begin at multiples of 16 bytes: rows of 4097 elements do nowhere,
// and elements that go through registers took six times as long on an H100. And where several dims are summed that do
// not lie together, steps are those of the innermost of them, of which the last is mostly pad: of 72 a quarter of the
// products is wasted; here they are one (merge.cpp). What the copies cost is the model's to say
// (machine/tiles/variant.c).
#include <algorithm>

#include <range/v3/view/zip.hpp>

#include "passes/analysis/contraction_facts.h"
#include "passes/tile_contraction/tile.h"

namespace apl::tile {
namespace {

constexpr int kVectorBytes = 16;

// The dims of an operand, those of the reduction last.
std::vector<int> rows_then_depth(const Contraction& contraction, const ContractionOperand& operand) {
  std::vector<int> axes;
  for (std::size_t d = 0; d < contraction.dims.size(); ++d)
    if (operand.varies(d)) axes.push_back(static_cast<int>(d));
  return axes;
}

std::vector<Poly> sizes_of(const std::vector<int>& axes, const std::vector<ContractionDim>& dims) {
  std::vector<Poly> sizes;
  for (int axis : axes) sizes.push_back(dims[static_cast<std::size_t>(axis)].size);
  return sizes;
}

// The array in a larger shape, with zeros behind each row.
Value padded_rows(Value rows, const std::vector<Poly>& shape, Builder& host) {
  ValueTable& values = host.values();
  SegOp pad{.level = SegLevel::thread, .space = {}, .body = {}, .results = {{KernelResult::Kind::returns, {}}}};
  std::vector<Poly> at;
  for (const Poly& size : shape) {
    const Value index = values.add(Type::scalar(ScalarType::i64), "i");
    pad.space.push_back({index, size});
    at.emplace_back(index);
  }
  pad.body = host.body([&](Builder& point) {
    const Value length = point.size(values.type(rows).shape.back());
    const Value inside = point.compare(CompareOp::lt, pad.space.back().index, length);
    const Value x = point.if_else(
        "x", inside, [&](Builder& there) { return Operand(there.index(rows, at)); },
        [&](Builder&) { return Operand(Scalar::zero(values.type(rows).element)); });
    return std::vector<Operand>{x};
  });
  return host.let(values.name(rows) + "_a", std::move(pad));
}

}  // namespace

bool may_align(const Contraction& contraction, const Schedule& schedule) {
  if (schedule.unit != Schedule::Unit::matrix || schedule.operands.size() != contraction.operands.size()) return false;
  const std::size_t depths = contraction.dims.size() - contraction.space_rank;
  for (std::size_t o = 0; o < contraction.operands.size(); ++o) {
    const ContractionOperand& operand = contraction.operands[o];
    const auto is_depth_axis = [&](int axis) { return static_cast<std::size_t>(axis) >= contraction.space_rank; };
    if (byte_size(schedule.operands[o].element) > 2 || !may_be_copied(contraction, operand) ||
        static_cast<std::size_t>(std::ranges::count_if(operand.axes, is_depth_axis)) != depths)
      return false;
  }
  const auto groups = merged_dims(order_reductions(contraction));
  const auto is_depth = [&](const auto& group) { return group.front() >= contraction.space_rank; };
  if (std::ranges::count_if(groups, is_depth) > 1) return true;
  const Poly vector(kVectorBytes / byte_size(schedule.operands.front().element));
  return std::ranges::any_of(contraction.operands, [&](const ContractionOperand& operand) {
    return prove_divisible(contraction.dims[static_cast<std::size_t>(operand.axes.back())].size, vector) != Proof::yes;
  });
}

Contraction align_operands(const Contraction& matched, Builder& host) {
  ValueTable& values = host.values();
  const Contraction contraction = order_reductions(matched);
  const Poly vector(kVectorBytes / byte_size(values.type(contraction.operands.front().base).element));
  const Poly length = contraction.dims.back().size;
  const bool is_whole = prove_divisible(length, vector) == Proof::yes;

  Contraction aligned = contraction;
  if (!is_whole) aligned.dims.back().size = ceil_div(length, vector) * vector;
  Value fits;
  if (!is_whole)
    fits = host.compare(CompareOp::eq, host.size(remainder(length, vector)), i64_constant(0), "rows_are_whole");
  for (auto&& [operand, before] : ranges::views::zip(aligned.operands, contraction.operands)) {
    const std::vector<int> axes = rows_then_depth(contraction, before);
    const ContractionOperand& from = before;
    const auto copied = [&](const std::vector<ContractionDim>& over, Builder& out) {
      return copied_in_order(contraction, from, axes, over, out);
    };
    const auto filled_up = [&](Builder& out) {
      const std::vector<Poly> shape = sizes_of(axes, contraction.dims);
      Value rows = from.base;
      if (axes != from.axes || from.offset != Poly(0) || values.type(rows).shape != shape)
        rows = copied(contraction.dims, out);
      return padded_rows(rows, sizes_of(axes, aligned.dims), out);
    };
    const Value base = is_whole ? copied(contraction.dims, host)
                                : host.if_else(
                                      values.name(from.base) + "_a", fits,
                                      [&](Builder& then) { return Operand(copied(aligned.dims, then)); },
                                      [&](Builder& otherwise) { return Operand(filled_up(otherwise)); });
    lies_in_order(operand, base, axes, aligned.dims);
  }
  return aligned;
}

}  // namespace apl::tile
