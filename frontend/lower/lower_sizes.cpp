// Values of sizes: those of names, polynomials, and what other operations compute where their value is needed.
#include <utility>

#include "frontend/lower/lowerer.h"
#include "frontend/syntax/children.h"

namespace apl::frontend {

std::optional<Poly> Lowerer::binder_size(BinderId binder, Frame* frame) {
  if (const StaticValue* value = find(binder, frame)) {
    if (const Poly* poly = value->index()) return *poly;
    return std::nullopt;
  }
  for (Frame* f = frame; f != nullptr; f = f->parent)
    if (auto found = f->sizes.find(binder); found != f->sizes.end()) {
      const auto size = size_value(found->second.size, found->second.frame);
      if (size && store_.is_polynomial(found->second.size)) f->values[binder] = StaticValue(*size);
      return size;
    }
  if (auto global = checked_.global_sizes.find(binder); global != checked_.global_sizes.end()) {
    return index(expand_definition({global->second, nullptr, nullptr}, {}));
  }
  return std::nullopt;
}

std::optional<Poly> Lowerer::size_value(Size size, Frame* frame) {
  std::unordered_map<std::uint32_t, std::optional<Poly>> done;
  return size_value(store_.find(size), frame, done);
}

std::optional<Poly> Lowerer::size_value(Size size, Frame* frame,
                                        std::unordered_map<std::uint32_t, std::optional<Poly>>& done) {
  if (auto found = done.find(size.id); found != done.end()) return found->second;
  if (++depth_ > max_depth_) unsupported(location_, "a program nested this deep");
  std::optional<Poly> result;
  const SizeNode node = store_.node(size);
  if (const auto* constant = std::get_if<SizeConst>(&node)) {
    result = Poly(constant->value);
  } else if (const auto* name = std::get_if<SizeName>(&node)) {
    result = binder_size(name->binder, frame);
  } else if (const auto* op = std::get_if<SizeOp>(&node)) {
    const auto x = size_value(store_.find(op->x), frame, done);
    const auto y = x ? size_value(store_.find(op->y), frame, done) : std::nullopt;
    if (y) result = op->op == '+' ? *x + *y : op->op == '-' ? *x - *y : *x * *y;
    if (result) limited(*result);
  } else if (const auto* expr = std::get_if<SizeExpr>(&node); expr && is_computable(size, frame)) {
    result = index(computed(*expr, frame));
  }
  --depth_;
  done.emplace(size.id, result);
  return result;
}

// Whether all that a size is computed from has a value here.
bool Lowerer::is_computable(Size size, Frame* frame) {
  bool known = true;
  store_.walk_size(size, [&](Size, const SizeNode& node) {
    if (std::holds_alternative<SizeVar>(node)) known = false;
    if (const auto* name = std::get_if<SizeName>(&node))
      known = known && (find(name->binder, frame) != nullptr || is_bound(name->binder, frame));
    const auto* expr = std::get_if<SizeExpr>(&node);
    if (expr == nullptr || expr->kind != SizeExpr::Kind::name) return;
    // How a polymorphic definition is used was said where the size was written, in names that may mean nothing here.
    const auto use = checked_.names.find(expr->expr->id);
    known = known && use != checked_.names.end();
    if (!known || use->second.kind != Resolution::Kind::global) return;
    for (const auto& [param, type] : use->second.instance.params)
      store_.walk(
          type, [&](Ty t, const TyNode&) { known = known && !store_.get_if<TyParam>(resolve_type(t, frame).type); },
          [](Size, const SizeNode&) {});
  });
  return known;
}

// Whether the use of a function says what the size is, or it is a constant of the program.
bool Lowerer::is_bound(BinderId binder, Frame* frame) {
  for (Frame* f = frame; f != nullptr; f = f->parent)
    if (auto found = f->sizes.find(binder); found != f->sizes.end())
      return is_computable(found->second.size, found->second.frame);
  return checked_.global_sizes.contains(binder);
}

StaticValue Lowerer::part_value(Size part, Frame* frame) {
  const SizeNode node = store_.node(part);
  if (const auto* expr = std::get_if<SizeExpr>(&node)) return computed(*expr, frame);
  const auto* name = std::get_if<SizeName>(&node);
  if (const StaticValue* value = name ? find(name->binder, frame) : nullptr) return *value;
  if (const auto size = size_value(part, frame)) return StaticValue(*size);
  // Inside of a conversion, of numbers of another type: `i64.i32 (a * b)`.
  if (const auto* op = std::get_if<SizeOp>(&node)) {
    const StaticValue x = part_value(op->x, frame), y = part_value(op->y, frame);
    return binary(op->op == '+' ? BinaryOp::add : op->op == '-' ? BinaryOp::sub : BinaryOp::mul, x, y);
  }
  unsupported(location_, "the size \"" + store_.to_text(part) + "\", which no argument fixes,");
}

StaticValue Lowerer::computed(const SizeExpr& size, Frame* frame) {
  switch (size.kind) {
    case SizeExpr::Kind::name: {
      const Resolution& use_there = checked_.names.at(size.expr->id);
      Frame* outer = std::exchange(frame_, frame);
      // Fields of what is named are operations of their own.
      const Resolution* use = &use_there;
      if (!use->fields.empty()) {
        size_names_.push_back(use_there);
        size_names_.back().fields.clear();
        use = &size_names_.back();
      }
      StaticValue result = this->use(*use);
      frame_ = outer;
      return result;
    }
    case SizeExpr::Kind::field: return project(part_value(size.parts[0], frame), size.text);
    case SizeExpr::Kind::call: {
      const StaticValue function = part_value(size.parts[0], frame);
      Values arguments;
      for (std::size_t k = 1; k < size.parts.size(); ++k) arguments.push_back(part_value(size.parts[k], frame));
      return apply(function, arguments);
    }
    default: break;
  }
  // The expression itself, with its children standing for the parts.
  std::vector<std::pair<const Expr*, std::optional<SizeArgument>>> before;
  std::size_t next = 0;
  for_each_child(*size.expr, [&](const Expr& child) {
    const auto old = size_parts_.find(&child);
    before.emplace_back(&child, old == size_parts_.end() ? std::nullopt : std::optional(old->second));
    size_parts_[&child] = {size.parts[next++], frame};
  });
  Frame* outer = std::exchange(frame_, frame);
  StaticValue result = lower_node(*size.expr);
  frame_ = outer;
  for (const auto& [child, old] : before) {
    if (old)
      size_parts_[child] = *old;
    else
      size_parts_.erase(child);
  }
  return result;
}

// Sizes that the use of a function gives as more than polynomials, and its arguments' shapes do not: computed where all
// of the function sees them.
void Lowerer::compute_sizes(Frame* frame) {
  for (const auto& [binder, size] : frame->sizes)
    if (!frame->values.contains(binder) && !store_.is_polynomial(size.size))
      if (const auto value = size_value(size.size, size.frame)) frame->values[binder] = StaticValue(*value);
}

}  // namespace apl::frontend
