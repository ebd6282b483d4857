// The verifier: one broken module for each rule of stages, levels and tiles.
#include "verify_cases.h"

namespace apl::test::broken {

TEST_CASE("stages hold their own operations") {
  auto one = [](Builder&) { return Operands{int32(1)}; };
  refuse_each(
      Stage::soac,
      {
          {"segmap does not belong to the soac stage",
           [&](Builder& b, Value n, Value) { return Operands{b.let("x", segmap(b, SegLevel::thread, n, one))}; }},
          {"shared does not belong to the soac stage",
           [](Builder& b, Value n, Value) { return Operands{shared(b, n)}; }},
          {"alloc does not belong to the soac stage",
           [](Builder& b, Value n, Value xs) {
             bind(b, {Type::block(Space::global)}, Alloc{n, Space::global});
             return Operands{xs};
           }},
          {"`x` has memory before the memory stage",
           [](Builder& b, Value n, Value xs) {
             Value block = fresh(b, Type::block(Space::global));
             b.append({{block}, Use{block}, {}, {}, {}});
             Type type = i32s({n});
             type.memory = std::make_shared<const MemoryBinding>(MemoryBinding{block, Lmad::row_major({n})});
             return Operands{bind(b, {type}, Use{xs})[0]};
           }},
      });
  refuse_each(Stage::kernel,
              {
                  {"screma does not belong to the kernel stage outside a segmap",
                   [](Builder& b, Value n, Value xs) {
                     return Operands{b.let("x", Screma{{n}, {fresh(b, i64())}, {xs}, identity(b, i32()), {}})};
                   }},
                  {"alloc does not belong to the kernel stage",
                   [](Builder& b, Value n, Value xs) {
                     bind(b, {Type::block(Space::global)}, Alloc{n, Space::global});
                     return Operands{xs};
                   }},
              });
  refuse_each(Stage::memory,
              {
                  {"array `x` is bound to no memory",
                   [](Builder& b, Value n, Value) {
                     return Operands{b.let("x", Scratch{ScalarType::i32, {n}})};
                   }},
                  {"`x` is bound to `n`, which is no memory",
                   [](Builder& b, Value n, Value xs) {
                     Type type = i32s({n});
                     type.memory = std::make_shared<const MemoryBinding>(MemoryBinding{n, Lmad::row_major({n})});
                     return Operands{bind(b, {type}, Use{xs})[0]};
                   }},
                  {"`x` has type [n]i32, but its layout is of shape [n + 1]i32",
                   [](Builder& b, Value n, Value xs) {
                     Type type = i32s({n});
                     type.memory = std::make_shared<const MemoryBinding>(
                         MemoryBinding{b.type(xs).memory->block, Lmad::row_major({Poly(n) + 1})});
                     return Operands{bind(b, {type}, Use{xs})[0]};
                   }},
                  {"global memory is allocated outside kernels",
                   [](Builder& b, Value n, Value) {
                     return in_block(b, [&](Builder& block) {
                       block.let("m", Alloc{n, Space::global});
                       return Operands{int32(1)};
                     });
                   }},
                  {"shared memory is allocated directly inside a block",
                   [](Builder& b, Value n, Value xs) {
                     b.let("m", Alloc{n, Space::shared});
                     return Operands{xs};
                   }},
                  {"thread memory is allocated inside a kernel",
                   [](Builder& b, Value n, Value xs) {
                     b.let("m", Alloc{n, Space::thread});
                     return Operands{xs};
                   }},
              });
}

TEST_CASE("levels nest, and results fit their level") {
  auto one = [](Builder&) { return Operands{int32(1)}; };
  const KernelResult private_result{KernelResult::Kind::private_, {}};
  refuse_each(
      Stage::kernel,
      {
          {"an inblock segmap stands directly inside a block",
           [&](Builder& b, Value n, Value) { return Operands{b.let("x", segmap(b, SegLevel::inblock, n, one))}; }},
          {"a segmap at thread or block level stands outside all others",
           [&](Builder& b, Value n, Value) {
             return in_block(
                 b, [&](Builder& block) { return Operands{block.let("x", segmap(block, SegLevel::thread, n, one))}; });
           }},
          {"shared stands directly inside a block", [](Builder& b, Value n, Value) { return Operands{shared(b, n)}; }},
          {"copy_tile stands directly inside a block",
           [&](Builder& b, Value n, Value xs) {
             return in_block(b, [&](Builder& block) {
               Value s = shared(block, 4);
               return Operands{block.let("t", segmap(block, SegLevel::inblock, n, [&](Builder& t) {
                                           return Operands{t.let("x", copy_tile(s, xs, 4))};
                                         }))};
             });
           }},
          {"result 1 is private, but there are no threads of a block",
           [&](Builder& b, Value n, Value) {
             return Operands{b.let("x", segmap(b, SegLevel::thread, n, one, private_result))};
           }},
          {"it says for 0 results what becomes of them, but its body gives 1",
           [&](Builder& b, Value n, Value) {
             SegOp op = segmap(b, SegLevel::thread, n, one);
             op.results.clear();
             return Operands{b.let("x", op)};
           }},
          {"the index `v` has type i32",
           [&](Builder& b, Value n, Value) {
             SegOp op = segmap(b, SegLevel::thread, n, one);
             op.space.front().index = fresh(b, i32());
             return Operands{b.let("x", op)};
           }},
          {"result 1 is a register tile, but not of a block",
           [&](Builder& b, Value n, Value) {
             KernelResult tile{KernelResult::Kind::regtile, {{n, 2, 2}}};
             return Operands{b.let("x", segmap(
                                            b, SegLevel::thread, n,
                                            [](Builder& t) {
                                              return Operands{t.let("z", Replicate{{2, 2}, int32(0)})};
                                            },
                                            tile))};
           }},
          {"result 1 has 2 extents for 1 dims",
           [&](Builder& b, Value n, Value) {
             KernelResult tile{KernelResult::Kind::regtile, {{n, 2, 2}, {n, 2, 2}}};
             return Operands{b.let("x", segmap(
                                            b, SegLevel::block, n,
                                            [](Builder& t) {
                                              return Operands{t.let("z", Replicate{{2, 2}, int32(0)})};
                                            },
                                            tile))};
           }},
          {"result 1 of type [2][3]i32 should be a register tile of type [2][2]i32",
           [&](Builder& b, Value n, Value) {
             KernelResult tile{KernelResult::Kind::regtile, {{n, 2, 2}}};
             return Operands{b.let("x", segmap(
                                            b, SegLevel::block, n,
                                            [](Builder& t) {
                                              return Operands{t.let("z", Replicate{{2, 3}, int32(0)})};
                                            },
                                            tile))};
           }},
          {"result 1 has extents, but is no register tile",
           [&](Builder& b, Value n, Value) {
             return Operands{
                 b.let("x", segmap(b, SegLevel::block, n, one, {KernelResult::Kind::returns, {{n, 2, 2}}}))};
           }},
      });
}

TEST_CASE("tiles: copies and contractions") {
  auto contract = [](Builder& b, const std::function<void(TileContract&)>& spoil) {
    return in_block(b, [&](Builder& block) {
      Value acc = block.let("acc", Replicate{{2, 3}, int32(0)});
      Value tile = block.let("tile", Replicate{{6, 4}, int32(0)});
      TileContract op{{{2, 3}}, {4}, {acc}, {{tile, {0, 1}}}, identity(block, i32()), sum(block)};
      spoil(op);
      return Operands{bind(block, {i32s({2, 3})}, op)[0]};
    });
  };
  auto copy = [](Builder& b, Value xs, const std::function<void(CopyTile&)>& spoil) {
    return in_block(b, [&](Builder& block) {
      CopyTile op = copy_tile(shared(block, 4), xs, 4);
      spoil(op);
      return Operands{block.let("x", op)};
    });
  };
  CHECK(verify_text(of_row(Stage::kernel, [&](Builder& b, Value, Value) {
          return contract(b, [](TileContract&) {});
        })).empty());
  CHECK(verify_text(of_row(Stage::kernel, [&](Builder& b, Value, Value xs) {
          return copy(b, xs, [](CopyTile&) {});
        })).empty());
  refuse_each(
      Stage::kernel,
      {
          {"a window of rank 1 with 2 guards for `s` of rank 1",
           [&](Builder& b, Value, Value xs) {
             return copy(b, xs, [](CopyTile& op) { op.guards.push_back({0, {}}); });
           }},
          {"a window of rank 2 with 1 guards",
           [&](Builder& b, Value, Value xs) {
             return copy(b, xs, [](CopyTile& op) { op.window = Lmad::row_major({2, 2}); });
           }},
          {"dim 1 of the window has 3 elements, of `s` 4",
           [&](Builder& b, Value, Value xs) {
             return copy(b, xs, [](CopyTile& op) { op.window = Lmad::row_major({3}); });
           }},
          {"the pad 0i64 of type i64 is no element of `s`",
           [&](Builder& b, Value, Value xs) { return copy(b, xs, [](CopyTile& op) { op.pad = i64_constant(0); }); }},
          {"more than an element is read, and there is no map of them",
           [&](Builder& b, Value, Value xs) {
             return copy(b, xs, [&](CopyTile& op) { op.also.push_back({xs, {0, {{1}}}}); });
           }},
          {"an index of what is read also does not go along the dims of the window",
           [&](Builder& b, Value, Value xs) {
             return copy(b, xs, [&](CopyTile& op) {
               op.also.push_back({xs, {0, {}}});
               op.map = b.lambda({i32(), i32()}, {"x", "y"},
                                 [](Builder&, const std::vector<Value>& xy) { return Operands{xy[0]}; });
             });
           }},
          {"the map of a tile has 1 parameters and 1 results for 2 elements",
           [&](Builder& b, Value, Value xs) {
             return copy(b, xs, [&](CopyTile& op) {
               op.also.push_back({xs, {0, {{1}}}});
               op.map = identity(b, i32());
             });
           }},
          {"the map of a tile gives a value of type i64, no element of `s`",
           [&](Builder& b, Value, Value xs) {
             return copy(b, xs, [&](CopyTile& op) {
               op.also.push_back({{}, {0, {{1}}}});
               op.map = b.lambda({i32(), Type::scalar(ScalarType::i64)}, {"x", "i"},
                                 [](Builder&, const std::vector<Value>& xi) { return Operands{xi[1]}; });
             });
           }},
          {"a tile is mapped that is read under conditions",
           [&](Builder& b, Value, Value xs) {
             return copy(b, xs, [&](CopyTile& op) {
               op.where.push_back({{0, {{1}}}, {}});
               op.map = identity(b, i32());
             });
           }},
          {"axis 1 of tile `tile` is dim 2, which does not exist",
           [&](Builder& b, Value, Value) { return contract(b, [](TileContract& op) { op.operands[0].axes[0] = 2; }); }},
          {"axis 1 of tile `tile` is dim -1",
           [&](Builder& b, Value, Value) {
             return contract(b, [](TileContract& op) { op.operands[0].axes[0] = -1; });
           }},
          {"tile `tile` of type [6][4]i32 has 1 axes",
           [&](Builder& b, Value, Value) { return contract(b, [](TileContract& op) { op.operands[0].axes = {0}; }); }},
          {"axis 2 of tile `tile` has 4 elements, but 5 are read",
           [&](Builder& b, Value, Value) { return contract(b, [](TileContract& op) { op.depth = {5}; }); }},
          {"accumulator `acc` of type [2][3]i32 should be of type [2][2]i32",
           [&](Builder& b, Value, Value) { return contract(b, [](TileContract& op) { op.space[0].reg = 2; }); }},
          {"0 accumulators and 1 mapped values for a reduction over 1",
           [&](Builder& b, Value, Value) { return contract(b, [](TileContract& op) { op.accumulators.clear(); }); }},
          {"the map function has 1 parameters for 0 tiles",
           [&](Builder& b, Value, Value) { return contract(b, [](TileContract& op) { op.operands.clear(); }); }},
          {"a reduction over 2 values has 2 parameters",
           [&](Builder& b, Value, Value) {
             return contract(b, [](TileContract& op) { op.reduce.neutral.push_back(int32(0)); });
           }},
      });
}

}  // namespace apl::test::broken
