// Small functions for tests of the interpreter and the verifier, built by hand.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/builder.h"
#include "ir/interpret.h"
#include "ir/module.h"

namespace apl::test {

// One entry `f`: first its sizes and parameters, then its body.
class Program {
 public:
  explicit Program(Stage s = Stage::soac) : stage(s) {
    function.name = "f";
    function.entry = EntryInfo{.name = "f"};
  }

  Value size(const std::string& name) {
    function.sizes.push_back(function.values.add(Type::scalar(ScalarType::i64), name));
    return function.sizes.back();
  }
  Value param(const std::string& name, Type type) {
    function.params.push_back(function.values.add(std::move(type), name));
    function.entry->params.push_back({name, "t"});
    function.entry->param_values.push_back(1);
    return function.params.back();
  }
  // `fill` gives the results; their declared types are those of what it gives, without memory.
  Module body(const std::function<std::vector<Operand>(Builder&)>& fill) {
    Builder builder(function.values);
    builder.set_location({.line = 1, .column = 1, .end_line = 1, .end_column = 1});
    std::vector<Operand> results = fill(builder);
    for (const Operand& result : results) function.results.push_back(function.values.type(result).row(0));
    function.body = builder.finish(results);
    return {.stage = stage, .functions = {std::make_shared<const Function>(function)}};
  }

  Function function;
  Stage stage;
};

inline Type i32() { return Type::scalar(ScalarType::i32); }
inline Type i64() { return Type::scalar(ScalarType::i64); }
inline Type i32s(std::vector<Poly> shape) { return Type::array(ScalarType::i32, std::move(shape)); }
inline Operand int32(std::int64_t x) { return Scalar::integer(ScalarType::i32, x); }

inline HostValue ints(std::vector<std::int64_t> shape, const std::vector<std::int32_t>& elements) {
  return HostValue::array<std::int32_t>(ScalarType::i32, std::move(shape), elements);
}
inline HostValue int_value(std::int64_t x) { return HostValue::scalar(Scalar::integer(ScalarType::i32, x)); }
inline HostValue long_value(std::int64_t x) { return HostValue::scalar(Scalar::integer(ScalarType::i64, x)); }

// Element i is (7*i + 3*(i/5)) mod 11 - 5: no symmetry that a mistake could hide in.
inline HostValue pattern(std::vector<std::int64_t> shape) {
  HostValue value = HostValue::zeros(ScalarType::i32, std::move(shape));
  for (std::int64_t i = 0; i < value.element_count(); ++i)
    value.set(i, Scalar::integer(ScalarType::i32, (7 * i + 3 * (i / 5)) % 11 - 5));
  return value;
}

inline Lambda binary_lambda(Builder& b, BinaryOp op, const Type& type) {
  return b.lambda({type, type}, {"x", "y"}, [&](Builder& inner, const std::vector<Value>& p) {
    return std::vector<Operand>{inner.binary(op, p[0], p[1])};
  });
}

inline ReduceOp sum(Builder& b) { return {binary_lambda(b, BinaryOp::add, i32()), {int32(0)}, true}; }

// Results that are the texts of the values, or "CODE line:column MESSAGE".
inline std::string run_text(const Module& module, const std::vector<HostValue>& arguments,
                            const InterpretOptions& options = {}) {
  auto results = interpret(module, "f", arguments, options);
  std::string text;
  if (!results) {
    const Diagnostic& e = results.error();
    return std::string(code_text(e.code)) + " " + std::to_string(e.location.line) + ":" +
           std::to_string(e.location.column) + " " + e.message;
  }
  for (const HostValue& value : *results) text += (text.empty() ? "" : " ") + value.to_text();
  return text;
}

inline InterpretOptions seeded(std::uint64_t seed, std::map<std::string, std::int64_t> parameters = {}) {
  return {.seed = seed, .parameters = std::move(parameters)};
}

}  // namespace apl::test
