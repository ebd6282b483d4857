// The expressions right below an expression.
#pragma once

#include <variant>
#include <vector>

#include "frontend/syntax/ast.h"

namespace apl::frontend {

template <class Visit>
struct ChildVisitor {
  Visit& visit;

  void add(const ExprPtr& expr) {
    if (expr) visit(static_cast<const Expr&>(*expr));
  }
  void add(const std::vector<ExprPtr>& exprs) {
    for (const ExprPtr& expr : exprs) add(expr);
  }
  void add(const std::vector<IndexDim>& dims) {
    for (const IndexDim& dim : dims) add(dim.start), add(dim.end), add(dim.stride);
  }
  void add(const std::vector<AccessStep>& steps) {
    for (const AccessStep& step : steps) add(step.dims);
  }
  void add(const LetBinding& binding) {
    if (const auto* pattern = std::get_if<LetPattern>(&binding.node)) add(pattern->value);
    if (const auto* function = std::get_if<LetFunction>(&binding.node)) add(function->body);
    if (const auto* update = std::get_if<LetUpdate>(&binding.node)) add(update->steps), add(update->value);
  }

  void operator()(const TupleExpr& e) { add(e.elements); }
  void operator()(const ArrayExpr& e) { add(e.elements); }
  void operator()(const RecordExpr& e) {
    for (const auto& field : e.fields) add(field.value);
  }
  void operator()(const Project& e) { add(e.record); }
  void operator()(const LocalOpen& e) { add(e.body); }
  void operator()(const IndexExpr& e) { add(e.array), add(e.dims); }
  void operator()(const Call& e) { add(e.function), add(e.arguments); }
  void operator()(const Negate& e) { add(e.x); }
  void operator()(const Not& e) { add(e.x); }
  void operator()(const Infix& e) { add(e.x), add(e.y); }
  void operator()(const Section& e) { add(e.left), add(e.right); }
  void operator()(const AccessSection& e) { add(e.steps); }
  void operator()(const LambdaExpr& e) { add(e.body); }
  void operator()(const IfExpr& e) {
    for (const IfArm& arm : e.arms) add(arm.condition), add(arm.value);
    add(e.else_value);
  }
  void operator()(const LetExpr& e) {
    for (const LetBinding& binding : e.bindings) add(binding);
    add(e.body);
  }
  void operator()(const LoopExpr& e) {
    add(e.initial), add(e.body);
    if (const auto* less = std::get_if<ForLess>(&e.form)) add(less->bound);
    if (const auto* in = std::get_if<ForIn>(&e.form)) add(in->array);
    if (const auto* loop = std::get_if<While>(&e.form)) add(loop->condition);
  }
  void operator()(const Ascribe& e) { add(e.x); }
  void operator()(const RangeExpr& e) { add(e.start), add(e.second), add(e.end); }
  void operator()(const UpdateExpr& e) { add(e.source), add(e.steps), add(e.value); }
  void operator()(const AssertExpr& e) { add(e.condition), add(e.value); }
  void operator()(const Attributed& e) { add(e.x); }
  void operator()(const ConstructorExpr& e) { add(e.arguments); }
  void operator()(const MatchExpr& e) {
    add(e.x);
    for (const MatchCase& next : e.cases) add(next.body);
  }
  template <class Leaf>
  void operator()(const Leaf& /* has none */) {}
};

// Calls `visit` with each, in the order of the text for most.
template <class Visit>
void for_each_child(const Expr& expr, Visit visit) {
  std::visit(ChildVisitor<Visit>{visit}, expr.node);
}

}  // namespace apl::frontend
