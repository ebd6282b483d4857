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
// runs for the non-zeros alone, with i = A_row[e], j = A_column[e] and a = A_values[e]. The body is kept as it is, with
// what it reads of A at other places, as the sum in A .* (A A) does: sparsify/threads sees to that.
#include <range/v3/view/zip.hpp>

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

// A branch that elements of A decide is the same for nearly all non-zeros. Sums in what these take are taken out of it,
// so that the kernel is a sum and its epilogue.
BodyPtr with_sums_first(const BodyPtr& body, const ZeroPropagation& zeros, const ValueTable& values) {
  std::vector<Stm> stms;
  for (const Stm& stm : body->stms) {
    const If* choice = get_if<If>(stm);
    const auto reads_zero = choice != nullptr ? zeros.of(choice->condition) : std::nullopt;
    if (!reads_zero) {
      stms.push_back(stm);
      continue;
    }
    const bool in_then = !reads_zero->as_bool();
    const Body& taken = in_then ? *choice->then_body : *choice->else_body;
    std::set<Value> needed;
    std::vector<Stm> first, rest;
    bool total = true;
    for (auto inner = taken.stms.rbegin(); inner != taken.stms.rend(); ++inner) {
      const Screma* sum = get_if<Screma>(*inner);
      const bool moves = (sum != nullptr && !sum->reduces.empty() && !sum->scans()) ||
                         std::ranges::any_of(inner->pattern, [&](Value v) { return needed.contains(v); });
      (moves ? first : rest).insert((moves ? first : rest).begin(), *inner);
      if (!moves) continue;
      total = total && !can_fail(inner->op, values);
      for (const Value v : free_values(inner->op, values)) needed.insert(v);
    }
    if (!total) {
      stms.push_back(stm);
      continue;
    }
    stms.insert(stms.end(), first.begin(), first.end());
    If without = *choice;
    (in_then ? without.then_body : without.else_body) = make_body(std::move(rest), taken.results);
    stms.push_back(stm);
    stms.back().op = std::move(without);
  }
  return make_body(std::move(stms), body->results);
}

// Where a kernel reads a sparse array at its own indices: at the first such place, if there are several.
struct Reads {
  std::optional<ElementAt> location;
  std::map<Value, ElementAt> elements;
};

Reads reads_of(const SegOp& op, Value base, const SparseArray& array, const Layouts& layouts,
               const ValueTable& values) {
  Reads reads;
  for_each_stm(*op.body, [&](const Stm& stm) {
    if (stm.pattern.size() != 1 || get_if<Index>(stm) == nullptr) return;
    const Value v = stm.pattern.front();
    const Layout* layout = layouts.find(v);
    if (layout == nullptr || layout->base != base || values.type(v).is_array()) return;
    const auto here = element_at(layout->lmad, array, op.space);
    if (!here) return;
    if (!reads.location) reads.location = here;
    if (reads.location->row == here->row && reads.location->column == here->column) reads.elements.emplace(v, *here);
  });
  return reads;
}

}  // namespace

std::optional<ElementAt> element_at(const Lmad& layout, const SparseArray& array, const std::vector<SegDim>& indices) {
  if (layout.rank() != 0) return std::nullopt;
  const Pattern& pattern = *array.pattern;
  const auto index_at = [&](Poly& rest, const Poly& stride, const Poly& bound) -> std::optional<Value> {
    for (const SegDim& dim : indices) {
      const auto linear = dim.bound == bound ? rest.linear_in(dim.index) : std::nullopt;
      if (!linear || !(linear->coefficient == stride)) continue;
      rest = linear->rest;
      return dim.index;
    }
    return std::nullopt;
  };
  Poly rest = layout.offset(), stride = pattern.rows * pattern.columns;
  const auto column = index_at(rest, 1, pattern.columns), row = index_at(rest, pattern.columns, pattern.rows);
  if (!row || !column) return std::nullopt;
  ElementAt at{*row, *column, {}};
  for (auto batch = array.batches.rbegin(); batch != array.batches.rend(); ++batch) {
    const auto index = index_at(rest, stride, *batch);
    if (!index) return std::nullopt;
    at.batches.insert(at.batches.begin(), *index);
    stride = stride * *batch;
  }
  return rest.is_zero() ? std::optional(at) : std::nullopt;
}

std::variant<Sddmm, Reason> match_sddmm(const Stm& kernel, const SparseArrays& arrays, Value base,
                                        const Layouts& layouts, Builder& host) {
  ValueTable& values = host.values();
  const Pattern& pattern = *arrays.at(base).pattern;
  const SegOp& op = std::get<SegOp>(kernel.op);
  const std::string name = "`" + values.name(base) + "`";
  const Reason not_here{"not-sddmm", name + " is not read where the kernel writes", {}};
  // Of all arrays with this pattern that are read where the kernel writes.
  std::map<Value, std::pair<const SparseArray*, ElementAt>> elements;
  std::set<Value> drop;
  std::optional<ElementAt> location;
  const auto add = [&](Value of, const SparseArray& array) {
    const Reads reads = reads_of(op, of, array, layouts, values);
    if (!reads.location ||
        (location && !(location->row == reads.location->row && location->column == reads.location->column)))
      return;
    location = reads.location;
    for (const auto& [element, at] : reads.elements) {
      elements.emplace(element, std::pair{&array, at});
      drop.insert(element);
    }
  };
  add(base, arrays.at(base));
  if (!location) return not_here;
  for (const auto& [of, array] : arrays)
    if (of != base && array.pattern == &pattern) add(of, array);
  for (const KernelResult& result : op.results)
    if (result.kind != KernelResult::Kind::returns) return not_here;
  for (const Operand& result : op.body->results)
    if (!values.type(result).is_scalar())
      return Reason{"gives-rows", "the kernel that reads " + name + " gives rows, not numbers",
                    "map over the elements in a nest of its own"};

  ZeroPropagation zeros(values);
  for (const auto& [element, at] : elements) zeros.know(element, Scalar::zero(values.type(element).element));
  zeros.look_for_infinities(*op.body);
  zeros.run(*op.body);
  Sddmm made;
  made.kernel = kernel;
  for (const Operand& result : op.body->results) {
    const auto is = zeros.of(result);
    if (!is && zeros.has_undecided_quotient()) return zero_not_neutral(name, zeros);
    if (!is)
      return Reason{"zero-not-neutral",
                    "what the kernel gives where " + name + " has no element is not known to be the same everywhere",
                    "multiply by the element, or give a constant where it is 0"};
    made.elsewhere.push_back(*is);
  }

  made.body = with_sums_first(without(op.body, drop), zeros, values);
  made.location = *location;
  made.elements = elements;
  SegOp over{.level = SegLevel::thread, .space = {}, .body = {}, .results = op.results};
  const Value nonzero = values.add(Type::scalar(ScalarType::i64), "e");
  Substitution others;
  for (std::size_t d = 0; d < op.space.size(); ++d) {
    if (op.space[d].index == location->row) {
      made.row_dim = d;
      over.space.push_back({nonzero, pattern.nonzeros});
    } else if (op.space[d].index == location->column) {
      made.column_dim = d;
    } else {
      const Value index = values.add(Type::scalar(ScalarType::i64), values.name(op.space[d].index));
      over.space.push_back({index, op.space[d].bound});
      others.insert_or_assign(op.space[d].index, Operand(index));
    }
  }
  over.body = host.body([&](Builder& thread) {
    const auto at = [&](SoaField field, Value index) {
      const Value here = thread.index(pattern.field(field), {Poly(nonzero)}, std::string(to_text(field)));
      return thread.convert(ScalarType::i64, here, values.name(index));
    };
    const Value row = at(SoaField::row, location->row), column = at(SoaField::column, location->column);
    return sddmm_at(made, row, column, nonzero, others, thread);
  });
  made.kernel.op = std::move(over);
  made.kernel.pattern.clear();
  return made;
}

std::vector<Operand> sddmm_at(const Sddmm& sddmm, Value row, Value column, Value nonzero, Substitution here,
                              Builder& out) {
  here.insert_or_assign(sddmm.location.row, Operand(row));
  here.insert_or_assign(sddmm.location.column, Operand(column));
  std::map<std::pair<Value, std::vector<Value>>, Value> read;
  for (const auto& [element, from] : sddmm.elements) {
    const auto& [array, where] = from;
    Value& a = read[{array->values, where.batches}];
    if (!a) {
      std::vector<Poly> index;
      for (const Value batch : where.batches) index.push_back(substitute(Poly(batch), here));
      index.emplace_back(nonzero);
      a = out.index(array->values, index, "a");
    }
    here.insert_or_assign(element, Operand(a));
  }
  const BodyPtr body = copy_fresh(sddmm.body, here, out.values(), out.values());
  out.append_all(body->stms);
  return body->results;
}

std::vector<Value> sddmm_nonzeros(Sddmm& sddmm, Builder& host) {
  const std::vector<Type> types = result_types(sddmm.kernel.op, host.values());
  for (const auto& [type, name] : ranges::views::zip(types, sddmm.names))
    sddmm.kernel.pattern.push_back(host.values().add(type, name));
  const std::vector<Value> results = sddmm.kernel.pattern;
  host.append(std::move(sddmm.kernel));
  return results;
}

}  // namespace apl::sparsify
