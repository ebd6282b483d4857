// i64 arithmetic as polynomials, and what is known of the symbols in them.
//
//   let a = mul(i, n)  let b = add(a, j)  let x = A[b]   =>   let x = A[i*n + j]
//
// A fact holds from where it is learned to the end of that body: an index is within its bound, the size of an array
// that exists is not negative, and a check has passed; after a branch, the array or the check may not have been
// reached. A question gathers the facts about the symbols it mentions, and no others, so that its cost does not grow
// with the function.
#include <algorithm>
#include <ranges>

#include "passes/simplify/simplifier.h"

namespace apl {

namespace {

// Larger polynomials stay behind a name: products of sums grow exponentially.
constexpr std::size_t kMaxTerms = 12;
constexpr std::size_t kMaxDegree = 8;

// An opaque node of opaque nodes, such as a number of chunks, is easier to read by its name, too.
bool flat(const Factor& factor) {
  if (!factor.opaque) return true;
  const auto plain = [](const Poly& p) {
    return std::ranges::all_of(p.terms(), [](const Term& term) {
      return std::ranges::none_of(term.factors, [](const Factor& inner) { return inner.opaque != nullptr; });
    });
  };
  return plain(factor.opaque->a) && plain(factor.opaque->b);
}

bool small(const Poly& p) {
  return p.terms().size() <= kMaxTerms && std::ranges::all_of(p.terms(), [](const Term& term) {
           return term.factors.size() <= kMaxDegree && std::ranges::all_of(term.factors, flat);
         });
}

bool all_small(const Poly& a, const Poly& b) { return a.terms().size() * b.terms().size() <= kMaxTerms * 2; }

}  // namespace

std::optional<Poly> Simplifier::as_size(const Stm& stm) const {
  if (const SizeExpr* expr = get_if<SizeExpr>(stm))
    return small(expr->value) ? std::optional(expr->value) : std::nullopt;
  const Type& type = function_.values.type(stm.pattern.front());
  if (!type.is_scalar() || type.element != ScalarType::i64) return std::nullopt;
  const auto poly = [&](const Operand& x) { return rewrite(as_poly(x)); };
  std::optional<Poly> result;
  if (const Unary* unary = get_if<Unary>(stm)) {
    if (unary->op == UnaryOp::neg) result = -poly(unary->x);
  } else if (const Binary* op = get_if<Binary>(stm)) {
    const Poly x = poly(op->x);
    const Poly y = poly(op->y);
    // Else the quotient may be undefined; or it is not that of the polynomial, since a sum or product may wrap.
    const bool divides = y.constant() && *y.constant() > 0 && (x.symbol() || x.constant() || size_like(x));
    // x and x + 3 compare as their difference says unless the sum wraps.
    const bool compares = (x.constant() && y.constant()) || !(x - y).constant() || (size_like(x) && size_like(y));
    switch (const BinaryOp computed = division_of(op->op).value_or(op->op)) {
      case BinaryOp::add: result = x + y; break;
      case BinaryOp::sub: result = x - y; break;
      case BinaryOp::mul:
        if (all_small(x, y)) result = x * y;
        break;
      case BinaryOp::min:
        if (compares) result = poly_min(x, y);
        break;
      case BinaryOp::max:
        if (compares) result = poly_max(x, y);
        break;
      case BinaryOp::div:
      case BinaryOp::mod:
      case BinaryOp::quot:
      case BinaryOp::rem: {
        const bool quotient = computed == BinaryOp::div || computed == BinaryOp::quot;
        const bool floors = computed == BinaryOp::div || computed == BinaryOp::mod;
        if (divides && floors) {
          result = quotient ? floor_div(x, y) : remainder(x, y);
        } else if (const auto parts = parts_of_flat(x, y); parts && (floors || non_negative(parts->quotient))) {
          result = quotient ? parts->quotient : parts->remainder;
        }
        break;
      }
      default: break;
    }
  }
  return result && small(*result) ? result : std::nullopt;
}

// i and j of i*n + j, where j is an index below n.
std::optional<Poly::Division> Simplifier::parts_of_flat(const Poly& x, const Poly& y) const {
  if (!size_like(x) || !size_like(y) || y.is_zero()) return std::nullopt;
  Poly::Division parts = x.divide(y);
  const bool inside = non_negative(parts.remainder) && less(parts.remainder, y);
  return inside ? std::optional(std::move(parts)) : std::nullopt;
}

// The numbers of integer types of at most 32 bits.
std::pair<std::int64_t, std::int64_t> Simplifier::range_of(ScalarType type) {
  const int bits = bit_width(type);
  if (!is_signed(type)) return {0, (std::int64_t{1} << bits) - 1};
  return {-(std::int64_t{1} << (bits - 1)), (std::int64_t{1} << (bits - 1)) - 1};
}

bool Simplifier::stays_in(const Operand& x, ScalarType type) const {
  if (bit_width(type) > 32) return false;
  const auto [low, high] = range_of(type);
  const Poly p = rewrite(as_poly(x));
  return size_like(p) && non_negative(p - low) && non_negative(high - p);
}

// What was converted from a shorter type is in its range.
void Simplifier::know_converted(Value value, const Convert& op) {
  const ScalarType from = values().type(op.x).element;
  if (op.to != ScalarType::i64 || op.same_bits || !is_integer(from) || bit_width(from) > 32) return;
  const auto [low, high] = range_of(from);
  Bounds& bounds = bounds_[value];
  learned_.emplace_back(value, bounds);
  if (bounds.low.empty()) bounds.low.emplace_back(low);
  if (bounds.high.empty()) bounds.high.emplace_back(high);
}

void Simplifier::know_index(Value index, const Poly& bound) {
  Bounds& bounds = bounds_[index];
  learned_.emplace_back(index, bounds);
  if (!bound.constant()) bounds.kind = SymbolRange::Kind::index;
  if (bounds.low.empty()) bounds.low.emplace_back(0);
  if (std::ranges::find(bounds.high, bound - 1) == bounds.high.end()) bounds.high.push_back(bound - 1);
}

void Simplifier::know_size(Value size, std::int64_t at_least) {
  Bounds& bounds = bounds_[size];
  const auto known = std::ranges::find_if(bounds.low, [](const Poly& low) { return low.constant().has_value(); });
  if (known != bounds.low.end() && *known->constant() >= at_least) return;
  learned_.emplace_back(size, bounds);
  if (known != bounds.low.end())
    *known = Poly(at_least);
  else
    bounds.low.emplace_back(at_least);
}

// The size of an array: one has memory for it.
void Simplifier::know_dim(Value size) {
  Bounds& bounds = bounds_[size];
  learned_.emplace_back(size, bounds);
  bounds.kind = SymbolRange::Kind::size;
  know_size(size, 0);
}

void Simplifier::know_shape(const Type& type) {
  Poly all = 1;
  for (const Poly& size : type.shape) all *= size;
  for (const Term& term : all.terms())
    if (term.factors.size() > 1) know_product(term.factors);
  for (const Poly& size : type.shape) {
    const std::optional<Value> symbol = size.symbol();
    if (!symbol) continue;
    if (const auto known = bounds_.find(*symbol);
        known == bounds_.end() || known->second.kind != SymbolRange::Kind::size)
      know_dim(*symbol);
  }
}

// Sizes whose product is the number of elements of an array.
void Simplifier::know_product(const std::vector<Factor>& sizes) {
  if (!products_.insert(sizes).second) return;
  learned_products_.push_back(sizes);
  learned_.emplace_back(Value{}, Bounds{});
}

bool Simplifier::of_one_array(const std::vector<Factor>& sizes) const {
  if (products_.contains(sizes)) return true;
  constexpr std::ptrdiff_t kMostAsked = 32;  // the newest
  std::ptrdiff_t asked = 0;
  for (const auto& known : std::views::reverse(learned_products_)) {
    if (std::ranges::includes(known, sizes)) return true;
    if (++asked == kMostAsked) break;
  }
  return false;
}

// What follows from a condition, as that of a check that has passed or of a branch that is taken. The second part of a
// conjunction may be the result of a branch, as it is computed only where the first part holds.
void Simplifier::know_condition(const Operand& condition, bool holds) {
  const auto is = [](const Operand& x, bool value) { return x == Operand(Scalar::boolean(value)); };
  if (const auto* negated = definition<Unary>(condition)) {
    if (negated->op == UnaryOp::complement) know_condition(negated->x, !holds);
  } else if (const auto* both = definition<Binary>(condition)) {
    if (both->op != (holds ? BinaryOp::conj : BinaryOp::disj)) return;
    know_condition(both->x, holds);
    know_condition(both->y, holds);
  } else if (const auto* compare = definition<Compare>(condition)) {
    know_compared(*compare, holds);
  } else if (const auto found = condition.is_value() ? branches_.find(condition.value()) : branches_.end();
             found != branches_.end()) {
    const If branch = found->second;
    const Operand yes = rewrite(branch.then_body->results[0]), no = rewrite(branch.else_body->results[0]);
    // Which way gave the condition is known if the other one gives its opposite.
    if (!is(yes, !holds) && !is(no, !holds)) return;
    const bool taken = is(no, !holds);
    know_condition(branch.condition, taken);
    know_condition(taken ? yes : no, holds);
  }
}

// An integer that is compared with a constant is not 0 if the outcome would have been another one for 0.
void Simplifier::know_non_zero(const Compare& compare, bool holds) {
  const bool first = compare.x.is_value() && compare.y.is_constant();
  if (!first && !(compare.x.is_constant() && compare.y.is_value())) return;
  const Value value = (first ? compare.x : compare.y).value();
  const ScalarType type = values().type(value).element;
  if (!is_integer(type)) return;
  const Scalar zero = Scalar::zero(type);
  const std::optional<Scalar> of_zero =
      first ? evaluate(compare.op, zero, compare.y.constant()) : evaluate(compare.op, compare.x.constant(), zero);
  if (!of_zero || of_zero->as_bool() == holds) return;
  Bounds& bounds = bounds_[value];
  learned_.emplace_back(value, bounds);
  bounds.non_zero = true;
}

bool Simplifier::never_zero(const Operand& x) const {
  if (x.is_constant()) return x.constant().bits() != 0;
  if (const auto known = bounds_.find(x.value()); known != bounds_.end() && known->second.non_zero) return true;
  if (const Convert* converted = definition<Convert>(x)) {
    const ScalarType from = function_.values.type(converted->x).element;
    // Sign or zero extension.
    if (is_integer(from) && bit_width(from) <= bit_width(converted->to)) return never_zero(converted->x);
  }
  if (const Binary* made = definition<Binary>(x); made != nullptr && made->y.is_constant()) {
    const Scalar &bound = made->y.constant(), zero = Scalar::zero(bound.type());
    if (made->op == BinaryOp::max && evaluate(CompareOp::lt, zero, bound)->as_bool()) return true;
    if (made->op == BinaryOp::min && evaluate(CompareOp::lt, bound, zero)->as_bool()) return true;
  }
  if (function_.values.type(x).element != ScalarType::i64) return false;
  const Poly p = rewrite(as_poly(x));
  return size_like(p) && (non_negative(p - 1) || non_negative(-p - 1));
}

void Simplifier::know_compared(const Compare& compare, bool holds) {
  know_non_zero(compare, holds);
  if (values().type(compare.x).element != ScalarType::i64) return;
  const Poly over = rewrite(as_poly(compare.y)) - rewrite(as_poly(compare.x));
  switch (compare.op) {
    case CompareOp::lt: return know_non_negative(holds ? over - 1 : -over);
    case CompareOp::le: return know_non_negative(holds ? over : -over - 1);
    case CompareOp::eq:
    case CompareOp::ne:
      if (holds == (compare.op == CompareOp::eq)) {
        know_non_negative(over);
        know_non_negative(-over);
      } else if (size_like(over) && non_negative(over)) {  // an end of a range that is left out
        know_non_negative(over - 1);
      } else if (size_like(over) && non_negative(-over)) {
        know_non_negative(-over - 1);
      }
      return;
  }
}

// A bound of the symbol that came last.
void Simplifier::know_non_negative(const Poly& p) {
  Value last;
  p.for_each_symbol([&](Value v) { last = !last || last < v ? v : last; });
  // Else the difference may have wrapped.
  if (!last || (p != Poly(last) && !size_like(p))) return;
  const std::optional<Poly::Linear> linear = p.linear_in(last);
  const auto sign = linear ? linear->coefficient.constant() : std::nullopt;
  if (sign != 1 && sign != -1) return;
  if (sign == 1 && linear->rest.constant()) return know_size(last, -*linear->rest.constant());
  Bounds& bounds = bounds_[last];
  learned_.emplace_back(last, bounds);
  sign == 1 ? bounds.low.push_back(-linear->rest) : bounds.high.push_back(linear->rest);
}

void Simplifier::forget(std::size_t learned) {
  for (; learned_.size() > learned; learned_.pop_back()) {
    auto& [value, before] = learned_.back();
    if (!value) {
      products_.erase(learned_products_.back());
      learned_products_.pop_back();
      continue;
    }
    if (before.low.empty() && before.high.empty() && !before.non_zero)
      bounds_.erase(value);
    else
      bounds_[value] = std::move(before);
  }
}

SizeFacts Simplifier::facts_for(const std::vector<const Poly*>& polys) const {
  SizeFacts facts;
  std::vector<Value> pending;
  std::unordered_set<Value> seen;
  const auto mention = [&](const Poly& p) {
    p.for_each_symbol([&](Value v) {
      if (seen.insert(v).second) pending.push_back(v);
    });
  };
  for (const Poly* p : polys) mention(*p);
  while (!pending.empty()) {
    const Value value = pending.back();
    pending.pop_back();
    const auto known = bounds_.find(value);
    if (known == bounds_.end()) continue;
    for (const Poly& low : known->second.low) facts.at_least(value, low), mention(low);
    for (const Poly& high : known->second.high) facts.at_most(value, high), mention(high);
  }
  return facts;
}

// What is proved of integers holds of numbers of 64 bits that lie where both are the same.
bool Simplifier::non_negative(const Poly& p) const {
  return prove_non_negative(p, facts_for({&p})) == Proof::yes && interval_of(p).high < 0x1p63L;
}

bool Simplifier::less(const Poly& a, const Poly& b) const {
  return prove_less(a, b, facts_for({&a, &b})) == Proof::yes && interval_of(b).high < 0x1p63L &&
         interval_of(a).low >= -0x1p63L;
}

// What the facts about a symbol, and those about the symbols in them, say of its number.
SymbolRange Simplifier::range_of(Value v, int depth) const {
  SymbolRange range;
  const auto known = bounds_.find(v);
  if (known == bounds_.end()) return range;
  range.kind = known->second.kind;
  if (range.kind != SymbolRange::Kind::number) range.low = 0, range.high = kMostElements;
  constexpr int kDeepest = 3;
  RangeOf inner = ranges(depth + 1);
  if (depth >= kDeepest) inner.symbol = [](Value) { return SymbolRange{}; };
  for (const Poly& low : known->second.low) range.low = std::max(range.low, apl::range_of(low, inner).low);
  for (const Poly& high : known->second.high) {
    const long double most = apl::range_of(high, inner).high;
    range.high = std::min(range.high, most);
    // Below a size it is an index, whatever made it.
    if (!high.constant() && range.low >= 0 && most <= kMostElements && range.kind == SymbolRange::Kind::number)
      range.kind = SymbolRange::Kind::index;
  }
  return range;
}

RangeOf Simplifier::ranges(int depth) const {
  return {.symbol = [this, depth](Value v) { return range_of(v, depth); },
          .of_one_array = [this](const std::vector<Factor>& sizes) { return of_one_array(sizes); }};
}

SymbolRange Simplifier::interval_of(const Poly& p) const { return apl::range_of(p, ranges(0)); }

// Whether the laws of polynomials hold for it: no sum or product wraps.
bool Simplifier::size_like(const Poly& p) const { return is_exact(p, ranges(0)); }

bool Simplifier::safe_size(const Poly& p) const { return is_safe_size(p, ranges(0)); }

bool Simplifier::in_bounds(const Type& array, const std::vector<DimIndex>& dims) const {
  for (std::size_t k = 0; k < dims.size(); ++k) {
    const DimIndex& dim = dims[k];
    const Poly& size = array.shape[k];
    if (!dim.is_slice()) {
      if (!non_negative(dim.start) || !less(dim.start, size)) return false;
      continue;
    }
    // The usual slices: by a constant step, and whole dims.
    const std::optional<std::int64_t> step = dim.stride.constant();
    if (!step || *step == 0 || !non_negative(*dim.count)) return false;
    if (*step >= 1) {
      if (!non_negative(dim.start)) return false;
      if (!non_negative(size - dim.start - *step * *dim.count + (*step - 1))) return false;
      continue;
    }
    // Backwards, the start of an empty slice may be -1, which is in bounds as all empty slices are.
    const Poly last = dim.start + *step * (*dim.count - 1);
    SizeFacts facts = facts_for({&dim.start, &*dim.count, &size});
    if (const auto symbol = dim.count->symbol()) facts.at_least(*symbol, 1);
    if (prove_non_negative(last, facts) != Proof::yes || prove_less(dim.start, size, facts) != Proof::yes) return false;
  }
  return true;
}

// The same where indices are one of two numbers, each in bounds where it is the one.
bool Simplifier::in_bounds_either_way(const Type& array, const std::vector<DimIndex>& dims) {
  for (std::size_t k = 0; k < dims.size(); ++k) {
    const auto symbol = dims[k].is_slice() ? std::nullopt : dims[k].start.symbol();
    const auto found = symbol ? branches_.find(*symbol) : branches_.end();
    if (found == branches_.end()) continue;
    const If branch = found->second;
    bool inside = true;
    for (const bool holds : {true, false}) {
      const Operand& number = (holds ? branch.then_body : branch.else_body)->results[0];
      std::vector<DimIndex> either = dims;
      either[k] = DimIndex::fix(rewrite(as_poly(number)));
      const std::size_t learned = learned_.size();
      know_condition(branch.condition, holds);
      inside = inside && in_bounds_either_way(array, either);
      forget(learned);
    }
    return inside;
  }
  return in_bounds(array, dims);
}

}  // namespace apl
