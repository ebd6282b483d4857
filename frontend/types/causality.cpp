// Walks expressions in the order in which they are evaluated - arguments before the function, the last argument first
// - and keeps the set of sizes that are known by then.
#include "frontend/types/causality.h"

#include <unordered_set>
#include <utility>

namespace apl::frontend {

namespace {

class Causality {
 public:
  Causality(const Checked& program, const DiagnosticSink& sink)
      : program_(program), store_(program.store), sink_(sink) {
    for (const auto& [expr, sizes] : program.unknown_sizes) computed_.insert(sizes.begin(), sizes.end());
    for (const auto& [expr, size] : program.argument_sizes) computed_.insert(size);
  }

  bool run() {
    if (computed_.empty()) return true;
    for (const Global& global : program_.globals) {
      known_.clear();
      log_.clear();
      visit(*global.definition->body);
    }
    return !failed_;
  }

 private:
  void learn(BinderId size) {
    if (known_.insert(size).second) log_.push_back(size);
  }
  void learn_from(std::uint32_t id) {
    if (const auto sizes = program_.unknown_sizes.find(id); sizes != program_.unknown_sizes.end())
      for (BinderId size : sizes->second) learn(size);
    if (const auto size = program_.argument_sizes.find(id); size != program_.argument_sizes.end()) learn(size->second);
  }

  // What is not evaluated in an order that programs see: none of them knows what the others compute.
  template <class Visit>
  std::vector<BinderId> apart(Visit visit) {
    const std::size_t before = log_.size();
    visit();
    std::vector<BinderId> learned(log_.begin() + static_cast<std::ptrdiff_t>(before), log_.end());
    for (BinderId size : learned) known_.erase(size);
    log_.resize(before);
    return learned;
  }
  void visit_apart(const std::vector<const Expr*>& parts) {
    std::vector<BinderId> learned;
    for (const Expr* part : parts) {
      if (part == nullptr) continue;
      const auto theirs = apart([&] { visit(*part); });
      learned.insert(learned.end(), theirs.begin(), theirs.end());
    }
    for (BinderId size : learned) learn(size);
  }
  void visit_dims(const std::vector<IndexDim>& dims) {
    for (const IndexDim& dim : dims) visit_apart({dim.start.get(), dim.end.get(), dim.stride.get()});
  }
  void visit_steps(const std::vector<AccessStep>& steps) {
    for (const AccessStep& step : steps) visit_dims(step.dims);
  }

  void need(Ty type, Location location, const std::string& what) {
    if (failed_) return;
    // Sizes of a function's own results are no one's to know.
    for (BinderId size : store_.free_sizes(type, 0)) {
      if (computed_.count(size) == 0 || known_.count(size) > 0) continue;
      failed_ = true;
      const Binder& binder = store_.binder(size);
      Diagnostic error = make_error(Code::type_causality_check, location,
                                    "Causality check: size \"" + binder.name + "\" needed for type of " + what + ": " +
                                        store_.to_text(type) + ". But \"" + binder.name + "\" is computed later.");
      error.notes.push_back({"it is computed here; bind this expression with 'let' beforehand", binder.location});
      if (sink_) sink_(error);
      return;
    }
  }

  void call(const Expr& function, const std::vector<ExprPtr>& arguments) {
    for (std::size_t k = arguments.size(); k-- > 0;) visit(*arguments[k]);
    visit(function);
  }

  void let(const LetExpr& let) {
    for (const LetBinding& binding : let.bindings) {
      if (const auto* pattern = std::get_if<LetPattern>(&binding.node)) {
        visit(*pattern->value);
      } else if (const auto* update = std::get_if<LetUpdate>(&binding.node)) {
        visit_steps(update->steps);
        visit(*update->value);
        learn_from(binding.id);
      } else {
        const auto& function = std::get<LetFunction>(binding.node);
        apart([&] { visit(*function.body); });
      }
    }
    visit(*let.body);
  }

  void loop(const LoopExpr& loop) {
    if (loop.initial) visit(*loop.initial);
    if (const auto* less = std::get_if<ForLess>(&loop.form)) visit(*less->bound);
    if (const auto* in = std::get_if<ForIn>(&loop.form)) visit(*in->array);
    if (const auto* condition = std::get_if<While>(&loop.form)) apart([&] { visit(*condition->condition); });
    apart([&] { visit(*loop.body); });
  }

  void visit(const Expr& expr) {
    const Ty type = program_.types[expr.id];
    struct Visitor {
      Causality& self;
      const Expr& expr;
      Ty type;

      void operator()(const Literal&) {}
      void operator()(const NumberLiteral&) {}
      void operator()(const StringLiteral&) {}
      void operator()(const Variable& e) {
        self.learn_from(expr.id);
        self.need(type, expr.location, "\"" + e.name.to_string() + "\"");
      }
      void operator()(const TupleExpr& e) {
        std::vector<const Expr*> parts;
        for (const ExprPtr& part : e.elements) parts.push_back(part.get());
        self.visit_apart(parts);
      }
      void operator()(const RecordExpr& e) {
        std::vector<const Expr*> parts;
        for (const auto& field : e.fields) parts.push_back(field.value.get());
        self.visit_apart(parts);
      }
      void operator()(const ArrayExpr& e) {
        std::vector<const Expr*> parts;
        for (const ExprPtr& part : e.elements) parts.push_back(part.get());
        self.visit_apart(parts);
        if (parts.empty()) self.need(type, expr.location, "empty array");
      }
      void operator()(const Project& e) { self.visit(*e.record); }
      void operator()(const LocalOpen& e) { self.visit(*e.body); }
      void operator()(const IndexExpr& e) {
        self.visit(*e.array);
        self.visit_dims(e.dims);
      }
      void operator()(const Call& e) { self.call(*e.function, e.arguments); }
      void operator()(const Negate& e) { self.visit(*e.x); }
      void operator()(const Not& e) { self.visit(*e.x); }
      void operator()(const Infix& e) {
        self.visit(*e.x);
        self.visit(*e.y);
      }
      void operator()(const Section& e) {
        // What its operands compute is not known before they are evaluated.
        self.learn_from(expr.id);
        self.need(type, expr.location, "operator section");
        if (e.left) self.visit(*e.left);
        if (e.right) self.visit(*e.right);
      }
      void operator()(const AccessSection& e) {
        self.learn_from(expr.id);
        self.need(type, expr.location, "projection section");
        self.visit_steps(e.steps);
      }
      void operator()(const LambdaExpr& e) {
        for (const PatternPtr& param : e.params)
          self.need(self.program_.pattern_types[param->id], param->location, "parameter");
        self.apart([&] { self.visit(*e.body); });
      }
      void operator()(const IfExpr& e) {
        std::vector<const Expr*> parts;
        for (const IfArm& arm : e.arms) parts.insert(parts.end(), {arm.condition.get(), arm.value.get()});
        parts.push_back(e.else_value.get());
        self.visit_apart(parts);
      }
      void operator()(const LetExpr& e) { self.let(e); }
      void operator()(const LoopExpr& e) { self.loop(e); }
      void operator()(const Ascribe& e) { self.visit(*e.x); }
      void operator()(const RangeExpr& e) { self.visit_apart({e.start.get(), e.second.get(), e.end.get()}); }
      void operator()(const UpdateExpr& e) {
        self.visit_steps(e.steps);
        self.visit_apart({e.source.get(), e.value.get()});
      }
      void operator()(const AssertExpr& e) { self.visit_apart({e.condition.get(), e.value.get()}); }
      void operator()(const Attributed& e) { self.visit(*e.x); }
      void operator()(const ConstructorExpr& e) {
        std::vector<const Expr*> parts;
        for (const ExprPtr& part : e.arguments) parts.push_back(part.get());
        self.visit_apart(parts);
      }
      void operator()(const MatchExpr& e) {
        self.visit(*e.x);
        std::vector<const Expr*> parts;
        for (const MatchCase& next : e.cases) parts.push_back(next.body.get());
        self.visit_apart(parts);
      }
      void operator()(const Hole&) { self.need(type, expr.location, "hole"); }
    };
    std::visit(Visitor{*this, expr, type}, expr.node);
    learn_from(expr.id);
  }

  const Checked& program_;
  const TypeStore& store_;
  const DiagnosticSink& sink_;
  std::unordered_set<BinderId> computed_;  // by some expression
  std::unordered_set<BinderId> known_;
  std::vector<BinderId> log_;
  bool failed_ = false;
};

}  // namespace

bool check_causality(const Checked& program, const DiagnosticSink& sink) { return Causality(program, sink).run(); }

}  // namespace apl::frontend
