// Where the elements of arrays lie at run time, and what an array value is: a strided view of a storage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/scalar.h"

namespace apl::interpreter {

// What all storages of one run hold together. Asking for more than the limit is run.out-of-memory.
class Budget {
 public:
  static constexpr std::uint64_t kLimit = std::uint64_t{2} << 30;

  void take(std::uint64_t bytes);
  void give(std::uint64_t bytes) { used_ -= bytes; }

 private:
  std::uint64_t used_ = 0;
};

enum class Fill : std::uint8_t { zero, undefined };

class Storage {
 public:
  Storage(Budget& budget, std::int64_t bytes, Fill fill, std::uint64_t birth = 0);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  // Makes this a block of which every thread has a copy of its own; copies appear when first touched.
  void split_per_thread();
  void grow_to_thread(std::int64_t thread);
  bool per_thread() const { return per_thread_; }
  std::int64_t bytes_per_thread() const { return bytes_per_thread_; }

  // Flags, one a byte, for all bytes from now on.
  void track_defined();
  // One tag for each element of `width` bytes; what was known of elements of another width is dropped.
  void track_writers(int width);

  std::vector<std::byte> bytes;
  std::vector<std::uint8_t> defined;   // a flag a byte; empty: every byte is defined
  std::vector<std::uint64_t> writers;  // the tag of the last write to each element (Memory); empty: none yet
  int writer_width = 0;                // bytes of the elements that `writers` counts
  const std::uint64_t birth;           // the tag when this was made: older indices cannot have touched it

 private:
  Budget& budget_;
  bool per_thread_ = false;
  std::int64_t bytes_per_thread_ = 0;
};

using StoragePtr = std::shared_ptr<Storage>;

struct Dim {
  std::int64_t size = 0;
  std::int64_t stride = 0;  // in elements
};

// Element (i, j, ...) is at position offset + i*dims[0].stride + j*dims[1].stride + ... of the storage.
// A memory block is an array without dims and element type.
struct Array {
  StoragePtr storage;
  ScalarType element = ScalarType::unit;
  std::int64_t offset = 0;
  std::vector<Dim> dims;
  // Not 0: a private result; only the thread at the first `private_rank` indices may read there.
  std::size_t private_rank = 0;

  std::size_t rank() const { return dims.size(); }
  bool empty() const;
  std::int64_t count() const;
  bool row_major() const;  // positions are offset, offset+1, ... in index order
};

// The first and last position of an array that is not empty; nothing if they do not fit in 64 bits.
struct Reach {
  std::int64_t first = 0;
  std::int64_t last = 0;
};
std::optional<Reach> reach_of(const Array& array);

// Whether two arrays of one storage have a byte in common.
bool share_elements(const Array& a, const Array& b);

// The number of elements; sizes are not negative, and too many elements are run.out-of-memory.
std::int64_t count_of(const std::vector<std::int64_t>& shape);
std::vector<Dim> row_major_dims(const std::vector<std::int64_t>& shape);
std::vector<std::int64_t> shape_of(const Array& array);
// The array without its first `n` dims, at the given position.
Array row_at(const Array& array, std::size_t n, std::int64_t position);
// The indices of a position in row-major order.
void unflatten(std::int64_t flat, const std::vector<std::int64_t>& shape, std::vector<std::int64_t>& indices);
// "[2][3]"
std::string shape_text(const std::vector<std::int64_t>& shape);

}  // namespace apl::interpreter
