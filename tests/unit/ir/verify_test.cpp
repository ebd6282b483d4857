// The verifier: structure, scopes, functions, sizes. One broken module for each invariant.
#include "verify_cases.h"

namespace apl::test::broken {

TEST_CASE("structure: an inlined call comes after the call around it") {
  Module module = of_row(Stage::soac, [](Builder&, Value, Value xs) { return Operands{xs}; });
  module.calls = {{.line = 3, .column = 1}, {.line = 4, .column = 1, .call = 1}};
  CHECK(verify_text(module).empty());
  module.calls.front().call = 2;
  CHECK(verify_text(module) == "3:1 inlined call 1 stands before call 2, which is around it.\n");
}

TEST_CASE("structure: what is named exists") {
  refuse_each(Stage::soac,
              {
                  {"2:5 `x` in `f`: it names a value that does not exist",
                   [](Builder& b, Value, Value) { return Operands{bind(b, {i32()}, Use{kNothing})[0]}; }},
                  {"2:5 `x` in `f`: its location names inlined call 1, but there are 0",
                   [](Builder& b, Value, Value xs) {
                     b.set_location({.line = 2, .column = 5, .end_line = 2, .end_column = 9, .call = 1});
                     return Operands{bind(b, {b.type(xs)}, Use{xs})[0]};
                   }},
                  {"the result of a body does not exist",
                   [](Builder& b, Value, Value xs) {
                     If op{kTrue, give({kNothing}), give({xs})};
                     return Operands{bind(b, {b.type(xs)}, op)[0]};
                   }},
                  {"`x` in `f`: a body is missing",
                   [](Builder& b, Value, Value) {
                     return Operands{bind(b, {i32()}, If{kTrue, nullptr, nullptr})[0]};
                   }},
                  {"`x` in `f`: there is no operation",
                   [](Builder& b, Value, Value) { return Operands{bind(b, {i32()}, std::monostate{})[0]}; }},
                  {"bodies are nested more than",
                   [](Builder& b, Value, Value) {
                     Stm stm;
                     Operand result = int32(1);
                     for (int k = 0; k < 300; ++k) {
                       Value x = fresh(b, i32());
                       std::vector<Stm> stms;
                       if (k > 0) stms.push_back(stm);
                       stm = {{x}, If{kTrue, make_body(stms, {result}), give({int32(0)})}, {}, {}, {}};
                       result = x;
                     }
                     b.append(stm);
                     return Operands{result};
                   }},
              });
  Module module = of_row(Stage::soac, [](Builder&, Value, Value xs) { return Operands{xs}; });
  Function f = *module.functions.front();
  f.values.add(i32s({Value{999}}), "odd");
  CHECK(verify_text({.functions = {std::make_shared<const Function>(f)}}).find("the type of `odd` mentions") !=
        std::string::npos);
  f = *module.functions.front();
  f.body = nullptr;
  CHECK(verify_text({.functions = {std::make_shared<const Function>(f)}}).find("there is no body") !=
        std::string::npos);
  CHECK(verify_text({.functions = {nullptr}}).find("missing") != std::string::npos);
}

TEST_CASE("scopes: bound once, and read where it is in scope") {
  refuse_each(Stage::soac,
              {
                  {"`x` in `f`: it reads `v`, which is not in scope",
                   [](Builder& b, Value, Value) { return Operands{bind(b, {i32()}, Use{fresh(b, i32())})[0]}; }},
                  {"`x` in `f`: it relies on `v`, which is not in scope",
                   [](Builder& b, Value, Value xs) {
                     Value x = bind(b, {b.type(xs)}, Use{xs})[0];
                     b.stms().back().certificates = {fresh(b, Type::scalar(ScalarType::unit))};
                     return Operands{x};
                   }},
                  {"`xs` is bound more than once",
                   [](Builder& b, Value, Value xs) {
                     b.append({{xs}, Scratch{ScalarType::i32, {4}}, {}, {}, {}});
                     return Operands{xs};
                   }},
                  {"`x` in `f`: its body gives `y`, which is not in scope",
                   [](Builder& b, Value, Value) {
                     Value y = b.values().add(i32(), "y");
                     return Operands{bind(b, {i32()}, If{kTrue, give({y}), give({int32(0)})})[0]};
                   }},
                  {"it reads `inner`, which is not in scope",
                   [](Builder& b, Value, Value) {
                     Value inner{};
                     If op{kTrue, {}, give({int32(0)})};
                     op.then_body = b.body([&](Builder& t) {
                       return Operands{inner = t.binary(BinaryOp::add, int32(1), int32(2), "inner")};
                     });
                     bind(b, {i32()}, op);
                     return Operands{b.binary(BinaryOp::add, inner, int32(1))};
                   }},
                  {"the type of `x` mentions `v`, which is not in scope",
                   [](Builder& b, Value, Value) {
                     Value v = fresh(b, i64());
                     return Operands{bind(b, {i32s({v})}, Scratch{ScalarType::i32, {3}})[0]};
                   }},
              });
}

TEST_CASE("functions: sizes, results, entries, names") {
  Module good = of_row(Stage::soac, [](Builder&, Value, Value xs) { return Operands{xs}; });
  CHECK(verify_text(good).empty());
  struct Spoiled {
    const char* expected;
    std::function<void(Function&)> spoil;
  };
  const Spoiled cases[] = {
      {"size `n` has type i32", [](Function& f) { f.values.set_type(f.sizes[0], i32()); }},
      {"the body gives 1 results, 0 are declared", [](Function& f) { f.results.clear(); }},
      {"result 1 has type [n]i32, but i32 is declared", [](Function& f) { f.results = {i32()}; }},
      {"but [n + 1]i32 is declared", [](Function& f) { f.results = {i32s({Poly(f.sizes[0]) + 1})}; }},
      {"the type of a result mentions `odd`", [](Function& f) { f.results = {i32s({f.values.add(i64(), "odd")})}; }},
      {"the entry's parameters are 2 values, but the function has 1", [](Function& f) { f.entry->param_values = {2}; }},
      {"the entry has 0 parameters, but says for 1", [](Function& f) { f.entry->params.clear(); }},
      {"`xs` is bound more than once", [](Function& f) { f.params.push_back(f.params[0]); }},
  };
  for (const Spoiled& c : cases) {
    CAPTURE(c.expected);
    Function f = *good.functions.front();
    c.spoil(f);
    const std::string text = verify_text({.functions = {std::make_shared<const Function>(f)}});
    CHECK_MESSAGE(text.find(c.expected) != std::string::npos, text);
  }
  good.functions.push_back(good.functions.front());
  CHECK(verify_text(good) == "0:0 `f`: two functions have this name.\n0:0 `f`: two entries have this name.\n");
}

TEST_CASE("a size and its definition are the same size") {
  const std::string text = verify_text(of_row(Stage::soac, [](Builder& b, Value n, Value) {
    Value twice = b.size(Poly(n) * 2, "twice");
    return Operands{bind(b, {i32s({Poly(n) * 2 + 1})}, Replicate{{Poly(twice) + 1}, int32(0)})[0]};
  }));
  CHECK(text.empty());
}

TEST_CASE("a size that an i64 operation gives is that of its operands") {
  struct Operation {
    BinaryOp op;
    Poly (*expected)(Value n);
  };
  const Operation operations[] = {{BinaryOp::mul, [](Value n) { return Poly(n) * Poly(n); }},
                                  {BinaryOp::add, [](Value n) { return Poly(n) * 2; }},
                                  {BinaryOp::sub, [](Value) { return Poly(0); }},
                                  {BinaryOp::min, [](Value n) { return Poly(n); }},
                                  {BinaryOp::max, [](Value n) { return Poly(n); }}};
  for (const Operation& operation : operations)
    for (const std::int64_t less : {0, 2}) {
      CAPTURE(to_text(operation.op));
      CAPTURE(less);
      Program p;
      const Value n = p.size("n");
      p.param("xs", i32s({n}));
      Module module = p.body([&](Builder& b) {
        const Value count = b.size(Poly(b.binary(operation.op, n, n)) - less, "count");
        return Operands{b.let("r", Replicate{{count}, int32(0)})};
      });
      Function function = *module.functions.front();
      function.results = {i32s({operation.expected(n)})};
      module.functions = {std::make_shared<const Function>(function)};
      const std::string text = verify_text(module);
      CHECK_MESSAGE(text.empty() == (less == 0), text);
    }
}

}  // namespace apl::test::broken
