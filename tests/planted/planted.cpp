// A plug-in of passes that are wrong: each replaces one kind of operation by a similar one that means something else.
// The tests of `aplc reduce` and `aplc bisect` look for them.
#include <algorithm>
#include <functional>
#include <optional>

#include "ir/walk.h"
#include "passes/plugin.h"

namespace {

using namespace apl;

using Rule = std::function<std::optional<Op>(const Op&, const ValueTable&)>;

template <class T>
Rule rule(std::function<std::optional<Op>(T, const ValueTable&)> rewrite) {
  return [rewrite = std::move(rewrite)](const Op& op, const ValueTable& values) -> std::optional<Op> {
    const T* found = std::get_if<T>(&op);
    return found ? rewrite(*found, values) : std::nullopt;
  };
}

Rule binary(BinaryOp from, std::function<Op(const Binary&)> rewrite) {
  return rule<Binary>([=](const Binary& op, const ValueTable& values) -> std::optional<Op> {
    const bool wanted = op.op == from && is_integer(values.type(op.x).element);
    return wanted ? std::optional(rewrite(op)) : std::nullopt;
  });
}

Rule binary(BinaryOp from, BinaryOp to) {
  return binary(from, [=](const Binary& op) -> Op { return Binary{to, op.x, op.y}; });
}

Operand i32(std::int64_t x) { return Scalar::integer(ScalarType::i32, x); }

BodyPtr rewritten(const BodyPtr& body, const Rule& rule, const ValueTable& values) {
  std::vector<Stm> stms = body->stms;
  bool changed = false;
  for (Stm& stm : stms) {
    if (auto op = rule(stm.op, values)) stm.op = std::move(*op), changed = true;
    stm.op = map_bodies(stm.op, [&](const BodyPtr& inner) {
      BodyPtr next = rewritten(inner, rule, values);
      changed = changed || next != inner;
      return next;
    });
  }
  return changed ? make_body(std::move(stms), body->results) : body;
}

PassInfo planted(const std::string& name, const Rule& rule) {
  PassInfo pass;
  pass.name = "planted-" + name;
  pass.summary = "wrong on purpose";
  pass.takes = stage_bit(Stage::soac);
  pass.run = [rule](Module& module, PassContext&) -> Result<Change> {
    Change change = Change::no;
    for (FunctionPtr& function : module.functions) {
      BodyPtr body = rewritten(function->body, rule, function->values);
      if (body == function->body) continue;
      Function copy = *function;
      copy.body = std::move(body);
      function = std::make_shared<const Function>(std::move(copy));
      change = Change::yes;
    }
    return change;
  };
  return pass;
}

void add(PassRegistry& registry) {
  const auto put = [&](const std::string& name, const Rule& rule) { registry.add(planted(name, rule)); };
  put("sub-swapped", binary(BinaryOp::sub, [](const Binary& op) -> Op { return Binary{op.op, op.y, op.x}; }));
  put("add-dropped", rule<Binary>([](const Binary& op, const ValueTable&) -> std::optional<Op> {
        if (op.op != BinaryOp::add || !op.y.is_constant()) return std::nullopt;
        return Use{op.x};
      }));
  put("mul-added", binary(BinaryOp::mul, BinaryOp::add));
  put("max-min", binary(BinaryOp::max, BinaryOp::min));
  put("min-first", binary(BinaryOp::min, [](const Binary& op) -> Op { return Use{op.x}; }));
  put("xor-or", binary(BinaryOp::exor, BinaryOp::disj));
  put("and-first", binary(BinaryOp::conj, [](const Binary& op) -> Op { return Use{op.x}; }));
  put("lt-le", rule<Compare>([](const Compare& op, const ValueTable&) -> std::optional<Op> {
        if (op.op != CompareOp::lt) return std::nullopt;
        return Compare{CompareOp::le, op.x, op.y};
      }));
  put("eq-true", rule<Compare>([](const Compare& op, const ValueTable&) -> std::optional<Op> {
        if (op.op != CompareOp::eq) return std::nullopt;
        return Use{Scalar::boolean(true)};
      }));
  put("neg-dropped", rule<Unary>([](const Unary& op, const ValueTable&) -> std::optional<Op> {
        if (op.op != UnaryOp::neg) return std::nullopt;
        return Use{op.x};
      }));
  put("convert-zero", rule<Convert>([](const Convert& op, const ValueTable&) -> std::optional<Op> {
        if (op.to != ScalarType::i64) return std::nullopt;
        return Use{Scalar::integer(ScalarType::i64, 0)};
      }));
  put("branches-swapped", rule<If>([](If op, const ValueTable&) -> std::optional<Op> {
        std::swap(op.then_body, op.else_body);
        return op;
      }));
  put("branch-taken", rule<If>([](If op, const ValueTable&) -> std::optional<Op> {
        op.condition = Scalar::boolean(true);
        return op;
      }));
  put("loop-short", rule<Loop>([](Loop op, const ValueTable&) -> std::optional<Op> {
        if (!op.bound.constant() || *op.bound.constant() < 1) return std::nullopt;
        op.bound = op.bound - 1;
        return op;
      }));
  put("loop-start", rule<Loop>([](Loop op, const ValueTable& values) -> std::optional<Op> {
        if (values.type(op.initial[0]).element != ScalarType::i32 || !values.type(op.initial[0]).is_scalar())
          return std::nullopt;
        op.initial[0] = i32(0);
        return op;
      }));
  put("neutral-one", rule<Screma>([](Screma op, const ValueTable&) -> std::optional<Op> {
        bool changed = false;
        for (ReduceOp& reduce : op.reduces)
          if (reduce.neutral[0] == i32(0) && !reduce.scan) reduce.neutral[0] = i32(1), changed = true;
        return changed ? std::optional<Op>(op) : std::nullopt;
      }));
  put("inputs-swapped", rule<Screma>([](Screma op, const ValueTable& values) -> std::optional<Op> {
        if (op.inputs.size() < 2 || !values.type(op.inputs[0]).same(values.type(op.inputs[1]))) return std::nullopt;
        std::swap(op.inputs[0], op.inputs[1]);
        return op;
      }));
  put("iota-start", rule<Iota>([](Iota op, const ValueTable&) -> std::optional<Op> {
        op.start = Scalar::zero(op.element);
        return op;
      }));
  put("replicate-zero", rule<Replicate>([](Replicate op, const ValueTable& values) -> std::optional<Op> {
        if (!values.type(op.value).is_scalar()) return std::nullopt;
        op.value = Scalar::zero(values.type(op.value).element);
        return op;
      }));
  put("update-dropped",
      rule<Update>([](const Update& op, const ValueTable&) -> std::optional<Op> { return Use{op.array}; }));
}

}  // namespace

APL_PASS_PLUGIN("planted", "1", add)
