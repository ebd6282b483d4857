#include "tests/sparse/tiles.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "runtime/program/sparse_tiles.h"
#include "runtime/sparse/csr_view.h"

namespace apl::sparse_tests {
namespace {

std::string random_selections(Random& random) {
  std::string text;
  for (std::int64_t k = random.between(0, 4); k > 0; --k) {
    const std::int64_t height = 8 << random.between(0, 3);
    const std::int64_t window = random.chance(60) ? 0 : random.between(0, APL_SPARSE_GROUP / height - 1);
    text += fmt::format(" {}@{}>={}", height, window, random.between(1, random.chance(80) ? 3 : height));
  }
  return text;
}

std::string head_of_plan(const HostCsr& matrix, bool sddmm) {
  const apl_sparse_csr rows = apl::csr_view(matrix);
  return fmt::format("apl-sparse-plan 2\nmatrix {} {} {} {:016x}\noperator {}\ndense 8 part 8\n", rows.rows,
                     rows.columns, rows.nonzeros, apl_sparse_hash(&rows), sddmm ? "sddmm" : "spmm");
}

}  // namespace

std::string dense_plan(const HostCsr& matrix, bool sddmm) { return head_of_plan(matrix, sddmm) + "form dense\nend\n"; }

std::string random_plan(const HostCsr& matrix, bool sddmm, Random& random) {
  std::string text = head_of_plan(matrix, sddmm) + "form tiles\norder";
  if (random.chance(50)) {
    text += " natural";
  } else {
    std::vector<std::int64_t> order(static_cast<std::size_t>(matrix.rows));
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t k = order.size(); k > 1; --k)
      std::swap(order[k - 1], order[static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(k) - 1))]);
    for (const std::int64_t row : order) text += fmt::format(" {}", row);
  }
  text += "\nell";
  std::int64_t width = 0;
  for (std::int64_t k = random.between(1, 4); k > 0; --k) text += fmt::format(" {}", width += random.between(1, 4));
  const std::int64_t groups = (matrix.rows + APL_SPARSE_GROUP - 1) / APL_SPARSE_GROUP;
  text += fmt::format(" elements {} segments {}\ngroups {}\n", random.between(1, 20), random.between(1, 9), groups);
  for (std::int64_t k = 0; k < groups; ++k)
    text += fmt::format("1{} {}\n", random_selections(random), random.chance(50) ? "ell" : "segments");
  return text + "end\n";
}

TileMaker plan_tiles(bool builtin, std::uint64_t seed, std::map<std::string, int>& kinds) {
  return [builtin, seed, &kinds](const std::string& operand, const HostCsr& matrix,
                                 const std::vector<SoaField>& fields) -> Result<HostTiles> {
    std::vector<program::GivenPlan> plans;
    if (!builtin) {
      Random random(seed);
      // Those of the other operator are not taken.
      auto read = program::read_plans({{operand, "sums", random_plan(matrix, false, random)},
                                       {operand, "samples", random_plan(matrix, true, random)}});
      if (!read) return std::move(read).error();
      plans = std::move(*read);
    }
    auto made = program::tile_maker(std::move(plans))(operand, matrix, fields);
    if (!made) return made;
    kinds["tiles blocks"] += made->block_row.empty() ? 0 : 1;
    kinds["tiles lists"] += made->ell_row.empty() ? 0 : 1;
    kinds["tiles runs"] += made->segment_row.empty() ? 0 : 1;
    kinds["tiles padding"] += std::ranges::find(made->ell_source, -1) != made->ell_source.end() ? 1 : 0;
    return made;
  };
}

}  // namespace apl::sparse_tests
