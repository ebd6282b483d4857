#include "codegen/contraction/epilogue_split.h"

#include <algorithm>

#include "codegen/lower/lower.h"
#include "ir/schedule.h"
#include "ir/walk.h"

namespace apl::lower {

namespace {

// Those of the body that follow from these.
std::set<Value> following(const Body& body, std::set<Value> from, const ValueTable& values) {
  for (const Stm& stm : body.stms)
    if (std::ranges::any_of(free_values(stm.op, values), [&](Value v) { return from.contains(v); }))
      from.insert(stm.pattern.begin(), stm.pattern.end());
  return from;
}

bool meets(const std::set<Value>& a, const std::set<Value>& b) {
  return std::ranges::any_of(a, [&](Value v) { return b.contains(v); });
}

class EpilogueSplit {
 public:
  EpilogueSplit(const Lambda& map, const std::array<std::set<Value>, 2>& indices, const std::array<Poly, 2>& sizes,
                bool all_inside, const ValueTable& values)
      : map_(map), body_(*map.body), sizes_(sizes), all_inside_(all_inside), values_(values) {
    for (std::size_t s = 0; s < 2; ++s) {
      std::set<Value> from = indices[s];
      from.insert(map.params.begin(), map.params.end());
      along_[s] = following(body_, std::move(from), values);
    }
  }

  Epilogue run() {
    Epilogue made{map_, {}};
    // The branch of elements that are inside; without one all are.
    const Stm* guard = nullptr;
    for (const Stm& stm : body_.stms)
      if (const If* branch = get_if<If>(stm)) {
        if (guard != nullptr || !branch->else_body->stms.empty()) return made;
        guard = &stm;
      }
    if (guard != nullptr && !find_conditions(std::get<If>(guard->op).condition, made)) return made;
    const Body& inside = guard != nullptr ? *std::get<If>(guard->op).then_body : body_;
    std::vector<Stm> left;
    std::set<Value> bound;  // by the branch itself
    for (const Stm& stm : inside.stms) {
      Epilogue::Shared* shared = find_shared(stm, guard != nullptr ? bound : std::set<Value>(), made);
      bound.insert(stm.pattern.begin(), stm.pattern.end());
      (shared != nullptr ? shared->reads : left).push_back(stm);
    }
    for (Epilogue::Shared& shared : made.shared) {
      if (shared.reads.empty()) continue;
      std::set<Value> wanted;
      for (const Operand& condition : shared.conditions)
        if (condition.is_value()) wanted.insert(condition.value());
      for (const Stm& read : shared.reads) {
        wanted.merge(free_values(read.op, values_));
        made.map.params.push_back(read.pattern.front());
      }
      shared.before = made_for(std::move(wanted), body_.stms);
    }
    if (guard == nullptr) {
      made.map.body = make_body(std::move(left), body_.results);
      return made;
    }
    std::vector<Stm> stms = body_.stms;
    const auto at = stms.begin() + (guard - body_.stms.data());
    // What reads nothing is done for all: results outside are dropped.
    const auto is_safe = [&](const Stm& stm) {
      return !get_if<Index>(stm) && !has_bodies(stm.op) && !can_fail(stm.op, values_);
    };
    if (all_inside_ || std::ranges::all_of(left, is_safe)) {
      Substitution given;
      for (std::size_t k = 0; k < guard->pattern.size(); ++k)
        given.insert_or_assign(guard->pattern[k], inside.results[k]);
      stms.insert(stms.erase(at), left.begin(), left.end());
      ValueTable table = values_;
      made.map.body = without_unused(*substitute(make_body(std::move(stms), body_.results), given, table));
      return made;
    }
    If& branch = std::get<If>(at->op);
    branch.then_body = make_body(std::move(left), inside.results);
    made.map.body = make_body(std::move(stms), body_.results);
    return made;
  }

 private:
  BodyPtr without_unused(const Body& body) const {
    std::set<Value> wanted;
    for (const Operand& result : body.results)
      if (result.is_value()) wanted.insert(result.value());
    return make_body(made_for(std::move(wanted), body.stms), body.results);
  }

  // Those of the statements that these values follow from.
  std::vector<Stm> made_for(std::set<Value> wanted, const std::vector<Stm>& stms) const {
    std::vector<Stm> used;
    for (std::size_t k = stms.size(); k-- > 0;) {
      if (std::ranges::none_of(stms[k].pattern, [&](Value v) { return wanted.contains(v); })) continue;
      wanted.merge(free_values(stms[k].op, values_));
      used.insert(used.begin(), stms[k]);
    }
    return used;
  }

  const Stm* maker(const Operand& x) const {
    for (const Stm& stm : body_.stms)
      if (x.is_value() && stm.pattern.front() == x.value()) return &stm;
    return nullptr;
  }

  // Of a conjunction each part, for what it is about. False: one of them is about both dims, or is more than that an
  // index is below its size, so that a read may need it which does not vary with it.
  bool find_conditions(const Operand& condition, Epilogue& made) const {
    const Stm* stm = maker(condition);
    if (stm == nullptr) return !condition.is_value();
    if (const Binary* both = get_if<Binary>(*stm); both != nullptr && both->op == BinaryOp::conj)
      return find_conditions(both->x, made) && find_conditions(both->y, made);
    const Compare* less = get_if<Compare>(*stm);
    if (less == nullptr || less->op != CompareOp::lt) return false;
    for (std::size_t s = 0; s < 2; ++s) {
      if (!along_[s].contains(condition.value())) continue;
      if (along_[1 - s].contains(condition.value()) || is_shifted(number_of(less->x)) ||
          number_of(less->y) != sizes_[s])
        return false;
      if (!all_inside_) made.shared[s].conditions.push_back(condition);
      return true;
    }
    // Of rows and columns that are inside it may still fail.
    if (all_inside_) return false;
    for (Epilogue::Shared& shared : made.shared) shared.conditions.push_back(condition);
    return true;
  }

  Poly number_of(const Operand& x) const {
    constexpr std::int64_t kNoSize = -1;
    if (!x.is_value()) return is_integer(x.constant().type()) ? Poly(x.constant().as_int()) : Poly(kNoSize);
    const Stm* stm = maker(x);
    const SizeExpr* size = stm != nullptr ? get_if<SizeExpr>(*stm) : nullptr;
    return size != nullptr ? size->value : Poly(x.value());
  }
  // i + 1 < n is no test of being inside.
  static bool is_shifted(const Poly& at) {
    return std::ranges::any_of(at.terms(), [](const Term& term) { return term.factors.empty(); });
  }

  // Which reads this is one of, if of any.
  Epilogue::Shared* find_shared(const Stm& stm, const std::set<Value>& bound, Epilogue& made) const {
    const Index* index = get_if<Index>(stm);
    if (index == nullptr || index->checked || values_.type(stm.pattern.front()).is_array()) return nullptr;
    const std::set<Value> uses = free_values(stm.op, values_);
    if (meets(uses, bound)) return nullptr;
    const bool along_m = meets(uses, along_[0]), along_n = meets(uses, along_[1]);
    return along_m == along_n ? nullptr : &made.shared[along_m ? 0 : 1];
  }

  const Lambda& map_;
  const Body& body_;
  std::array<Poly, 2> sizes_;
  bool all_inside_;
  const ValueTable& values_;
  std::array<std::set<Value>, 2> along_;  // of the code, what varies along M, along N
};

}  // namespace

Epilogue split_epilogue(const Lambda& map, const std::array<std::set<Value>, 2>& indices,
                        const std::array<Poly, 2>& sizes, bool all_inside, const ValueTable& values) {
  return EpilogueSplit(map, indices, sizes, all_inside, values).run();
}

bool uses_any(const std::vector<Stm>& code, const std::set<Value>& of, const ValueTable& values) {
  return std::ranges::any_of(code, [&](const Stm& stm) { return meets(free_values(stm.op, values), of); });
}

bool uses_any(const Body& body, const std::set<Value>& of, const ValueTable& values) {
  return uses_any(body.stms, of, values) || std::ranges::any_of(body.results, [&](const Operand& result) {
           return result.is_value() && of.contains(result.value());
         });
}

// Whether matrix units of 8 or 16 bits multiply: their results go through shared memory on their way in any case.
static bool stages_results(const SegOp& kernel, const ValueTable& values) {
  constexpr int kHalf = 2;
  bool narrow = kernel.schedule->unit == Schedule::Unit::matrix;
  for_each_stm(*kernel.body, [&](const Stm& stm) {
    if (const TileContract* contract = get_if<TileContract>(stm))
      for (const Value x : contract->map.params) narrow = narrow && byte_size(values.type(x).element) <= kHalf;
  });
  return narrow;
}

const Stm* stored_code(const SegOp& kernel, const ValueTable& values) {
  if (!kernel.schedule || !has_mn_dims(*kernel.schedule)) return nullptr;
  for (const Stm& stm : kernel.body->stms) {
    const SegOp* threads = get_if<SegOp>(stm);
    const Screma* each = threads != nullptr ? epilogue_map(*threads, values) : nullptr;
    if (each == nullptr || each->inputs.size() != 1) continue;
    const auto is_made = [&](const Operand& result) {
      return result.is_value() && std::ranges::find(stm.pattern, result.value()) != stm.pattern.end();
    };
    if (!std::ranges::all_of(kernel.body->results, is_made)) continue;
    // M and N are the last dims.
    std::array<std::set<Value>, 2> along;
    for (std::size_t s = 0; s < 2; ++s) {
      const std::size_t d = threads->space.size() - 2 + s;
      along[s] = following(*each->map.body, {threads->space[d].index, each->indices[d]}, values);
    }
    bool reads_both = false, reads_one = false;
    for_each_stm(*each->map.body, [&](const Stm& inner) {
      const Index* index = get_if<Index>(inner);
      if (index == nullptr || values.type(inner.pattern.front()).is_array()) return;
      const std::set<Value> uses = free_values(inner.op, values);
      const bool along_m = meets(uses, along[0]), along_n = meets(uses, along[1]);
      reads_both = reads_both || (along_m && along_n);
      reads_one = reads_one || along_m || along_n;
    });
    if (reads_both || (reads_one && stages_results(kernel, values))) return &stm;
  }
  return nullptr;
}

}  // namespace apl::lower
