// Scatter and histogram: as a kernel of one thread an index, and inside a thread.
#include <algorithm>

#include "codegen/lower.h"
#include "ir/walk.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

// Inside a thread: loops over the widths.
void Kernel::scatter(const Scatter& op, const Stm& stm, KernelBlock& out) {
  KernelBlock inner;
  stream(op.inputs, op.map.params, op.indices, stm.location, inner);
  body(*op.map.body, inner);
  write_rows(op, stm, false, inner);
  around_loops(op.indices, op.widths, std::move(inner), out);
}

// What the lambda gave goes to where it says. Parallel: other threads do the same now.
void Kernel::write_rows(const Scatter& op, const Stm& stm, bool parallel, KernelBlock& out) {
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
      const Type row = unit_.function.type(op.targets[k]).row(op.rank);
      if (!parallel || unit_.target != Target::cuda || !row.is_scalar() || row.element == ScalarType::unit) {
        store(stm.pattern[k], at, results[op.rank + k], stm.location, write);
        continue;
      }
      Stmt step;
      step.kind = Stmt::Kind::atomic;
      step.name = "store";
      step.type = {row.element, false};
      step.target = element_of(stm.pattern[k], at, stm.location);
      step.value = values_.operand(results[op.rank + k]);
      write.push_back(std::move(step));
    }
  } else if (parallel && unit_.target == Target::cuda) {
    fold_atomically(op, stm, at, write);
  } else {
    fold_rows(op, stm, at, write);
  }
  out.push_back(kernel::branch(inside, std::move(write)));
}

// The operator on the rows that are there and the new ones.
void Kernel::fold_rows(const Scatter& op, const Stm& stm, const std::vector<ExprPtr>& at, KernelBlock& out) {
  const ValueTable& table = unit_.function.values;
  const ReduceOp& reduce = *op.op;
  const std::size_t n = op.targets.size();
  std::vector<ExprPtr> arguments(2 * n);
  for (std::size_t k = 0; k < n; ++k) {
    const Operand& given = op.map.body->results[op.rank + k];
    hand_on(given, reduce.op.params[n + k], stm.location, out);
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
void Kernel::fold_atomically(const Scatter& op, const Stm& stm, const std::vector<ExprPtr>& at, KernelBlock& out) {
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
