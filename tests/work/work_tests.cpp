// The law of work (law.h) for programs: files, folders and random ones.
//   apl_work_tests [--every=K] [--random=COUNT] [--seed=1] [--print] [FILE.fut|FOLDER]...
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "frontend/frontend.h"
#include "tests/command_line.h"
#include "tests/random/generator.h"
#include "tests/work/faults.h"
#include "tests/work/law.h"
#include "tests/work/table.h"

namespace {

using namespace apl;
using namespace apl::work_tests;

struct Options {
  std::size_t every = 1, random = 0;
  std::uint64_t seed = 1;
  bool print = false, faults = false;
  std::vector<std::string> files;
};

class Tests {
 public:
  explicit Tests(const Options& options) : options_(options) {}

  void program(const std::string& name, const SourceFile& source) {
    std::string error;
    const auto module = compile(source, [&](const Diagnostic& d) { error = error.empty() ? d.message : error; });
    if (!module) return leave_out(name, "does not compile: " + error);
    // The entries of one file go through the passes together, unless one of them cannot.
    const auto all = make_versions(*module, PassRegistry::builtin());
    for (const FunctionPtr& function : module->functions) {
      if (!function->is_entry()) continue;
      const std::string& entry = function->entry->name;
      const bool listed = std::ranges::any_of(
          known_violations(), [&](const Known& known) { return name == known.program && entry == known.entry; });
      if (number_++ % options_.every != 0 && !listed) continue;
      check(name, entry, *module, all);
    }
  }

  int finish() {
    for (const Known& known : known_violations())
      if (programs_.contains(std::string(known.program)) && !broken_.contains(&known))
        fail(
            fmt::format("{} {} {}", known.program, known.entry, known.size),
            fmt::format("listed as a known violation ({}), but it obeys the law: take it out of the table", known.why));
    for (const auto& [why, count] : left_out_) fmt::print("left out, {}: {}\n", count, why);
    fmt::print("{} entries, {} comparisons, {} entries of which nothing was compared, {} known violations, {} failed\n",
               entries_, compared_, not_compared_, broken_.size(), failed_);
    return failed_ == 0 && compared_ > 0 ? 0 : 1;
  }

  void fault(const Planted& fault) {
    const std::string why = unnoticed(fault);
    ++entries_, ++compared_;
    if (!why.empty()) fail(fault.name, why);
  }

 private:
  void check(const std::string& name, const std::string& entry, const Module& module, const Result<Versions>& all) {
    ++entries_;
    programs_.insert(name);
    const Result<Versions> own =
        all ? Result<Versions>(Versions{}) : make_versions(alone(module, entry), PassRegistry::builtin());
    if (!own) {
      ++not_compared_;
      return leave_out(name + " " + entry, "a pass refuses it: " + own.error().message);
    }
    note(name, entry, check_entry(all ? *all : *own, entry));
    if (has_derivatives(module, entry)) note(name, entry, check_derivatives(module, entry));
  }

  void note(const std::string& name, const std::string& entry, const Outcome& outcome) {
    compared_ += outcome.compared;
    if (outcome.compared == 0 && outcome.violations.empty()) ++not_compared_;
    for (const std::string& why : outcome.left_out) leave_out(name + " " + entry, why);
    for (const Violation& violation : outcome.violations) {
      const auto known = std::ranges::find_if(known_violations(), [&](const Known& k) {
        return k.program == name && k.entry == entry && (k.size.empty() || k.size == violation.size);
      });
      if (known == known_violations().end()) {
        fail(name + " " + entry, violation.text);
        continue;
      }
      broken_.insert(&*known);
      if (options_.print) fmt::print("known: {} {}: {}\n", name, entry, violation.text);
    }
    if (options_.print) fmt::print("{} {}: {} comparisons\n", name, entry, outcome.compared);
  }

  void leave_out(const std::string& what, const std::string& why) {
    ++left_out_[why.substr(0, why.find_first_of(":[`"))];
    if (options_.print) fmt::print("left out: {}: {}\n", what, why);
  }

  void fail(const std::string& what, const std::string& why) {
    ++failed_;
    fmt::print("FAILED {}: {}\n", what, why);
    std::fflush(stdout);
  }

  const Options& options_;
  std::size_t number_ = 0;
  int entries_ = 0, compared_ = 0, not_compared_ = 0, failed_ = 0;
  std::map<std::string, int> left_out_;  // by reason, without its details
  std::set<std::string> programs_;
  std::set<const Known*> broken_;
};

std::string read(const std::filesystem::path& path) {
  std::ifstream stream(path);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

std::vector<std::filesystem::path> programs_of(const std::string& name) {
  namespace fs = std::filesystem;
  if (!fs::is_directory(name)) return {name};
  std::vector<fs::path> found;
  for (const auto& file : fs::recursive_directory_iterator(name))
    if (file.path().extension() == ".fut") found.push_back(file.path());
  std::ranges::sort(found);
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  apl::CommandLine line("whether passes make programs do more than their text says");
  line.option("--every", options.every, "every K-th entry of the files, and those that are known to fail");
  line.option("--random", options.random, "the number of random programs");
  line.option("--seed", options.seed, "of the first of them");
  line.flag("--faults", options.faults, "plant faults in passes, which the law has to notice");
  line.flag("--print", options.print, "print each entry, and what is left out");
  line.arguments("FILE", options.files, "programs, and folders of them");
  if (const auto code = line.parse(argc, argv)) return *code;
  Tests tests(options);
  for (const std::string& name : options.files)
    for (const auto& path : programs_of(name))
      tests.program(path.filename().string(), {.name = path.string(), .text = read(path)});
  for (std::size_t k = 0; k < options.random; ++k) {
    const random_tests::Program program = random_tests::random_program(options.seed + k);
    tests.program(fmt::format("seed {}", options.seed + k),
                  {.name = "random.fut", .text = random_tests::to_text(program.definitions)});
  }
  for (const Planted& fault : faults())
    if (options.faults) tests.fault(fault);
  return tests.finish();
}
