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
      for_each_scope(stm.op,
                     [&](const std::vector<Value>& binders, const BodyPtr& inner) { with(binders, stm, inner); });
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

  Check& check_;
  std::vector<bool> bound_;
  std::vector<bool> in_scope_;
};

}  // namespace

void check_scopes(Check& check) { Scopes(check).run(); }

}  // namespace apl::verifier
