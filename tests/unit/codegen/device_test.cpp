// The operations of device.h against ir/scalar.h, which says what they mean.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <type_traits>

#include "ir/scalar.h"
#include "runtime/backends/emulate.h"
#include "tests/unit/codegen/kernels.h"

namespace {

using apl::BinaryOp;
using apl::Scalar;
using apl::ScalarType;
using apl::UnaryOp;
using kernels::Device;
using kernels::take;

struct Named {
  const char* function;
  BinaryOp op;
};
constexpr Named kIntegerOps[] = {
    {"apl_add", BinaryOp::add},      {"apl_sub", BinaryOp::sub}, {"apl_mul", BinaryOp::mul}, {"apl_div", BinaryOp::div},
    {"apl_quot", BinaryOp::quot},    {"apl_mod", BinaryOp::mod}, {"apl_rem", BinaryOp::rem}, {"apl_pow", BinaryOp::pow},
    {"apl_min", BinaryOp::min},      {"apl_max", BinaryOp::max}, {"apl_shl", BinaryOp::shl}, {"apl_shr", BinaryOp::shr},
    {"apl_mul_hi", BinaryOp::mul_hi}};
constexpr Named kFloatOps[] = {{"apl_div", BinaryOp::div}, {"apl_mod", BinaryOp::mod},
                               {"apl_pow", BinaryOp::pow}, {"apl_min", BinaryOp::min},
                               {"apl_max", BinaryOp::max}, {"apl_nextafter", BinaryOp::nextafter}};
constexpr std::pair<const char*, UnaryOp> kIntegerUnary[] = {{"apl_neg", UnaryOp::neg},
                                                             {"apl_abs", UnaryOp::abs},
                                                             {"apl_sgn", UnaryOp::sgn},
                                                             {"apl_clz", UnaryOp::clz},
                                                             {"apl_popc", UnaryOp::popc}};
constexpr std::pair<const char*, UnaryOp> kFloatUnary[] = {{"apl_abs", UnaryOp::abs}, {"apl_sgn", UnaryOp::sgn}};

// An f16 as the host has it.
struct Half {
  std::uint16_t bits;
};

// One kernel a type: C(i, j, op) = op(A(i), A(j)), then the unary ones.
std::string text_for(const std::string& c_type, bool is_float) {
  std::string text = fmt::format(
      "#include \"device.h\"\nAPL_KERNEL(1) void k(apl_in<{0}> A, apl_out<{0}> C, int64_t n) {{\n  int64_t out = 0;\n"
      "  const apl_shared<{0}> a = apl_shared_at<{0}>(0, 2);\n"
      "  for (int64_t i = 0; i < n; ++i)\n    for (int64_t j = 0; j < n; ++j) {{\n      a(0) = A(i);\n      a(1) = "
      "A(j);\n",
      c_type);
  auto binary = [&](const Named& op) { text += fmt::format("      C(out++) = {}(a(0), a(1));\n", op.function); };
  if (is_float) {
    for (const Named& op : kFloatOps) binary(op);
  } else {
    for (const Named& op : kIntegerOps) binary(op);
  }
  text += "    }\n  for (int64_t i = 0; i < n; ++i) {\n    a(0) = A(i);\n";
  auto unary = [&](const char* function) { text += fmt::format("    C(out++) = {}(a(0));\n", function); };
  if (is_float) {
    for (const auto& [function, op] : kFloatUnary) unary(function);
  } else {
    for (const auto& [function, op] : kIntegerUnary) unary(function);
  }
  return text + "  }\n}\nAPL_EXPORT(k)\n";
}

template <class T>
Scalar scalar_of(ScalarType type, T value) {
  if constexpr (std::is_same_v<T, Half>)
    return Scalar::from_bits(type, value.bits);
  else if constexpr (std::is_floating_point_v<T>)
    return Scalar::floating(type, static_cast<double>(value));
  else
    return Scalar::integer(type, static_cast<std::int64_t>(value));
}

template <class T, class Binary, class Unary>
void check_type(const std::string& c_type, ScalarType type, const std::vector<T>& values, const Binary& binary,
                const Unary& unary) {
  CAPTURE(c_type);
  Device device(apl::make_emulate_backend({}), text_for(c_type, is_float(type)));
  const std::size_t n = values.size();
  const std::size_t count = n * n * std::size(binary) + n * std::size(unary);
  void* A = device.array(values, "A");
  void* C = device.scratch<T>(count, "C");
  take(device.launch("k", 1, 1, 16, A, C, static_cast<std::int64_t>(n)));
  const std::vector<T> got = device.read<T>(C, count);
  std::size_t at = 0;
  auto check = [&](const std::optional<Scalar>& expected, const std::string& what) {
    // Division by zero has no meaning; device.h says 0.
    const Scalar wanted = expected.value_or(Scalar::zero(type));
    const Scalar found = scalar_of(type, got[at++]);
    CHECK_MESSAGE(found == wanted, fmt::format("{} gives {}, not {}", what, found.to_text(), wanted.to_text()));
  };
  for (T x : values)
    for (T y : values)
      for (const Named& op : binary) {
        const Scalar a = scalar_of(type, x), b = scalar_of(type, y);
        check(apl::evaluate(op.op, a, b), fmt::format("{} {} {}", op.function, a.to_text(), b.to_text()));
      }
  for (T x : values)
    for (const auto& [function, op] : unary)
      check(apl::evaluate(op, scalar_of(type, x)), fmt::format("{} {}", function, scalar_of(type, x).to_text()));
}

template <class T>
void check_integers(const std::string& c_type, ScalarType type) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values{Limits::min(),
                        static_cast<T>(Limits::min() + 1),
                        0,
                        1,
                        2,
                        3,
                        7,
                        31,
                        63,
                        64,
                        100,
                        static_cast<T>(Limits::max() - 1),
                        Limits::max()};
  if constexpr (std::is_signed_v<T>) values.insert(values.end(), {-1, -2, -3, -8, -100});
  check_type<T>(c_type, type, values, kIntegerOps, kIntegerUnary);
}

template <class T>
void check_floats(const std::string& c_type, ScalarType type) {
  using Limits = std::numeric_limits<T>;
  check_type<T>(c_type, type,
                {0, static_cast<T>(-0.0), 1, -1, static_cast<T>(2.5), -3, 7, Limits::infinity(), -Limits::infinity(),
                 Limits::quiet_NaN(), Limits::max()},
                kFloatOps, kFloatUnary);
}

}  // namespace

TEST_CASE("device.h: integer operations mean what the IR's mean") {
  check_integers<std::int8_t>("int8_t", ScalarType::i8);
  check_integers<std::int16_t>("int16_t", ScalarType::i16);
  check_integers<std::int32_t>("int32_t", ScalarType::i32);
  check_integers<std::int64_t>("int64_t", ScalarType::i64);
  check_integers<std::uint8_t>("uint8_t", ScalarType::u8);
  check_integers<std::uint32_t>("uint32_t", ScalarType::u32);
  check_integers<std::uint64_t>("uint64_t", ScalarType::u64);
}

TEST_CASE("device.h: float operations mean what the IR's mean") {
  check_floats<float>("float", ScalarType::f32);
  check_floats<double>("double", ScalarType::f64);
  std::vector<Half> halves;
  // Without -0: which zero min and max give is left to the machine.
  for (double x : {0.0, 1.0, -1.0, 2.5, -3.0, 7.0, 65504.0, 6e-8, 1e-4, 1e6, -1e6})
    halves.push_back({static_cast<std::uint16_t>(Scalar::floating(ScalarType::f16, x).bits())});
  halves.push_back({0x7e00});
  check_type<Half>("apl_half", ScalarType::f16, halves, kFloatOps, kFloatUnary);
}

TEST_CASE("device.h: a half is rounded once, and keeps its number and its bits") {
  std::vector<double> values{0.0, -0.0, 65519.999, 65520.0, -1e300, 5e-8, 2.9802322387695312e-8, 3e-8, 6.1e-5, 1e-300};
  // Where rounding to float first would make a tie of what is none.
  values.push_back(1.0 + 1.0 / 2048 + 1e-12);
  for (int k = 0; k < 500; ++k) values.push_back(std::ldexp(1.0 + k / 499.0, k % 45 - 28) * (k % 2 == 0 ? 1 : -1));
  const std::string text =
      "#include \"device.h\"\nAPL_KERNEL(1) void k(apl_in<double> A, apl_out<apl_half> C, apl_out<uint16_t> D, int64_t "
      "n) {\n  for (int64_t i = 0; i < n; ++i) {\n    C(i) = (apl_half)A(i);\n"
      "    const apl_half x = C(i);\n    D(i) = apl_to_bits<apl_half>(apl_from_bits<apl_half>(apl_to_bits<apl_half>("
      "float(x))));\n  }\n}\nAPL_EXPORT(k)\n";
  Device device(apl::make_emulate_backend({}), text);
  void* A = device.array(values, "A");
  void* C = device.scratch<std::uint16_t>(values.size(), "C");
  void* D = device.scratch<std::uint16_t>(values.size(), "D");
  take(device.launch("k", 1, 1, 0, A, C, D, static_cast<std::int64_t>(values.size())));
  const auto got = device.read<std::uint16_t>(C, values.size());
  for (std::size_t k = 0; k < values.size(); ++k)
    CHECK_MESSAGE(got[k] == Scalar::floating(ScalarType::f16, values[k]).bits(), values[k]);
  CHECK(device.read<std::uint16_t>(D, values.size()) == got);
}

TEST_CASE("device.h: a float becomes an integer towards zero and saturated") {
  struct Target {
    const char* c_type;
    ScalarType type;
  };
  const std::vector<double> values{0,
                                   -0.0,
                                   0.9,
                                   -0.9,
                                   1,
                                   -1,
                                   127,
                                   127.9,
                                   128,
                                   -128,
                                   -128.9,
                                   -129,
                                   -300,
                                   -40000,
                                   255,
                                   255.9,
                                   256,
                                   2147483647.5,
                                   2147483648.0,
                                   -2147483648.5,
                                   -3e9,
                                   4294967296.0,
                                   9.2e18,
                                   9.3e18,
                                   -9.3e18,
                                   1.8e19,
                                   1.9e19,
                                   1e300,
                                   -1e300,
                                   std::numeric_limits<double>::infinity(),
                                   -std::numeric_limits<double>::infinity(),
                                   std::numeric_limits<double>::quiet_NaN()};
  const std::vector<Target> targets{{"int8_t", ScalarType::i8},    {"int16_t", ScalarType::i16},
                                    {"int32_t", ScalarType::i32},  {"int64_t", ScalarType::i64},
                                    {"uint8_t", ScalarType::u8},   {"uint16_t", ScalarType::u16},
                                    {"uint32_t", ScalarType::u32}, {"uint64_t", ScalarType::u64}};
  std::string text =
      "#include \"device.h\"\nAPL_KERNEL(1) void k(apl_in<double> A, apl_out<uint64_t> C, int64_t n) {\n  int64_t out "
      "= 0;\n  for (int64_t i = 0; i < n; ++i) {\n";
  for (const Target& target : targets)
    text += fmt::format("    C(out++) = uint64_t(apl_from_float<{}>(A(i)));\n", target.c_type);
  Device device(apl::make_emulate_backend({}), text + "  }\n}\nAPL_EXPORT(k)\n");
  const std::size_t count = values.size() * targets.size();
  void* A = device.array(values, "A");
  void* C = device.scratch<std::uint64_t>(count, "C");
  take(device.launch("k", 1, 1, 0, A, C, static_cast<std::int64_t>(values.size())));
  const auto got = device.read<std::uint64_t>(C, count);
  std::size_t at = 0;
  for (double value : values)
    for (const Target& target : targets) {
      const Scalar wanted = apl::convert(Scalar::floating(ScalarType::f64, value), target.type);
      const Scalar found = Scalar::from_bits(target.type, got[at++]);
      CHECK_MESSAGE(found == wanted, fmt::format("{} to {} gives {}", value, target.c_type, found.to_text()));
    }
}

TEST_CASE("device.h: index arithmetic rounds down and up") {
  const std::string text =
      "#include \"device.h\"\nAPL_KERNEL(1) void k(apl_out<int64_t> C, int64_t n) {\n  int64_t out = 0;\n"
      "  for (int64_t a = -n; a <= n; ++a)\n    for (int64_t b = 1; b <= 4; ++b) {\n"
      "      C(out++) = apl_floor_div(a, b);\n      C(out++) = apl_floor_mod(a, b);\n      C(out++) = apl_ceil_div(a, "
      "b);\n    }\n}\nAPL_EXPORT(k)\n";
  Device device(apl::make_emulate_backend({}), text);
  constexpr std::int64_t n = 9;
  constexpr std::size_t count = (2 * n + 1) * 4 * 3;
  void* C = device.scratch<std::int64_t>(count, "C");
  take(device.launch("k", 1, 1, 0, C, n));
  const auto got = device.read<std::int64_t>(C, count);
  std::size_t at = 0;
  for (std::int64_t a = -n; a <= n; ++a)
    for (std::int64_t b = 1; b <= 4; ++b) {
      CAPTURE(a);
      CAPTURE(b);
      const std::int64_t down = got[at++], rest = got[at++], up = got[at++];
      CHECK(down * b + rest == a);
      CHECK((rest >= 0 && rest < b));
      CHECK(up == down + (rest != 0));
    }
}

TEST_CASE("device.h: an operation's type is the one asked for, else that of its numbers") {
  const std::string text =
      "#include \"device.h\"\nAPL_KERNEL(1) void k(apl_in<int8_t> A, apl_out<int64_t> C) {\n"
      "  C(0) = apl_add<int8_t>(A(0), 1);\n"
      "  C(1) = apl_div<int32_t>(7, apl_add<int8_t>(A(0), 1));\n"
      "  C(2) = apl_add(A(0), A(0));\n"
      "  C(3) = apl_mul(1 << 20, int64_t(1) << 20);\n"
      "  C(4) = apl_neg<uint8_t>(A(0));\n"
      "  C(5) = apl_max(C(2), C(3));\n}\nAPL_EXPORT(k)\n";
  Device device(apl::make_emulate_backend({}), text);
  void* A = device.array(std::vector<std::int8_t>{127}, "A");
  void* C = device.scratch<std::int64_t>(6, "C");
  take(device.launch("k", 1, 1, 0, A, C));
  CHECK(device.read<std::int64_t>(C, 6) ==
        std::vector<std::int64_t>{-128, -1, -2, std::int64_t{1} << 40, 129, std::int64_t{1} << 40});
}
