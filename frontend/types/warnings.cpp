#include "frontend/types/warnings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "frontend/syntax/children.h"
#include "ir/attributes.h"

namespace apl::frontend {

namespace {

bool asks_for_safety_checks(const Attribute& attribute) {
  return read_attribute(attribute, attribute::warn).has_value();
}

std::string said(const Attribute& attribute) {
  const std::string arguments =
      attribute.arguments.empty() ? "" : fmt::format("({})", fmt::join(attribute.arguments, ", "));
  return fmt::format("#[{}{}]", attribute.name, arguments);
}

bool is_number(const Expr& expr) {
  if (const auto* negate = std::get_if<Negate>(&expr.node)) return is_number(*negate->x);
  return std::holds_alternative<NumberLiteral>(expr.node) || std::holds_alternative<Literal>(expr.node);
}

bool is_zero(const Expr& expr) {
  if (const auto* literal = std::get_if<Literal>(&expr.node)) return literal->value.bits() == 0;
  const auto* number = std::get_if<NumberLiteral>(&expr.node);
  return number && !number->is_float && number->integer == 0;
}

bool has_index(const std::vector<AccessStep>& steps) {
  return std::any_of(steps.begin(), steps.end(), [](const AccessStep& step) { return !step.is_field; });
}

class Warnings {
 public:
  Warnings(const Checked& program, const DiagnosticSink& sink) : program_(program), sink_(sink) {}

  void run() {
    for (const Global& global : program_.globals) {
      const auto& attributes = global.declaration->attributes;
      for (const SyntaxAttribute& attribute : attributes) check_attribute(attribute, &global);
      const bool safety = std::any_of(attributes.begin(), attributes.end(), asks_for_safety_checks);
      // Host code runs what an entry or a constant does itself; a function may be called by kernels.
      functions_around_ = global.entry || global.definition->params.empty() ? 0 : 1;
      visit(*global.definition->body, safety);
    }
  }

 private:
  void warn(Code code, Location location, std::string message) {
    if (!sink_ || !reported_.emplace(code, location.line, location.column).second) return;
    Diagnostic diagnostic = make_error(code, location, std::move(message));
    diagnostic.severity = Severity::warning;
    sink_(diagnostic);
  }

  static bool is_sparse(const Declaration& declaration, const std::string& operand) {
    return std::ranges::any_of(declaration.attributes, [&](const SyntaxAttribute& other) {
      return other.name == attribute::sparse.name && !other.arguments.empty() && other.arguments.front() == operand;
    });
  }

  // An attribute of a definition, or of an expression (null), that does not do what its author may think.
  void check_attribute(const SyntaxAttribute& attribute, const Global* of) {
    const auto ignored = [&](const std::string& why) {
      warn(Code::warning_attribute_ignored, attribute.location,
           fmt::format("{} has no effect: {}.", said(attribute), why));
    };
    const AttributeInfo* info = find_attribute_info(attribute.name);
    if (info == nullptr) {
      const std::string similar = similar_attribute(attribute.name);
      return warn(Code::warning_attribute_unknown, attribute.location,
                  fmt::format("Unknown attribute \"{}\"{}", attribute.name,
                              similar.empty() ? "." : fmt::format("; did you mean \"{}\"?", similar)));
    }
    if (info->set_by == "planned") return ignored(std::string(info->summary));
    if (attribute.name == attribute::trace.name && of != nullptr)
      return ignored("it is for expressions, and stands before a definition");
    if (attribute.name == attribute::break_.name) return ignored("programs do not stop for a debugger");
    if (info->is_ignored()) return;
    if (!info->is_users()) return ignored(fmt::format("only the compiler sets it ({})", info->set_by));
    using enum AttributePlace;
    if (info->place == expression && of != nullptr)
      return ignored("it is for expressions, and stands before a definition");
    if (of == nullptr && (info->place == definition || info->place == entry))
      return ignored(fmt::format("it is for {}, and stands before an expression",
                                 info->place == entry ? "entries" : "definitions"));
    if (attribute.name == attribute::constant.name && of != nullptr) {
      for (const std::string& name : attribute.arguments)
        if (!is_sparse(*of->declaration, name))
          return ignored(
              fmt::format("it is for sparse operands, and {} is none: #[sparse({})] makes it one", name, name));
    }
    // What is wrong with those of entries is an error where they are read.
    if (info->place != entry && !info->fits(attribute.arguments))
      ignored(fmt::format("it takes {}", info->arguments.empty() ? "no arguments" : info->arguments));
  }

  // `safety`: whether what is checked when the program runs is to be told.
  void visit(const Expr& expr, bool safety) {
    const int around = functions_around_;
    if (std::holds_alternative<LambdaExpr>(expr.node) || bodies_.contains(&expr)) ++functions_around_;
    if (safety && is_checked(expr))
      warn(Code::warning_safety_check, expr.location, "Safety check required at run-time.");
    if (const auto* attributed = std::get_if<Attributed>(&expr.node)) {
      check_attribute(attributed->attribute, nullptr);
      const std::string& name = attributed->attribute.name;
      safety = (safety || asks_for_safety_checks(attributed->attribute)) && name != attribute::unsafe.name;
      if (name == attribute::trace.name && functions_around_ > 0) warn_of_trace(attributed->attribute.location);
      if (name == attribute::unroll.name) check_unroll(*attributed->x);
    }
    if (const auto* let = std::get_if<LetExpr>(&expr.node)) {
      for (const LetBinding& binding : let->bindings) {
        const auto* function = std::get_if<LetFunction>(&binding.node);
        if (function) functions_[program_.binding_binders.at(binding.id)] = function->body.get();
        if (function) bodies_.insert(function->body.get());
        const auto* update = std::get_if<LetUpdate>(&binding.node);
        if (safety && update && has_index(update->steps))
          warn(Code::warning_safety_check, binding.location, "Safety check required at run-time.");
      }
    }
    if (const auto* range = std::get_if<RangeExpr>(&expr.node)) check_range(*range, expr.location);
    if (const auto* call = std::get_if<Call>(&expr.node); call && is_trace(*call->function))
      applied_.insert(call->function->id);
    if (is_trace(expr) && (functions_around_ > 0 || !applied_.contains(expr.id))) warn_of_trace(expr.location);
    if (safety) follow(expr);
    for_each_child(expr, [&](const Expr& child) { visit(child, safety); });
    functions_around_ = around;
  }

  bool is_trace(const Expr& expr) const {
    const auto name = program_.names.find(expr.id);
    return name != program_.names.end() && name->second.kind == Resolution::Kind::prelude &&
           name->second.entry->name == "trace";
  }

  void warn_of_trace(Location location) {
    warn(Code::warning_no_effect, location,
         "This prints nothing where a kernel runs it: only host code and the interpreter trace values.");
  }

  // What a function does is done where it is used.
  void follow(const Expr& expr) {
    const auto name = program_.names.find(expr.id);
    if (name == program_.names.end()) return;
    const Expr* body = nullptr;
    if (name->second.kind == Resolution::Kind::global)
      body = program_.globals[name->second.global].definition->body.get();
    else if (const auto local = functions_.find(name->second.binder); local != functions_.end())
      body = local->second;
    if (body && followed_.insert(body).second) visit(*body, true);
  }

  bool is_checked(const Expr& expr) const {
    if (std::holds_alternative<IndexExpr>(expr.node) || std::holds_alternative<AssertExpr>(expr.node)) return true;
    if (const auto* section = std::get_if<AccessSection>(&expr.node)) return has_index(section->steps);
    if (const auto* update = std::get_if<UpdateExpr>(&expr.node)) return has_index(update->steps);
    if (const auto* ascribe = std::get_if<Ascribe>(&expr.node)) return ascribe->coerce;
    if (const auto* range = std::get_if<RangeExpr>(&expr.node)) return !is_number(*range->end);
    const auto name = program_.names.find(expr.id);
    if (name == program_.names.end() || name->second.kind != Resolution::Kind::prelude) return false;
    switch (name->second.entry->builtin) {
      case Builtin::iota:
      case Builtin::replicate:
      case Builtin::tabulate:
      case Builtin::sized: return true;
      case Builtin::div:
      case Builtin::mod:
      case Builtin::quot:
      case Builtin::rem: {
        const auto* infix = std::get_if<Infix>(&expr.node);
        if (infix == nullptr) return false;
        const auto type = program_.store.as_scalar(program_.types[expr.id]);
        return type && is_integer(*type) && !(is_number(*infix->y) && !is_zero(*infix->y));
      }
      default: return false;
    }
  }

  void check_unroll(const Expr& expr) {
    const auto* loop = std::get_if<LoopExpr>(&expr.node);
    if (loop == nullptr) return;
    bool known = false;
    if (const auto* less = std::get_if<ForLess>(&loop->form)) known = is_constant(*less->bound);
    if (const auto* in = std::get_if<ForIn>(&loop->form)) {
      const auto* array = program_.store.get_if<TyArray>(program_.types[in->array->id]);
      known = array && program_.store.get_if<SizeConst>(array->size);
    }
    if (!known) warn(Code::warning_unroll, expr.location, "#[unroll] on loop with unknown number of iterations.");
  }

  // A number, or a top-level name of one.
  bool is_constant(const Expr& expr) const {
    if (is_number(expr)) return true;
    const auto name = program_.names.find(expr.id);
    if (!std::holds_alternative<Variable>(expr.node) || name == program_.names.end()) return false;
    if (name->second.kind != Resolution::Kind::global) return false;
    const Definition& definition = *program_.globals[name->second.global].definition;
    return definition.params.empty() && is_constant(*definition.body);
  }

  void check_range(const RangeExpr& range, Location location) {
    if (!range.second) return;
    const auto* first = std::get_if<Literal>(&range.start->node);
    const auto* second = std::get_if<Literal>(&range.second->node);
    const auto* number = std::get_if<NumberLiteral>(&range.start->node);
    const auto* next = std::get_if<NumberLiteral>(&range.second->node);
    const auto* name = std::get_if<Variable>(&range.start->node);
    const auto* other = std::get_if<Variable>(&range.second->node);
    const bool same = (first && second && first->value == second->value) ||
                      (number && next && number->integer == next->integer) ||
                      (name && other && name->name.to_string() == other->name.to_string());
    if (same)
      warn(Code::warning_empty_range, location,
           "First and second element of range are identical, this will produce an empty array.");
  }

  const Checked& program_;
  const DiagnosticSink& sink_;
  std::unordered_map<BinderId, const Expr*> functions_;
  std::set<const Expr*> followed_;
  std::set<const Expr*> bodies_;     // of local functions
  std::set<std::uint32_t> applied_;  // expressions that stand for `trace` and are called where they stand
  int functions_around_ = 0;         // around what is visited
  std::set<std::tuple<Code, std::uint32_t, std::uint32_t>> reported_;
};

}  // namespace

void warn_about(const Checked& program, const DiagnosticSink& sink) { Warnings(program, sink).run(); }

}  // namespace apl::frontend
