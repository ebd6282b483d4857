// Reading and replacing elements and slices.
#include <fmt/format.h>

#include "ir/interpret/machine.h"

namespace apl::interpreter {
namespace {

struct Range {
  std::int64_t start = 0;
  std::int64_t count = 1;
  std::int64_t stride = 1;
  bool is_slice = false;
};

bool inside(const Range& range, std::int64_t size) {
  if (!range.is_slice) return range.start >= 0 && range.start < size;
  if (range.count < 0) return false;
  if (range.count == 0) return true;
  if (range.start < 0 || range.start >= size) return false;
  std::int64_t length = 0;
  if (__builtin_mul_overflow(range.count - 1, range.stride, &length)) return false;
  return length <= size - 1 - range.start && length >= -range.start;
}

std::string text(const Range& range) {
  if (!range.is_slice) return fmt::format("{}", range.start);
  // Unsigned: this text is for numbers that are wrong.
  const auto end =
      static_cast<std::int64_t>(static_cast<std::uint64_t>(range.start) +
                                static_cast<std::uint64_t>(range.count) * static_cast<std::uint64_t>(range.stride));
  return range.stride == 1 ? fmt::format("{}:{}", range.start, end)
                           : fmt::format("{}:{}:{}", range.start, end, range.stride);
}

[[noreturn]] void out_of_bounds(const std::vector<Range>& ranges, const Array& array, bool checked) {
  std::string at;
  for (const Range& range : ranges) at += (at.empty() ? "" : ", ") + text(range);
  fail(checked ? Code::run_index_out_of_bounds : Code::bug_internal,
       fmt::format("{} [{}] out of bounds for array of shape {}.", checked ? "Index" : "Unchecked index", at,
                   shape_text(shape_of(array))));
}

}  // namespace

// Only the thread that owns it may read a private row.
void Machine::check_private(Value array_name, const Array& array, const std::vector<DimIndex>& dims) {
  bool own = thread_.active && thread_.bounds.size() == array.private_rank && dims.size() >= array.private_rank;
  for (std::size_t k = 0; own && k < array.private_rank; ++k)
    own = !dims[k].is_slice() && thread_.bounds[k] == array.dims[k].size && integer(dims[k].start) == thread_.at[k];
  if (!own)
    fail(Code::run_race,
         fmt::format(
             "`{}` is private to threads: only an inblock segmap over the same space may index it, at its own index.",
             name(array_name)));
}

// The view that the dims select; a full index has no dims left, its element lies at the view's offset.
Array Machine::sliced(Value array_name, const Array& array, const std::vector<DimIndex>& dims, bool checked) {
  Array result{array.storage, array.element, array.offset, {}};
  bool is_inside = true;
  for (std::size_t k = 0; k < dims.size(); ++k) {
    const DimIndex& dim = dims[k];
    const Dim& from = array.dims[k];
    Range range{integer(dim.start)};
    if (dim.is_slice()) range = {range.start, integer(*dim.count), integer(dim.stride), true};
    if (!inside(range, from.size)) {
      is_inside = false;
      break;
    }
    result.offset += range.start * from.stride;
    if (dim.is_slice()) result.dims.push_back({range.count, range.stride * from.stride});
  }
  if (!is_inside) {
    std::vector<Range> ranges;
    for (const DimIndex& dim : dims) {
      Range range{integer(dim.start)};
      if (dim.is_slice()) range = {range.start, integer(*dim.count), integer(dim.stride), true};
      ranges.push_back(range);
    }
    out_of_bounds(ranges, array, checked);
  }
  if (array.private_rank != 0) check_private(array_name, array, dims);
  result.dims.insert(result.dims.end(), array.dims.begin() + static_cast<std::ptrdiff_t>(dims.size()),
                     array.dims.end());
  return result;
}

void Machine::exec(const Stm& stm, const Index& op) {
  const Array& array = any_array(op.array);
  if (is_scalar(stm.pattern.front())) {
    // The common case, without a view.
    std::int64_t position = array.offset;
    bool plain = array.private_rank == 0;
    for (std::size_t k = 0; plain && k < op.dims.size(); ++k) {
      const std::int64_t i = integer(op.dims[k].start);
      plain = i >= 0 && i < array.dims[k].size;
      position += plain ? i * array.dims[k].stride : 0;
    }
    if (!plain) position = sliced(op.array, array, op.dims, op.checked).offset;
    return set(stm.pattern.front(), element(op.array, array, position));
  }
  alias(stm.pattern.front(), sliced(op.array, array, op.dims, op.checked));
}

void Machine::exec(const Stm& stm, const Update& op) {
  readable(op.array);
  Array array = consume(op.array);
  if (type(stm.pattern.front()).memory) {
    array = bound(stm.pattern.front());
  } else {
    array = owned(std::move(array));
  }
  Array part = sliced(op.array, array, op.dims, op.checked);
  write_row(part, 0, part.offset, op.value);
  assign(stm.pattern.front(), std::move(array));
}

}  // namespace apl::interpreter
