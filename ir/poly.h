// Sizes, offsets and strides: polynomials over values (of type i64) with integer coefficients,
// in one canonical form. a*(b*c) and c*(b*a) are the same object, so equality of polynomials is
// equality of this form; it replaces the flattening of products of T 4.7.2.1.
// Arithmetic is modulo 2^64, as i64 arithmetic of the IR is, so canonicalisation never changes a value.
// Only the folds of opaque nodes and the proofs need more: that no argument overflows (sizes of arrays never do).
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/value.h"

namespace apl {

class Poly;

// What a polynomial cannot express is an opaque factor over two polynomials.
// Division by a non-positive number is undefined; constant cases are folded on construction.
enum class OpaqueKind : std::uint8_t { ceil_div, floor_div, min, max };

struct OpaqueNode;

// One factor of a product: a symbol, or an opaque node (then `symbol` is none).
struct Factor {
  Value symbol;
  std::shared_ptr<const OpaqueNode> opaque;

  std::strong_ordering operator<=>(const Factor& other) const;
  bool operator==(const Factor& other) const { return (*this <=> other) == 0; }
};

// coefficient * product of factors; factors are sorted, a power is a repetition.
struct Term {
  std::int64_t coefficient = 0;
  std::vector<Factor> factors;

  bool operator==(const Term&) const = default;
};

class Poly {
 public:
  Poly() = default;             // 0
  Poly(std::int64_t constant);  // NOLINT(google-explicit-constructor): constants are polynomials
  Poly(Value symbol);           // NOLINT(google-explicit-constructor): so are symbols
  Poly(int constant) : Poly(std::int64_t{constant}) {}  // NOLINT(google-explicit-constructor)
  explicit Poly(Factor factor);
  explicit Poly(Term term);  // its factors are sorted

  // The canonical sum: sorted by factors (higher degree first, then lexicographic), no zero coefficient.
  const std::vector<Term>& terms() const { return terms_; }

  std::optional<std::int64_t> constant() const;  // the number this is, if it is one
  std::optional<Value> symbol() const;           // the symbol this is, if it is one
  bool is_zero() const { return terms_.empty(); }
  bool is_one() const { return constant() == 1; }

  Poly operator-() const;
  Poly& operator+=(const Poly& other);
  Poly& operator-=(const Poly& other);
  Poly& operator*=(const Poly& other);
  friend Poly operator+(Poly a, const Poly& b) { return a += b; }
  friend Poly operator-(Poly a, const Poly& b) { return a -= b; }
  friend Poly operator*(Poly a, const Poly& b) { return a *= b; }

  std::strong_ordering operator<=>(const Poly& other) const;  // a total order for maps, not of values
  bool operator==(const Poly& other) const { return (*this <=> other) == 0; }
  std::size_t hash() const;

  void for_each_symbol(const std::function<void(Value)>& visit) const;  // each once per occurrence
  bool mentions(Value symbol) const;

  // Each symbol replaced by what `replace` gives (nullopt: kept), then canonicalised again.
  Poly substitute(const std::function<std::optional<Poly>(Value)>& replace) const;

  // The value for given symbol values; nullopt on division by a non-positive number.
  std::optional<std::int64_t> evaluate(const std::function<std::int64_t(Value)>& value_of) const;

  // this = coefficient * symbol + rest, if this is linear in `symbol` and no opaque node hides it.
  struct Linear;
  std::optional<Linear> linear_in(Value symbol) const;

  // The quotient where `divisor` divides this as a polynomial (for every value of the symbols).
  std::optional<Poly> divide_exact(const Poly& divisor) const;

  // this = quotient * divisor + remainder: the exact quotient, or else what the leading term of `divisor` takes
  // out; 2*n*m + n + 3 by 2*n is m, n + 3. Coefficients of what a constant
  // divisor leaves are smaller than it in magnitude, and keep their signs.
  struct Division;
  Division divide(const Poly& divisor) const;

  // Text as in the textual IR: `m*n + 2*q - 1`, `ceil_div(m, T*R)`, `0`.
  std::string to_string(const std::function<std::string(Value)>& name_of) const;

 private:
  void add_term(Term term);
  std::vector<Term> terms_;
};

struct Poly::Linear {
  Poly coefficient;
  Poly rest;
};

struct Poly::Division {
  Poly quotient;
  Poly remainder;
};

struct OpaqueNode {
  OpaqueKind kind;
  Poly a;
  Poly b;
};

// Folds: constants; x/1; exact quotients ceil_div(k*b, b) = k; quotients with a remainder, ceil_div(k*b + r, b) =
// k + ceil_div(r, b); min/max of equal or constant-apart arguments. min and max sort their arguments.
// Division by a constant that is not positive is kept as it is, and has no value.
Poly make_opaque(OpaqueKind kind, const Poly& a, const Poly& b);
inline Poly ceil_div(const Poly& a, const Poly& b) { return make_opaque(OpaqueKind::ceil_div, a, b); }
inline Poly floor_div(const Poly& a, const Poly& b) { return make_opaque(OpaqueKind::floor_div, a, b); }
inline Poly poly_min(const Poly& a, const Poly& b) { return make_opaque(OpaqueKind::min, a, b); }
inline Poly poly_max(const Poly& a, const Poly& b) { return make_opaque(OpaqueKind::max, a, b); }
inline Poly remainder(const Poly& a, const Poly& b) { return a - b * floor_div(a, b); }
Poly product(const std::vector<Poly>& factors);  // 1 for none

// The answer to a question about polynomials: proved, disproved, or neither. Callers handle all three.
// `yes` and `no` hold for all symbol values that obey the facts and for which every division is defined
// (by a positive number); `no` is never merely "not always".
enum class Proof : std::uint8_t { yes, no, unknown };

// What is known of symbols: inclusive bounds, any number per symbol. Nothing is assumed of a symbol without
// bounds, not even that it is at least 0; but an index that exists says that its size is positive.
class SizeFacts {
 public:
  void at_least(Value symbol, Poly bound);
  void at_most(Value symbol, Poly bound);
  void index_of(Value symbol, const Poly& size) { at_least(symbol, 0), at_most(symbol, size - 1); }
  void non_negative(Poly known) { non_negative_.push_back(std::move(known)); }  // as in n - m >= 0
  const Poly* lower(Value symbol) const;  // the first bound given, or a tighter one a constant apart
  const Poly* upper(Value symbol) const;
  const std::vector<std::pair<Value, Poly>>& lower_bounds() const { return lower_; }
  const std::vector<std::pair<Value, Poly>>& upper_bounds() const { return upper_; }
  const std::vector<Poly>& non_negatives() const { return non_negative_; }

 private:
  std::vector<std::pair<Value, Poly>> lower_;
  std::vector<std::pair<Value, Poly>> upper_;
  std::vector<Poly> non_negative_;
};

Proof prove_equal(const Poly& a, const Poly& b, const SizeFacts& facts = {});
Proof prove_non_negative(const Poly& a, const SizeFacts& facts = {});
Proof prove_less(const Poly& a, const Poly& b, const SizeFacts& facts = {});
Proof prove_divisible(const Poly& a, const Poly& divisor, const SizeFacts& facts = {});

}  // namespace apl
