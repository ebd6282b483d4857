// Block-tiled and register-tiled contractions, with shared arrays, tile copies and register tiles.
#include <doctest/doctest.h>

#include "segmaps.h"

namespace apl::test {
namespace {

// The block-tiled, register-tiled product of A [m][q] and B [q][n] with an operator of our choice.
struct TiledProduct {
  BinaryOp map = BinaryOp::mul;
  BinaryOp reduce = BinaryOp::add;
  std::int64_t neutral = 0;
  bool guards = true;
  bool copies_b = true;
  std::size_t padded_dim = 9;  // pad the shared arrays behind this dim

  Module build() const {
    Program p(Stage::kernel);
    Value m = p.size("m");
    Value n = p.size("n");
    Value q = p.size("q");
    Value as = p.param("A", i32s({m, q}));
    Value bs = p.param("B", i32s({q, n}));
    return p.body([&](Builder& b) {
      Poly T = b.let("T", GetSize{"f.T", SizeClass::tile_size, 2});
      Poly R = b.let("R", GetSize{"f.R", SizeClass::reg_tile_size, 3});
      Poly Q = b.let("Q", GetSize{"f.Q", SizeClass::tile_size, 4});
      KernelResult regtile{KernelResult::Kind::regtile, {{m, T, R}, {n, T, R}}};
      return Operands{b.let("C", segmap(b, SegLevel::block, {ceil_div(m, T * R), ceil_div(n, T * R)}, {regtile},
                                        [&](Builder& block, const std::vector<Value>& at) {
                                          return tile(block, {m, n, q}, {T, R, Q}, as, bs, at);
                                        }))};
    });
  }

 private:
  struct Sizes {
    Poly m, n, q;
  };
  struct Tiles {
    Poly T, R, Q;
  };

  Lmad layout(const std::vector<Poly>& shape) const {
    return padded_dim < shape.size() ? Lmad::padded(shape, padded_dim) : Lmad::row_major(shape);
  }

  Operands tile(Builder& block, const Sizes& s, const Tiles& t, Value as, Value bs,
                const std::vector<Value>& at) const {
    Value a_shared = block.let("A_s", SharedArray{ScalarType::i32, layout({t.T * t.R, t.Q})});
    Value b_shared = block.let("B_s", SharedArray{ScalarType::i32, layout({t.Q, t.T * t.R})});
    Value zeros = block.let("acc", segmap(block, SegLevel::inblock, {t.T, t.T}, {kPrivate},
                                          [&](Builder& thread, const std::vector<Value>&) {
                                            return Operands{thread.let("z", Replicate{{t.R, t.R}, int32(neutral)})};
                                          }));
    Loop loop;
    for (Value v : {zeros, a_shared, b_shared}) {
      loop.params.push_back(block.values().add(block.type(v), "p"));
      loop.initial.push_back(v);
    }
    loop.index = block.values().add(i64(), "kk");
    loop.bound = ceil_div(s.q, t.Q);
    loop.body = block.body([&](Builder& step) {
      Poly row = Poly(at[0]) * t.T * t.R;
      Poly column = Poly(at[1]) * t.T * t.R;
      Poly depth = Poly(loop.index) * t.Q;
      auto guard = [&](const Poly& start, const Poly& bound) {
        return guards ? TileGuard{start, bound} : TileGuard{start, {}};
      };
      CopyTile copy_a{loop.params[1],
                      as,
                      Lmad(row * s.q + depth, {{t.T * t.R, s.q}, {t.Q, 1}}),
                      {guard(row, s.m), guard(depth, s.q)},
                      {},
                      {},
                      int32(0)};
      CopyTile copy_b{loop.params[2],
                      bs,
                      Lmad(depth * s.n + column, {{t.Q, s.n}, {t.T * t.R, 1}}),
                      {guard(depth, s.q), guard(column, s.n)},
                      {},
                      {},
                      int32(0)};
      Value a = step.let("a", copy_a);
      Value bt = copies_b ? step.let("b", copy_b) : loop.params[2];
      TileContract contract{{{t.T, t.R}, {t.T, t.R}},
                            {t.Q},
                            {loop.params[0]},
                            {{a, {0, 2}}, {bt, {2, 1}}},
                            binary_lambda(step, map, i32()),
                            {binary_lambda(step, reduce, i32()), {int32(neutral)}, true}};
      return Operands{step.let("acc", contract), a, bt};
    });
    return Operands{block.let_many({"acc", "a", "b"}, loop)[0]};
  }
};

HostValue product(const HostValue& a, const HostValue& b) {
  const std::int64_t m = a.shape[0];
  const std::int64_t q = a.shape[1];
  const std::int64_t n = b.shape[1];
  HostValue c = HostValue::zeros(ScalarType::i32, {m, n});
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      std::int64_t dot = 0;
      for (std::int64_t k = 0; k < q; ++k) dot += a.at(i * q + k).as_int() * b.at(k * n + j).as_int();
      c.set(i * n + j, Scalar::integer(ScalarType::i32, dot));
    }
  return c;
}

}  // namespace

TEST_CASE("a tiled matrix product is the product, for odd sizes and tiles and 20 seeds") {
  struct Case {
    std::int64_t m, n, q, T, R, Q;
  };
  const Case cases[] = {{1, 1, 1, 2, 3, 4},  {7, 5, 11, 2, 3, 4}, {6, 12, 8, 2, 3, 4}, {5, 9, 3, 3, 1, 1},
                        {4, 3, 13, 1, 1, 5}, {0, 3, 4, 2, 2, 2},  {3, 4, 0, 2, 2, 2},  {2, 2, 2, 4, 4, 4}};
  std::uint64_t seed = 0;
  for (std::size_t padded : {std::size_t{0}, std::size_t{9}}) {
    TiledProduct tiled;
    tiled.padded_dim = padded;
    Module module = tiled.build();
    for (const Case& c : cases) {
      CAPTURE(c.m);
      CAPTURE(c.n);
      CAPTURE(c.q);
      CAPTURE(c.T);
      CAPTURE(seed);
      const HostValue a = pattern({c.m, c.q});
      const HostValue b = pattern({c.q, c.n});
      auto results = interpret(module, "f", {a, b}, seeded(seed++, {{"f.T", c.T}, {"f.R", c.R}, {"f.Q", c.Q}}));
      REQUIRE_MESSAGE(results, results.error().message);
      CHECK(results->front() == product(a, b));
    }
  }
  const HostValue a = pattern({7, 5});
  const HostValue b = pattern({5, 4});
  for (; seed < 20; ++seed)
    CHECK(interpret(TiledProduct{}.build(), "f", {a, b}, seeded(seed))->front() == product(a, b));
}

TEST_CASE("any map function and operator: minimum of sums") {
  TiledProduct tiled{.map = BinaryOp::add, .reduce = BinaryOp::min, .neutral = 1000};
  // Whole tiles: the pad 0 is not neutral here.
  auto results = interpret(tiled.build(), "f", {ints({1, 2}, {1, 5}), ints({2, 1}, {4, -3})},
                           seeded(1, {{"f.T", 1}, {"f.R", 1}, {"f.Q", 2}}));
  REQUIRE(results);
  CHECK(results->front().to_text() == "[[2i32]]");
}

TEST_CASE("a missing guard and a missing copy are found") {
  const std::vector<HostValue> arguments{pattern({7, 5}), pattern({5, 4})};
  TiledProduct unguarded{.guards = false};
  CHECK(run_text(unguarded.build(), arguments).find(" out of bounds for the ") != std::string::npos);
  TiledProduct uncopied{.copies_b = false};
  CHECK(run_text(uncopied.build(), arguments).starts_with("run.undefined-read 1:1 element [0, "));
}

}  // namespace apl::test
