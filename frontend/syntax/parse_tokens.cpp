// Looking at tokens, taking them, and saying what was expected instead.
#include <algorithm>

#include "frontend/syntax/children.h"
#include "frontend/syntax/parser_impl.h"

namespace apl::frontend {

namespace {

// Deep enough for any program that people write; shallow enough for an 8 MB stack in a sanitizer build.
constexpr int kMaxNesting = 200;
constexpr std::uint32_t kMaxExpressionDepth = 500;

}  // namespace

const Token& Parser::peek(std::size_t ahead) const { return tokens_[std::min(position_ + ahead, tokens_.size() - 1)]; }

Token Parser::take() {
  Token token = peek();
  if (position_ + 1 < tokens_.size()) ++position_;
  return token;
}

bool Parser::accept(std::string_view punctuation) {
  if (!at(punctuation)) return false;
  take();
  return true;
}

bool Parser::accept_keyword(std::string_view text) {
  if (!at_keyword(text)) return false;
  take();
  return true;
}

void Parser::expect(std::string_view punctuation) {
  if (!accept(punctuation)) fail_expected("'" + std::string(punctuation) + "'");
}

void Parser::expect_keyword(std::string_view text) {
  if (!accept_keyword(text)) fail_expected("'" + std::string(text) + "'");
}

void Parser::expect_bracket() {
  if (!peek().is_bracket()) fail_expected("'['");
  take();
}

Token Parser::expect_name(std::string_view what) {
  if (!at_name()) fail_expected(what);
  return take();
}

std::string Parser::expected(std::string_view what) const {
  const std::string next = peek().describe();
  const bool quoted = next.size() > 2 && next.front() == '\'';
  if (what == "'in'" && (next == "'def'" || next == "'type'" || next == "'module'"))
    return "Unexpected \"" + next.substr(1, next.size() - 2) + "\" - missing \"in\"?";
  return "Unexpected " + std::string(quoted ? "token: " : "") + next + ", expected " + std::string(what);
}

void Parser::fail_expected(std::string_view what) {
  const Token& token = peek();
  if (token.kind == TokenKind::error) fail(Code::syntax_error, token.location, token.text);
  fail(Code::syntax_error, token.location, expected(what));
}

void Parser::fail(Code code, Location location, std::string message) {
  report(code, location, std::move(message));
  throw ParseAbort{};
}

void Parser::fail_unsupported(Location location, std::string_view what) {
  fail(Code::unsupported_construct, location, std::string(what) + " cannot be compiled yet");
}

void Parser::report(Code code, Location location, std::string message) {
  if (sink_) sink_(make_error(code, location, std::move(message)));
}

Location Parser::since(const Location& start) const {
  if (position_ == 0) return start;
  const Location& last = tokens_[position_ - 1].location;
  return {.line = start.line, .column = start.column, .end_line = last.end_line, .end_column = last.end_column};
}

Parser::Nested::Nested(Parser& parser) : parser_(parser) {
  if (++parser.nesting_ <= kMaxNesting) return;
  --parser.nesting_;
  parser.fail(Code::unsupported_construct, parser.peek().location,
              "this is nested more than " + std::to_string(kMaxNesting) + " levels deep");
}

void Parser::limit_depth(Expr& expr) {
  std::uint32_t below = 0;
  for_each_child(expr, [&](const Expr& child) { below = std::max(below, child.depth); });
  expr.depth = below + 1;
  if (expr.depth > kMaxExpressionDepth)
    fail(Code::unsupported_construct, expr.location,
         "this expression is more than " + std::to_string(kMaxExpressionDepth) + " levels deep");
}

}  // namespace apl::frontend
