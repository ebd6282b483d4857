// Derivatives of random programs: forward mode against finite differences, reverse mode against forward mode.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "ir/interpret.h"
#include "tests/unit/frontend/support.h"

namespace apl::derivative_tests {

namespace {

// Functions `f : (f64, [n]f64, [n]f64) -> (f64, [n]f64)` as texts of smooth operations, their values of moderate size.
class RandomFunction {
 public:
  explicit RandomFunction(std::uint64_t seed) : engine_(seed) {}

  std::string body(int statements) {
    scalars_ = {"a"};
    arrays_ = {"xs", "ys"};
    text_.clear();
    for (int k = 0; k < statements; ++k) statement();
    return text_ + fmt::format("  in ({}, map2 (+) {} {})\n", scalars_.back(), arrays_.back(), array());
  }

 private:
  int below(int n) { return static_cast<int>(engine_() % static_cast<unsigned>(n)); }
  const std::string& scalar() { return scalars_[static_cast<std::size_t>(below(static_cast<int>(scalars_.size())))]; }
  const std::string& array() { return arrays_[static_cast<std::size_t>(below(static_cast<int>(arrays_.size())))]; }

  // Of two values, each a name.
  std::string expression(const std::string& x, const std::string& y) {
    static const std::vector<std::string> kShapes = {
        "f64.sin ({0} * {1})",
        "f64.tanh {0} * {1} + 0.25",
        "{0} / (1 + {1} * {1})",
        "f64.sqrt (1 + {0} * {0}) - {1}",
        "f64.exp (-({0} * {0})) + f64.cos {1}",
        "f64.log (1.5 + {0} * {0}) * f64.atan {1}",
        "(1.1 + f64.sin {0}) ** (0.5 * f64.cos {1})",
        "f64.max ({0} - 0.3) (f64.tanh {1})",
        "f64.min ({0} * 0.9) ({1} + 0.2)",
        "f64.abs ({0} - 0.7) - f64.atan2 {1} 2.0",
        "f64.hypot {0} 1.5 - {1}",
        "if {0} > {1} + 0.1 then f64.erf {0} else {1} * {1} * 0.3",
    };
    const std::string shape = kShapes[static_cast<std::size_t>(below(static_cast<int>(kShapes.size())))];
    return "f64.tanh (" + fmt::format(fmt::runtime(shape), x, y) + ")";
  }

  void bind_scalar(const std::string& value) {
    const std::string name = fmt::format("s{}", scalars_.size());
    text_ += fmt::format("  let {} = {}\n", name, value);
    scalars_.push_back(name);
  }
  void bind_array(const std::string& value) {
    const std::string name = fmt::format("z{}", arrays_.size());
    text_ += fmt::format("  let {} = {}\n", name, value);
    arrays_.push_back(name);
  }

  void statement() {
    const std::string z = array(), w = array(), s = scalar(), t = scalar();
    const std::string with_s = expression("x", s), of_both = expression("x", "y");
    switch (below(34)) {
      case 0: return bind_scalar(expression(s, t));
      case 1: return bind_array(fmt::format("map (\\x -> {}) {}", with_s, z));
      case 2: return bind_array(fmt::format("map2 (\\x y -> {}) {} {}", of_both, z, w));
      case 3: return bind_scalar(fmt::format("f64.tanh (f64.sum {})", z));
      case 4: return bind_scalar(fmt::format("reduce (*) 1 (map f64.tanh {})", z));
      case 5: return bind_scalar(fmt::format("f64.maximum {} - f64.minimum {}", z, w));
      case 6:
        return bind_scalar(
            fmt::format("(reduce (\\(a, b) (c, d) -> (a * c, b * c + d)) (1, 0) (zip (map f64.tanh {}) {})).1", z, w));
      case 7: return bind_array(fmt::format("scan (+) 0 {}", z));
      case 8: return bind_array(fmt::format("scan (*) 1 (map f64.tanh {})", z));
      case 9: return bind_array(fmt::format("scan f64.max (-10) {}", z));
      case 10:
        return bind_array(fmt::format(
            "map (.1) (scan (\\(a, b) (c, d) -> (a * c, b * c + d)) (1, 0) (zip (map f64.tanh {}) {}))", z, w));
      case 11: return bind_array(fmt::format("map (\\i -> {}[(i + 1) % n] * {}) is", z, s));
      case 12: return bind_array(fmt::format("scatter (copy {}) (map (+ 1) (iota n)) {}", z, w));
      case 13: return bind_array(fmt::format("reduce_by_index (copy {}) (+) 0 is {}", z, w));
      case 14: return bind_array(fmt::format("reduce_by_index (copy {}) (*) 1 is (map f64.cos {})", z, w));
      case 15: return bind_array(fmt::format("reduce_by_index (copy {}) f64.max (-10) is {}", z, w));
      case 16: return bind_scalar(fmt::format("loop x = {} for i < 4 do let y = {}[i % n] in {}", s, z, of_both));
      case 17: return bind_array(fmt::format("loop z = {} for _i < 3 do map (\\x -> {}) z", z, with_s));
      case 18:
        return bind_array(fmt::format(
            "loop z = copy {} for i < n - 1 do let x = z[i] let y = z[i + 1] in z with [i + 1] = {}", z, of_both));
      case 19:
        return bind_scalar(fmt::format(
            "(loop (x, k) = ({}, 0i32) while k < 5 && x < 0.9 do (let y = {} in {}, k + 1)).0", s, t, of_both));
      case 20: return bind_array(fmt::format("if {} > 0.1 then map (* {}) {} else {}", s, t, z, w));
      case 21: return bind_array(fmt::format("map (\\x -> f64.tanh (f64.sum (map (\\y -> {}) {}))) {}", of_both, w, z));
      case 22:
        return bind_array(
            fmt::format("map (\\x -> loop x = x for i < 3 do let y = {}[(i * 2) % n] in {}) {}", w, of_both, z));
      case 23:
        return bind_array(
            fmt::format("map (\\i -> f64.sum (map (\\j -> {}[(i + j) % n] * {}[j]) (iota n)) / 4) (iota n)", z, w));
      case 24: {
        const std::string product = fmt::format("map (\\x -> map (\\y -> {}) {}) {}", of_both, w, z);
        return bind_array(fmt::format("map (\\r -> f64.sum r / 4) (transpose ({}))", product));
      }
      case 25: return bind_array(fmt::format("reverse (rotate 1 {})", z));
      case 26: return bind_array(fmt::format("take n (map (* {}) ({} ++ {}))", s, z, w));
      case 27: return bind_array(fmt::format("exscan (+) 0 {}", z));
      case 28: return bind_scalar(fmt::format("vjp (\\x -> {}) {} 0.5", with_s, t));
      case 29: return bind_array(fmt::format("map (\\x -> jvp (\\x -> {}) x 0.75) {}", with_s, z));
      case 30: return bind_array(fmt::format("vjp (map2 (\\x y -> {}) {}) {} {}", of_both, z, w, z));
      case 31: return bind_array(fmt::format("replicate n {}", s));
      case 32:
        return bind_array(
            fmt::format("reduce (map2 (*)) (replicate n 1) (map (\\x -> map (\\y -> {}) {}) {})", of_both, w, z));
      default:
        return bind_array(
            fmt::format("scan (map2 (+)) (replicate n 0) (map (\\x -> map (* x) {}) {}) |> map f64.sum", w, z));
    }
  }

  std::mt19937_64 engine_;
  std::vector<std::string> scalars_, arrays_;
  std::string text_;
};

struct Point {
  double a = 0;
  std::vector<double> xs, ys;

  Point moved(double h, const Point& by) const {
    Point result = *this;
    result.a += h * by.a;
    for (std::size_t k = 0; k < xs.size(); ++k) {
      result.xs[k] += h * by.xs[k];
      result.ys[k] += h * by.ys[k];
    }
    return result;
  }
};

Point random_point(std::mt19937_64& engine, int n) {
  std::uniform_real_distribution<double> any(-1, 1);
  Point point{.a = any(engine), .xs = {}, .ys = {}};
  for (int k = 0; k < n; ++k) point.xs.push_back(any(engine));
  for (int k = 0; k < n; ++k) point.ys.push_back(any(engine));
  return point;
}

HostValue scalar(double x) { return HostValue::scalar(Scalar::floating(ScalarType::f64, x)); }
HostValue array(const std::vector<double>& xs) {
  return HostValue::array(ScalarType::f64, {static_cast<std::int64_t>(xs.size())}, xs);
}

// All numbers of the results, one after the other.
std::vector<double> numbers(const std::vector<HostValue>& values) {
  std::vector<double> result;
  for (const HostValue& value : values)
    for (std::int64_t k = 0; k < value.element_count(); ++k) result.push_back(value.at(k).as_float());
  return result;
}

double dot(const std::vector<double>& x, const std::vector<double>& y) {
  double sum = 0;
  for (std::size_t k = 0; k < x.size(); ++k) sum += x[k] * y[k];
  return sum;
}

class Program {
 public:
  Program(const std::string& body, std::vector<std::int64_t> is) : is_(std::move(is)) {
    text = "def f [n] (is: [n]i64) (a: f64, xs: [n]f64, ys: [n]f64) : (f64, [n]f64) =\n" + body +
           "entry value [n] (is: [n]i64) a (xs: [n]f64) (ys: [n]f64) = f is (a, xs, ys)\n"
           "entry forward [n] (is: [n]i64) a (xs: [n]f64) (ys: [n]f64) da (dxs: [n]f64) (dys: [n]f64) =\n"
           "  jvp (f is) (a, xs, ys) (da, dxs, dys)\n"
           "entry reverse [n] (is: [n]i64) a (xs: [n]f64) (ys: [n]f64) dr (drs: [n]f64) =\n"
           "  vjp (f is) (a, xs, ys) (dr, drs)\n";
    frontend::test::Outcome outcome = frontend::test::compile_text(text);
    INFO(text);
    INFO(outcome.messages());
    REQUIRE(outcome.module.has_value());
    module_ = *std::move(outcome.module);
  }

  std::vector<double> run(const std::string& entry, const Point& at, const std::vector<HostValue>& more) const {
    std::vector<HostValue> arguments{HostValue::array(ScalarType::i64, {static_cast<std::int64_t>(is_.size())}, is_),
                                     scalar(at.a), array(at.xs), array(at.ys)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto results = interpret(module_, entry, arguments);
    INFO(text);
    if (!results) FAIL(results.error().message);
    return numbers(*results);
  }

  std::string text;

 private:
  std::vector<std::int64_t> is_;
  Module module_;
};

}  // namespace

TEST_CASE("derivatives of random programs are those of finite differences, forwards and in reverse") {
  constexpr int kSize = 5;
  int smooth = 0;
  constexpr int kPrograms = 120;
  for (std::uint64_t seed = 1; seed <= kPrograms; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 engine(seed * 7919);
    std::vector<std::int64_t> is;
    for (int k = 0; k < kSize; ++k) is.push_back(static_cast<std::int64_t>(engine() % (kSize + 2)) - 1);
    const Program program(RandomFunction(seed).body(2 + static_cast<int>(seed % 6)), is);
    CAPTURE(program.text);
    const Point at = random_point(engine, kSize), direction = random_point(engine, kSize);
    const std::vector<double> tangents =
        program.run("forward", at, {scalar(direction.a), array(direction.xs), array(direction.ys)});
    std::vector<double> weights;
    for (std::size_t k = 0; k < tangents.size(); ++k)
      weights.push_back(std::uniform_real_distribution<double>(-1, 1)(engine));
    const std::vector<double> cotangents =
        program.run("reverse", at, {scalar(weights[0]), array({weights.begin() + 1, weights.end()})});
    std::vector<double> all{direction.a};
    all.insert(all.end(), direction.xs.begin(), direction.xs.end());
    all.insert(all.end(), direction.ys.begin(), direction.ys.end());
    const double forwards = dot(weights, tangents);
    CHECK(dot(all, cotangents) == doctest::Approx(forwards).epsilon(1e-8).scale(1));
    // Differences of two step sizes agree where no kink is near.
    const auto difference = [&](double h) {
      const std::vector<double> above = program.run("value", at.moved(h, direction), {});
      const std::vector<double> below = program.run("value", at.moved(-h, direction), {});
      return (dot(weights, above) - dot(weights, below)) / (2 * h);
    };
    const double wide = difference(1e-4), narrow = difference(2e-5);
    if (std::abs(wide - narrow) > 1e-6 * (1 + std::abs(narrow))) continue;
    ++smooth;
    CHECK(forwards == doctest::Approx(narrow).epsilon(1e-5).scale(1));
  }
  CHECK(smooth > kPrograms * 3 / 4);
}

}  // namespace apl::derivative_tests
