// The parser's state and its parts; each part is defined in the file named above it.
#pragma once

#include <string>
#include <vector>

#include "frontend/syntax/parser.h"

namespace apl::frontend {

// Thrown where a declaration cannot go on, after the reason was reported; caught by the declaration loop.
struct ParseAbort {};

class Parser {
 public:
  Parser(std::vector<Token> tokens, const DiagnosticSink& sink, std::uint32_t first_expr = 0,
         std::uint32_t first_pattern = 0)
      : tokens_(std::move(tokens)), sink_(sink), next_expr_(first_expr), next_pattern_(first_pattern) {}

  // parse_declarations.cpp
  std::vector<Declaration> declarations();  // to the end of the file
  std::uint32_t expr_count() const { return next_expr_; }
  std::uint32_t pattern_count() const { return next_pattern_; }
  // parse_types.cpp
  TypeSignature signature();

 private:
  // parse_tokens.cpp
  const Token& peek(std::size_t ahead = 0) const;
  Token take();
  bool at(std::string_view punctuation, std::size_t ahead = 0) const { return peek(ahead).is_punctuation(punctuation); }
  bool at_keyword(std::string_view text, std::size_t ahead = 0) const { return peek(ahead).is_keyword(text); }
  bool at_name(std::size_t ahead = 0) const { return peek(ahead).kind == TokenKind::identifier; }
  bool accept(std::string_view punctuation);
  bool accept_keyword(std::string_view text);
  void expect(std::string_view punctuation);
  void expect_keyword(std::string_view text);
  void expect_close_bracket() { expect("]"); }
  void expect_bracket();  // `[` in either form
  Token expect_name(std::string_view what);
  std::string expected(std::string_view what) const;
  [[noreturn]] void fail_expected(std::string_view what);
  [[noreturn]] void fail(Code code, Location location, std::string message);
  [[noreturn]] void fail_unsupported(Location location, std::string_view what);
  void report(Code code, Location location, std::string message);
  Location since(const Location& start) const;  // from there to the last token taken

  // Counts nesting for as long as it lives.
  class Nested {
   public:
    explicit Nested(Parser& parser);
    ~Nested() { --parser_.nesting_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

   private:
    Parser& parser_;
  };

  template <class Node>
  ExprPtr make(Location location, Node node) {
    auto expr = std::make_unique<Expr>();
    expr->location = location;
    expr->id = next_expr_++;
    expr->node = std::move(node);
    limit_depth(*expr);
    return expr;
  }
  template <class Node>
  PatternPtr make_pattern(Location location, Node node) {
    return std::make_unique<Pattern>(Pattern{.location = location, .id = next_pattern_++, .node = std::move(node)});
  }
  template <class Node>
  TypeExprPtr make_type(Location location, Node node) {
    return std::make_unique<TypeExpr>(TypeExpr{.location = location, .node = std::move(node)});
  }
  void limit_depth(Expr& expr);

  // parse_declarations.cpp
  Declaration declaration();
  Definition definition();
  Liftedness liftedness();
  TypeDefinition type_definition(bool may_be_abstract = false);
  std::string binding_name(Location& location);
  bool at_infix_definition() const;
  void equals_before_body();
  void skip_to_declaration(std::size_t failed_at);
  std::vector<SyntaxAttribute> attributes();
  SyntaxAttribute attribute();

  // parse_modules.cpp
  ModuleDefinition module_definition();
  ModuleTypeDefinition module_type_definition();
  ModuleParam module_param();
  ModuleExprPtr module_expression();
  ModuleExprPtr module_application();
  ModuleExprPtr module_atom();
  ModuleImport module_import();
  ModuleTypePtr module_type();
  ModuleTypePtr module_type_atom();
  SpecBody specs();
  Spec spec();
  bool at_module_atom() const;
  Name qualified_name(std::string_view what);
  template <class Node>
  ModuleExprPtr make_module(Location location, Node node) {
    return std::make_unique<ModuleExpr>(ModuleExpr{.location = location, .node = std::move(node)});
  }
  template <class Node>
  ModuleTypePtr make_module_type(Location location, Node node) {
    return std::make_unique<ModuleTypeExpr>(ModuleTypeExpr{.location = location, .node = std::move(node)});
  }

  // parse_types.cpp
  TypeExprPtr type();
  TypeExprPtr type_term();
  TypeExprPtr type_application();
  TypeExprPtr type_atom();
  TypeExprPtr type_in_parens();
  TypeExprPtr type_record();
  TypeExprPtr type_sum();
  TypeExprPtr type_exists();
  bool at_type_atom() const;
  std::vector<TypeParam> type_params();
  bool at_type_param() const;
  std::string field_name(Location& location);

  // parse_patterns.cpp
  PatternPtr pattern();        // with an optional type
  PatternPtr inner_pattern();  // without
  PatternPtr pattern_in_parens();
  PatternPtr pattern_record();
  PatternPtr pattern_constructor(bool payload);
  PatternPtr pattern_literal();
  bool at_literal() const;
  bool at_inner_pattern() const;
  bool at_param() const;
  std::vector<PatternPtr> params();

  // parse_expressions.cpp
  ExprPtr expression();  // with ascriptions
  ExprPtr let_expression();
  LetBinding let_binding();
  LetFunction let_function();
  LetPattern let_pattern();
  LetUpdate let_update();
  ExprPtr if_expression();
  ExprPtr loop_expression();
  ExprPtr match_expression();
  ExprPtr assert_expression();
  ExprPtr attributed_expression();
  ExprPtr lambda();

  // parse_operators.cpp
  ExprPtr range();  // ranges and all that binds tighter
  ExprPtr operators(int min_precedence);
  ExprPtr update(ExprPtr source);
  ExprPtr prefixed();
  ExprPtr application();
  bool at_operator(std::size_t ahead = 0) const;
  Name take_operator();
  // Whether the operator here ends a section: `(x +)`.
  bool at_section_end() const;

  // parse_atoms.cpp
  bool at_atom() const;
  ExprPtr atom();  // with projections and indices after it
  ExprPtr simple_atom();
  ExprPtr number(const Token& token);
  ExprPtr parenthesised();
  ExprPtr access_section(const Location& start);
  ExprPtr record_literal();
  ExprPtr array_literal();
  ExprPtr project(ExprPtr record);
  std::vector<IndexDim> index_dims();  // up to and with `]`
  IndexDim index_dim();
  std::vector<AccessStep> access_steps(bool update);

  std::vector<Token> tokens_;
  const DiagnosticSink& sink_;
  std::size_t position_ = 0;
  std::uint32_t next_expr_;
  std::uint32_t next_pattern_;
  int nesting_ = 0;
};

}  // namespace apl::frontend
