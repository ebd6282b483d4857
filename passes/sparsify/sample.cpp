// SDDMM and its kin: a kernel that reads A[i, j] where it writes [i, j], and gives the same everywhere else,
//
//   let {C : [n][m]f32} =
//     segmap(thread) (i < n, j < m) {
//       let {s : f32} = redomap(k < q, ...)       of X[i, k] and Y[j, k]
//       let {a : f32} = A[i, j]
//       let {c : f32} = mul(a, s)
//       return {returns c}
//     }
//
// runs for the non-zeros alone, with i = A_row[e], j = A_column[e] and a = A_values[e]. The body is kept as it is.
#include <algorithm>

#include "ir/walk.h"
#include "passes/sparsify/sparsify.h"

namespace apl::sparsify {
namespace {

// Statements of all bodies but those that `drop` names.
BodyPtr without(const BodyPtr& body, const std::set<Value>& drop) {
  std::vector<Stm> stms;
  for (const Stm& stm : body->stms) {
    if (!stm.pattern.empty() && std::ranges::all_of(stm.pattern, [&](Value v) { return drop.contains(v); })) continue;
    stms.push_back(stm);
    stms.back().op = map_bodies(stm.op, [&](const BodyPtr& inner) { return without(inner, drop); });
  }
  return make_body(std::move(stms), body->results);
}

}  // namespace

std::optional<ElementAt> element_at(const Lmad& layout, const Pattern& pattern, const std::vector<SegDim>& indices) {
  if (layout.rank() != 0) return std::nullopt;
  for (const SegDim& row : indices)
    for (const SegDim& column : indices)
      if (!(row.index == column.index) && row.bound == pattern.rows && column.bound == pattern.columns &&
          layout.offset() == pattern.columns * Poly(row.index) + Poly(column.index))
        return ElementAt{row.index, column.index};
  return std::nullopt;
}

std::variant<Sampled, Reason> sample(const Stm& kernel, const SparseArray& array, Value base, const Layouts& layouts,
                                     Builder& host) {
  ValueTable& values = host.values();
  const Pattern& pattern = *array.pattern;
  const SegOp& op = std::get<SegOp>(kernel.op);
  const std::string name = "`" + values.name(base) + "`";
  const Reason not_here{"not-sampled", name + " is not read where the kernel writes", {}};
  std::optional<ElementAt> place;
  std::set<Value> elements, drop;
  bool sampled = true;
  const auto note = [&](Value v, bool own_statement) {
    const Layout* layout = layouts.find(v);
    if (layout == nullptr || layout->base != base) return;
    if (values.type(v).is_array()) {
      if (own_statement) drop.insert(v);
      return;
    }
    const auto here = element_at(layout->lmad, pattern, op.space);
    sampled =
        sampled && own_statement && here && (!place || (place->row == here->row && place->column == here->column));
    if (here) place = here;
    elements.insert(v);
    drop.insert(v);
  };
  for_each_stm(*op.body, [&](const Stm& stm) {
    for (const Value v : stm.pattern) note(v, get_if<Index>(stm) || get_if<Rearrange>(stm) || get_if<Use>(stm));
    for_each_binder(stm.op, [&](Value v) { note(v, false); });
  });
  if (elements.empty() || !sampled || !place) return not_here;
  for (const KernelResult& result : op.results)
    if (result.kind != KernelResult::Kind::returns) return not_here;
  for (const Operand& result : op.body->results)
    if (!values.type(result).is_scalar())
      return Reason{"gives-rows", "the kernel that reads " + name + " gives rows, not numbers",
                    "map over the elements in a nest of its own"};

  Absence absence(values);
  for (const Value element : elements) absence.know(element, Scalar::zero(values.type(element).element));
  absence.look_for_infinities(*op.body);
  absence.run(*op.body);
  Sampled made{.kernel = kernel, .elsewhere = {}};
  for (const Operand& result : op.body->results) {
    const auto is = absence.of(result);
    if (!is)
      return Reason{"absence-not-neutral",
                    "what the kernel gives where " + name + " has no element is not known to be the same everywhere",
                    "multiply by the element, or give a constant where it is 0"};
    made.elsewhere.push_back(*is);
  }

  SegOp over{.level = SegLevel::thread, .space = {}, .body = {}, .results = op.results};
  const Value nonzero = values.add(Type::scalar(ScalarType::i64), "e");
  Substitution renaming;
  for (std::size_t d = 0; d < op.space.size(); ++d) {
    if (op.space[d].index == place->row) {
      made.row_dim = d;
      over.space.push_back({nonzero, pattern.nonzeros});
    } else if (op.space[d].index == place->column) {
      made.column_dim = d;
    } else {
      const Value index = values.add(Type::scalar(ScalarType::i64), values.name(op.space[d].index));
      over.space.push_back({index, op.space[d].bound});
      renaming.insert_or_assign(op.space[d].index, Operand(index));
    }
  }
  const BodyPtr kept = without(op.body, drop);
  over.body = host.body([&](Builder& thread) {
    const auto at = [&](BundleField field, Value index) {
      const Value here = thread.index(pattern.field(field), {Poly(nonzero)}, std::string(to_text(field)));
      renaming.insert_or_assign(index, Operand(thread.convert(ScalarType::i64, here, values.name(index))));
    };
    at(BundleField::row, place->row);
    at(BundleField::column, place->column);
    const Value a = thread.index(array.values, {Poly(nonzero)}, "a");
    for (const Value element : elements) renaming.insert_or_assign(element, Operand(a));
    const BodyPtr body = copy_fresh(kept, renaming, values, values);
    thread.append_all(body->stms);
    return body->results;
  });
  const std::set<Value> left = free_values(*over.body, values);
  for (const Value v : drop)
    if (left.contains(v)) return not_here;
  if (left.contains(base)) return not_here;
  made.kernel.op = std::move(over);
  made.kernel.pattern.clear();
  return made;
}

}  // namespace apl::sparsify
