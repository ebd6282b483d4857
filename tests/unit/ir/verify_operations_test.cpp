// The verifier: one broken module for each rule of scalar and array operations, branches, loops, calls and scremas.
#include "verify_cases.h"

namespace apl::test::broken {

TEST_CASE("scalar operations: operand and result types") {
  refuse_each(
      Stage::soac,
      {
          {"`x` in `f`: the operands of add have types i32 and i64",
           [](Builder& b, Value n, Value) { return Operands{b.binary(BinaryOp::add, int32(1), n)}; }},
          {"sqrt has no meaning for i32",
           [](Builder& b, Value, Value) { return Operands{b.unary(UnaryOp::sqrt, int32(1))}; }},
          {"add has no meaning for bool",
           [](Builder& b, Value, Value) { return Operands{b.binary(BinaryOp::add, kTrue, kTrue)}; }},
          {"the operands of lt have types bool and i32",
           [](Builder& b, Value, Value) { return Operands{b.compare(CompareOp::lt, kTrue, int32(1), "x")}; }},
          {"operand `xs` of type [n]i32 should be a scalar",
           [](Builder& b, Value, Value xs) { return Operands{b.unary(UnaryOp::neg, xs)}; }},
          {"should be a scalar", [](Builder& b, Value, Value xs) { return Operands{b.convert(ScalarType::f32, xs)}; }},
          {"a f32 has not the bits of a u64",
           [](Builder& b, Value, Value) {
             return Operands{b.bitcast(ScalarType::u64, Scalar::floating(ScalarType::f32, 1))};
           }},
          {"a bool has not the bits of a u8",
           [](Builder& b, Value, Value) { return Operands{b.bitcast(ScalarType::u8, kTrue)}; }},
          {"`x` has type i64, but binary gives i32",
           [](Builder& b, Value, Value) {
             return Operands{bind(b, {i64()}, Binary{BinaryOp::add, int32(1), int32(2)})[0]};
           }},
          {"2 values are bound, but use gives 1",
           [](Builder& b, Value, Value) {
             return Operands{bind(b, {i32(), i32()}, Use{int32(1)})[0]};
           }},
          {"`v` of type i32 stands in a size",
           [](Builder& b, Value, Value) {
             Value v = b.let("v", Use{int32(1)});
             return Operands{b.size(Poly(v) + 1)};
           }},
          {"certificate `v` has type i32",
           [](Builder& b, Value, Value) {
             Value v = b.let("v", Use{int32(1)});
             Value x = b.let("x", Use{int32(1)});
             b.stms().back().certificates = {v};
             return Operands{x};
           }},
          {"the default of `f.T` is 0",
           [](Builder& b, Value, Value) {
             return Operands{b.let("x", GetSize{"f.T", SizeClass::tile_size, 0})};
           }},
          {"the condition 1i32 has type i32",
           [](Builder& b, Value, Value) {
             return Operands{b.let("x", Assert{int32(1), {}})};
           }},
      });
}

TEST_CASE("array operations") {
  refuse_each(Stage::soac, {
                               {"2 indices for `xs` of rank 1",
                                [](Builder& b, Value, Value xs) {
                                  return Operands{b.index(xs, {0, 0})};
                                }},
                               {"`n` of type i64 should be an array",
                                [](Builder& b, Value n, Value) {
                                  return Operands{bind(b, {i32()}, Index{n, {DimIndex::fix(0)}})[0]};
                                }},
                               {"`x` has type [4]i32, but index gives [3]i32",
                                [](Builder& b, Value, Value xs) {
                                  return Operands{bind(b, {i32s({4})}, Index{xs, {DimIndex::slice(0, 3)}})[0]};
                                }},
                               {"a part of type i32 is replaced by 1i64",
                                [](Builder& b, Value, Value xs) {
                                  return Operands{b.let("x", Update{xs, {DimIndex::fix(0)}, i64_constant(1)})};
                                }},
                               {"a part of type [2]i32 is replaced by",
                                [](Builder& b, Value, Value xs) {
                                  Value three = b.let("three", Replicate{{3}, int32(0)});
                                  return Operands{b.let("x", Update{xs, {DimIndex::slice(0, 2)}, three})};
                                }},
                               {"1i64 of type i64 in an iota of i32",
                                [](Builder& b, Value n, Value) {
                                  return Operands{b.let("x", Iota{ScalarType::i32, n, int32(0), i64_constant(1)})};
                                }},
                               {"an iota of bool",
                                [](Builder& b, Value n, Value) {
                                  return Operands{b.let("x", Iota{ScalarType::boolean, n, kTrue, kTrue})};
                                }},
                               {"a replicate without dims",
                                [](Builder& b, Value, Value) {
                                  return Operands{b.let("x", Replicate{{}, int32(0)})};
                                }},
                               {"(0, 0) is no permutation of the 2 dims",
                                [](Builder& b, Value, Value) {
                                  Value a = b.let("a", Replicate{{2, 3}, int32(0)});
                                  return Operands{b.rearrange(a, {0, 0})};
                                }},
                               {"(1) is no permutation",
                                [](Builder& b, Value n, Value xs) {
                                  return Operands{bind(b, {i32s({n})}, Manifest{xs, {1}})[0]};
                                }},
                               {"`xs` of type [n]i32 has not as many elements as [n + 1]i32",
                                [](Builder& b, Value n, Value xs) {
                                  return Operands{b.let("x", Reshape{xs, {Poly(n) + 1}})};
                                }},
                               {"a reshape to a scalar",
                                [](Builder& b, Value, Value xs) {
                                  return Operands{b.let("x", Reshape{xs, {}})};
                                }},
                               {"1i64 of type i64 in an array of i32",
                                [](Builder& b, Value, Value) {
                                  return Operands{b.let("x", ArrayLit{i32(), {int32(1), i64_constant(1)}})};
                                }},
                           });
}

TEST_CASE("branches, loops, calls") {
  refuse_each(
      Stage::soac,
      {
          {"the condition 1i32 has type i32",
           [](Builder& b, Value, Value) {
             return Operands{b.let("x", If{int32(1), give({int32(1)}), give({int32(2)})})};
           }},
          {"`y` of type [3]i32 is `four` of type [4]i32 in a branch",
           [](Builder& b, Value, Value) {
             Value three = b.let("three", Replicate{{3}, int32(0)});
             Value four = b.let("four", Replicate{{4}, int32(0)});
             Value d = fresh(b, i64()), y = b.values().add(i32s({d}), "y");
             b.append(
                 {.pattern = {d, y}, .op = If{kTrue, give({i64_constant(3), three}), give({i64_constant(3), four})}});
             return Operands{};
           }},
          {"`x` of type [5]i32 becomes `x` of type [4]i32",
           [](Builder& b, Value, Value) {
             Value four = b.let("x", Replicate{{4}, int32(0)});
             Value d = fresh(b, i64()), y = b.values().add(i32s({d}), "x");
             b.let_many({"r"},
                        Loop{{d, y}, {i64_constant(4), four}, fresh(b, i64()), 2, give({i64_constant(5), four})});
             return Operands{};
           }},
          {"the branches give 1 and 2 results",
           [](Builder& b, Value, Value) {
             return Operands{b.let("x", If{kTrue, give({int32(1)}), give({int32(1), int32(2)})})};
           }},
          {"result 1 of the branches has types i32 and i64",
           [](Builder& b, Value, Value) {
             return Operands{b.let("x", If{kTrue, give({int32(1)}), give({i64_constant(1)})})};
           }},
          {"the loop has 1 parameters, 0 initial values and 1 results",
           [](Builder& b, Value, Value) {
             Value p = fresh(b, i32());
             return Operands{b.let("x", Loop{{p}, {}, fresh(b, i64()), 3, give({p})})};
           }},
          {"`v` of type i32 starts as 1i64 of type i64",
           [](Builder& b, Value, Value) {
             Value p = fresh(b, i32());
             return Operands{b.let("x", Loop{{p}, {i64_constant(1)}, fresh(b, i64()), 3, give({p})})};
           }},
          {"`v` of type i32 becomes 1i64 of type i64",
           [](Builder& b, Value, Value) {
             Value p = fresh(b, i32());
             return Operands{b.let("x", Loop{{p}, {int32(1)}, fresh(b, i64()), 3, give({i64_constant(1)})})};
           }},
          {"the index `v` has type i32",
           [](Builder& b, Value, Value) {
             Value p = fresh(b, i32());
             return Operands{b.let("x", Loop{{p}, {int32(1)}, fresh(b, i32()), 3, give({p})})};
           }},
          {"the first parameter of a while loop is its condition",
           [](Builder& b, Value, Value) {
             Value p = fresh(b, i32());
             return Operands{b.let("x", Loop{{p}, {int32(1)}, {}, 0, give({p})})};
           }},
          {"there is no function `g`",
           [](Builder& b, Value, Value) {
             return Operands{bind(b, {i32()}, Apply{"g", {}})[0]};
           }},
          {"`f` takes 2 arguments, sizes included, but gets 1",
           [](Builder& b, Value n, Value) {
             return Operands{bind(b, {i32()}, Apply{"f", {Operand(n)}})[0]};
           }},
          {"argument 2 of `f`, 1i32, has type i32",
           [](Builder& b, Value n, Value) {
             return Operands{bind(b, {i32()}, Apply{"f", {Operand(n), int32(1)}})[0]};
           }},
      });
}

TEST_CASE("screma: widths, lambdas, operators") {
  auto screma = [](Builder& b, std::vector<Poly> widths, std::vector<Value> inputs, Lambda map,
                   std::vector<ReduceOp> reduces = {}) {
    Screma op{widths, {}, std::move(inputs), std::move(map), std::move(reduces)};
    for (std::size_t k = 0; k < widths.size(); ++k) op.indices.push_back(fresh(b, i64()));
    return op;
  };
  refuse_each(
      Stage::soac,
      {
          {"1 indices for 2 widths",
           [&](Builder& b, Value n, Value) {
             Screma op = screma(b, {n, 2}, {}, {{}, give({int32(1)})});
             op.indices.pop_back();
             return Operands{b.let("x", op)};
           }},
          {"a screma without widths",
           [&](Builder& b, Value, Value) {
             return Operands{b.let("x", screma(b, {}, {}, {{}, give({int32(1)})}))};
           }},
          {"the map function has 0 parameters for 1 inputs",
           [&](Builder& b, Value n, Value xs) {
             return Operands{b.let("x", screma(b, {n}, {xs}, {{}, give({int32(1)})}))};
           }},
          {"`xs` of type [n]i32 does not have the widths",
           [&](Builder& b, Value n, Value xs) {
             return Operands{b.let("x", screma(b, {Poly(n) + 1}, {xs}, identity(b, i32())))};
           }},
          {"`v` of type i64 gets rows of type i32",
           [&](Builder& b, Value n, Value xs) {
             return Operands{b.let("x", screma(b, {n}, {xs}, identity(b, i64())))};
           }},
          {"a reduction over 1 values has 1 parameters and 1 results",
           [&](Builder& b, Value n, Value xs) {
             return Operands{
                 b.let("x", screma(b, {n}, {xs}, identity(b, i32()), {{identity(b, i32()), {int32(0)}, true}}))};
           }},
          {"a reduction with a neutral element of type i64 works on i32",
           [&](Builder& b, Value n, Value xs) {
             return Operands{b.let("x", screma(b, {n}, {xs}, identity(b, i32()),
                                               {{binary_lambda(b, BinaryOp::add, i32()), {i64_constant(0)}, true}}))};
           }},
          {"i32 is reduced with a neutral element of type i64",
           [&](Builder& b, Value n, Value xs) {
             return Operands{b.let("x", screma(b, {n}, {xs}, identity(b, i32()),
                                               {{binary_lambda(b, BinaryOp::add, i64()), {i64_constant(0)}, true}}))};
           }},
          {"too few for its reductions",
           [&](Builder& b, Value n, Value xs) {
             return Operands{b.let("x", screma(b, {n}, {xs}, identity(b, i32()), {sum(b), sum(b)}))};
           }},
      });
}

TEST_CASE("derivatives: arguments and seeds are those of the function") {
  const auto derivative = [](Builder& b, std::vector<Operand> arguments, std::vector<Operand> seeds,
                             Derivative::Mode mode) {
    return Operands{b.let("x", Derivative{.mode = mode,
                                          .arguments = std::move(arguments),
                                          .seeds = std::move(seeds),
                                          .function = identity(b, i32())})};
  };
  using Mode = Derivative::Mode;
  refuse_each(Stage::soac,
              {
                  {"0 arguments for 1 values",
                   [&](Builder& b, Value, Value) { return derivative(b, {}, {int32(1)}, Mode::forward); }},
                  {"2 tangents for 1 values",
                   [&](Builder& b, Value, Value) {
                     return derivative(b, {int32(1)}, {int32(1), int32(2)}, Mode::forward);
                   }},
                  {"one of the arguments is of type i64, i32 is needed",
                   [&](Builder& b, Value n, Value) { return derivative(b, {n}, {int32(1)}, Mode::forward); }},
                  {"one of the cotangents is of type [n]i32, i32 is needed",
                   [&](Builder& b, Value, Value xs) { return derivative(b, {int32(1)}, {xs}, Mode::reverse); }},
              });
}

}  // namespace apl::test::broken
