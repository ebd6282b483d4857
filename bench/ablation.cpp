#include "bench/ablation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "bench/cases.h"

namespace apl::bench {

namespace {

// Numbers behind an entry's name; the mainloop is the default of each.
struct Variant {
  const char* name;
  Parameters numbers;
};

std::vector<Variant> variants() {
  return {{"default", {}},
          {"1 stage", {{"stages", 1}}},
          {"2 stages", {{"stages", 2}}},
          {"4 stages", {{"stages", 4}}},
          {"one tile a block", {{"tiles_per_block", 1}}},
          {"no swizzle", {{"swizzle", 1}}},
          {"copies of 4 bytes", {{"copy", 2}}},
          {"copies by registers", {{"copy", 1}}},
          {"no remainder", {{"remainder", 2}}},
          {"general kernel", {{"mainloop", 1}}}};
}

// How many passes a warp's stores take that put eight steps of the depth of four rows into a tile of so many rows, one
// f32 each: those of elements in one of 32 banks follow each other.
int store_passes(int rows, bool swizzled) {
  std::map<int, std::set<int>> banks;
  for (int lane = 0; lane < 32; ++lane) {
    const int q = lane % 8, m = lane / 8, swizzle = (q & 3) * 8 ^ (q & 4);
    const int word = q * rows + (swizzled ? m ^ swizzle : m);
    banks[word % 32].insert(word);
  }
  std::size_t most = 0;
  for (const auto& [bank, words] : banks) most = std::max(most, words.size());
  return static_cast<int>(most);
}

// Emulation is for trying the program out.
std::vector<Case> chosen_cases(const AblationOptions& options) {
  std::vector<Case> all = cases(options.small);
  if (options.backend == "emulate")
    for (Case& c : all)
      for (auto& [dim, size] : c.sizes) size = std::min<std::int64_t>(size, c.z == "ab" ? 64 : dim == 'q' ? 16 : 4);
  return all;
}

Parameters prefixed(const std::string& entry, const Parameters& numbers) {
  Parameters all;
  for (const auto& [name, number] : numbers) all[entry + "." + name] = number;
  return all;
}

struct Job {
  std::string file;
  Parameters parameters;
  int plans = 1;
  bool operator<(const Job& other) const {
    return std::tie(file, parameters, plans) < std::tie(other.file, other.parameters, other.plans);
  }
};
using Programs = std::map<Job, Result<Program>>;

// Compiles them in parallel.
Programs load_all(const AblationOptions& options, const std::set<Job>& jobs) {
  const std::vector<Job> list(jobs.begin(), jobs.end());
  const std::size_t threads = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 8);
  const auto some = [&](std::size_t first) {
    ProgramOptions load;
    load.backend = options.backend;
    load.c_flags = {"-O1"};
    std::vector<std::pair<Job, Result<Program>>> done;
    for (std::size_t k = first; k < list.size(); k += threads)
      done.emplace_back(list[k],
                        load_file(options.examples + "/" + list[k].file, list[k].parameters, load, list[k].plans));
    return done;
  };
  std::vector<std::future<std::vector<std::pair<Job, Result<Program>>>>> parts;
  for (std::size_t t = 0; t < threads; ++t) parts.push_back(std::async(std::launch::async, some, t));
  Programs all;
  for (auto& part : parts)
    for (auto& [job, program] : part.get()) all.emplace(job, std::move(program));
  return all;
}

// Median microseconds, or an error's text.
Result<double> time_of(Programs& programs, const Job& job, const Case& c, const std::vector<HostValue>& inputs,
                       int runs) {
  Result<Program>& program = programs.at(job);
  if (!program) return program.error();
  auto times = program->benchmark(c.entry, inputs, runs);
  if (!times) return std::move(times).error();
  return median(*std::move(times));
}

}  // namespace

bool run_ablation(const AblationOptions& options, nlohmann::ordered_json& all) {
  const std::set<std::string> wanted{"mm0", "mm1", "sd1_7_ds1", "sd1_7_ds2", "sd1_7_ds4", "sd2_3_ds1"};
  std::vector<Case> chosen;
  std::set<Job> jobs;
  for (const Case& c : chosen_cases(options)) {
    if (!wanted.contains(c.name)) continue;
    chosen.push_back(c);
    for (const Variant& v : variants()) jobs.insert({c.file, prefixed(c.entry, v.numbers)});
  }
  Programs programs = load_all(options, jobs);
  fmt::print("\nGFLOP/s by form\n{:<22}", "");
  for (const Case& c : chosen) fmt::print(" {:>10}", c.name);
  fmt::print("\n");
  bool ok = true;
  std::map<std::string, std::vector<HostValue>> inputs;
  for (const Case& c : chosen) inputs[c.name] = random_inputs(c);
  for (const Variant& v : variants()) {
    fmt::print("{:<22}", v.name);
    for (const Case& c : chosen) {
      const auto time = time_of(programs, {c.file, prefixed(c.entry, v.numbers)}, c, inputs[c.name], options.runs);
      ok = ok && time;
      fmt::print(" {:>10}", time ? fmt::format("{:.4g}", operations(c) / *time / 1000) : "error");
      std::fflush(stdout);
      if (time) {
        all["forms"][v.name][c.name] = *time;
      } else {
        all["forms"][v.name][c.name] = time.error().message;
      }
    }
    fmt::print("\n");
  }
  const int without = store_passes(128, false), with = store_passes(128, true);
  fmt::print("predicted passes of a warp's transposing stores: {} without the swizzle, {} with it\n", without, with);
  all["predicted_store_passes"] = {{"swizzle", with}, {"none", without}};
  return ok;
}

bool run_parameter_sets(const AblationOptions& options, nlohmann::ordered_json& all) {
  // Threads and registers of the M and of the N dim, and the depth.
  struct Set {
    int slow_threads, slow_registers, fast_threads, fast_registers, depth;
  };
  const std::vector<Set> sets{{16, 8, 8, 16, 16}, {16, 8, 8, 16, 8},  {16, 8, 8, 16, 32},
                              {16, 8, 16, 8, 16}, {8, 8, 8, 16, 16},  {8, 8, 8, 8, 16},
                              {16, 4, 16, 8, 16}, {16, 4, 16, 4, 16}, {16, 8, 8, 8, 16}};
  // In each entry the innermost M and N dims.
  const std::map<std::string, std::pair<char, char>> mn_dims{{"mm0", {'a', 'b'}},   {"mm1", {'a', 'b'}},
                                                             {"mm2", {'a', 'b'}},   {"mm3", {'a', 'b'}},
                                                             {"sd1_7", {'i', 'k'}}, {"sd2_3", {'j', 'k'}}};
  const auto numbers = [&](const Case& c, const Set& s) {
    const auto [slow, fast] = mn_dims.at(c.entry);
    Parameters p{{fmt::format("T_{}", slow), s.slow_threads},
                 {fmt::format("R_{}", slow), s.slow_registers},
                 {fmt::format("T_{}", fast), s.fast_threads},
                 {fmt::format("R_{}", fast), s.fast_registers},
                 {"T_q", s.depth}};
    for (char d : c.z)
      if (d != slow && d != fast) p[fmt::format("T_{}", d)] = p[fmt::format("R_{}", d)] = 1;
    return prefixed(c.entry, p);
  };
  // Instances: the cases, and matrices of other sizes.
  std::vector<Case> chosen = chosen_cases(options);
  for (const Case& c : chosen_cases(options))
    if (c.z == "ab" && options.backend != "emulate")
      for (const std::int64_t n : {1000, 2048, 500}) {
        Case other = c;
        other.name += fmt::format("_{}", options.small ? n / 8 : n);
        for (auto& [dim, size] : other.sizes) size = options.small ? n / 8 : n;
        chosen.push_back(other);
      }
  // The last row is what is chosen when sizes are known.
  const auto job = [&](const Case& c, std::size_t k) {
    return k < sets.size() ? Job{c.file, numbers(c, sets[k])} : Job{c.file, {}, usual_plans(options.backend)};
  };
  std::set<Job> jobs;
  for (const Case& c : chosen)
    for (std::size_t k = 0; k <= sets.size(); ++k) jobs.insert(job(c, k));
  Programs programs = load_all(options, jobs);
  std::vector<std::vector<double>> times(sets.size() + 1);
  bool ok = true;
  for (const Case& c : chosen) {
    const std::vector<HostValue> inputs = random_inputs(c);
    for (std::size_t k = 0; k <= sets.size(); ++k) {
      const auto time = time_of(programs, job(c, k), c, inputs, options.runs);
      ok = ok && time;
      times[k].push_back(time ? *time : INFINITY);
    }
  }
  fmt::print("\nOne set of numbers for all {} instances, against the best of {} for each\n", chosen.size(),
             sets.size());
  fmt::print("{:<18} {:>10} {:>10}  {}\n", "slow fast depth", "mean", "worst", "where");
  for (std::size_t k = 0; k <= sets.size(); ++k) {
    double logs = 0, worst = 1;
    std::string where;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      double best = INFINITY;
      for (const auto& of_set : times) best = std::min(best, of_set[i]);
      const double ratio = best / times[k][i];
      logs += std::log(std::max(ratio, 1e-9));
      if (ratio < worst) worst = ratio, where = chosen[i].name;
    }
    std::string name = "chosen by sizes";
    if (k < sets.size()) {
      const Set& s = sets[k];
      name = fmt::format("{}x{} {}x{} {}", s.slow_threads, s.slow_registers, s.fast_threads, s.fast_registers, s.depth);
    }
    const double mean = std::exp(logs / static_cast<double>(chosen.size()));
    fmt::print("{:<18} {:>10.3f} {:>10.3f}  {}\n", name, mean, worst, where);
    all["sets"][name] = {{"mean", mean}, {"worst", worst}, {"where", where}};
    for (std::size_t i = 0; i < chosen.size(); ++i) all["sets"][name]["microseconds"][chosen[i].name] = times[k][i];
  }
  return ok;
}

}  // namespace apl::bench
