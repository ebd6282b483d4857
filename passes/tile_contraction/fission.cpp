// A kernel that holds a contraction among other things becomes several, or one that says it plainly:
//
//   if c { sum } else { y }, c known outside   =>   a kernel for each outcome, in a branch on the host
//   if c { sum } else { y }, else              =>   sum for all indices; if c { sum } else { y } as epilogue
//   two sums over one width of one array       =>   one reduction with two operators
//   other sums in one thread, or an epilogue   =>   a kernel for each contraction, whose result the next one reads
//   that a tiled kernel cannot do
//
// Only what makes a contraction is done: what cannot be tiled stays as it is.
#include "passes/tile_contraction/fission.h"

#include <range/v3/view/zip.hpp>

#include <algorithm>

#include "ir/attributes.h"
#include "ir/builder.h"
#include "ir/sparse_soa.h"
#include "ir/walk.h"
#include "passes/analysis/contractions.h"

namespace apl::tile {
namespace {

bool is_contraction(const Stm& kernel, const ValueTable& values) {
  ValueTable scratch = values;
  const auto match = match_alone(kernel, scratch);
  return match && std::holds_alternative<Contraction>(*match);
}

class Fission {
 public:
  explicit Fission(ValueTable& values) : values_(values) {}

  // What to put in place of the kernel; nullopt: leave it.
  std::optional<std::vector<Stm>> run(const Stm& kernel) {
    if (!is_candidate(kernel) || is_contraction(kernel, values_)) return std::nullopt;
    if (auto outside = branch_outside(kernel)) return outside;
    const SegOp& op = std::get<SegOp>(kernel.op);
    Stm lifted = kernel;
    std::vector<Stm> stms = op.body->stms;
    const std::size_t before = steps_.size();
    if (lift_reductions(op, stms, values_)) {
      steps_.emplace_back("a reduction in a branch is computed for all indices, and the branch chooses afterwards");
      std::get<SegOp>(lifted.op).body = make_body(stms, op.body->results);
      if (is_contraction(lifted, values_)) return std::vector{lifted};
    }
    const std::vector<Stm> apart = stms;
    const ValueTable saved = values_;
    if (merge_reductions(stms, values_)) {
      Stm merged = kernel;
      std::get<SegOp>(merged.op).body = make_body(std::move(stms), op.body->results);
      if (is_contraction(merged, values_)) {
        steps_.emplace_back("reductions over one width that read one array are one");
        return std::vector{merged};
      }
      values_ = saved;
    }
    steps_.resize(before);
    return split(kernel, apart);
  }

  std::vector<std::string> take_steps() { return std::move(steps_); }

  std::vector<Refusal> refuse(const Stm& kernel) {
    const SegOp& op = std::get<SegOp>(kernel.op);
    std::vector<Stm> stms = op.body->stms;
    lift_reductions(op, stms, values_);
    std::vector<Refusal> refusals;
    for (const Stm& stm : stms) {
      if (!is_plain_reduction(stm)) continue;
      const auto match = match_alone(alone(kernel, stms, stm), values_);
      if (match && std::holds_alternative<Refusal>(*match)) refusals.push_back(std::get<Refusal>(*match));
    }
    return refusals;
  }

 private:
  static bool is_candidate(const Stm& stm) {
    const SegOp* kernel = get_if<SegOp>(stm);
    if (kernel == nullptr || kernel->level != SegLevel::thread || kernel->space.empty()) return false;
    const bool kept = std::any_of(stm.attributes.begin(), stm.attributes.end(), [](const Attribute& a) {
      return a.name == attribute::chunks.name || a.name == attribute::sparse_product.name ||
             a.name == attribute::untiled.name || a.name == attribute::no_tiling.name;
    });
    return !kept && holds_reduction(*kernel->body);
  }

  // What stands in place of a kernel after another step.
  std::vector<Stm> further(Stm kernel) {
    if (auto isolated = run(kernel)) return *std::move(isolated);
    return {std::move(kernel)};
  }

  bool any_contraction(const std::vector<Stm>& stms) const {
    return std::any_of(stms.begin(), stms.end(), [&](const Stm& stm) {
      bool inside = false;
      if (get_if<If>(stm))
        for_each_body(stm.op, [&](const BodyPtr& body) { inside = inside || any_contraction(body->stms); });
      return inside || is_contraction(stm, values_);
    });
  }

  // ---- branches that all threads take alike

  std::optional<std::vector<Stm>> branch_outside(const Stm& kernel) {
    const SegOp& op = std::get<SegOp>(kernel.op);
    for (std::size_t k = 0; k < op.body->stms.size(); ++k) {
      const If* branch = get_if<If>(op.body->stms[k]);
      if (branch == nullptr || !branch->condition.is_value()) continue;
      if (!holds_reduction(*branch->then_body) && !holds_reduction(*branch->else_body)) continue;
      const Value condition = branch->condition.value();
      bool local = false;
      for_each_stm(*op.body, [&](const Stm& s) {
        local = local || std::find(s.pattern.begin(), s.pattern.end(), condition) != s.pattern.end();
      });
      if (local || !op.body->stms[k].certificates.empty()) continue;
      const std::size_t before = steps_.size();
      If outside{branch->condition, {}, {}};
      bool contracts = false;
      for (BodyPtr* body : {&outside.then_body, &outside.else_body}) {
        std::vector<Stm> stms = further(with_branch(kernel, k, body == &outside.then_body));
        contracts = contracts || any_contraction(stms);
        const std::vector<Value>& pattern = stms.back().pattern;
        std::vector<Operand> results(pattern.begin(), pattern.end());
        *body = make_body(std::move(stms), std::move(results));
      }
      if (!contracts) {
        steps_.resize(before);
        continue;
      }
      steps_.emplace_back("a branch that is the same for all threads has a kernel for each outcome");
      return std::vector{Stm{.pattern = kernel.pattern, .op = std::move(outside), .location = kernel.location}};
    }
    return std::nullopt;
  }

  // A copy of the kernel in which statement `at`, a branch, is one of its bodies.
  Stm with_branch(const Stm& kernel, std::size_t at, bool condition) {
    const SegOp& op = std::get<SegOp>(kernel.op);
    std::vector<Stm> stms(op.body->stms.begin(), op.body->stms.begin() + static_cast<std::ptrdiff_t>(at));
    const Stm& branch = op.body->stms[at];
    const Body& taken = *(condition ? std::get<If>(branch.op).then_body : std::get<If>(branch.op).else_body);
    stms.insert(stms.end(), taken.stms.begin(), taken.stms.end());
    for (const auto& [made, result] : ranges::views::zip(branch.pattern, taken.results))
      stms.push_back({.pattern = {made}, .op = Use{result}, .location = branch.location});
    stms.insert(stms.end(), op.body->stms.begin() + static_cast<std::ptrdiff_t>(at) + 1, op.body->stms.end());
    return copy_of(kernel, stms, op.body->results, kernel.pattern);
  }

  // A kernel over the same space with a body of fresh values; results are called after those of `names`.
  Stm copy_of(const Stm& kernel, const std::vector<Stm>& stms, const std::vector<Operand>& results,
              const std::vector<Value>& names) {
    const SegOp& old = std::get<SegOp>(kernel.op);
    SegOp op{.level = old.level, .space = old.space};
    Substitution renaming;
    std::vector<Poly> shape;
    for (SegDim& dim : op.space) {
      const Value fresh = values_.add(values_.type(dim.index), values_.name(dim.index));
      renaming.insert_or_assign(dim.index, Operand(fresh));
      dim.index = fresh;
      shape.push_back(dim.bound);
    }
    op.body = copy_fresh(make_body(stms, results), renaming, values_, values_);
    op.results.assign(results.size(), {KernelResult::Kind::returns, {}});
    Stm made = kernel;
    made.pattern.clear();
    for (std::size_t k = 0; k < results.size(); ++k)
      made.pattern.push_back(values_.add(values_.type(op.body->results[k]).array_of(shape), values_.name(names[k])));
    made.op = std::move(op);
    return made;
  }

  // ---- a kernel for a contraction, and one for what is left

  // `lifted`: the kernel's statements, with reductions that branches may do without.
  std::optional<std::vector<Stm>> split(const Stm& kernel, const std::vector<Stm>& lifted) {
    for (const Stm& stm : lifted) {
      if (!is_plain_reduction(stm)) continue;
      std::vector<Stm> made{alone(kernel, lifted, stm)};
      if (!is_contraction(made.front(), values_)) continue;
      steps_.emplace_back("a contraction among other code of a kernel has a kernel of its own");
      for (Stm& remainder : further(without(kernel, stm, made.front().pattern))) made.push_back(std::move(remainder));
      return made;
    }
    return std::nullopt;
  }

  // A kernel that does `reduction`, one of `stms`, and nothing else.
  Stm alone(const Stm& kernel, const std::vector<Stm>& stms, const Stm& reduction) {
    std::vector<Stm> needed;
    for (const Stm* stm : needed_stms(stms, {reduction.pattern.begin(), reduction.pattern.end()}, values_))
      needed.push_back(*stm);
    return copy_of(kernel, needed, {reduction.pattern.begin(), reduction.pattern.end()}, reduction.pattern);
  }

  // The kernel in which the results of `reduction` are read from arrays.
  Stm without(const Stm& kernel, const Stm& reduction, const std::vector<Value>& arrays) {
    const SegOp& op = std::get<SegOp>(kernel.op);
    std::vector<DimIndex> here;
    for (const SegDim& dim : op.space) here.push_back(DimIndex::fix(Poly(dim.index)));
    std::vector<Stm> reads;
    for (const auto& [made, array] : ranges::views::zip(reduction.pattern, arrays))
      reads.push_back({.pattern = {made}, .op = Index{array, here}, .location = reduction.location});
    const BodyPtr body = replaced(op.body, reduction.pattern, reads);
    std::set<Value> roots;
    for (const Operand& result : body->results)
      if (result.is_value()) roots.insert(result.value());
    // Checks are made whether or not anybody relies on them.
    for (const Stm& stm : body->stms)
      if (can_fail(stm.op, values_)) roots.insert(stm.pattern.begin(), stm.pattern.end());
    std::vector<Stm> stms;
    for (const Stm* stm : needed_stms(body->stms, std::move(roots), values_)) stms.push_back(*stm);
    Stm remainder = kernel;
    std::get<SegOp>(remainder.op).body = make_body(std::move(stms), body->results);
    return remainder;
  }

  // The body with `reads` in place of the statement of that pattern, which may be in a branch.
  static BodyPtr replaced(const BodyPtr& body, const std::vector<Value>& pattern, const std::vector<Stm>& reads) {
    std::vector<Stm> stms;
    for (const Stm& stm : body->stms) {
      if (stm.pattern == pattern) {
        stms.insert(stms.end(), reads.begin(), reads.end());
        continue;
      }
      stms.push_back(stm);
      if (get_if<If>(stm))
        stms.back().op = map_bodies(stm.op, [&](const BodyPtr& inner) { return replaced(inner, pattern, reads); });
    }
    return make_body(std::move(stms), body->results);
  }

  ValueTable& values_;
  std::vector<std::string> steps_;
};

}  // namespace

std::optional<Isolated> isolate_contractions(const Stm& kernel, ValueTable& values) {
  Fission exposer(values);
  auto stms = exposer.run(kernel);
  if (!stms) return std::nullopt;
  return Isolated{*std::move(stms), exposer.take_steps()};
}

std::vector<std::pair<Refusal, RemarkFacts>> refuse_parts(const Stm& kernel, const Function& function) {
  Function scratch = function;
  std::vector<std::pair<Refusal, RemarkFacts>> refusals;
  for (Refusal& refusal : Fission(scratch.values).refuse(kernel)) {
    RemarkFacts facts = refusal_facts(refusal, scratch);
    refusals.emplace_back(std::move(refusal), std::move(facts));
  }
  return refusals;
}

}  // namespace apl::tile
