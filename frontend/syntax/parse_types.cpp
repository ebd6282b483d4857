// Types: `*[n][m](f32, i32)`, `(n: i64) -> [n]t`.
#include <utility>

#include "frontend/syntax/parser_impl.h"

namespace apl::frontend {

TypeSignature parse_signature(std::string_view text, std::uint32_t first_expr) {
  // The prelude's own text: an error in it is ours, and a test parses it all.
  try {
    const DiagnosticSink silent;
    return Parser(lex(text), silent, first_expr).signature();
  } catch (const ParseAbort&) {
    return {};
  }
}

TypeSignature Parser::signature() {
  TypeSignature result;
  result.params = type_params();
  if (!result.params.empty()) expect(".");
  result.type = type();
  if (peek().kind != TokenKind::end) fail_expected("the end");
  result.expr_count = next_expr_;
  return result;
}

TypeExprPtr Parser::type() {
  Nested nested(*this);
  const Location start = peek().location;
  if (at("?")) fail_unsupported(start, "existential sizes in types");
  TypeArrow arrow;
  if (at("(") && at_name(1) && at(":", 2)) {
    take();
    const Token name = take();
    arrow.param = name.text;
    arrow.param_location = name.location;
    take();
    arrow.from = type();
    expect(")");
    expect("->");
  } else {
    arrow.from = type_term();
    if (!accept("->")) return std::move(arrow.from);
  }
  arrow.to = type();
  return make_type(since(start), std::move(arrow));
}

TypeExprPtr Parser::type_term() {
  Nested nested(*this);
  const Location start = peek().location;
  if (!peek().is_op("*")) return type_application();
  take();
  TypeExprPtr inner = type_term();
  return make_type(since(start), TypeUnique{std::move(inner)});
}

bool Parser::at_type_atom() const { return at("(") || at("{") || at_name() || peek().is_bracket(); }

TypeExprPtr Parser::type_application() {
  const Location start = peek().location;
  TypeExprPtr head = type_atom();
  const auto* name = std::get_if<TypeName>(&head->node);
  if (name == nullptr || !at_type_atom()) return head;
  // `t [n]`, `t a`: a parametric type.
  std::string text = "the parametric type '" + name->name.to_string() + "'";
  while (at_type_atom()) {
    if (!peek().is_bracket()) {
      type_atom();
      continue;
    }
    take();
    if (!at("]")) expression();
    expect("]");
  }
  return make_type(since(start), TypeUnsupported{std::move(text)});
}

TypeExprPtr Parser::type_atom() {
  Nested nested(*this);
  const Location start = peek().location;
  if (at("(")) return type_in_parens();
  if (at("{")) return type_record();
  if (peek().is_bracket()) {
    take();
    TypeArray array;
    if (!at("]")) array.size = expression();
    expect("]");
    array.element = type_term();
    return make_type(since(start), std::move(array));
  }
  if (peek().kind == TokenKind::constructor) fail_unsupported(start, "sum types");
  Name name;
  name.text = expect_name("a type").text;
  while (at(".") && at_name(1)) {
    take();
    name.qualifiers.push_back(std::move(name.text));
    name.text = take().text;
  }
  name.location = since(start);
  return make_type(since(start), TypeName{std::move(name)});
}

TypeExprPtr Parser::type_in_parens() {
  const Location start = peek().location;
  expect("(");
  TypeTuple tuple;
  bool comma = false;
  while (!at(")")) {
    tuple.elements.push_back(type());
    if (!accept(",")) break;
    comma = true;
  }
  if (tuple.elements.size() == 1 && comma) fail_expected("a type");
  expect(")");
  if (tuple.elements.size() == 1) return std::move(tuple.elements.front());
  return make_type(since(start), std::move(tuple));
}

std::string Parser::field_name(Location& location) {
  location = peek().location;
  if (peek().kind == TokenKind::number && peek().number.plain) return take().text;
  return expect_name("the name of a field").text;
}

TypeExprPtr Parser::type_record() {
  const Location start = peek().location;
  expect("{");
  TypeRecord record;
  while (!at("}")) {
    Field<TypeExprPtr> field;
    field.name = field_name(field.location);
    expect(":");
    field.value = type();
    record.fields.push_back(std::move(field));
    if (!accept(",")) break;
  }
  expect("}");
  return make_type(since(start), std::move(record));
}

bool Parser::at_type_param() const {
  if (at("'") || at("'^") || at("'~")) return true;
  return peek().is_bracket() && at_name(1) && at("]", 2);
}

std::vector<TypeParam> Parser::type_params() {
  std::vector<TypeParam> result;
  while (at_type_param()) {
    const Location start = peek().location;
    TypeParam param;
    if (peek().is_bracket()) {
      take();
      param.name = take().text;
      take();
    } else {
      param.kind = at("'") ? TypeParam::Kind::type : at("'~") ? TypeParam::Kind::size_lifted : TypeParam::Kind::lifted;
      take();
      param.name = expect_name("the name of a type").text;
    }
    param.location = since(start);
    result.push_back(std::move(param));
  }
  return result;
}

}  // namespace apl::frontend
