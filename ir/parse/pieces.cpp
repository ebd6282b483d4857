// Polynomials, types, layouts, operands and the other small pieces.
#include <fmt/format.h>

#include <limits>

#include "ir/parse/parser.h"

namespace apl {

namespace {

constexpr std::uint64_t kTwoTo63 = std::uint64_t{1} << 63;
// Products of sums grow fast when multiplied out: a limit, so that no input exhausts memory or time.
constexpr std::size_t kMaxPolySize = 20000;

}  // namespace

// A polynomial with an upper bound on how many symbols and numbers its text has.
struct Parser::SizedPoly {
  Poly poly;
  std::size_t size = 1;
};

Poly Parser::poly() { return poly_sum().poly; }

Parser::SizedPoly Parser::poly_sum() {
  const Nesting nesting(*this);
  const Token start = peek();
  const bool negated = accept("-");
  SizedPoly sum = poly_product(negated);
  while (is("+") || is("-")) {
    const bool negative = take().is("-");
    const SizedPoly next = poly_product(negative);
    sum.poly += next.poly;
    sum.size += next.size;
    if (sum.size > kMaxPolySize) fail(start, "this polynomial is too large");
  }
  return sum;
}

Parser::SizedPoly Parser::poly_product(bool negative) {
  const Token start = peek();
  SizedPoly product = poly_atom(negative);
  while (accept("*")) {
    const SizedPoly next = poly_atom(false);
    product.size = product.size * next.poly.terms().size() + next.size * product.poly.terms().size() + 1;
    if (product.size > kMaxPolySize) fail(start, "this polynomial is too large");
    product.poly *= next.poly;
  }
  return product;
}

Parser::SizedPoly Parser::poly_atom(bool negative) {
  const auto with_sign = [&](const Poly& poly) { return negative ? -poly : poly; };
  if (is(Token::Kind::number)) {
    // 2^63 exists with a minus only.
    const std::uint64_t magnitude = natural(negative ? kTwoTo63 : kTwoTo63 - 1, "an integer without suffix");
    return {with_sign(Poly(static_cast<std::int64_t>(magnitude)))};
  }
  if (accept("(")) {
    SizedPoly inner = poly_sum();
    expect(")");
    return {with_sign(inner.poly), inner.size};
  }
  if (is(Token::Kind::name) && peek(1).is("(")) {
    const Token name = take();
    Poly (*make)(const Poly&, const Poly&) = nullptr;
    if (name.is("ceil_div")) make = ceil_div;
    if (name.is("floor_div")) make = floor_div;
    if (name.is("min")) make = poly_min;
    if (name.is("max")) make = poly_max;
    if (make == nullptr)
      fail(name, fmt::format("`{}` is no function of sizes; these are ceil_div, floor_div, min, max", name.text));
    expect("(");
    const SizedPoly a = poly_sum();
    expect(",");
    const SizedPoly b = poly_sum();
    expect(")");
    if (a.size + b.size >= kMaxPolySize) fail(name, "this polynomial is too large");
    return {with_sign(make(a.poly, b.poly)), a.size + b.size + 1};
  }
  if (!is(Token::Kind::name)) fail_expected("a size: a name, an integer or a polynomial");
  return {with_sign(Poly(use()))};
}

std::vector<Poly> Parser::polys(std::string_view open, std::string_view close) {
  std::vector<Poly> result;
  list(open, close, [&] { result.push_back(poly()); });
  return result;
}

std::uint64_t Parser::natural(std::uint64_t limit, std::string_view what) {
  if (!is(Token::Kind::number)) fail_expected(what);
  std::uint64_t value = 0;
  for (char c : peek().text) {
    if (c < '0' || c > '9') fail_expected(what);
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (value > (limit - digit) / 10) fail(peek(), "this number is too large");
    value = value * 10 + digit;
  }
  take();
  return value;
}

std::int64_t Parser::integer() {
  const bool negative = accept("-");
  const std::uint64_t magnitude = natural(negative ? kTwoTo63 : kTwoTo63 - 1, "an integer without suffix");
  return static_cast<std::int64_t>(negative ? std::uint64_t{0} - magnitude : magnitude);
}

Operand Parser::operand() {
  const Token start = peek();
  if (start.is("(")) {
    take();
    expect(")", "after `(`: the unit constant is `()`");
    return Scalar::unit();
  }
  const bool negative = accept("-");
  const bool word = is("true") || is("false") || peek().text.find('.') != std::string_view::npos;
  if (!is(Token::Kind::number) && !(is(Token::Kind::name) && (word || negative))) {
    if (is(Token::Kind::name)) return use();
    fail_expected("an operand: a name or a constant");
  }
  const Token token = take();
  const auto constant = Scalar::parse((negative ? "-" : "") + std::string(token.text));
  if (constant) return *constant;
  if (token.text.find_first_not_of("0123456789") == std::string_view::npos)
    fail(start, "a constant needs the suffix of its type, such as `3i64`");
  fail(start, fmt::format("`{}` is not a constant of any type", token.text.substr(0, 40)));
}

std::vector<Operand> Parser::operands(std::string_view open, std::string_view close) {
  std::vector<Operand> result;
  list(open, close, [&] { result.push_back(operand()); });
  return result;
}

std::vector<int> Parser::permutation() {
  std::vector<int> result;
  list("(", ")",
       [&] { result.push_back(static_cast<int>(natural(std::numeric_limits<int>::max(), "the number of a dim"))); });
  return result;
}

ScalarType Parser::scalar_type() {
  const auto type = is(Token::Kind::name) ? scalar_type_from_text(peek().text) : std::nullopt;
  if (!type) fail_expected("a scalar type");
  take();
  return *type;
}

Space Parser::space() {
  if (accept("global")) return Space::global;
  if (accept("shared")) return Space::shared;
  if (accept("thread")) return Space::thread;
  fail_expected("a memory space: `global`, `shared` or `thread`");
}

Type Parser::type() {
  Type type;
  type.unique = accept("*");
  if (accept("mem")) {
    expect("@");
    type.kind = Type::Kind::memory;
    type.space = space();
  } else {
    while (accept("[")) {
      type.shape.push_back(poly());
      expect("]");
    }
    type.element = scalar_type();
  }
  // `@` and a number is a location, which ends a statement.
  if (is("@") && peek(1).kind != Token::Kind::number) {
    take();
    // Parameters lie in blocks of the caller, which nothing binds but their own types.
    const bool named_here = in_params_ && is(Token::Kind::name) && !visible_.contains(std::string(peek().text));
    const Value block = named_here ? bind(take(), Type::block(Space::global)) : use();
    expect("->");
    type.memory = std::make_shared<const MemoryBinding>(MemoryBinding{block, lmad(&type.shape)});
  }
  return type;
}

Lmad Parser::lmad(const std::vector<Poly>* shape_if_absent) {
  const Token start = peek();
  expect("{");
  expect("offset");
  expect(":");
  Poly offset = poly();
  expect(";");
  std::vector<Poly> shape = shape_if_absent ? *shape_if_absent : std::vector<Poly>{};
  if (!shape_if_absent || is("shape")) {
    expect("shape");
    expect(":");
    shape = polys("[", "]");
    expect(";");
  }
  expect("strides");
  expect(":");
  std::vector<Poly> strides = polys("[", "]");
  expect("}");
  if (strides.size() != shape.size())
    fail(start, fmt::format("this layout has {} sizes and {} strides", shape.size(), strides.size()));
  std::vector<LmadDim> dims(shape.size());
  for (std::size_t k = 0; k < dims.size(); ++k) dims[k] = {std::move(shape[k]), std::move(strides[k])};
  return {std::move(offset), std::move(dims)};
}

std::vector<DimIndex> Parser::dims() {
  std::vector<DimIndex> result;
  list("[", "]", [&] {
    DimIndex dim = DimIndex::fix(poly());
    if (accept(":+")) {
      dim.count = poly();
      if (accept("by")) dim.stride = poly();
    }
    result.push_back(std::move(dim));
  });
  return result;
}

Location Parser::location() {
  if (!accept("@")) return {};
  Location result = range();
  std::vector<Location> calls;  // the innermost first
  while (accept("from")) calls.push_back(range());
  for (auto call = calls.rbegin(); call != calls.rend(); ++call) {
    call->call = call == calls.rbegin() ? 0 : result.call;
    result.call = calls_.add(*call);
  }
  return result;
}

Location Parser::range() {
  const auto number = [&] {
    return static_cast<std::uint32_t>(natural(std::numeric_limits<std::uint32_t>::max(), "a line or column"));
  };
  Location location;
  location.line = number();
  expect(":");
  location.column = number();
  expect("-");
  location.end_line = number();
  expect(":");
  location.end_column = number();
  return location;
}

std::vector<Attribute> Parser::attributes() {
  std::vector<Attribute> result;
  while (accept("#[")) {
    Attribute attribute{name_or_string("an attribute"), {}};
    const auto argument = [&] {
      return is(Token::Kind::number) ? std::string(take().text) : name_or_string("a number, a name");
    };
    if (is("(")) list("(", ")", [&] { attribute.arguments.push_back(argument()); });
    expect("]");
    result.push_back(std::move(attribute));
  }
  return result;
}

}  // namespace apl
