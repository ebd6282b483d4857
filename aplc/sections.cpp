// aplc sections FILE ARG ...: the tile of a product with a constant matrix, found through proxies (L section 5;
// docs/constant.md).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "aplc/arguments.h"
#include "aplc/cleanup.h"
#include "aplc/driver.h"
#include "aplc/registry.h"
#include "aplc/sections_device.h"
#include "aplc/sparse/constants.h"
#include "codegen/emit/load.h"
#include "codegen/sparse/constant.h"
#include "ir/attributes.h"
#include "ir/read_file.h"
#include "passes/sparse/parallel.h"
#include "runtime/program/program.h"

namespace aplc {
namespace {

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

struct Measured {
  Tile tile;
  std::optional<double> proxy, real;  // microseconds
  double code_bytes = 0;              // that a multiprocessor fetches, as estimated; 0 on a CPU
};

// A program that is compiled and waits to be timed.
struct Prepared {
  std::optional<apl::Program> program;
  std::vector<apl::HostValue> values;
  std::optional<apl::Diagnostic> error;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Tiles worth a thought. On a CPU the sums of a strip must stay in registers (32 vectors of 64 bytes, of which some are
// for operands); on a GPU a block has at most 1024 threads and 48 KB of partial sums.
std::vector<Tile> tile_space(bool on_host, std::int64_t width, std::int64_t bytes) {
  std::vector<Tile> tiles;
  const std::int64_t lanes = 64 / bytes;
  if (on_host) {
    for (const std::int64_t rows : {2, 4, 6, 8, 12, 16, 24})
      for (const std::int64_t columns : {width < lanes ? 1 : lanes, 2 * lanes, 4 * lanes})
        for (const std::int64_t pieces : {1, 2, 4})
          if (columns <= width && rows * ((columns + lanes - 1) / lanes) <= 28)
            tiles.push_back({rows, columns, pieces});
    return tiles;
  }
  for (const std::int64_t rows : {2, 3, 4, 6, 8, 12})
    for (const std::int64_t columns : {32, 64, 128, 256})
      for (const std::int64_t pieces : {1, 2, 3, 4, 8})
        if ((columns < 2 * width || columns == 32) && columns * pieces <= 1024 &&
            rows * columns * pieces * bytes <= 49152)
          tiles.push_back({rows, columns, pieces});
  return tiles;
}

// Those that were asked for, as `6,128,3`.
apl::Result<std::vector<Tile>> read_tiles(const std::vector<std::string>& texts) {
  std::vector<Tile> tiles;
  for (const std::string& text : texts) {
    Tile tile;
    char comma = 0, more = 0;
    std::istringstream in(text);
    const bool read = in >> tile.rows >> comma >> tile.columns >> more >> tile.pieces && comma == ',' && more == ',';
    if (!read || in.peek() != std::char_traits<char>::eof() || tile.rows < 1 || tile.columns < 1 || tile.pieces < 1)
      return apl::make_error(apl::Code::command_bad_argument, {},
                             fmt::format("--tile {}: expected ROWS,COLUMNS,PIECES", text));
    tiles.push_back(tile);
  }
  return tiles;
}

// Takes away those whose code is over twice as long, for a multiprocessor, as the least of all: what is fetched
// decides, and no tile of that length was near the best. The bytes of each that was there.
std::map<Tile, double> prune(std::vector<Tile>& tiles, const apl::HostCsr& matrix, std::int64_t width,
                             const apl_device& device, bool keeps_all) {
  constexpr double kMost = 2;
  std::vector<double> bytes(tiles.size());
  apl::sparse::in_pieces(std::ssize(tiles), 1, 0, [&](std::int64_t begin, std::int64_t) {
    const auto k = static_cast<std::size_t>(begin);
    bytes[k] = code_bytes(matrix, tiles[k], width, device);
  });
  std::map<Tile, double> found;
  for (std::size_t k = 0; k < tiles.size(); ++k) found[tiles[k]] = bytes[k];
  const double least = tiles.empty() ? 0 : *std::ranges::min_element(bytes);
  if (!keeps_all) std::erase_if(tiles, [&](const Tile& tile) { return found[tile] > kMost * least; });
  return found;
}

// Ranks; equals share theirs.
std::vector<double> ranks(const std::vector<double>& times) {
  std::vector<double> found(times.size());
  for (std::size_t a = 0; a < times.size(); ++a)
    for (const double other : times) found[a] += other < times[a] ? 1 : other == times[a] ? 0.5 : 0;
  return found;
}

double spearman(const std::vector<double>& x, const std::vector<double>& y) {
  const std::vector<double> a = ranks(x), b = ranks(y);
  const double mean = std::accumulate(a.begin(), a.end(), 0.0) / static_cast<double>(a.size());
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    ab += (a[k] - mean) * (b[k] - mean);
    aa += (a[k] - mean) * (a[k] - mean);
    bb += (b[k] - mean) * (b[k] - mean);
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

std::string scatter_svg(const std::vector<Measured>& all) {
  constexpr double kSize = 400, kEdge = 50;
  double most_x = 0, most_y = 0;
  for (const Measured& one : all)
    if (one.proxy && one.real) most_x = std::max(most_x, *one.proxy), most_y = std::max(most_y, *one.real);
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{0}\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"{0}\" height=\"{0}\" fill=\"white\"/>\n"
      "<path d=\"M{1} {1}V{2}H{2}\" fill=\"none\" stroke=\"black\"/>\n"
      "<text x=\"{1}\" y=\"{3}\">proxy, up to {4:.3g} us</text>\n<text x=\"4\" y=\"{5}\">kernel, up to {6:.3g} "
      "us</text>\n",
      kSize + 2 * kEdge, kEdge, kSize + kEdge, kSize + 1.6 * kEdge, most_x, 0.7 * kEdge, most_y);
  for (const Measured& one : all)
    if (one.proxy && one.real)
      text +=
          fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"#36c\"><title>{}</title></circle>\n",
                      kEdge + kSize * *one.proxy / most_x, kEdge + kSize * (1 - *one.real / most_y), one.tile.text());
  return text + "</svg>\n";
}

// Where no number of clusters was given: on a CPU all threads run functions of one cache.
apl::ProxyOptions proxy_options(const SectionsOptions& options) {
  constexpr std::int64_t kOnHost = 12, kOnDevice = 24;
  const std::int64_t clusters = options.clusters > 0 ? options.clusters : options.backend == "c" ? kOnHost : kOnDevice;
  return {.clusters = options.no_clusters ? 0 : clusters,
          .truncates = !options.no_truncation,
          .moves_rows = options.backend != "c"};
}

class Search {
 public:
  Search(const SectionsOptions& options, Session& session, std::string entry, std::string operand,
         const std::vector<apl::HostValue>& values, const GivenMatrices& matrices, std::string place, WorkFolder folder,
         DeviceTiles* device)
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
  void read_log() {
    const auto text = options_.log.empty() ? apl::Result<std::string>(std::string()) : apl::read_bytes(options_.log);
    std::istringstream lines(text ? *text : "");
    std::string kind;
    Tile tile;
    double time = 0;
    while (lines >> kind >> tile.rows >> tile.columns >> tile.pieces >> time) known_[kind + " " + tile.text()] = time;
    log_ = text ? *text : "";
  }

  // What is measured: a proxy, the code for the matrix, the kernels of any sparse operand, the dense product.
  enum class Kind { proxy, constant, sparse, dense };

  // Compiles on several threads first, as compilers take nearly all of the time, and times one program after the other,
  // while none is compiled. What was timed is in the log after each group of tiles.
  std::vector<std::optional<double>> measure(const std::vector<Tile>& tiles, Kind kind) {
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
  std::optional<double> measure(const Tile& tile, Kind kind) { return measure(std::vector{tile}, kind).front(); }
  double seconds() const { return seconds_; }
  // What is known of a kernel beside its time; null if it was not compiled in this run, or is no GPU's.
  const DeviceTiles::Timed* details(const Tile& tile, Kind kind) const {
    const auto found = details_.find(log_name(tile, kind));
    return found == details_.end() ? nullptr : &found->second;
  }

 private:
  bool is_late() const { return options_.seconds > 0 && seconds_since(start_) > options_.seconds; }
  std::string log_name(const Tile& tile, Kind kind) const { return fmt::format("{} {}", kind_name(kind), tile.text()); }
  void add_to_log(const std::string& name, double time) {
    known_[name] = time;
    log_ += fmt::format("{} {:.4f}\n", name, time);
    if (!options_.log.empty()) emit(options_.log, log_);
  }

  void measure_on_device(const std::vector<Tile>& tiles, Kind kind, std::vector<std::optional<double>>& times) {
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

  // Times are of a matrix, a width and a backend: a log may have those of others.
  std::string kind_name(Kind kind) const {
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

  void measure_group(const std::vector<Tile>& tiles, Kind kind, int threads,
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

  // Is called by several threads at a time.
  Prepared prepare(const Tile& tile, Kind kind) const {
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

  std::optional<double> time(Prepared& prepared) {
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

  std::optional<double> complain(const std::optional<apl::Diagnostic>& error) {
    if (error) session_.report(*error);
    return std::nullopt;
  }

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

// The tile whose kernel is the fastest, of those that were measured; else the one whose proxy is, which is the first.
const Measured& best_of(const std::vector<Measured>& all) {
  const Measured* best = &all.front();
  for (const Measured& one : all)
    if (one.real && (!best->real || *one.real < *best->real)) best = &one;
  return *best;
}

// FOLDER/proxy-M-N-P.cu and constant-M-N-P.cu for each tile, and FOLDER/kernels.tsv: how each is launched.
int write_kernels(const SectionsOptions& options, const apl::KnownMatrix& known, const std::vector<Tile>& tiles,
                  std::int64_t width) {
  std::string table;
  for (const Tile& tile : tiles)
    for (const bool is_proxy : {true, false}) {
      apl::lower::ConstantProduct product;
      product.name = "constant";
      product.matrix = &*known.matrix;
      product.sections = {.key = known.key, .rows = tile.rows, .columns = tile.columns, .pieces = tile.pieces};
      product.result = known.matrix->values.type;
      product.b_row = width;
      if (is_proxy) product.proxy = proxy_options(options);
      const apl::lower::DeviceText text = apl::lower::print_constant_device(product, {}, {}, 32);
      const std::string name =
          fmt::format("{}-{}-{}-{}", is_proxy ? "proxy" : "constant", tile.rows, tile.columns, tile.pieces);
      table += fmt::format("{}\t{}\t{}\t{}\t{}\n", name, text.sections, (width + tile.columns - 1) / tile.columns,
                           text.threads, text.shared_bytes);
      const std::string defines =
          fmt::format("#define APL_CONSTANT_NAME constant\n#define APL_CONSTANT_B_ROW {}\n", width);
      if (const int code = emit(options.kernels + "/" + name + ".cu", defines + text.text); code != kFine) return code;
    }
  return emit(options.kernels + "/kernels.tsv", table);
}

int search(const SectionsOptions& options, Session& session) {
  const apl::Function* entry = nullptr;
  for (const apl::FunctionPtr& function : session.module().functions)
    if (function->entry && (options.entry.empty() || function->entry->name == options.entry) &&
        !sparse::constant_operands(*function).empty())
      entry = function.get();
  if (entry == nullptr) {
    session.report(
        apl::make_error(apl::Code::command_bad_argument, {}, "no entry has an operand that is sparse and constant"));
    return session.exit_code();
  }
  const std::string name = entry->entry->name, operand = sparse::constant_operands(*entry).front().first;
  GivenMatrices matrices;
  auto values = read_arguments(*entry, options.arguments, matrices);
  if (!values) {
    session.report(values.error());
    return session.exit_code();
  }
  for (const std::string& file : {options.output, options.svg, options.json})
    if (auto writable = check_output(file); !writable) return report(writable.error());
  sparse::add_known(session.module(), name, *values, matrices);
  const apl::KnownMatrix& known = session.module().known.front();
  std::int64_t width = 1;
  for (const apl::HostValue& value : *values)
    if (value.rank() == 2 && value.shape[0] == known.matrix->columns) width = value.shape[1];
  const bool on_host = options.backend == "c";
  if (!options.kernels.empty())
    return write_kernels(options, known,
                         tile_space(false, width, std::max(4, apl::byte_size(known.matrix->values.type))), width);
  std::unique_ptr<DeviceTiles> device;
  if (options.backend == "cuda") {
    const apl::HostValue* b = nullptr;
    for (const apl::HostValue& value : *values)
      if (value.rank() > 0 && value.shape[0] == known.matrix->columns && value.type == known.matrix->values.type)
        b = &value;
    auto opened = DeviceTiles::open({&known, width, b, options.reductions(), apl::sparse::thread_count(options.jobs)});
    if (!opened) return report(opened.error());
    device = *std::move(opened);
  }
  auto folder = WorkFolder::make();
  if (!folder) return report(folder.error());
  Search search(options, session, name, operand, *values, matrices,
                fmt::format("{}-{}-{}", known.key, width, options.backend), *std::move(folder), device.get());
  search.read_log();
  auto asked = read_tiles(options.tiles);
  if (!asked) return report(asked.error());
  std::vector<Tile> tiles =
      asked->empty() ? tile_space(on_host, width, std::max(4, apl::byte_size(known.matrix->values.type))) : *asked;
  std::map<Tile, double> bytes;
  if (device) bytes = prune(tiles, *known.matrix, width, device->device(), options.no_pruning || !asked->empty());
  std::vector<Measured> all;
  const auto times = search.measure(tiles, Search::Kind::proxy);
  for (std::size_t k = 0; k < tiles.size(); ++k) all.push_back({tiles[k], times[k], {}, bytes[tiles[k]]});
  const double proxy_seconds = search.seconds();
  std::erase_if(all, [](const Measured& one) { return !one.proxy; });
  if (all.empty()) {
    if (session.exit_code() == kFine)
      session.report(apl::make_error(apl::Code::run_stopped, {}, "no tile was measured in that time"));
    return session.exit_code();
  }
  std::ranges::stable_sort(all, {}, [](const Measured& one) { return *one.proxy; });
  // What takes little is measured first.
  const auto sparse = search.measure(Tile{}, Search::Kind::sparse), dense = search.measure(Tile{}, Search::Kind::dense);
  // Kernels of several tiles are compiled on a GPU in the time of one, as long as there are processors.
  constexpr int kFinalists = 8;
  const auto finalists =
      static_cast<std::size_t>(options.finalists > 0 ? options.finalists
                               : on_host             ? 1
                                                     : std::min(kFinalists, apl::sparse::thread_count(options.jobs)));
  const double others_seconds = search.seconds() - proxy_seconds;
  if (options.exhaustive) {
    std::vector<Tile> ranked;
    for (const Measured& one : all) ranked.push_back(one.tile);
    const auto kernels = search.measure(ranked, Search::Kind::constant);
    for (std::size_t k = 0; k < all.size(); ++k) all[k].real = kernels[k];
  } else if (!options.no_final) {
    std::vector<Tile> first;
    for (std::size_t k = 0; k < std::min(finalists, all.size()); ++k) first.push_back(all[k].tile);
    const auto kernels = search.measure(first, Search::Kind::constant);
    for (std::size_t k = 0; k < first.size(); ++k) all[k].real = kernels[k];
  }
  print_out("{:>5} {:>8} {:>7} {:>11} {:>11} {:>5}{}\n", "rows", "columns", "pieces", "proxy us", "kernel us", "rank",
            device ? fmt::format(" {:>10} {:>9}", "code", "compiled") : "");
  for (const Measured& one : all) {
    const auto faster =
        std::ranges::count_if(all, [&](const Measured& other) { return other.real && other.real < one.real; });
    const DeviceTiles::Timed* kernel = search.details(one.tile, Search::Kind::constant);
    print_out("{:>5} {:>8} {:>7} {:>11.2f} {:>11} {:>5}{}\n", one.tile.rows, one.tile.columns, one.tile.pieces,
              *one.proxy, one.real ? fmt::format("{:.2f}", *one.real) : "-",
              one.real && options.exhaustive ? fmt::format("{}", 1 + faster) : "-",
              !device  ? ""
              : kernel ? fmt::format(" {:>7.1f} KB {:>7.1f} s", 1e-3 * one.code_bytes, kernel->compile_seconds)
                       : fmt::format(" {:>7.1f} KB {:>9}", 1e-3 * one.code_bytes, "-"));
  }
  print_out("proxies: {:.1f} s; with the kernels that were compiled: {:.1f} s\n", proxy_seconds,
            search.seconds() - others_seconds);
  std::vector<double> proxies, kernels, lengths;
  for (const Measured& one : all)
    if (one.real) proxies.push_back(*one.proxy), kernels.push_back(*one.real), lengths.push_back(one.code_bytes);
  const double least = kernels.empty() ? 0 : *std::ranges::min_element(kernels);
  const double of_finalists =
      kernels.empty()
          ? 0
          : *std::ranges::min_element(
                kernels.begin(), kernels.begin() + static_cast<std::ptrdiff_t>(std::min(finalists, kernels.size())));
  if (options.exhaustive && kernels.size() > 1)
    print_out("Spearman {:.3f}; the chosen tile takes {:.3f} of the best's time, the best of the first {} {:.3f}\n",
              spearman(proxies, kernels), kernels.front() / least, finalists, of_finalists / least);
  if (options.exhaustive && kernels.size() > 1 && device)
    print_out("Spearman of the bytes of code alone {:.3f}\n", spearman(lengths, kernels));
  // The choice: code, the kernels of any sparse operand, or the dense product.
  const auto shown = [](const std::optional<double>& time) { return time ? fmt::format("{:.2f} us", *time) : "-"; };
  const Measured& best = best_of(all);
  const std::optional<double> constant = best.real;
  print_out("constant {}, sparse {}, dense {}\n", shown(constant), shown(sparse), shown(dense));
  const bool is_constant = constant && !(sparse && *sparse < *constant);
  const std::optional<double> best_sparse = is_constant ? constant : sparse;
  const bool is_dense = dense && best_sparse && *dense < *best_sparse;
  if (best_sparse || dense) print_out("chosen: {}\n", is_dense ? "dense" : is_constant ? "constant" : "sparse");
  if (!options.json.empty()) {
    nlohmann::ordered_json json{{"entry", name},
                                {"operand", operand},
                                {"key", known.key},
                                {"rows", known.matrix->rows},
                                {"columns", known.matrix->columns},
                                {"nonzeros", known.matrix->nonzeros()},
                                {"width", width},
                                {"backend", options.backend},
                                {"proxy_seconds", proxy_seconds},
                                {"seconds", search.seconds() - others_seconds},
                                {"tile_space", bytes.size()}};
    if (options.exhaustive && kernels.size() > 1) {
      json["spearman"] = spearman(proxies, kernels);
      json["chosen_over_best"] = kernels.front() / least;
      json["finalists"] = finalists;
      json["finalists_over_best"] = of_finalists / least;
      if (device) json["spearman_of_code_bytes"] = spearman(lengths, kernels);
    }
    const auto number = [](const std::optional<double>& time) {
      return time ? nlohmann::ordered_json(*time) : nlohmann::ordered_json();
    };
    json["constant_us"] = number(constant);
    json["sparse_us"] = number(sparse);
    json["dense_us"] = number(dense);
    for (const Measured& one : all) {
      nlohmann::ordered_json tile{{"rows", one.tile.rows},
                                  {"columns", one.tile.columns},
                                  {"pieces", one.tile.pieces},
                                  {"proxy_us", number(one.proxy)},
                                  {"kernel_us", number(one.real)}};
      if (device) tile["code_bytes"] = one.code_bytes;
      for (const auto& [kind, called] : {std::pair{Search::Kind::proxy, "proxy"}, {Search::Kind::constant, "kernel"}})
        if (const DeviceTiles::Timed* timed = search.details(one.tile, kind))
          tile[called] = {{"blocks", timed->blocks},
                          {"threads", timed->threads},
                          {"registers", timed->registers},
                          {"shared_bytes", timed->shared_bytes},
                          {"machine_code", timed->machine_code},
                          {"compile_seconds", timed->compile_seconds}};
      json["tiles"].push_back(tile);
    }
    if (const int code = emit(options.json, json.dump(1) + "\n"); code != kFine) return code;
  }
  if (!options.svg.empty())
    if (const int code = emit(options.svg, scatter_svg(all)); code != kFine) return code;
  if (options.output.empty()) return kFine;
  if (constant && (is_dense || !is_constant))
    return emit(options.output, fmt::format("{}.{}.variant={}\n", name, operand, is_dense ? 3 : 1));
  // Whatever the size: it was measured.
  return emit(options.output,
              fmt::format("{0}.{1}.variant=2\n{0}.{1}.rows={2}\n{0}.{1}.columns={3}\n{0}.{1}.pieces={4}\n", name,
                          operand, best.tile.rows, best.tile.columns, best.tile.pieces));
}

}  // namespace

void add_sections(CLI::App& app, int& exit) {
  auto options = std::make_shared<SectionsOptions>();
  CLI::App* command =
      app.add_subcommand("sections", "find the tile of a product with a constant matrix through proxies");
  options->add_to(*command);
  command->add_option("ARG", options->arguments, "arguments of the entry, as of `aplc run`; the matrix as A=@M.mtx")
      ->required();
  command->add_option("-e,--entry", options->entry, "entry (default: the one with a constant operand)");
  command->add_option("--backend", options->backend, "c, emulate or cuda")
      ->check(CLI::IsMember({"c", "emulate", "cuda"}))
      ->capture_default_str();
  command->add_option("-o,--output", options->output, "the tile as a tuning file")->type_name("FILE");
  command->add_option("--log", options->log, "times that were measured: a run that was interrupted goes on with it")
      ->type_name("FILE");
  command->add_option("--svg", options->svg, "draw the times of proxies and kernels (with --exhaustive)")
      ->type_name("FILE");
  command->add_option("--kernels", options->kernels, "write the texts of all tiles' kernels for GPUs, and time none")
      ->type_name("FOLDER");
  command
      ->add_option("--clusters", options->clusters,
                   "functions of a proxy (default: 12 on a CPU, 3 for each block that a GPU's multiprocessor holds)")
      ->check(CLI::PositiveNumber);
  command->add_flag("--no-clusters", options->no_clusters, "proxies have a function for each section");
  command->add_flag("--no-truncation", options->no_truncation, "proxies have all iterations");
  command->add_flag("--no-sharing", options->no_sharing, "a proxy of its own for each N1 (GPUs)");
  command->add_flag("--no-occupancy", options->no_occupancy,
                    "proxies have no shared memory beside the kernel's (GPUs)");
  command->add_flag("--no-pruning", options->no_pruning, "tiles whose code is long, too (GPUs)");
  command->add_option("--seconds", options->seconds, "begin to measure no more after so long")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--tile", options->tiles, "look at this tile alone, ROWS,COLUMNS,PIECES; may be given several times")
      ->allow_extra_args(false);
  command->add_option("--json", options->json, "all that was measured")->type_name("FILE");
  command->add_flag("--exhaustive", options->exhaustive,
                    "measure the kernel of each tile, too, and say how well proxies rank them");
  command
      ->add_option("--finalists", options->finalists,
                   "tiles whose kernels are compiled, the first ones by their proxies (default: 1; on a GPU as many as "
                   "there are jobs, at most 8)")
      ->check(CLI::PositiveNumber);
  command->add_flag("--no-final", options->no_final, "measure proxies alone");
  command
      ->add_option("-j,--jobs", options->jobs, "programs that are compiled at a time (default: one for each processor)")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--runs", options->runs, "calls of each, of which the median counts")->check(CLI::PositiveNumber);
  command->add_flag("--least", options->least,
                    "the shortest call counts, not the median: for machines that others use, too (CPUs)");
  command->callback([options, &exit] {
    Session session(*options);
    exit = session.read() ? search(*options, session) : session.exit_code();
  });
}

}  // namespace aplc
