#include "codegen/kernel/kernel_language.h"

#include <cmath>

#include <fmt/format.h>

namespace apl::kernel {
namespace {

ExprPtr make(Expr::Kind kind, std::string text, std::vector<ExprPtr> args = {}, CType type = {}) {
  return std::make_shared<const Expr>(Expr{kind, std::move(text), type, std::move(args)});
}

std::string float_text(const Scalar& value) {
  double x = value.as_float();
  const ScalarFacts& type = facts(value.type());
  if (type.arithmetic != ScalarArithmetic::own) {
    const std::string single = float_text(Scalar::floating(ScalarType::f32, x));
    return is_storage(value.type()) ? fmt::format("apl_to_{}({})", type.text, single)
                                    : fmt::format("({}){}", type.kernel_type, single);
  }
  const char* suffix = value.type() == ScalarType::f64 ? "" : "f";
  // NAN and INFINITY are floats; C++ would not choose between the functions for floats and for doubles.
  const std::string wide = value.type() == ScalarType::f64 ? "(double)" : "";
  if (std::isnan(x)) return wide + "NAN";
  if (std::isinf(x)) return wide + (x < 0 ? "-INFINITY" : "INFINITY");
  // The shortest text that reads back, which Scalar already knows; its suffix is not C's.
  std::string text = value.to_text();
  text.resize(text.size() - apl::to_text(value.type()).size());
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text + suffix;
}

}  // namespace

// NVRTC has no stdint.h, and the least number has no literal of its own.
ExprPtr literal(std::int64_t value) {
  if (value == INT64_MIN) return make(Expr::Kind::literal, "(-9223372036854775807 - 1)");
  return make(Expr::Kind::literal, std::to_string(value));
}

ExprPtr literal(const Scalar& value) {
  if (is_float(value.type())) return make(Expr::Kind::literal, float_text(value));
  if (value.type() == ScalarType::boolean) return make(Expr::Kind::literal, value.as_bool() ? "true" : "false");
  if (value.type() == ScalarType::u64) return make(Expr::Kind::literal, std::to_string(value.bits()) + "u");
  return literal(value.as_int());
}

ExprPtr variable(std::string name) { return make(Expr::Kind::variable, std::move(name)); }
ExprPtr prefix(std::string op, ExprPtr a) { return make(Expr::Kind::prefix, std::move(op), {std::move(a)}); }
ExprPtr infix(std::string op, ExprPtr a, ExprPtr b) {
  return make(Expr::Kind::infix, std::move(op), {std::move(a), std::move(b)});
}
ExprPtr call(std::string function, std::vector<ExprPtr> args) {
  return make(Expr::Kind::call, std::move(function), std::move(args));
}
ExprPtr element(std::string buffer, ExprPtr index) {
  return make(Expr::Kind::element, std::move(buffer), {std::move(index)});
}
ExprPtr cast(CType type, ExprPtr a) { return make(Expr::Kind::cast, "", {std::move(a)}, type); }
ExprPtr select(ExprPtr condition, ExprPtr a, ExprPtr b) {
  return make(Expr::Kind::select, "?:", {std::move(condition), std::move(a), std::move(b)});
}

std::optional<std::int64_t> number(const ExprPtr& e) {
  bool digits = e->kind == Expr::Kind::literal && !e->text.empty() && e->text.size() < 18 &&
                e->text.find_first_not_of("0123456789", e->text[0] == '-' ? 1 : 0) == std::string::npos;
  if (!digits) return std::nullopt;
  return std::stoll(e->text);
}

ExprPtr add(ExprPtr a, ExprPtr b) {
  auto x = number(a), y = number(b);
  if (x == 0) return b;
  if (y == 0) return a;
  if (x && y) return literal(*x + *y);
  if (y && *y < 0) return infix("-", std::move(a), literal(-*y));
  return infix("+", std::move(a), std::move(b));
}

ExprPtr mul(ExprPtr a, ExprPtr b) {
  auto x = number(a), y = number(b);
  if (x == 0 || y == 0) return literal(std::int64_t{0});
  if (x == 1) return b;
  if (y == 1) return a;
  if (x && y) return literal(*x * *y);
  // An int times a large number, as a row of a tile times a stride, may be more than an int holds.
  constexpr std::int64_t kLarge = std::int64_t{1} << 19;
  const auto wide = [](std::optional<std::int64_t> k, ExprPtr& e) {
    if (k && std::abs(*k) >= kLarge && std::abs(*k) <= INT32_MAX) e = make(Expr::Kind::literal, e->text + "LL");
  };
  wide(x, a), wide(y, b);
  return infix("*", std::move(a), std::move(b));
}

Stmt declare(CType type, std::string name, ExprPtr value, bool constant) {
  Stmt s;
  s.kind = Stmt::Kind::declare;
  s.type = type;
  s.name = std::move(name);
  s.value = std::move(value);
  s.constant = constant;
  return s;
}

Stmt declare_array(CType type, std::string name, std::int64_t count) {
  Stmt s;
  s.kind = Stmt::Kind::array;
  s.type = type;
  s.name = std::move(name);
  s.count = count;
  return s;
}

Stmt assign(ExprPtr target, ExprPtr value) {
  Stmt s;
  s.kind = Stmt::Kind::assign;
  s.target = std::move(target);
  s.value = std::move(value);
  return s;
}

Stmt for_loop(CType type, std::string name, ExprPtr bound, Block body) {
  Stmt s;
  s.kind = Stmt::Kind::for_loop;
  s.type = type;
  s.name = std::move(name);
  s.from = literal(std::int64_t{0});
  s.step = literal(std::int64_t{1});
  s.value = std::move(bound);
  s.body = std::move(body);
  return s;
}

Stmt branch(ExprPtr condition, Block then_body, Block else_body) {
  Stmt s;
  s.kind = Stmt::Kind::branch;
  s.value = std::move(condition);
  s.body = std::move(then_body);
  s.else_body = std::move(else_body);
  return s;
}

Stmt comment(std::string text) {
  Stmt s;
  s.kind = Stmt::Kind::comment;
  s.name = std::move(text);
  return s;
}

}  // namespace apl::kernel
