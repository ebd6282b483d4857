#include "aplc/sparse/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "aplc/sparse/files.h"
#include "passes/sparse/plan.h"
#include "runtime/backends/cuda/clock.h"
#include "runtime/program/bridge.h"
#include "runtime/sparse/csr_view.h"
#include "runtime/sparse/device_kernel.h"
#include "suite/sparse/fit.h"

namespace aplc::sparse {
namespace {

using apl::sparse::Csr;
using apl::sparse::RanProduct;

constexpr std::int64_t kWidths[] = {32, 128, 512};

// Columns of a row, drawn into `here`; `group` is the same for rows that share columns.
struct Kind {
  const char* name;
  std::int64_t rows, columns, length;  // non-zeros of a row, about
  int full_rows;
  void (*draw)(std::mt19937_64& row, std::mt19937_64& group, const Kind& kind, std::int64_t at,
               std::set<std::int32_t>& here);
  std::int64_t height = 1;  // rows that share columns
};

std::int64_t below(std::mt19937_64& random, std::int64_t count) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(count));
}

void any(std::mt19937_64& row, std::mt19937_64& /*group*/, const Kind& kind, std::int64_t /*at*/,
         std::set<std::int32_t>& here) {
  for (std::int64_t k = below(row, kind.length) + kind.length / 2; k > 0; --k)
    here.insert(static_cast<std::int32_t>(below(row, kind.columns)));
}

// Lengths and columns by a power law.
void skewed(std::mt19937_64& row, std::mt19937_64& /*group*/, const Kind& kind, std::int64_t /*at*/,
            std::set<std::int32_t>& here) {
  const double unit = static_cast<double>(row() >> 11) * 0x1p-53;
  const auto length = static_cast<std::int64_t>(0.5 * static_cast<double>(kind.length) / std::sqrt(unit + 1e-4)) + 1;
  for (std::int64_t k = 0; k < length; ++k) {
    const double at = static_cast<double>(row() >> 11) * 0x1p-53;
    here.insert(static_cast<std::int32_t>(at * at * static_cast<double>(kind.columns)));
  }
}

void band(std::mt19937_64& row, std::mt19937_64& /*group*/, const Kind& kind, std::int64_t at,
          std::set<std::int32_t>& here) {
  for (std::int64_t j = at - kind.length; j <= at + kind.length; ++j)
    if (j >= 0 && j < kind.columns && row() % 10 < 7) here.insert(static_cast<std::int32_t>(j));
}

void shared(std::mt19937_64& row, std::mt19937_64& group, const Kind& kind, std::int64_t /*at*/,
            std::set<std::int32_t>& here) {
  for (std::int64_t k = 0; k < kind.length; ++k) here.insert(static_cast<std::int32_t>(below(group, kind.columns)));
  for (std::int64_t k = 0; k < 3; ++k) here.insert(static_cast<std::int32_t>(below(row, kind.columns)));
}

// Every second one is for judging: what it is like has one before it.
constexpr Kind kKinds[] = {{"scattered", 20000, 20000, 12, 0, any},
                           {"scattered", 12000, 24000, 20, 0, any},
                           {"blocks of 16", 16384, 16384, 64, 0, shared, 16},
                           {"blocks of 8", 12288, 12288, 48, 0, shared, 8},
                           {"skewed", 30000, 30000, 20, 0, skewed},
                           {"skewed", 80000, 80000, 8, 0, skewed},
                           {"pruned", 768, 768, 77, 0, any},
                           {"pruned", 3072, 768, 60, 0, any},
                           {"full rows", 20000, 20000, 6, 8, any},
                           {"band and full rows", 16384, 16384, 12, 8, band},
                           {"band", 60000, 60000, 10, 0, band},
                           {"band", 24000, 24000, 24, 0, band},
                           {"blocks of 32", 4096, 4096, 128, 0, shared, 32},
                           {"blocks of 32", 32768, 32768, 24, 0, shared, 32},
                           {"small", 4000, 4000, 4, 0, any},
                           {"small", 2500, 2500, 8, 0, skewed}};

Csr make(const Kind& kind) {
  Csr matrix{kind.rows, kind.columns, {0}, {}, {}};
  std::set<std::int32_t> here;
  for (std::int64_t at = 0; at < kind.rows; ++at) {
    std::mt19937_64 row(static_cast<std::uint64_t>(at + 1) * 7919), group(static_cast<std::uint64_t>(at / kind.height));
    here.clear();
    if (kind.full_rows > 0 && at % (kind.rows / kind.full_rows) == 5)
      for (std::int64_t j = 0; j < kind.columns; ++j) here.insert(here.end(), static_cast<std::int32_t>(j));
    else
      kind.draw(row, group, kind, at, here);
    matrix.column.insert(matrix.column.end(), here.begin(), here.end());
    matrix.row_start.push_back(static_cast<std::int64_t>(matrix.column.size()));
  }
  return matrix;
}

// A packed operand, and the kernels that run with it.
struct Packing {
  std::string name;
  apl_sparse_options options;
  std::vector<std::pair<std::string, apl_sparse_options>> kernels;
  int windows_of = 0;  // half of the rows in windows of so many, by a plan
};

std::vector<Packing> packings(const Csr& matrix, int highest) {
  std::vector<Packing> all;
  const auto add_rows = [&](Packing packing) {
    for (const int lanes : {4, 8, 16}) {
      apl_sparse_options options = packing.options;
      options.lanes = lanes;
      options.ahead = -1;
      packing.kernels.emplace_back(fmt::format("lanes {}", lanes), options);
    }
    apl_sparse_options options = packing.options;
    options.lanes = 16;
    options.ahead = 1;
    packing.kernels.emplace_back("lanes 16 ahead", options);
    all.push_back(std::move(packing));
  };
  struct Classes {
    int warp_row, block_row, sorted;
  };
  for (const Classes& c : {Classes{8, 48, 1}, {24, 256, 1}, {24, 256, -1}, {32, 512, -1}})
    add_rows({fmt::format("rows {}/{}", c.warp_row, c.block_row),
              {.window = -1,
               .warp_row = c.warp_row,
               .block_row = c.block_row,
               .piece = -1,
               .sorted = c.sorted,
               .staged = -1},
              {}});
  std::int64_t longest = 0;
  for (std::int64_t row = 0; row < matrix.rows; ++row) longest = std::max(longest, matrix.length(row));
  for (const int piece : {512, 2048})
    if (longest > piece)
      add_rows({fmt::format("rows in pieces of {}", piece),
                {.window = -1, .warp_row = 24, .block_row = 256, .piece = piece, .sorted = 1, .staged = -1},
                {}});
  if (matrix.columns <= 1600) {
    const apl_sparse_options options{.window = -1, .piece = -1, .staged = 1};
    all.push_back({"staged rows", options, {{"", options}}});
  }
  for (int height = 8; height <= highest; height *= 2) {
    Packing packing{fmt::format("windows of {}", height), {.window = height}, {}};
    Packing half{fmt::format("half of the rows in windows of {}", height), {.lanes = 16, .ahead = -1}, {}, height};
    for (const int split : {1, 2, 4, 8}) {
      apl_sparse_options options = packing.options;
      options.split = split;
      packing.kernels.emplace_back(fmt::format("split {}", split), options);
    }
    half.options.split = 2;
    half.kernels.emplace_back("", half.options);
    all.push_back(std::move(packing));
    all.push_back(std::move(half));
  }
  return all;
}

// The first half of the groups in windows.
apl::sparse::PlanPointer half_in_windows(const Csr& matrix, std::int64_t width, std::int64_t bytes, int height) {
  apl::sparse::Plan plan;
  plan.problem = {apl::sparse::Operator::spmm, width, bytes};
  plan.rows = matrix.rows;
  plan.columns = matrix.columns;
  plan.nonzeros = matrix.nonzeros();
  plan.hash = apl::sparse::pattern_hash(matrix);
  plan.part = width;
  plan.remainder = {{1, 2, 4, 8, 16, 32, 64, 128, 256}, 1024, 256};
  plan.groups.resize(static_cast<std::size_t>((matrix.rows + APL_SPARSE_GROUP - 1) / APL_SPARSE_GROUP));
  for (std::size_t group = 0; group < plan.groups.size() / 2; ++group)
    for (int window = 0; window < APL_SPARSE_GROUP / height; ++window)
      plan.groups[group].selections.push_back(
          {static_cast<std::uint8_t>(height), static_cast<std::uint8_t>(window), 1});
  int exit = 0;
  return parse_plan(to_text(plan), "plan", exit);
}

class Runs {
 public:
  Runs(const Calibration& how, std::unique_ptr<apl::cuda::Clock> clock, std::unique_ptr<apl::Backend> backend)
      : how_(how),
        type_(static_cast<std::int32_t>(how.type)),
        bytes_(apl::byte_size(how.type)),
        clock_(std::move(clock)),
        bridge_(std::move(backend), nullptr) {}

  // Empty at a failure, of which `failure` has the error.
  std::vector<RanProduct> of(const Kind& kind, std::optional<apl::Diagnostic>& failure) {
    const Csr matrix = make(kind);
    std::vector<RanProduct> samples;
    for (const std::int64_t width : kWidths) {
      if (is_over()) break;
      const std::uint64_t mark = bridge_.mark();
      if (auto made = make_operands(matrix, width); !made) {
        failure = std::move(made).error();
        return {};
      }
      const std::string name = fmt::format("{} {} x {}, {} columns", kind.name, kind.rows, kind.columns, width);
      if (how_.progress) how_.progress(name);
      spmm(matrix, width, name, samples);
      sddmm(matrix, width, name, samples);
      if (auto released = bridge_.release_since(mark); !released) {
        failure = std::move(released).error();
        return {};
      }
    }
    return samples;
  }

  bool is_over() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count() > how_.seconds;
  }

 private:
  apl::Status make_operands(const Csr& matrix, std::int64_t width) {
    for (const auto& [data, count] :
         {std::pair{&left_, matrix.rows * width}, std::pair{&right_, matrix.columns * width},
          std::pair{&values_, matrix.nonzeros()}, std::pair{&result_, matrix.nonzeros()}}) {
      const std::vector<char> zeros(static_cast<std::size_t>(count * bytes_ + 16));
      auto made = bridge_.allocate(static_cast<std::int64_t>(zeros.size()), "an operand");
      if (!made) return std::move(made).error();
      *data = *made;
      if (auto sent = bridge_.backend().upload(*data, zeros.data(), static_cast<std::int64_t>(zeros.size())); !sent)
        return sent;
    }
    return apl::Unit{};
  }

  // Microseconds; 0 if it cannot be run.
  double time(const std::function<int()>& launch) {
    if (launch() != APL_SUCCESS || !bridge_.backend().synchronise()) return 0;
    const auto time = clock_->time([&]() -> apl::Status {
      if (const int status = launch(); status != APL_SUCCESS) return bridge_.error(status);
      return apl::Unit{};
    });
    return time ? *time : 0;
  }

  void spmm(const Csr& matrix, std::int64_t width, const std::string& name, std::vector<RanProduct>& samples) {
    const apl_sparse_csr csr = apl::csr_view(matrix);
    for (const Packing& packing : packings(matrix, apl_sparse_highest_window(&how_.start, type_))) {
      if (is_over()) return;
      const auto plan = packing.windows_of > 0 ? half_in_windows(matrix, width, bytes_, packing.windows_of) : nullptr;
      if (packing.windows_of > 0 && !plan) continue;
      apl_sparse_packed* packed = nullptr;
      if (apl_sparse_packed_make(&csr, plan.get(), &how_.start, type_, width, &packing.options, &packed) !=
          APL_SPARSE_FINE)
        continue;
      apl_sparse_operand operand{};
      const int made = apl_sparse_upload(bridge_.context(), packed, type_, &operand);
      apl_sparse_packed_free(packed);
      if (made != APL_SUCCESS) continue;
      if (apl_sparse_set_values(bridge_.context(), &operand, values_) == APL_SUCCESS)
        for (const auto& [kernel, options] : packing.kernels) {
          const double us = time([&] {
            return apl_sparse_spmm(bridge_.context(), &operand, {right_, width}, {left_, width}, width, &options,
                                   nullptr);
          });
          if (us <= 0) continue;
          samples.push_back(
              {fmt::format("{}: {} {}", name, packing.name, kernel), type_, width, options, operand.packed, {}, us});
        }
      apl_sparse_release(bridge_.context(), &operand);
    }
  }

  void sddmm(const Csr& matrix, std::int64_t width, const std::string& name, std::vector<RanProduct>& samples) {
    const apl_sparse_csr csr = apl::csr_view(matrix);
    for (const apl_sparse_options& options : {apl_sparse_options{.window = -1}, apl_sparse_options{.window = 8}}) {
      if (options.window > 0 && !apl_sparse_has_matrix_units(&how_.start, type_)) continue;
      apl_sparse_sddmm_packed* packed = nullptr;
      if (apl_sparse_sddmm_packed_make(&csr, nullptr, &how_.start, type_, width, &options, &packed) != APL_SPARSE_FINE)
        continue;
      apl_sparse_sddmm_operand operand{};
      const int made = apl_sparse_upload_sddmm(bridge_.context(), packed, type_, &operand);
      apl_sparse_sddmm_packed_free(packed);
      if (made != APL_SUCCESS) continue;
      const double us = time([&] {
        return apl_sparse_sddmm(bridge_.context(), &operand, values_, {left_, width}, {right_, width}, width, result_,
                                nullptr);
      });
      if (us > 0)
        samples.push_back({fmt::format("{}: samples, {}", name, options.window > 0 ? "windows" : "list"),
                           type_,
                           width,
                           options,
                           {},
                           operand.packed,
                           us});
      apl_sparse_release_sddmm(bridge_.context(), &operand);
    }
  }

  const Calibration& how_;
  std::int32_t type_;
  std::int64_t bytes_;
  std::unique_ptr<apl::cuda::Clock> clock_;
  apl::program::Bridge bridge_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  void *left_ = nullptr, *right_ = nullptr, *values_ = nullptr, *result_ = nullptr;
};

// How much longer those kernels take that the model likes best than the fastest, in geometric mean over products.
double choice(const apl_device& device, const std::vector<RanProduct>& samples) {
  struct Product {
    double least = 0, predicted = 0, chosen = 0;
  };
  std::map<std::string, Product> products;
  for (const RanProduct& sample : samples) {
    if (sample.packed.rows == 0) continue;
    Product& product = products[sample.name.substr(0, sample.name.find(':'))];
    const double time = predicted(device, sample);
    if (product.least == 0 || sample.microseconds < product.least) product.least = sample.microseconds;
    if (product.predicted > 0 && time >= product.predicted) continue;
    product.predicted = time;
    product.chosen = sample.microseconds;
  }
  double logs = 0;
  for (const auto& [name, product] : products) logs += std::log(product.chosen / product.least);
  return products.empty() ? 1 : std::exp(logs / static_cast<double>(products.size()));
}

}  // namespace

apl::Result<std::string> calibrate(const Calibration& how) {
  auto clock = apl::cuda::Clock::open();
  if (!clock) return std::move(clock).error();
  auto backend = (*clock)->backend();
  if (!backend) return std::move(backend).error();
  Runs runs(how, *std::move(clock), *std::move(backend));
  std::vector<RanProduct> half[2];  // to fit, to evaluate by
  std::size_t next = 0, matrices = 0;
  for (const Kind& kind : kKinds) {
    if (runs.is_over()) break;
    std::optional<apl::Diagnostic> failure;
    std::vector<RanProduct> samples = runs.of(kind, failure);
    if (failure) return *failure;
    auto& to = half[next++ % 2];
    to.insert(to.end(), samples.begin(), samples.end());
    ++matrices;
  }
  const apl::sparse::Fit fit = apl::sparse::fit(how.start, half[0]);
  std::string text = fmt::format("# Measured by aplc sparse calibrate: {} kernels in {} on {} of {} matrices{}.\n",
                                 half[0].size() + half[1].size(), apl::to_text(how.type), matrices, std::size(kKinds),
                                 runs.is_over() ? ", then the time was over" : "");
  const auto say = [&](const char* which, const std::vector<RanProduct>& samples) {
    if (samples.empty()) return;
    text += fmt::format(
        "# {}: {:.1f} % error in root mean square ({:.1f} % before); the kernels that it chooses take {:.3f} times as "
        "long as the fastest ({:.3f} before).\n",
        which, 100 * apl::sparse::error_of(fit.device, samples), 100 * apl::sparse::error_of(how.start, samples),
        choice(fit.device, samples), choice(how.start, samples));
  };
  say("Matrices that it was fitted to", half[0]);
  say("Others", half[1]);
  for (const apl::sparse::Figure& figure : fit.fitted)
    text += fmt::format("{} = {:.3g}\n", figure.name, fit.device.*figure.value);
  return text;
}

}  // namespace aplc::sparse
