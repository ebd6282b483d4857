// The verifier: what is consumed is not used again.
#include "verify_cases.h"

namespace apl::test::broken {

TEST_CASE("what is consumed is not used again") {
  auto update = [](Builder& b, Value v, const char* name = "u") {
    return b.let(name, Update{v, {DimIndex::fix(0)}, int32(1)});
  };
  refuse_each(Stage::soac, {
                               {"`xs` is used after it was consumed",
                                [&](Builder& b, Value, Value xs) {
                                  update(b, xs);
                                  return Operands{b.let("again", Copy{xs})};
                                }},
                               {"0:0 `f`: `xs` is used after it was consumed",
                                [&](Builder& b, Value, Value xs) {
                                  update(b, xs);
                                  return Operands{xs};
                                }},
                               {"`row` is used after `xs` was consumed, whose elements it may share",
                                [&](Builder& b, Value, Value xs) {
                                  Value row = b.let("row", Index{xs, {DimIndex::slice(1, 2)}});
                                  update(b, xs);
                                  return Operands{b.let("again", Copy{row})};
                                }},
                               {"`xs` is used after",
                                [&](Builder& b, Value n, Value xs) {
                                  Value view = b.let("view", Reshape{b.rearrange(xs, {0}), {n, 1}});
                                  b.let("u", Update{view, {DimIndex::fix(0), DimIndex::fix(0)}, int32(1)});
                                  return Operands{b.let("again", Copy{xs})};
                                }},
                               {"`xs` is used after it was consumed",
                                [&](Builder& b, Value, Value xs) {
                                  If op{kTrue, b.body([&](Builder& t) { return Operands{update(t, xs)}; }), give({xs})};
                                  b.let("merged", op);
                                  return Operands{b.let("again", Copy{xs})};
                                }},
                               {"it consumes `xs`, which is bound outside a body that may run more than once",
                                [&](Builder& b, Value n, Value xs) {
                                  Value i = fresh(b, i64());
                                  BodyPtr body =
                                      b.body([&](Builder& t) { return Operands{t.index(update(t, xs), {0})}; });
                                  return Operands{b.let("x", Screma{{n}, {i}, {}, {{}, body}, {}})};
                                }},
                               {"`xs` is used after it was consumed",
                                [&](Builder& b, Value n, Value xs) {
                                  Value p = fresh(b, i32s({n}));
                                  b.let("x", Loop{{p}, {xs}, fresh(b, i64()), 3, b.body([&](Builder& t) {
                                                    return Operands{update(t, p)};
                                                  })});
                                  return Operands{b.let("again", Copy{xs})};
                                }},
                               {"`xs` is used after it was consumed",
                                [&](Builder& b, Value n, Value xs) {
                                  bind(b, {i32s({n})}, Apply{"f", {Operand(n), Operand(xs)}});
                                  return Operands{b.let("again", Copy{xs})};
                                }},
                               {"`xs` is replaced by `part`, whose elements it may share",
                                [&](Builder& b, Value, Value xs) {
                                  Value part = b.let("part", Index{xs, {DimIndex::slice(1, 2)}});
                                  return Operands{b.let("u", Update{xs, {DimIndex::slice(0, 2)}, part})};
                                }},
                           });
  refuse_each(Stage::kernel, {
                                 {"`s` is used after it was consumed",
                                  [&](Builder& b, Value, Value xs) {
                                    return in_block(b, [&](Builder& block) {
                                      Value s = shared(block, 4);
                                      block.let("full", copy_tile(s, xs, 4));
                                      return Operands{block.index(s, {0})};
                                    });
                                  }},
                             });
  Program p;
  Value n = p.size("n");
  Value xs = p.param("xs", i32s({n}));
  CHECK(verify_text(p.body([&](Builder& b) {
          return Operands{update(b, xs)};
        })).find("it consumes `xs`, which belongs to the caller") != std::string::npos);
  // A branch that updates and one that does not, in a loop: each path consumes once.
  const std::string accepted = verify_text(of_row(Stage::soac, [&](Builder& b, Value rows, Value array) {
    Value param = fresh(b, i32s({rows}));
    Loop loop{{param}, {array}, fresh(b, i64()), 3, b.body([&](Builder& t) {
                If op{kTrue, t.body([&](Builder& then) { return Operands{update(then, param)}; }), give({param})};
                return Operands{update(t, t.let("merged", op))};
              })};
    return Operands{update(b, b.let("result", loop))};
  }));
  CHECK(accepted.empty());
}

}  // namespace apl::test::broken
