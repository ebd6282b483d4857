// Literals, operators, conversions.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tests/random/generator.h"

namespace apl::random_tests {

Expr Generator::literal(ScalarType type, double limit) {
  const Type self{type, {}, {}};
  if (type == ScalarType::boolean) return make(self, 0, {chance(50) ? "true" : "false"});
  const std::string name(apl::to_text(type));
  std::int64_t number = between(chance(30) ? -4 : 0, 4);
  if (is_float(type)) {
    if (static_cast<double>(std::abs(number)) > limit) number = 0;
    return make(self, static_cast<double>(std::abs(number)),
                {number < 0 ? fmt::format("({}{})", number, name) : fmt::format("{}{}", number, name)});
  }
  if (chance(4)) return make(self, 0, {name + (chance(50) ? ".highest" : ".lowest")});
  if (chance(6)) number = between(0, 127);
  if (number < 0 && !is_signed(type)) number = -number;
  return make(self, 0, {number < 0 ? fmt::format("({}{})", number, name) : fmt::format("{}{}", number, name)});
}

// Integers wrap; divisors are odd.
Generator::Maybe Generator::arithmetic(const Type& type, double limit, int depth) {
  if (type.scalar == ScalarType::boolean) {
    static constexpr const char* kOps[] = {"&&", "||", "&&", "||", "==", "!="};
    return make(type, 0,
                {"(", value(type, 0, depth), fmt::format(" {} ", kOps[between(0, 5)]), value(type, 0, depth), ")"});
  }
  if (!is_integer(type.scalar)) return float_arithmetic(type, limit, depth);
  const std::string name(apl::to_text(type.scalar));
  const Expr x = value(type, 0, depth), y = value(type, 0, depth);
  const std::int64_t kind = between(0, 99);
  if (kind < 62) {
    static constexpr const char* kOps[] = {"+", "-", "*"};
    return make(type, 0, {"(", x, fmt::format(" {} ", kOps[between(0, 2)]), y, ")"});
  }
  if (kind < 76) return make(type, 0, {"(" + name + (chance(50) ? ".min " : ".max "), x, " ", y, ")"});
  if (kind < 84) {
    static constexpr const char* kOps[] = {"&", "|", "^"};
    return make(type, 0, {"(", x, fmt::format(" {} ", kOps[between(0, 2)]), y, ")"});
  }
  if (kind < 94) {
    static constexpr const char* kOps[] = {"/", "%", "//", "%%"};
    return make(type, 0, {"(", x, fmt::format(" {} (", kOps[between(0, 3)]), y, " | 1" + name + "))"});
  }
  if (kind < 98) {
    static constexpr const char* kOps[] = {"<<", ">>", ">>>"};
    return make(type, 0, {"(", x, fmt::format(" {} ", kOps[between(0, 2)]), y, ")"});
  }
  return make(type, 0, {"(", x, " ** (", y, " & 3" + name + "))"});
}

Generator::Maybe Generator::float_arithmetic(const Type& type, double limit, int depth) {
  if (!is_float(type.scalar)) return std::nullopt;
  const std::string name(apl::to_text(type.scalar));
  const std::int64_t kind = between(0, 99);
  if (kind < 35 || (kind < 60 && limit < 32)) {
    const Expr x = within(value(type, limit / 2, depth), limit / 2),
               y = within(value(type, limit / 2, depth), limit / 2);
    return make(type, x->magnitude + y->magnitude, {"(", x, chance(60) ? " + " : " - ", y, ")"});
  }
  if (kind < 60) {
    const double root = std::floor(std::sqrt(limit));
    const Expr x = value(type, root, depth), y = value(type, root, depth);
    return make(type, x->magnitude * y->magnitude, {"(", x, " * ", y, ")"});
  }
  const Expr x = value(type, limit, depth);
  if (kind < 85) {
    const Expr y = value(type, limit, depth);
    return make(type, std::max(x->magnitude, y->magnitude),
                {"(" + name + (chance(50) ? ".min " : ".max "), x, " ", y, ")"});
  }
  if (kind < 92) return make(type, x->magnitude, {"(" + name + ".abs ", x, ")"});
  const std::int64_t most = std::clamp<std::int64_t>(static_cast<std::int64_t>(limit), 1, 7);
  if (limit < 1) return std::nullopt;
  return make(type, static_cast<double>(most), {"(", x, fmt::format(" % {}{})", most, name)});
}

Generator::Maybe Generator::unary(const Type& type, double limit, int depth) {
  const std::string name(apl::to_text(type.scalar));
  if (type.scalar == ScalarType::boolean) return make(type, 0, {"(not ", value(type, 0, depth), ")"});
  if (is_float(type.scalar)) return float_arithmetic(type, limit, depth);
  static constexpr const char* kOps[] = {"abs", "sgn", "neg", "not"};
  if (chance(15)) {
    const Type i32{ScalarType::i32, {}, {}};
    if (type.scalar != ScalarType::i32) return std::nullopt;
    const Type other{any_integer(), {}, {}};
    return make(
        i32, 0,
        {fmt::format("({}.{} ", apl::to_text(other.scalar), chance(50) ? "clz" : "popc"), value(other, 0, depth), ")"});
  }
  return make(type, 0, {"(" + name + "." + kOps[between(0, 3)] + " ", value(type, 0, depth), ")"});
}

Generator::Maybe Generator::comparison(const Type& type, double, int depth) {
  if (type.scalar != ScalarType::boolean) return std::nullopt;
  const Type operand{any_scalar(), {}, {}};
  static constexpr const char* kOps[] = {"==", "!=", "<", "<=", ">", ">="};
  const std::int64_t last = operand.scalar == ScalarType::boolean ? 1 : 5;
  const double limit = 1 << 20;
  return make(type, 0,
              {"(", value(operand, limit, depth), fmt::format(" {} ", kOps[between(0, last)]),
               value(operand, limit, depth), ")"});
}

Generator::Maybe Generator::conversion(const Type& type, double limit, int depth) {
  const Type from{any_scalar(), {}, {}};
  if (from.scalar == type.scalar) return std::nullopt;
  const std::string head = fmt::format("({}.{} ", apl::to_text(type.scalar), apl::to_text(from.scalar));
  if (!is_float(type.scalar)) {
    // A negative float is not the same unsigned number everywhere.
    if (is_float(from.scalar) && type.scalar != ScalarType::i32 && type.scalar != ScalarType::i64) return std::nullopt;
    return make(type, 0, {head, value(from, 1 << 20, depth), ")"});
  }
  if (limit < 1) return std::nullopt;
  if (from.scalar == ScalarType::boolean) return make(type, 1, {head, value(from, 0, depth), ")"});
  if (is_float(from.scalar)) {
    const Expr x = value(from, limit, depth);
    return make(type, x->magnitude, {head, x, ")"});
  }
  const std::int64_t most = std::min<std::int64_t>(static_cast<std::int64_t>(limit), between(2, 60));
  return make(type, static_cast<double>(most),
              {head + "(", value(from, 0, depth), fmt::format(" % {}{}))", most, apl::to_text(from.scalar))});
}

Generator::Maybe Generator::size_as_value(const Type& type, double, int) {
  if (type.scalar == ScalarType::i64) {
    const Size size = any_size();
    return make(type, 0, {std::isalpha(size.text[0]) != 0 ? size.in_expression() : size.text + "i64"});
  }
  if (type.scalar != ScalarType::i32) return std::nullopt;
  return make(type, 0, {"(i32.i64 " + any_size().in_expression() + ")"});
}

}  // namespace apl::random_tests
