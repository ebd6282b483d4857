// Integer expressions of the kernel language as polynomials over what they are made of, to compare positions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "codegen/kernel/kernel_language.h"

namespace apl::kernel {

// Whether the variable is read anywhere in it.
bool mentions(const Expr& e, const std::string& name);
bool mentions(const Block& block, const std::string& name);

// Sums of products; wraps as 64-bit integers do. A factor is a variable, or the text of an expression of another kind.
class Position {
 public:
  explicit Position(const Expr& e);

  // What a step of the variable adds; nullopt: that depends on the variable, or the variable is inside of a factor.
  std::optional<Position> step(const std::string& name) const;
  Position operator*(const Position& other) const;
  bool operator==(const Position& other) const { return terms_ == other.terms_; }

 private:
  using Product = std::vector<std::string>;  // sorted
  Position() = default;
  void add(const Product& product, std::int64_t coefficient);

  std::map<Product, std::int64_t> terms_;  // without zeros
  std::vector<ExprPtr> opaque_;            // factors that are no variables
};

}  // namespace apl::kernel
