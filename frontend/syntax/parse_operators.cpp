// Ranges, binary operators, `with`, prefix operators and application, by precedence.
#include <array>
#include <utility>

#include "frontend/syntax/parser_impl.h"

namespace apl::frontend {

namespace {

// Loosest first; 1 is for ranges and 2 for `f`.
constexpr int kRange = 1;
constexpr int kBacktick = 2;
constexpr int kWith = 3;
constexpr int kPipe = 4;

struct Built {
  std::string_view prefix;
  Fixity fixity;
};

// Longest prefixes first: the first that fits is the longest.
constexpr std::array<Built, 25> kBuiltIn = {{
    {"**", {13, false}}, {"//", {12, false}}, {"%%", {12, false}}, {"<<", {10, false}}, {">>", {10, false}},
    {"<=", {8, false}},  {">=", {8, false}},  {"<|", {5, true}},   {"|>", {4, false}},  {"==", {8, false}},
    {"!=", {8, false}},  {"||", {6, false}},  {"&&", {7, false}},  {"*", {12, false}},  {"/", {12, false}},
    {"%", {12, false}},  {"+", {11, false}},  {"-", {11, false}},  {"<", {8, false}},   {">", {8, false}},
    {"=", {8, false}},   {"!", {8, false}},   {"|", {9, false}},   {"&", {9, false}},   {"^", {9, false}},
}};

}  // namespace

Fixity fixity_of(std::string_view op) {
  for (const Built& built : kBuiltIn)
    if (op.starts_with(built.prefix)) return built.fixity;
  return {kBacktick, false};
}

bool Parser::at_operator(std::size_t ahead) const { return peek(ahead).kind == TokenKind::op || at("`", ahead); }

Name Parser::take_operator() {
  const Location start = peek().location;
  Name name;
  if (accept("`")) {
    name.text = expect_name("the name of a function").text;
    while (accept(".")) {
      name.qualifiers.push_back(std::move(name.text));
      name.text = expect_name("a name").text;
    }
    expect("`");
  } else {
    Token token = take();
    name.text = std::move(token.text);
    while (!token.qualifier.empty()) {
      const std::size_t dot = token.qualifier.find('.');
      name.qualifiers.push_back(token.qualifier.substr(0, dot));
      token.qualifier = dot == std::string::npos ? "" : token.qualifier.substr(dot + 1);
    }
  }
  name.location = since(start);
  return name;
}

bool Parser::at_section_end() const {
  if (peek().kind == TokenKind::op) return at(")", 1);
  std::size_t ahead = 1;
  while (at_name(ahead) || at(".", ahead)) ++ahead;
  return at("`", ahead) && at(")", ahead + 1);
}

ExprPtr Parser::range() {
  const Location start = peek().location;
  ExprPtr first = operators(kRange + 1);
  RangeExpr range;
  if (!at("..") && !at("...") && !at("..<") && !at("..>")) return first;
  range.start = std::move(first);
  if (accept("..")) range.second = operators(kRange + 1);
  if (accept("..."))
    range.kind = RangeExpr::End::inclusive;
  else if (accept("..<"))
    range.kind = RangeExpr::End::below;
  else if (accept("..>"))
    range.kind = RangeExpr::End::above;
  else
    fail_expected("'...', '..<' or '..>'");
  range.end = operators(kRange + 1);
  return make(since(start), std::move(range));
}

ExprPtr Parser::operators(int min_precedence) {
  Nested nested(*this);
  const Location start = peek().location;
  ExprPtr left = prefixed();
  for (;;) {
    if (at_keyword("with") && kWith >= min_precedence) {
      left = update(std::move(left));
      continue;
    }
    if (!at_operator() || at_section_end()) return left;
    const Fixity fixity = at("`") ? Fixity{kBacktick, false} : fixity_of(peek().text);
    if (fixity.precedence < min_precedence) return left;
    Name op = take_operator();
    ExprPtr right = operators(fixity.right ? fixity.precedence : fixity.precedence + 1);
    left = make(since(start), Infix{std::move(op), std::move(left), std::move(right)});
  }
}

ExprPtr Parser::update(ExprPtr source) {
  const Location start = source->location;
  take();
  UpdateExpr result;
  result.source = std::move(source);
  result.steps = access_steps(true);
  expect("=");
  result.value = operators(kPipe);
  return make(since(start), std::move(result));
}

ExprPtr Parser::prefixed() {
  const Location start = peek().location;
  if (peek().is_op("-") && !at_section_end()) {
    Nested nested(*this);
    take();
    ExprPtr x = prefixed();
    return make(since(start), Negate{std::move(x)});
  }
  if (at("!")) {
    Nested nested(*this);
    take();
    ExprPtr x = prefixed();
    return make(since(start), Not{std::move(x)});
  }
  return application();
}

ExprPtr Parser::application() {
  const Location start = peek().location;
  if (at_keyword("let")) return let_expression();
  if (at_keyword("if")) return if_expression();
  if (at_keyword("loop")) return loop_expression();
  if (at_keyword("assert")) return assert_expression();
  if (at_keyword("match")) return match_expression();
  if (at("#[")) return attributed_expression();
  if (at("\\")) return lambda();
  const bool constructor = peek().kind == TokenKind::constructor;
  ExprPtr function = atom();
  Call call;
  while (at_atom()) call.arguments.push_back(atom());
  if (at("\\")) call.arguments.push_back(lambda());
  if (call.arguments.empty()) return function;
  if (constructor && std::holds_alternative<ConstructorExpr>(function->node)) {
    std::string name = std::get<ConstructorExpr>(function->node).name;
    return make(since(start), ConstructorExpr{std::move(name), std::move(call.arguments)});
  }
  call.function = std::move(function);
  return make(since(start), std::move(call));
}

}  // namespace apl::frontend
