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
  if (at("?")) return type_exists();
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
  if (peek().kind == TokenKind::constructor) return type_sum();
  if (!peek().is_op("*")) return type_application();
  take();
  TypeExprPtr inner = type_term();
  return make_type(since(start), TypeUnique{std::move(inner)});
}

bool Parser::at_type_atom() const { return at("(") || at("{") || at_name() || peek().is_bracket(); }

TypeExprPtr Parser::type_application() {
  const Location start = peek().location;
  TypeExprPtr head = type_atom();
  auto* name = std::get_if<TypeName>(&head->node);
  if (name == nullptr || !at_type_atom()) return head;
  // `t [n]`, `t a`: a bracket is a size here, an array type needs parentheses.
  TypeApply apply{.name = std::move(name->name), .arguments = {}};
  while (at_type_atom()) {
    TypeArgumentExpr argument;
    const Location argument_start = peek().location;
    if (peek().is_bracket()) {
      take();
      argument.is_size = true;
      if (!at("]")) argument.size = expression();
      expect("]");
    } else {
      argument.type = type_atom();
    }
    argument.location = since(argument_start);
    apply.arguments.push_back(std::move(argument));
  }
  return make_type(since(start), std::move(apply));
}

TypeExprPtr Parser::type_sum() {
  const Location start = peek().location;
  TypeSum sum;
  do {
    if (!sum.constructors.empty()) take();
    if (peek().kind != TokenKind::constructor) fail_expected("a constructor");
    const Token name = take();
    SumConstructor constructor{.name = name.text, .location = name.location, .payload = {}};
    while (at_type_atom()) constructor.payload.push_back(type_atom());
    sum.constructors.push_back(std::move(constructor));
  } while (peek().is_op("|"));
  return make_type(since(start), std::move(sum));
}

TypeExprPtr Parser::type_exists() {
  const Location start = peek().location;
  expect("?");
  TypeExists exists;
  if (!at_type_param() || !peek().is_bracket()) fail_expected("a size in brackets");
  while (peek().is_bracket() && at_type_param()) {
    const Location size_start = take().location;
    TypeParam size{.kind = TypeParam::Kind::size, .name = take().text, .location = {}};
    expect("]");
    size.location = since(size_start);
    exists.sizes.push_back(std::move(size));
  }
  expect(".");
  exists.type = type();
  return make_type(since(start), std::move(exists));
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
  return make_type(start, TypeName{qualified_name("a type")});
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
