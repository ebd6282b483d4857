#include "tests/scaling/kinds.h"

#include <fmt/format.h>

namespace apl::scaling_tests {

namespace {

using Part = std::function<std::string(std::size_t)>;

// Parts 0 to n, without n, with a text between them.
std::string joined(std::size_t n, const std::string& between, const Part& part) {
  std::string text;
  for (std::size_t k = 0; k < n; ++k) text += (k == 0 ? "" : between) + part(k);
  return text;
}

std::string numbered(std::size_t n, const std::string& name, const std::string& between = ", ") {
  return joined(n, between, [&](std::size_t k) { return fmt::format("{}{}", name, k); });
}

// An entry of n lets: `step` gives each of them from the number of the one before.
Part lets(std::string head, std::string first, const Part& step, const std::string& result = "v{}") {
  return [=](std::size_t n) {
    std::string text = fmt::format("entry main {} =\n  let v0 = {}\n", head, first);
    for (std::size_t k = 1; k < n; ++k) text += fmt::format("  let v{} = {}\n", k, step(k - 1));
    return text + "  in " + fmt::format(fmt::runtime(result), n - 1) + "\n";
  };
}

const std::string kVector = "[k] (x: [k]f32) (y: f32) : [k]f32";

std::string wide_reduction(std::size_t n) {
  return fmt::format("entry main [k] (x: [k]i64) : ({}) =\n  reduce (\\({}) ({}) -> ({})) ({}) (map (\\e -> ({})) x)\n",
                     joined(n, ", ", [](std::size_t) { return "i64"; }), numbered(n, "a"), numbered(n, "b"),
                     joined(n, ", ", [&](std::size_t k) { return fmt::format("a{} + b{}", k, k); }),
                     joined(n, ", ", [](std::size_t) { return "0"; }),
                     joined(n, ", ", [](std::size_t k) { return fmt::format("e * {}", k); }));
}

std::string maps_of_one_array(std::size_t n) {
  return fmt::format("entry main [k] (x: [k]f32) : ({}) =\n  ({})\n",
                     joined(n, ", ", [](std::size_t) { return "[k]f32"; }),
                     joined(n, ", ", [](std::size_t k) { return fmt::format("map (* {}) x", k); }));
}

std::string wide_branch(std::size_t n) {
  return fmt::format("entry main (x: i64) (y: i64) : i64 =\n  let ({}) = if x > y then ({}) else ({})\n  in v0 + v{}\n",
                     numbered(n, "v"), joined(n, ", ", [](std::size_t k) { return fmt::format("x + {}", k); }),
                     joined(n, ", ", [](std::size_t k) { return fmt::format("y + {}", k); }), n - 1);
}

std::string else_if(std::size_t n) {
  return fmt::format("entry main [k] (x: [k]i64) : [k]i64 = map (\\e ->\n{}  0) x\n", joined(n, "", [](std::size_t k) {
                       return fmt::format("  if e % {} < {} then e * {} else\n", k + 2, k, k);
                     }));
}

std::string parameters(std::size_t n) {
  return fmt::format("def f {} = a0 + 1i64\nentry main {} : i64 = f {}\n", numbered(n, "a", " "),
                     joined(n, " ", [](std::size_t k) { return fmt::format("(b{}: i64)", k); }), numbered(n, "b", " "));
}

std::string size_parameters(std::size_t n) {
  return fmt::format("entry main {} {} : i64 = n0\n",
                     joined(n, " ", [](std::size_t k) { return fmt::format("[n{}]", k); }),
                     joined(n, " ", [](std::size_t k) { return fmt::format("(a{}: [n{}]i32)", k, k); }));
}

std::string functions(std::size_t n) {
  std::string text, body;
  for (std::size_t k = 0; k < n; ++k) {
    text += fmt::format("#[noinline]\ndef g{} (x: f64) : f64 = f64.sqrt (x * {})\n", k, k + 1);
    body += fmt::format("  let x{} = g{} x{}\n", k + 1, k, k);
  }
  return text + fmt::format("entry main (x0: f64) : f64 =\n{}  in x{}\n", body, n);
}

std::string match(std::size_t n) {
  return fmt::format("entry main (x: i64) (y: i64) : i64 =\n  match x\n{}  case _ -> y\n",
                     joined(n, "", [](std::size_t k) { return fmt::format("  case {} -> y * {}\n", k, k); }));
}

// A module of n functions, of which each calls the one before, as its module type has them.
std::string module_of_functions(std::size_t n) {
  return fmt::format(
      "module type t = {{ type t val of : i64 -> t val to : t -> i64 {} }}\nmodule m : t = {{\n  type t = i64\n"
      "  def of (x: t) = x\n  def to (x: t) = x\n{}\n}}\nentry main (x: i64) : i64 = m.to (m.f{} (m.of x))\n",
      joined(n, " ", [](std::size_t k) { return fmt::format("val f{} : t -> t", k); }),
      joined(n, "\n",
             [](std::size_t k) {
               return k == 0 ? "  def f0 (x: t) : t = x + 1"
                             : fmt::format("  def f{} (x: t) : t = f{} x * {}", k, k - 1, k);
             }),
      n - 1);
}

// Each level calls the one before twice: expanded, the text would double with each. In a map, and on the host.
std::string levels_of_scalars(std::size_t n) {
  return fmt::format(
      "def f0 (x: i32) : i32 = if x > 100 then x / 3 else loop y = x for i < x do if y > i then y - 2 * i else y * "
      "3\n{}"
      "entry main (xs: []i32) : ([]i32, i32) = (map f{} xs, f{} (i32.i64 (length xs)))\n",
      joined(n, "",
             [](std::size_t k) {
               return fmt::format("def f{0} (x: i32) : i32 = if x > {0} then f{1} x + f{1} (x + 1) else f{1} (x - 1)\n",
                                  k + 1, k);
             }),
      n, n);
}

// The same of functions that decide how long their results are.
std::string levels_of_arrays(std::size_t n) {
  return fmt::format(
      "def f0 (x: i64) : []i64 = if x % 2 == 0 then iota (x % 5) else if x < 100 then [x, x + 1] else []\n{}"
      "entry main (x: i64) : []i64 = f{} x\n",
      joined(n, "",
             [](std::size_t k) {
               return fmt::format(
                   "def f{0} (x: i64) : []i64 = if x % {0} == 0 then f{1} x ++ f{1} (x + 1) else f{1} (x - 1)\n", k + 1,
                   k);
             }),
      n);
}

// Parametric modules, each applied to what the one before gave; and each function called from the entry.
std::string applications(std::size_t n) {
  return fmt::format(
      "module type t = {{ type t val f : t -> t }}\n"
      "module twice (p: t) : t with t = p.t = {{ type t = p.t def f (x: t) : t = p.f x }}\n"
      "module m0 = {{ type t = i64 def f (x: t) : t = x + 1 }}\n{}\nentry main (x: i64) : i64 =\n{}  in x\n",
      joined(n, "\n", [](std::size_t k) { return fmt::format("module m{} = twice m{}", k + 1, k); }),
      joined(n, "", [](std::size_t k) { return fmt::format("  let x = m0.f x * {}\n", k); }) +
          fmt::format("  let x = m{}.f x\n", n));
}

}  // namespace

std::vector<Kind> all_kinds() {
  const auto of = [](const char* text) { return [text](std::size_t k) { return fmt::format(fmt::runtime(text), k); }; };
  return {
      {"slices", 700, lets("[k] (x: [k]i32) : i32", "x", of("v{}[1:]"), "i32.sum v{}")},
      {"maps-of-reversed", 125, lets(kVector, "x", of("map (\\e -> e * y + {0}) (reverse v{0})"))},
      {"maps-of-transposed", 50, lets("[k] (x: [k][k]f32) : [k][k]f32", "x", of("transpose (map (map (* {0})) v{0})"))},
      {"scans", 75, lets(kVector, "x", of("scan (+) 0 (map (* {0}) v{0})"))},
      {"branches", 200,
       lets("(x: i64) (y: i64) : i64", "x", of("if v{0} % ({0} + 2) > y then v{0} * x else v{0} + y"))},
      {"loops", 250, lets("(x: i64) (y: i64) : i64", "x", of("loop a = v{0} for i < y do a * {0} + i"))},
      {"chain-of-maps", 400, lets(kVector, "x", of("map (\\e -> e * y + {0}) v{0}"))},
      {"scatters", 75,
       lets("[k] (x: *[k]f32) (is: [k]i64) (y: [k]f32) : [k]f32", "x",
            of("scatter v{0} (map (+ {0}) is) (map (* {0}) y)"))},
      {"scatters-to-one-place", 75,
       lets("[k] (x: *[k]f32) (is: [k]i64) : [k]f32", "x", of("scatter v{0} is (map (* {0}) (copy v{0}))"))},
      {"else-if", 300, else_if},
      {"match", 300, match},
      {"wide-reduction", 50, wide_reduction},
      {"maps-of-one-array", 50, maps_of_one_array},
      {"wide-branch", 100, wide_branch},
      {"parameters", 250, parameters},
      {"size-parameters", 100, size_parameters},
      {"functions", 250, functions},
      {"module-of-functions", 250, module_of_functions},
      {"applications", 250, applications},
      {"levels-of-scalars", 16, levels_of_scalars},
      {"levels-of-arrays", 16, levels_of_arrays},
  };
}

}  // namespace apl::scaling_tests
