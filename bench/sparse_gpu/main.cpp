// Sparse products on a GPU, f16 with f32 sums or f32, beside cuSPARSE and dense cuBLAS in the same run: times, and
// every result checked in full against the plainest kernel.
//   apl_sparse_gpu [--emulate] [--operators=spmm,sddmm] [--matrices=A,B] [--widths=32,128] [--folder=DIR] [--json=FILE]
//                  [--type=f16|f32] [--sweep] [--plans] [--searched] [--once] [--no-peers] [--formats] [--mixed]
//                  [--studies] [--dense]
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "bench/sparse/matrices.h"
#include "bench/sparse_gpu/dense.h"
#include "bench/sparse_gpu/peers.h"
#include "bench/sparse_gpu/shapes.h"
#include "bench/sparse_gpu/variants.h"
#include "passes/sparse/read.h"
#include "passes/sparse/search.h"
#include "runtime/sparse/csr_view.h"
#include "runtime/sparse/device_operand.h"
#include "suite/sparse/dense_product.h"
#include "tests/command_line.h"

namespace apl::bench {
namespace {

struct Request {
  bool emulate = false, sweep = false, plans = false, searched = false, no_peers = false, once = false;
  bool formats = false;  // of cuSPARSE, beside CSR
  bool studies = false;  // plans of searches that leave something out
  bool dense = false;    // our own product of a copy with all zeros, which plans run that say so
  ScalarType type = ScalarType::f16;
  std::vector<std::string> operators = {"spmm", "sddmm"}, matrices;
  std::vector<std::int64_t> widths;
  std::string folder, json;
};

struct Case {
  std::string name, kind;
  sparse::Csr matrix;
};

// Above so many non-zeros only one width is run.
constexpr std::int64_t kLargeMatrix = 3'000'000;
constexpr std::int64_t kLargestDense = std::int64_t{1} << 29;     // elements
constexpr std::int64_t kLargestOwnDense = std::int64_t{1} << 24;  // that are made on the host

class Bench {
 public:
  explicit Bench(const Request& request)
      : request_(request),
        gpu_(request.emulate, request.once, request.type),
        device_(gpu_.bridge().backend().device()),
        peers_(gpu_, request.formats),
        has_peers_(!request.emulate && !request.no_peers) {
    if (request.dense) own_dense_.emplace(request.type, request.emulate);
  }

  void run(const Case& a);
  bool finish();

 private:
  struct Line {
    std::string matrix, kind, op;
    std::int64_t width;
    double ours, error, best, dense;
    double model, dense_model;  // what the model says of them; 0: nothing
    std::string how;
    std::vector<PeerTime> peers;
    nlohmann::json shape = {}, sweep = {};  // of a sweep: each packed operand, and the times of its kernels
    double planned = 0;                     // by the plan of a search that ran its candidates here
    std::string plan = "";
    nlohmann::json measured = {};                         // microseconds of each of its plans, by name
    nlohmann::json candidates = nlohmann::json::array();  // of that search: microseconds run, and by the model
    nlohmann::json reordered = {};                        // seconds that it took, and by the model before and after
    nlohmann::json studies = {};                          // microseconds by such plans
    nlohmann::json searched = {};                         // by plans that the model chose: for this type, and for f16
    double own_dense = 0, own_dense_model = 0;
  };

  void spmm(const Case& a, const OnDevice& there, std::int64_t width);
  void sddmm(const Case& a, const OnDevice& there, std::int64_t depth);
  void study(const Case& a, std::int64_t width, Line& line,
             const std::function<double(const apl_sparse_plan&)>& run) const;
  void take_plan(Line& line, const sparse::Plan& plan);
  void run_own_dense(const Case& a, Line& line);
  void report(Line line);
  nlohmann::json json_of(const Line& line) const;
  bool is_exact(const PeerTime& peer) const { return peer.error < gpu_.tolerance(); }
  double best_peer(const Line& line) const;
  bool wanted(const char* op) const {
    return std::find(request_.operators.begin(), request_.operators.end(), op) != request_.operators.end();
  }

  Request request_;
  Gpu gpu_;
  apl_device device_;  // whose record programs take here
  Peers peers_;
  std::optional<DenseProducts> own_dense_;
  bool has_peers_;
  std::vector<Line> lines_;
  nlohmann::json json_ = nlohmann::json::array();
  int wrong_ = 0;
};

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
    give_up("no form");
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

struct FreePlan {
  void operator()(apl_sparse_plan* plan) const { apl_sparse_plan_free(plan); }
};
using PlanPointer = std::unique_ptr<apl_sparse_plan, FreePlan>;

PlanPointer parse_plan(const sparse::Plan& plan) {
  const std::string text = to_text(plan);
  apl_sparse_plan* parsed = nullptr;
  std::array<char, 200> message{};
  if (apl_sparse_plan_parse(text.data(), text.size(), &parsed, message.data(), message.size()) != APL_SPARSE_FINE)
    give_up(message.data());
  return PlanPointer(parsed);
}

// What the search finds that runs its candidates by `time`, in microseconds.
sparse::Plan search_by(const sparse::Csr& matrix, sparse::Operator op, std::int64_t width, std::int64_t bytes,
                       const std::function<double(const apl_sparse_plan&)>& time) {
  sparse::SearchOptions options;
  options.problem = {op, width, bytes};
  options.as_run = true;
  options.measure = [&](const sparse::Plan& plan) { return plan.dense ? 0 : 1e3 * time(*parse_plan(plan)); };
  return sparse::search(matrix, *sparse::builtin_profile("h200"), options);
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
      give_up("no form of samples");
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

// Tables 6 and 7 and figure 12 by running: searches by the cost of tiles alone that leave out withdrawing, local
// search, levels, formats or reordering.
void Bench::study(const Case& a, std::int64_t width, Line& line,
                  const std::function<double(const apl_sparse_plan&)>& run) const {
  struct Study {
    const char* name;
    sparse::GreedyOptions greedy;
    sparse::CoverFormats formats;
    bool reorder;
  };
  const Study studies[] = {{"all", {1.2, true, 0}, {true, true, true}, true},
                           {"rows as they are", {1.2, true, 0}, {true, true, true}, false},
                           {"without withdrawing", {1.2, false, 0}, {true, true, true}, true},
                           {"without local search", {1, true, 0}, {true, true, true}, true},
                           {"levels 1", {1.2, true, 1}, {true, true, true}, true},
                           {"levels 2", {1.2, true, 2}, {true, true, true}, true},
                           {"levels 10", {1.2, true, 10}, {true, true, true}, true},
                           {"blocks alone", {1.2, true, 0}, {true, false, false}, true},
                           {"ELL rows alone", {1.2, true, 0}, {false, true, false}, true},
                           {"nnz segments alone", {1.2, true, 0}, {false, false, true}, true}};
  for (const Study& each : studies) {
    sparse::SearchOptions options;
    options.problem = {sparse::Operator::spmm, width, gpu_.element()};
    options.greedy = each.greedy;
    options.formats = each.formats;
    options.reorder = each.reorder;
    sparse::Plan plan = sparse::search(a.matrix, *sparse::builtin_profile("h200"), options);
    if (plan.dense) continue;  // they say nothing of tiles
    const double time = run(*parse_plan(plan));
    line.studies[each.name] = {{"us", time}, {"cost_us", plan.cost / 1e3}, {"seconds", plan.seconds}};
    fmt::print("    {:9.2f} us, {:.2f} by the cost of its tiles  {}, rows {}\n", time, plan.cost / 1e3, each.name,
               plan.order);
  }
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

void Bench::take_plan(Line& line, const sparse::Plan& plan) {
  for (const auto& [name, nanoseconds] : plan.measured) fmt::print("    {:9.2f} us  {}\n", nanoseconds / 1e3, name);
  if (plan.measured.empty()) return;
  for (const auto& [name, nanoseconds] : plan.measured) line.measured[name] = nanoseconds / 1e3;
  line.plan = plan.measured.front().first;
  line.planned = plan.measured.front().second / 1e3;
}

void Bench::report(Line line) {
  const bool is_wrong = !(line.error < gpu_.tolerance());
  wrong_ += is_wrong;
  std::string peers;
  const double best = best_peer(line);
  for (const PeerTime& peer : line.peers)
    peers += fmt::format(" {} {:.1f}{}", peer.name, peer.microseconds, is_exact(peer) ? "" : "(wrong)");
  fmt::print("  {:5} {:4} {:9.2f} us {:9}{:9} |{} | dense {:.1f}{} | {}{}\n", line.op, line.width, line.ours,
             request_.sweep ? fmt::format("({:.2f})", line.best) : "",
             best > 0 ? fmt::format("x{:.2f}", best / line.ours) : "", peers, line.dense,
             line.own_dense > 0 ? fmt::format(", ours {:.1f}", line.own_dense) : "", line.how,
             is_wrong ? fmt::format(" WRONG {:.1e}", line.error) : "");
  std::fflush(stdout);
  json_.push_back(json_of(line));
  lines_.push_back(std::move(line));
  // After each: a run may be ended by a limit.
  if (!request_.json.empty()) std::ofstream(request_.json) << json_.dump(1) << "\n";
}

nlohmann::json Bench::json_of(const Line& line) const {
  nlohmann::json each = {{"matrix", line.matrix},  {"kind", line.kind}, {"operator", line.op},
                         {"width", line.width},    {"us", line.ours},   {"error", line.error},
                         {"dense_us", line.dense}, {"how", line.how},   {"type", std::string(to_text(gpu_.type()))}};
  if (!line.reordered.is_null()) each["reordered"] = line.reordered;
  if (!line.studies.is_null()) each["studies"] = line.studies;
  if (!line.searched.is_null()) each["searched"] = line.searched;
  each["shape"] = line.shape;
  if (request_.sweep) each["best_us"] = line.best;
  if (!line.sweep.is_null()) each["sweep"] = line.sweep;
  if (line.planned > 0)
    each["plan"] = {{"us", line.planned}, {"name", line.plan}, {"names", line.measured}, {"all", line.candidates}};
  if (line.own_dense > 0) each["own_dense_us"] = {line.own_dense, line.own_dense_model};
  if (line.model > 0) each["model_us"] = {line.model, line.dense_model};
  for (const PeerTime& peer : line.peers) {
    each["peers"][peer.name] = peer.microseconds;
    if (!is_exact(peer)) each["inexact"][peer.name] = peer.error;
  }
  return each;
}

// Who is not exact is no peer.
double Bench::best_peer(const Line& line) const {
  double best = 0;
  for (const PeerTime& peer : line.peers)
    if (is_exact(peer) && (best == 0 || peer.microseconds < best)) best = peer.microseconds;
  return best;
}

bool Bench::finish() {
  // By operator and kind: geometric means of the best peer's time over ours, and the worst.
  struct Mean {
    double logs = 0, tuned = 0, planned = 0, worst = 1e9;
    int count = 0, plans = 0, dense_wins = 0, not_told = 0, wrongly_told = 0;  // by more than 5 %
    std::string worst_case;
  };
  std::map<std::string, Mean> means;
  for (const Line& line : lines_) {
    const double best = best_peer(line);
    Mean& mean = means[line.op + " " + line.kind];
    if (line.planned > 0) mean.planned += std::log(line.ours / line.planned), ++mean.plans;
    if (best == 0) continue;
    mean.logs += std::log(best / line.ours);
    mean.tuned += std::log(best / line.best);
    ++mean.count;
    mean.dense_wins += line.dense > 0 && line.dense * 1.05 < line.ours;
    const int told = apl_sparse_prefers_dense(&device_, line.model, line.dense_model);
    mean.not_told += line.dense > 0 && !told && line.dense * 1.05 < line.ours;
    mean.wrongly_told += line.dense > 0 && told && line.ours * 1.05 < line.dense;
    if (best / line.ours < mean.worst) {
      mean.worst = best / line.ours;
      mean.worst_case = fmt::format("{} {}", line.matrix, line.width);
    }
  }
  for (const auto& [name, mean] : means) {
    if (mean.count == 0) continue;
    fmt::print(
        "{:18} {:3} cases: best cuSPARSE takes {:.2f} times as long{}, at worst {:.2f} ({}); dense is faster in {}, "
        "not told in {}, wrongly in {}\n",
        name, mean.count, std::exp(mean.logs / mean.count),
        request_.sweep ? fmt::format(" (tuned {:.2f})", std::exp(mean.tuned / mean.count)) : "", mean.worst,
        mean.worst_case, mean.dense_wins, mean.not_told, mean.wrongly_told);
  }
  for (const auto& [name, mean] : means)
    if (mean.plans > 0)
      fmt::print("{:18} without a plan: {:.3f} times as long as with the best plan of a search\n", name,
                 std::exp(mean.planned / mean.plans));
  fmt::print("{} cases, {} wrong\n", lines_.size(), wrong_);
  for (const KernelStats& kernel : gpu_.bridge().backend().kernels())
    if (kernel.local_bytes > 0) fmt::print("{} spills {} bytes\n", kernel.name, kernel.local_bytes);
  return wrong_ == 0;
}

// A real matrix where its file is, else one made like it.
Case make_case(const MatrixName& name, const Request& request) {
  const std::string real = name.name.substr(0, name.name.find("_syn"));
  if (!request.folder.empty() && (real == "cora" || real == "citeseer" || real == "pubmed")) {
    std::ifstream in(request.folder + "/" + real + ".mtx");
    if (in) {
      const std::string text(std::istreambuf_iterator<char>(in), {});
      sparse::ReadOptions pattern;
      pattern.values = false;
      return {real, name.kind, need(sparse::read_matrix(text, pattern))};
    }
  }
  auto made = make_matrix(name.name, static_cast<int>(std::thread::hardware_concurrency()));
  if (!made) give_up("no matrix " + name.name);
  return {name.name, name.kind, std::move(*made)};
}

int main_of(const Request& request) {
  Bench bench(request);
  const std::vector<MatrixName>& known = matrix_names();
  for (const MatrixName& name : known) {
    const bool is_asked = request.matrices.empty() || std::find(request.matrices.begin(), request.matrices.end(),
                                                                name.name) != request.matrices.end();
    if (is_asked) bench.run(make_case(name, request));
  }
  for (const std::string& name : request.matrices)
    if (std::none_of(known.begin(), known.end(), [&](const MatrixName& other) { return other.name == name; }))
      bench.run(make_case({name, kind_of(name), 0}, request));
  return bench.finish() ? 0 : 1;
}

}  // namespace
}  // namespace apl::bench

int main(int argc, char** argv) {
  apl::bench::Request request;
  apl::CommandLine line("Sparse products on a GPU beside cuSPARSE and cuBLAS");
  line.flag("--emulate", request.emulate, "run in emulation, without times");
  line.flag("--sweep", request.sweep, "try many parameters beside the rules'");
  line.flag("--plans", request.plans, "search for plans, and run those that the model likes");
  line.flag("--searched", request.searched, "run the plans that a search finds by the models alone");
  line.flag("--studies", request.studies, "run the plans of searches that leave something out");
  line.flag("--dense", request.dense, "run our own dense product, too");
  bool mixed = false;
  line.flag("--mixed", mixed, "24 matrices of several patterns instead of those of bench/sparse/matrices.h");
  line.flag("--formats", request.formats, "cuSPARSE with COO, BSR and blocked ELL, too");
  std::string type = "f16";
  line.choice("--type", type, {"f16", "f32"}, "of the elements");
  line.flag("--once", request.once, "check results, time nothing");
  line.flag("--no-peers", request.no_peers, "ours alone");
  line.option("--operators", request.operators);
  line.option("--matrices", request.matrices);
  line.option("--widths", request.widths, "of the dense operand");
  line.option("--folder", request.folder, "with cora.mtx, citeseer.mtx, pubmed.mtx");
  line.option("--json", request.json);
  if (const auto code = line.parse(argc, argv)) return *code;
  if (mixed) request.matrices = apl::bench::mixed_names();
  request.type = *apl::scalar_type_from_text(type);
  return apl::bench::main_of(request);
}
