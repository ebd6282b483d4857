// Applying closures: partial application, expansion, and calls of functions of the module.
#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <tuple>
#include <utility>

#include "frontend/lower/lowerer.h"
#include "ir/attributes.h"

namespace apl::frontend {

namespace {

bool is_inline(const Global& global) {
  return std::ranges::any_of(global.declaration->attributes,
                             [](const Attribute& a) { return a.name == attribute::inline_.name; });
}

bool encloses(const Location& outer, const Location& inner) {
  return std::tie(outer.line, outer.column) <= std::tie(inner.line, inner.column) &&
         std::tie(inner.end_line, inner.end_column) <= std::tie(outer.end_line, outer.end_column);
}

}  // namespace

StaticValue Lowerer::apply(const StaticValue& function, const Values& arguments) {
  StaticValue current = function;
  std::size_t given = 0;
  while (given < arguments.size()) {
    const Closure* closure = current.closure();
    if (closure == nullptr) unsupported(location_, "the application of a value that is no function");
    const std::size_t wanted = closure->arity - closure->arguments.size();
    const std::size_t count = std::min(wanted, arguments.size() - given);
    Closure next = *closure;
    next.arguments.insert(next.arguments.end(), arguments.begin() + static_cast<std::ptrdiff_t>(given),
                          arguments.begin() + static_cast<std::ptrdiff_t>(given + count));
    given += count;
    if (count < wanted) return make_closure(std::move(next));
    current = run(next);
  }
  return current;
}

StaticValue Lowerer::run(const Closure& closure) {
  if (++expansions_ > kMaxExpansions) unsupported(location_, "a program whose functions expand to this many calls");
  if (++depth_ > max_depth_) unsupported(location_, "a program nested this deep");
  const Values& arguments = closure.arguments;
  StaticValue result;
  if (const auto* lambda = std::get_if<Closure::Lambda>(&closure.what)) {
    Frame* frame = make_frame(lambda->frame);
    // What stands in the expression that applies it is part of that expression.
    if (frame->call != location_.call || !encloses(location_, lambda->body->location))
      frame->call = calls_.add(location_);
    Frame* outer = std::exchange(frame_, frame);
    for (const auto& [param, argument] : ranges::views::zip(*lambda->params, arguments)) bind_param(*param, argument);
    result = lower(*lambda->body);
    frame_ = outer;
  } else if (const auto* definition = std::get_if<Closure::Definition>(&closure.what)) {
    result = call_definition(*definition, arguments);
  } else if (const auto* builtin = std::get_if<Closure::Builtin>(&closure.what)) {
    result = run_builtin(*builtin, arguments);
  } else if (const auto* section = std::get_if<Closure::RightSection>(&closure.what)) {
    result = apply(section->function, {arguments[0], section->right});
  } else if (const auto* hole = std::get_if<Closure::HoleFunction>(&closure.what)) {
    const TyArrow arrow = *store_.get_if<TyArrow>(hole->type.type);
    result = hole_value({arrow.to, hole->type.frame});
  } else {
    const auto& access = std::get<Closure::Access>(closure.what);
    Frame* outer = std::exchange(frame_, access.frame);
    result = this->access(arguments[0], std::get<AccessSection>(access.section->node).steps);
    frame_ = outer;
  }
  --depth_;
  return result;
}

void Lowerer::bind_param(const Pattern& param, const StaticValue& argument) {
  bind_sizes(checked_.pattern_types[param.id], argument);
  bind_pattern(param, argument);
}

StaticValue Lowerer::use_definition(const Closure::Definition& definition) {
  const Definition& source = *checked_.globals[definition.global].definition;
  if (source.params.empty()) return use_constant(definition);
  return make_closure({.what = definition, .arity = source.params.size(), .arguments = {}});
}

// A frame for the definition's body, its sizes bound by the shapes of the arguments or else by the use.
Frame* Lowerer::definition_frame(const Closure::Definition& definition, const Values& arguments) {
  const Global& global = checked_.globals[definition.global];
  Frame* frame = make_frame(nullptr);
  frame->call = calls_.add(location_);
  if (definition.use) {
    for (const auto& [param, type] : definition.use->instance.params) frame->types[param] = {type, definition.frame};
    for (const auto& [binder, size] : definition.use->instance.sizes) frame->sizes[binder] = {size, definition.frame};
  }
  Frame* outer = std::exchange(frame_, frame);
  const auto& params = global.definition->params;
  for (const auto& [param, argument] : ranges::views::zip(params, arguments))
    bind_sizes(checked_.pattern_types[param->id], argument);
  compute_sizes(frame);
  frame_ = outer;
  return frame;
}

StaticValue Lowerer::expand_definition(const Closure::Definition& definition, const Values& arguments) {
  const Definition& source = *checked_.globals[definition.global].definition;
  if (++depth_ > max_depth_) unsupported(location_, "a program nested this deep");
  Frame* outer = std::exchange(frame_, definition_frame(definition, arguments));
  for (const auto& [param, argument] : ranges::views::zip(source.params, arguments)) bind_pattern(*param, argument);
  StaticValue result = lower(*source.body);
  frame_ = outer;
  --depth_;
  return result;
}

bool Lowerer::takes_functions(Ty type) const {
  for (const auto* arrow = store_.get_if<TyArrow>(type); arrow != nullptr; arrow = store_.get_if<TyArrow>(arrow->to))
    if (store_.contains_function(arrow->from)) return true;
  return false;
}

StaticValue Lowerer::call_definition(const Closure::Definition& definition, const Values& arguments) {
  const Global& global = checked_.globals[definition.global];
  Ty result = global.type;
  for (std::size_t k = 0; k < arguments.size(); ++k) result = store_.get_if<TyArrow>(result)->to;
  // A constructor without the function that others of its type have is no value of the module either.
  const bool first_order =
      std::all_of(arguments.begin(), arguments.end(), [&](const auto& a) { return a.is_first_order(); }) &&
      !takes_functions(global.type);
  // A type parameter of the result cannot be a function: the arguments are none.
  if (!first_order || store_.contains_function(result) || is_inline(global))
    return expand_definition(definition, arguments);
  if (auto called = call_instance(definition, arguments)) return *called;
  return expand_definition(definition, arguments);
}

// A call of the module's function for these types; nullopt where only expansion keeps what is known of sizes.
std::optional<StaticValue> Lowerer::call_instance(const Closure::Definition& definition, const Values& arguments) {
  const Global& global = checked_.globals[definition.global];
  Frame* frame = definition_frame(definition, arguments);
  std::vector<SizeArgument> inner_sizes;
  InstanceKey key{definition.global, {}, {}};
  for (ParamId param : global.type_params) {
    auto type = frame->types.find(param);
    if (type == frame->types.end() || store_.tree_size(type->second.type) > kMaxLeaves) return std::nullopt;
    key.types.push_back(without_sizes(type->second.type, type->second.frame, inner_sizes, key.sizes));
  }
  std::vector<Poly> sizes;
  for (BinderId binder : global.sizes) {
    const auto size = binder_size(binder, frame);
    if (!size) return std::nullopt;
    sizes.push_back(*size);
  }
  for (const SizeArgument& size : inner_sizes) {
    const auto value = size_value(size.size, size.frame);
    if (!value) return std::nullopt;
    sizes.push_back(*value);
  }
  const Instance* callee = instance(key);
  if (callee == nullptr || !callee->callable) return std::nullopt;
  if (in_derivative_ && !callee->function->result_sizes.empty()) return std::nullopt;
  return emit_call(*callee, sizes, arguments);
}

std::optional<StaticValue> Lowerer::emit_call(const Instance& callee, const std::vector<Poly>& sizes,
                                              const Values& arguments) {
  const Function& function = *callee.function;
  std::unordered_map<Value, Poly> actual;
  Apply call{function.name, {}};
  for (const auto& [size, name] : ranges::views::zip(sizes, function.sizes)) {
    const auto operand = as_operand(size);
    if (!operand) return std::nullopt;
    call.arguments.push_back(*operand);
    actual.emplace(name, size);
  }
  std::vector<StaticValue> parts;
  for (const StaticValue& argument : arguments)
    map_leaves(argument, [&](const StaticValue& leaf) { return parts.push_back(leaf), leaf; });
  if (parts.size() != function.params.size()) return std::nullopt;
  // Sizes that only the shapes of arguments tell.
  for (std::size_t k = sizes.size(); k < function.sizes.size(); ++k) {
    std::optional<Operand> size;
    for (std::size_t p = 0; p < parts.size() && !size; ++p) {
      const std::vector<Poly> wanted = function.type(function.params[p]).shape;
      const std::vector<Poly> given = shape(parts[p]);
      for (std::size_t d = 0; d < wanted.size() && d < given.size() && !size; ++d)
        if (wanted[d] == Poly(function.sizes[k])) {
          size = operand(StaticValue(given[d]));
          actual.emplace(function.sizes[k], given[d]);
        }
    }
    if (!size) return std::nullopt;
    call.arguments.push_back(*size);
  }
  for (const auto& [part, param] : ranges::views::zip(parts, function.params))
    if (const Poly* index = part.index()) actual.emplace(param, *index);
  const auto replace = [&](Value symbol) -> std::optional<Poly> {
    auto found = actual.find(symbol);
    return found == actual.end() ? std::nullopt : std::optional(found->second);
  };
  auto here = [&](Type type) {
    for (Poly& size : type.shape) size = size.substitute(replace);
    type.unique = false;
    return type;
  };
  const std::size_t decided = function.result_sizes.size();
  std::vector<Type> results(decided, Type::scalar(ScalarType::i64));
  for (const Type& type : function.results) results.push_back(here(type));
  // A size that is no name here would lose what it is made of on its way through the call.
  for (const auto& [part, param] : ranges::views::zip(parts, function.params)) {
    const Poly* index = part.index();
    if (index == nullptr || as_operand(*index)) continue;
    for (const Type& type : function.results)
      for (const Poly& size : type.shape)
        if (size.mentions(param)) return std::nullopt;
  }
  for (const auto& [part, param] : ranges::views::zip(parts, function.params))
    call.arguments.push_back(operand(coerced(part, here(function.type(param)).shape)));
  std::vector<std::string> names(decided, "d");
  names.resize(results.size(), "r");
  const std::vector<Value> values = builder_->let_typed(names, results, std::move(call));
  // Sizes that the function decides are the call's first results.
  for (std::size_t s = 0; s < decided; ++s) {
    actual.emplace(function.result_sizes[s], Poly(values[s]));
    know_count(Poly(values[s]));
  }
  for (std::size_t k = decided; k < values.size() && decided > 0; ++k)
    builder_->values().set_type(values[k], here(function.results[k - decided]));
  return with_leaves(callee.value, {values.begin() + static_cast<std::ptrdiff_t>(decided), values.end()});
}

}  // namespace apl::frontend
