// Definitions, generalisation, defaults, and what must hold of an entry.
#include <algorithm>
#include <ranges>
#include <utility>

#include "frontend/modules/modules.h"
#include "frontend/types/checker.h"

namespace apl::frontend {

std::optional<Checked> check_program(Program program, const DiagnosticSink& sink) {
  return Checker(std::move(program), sink).run();
}

const Global* Checked::find(std::string_view name) const {
  for (auto global = globals.rbegin(); global != globals.rend(); ++global)
    if (global->definition->name == name) return &*global;
  return nullptr;
}

Checker::Checker(Program program, const DiagnosticSink& sink)
    : store_(out_.store), unifier_(out_.store, let_sizes_), sink_(sink), modules_(std::make_unique<Modules>(*this)) {
  out_.program = std::move(program);
  out_.types.resize(out_.program.expr_count);
  out_.pattern_types.resize(out_.program.pattern_count);
  out_.pattern_binders.resize(out_.program.pattern_count, kNoId);
}

Checker::~Checker() = default;

std::optional<Checked> Checker::run() {
  modules_->run();
  if (failed_) return std::nullopt;
  store_.reveal();
  return std::move(out_);
}

// What the definition says, as a function of its parameters. Sizes that nothing says are others at each use.
TypeBinding Checker::type_binding(const TypeDefinition& definition, const TypeExpr* written) {
  TypeBinding binding;
  binding.liftedness = definition.liftedness;
  binding.written = written;
  binding.location = definition.name_location;
  Scope scope(*this);
  const std::uint32_t level = level_;
  ++level_;
  Names names;
  for (const TypeParam& param : definition.params) {
    std::vector<ParamId> params;
    std::vector<BinderId> sizes;
    enter_type_params({param}, names, &params, &sizes);
    TypeFunction::Param added;
    added.is_size = param.kind == TypeParam::Kind::size;
    if (added.is_size ? sizes.empty() : params.empty()) continue;
    (added.is_size ? added.size : added.type) = added.is_size ? sizes.front() : params.front();
    binding.function.params.push_back(added);
  }
  if (written == nullptr) return binding;
  const Ty type = type_of(*written);
  TypeMap open;
  std::vector<Size> variables;
  std::vector<BinderId> anonymous;
  store_.walk(
      type, [](Ty, const TyNode&) {},
      [&](Size size, const SizeNode& node) {
        if (std::holds_alternative<SizeVar>(node)) variables.push_back(size);
      });
  for (Size variable : variables) {
    if (open.size_variables.contains(variable.id)) continue;
    binding.existential.push_back(store_.add_binder({.kind = Binder::Kind::unknown_size,
                                                     .name = "this size",
                                                     .location = written->location,
                                                     .level = level,
                                                     .type = store_.scalar(ScalarType::i64)}));
    open.size_variables.emplace(variable.id, store_.name(binding.existential.back()));
    if (!named_existentials_.contains(variable.id)) anonymous.push_back(binding.existential.back());
  }
  binding.function.body = store_.substitute(type, open);
  check_abbreviation(definition, binding);
  const std::unordered_set<BinderId> constructive = sizes_of({binding.function.body});
  if (!std::ranges::all_of(anonymous, [&](BinderId size) { return constructive.contains(size); }))
    report(
        Code::type_ambiguous, written->location,
        "Type abbreviation contains an anonymous size not used constructively as an array size: no value of type \"" +
            definition.name + "\" has an array of that size");
  return binding;
}

// An array type without size, but for those of functions' parameters and results.
const TypeExpr* anonymous_size(const TypeExpr& type) {
  if (const auto* array = std::get_if<TypeArray>(&type.node))
    return array->size ? anonymous_size(*array->element) : &type;
  if (const auto* unique = std::get_if<TypeUnique>(&type.node)) return anonymous_size(*unique->type);
  if (const auto* tuple = std::get_if<TypeTuple>(&type.node))
    for (const TypeExprPtr& element : tuple->elements)
      if (const TypeExpr* found = anonymous_size(*element)) return found;
  if (const auto* record = std::get_if<TypeRecord>(&type.node))
    for (const auto& field : record->fields)
      if (const TypeExpr* found = anonymous_size(*field.value)) return found;
  if (const auto* sum = std::get_if<TypeSum>(&type.node))
    for (const SumConstructor& constructor : sum->constructors)
      for (const TypeExprPtr& part : constructor.payload)
        if (const TypeExpr* found = anonymous_size(*part)) return found;
  return nullptr;
}

// What its names are declared as: a type that a module type declares unlifted is unlifted, whatever `with` puts there.
Liftedness Checker::written_liftedness(const TypeExpr& type) const {
  Liftedness found = Liftedness::unlifted;
  const auto look_at = [&](const TypeExpr& part) { found = std::max(found, written_liftedness(part)); };
  const auto look_up = [&](const Name& name) {
    const TypeBindingPtr binding = find_type(name);
    if (!binding) return;
    found = std::max(found, binding->liftedness);
    const auto* param = store_.get_if<TyParam>(binding->function.body);
    if (param == nullptr || binding->written != nullptr) return;
    const TypeParamInfo& info = store_.type_param(param->param);
    if (info.size_lifted) found = std::max(found, info.lifted ? Liftedness::lifted : Liftedness::size_lifted);
  };
  if (const auto* name = std::get_if<TypeName>(&type.node)) look_up(name->name);
  if (std::holds_alternative<TypeArrow>(type.node)) return Liftedness::lifted;
  if (const auto* array = std::get_if<TypeArray>(&type.node)) look_at(*array->element);
  if (const auto* unique = std::get_if<TypeUnique>(&type.node)) look_at(*unique->type);
  if (const auto* tuple = std::get_if<TypeTuple>(&type.node))
    for (const TypeExprPtr& element : tuple->elements) look_at(*element);
  if (const auto* record = std::get_if<TypeRecord>(&type.node))
    for (const auto& field : record->fields) look_at(*field.value);
  if (const auto* sum = std::get_if<TypeSum>(&type.node))
    for (const SumConstructor& constructor : sum->constructors)
      for (const TypeExprPtr& part : constructor.payload) look_at(*part);
  if (const auto* exists = std::get_if<TypeExists>(&type.node)) {
    found = Liftedness::size_lifted;
    look_at(*exists->type);
  }
  if (const auto* apply = std::get_if<TypeApply>(&type.node)) {
    look_up(apply->name);
    for (const TypeArgumentExpr& argument : apply->arguments)
      if (!argument.is_size && argument.type) look_at(*argument.type);
  }
  return found;
}

// `type` has the same shape wherever it is used, and may be an array's element; `type~` may not hold functions.
void Checker::check_abbreviation(const TypeDefinition& definition, const TypeBinding& binding) {
  const Liftedness liftedness = written_liftedness(*binding.written);
  const bool functions = liftedness == Liftedness::lifted;
  const std::string kind = definition.liftedness == Liftedness::unlifted ? "Non-lifted" : "Size-lifted";
  if (definition.liftedness != Liftedness::lifted && functions) {
    report(Code::type_mismatch, binding.written->location, kind + " type abbreviations may not contain functions.");
  } else if (definition.liftedness == Liftedness::unlifted) {
    if (const TypeExpr* found = anonymous_size(*binding.written))
      report(Code::type_mismatch, found->location,
             "Non-lifted type abbreviations may not use existential sizes in their definition: an array of \"" +
                 definition.name + "\" needs a size here.");
    else if (liftedness != Liftedness::unlifted)
      report(Code::type_mismatch, binding.written->location,
             "Non-lifted type abbreviations may not contain size-lifted types: \"" + definition.name + "\" does.");
  }
  std::unordered_set<BinderId> mentioned;
  store_.mentioned(binding.function.body, mentioned);
  for (const TypeFunction::Param& param : binding.function.params) {
    if (!param.is_size || mentioned.contains(param.size)) continue;
    report(Code::type_ambiguous, store_.binder(param.size).location,
           "Size parameter \"[" + store_.binder(param.size).name + "]\" of type \"" + definition.name +
               "\" is unused: no size in it mentions the parameter");
  }
}

// `program`: whether it stands at the top level of the file being compiled.
Target Checker::definition(const Declaration& declaration, const Definition& definition, bool program) {
  Global global{.declaration = &declaration, .definition = &definition};
  global.entry = program && (definition.entry || definition.name == "main");
  check_redefinition(definition.name, definition.name_location);
  const bool before = std::exchange(failed_, false);
  const Definition* outer = std::exchange(defined_, &definition);
  infer_with_open_sizes(global, definition);
  with_unknown_.clear();
  const std::vector<Diagnostic> said = std::move(*held_);
  held_.reset();
  for (const Diagnostic& diagnostic : said) sink_(diagnostic);
  defined_ = outer;
  global.failed = failed_;
  if (failed_) forget_inferred(global, definition);
  failed_ = failed_ || before;
  return add_global(std::move(global));
}

// `[]` of a parameter is any size: what a branch gives that may be the parameter, or an array of another size, has a
// size of its own. Only where that cannot be, since something else needs both to be of one size, is the definition
// looked at once more: first with the parameters of loops as open as those of functions, then with the
// parameters' sizes as the others. Parameters of loops are as open from the start where that leaves more sizes of
// parameters open:
//   def f (xs: []i32) (ys: []i32) = loop a = xs for i < 3 do if a[0] > i then ys else a
void Checker::infer_with_open_sizes(Global& global, const Definition& definition) {
  using enum Unifier::KeepOpen;
  const Global blank = global;
  const int errors = errors_;
  const auto infer = [&](Unifier::KeepOpen keep) {
    held_.emplace();
    failed_ = false;
    errors_ = errors;
    for (const std::uint32_t expr : std::exchange(with_unknown_, {})) out_.unknown_sizes.erase(expr);
    global = blank;
    unifier_.keep_open(keep);
    return infer_definition(global, definition);
  };
  const std::size_t open = infer(of_functions);
  const bool possible = !failed_;
  if (possible ? !unifier_.linked_loop() : !unifier_.met_open_size()) return;
  const std::size_t open_with_loops = infer(of_functions_and_loops);
  if (possible && (failed_ || open_with_loops <= open))
    infer(of_functions);
  else if (failed_ && unifier_.met_open_size())
    infer(none);
}

// How many sizes of parameters nothing says, before they get names.
std::size_t Checker::infer_definition(Global& global, const Definition& definition) {
  Scope scope(*this);
  level_ = 1;
  Names names;
  enter_type_params(definition.type_params, names, &global.type_params, &global.sizes);
  global.type = infer_function(definition.params, definition.result.get(), *definition.body, {}, names);
  const std::size_t open = unifier_.open_parameters();
  solve_constructors(false);
  solve_fields(true);
  solve_constructors(true);
  apply_defaults(global, definition);
  check_literals();
  finish_definition(global, definition);
  return open;
}

// Of a definition with an error only what is written of its type is believed: what would be wrong with its uses,
// besides, follows from that error.
void Checker::forget_inferred(Global& global, const Definition& definition) {
  std::vector<TyArrow> arrows;
  Ty rest = global.type;
  for (const PatternPtr& param : definition.params) {
    const auto* arrow = store_.get_if<TyArrow>(rest);
    if (arrow == nullptr) break;
    arrows.push_back(*arrow);
    if (!std::holds_alternative<PatternTyped>(param->node)) arrows.back().from = store_.error();
    rest = arrow->to;
  }
  if (!definition.result) rest = store_.error();
  for (const TyArrow& arrow : std::views::reverse(arrows))
    rest = store_.arrow(arrow.from, rest, arrow.param, definition.result ? arrow.unknown : std::vector<BinderId>{});
  global.type = rest;
  std::unordered_set<BinderId> mentioned;
  store_.mentioned(rest, mentioned);
  std::erase_if(global.sizes, [&](BinderId size) { return !mentioned.contains(size); });
}

// Constants of type i64 are sizes.
Target Checker::add_global(Global global) {
  const Definition& definition = *global.definition;
  const bool constant = definition.params.empty() && store_.as_scalar(global.type) == ScalarType::i64;
  const auto index = static_cast<std::uint32_t>(out_.globals.size());
  if (constant) {
    global.binder = store_.add_binder({.kind = Binder::Kind::global,
                                       .name = definition.name,
                                       .location = definition.name_location,
                                       .level = 0,
                                       .type = global.type});
    out_.global_sizes[global.binder] = index;
  }
  global.abstract = store_.get_if<TyAbstract>(global.type) != nullptr;
  out_.globals.push_back(std::move(global));
  return {.kind = Resolution::Kind::global, .global = index};
}

void Checker::finish_definition(Global& global, const Definition& definition) {
  if (!failed_) check_size_params(global, definition);
  generalise(global.type, 0, &global.type_params, global.sizes);
  const std::unordered_set<BinderId> sizes(global.sizes.begin(), global.sizes.end());
  for (BinderId binder : store_.free_sizes(global.type, 0))
    if (!sizes.contains(binder)) global.unknown.push_back(binder);
  if (definition.params.empty() && !global.sizes.empty() && !global.unknown.empty())
    report(Code::type_ambiguous, definition.name_location,
           "A size-polymorphic value binding may not have unknown sizes in its type: \"" + definition.name + "\" is " +
               store_.to_text(global.type));
  check_local_uses();
  check_comparisons();
  check_matches();
  if (!failed_) check_ambiguous();
  if (!failed_ && global.entry) check_entry(global, definition);
  numbers_.clear();
  instances_.clear();
  holes_.clear();
  let_sizes_.clear();
}

void Checker::apply_defaults(const Global& global, const Definition& definition) {
  std::set<std::uint32_t> outside;  // what users of the definition see
  store_.walk(
      global.type, [&](Ty t, const TyNode&) { outside.insert(t.id); }, [](Size, const SizeNode&) {});
  for (Ty number : numbers_) {
    const auto* var = store_.get_if<TyVar>(number);
    if (var == nullptr) continue;
    const ScalarSet set = var->constraint.scalars;
    ScalarType type = ScalarType::i32;
    if (!contains(set, type)) type = ScalarType::f64;
    for (unsigned k = 0; !contains(set, type) && k < 14; ++k) type = static_cast<ScalarType>(k);
    if (!failed_ && outside.count(store_.find(number).id) > 0)
      warn(Code::warning_ambiguous, definition.name_location,
           "Defaulting ambiguous type to " + std::string(apl::to_text(type)) + ".");
    store_.bind(number, store_.scalar(type));
  }
}

// What was compared with == is of a type parameter now where nothing said what it is; none supports that.
void Checker::check_comparisons() {
  const bool failed = failed_;
  for (const auto& [location, type, infix] : std::exchange(comparisons_, {})) {
    if (infix && store_.get_if<TyArray>(type))
      warn(Code::warning_deprecated, location,
           "Comparing arrays with \"==\" is deprecated and will stop working in a future revision of the language.");
    bool open = false;
    store_.walk(
        type, [&](Ty, const TyNode& node) { open = open || std::holds_alternative<TyParam>(node); },
        [](Size, const SizeNode&) {});
    if (open && !failed)
      report(Code::type_mismatch, location,
             "Comparing equality of values of type " + store_.to_text(type) +
                 ", which does not support equality: nothing says what type they have; a type annotation resolves it");
  }
}

// What is still open in a finished type, and only there, becomes a parameter of it.
// `only`: no other variables of types.
void Checker::generalise(Ty type, std::uint32_t outer, std::vector<ParamId>* params, std::vector<BinderId>& sizes,
                         const std::unordered_set<std::uint32_t>* only) {
  std::vector<Ty> types;
  std::vector<Size> open_sizes;
  std::unordered_set<std::uint32_t> kept, seen_sizes;
  for (const PendingField& wanted : pending_)
    kept.insert(store_.find(wanted.record).id), kept.insert(store_.find(wanted.result).id);
  for (const PendingConstructor& wanted : pending_constructors_) {
    kept.insert(store_.find(wanted.sum).id);
    for (Ty part : wanted.payload) kept.insert(store_.find(part).id);
  }
  store_.walk(
      type,
      [&](Ty t, const TyNode& node) {
        const auto* var = std::get_if<TyVar>(&node);
        if (params && var && var->level > outer && var->constraint.scalars == 0 && !kept.contains(t.id) &&
            (only == nullptr || only->contains(t.id)))
          types.push_back(t);
      },
      [&](Size s, const SizeNode& node) {
        const auto* var = std::get_if<SizeVar>(&node);
        if (var && var->level > outer && seen_sizes.insert(s.id).second) open_sizes.push_back(s);
      });
  for (Ty t : types) {
    const auto var = *store_.get_if<TyVar>(t);
    const ParamId id = store_.add_param({.name = "t" + std::to_string(params->size()),
                                         .location = var.origin,
                                         .constraint = var.constraint,
                                         .lifted = !var.constraint.first_order,
                                         .size_lifted = !var.constraint.regular});
    params->push_back(id);
    store_.bind(t, store_.param(id));
  }
  for (Size s : open_sizes) {
    const auto var = *store_.get_if<SizeVar>(s);
    const BinderId binder = store_.add_binder({.kind = Binder::Kind::inferred_size,
                                               .name = "d" + std::to_string(sizes.size()),
                                               .location = var.origin,
                                               .level = outer + 1,
                                               .type = store_.scalar(ScalarType::i64)});
    sizes.push_back(binder);
    store_.bind(s, store_.name(binder));
  }
  store_.lower_level(type, outer);
}

void Checker::check_size_params(const Global& global, const Definition& definition) {
  std::unordered_set<BinderId> mentioned;
  store_.mentioned(global.type, mentioned);
  for (BinderId size : global.sizes)
    if (!mentioned.contains(size))
      report(Code::type_ambiguous, store_.binder(size).location,
             "Size [" + store_.binder(size).name + "] unused in pattern: it is the size of no parameter and " +
                 "no result of \"" + definition.name + "\"");
}

void Checker::check_ambiguous() {
  for (const Open& hole : std::exchange(holes_, {}))
    with_sizes(hole.type, [&](Size size) {
      if (!store_.get_if<SizeVar>(size)) return size;
      report(Code::type_ambiguous, hole.location,
             "Ambiguous size" + hole.what + ": nothing says what the size of this hole is");
      store_.bind(size, store_.constant(0));
      return size;
    });
  for (const Open& open : instances_) {
    // Nothing says what the type is, so nothing depends on it.
    if (open.type && store_.get_if<TyVar>(open.type)) store_.bind(open.type, store_.unit());
    if (!open.size || !store_.get_if<SizeVar>(open.size)) continue;
    report(Code::type_ambiguous, open.location,
           open.named ? "Ambiguous size " + open.what + ": nothing says what it is"
                      : "Ambiguous size: nothing says what the instantiated " + open.what + " is");
  }
}

// The sizes that can be read off an argument: those of an array which is one, or a part of one. What is inside of a
// function cannot.
std::unordered_set<BinderId> Checker::sizes_of(const std::vector<Ty>& params) const {
  std::unordered_set<BinderId> found;
  std::unordered_set<std::uint32_t> seen;
  std::vector<Ty> todo = params;
  const auto tell = [&](Size size) {
    if (const auto* name = store_.get_if<SizeName>(size)) found.insert(name->binder);
  };
  while (!todo.empty()) {
    const Ty type = store_.find(todo.back());
    todo.pop_back();
    if (!seen.insert(type.id).second) continue;
    if (const auto* array = store_.get_if<TyArray>(type)) {
      tell(array->size);
      todo.push_back(array->element);
    } else if (const auto* record = store_.get_if<TyRecord>(type)) {
      for (const auto& [name, field] : record->fields) todo.push_back(field);
    } else if (const auto* sum = store_.get_if<TySum>(type)) {
      for (const auto& [name, payload] : sum->constructors) todo.insert(todo.end(), payload.begin(), payload.end());
    } else if (const auto* abstract = store_.get_if<TyAbstract>(type)) {
      for (Size size : abstract->sizes) tell(size);
      todo.insert(todo.end(), abstract->types.begin(), abstract->types.end());
    }
  }
  return found;
}

void Checker::check_entry(const Global& global, const Definition& definition) {
  const std::string name = "\"" + definition.name + "\"";
  const auto refuse = [&](Code code, const std::string& message) {
    report(code, definition.name_location, "Entry point " + message);
  };
  if (!global.type_params.empty())
    refuse(Code::type_mismatch,
           "functions may not be polymorphic: the type of " + name + " is " + store_.to_text(global.type));
  Ty type = global.type;
  std::vector<Ty> params;
  while (const auto* arrow = store_.get_if<TyArrow>(type)) {
    params.push_back(arrow->from);
    type = arrow->to;
  }
  const auto is_function = [&](Ty part) {
    bool lifted = store_.contains_function(part);
    store_.walk(
        part,
        [&](Ty, const TyNode& node) {
          const auto* abstract = std::get_if<TyAbstract>(&node);
          lifted = lifted || (abstract && store_.abstract_info(abstract->id).lifted);
        },
        [](Size, const SizeNode&) {});
    return lifted;
  };
  const bool takes = std::ranges::any_of(params, is_function);
  if (takes || is_function(type))
    refuse(Code::type_mismatch, "functions may not be higher-order: " + name +
                                    (takes ? " has a parameter of function type" : " gives a function"));
  std::unordered_set<BinderId> mentioned;
  for (Ty param : params) store_.mentioned(param, mentioned);
  const std::unordered_set<BinderId> constructive = sizes_of(params);
  for (BinderId size : global.sizes) {
    const std::string& parameter = store_.binder(size).name;
    if (!mentioned.contains(size))
      refuse(Code::type_ambiguous,
             "functions must not be size-polymorphic in their return type: the size parameter \"" + parameter +
                 "\" of " + name + " is the size of no argument");
    else if (!constructive.contains(size))
      refuse(Code::type_ambiguous, "size parameter [" + parameter + "] only used non-constructively: in " + name +
                                       " it is a part of sizes, but the size of no argument");
  }
}

}  // namespace apl::frontend
