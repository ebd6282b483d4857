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

}  // namespace apl::test::teams
