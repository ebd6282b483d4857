// Functions that pack a panel of M or N: rows that are contiguous, runs of steps that are, or element by element.
#include <fmt/format.h>

#include "codegen/contraction/packed_kernel.h"
#include "codegen/lower/lower.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

// The panels of M (`s` is 0) or N.
void PackedLowering::pack_panels(PackedKernel& packed, std::size_t s) {
  const ValueTable& values = unit_.function.values;
  const auto& operands = packed.mn_operands;
  const PackedParts& parts = packed.parts;
  const std::string& name = packed.name;
  const bool dots = packed.dots;
  // Where an element of a panel lies: step by step, or two steps of a row side by side.
  const auto packed_at = [&](const std::string& step, const std::string& count, const std::string& row) {
    return dots ? fmt::format("({0} / 2 * {1} + {2}) * 2 + {0} % 2", step, count, row)
                : fmt::format("{} * {} + {}", step, count, row);
  };

  // Kernels whose panels of N differ in width; the last one is of the others.
  static constexpr std::size_t kWidths[] = {0, 1, 6};
  static constexpr std::string_view kPack =
      "const void *apl_arguments_, const int64_t *apl_batch, const struct apl_packed_panel *apl_panel, void "
      "*apl_packed";
  const Lambda& packing = parts.mn[s];
  const std::string count = s == 0 ? name + "_rows_0" : "apl_columns";
  KernelBlock code;
  std::vector<std::string> targets;
  std::vector<CType> types;
  for (const Operand& result : packing.body->results) {
    const ScalarType element = dots ? ScalarType::i16 : values.type(result).element;
    types.push_back({element, false});
    targets.push_back(unit_.fresh("packed_row"));
    code.push_back(statement_text(
        fmt::format("{0} *restrict const {1} = ({0} *)((char *)apl_packed + apl_panel->depth * {2} * {3});",
                    c_type(types.back()), targets.back(), count, packed.side_bytes[s])));
    packed.side_bytes[s] += static_cast<std::int64_t>(byte_size(element));
  }
  std::vector<std::string> begins;
  for (const std::size_t o : operands[s]) {
    begins.push_back(unit_.fresh("begin"));
    code.push_back(declare(kIndex, begins.back(), values_.poly(packed_begin(packed, o))));
  }
  for (const PackedNumber& number : packed.numbers[s]) {
    begins.push_back(unit_.fresh("begin"));
    code.push_back(declare(kIndex, begins.back(), values_.poly(packed_start(packed, number.at->start))));
  }
  const std::string q = unit_.fresh("q"), i = unit_.fresh("i");
  const auto loop = [&](bool contiguous) {
    KernelBlock body, inner;
    std::vector<ExprPtr> elements;
    std::vector<std::string> ats;
    for (std::size_t t = 0; t < begins.size(); ++t) {
      const std::string at = ats.emplace_back(unit_.fresh("at"));
      body.push_back(declare(kIndex, at,
                             variable(fmt::format("{} + apl_panel->step[{}][{}]{}", begins[t], t, q,
                                                  contiguous ? fmt::format(" + apl_panel->row[{}][0]", t) : ""))));
    }
    const auto number = [&](std::size_t t) {
      return plus(variable(ats[t]), variable(contiguous ? i : fmt::format("apl_panel->row[{}][{}]", t, i)));
    };
    for (std::size_t k = 0; k < operands[s].size(); ++k) elements.push_back(packed_element(packed, s, k, number));
    // Lines of the next panel, whose rows mostly are those behind this one's: memory is far, and lines of a step are
    // few.
    for (std::size_t k = 0; contiguous && k < operands[s].size(); ++k) {
      const std::string line = unit_.fresh("line");
      const auto bytes = byte_size(packed_type(packed, operands[s][k]).scalar);
      Stmt lines =
          for_loop(kInt, line, variable(fmt::format("{} * {}", count, bytes)),
                   {statement_text(fmt::format("__builtin_prefetch((const char *)({} + {}) + {} * {} + {});",
                                               packed_source(packed, operands[s][k]), ats[k], count, bytes, line))});
      lines.step = variable("kPackedLine");
      body.push_back(std::move(lines));
    }
    const std::vector<ExprPtr> results = inline_lambda(packing, elements, inner);
    for (std::size_t k = 0; k < results.size(); ++k)
      inner.push_back(assign(element(targets[k], variable(packed_at(q, count, i))), results[k]));
    body.push_back(for_loop(kInt, i, variable(count), std::move(inner)));
    return for_loop(kIndex, q, variable("apl_panel->depth"), std::move(body));
  };
  // Runs of steps: as many elements of a row at a time, while the next run's are fetched.
  const auto transpose = [&] {
    const std::string run = unit_.fresh("run"), next = unit_.fresh("next"), x_step = unit_.fresh("x"),
                      length = unit_.fresh("length");
    KernelBlock of_run, of_row, inner;
    std::vector<ExprPtr> elements;
    std::vector<std::string> ats;
    for (std::size_t t = 0; t < begins.size() && !packed.numbers[s].empty(); ++t) {
      ats.push_back(unit_.fresh("at"));
      of_row.push_back(declare(
          kIndex, ats.back(),
          variable(fmt::format("{0} + apl_panel->row[{1}][{2}] + apl_panel->step[{1}][{3}]", begins[t], t, i, q))));
    }
    const auto number = [&](std::size_t t) { return plus(variable(ats[t]), variable(x_step)); };
    for (std::size_t k = 0; k < operands[s].size(); ++k) {
      if (!packed.numbers[s].empty()) {
        elements.push_back(packed_element(packed, s, k, number));
        continue;
      }
      const std::string from = unit_.fresh("from"), source = packed_source(packed, operands[s][k]);
      of_row.push_back(statement_text(
          fmt::format("const {0} *const {1} = {2} + {3} + apl_panel->row[{4}][{5}] + apl_panel->step[{4}][{6}];",
                      c_type(packed_type(packed, operands[s][k])), from, source, begins[k], k, i, q)));
      of_row.push_back(statement_text(fmt::format(
          "__builtin_prefetch({0} - apl_panel->step[{1}][{2}] + apl_panel->step[{1}][{3}]);", from, k, q, next)));
      elements.push_back(element(from, variable(x_step)));
    }
    const std::vector<ExprPtr> results = inline_lambda(packing, elements, inner);
    for (std::size_t k = 0; k < results.size(); ++k)
      inner.push_back(assign(
          element(targets[k], variable(packed_at(fmt::format("({} + {} * apl_panel->stride)", q, x_step), count, i))),
          results[k]));
    of_row.push_back(for_loop(kIndex, x_step, variable(length), std::move(inner)));
    of_run.push_back(declare(kIndex, length, variable(fmt::format("apl_panel->length[{}]", run))));
    of_run.push_back(declare(kIndex, q, variable(fmt::format("apl_panel->first[{}]", run))));
    of_run.push_back(declare(
        kIndex, next, variable(fmt::format("apl_panel->first[{0} + 1 < apl_panel->runs ? {0} + 1 : {0}]", run))));
    of_run.push_back(for_loop(kIndex, i, variable(count), std::move(of_row)));
    return for_loop(kIndex, run, variable("apl_panel->runs"), std::move(of_run));
  };
  code.push_back(kernel::branch(variable("apl_panel->contiguous"), {loop(true)},
                                {kernel::branch(variable("apl_panel->runs > 0"), {transpose()}, {loop(false)})}));
  if (dots)
    code.push_back(
        kernel::branch(variable("apl_panel->depth % 2 == 1"),
                       {for_loop(kInt, i, variable(count),
                                 {assign(element(targets[0], variable(packed_at("apl_panel->depth", count, i))),
                                         literal(std::int64_t{0}))})},
                       {}));
  if (s == 0) {
    packed_function(packed, "_pack_m", "static", kPack, std::move(code));
  } else {
    packed_function(packed, "_pack_n_of", "APL_INLINE", fmt::format("{}, const int32_t apl_columns", kPack),
                    std::move(code));
    packed_widths(packed, "_pack_n", "static", kPack, "apl_arguments_, apl_batch, apl_panel, apl_packed",
                  "apl_panel->most", kWidths);
  }
}

}  // namespace apl::lower
