// SpMM and its kin: a contraction in which A[i, k] is summed over k (or over i) becomes
//
//   let {C : [n][b]f32} =
//     segmap(thread) (i < n, j < b) {
//       let {first : i64} = A_row_start[i]
//       let {last : i64} = A_row_start[i + 1]
//       let {c : f32} = redomap(p < last - first, ..., \{} -> {
//           a = A_values[first + p], k = A_column[first + p], x = B[k, j]
//           in {the map function of a and x} }, ...)
//       return {returns c}
//     }
//
// A thread owns its sum: no two write one element, and sums have the order of the dense program's, so that any
// associative operator will do. Over i the rows of a column are gone through in the same way.
#include <algorithm>

#include "ir/walk.h"
#include "passes/sparsify/sparsify.h"

namespace apl::sparsify {
namespace {

struct Role {
  std::size_t row = 0, column = 0;  // dims of the contraction
};

// The dims that index A's rows and columns, if the operand is A[row][column] as a whole.
std::optional<Role> role_of(const ContractionOperand& operand, const Contraction& contraction, const Pattern& pattern) {
  if (!operand.offset.is_zero()) return std::nullopt;
  std::optional<std::size_t> row, column;
  for (std::size_t d = 0; d < contraction.dims.size(); ++d) {
    const Poly& stride = operand.strides[d];
    if (stride.is_zero()) continue;
    if (!column && stride.is_one() && contraction.dims[d].size == pattern.columns) {
      column = d;
    } else if (!row && stride == pattern.columns && contraction.dims[d].size == pattern.rows) {
      row = d;
    } else {
      return std::nullopt;
    }
  }
  if (!row || !column) return std::nullopt;
  return Role{*row, *column};
}

// Elements of an array by the indices of the dims: each axis of the array is one dim, or else as one row of elements.
struct Reader {
  const ContractionOperand* operand = nullptr;
  Value array;                                      // none: the elements are indices
  std::vector<std::optional<std::size_t>> by_axis;  // dims; empty: by position
};

Reader make_reader(const ContractionOperand& operand, const Contraction& contraction, Builder& host) {
  Reader reader{.operand = &operand, .array = operand.base, .by_axis = {}};
  if (operand.index) return {.operand = &operand, .array = {}, .by_axis = {}};
  const Type type = host.values().type(operand.base);
  Poly stride = 1;
  std::vector<std::optional<std::size_t>> axes(type.rank());
  std::vector<bool> used(contraction.dims.size());
  for (std::size_t axis = type.rank(); axis-- > 0; stride = stride * type.shape[axis])
    for (std::size_t d = 0; d < contraction.dims.size() && !axes[axis]; ++d) {
      if (used[d] || operand.strides[d] != stride || !(contraction.dims[d].size == type.shape[axis])) continue;
      axes[axis] = d;
      used[d] = true;
    }
  bool whole = operand.offset.is_zero();
  for (std::size_t axis = 0; axis < type.rank(); ++axis) whole = whole && (axes[axis] || type.shape[axis].is_one());
  for (std::size_t d = 0; d < contraction.dims.size(); ++d) whole = whole && used[d] == operand.varies(d);
  if (whole) {
    reader.by_axis = std::move(axes);
  } else if (type.rank() > 1) {
    reader.array = host.let(host.values().name(operand.base), Reshape{operand.base, {product(type.shape)}});
  }
  return reader;
}

Value read(const Reader& reader, const Contraction& contraction, const Substitution& here, Builder& body) {
  const ContractionOperand& operand = *reader.operand;
  const std::string name = body.values().name(operand.element);
  const auto index = [&](std::size_t d) { return substitute(Poly(contraction.dims[d].index), here); };
  if (!reader.by_axis.empty()) {
    std::vector<Poly> at;
    for (const auto& d : reader.by_axis) at.push_back(d ? index(*d) : Poly(0));
    return body.index(reader.array, at, name);
  }
  Poly position = operand.offset;
  for (std::size_t d = 0; d < contraction.dims.size(); ++d) position += operand.strides[d] * index(d);
  return reader.array ? body.index(reader.array, {position}, name) : body.size(position, name);
}

std::optional<Reason> refuse(const Contraction& contraction, const std::set<Value>& ours, Value base,
                             const ValueTable& values) {
  const auto reads = [&](const Lambda& lambda) { return free_values(lambda, values).contains(base); };
  if (reads(contraction.map) || reads(contraction.reduce.op) || (contraction.after && reads(*contraction.after)))
    return Reason{"used-twice", "`" + values.name(base) + "` is also read outside of the sum",
                  "multiply by its elements in a map of its own"};
  Absence absence(values);
  for (const Value element : ours) absence.know(element, Scalar::zero(values.type(element).element));
  absence.run(*contraction.map.body);
  for (std::size_t k = 0; k < contraction.reduce.neutral.size(); ++k) {
    const auto term = absence.of(contraction.map.body->results[k]);
    const Operand& neutral = contraction.reduce.neutral[k];
    if (!term || !neutral.is_constant() || !same_number(*term, neutral.constant()))
      return Reason{"absence-not-neutral",
                    "where `" + values.name(base) + "` has no element, the sum's term is not known to be the neutral element",
                    "give the neutral element where the element is 0: `if a == 0 then neutral else ...`"};
  }
  return std::nullopt;
}

}  // namespace

std::variant<Contracted, Reason> contract(const Stm& kernel, const Contraction& contraction, const SparseArray& array,
                                          Value base, Builder& host) {
  ValueTable& values = host.values();
  const Pattern& pattern = *array.pattern;
  const std::string name = "`" + values.name(base) + "`";
  std::optional<Role> role;
  std::set<Value> ours;
  for (const auto* operands : {&contraction.operands, &contraction.uniform})
    for (const ContractionOperand& operand : *operands) {
      if (operand.base != base) continue;
      const auto here = role_of(operand, contraction, pattern);
      if (!here)
        return Reason{"operand-not-whole", name + " is not read as a whole, row by row or column by column",
                      "contract the whole matrix, and take a part of what comes out"};
      if (role && (role->row != here->row || role->column != here->column))
        return Reason{"used-twice", name + " is read at two places at once", "give one of them another name"};
      role = here;
      ours.insert(operand.element);
    }
  if (!role) return Reason{"no-contraction", name + " is no operand of the sum", {}};
  const bool row_in_space = role->row < contraction.space_rank, column_in_space = role->column < contraction.space_rank;
  if (row_in_space == column_in_space)
    return Reason{"both-dims-reduced", "the sum goes over rows and columns of " + name,
                  "sum each row first, and then the rows' sums"};
  if (auto reason = refuse(contraction, ours, base, values)) return *reason;

  const std::size_t own = row_in_space ? role->row : role->column, summed = row_in_space ? role->column : role->row;
  const Value starts = pattern.field(row_in_space ? BundleField::row_start : BundleField::column_start);
  std::vector<Reader> readers, uniform;
  for (const ContractionOperand& operand : contraction.operands)
    readers.push_back(ours.contains(operand.element) ? Reader{} : make_reader(operand, contraction, host));
  for (const ContractionOperand& operand : contraction.uniform)
    uniform.push_back(make_reader(operand, contraction, host));

  const auto index_value = [&](const std::string& hint) { return values.add(Type::scalar(ScalarType::i64), hint); };
  SegOp made{.level = SegLevel::thread};
  Substitution here;
  for (std::size_t d = 0; d < contraction.space_rank; ++d) {
    const Value index = index_value(values.name(contraction.dims[d].index));
    made.space.push_back({index, contraction.dims[d].size});
    here.insert_or_assign(contraction.dims[d].index, Operand(index));
  }
  made.body = host.body([&](Builder& thread) {
    const Poly mine(made.space[own].index);
    const Value first = thread.index(starts, {mine}, "first"), last = thread.index(starts, {mine + 1}, "last");
    const Value count = thread.size(Poly(last) - Poly(first), "count");
    Screma sum;
    for (std::size_t d = contraction.space_rank; d < contraction.dims.size(); ++d) {
      sum.widths.push_back(d == summed ? Poly(count) : contraction.dims[d].size);
      sum.indices.push_back(index_value(d == summed ? "p" : values.name(contraction.dims[d].index)));
      here.insert_or_assign(contraction.dims[d].index, Operand(sum.indices.back()));
    }
    const Poly at = Poly(first) + Poly(sum.indices[summed - contraction.space_rank]);
    sum.map.body = thread.body([&](Builder& term) {
      Poly nonzero = at;
      Value other;
      if (row_in_space) {
        other = term.index(pattern.field(BundleField::column), {at}, "column");
      } else {
        const Value which = term.index(pattern.field(BundleField::by_column), {at}, "which");
        nonzero = Poly(term.convert(ScalarType::i64, which, "nonzero"));
        other = term.index(pattern.field(BundleField::row), {nonzero}, "row");
      }
      Substitution element = here;
      element.insert_or_assign(contraction.dims[summed].index,
                               Operand(term.convert(ScalarType::i64, other, values.name(contraction.dims[summed].index))));
      const Value a = term.index(array.values, {nonzero}, "a");
      for (const Reader& reader : uniform)
        element.insert_or_assign(reader.operand->element, Operand(read(reader, contraction, element, term)));
      std::vector<Operand> arguments;
      for (const Reader& reader : readers)
        arguments.emplace_back(reader.operand == nullptr ? a : read(reader, contraction, element, term));
      const Lambda map = copy_fresh(contraction.map, element, values, values);
      return inline_lambda(map, arguments, values, term.stms());
    });
    ReduceOp reduce = contraction.reduce;
    reduce.op = copy_fresh(contraction.reduce.op, here, values, values);
    sum.reduces = {std::move(reduce)};
    const std::vector<Value> sums = thread.let_many({"sum"}, std::move(sum));
    if (contraction.after) {
      const Lambda after = copy_fresh(*contraction.after, here, values, values);
      return inline_lambda(after, {sums.begin(), sums.end()}, values, thread.stms());
    }
    std::vector<Operand> results;
    for (const std::size_t r : contraction.results) results.emplace_back(sums[r]);
    return results;
  });
  made.results.assign(made.body->results.size(), {KernelResult::Kind::returns, {}});
  Contracted result{.kernel = kernel, .by_columns = !row_in_space};
  result.kernel.op = std::move(made);
  for (const Value check : contraction.certificates)
    if (std::ranges::find(result.kernel.certificates, check) == result.kernel.certificates.end())
      result.kernel.certificates.push_back(check);
  return result;
}

}  // namespace apl::sparsify
