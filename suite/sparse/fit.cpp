// Levenberg and Marquardt's method on the logarithms of times and figures; errors beyond 15 % count less than their
// squares.
#include "suite/sparse/fit.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "runtime/sparse/device_kernel.h"

namespace apl::sparse {
namespace {

constexpr double kStep = 1e-3, kOutlier = 0.15, kStaysNear = 0.05, kLeastChange = 1e-7;
constexpr int kRounds = 60;

using Vector = std::vector<double>;
using Matrix = std::vector<Vector>;

// Sizes of caches are the machine's, not the model's.
bool is_size(std::string_view name) {
  return name == "sparse_cache_bytes" || name == "sparse_slice_cache_bytes" || name == "sparse_staged_bytes";
}

double error_of(const apl_device& device, const RanProduct& sample) {
  return std::log(std::max(predicted(device, sample), 1e-3) / sample.microseconds);
}

// Symmetric and positive; by Cholesky's decomposition.
Vector solve(Matrix a, Vector b) {
  const std::size_t n = b.size();
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t k = 0; k < j; ++k) a[j][j] -= a[j][k] * a[j][k];
    a[j][j] = std::sqrt(std::max(a[j][j], 1e-12));
    for (std::size_t i = j + 1; i < n; ++i) {
      for (std::size_t k = 0; k < j; ++k) a[i][j] -= a[i][k] * a[j][k];
      a[i][j] /= a[j][j];
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= a[i][k] * b[k];
    b[i] /= a[i][i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) b[i] -= a[k][i] * b[k];
    b[i] /= a[i][i];
  }
  return b;
}

class Fitter {
 public:
  Fitter(const apl_device& start, const std::vector<RanProduct>& samples) : start_(start), samples_(samples) {
    for (const Figure& figure : figures()) {
      if (start.*figure.value <= 0) continue;
      apl_device other = start;
      other.*figure.value *= 1.1;
      const auto depends = [&](const RanProduct& s) { return predicted(other, s) != predicted(start, s); };
      if (std::any_of(samples.begin(), samples.end(), depends)) fitted_.push_back(figure);
    }
  }

  Fit run() {
    Vector logs(fitted_.size(), 0);  // of each figure over that of the start
    double damping = 1e-2, least = cost(logs);
    for (int round = 0; round < kRounds; ++round) {
      const auto [hessian, gradient] = linear(logs);
      bool better = false;
      for (; damping < 1e6 && !better; damping *= 4) {
        Matrix damped = hessian;
        for (std::size_t k = 0; k < damped.size(); ++k) damped[k][k] *= 1 + damping;
        const Vector change = solve(std::move(damped), gradient);
        Vector next = logs;
        for (std::size_t k = 0; k < next.size(); ++k) next[k] = std::clamp(next[k] - change[k], -4.0, 4.0);
        const double now = cost(next);
        if (now >= least) continue;
        better = now < least * (1 - kLeastChange);
        least = now;
        logs = std::move(next);
        damping /= 16;
        if (!better) return {at(logs), fitted_};
      }
      if (!better) break;
    }
    return {at(logs), fitted_};
  }

 private:
  apl_device at(const Vector& logs) const {
    apl_device device = start_;
    for (std::size_t k = 0; k < logs.size(); ++k) device.*fitted_[k].value *= std::exp(logs[k]);
    return device;
  }

  double cost(const Vector& logs) const {
    const apl_device device = at(logs);
    double sum = 0;
    for (const RanProduct& sample : samples_) {
      const double relative = error_of(device, sample) / kOutlier;
      sum += 2 * kOutlier * kOutlier * (std::sqrt(1 + relative * relative) - 1);
    }
    for (const double log : logs) sum += kStaysNear * kStaysNear * log * log;
    return sum;
  }

  std::pair<Matrix, Vector> linear(const Vector& logs) const {
    const std::size_t n = logs.size();
    Matrix hessian(n, Vector(n, 0));
    Vector gradient(n, 0);
    const apl_device here = at(logs);
    std::vector<apl_device> beside;
    for (std::size_t k = 0; k < n; ++k) {
      Vector moved = logs;
      moved[k] += kStep;
      beside.push_back(at(moved));
    }
    Vector slope(n);
    for (const RanProduct& sample : samples_) {
      const double error = error_of(here, sample);
      const double weight = 1 / std::sqrt(1 + error * error / (kOutlier * kOutlier));
      for (std::size_t k = 0; k < n; ++k) slope[k] = (error_of(beside[k], sample) - error) / kStep;
      for (std::size_t i = 0; i < n; ++i) {
        if (slope[i] == 0) continue;
        gradient[i] += weight * slope[i] * error;
        for (std::size_t j = 0; j < n; ++j) hessian[i][j] += weight * slope[i] * slope[j];
      }
    }
    for (std::size_t k = 0; k < n; ++k) {
      hessian[k][k] += kStaysNear * kStaysNear;
      gradient[k] += kStaysNear * kStaysNear * logs[k];
    }
    return {std::move(hessian), std::move(gradient)};
  }

  const apl_device& start_;
  const std::vector<RanProduct>& samples_;
  std::vector<Figure> fitted_;
};

}  // namespace

const std::vector<Figure>& figures() {
  static const std::vector<Figure> kAll = [] {
    std::vector<Figure> all;
#define APL_FIGURE_NAME(name)
#define APL_FIGURE_TEXT(name)
#define APL_FIGURE_KIND(name)
#define APL_FIGURE_FLAG(name)
#define APL_FIGURE_INT32(name)
#define APL_FIGURE_INT64(name)
#define APL_FIGURE_REAL(name) all.push_back({#name, &apl_device::name});
#define APL_DEVICE_FIELD(type, name, needed) APL_FIGURE_##type(name)
#include "machine/tiles/device_fields.def"
#undef APL_FIGURE_NAME
#undef APL_FIGURE_TEXT
#undef APL_FIGURE_KIND
#undef APL_FIGURE_FLAG
#undef APL_FIGURE_INT32
#undef APL_FIGURE_INT64
#undef APL_FIGURE_REAL
    std::erase_if(all, [](const Figure& figure) {
      const std::string_view name = figure.name;
      return is_size(name) || !(name.starts_with("sparse_") || name.starts_with("sddmm_"));
    });
    return all;
  }();
  return kAll;
}

double predicted(const apl_device& device, const RanProduct& sample) {
  if (sample.packed.rows == 0) {
    apl_sparse_sddmm_packed shape = sample.samples;
    shape.device = &device;
    return apl_sparse_sddmm_microseconds(&shape, sample.type, sample.width);
  }
  apl_sparse_packed shape = sample.packed;
  shape.device = &device;
  auto elements = static_cast<std::int32_t>(16 / apl_sparse_type_size(sample.type));
  while (sample.width % elements != 0) elements /= 2;
  return apl_sparse_choose_spmm(&shape, sample.type, elements, sample.width, &sample.options).microseconds;
}

double error_of(const apl_device& device, const std::vector<RanProduct>& samples) {
  double sum = 0;
  for (const RanProduct& sample : samples) {
    const double error = error_of(device, sample);
    sum += error * error;
  }
  return samples.empty() ? 0 : std::sqrt(sum / static_cast<double>(samples.size()));
}

Fit fit(const apl_device& start, const std::vector<RanProduct>& samples) { return Fitter(start, samples).run(); }

}  // namespace apl::sparse
