#include "tests/work/table.h"

#include <algorithm>

#include "ir/walk.h"

namespace apl::work_tests {

namespace {

constexpr double kUsualFactor = 2;

struct Allowed {
  std::string_view operation;
  double factor;
  std::string_view why;
  bool (*is)(const Op&);
};

const Allowed kAllowed[] = {
    {"scan", 3, "a scan in parts reads its input twice: for the sums of the parts, and for the result",
     [](const Op& op) {
       const Screma* screma = std::get_if<Screma>(&op);
       return screma != nullptr && screma->scans();
     }},
    {"hist", 3, "the parts of a histogram are folded, and each starts with neutral elements",
     [](const Op& op) {
       const Scatter* scatter = std::get_if<Scatter>(&op);
       return scatter != nullptr && scatter->op.has_value();
     }},
    {"scatter", 3, "packing goes over its input for the flags, their scan, and the elements that stay",
     [](const Op& op) { return std::holds_alternative<Scatter>(op); }},
};

}  // namespace

double allowed_factor(const Module& text) {
  double factor = kUsualFactor;
  for (const FunctionPtr& function : text.functions)
    for_each_stm(*function->body, [&](const Stm& stm) {
      for (const Allowed& allowed : kAllowed)
        if (allowed.is(stm.op)) factor = std::max(factor, allowed.factor);
    });
  return factor;
}

const std::vector<Known>& known_violations() {
  static const std::vector<Known> all = {
      {"derivatives.fut", "gather_in_nests", "n",
       "3.2 times the elements: for each of the two reads there is an array of indices and one of cotangents"},
      {"derivatives.fut", "histograms", "n",
       "5.8 times the operations: a histogram of products goes back through two loops, and each asks of every index "
       "whether it is inside"},
  };
  return all;
}

}  // namespace apl::work_tests
