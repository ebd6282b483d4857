// Sequences of lets, arrays whose sizes only running decides, reductions, and what fails.
#include "tests/oracle/scope.h"

namespace apl::oracle {

Tree Generator::reduced(const Type& type, int depth) {
  const Operator op = any_operator(type);
  const Tree values = operands(op, array_of(any_size(), type), depth);
  Tree result;
  if (!op.name.empty() && chance(50)) {
    result = make(Form::reduce, type, {values});
    std::const_pointer_cast<Node>(result)->name = op.name;
  } else {
    result = applied(Form::reduce, type, {op.neutral, values}, op);
    if (op.commutes && chance(30)) std::const_pointer_cast<Node>(result)->name = "reduce_comm";
  }
  return result;
}

// From either end, every, every second ...; within bounds, whatever the length.
Tree Generator::slice_of(const Tree& array, int depth) {
  const Type i64 = scalar_type(ScalarType::i64), row = row_of(array->type);
  const Tree size = variable(array->type.dims[0], i64);
  const Type type = array_of("?", row);
  const Tree first =
      binary(BinaryOp::mod, scalar(ScalarType::i64, std::min(depth, 1)), binary(BinaryOp::add, size, whole(1)));
  switch (between(0, 3)) {
    case 0: return make(Form::slice, type, {array, nullptr, nullptr, whole(between(2, 3))});
    case 1: return make(Form::slice, type, {array, nullptr, nullptr, whole(between(-3, -1))});
    case 2:
      return make(Form::slice, type,
                  {array, wrapped(first), wrapped(size), chance(50) ? whole(between(1, 3)) : nullptr});
    default:  // down from below the end to the beginning
      return make(Form::slice, type,
                  {array, wrapped(binary(BinaryOp::sub, first, whole(1))), wrapped(whole(-1)), whole(between(-3, -1))});
  }
}

// Longer, or shorter, with each step.
Tree Generator::growing_loop(const Type& row, int depth) {
  const std::string size = fresh("k"), i = fresh("at");
  const Type type = array_of(size, row), unknown = array_of("?", row), i64 = scalar_type(ScalarType::i64);
  const Pattern state{fresh("s"), unknown, {}}, sized{fresh("s"), type, {}};
  const Tree start = array(array_of(any_size(), row), depth - 1), known = variable(sized.name, type);
  const Tree bound = small_index(4, 1);
  const Scope scope(*this);
  bind(sized);
  bind({i, i64, {}});
  sizes_.push_back(size);
  Tree body;
  switch (between(0, 2)) {
    case 0: {
      const Tree more = array(array_of(any_size(), row), std::min(depth - 1, 1));
      body = make(Form::concat, unknown, chance(50) ? std::vector<Tree>{known, more} : std::vector<Tree>{more, known});
      break;
    }
    case 1: {
      const Pattern x{fresh(), row, {}};
      const Scope inner(*this);
      bind(x);
      body = make(Form::filter, unknown, {known}, {{{x}, condition(2)}});
      break;
    }
    default: body = slice_of(known, depth);
  }
  body = let(sized, {size}, variable(state.name, unknown), body);
  Tree loop = make(Form::for_loop, unknown, {start, bound}, {{{}, body}});
  const auto node = std::const_pointer_cast<Node>(loop);
  node->name = i;
  node->pattern = state;
  return loop;
}

Tree Generator::unknown_size(const Type& row, int depth) {
  const Type type = array_of("?", row), i64 = scalar_type(ScalarType::i64);
  const std::string dim = any_size();
  switch (between(0, 8)) {
    case 0:
    case 1: {
      const Tree from = array(array_of(dim, row), depth - 1);
      const Scope scope(*this);
      const Pattern x{fresh(), row, {}};
      bind(x);
      nonempty_.insert(dim);
      return make(Form::filter, type, {from}, {{{x}, condition(2)}});
    }
    case 2: return slice_of(plain(array_of(dim, row), 0), depth);
    case 3: return growing_loop(row, depth);
    case 4:
      return make(Form::concat, type,
                  {array(array_of(dim, row), depth - 1), array(array_of(any_size(), row), depth - 1)});
    case 5:
      return make(Form::branch, type,
                  {condition(1), array(array_of(dim, row), depth - 1), array(array_of(any_size(), row), depth - 1)});
    case 6: {
      const Tree size = variable(dim, i64);
      const Tree n = binary(BinaryOp::mod, scalar(ScalarType::i64, 1), binary(BinaryOp::add, size, whole(1)));
      const std::string name = fresh("n");
      return let({name, i64, {}}, {}, wrapped(n),
                 make(chance(50) ? Form::take : Form::drop, type,
                      {variable(name, i64), array(array_of(dim, row), depth - 1)}));
    }
    case 7: {
      const std::string other = any_size();
      const Type rows = array_of(dim, array_of(other, row));
      if (chance(50)) return make(Form::flatten, type, {array(rows, depth - 1)});
      // There and back by a number of rows that wraps.
      const Pattern count{fresh("n"), i64, {}};
      const Type again = array_of(count.name, row_of(rows));
      const Tree flat = make(Form::flatten, type, {array(rows, depth - 1)});
      return let(count, {}, wrapped(variable(dim, i64)),
                 make(Form::flatten, type, {make(Form::unflatten, again, {flat})}));
    }
    default: {
      if (!(row == i64)) return make(Form::replicate, type, {wrapped(small_index(6, 1)), element(row, 1)});
      if (chance(15)) return make(Form::iota, type, {wrapped(small_index(6, 1))});
      const Tree first = small_index(5, 1), steps = small_index(7, 1);
      const std::string name = fresh("n");
      const Tree known = variable(name, i64);
      std::vector<Tree> kids{wrapped(known), wrapped(binary(BinaryOp::add, known, steps))};
      if (chance(50)) kids.push_back(wrapped(binary(BinaryOp::add, known, whole(between(1, 3)))));
      return let({name, i64, {}}, {}, first, make(Form::range, type, kids));
    }
  }
}

Tree Generator::block(int lets, int depth, const std::function<Tree()>& last) {
  if (lets == 0) return last();
  const Scope scope(*this);
  Pattern pattern{fresh(), {}, {}};
  std::vector<std::string> sizes;
  Tree value;
  const std::int64_t kind = between(0, 99);
  if (fails_ && (lets == 1 || chance(30))) {
    fails_ = false;
    failing_ = pattern.name;
    value = failing(pattern, sizes);
  } else if (kind < 35) {
    const Type row = chance(80) ? any_element() : operator_type();
    if (chance(15)) {  // both halves
      const std::string dim = any_size(), k = fresh("k"), l = fresh("k");
      const Tree from = array(array_of(dim, row), depth - 1);
      const Pattern x{fresh(), row, {}};
      const Scope inner(*this);
      bind(x);
      sizes = {k, l};
      pattern.type = tuple_type({array_of(k, row), array_of(l, row)});
      pattern.parts = {{fresh(), array_of(k, row), {}}, {fresh(), array_of(l, row), {}}};
      value = make(Form::partition, pattern.type, {from}, {{{x}, condition(2)}});
    } else {
      sizes = {fresh("k")};
      pattern.type = array_of(sizes.front(), row);
      value = unknown_size(row, depth);
    }
  } else if (kind < 75) {
    const Type row = chance(60) ? any_element() : operator_type();
    Type type = array_of(any_size(), row);
    if (chance(35)) type = array_of(any_size(), type);
    pattern.type = type;
    value = array(type, depth);
    if (type.dims.size() == 1 && row.is_tuple() && row.names.empty() && chance(50)) {  // by columns
      std::vector<Type> columns;
      for (const Type& part : row.fields) {
        columns.push_back(array_of(type.dims[0], part));
        pattern.parts.push_back({fresh(), columns.back(), {}});
      }
      pattern.type = tuple_type(std::move(columns));
      value = make(Form::unzip, pattern.type, {value});
    }
  } else if (kind < 90) {
    pattern.type = operator_type();
    value = reduced(pattern.type, depth - 1);
  } else {
    pattern.type = any_element();
    value = element(pattern.type, depth);
  }
  for (const std::string& size : sizes) sizes_.push_back(size);
  bind(pattern);
  Tree rest = block(lets - 1, depth, last);
  return let(pattern, sizes, value, rest);
}

// One thing that goes wrong for some arguments: `q` is small, and may be negative.
Tree Generator::failing(Pattern& pattern, std::vector<std::string>& sizes) {
  const Type i64 = scalar_type(ScalarType::i64);
  const Tree q = variable("q", i64);
  const std::string dim = chance(50) ? "n" : any_size();
  const Tree size = variable(dim, i64);
  const Type row = any_element();
  const auto of_unknown_size = [&](Tree made) {
    sizes = {fresh("k")};
    pattern.type = array_of(sizes.front(), row);
    return made;
  };
  // In every lane of a map, of which the index is known.
  const auto in_lanes = [&](const Type& type, const std::function<Tree(const Tree&)>& lane) {
    const Pattern i{fresh("at"), i64, {}};
    pattern.type = array_of(dim, type);
    const Scope scope(*this);
    bind(i);
    Tree body = lane(variable(i.name, i64));
    return make(Form::tabulate, pattern.type, {size}, {{{i}, body}});
  };
  switch (between(0, 11)) {
    case 0: {
      pattern.type = row;
      return make(Form::index, row, {array(array_of(dim, row), 2), wrapped(q)});
    }
    case 1: {
      const Tree from = plain(array_of(dim, row), 0);
      return in_lanes(row, [&](const Tree& i) { return make(Form::index, row, {from, binary(BinaryOp::add, i, q)}); });
    }
    case 2:
      return of_unknown_size(
          make(Form::slice, array_of("?", row),
               {array(array_of(dim, row), 2), wrapped(q), nullptr, chance(50) ? whole(between(1, 2)) : nullptr}));
    case 3:
      return of_unknown_size(make(Form::slice, array_of("?", row),
                                  {array(array_of(dim, row), 2), wrapped(q), nullptr, whole(between(-2, -1))}));
    case 4: return of_unknown_size(make(Form::replicate, array_of("?", row), {wrapped(q), element(row, 1)}));
    case 5: {
      const Pattern i{fresh("at"), i64, {}};
      const Scope scope(*this);
      bind(i);
      Tree made =
          make(Form::tabulate, array_of("?", row), {wrapped(binary(BinaryOp::sub, size, q))}, {{{i}, element(row, 2)}});
      return of_unknown_size(std::move(made));
    }
    case 6: {
      static const std::vector<BinaryOp> kOps{BinaryOp::div, BinaryOp::mod, BinaryOp::quot, BinaryOp::rem};
      const BinaryOp op = one_of(kOps);
      const ScalarType type = any_integer();
      return in_lanes(scalar_type(type), [&](const Tree& i) {
        return binary(op, scalar(type, 1), convert_to(type, binary(BinaryOp::sub, i, q)));
      });
    }
    case 7: {
      const ScalarType type = any_integer();
      pattern.type = scalar_type(type);
      return binary(BinaryOp::pow, scalar(type, 1),
                    is_signed_type(type) ? convert_to(type, q) : literal(integer(type, 3)));
    }
    case 8:
      return in_lanes(row, [&](const Tree& i) {
        return make(Form::assertion, row, {binary(BinaryOp::le, i, q), element(row, 1)});
      });
    case 9: {
      pattern.type = array_of(any_size(), row);
      return make(Form::coerce, pattern.type, {array(array_of(dim, row), 2)});
    }
    case 10: {
      pattern.type = array_of(dim, row);
      return make(Form::update, pattern.type,
                  {make(Form::copy, pattern.type, {array(pattern.type, 1)}), wrapped(q), element(row, 1)});
    }
    default:
      return of_unknown_size(
          make(chance(50) ? Form::take : Form::drop, array_of("?", row), {wrapped(q), array(array_of(dim, row), 2)}));
  }
}

}  // namespace apl::oracle
