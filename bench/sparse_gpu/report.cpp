// What was measured, as text, as JSON, and in the mean of each kind of matrix.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>

#include "bench/sparse_gpu/bench.h"
#include "runtime/sparse/device_operand.h"

namespace apl::bench {

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

}  // namespace apl::bench
