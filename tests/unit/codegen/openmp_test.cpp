#include "runtime/backends/openmp.h"

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "codegen/emit/load.h"
#include "runtime/backends/toolchain.h"
#include "runtime/program/program.h"
#include "tests/unit/codegen/emitted.h"

namespace {

using apl::HostValue;
using emitted::take;

// A sum that is worth threads.
apl::Program program_of_sums() {
  const apl::Module source = emitted::compiled("sums.fut", "entry sums [n] (xs: [n]i64) : i64 = reduce (+) 0 xs");
  apl::ProgramOptions options;
  options.backend = "c";
  options.c_flags = {"-O1"};
  apl::Module module = source;
  auto pipeline = take(
      apl::parse_pipeline(apl::standard_pipeline(apl::Stage::memory, apl::Machine::cpu), apl::PassRegistry::builtin()));
  take(apl::run_pipeline(module, pipeline, {}));
  return take(apl::load_program(module, options));
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
  REQUIRE(regions);
  CHECK(*regions == 0);
  CHECK(sum_of_ones(program, kMany) == kMany);
  CHECK(*regions > 0);
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
  apl::Program program = program_of_sums();
  REQUIRE(sum_of_ones(program, kMany) == kMany);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // a child that waits for threads of its parent ends by a signal
    _exit(sum_of_ones(program, kMany) == kMany ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(sum_of_ones(program, kMany) == kMany);
}
