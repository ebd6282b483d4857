// Arrays that are made, read, changed and seen in other shapes.
#include <fmt/format.h>

#include <algorithm>

#include "tests/random/generator.h"

namespace apl::random_tests {

Generator::Maybe Generator::index(const Type& type, double limit, int depth) {
  if (type.dims.size() >= 3) return std::nullopt;
  // Of a variable, by preference.
  if (chance(70)) {
    std::vector<const Variable*> known;
    for (const Variable& v : variables_) {
      if (v.type.dims.size() <= type.dims.size() || v.magnitude > limit) continue;
      Type rest = v.type;
      while (rest.dims.size() > type.dims.size()) rest = rest.row();
      if (rest == type) known.push_back(&v);
    }
    if (known.empty()) return std::nullopt;
    const Variable array = *known[static_cast<std::size_t>(between(0, std::int64_t(known.size()) - 1))];
    std::vector<Piece> pieces{array.name + "["};
    for (std::size_t k = 0; k < array.type.dims.size() - type.dims.size(); ++k) {
      if (k > 0) pieces.emplace_back(", ");
      const Maybe at = index_into(array.type.dims[k], std::min(depth, 2));
      if (!at) return std::nullopt;
      pieces.emplace_back(*at);
    }
    pieces.emplace_back("]");
    return make(type, array.magnitude, pieces);
  }
  const Size size = any_size();
  const Maybe at = index_into(size, std::min(depth, 2));
  if (!at) return std::nullopt;
  const Expr array = value(type.array_of(size), limit, depth);
  return make(type, array->magnitude, {"(", array, ")[", *at, "]"});
}

Generator::Maybe Generator::made_from_size(const Type& type, double limit, int depth) {
  const std::string size = type.dims.front().in_expression();
  if (type.dims.size() == 1 && type.fields.empty() && type.scalar == ScalarType::i64 && chance(70))
    return make(type, 0, {"(iota " + size + ")"});
  const Expr row = value(type.row(), limit, depth);
  return make(type, row->magnitude, {"(replicate " + size + " ", row, ")"});
}

Generator::Maybe Generator::array_literal(const Type& type, double limit, int depth) {
  const Size& size = type.dims.front();
  if (!size.parts.empty() || std::isdigit(size.text[0]) == 0) return std::nullopt;
  std::vector<Piece> pieces{"["};
  double magnitude = 0;
  for (std::int64_t k = 0; k < size.most; ++k) {
    if (k > 0) pieces.emplace_back(", ");
    const Expr part = value(type.row(), limit, depth - 1);
    magnitude = std::max(magnitude, part->magnitude);
    pieces.emplace_back(part);
  }
  pieces.emplace_back("]");
  return make(type, magnitude, pieces);
}

Generator::Maybe Generator::turned(const Type& type, double limit, int depth) {
  const Expr array = value(type, limit, depth);
  if (chance(40)) return make(type, array->magnitude, {"(reverse ", array, ")"});
  if (chance(20)) return make(type, array->magnitude, {"(", array, ")[::-1]"});
  if (chance(20)) return make(type, array->magnitude, {"(copy ", array, ")"});
  // Not by a number that overflows when an index is added to it.
  return make(type, array->magnitude,
              {"(rotate (", value(Type{ScalarType::i64, {}, {}}, 0, std::min(depth, 1)), " % 16) ", array, ")"});
}

Generator::Maybe Generator::transposed(const Type& type, double limit, int depth) {
  if (type.dims.size() < 2) return std::nullopt;
  Type source = type;
  if (type.dims.size() > 2 && chance(30)) {
    std::swap(source.dims[1], source.dims[2]);
    const Expr array = value(source, limit, depth);
    return make(type, array->magnitude, {"(map transpose ", array, ")"});
  }
  std::swap(source.dims[0], source.dims[1]);
  const Expr array = value(source, limit, depth);
  return make(type, array->magnitude, {"(transpose ", array, ")"});
}

Generator::Maybe Generator::joined(const Type& type, double limit, int depth) {
  const Size size = type.dims.front();
  if (size.how != '+') return std::nullopt;
  const auto part = [&](const Size& length) {
    const Type of_part = type.row().array_of(length);
    return has_short_rows() ? operand(of_part, limit, depth) : value(of_part, limit, depth);
  };
  const Expr first = part(size.parts[0]), second = part(size.parts[1]);
  return make(type, std::max(first->magnitude, second->magnitude),
              chance(50) ? std::vector<Piece>{"(concat ", first, " ", second, ")"}
                         : std::vector<Piece>{"(", first, " ++ ", second, ")"});
}

// A part of an array that is longer by a name, or of a computed one.
Generator::Maybe Generator::sliced(const Type& type, double limit, int depth) {
  const Size size = type.dims.front();
  if (!size.parts.empty()) return std::nullopt;
  const Size other = any_size();
  if (!other.parts.empty() || std::isalpha(other.text[0]) == 0) return std::nullopt;
  if (std::isalpha(size.text[0]) == 0 || chance(50)) {
    // Every second element, from an array of twice the length.
    if (std::isalpha(size.text[0]) == 0) return std::nullopt;
    const Expr array = value(type.row().array_of(Size::sum(size, size)), limit, depth);
    const std::string from = chance(50) ? "" : "1";
    return make(type, array->magnitude, {"((", array, fmt::format(")[{}::2] :> {})", from, type.text())});
  }
  const bool first = chance(50);
  const Type longer = type.row().array_of(first ? Size::sum(size, other) : Size::sum(other, size));
  const Expr array = value(longer, limit, depth);
  if (first && chance(50)) return make(type, array->magnitude, {"(take " + size.text + " ", array, ")"});
  const std::string range = first ? "[:" + size.text + "]" : "[" + other.text + ":]";
  return make(type, array->magnitude, {"((", array, ")" + range + " :> " + type.text() + ")"});
}

Generator::Maybe Generator::reshaped(const Type& type, double limit, int depth) {
  const Size size = type.dims.front();
  if (size.how == '*') {
    const Expr array = value(type.row().array_of(size.parts[1]).array_of(size.parts[0]), limit, depth);
    return make(type, array->magnitude, {"(flatten ", array, ")"});
  }
  if (type.dims.size() < 2 || !size.parts.empty() || !type.dims[1].parts.empty()) return std::nullopt;
  const Expr array = value(type.row().row().array_of(Size::product(size, type.dims[1])), limit, depth);
  return make(type, array->magnitude, {"(unflatten ", array, " :> " + type.text() + ")"});
}

// Arrays of tuples from arrays, and back.
Generator::Maybe Generator::zipped(const Type& type, double limit, int depth) {
  if (type.dims.size() == 1 && !type.fields.empty()) {
    std::vector<Piece> pieces{type.fields.size() == 2 ? "(zip" : "(zip3"};
    double magnitude = 0;
    for (const Type& field : type.fields) {
      const Expr part = value(field.array_of(type.dims.front()), limit, depth);
      magnitude = std::max(magnitude, part->magnitude);
      pieces.emplace_back(" ");
      pieces.emplace_back(part);
    }
    pieces.emplace_back(")");
    return make(type, magnitude, pieces);
  }
  if (type.dims.size() != 1) return std::nullopt;
  Type pair;
  const bool first = chance(50);
  pair.fields = {type.row(), any_row(0)};
  pair.fields.back().fields.clear();
  if (!first) std::swap(pair.fields[0], pair.fields[1]);
  pair.dims = type.dims;
  const Expr array = value(pair, limit, depth);
  return make(type, array->magnitude, {"(unzip ", array, first ? ").0" : ").1"});
}

Generator::Maybe Generator::update(const Type& type, double limit, int depth) {
  const Maybe at = index_into(type.dims.front(), std::min(depth, 2));
  if (!at) return std::nullopt;
  const Expr array = value(type, limit, depth);
  if (type.dims.size() >= 2 && chance(60)) {
    const Maybe inner = index_into(type.dims[1], std::min(depth, 2));
    if (inner) {
      const Expr element = value(type.row().row(), limit, depth);
      return make(type, std::max(array->magnitude, element->magnitude),
                  {"(copy ", array, " with [", *at, ", ", *inner, "] = ", element, ")"});
    }
  }
  const Expr element = value(type.row(), limit, depth);
  if (chance(40)) {
    // The old array lives on, or does not.
    const Scope scope(*this);
    const std::string name = fresh(), changed = fresh();
    bind(name, type, array->magnitude);
    bind(changed, type, std::max(array->magnitude, element->magnitude));
    const Expr rest = value(type, limit, depth);
    return make(type, rest->magnitude,
                {"(let " + name + " = ", array, " let " + changed + " = copy " + name + " with [", *at, "] = ", element,
                 " in ", rest, ")"});
  }
  return make(type, std::max(array->magnitude, element->magnitude),
              {"(copy ", array, " with [", *at, "] = ", element, ")"});
}

Generator::Maybe Generator::updates_in_loop(const Type& type, double limit, int depth) {
  const Size size = type.dims.front();
  const double carried = std::min(limit, 64.0);
  const Expr array = value(type, carried, depth);
  const Scope scope(*this);
  const std::string state = fresh(), i = fresh();
  bind_size_index(i, size);
  bind(state, type, carried);
  const Maybe at = chance(70) ? make(Type{ScalarType::i64, {}, {}}, 0, {i}) : index_into(size, 1);
  // A row of the array itself must be copied before it can go into it.
  const Expr row = value(type.row(), carried, depth);
  const std::string copy = type.row().has_array() ? "copy " : "";
  return make(type, carried,
              {"(loop (" + state + ": *" + type.text() + ") = copy ", array,
               fmt::format(" for {} < {} do {} with [", i, size.in_expression(), state), *at, "] = " + copy, row, ")"});
}

}  // namespace apl::random_tests
