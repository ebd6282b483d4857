// What a kernel with a team of threads an index may be.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "ir/parse.h"
#include "ir/print.h"
#include "ir/team.h"
#include "ir/verify.h"
#include "ir/walk.h"

namespace apl::test::teams {

const std::string kSum = "{commutative \\{a : i32, b : i32} -> { let {ab : i32} = add(a, b) in {ab} }, {0i32}}";

std::string program(const std::string& kernel, const std::string& type = "[m]i32") {
  return "stage kernel\n\nfun main [m, n] (A : [m][n]i32, t : i64) : {" + type + "} = {\n  let {r : " + type +
         "} =\n    " + kernel + "\n  in {r}\n}\n";
}

// What the verifier says.
std::string fault(const std::string& kernel, const std::string& type = "[m]i32") {
  const Result<Module> module = parse_module(program(kernel, type), "team.aplir");
  REQUIRE(module);
  const std::vector<Diagnostic> faults = verify(*module);
  return faults.empty() ? "" : faults.front().message;
}

std::string rows_fault(const std::string& kernel) { return fault(kernel, "[m][n]i32"); }

std::string sum_of(const std::string& row) {
  return "let {s : i32} = redomap(k < n, {}, \\{} -> { " + row + " in {x} }, " + kSum + ")";
}

const std::string kHead = "segmap(thread) (i < m) team(t) { ";
const std::string kTail = " return {returns s} }";

TEST_CASE("teams: a reduction of scalars, with views and scalar code beside it, has one") {
  const std::string kernel = kHead + "let {row : [n]i32} = A[i] " + sum_of("let {x : i32} = row[k]") +
                             " let {d : i32} = add(s, s) return {returns d} }";
  CHECK(fault(kernel) == "");
  const Result<Module> module = parse_module(program(kernel), "team.aplir");
  REQUIRE(module);
  const std::string text = print(*module);
  CHECK(text.find("segmap(thread) (i < m) team(t) {") != std::string::npos);
  const Result<Module> again = parse_module(text, "team.aplir");
  REQUIRE(again);
  CHECK(print(*again) == text);
}

TEST_CASE("teams: what is reduced may fail, what stands beside it may not") {
  CHECK(fault(kHead + sum_of("let {x : i32} = checked A[i, 2*k]") + kTail) == "");
  const std::string behind = " let {j : i64} = convert(s, i64) let {d : i32} = A[i, j] return {returns d} }";
  CHECK(fault(kHead + sum_of("let {x : i32} = A[i, k]") + behind) == "");
  CHECK(fault(kHead + sum_of("let {x : i32} = checked A[i, 2*k]") + behind)
            .find("it cannot have a team: what stands beside its reduction may stray where that fails") !=
        std::string::npos);
  CHECK(fault(kHead + "let {y : i32} = checked A[i, 2*i] " + sum_of("let {x : i32} = add(y, 1i32)") + kTail)
            .find("it cannot have a team: what stands beside its reduction can fail") != std::string::npos);
}

TEST_CASE("teams: a scan may have one where the kernel returns its rows") {
  const std::string scan =
      "let {w : [n]i32} = scan(k < n, {}, \\{} -> { let {x : i32} = A[i, k] in {x} }, "
      "{scan \\{a : i32, b : i32} -> { let {ab : i32} = add(a, b) in {ab} }, {0i32}})";
  CHECK(rows_fault(kHead + scan + " return {returns w} }") == "");
  CHECK(rows_fault(kHead + scan + " let {v : [n]i32} = copy(w) return {returns v} }").find("a result is no scalar") !=
        std::string::npos);
}

TEST_CASE("teams: what cannot have one is refused with the reason") {
  const std::string element = sum_of("let {x : i32} = A[i, k]");
  const auto refuses = [](const std::string& kernel, const std::string& reason) {
    CAPTURE(kernel);
    const std::string said = fault(kernel);
    CAPTURE(said);
    CHECK(said.find("it cannot have a team: " + reason) != std::string::npos);
  };
  refuses(kHead + "let {s : i32} = A[i, 0]" + kTail, "not one reduction stands in its body");
  refuses(kHead + element + " let {s2 : i32} = redomap(k2 < n, {}, \\{} -> { let {x2 : i32} = A[i, k2] in {x2} }, " +
              kSum + ")" + kTail,
          "not one reduction stands in its body");
  refuses(kHead + "let {s : i32} = redomap(k < n, k2 < n, {}, \\{} -> { let {x : i32} = A[i, k] in {x} }, " + kSum +
              ")" + kTail,
          "its reduction has several widths");
  refuses(kHead + "let {s : i32, w : [n]i32} = redomap(k < n, {}, \\{} -> { let {x : i32} = A[i, k] in {x, x} }, " +
              kSum + ")" + kTail,
          "its reduction maps rows, too");
  refuses(kHead +
              "let {s : i32} = redomap(k < n, {}, \\{} -> { let {x : i32} = A[i, k] in {x} }, "
              "{\\{a : i32, b : i32} -> { let {q : i32} = quot(a, b) in {q} }, {1i32}})" +
              kTail,
          "an operator of its reduction can fail");
  refuses(kHead + "let {w : [4]i32} = replicate([4], 1i32) " + sum_of("let {x : i32} = w[0]") + kTail,
          "its body makes arrays");
}

TEST_CASE("teams: several blocks share an index, as the text says; a scan only of one index, whose rows are returned") {
  const std::string several = "segmap(thread) (i < m) team(t) blocks(t) { ";
  CHECK(fault(several + sum_of("let {x : i32} = A[i, k]") + kTail) == "");
  const Result<Module> module =
      parse_module(program(several + sum_of("let {x : i32} = A[i, k]") + kTail), "team.aplir");
  REQUIRE(module);
  const std::string text = print(*module);
  CHECK(text.find("segmap(thread) (i < m) team(t) blocks(t) {") != std::string::npos);
  const Result<Module> again = parse_module(text, "team.aplir");
  REQUIRE(again);
  CHECK(print(*again) == text);
  const auto scan = [](const std::string& type, const std::string& element) {
    return "let {w : [n]" + type + "} = scan(k < n, {}, \\{} -> { " + element + " }, {scan \\{a : " + type +
           ", b : " + type + "} -> { let {ab : " + type + "} = add(a, b) in {ab} }, {0" + type +
           "}}) return {returns w} }";
  };
  const std::string narrow = scan("i32", "let {x : i32} = A[i, k] in {x}");
  CHECK(fault("segmap(thread) (i < 1) team(t) blocks(t) { " + narrow, "[1][n]i32") == "");
  const auto refuses = [](const std::string& said, const std::string& reason) {
    CAPTURE(said);
    CHECK(said.find(reason) != std::string::npos);
  };
  refuses(rows_fault(several + narrow), "it cannot have a team: blocks share a scan of several indices");
  refuses(fault("segmap(thread) (i < m) team(t) rows blocks(t) { " + sum_of("let {x : i32} = A[i, k]") + kTail),
          "it cannot have a team: it holds rows, which several blocks cannot share");
  std::string params, others, sums, results, neutral, rows, types;
  for (int k = 0; k < 9; ++k) {
    const std::string n = std::to_string(k), comma = k == 0 ? "" : ", ";
    params += comma + "a" + n + " : i32";
    others += ", b" + n + " : i32";
    sums += "let {s" + n + " : i32} = add(a" + n + ", b" + n + ") ";
    results += comma + "s" + n, neutral += comma + "0i32", rows += comma + "w" + n + " : [n]i32", types += comma + "x";
  }
  refuses(fault("segmap(thread) (i < 1) team(t) blocks(t) { let {" + rows +
                    "} = scan(k < n, {}, \\{} -> { let {x : i32} = A[i, k] in {" + types + "} }, {scan \\{" + params +
                    others + "} -> { " + sums + "in {" + results + "} }, {" + neutral + "}}) return {returns w0} }",
                "[1][n]i32"),
          "it cannot have a team: blocks share a scan of too large values");
}

// Of a team that holds rows.
std::string held_fault(const std::string& body, const std::string& result = "v",
                       const std::string& type = "[m][n]i32") {
  return fault(
      "segmap(thread) (i < m) team(t) rows { let {row : [n]i32} = A[i] " + body + " return {returns " + result + "} }",
      type);
}

std::string map_of(const std::string& input, const std::string& made,
                   const std::string& code = "let {y : i32} = add(e, e)") {
  return " let {" + made + " : [n]i32} = map(k_" + made + " < n, {" + input + "}, \\{e : i32} -> { " + code +
         " in {y} })";
}

TEST_CASE("teams: one that holds rows has maps, reductions and scans over them, and says so in the text") {
  const std::string sum = sum_of("let {x : i32} = A[i, k]");
  CHECK(held_fault(sum + map_of("row", "w", "let {y : i32} = add(e, s)") + map_of("w", "v")) == "");
  CHECK(held_fault(sum + map_of("row", "v"), "s", "[m]i32") == "");
  const Result<Module> module =
      parse_module(program("segmap(thread) (i < m) team(t) rows { " + sum + " return {returns s} }"), "team.aplir");
  REQUIRE(module);
  const std::string text = print(*module);
  CHECK(text.find("segmap(thread) (i < m) team(t) rows {") != std::string::npos);
  const Result<Module> again = parse_module(text, "team.aplir");
  REQUIRE(again);
  CHECK(print(*again) == text);
}

TEST_CASE("teams: rows that a team cannot hold are refused with the reason") {
  const auto refuses = [](const std::string& said, const std::string& reason) {
    CAPTURE(said);
    CHECK(said.find("it cannot have a team: " + reason) != std::string::npos);
  };
  refuses(held_fault("let {v : i32} = A[i, 0]", "v", "[m]i32"), "no map, reduction or scan stands in its body");
  refuses(held_fault(map_of("row", "v", "let {y : i32} = checked A[i, 2*i]")), "a statement in its body can fail");
  refuses(held_fault(map_of("row", "w") + map_of("row", "v", "let {y : i32} = w[0]")),
          "a row that it makes is read by index");
  refuses(held_fault(map_of("row", "w") + " let {v : i32} = w[0]", "v", "[m]i32"),
          "a row that it makes is read by index");
  refuses(held_fault(map_of("row", "w"), "row"), "a result is a row that it does not make");
  refuses(held_fault(map_of("row", "w") + " let {v : [n]i32} = copy(row)"), "its body makes arrays");
  refuses(held_fault("let {q : [m]i32} = A[0 :+ m, 0]" + sum_of("let {x : i32} = A[i, k]") +
                         " let {v : i32} = redomap(k2 < m, {q}, \\{e : i32} -> { in {e} }, " + kSum + ")",
                     "v", "[m]i32"),
          "its maps and reductions have several widths");
  refuses(held_fault("let {own : i64} = size(min(n, i)) let {part : [own]i32} = row[0 :+ own] let {v : i32} = "
                     "redomap(k < own, {part}, \\{e : i32} -> { in {e} }, " +
                         kSum + ")",
                     "v", "[m]i32"),
          "the width of its rows is known only in the kernel");
  refuses(held_fault(
              map_of("row", "v", "let {y : i32} = redomap(k2 < n, {row}, \\{e2 : i32} -> { in {e2} }, " + kSum + ")")),
          "what is done for an element has loops or arrays");
  refuses(held_fault(
              "let {v : i32} = loop {a : i32 = 0i32} for k < n { let {b : i32} = row[k] in {b} }" + map_of("row", "w"),
              "v", "[m]i32"),
          "a loop stands in its body");
}

}  // namespace apl::test::teams
