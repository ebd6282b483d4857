// Names, tile numbers, polynomials and scalar operations as expressions.
#include <cctype>
#include <ranges>

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "codegen/lower/lower.h"
#include "ir/stray.h"
#include "ir/walk.h"

namespace apl::lower {

using namespace kernel;

void unsupported(Location location, std::string what) {
  throw Unsupported{make_error(Code::unsupported_construct, location, "code generation: " + std::move(what))};
}

namespace {

// The C library's function for an operation on doubles; null where there is none.
const char* math_name(UnaryOp op) {
  switch (op) {
    case UnaryOp::neg:
    case UnaryOp::complement:
    case UnaryOp::sgn:
    case UnaryOp::rsqrt:
    case UnaryOp::clz:
    case UnaryOp::popc: return nullptr;
    case UnaryOp::abs: return "fabs";
    case UnaryOp::round: return "rint";
    case UnaryOp::gamma: return "tgamma";
    default: return apl::to_text(op).data();
  }
}

const char* math_name(BinaryOp op) {
  switch (op) {
    case BinaryOp::min: return "fmin";
    case BinaryOp::max: return "fmax";
    case BinaryOp::mod: return "fmod";
    case BinaryOp::pow:
    case BinaryOp::atan2:
    case BinaryOp::hypot:
    case BinaryOp::copysign:
    case BinaryOp::nextafter:
    case BinaryOp::ldexp: return apl::to_text(op).data();
    default: return nullptr;
  }
}

void refuse_storage(ScalarType type) {
  if (is_storage(type)) unsupported({}, fmt::format("arithmetic on {}", apl::to_text(type)));
}

// Halves are computed as floats, and rounded then. Not all compilers of C have a type for them that converts itself.
constexpr const char* kToHalf = "apl_to_half";

ExprPtr rounded(const Dialect& dialect, ScalarType type, ExprPtr x) {
  refuse_storage(type);
  if (type != ScalarType::f16) return x;
  return dialect.on_device ? cast({type, false}, std::move(x)) : call(kToHalf, {std::move(x)});
}

ExprPtr number_of_half(const Dialect& dialect, ScalarType type, ExprPtr x) {
  if (dialect.on_device || type != ScalarType::f16) return x;
  if (x->kind == Expr::Kind::call && x->text == kToHalf && x->args[0]->kind == Expr::Kind::literal) return x->args[0];
  return call("apl_from_half", {std::move(x)});
}

ExprPtr math(const Dialect& dialect, const char* name, ScalarType type, std::vector<ExprPtr> args) {
  // C's compilers make no vectors of fmin and fmax.
  const std::string_view called = name;
  if (!dialect.on_device && (called == "fmin" || called == "fmax"))
    return rounded(dialect, type,
                   call(fmt::format("apl_{}_f{}", called, type == ScalarType::f64 ? 64 : 32), std::move(args)));
  return rounded(dialect, type, call(type == ScalarType::f64 ? name : std::string(name) + "f", std::move(args)));
}

bool is_float_number(const ExprPtr& x) {
  return x->kind == Expr::Kind::literal && x->text.find_first_of("0123456789") == (x->text.starts_with('-') ? 1U : 0U);
}

// C's compilers make no vectors of fmin and fmax, as they heed NaN. Beside a number a comparison does the same, as it
// is false for NaN.
ExprPtr limited(BinaryOp op, const ExprPtr& x, const ExprPtr& y) {
  const bool left = x->kind == Expr::Kind::variable && is_float_number(y);
  const bool right = y->kind == Expr::Kind::variable && is_float_number(x);
  if ((op != BinaryOp::min && op != BinaryOp::max) || !(left || right)) return nullptr;
  const std::string symbol = op == BinaryOp::min ? "<" : ">";
  return left ? select(infix(symbol, x, y), x, y) : select(infix(symbol + "=", y, x), y, x);
}

// Whether threads make checks: in a kernel's own code, or in a function that it calls.
class Checks {
 public:
  explicit Checks(const std::unordered_map<std::string_view, const apl::Function*>& functions)
      : functions_(functions) {}

  bool made_by(const Op& kernel, const ValueTable& values) {
    bool found = false;
    for_each_body(kernel, [&](const BodyPtr& body) { found = found || made_in(*body, values); });
    return found;
  }

 private:
  bool made_in(const Body& body, const ValueTable& values) {
    bool found = false;
    for_each_stm(body, [&](const Stm& stm) {
      const bool checks = get_if<Binary>(stm) || get_if<Index>(stm) || get_if<Update>(stm);
      const Apply* call = get_if<Apply>(stm);
      found = found || get_if<Assert>(stm) || (checks && can_fail(stm.op, values)) || (call && made_by(call->function));
    });
    return found;
  }

  bool made_by(const std::string& name) {
    if (const auto known = known_.find(name); known != known_.end()) return known->second;
    const auto callee = functions_.find(name);
    const bool made = callee == functions_.end() || made_in(*callee->second->body, callee->second->values);
    return known_.emplace(name, made).first->second;
  }

  const std::unordered_map<std::string_view, const apl::Function*>& functions_;
  std::unordered_map<std::string, bool> known_;
};

// Whether a thread may find no memory for an array of its own. What every thread makes, of a size that the host knows,
// it has from the host.
bool may_lack_memory(const Op& kernel, const ValueTable& values) {
  const SegOp* op = std::get_if<SegOp>(&kernel);
  if (op != nullptr && (op->level != SegLevel::thread || op->team)) return false;
  const std::set<Value> outside = free_values(kernel, values);
  bool found = false;
  const auto look = [&](const Stm& stm, bool every_thread) {
    const Alloc* alloc = get_if<Alloc>(stm);
    if (alloc == nullptr || alloc->bytes.constant()) return;
    alloc->bytes.for_each_symbol([&](Value v) { every_thread = every_thread && outside.contains(v); });
    found = found || !every_thread;
  };
  for_each_body(kernel, [&](const BodyPtr& body) {
    for (const Stm& stm : body->stms) {
      look(stm, true);
      for_each_body(stm.op,
                    [&](const BodyPtr& inner) { for_each_stm(*inner, [&](const Stm& other) { look(other, false); }); });
    }
  });
  return found;
}

}  // namespace

Unit::Unit(const apl::Function& f, Target t, const std::map<std::string, std::int64_t>& parameters, FileScope& file)
    : function(f), target(t), file_(file) {
  for_each_stm(*function.body, [&](const Stm& stm) {
    const GetSize* size = get_if<GetSize>(stm);
    if (!size) return;
    auto given = parameters.find(size->name);
    if (given == parameters.end() && size->size_class == SizeClass::thread_count && !target.on_device()) return;
    tiles_[stm.pattern.front()] = given == parameters.end() ? size->default_value : given->second;
  });
}

int Unit::add_call(const Location& location) {
  const int around = call(location);
  if (!location) return around;
  file_.locations.push_back({location, around, {}});
  return static_cast<int>(file_.locations.size());
}

const KnownMatrix* Unit::known(const std::string& key) const {
  const auto found = std::ranges::find(file_.known, key, &KnownMatrix::key);
  return found == file_.known.end() ? nullptr : &*found;
}

const std::string& Unit::name(Value value) {
  auto [at, added] = names_.try_emplace(value);
  if (added) at->second = fresh(function.values.name(value));
  return at->second;
}

std::string block_name(const ValueTable& values, Value block) {
  std::string name = values.name(block);
  if (name.ends_with("_mem")) name.resize(name.size() - 4);
  return name;
}

std::optional<std::int64_t> Unit::tile(Value value) const {
  auto found = tiles_.find(value);
  if (found == tiles_.end()) return std::nullopt;
  return found->second;
}

std::optional<std::int64_t> Unit::fold(const Poly& p) const {
  bool known = true;
  p.for_each_symbol([&](Value v) { known = known && tiles_.count(v) != 0; });
  if (!known) return std::nullopt;
  return p.evaluate([&](Value v) { return tiles_.at(v); });
}

std::int64_t Unit::constant(const Poly& p, const std::string& what) const {
  auto number = fold(p);
  if (!number) unsupported({}, what + " is not known when the kernel is compiled");
  return *number;
}

FileScope::FileScope(const Module& module, const apl::Function* only) : calls(module.calls), known(module.known) {
  for (const FunctionPtr& function : module.functions) functions.emplace(function->name, function.get());
  bool fails = false, strays = false;
  Checks checks(functions);
  const auto note = [&](const Op& kernel, const ValueTable& values) {
    fails = fails || checks.made_by(kernel, values) || may_lack_memory(kernel, values);
    strays = strays || may_stray(kernel, values);
  };
  const std::function<void(const Body&, const ValueTable&)> look = [&](const Body& body, const ValueTable& values) {
    for (const Stm& stm : body.stms) {
      if (get_if<SegOp>(stm) || get_if<Scatter>(stm)) {
        note(stm.op, values);
      } else {
        for_each_body(stm.op, [&](const BodyPtr& inner) { look(*inner, values); });
      }
    }
  };
  for (const FunctionPtr& function : module.functions)
    if (!function->entry || only == nullptr || only == function.get()) look(*function->body, function->values);
  may_stray_behind = fails && strays;
}

int FileScope::call(std::uint32_t number) {
  // Calls that have no location yet, the innermost first; chains are as long as the program nests its calls.
  std::vector<std::uint32_t> inner;
  for (; number != 0 && !call_locations_.contains(number); number = calls[number - 1].call) inner.push_back(number);
  int result = number == 0 ? 0 : call_locations_.at(number);
  for (const std::uint32_t next : std::views::reverse(inner)) {
    locations.push_back({calls[next - 1], result, {}});
    result = static_cast<int>(locations.size());
    call_locations_.emplace(next, result);
  }
  return result;
}

const apl::Function& Unit::callee(const std::string& name) const {
  const auto found = file_.functions.find(name);
  if (found == file_.functions.end()) unsupported({}, fmt::format("a call of `{}`, which there is not", name));
  return *found->second;
}

const kernel::Function& Unit::called(const std::string& name) {
  if (const auto known = file_.called.find(name); known != file_.called.end()) return known->second;
  Unit unit(callee(name), target, {}, file_);
  kernel::Function made = lower_called(unit);
  file_.called_order.push_back(name);
  return file_.called.emplace(name, std::move(made)).first->second;
}

std::size_t Unit::constant_number(const std::string& name) {
  const auto found = std::ranges::find(file_.constants, name);
  const auto number = static_cast<std::size_t>(found - file_.constants.begin());
  if (found == file_.constants.end()) file_.constants.push_back(name);
  return number;
}

const std::string& Unit::host_name(const std::string& name) {
  std::string& text = file_.host_names[name];
  if (text.empty()) {
    text = file_.names.add(fmt::format("apl_function_{}", symbol_part(name)), {});
    file_.host_order.push_back(name);
  }
  return text;
}

int Unit::add_check(Location location, std::string message) {
  const int from = call(location);
  file_.locations.push_back({location, from, std::move(message)});
  return static_cast<int>(file_.locations.size()) - 1;
}

ExprPtr Values::value(Value v) {
  auto found = scalars.find(v);
  return found == scalars.end() ? variable(unit.name(v)) : found->second;
}

ExprPtr Values::operand(const Operand& x) {
  // A unit is nothing in generated code; where a number must stand, it is 0.
  if (unit.function.values.type(x).element == ScalarType::unit) return literal(std::int64_t{0});
  return x.is_value() ? value(x.value()) : constant(x.constant());
}

ExprPtr Values::constant(const Scalar& x) {
  if (dialect.on_device || x.type() != ScalarType::f16) return literal(x);
  return call(kToHalf, {literal(Scalar::floating(ScalarType::f32, x.as_float()))});
}

ExprPtr Values::factor(const Factor& f) {
  if (!f.opaque) return value(f.symbol);
  const char* function = "apl_ceil_div";
  switch (f.opaque->kind) {
    case OpaqueKind::ceil_div: break;
    case OpaqueKind::floor_div: function = "apl_floor_div"; break;
    case OpaqueKind::min: function = "apl_index_min"; break;
    case OpaqueKind::max: function = "apl_index_max"; break;
  }
  return call(function, {poly(f.opaque->a), poly(f.opaque->b)});
}

ExprPtr Values::poly(const Poly& p) {
  // Tile numbers keep their names in products; a sum of them is just a number.
  bool plain = p.terms().size() == 1 && p.terms()[0].coefficient == 1;
  if (plain)
    for (const Factor& f : p.terms()[0].factors) plain = plain && !f.opaque;
  if (!plain)
    if (auto number = unit.fold(p)) return literal(*number);
  ExprPtr sum = literal(std::int64_t{0});
  auto term_of = [&](const Term& term, std::int64_t coefficient) {
    // Narrow factors first, so that what is made of tile numbers and thread indices stays an int.
    ExprPtr product = literal(coefficient);
    for (bool wide : {false, true})
      for (const Factor& f : term.factors) {
        bool narrow = !f.opaque && unit.tile(f.symbol).has_value();
        if (narrow != wide) product = mul(product, factor(f));
      }
    return product;
  };
  for (const Term& term : p.terms())
    if (term.coefficient > 0) sum = add(sum, term_of(term, term.coefficient));
  for (const Term& term : p.terms())
    if (term.coefficient < 0) {
      if (term.factors.empty()) {
        sum = add(sum, literal(term.coefficient));
      } else {
        ExprPtr magnitude = term_of(term, -term.coefficient);
        sum = number(sum) == 0 ? prefix("-", magnitude) : infix("-", sum, magnitude);
      }
    }
  return sum;
}

// A program's own number, which may wrap: CUDA's compilers take it that a signed one does not, and simplify what is
// divided or compared by that.
ExprPtr Values::wrapping(const Poly& p) {
  bool is_small = true;
  p.for_each_symbol([&](Value v) { is_small = is_small && unit.tile(v).has_value(); });
  const bool is_one_number =
      p.terms().size() == 1 && p.terms().front().coefficient == 1 && p.terms().front().factors.size() == 1;
  if (!dialect.on_device || is_small || is_one_number) return poly(p);
  const CType wide{ScalarType::u64, false};
  ExprPtr sum;
  for (const Term& term : p.terms()) {
    const bool subtracts = term.coefficient < 0;
    ExprPtr product = literal(subtracts ? -term.coefficient : term.coefficient);
    for (const Factor& f : term.factors) product = mul(product, cast(wide, factor(f)));
    if (!sum && (subtracts || term.factors.empty())) sum = cast(wide, literal(std::int64_t{0}));
    sum = sum ? infix(subtracts ? "-" : "+", sum, product) : product;
  }
  return cast({ScalarType::i64, false}, sum);
}

ExprPtr Values::typed_call(const std::string& name, ScalarType type, std::vector<ExprPtr> args) {
  if (!dialect.on_device) return call(fmt::format("{}_{}", name, apl::to_text(type)), std::move(args));
  return call(fmt::format("{}<{}>", name, c_type({type, false})), std::move(args));
}

ExprPtr Values::unary(UnaryOp op, ScalarType type, ExprPtr x) {
  refuse_storage(type);
  if (op != UnaryOp::sgn) x = number_of_half(dialect, type, std::move(x));
  if (const char* name = math_name(op); name && is_float(type)) return math(dialect, name, type, {x});
  switch (op) {
    case UnaryOp::neg:
      if (is_integer(type) && dialect.on_device) return typed_call("apl_sub", type, {literal(std::int64_t{0}), x});
      return is_integer(type) ? cast({type, false}, prefix("-", x)) : rounded(dialect, type, prefix("-", x));
    case UnaryOp::rsqrt: {
      const ScalarType computed = type == ScalarType::f64 ? type : ScalarType::f32;
      return rounded(dialect, type, typed_call("apl_rsqrt", computed, {x}));
    }
    case UnaryOp::complement: return type == ScalarType::boolean ? prefix("!", x) : cast({type, false}, prefix("~", x));
    default: return typed_call(fmt::format("apl_{}", apl::to_text(op)), type, {x});
  }
}

// A remainder or quotient by a power of two that is known, both rounded down, without a division; null: it is none.
static ExprPtr by_power_of_two(BinaryOp op, ScalarType type, const ExprPtr& x, const ExprPtr& y) {
  const std::optional<std::int64_t> by = number(y);
  if (!is_integer(type) || !by || *by < 1 || (*by & (*by - 1)) != 0) return nullptr;
  const CType c_type{type, false};
  if (op == BinaryOp::mod) return cast(c_type, infix("&", x, literal(*by - 1)));
  int digits = 0;
  while ((std::int64_t{1} << digits) < *by) ++digits;
  return op == BinaryOp::div ? cast(c_type, infix(">>", x, literal(std::int64_t{digits}))) : nullptr;
}

ExprPtr Values::binary(BinaryOp op, ScalarType type, ExprPtr x, ExprPtr y) {
  refuse_storage(type);
  op = division_of(op).value_or(op);  // the functions of the runtime divide by 0, too, and then return 0
  if (ExprPtr found = by_power_of_two(op, type, x, y)) return found;
  const bool integer = is_integer(type);
  // C promotes narrow integers to int, and CUDA has no wrapping for signed ones.
  auto arithmetic = [&](const char* symbol) {
    if (!integer) return rounded(dialect, type, infix(symbol, x, y));
    if (dialect.on_device && is_signed(type)) return typed_call(fmt::format("apl_{}", apl::to_text(op)), type, {x, y});
    return bit_width(type) < 32 ? cast({type, false}, infix(symbol, x, y)) : infix(symbol, x, y);
  };
  // Going by way of float, the neighbour would be lost again.
  const bool steps = op == BinaryOp::nextafter && type == ScalarType::f16;
  if (!steps) x = number_of_half(dialect, type, std::move(x)), y = number_of_half(dialect, type, std::move(y));
  if (op == BinaryOp::ldexp) y = typed_call("apl_from_float", ScalarType::i32, {y});
  const bool is_c_float = !dialect.on_device && (type == ScalarType::f32 || type == ScalarType::f64);
  if (ExprPtr found = is_c_float ? limited(op, x, y) : nullptr) return found;
  if (const char* name = math_name(op); name && !integer && !steps) return math(dialect, name, type, {x, y});
  switch (op) {
    case BinaryOp::add: return arithmetic("+");
    case BinaryOp::sub: return arithmetic("-");
    case BinaryOp::mul: return arithmetic("*");
    case BinaryOp::div: return integer ? typed_call("apl_div", type, {x, y}) : rounded(dialect, type, infix("/", x, y));
    case BinaryOp::conj: return infix(type == ScalarType::boolean ? "&&" : "&", x, y);
    case BinaryOp::disj: return infix(type == ScalarType::boolean ? "||" : "|", x, y);
    case BinaryOp::exor: return infix(type == ScalarType::boolean ? "!=" : "^", x, y);
    default: return typed_call(fmt::format("apl_{}", apl::to_text(op)), type, {x, y});
  }
}

ExprPtr Values::uniform_division(BinaryOp op, ScalarType type, ExprPtr x, ExprPtr y) {
  return typed_call(fmt::format("apl_{}_uniform", apl::to_text(division_of(op).value_or(op))), type,
                    {std::move(x), std::move(y)});
}

ExprPtr Values::compare(CompareOp op, ScalarType type, ExprPtr x, ExprPtr y) {
  refuse_storage(type);
  const char* symbol = op == CompareOp::eq ? "==" : op == CompareOp::ne ? "!=" : op == CompareOp::lt ? "<" : "<=";
  return infix(symbol, number_of_half(dialect, type, std::move(x)), number_of_half(dialect, type, std::move(y)));
}

ExprPtr Values::convert(const Convert& op, ScalarType from, ExprPtr x) {
  if (!op.same_bits && is_storage(from) && op.to != from) {
    x = call(fmt::format("apl_from_{}", apl::to_text(from)), {std::move(x)});
    from = ScalarType::f32;
    if (op.to == from) return x;
  }
  if (!op.same_bits && from == ScalarType::f16 && op.to != from && !dialect.on_device) {
    x = number_of_half(dialect, from, std::move(x));
    from = ScalarType::f32;
    if (op.to == from) return x;
  }
  if (!op.same_bits && op.to == ScalarType::f16 && from != op.to && !dialect.on_device)
    return call(from == ScalarType::f64 ? "apl_to_half_of_f64" : kToHalf, {std::move(x)});
  if (!op.same_bits && is_storage(op.to) && from != op.to) {
    const bool fits = from == ScalarType::f32 || bit_width(from) < 32;
    return call(fmt::format("apl_to_{}{}", apl::to_text(op.to), fits ? "" : "_of_f64"), {std::move(x)});
  }
  if (op.same_bits && is_float(from)) return cast({op.to, false}, typed_call("apl_to_bits", from, {x}));
  if (op.same_bits && is_float(op.to)) return typed_call("apl_from_bits", op.to, {x});
  if (op.to == ScalarType::boolean) return infix("!=", x, literal(std::int64_t{0}));
  if (is_float(from) && is_integer(op.to)) return typed_call("apl_from_float", op.to, {x});
  return cast({op.to, false}, x);
}

}  // namespace apl::lower
