// Functions, modules, and the entry point of ir/parse.h.
#include "ir/parse.h"

#include <algorithm>
#include <limits>

#include "ir/parse/parser.h"

namespace apl {

Stage Parser::stage() {
  expect("stage", "and the stage: the first line of a module");
  for (Stage stage : {Stage::soac, Stage::kernel, Stage::memory})
    if (accept(to_text(stage))) return stage;
  fail_expected("a stage: `soac`, `kernel` or `memory`");
}

SoaField Parser::soa_field() {
  const auto field = soa_field_from_text(peek().text);
  if (!field) fail_expected("an array of a sparse parameter, as `shape`, `values`, `row_start` or `column`");
  take();
  return *field;
}

// The position of the parameter that a sparse result names.
std::size_t Parser::sparse_param(const EntryInfo& entry) {
  const auto is_named = [&](const EntryInfo::Param& param) {
    return param.name == (is(Token::Kind::string) ? peek().value : peek().text) && !param.fields.empty();
  };
  const auto found = std::ranges::find_if(entry.params, is_named);
  if (found == entry.params.end()) fail_expected("a sparse parameter of the entry");
  take();
  return static_cast<std::size_t>(found - entry.params.begin());
}

EntryInfo Parser::entry() {
  EntryInfo result;
  result.is_constant = accept("constant");
  if (!result.is_constant) expect("entry");
  const auto string = [&] {
    if (!is(Token::Kind::string)) fail_expected("a type of the source as a string");
    return take().value;
  };
  result.name = name_or_string("the name of the entry");
  list("(", ")", [&] {
    EntryInfo::Param param;
    param.name = name_or_string("a parameter");
    expect(":");
    if (accept("sparse")) list("(", ")", [&] { param.fields.push_back(soa_field()); });
    param.type = string();
    const bool counted = accept("as");
    result.param_values.push_back(counted ? natural(std::numeric_limits<int>::max(), "how many values it became")
                                          : std::max<std::size_t>(param.fields.size(), 1));
    result.params.push_back(std::move(param));
  });
  expect(":");
  list("{", "}", [&] {
    std::optional<std::size_t> pattern;
    if (accept("sparse")) list("(", ")", [&] { pattern = sparse_param(result); });
    result.results.push_back({string(), pattern});
  });
  if (accept("constants"))
    list("(", ")", [&] {
      std::string function = name_or_string("a constant");
      const std::size_t values =
          accept("as") ? natural(std::numeric_limits<int>::max(), "how many values it has") : std::size_t{1};
      result.constants.push_back({std::move(function), values});
    });
  return result;
}

FunctionPtr Parser::function() {
  const Scope scope(*this);
  values_ = ValueTable();
  Function result;
  result.attributes = attributes();
  if (is("entry") || is("constant")) result.entry = entry();
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
