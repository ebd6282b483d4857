// Frames: what names, type parameters and sizes stand for while a body is lowered.
#include <utility>

#include "frontend/lower/lowerer.h"

namespace apl::frontend {

namespace {

// Sizes that people write have a few terms.
constexpr std::size_t kMaxPolyTerms = 200;
constexpr std::size_t kMaxSizeDegree = 40;

}  // namespace

// The size, unless it has grown beyond all use: sizes of sizes may double with each step.
const Poly& Lowerer::limited(const Poly& size) {
  bool small = size.terms().size() <= kMaxPolyTerms;
  for (const Term& term : size.terms()) small = small && term.factors.size() <= kMaxSizeDegree;
  if (!small) unsupported(location_, "a size of this many terms");
  return size;
}

Frame* Lowerer::make_frame(Frame* parent) {
  Frame& frame = frames_.emplace_back();
  frame.parent = parent;
  if (parent != nullptr) frame.call = parent->call;
  return &frame;
}

const StaticValue* Lowerer::find(BinderId binder, Frame* frame) const {
  for (; frame != nullptr; frame = frame->parent)
    if (auto found = frame->values.find(binder); found != frame->values.end()) return &found->second;
  return nullptr;
}

StaticValue Lowerer::lookup(BinderId binder) {
  if (const StaticValue* value = find(binder, frame_)) return *value;
  if (auto size = binder_size(binder, frame_)) return StaticValue(*size);
  unsupported(location_, "the size \"" + store_.binder(binder).name + "\", which no argument fixes,");
}

bool Lowerer::is_abstract(const TypeArgument& type) const {
  if (store_.is_abstract(type.type)) return true;
  const auto* param = store_.get_if<TyParam>(type.type);
  if (param == nullptr) return false;
  const Frame* f = type.frame;
  while (f != nullptr && f->types.count(param->param) == 0) f = f->parent;
  return f != nullptr && is_abstract(f->types.at(param->param));
}

TypeArgument Lowerer::resolve_type(Ty type, Frame* frame) const {
  for (;;) {
    type = store_.find(type);
    const auto* param = store_.get_if<TyParam>(type);
    if (param == nullptr) return {type, frame};
    const Frame* f = frame;
    while (f != nullptr && f->types.count(param->param) == 0) f = f->parent;
    if (f == nullptr) return {type, frame};
    const TypeArgument& argument = f->types.at(param->param);
    type = argument.type;
    frame = argument.frame;
  }
}

ScalarType Lowerer::scalar_type(Ty type) const {
  return store_.as_scalar(resolve_type(type, frame_).type).value_or(ScalarType::i32);
}

// Statements that no name of the program stands for yet are called after the first one that does.
void Lowerer::name_value(const StaticValue& value, const std::string& name) {
  std::optional<Value> target;
  if (const Operand* operand = value.operand(); operand && operand->is_value()) target = operand->value();
  if (const Poly* poly = value.index()) target = poly->symbol();
  if (!target) return;
  if (named_.size() <= target->id) named_.resize(target->id + 1);
  if (std::exchange(named_[target->id], 1) == 0) builder_->values().set_name(*target, name);
}

void Lowerer::bind_pattern(const Pattern& pattern, const StaticValue& value) {
  if (const auto* name = std::get_if<PatternName>(&pattern.node)) {
    name_value(value, name->name);
    frame_->values[checked_.pattern_binders[pattern.id]] = value;
  } else if (const auto* typed = std::get_if<PatternTyped>(&pattern.node)) {
    std::vector<Poly> outer;
    const bool checked = checked_.checked_patterns.contains(pattern.id);
    bind_pattern(*typed->pattern, checked ? coerce_to(checked_.pattern_types[pattern.id], value, outer) : value);
  } else if (const auto* tuple = std::get_if<PatternTuple>(&pattern.node)) {
    for (std::size_t k = 0; k < tuple->elements.size(); ++k)
      bind_pattern(*tuple->elements[k], project(value, std::to_string(k)));
  } else if (const auto* record = std::get_if<PatternRecord>(&pattern.node)) {
    for (const auto& field : record->fields) bind_pattern(*field.value, project(value, field.name));
  } else if (const auto* constructor = std::get_if<PatternConstructor>(&pattern.node)) {
    bind_constructor(pattern, *constructor, value);
  }
}

// The value is called what it is called.
void Lowerer::keep_name(Value value) {
  if (named_.size() <= value.id) named_.resize(value.id + 1);
  named_[value.id] = 1;
}

// Sizes that are not known yet, from the shape of a value of that type. The shape of a tuple of arrays is found in
// each, below the dims of the array that they were all in.
void Lowerer::bind_sizes(Ty type, const StaticValue& value, std::size_t dim) {
  const TyNode node = store_.node(type);
  if (const auto* array = std::get_if<TyArray>(&node)) {
    const auto* name = store_.get_if<SizeName>(array->size);
    if (name && !find(name->binder, frame_)) {
      const std::vector<Poly> dims = shape(value);
      if (dim < dims.size()) frame_->values[name->binder] = StaticValue(dims[dim]);
    }
    bind_sizes(array->element, value, dim + 1);
  } else if (const auto* record = std::get_if<TyRecord>(&node)) {
    for (const auto& [label, field] : record->fields)
      if (const StaticValue* part = value.field(label)) bind_sizes(field, *part, dim);
  } else if (std::holds_alternative<TySum>(node) && value.fields() != nullptr) {
    for (const auto& constructor : sum_layout({type, frame_}).constructors)
      for (const auto& part : constructor.parts) bind_sizes(part.type, payload(value, part, frame_), dim);
  }
}

// Sizes that exist only now that the expression has been evaluated.
void Lowerer::bind_unknown(std::uint32_t expr, Ty type, const StaticValue& value) {
  auto unknown = checked_.unknown_sizes.find(expr);
  if (unknown == checked_.unknown_sizes.end()) return;
  forget(unknown->second);
  bind_sizes(type, value);
}

void Lowerer::forget(const std::vector<BinderId>& sizes) {
  for (BinderId binder : sizes) frame_->values.erase(binder);
}

// `let [n] (xs: [n]t)`: what the types in the pattern say.
void Lowerer::bind_let_sizes(const Pattern& pattern, const StaticValue& value) {
  if (const auto* typed = std::get_if<PatternTyped>(&pattern.node)) {
    bind_sizes(checked_.pattern_types[pattern.id], value);
    bind_let_sizes(*typed->pattern, value);
  } else if (const auto* tuple = std::get_if<PatternTuple>(&pattern.node)) {
    for (std::size_t k = 0; k < tuple->elements.size(); ++k)
      bind_let_sizes(*tuple->elements[k], project(value, std::to_string(k)));
  } else if (const auto* record = std::get_if<PatternRecord>(&pattern.node)) {
    for (const auto& field : record->fields) bind_let_sizes(*field.value, project(value, field.name));
  }
}

// The sizes of each leaf of a value of that type, as the types say them.
std::vector<std::vector<SizeArgument>> Lowerer::leaf_shapes(Ty type, std::vector<std::size_t>* owners) {
  count_leaves(store_.tree_size(type));
  std::vector<std::vector<SizeArgument>> result;
  struct Part {
    TypeArgument type;
    std::vector<SizeArgument> outer;
    std::size_t owner = 0;
  };
  std::size_t abstract = 0;
  std::vector<Part> todo = {{{type, frame_}, {}}};
  while (!todo.empty()) {
    Part part = std::move(todo.back());
    todo.pop_back();
    if (is_abstract(part.type)) part.owner = ++abstract;
    const TypeArgument known = resolve_type(part.type.type, part.type.frame);
    const TyNode& node = store_.node(known.type);
    if (const auto* array = std::get_if<TyArray>(&node)) {
      part.outer.push_back({array->size, known.frame});
      todo.push_back({{array->element, known.frame}, std::move(part.outer), part.owner});
    } else if (const auto* record = std::get_if<TyRecord>(&node); record && !record->fields.empty()) {
      for (auto field = record->fields.rbegin(); field != record->fields.rend(); ++field)
        todo.push_back({{field->second, known.frame}, part.outer, part.owner});
    } else if (std::holds_alternative<TySum>(node)) {
      std::vector<LeafType> leaves;
      add_leaf_types(known, part.outer, leaves);
      // Payloads may hold values of abstract types in turn.
      for (LeafType& leaf : leaves) {
        result.push_back(std::move(leaf.dims));
        if (owners != nullptr) owners->push_back(++abstract);
      }
    } else {
      result.push_back(std::move(part.outer));
    }
    if (owners != nullptr) owners->resize(result.size(), part.owner);
  }
  return result;
}

StaticValue Lowerer::use(const Resolution& resolution) {
  StaticValue value;
  switch (resolution.kind) {
    case Resolution::Kind::local: value = lookup(resolution.binder); break;
    case Resolution::Kind::global: value = use_definition({resolution.global, &resolution, frame_}); break;
    default: value = use_builtin({resolution.entry, &resolution, frame_});
  }
  if (resolution.kind == Resolution::Kind::local && value.closure() && !resolution.instance.empty())
    value = with_instance(*value.closure(), resolution);
  for (const std::string& field : resolution.fields) value = project(value, field);
  return value;
}

// A local function with parameters of its own: what they are at this use goes into a frame around its own.
StaticValue Lowerer::with_instance(const Closure& closure, const Resolution& resolution) {
  const auto* lambda = std::get_if<Closure::Lambda>(&closure.what);
  if (lambda == nullptr) return make_closure(closure);
  Frame* frame = make_frame(lambda->frame);
  for (const auto& [param, type] : resolution.instance.params) frame->types[param] = {type, frame_};
  for (const auto& [binder, size] : resolution.instance.sizes) frame->sizes[binder] = {size, frame_};
  compute_sizes(frame);
  Closure result = closure;
  result.what = Closure::Lambda{lambda->params, lambda->body, frame};
  return make_closure(std::move(result));
}

}  // namespace apl::frontend
