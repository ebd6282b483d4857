// Patterns and parameters. A parameter with a type needs parentheses, a let or loop pattern does not.
#include <utility>

#include "frontend/syntax/parser_impl.h"

namespace apl::frontend {

PatternPtr Parser::pattern() {
  Nested nested(*this);
  const Location start = peek().location;
  attributes();
  PatternPtr inner = inner_pattern();
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
  const TokenKind kind = peek().kind;
  if (kind == TokenKind::constructor) fail_unsupported(start, "sum types");
  // A literal fits some values only, which no pattern but that of a `match` may.
  const bool negative = peek().is_op("-") && peek(1).kind == TokenKind::number;
  if (negative) take();
  if (negative || kind == TokenKind::number || kind == TokenKind::character || at_keyword("true") ||
      at_keyword("false")) {
    take();
    report(Code::type_mismatch, since(start),
           "Refutable pattern not allowed here: a literal does not match every value");
    return make_pattern(since(start), PatternWildcard{});
  }
  fail_expected("a pattern");
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

bool Parser::at_param() const {
  const TokenKind kind = peek().kind;
  return at_name() || at("_") || at("(") || at("{") || kind == TokenKind::constructor || kind == TokenKind::number;
}

std::vector<PatternPtr> Parser::params() {
  std::vector<PatternPtr> result;
  while (at_param()) result.push_back(inner_pattern());
  return result;
}

}  // namespace apl::frontend
