// Functions of the module: entries, and instances of definitions.
#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "frontend/lower/large_stack.h"
#include "frontend/lower/lowerer.h"
#include "frontend/syntax/lexer.h"
#include "ir/attributes.h"
#include "ir/constants.h"
#include "ir/sparse_soa.h"
#include "ir/walk.h"

namespace apl::frontend {

namespace {

// Deeper nesting of expansions would overflow the stack: of our own, and of a caller of whom only 8 MB are known.
constexpr int kMaxDepth = 10000;
constexpr std::size_t kStack = std::size_t{256} << 20U;
constexpr int kMaxDepthOfCaller = 1000;

// Longer ones are not compared; such a call is expanded.
constexpr std::size_t kMaxKey = 400;

// Where only the body decides sizes of the result, a call hides what they are made of: shorter functions are expanded
// where they are called, as their callers' checks of sizes go away then.
constexpr std::size_t kShort = 16;

bool is_short(const Body& body) {
  std::size_t count = 0;
  for_each_stm(body, [&](const Stm&) { ++count; });
  const bool straight = std::ranges::none_of(
      body.stms, [](const Stm& stm) { return get_if<If>(stm) || get_if<Loop>(stm) || get_if<Apply>(stm); });
  return straight || count < kShort;
}

}  // namespace

std::optional<Module> lower_program(Checked& checked, const std::map<std::string, std::int64_t>& parameters, bool safe,
                                    const DiagnosticSink& sink) {
  std::optional<Module> module;
  if (!run_on_stack(kStack, [&] { module = Lowerer(checked, parameters, safe, sink, kMaxDepth).run(); }))
    module = Lowerer(checked, parameters, safe, sink, kMaxDepthOfCaller).run();
  return module;
}

Lowerer::Lowerer(Checked& checked, const std::map<std::string, std::int64_t>& parameters, bool safe,
                 const DiagnosticSink& sink, int max_depth)
    : checked_(checked),
      store_(checked.store),
      parameters_(parameters),
      safe_(safe),
      sink_(sink),
      max_depth_(max_depth) {}

std::optional<Module> Lowerer::run() {
  bool failed = false;
  // Entries keep their names, so they are taken first.
  for (const Global& global : checked_.globals)
    if (global.entry) names_taken_[global.definition->name] = 1;
  for (std::uint32_t k = 0; k < checked_.globals.size(); ++k) {
    if (!checked_.globals[k].entry) continue;
    try {
      lower_entry(k);
    } catch (const LowerAbort&) {
      failed = true;
      frame_ = nullptr;
      depth_ = 0;
      checked_indices_ = true;
    }
  }
  if (failed) return std::nullopt;
  pass_constants(module_);
  module_.calls = std::move(calls_).take();
  return std::move(module_);
}

// The IR knows one file, that of the program: what an imported one says is where it was called.
Location Lowerer::place_of(const Location& location) const { return file_of(location) == 0 ? location : location_; }

std::string Lowerer::unique_name(const std::string& wanted) {
  std::string base = wanted;
  if (is_operator_start(base.back())) base = base.substr(0, base.rfind('.') + 1) + "op";
  std::ranges::replace(base, '.', '_');
  for (;;) {
    const int count = ++names_taken_[base];
    std::string name = count == 1 ? base : base + "_" + std::to_string(count);
    if (count == 1 || names_taken_.emplace(name, 1).second) return name;
  }
}

// The form of a type, with `make` called for each array of scalars in it.
StaticValue Lowerer::map_types(
    Ty type, Frame* frame, std::vector<Poly>& outer,
    const std::function<StaticValue(ScalarType, const std::vector<Poly>&, const std::string&)>& make,
    const std::string& path) {
  const TypeArgument known = resolve_type(type, frame);
  const TyNode node = store_.node(known.type);
  if (const auto* array = std::get_if<TyArray>(&node)) {
    outer.push_back(size_of_dim({array->size, known.frame}, array->element));
    StaticValue result = map_types(array->element, known.frame, outer, make, path);
    outer.pop_back();
    return result;
  }
  if (const auto* record = std::get_if<TyRecord>(&node)) {
    StaticValue::Fields fields;
    for (const auto& [label, field] : record->fields)
      fields.emplace_back(label,
                          map_types(field, known.frame, outer, make, std::string(path).append("_").append(label)));
    count_leaves(fields.size());
    if (fields.empty()) return outer.empty() ? StaticValue() : make(ScalarType::unit, outer, path);
    return StaticValue(std::move(fields));
  }
  if (std::holds_alternative<TySum>(node)) {
    const SumLayout layout = sum_layout(known);
    Values leaves = {make(ScalarType::u8, outer, path + "_tag")};
    for (const LeafType& slot : layout.slots) {
      const std::size_t rank = outer.size();
      for (const SizeArgument& dim : slot.dims) outer.push_back(size_of_dim(dim, store_.scalar(slot.element)));
      leaves.push_back(make(slot.element, outer, path + "_" + std::to_string(leaves.size() - 1)));
      outer.resize(rank);
    }
    std::size_t next = 0;
    return from_leaves(known, leaves, next);
  }
  return make(store_.as_scalar(known.type).value_or(ScalarType::unit), outer, path);
}

// Whether it is made of sizes and parameters of the function alone, not of values that its body computes, as the length
// of a constant array may be.
bool Lowerer::is_known_outside(const Poly& size) const {
  bool known = true;
  size.for_each_symbol([&](Value v) {
    known = known && (std::ranges::find(function_->sizes, v) != function_->sizes.end() ||
                      std::ranges::find(function_->params, v) != function_->params.end());
  });
  return known;
}

// A size that nobody named is one of the function all the same, and so are those of parameters which may wrap, or which
// the body computes.
Poly Lowerer::size_of_dim(const SizeArgument& dim, Ty element) {
  bool later = computed_params_ != nullptr && !store_.is_polynomial(dim.size);
  if (const auto size = later ? std::nullopt : size_value(dim.size, dim.frame)) {
    if (computed_params_ == nullptr || (is_safe_size(*size) && is_known_outside(*size))) return *size;
    later = true;
  }
  const Value fresh = function_->values.add(Type::scalar(ScalarType::i64), "d");
  function_->sizes.push_back(fresh);
  if (later) computed_params_->push_back({dim, Poly(fresh), store_.to_text(element)});
  return Poly(fresh);
}

StaticValue Lowerer::make_param(Ty type, const std::string& name) {
  std::vector<Poly> outer;
  count_leaves(store_.tree_size(type));
  return map_types(
      type, frame_, outer,
      [&](ScalarType element, const std::vector<Poly>& shape, const std::string& path) {
        count_leaves(function_->params.size() + 1);
        const Type param = shape.empty() ? Type::scalar(element) : Type::array(element, shape);
        function_->params.push_back(function_->values.add(param, path));
        return leaf(function_->params.back());
      },
      name);
}

// The type with each of its sizes replaced by a name of its own, so that one instance serves all sizes.
Ty Lowerer::without_sizes(Ty type, Frame* frame, std::vector<SizeArgument>& sizes, std::vector<BinderId>& binders) {
  const TypeArgument known = resolve_type(type, frame);
  const TyNode node = store_.node(known.type);
  if (const auto* array = std::get_if<TyArray>(&node)) {
    if (sizes.size() == binders.size())
      binders.push_back(store_.add_binder({.kind = Binder::Kind::inferred_size,
                                           .name = "d" + std::to_string(sizes.size()),
                                           .type = store_.scalar(ScalarType::i64)}));
    const BinderId binder = binders[sizes.size()];
    sizes.push_back({array->size, known.frame});
    return store_.array(store_.name(binder), without_sizes(array->element, known.frame, sizes, binders));
  }
  if (const auto* sum = std::get_if<TySum>(&node)) {
    auto constructors = sum->constructors;
    for (auto& [name, payload] : constructors)
      for (Ty& part : payload) part = without_sizes(part, known.frame, sizes, binders);
    return store_.sum(std::move(constructors));
  }
  const auto* record = std::get_if<TyRecord>(&node);
  if (record == nullptr || record->fields.empty()) return known.type;
  auto fields = record->fields;
  count_leaves(fields.size() + sizes.size());
  for (auto& [label, field] : fields) field = without_sizes(field, known.frame, sizes, binders);
  return store_.record(std::move(fields));
}

const Lowerer::Instance* Lowerer::instance(const InstanceKey& key) {
  std::string text = std::to_string(key.global);
  for (Ty type : key.types) text += " " + store_.to_text(type);
  if (text.size() > kMaxKey) return nullptr;
  if (auto found = instances_.find(text); found != instances_.end()) return &found->second;
  const Global& global = checked_.globals[key.global];
  const std::string name = global.entry ? global.definition->name : unique_name(global.label);
  return &instances_.emplace(text, make_instance(key, name)).first->second;
}

// The dims of the arrays among the parameters and results, of those that are made of +, - and *.
std::vector<Size> Lowerer::dims_of_arrays(const Global& global) const {
  std::vector<Size> dims;
  const auto note = [&](Ty, const TyNode& node) {
    if (const auto* array = std::get_if<TyArray>(&node); array && store_.is_polynomial(array->size))
      dims.push_back(array->size);
  };
  for (const PatternPtr& param : global.definition->params)
    store_.walk(checked_.pattern_types[param->id], note, [](Size, const SizeNode&) {});
  store_.walk(global.type, note, [](Size, const SizeNode&) {});
  return dims;
}

// `constant`: of a definition without parameters, which is given a name if it stays a function.
Lowerer::Instance Lowerer::make_instance(const InstanceKey& key, const std::string& name, bool constant) {
  const Global& global = checked_.globals[key.global];
  const Definition& source = *global.definition;
  Function function;
  function.name = name;
  function.location = place_of(global.declaration->location);
  for (const SyntaxAttribute& attribute : global.declaration->attributes)
    if (belongs_in_ir(attribute, true)) function.attributes.push_back(attribute);
  Builder builder(function.values, &module_);

  Building outer{function_,         builder_,          frame_,
                 location_,         checked_indices_,  std::move(iotas_),
                 std::move(named_), std::move(known_), std::move(made_at_),
                 std::move(levels_)};
  function_ = &function;
  builder_ = &builder;
  frame_ = make_frame(nullptr);
  checked_indices_ = true;
  const bool in_derivative = std::exchange(in_derivative_, false);
  iotas_.clear();
  named_.clear();
  known_ = {};
  made_at_.clear();
  levels_ = {{&builder, 0, {}}};

  for (const auto& [type, param] : ranges::views::zip(key.types, global.type_params))
    frame_->types[param] = {type, frame_};
  auto add_size = [&](BinderId binder) {
    const Value size = function.values.add(Type::scalar(ScalarType::i64), store_.binder(binder).name);
    function.sizes.push_back(size);
    frame_->values[binder] = StaticValue(Poly(size));
    know_count(Poly(size));
    // A size that the program does not name may be called after a variable that is bound to it.
    if (store_.binder(binder).kind != Binder::Kind::inferred_size) keep_name(size);
  };
  for (BinderId binder : global.sizes) add_size(binder);
  for (BinderId binder : key.sizes) add_size(binder);
  Instance result;
  location_ = function.location;
  builder.set_location(location_);
  std::vector<ComputedParam> computed;
  auto* outer_computed = std::exchange(computed_params_, &computed);
  const std::map<std::string, ScalarType> narrow = narrow_params(global);
  std::vector<Size> dims = dims_of_arrays(global);
  for (const PatternPtr& param : source.params) {
    add_param(*param, global, narrow, result);
    // Each once, as soon as the parameters so far say what it is.
    std::erase_if(dims, [&](Size dim) {
      const auto size = is_computable(dim, frame_) ? size_value(dim, frame_) : std::nullopt;
      if (size) know_factors(*size);
      return size.has_value();
    });
  }
  computed_params_ = outer_computed;
  for (const Value size : function.sizes) know_count(Poly(size));
  for (const Value param : function.params) know_param(function.type(param), global.entry);
  // Only the callers of an entry may get them wrong.
  for (const auto& [size, actual, element] : computed)
    if (const auto wanted = global.entry ? size_value(size.size, size.frame) : std::nullopt)
      require_shape({*wanted}, {actual}, element);
  result.value = lower(*source.body);
  eta_expand(global, result);

  const std::vector<Operand> results = leaves(result.value);
  std::set<Value> known(function.sizes.begin(), function.sizes.end());
  known.insert(function.params.begin(), function.params.end());
  std::vector<std::pair<Poly, Value>> decided;  // sizes that only the body knows
  for (const Operand& operand : results) {
    function.results.push_back(builder.type(operand));
    for (Poly& size : function.results.back().shape) {
      bool inner = false;
      size.for_each_symbol([&](Value symbol) { inner = inner || known.count(symbol) == 0; });
      if (!inner) continue;
      auto before = std::ranges::find(decided, size, &std::pair<Poly, Value>::first);
      if (before == decided.end()) {
        decided.emplace_back(size, function.values.add(Type::scalar(ScalarType::i64), "d"));
        before = decided.end() - 1;
      }
      size = Poly(before->second);
    }
  }
  for (const auto& [size, name] : decided) function.result_sizes.push_back(name);
  function.body = builder.finish(results);
  if (constant) {
    keep_constant(global, function, result);
  } else {
    result.callable = narrow.empty() && (decided.empty() || !is_short(*function.body) ||
                                         has_attribute(function.attributes, attribute::noinline));
  }
  if (constant && result.callable) {
    function.name = unique_name(global.label);
    function.entry = entry_info(global, result);
    function.entry->name = function.name;
    function.entry->is_constant = true;
  }
  if (result.callable || global.entry) {
    if (global.entry) {
      for (const Value param : function.params) refuse_rank(function.type(param));
      for (const Type& type : function.results) refuse_rank(type);
      finish_storage(global, result, narrow);
      function.entry = entry_info(global, result);
      if (const auto sparse = sparse_requests(function); !sparse) {
        if (sink_) sink_(sparse.error());
        throw LowerAbort{};
      }
      describe_border(global, result);
    }
    result.function = std::make_shared<const Function>(std::move(function));
    module_.functions.push_back(result.function);
  }
  function_ = outer.function;
  builder_ = outer.builder;
  frame_ = outer.frame;
  location_ = outer.location;
  checked_indices_ = outer.checked_indices;
  in_derivative_ = in_derivative;
  iotas_ = std::move(outer.iotas);
  named_ = std::move(outer.named);
  known_ = std::move(outer.known);
  made_at_ = std::move(outer.made_at);
  levels_ = std::move(outer.levels);
  return result;
}

void Lowerer::add_param(const Pattern& pattern, const Global& global, const std::map<std::string, ScalarType>& narrow,
                        Instance& instance) {
  const PatternName* name = as_name(pattern);
  const std::size_t before = function_->params.size();
  const std::string hint = name ? name->name : "p" + std::to_string(instance.counts.size());
  StaticValue value = make_param(checked_.pattern_types[pattern.id], hint);
  if (const auto kept = narrow.find(hint); kept != narrow.end()) value = widen_param(global, hint, kept->second, value);
  bind_pattern(pattern, value);
  instance.names.push_back(hint);
  instance.counts.push_back(function_->params.size() - before);
}

// `entry f = map g` takes an array all the same: parameters for the arrows that are left.
void Lowerer::eta_expand(const Global& global, Instance& instance) {
  Ty type = global.type;
  for (std::size_t k = 0; k < instance.counts.size(); ++k) type = store_.get_if<TyArrow>(type)->to;
  while (instance.value.closure()) {
    const auto* known = store_.get_if<TyArrow>(type);
    if (known == nullptr) unsupported(location_, "a function in the result of \"" + global.definition->name + "\"");
    const TyArrow arrow = *known;
    const std::size_t before = function_->params.size();
    const std::string name = "x" + std::to_string(instance.counts.size());
    const StaticValue param = make_param(arrow.from, name);
    if (arrow.param != kNoId) frame_->values[arrow.param] = param;
    instance.names.push_back(name);
    instance.counts.push_back(function_->params.size() - before);
    instance.value = apply(instance.value, {param});
    type = arrow.to;
  }
}

void Lowerer::lower_entry(std::uint32_t global) { instance({global, {}, {}}); }

}  // namespace apl::frontend
