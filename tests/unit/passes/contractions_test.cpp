// The matcher of contractions on kernels as they are written: what it calls dims and operands, and what it refuses.
#include "passes/analysis/contractions.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "ir/walk.h"
#include "passes/analysis/contraction_facts.h"

namespace {

using namespace apl;

// A function with the matches of its kernels. `values` is the table that the matches' lambdas are in.
struct Matched {
  Module module;
  ValueTable values;
  std::vector<Match> matches;

  const Function& function() const { return *module.functions.front(); }
  Value named(std::string_view name) const {
    const Function& f = function();
    for (const std::vector<Value>* list : {&f.params, &f.sizes})
      for (Value v : *list)
        if (f.values.name(v) == name) return v;
    FAIL("no parameter or size is called " << name);
    return {};
  }
  Poly size(std::string_view name) const { return Poly(named(name)); }
};

Matched match(const std::string& text) {
  auto module = parse_module(text, "test.aplir");
  REQUIRE_MESSAGE(module, module.error().message);
  REQUIRE(verify(*module).empty());
  Matched matched{*module, module->functions.front()->values, {}};
  matched.matches = find_contractions(matched.function(), matched.values);
  return matched;
}

const Contraction& only(const Matched& matched) {
  REQUIRE(matched.matches.size() == 1);
  if (const Refusal* refusal = std::get_if<Refusal>(&matched.matches[0]))
    FAIL(refusal->code << ": " << refusal->message);
  return std::get<Contraction>(matched.matches[0]);
}

// "a:free q:contracted"
std::string dims_of(const Contraction& contraction) {
  std::string text;
  for (const ContractionDim& dim : contraction.dims)
    text += fmt::format("{}{}:{}", text.empty() ? "" : " ", dim.name, to_text(dim.dim_class));
  return text;
}

constexpr std::string_view kMultiply = R"(\{x : f32, y : f32} -> { let {xy : f32} = mul(x, y) in {xy} })";
constexpr std::string_view kSum =
    R"({commutative \{u : f32, v : f32} -> { let {uv : f32} = add(u, v) in {uv} }, {0.0f32}})";

// C[m][n]: the kernel reads X and Y by `reads`, which bind `row` and `col`. Places in the source are line 1 for the row
// of X, 2 for the column of Y, 3 for the redomap, and 4 for the kernel.
std::string product(std::string_view x, std::string_view y, std::string_view reads, std::string_view map = kMultiply,
                    std::string_view reduce = kSum) {
  return fmt::format(R"(stage kernel

entry main (X : "{0}f32", Y : "{1}f32") : {{"[m][n]f32"}}
fun main [m, n, q] (X : {0}f32, Y : {1}f32) : {{[m][n]f32}} = {{
  let {{C : [m][n]f32}} =
    segmap(thread) (i < m, j < n) {{
{2}
      let {{c : f32}} =
        redomap(k < q, {{row, col}},
          {3},
          {4}) @3:1-3:9
      return {{returns c}}
    }} @4:1-4:9
  in {{C}}
}}
)",
                     x, y, reads, map, reduce);
}

constexpr std::string_view kRowOfX = "      let {row : [q]f32} = X[i] @1:1-1:9\n";
constexpr std::string_view kRowOfTransposedX = "      let {row : [q]f32} = X[0 :+ q, i] @1:1-1:9\n";
constexpr std::string_view kColumnOfY = "      let {col : [q]f32} = Y[0 :+ q, j] @2:1-2:9";
constexpr std::string_view kColumnOfTransposedY = "      let {col : [q]f32} = Y[j] @2:1-2:9";

std::string matrix_product() { return product("[m][q]", "[q][n]", std::string(kRowOfX) + std::string(kColumnOfY)); }

// `text` with the only occurrence of `part` changed.
std::string changed(std::string text, std::string_view part, std::string_view other) {
  const std::size_t at = text.find(part);
  REQUIRE(at != std::string::npos);
  REQUIRE(text.find(part, at + 1) == std::string::npos);
  return text.replace(at, part.size(), other);
}

}  // namespace

TEST_CASE("contractions: the matrix product in all four layouts") {
  struct Layout {
    std::string x, y;
    std::string_view row, column;
    std::string einsum;
  };
  const Layout layouts[] = {{"[m][q]", "[q][n]", kRowOfX, kColumnOfY, "mq,qn->mn"},
                            {"[q][m]", "[q][n]", kRowOfTransposedX, kColumnOfY, "qm,qn->mn"},
                            {"[m][q]", "[n][q]", kRowOfX, kColumnOfTransposedY, "mq,nq->mn"},
                            {"[q][m]", "[n][q]", kRowOfTransposedX, kColumnOfTransposedY, "qm,nq->mn"}};
  for (const Layout& layout : layouts) {
    CAPTURE(layout.einsum);
    const Matched matched = match(product(layout.x, layout.y, std::string(layout.row) + std::string(layout.column)));
    const Contraction& c = only(matched);
    CHECK(c.einsum(matched.function()) == layout.einsum);
    CHECK(dims_of(c) == "m:free n:free q:contracted");
    CHECK(c.space_rank == 2);
    CHECK(c.results == std::vector<std::size_t>{0});
    CHECK(c.reduce.commutative);
    CHECK(c.location.line == 3);
    REQUIRE(c.dims.size() == 3);
    for (const ContractionDim& dim : c.dims) CHECK(dim.size == matched.size(dim.name));
    REQUIRE(c.operands.size() == 2);
    REQUIRE(c.map.params.size() == 2);
    const ContractionOperand &x = c.operands[0], &y = c.operands[1];
    CHECK(x.base == matched.named("X"));
    CHECK(y.base == matched.named("Y"));
    for (std::size_t k = 0; k < 2; ++k) {
      CHECK(c.operands[k].exact);
      CHECK(c.operands[k].offset.is_zero());
      CHECK(c.operands[k].element == c.map.params[k]);
    }
    const Poly m = matched.size("m"), n = matched.size("n"), q = matched.size("q");
    const bool x_transposed = layout.x == "[q][m]", y_transposed = layout.y == "[n][q]";
    CHECK(x.strides == (x_transposed ? std::vector<Poly>{1, 0, m} : std::vector<Poly>{q, 0, 1}));
    CHECK(y.strides == (y_transposed ? std::vector<Poly>{0, q, 1} : std::vector<Poly>{0, 1, n}));
    CHECK(x.axes == (x_transposed ? std::vector<int>{2, 0} : std::vector<int>{0, 2}));
    CHECK(y.axes == (y_transposed ? std::vector<int>{1, 2} : std::vector<int>{2, 1}));
    CHECK(x.varies(0));
    CHECK_FALSE(x.varies(1));
  }
}

TEST_CASE("contractions: a tensor contraction of six free dims") {
  const Matched matched = match(R"(stage kernel

entry main (X : "[d][q][a][b]f32", Y : "[c][q][e][f]f32") : {"[a][b][c][d][e][f]f32"}
fun main [a, b, c, d, e, f, q] (X : [d][q][a][b]f32, Y : [c][q][e][f]f32) : {[a][b][c][d][e][f]f32} = {
  let {Z : [a][b][c][d][e][f]f32} =
    segmap(thread) (i_a < a, i_b < b, i_c < c, i_d < d, i_e < e, i_f < f) {
      let {xs : [q]f32} = X[i_d, 0 :+ q, i_a, i_b]
      let {ys : [q]f32} = Y[i_c, 0 :+ q, i_e, i_f]
      let {z : f32} =
        redomap(k < q, {xs, ys},
          \{x : f32, y : f32} -> { let {xy : f32} = mul(x, y) in {xy} },
          {commutative \{u : f32, v : f32} -> { let {uv : f32} = add(u, v) in {uv} }, {0.0f32}})
      return {returns z}
    }
  in {Z}
}
)");
  const Contraction& c = only(matched);
  CHECK(c.einsum(matched.function()) == "dqab,cqef->abcdef");
  CHECK(dims_of(c) == "a:free b:free c:free d:free e:free f:free q:contracted");
  CHECK(c.space_rank == 6);
  const Poly a = matched.size("a"), b = matched.size("b"), e = matched.size("e"), f = matched.size("f"),
             q = matched.size("q");
  CHECK(c.operands[0].strides == std::vector<Poly>{b, 1, 0, a * b * q, 0, 0, a * b});
  CHECK(c.operands[1].strides == std::vector<Poly>{0, 0, e * f * q, 0, f, 1, e * f});
  CHECK(c.operands[0].axes == std::vector<int>{3, 6, 0, 1});
  CHECK(c.operands[1].axes == std::vector<int>{2, 6, 4, 5});
}

TEST_CASE("contractions: dims are batch, free, invariant or contracted, and keep their order") {
  const Matched matched = match(R"(stage kernel

entry main (X : "[b][m][q][p]f32", Y : "[b][p][q][n]f32", l : "i64") : {"[b][m][l][n]f32"}
fun main [b, m, n, p, q] (X : [b][m][q][p]f32, Y : [b][p][q][n]f32, l : i64) : {[b][m][l][n]f32} = {
  let {C : [b][m][l][n]f32} =
    segmap(thread) (g < b, i < m, h < l, j < n) {
      let {c : f32} =
        redomap(k < q, r < p, {},
          \{} -> {
            let {x : f32} = X[g, i, k, r]
            let {y : f32} = Y[g, r, k, j]
            let {xy : f32} = mul(x, y)
            in {xy}
          },
          {commutative \{u : f32, v : f32} -> { let {uv : f32} = add(u, v) in {uv} }, {0.0f32}})
      return {returns c}
    }
  in {C}
}
)");
  const Contraction& c = only(matched);
  CHECK(dims_of(c) == "b:batch m:free l:invariant n:free q:contracted p:contracted");
  CHECK(c.einsum(matched.function()) == "bmqp,bpqn->bmln");
  CHECK(c.space_rank == 4);
  // Reads by index became parameters; what is left of the map function is the product.
  CHECK(c.map.params.size() == 2);
  CHECK(c.map.body->stms.size() == 1);
}

TEST_CASE("contractions: equal sizes are told apart by the index") {
  const Matched matched =
      match(changed(changed(changed(changed(changed(product("[m][m]", "[m][m]",
                                                            "      let {row : [m]f32} = X[i]\n"
                                                            "      let {col : [m]f32} = Y[0 :+ m, j]"),
                                                    "k < q", "k < m"),
                                            "j < n", "j < m"),
                                    "[m, n, q]", "[m]"),
                            "{[m][n]f32} = {", "{[m][m]f32} = {"),
                    "let {C : [m][n]f32}", "let {C : [m][m]f32}"));
  const Contraction& c = only(matched);
  CHECK(dims_of(c) == "m:free m_2:free m_3:contracted");
  CHECK(c.einsum(matched.function()) == "mb,ba->ma");
  const Poly m = matched.size("m");
  CHECK(c.operands[0].strides == std::vector<Poly>{m, 0, 1});
  CHECK(c.operands[1].strides == std::vector<Poly>{0, 1, m});
}

TEST_CASE("contractions: offsets and steps of views are in the access") {
  const Matched matched = match(product("[m][q]", "[q][n]",
                                        "      let {row : [q]f32} = X[i, q - 1 :+ q by -1]\n"
                                        "      let {col : [q]f32} = Y[0 :+ q, n - 1 - j]"));
  const Contraction& c = only(matched);
  const Poly n = matched.size("n"), q = matched.size("q");
  CHECK(c.operands[0].offset == q - 1);
  CHECK(c.operands[0].strides == std::vector<Poly>{q, 0, -1});
  CHECK(c.operands[1].offset == n - 1);
  CHECK(c.operands[1].strides == std::vector<Poly>{0, -1, n});
  // The order in memory can be told, but backwards is not how the array lies.
  CHECK_FALSE(c.operands[0].exact);
  CHECK_FALSE(c.operands[1].exact);
}

TEST_CASE("contractions: any map and operator, with what commutes by itself") {
  const std::string reads = std::string(kRowOfX) + std::string(kColumnOfY);
  const Matched min_plus =
      match(product("[m][q]", "[q][n]", reads, R"(\{x : f32, y : f32} -> { let {s : f32} = add(x, y) in {s} })",
                    R"({\{u : f32, v : f32} -> { let {w : f32} = min(u, v) in {w} }, {f32.inf}})"));
  const Contraction& c = only(min_plus);
  CHECK(c.einsum(min_plus.function()) == "mq,qn->mn");
  CHECK(c.reduce.commutative);  // min commutes, though the program does not say so
  REQUIRE(c.map.body->stms.size() == 1);
  CHECK(get_if<Binary>(c.map.body->stms[0])->op == BinaryOp::add);
  REQUIRE(c.reduce.neutral.size() == 1);

  // u - (0 - v) is a sum, but nobody says that it commutes.
  const Matched ordered = match(product("[m][q]", "[q][n]", reads, kMultiply, R"({\{u : f32, v : f32} -> {
            let {w : f32} = sub(0.0f32, v)
            let {uv : f32} = sub(u, w)
            in {uv}
          }, {0.0f32}})"));
  CHECK_FALSE(only(ordered).reduce.commutative);
}

TEST_CASE("contractions: an operator of two results, returned in another order") {
  const Matched matched = match(R"(stage kernel

entry main (A : "[m][q]i32", B : "[n][q]i32") : {"[m][n]i32", "[m][n]i32"}
fun main [m, n, q] (A : [m][q]i32, B : [n][q]i32) : {[m][n]i32, [m][n]i32} = {
  let {Most : [m][n]i32, Sum : [m][n]i32} =
    segmap(thread) (i < m, j < n) {
      let {row : [q]i32} = A[i]
      let {col : [q]i32} = B[j]
      let {sum : i32, most : i32} =
        redomap(k < q, {row, col},
          \{x : i32, y : i32} -> {
            let {p : i32} = mul(x, y)
            let {d : i32} = sub(x, y)
            in {p, d}
          },
          {commutative \{s : i32, u : i32, t : i32, v : i32} -> {
             let {st : i32} = add(s, t)
             let {uv : i32} = max(u, v)
             in {st, uv}
           }, {0i32, -2147483648i32}})
      return {returns most, returns sum}
    }
  in {Most, Sum}
}
)");
  const Contraction& c = only(matched);
  CHECK(c.einsum(matched.function()) == "mq,nq->mn");
  CHECK(c.results == std::vector<std::size_t>{1, 0});
  CHECK(c.reduce.neutral.size() == 2);
  CHECK(c.map.body->results.size() == 2);
}

TEST_CASE("contractions: the match leaves the function as it was, and its lambda has values of its own") {
  const std::string text = matrix_product();
  const Matched matched = match(text);
  const Contraction& c = only(matched);
  CHECK(print(matched.module) == print(*parse_module(text, "test.aplir")));
  CHECK(matched.values.size() > matched.function().values.size());
  for (Value param : c.map.params) CHECK(param.id >= matched.function().values.size());
}

TEST_CASE("contractions: what has no redomap is no candidate") {
  CHECK(match(R"(stage kernel

entry main (A : "[n]f32") : {"[n]f32"}
fun main [n] (A : [n]f32) : {[n]f32} = {
  let {B : [n]f32} =
    segmap(thread) (i < n) {
      let {x : f32} = A[i]
      return {returns x}
    }
  in {B}
}
)")
            .matches.empty());
}

TEST_CASE("contractions: code before the reduction is part of the map function") {
  const Matched matched = match(changed(changed(matrix_product(), "      let {c : f32} =\n",
                                                "      let {w : f32} = Y[0, j]\n      let {ww : f32} = mul(w, w)\n"
                                                "      let {c : f32} =\n"),
                                        "mul(x, y)", "mul(x, ww)"));
  const Contraction& c = only(matched);
  // The column is read and not used.
  CHECK(c.einsum(matched.function()) == "mq,n->mn");
  CHECK(c.map.body->stms.size() == 2);
}

TEST_CASE("contractions: code after the reduction is a function of the reduced values and the indices") {
  const Matched matched =
      match(changed(matrix_product(), "      return {returns c}",
                    "      let {w : f32} = X[i, 0]\n      let {d : f32} = mul(c, w)\n      return {returns d}"));
  const Contraction& c = only(matched);
  CHECK(c.einsum(matched.function()) == "mq,qn->mn");
  CHECK(c.results.empty());
  REQUIRE(c.after);
  CHECK(c.after->params.size() == 1);
  CHECK(c.after->body->stms.size() == 2);
}

TEST_CASE("contractions: an index of a tiled dim is an operand, one of a dim of the grid is not") {
  const Matched matched =
      match(changed(matrix_product(), "let {xy : f32} = mul(x, y)",
                    "let {t : i64} = size(k + j) let {w : f32} = convert(t, f32) let {xw : f32} = mul(x, w) "
                    "let {xy : f32} = mul(xw, y)"));
  const Contraction& c = only(matched);
  CHECK(c.einsum(matched.function()) == "mq,qn->mn");
  REQUIRE(c.operands.size() == 4);
  CHECK(c.operands[2].index);
  CHECK(c.operands[2].axes == std::vector<int>{1});
  CHECK(c.operands[3].index);
  CHECK(c.operands[3].axes == std::vector<int>{2});
}

TEST_CASE("contractions: what a branch of the map function reads is an operand if it is in bounds anyway") {
  const Matched matched = match(changed(
      matrix_product(), "let {xy : f32} = mul(x, y)",
      "let {big : bool} = lt(x, 0.0f32) let {xy : f32} = if big { let {z : f32} = Y[k, j] in {z} } else { in {x} }"));
  const Contraction& c = only(matched);
  CHECK(c.einsum(matched.function()) == "mq,qn->mn");
  CHECK(c.operands.size() == 2);
}

TEST_CASE("contractions: neighbours that are one in every operand and in the result are merged") {
  const std::string text = R"(stage kernel

entry main (X : "[a][b][p][q]f32", Y : "[p][q][d][c]f32") : {"[a][b][c][d]f32"}
fun main [a, b, c, d, p, q] (X : [a][b][p][q]f32, Y : [p][q][d][c]f32) : {[a][b][c][d]f32} = {
  let {C : [a][b][c][d]f32} =
    segmap(thread) (i < a, j < b, g < c, h < d) {
      let {c_1 : f32} =
        redomap(k < p, l < q, {},
          \{} -> {
            let {x : f32} = X[i, j, k, l]
            let {y : f32} = Y[k, l, h, g]
            let {xy : f32} = mul(x, y)
            in {xy}
          },
          {commutative \{u : f32, v : f32} -> { let {uv : f32} = add(u, v) in {uv} }, {0.0f32}})
      return {returns c_1}
    }
  in {C}
}
)";
  // c and d are neighbours in Y and in the result, in another order.
  using Groups = std::vector<std::vector<std::size_t>>;
  const Matched matched = match(text);
  CHECK(merged_dims(only(matched)) == Groups{{0, 1}, {2}, {3}, {4, 5}});
}

TEST_CASE("contractions: two operators side by side are one on pairs") {
  const Matched matched = match(changed(
      changed(changed(matrix_product(), "let {c : f32}", "let {c : f32, d : f32}"), "in {xy} },", "in {xy, x} },"),
      "{0.0f32}})", "{0.0f32}}, {\\{u : f32, v : f32} -> { let {uv : f32} = max(u, v) in {uv} }, {0.0f32}})"));
  const Contraction& c = only(matched);
  CHECK(c.reduce.neutral.size() == 2);
  CHECK(c.reduce.op.params.size() == 4);
  CHECK(c.reduce.commutative);
  CHECK(c.results == std::vector<std::size_t>{0});
}

TEST_CASE("contractions: what is refused, for which reason and where") {
  const std::string redomap = "      let {c : f32} =\n        redomap(k < q, {row, col},";
  struct Refused {
    std::string code, text;
    std::uint32_t line;
    std::string names;  // the message does
  };
  const std::string mm = matrix_product();
  const Refused all[] = {
      {"code-after",
       changed(mm, "      return {returns c}",
               "      let {d : i32} = convert(c, i32)\n      let {e : i32} = div(7i32, d) @5:1-5:9\n"
               "      let {f : f32} = convert(e, f32)\n      return {returns f}"),
       5, "can fail at `e`"},
      {"code-before", changed(mm, redomap, "      let {zeros : [2]f32} = [0.0f32, 0.0f32] of f32 @5:1-5:9\n" + redomap),
       5, "`zeros`"},
      {"checked-read", changed(mm, "= X[i]", "= checked X[i + 1]"), 1, "`row`"},
      {"map-reads-array",
       changed(mm, "let {xy : f32} = mul(x, y)",
               "let {big : bool} = lt(x, y) let {xy : f32} = if big { let {z : f32} = X[i, k + 1] in {z} } else { in "
               "{x} }"),
       3, "`X`"},
      {"no-free-dim",
       product("[m][n][q]", "[m][n][q]", "      let {row : [q]f32} = X[i, j]\n      let {col : [q]f32} = Y[i, j]"), 3,
       "(`X`, `Y`)"},
      {"operand-variant-to-all",
       product("[m][q]", "[m][n][q]", "      let {row : [q]f32} = X[i]\n      let {col : [q]f32} = Y[i, j]"), 3, "`Y`"},
      {"several-redomaps",
       changed(mm, redomap,
               "      let {d : f32} =\n        redomap(l < q, {row, col},\n          " + std::string(kMultiply) +
                   ",\n          " + std::string(kSum) + ")\n" + redomap),
       4, "several"},
  };
  for (const Refused& refused : all) {
    CAPTURE(refused.code);
    const Matched matched = match(refused.text);
    REQUIRE(matched.matches.size() == 1);
    const Refusal* refusal = std::get_if<Refusal>(&matched.matches[0]);
    REQUIRE(refusal);
    CHECK(refusal->code == refused.code);
    CHECK(refusal->location.line == refused.line);
    CHECK_MESSAGE(refusal->message.find(refused.names) != std::string::npos, refusal->message);
  }
}

TEST_CASE("contractions: each firing condition by itself, on a match that is spoilt by hand") {
  const Matched matched = match(matrix_product());
  const Contraction good = only(matched);
  CHECK_FALSE(refuse_without_free_dims(good, matched.values));
  CHECK_FALSE(refuse_operand_without_reuse(good, matched.values));
  CHECK_FALSE(refuse_uncovered_dim(good));
  CHECK_FALSE(refuse_failing_map(good, matched.values));

  Contraction batched = good;
  for (std::size_t d = 0; d < 2; ++d) batched.dims[d].dim_class = DimClass::batch;
  REQUIRE(refuse_without_free_dims(batched, matched.values));
  CHECK(refuse_without_free_dims(batched, matched.values)->code == "no-free-dim");

  Contraction unshared = good;
  unshared.operands[1].strides[0] = 1;
  REQUIRE(refuse_operand_without_reuse(unshared, matched.values));
  CHECK(refuse_operand_without_reuse(unshared, matched.values)->code == "operand-variant-to-all");

  Contraction uncovered = good;
  for (ContractionOperand& operand : uncovered.operands) operand.strides[2] = 0;
  REQUIRE(refuse_uncovered_dim(uncovered));
  CHECK(refuse_uncovered_dim(uncovered)->code == "reduction-dim-unused");
  CHECK(refuse_uncovered_dim(uncovered)->location == good.location);
}
