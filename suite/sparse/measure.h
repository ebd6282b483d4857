// Runs products by plans on this machine's cores: for searches that choose by measurement, profiles and studies.
#pragma once

#include <cstdint>
#include <vector>

#include "passes/sparse/matrix.h"
#include "passes/sparse/plan.h"
#include "suite/sparse/handles.h"

namespace apl::sparse {

// The tiles of a plan that makes some; null without memory, or if the plan is for another matrix.
TilesPointer tiles_of(const Csr& matrix, const Plan& plan);
TilesPointer tiles_of(const Csr& matrix, const apl_sparse_plan& plan);

// When to stop repeating: others run on the machine, so that the least of several counts.
struct Effort {
  int most_runs = 30;
  double seconds = 0.2;
};

// A product in one thread, which others on the machine disturb least. All operands are zeros: that takes as long as
// anything else.
class Product {
 public:
  Product(const Csr& matrix, const Problem& problem);

  // Nanoseconds, the least of several; 0 without memory. The tiles are of that matrix, and the dense loop goes in
  // parts of `part`.
  double operator()(const apl_sparse_tiles& tiles, std::int64_t part, const Effort& effort = {});

 private:
  Problem problem_;
  std::vector<unsigned char> values_, left_, right_, result_;
};

class Measure {
 public:
  // The matrix must outlive this.
  Measure(const Csr& matrix, const Problem& problem) : matrix_(matrix), problem_(problem), product_(matrix, problem) {}

  // Nanoseconds of a product; 0 if it cannot be run (a dense product of a large matrix).
  double operator()(const Plan& plan);
  double operator()(const apl_sparse_plan& plan);

 private:
  double run_dense(const Plan& plan) const;

  const Csr& matrix_;
  Problem problem_;
  Product product_;
};

}  // namespace apl::sparse
