// A contraction on a CPU: functions that pack a panel (packed_panels.cpp), compute a micro-tile (packed_compute.cpp)
// and store it (packed_store.cpp), and the description with which runtime/backends/packed.h runs the loops around them
// (packed_description.cpp). Micro-kernels are loops over vectors' worth of columns whose bounds the C compiler knows:
// it makes vectors of them and keeps accumulators in registers, for any map function and operator.
#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "codegen/contraction/packed_kernel.h"
#include "codegen/lower/lower.h"
#include "ir/schedule.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

namespace {

// Steps that pack and compute: the first contraction in the loops over the depth.
std::optional<ScheduleStep> first_step(const Body& body) {
  for (const Stm& stm : body.stms)
    if (const Loop* loop = get_if<Loop>(stm)) {
      auto step = schedule_step(*loop->body);
      return step ? step : first_step(*loop->body);
    }
  return schedule_step(body);
}

// Dims of the schedule by their group.
std::array<std::vector<std::size_t>, 4> groups_of(const Schedule& schedule) {
  std::array<std::vector<std::size_t>, 4> groups;
  for (std::size_t d = 0; d < schedule.dims.size(); ++d) {
    const Schedule::Role role = schedule.dims[d].role;
    const std::size_t g = role == Schedule::Role::m       ? 1
                          : role == Schedule::Role::n     ? 2
                          : role == Schedule::Role::depth ? 3
                                                          : 0;
    groups[g].push_back(d);
  }
  // In the order in which the epilogue takes the flattened index apart.
  const auto axes = axes_of(schedule);
  groups[1] = axes[axes.size() - 2];
  groups[2] = axes.back();
  return groups;
}

// Of each operand: 1 if it varies along N, else it is M's, 0.
std::vector<std::size_t> mn_of_operands(const Schedule& schedule, const std::vector<std::size_t>& n_dims) {
  std::vector<std::size_t> mn;
  for (const Schedule::Operand& operand : schedule.operands)
    mn.push_back(std::ranges::any_of(n_dims, [&](std::size_t d) { return operand.varies(d); }) ? 1 : 0);
  return mn;
}

}  // namespace

bool is_packed(const Unit& unit, const SegOp& op) {
  return !unit.target.on_device() && op.schedule && op.schedule->unit == Schedule::Unit::packed;
}

void run_packed(Kernel& kernel, const SegOp& op) { PackedLowering(kernel).run_packed(op); }

// What all functions of the kernel begin with: arguments, and what is the same for a batch.
KernelBlock PackedLowering::packed_head(const PackedKernel& packed) {
  const SegOp& op = packed.op;
  KernelBlock out;
  out.push_back(statement_text(fmt::format("const struct {} *const apl_arguments = apl_arguments_;", packed.type())));
  for (const Param& param : packed_params_) {
    if (param.buffer) {
      const bool in = *param.buffer == BufferKind::global_in;
      out.push_back(statement_text(fmt::format("{0}{1} *restrict const {2} = apl_arguments->{2};", in ? "const " : "",
                                               c_type(param.type), param.name)));
    } else {
      out.push_back(statement_text(fmt::format("const {0} {1} = apl_arguments->{1};", c_type(param.type), param.name)));
    }
  }
  for (const Value v : outside_)
    if (const auto number = unit_.tile(v)) out.push_back(declare(kInt, unit_.name(v), literal(*number)));
  std::size_t batch = 0;
  for (std::size_t d = 0; d + 2 < op.space.size(); ++d)
    out.push_back(
        statement_text(fmt::format("const int64_t {} = apl_batch[{}];", unit_.name(op.space[d].index), batch++)));
  // Scalars of the whole block.
  for (const Stm& stm : op.body->stms) {
    const bool scalar = !stm.pattern.empty() &&
                        std::ranges::all_of(stm.pattern, [&](Value v) { return unit_.function.type(v).is_scalar(); });
    if (scalar) statement(stm, out);
  }
  return out;
}

// A function of the kernel, and the line that it begins with.
void PackedLowering::packed_function(const PackedKernel& packed, const std::string& ending, std::string_view kind,
                                     std::string_view list, KernelBlock code, std::string_view first) {
  kernel::Function made;
  made.name = packed.name + ending;
  made.signature = fmt::format("{} void {}({})", kind, made.name, list);
  if (!first.empty()) made.body.push_back(statement_text(std::string(first)));
  const KernelBlock head = packed_head(packed);
  made.body.insert(made.body.end(), head.begin(), head.end());
  made.body.insert(made.body.end(), code.begin(), code.end());
  function_.before.push_back(std::move(made));
}

// A function that does for each width of a panel what `ending`_of does for the one that it is given as a constant.
void PackedLowering::packed_widths(const PackedKernel& packed, const std::string& ending, std::string_view kind,
                                   std::string_view list, std::string_view arguments, std::string_view width,
                                   std::span<const std::size_t> kernels) {
  kernel::Function made;
  made.name = packed.name + ending;
  made.signature = fmt::format("{} void {}({})", kind, made.name, list);
  for (const std::size_t k : kernels)
    made.body.push_back(statement_text(
        k == kernels.back() ? fmt::format("{}_of({}, {}_columns_{});", made.name, arguments, packed.name, k)
                            : fmt::format("if ({0} == {1}_columns_{2}) {{ {3}_of({4}, {1}_columns_{2}); return; }}",
                                          width, packed.name, k, made.name, arguments)));
  function_.before.push_back(std::move(made));
}

// Where an operand begins: its window in the first block, in this batch.
Poly PackedLowering::packed_begin(const PackedKernel& packed, std::size_t operand) {
  const CopyTile& copy = packed.copy(operand);
  return packed_start(packed, unit_.function.values.type(copy.source).memory->layout.offset() + copy.window.offset());
}

// The same of any number that is affine in the window's indices.
Poly PackedLowering::packed_start(const PackedKernel& packed, const Poly& start) {
  const SegOp& op = packed.op;
  std::set<Value> known;
  for (std::size_t d = 0; d + 2 < op.space.size(); ++d) known.insert(op.space[d].index);
  for (const Stm& stm : op.body->stms) known.insert(stm.pattern.begin(), stm.pattern.end());
  return start.substitute([&](Value v) -> std::optional<Poly> {
    if (v == packed.m_index || v == packed.n_index) return Poly(0);
    if (outside_.contains(v) || known.contains(v) || unit_.tile(v)) return std::nullopt;
    return Poly(0);  // a loop over tiles of the depth
  });
}

std::string PackedLowering::packed_source(const PackedKernel& packed, std::size_t operand) {
  return buffer(unit_.function.values.type(packed.copy(operand).source).memory->block, stm_.location).name;
}

// Element of operand `k` of M or N, where `number(t)` is that of its table `t` at this row and step.
ExprPtr PackedLowering::packed_element(const PackedKernel& packed, std::size_t s, std::size_t k,
                                       const std::function<ExprPtr(std::size_t)>& number) {
  const std::size_t operand = packed.mn_operands[s][k];
  ExprPtr at = number(k), inside;
  const auto also = [&](const ExprPtr& test) { inside = inside ? infix("&&", inside, test) : test; };
  for (std::size_t x = 0; x < packed.numbers[s].size(); ++x) {
    const PackedNumber& one = packed.numbers[s][x];
    if (one.operand != operand) continue;
    const ExprPtr here = number(packed.mn_operands[s].size() + x);
    if (one.condition != nullptr) {
      also(infix("<=", number_of(0), here));
      if (one.condition->bound) also(infix("<", here, values_.poly(*one.condition->bound)));
    } else {
      const MemoryBinding& from = *unit_.function.values.type(one.gather->positions).memory;
      const std::string positions = buffer(from.block, stm_.location).name;
      at = plus(at, mul(cast(kIndex, element(positions, plus(values_.poly(from.layout.offset()), here))),
                        values_.poly(one.gather->stride)));
    }
  }
  const ExprPtr value = element(packed_source(packed, operand), at);
  return inside ? select(inside, value, values_.operand(packed.copy(operand).pad)) : value;
}

CType PackedLowering::packed_type(const PackedKernel& packed, std::size_t operand) const {
  return {unit_.function.values.type(packed.copy(operand).source).element, false};
}

void PackedLowering::run_packed(const SegOp& op) {
  const ValueTable& values = unit_.function.values;
  const Schedule& schedule = *op.schedule;
  const auto step = first_step(*op.body);
  if (!step) unsupported(stm_.location, "a packed contraction without a step of the depth");
  const TileContract& contract = *step->contract;
  packed_params_ = function_.params;

  // Tile numbers are 1: indices of blocks are those of elements.
  const std::map<Value, std::int64_t> numbers = unit_.tiles();
  for (const Schedule::Dim& dim : schedule.dims)
    for (const Poly& number : {dim.tile, dim.reg})
      if (const Value parameter = parameter_of(number)) unit_.set_tile(parameter, 1);

  const auto groups = groups_of(schedule);
  const std::vector<std::size_t> mn_of = mn_of_operands(schedule, groups[2]);
  PackedKernel packed = {.op = op,
                         .contract = contract,
                         .name = function_.name,
                         .m_index = op.space[op.space.size() - 2].index,
                         .n_index = op.space.back().index,
                         .groups = groups,
                         .parts = PackedParts(contract.map, mn_of, values)};
  for (std::size_t o = 0; o < mn_of.size(); ++o) packed.mn_operands[mn_of[o]].push_back(o);
  for (const Stm& stm : op.body->stms)
    if (const CopyTile* copy = get_if<CopyTile>(stm)) packed.copies[stm.pattern.front()] = copy;
  for (const auto& [copy, tile] : step->copies) packed.copies[tile] = copy;
  for (std::size_t o = 0; o < mn_of.size(); ++o) {
    const CopyTile& copy = packed.copy(o);
    std::vector<PackedNumber>& numbers = packed.numbers[mn_of[o]];
    for (std::size_t c = 0; c < copy.where.size(); ++c)
      numbers.push_back({o, &copy.where[c].at, &schedule.operands[o].conditions[c], &copy.where[c], nullptr});
    for (std::size_t g = 0; g < copy.gathers.size(); ++g)
      numbers.push_back({o, &copy.gathers[g].at, &schedule.operands[o].gathers[g], nullptr, &copy.gathers[g]});
  }
  packed.dots = is_dot_product(packed.parts, contract.reduce, values);
  packed.explicit_vectors = !packed.dots && is_sum_of_products(packed.parts, contract.reduce, values);
  const Lmad& layout = values.type(stm_.pattern.front()).memory->layout;
  packed.results_begin = layout.offset();
  for (std::size_t b = 0; b < groups[0].size(); ++b)
    packed.results_begin += Poly(op.space[b].index) * layout.dims()[groups[0][b]].stride;
  const auto bytes_of = [&](const Operand& x) { return static_cast<std::int64_t>(byte_size(values.type(x).element)); };
  for (const Operand& neutral : contract.reduce.neutral) {
    packed.accumulator_types.push_back({values.type(neutral).element, false});
    packed.accumulator_offsets.push_back(packed.accumulator_bytes);
    packed.accumulator_bytes += bytes_of(neutral);
    packed.widest = std::max(packed.widest, bytes_of(neutral));
  }
  for (const Operand& result : packed.parts.mn[1].body->results)
    packed.widest = std::max(packed.widest, bytes_of(result));

  for (const std::size_t s : {0U, 1U}) pack_panels(packed, s);
  for (std::size_t k = 0; k < kMicroKernels.size(); ++k)
    if (packed.has(k)) compute_packed(packed, k);
  combine_packed(packed);
  store_packed(packed);
  describe_packed(packed);
  for (const auto& [value, number] : numbers) unit_.set_tile(value, number);
}

}  // namespace apl::lower
