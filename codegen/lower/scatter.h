// Scatters and histograms in kernels, and the rows that they leave in a block's shared memory.
#pragma once

#include <string>
#include <vector>

#include "codegen/lower/lower.h"

namespace apl::lower {

class Scatters : KernelPart {
 public:
  explicit Scatters(Kernel& kernel) : KernelPart(kernel) {}

  void scatter(const Scatter& op, const Stm& stm, Block& out);
  void write_rows(const Scatter& op, const Stm& stm, bool parallel, Block& out);
  // Scalars `values`, one for each target of a scatter of rank 1, go to `at` if that is inside; other threads do the
  // same now.
  void write_scalars(const Scatter& op, const Stm& stm, const ExprPtr& at, const std::vector<ExprPtr>& values,
                     Block& out);
  void write_block_rows(const SegOp& op, const Stm& stm, Block& out);

 private:
  void scatter_in_block(const Scatter& op, const Stm& stm, Block& out);
  kernel::Stmt for_indices_of_block(const std::string& name, const ExprPtr& bound, Block inner);
  void declare_locks(Block& out);
  kernel::Stmt scattered(const Stm& stm, Value target, const std::vector<ExprPtr>& at, ExprPtr value);
  void fold_rows(const Scatter& op, const Stm& stm, const std::vector<ExprPtr>& at, Block& out);
  void fold_atomically(const Scatter& op, const Stm& stm, const std::vector<ExprPtr>& at, Block& out);

  std::string locks_;  // GPUs: the block's, if an operator folds several values in shared memory
};

}  // namespace apl::lower
