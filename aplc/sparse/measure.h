// Runs products by plans on this machine's cores, for searches that choose by measurement.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/runtime/sparse/sparse.h"
#include "passes/sparse/plan.h"

namespace aplc::sparse {

class Measure {
 public:
  // The matrix must outlive this. Products run in one thread: others on the machine disturb it least.
  Measure(const apl::sparse::Csr& matrix, const apl::sparse::Problem& problem);

  // Nanoseconds of a product, the least of several; 0 if it cannot be run (a dense product of a large matrix).
  double operator()(const apl::sparse::Plan& plan);
  double operator()(const apl_sparse_plan& plan);

 private:
  double run(const apl::sparse::Csr& matrix, const apl_sparse_plan& plan);
  double run_dense(apl::sparse::Plan plan);

  const apl::sparse::Csr& matrix_;
  apl::sparse::Problem problem_;
  std::vector<unsigned char> values_, left_, right_, result_;
};

}  // namespace aplc::sparse
