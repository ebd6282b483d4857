// Scatter and histogram: as a kernel of one thread an index, inside a thread, and by the threads of a block into its
// shared memory.
#include <algorithm>

#include "codegen/lower/scatter.h"

#include "ir/walk.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

namespace {

constexpr std::int64_t kLocksOfBlock = 512;

}  // namespace

// Inside a thread: loops over the widths. So in C for a block, whose threads are one.
void Scatters::scatter(const Scatter& op, const Stm& stm, KernelBlock& out) {
  if (unit_.target.on_device() && is_shared(op.targets.front())) return scatter_in_block(op, stm, out);
  KernelBlock inner;
  stream(op.inputs, op.map.params, op.indices, stm.location, inner);
  body(*op.map.body, inner);
  write_rows(op, stm, false, inner);
  around_loops(op.indices, op.widths, std::move(inner), out);
}

// A block's threads share the indices out among themselves: neighbours get neighbouring ones.
void Scatters::scatter_in_block(const Scatter& op, const Stm& stm, KernelBlock& out) {
  if (op.op && op.targets.size() > 1 && locks_.empty()) declare_locks(out);
  std::vector<ExprPtr> sizes;
  std::vector<std::string> names;
  ExprPtr total = literal(std::int64_t{1});
  for (std::size_t k = 0; k < op.widths.size(); ++k) {
    sizes.push_back(values_.poly(op.widths[k]));
    names.push_back(unit_.name(op.indices[k]));
    total = mul(total, sizes.back());
  }
  KernelBlock inner;
  const std::string flat = sizes.size() == 1 ? names.front() : unit_.fresh("flat");
  if (sizes.size() == 1) {
    values_.scalars[op.indices.front()] = variable(flat);
  } else {
    const std::vector<ExprPtr> indices = unflatten(flat, sizes, names, kIndex, inner);
    for (std::size_t k = 0; k < indices.size(); ++k) values_.scalars[op.indices[k]] = indices[k];
  }
  stream(op.inputs, op.map.params, op.indices, stm.location, inner);
  body(*op.map.body, inner);
  write_rows(op, stm, true, inner);
  out.push_back(for_indices_of_block(flat, total, std::move(inner)));
}

Stmt Scatters::for_indices_of_block(const std::string& name, const ExprPtr& bound, KernelBlock inner) {
  Stmt loop = for_loop(kIndex, name, bound, std::move(inner));
  loop.from = call("apl_thread", {});
  loop.step = literal(threads_);
  return loop;
}

// For operators on several values in shared memory. The barrier before the first use is that before what is folded
// into, which was written, too.
void Scatters::declare_locks(KernelBlock& out) {
  locks_ = unit_.fresh("locks");
  const std::string at = unit_.fresh("lock");
  KernelBlock head;
  head.push_back(shared_array(locks_, {ScalarType::u32, false}, kLocksOfBlock));
  head.push_back(for_indices_of_block(at, literal(kLocksOfBlock),
                                      {assign(element(locks_, variable(at)), literal(Scalar::zero(ScalarType::u32)))}));
  Stmt barrier;
  barrier.kind = Stmt::Kind::barrier;
  head.push_back(std::move(barrier));
  out.insert(out.end(), head.begin(), head.end());
}

// The rows in shared memory that a block returns.
void Scatters::write_block_rows(const SegOp& op, const Stm& stm, KernelBlock& out) {
  std::vector<ExprPtr> here;
  for (const SegDim& dim : op.space) here.push_back(values_.value(dim.index));
  for (std::size_t k = 0; k < op.results.size(); ++k) {
    if (op.results[k].kind == KernelResult::Kind::regtile) continue;
    const Operand& row = op.body->results[k];
    if (!row.is_value() || !is_shared(row.value()))
      unsupported(stm.location, "a block-level result that is neither a register tile nor a row in shared memory");
    if (!unit_.target.on_device()) {
      store(stm.pattern[k], here, row, stm.location, out);
      continue;
    }
    const Type& type = unit_.function.type(row.value());
    std::vector<ExprPtr> sizes;
    std::vector<std::string> names;
    ExprPtr total = literal(std::int64_t{1});
    for (const Poly& size : type.shape) {
      sizes.push_back(values_.poly(size));
      names.push_back(unit_.fresh("i"));
      total = mul(total, sizes.back());
    }
    const std::string flat = unit_.fresh("flat");
    KernelBlock inner;
    const std::vector<ExprPtr> at = unflatten(flat, sizes, names, kIndex, inner);
    std::vector<ExprPtr> place = here;
    place.insert(place.end(), at.begin(), at.end());
    inner.push_back(assign(element_of(stm.pattern[k], place, stm.location), element_of(row.value(), at, stm.location)));
    out.push_back(for_indices_of_block(flat, total, std::move(inner)));
  }
}

// Another thread may write the same there, and the emulator must know what the source calls the element.
Stmt Scatters::scattered(const Stm& stm, Value target, const std::vector<ExprPtr>& at, ExprPtr value) {
  Stmt step;
  step.kind = Stmt::Kind::atomic;
  step.name = "store";
  step.type = {unit_.function.type(target).element, false};
  step.target = element_of(target, at, stm.location);
  step.value = std::move(value);
  step.numbers.assign(at.begin(), at.begin() + std::min<std::ptrdiff_t>(std::ssize(at), APL_FAILURE_VALUES));
  std::string element;
  for (std::size_t d = 0; d < step.numbers.size(); ++d) element += d == 0 ? "%lld" : ", %lld";
  if (step.numbers.size() < at.size()) element += ", ...";
  step.check = unit_.add_check(stm.location, "scatter writes element [" + element + "] twice, with different values.");
  return step;
}

// What the lambda gave goes to where it says. Parallel: other threads do the same now.
void Scatters::write_rows(const Scatter& op, const Stm& stm, bool parallel, KernelBlock& out) {
  const std::vector<Operand>& results = op.map.body->results;
  const Type& target = unit_.function.type(op.targets.front());
  std::vector<ExprPtr> at;
  ExprPtr inside;
  for (std::size_t d = 0; d < op.rank; ++d) {
    at.push_back(values_.operand(results[d]));
    const ExprPtr here = infix("&&", infix("<=", literal(std::int64_t{0}), at.back()),
                               infix("<", at.back(), values_.poly(target.shape[d])));
    inside = inside ? infix("&&", inside, here) : here;
  }
  KernelBlock write;
  if (!op.op) {
    for (std::size_t k = 0; k < op.targets.size(); ++k) {
      const Operand& given = results[op.rank + k];
      const Type row = unit_.function.type(op.targets[k]).row(op.rank);
      if (!parallel || !unit_.target.on_device() || row.element == ScalarType::unit) {
        store(stm.pattern[k], at, given, stm.location, write);
      } else if (row.is_scalar()) {
        write.push_back(scattered(stm, stm.pattern[k], at, values_.operand(given)));
      } else {
        for_elements(row.shape, write, [&](const std::vector<ExprPtr>& inner, KernelBlock& each) {
          std::vector<ExprPtr> all = at;
          all.insert(all.end(), inner.begin(), inner.end());
          each.push_back(scattered(stm, stm.pattern[k], all, element_of(given.value(), inner, stm.location)));
        });
      }
    }
  } else if (parallel && unit_.target.on_device()) {
    fold_atomically(op, stm, at, write);
  } else {
    fold_rows(op, stm, at, write);
  }
  out.push_back(kernel::branch(inside, std::move(write)));
}

void Scatters::write_scalars(const Scatter& op, const Stm& stm, const ExprPtr& at, const std::vector<ExprPtr>& values,
                             KernelBlock& out) {
  const ExprPtr size = values_.poly(unit_.function.type(op.targets.front()).shape.front());
  KernelBlock write;
  for (std::size_t k = 0; k < op.targets.size(); ++k) write.push_back(scattered(stm, stm.pattern[k], {at}, values[k]));
  const ExprPtr inside = infix("&&", infix("<=", literal(std::int64_t{0}), at), infix("<", at, size));
  out.push_back(kernel::branch(inside, std::move(write)));
}

// The operator on the rows that are there and the new ones.
void Scatters::fold_rows(const Scatter& op, const Stm& stm, const std::vector<ExprPtr>& at, KernelBlock& out) {
  const ValueTable& table = unit_.function.values;
  const ReduceOp& reduce = *op.op;
  const std::size_t n = op.targets.size();
  std::vector<ExprPtr> arguments(2 * n);
  for (std::size_t k = 0; k < n; ++k) {
    const Operand& given = op.map.body->results[op.rank + k];
    yield_value(given, reduce.op.params[n + k], stm.location, out);
    const Type& type = table.type(reduce.op.params[k]);
    if (type.element == ScalarType::unit) continue;
    if (type.is_array()) {
      for_elements(type.shape, out, [&](const std::vector<ExprPtr>& row, KernelBlock& inner) {
        std::vector<ExprPtr> all = at;
        all.insert(all.end(), row.begin(), row.end());
        inner.push_back(
            assign(element_of(reduce.op.params[k], row, stm.location), element_of(op.targets[k], all, stm.location)));
      });
      continue;
    }
    const std::string name = unit_.name(reduce.op.params[k]);
    out.push_back(declare({type.element, false}, name, element_of(op.targets[k], at, stm.location)));
    arguments[k] = variable(name);
    arguments[n + k] = values_.operand(given);
  }
  const std::vector<ExprPtr> results = inline_lambda(reduce.op, arguments, out);
  for (std::size_t k = 0; k < n; ++k) {
    const Type& type = table.type(reduce.op.params[k]);
    if (type.is_array()) {
      store(op.targets[k], at, reduce.op.body->results[k], stm.location, out);
    } else if (type.element != ScalarType::unit) {
      out.push_back(assign(element_of(op.targets[k], at, stm.location), results[k]));
    }
  }
}

namespace {

// What the hardware folds by itself.
std::optional<std::string> native_atomic(const Lambda& lambda, ScalarType type) {
  const std::optional<BinaryOp> op = as_binary_op(lambda);
  if (!op) return std::nullopt;
  const bool word = is_integer(type) && bit_width(type) >= 32;
  switch (*op) {
    case BinaryOp::add:
      return word || type == ScalarType::f32 || type == ScalarType::f64 ? std::optional<std::string>("add")
                                                                        : std::nullopt;
    case BinaryOp::min: return word ? std::optional<std::string>("min") : std::nullopt;
    case BinaryOp::max: return word ? std::optional<std::string>("max") : std::nullopt;
    case BinaryOp::conj: return word ? std::optional<std::string>("and") : std::nullopt;
    case BinaryOp::disj: return word ? std::optional<std::string>("or") : std::nullopt;
    case BinaryOp::exor: return word ? std::optional<std::string>("xor") : std::nullopt;
    default: return std::nullopt;
  }
}

}  // namespace

// One value: a loop of compare-and-swap around the operator. Several: a lock for the element.
void Scatters::fold_atomically(const Scatter& op, const Stm& stm, const std::vector<ExprPtr>& at, KernelBlock& out) {
  const ReduceOp& reduce = *op.op;
  const Type& type = unit_.function.type(reduce.op.params.front());
  Stmt step;
  step.type = {type.element, false};
  if (op.targets.size() == 1) {
    if (const std::optional<std::string> name = native_atomic(reduce.op, type.element)) {
      step.kind = Stmt::Kind::atomic;
      step.name = *name;
      step.target = element_of(op.targets.front(), at, stm.location);
      step.value = values_.operand(op.map.body->results[op.rank]);
      out.push_back(std::move(step));
      return;
    }
  }
  if (op.targets.size() > 1) {
    step.kind = Stmt::Kind::lock;
    if (is_shared(op.targets.front())) {
      step.name = locks_;
      step.count = kLocksOfBlock;
    }
    step.value = element_of(op.targets.front(), at, stm.location)->args[0];
    fold_rows(op, stm, at, step.body);
    out.push_back(std::move(step));
    return;
  }
  if (type.element == ScalarType::unit) return;
  step.kind = Stmt::Kind::update;
  step.name = unit_.name(reduce.op.params.front());
  step.target = element_of(op.targets.front(), at, stm.location);
  const std::vector<ExprPtr> arguments{variable(step.name), values_.operand(op.map.body->results[op.rank])};
  step.value = inline_lambda(reduce.op, arguments, step.body).front();
  out.push_back(std::move(step));
}

}  // namespace apl::lower
