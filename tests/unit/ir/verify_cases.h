// Small modules, mostly broken ones, for tests of the verifier.
#pragma once

#include <doctest/doctest.h>

#include "ir/verify.h"
#include "programs.h"

namespace apl::test::broken {

using Operands = std::vector<Operand>;
using Fill = std::function<Operands(Builder&, Value n, Value xs)>;

// f(xs: *[n]i32)
inline Module of_row(Stage stage, const Fill& fill) {
  Program p(stage);
  Value n = p.size("n");
  Type type = i32s({n});
  type.unique = true;
  if (stage == Stage::memory) {
    Value block = p.function.values.add(Type::block(Space::global), "xs_mem");
    type.memory = std::make_shared<const MemoryBinding>(MemoryBinding{block, Lmad::row_major({n})});
  }
  Value xs = p.param("xs", type);
  return p.body([&](Builder& b) {
    b.set_location({.line = 2, .column = 5, .end_line = 2, .end_column = 9});
    return fill(b, n, xs);
  });
}

inline std::string verify_text(const Module& module) {
  std::string text;
  for (const Diagnostic& d : verify(module)) {
    CHECK(d.code == Code::ir_invalid);
    text += std::to_string(d.location.line) + ":" + std::to_string(d.location.column) + " " + d.message + "\n";
  }
  return text;
}

struct Case {
  const char* expected;  // part of some diagnostic
  Fill fill;
};

inline void refuse_each(Stage stage, const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    CAPTURE(c.expected);
    const std::string text = verify_text(of_row(stage, c.fill));
    CHECK_MESSAGE(text.find(c.expected) != std::string::npos, text);
  }
}

inline const Operand kNothing = Operand(Value{12345});
inline const Scalar kTrue = Scalar::boolean(true);

inline std::vector<Value> bind(Builder& b, const std::vector<Type>& types, Op op) {
  return b.let_typed({"x"}, types, std::move(op));
}
inline Value fresh(Builder& b, Type type) { return b.values().add(std::move(type), "v"); }
inline BodyPtr give(Operands results) { return make_body({}, std::move(results)); }
inline Lambda identity(Builder& b, const Type& type) {
  Value x = fresh(b, type);
  return {{x}, give({x})};
}

inline SegOp segmap(Builder& b, SegLevel level, const Poly& bound, const std::function<Operands(Builder&)>& fill,
                    const KernelResult& result = {}) {
  SegOp op{.level = level, .space = {{fresh(b, i64()), bound}}, .body = {}, .results = {}};
  op.body = b.body(fill);
  op.results.assign(op.body->results.size(), result);
  return op;
}

// One block whose body is `fill`.
inline Operands in_block(Builder& b, const std::function<Operands(Builder&)>& fill) {
  return {b.let("r", segmap(b, SegLevel::block, 1, fill))};
}

inline Value shared(Builder& b, const Poly& size) {
  return b.let("s", SharedArray{ScalarType::i32, Lmad::row_major({size})});
}
inline CopyTile copy_tile(Value target, Value source, const Poly& size) {
  return {target, source, Lmad(0, {{size, 1}}), {{0, {}}}, {}, {}, int32(0)};
}

}  // namespace apl::test::broken
