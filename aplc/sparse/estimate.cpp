#include "aplc/sparse/estimate.h"

#include <fmt/format.h>

#include <cstdlib>

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

bool Estimate::says_dense() const { return apl_sparse_prefers_dense(&modelled_device(), sparse, dense) != 0; }

std::string Estimate::verdict() const {
  if (!says_dense()) return fmt::format("no: it takes {:.1f} times as long by the model", dense / sparse);
  if (dense >= sparse) return "yes: the model cannot tell them apart, and it is at most a little slower";
  return fmt::format("yes: it is {:.1f} times as fast by the model", sparse / dense);
}

std::optional<Estimate> estimate(const apl_sparse_csr& matrix, const apl_sparse_plan* plan, bool sddmm,
                                 apl::ScalarType element, std::int64_t width) {
  const auto type = static_cast<std::int32_t>(element);
  if (plan != nullptr && plan->dense) plan = nullptr;
  if (sddmm) {
    apl_sparse_sddmm_packed* samples = nullptr;
    if (apl_sparse_sddmm_packed_make(&matrix, plan, &modelled_device(), type, width, nullptr, &samples) !=
        APL_SPARSE_FINE)
      return std::nullopt;
    const double time = apl_sparse_sddmm_microseconds(samples, type, width);
    apl_sparse_sddmm_packed_free(samples);
    return Estimate{time, apl_sparse_dense_microseconds(&modelled_device(), type, matrix.rows, width, matrix.columns)};
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
  return Estimate{time, apl_sparse_dense_microseconds(&modelled_device(), type, matrix.rows, matrix.columns, width)};
}

double kernel_nanoseconds(const apl::sparse::Csr& matrix, const apl::sparse::Plan& plan, apl::ScalarType element) {
  const auto type = static_cast<std::int32_t>(element);
  const bool sddmm = plan.problem.op == apl::sparse::Operator::sddmm;
  const std::int64_t width = plan.problem.dense;
  if (plan.dense)
    return 1e3 * (sddmm ? apl_sparse_dense_microseconds(&modelled_device(), type, matrix.rows, width, matrix.columns)
                        : apl_sparse_dense_microseconds(&modelled_device(), type, matrix.rows, matrix.columns, width));
  int exit = 0;
  const auto parsed = parse_plan(to_text(plan), "plan", exit);
  const auto times = parsed ? estimate(apl::csr_view(matrix), parsed.get(), sddmm, element, width) : std::nullopt;
  return times ? 1e3 * times->sparse : 0;
}

}  // namespace aplc::sparse
