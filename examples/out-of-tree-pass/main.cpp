// Runs a pass that lives outside the apl tree in a pipeline with apl's own passes.
#include <iostream>

#include <apl/ir/builder.h>
#include <apl/ir/print.h>
#include <apl/passes/pipeline.h>

#include "double_to_add.h"

namespace {

using namespace apl;

// entry main(x) = (x * 2) + (x + x)
Module example() {
  Function function;
  function.name = "main";
  function.entry = EntryInfo{
      .name = "main", .params = {{.name = "x", .type = "i32"}}, .param_values = {1}, .results = {{.type = "i32"}}};
  const Value x = function.values.add(Type::scalar(ScalarType::i32), "x");
  function.params = {x};
  function.results = {Type::scalar(ScalarType::i32)};
  Builder builder(function.values);
  const Value product = builder.binary(BinaryOp::mul, x, Scalar::integer(ScalarType::i32, 2), "product");
  const Value sum = builder.binary(BinaryOp::add, x, x, "sum");
  const Value result = builder.binary(BinaryOp::add, product, sum, "result");
  function.body = builder.finish({result});

  Module module;
  module.file = "example";
  module.functions.push_back(std::make_shared<const Function>(std::move(function)));
  return module;
}

std::size_t statements(const Module& module) { return module.functions.front()->body->stms.size(); }

int fail(const Diagnostic& diagnostic) {
  std::cerr << render(diagnostic, "example", "");
  return 1;
}

}  // namespace

int main() {
  PassRegistry registry = PassRegistry::builtin();
  registry.add(double_to_add_pass());

  // Once the product is a sum, cse sees that the two operands are the same.
  const Result<Pipeline> pipeline = parse_pipeline("simplify,double-to-add,cse", registry);
  if (!pipeline) return fail(pipeline.error());

  Module module = example();
  const std::size_t before = statements(module);
  std::cout << print(module);

  PipelineOptions options;
  options.remarks = [](const Remark& remark) { std::cout << render(remark, "example") << '\n'; };
  if (const Status status = run_pipeline(module, *pipeline, options); !status) return fail(status.error());
  std::cout << print(module);

  if (statements(module) + 1 != before) {
    std::cerr << "expected the pipeline to remove one statement of " << before << '\n';
    return 1;
  }
}
