// hello: says hello from each function, and removes double negations at any stage.
//
//   let {y : i32} = neg(x)
//   let {z : i32} = neg(y)   =>   let {z : i32} = x
//
// The first negation stays, as something else may read it; `simplify` removes it where nothing does.
#include "hello_pass.h"

#include <map>
#include <string>

#include <apl/ir/walk.h>
#include <apl/passes/functions.h>

namespace {

using namespace apl;

class Rewriter {
 public:
  BodyPtr rewrite(const BodyPtr& body) {
    std::vector<Stm> stms = body->stms;
    bool changed = false;
    for (Stm& stm : stms) {
      if (const auto* unary = get_if<Unary>(stm); unary != nullptr && unary->op == UnaryOp::neg) {
        const auto inner = unary->x.is_value() ? negated_.find(unary->x.value()) : negated_.end();
        if (inner != negated_.end()) {
          stm.op = Use{inner->second};
          ++count;
          changed = true;
        } else {
          negated_.emplace(stm.pattern.front(), unary->x);
        }
        continue;
      }
      stm.op = map_bodies(stm.op, [&](const BodyPtr& nested) {
        BodyPtr result = rewrite(nested);
        changed = changed || result != nested;
        return result;
      });
    }
    // What did not change is shared with the module before.
    return changed ? make_body(std::move(stms), body->results) : body;
  }

  int count = 0;

 private:
  std::map<Value, Operand> negated_;  // the result of a negation -> what it negates
};

Result<Change> run(Module& module, PassContext& context) {
  return change_functions(module, [&](Function& function) {
    Rewriter rewriter;
    const BodyPtr before = function.body;
    function.body = rewriter.rewrite(before);
    Remark remark;
    remark.kind = rewriter.count > 0 ? RemarkKind::applied : RemarkKind::analysis;
    remark.pass = "hello";
    remark.code = "hello";
    remark.location = function.location;
    remark.function = function.name;
    remark.message = "hello from `" + function.name + "`: " + std::to_string(rewriter.count) +
                     (rewriter.count == 1 ? " double negation is gone" : " double negations are gone");
    context.remark(remark);
    return function.body != before;
  });
}

}  // namespace

PassInfo hello_pass() {
  PassInfo pass;
  pass.name = "hello";
  pass.summary = "says hello from each function, and removes double negations";
  pass.remark_codes = {{"hello", "always, with the number of negations that are gone"}};
  pass.run = run;
  return pass;
}
