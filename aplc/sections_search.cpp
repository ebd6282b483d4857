#include "aplc/sections_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "aplc/registry.h"
#include "aplc/sparse/constants.h"
#include "codegen/emit/load.h"
#include "ir/attributes.h"
#include "ir/read_file.h"
#include "passes/sparse/parallel.h"

namespace aplc {

apl::ProxyOptions proxy_options(const SectionsOptions& options) {
  constexpr std::int64_t kOnHost = 12, kOnDevice = 24;
  const std::int64_t clusters = options.clusters > 0 ? options.clusters : options.backend == "c" ? kOnHost : kOnDevice;
  return {.clusters = options.no_clusters ? 0 : clusters,
          .truncates = !options.no_truncation,
          .moves_rows = options.backend != "c"};
}

double SectionsSearch::seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

bool SectionsSearch::is_late() const { return options_.seconds > 0 && seconds_since(start_) > options_.seconds; }

void SectionsSearch::read_log() {
  const auto text = options_.log.empty() ? apl::Result<std::string>(std::string()) : apl::read_bytes(options_.log);
  std::istringstream lines(text ? *text : "");
  std::string kind;
  Tile tile;
  double time = 0;
  while (lines >> kind >> tile.rows >> tile.columns >> tile.pieces >> time) known_[kind + " " + tile.text()] = time;
  log_ = text ? *text : "";
}

std::vector<std::optional<double>> SectionsSearch::measure(const std::vector<Tile>& tiles, Kind kind) {
  const int threads = apl::sparse::thread_count(options_.jobs);
  const bool on_device = device_ != nullptr && (kind == Kind::proxy || kind == Kind::constant);
  // Tiles share proxies on a GPU, where nothing but compiling takes long.
  const std::size_t group = on_device ? kind == Kind::proxy ? tiles.size() : static_cast<std::size_t>(threads) * 3
                                      : static_cast<std::size_t>(threads) * 4;
  std::vector<std::optional<double>> times;
  while (times.size() < tiles.size()) {
    const std::size_t end = std::min(times.size() + group, tiles.size());
    if (is_late() && (kind == Kind::proxy || kind == Kind::constant)) {
      times.resize(tiles.size());
      break;
    }
    const std::vector<Tile> some{tiles.begin() + static_cast<std::ptrdiff_t>(times.size()),
                                 tiles.begin() + static_cast<std::ptrdiff_t>(end)};
    if (on_device) {
      measure_on_device(some, kind, times);
    } else {
      measure_group(some, kind, threads, times);
    }
    if (tiles.size() > 1) print_error("\r{} tiles, {:.1f} s", times.size(), seconds_);
  }
  if (tiles.size() > 1) print_error("\n");
  return times;
}

const DeviceTiles::Timed* SectionsSearch::details(const Tile& tile, Kind kind) const {
  const auto found = details_.find(log_name(tile, kind));
  return found == details_.end() ? nullptr : &found->second;
}

void SectionsSearch::add_to_log(const std::string& name, double time) {
  known_[name] = time;
  log_ += fmt::format("{} {:.4f}\n", name, time);
  if (!options_.log.empty()) emit(options_.log, log_);
}

void SectionsSearch::measure_on_device(const std::vector<Tile>& tiles, Kind kind,
                                       std::vector<std::optional<double>>& times) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<Tile> missing;
  for (const Tile& tile : tiles)
    if (!known_.contains(log_name(tile, kind))) missing.push_back(tile);
  if (!missing.empty()) {
    const auto found = device_->measure(missing, kind == Kind::proxy);
    for (std::size_t k = 0; k < missing.size(); ++k) {
      if (!found[k]) {
        complain(found[k].error());
        continue;
      }
      details_[log_name(missing[k], kind)] = *found[k];
      add_to_log(log_name(missing[k], kind), found[k]->microseconds);
    }
    seconds_ += seconds_since(start);
  }
  for (const Tile& tile : tiles) {
    const auto found = known_.find(log_name(tile, kind));
    times.push_back(found == known_.end() ? std::optional<double>() : found->second);
  }
}

std::string SectionsSearch::kind_name(Kind kind) const {
  std::string name = kind == Kind::proxy      ? "proxy"
                     : kind == Kind::constant ? "constant"
                     : kind == Kind::sparse   ? "sparse"
                                              : "dense";
  if (kind == Kind::proxy)
    name += fmt::format("-{}-{}",
                        options_.no_clusters     ? "own"
                        : options_.clusters == 0 ? "auto"
                                                 : fmt::format("{}", options_.clusters),
                        options_.no_truncation ? "whole" : "cut");
  if (kind == Kind::proxy && device_ != nullptr)
    name += fmt::format("-{}-{}", options_.no_sharing ? "each" : "shared", options_.no_occupancy ? "free" : "held");
  return fmt::format("{}@{}", name, place_);
}

void SectionsSearch::measure_group(const std::vector<Tile>& tiles, Kind kind, int threads,
                                   std::vector<std::optional<double>>& times) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<Prepared> programs(tiles.size());
  apl::sparse::in_pieces(std::ssize(tiles), 1, threads, [&](std::int64_t begin, std::int64_t) {
    const auto k = static_cast<std::size_t>(begin);
    if (!known_.contains(log_name(tiles[k], kind))) programs[k] = prepare(tiles[k], kind);
  });
  bool measured = false;
  for (std::size_t k = 0; k < tiles.size(); ++k) {
    const std::string name = log_name(tiles[k], kind);
    if (const auto found = known_.find(name); found != known_.end()) {
      times.emplace_back(found->second);
      continue;
    }
    times.push_back(time(programs[k]));
    programs[k] = {};
    if (!times.back()) continue;
    measured = true;
    add_to_log(name, *times.back());
  }
  if (measured) seconds_ += seconds_since(start);
}

SectionsSearch::Prepared SectionsSearch::prepare(const Tile& tile, Kind kind) const {
  Prepared prepared;
  const auto fail = [&](apl::Diagnostic error) {
    prepared.program.reset();
    prepared.error = std::move(error);
    return std::move(prepared);
  };
  apl::Module module = module_;
  if (kind == Kind::dense)
    for (apl::FunctionPtr& function : module.functions) {
      apl::Function dense = *function;
      apl::erase_attribute(dense.attributes, apl::attribute::sparse);
      apl::erase_attribute(dense.attributes, apl::attribute::constant);
      function = std::make_shared<const apl::Function>(std::move(dense));
    }
  apl::PipelineOptions pipeline_options;
  pipeline_options.parameters = session_.parameters();
  for (const auto& [name, number] : {std::pair{"rows", tile.rows},
                                     {"columns", tile.columns},
                                     {"pieces", tile.pieces},
                                     {"variant", std::int64_t{kind == Kind::sparse ? 1 : 2}}})
    pipeline_options.parameters[prefix_ + name] = number;
  const auto pipeline = apl::parse_pipeline(pipeline_for(options_.backend), registry());
  if (!pipeline) return fail(pipeline.error());
  if (auto passed = apl::run_pipeline(module, *pipeline, pipeline_options); !passed) return fail(passed.error());
  apl::ProgramOptions program_options;
  program_options.temporary_folder = folder_.path();
  program_options.backend = options_.backend;
  program_options.device_record = options_.device;
  program_options.cache = cache_;
  apl::CodegenOptions codegen;
  codegen.parameters = pipeline_options.parameters;
  if (kind == Kind::proxy) codegen.proxy = proxy_options(options_);
  auto program = apl::load_program(module, program_options, codegen);
  if (!program) return fail(program.error());
  auto placed = sparse::place_operands(*module.find_entry(entry_), values_, matrices_, {});
  if (!placed) return fail(placed.error());
  prepared.program = *std::move(program);
  prepared.values = std::move(placed->values);
  // On a GPU a kernel is compiled before its first launch.
  if (options_.backend == "cuda")
    if (auto called = prepared.program->call(entry_, prepared.values); !called) return fail(called.error());
  return prepared;
}

std::optional<double> SectionsSearch::time(Prepared& prepared) {
  if (!prepared.program) return complain(prepared.error);
  if (device_ != nullptr) {
    auto time = prepared.program->kernel_time(entry_, prepared.values);
    if (!time) return complain(time.error());
    return *time;
  }
  auto times = prepared.program->benchmark(entry_, prepared.values, options_.runs);
  if (!times) return complain(times.error());
  if (times->empty()) return std::nullopt;
  std::ranges::sort(*times);
  return (*times)[options_.least ? 0 : times->size() / 2];
}

std::optional<double> SectionsSearch::complain(const std::optional<apl::Diagnostic>& error) {
  if (error) session_.report(*error);
  return std::nullopt;
}

}  // namespace aplc
