// Loops of a thread on a CPU in a form that the C compiler makes vectors of: sums with several partial sums, and sums
// of columns for many columns at once; and transpositions in squares.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "codegen/lower/vector_loops.h"

#include "ir/attributes.h"
#include "ir/layouts.h"
#include "ir/walk.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

namespace {

// Columns that are summed at once, at most: their sums stay in the first cache.
constexpr std::int64_t kColumns = 1024;
// Elements of a square along either dim: two lines of 32-bit elements, and few enough pages for the first level of the
// address translation.
constexpr std::int64_t kSquare = 32;
// Terms of a window that are written out, at most: one of 9 x 9 is.
constexpr std::int64_t kWindow = 96;
// What OpenMP calls the operator on that type; "": it has no name there, or the type is not the machine's. Minima and
// maxima of floats are those of elements that are numbers in whatever order they are taken; which zero is the larger
// one, nobody says.
std::string_view simd_name(BinaryOp op, const Type& type) {
  if (!type.is_scalar() || type.element == ScalarType::f16 || type.element == ScalarType::bf16) return "";
  const bool truth = type.element == ScalarType::boolean;
  switch (op) {
    case BinaryOp::add: return "+";
    case BinaryOp::mul: return "*";
    case BinaryOp::min: return "min";
    case BinaryOp::max: return "max";
    case BinaryOp::conj: return truth ? "&&" : "&";
    case BinaryOp::disj: return truth ? "||" : "|";
    case BinaryOp::exor: return truth ? "" : "^";
    default: return "";
  }
}

// The names of the operators that its results are computed by, each from its own two parameters; empty: it is not so.
std::vector<std::string_view> simd_names(const ReduceOp& reduce, const ValueTable& values, bool scans = false) {
  const std::size_t count = reduce.neutral.size();
  const Body& body = *reduce.op.body;
  if (reduce.scan != scans || body.stms.size() != count) return {};
  std::vector<std::string_view> names;
  for (std::size_t k = 0; k < count; ++k) {
    const auto made = std::ranges::find_if(
        body.stms, [&](const Stm& stm) { return body.results[k] == Operand(stm.pattern.front()); });
    const Binary* binary = made == body.stms.end() ? nullptr : get_if<Binary>(*made);
    if (binary == nullptr) return {};
    const Operand a(reduce.op.params[k]), b(reduce.op.params[count + k]);
    if (!(binary->x == a && binary->y == b) && !(binary->x == b && binary->y == a)) return {};
    names.push_back(simd_name(binary->op, values.type(reduce.neutral[k])));
    if (names.back().empty()) return {};
  }
  return names;
}

std::size_t opaque_nodes(const Poly& p) {
  std::size_t count = 0;
  for (const Term& term : p.terms())
    for (const Factor& factor : term.factors)
      if (factor.opaque) count += 1 + opaque_nodes(factor.opaque->a) + opaque_nodes(factor.opaque->b);
  return count;
}

}  // namespace

std::optional<std::int64_t> step_along(const Poly& position, Value symbol) {
  const auto linear = position.linear_in(symbol);
  return linear ? linear->coefficient.constant() : std::nullopt;
}

bool is_straight(const KernelBlock& block) {
  return std::ranges::all_of(block, [](const Stmt& s) {
    if (s.kind == Stmt::Kind::branch) return is_straight(s.body) && is_straight(s.else_body);
    return s.kind == Stmt::Kind::declare || s.kind == Stmt::Kind::assign || s.kind == Stmt::Kind::comment;
  });
}

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
  if (!is_straight(loop.body)) return;
  // What the map yields besides goes to an element of its own for each index.
  for (std::size_t k = op.reduced_count(); k < op.map.body->results.size(); ++k)
    if (!unit_.function.values.type(op.map.body->results[k]).is_scalar()) return;
  for (std::size_t k = first_read; k < read_.size(); ++k) {
    const auto step = step_along(read_[k], op.indices.front());
    if (!step || (*step != 0 && *step != 1)) return;
  }
  std::vector<std::string> clauses{"omp simd"};
  std::size_t result = 0;
  for (const ReduceOp& reduce : op.reduces) {
    const std::vector<std::string_view> names = simd_names(reduce, unit_.function.values);
    if (names.empty()) return;
    for (std::string_view name : names)
      clauses.push_back(fmt::format("reduction({}:{})", name, unit_.name(stm.pattern[result++])));
  }
  loop.pragma = fmt::format("{}", fmt::join(clauses, " "));
}

// What a vector's elements give is combined by shifts of one, two, four and so on: so GCC has it.
std::optional<Stmt> VectorLoops::scan_in_vectors(const Screma& op, const Stm& stm, std::size_t first_read,
                                                 const KernelBlock& sums, const KernelBlock& stores) const {
  const bool sequential =
      has_attribute(stm.attributes, attribute::sequential) || has_attribute(stm_.attributes, attribute::sequential);
  if (unit_.target.on_device() || sequential || op.widths.size() != 1 || !op.scans()) return std::nullopt;
  if (op.map.body->results.size() != op.reduced_count() || !is_straight(sums) || !is_straight(stores))
    return std::nullopt;
  if (op.widths.front().constant()) return std::nullopt;  // a few elements in registers
  for (std::size_t k = first_read; k < read_.size(); ++k) {
    const auto step = step_along(read_[k], op.indices.front());
    if (!step || (*step != 0 && *step != 1)) return std::nullopt;
  }
  std::vector<std::string> clauses{"omp simd"}, scanned;
  for (const ReduceOp& reduce : op.reduces) {
    const std::vector<std::string_view> names = simd_names(reduce, unit_.function.values, true);
    if (names.empty()) return std::nullopt;
    for (std::size_t k = 0; k < names.size(); ++k) {
      scanned.push_back(unit_.name(reduce.op.params[k]));
      clauses.push_back(fmt::format("reduction(inscan, {}:{})", names[k], scanned.back()));
    }
  }
  Stmt loop = for_loop(kIndex, "", nullptr, sums);
  loop.else_body = stores;
  loop.pragma = fmt::format("{}", fmt::join(clauses, " "));
  loop.scan = fmt::format("omp scan inclusive({})", fmt::join(scanned, ", "));
  return loop;
}

void VectorLoops::unroll_window(const Screma& op, Stmt& loop) const {
  if (unit_.target.on_device() || op.reduces.empty() || op.scans() || !loop.pragma.empty()) return;
  std::int64_t terms = 1;
  for (const Poly& width : op.widths) {
    const std::optional<std::int64_t> count = width.constant();
    if (!count || *count < 1 || *count > kWindow) return;
    terms *= *count;
  }
  if (terms > kWindow) return;
  std::vector<Stmt*> loops{&loop};
  while (loops.size() < op.widths.size()) {
    if (loops.back()->body.size() != 1 || loops.back()->body.front().kind != Stmt::Kind::for_loop) return;
    loops.push_back(&loops.back()->body.front());
  }
  const KernelBlock& body = loops.back()->body;
  if (!is_straight(body) || std::ranges::any_of(body, [](const Stmt& s) { return s.kind == Stmt::Kind::branch; }))
    return;
  for (std::size_t k = 0; k < loops.size(); ++k) {
    loops[k]->unroll = true;
    loops[k]->unroll_by = *op.widths[k].constant();
  }
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

std::optional<KernelBlock> VectorLoops::in_squares(const SegOp& op, const KernelBlock& work,
                                                   const std::vector<std::string>& names,
                                                   const std::vector<ExprPtr>& sizes) {
  const std::size_t rank = op.space.size();
  if (rank < 2 || !is_straight(work)) return std::nullopt;
  // Elements whose neighbours lie along one other dim than the last, along which all is written.
  std::optional<std::size_t> partner;
  std::vector<std::string> turned;
  for (const Stm& stm : op.body->stms) {
    const Index* read = get_if<Index>(stm);
    if (read == nullptr || !unit_.function.type(stm.pattern.front()).is_scalar()) continue;
    const Type& source = unit_.function.type(read->array);
    if (!source.memory) continue;
    const Poly position = without_divisions(index_layout(source.memory->layout, read->dims).offset());
    bool known = true;  // before the thread computes anything
    position.for_each_symbol([&](Value v) {
      known = known &&
              (outside_.contains(v) || std::ranges::any_of(op.space, [&](const SegDim& d) { return d.index == v; }));
    });
    const auto last = step_along(position, op.space.back().index);
    if (!known || (last && (*last == 0 || *last == 1))) continue;
    for (std::size_t d = 0; d + 1 < rank; ++d) {
      if (step_along(position, op.space[d].index) != 1 || (partner && *partner != d)) continue;
      partner = d;
      turned.push_back(unit_.name(stm.pattern.front()));
      break;
    }
  }
  if (!partner) return std::nullopt;

  // Such elements of a square are read along their lines into an array of the thread.
  const std::string row = names[*partner], column = names.back();
  const std::string rows = unit_.fresh("rows"), columns = unit_.fresh("columns");
  const std::string rows_end = unit_.fresh("rows_end"), columns_end = unit_.fresh("columns_end");
  const auto part = [](const std::string& name, const std::string& from, const std::string& to, KernelBlock body) {
    Stmt loop = for_loop(kIndex, name, variable(to), std::move(body));
    loop.from = variable(from);
    return loop;
  };
  const auto end = [](const std::string& from, const ExprPtr& size) {
    return call("apl_index_min", {size, plus(variable(from), literal(kSquare))});
  };
  const ExprPtr at = plus(infix("*", infix("-", variable(column), variable(columns)), literal(kSquare)),
                          infix("-", variable(row), variable(rows)));
  KernelBlock square{declare(kIndex, rows_end, end(rows, sizes[*partner])),
                     declare(kIndex, columns_end, end(columns, sizes.back()))};
  KernelBlock fill, rest = work;
  for (Stmt& s : rest) {
    if (s.kind != Stmt::Kind::declare || std::ranges::find(turned, s.name) == turned.end()) continue;
    const std::string array = unit_.fresh("square");
    square.push_back(declare_array(s.type, array, kSquare * kSquare));
    fill.push_back(assign(element(array, at), s.value));
    s.value = element(array, at);
  }
  if (fill.empty()) return std::nullopt;
  square.push_back(part(column, columns, columns_end, {part(row, rows, rows_end, std::move(fill))}));
  square.push_back(part(row, rows, rows_end, {part(column, columns, columns_end, std::move(rest))}));
  KernelBlock result = std::move(square);
  for (std::size_t k = rank; k-- > 0;) {
    const bool is_column = k + 1 == rank, is_row = k == *partner;
    Stmt loop = for_loop(kIndex, is_column ? columns : is_row ? rows : names[k], sizes[k], std::move(result));
    if (is_column || is_row) loop.step = literal(kSquare);
    result = {std::move(loop)};
  }
  result.front().parallel = true;
  result.front().collapse = static_cast<int>(rank);
  return result;
}

}  // namespace apl::lower
