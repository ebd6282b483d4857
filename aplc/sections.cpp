// aplc sections FILE ARG ...: the tile of a product with a constant matrix, found through proxies (L section 5;
// docs/constant.md).
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "aplc/arguments.h"
#include "aplc/cleanup.h"
#include "aplc/driver.h"
#include "aplc/sections_device.h"
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
  SectionsSearch search(options, session, name, operand, *values, matrices,
                        fmt::format("{}-{}-{}", known.key, width, options.backend), *std::move(folder), device.get());
  search.read_log();
  auto asked = read_tiles(options.tiles);
  if (!asked) return report(asked.error());
  std::vector<Tile> tiles =
      asked->empty() ? tile_space(on_host, width, std::max(4, apl::byte_size(known.matrix->values.type))) : *asked;
  std::map<Tile, double> bytes;
  if (device) bytes = prune(tiles, *known.matrix, width, device->device(), options.no_pruning || !asked->empty());
  std::vector<MeasuredTile> all;
  const auto times = search.measure(tiles, SectionsSearch::Kind::proxy);
  for (std::size_t k = 0; k < tiles.size(); ++k) all.push_back({tiles[k], times[k], {}, bytes[tiles[k]]});
  const double proxy_seconds = search.seconds();
  std::erase_if(all, [](const MeasuredTile& one) { return !one.proxy; });
  if (all.empty()) {
    if (session.exit_code() == kFine)
      session.report(apl::make_error(apl::Code::run_stopped, {}, "no tile was measured in that time"));
    return session.exit_code();
  }
  std::ranges::stable_sort(all, {}, [](const MeasuredTile& one) { return *one.proxy; });
  // What takes little is measured first.
  const auto sparse = search.measure(Tile{}, SectionsSearch::Kind::sparse),
             dense = search.measure(Tile{}, SectionsSearch::Kind::dense);
  // Kernels of several tiles are compiled on a GPU in the time of one, as long as there are processors.
  constexpr int kFinalists = 8;
  const auto finalists =
      static_cast<std::size_t>(options.finalists > 0 ? options.finalists
                               : on_host             ? 1
                                                     : std::min(kFinalists, apl::sparse::thread_count(options.jobs)));
  const double others_seconds = search.seconds() - proxy_seconds;
  if (options.exhaustive) {
    std::vector<Tile> ranked;
    for (const MeasuredTile& one : all) ranked.push_back(one.tile);
    const auto kernels = search.measure(ranked, SectionsSearch::Kind::constant);
    for (std::size_t k = 0; k < all.size(); ++k) all[k].real = kernels[k];
  } else if (!options.no_final) {
    std::vector<Tile> first;
    for (std::size_t k = 0; k < std::min(finalists, all.size()); ++k) first.push_back(all[k].tile);
    const auto kernels = search.measure(first, SectionsSearch::Kind::constant);
    for (std::size_t k = 0; k < first.size(); ++k) all[k].real = kernels[k];
  }
  print_out("{:>5} {:>8} {:>7} {:>11} {:>11} {:>5}{}\n", "rows", "columns", "pieces", "proxy us", "kernel us", "rank",
            device ? fmt::format(" {:>10} {:>9}", "code", "compiled") : "");
  for (const MeasuredTile& one : all) {
    const auto faster =
        std::ranges::count_if(all, [&](const MeasuredTile& other) { return other.real && other.real < one.real; });
    const DeviceTiles::Timed* kernel = search.details(one.tile, SectionsSearch::Kind::constant);
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
  for (const MeasuredTile& one : all)
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
  const MeasuredTile& best = best_of(all);
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
    for (const MeasuredTile& one : all) {
      nlohmann::ordered_json tile{{"rows", one.tile.rows},
                                  {"columns", one.tile.columns},
                                  {"pieces", one.tile.pieces},
                                  {"proxy_us", number(one.proxy)},
                                  {"kernel_us", number(one.real)}};
      if (device) tile["code_bytes"] = one.code_bytes;
      for (const auto& [kind, called] :
           {std::pair{SectionsSearch::Kind::proxy, "proxy"}, {SectionsSearch::Kind::constant, "kernel"}})
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
