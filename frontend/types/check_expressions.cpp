// Types of expressions: all but calls (check_calls.cpp), lets and loops (check_lets.cpp) and what takes values
// apart (check_access.cpp).
#include <algorithm>
#include <cmath>
#include <utility>

#include "frontend/types/checker.h"

namespace apl::frontend {

namespace {

constexpr Constraint kElement{.first_order = true, .regular = true, .reason = "an array element"};
constexpr std::size_t kMaxTypeSize = 2000;
constexpr Constraint kBranch{.first_order = true, .reason = "the result of 'if'"};

}  // namespace

Ty Checker::fresh(Location location, Constraint constraint) {
  const Ty var = store_.variable(level_, location, constraint);
  if (constraint.scalars != 0) numbers_.push_back(var);
  return var;
}

bool Checker::check(const Expr& expr, Ty expected, const std::string& what) {
  const Ty actual = infer(expr, expected);
  return unify(expected, actual, expr.location, what);
}

Ty Checker::infer(const Expr& expr, Ty expected) {
  const Ty type = infer_node(expr, expected);
  out_.types[expr.id] = type;
  return type;
}

Ty Checker::infer_node(const Expr& expr, Ty expected) {
  struct Visitor {
    Checker& self;
    const Expr& expr;
    Ty expected;

    Ty operator()(const Literal& e) { return self.store_.scalar(e.value.type()); }
    Ty operator()(const NumberLiteral& e) { return self.infer_literal(expr, e); }
    Ty operator()(const StringLiteral& e) {
      return self.store_.array(self.store_.constant(static_cast<std::int64_t>(e.text.size())),
                               self.store_.scalar(ScalarType::u8));
    }
    Ty operator()(const Variable& e) { return self.infer_variable(expr, e.name); }
    Ty operator()(const TupleExpr& e) {
      std::vector<Ty> elements;
      for (const ExprPtr& element : e.elements) elements.push_back(self.infer(*element));
      return self.store_.tuple(elements);
    }
    Ty operator()(const RecordExpr& e) {
      std::vector<std::pair<std::string, Ty>> fields;
      Names names;
      for (const auto& field : e.fields) {
        const Ty type = self.infer(*field.value);
        if (self.claim_field(names, field.name, field.location, "record")) fields.emplace_back(field.name, type);
      }
      return self.store_.record(std::move(fields));
    }
    Ty operator()(const ArrayExpr& e) { return self.infer_array(expr, e); }
    Ty operator()(const Project& e) { return self.field(self.infer(*e.record), e.field, expr.location); }
    Ty operator()(const LocalOpen& e) {
      const ModulePtr module = self.find_opened(e.module);
      if (!module) {
        self.report(Code::type_unknown_name, e.module.location, "Unknown module \"" + e.module.to_string() + "\"");
        return self.store_.error();
      }
      Scope scope(self);
      const std::size_t opened = self.open_modules_.size();
      self.open_module(*module);
      const Ty type = self.infer(*e.body, expected);
      self.open_modules_.resize(opened);
      return type;
    }
    Ty operator()(const IndexExpr& e) {
      const Ty array = self.infer(*e.array);
      return self.index_type(array, e.dims, expr.location, expr.id);
    }
    Ty operator()(const Call& e) { return self.infer_call(expr, e); }
    Ty operator()(const Negate& e) {
      self.negated_ = e.x.get();
      const Ty type = self.infer(*e.x);
      self.require(type, {.scalars = kNumbers}, e.x->location, "Only a number can be negated");
      return type;
    }
    Ty operator()(const Not& e) {
      const Ty type = self.infer(*e.x);
      self.require(type, {.scalars = kBits}, e.x->location, "Only a bool or an integer can be inverted");
      return type;
    }
    Ty operator()(const Infix& e) { return self.infer_infix(expr, e); }
    Ty operator()(const Section& e) { return self.infer_section(expr, e); }
    Ty operator()(const AccessSection& e) {
      const Ty from = self.fresh(expr.location);
      const bool outer = std::exchange(self.in_section_, true);
      const Ty to = self.step_types(from, e.steps, expr.id);
      self.in_section_ = outer;
      return self.store_.arrow(from, to);
    }
    Ty operator()(const LambdaExpr& e) { return self.infer_lambda(e, expected); }
    Ty operator()(const IfExpr& e) { return self.infer_if(expr, e, expected); }
    Ty operator()(const LetExpr& e) { return self.infer_let(e, expected); }
    Ty operator()(const LoopExpr& e) { return self.infer_loop(expr, e); }
    Ty operator()(const Ascribe& e) { return self.infer_ascribe(e); }
    Ty operator()(const RangeExpr& e) { return self.infer_range(expr, e); }
    Ty operator()(const UpdateExpr& e) { return self.infer_update(expr, e); }
    Ty operator()(const AssertExpr& e) {
      self.check(*e.condition, self.store_.scalar(ScalarType::boolean),
                 "The condition of 'assert' does not have expected type");
      return self.infer(*e.value, expected);
    }
    Ty operator()(const Attributed& e) { return self.infer(*e.x, expected); }
    Ty operator()(const ConstructorExpr& e) { return self.infer_constructor(expr, e, expected); }
    Ty operator()(const MatchExpr& e) { return self.infer_match(expr, e, expected); }
    Ty operator()(const Hole&) { return self.infer_hole(expr); }
  };
  return std::visit(Visitor{*this, expr, expected}, expr.node);
}

Ty Checker::infer_literal(const Expr& expr, const NumberLiteral& literal) {
  const Ty type = fresh(expr.location, {.scalars = literal.is_float ? kFloats : kNumbers});
  literals_.push_back({&expr, type, negated_ == &expr});
  return type;
}

// Whether each literal fits the type that it turned out to have.
void Checker::check_literals() {
  for (const auto& [expr, type, negated] : literals_) {
    const auto scalar = store_.as_scalar(type);
    const auto& literal = std::get<NumberLiteral>(expr->node);
    if (!scalar) continue;
    bool fits = true;
    if (is_integer(*scalar)) {
      const int bits = bit_width(*scalar) - (is_signed(*scalar) ? 1 : 0);
      fits = literal.too_large.empty() && (bits >= 64 || literal.integer >> bits == 0);
      if (negated)
        fits = literal.too_large.empty() &&
               (literal.integer == 0 || (is_signed(*scalar) && (fits || literal.integer == std::uint64_t{1} << bits)));
    } else if (is_float(*scalar)) {
      fits = std::isfinite(Scalar::floating(*scalar, literal.as_float()).as_float());
    }
    if (!fits)
      report(Code::type_mismatch, expr->location,
             "Literal " + std::string(negated ? "-" : "") + to_text(*expr) + " out of bounds for inferred type " +
                 std::string(apl::to_text(*scalar)) + ".");
  }
  literals_.clear();
}

Ty Checker::infer_array(const Expr& expr, const ArrayExpr& array) {
  const Ty element = fresh(expr.location);
  if (array.elements.empty()) instances_.push_back({element, {}, expr.location, "element type of this empty array"});
  for (const ExprPtr& e : array.elements) check(*e, element, "Array element does not have the type of those before it");
  if (!require(element, kElement, expr.location, "This array is not possible")) return store_.error();
  return store_.array(store_.constant(static_cast<std::int64_t>(array.elements.size())), element);
}

Ty Checker::infer_if(const Expr& expr, const IfExpr& branch, Ty expected) {
  std::optional<BinderId> inside;
  std::vector<Branch> branches;
  const auto add = [&](const ExprPtr& value) {
    branches.push_back({value.get(), infer(*value, branches.empty() ? expected : branches.front().type)});
  };
  for (const IfArm& arm : branch.arms) {
    check(*arm.condition, store_.scalar(ScalarType::boolean), "The condition of 'if' does not have expected type");
    if (!inside) inside = static_cast<BinderId>(store_.binder_count());
    add(arm.value);
  }
  add(branch.else_value);
  return join_branches(expr, branches, *inside, "if");
}

Ty Checker::join_branches(const Expr& expr, const std::vector<Branch>& branches, BinderId inside,
                          const std::string& name) {
  const std::string called = "this '" + name + "'";
  // A constructor is of the sum type that another branch has, but for sizes.
  for (const Branch& known : branches)
    if (store_.get_if<TySum>(known.type))
      for (const Branch& open : branches)
        if (store_.get_if<TyVar>(open.type)) unifier_.unify(open.type, loosened(known.type));
  if (!pending_constructors_.empty()) solve_constructors(false);
  Ty type = branches.front().type;
  std::string why;
  for (std::size_t k = 1; k < branches.size(); ++k) {
    const Ty first = type, next = branches[k].type;
    unifier_.link(first, next, inside);
    const auto explain = [&] {
      if (why.empty()) why = "the branches have the types " + store_.to_text(first) + " and " + store_.to_text(next);
      return why;
    };
    std::vector<Differing> known;
    const auto differ = [&](Size s, Size t) { return differing(known, s, t, expr, called, explain()); };
    if (const auto clash = unifier_.join(first, next, differ, type))
      mismatch(*clash, branches[k].value->location, first, next, "Branches differ in type");
    else if (why.empty() && k == 1)
      explain();
  }
  Constraint branch = kBranch;
  if (name == "match") branch.reason = "the result of 'match'";
  if (!require(type, branch, branches.front().value->location, "This '" + name + "' is not possible")) return type;
  return without_inner_sizes(type, inside, expr, called, why);
}

// A size that nobody knows for two that differ; the same for the same two.
Size Checker::differing(std::vector<Differing>& known, Size s, Size t, const Expr& at, const std::string& name,
                        const std::string& why) {
  for (const Differing& before : known)
    if (unifier_.same(before.s, s) && unifier_.same(before.t, t)) return before.unknown;
  known.push_back({s, t, unknown_size(name, at.location, at.id, why)});
  return known.back().unknown;
}

// Sizes that were bound since `first` are nobody's outside: each is one that is known once the expression is evaluated.
Ty Checker::without_inner_sizes(Ty type, BinderId first, const Expr& expr, const std::string& name,
                                const std::string& why) {
  const auto inner = [&](BinderId binder) { return binder >= first; };
  type = with_visible_sizes(type, [&](BinderId binder) { return !inner(binder); });
  const std::vector<BinderId> free = store_.free_sizes(type, 0);
  std::vector<BinderId> own = out_.unknown_sizes[expr.id];
  if (std::ranges::none_of(free, [&](BinderId b) { return inner(b) && std::ranges::find(own, b) == own.end(); }))
    return type;
  std::vector<std::pair<Size, Size>> known;
  return with_sizes(type, [&](Size size) {
    bool keep = true;
    store_.walk_size(size, [&](Size, const SizeNode& node) {
      const auto* used = std::get_if<SizeName>(&node);
      keep = keep && !(used && inner(used->binder) && std::ranges::find(own, used->binder) == own.end());
    });
    if (keep) return size;
    for (const auto& [before, unknown] : known)
      if (unifier_.same(before, size)) return unknown;
    known.emplace_back(size, unknown_size(name, expr.location, expr.id, why));
    return known.back().second;
  });
}

Ty Checker::infer_ascribe(const Ascribe& ascribe) {
  const Ty type = type_of(*ascribe.type);
  if (!ascribe.coerce) {
    check(*ascribe.x, type, "Expression does not have expected type from type ascription");
    return type;
  }
  // `:>` may change sizes, which is checked when the program runs, but nothing else.
  const Ty actual = infer(*ascribe.x);
  if (store_.tree_size(type) > kMaxTypeSize) {
    report(Code::unsupported_construct, ascribe.x->location, "a type of this many parts cannot be compiled yet");
    return type;
  }
  // `[]` asks for no size: it is that of the expression.
  const Ty open = with_sizes(type, [&](Size size) {
    if (store_.get_if<SizeVar>(size)) return size;
    const Size own = store_.size_variable(level_, ascribe.x->location);
    if (!std::holds_alternative<Hole>(ascribe.x->node))
      instances_.push_back({{}, own, ascribe.x->location, "of what this size coercion is applied to", true});
    return own;
  });
  unify(open, actual, ascribe.x->location, "Expression cannot be coerced to this type");
  return type;
}

Ty Checker::infer_update(const Expr& expr, const UpdateExpr& update) {
  const Ty type = infer(*update.source);
  const Ty target = updated_part(type, update.steps, expr.id);
  std::string what = "The new value";
  if (!update.steps.empty() && update.steps.back().is_field)
    what += " of record field \"" + update.steps.back().field + "\"";
  what += " does not have expected type";
  const bool fields = std::ranges::all_of(update.steps, [](const AccessStep& step) { return step.is_field; });
  if (!fields || store_.tree_size(target) > kMaxTypeSize) {
    check(*update.value, target, what);
    return type;
  }
  // A field is replaced, not written to: the new value may have other sizes.
  const Ty value = infer(*update.value, target);
  if (const auto clash = unifier_.unify(loosened(target), value))
    mismatch(*clash, update.value->location, target, value, what + " but type " + store_.to_text(value));
  return with_field(type, update.steps, 0, value);
}

Ty Checker::with_field(Ty type, const std::vector<AccessStep>& steps, std::size_t step, Ty value) {
  if (step == steps.size()) return value;
  const auto* record = store_.get_if<TyRecord>(type);
  if (record == nullptr) return type;
  auto fields = record->fields;
  for (auto& [name, field] : fields)
    if (name == steps[step].field) field = with_field(field, steps, step + 1, value);
  return store_.record(std::move(fields));
}

Ty Checker::loosened(Ty type) {
  return with_sizes(type, [&](Size) { return store_.size_variable(level_, {}); });
}

Ty Checker::with_sizes(Ty type, const SizeChange& change) {
  const TyNode node = store_.node(type);
  if (const auto* array = std::get_if<TyArray>(&node)) {
    const Size size = change(array->size);
    return store_.array(size, with_sizes(array->element, change));
  }
  if (const auto* sum = std::get_if<TySum>(&node)) {
    auto constructors = sum->constructors;
    for (auto& [name, payload] : constructors)
      for (Ty& part : payload) part = with_sizes(part, change);
    return store_.sum(std::move(constructors));
  }
  if (const auto* abstract = std::get_if<TyAbstract>(&node)) {
    TyAbstract copy = *abstract;
    for (Size& size : copy.sizes) size = change(size);
    for (Ty& part : copy.types) part = with_sizes(part, change);
    return store_.abstract(copy.id, std::move(copy.types), std::move(copy.sizes));
  }
  const auto* record = std::get_if<TyRecord>(&node);
  if (record == nullptr || record->fields.empty()) return type;
  auto fields = record->fields;
  for (auto& [name, field] : fields) field = with_sizes(field, change);
  return store_.record(std::move(fields));
}

// `0..<n`, `0..1..<n` and `1..2...n` have n elements, `a..<b` and `a...b` as many as b - a says; of other ranges the
// size is known once they are evaluated.
std::optional<Size> Checker::range_size(const RangeExpr& range, Ty element) {
  int budget = 16;
  const auto start = as_size(*range.start, budget);
  const auto second = range.second ? as_size(*range.second, budget) : std::nullopt;
  const auto end = as_size(*range.end, budget);
  if (!start || !end || (range.second && !second) || range.kind == RangeExpr::End::above) return std::nullopt;
  if (!store_.get_if<SizeConst>(*end) && store_.as_scalar(element) != ScalarType::i64) return std::nullopt;
  const auto is = [&](Size size, std::int64_t value) {
    const auto* constant = store_.get_if<SizeConst>(size);
    return constant && constant->value == value;
  };
  const bool inclusive = range.kind == RangeExpr::End::inclusive;
  const std::int64_t origin = inclusive ? 1 : 0;
  if (is(*start, origin) && (!second || is(*second, origin + 1))) return end;
  if (second) return std::nullopt;
  const Size distance = store_.size_op('-', *end, *start);
  return inclusive ? store_.size_op('+', distance, store_.constant(1)) : distance;
}

Ty Checker::infer_range(const Expr& expr, const RangeExpr& range) {
  const Ty element = fresh(expr.location, {.scalars = kIntegers});
  const std::string what = "The parts of a range do not have the same type";
  check(*range.start, element, what);
  if (range.second) check(*range.second, element, what);
  check(*range.end, element, what);
  if (const auto size = range_size(range, element)) return store_.array(*size, element);
  if (!range.second && range.kind != RangeExpr::End::above && store_.as_scalar(element) == ScalarType::i64)
    for (const ExprPtr* part : {&range.start, &range.end}) warn_of_binding(**part);
  return store_.array(
      unknown_size("this range", expr.location, expr.id, "it is the unknown length of range " + to_text(expr)),
      element);
}

Size Checker::unknown_size(const std::string& name, Location location, std::uint32_t expr, std::string why) {
  const BinderId binder = store_.add_binder({.kind = Binder::Kind::unknown_size,
                                             .name = name,
                                             .location = location,
                                             .level = level_,
                                             .type = store_.scalar(ScalarType::i64),
                                             .why = std::move(why)});
  out_.unknown_sizes[expr].push_back(binder);
  with_unknown_.push_back(expr);
  return store_.name(binder);
}

// The module of `m.(e)`.
ModulePtr Checker::find_opened(const Name& name) const {
  std::vector<std::string> path = name.qualifiers;
  path.push_back(name.text);
  const ModulePtr module = scope_.module(path, path.size());
  return module && module->function ? nullptr : module;
}

void Checker::open_module(const ModuleValue& module) {
  if (module.scalar) open_modules_.emplace_back(*module.scalar, scope_.next_order());
  scope_.enter(module.members);
}

// `???` may be of any type; it fails when the program gets there.
Ty Checker::infer_hole(const Expr& expr) {
  warn(Code::warning_ambiguous, expr.location, "Hole: this expression has no value yet.");
  const Ty type = fresh(expr.location);
  holes_.push_back({type, {}, expr.location, {}});
  return type;
}

Ty Checker::infer_variable(const Expr& expr, const Name& name) {
  auto resolution = resolve(name);
  if (!resolution) return store_.error();
  Ty type = instantiate(*resolution, name.location, expr.id);
  for (const std::string& label : resolution->fields) type = field(type, label, name.location);
  out_.names[expr.id] = std::move(*resolution);
  return type;
}

}  // namespace apl::frontend
