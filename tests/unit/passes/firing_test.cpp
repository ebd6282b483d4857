// Which contractions are tiled, against a count of loads: docs/firing.md, by brute force over small spaces.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <string>
#include <vector>

#include "ir/parse.h"
#include "ir/verify.h"
#include "passes/analysis/contractions.h"

namespace {

using namespace apl;

// Bit d of an operand: it varies along dim d. Space dims come first.
struct FiringForm {
  unsigned space = 0, reduction = 0;
  std::vector<unsigned> operands;
  unsigned rank() const { return space + reduction; }
};

// The product of all operands, summed over the reduction dims.
std::string firing_text(const FiringForm& form) {
  std::vector<std::string> names, sizes, space, widths, params, reads, shape;
  for (unsigned d = 0; d < form.rank(); ++d) {
    sizes.push_back(fmt::format("d{}", d));
    (d < form.space ? space : widths).push_back(fmt::format("i{} < d{}", d, d));
    if (d < form.space) shape.push_back(fmt::format("[d{}]", d));
  }
  std::string last;
  for (std::size_t o = 0; o < form.operands.size(); ++o) {
    std::string dims, at;
    for (unsigned d = 0; d < form.rank(); ++d)
      if ((form.operands[o] >> d & 1U) != 0) {
        dims += fmt::format("[d{}]", d);
        at += fmt::format("{}i{}", at.empty() ? "" : ", ", d);
      }
    if (dims.empty()) dims = "[1]", at = "0";
    names.push_back(fmt::format("X{} : \"{}f32\"", o, dims));
    params.push_back(fmt::format("X{} : {}f32", o, dims));
    reads.push_back(fmt::format("let {{x{} : f32}} = X{}[{}]", o, o, at));
    if (o > 0) reads.push_back(fmt::format("let {{p{} : f32}} = mul({}, x{})", o, last, o));
    last = o == 0 ? "x0" : fmt::format("p{}", o);
  }
  const std::string result = fmt::format("{}f32", fmt::join(shape, ""));
  return fmt::format(R"(stage kernel

entry main ({0}) : {{"{1}"}}
fun main [{2}] ({3}) : {{{1}}} = {{
  let {{R : {1}}} =
    segmap(thread) ({4}) {{
      let {{r : f32}} =
        redomap({5}, {{}},
          \{{}} -> {{ {6} in {{{7}}} }},
          {{commutative \{{u : f32, v : f32}} -> {{ let {{uv : f32}} = add(u, v) in {{uv}} }}, {{0.0f32}}}})
      return {{returns r}}
    }}
  in {{R}}
}}
)",
                     fmt::join(names, ", "), result, fmt::join(sizes, ", "), fmt::join(params, ", "),
                     fmt::join(space, ", "), fmt::join(widths, ", "), fmt::join(reads, " "), last);
}

// What no step of the reduction changes is in registers: it is used by all of them.
bool is_resident(const FiringForm& form, unsigned operand) { return operand >> form.space == 0; }

// What steps change is the same for all threads, and so is what tells their results apart: the cache serves them.
bool is_read_alike(const FiringForm& form) {
  const unsigned space = (1U << form.space) - 1;
  std::set<unsigned> seen;
  for (unsigned operand : form.operands) {
    if (!is_resident(form, operand) && (operand & space) != 0) return false;
    if ((operand & space) != 0) seen.insert(operand & space);
  }
  return seen.size() <= 1;
}

// In a block of 2 x 2 x ... results and one step of the reduction: the elements of each operand, and the products that
// differ in an element. An element is worth keeping if more than one product needs it.
bool tiling_pays(const FiringForm& form) {
  if (is_read_alike(form)) return false;
  const unsigned points = 1U << form.space;
  std::set<std::vector<unsigned>> products;
  std::vector<std::set<unsigned>> elements(form.operands.size());
  for (unsigned at = 0; at < points; ++at) {
    std::vector<unsigned> product;
    for (std::size_t o = 0; o < form.operands.size(); ++o) {
      product.push_back(at & form.operands[o]);
      elements[o].insert(product.back());
    }
    products.insert(product);
  }
  for (std::size_t o = 0; o < form.operands.size(); ++o)
    if (!is_resident(form, form.operands[o]) && products.size() <= elements[o].size()) return false;
  return true;
}

// The rewrite asks this of the reduction: that no step of it repeats another.
bool reduction_counts(const FiringForm& form) {
  unsigned all = 0;
  for (unsigned operand : form.operands) all |= operand;
  return all >> form.space == (1U << form.reduction) - 1;
}

// T 4.6: two operands, no operand varies along all parallel dims, along each of these exactly one does.
bool fires_in_the_thesis(const FiringForm& form) {
  if (form.operands.size() != 2 || form.space < 2) return false;
  const unsigned space = (1U << form.space) - 1, both = (1U << form.rank()) - 1 - space;
  for (unsigned operand : form.operands)
    if ((operand & space) == space || (operand & both) != both) return false;
  return ((form.operands[0] ^ form.operands[1]) & space) == space;
}

std::string firing_outcome(const FiringForm& form) {
  const std::string text = firing_text(form);
  auto module = parse_module(text, "test.aplir");
  REQUIRE_MESSAGE(module, module.error().message << "\n" << text);
  ValueTable values = module->functions.front()->values;
  const std::vector<Match> matches = find_contractions(*module->functions.front(), values);
  REQUIRE(matches.size() == 1);
  const Refusal* refusal = std::get_if<Refusal>(&matches.front());
  return refusal == nullptr ? "tiled" : refusal->code;
}

// Every choice of so many operands, in any order; returns how many there were.
std::size_t check_all_forms(unsigned space, unsigned reduction, std::size_t operands) {
  std::size_t count = 0, tiled = 0;
  std::vector<FiringForm> pending{{space, reduction, {}}};
  while (!pending.empty()) {
    const FiringForm form = pending.back();
    pending.pop_back();
    if (form.operands.size() < operands) {
      // Not smaller than the one before: the order does not matter.
      for (unsigned v = form.operands.empty() ? 0 : form.operands.back(); v < 1U << form.rank(); ++v) {
        pending.push_back(form);
        pending.back().operands.push_back(v);
      }
      continue;
    }
    CAPTURE(space);
    CAPTURE(reduction);
    CAPTURE(fmt::format("{}", fmt::join(form.operands, " ")));
    const std::string what = firing_outcome(form);
    CAPTURE(what);
    CHECK((what == "tiled") == (tiling_pays(form) && reduction_counts(form)));
    if (fires_in_the_thesis(form)) CHECK(what == "tiled");
    tiled += what == "tiled" ? 1 : 0;
    ++count;
  }
  if (space >= 2 && operands >= 2) CHECK(tiled > 0);
  return count;
}

}  // namespace

TEST_CASE("firing: a contraction is tiled exactly if every operand's elements are used more than once") {
  CHECK(check_all_forms(1, 1, 2) == 10);
  CHECK(check_all_forms(2, 1, 2) == 36);
  CHECK(check_all_forms(3, 1, 2) == 136);
  CHECK(check_all_forms(2, 2, 2) == 136);
  CHECK(check_all_forms(4, 1, 2) == 528);
  CHECK(check_all_forms(2, 1, 3) == 120);
  CHECK(check_all_forms(3, 1, 3) == 816);
}
