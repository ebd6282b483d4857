// Text to tree: recursive descent, one function a rule.
#include <cctype>
#include <cstdlib>
#include <optional>

#include "tree.h"

namespace toy {
namespace {

using apl::Code;
using apl::Diagnostic;
using apl::Location;

class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text) {}

  apl::Result<std::vector<Definition>> run() {
    std::vector<Definition> definitions;
    for (skip(); at_ < text_.size() && !error_; skip()) definitions.push_back(definition());
    if (error_) return *error_;
    return definitions;
  }

 private:
  char peek() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  void skip() {
    while (at_ < text_.size() && (std::isspace(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '#')) {
      if (text_[at_] == '#')
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      else
        ++at_;
    }
  }
  Location here() const {
    Location place{1, 1, 1, 1};
    for (std::size_t k = 0; k < at_ && k < text_.size(); ++k) {
      ++place.column;
      if (text_[k] == '\n') ++place.line, place.column = 1;
    }
    place.end_line = place.line;
    place.end_column = place.column;
    return place;
  }
  void fail(const std::string& wanted) {
    if (!error_) error_ = apl::make_error(Code::syntax_error, here(), "expected " + wanted);
    at_ = text_.size();
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void need(char c) {
    if (!take(c)) fail(std::string("'") + c + "'");
  }
  std::string name() {
    std::string word;
    if (std::isalpha(static_cast<unsigned char>(peek())) != 0)
      while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_'))
        word += text_[at_++];
    if (word.empty()) fail("a name");
    return word;
  }

  Definition definition() {
    Definition result;
    peek();
    result.location = here();
    result.name = name();
    need('(');
    if (!take(')')) {
      do {
        Param param{name(), false};
        need(':');
        const std::string type = name();
        if (type != "vector" && type != "number") fail("the type `vector` or `number`");
        param.is_vector = type == "vector";
        result.params.push_back(param);
      } while (take(','));
      need(')');
    }
    need('=');
    result.body = sum();
    return result;
  }

  Expr binary(Expr (Parser::*part)(), const char* operators) {
    Expr left = (this->*part)();
    for (;;) {
      const char op = peek();
      const Location place = here();
      if (op == '\0' || std::string(operators).find(op) == std::string::npos) return left;
      ++at_;
      Expr right = (this->*part)();
      left = {.kind = Expr::Kind::binary, .op = op, .operands = {left, right}, .location = place};
    }
  }
  Expr sum() { return binary(&Parser::product, "+-"); }
  Expr product() { return binary(&Parser::atom, "*/"); }

  Expr atom() {
    const char c = peek();
    const Location place = here();
    if (take('(')) {
      Expr inner = sum();
      need(')');
      return inner;
    }
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      char* end = nullptr;
      const double number = std::strtod(text_.c_str() + at_, &end);
      at_ = static_cast<std::size_t>(end - text_.c_str());
      return {.kind = Expr::Kind::number, .number = number, .location = place};
    }
    const std::string word = name();
    if (word == "sum" && take('(')) {
      Expr inner = sum();
      need(')');
      return {.kind = Expr::Kind::sum, .operands = {inner}, .location = place};
    }
    return {.kind = Expr::Kind::name, .name = word, .location = place};
  }

  const std::string& text_;
  std::size_t at_ = 0;
  std::optional<Diagnostic> error_;
};

}  // namespace

apl::Result<std::vector<Definition>> parse(const std::string& text) { return Parser(text).run(); }

}  // namespace toy
