// Declarations, attributes, and recovery: after an error the parser goes on at the next declaration.
#include <array>
#include <utility>

#include "frontend/syntax/parser_impl.h"

namespace apl::frontend {

namespace {

// Keywords that can only begin a declaration. `let` can, at the start of a line.
bool begins_declaration(const Token& token) {
  for (std::string_view text : {"def", "entry", "type", "module", "open", "import", "local", "include"})
    if (token.is_keyword(text)) return true;
  return token.location.column == 1 && (token.is_keyword("let") || token.is_punctuation("#["));
}

// What the prelude defines in the language itself (frontend/modules/prelude_source.cpp).
bool is_of_prelude_source(std::string_view name) {
  if (name.starts_with("flatmap") || name == "intrinsics") return true;
  const std::string_view stem = name.substr(0, 3);
  return name.size() <= 4 && (stem == "jvp" || stem == "vjp" || stem == "jmp" || stem == "mjp");
}

}  // namespace

Program parse_program(std::string_view text, const DiagnosticSink& sink) {
  Program program;
  program.declarations = parse_file(text, 0, program, sink);
  return program;
}

std::vector<Declaration> parse_file(std::string_view text, std::uint32_t file, Program& program,
                                    const DiagnosticSink& sink) {
  std::vector<Token> tokens = lex(text);
  for (Token& token : tokens) {
    token.location = in_file(token.location, file);
    if (token.kind == TokenKind::identifier && is_of_prelude_source(token.text)) program.uses_prelude_source = true;
  }
  Parser parser(std::move(tokens), sink, program.expr_count, program.pattern_count);
  std::vector<Declaration> declarations = parser.declarations();
  program.expr_count = parser.expr_count();
  program.pattern_count = parser.pattern_count();
  return declarations;
}

std::vector<Declaration> Parser::declarations() {
  std::vector<Declaration> result;
  while (peek().kind != TokenKind::end) {
    const std::size_t start = position_;
    nesting_ = 0;
    try {
      result.push_back(declaration());
    } catch (const ParseAbort&) {
      skip_to_declaration(start);
    }
  }
  return result;
}

void Parser::skip_to_declaration(std::size_t failed_at) {
  // The token that began the failed declaration must not begin it again.
  if (position_ == failed_at) take();
  int braces = 0;
  while (peek().kind != TokenKind::end) {
    if (braces == 0 && begins_declaration(peek())) return;
    if (at("{")) ++braces;
    if (at("}") && braces > 0) --braces;
    take();
  }
}

Declaration Parser::declaration() {
  Nested nested(*this);
  const Location start = peek().location;
  if (accept_keyword("local")) {
    Declaration inner = declaration();
    inner.local = true;
    inner.location = since(start);
    return inner;
  }
  Declaration result;
  result.attributes = attributes();
  if (at_keyword("def") || at_keyword("entry") || at_keyword("let")) {
    result.node = definition();
  } else if (at_keyword("type")) {
    result.node = type_definition();
  } else if (at_keyword("module") && at_keyword("type", 1)) {
    result.node = module_type_definition();
  } else if (at_keyword("module")) {
    result.node = module_definition();
  } else if (accept_keyword("open")) {
    result.node = OpenDeclaration{module_expression()};
  } else if (at_keyword("import")) {
    // Opened, but not for those who import this file.
    ModuleImport import = module_import();
    result.node = OpenDeclaration{make_module(since(start), std::move(import))};
    result.local = true;
  } else {
    fail_expected("a declaration");
  }
  result.location = since(start);
  return result;
}

bool Parser::at_infix_definition() const {
  // `def x + y`, `def (x: t) + y`: an operator follows the first parameter.
  std::size_t ahead = 0;
  if (at("(") && !(at_operator(1) && at(")", 2)) && !at("`", 1)) {
    int depth = 0;
    do {
      if (at("(", ahead)) ++depth;
      if (at(")", ahead)) --depth;
      if (peek(ahead).kind == TokenKind::end) return false;
      ++ahead;
    } while (depth > 0);
  } else if (at_name() || at("_")) {
    ahead = 1;
  } else {
    return false;
  }
  return at_operator(ahead) || at("!", ahead);
}

std::string Parser::binding_name(Location& location) {
  location = peek().location;
  if (at_name()) return take().text;
  if (at("(") && at_operator(1)) {
    take();
    Name op = take_operator();
    if (!op.qualifiers.empty())
      fail(Code::syntax_error, op.location, "an operator that is defined cannot be qualified");
    expect(")");
    location = since(location);
    return op.text;
  }
  fail_expected("a name");
}

void Parser::equals_before_body() {
  if (accept("=")) return;
  // Where a body follows all the same, the rest of the declaration is still worth checking.
  const bool body_follows = at_keyword("let") || at_keyword("if") || at_keyword("loop") || at("\\");
  if (!body_follows) fail_expected("'='");
  report(Code::syntax_error, peek().location, expected("'='"));
}

Definition Parser::definition() {
  Definition result;
  result.entry = peek().is_keyword("entry");
  take();
  if (at("(") && !at_operator(1) && !at_infix_definition()) {
    fail(Code::syntax_error, peek().location, "Cannot bind patterns at top level; bind a single name instead");
  }
  if (at_infix_definition()) {
    result.params.push_back(inner_pattern());
    if (at("!"))
      fail(Code::syntax_error, peek().location, "'!' is a prefix operator and cannot be used as infix operator");
    Name op = take_operator();
    result.name = op.text;
    result.name_location = op.location;
    result.params.push_back(inner_pattern());
  } else {
    result.name = binding_name(result.name_location);
    result.type_params = type_params();
    result.params = params();
  }
  if (accept(":")) result.result = type();
  equals_before_body();
  result.body = expression();
  return result;
}

Liftedness Parser::liftedness() {
  if (accept("~")) return Liftedness::size_lifted;
  if (!peek().is_op("^")) return Liftedness::unlifted;
  take();
  return Liftedness::lifted;
}

TypeDefinition Parser::type_definition(bool may_be_abstract) {
  take();
  TypeDefinition result;
  result.liftedness = liftedness();
  const Token name = expect_name("the name of a type");
  result.name = name.text;
  result.name_location = name.location;
  result.params = type_params();
  if (may_be_abstract && !at("=")) return result;
  expect("=");
  result.type = type();
  return result;
}

std::vector<SyntaxAttribute> Parser::attributes() {
  std::vector<SyntaxAttribute> result;
  while (accept("#[")) {
    result.push_back(attribute());
    expect("]");
  }
  return result;
}

SyntaxAttribute Parser::attribute() {
  Nested nested(*this);
  SyntaxAttribute result;
  result.location = peek().location;
  if (peek().kind == TokenKind::number) {
    result.name = take().text;
    return result;
  }
  result.name = expect_name("the name of an attribute").text;
  if (!accept("(")) return result;
  while (!at(")")) {
    const SyntaxAttribute argument = attribute();
    std::string text = argument.name;
    if (!argument.arguments.empty()) {
      text += "(";
      for (std::size_t k = 0; k < argument.arguments.size(); ++k) text += (k ? ", " : "") + argument.arguments[k];
      text += ")";
    }
    result.arguments.push_back(std::move(text));
    if (!accept(",")) break;
  }
  expect(")");
  result.location = since(result.location);
  return result;
}

}  // namespace apl::frontend
