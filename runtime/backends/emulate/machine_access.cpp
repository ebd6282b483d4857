// What kernels tell the machine: accesses to global and shared memory, asynchronous copies.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>

#include "runtime/backends/emulate/machine.h"

namespace apl::emulate {

namespace {

// Of a thread, until other blocks go on: it may wait for them by reads that are not atomic.
constexpr int kReadsInTurn = 1 << 14;

std::string shared_name(std::int64_t offset) { return fmt::format("the shared array at byte {}", offset); }

}  // namespace

void Machine::scatter(int location, int count, const std::int64_t* at, int line) {
  scatter_ = {APL_SCATTERED_TWICE, location, {}};
  std::copy_n(at, std::min(count, APL_FAILURE_VALUES), scatter_.values);
  scatter_line_ = line;
}

// Whether two threads of one scatter write different values to an element: that is the program's error.
bool Machine::scattered_twice(Use use, int line, const Conflict& conflict) const {
  return use == Use::replace && conflict.kind == FaultKind::race && conflict.other_writes && conflict.other.is_fold &&
         static_cast<int>(conflict.other.line) == line && scatter_line_ == line;
}

void Machine::stop(Use use, int line, std::string array, std::int64_t index, const Conflict& conflict,
                   std::int64_t count) {
  if (scattered_twice(use, line, conflict) && failure.code == APL_OK) failure = scatter_;
  Fault fault{conflict.kind};
  fault.actor = {block_, thread_, line};
  fault.is_write = is_write(use);
  fault.array = std::move(array);
  fault.index = index;
  fault.count = count;
  if (conflict.other.interval != 0) fault.other = actor(conflict.other);
  fault.other_writes = conflict.other_writes;
  stop(std::move(fault));
}

void Machine::global(const void* base, std::int64_t index, int bytes, Use use, int line) {
  if (use == Use::read && most_together_ > 1 && ++reads_ % kReadsInTurn == 0) suspend(Wait::for_others, line);
  Allocation* allocation = memory.find(base);
  if (!allocation) stop(use, line, "", index, {FaultKind::no_array}, 0);
  const std::int64_t start = allocation->offset_of(base);
  const std::int64_t count = (allocation->shadow.bytes() - start) / bytes;
  auto name = [&] { return fmt::format("`{}`", allocation->what); };
  if (index < 0 || index >= count) stop(use, line, name(), index, {FaultKind::out_of_bounds}, count);
  if (start % bytes != 0) stop(use, line, name(), start, {FaultKind::misaligned}, count);
  std::optional<Conflict> conflict;
  try {
    conflict = allocation->shadow.access(moment(line), start + index * bytes, bytes, use);
  } catch (const std::bad_alloc&) {
    conflict = Conflict{FaultKind::no_memory};
  }
  if (conflict && (counts(conflict->kind) || conflict->kind == FaultKind::no_memory))
    stop(use, line, name(), index, *conflict, count);
  if (is_write(use)) ++changes_;
}

void Machine::shared(std::int64_t offset, std::int64_t count, std::int64_t index, int bytes, Use use, int line) {
  if (index < 0 || index >= count) stop(use, line, shared_name(offset), index, {FaultKind::out_of_bounds}, count);
  if (offset % bytes != 0) stop(use, line, shared_name(offset), offset, {FaultKind::misaligned}, count);
  Shadow& shadow = running_->shared_shadow;
  const std::int64_t there = (shadow.bytes() - offset) / bytes;
  if (offset < 0 || index >= there) stop(use, line, shared_name(offset), index, {FaultKind::out_of_bounds}, there);
  if (auto conflict = shadow.access(moment(line), offset + index * bytes, bytes, use);
      conflict && counts(conflict->kind))
    stop(use, line, shared_name(offset), index, *conflict, count);
}

// The value arrives at the wait; until then the elements are being written, and nobody may read them.
void Machine::copy(Copy copy, const void* base, std::int64_t from, int line) {
  for (int i = 0; i < copy.elements; ++i) {
    if (base != nullptr) global(base, from + i, copy.bytes, Use::read, line);
    shared(copy.offset, copy.count, copy.index + i, copy.bytes, Use::begin_copy, line);
  }
  const std::int64_t size = std::int64_t{copy.elements} * copy.bytes;
  const std::int64_t target = copy.offset + copy.index * copy.bytes;
  copy.from = base == nullptr ? nullptr : static_cast<const unsigned char*>(base) + from * copy.bytes;
  if (target % size != 0) stop(Use::write, line, shared_name(copy.offset), target, {FaultKind::misaligned}, copy.count);
  if (reinterpret_cast<std::uintptr_t>(copy.from) % static_cast<std::uintptr_t>(size) != 0) {
    Allocation& allocation = *memory.find(base);
    stop(Use::read, line, fmt::format("`{}`", allocation.what), allocation.offset_of(copy.from),
         {FaultKind::misaligned}, 0);
  }
  Thread& thread = self();
  copy.group = thread.groups;
  thread.copies.push_back(copy);
}

void Machine::wait(int groups, int line) {
  Thread& thread = self();
  auto still = std::find_if(thread.copies.begin(), thread.copies.end(),
                            [&](const Copy& copy) { return copy.group >= thread.groups - groups; });
  auto* memory_bytes = reinterpret_cast<unsigned char*>(running_->shared_memory.data());
  for (auto copy = thread.copies.begin(); copy != still; ++copy) {
    for (int i = 0; i < copy->elements; ++i)
      shared(copy->offset, copy->count, copy->index + i, copy->bytes, Use::write, line);
    unsigned char* to = memory_bytes + copy->offset + copy->index * copy->bytes;
    const auto size = static_cast<std::size_t>(copy->elements) * static_cast<std::size_t>(copy->bytes);
    copy->from == nullptr ? std::memset(to, 0, size) : std::memcpy(to, copy->from, size);
  }
  thread.copies.erase(thread.copies.begin(), still);
}

void Machine::fill_table() {
  table_.self = this;
  table_.thread = &thread_;
  table_.block = &block_;
  table_.threads = &threads_;
  table_.barrier = [](void* self, int line) { static_cast<Machine*>(self)->suspend(Wait::for_block, line); };
  table_.warp_barrier = [](void* self, int line) { static_cast<Machine*>(self)->suspend(Wait::for_warp, line); };
  static constexpr Use kUses[] = {Use::read, Use::write, Use::fold, Use::replace, Use::repeat, Use::look, Use::post};
  table_.global = [](void* self, const void* base, std::int64_t index, int bytes, int write, int line) {
    static_cast<Machine*>(self)->global(base, index, bytes, kUses[write], line);
  };
  table_.shared = [](void* self, std::int64_t offset, std::int64_t count, std::int64_t index, int bytes, int write,
                     int line) {
    static_cast<Machine*>(self)->shared(offset, count, index, bytes, kUses[write], line);
  };
  table_.copy = [](void* self, std::int64_t offset, std::int64_t count, std::int64_t index, const void* base,
                   std::int64_t from, int elements, int bytes, int line) {
    static_cast<Machine*>(self)->copy({offset, count, index, nullptr, elements, bytes, 0}, base, from, line);
  };
  table_.commit = [](void* self) { ++static_cast<Machine*>(self)->self().groups; };
  table_.scatter = [](void* self, int location, int count, const std::int64_t* at, int line) {
    static_cast<Machine*>(self)->scatter(location, count, at, line);
  };
  table_.wait = [](void* self, int groups, int line) { static_cast<Machine*>(self)->wait(groups, line); };
  table_.fence = [](void* self, int line) { static_cast<Machine*>(self)->fence(line); };
  table_.atomic = [](void* self, const void* base, std::int64_t index, int bytes, int write, int line) {
    static_cast<Machine*>(self)->atomic(base, index, bytes, kUses[write], line);
  };
}

}  // namespace apl::emulate
