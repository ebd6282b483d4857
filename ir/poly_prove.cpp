// Proofs about polynomials: sound, incomplete, and cheap enough to be asked anywhere.
//
// To prove p >= 0, every bounded symbol is rewritten exactly: s with s >= L becomes L + x, s with s <= U becomes
// U - x, where x is a fresh slack, x >= 0. If in the end all coefficients are positive and all factors slacks,
// p >= 0. For i <= n-1, j <= m-1:
//   n*m - 1 - i*m - j   =>   x*m + y   (i = n-1-x, j = m-1-y)   =>   x + x*z + y   (m = 1+z)
// Opaque nodes are symbols with exact laws of their own: floor_div(a, b) <= k where a < (k+1)*b, and so on;
// b*floor_div(a, b) = a - t and b*ceil_div(a, b) = a + t with 0 <= t <= b-1; min and max are one of their
// arguments, and below or above both.
// Which side of a symbol to rewrite by follows from the sign of its coefficients; where that is mixed, both
// sides are tried, within a budget. Numbers that could overflow end the attempt.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <unordered_map>

#include "ir/poly.h"

namespace apl {
namespace {

constexpr int kBudget = 1000;      // terms rewritten for one question: some milliseconds
constexpr int kMaxBoundDepth = 6;  // bounds that refer to bounded symbols; also ends cycles

// The sum of the magnitudes of the coefficients: bounds those of sums and products of polynomials.
double norm(const Poly& poly) {
  double sum = 0;
  for (const Term& term : poly.terms()) sum += std::fabs(static_cast<double>(term.coefficient));
  return sum;
}

bool overflows(double norm_of_result) { return norm_of_result > 0x1p62; }

// `factor` replaced at top level, not inside opaque nodes; nullopt if coefficients could overflow.
std::optional<Poly> replace(const Poly& poly, const Factor& factor, const Poly& by) {
  const double by_norm = std::max(1.0, norm(by));
  double total = 0;
  Poly result;
  for (const Term& term : poly.terms()) {
    Term kept{term.coefficient, {}};
    std::size_t count = 0;
    for (const Factor& f : term.factors) f == factor ? void(++count) : kept.factors.push_back(f);
    total += std::fabs(static_cast<double>(term.coefficient)) * std::pow(by_norm, static_cast<double>(count));
    if (overflows(total)) return std::nullopt;
    Poly replaced(std::move(kept));
    for (; count > 0; --count) replaced *= by;
    result += replaced;
  }
  return result;
}

// poly = coefficient * factor + rest, nullopt if a power of `factor` occurs.
std::optional<Poly::Linear> split(const Poly& poly, const Factor& factor) {
  Poly::Linear result;
  for (const Term& term : poly.terms()) {
    Term rest{term.coefficient, {}};
    for (const Factor& f : term.factors) {
      if (f != factor) rest.factors.push_back(f);
    }
    const std::size_t count = term.factors.size() - rest.factors.size();
    if (count > 1) return std::nullopt;
    (count == 0 ? result.rest : result.coefficient) += Poly(std::move(rest));
  }
  return result;
}

bool is_division(const Factor& factor) {
  return factor.opaque && (factor.opaque->kind == OpaqueKind::floor_div || factor.opaque->kind == OpaqueKind::ceil_div);
}

// The bounds of each symbol, first come first. Of two that are a constant apart the tighter one stays.
class Bounds {
 public:
  using List = std::vector<Poly>;

  void at_least(Value symbol, Poly bound) { add(of_[symbol].low, std::move(bound), 1); }
  void at_most(Value symbol, Poly bound) { add(of_[symbol].high, std::move(bound), -1); }
  const List& low(Value symbol) const { return find(symbol).low; }
  const List& high(Value symbol) const { return find(symbol).high; }

 private:
  struct OfSymbol {
    List low, high;
  };

  const OfSymbol& find(Value symbol) const {
    const auto found = of_.find(symbol);
    return found == of_.end() ? none_ : found->second;
  }
  static void add(List& bounds, Poly bound, int sign) {
    for (Poly& known : bounds) {
      const auto difference = (bound - known).constant();
      if (!difference) continue;
      if ((*difference > 0) == (sign > 0)) known = std::move(bound);
      return;
    }
    bounds.push_back(std::move(bound));
  }

  std::unordered_map<Value, OfSymbol> of_;
  OfSymbol none_;
};

class Prover {
 public:
  explicit Prover(const SizeFacts& facts) {
    for (const auto& [symbol, low] : facts.lower_bounds()) bounds_.at_least(symbol, low);
    for (const auto& [symbol, high] : facts.upper_bounds()) bounds_.at_most(symbol, high);
    for (const Poly& known : facts.non_negatives()) add_non_negative(known);
    // An index that exists, L <= s <= U, says that U - L >= 0.
    for (const auto& [symbol, low] : facts.lower_bounds()) {
      const Bounds::List known = bounds_.high(symbol);
      for (const Poly& high : known)
        if (!overflows(norm(high) + norm(low))) add_non_negative(high - low);
    }
  }

  bool non_negative(const Poly& poly) {
    if (evident(poly)) return true;
    budget_ -= static_cast<int>(poly.terms().size());
    if (budget_ < 0) return false;
    const auto factor = next(poly);
    if (!factor) return by_product(poly);
    if (products_.empty() && bounded_by_number(*factor)) {
      const auto rewritten = with_slacks(poly);
      return rewritten && non_negative(*rewritten);
    }
    if (!factor->opaque) return by_product(poly) || by_bounds(poly, *factor);
    return is_division(*factor) ? by_division(poly, *factor) : by_choice(poly, *factor);
  }

 private:
  Bounds bounds_;
  std::vector<Poly> products_;                // known to be >= 0, led by a product
  int budget_ = kBudget;                      // 0 ends every attempt
  std::uint32_t first_slack_ = Value::kNone;  // slacks are numbered from above: no function has so many values

  // A fresh symbol >= 0. It stays a slack to the end unless it is given an upper bound.
  Value fresh() { return Value{--first_slack_}; }
  bool is_slack(const Factor& factor) const {
    return !factor.opaque && factor.symbol.id >= first_slack_ && bounds_.high(factor.symbol).empty();
  }

  // poly >= 0 bounds a symbol that is a term of it; but no two bounds shall refer to each other. A size T*R that is
  // at least 1 bounds no symbol, only the product.
  void add_non_negative(const Poly& poly) {
    if (overflows(norm(poly))) return;
    for (const Term& term : poly.terms()) {
      if (term.factors.size() != 1) continue;
      const Factor& factor = term.factors[0];
      if (factor.opaque) {
        if (term.coefficient == 1) add_opaque_at_least(*factor.opaque, Poly(factor) - poly);
        continue;
      }
      const Poly bound = ceil_div(term.coefficient * Poly(factor) - poly, term.coefficient);
      const bool whole = term.coefficient == 1 || bound.constant();
      if (term.coefficient <= 0 || !whole || reaches(bound, factor.symbol, kMaxBoundDepth)) continue;
      bounds_.at_least(factor.symbol, bound);
      return;
    }
    const bool led_by_product =
        !poly.is_zero() && poly.terms()[0].coefficient == 1 && poly.terms()[0].factors.size() > 1;
    const bool is_new = std::find(products_.begin(), products_.end(), poly) == products_.end();
    if (led_by_product && is_new) products_.push_back(poly);
  }

  // What a lower bound of a quotient or a minimum says of its arguments.
  void add_opaque_at_least(const OpaqueNode& node, const Poly& bound) {
    if (overflows(norm(node.a) + norm(node.b) * (norm(bound) + 1) + 1)) return;
    switch (node.kind) {
      case OpaqueKind::floor_div: return add_non_negative(node.a - bound * node.b);
      case OpaqueKind::ceil_div: return add_non_negative(node.a - (bound - 1) * node.b - 1);
      case OpaqueKind::min: return add_non_negative(node.a - bound), add_non_negative(node.b - bound);
      case OpaqueKind::max: return;
    }
  }

  // Whether `symbol` occurs in `poly`, or in bounds of what does.
  bool reaches(const Poly& poly, Value symbol, int fuel) const {
    bool found = false;
    poly.for_each_symbol([&](Value other) {
      if (found || other == symbol || fuel == 0) {
        found = true;
        return;
      }
      for (const auto* bounds : {&bounds_.low(other), &bounds_.high(other)})
        for (const Poly& bound : *bounds) found = found || reaches(bound, symbol, fuel - 1);
    });
    return found;
  }

  // All coefficients positive, all factors slacks or squares.
  bool evident(const Poly& poly) const {
    return std::all_of(poly.terms().begin(), poly.terms().end(), [this](const Term& term) {
      if (term.coefficient < 0) return false;
      const std::vector<Factor>& factors = term.factors;
      for (std::size_t i = 0; i < factors.size(); ++i) {
        if (is_slack(factors[i])) continue;
        if (i + 1 == factors.size() || factors[i] != factors[i + 1]) return false;
        ++i;
      }
      return true;
    });
  }

  // How far the bounds of a factor reach: a factor is rewritten before those that its bounds mention.
  int depth(const Poly& poly, int fuel) const {
    int deepest = 0;
    for (const Term& term : poly.terms()) {
      for (const Factor& factor : term.factors) deepest = std::max(deepest, depth(factor, fuel));
    }
    return deepest;
  }
  int depth(const Factor& factor, int fuel) const {
    if (fuel == 0) return 0;
    if (factor.opaque) return 1 + std::max(depth(factor.opaque->a, fuel - 1), depth(factor.opaque->b, fuel - 1));
    int deepest = 0;
    for (const auto* bounds : {&bounds_.low(factor.symbol), &bounds_.high(factor.symbol)})
      for (const Poly& bound : *bounds) deepest = std::max(deepest, 1 + depth(bound, fuel - 1));
    return deepest;
  }

  bool rewritable(const Factor& factor) const {
    if (factor.opaque) return true;
    if (is_slack(factor)) return false;
    return !bounds_.low(factor.symbol).empty() || !bounds_.high(factor.symbol).empty();
  }

  // Whether all that is known of a symbol is a number that it is at least.
  bool bounded_by_number(const Factor& factor) const {
    if (factor.opaque || is_slack(factor) || !bounds_.high(factor.symbol).empty()) return false;
    const Bounds::List& low = bounds_.low(factor.symbol);
    return low.size() == 1 && low.front().constant();
  }

  // All such symbols rewritten at once: there is one way only, and sums have hundreds of them.
  std::optional<Poly> with_slacks(const Poly& poly) {
    double total = 0;
    for (const Term& term : poly.terms()) {
      double most = std::fabs(static_cast<double>(term.coefficient));
      for (const Factor& factor : term.factors)
        if (bounded_by_number(factor)) most *= norm(bounds_.low(factor.symbol).front()) + 1;
      total += most;
    }
    if (overflows(total)) return std::nullopt;
    std::unordered_map<Value, Poly> shifted;
    Poly result;
    for (const Term& term : poly.terms()) {
      Term kept{term.coefficient, {}};
      Poly product = 1;
      for (const Factor& factor : term.factors) {
        if (!bounded_by_number(factor)) {
          kept.factors.push_back(factor);
          continue;
        }
        const auto [found, is_new] = shifted.try_emplace(factor.symbol);
        if (is_new) found->second = bounds_.low(factor.symbol).front() + Poly(fresh());
        product *= found->second;
      }
      result += Poly(std::move(kept)) * product;
    }
    return result;
  }

  std::optional<Factor> next(const Poly& poly) const {
    std::optional<Factor> best;
    int best_depth = -1;
    for (const Term& term : poly.terms()) {
      for (const Factor& factor : term.factors) {
        if (!rewritable(factor)) continue;
        const int d = depth(factor, kMaxBoundDepth);
        if (d > best_depth) best = factor, best_depth = d;
      }
    }
    return best;
  }

  // The signs of the coefficients of the terms with `factor`: what bound on it is wanted.
  struct Wanted {
    bool low = false;
    bool high = false;
  };
  static Wanted wanted(const Poly& poly, const Factor& factor) {
    Wanted result;
    for (const Term& term : poly.terms()) {
      if (!std::binary_search(term.factors.begin(), term.factors.end(), factor)) continue;
      (term.coefficient > 0 ? result.low : result.high) = true;
    }
    return result;
  }

  bool try_rewrite(const Poly& poly, const Factor& factor, const Poly& by) {
    const auto rewritten = replace(poly, factor, by);
    return rewritten && non_negative(*rewritten);
  }

  // factor >= bound, and factor <= bound.
  bool try_low(const Poly& poly, const Factor& factor, const Poly& bound) {
    return try_rewrite(poly, factor, bound + Poly(fresh()));
  }
  bool try_high(const Poly& poly, const Factor& factor, const Poly& bound) {
    return try_rewrite(poly, factor, bound - Poly(fresh()));
  }

  bool by_bounds(const Poly& poly, const Factor& factor) {
    // Copies: proving adds facts.
    const Bounds::List low = bounds_.low(factor.symbol), high = bounds_.high(factor.symbol);
    const Wanted want = wanted(poly, factor);
    const auto from_low = [&](const Poly& bound) { return try_low(poly, factor, bound); };
    const auto from_high = [&](const Poly& bound) { return try_high(poly, factor, bound); };
    if ((want.low || high.empty()) && std::any_of(low.begin(), low.end(), from_low)) return true;
    return (want.high || low.empty()) && std::any_of(high.begin(), high.end(), from_high);
  }

  // A product may be known to be more than the bounds of its factors say. Each is used once.
  bool by_product(const Poly& poly) {
    for (std::size_t k = 0; k < products_.size(); ++k) {
      const Poly known = products_[k];
      const Poly product(Term{1, known.terms()[0].factors});
      const auto [quotient, rest] = poly.divide(product);
      const Poly bounded = product - known + Poly(fresh());
      if (quotient.is_zero() || overflows(norm(quotient) * norm(bounded) + norm(rest))) continue;
      products_.erase(products_.begin() + static_cast<std::ptrdiff_t>(k));
      const bool proved = non_negative(quotient * bounded + rest);
      products_.insert(products_.begin() + static_cast<std::ptrdiff_t>(k), known);
      if (proved) return true;
    }
    return false;
  }

  bool by_choice(const Poly& poly, const Factor& factor) {
    const Poly a = factor.opaque->a;
    const Poly b = factor.opaque->b;
    const Wanted want = wanted(poly, factor);
    const bool is_min = factor.opaque->kind == OpaqueKind::min;
    // min is wanted small: below either argument will do.
    if (is_min && !want.low) return try_high(poly, factor, a) || try_high(poly, factor, b);
    if (!is_min && !want.high) return try_low(poly, factor, a) || try_low(poly, factor, b);
    return try_rewrite(poly, factor, a) && try_rewrite(poly, factor, b);
  }

  bool by_division(const Poly& poly, const Factor& factor) {
    const Division division{factor.opaque->a, factor.opaque->b, factor.opaque->kind == OpaqueKind::floor_div};
    if (overflows(norm(division.dividend) + norm(division.divisor) + 1)) return false;
    add_non_negative(division.divisor - 1);  // else there is no quotient
    if (const auto linear = split(poly, factor)) {
      if (by_comparison(*linear, division) || by_remainder(*linear, division)) return true;
    }
    return by_range(poly, factor, division);
  }

  struct Division {
    Poly dividend;
    Poly divisor;
    bool floors;
  };

  // poly = coefficient * (quotient - limit): how a quotient compares with an integer, its dividend says exactly.
  bool by_comparison(const Poly::Linear& poly, const Division& division) {
    const auto& [a, b, floors] = division;
    const auto negated = poly.rest.divide_exact(poly.coefficient);
    if (!negated || overflows(norm(a) + (norm(*negated) + 1) * norm(b) + 1)) return false;
    const Poly limit = -*negated;
    if (non_negative(poly.coefficient)) return non_negative(floors ? a - limit * b : a - (limit - 1) * b - 1);
    return non_negative(-poly.coefficient) && non_negative(floors ? (limit + 1) * b - a - 1 : limit * b - a);
  }

  // divisor * quotient = dividend -+ t; where the divisor is no factor of the coefficient, all is scaled by it.
  bool by_remainder(const Poly::Linear& poly, const Division& division) {
    const Value t = fresh();
    bounds_.at_least(t, 0);
    bounds_.at_most(t, division.divisor - 1);
    const Poly multiple = division.floors ? division.dividend - Poly(t) : division.dividend + Poly(t);
    const auto exact = poly.coefficient.divide_exact(division.divisor);
    const Poly& coefficient = exact ? *exact : poly.coefficient;
    const Poly scale = exact ? Poly(1) : division.divisor;
    if (overflows(norm(coefficient) * norm(multiple) + norm(scale) * norm(poly.rest))) return false;
    return non_negative(coefficient * multiple + scale * poly.rest);
  }

  // The quotient of a small dividend is 0 or 1, whatever the divisor is.
  bool by_range(const Poly& poly, const Factor& factor, const Division& division) {
    const auto& [a, b, floors] = division;
    const Wanted want = wanted(poly, factor);
    if (want.low) {
      if (!floors && non_negative(a - 1)) return try_low(poly, factor, 1);
      return non_negative(a) && try_low(poly, factor, 0);
    }
    return floors ? non_negative(b - a - 1) && try_high(poly, factor, 0)
                  : non_negative(b - a) && try_high(poly, factor, 1);
  }
};

// Whether `poly` is negative for some of a few small values of its symbols that obey the facts: that costs far less
// than a proof that fails. Most questions are whether sizes compare that have nothing to do with each other.
bool refuted(const Poly& poly, const SizeFacts& facts) {
  constexpr std::size_t kMostFacts = 1000;
  constexpr std::size_t kHighestDegree = 8;  // no product of values overflows
  constexpr std::array<std::int64_t, 7> kValues = {1, 2, 3, 5, 8, 17, 40};
  if (facts.lower_bounds().size() + facts.upper_bounds().size() + facts.non_negatives().size() > kMostFacts)
    return false;
  for (const Term& term : poly.terms())
    if (term.factors.size() > kHighestDegree) return false;
  for (std::uint64_t trial = 0; trial < 8; ++trial) {
    std::map<Value, std::int64_t> values;
    const auto value_of = [&](Value symbol) {
      const std::uint64_t mixed = (symbol.id + 1) * 0x9e3779b97f4a7c15u ^ (trial + 1) * 0xbf58476d1ce4e5b9u;
      return values.try_emplace(symbol, kValues[(mixed >> 32) % kValues.size()]).first->second;
    };
    bool obeyed = true;
    // Bounds may be those of symbols that change later, so they are looked at twice.
    for (const auto& [symbol, bound] : facts.upper_bounds())
      if (const auto most = bound.evaluate(value_of)) values[symbol] = std::min(value_of(symbol), *most);
    for (const auto& [symbol, bound] : facts.lower_bounds())
      if (const auto least = bound.evaluate(value_of)) values[symbol] = std::max(value_of(symbol), *least);
    const auto holds = [&](const Poly& known) {
      const auto number = known.evaluate(value_of);
      obeyed = obeyed && number && *number >= 0;
    };
    for (const auto& [symbol, bound] : facts.upper_bounds()) holds(bound - symbol);
    for (const auto& [symbol, bound] : facts.lower_bounds()) holds(symbol - bound);
    for (const Poly& known : facts.non_negatives()) holds(known);
    const auto number = poly.evaluate(value_of);
    if (obeyed && number && *number < 0) return true;
  }
  return false;
}

bool proved(const Poly& poly, const SizeFacts& facts) {
  return !refuted(poly, facts) && Prover(facts).non_negative(poly);
}

// Whether b - a - 1 is what it is over the integers, too.
bool differ_safely(const Poly& a, const Poly& b) { return !overflows(norm(a) + norm(b) + 1); }

// Keeps the tighter of two bounds that are a constant apart; `sign` is 1 for lower bounds.
void add_bound(std::vector<std::pair<Value, Poly>>& bounds, Value symbol, Poly bound, int sign) {
  for (auto& [value, known] : bounds) {
    if (value != symbol) continue;
    const auto difference = (bound - known).constant();
    if (!difference) continue;
    if ((*difference > 0) == (sign > 0)) known = std::move(bound);
    return;
  }
  bounds.emplace_back(symbol, std::move(bound));
}

const Poly* first_bound(const std::vector<std::pair<Value, Poly>>& bounds, Value symbol) {
  const auto found = std::find_if(bounds.begin(), bounds.end(), [&](const auto& b) { return b.first == symbol; });
  return found == bounds.end() ? nullptr : &found->second;
}

// 2*n - 4*m + 3 is not divisible by 2, whatever n and m are.
bool never_divisible(const Poly& poly, std::int64_t divisor) {
  std::int64_t constant = 0;
  for (const Term& term : poly.terms()) {
    if (term.factors.empty()) {
      constant = term.coefficient;
    } else if (term.coefficient % divisor != 0) {
      return false;
    }
  }
  return constant % divisor != 0;
}

// With the symbols that the facts leave no choice about replaced by their values.
Poly pinned(const Poly& poly, const SizeFacts& facts) {
  return poly.substitute([&facts](Value symbol) -> std::optional<Poly> {
    const Poly* low = facts.lower(symbol);
    const Poly* high = facts.upper(symbol);
    return low && high && *low == *high ? std::optional(*low) : std::nullopt;
  });
}

// Modulo 2^64 as well: 3*n - 1 is 0 for some n, 2*n - 1 is not.
bool never_zero(const Poly& poly) {
  std::uint64_t common = 0;
  for (const Term& term : poly.terms()) {
    if (!term.factors.empty()) common |= static_cast<std::uint64_t>(term.coefficient);
  }
  const std::uint64_t power = common & -common;  // the largest power of two that divides all coefficients
  return power > 1 && power < (std::uint64_t{1} << 63) && never_divisible(poly, static_cast<std::int64_t>(power));
}

}  // namespace

void SizeFacts::at_least(Value symbol, Poly bound) { add_bound(lower_, symbol, std::move(bound), 1); }
void SizeFacts::at_most(Value symbol, Poly bound) { add_bound(upper_, symbol, std::move(bound), -1); }
const Poly* SizeFacts::lower(Value symbol) const { return first_bound(lower_, symbol); }
const Poly* SizeFacts::upper(Value symbol) const { return first_bound(upper_, symbol); }

Proof prove_less(const Poly& a, const Poly& b, const SizeFacts& facts) {
  if (a.constant() && b.constant()) return *a.constant() < *b.constant() ? Proof::yes : Proof::no;
  if (!differ_safely(a, b)) return Proof::unknown;
  if (proved(b - a - 1, facts)) return Proof::yes;
  return proved(a - b, facts) ? Proof::no : Proof::unknown;
}

Proof prove_non_negative(const Poly& a, const SizeFacts& facts) { return prove_less(-1, a, facts); }

Proof prove_equal(const Poly& a, const Poly& b, const SizeFacts& facts) {
  const Poly difference = a - b;
  if (const auto number = difference.constant()) return *number == 0 ? Proof::yes : Proof::no;
  if (!differ_safely(a, b)) return Proof::unknown;
  if (never_zero(difference) || proved(difference - 1, facts) || proved(-difference - 1, facts)) return Proof::no;
  return proved(difference, facts) && proved(-difference, facts) ? Proof::yes : Proof::unknown;
}

Proof prove_divisible(const Poly& a, const Poly& divisor, const SizeFacts& facts) {
  if (divisor.is_zero() || !differ_safely(a, divisor)) return Proof::unknown;
  const Poly rest = pinned(a, facts).divide(divisor).remainder;
  if (prove_equal(rest, 0, facts) == Proof::yes) return Proof::yes;
  if (const auto number = divisor.constant()) {
    return *number > 0 && never_divisible(rest, *number) ? Proof::no : Proof::unknown;
  }
  return prove_less(0, rest, facts) == Proof::yes && prove_less(rest, divisor, facts) == Proof::yes ? Proof::no
                                                                                                    : Proof::unknown;
}

}  // namespace apl
