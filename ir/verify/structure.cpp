// Ids exist, bodies and operations are there, nesting is bounded.
#include <fmt/format.h>

#include <optional>

#include "ir/attributes.h"
#include "ir/nesting.h"
#include "ir/verify/check.h"
#include "ir/walk.h"

namespace apl::verifier {
namespace {

class Structure {
 public:
  explicit Structure(Check& check) : check_(check) {}

  bool run() {
    const std::size_t before = check_.count();
    const Function& function = check_.function;
    for (std::uint32_t id = 0; id < check_.values().size(); ++id)
      for_each_use(check_.type(Value{id}), [&](Value v) {
        if (!exists(v))
          check_.broken(
              fmt::format("the type of `{}` mentions a value that does not exist", check_.values().name(Value{id})));
      });
    attributes(function.attributes, true, [&](const std::string& what) { check_.broken(what); });
    for (const auto* group : {&function.sizes, &function.params, &function.result_sizes})
      for (Value v : *group)
        if (!exists(v)) check_.broken("a parameter does not exist");
    for (const Type& type : function.results)
      for_each_use(type, [&](Value v) {
        if (!exists(v)) check_.broken("the type of a result mentions a value that does not exist");
      });
    if (!function.body) {
      check_.broken("there is no body");
    } else {
      body(*function.body, 0);
    }
    return check_.count() == before;
  }

 private:
  template <class Report>
  static void attributes(const std::vector<Attribute>& all, bool of_function, const Report& report) {
    for (const Attribute& attribute : all)
      if (const auto wrong = check_attribute(attribute, of_function)) report(*wrong);
  }

  bool exists(Value v) const { return v.id < check_.values().size(); }

  std::string foreign_text(Value v) const {
    return v ? fmt::format(": the function has {} values, and number {} is one of another function",
                           check_.values().size(), v.id)
             : "";
  }

  // The names of a statement with a broken pattern cannot be told.
  void broken(const Stm& stm, const std::string& what) {
    for (Value v : stm.pattern)
      if (!exists(v)) return check_.broken(fmt::format("a statement `{}`: {}", op_name(stm.op), what));
    check_.broken(stm, what);
  }

  void body(const Body& body, int depth) {
    for (const Stm& stm : body.stms) statement(stm, depth);
    for (const Operand& result : body.results)
      if (result.is_value() && !exists(result.value()))
        check_.broken("the result of a body does not exist" + foreign_text(result.value()));
  }

  void statement(const Stm& stm, int depth) {
    if (std::holds_alternative<std::monostate>(stm.op)) return broken(stm, "there is no operation");
    if (depth > kDeepestBodies) return broken(stm, fmt::format("bodies are nested more than {} deep", kDeepestBodies));
    std::optional<Value> foreign;
    auto need = [&](Value v) {
      if (!exists(v) && !foreign) foreign = v;
    };
    for (Value v : stm.pattern) need(v);
    for (Value v : stm.certificates) need(v);
    for_each_use(stm.op, need);
    for_each_binder(stm.op, need);
    if (foreign) return broken(stm, "it names a value that does not exist" + foreign_text(*foreign));
    attributes(stm.attributes, false, [&](const std::string& what) { broken(stm, what); });
    if (stm.location.call > check_.module.calls.size())
      return broken(stm, fmt::format("its location names inlined call {}, but there are {}", stm.location.call,
                                     check_.module.calls.size()));
    bool all_bodies = true;
    for_each_body(stm.op, [&](const BodyPtr& inner) { all_bodies = all_bodies && inner; });
    if (!all_bodies) return broken(stm, "a body is missing");
    for_each_body(stm.op, [&](const BodyPtr& inner) { body(*inner, depth + 1); });
  }

  Check& check_;
};

}  // namespace

bool check_structure(Check& check) { return Structure(check).run(); }

bool check_calls(const Module& module, std::vector<Diagnostic>& out) {
  for (std::size_t k = 0; k < module.calls.size(); ++k) {
    if (module.calls[k].call <= k) continue;
    out.push_back(make_error(
        Code::ir_invalid, module.calls[k],
        fmt::format("inlined call {} stands before call {}, which is around it.", k + 1, module.calls[k].call)));
    return false;
  }
  return true;
}

}  // namespace apl::verifier
