// Scalar code runs in columns of many indices: it must mean what ir/scalar.h says of each.
#include <doctest/doctest.h>

#include <array>
#include <functional>

#include "programs.h"
#include "random_values.h"

namespace apl::test {
namespace {

using Operands = std::vector<Operand>;
using Values = std::vector<Value>;

constexpr std::int64_t kCount = 300;  // more than the lanes of one column

constexpr std::array kTypes = {ScalarType::i8,  ScalarType::i16, ScalarType::i32, ScalarType::i64,
                               ScalarType::u8,  ScalarType::u16, ScalarType::u32, ScalarType::u64,
                               ScalarType::f16, ScalarType::f32, ScalarType::f64, ScalarType::boolean};

// Any bits, and often the ends of the type, infinities and NaNs of both signs.
HostValue numbers(ScalarType type, testing_random::Random& random, bool no_zero = false) {
  HostValue value = HostValue::zeros(type, {kCount});
  for (std::int64_t k = 0; k < kCount; ++k) {
    const std::uint64_t bits = random.bits();
    Scalar x = type == ScalarType::boolean ? Scalar::boolean(bits % 2 == 0) : Scalar::from_bits(type, bits);
    if (is_float(type) && random.chance(50))
      x = Scalar::floating(type, random.pick<double>({0.0, -0.0, 1.5, -1.5, 1e30, -HUGE_VAL, HUGE_VAL, NAN}));
    if (is_integer(type) && random.chance(40)) x = Scalar::integer(type, random.between(-2, 2));
    if (no_zero && x.bits() == 0) x = Scalar::integer(type, 1);
    value.set(k, x);
  }
  return value;
}

// map(i < n, arrays, f) of arrays of the given types, and what its lanes should be.
void check_lanes(const std::vector<HostValue>& arrays, const std::function<Operand(Builder&, const Values&)>& f,
                 const std::function<Scalar(std::int64_t)>& wanted) {
  Program p;
  const Value n = p.size("n");
  Screma map{.widths = {n}};
  std::vector<Type> types;
  std::vector<std::string> names;
  for (const HostValue& array : arrays) {
    map.inputs.push_back(p.param("xs", Type::array(array.type, {n})));
    types.push_back(Type::scalar(array.type));
    names.emplace_back("x");
  }
  const Module module = p.body([&](Builder& b) {
    map.indices = {b.values().add(i64(), "i")};
    map.map = b.lambda(types, names, [&](Builder& inner, const Values& params) { return Operands{f(inner, params)}; });
    return Operands{b.let("ys", map)};
  });
  const auto results = interpret(module, "f", arrays, {});
  REQUIRE(results);
  HostValue all = results->front();
  for (std::int64_t k = 0; k < kCount; ++k) {
    CAPTURE(k);
    all.set(k, wanted(k));
    REQUIRE(results->front().at(k).to_text() == wanted(k).to_text());
  }
  REQUIRE(results->front() == all);  // every NaN has the same bits
}

template <class Op>
std::vector<Op> all_operations(std::size_t count) {
  std::vector<Op> all;
  for (std::size_t k = 0; k < count; ++k) all.push_back(static_cast<Op>(k));
  return all;
}

}  // namespace

TEST_CASE("every scalar operation means in columns what it means alone") {
  testing_random::Random random(11);
  constexpr std::size_t kBinary = 0
#define APL_BINARY(name, text, domain) +1
#include "ir/ops.def"
      ;
  constexpr std::size_t kUnary = 0
#define APL_UNARY(name, text, domain) +1
#include "ir/ops.def"
      ;
  for (const ScalarType type : kTypes) {
    CAPTURE(to_text(type));
    for (const BinaryOp op : all_operations<BinaryOp>(kBinary)) {
      if (!accepts(op, type)) continue;
      CAPTURE(to_text(op));
      const bool divides = is_integer(type) &&
                           (op == BinaryOp::div || op == BinaryOp::mod || op == BinaryOp::quot || op == BinaryOp::rem);
      const HostValue xs = numbers(type, random), ys = numbers(type, random, divides);
      check_lanes(
          {xs, ys}, [&](Builder& b, const Values& v) { return b.binary(op, v[0], v[1]); },
          [&](std::int64_t k) { return *evaluate(op, xs.at(k), ys.at(k)); });
    }
    for (const UnaryOp op : all_operations<UnaryOp>(kUnary)) {
      if (!accepts(op, type)) continue;
      CAPTURE(to_text(op));
      const HostValue xs = numbers(type, random);
      check_lanes(
          {xs}, [&](Builder& b, const Values& v) { return b.unary(op, v[0]); },
          [&](std::int64_t k) { return *evaluate(op, xs.at(k)); });
    }
    for (const CompareOp op : {CompareOp::eq, CompareOp::ne, CompareOp::lt, CompareOp::le}) {
      const HostValue xs = numbers(type, random), ys = numbers(type, random);
      check_lanes(
          {xs, ys}, [&](Builder& b, const Values& v) { return b.compare(op, v[0], v[1]); },
          [&](std::int64_t k) { return *evaluate(op, xs.at(k), ys.at(k)); });
    }
    for (const ScalarType to : kTypes) {
      CAPTURE(to_text(to));
      const HostValue xs = numbers(type, random);
      check_lanes(
          {xs},
          [&](Builder& b, const Values& v) {
            return b.let("y", Convert{to, v[0]});
          },
          [&](std::int64_t k) { return convert(xs.at(k), to); });
    }
  }
}

TEST_CASE("operators fold columns in row-major order, over dims that lie in any order") {
  // 3*s + x does not commute; the rows are those of a transposed array, and the indices count too.
  Program p;
  const Value n = p.size("n"), m = p.size("m");
  const Value xs = p.param("xs", i32s({n, m}));
  const Module module = p.body([&](Builder& b) {
    const Value turned = b.rearrange(xs, {1, 0});
    const Value i = b.values().add(i64(), "i"), j = b.values().add(i64(), "j");
    const Lambda map = b.lambda({i32()}, {"x"}, [&](Builder& inner, const Values& v) {
      const Value at = inner.size(Poly(i) * 2 + Poly(j) - 1);
      const Value number = inner.let("number", Convert{ScalarType::i32, at});
      const Value sum = inner.binary(BinaryOp::add, v[0], number);
      return Operands{sum, v[0], sum};
    });
    const Lambda horner = b.lambda({i32(), i32()}, {"s", "x"}, [&](Builder& inner, const Values& v) {
      const Value tripled = inner.binary(BinaryOp::mul, v[0], int32(3));
      return Operands{inner.binary(BinaryOp::add, tripled, v[1])};
    });
    ReduceOp scan{binary_lambda(b, BinaryOp::sub, i32()), {int32(0)}};
    scan.scan = true;
    const auto results =
        b.let_many({"r", "s", "ys"}, Screma{{m, n}, {i, j}, {turned}, map, {{horner, {int32(0)}}, scan}});
    return Operands{results[0], results[1], results[2]};
  });
  const HostValue matrix = pattern({17, 31});
  std::int32_t horner = 0, running = 0;
  HostValue scanned = HostValue::zeros(ScalarType::i32, {31, 17}), mapped = scanned;
  for (std::int64_t i = 0; i < 31; ++i) {
    for (std::int64_t j = 0; j < 17; ++j) {
      const auto x = static_cast<std::int32_t>(matrix.at(j * 31 + i).as_int());
      const auto y = static_cast<std::int32_t>(x + 2 * i + j - 1);
      horner = static_cast<std::int32_t>(static_cast<std::uint32_t>(horner) * 3 + static_cast<std::uint32_t>(y));
      running -= x;
      scanned.set(i * 17 + j, Scalar::integer(ScalarType::i32, running));
      mapped.set(i * 17 + j, Scalar::integer(ScalarType::i32, y));
    }
  }
  const std::string wanted = int_value(horner).to_text() + " " + scanned.to_text() + " " + mapped.to_text();
  CHECK(run_text(module, {matrix}) == wanted);
}

TEST_CASE("what fails in a column fails as it does alone") {
  const auto run = [&](const std::function<Operand(Builder&, Value row, Value i)>& f) {
    Program p;
    const Value n = p.size("n"), m = p.size("m");
    const Value xs = p.param("xs", i32s({n, m}));
    const Module module = p.body([&](Builder& b) {
      b.set_location({.line = 4, .column = 2, .end_line = 4, .end_column = 9});
      const Value i = b.values().add(i64(), "i");
      const Lambda map =
          b.lambda({i32s({m})}, {"row"}, [&](Builder& inner, const Values& v) { return Operands{f(inner, v[0], i)}; });
      return Operands{b.let("r", Screma{{n}, {i}, {xs}, map, {}})};
    });
    return run_text(module, {ints({5, 2}, {4, 1, 6, 2, 8, 4, 3, 0, 9, 3})});
  };
  CHECK(run([](Builder& b, Value row, Value) {
          return b.binary(BinaryOp::add, b.index(row, {0}), b.index(row, {1}));
        }) == "[5i32, 8i32, 12i32, 3i32, 12i32]");
  CHECK(run([](Builder& b, Value row, Value) {
          return b.binary(BinaryOp::div, b.index(row, {0}), b.index(row, {1}));
        }) == "run.division-by-zero 4:2 division by zero");
  CHECK(run([](Builder& b, Value row, Value i) {
          return b.let("x", Index{row, {DimIndex::fix(Poly(i) * Poly(i) - 14)}, true});
        }).starts_with("run.index-out-of-bounds 4:2 Index ["));
  CHECK(run([](Builder& b, Value row, Value) {
          const Value ok = b.compare(CompareOp::ne, b.index(row, {0}), int32(3));
          b.let("c", Assert{ok, {"a three"}});
          return Operand(b.index(row, {1}));
        }) == "run.assertion 4:2 a three");
}

}  // namespace apl::test
