// What a command shows of the passes while they run, and how many of them run.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "passes/pipeline.h"

namespace aplc {

struct ObserveOptions {
  std::string print_before, print_after;  // names of passes with commas between, or "all"
  bool print_changed = false;
  std::string stop_after;  // PASS, or PASS:K for its K-th application
  std::optional<std::size_t> limit;
  bool statistics = false;
  bool timing = false;
  std::string reproducer;

  void add_to(CLI::App& command);           // timing, statistics, limit, reproducer
  void add_printing_to(CLI::App& command);  // the others
};

// Watches one run of a pipeline. All that it prints goes to standard error.
class Observer {
 public:
  Observer(const ObserveOptions& options, const std::map<std::string, std::int64_t>& parameters)
      : options_(options), parameters_(parameters) {}

  // Checks the names of passes in the options, and cuts the pipeline after --stop-after.
  apl::Status prepare(apl::Pipeline& pipeline, const std::vector<std::string>& disabled);
  // Adds itself to the hooks.
  void attach(apl::PipelineOptions& options);
  // After the run: the tables; the reproducer is removed where all passes succeeded.
  void finish(bool succeeded);

 private:
  struct Application {
    apl::PassReport report;
    std::size_t before = 0, after = 0;  // statements
    std::size_t applied = 0, missed = 0;
    bool skipped = false;
  };

  apl::Status check_names(const std::string& option, const std::string& names) const;
  void before(const apl::PassReport& report, const apl::Module& module);
  void after(const apl::PassReport& report, const apl::Module& module);
  void write_reproducer(const apl::PassReport& report, const apl::Module& module);
  void print_statistics() const;
  void print_timing() const;

  const ObserveOptions& options_;
  const std::map<std::string, std::int64_t>& parameters_;
  apl::Pipeline rest_;  // what is still to run
  std::size_t rest_at_ = 0;
  std::string text_before_;
  std::vector<Application> applications_;
  bool has_reproducer_ = false;
  std::chrono::steady_clock::time_point start_;
};

// The statements of a module, those of nested bodies included.
std::size_t count_statements(const apl::Module& module);

}  // namespace aplc
