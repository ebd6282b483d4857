// Segmaps at their three levels, shared arrays, private results.
#include <doctest/doctest.h>

#include "segmaps.h"

namespace apl::test {
namespace {

// f(xs: [n]i32) at kernel stage
Module of_row(const std::function<Operands(Builder&, Value n, Value xs)>& fill) {
  Program p(Stage::kernel);
  Value n = p.size("n");
  Value xs = p.param("xs", i32s({n}));
  return p.body([&](Builder& b) {
    b.set_location({.line = 3, .column = 1, .end_line = 3, .end_column = 1});
    return fill(b, n, xs);
  });
}

}  // namespace

TEST_CASE("a segmap at thread level gives one row an index") {
  Program p(Stage::kernel);
  Value m = p.size("m");
  Value n = p.size("n");
  Value xs = p.param("xs", i32s({m, n}));
  Module module = p.body([&](Builder& b) {
    SegOp op = segmap(b, SegLevel::thread, {n, m}, {kReturns, kReturns}, [&](Builder& t, const std::vector<Value>& at) {
      Value x = t.index(xs, {at[1], at[0]});
      return Operands{x, t.let("pair", ArrayLit{i32(), {Operand(x), int32(7)}})};
    });
    auto results = b.let_many({"t", "pairs"}, op);
    return Operands{results[0], results[1]};
  });
  CHECK(run_text(module, {ints({2, 2}, {1, 2, 3, 4})}) ==
        "[[1i32, 3i32], [2i32, 4i32]] [[[1i32, 7i32], [3i32, 7i32]], [[2i32, 7i32], [4i32, 7i32]]]");
  CHECK(run_text(module, {ints({0, 2}, {})}) == "empty([2][0]i32) empty([2][0][2]i32)");
}

TEST_CASE("a segmap without dims has one index, and scalar results") {
  Module module = of_row([](Builder& b, Value n, Value xs) {
    return Operands{b.let("s", segmap(b, SegLevel::thread, {}, {kReturns}, [&](Builder& t, const std::vector<Value>&) {
                            Lambda id = t.lambda({i32()}, {"x"},
                                                 [](Builder&, const std::vector<Value>& v) { return Operands{v[0]}; });
                            return Operands{t.let("s", Screma{{n}, {t.values().add(i64(), "k")}, {xs}, id, {sum(t)}})};
                          }))};
  });
  CHECK(run_text(module, {ints({3}, {1, 2, 3})}) == "6i32");
}

TEST_CASE("inblock segmaps run one after the other over one block") {
  // Each block reverses its own four elements through an array of the block.
  Module module = of_row([](Builder& b, Value n, Value xs) {
    return Operands{b.let(
        "r",
        segmap(b, SegLevel::block, {floor_div(n, 4)}, {kReturns}, [&](Builder& block, const std::vector<Value>& g) {
          Value kept = block.let(
              "kept", segmap(block, SegLevel::inblock, {4}, {kReturns}, [&](Builder& t, const std::vector<Value>& i) {
                return Operands{t.index(xs, {Poly(g[0]) * 4 + i[0]})};
              }));
          return Operands{block.let(
              "turned", segmap(block, SegLevel::inblock, {4}, {kReturns}, [&](Builder& t, const std::vector<Value>& i) {
                return Operands{t.index(kept, {Poly(3) - i[0]})};
              }))};
        }))};
  });
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    CHECK(run_text(module, {ints({8}, {1, 2, 3, 4, 5, 6, 7, 8})}, seeded(seed)) ==
          "[[4i32, 3i32, 2i32, 1i32], [8i32, 7i32, 6i32, 5i32]]");
}

TEST_CASE("a shared element that nobody wrote is reported with its place") {
  Module module = of_row([](Builder& b, Value n, Value) {
    return Operands{b.let(
        "r", segmap(b, SegLevel::block, {n}, {kReturns}, [&](Builder& block, const std::vector<Value>&) {
          Value shared = block.let("s", SharedArray{ScalarType::i32, Lmad::row_major({4})});
          Value one = block.let("one", Update{shared, {DimIndex::fix(2)}, int32(5)});
          block.set_location({.line = 4, .column = 2, .end_line = 4, .end_column = 2});
          return Operands{block.let(
              "t", segmap(block, SegLevel::inblock, {2}, {kReturns}, [&](Builder& t, const std::vector<Value>& i) {
                return Operands{t.index(one, {Poly(i[0]) + 1})};
              }))};
        }))};
  });
  CHECK(run_text(module, {ints({1}, {0})}) ==
        "run.undefined-read 4:2 element [1] of `one` is read before it is written.");
  CHECK(run_text(module, {ints({0}, {})}) == "empty([0][2]i32)");
}

TEST_CASE("a layout in which elements overlap shows in the result") {
  auto with_stride = [](std::int64_t stride) {
    return of_row([stride](Builder& b, Value, Value xs) {
      return Operands{b.let(
          "r", segmap(b, SegLevel::block, {1}, {kReturns}, [&](Builder& block, const std::vector<Value>&) {
            Value shared = block.let("s", SharedArray{ScalarType::i32, Lmad(0, {{4, stride}})});
            Value full = block.let("full", CopyTile{shared, xs, Lmad(0, {{4, 1}}), {{0, {}}}, {}, {}, int32(0)});
            return Operands{block.let(
                "t", segmap(block, SegLevel::inblock, {4}, {kReturns},
                            [&](Builder& t, const std::vector<Value>& i) { return Operands{t.index(full, {i[0]})}; }))};
          }))};
    });
  };
  CHECK(run_text(with_stride(3), {ints({4}, {1, 2, 3, 4})}) == "[[1i32, 2i32, 3i32, 4i32]]");
  CHECK(run_text(with_stride(0), {ints({4}, {1, 2, 3, 4})}) != "[[1i32, 2i32, 3i32, 4i32]]");
}

TEST_CASE("private results belong to their threads") {
  struct Case {
    const char* name;
    const char* expected;
    std::function<Operands(Builder& block, Value acc)> fill;
  };
  auto read = [](const std::vector<Poly>& bounds,
                 const std::function<std::vector<Poly>(const std::vector<Value>&)>& at) {
    return [bounds, at](Builder& block, Value acc) {
      SegOp op = segmap(block, SegLevel::inblock, bounds, {kReturns},
                        [&](Builder& t, const std::vector<Value>& i) { return Operands{t.index(acc, at(i))}; });
      return Operands{block.let("out", op)};
    };
  };
  const std::string refused =
      "run.race 3:1 `acc` is private to threads: only an inblock segmap over the same space may index it";
  const Case cases[] = {
      {"own index", "[[[0i32, 1i32, 2i32], [1i32, 2i32, 3i32]]]",
       read({2, 3},
            [](const auto& i) {
              return std::vector<Poly>{i[0], i[1]};
            })},
      {"another thread's index", nullptr,
       read({2, 3},
            [](const auto& i) {
              return std::vector<Poly>{Poly(1) - i[0], i[1]};
            })},
      {"another space", nullptr,
       read({2, 2},
            [](const auto& i) {
              return std::vector<Poly>{i[0], i[1]};
            })},
      {"the same threads in another space", nullptr,
       read({6},
            [](const auto& i) {
              return std::vector<Poly>{floor_div(i[0], 3), Poly(i[0]) - Poly(3) * floor_div(i[0], 3)};
            })},
      {"the block itself", nullptr,
       [](Builder& block, Value acc) {
         return Operands{block.let("out", Index{acc, {DimIndex::fix(0)}})};
       }},
      {"a copy", nullptr, [](Builder& block, Value acc) { return Operands{block.let("out", Copy{acc})}; }},
      {"a result of the block", nullptr, [](Builder&, Value acc) { return Operands{acc}; }},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    Module module = of_row([&](Builder& b, Value, Value) {
      return Operands{
          b.let("r", segmap(b, SegLevel::block, {1}, {kReturns}, [&](Builder& block, const std::vector<Value>&) {
                  Value acc =
                      block.let("acc", segmap(block, SegLevel::inblock, {2, 3}, {kPrivate},
                                              [&](Builder& t, const std::vector<Value>& i) {
                                                return Operands{t.convert(ScalarType::i32, t.size(Poly(i[0]) + i[1]))};
                                              }));
                  return c.fill(block, acc);
                }))};
    });
    const std::string result = run_text(module, {ints({0}, {})});
    if (c.expected) {
      CHECK(result == c.expected);
    } else {
      CHECK(result.starts_with(refused));
    }
  }
}

}  // namespace apl::test
