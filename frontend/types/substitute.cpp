// Types with other types and sizes in place of parameters, names and abstract types.
#include <utility>

#include "frontend/types/types.h"

namespace apl::frontend {

Ty TypeStore::apply(const TypeFunction& function, const std::vector<Ty>& types, const std::vector<Size>& sizes) {
  TypeMap map;
  std::size_t type = 0, size = 0;
  for (const TypeFunction::Param& p : function.params) {
    if (p.is_size && size < sizes.size())
      map.sizes.emplace(p.size, sizes[size++]);
    else if (!p.is_size && type < types.size())
      map.params.emplace(p.type, types[type++]);
  }
  return substitute(function.body, map);
}

// What implements an abstract type may be made of others, which are added behind it.
void TypeStore::reveal() {
  for (std::size_t k = 0; k < types_.size(); ++k) {
    const auto* abstract = std::get_if<TyAbstract>(&types_[k]);
    if (abstract == nullptr || abstract->link) continue;
    const TyAbstract copy = *abstract;
    if (abstracts_[copy.id].accumulator) {
      // How many writes there were, which of them it keeps, whether one to the same place replaces it, its index and
      // its value.
      const Ty number = scalar(ScalarType::i64), truth = scalar(ScalarType::boolean), nothing = unit();
      const auto* array = get_if<TyArray>(copy.types.front());
      const Ty known = array != nullptr ? tuple({number, number, truth, number, Ty(array->element)}) : nothing;
      std::get<TyAbstract>(types_[k]).link = find(known);
      continue;
    }
    if (!abstracts_[copy.id].implementation.body) continue;
    const Ty known = apply(TypeFunction(abstracts_[copy.id].implementation), copy.types, copy.sizes);
    std::get<TyAbstract>(types_[k]).link = find(known);
  }
}

Size TypeStore::substitute(Size size, const TypeMap& map) {
  Done done;
  return substitute(size, map, done);
}

Size TypeStore::substitute(Size size, const TypeMap& map, Done& done) {
  size = find(size);
  const SizeNode node = sizes_[size.id];
  if (const auto* name = std::get_if<SizeName>(&node)) {
    auto found = map.sizes.find(name->binder);
    return found == map.sizes.end() ? size : found->second;
  }
  if (std::holds_alternative<SizeVar>(node)) {
    auto found = map.size_variables.find(size.id);
    return found == map.size_variables.end() ? size : found->second;
  }
  if (auto found = done.sizes.find(size.id); found != done.sizes.end()) return found->second;
  if (const auto* expr = std::get_if<SizeExpr>(&node)) {
    SizeExpr copy = *expr;
    bool changed = false;
    for (Size& part : copy.parts) {
      const Size replaced = substitute(part, map, done);
      changed = changed || replaced != find(part);
      part = replaced;
    }
    const Size result = changed ? size_expr(std::move(copy)) : size;
    done.sizes.emplace(size.id, result);
    return result;
  }
  const auto* op = std::get_if<SizeOp>(&node);
  if (op == nullptr) return size;
  const Size x = substitute(op->x, map, done);
  const Size y = substitute(op->y, map, done);
  const Size result = x == find(op->x) && y == find(op->y) ? size : size_op(op->op, x, y);
  done.sizes.emplace(size.id, result);
  return result;
}

Ty TypeStore::substitute(Ty type, const TypeMap& map) {
  if (map.empty()) return type;
  Done done;
  return substitute(type, map, done);
}

Ty TypeStore::substitute(Ty type, const TypeMap& map, Done& done) {
  type = find(type);
  if (auto found = done.types.find(type.id); found != done.types.end()) return found->second;
  const TyNode node = types_[type.id];  // a copy: the store grows below
  Ty result = type;
  if (const auto* param = std::get_if<TyParam>(&node)) {
    auto found = map.params.find(param->param);
    if (found != map.params.end()) result = found->second;
  } else if (const auto* array = std::get_if<TyArray>(&node)) {
    const Size size = substitute(array->size, map, done);
    const Ty element = substitute(array->element, map, done);
    if (size != find(array->size) || element != find(array->element)) result = this->array(size, element);
  } else if (const auto* record = std::get_if<TyRecord>(&node)) {
    TyRecord copy = *record;
    bool changed = false;
    for (auto& [name, field] : copy.fields) {
      const Ty replaced = substitute(field, map, done);
      changed = changed || replaced != find(field);
      field = replaced;
    }
    if (changed) result = add(std::move(copy));
  } else if (const auto* sum = std::get_if<TySum>(&node)) {
    TySum copy = *sum;
    bool changed = false;
    for (auto& [name, payload] : copy.constructors) changed = substitute_all(payload, map, done) || changed;
    if (changed) result = add(std::move(copy));
  } else if (const auto* abstract = std::get_if<TyAbstract>(&node)) {
    TyAbstract copy = *abstract;
    bool changed = substitute_all(copy.types, map, done);
    for (Size& size : copy.sizes) {
      const Size replaced = substitute(size, map, done);
      changed = changed || replaced != find(size);
      size = replaced;
    }
    const auto found = map.abstracts.find(copy.id);
    if (found != map.abstracts.end())
      result = apply(found->second, copy.types, copy.sizes);
    else if (changed)
      result = add(std::move(copy));
  } else if (const auto* arrow = std::get_if<TyArrow>(&node)) {
    const Ty from = substitute(arrow->from, map, done);
    const Ty to = substitute(arrow->to, map, done);
    if (from != find(arrow->from) || to != find(arrow->to))
      result = this->arrow(from, to, arrow->param, arrow->unknown);
  }
  done.types.emplace(type.id, result);
  return result;
}

bool TypeStore::substitute_all(std::vector<Ty>& types, const TypeMap& map, Done& done) {
  bool changed = false;
  for (Ty& type : types) {
    const Ty replaced = substitute(type, map, done);
    changed = changed || replaced != find(type);
    type = replaced;
  }
  return changed;
}

}  // namespace apl::frontend
