// SpMM and its kin: a contraction in which A[i, k] is summed over k, or over i. Here is which those are; what they
// become is in sparsify/sums.
#include <algorithm>

#include "ir/walk.h"
#include "passes/sparsify/sums.h"

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

std::optional<Reason> refuse(const Contraction& contraction, const std::set<Value>& ours, Value base,
                             const ValueTable& values) {
  const auto reads = [&](const Lambda& lambda) { return free_values(lambda, values).contains(base); };
  if (reads(contraction.map) || reads(contraction.reduce.op) || (contraction.after && reads(*contraction.after)))
    return Reason{"used-twice", "`" + values.name(base) + "` is also read outside of the sum",
                  "multiply by its elements in a map of its own"};
  Absence absence(values);
  for (const Value element : ours) absence.know(element, Scalar::zero(values.type(element).element));
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

std::variant<Contracted, Reason> contract(const Stm& kernel, const Contraction& contraction, const SparseArray& array,
                                          Value base, bool whole_rows, Builder& host) {
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

  Sums sums(contraction, array, ours, row_in_space ? role->row : role->column, row_in_space ? role->column : role->row,
            !row_in_space, host);
  Contracted result{.kernel = kernel, .by_columns = !row_in_space};
  result.kernel.op = whole_rows && sums.has_rows() ? sums.rows() : sums.elements();
  for (const Value check : contraction.certificates)
    if (std::ranges::find(result.kernel.certificates, check) == result.kernel.certificates.end())
      result.kernel.certificates.push_back(check);
  return result;
}

}  // namespace apl::sparsify
