// Application: arguments that are consumed, and what results may alias.
#include <algorithm>
#include <utility>

#include "frontend/consume/checker.h"

namespace apl::frontend {

namespace {

std::string name_of_function(const Expr& expr) {
  const auto* variable = std::get_if<Variable>(&expr.node);
  return variable ? variable->name.to_string() : "";
}

// What a function's result aliases: what the function is closed over and the argument, unless it is unique.
FlowPtr returned(const Aliases& closure, const FlowPtr& type, bool consumes, const FlowPtr& argument) {
  const Aliases all = consumes ? closure : joined(closure, all_aliases(argument));
  return with_aliases(type,
                      [&](const Flow& part) { return part.kind == Flow::Kind::leaf && part.unique ? Aliases{} : all; });
}

bool shares_memory(const FlowPtr& flow) {
  if (flow->kind == Flow::Kind::leaf) return true;
  return std::any_of(flow->fields.begin(), flow->fields.end(), [](const auto& f) { return shares_memory(f.second); });
}

}  // namespace

FlowPtr Consumption::applied(const FlowPtr& function, const std::vector<FlowPtr>& arguments, const std::string& name,
                             const Expr& expr) {
  const VarId result =
      result_variable(name.empty() ? "result of application at " + place(expr.location)
                                   : "result of applying \"" + name + "\" (at " + place(expr.location) + ")");
  FlowPtr flow = with_aliases(function, [&](const Flow& part) {
    return joined(part.aliases, Aliases{{.variable = result, .path = 0, .bound = false}});
  });
  for (const FlowPtr& argument : arguments)
    flow = flow->kind == Flow::Kind::arrow ? returned(flow->aliases, flow->to, flow->consumes, argument) : argument;
  return outlines_.adapted(flow, type_of(expr));
}

// An argument for a function's next parameter; `others` are the arguments that were evaluated before it.
FlowPtr Consumption::argument(const Expr& expr, const Flow* arrow, const std::string& function,
                              const std::vector<Argument>& others) {
  const std::size_t before = consumed_log_.size();
  const FlowPtr flow = check(expr);
  const Ty type = type_of(expr);
  if (consumed_log_.size() > before && store_.contains_function(type))
    report(Code::consume_consuming_argument, expr.location,
           "Argument of functional type " + store_.to_text(type) + " contains consumption, which is not allowed.");
  if (arrow == nullptr) return flow;
  if (arrow->from)
    check_compatible(
        arrow->from, flow, expr.location,
        "Cannot apply " + (function.empty() ? "function" : "\"" + function + "\"") + " to \"" + to_text(expr) + "\"");
  if (!arrow->consumes) return flow;
  check_self_aliases(flow, expr.location);
  const Aliases aliases = all_aliases(flow);
  consume(aliases, expr.location);
  for (const Alias& alias : aliases) {
    for (const Argument& other : others) {
      const Aliases theirs = all_aliases(other.flow);
      const bool shared = alias.bound && std::any_of(theirs.begin(), theirs.end(), [&](const Alias& their) {
                            return their.bound && their.variable == alias.variable;
                          });
      if (!shared) continue;
      report(Code::consume_argument_aliases, expr.location,
             "Argument is consumed, but aliases \"" + name_of(alias.variable) +
                 "\" which is also aliased by other argument \"" + to_text(*other.expr) + "\" at " +
                 place(other.expr->location) + ".");
      return flow;
    }
  }
  return flow;
}

void Consumption::check_self_aliases(const FlowPtr& flow, Location location) {
  Aliases seen;
  pairwise(flow, flow, [&](const FlowPtr& part, const FlowPtr&) {
    const Aliases aliases = all_aliases(part);
    if (overlap(seen, aliases))
      report(Code::consume_self_aliasing_arg, location, "Argument passed for consuming parameter is self-aliased.");
    seen = joined(seen, aliases);
  });
}

// A function may not consume what the caller does not give away, nor keep what is to be unique.
bool Consumption::check_compatible(const FlowPtr& expected, const FlowPtr& actual, Location location,
                                   const std::string& what) {
  bool fits = true;
  pairwise(expected, actual, [&](const FlowPtr& wanted, const FlowPtr& got) {
    if (!fits || wanted->kind != Flow::Kind::arrow || got->kind != Flow::Kind::arrow) return;
    fits = !got->consumes || wanted->consumes;
    if (!fits) {
      report(Code::consume_unify_consuming_param, location,
             what + " (invalid type). Parameters are incompatible regarding consuming their arguments.");
      return;
    }
    fits = !any_unique(wanted->to) || any_unique(got->to) || !shares_memory(got->to);
    if (!fits) {
      report(Code::consume_unify_uniqueness, location,
             what + " (invalid type). Return types have incompatible uniqueness.");
      return;
    }
    if (wanted->from && got->from) fits = check_compatible(got->from, wanted->from, location, what);
    if (fits) fits = check_compatible(wanted->to, got->to, location, what);
  });
  return fits;
}

FlowPtr Consumption::call(const Expr& expr, const Call& call) {
  const FlowPtr function = check(*call.function);
  const std::string name = name_of_function(*call.function);
  std::vector<const Flow*> arrows;
  const Flow* arrow = function.get();
  for (std::size_t k = 0; k < call.arguments.size(); ++k) {
    if (arrow && arrow->kind != Flow::Kind::arrow) arrow = nullptr;
    arrows.push_back(arrow);
    if (arrow) arrow = arrow->to.get();
  }
  // From right to left, as they are evaluated.
  std::vector<Argument> done;
  for (std::size_t k = call.arguments.size(); k-- > 0;) {
    const Expr& argument_expr = *call.arguments[k];
    done.insert(done.begin(), {&argument_expr, argument(argument_expr, arrows[k], name, done)});
  }
  std::vector<FlowPtr> arguments;
  for (const Argument& argument : done) arguments.push_back(argument.flow);
  return applied(function, arguments, name, expr);
}

FlowPtr Consumption::infix(const Expr& expr, const Infix& infix) {
  const auto resolution = program_.names.find(expr.id);
  if (resolution == program_.names.end()) {
    check(*infix.x);
    check(*infix.y);
    return outlines_.of(type_of(expr));
  }
  const FlowPtr op = observe(resolution->second, infix.op.location);
  const std::string name = infix.op.to_string();
  const Flow* first = op->kind == Flow::Kind::arrow ? op.get() : nullptr;
  const Flow* second = first && first->to->kind == Flow::Kind::arrow ? first->to.get() : nullptr;
  const FlowPtr x = argument(*infix.x, first, name, {});
  const FlowPtr y = argument(*infix.y, second, name, {{infix.x.get(), x}});
  return applied(op, {x, y}, name, expr);
}

FlowPtr Consumption::section(const Expr& expr, const Section& section) {
  const auto resolution = program_.names.find(expr.id);
  const FlowPtr op = resolution == program_.names.end() ? outlines_.of(type_of(expr))
                                                        : observe(resolution->second, section.op.location);
  if (!section.left && !section.right) return op;
  const FlowPtr given = check(section.left ? *section.left : *section.right);
  if (op->kind != Flow::Kind::arrow || op->to->kind != Flow::Kind::arrow) return outlines_.of(type_of(expr));
  Flow rest = section.left ? *op->to : *op;
  rest.to = op->to->to;
  rest.aliases = joined(op->aliases, all_aliases(given));
  return make_flow(std::move(rest));
}

}  // namespace apl::frontend
