#include "aplc/sparse/explain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <memory>
#include <optional>
#include <regex>

#include "aplc/sparse/describe.h"
#include "aplc/sparse/files.h"
#include "codegen/sparse/products.h"
#include "ir/attributes.h"
#include "ir/sparse_soa.h"
#include "ir/walk.h"
#include "passes/sparse/read.h"
#include "passes/sparse/search.h"
#include "runtime/program/sparse_plans.h"
#include "runtime/sparse/csr_view.h"
#include "runtime/sparse/device_operand.h"
#include "suite/sparse/measure.h"

namespace aplc::sparse {
namespace {

using apl::program::GivenPlan;

constexpr std::int64_t kAssumedWidth = 128;

using Marked = std::tuple<std::string, apl::attribute::SparseProduct>;

Explained look_at(const apl::Stm& stm, const Marked& marked, const apl::Function& function, bool gpu) {
  Explained product;
  product.operand = std::get<0>(marked);
  product.sddmm = std::get<1>(marked) == apl::attribute::SparseProduct::sddmm;
  product.tiles = apl::get_if<apl::Scatter>(stm) != nullptr;
  if (product.tiles) {
    product.why_not = "the program was compiled for tiles";
  } else if (product.sddmm) {
    const auto found = gpu ? apl::lower::find_sparse_sddmm(stm, function, &product.why_not)
                           : apl::lower::find_host_sddmm(stm, function, &product.why_not);
    product.fits = found.has_value();
    if (found) {
      product.type = found->type, product.width = found->depth, product.has_width = true;
      product.batches = found->batches.size();
      product.epilogue = found->epilogue.stms.size();
    }
  } else {
    const auto found = gpu ? apl::lower::find_sparse_product(stm, function, &product.why_not)
                           : apl::lower::find_host_product(stm, function, &product.why_not);
    product.fits = found.has_value();
    if (found) {
      product.type = found->type, product.width = found->width, product.has_width = true;
      product.batches = found->batches.size();
      product.epilogue = found->epilogue.stms.size();
    }
  }
  return product;
}

std::optional<std::int64_t> size_number(const apl::Poly& poly, const apl::Function& function, const Sizes& sizes) {
  bool all = true;
  const auto size_of = [&](apl::Value v) { return sizes.find(function.values.name(v)); };
  poly.for_each_symbol([&](apl::Value v) { all = all && size_of(v) != sizes.end(); });
  return all ? poly.evaluate([&](apl::Value v) { return size_of(v)->second; }) : std::nullopt;
}

class Explainer {
 public:
  Explainer(const ExplainRequest& request, std::vector<GivenPlan> plans)
      : request_(request), plans_(std::move(plans)) {}

  apl::Result<apl::Remark> explain(const apl::Stm& stm, const Marked& marked, const apl::Function& function) {
    const Explained product = look_at(stm, marked, function, request_.gpu);
    apl::Remark remark;
    remark.kind = apl::RemarkKind::analysis;
    remark.pass = "sparse-product";
    remark.code = product.fits ? "runtime" : "own";
    remark.location = stm.location;
    remark.function = function.entry->name;
    remark.message =
        fmt::format("{} over the {} of `{}`", name_of(product), product.tiles ? "tiles" : "non-zeros", product.operand);
    Facts& facts = remark.facts;
    if (product.tiles) {
      facts.emplace_back("kernel", "the program's own: one, which branches on the number of the tile");
    } else if (!request_.gpu) {
      facts.emplace_back(
          "kernel", fmt::format("on this machine's cores: {}", !product.fits ? "the program's own"
                                                               : product.epilogue == 0
                                                                   ? "the runtime's"
                                                                   : "the runtime's, with a loop of the program over "
                                                                     "the sums"));
      if (!product.fits) facts.emplace_back("why", product.why_not);
    } else if (product.fits) {
      facts.emplace_back("kernel", "the runtime's, made for the matrix");
      facts.emplace_back("otherwise",
                         "the program's own: products of less than 65536 multiplications without a plan, operands "
                         "that are no arguments");
    } else {
      facts.emplace_back("kernel", "the program's own");
      facts.emplace_back("why", product.why_not);
    }
    auto width = product.has_width ? size_number(product.width, function, request_.sizes(function)) : std::nullopt;
    const auto given = request_.matrices.find(product.operand);
    if (given == request_.matrices.end()) {
      facts.emplace_back(
          "plan",
          has_plans(product.operand)
              ? fmt::format("held against the matrix when the program runs; see it here with {}=@FILE", product.operand)
              : std::string("none"));
      if (product.fits && request_.gpu && !product.sddmm)
        facts.emplace_back(
            "rule",
            "by the model: f16 and bf16 are gathered, in windows of 8, 16 or 32 rows on tensor cores, "
            "or B is copied to "
            "shared memory, whatever takes least; other types likewise, in windows of 8 or 16 rows without them; "
            "very long rows are cut");
      if (product.fits && request_.gpu && product.sddmm)
        facts.emplace_back(
            "rule",
            "f16, bf16: windows on tensor cores where rows have 24 non-zeros or more (100 up to 32 terms), "
            "or large matrices share columns; else a list of coordinates");
      return remark;
    }
    const apl_sparse_csr csr = apl::csr_view(given->second.matrix);
    auto fitting = apl::program::plans_for(plans_, product.operand, csr);
    if (!fitting) return std::move(fitting).error();
    const GivenPlan* plan = choose(*fitting, product, facts);
    if (plan != nullptr && plan->plan->dense && product.fits) {
      remark.code = "cublas";
      remark.message = fmt::format("{} of `{}`, with all of its zeros", name_of(product), product.operand);
      facts.front() = {"kernel", "cuBLAS's dense product, on a copy with all zeros, because of --use-cublas"};
    }
    if (!width && plan != nullptr) width = plan->plan->dense_size;
    if (!width)
      facts.emplace_back(product.sddmm ? "depth" : "width", fmt::format("not known: costs are for {}", kAssumedWidth));
    describe_matrix(given->second.file, csr, plan != nullptr ? plan->plan->row_order : nullptr, facts);
    describe_plan(given->second.matrix, plan, product, width.value_or(kAssumedWidth), remark.message, facts);
    if (request_.gpu && product.fits && remark.code != "cublas")
      describe_kernels(product, csr, plan != nullptr ? plan->plan.get() : nullptr, width.value_or(kAssumedWidth),
                       facts);
    return remark;
  }

 private:
  static std::string name_of(const Explained& product) {
    const bool vector = product.has_width && product.width.is_one();
    std::string name = product.sddmm ? "SDDMM" : vector ? "SpMV" : "SpMM";
    if (product.batches > 0) name += ", one product a batch,";
    if (product.epilogue > 0)
      name += fmt::format(" with {} statement{} after the sum,", product.epilogue, product.epilogue == 1 ? "" : "s");
    return name;
  }

  bool has_plans(const std::string& operand) const {
    return std::ranges::find(plans_, operand, &GivenPlan::operand) != plans_.end();
  }

  // The plan that acts, and where it came from.
  const GivenPlan* choose(const std::vector<const GivenPlan*>& fitting, const Explained& product, Facts& facts) const {
    const GivenPlan* chosen = nullptr;
    for (const GivenPlan* plan : fitting) {
      const bool sddmm = plan->plan->sddmm != 0;
      if (plan->plan->dense && !request_.use_cublas) {
        facts.emplace_back("plan",
                           fmt::format("{} is not used: it says `form dense`, and this program was compiled for "
                                       "a sparse operand",
                                       plan->source));
      } else if (sddmm != product.sddmm) {
        facts.emplace_back("plan", fmt::format("{} is not used: it is for {}", plan->source, sddmm ? "sddmm" : "spmm"));
      } else if (chosen == nullptr) {
        chosen = plan;
      }
    }
    if (chosen != nullptr) {
      facts.emplace_back(
          "plan", fmt::format("{} (given){}", chosen->source,
                              product.fits || product.tiles ? "" : ": not used, the kernel is the program's own"));
    } else if (fitting.empty()) {
      facts.emplace_back("plan", product.tiles ? "none: the built-in plan" : "none: the built-in rules");
    }
    return chosen;
  }

  void describe_plan(const apl::sparse::Csr& matrix, const GivenPlan* plan, const Explained& product,
                     std::int64_t width, const std::string& title, Facts& facts) {
    const apl_sparse_csr csr = apl::csr_view(matrix);
    PlanPointer builtin;
    const apl_sparse_plan* tiles_of = plan != nullptr ? plan->plan.get() : nullptr;
    // The cores' kernels run tiles always.
    if (tiles_of == nullptr && (!request_.gpu || product.tiles)) {
      apl_sparse_plan* made = nullptr;
      apl_sparse_plan_builtin(&csr, &made);
      builtin.reset(made);
      tiles_of = made;
    }
    if (tiles_of != nullptr && !tiles_of->dense) {
      apl_sparse_tiles* made = nullptr;
      apl_sparse_pack(&csr, tiles_of, &made);
      const TilesPointer tiles(made);
      if (tiles) describe_tiles(*tiles, facts);
    }
    const apl::sparse::Problem problem{product.sddmm ? apl::sparse::Operator::sddmm : apl::sparse::Operator::spmm,
                                       width, product.fits ? apl::byte_size(product.type) : 4};
    if (plan != nullptr) {
      const auto text = std::ranges::find_if(request_.plans, [&](const apl::SparsePlan& p) {
        return p.operand == plan->operand && p.source == plan->source;
      });
      facts.emplace_back("compared", fmt::format("{}", fmt::join(notes_of(text->text), "; ")));
      if (request_.compared) request_.compared({title, product.operand, true, text->text, times_of(text->text)});
    } else {
      const apl::sparse::Plan found = search(matrix, problem);
      facts.emplace_back("costs", costs(found));
      if (request_.compared) request_.compared({title, product.operand, false, to_text(found), found.considered});
    }
    if (!request_.measure) return;
    apl::sparse::Measure measure(matrix, problem);
    if (builtin == nullptr && tiles_of == nullptr) {
      apl_sparse_plan* made = nullptr;
      apl_sparse_plan_builtin(&csr, &made);
      builtin.reset(made);
      tiles_of = made;
    }
    const double time = tiles_of != nullptr ? measure(*tiles_of) : 0;
    facts.emplace_back("measured", time > 0 ? time_text(time) + " on a core of this machine" +
                                                  (plan == nullptr ? ", by the built-in plan" : "")
                                            : "nothing: such a product cannot be run here");
  }

  // Without other orders.
  apl::sparse::Plan search(const apl::sparse::Csr& matrix, const apl::sparse::Problem& problem) const {
    apl::sparse::SearchOptions how;
    how.problem = problem;
    how.reorder = false;
    how.seconds = 10;
    return apl::sparse::search(matrix, request_.profile, how);
  }

  // Of plans of one format, of the search, and of the dense product, by the cost model.
  std::string costs(const apl::sparse::Plan& found) const {
    const bool other = !request_.device.empty() && request_.device != request_.profile.name;
    std::string text = fmt::format("by profile {}{}: ", request_.profile.name,
                                   other ? fmt::format(", as there is none of {}", request_.device) : "");
    for (std::size_t k = 0; k < found.considered.size(); ++k)
      text +=
          fmt::format("{}{} {}", k == 0 ? "" : ", ", found.considered[k].first, time_text(found.considered[k].second));
    return text;
  }

  // What a plan's notes say of the plans that it was compared with: "ELL: 12.50 us by the model".
  static std::vector<std::pair<std::string, double>> times_of(const std::string& plan) {
    static const std::regex kNote(R"((.*): ([0-9.]+) (us|ms|s) by the model)");
    std::vector<std::pair<std::string, double>> times;
    std::smatch match;
    for (const std::string& note : notes_of(plan))
      if (std::regex_match(note, match, kNote))
        times.emplace_back(match[1], std::stod(match[2]) * (match[3] == "us" ? 1e3 : match[3] == "ms" ? 1e6 : 1e9));
    std::ranges::stable_sort(times, {}, &std::pair<std::string, double>::second);
    return times;
  }

  const ExplainRequest& request_;
  std::vector<GivenPlan> plans_;
};

void visit_statements(const apl::Body& body, const std::function<void(const apl::Stm&)>& see) {
  for (const apl::Stm& stm : body.stms) {
    see(stm);
    if (apl::get_if<apl::Loop>(stm) || apl::is_branch(stm.op))
      apl::for_each_body(stm.op, [&](const apl::BodyPtr& inner) { visit_statements(*inner, see); });
  }
}

}  // namespace

apl::Result<std::map<std::string, ExplainedMatrix>> read_explained(const std::vector<std::string>& texts) {
  std::map<std::string, ExplainedMatrix> matrices;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find("=@");
    if (equals == std::string::npos || equals == 0)
      return apl::make_error(apl::Code::command_bad_argument, {},
                             fmt::format("{}: expected OPERAND=@MATRIX, a Matrix Market or .smtx file", text));
    const std::string file = text.substr(equals + 2);
    const FileText contents(file);
    if (contents.problem()) return *contents.problem();
    auto matrix = apl::sparse::read_matrix(contents.text(), {false, 0});
    if (!matrix) {
      apl::Diagnostic error = std::move(matrix).error();
      error.file = file;
      return error;
    }
    matrices.insert_or_assign(text.substr(0, equals), ExplainedMatrix{file, std::move(*matrix)});
  }
  return matrices;
}

apl::Result<std::vector<apl::Remark>> explain_products(const apl::Module& module, const ExplainRequest& request) {
  auto plans = apl::program::read_plans(request.plans);
  if (!plans) return std::move(plans).error();
  Explainer explainer(request, std::move(*plans));
  std::vector<apl::Remark> remarks;
  std::optional<apl::Diagnostic> failed;
  for (const apl::FunctionPtr& function : module.functions) {
    if (!function->entry) continue;
    visit_statements(*function->body, [&](const apl::Stm& stm) {
      const auto marked = apl::find_attribute(stm.attributes, apl::attribute::sparse_product);
      if (!marked || failed) return;
      auto remark = explainer.explain(stm, *marked, *function);
      if (remark) {
        remarks.push_back(std::move(*remark));
      } else {
        failed = std::move(remark).error();
      }
    });
  }
  if (failed) return *std::move(failed);
  return remarks;
}

}  // namespace aplc::sparse
