#include "bench/sparse/matrices.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "passes/sparse/parallel.h"

namespace apl::bench {
namespace {

using sparse::Csr;

// Random numbers that depend on where they are used alone, so that rows can be made in any order.
class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t row) : state_(mix(seed + 0x9E3779B97F4A7C15U * (row + 1))) {}

  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  std::int64_t below(std::int64_t count) { return static_cast<std::int64_t>(unit() * static_cast<double>(count)); }
  double normal() { return std::sqrt(-2 * std::log(1 - unit())) * std::cos(2 * 3.141592653589793 * unit()); }

 private:
  static std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31);
  }
  std::uint64_t next() { return mix(state_ += 0x9E3779B97F4A7C15U); }

  std::uint64_t state_;
};

std::uint64_t seed_of(const std::string& name) {
  std::uint64_t seed = 0xcbf29ce484222325U;
  for (const char c : name) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return seed;
}

// Rows of given lengths, whose columns `draw(random, row)` proposes until there are enough different ones.
template <class Draw>
Csr drawn(std::uint64_t seed, std::int64_t columns, const std::vector<std::int64_t>& length, int threads,
          const Draw& draw) {
  Csr matrix{static_cast<std::int64_t>(length.size()), columns, {0}, {}, {}};
  for (const std::int64_t count : length) matrix.row_start.push_back(matrix.row_start.back() + count);
  matrix.column.resize(static_cast<std::size_t>(matrix.row_start.back()));
  sparse::in_pieces(matrix.rows, 256, threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      Random random(seed, static_cast<std::uint64_t>(row));
      const auto first = matrix.column.begin() + matrix.row_start[static_cast<std::size_t>(row)];
      const auto last = first + length[static_cast<std::size_t>(row)];
      auto at = first;
      for (int round = 0; at != last; ++round) {
        // Columns that are proposed again and again cannot fill long rows: then any will do.
        for (; at != last; ++at)
          *at = static_cast<std::int32_t>(round < 64 ? draw(random, row) : random.below(columns));
        std::sort(first, last);
        at = std::unique(first, last);
      }
    }
  });
  return matrix;
}

struct Community {
  std::int64_t vertices, nonzeros, communities;
  double inside, exponent;  // share of the edges that stay in a community; weights fall as rank^-exponent
  bool shuffled;
};

// Lengths that fall off within communities as weights do, and add up to `nonzeros`.
std::vector<std::int64_t> lengths(const std::vector<std::int64_t>& starts, const Community& c) {
  std::vector<double> weight(static_cast<std::size_t>(c.vertices));
  for (std::size_t k = 0; k + 1 < starts.size(); ++k)
    for (std::int64_t v = starts[k]; v < starts[k + 1]; ++v)
      weight[static_cast<std::size_t>(v)] =
          (1 - c.exponent) *
          std::pow((static_cast<double>(v - starts[k]) + 0.5) / static_cast<double>(starts[k + 1] - starts[k]),
                   -c.exponent);
  const double all = std::accumulate(weight.begin(), weight.end(), 0.0);
  std::vector<std::int64_t> length(weight.size());
  double sum = 0;
  std::int64_t given = 0;
  for (std::size_t v = 0; v < weight.size(); ++v) {
    sum += weight[v];
    const auto upto = v + 1 == weight.size() ? c.nonzeros : std::llround(sum / all * static_cast<double>(c.nonzeros));
    length[v] = std::min<std::int64_t>(upto - given, c.vertices);
    given = upto;
  }
  return length;
}

Csr community(const std::string& name, const Community& c, int threads) {
  const std::uint64_t seed = seed_of(name);
  Random random(seed, ~std::uint64_t{0});
  std::vector<double> share(static_cast<std::size_t>(c.communities));
  for (double& s : share) s = 0.3 + random.unit();
  const double all = std::accumulate(share.begin(), share.end(), 0.0);
  std::vector<std::int64_t> starts{0};
  double sum = 0;
  for (const double s : share) starts.push_back(static_cast<std::int64_t>((sum += s) / all * c.vertices));
  starts.back() = c.vertices;
  std::vector<std::int32_t> at(static_cast<std::size_t>(c.vertices)), vertex(at.size());  // vertex at each position
  std::iota(vertex.begin(), vertex.end(), 0);
  for (std::size_t k = vertex.size(); c.shuffled && k > 1; --k)
    std::swap(vertex[k - 1], vertex[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(k)))]);
  for (std::size_t k = 0; k < vertex.size(); ++k)
    at[static_cast<std::size_t>(vertex[k])] = static_cast<std::int32_t>(k);
  const std::vector<std::int64_t> placed = lengths(starts, c);
  std::vector<std::int64_t> length(placed.size());
  for (std::size_t k = 0; k < placed.size(); ++k) length[static_cast<std::size_t>(vertex[k])] = placed[k];
  const double power = 1 / (1 - c.exponent);
  const auto community_of = [&](std::int64_t place) {
    return std::upper_bound(starts.begin(), starts.end(), place) - starts.begin() - 1;
  };
  return drawn(seed, c.vertices, length, threads, [&](Random& r, std::int64_t row) {
    const std::int64_t place = r.unit() < c.inside ? at[static_cast<std::size_t>(row)] : r.below(c.vertices);
    const auto k = static_cast<std::size_t>(community_of(place));
    const std::int64_t size = starts[k + 1] - starts[k];
    const auto offset = static_cast<std::int64_t>(static_cast<double>(size) * std::pow(r.unit(), power));
    return vertex[static_cast<std::size_t>(starts[k] + std::min(offset, size - 1))];
  });
}

// The largest of exponential scores, of which there are `nonzeros`; `skew` makes rows and columns differ in importance.
Csr pruned(const std::string& name, std::int64_t rows, std::int64_t columns, std::int64_t nonzeros, double skew) {
  Random random(seed_of(name), 0);
  std::vector<double> row_scale(static_cast<std::size_t>(rows)), column_scale(static_cast<std::size_t>(columns));
  for (double& s : row_scale) s = std::exp(skew * random.normal());
  for (double& s : column_scale) s = std::exp(skew * random.normal());
  std::vector<std::pair<double, std::int64_t>> score(static_cast<std::size_t>(rows * columns));
  for (std::int64_t k = 0; k < rows * columns; ++k)
    score[static_cast<std::size_t>(k)] = {-std::log(1 - random.unit()) *
                                              row_scale[static_cast<std::size_t>(k / columns)] *
                                              column_scale[static_cast<std::size_t>(k % columns)],
                                          k};
  std::nth_element(score.begin(), score.begin() + nonzeros, score.end(), std::greater<>());
  sparse::Coo entries{rows, columns, {}, {}, {}};
  for (std::int64_t k = 0; k < nonzeros; ++k) {
    entries.row.push_back(static_cast<std::int32_t>(score[static_cast<std::size_t>(k)].second / columns));
    entries.column.push_back(static_cast<std::int32_t>(score[static_cast<std::size_t>(k)].second % columns));
  }
  return *sparse::from_coo(entries);
}

// Full blocks of 32 by 32; three rows of blocks of ten are empty.
Csr blocks(const std::string& name, std::int64_t rows, std::int64_t columns, std::int64_t count) {
  constexpr std::int64_t kSize = 32;
  Random random(seed_of(name), 0);
  std::vector<std::pair<double, std::int64_t>> candidate;
  for (std::int64_t i = 0; i < rows / kSize; ++i) {
    const bool live = random.unit() >= 0.3 || i == 0;
    for (std::int64_t j = 0; live && j < columns / kSize; ++j) candidate.emplace_back(random.unit(), i * columns + j);
  }
  std::sort(candidate.begin(), candidate.end());
  candidate.resize(std::min(candidate.size(), static_cast<std::size_t>(count)));
  sparse::Coo entries{rows, columns, {}, {}, {}};
  for (const auto& [unused, block] : candidate)
    for (std::int64_t k = 0; k < kSize * kSize; ++k) {
      entries.row.push_back(static_cast<std::int32_t>(block / columns * kSize + k / kSize));
      entries.column.push_back(static_cast<std::int32_t>(block % columns * kSize + k % kSize));
    }
  return *sparse::from_coo(entries);
}

// Those positions of a square whose column minus row is such.
Csr by_offset(std::int64_t size, const std::function<bool(std::int64_t)>& wanted) {
  Csr matrix{size, size, {0}, {}, {}};
  for (std::int64_t i = 0; i < size; ++i) {
    for (std::int64_t j = 0; j < size; ++j)
      if (wanted(j - i)) matrix.column.push_back(static_cast<std::int32_t>(j));
    matrix.row_start.push_back(matrix.nonzeros());
  }
  return matrix;
}

// A row at a time: `length` columns that `draw` proposes, and `more` of them.
Csr by_rows(std::int64_t rows, std::int64_t columns,
            const std::function<void(std::int64_t, std::vector<std::int32_t>&)>& add) {
  Csr matrix{rows, columns, {0}, {}, {}};
  std::vector<std::int32_t> here;
  for (std::int64_t row = 0; row < rows; ++row) {
    here.clear();
    add(row, here);
    std::sort(here.begin(), here.end());
    here.erase(std::unique(here.begin(), here.end()), here.end());
    matrix.column.insert(matrix.column.end(), here.begin(), here.end());
    matrix.row_start.push_back(matrix.nonzeros());
  }
  return matrix;
}

// Diagonals up to `half` beside the main one, `percent` of each.
void add_band(Random& random, std::int64_t row, std::int64_t columns, std::int64_t half, double share,
              std::vector<std::int32_t>& here) {
  for (std::int64_t j = std::max<std::int64_t>(0, row - half); j <= std::min(columns - 1, row + half); ++j)
    if (random.unit() < share) here.push_back(static_cast<std::int32_t>(j));
}

void add_any(Random& random, std::int64_t count, std::int64_t columns, double exponent,
             std::vector<std::int32_t>& here) {
  for (std::int64_t k = 0; k < count; ++k)
    here.push_back(static_cast<std::int32_t>(std::min(
        columns - 1, static_cast<std::int64_t>(std::pow(random.unit(), exponent) * static_cast<double>(columns)))));
}

void add_all(std::int64_t columns, std::vector<std::int32_t>& here) {
  for (std::int64_t j = 0; j < columns; ++j) here.push_back(static_cast<std::int32_t>(j));
}

// Patterns of several kinds in one matrix. `size` and `amount` are what the name says.
std::optional<Csr> composed(const std::string& name, const std::string& kind, std::int64_t size, std::int64_t amount) {
  const std::uint64_t seed = seed_of(name);
  const auto random_of = [&](std::int64_t row) { return Random(seed, static_cast<std::uint64_t>(row)); };
  if (kind == "banded")
    return by_rows(size, size, [&](std::int64_t row, std::vector<std::int32_t>& here) {
      Random random = random_of(row);
      add_band(random, row, size, amount, 0.6, here);
    });
  // The first rows and columns are full, and a band.
  if (kind == "arrow")
    return by_rows(size, size, [&](std::int64_t row, std::vector<std::int32_t>& here) {
      Random random = random_of(row);
      if (row < amount) return add_all(size, here);
      add_all(amount, here);
      add_band(random, row, size, 2, 1, here);
    });
  // So many full rows in a graph of short ones.
  if (kind == "longrows")
    return by_rows(size, size, [&](std::int64_t row, std::vector<std::int32_t>& here) {
      Random random = random_of(row);
      if (row % (size / amount) == 7) return add_all(size, here);
      add_any(random, 5, size, 1, here);
    });
  // Full blocks of 32 on so many percent of the diagonal, and everywhere columns by a power law.
  if (kind == "levels")
    return by_rows(size, size, [&](std::int64_t row, std::vector<std::int32_t>& here) {
      Random of_block = random_of(~(row / 32)), random = random_of(row);
      if (of_block.unit() * 100 < static_cast<double>(amount))
        for (std::int64_t j = row / 32 * 32; j < std::min(size, row / 32 * 32 + 32); ++j)
          here.push_back(static_cast<std::int32_t>(j));
      add_any(random, 6, size, 3, here);
    });
  // A band, so many full rows, noise.
  if (kind == "bandrows")
    return by_rows(size, size, [&](std::int64_t row, std::vector<std::int32_t>& here) {
      Random random = random_of(row);
      if (row % (size / amount) == size / amount / 2) return add_all(size, here);
      add_band(random, row, size, 24, 0.7, here);
      add_any(random, 3, size, 1, here);
    });
  // Attention: so many neighbours on either side, and each 512th token sees all and is seen by all.
  if (kind == "window")
    return by_rows(size, size, [&](std::int64_t row, std::vector<std::int32_t>& here) {
      Random random = random_of(row);
      if (row % 512 == 0) return add_all(size, here);
      add_band(random, row, size, amount, 1, here);
      for (std::int64_t j = 0; j < size; j += 512) here.push_back(static_cast<std::int32_t>(j));
    });
  // Half of the rows in full blocks of 16 by 64, the others short.
  if (kind == "halves")
    return by_rows(size, size, [&](std::int64_t row, std::vector<std::int32_t>& here) {
      Random of_block = random_of(~(row / 16)), random = random_of(row);
      if (row >= size / 2) return add_any(random, amount, size, 2, here);
      for (int k = 0; k < 3; ++k) {
        const std::int64_t first = of_block.below(size / 64) * 64;
        for (std::int64_t j = first; j < first + 64; ++j) here.push_back(static_cast<std::int32_t>(j));
      }
    });
  return std::nullopt;
}

// Another numbering of the rows, and of the columns; where both are as many, the same one.
Csr permuted(const std::string& name, const Csr& matrix) {
  Random random(seed_of(name), ~std::uint64_t{1});
  const auto shuffled = [&](std::int64_t count) {
    std::vector<std::int32_t> to(static_cast<std::size_t>(count));
    std::iota(to.begin(), to.end(), 0);
    for (std::size_t k = to.size(); k > 1; --k)
      std::swap(to[k - 1], to[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(k)))]);
    return to;
  };
  const std::vector<std::int32_t> rows = shuffled(matrix.rows),
                                  columns = matrix.columns == matrix.rows ? rows : shuffled(matrix.columns);
  sparse::Coo entries{matrix.rows, matrix.columns, {}, {}, {}};
  for (std::int64_t row = 0; row < matrix.rows; ++row)
    for (const std::int32_t column : matrix.row(row)) {
      entries.row.push_back(rows[static_cast<std::size_t>(row)]);
      entries.column.push_back(columns[static_cast<std::size_t>(column)]);
    }
  return *sparse::from_coo(entries);
}

bool is_power_of_two(std::int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

// Figure 12's idea: blocks of 16 by 16 that cross pieces of rows of 32.
Csr crossed(const std::string& name, std::int64_t size) {
  Random random(seed_of(name), 0);
  sparse::Coo entries{size, size, {}, {}, {}};
  const auto add = [&](std::int64_t row, std::int64_t column) {
    entries.row.push_back(static_cast<std::int32_t>(row));
    entries.column.push_back(static_cast<std::int32_t>(column));
  };
  for (std::int64_t i = 0; i < size; i += 16)
    for (std::int64_t j = 0; j < size; j += 16)
      for (std::int64_t k = random.unit() < 0.01 ? 0 : 256; k < 256; ++k) add(i + k / 16, j + k % 16);
  for (int run = 0; run < 6000; ++run) {
    const std::int64_t row = random.below(size), column = random.below(size / 32) * 32;
    for (std::int64_t k = 0; k < 32; ++k) add(row, column + k);
  }
  return *sparse::from_coo(entries);
}

const std::vector<std::pair<std::string, Community>>& communities() {
  static const std::vector<std::pair<std::string, Community>> kAll = {
      {"cora_syn", {2708, 10556, 7, 0.8, 0.5, true}},
      {"citeseer_syn", {3327, 9228, 6, 0.75, 0.5, true}},
      {"pubmed_syn", {19717, 88651, 3, 0.8, 0.6, true}},
      {"ppi_syn", {44906, 1271274, 24, 0.98, 0.35, false}},
      {"arxiv_syn", {169343, 1166243, 40, 0.70, 0.55, true}},
      {"ND_syn", {325729, 1497134, 4000, 0.92, 0.60, false}},
      {"proteins_syn", {132534, 39561252, 60, 0.90, 0.40, false}},
      {"reddit_syn", {232965, 114615892, 50, 0.75, 0.45, true}},
      {"proteins_clu", {132534, 39561252, 200, 0.90, 0.10, false}},
      {"reddit_clu", {232965, 114615892, 240, 0.75, 0.10, false}},
  };
  return kAll;
}

}  // namespace

const std::vector<MatrixName>& matrix_names() {
  static const std::vector<MatrixName> kAll = [] {
    std::vector<MatrixName> all;
    for (const auto& [name, c] : communities()) all.push_back({name, "graph", c.nonzeros});
    for (const char* name : {"768x768_s50", "768x768_s70", "768x768_s80", "768x768_s90", "768x768_s95", "3072x768_s90",
                             "3072x768_s95", "768x3072_s90", "move_768x768_s99", "move_3072x768_s95"})
      all.push_back({name, "pruned", 0});
    for (const char* name : {"blocks_768x768_121", "blocks_768x768_40", "blocks_3072x768_492", "blocks_3072x768_161",
                             "blocks_768x3072_492"})
      all.push_back({name, "blocks", 0});
    for (const char* name : {"logsparse", "strided", "crossed"}) all.push_back({name, "attention", 0});
    return all;
  }();
  return kAll;
}

const std::vector<std::string>& mixed_names() {
  static const std::vector<std::string> kAll = {
      "halves_16384_24",        "levels_32768_30", "bandrows_16384_8",  "permuted_halves_16384_24",
      "communities_20000_40",   "arrow_20000_8",   "window_8192_32",    "longrows_20000_8",
      "levels_16384_20",        "halves_8192_60",  "bandrows_65536_16", "permuted_levels_32768_30",
      "communities_100000_100", "arrow_60000_2",   "window_2048_64",    "longrows_100000_4",
      "levels_65536_10",        "halves_32768_8",  "bandrows_8192_4",   "permuted_banded_65536_16",
      "communities_50000_20",   "arrow_10000_4",   "levels_32768_60",   "halves_65536_12"};
  return kAll;
}

std::string kind_of(const std::string& name) {
  const auto& mixed = mixed_names();
  if (std::find(mixed.begin(), mixed.end(), name) != mixed.end()) return "mixed";
  if (name.rfind("permuted_", 0) == 0) return kind_of(name.substr(9));
  if (name.rfind("communities", 0) == 0) return "graph";
  if (name.rfind("semi", 0) == 0) return "pruned";
  if (name.rfind("levels", 0) == 0 || name.rfind("bandrows", 0) == 0 || name.rfind("halves", 0) == 0) return "mixed";
  if (name.rfind("banded", 0) == 0 || name.rfind("arrow", 0) == 0) return "banded";
  if (name.rfind("window", 0) == 0) return "attention";
  return name.rfind("longrows", 0) == 0 ? "graph" : "other";
}

std::optional<sparse::Csr> make_matrix(const std::string& name, int threads) {
  for (const auto& [other, c] : communities())
    if (name == other) return community(name, c, threads);
  if (name == "logsparse")
    return by_offset(4096,
                     [](std::int64_t d) { return d == 0 || is_power_of_two(-d) || (d > 1 && is_power_of_two(d)); });
  if (name == "strided")
    return by_offset(4096, [](std::int64_t d) { return std::abs(d) < 64 || (d % 64 == 0 && std::abs(d) >= 128); });
  if (name == "crossed") return crossed(name, 4096);
  if (name.rfind("permuted_", 0) == 0) {
    const auto matrix = make_matrix(name.substr(9), threads);
    return matrix ? std::optional(permuted(name, *matrix)) : std::nullopt;
  }
  long long rows = 0, columns = 0, amount = 0;
  // A graph of communities of so many vertices, which are not neighbours.
  if (std::sscanf(name.c_str(), "communities_%lld_%lld", &rows, &amount) == 2 && amount > 0 && amount < rows)
    return community(name, {rows, 16 * rows, rows / amount, 0.85, 0.3, true}, threads);
  if (std::sscanf(name.c_str(), "blocks_%lldx%lld_%lld", &rows, &columns, &amount) == 3)
    return blocks(name, rows, columns, amount);
  for (const char* kind : {"banded", "arrow", "longrows", "levels", "bandrows", "window", "halves"})
    if (std::sscanf(name.c_str(), (std::string(kind) + "_%lld_%lld").c_str(), &rows, &amount) == 2 && rows > 0 &&
        amount > 0 && amount < rows)
      return composed(name, kind, rows, amount);
  // Two of each four elements of a row, as hardware for that wants them.
  if (std::sscanf(name.c_str(), "semi_%lldx%lld", &rows, &columns) == 2 && rows > 0 && columns > 0 && columns % 4 == 0)
    return by_rows(rows, columns, [&](std::int64_t row, std::vector<std::int32_t>& here) {
      Random random(seed_of(name), static_cast<std::uint64_t>(row));
      for (std::int64_t j = 0; j < columns; j += 4) {
        const std::int64_t first = random.below(4), second = (first + 1 + random.below(3)) % 4;
        here.push_back(static_cast<std::int32_t>(j + std::min(first, second)));
        here.push_back(static_cast<std::int32_t>(j + std::max(first, second)));
      }
    });
  const bool skewed = name.rfind("move_", 0) == 0;
  if (std::sscanf(name.c_str() + (skewed ? 5 : 0), "%lldx%lld_s%lld", &rows, &columns, &amount) == 3 && amount < 100)
    return pruned(name, rows, columns, std::llround(static_cast<double>(rows * columns * (100 - amount)) / 100),
                  skewed ? 0.8 : 0);
  return std::nullopt;
}

}  // namespace apl::bench
