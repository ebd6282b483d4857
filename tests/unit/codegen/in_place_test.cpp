// Calls of loaded programs without copies (Program::call_in_place).
#include <doctest/doctest.h>
#include <sys/mman.h>

#include <array>
#include <vector>

#include "codegen/emit/load.h"
#include "runtime/program/program.h"
#include "tests/unit/codegen/emitted.h"

namespace {

using apl::BorrowedValue;
using apl::ScalarType;
using emitted::take;

constexpr const char* kProgram =
    "entry ends [n] (xs: [n]f32) (i: i64) : f32 = xs[0] + xs[i]\n"
    "entry total [n] (xs: [n]f32) : f32 = f32.sum xs\n"
    "entry twice [n] (xs: [n]f32) : [n]f32 = map (* 2) xs\n"
    "entry same [n] (xs: [n]f32) : [n]f32 = xs\n";

apl::Program loaded(const std::string& backend) {
  const apl::Machine machine = backend == "c" ? apl::Machine::cpu : apl::Machine::gpu;
  apl::Module module = emitted::compiled("f.fut", kProgram);
  auto pipeline =
      take(apl::parse_pipeline(apl::standard_pipeline(apl::Stage::memory, machine), apl::PassRegistry::builtin()));
  take(apl::run_pipeline(module, pipeline, {}));
  apl::ProgramOptions options;
  options.backend = backend;
  return take(apl::load_program(module, options));
}

float number(const apl::OwnedValue& value) { return *static_cast<const float*>(value.data()); }

}  // namespace

TEST_CASE("call in place: an argument that is larger than all memory, and may not be read but for a page, is used") {
  constexpr std::size_t kBytes = std::size_t{1} << 44, kPage = 1 << 16;
  void* const reserved = mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(reserved != MAP_FAILED);
  REQUIRE(mprotect(reserved, kPage, PROT_READ | PROT_WRITE) == 0);
  auto* const numbers = static_cast<float*>(reserved);
  numbers[0] = 1;
  numbers[5] = 2;
  REQUIRE(mprotect(reserved, kPage, PROT_READ) == 0);  // a call that writes its arguments ends the test
  apl::Program program = loaded("c");
  const BorrowedValue xs{ScalarType::f32, {static_cast<std::int64_t>(kBytes / sizeof(float))}, numbers};
  CHECK(program.reads_in_place(xs));
  const std::int64_t at = 5;
  const auto result = take(program.call_in_place("ends", {xs, {ScalarType::i64, {}, &at}}));
  CHECK(number(result.at(0)) == 3);
  munmap(reserved, kBytes);
}

TEST_CASE("call in place: the program's memory has results alone, copies have arguments as well") {
  constexpr std::int64_t kCount = 1 << 20, kBytes = kCount * static_cast<std::int64_t>(sizeof(float));
  std::vector<float> numbers(kCount, 1);
  apl::Program program = loaded("c");
  CHECK(number(take(program.call_in_place("total", {{ScalarType::f32, {kCount}, numbers.data()}})).at(0)) == kCount);
  CHECK(program.peak_bytes() < kBytes);
  take(program.call("total", {apl::HostValue::array(ScalarType::f32, {kCount}, numbers)}));
  CHECK(program.peak_bytes() >= kBytes);
}

TEST_CASE("call in place: a result stays where it is, and is an argument from there") {
  std::array<float, 4> numbers = {1, 2, 3, 4};
  for (const char* backend : {"c", "emulate"}) {
    CAPTURE(backend);
    apl::Program program = loaded(backend);
    const auto first = take(program.call_in_place("twice", {{ScalarType::f32, {4}, numbers.data()}}));
    const BorrowedValue again{ScalarType::f32, {4}, first[0].data(), first[0].on_device()};
    const void* const where = first[0].data();
    const auto second = take(program.call_in_place("twice", {again}));
    CHECK(first[0].data() == where);
    CHECK(second[0].data() != where);
    CHECK(take(second[0].fetch()) == apl::HostValue::array<float>(ScalarType::f32, {4}, {4, 8, 12, 16}));
    CHECK(take(first[0].fetch()) == apl::HostValue::array<float>(ScalarType::f32, {4}, {2, 4, 6, 8}));
  }
}

TEST_CASE("call in place: what an entry gives is never the caller's memory") {
  std::array<float, 3> numbers = {1, 2, 3};
  apl::Program program = loaded("c");
  const auto result = take(program.call_in_place("same", {{ScalarType::f32, {3}, numbers.data()}}));
  CHECK(result[0].data() != numbers.data());
  numbers[0] = 7;
  CHECK(static_cast<const float*>(result[0].data())[0] == 1);
}
