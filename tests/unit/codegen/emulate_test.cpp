#include "runtime/backends/emulate.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>

#include "runtime/backends/context.h"
#include "tests/unit/codegen/kernels.h"

namespace {

using kernels::contains;
using kernels::Device;
using kernels::line_of;
using kernels::replace;
using kernels::take;

// One kernel text is compiled once, for many seeds.
Device emulated(const std::string& text, std::uint64_t seed = 1) {
  static const auto kCache = std::make_shared<apl::ObjectCache>();
  apl::EmulateOptions options;
  options.seed = seed;
  options.workplace.cache = kCache;
  return {apl::make_emulate_backend(options), text};
}

// A text with one kernel `k` of 32 threads and the given parameters and body; line 1 is the include, line 2 the kernel.
std::string kernel(const std::string& parameters, const std::string& body) {
  return "#include \"device.h\"\nAPL_KERNEL(32) void k(" + parameters + ") {\n" + body + "}\nAPL_EXPORT(k)\n";
}

void check_fault(const apl::Status& status, apl::Code code, const std::vector<std::string>& parts) {
  REQUIRE_FALSE(status);
  CHECK(apl::code_text(status.error().code) == apl::code_text(code));
  for (const std::string& part : parts) CHECK_MESSAGE(contains(status.error().message, part), status.error().message);
}

apl::Status run_product(Device& device, std::int64_t m, std::int64_t n, std::int64_t k,
                        std::vector<float>* result = nullptr) {
  const auto a = kernels::numbers(m * k, 1), b = kernels::numbers(k * n, 2);
  void* A = device.array(a, "A");
  void* B = device.array(b, "B");
  void* C = device.scratch<float>(static_cast<std::size_t>(m * n), "C");
  auto status =
      device.launch("product", (m + 7) / 8 * ((n + 7) / 8), 64, kernels::kProductSharedBytes, A, B, C, m, n, k);
  if (status && result) *result = device.read<float>(C, static_cast<std::size_t>(m * n));
  return status;
}

}  // namespace

TEST_CASE("emulate: a vector sum is right, partial block included") {
  Device device = emulated(kernels::kVectorAdd);
  for (std::int64_t n : {0, 1, 64, 130}) {
    CAPTURE(n);
    const auto a = kernels::numbers(n, 1), b = kernels::numbers(n, 2);
    void* A = device.array(a, "A");
    void* B = device.array(b, "B");
    void* C = device.scratch<float>(static_cast<std::size_t>(n), "C");
    take(device.launch("vector_add", (n + 63) / 64, 64, 0, A, B, C, n));
    const auto c = device.read<float>(C, static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < c.size(); ++i) CHECK(c[i] == a[i] + b[i]);
  }
}

TEST_CASE("emulate: a tiled product is right for whole and partial tiles, in any order of threads") {
  for (std::uint64_t seed : {1, 2, 3}) {
    Device device = emulated(kernels::kTiledProduct, seed);
    for (auto [m, n, k] : {std::array<std::int64_t, 3>{8, 8, 8}, {16, 8, 24}, {7, 11, 13}, {1, 1, 1}, {3, 17, 0}}) {
      const std::string where = fmt::format("{} x {} x {}, seed {}", m, n, k, seed);
      CAPTURE(where);
      std::vector<float> c;
      take(run_product(device, m, n, k, &c));
      CHECK(c == kernels::product(kernels::numbers(m * k, 1), kernels::numbers(k * n, 2), m, n, k));
    }
  }
}

TEST_CASE("emulate: a missing barrier is a race, whatever the order") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    const std::string no_first = replace(kernels::kTiledProduct, "apl_barrier();  // tiles are there");
    Device first = emulated(no_first, seed);
    auto status = run_product(first, 8, 8, 16);
    REQUIRE_FALSE(status);
    // Depending on who runs first an element is read before it is written, or written after it is read.
    CHECK((status.error().code == apl::Code::run_race || status.error().code == apl::Code::run_undefined_read));

    const std::string no_second = replace(kernels::kTiledProduct, "apl_barrier();  // tiles are used");
    Device second = emulated(no_second, seed);
    check_fault(run_product(second, 8, 8, 16), apl::Code::run_race,
                {"kernel product: race on element ", "the shared array at byte ", " of block 0",
                 "and nothing orders the two", "in line " + std::to_string(line_of(no_second, "sum +="))});
    CHECK(run_product(second, 8, 8, 8));  // one tile: nothing follows
  }
}

TEST_CASE("emulate: a barrier of the warps orders the threads of a warp alone") {
  for (const int apart : {1, 32}) {
    const std::string text = fmt::format(
        "#include \"device.h\"\nAPL_KERNEL(64) void k(apl_out<int32_t> A) {{\n"
        "  const apl_shared<int32_t> a_s = apl_shared_at<int32_t>(0, 64);\n"
        "  a_s(apl_thread()) = apl_thread();\n  apl_warp_barrier();\n"
        "  A(apl_thread()) = a_s(apl_thread() ^ {});\n}}\nAPL_EXPORT(k)\n",
        apart);
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      CAPTURE(seed);
      Device device = emulated(text, seed);
      void* A = device.array(std::vector<std::int32_t>(64), "A");
      const auto status = device.launch("k", 1, 64, 256, A);
      if (apart == 1) {
        take(status);
      } else {
        check_fault(status, apl::Code::run_race, {"and nothing orders the two"});
      }
    }
  }
}

TEST_CASE("emulate: warps come to their barriers as often as each likes, but all of a warp's threads do") {
  const auto run = [](const std::string& count, std::vector<std::int32_t>* result = nullptr) {
    Device device = emulated(
        "#include \"device.h\"\nAPL_KERNEL(96) void k(apl_out<int32_t> A) {\n"
        "  const apl_shared<int32_t> a_s = apl_shared_at<int32_t>(0, 96);\n"
        "  a_s(apl_thread()) = 0;\n  apl_barrier();\n  for (int i = 0; i < " +
        count +
        "; ++i) {\n    const int32_t other = a_s(apl_thread() ^ 1);\n    apl_warp_barrier();\n"
        "    a_s(apl_thread()) = other + 1;\n    apl_warp_barrier();\n  }\n  apl_barrier();\n"
        "  A(apl_thread()) = a_s(95 - apl_thread());\n}\nAPL_EXPORT(k)\n");
    void* A = device.array(std::vector<std::int32_t>(96), "A");
    auto status = device.launch("k", 1, 96, 384, A);
    if (result) *result = device.read<std::int32_t>(A, 96);
    return status;
  };
  std::vector<std::int32_t> result;
  take(run("apl_thread() / 32 * 2", &result));
  CHECK(result[0] == 4);
  CHECK(result[40] == 2);
  CHECK(result[95] == 0);
  check_fault(run("(apl_thread() == 40 ? 1 : 2)"), apl::Code::run_race, {"waits at the barrier in line"});
}

TEST_CASE("emulate: a missing bounds guard is an access out of bounds, with line and text") {
  const std::string text = replace(kernels::kTiledProduct, "if (i < m && j < n) C(i", "C(i");
  Device device = emulated(text);
  CHECK(run_product(device, 8, 8, 8));
  check_fault(run_product(device, 7, 8, 8), apl::Code::run_index_out_of_bounds,
              {"kernel product: thread ", " of block 0 writes element 6", " of `C`, which has 56, in line 18",
               "18 | C(i * n + j) = sum;"});
}

TEST_CASE("emulate: an index out of bounds is found in shared and global arrays, on both sides") {
  struct Case {
    std::string body, message;
  };
  for (const Case& c :
       {Case{"  a_s(-1) = 1;\n", "writes element -1 of the shared array at byte 64, which has 4, in line 4"},
        Case{"  A(0) = a_s(4);\n", "reads element 4 of the shared array at byte 64, which has 4, in line 4"},
        Case{"\n  A(0) = A(-1);\n", "reads element -1 of `A`, which has 8, in line 5"},
        Case{"  A(8) = 1;\n", "writes element 8 of `A`, which has 8, in line 4"},
        Case{"  A(1L << 60) = 1;\n", "of `A`, which has 8, in line 4"}}) {
    Device device = emulated(
        kernel("apl_out<int32_t> A", "  const apl_shared<int32_t> a_s = apl_shared_at<int32_t>(64, 4);\n" + c.body));
    void* A = device.array(std::vector<std::int32_t>(8), "A");
    check_fault(device.launch("k", 1, 1, 80, A), apl::Code::run_index_out_of_bounds, {c.message});
  }
  Device device = emulated(kernel(
      "apl_out<int32_t> A", "  const apl_shared<int32_t> a_s = apl_shared_at<int32_t>(64, 4);\n  a_s(3) = A(0);\n"));
  void* A = device.array(std::vector<std::int32_t>(8), "A");
  CHECK(device.launch("k", 1, 1, 80, A));
  // The launch gives less shared memory than the kernel's arrays need.
  check_fault(device.launch("k", 1, 1, 76, A), apl::Code::run_index_out_of_bounds, {"writes element 3", "which has 3"});
  // An array that the host has freed.
  take(device.backend().release(A));
  check_fault(device.launch("k", 1, 1, 80, A), apl::Code::run_index_out_of_bounds, {"that is no allocation"});
}

TEST_CASE("emulate: reading what nothing has written is an error") {
  Device shared = emulated(kernel("apl_out<float> C",
                                  "  const apl_shared<float> a_s = apl_shared_at<float>(0, 32);\n"
                                  "  if (apl_thread() != 5) a_s(apl_thread()) = 1;\n"
                                  "  apl_barrier();\n"
                                  "  C(apl_block() * 32 + apl_thread()) = a_s(apl_thread());\n"));
  void* C = shared.scratch<float>(64, "C");
  check_fault(
      shared.launch("k", 2, 32, 128, C), apl::Code::run_undefined_read,
      {"thread 5 of block ", "reads element 5 of the shared array at byte 0, which nothing has written, in line 6"});

  Device global = emulated(kernel("apl_out<float> C, apl_out<float> D", "  C(apl_thread()) = D(apl_thread());\n"));
  C = global.scratch<float>(32, "C");
  void* D = global.scratch<float>(32, "D");
  check_fault(global.launch("k", 1, 32, 0, C, D), apl::Code::run_undefined_read,
              {"of `D`, which nothing has written, in line 3"});
  // What the host wrote is defined, and only that.
  const std::vector<float> half(16);
  take(global.backend().upload(D, half.data(), 64));
  CHECK(global.launch("k", 1, 16, 0, C, D));
  check_fault(global.launch("k", 1, 17, 0, C, D), apl::Code::run_undefined_read, {"thread 16", "element 16 of `D`"});
  // A copy is as defined as its source.
  void* E = global.scratch<float>(32, "E");
  take(global.backend().copy(E, D, 128));
  CHECK(global.launch("k", 1, 16, 0, C, E));
  CHECK_FALSE(global.launch("k", 1, 17, 0, C, E));
  // The host may not read it either.
  std::vector<float> out(32);
  CHECK(global.backend().download(out.data(), C, 64));
  check_fault(global.backend().download(out.data(), C, 128), apl::Code::run_undefined_read, {"byte 64 of `C`"});
}

TEST_CASE("emulate: shared memory is undefined again in the next block") {
  Device device = emulated(kernel("apl_out<float> C",
                                  "  const apl_shared<float> a_s = apl_shared_at<float>(0, 1);\n"
                                  "  if (apl_block() == 0) a_s(0) = 1;\n"
                                  "  C(apl_block()) = a_s(0);\n"));
  void* C = device.scratch<float>(2, "C");
  check_fault(device.launch("k", 2, 1, 4, C), apl::Code::run_undefined_read, {"of block 1"});
}

TEST_CASE("emulate: threads that miss a barrier are an error") {
  Device ended = emulated(kernel("apl_out<float> C", "  if (apl_thread() == 3) return;\n  apl_barrier();\n"));
  void* C = ended.scratch<float>(32, "C");
  check_fault(
      ended.launch("k", 1, 32, 0, C), apl::Code::run_race,
      {"thread 0 of block 0 waits at the barrier in line 4, which thread 3 never reaches", "4 | apl_barrier();"});
  CHECK(ended.launch("k", 1, 3, 0, C));

  Device other = emulated(
      kernel("apl_out<float> C", "  if (apl_thread() < 30)\n    apl_barrier();\n  else\n    apl_barrier();\n"));
  check_fault(other.launch("k", 1, 32, 0, C), apl::Code::run_race,
              {"thread 0 of block 0 waits at the barrier in line 4, thread 3", "at the one in line 6"});
  CHECK(other.launch("k", 1, 30, 0, C));
}

TEST_CASE("emulate: blocks of a launch are not ordered, launches are") {
  Device writers = emulated(kernel("apl_out<int32_t> C", "  C(0) = 1;\n"));
  void* C = writers.scratch<std::int32_t>(1, "C");
  check_fault(writers.launch("k", 2, 1, 0, C), apl::Code::run_race,
              {"race on element 0 of `C`", "thread 0 of block 0", "thread 0 of block 1", "in line 3"});
  CHECK(writers.launch("k", 1, 1, 0, C));
  CHECK(writers.launch("k", 1, 1, 0, C));

  // Block 1 reads with two threads before one of them writes: the reader in block 0 must not be forgotten.
  Device readers = emulated(kernel("apl_out<int32_t> A, apl_out<int32_t> C",
                                   "  C(apl_block() * 2 + apl_thread()) = A(0);\n"
                                   "  apl_barrier();\n"
                                   "  if (apl_block() == 1 && apl_thread() == 0) A(0) = 7;\n"));
  void* A = readers.array(std::vector<std::int32_t>{3}, "A");
  C = readers.scratch<std::int32_t>(4, "C");
  check_fault(readers.launch("k", 2, 2, 0, A, C), apl::Code::run_race, {"race on element 0 of `A`"});

  // In one block a barrier orders.
  Device ordered = emulated(kernel("apl_out<int32_t> C",
                                   "  C(apl_thread()) = apl_thread();\n"
                                   "  C(apl_thread()) += 1;\n"
                                   "  apl_barrier();\n"
                                   "  const int32_t x = C(31 - apl_thread());\n"
                                   "  apl_barrier();\n"
                                   "  C(apl_thread()) = x;\n"));
  C = ordered.scratch<std::int32_t>(32, "C");
  take(ordered.launch("k", 1, 32, 0, C));
  CHECK(ordered.read<std::int32_t>(C, 32)[0] == 32);
}

TEST_CASE("emulate: atomic steps on shared memory are ordered among themselves, and after a barrier") {
  // All threads fold into one element, by an instruction, by an operator and behind a lock of the block.
  const std::string steps =
      "  apl_atomic_add(a_s, 0, (int32_t)2);\n"
      "  apl_update(a_s, 1, [&](int32_t x) -> int32_t { return 2 * x; });\n"
      "  for (unsigned tries = 1; tries != 0;) {\n"
      "    if (!apl_lock_in<32>(locks, 2)) {\n"
      "      apl_back_off(tries);\n"
      "      continue;\n"
      "    }\n"
      "    a_s(2) = a_s(2) + a_s(3);\n"
      "    a_s(3) = 1;\n"
      "    apl_unlock_in<32>(locks, 2);\n"
      "    tries = 0;\n"
      "  }\n";
  const std::string text =
      kernel("apl_out<int32_t> C",
             "  const apl_shared<int32_t> a_s = apl_shared_at<int32_t>(0, 4);\n"
             "  const apl_shared<uint32_t> locks = apl_shared_at<uint32_t>(16, 32);\n"
             "  locks(apl_thread()) = 0;\n"
             "  if (apl_thread() < 4) apl_atomic_store(a_s, apl_thread(), (int32_t)1, apl_at(0, apl_thread()));\n"
             "  apl_barrier();  // clear\n" +
                 steps +
                 "  apl_barrier();  // folded\n"
                 "  if (apl_thread() < 4) C(apl_thread()) = a_s(3 - apl_thread());\n");
  for (std::uint64_t seed : {1, 2, 3}) {
    Device device = emulated(text, seed);
    void* C = device.scratch<std::int32_t>(4, "C");
    take(device.launch("k", 1, 30, 144, C));
    CHECK(device.read<std::int32_t>(C, 4) == std::vector<std::int32_t>{1, 31, 1 << 30, 61});
    for (const char* barrier : {"apl_barrier();  // clear", "apl_barrier();  // folded"}) {
      Device racing = emulated(replace(text, barrier), seed);
      const auto status = racing.launch("k", 1, 30, 144, racing.scratch<std::int32_t>(4, "C"));
      REQUIRE_FALSE(status);
      CHECK((status.error().code == apl::Code::run_race || status.error().code == apl::Code::run_undefined_read));
    }
  }
}

TEST_CASE("emulate: a scatter that writes different values to one element is an error of the program") {
  const auto scatter = [](const std::string& value) {
    return kernel("apl_out<int32_t> C", "  apl_atomic_store(C, 1, (int32_t)(" + value + "), apl_at(3, 4, 5));\n");
  };
  Device same = emulated(scatter("7"));
  void* C = same.scratch<std::int32_t>(2, "C");
  take(same.launch("k", 2, 32, 0, C));
  CHECK(take(same.backend().take_failure()).code == APL_OK);

  for (const char* value : {"apl_thread()", "apl_block()"}) {
    Device other = emulated(scatter(value));
    take(other.launch("k", 2, 32, 0, other.scratch<std::int32_t>(2, "C")));
    const apl_failure failure = take(other.backend().take_failure());
    CHECK(failure.code == APL_SCATTERED_TWICE);
    CHECK(failure.location == 3);
    CHECK(failure.values[0] == 4);
    CHECK(failure.values[1] == 5);
  }

  // Another statement's store is a race.
  Device race = emulated(kernel("apl_out<int32_t> C",
                                "  if (apl_thread() == 0) apl_atomic_store(C, 0, (int32_t)1, apl_at(0, 0));\n"
                                "  if (apl_thread() == 1) apl_atomic_store(C, 0, (int32_t)2, apl_at(1, 0));\n"));
  check_fault(race.launch("k", 1, 32, 0, race.scratch<std::int32_t>(1, "C")), apl::Code::run_race,
              {"race on element 0 of `C`"});
}

TEST_CASE("emulate: shared memory may be used again for another type") {
  Device device = emulated(kernel("apl_out<double> C",
                                  "  const apl_shared<int16_t> a_s = apl_shared_at<int16_t>(0, 128);\n"
                                  "  const apl_shared<double> b_s = apl_shared_at<double>(0, 32);\n"
                                  "  for (int i = 0; i < 4; ++i) a_s(apl_thread() * 4 + i) = 1;\n"
                                  "  apl_barrier();\n"
                                  "  b_s(31 - apl_thread()) = a_s(apl_thread());\n"
                                  "  C(apl_thread()) = b_s(31 - apl_thread());\n"));
  void* C = device.scratch<double>(32, "C");
  // Thread 31 - t writes over what thread t reads: without a barrier between, a race although the types differ.
  check_fault(device.launch("k", 1, 32, 256, C), apl::Code::run_race, {"in line 7"});
}

TEST_CASE("emulate: asynchronous copies arrive at the wait") {
  Device device = emulated(kernels::kAsyncCopy);
  const auto a = kernels::numbers(256, 1);
  void* A = device.array(a, "A");
  void* C = device.scratch<float>(256, "C");
  take(device.launch("async_copy", 2, 32, 512, A, C));
  CHECK(device.read<float>(C, 256) == a);

  Device no_wait = emulated(replace(kernels::kAsyncCopy, "  apl_cp_async_wait<0>();\n"));
  A = no_wait.array(a, "A");
  C = no_wait.scratch<float>(256, "C");
  check_fault(no_wait.launch("async_copy", 1, 32, 512, A, C), apl::Code::run_undefined_read,
              {"before the copy started in line 5 is waited for"});

  Device no_barrier = emulated(replace(kernels::kAsyncCopy, "  apl_barrier();\n"));
  A = no_barrier.array(a, "A");
  C = no_barrier.scratch<float>(256, "C");
  CHECK_FALSE(no_barrier.launch("async_copy", 1, 32, 512, A, C));

  Device late = emulated(replace(kernels::kAsyncCopy, "wait<0>", "wait<1>"));
  A = late.array(a, "A");
  C = late.scratch<float>(256, "C");
  CHECK_FALSE(late.launch("async_copy", 1, 32, 512, A, C));

  Device odd =
      emulated(replace(kernels::kAsyncCopy, "A, apl_block() * 128 + 4 * t", "A, apl_block() * 128 + 4 * t + 1"));
  A = odd.array(a, "A");
  C = odd.scratch<float>(256, "C");
  check_fault(odd.launch("async_copy", 1, 32, 512, A, C), apl::Code::run_index_out_of_bounds, {"not aligned"});
}

TEST_CASE("emulate: a failed check is in the cell and hides what follows from it") {
  Device device = emulated(kernels::kChecked);
  std::vector<std::int32_t> a(100, 4);
  a[70] = 7;
  void* A = device.array(a, "A");
  void* C = device.scratch<std::int32_t>(100, "C");
  take(device.launch("checked", 4, 32, 0, A, C, std::int64_t{100}, device.backend().failure()));
  // A kernel that reads the results that are missing runs, as on devices.
  void* D = device.scratch<std::int32_t>(100, "D");
  CHECK(device.launch("checked", 4, 32, 0, C, D, std::int64_t{100}, device.backend().failure()));
  auto cell = take(device.backend().take_failure());
  CHECK(cell.code == APL_ASSERT);
  CHECK(cell.location == 1);
  CHECK(cell.values[0] == 70);
  CHECK(cell.values[1] == 7);
  CHECK(take(device.backend().take_failure()).code == APL_OK);
  CHECK_FALSE(device.launch("checked", 4, 32, 0, C, D, std::int64_t{100}, device.backend().failure()));
}

TEST_CASE("emulate: behind a failed check a kernel must not leave the arrays") {
  Device device =
      emulated(kernel("int32_t step, apl_out<int64_t> C, apl_in<int64_t> I, apl_failure *failure, int32_t *failed",
                      "  if (step == 0) {\n    apl_fail(failure, 1, 0, 8, 9);\n    return;\n  }\n"
                      "  if (step == 1 && apl_has_failed(failed)) return;\n"
                      "  C(apl_thread()) = I(I(apl_thread()));\n"));
  void* I = device.scratch<std::int64_t>(32, "I");
  void* C = device.scratch<std::int64_t>(32, "C");
  const auto launch = [&](std::int32_t step) {
    return device.launch("k", 1, 32, 0, step, C, I, device.backend().failure(), device.backend().failed());
  };
  REQUIRE(launch(0));
  CHECK(launch(1));
  CHECK(take(device.backend().take_failure()).values[1] == 9);
  REQUIRE(launch(0));
  check_fault(launch(2), apl::Code::run_index_out_of_bounds, {"`I`"});
  CHECK(take(device.backend().take_failure()).code == APL_OK);  // it is not told behind the other
}

TEST_CASE("emulate: a thread that leaves by a failed check may miss a barrier") {
  Device device = emulated(
      kernel("apl_failure *failure",
             "  if (apl_thread() == 3) {\n    apl_fail(failure, 1, 0, 8, 9);\n    return;\n  }\n  apl_barrier();\n"));
  CHECK(device.launch("k", 1, 32, 0, device.backend().failure()));
  CHECK(take(device.backend().take_failure()).values[1] == 9);
}

TEST_CASE("emulate: what the device cannot do is refused") {
  apl::EmulateOptions options;
  auto backend = apl::make_emulate_backend(options);
  auto bad = backend->load("#include \"device.h\"\nint x = nothing;\n");
  check_fault(bad, apl::Code::bug_internal, {"nothing"});
  options.compiler = "no-such-compiler";
  check_fault(apl::make_emulate_backend(options)->load(kernels::kVectorAdd), apl::Code::unsupported_backend,
              {"no-such-compiler"});

  Device device = emulated(kernel("apl_out<float> C", ""));
  void* C = device.scratch<float>(1, "C");
  check_fault(device.launch("other", 1, 32, 0, C), apl::Code::bug_internal, {"other"});
  check_fault(device.launch("k", 1, 1025, 0, C), apl::Code::bug_internal, {"1025 threads"});
  check_fault(device.launch("k", 1, 32, 300000, C), apl::Code::bug_internal, {"300000 bytes of shared memory"});
  auto much = device.backend().allocate(INT64_MAX / 2, "the moon");
  REQUIRE_FALSE(much);
  CHECK(much.error().code == apl::Code::run_out_of_memory);
  CHECK(contains(much.error().message, "4611686018427387903 bytes for the moon"));
  CHECK_FALSE(device.backend().upload(C, "12345", 5));
}

TEST_CASE("emulate: what blocks publish is of the size asked for, and zeros again behind a kernel") {
  Device device = emulated(kernel("apl_out<int32_t> cells, int64_t at, int32_t left",
                                  "  if (apl_thread() == 0) {\n    cells(at) = 5;\n    cells(at) = left;\n  }\n"));
  const auto launch = [&](std::int64_t bytes, std::int64_t at, std::int32_t left) {
    void* cells = take(device.backend().zeros(bytes));
    return device.launch("k", 1, 32, 0, cells, at, left);
  };
  CHECK(launch(16, 3, 0));
  check_fault(launch(8, 3, 0), apl::Code::run_index_out_of_bounds, {"what blocks publish"});
  check_fault(launch(16, 2, 7), apl::Code::bug_internal, {"kernel k", "byte 8"});
  CHECK(launch(16, 2, 0));  // they are zeros again for the next
}

TEST_CASE("emulate: one seed gives one order of threads") {
  const std::string text =
      kernel("apl_out<int32_t> C, apl_failure *failure", "  apl_fail(failure, 1, 0, apl_block(), apl_thread());\n");
  auto first = [&](std::uint64_t seed) {
    Device device = emulated(text, seed);
    void* C = device.scratch<std::int32_t>(1, "C");
    take(device.launch("k", 50, 32, 0, C, device.backend().failure()));
    auto cell = take(device.backend().take_failure());
    return std::pair(cell.values[0], cell.values[1]);
  };
  CHECK(first(5) == first(5));
  bool differs = false;
  for (std::uint64_t seed = 6; seed < 10; ++seed) differs = differs || first(seed) != first(5);
  CHECK(differs);
}
