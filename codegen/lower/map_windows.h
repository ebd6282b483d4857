// Maps on GPUs whose threads take several results one below the other, of windows that overlap.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/lower/lower.h"

namespace apl::lower {

// Whether a fold and its functions are of scalars alone, and short.
bool is_scalar_fold(const Screma& fold, const ValueTable& values);

class MapWindows : KernelPart {
 public:
  MapWindows(Kernel& kernel, const SegOp& op);

  // Whether the map is of this form.
  bool overlap() const { return overlap_; }
  void run();

 private:
  bool goes_as_far(const Screma& fold) const;
  bool reads_window(const Screma& fold) const;
  void one(const std::vector<ExprPtr>& indices, Block& out);
  void fold_together(const std::string& next, Block& out, Block& results);

  const SegOp& op_;
  bool overlap_ = false;
  const Stm* fold_ = nullptr;  // the only one, which stays loops; null: all are unrolled
};

}  // namespace apl::lower
