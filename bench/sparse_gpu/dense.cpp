#include "bench/sparse_gpu/dense.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "bench/sparse_gpu/gpu.h"
#include "ir/sparse_arguments.h"
#include "suite/sparse/dense_product.h"

namespace apl::bench {
namespace {

constexpr std::int64_t kChecked = 16;  // rows

// From -1 to 1, exact in f16.
HostValue numbers(ScalarType type, std::vector<std::int64_t> shape, std::uint64_t seed) {
  HostValue value = HostValue::zeros(type, std::move(shape));
  std::uint64_t z = seed;
  for (std::int64_t k = 0; k < value.element_count(); ++k) {
    z = z * 6364136223846793005U + 1442695040888963407U;
    value.set(k, Scalar::floating(type, (static_cast<double>(z >> 54) - 512) / 512));
  }
  return value;
}

double square(double x) { return x * x; }

}  // namespace

struct DenseProducts::State {
  ScalarType type;
  bool emulated = false;
  std::optional<Program> spmm, sddmm;

  Program& program(std::optional<Program>& made, sparse::Operator op) const {
    if (!made) {
      ProgramOptions options;
      options.backend = emulated ? "emulate" : "cuda";
      made.emplace(need(sparse::dense_product(type, op, std::move(options))));
    }
    return *made;
  }

  // It runs twice: for some rows on the host, and by the device's clock.
  Ran run(Program& program, const std::vector<HostValue>& inputs, std::int64_t row_length,
          const std::function<double(std::int64_t, std::int64_t)>& wanted) {
    const auto results = need(program.call("product", inputs));
    const HostValue& result = results.front();
    const std::int64_t rows = inputs.front().shape[0], step = std::max<std::int64_t>(1, rows / kChecked);
    double off = 0, all = 0;
    for (std::int64_t i = 0; i < rows; i += step)
      for (std::int64_t j = 0; j < row_length; ++j) {
        const double w = wanted(i, j);
        off += square(result.at(i * row_length + j).as_float() - w);
        all += square(w);
      }
    return {emulated ? 0 : need(program.kernel_time("product", inputs)), std::sqrt(off / std::max(all, 1e-300))};
  }
};

DenseProducts::DenseProducts(ScalarType type, bool emulated) : state_(std::make_unique<State>()) {
  state_->type = type;
  state_->emulated = emulated;
}

DenseProducts::~DenseProducts() = default;

namespace {

// With all of its zeros.
HostValue dense_copy(const sparse::Csr& m, ScalarType type) {
  return to_dense({m.rows, m.columns, m.row_start, m.column, numbers(type, {m.nonzeros()}, 3)});
}

}  // namespace

DenseProducts::Ran DenseProducts::spmm(const sparse::Csr& m, std::int64_t width) {
  const std::vector<HostValue> inputs{dense_copy(m, state_->type), numbers(state_->type, {m.columns, width}, 7)};
  return state_->run(
      state_->program(state_->spmm, sparse::Operator::spmm), inputs, width, [&](std::int64_t i, std::int64_t j) {
        double sum = 0;
        for (std::int64_t k = m.row_start[static_cast<std::size_t>(i)];
             k < m.row_start[static_cast<std::size_t>(i) + 1]; ++k) {
          const std::int64_t column = m.column[static_cast<std::size_t>(k)];
          sum += inputs[0].at(i * m.columns + column).as_float() * inputs[1].at(column * width + j).as_float();
        }
        return sum;
      });
}

DenseProducts::Ran DenseProducts::sddmm(const sparse::Csr& m, std::int64_t depth) {
  const std::vector<HostValue> inputs{dense_copy(m, state_->type), numbers(state_->type, {m.rows, depth}, 7),
                                      numbers(state_->type, {m.columns, depth}, 9)};
  return state_->run(state_->program(state_->sddmm, sparse::Operator::sddmm), inputs, m.columns,
                     [&](std::int64_t i, std::int64_t j) {
                       const double a = inputs[0].at(i * m.columns + j).as_float();
                       double sum = 0;
                       for (std::int64_t k = 0; k < depth && a != 0; ++k)
                         sum += inputs[1].at(i * depth + k).as_float() * inputs[2].at(j * depth + k).as_float();
                       return a * sum;
                     });
}

}  // namespace apl::bench
