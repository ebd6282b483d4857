// Which functions may stay functions, and which are worth it. A function that stays is text of its own in the generated
// program, which calls it; all others become a part of their callers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>

#include "ir/calls.h"
#include "ir/walk.h"

namespace apl::inlining {

enum class Kept : std::uint8_t {
  no,
  scalar,  // of scalars alone: kernels call it, and host code does
  host,    // host code calls it: it takes or gives arrays, or launches kernels
};

// Where a call stands. What is inside of several of these is where the last of them says.
enum class Around : std::uint8_t {
  host,        // neither in a map nor in a function that is differentiated
  map,         // in a map, scan or scatter
  reduction,   // in a reduction or histogram
  derivative,  // in a function that is differentiated
};
constexpr std::size_t kPlaces = 4;

// A kernel, with the host code that launches it, against a scalar statement.
constexpr std::size_t kKernelWeight = 20;
constexpr std::size_t kCallWeight = 8;  // of one that stays, in host code
// Elements of an array literal that weigh as much as a statement.
constexpr std::size_t kElementsOfLine = 4;

// A function of this weight that branches or loops is more than its call, and copies of that weight are worth one.
constexpr std::size_t kLeastWeight = 48, kLeastGrowth = 320;
// The same of straight code, which is fused and simplified better where it is called.
constexpr std::size_t kLeastStraight = 256, kLeastStraightGrowth = 4096;
// Code inside a reduction is no more a contraction that can be tiled when it is a call.
constexpr std::size_t kLeastInReduction = 192;

inline bool is_array_code(const Stm& stm) {
  return get_if<Screma>(stm) || get_if<Scatter>(stm) || get_if<Derivative>(stm);
}

inline void add_weight(const Body& body, bool on_host, std::size_t& sum) {
  for (const Stm& stm : body.stms) {
    ++sum;
    const bool code = is_array_code(stm);
    if (get_if<Apply>(stm)) sum += on_host ? kCallWeight : 1;
    if (on_host && (code || get_if<Replicate>(stm) || get_if<Iota>(stm) || get_if<Copy>(stm))) sum += kKernelWeight;
    if (const ArrayLit* literal = get_if<ArrayLit>(stm))
      sum += kKernelWeight / 2 + literal->elements.size() / kElementsOfLine;
    for_each_body(stm.op, [&](const BodyPtr& inner) { add_weight(*inner, on_host && !code, sum); });
  }
}

// Whether code of arrays has a reduction in it: it may become a tiled contraction, with numbers of its entry.
inline bool reduces(const Body& body) {
  bool found = false;
  for_each_stm(body, [&](const Stm& stm) {
    const Screma* screma = get_if<Screma>(stm);
    const Scatter* scatter = get_if<Scatter>(stm);
    found = found || (screma != nullptr && !screma->reduces.empty()) || (scatter != nullptr && scatter->op);
  });
  return found;
}

// Follows arrays through the host's code of a function: where a copy that a call makes of them is one that expanded
// code would not make.
class Arguments {
 public:
  explicit Arguments(const Function& function) : function_(function) {
    for (const Value param : function.params)
      if (function.type(param).is_array()) may_.insert(param), must_.insert(param);
  }

  // Empty: there is none.
  std::string why_copied() {
    walk(*function_.body);
    for (const Operand& x : function_.body->results)
      if (why_.empty() && is(must_, x)) why_ = "it gives back an array that it is given";
    return why_;
  }

 private:
  static bool is(const std::set<Value>& set, const Operand& x) { return x.is_value() && set.contains(x.value()); }

  void walk(const Body& body) {
    for (const Stm& stm : body.stms) statement(stm);
  }

  void statement(const Stm& stm) {
    const auto view = [&](const Operand& source) {
      if (is(may_, source)) may_.insert(stm.pattern.front());
      if (is(must_, source)) must_.insert(stm.pattern.front());
    };
    const auto overwrite = [&](const Operand& source) {
      if (is(may_, source)) why_ = "it updates a copy of an array that it is given";
    };
    if (const Use* use = get_if<Use>(stm)) view(use->x);
    if (const Index* index = get_if<Index>(stm)) view(index->array);
    if (const Rearrange* rearrange = get_if<Rearrange>(stm)) view(rearrange->array);
    if (const Reshape* reshape = get_if<Reshape>(stm)) view(reshape->array);
    if (const Copy* copy = get_if<Copy>(stm)) overwrite(copy->array);
    if (const Update* update = get_if<Update>(stm)) overwrite(update->array);
    if (const Scatter* scatter = get_if<Scatter>(stm))
      for (const Value target : scatter->targets) overwrite(target);
    if (const Loop* loop = get_if<Loop>(stm))
      for (std::size_t k = 0; k < loop->params.size(); ++k)
        if (is(may_, loop->initial[k])) may_.insert({loop->params[k], stm.pattern[k]});
    if (is_array_code(stm)) return;
    for_each_body(stm.op, [&](const BodyPtr& inner) { walk(*inner); });
    const std::vector<BodyPtr> bodies = branches(stm.op);
    for (std::size_t k = 0; k < stm.pattern.size() && !bodies.empty(); ++k) {
      const auto given = [&](const std::set<Value>& set) {
        return [&set, k](const BodyPtr& inner) { return is(set, inner->results[k]); };
      };
      if (std::ranges::any_of(bodies, given(may_))) may_.insert(stm.pattern[k]);
      if (std::ranges::all_of(bodies, given(must_))) must_.insert(stm.pattern[k]);
    }
  }

  const Function& function_;
  std::set<Value> may_, must_;  // values that lie where a parameter does
  std::string why_;
};

// About how many statements of generated text the body is.
inline std::size_t weight(const Body& body) {
  std::size_t sum = 0;
  add_weight(body, true, sum);
  return sum;
}

// Whether it has branches, loops or calls outside of maps.
inline bool has_control(const Body& body) {
  return std::ranges::any_of(body.stms,
                             [](const Stm& stm) { return get_if<If>(stm) || get_if<Loop>(stm) || get_if<Apply>(stm); });
}

// As what the function may stay: its calls are those that stayed before. `why` says why it may not.
inline Kept may_stay(const Function& function, const FindFunction& find, std::string& why) {
  if (is_scalar_function(function, find)) return Kept::scalar;
  for (const Value param : function.params)
    if (function.type(param).unique) why = "it consumes an array that it is given";
  if (reduces(*function.body)) why = "it has reductions, which may be contractions with their callers' code";
  for_each_stm(*function.body, [&](const Stm& stm) {
    if (get_if<Derivative>(stm)) why = "it has a derivative";
  });
  if (why.empty()) why = Arguments(function).why_copied();
  return why.empty() ? Kept::host : Kept::no;
}

// Whether a function of that weight is worth a call, if `copies` of it would be made.
inline bool is_worth_call(std::size_t weight, bool control, std::size_t copies) {
  if (copies < 2) return false;
  const std::size_t least = control ? kLeastWeight : kLeastStraight;
  const std::size_t growth = control ? kLeastGrowth : kLeastStraightGrowth;
  return weight >= least && weight >= growth / (copies - 1);
}

// Whether a call of such a function stays where it stands.
inline bool stays(Kept kept, std::size_t weight, Around around) {
  switch (around) {
    case Around::host: return kept != Kept::no;
    case Around::map: return kept == Kept::scalar;
    case Around::reduction: return kept == Kept::scalar && weight >= kLeastInReduction;
    case Around::derivative: return false;
  }
  return false;
}

}  // namespace apl::inlining
