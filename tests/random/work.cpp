#include "tests/random/work.h"

#include <atomic>
#include <cerrno>
#include <fstream>
#include <memory>
#include <string_view>
#include <utility>

#include "ir/system_error.h"
#include "runtime/backends/toolchain.h"

namespace {

// Stands before the generated C: what the backend and the library copy is counted, too.
constexpr std::string_view kCounted = R"(
#include <stdint.h>
#include <string.h>
int64_t apl_count_bytes(int64_t bytes);
#define copy(ctx, to, from, bytes) copy(ctx, to, from, apl_count_bytes((int64_t)(bytes)))
#define memcpy(to, from, bytes) memcpy(to, from, (size_t)apl_count_bytes((int64_t)(bytes)))
)";

std::atomic<std::int64_t> work = 0;

}  // namespace

// Programs under test find these in the program that loads them. The first is called by each basic block.
extern "C" {
void __sanitizer_cov_trace_pc() {  // NOLINT(bugprone-reserved-identifier): the compiler's name
  work.fetch_add(1, std::memory_order_relaxed);
}
std::int64_t apl_count_bytes(std::int64_t bytes) {
  work.fetch_add(bytes / 8, std::memory_order_relaxed);
  return bytes;
}
}

namespace apl::random_tests {

Result<testing::LoadModule> load_counting(const std::string& compiler) {
  auto made = TemporaryFolder::make("/tmp");
  if (!made) return std::move(made).error();
  const auto folder = std::make_shared<TemporaryFolder>(*std::move(made));
  const std::string header = folder->path() + "/counted.h";
  if (!(std::ofstream(header) << kCounted)) return system_error(errno, "cannot write " + header);
  ProgramOptions options;
  options.c_compiler = compiler;
  // Loops stay loops: neither calls of memset and memcpy, nor several rounds in one block.
  options.c_flags = {"-O1", "-fsanitize-coverage=trace-pc", "-include", header};
  return testing::LoadModule(
      [folder, load = testing::load_as_users_do(options)](const Module& module, const CodegenOptions& codegen) {
        return load(module, codegen);
      });
}

std::int64_t counted_work() { return work.load(std::memory_order_relaxed); }

}  // namespace apl::random_tests
