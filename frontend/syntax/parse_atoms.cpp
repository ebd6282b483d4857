// Atoms: what stands as an argument without parentheses, with the projections and indices after it.
#include <utility>

#include "frontend/syntax/parser_impl.h"

namespace apl::frontend {

bool Parser::at_atom() const {
  switch (peek().kind) {
    case TokenKind::identifier:
    case TokenKind::number:
    case TokenKind::character:
    case TokenKind::string:
    case TokenKind::constructor: return true;
    case TokenKind::keyword: return at_keyword("true") || at_keyword("false");
    case TokenKind::punctuation: return at("(") || at("[") || at("{") || at("???");
    default: return false;
  }
}

ExprPtr Parser::atom() {
  ExprPtr result = simple_atom();
  for (;;) {
    if (peek().kind == TokenKind::index) {
      const Location start = result->location;
      take();
      IndexExpr index{std::move(result), index_dims()};
      result = make(since(start), std::move(index));
    } else if (at(".")) {
      result = project(std::move(result));
    } else {
      return result;
    }
  }
}

ExprPtr Parser::project(ExprPtr record) {
  const Location start = record->location;
  take();
  auto* variable = std::get_if<Variable>(&record->node);
  if (accept("(")) {
    if (variable == nullptr) fail(Code::syntax_error, start, "only a module can be opened by '.('");
    LocalOpen open{std::move(variable->name), expression()};
    expect(")");
    return make(since(start), std::move(open));
  }
  Location where;
  std::string field = field_name(where);
  const bool is_name = field[0] < '0' || field[0] > '9';
  if (variable != nullptr && is_name && record->location == variable->name.location) {
    // A member of a module or a field of a variable: the same here.
    Name name = std::move(variable->name);
    name.qualifiers.push_back(std::move(name.text));
    name.text = std::move(field);
    name.location = since(start);
    return make(since(start), Variable{std::move(name)});
  }
  return make(since(start), Project{std::move(record), std::move(field)});
}

ExprPtr Parser::simple_atom() {
  const Token& token = peek();
  const Location where = token.location;
  switch (token.kind) {
    case TokenKind::identifier: {
      Name name{.qualifiers = {}, .text = take().text, .location = where};
      return make(where, Variable{std::move(name)});
    }
    case TokenKind::number: return number(take());
    case TokenKind::character: {
      const std::uint64_t code = take().number.integer;
      return make(where, NumberLiteral{.integer = code});
    }
    case TokenKind::string: {
      std::string text = take().text;
      return make(where, StringLiteral{std::move(text)});
    }
    case TokenKind::constructor: {
      std::string name = take().text;
      return make(where, ConstructorExpr{std::move(name), {}});
    }
    default: break;
  }
  if (at_keyword("true") || at_keyword("false")) {
    const bool value = take().text == "true";
    return make(where, Literal{Scalar::boolean(value)});
  }
  if (at("(")) return parenthesised();
  if (at("{")) return record_literal();
  if (at("[")) return array_literal();
  if (accept("???")) return make(where, Hole{});
  fail_expected("an expression");
}

ExprPtr Parser::number(const Token& token) {
  const NumberToken& number = token.number;
  if (!number.suffix) {
    NumberLiteral literal{.is_float = number.is_float, .integer = number.integer, .real = number.real};
    if (number.overflow && !number.is_float) literal.too_large = token.text;
    return make(token.location, std::move(literal));
  }
  const ScalarType type = *number.suffix;
  if (number.is_float || is_float(type)) {
    const double value = number.is_float ? number.real : static_cast<double>(number.integer);
    return make(token.location, Literal{Scalar::floating(type, value)});
  }
  // With a suffix what does not fit wraps, as in Futhark: `0xFFi8` is -1.
  return make(token.location, Literal{Scalar::from_bits(type, number.integer)});
}

ExprPtr Parser::parenthesised() {
  Nested nested(*this);
  const Location start = peek().location;
  expect("(");
  if (accept(")")) return make(since(start), TupleExpr{});
  if (at(".")) return access_section(start);
  if (at_operator() && (at_section_end() || !peek().is_op("-"))) {
    Section section;
    section.op = take_operator();
    if (!at(")")) section.right = operators(1);
    expect(")");
    return make(since(start), std::move(section));
  }
  ExprPtr first = expression();
  if (at_operator() && at_section_end()) {
    Section section;
    section.op = take_operator();
    section.left = std::move(first);
    expect(")");
    return make(since(start), std::move(section));
  }
  if (accept(")")) {
    first->location = since(start);
    return first;
  }
  TupleExpr tuple;
  tuple.elements.push_back(std::move(first));
  while (accept(",")) {
    if (at(")")) break;
    tuple.elements.push_back(expression());
  }
  if (tuple.elements.size() == 1 && at(")")) fail_expected("an expression");
  expect(")");
  return make(since(start), std::move(tuple));
}

ExprPtr Parser::access_section(const Location& start) {
  AccessSection section;
  // `(.[i])` has a dot before its first bracket.
  if (at(".") && peek(1).is_bracket()) {
    take();
    AccessStep step;
    step.is_field = false;
    step.location = take().location;
    step.dims = index_dims();
    section.steps.push_back(std::move(step));
  }
  if (!at(")"))
    for (AccessStep& step : access_steps(false)) section.steps.push_back(std::move(step));
  expect(")");
  return make(since(start), std::move(section));
}

ExprPtr Parser::record_literal() {
  Nested nested(*this);
  const Location start = peek().location;
  expect("{");
  RecordExpr record;
  while (!at("}")) {
    Field<ExprPtr> field;
    field.name = field_name(field.location);
    if (accept("=")) {
      field.value = expression();
    } else {
      field.value = make(field.location, Variable{{.qualifiers = {}, .text = field.name, .location = field.location}});
    }
    record.fields.push_back(std::move(field));
    if (!accept(",")) break;
  }
  expect("}");
  return make(since(start), std::move(record));
}

ExprPtr Parser::array_literal() {
  Nested nested(*this);
  const Location start = peek().location;
  expect("[");
  ArrayExpr array;
  while (!at("]")) {
    array.elements.push_back(expression());
    if (!accept(",")) break;
  }
  expect("]");
  return make(since(start), std::move(array));
}

IndexDim Parser::index_dim() {
  // Ascription cannot stand here: `:` separates the parts of a slice.
  IndexDim dim;
  const Location start = peek().location;
  if (!at(":")) dim.start = range();
  if (accept(":")) {
    dim.slice = true;
    if (!at(":") && !at(",") && !at("]")) dim.end = range();
    if (accept(":")) dim.stride = range();
  }
  dim.location = since(start);
  return dim;
}

std::vector<IndexDim> Parser::index_dims() {
  Nested nested(*this);
  std::vector<IndexDim> dims;
  while (!at("]")) {
    dims.push_back(index_dim());
    if (!accept(",")) break;
  }
  expect("]");
  return dims;
}

// `[i].f`, `.f[i]`; after `with` the first step may be a bare field: `r with f.g = v`.
std::vector<AccessStep> Parser::access_steps(bool update) {
  std::vector<AccessStep> steps;
  for (;;) {
    AccessStep step;
    step.location = peek().location;
    if (peek().is_bracket() && (steps.empty() || peek().kind == TokenKind::index)) {
      take();
      step.is_field = false;
      step.dims = index_dims();
    } else if (at(".") || (update && steps.empty())) {
      if (at(".")) take();
      step.field = field_name(step.location);
    } else {
      return steps;
    }
    step.location = since(step.location);
    steps.push_back(std::move(step));
  }
}

}  // namespace apl::frontend
