// Maps, reductions, scans, scatters, histograms.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tests/random/generator.h"

namespace apl::random_tests {

Generator::Maybe Generator::map(const Type& type, double limit, int depth) {
  const Size size = type.dims.front();
  const std::int64_t k = between(0, 99);
  const std::int64_t count = k < 45 ? 1 : k < 75 ? 2 : k < 88 ? 3 : k < 95 ? 4 : 5;
  std::vector<Expr> arrays;
  for (std::int64_t left = count; left > 0; --left)
    arrays.push_back(value(any_array(size, 3), 1 << 16, count > 2 ? std::min(depth, 1) : depth));
  const Scope scope(*this);
  nonempty_.push_back(size.text);
  std::string params;
  const bool typed = chance(40);
  for (const Expr& array : arrays) {
    const Type row = array->type.row();
    if (row.is_tuple() && chance(60)) {
      std::string names;
      for (const Type& field : row.fields) {
        const std::string name = fresh();
        names += (names.empty() ? "(" : ", ") + name;
        bind(name, field, array->magnitude);
      }
      params += names + ") ";
      continue;
    }
    const std::string name = fresh();
    const bool counts = to_text(array) == "(iota " + size.in_expression() + ")";
    bind(name, row, array->magnitude, counts ? size.text : "");
    params += typed ? fmt::format("({}: {}) ", name, row.text()) : name + " ";
  }
  const Expr body = value(type.row(), limit, depth);
  const std::string lambda = "(\\" + params + "-> ";
  if (count == 1 && chance(30)) return make(type, body->magnitude, {"(", arrays[0], " |> map " + lambda, body, "))"});
  std::vector<Piece> pieces{
      fmt::format("({}map{} ", chance(5) ? "#[sequential] " : "", count == 1 ? "" : std::to_string(count)) + lambda,
      body, ")"};
  for (const Expr& array : arrays) {
    pieces.emplace_back(" ");
    pieces.emplace_back(array);
  }
  pieces.emplace_back(")");
  return make(type, body->magnitude, pieces);
}

Generator::Maybe Generator::tabulate(const Type& type, double limit, int depth) {
  const Scope scope(*this);
  const Size first = type.dims.front();
  const std::string i = fresh();
  bind_size_index(i, first);
  if (type.dims.size() == 1 || chance(40)) {
    const Expr body = value(type.row(), limit, depth);
    if (chance(40))
      return make(type, body->magnitude, {"(map (\\" + i + " -> ", body, ") (iota " + first.in_expression() + "))"});
    return make(type, body->magnitude, {"(tabulate " + first.in_expression() + " (\\" + i + " -> ", body, "))"});
  }
  const Size second = type.dims[1];
  const std::string j = fresh();
  bind_size_index(j, second);
  const Expr body = value(type.row().row(), limit, depth);
  return make(type, body->magnitude,
              {fmt::format("(tabulate_2d {} {} (\\{} {} -> ", first.in_expression(), second.in_expression(), i, j),
               body, "))"});
}

Generator::Operator Generator::scalar_operator(ScalarType type, double limit, std::int64_t most) {
  const Type self{type, {}, {}};
  const std::string name(apl::to_text(type));
  const auto with = [&](const std::string& op, const std::string& neutral, double inputs, bool commutative = true) {
    return Operator{make_text({op}), make_text({neutral}), inputs, commutative};
  };
  if (type == ScalarType::boolean) {
    switch (between(0, 3)) {
      case 0: return with("(&&)", "true", 0);
      case 1: return with("(||)", "false", 0);
      case 2: return with("(!=)", "false", 0);
      default: return with("(==)", "true", 0);
    }
  }
  if (is_float(type)) {
    const double each = std::floor(limit / static_cast<double>(most));
    if (each >= 2 && chance(60)) return with(chance(50) ? "(+)" : "(\\a b -> b + a)", "0" + name, each);
    const bool least = chance(50);
    return with(name + (least ? ".min" : ".max"), fmt::format("({}{}{})", least ? "" : "-", std::floor(limit), name),
                std::floor(limit));
  }
  switch (between(0, 9)) {
    case 0:
    case 1:
    case 2: return with("(+)", "0" + name, 0);
    case 3: return with("(\\a b -> b + a)", "0" + name, 0);
    case 4: return with("(*)", "1" + name, 0);
    case 5: return with(name + ".min", name + ".highest", 0);
    case 6: return with(name + ".max", name + ".lowest", 0);
    case 7: return with("(^)", "0" + name, 0);
    case 8: return with("(|)", "0" + name, 0);
    // The first that is not zero: not commutative.
    default: return with(fmt::format("(\\a b -> if a == 0{} then b else a)", name), "0" + name, 0, false);
  }
}

Generator::Operator Generator::tuple_operator(const Type& type, double limit, std::int64_t most) {
  const std::vector<Type>& fields = type.fields;
  const auto integer = [&](std::size_t k) { return fields[k].is_scalar() && is_integer(fields[k].scalar); };
  if (fields.size() == 2 && integer(0) && fields[0] == fields[1] && chance(50)) {
    // x -> a x + b, the first one first.
    const std::string name(apl::to_text(fields[0].scalar));
    return {make_text({"(\\(a, b) (c, d) -> (a * c, b * c + d))"}), make_text({fmt::format("(1{}, 0{})", name, name)}),
            0, false};
  }
  if (fields.size() == 2 && integer(0) && fields[1].is_scalar(ScalarType::i64) && chance(60))
    return {make_text({"(\\(a, i) (b, j) -> if a > b || (a == b && i < j) then (a, i) else (b, j))"}),
            make_text({fmt::format("({}.lowest, i64.highest)", apl::to_text(fields[0].scalar))}), 0, true};
  Operator result;
  result.input_limit = limit;
  std::string left, right;
  std::vector<Piece> body, neutral{"("};
  for (std::size_t k = 0; k < fields.size(); ++k) {
    const Operator part = any_operator(fields[k], limit, most);
    const std::string comma = k == 0 ? "" : ", ", a = fresh(), b = fresh();
    left += comma + a;
    right += comma + b;
    body.emplace_back(comma);
    body.emplace_back(part.op);
    body.emplace_back(" " + a + " " + b);
    neutral.emplace_back(comma);
    neutral.emplace_back(part.neutral);
    if (fields[k].has_float()) result.input_limit = std::min(result.input_limit, part.input_limit);
    result.commutative = result.commutative && part.commutative;
  }
  body.insert(body.begin(), Piece("(\\(" + left + ") (" + right + ") -> ("));
  body.emplace_back("))");
  neutral.emplace_back(")");
  result.op = make_text(body);
  result.neutral = make_text(neutral);
  return result;
}

Generator::Operator Generator::any_operator(const Type& type, double limit, std::int64_t most) {
  if (type.is_scalar()) return scalar_operator(type.scalar, limit, most);
  if (type.is_tuple()) return tuple_operator(type, limit, most);
  Operator result = any_operator(type.row(), limit, most);
  result.op = make_text({"(map2 ", result.op, ")"});
  result.neutral = make_text({"(replicate " + type.dims.front().in_expression() + " ", result.neutral, ")"});
  return result;
}

Generator::Maybe Generator::reduce(const Type& type, double limit, int depth) {
  const Size size = any_size();
  if (type.has_float() && limit < 1) return std::nullopt;
  const Operator op = any_operator(type, limit, std::max<std::int64_t>(size.most, 1));
  const Expr array = value(type.array_of(size), type.has_float() ? op.input_limit : limit, depth);
  return make(type, limit,
              {op.commutative && chance(40) ? "(reduce_comm " : "(reduce ", op.op, " ", op.neutral, " ", array, ")"});
}

Generator::Maybe Generator::contraction(const Type& type, double limit, int depth) {
  if (type.scalar == ScalarType::boolean) return std::nullopt;
  const Size size = any_size();
  const double each = std::floor(std::sqrt(limit / static_cast<double>(std::max<std::int64_t>(size.most, 1))));
  if (is_float(type.scalar) && each < 2) return std::nullopt;
  const Expr x = value(type.array_of(size), each, depth), y = value(type.array_of(size), each, depth);
  const std::string name(apl::to_text(type.scalar));
  return make(type, limit,
              {chance(50) ? "(" + name + ".sum (map2 (*) " : "(reduce (+) 0" + name + " (map2 (\\a b -> a * b) ", x,
               " ", y, "))"});
}

Generator::Maybe Generator::product_of_matrices(const Type& type, double limit, int depth) {
  if (type.dims.size() != 2 || !type.fields.empty() || type.scalar == ScalarType::boolean) return std::nullopt;
  const Size size = any_size();
  const double each = std::floor(std::sqrt(limit / static_cast<double>(std::max<std::int64_t>(size.most, 1))));
  if (is_float(type.scalar) && each < 2) return std::nullopt;
  const Type row = type.row().row().array_of(size);
  const Expr a = value(row.array_of(type.dims[0]), each, depth), b = value(row.array_of(type.dims[1]), each, depth);
  const std::string xs = fresh(), ys = fresh(), name(apl::to_text(type.scalar));
  return make(
      type, limit,
      {fmt::format("(map (\\{} -> map (\\{} -> {}.sum (map2 (*) {} {})) ", xs, ys, name, xs, ys), b, ") ", a, ")"});
}

// Two variables multiplied and summed over a dim that both have, in any layout: the elements are read by index. Gives a
// value of a type of its own.
Generator::Maybe Generator::any_contraction() {
  const auto numbers = [](const Variable& v) {
    return v.type.is_array() && v.type.fields.empty() && v.type.dims.size() <= 3 && v.magnitude <= 64 &&
           v.type.scalar != ScalarType::boolean;
  };
  std::vector<std::array<std::size_t, 4>> found;  // two variables, and a dim of each
  for (std::size_t a = 0; a < variables_.size(); ++a)
    for (std::size_t b = 0; b < variables_.size(); ++b) {
      const Type& x = variables_[a].type;
      const Type& y = variables_[b].type;
      if (!numbers(variables_[a]) || !numbers(variables_[b]) || x.scalar != y.scalar) continue;
      if (x.dims.size() + y.dims.size() < 4) continue;
      for (std::size_t i = 0; i < x.dims.size(); ++i)
        for (std::size_t j = 0; j < y.dims.size(); ++j)
          if (x.dims[i] == y.dims[j]) found.push_back({a, b, i, j});
    }
  if (found.empty()) return std::nullopt;
  const auto [a, b, i, j] = found[static_cast<std::size_t>(between(0, std::int64_t(found.size()) - 1))];
  const Variable x = variables_[a], y = variables_[b];
  std::vector<std::pair<std::string, Size>> free;
  const std::string summed = fresh();
  std::string x_at, y_at;
  for (std::size_t k = 0; k < x.type.dims.size(); ++k) {
    if (k != i) free.emplace_back(fresh(), x.type.dims[k]);
    x_at += (k == 0 ? "" : ", ") + (k == i ? summed : free.back().first);
  }
  const std::size_t of_x = free.size();
  for (std::size_t k = 0; k < y.type.dims.size(); ++k) {
    std::string at = k == j ? summed : "";
    // A dim of both, sometimes.
    for (std::size_t f = 0; f < of_x && at.empty(); ++f)
      if (free[f].second == y.type.dims[k] && chance(30) && y_at.find(free[f].first) == std::string::npos)
        at = free[f].first;
    if (at.empty()) at = free.emplace_back(fresh(), y.type.dims[k]).first;
    y_at += (k == 0 ? "" : ", ") + at;
  }
  std::shuffle(free.begin(), free.end(), random_);
  const Size size = x.type.dims[i];
  const std::string name(apl::to_text(x.type.scalar));
  const auto rows = [&](const std::string& index, const Size& count, const std::string& body) {
    return chance(50) ? fmt::format("(map (\\{} -> {}) (iota {}))", index, body, count.in_expression())
                      : fmt::format("(tabulate {} (\\{} -> {}))", count.in_expression(), index, body);
  };
  const bool largest = chance(20);
  std::string text = fmt::format("{}[{}] {} {}[{}]", x.name, x_at, chance(80) ? "*" : "-", y.name, y_at);
  text = fmt::format("({} {})", largest ? fmt::format("reduce {0}.max ({1}{0})", name, "-8192") : name + ".sum",
                     rows(summed, size, text));
  if (largest && !is_float(x.type.scalar)) return std::nullopt;
  Type type{x.type.scalar, {}, {}};
  double magnitude = std::max(x.magnitude * y.magnitude, x.magnitude + y.magnitude);
  magnitude = largest ? std::max(magnitude, 8192.0) : magnitude * static_cast<double>(size.most);
  if (type.has_half() && magnitude > 2048) return std::nullopt;
  std::reverse(free.begin(), free.end());
  for (const auto& [index, count] : free) {
    text = rows(index, count, text);
    type = type.array_of(count);
  }
  return make(type, magnitude, {text});
}

Generator::Maybe Generator::named_reduction(const Type& type, double limit, int depth) {
  const Size size = any_size();
  const std::string name(apl::to_text(type.scalar));
  if (type.scalar == ScalarType::boolean) {
    const Type row = any_type(1);
    if (chance(50) || row.is_array())
      return make(type, 0, {chance(50) ? "(and " : "(or ", value(type.array_of(size), 0, depth), ")"});
    const Expr array = value(row.array_of(size), 1 << 16, depth);
    const Scope scope(*this);
    const std::string x = fresh();
    bind(x, row, array->magnitude);
    return make(type, 0, {(chance(50) ? "(all (\\" : "(any (\\") + x + " -> ", condition(depth), ") ", array, ")"});
  }
  if (is_float(type.scalar)) {
    const double each = std::floor(limit / static_cast<double>(std::max<std::int64_t>(size.most, 1)));
    if (each < 1) return std::nullopt;
    return make(type, limit, {"(" + name + ".sum ", value(type.array_of(size), each, depth), ")"});
  }
  static constexpr const char* kOps[] = {"sum", "product", "minimum", "maximum"};
  return make(type, 0, {"(" + name + "." + kOps[between(0, 3)] + " ", value(type.array_of(size), 0, depth), ")"});
}

Generator::Maybe Generator::scan(const Type& type, double limit, int depth) {
  if (type.has_float() && limit < 1) return std::nullopt;
  const Operator op = any_operator(type.row(), limit, std::max<std::int64_t>(type.dims.front().most, 1));
  const Expr array = value(type, type.has_float() ? op.input_limit : limit, depth);
  return make(type, limit, {chance(80) ? "(scan " : "(exscan ", op.op, " ", op.neutral, " ", array, ")"});
}

// Places that are unequal, some of them out of bounds.
Expr Generator::different_places(const Size& count, int depth) {
  const std::string all = "(iota " + count.in_expression() + ")", i = fresh();
  switch (between(0, 4)) {
    case 0: return make_text({all});
    case 1: return make_text({"(reverse " + all + ")"});
    case 2: return make_text({fmt::format("(rotate {} {})", between(1, 3), all)});
    case 3: {
      static constexpr std::int64_t kSteps[] = {1, 2, 3, -1};
      return make_text(
          {fmt::format("(map (\\{} -> {} * {} + {}) {})", i, i, kSteps[between(0, 3)], between(0, 3), all)});
    }
    default: {
      const Scope scope(*this);
      bind_size_index(i, count);
      return make_text({"(map (\\" + i + " -> if ", condition(depth), " then " + i + " else -1) " + all + ")"});
    }
  }
}

Generator::Maybe Generator::scatter(const Type& type, double limit, int depth) {
  const Size count = any_size();
  const bool two = type.dims.size() >= 2 && chance(40);
  const Expr values = value((two ? type.row().row() : type.row()).array_of(count), limit, depth);
  const Expr places = different_places(count, std::min(depth, 2));
  if (!two && chance(25)) {
    const Expr element = leaf(type.row(), limit);
    return make(type, std::max(element->magnitude, values->magnitude),
                {"(spread " + type.dims.front().in_expression() + " ", element, " ", places, " ", values, ")"});
  }
  const Expr target = value(type, limit, depth);
  const double magnitude = std::max(target->magnitude, values->magnitude);
  if (!two) return make(type, magnitude, {"(scatter (copy ", target, ") ", places, " ", values, ")"});
  const Expr others = value(Type{ScalarType::i64, {}, {count}}, 0, std::min(depth, 1));
  return make(type, magnitude, {"(scatter_2d (copy ", target, ") (zip ", places, " ", others, ") ", values, ")"});
}

Generator::Maybe Generator::histogram(const Type& type, double limit, int depth) {
  if (type.has_float() && limit < 4) return std::nullopt;
  const Size count = any_size();
  const Operator op = any_operator(type.row(), limit, count.most + 1);
  if (!op.commutative) return std::nullopt;
  const double inputs = type.has_float() ? op.input_limit : limit;
  const Expr values = value(type.row().array_of(count), inputs, depth);
  const Expr places = value(Type{ScalarType::i64, {}, {count}}, 0, std::min(depth, 2));
  if (chance(40))
    return make(
        type, limit,
        {"(hist ", op.op, " ", op.neutral, " " + type.dims.front().in_expression() + " ", places, " ", values, ")"});
  return make(type, limit,
              {"(reduce_by_index (copy ", value(type, inputs, depth), ") ", op.op, " ", op.neutral, " ", places, " ",
               values, ")"});
}

}  // namespace apl::random_tests
