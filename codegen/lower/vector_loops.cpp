// Loops of a thread on a CPU in a form that the C compiler makes vectors of: sums with several partial sums, and sums
// of columns for many columns at once.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "codegen/lower/vector_loops.h"

#include "ir/attributes.h"
#include "ir/walk.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

namespace {

// Columns that are summed at once, at most: their sums stay in the first cache.
constexpr std::int64_t kColumns = 1024;

// What OpenMP calls the operator; "": it has no name there, or not this meaning (min and max of NaNs), or the type is
// not the machine's.
std::string_view simd_name(const ReduceOp& reduce, const ValueTable& values) {
  if (reduce.scan || reduce.neutral.size() != 1) return "";
  const std::optional<BinaryOp> op = as_binary_op(reduce.op);
  if (!op) return "";
  const Type type = values.type(reduce.neutral.front());
  if (!type.is_scalar() || type.element == ScalarType::f16 || type.element == ScalarType::bf16) return "";
  const bool flt = is_float(type.element), truth = type.element == ScalarType::boolean;
  switch (*op) {
    case BinaryOp::add: return "+";
    case BinaryOp::mul: return "*";
    case BinaryOp::min: return flt ? "" : "min";
    case BinaryOp::max: return flt ? "" : "max";
    case BinaryOp::conj: return truth ? "&&" : "&";
    case BinaryOp::disj: return truth ? "||" : "|";
    case BinaryOp::exor: return truth ? "" : "^";
    default: return "";
  }
}

// Nothing but scalars and elements: no loop, check or memory of its own.
bool is_straight(const KernelBlock& block) {
  return std::ranges::all_of(block, [](const Stmt& s) {
    if (s.kind == Stmt::Kind::branch) return is_straight(s.body) && is_straight(s.else_body);
    return s.kind == Stmt::Kind::declare || s.kind == Stmt::Kind::assign || s.kind == Stmt::Kind::comment;
  });
}

// The constant factor of `symbol` in the position; nullopt: it is none, or not known.
std::optional<std::int64_t> step_along(const Poly& position, Value symbol) {
  const auto linear = position.linear_in(symbol);
  return linear ? linear->coefficient.constant() : std::nullopt;
}

std::size_t opaque_nodes(const Poly& p) {
  std::size_t count = 0;
  for (const Term& term : p.terms())
    for (const Factor& factor : term.factors)
      if (factor.opaque) count += 1 + opaque_nodes(factor.opaque->a) + opaque_nodes(factor.opaque->b);
  return count;
}

}  // namespace

// A position in which sizes are what they were computed from, if divisions cancel then: an element of a flattened array
// is found by a quotient and a remainder, which are one index again.
Poly VectorLoops::without_divisions(const Poly& position) const {
  std::size_t divisions = 0;
  Poly result = position;
  constexpr int kDepth = 8;  // of sizes that are computed from others
  for (int depth = 0; depth < kDepth; ++depth) {
    bool again = false;
    result = result.substitute([&](Value v) -> std::optional<Poly> {
      const auto found = sizes_.find(v);
      if (found == sizes_.end()) return std::nullopt;
      again = true;
      divisions += opaque_nodes(found->second);
      return found->second;
    });
    if (!again) break;
  }
  return opaque_nodes(result) < divisions ? result : position;
}

// Terms may be added in any order, by the operator's laws, unless the program asks for one.
void VectorLoops::sum_in_vectors(const Screma& op, const Stm& stm, std::size_t first_read, Stmt& loop) const {
  const bool sequential =
      has_attribute(stm.attributes, attribute::sequential) || has_attribute(stm_.attributes, attribute::sequential);
  if (unit_.target.on_device() || sequential || op.widths.size() != 1 || op.reduces.empty()) return;
  if (op.map.body->results.size() != op.reduces.size() || !is_straight(loop.body)) return;
  for (std::size_t k = first_read; k < read_.size(); ++k) {
    const auto step = step_along(read_[k], op.indices.front());
    if (!step || (*step != 0 && *step != 1)) return;
  }
  std::vector<std::string> clauses{"omp simd"};
  for (std::size_t k = 0; k < op.reduces.size(); ++k) {
    const std::string_view name = simd_name(op.reduces[k], unit_.function.values);
    if (name.empty()) return;
    clauses.push_back(fmt::format("reduction({}:{})", name, unit_.name(stm.pattern[k])));
  }
  loop.pragma = fmt::format("{}", fmt::join(clauses, " "));
}

// A kernel that folds along columns, which lie side by side: each thread takes many at once, row by row, so that lines
// are read whole and in order. nullopt: that is not its form. `work` is what one index does.
std::optional<KernelBlock> VectorLoops::in_columns(const SegOp& op, const KernelBlock& work,
                                                   const std::vector<std::string>& names,
                                                   const std::vector<ExprPtr>& sizes) {
  const Value column = op.space.back().index;
  const Screma* fold = nullptr;
  for (const Stm& stm : op.body->stms) {
    const Screma* screma = get_if<Screma>(stm);
    if (screma == nullptr) continue;
    if (fold != nullptr || screma->widths.size() != 1 || screma->reduces.empty() || screma->scans())
      return std::nullopt;
    if (screma->map.body->results.size() != screma->reduced_count()) return std::nullopt;
    fold = screma;
  }
  if (fold == nullptr) return std::nullopt;
  for (const ReduceOp& reduce : fold->reduces)
    for (const Operand& neutral : reduce.neutral)
      if (!unit_.function.values.type(neutral).is_scalar()) return std::nullopt;
  bool same = true;  // rows for all columns
  fold->widths.front().for_each_symbol([&](Value v) { same = same && outside_.contains(v); });
  if (!same) return std::nullopt;
  // Neighbouring columns are neighbours in memory, and rows are not.
  bool across = false;
  for (const Poly& position : read_) {
    const auto step = step_along(position, column);
    if (!step || (*step != 0 && *step != 1)) return std::nullopt;
    across = across || (*step == 1 && !step_along(position, fold->indices.front()));
  }
  if (!across) return std::nullopt;

  // What stands before the loop, its sums, the loop, and what stands behind it.
  KernelBlock before, after;
  std::vector<Stmt> sums;
  const Stmt* rows = nullptr;
  for (const Stmt& s : work) {
    if (s.kind == Stmt::Kind::for_loop) {
      if (rows != nullptr) return std::nullopt;
      rows = &s;
    } else if (rows != nullptr) {
      after.push_back(s);
    } else if (s.kind == Stmt::Kind::declare && !s.constant) {
      sums.push_back(s);
    } else {
      before.push_back(s);
    }
  }
  constexpr std::size_t kFew = 8;  // done again for each row
  if (rows == nullptr || sums.size() != fold->reduced_count() || before.size() > kFew) return std::nullopt;
  if (!is_straight(before) || !is_straight(after) || !is_straight(rows->body)) return std::nullopt;

  const std::string from = unit_.fresh("from"), columns = unit_.fresh("columns"), at = unit_.fresh("at"),
                    step_of = unit_.fresh("columns_step");
  KernelBlock part;
  std::vector<ExprPtr> kept;
  for (const Stmt& sum : sums) {
    const std::string name = unit_.fresh("sums");
    part.push_back(declare_array(sum.type, name, kColumns));
    kept.push_back(element(name, variable(at)));
  }
  const ExprPtr width = variable(columns);
  part.push_back(
      declare(kIndex, columns, call("apl_index_min", {variable(step_of), infix("-", sizes.back(), variable(from))})));
  // How many rows there are is the same for all.
  for (const Stmt& s : before)
    if (s.kind == Stmt::Kind::declare && rows->value->kind == Expr::Kind::variable && rows->value->text == s.name)
      part.push_back(s);
  const auto each = [&](KernelBlock inner) {
    KernelBlock all{declare(kIndex, names.back(), plus(variable(from), variable(at)))};
    all.insert(all.end(), before.begin(), before.end());
    all.insert(all.end(), inner.begin(), inner.end());
    return for_loop(kIndex, at, width, std::move(all));
  };
  KernelBlock begin, step, end;
  for (std::size_t k = 0; k < sums.size(); ++k) {
    begin.push_back(assign(kept[k], sums[k].value));
    Stmt current = sums[k];
    current.value = kept[k];
    step.push_back(current);
    end.push_back(current);
  }
  step.insert(step.end(), rows->body.begin(), rows->body.end());
  for (std::size_t k = 0; k < sums.size(); ++k) step.push_back(assign(kept[k], variable(sums[k].name)));
  end.insert(end.end(), after.begin(), after.end());
  part.push_back(each(std::move(begin)));
  Stmt across_columns = each(std::move(step));
  across_columns.pragma = "omp simd";
  Stmt down = *rows;
  down.pragma.clear();
  down.body = {std::move(across_columns)};
  part.push_back(std::move(down));
  part.push_back(each(std::move(end)));
  Stmt parts = for_loop(kIndex, from, sizes.back(), std::move(part));
  parts.step = variable(step_of);
  KernelBlock result{std::move(parts)};
  for (std::size_t k = op.space.size() - 1; k-- > 0;) {
    Stmt loop = for_loop(kIndex, names[k], sizes[k], std::move(result));
    result = {std::move(loop)};
  }
  result.front().parallel = true;
  result.front().collapse = static_cast<int>(op.space.size());
  result.insert(result.begin(),
                declare(kIndex, step_of, call("apl_columns_at_once", {sizes.back(), literal(kColumns)})));
  return result;
}

}  // namespace apl::lower
