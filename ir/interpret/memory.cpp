#include "ir/interpret/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ir/interpret/error.h"

namespace apl::interpreter {
namespace {

std::size_t width_of(ScalarType type) { return static_cast<std::size_t>(byte_size(type)); }

// Visits the positions of two arrays of one shape together, in row-major order.
template <class Visit>
void for_each_pair(const Array& a, const Array& b, const Visit& visit) {
  const std::int64_t count = a.count();
  std::vector<std::int64_t> at(a.rank(), 0);
  std::int64_t x = a.offset;
  std::int64_t y = b.offset;
  for (std::int64_t done = 0; done < count; ++done) {
    visit(x, y);
    for (std::size_t k = at.size(); k-- > 0;) {
      x += a.dims[k].stride;
      y += b.dims[k].stride;
      if (++at[k] < a.dims[k].size) break;
      x -= a.dims[k].stride * a.dims[k].size;
      y -= b.dims[k].stride * b.dims[k].size;
      at[k] = 0;
    }
  }
}

// Whether the `width` bytes from `at` on have been written: flags are 0 or 1, and every load asks.
bool defined_at(const Storage& storage, std::size_t at, std::size_t width) {
  if (storage.defined.empty()) return true;
  const std::uint8_t* const flags = storage.defined.data() + at;
  constexpr std::uint64_t kAll = 0x0101010101010101;
  std::uint64_t set = 0;
  switch (width) {
    case 4: std::memcpy(&set, flags, 4); return set == (kAll & UINT32_MAX);
    case 8: std::memcpy(&set, flags, 8); return set == kAll;
    default: return std::all_of(flags, flags + width, [](std::uint8_t flag) { return flag != 0; });
  }
}

}  // namespace

StoragePtr Memory::allocate(std::int64_t bytes, Fill fill) {
  return std::make_shared<Storage>(budget_, bytes, fill, tag_);
}

Array Memory::make_array(ScalarType element, const std::vector<std::int64_t>& shape, Fill fill) {
  const auto bytes = count_of(shape) * static_cast<std::int64_t>(width_of(element));
  return {allocate(bytes, fill), element, 0, row_major_dims(shape)};
}

std::size_t Memory::locate(const Array& array, std::int64_t position, std::size_t width) {
  Storage& storage = *array.storage;
  const auto bytes = static_cast<std::int64_t>(width);
  std::int64_t at = position * bytes;
  std::int64_t limit = static_cast<std::int64_t>(storage.bytes.size());
  if (storage.per_thread()) {
    if (thread_ < 0) fail(Code::run_race, "memory that each thread has a copy of is touched outside of any thread.");
    limit = storage.bytes_per_thread();
  }
  if (at < 0 || at + bytes > limit)
    fail(Code::bug_internal, fmt::format("element at byte {} of a block of {} bytes.", at, limit));
  if (storage.per_thread()) {
    storage.grow_to_thread(thread_);
    at += thread_ * limit;
  }
  return static_cast<std::size_t>(at);
}

bool Memory::is_defined(const Array& array, std::int64_t position) {
  if (array.storage->defined.empty()) return true;
  const std::size_t width = width_of(array.element);
  const std::size_t at = locate(array, position, width);
  return defined_at(*array.storage, at, width);
}

Scalar Memory::load(const Array& array, std::int64_t position) {
  const std::size_t width = width_of(array.element);
  const std::size_t at = locate(array, position, width);
  const Storage& storage = *array.storage;
  if (!defined_at(storage, at, width)) fail(Code::run_undefined_read, "an element is read before it is written.");
  if (find_races_) note_read(storage, at, width);
  std::uint64_t bits = 0;
  switch (width) {
    case 1: bits = static_cast<std::uint64_t>(storage.bytes[at]); break;
    case 4: {
      std::uint32_t word = 0;
      std::memcpy(&word, storage.bytes.data() + at, 4);
      bits = word;
      break;
    }
    case 8: std::memcpy(&bits, storage.bytes.data() + at, 8); break;
    default:
      if (width != 0) std::memcpy(&bits, storage.bytes.data() + at, width);  // little-endian, as everywhere in apl
  }
  return Scalar::from_bits(array.element, bits);
}

void Memory::store(const Array& array, std::int64_t position, const Scalar& value) {
  const std::size_t width = width_of(array.element);
  const std::size_t at = locate(array, position, width);
  Storage& storage = *array.storage;
  if (width == 0) return;
  if (find_races_) note_write(storage, at, width);
  const std::uint64_t bits = value.bits();
  std::memcpy(storage.bytes.data() + at, &bits, width);
  if (!storage.defined.empty())
    std::fill_n(storage.defined.begin() + static_cast<std::ptrdiff_t>(at), width, std::uint8_t{1});
}

void Memory::copy_element(const Array& from, std::int64_t source, const Array& to, std::int64_t target) {
  if (is_defined(from, source)) return store(to, target, load(from, source));
  const std::size_t width = width_of(to.element);
  const std::size_t at = locate(to, target, width);
  Storage& storage = *to.storage;
  if (width == 0) return;
  if (find_races_) note_write(storage, at, width);
  storage.track_defined();
  std::fill_n(storage.defined.begin() + static_cast<std::ptrdiff_t>(at), width, std::uint8_t{0});
}

void Memory::copy(const Array& from, const Array& to) {
  const std::size_t width = width_of(from.element);
  const std::int64_t count = from.count();
  if (count == 0 || width == 0) return;
  const bool plain = !find_races_ && from.storage->defined.empty() && to.storage->defined.empty() && from.row_major() &&
                     to.row_major();
  if (plain) {
    // Both ends are located, so that the whole range is known to be inside.
    const std::size_t source = locate(from, from.offset, width);
    const std::size_t target = locate(to, to.offset, width);
    locate(from, from.offset + count - 1, width);
    locate(to, to.offset + count - 1, width);
    std::memmove(to.storage->bytes.data() + target, from.storage->bytes.data() + source,
                 static_cast<std::size_t>(count) * width);
    return;
  }
  for_each_pair(from, to, [&](std::int64_t x, std::int64_t y) { copy_element(from, x, to, y); });
}

void Memory::fill(const Array& array, const Scalar& value) {
  for_each_pair(array, array, [&](std::int64_t x, std::int64_t) { store(array, x, value); });
}

void Memory::undefine(const Array& array) {
  if (width_of(array.element) == 0) return;
  array.storage->track_defined();
  for_each_pair(array, array, [&](std::int64_t x, std::int64_t) {
    const std::size_t width = width_of(array.element);
    const std::size_t at = locate(array, x, width);
    std::fill_n(array.storage->defined.begin() + static_cast<std::ptrdiff_t>(at), width, std::uint8_t{0});
  });
}

Array Memory::compact(const Array& array) {
  Array result = make_array(array.element, shape_of(array), Fill::zero);
  result.private_rank = array.private_rank;
  copy(array, result);
  return result;
}

void Memory::enter_parallel() { parallel_.push_back({tag_ + 1, tag_ + 1}); }

void Memory::begin_index() { parallel_.back().current = ++tag_; }

bool Memory::races(std::uint64_t writer) const {
  return std::any_of(parallel_.begin(), parallel_.end(),
                     [&](const Parallel& p) { return writer >= p.first && writer < p.current; });
}

void Memory::note_read(const Storage& storage, std::size_t at, std::size_t width) const {
  if (parallel_.empty() || storage.writers.empty() || storage.writer_width != static_cast<int>(width)) return;
  if (races(storage.writers[at / width]))
    fail(Code::run_race,
         fmt::format("element {} of its block is read by one index and written by another.", at / width));
}

void Memory::note_write(Storage& storage, std::size_t at, std::size_t width) {
  // What was made for this index alone no other index can reach.
  if (parallel_.empty() || storage.per_thread() || storage.birth >= parallel_.back().current) return;
  if (storage.writers.empty() || storage.writer_width != static_cast<int>(width))
    storage.track_writers(static_cast<int>(width));
  std::uint64_t& writer = storage.writers[at / width];
  if (races(writer))
    fail(Code::run_race, fmt::format("element {} of its block is written by two indices.", at / width));
  writer = tag_;
}

}  // namespace apl::interpreter
