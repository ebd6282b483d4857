// Whatever the text is, readers say what is wrong with it: they do not crash, nor take more than 10 s or 1 GB. What
// they accept goes through the standard pipeline.
//   apl_fuzz_tests [--count=400] [--seed=1] [--readers=source,ir,values,matrix,tiling] [--print]
// Input k is made from the seed plus k alone; seeds of other readers are left out and not counted. Readers run in a
// process of their own; what it dies of is made smaller.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "frontend/frontend.h"
#include "ir/host_value.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "passes/pipeline.h"
#include "passes/sparse/composition.h"
#include "passes/sparse/profile.h"
#include "passes/sparse/read.h"
#include "runtime/sparse/csr_view.h"
#include "runtime/sparse/sparse.h"
#include "suite/test_block.h"
#include "tests/command_line.h"
#include "tests/fuzz/mutate.h"

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;  // has its own idea of memory
#else
constexpr bool kSanitized = false;
#endif

namespace {

using namespace apl::fuzz;
using Clock = std::chrono::steady_clock;

constexpr rlim_t kMemory = rlim_t{1} << 30;
constexpr int kMostFiles = 10;
constexpr std::chrono::seconds kTime{kSanitized ? 60 : 10};

volatile std::sig_atomic_t interrupted = 0;

// How far the child has come, in memory that it shares with its parent.
struct Progress {
  std::uint64_t started = 0, accepted = 0;
};

void require(bool condition) {
  if (!condition) std::abort();
}

// The passes take what the verifier accepts; they may have to refuse it, but never leave something wrong.
void run_passes(apl::Module module) {
  if (module.stage == apl::Stage::memory) return;
  const auto pipeline =
      apl::parse_pipeline(module.stage == apl::Stage::soac ? apl::standard_pipeline(apl::Stage::memory)
                                                           : "simplify,cse,tile-contraction,simplify,place-memory",
                          apl::PassRegistry::builtin());
  const apl::Status status = apl::run_pipeline(module, *pipeline, {});
  if (status || apl::code_fault(status.error().code) != apl::Fault::bug) return;
  fmt::print(stderr, "{}\n", status.error().message);
  std::abort();
}

// Tiles of the plan for a matrix of its sizes: each non-zero is in one of them, once.
void pack_tiles(apl_sparse_plan& plan) {
  constexpr std::int64_t kMost = 1000;
  if (plan.dense || plan.rows > kMost || plan.columns > kMost) return;
  apl::sparse::Csr matrix{plan.rows, plan.columns, {0}, {}, {}};
  for (std::int64_t row = 0; row < plan.rows; ++row) {
    for (std::int64_t column = row * 7 % 11; column < plan.columns; column += 1 + row % 13)
      matrix.column.push_back(static_cast<std::int32_t>(column));
    matrix.row_start.push_back(matrix.nonzeros());
  }
  const apl_sparse_csr csr = apl::csr_view(matrix);
  plan.nonzeros = csr.nonzeros;
  plan.hash = apl_sparse_hash(&csr);
  apl_sparse_tiles* tiles = nullptr;
  const int status = apl_sparse_pack(&csr, &plan, &tiles);
  // What its lists are padded to is the plan's choice, up to a bound.
  if (status == APL_SPARSE_PADDED) return;
  require(status == APL_SPARSE_FINE);
  std::vector<int> seen(matrix.column.size());
  const auto count = [&](const std::int32_t* source, std::int64_t elements) {
    for (std::int64_t k = 0; k < elements; ++k)
      if (source[k] >= 0) ++seen.at(static_cast<std::size_t>(source[k]));
  };
  count(tiles->block_source, tiles->block_elements);
  count(tiles->ell_source, tiles->ell_elements);
  count(tiles->segment_source, tiles->segment_elements);
  require(std::all_of(seen.begin(), seen.end(), [](int n) { return n == 1; }));
  apl_sparse_tiles_free(tiles);
}

// Plans, compositions and profiles: a text is at most one of them.
bool read_tiling(const std::string& text) {
  apl_sparse_plan* plan = nullptr;
  std::array<char, 200> message{};
  const int status = apl_sparse_plan_parse(text.data(), text.size(), &plan, message.data(), message.size());
  require((status == APL_SPARSE_FINE) == (plan != nullptr) && (plan || message[0] != 0));
  const bool is_plan = plan != nullptr;
  if (plan) pack_tiles(*plan);
  apl_sparse_plan_free(plan);
  const auto profile = apl::sparse::parse_profile(text);
  if (profile) {
    const auto again = apl::sparse::parse_profile(apl::sparse::to_text(*profile));
    require(again && *again == *profile);
  }
  const auto composition = apl::sparse::parse_composition(text);
  if (composition) {
    const auto again = apl::sparse::parse_composition(apl::sparse::to_text(*composition));
    require(again && *again == *composition);
  }
  return is_plan || profile || composition;
}

// Whether the readers accept the text. What is accepted is well-formed; what is refused has a reason.
bool read(const Input& input) {
  switch (input.reader) {
    case Reader::source: {
      int errors = 0;
      (void)apl::suite::parse_test_blocks(input.text);
      // A file that imports another one does so again where that lies.
      int files = 0;
      apl::SourceFile file{.name = "fuzz.fut", .text = input.text};
      file.read = [&](const std::string&) {
        return ++files <= kMostFiles ? std::optional(input.imported) : std::nullopt;
      };
      const auto module = apl::compile(file, [&](const apl::Diagnostic& d) {
        errors += d.severity == apl::Severity::error ? 1 : 0;
        require(!apl::render(d, "fuzz.fut", input.text).empty());
      });
      require(module.has_value() == (errors == 0));
      if (module) {
        require(apl::verify(*module).empty());
        run_passes(*module);
      }
      return module.has_value();
    }
    case Reader::ir: {
      const auto module = apl::parse_module(input.text, "fuzz");
      if (!module) {
        require(!module.error().message.empty());
        return false;
      }
      if (!apl::verify(*module).empty()) return false;
      const std::string printed = apl::print(*module);
      const auto again = apl::parse_module(printed, "fuzz");
      require(again && apl::print(*again) == printed);
      run_passes(*module);
      return true;
    }
    case Reader::values: {
      const auto values = apl::parse_values(input.text);
      if (!values) return false;
      for (const apl::HostValue& value : *values) {
        const auto same = apl::parse_values(value.to_binary());
        require(same && same->size() == 1 && same->front() == value);
      }
      return true;
    }
    case Reader::matrix: {
      const auto matrix = apl::sparse::read_matrix(input.text);
      if (!matrix) {
        require(!matrix.error().message.empty() && matrix.error().location);
        return false;
      }
      const auto again = apl::sparse::read_matrix(apl::sparse::to_matrix_market(*matrix));
      require(again && apl::sparse::pattern_hash(*again) == apl::sparse::pattern_hash(*matrix));
      return true;
    }
    case Reader::tiling: return read_tiling(input.text);
  }
  return false;
}

// Reads inputs first .. last - 1 in a child; what it died of, or nothing. `progress` says where.
std::string in_child(const std::function<Input(std::uint64_t)>& input, std::uint64_t first, std::uint64_t last,
                     Progress& progress) {
  progress.started = first;
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    if (!kSanitized) {
      const rlimit limit{kMemory, kMemory};
      ::setrlimit(RLIMIT_AS, &limit);
    }
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    for (std::uint64_t k = first; k < last; ++k) {
      __atomic_store_n(&progress.started, k, __ATOMIC_RELAXED);
      if (read(input(k))) __atomic_fetch_add(&progress.accepted, 1, __ATOMIC_RELAXED);
    }
    std::_Exit(0);
  }
  std::uint64_t seen = first;
  auto since = Clock::now();
  for (;;) {
    int status = 0;
    if (::waitpid(child, &status, WNOHANG) == child) {
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
      return WIFSIGNALED(status) ? fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)))
                                 : fmt::format("exit code {}", WEXITSTATUS(status));
    }
    const std::uint64_t now = __atomic_load_n(&progress.started, __ATOMIC_RELAXED);
    if (now != seen) seen = now, since = Clock::now();
    if (Clock::now() - since > kTime || interrupted != 0) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      return interrupted != 0 ? "interrupted" : "no end";
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// Pieces go as long as it still dies of the same.
std::string smaller(Input input, const std::string& why, Progress& progress) {
  const auto end = Clock::now() + std::chrono::seconds(60);
  for (std::size_t piece = input.text.size() / 2; piece > 0; piece /= 2)
    for (std::size_t at = 0; at < input.text.size() && Clock::now() < end && interrupted == 0;) {
      Input candidate = input;
      candidate.text.erase(at, piece);
      if (in_child([&](std::uint64_t) { return candidate; }, 0, 1, progress) == why) {
        input = std::move(candidate);
      } else {
        at += piece;
      }
    }
  return input.text;
}

}  // namespace

int main(int argc, char** argv) {
  apl::CommandLine line("feeds damaged texts to every reader");
  std::uint64_t seed = 1, count = 400;
  bool print = false;
  line.option("--seed", seed, "of the first input");
  line.option("--count", count, "inputs");
  std::set<Reader> readers;
  const std::map<std::string, Reader> names = {{"source", Reader::source},
                                               {"ir", Reader::ir},
                                               {"values", Reader::values},
                                               {"matrix", Reader::matrix},
                                               {"tiling", Reader::tiling}};
  std::vector<std::string> texts, given;
  for (const auto& [text, reader] : names) texts.push_back(text);
  line.choices("--readers", given, texts, "only inputs for these");
  line.flag("--print", print, "print the inputs and read nothing");
  if (const auto code = line.parse(argc, argv)) return *code;
  for (const std::string& text : given) readers.insert(names.at(text));
  std::signal(SIGINT, [](int) { interrupted = 1; });
  const Pool pool = read_pool(APL_SOURCE_DIR);
  std::vector<std::uint64_t> seeds;
  for (std::uint64_t k = seed; seeds.size() < count; ++k)
    if (readers.empty() || readers.count(reader_of(k)) > 0) seeds.push_back(k);
  const auto input = [&](std::uint64_t n) { return mutated(pool, seeds[n]); };
  if (print) {
    for (std::uint64_t n = 0; n < count; ++n) fmt::print("{}\n", input(n).text);
    return 0;
  }
  void* shared = ::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  Progress& progress = *new (shared) Progress;
  int failed = 0;
  constexpr std::uint64_t kBatch = 1000;
  for (std::uint64_t n = 0; n < count && interrupted == 0;) {
    const std::uint64_t last = std::min(n + kBatch, count);
    const std::string why = in_child(input, n, last, progress);
    if (why.empty()) {
      n = last;
      if (count > kBatch) fmt::print(stderr, "{} of {}: {} failed\n", n, count, failed);
      continue;
    }
    if (interrupted != 0) break;
    const std::uint64_t culprit = progress.started;
    const std::uint64_t accepted = progress.accepted;
    ++failed;
    fmt::print("FAILED --seed={} --count=1: reader {}: {}\n", seeds[culprit], static_cast<char>(input(culprit).reader),
               why);
    const std::string text = smaller(input(culprit), why, progress);
    fmt::print("smaller, {} bytes:\n{}\n", text.size(), text.substr(0, 2000));
    std::fflush(stdout);
    progress.accepted = accepted;
    n = culprit + 1;
  }
  fmt::print("{} inputs, {} accepted, {} failed\n", count, progress.accepted, failed);
  // Some changes are harmless, most are not: the test sees both sides.
  const bool both = count < 100 || (progress.accepted > 0 && progress.accepted < count * 3 / 4);
  return failed == 0 && interrupted == 0 && both ? 0 : 1;
}
