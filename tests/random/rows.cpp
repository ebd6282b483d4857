// Short rows: arrays whose rows have 1 to 8 elements of any type, also in records. Inner loops over them are what C
// compilers unroll, turn into vector code and join with the branches around them.
#include <fmt/format.h>

#include <algorithm>

#include "tests/random/generator.h"

namespace apl::random_tests {

namespace {

bool is_name(const Size& size) { return size.parts.empty() && std::isalpha(size.text[0]) != 0; }
bool is_constant(const Size& size) { return size.parts.empty() && std::isdigit(size.text[0]) != 0; }

// An array of rows whose length is a number.
bool has_constant_rows(const Type& type) { return type.dims.size() >= 2 && is_constant(type.dims[1]); }

Type with_row_length(Type type, std::int64_t length) {
  type.dims[1] = Size::constant(length);
  return type;
}

}  // namespace

// One or two sizes that inputs have, and numbers.
void Generator::declare_short_sizes(std::vector<testing::Sizes>& tried) {
  const bool two = chance(60), with_zero = chance(50);
  const std::int64_t least = with_zero ? 0 : 1;
  sizes_.push_back({"n", least, 100, 0, {}});
  if (two) sizes_.push_back({"m", least, 8, 0, {}});
  const auto add = [&](std::int64_t n, std::int64_t m) {
    testing::Sizes sizes{{"n", n}};
    if (two) sizes["m"] = m;
    tried.push_back(sizes);
  };
  add(3, 4);
  add(5, 1);
  add(1, 2);
  add(two ? 37 : 100, 3);  // enough for vectors of any machine, and a remainder
  if (with_zero) {
    add(0, 3);
    add(4, 0);
  }
  for (std::int64_t k = between(2, 3); k > 0; --k) sizes_.push_back(Size::constant(between(1, 8)));
}

// Three types of rows: one of numbers, one that may be anything, and numbers themselves.
void Generator::declare_short_rows() {
  // Pairs are what compilers treat most unlike loops.
  const auto length = [&] { return Size::constant(chance(30) ? 2 : chance(50) ? between(1, 4) : between(1, 8)); };
  row_types_ = {Type{any_scalar(), {}, {}}.array_of(length()), Type{any_scalar(), {}, {}}, Type{any_scalar(), {}, {}}};
  Type& other = row_types_[1];
  if (chance(40))
    for (std::int64_t k = between(2, 3); k > 0; --k) {
      other.fields.push_back(Type{any_scalar(), {}, {}});
      if (chance(60)) other.fields.back() = other.fields.back().array_of(length());
    }
  if (other.fields.empty() || chance(30)) other = other.array_of(length());
}

// Of at most as many dims. The outer ones are likely to be sizes of inputs, or sums and products of them.
Type Generator::any_short_row(int rank) {
  const auto any_of = [&](bool (*fits)(const Size&)) {
    std::vector<Size> found;
    std::copy_if(sizes_.begin(), sizes_.end(), std::back_inserter(found), fits);
    return found[static_cast<std::size_t>(between(0, std::ssize(found) - 1))];
  };
  std::vector<Type> fit;
  for (const Type& type : row_types_)
    if (std::ssize(type.dims) <= rank) fit.push_back(type);
  Type type = fit[static_cast<std::size_t>(between(0, std::ssize(fit) - 1))];
  while (std::ssize(type.dims) < rank) {
    const bool outermost = std::ssize(type.dims) + 1 == rank;
    if (chance(outermost ? 15 : 70)) {
      type = type.array_of(any_of(is_constant));
      continue;
    }
    const Size size = any_of(is_name);
    if (outermost && chance(35)) {
      const Size other = chance(60) ? any_of(is_name) : any_of(is_constant);
      type = type.array_of(chance(70) ? Size::sum(size, other) : Size::product(size, other));
    } else {
      type = type.array_of(size);
    }
  }
  return type;
}

// What programs compute: arrays of the rows that inputs have, of sizes of inputs, their sums and products.
Type Generator::any_short_rows() {
  const Type& row = row_types_[chance(70) ? 0 : 1];
  std::vector<Size> names;
  std::copy_if(sizes_.begin(), sizes_.end(), std::back_inserter(names), is_name);
  const auto any_name = [&] { return names[static_cast<std::size_t>(between(0, std::ssize(names) - 1))]; };
  const std::int64_t kind = between(0, 99);
  if (kind < 40) return row.array_of(Size::sum(any_name(), any_name()));
  if (kind < 50) return row.array_of(Size::sum(any_name(), Size::constant(between(1, 8))));
  if (kind < 60) return row.array_of(Size::product(any_name(), Size::constant(between(1, 8))));
  return kind < 90 ? row.array_of(any_name()) : any_short_row(2);
}

// One array for each size and another of the first, likely of the same rows, so that there is something to join.
std::vector<Generator::Parameter> Generator::short_row_params() {
  std::vector<Parameter> params;
  std::vector<Size> names;
  std::copy_if(sizes_.begin(), sizes_.end(), std::back_inserter(names), is_name);
  names.push_back(names.front());
  for (const Size& size : names) params.push_back({row_types_[chance(70) ? 0 : 1].array_of(size)});
  if (chance(30)) params.push_back({row_types_[static_cast<std::size_t>(between(0, 2))]});
  return params;
}

// An array whose elements tell where they are.
Expr Generator::indexed(const Type& type, double limit, std::vector<std::string>& indices) {
  if (type.is_array()) {
    indices.push_back(fresh());
    const std::string head = fmt::format("(tabulate {} (\\{} -> ", type.dims.front().in_expression(), indices.back());
    const Expr row = indexed(type.row(), limit, indices);
    indices.pop_back();
    return make(type, row->magnitude, {head, row, "))"});
  }
  if (type.is_tuple()) {
    std::vector<Piece> pieces{"("};
    for (const Type& field : type.fields) {
      if (pieces.size() > 1) pieces.emplace_back(", ");
      pieces.emplace_back(indexed(field, limit, indices));
    }
    pieces.emplace_back(")");
    return make(type, limit, pieces);
  }
  std::string place = std::to_string(between(0, 9));
  for (const std::string& index : indices) place += fmt::format(" + {} * {}", index, between(1, 7));
  if (type.scalar == ScalarType::boolean) return make(type, 0, {fmt::format("(({}) % 3 == 0)", place)});
  // A prime, so that neighbours differ whatever a row's length is.
  constexpr std::int64_t kMost = 97;
  const std::int64_t most = is_float(type.scalar) ? std::min(kMost, static_cast<std::int64_t>(limit) + 1) : kMost;
  return make(type, static_cast<double>(most - 1),
              {fmt::format("({}.i64 (({}) % {}))", apl::to_text(type.scalar), place, std::max<std::int64_t>(most, 1))});
}

// What is joined, turned or cut is an array at hand as often as it is computed.
Expr Generator::operand(const Type& type, double limit, int depth) {
  return chance(55) ? leaf(type, type.has_half() ? std::min(limit, 2048.0) : limit) : value(type, limit, depth);
}

// Of two or three shorter ones.
Generator::Maybe Generator::joined_constant(const Type& type, double limit, int depth) {
  const Size size = type.dims.front();
  if (!is_constant(size) || size.most < 2) return std::nullopt;
  std::vector<Piece> pieces{"(("};
  double magnitude = 0;
  for (std::int64_t left = size.most, part = 0; left > 0; left -= part) {
    part = left == size.most ? between(1, left - 1) : chance(70) ? left : between(1, left);
    const Expr array = operand(type.row().array_of(Size::constant(part)), limit, depth);
    magnitude = std::max(magnitude, array->magnitude);
    if (left != size.most) pieces.emplace_back(" ++ ");
    pieces.emplace_back(array);
  }
  pieces.emplace_back(") :> " + type.text() + ")");
  return make(type, magnitude, pieces);
}

Generator::Maybe Generator::joined_rows(const Type& type, double limit, int depth) {
  if (!has_constant_rows(type) || type.dims[1].most < 2) return std::nullopt;
  const std::int64_t length = type.dims[1].most, first = between(1, length - 1);
  const std::string x = fresh(), y = fresh(), row = type.row().text();
  if (chance(60)) {
    const Expr a = operand(with_row_length(type, first), limit, depth);
    const Expr b = operand(with_row_length(type, length - first), limit, depth);
    return make(type, std::max(a->magnitude, b->magnitude),
                {fmt::format("(map2 (\\{} {} -> (({} ++ {}) :> {})) ", x, y, x, y, row), a, " ", b, ")"});
  }
  const Expr rest = operand(with_row_length(type, length - 1), limit, depth);
  const Scope scope(*this);
  bind(x, rest->type.row(), rest->magnitude);
  nonempty_.push_back(type.dims.front().text);
  const Expr element = value(type.row().row(), limit, depth - 1);
  const bool before = chance(50);
  const std::vector<Piece> lambda = before ? std::vector<Piece>{"([", element, "] ++ " + x + ")"}
                                           : std::vector<Piece>{"(" + x + " ++ [", element, "])"};
  std::vector<Piece> pieces{"(map (\\" + x + " -> ("};
  pieces.insert(pieces.end(), lambda.begin(), lambda.end());
  pieces.insert(pieces.end(), {" :> " + row + ")) ", rest, ")"});
  return make(type, std::max(rest->magnitude, element->magnitude), pieces);
}

// Rows of two arrays, by their index.
Generator::Maybe Generator::chosen_rows(const Type& type, double limit, int depth) {
  const Size size = type.dims.front();
  const std::string a = fresh(), b = fresh(), i = fresh();
  const bool joined = size.how == '+' && chance(70);
  const Type row = type.row();
  const Expr first = operand(joined ? row.array_of(size.parts[0]) : type, limit, depth);
  const Expr second = operand(joined ? row.array_of(size.parts[1]) : type, limit, depth);
  const std::string head = fmt::format(" in tabulate {} (\\{} -> if ", size.in_expression(), i);
  const double magnitude = std::max(first->magnitude, second->magnitude);
  if (joined) {
    const std::string start = size.parts[0].in_expression();
    return make(type, magnitude,
                {"(let " + a + " = ", first, " let " + b + " = ", second,
                 fmt::format("{}{} < {} then {}[{}] else {}[{} - {}]))", head, i, start, a, i, b, i, start)});
  }
  const Scope scope(*this);
  bind_size_index(i, size);
  const Expr when = condition(std::min(depth, 2));
  const std::string other = chance(50) ? i : fmt::format("{} - 1 - {}", size.in_expression(), i);
  return make(type, magnitude,
              {"(let " + a + " = ", first, " let " + b + " = ", second, head, when,
               fmt::format(" then {}[{}] else {}[{}]))", a, i, b, other)});
}

Generator::Maybe Generator::windows(const Type& type, double limit, int depth) {
  if (!has_constant_rows(type)) return std::nullopt;
  const Size size = type.dims.front(), length = type.dims[1];
  const std::string all = fresh(), i = fresh(), j = fresh();
  const Type element = type.row().row();
  if (size.parts.empty() && chance(60)) {
    const Expr array = operand(element.array_of(Size::sum(size, length)), limit, depth);
    return make(type, array->magnitude,
                {"(let " + all + " = ", array,
                 fmt::format(" in tabulate {} (\\{} -> ({}[{}:{} + {}] :> {})))", size.in_expression(), i, all, i, i,
                             length.text, type.row().text())});
  }
  const Expr array = operand(element.array_of(size), limit, depth);
  return make(type, array->magnitude,
              {"(let " + all + " = ", array,
               fmt::format(" in tabulate_2d {} {} (\\{} {} -> {}[({} + {}) % {}]))", size.in_expression(), length.text,
                           i, j, all, i, j, size.in_expression())});
}

Generator::Maybe Generator::turned_rows(const Type& type, double limit, int depth) {
  if (type.dims.size() < 2) return std::nullopt;
  const Expr array = operand(type, limit, depth);
  const std::string x = fresh();
  switch (between(0, 3)) {
    case 0: return make(type, array->magnitude, {"(map reverse ", array, ")"});
    case 1: return make(type, array->magnitude, {fmt::format("(map (\\{} -> {}[::-1]) ", x, x), array, ")"});
    case 2: return make(type, array->magnitude, {"(", array, ")[:, ::-1]"});
    default: return make(type, array->magnitude, {fmt::format("(map (rotate ({})) ", between(-3, 3)), array, ")"});
  }
}

// Some of longer rows' elements.
Generator::Maybe Generator::columns(const Type& type, double limit, int depth) {
  if (!has_constant_rows(type)) return std::nullopt;
  const std::int64_t length = type.dims[1].most, more = between(1, 3);
  const Expr array = operand(with_row_length(type, length + more), limit, depth);
  const std::int64_t from = between(0, more);
  const std::string x = fresh();
  if (chance(60))
    return make(type, array->magnitude,
                {"((", array, fmt::format(")[:, {}:{}] :> {})", from, from + length, type.text())});
  return make(
      type, array->magnitude,
      {fmt::format("(map (\\{} -> (take {} (drop {} {}) :> {})) ", x, length, from, x, type.row().text()), array, ")"});
}

// Each row with one element changed.
Generator::Maybe Generator::changed_rows(const Type& type, double limit, int depth) {
  if (!has_constant_rows(type)) return std::nullopt;
  const Expr array = operand(type, limit, depth);
  const Scope scope(*this);
  const std::string x = fresh(), place = std::to_string(between(0, type.dims[1].most - 1));
  bind(x, type.row(), array->magnitude);
  nonempty_.push_back(type.dims.front().text);
  const Expr element = value(type.row().row(), limit, depth - 1);
  return make(type, std::max(array->magnitude, element->magnitude),
              {"(map (\\" + x + " -> copy " + x + " with [" + place + "] = ", element, ") ", array, ")"});
}

// Rows overwritten in place, element by element or whole, some of them.
Generator::Maybe Generator::rows_in_loop(const Type& type, double limit, int depth) {
  if (!has_constant_rows(type)) return std::nullopt;
  const Size size = type.dims.front(), length = type.dims[1];
  const double carried = std::min(limit, 64.0);
  const Expr array = operand(type, carried, depth);
  const Scope scope(*this);
  const std::string state = fresh(), i = fresh(), j = fresh();
  bind_size_index(i, size);
  bind(state, type, carried);
  const std::string head = fmt::format(" for {} < {} do ", i, size.in_expression());
  const std::string start = "(loop (" + state + ": *" + type.text() + ") = copy ";
  const std::string at = chance(70) ? i : fmt::format("({} * 3 + 1) % {}", i, size.in_expression());
  if (chance(50)) {
    bind_size_index(j, length);
    const Expr element = value(type.row().row(), carried, depth - 1);
    const std::string copy = type.row().row().has_array() ? "copy " : "";
    return make(type, carried,
                {start, array, head,
                 fmt::format("loop {} for {} < {} do {} with [{}, {}] = {}", state, j, length.text, state, at, j, copy),
                 element, ")"});
  }
  const Expr when = condition(std::min(depth, 2)), row = value(type.row(), carried, depth - 1);
  return make(type, carried,
              {start, array, head, "if ", when, fmt::format(" then {} with [{}] = copy ", state, at), row,
               " else " + state + ")"});
}

Generator::Maybe Generator::repeated_rows(const Type& type, double limit, int depth) {
  const Size size = type.dims.front();
  const std::string x = fresh();
  if (size.how == '*') {
    const bool whole = chance(50);
    const Expr array = operand(type.row().array_of(size.parts[whole ? 1 : 0]), limit, depth);
    if (whole)
      return make(type, array->magnitude, {"(flatten (replicate " + size.parts[0].in_expression() + " ", array, "))"});
    return make(
        type, array->magnitude,
        {fmt::format("(flatten (map (\\{} -> replicate {} {}) ", x, size.parts[1].in_expression(), x), array, "))"});
  }
  if (!has_constant_rows(type)) return std::nullopt;
  const Expr array = operand(type.row().row().array_of(size), limit, depth);
  return make(type, array->magnitude, {"(map (replicate " + type.dims[1].text + ") ", array, ")"});
}

}  // namespace apl::random_tests
