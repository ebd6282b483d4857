// Removes what nothing needs: statements, results of branches, loops, soacs and kernels, inputs of soacs, parameters
// of loops. Checks, calls of functions that have some, and what can fail in the same way, stay: a program that fails
// must go on failing.
//
// At the memory stage what writes to an array's memory stays, too, even if nobody reads the array by that name.
//
// Two phases. Marking goes from the function's results, and from what must run, to what they need; a value, a statement
// and a result of a body are each marked once, so that the cost is linear. Sweeping rebuilds the bodies that lose
// something.
#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "passes/analysis/simplified.h"
#include "passes/simplify/simplifier.h"

namespace apl {

class DeadCode {
 public:
  DeadCode(Function& function, const Module& module)
      : function_(function),
        module_(module),
        placed_(module.stage == Stage::memory),
        used_(function.values.size(), false),
        sources_(function.values.size()) {}

  bool run() {
    index(*function_.body);
    for (const Operand& result : function_.body->results) mark(result);
    for (const Type& type : function_.results) mark_type(type);
    run_all(*function_.body);
    follow();
    // What must run though nobody reads a result: the last one first, as it may read the others.
    while (!unread_.empty()) {
      const auto last = std::prev(unread_.end());
      const Stm& stm = *last->second;
      unread_.erase(last);
      if (gives_nothing(stm)) {
        marks_.at(&stm).blank = true;
        continue;
      }
      for (std::size_t k = 0; k < stm.pattern.size(); ++k) need(stm, k);
      follow();
    }
    function_.body = sweep(function_.body);
    return changed_;
  }

 private:
  void mark(Value v) {
    if (!function_.values.contains(v) || used_[v.id]) return;
    used_[v.id] = true;
    pending_.push_back(v);
  }
  void mark(const Operand& x) {
    if (x.is_value()) mark(x.value());
  }
  void mark(const Poly& p) {
    p.for_each_symbol([&](Value v) { mark(v); });
  }
  void mark_type(const Type& type) {
    for_each_use(type, [&](Value v) { mark(v); });
  }
  bool used(Value v) const { return function_.values.contains(v) && used_[v.id]; }

  // Whether a value is an array in memory or a block.
  bool has_memory(Value v) const {
    const Type& type = function_.type(v);
    return placed_ && (type.is_array() || type.is_memory());
  }
  // Whether it fills an array's memory: it is no other name for what is there already.
  bool writes(const Stm& stm) const {
    if (std::holds_alternative<Alloc>(stm.op) || std::holds_alternative<Scratch>(stm.op)) return false;
    const auto names = [&](Value source) {
      const MemoryBinding* from = function_.type(source).memory.get();
      const MemoryBinding* to = function_.type(stm.pattern.front()).memory.get();
      return from != nullptr && to != nullptr && from->block == to->block;
    };
    if (const Index* index = get_if<Index>(stm); index != nullptr && names(index->array)) return false;
    if (const Rearrange* view = get_if<Rearrange>(stm); view != nullptr && names(view->array)) return false;
    if (const Reshape* view = get_if<Reshape>(stm); view != nullptr && names(view->array)) return false;
    if (const Use* use = get_if<Use>(stm); use != nullptr && use->x.is_value() && names(use->x.value())) return false;
    return std::ranges::any_of(stm.pattern, [&](Value v) { return has_memory(v); });
  }

  // Whether it must run even if nobody reads its results.
  bool must_keep(const Stm& stm) { return writes(stm) || must_keep(stm.op); }
  bool must_keep(const Op& op) {
    if (std::holds_alternative<Assert>(op)) return true;
    if (const Apply* call = std::get_if<Apply>(&op)) return call_can_fail(call->function);
    if (std::holds_alternative<Iota>(op) || std::holds_alternative<Replicate>(op) ||
        std::holds_alternative<Scratch>(op)) {
      return false;
    }
    if (!has_bodies(op)) return can_fail(op, function_.values);
    bool inside = false;
    for_each_body(op, [&](const BodyPtr& body) { inside = inside || must_keep(*body); });
    return inside;
  }
  // Whether a call of the function can end the program. Of one that calls itself, and of one that is not here, nobody
  // knows.
  bool call_can_fail(const std::string& name) {
    const auto [found, fresh] = call_can_fail_.try_emplace(name, true);
    const Function* callee = fresh ? module_.find(name) : nullptr;
    if (callee == nullptr) return found->second;
    bool fails = false;
    for_each_stm(*callee->body, [&](const Stm& stm) {
      const Apply* call = get_if<Apply>(stm);
      const bool makes = get_if<Iota>(stm) || get_if<Replicate>(stm) || get_if<Scratch>(stm);
      if (fails || has_bodies(stm.op) || makes) return;
      fails = call != nullptr ? call_can_fail(call->function) : can_fail(stm.op, callee->values);
    });
    return call_can_fail_[name] = fails;
  }

  bool must_keep(const Body& body) {
    const auto [found, fresh] = must_keep_.try_emplace(&body, false);
    if (fresh) {
      const bool keep = std::ranges::any_of(body.stms, [&](const Stm& stm) { return must_keep(stm); });
      must_keep_[&body] = keep;
      return keep;
    }
    return found->second;
  }

  // Whether `true` can stand for the results of a branch or a loop, which nobody reads: a loop that carries an array
  // copies it where its body gives another one. Not where a constant is all there is.
  static bool gives_nothing(const Stm& stm) {
    const Loop* loop = get_if<Loop>(stm);
    if (loop == nullptr && !is_branch(stm.op)) return false;
    bool constant = stm.pattern.size() == 1;
    for_each_body(stm.op, [&](const BodyPtr& body) { constant = constant && body->results.front().is_constant(); });
    return !constant && (loop == nullptr || loop->index);
  }

  // Which results of a statement stay. If none is read but it must run, all stay, or one that says nothing: no
  // construct but a kernel is without results.
  std::vector<bool> needed(const Stm& stm) const {
    std::vector<bool> result;
    for (const Value v : stm.pattern) result.push_back(used(v) || has_memory(v));
    if (const Screma* screma = get_if<Screma>(stm)) {  // an operator's results stay or go together
      std::size_t first = 0;
      for (const ReduceOp& reduce : screma->reduces) {
        const auto begin = result.begin() + static_cast<std::ptrdiff_t>(first);
        const auto end = begin + static_cast<std::ptrdiff_t>(reduce.neutral.size());
        std::fill(begin, end, std::find(begin, end, true) != end);
        first += reduce.neutral.size();
      }
    }
    if (const Loop* loop = get_if<Loop>(stm)) {
      for (std::size_t k = 0; k < result.size(); ++k) {
        result[k] = result[k] || used(loop->params[k]) || (!loop->index && k == 0);
      }
    }
    if (std::ranges::find(result, true) == result.end() && !marks_.at(&stm).blank) result.assign(result.size(), true);
    return result;
  }

  // ---- marking

  // Where a value comes from: result `k` of a statement, or the parameter of its loop or map.
  struct Source {
    const Stm* stm = nullptr;  // none: a parameter of the function, or of another construct
    std::size_t k = 0;
    bool param = false;
  };
  struct Operator {
    const ReduceOp* reduce;
    std::size_t first;  // of its results
  };
  struct Marks {
    std::size_t order = 0;  // after all that is inside
    bool runs = false;
    bool blank = false;               // nobody reads a result
    std::vector<bool> needed;         // results
    std::vector<Operator> operators;  // of a Screma's first results
  };

  void set_source(Value v, Source source) {
    if (function_.values.contains(v)) sources_[v.id] = source;
  }

  void index(const Body& body) {
    for (const Stm& stm : body.stms) {
      for (std::size_t k = 0; k < stm.pattern.size(); ++k) set_source(stm.pattern[k], {&stm, k});
      if (const Loop* loop = get_if<Loop>(stm))
        for (std::size_t k = 0; k < loop->params.size(); ++k) set_source(loop->params[k], {&stm, k, true});
      if (const Screma* screma = get_if<Screma>(stm))
        for (std::size_t k = 0; k < screma->map.params.size(); ++k) set_source(screma->map.params[k], {&stm, k, true});
      for_each_body(stm.op, [&](const BodyPtr& inner) { index(*inner); });
      Marks& marks = marks_[&stm];
      marks.order = marks_.size();
      marks.needed.resize(stm.pattern.size(), false);
      if (const Screma* screma = get_if<Screma>(stm))
        for (const ReduceOp& reduce : screma->reduces)
          marks.operators.resize(marks.operators.size() + reduce.neutral.size(),
                                 Operator{&reduce, marks.operators.size()});
    }
  }

  void follow() {
    while (!pending_.empty()) {
      const auto [stm, k, param] = sources_[pending_.back().id];
      pending_.pop_back();
      if (stm == nullptr) continue;
      const Screma* screma = get_if<Screma>(*stm);
      if (param && screma != nullptr) {
        mark(screma->inputs[k]);
        mark_type(function_.type(screma->map.params[k]));
      } else {
        run(*stm);
        need(*stm, k);
      }
    }
  }

  // What must run of a body that runs.
  void run_all(const Body& body) {
    for (const Stm& stm : body.stms)
      if (must_keep(stm)) run(stm);
  }

  void run(const Stm& stm) {
    Marks& marks = marks_.at(&stm);
    if (std::exchange(marks.runs, true)) return;
    for (const Value v : stm.certificates) mark(v);
    for (const Value v : stm.pattern) mark_type(function_.type(v));
    const Loop* loop = get_if<Loop>(stm);
    const Screma* screma = get_if<Screma>(stm);
    const bool selects = selects_results(stm.op);
    if (selects) unread_.emplace(marks.order, &stm);
    if (const If* branch = get_if<If>(stm)) {
      mark(branch->condition);
    } else if (const Choose* choose = get_if<Choose>(stm)) {
      for (const Choose::Alternative& alternative : choose->alternatives) mark(alternative.condition);
    } else if (loop != nullptr) {
      mark(loop->bound);
      if (!loop->index) need(stm, 0);
    } else if (screma != nullptr) {
      for (const Poly& width : screma->widths) mark(width);
    } else {
      for_each_use(stm.op, [&](Value v) { mark(v); });
      for_each_binder(stm.op, [&](Value v) { mark_type(function_.type(v)); });
    }
    for (std::size_t k = 0; selects && k < stm.pattern.size(); ++k)
      if (has_memory(stm.pattern[k])) need(stm, k);
    if (screma != nullptr) {
      run_all(*screma->map.body);  // operators run with their results
    } else {
      for_each_body(stm.op, [&](const BodyPtr& body) {
        if (!selects) mark_all_results(*body);
        run_all(*body);
      });
    }
  }

  // Result `k` of a statement that runs.
  void need(const Stm& stm, std::size_t k) {
    Marks& marks = marks_.at(&stm);
    if (marks.needed[k]) return;
    marks.needed[k] = true;
    unread_.erase(marks.order);
    if (is_branch(stm.op)) {
      for (const BodyPtr& branch : branches(stm.op)) mark(branch->results[k]);
    } else if (const Loop* loop = get_if<Loop>(stm)) {
      mark_type(function_.type(loop->params[k]));  // sizes may be parameters
      mark(loop->initial[k]);
      mark(loop->body->results[k]);
    } else if (const Screma* screma = get_if<Screma>(stm)) {
      mark(screma->map.body->results[k]);
      need_operator(stm, k);
    } else if (const SegOp* kernel = get_if<SegOp>(stm)) {
      mark(kernel->body->results[k]);
    }
  }

  // An operator's results stay or go together.
  void need_operator(const Stm& stm, std::size_t k) {
    const std::vector<Operator>& operators = marks_.at(&stm).operators;
    if (k >= operators.size()) return;
    const auto& [reduce, first] = operators[k];
    if (k != first) return need(stm, first);
    for (std::size_t other = 1; other < reduce->neutral.size(); ++other) need(stm, first + other);
    for (const Operand& neutral : reduce->neutral) mark(neutral);
    for (const Value param : reduce->op.params) mark_type(function_.type(param));
    mark_all_results(*reduce->op.body);
    run_all(*reduce->op.body);
  }

  void mark_all_results(const Body& body) {
    for (const Operand& result : body.results) mark(result);
  }

  static bool selects_results(const Op& op) {
    return is_branch(op) || std::holds_alternative<Loop>(op) || std::holds_alternative<Screma>(op) ||
           std::holds_alternative<SegOp>(op);
  }

  // ---- sweeping

  template <class T>
  static std::vector<T> select(const std::vector<T>& items, const std::vector<bool>& which) {
    std::vector<T> result;
    for (std::size_t k = 0; k < items.size(); ++k) {
      if (which[k]) result.push_back(items[k]);
    }
    return result;
  }

  BodyPtr sweep_results(const BodyPtr& body, const std::vector<bool>& which) {
    const BodyPtr swept = sweep(body);
    if (std::ranges::find(which, false) == which.end()) return swept;
    return make_body(swept->stms, select(swept->results, which));
  }

  BodyPtr sweep(const BodyPtr& body) {
    std::vector<Stm> stms;
    bool same = true;
    for (const Stm& stm : body->stms) {
      const bool live = std::ranges::any_of(stm.pattern, [&](Value v) { return used(v); }) || must_keep(stm);
      if (!live) {
        same = false;
        continue;
      }
      stms.push_back(sweep_stm(stm, same));
    }
    if (same) return body;
    changed_ = true;
    return make_body(std::move(stms), body->results);
  }

  Stm sweep_stm(const Stm& stm, bool& same) {
    bool nested = false;
    for_each_body(stm.op, [&](const BodyPtr&) { nested = true; });
    if (!nested) return stm;
    Stm result = stm;
    std::vector<bool> which(stm.pattern.size(), true);
    const bool selects = selects_results(stm.op);
    if (selects) which = needed(stm);
    const std::size_t before = body_count_;
    if (Screma* screma = std::get_if<Screma>(&result.op)) {
      sweep_screma(*screma, which);
    } else {
      result.op = map_bodies(stm.op, [&](const BodyPtr& body) {
        const BodyPtr swept = selects ? sweep_results(body, which) : sweep(body);
        body_count_ += swept != body ? 1 : 0;
        return swept;
      });
    }
    if (Loop* loop = std::get_if<Loop>(&result.op)) {
      loop->params = select(loop->params, which);
      loop->initial = select(loop->initial, which);
    }
    if (SegOp* kernel = std::get_if<SegOp>(&result.op)) kernel->results = select(kernel->results, which);
    result.pattern = select(stm.pattern, which);
    if (marks_.at(&stm).blank) give_true(result);  // kernels may have no results
    if (result.pattern.size() != stm.pattern.size() || body_count_ != before) same = false;
    return result;
  }

  // A branch or loop without results.
  void give_true(Stm& stm) {
    const Operand done = Scalar::boolean(true);
    const auto fresh = [&] { return function_.values.add(Type::scalar(ScalarType::boolean), "done"); };
    stm.pattern = {fresh()};
    stm.op = map_bodies(stm.op, [&](const BodyPtr& body) { return make_body(body->stms, {done}); });
    if (Loop* loop = std::get_if<Loop>(&stm.op)) {
      loop->params = {fresh()};
      loop->initial = {done};
    }
  }

  void sweep_screma(Screma& screma, const std::vector<bool>& which) {
    const BodyPtr body = sweep_results(screma.map.body, which);
    body_count_ += body != screma.map.body ? 1 : 0;
    screma.map.body = body;
    std::vector<ReduceOp> reduces;
    std::size_t first = 0;
    for (ReduceOp& reduce : screma.reduces) {
      const std::size_t count = reduce.neutral.size();
      if (which[first]) {
        const BodyPtr op = sweep(reduce.op.body);
        body_count_ += op != reduce.op.body ? 1 : 0;
        reduce.op.body = op;
        reduces.push_back(std::move(reduce));
      }
      first += count;
    }
    screma.reduces = std::move(reduces);
    std::vector<bool> read;
    for (const Value param : screma.map.params) read.push_back(used(param));
    body_count_ += static_cast<std::size_t>(std::ranges::count(read, false));
    screma.inputs = select(screma.inputs, read);
    screma.map.params = select(screma.map.params, read);
  }

  Function& function_;
  const Module& module_;
  std::unordered_map<std::string, bool> call_can_fail_;
  bool placed_;                  // arrays have memory
  std::vector<bool> used_;       // by value id
  std::vector<Value> pending_;   // used, and not yet followed
  std::vector<Source> sources_;  // by value id
  std::unordered_map<const Stm*, Marks> marks_;
  std::map<std::size_t, const Stm*> unread_;  // run, but no result is needed so far
  std::unordered_map<const Body*, bool> must_keep_;
  std::size_t body_count_ = 0;  // bodies and inputs changed so far
  bool changed_ = false;
};

bool remove_dead_code(Function& function, const Module& module) { return DeadCode(function, module).run(); }

}  // namespace apl
