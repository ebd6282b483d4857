#include "aplc/sparse/estimate.h"

#include <fmt/format.h>

#include <cstdlib>

#include "aplc/sparse/dense_product.h"
#include "aplc/sparse/files.h"
#include "machine/target/records.h"
#include "machine/target/target.h"
#include "runtime/sparse/csr_view.h"
#include "runtime/sparse/device_operand.h"

namespace aplc::sparse {

const apl_device& modelled_device() {
  static const apl_device usual = *apl::find_device(std::string(apl::find_dialect("cuda")->record));
  return usual;
}

std::string Estimate::verdict() const {
  if (!says_dense()) return fmt::format("no: it takes {:.1f} times as long by the models", dense / sparse);
  return fmt::format("yes: it is {:.1f} times as fast by the models", sparse / dense);
}

namespace {

// Of the runtime's kernels; nothing without memory.
std::optional<double> kernels_microseconds(const apl_sparse_csr& matrix, const apl_sparse_plan* plan, bool sddmm,
                                           std::int32_t type, std::int64_t width) {
  if (plan != nullptr && plan->dense) plan = nullptr;
  if (sddmm) {
    apl_sparse_sddmm_packed* samples = nullptr;
    if (apl_sparse_sddmm_packed_make(&matrix, plan, &modelled_device(), type, width, nullptr, &samples) !=
        APL_SPARSE_FINE)
      return std::nullopt;
    const double time = apl_sparse_sddmm_microseconds(samples, type, width);
    apl_sparse_sddmm_packed_free(samples);
    return time;
  }
  apl_sparse_packed* packed = nullptr;
  apl_sparse_reordering rows{};
  if (plan == nullptr && apl_sparse_reorder(&matrix, &modelled_device(), type, width, &rows) != APL_SPARSE_FINE)
    return std::nullopt;
  apl_sparse_options options{};
  options.row_order = rows.order;
  const int made = apl_sparse_packed_make(&matrix, plan, &modelled_device(), type, width, &options, &packed);
  std::free(rows.order);
  if (made != APL_SPARSE_FINE) return std::nullopt;
  const double time = apl_sparse_microseconds(packed, type, width);
  apl_sparse_packed_free(packed);
  return time;
}

}  // namespace

std::optional<Estimate> estimate(const apl_sparse_csr& matrix, const apl_sparse_plan* plan, bool sddmm,
                                 apl::ScalarType element, std::int64_t width, bool cublas) {
  const auto time = kernels_microseconds(matrix, plan, sddmm, static_cast<std::int32_t>(element), width);
  if (!time) return std::nullopt;
  return Estimate{
      *time, (cublas ? cublas_microseconds : dense_microseconds)(element, sddmm, matrix.rows, matrix.columns, width)};
}

double cublas_microseconds(apl::ScalarType type, bool sddmm, std::int64_t rows, std::int64_t columns,
                           std::int64_t width) {
  return apl_sparse_dense_microseconds(&modelled_device(), static_cast<std::int32_t>(type), rows,
                                       sddmm ? width : columns, sddmm ? columns : width);
}

double KernelModel::operator()(const apl::sparse::Plan& plan) {
  const auto type = static_cast<std::int32_t>(element_);
  const bool sddmm = plan.problem.op == apl::sparse::Operator::sddmm;
  const std::int64_t width = plan.problem.dense;
  if (plan.dense) {
    // A library's product is no slower: where it is behind, ours need not be compiled to be looked at.
    const double least_dense = 1e3 * cublas_microseconds(element_, sddmm, matrix_.rows, matrix_.columns, width);
    if (cublas_ || (least_ > 0 && least_dense > least_)) return least_dense;
    return 1e3 * dense_microseconds(element_, sddmm, matrix_.rows, matrix_.columns, width);
  }
  int exit = 0;
  const auto parsed = parse_plan(to_text(plan), "plan", exit);
  const auto time =
      parsed ? kernels_microseconds(apl::csr_view(matrix_), parsed.get(), sddmm, type, width) : std::nullopt;
  if (!time) return 0;
  if (least_ == 0 || 1e3 * *time < least_) least_ = 1e3 * *time;
  return 1e3 * *time;
}

}  // namespace aplc::sparse
