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

}  // namespace

Program parse_program(std::string_view text, const DiagnosticSink& sink) { return Parser(lex(text), sink).program(); }

Program Parser::program() {
  Program program;
  while (peek().kind != TokenKind::end) {
    const std::size_t start = position_;
    nesting_ = 0;
    try {
      declaration(program);
    } catch (const ParseAbort&) {
      skip_to_declaration(start);
    }
  }
  program.expr_count = next_expr_;
  program.pattern_count = next_pattern_;
  return program;
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

void Parser::declaration(Program& program) {
  Declaration result;
  const Location start = peek().location;
  result.attributes = attributes();
  if (at_keyword("def") || at_keyword("entry") || at_keyword("let")) {
    result.node = definition();
  } else if (at_keyword("type")) {
    result.node = type_definition();
  } else if (at_keyword("module") || at_keyword("open") || at_keyword("local") || at_keyword("include")) {
    fail_modules();
  } else if (at_keyword("import")) {
    fail_unsupported(peek().location, "imports");
  } else {
    fail_expected("a declaration");
  }
  result.location = since(start);
  program.declarations.push_back(std::move(result));
}

// `module type t = ...`, `open import "x"`: the second word begins no declaration of its own.
void Parser::fail_modules() {
  report(Code::unsupported_construct, peek().location, "modules cannot be compiled yet");
  const bool module = take().text == "module";
  if (at_keyword(module ? "type" : "import")) take();
  throw ParseAbort{};
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

TypeDefinition Parser::type_definition() {
  take();
  TypeDefinition result;
  if (at("~") || peek().is_op("^")) fail_unsupported(peek().location, "lifted types");
  const Token name = expect_name("the name of a type");
  result.name = name.text;
  result.name_location = name.location;
  result.params = type_params();
  expect("=");
  result.type = type();
  return result;
}

std::vector<Attribute> Parser::attributes() {
  std::vector<Attribute> result;
  while (accept("#[")) {
    result.push_back(attribute());
    expect("]");
  }
  return result;
}

Attribute Parser::attribute() {
  Nested nested(*this);
  if (peek().kind == TokenKind::number) return {.name = take().text, .arguments = {}};
  Attribute result;
  result.name = expect_name("the name of an attribute").text;
  if (!accept("(")) return result;
  while (!at(")")) {
    Attribute argument = attribute();
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
  return result;
}

}  // namespace apl::frontend
