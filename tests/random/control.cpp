// Bindings, branches, loops, tuples.
#include <fmt/format.h>

#include <algorithm>

#include "tests/random/generator.h"

namespace apl::random_tests {

namespace {

constexpr double kCarried = 64;  // what loops carry stays below: each iteration gives what the next one may have

// The type is given: else sizes are those that iterations may change.
std::string carries(const std::string& name, const Type& type) { return "(" + name + ": " + type.text() + ")"; }

}  // namespace

Generator::Maybe Generator::let_in(const Type& type, double limit, int depth) {
  const Type bound_type = any_type(2);
  const Expr bound = value(bound_type, 1 << 16, depth);
  const Scope scope(*this);
  std::string pattern;
  if (bound_type.is_tuple() && chance(60)) {
    for (const Type& field : bound_type.fields) {
      const std::string name = fresh();
      pattern += (pattern.empty() ? "(" : ", ") + name;
      bind(name, field, bound->magnitude);
    }
    pattern += ")";
  } else {
    pattern = fresh();
    bind(pattern, bound_type, bound->magnitude);
  }
  const Expr rest = value(type, limit, depth);
  return make(type, rest->magnitude, {"(let " + pattern + " = ", bound, " in ", rest, ")"});
}

// A size that is computed: with what is around it, regular or not.
Generator::Maybe Generator::let_size(const Type& type, double limit, int depth) {
  const Expr count = value(Type{ScalarType::i64, {}, {}}, 0, depth);
  const Scope scope(*this);
  const std::string name = fresh();
  const std::int64_t most = between(1, 4), least = between(0, 1);
  sizes_.push_back({name, least, least + most - 1, 0, {}});
  sizes_.push_back(sizes_.back());  // likely to be used
  sizes_.push_back(sizes_.back());
  bind(name, Type{ScalarType::i64, {}, {}}, 0);
  const Expr rest = value(type, limit, depth);
  return make(type, rest->magnitude,
              {"(let " + name + " = ((", count, fmt::format(") % {}) + {} in ", most, least), rest, ")"});
}

Generator::Maybe Generator::let_function(const Type& type, double limit, int depth) {
  const std::string name = fresh();
  std::string params;
  std::vector<Type> types;
  Expr body;
  {
    const Scope scope(*this);
    for (std::int64_t k = between(1, 3); k > 0; --k) {
      types.push_back(any_type(1));
      const std::string param = fresh();
      params += fmt::format(" ({}: {})", param, types.back().text());
      bind(param, types.back(), 16);
    }
    body = value(type, limit, depth);
  }
  const auto applied = [&] {
    std::vector<Piece> pieces{"(" + name};
    for (const Type& param : types) {
      pieces.emplace_back(" ");
      pieces.emplace_back(value(param, 16, depth - 1));
    }
    pieces.emplace_back(")");
    return make_text(pieces);
  };
  if (!chance(30) || type.is_array())
    return make(type, body->magnitude,
                {"(let " + name + params + ": " + type.text() + " = ", body, " in ", applied(), ")"});
  const Expr first = applied(), second = applied();
  return make(type, body->magnitude,
              {"(let " + name + params + ": " + type.text() + " = ", body, " in if ", condition(depth), " then ", first,
               " else ", second, ")"});
}

Generator::Maybe Generator::call(const Type& type, double limit, int depth) {
  for (const Helper& helper : helpers_) {
    if (!(helper.result == type) || (type.has_float() && limit < (1 << 22))) continue;
    std::vector<Piece> pieces{"(" + helper.name};
    for (const auto& [param, consumed] : helper.params) {
      // What is consumed must be ours, and seen by nobody after.
      pieces.emplace_back(consumed ? " (copy " : " ");
      pieces.emplace_back(value(param, 4, depth));
      if (consumed) pieces.emplace_back(")");
    }
    pieces.emplace_back(")");
    return make(type, 1 << 22, pieces);
  }
  return std::nullopt;
}

Generator::Maybe Generator::branch(const Type& type, double limit, int depth) {
  const Expr when = condition(depth), yes = value(type, limit, depth), no = value(type, limit, depth);
  return make(type, std::max(yes->magnitude, no->magnitude), {"(if ", when, " then ", yes, " else ", no, ")"});
}

Generator::Maybe Generator::loop_for(const Type& type, double limit, int depth) {
  const double carried = std::min(limit, kCarried);
  const Expr start = value(type, carried, depth);
  const bool two = chance(35);
  const Type other_type = any_type(1);
  const Expr other_start = two ? value(other_type, kCarried, depth) : nullptr;
  const Scope scope(*this);
  const std::string state = fresh(), other = fresh(), i = fresh();
  const bool over_size = chance(35);
  const Size size = any_size();
  const std::string bound = over_size ? size.in_expression() : std::to_string(between(0, 4)) + "i64";
  if (over_size) {
    bind_size_index(i, size);
  } else {
    bind(i, Type{ScalarType::i64, {}, {}}, 0);
  }
  bind(state, type, carried);
  if (!two) {
    const Expr body = value(type, carried, depth);
    return make(type, carried,
                {"(loop " + carries(state, type) + " = ", start, fmt::format(" for {} < {} do ", i, bound), body, ")"});
  }
  bind(other, other_type, kCarried);
  const Expr body = value(type, carried, depth), other_body = value(other_type, kCarried, depth);
  return make(type, carried,
              {fmt::format("(loop ({}, {}) = (", carries(state, type), carries(other, other_type)), start, ", ",
               other_start, fmt::format(") for {} < {} do (", i, bound), body, ", ", other_body, ")).0"});
}

Generator::Maybe Generator::loop_over(const Type& type, double limit, int depth) {
  const double carried = std::min(limit, kCarried);
  const Size size = any_size();
  const Type array_type = any_array(size, 2);
  const Expr start = value(type, carried, depth), array = value(array_type, 1 << 16, depth);
  const Scope scope(*this);
  const std::string state = fresh(), x = fresh();
  if (chance(35)) {
    nonempty_.push_back(size.text);
    bind(state, type, carried);
    bind(x, array_type.row(), array->magnitude);
    const Expr body = value(type, carried, depth);
    const bool left = chance(60);
    return make(type, carried,
                {fmt::format("(fold{} (\\{} {} -> ", left ? "l" : "r", left ? state : x, left ? x : state), body, ") ",
                 start, " ", array, ")"});
  }
  nonempty_.push_back(size.text);
  bind(state, type, carried);
  bind(x, array_type.row(), array->magnitude);
  return make(type, carried,
              {"(loop " + carries(state, type) + " = ", start, " for " + x + " in ", array, " do ",
               value(type, carried, depth), ")"});
}

Generator::Maybe Generator::loop_while(const Type& type, double limit, int depth) {
  const double carried = std::min(limit, kCarried);
  const Expr start = value(type, carried, depth);
  const Scope scope(*this);
  const std::string state = fresh(), k = fresh();
  bind(state, type, carried);
  bind(k, Type{ScalarType::i64, {}, {}}, 0);
  const Expr going = condition(std::min(depth, 2)), body = value(type, carried, depth);
  return make(type, carried,
              {fmt::format("(loop ({}, {}) = (", carries(state, type), k), start,
               fmt::format(", 0i64) while {} < {}i64 && ", k, between(1, 4)), going, " do (", body,
               fmt::format(", {} + 1i64)).0", k)});
}

Generator::Maybe Generator::tuple(const Type& type, double limit, int depth) {
  std::vector<Piece> pieces{"("};
  double magnitude = 0;
  for (const Type& field : type.fields) {
    if (pieces.size() > 1) pieces.emplace_back(", ");
    const Expr part = value(field, limit, depth);
    magnitude = std::max(magnitude, part->magnitude);
    pieces.emplace_back(part);
  }
  pieces.emplace_back(")");
  return make(type, magnitude, pieces);
}

Generator::Maybe Generator::projection(const Type& type, double limit, int depth) {
  Type whole;
  const std::int64_t count = between(2, 3), place = between(0, count - 1);
  for (std::int64_t k = 0; k < count; ++k) whole.fields.push_back(k == place ? type : any_type(1));
  const Expr x = value(whole, limit, depth);
  return make(type, x->magnitude, {"(", x, fmt::format(").{}", place)});
}

}  // namespace apl::random_tests
