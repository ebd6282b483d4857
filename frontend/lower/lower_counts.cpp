// Checks of sizes where arrays are made: none is negative, and what becomes a size is no product that wraps. They are
// statements of the program, so that every backend says the same; what is known already is not checked again, and
// simplify moves what is left out of maps.
#include <algorithm>
#include <ranges>
#include <set>

#include "frontend/lower/lowerer.h"

namespace apl::frontend {

namespace {

// More elements than memory has bytes; the interpreter's arrays end there, too.
constexpr auto kMostInMemory = static_cast<std::int64_t>(kMostElements);
// Known sizes that a question considers, the newest first.
constexpr std::ptrdiff_t kMostAsked = 8;
// Larger sizes stay behind a name: each of many concatenations would have the sizes of all arrays before it.
constexpr std::size_t kMostTerms = 12;

}  // namespace

void Lowerer::know_count(const Poly& count) {
  if (!count.constant() && known_.counts.insert(count).second) known_.new_counts.push_back(count);
}

// That this is the size of an array says how large its symbols are where they are factors of its only term, and no
// number is.
void Lowerer::know_factors(const Poly& size) {
  const Term* only = nullptr;
  for (const Term& term : size.terms()) {
    if (term.factors.empty()) continue;
    if (only || (term.coefficient != 1 && term.coefficient != -1)) return;
    only = &term;
  }
  if (only) Poly(*only).for_each_symbol([&](Value v) { known_.factors.insert(v); });
}

void Lowerer::know_product(const Poly& product) {
  if (!product.constant() && known_.products.insert(product).second) known_.new_products.push_back(product);
}

// A parameter: an array that lies in memory has no more elements than there can be, and nor have its rows.
void Lowerer::know_param(const Type& type, bool in_memory) {
  for (std::size_t first = 0; first < type.shape.size(); ++first) {
    know_count(type.shape[first]);
    Poly product = type.shape[first];
    for (std::size_t k = first + 1; k < type.shape.size() && in_memory; ++k)
      know_product(product = limited(product * type.shape[k]));
  }
}

SizeFacts Lowerer::facts_of(const Poly& size) const {
  SizeFacts facts;
  std::set<Value> symbols;
  size.for_each_symbol([&](Value v) { symbols.insert(v); });
  for (const Value v : symbols) {
    if (known_.counts.contains(Poly(v))) facts.at_least(v, 0);
    if (const auto index = known_.indices.find(v); index != known_.indices.end()) facts.index_of(v, index->second);
  }
  std::ptrdiff_t asked = 0;
  for (const Poly& count : std::views::reverse(known_.new_counts)) {
    bool shares = !count.symbol();
    count.for_each_symbol([&](Value v) { shares = shares && symbols.contains(v); });
    if (!shares) continue;
    facts.non_negative(count);
    if (++asked == kMostAsked) break;
  }
  return facts;
}

bool Lowerer::is_known_count(const Poly& count) const {
  if (const auto number = count.constant()) return *number >= 0;
  return known_.counts.contains(count) || (is_exact(count) && prove_non_negative(count, facts_of(count)) == Proof::yes);
}

bool Lowerer::is_known_product(const Poly& product) const {
  if (known_.products.contains(product)) return true;
  std::ptrdiff_t asked = 0;
  for (const Poly& known : std::views::reverse(known_.new_products)) {
    if (prove_non_negative(known - product, facts_of(known - product)) == Proof::yes) return true;
    if (++asked == kMostAsked) break;
  }
  return false;
}

SymbolRange Lowerer::range_of(Value v) const {
  using Kind = SymbolRange::Kind;
  if (known_.counts.contains(Poly(v))) return SymbolRange{.kind = Kind::size, .low = 0, .high = kMostElements};
  if (known_.factors.contains(v)) return SymbolRange{.kind = Kind::size, .low = -kMostElements, .high = kMostElements};
  const auto found = known_.indices.find(v);
  if (found == known_.indices.end()) return SymbolRange{};
  const auto bound = found->second.constant();
  if (bound) return SymbolRange{.low = 0, .high = static_cast<long double>(*bound) - 1};
  return SymbolRange{.kind = Kind::index, .low = 0, .high = kMostElements};
}

RangeOf Lowerer::ranges() const {
  return {.symbol = [&](Value v) { return range_of(v); },
          .of_one_array =
              [&](const std::vector<Factor>& sizes) {
                const Poly product(Term{1, sizes});
                return known_.products.contains(product) || known_.counts.contains(product);
              }};
}

// Whether no sum or product in it wraps.
bool Lowerer::is_exact(const Poly& index) const { return apl::is_exact(index, ranges()); }

bool Lowerer::is_safe_size(const Poly& size) const { return apl::is_safe_size(size, ranges()); }

// Whether what the size is made of is known in that body.
bool Lowerer::is_available(const Poly& size, const Level& level) const {
  std::set<Value> symbols;
  size.for_each_symbol([&](Value v) {
    if (v.id >= level.first) symbols.insert(v);
  });
  for (const Stm& stm : level.builder->stms())
    for (const Value v : stm.pattern) symbols.erase(v);
  if (&level == &levels_.front())
    for (const auto* known : {&function_->sizes, &function_->params})
      for (const Value v : *known) symbols.erase(v);
  return symbols.empty();
}

// The size as passes may compute with it (ir/poly_range.h): behind a name where its polynomial is more than its value
// says. The same polynomial has the same name, which stands in the outermost body that can have it: arrays that leave
// inner ones may have that size.
Poly Lowerer::safe_size(const Poly& size) { return is_safe_size(size) ? size : named_size(size); }

// The size of an array, which has memory for it; behind a name where it is long.
Poly Lowerer::short_size(const Poly& size) {
  if (size.terms().size() <= kMostTerms) return size;
  const Poly name = named_size(size);
  know_count(name);
  return name;
}

Poly Lowerer::named_size(const Poly& size) {
  const auto found = known_.named.find(size);
  if (found != known_.named.end()) return Poly(found->second);
  const auto level = std::ranges::find_if(levels_, [&](const Level& l) { return is_available(size, l); });
  Level& here = level == levels_.end() ? levels_.back() : *level;
  const Value name = here.builder->let("size", apl::SizeExpr{size});
  known_.named.emplace(size, name);
  here.named.push_back(size);
  return Poly(name);
}

// Fails where the count is negative.
void Lowerer::check_count(const Poly& count, const std::function<Message()>& message) {
  if (is_known_count(count)) return;
  const Value valid = builder_->compare(CompareOp::le, i64_constant(0), operand(StaticValue(count)));
  builder_->let("c", Assert{valid, message()});
  know_count(count);
}

void Lowerer::check_size(const Poly& count, const std::string& what) {
  check_count(count, [&] { return Message{what + " of size ", operand(StaticValue(count)), "."}; });
}

// Fails where an array of this shape, whose sizes are not negative, has more elements than there can be. Nothing in the
// check wraps: a*b <= N is a <= N / b, unless b is 0.
void Lowerer::check_elements(const std::vector<Poly>& shape, Location location) {
  Poly product = 1, some = shape.front(), most = kMostInMemory;
  for (const Poly& size : shape) product = limited(product * size);
  if (shape.size() < 2 || is_known_product(product)) return;
  for (std::size_t k = 1; k < shape.size(); ++k) {
    some *= poly_min(shape[k], 1);
    most = floor_div(most, poly_max(shape[k], 1));
  }
  if (prove_non_negative(most - some, facts_of(most - some)) == Proof::yes) return;
  builder_->set_location(location);
  const Value fits = builder_->compare(CompareOp::le, operand(StaticValue(some)), operand(StaticValue(most)));
  Message message{"an array of shape "};
  for (const Poly& size : shape) message.insert(message.end(), {"[", operand(StaticValue(size)), "]"});
  message.emplace_back(" has too many elements.");
  builder_->let("c", Assert{fits, std::move(message)});
  builder_->set_location(location_);
  know_product(product);
}

}  // namespace apl::frontend
