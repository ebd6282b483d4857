#include "tests/contractions/operators.h"

#include <fmt/format.h>

namespace apl::contraction_tests {

namespace {

ScalarType narrow(ScalarType type) {
  switch (type) {
    case ScalarType::f32: return ScalarType::f16;
    case ScalarType::f64: return ScalarType::f32;
    case ScalarType::i64: return ScalarType::i32;
    case ScalarType::i32: return ScalarType::i8;
    default: return type;
  }
}

}  // namespace

std::string_view to_text(Operator op) {
  switch (op) {
    case Operator::sum: return "sum";
    case Operator::widened_sum: return "widened sum";
    case Operator::scaled_sum: return "scaled sum";
    case Operator::min_plus: return "min plus";
    case Operator::max_times: return "max times";
    case Operator::first: return "first non-zero";
    case Operator::argmin: return "argmin";
    case Operator::complex: return "complex product";
    case Operator::affine: return "affine composition";
    case Operator::matrix: return "matrix product";
  }
  return "?";
}

bool fits(Operator op, ScalarType type) {
  // Powers of floats would be rounded.
  if (op == Operator::affine || op == Operator::matrix) return is_integer(type);
  if (op == Operator::widened_sum) return narrow(type) != type;
  return true;
}

bool is_commutative(Operator op) { return op != Operator::first && op != Operator::affine && op != Operator::matrix; }

OperatorText operator_text(const Spec& spec) {
  const std::string t(apl::to_text(spec.type));
  const bool floats = is_float(spec.type);
  OperatorText text;
  text.result = t;
  text.stored = spec.type;
  const std::string pair = fmt::format("({0}, {0})", t), four = fmt::format("({0}, {0}, {0}, {0})", t);
  switch (spec.op) {
    case Operator::widened_sum: text.stored = narrow(spec.type); [[fallthrough]];
    case Operator::sum:
    case Operator::scaled_sum: text.op = "(+)", text.neutral = "0", text.sum = t + ".sum"; break;
    case Operator::min_plus:
      text.op = t + ".min", text.neutral = t + (floats ? ".inf" : ".highest"), text.sum = t + ".minimum";
      break;
    case Operator::max_times:
      text.op = t + ".max", text.neutral = floats ? fmt::format("(-{}.inf)", t) : t + ".lowest";
      text.sum = t + ".maximum";
      break;
    case Operator::first: text.op = "(\\u v -> if u == 0 then v else u)", text.neutral = "0"; break;
    case Operator::argmin:
      text.op = "(\\(u, m) (v, n) -> if u < v || (u == v && m < n) then (u, m) else (v, n))";
      text.neutral = fmt::format("({}.{}, i64.highest)", t, floats ? "inf" : "highest");
      text.result = fmt::format("({}, i64)", t);
      break;
    case Operator::complex:
      text.op = "(\\(u0, u1) (v0, v1) -> (u0 + v0, u1 + v1))", text.neutral = "(0, 0)", text.result = pair;
      text.arrays = 2;
      break;
    case Operator::affine:
      text.op = "(\\(u0, u1) (v0, v1) -> (u0 * v0, u1 * v0 + v1))", text.neutral = "(1, 0)", text.result = pair;
      break;
    case Operator::matrix:
      text.op =
          "(\\(u0, u1, u2, u3) (v0, v1, v2, v3) -> "
          "(u0 * v0 + u1 * v2, u0 * v1 + u1 * v3, u2 * v0 + u3 * v2, u2 * v1 + u3 * v3))";
      text.neutral = "(1, 0, 0, 1)", text.result = four;
      break;
  }
  return text;
}

std::string factor_text(Factor factor, ScalarType type, const std::string& element, const std::string& further,
                        const std::string& index) {
  const std::string_view t = apl::to_text(type);
  switch (factor) {
    case Factor::element: return element;
    case Factor::function: return fmt::format("({}.max 1 ({}))", t, element);
    case Factor::by_index: return fmt::format("(if {} % 3 == 1 then {} else 1)", index, element);
    case Factor::masked: return fmt::format("(if {} then {} else 2)", further, element);
    case Factor::limited: return fmt::format("({0}.max 1 ({0}.min ({1}) ({2})))", t, element, further);
  }
  return element;
}

std::string map_text(const Spec& spec, const std::vector<std::string>& elements, const std::string& index) {
  const auto all = [&](const std::string& between) {
    std::string text;
    for (const std::string& e : elements) text += (text.empty() ? "" : between) + e;
    return text;
  };
  switch (spec.op) {
    case Operator::widened_sum: {
      const std::string conversion =
          fmt::format("{}.{} ", apl::to_text(spec.type), apl::to_text(operator_text(spec).stored));
      // Some with a factor that no step changes: of 16 and 8 bits it goes behind the sum.
      return (spec.seed % 3 == 0 ? "3 * " : "") + conversion + all(" * " + conversion);
    }
    case Operator::sum:
    case Operator::scaled_sum:
    case Operator::first:
    case Operator::max_times: return all(" * ");
    case Operator::min_plus: return all(" + ");
    case Operator::argmin: return fmt::format("({}, {})", all(" + "), index);
    case Operator::complex: {
      // ((x0, x1) * (y0, y1)) * ...
      std::string re = elements[0], im = elements[1];
      for (std::size_t k = 2; k < elements.size(); k += 2) {
        const std::string& a = elements[k];
        const std::string& b = elements[k + 1];
        const std::string next = fmt::format("({} * {} - {} * {})", re, a, im, b);
        im = fmt::format("({} * {} + {} * {})", re, b, im, a);
        re = next;
      }
      return fmt::format("({}, {})", re, im);
    }
    case Operator::affine: return fmt::format("({}, {})", elements.front(), all(" + "));
    case Operator::matrix: return fmt::format("({}, {}, 1, {})", elements.front(), elements.back(), all(" + "));
  }
  return {};
}

}  // namespace apl::contraction_tests
