// Modules, module types and what they specify.
#include <utility>

#include "frontend/syntax/parser_impl.h"

namespace apl::frontend {

Name Parser::qualified_name(std::string_view what) {
  const Location start = peek().location;
  Name name;
  name.text = expect_name(what).text;
  while (at(".") && at_name(1)) {
    take();
    name.qualifiers.push_back(std::move(name.text));
    name.text = take().text;
  }
  name.location = since(start);
  return name;
}

ModuleParam Parser::module_param() {
  expect("(");
  ModuleParam param;
  const Token name = expect_name("the name of a module");
  param.name = name.text;
  param.location = name.location;
  expect(":");
  param.type = module_type();
  expect(")");
  return param;
}

// `module m (p: t) (q: u) : result = body` is a function of modules.
ModuleDefinition Parser::module_definition() {
  const Location start = take().location;
  ModuleDefinition result;
  const Token name = expect_name("the name of a module");
  result.name = name.text;
  result.name_location = name.location;
  std::vector<ModuleParam> params;
  while (at("(")) params.push_back(module_param());
  ModuleTypePtr ascription;
  if (accept(":")) ascription = module_type();
  expect("=");
  result.body = module_expression();
  for (; !params.empty(); params.pop_back()) {
    ModuleLambda lambda{std::move(params.back()), std::exchange(ascription, nullptr), std::move(result.body)};
    result.body = make_module(since(start), std::move(lambda));
  }
  if (ascription) result.body = make_module(since(start), ModuleAscribe{std::move(result.body), std::move(ascription)});
  return result;
}

ModuleTypeDefinition Parser::module_type_definition() {
  take();
  take();
  const Token name = expect_name("the name of a module type");
  expect("=");
  return {.name = name.text, .name_location = name.location, .type = module_type()};
}

ModuleImport Parser::module_import() {
  expect_keyword("import");
  if (peek().kind != TokenKind::string) fail_expected("the path of a file in quotes");
  return {.path = take().text, .file = std::nullopt};
}

ModuleExprPtr Parser::module_expression() {
  Nested nested(*this);
  const Location start = peek().location;
  if (accept("\\")) {
    ModuleLambda lambda;
    lambda.param = module_param();
    if (accept(":")) lambda.result = module_type_atom();
    expect("->");
    lambda.body = module_expression();
    return make_module(since(start), std::move(lambda));
  }
  ModuleExprPtr result;
  if (at_keyword("import")) {
    ModuleImport import = module_import();
    result = make_module(since(start), std::move(import));
  } else {
    result = module_application();
  }
  while (accept(":")) {
    ModuleAscribe ascribe{std::move(result), module_type()};
    result = make_module(since(start), std::move(ascribe));
  }
  return result;
}

bool Parser::at_module_atom() const { return at_name() || at("(") || at("{"); }

ModuleExprPtr Parser::module_application() {
  const Location start = peek().location;
  ModuleExprPtr result = module_atom();
  while (at_module_atom()) {
    ModuleApply apply{std::move(result), module_atom()};
    result = make_module(since(start), std::move(apply));
  }
  return result;
}

ModuleExprPtr Parser::module_atom() {
  const Location start = peek().location;
  if (accept("(")) {
    ModuleExprPtr inner = module_expression();
    expect(")");
    return inner;
  }
  if (at_name()) return make_module(start, qualified_name("a module"));
  if (!accept("{")) fail_expected("a module");
  ModuleBody body;
  while (!at("}")) body.declarations.push_back(declaration());
  expect("}");
  return make_module(since(start), std::move(body));
}

// `with` binds tighter than `->`.
ModuleTypePtr Parser::module_type() {
  Nested nested(*this);
  const Location start = peek().location;
  ModuleTypeArrow arrow;
  if (at("(") && at_name(1) && at(":", 2)) {
    ModuleParam param = module_param();
    arrow.param = std::move(param.name);
    arrow.from = std::move(param.type);
    expect("->");
  } else {
    ModuleTypePtr base = module_type_atom();
    while (accept_keyword("with")) {
      ModuleTypeWith with{.base = std::move(base), .type = qualified_name("a type"), .params = type_params(), .to = {}};
      expect("=");
      with.to = type();
      base = make_module_type(since(start), std::move(with));
    }
    if (!accept("->")) return base;
    arrow.from = std::move(base);
  }
  arrow.to = module_type();
  return make_module_type(since(start), std::move(arrow));
}

ModuleTypePtr Parser::module_type_atom() {
  const Location start = peek().location;
  if (accept("(")) {
    ModuleTypePtr inner = module_type();
    expect(")");
    return inner;
  }
  if (at("{")) {
    SpecBody body = specs();
    return make_module_type(since(start), std::move(body));
  }
  return make_module_type(start, qualified_name("a module type"));
}

SpecBody Parser::specs() {
  expect("{");
  SpecBody body;
  while (!at("}")) body.specs.push_back(spec());
  expect("}");
  return body;
}

Spec Parser::spec() {
  attributes();
  Spec result;
  const Location start = peek().location;
  if (accept_keyword("val")) {
    ValueSpec value;
    if (at_operator()) {
      const Name op = take_operator();
      value.name = op.text;
      value.name_location = op.location;
    } else {
      value.name = binding_name(value.name_location);
    }
    value.type_params = type_params();
    expect(":");
    value.type = type();
    result.node = std::move(value);
  } else if (at_keyword("type")) {
    result.node = type_definition(true);
  } else if (accept_keyword("module")) {
    ModuleSpec module;
    module.name = expect_name("the name of a module").text;
    expect(":");
    module.type = module_type();
    result.node = std::move(module);
  } else if (accept_keyword("include")) {
    result.node = IncludeSpec{module_type()};
  } else {
    fail_expected("'val', 'type', 'module' or 'include'");
  }
  result.location = since(start);
  return result;
}

}  // namespace apl::frontend
