// Reading and writing elements: definedness, copies of thread blocks, and races between parallel indices.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/interpret/storage.h"

namespace apl::interpreter {

class Memory {
 public:
  // Races are looked for where storages are written in place: at the memory stage.
  explicit Memory(bool find_races) : find_races_(find_races) {}

  StoragePtr allocate(std::int64_t bytes, Fill fill);
  // A fresh row-major array.
  Array make_array(ScalarType element, const std::vector<std::int64_t>& shape, Fill fill);

  Scalar load(const Array& array, std::int64_t position);
  void store(const Array& array, std::int64_t position, const Scalar& value);
  bool is_defined(const Array& array, std::int64_t position);

  // Arrays of one shape, element by element in row-major order; undefined elements stay undefined.
  void copy(const Array& from, const Array& to);
  void fill(const Array& array, const Scalar& value);
  void undefine(const Array& array);
  // The same elements in a storage of their own, row-major.
  Array compact(const Array& array);

  // The thread whose copies of thread blocks are meant; -1 outside threads.
  std::int64_t thread() const { return thread_; }
  void set_thread(std::int64_t thread) { thread_ = thread; }

  // A parallel statement is entered, runs its indices one by one, and is left.
  // What one index wrote, no other index of the same execution may read or write.
  void enter_parallel();
  void begin_index();
  void leave_parallel() { parallel_.pop_back(); }

 private:
  struct Parallel {
    std::uint64_t first;    // tag of its first index
    std::uint64_t current;  // tag of the index that runs
  };

  // The byte where the element lies.
  std::size_t locate(const Array& array, std::int64_t position, std::size_t width);
  bool races(std::uint64_t writer) const;
  void note_read(const Storage& storage, std::size_t at, std::size_t width) const;
  void note_write(Storage& storage, std::size_t at, std::size_t width);
  void copy_element(const Array& from, std::int64_t source, const Array& to, std::int64_t target);

  bool find_races_;
  Budget budget_;
  std::int64_t thread_ = -1;
  std::uint64_t tag_ = 0;
  std::vector<Parallel> parallel_;
};

// Keeps a Memory inside a parallel statement.
class ParallelScope {
 public:
  explicit ParallelScope(Memory& memory) : memory_(memory), thread_(memory.thread()) { memory_.enter_parallel(); }
  ~ParallelScope() {
    memory_.leave_parallel();
    memory_.set_thread(thread_);
  }
  ParallelScope(const ParallelScope&) = delete;
  ParallelScope& operator=(const ParallelScope&) = delete;

 private:
  Memory& memory_;
  std::int64_t thread_;
};

}  // namespace apl::interpreter
