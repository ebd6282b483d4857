#include "aplc/sparse/estimate.h"

#include <fmt/format.h>

#include <cstdlib>

#include "aplc/sparse/files.h"
#include "machine/target/records.h"
#include "machine/target/target.h"
#include "runtime/sparse/csr_view.h"
#include "runtime/sparse/device_kernel.h"
#include "runtime/sparse/device_operand.h"
#include "suite/sparse/dense_product.h"

namespace aplc::sparse {

using apl::sparse::Operator;

const apl_device& modelled_device() {
  static const apl_device usual = *apl::find_device(std::string(apl::find_dialect("cuda")->record));
  return usual;
}

std::string_view fitted_in(apl::ScalarType element, bool sddmm) {
  const bool is_half = apl_sparse_is_half(static_cast<std::int32_t>(element)) != 0;
  if (is_half || (element == apl::ScalarType::f32 && !sddmm)) return "";
  return sddmm ? "f16" : "f16 and f32";
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
  const auto dense = cublas ? apl::sparse::library_microseconds : apl::sparse::dense_microseconds;
  return Estimate{*time, dense(modelled_device(), element, sddmm ? Operator::sddmm : Operator::spmm, matrix.rows,
                               matrix.columns, width)};
}

double KernelModel::operator()(const apl::sparse::Plan& plan) {
  const auto type = static_cast<std::int32_t>(element_);
  const bool sddmm = plan.problem.op == Operator::sddmm;
  const std::int64_t width = plan.problem.dense;
  if (plan.dense) {
    // A library's product is no slower: where it is behind, ours need not be compiled to be looked at, and is not
    // compared.
    const auto time = [&](auto microseconds) {
      return 1e3 * microseconds(modelled_device(), element_, plan.problem.op, matrix_.rows, matrix_.columns, width);
    };
    const double least_dense = time(apl::sparse::library_microseconds);
    if (cublas_) return least_dense;
    if (least_ > 0 && least_dense > least_) return 0;
    return time(apl::sparse::dense_microseconds);
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
