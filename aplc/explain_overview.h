// `aplc explain` on one screen: a line for each source line that became a kernel, dearest first.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "aplc/explain_costs.h"
#include "aplc/explain_plan.h"

namespace aplc {

// What is shown of one source line, or of one contraction on it.
struct OverviewRow {
  apl::Location location;
  std::string source;             // the line as it is written, without its indentation
  std::string what;               // "ba,ca->cb", "map", "scan", "SpMM over the non-zeros of `A`"
  std::string decision;           // "tiled 128 x 16", "not tiled: each element is used once"
  std::optional<double> seconds;  // predicted; none where sizes are not known
  double launches = 0;            // of kernels, all that count
  double rounds = 1;              // how often a loop launches its kernels
  bool unknown_rounds = false, unknown_work = false, unknown_branch = false, other_side = false;  // as of KernelCost
  std::string suggestion;
  bool is_product = false;  // over the non-zeros of an operand
};

struct Overview {
  std::string entry;  // or a constant, whose rows count once for each context and in no call of an entry
  bool is_constant = false;
  Sizes sizes;
  bool sizes_given = false;  // by the user; else of the first dataset
  std::vector<OverviewRow> rows;
  std::string help;                  // what would help most; never empty
  std::vector<ExplainedPlan> plans;  // of contractions that may run
  std::vector<std::string> einsums;  // theirs
  std::vector<KernelCost> kernels;   // all that the host launches; those of contractions as their plans say
};

// Of each entry. `module` is at the memory stage, as it runs; `remarks` are those of all passes on it, `matrices` the
// sparse operands whose matrices are known.
std::vector<Overview> overviews(const apl::Module& module, const std::vector<apl::Remark>& remarks, const Sizes& sizes,
                                const std::string& file, const std::string& text, const apl_device& device,
                                const Parameters& given, const apl::SpillCheck& check = nullptr,
                                const std::set<std::string>& matrices = {});

// The function of the module that the overview is of.
const apl::Function& function_of(const apl::Module& module, const Overview& overview);

// As text, at most `lines` lines. With `colour` for a terminal.
std::string overview_text(const std::vector<Overview>& all, const std::string& file, const apl_device& device,
                          std::size_t lines, bool colour);

}  // namespace aplc
