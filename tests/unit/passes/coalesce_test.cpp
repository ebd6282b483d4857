// What coalesce promises of random kernels: neighbouring threads read neighbouring elements in memory, or a remark says
// why not; doing it again does nothing.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ir/layouts.h"
#include "ir/print.h"
#include "ir/walk.h"
#include "tests/testing.h"
#include "tests/unit/ir/random_values.h"

namespace {

using namespace apl;
using testing_random::Random;

// A kernel over one to three dims that sums over q elements of each of some arrays. Their dims are the kernel's, some
// of them, and q, in any order.
std::string random_kernel(Random& random) {
  const std::vector<std::string> sizes{"a", "b", "c"}, elements{"i8", "i32", "f32", "f64"};
  const auto rank = static_cast<std::size_t>(random.between(1, 3));
  // The first parameter fixes all sizes.
  std::vector<std::string> space, params{"like : [a][b][c][q]bool"}, results, head{"like : \"l\""};
  for (std::size_t d = 0; d < rank; ++d) space.push_back(fmt::format("i{0}_ < {0}", sizes[d]));
  std::string body;
  const int arrays = static_cast<int>(random.between(1, 3));
  for (int n = 0; n < arrays; ++n) {
    std::vector<std::string> dims{"q"};
    for (std::size_t d = 0; d < rank; ++d)
      if (random.chance(75)) dims.push_back(sizes[d]);
    random.shuffle(dims);
    const std::string& element = random.pick(elements);
    std::string shape, at;
    for (const std::string& dim : dims) {
      shape += fmt::format("[{}]", dim);
      const std::string index = dim == "q" ? fmt::format("k_{}", n) : fmt::format("i{}_", dim);
      at += (at.empty() ? "" : ", ") + (random.chance(15) ? fmt::format("{} - 1 - {}", dim, index) : index);
    }
    params.push_back(fmt::format("A_{} : {}{}", n, shape, element));
    head.push_back(fmt::format("A_{} : \"a\"", n));
    body += fmt::format(
        "let {{s_{0} : {1}}} = redomap(k_{0} < q, {{}}, \\{{}} -> {{ let {{x_{0} : {1}}} = A_{0}[{2}] in {{x_{0}}} }}, "
        "{{commutative \\{{u_{0} : {1}, v_{0} : {1}}} -> {{ let {{w_{0} : {1}}} = add(u_{0}, v_{0}) in {{w_{0}}} }}, "
        "{{0{1}}}}})\nlet {{r_{0} : f64}} = convert(s_{0}, f64)\n",
        n, element, at);
    results.push_back(fmt::format("returns r_{}", n));
  }
  std::string type;
  for (std::size_t d = 0; d < rank; ++d) type += fmt::format("[{}]", sizes[d]);
  std::vector<std::string> types(results.size(), type + "f64"), names, bound;
  for (std::size_t n = 0; n < results.size(); ++n) {
    names.push_back(fmt::format("R_{}", n));
    bound.push_back(fmt::format("R_{} : {}f64", n, type));
  }
  return fmt::format(
      "stage kernel\n\nentry main ({}) : {{{}}}\nfun main [a, b, c, q] ({}) : {{{}}} = {{\n"
      "let {{{}}} = segmap(thread) ({}) {{\n{}return {{{}}}\n}}\nin {{{}}}\n}}\n",
      fmt::join(head, ", "), fmt::join(std::vector<std::string>(results.size(), "\"r\""), ", "),
      fmt::join(params, ", "), fmt::join(types, ", "), fmt::join(bound, ", "), fmt::join(space, ", "), body,
      fmt::join(results, ", "), fmt::join(names, ", "));
}

// How far apart in memory neighbouring threads read, by read: nullopt if that is no number.
std::vector<std::optional<std::int64_t>> steps(const Module& memory) {
  std::vector<std::optional<std::int64_t>> result;
  const Function& function = *memory.functions.front();
  for (const Stm& stm : function.body->stms) {
    const SegOp* kernel = get_if<SegOp>(stm);
    if (kernel == nullptr || kernel->level != SegLevel::thread) continue;
    for_each_stm(*kernel->body, [&](const Stm& inner) {
      const Index* index = get_if<Index>(inner);
      if (index == nullptr || !function.type(inner.pattern.front()).is_scalar()) return;
      const Lmad element = index_layout(function.type(index->array).memory->layout, index->dims);
      const auto linear = element.offset().linear_in(kernel->space.back().index);
      result.push_back(linear ? linear->coefficient.constant() : std::nullopt);
    });
  }
  return result;
}

TEST_CASE("law: neighbouring threads read neighbouring elements after coalesce") {
  int before = 0, after = 0, kernels = 0;
  const auto apart = [](const std::optional<std::int64_t>& step) { return !step || *step > 1 || *step < -1; };
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const std::string text = random_kernel(random);
    INFO(text);
    const auto as_written = testing::run_text("place-memory", text);
    const auto coalesced = testing::run_text("coalesce", text);
    REQUIRE(as_written);
    REQUIRE(coalesced);
    const auto placed = testing::run_module("place-memory", coalesced->after);
    REQUIRE(placed);
    const auto steps_before = steps(as_written->after), steps_after = steps(placed->after);
    CHECK(steps_before.size() == steps_after.size());
    const auto missed = std::ranges::count_if(coalesced->remarks,
                                              [](const Remark& remark) { return remark.kind == RemarkKind::missed; });
    CHECK(std::ranges::count_if(steps_after, apart) <= missed);
    before += static_cast<int>(std::ranges::count_if(steps_before, apart));
    after += static_cast<int>(std::ranges::count_if(steps_after, apart));
    const auto again = testing::run_module("coalesce", coalesced->after);
    REQUIRE(again);
    CHECK(again->output == coalesced->output);
    if (seed % 4 != 0) continue;
    ++kernels;
    testing::LawOptions options;
    options.only_these_sizes = true;
    options.sizes = {{{"a", 3}, {"b", 2}, {"c", 17}, {"q", 4}}, {{"a", 18}, {"b", 1}, {"c", 2}, {"q", 0}}};
    const testing::Verdict same = testing::same_meaning(coalesced->before, placed->after, "main", options);
    CHECK_MESSAGE(same, same.explanation);
  }
  CHECK(before > 100);
  CHECK(after < before / 10);
}

}  // namespace
