// Application, operators, sections and functions.
#include <algorithm>
#include <utility>

#include "frontend/types/checker.h"

namespace apl::frontend {

namespace {

// Types whose parts are shared may be far larger written out; those of programs are not.
constexpr std::size_t kMaxResultSize = 2000;

std::string name_of(const Expr& function) {
  const auto* variable = std::get_if<Variable>(&function.node);
  return variable ? variable->name.to_string() : "";
}

std::string counted(std::size_t count) { return std::to_string(count) + (count == 1 ? " argument" : " arguments"); }

}  // namespace

// The types of lifted type parameters among what was instantiated since then.
std::vector<Ty> Checker::lifted_since(std::size_t instances) const {
  std::vector<Ty> types;
  for (; instances < instances_.size(); ++instances)
    if (instances_[instances].lifted) types.push_back(instances_[instances].type);
  return types;
}

Ty Checker::infer_call(const Expr& expr, const Call& call) {
  const std::size_t before = instances_.size();
  const Ty function = infer(*call.function);
  const bool is_name = std::holds_alternative<Variable>(call.function->node);
  std::vector<const Expr*> arguments;
  for (const ExprPtr& argument : call.arguments) arguments.push_back(argument.get());
  return apply(expr, function, name_of(*call.function), arguments, is_name ? lifted_since(before) : std::vector<Ty>());
}

Ty Checker::apply(const Expr& expr, Ty function, const std::string& name, const std::vector<const Expr*>& arguments,
                  std::vector<Ty> lifted) {
  const std::string called = name.empty() ? "" : " \"" + name + "\"";
  const std::string cannot = "Cannot apply" + (name.empty() ? " function" : called);
  std::vector<Ty> wanted;
  for (const Expr* argument : arguments) {
    if (const auto* var = store_.get_if<TyVar>(function); var && var->constraint.scalars == 0) {
      const Ty arrow = store_.arrow(fresh(argument->location), fresh(expr.location));
      if (!unify(function, arrow, expr.location, cannot)) function = store_.error();
    }
    const auto* known = store_.get_if<TyArrow>(function);
    if (known == nullptr) {
      if (!store_.get_if<TyError>(function)) {
        std::string message =
            wanted.empty()
                ? "Cannot apply" + (name.empty() ? " expression" : called) +
                      " as function, as it has non-function type: " + store_.to_text(function)
                : cannot + " to " + counted(arguments.size()) + ": function accepts only " + counted(wanted.size());
        report(Code::type_mismatch, expr.location, std::move(message));
      }
      for (const Expr* rest : arguments) infer(*rest);
      return store_.error();
    }
    const TyArrow arrow = *known;
    wanted.push_back(arrow.from);
    TypeMap here;
    if (arrow.param != kNoId) here.sizes.emplace(arrow.param, size_of_argument(*argument, arrow.from));
    for (BinderId unknown : arrow.unknown)
      here.sizes.emplace(unknown, unknown_size(store_.binder(unknown).name, expr.location, expr.id));
    function = store_.substitute(arrow.to, here);
  }
  Opening opening;
  if (!lifted.empty() && store_.tree_size(function) > kMaxResultSize) lifted.clear();
  if (!lifted.empty()) {
    function = with_own_uses(function, lifted, opening);
    find_taken(wanted, lifted, opening);
  }
  // Functions last: what they are applied to is known then, which makes for better messages.
  bool failed = false;
  const Expr* open = nullptr;  // the argument that binds sizes of the result
  for (const bool lambdas : {false, true}) {
    for (std::size_t k = 0; k < arguments.size(); ++k) {
      if (std::holds_alternative<LambdaExpr>(arguments[k]->node) != lambdas) continue;
      const Ty actual = infer(*arguments[k], wanted[k]);
      if (std::holds_alternative<Hole>(arguments[k]->node))
        holes_.back().what = " arising from use as function argument";
      failed = failed || store_.get_if<TyError>(actual);
      if (failed) continue;  // what follows from a wrong argument is not said
      const auto clash = unifier_.unify_open(wanted[k], actual, lifted, opening.markers);
      if (!opening.markers.empty() && open == nullptr) open = arguments[k];
      if (!clash) continue;
      failed = true;
      const std::string which = arguments.size() == 1 ? "the argument" : "argument " + std::to_string(k + 1);
      mismatch(*clash, arguments[k]->location, wanted[k], actual,
               cannot + " to \"" + to_text(*arguments[k]) + "\": " + which + " does not have expected type");
    }
  }
  if (!pending_.empty()) solve_fields(false);
  if (!pending_constructors_.empty()) solve_constructors(false);
  if (failed) return store_.error();
  if (lifted.empty()) return function;
  if (const auto result = close_uses(function, std::move(opening), expr)) return *result;
  report(Code::type_size_mismatch, open->location,
         cannot + " to \"" + to_text(*open) +
             "\": Existential size would appear in function parameter of return type: a size that is known only once "
             "this function is applied is needed before that");
  return store_.error();
}

Ty Checker::infer_operator(const Expr& expr, const Name& op) { return infer_variable(expr, op); }

Ty Checker::infer_infix(const Expr& expr, const Infix& infix) {
  // `x |> f` is `f x`, also where f's result depends on the value of x.
  const auto resolution = infix.op.qualifiers.empty() ? resolve_simple(infix.op.text) : std::nullopt;
  const bool built_in = resolution && resolution->kind == Resolution::Kind::prelude;
  if (built_in &&
      (resolution->entry->builtin == Builtin::pipe_right || resolution->entry->builtin == Builtin::pipe_left)) {
    const bool right = resolution->entry->builtin == Builtin::pipe_right;
    out_.names[expr.id] = *resolution;
    const Expr& function = right ? *infix.y : *infix.x;
    const Expr& argument = right ? *infix.x : *infix.y;
    const Ty type = infer(function);
    return apply(expr, type, name_of(function), {&argument});
  }
  const std::size_t before = instances_.size();
  const Ty type = infer_operator(expr, infix.op);
  if (built_in && resolution->entry->builtin == Builtin::eq && !resolution->module) comparisons_.back().infix = true;
  return apply(expr, type, infix.op.to_string(), {infix.x.get(), infix.y.get()}, lifted_since(before));
}

Ty Checker::infer_section(const Expr& expr, const Section& section) {
  const Ty op = infer_operator(expr, section.op);
  if (section.left) return apply(expr, op, section.op.to_string(), {section.left.get()});
  if (!section.right) return op;
  const auto* first = store_.get_if<TyArrow>(op);
  const auto* second = first ? store_.get_if<TyArrow>(first->to) : nullptr;
  if (second == nullptr) {
    infer(*section.right);
    if (!store_.get_if<TyError>(op))
      report(Code::type_mismatch, section.op.location,
             "\"" + section.op.to_string() + "\" does not take two arguments");
    return store_.error();
  }
  const TyArrow outer = *first;
  const TyArrow inner = *second;
  TypeMap here;
  if (inner.param != kNoId) here.sizes.emplace(inner.param, size_of_argument(*section.right, inner.from));
  check(*section.right, inner.from,
        "Cannot apply \"" + section.op.to_string() + "\": the right operand does not have expected type");
  return store_.arrow(outer.from, store_.substitute(inner.to, here), outer.param, inner.unknown);
}

Ty Checker::infer_lambda(const LambdaExpr& lambda, Ty expected) {
  Names names;
  return infer_function(lambda.params, lambda.result.get(), *lambda.body, expected, names);
}

// The types that are written in the pattern of a parameter.
void Checker::add_open_parameters(const Pattern& pattern) {
  if (std::holds_alternative<PatternTyped>(pattern.node)) {
    unifier_.add_parameter(out_.pattern_types[pattern.id]);
  } else if (const auto* tuple = std::get_if<PatternTuple>(&pattern.node)) {
    for (const PatternPtr& element : tuple->elements) add_open_parameters(*element);
  } else if (const auto* record = std::get_if<PatternRecord>(&pattern.node)) {
    for (const auto& field : record->fields) add_open_parameters(*field.value);
  } else if (const auto* constructor = std::get_if<PatternConstructor>(&pattern.node)) {
    for (const PatternPtr& part : constructor->payload) add_open_parameters(*part);
  }
}

Ty Checker::infer_function(const std::vector<PatternPtr>& params, const TypeExpr* result, const Expr& body, Ty expected,
                           Names& names) {
  Scope scope(*this);
  const std::uint32_t level = level_;
  std::vector<Ty> types;
  for (const PatternPtr& param : params) {
    // A parameter's type sees the parameters before it, not itself.
    const auto* arrow = expected ? store_.get_if<TyArrow>(expected) : nullptr;
    const Ty type = arrow ? arrow->from : fresh(param->location);
    expected = arrow && arrow->param == kNoId && arrow->unknown.empty() ? arrow->to : Ty{};
    ++level_;
    pattern(*param, type, names);
    require_irrefutable(*param);
    types.push_back(out_.pattern_types[param->id]);
    add_open_parameters(*param);
  }
  ++level_;
  Ty type;
  if (result) {
    type = type_of(*result);
    check_hidden(params, *result, type);
    const Ty declared = with_named_existentials(type, result->location);
    check(body, type, "Function body does not have expected type");
    type = declared;
  } else {
    type = infer(body, expected);
  }
  return close_over(params, types, type, level);
}

// `?[k].([k]t, [n - k]t)`: a size that others are computed from has a name of its own in what callers see.
Ty Checker::with_named_existentials(Ty type, Location location) {
  std::unordered_map<std::uint32_t, Size> computed;
  store_.walk(
      type, [](Ty, const TyNode&) {},
      [&](Size size, const SizeNode& node) {
        if (std::holds_alternative<SizeVar>(node) || std::holds_alternative<SizeName>(node)) return;
        store_.walk_size(size, [&](Size part, const SizeNode& inner) {
          if (std::holds_alternative<SizeVar>(inner)) computed.emplace(part.id, part);
        });
      });
  if (computed.empty()) return type;
  TypeMap named;
  for (const auto& [id, size] : computed)
    named.size_variables.emplace(id, store_.name(store_.add_binder({.kind = Binder::Kind::unknown_size,
                                                                    .name = "this result",
                                                                    .location = location,
                                                                    .level = level_,
                                                                    .type = store_.scalar(ScalarType::i64)})));
  return store_.substitute(type, named);
}

// A result's size can be a parameter, but no part of one.
void Checker::check_hidden(const std::vector<PatternPtr>& params, const TypeExpr& written, Ty result) {
  std::unordered_set<BinderId> mentioned;
  store_.mentioned(result, mentioned);
  for (const PatternPtr& param : params) {
    if (as_name(*param)) continue;
    std::vector<BinderId> inner;
    binders_of(*param, inner);
    for (BinderId binder : inner)
      if (mentioned.contains(binder))
        report(Code::type_size_mismatch, written.location,
               "The return type annotation " + to_text(written) + " refers to the name \"" +
                   store_.binder(binder).name + "\", which is bound to an inner component of a function parameter.");
  }
}

// A function that is a result cannot ask for an array of a size that nobody knows.
void Checker::report_unknown_params(Ty type, const std::vector<BinderId>& unknown, Location location) {
  if (unknown.empty() || !store_.contains_function(type)) return;
  std::vector<Ty> params;
  store_.walk(
      type,
      [&](Ty, const TyNode& node) {
        if (const auto* arrow = std::get_if<TyArrow>(&node)) params.push_back(arrow->from);
      },
      [](Size, const SizeNode&) {});
  for (Ty param : params) {
    std::unordered_set<BinderId> mentioned;
    store_.mentioned(param, mentioned);
    for (BinderId binder : unknown)
      if (mentioned.contains(binder))
        report(Code::type_size_mismatch, location,
               "Cannot generalise: Unknown size \"" + store_.binder(binder).name + "\" in parameter of type " +
                   store_.to_text(param));
  }
}

// A size that is computed from names which callers do not see, nor find as the size of another dim, is unknown to them.
Ty Checker::with_witnesses(Ty type, const Visible& visible, std::uint32_t level) {
  if (std::ranges::all_of(store_.free_sizes(type, level), visible) || store_.tree_size(type) > kMaxResultSize)
    return type;
  std::unordered_set<BinderId> found;
  with_sizes(type, [&](Size size) {
    if (const auto* name = store_.get_if<SizeName>(size)) found.insert(name->binder);
    return size;
  });
  std::vector<std::pair<Size, Size>> known;
  return with_sizes(type, [&](Size size) {
    if (store_.get_if<SizeName>(size)) return size;
    bool reported = true;
    store_.walk_size(size, [&](Size, const SizeNode& node) {
      const auto* name = std::get_if<SizeName>(&node);
      reported = reported && (!name || visible(name->binder) || found.contains(name->binder));
    });
    if (reported) return size;
    for (const auto& [before, unknown] : known)
      if (unifier_.same(before, size)) return unknown;
    const BinderId unknown = store_.add_binder({.kind = Binder::Kind::unknown_size,
                                                .name = "this result",
                                                .location = {},
                                                .level = level + 1,
                                                .type = store_.scalar(ScalarType::i64)});
    known.emplace_back(size, store_.name(unknown));
    return known.back().second;
  });
}

// The arrow over a result. A size that is a parameter's value becomes the arrow's own; other inner sizes exist only
// once the function is applied.
Ty Checker::close_over(const std::vector<PatternPtr>& params, const std::vector<Ty>& types, Ty result,
                       std::uint32_t level) {
  std::vector<BinderId> own;
  for (const PatternPtr& param : params) {
    const Pattern* name = param.get();
    while (const auto* typed = std::get_if<PatternTyped>(&name->node)) name = typed->pattern.get();
    own.push_back(std::holds_alternative<PatternName>(name->node) ? out_.pattern_binders[name->id] : kNoId);
  }
  const std::unordered_set<BinderId> all_own(own.begin(), own.end());
  const auto visible = [&](BinderId binder) {
    return store_.binder(binder).level <= level || all_own.contains(binder);
  };
  result = with_visible_sizes(result, visible);
  result = with_witnesses(result, visible, level);
  std::vector<BinderId> unknown = store_.free_sizes(result, level);
  std::erase_if(unknown, visible);
  report_unknown_params(result, unknown, params.empty() ? Location{} : params.back()->location);
  Ty type = result;
  std::unordered_set<BinderId> mentioned;  // in `type`
  store_.mentioned(type, mentioned);
  for (std::size_t k = params.size(); k-- > 0;) {
    for (BinderId binder : store_.free_sizes(types[k], level))
      if (!all_own.contains(binder))
        report(Code::type_size_mismatch, params[k]->location,
               "Unknown size \"" + store_.binder(binder).name + "\" in parameter of type " + store_.to_text(types[k]) +
                   ": it refers to a size that will not be accessible to the caller, possibly because it is nested in "
                   "a tuple or record.");
    const bool dependent = own[k] != kNoId && mentioned.contains(own[k]);
    type = store_.arrow(types[k], type, dependent ? own[k] : kNoId, std::exchange(unknown, {}));
    store_.mentioned(types[k], mentioned);
  }
  store_.lower_level(type, level);
  return type;
}

}  // namespace apl::frontend
