// Looking at tokens, taking them, and saying what was expected instead.
#include <algorithm>

#include "frontend/syntax/parser_impl.h"

namespace apl::frontend {

namespace {

// Deep enough for any program that people write; shallow enough for an 8 MB stack in a sanitizer build.
constexpr int kMaxNesting = 200;
constexpr std::uint32_t kMaxDepth = 500;

// The deepest of the expressions right below a node.
struct ChildDepth {
  std::uint32_t depth = 0;

  void add(const ExprPtr& expr) {
    if (expr) depth = std::max(depth, expr->depth);
  }
  void add(const std::vector<ExprPtr>& exprs) {
    for (const ExprPtr& expr : exprs) add(expr);
  }
  void add(const std::vector<IndexDim>& dims) {
    for (const IndexDim& dim : dims) add(dim.start), add(dim.end), add(dim.stride);
  }
  void add(const std::vector<AccessStep>& steps) {
    for (const AccessStep& step : steps) add(step.dims);
  }
  void add(const LetBinding& binding) {
    if (const auto* pattern = std::get_if<LetPattern>(&binding.node)) add(pattern->value);
    if (const auto* function = std::get_if<LetFunction>(&binding.node)) add(function->body);
    if (const auto* update = std::get_if<LetUpdate>(&binding.node)) add(update->steps), add(update->value);
  }

  void operator()(const TupleExpr& e) { add(e.elements); }
  void operator()(const ArrayExpr& e) { add(e.elements); }
  void operator()(const RecordExpr& e) {
    for (const auto& field : e.fields) add(field.value);
  }
  void operator()(const Project& e) { add(e.record); }
  void operator()(const LocalOpen& e) { add(e.body); }
  void operator()(const IndexExpr& e) { add(e.array), add(e.dims); }
  void operator()(const Call& e) { add(e.function), add(e.arguments); }
  void operator()(const Negate& e) { add(e.x); }
  void operator()(const Not& e) { add(e.x); }
  void operator()(const Infix& e) { add(e.x), add(e.y); }
  void operator()(const Section& e) { add(e.left), add(e.right); }
  void operator()(const AccessSection& e) { add(e.steps); }
  void operator()(const LambdaExpr& e) { add(e.body); }
  void operator()(const IfExpr& e) { add(e.condition), add(e.then_value), add(e.else_value); }
  void operator()(const LetExpr& e) {
    for (const LetBinding& binding : e.bindings) add(binding);
    add(e.body);
  }
  void operator()(const LoopExpr& e) {
    add(e.initial), add(e.body);
    if (const auto* less = std::get_if<ForLess>(&e.form)) add(less->bound);
    if (const auto* in = std::get_if<ForIn>(&e.form)) add(in->array);
    if (const auto* loop = std::get_if<While>(&e.form)) add(loop->condition);
  }
  void operator()(const Ascribe& e) { add(e.x); }
  void operator()(const RangeExpr& e) { add(e.start), add(e.second), add(e.end); }
  void operator()(const UpdateExpr& e) { add(e.source), add(e.steps), add(e.value); }
  void operator()(const AssertExpr& e) { add(e.condition), add(e.value); }
  void operator()(const Attributed& e) { add(e.x); }
  template <class Leaf>
  void operator()(const Leaf&) {}
};

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

void Parser::fail_expected(std::string_view what) {
  const Token& token = peek();
  if (token.kind == TokenKind::error) fail(Code::syntax_error, token.location, token.text);
  // `'def'` in our words is `"def"` in Futhark's.
  std::string unexpected = token.describe();
  if (unexpected.size() > 2 && unexpected.front() == '\'')
    unexpected = "\"" + unexpected.substr(1, unexpected.size() - 2) + "\"";
  fail(Code::syntax_error, token.location,
       "Unexpected " + unexpected + ": expected " + std::string(what) + " before " + token.describe());
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
  ChildDepth children;
  std::visit(children, expr.node);
  expr.depth = children.depth + 1;
  if (expr.depth > kMaxDepth)
    fail(Code::unsupported_construct, expr.location,
         "this expression is more than " + std::to_string(kMaxDepth) + " levels deep");
}

}  // namespace apl::frontend
