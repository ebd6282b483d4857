// `aplc report`: a page about a program, with everything in one file.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "aplc/explain_costs.h"
#include "aplc/explain_overview.h"

namespace aplc::report_page {

struct Stage {
  std::string pass;  // "" for what the front end gives
  std::string text;  // of the module after it
};

// A product over the non-zeros of a matrix, and the plans that were compared for it.
struct SparseProduct {
  std::string title, note;                            // "SpMM over the non-zeros of `A`"; what the picture shows
  std::string picture;                                // SVG
  std::vector<std::pair<std::string, double>> plans;  // nanoseconds by the model, the fastest first
};

struct Input {
  std::string file, text;               // of the program
  const apl::Module* module = nullptr;  // at the memory stage
  std::vector<apl::Remark> remarks;
  std::vector<Stage> stages;  // after each pass that changed something, from the front end's on
  Sizes sizes;                // given by the user
  apl_device device{};
  Parameters parameters;
  std::vector<SparseProduct> products;                 // whose matrices are known
  std::vector<std::pair<std::string, double>> trials;  // of a tuning log: parameters, microseconds
  std::string generated;                               // the program that it becomes
};

// HTML with styles, script, data and the library that draws charts. If apl was built without that library, the tables
// are there without charts.
std::string page(const Input& input);

// Pieces of it.
std::string escaped(const std::string& text);
// Two texts side by side, with what changed and three lines around.
std::string side_by_side(const std::string& before, const std::string& after);
// Kernels and what flows between them, as SVG. `label` names a kernel.
std::string flow_graph(const apl::Function& function, const std::vector<KernelCost>& kernels,
                       const std::vector<std::string>& labels);
// The result of a contraction with its blocks, and the tiles of its first two operands, as SVG; empty if it has one
// operand.
std::string tile_picture(const ExplainedPlan& plan, const std::string& einsum);
// What of its dims a thread, a block and a step have. `names` are those of the dims, free ones first.
std::string dims_table(const ExplainedPlan& plan, std::vector<std::string> names);

// What lies in the shared memory of a block, from its first byte on.
struct SharedPart {
  std::string name;
  std::int64_t bytes = 0;
  int stages = 1;
};
std::vector<SharedPart> shared_parts(const ExplainedPlan& plan, const apl_device& device);
// As SVG, with `blocks` of them on a multiprocessor.
std::string shared_map(const std::vector<SharedPart>& parts, const apl_device& device, int blocks);

}  // namespace aplc::report_page
