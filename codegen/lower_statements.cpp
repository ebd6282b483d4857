// Statements inside kernels: scalars, reads, loops, branches, sequential redomaps, checks.
#include <fmt/format.h>

#include "codegen/lower.h"
#include "codegen/register_loops.h"
#include "ir/builder.h"
#include "ir/layouts.h"
#include "ir/walk.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

void Kernel::body(const Body& body, KernelBlock& out) {
  for (const Stm& stm : body.stms) statement(stm, out);
}

void Kernel::scalar(const Stm& stm, ExprPtr value, KernelBlock& out) {
  Value result = stm.pattern.front();
  out.push_back(declare({unit_.function.type(result).element, false}, unit_.name(result), std::move(value)));
}

void Kernel::fail(int code, const Stm& stm, std::string message, ExprPtr a, ExprPtr b, KernelBlock& out) {
  if (block_level_) unsupported(stm.location, "a check inside a block-level kernel");
  can_fail_ = true;
  Stmt report;
  report.kind = Stmt::Kind::fail;
  report.code = code;
  report.place = unit_.place(stm.location, std::move(message));
  report.from = std::move(a);
  report.step = std::move(b);
  Stmt leave;
  leave.kind = Stmt::Kind::leave;
  leave.name = leave_label_;
  out.push_back(std::move(report));
  out.push_back(std::move(leave));
}

void Kernel::check_divisor(const Binary& op, const Stm& stm, KernelBlock& out) {
  if (!apl::can_fail(stm.op, unit_.function.values)) return;
  KernelBlock failed;
  ExprPtr zero = literal(std::int64_t{0});
  fail(3, stm, "division by zero", zero, zero, failed);
  out.push_back(kernel::branch(infix("==", values_.operand(op.y), zero), std::move(failed)));
}

void Kernel::statement(const Stm& stm, KernelBlock& out) {
  const ValueTable& table = unit_.function.values;
  if (barriers_.count(&stm)) {
    Stmt barrier;
    barrier.kind = Stmt::Kind::barrier;
    out.push_back(std::move(barrier));
  }
  const Value first = stm.pattern.empty() ? Value{} : stm.pattern.front();
  const bool array = first && table.type(first).is_array();
  auto type_of = [&](const Operand& x) { return table.type(x).element; };
  if (const Use* op = get_if<Use>(stm)) {
    if (!array) scalar(stm, values_.operand(op->x), out);
  } else if (const Unary* unary = get_if<Unary>(stm)) {
    scalar(stm, values_.unary(unary->op, type_of(unary->x), values_.operand(unary->x)), out);
  } else if (const Binary* binary = get_if<Binary>(stm)) {
    check_divisor(*binary, stm, out);
    scalar(stm, values_.binary(binary->op, type_of(binary->x), values_.operand(binary->x), values_.operand(binary->y)),
           out);
  } else if (const Compare* compare = get_if<Compare>(stm)) {
    scalar(stm, values_.compare(compare->op, values_.operand(compare->x), values_.operand(compare->y)), out);
  } else if (const Convert* convert = get_if<Convert>(stm)) {
    scalar(stm, values_.convert(*convert, type_of(convert->x), values_.operand(convert->x)), out);
  } else if (const SizeExpr* size = get_if<SizeExpr>(stm)) {
    scalar(stm, values_.poly(size->value), out);
  } else if (const Index* i = get_if<Index>(stm)) {
    index(*i, stm, out);
  } else if (get_if<Rearrange>(stm) || get_if<Reshape>(stm) || get_if<Scratch>(stm)) {
    // Views are layouts; scratch is memory that is there already.
  } else if (const Loop* l = get_if<Loop>(stm)) {
    loop(*l, stm, out);
  } else if (const If* choice = get_if<If>(stm)) {
    branch(*choice, stm, out);
  } else if (const Screma* s = get_if<Screma>(stm)) {
    screma(*s, stm, out);
  } else if (const Replicate* r = get_if<Replicate>(stm)) {
    replicate(*r, stm, out);
  } else if (const Assert* assertion = get_if<Assert>(stm)) {
    KernelBlock failed;
    std::string message;
    std::vector<ExprPtr> numbers;
    for (const auto& piece : assertion->message) {
      if (const std::string* text = std::get_if<std::string>(&piece)) {
        message += *text;
      } else if (numbers.size() < 2) {
        message += "%lld";
        numbers.push_back(values_.operand(std::get<Operand>(piece)));
      }
    }
    numbers.resize(2, literal(std::int64_t{0}));
    fail(2, stm, message, numbers[0], numbers[1], failed);
    out.push_back(kernel::branch(prefix("!", values_.operand(assertion->condition)), std::move(failed)));
  } else if (const Alloc* alloc = get_if<Alloc>(stm)) {
    declare_shared(stm, *alloc, out);
  } else if (const CopyTile* copy = get_if<CopyTile>(stm)) {
    copy_tile(*copy, stm, out);
  } else if (const TileContract* contract = get_if<TileContract>(stm)) {
    tile_contract(*contract, stm, out);
  } else if (const SegOp* seg = get_if<SegOp>(stm)) {
    inblock(*seg, stm, out);
  } else if (const Update* update = get_if<Update>(stm)) {
    std::vector<ExprPtr> at;
    for (const DimIndex& dim : update->dims) {
      if (dim.is_slice()) unsupported(stm.location, "an update of a slice in a kernel");
      at.push_back(values_.poly(dim.start));
    }
    store(first, at, update->value, stm.location, out);
  } else {
    unsupported(stm.location, fmt::format("`{}` inside a kernel", op_name(stm.op)));
  }
}

void Kernel::index(const Index& op, const Stm& stm, KernelBlock& out) {
  const Type& source = unit_.function.type(op.array);
  if (op.checked) {
    for (std::size_t k = 0; k < op.dims.size(); ++k) {
      if (op.dims[k].is_slice()) continue;
      ExprPtr i = values_.poly(op.dims[k].start), size = values_.poly(source.shape[k]);
      KernelBlock failed;
      fail(1, stm, "Index [%lld] out of bounds for array of shape [%lld].", i, size, failed);
      out.push_back(kernel::branch(infix("||", infix("<", i, literal(std::int64_t{0})), infix("<=", size, i)),
                                   std::move(failed)));
    }
  }
  if (unit_.function.type(stm.pattern.front()).is_array()) return;  // a view
  if (!source.memory) unsupported(stm.location, "an index of an array without memory");
  Lmad here = index_layout(source.memory->layout, op.dims);
  scalar(stm, element_at(op.array, here.offset(), stm.location), out);
}

// Scalars carried around are variables; arrays are updated in place and need no code.
void Kernel::loop(const Loop& op, const Stm& stm, KernelBlock& out) {
  const ValueTable& table = unit_.function.values;
  std::vector<std::size_t> carried;
  for (std::size_t k = 0; k < op.params.size(); ++k)
    if (table.type(op.params[k]).is_scalar()) carried.push_back(k);
  for (std::size_t k : carried) {
    Value param = op.params[k];
    out.push_back(
        declare({table.type(param).element, false}, unit_.name(param), values_.operand(op.initial[k]), false));
    values_.scalars[stm.pattern[k]] = variable(unit_.name(param));
  }
  KernelBlock inner;
  body(*op.body, inner);
  // All new values first: one may be computed from another's old value.
  std::vector<ExprPtr> next;
  for (std::size_t k : carried) {
    ExprPtr value = values_.operand(op.body->results[k]);
    if (carried.size() > 1) {
      std::string name = unit_.fresh(unit_.function.values.name(op.params[k]) + "_next");
      inner.push_back(declare({table.type(op.params[k]).element, false}, name, value));
      value = variable(name);
    }
    next.push_back(value);
  }
  for (std::size_t n = 0; n < carried.size(); ++n)
    inner.push_back(assign(variable(unit_.name(op.params[carried[n]])), next[n]));
  if (op.index) {
    out.push_back(for_loop(kIndex, unit_.name(op.index), values_.poly(op.bound), std::move(inner)));
  } else {
    Stmt loop;
    loop.kind = Stmt::Kind::while_loop;
    loop.value = variable(unit_.name(op.params[0]));
    loop.body = std::move(inner);
    out.push_back(std::move(loop));
  }
}

void Kernel::branch(const If& op, const Stm& stm, KernelBlock& out) {
  const ValueTable& table = unit_.function.values;
  KernelBlock then_block, else_block;
  for (Value v : stm.pattern)
    if (table.type(v).is_scalar())
      out.push_back(
          declare({table.type(v).element, false}, unit_.name(v), literal(Scalar::zero(table.type(v).element)), false));
  auto fill = [&](const Body& source, KernelBlock& into) {
    body(source, into);
    for (std::size_t k = 0; k < stm.pattern.size(); ++k)
      if (table.type(stm.pattern[k]).is_scalar())
        into.push_back(assign(variable(unit_.name(stm.pattern[k])), values_.operand(source.results[k])));
  };
  fill(*op.then_body, then_block);
  fill(*op.else_body, else_block);
  out.push_back(kernel::branch(values_.operand(op.condition), std::move(then_block), std::move(else_block)));
}

std::vector<ExprPtr> Kernel::inline_lambda(const Lambda& lambda, const std::vector<ExprPtr>& arguments,
                                           KernelBlock& out) {
  for (std::size_t k = 0; k < lambda.params.size(); ++k) {
    // An element stands for its number in one conversion, and a half is a number in another: C++ makes only one.
    const ScalarType type = unit_.function.type(lambda.params[k]).element;
    const bool half = type == ScalarType::f16 && arguments[k]->kind == Expr::Kind::element;
    values_.scalars[lambda.params[k]] = half ? cast({type, false}, arguments[k]) : arguments[k];
  }
  body(*lambda.body, out);
  std::vector<ExprPtr> results;
  for (const Operand& result : lambda.body->results) results.push_back(values_.operand(result));
  return results;
}

// A redomap in one thread: accumulators are variables, the widths are loops.
void Kernel::screma(const Screma& op, const Stm& stm, KernelBlock& out) {
  const ValueTable& table = unit_.function.values;
  if (op.map.body->results.size() != op.reduced_count())
    unsupported(stm.location, "a map with an array result inside a thread");
  std::size_t result = 0;
  for (const ReduceOp& reduce : op.reduces)
    for (const Operand& neutral : reduce.neutral) {
      Value acc = stm.pattern[result++];
      if (!table.type(acc).is_scalar()) unsupported(stm.location, "a reduction over arrays inside a thread");
      out.push_back(declare({table.type(acc).element, false}, unit_.name(acc), values_.operand(neutral), false));
    }
  KernelBlock inner;
  std::vector<DimIndex> here;
  for (Value i : op.indices) here.push_back(DimIndex::fix(Poly(i)));
  for (std::size_t k = 0; k < op.inputs.size(); ++k) {
    Value param = op.map.params[k];
    if (!table.type(param).is_scalar()) continue;  // a row: a view that place-memory has bound
    const Type& input = table.type(op.inputs[k]);
    if (!input.memory) unsupported(stm.location, "a stream of an array without memory");
    Lmad row = index_layout(input.memory->layout, here);
    inner.push_back(declare({table.type(param).element, false}, unit_.name(param),
                            element_at(op.inputs[k], row.offset(), stm.location)));
  }
  body(*op.map.body, inner);
  std::size_t at = 0;
  for (const ReduceOp& reduce : op.reduces) {
    std::vector<ExprPtr> arguments;
    for (std::size_t k = 0; k < reduce.neutral.size(); ++k)
      arguments.push_back(variable(unit_.name(stm.pattern[at + k])));
    for (std::size_t k = 0; k < reduce.neutral.size(); ++k)
      arguments.push_back(values_.operand(op.map.body->results[at + k]));
    std::vector<ExprPtr> results = inline_lambda(reduce.op, arguments, inner);
    for (std::size_t k = 0; k < results.size() && results.size() > 1; ++k) {
      std::string name = unit_.fresh("next");
      inner.push_back(declare({table.type(stm.pattern[at + k]).element, false}, name, results[k]));
      results[k] = variable(name);
    }
    for (std::size_t k = 0; k < results.size(); ++k)
      inner.push_back(assign(variable(unit_.name(stm.pattern[at + k])), results[k]));
    at += reduce.neutral.size();
  }
  for (std::size_t k = op.widths.size(); k-- > 0;)
    inner = {for_loop(kIndex, unit_.name(op.indices[k]), values_.poly(op.widths[k]), std::move(inner))};
  out.insert(out.end(), inner.begin(), inner.end());
}

void Kernel::replicate(const Replicate& op, const Stm& stm, KernelBlock& out) {
  Value array = stm.pattern.front();
  if (!unit_.function.values.type(op.value).is_scalar())
    unsupported(stm.location, "a replicate of an array in a kernel");
  std::vector<std::int64_t> counts;
  std::vector<std::string> names;
  for (const Poly& size : op.shape) {
    counts.push_back(unit_.constant(size, "the size of an array in a thread"));
    names.emplace_back("r");
  }
  for_registers(counts, names, out, [&](const std::vector<ExprPtr>& at, KernelBlock& inner) {
    inner.push_back(assign(element_of(array, at, stm.location), values_.operand(op.value)));
  });
}

}  // namespace apl::lower
