// double-to-add: an integer times 2 becomes the integer plus itself, at any stage.
//
//   let {y : i32} = mul(x, 2i32)   =>   let {y : i32} = add(x, x)
//
// Deliberately not here: floats, where the rewrite is right but gains nothing, and 2 as the first operand,
// which `simplify` moves to the second place.
#include "double_to_add.h"

#include <apl/ir/walk.h>
#include <apl/passes/functions.h>

namespace {

using namespace apl;

class Rewriter {
 public:
  Rewriter(const Function& function, PassContext& context) : function_(function), context_(context) {}

  BodyPtr rewrite(const BodyPtr& body) {
    std::vector<Stm> stms = body->stms;
    bool changed = false;
    for (Stm& stm : stms) {
      if (const Binary* binary = get_if<Binary>(stm); binary != nullptr && is_double(*binary)) {
        stm.op = Binary{.op = BinaryOp::add, .x = binary->x, .y = binary->x};
        context_.remark({.kind = RemarkKind::applied,
                         .pass = "double-to-add",
                         .code = "doubled",
                         .location = stm.location,
                         .function = function_.name,
                         .message = "a product by 2 is now a sum",
                         .facts = {},
                         .suggestion = {}});
        changed = true;
        continue;
      }
      stm.op = map_bodies(stm.op, [&](const BodyPtr& inner) {
        BodyPtr result = rewrite(inner);
        changed = changed || result != inner;
        return result;
      });
    }
    // What did not change is shared with the module before.
    return changed ? make_body(std::move(stms), body->results) : body;
  }

 private:
  static bool is_double(const Binary& binary) {
    return binary.op == BinaryOp::mul && binary.y.is_constant() && is_integer(binary.y.constant().type()) &&
           binary.y.constant().as_int() == 2;
  }

  const Function& function_;
  PassContext& context_;
};

Result<Change> run(Module& module, PassContext& context) {
  return change_functions(module, [&](Function& function) {
    const BodyPtr before = function.body;
    function.body = Rewriter(function, context).rewrite(before);
    return function.body != before;
  });
}

}  // namespace

PassInfo double_to_add_pass() {
  PassInfo pass;
  pass.name = "double-to-add";
  pass.summary = "turns integer products by 2 into sums";
  pass.remark_codes = {{"doubled", "a product was replaced"}};
  pass.run = run;
  return pass;
}
