#include "passes/extract_kernels/remarks.h"

#include <fmt/format.h>

#include <utility>

#include "ir/print.h"
#include "ir/walk.h"
#include "passes/analysis/contraction_facts.h"

namespace apl {

void KernelRemarks::explain(const Stm& stm, const Distributed& apart) const {
  const std::string name = name_of(stm);
  using Form = Distributed::Form;
  switch (apart.form) {
    case Form::split:
      if (apart.parts == 1) return;  // a nest after all
      add(RemarkKind::applied, "distributed", stm,
          fmt::format("the map that makes '{}' is split, so that what is inside runs in parallel", name),
          {{"parts", std::to_string(apart.parts)}});
      return;
    case Form::loop:
    case Form::branch:
      add(RemarkKind::applied, "interchanged", stm,
          fmt::format("the {} inside the map that makes '{}' is outside now",
                      apart.form == Form::loop ? "loop" : "branch", name));
      return;
    case Form::scatter:
      add(RemarkKind::applied, "interchanged", stm,
          fmt::format("the scatters that make the rows of '{}' are one", name));
      return;
    case Form::reduction:
    case Form::scan:
      add(RemarkKind::applied, "segmented", stm,
          fmt::format("the {}s that make '{}' are done in chunks, all at once",
                      apart.form == Form::scan ? "scan" : "reduction", name));
      return;
  }
}

void KernelRemarks::explain_not_tiled(const Refusal& refusal) const {
  if (refusal.code.empty()) return;
  RemarkFacts facts{{"reason", refusal.code}};
  for (auto& fact : refusal_facts(refusal, function_)) facts.push_back(std::move(fact));
  say({.kind = RemarkKind::missed,
       .pass = "extract-kernels",
       .code = "not-tiled",
       .location = refusal.location,
       .function = function_.name,
       .message = fmt::format("the reduction is done in chunks, not tiled: {}", refusal.message),
       .facts = std::move(facts),
       .suggestion = refusal.suggestion});
}

void KernelRemarks::explain_not_streamed(const Refusal& refusal) const {
  say({.kind = RemarkKind::missed,
       .pass = "extract-kernels",
       .code = "not-streamed",
       .location = refusal.location,
       .function = function_.name,
       .message = fmt::format("the scores of an attention are written to memory: {}", refusal.message),
       .facts = {{"reason", refusal.code}},
       .suggestion = refusal.suggestion});
}

void KernelRemarks::explain(const Stm& stm, const Nest& nest) const {
  std::vector<std::string> dims;
  for (const Nest::Level& level : nest.levels) {
    for (const Poly& width : level.widths) dims.push_back(print(width, function_));
  }
  add(RemarkKind::applied, "kernel", stm, fmt::format("'{}' is a kernel", name_of(stm)),
      {{"space", fmt::format("{}", fmt::join(dims, ", "))}});
  if (!nest.stopped.empty()) {
    add(RemarkKind::missed, nest.stopped_code, stm,
        fmt::format("the nest of '{}' is not taken deeper: {}", name_of(stm), nest.stopped));
  }
  for_each_stm(*nest.body, [&](const Stm& inner) {
    const Screma* screma = get_if<Screma>(inner);
    if (screma == nullptr || (screma->map.body->results.size() == screma->reduced_count() && !screma->scans())) return;
    add(RemarkKind::analysis, "sequentialised", inner,
        fmt::format("the map that makes '{}' runs sequentially in each thread", name_of(inner)));
  });
}

void KernelRemarks::explain(const ViewCopy& copy) const {
  if (!wanted()) return;
  const std::string name = name_of(copy.at);
  if (copy.why == ViewCopy::Why::row) {
    add(RemarkKind::applied, "view-copied", copy.at,
        fmt::format("the rows of '{}' are views: their elements are copied in parallel", name));
  } else {
    add(RemarkKind::analysis, "view-copied", copy.at,
        fmt::format("'{}' joins dims that are not neighbours in memory: its elements are copied before", name));
  }
}

void KernelRemarks::explain_serial(const Stm& stm, const Scatter& op) const {
  if (!context_.remarks) return;
  const char* why = asks_for_sequential(stm)                      ? "its attribute asks for it"
                    : can_fail(*op.op->op.body, function_.values) ? "its operator can fail"
                                                                  : "its operator works on arrays";
  add(asks_for_sequential(stm) ? RemarkKind::analysis : RemarkKind::missed, "sequentialised", stm,
      fmt::format("what is written into '{}' is written by one thread: {}", name_of(stm), why),
      {{"width", print(product(op.widths), function_)}});
}

void KernelRemarks::say(const Remark& remark) const {
  if (held_ != nullptr) {
    held_->push_back(remark);
  } else {
    context_.remark(remark);
  }
}

std::string KernelRemarks::name_of(const Stm& stm) const {
  return stm.pattern.empty() ? std::string() : function_.values.name(stm.pattern.front());
}

void KernelRemarks::add(RemarkKind kind, std::string code, const Stm& at, std::string message,
                        std::vector<std::pair<std::string, std::string>> facts) const {
  say({.kind = kind,
       .pass = "extract-kernels",
       .code = std::move(code),
       .location = at.location,
       .function = function_.name,
       .message = std::move(message),
       .facts = std::move(facts)});
}

}  // namespace apl
