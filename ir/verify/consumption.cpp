// What an operation consumes is not used again: neither the array nor anything that may share its elements.
// Consuming operations are Update, CopyTile, Apply with a unique parameter, Loop whose body consumes a parameter,
// Scatter, and Screma whose lambda consumes a row. A body that may run more than once consumes nothing from outside.
#include <fmt/format.h>

#include <map>
#include <set>

#include "ir/verify/check.h"
#include "ir/walk.h"

namespace apl::verifier {
namespace {

using Values = std::set<Value>;

class Consumption {
 public:
  explicit Consumption(Check& check) : check_(check) {}

  void run() {
    for (Value param : check_.function.params) {
      bind(param, {});
      if (!check_.type(param).unique) kept_params_.insert(param);
    }
    body(*check_.function.body, nullptr);
  }

 private:
  bool is_array(Value v) const { return check_.type(v).is_array(); }

  const Values& aliases(Value v) {
    Values& known = aliases_[v];
    known.insert(v);
    return known;
  }

  void bind(Value v, const Values& shared) {
    if (!is_array(v)) return;
    Values& known = aliases_[v];
    known.insert(v);
    known.insert(shared.begin(), shared.end());
    order_[v] = ++bound_;
  }

  void use(Value v, const Stm* stm) {
    if (!is_array(v)) return;
    for (Value alias : aliases(v)) {
      if (!consumed_.count(alias)) continue;
      const std::string what = alias == v ? fmt::format("{} is used after it was consumed", check_.name(v))
                                          : fmt::format("{} is used after {} was consumed, whose elements it may share",
                                                        check_.name(v), check_.name(alias));
      stm ? check_.broken(*stm, what) : check_.broken(what);
      return;
    }
  }

  void consume(Value v, const Stm& stm) {
    if (!is_array(v)) return;
    for (Value alias : aliases(v)) {
      if (kept_params_.count(alias))
        check_.broken(stm, fmt::format("it consumes {}, which belongs to the caller", check_.name(alias)));
      else if (auto found = order_.find(alias); found != order_.end() && found->second <= repeated_from_)
        check_.broken(stm, fmt::format("it consumes {}, which is bound outside a body that may run more than once",
                                       check_.name(alias)));
      consumed_.insert(alias);
    }
  }

  void body(const Body& body, const Stm* owner) {
    for (const Stm& stm : body.stms) statement(stm);
    for (const Operand& result : body.results)
      if (result.is_value()) use(result.value(), owner);
  }

  // Aliases of a body's result that are known outside of it.
  void share_outer(const Operand& result, std::uint64_t outside, Values& into) {
    if (!result.is_value() || !is_array(result.value())) return;
    for (Value alias : aliases(result.value()))
      if (order_[alias] <= outside) into.insert(alias);
  }

  // A body that may run more than once: what was bound up to `outside` may not be consumed in it.
  void repeated(const Body& inner, const Stm& stm, std::uint64_t outside) {
    const std::uint64_t before = repeated_from_;
    repeated_from_ = outside;
    body(inner, &stm);
    repeated_from_ = before;
  }

  void statement(const Stm& stm) {
    for_each_use(stm.op, [&](Value v) { use(v, &stm); });
    std::vector<Values> shared(stm.pattern.size());
    if (const If* branch = get_if<If>(stm)) {
      branches(stm, *branch, shared);
    } else if (const Loop* loop = get_if<Loop>(stm)) {
      iterations(stm, *loop, shared);
    } else if (const Screma* screma = get_if<Screma>(stm)) {
      rows(stm, *screma);
    } else if (const Scatter* scatter = get_if<Scatter>(stm)) {
      repeated(*scatter->map.body, stm, bound_);
      if (scatter->op) repeated(*scatter->op->op.body, stm, bound_);
      for (std::size_t k = 0; k < scatter->targets.size(); ++k) {
        const Value target = scatter->targets[k];
        for (std::size_t j = 0; j < k; ++j)
          if (overlap(target, scatter->targets[j]))
            check_.broken(stm, fmt::format("{} and {} are both written, but may share elements", check_.name(target),
                                           check_.name(scatter->targets[j])));
        consume(target, stm);
      }
    } else if (const TileContract* tile = get_if<TileContract>(stm)) {
      repeated(*tile->map.body, stm, bound_);
      repeated(*tile->reduce.op.body, stm, bound_);
    } else if (const SegOp* seg = get_if<SegOp>(stm)) {
      repeated(*seg->body, stm, bound_);
    } else if (const Update* update = get_if<Update>(stm)) {
      if (update->value.is_value() && is_array(update->value.value()) && overlap(update->value.value(), update->array))
        check_.broken(stm, fmt::format("{} is replaced by {}, whose elements it may share", check_.name(update->array),
                                       check_.name(update->value.value())));
      consume(update->array, stm);
    } else if (const CopyTile* copy = get_if<CopyTile>(stm)) {
      if (overlap(copy->source, copy->target))
        check_.broken(stm, fmt::format("{} is copied to {}, whose elements it may share", check_.name(copy->source),
                                       check_.name(copy->target)));
      consume(copy->target, stm);
    } else if (const Apply* apply = get_if<Apply>(stm)) {
      call(stm, *apply);
    } else if (std::optional<Value> source = viewed(stm.op); source && !shared.empty() && is_array(*source)) {
      shared.front() = aliases(*source);
    }
    for (std::size_t k = 0; k < stm.pattern.size(); ++k) bind(stm.pattern[k], shared[k]);
  }

  bool overlap(Value a, Value b) {
    const Values& others = aliases(b);
    for (Value alias : aliases(a))
      if (others.count(alias)) return true;
    return false;
  }

  static std::optional<Value> viewed(const Op& op) {
    if (const Use* use = std::get_if<Use>(&op)) return use->x.is_value() ? std::optional(use->x.value()) : std::nullopt;
    if (const Index* index = std::get_if<Index>(&op)) return index->array;
    if (const Rearrange* rearrange = std::get_if<Rearrange>(&op)) return rearrange->array;
    if (const Reshape* reshape = std::get_if<Reshape>(&op)) return reshape->array;
    return std::nullopt;
  }

  void branches(const Stm& stm, const If& op, std::vector<Values>& shared) {
    const Values before = consumed_;
    const std::uint64_t outside = bound_;
    body(*op.then_body, &stm);
    Values after = std::move(consumed_);
    consumed_ = before;
    body(*op.else_body, &stm);
    consumed_.insert(after.begin(), after.end());
    for (std::size_t k = 0; k < shared.size() && k < op.then_body->results.size(); ++k) {
      share_outer(op.then_body->results[k], outside, shared[k]);
      share_outer(op.else_body->results[k], outside, shared[k]);
      drop_consumed(shared[k]);
    }
  }

  // What was consumed on the way lives on as the result alone.
  void drop_consumed(Values& values) const {
    for (Value v : consumed_) values.erase(v);
  }

  void iterations(const Stm& stm, const Loop& op, std::vector<Values>& shared) {
    const std::uint64_t outside = bound_;
    for (Value param : op.params) bind(param, {});
    repeated(*op.body, stm, outside);
    for (std::size_t k = 0; k < op.params.size(); ++k)
      if (consumed_.count(op.params[k]) && op.initial[k].is_value()) consume(op.initial[k].value(), stm);
    for (std::size_t k = 0; k < shared.size() && k < op.params.size(); ++k) {
      share_outer(op.initial[k], outside, shared[k]);
      const Operand& next = op.body->results[k];
      share_outer(next, outside, shared[k]);
      // A parameter that is passed on stands for what it started as.
      if (next.is_value() && is_array(next.value()))
        for (std::size_t j = 0; j < op.params.size(); ++j)
          if (aliases(next.value()).count(op.params[j])) share_outer(op.initial[j], outside, shared[k]);
      drop_consumed(shared[k]);
    }
  }

  void rows(const Stm& stm, const Screma& op) {
    std::uint64_t outside = bound_;
    for (Value param : op.map.params) bind(param, {});
    repeated(*op.map.body, stm, outside);
    for (std::size_t k = 0; k < op.map.params.size(); ++k)
      if (consumed_.count(op.map.params[k])) consume(op.inputs[k], stm);
    for (const ReduceOp& reduce : op.reduces) {
      outside = bound_;
      for (Value param : reduce.op.params) bind(param, {});
      repeated(*reduce.op.body, stm, outside);
    }
  }

  void call(const Stm& stm, const Apply& op) {
    const Function* callee = check_.find(op.function);
    if (!callee) return;
    for (std::size_t k = 0; k < op.arguments.size(); ++k) {
      if (k < callee->sizes.size() || !op.arguments[k].is_value()) continue;
      if (callee->type(callee->params[k - callee->sizes.size()]).unique) consume(op.arguments[k].value(), stm);
    }
  }

  Check& check_;
  std::map<Value, Values> aliases_;       // what shares elements with a value, itself included
  std::map<Value, std::uint64_t> order_;  // when a value was bound, from 1
  std::uint64_t bound_ = 0;
  std::uint64_t repeated_from_ = 0;  // bound up to here: outside the innermost repeated body
  Values consumed_;
  Values kept_params_;
};

}  // namespace

void check_consumption(Check& check) { Consumption(check).run(); }

}  // namespace apl::verifier
