#include "codegen/kernel/positions.h"

#include <algorithm>

namespace apl::kernel {
namespace {

// A name for an expression of any kind: the same for equal ones.
std::string key(const Expr& e) {
  std::string result = e.text + '/' + std::to_string(static_cast<int>(e.kind)) + c_type(e.type) + '(';
  for (const ExprPtr& arg : e.args) result += key(*arg) + ',';
  return result + ')';
}

std::int64_t wrapping_product(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}
std::int64_t wrapping_sum(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

}  // namespace

bool mentions(const Expr& e, const std::string& name) {
  return ((e.kind == Expr::Kind::variable || e.kind == Expr::Kind::element) && e.text == name) ||
         std::ranges::any_of(e.args, [&](const ExprPtr& arg) { return mentions(*arg, name); });
}

bool mentions(const Block& block, const std::string& name) {
  return std::ranges::any_of(block, [&](const Stmt& s) {
    const auto in = [&](const ExprPtr& e) { return e && mentions(*e, name); };
    return in(s.target) || in(s.value) || in(s.from) || in(s.step) || in(s.elements) ||
           std::ranges::any_of(s.numbers, in) || mentions(s.body, name) || mentions(s.else_body, name);
  });
}

Position::Position(const Expr& e) {
  if (e.kind == Expr::Kind::infix && (e.text == "+" || e.text == "-" || e.text == "*")) {
    const Position a(*e.args[0]), b(*e.args[1]);
    if (e.text == "*") {
      *this = a * b;
      return;
    }
    *this = a;
    opaque_.insert(opaque_.end(), b.opaque_.begin(), b.opaque_.end());
    for (const auto& [product, coefficient] : b.terms_)
      add(product, e.text == "-" ? wrapping_product(-1, coefficient) : coefficient);
  } else if (e.kind == Expr::Kind::variable) {
    add({e.text}, 1);
  } else if (const auto n = number(std::make_shared<const Expr>(e))) {
    add({}, *n);
  } else {
    opaque_.push_back(std::make_shared<const Expr>(e));
    add({key(e)}, 1);
  }
}

void Position::add(const Product& product, std::int64_t coefficient) {
  const auto found = terms_.emplace(product, 0).first;
  found->second = wrapping_sum(found->second, coefficient);
  if (found->second == 0) terms_.erase(found);
}

Position Position::operator*(const Position& other) const {
  Position result;
  result.opaque_ = opaque_;
  result.opaque_.insert(result.opaque_.end(), other.opaque_.begin(), other.opaque_.end());
  for (const auto& [a, x] : terms_)
    for (const auto& [b, y] : other.terms_) {
      Product product = a;
      product.insert(product.end(), b.begin(), b.end());
      std::ranges::sort(product);
      result.add(product, wrapping_product(x, y));
    }
  return result;
}

std::optional<Position> Position::step(const std::string& name) const {
  if (std::ranges::any_of(opaque_, [&](const ExprPtr& e) { return mentions(*e, name); })) return std::nullopt;
  Position result;
  for (const auto& [product, coefficient] : terms_) {
    Product rest = product;
    const auto found = std::ranges::find(rest, name);
    if (found == rest.end()) continue;
    rest.erase(found);
    if (std::ranges::find(rest, name) != rest.end()) return std::nullopt;
    result.add(rest, coefficient);
  }
  return result;
}

}  // namespace apl::kernel
