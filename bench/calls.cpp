// Times around calls.
#include <fmt/format.h>

#include <unistd.h>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "bench/ablation.h"
#include "bench/cases.h"

namespace apl::bench {

namespace {

// Six free dims an operand, one contracted.
constexpr const char* kRank12 =
    "entry rank12 [a][b][c][d][e][f][g][h][i][j][k][l][q]\n"
    "    (X: [c][a][q][e][k][i][g]f32) (Y: [b][l][d][f][q][j][h]f32) : [a][b][c][d][e][f][g][h][i][j][k][l]f32 =\n"
    "  tabulate_3d a b c (\\ia ib ic -> tabulate_3d d e f (\\id ie i_f -> tabulate_3d g h i (\\ig ih ii ->\n"
    "    tabulate_3d j k l (\\ij ik il ->\n"
    "      f32.sum (tabulate q (\\iq -> X[ic, ia, iq, ie, ik, ii, ig] * Y[ib, il, id, i_f, iq, ij, ih]))))))\n";

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

bool run_calls(const AblationOptions& options, nlohmann::ordered_json& all) {
  using Clock = std::chrono::steady_clock;
  bool ok = true;
  const std::clock_t cpu = std::clock();
  const auto text = generate_host("rank12.fut", kRank12, "cuda", {}, usual_plans("cuda"));
  const double source_to_text = 1000.0 * static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC;
  if (!text) fmt::print("rank 12: {}\n", text.error().message);
  const bool tiled = text && text->find("tile of X") != std::string::npos;
  if (text && !tiled) fmt::print("rank 12: not tiled\n");
  ok = ok && tiled;
  fmt::print("\nTimes, ms\n{:<44} {:>9.1f}\n", "source to CUDA text, rank 12 (processor time)", source_to_text);
  all["calls"]["rank12_source_to_text_ms"] = source_to_text;

  // mm1: compiled, from a cache of another process' objects, then with other sizes.
  const std::string folder = std::filesystem::temp_directory_path() / fmt::format("apl-bench-{}", ::getpid());
  ProgramOptions load;
  load.backend = options.backend;
  const std::int64_t n = options.small ? 64 : 1024;
  Case first, second;
  for (const Case& c : cases(options.small))
    if (c.name == "mm1") first = second = c;
  for (auto& [dim, size] : first.sizes) size = n;
  for (auto& [dim, size] : second.sizes) size = n - 24;
  const std::vector<HostValue> inputs = random_inputs(first), others = random_inputs(second);
  for (const char* what : {"first call, compiled", "first call, from the cache"}) {
    load.cache = std::make_shared<ObjectCache>(folder);
    const auto start = Clock::now();
    auto program = load_file(options.examples + "/mm1.fut", {}, load, usual_plans(options.backend));
    auto result = program ? program->call("mm1", inputs) : Result<std::vector<HostValue>>(program.error());
    const double time = milliseconds_since(start);
    if (!result) {
      fmt::print("{}: {}\n", what, result.error().message);
      ok = false;
      break;
    }
    fmt::print("{:<44} {:>9.1f}\n", what, time);
    all["calls"][what] = time;
    for (const auto& [name, values] :
         {std::pair{"call with new sizes", &others}, std::pair{"the same again", &others}}) {
      const auto again = Clock::now();
      ok = program->call("mm1", *values) && ok;
      const double call_time = milliseconds_since(again);
      fmt::print("{:<44} {:>9.1f}\n", fmt::format("  {}", name), call_time);
      all["calls"][fmt::format("{}: {}", what, name)] = call_time;
    }
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return ok;
}

}  // namespace apl::bench
