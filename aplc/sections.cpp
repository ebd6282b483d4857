// aplc sections FILE ARG ...: the tile of a product with a constant matrix, found through proxies (L section 5;
// docs/constant.md).
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <range/v3/view/zip.hpp>
#include <ranges>

#include "aplc/arguments.h"
#include "aplc/cleanup.h"
#include "aplc/driver.h"
#include "aplc/sections_device.h"
#include "aplc/sections_result.h"
#include "aplc/sections_search.h"
#include "aplc/sections_tiles.h"
#include "aplc/sparse/constants.h"
#include "codegen/sparse/constant.h"
#include "passes/sparse/parallel.h"

namespace aplc {
namespace {

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

// Of the constant operand of the entry asked for; null: there is none.
const apl::Function* find_entry(const SectionsOptions& options, const Session& session) {
  const apl::Function* found = nullptr;
  for (const apl::FunctionPtr& function : session.module().functions)
    if (function->entry && (options.entry.empty() || function->entry->name == options.entry) &&
        !sparse::constant_operands(*function).empty())
      found = function.get();
  return found;
}

// Proxies of all tiles, then the kernels of those that are promising, or of all. None, if nothing was measured.
SectionsResult measure(const std::vector<Tile>& tiles, const SectionsOptions& options, SectionsSearch& search,
                       const std::map<Tile, double>& bytes) {
  using Kind = SectionsSearch::Kind;
  SectionsResult result;
  result.tile_space = bytes.size();
  std::vector<MeasuredTile>& all = result.all;
  const auto proxies = search.measure(tiles, Kind::proxy);
  for (const auto& [tile, time] : ranges::views::zip(tiles, proxies))
    if (time) all.push_back({tile, time, {}, bytes.contains(tile) ? bytes.at(tile) : 0});
  result.proxy_seconds = search.seconds();
  if (all.empty()) return result;
  std::ranges::stable_sort(all, {}, [](const MeasuredTile& one) { return *one.proxy; });
  // What takes little is measured first.
  result.sparse = search.measure(Tile{}, Kind::sparse);
  result.dense = search.measure(Tile{}, Kind::dense);
  const double others = search.seconds() - result.proxy_seconds;
  // Kernels of several tiles are compiled on a GPU in the time of one, as long as there are processors.
  constexpr int kFinalists = 8;
  result.finalists = static_cast<std::size_t>(options.finalists > 0 ? options.finalists
                                              : options.backend == "c"
                                                  ? 1
                                                  : std::min(kFinalists, apl::sparse::thread_count(options.jobs)));
  const std::size_t compiled = options.exhaustive ? all.size()
                               : options.no_final ? 0
                                                  : std::min(result.finalists, all.size());
  std::vector<Tile> ranked;
  for (const MeasuredTile& one : all | std::views::take(compiled)) ranked.push_back(one.tile);
  if (!ranked.empty()) {
    const auto kernels = search.measure(ranked, Kind::constant);
    for (auto&& [one, time] : ranges::views::zip(all, kernels)) one.real = time;
  }
  result.seconds = search.seconds() - others;
  return result;
}

// The choice as a tuning file.
std::string tuning(const SectionsResult& result, const std::string& prefix) {
  using Choice = SectionsResult::Choice;
  const Choice choice = result.choice();
  if (result.constant() && choice != Choice::constant)
    return fmt::format("{}.variant={}\n", prefix, choice == Choice::dense ? 3 : 1);
  // Whatever the size: it was measured.
  const Tile& tile = best_of(result.all).tile;
  return fmt::format("{0}.variant=2\n{0}.rows={1}\n{0}.columns={2}\n{0}.pieces={3}\n", prefix, tile.rows, tile.columns,
                     tile.pieces);
}

int search(const SectionsOptions& options, Session& session) {
  const apl::Function* entry = find_entry(options, session);
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
  const std::int64_t bytes_of_element = std::max(4, apl::byte_size(known.matrix->values.type));
  if (!options.kernels.empty()) return write_kernels(options, known, tile_space(false, width, bytes_of_element), width);
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
  SectionsSearch search(options, session, name, operand, *values, matrices,
                        fmt::format("{}-{}-{}", known.key, width, options.backend), *std::move(folder), device.get());
  search.read_log();
  auto asked = read_tiles(options.tiles);
  if (!asked) return report(asked.error());
  std::vector<Tile> tiles = asked->empty() ? tile_space(options.backend == "c", width, bytes_of_element) : *asked;
  std::map<Tile, double> bytes;
  if (device) bytes = prune(tiles, *known.matrix, width, device->device(), options.no_pruning || !asked->empty());
  const SectionsResult result = measure(tiles, options, search, bytes);
  if (result.all.empty()) {
    if (session.exit_code() == kFine)
      session.report(apl::make_error(apl::Code::run_stopped, {}, "no tile was measured in that time"));
    return session.exit_code();
  }
  const SectionsShown shown{.exhaustive = options.exhaustive, .on_device = device != nullptr};
  print_result(result, search, shown);
  if (!options.json.empty()) {
    nlohmann::ordered_json json{{"entry", name},
                                {"operand", operand},
                                {"key", known.key},
                                {"rows", known.matrix->rows},
                                {"columns", known.matrix->columns},
                                {"nonzeros", known.matrix->nonzeros()},
                                {"width", width},
                                {"backend", options.backend}};
    add_result(json, result, search, shown);
    if (const int code = emit(options.json, json.dump(1) + "\n"); code != kFine) return code;
  }
  if (!options.svg.empty())
    if (const int code = emit(options.svg, scatter_svg(result.all)); code != kFine) return code;
  if (options.output.empty()) return kFine;
  return emit(options.output, tuning(result, fmt::format("{}.{}", name, operand)));
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
