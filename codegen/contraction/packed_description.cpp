// The description of a packed contraction for the loops of runtime/backends/packed.h: sizes and strides of its groups
// of dims, and its table of micro-kernels.
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/contraction/packed_kernel.h"
#include "codegen/kernel/writer.h"
#include "codegen/lower/lower.h"
#include "ir/schedule.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

namespace {

std::string join(const std::vector<std::string>& list) { return fmt::format("{}", fmt::join(list, ", ")); }

// The table of micro-kernels' sizes: as many rows as leave registers for the accumulators, N's elements and one of M's.
void print_sizes(const PackedKernel& packed, Writer& out) {
  const std::size_t accumulators = packed.accumulator_types.size(), on_n = packed.parts.mn[1].body->results.size();
  out.line("enum {{");
  for (std::size_t k = 0; k < kMicroKernels.size(); ++k) {
    const MicroKernelKind& kind = kMicroKernels[k];
    const auto vectors = static_cast<std::size_t>(kind.vectors);
    const bool is_explicit = packed.explicit_vectors && !kind.in_place;
    const std::string vector =
        fmt::format("{} * {} / {}", vectors, is_explicit ? "APL_EXPLICIT_BYTES" : "APL_VECTOR_BYTES", packed.widest);
    out.line("  {}_columns_{} = {},", packed.name, k,
             kind.narrow     ? fmt::format("{0} < kPackedNarrow ? {0} : kPackedNarrow", vector)
             : kind.in_place ? fmt::format("APL_PACKED_LEAST({}, kPackedRows)", vector)
                             : vector);
    const std::size_t other = vectors * on_n + 2, by = vectors * accumulators;
    const std::string most =
        fmt::format("APL_VECTOR_REGISTERS < {} ? 1 : (APL_VECTOR_REGISTERS - {}) / {}", other + by, other, by);
    // Panels of M are as high for narrow tiles as for wide ones.
    out.line("  {}_rows_{} = {},", packed.name, k,
             kind.in_place            ? fmt::format("APL_PACKED_LEAST({}, 4)", most)
             : !kind.direct && k == 0 ? most
             : !kind.direct           ? fmt::format("{}_rows_0", packed.name)
             : kind.few_rows          ? fmt::format("APL_PACKED_LEAST({}_rows_{}, 4)", packed.name, k - 1)
                                      : fmt::format("APL_PACKED_LEAST({}, 16)", most));
  }
  out.line("}};");
}

}  // namespace

// Types of the kernel, and its own function: the description of the contraction and the call of the loops.
void PackedLowering::describe_packed(const PackedKernel& packed) {
  const Schedule& schedule = *packed.op.schedule;
  const Lmad& layout = unit_.function.values.type(stm_.pattern.front()).memory->layout;
  const std::string &name = packed.name, type = packed.type();
  Writer declarations;
  declarations.open("struct {} {{", type);
  std::vector<std::string> given;
  for (const Param& param : packed_params_) {
    const bool in = param.buffer && *param.buffer == BufferKind::global_in;
    declarations.line("{}{} {}{};", in ? "const " : "", c_type(param.type), param.buffer ? "*" : "", param.name);
    given.push_back(param.name);
  }
  if (packed_params_.empty()) declarations.line("char unused;");
  declarations.close("}};");
  print_sizes(packed, declarations);
  function_.declarations = declarations.take();

  const auto group_text = [&](std::size_t g) {
    std::vector<std::string> sizes;
    for (const std::size_t d : packed.groups[g])
      sizes.push_back(print(values_.poly(schedule.dims[d].size), unit_.dialect()));
    if (sizes.empty()) return std::string("{0, {0}}");
    return fmt::format("{{{}, {{{}}}}}", sizes.size(), join(sizes));
  };
  const auto strides_text = [&](std::size_t g, const std::function<Poly(std::size_t)>& stride) {
    std::vector<std::string> list;
    for (const std::size_t d : packed.groups[g]) list.push_back(print(values_.poly(stride(d)), unit_.dialect()));
    if (list.empty()) list.emplace_back("0");
    return fmt::format("{{{{{}}}}}", join(list));
  };
  const auto operands_text = [&](std::size_t s, std::size_t g) {
    std::vector<std::string> list;
    for (const std::size_t o : packed.mn_operands[s])
      list.push_back(strides_text(g, [&](std::size_t d) { return schedule.operands[o].strides[d]; }));
    for (const PackedNumber& number : packed.numbers[s])
      list.push_back(strides_text(g, [&](std::size_t d) { return (*number.strides)[d]; }));
    return fmt::format("{{{}}}", join(list));
  };
  const auto result_text = [&](std::size_t g) {
    return strides_text(g, [&](std::size_t d) { return layout.dims()[d].stride; });
  };
  KernelBlock& out = function_.body;
  out.clear();
  out.push_back(
      statement_text(fmt::format("const struct {} apl_arguments = {{{}}};", type, given.empty() ? "0" : join(given))));
  out.push_back(statement_text("struct apl_packed apl_contraction = {"));
  const auto field = [&](const std::string& field_name, const std::string& value) {
    out.push_back(statement_text(fmt::format("  .{} = {},", field_name, value)));
  };
  field("batch", group_text(0));
  field("m", group_text(1));
  field("n", group_text(2));
  field("k", group_text(3));
  field("m_bytes", fmt::format("{}", packed.side_bytes[0]));
  field("n_bytes", fmt::format("{}", packed.side_bytes[1]));
  field("m_operands", fmt::format("{}", packed.mn_operands[0].size() + packed.numbers[0].size()));
  field("n_operands", fmt::format("{}", packed.mn_operands[1].size() + packed.numbers[1].size()));
  field("m_row", operands_text(0, 1));
  field("m_step", operands_text(0, 3));
  field("n_row", operands_text(1, 2));
  field("n_step", operands_text(1, 3));
  field("m_result", result_text(1));
  field("n_result", result_text(2));
  std::vector<std::string> kernels;
  for (std::size_t k = 0; k < kMicroKernels.size(); ++k)
    kernels.push_back(packed.has(k) ? fmt::format("{{{0}_rows_{1}, {0}_columns_{1}, {0}_compute_{1}}}", name, k)
                                    : "{0, 0, 0}");
  field("kernels", fmt::format("{{{}}}", join(kernels)));
  field("accumulator_bytes", fmt::format("{}", packed.accumulator_bytes));
  if (packed.dots) field("pairs", "true");
  if (!packed.numbers[0].empty()) field("packs_m", "true");
  if (!packed.numbers[1].empty()) field("packs_n", "true");
  field("reorders", packed.contract.reduce.commutative ? "true" : "false");
  for (const char* part : {"pack_m", "pack_n", "combine", "store"}) field(part, fmt::format("{}_{}", name, part));
  out.push_back(statement_text("};"));
  out.push_back(statement_text("return apl_packed_run(&apl_contraction, &apl_arguments, apl_space);"));
  std::vector<std::string> list;
  for (const Param& param : packed_params_) list.push_back(parameter(param, unit_.dialect()));
  list.emplace_back("void *apl_space");
  function_.signature = fmt::format("static int64_t {}({})", name, join(list));
}

}  // namespace apl::lower
