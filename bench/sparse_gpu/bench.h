// What apl_sparse_gpu measures: each product by the kernel that is chosen for it, by others where that is asked for,
// and by the peers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/sparse_gpu/dense.h"
#include "bench/sparse_gpu/gpu.h"
#include "bench/sparse_gpu/peers.h"
#include "passes/sparse/matrix.h"
#include "passes/sparse/plan.h"
#include "runtime/sparse/sparse.h"

namespace apl::bench {

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

// A plan as the runtime reads it.
struct FreePlan {
  void operator()(apl_sparse_plan* plan) const { apl_sparse_plan_free(plan); }
};
using PlanPointer = std::unique_ptr<apl_sparse_plan, FreePlan>;

PlanPointer parse_plan(const sparse::Plan& plan);
// What the search finds that runs its candidates by `time`, in microseconds.
sparse::Plan search_by(const sparse::Csr& matrix, sparse::Operator op, std::int64_t width, std::int64_t bytes,
                       const std::function<double(const apl_sparse_plan&)>& time);

}  // namespace apl::bench
