#include "frontend/syntax/ast.h"

#include "frontend/syntax/parser.h"

namespace apl::frontend {

namespace {

template <class T, class Print>
std::string joined(const std::vector<T>& items, Print print) {
  std::string text;
  for (const T& item : items) text += (text.empty() ? "" : ", ") + print(item);
  return text;
}

struct TypePrinter {
  std::string operator()(const TypeName& type) const { return type.name.to_string(); }
  std::string operator()(const TypeTuple& type) const {
    return "(" + joined(type.elements, [](const TypeExprPtr& t) { return to_text(*t); }) + ")";
  }
  std::string operator()(const TypeRecord& type) const {
    return "{" + joined(type.fields, [](const auto& f) { return f.name + ": " + to_text(*f.value); }) + "}";
  }
  std::string operator()(const TypeArray& type) const {
    return "[" + (type.size ? to_text(*type.size) : "") + "]" + to_text(*type.element);
  }
  std::string operator()(const TypeArrow& type) const {
    std::string from = to_text(*type.from);
    if (!type.param.empty())
      from = "(" + type.param + ": " + from + ")";
    else if (std::holds_alternative<TypeArrow>(type.from->node))
      from = "(" + from + ")";
    return from + " -> " + to_text(*type.to);
  }
  std::string operator()(const TypeUnique& type) const { return "*" + to_text(*type.type); }
  std::string operator()(const TypeApply& type) const {
    std::string text = type.name.to_string();
    for (const TypeArgumentExpr& argument : type.arguments)
      text +=
          argument.is_size ? " [" + (argument.size ? to_text(*argument.size) : "") + "]" : " " + atom(*argument.type);
    return text;
  }
  std::string operator()(const TypeSum& type) const {
    std::string text;
    for (const SumConstructor& constructor : type.constructors) {
      text += (text.empty() ? "#" : " | #") + constructor.name;
      for (const TypeExprPtr& part : constructor.payload) text += " " + atom(*part);
    }
    return text;
  }
  std::string operator()(const TypeExists& type) const {
    std::string text = "?";
    for (const TypeParam& size : type.sizes) text += "[" + size.name + "]";
    return text + "." + to_text(*type.type);
  }
  // In parentheses where it would read as several.
  static std::string atom(const TypeExpr& type) {
    const bool simple = std::holds_alternative<TypeName>(type.node) || std::holds_alternative<TypeTuple>(type.node) ||
                        std::holds_alternative<TypeRecord>(type.node);
    return simple ? to_text(type) : "(" + to_text(type) + ")";
  }
};

constexpr std::size_t kMaxText = 60;

struct ExprPrinter {
  Parentheses parentheses;

  std::string text(const Expr& x) const { return to_text(x, parentheses); }
  std::string operator()(const Literal& e) const { return e.value.to_text(); }
  std::string operator()(const NumberLiteral& e) const {
    if (!e.too_large.empty()) return e.too_large;
    return e.is_float ? "..." : std::to_string(e.integer);
  }
  std::string operator()(const Variable& e) const { return e.name.to_string(); }
  std::string operator()(const Infix& e) const {
    const Fixity outer = fixity_of(e.op.text);
    auto part = [&](const Expr& x, bool left) {
      const auto* infix = std::get_if<Infix>(&x.node);
      const int inner = infix ? fixity_of(infix->op.text).precedence : 0;
      const bool tight = inner > outer.precedence || (inner == outer.precedence && left != outer.right);
      return infix && (!tight || parentheses == Parentheses::all) ? "(" + text(x) + ")" : text(x);
    };
    return part(*e.x, true) + " " + e.op.to_string() + " " + part(*e.y, false);
  }
  std::string argument(const Expr& x) const {
    const bool simple = !std::holds_alternative<Infix>(x.node) && !std::holds_alternative<Call>(x.node);
    return simple ? text(x) : "(" + text(x) + ")";
  }
  std::string operator()(const Call& e) const {
    std::string result = text(*e.function);
    for (const ExprPtr& x : e.arguments) result += " " + argument(*x);
    return short_enough(std::move(result));
  }
  std::string operator()(const Negate& e) const { return "-" + argument(*e.x); }
  std::string operator()(const Not& e) const { return "!" + argument(*e.x); }
  std::string operator()(const IndexExpr& e) const { return text(*e.array) + "[...]"; }
  std::string operator()(const Project& e) const { return text(*e.record) + "." + e.field; }
  std::string operator()(const ConstructorExpr& e) const {
    std::string result = "#" + e.name;
    for (const ExprPtr& x : e.arguments) result += " " + argument(*x);
    return short_enough(std::move(result));
  }
  std::string operator()(const RangeExpr& e) const {
    const char* end = e.kind == RangeExpr::End::below ? "..<" : e.kind == RangeExpr::End::above ? "..>" : "...";
    return text(*e.start) + (e.second ? ".." + text(*e.second) : "") + end + text(*e.end);
  }
  std::string operator()(const TupleExpr& e) const {
    return short_enough("(" + joined(e.elements, [&](const ExprPtr& x) { return text(*x); }) + ")");
  }
  std::string operator()(const ArrayExpr& e) const {
    return short_enough("[" + joined(e.elements, [&](const ExprPtr& x) { return text(*x); }) + "]");
  }
  std::string operator()(const RecordExpr& e) const {
    return short_enough("{" + joined(e.fields, [&](const auto& f) { return f.name + " = " + text(*f.value); }) + "}");
  }
  static std::string short_enough(std::string text) { return text.size() > kMaxText ? "..." : text; }
  template <class Other>
  std::string operator()(const Other&) const {
    return "...";
  }
};

}  // namespace

std::string Name::to_string() const {
  std::string result;
  for (const std::string& qualifier : qualifiers) result += qualifier + ".";
  return result + text;
}

std::string to_text(const TypeExpr& type) { return std::visit(TypePrinter{}, type.node); }
std::string to_text(const Expr& expr, Parentheses parentheses) {
  return std::visit(ExprPrinter{parentheses}, expr.node);
}

const PatternName* as_name(const Pattern& pattern) {
  if (const auto* typed = std::get_if<PatternTyped>(&pattern.node)) return as_name(*typed->pattern);
  return std::get_if<PatternName>(&pattern.node);
}

}  // namespace apl::frontend
