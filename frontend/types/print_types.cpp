// Types and sizes as text, for messages and for entries.
#include "frontend/syntax/ast.h"
#include "frontend/syntax/lexer.h"
#include "frontend/types/types.h"

namespace apl::frontend {

namespace {

// Types shared by construction print as trees; a text longer than this helps nobody.
constexpr std::size_t kMaxTypeText = 600;
constexpr int kMaxSizeDepth = 6;

// `+`, also as `i64.+`.
bool is_operator(const std::string& name) { return !name.empty() && is_operator_start(name.back()); }

}  // namespace

std::string TypeStore::to_text(Size size) const { return to_text(size, 0); }

// The number that sums and differences of numbers are.
std::optional<std::int64_t> TypeStore::constant_value(Size size, int depth) const {
  if (const auto* constant = get_if<SizeConst>(size)) return constant->value;
  const auto* op = get_if<SizeOp>(size);
  if (op == nullptr || op->op == '*' || depth > kMaxSizeDepth) return std::nullopt;
  const auto x = constant_value(op->x, depth + 1), y = constant_value(op->y, depth + 1);
  if (!x || !y) return std::nullopt;
  const auto u = static_cast<std::uint64_t>(*x), v = static_cast<std::uint64_t>(*y);
  return static_cast<std::int64_t>(op->op == '+' ? u + v : u - v);
}

// A size that nothing says yet is `[]`; inside of an operation it is called after the size parameter that it is for.
std::string TypeStore::to_text(Size size, int depth) const {
  const SizeNode& node = this->node(size);
  if (const auto* variable = std::get_if<SizeVar>(&node)) {
    if (depth == 0) return "";
    return variable->param == kNoId ? "_" : "?" + binders_[variable->param].name;
  }
  if (const auto* constant = std::get_if<SizeConst>(&node)) return std::to_string(constant->value);
  if (const auto* name = std::get_if<SizeName>(&node)) return binders_[name->binder].name;
  if (depth > kMaxSizeDepth) return "...";
  const auto is_call = [&](Size s) {
    const auto* expr = get_if<SizeExpr>(s);
    return get_if<SizeOp>(s) || (expr && expr->kind == SizeExpr::Kind::call);
  };
  const auto part = [&](Size s) { return is_call(s) ? "(" + to_text(s, depth + 1) + ")" : to_text(s, depth + 1); };
  if (const auto value = constant_value(size, depth)) return std::to_string(*value);
  if (const auto* op = std::get_if<SizeOp>(&node)) return part(op->x) + " " + op->op + " " + part(op->y);
  const auto& expr = std::get<SizeExpr>(node);
  switch (expr.kind) {
    case SizeExpr::Kind::name:
    case SizeExpr::Kind::literal: return expr.text;
    case SizeExpr::Kind::field: return part(expr.parts[0]) + "." + expr.text;
    case SizeExpr::Kind::other: return apl::frontend::to_text(*expr.expr);
    case SizeExpr::Kind::call: break;
  }
  const std::string function = to_text(expr.parts[0], depth + 1);
  if (expr.parts.size() == 3 && is_operator(function))
    return part(expr.parts[1]) + " " + function + " " + part(expr.parts[2]);
  std::string text = function;
  for (std::size_t k = 1; k < expr.parts.size(); ++k) text += " " + part(expr.parts[k]);
  return text;
}

std::string TypeStore::to_text(Ty type) const {
  struct Printer {
    const TypeStore& store;
    std::string text;

    bool full() const { return text.size() > kMaxTypeText; }
    void put(Ty t, bool argument) {
      if (full()) return;
      const TyNode& node = store.node(t);
      if (std::holds_alternative<TyVar>(node)) {
        const ScalarSet set = std::get<TyVar>(node).constraint.scalars;
        text += set == 0 ? "_" : (set & ~kFloats) == 0 ? "float" : (set & ~kIntegers) == 0 ? "integer" : "number";
      } else if (const auto* param = std::get_if<TyParam>(&node)) {
        text += store.params_[param->param].name;
      } else if (const auto* scalar = std::get_if<TyScalar>(&node)) {
        text += apl::to_text(scalar->type);
      } else if (const auto* array = std::get_if<TyArray>(&node)) {
        text += "[" + store.to_text(array->size) + "]";
        put(array->element, true);
      } else if (const auto* record = std::get_if<TyRecord>(&node)) {
        put(*record);
      } else if (const auto* arrow = std::get_if<TyArrow>(&node)) {
        put(*arrow, argument);
      } else if (const auto* sum = std::get_if<TySum>(&node)) {
        put(*sum, argument);
      } else if (const auto* abstract = std::get_if<TyAbstract>(&node)) {
        text += store.abstracts_[abstract->id].name;
        for (Size size : abstract->sizes) text += " [" + store.to_text(size) + "]";
        for (Ty part : abstract->types) text += " ", put(part, true);
      } else {
        text += "?";
      }
    }
    void put(const TySum& sum, bool argument) {
      if (argument) text += "(";
      for (std::size_t k = 0; k < sum.constructors.size() && !full(); ++k) {
        text += (k > 0 ? " | #" : "#") + sum.constructors[k].first;
        for (Ty part : sum.constructors[k].second) text += " ", put(part, true);
      }
      if (argument) text += ")";
    }
    void put(const TyRecord& record) {
      const bool tuple = store.is_tuple(record);
      text += tuple ? "(" : "{";
      for (std::size_t k = 0; k < record.fields.size() && !full(); ++k) {
        if (k > 0) text += ", ";
        if (!tuple) text += record.fields[k].first + ": ";
        put(record.fields[k].second, false);
      }
      text += tuple ? ")" : "}";
    }
    void put(const TyArrow& arrow, bool argument) {
      if (argument) text += "(";
      if (arrow.param != kNoId) text += "(" + store.binders_[arrow.param].name + ": ";
      put(arrow.from, true);
      if (arrow.param != kNoId) text += ")";
      text += " -> ";
      put(arrow.to, false);
      if (argument) text += ")";
    }
  };
  Printer printer{*this, {}};
  printer.put(type, false);
  if (printer.full()) printer.text = printer.text.substr(0, kMaxTypeText) + " ...";
  return printer.text;
}

}  // namespace apl::frontend
