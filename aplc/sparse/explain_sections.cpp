#include "aplc/sparse/explain_sections.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>

#include "aplc/sections_device.h"
#include "codegen/sparse/occupancy.h"
#include "codegen/sparse/proxy.h"
#include "ir/op.h"
#include "ir/walk.h"

namespace aplc::sparse {
namespace {

using Facts = std::vector<std::pair<std::string, std::string>>;

// The times of a log that are of this matrix and backend: of the width that the tile was measured with, if it was.
struct Times {
  std::map<Tile, double> proxies, kernels;
  std::optional<double> sparse, dense;
  std::string width;
};

Times read_times(const std::string& log, const std::string& key, bool gpu, const Tile& tile) {
  std::map<std::string, Times> all;  // by width
  std::istringstream lines(log);
  std::string what;
  Tile of;
  double time = 0;
  while (lines >> what >> of.rows >> of.columns >> of.pieces >> time) {
    // KIND@KEY-WIDTH-BACKEND
    const std::size_t at = what.find('@'), first = what.find('-', at), last = what.rfind('-');
    if (at == std::string::npos || first == std::string::npos || first >= last) continue;
    if (what.substr(at + 1, first - at - 1) != key || (what.substr(last + 1) == "cuda") != gpu) continue;
    Times& times = all[what.substr(first + 1, last - first - 1)];
    if (what.starts_with("proxy")) times.proxies[of] = time;
    if (what.starts_with("constant@")) times.kernels[of] = time;
    if (what.starts_with("sparse@")) times.sparse = time;
    if (what.starts_with("dense@")) times.dense = time;
  }
  const Times* found = nullptr;
  for (auto& [width, times] : all) {
    times.width = width;
    if (found == nullptr || (!found->proxies.contains(tile) && times.proxies.contains(tile))) found = &times;
  }
  return found == nullptr ? Times{} : *found;
}

std::string rank_text(const std::map<Tile, double>& times, const Tile& tile) {
  const auto own = times.find(tile);
  if (own == times.end()) return "not measured";
  const auto faster = std::ranges::count_if(times, [&](const auto& other) { return other.second < own->second; });
  const auto best = std::ranges::min_element(times, {}, [](const auto& one) { return one.second; });
  std::string text = fmt::format("{:.2f} us, number {} of {}", own->second, 1 + faster, times.size());
  if (faster > 0)
    text += fmt::format("; {:.2f} us with rows={} columns={} pieces={}", best->second, best->first.rows,
                        best->first.columns, best->first.pieces);
  return text;
}

void add_times(const Times& times, const Tile& tile, Facts& facts) {
  if (times.proxies.empty() && times.kernels.empty()) return;
  facts.emplace_back("measured with", fmt::format("{} columns of B", times.width));
  if (!times.proxies.empty()) facts.emplace_back("proxy", rank_text(times.proxies, tile));
  if (!times.kernels.empty()) facts.emplace_back("kernel", rank_text(times.kernels, tile));
  if (times.sparse) facts.emplace_back("kernels of any sparse operand", fmt::format("{:.2f} us", *times.sparse));
  if (times.dense) facts.emplace_back("dense product", fmt::format("{:.2f} us", *times.dense));
}

apl::Remark explain(const apl::Stm& stm, const apl::SparseSchedule& schedule, const apl::KnownMatrix& known,
                    const apl::Function& function, bool gpu, const apl_device& device, const std::string& log) {
  const apl::HostCsr& matrix = *known.matrix;
  const apl::SparseSchedule::Sections& numbers = *schedule.sections;
  const Tile tile{numbers.rows, numbers.columns, numbers.pieces};
  const apl::Sections made = apl::make_sections(matrix, tile.rows, tile.pieces, apl::kMostTerms);
  std::vector<apl::SectionFeatures> features;
  double loads = 0, terms = 0;
  for (const apl::Section& section : made.sections) {
    features.push_back({static_cast<double>(section.loads()), static_cast<double>(section.terms())});
    loads += features.back().loads;
    terms += features.back().terms;
  }
  apl::Remark remark;
  remark.kind = apl::RemarkKind::analysis;
  remark.pass = "sections";
  remark.code = "code";
  remark.location = stm.location;
  remark.function = function.entry->name;
  remark.message =
      fmt::format("`{}` is code: {} sections of up to {} rows, {} columns at a time, {} piece{} each", schedule.matrix,
                  made.sections.size(), tile.rows, tile.columns, tile.pieces, tile.pieces == 1 ? "" : "s");
  Facts& facts = remark.facts;
  facts.emplace_back("matrix", fmt::format("{} x {}, {} non-zeros, {} empty rows", matrix.rows, matrix.columns,
                                           matrix.nonzeros(), made.empty_rows.size()));
  facts.emplace_back("loads",
                     fmt::format("{:.0f} rows of B, each for {:.2f} terms", loads, terms / std::max(1.0, loads)));
  if (gpu) {
    constexpr double kBytes = 16;
    facts.emplace_back(
        "code", fmt::format("about {:.0f} KB, of which a multiprocessor fetches {:.1f} KB for each {} columns",
                            kBytes * (loads + terms) * 1e-3, code_bytes(matrix, tile, tile.columns, device) * 1e-3,
                            tile.columns));
  } else {
    facts.emplace_back("code", fmt::format("{:.0f} loads and {:.0f} multiply-adds of vectors", loads, terms));
  }
  constexpr std::int64_t kOnHost = 12;
  const apl::BlockNeeds needs{std::ssize(made.sections), tile.columns * tile.pieces, apl::kCalledRegisters,
                              tile.rows * tile.columns * tile.pieces * apl::byte_size(matrix.values.type)};
  const std::int64_t clusters = gpu ? 3 * apl::active_blocks(needs, device) : kOnHost;
  std::map<std::size_t, int> members;
  for (const std::size_t cluster : apl::cluster_sections(features, clusters)) ++members[cluster];
  std::vector<int> counts;
  for (const auto& [cluster, count] : members) counts.push_back(count);
  std::ranges::sort(counts, std::greater());
  facts.emplace_back("clusters of a proxy", fmt::format("{}, of {} sections", counts.size(), fmt::join(counts, ", ")));
  const Times times = read_times(log, known.key, gpu, tile);
  add_times(times, tile, facts);
  const auto own = times.kernels.find(tile);
  if (own != times.kernels.end() && times.sparse && *times.sparse < own->second)
    remark.suggestion = fmt::format("{}.{}.variant=1: the kernels of any sparse operand were faster",
                                    function.entry->name, schedule.matrix);
  return remark;
}

}  // namespace

std::vector<apl::Remark> explain_sections(const apl::Module& module, bool gpu, const apl_device& device,
                                          const std::string& log) {
  std::vector<apl::Remark> remarks;
  for (const apl::FunctionPtr& function : module.functions) {
    if (!function->entry || !function->body) continue;
    apl::for_each_stm(*function->body, [&](const apl::Stm& stm) {
      const apl::SegOp* kernel = apl::get_if<apl::SegOp>(stm);
      if (kernel == nullptr || !kernel->sparse || !kernel->sparse->sections) return;
      const auto known = std::ranges::find(module.known, kernel->sparse->sections->key, &apl::KnownMatrix::key);
      if (known != module.known.end())
        remarks.push_back(explain(stm, *kernel->sparse, *known, *function, gpu, device, log));
    });
  }
  return remarks;
}

}  // namespace aplc::sparse
