// Associative operators: of scalars, pairs, triples and records; many of them do not commute.
#include <fmt/format.h>

#include "tests/oracle/scope.h"

namespace apl::oracle {
namespace {

Tree choice(Tree c, Tree a, Tree b) {
  const Type type = a->type;
  return make(Form::branch, type, {std::move(c), std::move(a), std::move(b)});
}

}  // namespace

Tree Generator::operand(const Operator& op, const Type& type, int depth) {
  switch (op.takes) {
    case Operator::Takes::small: return small_float(type.scalar, depth);
    case Operator::Takes::positive_zeros: return no_negative_zero(scalar(type.scalar, depth));
    case Operator::Takes::normal: {
      const Pattern set{fresh(), scalar_type(ScalarType::boolean), {}};
      const Tree flag = condition(depth), known = variable(set.name, set.type);
      const Tree value = scalar(type.fields[1].scalar, depth);
      return let(set, {}, flag, make(Form::tuple, type, {known, choice(known, value, op.neutral->kids[1])}));
    }
    default: return element(type, depth);
  }
}

Tree Generator::operands(const Operator& op, const Type& type, int depth) {
  if (op.takes == Operator::Takes::all && chance(60)) return array(type, depth);
  // One for each element of what is at hand.
  const Tree over = any_variable([&](const Type& t) { return t.is_array() && t.dims.front() == type.dims.front(); });
  const Tree source = over && chance(80) ? over
                                         : make(Form::iota, array_of(type.dims.front(), scalar_type(ScalarType::i64)),
                                                {variable(type.dims.front(), scalar_type(ScalarType::i64))});
  const Scope scope(*this);
  const Pattern param{fresh(), row_of(source->type), {}};
  bind(param);
  nonempty_.insert(type.dims.front());
  return make(Form::map, type, {source}, {{{param}, operand(op, row_of(type), depth - 1)}});
}

Type Generator::operator_type() {
  switch (between(0, 5)) {
    case 0:
    case 1:
    case 2: return scalar_type(chance(20) ? ScalarType::boolean : any_scalar());
    case 3: {  // a flag, and what it marks
      Type type = tuple_type({scalar_type(ScalarType::boolean), scalar_type(any_scalar())});
      if (chance(40))
        type.names = chance(50) ? std::vector<std::string>{"flag", "value"} : std::vector<std::string>{"set", "at"};
      return type;
    }
    case 4: {
      const ScalarType whole = any_integer();
      Type type = tuple_type({scalar_type(whole), scalar_type(whole)});
      if (chance(40)) type.names = {"b", "a"};
      return type;
    }
    default: {
      const Type whole = scalar_type(any_integer());
      return tuple_type({whole, whole, whole, whole});
    }
  }
}

Generator::Operator Generator::scalar_operator(ScalarType type) {
  const Type t = scalar_type(type);
  const std::string a = fresh("a"), b = fresh("b"), module(to_text(type));
  Operator result{{{{a, t, {}}, {b, t, {}}}, nullptr}, nullptr, "", true};
  const Tree x = variable(a, t), y = variable(b, t);
  BinaryOp op = BinaryOp::add;
  if (type == ScalarType::boolean) {
    op = chance(50) ? BinaryOp::both : BinaryOp::either;
    result.neutral = literal(boolean(op == BinaryOp::both));
    result.name = op == BinaryOp::both ? "and" : "or";
  } else if (is_real(type)) {
    static const std::vector<BinaryOp> kOps{BinaryOp::add, BinaryOp::min, BinaryOp::max};
    op = one_of(kOps);
    const double limit = op == BinaryOp::add ? 0 : op == BinaryOp::min ? 1e30 : -1e30;  // infinite in f16
    result.neutral = literal(real(type, type == ScalarType::f16 || limit == 0 ? limit : limit * 1e300));
    result.takes = op == BinaryOp::add ? Operator::Takes::small : Operator::Takes::positive_zeros;
    result.name = module + (op == BinaryOp::add ? ".sum" : op == BinaryOp::min ? ".minimum" : ".maximum");
  } else {
    static const std::vector<BinaryOp> kOps{BinaryOp::add,  BinaryOp::mul, BinaryOp::min, BinaryOp::max,
                                            BinaryOp::band, BinaryOp::bor, BinaryOp::bxor};
    op = one_of(kOps);
    const int width = width_of(type);
    const auto top = static_cast<std::int64_t>(~std::uint64_t(0) >> (64 - width + (is_signed_type(type) ? 1 : 0)));
    std::int64_t neutral = 0;
    if (op == BinaryOp::mul) neutral = 1;
    if (op == BinaryOp::band) neutral = -1;
    if (op == BinaryOp::min) neutral = top;
    if (op == BinaryOp::max) neutral = is_signed_type(type) ? -top - 1 : 0;
    result.neutral = literal(integer(type, neutral));
    if (op == BinaryOp::add) result.name = module + ".sum";
    if (op == BinaryOp::mul) result.name = module + ".product";
    if (op == BinaryOp::min) result.name = module + ".minimum";
    if (op == BinaryOp::max) result.name = module + ".maximum";
  }
  result.op.body = binary(op, x, y);
  return result;
}

Generator::Operator Generator::of_records(const Type& type) {
  const std::string a = fresh("a"), b = fresh("b");
  Operator result{{{{a, type, {}}, {b, type, {}}}, nullptr}, nullptr, "", false};
  std::vector<Tree> x, y;
  // By their fields, or by patterns of them.
  const bool by_pattern = type.names.empty() && chance(60);
  for (std::size_t k = 0; k < type.fields.size(); ++k) {
    for (auto [parts, number] : {std::pair{&x, 0}, std::pair{&y, 1}}) {
      Pattern& param = result.op.params[static_cast<std::size_t>(number)];
      if (!by_pattern) {
        parts->push_back(field(variable(param.name, type), k));
        continue;
      }
      param.parts.push_back({fresh(number == 0 ? "a" : "b"), type.fields[k], {}});
      parts->push_back(variable(param.parts.back().name, type.fields[k]));
    }
  }
  const auto tuple = [&](std::vector<Tree> parts) { return make(Form::tuple, type, std::move(parts)); };
  const auto number = [&](std::size_t k, std::int64_t value) {
    const ScalarType scalar = type.fields[k].scalar;
    return literal(is_real(scalar) ? real(scalar, static_cast<double>(value)) : integer(scalar, value));
  };
  const auto add = [](const Tree& p, const Tree& q) { return binary(BinaryOp::add, p, q); };
  const auto mul = [](const Tree& p, const Tree& q) { return binary(BinaryOp::mul, p, q); };
  if (type.fields.size() == 4) {  // products of matrices
    result.op.body = tuple({add(mul(x[0], y[0]), mul(x[1], y[2])), add(mul(x[0], y[1]), mul(x[1], y[3])),
                            add(mul(x[2], y[0]), mul(x[3], y[2])), add(mul(x[2], y[1]), mul(x[3], y[3]))});
    result.neutral = tuple({number(0, 1), number(1, 0), number(2, 0), number(3, 1)});
  } else if (type.fields[0].scalar != ScalarType::boolean) {
    if (chance(60)) {  // x -> a x + b, one after the other
      result.op.body = tuple({mul(x[0], y[0]), add(mul(x[1], y[0]), y[1])});
      result.neutral = tuple({number(0, 1), number(1, 0)});
    } else {
      result.op.body = tuple({add(x[0], y[0]), binary(BinaryOp::bxor, x[1], y[1])});
      result.neutral = tuple({number(0, 0), number(1, 0)});
      result.commutes = true;
    }
  } else {
    const bool sums = is_whole(type.fields[1].scalar) && chance(50);
    const bool last = sums || chance(50);
    const Tree either = binary(BinaryOp::either, x[0], y[0]);
    if (sums)  // in segments
      result.op.body = tuple({either, choice(y[0], y[1], add(x[1], y[1]))});
    else  // the last, or first, that is set
      result.op.body = choice(last ? y[0] : x[0], tuple(last ? y : x), tuple(last ? x : y));
    const ScalarType marked = type.fields[1].scalar;
    result.neutral =
        tuple({literal(boolean(false)), marked == ScalarType::boolean ? literal(boolean(false)) : number(1, 0)});
    if (!sums) result.takes = Operator::Takes::normal;
  }
  return result;
}

Tree Generator::applied(Form form, const Type& type, std::vector<Tree> kids, const Operator& op) {
  static const std::vector<std::string> kSymbols{"<+>", "+", "%%%", "><", "*.", "|||"};
  Tree result = make(form, type, std::move(kids), {op.op});
  const std::uint64_t drawn = modules_();
  // Rather those whose operands may not be exchanged.
  if (drawn % 10 >= (op.commutes ? 3 : 7)) return result;
  ModuleUse& module = std::const_pointer_cast<Node>(result)->module;
  module.family = fmt::format("p{}", seed_);
  module.name = fmt::format("m{}_{}", ++modules_made_, module.family);
  module.symbol = kSymbols[seed_ % kSymbols.size()];
  module.how = static_cast<ModuleUse::How>(drawn / 10 % 3);
  return result;
}

Generator::Operator Generator::any_operator(const Type& type) {
  return type.is_scalar() ? scalar_operator(type.scalar) : of_records(type);
}

}  // namespace apl::oracle
