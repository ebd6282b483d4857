#include "ir/verify/check.h"

#include <fmt/format.h>
#include <range/v3/view/zip.hpp>

#include "ir/walk.h"

namespace apl::verifier {

void Check::broken(const Stm& stm, const std::string& what) {
  std::string names;
  for (Value v : stm.pattern) names += (names.empty() ? "" : ", ") + function.values.name(v);
  if (names.empty()) names = op_name(stm.op);
  out_.push_back(
      make_error(Code::ir_invalid, stm.location, fmt::format("`{}` in `{}`: {}.", names, function.name, what)));
}

void Check::broken(const std::string& what) {
  out_.push_back(make_error(Code::ir_invalid, function.location, fmt::format("`{}`: {}.", function.name, what)));
}

void Check::learn_sizes() {
  for_each_stm(*function.body, [&](const Stm& stm) {
    if (stm.pattern.size() != 1) return;
    if (const SizeExpr* size = get_if<SizeExpr>(stm)) sizes_.emplace(stm.pattern.front(), size->value);
    if (const Binary* binary = get_if<Binary>(stm))
      if (const auto size = as_size(*binary)) sizes_.emplace(stm.pattern.front(), *size);
    const Use* use = get_if<Use>(stm);
    if (use && type(use->x).same(Type::scalar(ScalarType::i64)))
      sizes_.emplace(stm.pattern.front(), use->x.is_value() ? Poly(use->x.value()) : Poly(use->x.constant().as_int()));
  });
}

// What an i64 operation gives as a polynomial, where it is one whatever the operands are.
std::optional<Poly> Check::as_size(const Binary& op) const {
  const auto known = [&](const Operand& x) -> std::optional<Poly> {
    if (!type(x).same(Type::scalar(ScalarType::i64))) return std::nullopt;
    return x.is_value() ? Poly(x.value()) : Poly(x.constant().as_int());
  };
  const std::optional<Poly> x = known(op.x), y = known(op.y);
  if (!x || !y) return std::nullopt;
  switch (op.op) {
    case BinaryOp::add: return *x + *y;
    case BinaryOp::sub: return *x - *y;
    case BinaryOp::mul: return *x * *y;
    case BinaryOp::min: return poly_min(*x, *y);
    case BinaryOp::max: return poly_max(*x, *y);
    default: return std::nullopt;
  }
}

Poly Check::expand(Poly poly) const {
  // Bounded: definitions of an ill-formed function may be circular, and a chain of squares has no end of factors.
  constexpr int kMostRounds = 16;
  constexpr std::size_t kMostTerms = 64;
  constexpr std::size_t kMostFactors = 16;
  for (int round = 0; round < kMostRounds; ++round) {
    bool found = false;
    Poly next = poly.substitute([&](Value symbol) -> std::optional<Poly> {
      auto size = sizes_.find(symbol);
      if (size == sizes_.end()) return std::nullopt;
      found = true;
      return size->second;
    });
    if (!found || next.terms().size() > kMostTerms) return poly;
    for (const Term& term : next.terms())
      if (term.factors.size() > kMostFactors) return poly;
    poly = std::move(next);
  }
  return poly;
}

bool Check::equal(const Poly& a, const Poly& b) const {
  return a == b || prove_equal(expand(a), expand(b)) == Proof::yes;
}

bool Check::may_be_equal(const Poly& a, const Poly& b) const {
  return a == b || prove_equal(expand(a), expand(b)) != Proof::no;
}

bool Check::similar(const Type& a, const Type& b) const {
  if (a.kind != b.kind) return false;
  if (a.is_memory()) return a.space == b.space;
  return a.element == b.element && a.rank() == b.rank();
}

bool Check::same(const Type& a, const Type& b) const {
  if (!similar(a, b)) return false;
  for (const auto& [x, y] : ranges::views::zip(a.shape, b.shape))
    if (!equal(x, y)) return false;
  return true;
}

bool Check::compatible(const Type& a, const Type& b) const {
  if (!similar(a, b)) return false;
  for (const auto& [x, y] : ranges::views::zip(a.shape, b.shape))
    if (!may_be_equal(x, y)) return false;
  return true;
}

std::string Check::text(const Poly& poly) const {
  return poly.to_string([&](Value v) { return function.values.name(v); });
}

std::string Check::text(const Type& type) const {
  if (type.is_memory()) return "mem";
  std::string result;
  for (const Poly& size : type.shape) result += fmt::format("[{}]", text(size));
  return result + std::string(to_text(type.element));
}

std::string Check::text(const Operand& x) const { return x.is_constant() ? x.constant().to_text() : name(x.value()); }

namespace {

using Visit = std::function<void(const Stm&, const Surroundings&)>;

void walk_body(const Body& body, const Surroundings& around, const Visit& visit) {
  for (const Stm& stm : body.stms) {
    visit(stm, around);
    Surroundings inner = around;
    if (const SegOp* seg = get_if<SegOp>(stm)) {
      inner.level = seg->level == SegLevel::thread  ? Surroundings::Level::thread
                    : seg->level == SegLevel::block ? Surroundings::Level::block
                                                    : Surroundings::Level::inblock;
      inner.in_lambda = false;
    }
    // A scatter outside of all kernels is one itself.
    if (get_if<Scatter>(stm) && around.level == Surroundings::Level::host) inner.level = Surroundings::Level::thread;
    if (get_if<Screma>(stm) || get_if<Scatter>(stm) || get_if<CopyTile>(stm) || get_if<TileContract>(stm))
      inner.in_lambda = true;
    for_each_body(stm.op, [&](const BodyPtr& nested) { walk_body(*nested, inner, visit); });
  }
}

}  // namespace

void walk(const Function& function, const Visit& visit) { walk_body(*function.body, {}, visit); }

}  // namespace apl::verifier
