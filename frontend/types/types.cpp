#include "frontend/types/types.h"

#include <algorithm>

namespace apl::frontend {

namespace {

constexpr std::size_t kScalarTypes = 14;

// Numbers in order, then names in order: field 10 comes after field 9.
bool field_before(const std::string& a, const std::string& b) {
  const bool a_number = a[0] >= '0' && a[0] <= '9';
  const bool b_number = b[0] >= '0' && b[0] <= '9';
  if (a_number && b_number && a.size() != b.size()) return a.size() < b.size();
  return a < b;
}

}  // namespace

TypeStore::TypeStore() {
  for (std::size_t k = 0; k < kScalarTypes; ++k) scalars_.push_back(add(TyScalar{static_cast<ScalarType>(k)}));
  error_ = add(TyError{});
  unit_ = add(TyRecord{});
}

Ty TypeStore::add(TyNode node) {
  types_.push_back(std::move(node));
  return Ty{static_cast<std::uint32_t>(types_.size() - 1)};
}

Size TypeStore::add(SizeNode node) {
  sizes_.push_back(std::move(node));
  return Size{static_cast<std::uint32_t>(sizes_.size() - 1)};
}

Ty TypeStore::variable(std::uint32_t level, Location origin, Constraint constraint) {
  return add(TyVar{{}, level, constraint, origin});
}

Size TypeStore::size_variable(std::uint32_t level, Location origin, BinderId param) {
  return add(SizeVar{{}, level, origin, param});
}
Size TypeStore::constant(std::int64_t value) { return add(SizeConst{value}); }
Size TypeStore::name(BinderId binder) { return add(SizeName{binder}); }

// Operations keep their form, also on numbers, so that `[2 + 3]t` fits `[n + m]t`.
Size TypeStore::size_op(char op, Size x, Size y) { return add(SizeOp{op, x, y}); }

Size TypeStore::size_expr(SizeExpr expr) {
  // A part of a tuple or record that is written is that part.
  const auto* record = expr.kind == SizeExpr::Kind::field ? get_if<SizeExpr>(expr.parts.front()) : nullptr;
  if (record && record->kind == SizeExpr::Kind::other && !record->fields.empty()) {
    const auto field = std::find(record->fields.begin(), record->fields.end(), expr.text);
    if (field != record->fields.end())
      return find(record->parts[static_cast<std::size_t>(field - record->fields.begin())]);
  }
  // A function that turned out to be + - * makes a polynomial.
  if (expr.kind == SizeExpr::Kind::call && expr.parts.size() == 3) {
    const auto* function = get_if<SizeExpr>(expr.parts.front());
    const bool prelude = function && function->kind == SizeExpr::Kind::name && function->identity == 0;
    for (const char op : {'+', '-', '*'})
      if (prelude && (function->text == std::string(1, op) || function->text == std::string("i64.") + op))
        return size_op(op, expr.parts[1], expr.parts[2]);
  }
  return add(std::move(expr));
}

std::optional<SizeParts> TypeStore::parts_of(Size size) const {
  if (const auto* expr = get_if<SizeExpr>(size)) {
    SizeParts result{expr->kind, expr->text, expr->identity, expr->parts};
    // A call of an operator that is a name is that operator's.
    const auto* name = expr->kind == SizeExpr::Kind::call ? get_if<SizeExpr>(expr->parts.front()) : nullptr;
    if (name && name->kind == SizeExpr::Kind::name) {
      result.text = name->text;
      result.identity = name->identity;
      result.parts.erase(result.parts.begin());
    }
    return result;
  }
  if (const auto* constant = get_if<SizeConst>(size))
    return SizeParts{SizeExpr::Kind::literal, std::to_string(constant->value), 0, {}};
  const auto* op = get_if<SizeOp>(size);
  if (op == nullptr) return std::nullopt;
  return SizeParts{SizeExpr::Kind::call, std::string(1, op->op), 0, {op->x, op->y}};
}

bool TypeStore::is_polynomial(Size size) const {
  bool result = true;
  walk_size(size, [&](Size, const SizeNode& node) { result = result && !std::holds_alternative<SizeExpr>(node); });
  return result;
}

Ty TypeStore::tuple(const std::vector<Ty>& elements) {
  if (elements.empty()) return unit_;
  TyRecord record;
  for (std::size_t k = 0; k < elements.size(); ++k) record.fields.emplace_back(std::to_string(k), elements[k]);
  return add(std::move(record));
}

Ty TypeStore::record(std::vector<std::pair<std::string, Ty>> fields) {
  std::sort(fields.begin(), fields.end(), [](const auto& a, const auto& b) { return field_before(a.first, b.first); });
  return add(TyRecord{std::move(fields)});
}

Ty TypeStore::sum(std::vector<std::pair<std::string, std::vector<Ty>>> constructors) {
  std::sort(constructors.begin(), constructors.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return add(TySum{std::move(constructors)});
}

AbstractId TypeStore::add_abstract(AbstractInfo info) {
  abstracts_.push_back(std::move(info));
  return static_cast<AbstractId>(abstracts_.size() - 1);
}

TypeFunction TypeStore::abstract_function(AbstractId id, std::vector<TypeFunction::Param> params) {
  std::vector<Ty> types;
  std::vector<Size> sizes;
  for (const TypeFunction::Param& p : params) {
    if (p.is_size)
      sizes.push_back(name(p.size));
    else
      types.push_back(param(p.type));
  }
  return {std::move(params), abstract(id, std::move(types), std::move(sizes))};
}

BinderId TypeStore::add_binder(Binder binder) {
  binders_.push_back(std::move(binder));
  return static_cast<BinderId>(binders_.size() - 1);
}

ParamId TypeStore::add_param(TypeParamInfo info) {
  params_.push_back(std::move(info));
  return static_cast<ParamId>(params_.size() - 1);
}

bool TypeStore::is_abstract(Ty type) const {
  for (const auto* var = std::get_if<TyVar>(&types_[type.id]); var != nullptr && var->link;
       var = std::get_if<TyVar>(&types_[type.id]))
    type = var->link;
  return std::holds_alternative<TyAbstract>(types_[type.id]);
}

Ty TypeStore::find(Ty type) const {
  for (;;) {
    Ty link;
    if (const auto* var = std::get_if<TyVar>(&types_[type.id]))
      link = var->link;
    else if (const auto* abstract = std::get_if<TyAbstract>(&types_[type.id]))
      link = abstract->link;
    if (!link) return type;
    type = link;
  }
}

Size TypeStore::find(Size size) const {
  for (;;) {
    const auto* var = std::get_if<SizeVar>(&sizes_[size.id]);
    if (var == nullptr || !var->link) return size;
    size = var->link;
  }
}

bool TypeStore::is_tuple(const TyRecord& record) const {
  for (std::size_t k = 0; k < record.fields.size(); ++k)
    if (record.fields[k].first != std::to_string(k)) return false;
  return record.fields.size() != 1;
}

std::optional<ScalarType> TypeStore::as_scalar(Ty type) const {
  const auto* scalar = get_if<TyScalar>(type);
  return scalar ? std::optional(scalar->type) : std::nullopt;
}

bool TypeStore::contains_function(Ty type) const {
  bool found = false;
  walk(
      type, [&](Ty, const TyNode& node) { found = found || std::holds_alternative<TyArrow>(node); },
      [](Size, const SizeNode&) {});
  return found;
}

bool TypeStore::mentions(Size size, BinderId binder) const {
  bool found = false;
  walk_size(size, [&](Size, const SizeNode& node) {
    const auto* name = std::get_if<SizeName>(&node);
    found = found || (name && name->binder == binder);
  });
  return found;
}

bool TypeStore::mentions(Ty type, BinderId binder) const {
  bool found = false;
  walk(
      type, [](Ty, const TyNode&) {},
      [&](Size, const SizeNode& node) {
        const auto* name = std::get_if<SizeName>(&node);
        found = found || (name && name->binder == binder);
      });
  return found;
}

void TypeStore::mentioned(Ty type, std::unordered_set<BinderId>& into) const {
  walk(
      type, [](Ty, const TyNode&) {},
      [&](Size, const SizeNode& node) {
        if (const auto* name = std::get_if<SizeName>(&node)) into.insert(name->binder);
      });
}

std::vector<BinderId> TypeStore::free_sizes(Ty type, std::uint32_t level) const {
  std::vector<BinderId> free;
  std::unordered_set<BinderId> seen, bound;
  walk(
      type,
      [&](Ty, const TyNode& node) {
        const auto* arrow = std::get_if<TyArrow>(&node);
        if (arrow == nullptr) return;
        bound.insert(arrow->param);
        bound.insert(arrow->unknown.begin(), arrow->unknown.end());
      },
      [&](Size, const SizeNode& node) {
        const auto* name = std::get_if<SizeName>(&node);
        if (name && binders_[name->binder].level > level && seen.insert(name->binder).second)
          free.push_back(name->binder);
      });
  std::erase_if(free, [&](BinderId binder) { return bound.contains(binder); });
  return free;
}

std::optional<ParamId> TypeStore::free_param(Ty type, std::uint32_t level) const {
  std::optional<ParamId> found;
  walk(
      type,
      [&](Ty, const TyNode& node) {
        const auto* param = std::get_if<TyParam>(&node);
        if (param && params_[param->param].level > level) found = param->param;
      },
      [](Size, const SizeNode&) {});
  return found;
}

std::size_t TypeStore::tree_size(Ty type) const {
  std::unordered_map<std::uint32_t, std::size_t> done;
  return tree_size(type, done);
}

std::size_t TypeStore::tree_size(Ty type, std::unordered_map<std::uint32_t, std::size_t>& done) const {
  type = find(type);
  if (auto found = done.find(type.id); found != done.end()) return found->second;
  std::size_t size = 1;
  const TyNode& node = types_[type.id];
  if (const auto* array = std::get_if<TyArray>(&node)) size += tree_size(array->element, done);
  if (const auto* arrow = std::get_if<TyArrow>(&node))
    size += tree_size(arrow->from, done) + tree_size(arrow->to, done);
  if (const auto* record = std::get_if<TyRecord>(&node))
    for (const auto& [name, field] : record->fields) size += tree_size(field, done);
  if (const auto* sum = std::get_if<TySum>(&node))
    for (const auto& [name, payload] : sum->constructors)
      for (Ty part : payload) size += tree_size(part, done);
  if (const auto* abstract = std::get_if<TyAbstract>(&node))
    for (Ty part : abstract->types) size += tree_size(part, done);
  size = std::min(size, SIZE_MAX / 8);
  done.emplace(type.id, size);
  return size;
}

void TypeStore::bind(Ty variable, Ty to) { std::get<TyVar>(types_[find(variable).id]).link = find(to); }
void TypeStore::bind(Size variable, Size to) { std::get<SizeVar>(sizes_[find(variable).id]).link = find(to); }

void TypeStore::constrain(Ty variable, const Constraint& constraint) {
  std::get<TyVar>(types_[find(variable).id]).constraint = constraint;
}

void TypeStore::lower_level(Size size, std::uint32_t level) {
  std::vector<Size> open;
  walk_size(size, [&](Size s, const SizeNode& node) {
    if (const auto* var = std::get_if<SizeVar>(&node); var && var->level > level) open.push_back(s);
  });
  for (Size s : open) std::get<SizeVar>(sizes_[s.id]).level = level;
}

void TypeStore::lower_level(Ty type, std::uint32_t level) {
  std::vector<Ty> types;
  std::vector<Size> sizes;
  walk(
      type,
      [&](Ty t, const TyNode& node) {
        if (const auto* var = std::get_if<TyVar>(&node); var && var->level > level) types.push_back(t);
      },
      [&](Size s, const SizeNode& node) {
        if (const auto* var = std::get_if<SizeVar>(&node); var && var->level > level) sizes.push_back(s);
      });
  for (Ty t : types) std::get<TyVar>(types_[t.id]).level = level;
  for (Size s : sizes) std::get<SizeVar>(sizes_[s.id]).level = level;
}

}  // namespace apl::frontend
