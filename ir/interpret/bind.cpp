// Binding names to arrays: fresh ones, views, and at the memory stage the memory that the type names.
#include <fmt/format.h>

#include <cstdint>
#include <optional>

#include "ir/interpret/machine.h"

namespace apl::interpreter {

Array Machine::bound(Value v) {
  const Type& t = type(v);
  const MemoryBinding& binding = *t.memory;
  const Array& block = frame_->arrays[binding.block.id];
  if (!block.storage) fail(Code::bug_internal, fmt::format("the block of `{}` does not exist.", name(v)));
  Array array{block.storage, t.element, integer(binding.layout.offset()), {}};
  for (const LmadDim& dim : binding.layout.dims()) {
    const Dim d{integer(dim.size), integer(dim.stride)};
    if (d.size < 0) fail(Code::run_negative_size, fmt::format("`{}` of size {}.", name(v), d.size));
    array.dims.push_back(d);
  }
  const std::int64_t width = byte_size(t.element);
  const std::int64_t bytes = block.storage->per_thread() ? block.storage->bytes_per_thread()
                                                         : static_cast<std::int64_t>(block.storage->bytes.size());
  const std::optional<Reach> reach = reach_of(array);
  const bool fits = reach && reach->first >= 0 && reach->last < (width == 0 ? INT64_MAX : bytes / width);
  if (!array.empty() && !fits)
    fail(Code::bug_internal,
         fmt::format("the layout of `{}` leaves its block `{}` of {} bytes.", name(v), name(binding.block), bytes));
  return array;
}

Array Machine::destination(Value v, Fill fill) {
  const Type& t = type(v);
  if (!t.memory) {
    const std::vector<std::int64_t> shape = sizes(t.shape, "an array");
    tick(count_of(shape));  // a body that makes many elements takes as long as many bodies
    Array array = memory_.make_array(t.element, shape, fill);
    count_allocated(array.count());
    return array;
  }
  Array array = bound(v);
  check_shape(v, array);
  if (fill == Fill::undefined) memory_.undefine(array);
  return array;
}

void Machine::check_shape(Value v, const Array& array) {
  const Type& t = type(v);
  bool agrees = t.shape.size() == array.dims.size();
  for (std::size_t k = 0; agrees && k < t.shape.size(); ++k) agrees = integer(t.shape[k]) == array.dims[k].size;
  if (agrees) return;
  std::vector<std::int64_t> declared;
  for (const Poly& size : t.shape) declared.push_back(integer(size));
  fail(Code::run_shape_mismatch, fmt::format("`{}` should have shape {}, but it has shape {}.", name(v),
                                             shape_text(declared), shape_text(shape_of(array))));
}

void Machine::alias(Value v, Array array) {
  check_shape(v, array);
  if (type(v).memory) {
    const std::size_t private_rank = array.private_rank;
    array = bound(v);
    array.private_rank = private_rank;
    check_shape(v, array);
  }
  assign(v, std::move(array));
}

void Machine::bind(Value v, Datum datum) {
  if (datum.is_scalar) return set(v, datum.scalar);
  if (type(v).is_memory()) return assign(v, std::move(datum.array));
  alias(v, std::move(datum.array));
}

Array Machine::owned(Array array) {
  if (array.storage.use_count() == 1) return array;
  return memory_.compact(array);
}

void Machine::copy_into(const Array& from, const Array& to) {
  bool agrees = from.rank() == to.rank();
  for (std::size_t k = 0; agrees && k < from.rank(); ++k) agrees = from.dims[k].size == to.dims[k].size;
  if (!agrees)
    fail(Code::run_shape_mismatch, fmt::format("an array of shape {} is written where shape {} belongs.",
                                               shape_text(shape_of(from)), shape_text(shape_of(to))));
  count_copy(from, to);
  memory_.copy(from, to);
}

void Machine::write_row(const Array& to, std::size_t outer, std::int64_t position, const Operand& value) {
  if (value.is_constant() || is_scalar(value.value())) {
    count_written(1);
    return memory_.store(to, position, scalar(value));
  }
  copy_into(readable(value.value()), row_at(to, outer, position));
}

}  // namespace apl::interpreter
