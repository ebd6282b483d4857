// The heap that kernels allocate from, on drivers that do not have what is asked for.
#include "runtime/backends/cuda/heap.h"

#include <doctest/doctest.h>

#include <vector>

namespace {

// The driver, in functions without a context.
std::size_t held = 0, most = 0;
int refusal = 0;
std::vector<std::size_t> asked;

int limit(std::size_t* bytes, int) {
  *bytes = held;
  return 0;
}
int set_limit(int, std::size_t bytes) {
  asked.push_back(bytes);
  if (bytes > most) return refusal;
  held = bytes;
  return 0;
}

std::size_t grown(std::size_t wanted, std::size_t before, std::size_t there, int error) {
  held = before, most = there, refusal = error;
  asked.clear();
  apl_grow_heap(wanted, limit, set_limit);
  return held;
}

}  // namespace

TEST_CASE("heap: where the device does not have what is wanted, half of it is asked for, and so on") {
  constexpr int kNoMemory = 2, kTooLate = 1;
  CHECK(grown(1000, 8, 2000, kNoMemory) == 1000);
  CHECK(asked.size() == 1);
  CHECK(grown(1000, 8, 300, kNoMemory) == 250);
  CHECK(asked == std::vector<std::size_t>{1000, 500, 250});
  // Never less than there is.
  CHECK(grown(1000, 200, 100, kNoMemory) == 200);
  CHECK(asked.back() == 250);
  CHECK(grown(100, 200, 1000, kNoMemory) == 200);
  CHECK(asked.empty());
  CHECK(grown(0, 200, 1000, kNoMemory) == 200);
  // Another error stays as it is.
  CHECK(grown(1000, 8, 300, kTooLate) == 8);
  CHECK(asked.size() == 1);
}
