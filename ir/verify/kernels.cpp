// The rules of segmaps.
#include <fmt/format.h>

#include <concepts>
#include <set>

#include "ir/fields.h"
#include "ir/schedule.h"
#include "ir/sparse_schedule.h"
#include "ir/team.h"
#include "ir/verify/check.h"
#include "ir/walk.h"

namespace apl::verifier {
namespace {

// A register tile: one extent a space dim, of a value of shape T_1..T_n R_1..R_n.
void check_regtile(Check& check, const Stm& stm, const SegOp& op, std::size_t k) {
  const std::vector<TileExtent>& extents = op.results[k].extents;
  if (op.level != SegLevel::block)
    check.broken(stm, fmt::format("result {} is a register tile, but not of a block", k + 1));
  if (extents.size() != op.space.size())
    return check.broken(stm,
                        fmt::format("result {} has {} extents for {} dims", k + 1, extents.size(), op.space.size()));
  const Type value = check.type(op.body->results[k]);
  std::vector<Poly> shape;
  for (const TileExtent& extent : extents) shape.push_back(extent.tile);
  for (const TileExtent& extent : extents) shape.push_back(extent.reg);
  // Split extents name each dim of the result once.
  std::size_t parts = 0;
  for (const TileExtent& extent : extents) parts += extent.split.size();
  std::vector<bool> named(parts);
  for (const TileExtent& extent : extents) {
    if (parts > 0 && extent.split.empty()) check.broken(stm, fmt::format("result {} is split in part", k + 1));
    for (const TileExtent::Part& part : extent.split) {
      check_size(check, stm, part.bound);
      const auto axis = static_cast<std::size_t>(part.axis);
      if (part.axis < 0 || axis >= parts || named[axis])
        return check.broken(stm, fmt::format("result {} has no dim {} to split, or has it twice", k + 1, part.axis));
      named[axis] = true;
    }
    Poly product = 1;
    for (const TileExtent::Part& part : extent.split) product *= part.bound;
    if (!extent.split.empty() && !check.may_be_equal(extent.bound, product))
      check.broken(stm, fmt::format("result {} is split into {} elements, not {}", k + 1, check.text(product),
                                    check.text(extent.bound)));
  }
  for (const TileExtent& extent : extents)
    for (const Poly* size : {&extent.bound, &extent.tile, &extent.reg}) check_size(check, stm, *size);
  const Type wanted = Type::array(value.element, shape);
  if (value.is_memory() || !check.compatible(value, wanted) || extents.empty())
    check.broken(stm, fmt::format("result {} of type {} should be a register tile of type {}", k + 1, check.text(value),
                                  check.text(wanted)));
}

}  // namespace

void check_op(Check& check, const Stm& stm, const SegOp& op) {
  for (const SegDim& dim : op.space) {
    check_size(check, stm, dim.bound);
    if (!check.type(dim.index).same(Type::scalar(ScalarType::i64)))
      check.broken(stm,
                   fmt::format("the index {} has type {}", check.name(dim.index), check.text(check.type(dim.index))));
  }
  if (op.results.size() != op.body->results.size())
    return check.broken(stm, fmt::format("it says for {} results what becomes of them, but its body gives {}",
                                         op.results.size(), op.body->results.size()));
  for (std::size_t k = 0; k < op.results.size(); ++k) {
    if (check.type(op.body->results[k]).is_memory()) check.broken(stm, fmt::format("result {} is memory", k + 1));
    if (op.results[k].kind == KernelResult::Kind::regtile) {
      check_regtile(check, stm, op, k);
      continue;
    }
    if (!op.results[k].extents.empty())
      check.broken(stm, fmt::format("result {} has extents, but is no register tile", k + 1));
    if (op.results[k].kind == KernelResult::Kind::private_ && (op.level != SegLevel::inblock || op.space.empty()))
      check.broken(stm, fmt::format("result {} is private, but there are no threads of a block", k + 1));
  }
  const auto check_sizes = [&](const auto& field) {
    if constexpr (std::same_as<std::remove_cvref_t<decltype(field)>, Poly>) check_size(check, stm, field);
  };
  if (op.schedule) for_each_leaf(*op.schedule, check_sizes);
  if (op.sparse) for_each_leaf(*op.sparse, check_sizes);
  if (op.team) check_size(check, stm, *op.team);
  if (op.blocks) check_size(check, stm, *op.blocks);
  if (op.blocks && !op.team) check.broken(stm, "blocks share its indices, but it has no team");
}

void check_schedule(Check& check, const Stm& stm) {
  const SegOp* op = get_if<SegOp>(stm);
  if (op != nullptr && op->team)
    if (const auto fault = team_fault(*op, check.values()))
      return check.broken(stm, fmt::format("it cannot have a team: {}", *fault));
  if (op != nullptr && op->sparse)
    if (const auto fault = sparse_schedule_fault(stm, check.function, Layouts(check.function)))
      return check.broken(stm, fmt::format("its sparse schedule does not hold: {}", *fault));
  if (op == nullptr || !op->schedule) return;
  if (const auto fault = schedule_fault(stm, check.values()))
    return check.broken(stm, fmt::format("its schedule does not hold: {}", *fault));
  std::set<Value> parameters;
  for_each_stm(*check.function.body, [&](const Stm& made) {
    if (get_if<GetSize>(made)) parameters.insert(made.pattern.front());
  });
  for (const Schedule::Dim& dim : op->schedule->dims)
    for (const Value number : {parameter_of(dim.tile), parameter_of(dim.reg)})
      if (number && !parameters.contains(number))
        check.broken(stm, fmt::format("its schedule does not hold: {} is no tuning parameter", check.name(number)));
}

}  // namespace apl::verifier
