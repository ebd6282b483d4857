#include "tests/oracle/generator.h"

#include <cmath>
#include <limits>

#include "tests/oracle/scope.h"

namespace apl::oracle {

Tree make(Form form, Type type, std::vector<Tree> kids, std::vector<Lambda> lambdas) {
  Node node;
  node.form = form;
  node.type = std::move(type);
  node.kids = std::move(kids);
  node.lambdas = std::move(lambdas);
  return std::make_shared<Node>(std::move(node));
}

Tree variable(const std::string& name, const Type& type) {
  Node node;
  node.form = Form::variable;
  node.type = type;
  node.name = name;
  return std::make_shared<Node>(std::move(node));
}

Tree literal(const Number& number) {
  Node node;
  node.type = scalar_type(number.type);
  node.literal = number;
  return std::make_shared<Node>(std::move(node));
}

Tree whole(std::int64_t value) { return literal(integer(ScalarType::i64, value)); }

Tree unary(UnaryOp op, Tree x) {
  Node node;
  node.form = Form::unary;
  node.type = x->type;
  if (op == UnaryOp::isnan || op == UnaryOp::isinf) node.type = scalar_type(ScalarType::boolean);
  if (op == UnaryOp::popc || op == UnaryOp::clz || op == UnaryOp::ctz) node.type = scalar_type(ScalarType::i32);
  node.unary_op = op;
  node.kids = {std::move(x)};
  return std::make_shared<Node>(std::move(node));
}

Tree binary(BinaryOp op, Tree x, Tree y) {
  Node node;
  node.form = Form::binary;
  node.type = op >= BinaryOp::eq ? scalar_type(ScalarType::boolean) : x->type;
  node.binary_op = op;
  node.kids = {std::move(x), std::move(y)};
  return std::make_shared<Node>(std::move(node));
}

Tree convert_to(ScalarType type, Tree x) {
  if (x->type == scalar_type(type)) return x;
  return make(Form::convert, scalar_type(type), {std::move(x)});
}

Tree field(Tree x, std::size_t k) {
  const Type& type = x->type;
  const std::string name = type.names.empty() ? std::to_string(k) : type.names[k];
  Tree result = make(Form::field, type.fields[k], {x});
  std::const_pointer_cast<Node>(result)->name = name;
  return result;
}

Tree let(const Pattern& pattern, const std::vector<std::string>& sizes, Tree value, Tree body) {
  Node node;
  node.form = Form::let_in;
  node.type = body->type;
  node.pattern = pattern;
  node.sizes = sizes;
  node.kids = {std::move(value), std::move(body)};
  return std::make_shared<Node>(std::move(node));
}

std::int64_t Generator::between(std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
}

ScalarType Generator::any_scalar() {
  static const std::vector<ScalarType> kAll{ScalarType::i32, ScalarType::i32, ScalarType::i64, ScalarType::f32,
                                            ScalarType::f32, ScalarType::f16, ScalarType::f16, ScalarType::f64,
                                            ScalarType::u8,  ScalarType::i8,  ScalarType::i16, ScalarType::u16,
                                            ScalarType::u32, ScalarType::u64, ScalarType::i64};
  return one_of(kAll);
}

ScalarType Generator::any_integer() {
  static const std::vector<ScalarType> kAll{ScalarType::i32, ScalarType::i64, ScalarType::i8,  ScalarType::i16,
                                            ScalarType::u8,  ScalarType::u16, ScalarType::u32, ScalarType::u64,
                                            ScalarType::i32, ScalarType::i64};
  return one_of(kAll);
}

Type Generator::any_element() {
  if (chance(65)) return scalar_type(chance(10) ? ScalarType::boolean : any_scalar());
  std::vector<Type> fields;
  const std::int64_t count = between(2, 3);
  for (std::int64_t k = 0; k < count; ++k)
    fields.push_back(scalar_type(chance(15) ? ScalarType::boolean : any_scalar()));
  Type type = tuple_type(std::move(fields));
  static const std::vector<std::vector<std::string>> kNames{{"x", "a", "m"}, {"re", "im", "w"}};
  if (chance(45)) {
    type.names = one_of(kNames);
    type.names.resize(type.fields.size());
  }
  return type;
}

void Generator::bind(const Pattern& pattern) {
  if (pattern.parts.empty()) return scope_.push_back({pattern.name, pattern.type});
  for (const Pattern& part : pattern.parts) bind(part);
}

Tree Generator::any_variable(const std::function<bool(const Type&)>& fits) {
  std::vector<const Variable*> found;
  for (const Variable& v : scope_)
    if (fits(v.type)) found.push_back(&v);
  if (found.empty()) return nullptr;
  // Rather what was bound last: parameters of the lambda.
  const std::int64_t last = static_cast<std::int64_t>(found.size()) - 1;
  const Variable& v = *found[static_cast<std::size_t>(std::max(between(0, last), between(0, last)))];
  return variable(v.name, v.type);
}

// Numbers where their types, or what is done with them, change.
Number Generator::corner(ScalarType type) {
  if (type == ScalarType::boolean) return boolean(chance(50));
  if (!is_real(type)) {
    if (chance(70)) return integer(type, between(-5, 9));
    const int width = width_of(type);
    switch (between(0, 3)) {
      case 0: return integer(type, static_cast<std::int64_t>(std::uint64_t(1) << (width - 1)));
      case 1: return integer(type, static_cast<std::int64_t>((std::uint64_t(1) << (width - 1)) - 1));
      case 2: return integer(type, -1);
      default: return integer(type, static_cast<std::int64_t>(random_()));
    }
  }
  static const std::vector<double> kCorners{0.0,
                                            -0.0,
                                            std::numeric_limits<double>::quiet_NaN(),
                                            std::numeric_limits<double>::infinity(),
                                            -std::numeric_limits<double>::infinity(),
                                            65504,
                                            6e-8,
                                            -6.1e-5,
                                            1e-45,
                                            3.4028234663852886e38,
                                            -1.7976931348623157e308,
                                            5e-324,
                                            16777217,
                                            -2049,
                                            2147483648.0,
                                            -9.3e18,
                                            4294967295.5,
                                            0.1,
                                            -128.9,
                                            255.5,
                                            1.0 / 3};
  if (chance(40)) return real(type, one_of(kCorners));
  return real(type, static_cast<double>(between(-24, 24)) / (chance(50) ? 1 : 2));
}

Value Generator::argument(const Type& type, const Arguments& arguments) {
  if (type.is_array()) {
    Value value;
    const std::int64_t count = arguments.sizes.at(type.dims.front());
    for (std::int64_t k = 0; k < count; ++k) value.parts.push_back(argument(row_of(type), arguments));
    return value;
  }
  Value value;
  if (type.is_scalar()) value.number = corner(type.scalar);
  for (const Type& part : type.fields) value.parts.push_back(argument(part, arguments));
  return value;
}

Tree Generator::result() {
  // The last that were bound, and what may fail: it need not where nobody asks for it.
  std::vector<Tree> parts;
  for (std::size_t k = scope_.size(); k-- > 0;)
    if (scope_[k].name == failing_ || (parts.size() < 4 && (parts.size() < 2 || chance(40))))
      parts.push_back(variable(scope_[k].name, scope_[k].type));
  std::vector<Type> types;
  for (const Tree& part : parts) types.push_back(part->type);
  return make(Form::tuple, tuple_type(std::move(types)), std::move(parts));
}

Case Generator::run() {
  Program program;
  program.seed = seed_;
  program.name = "p" + std::to_string(seed_);
  program.sizes = {"n", "m"};
  sizes_ = {"n", "m"};
  const Type i64 = scalar_type(ScalarType::i64);
  Type rows = array_of("n", array_of("m", chance(70) ? scalar_type(any_scalar()) : any_element()));
  program.params = {{"xs", array_of("n", any_element()), {}},
                    {"ys", array_of("m", scalar_type(any_scalar())), {}},
                    {"rows", rows, {}},
                    {"q", i64, {}},
                    {"h", i64, {}},
                    {"r", chance(50) ? any_element() : operator_type(), {}}};
  if (chance(40)) program.params.push_back({"zs", array_of("n", operator_type()), {}});
  for (const Pattern& param : program.params) bind(param);
  bind({"n", i64, {}}), bind({"m", i64, {}});
  fails_ = chance(20);
  budget_ = static_cast<int>(between(20, 120));
  program.body = block(static_cast<int>(between(2, 5)), static_cast<int>(between(2, 4)), [this] { return result(); });
  Case result{program, {}};
  static const std::vector<std::int64_t> kSizes{0, 1, 2, 3, 5, 8, 17};
  for (int k = 0; k < 4; ++k) {
    Arguments arguments;
    arguments.sizes = {{"n", k == 0                 ? 3
                             : k == 3 && chance(30) ? between(100, 300)
                                                    : one_of(kSizes)},
                       {"m", k == 0 ? 2 : one_of(kSizes)}};
    for (const Pattern& param : program.params) {
      arguments.values.push_back(argument(param.type, arguments));
      if (param.name == "q") arguments.values.back().number = integer(ScalarType::i64, between(-3, 6));
      if (param.name == "h") arguments.values.back().number = integer(ScalarType::i64, between(-2, 1) * (1LL << 62));
    }
    result.arguments.push_back(std::move(arguments));
  }
  return result;
}

Case random_case(std::uint64_t seed) { return Generator(seed).run(); }

}  // namespace apl::oracle
