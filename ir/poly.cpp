// Polynomials in canonical form: arithmetic, comparison, division, folding of opaque nodes, text.
// The questions about them (Proof) are in ir/poly_prove.cpp.
#include "ir/poly.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>

namespace apl {
namespace {

// Signed arithmetic that wraps, as that of i64 in the IR does.
std::int64_t wrap(std::uint64_t bits) { return static_cast<std::int64_t>(bits); }
std::uint64_t raw(std::int64_t number) { return static_cast<std::uint64_t>(number); }
std::int64_t add(std::int64_t a, std::int64_t b) { return wrap(raw(a) + raw(b)); }
std::int64_t multiply(std::int64_t a, std::int64_t b) { return wrap(raw(a) * raw(b)); }
std::int64_t negate(std::int64_t a) { return wrap(-raw(a)); }

// Division by a positive number, rounded down and up.
std::int64_t floor_quotient(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
std::int64_t ceil_quotient(std::int64_t a, std::int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }

std::strong_ordering compare(const OpaqueNode& a, const OpaqueNode& b) {
  if (const auto order = a.kind <=> b.kind; order != 0) return order;
  if (const auto order = a.a <=> b.a; order != 0) return order;
  return a.b <=> b.b;
}

// Higher degree first, then lexicographic. This order is kept by multiplication, which is what makes the
// first term a leading term and division by it terminate.
std::strong_ordering compare(const std::vector<Factor>& a, const std::vector<Factor>& b) {
  if (const auto order = b.size() <=> a.size(); order != 0) return order;
  return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
}

Term multiply(const Term& a, const Term& b) {
  Term result{multiply(a.coefficient, b.coefficient), {}};
  result.factors.reserve(a.factors.size() + b.factors.size());
  std::merge(a.factors.begin(), a.factors.end(), b.factors.begin(), b.factors.end(),
             std::back_inserter(result.factors));
  return result;
}

// The factors of `a` without those of `b`, if `b` divides them.
std::optional<std::vector<Factor>> without(const std::vector<Factor>& a, const std::vector<Factor>& b) {
  if (!std::includes(a.begin(), a.end(), b.begin(), b.end())) return std::nullopt;
  std::vector<Factor> rest;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(rest));
  return rest;
}

// The greatest number that divides all coefficients of both.
std::uint64_t content(const Poly& a, const Poly& b) {
  std::uint64_t divisor = 0;
  for (const Poly* poly : {&a, &b}) {
    for (const Term& term : poly->terms()) {
      const std::uint64_t magnitude = term.coefficient < 0 ? -raw(term.coefficient) : raw(term.coefficient);
      divisor = std::gcd(divisor, magnitude);
    }
  }
  return divisor;
}

std::optional<std::int64_t> evaluate_opaque(OpaqueKind kind, std::int64_t a, std::int64_t b) {
  switch (kind) {
    case OpaqueKind::min: return std::min(a, b);
    case OpaqueKind::max: return std::max(a, b);
    case OpaqueKind::floor_div: return b > 0 ? std::optional(floor_quotient(a, b)) : std::nullopt;
    case OpaqueKind::ceil_div: return b > 0 ? std::optional(ceil_quotient(a, b)) : std::nullopt;
  }
  return std::nullopt;
}

std::string_view name_of_kind(OpaqueKind kind) {
  switch (kind) {
    case OpaqueKind::ceil_div: return "ceil_div";
    case OpaqueKind::floor_div: return "floor_div";
    case OpaqueKind::min: return "min";
    case OpaqueKind::max: return "max";
  }
  return "";
}

std::size_t mix(std::size_t seed, std::size_t value) { return (seed ^ value) * 0x9e3779b97f4a7c15 + (seed >> 7); }

std::size_t hash(const Factor& factor) {
  if (!factor.opaque) return std::hash<Value>{}(factor.symbol);
  const OpaqueNode& node = *factor.opaque;
  return mix(mix(static_cast<std::size_t>(node.kind) + 1, node.a.hash()), node.b.hash());
}

std::string factor_text(const Factor& factor, const std::function<std::string(Value)>& name_of) {
  if (!factor.opaque) return name_of(factor.symbol);
  const OpaqueNode& node = *factor.opaque;
  return fmt::format("{}({}, {})", name_of_kind(node.kind), node.a.to_string(name_of), node.b.to_string(name_of));
}

}  // namespace

std::strong_ordering Factor::operator<=>(const Factor& other) const {
  if (opaque == other.opaque) return symbol <=> other.symbol;
  if (!opaque) return std::strong_ordering::less;
  if (!other.opaque) return std::strong_ordering::greater;
  return compare(*opaque, *other.opaque);
}

Poly::Poly(std::int64_t constant) {
  if (constant != 0) terms_.push_back({constant, {}});
}

Poly::Poly(Value symbol) { terms_.push_back({1, {Factor{symbol, nullptr}}}); }

Poly::Poly(Factor factor) { terms_.push_back({1, {std::move(factor)}}); }

Poly::Poly(Term term) {
  if (term.coefficient != 0) terms_.push_back(std::move(term));
}

std::optional<std::int64_t> Poly::constant() const {
  if (terms_.empty()) return 0;
  if (terms_.size() == 1 && terms_[0].factors.empty()) return terms_[0].coefficient;
  return std::nullopt;
}

std::optional<Value> Poly::symbol() const {
  if (terms_.size() != 1 || terms_[0].coefficient != 1 || terms_[0].factors.size() != 1) return std::nullopt;
  const Factor& factor = terms_[0].factors[0];
  return factor.opaque ? std::nullopt : std::optional(factor.symbol);
}

void Poly::add_term(Term term) {
  const auto position = std::lower_bound(terms_.begin(), terms_.end(), term, [](const Term& a, const Term& b) {
    return compare(a.factors, b.factors) < 0;
  });
  if (position == terms_.end() || position->factors != term.factors) {
    if (term.coefficient != 0) terms_.insert(position, std::move(term));
    return;
  }
  position->coefficient = add(position->coefficient, term.coefficient);
  if (position->coefficient == 0) terms_.erase(position);
}

Poly Poly::operator-() const {
  Poly result = *this;
  for (Term& term : result.terms_) term.coefficient = negate(term.coefficient);
  return result;
}

Poly& Poly::operator+=(const Poly& other) {
  if (&other == this) return *this *= Poly(2);
  for (const Term& term : other.terms_) add_term(term);
  return *this;
}

Poly& Poly::operator-=(const Poly& other) { return *this += -other; }

Poly& Poly::operator*=(const Poly& other) {
  Poly result;
  for (const Term& a : terms_) {
    for (const Term& b : other.terms_) result.add_term(multiply(a, b));
  }
  return *this = std::move(result);
}

std::strong_ordering Poly::operator<=>(const Poly& other) const {
  const auto compare_terms = [](const Term& a, const Term& b) {
    const auto order = compare(a.factors, b.factors);
    return order != 0 ? order : a.coefficient <=> b.coefficient;
  };
  return std::lexicographical_compare_three_way(terms_.begin(), terms_.end(), other.terms_.begin(), other.terms_.end(),
                                                compare_terms);
}

std::size_t Poly::hash() const {
  std::size_t result = terms_.size();
  for (const Term& term : terms_) {
    result = mix(result, std::hash<std::int64_t>{}(term.coefficient));
    for (const Factor& factor : term.factors) result = mix(result, apl::hash(factor));
  }
  return result;
}

void Poly::for_each_symbol(const std::function<void(Value)>& visit) const {
  for (const Term& term : terms_) {
    for (const Factor& factor : term.factors) {
      if (factor.opaque) {
        factor.opaque->a.for_each_symbol(visit);
        factor.opaque->b.for_each_symbol(visit);
      } else {
        visit(factor.symbol);
      }
    }
  }
}

bool Poly::mentions(Value symbol) const {
  bool found = false;
  for_each_symbol([&](Value value) { found = found || value == symbol; });
  return found;
}

Poly Poly::substitute(const std::function<std::optional<Poly>(Value)>& replace) const {
  Poly result;
  for (const Term& term : terms_) {
    Poly replaced = term.coefficient;
    for (const Factor& factor : term.factors) {
      if (factor.opaque) {
        const OpaqueNode& node = *factor.opaque;
        replaced *= make_opaque(node.kind, node.a.substitute(replace), node.b.substitute(replace));
      } else {
        replaced *= replace(factor.symbol).value_or(Poly(factor.symbol));
      }
    }
    result += replaced;
  }
  return result;
}

std::optional<std::int64_t> Poly::evaluate(const std::function<std::int64_t(Value)>& value_of) const {
  std::int64_t sum = 0;
  for (const Term& term : terms_) {
    std::int64_t number = term.coefficient;
    for (const Factor& factor : term.factors) {
      if (!factor.opaque) {
        number = multiply(number, value_of(factor.symbol));
        continue;
      }
      const auto a = factor.opaque->a.evaluate(value_of);
      const auto b = factor.opaque->b.evaluate(value_of);
      const auto value = a && b ? evaluate_opaque(factor.opaque->kind, *a, *b) : std::nullopt;
      if (!value) return std::nullopt;
      number = multiply(number, *value);
    }
    sum = add(sum, number);
  }
  return sum;
}

std::optional<Poly::Linear> Poly::linear_in(Value symbol) const {
  Linear result;
  const Factor wanted{symbol, nullptr};
  for (const Term& term : terms_) {
    for (const Factor& factor : term.factors) {
      if (factor.opaque && Poly(factor).mentions(symbol)) return std::nullopt;
    }
    const auto [first, last] = std::equal_range(term.factors.begin(), term.factors.end(), wanted);
    if (last - first > 1) return std::nullopt;
    if (first == last) {
      result.rest.add_term(term);
    } else {
      result.coefficient.add_term({term.coefficient, *without(term.factors, {wanted})});
    }
  }
  return result;
}

std::optional<Poly> Poly::divide_exact(const Poly& divisor) const {
  if (divisor.is_zero()) return std::nullopt;
  const Term& lead = divisor.terms_[0];
  Poly quotient;
  Poly rest = *this;
  while (!rest.is_zero()) {
    const Term& term = rest.terms_[0];
    auto factors = without(term.factors, lead.factors);
    if (!factors) return std::nullopt;
    // lowest / -1 overflows in C++; the quotient by -1 wraps.
    const bool negates = lead.coefficient == -1;
    if (!negates && term.coefficient % lead.coefficient != 0) return std::nullopt;
    const std::int64_t number = negates ? negate(term.coefficient) : term.coefficient / lead.coefficient;
    const Poly step(Term{number, std::move(*factors)});
    rest -= step * divisor;
    quotient += step;
  }
  return quotient;
}

Poly::Division Poly::divide(const Poly& divisor) const {
  if (auto quotient = divide_exact(divisor)) return {std::move(*quotient), 0};
  Division result{0, *this};
  if (divisor.is_zero() || divisor.terms_[0].coefficient <= 0) return result;
  const Term& lead = divisor.terms_[0];
  for (const Term& term : terms_) {
    auto factors = without(term.factors, lead.factors);
    if (!factors) continue;
    // Towards zero: what is left is no larger than what is there, so that it does not overflow where that does not.
    const std::int64_t number = term.coefficient / lead.coefficient;
    if (number == 0) continue;
    const Poly step(Term{number, std::move(*factors)});
    Poly rest = result.remainder - step * divisor;
    // n*m by n+1 is m*(n+1) - m, true and of no use: only steps that leave less are taken.
    if (divisor.terms_.size() > 1 && rest.terms_.size() >= result.remainder.terms_.size()) continue;
    result.remainder = std::move(rest);
    result.quotient += step;
  }
  return result;
}

namespace {

// a/b = quotient + remainder/b, rounded either way; then the content common to both is cancelled.
// Nothing else is: a common symbol could be negative, and the division by what is left undefined.
Poly make_division(OpaqueKind kind, const Poly& a, const Poly& b) {
  const auto opaque = [kind](Poly x, Poly y) {
    return Poly(Factor{Value{}, std::make_shared<const OpaqueNode>(OpaqueNode{kind, std::move(x), std::move(y)})});
  };
  const auto divisor = b.constant();
  if (divisor && *divisor <= 0) return opaque(a, b);
  auto [quotient, rest] = a.divide(b);
  if (rest.is_zero()) return quotient;
  if (const auto number = rest.constant()) {
    if (divisor) return quotient + Poly(*evaluate_opaque(kind, *number, *divisor));
    // Just below 0 and just above it, every positive divisor gives the same.
    const int step = kind == OpaqueKind::floor_div ? -1 : 1;
    if (*number == step) return quotient + step;
  }
  const std::uint64_t common = content(rest, b);
  if (common > 1 && common < (std::uint64_t{1} << 63)) {
    const Poly scale = wrap(common);
    return quotient + make_division(kind, *rest.divide_exact(scale), *b.divide_exact(scale));
  }
  return quotient + opaque(std::move(rest), b);
}

}  // namespace

Poly make_opaque(OpaqueKind kind, const Poly& a, const Poly& b) {
  if (kind == OpaqueKind::floor_div || kind == OpaqueKind::ceil_div) return make_division(kind, a, b);
  if (a.constant() && b.constant()) return *evaluate_opaque(kind, *a.constant(), *b.constant());
  const auto difference = (a - b).constant();
  if (difference) return (*difference < 0) == (kind == OpaqueKind::min) ? a : b;
  const bool sorted = a < b;
  return Poly(Factor{Value{}, std::make_shared<const OpaqueNode>(OpaqueNode{kind, sorted ? a : b, sorted ? b : a})});
}

Poly product(const std::vector<Poly>& factors) {
  Poly result = 1;
  for (const Poly& factor : factors) result *= factor;
  return result;
}

std::string Poly::to_string(const std::function<std::string(Value)>& name_of) const {
  if (terms_.empty()) return "0";
  std::string text;
  for (const Term& term : terms_) {
    const bool negative = term.coefficient < 0;
    const std::uint64_t magnitude = negative ? -raw(term.coefficient) : raw(term.coefficient);
    text += text.empty() ? (negative ? "-" : "") : (negative ? " - " : " + ");
    if (magnitude != 1 || term.factors.empty()) text += fmt::format("{}", magnitude);
    const char* separator = magnitude != 1 ? "*" : "";
    for (const Factor& factor : term.factors) {
      text += separator + factor_text(factor, name_of);
      separator = "*";
    }
  }
  return text;
}

}  // namespace apl
