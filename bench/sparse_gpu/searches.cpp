// Plans: those of searches, of searches that run their candidates, and of searches that leave something out.
#include <fmt/format.h>

#include <array>

#include "bench/sparse_gpu/bench.h"
#include "passes/sparse/search.h"

namespace apl::bench {

PlanPointer parse_plan(const sparse::Plan& plan) {
  const std::string text = to_text(plan);
  apl_sparse_plan* parsed = nullptr;
  std::array<char, 200> message{};
  if (apl_sparse_plan_parse(text.data(), text.size(), &parsed, message.data(), message.size()) != APL_SPARSE_FINE)
    give_up(message.data());
  return PlanPointer(parsed);
}

sparse::Plan search_by(const sparse::Csr& matrix, sparse::Operator op, std::int64_t width, std::int64_t bytes,
                       const std::function<double(const apl_sparse_plan&)>& time) {
  sparse::SearchOptions options;
  options.problem = {op, width, bytes};
  options.as_run = true;
  options.measure = [&](const sparse::Plan& plan) { return plan.dense ? 0 : 1e3 * time(*parse_plan(plan)); };
  return sparse::search(matrix, *sparse::builtin_profile("h200"), options);
}

// Tables 6 and 7 and figure 12 by running: searches by the cost of tiles alone that leave out withdrawing, local
// search, levels, formats or reordering.
void Bench::study(const Case& a, std::int64_t width, Line& line,
                  const std::function<double(const apl_sparse_plan&)>& run) const {
  struct Study {
    const char* name;
    sparse::GreedyOptions greedy;
    sparse::CoverFormats formats;
    bool reorder;
  };
  const Study studies[] = {{"all", {1.2, true, 0}, {true, true, true}, true},
                           {"rows as they are", {1.2, true, 0}, {true, true, true}, false},
                           {"without withdrawing", {1.2, false, 0}, {true, true, true}, true},
                           {"without local search", {1, true, 0}, {true, true, true}, true},
                           {"levels 1", {1.2, true, 1}, {true, true, true}, true},
                           {"levels 2", {1.2, true, 2}, {true, true, true}, true},
                           {"levels 10", {1.2, true, 10}, {true, true, true}, true},
                           {"blocks alone", {1.2, true, 0}, {true, false, false}, true},
                           {"ELL rows alone", {1.2, true, 0}, {false, true, false}, true},
                           {"nnz segments alone", {1.2, true, 0}, {false, false, true}, true}};
  for (const Study& each : studies) {
    sparse::SearchOptions options;
    options.problem = {sparse::Operator::spmm, width, gpu_.element()};
    options.greedy = each.greedy;
    options.formats = each.formats;
    options.reorder = each.reorder;
    sparse::Plan plan = sparse::search(a.matrix, *sparse::builtin_profile("h200"), options);
    if (plan.dense) continue;  // they say nothing of tiles
    const double time = run(*parse_plan(plan));
    line.studies[each.name] = {{"us", time}, {"cost_us", plan.cost / 1e3}, {"seconds", plan.seconds}};
    fmt::print("    {:9.2f} us, {:.2f} by the cost of its tiles  {}, rows {}\n", time, plan.cost / 1e3, each.name,
               plan.order);
  }
}

void Bench::take_plan(Line& line, const sparse::Plan& plan) {
  for (const auto& [name, nanoseconds] : plan.measured) fmt::print("    {:9.2f} us  {}\n", nanoseconds / 1e3, name);
  if (plan.measured.empty()) return;
  for (const auto& [name, nanoseconds] : plan.measured) line.measured[name] = nanoseconds / 1e3;
  line.plan = plan.measured.front().first;
  line.planned = plan.measured.front().second / 1e3;
}

}  // namespace apl::bench
