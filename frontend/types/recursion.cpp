// Recursive functions, which nothing here can compile. What the language forbids of them is said all the same: their
// results are first-order, and where a parameter is a function, the function itself is only applied, to all of its
// arguments, and hands that parameter on as it is.
#include "frontend/types/recursion.h"

#include <algorithm>
#include <vector>

#include "frontend/syntax/children.h"

namespace apl::frontend {

namespace {

bool has_function(const TypeExpr& type) {
  if (std::holds_alternative<TypeArrow>(type.node)) return true;
  if (const auto* unique = std::get_if<TypeUnique>(&type.node)) return has_function(*unique->type);
  if (const auto* exists = std::get_if<TypeExists>(&type.node)) return has_function(*exists->type);
  if (const auto* tuple = std::get_if<TypeTuple>(&type.node))
    return std::ranges::any_of(tuple->elements, [](const TypeExprPtr& element) { return has_function(*element); });
  if (const auto* record = std::get_if<TypeRecord>(&type.node))
    return std::ranges::any_of(record->fields, [](const auto& field) { return has_function(*field.value); });
  return false;
}

class Rules {
 public:
  explicit Rules(const Definition& definition) : definition_(definition) {
    for (const PatternPtr& param : definition.params) {
      const auto* typed = std::get_if<PatternTyped>(&param->node);
      const auto* name = typed ? std::get_if<TypeName>(&typed->type->node) : nullptr;
      const bool lifted = name && std::ranges::any_of(definition.type_params, [&](const TypeParam& p) {
                            return p.kind == TypeParam::Kind::lifted && p.name == name->name.text;
                          });
      functions_.push_back(typed && (lifted || has_function(*typed->type)));
      const Pattern* inner = typed ? typed->pattern.get() : param.get();
      const auto* bound = std::get_if<PatternName>(&inner->node);
      names_.push_back(bound ? bound->name : "");
    }
  }

  std::optional<Broken> broken() {
    if (definition_.result && has_function(*definition_.result))
      return Broken{definition_.name_location,
                    "The result of the recursive function \"" + definition_.name +
                        "\" is not first-order; a function among the results can be written as further parameters"};
    if (std::ranges::find(functions_, true) != functions_.end()) visit(*definition_.body);
    return broken_;
  }

 private:
  bool is_itself(const Expr& expr) const {
    const auto* variable = std::get_if<Variable>(&expr.node);
    return variable != nullptr && variable->name.qualifiers.empty() && variable->name.text == definition_.name;
  }

  void say(const Expr& expr, std::string message) {
    if (!broken_) broken_ = Broken{expr.location, std::move(message)};
  }

  void visit(const Expr& expr) {
    if (is_itself(expr))
      say(expr,
          "The recursive function \"" + definition_.name + "\" has a higher-order parameter: it may only be applied");
    const auto* call = std::get_if<Call>(&expr.node);
    if (call == nullptr || !is_itself(*call->function)) return for_each_child(expr, [&](const Expr& e) { visit(e); });
    for (const ExprPtr& argument : call->arguments) visit(*argument);
    if (call->arguments.size() < functions_.size())
      return say(expr, "This recursive application of \"" + definition_.name +
                           "\" is not fully saturated: " + std::to_string(call->arguments.size()) + " of " +
                           std::to_string(functions_.size()) + " arguments are given");
    for (std::size_t k = 0; k < functions_.size(); ++k) {
      const auto* variable = std::get_if<Variable>(&call->arguments[k]->node);
      const bool same = variable && variable->name.qualifiers.empty() && variable->name.text == names_[k];
      if (functions_[k] && !same)
        say(*call->arguments[k], "Argument " + std::to_string(k + 1) + " of this recursive application of \"" +
                                     definition_.name + "\" is a function, which must be passed unchanged");
    }
  }

  const Definition& definition_;
  std::vector<char> functions_;  // whether the parameter is one
  std::vector<std::string> names_;
  std::optional<Broken> broken_;
};

}  // namespace

std::optional<Broken> broken_rule_of_recursion(const Definition& definition) { return Rules(definition).broken(); }

}  // namespace apl::frontend
