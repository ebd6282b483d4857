#include "aplc/sections_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "aplc/driver.h"

namespace aplc {
namespace {

// How well proxies rank kernels, of the tiles that have both; nullopt: of one alone.
struct Ranking {
  double proxies = 0, code_bytes = 0;   // Spearman's correlation of the kernels' times with the proxies', and with code
  double chosen = 0, of_finalists = 0;  // times of the first one, and of the best finalist, in times of the best
};

std::optional<Ranking> rank(const SectionsResult& result) {
  std::vector<double> proxies, kernels, lengths;
  for (const MeasuredTile& one : result.all) {
    if (!one.real) continue;
    proxies.push_back(*one.proxy);
    kernels.push_back(*one.real);
    lengths.push_back(one.code_bytes);
  }
  if (kernels.size() < 2) return std::nullopt;
  const double least = *std::ranges::min_element(kernels);
  const auto finalists = static_cast<std::ptrdiff_t>(std::min(result.finalists, kernels.size()));
  return Ranking{.proxies = spearman(proxies, kernels),
                 .code_bytes = spearman(lengths, kernels),
                 .chosen = kernels.front() / least,
                 .of_finalists = *std::min_element(kernels.begin(), kernels.begin() + finalists) / least};
}

std::string microseconds(const std::optional<double>& time) { return time ? fmt::format("{:.2f} us", *time) : "-"; }

nlohmann::ordered_json number(const std::optional<double>& time) {
  return time ? nlohmann::ordered_json(*time) : nlohmann::ordered_json();
}

void print_tile(const MeasuredTile& one, const SectionsResult& result, const SectionsSearch& search,
                const SectionsShown& shown) {
  const auto faster =
      std::ranges::count_if(result.all, [&](const MeasuredTile& other) { return other.real && other.real < one.real; });
  const DeviceTiles::Timed* kernel = search.details(one.tile, SectionsSearch::Kind::constant);
  print_out("{:>5} {:>8} {:>7} {:>11.2f} {:>11} {:>5}{}\n", one.tile.rows, one.tile.columns, one.tile.pieces,
            *one.proxy, one.real ? fmt::format("{:.2f}", *one.real) : "-",
            one.real && shown.exhaustive ? fmt::format("{}", 1 + faster) : "-",
            !shown.on_device ? ""
            : kernel         ? fmt::format(" {:>7.1f} KB {:>7.1f} s", 1e-3 * one.code_bytes, kernel->compile_seconds)
                             : fmt::format(" {:>7.1f} KB {:>9}", 1e-3 * one.code_bytes, "-"));
}

nlohmann::ordered_json tile_json(const MeasuredTile& one, const SectionsSearch& search, const SectionsShown& shown) {
  nlohmann::ordered_json tile{{"rows", one.tile.rows},
                              {"columns", one.tile.columns},
                              {"pieces", one.tile.pieces},
                              {"proxy_us", number(one.proxy)},
                              {"kernel_us", number(one.real)}};
  if (shown.on_device) tile["code_bytes"] = one.code_bytes;
  for (const auto& [kind, called] :
       {std::pair{SectionsSearch::Kind::proxy, "proxy"}, {SectionsSearch::Kind::constant, "kernel"}})
    if (const DeviceTiles::Timed* timed = search.details(one.tile, kind))
      tile[called] = {{"blocks", timed->blocks},
                      {"threads", timed->threads},
                      {"registers", timed->registers},
                      {"shared_bytes", timed->shared_bytes},
                      {"machine_code", timed->machine_code},
                      {"compile_seconds", timed->compile_seconds}};
  return tile;
}

}  // namespace

SectionsResult::Choice SectionsResult::choice() const {
  const std::optional<double> code = constant();
  const bool is_constant = code && !(sparse && *sparse < *code);
  const std::optional<double> best_sparse = is_constant ? code : sparse;
  if (dense && best_sparse && *dense < *best_sparse) return Choice::dense;
  if (is_constant) return Choice::constant;
  return best_sparse || dense ? Choice::sparse : Choice::none;
}

void print_result(const SectionsResult& result, const SectionsSearch& search, const SectionsShown& shown) {
  print_out("{:>5} {:>8} {:>7} {:>11} {:>11} {:>5}{}\n", "rows", "columns", "pieces", "proxy us", "kernel us", "rank",
            shown.on_device ? fmt::format(" {:>10} {:>9}", "code", "compiled") : "");
  for (const MeasuredTile& one : result.all) print_tile(one, result, search, shown);
  print_out("proxies: {:.1f} s; with the kernels that were compiled: {:.1f} s\n", result.proxy_seconds, result.seconds);
  const std::optional<Ranking> ranking = shown.exhaustive ? rank(result) : std::nullopt;
  if (ranking)
    print_out("Spearman {:.3f}; the chosen tile takes {:.3f} of the best's time, the best of the first {} {:.3f}\n",
              ranking->proxies, ranking->chosen, result.finalists, ranking->of_finalists);
  if (ranking && shown.on_device) print_out("Spearman of the bytes of code alone {:.3f}\n", ranking->code_bytes);
  print_out("constant {}, sparse {}, dense {}\n", microseconds(result.constant()), microseconds(result.sparse),
            microseconds(result.dense));
  using Choice = SectionsResult::Choice;
  if (const Choice choice = result.choice(); choice != Choice::none)
    print_out("chosen: {}\n", choice == Choice::dense ? "dense" : choice == Choice::constant ? "constant" : "sparse");
}

void add_result(nlohmann::ordered_json& json, const SectionsResult& result, const SectionsSearch& search,
                const SectionsShown& shown) {
  json["proxy_seconds"] = result.proxy_seconds;
  json["seconds"] = result.seconds;
  json["tile_space"] = result.tile_space;
  if (const std::optional<Ranking> ranking = shown.exhaustive ? rank(result) : std::nullopt) {
    json["spearman"] = ranking->proxies;
    json["chosen_over_best"] = ranking->chosen;
    json["finalists"] = result.finalists;
    json["finalists_over_best"] = ranking->of_finalists;
    if (shown.on_device) json["spearman_of_code_bytes"] = ranking->code_bytes;
  }
  json["constant_us"] = number(result.constant());
  json["sparse_us"] = number(result.sparse);
  json["dense_us"] = number(result.dense);
  for (const MeasuredTile& one : result.all) json["tiles"].push_back(tile_json(one, search, shown));
}

}  // namespace aplc
