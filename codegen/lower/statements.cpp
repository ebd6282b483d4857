// Statements inside kernels: scalars, reads, loops, branches, sequential redomaps, checks.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "codegen/lower/lower.h"
#include "codegen/lower/scatter.h"
#include "codegen/lower/team.h"
#include "codegen/lower/vector_loops.h"
#include "ir/attributes.h"
#include "ir/builder.h"
#include "ir/layouts.h"
#include "ir/schedule.h"
#include "ir/walk.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

namespace {

// The sine of what `stm` is the cosine of, or the other way round; null: there is none in the body.
const Stm* other_of_sine_and_cosine(const Body& body, const Stm& stm, const ValueTable& table) {
  const Unary* unary = get_if<Unary>(stm);
  if (unary == nullptr || (unary->op != UnaryOp::sin && unary->op != UnaryOp::cos)) return nullptr;
  const ScalarType type = table.type(unary->x).element;
  if (type != ScalarType::f32 && type != ScalarType::f64) return nullptr;
  const auto found = std::ranges::find_if(body.stms, [&](const Stm& other) {
    const Unary* same = get_if<Unary>(other);
    return same != nullptr && same->x == unary->x &&
           same->op == (unary->op == UnaryOp::sin ? UnaryOp::cos : UnaryOp::sin);
  });
  return found == body.stms.end() ? nullptr : &*found;
}

}  // namespace

void Kernel::body(const Body& body, KernelBlock& out) {
  std::set<const Stm*> done;
  for (const Stm& stm : body.stms) {
    if (done.contains(&stm)) continue;
    const Stm* other = unit_.target.on_device() ? other_of_sine_and_cosine(body, stm, unit_.function.values) : nullptr;
    if (other == nullptr) {
      statement(stm, out);
      continue;
    }
    // Both have most of their work in common.
    done.insert(other);
    const Unary& unary = std::get<Unary>(stm.op);
    const CType type{unit_.function.type(stm.pattern.front()).element, false};
    const std::string first = unit_.name(stm.pattern.front()), second = unit_.name(other->pattern.front());
    const bool is_sine = unary.op == UnaryOp::sin;
    for (const std::string& name : {first, second})
      out.push_back(declare(type, name, literal(Scalar::zero(type.scalar)), false));
    out.push_back(do_call("apl_sincos", {values_.operand(unary.x), prefix("&", variable(is_sine ? first : second)),
                                         prefix("&", variable(is_sine ? second : first))}));
  }
}

void Kernel::scalar(const Stm& stm, ExprPtr value, KernelBlock& out) {
  Value result = stm.pattern.front();
  if (unit_.function.type(result).element == ScalarType::unit) return;
  out.push_back(declare({unit_.function.type(result).element, false}, unit_.name(result), std::move(value)));
}

void Kernel::fail(int code, const Stm& stm, std::string message, std::vector<ExprPtr> numbers, KernelBlock& out) {
  if (block_level_) unsupported(stm.location, "a check inside a block-level kernel");
  can_fail_ = true;
  Stmt report;
  report.kind = Stmt::Kind::fail;
  report.code = code;
  report.check = unit_.add_check(stm.location, std::move(message));
  report.numbers = std::move(numbers);
  if (unit_.may_stray_behind() && unit_.target.on_device()) report.name = "failed";
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
  fail(3, stm, "division by zero", {}, failed);
  out.push_back(kernel::branch(infix("==", values_.operand(op.y), zero), std::move(failed)));
}

// On a GPU, by a number that the kernel is given.
bool Kernel::divides_uniformly(const Binary& op) const {
  const auto division = division_of(op.op);
  return unit_.target.on_device() && (division == BinaryOp::div || division == BinaryOp::mod) && op.y.is_value() &&
         outside_.contains(op.y.value()) && is_integer(unit_.function.values.type(op.y).element);
}

void Kernel::statement(const Stm& stm, KernelBlock& out) {
  const ValueTable& table = unit_.function.values;
  if (barriers_.count(&stm)) {
    if (mainloop_) mainloop_->finish_copies(out);
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
    const ExprPtr x = values_.operand(binary->x), y = values_.operand(binary->y);
    scalar(stm,
           divides_uniformly(*binary) ? values_.uniform_division(binary->op, type_of(binary->x), x, y)
                                      : values_.binary(binary->op, type_of(binary->x), x, y),
           out);
  } else if (const Compare* compare = get_if<Compare>(stm)) {
    scalar(stm,
           values_.compare(compare->op, type_of(compare->x), values_.operand(compare->x), values_.operand(compare->y)),
           out);
  } else if (const Convert* convert = get_if<Convert>(stm)) {
    scalar(stm, values_.convert(*convert, type_of(convert->x), values_.operand(convert->x)), out);
  } else if (const SizeExpr* size = get_if<SizeExpr>(stm)) {
    vector_loops_->note_size(stm.pattern.front(), size->value);
    scalar(stm, values_.wrapping(size->value), out);
  } else if (const Index* i = get_if<Index>(stm)) {
    index(*i, stm, out);
  } else if (get_if<Rearrange>(stm) || get_if<Reshape>(stm) || get_if<Scratch>(stm) ||
             (array && array_operation(stm, out))) {
    // Views are layouts, and scratch is memory that is there already; the others have said what they do.
  } else if (const Loop* l = get_if<Loop>(stm)) {
    mainloop_ && mainloop_->is_mainloop(*l) ? mainloop_->mainloop_steps(std::get<SegOp>(stm_.op), stm, out)
                                            : loop(*l, stm, out);
  } else if (const If* choice = get_if<If>(stm)) {
    branch(*choice, stm, out);
  } else if (const Apply* function = get_if<Apply>(stm)) {
    call_function(*function, stm, out);
  } else if (const Screma* s = get_if<Screma>(stm)) {
    team_ && team_->shares(stm) ? team_->share(*s, stm, out) : screma(*s, stm, out);
  } else if (const Scatter* s = get_if<Scatter>(stm)) {
    scatters_->scatter(*s, stm, out);
  } else if (has_attribute(stm.attributes, attribute::trace)) {
    // Kernels print nothing.
  } else if (const Assert* assertion = get_if<Assert>(stm)) {
    KernelBlock failed;
    std::string message;
    std::vector<ExprPtr> numbers;
    for (const auto& piece : assertion->message) {
      if (const std::string* text = std::get_if<std::string>(&piece)) {
        message += *text;
      } else if (numbers.size() < kMaxFailureNumbers) {
        message += "%lld";
        numbers.push_back(values_.operand(std::get<Operand>(piece)));
      }
    }
    fail(2, stm, message, numbers, failed);
    out.push_back(kernel::branch(prefix("!", values_.operand(assertion->condition)), std::move(failed)));
  } else if (const Alloc* alloc = get_if<Alloc>(stm)) {
    // A team's would be that of a row, which it holds or does not store, since nobody reads it.
    if (!team_) block_level_ ? declare_shared(stm, *alloc, out) : thread_block(stm, *alloc, out);
  } else if (const CopyTile* copy = get_if<CopyTile>(stm)) {
    mainloop_ ? mainloop_->mainloop_copy(*copy, first, literal(std::int64_t{0}), out) : copy_tile(*copy, stm, out);
  } else if (const TileContract* contract = get_if<TileContract>(stm)) {
    mainloop_ ? mainloop_->mainloop_contract(*contract, stm, literal(std::int64_t{0}), out)
              : tile_contract(*contract, stm, out);
  } else if (const SegOp* seg = get_if<SegOp>(stm)) {
    const Screma* after = mainloop_ ? epilogue_map(*seg, table) : nullptr;
    if (after != nullptr) {
      mainloop_->mainloop_epilogue(*seg, *after, stm, out);
    } else {
      mainloop_ ? body(*seg->body, out) : inblock(*seg, stm, out);
    }
  } else {
    unsupported(stm.location, fmt::format("`{}` inside a kernel", op_name(stm.op)));
  }
}

void Kernel::index(const Index& op, const Stm& stm, KernelBlock& out) {
  const Type& source = unit_.function.type(op.array);
  if (op.checked) check_dims(op.array, op.dims, stm, out);
  if (unit_.function.type(stm.pattern.front()).is_array()) return;  // a view
  if (!source.memory) unsupported(stm.location, "an index of an array without memory");
  Lmad here = index_layout(source.memory->layout, op.dims);
  scalar(stm, element_at(op.array, here.offset(), stm.location), out);
}

// Scalars carried around are variables; arrays are where the first iteration finds them.
void Kernel::loop(const Loop& op, const Stm& stm, KernelBlock& out) {
  const ValueTable& table = unit_.function.values;
  std::vector<std::size_t> carried;
  for (std::size_t k = 0; k < op.params.size(); ++k)
    if (table.type(op.params[k]).is_scalar() && table.type(op.params[k]).element != ScalarType::unit)
      carried.push_back(k);
  for (std::size_t k : carried) {
    Value param = op.params[k];
    out.push_back(
        declare({table.type(param).element, false}, unit_.name(param), values_.operand(op.initial[k]), false));
    values_.scalars[stm.pattern[k]] = variable(unit_.name(param));
  }
  for (std::size_t k = 0; k < op.params.size(); ++k) {
    if (!table.type(op.params[k]).is_memory()) continue;
    growing_block(op.params[k]);
    buffers_[stm.pattern[k]] = buffers_[op.params[k]];
  }
  for (std::size_t k = 0; k < op.params.size(); ++k) yield_value(op.initial[k], op.params[k], stm.location, out);
  KernelBlock inner;
  body(*op.body, inner);
  for (std::size_t k = 0; k < op.params.size(); ++k)
    yield_value(op.body->results[k], op.params[k], stm.location, inner);
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
    out.push_back(for_loop(kIndex, unit_.name(op.index), values_.wrapping(op.bound), std::move(inner)));
  } else {
    Stmt loop;
    loop.kind = Stmt::Kind::while_loop;
    loop.value = variable(unit_.name(op.params[0]));
    loop.body = std::move(inner);
    out.push_back(std::move(loop));
  }
}

// The function says whether a check failed in it; what is left of this index is left out then.
void Kernel::call_function(const Apply& op, const Stm& stm, KernelBlock& out) {
  if (block_level_) unsupported(stm.location, "a call inside a block-level kernel");
  const ValueTable& table = unit_.function.values;
  const kernel::Function& function = unit_.called(op.function);
  std::vector<ExprPtr> arguments;
  for (const Operand& x : op.arguments)
    if (table.type(x).element != ScalarType::unit) arguments.push_back(values_.operand(x));
  for (Value v : stm.pattern) {
    const ScalarType type = table.type(v).element;
    if (type == ScalarType::unit) continue;
    out.push_back(declare({type, false}, unit_.name(v), values_.constant(Scalar::zero(type)), false));
    arguments.push_back(prefix("&", variable(unit_.name(v))));
  }
  if (function.can_fail) arguments.push_back(variable("failure"));
  if (function.sees_failed) arguments.push_back(variable("failed"));
  ExprPtr made = kernel::call(function.name, std::move(arguments));
  if (!function.can_fail) {
    out.push_back(do_call(made->text, made->args));
    return;
  }
  can_fail_ = true;
  made = kernel::call("apl_called", {variable("failure"), std::move(made), number_of(unit_.add_call(stm.location))});
  if (function_.is_called) {
    out.push_back(assign(variable(function_.status), std::move(made)));
    made = variable(function_.status);
  }
  Stmt leave;
  leave.kind = Stmt::Kind::leave;
  leave.name = leave_label_;
  out.push_back(kernel::branch(std::move(made), {std::move(leave)}));
}

void Kernel::branch(const If& op, const Stm& stm, KernelBlock& out) {
  const ValueTable& table = unit_.function.values;
  KernelBlock then_block, else_block;
  for (Value v : stm.pattern)
    if (table.type(v).is_memory()) growing_block(v);
  for (Value v : stm.pattern)
    if (table.type(v).is_scalar() && table.type(v).element != ScalarType::unit)
      out.push_back(declare({table.type(v).element, false}, unit_.name(v),
                            values_.constant(Scalar::zero(table.type(v).element)), false));
  auto fill = [&](const Body& source, KernelBlock& into) {
    body(source, into);
    for (std::size_t k = 0; k < stm.pattern.size(); ++k)
      yield_value(source.results[k], stm.pattern[k], stm.location, into);
    for (std::size_t k = 0; k < stm.pattern.size(); ++k)
      if (table.type(stm.pattern[k]).is_scalar() && table.type(stm.pattern[k]).element != ScalarType::unit)
        into.push_back(assign(variable(unit_.name(stm.pattern[k])), values_.operand(source.results[k])));
  };
  fill(*op.then_body, then_block);
  fill(*op.else_body, else_block);
  out.push_back(kernel::branch(values_.operand(op.condition), std::move(then_block), std::move(else_block)));
}

std::vector<ExprPtr> Kernel::inline_lambda(const Lambda& lambda, const std::vector<ExprPtr>& arguments,
                                           KernelBlock& out) {
  for (std::size_t k = 0; k < lambda.params.size(); ++k) {
    if (!arguments[k]) continue;
    // An element stands for its number in one conversion, and a half is a number in another: C++ makes only one.
    const ScalarType type = unit_.function.type(lambda.params[k]).element;
    const bool half = type == ScalarType::f16 && unit_.dialect().on_device && arguments[k]->kind == Expr::Kind::element;
    values_.scalars[lambda.params[k]] = half ? cast({type, false}, arguments[k]) : arguments[k];
  }
  body(*lambda.body, out);
  std::vector<ExprPtr> results;
  for (const Operand& result : lambda.body->results) {
    const bool array = result.is_value() && unit_.function.type(result.value()).is_array();
    results.push_back(array ? nullptr : values_.operand(result));
  }
  return results;
}

// One step of a reduction: accumulators, variables or arrays, become what the operator gives.
void Kernel::fold(const ReduceOp& reduce, const std::vector<Value>& accumulators, const std::vector<Operand>& operands,
                  Location location, KernelBlock& out) {
  const ValueTable& table = unit_.function.values;
  std::vector<ExprPtr> arguments;
  const auto argument = [&](const Operand& x) {
    // An array is found by its memory, not by an expression.
    arguments.push_back(x.is_value() && table.type(x.value()).is_array() ? nullptr : values_.operand(x));
  };
  for (Value acc : accumulators) argument(acc);
  for (std::size_t k = 0; k < operands.size(); ++k) {
    argument(operands[k]);
    yield_value(operands[k], reduce.op.params[accumulators.size() + k], location, out);
  }
  std::vector<ExprPtr> results = inline_lambda(reduce.op, arguments, out);
  for (std::size_t k = 0; k < accumulators.size(); ++k)
    yield_value(reduce.op.body->results[k], accumulators[k], location, out);
  for (std::size_t k = 0; k < results.size() && results.size() > 1; ++k) {
    const Type& type = table.type(accumulators[k]);
    if (!type.is_scalar()) continue;
    std::string name = unit_.fresh("next");
    out.push_back(declare({type.element, false}, name, results[k]));
    results[k] = variable(name);
  }
  for (std::size_t k = 0; k < results.size(); ++k)
    if (table.type(accumulators[k]).is_scalar())
      out.push_back(assign(variable(unit_.name(accumulators[k])), results[k]));
}

// The scalars that stream into a lambda; rows are views that place-memory has bound.
void Kernel::stream(const std::vector<Value>& inputs, const std::vector<Value>& params,
                    const std::vector<Value>& indices, Location location, KernelBlock& out) {
  const ValueTable& table = unit_.function.values;
  std::vector<DimIndex> here;
  for (Value i : indices) here.push_back(DimIndex::fix(Poly(i)));
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const Type& type = table.type(params[k]);
    if (!type.is_scalar() || type.element == ScalarType::unit) continue;
    const Type& input = table.type(inputs[k]);
    if (!input.memory) unsupported(location, "a stream of an array without memory");
    const Lmad row = index_layout(input.memory->layout, here);
    out.push_back(declare({type.element, false}, unit_.name(params[k]), element_at(inputs[k], row.offset(), location)));
  }
}

void Kernel::around_loops(const std::vector<Value>& indices, const std::vector<Poly>& widths, KernelBlock inner,
                          KernelBlock& out) {
  for (std::size_t k = widths.size(); k-- > 0;) {
    KernelBlock around;
    ExprPtr bound = values_.wrapping(widths[k]);
    // Computed once: C compilers do not see that a division gives the same each time.
    if (!widths[k].constant() && !widths[k].symbol() && !unit_.fold(widths[k])) {
      const std::string name = unit_.fresh("bound");
      around.push_back(declare(kIndex, name, bound));
      bound = variable(name);
    }
    around.push_back(for_loop(kIndex, unit_.name(indices[k]), bound, std::move(inner)));
    // A thread's register tile in a block: the loops disappear.
    const auto count = block_level_ ? unit_.fold(widths[k]) : std::nullopt;
    around.back().unroll = count && *count <= 64;
    inner = std::move(around);
  }
  out.insert(out.end(), inner.begin(), inner.end());
}

// Partial results into the accumulators, by the operators of `op`.
void Kernel::fold_partial(const Screma& op, const std::vector<Value>& accumulators,
                          const std::function<ExprPtr(std::size_t)>& partial, Location location, KernelBlock& out) {
  const std::unordered_map<Value, ExprPtr> before = values_.scalars;
  std::size_t first = 0;
  for (const ReduceOp& reduce : op.reduces) {
    // Stands for a partial result where the operator wants a value.
    std::vector<Operand> operands;
    std::vector<Value> results;
    for (std::size_t k = 0; k < reduce.neutral.size(); ++k, ++first) {
      const Value stand_in = reduce.op.params[reduce.neutral.size() + k];
      values_.scalars[stand_in] = partial(first);
      operands.emplace_back(stand_in);
      results.push_back(accumulators[first]);
    }
    fold(reduce, results, operands, location, out);
  }
  values_.scalars = before;
}

// A screma in one thread: accumulators are variables or arrays, the widths are loops.
void Kernel::screma(const Screma& op, const Stm& stm, KernelBlock& out) {
  const ValueTable& table = unit_.function.values;
  std::vector<Value> accumulators;
  for (const ReduceOp& reduce : op.reduces)
    for (std::size_t k = 0; k < reduce.neutral.size(); ++k) {
      const Operand& neutral = reduce.neutral[k];
      // A scan's are not its results, but what they are made of.
      const Value acc = reduce.scan ? reduce.op.params[k] : stm.pattern[accumulators.size()];
      accumulators.push_back(acc);
      yield_value(neutral, acc, stm.location, out);
      if (table.type(acc).is_scalar())
        out.push_back(declare({table.type(acc).element, false}, unit_.name(acc), values_.operand(neutral), false));
    }
  KernelBlock inner, stores;
  std::vector<ExprPtr> at;
  const std::size_t first_read = vector_loops_->reads();
  for (Value i : op.indices) at.push_back(variable(unit_.name(i)));
  stream(op.inputs, op.map.params, op.indices, stm.location, inner);
  body(*op.map.body, inner);
  std::size_t first = 0;
  for (const ReduceOp& reduce : op.reduces) {
    const auto n = static_cast<std::ptrdiff_t>(reduce.neutral.size());
    const auto from = static_cast<std::ptrdiff_t>(first);
    fold(reduce, {accumulators.begin() + from, accumulators.begin() + from + n},
         {op.map.body->results.begin() + from, op.map.body->results.begin() + from + n}, stm.location, inner);
    for (std::size_t k = 0; k < reduce.neutral.size() && reduce.scan; ++k)
      store(stm.pattern[first + k], at, accumulators[first + k], stm.location, stores);
    first += reduce.neutral.size();
  }
  for (std::size_t k = first; k < stm.pattern.size(); ++k)
    store(stm.pattern[k], at, op.map.body->results[k], stm.location, stores);
  if (!block_level_)
    if (std::optional<Stmt> loop = vector_loops_->scan_in_vectors(op, stm, first_read, inner, stores)) {
      loop->name = unit_.name(op.indices.front());
      loop->value = values_.poly(op.widths.front());
      out.push_back(std::move(*loop));
      return;
    }
  inner.insert(inner.end(), stores.begin(), stores.end());
  around_loops(op.indices, op.widths, std::move(inner), out);
  if (unit_.target.on_device() && has_attribute(stm_.attributes, attribute::chunks) && !op.scans() &&
      !has_loops(*op.map.body)) {
    out.back().unroll = true;
    out.back().unroll_by = kRoundsAtOnce;
  }
  if (!block_level_) {
    vector_loops_->sum_in_vectors(op, stm, first_read, out.back());
    vector_loops_->unroll_window(op, out.back());
    vector_loops_->fold_in_lanes(op, stm, first_read, out, [&](const VectorLoops::Partial& partial, KernelBlock& into) {
      fold_partial(op, accumulators, partial, stm.location, into);
    });
  }
}

}  // namespace apl::lower
