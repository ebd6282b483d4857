// Tree to IR. Operations on vectors become a map each: what belongs together is put together by the pass `fuse`.
#include <map>
#include <optional>

#include <apl/ir/builder.h>

#include "tree.h"

namespace toy {
namespace {

using namespace apl;

class Lowerer {
 public:
  explicit Lowerer(const Definition& definition) : definition_(definition), builder_(function_.values) {}

  Result<FunctionPtr> run() {
    const Value n = function_.values.add(Type::scalar(ScalarType::i64), "n");
    EntryInfo entry{.name = definition_.name, .params = {}, .param_values = {}, .results = {}};
    bool has_vector = false;
    for (const Param& param : definition_.params) {
      const Type type = param.is_vector ? Type::array(ScalarType::f32, {n}) : Type::scalar(ScalarType::f32);
      const Value value = function_.values.add(type, param.name);
      has_vector = has_vector || param.is_vector;
      function_.params.push_back(value);
      names_[param.name] = value;
      entry.params.push_back({param.name, param.is_vector ? "[n]f32" : "f32"});
      entry.param_values.push_back(1);
    }
    if (has_vector) function_.sizes = {n};
    const Operand result = lower(definition_.body);
    if (error_) return *error_;
    function_.name = definition_.name;
    function_.location = definition_.location;
    function_.results = {function_.values.type(result)};
    entry.results = {{.type = function_.results[0].is_array() ? "[n]f32" : "f32"}};
    function_.entry = entry;
    function_.body = builder_.finish({result});
    return std::make_shared<const Function>(std::move(function_));
  }

 private:
  static BinaryOp operation(char op) {
    return op == '+' ? BinaryOp::add : op == '-' ? BinaryOp::sub : op == '*' ? BinaryOp::mul : BinaryOp::div;
  }

  Operand lower(const Expr& expr) {
    switch (expr.kind) {
      case Expr::Kind::number: return Scalar::floating(ScalarType::f32, expr.number);
      case Expr::Kind::name: {
        const auto found = names_.find(expr.name);
        if (found != names_.end()) return found->second;
        if (!error_) error_ = make_error(Code::type_unknown_name, expr.location, "there is no '" + expr.name + "'");
        return Scalar::zero(ScalarType::f32);
      }
      case Expr::Kind::binary:
        return binary(operation(expr.op), lower(expr.operands[0]), lower(expr.operands[1]), expr);
      case Expr::Kind::sum: {
        const Operand x = lower(expr.operands[0]);
        if (!builder_.type(x).is_array()) return x;
        builder_.set_location(expr.location);
        return builder_.reduce("sum", builder_.reduce_op(BinaryOp::add, Scalar::zero(ScalarType::f32)), x.value());
      }
    }
    return {};
  }

  // A scalar operand of a vector operation is the same for all elements.
  Operand binary(BinaryOp op, Operand x, Operand y, const Expr& expr) {
    builder_.set_location(expr.location);
    std::vector<Value> vectors;
    for (const Operand& operand : {x, y})
      if (builder_.type(operand).is_array()) vectors.push_back(operand.value());
    if (vectors.empty()) return builder_.binary(op, x, y);
    return builder_.map("v", vectors, [&](Builder& inner, BoundValues rows) {
      std::size_t next = 0;
      const auto element = [&](const Operand& operand) {
        return inner.type(operand).is_array() ? Operand(rows[next++]) : operand;
      };
      const Operand left = element(x), right = element(y);
      return inner.binary(op, left, right);
    });
  }

  const Definition& definition_;
  Function function_;
  Builder builder_;
  std::map<std::string, Value> names_;
  std::optional<Diagnostic> error_;
};

}  // namespace

Result<Module> lower(const std::vector<Definition>& definitions, const std::string& file) {
  Module module;
  module.file = file;
  for (const Definition& definition : definitions) {
    auto function = Lowerer(definition).run();
    if (!function) return std::move(function).error();
    module.functions.push_back(*std::move(function));
  }
  return module;
}

}  // namespace toy
