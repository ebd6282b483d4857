// Where place-memory puts the arrays of random host programs: no two that live at one time share a block, results are
// written over inputs only where that is seen by nobody, and reuse never allocates more.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "ir/print.h"
#include "ir/walk.h"
#include "tests/testing.h"
#include "tests/unit/ir/random_values.h"

namespace {

using namespace apl;
using testing_random::Random;

// Programs of kernels over arrays of three sizes and two types, in loops and branches of the host, too. With aliases,
// arrays get further names: as whole slices, from branches that only name them, and as what a body gives.
class HostProgram {
 public:
  explicit HostProgram(Random& random, bool aliases = false) : random_(random), aliases_(aliases) {}

  std::string text() {
    std::vector<Array> arrays{{"A", "n", "f32"}, {"B", "m", "f32"}, {"C", "n", "i32"}, {"D", "2*n", "f32"}};
    const std::string stms = steps(arrays, 3 + static_cast<int>(random_.between(0, 5)), 2);
    const Array r = arrays.back(), s = random_.pick(arrays);
    return fmt::format(
        "stage kernel\n\nentry main (A : \"a\", B : \"b\", C : \"c\", D : \"d\") : {{\"r\", \"s\"}}\n"
        "fun main [n, m] (A : [n]f32, B : [m]f32, C : [n]i32, D : [2*n]f32) : {{{}, {}}} = {{\n{}in {{{}, {}}}\n}}\n",
        r.type(), s.type(), stms, r.name, s.name);
  }

 private:
  struct Array {
    std::string name, size, element;
    std::string type() const { return fmt::format("[{}]{}", size, element); }
  };

  std::string fresh(const std::string& hint) { return fmt::format("{}_{}", hint, ++names_); }

  // The last of `arrays` is what the last step made.
  std::string steps(std::vector<Array>& arrays, int count, int depth) {
    std::string text;
    for (int k = 0; k < count; ++k) {
      const std::int64_t kind = depth == 0 ? 0 : random_.between(0, 5);
      text += kind == 4 ? loop(arrays, depth) : kind == 5 ? branch(arrays, depth) : kernel(arrays, {});
      if (aliases_ && random_.chance(40)) text += alias(arrays);
    }
    return text;
  }

  std::string alias(std::vector<Array>& arrays) {
    const Array of = random_.pick(arrays);
    const std::string a = fresh("A"), c = fresh("c"), s = fresh("s");
    arrays.push_back({a, of.size, of.element});
    if (random_.chance(30)) return fmt::format("let {{{} : {}}} = {}[0 :+ {}]\n", a, of.type(), of.name, of.size);
    return fmt::format(
        "let {{{0} : bool}} = lt(n, m)\n"
        "let {{{1} : i64, {2} : {3}}} = if {0} {{\nin {{1i64, {4}}}\n}} else {{\nin {{2i64, {4}}}\n}}\n",
        c, s, a, of.type(), of.name);
  }

  // Reads one or two arrays of the size of its result, at the own index or from the end.
  std::string kernel(std::vector<Array>& arrays, const Array& wanted) {
    const Array first = wanted.name.empty() ? random_.pick(arrays) : wanted;
    const std::string element = wanted.name.empty() ? random_.chance(30) ? "i32" : "f32" : wanted.element;
    const std::string i = fresh("i"), r = fresh("R");
    std::string body, sum;
    for (const Array& from : arrays) {
      if (from.size != first.size || (from.name != first.name && !random_.chance(25))) continue;
      const std::string x = fresh("x"), y = fresh("y"), s = fresh("s");
      const std::string at = random_.chance(60) ? i : fmt::format("{} - 1 - {}", first.size, i);
      body += fmt::format("let {{{} : {}}} = {}[{}]\n", x, from.element, from.name, at);
      body += fmt::format("let {{{0} : {1}}} = convert({2}, {1})\n", y, element, x);
      if (!sum.empty()) body += fmt::format("let {{{} : {}}} = add({}, {})\n", s, element, sum, y);
      sum = sum.empty() ? y : s;
    }
    arrays.push_back({r, first.size, element});
    return fmt::format("let {{{} : {}}} = segmap(thread) ({} < {}) {{\n{}return {{returns {}}}\n}}\n", r,
                       arrays.back().type(), i, first.size, body, sum);
  }

  // A body whose result has the type of `like`.
  std::string body(std::vector<Array> arrays, const Array& like, int depth) {
    std::string text = steps(arrays, static_cast<int>(random_.between(0, 3)), depth - 1);
    if (aliases_ && random_.chance(25)) {
      const std::string a = fresh("A");
      return fmt::format("{}let {{{} : {}}} = {}[0 :+ {}]\nin {{{}}}\n", text, a, like.type(), like.name, like.size, a);
    }
    text += kernel(arrays, like);
    return fmt::format("{}in {{{}}}\n", text, arrays.back().name);
  }

  std::string loop(std::vector<Array>& arrays, int depth) {
    const Array start = aliases_ && random_.chance(50) ? arrays.back() : random_.pick(arrays);
    const Array carried{fresh("X"), start.size, start.element};
    std::vector<Array> inside = arrays;
    inside.push_back(carried);
    const std::string text = body(inside, carried, depth), r = fresh("L");
    arrays.push_back({r, start.size, start.element});
    return fmt::format("let {{{} : {}}} = loop {{{} : {} = {}}} for {} < 3 {{\n{}}}\n", r, start.type(), carried.name,
                       start.type(), start.name, fresh("k"), text);
  }

  std::string branch(std::vector<Array>& arrays, int depth) {
    const Array like = random_.pick(arrays);
    const std::string c = fresh("c"), r = fresh("E");
    const std::string yes = body(arrays, like, depth), no = body(arrays, like, depth);
    arrays.push_back({r, like.size, like.element});
    return fmt::format("let {{{0} : bool}} = lt(n, m)\nlet {{{1} : {2}}} = if {0} {{\n{3}}} else {{\n{4}}}\n", c, r,
                       like.type(), yes, no);
  }

  Random& random_;
  bool aliases_;
  int names_ = 0;
};

Module placed(const std::string& text, const std::string& pipeline) {
  const auto run = testing::run_text(pipeline, text);
  REQUIRE_MESSAGE(run, (run ? "" : run.error().message), "\n", text);
  return run->after;
}

// Where the statements of a function's body make and last need the arrays of each block.
struct Life {
  Value array;
  std::size_t made = 0, last = 0;
};
std::map<Value, std::vector<Life>> lives(const Function& function) {
  std::map<Value, Life> all;
  const std::vector<Stm>& stms = function.body->stms;
  for (std::size_t at = 0; at < stms.size(); ++at) {
    for (const Value v : free_values(stms[at].op, function.values))
      if (const auto life = all.find(v); life != all.end()) life->second.last = at;
    for (const Value v : stms[at].pattern)
      if (function.type(v).memory) all[v] = {v, at, at};
  }
  for (const Operand& result : function.body->results)
    if (result.is_value() && all.contains(result.value())) all[result.value()].last = stms.size();
  std::map<Value, std::vector<Life>> result;
  for (const auto& [v, life] : all) result[function.type(v).memory->block].push_back(life);
  return result;
}

// Whether the kernel reads the array at the index of its thread alone, in the place of its result.
bool at_own_index(const Stm& stm, Value array, const Function& function) {
  const SegOp* kernel = get_if<SegOp>(stm);
  if (kernel == nullptr || function.type(array).element != function.type(stm.pattern.front()).element) return false;
  bool own = true;
  for_each_stm(*kernel->body, [&](const Stm& inner) {
    const Index* index = get_if<Index>(inner);
    if (index != nullptr && index->array == array)
      own = own && index->dims.front().start == Poly(kernel->space[0].index);
  });
  return own;
}

// Allocations that the host makes; each loop runs three times.
int allocations(const Body& body) {
  int count = 0;
  for (const Stm& stm : body.stms) {
    count += get_if<Alloc>(stm) ? 1 : 0;
    if (get_if<Loop>(stm) || get_if<If>(stm))
      for_each_body(stm.op, [&](const BodyPtr& inner) { count += (get_if<Loop>(stm) ? 3 : 1) * allocations(*inner); });
  }
  return count;
}

constexpr std::uint64_t kPrograms = 200;

TEST_CASE("law: arrays that live at one time do not share a block") {
  int in_place = 0, shared = 0;
  for (std::uint64_t seed = 1; seed <= kPrograms; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const std::string text = HostProgram(random).text();
    const Module module = placed(text, "place-memory");
    const Function& function = *module.functions.front();
    INFO(print(module));
    for (const auto& [block, arrays] : lives(function)) {
      for (const Value param : function.params) {
        const bool callers = function.type(param).memory && function.type(param).memory->block == block;
        CHECK_FALSE(callers);  // what the caller owns is never written
      }
      for (const Life& a : arrays)
        for (const Life& b : arrays) {
          if (a.made >= b.made) continue;
          ++shared;
          CHECK(a.last <= b.made);
          const Stm& maker = function.body->stms[b.made];
          if (a.last != b.made || get_if<SegOp>(maker) == nullptr) continue;
          ++in_place;
          CHECK(at_own_index(maker, a.array, function));
        }
    }
  }
  CHECK(in_place > 50);
  CHECK(shared > 100);
}

// Each of some random programs means the same with reuse and without; how many allocations reuse saves, by program.
std::vector<int> saved_allocations(bool aliases) {
  std::vector<int> all;
  for (std::uint64_t seed = 1; seed <= kPrograms; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const std::string text = HostProgram(random, aliases).text();
    const Module before = placed(text, "none");
    const Module with = placed(text, "place-memory"), without = placed(text, "place-memory{reuse=false}");
    INFO(print(with));
    testing::LawOptions options;
    options.only_these_sizes = true;
    options.sizes = {{{"n", 3}, {"m", 2}}, {{"n", 1}, {"m", 4}}, {{"n", 0}, {"m", 0}}};
    // At the memory stage the interpreter refuses to write over an array that is read later.
    for (const Module& after : {with, without}) {
      const testing::Verdict same = testing::same_meaning(before, after, "main", options);
      CHECK_MESSAGE(same, same.explanation);
    }
    all.push_back(allocations(*without.functions.front()->body) - allocations(*with.functions.front()->body));
  }
  return all;
}

TEST_CASE("law: reuse means the same, also where blocks are exchanged, and allocates no more") {
  const std::vector<int> saved = saved_allocations(false);
  CHECK(std::ranges::min(saved) >= 0);
  CHECK(std::ranges::count_if(saved, [](int count) { return count > 0; }) > static_cast<int>(kPrograms) / 3);
}

TEST_CASE("law: arrays with several names mean the same at the memory stage") { saved_allocations(true); }

}  // namespace
