// Products over non-zeros, and the dense one, beside the peers' and held against the plainest kernel.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "bench/sparse_gpu/bench.h"
#include "bench/sparse_gpu/shapes.h"
#include "bench/sparse_gpu/variants.h"
#include "runtime/sparse/csr_view.h"
#include "runtime/sparse/device_operand.h"
#include "suite/sparse/dense_product.h"

namespace apl::bench {
namespace {

// Above so many non-zeros only one width is run.
constexpr std::int64_t kLargeMatrix = 3'000'000;
constexpr std::int64_t kLargestDense = std::int64_t{1} << 29;     // elements
constexpr std::int64_t kLargestOwnDense = std::int64_t{1} << 24;  // that are made on the host

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// A packed operand on the device with the values of the matrix; released with the case.
struct Packed {
  apl_sparse_operand operand{};
  std::string text;
};

Packed make_packed(Gpu& gpu, const apl_device& device, const sparse::Csr& m, const void* values, std::int64_t width,
                   const apl_sparse_options& options, const apl_sparse_plan* plan = nullptr) {
  const auto start = std::chrono::steady_clock::now();
  const apl_sparse_csr csr = apl::csr_view(m);
  apl_sparse_packed* packed = nullptr;
  if (apl_sparse_packed_make(&csr, plan, &device, gpu.c_type(), width, &options, &packed) != APL_SPARSE_FINE)
    give_up("no packed operand");
  const double seconds = seconds_since(start);
  Packed made;
  gpu.check(apl_sparse_upload(gpu.context(), packed, gpu.c_type(), &made.operand));
  gpu.check(apl_sparse_set_values(gpu.context(), &made.operand, values));
  made.text = packed->parts > 0 ? fmt::format("windows of {}: {} steps of 16, {:.2f} a gather", 8 * packed->parts,
                                              packed->steps, static_cast<double>(m.nonzeros()) / (16.0 * packed->steps))
                                : fmt::format("rows {}/{}/{}", packed->longs, packed->mediums,
                                              packed->records - packed->longs - packed->mediums);
  made.text += fmt::format(", shared {:.2f}, made in {:.2f} s", packed->statistics.shared, seconds);
  apl_sparse_packed_free(packed);
  return made;
}

// By the kernels' model, in microseconds.
double modelled(const apl_device& device, const sparse::Csr& matrix, const apl_sparse_plan& plan, std::int32_t type,
                std::int64_t width) {
  const apl_sparse_csr csr = apl::csr_view(matrix);
  apl_sparse_packed* packed = nullptr;
  if (apl_sparse_packed_make(&csr, &plan, &device, type, width, nullptr, &packed) != APL_SPARSE_FINE) return 0;
  const double time = apl_sparse_microseconds(packed, type, width);
  apl_sparse_packed_free(packed);
  return time;
}

}  // namespace

void Bench::run(const Case& a) {
  const std::uint64_t mark = gpu_.bridge().mark();
  const sparse::Csr& m = a.matrix;
  const std::vector<std::int32_t> start(m.row_start.begin(), m.row_start.end());
  OnDevice there{m.rows,
                 m.columns,
                 m.nonzeros(),
                 gpu_.array(start, "row starts"),
                 gpu_.array(m.column, "columns"),
                 gpu_.scratch(gpu_.element() * m.nonzeros(), "values")};
  gpu_.fill(there.value, m.nonzeros(), 3);
  std::vector<std::int64_t> widths = request_.widths;
  if (widths.empty()) widths = {32, 64, 128, 256, 512};
  if (m.nonzeros() > kLargeMatrix && request_.widths.empty()) widths = {128};
  fmt::print("{} {} x {}, {} non-zeros\n", a.name, m.rows, m.columns, m.nonzeros());
  for (const std::int64_t width : widths) {
    const std::uint64_t here = gpu_.bridge().mark();
    if (wanted("spmm")) spmm(a, there, width);
    need(gpu_.bridge().release_since(here));
    if (wanted("sddmm")) sddmm(a, there, width);
    need(gpu_.bridge().release_since(here));
  }
  need(gpu_.bridge().release_since(mark));
}

void Bench::spmm(const Case& a, const OnDevice& there, std::int64_t width) {
  const std::int64_t count = there.rows * width;
  void *b = gpu_.scratch(gpu_.element() * there.columns * width, "B"), *c = gpu_.scratch(gpu_.element() * count, "C");
  void* wanted = gpu_.scratch(4 * count, "what C should be");
  gpu_.fill(b, there.columns * width, 7);
  gpu_.plain_spmm(there.start, there.column, there.value, there.rows, b, width, wanted);
  Line line{a.name, a.kind, "spmm", width, 0, 0, 0, 0, 0, 0, "", {}};
  const auto measure = [&](const Packed& packed, const apl_sparse_options& options) {
    gpu_.poison(c, gpu_.element() * count);
    const double time = gpu_.time([&] {
      gpu_.check(apl_sparse_spmm(gpu_.context(), &packed.operand, {b, width}, {c, width}, width, &options, nullptr));
    });
    const double error = gpu_.error_of(c, wanted, count);
    line.error = std::max(line.error, std::isnan(error) ? 1.0 : error);
    return time;
  };
  // As programs do without a plan.
  apl_sparse_options usual{};
  apl_sparse_reordering rows{};
  const apl_sparse_csr csr = apl::csr_view(a.matrix);
  const auto start = std::chrono::steady_clock::now();
  if (apl_sparse_reorder(&csr, &device_, gpu_.c_type(), width, &rows) != APL_SPARSE_FINE) give_up("no memory");
  line.reordered = {{"seconds", seconds_since(start)}, {"model_us", {rows.before, rows.after}}};
  usual.row_order = rows.order;
  Packed packed = make_packed(gpu_, device_, a.matrix, there.value, width, usual);
  line.how = packed.text + (rows.order != nullptr ? ", reordered" : "");
  std::free(rows.order);
  line.shape = shape_of(packed.operand.packed);
  line.model = apl_sparse_microseconds(&packed.operand.packed, gpu_.c_type(), width);
  line.dense_model = apl_sparse_dense_microseconds(&device_, gpu_.c_type(), there.rows, there.columns, width);
  line.ours = line.best = measure(packed, {});
  gpu_.check(apl_sparse_release(gpu_.context(), &packed.operand));
  if (rows.after > 0) {
    Packed natural = make_packed(gpu_, device_, a.matrix, there.value, width, {});
    line.reordered["natural_us"] = measure(natural, {});
    gpu_.check(apl_sparse_release(gpu_.context(), &natural.operand));
  }
  if (request_.sweep) {
    std::string best = "the rules";
    for (const PackedVariant& each : spmm_variants(a.matrix, gpu_.type() == ScalarType::f16 ? 32 : 16)) {
      Packed other = make_packed(gpu_, device_, a.matrix, there.value, width, each.options);
      nlohmann::json times;
      for (const Variant& variant : each.variants) {
        const double time = measure(other, variant.options);
        fmt::print("    {:9.2f} us  {}\n", time, variant.name);
        times[variant.name] = time;
        if (time < line.best) line.best = time, best = variant.name;
      }
      line.sweep.push_back({{"form", shape_of(other.operand.packed)}, {"us", std::move(times)}});
      gpu_.check(apl_sparse_release(gpu_.context(), &other.operand));
    }
    line.how += "; best " + best;
  }
  if (request_.plans) {
    const sparse::Plan plan =
        search_by(a.matrix, sparse::Operator::spmm, width, gpu_.element(), [&](const apl_sparse_plan& candidate) {
          Packed other = make_packed(gpu_, device_, a.matrix, there.value, width, {}, &candidate);
          const double time = measure(other, {});
          const double model = apl_sparse_microseconds(&other.operand.packed, gpu_.c_type(), width);
          fmt::print("    {:9.2f} us, {:.2f} by the model  {}\n", time, model, other.text);
          line.candidates.push_back(
              {{"us", time}, {"model_us", model}, {"how", other.text}, {"form", shape_of(other.operand.packed)}});
          gpu_.check(apl_sparse_release(gpu_.context(), &other.operand));
          for (const int window : {8, 16, 32}) {
            if (!request_.sweep || other.operand.packed.parts == 0) break;
            Packed high = make_packed(gpu_, device_, a.matrix, there.value, width, {.window = window}, &candidate);
            fmt::print("    {:9.2f} us  {}\n", measure(high, {}), high.text);
            gpu_.check(apl_sparse_release(gpu_.context(), &high.operand));
          }
          return time;
        });
    take_plan(line, plan);
    // A search by the models chooses among the same plans.
    const auto likes = [](const nlohmann::json& a, const nlohmann::json& b) { return a["model_us"] < b["model_us"]; };
    if (const auto best = std::ranges::min_element(line.candidates, likes); best != line.candidates.end())
      line.searched[std::string(to_text(gpu_.type()))] = {{"us", (*best)["us"]}, {"how", (*best)["how"]}};
  }
  if (request_.studies)
    study(a, width, line, [&](const apl_sparse_plan& candidate) {
      Packed other = make_packed(gpu_, device_, a.matrix, there.value, width, {}, &candidate);
      const double time = measure(other, {});
      gpu_.check(apl_sparse_release(gpu_.context(), &other.operand));
      return time;
    });
  if (request_.searched) {
    // As `aplc sparse search` chooses: of what the search finds, by the kernels' model.
    std::vector<ScalarType> types{gpu_.type()};
    if (gpu_.type() != ScalarType::f16) types.push_back(ScalarType::f16);
    for (const ScalarType priced : types) {
      const std::string name(to_text(priced));
      if (line.searched.contains(name)) continue;
      const sparse::Plan plan =
          search_by(a.matrix, sparse::Operator::spmm, width, byte_size(priced), [&](const apl_sparse_plan& candidate) {
            return modelled(device_, a.matrix, candidate, static_cast<std::int32_t>(priced), width);
          });
      Packed other = make_packed(gpu_, device_, a.matrix, there.value, width, {}, parse_plan(plan).get());
      const double time = measure(other, {});
      line.searched[name] = {{"us", time}, {"order", plan.order}, {"how", other.text}};
      fmt::print("    {:9.2f} us  by the plan for {}, rows by {}, {}\n", time, name, plan.order, other.text);
      gpu_.check(apl_sparse_release(gpu_.context(), &other.operand));
    }
  }
  if (has_peers_) {
    line.peers = peers_.spmm(there, b, width, c, wanted);
    if (request_.formats)
      for (PeerTime& each : peers_.formats(a.matrix, there, b, width, c, wanted)) line.peers.push_back(std::move(each));
    if (there.rows * there.columns <= kLargestDense) {
      void* full = gpu_.scratch(gpu_.element() * there.rows * there.columns, "A with its zeros");
      gpu_.fill(full, there.rows * there.columns, 9);
      line.dense = peers_.dense(there.rows, there.columns, width, full, b, c);
    }
  }
  run_own_dense(a, line);
  report(std::move(line));
}

void Bench::sddmm(const Case& a, const OnDevice& there, std::int64_t depth) {
  void *x = gpu_.scratch(gpu_.element() * there.rows * depth, "X"),
       *y = gpu_.scratch(gpu_.element() * there.columns * depth, "Y");
  void *result = gpu_.scratch(gpu_.element() * there.nonzeros, "samples"),
       *wanted = gpu_.scratch(4 * there.nonzeros, "wanted");
  gpu_.fill(x, there.rows * depth, 13);
  gpu_.fill(y, there.columns * depth, 11);
  gpu_.plain_sddmm(there.start, there.column, there.rows, x, y, depth, wanted);
  Line line{a.name, a.kind, "sddmm", depth, 0, 0, 0, 0, 0, 0, "", {}};
  const apl_sparse_csr csr = apl::csr_view(a.matrix);
  const auto measure = [&](const apl_sparse_options& options, const std::string& name,
                           const apl_sparse_plan* plan = nullptr) {
    apl_sparse_sddmm_packed* samples = nullptr;
    const auto start = std::chrono::steady_clock::now();
    if (apl_sparse_sddmm_packed_make(&csr, plan, &device_, gpu_.c_type(), depth, &options, &samples) != APL_SPARSE_FINE)
      give_up("no packed operand of SDDMM");
    const double seconds = seconds_since(start);
    apl_sparse_sddmm_operand operand{};
    gpu_.check(apl_sparse_upload_sddmm(gpu_.context(), samples, gpu_.c_type(), &operand));
    if (name.empty())
      line.how = (samples->windows > 0 ? fmt::format("windows of 8: {} tasks", samples->tasks) : std::string("list")) +
                 fmt::format(", shared {:.2f}, made in {:.2f} s", samples->statistics.shared, seconds);
    if (name.empty()) {
      line.model = apl_sparse_sddmm_microseconds(samples, gpu_.c_type(), depth);
      line.shape = shape_of(*samples);
    }
    apl_sparse_sddmm_packed_free(samples);
    gpu_.poison(result, gpu_.element() * there.nonzeros);
    const double time = gpu_.time([&] {
      gpu_.check(apl_sparse_sddmm(gpu_.context(), &operand, nullptr, {x, depth}, {y, depth}, depth, result, nullptr));
    });
    const double error = gpu_.error_of(result, wanted, there.nonzeros);
    line.error = std::max(line.error, std::isnan(error) ? 1.0 : error);
    gpu_.check(apl_sparse_release_sddmm(gpu_.context(), &operand));
    if (!name.empty() && plan == nullptr) fmt::print("    {:9.2f} us  {}\n", time, name);
    return time;
  };
  line.dense_model = apl_sparse_dense_microseconds(&device_, gpu_.c_type(), there.rows, depth, there.columns);
  line.ours = line.best = measure({}, "");
  if (request_.sweep) {
    std::string best = "the rules";
    for (const Variant& variant : sddmm_variants(gpu_.type() == ScalarType::f16)) {
      const double time = measure(variant.options, variant.name);
      if (time < line.best) line.best = time, best = variant.name;
    }
    line.how += "; best " + best;
  }
  if (request_.plans)
    take_plan(line, search_by(a.matrix, sparse::Operator::sddmm, depth, gpu_.element(),
                              [&](const apl_sparse_plan& plan) { return measure({}, "by a plan", &plan); }));
  if (has_peers_) {
    line.peers = peers_.sddmm(there, x, y, depth, result, wanted);
    if (there.rows * there.columns <= kLargestDense)
      line.dense = peers_.dense_samples(there.rows, there.columns, depth, x, y,
                                        gpu_.scratch(gpu_.element() * there.rows * there.columns, "all products"));
  }
  run_own_dense(a, line);
  report(std::move(line));
}

void Bench::run_own_dense(const Case& a, Line& line) {
  if (!own_dense_ || a.matrix.rows * a.matrix.columns > kLargestOwnDense) return;
  const DenseProducts::Ran ran =
      line.op == "spmm" ? own_dense_->spmm(a.matrix, line.width) : own_dense_->sddmm(a.matrix, line.width);
  line.own_dense = ran.microseconds;
  line.own_dense_model = sparse::dense_microseconds(
      device_, gpu_.type(), line.op == "sddmm" ? sparse::Operator::sddmm : sparse::Operator::spmm, a.matrix.rows,
      a.matrix.columns, line.width);
  line.error = std::max(line.error, std::isnan(ran.error) ? 1.0 : ran.error);
}

}  // namespace apl::bench
