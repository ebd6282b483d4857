// The builder's helpers for operations with bodies, and what becomes of mistakes.
#include <doctest/doctest.h>

#include "ir/builder.h"
#include "ir/host_value.h"
#include "ir/interpret.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "ir/walk.h"

namespace apl {
namespace {

// A function under construction: `entry f [n...] (params)`.
struct Made {
  Function function;

  Value size(const std::string& name) {
    function.sizes.push_back(function.values.add(Type::scalar(ScalarType::i64), name));
    return function.sizes.back();
  }
  Value param(const std::string& name, Type type) {
    function.params.push_back(function.values.add(std::move(type), name));
    return function.params.back();
  }
  Module finish(Builder& builder, const std::vector<Operand>& results) {
    function.name = "f";
    EntryInfo entry{.name = "f", .params = {}, .param_values = {}, .results = {}};
    for (const Value param : function.params) {
      entry.params.push_back({function.values.name(param), print(function.type(param), function)});
      entry.param_values.push_back(1);
    }
    for (const Operand& result : results) {
      function.results.push_back(function.values.type(result));
      entry.results.push_back({print(function.results.back(), function)});
    }
    function.entry = entry;
    function.body = builder.finish(results);
    Module module;
    module.functions.push_back(std::make_shared<const Function>(function));
    return module;
  }
};

const Type kF32 = Type::scalar(ScalarType::f32);
const Type kI32 = Type::scalar(ScalarType::i32);

std::string errors(const Module& module) {
  std::string all;
  for (const Diagnostic& error : verify(module)) all += error.message + "\n";
  return all;
}

// The results as text, one after the other.
std::string run(const Module& module, const std::vector<std::string>& arguments) {
  REQUIRE(errors(module) == "");
  const Function& f = *module.functions.front();
  std::vector<HostValue> values;
  for (std::size_t k = 0; k < arguments.size(); ++k) {
    auto value = parse_values(arguments[k]);
    REQUIRE(value);
    values.push_back(value->front());
  }
  CHECK(values.size() == f.params.size());
  const auto results = interpret(module, "f", values, {});
  REQUIRE_MESSAGE(results, (results ? "" : results.error().message));
  std::string text;
  for (const HostValue& value : *results) text += (text.empty() ? "" : " ") + value.to_text();
  return text;
}

Operand i32(std::int64_t x) { return Scalar::integer(ScalarType::i32, x); }

TEST_CASE("a product of matrices is a map of a map of a redomap") {
  Made made;
  const Value m = made.size("m"), n = made.size("n"), q = made.size("q");
  const Value A = made.param("A", Type::array(ScalarType::f32, {m, q}));
  const Value Bt = made.param("Bt", Type::array(ScalarType::f32, {n, q}));
  Builder builder(made.function.values);
  const ReduceOp sum = builder.reduce_op(BinaryOp::add, Scalar::zero(ScalarType::f32));
  const Value C = builder.map("C", {A}, [&](Builder& b, BoundValues a) {
    return b.map("row", {Bt}, [&](Builder& inner, BoundValues bt) {
      return inner.redomap("c", sum, {a[0], bt[0]}, [](Builder& innermost, BoundValues x) {
        return innermost.binary(BinaryOp::mul, x[0], x[1]);
      });
    });
  });
  const Module module = made.finish(builder, {C});
  CHECK(print(module.functions.front()->type(C), *module.functions.front()) == "[m][n]f32");
  CHECK(run(module, {"[[1f32, 2f32], [3f32, 4f32]]", "[[5f32, 6f32]]"}) == "[[17.0f32], [39.0f32]]");
}

TEST_CASE("reduce, scan and tabulate") {
  Made made;
  const Value n = made.size("n");
  const Value xs = made.param("xs", Type::array(ScalarType::i32, {n}));
  Builder builder(made.function.values);
  const ReduceOp sum = builder.reduce_op(BinaryOp::add, Scalar::zero(ScalarType::i32));
  CHECK(sum.commutative);
  CHECK_FALSE(builder.reduce_op(BinaryOp::sub, Scalar::zero(ScalarType::i32)).commutative);
  const Value total = builder.reduce("total", sum, xs);
  const Value sums = builder.scan("sums", sum, xs);
  const Value table = builder.tabulate("table", {Poly(n), Poly(2)},
                                       [](Builder& b, BoundValues i) { return b.size(Poly(i[0]) * 10 + Poly(i[1])); });
  CHECK(run(made.finish(builder, {total, sums, table}), {"[1i32, 2i32, 3i32]"}) ==
        "6i32 [1i32, 3i32, 6i32] [[0i64, 1i64], [10i64, 11i64], [20i64, 21i64]]");
}

TEST_CASE("an operator on pairs: the largest and its place") {
  Made made;
  const Value n = made.size("n");
  const Value xs = made.param("xs", Type::array(ScalarType::i32, {n}));
  Builder builder(made.function.values);
  const ReduceOp larger = builder.reduce_op({i32(-1), i64_constant(-1)}, [](Builder& b, BoundValues x) {
    const Value right = b.compare(CompareOp::lt, x[0], x[2]);
    const std::vector<Value> picked = b.if_else_many(
        {"x", "i"}, right,
        [&](Builder&) {
          return std::vector<Operand>{x[2], x[3]};
        },
        [&](Builder&) {
          return std::vector<Operand>{x[0], x[1]};
        });
    return std::vector<Operand>{picked[0], picked[1]};
  });
  const std::vector<Value> found = builder.screma({"x", "i"}, {Poly(n)}, {xs},
                                                  [](Builder&, BoundValues all) {
                                                    return std::vector<Operand>{all[1], all[0]};
                                                  },
                                                  {larger});
  REQUIRE(found.size() == 2);
  CHECK(run(made.finish(builder, {found[0], found[1]}), {"[3i32, 9i32, 4i32]"}) == "9i32 1i64");
}

TEST_CASE("branches and loops") {
  Made made;
  const Value x = made.param("x", kI32);
  Builder builder(made.function.values);
  const Value negative = builder.compare(CompareOp::lt, x, i32(0));
  const Value size = builder.if_else(
      "size", negative, [&](Builder& b) { return b.unary(UnaryOp::neg, x); }, [&](Builder&) { return Operand(x); });
  const Value power = builder.for_loop("power", 3, i32(1),
                                       [&](Builder& b, BoundValues v) { return b.binary(BinaryOp::mul, v[1], size); });
  // Halved until it is zero: how often that takes.
  const Value starts = builder.compare(CompareOp::lt, i32(0), size);
  const std::vector<Value> halved =
      builder.while_loop({"go", "left", "count"}, {starts, size, i32(0)}, [](Builder& b, BoundValues v) {
        const Value left = b.binary(BinaryOp::div, v[1], i32(2));
        const Value go = b.compare(CompareOp::lt, i32(0), left);
        return std::vector<Operand>{go, left, b.binary(BinaryOp::add, v[2], i32(1))};
      });
  const Module module = made.finish(builder, {size, power, halved[2]});
  CHECK(run(module, {"-5i32"}) == "5i32 125i32 3i32");
  CHECK(run(module, {"0i32"}) == "0i32 0i32 0i32");
}

TEST_CASE("a value of another function is a diagnostic") {
  Made other;
  for (int k = 0; k < 100; ++k) other.param("p", Type::array(ScalarType::i32, {Poly(3)}));
  const Value foreign = other.function.params.back();
  using Use = std::function<Value(Builder&, Value)>;
  const ReduceOp none{};
  const std::vector<Use> uses{
      [](Builder& b, Value v) { return b.binary(BinaryOp::add, v, v); },
      [](Builder& b, Value v) { return b.index(v, {Poly(0)}); },
      [](Builder& b, Value v) {
        return b.rearrange(v, {1, 0});
      },
      [](Builder& b, Value v) { return b.size(Poly(v) + 1); },
      [](Builder& b, Value v) { return b.let("c", Copy{v}); },
      [](Builder& b, Value v) {
        return b.let("u", Update{v, {DimIndex::fix(0)}, i32(0), false});
      },
      [](Builder& b, Value v) { return b.map("m", {v}, [](Builder&, BoundValues x) { return Operand(x[0]); }); },
      [](Builder& b, Value v) { return b.reduce("r", b.reduce_op(BinaryOp::add, Scalar::zero(ScalarType::i32)), v); },
      [](Builder& b, Value v) {
        return b.for_loop("l", Poly(v), v, [](Builder&, BoundValues x) { return Operand(x[1]); });
      },
  };
  for (const Use& use : uses) {
    Made made;
    made.param("x", kI32);
    Builder builder(made.function.values);
    const Value result = use(builder, foreign);
    made.function.results = {kI32};
    const Module module = made.finish(builder, {result});
    CAPTURE(print(module));
    CHECK(errors(module).find("does not exist: the function has") != std::string::npos);
    CHECK(errors(module).find("is one of another function") != std::string::npos);
  }
}

TEST_CASE("other mistakes are diagnostics, too") {
  const std::vector<std::function<Value(Builder&, Value)>> uses{
      [](Builder& b, Value v) { return b.index(v, {Poly(0)}); },
      [](Builder& b, Value v) {
        return b.rearrange(v, {2, 0, 1});
      },
      [](Builder& b, Value) {
        return b.let("a", Apply{"nowhere", {}});
      },
      [](Builder& b, Value v) { return b.map("m", {v}, [](Builder&, BoundValues x) { return Operand(x[0]); }); },
  };
  for (const auto& use : uses) {
    Made made;
    const Value x = made.param("x", kF32);
    Builder builder(made.function.values);
    const Module module = made.finish(builder, {use(builder, x)});
    CHECK_FALSE(errors(module).empty());
  }
}

}  // namespace
}  // namespace apl
