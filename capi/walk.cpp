#include "capi/walk.h"

#include "ir/walk.h"

namespace apl::capi {

namespace {

bool walk_body(const Function& function, const Body& body, unsigned depth,
               const std::function<bool(const Function&, const Stm&, unsigned)>& visit) {
  for (const Stm& statement : body.stms) {
    if (!visit(function, statement, depth)) return false;
    bool more = true;
    for_each_body(statement.op,
                  [&](const BodyPtr& inner) { more = more && walk_body(function, *inner, depth + 1, visit); });
    if (!more) return false;
  }
  return true;
}

}  // namespace

void walk(const Module& module, const std::function<bool(const Function&, const Stm&, unsigned)>& visit) {
  for (const FunctionPtr& function : module.functions)
    if (!walk_body(*function, *function->body, 0, visit)) return;
}

}  // namespace apl::capi
