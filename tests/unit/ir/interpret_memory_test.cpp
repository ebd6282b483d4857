// The memory stage: everything is read and written through blocks and layouts, so a wrong one shows.
#include <doctest/doctest.h>

#include "programs.h"

namespace apl::test {
namespace {

using Operands = std::vector<Operand>;

Type at(Type type, Value block, Lmad layout) {
  type.memory = std::make_shared<const MemoryBinding>(MemoryBinding{block, std::move(layout)});
  return type;
}

Value alloc(Builder& b, const Poly& elements, Space space = Space::global) {
  return b.let("mem", Alloc{elements * 4, space});
}

// A function of xs: [n]i32, which lies row-major in the caller's block.
Module of_memory_row(const std::function<Operands(Builder&, Value n, Value xs)>& fill) {
  Program p(Stage::memory);
  Value n = p.size("n");
  Value block = p.function.values.add(Type::block(Space::global), "xs_mem");
  Value xs = p.param("xs", at(i32s({n}), block, Lmad::row_major({n})));
  return p.body([&](Builder& b) {
    b.set_location({.line = 5, .column = 1, .end_line = 5, .end_column = 1});
    return fill(b, n, xs);
  });
}

// segmap(thread) (i < n) { xs[i] } into a block of `elements` through `layout`
Operands copied(Builder& b, Value n, Value xs, const Poly& elements, const Lmad& layout) {
  SegOp op{
      .level = SegLevel::thread, .space = {{b.values().add(i64(), "i"), n}}, .body = {}, .results = {KernelResult{}}};
  op.body = b.body([&](Builder& t) { return Operands{t.index(xs, {op.space[0].index})}; });
  Value mem = alloc(b, elements);
  return {b.let_typed({"ys"}, {at(i32s({n}), mem, layout)}, op).front()};
}

const std::string kFour = "[1i32, 2i32, 3i32, 4i32]";
HostValue four() { return ints({4}, {1, 2, 3, 4}); }

}  // namespace

TEST_CASE("results are written and read through their layout") {
  struct Case {
    const char* name;
    Poly elements;
    std::function<Lmad(Value)> layout;
    std::string expected;
  };
  const Case cases[] = {
      {"row-major", 4, [](Value n) { return Lmad::row_major({n}); }, kFour},
      {"reversed", 4,
       [](Value n) {
         return Lmad(Poly(n) - 1, {{n, -1}});
       },
       kFour},
      {"padded", 12,
       [](Value n) {
         return Lmad(2, {{n, 3}});
       },
       kFour},
      {"outside", 3, [](Value n) { return Lmad::row_major({n}); },
       "bug.internal 5:1 the layout of `ys` leaves its block `mem` of 12 bytes."},
      {"before the block", 4,
       [](Value n) {
         return Lmad(0, {{n, -1}});
       },
       "bug.internal 5:1 the layout of `ys` leaves its block `mem` of 16 bytes."},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    Module module =
        of_memory_row([&](Builder& b, Value n, Value xs) { return copied(b, n, xs, c.elements, c.layout(n)); });
    CHECK(run_text(module, {four()}) == c.expected);
  }
}

TEST_CASE("two indices that write one element are a race, and so is a read of what another wrote") {
  Module overlap = of_memory_row([](Builder& b, Value n, Value xs) { return copied(b, n, xs, 4, Lmad(0, {{n, 0}})); });
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    CHECK(run_text(overlap, {four()}, seeded(seed)) ==
          "run.race 5:1 element 0 of its block is written by two indices.");
  CHECK(run_text(overlap, {ints({1}, {9})}) == "[9i32]");
  // In place, but shifted: ys[i] = xs[i+1] in the block of xs. Some order runs into an element already written.
  Module shifted = of_memory_row([](Builder& b, Value n, Value xs) {
    SegOp op{.level = SegLevel::thread,
             .space = {{b.values().add(i64(), "i"), Poly(n) - 1}},
             .body = {},
             .results = {KernelResult{}}};
    op.body = b.body([&](Builder& t) { return Operands{t.index(xs, {Poly(op.space[0].index) + 1})}; });
    Value block = b.type(xs).memory->block;
    return Operands{b.let_typed({"ys"}, {at(i32s({Poly(n) - 1}), block, Lmad::row_major({Poly(n) - 1}))}, op).front()};
  });
  int races = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    races += run_text(shifted, {four()}, seeded(seed)).starts_with("run.race 5:1") ? 1 : 0;
  CHECK(races >= 5);
}

TEST_CASE("views copy nothing: what they are is what their layout says") {
  auto transposed = [](const std::vector<Poly>& strides) {
    return of_memory_row([strides](Builder& b, Value n, Value xs) {
      Value block = b.type(xs).memory->block;
      Value grid =
          b.let_typed({"grid"}, {at(i32s({2, 2}), block, Lmad::row_major({2, 2}))}, Reshape{xs, {2, 2}}).front();
      Value t = b.let_typed({"t"}, {at(i32s({2, 2}), block, Lmad(0, {{2, strides[0]}, {2, strides[1]}}))},
                            Rearrange{grid, {1, 0}})
                    .front();
      Value row = b.let_typed({"row"}, {at(i32s({2}), block, Lmad(strides[0], {{2, strides[1]}}))},
                              Index{t, {DimIndex::fix(1)}})
                      .front();
      return Operands{t, row, n};
    });
  };
  CHECK(run_text(transposed({1, 2}), {four()}) == "[[1i32, 3i32], [2i32, 4i32]] [2i32, 4i32] 4i64");
  CHECK(run_text(transposed({2, 1}), {four()}) == "[[1i32, 2i32], [3i32, 4i32]] [3i32, 4i32] 4i64");
}

TEST_CASE("a value in the wrong block is undefined") {
  Module module = of_memory_row([](Builder& b, Value n, Value xs) {
    Value mem = alloc(b, n);
    return Operands{b.let_typed({"ys"}, {at(i32s({n}), mem, Lmad::row_major({n}))}, Use{xs}).front()};
  });
  CHECK(run_text(module, {four()}) == "run.undefined-read 0:0 element [0] of result 1 is never written.");
  Module copy = of_memory_row([](Builder& b, Value n, Value xs) {
    Value mem = alloc(b, n);
    return Operands{b.let_typed({"ys"}, {at(i32s({n}), mem, Lmad::row_major({n}))}, Copy{xs}).front()};
  });
  CHECK(run_text(copy, {four()}) == kFour);
}

TEST_CASE("an update in place is seen through every name of the block") {
  Program p(Stage::memory);
  Value block = p.function.values.add(Type::block(Space::global), "xs_mem");
  Type type = at(i32s({3}), block, Lmad::row_major({3}));
  type.unique = true;
  Value xs = p.param("xs", type);
  Module module = p.body([&](Builder& b) {
    return Operands{
        b.let_typed({"ys"}, {at(i32s({3}), block, Lmad::row_major({3}))}, Update{xs, {DimIndex::fix(1)}, int32(9)})
            .front()};
  });
  CHECK(run_text(module, {ints({3}, {1, 2, 3})}) == "[1i32, 9i32, 3i32]");
}

namespace {

// Each thread keeps n numbers in its own memory, allocated by the block or by itself, and sums them later.
Module private_rows(Space space, bool by_thread) {
  return of_memory_row([=](Builder& b, Value n, Value xs) {
    SegOp block{
        .level = SegLevel::block, .space = {{b.values().add(i64(), "g"), 2}}, .body = {}, .results = {KernelResult{}}};
    block.body = b.body([&](Builder& inner) {
      // The threads' dims do not move the address: each thread has a copy of its own.
      const Poly threads = 3;
      Value mem = alloc(inner, n, space);
      SegOp keep{.level = SegLevel::inblock,
                 .space = {{b.values().add(i64(), "t"), threads}},
                 .body = {},
                 .results = {KernelResult{KernelResult::Kind::private_, {}}}};
      keep.body = inner.body([&](Builder& t) {
        Value own = by_thread ? alloc(t, n, Space::thread) : mem;
        Value iota = t.let_typed({"row"}, {at(i32s({n}), own, Lmad::row_major({n}))},
                                 Iota{ScalarType::i32, n, t.convert(ScalarType::i32, keep.space[0].index), int32(10)})
                         .front();
        return Operands{iota};
      });
      Value acc =
          inner.let_typed({"acc"}, {at(i32s({threads, n}), mem, Lmad(0, {{threads, 0}, {n, 1}}))}, keep).front();
      SegOp use{.level = SegLevel::inblock,
                .space = {{b.values().add(i64(), "t"), threads}},
                .body = {},
                .results = {KernelResult{}}};
      use.body = inner.body([&](Builder& t) {
        Poly i = use.space[0].index;
        Value row =
            t.let_typed({"row"}, {at(i32s({n}), mem, Lmad::row_major({n}))}, Index{acc, {DimIndex::fix(i)}}).front();
        Lambda id = t.lambda({i32()}, {"x"}, [](Builder&, const std::vector<Value>& v) { return Operands{v[0]}; });
        Value total = t.let("total", Screma{{n}, {t.values().add(i64(), "k")}, {row}, id, {sum(t)}});
        return Operands{t.binary(BinaryOp::add, total, t.index(xs, {0}))};
      });
      Value shared = alloc(inner, threads, Space::shared);
      return Operands{inner.let_typed({"out"}, {at(i32s({threads}), shared, Lmad::row_major({threads}))}, use).front()};
    });
    Value out = alloc(b, 6);
    return Operands{b.let_typed({"result"}, {at(i32s({2, 3}), out, Lmad::row_major({2, 3}))}, block).front()};
  });
}

}  // namespace

TEST_CASE("thread memory that a block allocates has one copy a thread") {
  // Thread t keeps t, t+10, t+20, t+30, whose sum is 4t + 60; plus xs[0].
  const std::string expected = "[[61i32, 65i32, 69i32], [61i32, 65i32, 69i32]]";
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    CHECK(run_text(private_rows(Space::thread, false), {four()}, seeded(seed)) == expected);
    CHECK(run_text(private_rows(Space::thread, true), {four()}, seeded(seed)) == expected);
    // In shared memory the threads overwrite each other's numbers.
    CHECK(run_text(private_rows(Space::shared, false), {four()}, seeded(seed)) ==
          "run.race 5:1 element 0 of its block is written by two indices.");
  }
}

TEST_CASE("shared memory that a block did not write is undefined, even where another block wrote") {
  Module module = of_memory_row([](Builder& b, Value, Value) {
    SegOp block{
        .level = SegLevel::block, .space = {{b.values().add(i64(), "g"), 2}}, .body = {}, .results = {KernelResult{}}};
    block.body = b.body([&](Builder& inner) {
      Value mem = alloc(inner, 2, Space::shared);
      Value s =
          inner.let_typed({"s"}, {at(i32s({2}), mem, Lmad::row_major({2}))}, Scratch{ScalarType::i32, {2}}).front();
      Value one = inner
                      .let_typed({"one"}, {at(i32s({2}), mem, Lmad::row_major({2}))},
                                 Update{s, {DimIndex::fix(block.space[0].index)}, int32(1)})
                      .front();
      return Operands{inner.index(one, {0})};
    });
    Value out = alloc(b, 2);
    return Operands{b.let_typed({"r"}, {at(i32s({2}), out, Lmad::row_major({2}))}, block).front()};
  });
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    CHECK(run_text(module, {four()}, seeded(seed)) ==
          "run.undefined-read 5:1 element [0] of `one` is read before it is written.");
}

}  // namespace apl::test
