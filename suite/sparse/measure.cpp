#include "suite/sparse/measure.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>

#include "runtime/sparse/cpu.h"
#include "runtime/sparse/csr_view.h"

namespace apl::sparse {
namespace {

// A dense product is run as one over full blocks, up to so many elements.
constexpr std::int64_t kMostDense = std::int64_t{1} << 22;

struct FreeCpuPacked {
  void operator()(apl_sparse_cpu_packed* packed_tiles) const { apl_sparse_cpu_packed_free(packed_tiles); }
};

apl_sparse_type type_of(std::int64_t bytes) {
  return bytes == 1 ? APL_SPARSE_I8 : bytes == 2 ? APL_SPARSE_F16 : bytes == 4 ? APL_SPARSE_F32 : APL_SPARSE_F64;
}

}  // namespace

TilesPointer tiles_of(const Csr& matrix, const Plan& plan) {
  const std::string text = to_text(plan);
  apl_sparse_plan* parsed = nullptr;
  std::array<char, 200> message{};
  if (apl_sparse_plan_parse(text.data(), text.size(), &parsed, message.data(), message.size()) != APL_SPARSE_FINE)
    return nullptr;
  const PlanPointer owned(parsed);
  return tiles_of(matrix, *parsed);
}

TilesPointer tiles_of(const Csr& matrix, const apl_sparse_plan& plan) {
  const apl_sparse_csr csr = csr_view(matrix);
  apl_sparse_tiles* tiles = nullptr;
  if (apl_sparse_pack(&csr, &plan, &tiles) != APL_SPARSE_FINE) return nullptr;
  return TilesPointer(tiles);
}

Product::Product(const Csr& matrix, const Problem& problem) : problem_(problem) {
  const auto bytes = [&](std::int64_t count) { return static_cast<std::size_t>(count * problem.element_bytes); };
  values_.resize(bytes(matrix.nonzeros()));
  left_.resize(bytes(matrix.rows * problem.dense));
  right_.resize(bytes(matrix.columns * problem.dense));
  if (problem.op == Operator::sddmm) result_.resize(values_.size());
}

double Product::operator()(const apl_sparse_tiles& tiles, std::int64_t part, const Effort& effort) {
  apl_sparse_cpu_packed* made = nullptr;
  if (apl_sparse_cpu_packed_new(&tiles, 1, &made) != APL_SPARSE_FINE) return 0;
  const std::unique_ptr<apl_sparse_cpu_packed, FreeCpuPacked> packed_tiles(made);
  const apl_sparse_type type = type_of(problem_.element_bytes);
  std::vector<unsigned char> packed(apl_sparse_cpu_values_bytes(made, type));
  apl_sparse_cpu_values(made, type, values_.data(), packed.data());
  apl_sparse_cpu_call call{};
  call.packed = made;
  call.type = type;
  call.sddmm = problem_.op == Operator::sddmm;
  call.values = packed.data();
  call.dense = problem_.dense;
  call.part = part;
  call.b = call.y = right_.data();
  call.x = left_.data();
  call.b_stride = call.x_stride = call.y_stride = call.c_stride = problem_.dense;
  call.c = left_.data();
  call.result = result_.data();
  double best = 1e300, all = 0;
  for (int round = 0; round < effort.most_runs && (round < 2 || all < effort.seconds * 1e9); ++round) {
    call.next = 0;
    const auto start = std::chrono::steady_clock::now();
    apl_sparse_cpu_work(&call);
    const double time = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
    best = std::min(best, time);
    all += time;
  }
  return best;
}

double Measure::operator()(const Plan& plan) {
  if (plan.dense) return run_dense(plan);
  const auto tiles = tiles_of(matrix_, plan);
  return tiles ? product_(*tiles, plan.part) : 0;
}

double Measure::operator()(const apl_sparse_plan& plan) {
  if (plan.dense) {
    Plan dense;
    dense.problem = problem_;
    dense.rows = matrix_.rows;
    dense.columns = matrix_.columns;
    dense.part = problem_.dense;
    dense.remainder = {{1}, 1024, 128};
    return run_dense(dense);
  }
  const auto tiles = tiles_of(matrix_, plan);
  return tiles ? product_(*tiles, plan.dense_part) : 0;
}

double Measure::run_dense(const Plan& plan) const {
  using namespace apl::sparse;
  if (matrix_.rows * matrix_.columns > kMostDense) return 0;
  Csr full{matrix_.rows, matrix_.columns, {0}, {}, {}};
  for (std::int64_t row = 0; row < full.rows; ++row) {
    for (std::int64_t column = 0; column < full.columns; ++column)
      full.column.push_back(static_cast<std::int32_t>(column));
    full.row_start.push_back(full.nonzeros());
  }
  Plan blocks = plan;
  blocks.dense = false;
  blocks.nonzeros = full.nonzeros();
  blocks.hash = pattern_hash(full);
  blocks.row_order.clear();
  blocks.groups.assign(static_cast<std::size_t>((full.rows + kGroupRows - 1) / kGroupRows),
                       {{{64, 0, 1}}, Remainder::ell});
  const auto tiles = tiles_of(full, blocks);
  return tiles ? Product(full, problem_)(*tiles, plan.part) : 0;
}

}  // namespace apl::sparse
