// Host code: kernels, and the choice among those of one contraction.
#include "codegen/host/host.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "codegen/kernel/c_string.h"
#include "ir/team.h"
#include "ir/walk.h"

namespace apl::lower {

using namespace kernel;

namespace {

// Bytes that arrays of a kernel's threads take at a time, and a number of threads that a launch has then, a multiple
// of.
constexpr std::int64_t kMostThreadMemory = std::int64_t{1} << 31, kThreadsOfPart = 256;
// For tests: another number of bytes.
constexpr const char* kThreadMemory = "bytes_of_threads";

}  // namespace

bool Host::is_known(const PlanKernels& plan_kernels) const {
  const std::set<Value> symbols = plan_kernels.data.symbols();
  return std::all_of(symbols.begin(), symbols.end(), [&](Value v) { return known_.contains(v); });
}

// The host code of a choice among plans, before the first of its numbers. Where a size comes later there is none, and
// numbers are the defaults.
bool Host::choose_plan(PlanKernels& plan_kernels) {
  if (plan_kernels.open) return true;
  if (!is_known(plan_kernels)) return false;
  plan_kernels.open = true;
  plan_kernels.name =
      unit_.fresh_in_file(plan_kernels.name + "_plan", {"_data", "_kernels", "_parameters", "_plans", "_set"});
  out_.line("");
  out_.line("const struct apl_contraction {}_data = {};", plan_kernels.name,
            contraction_text(plan_kernels.data, values_));
  out_.line("int32_t {} = 0;", plan_kernels.name);
  out_.line("status = ctx->backend->choose(ctx, &{0}_data, &{0}_set, &{0});", plan_kernels.name);
  check_status();
  return true;
}

// How often a reduction is split is chosen with the variant, which stands behind.
bool Host::choose_splits(Value v) {
  for (const auto& [choose, variants] : variants_) {
    if (!variants->splits || v != variants->splits) continue;
    if (offers_variants() && is_known(variants->tiled())) {
      write_choice(*variants, unit_, values_, out_);
    } else {
      out_.line("const int64_t {} = 1;", unit_.name(v));
    }
    out_.line("(void){};", unit_.name(v));
    return true;
  }
  return false;
}

void Host::chosen_number(const PlanKernels& plan_kernels, Value v) {
  for (std::size_t d = 0; d < plan_kernels.data.dims().size(); ++d) {
    const Schedule::Dim& dim = plan_kernels.data.dims()[d];
    if (v != parameter_of(dim.tile) && v != parameter_of(dim.reg)) continue;
    out_.line("const int64_t {} = {}_plans[{}].{}[{}];", unit_.name(v), plan_kernels.name, plan_kernels.name,
              v == parameter_of(dim.tile) ? "tile" : "reg", d);
    out_.line("(void){};", unit_.name(v));
  }
}

Host::Launched Host::lower_kernel(Kernel& lowering, const SegOp& op) {
  Launched made{lowering.run(), {}};
  if (!unit_.target.on_device()) return made;
  Poly indices = 1;
  for (const SegDim& dim : op.space) indices *= dim.bound;
  const Poly threads = op.team ? indices * *op.team : indices;
  const Poly of_block = made.function.threads * made.function.indices;
  made.blocks = op.level == SegLevel::block ? text(indices) : text(ceil_div(threads, of_block));
  if (op.blocks) {
    const Poly one_each = ceil_div(threads, Poly(made.function.threads));
    made.blocks = text(select(infix(">", values_.poly(*op.blocks), literal(std::int64_t{1})),
                              values_.poly(indices * *op.blocks), values_.poly(one_each)));
  }
  if (const ExprPtr walking = lowering.tile_loop_blocks(op, values_)) made.blocks = text(walking);
  return made;
}

SparseCall Host::write_sparse_product(const Stm& stm) {
  return write_sparse_call(
      stm, unit_, values_, [&](Value v) { return block(v); }, declarations_, out_);
}

void Host::launch(const Stm& stm) {
  check_results(stm, kernel_frame(stm));
  const SparseCall call = write_sparse_product(stm);
  if (!call.made.empty()) out_.open("if (!{}) {{", call.made);
  launch_own(stm);
  if (call.epilogue) {
    out_.close("}} else {{");
    out_.indent();
    launch_own(*call.epilogue);
  }
  if (!call.made.empty()) out_.close("}}");
}

// Packed operands need memory, of which the kernel says how much.
void Host::launch_packed(const Stm& stm) {
  Kernel lowering(unit_, stm);
  Launched made = lower_kernel(lowering, kernel_frame(stm));
  std::vector<std::string> arguments = arguments_of(lowering);
  out_.line("");
  arguments.push_back(reserve_packed(made.function.name, arguments));
  start_kernel(lowering, made, arguments);
  add_info(made.function, stm);
  result_.kernels.push_back(std::move(made.function));
}

void Host::launch_own(const Stm& stm) {
  const SegOp op = kernel_frame(stm);
  if (!unit_.target.on_device() && op.schedule && op.schedule->unit == Schedule::Unit::packed)
    return launch_packed(stm);
  const auto plan_kernels = stm.pattern.empty() ? plan_kernels_.end() : plan_kernels_.find(stm.pattern.front());
  if (plan_kernels != plan_kernels_.end() && plan_kernels->second->open)
    return launch_plan(stm, op, *plan_kernels->second);
  if (op.rows && unit_.target.on_device()) {
    const ExprPtr width = values_.poly(row_width(op)), team = values_.poly(*op.team);
    refuse_if(infix(">", width, mul(team, literal(kRowElements))), APL_ASSERT, stm.location,
              "rows of %lld elements are too long for teams of %lld threads", {width, team});
  }
  Kernel lowering(unit_, stm);
  Launched made = lower_kernel(lowering, op);
  std::vector<std::string> arguments = arguments_of(lowering);
  out_.line("");
  const std::optional<Part> part = part_of(lowering, op);
  add_scratch(lowering, op, part, arguments);
  add_failure(lowering, arguments);
  if (part) {
    out_.open("for (int64_t {0} = 0; {0} < {1}; {0} += {2}) {{", part->first, part->threads, part->count);
    made.blocks = fmt::format("apl_ceil_div(apl_index_min({}, {} - {}), {})", part->count, part->threads, part->first,
                              made.function.threads);
  }
  start_kernel(lowering, made, arguments);
  if (part) out_.close("}}");
  add_info(made.function, stm);
  // What not every variant needs is compiled when that variant is chosen.
  const bool waits = variant_.variants != nullptr && unit_.target.on_device();
  if (waits) variant_.variants->kernels[variant_.number].push_back(made.function.name);
  (waits ? result_.lazy_kernels : result_.kernels).push_back(std::move(made.function));
}

void Host::start_kernel(const Kernel& lowering, const Launched& made, const std::vector<std::string>& arguments) {
  if (!unit_.target.on_device()) {
    out_.line("{}({});", made.function.name, fmt::format("{}", fmt::join(arguments, ", ")));
    // What a kernel that failed has not written may be an index of the next one, or what a loop waits for.
    if (lowering.can_fail()) run_call(synchronise_call());
  } else {
    awaits_checks_ = awaits_checks_ || lowering.can_fail();
    out_.open("{{");
    pack_arguments(lowering, arguments);
    out_.line(
        "const struct apl_launch launch = {{.kernel = \"{}\", .blocks = {}, .threads = {}, .shared_bytes = {}, "
        ".arg_count = {}, .args = args}};",
        made.function.name, made.blocks, made.function.threads, made.function.shared_bytes, arguments.size());
    out_.line("status = ctx->backend->launch(ctx, &launch);");
    check_status();
    out_.close("}}");
  }
}

// A kernel for each plan; the one that was chosen is launched.
void Host::launch_plan(const Stm& stm, const SegOp& op, const PlanKernels& plan_kernels) {
  std::vector<std::string> names, plans, cases;
  std::vector<std::string> arguments;
  out_.line("");
  if (unit_.target.on_device()) out_.open("{{");
  for (std::size_t k = 0; k < plan_kernels.plans.size(); ++k) {
    const Stm planned = with_plan(stm, plan_kernels.data, plan_kernels.plans[k], unit_);
    Kernel lowering(unit_, planned);
    lowering.set_resident(plan_kernels.resident[k]);
    Launched made = lower_kernel(lowering, op);
    if (!lowering.scratch().empty()) unsupported(stm.location, "memory of threads in a tiled contraction");
    if (k == 0) {
      arguments = arguments_of(lowering);
      add_failure(lowering, arguments);
      awaits_checks_ = awaits_checks_ || (unit_.target.on_device() && lowering.can_fail());
      if (unit_.target.on_device()) {
        pack_arguments(lowering, arguments);
        out_.line("struct apl_launch launch = {{.arg_count = {}, .args = args}};", arguments.size());
      }
      out_.open("switch ({}) {{", plan_kernels.name);
    }
    const std::string label = k + 1 == plan_kernels.plans.size() ? "default" : fmt::format("case {}", k);
    if (!unit_.target.on_device()) {
      out_.line("{}: {}({}); break;", label, made.function.name, fmt::format("{}", fmt::join(arguments, ", ")));
    } else {
      out_.line("{}:", label);
      out_.line("  launch.kernel = \"{}\";", made.function.name);
      out_.line("  launch.blocks = {};", made.blocks);
      out_.line("  launch.threads = {};", made.function.threads);
      out_.line("  launch.shared_bytes = {};", made.function.shared_bytes);
      out_.line("  break;");
    }
    names.push_back(fmt::format("\"{}\"", made.function.name));
    plans.push_back(plan_text(plan_kernels.data, plan_kernels.plans[k]));
    add_info(made.function, stm);
    (unit_.target.on_device() ? result_.lazy_kernels : result_.kernels).push_back(std::move(made.function));
  }
  out_.close("}}");
  if (!unit_.target.on_device() && arguments.size() > 0 && arguments.back() == failure_cell())
    run_call(synchronise_call());
  if (unit_.target.on_device()) {
    out_.line("status = ctx->backend->launch(ctx, &launch);");
    check_status();
    out_.close("}}");
    declarations_.line("static const char *const {}_kernels[] = {{{}}};", plan_kernels.name, fmt::join(names, ", "));
  }
  declarations_.open("static const struct apl_plan {}_plans[] = {{  // threads, registers, stages, tiles a block",
                     plan_kernels.name);
  for (const std::string& plan : plans) declarations_.line("{},", plan);
  declarations_.close("}};");
  declare_parameters(plan_kernels);
  declarations_.line("static const struct apl_plan_set {0}_set = {{{1}, {2}, {3}, {0}_plans, {0}_parameters}};",
                     plan_kernels.name, c_string(table_.name(stm.pattern.front())), plans.size(),
                     unit_.target.on_device() ? plan_kernels.name + "_kernels" : "NULL");
  result_.has_plans = true;
}

// By what names the user can ask for some of the plans.
void Host::declare_parameters(const PlanKernels& plan_kernels) {
  static constexpr const char* kNumbers[] = {"APL_NUMBER_TILE", "APL_NUMBER_REG", "APL_NUMBER_STAGES"};
  static constexpr const char* kKinds[] = {"tile_size", "reg_tile_size", "stages"};
  declarations_.open("static const struct apl_plan_parameter {}_parameters[] = {{", plan_kernels.name);
  const auto declare = [&](const std::string& name, apl_plan_number number, std::size_t dim) {
    declarations_.line("{{{}, {}, {}}},", c_string(name), kNumbers[number], dim);
    // A contraction and its parts share theirs.
    const bool is_new = std::none_of(result_.parameters.begin(), result_.parameters.end(),
                                     [&](const ProgramParameter& known) { return known.name == name; });
    if (is_new) result_.parameters.push_back({name, kKinds[number]});
  };
  for (std::size_t d = 0; d < plan_kernels.data.dims().size(); ++d) {
    const Schedule::Dim& dim = plan_kernels.data.dims()[d];
    if (Value tile = parameter_of(dim.tile)) declare(apl::parameter_name(unit_.function, tile), APL_NUMBER_TILE, d);
    if (Value reg = parameter_of(dim.reg)) declare(apl::parameter_name(unit_.function, reg), APL_NUMBER_REG, d);
  }
  if (unit_.target.on_device()) declare(plan_kernels.data.parameters + "stages", APL_NUMBER_STAGES, 0);
  declarations_.line("{{NULL, 0, 0}},");
  declarations_.close("}};");
}

std::vector<std::string> Host::arguments_of(const Kernel& lowering) {
  std::vector<std::string> arguments;
  for (Value b : lowering.blocks()) arguments.push_back(block(b));
  for (Value s : lowering.scalars()) arguments.push_back(text(values_.value(s)));
  return arguments;
}

// Threads whose arrays lie in memory run in several launches, one after the other, where all arrays together would be
// too large: enough threads to keep a device busy have room in far less than the memory that it has.
std::optional<Host::Part> Host::part_of(const Kernel& lowering, const SegOp& op) {
  if (!lowering.runs_in_parts()) return std::nullopt;
  Poly threads = 1;
  for (const SegDim& dim : op.space) threads *= dim.bound;
  const auto asked = parameters_.find(kThreadMemory);
  const std::int64_t most = asked == parameters_.end() ? kMostThreadMemory : asked->second;
  std::string bytes;
  for (const Kernel::ThreadMemory& scratch : lowering.scratch()) {
    bytes += fmt::format("{}{}.0", bytes.empty() ? "" : " + ", std::max<std::int64_t>(1, byte_size(scratch.element)));
    for (const Poly& size : scratch.shape) bytes += fmt::format(" * (double)({})", text(size));
  }
  const Part part{unit_.fresh("threads"), unit_.fresh("first_thread"), unit_.fresh("threads_at_once")};
  const std::string each = unit_.fresh("bytes_of_thread");
  out_.line("const int64_t {} = {};", part.threads, text(threads));
  out_.line("const double {} = {};", each, bytes);
  out_.line(
      "const int64_t {0} = {1} * (double){2} <= {3}.0 ? {2} : apl_index_max({4}, (int64_t)({3}.0 / {1}) / {4} * {4});",
      part.count, each, part.threads, most, kThreadsOfPart);
  return part;
}

// Memory of threads, kept for the next launch.
void Host::add_scratch(const Kernel& lowering, const SegOp& op, const std::optional<Part>& part,
                       std::vector<std::string>& arguments) {
  for (const Kernel::ThreadMemory& scratch : lowering.scratch()) {
    Extent extent{std::max<std::int64_t>(1, byte_size(scratch.element)), {}, {}};
    if (part) {
      extent.rows = part->count;
    } else {
      for (const SegDim& dim : op.space) extent.shape.push_back(dim.bound);
    }
    extent.shape.insert(extent.shape.end(), scratch.shape.begin(), scratch.shape.end());
    arguments.push_back(reserve_threads(scratch.name, extent, scratch.may_lack));
  }
  if (part) arguments.insert(arguments.end(), {part->first, part->count});
  if (!lowering.zeros()) return;
  const std::string zeros = reserve_zeros(text(lowering.zeros()->bytes));
  for (const std::int64_t offset : lowering.zeros()->offsets)
    arguments.push_back(offset == 0 ? zeros : fmt::format("(char *){} + {}", zeros, offset));
}

void Host::add_failure(const Kernel& lowering, std::vector<std::string>& arguments) const {
  if (lowering.can_fail()) arguments.push_back(failure_cell());
  if (lowering.sees_failed()) arguments.push_back(failed_word());
}

// Variables for the arguments, and an array of pointers to them.
void Host::pack_arguments(const Kernel& lowering, const std::vector<std::string>& arguments) {
  std::vector<std::string> pointers;
  const std::size_t scalars = lowering.blocks().size() + lowering.scalars().size();
  const std::size_t part = scalars + lowering.scratch().size();
  for (std::size_t k = 0; k < arguments.size(); ++k) {
    const bool array = k < lowering.blocks().size(), scalar = !array && k < scalars;
    const bool number = lowering.runs_in_parts() && (k == part || k == part + 1);
    const std::string type =
        scalar   ? c_type({table_.type(lowering.scalars()[k - lowering.blocks().size()]).element, false}) + " "
        : number ? "int64_t "
                 : "void *";
    out_.line("{}arg_{} = {}{};", type, k, array ? "(void *)" : "", arguments[k]);
    pointers.push_back(fmt::format("&arg_{}", k));
  }
  out_.line("void *args[] = {{{}}};", pointers.empty() ? "NULL" : fmt::format("{}", fmt::join(pointers, ", ")));
}

}  // namespace apl::lower
