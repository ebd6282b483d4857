// Every value is bound once, and read only where it is in scope.
#include <fmt/format.h>

#include "ir/verify/check.h"
#include "ir/walk.h"

namespace apl::verifier {
namespace {

class Scopes {
 public:
  explicit Scopes(Check& check) : check_(check), bound_(check.values().size()), in_scope_(check.values().size()) {}

  void run() {
    const Function& function = check_.function;
    std::vector<Value> first = function.sizes;
    first.insert(first.end(), function.params.begin(), function.params.end());
    // A parameter lies in the caller's memory: its block, where nothing else defines it, comes with it.
    for (Value param : function.params)
      if (const Type& type = check_.type(param); type.memory && !mentions(first, type.memory->block))
        first.push_back(type.memory->block);
    bind(first, nullptr);
    bind(function.result_sizes, nullptr);
    for (const Type& type : function.results)
      for_each_use(type, [&](Value v) {
        if (!in_scope_[v.id])
          check_.broken(fmt::format("the type of a result mentions {}, which is no size or parameter", check_.name(v)));
      });
    leave(function.result_sizes);
    body(*function.body, nullptr);
  }

 private:
  static bool mentions(const std::vector<Value>& values, Value v) {
    for (Value other : values)
      if (other == v) return true;
    return false;
  }

  void report(const Stm* stm, const std::string& what) { stm ? check_.broken(*stm, what) : check_.broken(what); }

  void read(Value v, const Stm* stm, const char* how) {
    if (!in_scope_[v.id]) report(stm, fmt::format("{} {}, which is not in scope", how, check_.name(v)));
  }

  // Values bound together may mention each other in their types.
  void bind(const std::vector<Value>& values, const Stm* stm) {
    for (Value v : values) {
      if (bound_[v.id]) report(stm, fmt::format("{} is bound more than once", check_.name(v)));
      bound_[v.id] = true;
      in_scope_[v.id] = true;
    }
    for (Value v : values)
      for_each_use(check_.type(v), [&](Value symbol) {
        if (!in_scope_[symbol.id])
          report(stm,
                 fmt::format("the type of {} mentions {}, which is not in scope", check_.name(v), check_.name(symbol)));
      });
  }

  void leave(const std::vector<Value>& values) {
    for (Value v : values) in_scope_[v.id] = false;
  }

  void body(const Body& body, const Stm* owner) {
    for (const Stm& stm : body.stms) {
      for_each_use(stm.op, [&](Value v) { read(v, &stm, "it reads"); });
      for (Value v : stm.certificates) read(v, &stm, "it relies on");
      nested(stm);
      bind(stm.pattern, &stm);
    }
    for (const Operand& result : body.results)
      if (result.is_value()) read(result.value(), owner, "its body gives");
    for (const Stm& stm : body.stms) leave(stm.pattern);
  }

  void with(const std::vector<Value>& binders, const Stm& stm, const BodyPtr& inner) {
    bind(binders, &stm);
    body(*inner, &stm);
    leave(binders);
  }

  void nested(const Stm& stm) {
    if (const If* branch = get_if<If>(stm)) {
      body(*branch->then_body, &stm);
      body(*branch->else_body, &stm);
    } else if (const Loop* loop = get_if<Loop>(stm)) {
      std::vector<Value> binders = loop->params;
      if (loop->index) binders.push_back(loop->index);
      with(binders, stm, loop->body);
    } else if (const Screma* screma = get_if<Screma>(stm)) {
      std::vector<Value> binders = screma->indices;
      binders.insert(binders.end(), screma->map.params.begin(), screma->map.params.end());
      with(binders, stm, screma->map.body);
      for (const ReduceOp& reduce : screma->reduces) with(reduce.op.params, stm, reduce.op.body);
    } else if (const Scatter* scatter = get_if<Scatter>(stm)) {
      std::vector<Value> binders = scatter->indices;
      binders.insert(binders.end(), scatter->map.params.begin(), scatter->map.params.end());
      with(binders, stm, scatter->map.body);
      if (scatter->op) with(scatter->op->op.params, stm, scatter->op->op.body);
    } else if (const SegOp* seg = get_if<SegOp>(stm)) {
      std::vector<Value> binders;
      for (const SegDim& dim : seg->space) binders.push_back(dim.index);
      with(binders, stm, seg->body);
    } else if (const TileContract* tile = get_if<TileContract>(stm)) {
      with(tile->map.params, stm, tile->map.body);
      with(tile->reduce.op.params, stm, tile->reduce.op.body);
    }
  }

  Check& check_;
  std::vector<bool> bound_;
  std::vector<bool> in_scope_;
};

}  // namespace

void check_scopes(Check& check) { Scopes(check).run(); }

}  // namespace apl::verifier
