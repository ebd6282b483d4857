// Random arrays of types whose sizes are in scope.
#include "tests/oracle/scope.h"

namespace apl::oracle {
namespace {

Tree size_of(const std::string& dim) {
  const bool is_number = dim.find_first_not_of("0123456789") == std::string::npos;
  return is_number ? whole(std::stoll(dim)) : variable(dim, scalar_type(ScalarType::i64));
}

}  // namespace

Tree Generator::plain(const Type& type, int depth) {
  if (const Tree known = any_variable([&](const Type& t) { return t == type; }); known && chance(85)) return known;
  const Type row = row_of(type);
  if (row == scalar_type(ScalarType::i64) && chance(30)) {
    const Tree like = any_variable([&](const Type& t) { return t.is_array() && t.dims[0] == type.dims[0]; });
    if (like && chance(50)) return make(Form::indices, type, {like});
    return make(Form::iota, type, {size_of(type.dims[0])});
  }
  const Tree element_of_it = row.is_array() ? plain(row, depth) : element(row, std::min(depth, 1));
  return make(Form::replicate, type, {size_of(type.dims[0]), element_of_it});
}

Tree Generator::lane(const Type& type, int depth) {
  if (type.is_array()) return array(type, depth);
  return element(type, depth);
}

Tree Generator::mapped(const Type& type, int depth) {
  const std::string& dim = type.dims.front();
  if (type.dims.size() >= 2 && chance(25)) {
    const Scope scope(*this);
    const Pattern i{fresh("at"), scalar_type(ScalarType::i64), {}}, j{fresh("j"), scalar_type(ScalarType::i64), {}};
    bind(i), bind(j);
    nonempty_.insert(dim), nonempty_.insert(type.dims[1]);
    return make(Form::tabulate_2d, type, {size_of(dim), size_of(type.dims[1])},
                {{{i, j}, lane(row_of(row_of(type)), depth - 1)}});
  }
  std::vector<Tree> sources;
  const std::int64_t most = between(1, 3);
  for (std::int64_t k = 0; k < most; ++k) {
    Tree source = any_variable([&](const Type& t) { return t.is_array() && t.dims.front() == dim; });
    if (!source || chance(20)) source = array(array_of(dim, any_element()), depth - 1);
    sources.push_back(std::move(source));
  }
  const Scope scope(*this);
  nonempty_.insert(dim);
  if (chance(15)) {
    const Pattern i{fresh("at"), scalar_type(ScalarType::i64), {}};
    bind(i);
    return make(Form::tabulate, type, {size_of(dim)}, {{{i}, lane(row_of(type), depth - 1)}});
  }
  std::vector<Pattern> params;
  for (const Tree& source : sources) {
    Pattern param{fresh(), row_of(source->type), {}};
    if (param.type.is_tuple() && param.type.names.empty() && chance(60))
      for (const Type& part : param.type.fields) param.parts.push_back({fresh(), part, {}});
    bind(param);
    params.push_back(std::move(param));
  }
  return make(Form::map, type, std::move(sources), {{std::move(params), lane(row_of(type), depth - 1)}});
}

Tree Generator::scanned(const Type& type, int depth) {
  const Type row = row_of(type);
  const bool fits = row.is_scalar() || row == operator_type();
  if (row.is_array() || (!fits && row.fields.size() != 2 && row.fields.size() != 4)) return nullptr;
  if (!row.is_scalar()) {
    // Those that of_records knows.
    const bool all_equal = std::all_of(row.fields.begin(), row.fields.end(),
                                       [&](const Type& f) { return f == row.fields[0] && is_whole(f.scalar); });
    const bool marked = row.fields.size() == 2 && row.fields[0].scalar == ScalarType::boolean;
    if (!all_equal && !marked) return nullptr;
  }
  const Operator op = any_operator(row);
  return applied(chance(60) ? Form::scan : Form::exscan, type, {op.neutral, operands(op, type, depth - 1)}, op);
}

// Some of them stray, and more than one the same.
Tree Generator::indices(const std::string& count, const std::string& size, int depth) {
  const Type type = array_of(count, scalar_type(ScalarType::i64));
  if (chance(20))
    if (const Tree known = any_variable([&](const Type& t) { return t == type; })) return known;
  const Scope scope(*this);
  const Pattern i{fresh("at"), scalar_type(ScalarType::i64), {}};
  bind(i);
  nonempty_.insert(count);
  const Tree range = binary(BinaryOp::add, variable(size, scalar_type(ScalarType::i64)), whole(between(1, 4)));
  Tree at = binary(BinaryOp::sub, binary(BinaryOp::mod, scalar(ScalarType::i64, std::min(depth, 2)), range), whole(2));
  if (chance(40)) at = binary(BinaryOp::sub, variable(i.name, i.type), whole(between(-1, 2)));
  return make(Form::map, type, {make(Form::iota, type, {size_of(count)})}, {{{i}, at}});
}

Tree Generator::placed(const Type& type, int depth) {
  const std::string& dim = type.dims.front();
  const Type row = row_of(type);
  const std::string count = any_size();
  if (chance(50) && row.is_scalar()) {
    const Operator op = any_operator(row);
    const Tree at = indices(count, dim, depth - 1), values = operands(op, array_of(count, row), depth - 1);
    if (chance(60)) return applied(Form::histogram, type, {op.neutral, size_of(dim), at, values}, op);
    const Tree target = make(Form::copy, type, {operands(op, type, depth - 1)});
    return applied(Form::reduce_by_index, type, {target, op.neutral, at, values}, op);
  }
  // What is written to one position twice is the same: it follows from the position.
  const Pattern places{fresh(), array_of(count, scalar_type(ScalarType::i64)), {}};
  const Tree at = indices(count, dim, depth - 1), known = variable(places.name, places.type);
  Tree values;
  {
    const Scope scope(*this);
    const Pattern i{fresh("at"), scalar_type(ScalarType::i64), {}};
    scope_.clear();  // what else differs from lane to lane is not in scope
    bind(i);
    nonempty_.insert(count);
    values = make(Form::map, array_of(count, row), {known}, {{{i}, lane(row, std::min(depth - 1, 2))}});
  }
  if (!row.is_array() && chance(25))
    return let(places, {}, at, make(Form::spread, type, {size_of(dim), element(row, 1), known, values}));
  const Tree target = make(Form::copy, type, {array(type, depth - 1)});
  return let(places, {}, at, make(Form::scatter, type, {target, known, values}));
}

Tree Generator::overwritten(const Type& type, int depth) {
  const std::string& dim = type.dims.front();
  const Type row = row_of(type);
  const Tree target = make(Form::copy, type, {array(type, depth - 1)});
  if (chance(40)) {  // every second one, or those of the first half, from either end
    const Tree size = size_of(dim), one = whole(1), two = whole(2);
    const Tree half = binary(BinaryOp::div, binary(BinaryOp::add, size, one), two);
    const Pattern part{fresh("n"), scalar_type(ScalarType::i64), {}};
    const Tree known = variable(part.name, part.type);
    const bool strided = chance(50), backwards = chance(40);
    std::vector<Tree> kids{target, nullptr, nullptr, nullptr};
    if (strided) {
      kids[3] = whole(backwards ? -2 : 2);
    } else {
      kids[backwards ? 1 : 2] = wrapped(backwards ? binary(BinaryOp::sub, size, known) : known);
    }
    const Scope scope(*this);
    bind(part);
    sizes_.push_back(part.name);
    kids.push_back(array(array_of(part.name, row), depth - 1));
    return let(part, {}, half, make(Form::slice_update, type, kids));
  }
  std::vector<Tree> kids{target, index_in(dim, depth)};
  Type inner = row;
  const bool all_known = nonempty_.contains(dim);
  const bool deep = row.is_array() && nonempty_.contains(row.dims.front()) && chance(60);
  if (deep) {
    kids.push_back(index_in(row.dims.front(), depth));
    inner = row_of(row);
  }
  const Scope scope(*this);
  nonempty_.insert(dim);
  kids.push_back(lane(inner, depth - 1));
  Tree changed = make(Form::update, type, kids);
  if (all_known) return changed;
  return make(Form::branch, type, {binary(BinaryOp::lt, whole(0), size_of(dim)), changed, array(type, 0)});
}

Tree Generator::looped(const Type& type, int depth) {
  const Pattern state{fresh("s"), type, {}};
  const Tree start = make(Form::copy, type, {array(type, depth - 1)}), known = variable(state.name, type);
  const std::string& dim = type.dims.front();
  const Scope scope(*this);
  const bool over_array = chance(30), to_its_end = !over_array && chance(50);
  Tree bound = over_array   ? array(array_of(any_size(), any_element()), 0)
               : to_its_end ? size_of(dim)
                            : binary(BinaryOp::mod, scalar(ScalarType::i64, 1), whole(4));
  bind(state);
  const std::string i = fresh("at");
  bind({i, over_array ? row_of(bound->type) : scalar_type(ScalarType::i64), {}});
  Tree body;
  if (!row_of(type).is_array() && chance(70) && (to_its_end || nonempty_.contains(dim))) {
    nonempty_.insert(dim);
    const Tree at = to_its_end && chance(60) ? variable(i, scalar_type(ScalarType::i64)) : index_in(dim, depth);
    body = make(Form::update, type, {known, at, element(row_of(type), std::min(depth - 1, 2))});
  } else {
    body = array(type, depth - 1);
    // The state itself would be given away again.
    if (body->form == Form::variable) body = make(Form::copy, type, {body});
  }
  Tree loop = make(over_array ? Form::for_in_loop : Form::for_loop, type, {start, bound}, {{{}, body}});
  const auto node = std::const_pointer_cast<Node>(loop);
  node->name = i;
  node->pattern = state;
  // The sizes of a loop in another's body, which starts with the other's state, are not inferred.
  std::map<Form, std::uint64_t> inside;
  count_forms(body, inside);
  node->annotated = chance(40) || inside[Form::for_loop] + inside[Form::for_in_loop] > 0;
  return loop;
}

Tree Generator::rearranged(const Type& type, int depth) {
  switch (between(0, 3)) {
    case 0: return make(Form::reverse, type, {array(type, depth - 1)});
    case 1: return make(Form::rotate, type, {scalar(ScalarType::i64, 1), array(type, depth - 1)});
    case 2:
      if (type.dims.size() == 2) {
        Type turned = type;
        std::swap(turned.dims[0], turned.dims[1]);
        if (chance(70)) return make(Form::transpose, type, {array(turned, depth - 1)});
        const Type flat = array_of("?", row_of(row_of(type)));
        return make(Form::unflatten, type, {make(Form::flatten, flat, {array(type, depth - 1)})});
      }
      [[fallthrough]];
    default: {
      if (type.dims.size() != 1) return nullptr;
      if (chance(50)) return make(Form::slice, type, {array(type, depth - 1), nullptr, nullptr, whole(-1)});
      // A column, where there is one.
      const std::string width = any_size();
      const Tree rows = array(array_of(type.dims[0], array_of(width, row_of(type))), depth - 1);
      const bool known = nonempty_.contains(width);
      const Tree column = make(Form::column, type, {rows, index_in(width, 1)});
      if (known) return column;
      return make(Form::branch, type, {binary(BinaryOp::lt, whole(0), size_of(width)), column, array(type, 0)});
    }
  }
}

Tree Generator::array(const Type& type, int depth) {
  --budget_;
  if (depth <= 0 || budget_ <= 0) return plain(type, depth);
  switch (between(0, 11)) {
    case 0: return plain(type, depth);
    case 1:
    case 2:
      if (Tree made = scanned(type, depth)) return made;
      break;
    case 3: return placed(type, depth);
    case 4: return overwritten(type, depth);
    case 5: return looped(type, depth);
    case 6:
      if (Tree made = rearranged(type, depth)) return made;
      break;
    case 7: {
      const Type row = row_of(type);
      if (!row.is_tuple() || !row.names.empty() || row.fields.size() > 3 || chance(30))
        return make(Form::branch, type, {condition(1), array(type, depth - 1), array(type, depth - 1)});
      std::vector<Tree> columns;
      for (const Type& part : row.fields) columns.push_back(array(array_of(type.dims[0], part), depth - 1));
      return make(Form::zip, type, std::move(columns));
    }
    default: break;
  }
  return mapped(type, depth);
}

}  // namespace apl::oracle
