#include "aplc/sparse/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <memory>

#include "aplc/sparse/estimate.h"
#include "runtime/sparse/device_kernel.h"
#include "runtime/sparse/device_operand.h"
#include "suite/sparse/dense_product.h"

namespace aplc::sparse {
namespace {

struct FreePacked {
  void operator()(apl_sparse_packed* packed) const { apl_sparse_packed_free(packed); }
  void operator()(apl_sparse_sddmm_packed* samples) const { apl_sparse_sddmm_packed_free(samples); }
};

std::string microseconds(double time) { return fmt::format("{:.2f} us", time); }
double percent_of(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}
double stored_times(std::int64_t stored, std::int64_t nonzeros) {
  return nonzeros == 0 ? 1 : static_cast<double>(stored) / static_cast<double>(nonzeros);
}

std::string windows_text(std::int64_t windows, std::int64_t height, std::int64_t steps) {
  return fmt::format("{} windows of {} rows on tensor cores ({} steps)", windows, height, steps);
}

}  // namespace

void describe_matrix(const std::string& file, const apl_sparse_csr& csr, const std::int32_t* order, Facts& facts) {
  apl_sparse_statistics s{};
  if (apl_sparse_measure(&csr, order, &s) != APL_SPARSE_FINE) return;
  facts.emplace_back("matrix",
                     fmt::format("{}: {} by {}, {} non-zeros ({:.3g} %)", file, s.rows, s.columns, s.nonzeros,
                                 percent_of(s.nonzeros, 1) / static_cast<double>(std::max<std::int64_t>(s.rows, 1)) /
                                     static_cast<double>(std::max<std::int64_t>(s.columns, 1))));
  facts.emplace_back("rows", fmt::format("{:.1f} non-zeros, at most {}; {:.2f} for each column of 8 rows", s.mean,
                                         s.longest, s.shared));
}

void describe_tiles(const apl_sparse_tiles& t, Facts& facts) {
  std::array<std::int64_t, 4> by_height{};
  std::int64_t in_blocks = 0, in_ell = 0;
  for (std::int64_t k = 0; k < t.blocks; ++k) {
    const apl_sparse_block& block = t.block[k];
    const std::int32_t* source = t.block_source + block.first_element;
    const auto held = std::count_if(source, source + block.steps * block.height * APL_SPARSE_STEP,
                                    [](std::int32_t at) { return at >= 0; });
    by_height[static_cast<std::size_t>(std::countr_zero(static_cast<unsigned>(block.height)) - 3)] += held;
    in_blocks += held;
  }
  in_ell = std::count_if(t.ell_source, t.ell_source + t.ell_elements, [](std::int32_t at) { return at >= 0; });
  std::string heights;
  for (std::size_t h = 0; h < by_height.size(); ++h)
    if (by_height[h] > 0)
      heights += fmt::format("{}{:.1f} % of {} rows", heights.empty() ? "" : ", ", percent_of(by_height[h], t.nonzeros),
                             8 << h);
  facts.emplace_back("blocks", fmt::format("{:.1f} % of the non-zeros{}", percent_of(in_blocks, t.nonzeros),
                                           heights.empty() ? "" : " (" + heights + ")"));
  facts.emplace_back("ELL", fmt::format("{:.1f} %", percent_of(in_ell, t.nonzeros)));
  facts.emplace_back("nnz segments", fmt::format("{:.1f} %", percent_of(t.segment_elements, t.nonzeros)));
  facts.emplace_back("padding",
                     fmt::format("{:.2f} elements stored for each non-zero",
                                 stored_times(t.block_elements + t.ell_elements + t.segment_elements, t.nonzeros)));
}

void describe_kernels(const Explained& product, const apl_sparse_csr& csr, const apl_sparse_plan* plan,
                      std::int64_t width, Facts& facts) {
  const auto type = static_cast<std::int32_t>(product.type);
  double sparse = 0;
  if (product.sddmm) {
    apl_sparse_sddmm_packed* made = nullptr;
    if (apl_sparse_sddmm_packed_make(&csr, plan, &modelled_device(), type, width, nullptr, &made) != APL_SPARSE_FINE)
      return;
    const std::unique_ptr<apl_sparse_sddmm_packed, FreePacked> samples(made);
    facts.emplace_back("kernels", samples->windows > 0 ? windows_text(samples->windows, 8, samples->steps)
                                                       : "a list of coordinates, four to a group of lanes");
    sparse = apl_sparse_sddmm_microseconds(made, type, width);
  } else {
    apl_sparse_packed* made = nullptr;
    apl_sparse_reordering rows{};
    if (plan == nullptr && apl_sparse_reorder(&csr, &modelled_device(), type, width, &rows) != APL_SPARSE_FINE) return;
    const std::unique_ptr<std::int32_t, decltype(&std::free)> order(rows.order, &std::free);
    apl_sparse_options options{};
    options.row_order = rows.order;
    if (rows.order != nullptr)
      facts.emplace_back("order of rows", fmt::format("made when the matrix is seen: {} by the model, as they are {}",
                                                      microseconds(rows.after), microseconds(rows.before)));
    if (apl_sparse_packed_make(&csr, plan, &modelled_device(), type, width, &options, &made) != APL_SPARSE_FINE) return;
    const std::unique_ptr<apl_sparse_packed, FreePacked> packed(made);
    std::string kernels;
    if (packed->windows > 0) kernels = windows_text(packed->windows, 8 * packed->parts, packed->steps);
    if (packed->records > 0)
      kernels += fmt::format("{}{} gathered rows{}: {} by a block each, {} by a warp, {} by a group of lanes",
                             kernels.empty() ? "" : "; ", packed->records,
                             packed->cuts > 0 ? fmt::format(" and pieces of {} long ones", packed->cuts) : "",
                             packed->longs, packed->mediums, packed->records - packed->longs - packed->mediums);
    facts.emplace_back("kernels", kernels);
    facts.emplace_back("padding of kernels", fmt::format("{:.2f} values stored for each non-zero",
                                                         stored_times(packed->values, csr.nonzeros)));
    sparse = apl_sparse_microseconds(made, type, width);
  }
  const auto op = product.sddmm ? apl::sparse::Operator::sddmm : apl::sparse::Operator::spmm;
  const double dense =
      apl::sparse::dense_microseconds(modelled_device(), product.type, op, csr.rows, csr.columns, width);
  const Estimate both{sparse, dense};
  const std::string_view fitted = fitted_in(product.type, product.sddmm);
  facts.emplace_back("predicted",
                     fmt::format("{} ({} on an H200{}, {} {})", microseconds(sparse), apl::to_text(product.type),
                                 fitted.empty() ? "" : fmt::format(", by a model that was fitted in {}", fitted),
                                 product.sddmm ? "depth" : "width", width));
  facts.emplace_back("predicted dense", microseconds(dense));
  facts.emplace_back("dense by cuBLAS", microseconds(apl::sparse::library_microseconds(
                                            modelled_device(), product.type, op, csr.rows, csr.columns, width)));
  facts.emplace_back(
      "dense", both.verdict() + (both.says_dense() ? fmt::format("; leave out #[sparse({})]", product.operand) : ""));
}

}  // namespace aplc::sparse
