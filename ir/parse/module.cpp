// Functions, modules, and the entry point of ir/parse.h.
#include "ir/parse.h"

#include <limits>

#include "ir/parse/parser.h"

namespace apl {

Stage Parser::stage() {
  expect("stage", "and the stage: the first line of a module");
  for (Stage stage : {Stage::soac, Stage::kernel, Stage::memory})
    if (accept(to_text(stage))) return stage;
  fail_expected("a stage: `soac`, `kernel` or `memory`");
}

EntryInfo Parser::entry() {
  expect("entry");
  EntryInfo result;
  const auto string = [&] {
    if (!is(Token::Kind::string)) fail_expected("a type of the source as a string");
    return take().value;
  };
  result.name = name_or_string("the name of the entry");
  list("(", ")", [&] {
    EntryInfo::Param param;
    param.name = name_or_string("a parameter");
    expect(":");
    param.type = string();
    result.params.push_back(std::move(param));
    const bool counted = accept("as");
    result.param_values.push_back(counted ? natural(std::numeric_limits<int>::max(), "how many values it became") : 1);
  });
  expect(":");
  list("{", "}", [&] { result.results.push_back(string()); });
  return result;
}

FunctionPtr Parser::function() {
  const Scope scope(*this);
  values_ = ValueTable();
  Function result;
  result.attributes = attributes();
  if (is("entry")) result.entry = entry();
  expect("fun", result.entry ? "after the line of the entry" : "or `entry`");
  result.name = name_or_string("the name of the function");
  list("[", "]", [&] { result.sizes.push_back(bind(take(), Type::scalar(ScalarType::i64))); });
  in_params_ = true;
  result.params = binders("(", ")");
  in_params_ = false;
  expect(":");
  if (accept("exists"))
    list("[", "]", [&] { result.result_sizes.push_back(bind(take(), Type::scalar(ScalarType::i64))); });
  list("{", "}", [&] { result.results.push_back(type()); });
  expect("=");
  result.body = block();
  result.location = location();
  result.values = std::move(values_);
  return std::make_shared<const Function>(std::move(result));
}

Module Parser::parse_all() {
  Module module;
  module.stage = stage();
  if (accept("of")) {
    if (!is(Token::Kind::string)) fail_expected("the name of the source file as a string");
    module.file = take().value;
  }
  while (!is(Token::Kind::end)) module.functions.push_back(function());
  module.calls = std::move(calls_).take();
  return module;
}

Result<Module> parse_module(std::string_view text, std::string file) {
  try {
    return Parser(text).parse_all();
  } catch (const SyntaxError& error) {
    Diagnostic diagnostic = make_error(Code::ir_syntax, error.location, error.message);
    diagnostic.file = std::move(file);
    return diagnostic;
  }
}

}  // namespace apl
