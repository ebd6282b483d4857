// Tokens, names and scopes.
#include <fmt/format.h>

#include "ir/parse/parser.h"
#include "ir/print/words.h"

namespace apl {

namespace {

constexpr int kMaxDepth = 200;

std::string found(const Token& token) {
  if (token.kind == Token::Kind::end) return "the end of the text";
  if (token.kind == Token::Kind::string) return "a string";
  return fmt::format("`{}`", token.text.substr(0, 40));
}

}  // namespace

const Token& Parser::peek(std::size_t ahead) const {
  return position_ + ahead < tokens_.size() ? tokens_[position_ + ahead] : tokens_.back();
}

Token Parser::take() {
  Token token = peek();
  if (position_ + 1 < tokens_.size()) ++position_;
  return token;
}

bool Parser::accept(std::string_view text) {
  if (!is(text)) return false;
  take();
  return true;
}

void Parser::expect(std::string_view text, std::string_view where) {
  if (accept(text)) return;
  fail_expected(where.empty() ? fmt::format("`{}`", text) : fmt::format("`{}` {}", text, where));
}

void Parser::fail_expected(std::string_view what) const {
  fail(peek(), fmt::format("expected {}, found {}", what, found(peek())));
}

void Parser::fail(const Token& at, std::string message) { throw SyntaxError{at.location, std::move(message)}; }

Parser::Nesting::Nesting(Parser& parser) : parser_(parser) {
  if (parser.depth_ >= kMaxDepth) fail(parser.peek(), fmt::format("nested more than {} deep", kMaxDepth));
  ++parser.depth_;
}

void Parser::forget(std::size_t size) {
  while (bound_.size() > size) {
    visible_.erase(bound_.back());
    bound_.pop_back();
  }
}

Value Parser::bind(const Token& name, Type type) {
  if (name.kind != Token::Kind::name) fail(name, fmt::format("expected a name, found {}", found(name)));
  if (!is_name_shaped(name.text) || is_reserved(name.text))
    fail(name, fmt::format("`{}` is a word of the language, not a name", name.text));
  const std::string text(name.text);
  if (visible_.contains(text)) fail(name, fmt::format("`{}` is already bound here", text));
  const Value value = values_.add(std::move(type), text);
  visible_.emplace(text, value);
  bound_.push_back(text);
  return value;
}

Value Parser::use() {
  if (!is(Token::Kind::name)) fail_expected("a name");
  const auto known = visible_.find(std::string(peek().text));
  if (known == visible_.end()) {
    if (is_reserved(peek().text)) fail_expected("a name");
    fail(peek(), fmt::format("`{}` is not bound here", peek().text));
  }
  take();
  return known->second;
}

std::string Parser::name_or_string(std::string_view what) {
  if (is(Token::Kind::string)) return take().value;
  if (!is(Token::Kind::name) || !is_name_shaped(peek().text)) fail_expected(fmt::format("{} or a string", what));
  return std::string(take().text);
}

void Parser::declare_binders() {
  int depth = 0;
  for (std::size_t k = position_; k < tokens_.size(); ++k) {
    const Token& token = tokens_[k];
    if (token.kind == Token::Kind::symbol) {
      if (token.is("{") || token.is("(") || token.is("[")) ++depth;
      if (token.is("}") || token.is(")") || token.is("]")) --depth;
      if (depth == 0) return;
    }
    const bool first = depth == 1 && k > position_ && (k == position_ + 1 || tokens_[k - 1].is(","));
    if (first && token.kind == Token::Kind::name && k + 1 < tokens_.size() && tokens_[k + 1].is(":"))
      bind(token, Type());
  }
}

Value Parser::binder() {
  if (!is(Token::Kind::name)) fail_expected("a name");
  if (!peek(1).is(":")) {
    take();
    fail_expected("`:` and a type");
  }
  const Value value = use();
  take();
  values_.set_type(value, type());
  return value;
}

std::vector<Value> Parser::binders(std::string_view open, std::string_view close) {
  declare_binders();
  std::vector<Value> values;
  list(open, close, [&] { values.push_back(binder()); });
  return values;
}

}  // namespace apl
