#include "passes/analysis/contraction_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <range/v3/view/zip.hpp>

#include <algorithm>

#include "ir/print.h"

namespace apl {

namespace {

std::string dim_names(const Contraction& contraction, const std::vector<std::size_t>& dims, const char* between) {
  std::vector<std::string> names;
  for (std::size_t d : dims) names.push_back(contraction.dims[d].name);
  return fmt::format("{}", fmt::join(names, between));
}

// "<m:q, q:1>": stride of each dim, outermost in memory first.
std::string operand_layout_text(const Contraction& contraction, const ContractionOperand& operand,
                                const Function& function) {
  std::vector<std::string> axes;
  for (int d : operand.axes) {
    auto k = static_cast<std::size_t>(d);
    axes.push_back(fmt::format("{}:{}", contraction.dims[k].name, print(operand.strides[k], function)));
  }
  std::string text = fmt::format("<{}>", fmt::join(axes, ", "));
  if (!operand.offset.is_zero()) text += fmt::format(" from {}", print(operand.offset, function));
  if (!operand.exact) text += " partial order";
  for (const ContractionGather& gather : operand.gathers) {
    std::vector<std::string> along;
    for (const auto& [dim, stride] : ranges::views::zip(contraction.dims, gather.at.strides))
      if (!stride.is_zero()) along.push_back(dim.name);
    text += fmt::format(" at {} times {}[{}]", print(gather.stride, function), function.values.name(gather.base),
                        fmt::join(along, ", "));
  }
  if (!operand.conditions.empty())
    text += fmt::format(" under {} condition{}, else {}", operand.conditions.size(),
                        operand.conditions.size() == 1 ? "" : "s", operand.otherwise.to_text());
  if (contraction.is_resident(operand)) text += " in registers";
  return text;
}

// Whether inner follows outer directly wherever they occur; if not, the operand where it does not.
struct Adjacency {
  bool alike = false;  // the dims are of one class
  const ContractionOperand* apart = nullptr;
};

Adjacency adjacency(const Contraction& contraction, std::size_t outer, std::size_t inner) {
  const ContractionDim &a = contraction.dims[outer], &b = contraction.dims[inner];
  Adjacency result{.alike = a.dim_class == b.dim_class, .apart = nullptr};
  for (const auto* operands : {&contraction.operands, &contraction.uniform})
    for (const ContractionOperand& operand : *operands)
      for_each_affine(operand, [&](const Poly&, const std::vector<Poly>& strides) {
        if (result.apart == nullptr && strides[outer] != strides[inner] * b.size) result.apart = &operand;
      });
  return result;
}

// "c*b: X varies along c alone": why neighbours of the result that are of one class are not one dim.
std::vector<std::string> unmerged_dims(const Contraction& contraction, const Function& function) {
  std::vector<std::string> reasons;
  for (std::size_t d = 1; d < contraction.dims.size(); ++d) {
    const auto [alike, apart] = adjacency(contraction, d - 1, d);
    if (d == contraction.space_rank || !alike || apart == nullptr) continue;
    const std::string &outer = contraction.dims[d - 1].name, &inner = contraction.dims[d].name;
    const std::string& name = function.values.name(apart->base);
    std::string why;
    const bool is_alike = apart->strides[d - 1] == apart->strides[d] * contraction.dims[d].size;
    if (is_alike) {
      why = fmt::format("where {} is read steps otherwise", name);
    } else if (apart->varies(d - 1) != apart->varies(d)) {
      why = fmt::format("{} varies along {} alone", name, apart->varies(d) ? inner : outer);
    } else {
      why = fmt::format("in {} {} steps by {}, not by {}", name, outer, print(apart->strides[d - 1], function),
                        print(apart->strides[d] * contraction.dims[d].size, function));
    }
    reasons.push_back(fmt::format("{}*{}: {}", outer, inner, why));
  }
  return reasons;
}

}  // namespace

std::vector<std::vector<std::size_t>> merged_dims(const Contraction& contraction) {
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t d = 0; d < contraction.dims.size(); ++d) {
    bool together = d > 0 && d != contraction.space_rank;
    if (together) {
      const auto [alike, apart] = adjacency(contraction, d - 1, d);
      together = alike && apart == nullptr;
    }
    if (!together) groups.emplace_back();
    groups.back().push_back(d);
  }
  return groups;
}

std::vector<std::size_t> variance_indices(const Contraction& contraction, const ContractionOperand& operand) {
  std::vector<std::size_t> indices;
  for (int d : operand.axes)
    if (static_cast<std::size_t>(d) < contraction.space_rank) indices.push_back(static_cast<std::size_t>(d));
  return indices;
}

RemarkFacts contraction_facts(const Contraction& contraction, const Function& function) {
  RemarkFacts result;
  result.emplace_back("einsum", contraction.einsum(function));
  std::vector<std::string> classes;
  for (const ContractionDim& dim : contraction.dims)
    classes.push_back(fmt::format("{}:{}", dim.name, to_text(dim.dim_class)));
  result.emplace_back("dims", fmt::format("{}", fmt::join(classes, " ")));
  std::vector<std::string> merged;
  for (const std::vector<std::size_t>& group : merged_dims(contraction))
    if (group.size() > 1) merged.push_back(dim_names(contraction, group, "*"));
  if (!merged.empty()) result.emplace_back("merged", fmt::format("{}", fmt::join(merged, " ")));
  if (const auto apart = unmerged_dims(contraction, function); !apart.empty())
    result.emplace_back("not-merged", fmt::format("{}", fmt::join(apart, "; ")));
  for (const ContractionOperand& operand : contraction.operands) {
    if (operand.index) {
      result.emplace_back("index", dim_names(contraction, {static_cast<std::size_t>(operand.axes.front())}, ""));
      continue;
    }
    result.emplace_back(function.values.name(operand.base),
                        fmt::format("{} varies with <{}>", operand_layout_text(contraction, operand, function),
                                    fmt::join(variance_indices(contraction, operand), ", ")));
  }
  for (const ContractionOperand& operand : contraction.uniform)
    result.emplace_back(function.values.name(operand.base), "one element a block");
  if (contraction.after) result.emplace_back("after", "in the same kernel");
  result.emplace_back("operator", contraction.reduce.commutative ? "commutative" : "order kept");
  return result;
}

RemarkFacts firing_facts(const Contraction& contraction, const ValueTable& values) {
  RemarkFacts facts;
  const auto say = [&](const char* name, const std::optional<Refusal>& refusal, const std::string& why) {
    facts.emplace_back(fmt::format("condition.{}", name),
                       refusal ? fmt::format("fails: {}", refusal->message) : fmt::format("holds: {}", why));
  };
  std::vector<std::size_t> free;
  for (std::size_t d = 0; d < contraction.space_rank; ++d)
    if (contraction.dims[d].dim_class == DimClass::free) free.push_back(d);
  say("free-dim", refuse_without_free_dims(contraction, values), dim_names(contraction, free, ", "));
  std::vector<std::string> missing;
  for (const ContractionOperand& operand : contraction.operands) {
    std::vector<std::size_t> missed;
    for (std::size_t d : free)
      if (!operand.varies(d)) missed.push_back(d);
    if (!operand.index && contraction.is_resident(operand))
      missing.push_back(fmt::format("{} is the same for all steps", values.name(operand.base)));
    else if (!operand.index)
      missing.push_back(fmt::format("{} misses {}", values.name(operand.base), dim_names(contraction, missed, ", ")));
  }
  say("reuse", refuse_operand_without_reuse(contraction, values), fmt::format("{}", fmt::join(missing, "; ")));
  std::vector<std::size_t> contracted;
  for (std::size_t d = contraction.space_rank; d < contraction.dims.size(); ++d) contracted.push_back(d);
  say("reduction", refuse_uncovered_dim(contraction),
      fmt::format("operands vary along {}", dim_names(contraction, contracted, ", ")));
  say("total", refuse_failing_map(contraction, values), "map function and operator cannot fail");
  return facts;
}

RemarkFacts refusal_facts(const Refusal& refusal, const Function& function) {
  if (refusal.match != nullptr) {
    RemarkFacts facts = contraction_facts(*refusal.match, function);
    for (auto [name, outcome] : firing_facts(*refusal.match, function.values))
      facts.emplace_back(name, outcome == "fails: " + refusal.message ? "fails" : outcome);
    return facts;
  }
  // What is asked before there are dims and operands, in this order.
  struct Question {
    const char* name;
    const char* answer;
    std::vector<std::string_view> codes;
  };
  static const std::vector<Question> kQuestions = {
      {"one-reduction", "one redomap", {"several-redomaps", "reduction-in-branch", "reduction-in-loop", "loop-kept"}},
      {"scalars", "it gives reduced scalars alone", {"maps-out", "array-accumulator"}},
      {"regular",
       "its widths and operator are the same for all indices",
       {"irregular-reduction", "operator-uses-index"}},
      {"surroundings", "code before and after can be done in the tiled kernel", {"code-after", "code-before"}},
  };
  RemarkFacts facts;
  for (const Question& question : kQuestions) {
    const bool fails = std::find(question.codes.begin(), question.codes.end(), refusal.code) != question.codes.end();
    facts.emplace_back(fmt::format("condition.{}", question.name),
                       fails ? std::string("fails") : fmt::format("holds: {}", question.answer));
    if (fails) return facts;
  }
  facts.emplace_back("condition.operands", "fails");
  return facts;
}

}  // namespace apl
