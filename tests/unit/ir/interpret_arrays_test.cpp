// Arrays: making, viewing and updating them; loops, branches, calls; run-time errors and their locations.
#include <doctest/doctest.h>

#include "ir/parse.h"
#include "programs.h"

namespace apl::test {
namespace {

using Operands = std::vector<Operand>;

// f(xs: [n]i32, i: i64) = what `fill` makes of them
Module of_array(const std::function<Operands(Builder&, Value n, Value xs, Value i)>& fill, bool unique = false) {
  Program p;
  Value n = p.size("n");
  Type type = i32s({n});
  type.unique = unique;
  Value xs = p.param("xs", type);
  Value i = p.param("i", i64());
  return p.body([&](Builder& b) {
    b.set_location({.line = 7, .column = 3, .end_line = 7, .end_column = 9});
    return fill(b, n, xs, i);
  });
}

}  // namespace

TEST_CASE("arrays are made, viewed and reshaped") {
  Module module = of_array([](Builder& b, Value n, Value xs, Value i) {
    Value iota = b.let("iota", Iota{ScalarType::i32, n, int32(10), int32(-2)});
    Value rep = b.let("rep", Replicate{{2}, xs});
    Value t = b.rearrange(rep, {1, 0});
    Value flat = b.let("flat", Reshape{t, {Poly(n) * 2}});
    Value made = b.let("made", Manifest{t, {1, 0}});
    Value middle = b.let("middle", Index{flat, {DimIndex::slice(1, 3, 2)}});
    Value back = b.let("back", Index{xs, {DimIndex::slice(Poly(n) - 1, n, -1)}});
    Value rows = b.let("rows", ArrayLit{i32s({n}), {iota, back}});
    return Operands{flat, made, middle, rows, b.index(rows, {1, i})};
  });
  CHECK(run_text(module, {ints({3}, {1, 2, 3}), long_value(2)}) ==
        "[1i32, 1i32, 2i32, 2i32, 3i32, 3i32] [[1i32, 2i32, 3i32], [1i32, 2i32, 3i32]] [1i32, 2i32, 3i32] "
        "[[10i32, 8i32, 6i32], [3i32, 2i32, 1i32]] 1i32");
}

TEST_CASE("an update changes nothing but its own result") {
  Module module = of_array([](Builder& b, Value n, Value xs, Value i) {
    Value copy = b.let("copy", Copy{xs});
    Value once = b.let("once", Update{copy, {DimIndex::fix(i)}, int32(100)});
    Value front = b.let("front", Index{xs, {DimIndex::slice(0, 2)}});
    Value twice = b.let("twice", Update{once, {DimIndex::slice(Poly(n) - 2, 2)}, front});
    return Operands{xs, twice};
  });
  CHECK(run_text(module, {ints({4}, {1, 2, 3, 4}), long_value(1)}) ==
        "[1i32, 2i32, 3i32, 4i32] [1i32, 100i32, 1i32, 2i32]");
}

TEST_CASE("a loop that updates an array does so in place") {
  // 200,000 updates of 200,000 elements: not to be done with a copy each.
  Program p;
  Value n = p.param("n", i64());
  Module module = p.body([&](Builder& b) {
    Value start = b.let("start", Replicate{{n}, int32(1)});
    Loop loop;
    loop.params = {b.values().add(i32s({n}), "acc")};
    loop.initial = {start};
    loop.index = b.values().add(i64(), "i");
    loop.bound = n;
    loop.body = b.body([&](Builder& inner) {
      Value x = inner.index(loop.params[0], {loop.index});
      Value even = inner.compare(CompareOp::eq, inner.size(remainder(loop.index, 2)), i64_constant(0));
      If branch{even, {}, {}};
      branch.then_body = inner.body([&](Builder& then) {
        Value next = then.binary(BinaryOp::add, x, then.convert(ScalarType::i32, loop.index));
        return Operands{then.let("then", Update{loop.params[0], {DimIndex::fix(loop.index)}, next})};
      });
      branch.else_body = inner.body([&](Builder&) { return Operands{loop.params[0]}; });
      return Operands{inner.let("merged", branch)};
    });
    Value result = b.let("result", loop);
    return Operands{
        b.index(result, {4}), b.index(result, {Poly(n) - 1}),
        b.let("total",
              Screma{{n},
                     {b.values().add(i64(), "k")},
                     {result},
                     b.lambda({i32()}, {"x"}, [](Builder&, const std::vector<Value>& v) { return Operands{v[0]}; }),
                     {sum(b)}})};
  });
  // 1 each, and 0 + 2 + ... + 199,998, wrapped to 32 bits.
  CHECK(run_text(module, {long_value(200000)}) == "5i32 1i32 1410165408i32");
}

TEST_CASE("while loops, and loops that run no iteration") {
  Module module = of_array([](Builder& b, Value, Value, Value i) {
    Loop loop;
    loop.params = {b.values().add(Type::scalar(ScalarType::boolean), "go"), b.values().add(i64(), "x")};
    loop.initial = {Operand(b.compare(CompareOp::lt, i64_constant(1), i)), Operand(i)};
    loop.body = b.body([&](Builder& inner) {
      Value half = inner.size(floor_div(loop.params[1], 2));
      return Operands{inner.compare(CompareOp::lt, i64_constant(1), half), half};
    });
    auto results = b.let_many({"go", "x"}, loop);
    return Operands{results[1]};
  });
  CHECK(run_text(module, {ints({0}, {}), long_value(37)}) == "1i64");
  CHECK(run_text(module, {ints({0}, {}), long_value(-5)}) == "-5i64");
}

TEST_CASE("a call passes sizes first") {
  Program p;
  Value n = p.size("n");
  Value xs = p.param("xs", i32s({n}));
  Module module = p.body([&](Builder& b) {
    return Operands{b.let_typed({"y"}, {i32s({n})}, Apply{"twice", {Operand(n), Operand(xs)}}).front()};
  });
  Program helper;
  helper.function.name = "twice";
  helper.function.entry.reset();
  Value m = helper.size("m");
  Value ys = helper.function.values.add(i32s({m}), "ys");
  helper.function.params = {ys};
  Module twice = helper.body([&](Builder& b) {
    Lambda map = b.lambda({i32()}, {"y"}, [](Builder& inner, const std::vector<Value>& v) {
      return Operands{inner.binary(BinaryOp::add, v[0], v[0])};
    });
    return Operands{b.let("zs", Screma{{m}, {b.values().add(i64(), "i")}, {ys}, map, {}})};
  });
  module.functions.push_back(twice.functions.front());
  CHECK(run_text(module, {ints({3}, {1, 2, 3})}) == "[2i32, 4i32, 6i32]");
}

TEST_CASE("an error in a called function says by which calls, as it does when they are inlined") {
  const auto module = parse_module(R"(stage soac of "f.fut"

fun pick [n] (xs : [n]i32, i : i64) : {i32} = {
  let {x : i32} = checked xs[i] @1:5-1:9 from 2:2-2:8
  in {x}
} @1:1-2:9

entry f (xs : "[n]i32", i : "i64") : {"i32"}
fun f [n] (xs : [n]i32, i : i64) : {i32} = {
  let {x : i32} = apply pick(n, xs, i) @4:3-4:9 from 5:2-5:7
  let {y : i32} = apply pick(n, xs, i) @6:3-6:9
  in {y}
} @3:1-6:9
)",
                                   "test");
  REQUIRE(module);
  const auto result = interpret(*module, "f", {ints({3}, {1, 2, 3}), long_value(5)});
  REQUIRE(!result);
  CHECK(render(result.error(), "f.fut", "") ==
        "f.fut:1:5: error: Index [5] out of bounds for array of shape [3]. [run.index-out-of-bounds]\n"
        "f.fut:2:2: note: called from here\n"
        "f.fut:4:3: note: called from here\n"
        "f.fut:5:2: note: called from here\n");
}

TEST_CASE("recursion ends with an error") {
  Program p;
  Value x = p.param("x", i32());
  Module module = p.body([&](Builder& b) {
    return Operands{b.let_typed({"y"}, {i32()}, Apply{"f", {Operand(x)}}).front()};
  });
  CHECK(run_text(module, {int_value(1)}).starts_with("unsupported.construct 1:1 "));
}

TEST_CASE("tuning parameters have their default or the value that is given") {
  Program p;
  Module module = p.body([](Builder& b) { return Operands{b.let("t", GetSize{"f.T", SizeClass::tile_size, 16})}; });
  CHECK(run_text(module, {}) == "16i64");
  CHECK(run_text(module, {}, seeded(1, {{"f.T", 5}})) == "5i64");
  CHECK(run_text(module, {}, seeded(1, {{"f.T", 0}})).starts_with("command.bad-parameter 1:1 "));
}

TEST_CASE("errors have a code, the text that Futhark's tests look for, and a place") {
  struct Case {
    const char* expected;
    std::function<Operands(Builder&, Value n, Value xs, Value i)> fill;
    std::int64_t i;
  };
  const Case cases[] = {
      {"run.index-out-of-bounds 7:3 Index [4] out of bounds for array of shape [1].",
       [](Builder& b, Value, Value xs, Value i) { return Operands{b.index(xs, {i}, "x", true)}; }, 4},
      {"bug.internal 7:3 Unchecked index [-1] out of bounds for array of shape [1].",
       [](Builder& b, Value, Value xs, Value i) { return Operands{b.index(xs, {i})}; }, -1},
      {"run.index-out-of-bounds 7:3 Index [0:4] out of bounds for array of shape [1].",
       [](Builder& b, Value, Value xs, Value i) {
         return Operands{b.let("x", Index{xs, {DimIndex::slice(0, i)}, true})};
       },
       4},
      {"run.index-out-of-bounds 7:3 Index [4] out of bounds for array of shape [1].",
       [](Builder& b, Value, Value xs, Value i) {
         return Operands{b.let("x", Update{xs, {DimIndex::fix(i)}, int32(1), true})};
       },
       4},
      {"run.assertion 7:3 n is 1, i is 4.",
       [](Builder& b, Value n, Value, Value i) {
         Value same = b.compare(CompareOp::eq, n, i);
         return Operands{b.let(
             "c",
             Assert{same, {std::string("n is "), Operand(n), std::string(", i is "), Operand(i), std::string(".")}})};
       },
       4},
      {"run.division-by-zero 7:3 division by zero",
       [](Builder& b, Value n, Value, Value i) { return Operands{b.binary(BinaryOp::div, n, i)}; }, 0},
      {"run.division-by-zero 7:3 division by zero",
       [](Builder& b, Value n, Value, Value i) { return Operands{b.size(floor_div(n, i))}; }, 0},
      {"run.negative-size 7:3 iota of size -3.",
       [](Builder& b, Value, Value, Value i) {
         return Operands{b.let("x", Iota{ScalarType::i32, i, int32(0), int32(1)})};
       },
       -3},
      {"run.negative-size 7:3 replicate of size -3.",
       [](Builder& b, Value, Value, Value i) {
         return Operands{b.let("x", Replicate{{i}, int32(0)})};
       },
       -3},
      {"run.shape-mismatch 7:3 `xs` of shape [1] cannot be reshaped to [4][1].",
       [](Builder& b, Value n, Value xs, Value i) {
         return Operands{b.let("x", Reshape{xs, {i, n}})};
       },
       4},
      {"run.undefined-read 7:3 element [2] of `s` is read before it is written.",
       [](Builder& b, Value, Value, Value i) {
         return Operands{b.index(b.let("s", Scratch{ScalarType::i32, {i}}), {2})};
       },
       4},
      {"run.undefined-read 0:0 element [0] of result 1 is never written.",
       [](Builder& b, Value, Value, Value i) {
         return Operands{b.let("s", Scratch{ScalarType::i32, {i}})};
       },
       4},
      {"run.out-of-memory 7:3 no memory for 4000000000000 more bytes: 0 are in use, and the interpreter takes at most "
       "2147483648.",
       [](Builder& b, Value, Value, Value i) {
         return Operands{b.let("x", Replicate{{i, 1000000}, int32(0)})};
       },
       1000000},
      {"run.out-of-memory 7:3 an array of shape [4611686018427387904][4611686018427387904] has too many elements.",
       [](Builder& b, Value, Value, Value i) {
         return Operands{b.let("x", Replicate{{i, i}, int32(0)})};
       },
       std::int64_t{1} << 62},
  };
  for (const Case& c : cases) {
    CAPTURE(c.expected);
    CHECK(run_text(of_array(c.fill, true), {ints({1}, {5}), long_value(c.i)}) == c.expected);
  }
}

TEST_CASE("an error inside a nested body has the place of the statement that failed") {
  Module module = of_array([](Builder& b, Value n, Value xs, Value i) {
    Lambda map = b.lambda({i32()}, {"x"}, [&](Builder& inner, const std::vector<Value>&) {
      inner.set_location({.line = 9, .column = 5, .end_line = 9, .end_column = 5});
      return Operands{inner.index(xs, {i}, "y", true)};
    });
    return Operands{b.let("ys", Screma{{n}, {b.values().add(i64(), "k")}, {xs}, map, {}})};
  });
  CHECK(run_text(module, {ints({2}, {5, 6}), long_value(2)}) ==
        "run.index-out-of-bounds 9:5 Index [2] out of bounds for array of shape [2].");
}

TEST_CASE("a run stops when it is asked to") {
  Program p;
  Module module = p.body([](Builder& b) {
    Loop loop;
    loop.params = {b.values().add(Type::scalar(ScalarType::boolean), "go")};
    loop.initial = {Operand(Scalar::boolean(true))};
    loop.body = b.body([&](Builder&) { return Operands{loop.params[0]}; });
    return Operands{b.let("forever", loop)};
  });
  InterpretOptions options;
  options.stop = [] { return true; };
  CHECK(run_text(module, {}, options).starts_with("run.stopped "));
}

TEST_CASE("an entry that does not exist, and a module that is not well-formed, are errors") {
  Program p;
  Value x = p.param("x", i32());
  Module module = p.body([&](Builder&) { return Operands{x}; });
  CHECK(interpret(module, "g", {}).error().code == Code::run_argument);
  Function broken = *module.functions.front();
  broken.body = make_body({}, {Operand(Value{999})});
  module.functions = {std::make_shared<const Function>(broken)};
  CHECK(interpret(module, "f", {int_value(1)}).error().code == Code::ir_invalid);
}

}  // namespace apl::test
