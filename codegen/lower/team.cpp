// Kernels whose threads share reductions in teams (ir/team.h), on GPUs. A block has kMostTeam threads, a team so many
// neighbours of them that divide it:
//
//   const int lane = apl_thread() & (team - 1);         // this thread of its team
//   float s = 0.0f;
//   for (round < (n - lane + team - 1) / team) s += xs(i * n + lane + round * team);
//   for (step = 1; step < min(team, warp); step *= 2) s += apl_shuffle_xor(s, step);
//   if (team > warp) { s_s(warp of this thread) = s; apl_barrier(); s = the sum of those of the team's warps; }
//   if (lane == 0) r(i) = s;
//
// Each thread has the team's result then, so that code after the reduction is that of a thread. Where operators do not
// commute a thread folds neighbouring elements of a tile, and of two threads the one with the smaller number comes
// first. Threads beyond the last index do the last one's work once more, and store nothing: all lanes of a warp come to
// each shuffle, and all threads to the barrier. A check that fails leaves the loop alone, for the same reason.
#include <algorithm>

#include "codegen/lower/team.h"

#include "ir/stray.h"
#include "ir/team.h"
#include "ir/walk.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

namespace {

// The accumulators of a reduction of scalars with what they start with.
std::vector<std::pair<Value, Operand>> neutral_elements(const Screma& op, const Stm& stm) {
  std::vector<std::pair<Value, Operand>> result;
  for (const ReduceOp& reduce : op.reduces)
    for (const Operand& neutral : reduce.neutral) result.emplace_back(stm.pattern[result.size()], neutral);
  return result;
}

}  // namespace

bool has_loops(const Body& body) {
  bool found = false;
  for_each_stm(body, [&](const Stm& stm) { found = found || get_if<Loop>(stm) || get_if<Screma>(stm); });
  return found;
}

void Team::run_team(const SegOp& op) {
  KernelBlock& out = function_.body;
  threads_ = kMostTeam;
  team_ = {op.rows ? nullptr : team_reduction(op),
           unit_.fresh("team"),
           unit_.fresh("shift"),
           unit_.fresh("lane"),
           nullptr,
           op.rows ? unit_.fresh("width") : "",
           "",
           "",
           "",
           "",
           "",
           "",
           ""};
  const ExprPtr team = variable(team_.size), shift = variable(team_.shift), lane = variable(team_.lane);
  std::vector<std::string> names;
  std::vector<ExprPtr> sizes;
  ExprPtr count = number_of(1);
  for (const SegDim& dim : op.space) {
    names.push_back(unit_.name(dim.index));
    sizes.push_back(values_.poly(dim.bound));
    count = mul(count, sizes.back());
  }
  const ExprPtr thread = call("apl_thread", {});
  const std::string own = unit_.fresh("own"), flat = unit_.fresh("index");
  const bool scans = !op.rows && std::get<Screma>(team_.reduction->op).scans();
  ExprPtr threads = cast(kInt, values_.poly(*op.team));
  if (scans && !op.blocks) threads = call("apl_index_min", {threads, number_of(unit_.target.warp)});
  if (op.blocks) {
    team_.blocks = unit_.fresh("blocks");
    out.push_back(declare(kInt, team_.blocks, cast(kInt, values_.poly(*op.blocks))));
    threads = select(infix(">", variable(team_.blocks), number_of(1)), number_of(threads_), threads);
  }
  out.push_back(declare(kInt, team_.size, threads));
  out.push_back(declare(kInt, team_.shift, call("apl_ones", {infix("-", team, number_of(1))})));
  out.push_back(declare(kInt, team_.lane, infix("&", thread, infix("-", team, number_of(1)))));
  ExprPtr block = call("apl_block", {});
  if (op.blocks) {
    // A scan's blocks take their tiles in the order in which they come.
    team_.part = unit_.fresh("part");
    out.push_back(declare(kInt, team_.part, cast(kInt, infix("%", block, variable(team_.blocks)))));
    block = number(count) == 1 ? number_of(0) : infix("/", block, variable(team_.blocks));
  }
  out.push_back(declare(
      kIndex, own, infix("+", infix("*", block, infix(">>", number_of(threads_), shift)), infix(">>", thread, shift))));
  team_.index = own;
  if (number(count) != 1)
    out.push_back(declare(kIndex, flat,
                          select(infix("<", variable(own), count), variable(own), infix("-", count, number_of(1)))));
  team_.has_index = infix("<", variable(own), count);
  const std::vector<ExprPtr> indices = unflatten(flat, sizes, names, kIndex, out);
  for (std::size_t k = 0; k < indices.size(); ++k) values_.scalars[op.space[k].index] = indices[k];
  if (op.rows) out.push_back(declare(kInt, team_.width, cast(kInt, values_.poly(row_width(op)))));
  if (op.rows && keeps_no_order(op)) {
    team_.each = unit_.fresh("each"), team_.apart = unit_.fresh("apart");
    const ExprPtr many = number_of(kNeighboursAtOnce), one = number_of(1);
    const ExprPtr whole = infix("==", infix("%", variable(team_.width), many), number_of(0));
    out.push_back(declare(kInt, team_.each, select(whole, many, one)));
    out.push_back(declare(kInt, team_.apart, select(whole, one, team)));
  }
  const bool looks_back = scans && op.blocks;
  if (looks_back) {
    // What stands behind the scan is done with its elements.
    for (const Stm& stm : op.body->stms) {
      statement(stm, out);
      if (&stm == team_.reduction) break;
    }
  } else {
    body(*op.body, out);
  }
  if (op.rows) write_held_rows(op, indices, out);
  KernelBlock write;
  for (std::size_t k = 0; k < stm_.pattern.size(); ++k)
    if (const bool is_scalar = unit_.function.values.type(op.body->results[k]).is_scalar();
        looks_back ? !is_scalar : !op.rows || is_scalar)
      store(stm_.pattern[k], indices, op.body->results[k], stm_.location, write);
  if (write.empty()) return;  // rows that were made where they are
  if (scans) unsupported(stm_.location, "rows of a scan that several threads make elsewhere");
  out.push_back(kernel::branch(infix("&&", infix("==", lane, number_of(0)), team_.has_index), std::move(write)));
}

void Team::share(const Screma& op, const Stm& stm, KernelBlock& out) {
  if (holds_rows()) return share_row(op, stm, out);
  if (op.scans()) return team_.blocks.empty() ? share_scan(op, stm, out) : look_back(op, stm, out);
  if (!team_.blocks.empty()) part_of_block(values_.poly(op.widths.front()), out);
  const std::vector<Value>& accumulators = stm.pattern;
  for (const auto& [acc, neutral] : neutral_elements(op, stm))
    out.push_back(declare({unit_.function.type(acc).element, false}, unit_.name(acc), values_.operand(neutral), false));
  if (folds_in_any_order(op)) {
    share_in_rounds(op, stm, out);
    fold_warp(op, accumulators, true, out);
  } else {
    share_in_tiles(op, stm, out);
  }
  fold_warps(op, accumulators, out);
  if (!team_.blocks.empty()) fold_blocks(op, accumulators, out);
}

// The element at index `at` is folded into the accumulators.
KernelBlock Team::fold_element(const Screma& op, const Stm& stm, const ExprPtr& at) {
  KernelBlock out;
  out.push_back(declare(kIndex, unit_.name(op.indices.front()), at));
  stream(op.inputs, op.map.params, op.indices, stm.location, out);
  body(*op.map.body, out);
  std::ptrdiff_t from = 0;
  for (const ReduceOp& reduce : op.reduces) {
    const auto n = static_cast<std::ptrdiff_t>(reduce.neutral.size());
    const auto& results = op.map.body->results;
    fold(reduce, {stm.pattern.begin() + from, stm.pattern.begin() + from + n},
         {results.begin() + from, results.begin() + from + n}, stm.location, out);
    from += n;
  }
  return out;
}

// The elements at some indices, which `at` gives by the variable `next`: all are read before the first is folded, so
// that no load waits for a branch of the operator.
KernelBlock Team::fold_at_once(const Screma& op, const Stm& stm, const std::string& next, const ExprPtr& at) {
  const auto loop = [&](KernelBlock block) {
    Stmt result = for_loop(kInt, next, number_of(kRoundsAtOnce), std::move(block));
    result.unroll = true;
    return result;
  };
  std::map<Value, std::string> elements;
  KernelBlock out, read, folded;
  for (const Value acc : stm.pattern) {
    elements[acc] = unit_.fresh(unit_.function.values.name(acc) + "_read");
    out.push_back(declare_array({unit_.function.type(acc).element, false}, elements[acc], kRoundsAtOnce));
  }
  const auto read_of = [&](Value acc) { return element(elements.at(acc), variable(next)); };
  read.push_back(declare(kIndex, unit_.name(op.indices.front()), at));
  stream(op.inputs, op.map.params, op.indices, stm.location, read);
  body(*op.map.body, read);
  for (std::size_t k = 0; k < stm.pattern.size(); ++k)
    read.push_back(assign(read_of(stm.pattern[k]), values_.operand(op.map.body->results[k])));
  out.push_back(loop(std::move(read)));
  fold_with(op, stm.pattern, nullptr, read_of, folded);
  out.push_back(loop(std::move(folded)));
  return out;
}

// A check that fails in `work` ends that alone. Nothing is done behind one that failed in another kernel, where this
// one may stray.
void Team::append_fallible(const Screma& op, KernelBlock work, KernelBlock& out) {
  if (!apl::can_fail(*op.map.body, unit_.function.values)) {
    out.insert(out.end(), work.begin(), work.end());
    return;
  }
  Stmt scope = scope_of(std::move(work));
  if (unit_.may_stray_behind() && may_stray(stm_.op, unit_.function.values)) {
    Stmt leave;
    leave.kind = Stmt::Kind::leave;
    scope.body.insert(scope.body.begin(), kernel::branch(call("apl_has_failed", {variable("failed")}), {leave}));
  }
  out.push_back(std::move(scope));
}

// In any order neighbouring threads fold neighbouring elements in each round.
void Team::share_in_rounds(const Screma& op, const Stm& stm, KernelBlock& out) {
  const ExprPtr team = variable(team_.size), shift = variable(team_.shift), lane = variable(team_.lane);
  const std::string bound = unit_.fresh("bound"), rounds = unit_.fresh("rounds"), round = unit_.fresh("round");
  out.push_back(declare(kIndex, bound, team_.count.empty() ? values_.poly(op.widths.front()) : variable(team_.count)));
  const ExprPtr left = infix("-", variable(bound), lane), above = infix("-", team, number_of(1));
  out.push_back(declare(kIndex, rounds, infix(">>", infix("+", left, above), shift)));
  const auto at = [&](const ExprPtr& number) {
    const ExprPtr here = infix("+", infix("<<", number, shift), lane);
    return team_.first.empty() ? here : infix("+", variable(team_.first), here);
  };
  Stmt last = for_loop(kIndex, round, variable(rounds), fold_element(op, stm, at(variable(round))));
  KernelBlock work;
  if (!has_loops(*op.map.body)) {
    // A number of rounds at once, then half as many, so that loads of short rows are not waited for one by one.
    const std::string from = unit_.fresh("from"), next = unit_.fresh("next");
    KernelBlock at_once = fold_at_once(op, stm, next, at(infix("+", variable(from), variable(next))));
    Stmt many = for_loop(kIndex, from, infix("-", variable(rounds), number_of(kRoundsAtOnce - 1)), std::move(at_once));
    many.step = number_of(kRoundsAtOnce);
    work.push_back(std::move(many));
    last.from = infix("-", variable(rounds), infix("%", variable(rounds), number_of(kRoundsAtOnce)));
    last.unroll = true;
    last.unroll_by = kRoundsAtOnce / 2;
  }
  work.push_back(std::move(last));
  const std::vector<WideRead> reads = has_loops(*op.map.body) ? std::vector<WideRead>{} : wide_reads(op, stm);
  if (const ExprPtr can = can_read_wide(reads)) {
    KernelBlock vectors = share_in_vectors(op, stm, reads, variable(bound));
    work = {kernel::branch(can, std::move(vectors), std::move(work))};
  }
  append_fallible(op, std::move(work), out);
}

// In order each warp of the team has a part. It goes through that in tiles, of which each thread folds neighbours; what
// a tile gives is the same for all threads of the warp, and is folded behind what the tiles before gave.
void Team::share_in_tiles(const Screma& op, const Stm& stm, KernelBlock& out) {
  const ExprPtr team = variable(team_.size), lane = variable(team_.lane), one = number_of(1);
  const ExprPtr warp = number_of(unit_.target.warp), each = number_of(kRoundsAtOnce);
  const std::string width = unit_.fresh("width"), parts = unit_.fresh("parts"), bound = unit_.fresh("bound"),
                    part = unit_.fresh("part"), begin = unit_.fresh("begin"), end = unit_.fresh("end"),
                    size = unit_.fresh("size"), tiles = unit_.fresh("tiles"), tile = unit_.fresh("tile"),
                    from = unit_.fresh("from"), count = unit_.fresh("count"), next = unit_.fresh("next");
  const auto by = [&](const ExprPtr& x, const std::string& power) {  // rounded up; x + power > 0
    const ExprPtr above = infix("-", variable(power), one);
    return infix(">>", infix("+", x, above), call("apl_ones", {above}));
  };
  const auto declare_size = [&](const std::string& name, ExprPtr value) {
    out.push_back(declare(kIndex, name, value));
  };
  out.push_back(declare(kInt, width, select(infix("<", team, warp), team, warp)));
  out.push_back(declare(kInt, parts, infix("/", team, variable(width))));
  declare_size(bound, team_.count.empty() ? values_.poly(op.widths.front()) : variable(team_.count));
  declare_size(part, by(variable(bound), parts));
  declare_size(begin, infix("*", infix("/", lane, variable(width)), variable(part)));
  declare_size(end, call("apl_index_min", {infix("+", variable(begin), variable(part)), variable(bound)}));
  out.push_back(declare(kInt, size, infix("*", variable(width), each)));
  out.push_back(declare(kIndex, tiles, by(infix("-", variable(end), variable(begin)), size), false));
  uniform_in_warp(op, tiles, out);
  std::map<Value, std::string> totals;
  for (const auto& [acc, neutral] : neutral_elements(op, stm)) {
    totals[acc] = unit_.fresh("total");
    out.push_back(declare({unit_.function.type(acc).element, false}, totals[acc], values_.operand(neutral), false));
  }
  KernelBlock in_tile;
  const ExprPtr first = infix("+", variable(begin), infix("*", variable(tile), variable(size)));
  const auto at = [&](const ExprPtr& here) {
    return team_.first.empty() ? here : infix("+", variable(team_.first), here);
  };
  const ExprPtr own = infix("*", infix("&", lane, infix("-", variable(width), one)), each);
  in_tile.push_back(declare(kIndex, from, infix("+", first, own)));
  in_tile.push_back(declare(kIndex, count, call("apl_index_min", {infix("-", variable(end), variable(from)), each})));
  for (const auto& [acc, neutral] : neutral_elements(op, stm))
    in_tile.push_back(assign(variable(unit_.name(acc)), values_.operand(neutral)));
  KernelBlock work{
      for_loop(kInt, next, variable(count), fold_element(op, stm, at(infix("+", variable(from), variable(next)))))};
  if (!has_loops(*op.map.body)) {
    KernelBlock whole = fold_at_once(op, stm, next, at(infix("+", variable(from), variable(next))));
    work = {kernel::branch(infix("==", variable(count), each), std::move(whole), std::move(work))};
  }
  append_fallible(op, std::move(work), in_tile);
  fold_warp(op, stm.pattern, false, in_tile);
  fold_with(
      op, stm.pattern, one, [&](Value acc) { return variable(totals.at(acc)); }, in_tile);
  for (const auto& [acc, total] : totals) in_tile.push_back(assign(variable(total), variable(unit_.name(acc))));
  out.push_back(for_loop(kIndex, tile, variable(tiles), std::move(in_tile)));
  for (const auto& [acc, total] : totals) out.push_back(assign(variable(unit_.name(acc)), variable(total)));
}

// All threads of a warp go through as many tiles, since all come to each shuffle: those of several teams may have
// different numbers of elements.
void Team::uniform_in_warp(const Screma& op, const std::string& number, KernelBlock& out) {
  bool varies = false;
  op.widths.front().for_each_symbol([&](Value v) { varies = varies || !outside_.contains(v); });
  if (!varies) return;
  const std::string step = unit_.fresh("step");
  const ExprPtr other = call("apl_shuffle_xor", {variable(number), variable(step)});
  Stmt lanes = for_loop(kInt, step, number_of(unit_.target.warp),
                        {assign(variable(number), call("apl_index_max", {variable(number), other}))});
  lanes.from = number_of(1);
  lanes.step = variable(step);
  out.push_back(std::move(lanes));
}

// What `take` gives for each accumulator is folded into it, if `where` holds: behind it, or before it where `before`
// holds.
void Team::fold_with(const Screma& op, const std::vector<Value>& accumulators, const ExprPtr& before,
                     const std::function<ExprPtr(Value)>& take, KernelBlock& out, const ExprPtr& where) {
  const auto type_of = [&](Value acc) { return CType{unit_.function.type(acc).element, false}; };
  std::vector<std::string> others;
  for (const Value acc : accumulators) {
    others.push_back(unit_.fresh("other"));
    out.push_back(declare(type_of(acc), others.back(), take(acc)));
  }
  std::size_t first = 0;
  std::vector<ExprPtr> made;
  for (const ReduceOp& reduce : op.reduces) {
    std::vector<ExprPtr> left, right;
    for (std::size_t k = first; k < first + reduce.neutral.size(); ++k) {
      const ExprPtr own = variable(unit_.name(accumulators[k])), other = variable(others[k]);
      if (!before || number(before)) {
        left.push_back(before ? other : own), right.push_back(before ? own : other);
        continue;
      }
      const std::string l = unit_.fresh("left"), r = unit_.fresh("right");
      out.push_back(declare(type_of(accumulators[k]), l, select(before, other, own)));
      out.push_back(declare(type_of(accumulators[k]), r, select(before, own, other)));
      left.push_back(variable(l)), right.push_back(variable(r));
    }
    left.insert(left.end(), right.begin(), right.end());
    for (const ExprPtr& result : inline_lambda(reduce.op, left, out)) {
      const std::string name = unit_.fresh("next");
      out.push_back(declare(type_of(accumulators[made.size()]), name, result));
      made.push_back(variable(name));
    }
    first += reduce.neutral.size();
  }
  for (std::size_t k = 0; k < made.size(); ++k) {
    const ExprPtr own = variable(unit_.name(accumulators[k]));
    out.push_back(assign(own, where ? select(where, made[k], own) : made[k]));
  }
}

// Threads of a warp that are of one team: each ends with what they have together.
void Team::fold_warp(const Screma& op, const std::vector<Value>& accumulators, bool in_any_order, KernelBlock& out) {
  const ExprPtr team = variable(team_.size), lane = variable(team_.lane);
  const std::int64_t warp = unit_.target.warp;
  const std::string step = unit_.fresh("step");
  KernelBlock shuffled;
  const ExprPtr upper = in_any_order ? nullptr : infix("!=", infix("&", lane, variable(step)), number_of(0));
  fold_with(
      op, accumulators, upper,
      [&](Value acc) {
        return call("apl_shuffle_xor", {variable(unit_.name(acc)), variable(step)});
      },
      shuffled);
  Stmt lanes =
      for_loop(kInt, step, select(infix("<", team, number_of(warp)), team, number_of(warp)), std::move(shuffled));
  lanes.from = number_of(1);
  lanes.step = variable(step);
  out.push_back(std::move(lanes));
}

// The warps of a team, in shared memory: each thread ends with the team's result.
void Team::fold_warps(const Screma& op, const std::vector<Value>& accumulators, KernelBlock& out) {
  const ExprPtr team = variable(team_.size), lane = variable(team_.lane);
  const std::int64_t warp = unit_.target.warp;
  KernelBlock wide;
  std::vector<std::string> shared;
  for (const Value acc : accumulators) {
    shared.push_back(unit_.fresh(unit_.function.values.name(acc) + "_s"));
    out.push_back(shared_array(shared.back(), {unit_.function.type(acc).element, false}, threads_ / warp));
  }
  const std::string own = unit_.fresh("warp"), first = unit_.fresh("first"), other = unit_.fresh("warp");
  const ExprPtr thread = call("apl_thread", {});
  wide.push_back(declare(kInt, own, infix("/", thread, number_of(warp))));
  wide.push_back(declare(kInt, first, infix("/", infix("-", thread, lane), number_of(warp))));
  const auto of_warp = [&](std::size_t k, const std::string& at) { return element(shared[k], variable(at)); };
  KernelBlock leads;
  for (std::size_t k = 0; k < accumulators.size(); ++k)
    leads.push_back(assign(of_warp(k, own), variable(unit_.name(accumulators[k]))));
  wide.push_back(kernel::branch(infix("==", infix("%", thread, number_of(warp)), number_of(0)), std::move(leads)));
  wide.push_back(barrier());
  for (std::size_t k = 0; k < accumulators.size(); ++k)
    wide.push_back(assign(variable(unit_.name(accumulators[k])), of_warp(k, first)));
  KernelBlock each;
  std::size_t next = 0;
  fold_with(
      op, accumulators, nullptr, [&](Value) { return of_warp(next++, other); }, each);
  Stmt warps = for_loop(kInt, other, infix("+", variable(first), infix("/", team, number_of(warp))), std::move(each));
  warps.from = infix("+", variable(first), number_of(1));
  wide.push_back(std::move(warps));
  out.push_back(kernel::branch(infix(">", team, number_of(warp)), std::move(wide)));
}

}  // namespace apl::lower
