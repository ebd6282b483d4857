// Attentions: written in different words they are streamed, and give what they gave, up to rounding; weights that
// cannot be rescaled are refused, each with its reason (docs/firing.md).
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "frontend/frontend.h"
#include "ir/interpret.h"
#include "passes/pipeline.h"
#include "tests/testing.h"

namespace {

using namespace apl;

struct Lowered {
  Module before, after;
  std::vector<std::string> streamed, reasons;  // entries; reasons for which one is not
};

Lowered lowered(const std::string& source, const std::map<std::string, std::int64_t>& parameters) {
  auto module = compile({"test.fut", source}, [](const Diagnostic& d) { FAIL(d.message); });
  REQUIRE(module);
  Lowered result{*module, *module, {}, {}};
  PipelineOptions options;
  options.parameters = parameters;
  options.verify_each = true;
  options.remarks = [&](const Remark& remark) {
    if (remark.code == "streamed") result.streamed.push_back(remark.function);
    if (remark.code != "not-streamed") return;
    for (const auto& [key, value] : remark.facts)
      if (key == "reason") result.reasons.push_back(value);
  };
  auto pipeline = parse_pipeline("inline,simplify,cse,fuse,simplify,cse,elide-copies,extract-kernels,simplify",
                                 PassRegistry::builtin());
  REQUIRE(pipeline);
  REQUIRE(run_pipeline(result.after, *pipeline, options));
  return result;
}

const std::string kPrelude = R"(
def dot a b = f32.sum (map2 (*) a b)
def softmax [n] (xs: [n]f32) : [n]f32 =
  let m = f32.maximum xs
  let es = map (\x -> f32.exp (x - m)) xs
  let s = f32.sum es
  in map (/ s) es
def matmul [n][m][p] (A: [n][m]f32) (B: [m][p]f32) : [n][p]f32 = map (\a -> map (\b -> dot a b) (transpose B)) A
)";
const std::string kHead = "entry main [n][m][d][e] (Q: [n][d]f32) (K: [m][d]f32) (V: [m][e]f32) : [n][e]f32 = ";

// The body of `main`, in the manner of ...
const std::vector<std::string> kForms = {
    // ... products of matrices,
    "matmul (map softmax (matmul Q (transpose K))) V",
    // ... tables by indices, scaled, causal,
    R"(let s = tabulate_2d n m (\i j -> if j <= i then f32.sum (tabulate d (\l -> Q[i, l] * K[j, l])) * 0.5 else -1e30)
       let p = map softmax s
       in tabulate_2d n e (\i c -> f32.sum (tabulate m (\j -> p[i, j] * V[j, c]))))",
    // ... one query at a time, divided behind,
    R"(map (\q -> let s = map (dot q) K
                  let x = f32.maximum s
                  let w = map (\s -> f32.exp (s - x)) s
                  in map (\v -> dot w v / f32.sum w) (transpose V)) Q)",
    // ... rows that are weighted and summed,
    R"(map (\q -> let p = softmax (map (dot q) K)
                  in reduce (map2 (+)) (replicate e 0) (map2 (\w v -> map (* w) v) p V)) Q)",
    // ... weights that are not made small first,
    R"(let w = map (\q -> map (\k -> f32.exp (dot q k / 8)) K) Q
       in map2 (\w t -> map (\v -> dot w v * (1 / t)) (transpose V)) w (map f32.sum w))",
    // ... and the logarithm of the sums beside: of what is behind the sums.
    R"(map (\q -> let s = map (dot q) K
                  let x = f32.maximum s
                  let w = map (\s -> f32.exp (s - x)) s
                  let t = f32.sum w
                  in map (\v -> dot w v / t + (x + f32.log t)) (transpose V)) Q)"};

double largest(const HostValue& value) {
  double most = 1e-30;
  for (std::int64_t k = 0; k < value.element_count(); ++k) most = std::max(most, std::abs(value.at(k).as_float()));
  return most;
}

}  // namespace

TEST_CASE("attentions are streamed however they are written, and give the same up to rounding") {
  const std::map<std::string, std::int64_t> parameters = {
      {"main.attention.from", 1},      {"main.attention.short.T_d", 3}, {"main.attention.short.T_q", 2},
      {"main.attention.short.R_q", 2}, {"main.attention.short.T_k", 2}, {"main.attention.short.R_k", 2},
      {"main.attention.short.R_c", 1}, {"main.attention.long.T_q", 1},  {"main.attention.long.R_q", 2},
      {"main.attention.long.T_k", 3},  {"main.attention.long.R_k", 1},  {"main.attention.long.R_c", 2}};
  for (const std::string& form : kForms) {
    CAPTURE(form);
    const Lowered program = lowered(kPrelude + kHead + form, parameters);
    CHECK(program.streamed == std::vector<std::string>{"main"});
    CHECK(program.reasons.empty());
    std::uint64_t seed = 1;
    for (const auto& [n, m, d, e] : {std::array{1, 1, 1, 1}, std::array{5, 7, 3, 4}, std::array{3, 9, 5, 2},
                                     std::array{4, 4, 130, 1}, std::array{0, 3, 2, 2}, std::array{3, 0, 2, 2}}) {
      const testing::Sizes sizes = {{"n", n}, {"m", m}, {"d", d}, {"e", e}};
      const auto arguments = testing::random_arguments(*program.before.find_entry("main"), sizes, seed++);
      REQUIRE(arguments);
      InterpretOptions options;
      options.parameters = parameters;
      const auto expected = interpret(program.before, "main", *arguments, options);
      REQUIRE(expected);
      for (std::uint64_t order = 1; order < 4; ++order) {
        options.seed = order;
        const auto actual = interpret(program.after, "main", *arguments, options);
        REQUIRE(actual);
        const HostValue &x = expected->front(), &y = actual->front();
        const double bound = 2e-6 * largest(x);
        for (std::int64_t k = 0; k < x.element_count(); ++k) {
          const double a = x.at(k).as_float(), b = y.at(k).as_float();
          CHECK((std::isnan(a) ? std::isnan(b) : std::abs(a - b) <= bound));
        }
      }
    }
  }
}

TEST_CASE("weights that cannot be rescaled are refused, with the reason") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"let x = f32.maximum s in map (\\s -> 2 ** (s - x)) s", "no-exponential"},
      {"let x = f32.maximum s in map (\\s -> f32.exp (s / x)) s", "no-difference"},
      {"let x = f32.maximum s in map (\\s -> f32.exp (x - s)) s", "no-difference"},
      {"let x = f32.sum s in map (\\s -> f32.exp (s - x)) s", "no-maximum"},
      {"let x = f32.minimum s in map (\\s -> f32.exp (s - x)) s", "no-maximum"},
      {"let x = reduce f32.max 0 s in map (\\s -> f32.exp (s - x)) s", "no-maximum"},
      {"let x = f32.maximum s in map (\\s -> f32.exp (2 * s - x)) s", "other-scores"},
      {"let x = f32.maximum (map f32.abs s) in map (\\s -> f32.exp (s - x)) s", "other-scores"},
      {"let t = f32.sum s let s = map (* t) s let x = f32.maximum s in map (\\s -> f32.exp (s - x)) s",
       "several-reductions"},
      {"let x = f32.maximum s let w = map (\\s -> f32.exp (s - x)) s in map2 (*) w (map f32.abs s)", "weights"},
      {"let x = f32.maximum s let w = map (\\s -> f32.exp (s - x)) s let t = f32.product w in map (/ t) w",
       "other-reduction"}};
  for (const auto& [weights, reason] : cases) {
    CAPTURE(weights);
    const std::string source = kPrelude + "def weights [m] (s: [m]f32) : [m]f32 = " + weights + "\n" + kHead +
                               "map (\\q -> let w = weights (map (dot q) K) in map (\\v -> dot w v) (transpose V)) Q";
    const Lowered program = lowered(source, {});
    CHECK(program.streamed.empty());
    CHECK(program.reasons == std::vector<std::string>{reason});
  }
}

TEST_CASE("an attention is not streamed where the program says so, and two products alone are none") {
  CHECK(lowered(kPrelude + kHead +
                    "#[no_rescaling] map (\\q -> let p = softmax (map (dot q) K) in map (\\v -> dot p v) "
                    "(transpose V)) Q",
                {})
            .streamed.empty());
  const Lowered products = lowered(kPrelude + kHead + "matmul (matmul Q (transpose K)) V", {});
  CHECK(products.streamed.empty());
  CHECK(products.reasons.empty());
}
