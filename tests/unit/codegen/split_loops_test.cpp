// Loops of generated C that are split at a condition on their variable, and loops over rows that become one.
#include "codegen/kernel/split_loops.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "machine/target/target.h"

namespace {

using namespace apl::kernel;

ExprPtr var(const char* name) { return variable(name); }
ExprPtr num(std::int64_t n) { return literal(n); }
ExprPtr plus_of(ExprPtr a, ExprPtr b) { return infix("+", std::move(a), std::move(b)); }
ExprPtr minus_of(ExprPtr a, ExprPtr b) { return infix("-", std::move(a), std::move(b)); }
ExprPtr row(const char* i, const char* j) { return plus_of(infix("*", var(i), var("m")), var(j)); }

Block split(Block block) {
  return split_loops(std::move(block), [](const std::string& name) { return name; });
}

std::string text_of(Block block) {
  Function function;
  function.name = "f";
  function.body = std::move(block);
  return print(function, *apl::find_dialect("c"));
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// x = a[..] where the condition holds, else b[..]; out[i * m + j] = x, for i < n + k and j < m.
Stmt rows(ExprPtr condition) {
  Block body{declare(kIndex, "x", num(0), false),
             branch(std::move(condition), {assign(var("x"), element("a", row("i", "j")))},
                    {assign(var("x"), element("b", minus_of(row("i", "j"), infix("*", var("n"), var("m")))))}),
             assign(element("out", row("i", "j")), var("x"))};
  return for_loop(kIndex, "i", plus_of(var("n"), var("k")), {for_loop(kIndex, "j", var("m"), std::move(body))});
}

// Runs the block; arrays hold what their position says.
class Machine {
 public:
  std::map<std::string, std::int64_t> scalars;
  std::map<std::int64_t, std::int64_t> out;

  void run(const Block& block) {
    for (const Stmt& s : block) {
      if (s.kind == Stmt::Kind::declare) scalars[s.name] = value(*s.value);
      if (s.kind == Stmt::Kind::branch) run(value(*s.value) != 0 ? s.body : s.else_body);
      if (s.kind == Stmt::Kind::assign && s.target->kind == Expr::Kind::variable)
        scalars[s.target->text] = value(*s.value);
      if (s.kind == Stmt::Kind::assign && s.target->kind == Expr::Kind::element)
        out[value(*s.target->args[0])] = value(*s.value);
      if (s.kind != Stmt::Kind::for_loop) continue;
      for (std::int64_t i = value(*s.from); i < value(*s.value); ++i) {
        scalars[s.name] = i;
        run(s.body);
      }
    }
  }

 private:
  std::int64_t value(const Expr& e) {
    const auto arg = [&](std::size_t k) { return value(*e.args[k]); };
    if (e.kind == Expr::Kind::literal) return std::stoll(e.text);
    if (e.kind == Expr::Kind::variable) return scalars.at(e.text);
    if (e.kind == Expr::Kind::element) return 1000 * (e.text[0] - 'a' + 1) + arg(0);
    if (e.text == "apl_index_min") return std::min(arg(0), arg(1));
    if (e.text == "apl_index_max") return std::max(arg(0), arg(1));
    if (e.text == "+") return arg(0) + arg(1);
    if (e.text == "-") return arg(0) - arg(1);
    if (e.text == "*") return arg(0) * arg(1);
    if (e.text == "<") return arg(0) < arg(1) ? 1 : 0;
    REQUIRE(e.text == "<=");
    return arg(0) <= arg(1) ? 1 : 0;
  }
};

TEST_CASE("a concatenation of rows is two loops over flat positions without a branch") {
  const std::string text = text_of(split({rows(infix("<", var("i"), var("n")))}));
  CHECK(count(text, "for (") == 2);
  CHECK(count(text, "if (") == 0);
  CHECK(count(text, "a[j]") == 1);
  CHECK(count(text, "out[j]") == 2);
}

TEST_CASE("a condition that has a name, or stands in more than one branch, is asked once") {
  Stmt loop = rows(var("c"));
  Block& body = loop.body.front().body;
  body.insert(body.begin(), declare({apl::ScalarType::boolean, false}, "c", infix("<", var("i"), var("n"))));
  body.push_back(branch(var("c"), {assign(element("out", row("i", "j")), element("d", row("i", "j")))}));
  const std::string text = text_of(split({loop}));
  CHECK(count(text, "if (") == 0);
  CHECK(count(text, "bool") == 0);
  CHECK(count(text, "for (") == 2);
}

TEST_CASE("loops whose rounds may be left, sums that may wrap and what the loop changes are not split") {
  CHECK(count(text_of(split({rows(infix("<", plus_of(var("i"), var("k")), var("n")))})), "if (") == 1);
  CHECK(count(text_of(split({rows(infix("<", var("i"), var("x")))})), "if (") == 1);
  CHECK(count(text_of(split({rows(infix("<", var("i"), element("a", var("n"))))})), "if (") == 1);
  Stmt left = rows(infix("<", var("i"), var("n")));
  Stmt leave;
  leave.kind = Stmt::Kind::leave;
  leave.name = "next";
  left.body.front().body.push_back(leave);
  CHECK(count(text_of(split({left})), "if (") == 1);
}

TEST_CASE("rows of which only some lie one behind the other stay two loops") {
  Stmt loop = rows(infix("<", var("i"), var("n")));
  loop.body.front().body.push_back(assign(element("out", row("i", "j")), element("c", var("j"))));
  CHECK(count(text_of(split({loop})), "for (") == 4);
  Stmt converted = rows(infix("<", var("i"), var("n")));
  converted.body.front().body.push_back(assign(element("out", row("i", "j")), var("j")));
  CHECK(count(text_of(split({converted})), "for (") == 4);
}

TEST_CASE("loops that threads share are joined all or not at all") {
  Stmt cube = for_loop(kIndex, "h", var("k"), {rows(infix("<", var("n"), var("m")))});
  cube.parallel = true;
  cube.collapse = 2;
  // One over the rounds of the outer two, and the inner one.
  CHECK(count(text_of(split({cube})), "for (") == 2);
  CHECK(count(text_of(split({cube})), ", k * (n + k), INT64_MAX);") == 1);
}

TEST_CASE("split and joined loops do what they did, whatever the numbers") {
  const std::vector<ExprPtr> conditions{
      infix("<", var("i"), var("n")),  infix("<=", var("n"), var("i")), infix("<=", var("i"), var("n")),
      infix("<", var("n"), var("i")),  infix("<", var("i"), var("t")),  infix("<", var("t"), var("i")),
      infix("<=", var("i"), var("t")), infix("<", var("j"), var("t")),  infix("<=", var("t"), var("j"))};
  for (const ExprPtr& condition : conditions)
    for (const bool parallel : {false, true})
      for (const std::int64_t t : {INT64_MIN, std::int64_t{-1}, std::int64_t{0}, std::int64_t{2}, INT64_MAX})
        for (std::int64_t n = 0; n < 4; ++n)
          for (std::int64_t m = 0; m < 4; ++m) {
            Stmt loop = rows(condition);
            loop.parallel = parallel;
            Machine before, after;
            before.scalars = after.scalars = {{"n", n}, {"k", 2}, {"m", m}, {"t", t}};
            before.run({loop});
            after.run(split({loop}));
            CHECK(before.out == after.out);
          }
}

}  // namespace
