// A kernel's frame: parameters, buffers and element access; the thread-level form.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/kernel/split_loops.h"
#include "codegen/lower/column_folds.h"
#include "codegen/lower/lower.h"
#include "codegen/lower/map_vectors.h"
#include "codegen/lower/map_windows.h"
#include "codegen/lower/scatter.h"
#include "codegen/lower/team.h"
#include "codegen/lower/vector_loops.h"
#include "ir/builder.h"
#include "ir/layouts.h"
#include "ir/stray.h"
#include "ir/walk.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

Kernel::Kernel(Unit& unit, const Stm& stm)
    : unit_(unit),
      stm_(stm),
      values_(unit, unit.dialect()),
      scatters_(std::make_unique<Scatters>(*this)),
      vector_loops_(std::make_unique<VectorLoops>(*this)) {}

Kernel::~Kernel() = default;

ExprPtr Kernel::tile_loop_blocks(const SegOp& op, Values& host) const {
  return mainloop_ ? mainloop_->tile_loop_blocks(op, host) : nullptr;
}

SegOp kernel_frame(const Stm& stm) {
  if (const SegOp* op = get_if<SegOp>(stm)) return *op;
  const Scatter& scatter = std::get<Scatter>(stm.op);
  SegOp frame{.level = SegLevel::thread, .space = {}, .body = scatter.map.body, .results = {}};
  for (std::size_t k = 0; k < scatter.widths.size(); ++k)
    frame.space.push_back({scatter.indices[k], scatter.widths[k]});
  return frame;
}

kernel::Function Kernel::run() {
  const SegOp op = kernel_frame(stm_);
  std::string entry = unit_.function.entry ? unit_.function.entry->name : unit_.function.name;
  // A kernel without results only makes checks.
  const std::string made = stm_.pattern.empty() ? "check" : unit_.function.values.name(stm_.pattern.front());
  const std::string name = fmt::format("{}_{}", entry, made);
  function_.name =
      is_packed(unit_, op)
          ? unit_.fresh_in_file(name, {"_arguments", "_rows", "_columns", "_pack_m", "_pack_n", "_compute", "_store"})
          : unit_.fresh_in_file(name);
  block_level_ = op.level == SegLevel::block;
  collect_params();
  std::vector<std::string> bounds;
  for (const SegDim& dim : op.space) bounds.push_back(print(values_.poly(dim.bound), unit_.dialect()));
  std::string what =
      fmt::format("{} at {} level over [{}]", made, block_level_ ? "block" : "thread", fmt::join(bounds, "]["));
  if (stm_.location) what += fmt::format(", line {}", stm_.location.line);
  function_.comments.push_back(what);
  // Tile numbers that this kernel uses.
  for (const Value value : outside_)
    if (const auto number = unit_.tile(value)) {
      Stmt constant = declare(kInt, unit_.name(value), literal(*number));
      function_.body.push_back(std::move(constant));
    }
  if (block_level_) {
    run_block(op);
  } else if (op.team && unit_.target.on_device()) {
    team_ = std::make_unique<Team>(*this);
    team_->run_team(op);
  } else if (const Scatter* scatter = get_if<Scatter>(stm_); scatter != nullptr || !unit_.target.on_device()) {
    run_thread(op, scatter);
  } else if (MapVectors vectors(*this, op); vectors.neighbours() > 1) {
    vectors.run();
  } else if (MapWindows windows(*this, op); windows.overlap()) {
    windows.run();
  } else if (ColumnFolds columns(*this, op); columns.have_neighbours()) {
    columns.run();
  } else {
    run_thread(op);
  }
  if (!unit_.target.on_device() && !block_level_)
    function_.body = split_loops(std::move(function_.body), [&](const std::string& hint) { return unit_.fresh(hint); });
  see_failed();
  function_.threads = threads_;
  function_.shared_bytes = shared_bytes_;
  function_.can_fail = can_fail_;
  // Straight code is a functor's, which reads its result after the body.
  if (!op.space.empty()) drop_unread(function_, unit_.dialect());
  return std::move(function_);
}

kernel::Function Kernel::run_called(const std::string& name) {
  const apl::Function& f = unit_.function;
  function_.name = name;
  function_.is_called = true;
  std::string what = fmt::format("function {}", f.name);
  if (f.location) what += fmt::format(", line {}", f.location.line);
  function_.comments.push_back(what);
  for (const Value param : f.params)
    if (f.type(param).element != ScalarType::unit)
      function_.params.push_back({unit_.name(param), {f.type(param).element, false}, std::nullopt});
  function_.status = unit_.fresh("status");
  body(*f.body, function_.body);
  for (const Operand& result : f.body->results) {
    const ScalarType type = f.values.type(result).element;
    if (type == ScalarType::unit) continue;
    const std::string to = unit_.fresh("result");
    function_.params.push_back({to, {type, false}, std::nullopt, true});
    function_.body.push_back(assign(prefix("*", variable(to)), values_.operand(result)));
  }
  function_.can_fail = can_fail_;
  if (!can_fail_) function_.status.clear();
  function_.sees_failed = can_fail_ && unit_.target.on_device() && unit_.may_stray_behind();
  return std::move(function_);
}

kernel::Function lower_called(Unit& unit) {
  const apl::Function& f = unit.function;
  const Stm frame{.pattern = {},
                  .op = SegOp{.level = SegLevel::thread, .space = {}, .body = f.body, .results = {}},
                  .location = f.location,
                  .certificates = {},
                  .attributes = {}};
  return Kernel(unit, frame).run_called(unit.fresh_in_file("apl_called_" + symbol_part(f.name)));
}

// One that may stray does nothing behind a check that failed in another one. Where some of its own threads may fail
// while others still come to barriers, what can fail is left out alone: what stands beside it cannot stray.
void Kernel::see_failed() {
  if (!unit_.target.on_device() || !unit_.may_stray_behind()) return;
  const bool strays = may_stray(stm_.op, unit_.function.values);
  sees_failed_ = function_.sees_failed = strays || can_fail_;
  if (!strays || (can_fail_ && team_)) return;
  Stmt leave;
  leave.kind = Stmt::Kind::leave;
  function_.body.insert(function_.body.begin(), kernel::branch(call("apl_has_failed", {variable("failed")}), {leave}));
}

void Kernel::collect_params() {
  const ValueTable& table = unit_.function.values;
  std::set<Value> wanted;
  auto want = [&](Value v) { wanted.insert(v); };
  for (Value v : free_values(stm_.op, table)) {
    want(v);
    if (table.type(v).is_array()) for_each_use(table.type(v), want);
  }
  std::set<Value> written;
  for (Value result : stm_.pattern) {
    for_each_use(table.type(result), want);
    written.insert(table.type(result).memory->block);
  }
  // The element type of a block is that of an array bound to it; one of the host may serve for several in turn.
  const auto note = [&](Value v, Location location = {}) {
    const Type& type = table.type(v);
    if (!type.memory) return;
    elements_[type.memory->block] = type.element;
    arrays_[type.memory->block].push_back({type.shape, location});
  };
  const auto note_bound = [&](const Stm& stm) {
    for (const Value v : stm.pattern) note(v, stm.location);
    for_each_binder(stm.op, [&](Value v) { note(v, stm.location); });
  };
  note_bound(stm_);
  for_each_body(stm_.op, [&](const BodyPtr& inner) { for_each_stm(*inner, note_bound); });
  for (Value v : free_values(stm_.op, table)) note(v);
  for (Value result : stm_.pattern) note(result);
  outside_ = wanted;
  for (Value v : wanted) {
    const Type& type = table.type(v);
    if (type.is_memory()) {
      blocks_.push_back(v);
      Buffer buffer;
      buffer.name = unit_.fresh(block_name(table, v));
      buffer.element = elements_.at(v);
      buffer.kind = written.count(v) ? BufferKind::global_out : BufferKind::global_in;
      function_.params.push_back({buffer.name, {buffer.element, false}, buffer.kind});
      buffers_[v] = std::move(buffer);
    }
  }
  for (Value v : wanted)
    if (table.type(v).is_scalar() && !unit_.tile(v) && table.type(v).element != ScalarType::unit) {
      scalar_params_.push_back(v);
      function_.params.push_back({unit_.name(v), {table.type(v).element, false}, std::nullopt});
    }
}

// ---- arrays -----------------------------------------------------------------------------------------------------

Kernel::Buffer& Kernel::buffer(Value block, Location location) {
  auto found = buffers_.find(block);
  if (found == buffers_.end()) unsupported(location, "an array whose memory is not known in the kernel");
  return found->second;
}

ExprPtr Kernel::element_flat(Value block, ExprPtr position, Location location) {
  const Buffer& b = buffer(block, location);
  if (b.expanded && flat_thread_) position = kernel::add(mul(flat_thread_, literal(b.count)), std::move(position));
  if (b.interleaved) position = kernel::add(mul(std::move(position), count_), flat_);
  return element(b.name, std::move(position));
}

ExprPtr Kernel::layout_position(const Lmad& layout, const std::vector<ExprPtr>& indices) {
  ExprPtr position = values_.poly(layout.offset());
  for (std::size_t k = 0; k < indices.size(); ++k) {
    auto stride = unit_.fold(layout.dims()[k].stride);
    ExprPtr factor = stride ? literal(*stride) : values_.poly(layout.dims()[k].stride);
    position = kernel::add(position, mul(indices[k], factor));
  }
  return position;
}

ExprPtr Kernel::element_of(Value array, const std::vector<ExprPtr>& indices, Location location) {
  const Type& type = unit_.function.type(array);
  if (!type.memory) unsupported(location, fmt::format("`{}` has no memory", unit_.function.values.name(array)));
  return element_flat(type.memory->block, layout_position(type.memory->layout, indices), location);
}

ExprPtr Kernel::element_at(Value array, const Poly& position, Location location) {
  const Type& type = unit_.function.type(array);
  if (!type.memory) unsupported(location, fmt::format("`{}` has no memory", unit_.function.values.name(array)));
  return element_flat(type.memory->block, values_.poly(vector_loops_->note_read(position)), location);
}

// Stores a scalar, or a whole row, at the given outer indices.
void Kernel::store(Value array, const std::vector<ExprPtr>& indices, const Operand& value, Location location,
                   KernelBlock& out) {
  const Type type = unit_.function.values.type(value);
  if (type.element == ScalarType::unit) return;
  if (type.is_scalar()) {
    out.push_back(assign(element_of(array, indices, location), values_.operand(value)));
    return;
  }
  const Type& target = unit_.function.type(array);
  if (type.memory && target.memory && type.memory->block == target.memory->block) return;  // built in place
  for_elements(type.shape, out, [&](const std::vector<ExprPtr>& row, KernelBlock& inner) {
    std::vector<ExprPtr> all = indices;
    all.insert(all.end(), row.begin(), row.end());
    inner.push_back(assign(element_of(array, all, location), element_of(value.value(), row, location)));
  });
}

// Indices of row-major position `flat` under sizes, outermost first; dims of one element are 0. `divided`: the type of
// what is left of the position, if it is another one than that of the indices.
std::vector<ExprPtr> Kernel::unflatten(const std::string& flat, const std::vector<ExprPtr>& sizes,
                                       const std::vector<std::string>& names, CType type, KernelBlock& out,
                                       std::optional<CType> divided) {
  std::vector<ExprPtr> indices(sizes.size());
  std::vector<std::size_t> real;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    if (number(sizes[k]) == 1) {
      indices[k] = literal(std::int64_t{0});
    } else {
      real.push_back(k);
    }
  }
  std::string rest = flat;
  for (std::size_t n = real.size(); n-- > 0;) {
    std::size_t k = real[n];
    indices[k] = variable(names[k]);
    if (n == 0) {
      out.push_back(declare(type, names[k], variable(rest)));
      break;
    }
    out.push_back(declare(type, names[k], infix("%", variable(rest), sizes[k])));
    std::string next = unit_.fresh("rest");
    // The last division is the outermost index itself.
    if (n == 1) next = names[real[0]];
    out.push_back(declare(n > 1 && divided ? *divided : type, next, infix("/", variable(rest), sizes[k])));
    if (n == 1) {
      indices[real[0]] = variable(next);
      break;
    }
    rest = next;
  }
  return indices;
}

// ---- thread level -----------------------------------------------------------------------------------------------

void Kernel::run_thread(const SegOp& op, const Scatter* scatter) {
  for (const Stm& stm : op.body->stms)
    if (get_if<Alloc>(stm)) certain_.insert(stm.pattern.front());
  KernelBlock& out = function_.body;
  std::vector<ExprPtr> indices;
  std::vector<std::string> names;
  std::vector<ExprPtr> sizes;
  for (const SegDim& dim : op.space) {
    names.push_back(unit_.name(dim.index));
    sizes.push_back(values_.poly(dim.bound));
    indices.push_back(variable(names.back()));
  }
  leave_label_ = unit_.fresh("next");
  KernelBlock inner;
  auto work = [&](KernelBlock& into) {
    KernelBlock made;
    body(*op.body, made);
    if (scatter != nullptr) scatters_->write_rows(*scatter, stm_, true, made);
    for (std::size_t k = 0; k < stm_.pattern.size() && scatter == nullptr; ++k)
      store(stm_.pattern[k], indices, op.body->results[k], stm_.location, made);
    into.insert(into.end(), heap_.begin(), heap_.end());
    into.insert(into.end(), made.begin(), made.end());
  };
  if (op.space.empty()) return work(out);  // straight code: of a functor
  if (unit_.target.on_device()) {
    // One thread an index; the fastest dim is the last, so neighbouring threads write neighbouring elements.
    const std::string flat = unit_.fresh("thread"), slot = unit_.fresh("thread_of_part");
    const std::string slots = unit_.fresh("threads_of_part");
    ExprPtr count = literal(std::int64_t{1});
    for (const ExprPtr& size : sizes) count = mul(count, size);
    flat_ = variable(slot);
    count_ = variable(slots);
    std::vector<ExprPtr> split = unflatten(flat, sizes, names, kIndex, inner);
    for (std::size_t k = 0; k < indices.size(); ++k) {
      values_.scalars[op.space[k].index] = split[k];
      indices[k] = split[k];
    }
    work(inner);
    Stmt leave;
    leave.kind = Stmt::Kind::leave;
    ExprPtr number = infix("+", infix("*", call("apl_block", {}), literal(threads_)), call("apl_thread", {}));
    if (!scratch_.empty()) {
      // A launch has the threads from `first` on for which there is memory.
      runs_in_parts_ = true;
      const std::string first = unit_.fresh("first_of_part");
      for (const std::string& param : {first, slots}) function_.params.push_back({param, kIndex, std::nullopt});
      out.push_back(declare(kIndex, slot, std::move(number)));
      out.push_back(kernel::branch(infix(">=", variable(slot), variable(slots)), {leave}));
      number = infix("+", variable(first), variable(slot));
    }
    out.push_back(declare(kIndex, flat, std::move(number)));
    out.push_back(kernel::branch(infix(">=", variable(flat), count), {leave}));
    out.insert(out.end(), inner.begin(), inner.end());
    return;
  }
  work(inner);
  if (scatter == nullptr && !can_fail_ && heap_.empty())
    if (std::optional<KernelBlock> columns = vector_loops_->in_columns(op, inner, names, sizes)) {
      out.insert(out.end(), columns->begin(), columns->end());
      return;
    }
  if (scatter == nullptr && !can_fail_ && heap_.empty())
    if (std::optional<KernelBlock> squares = vector_loops_->in_squares(op, inner, names, sizes)) {
      out.insert(out.end(), squares->begin(), squares->end());
      return;
    }
  if (can_fail_) {
    Stmt label;
    label.kind = Stmt::Kind::label;
    label.name = leave_label_;
    inner.push_back(std::move(label));
  }
  for (Stmt slot : heap_) {
    slot.kind = Stmt::Kind::release;
    inner.push_back(std::move(slot));
  }
  ExprPtr count = literal(std::int64_t{1});
  for (const ExprPtr& size : sizes) count = mul(count, size);
  const ExprPtr elements = is_straight(inner) ? count : nullptr;
  // Known to be too few for threads, as apl_units_of() has it (runtime/backends/threads.h).
  constexpr std::int64_t kWorthThreads = 4096;
  const bool is_small = number(count) == 1 || (elements && number(count).value_or(kWorthThreads) < kWorthThreads);
  for (std::size_t k = op.space.size(); k-- > 0;) {
    Stmt loop = for_loop(kIndex, names[k], sizes[k], std::move(inner));
    if (k == 0) {
      loop.parallel = (scatter == nullptr || !scatter->op) && !is_small;  // C folds in one thread
      loop.elements = elements;
      // The innermost loop stays whole, so that it can be vectorised, and so do those of a few rounds around it.
      constexpr std::int64_t kFewRounds = 16;
      std::size_t outer = op.space.size() - 1;
      while (outer > 1 && number(sizes[outer - 1]).value_or(kFewRounds + 1) <= kFewRounds) --outer;
      loop.collapse = static_cast<int>(std::max<std::size_t>(1, outer));
    }
    inner.clear();
    inner.push_back(std::move(loop));
  }
  out.insert(out.end(), inner.begin(), inner.end());
}

}  // namespace apl::lower
