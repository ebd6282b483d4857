// Random scalars, tuples and records.
#include <cmath>
#include <limits>

#include "tests/oracle/scope.h"

namespace apl::oracle {

Tree Generator::no_negative_zero(Tree x) {
  const ScalarType type = x->type.scalar;
  return binary(BinaryOp::add, std::move(x), literal(real(type, 0)));
}

Tree Generator::converted(ScalarType type, int depth) {
  const ScalarType from = chance(15) ? ScalarType::boolean : any_scalar();
  return convert_to(type, scalar(from, depth - 1));
}

Tree Generator::small_float(ScalarType type, int depth) {
  return convert_to(type, binary(BinaryOp::mod, scalar(ScalarType::i32, depth), literal(integer(ScalarType::i32, 4))));
}

Tree Generator::small_index(std::int64_t below, int depth) {
  return binary(BinaryOp::mod, scalar(ScalarType::i64, depth), whole(below));
}

Tree Generator::index_in(const std::string& dim, int depth) {
  return binary(BinaryOp::mod, scalar(ScalarType::i64, std::min(depth, 1)),
                variable(dim, scalar_type(ScalarType::i64)));
}

// The same number: 4 * h and h * h are 0 modulo 2^64.
Tree Generator::wrapped(Tree x) {
  const Tree h = variable("h", scalar_type(ScalarType::i64));
  const auto times = [](Tree a, std::int64_t k) { return binary(BinaryOp::mul, std::move(a), whole(k)); };
  const std::int64_t k = between(1, 3);
  switch (between(0, 7)) {
    case 0: return binary(BinaryOp::add, times(h, 4 * k), x);
    case 1: return binary(BinaryOp::sub, x, times(h, 4 * k));
    case 2:  // (h + k) * 4 + (x - 4 k)
      return binary(BinaryOp::add, times(binary(BinaryOp::add, h, whole(k)), 4),
                    binary(BinaryOp::sub, x, whole(4 * k)));
    case 3: return binary(BinaryOp::add, binary(BinaryOp::mul, h, h), x);
    case 4: return binary(BinaryOp::add, binary(BinaryOp::add, times(h, 2), x), times(h, 2));
    default: return x;
  }
}

// An element of an array in scope, or of a row of one; of arrays that may be empty only behind a question.
Tree Generator::from_array(const Type& type, int depth) {
  const Tree source = any_variable([&](const Type& t) {
    Type element = t;
    element.dims.clear();
    return t.is_array() && t.dims.size() <= 2 && element == type;
  });
  if (!source) return nullptr;
  if (source->type.dims.size() == 1 && nonempty_.contains(source->type.dims[0]) && chance(20))
    return make(chance(50) ? Form::head : Form::last, type, {source});
  std::vector<Tree> kids{source};
  Tree all_nonempty;
  for (const std::string& dim : source->type.dims) {
    const Tree size = variable(dim, scalar_type(ScalarType::i64));
    if (!nonempty_.contains(dim)) {
      Tree is = binary(BinaryOp::lt, whole(0), size);
      all_nonempty = all_nonempty ? binary(BinaryOp::both, all_nonempty, is) : is;
    }
    kids.push_back(chance(20) && nonempty_.contains(dim) ? binary(BinaryOp::sub, size, whole(1))
                                                         : index_in(dim, depth));
  }
  Tree read = make(Form::index, type, kids);
  if (!all_nonempty) return read;
  return make(Form::branch, type, {all_nonempty, read, element(type, 0)});
}

Tree Generator::condition(int depth) {
  if (depth <= 0) {
    if (const Tree known = any_variable([](const Type& t) { return t == scalar_type(ScalarType::boolean); });
        known && chance(60))
      return known;
    return literal(boolean(chance(50)));
  }
  switch (between(0, 7)) {
    case 0: return unary(UnaryOp::negate_bool, condition(depth - 1));
    case 1: return binary(chance(50) ? BinaryOp::both : BinaryOp::either, condition(depth - 1), condition(depth - 1));
    case 2: {
      static const std::vector<ScalarType> kReals{ScalarType::f16, ScalarType::f32, ScalarType::f64};
      return unary(chance(50) ? UnaryOp::isnan : UnaryOp::isinf, scalar(one_of(kReals), depth - 1));
    }
    case 3: return convert_to(ScalarType::boolean, scalar(any_scalar(), depth - 1));
    default: {
      static const std::vector<BinaryOp> kOps{BinaryOp::eq, BinaryOp::ne, BinaryOp::lt, BinaryOp::le};
      const ScalarType type = any_scalar();
      return binary(one_of(kOps), scalar(type, depth - 1), scalar(type, depth - 1));
    }
  }
}

Tree Generator::real_scalar(ScalarType type, int depth) {
  switch (between(0, 11)) {
    case 0:
    case 1:
    case 2:
    case 3: {
      static const std::vector<BinaryOp> kOps{BinaryOp::add, BinaryOp::sub, BinaryOp::mul,
                                              BinaryOp::div, BinaryOp::mod, BinaryOp::mul};
      return binary(one_of(kOps), scalar(type, depth - 1), scalar(type, depth - 1));
    }
    case 4:
      return binary(chance(50) ? BinaryOp::min : BinaryOp::max, no_negative_zero(scalar(type, depth - 1)),
                    no_negative_zero(scalar(type, depth - 1)));
    case 5: {  // the sign of a NaN is anybody's guess
      const Tree sign = scalar(type, depth - 1);
      const std::string name = fresh();
      const Tree known = variable(name, scalar_type(type));
      return let({name, scalar_type(type), {}}, {}, sign,
                 make(Form::branch, scalar_type(type),
                      {unary(UnaryOp::isnan, known), literal(real(type, 1)),
                       binary(BinaryOp::copysign, scalar(type, depth - 1), known)}));
    }
    case 6: return converted(type, depth);
    case 7: {  // a NaN that signals is quiet after an addition
      const ScalarType bits = type == ScalarType::f16   ? ScalarType::u16
                              : type == ScalarType::f32 ? ScalarType::u32
                                                        : ScalarType::u64;
      return no_negative_zero(make(Form::from_bits, scalar_type(type), {scalar(bits, depth - 1)}));
    }
    default: {
      static const std::vector<UnaryOp> kOps{UnaryOp::neg,   UnaryOp::abs,  UnaryOp::sgn,   UnaryOp::sqrt,
                                             UnaryOp::floor, UnaryOp::ceil, UnaryOp::round, UnaryOp::trunc};
      return unary(one_of(kOps), scalar(type, depth - 1));
    }
  }
}

Tree Generator::integer_scalar(ScalarType type, int depth) {
  const auto some = [&] { return scalar(type, depth - 1); };
  switch (between(0, 11)) {
    case 0: {  // by what is odd, and so not zero
      static const std::vector<BinaryOp> kOps{BinaryOp::div, BinaryOp::mod, BinaryOp::quot, BinaryOp::rem};
      return binary(one_of(kOps), some(), binary(BinaryOp::bor, some(), literal(integer(type, 1))));
    }
    case 1: {
      static const std::vector<BinaryOp> kOps{BinaryOp::shl, BinaryOp::shr, BinaryOp::shr_logical};
      return binary(one_of(kOps), some(), chance(60) ? literal(integer(type, between(0, 70))) : some());
    }
    case 2: return binary(BinaryOp::pow, some(), binary(BinaryOp::band, some(), literal(integer(type, 7))));
    case 3: {
      static const std::vector<UnaryOp> kOps{UnaryOp::neg, UnaryOp::complement, UnaryOp::abs, UnaryOp::sgn};
      return unary(one_of(kOps), some());
    }
    case 4: {
      static const std::vector<UnaryOp> kOps{UnaryOp::popc, UnaryOp::clz, UnaryOp::ctz};
      const Tree bits = unary(one_of(kOps), scalar(any_integer(), depth - 1));
      return type == ScalarType::i32 ? bits : convert_to(type, bits);
    }
    case 5:
    case 6: return converted(type, depth);
    default: {
      static const std::vector<BinaryOp> kOps{BinaryOp::add, BinaryOp::sub,   BinaryOp::mul, BinaryOp::min,
                                              BinaryOp::max, BinaryOp::band,  BinaryOp::bor, BinaryOp::bxor,
                                              BinaryOp::add, BinaryOp::mul_hi};
      return binary(one_of(kOps), some(), some());
    }
  }
}

// As long as a counter is below a bound.
Tree Generator::counted_loop(const Type& type, int depth) {
  const Type i64 = scalar_type(ScalarType::i64);
  const Pattern counter{fresh("c"), i64, {}}, state{fresh("s"), type, {}};
  const Type both = tuple_type({i64, type});
  const Tree start = make(Form::tuple, both, {whole(0), scalar(type.scalar, depth)}), bound = small_index(5, 1);
  const Pattern limit{fresh("n"), i64, {}};
  const Tree known = variable(counter.name, i64);
  const Scope scope(*this);
  bind(counter), bind(state);
  const Tree next = make(Form::tuple, both, {binary(BinaryOp::add, known, whole(1)), scalar(type.scalar, depth)});
  Tree loop =
      make(Form::while_loop, both, {start}, {{{}, binary(BinaryOp::lt, known, variable(limit.name, i64))}, {{}, next}});
  std::const_pointer_cast<Node>(loop)->pattern = {"", both, {counter, state}};
  return let(limit, {}, bound, field(loop, 1));
}

Tree Generator::scalar(ScalarType type, int depth) {
  --budget_;
  if (type == ScalarType::boolean && depth > 0 && budget_ > 0) return condition(depth);
  const Type wanted = scalar_type(type);
  if (depth <= 0 || budget_ <= 0 || chance(25)) {
    if (chance(75)) {
      if (const Tree known = any_variable([&](const Type& t) { return t == wanted; })) return known;
      // A field of a tuple in scope.
      const Tree whole_one = any_variable([&](const Type& t) {
        return t.is_tuple() && std::find(t.fields.begin(), t.fields.end(), wanted) != t.fields.end();
      });
      if (whole_one) {
        const auto& fields = whole_one->type.fields;
        return field(whole_one,
                     static_cast<std::size_t>(std::find(fields.begin(), fields.end(), wanted) - fields.begin()));
      }
    }
    if (chance(70))
      if (const Tree known = any_variable([&](const Type& t) { return t.is_scalar(); })) return convert_to(type, known);
    return literal(corner(type));
  }
  switch (between(0, 9)) {
    case 0:
    case 1:
      if (Tree read = from_array(wanted, depth)) return read;
      break;
    case 2: return make(Form::branch, wanted, {condition(depth - 1), scalar(type, depth - 1), scalar(type, depth - 1)});
    case 3: {
      const Type bound = scalar_type(any_scalar());
      const Pattern pattern{fresh(), bound, {}};
      const Tree value = scalar(bound.scalar, depth - 1);
      const Scope scope(*this);
      bind(pattern);
      return let(pattern, {}, value, scalar(type, depth - 1));
    }
    case 4:
      if (depth >= 2 && is_whole(type)) return reduced(wanted, depth - 1);
      break;
    case 5:
      if (depth >= 2) return counted_loop(wanted, depth - 1);
      break;
    case 6:
      if (type == ScalarType::i64)
        if (const Tree some = any_variable([](const Type& t) { return t.is_array(); }))
          return make(Form::length, wanted, {some});
      break;
    default: break;
  }
  if (type == ScalarType::boolean) return condition(depth);
  return is_real(type) ? real_scalar(type, depth) : integer_scalar(type, depth);
}

Tree Generator::element(const Type& type, int depth) {
  if (type.is_scalar()) return scalar(type.scalar, depth);
  if (chance(25))
    if (const Tree known = any_variable([&](const Type& t) { return t == type; })) {
      if (chance(60) || type.names.empty()) return known;
      const auto k = static_cast<std::size_t>(between(0, static_cast<std::int64_t>(type.fields.size()) - 1));
      Tree changed = make(Form::with_field, type, {known, element(type.fields[k], depth - 1)});
      std::const_pointer_cast<Node>(changed)->name = type.names[k];
      return changed;
    }
  if (depth > 0 && chance(20))
    if (Tree read = from_array(type, depth)) return read;
  std::vector<Tree> parts;
  for (const Type& part : type.fields) parts.push_back(element(part, depth - 1));
  return make(Form::tuple, type, std::move(parts));
}

}  // namespace apl::oracle
