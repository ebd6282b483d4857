// Map, reduce and redomap, and that the order in which indices run does not show.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include "ir/parse.h"
#include "ir/walk.h"
#include "programs.h"

namespace apl::test {
namespace {

// \i x -> x*x + i
Module map_squares() {
  Program p;
  Value n = p.size("n");
  Value xs = p.param("xs", i32s({n}));
  return p.body([&](Builder& b) {
    Value i = b.values().add(i64(), "i");
    Lambda map = b.lambda({i32()}, {"x"}, [&](Builder& inner, const std::vector<Value>& v) {
      Value square = inner.binary(BinaryOp::mul, v[0], v[0]);
      return std::vector<Operand>{inner.binary(BinaryOp::add, square, inner.convert(ScalarType::i32, i))};
    });
    return std::vector<Operand>{b.let("ys", Screma{{n}, {i}, {xs}, map, {}})};
  });
}

// Composition of the maps x -> a*x + b, first one first: associative, not commutative, two values.
ReduceOp compose(Builder& b) {
  Lambda op =
      b.lambda({i32(), i32(), i32(), i32()}, {"a", "b", "c", "d"}, [](Builder& inner, const std::vector<Value>& v) {
        Value a = inner.binary(BinaryOp::mul, v[2], v[0]);
        Value t = inner.binary(BinaryOp::mul, v[2], v[1]);
        return std::vector<Operand>{a, inner.binary(BinaryOp::add, t, v[3])};
      });
  return {op, {int32(1), int32(0)}, false};
}

Module compose_all() {
  Program p;
  Value n = p.size("n");
  Value as = p.param("as", i32s({n}));
  Value bs = p.param("bs", i32s({n}));
  return p.body([&](Builder& b) {
    Value i = b.values().add(i64(), "i");
    Lambda map = b.lambda({i32(), i32()}, {"a", "b"}, [](Builder&, const std::vector<Value>& v) {
      return std::vector<Operand>{v[0], v[1], v[0]};
    });
    auto results = b.let_many({"a", "b", "copy"}, Screma{{n}, {i}, {as, bs}, map, {compose(b)}});
    return std::vector<Operand>{results[0], results[1], results[2]};
  });
}

}  // namespace

TEST_CASE("a map gives each row and its index to the function") {
  CHECK(run_text(map_squares(), {ints({4}, {1, -2, 3, 4})}) == "[1i32, 5i32, 11i32, 19i32]");
  CHECK(run_text(map_squares(), {ints({0}, {})}) == "empty([0]i32)");
}

TEST_CASE("a redomap over two widths folds in row-major order") {
  Program p;
  Value m = p.size("m");
  Value n = p.size("n");
  Value xs = p.param("xs", i32s({m, n}));
  Module module = p.body([&](Builder& b) {
    std::vector<Value> at{b.values().add(i64(), "i"), b.values().add(i64(), "j")};
    Lambda map = b.lambda({i32()}, {"x"}, [&](Builder& inner, const std::vector<Value>& v) {
      Value j = inner.convert(ScalarType::i32, at[1]);
      return std::vector<Operand>{int32(3), inner.binary(BinaryOp::add, v[0], j), v[0]};
    });
    auto results = b.let_many({"a", "b", "copy"}, Screma{{m, n}, at, {xs}, map, {compose(b)}});
    return std::vector<Operand>{results[0], results[1], results[2]};
  });
  // ((((0*3 + 1)*3 + 3)*3 + 3)*3 + 5, the last column counting j = 1.
  CHECK(run_text(module, {ints({2, 2}, {1, 2, 3, 4})}) == "81i32 68i32 [[1i32, 2i32], [3i32, 4i32]]");
  CHECK(run_text(module, {ints({0, 2}, {})}) == "1i32 0i32 empty([0][2]i32)");
}

TEST_CASE("an operator that is not commutative folds in order for every seed") {
  Module module = compose_all();
  const HostValue as = pattern({131});
  const HostValue bs = pattern({131});
  std::uint32_t a = 1;
  std::uint32_t b = 0;
  for (std::int64_t i = 0; i < 131; ++i) {
    const auto c = static_cast<std::uint32_t>(as.at(i).as_int());
    a = c * a;
    b = c * b + static_cast<std::uint32_t>(bs.at(i).as_int());
  }
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    auto results = interpret(module, "f", {as, bs}, seeded(seed));
    REQUIRE(results);
    CHECK((*results)[0].at(0).as_int() == static_cast<std::int32_t>(a));
    CHECK((*results)[1].at(0).as_int() == static_cast<std::int32_t>(b));
    CHECK((*results)[2] == as);
  }
}

TEST_CASE("an operator on rows") {
  Program p;
  Value m = p.size("m");
  Value n = p.size("n");
  Value xs = p.param("xs", i32s({m, n}));
  Module module = p.body([&](Builder& b) {
    Value zeros = b.let("zeros", Replicate{{n}, int32(0)});
    Lambda add = b.lambda({i32s({n}), i32s({n})}, {"u", "v"}, [&](Builder& inner, const std::vector<Value>& v) {
      Lambda plus = binary_lambda(inner, BinaryOp::add, i32());
      return std::vector<Operand>{inner.let("w", Screma{{n}, {b.values().add(i64(), "j")}, {v[0], v[1]}, plus, {}})};
    });
    Lambda id =
        b.lambda({i32s({n})}, {"r"}, [](Builder&, const std::vector<Value>& v) { return std::vector<Operand>{v[0]}; });
    return std::vector<Operand>{
        b.let("sum", Screma{{m}, {b.values().add(i64(), "i")}, {xs}, id, {{add, {zeros}, true}}})};
  });
  CHECK(run_text(module, {ints({3, 2}, {1, 2, 3, 4, 5, 6})}) == "[9i32, 12i32]");
  CHECK(run_text(module, {ints({0, 2}, {})}) == "[0i32, 0i32]");
}

TEST_CASE("a matrix product of nested maps is the same for 20 seeds") {
  Program p;
  Value m = p.size("m");
  Value n = p.size("n");
  Value q = p.size("q");
  Value as = p.param("as", i32s({m, q}));
  Value bs = p.param("bs", i32s({q, n}));
  Module module = p.body([&](Builder& b) {
    Value bt = b.rearrange(bs, {1, 0});
    auto fresh = [&](const char* name) { return b.values().add(i64(), name); };
    Lambda outer = b.lambda({i32s({q})}, {"row"}, [&](Builder& row, const std::vector<Value>& r) {
      Lambda inner = row.lambda({i32s({q})}, {"column"}, [&](Builder& dot, const std::vector<Value>& c) {
        return std::vector<Operand>{dot.let(
            "d", Screma{{q}, {fresh("k")}, {r[0], c[0]}, binary_lambda(dot, BinaryOp::mul, i32()), {sum(dot)}})};
      });
      return std::vector<Operand>{row.let("out", Screma{{n}, {fresh("j")}, {bt}, inner, {}})};
    });
    return std::vector<Operand>{b.let("product", Screma{{m}, {fresh("i")}, {as}, outer, {}})};
  });
  const HostValue a = pattern({5, 70});
  const HostValue b = pattern({70, 3});
  HostValue expected = HostValue::zeros(ScalarType::i32, {5, 3});
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < 3; ++j) {
      std::int64_t dot = 0;
      for (int k = 0; k < 70; ++k) dot += a.at(i * 70 + k).as_int() * b.at(k * 3 + j).as_int();
      expected.set(i * 3 + j, Scalar::integer(ScalarType::i32, dot));
    }
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    auto results = interpret(module, "f", {a, b}, seeded(seed));
    REQUIRE(results);
    CHECK(results->front() == expected);
  }
}

TEST_CASE("sizes follow from the shapes of the arguments") {
  Program p;
  Value n = p.size("n");
  Value xs = p.param("xs", i32s({n}));
  p.param("ys", i32s({Poly(n) + 1}));
  Module module = p.body([&](Builder&) { return std::vector<Operand>{n, xs}; });
  CHECK(run_text(module, {ints({2}, {5, 6}), ints({3}, {1, 2, 3})}) == "2i64 [5i32, 6i32]");
  CHECK(run_text(module, {ints({2}, {5, 6}), ints({2}, {1, 2})}) ==
        "run.shape-mismatch 0:0 dim 1 of `ys` should be 3, but it is 2.");
  CHECK(run_text(module, {ints({2}, {5, 6})}) == "run.argument 0:0 entry `f` takes 2 values, but 1 are given.");
  CHECK(run_text(module, {ints({2}, {5, 6}), int_value(3)}) ==
        "run.argument 0:0 `ys` should be of type i32 with 1 dims, but a i32 with 0 dims is given.");
}

// "operations read written allocated" of the statement that binds `name`, itself.
std::string work_of(const Module& module, const std::vector<HostValue>& arguments, const std::string& name) {
  WorkCount count;
  const auto results = interpret(module, "f", arguments, {.work = &count});
  REQUIRE_MESSAGE(results, results.error().message);
  std::string text;
  const Function& function = *module.functions.front();
  for_each_stm(*function.body, [&](const Stm& stm) {
    if (stm.pattern.empty() || function.values.name(stm.pattern.front()) != name) return;
    const Work work = count.of(stm);
    text = fmt::format("{} {} {} {}", work.operations, work.read, work.written, work.allocated);
  });
  return text;
}

TEST_CASE("statements cost what docs/ir.md says, in columns and index by index") {
  const Module module = *parse_module(R"(stage soac

entry f (xs : "[n]i32", A : "[n][n]i32") : {"[n]i32", "i32", "[n*n]i32", "[n]i32"}
fun f [n] (xs : [n]i32, A : *[n][n]i32) : {[n]i32, i32, [n*n]i32, [n]i32} = {
  let {squares : [n]i32, sum : i32, rows : [n]i32} =
    screma(i < n, {xs, A},
      \{x : i32, a : [n]i32} -> {
        let {x2 : i32} = mul(x, x)
        let {e : i32} = a[0]
        in {x2, x2, e}
      },
      {scan \{p : i32, q : i32} -> { let {s : i32} = add(p, q) in {s} }, {0i32}},
      {commutative \{v : i32, w : i32} -> { let {t : i32} = add(v, w) in {t} }, {0i32}})
  let {At : [n][n]i32} = rearrange(A, (1, 0))
  let {flat : [n*n]i32} = reshape(At, [n*n])
  let {same : [n*n]i32} = reshape(A, [n*n])
  let {slice : [n]i32} = A[0]
  let {copied : [n]i32} = copy(slice)
  let {changed : [n]i32} =
    loop {ys : [n]i32 = copied} for k < 3 {
      let {next : [n]i32} = ys with [k] = 7i32
      in {next}
    }
  in {squares, sum, flat, changed}
}
)",
                                      "test");
  // 300 indices run in columns, 3 do not.
  for (const std::int64_t n : {3, 300}) {
    CAPTURE(n);
    const std::vector<HostValue> arguments = {pattern({n}), pattern({n, n})};
    const auto work = [&](const std::string& name) { return work_of(module, arguments, name); };
    // The input's elements, and rows of a scan and a map; the reduced scalar is none.
    CHECK(work("squares") == fmt::format("0 {0} {1} {1}", n, 2 * n));
    CHECK(work("x2") == fmt::format("{} 0 0 0", n));
    CHECK(work("e") == fmt::format("0 {} 0 0", n));
    CHECK(work("s") == fmt::format("{} 0 0 0", n));
    CHECK(work("t") == fmt::format("{} 0 0 0", n));
    CHECK(work("At") == "0 0 0 0");
    CHECK(work("flat") == fmt::format("0 {0} {0} {0}", n * n));
    CHECK(work("same") == "0 0 0 0");
    CHECK(work("slice") == "0 0 0 0");
    CHECK(work("copied") == fmt::format("0 {0} {0} {0}", n));
    CHECK(work("next") == "0 0 3 0");  // in place
    CHECK(work("changed") == "0 0 0 0");
  }
}

TEST_CASE("of different rows that a scatter gives one element the last stays, or it is an error if that is asked for") {
  const Module module = *parse_module(R"(stage soac

entry f (xss : "[m][k]i32", is : "[n]i32", yss : "[n][k]i32") : {"[m][k]i32"}
fun f [m, n, k] (xss : *[m][k]i32, is : [n]i32, yss : [n][k]i32) : {[m][k]i32} = {
  let {zss : [m][k]i32} =
    scatter(i < n, {is, yss},
      \{at : i32, ys : [k]i32} -> {
        let {to : i64} = convert(at, i64)
        in {to, ys}
      },
      {xss} at 1)
  in {zss}
}
)",
                                      "test");
  const HostValue start = ints({2, 2}, {0, 0, 0, 0});
  const std::vector<HostValue> same = {start, ints({3}, {1, 1, 7}), ints({3, 2}, {5, 6, 5, 6, 8, 8})},
                               different = {start, ints({2}, {1, 1}), ints({2, 2}, {5, 6, 5, 4})};
  CHECK(run_text(module, same, {.check_scatters = true}) == "[[0i32, 0i32], [5i32, 6i32]]");
  CHECK(run_text(module, different) == "[[0i32, 0i32], [5i32, 4i32]]");
  CHECK(run_text(module, different, {.check_scatters = true}) ==
        "run.scattered-twice 0:0 scatter writes element [1, 1] twice, with different values.");
}

}  // namespace apl::test
