// Programs that say the same contraction in different words: one einsum, and one kernel up to names.
#include <doctest/doctest.h>

#include <map>
#include <regex>
#include <string>
#include <vector>

#include "codegen/codegen.h"
#include "frontend/frontend.h"
#include "passes/pipeline.h"

namespace {

using namespace apl;

struct Compiled {
  std::vector<std::string> einsums;
  std::string kernels;
};

Compiled compiled(const std::string& source) {
  auto module = compile({"test.fut", source}, [](const Diagnostic& d) { FAIL(d.message); });
  REQUIRE(module);
  Compiled result;
  PipelineOptions options;
  options.remarks = [&](const Remark& remark) {
    if (remark.pass != "tile-contraction") return;
    CHECK_MESSAGE(remark.code == "tiled", remark.message);
    for (const auto& [key, value] : remark.facts)
      if (key == "einsum") result.einsums.push_back(value);
  };
  auto pipeline = parse_pipeline(standard_pipeline(Stage::memory), PassRegistry::builtin());
  REQUIRE(pipeline);
  REQUIRE(run_pipeline(*module, *pipeline, options));
  auto text = generate(*module, Target::cuda);
  REQUIRE(text);
  result.kernels = text->kernels;
  return result;
}

// Names by the order in which they first occur; without comments.
std::string canonical(const std::string& text) {
  static const std::regex comment("//[^\n]*"), name("[A-Za-z_]\\w*");
  const std::string code = std::regex_replace(text, comment, "");
  std::map<std::string, std::size_t> numbers;
  std::string result;
  std::size_t last = 0;
  for (std::sregex_iterator it(code.begin(), code.end(), name), end; it != end; ++it) {
    const auto at = static_cast<std::size_t>(it->position());
    result += code.substr(last, at - last);
    result += "v" + std::to_string(numbers.emplace(it->str(), numbers.size()).first->second);
    last = at + static_cast<std::size_t>(it->length());
  }
  return result + code.substr(last);
}

const std::string kHead = "entry main [m][n][q] (A: [m][q]f32) (B: [q][n]f32): [m][n]f32 =\n";

const std::string kNest = kHead + "  map (\\row -> map (\\col -> f32.sum (map2 (*) row col)) (transpose B)) A\n";

}  // namespace

TEST_CASE("contraction forms: a matrix product in other words is the same kernel") {
  const Compiled nest = compiled(kNest);
  REQUIRE(nest.einsums == std::vector<std::string>{"mq,qn->mn"});
  struct Form {
    const char* name;
    std::string source;
  };
  const Form forms[] = {
      {"maps over iota",
       kHead + "  map (\\i -> map (\\j -> f32.sum (map (\\k -> A[i,k] * B[k,j]) (iota q))) (iota n)) (iota m)\n"},
      {"tabulate", kHead + "  tabulate_2d m n (\\i j -> f32.sum (tabulate q (\\k -> A[i,k] * B[k,j])))\n"},
      {"a loop that accumulates",
       kHead + "  tabulate_2d m n (\\i j -> loop acc = 0 for k < q do acc + A[i,k] * B[k,j])\n"},
      {"reduce of a separate map", kHead + "  let P = map (\\row -> map (\\col -> map2 (*) row col) (transpose B)) A\n "
                                           " in map (map (reduce (+) 0)) P\n"},
      {"zipped operands",
       kHead + "  map (\\row -> map (\\col -> f32.sum (map (\\(x, y) -> x * y) (zip row col))) (transpose B)) A\n"},
      {"a reduction in a helper", "def dot [n] (xs: [n]f32) (ys: [n]f32): f32 = reduce (+) 0 (map2 (*) xs ys)\n" +
                                      kHead + "  map (\\row -> map (dot row) (transpose B)) A\n"},
      {"a reduction in a section",
       kHead + "  map (\\row -> map ((\\xs ys -> map2 (*) xs ys |> reduce (+) 0) row) (transpose B)) A\n"},
      {"a sum of sums over a cut row",
       kHead + "  map (\\row -> map (\\col -> f32.sum (map2 (*) row[0:q] col[:])) (transpose B)) A\n"},
      {"flattened and unflattened again",
       kHead + "  let B' = unflatten (flatten B)\n"
               "  in map (\\row -> map (\\col -> f32.sum (map2 (*) row col)) (transpose B')) A\n"},
      {"code before that is no code",
       kHead + "  tabulate_2d m n (\\i j -> let xs = A[i] let ys = B[:, j] in f32.sum (map2 (*) xs ys))\n"},
  };
  for (const Form& form : forms) {
    CAPTURE(form.name);
    const Compiled other = compiled(form.source);
    CHECK(other.einsums == nest.einsums);
    CHECK(canonical(other.kernels) == canonical(nest.kernels));
  }
}

TEST_CASE("contraction forms: several contracted dims, however they are reduced") {
  const std::string head = "entry main [m][n][p][q] (A: [m][p][q]f32) (B: [p][q][n]f32): [m][n]f32 =\n";
  const std::string forms[] = {
      head +
          "  tabulate_2d m n (\\i j -> f32.sum (tabulate p (\\k -> f32.sum (tabulate q (\\l -> A[i,k,l] * "
          "B[k,l,j])))))\n",
      head +
          "  map (\\a -> map (\\b -> f32.sum (map2 (*) (flatten a) (flatten b)))\n"
          "                  (B |> map transpose |> transpose)) A\n",
      head + "  tabulate_2d m n (\\i j -> f32.sum (flatten (tabulate_2d p q (\\k l -> A[i,k,l] * B[k,l,j]))))\n",
      head +
          "  tabulate_2d m n (\\i j -> loop s = 0 for k < p do s + f32.sum (tabulate q (\\l -> A[i,k,l] * "
          "B[k,l,j])))\n",
  };
  for (const std::string& form : forms) {
    CAPTURE(form);
    CHECK(compiled(form).einsums == std::vector<std::string>{"mpq,pqn->mn"});
  }
}

TEST_CASE("contraction forms: other layouts and views are operands as they lie") {
  const auto only = [](const std::string& body) {
    const Compiled made = compiled(kHead + body);
    return made.einsums.size() == 1 ? made.einsums.front() : std::to_string(made.einsums.size());
  };
  CHECK(only("  transpose (map (\\col -> map (\\row -> f32.sum (map2 (*) col row)) A) (transpose B))\n") ==
        "qn,mq->nm");
  CHECK(only("  map (\\row -> map (\\col -> f32.sum (map2 (*) row[::-1] col[::-1])) (transpose B)) A\n") ==
        "mq,qn->mn");
  CHECK(only("  map (\\row -> map (\\col -> f32.sum (map2 (*) (reverse row) col)) (transpose B)) A\n") == "mq,qn->mn");
  const Compiled size_one = compiled(
      "entry main [m][n][q] (A: [m][1][q]f32) (B: [q][n]f32): [m][1][n]f32 =\n"
      "  map (map (\\row -> map (\\col -> f32.sum (map2 (*) row col)) (transpose B))) A\n");
  CHECK(size_one.einsums == std::vector<std::string>{"mq,qn->min"});
  const Compiled equal = compiled(
      "entry main [n] (A: [n][n]f32) (B: [n][n]f32): [n][n]f32 =\n"
      "  map (\\row -> map (\\col -> f32.sum (map2 (*) row col)) (transpose B)) A\n");
  CHECK(equal.einsums == std::vector<std::string>{"nb,ba->na"});
}
