#include "tests/random/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace apl::random_tests {

namespace {

constexpr double kMostMagnitude = 1 << 22;  // f32 is exact up to 2^24
constexpr double kInputMagnitude = 4;       // testing::random_arguments
constexpr double kMostHalf = 1 << 11;       // f16 is exact up to there
constexpr std::int64_t kMostLarge = 67, kMostSmall = 8;

}  // namespace

Program random_program(std::uint64_t seed, Kind kind) {
  return kind == Kind::branch_loops ? random_branch_loops(seed) : Generator(seed, kind).run();
}

std::int64_t Generator::between(std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
}

ScalarType Generator::any_integer() {
  static constexpr ScalarType kTypes[] = {ScalarType::i8,  ScalarType::i16, ScalarType::u8,
                                          ScalarType::u16, ScalarType::u32, ScalarType::u64};
  const std::int64_t k = between(0, 99);
  if (k < 40) return ScalarType::i32;
  if (k < 70) return ScalarType::i64;
  return kTypes[between(0, 5)];
}

ScalarType Generator::any_scalar() {
  if (chance(85)) return palette_[static_cast<std::size_t>(between(0, std::int64_t(palette_.size()) - 1))];
  const std::int64_t k = between(0, 99);
  if (k < 18) return ScalarType::f32;
  if (k < 27) return ScalarType::f64;
  return k < 35 ? ScalarType::boolean : any_integer();
}

Type Generator::any_row(int rank) {
  if (has_short_rows()) return any_short_row(rank);
  Type type;
  type.scalar = any_scalar();
  if (chance(18))
    for (std::int64_t k = between(2, 3); k > 0; --k) type.fields.push_back(Type{any_scalar(), {}, {}});
  for (; rank > 0; --rank) {
    Size size = any_size();
    if (chance(10) && size.parts.empty()) {
      const Size other = any_size();
      const bool names = std::isalpha(size.text[0]) != 0 && std::isalpha(other.text[0]) != 0;
      if (names) size = chance(60) ? Size::sum(size, other) : Size::product(size, other);
    }
    type.dims.push_back(size);
  }
  return type;
}

Type Generator::any_type(int rank) {
  if (!variables_.empty() && chance(30)) {
    const Type& type = variables_[static_cast<std::size_t>(between(0, std::int64_t(variables_.size()) - 1))].type;
    if (static_cast<int>(type.dims.size()) <= rank) return type;
  }
  if (rank > 0 && chance(12)) {
    Type type;
    for (std::int64_t k = between(2, 3); k > 0; --k) type.fields.push_back(any_row(static_cast<int>(between(0, rank))));
    return type;
  }
  return any_row(static_cast<int>(between(0, rank)));
}

Type Generator::any_array(const Size& size, int rank) {
  std::vector<Type> known;
  for (const Variable& variable : variables_)
    if (variable.type.is_array() && variable.type.dims.front() == size) known.push_back(variable.type);
  if (!known.empty() && chance(75)) return known[static_cast<std::size_t>(between(0, std::int64_t(known.size()) - 1))];
  return any_row(chance(has_short_rows() ? 25 : 70) ? 0 : rank - 1).array_of(size);
}

void Generator::bind(const std::string& name, const Type& type, double magnitude, const std::string& below) {
  variables_.push_back({name, type, type.has_float() ? magnitude : 0, below});
}

// A value of 0 .. size - 1: that there is one says that the size is not zero.
void Generator::bind_size_index(const std::string& name, const Size& size) {
  bind(name, Type{ScalarType::i64, {}, {}}, 0, size.text);
  nonempty_.push_back(size.text);
}

bool Generator::is_nonempty(const Size& size) const {
  if (size.least > 0 || std::find(nonempty_.begin(), nonempty_.end(), size.text) != nonempty_.end()) return true;
  if (size.how == '+') return is_nonempty(size.parts[0]) || is_nonempty(size.parts[1]);
  return size.how == '*' && is_nonempty(size.parts[0]) && is_nonempty(size.parts[1]);
}

Generator::Maybe Generator::index_into(const Size& size, int depth) {
  if (!is_nonempty(size)) return std::nullopt;
  const Type i64{ScalarType::i64, {}, {}};
  std::vector<std::string> known;
  for (const Variable& variable : variables_)
    if (variable.below == size.text) known.push_back(variable.name);
  if (!known.empty() && chance(75))
    return apl::random_tests::make(i64, 0,
                                   {known[static_cast<std::size_t>(between(0, std::int64_t(known.size()) - 1))]});
  if (size.least == size.most && size.least > 0 && chance(50))
    return apl::random_tests::make(i64, 0, {std::to_string(between(0, size.least - 1))});
  // Not a value of its own: without the remainder it would be another program.
  return make_text({"((", value(i64, 0, depth - 1), ") % " + size.in_expression() + ")"});
}

// A variable, or a part of one.
Generator::Maybe Generator::variable(const Type& type, double limit) {
  std::vector<Expr> found;
  for (const Variable& v : variables_) {
    if (v.magnitude > limit) continue;
    if (v.type == type) {
      found.push_back(make(type, v.magnitude, {v.name}));
      found.push_back(found.back());
    }
    if (v.type.is_tuple())
      for (std::size_t k = 0; k < v.type.fields.size(); ++k)
        if (v.type.fields[k] == type) found.push_back(make(type, v.magnitude, {v.name + "." + std::to_string(k)}));
  }
  if (found.empty()) return std::nullopt;
  // The last ones were bound nearest.
  const std::int64_t last = static_cast<std::int64_t>(found.size()) - 1;
  return found[static_cast<std::size_t>(chance(50) ? between(last / 2, last) : between(0, last))];
}

// A number of another type converted, an element read, an array mapped: what is far from constant.
Generator::Maybe Generator::made_from_variable(const Type& type, double limit) {
  if (type.is_tuple()) return std::nullopt;
  std::vector<Variable> found;
  for (const Variable& v : variables_) {
    if (v.type.is_tuple()) continue;
    if (type.is_array() ? v.type.is_array() && v.type.dims.front() == type.dims.front()
                        : v.type.is_scalar() || (v.type.dims.size() == 1 && v.type.fields.empty()))
      found.push_back(v);
  }
  if (found.empty()) return std::nullopt;
  const Variable from = found[static_cast<std::size_t>(between(0, std::int64_t(found.size()) - 1))];
  if (type.is_array()) {
    const Scope scope(*this);
    const std::string row = fresh();
    nonempty_.push_back(type.dims.front().text);
    bind(row, from.type.row(), from.magnitude);
    const Expr body = leaf(type.row(), limit);
    return make(type, body->magnitude, {"(map (\\" + row + " -> ", body, ") " + from.name + ")"});
  }
  std::string read = from.name;
  if (from.type.is_array()) {
    const Size& size = from.type.dims.front();
    if (!is_nonempty(size)) return std::nullopt;
    read += "[0]";
    for (const Variable& v : variables_)
      if (v.below == size.text) read = from.name + "[" + v.name + "]";
  }
  const Type scalar{from.type.scalar, {}, {}};
  if (scalar == type) return from.magnitude <= limit ? Maybe(make(type, from.magnitude, {read})) : std::nullopt;
  const std::string call = fmt::format("({}.{} ", apl::to_text(type.scalar), apl::to_text(scalar.scalar));
  if (is_float(scalar.scalar) && type.scalar != ScalarType::i32 && type.scalar != ScalarType::i64) return std::nullopt;
  if (!is_float(type.scalar)) return make(type, 0, {call + read + ")"});
  if (limit < 2) return std::nullopt;
  if (scalar.scalar == ScalarType::boolean) return make(type, 1, {call + read + ")"});
  const std::int64_t most = std::min<std::int64_t>(static_cast<std::int64_t>(limit), 50);
  return make(type, static_cast<double>(most),
              {fmt::format("{}({} % {}{}))", call, read, most, apl::to_text(scalar.scalar))});
}

Expr Generator::leaf(const Type& type, double limit) {
  if (chance(88))
    if (Maybe known = variable(type, limit)) return *known;
  if (chance(has_short_rows() ? 35 : 70))
    if (Maybe made = made_from_variable(type, limit)) return *made;
  if (has_short_rows() && type.is_array()) {
    std::vector<std::string> indices;
    return indexed(type, limit, indices);
  }
  if (type.is_scalar()) return literal(type.scalar, limit);
  if (type.is_tuple()) {
    std::vector<Piece> pieces{"("};
    double magnitude = 0;
    for (const Type& field : type.fields) {
      if (pieces.size() > 1) pieces.emplace_back(", ");
      const Expr part = leaf(field, limit);
      magnitude = std::max(magnitude, part->magnitude);
      pieces.emplace_back(part);
    }
    pieces.emplace_back(")");
    return make(type, magnitude, pieces);
  }
  if (type.dims.size() == 1 && type.fields.empty() && type.scalar == ScalarType::i64 && chance(50))
    return make(type, 0, {"(iota " + type.dims.front().in_expression() + ")"});
  const Expr row = leaf(type.row(), limit);
  return make(type, row->magnitude, {"(replicate " + type.dims.front().in_expression() + " ", row, ")"});
}

Expr Generator::within(Expr scalar, double limit) {
  if (scalar->magnitude <= limit) return scalar;
  const double most = std::floor(limit);
  if (most < 1) return literal(scalar->type.scalar, limit);
  return make(scalar->type, most, {"(", scalar, fmt::format(" % {}{})", most, apl::to_text(scalar->type.scalar))});
}

Expr Generator::condition(int depth) { return value(Type{ScalarType::boolean, {}, {}}, kMostMagnitude, depth); }

Expr Generator::value(const Type& type, double limit, int depth) {
  using G = Generator;
  if (type.has_half()) limit = std::min(limit, kMostHalf);
  static constexpr Weighted kScalars[] = {
      {30, &G::arithmetic},  {20, &G::float_arithmetic},
      {8, &G::unary},        {25, &G::comparison},
      {8, &G::conversion},   {4, &G::size_as_value},
      {20, &G::index},       {20, &G::reduce},
      {8, &G::contraction},  {8, &G::named_reduction},
      {8, &G::let_in},       {4, &G::let_size},
      {3, &G::let_function}, {6, &G::call},
      {8, &G::branch},       {6, &G::loop_for},
      {4, &G::loop_over},    {3, &G::loop_while},
      {4, &G::projection},
  };
  static constexpr Weighted kTuples[] = {
      {30, &G::tuple}, {12, &G::index},   {15, &G::reduce},   {8, &G::let_in},     {3, &G::let_function}, {3, &G::call},
      {8, &G::branch}, {8, &G::loop_for}, {4, &G::loop_over}, {3, &G::loop_while}, {3, &G::let_size},
  };
  static constexpr Weighted kShortRows[] = {
      {40, &G::joined},       {12, &G::joined_constant}, {15, &G::joined_rows},    {15, &G::chosen_rows},
      {14, &G::windows},      {10, &G::turned_rows},     {12, &G::columns},        {12, &G::changed_rows},
      {12, &G::rows_in_loop}, {8, &G::repeated_rows},    {8, &G::updates_in_loop}, {8, &G::update},
      {10, &G::turned},       {8, &G::array_literal},    {8, &G::reshaped},
  };
  static constexpr Weighted kArrays[] = {
      {45, &G::map},
      {10, &G::tabulate},
      {8, &G::product_of_matrices},
      {5, &G::made_from_size},
      {5, &G::array_literal},
      {8, &G::turned},
      {10, &G::transposed},
      {10, &G::joined},
      {8, &G::sliced},
      {10, &G::reshaped},
      {8, &G::zipped},
      {10, &G::update},
      {7, &G::updates_in_loop},
      {14, &G::scan},
      {8, &G::scatter},
      {8, &G::histogram},
      {6, &G::reduce},
      {6, &G::index},
      {6, &G::let_in},
      {3, &G::let_size},
      {3, &G::let_function},
      {6, &G::call},
      {6, &G::branch},
      {7, &G::loop_for},
      {3, &G::loop_over},
      {2, &G::loop_while},
      {3, &G::projection},
  };
  const auto pick = [&](const auto& rules) -> Maybe {
    int sum = 0;
    for (const Weighted& rule : rules) sum += rule.weight;
    for (int attempt = 0; attempt < 4; ++attempt) {
      std::int64_t k = between(0, sum - 1);
      const auto* rule = std::begin(rules);
      while (k >= rule->weight) k -= (rule++)->weight;
      if (Maybe result = (this->*rule->rule)(type, limit, depth - 1)) return result;
    }
    return std::nullopt;
  };
  if (--budget_ <= 0 || depth <= 0) return leaf(type, limit);
  const bool rows = has_short_rows() && type.is_array() && chance(75);
  Maybe result = rows              ? pick(kShortRows)
                 : type.is_array() ? pick(kArrays)
                 : type.is_tuple() ? pick(kTuples)
                                   : pick(kScalars);
  return result ? *result : leaf(type, limit);
}

// Two or three sizes that inputs have, and constants; some programs are never tried with sizes of zero, so that they
// may index without being sure.
void Generator::declare_sizes(std::vector<testing::Sizes>& tried) {
  if (has_short_rows()) return declare_short_sizes(tried);
  const std::int64_t names = between(1, 3);
  static constexpr const char* kNames[] = {"n", "m", "k"};
  const bool with_zero = chance(50);
  for (std::int64_t k = 0; k < names; ++k)
    sizes_.push_back({kNames[k], with_zero ? 0 : 1, k == 0 ? kMostLarge : kMostSmall, 0, {}});
  const auto add = [&](std::int64_t n, std::int64_t m, std::int64_t k) {
    testing::Sizes sizes;
    const std::int64_t values[] = {n, m, k};
    for (std::int64_t name = 0; name < names; ++name) sizes[kNames[name]] = values[name];
    tried.push_back(sizes);
  };
  add(3, 4, 2);
  add(5, 1, 7);
  add(1, 2, 1);
  add(names == 1 ? kMostLarge : 18, 2, 3);
  if (with_zero) {
    add(0, 3, 2);
    add(4, 0, 1);
  }
  sizes_.push_back(Size::constant(between(1, 2)));
  sizes_.push_back(Size::constant(between(3, 5)));
}

// ` [n][m] (a: [n]i32) ..`: one array for each size, whose shape gives it, then any.
std::vector<Generator::Parameter> Generator::declare_params(std::string& text) {
  std::vector<Parameter> params;
  for (const Size& size : sizes_)
    if (std::isalpha(size.text[0]) != 0) {
      text += " [" + size.text + "]";
      if (!has_short_rows()) params.push_back({any_row(0).array_of(size)});
    }
  if (has_short_rows()) params = short_row_params();
  for (std::int64_t k = has_short_rows() ? 0 : between(0, 3); k > 0; --k)
    params.push_back({any_row(static_cast<int>(between(0, 3)))});
  for (auto& [type, consumed] : params) {
    // Entries have arrays of scalars, and shapes that can be taken from them.
    if (!has_short_rows()) type.fields.clear();
    for (Size& size : type.dims)
      if (!size.parts.empty()) size = size.parts.front();
    const std::string name = fresh();
    consumed = type.is_array() && type.fields.empty() && unique_.size() < 2 && chance(25);
    text += fmt::format(" ({}: {}{})", name, consumed ? "*" : "", type.text());
    bind(name, type, kInputMagnitude);
    if (consumed) unique_.push_back(name);
  }
  return params;
}

// Consumes the parameters that are ours: nobody may see them, or what they alias, from here on.
void Generator::consume_params(std::vector<Piece>& pieces, int depth) {
  for (const std::string& old : unique_) {
    const auto place =
        std::find_if(variables_.begin(), variables_.end(), [&](const Variable& v) { return v.name == old; });
    const Type type = place->type;
    const Size size = type.dims.front();
    const std::string name = fresh(), i = fresh();
    variables_.erase(place);
    if (chance(40)) {
      const Size count = any_size();
      const Expr values = value(type.row().array_of(count), kInputMagnitude, std::min(depth, 3));
      pieces.insert(pieces.end(),
                    {"  let " + name + " = scatter " + old + " ", different_places(count, 2), " ", values, "\n"});
    } else {
      const std::string state = fresh();
      Scope scope(*this);
      bind_size_index(i, size);
      if (type.dims.size() == 1) bind(state, type, kInputMagnitude);
      const Expr row = value(type.row(), kInputMagnitude, std::min(depth, 3));
      pieces.insert(pieces.end(),
                    {fmt::format("  let {} = loop {} = {} for {} < {} do {} with [{}] = {}", name, state, old, i,
                                 size.in_expression(), state, i, type.row().is_array() ? "copy " : ""),
                     row, "\n"});
    }
    bind(name, type, kInputMagnitude);
  }
  unique_.clear();
}

// What is bound is part of the result of an entry, so that it is not dropped: then `result` is a tuple.
Expr Generator::function_body(Type& result, int depth, bool is_entry) {
  std::vector<Variable> bound_here;
  std::vector<Piece> pieces{"\n"};
  consume_params(pieces, depth);
  for (std::int64_t k = has_short_rows() ? between(1, 4) : between(0, 6); k > 0; --k) {
    const Maybe contracted = chance(has_short_rows() ? 5 : 25) ? any_contraction() : std::nullopt;
    const Type type = contracted ? (*contracted)->type : has_short_rows() ? any_short_rows() : any_type(2);
    // One step on what is at hand, or several on what they make.
    const int steps = has_short_rows() && chance(60) ? 1 : depth;
    const Expr bound = contracted ? *contracted : value(type, kMostMagnitude / 64, steps);
    const std::string name = fresh();
    pieces.emplace_back("  let " + name + (chance(50) ? ": " + type.text() : "") + " = ");
    pieces.emplace_back(bound);
    pieces.emplace_back("\n");
    bind(name, type, bound->magnitude);
    bound_here.push_back(variables_.back());
  }
  pieces.emplace_back("  in ");
  if (pieces.size() == 2) pieces.back() = "  ";  // nothing is bound
  budget_ = std::max(budget_, has_short_rows() ? 4 : 20);
  const Expr last = value(result, kMostMagnitude, depth);
  if (!is_entry || bound_here.empty()) {
    pieces.emplace_back(last);
    return make(result, last->magnitude, pieces);
  }
  Type all;
  all.fields = {result};
  std::vector<Piece> parts{"(", last};
  for (const Variable& v : bound_here) {
    all.fields.push_back(v.type);
    parts.emplace_back(", ");
    parts.emplace_back(make(v.type, v.magnitude, {v.name}));
  }
  parts.emplace_back(")");
  result = all;
  pieces.emplace_back(make(result, kMostMagnitude, parts));
  return make(result, kMostMagnitude, pieces);
}

// A function of scalars, which a kernel can call where it stays a function.
Expr Generator::scalar_helper(std::int64_t number) {
  const Scope scope(*this);
  std::vector<Size> all = sizes_;
  std::erase_if(sizes_, [](const Size& size) { return std::isalpha(size.text[0]) != 0; });
  budget_ = 16;
  Helper helper{fmt::format("s{}_{}", seed_, number), {}, Type{any_scalar(), {}, {}}};
  std::string head;
  for (std::int64_t k = between(1, 3); k > 0; --k) {
    helper.params.push_back({Type{any_scalar(), {}, {}}});
    const std::string name = fresh();
    head += fmt::format(" ({}: {})", name, helper.params.back().type.text());
    bind(name, helper.params.back().type, kInputMagnitude);
  }
  const Maybe body = chance(60) ? branch(helper.result, kMostMagnitude, 3) : loop_for(helper.result, kMostMagnitude, 3);
  const Expr all_of_it = body ? *body : leaf(helper.result, kMostMagnitude);
  const std::string attribute = chance(60) ? "#[noinline]\n" : "";
  const Expr made =
      make_text({fmt::format("{}def {}{}: {} = ", attribute, helper.name, head, helper.result.text()), all_of_it});
  sizes_ = std::move(all);
  helpers_.push_back(std::move(helper));
  return made;
}

void Generator::declare_types() {
  if (has_short_rows()) {
    static constexpr ScalarType kTypes[] = {ScalarType::i8,  ScalarType::i16, ScalarType::i32, ScalarType::i64,
                                            ScalarType::u8,  ScalarType::u16, ScalarType::u32, ScalarType::u64,
                                            ScalarType::f16, ScalarType::f32, ScalarType::f64, ScalarType::boolean};
    for (int k = 0; k < 3; ++k) palette_.push_back(kTypes[between(0, std::ssize(kTypes) - 1)]);
    return declare_short_rows();
  }
  palette_ = {ScalarType::boolean, ScalarType::i64, any_integer()};
  if (chance(70)) palette_.push_back(chance(70) ? ScalarType::f32 : ScalarType::f64);
  if (chance(30)) palette_.push_back(any_integer());
  palette_.push_back(palette_.back());
  palette_.push_back(palette_.back());
}

Program Generator::run() {
  Program program{seed_, fmt::format("e{}", seed_), {}, {}};
  declare_sizes(program.sizes);
  declare_types();
  if (!has_short_rows())
    for (std::int64_t k = chance(35) ? between(1, 2) : 0; k > 0; --k) program.definitions.push_back(scalar_helper(k));
  for (std::int64_t k = chance(has_short_rows() ? 8 : 35) ? between(1, 2) : 0; k > 0; --k) {
    const Scope scope(*this);
    budget_ = 20;
    std::string head;
    const std::vector<Parameter> params = declare_params(head);
    Type result = any_type(2);
    const Expr body = function_body(result, 3, false);
    Helper helper{fmt::format("f{}_{}", seed_, k), params, result};
    program.definitions.push_back(make_text(
        {fmt::format("{}def {}{}: {} =", chance(40) ? "#[noinline]\n" : "", helper.name, head, result.text()), body}));
    helpers_.push_back(std::move(helper));
  }
  budget_ = static_cast<int>(has_short_rows() ? between(4, 20) : between(10, 120));
  std::string head;
  declare_params(head);
  Type result = has_short_rows() ? any_short_rows() : any_type(3);
  const Expr body = function_body(result, static_cast<int>(has_short_rows() ? between(2, 3) : between(2, 6)), true);
  program.definitions.push_back(make_text({fmt::format("entry {}{}: {} =", program.entry, head, result.text()), body}));
  return program;
}

}  // namespace apl::random_tests
