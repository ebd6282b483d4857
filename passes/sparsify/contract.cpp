// SpMM and its kin: a contraction in which A[i, k] is summed over k, or over i. Here is which those are; what they
// become is in sparsify/sums.
#include <algorithm>

#include "ir/walk.h"
#include "passes/sparsify/sums.h"

namespace apl::sparsify {
namespace {

struct Role {
  std::size_t row = 0, column = 0;  // dims of the contraction
  std::vector<std::size_t> batches;
};

// The dims that index the array's batches, rows and columns, if the operand is all of it.
std::optional<Role> role_of(const ContractionOperand& operand, const Contraction& contraction,
                            const SparseArray& array) {
  if (!operand.offset.is_zero()) return std::nullopt;
  std::vector<bool> used(contraction.dims.size());
  const auto find = [&](const Poly& stride, const Poly& size) -> std::optional<std::size_t> {
    for (std::size_t d = 0; d < used.size(); ++d) {
      if (used[d] || !(operand.strides[d] == stride) || !(contraction.dims[d].size == size)) continue;
      used[d] = true;
      return d;
    }
    return std::nullopt;
  };
  const Pattern& pattern = *array.pattern;
  const auto column = find(1, pattern.columns), row = find(pattern.columns, pattern.rows);
  if (!row || !column) return std::nullopt;
  Role role{*row, *column, {}};
  Poly stride = pattern.rows * pattern.columns;
  for (auto batch = array.batches.rbegin(); batch != array.batches.rend(); stride = stride * *batch++) {
    const auto dim = find(stride, *batch);
    if (!dim || *dim >= contraction.space_rank) return std::nullopt;
    role.batches.insert(role.batches.begin(), *dim);
  }
  for (std::size_t d = 0; d < used.size(); ++d)
    if (operand.varies(d) != used[d]) return std::nullopt;
  return role;
}

std::optional<Reason> refuse(const Contraction& contraction, const SparseOperands& ours, Value base,
                             const ValueTable& values) {
  const auto reads = [&](const Lambda& lambda) { return free_values(lambda, values).contains(base); };
  if (reads(contraction.map) || reads(contraction.reduce.op) || (contraction.after && reads(*contraction.after)))
    return Reason{"used-twice", "`" + values.name(base) + "` is also read outside of the sum",
                  "multiply by its elements in a map of its own"};
  Absence absence(values);
  for (const auto& [element, operand] : ours) absence.know(element, Scalar::zero(values.type(element).element));
  absence.look_for_infinities(*contraction.map.body);
  absence.run(*contraction.map.body);
  for (std::size_t k = 0; k < contraction.reduce.neutral.size(); ++k) {
    const auto term = absence.of(contraction.map.body->results[k]);
    const Operand& neutral = contraction.reduce.neutral[k];
    if (!term || !neutral.is_constant() || !same_number(*term, neutral.constant()))
      return Reason{
          "absence-not-neutral",
          "where `" + values.name(base) + "` has no element, the sum's term is not known to be the neutral element",
          "give the neutral element where the element is 0: `if a == 0 then neutral else ...`"};
  }
  return std::nullopt;
}

}  // namespace

std::variant<Contracted, Reason> contract(const Stm& kernel, const Contraction& contraction, const SparseArrays& arrays,
                                          Value base, bool whole_rows, Builder& host) {
  ValueTable& values = host.values();
  const SparseArray& array = arrays.at(base);
  const std::string name = "`" + values.name(base) + "`";
  std::optional<Role> role;
  SparseOperands ours;
  const auto each_operand = [&](const auto& visit) {
    for (const auto* operands : {&contraction.operands, &contraction.uniform})
      for (const ContractionOperand& operand : *operands) visit(operand);
  };
  std::optional<Reason> reason;
  each_operand([&](const ContractionOperand& operand) {
    if (operand.base != base || reason) return;
    const auto here = role_of(operand, contraction, array);
    if (!here)
      reason = Reason{"operand-not-whole", name + " is not read as a whole, row by row or column by column",
                      "contract the whole matrix, and take a part of what comes out"};
    else if (role && (role->row != here->row || role->column != here->column))
      reason = Reason{"used-twice", name + " is read at two places at once", "give one of them another name"};
    if (reason) return;
    role = here;
    ours.emplace(operand.element, SparseOperand{&array, here->batches});
  });
  if (reason) return *reason;
  if (!role) return Reason{"no-contraction", name + " is no operand of the sum", {}};
  const bool row_in_space = role->row < contraction.space_rank, column_in_space = role->column < contraction.space_rank;
  if (row_in_space == column_in_space)
    return Reason{"both-dims-reduced", "the sum goes over rows and columns of " + name,
                  "sum each row first, and then the rows' sums"};
  each_operand([&](const ContractionOperand& operand) {
    const auto other = operand.base != base ? arrays.find(operand.base) : arrays.end();
    if (other == arrays.end() || other->second.pattern != array.pattern) return;
    const auto here = role_of(operand, contraction, other->second);
    if (here && here->row == role->row && here->column == role->column)
      ours.emplace(operand.element, SparseOperand{&other->second, here->batches});
  });
  if (auto refused = refuse(contraction, ours, base, values)) return *refused;

  Sums sums(contraction, *array.pattern, ours, row_in_space ? role->row : role->column,
            row_in_space ? role->column : role->row, !row_in_space, host);
  Contracted result{.kernel = kernel, .by_columns = !row_in_space};
  result.kernel.op = whole_rows && sums.has_rows() ? sums.rows() : sums.elements();
  for (const Value check : contraction.certificates)
    if (std::ranges::find(result.kernel.certificates, check) == result.kernel.certificates.end())
      result.kernel.certificates.push_back(check);
  return result;
}

}  // namespace apl::sparsify
