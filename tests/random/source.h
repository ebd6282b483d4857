// Futhark source as trees: what is generated, printed and made smaller.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "ir/scalar.h"

namespace apl::random_tests {

// A size of a type: a name or constant, or a sum or product of two. Sizes are equal if their texts are.
struct Size {
  std::string text;
  std::int64_t least = 0, most = 0;
  char how = 0;  // '+' or '*'
  std::vector<Size> parts;

  static Size constant(std::int64_t value) { return {std::to_string(value), value, value, 0, {}}; }
  static Size sum(const Size& a, const Size& b);
  static Size product(const Size& a, const Size& b);
  std::string in_expression() const { return parts.empty() ? text : "(" + text + ")"; }
  bool operator==(const Size& other) const { return text == other.text; }
};

// A scalar, or a tuple if there are fields, or a regular array of them if there are dims.
struct Type {
  ScalarType scalar = ScalarType::i32;
  std::vector<Type> fields;
  std::vector<Size> dims;

  bool is_array() const { return !dims.empty(); }
  bool is_tuple() const { return dims.empty() && !fields.empty(); }
  bool is_scalar() const { return dims.empty() && fields.empty(); }
  bool is_scalar(ScalarType type) const { return is_scalar() && scalar == type; }
  bool has_array() const;  // is one, or has one in a field
  bool has_float() const;
  bool has_half() const;                  // f16
  Type row() const;                       // without the first dim
  Type array_of(const Size& size) const;  // with another dim first
  std::string text() const;
  bool operator==(const Type& other) const { return text() == other.text(); }
};

// A piece of source: texts around smaller pieces. Those with `is_value` are expressions of the type.
struct Node;
using Expr = std::shared_ptr<const Node>;
struct Node {
  Type type;
  bool is_value = true;
  double magnitude = 0;            // no float in its value is larger, and all are integers
  std::vector<std::string> texts;  // one more than the parts
  std::vector<Expr> parts;
};

using Piece = std::variant<std::string, Expr>;
Expr make(const Type& type, double magnitude, const std::vector<Piece>& pieces);
Expr make_text(const std::vector<Piece>& pieces);  // no value of its own, such as an operator or a definition

std::string to_text(const Expr& expr);
std::string to_text(const std::vector<Expr>& definitions);

// The constant that says least.
Expr simplest(const Type& type);

// The same trees with one part simpler, those that lose most first: a value replaced by a smaller one of its type.
std::vector<std::vector<Expr>> simpler(const std::vector<Expr>& definitions);

}  // namespace apl::random_tests
