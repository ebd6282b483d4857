#include "passes/sparse/plan.h"

#include <fmt/format.h>

namespace apl::sparse {

std::string to_text(const Plan& plan) {
  std::string text =
      fmt::format("apl-sparse-plan 2\nmatrix {} {} {} {:016x}\noperator {}\ndense {} part {}\n", plan.rows,
                  plan.columns, plan.nonzeros, plan.hash, to_text(plan.problem.op), plan.problem.dense, plan.part);
  text += fmt::format("note {} bytes an element, device {}{}\n", plan.problem.element_bytes, plan.device,
                      plan.complete ? "" : "; the search was stopped");
  for (const auto& [name, time] : plan.measured)
    text += fmt::format("note {}: {:.2f} us {}\n", name, time / 1e3, plan.how_measured);
  for (const auto& [name, cost] : plan.considered)
    text += fmt::format("note {}: {:.2f} us by the model\n", name, cost / 1e3);
  if (plan.dense) return text + "form dense\nend\n";
  text += "form tiles\n";
  if (plan.row_order.empty()) {
    text += "order natural\n";
  } else {
    fmt::format_to(std::back_inserter(text), "order {}\n", fmt::join(plan.row_order, " "));
  }
  text += fmt::format("ell {} elements {} segments {}\ngroups {}\n", fmt::join(plan.remainder.widths, " "),
                      plan.remainder.ell_elements, plan.remainder.segment_length, plan.groups.size());
  for (std::size_t first = 0; first < plan.groups.size();) {
    const GroupPlan& group = plan.groups[first];
    std::size_t end = first;
    while (end < plan.groups.size() && plan.groups[end] == group) ++end;
    text += fmt::format("{}", end - first);
    for (const Selection& s : group.selections) text += fmt::format(" {}@{}>={}", s.height, s.window, s.threshold);
    text += group.remainder == Remainder::ell ? " ell\n" : " segments\n";
    first = end;
  }
  return text + "end\n";
}

}  // namespace apl::sparse
