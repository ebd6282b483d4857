// Shared arrays and collective copies into them.
#include <fmt/format.h>

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

  const Scalar pad = scalar(op.pad);
  const std::int64_t first = integer(op.window.offset());
  const std::int64_t source_count = source.count();
  const std::vector<std::int64_t> source_shape = shape_of(source);
  const bool flat_source = source.row_major();
  const std::int64_t total = count_of(shape);
  const ParallelScope scope(memory_);
  const IndexOrder order(total, random_);
  std::vector<std::int64_t> at;
  std::vector<std::int64_t> from;
  for (std::int64_t k = 0; k < total; ++k) {
    memory_.begin_index();
    unflatten(order[k], shape, at);
    bool guarded_in = true;
    std::int64_t point = first;
    std::int64_t position = target.offset;
    for (std::size_t d = 0; d < axes.size(); ++d) {
      guarded_in = guarded_in && (!axes[d].bound || axes[d].start + at[d] < *axes[d].bound);
      point += at[d] * axes[d].window.stride;
      std::int64_t rest = axes[d].start + at[d];
      for (std::size_t p = axes[d].split.size(); guarded_in && p-- > 0;) {
        const Dim& part = axes[d].split[p];
        const bool outermost = p == 0;
        point += (outermost ? rest : rest % part.size) * part.stride;
        rest = outermost ? 0 : rest / part.size;
      }
      position += at[d] * target.dims[d].stride;
    }
    if (!guarded_in) {
      memory_.store(target, position, pad);
      continue;
    }
    if (point < 0 || point >= source_count)
      fail(Code::bug_internal, fmt::format("Unchecked index [{}] out of bounds for the {} elements of `{}`.", point,
                                           source_count, name(op.source)));
    std::int64_t source_position = source.offset + point;
    if (!flat_source) {
      source_position = source.offset;
      unflatten(point, source_shape, from);
      for (std::size_t d = 0; d < from.size(); ++d) source_position += from[d] * source.dims[d].stride;
    }
    memory_.store(target, position, element(op.source, source, source_position));
  }
  assign(stm.pattern.front(), std::move(target));
}

}  // namespace apl::interpreter
