#include "codegen/sparse/proxy.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

namespace apl {
namespace {

struct Cluster {
  double loads = 0, terms = 0, count = 0;
  std::vector<std::size_t> members;
};

// What joining them adds to the sum of squared distances.
double join_cost(const Cluster& a, const Cluster& b) {
  const double x = a.loads - b.loads, y = a.terms - b.terms;
  return a.count * b.count / (a.count + b.count) * (x * x + y * y);
}

void join(Cluster& to, const Cluster& from) {
  const double count = to.count + from.count;
  to.loads = (to.loads * to.count + from.loads * from.count) / count;
  to.terms = (to.terms * to.count + from.terms * from.count) / count;
  to.count = count;
  to.members.insert(to.members.end(), from.members.begin(), from.members.end());
}

// So many loads with so many terms between them, spread over the first `columns` of the matrix.
Section proxy_section(const HostCsr& matrix, std::int64_t columns, std::int64_t full_rows, std::int64_t rows,
                      std::int64_t pieces, std::int64_t loads, std::int64_t terms, std::int64_t& number) {
  Section section;
  rows = std::max<std::int64_t>(1, std::min({rows, terms, full_rows}));
  for (std::int64_t r = 0; r < rows; ++r) section.rows.push_back(static_cast<std::int32_t>(r));
  pieces = std::max<std::int64_t>(1, std::min(std::max(pieces, (terms + kMostTerms - 1) / kMostTerms), loads));
  section.pieces.resize(static_cast<std::size_t>(pieces));
  std::int64_t made = 0;
  for (std::int64_t k = 0; k < loads; ++k) {
    SectionColumn column;
    column.column = static_cast<std::int32_t>(k * columns / loads);
    // Columns have different rows, as many as there are terms up to here.
    const std::int64_t until = std::min((k + 1) * terms / loads, made + rows);
    for (; made < until; ++made)
      column.terms.push_back({static_cast<std::int32_t>(made % rows), number++ % matrix.nonzeros()});
    std::ranges::sort(column.terms, {}, &SectionColumn::Term::row);
    if (!column.terms.empty()) section.pieces[static_cast<std::size_t>(k * pieces / loads)].push_back(column);
  }
  std::erase_if(section.pieces, [](const auto& piece) { return piece.empty(); });
  return section;
}

}  // namespace

std::vector<std::size_t> cluster_sections(const std::vector<SectionFeatures>& features, std::int64_t clusters) {
  SectionFeatures mean;
  for (const SectionFeatures& one : features) mean.loads += one.loads, mean.terms += one.terms;
  const auto count = static_cast<double>(std::max<std::size_t>(1, features.size()));
  // Sections of the same features are one from the start; more than some hundred kinds fall together as they are told
  // apart by fewer steps.
  std::vector<Cluster> left;
  constexpr std::size_t kKinds = 400;
  for (double steps = 1 << 16; left.empty() || left.size() > kKinds; steps /= 2) {
    std::map<std::pair<std::int64_t, std::int64_t>, Cluster> kinds;
    for (std::size_t k = 0; k < features.size(); ++k) {
      const double x = mean.loads > 0 ? features[k].loads * count / mean.loads : 0;
      const double y = mean.terms > 0 ? features[k].terms * count / mean.terms : 0;
      Cluster& kind = kinds[{std::llround(x * steps), std::llround(y * steps)}];
      join(kind, {x, y, 1, {k}});
    }
    left.clear();
    for (auto& [key, kind] : kinds) left.push_back(std::move(kind));
    if (left.empty()) break;
  }
  while (std::ssize(left) > std::max<std::int64_t>(1, clusters)) {
    std::size_t a = 0, b = 1;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < left.size(); ++i)
      for (std::size_t j = i + 1; j < left.size(); ++j)
        if (const double cost = join_cost(left[i], left[j]); cost < least) least = cost, a = i, b = j;
    join(left[a], left[b]);
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(b));
  }
  std::vector<std::size_t> cluster_of(features.size());
  for (std::size_t c = 0; c < left.size(); ++c)
    for (const std::size_t member : left[c].members) cluster_of[member] = c;
  return cluster_of;
}

SectionUses own_sections(Sections sections) {
  SectionUses own{std::move(sections), {}};
  for (std::size_t s = 0; s < own.functions.sections.size(); ++s) own.uses.push_back({s, 0});
  return own;
}

SectionUses make_proxy(const HostCsr& matrix, const Sections& sections, std::int64_t rows, std::int64_t pieces,
                       const ProxyOptions& options) {
  SectionUses proxy;
  // Rows are other ones than the sections': in order, the empty ones behind all others.
  const std::int64_t full_rows = matrix.rows - std::ssize(sections.empty_rows);
  for (std::int64_t row = full_rows; row < matrix.rows; ++row)
    proxy.functions.empty_rows.push_back(static_cast<std::int32_t>(row));
  if (sections.sections.empty()) return proxy;
  std::vector<SectionFeatures> features;
  for (const Section& section : sections.sections)
    features.push_back({static_cast<double>(section.loads()), static_cast<double>(section.terms())});
  std::vector<std::size_t> cluster_of(features.size());
  std::iota(cluster_of.begin(), cluster_of.end(), 0);
  if (options.clusters > 0) cluster_of = cluster_sections(features, options.clusters);
  const std::size_t clusters = 1 + *std::ranges::max_element(cluster_of);
  const double density =
      static_cast<double>(matrix.nonzeros()) / (static_cast<double>(matrix.rows) * static_cast<double>(matrix.columns));
  constexpr double kIterations = 300;                        // L 5.1.3; 1 - sparsity is the density
  std::vector<std::pair<std::int64_t, std::int64_t>> means;  // loads, terms
  for (std::size_t c = 0; c < clusters; ++c) {
    SectionFeatures sum;
    double members = 0;
    for (std::size_t s = 0; s < features.size(); ++s)
      if (cluster_of[s] == c) sum.loads += features[s].loads, sum.terms += features[s].terms, ++members;
    double loads = sum.loads / members, terms = sum.terms / members;
    const double most = std::ceil(kIterations / density);
    if (options.truncates && loads > most) terms *= most / loads, loads = most;
    means.emplace_back(std::llround(loads), std::max(std::llround(loads), std::llround(terms)));
  }
  if (options.moves_rows)
    proxy.spare_rows = std::min(matrix.columns / 2, matrix.columns - std::ranges::max(means).first);
  std::int64_t number = 0;
  for (const auto& [loads, terms] : means)
    proxy.functions.sections.push_back(
        proxy_section(matrix, matrix.columns - proxy.spare_rows, full_rows, rows, pieces, loads, terms, number));
  for (std::size_t s = 0; s < features.size(); ++s) {
    const std::int64_t base =
        std::min(static_cast<std::int64_t>(s) * rows, std::max<std::int64_t>(0, full_rows - rows));
    proxy.uses.push_back({cluster_of[s], base});
  }
  return proxy;
}

}  // namespace apl
