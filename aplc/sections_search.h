// What `aplc sections` measures: programs, or on a GPU kernels, for tiles of a product with a constant matrix.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "aplc/arguments.h"
#include "aplc/cleanup.h"
#include "aplc/driver.h"
#include "aplc/sections_device.h"
#include "runtime/program/program.h"

namespace aplc {

struct SectionsOptions : CompileOptions {
  std::string entry, backend = "c", output, log, svg, kernels, json;
  std::vector<std::string> arguments, tiles;
  std::int64_t clusters = 0;
  bool no_clusters = false, no_truncation = false, no_sharing = false, no_occupancy = false, no_pruning = false;
  bool exhaustive = false, no_final = false, least = false;
  int runs = 30, jobs = 0, finalists = 0;
  double seconds = 0;

  Reductions reductions() const {
    return {.kernels = !no_sharing,
            .clusters = !no_clusters,
            .loops = !no_truncation,
            .shares = !no_occupancy,
            .cluster_count = clusters};
  }
};

// Where no number of clusters was given: on a CPU all threads run functions of one cache.
apl::ProxyOptions proxy_options(const SectionsOptions& options);

class SectionsSearch {
 public:
  SectionsSearch(const SectionsOptions& options, Session& session, std::string entry, std::string operand,
                 const std::vector<apl::HostValue>& values, const GivenMatrices& matrices, std::string place,
                 WorkFolder folder, DeviceTiles* device)
      : options_(options),
        session_(session),
        prefix_(fmt::format("{}.{}.", entry, operand)),
        entry_(std::move(entry)),
        values_(values),
        matrices_(matrices),
        module_(session.module()),
        place_(std::move(place)),
        folder_(std::move(folder)),
        device_(device) {}

  // Times that an interrupted run left, by `KIND ROWS COLUMNS PIECES` and the time.
  void read_log();

  // What is measured: a proxy, the code for the matrix, the kernels of any sparse operand, the dense product.
  enum class Kind { proxy, constant, sparse, dense };

  // Compiles on several threads first, as compilers take nearly all of the time, and times one program after the other,
  // while none is compiled. What was timed is in the log after each group of tiles.
  std::vector<std::optional<double>> measure(const std::vector<Tile>& tiles, Kind kind);
  std::optional<double> measure(const Tile& tile, Kind kind) { return measure(std::vector{tile}, kind).front(); }
  double seconds() const { return seconds_; }
  // What is known of a kernel beside its time; null if it was not compiled in this run, or is no GPU's.
  const DeviceTiles::Timed* details(const Tile& tile, Kind kind) const;

 private:
  // A program that is compiled and waits to be timed.
  struct Prepared {
    std::optional<apl::Program> program;
    std::vector<apl::HostValue> values;
    std::optional<apl::Diagnostic> error;
  };

  static double seconds_since(std::chrono::steady_clock::time_point start);
  bool is_late() const;
  std::string log_name(const Tile& tile, Kind kind) const { return fmt::format("{} {}", kind_name(kind), tile.text()); }
  void add_to_log(const std::string& name, double time);
  void measure_on_device(const std::vector<Tile>& tiles, Kind kind, std::vector<std::optional<double>>& times);
  // Times are of a matrix, a width and a backend: a log may have those of others.
  std::string kind_name(Kind kind) const;
  void measure_group(const std::vector<Tile>& tiles, Kind kind, int threads, std::vector<std::optional<double>>& times);
  // Is called by several threads at a time.
  Prepared prepare(const Tile& tile, Kind kind) const;
  std::optional<double> time(Prepared& prepared);
  std::optional<double> complain(const std::optional<apl::Diagnostic>& error);

  const SectionsOptions& options_;
  Session& session_;
  const std::string prefix_, entry_;
  const std::vector<apl::HostValue>& values_;
  const GivenMatrices& matrices_;
  const apl::Module& module_;
  const std::string place_;
  const WorkFolder folder_;
  DeviceTiles* const device_;  // null for backends that are no GPU
  const std::shared_ptr<apl::ObjectCache> cache_ = std::make_shared<apl::ObjectCache>(cache_folder());
  std::map<std::string, double> known_;
  std::map<std::string, DeviceTiles::Timed> details_;
  std::string log_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double seconds_ = 0;
};

}  // namespace aplc
