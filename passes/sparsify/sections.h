// Whether a product with a matrix that is known gets code of its own, and in what sections (docs/constant.md).
#pragma once

#include <map>
#include <string>

#include "ir/module.h"
#include "passes/sparsify/sparsify.h"

namespace apl::sparsify {

struct SectionPlan {
  std::optional<SparseSchedule::Sections> sections;
  RemarkKind kind = RemarkKind::applied;
  std::string code, message, suggestion;  // of the remark
};

// For a kernel whose schedule holds. `known` is null if the matrix was not given. Tuning parameters ENTRY.A.rows,
// .columns and .pieces are the sections' numbers; ENTRY.A.variant=1 asks for the kernels of the runtime, 2 for code
// whatever its size.
SectionPlan plan_sections(const SegOp& kernel, const Function& function, const KnownMatrix* known, bool on_host,
                          const std::map<std::string, std::int64_t>& parameters);

}  // namespace apl::sparsify
