#include "ir/interpret/storage.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/interpret/error.h"

namespace apl::interpreter {

void Budget::take(std::uint64_t bytes) {
  if (bytes > kLimit || used_ > kLimit - bytes)
    fail(Code::run_out_of_memory,
         fmt::format("no memory for {} more bytes: {} are in use, and the interpreter takes at most {}.", bytes, used_,
                     kLimit));
  used_ += bytes;
}

Storage::Storage(Budget& budget, std::int64_t size, Fill fill, std::uint64_t born) : birth(born), budget_(budget) {
  const auto n = static_cast<std::size_t>(size);
  const std::uint64_t needed = fill == Fill::undefined ? std::uint64_t{2} * n : n;
  budget_.take(needed);
  bytes.resize(n);
  if (fill == Fill::undefined) defined.resize(n);
}

Storage::~Storage() { budget_.give(bytes.size() + defined.size() + writers.size() * sizeof(std::uint64_t)); }

void Storage::split_per_thread() {
  per_thread_ = true;
  bytes_per_thread_ = static_cast<std::int64_t>(bytes.size());
  track_defined();
}

void Storage::grow_to_thread(std::int64_t thread) {
  const auto needed = static_cast<std::size_t>((thread + 1) * bytes_per_thread_);
  if (needed <= bytes.size()) return;
  budget_.take(2 * (needed - bytes.size()));
  bytes.resize(needed);
  defined.resize(needed);
}

void Storage::track_defined() {
  if (!defined.empty() || bytes.empty()) return;
  budget_.take(bytes.size());
  defined.assign(bytes.size(), 1);
}

void Storage::track_writers(int width) {
  const std::size_t elements = bytes.size() / static_cast<std::size_t>(width);
  if (writers.size() < elements) budget_.take((elements - writers.size()) * sizeof(std::uint64_t));
  if (writers.size() > elements) budget_.give((writers.size() - elements) * sizeof(std::uint64_t));
  writers.assign(elements, 0);
  writer_width = width;
}

bool Array::empty() const {
  return std::any_of(dims.begin(), dims.end(), [](const Dim& dim) { return dim.size == 0; });
}

std::int64_t Array::count() const {
  if (empty()) return 0;
  std::int64_t n = 1;
  for (const Dim& dim : dims) n *= dim.size;
  return n;
}

bool Array::row_major() const {
  std::int64_t expected = 1;
  for (std::size_t k = dims.size(); k-- > 0;) {
    if (dims[k].size != 1 && dims[k].stride != expected) return false;
    expected *= dims[k].size;
  }
  return true;
}

std::optional<Reach> reach_of(const Array& array) {
  Reach reach{array.offset, array.offset};
  for (const Dim& dim : array.dims) {
    std::int64_t length = 0;
    if (__builtin_mul_overflow(dim.size - 1, dim.stride, &length)) return std::nullopt;
    std::int64_t& end = length < 0 ? reach.first : reach.last;
    if (__builtin_add_overflow(end, length, &end)) return std::nullopt;
  }
  return reach;
}

bool share_elements(const Array& a, const Array& b) {
  const auto x = reach_of(a), y = reach_of(b);
  const std::int64_t wide_a = byte_size(a.element), wide_b = byte_size(b.element);
  if (a.empty() || b.empty() || wide_a == 0 || wide_b == 0 || !x || !y) return false;
  const std::int64_t first = std::max(x->first * wide_a, y->first * wide_b);
  const std::int64_t end = std::min((x->last + 1) * wide_a, (y->last + 1) * wide_b);
  if (first >= end) return false;
  std::vector<bool> mine(static_cast<std::size_t>(end - first));
  const auto each_byte = [&](const Array& array, std::int64_t width, const auto& visit) {
    const std::vector<std::int64_t> shape = shape_of(array);
    std::vector<std::int64_t> at;
    for (std::int64_t flat = 0; flat < array.count(); ++flat) {
      unflatten(flat, shape, at);
      std::int64_t position = array.offset;
      for (std::size_t k = 0; k < at.size(); ++k) position += at[k] * array.dims[k].stride;
      for (std::int64_t byte = position * width; byte < (position + 1) * width; ++byte)
        if (byte >= first && byte < end) visit(static_cast<std::size_t>(byte - first));
    }
  };
  each_byte(a, wide_a, [&](std::size_t byte) { mine[byte] = true; });
  bool shared = false;
  each_byte(b, wide_b, [&](std::size_t byte) { shared = shared || mine[byte]; });
  return shared;
}

std::int64_t count_of(const std::vector<std::int64_t>& shape) {
  constexpr std::int64_t kMost = std::int64_t{1} << 48;
  for (std::int64_t size : shape)
    if (size == 0) return 0;
  std::int64_t n = 1;
  for (std::int64_t size : shape) {
    if (size > kMost / n)
      fail(Code::run_out_of_memory, fmt::format("an array of shape {} has too many elements.", shape_text(shape)));
    n *= size;
  }
  return n;
}

std::vector<Dim> row_major_dims(const std::vector<std::int64_t>& shape) {
  std::vector<Dim> dims(shape.size());
  // Unsigned: beside a size of 0 the others may be so large that their product wraps.
  std::uint64_t stride = 1;
  for (std::size_t k = shape.size(); k-- > 0; stride *= static_cast<std::uint64_t>(shape[k]))
    dims[k] = {shape[k], static_cast<std::int64_t>(stride)};
  return dims;
}

std::vector<std::int64_t> shape_of(const Array& array) {
  std::vector<std::int64_t> shape;
  for (const Dim& dim : array.dims) shape.push_back(dim.size);
  return shape;
}

Array row_at(const Array& array, std::size_t n, std::int64_t position) {
  return {
      array.storage, array.element, position, {array.dims.begin() + static_cast<std::ptrdiff_t>(n), array.dims.end()}};
}

void unflatten(std::int64_t flat, const std::vector<std::int64_t>& shape, std::vector<std::int64_t>& indices) {
  indices.resize(shape.size());
  for (std::size_t k = shape.size(); k-- > 1;) {
    indices[k] = flat % shape[k];
    flat /= shape[k];
  }
  if (!shape.empty()) indices[0] = flat;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (std::int64_t size : shape) text += fmt::format("[{}]", size);
  return text;
}

}  // namespace apl::interpreter
