// Programs that say the same contraction in different words: one einsum, and one kernel up to names.
#include <doctest/doctest.h>

#include <map>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "codegen/codegen.h"
#include "frontend/frontend.h"
#include "ir/team.h"
#include "ir/walk.h"
#include "passes/pipeline.h"

namespace {

using namespace apl;

struct CompiledForm {
  std::vector<std::string> einsums;
  std::string kernels;
};

CompiledForm compiled_form(const std::string& source) {
  auto module = compile({"test.fut", source}, [](const Diagnostic& d) { FAIL(d.message); });
  REQUIRE(module);
  CompiledForm result;
  PipelineOptions options;
  options.remarks = [&](const Remark& remark) {
    if (remark.pass != "tile-contraction" || remark.code == "isolated") return;
    CHECK_MESSAGE(remark.code == "tiled", remark.message);
    for (const auto& [key, value] : remark.facts)
      if (key == "einsum") result.einsums.push_back(value);
  };
  auto pipeline = parse_pipeline(standard_pipeline(Stage::memory), PassRegistry::builtin());
  REQUIRE(pipeline);
  REQUIRE(run_pipeline(*module, *pipeline, options));
  auto text = generate(*module, cuda_target());
  REQUIRE(text);
  result.kernels = text->kernels;
  return result;
}

// Names by the order in which they first occur; without comments.
std::string canonical_kernel(const std::string& text) {
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

const std::string kProductHead = "entry main [m][n][q] (A: [m][q]f32) (B: [q][n]f32): [m][n]f32 =\n";

const std::string kProductNest =
    kProductHead + "  map (\\row -> map (\\col -> f32.sum (map2 (*) row col)) (transpose B)) A\n";

}  // namespace

TEST_CASE("contraction forms: a matrix product in other words is the same kernel") {
  const CompiledForm nest = compiled_form(kProductNest);
  REQUIRE(nest.einsums == std::vector<std::string>{"mq,qn->mn"});
  struct OtherWords {
    const char* name;
    std::string source;
  };
  const OtherWords forms[] = {
      {"maps over iota",
       kProductHead +
           "  map (\\i -> map (\\j -> f32.sum (map (\\k -> A[i,k] * B[k,j]) (iota q))) (iota n)) (iota m)\n"},
      {"tabulate", kProductHead + "  tabulate_2d m n (\\i j -> f32.sum (tabulate q (\\k -> A[i,k] * B[k,j])))\n"},
      {"a loop that accumulates",
       kProductHead + "  tabulate_2d m n (\\i j -> loop acc = 0 for k < q do acc + A[i,k] * B[k,j])\n"},
      {"reduce of a separate map", kProductHead +
                                       "  let P = map (\\row -> map (\\col -> map2 (*) row col) (transpose B)) A\n "
                                       " in map (map (reduce (+) 0)) P\n"},
      {"zipped operands",
       kProductHead +
           "  map (\\row -> map (\\col -> f32.sum (map (\\(x, y) -> x * y) (zip row col))) (transpose B)) A\n"},
      {"a reduction in a helper", "def dot [n] (xs: [n]f32) (ys: [n]f32): f32 = reduce (+) 0 (map2 (*) xs ys)\n" +
                                      kProductHead + "  map (\\row -> map (dot row) (transpose B)) A\n"},
      {"a reduction in a section",
       kProductHead + "  map (\\row -> map ((\\xs ys -> map2 (*) xs ys |> reduce (+) 0) row) (transpose B)) A\n"},
      {"a sum of sums over a cut row",
       kProductHead + "  map (\\row -> map (\\col -> f32.sum (map2 (*) row[0:q] col[:])) (transpose B)) A\n"},
      {"flattened and unflattened again",
       kProductHead + "  let B' = unflatten (flatten B)\n"
                      "  in map (\\row -> map (\\col -> f32.sum (map2 (*) row col)) (transpose B')) A\n"},
      {"code before that is no code",
       kProductHead + "  tabulate_2d m n (\\i j -> let xs = A[i] let ys = B[:, j] in f32.sum (map2 (*) xs ys))\n"},
  };
  for (const OtherWords& form : forms) {
    CAPTURE(form.name);
    const CompiledForm other = compiled_form(form.source);
    CHECK(other.einsums == nest.einsums);
    CHECK(canonical_kernel(other.kernels) == canonical_kernel(nest.kernels));
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
    CHECK(compiled_form(form).einsums == std::vector<std::string>{"mpq,pqn->mn"});
  }
}

TEST_CASE("contraction forms: what hides a product is the product all the same") {
  struct Hidden {
    const char* name;
    std::string source;
    std::vector<std::string> einsums;
  };
  const std::vector<std::string> product = {"mq,qn->mn"};
  const std::string element = "f32.sum (tabulate q (\\k -> A[i,k] * B[k,j]))";
  const std::string flat = "entry main (m: i64) (n: i64) (q: i64) (A: [m*q]f32) (B: [q*n]f32): [m][n]f32 =\n";
  const std::string bounded = "entry main [m][n][q] (A: [m][q]f32) (B: [q][n]f32) (l: i64): [m][n]f32 =\n";
  const Hidden forms[] = {
      {"a branch of some threads", kProductHead + "  tabulate_2d m n (\\i j -> if i < j then 0 else " + element + ")\n",
       product},
      {"both branches",
       "entry main [m][n][q] (A: [m][q]f32) (B: [q][n]f32) (D: [m][q]f32): [m][n]f32 =\n"
       "  tabulate_2d m n (\\i j -> if i < j then f32.sum (map2 (*) D[i] B[:, j]) else " +
           element + ")\n",
       product},
      {"a branch of all threads",
       bounded + "  tabulate_2d m n (\\i j -> if l < 5 then " + element + " else f32.i64 (i + j))\n", product},
      {"two sums in one thread",
       kProductHead + "  tabulate_2d m n (\\i j -> " + element +
           " * f32.maximum (tabulate q (\\k -> A[i,k] + B[k,j])))\n",
       product},
      {"two products in one thread",
       "entry main [m][n][q][p] (A: [m][q]f32) (B: [q][n]f32) (C: [m][p]f32) (D: [p][n]f32): [m][n]f32 =\n"
       "  tabulate_2d m n (\\i j -> " +
           element + " + f32.sum (tabulate p (\\k -> C[i,k] * D[k,j])))\n",
       {"mq,qn->mn", "mp,pn->mn"}},
      {"indices into flat arrays",
       flat + "  tabulate_2d m n (\\i j -> f32.sum (tabulate q (\\k -> A[i*q+k] * B[k*n+j])))\n", product},
      {"a flat index over the result",
       kProductHead + "  tabulate (m*n) (\\ij -> let i = ij / n let j = ij % n in " + element + ") |> unflatten\n",
       product},
      {"a flat index over the sum",
       "entry main [m][n][p][q] (A: [m][p][q]f32) (B: [p][q][n]f32): [m][n]f32 =\n"
       "  tabulate_2d m n (\\i j -> f32.sum (tabulate (p*q) (\\k -> A[i,k/q,k%q] * B[k/q,k%q,j])))\n",
       {"mpq,pqn->mn"}},
      {"a loop that runs as far as it is told",
       bounded + "  tabulate_2d m n (\\i j -> loop acc = 0 for k < l do acc + A[i,k] * B[k,j])\n",
       {"ml,ln->mn"}},
      {"a loop over 32-bit indices",
       kProductHead + "  tabulate_2d m n (\\i j -> loop acc = 0 for k < i32.i64 q do\n"
                      "    acc + A[i,i64.i32 k] * B[i64.i32 k,j])\n",
       {"mx,xn->mn"}},
      {"columns from a place that is checked",
       "entry main [m][n][p][q] (A: [m][p]f32) (B: [q][n]f32) (s: i64): [m][n]f32 =\n"
       "  tabulate_2d m n (\\i j -> f32.sum (tabulate q (\\k -> A[i,k+s] * B[k,j])))\n",
       product},
      {"an assert that all threads make", bounded + "  tabulate_2d m n (\\i j -> assert (l > 0) (" + element + "))\n",
       product},
      {"an assert of one operand",
       kProductHead +
           "  map (\\row -> map (\\col -> f32.sum (map2 (\\x y -> x * f32.sqrt (assert (y >= 0) y)) row col))\n"
           "    (transpose B)) A\n",
       product},
      {"a result that is checked",
       kProductHead + "  tabulate_2d m n (\\i j -> let r = " + element + " in assert (r >= 0) r)\n", product},
  };
  for (const Hidden& form : forms) {
    CAPTURE(form.name);
    CHECK(compiled_form(form.source).einsums == form.einsums);
  }
}

TEST_CASE("contraction forms: other layouts and views are operands as they lie") {
  const auto only = [](const std::string& body) {
    const CompiledForm made = compiled_form(kProductHead + body);
    return made.einsums.size() == 1 ? made.einsums.front() : std::to_string(made.einsums.size());
  };
  CHECK(only("  transpose (map (\\col -> map (\\row -> f32.sum (map2 (*) col row)) A) (transpose B))\n") ==
        "qn,mq->nm");
  CHECK(only("  map (\\row -> map (\\col -> f32.sum (map2 (*) row[::-1] col[::-1])) (transpose B)) A\n") ==
        "mq,qn->mn");
  CHECK(only("  map (\\row -> map (\\col -> f32.sum (map2 (*) (reverse row) col)) (transpose B)) A\n") == "mq,qn->mn");
  const CompiledForm size_one = compiled_form(
      "entry main [m][n][q] (A: [m][1][q]f32) (B: [q][n]f32): [m][1][n]f32 =\n"
      "  map (map (\\row -> map (\\col -> f32.sum (map2 (*) row col)) (transpose B))) A\n");
  CHECK(size_one.einsums == std::vector<std::string>{"mq,qn->min"});
  const CompiledForm equal = compiled_form(
      "entry main [n] (A: [n][n]f32) (B: [n][n]f32): [n][n]f32 =\n"
      "  map (\\row -> map (\\col -> f32.sum (map2 (*) row col)) (transpose B)) A\n");
  CHECK(equal.einsums == std::vector<std::string>{"nb,ba->na"});
}

TEST_CASE("contraction forms: a matrix times a vector is reduced in chunks, and neighbouring threads read neighbours") {
  auto module = compile({"test.fut",
                         "entry main [m][q] (A: [m][q]f32) (x: [q]f32): [m]f32 =\n"
                         "  map (\\row -> f32.sum (map2 (*) row x)) A\n"},
                        [](const Diagnostic& d) { FAIL(d.message); });
  REQUIRE(module);
  std::string reason, suggestion;
  PipelineOptions options;
  options.remarks = [&](const Remark& remark) {
    CHECK(remark.pass != "tile-contraction");
    if (remark.code != "not-tiled") return;
    reason = remark.facts.front().second;
    suggestion = remark.suggestion;
  };
  auto pipeline = parse_pipeline(standard_pipeline(Stage::kernel), PassRegistry::builtin());
  REQUIRE(pipeline);
  REQUIRE(run_pipeline(*module, *pipeline, options));
  CHECK(reason == "no-free-dim");
  CHECK(suggestion.find("several right-hand sides") != std::string::npos);
  // The first kernel's threads share a row, and the last index of what they read moves with that of the row by one.
  bool first = true;
  for_each_stm(*module->functions.front()->body, [&](const Stm& stm) {
    const SegOp* kernel = get_if<SegOp>(stm);
    if (kernel == nullptr || !std::exchange(first, false)) return;
    REQUIRE(kernel->team);
    const Screma& row = std::get<Screma>(team_reduction(*kernel)->op);
    int reads = 0;
    for_each_stm(*row.map.body, [&](const Stm& inner) {
      const Index* index = get_if<Index>(inner);
      if (index == nullptr) return;
      const auto along = index->dims.back().start.linear_in(row.indices.front());
      REQUIRE(along);
      CHECK(along->coefficient.is_one());
      ++reads;
    });
    // Those that are streamed do by themselves.
    CHECK(reads + static_cast<int>(row.inputs.size()) == 2);
  });
  CHECK_FALSE(first);
}
