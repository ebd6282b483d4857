#include "codegen/contraction/plan_kernels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ir/builder.h"
#include "ir/walk.h"
#include "machine/target/records.h"

namespace apl::lower {
namespace {

// Kernels of the host, in loops and branches, too.
void for_each_kernel(const Body& body, const std::function<void(const Stm&)>& visit) {
  for (const Stm& stm : body.stms) {
    if (get_if<SegOp>(stm)) visit(stm);
    if (get_if<Loop>(stm) || is_branch(stm.op))
      for_each_body(stm.op, [&](const BodyPtr& inner) { for_each_kernel(*inner, visit); });
  }
}

void check_given(const PlanData& data, const Unit& unit, const apl_forced& forced, const apl_device& device) {
  if (auto refusal = refuse_given(data, unit.function, forced, device)) throw Unsupported{std::move(*refusal)};
}

// The best one whose kernel is not known to spill, or none at all.
void take_one_plan(PlanKernels& made, const PlanData& data, const Unit& unit, const apl_forced& forced,
                   const apl_device& device, const CodegenOptions& options) {
  const std::vector<apl_plan> plans = plans_by_price(data, unit.function, forced, device, options.sizes);
  if (plans.empty()) return;
  if (const auto found = options.passed_over.find(made.name); found != options.passed_over.end())
    made.passed_over = found->second;
  const std::size_t at = made.passed_over.size() < plans.size() ? made.passed_over.size() : 0;
  made.has_next = at + 1 < plans.size();
  made.plans = {plans[at]};
}

// Left alone, the compiler gives a thread of few accumulators as many registers as there are, so that fewer blocks than
// the model counts on would run, and one of many fewer than it needs.
std::int64_t resident_blocks(const PlanData& data, const apl_plan& plan, const apl_device& device) {
  constexpr std::int64_t kSomeSize = 64;
  apl_contraction contraction;
  fill_in(
      data, [](Value) { return kSomeSize; }, contraction);
  apl_plan_cost cost;
  apl_plan_estimate(&contraction, &plan, &device, &cost);
  if (device.warp == 0 || cost.has_mainloop == 0) return 0;
  return std::max(cost.blocks_per_multiprocessor, 1);
}

// Whether the condition, computed by the host, is false whatever the sizes are, now that tile numbers are known.
bool is_never(const Operand& condition, const Unit& unit) {
  if (!condition.is_value()) return false;
  const auto numbered = [&](const Poly& p) {
    return p.substitute([&](Value v) -> std::optional<Poly> {
      const auto number = unit.tile(v);
      return number ? std::optional(Poly(*number)) : std::nullopt;
    });
  };
  const auto made_by = [&](Value v) {
    const Stm* made = nullptr;
    for_each_stm(*unit.function.body, [&](const Stm& stm) {
      if (stm.pattern.size() == 1 && stm.pattern.front() == v) made = &stm;
    });
    return made;
  };
  const Stm* compare = made_by(condition.value());
  const Compare* less = compare != nullptr ? get_if<Compare>(*compare) : nullptr;
  if (less == nullptr || less->op != CompareOp::lt || !less->x.is_constant() || !less->y.is_value()) return false;
  const Stm* size = made_by(less->y.value());
  const SizeExpr* remainder = size != nullptr ? get_if<SizeExpr>(*size) : nullptr;
  return remainder != nullptr && numbered(remainder->value).constant() == 0 &&
         less->x.constant() == i64_constant(0).constant();
}

// The kernel without the branch for what is left of a reduction, where its size is a multiple of the tile's depth.
BodyPtr without_remainder(const BodyPtr& body, const Unit& unit) {
  std::vector<Stm> stms;
  Substitution stands_for;
  for (const Stm& stm : body->stms) {
    const If* remainder = get_if<If>(stm);
    if (remainder == nullptr || !remainder->else_body->stms.empty() || !is_never(remainder->condition, unit)) {
      stms.push_back(stm);
      continue;
    }
    for (std::size_t k = 0; k < stm.pattern.size(); ++k)
      stands_for.insert_or_assign(stm.pattern[k], remainder->else_body->results[k]);
  }
  if (stands_for.empty()) return body;
  ValueTable values = unit.function.values;  // what it stands for lies in the same memory
  return substitute(make_body(std::move(stms), body->results), stands_for, values);
}

}  // namespace

std::map<Value, std::shared_ptr<PlanKernels>> find_plan_kernels(Unit& unit, const CodegenOptions& options) {
  std::map<Value, std::shared_ptr<PlanKernels>> all;
  auto device = find_device(options.device.empty() ? unit.target.device : options.device);
  if (!device) throw Unsupported{std::move(device).error()};
  for_each_kernel(*unit.function.body, [&](const Stm& stm) {
    auto data = plan_data(stm, unit.function);
    if (!data) return;
    apl_forced forced;
    forced_numbers(*data, unit.function, options.parameters, forced);
    check_given(*data, unit, forced, *device);
    if (options.plans <= 1 && !options.one_plan) return;
    // Packed panels have the micro-kernel's tile, and blocks by the machine's caches.
    if (!unit.target.on_device() && data->schedule.unit == Schedule::Unit::packed) return;
    auto plan_kernels = std::make_shared<PlanKernels>();
    plan_kernels->name = (unit.function.entry ? unit.function.entry->name : unit.function.name) + "_" +
                         unit.function.values.name(stm.pattern.front());
    if (options.one_plan) {
      take_one_plan(*plan_kernels, *data, unit, forced, *device, options);
    } else {
      plan_kernels->plans = program_plans(*data, unit.function, options.parameters, forced, *device, options.plans);
    }
    for (const apl_plan& plan : plan_kernels->plans) {
      apl_forced listed{};
      std::copy_n(plan.tile, APL_PLAN_DIMS, listed.tile);
      std::copy_n(plan.reg, APL_PLAN_DIMS, listed.reg);
      listed.stages = plan.stages;
      check_given(*data, unit, listed, *device);
    }
    if (plan_kernels->plans.empty()) return;
    for (const apl_plan& plan : plan_kernels->plans)
      plan_kernels->resident.push_back(resident_blocks(*data, plan, *device));
    plan_kernels->data = std::move(*data);
    all.emplace(stm.pattern.front(), std::move(plan_kernels));
  });
  return all;
}

std::string contraction_text(const PlanData& data, Values& host) {
  const auto number = [&](const Poly& p) { return kernel::print(host.poly(p), c_dialect()); };
  // What a dim is does not depend on sizes.
  apl_contraction known;
  fill_in(
      data, [](Value) { return 2; }, known);
  static constexpr const char* kKinds[] = {"APL_DIM_BATCH", "APL_DIM_INVARIANT", "APL_DIM_FREE",
                                           "APL_DIM_M",     "APL_DIM_N",         "APL_DIM_CONTRACTED"};
  std::vector<std::string> dims, operands;
  for (std::size_t d = 0; d < data.dims().size(); ++d)
    dims.push_back(
        fmt::format("{{{}, {}, {}}}", number(data.dims()[d].size), kKinds[known.dims[d].kind], known.dims[d].fixed));
  for (std::size_t o = 0; o < data.schedule.operands.size(); ++o) {
    const Schedule::Operand& operand = data.schedule.operands[o];
    const apl_plan_operand& one = known.operands[o];
    std::vector<std::string> strides;
    for (std::size_t d = 0; d < operand.strides.size(); ++d) {
      const bool anywhere = operand.strides[d].is_zero() && operand.varies(d);
      strides.push_back(anywhere ? fmt::format("{}", one.strides[d]) : number(operand.strides[d]));
    }
    operands.push_back(fmt::format("{{{}, {}, {{{}, {}}}, {}, {}, {{{}}}}}", one.bytes, one.conditions,
                                   one.row_numbers[0], one.row_numbers[1], one.computed, one.read_bytes,
                                   fmt::join(strides, ", ")));
  }
  return fmt::format("{{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}f, {{{}}}, {{{}}}}}", data.dims().size(),
                     data.space_rank, data.schedule.operands.size(), data.result_bytes, data.widest_result,
                     data.accumulator_bytes, data.epilogue_arrays, data.stored_sum_bytes, known.general, known.matrix,
                     known.copies, number(data.copied_bytes), known.parts_transposed,
                     fmt::format("{:.1f}", data.operations), fmt::join(dims, ", "), fmt::join(operands, ", "));
}

std::string plan_kernel_text(const Module& module, const apl::Function& function, const PlanData& data,
                             const apl_plan& plan, Target target, const apl_device& device) {
  std::string text;
  for_each_kernel(*function.body, [&](const Stm& stm) {
    const auto own = text.empty() ? plan_data(stm, function) : std::nullopt;
    if (!own || own->parameters != data.parameters || own->splits() != data.splits()) return;
    FileScope file(module);
    Unit unit(function, target, {}, file);
    const Stm planned = with_plan(stm, data, plan, unit);
    Kernel lowering(unit, planned);
    lowering.set_resident(resident_blocks(data, plan, device));
    text = kernel::print(lowering.run(), *target.dialect);
  });
  return text;
}

std::string plan_text(const PlanData& data, const apl_plan& plan) {
  const std::size_t rank = data.dims().size();
  return fmt::format("{{{{{}}}, {{{}}}, {}, {}}}", fmt::join(plan.tile, plan.tile + rank, ", "),
                     fmt::join(plan.reg, plan.reg + rank, ", "), plan.stages, plan.tiles_per_block);
}

Stm with_plan(const Stm& stm, const PlanData& data, const apl_plan& plan, Unit& unit) {
  for (std::size_t d = 0; d < data.dims().size(); ++d) {
    if (Value tile = parameter_of(data.dims()[d].tile)) unit.set_tile(tile, plan.tile[d]);
    if (Value reg = parameter_of(data.dims()[d].reg)) unit.set_tile(reg, plan.reg[d]);
  }
  Stm changed = stm;
  // All kernels of a contraction have the same arguments, so what only one of them can do without stays.
  SegOp& kernel = std::get<SegOp>(changed.op);
  if (data.symbols().empty()) kernel.body = without_remainder(kernel.body, unit);
  if (kernel.schedule->unit == Schedule::Unit::packed) kernel.schedule->unit = Schedule::Unit::general;
  kernel.schedule->stages = plan.stages;
  kernel.schedule->tiles_per_block = plan.tiles_per_block;
  return changed;
}

}  // namespace apl::lower
