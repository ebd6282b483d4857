// Scans of rows that a team shares, within a warp (ir/team.h). The team goes through the row in batches:
//
//   float before = ne;
//   for (batch < batches) {
//     for (round < 4) for (next < 4) xs_s[round * 4 + next] = f(xs(((batch * 4 + round) * team + lane) * 4 + next));
//     a thread scans its neighbours in each round, the team's threads what these give, by shuffles
//     for (round < 4) {
//       ys(..) = before, what the threads before give, xs_s[..];
//       before = before, what the round gives;
//     }
//   }
//
// Rounds of a batch take each step of the shuffles together, so that these do not wait for each other.
#include "codegen/lower/neighbour_scan.h"

#include "ir/team.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

class RowScan : NeighbourScan {
 public:
  RowScan(Team& team, const Screma& op, const Stm& stm);
  void run(KernelBlock& out);

 private:
  void scan_team(KernelBlock& out);
  void write_results(KernelBlock& out);

  ExprPtr lane() const { return variable(team_.team_.lane); }
  ExprPtr shuffled(std::size_t k, const std::string& round, const ExprPtr& from) const {
    return call("apl_shuffle", {element(totals_[k], variable(round)), from});
  }
  PlaceOf place_of() const;

  std::string batch_;
  std::vector<std::string> before_;  // of each value
};

void Team::share_scan(const Screma& op, const Stm& stm, KernelBlock& out) { RowScan(*this, op, stm).run(out); }

RowScan::RowScan(Team& team, const Screma& op, const Stm& stm)
    : NeighbourScan(team, op, stm, scan_rounds(op, team.unit_.function.values)) {
  count_ = team.unit_.fresh("bound"), batch_ = team.unit_.fresh("batch"), before_ = fresh_of_each("_before");
  place_type_ = kIndex;
}

RowScan::PlaceOf RowScan::place_of() const {
  return [this](const ExprPtr& round) {
    const ExprPtr tile = infix("+", infix("*", variable(batch_), number_of(rounds_)), round);
    return infix("+", infix("<<", tile, variable(team_.team_.shift)), lane());
  };
}

void RowScan::run(KernelBlock& out) {
  if (look_back_words(op_, table_) == 1) hold_resident(4);
  const std::string batches = team_.unit_.fresh("batches");
  const ExprPtr width = team_.values_.poly(op_.widths.front());
  out.push_back(declare(kIndex, count_, select(team_.team_.has_index, width, number_of(0))));
  const ExprPtr size = infix("*", variable(team_.team_.size), number_of(rounds_ * kNeighboursAtOnce));
  out.push_back(declare(kIndex, batches, infix("/", infix("-", infix("+", width, size), number_of(1)), size), false));
  team_.uniform_in_warp(op_, batches, out);
  declare_each(
      before_, [&](std::size_t k) { return neutral(k); }, out);
  KernelBlock batch;
  read_elements(place_of(), false, batch);
  scan_team(batch);
  write_results(batch);
  out.push_back(for_loop(kIndex, batch_, variable(batches), std::move(batch)));
}

// What each round's threads up to this one give.
void RowScan::scan_team(KernelBlock& out) {
  const std::string round = team_.unit_.fresh("round"), step = team_.unit_.fresh("step");
  scan_neighbours(round, out);
  const ExprPtr reaches = infix("<=", variable(step), lane());
  const ExprPtr from = infix("-", call("apl_lane", {}), select(reaches, variable(step), number_of(0)));
  const Each total = [&](std::size_t k) { return element(totals_[k], variable(round)); };
  KernelBlock lanes;
  combine([&](std::size_t k) { return shuffled(k, round, from); }, total, total, lanes, reaches);
  Stmt steps = for_loop(kInt, step, variable(team_.team_.size), {unrolled(round, 0, rounds_, std::move(lanes))});
  steps.from = number_of(1);
  steps.step = variable(step);
  out.push_back(std::move(steps));
}

void RowScan::write_results(KernelBlock& out) {
  const std::string round = team_.unit_.fresh("round"), next = team_.unit_.fresh("next");
  const ExprPtr one = number_of(1), zero = number_of(0), is_behind = infix(">", lane(), zero);
  const ExprPtr own = call("apl_lane", {});
  const std::vector<std::string> starts = fresh_of_each("_start");
  const Each start = [&](std::size_t k) { return variable(starts[k]); };
  const Each before = [&](std::size_t k) { return variable(before_[k]); };
  KernelBlock body, each;
  declare_each(starts, before, body);
  const ExprPtr thread_before = infix("-", own, select(is_behind, one, zero));
  combine(
      start, [&](std::size_t k) { return shuffled(k, round, thread_before); }, start, body, is_behind);
  const Each here = [&](std::size_t k) {
    return element(elements_[k], infix("+", infix("*", variable(round), number_of(kNeighboursAtOnce)), variable(next)));
  };
  combine(start, here, here, each);
  body.push_back(unrolled(next, 0, kNeighboursAtOnce, std::move(each)));
  write_elements(round, place_of(), body);
  const ExprPtr last = infix("|", own, infix("-", variable(team_.team_.size), one));
  combine(
      before, [&](std::size_t k) { return shuffled(k, round, last); }, before, body);
  out.push_back(unrolled(round, 0, rounds_, std::move(body)));
}

}  // namespace apl::lower
