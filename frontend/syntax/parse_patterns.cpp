// Patterns and parameters. A parameter with a type needs parentheses, a let or loop pattern does not.
#include <utility>

#include "frontend/syntax/parser_impl.h"

namespace apl::frontend {

PatternPtr Parser::pattern() {
  Nested nested(*this);
  const Location start = peek().location;
  attributes();
  PatternPtr inner = peek().kind == TokenKind::constructor ? pattern_constructor(true) : inner_pattern();
  if (!accept(":")) return inner;
  TypeExprPtr annotation = type();
  return make_pattern(since(start), PatternTyped{std::move(inner), std::move(annotation)});
}

PatternPtr Parser::inner_pattern() {
  const Location start = peek().location;
  if (at_name()) {
    std::string name = take().text;
    return make_pattern(start, PatternName{std::move(name)});
  }
  if (accept("_")) return make_pattern(start, PatternWildcard{});
  if (at("(")) return pattern_in_parens();
  if (at("{")) return pattern_record();
  if (peek().kind == TokenKind::constructor) return pattern_constructor(false);
  if (at_literal()) return pattern_literal();
  fail_expected("a pattern");
}

bool Parser::at_literal() const {
  const TokenKind kind = peek().kind;
  return kind == TokenKind::number || kind == TokenKind::character || at_keyword("true") || at_keyword("false") ||
         (peek().is_op("-") && peek(1).kind == TokenKind::number);
}

bool Parser::at_inner_pattern() const {
  return at_name() || at("_") || at("(") || at("{") || at_literal() || peek().kind == TokenKind::constructor;
}

PatternPtr Parser::pattern_literal() {
  const Location start = peek().location;
  const bool negative = peek().is_op("-");
  if (negative) take();
  ExprPtr value = simple_atom();
  if (negative) value = make(since(start), Negate{std::move(value)});
  return make_pattern(since(start), PatternLiteral{std::move(value)});
}

PatternPtr Parser::pattern_constructor(bool payload) {
  const Location start = peek().location;
  PatternConstructor result{.name = take().text, .payload = {}};
  while (payload && at_inner_pattern()) result.payload.push_back(inner_pattern());
  return make_pattern(since(start), std::move(result));
}

PatternPtr Parser::pattern_in_parens() {
  const Location start = peek().location;
  expect("(");
  if (at_operator() && at(")", 1)) {
    Name op = take_operator();
    expect(")");
    return make_pattern(since(start), PatternName{op.text});
  }
  PatternTuple tuple;
  bool comma = false;
  while (!at(")")) {
    tuple.elements.push_back(pattern());
    if (!accept(",")) break;
    comma = true;
  }
  if (tuple.elements.size() == 1 && comma) fail_expected("a pattern");
  expect(")");
  if (tuple.elements.size() == 1) return std::move(tuple.elements.front());
  return make_pattern(since(start), std::move(tuple));
}

PatternPtr Parser::pattern_record() {
  const Location start = peek().location;
  expect("{");
  PatternRecord record;
  while (!at("}")) {
    Field<PatternPtr> field;
    const Location field_start = peek().location;
    field.name = field_name(field.location);
    if (accept("=")) {
      field.value = pattern();
    } else {
      field.value = make_pattern(field_start, PatternName{field.name});
      if (accept(":")) {
        TypeExprPtr annotation = type();
        field.value = make_pattern(since(field_start), PatternTyped{std::move(field.value), std::move(annotation)});
      }
    }
    record.fields.push_back(std::move(field));
    if (!accept(",")) break;
  }
  expect("}");
  return make_pattern(since(start), std::move(record));
}

bool Parser::at_param() const { return at_inner_pattern() && !peek().is_op("-"); }

std::vector<PatternPtr> Parser::params() {
  std::vector<PatternPtr> result;
  while (at_param()) result.push_back(inner_pattern());
  return result;
}

}  // namespace apl::frontend
