#include "einsum.h"

#include <map>

#include <apl/ir/builder.h>

namespace {

using namespace apl;

Diagnostic wrong(const std::string& message) { return make_error(Code::command_bad_argument, {}, message); }

std::string shape_text(const std::string& indices) {
  std::string text;
  for (const char c : indices) text += std::string("[") + c + "]";
  return text + "f32";
}

}  // namespace

Result<Module> einsum(const std::string& text) {
  const std::size_t arrow = text.find("->");
  if (arrow == std::string::npos) return wrong("an einsum has the form ij,jk->ik, not '" + text + "'");
  std::vector<std::string> operands{""};
  for (const char c : text.substr(0, arrow)) {
    if (c == ',') {
      operands.emplace_back();
    } else if (c >= 'a' && c <= 'z') {
      operands.back() += c;
    } else {
      return wrong(std::string("an index is a small letter, not '") + c + "'");
    }
  }
  const std::string result = text.substr(arrow + 2);

  Function function;
  function.name = "einsum";
  EntryInfo entry{.name = "einsum", .params = {}, .param_values = {}, .results = {{.type = shape_text(result)}}};
  std::map<char, Value> sizes;
  std::string summed;
  for (const std::string& indices : operands)
    for (const char c : indices) {
      if (!sizes.emplace(c, Value{}).second) continue;
      sizes[c] = function.values.add(Type::scalar(ScalarType::i64), std::string(1, c));
      function.sizes.push_back(sizes[c]);
      if (result.find(c) == std::string::npos) summed += c;
    }
  for (const char c : result)
    if (sizes.count(c) == 0) return wrong(std::string("the result has an index '") + c + "' that no operand has");
  for (std::size_t k = 0; k < operands.size(); ++k) {
    std::vector<Poly> shape;
    for (const char c : operands[k]) shape.emplace_back(sizes[c]);
    const std::string name(1, static_cast<char>('A' + k));
    function.params.push_back(function.values.add(Type::array(ScalarType::f32, shape), name));
    entry.params.push_back({name, shape_text(operands[k])});
    entry.param_values.push_back(1);
  }

  // For each index of the result, the sum over the others of the product of elements.
  Builder builder(function.values);
  const auto extents = [&](const std::string& indices) {
    std::vector<Poly> all;
    for (const char c : indices) all.emplace_back(sizes[c]);
    return all;
  };
  const auto element = [&](Builder& outer, const std::map<char, Value>& outside) {
    const auto product = [&](Builder& inner, BoundValues indices) {
      std::map<char, Value> at = outside;
      for (std::size_t k = 0; k < summed.size(); ++k) at[summed[k]] = indices[k];
      Operand all = Scalar::floating(ScalarType::f32, 1);
      for (std::size_t k = 0; k < operands.size(); ++k) {
        std::vector<Poly> place;
        for (const char c : operands[k]) place.emplace_back(at.at(c));
        const Value x = place.empty() ? function.params[k] : inner.index(function.params[k], place);
        all = k == 0 ? Operand(x) : Operand(inner.binary(BinaryOp::mul, all, x, "p"));
      }
      return std::vector<Operand>{all};
    };
    if (summed.empty()) return product(outer, {})[0];
    const ReduceOp sum = outer.reduce_op(BinaryOp::add, Scalar::zero(ScalarType::f32));
    return Operand(outer.screma({"sum"}, extents(summed), {}, product, {sum})[0]);
  };
  Operand made;
  if (result.empty()) {
    made = element(builder, {});
  } else {
    made = builder.tabulate("result", extents(result), [&](Builder& inner, BoundValues indices) {
      std::map<char, Value> at;
      for (std::size_t k = 0; k < result.size(); ++k) at[result[k]] = indices[k];
      return element(inner, at);
    });
  }
  function.results = {function.values.type(made)};
  function.entry = entry;
  function.body = builder.finish({made});
  Module module;
  module.file = text;
  module.functions.push_back(std::make_shared<const Function>(std::move(function)));
  return module;
}
