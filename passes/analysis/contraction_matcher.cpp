// From a kernel to a Contraction, or to what keeps it from being one.
#include <algorithm>
#include <set>

#include "ir/attributes.h"
#include "ir/builder.h"
#include "ir/sparse_soa.h"
#include "ir/walk.h"
#include "passes/analysis/contraction_matcher.h"

namespace apl {

namespace {

// A dim is called after its size in the source ("a" of [a]), else after its index.
std::string dim_name(Value index, const Poly& size, const ValueTable& values, std::set<std::string>& taken) {
  std::string base = size.symbol() ? values.name(*size.symbol()) : values.name(index);
  std::string name = base;
  for (int n = 2; !taken.insert(name).second; ++n) name = base + "_" + std::to_string(n);
  return name;
}

// Several operators side by side are one operator on all their values.
ReduceOp combined(const std::vector<ReduceOp>& reduces) {
  if (reduces.size() == 1) return reduces.front();
  ReduceOp all;
  all.commutative = true;
  std::vector<Value> right;
  std::vector<Stm> stms;
  std::vector<Operand> results;
  for (const ReduceOp& reduce : reduces) {
    const auto half = reduce.op.params.begin() + static_cast<std::ptrdiff_t>(reduce.neutral.size());
    all.op.params.insert(all.op.params.end(), reduce.op.params.begin(), half);
    right.insert(right.end(), half, reduce.op.params.end());
    stms.insert(stms.end(), reduce.op.body->stms.begin(), reduce.op.body->stms.end());
    results.insert(results.end(), reduce.op.body->results.begin(), reduce.op.body->results.end());
    all.neutral.insert(all.neutral.end(), reduce.neutral.begin(), reduce.neutral.end());
    all.commutative = all.commutative && reduce.commutative;
  }
  all.op.params.insert(all.op.params.end(), right.begin(), right.end());
  all.op.body = make_body(std::move(stms), std::move(results));
  return all;
}

// The one redomap of a kernel's body.
struct Stream {
  const Stm* stm = nullptr;
  const Screma* redomap = nullptr;
};

class Matcher {
 public:
  Matcher(const Stm& candidate, const Layouts& layouts, ValueTable& values)
      : layouts_(layouts), values_(values), stm_(candidate), kernel_(*get_if<SegOp>(stm_)) {
    const auto bind = [&](const Stm& stm) {
      local_.insert(stm.pattern.begin(), stm.pattern.end());
      for_each_binder(stm.op, [&](Value v) { local_.insert(v); });
    };
    for_each_stm(*kernel_.body, bind);
  }

  Match run(const Stream& stream) {
    contraction_.location = stream.stm->location ? stream.stm->location : stm_.location;
    if (auto r = take_stream(*stream.redomap)) return *r;
    if (auto r = take_results(*stream.stm)) return *r;
    if (auto r = check_surroundings(*stream.stm)) return *r;
    std::vector<const Stm*> before;
    for (const Stm& stm : kernel_.body->stms)
      if (before_.contains(&stm)) before.push_back(&stm);
    if (auto r = match_operands(before, *stream.redomap, layouts_, local_, contraction_, values_)) return *r;
    for (std::optional<Refusal> check :
         {refuse_without_free_dims(contraction_, values_), refuse_operand_without_reuse(contraction_, values_),
          refuse_uncovered_dim(contraction_), refuse_failing_map(contraction_, values_)})
      if (check) {
        check->match = std::make_shared<const Contraction>(contraction_);
        return *check;
      }
    return std::move(contraction_);
  }

 private:
  std::optional<Refusal> take_stream(const Screma& redomap) {
    if (redomap.map.body->results.size() != redomap.reduced_count())
      return unmatched("maps-out", contraction_.location, "the redomap also gives an array of mapped values",
                       "compute the mapped values in a map of their own");
    for (const ReduceOp& reduce : redomap.reduces)
      for (const Operand& neutral : reduce.neutral)
        if (!values_.type(neutral).is_scalar())
          return unmatched("array-accumulator", contraction_.location,
                           "the reduction operator works on arrays, not scalars",
                           "map a reduction of scalars over the arrays' elements");
    std::set<std::string> taken;
    for (const SegDim& dim : kernel_.space)
      contraction_.dims.push_back(
          {dim.index, dim.bound, DimClass::free, dim_name(dim.index, dim.bound, values_, taken)});
    contraction_.space_rank = kernel_.space.size();
    for (std::size_t e = 0; e < redomap.widths.size(); ++e) {
      Value index = redomap.indices[e];
      contraction_.dims.push_back(
          {index, redomap.widths[e], DimClass::contracted, dim_name(index, redomap.widths[e], values_, taken)});
      std::optional<Value> varying;
      redomap.widths[e].for_each_symbol([&](Value v) {
        if (varies_in_kernel(v)) varying = v;
      });
      if (varying)
        return unmatched("irregular-reduction", contraction_.location,
                         "the reduction's width depends on `" + values_.name(*varying) +
                             "`, a parallel index or what the kernel computes",
                         "reduce over the largest width, and map elements beyond the own one to the neutral element");
    }
    std::vector<ReduceOp> reduces = redomap.reduces;
    for (ReduceOp& reduce : reduces) {
      std::set<Value> outside = free_values(reduce.op, values_);
      for (const Operand& neutral : reduce.neutral)
        if (neutral.is_value()) outside.insert(neutral.value());
      for (Value v : outside)
        if (varies_in_kernel(v))
          return unmatched("operator-uses-index", contraction_.location,
                           "the reduction operator or its neutral element uses `" + values_.name(v) +
                               "`, which differs from index to index",
                           "use it in the map function, or in code after the reduction");
      if (auto op = as_binary_op(reduce.op)) reduce.commutative |= is_commutative(*op);
    }
    contraction_.reduce = combined(reduces);
    return std::nullopt;
  }

  // The kernel's results: reduced values, or what the epilogue makes of them.
  std::optional<Refusal> take_results(const Stm& redomap) {
    for (const Operand& result : kernel_.body->results) {
      auto reduced = redomap.pattern.end();
      if (result.is_value()) reduced = std::find(redomap.pattern.begin(), redomap.pattern.end(), result.value());
      if (reduced == redomap.pattern.end()) return take_code_after(redomap);
      contraction_.results.push_back(static_cast<std::size_t>(reduced - redomap.pattern.begin()));
    }
    return std::nullopt;
  }

  std::optional<Refusal> take_code_after(const Stm& redomap) {
    contraction_.results.clear();
    std::set<Value> roots;
    for (const Operand& result : kernel_.body->results) {
      if (!values_.type(result).is_scalar())
        return unmatched("code-after", contraction_.location, "the kernel gives rows, not only scalars",
                         "map over the reduced values in a nest of its own");
      if (result.is_value()) roots.insert(result.value());
    }
    after_ = needed_for(std::move(roots), redomap);
    std::vector<Stm> stms;
    for (const Stm& stm : kernel_.body->stms) {
      if (!after_.contains(&stm)) continue;
      if (auto r = refuse_after(stm)) return r;
      stms.push_back(stm);
    }
    Lambda after;
    Substitution renaming;
    for (Value v : redomap.pattern) {
      after.params.push_back(values_.add(values_.type(v), values_.name(v)));
      renaming.insert_or_assign(v, Operand(after.params.back()));
    }
    after.body = copy_fresh(make_body(std::move(stms), kernel_.body->results), renaming, values_, values_);
    contraction_.after = std::move(after);
    return std::nullopt;
  }

  // Code after is done once an element, by the thread that has it in a register: scalars, and reads.
  std::optional<Refusal> refuse_after(const Stm& stm) {
    const Location location = stm.location ? stm.location : contraction_.location;
    const std::string name = stm.pattern.empty() ? "" : values_.name(stm.pattern.front());
    if (relies_on_check(stm) || can_fail(stm.op, values_))
      return unmatched("code-after", location, "the code after the reduction can fail at `" + name + "`",
                       "make the bounds provable, or map over the reduced values in a nest of its own");
    bool arrays = false;
    const auto look = [&](const Stm& s) {
      for (Value v : s.pattern) arrays = arrays || (values_.type(v).is_array() && !is_contraction_view(s));
    };
    look(stm);
    for_each_body(stm.op, [&](const BodyPtr& body) { for_each_stm(*body, look); });
    if (arrays)
      return unmatched("code-after", location, "the code after the reduction makes an array in `" + name + "`",
                       "map over the reduced values in a nest of its own");
    return std::nullopt;
  }

  // Whether a check in the kernel must come first. Those outside have been made.
  bool relies_on_check(const Stm& stm) {
    bool local = false;
    const auto look = [&](const Stm& s) {
      for (Value v : s.certificates) {
        local = local || local_.contains(v);
        if (!local_.contains(v)) contraction_.certificates.push_back(v);
      }
    };
    look(stm);
    for_each_body(stm.op, [&](const BodyPtr& body) { for_each_stm(*body, look); });
    return local;
  }

  // The statements of the kernel's body that `roots` come from, without the redomap.
  std::set<const Stm*> needed_for(std::set<Value> roots, const Stm& redomap) const {
    std::set<const Stm*> needed;
    const std::vector<Stm>& stms = kernel_.body->stms;
    for (std::size_t k = stms.size(); k-- > 0;) {
      const Stm& stm = stms[k];
      const bool wanted =
          std::any_of(stm.pattern.begin(), stm.pattern.end(), [&](Value v) { return roots.contains(v); });
      if (!wanted || &stm == &redomap) continue;
      needed.insert(&stm);
      roots.merge(free_values(stm.op, values_));
      roots.insert(stm.certificates.begin(), stm.certificates.end());
    }
    return needed;
  }

  // What stands before the redomap, and is no part of the epilogue, feeds the map function. It cannot fail.
  std::optional<Refusal> check_surroundings(const Stm& redomap) {
    before_ = needed_for(free_values(redomap.op, values_), redomap);
    if (relies_on_check(redomap))
      return unmatched("checked-read", contraction_.location, "the reduction relies on a check in the kernel",
                       "make the bounds provable, or use the whole array");
    for (const Stm& stm : kernel_.body->stms) {
      if (&stm == &redomap || (after_.contains(&stm) && !before_.contains(&stm))) continue;
      const Location location = stm.location ? stm.location : contraction_.location;
      // Reads under a condition are seen to with the operands.
      const bool is_conditional = get_if<If>(stm) != nullptr && before_.contains(&stm);
      if (relies_on_check(stm) || (!is_conditional && can_fail(stm.op, values_)))
        return unmatched("checked-read", location,
                         get_if<Assert>(stm) ? "the kernel makes a check"
                                             : "`" + values_.name(stm.pattern.front()) + "` is checked in the kernel",
                         "make the bounds provable, or use the whole array");
      for (Value v : stm.pattern)
        if (values_.type(v).is_array() && !is_contraction_view(stm) && !get_if<Reshape>(stm))
          return unmatched("code-before", location, "the kernel makes the array `" + values_.name(v) + "`",
                           "compute it before the map nest");
    }
    return std::nullopt;
  }

  bool varies_in_kernel(Value v) const { return local_.contains(v) || contraction_.dim_of(v); }

  const Layouts& layouts_;
  ValueTable& values_;
  const Stm& stm_;
  const SegOp& kernel_;
  std::set<Value> local_;        // values bound in the kernel's body
  std::set<const Stm*> before_;  // statements that the redomap needs
  std::set<const Stm*> after_;   // statements that the results need besides
  Contraction contraction_;
};

// A reduction inside of other code of the kernel.
std::optional<Match> refuse_hidden_reduction(const SegOp& kernel) {
  for (const Stm& outer : kernel.body->stms) {
    const bool branch = get_if<If>(outer) != nullptr;
    if (!branch && get_if<Loop>(outer) == nullptr) continue;
    std::optional<Location> found;
    for_each_body(outer.op, [&](const BodyPtr& body) {
      for (const Stm& stm : body->stms)
        if (const Screma* screma = get_if<Screma>(stm); screma && !screma->reduces.empty() && !screma->scans())
          found = stm.location ? stm.location : outer.location;
    });
    if (!found) continue;
    if (branch)
      return unmatched("reduction-in-branch", *found, "the reduction is in a branch of the kernel",
                       "reduce for all indices, and choose the result afterwards");
    return unmatched("reduction-in-loop", *found, "the reduction is in a loop of the kernel",
                     "make the loop's rounds a dim of the map nest, or reduce outside of the loop");
  }
  return std::nullopt;
}

// Elements of arrays from outside that differ from round to round of the loop.
std::size_t streamed_elements(const Loop& loop, const ValueTable& values) {
  std::set<Value> varies(loop.params.begin(), loop.params.end());
  if (loop.index) varies.insert(loop.index);
  std::size_t count = 0;
  // In the order of the program, so that what a value is made of is known.
  for_each_stm(*loop.body, [&](const Stm& stm) {
    const std::set<Value> used = free_values(stm.op, values);
    if (std::ranges::none_of(used, [&](Value v) { return varies.contains(v); })) return;
    varies.insert(stm.pattern.begin(), stm.pattern.end());
    for_each_binder(stm.op, [&](Value v) { varies.insert(v); });
    const Index* index = get_if<Index>(stm);
    if (index != nullptr && !varies.contains(index->array) && values.type(stm.pattern.front()).is_scalar()) ++count;
  });
  return count;
}

// Why a loop of a thread that goes through elements of several arrays is no reduction.
std::optional<Match> refuse_kept_loop(const SegOp& kernel, const ValueTable& values) {
  std::optional<Match> refused;
  for_each_stm(*kernel.body, [&](const Stm& stm) {
    const Loop* loop = get_if<Loop>(stm);
    if (loop == nullptr || refused || loop->params.empty()) return;
    std::optional<Value> scalar;
    for (Value v : loop->params) {
      if (values.type(v).is_array()) return;
      const bool counts = values.type(v).element != ScalarType::boolean;
      if (!scalar && counts) scalar = v;
    }
    if (!scalar || streamed_elements(*loop, values) < 2) return;
    const std::string name = "`" + values.name(*scalar) + "`";
    const auto asked = std::ranges::find_if(stm.attributes, [](const Attribute& a) {
      return a.name == attribute::sequential.name || a.name == attribute::unroll.name;
    });
    if (!loop->index) {
      refused =
          unmatched("loop-kept", stm.location,
                    "a condition ends the loop that makes " + name + ": how many elements it takes is not known before",
                    "loop a known number of times, and let what comes too late add the neutral element");
    } else if (asked != stm.attributes.end()) {
      refused =
          unmatched("loop-kept", stm.location, "#[" + asked->name + "] keeps the loop that makes " + name + " as it is",
                    "remove the attribute");
    } else {
      refused = unmatched("loop-kept", stm.location,
                          "the loop that makes " + name +
                              " does more in a round than put a value to what it has so far by one operator that is "
                              "associative and commutative",
                          "say it as `reduce` with an operator of its own and its neutral element");
    }
  });
  return refused;
}

// Results of reductions of the kernel's body that one of them needs.
std::string inner_reductions(const SegOp& kernel, const Stream& last, const ValueTable& values) {
  std::set<Value> needed = free_values(last.stm->op, values);
  std::string names;
  for (std::size_t k = kernel.body->stms.size(); k-- > 0;) {
    const Stm& stm = kernel.body->stms[k];
    const bool wanted = std::ranges::any_of(stm.pattern, [&](Value v) { return needed.contains(v); });
    if (!wanted || &stm == last.stm) continue;
    if (const Screma* screma = get_if<Screma>(stm); screma && !screma->reduces.empty())
      names = "`" + values.name(stm.pattern.front()) + "`" + (names.empty() ? "" : ", ") + names;
    needed.merge(free_values(stm.op, values));
  }
  return names;
}

}  // namespace

std::optional<Match> match_contraction(const Stm& stm, const Layouts& layouts, ValueTable& values) {
  const SegOp* kernel = get_if<SegOp>(stm);
  if (!kernel || kernel->level != SegLevel::thread) return std::nullopt;
  if (has_attribute(stm.attributes, attribute::chunks) || has_attribute(stm.attributes, attribute::sparse_product))
    return std::nullopt;
  Stream stream;
  std::size_t redomaps = 0;
  for (const Stm& inner : kernel->body->stms)
    if (const Screma* screma = get_if<Screma>(inner); screma && !screma->reduces.empty() && !screma->scans()) {
      stream = {&inner, screma};
      ++redomaps;
    }
  if (redomaps == 0) {
    auto hidden = refuse_hidden_reduction(*kernel);
    return hidden ? hidden : refuse_kept_loop(*kernel, values);
  }
  // Of rows alone what else is reduced is no dim that a contraction could have.
  if (redomaps > 1 && kernel->space.size() >= 2) {
    const std::string inner = inner_reductions(*kernel, stream, values);
    if (!inner.empty())
      return unmatched(
          "several-redomaps", stream.stm->location ? stream.stm->location : stm.location,
          "the reduction of `" + values.name(stream.stm->pattern.front()) +
              "` needs the results of others for its elements: " + inner,
          "make those before the nest, `let M = map (\\a -> ..) A`, and take an element of them in it, `map2 "
          "(\\a m -> ..) A M`: the reduction alone can be tiled");
  }
  if (redomaps > 1)
    return unmatched("several-redomaps", stm.location, "the kernel streams several redomaps",
                     "reduce in one redomap over one width, or in map nests of their own");
  return Matcher(stm, layouts, values).run(stream);
}

}  // namespace apl
