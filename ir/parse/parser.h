// Recursive descent over the grammar of docs/ir.md: one member function a rule. Every member throws SyntaxError.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/call_table.h"
#include "ir/module.h"
#include "ir/parse/lexer.h"

namespace apl {

class Parser {
 public:
  explicit Parser(std::string_view text) : tokens_(tokenise(text)) {}

  Module parse_all();

 private:
  // ---- tokens ----
  const Token& peek(std::size_t ahead = 0) const;
  bool is(std::string_view text) const { return peek().is(text); }
  bool is(Token::Kind kind) const { return peek().kind == kind; }
  Token take();
  bool accept(std::string_view text);  // takes the token if it is this one
  void expect(std::string_view text, std::string_view where = {});
  [[noreturn]] void fail_expected(std::string_view what) const;  // "expected WHAT, found `...`"
  [[noreturn]] static void fail(const Token& at, std::string message);

  // `open item, item close`; also an empty list. `where` is for messages.
  template <class Item>
  void list(std::string_view open, std::string_view close, Item item) {
    expect(open);
    if (accept(close)) return;
    do item();
    while (accept(","));
    expect(close, "or `,`");
  }

  // Nested text recurses: a limit, so that no input exhausts the stack.
  class Nesting {
   public:
    explicit Nesting(Parser& parser);
    ~Nesting() { --parser_.depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    Parser& parser_;
  };

  // ---- names ----
  // What is bound while a scope lives is forgotten at its end; nothing may be bound twice in one scope.
  class Scope {
   public:
    explicit Scope(Parser& parser) : parser_(parser), size_(parser.bound_.size()) {}
    ~Scope() { parser_.forget(size_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Parser& parser_;
    std::size_t size_;
  };
  void forget(std::size_t size);
  Value bind(const Token& name, Type type);
  Value use();  // the value that the next token names
  std::string name_or_string(std::string_view what);
  // The names in a list `{x : type, ...}` or `(x : type, ...)`, before their types: these may mention each other.
  void declare_binders();
  Value binder();  // one of them, `x : type`
  std::vector<Value> binders(std::string_view open, std::string_view close);

  // ---- small pieces ----
  struct SizedPoly;
  Poly poly();
  SizedPoly poly_sum();
  SizedPoly poly_product(bool negative);
  SizedPoly poly_atom(bool negative);
  std::vector<Poly> polys(std::string_view open, std::string_view close);
  std::uint64_t natural(std::uint64_t limit, std::string_view what);
  std::int64_t integer();
  Operand operand();
  std::vector<Operand> operands(std::string_view open, std::string_view close);
  std::vector<int> permutation();
  ScalarType scalar_type();
  Space space();
  Type type();
  Lmad lmad(const std::vector<Poly>* shape_if_absent);
  std::vector<DimIndex> dims();
  Location location();  // none if there is no `@3:5-3:12`
  Location range();     // `3:5-3:12`
  std::vector<Attribute> attributes();

  // ---- bodies ----
  Stm stm();
  std::vector<Stm> stms();
  BodyPtr block();
  Lambda lambda();
  ReduceOp reduce_op();
  std::vector<ReduceOp> reduce_ops();
  void index_bound(Value& index, Poly& bound);  // `i < n`

  // ---- operations ----
  Op operation();
  Op named_operation(const Token& name);                // `name(...)`
  std::optional<Op> call_operation(const Token& name);  // of the syntax `call`, if there is one of this name
  template <class Operation>
  Operation call_of();
  void parse_field(Value& value) { value = use(); }
  void parse_field(Operand& x) { x = operand(); }
  void parse_field(Poly& p) { p = poly(); }
  void parse_field(std::vector<Poly>& sizes) { sizes = polys("[", "]"); }
  void parse_field(Lmad& layout) { layout = lmad(nullptr); }
  void parse_field(ScalarType& type) { type = scalar_type(); }
  void parse_field(Space& where) { where = space(); }
  void parse_field(std::vector<int>& order) { order = permutation(); }
  void parse_field(std::int64_t& number) { number = integer(); }
  void parse_field(SizeClass& size_class);
  void parse_field(std::string& text);
  Op scalar_operation(const Token& name);
  Op array_access();
  Op array_literal();
  Op assertion();
  Op branch();
  Op choose();
  Op loop();
  Op call();
  void index_widths(std::vector<Value>& indices, std::vector<Poly>& widths);
  Op screma();
  Op scatter(bool folds);
  Op derivative(bool reverse);
  Op segmap();
  KernelResult kernel_result();
  Schedule schedule();
  SparseSchedule sparse_schedule();
  template <class Choice, std::size_t N>
  Choice choice(const std::array<Choice, N>& choices, std::string_view what);  // the one whose word comes next
  Op copy_tile();
  Op tile_contract();

  // ---- functions ----
  Stage stage();
  SoaField soa_field();
  std::size_t sparse_param(const EntryInfo& entry);
  EntryInfo entry();
  FunctionPtr function();

  std::vector<Token> tokens_;
  std::size_t position_ = 0;
  int depth_ = 0;
  CallTable calls_;
  ValueTable values_;                               // of the function being parsed
  std::unordered_map<std::string, Value> visible_;  // names in scope
  bool in_params_ = false;
  std::vector<std::string> bound_;  // the same in order of binding
};

}  // namespace apl
