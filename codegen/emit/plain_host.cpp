#include "codegen/emit/plain_host.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ir/builder.h"
#include "ir/sparse_soa.h"
#include "ir/walk.h"
#include "machine/target/records.h"

namespace apl::lower {

using namespace kernel;

std::string name_in_kernel_file(const apl::Function& entry) { return legal_name(entry.entry->name); }

HostText PlainHost::run_file() {
  const apl::Function& f = unit_.function;
  name_parameters();
  find_blocks(*f.body);
  find_arrays(*f.body);
  find_exchanged(*f.body);
  name_results();
  out_.indent();
  statements();
  for (std::size_t k = 0; k < f.body->results.size(); ++k) give_result(k);
  out_.line("return status;");
  const std::string statements = out_.take();
  out_ = {};
  out_.open("{} {}({}) {{", api("Error_t"), name_in_kernel_file(f), fmt::join(parameters(), ", "));
  out_.line("{} status = {};", api("Error_t"), api("Success"));
  // Freed on every way out.
  for (Value b : blocks_)
    if (!result_of_.contains(b)) declare_temporary(unit_.name(b));
  for (const std::string& name : scratch_) declare_temporary(name);
  if (has_capacities_) {
    for (Value b : blocks_)
      if (!result_of_.contains(b)) out_.line("[[maybe_unused]] int64_t {} = 0;", capacity(b));
    for (const std::string& name : scratch_) out_.line("int64_t {}_capacity = 0;", name);
  }
  out_.raw(statements);
  out_.close("}}");
  result_.text = out_.take();
  return std::move(result_);
}

// Blocks of the host's loops and branches, and of the arrays that these start with and yield.
void PlainHost::find_exchanged(const Body& body) {
  const auto note = [&](const Operand& x) {
    if (!x.is_value()) return;
    const Type& type = table_.type(x.value());
    if (type.is_memory()) exchanged_.insert(x.value());
    if (type.memory) exchanged_.insert(type.memory->block);
  };
  for (const Stm& stm : body.stms) {
    const Loop* loop = get_if<Loop>(stm);
    if (!loop && !is_branch(stm.op)) continue;
    for (Value v : stm.pattern) note(v);
    if (loop) {
      for (Value v : loop->params) note(v);
      for (const Operand& x : loop->initial) note(x);
    }
    for_each_body(stm.op, [&](const BodyPtr& inner) {
      for (const Operand& x : inner->results) note(x);
      find_exchanged(*inner);
    });
  }
}

void PlainHost::name_results() {
  const apl::Function& f = unit_.function;
  const auto is_decided_by_entry = [&](const Type& type) {
    return std::ranges::any_of(type.shape, [&](const Poly& size) {
      return std::ranges::any_of(f.result_sizes, [&](Value v) { return size.mentions(v); });
    });
  };
  for (std::size_t k = 0; k < f.body->results.size(); ++k) {
    results_.push_back(unit_.fresh(f.body->results.size() == 1 ? "result" : fmt::format("result_{}", k)));
    passing_.push_back(Passing::in_place);
    const Type type = table_.type(f.body->results[k]);
    if (!type.memory) continue;
    if (is_decided_by_entry(f.results[k])) {
      passing_.back() = Passing::allocated;
      allocated_[k] = unit_.fresh(results_.back() + "_shape");
    } else if (exchanged_.contains(type.memory->block)) {
      passing_.back() = Passing::copied;
    } else {
      result_of_[type.memory->block] = results_.back();
    }
  }
}

void PlainHost::give_result(std::size_t k) {
  const Operand& x = unit_.function.body->results[k];
  const Type type = table_.type(x);
  if (type.is_scalar()) {
    if (type.element != ScalarType::unit) out_.line("*{} = {};", results_[k], text(values_.operand(x)));
    return;
  }
  const std::string here = block(type.memory->block);
  if (passing_[k] == Passing::copied)
    run_call(copy_call(results_[k], here, checked_bytes({byte_size(type.element), type.shape, {}})));
  if (passing_[k] != Passing::allocated) return;
  for (std::size_t d = 0; d < type.rank(); ++d) out_.line("{}[{}] = {};", allocated_[k], d, text(type.shape[d]));
  out_.line("*{} = static_cast<{} *>({});", results_[k], element_type(type.element), here);
  out_.line("{} = NULL;  // the caller's now", here);
}

std::string PlainHost::element_type(ScalarType type) {
  return type == ScalarType::f16 ? "__half" : is_storage(type) ? "uint16_t" : c_type({type, false});
}

std::vector<std::string> PlainHost::parameters() const {
  const apl::Function& f = unit_.function;
  std::vector<std::string> list;
  for (Value size : f.sizes) list.push_back("int64_t " + unit_.name(size));
  for (std::size_t k = 0; k < f.params.size(); ++k) {
    // What holds nothing but the sizes of a sparse operand.
    if (std::ranges::any_of(find_soas(f), [&](const SparseSoa& soa) { return soa.first == k; })) continue;
    const Value param = f.params[k];
    const Type& type = f.type(param);
    const std::string element = element_type(type.element);
    list.push_back(type.is_scalar() ? fmt::format("{} {}", element, unit_.name(param))
                                    : fmt::format("const {} *{}", element, unit_.name(param)));
  }
  for (std::size_t k = 0; k < results_.size(); ++k) {
    const Type type = table_.type(f.body->results[k]);
    const std::string element = element_type(type.element);
    list.push_back(fmt::format("{} *{}{}", element, passing_[k] == Passing::allocated ? "*" : "", results_[k]));
    if (const auto sizes = allocated_.find(k); sizes != allocated_.end()) list.push_back("int64_t *" + sizes->second);
  }
  if (can_fail_) list.emplace_back("void *failure");
  list.push_back(api("Stream_t stream"));
  return list;
}

void PlainHost::declare_temporary(const std::string& name) {
  has_temporaries_ = true;
  const std::string end = unit_.fresh(name + "_end");
  out_.line("void *{} = NULL;", name);
  out_.line("const {}_kernels::release_at_end {} = {{&{}, stream}};", name_in_kernel_file(unit_.function), end, name);
}

// A name of the runtime's API.
std::string PlainHost::api(std::string_view name) const { return fmt::format("{}{}", unit_.dialect().api, name); }

void PlainHost::check_status() { out_.line("if (status != {}) return status;", api("Success")); }
std::string PlainHost::upload_call(const std::string& to, const std::string& from, const std::string& bytes) {
  return fmt::format("{}({}, {}, {}, {}, stream)", api("MemcpyAsync"), to, from, bytes, api("MemcpyHostToDevice"));
}
std::string PlainHost::download_call(const std::string& to, const std::string& from, const std::string& bytes) {
  return fmt::format("{}({}, {}, {}, {})", api("Memcpy"), to, from, bytes, api("MemcpyDeviceToHost"));
}
std::string PlainHost::copy_call(const std::string& to, const std::string& from, const std::string& bytes) {
  return fmt::format("{}({}, {}, {}, {}, stream)", api("MemcpyAsync"), to, from, bytes, api("MemcpyDeviceToDevice"));
}
// Whether a kernel can fail is known at the end: an earlier one may stand further down, in a loop.
std::string PlainHost::synchronise_call() { return "apl_synchronise(failure, stream)"; }
// The copy is on no stream of the caller's.
void PlainHost::download_scalar(const std::string& to, const std::string& from, const std::string& bytes) {
  run_call(synchronise_call());
  run_call(download_call(to, from, bytes));
}

// The bytes of an array, after a check that there can be one.
std::string PlainHost::checked_bytes(const Extent& extent) {
  if (const auto bytes = fixed_bytes(extent)) return fmt::format("{}", *bytes);
  const std::string shape = unit_.fresh("shape"), bytes = unit_.fresh("bytes");
  out_.line("const int64_t {}[] = {{{}}};", shape, sizes_text(extent));
  out_.line("const int64_t {} = apl_bytes_of({}, {}, {});", bytes, extent.width, shape,
            extent.shape.size() + (extent.rows.empty() ? 0 : 1));
  out_.line("if ({} < 0) return {};", bytes, api("ErrorMemoryAllocation"));
  return fmt::format("static_cast<size_t>({})", bytes);
}

void PlainHost::allocate(Value block, const Extent& extent) {
  if (result_of_.contains(block)) return;
  const std::string bytes = checked_bytes(extent);
  // A loop comes here again and again.
  run_call(has_capacities_ ? fmt::format("apl_reserve({}, &{}, &{}, stream)", bytes, unit_.name(block), capacity(block))
                           : fmt::format("apl_allocate({}, &{}, stream)", bytes, unit_.name(block)));
}

std::string PlainHost::reserve_threads(const std::string& hint, const Extent& wanted, bool may_lack) {
  Extent extent = wanted;
  for (Poly& size : extent.shape)
    if (may_lack) size = poly_max(size, 0);
  const std::string name = unit_.fresh(hint + "_of_threads", {"_capacity"});
  scratch_.push_back(name);
  const std::string bytes = checked_bytes(extent);
  run_call(has_capacities_ ? fmt::format("apl_reserve({}, &{}, &{}_capacity, stream)", bytes, name, name)
                           : fmt::format("apl_allocate({}, &{}, stream)", bytes, name));
  return name;
}

// Of each launch its own, so that calls on several streams do not meet.
std::string PlainHost::reserve_zeros(const std::string& bytes) {
  const std::string name = unit_.fresh("zeros", {"_capacity", "_bytes"});
  scratch_.push_back(name);
  out_.line("const size_t {}_bytes = static_cast<size_t>({});", name, bytes);
  run_call(has_capacities_ ? fmt::format("apl_reserve({0}_bytes, &{0}, &{0}_capacity, stream)", name)
                           : fmt::format("apl_allocate({0}_bytes, &{0}, stream)", name));
  out_.open("if ({}_bytes != 0) {{", name);
  run_call(fmt::format("{0}({1}, 0, {1}_bytes, stream)", api("MemsetAsync"), name));
  out_.close("}}");
  return name;
}

void PlainHost::release(const std::string& name) {
  for (const auto& [block, result] : result_of_)
    if (unit_.name(block) == name) return;
  out_.line("if ({0} != NULL) {1}({0}, stream);", name, api("FreeAsync"));
  out_.line("{} = NULL;", name);
}

std::string PlainHost::block(Value b) {
  for (Value param : unit_.function.params)
    if (const Type& type = table_.type(param); type.memory && type.memory->block == b) return unit_.name(param);
  const auto result = result_of_.find(b);
  return result == result_of_.end() ? unit_.name(b) : result->second;
}

void PlainHost::refuse_if(const ExprPtr& condition, apl_failure_code, Location, const std::string& message,
                          const std::vector<ExprPtr>&) {
  out_.line("if ({}) return {};  // {}", text(condition), api("ErrorInvalidValue"), comment_text(message));
}

std::string PlainHost::kernel_name(const kernel::Function& function) const {
  return fmt::format(fmt::runtime(unit_.dialect().kernel_as),
                     fmt::format("{}_kernels::{}", name_in_kernel_file(unit_.function), function.name));
}

void PlainHost::start_kernel(const Kernel& lowering, const Launched& made, const std::vector<std::string>& arguments) {
  const kernel::Function& function = made.function;
  const std::string kernel = kernel_name(function);
  can_fail_ = can_fail_ || lowering.can_fail() || lowering.sees_failed();
  out_.open("{{");
  pack_arguments(lowering, arguments);
  if (function.shared_bytes > unit_.dialect().usual_shared_bytes)
    run_call(fmt::format("{}({}, {}, {})", api("FuncSetAttribute"), kernel,
                         api("FuncAttributeMaxDynamicSharedMemorySize"), function.shared_bytes));
  out_.line("const int64_t blocks = {};", made.blocks);
  out_.line("if (blocks > INT32_MAX) return {};", api("ErrorInvalidConfiguration"));
  out_.open("if (blocks > 0) {{");
  run_call(fmt::format("{}({}, dim3(static_cast<unsigned>(blocks)), dim3({}), args, {}, stream)", api("LaunchKernel"),
                       kernel, function.threads, function.shared_bytes));
  out_.close("}}");
  out_.close("}}");
}

bool PlainHost::choose_plan(PlanKernels& plan_kernels) {
  if (!plan_kernels.open && !is_known(plan_kernels)) return false;
  plan_kernels.open = true;
  return true;
}

void PlainHost::chosen_number(const PlanKernels& plan_kernels, Value v) {
  for (std::size_t d = 0; d < plan_kernels.data.dims().size(); ++d) {
    const Schedule::Dim& dim = plan_kernels.data.dims()[d];
    if (v != parameter_of(dim.tile) && v != parameter_of(dim.reg)) continue;
    out_.line("[[maybe_unused]] const int64_t {} = {};", unit_.name(v),
              v == parameter_of(dim.tile) ? plan_kernels.plans[0].tile[d] : plan_kernels.plans[0].reg[d]);
  }
}

void PlainHost::launch_plan(const Stm& stm, const SegOp& op, const PlanKernels& plan_kernels) {
  const Stm planned = with_plan(stm, plan_kernels.data, plan_kernels.plans[0], unit_);
  Kernel lowering(unit_, planned);
  lowering.set_resident(plan_kernels.resident[0]);
  Launched made = lower_kernel(lowering, op);
  if (!lowering.scratch().empty()) unsupported(stm.location, "memory of threads in a tiled contraction");
  std::vector<std::string> arguments = arguments_of(lowering);
  add_failure(lowering, arguments);
  out_.line("");
  start_kernel(lowering, made, arguments);
  describe(plan_kernels, made.function, table_.name(stm.pattern.front()));
  add_info(made.function, stm);
  result_.kernels.push_back(std::move(made.function));
}

// The contraction, how its operands lie, and its plan.
void PlainHost::describe(const PlanKernels& plan_kernels, const kernel::Function& function, const std::string& result) {
  const PlanData& data = plan_kernels.data;
  const apl_plan& plan = plan_kernels.plans[0];
  std::vector<std::string> dims, space, reduced, operands, layouts, numbers;
  for (const Schedule::Dim& dim : data.dims()) {
    const Value tile = parameter_of(dim.tile);
    std::string name = tile ? apl::parameter_name(unit_.function, tile) : text(dim.size);
    if (tile) name = name.substr(name.rfind('.') + 3);  // "mm.T_a" is of a
    dims.push_back(name);
    (dims.size() <= data.space_rank ? space : reduced).push_back(name);
  }
  for (const Schedule::Operand& operand : data.schedule.operands) {
    std::vector<std::string> along, strides;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      if (operand.strides[d] == Poly(0)) continue;
      along.push_back(dims[d]);
      strides.push_back(fmt::format("{} by {}", dims[d], text(operand.strides[d])));
    }
    operands.push_back(fmt::format("{}[{}]", operand.name, fmt::join(along, ", ")));
    layouts.push_back(fmt::format("{}: {}", operand.name, fmt::join(strides, ", ")));
  }
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (d >= data.space_rank) {
      numbers.push_back(fmt::format("{}: {} deep", dims[d], plan.tile[d]));
    } else if (parameter_of(data.dims()[d].tile)) {
      numbers.push_back(fmt::format("{}: {} threads x {} registers", dims[d], plan.tile[d], plan.reg[d]));
    }
  }
  Contraction made{plan_kernels.name, function.name, {}, plan_kernels.passed_over, plan_kernels.has_next};
  made.comments.push_back(fmt::format("{}: {}[{}] from {}, reduced over {}", function.name, result,
                                      fmt::join(space, ", "), fmt::join(operands, ", "), fmt::join(reduced, ", ")));
  made.comments.push_back(fmt::format("  elements apart: {}", fmt::join(layouts, "; ")));
  made.comments.push_back(fmt::format("  plan for {}: {}{}", device_.empty() ? unit_.target.device : device_,
                                      fmt::join(numbers, "; "),
                                      plan.stages > 0 ? fmt::format("; {} stages", plan.stages) : ""));
  made.comments.push_back(
      fmt::format("  a block has {} threads and {} bytes of shared memory", function.threads, function.shared_bytes));
  contractions_.push_back(std::move(made));
}

}  // namespace apl::lower
