#include "aplc/sparse/on_device.h"

#include <vector>

#include "aplc/driver.h"
#include "aplc/sparse/files.h"
#include "runtime/backends/cuda/clock.h"
#include "runtime/program/bridge.h"
#include "runtime/sparse/csr_view.h"
#include "runtime/sparse/device_operand.h"
#include "suite/sparse/dense_product.h"

namespace aplc::sparse {

struct OnDevice::State {
  const apl::sparse::Csr& matrix;
  apl::sparse::Problem problem;
  std::int32_t type;
  const apl_device device;  // as programs know it
  std::unique_ptr<apl::cuda::Clock> clock;
  std::unique_ptr<apl::program::Bridge> bridge;
  // Zeros: B and C, or X, Y and the samples; and the values.
  void *left = nullptr, *right = nullptr, *values = nullptr, *result = nullptr;

  apl::Status make_operands() {
    const std::int64_t bytes = problem.element_bytes;
    for (const auto& [data, count] :
         {std::pair{&left, matrix.rows * problem.dense}, std::pair{&right, matrix.columns * problem.dense},
          std::pair{&values, matrix.nonzeros()}, std::pair{&result, matrix.nonzeros()}}) {
      const std::vector<char> zeros(static_cast<std::size_t>(count * bytes + 16));
      auto made = bridge->allocate(static_cast<std::int64_t>(zeros.size()), "an operand");
      if (!made) return std::move(made).error();
      *data = *made;
      if (auto sent = bridge->backend().upload(*data, zeros.data(), static_cast<std::int64_t>(zeros.size())); !sent)
        return sent;
    }
    return apl::Unit{};
  }

  apl::Status status_of(int status) {
    if (status == APL_SUCCESS) return apl::Unit{};
    return bridge->error(status);
  }

  // Microseconds; runs it once before.
  double time(const std::function<int()>& launch) {
    if (launch() != APL_SUCCESS || !bridge->backend().synchronise()) return 0;
    const auto time = clock->time([&] { return status_of(launch()); });
    return time ? *time : 0;
  }

  double spmm(const apl_sparse_csr& csr, const apl_sparse_plan& plan) {
    apl_sparse_packed* packed = nullptr;
    if (apl_sparse_packed_make(&csr, &plan, &device, type, problem.dense, nullptr, &packed) != APL_SPARSE_FINE)
      return 0;
    apl_sparse_operand operand{};
    const int made = apl_sparse_upload(bridge->context(), packed, type, &operand);
    apl_sparse_packed_free(packed);
    if (made != APL_SUCCESS) return 0;
    double microseconds = 0;
    if (apl_sparse_set_values(bridge->context(), &operand, values) == APL_SUCCESS)
      microseconds = time([&] {
        return apl_sparse_spmm(bridge->context(), &operand, {right, problem.dense}, {left, problem.dense},
                               problem.dense, nullptr, nullptr);
      });
    apl_sparse_release(bridge->context(), &operand);
    return microseconds;
  }

  double sddmm(const apl_sparse_csr& csr, const apl_sparse_plan& plan) {
    apl_sparse_sddmm_packed* packed = nullptr;
    if (apl_sparse_sddmm_packed_make(&csr, &plan, &device, type, problem.dense, nullptr, &packed) != APL_SPARSE_FINE)
      return 0;
    apl_sparse_sddmm_operand operand{};
    const int made = apl_sparse_upload_sddmm(bridge->context(), packed, type, &operand);
    apl_sparse_sddmm_packed_free(packed);
    if (made != APL_SUCCESS) return 0;
    const double microseconds = time([&] {
      return apl_sparse_sddmm(bridge->context(), &operand, values, {left, problem.dense}, {right, problem.dense},
                              problem.dense, result, nullptr);
    });
    apl_sparse_release_sddmm(bridge->context(), &operand);
    return microseconds;
  }

  double dense(apl::sparse::Operator op) const {
    constexpr std::int64_t kMostElements = std::int64_t{1} << 26;
    if (matrix.rows * matrix.columns > kMostElements) return 0;
    const auto element = static_cast<apl::ScalarType>(type);
    auto folder = WorkFolder::make();
    if (!folder) return 0;
    apl::ProgramOptions options;
    options.backend = "cuda";
    options.temporary_folder = folder->path();
    auto program = apl::sparse::dense_product(element, op, std::move(options));
    if (!program) return 0;
    const auto zeros = [&](std::int64_t rows, std::int64_t columns) {
      return apl::HostValue::zeros(element, {rows, columns});
    };
    std::vector<apl::HostValue> inputs{zeros(matrix.rows, matrix.columns)};
    if (op == apl::sparse::Operator::sddmm) inputs.push_back(zeros(matrix.rows, problem.dense));
    inputs.push_back(zeros(matrix.columns, problem.dense));
    const auto time = program->kernel_time("product", inputs);
    return time ? 1e3 * *time : 0;
  }
};

OnDevice::OnDevice(std::unique_ptr<State> state) : state_(std::move(state)) {}
OnDevice::~OnDevice() = default;

apl::Result<std::unique_ptr<OnDevice>> OnDevice::make(const apl::sparse::Csr& matrix,
                                                      const apl::sparse::Problem& problem, apl::ScalarType type) {
  auto clock = apl::cuda::Clock::open();
  if (!clock) return std::move(clock).error();
  auto backend = (*clock)->backend();
  if (!backend) return std::move(backend).error();
  const apl_device device = (*backend)->device();
  std::unique_ptr<State> state(new State{matrix, problem, static_cast<std::int32_t>(type), device, *std::move(clock),
                                         std::make_unique<apl::program::Bridge>(*std::move(backend), nullptr)});
  if (auto made = state->make_operands(); !made) return std::move(made).error();
  return std::unique_ptr<OnDevice>(new OnDevice(std::move(state)));
}

double OnDevice::operator()(const apl::sparse::Plan& plan) {
  if (plan.dense) return state_->dense(plan.problem.op);
  int exit = 0;
  const auto parsed = parse_plan(to_text(plan), "plan", exit);
  if (!parsed) return 0;
  const apl_sparse_csr csr = apl::csr_view(state_->matrix);
  return 1e3 *
         (plan.problem.op == apl::sparse::Operator::spmm ? state_->spmm(csr, *parsed) : state_->sddmm(csr, *parsed));
}

}  // namespace aplc::sparse
