// What an operation consumes is not used again: neither the array nor anything that may share its elements.
// Consuming operations are Update, CopyTile, Apply with a unique parameter, Loop whose body consumes a parameter,
// Scatter, and Screma whose lambda consumes a row. A body that may run more than once consumes nothing from outside.
#include <fmt/format.h>
#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <unordered_map>

#include "ir/node_info.h"
#include "ir/verify/aliases.h"
#include "ir/verify/check.h"
#include "ir/walk.h"

namespace apl::verifier {
namespace {

class Consumption {
 public:
  explicit Consumption(Check& check)
      : check_(check), aliases_(check.values().size()), kept_params_(check.values().size()) {}

  void run() {
    for (Value param : check_.function.params) {
      bind(param, {});
      if (!check_.type(param).unique) kept_params_[param.id] = true;
    }
    body(*check_.function.body, nullptr);
  }

 private:
  using Shared = std::vector<Aliases::Edge>;

  bool is_array(Value v) const { return check_.type(v).is_array(); }

  void bind(Value v, const Shared& shared) {
    if (is_array(v)) aliases_.bind(v, shared);
  }

  void use(Value v, const Stm* stm) {
    if (!is_array(v)) return;
    const std::optional<Value> alias = aliases_.consumed_alias(v);
    if (!alias) return;
    const std::string what = *alias == v ? fmt::format("{} is used after it was consumed", check_.name(v))
                                         : fmt::format("{} is used after {} was consumed, whose elements it may share",
                                                       check_.name(v), check_.name(*alias));
    stm ? check_.broken(*stm, what) : check_.broken(what);
  }

  void consume(Value v, const Stm& stm) {
    if (!is_array(v)) return;
    for (Value alias : aliases_.of(v)) {
      const std::uint64_t order = aliases_.order(alias);
      if (kept_params_[alias.id])
        check_.broken(stm, fmt::format("it consumes {}, which belongs to the caller", check_.name(alias)));
      else if (order != Aliases::kUnbound && order <= repeated_from_)
        check_.broken(stm, fmt::format("it consumes {}, which is bound outside a body that may run more than once",
                                       check_.name(alias)));
      aliases_.consume(alias);
    }
  }

  void body(const Body& body, const Stm* owner) {
    for (const Stm& stm : body.stms) statement(stm);
    for (const Operand& result : body.results)
      if (result.is_value()) use(result.value(), owner);
  }

  // Aliases of a body's result that are known outside of it.
  void share_outer(const Operand& result, std::uint64_t outside, Shared& into) {
    if (!result.is_value() || !is_array(result.value())) return;
    aliases_.outer(result.value(), outside, into);
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
    std::vector<Shared> shared(stm.pattern.size());
    if (is_branch(stm.op)) {
      one_of(stm, apl::branches(stm.op), shared);
    } else if (const Loop* loop = get_if<Loop>(stm)) {
      iterations(stm, *loop, shared);
    } else if (const Screma* screma = get_if<Screma>(stm)) {
      rows(stm, *screma);
    } else if (const Scatter* scatter = get_if<Scatter>(stm)) {
      scattered(stm, *scatter);
    } else if (const Derivative* derivative = get_if<Derivative>(stm)) {
      const std::uint64_t outside = aliases_.bound();
      for (Value param : derivative->function.params) bind(param, {});
      repeated(*derivative->function.body, stm, outside);
    } else if (const TileContract* tile = get_if<TileContract>(stm)) {
      repeated(*tile->map.body, stm, aliases_.bound());
      repeated(*tile->reduce.op.body, stm, aliases_.bound());
    } else if (const SegOp* seg = get_if<SegOp>(stm)) {
      repeated(*seg->body, stm, aliases_.bound());
    } else if (const Update* update = get_if<Update>(stm)) {
      if (update->value.is_value() && is_array(update->value.value()) &&
          aliases_.overlap(update->value.value(), update->array))
        check_.broken(stm, fmt::format("{} is replaced by {}, whose elements it may share", check_.name(update->array),
                                       check_.name(update->value.value())));
      consume(update->array, stm);
    } else if (const CopyTile* copy = get_if<CopyTile>(stm)) {
      if (aliases_.overlap(copy->source, copy->target))
        check_.broken(stm, fmt::format("{} is copied to {}, whose elements it may share", check_.name(copy->source),
                                       check_.name(copy->target)));
      if (copy->map) repeated(*copy->map->body, stm, aliases_.bound());
      consume(copy->target, stm);
    } else if (const Apply* apply = get_if<Apply>(stm)) {
      call(stm, *apply);
    } else if (std::optional<Value> source = viewed(stm.op); source && !shared.empty() && is_array(*source)) {
      shared.front() = {{*source}};
    }
    for (const auto& [made, its] : ranges::views::zip(stm.pattern, shared)) bind(made, its);
  }

  void one_of(const Stm& stm, const std::vector<BodyPtr>& bodies, std::vector<Shared>& shared) {
    const std::uint64_t outside = aliases_.bound();
    const std::size_t before = aliases_.mark();
    std::vector<Value> consumed;
    for (std::size_t b = 0; b < bodies.size(); ++b) {
      body(*bodies[b], &stm);
      if (b + 1 == bodies.size()) break;
      const std::vector<Value> here = aliases_.undo(before);
      consumed.insert(consumed.end(), here.begin(), here.end());
    }
    for (Value v : consumed) aliases_.consume(v);
    for (const BodyPtr& one : bodies)
      for (const auto& [result, its] : ranges::views::zip(one->results, shared)) share_outer(result, outside, its);
    for (Shared& its : shared) {
      // What was consumed on the way lives on as the result alone.
      aliases_.drop_consumed(its);
    }
  }

  void iterations(const Stm& stm, const Loop& op, std::vector<Shared>& shared) {
    const std::uint64_t outside = aliases_.bound();
    std::unordered_map<Value, std::size_t> number;
    for (Value param : op.params) {
      bind(param, {});
      number.emplace(param, number.size());
    }
    const std::uint64_t params = aliases_.bound();
    repeated(*op.body, stm, outside);
    for (const auto& [param, initial] : ranges::views::zip(op.params, op.initial))
      if (aliases_.is_consumed(param) && initial.is_value()) consume(initial.value(), stm);
    for (std::size_t k = 0; k < shared.size() && k < op.params.size(); ++k) {
      share_outer(op.initial[k], outside, shared[k]);
      Shared next;
      share_outer(op.body->results[k], params, next);
      for (const Aliases::Edge& edge : next) {
        // A parameter that is passed on stands for what it started as.
        const auto param = number.find(edge.to);
        if (param == number.end())
          shared[k].push_back(edge);
        else
          share_outer(op.initial[param->second], outside, shared[k]);
      }
      aliases_.drop_consumed(shared[k]);
    }
  }

  void rows(const Stm& stm, const Screma& op) {
    std::uint64_t outside = aliases_.bound();
    for (Value param : op.map.params) bind(param, {});
    repeated(*op.map.body, stm, outside);
    for (const auto& [param, input] : ranges::views::zip(op.map.params, op.inputs))
      if (aliases_.is_consumed(param)) consume(input, stm);
    for (const ReduceOp& reduce : op.reduces) {
      outside = aliases_.bound();
      for (Value param : reduce.op.params) bind(param, {});
      repeated(*reduce.op.body, stm, outside);
    }
  }

  void scattered(const Stm& stm, const Scatter& op) {
    repeated(*op.map.body, stm, aliases_.bound());
    if (op.op) repeated(*op.op->op.body, stm, aliases_.bound());
    std::unordered_map<Value, std::vector<std::size_t>> writers;  // of what may be shared
    for (std::size_t k = 0; k < op.targets.size(); ++k) {
      const Value target = op.targets[k];
      std::vector<std::size_t> others;
      for (Value alias : aliases_.of(target)) {
        std::vector<std::size_t>& known = writers[alias];
        others.insert(others.end(), known.begin(), known.end());
        known.push_back(k);
      }
      std::ranges::sort(others);
      const auto end = std::ranges::unique(others).begin();
      for (auto j = others.begin(); j != end; ++j)
        check_.broken(stm, fmt::format("{} and {} are both written, but may share elements", check_.name(target),
                                       check_.name(op.targets[*j])));
      consume(target, stm);
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
  Aliases aliases_;
  std::uint64_t repeated_from_ = 0;  // bound up to here: outside the innermost repeated body
  std::vector<bool> kept_params_;
};

}  // namespace

void check_consumption(Check& check) { Consumption(check).run(); }

}  // namespace apl::verifier
