#include "runtime/backends/openmp.h"

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "codegen/emit/load.h"
#include "runtime/backends/toolchain.h"
#include "runtime/program/program.h"
#include "tests/unit/codegen/emitted.h"

namespace {

using apl::HostValue;
using emitted::take;

apl::Program program_of(const char* text) {
  const apl::Module source = emitted::compiled("program.fut", text);
  apl::ProgramOptions options;
  options.backend = "c";
  options.c_flags = {"-O1"};
  apl::Module module = source;
  auto pipeline = take(
      apl::parse_pipeline(apl::standard_pipeline(apl::Stage::memory, apl::Machine::cpu), apl::PassRegistry::builtin()));
  take(apl::run_pipeline(module, pipeline, {}));
  return take(apl::load_program(module, options));
}

// A loop that is worth threads.
apl::Program program_of_loops() { return program_of("entry next [n] (xs: [n]i64) : [n]i64 = map (+ 1) xs"); }

// A sum that is.
apl::Program program_of_sums() { return program_of("entry sums [n] (xs: [n]i64) : i64 = reduce (+) 0 xs"); }

// Calls it; whether all elements are right.
bool counts_on(apl::Program& program, std::int64_t n) {
  HostValue xs = HostValue::zeros(apl::ScalarType::i64, {n}), wanted = xs;
  for (std::int64_t k = 0; k < n; ++k) {
    reinterpret_cast<std::int64_t*>(xs.data.data())[k] = k;
    reinterpret_cast<std::int64_t*>(wanted.data.data())[k] = k + 1;
  }
  return take(program.call("next", {xs})).at(0).data == wanted.data;
}

// A product that is, and is packed; whether all elements are right. How many threads it has depends on the machine's
// vectors, as parts of it are whole micro-tiles.
bool multiplies(apl::Program& program) {
  constexpr std::int64_t kSize = 160;
  HostValue ones = HostValue::zeros(apl::ScalarType::i32, {kSize, kSize}), wanted = ones;
  for (std::int64_t k = 0; k < kSize * kSize; ++k) {
    reinterpret_cast<std::int32_t*>(ones.data.data())[k] = 1;
    reinterpret_cast<std::int32_t*>(wanted.data.data())[k] = static_cast<std::int32_t>(kSize);
  }
  return take(program.call("mm", {ones, ones})).at(0).data == wanted.data;
}

apl::Program program_of_products() {
  return program_of(
      "entry mm [n][m][k] (A: [n][m]i32) (B: [m][k]i32) : [n][k]i32 =\n"
      "  map (\\a -> map (\\b -> i32.sum (map2 (*) a b)) (transpose B)) A");
}

std::size_t threads_of_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

std::int64_t sum_of_ones(apl::Program& program, std::int64_t n) {
  std::vector<std::int64_t> ones(static_cast<std::size_t>(n), 1);
  HostValue xs;
  xs.type = apl::ScalarType::i64;
  xs.shape = {n};
  xs.data.resize(ones.size() * sizeof ones.front());
  std::memcpy(xs.data.data(), ones.data(), xs.data.size());
  const auto results = take(program.call("sums", {xs}));
  std::int64_t sum = 0;
  std::memcpy(&sum, results.at(0).data.data(), sizeof sum);
  return sum;
}

constexpr std::int64_t kMany = 1 << 20;

// An OpenMP runtime of one thread that counts parallel regions, under such a name as wheels give it.
constexpr const char* kCounting = R"(int regions;
void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags) {
  (void)threads, (void)flags;
  ++regions;
  body(data);
}
void GOMP_barrier(void) {}
_Bool GOMP_single_start(void) { return 1; }
int omp_in_parallel(void) { return 0; }
int omp_get_max_threads(void) { return 4; }
int omp_get_num_threads(void) { return 1; }
int omp_get_thread_num(void) { return 0; }
int bound;
int omp_get_proc_bind(void) { return bound; }
)";

struct Loaded {
  void* handle;
  explicit Loaded(const std::string& path) : handle(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {}
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;
  ~Loaded() {
    if (handle) dlclose(handle);
  }
};

std::string compiled_runtime(const std::string& folder, const std::string& name, const std::string& text) {
  const std::string source = folder + "/runtime.c", object = folder + "/" + name;
  std::ofstream(source) << text;
  take(apl::run_tool({"cc", "-shared", "-fPIC", "-O1", "-Wl,-soname," + name, source, "-o", object}));
  return object;
}

}  // namespace

TEST_CASE("OpenMP: programs run on the threads of a runtime that the process has under another name") {
  CHECK(apl::openmp_of_process().empty());
  auto folder = take(apl::TemporaryFolder::make("/tmp"));
  const std::string all = std::string(kCounting) + "void omp_set_num_threads(int threads) { (void)threads; }\n";
  const Loaded runtime(compiled_runtime(folder.path(), "libgomp-0123abcd.so.1", all));
  REQUIRE(runtime.handle);
  CHECK(apl::openmp_of_process() == folder.path() + "/libgomp-0123abcd.so.1");
  apl::Program program = program_of_sums();
  const auto* regions = static_cast<const int*>(dlsym(runtime.handle, "regions"));
  auto* bound = static_cast<int*>(dlsym(runtime.handle, "bound"));
  REQUIRE(regions);
  REQUIRE(bound);
  *bound = 1;
  CHECK(*regions == 0);
  CHECK(sum_of_ones(program, kMany) == kMany);
  CHECK(*regions > 0);
}

TEST_CASE("OpenMP: all programs run on one pool of threads, or where OpenMP binds threads on those") {
  auto folder = take(apl::TemporaryFolder::make("/tmp"));
  const std::string all = std::string(kCounting) + "void omp_set_num_threads(int threads) { (void)threads; }\n";
  const Loaded runtime(compiled_runtime(folder.path(), "libgomp-89ab.so.1", all));
  REQUIRE(runtime.handle);
  const auto* regions = static_cast<const int*>(dlsym(runtime.handle, "regions"));
  auto* bound = static_cast<int*>(dlsym(runtime.handle, "bound"));
  REQUIRE(regions);
  REQUIRE(bound);
  const std::size_t before = threads_of_process();
  std::size_t with_pool = 0;
  {
    apl::Program first = program_of_loops();
    CHECK(counts_on(first, kMany));
    with_pool = threads_of_process();
    CHECK(with_pool > 1);
    CHECK(with_pool <= before + 3);
  }
  // The pool outlives the program.
  apl::Program second = program_of_loops();
  CHECK(counts_on(second, kMany));
  CHECK(threads_of_process() <= with_pool);
  apl::Program products = program_of_products();
  CHECK(multiplies(products));
  CHECK(threads_of_process() <= with_pool);
  apl::Program both = program_of(
      "entry mm [n][m][k] (A: [n][m]i32) (B: [m][k]i32) : [n][k]i32 =\n"
      "  map (\\a -> map (\\b -> i32.sum (map2 (*) a b)) (transpose B)) A\n"
      "entry next [n] (xs: [n]i64) : [n]i64 = map (+ 1) xs");
  CHECK(multiplies(both));
  CHECK(counts_on(both, kMany));
  CHECK(threads_of_process() <= with_pool);
  CHECK(*regions == 0);
  *bound = 1;
  CHECK(multiplies(both));
  const int by_products = *regions;
  CHECK(by_products > 0);
  CHECK(counts_on(both, kMany));
  CHECK(*regions > by_products);
}

TEST_CASE("OpenMP: a runtime that lacks a function is not used") {
  auto folder = take(apl::TemporaryFolder::make("/tmp"));
  const Loaded runtime(compiled_runtime(folder.path(), "libgomp-4567.so.1", kCounting));
  REQUIRE(runtime.handle);
  CHECK(apl::openmp_of_process().empty());
  apl::Program program = program_of_sums();
  CHECK(sum_of_ones(program, kMany) == kMany);
}

TEST_CASE("OpenMP: a forked child calls programs that ran in parallel in its parent") {
  ::setenv("OMP_NUM_THREADS", "2", 1);
  apl::Program program = program_of_loops();
  REQUIRE(counts_on(program, kMany));
  const bool in_parallel = threads_of_process() > 1;
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // a child that waits for threads of its parent ends by a signal
    const bool alone = threads_of_process() == 1, right = counts_on(program, kMany);
    _exit(alone && right && (threads_of_process() > 1) == in_parallel ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(counts_on(program, kMany));
}
