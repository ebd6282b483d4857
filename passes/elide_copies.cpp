// elide-copies: updates happen in place where nobody reads what they overwrite.
//
//   let {ys : [n]f32} = loop {zs : [n]f32 = xs} for i < n {
//     let {a : [n]f32} = copy(zs)
//     let {b : [n]f32} = a with [i] = 0.0f32
//     in {b}
//   }
// =>
//   let {xs_1 : [n]f32} = copy(xs)
//   let {ys : [n]f32} = loop {zs : [n]f32 = xs_1} for i < n {
//     let {b : [n]f32} = zs with [i] = 0.0f32
//     in {b}
//   }
//
// Phases: what a loop carries and its body copies starts as a copy, made before the loop; then every copy whose source
// is not read afterwards is the source itself. Storage is followed through views, updates, branches and loops: two
// values may share elements if they have a root in common, which is the value that made the storage.
//
// A copy stays if its source may share elements with a parameter of the function (the caller's), with a row that a
// lambda is given, with what is bound outside a body that runs more than once, or with a value that is read later.
#include <fmt/format.h>
#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <map>
#include <set>

#include "ir/node_info.h"
#include "ir/walk.h"
#include "passes/functions.h"
#include "passes/pass.h"

namespace apl {

namespace {

using Roots = std::set<Value>;

bool is_array(const ValueTable& values, const Operand& x) { return x.is_value() && values.type(x).is_array(); }

// The operand that a result is a view of, or is made of in place.
std::optional<Value> same_memory(const Op& op) {
  if (const auto* update = std::get_if<Update>(&op)) return update->array;
  return viewed(op);
}

// ---- copies before loops --------------------------------------------------------------------------------------------

class Classes {
 public:
  void join(Value a, Value b) { parent_[find(a)] = find(b); }
  Value find(Value v) {
    auto [at, fresh] = parent_.try_emplace(v, v);
    if (fresh || at->second == v) return v;
    const Value root = find(at->second);
    parent_[v] = root;
    return root;
  }

 private:
  std::map<Value, Value> parent_;
};

// Which values of the body may hold the same elements at some time, copies included.
void join_all(const Body& body, const ValueTable& values, Classes& classes) {
  const auto join = [&](Value a, const Operand& b) {
    if (is_array(values, a) && is_array(values, b)) classes.join(a, b.value());
  };
  for_each_stm(body, [&](const Stm& stm) {
    if (const auto source = same_memory(stm.op)) join(stm.pattern.front(), *source);
    if (const auto* copy = get_if<Copy>(stm)) join(stm.pattern.front(), copy->array);
    if (const auto* scatter = get_if<Scatter>(stm))
      for (const auto& [made, target] : ranges::views::zip(stm.pattern, scatter->targets)) join(made, target);
    for (const BodyPtr& branch : branches(stm.op))
      for (const auto& [made, result] : ranges::views::zip(stm.pattern, branch->results)) join(made, result);
    if (const auto* loop = get_if<Loop>(stm)) {
      for (const auto& [made, param, initial, next] :
           ranges::views::zip(stm.pattern, loop->params, loop->initial, loop->body->results)) {
        join(param, initial);
        join(param, next);
        join(made, param);
      }
    }
  });
}

class LoopStarts {
 public:
  explicit LoopStarts(ValueTable& values) : values_(values) {}

  BodyPtr body(const BodyPtr& old) {
    std::vector<Stm> stms;
    bool changed = false;
    for (const Stm& stm : old->stms) {
      Stm next = stm;
      next.op = map_bodies(stm.op, [&](const BodyPtr& inner) {
        BodyPtr made = body(inner);
        changed = changed || made != inner;
        return made;
      });
      if (Loop* loop = std::get_if<Loop>(&next.op)) changed = start(*loop, next.location, stms) || changed;
      stms.push_back(std::move(next));
    }
    return changed ? make_body(std::move(stms), old->results) : old;
  }

  const std::set<Value>& made() const { return made_; }

 private:
  bool start(Loop& loop, Location location, std::vector<Stm>& before) {
    Classes classes;
    join_all(*loop.body, values_, classes);
    for (const auto& [param, next] : ranges::views::zip(loop.params, loop.body->results))
      if (is_array(values_, param) && is_array(values_, next)) classes.join(param, next.value());
    std::set<Value> copied;
    for_each_stm(*loop.body, [&](const Stm& stm) {
      if (const auto* copy = get_if<Copy>(stm)) copied.insert(classes.find(copy->array));
    });
    bool changed = false;
    for (auto&& [param, initial] : ranges::views::zip(loop.params, loop.initial)) {
      if (!is_array(values_, param) || !copied.contains(classes.find(param))) continue;
      const Value source = initial.value();
      const Value copy =
          values_.add(Type::array(values_.type(source).element, values_.type(source).shape), values_.name(source));
      before.push_back({.pattern = {copy}, .op = Copy{source}, .location = location});
      made_.insert(copy);
      initial = copy;
      changed = true;
    }
    return changed;
  }

  ValueTable& values_;
  std::set<Value> made_;
};

// ---- copies that may go ---------------------------------------------------------------------------------------------

class CopyEliminator {
 public:
  CopyEliminator(Function& function, const PassContext& context, const std::set<Value>& starts)
      : function_(function), context_(context), starts_(starts) {}

  // How many copies went that the program had.
  std::size_t run() {
    for (const Value param : function_.params) foreign(param);
    enter(*function_.body, true);
    if (!replaced_.empty()) function_.body = substitute(without(function_.body), replaced_, function_.values);
    return elided_;
  }

 private:
  static constexpr std::size_t kResult = static_cast<std::size_t>(-1);  // read as a result of the body

  // A body that is being walked: where in it, and where it last reads each value.
  struct Frame {
    const Body* body;
    bool repeats;  // what is bound outside is read again after its end
    std::size_t at = 0;
    std::map<Value, std::size_t> last;
  };

  Value now(Value v) const {
    const auto found = replaced_.find(v);
    return found == replaced_.end() ? v : found->second.value();
  }

  // ---- roots

  void give(Value v, Roots roots) {
    if (!is_array(function_.values, v)) return;
    for (const Value root : roots) members_[root].insert(v);
    roots_[v] = std::move(roots);
  }
  void fresh(Value v) {
    if (!is_array(function_.values, v)) return;
    home_[v] = frames_.empty() ? nullptr : boundary().body;
    give(v, {v});
  }
  // What others own: never overwritten.
  void foreign(Value v) {
    if (is_array(function_.values, v)) give(v, {v});
  }
  Roots roots(const Operand& x) const {
    if (!is_array(function_.values, x)) return {};
    const auto found = roots_.find(now(x.value()));
    return found == roots_.end() ? Roots{} : found->second;
  }
  const Frame& boundary() const {
    for (std::size_t k = frames_.size(); k-- > 1;)
      if (frames_[k].repeats) return frames_[k];
    return frames_.front();
  }

  // Whether `v` is read after the statement that is looked at.
  bool read_later(Value v) const {
    for (std::size_t k = frames_.size(); k-- > 0;) {
      const auto found = frames_[k].last.find(v);
      if (found != frames_[k].last.end() && (found->second == kResult || found->second > frames_[k].at)) return true;
      if (frames_[k].repeats) return false;
    }
    return false;
  }

  // Why the copy of `source` must stay; empty: it may go. What nobody reads later is no longer looked at: chains of
  // updates share one root.
  std::string obstacle(Value source) {
    for (const Value root : roots_.at(source)) {
      const auto home = home_.find(root);
      if (home == home_.end())
        return fmt::format("'{}' belongs to the caller, or to a map", function_.values.name(root));
      if (home->second != boundary().body)
        return fmt::format("'{}' is made outside a body that may run more than once", function_.values.name(root));
      if (is_read_later(root))
        return fmt::format("'{}' is read later", function_.values.name(*members_.at(root).begin()));
    }
    return {};
  }
  // Whether something with the root is.
  bool is_read_later(Value root) {
    std::set<Value>& members = members_.at(root);
    std::erase_if(members, [&](Value v) { return !read_later(v); });
    return !members.empty();
  }

  // ---- the walk

  void enter(const Body& body, bool repeats) {
    Frame frame{&body, repeats, 0, {}};
    for (std::size_t k = 0; k < body.stms.size(); ++k)
      for (const Value v : free_values(body.stms[k].op, function_.values)) frame.last[now(v)] = k;
    for (const Operand& result : body.results)
      if (result.is_value()) frame.last[now(result.value())] = kResult;
    frames_.push_back(std::move(frame));
    for (std::size_t k = 0; k < body.stms.size(); ++k) {
      frames_.back().at = k;
      statement(body.stms[k]);
    }
    frames_.pop_back();
  }

  void statement(const Stm& stm) {
    const auto all_fresh = [&] {
      for (const Value v : stm.pattern) fresh(v);
    };
    if (const auto* copy = get_if<Copy>(stm)) {
      this->copy(stm, now(copy->array));
    } else if (const auto source = same_memory(stm.op)) {
      give(stm.pattern.front(), roots(*source));
    } else if (const auto* scatter = get_if<Scatter>(stm)) {
      lambda(scatter->map);
      if (scatter->op) lambda(scatter->op->op);
      for (const auto& [made, target] : ranges::views::zip(stm.pattern, scatter->targets)) give(made, roots(target));
    } else if (const auto bodies = branches(stm.op); !bodies.empty()) {
      for (const BodyPtr& branch : bodies) enter(*branch, false);
      std::vector<Roots> yielded(stm.pattern.size());
      for (std::size_t k = 0; k < stm.pattern.size(); ++k)
        for (const BodyPtr& branch : bodies) yielded[k].merge(roots(branch->results[k]));
      adopt(stm.pattern, std::move(yielded));
    } else if (const auto* loop = get_if<Loop>(stm)) {
      iterations(stm, *loop);
    } else if (const auto* screma = get_if<Screma>(stm)) {
      lambda(screma->map);
      std::size_t k = 0;
      std::vector<Value> reduced;
      std::vector<Roots> neutrals;
      for (const ReduceOp& reduce : screma->reduces) {
        lambda(reduce.op);
        // Over no elements the result is the neutral element itself.
        for (const Operand& neutral : reduce.neutral) {
          const Value v = stm.pattern[k++];
          if (reduce.scan) {
            fresh(v);
            continue;
          }
          reduced.push_back(v);
          neutrals.push_back(roots(neutral));
        }
      }
      adopt(reduced, std::move(neutrals));
      for (; k < stm.pattern.size(); ++k) fresh(stm.pattern[k]);
    } else if (const auto* apply = get_if<Apply>(stm)) {
      Roots given;
      for (const Operand& x : apply->arguments) given.merge(roots(x));
      adopt(stm.pattern, std::vector<Roots>(stm.pattern.size(), given));
    } else {
      for_each_body(stm.op, [&](const BodyPtr& body) { enter(*body, true); });
      all_fresh();
    }
  }

  // What a statement with bodies yields: each value has storage of its own, or that of its roots in `from`. A root that
  // nobody reads later but through these values says no more than the first of those that may lie there: chains of
  // branches would collect such roots.
  void adopt(const std::vector<Value>& made, std::vector<Roots> from) {
    std::map<Value, Value> first;
    for (std::size_t k = 0; k < made.size(); ++k)
      for (const Value root : from[k]) first.emplace(root, made[k]);
    std::set<Value> ends;
    for (const auto& [root, value] : first) {
      const auto home = home_.find(root);
      if (home == home_.end()) continue;
      // Made inside, it is the result's now.
      if (std::ranges::none_of(frames_, [&](const Frame& f) { return f.body == home->second; }))
        home->second = boundary().body;
      if (home->second == boundary().body && !is_read_later(root)) ends.insert(root);
    }
    for (std::size_t k = 0; k < made.size(); ++k) {
      if (!is_array(function_.values, made[k])) continue;
      Roots roots{made[k]};
      for (const Value root : from[k]) roots.insert(ends.contains(root) ? first.at(root) : root);
      home_[made[k]] = boundary().body;
      give(made[k], std::move(roots));
    }
  }

  void lambda(const Lambda& lambda) {
    for (const Value param : lambda.params) foreign(param);
    enter(*lambda.body, true);
  }

  void iterations(const Stm& stm, const Loop& loop) {
    // A parameter's storage is what the loop started with: overwriting it consumes that, which is allowed only if it
    // was made for the loop.
    for (const auto& [param, initial] : ranges::views::zip(loop.params, loop.initial)) {
      if (!is_array(function_.values, param)) continue;
      give(param, {param});
      if (starts_.contains(initial.value())) home_[param] = loop.body.get();
    }
    enter(*loop.body, true);
    std::map<Value, std::size_t> number;
    for (const Value param : loop.params) number.emplace(param, number.size());
    std::vector<Roots> yielded(loop.params.size());
    for (std::size_t k = 0; k < loop.params.size(); ++k) {
      Roots& all = yielded[k];
      all = roots(loop.initial[k]);
      for (const Value root : roots(loop.body->results[k])) {
        const auto param = number.find(root);
        if (param == number.end())
          all.insert(root);
        else
          all.merge(roots(loop.initial[param->second]));
      }
    }
    adopt(stm.pattern, std::move(yielded));
  }

  void copy(const Stm& stm, Value source) {
    const Value result = stm.pattern.front();
    if (!is_array(function_.values, result)) return;
    const std::string why = obstacle(source);
    const bool own = !starts_.contains(result);  // of the program, not made by this pass
    if (why.empty()) {
      replaced_.insert_or_assign(result, Operand(source));
      // The copy's readers are the source's now.
      Frame& frame = frames_.back();
      if (const auto found = frame.last.find(result); found != frame.last.end()) {
        const std::size_t last = found->second;
        auto& mine = frame.last[source];
        if (mine != kResult && (last == kResult || last > mine)) mine = last;
      }
      for (const Value root : roots_.at(source)) members_.at(root).insert(source);
      elided_ += own ? 1 : 0;
    } else {
      fresh(result);
    }
    if (!context_.remarks || (!why.empty() && !own)) return;
    context_.remark({.kind = why.empty() ? RemarkKind::applied : RemarkKind::missed,
                     .pass = "elide-copies",
                     .code = why.empty() ? "in-place" : "copy-kept",
                     .location = stm.location,
                     .function = function_.name,
                     .message = why.empty() ? fmt::format("'{}' is overwritten in place", function_.values.name(source))
                                            : fmt::format("'{}' is copied before it is overwritten: {}",
                                                          function_.values.name(source), why),
                     .facts = {}});
  }

  // The body without the copies that went.
  BodyPtr without(const BodyPtr& old) {
    std::vector<Stm> stms;
    bool changed = false;
    for (const Stm& stm : old->stms) {
      if (std::holds_alternative<Copy>(stm.op) && replaced_.contains(stm.pattern.front())) {
        changed = true;
        continue;
      }
      stms.push_back(stm);
      stms.back().op = map_bodies(stm.op, [&](const BodyPtr& inner) {
        BodyPtr made = without(inner);
        changed = changed || made != inner;
        return made;
      });
    }
    return changed ? make_body(std::move(stms), old->results) : old;
  }

  Function& function_;
  const PassContext& context_;
  const std::set<Value>& starts_;
  std::vector<Frame> frames_;
  std::map<Value, Roots> roots_;
  std::map<Value, std::set<Value>> members_;  // of each root
  std::map<Value, const Body*> home_;         // of roots that may be overwritten: the body that repeats around them
  Substitution replaced_;
  std::size_t elided_ = 0;
};

Result<Change> elide_copies(Module& module, PassContext& context) {
  return change_functions(module, [&](Function& function) {
    bool copies = false;
    for_each_stm(*function.body, [&](const Stm& stm) { copies = copies || std::holds_alternative<Copy>(stm.op); });
    if (!copies) return false;
    LoopStarts starts(function.values);
    function.body = starts.body(function.body);
    // Copies made for loops count only if they let one of the program's go.
    return CopyEliminator(function, context, starts.made()).run() > 0;
  });
}

}  // namespace

PassInfo elide_copies_pass() {
  return {.name = "elide-copies",
          .summary = "overwrite arrays in place where nobody reads them afterwards",
          .takes = stage_bit(Stage::soac),
          .remark_codes = {{"in-place", "an array is overwritten without a copy"},
                           {"copy-kept", "an array is copied before it is overwritten, and why"}},
          .run = elide_copies,
          .needs_differentiate = true};
}

}  // namespace apl
