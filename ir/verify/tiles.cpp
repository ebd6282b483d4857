// The rules of shared arrays, tile copies and tile contractions.
#include <fmt/format.h>

#include <algorithm>

#include "ir/verify/check.h"

namespace apl::verifier {

void check_op(Check& check, const Stm& stm, const SharedArray& op) {
  if (op.layout.rank() == 0) check.broken(stm, "a shared array without dims");
  check_size(check, stm, op.layout.offset());
  for (const LmadDim& dim : op.layout.dims()) {
    check_size(check, stm, dim.size);
    check_size(check, stm, dim.stride);
  }
}

namespace {

// From an element of each array that is read to one of the tile.
void check_tile_map(Check& check, const Stm& stm, const CopyTile& op) {
  if (!op.map) {
    if (!op.also.empty()) check.broken(stm, "more than an element is read, and there is no map of them");
    return;
  }
  if (!op.where.empty()) check.broken(stm, "a tile is mapped that is read under conditions");
  const Lambda& map = *op.map;
  if (map.params.size() != 1 + op.also.size() || map.body->results.size() != 1)
    return check.broken(stm, fmt::format("the map of a tile has {} parameters and {} results for {} elements",
                                         map.params.size(), map.body->results.size(), 1 + op.also.size()));
  for (std::size_t k = 0; k < map.params.size(); ++k) {
    const std::optional<Value> array = k == 0 ? op.source : op.also[k - 1].array;
    if (array && !check.type(*array).is_array()) return check.broken(stm, "a tile is made of what is no array");
    const ScalarType element = array ? check.type(*array).element : ScalarType::i64;
    if (!check.type(map.params[k]).same(Type::scalar(element)))
      check.broken(stm, fmt::format("{} of type {} gets elements of another one", check.name(map.params[k]),
                                    check.text(check.type(map.params[k]))));
  }
  if (const Type made = check.type(map.body->results[0]); !made.same(Type::scalar(check.type(op.target).element)))
    check.broken(stm, fmt::format("the map of a tile gives a value of type {}, no element of {}", check.text(made),
                                  check.name(op.target)));
}

}  // namespace

void check_op(Check& check, const Stm& stm, const CopyTile& op) {
  const Type& target = check.type(op.target);
  const Type& source = check.type(op.source);
  if (!target.is_array() || !source.is_array() || (!op.map && target.element != source.element))
    return check.broken(stm, fmt::format("a tile of {} of type {} is copied to {} of type {}", check.name(op.source),
                                         check.text(source), check.name(op.target), check.text(target)));
  if (!check.type(op.pad).same(Type::scalar(target.element)))
    check.broken(stm, fmt::format("the pad {} of type {} is no element of {}", check.text(op.pad),
                                  check.text(check.type(op.pad)), check.name(op.target)));
  check_size(check, stm, op.window.offset());
  for (const LmadDim& dim : op.window.dims()) {
    check_size(check, stm, dim.size);
    check_size(check, stm, dim.stride);
  }
  for (const TileGuard& guard : op.guards) {
    check_size(check, stm, guard.start);
    if (guard.bound) check_size(check, stm, *guard.bound);
    for (const TileGuard::Part& part : guard.split)
      check_size(check, stm, part.bound), check_size(check, stm, part.stride);
  }
  const auto check_affine = [&](const TileAffine& at, std::string_view what) {
    check_size(check, stm, at.start);
    bool fits = at.strides.size() == op.guards.size();
    for (std::size_t k = 0; k < at.strides.size(); ++k) {
      for (const Poly& stride : at.strides[k]) check_size(check, stm, stride);
      fits = fits && at.strides[k].size() == std::max<std::size_t>(1, op.guards[k].split.size());
    }
    if (!fits) check.broken(stm, fmt::format("{} does not go along the dims of the window", what));
  };
  for (const TileCondition& condition : op.where) {
    check_affine(condition.at, "a condition");
    if (condition.bound) check_size(check, stm, *condition.bound);
  }
  for (const TileRead& read : op.also) check_affine(read.at, "an index of what is read also");
  check_tile_map(check, stm, op);
  for (const TileGather& gather : op.gathers) {
    check_affine(gather.at, fmt::format("the index of {}", check.name(gather.positions)));
    check_size(check, stm, gather.stride);
    const Type& positions = check.type(gather.positions);
    if (!positions.is_array() || !is_integer(positions.element))
      check.broken(stm, fmt::format("{} of type {} is no array of positions", check.name(gather.positions),
                                    check.text(positions)));
  }
  if (op.window.rank() != target.rank() || op.guards.size() != target.rank())
    return check.broken(stm, fmt::format("a window of rank {} with {} guards for {} of rank {}", op.window.rank(),
                                         op.guards.size(), check.name(op.target), target.rank()));
  for (std::size_t k = 0; k < target.rank(); ++k)
    if (!op.guards[k].split.empty() && !op.window.dims()[k].stride.is_zero())
      check.broken(stm, fmt::format("dim {} of the window is split, but has stride {}", k + 1,
                                    check.text(op.window.dims()[k].stride)));
  for (std::size_t k = 0; k < target.rank(); ++k)
    if (!check.may_be_equal(op.window.dims()[k].size, target.shape[k]))
      check.broken(
          stm, fmt::format("dim {} of the window has {} elements, of {} {}", k + 1,
                           check.text(op.window.dims()[k].size), check.name(op.target), check.text(target.shape[k])));
}

namespace {

// Axes exist, the tile has one size an axis, and it reaches as far as it is read.
void check_tile(Check& check, const Stm& stm, const TileContract& op, const TileOperand& operand) {
  const Type& tile = check.type(operand.tile);
  if (!tile.is_array() || tile.rank() != operand.axes.size())
    return check.broken(stm, fmt::format("tile {} of type {} has {} axes", check.name(operand.tile), check.text(tile),
                                         operand.axes.size()));
  for (std::size_t axis = 0; axis < operand.axes.size(); ++axis) {
    const int dim = operand.axes[axis];
    if (dim < 0 || static_cast<std::size_t>(dim) >= op.space.size() + op.depth.size()) {
      check.broken(stm, fmt::format("axis {} of tile {} is dim {}, which does not exist", axis + 1,
                                    check.name(operand.tile), dim));
      continue;
    }
    const auto d = static_cast<std::size_t>(dim);
    const Poly reach = d < op.space.size() ? op.space[d].tile * op.space[d].reg : op.depth[d - op.space.size()];
    if (prove_less(tile.shape[axis], reach) == Proof::yes)
      check.broken(stm, fmt::format("axis {} of tile {} has {} elements, but {} are read", axis + 1,
                                    check.name(operand.tile), check.text(tile.shape[axis]), check.text(reach)));
  }
}

}  // namespace

void check_op(Check& check, const Stm& stm, const TileContract& op) {
  std::vector<Poly> shape;
  for (const TileDim& dim : op.space) shape.push_back(dim.tile);
  for (const TileDim& dim : op.space) shape.push_back(dim.reg);
  for (const Poly& size : shape) check_size(check, stm, size);
  for (const Poly& size : op.depth) check_size(check, stm, size);
  for (const TileOperand& operand : op.operands) check_tile(check, stm, op, operand);
  check_reduce(check, stm, op.reduce);
  if (op.accumulators.size() != op.reduce.neutral.size() || op.map.body->results.size() != op.reduce.neutral.size())
    return check.broken(
        stm, fmt::format("{} accumulators and {} mapped values for a reduction over {}", op.accumulators.size(),
                         op.map.body->results.size(), op.reduce.neutral.size()));
  check_reduced(check, stm, op.map, {&op.reduce});
  for (std::size_t k = 0; k < op.accumulators.size(); ++k) {
    const Type wanted = check.type(op.reduce.neutral[k]).array_of(shape);
    const Type& type = check.type(op.accumulators[k]);
    if (!check.type(op.reduce.neutral[k]).is_scalar() || !check.compatible(type, wanted))
      check.broken(stm, fmt::format("accumulator {} of type {} should be of type {}", check.name(op.accumulators[k]),
                                    check.text(type), check.text(wanted)));
  }
  if (op.map.params.size() != op.operands.size())
    return check.broken(
        stm, fmt::format("the map function has {} parameters for {} tiles", op.map.params.size(), op.operands.size()));
  for (std::size_t k = 0; k < op.operands.size(); ++k)
    if (!check.type(op.map.params[k]).same(Type::scalar(check.type(op.operands[k].tile).element)))
      check.broken(stm, fmt::format("{} gets elements of tile {}", check.name(op.map.params[k]),
                                    check.name(op.operands[k].tile)));
}

}  // namespace apl::verifier
