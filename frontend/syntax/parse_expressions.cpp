// The expressions that extend as far right as they can: let, if, loop, assert, attributes, lambda; and ascription.
#include <utility>

#include "frontend/syntax/parser_impl.h"

namespace apl::frontend {

ExprPtr Parser::expression() {
  Nested nested(*this);
  const Location start = peek().location;
  ExprPtr result = range();
  while (at(":") || at(":>")) {
    const bool coerce = take().text == ":>";
    TypeExprPtr annotation = type();
    result = make(since(start), Ascribe{std::move(result), std::move(annotation), coerce});
  }
  return result;
}

ExprPtr Parser::let_expression() {
  const Location start = peek().location;
  LetExpr let;
  while (accept_keyword("let")) let.bindings.push_back(let_binding());
  expect_keyword("in");
  let.body = expression();
  return make(since(start), std::move(let));
}

LetBinding Parser::let_binding() {
  LetBinding binding;
  const Location start = peek().location;
  const bool name = at_name();
  if (name && (peek(1).kind == TokenKind::index || at(".", 1))) {
    binding.node = let_update();
  } else if (name && !at("=", 1) && !at(":", 1)) {
    binding.node = let_function();
  } else {
    binding.node = let_pattern();
  }
  binding.location = since(start);
  binding.id = next_expr_++;
  return binding;
}

LetPattern Parser::let_pattern() {
  LetPattern let;
  while (peek().is_bracket()) {
    if (!at_type_param()) fail_expected("the name of a size");
    for (TypeParam& param : type_params()) let.sizes.push_back(std::move(param));
  }
  let.pattern = pattern();
  expect("=");
  let.value = expression();
  return let;
}

LetFunction Parser::let_function() {
  LetFunction let;
  const Token name = take();
  let.name = name.text;
  let.type_params = type_params();
  let.params = params();
  if (let.params.empty()) fail_expected("'='");
  if (accept(":")) let.result = type();
  expect("=");
  let.body = expression();
  return let;
}

LetUpdate Parser::let_update() {
  LetUpdate let;
  const Token name = take();
  let.name = {.qualifiers = {}, .text = name.text, .location = name.location};
  let.steps = access_steps(false);
  expect("=");
  let.value = expression();
  return let;
}

ExprPtr Parser::if_expression() {
  const Location start = peek().location;
  IfExpr result;
  while (accept_keyword("if")) {
    IfArm arm;
    arm.condition = expression();
    expect_keyword("then");
    arm.value = expression();
    expect_keyword("else");
    result.arms.push_back(std::move(arm));
  }
  result.else_value = expression();
  return make(since(start), std::move(result));
}

ExprPtr Parser::loop_expression() {
  const Location start = take().location;
  LoopExpr loop;
  loop.pattern = pattern();
  if (accept("=")) loop.initial = expression();
  if (accept_keyword("while")) {
    loop.form = While{expression()};
  } else {
    if (!accept_keyword("for")) fail_expected("'for' or 'while'");
    if (at_name() && peek(1).is_op("<")) {
      ForLess form;
      const Token name = take();
      form.name = name.text;
      form.location = name.location;
      form.pattern_id = next_pattern_++;
      take();
      form.bound = expression();
      loop.form = std::move(form);
    } else {
      ForIn form;
      form.pattern = pattern();
      expect_keyword("in");
      form.array = expression();
      loop.form = std::move(form);
    }
  }
  expect_keyword("do");
  loop.body = expression();
  return make(since(start), std::move(loop));
}

ExprPtr Parser::match_expression() {
  const Location start = take().location;
  MatchExpr match;
  match.x = expression();
  if (!at_keyword("case")) fail_expected("'case'");
  while (at_keyword("case")) {
    MatchCase next;
    const Location case_start = take().location;
    next.pattern = pattern();
    expect("->");
    next.body = expression();
    next.location = since(case_start);
    match.cases.push_back(std::move(next));
  }
  return make(since(start), std::move(match));
}

ExprPtr Parser::assert_expression() {
  const Location start = take().location;
  AssertExpr result;
  result.condition = atom();
  result.value = expression();
  return make(since(start), std::move(result));
}

ExprPtr Parser::attributed_expression() {
  const Location start = peek().location;
  expect("#[");
  Attributed result;
  result.attribute = attribute();
  expect("]");
  result.x = expression();
  return make(since(start), std::move(result));
}

ExprPtr Parser::lambda() {
  const Location start = peek().location;
  expect("\\");
  LambdaExpr result;
  result.params = params();
  if (result.params.empty()) fail_expected("a parameter");
  // The result type cannot be an arrow: `->` begins the body.
  if (accept(":")) result.result = type_term();
  expect("->");
  result.body = expression();
  return make(since(start), std::move(result));
}

}  // namespace apl::frontend
