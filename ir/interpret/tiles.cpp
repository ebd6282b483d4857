// Shared arrays and collective copies into them.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "ir/interpret/machine.h"

namespace apl::interpreter {

// Laid out as declared, so that a layout in which elements overlap shows in the results.
void Machine::exec(const Stm& stm, const SharedArray& op) {
  Value v = stm.pattern.front();
  if (type(v).memory) return assign(v, destination(v, Fill::undefined));
  Array array;
  array.element = op.element;
  array.offset = integer(op.layout.offset());
  std::vector<std::int64_t> shape;
  for (const LmadDim& dim : op.layout.dims()) {
    shape.push_back(sizes({dim.size}, "a shared array").front());
    array.dims.push_back({shape.back(), integer(dim.stride)});
  }
  std::int64_t elements = 0;
  if (count_of(shape) != 0) {
    const std::optional<Reach> reach = reach_of(array);
    if (!reach || reach->first < 0)
      fail(Code::bug_internal, fmt::format("the layout of `{}` starts before its memory.", name(v)));
    elements = reach->last + 1;
  }
  // As an array of that many elements: too many are refused there.
  array.storage = memory_.make_array(op.element, {elements}, Fill::undefined).storage;
  alias(v, std::move(array));
}

void Machine::exec(const Stm& stm, const CopyTile& op) {
  readable(op.target);
  const Array source = readable(op.source);
  Array target = consume(op.target);
  target = type(stm.pattern.front()).memory ? bound(stm.pattern.front()) : owned(std::move(target));

  struct Axis {
    Dim window;
    std::int64_t start = 0;
    std::optional<std::int64_t> bound;
    std::vector<Dim> split;  // outermost first
  };
  std::vector<Axis> axes;
  std::vector<std::int64_t> shape;
  for (std::size_t k = 0; k < op.window.rank(); ++k) {
    const LmadDim& dim = op.window.dims()[k];
    const TileGuard& guard = op.guards[k];
    Axis axis{{integer(dim.size), integer(dim.stride)}, integer(guard.start), {}, {}};
    if (guard.bound) axis.bound = integer(*guard.bound);
    for (const TileGuard::Part& part : guard.split) axis.split.push_back({integer(part.bound), integer(part.stride)});
    if (axis.window.size != target.dims[k].size)
      fail(Code::run_shape_mismatch, fmt::format("dim {} of the window has {} elements, but dim {} of `{}` has {}.",
                                                 k + 1, axis.window.size, k + 1, name(op.target), target.dims[k].size));
    axes.push_back(axis);
    shape.push_back(axis.window.size);
  }

  // Strides of conditions and gathers along each axis, or along each part of one that is split.
  struct Affine {
    std::int64_t start = 0;
    std::vector<std::vector<std::int64_t>> strides;
  };
  const auto affine = [&](const TileAffine& at) {
    Affine made{integer(at.start), {}};
    for (const std::vector<Poly>& strides : at.strides) {
      made.strides.emplace_back();
      for (const Poly& stride : strides) made.strides.back().push_back(integer(stride));
    }
    return made;
  };
  struct Condition {
    Affine at;
    std::optional<std::int64_t> bound;
  };
  std::vector<Condition> where;
  for (const TileCondition& condition : op.where) {
    where.push_back({affine(condition.at), {}});
    if (condition.bound) where.back().bound = integer(*condition.bound);
  }
  struct Gather {
    Value from;
    Array positions;
    Affine at;
    std::int64_t stride;
  };
  std::vector<Gather> gathers;
  for (const TileGather& gather : op.gathers)
    gathers.push_back({gather.positions, readable(gather.positions), affine(gather.at), integer(gather.stride)});

  struct Read {
    std::optional<Array> array;
    Affine at;
  };
  std::vector<Read> also;
  for (const TileRead& read : op.also)
    also.push_back({read.array ? std::optional(readable(*read.array)) : std::nullopt, affine(read.at)});
  const BodyLifetimes* const map_lifetimes = op.map ? &lifetimes_of(*op.map->body) : nullptr;

  const Scalar pad = scalar(op.pad);
  const std::int64_t first = integer(op.window.offset());
  const std::int64_t total = count_of(shape);
  const ParallelScope scope(memory_);
  const IndexOrder order(total, random_);
  std::vector<std::int64_t> at;
  std::vector<std::int64_t> from;
  std::vector<std::vector<std::int64_t>> parts(axes.size());  // indices along an axis, or along its parts
  const auto value_of = [&](const Affine& affine) {
    std::int64_t value = affine.start;
    for (std::size_t d = 0; d < parts.size(); ++d)
      for (std::size_t p = 0; p < parts[d].size(); ++p) value += parts[d][p] * affine.strides[d][p];
    return value;
  };
  // Where element `flat` of an array in row-major order lies.
  const auto position_of = [&](const Array& array, Value named, std::int64_t flat) {
    if (const std::int64_t count = array.count(); flat < 0 || flat >= count)
      fail(Code::bug_internal,
           fmt::format("Unchecked index [{}] out of bounds for the {} elements of `{}`.", flat, count, name(named)));
    if (array.row_major()) return array.offset + flat;
    std::int64_t at_element = array.offset;
    unflatten(flat, shape_of(array), from);
    for (std::size_t d = 0; d < from.size(); ++d) at_element += from[d] * array.dims[d].stride;
    return at_element;
  };
  for (std::int64_t k = 0; k < total; ++k) {
    memory_.begin_index();
    count_written(1);
    unflatten(order[k], shape, at);
    bool guarded_in = true;
    std::int64_t point = first;
    std::int64_t position = target.offset;
    for (std::size_t d = 0; d < axes.size(); ++d) {
      guarded_in = guarded_in && (!axes[d].bound || axes[d].start + at[d] < *axes[d].bound);
      point += at[d] * axes[d].window.stride;
      parts[d].assign(std::max<std::size_t>(1, axes[d].split.size()), at[d]);
      std::int64_t rest = axes[d].start + at[d];
      for (std::size_t p = axes[d].split.size(); guarded_in && p-- > 0;) {
        const Dim& part = axes[d].split[p];
        const bool outermost = p == 0;
        parts[d][p] = outermost ? rest : rest % part.size;
        point += parts[d][p] * part.stride;
        rest = outermost ? 0 : rest / part.size;
      }
      position += at[d] * target.dims[d].stride;
    }
    for (const Condition& condition : where) {
      if (!guarded_in) break;
      const std::int64_t value = value_of(condition.at);
      guarded_in = value >= 0 && (!condition.bound || value < *condition.bound);
    }
    if (!guarded_in) {
      memory_.store(target, position, pad);
      continue;
    }
    for (const Gather& gather : gathers) {
      const std::int64_t there = position_of(gather.positions, gather.from, value_of(gather.at));
      point += gather.stride * element(gather.from, gather.positions, there).as_int();
    }
    Scalar made = element(op.source, source, position_of(source, op.source, point));
    if (op.map) {
      set(op.map->params[0], made);
      for (std::size_t r = 0; r < also.size(); ++r) {
        const std::int64_t there = value_of(also[r].at);
        Scalar further = Scalar::integer(ScalarType::i64, there);
        if (const std::optional<Value>& array = op.also[r].array)
          further = element(*array, *also[r].array, position_of(*also[r].array, *array, there));
        set(op.map->params[1 + r], further);
      }
      run(*op.map->body, *map_lifetimes);
      made = scalar(op.map->body->results[0]);
    }
    memory_.store(target, position, made);
  }
  assign(stm.pattern.front(), std::move(target));
}

}  // namespace apl::interpreter
