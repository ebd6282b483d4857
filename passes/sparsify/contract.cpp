// SpMM and its kin: a contraction in which A[i, k] is summed over k, or over i. Here is which those are; what they
// become is in sparsify/sums.
#include <range/v3/view/zip.hpp>

#include <algorithm>

#include "ir/attributes.h"
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

// Why the sum's terms are not known to be neutral where these operands have no element.
std::optional<Reason> refuse(const Contraction& contraction, const SparseOperands& ours, Value base,
                             const ValueTable& values) {
  ZeroPropagation zeros(values);
  for (const auto& [element, operand] : ours) zeros.know(element, Scalar::zero(values.type(element).element));
  zeros.look_for_infinities(*contraction.map.body);
  zeros.run(*contraction.map.body);
  for (const auto& [neutral, result] : ranges::views::zip(contraction.reduce.neutral, contraction.map.body->results)) {
    const auto term = zeros.of(result);
    if (!term || !neutral.is_constant() || !same_number(*term, neutral.constant()))
      return zero_not_neutral("`" + values.name(base) + "`", zeros);
  }
  return std::nullopt;
}

// Further sparse operands, of one pattern, whose rows or columns the summed dim counts and whose other dim is the last
// of the space: a row of sums meets but their non-zeros. If absent elements of theirs change nothing, too.
std::optional<SecondOperands> second_operands(const Contraction& contraction, const SparseOperands& ours,
                                              std::size_t summed, const SparseArrays& arrays,
                                              const ValueTable& values) {
  std::optional<SecondOperands> second;
  for (const ContractionOperand& operand : contraction.operands) {
    const auto found = arrays.find(operand.base);
    if (found == arrays.end() || ours.contains(operand.element)) continue;
    const auto role = role_of(operand, contraction, found->second);
    if (!role) continue;
    const std::size_t last = contraction.space_rank - 1;
    const bool by_rows = role->row == summed && role->column == last;
    if (!by_rows && !(role->column == summed && role->row == last)) continue;
    if (!second) second = SecondOperands{found->second.pattern, !by_rows, {}, &found->second};
    if (second->pattern == found->second.pattern && second->by_columns == !by_rows)
      second->elements.emplace(operand.element, SparseOperand{&found->second, role->batches});
  }
  if (!second || refuse(contraction, second->elements, second->elements.begin()->first, values)) return std::nullopt;
  return second;
}

// Tiles add to what other tiles of the row gave, in any order.
std::optional<Reason> refuse_tiles(const Contraction& contraction, bool by_columns, const LoweringOptions& options,
                                   const ValueTable& values) {
  if (by_columns)
    return Reason{"rows-not-tiles", "it adds up rows, and a plan's tiles are parts of rows", "transpose the matrix"};
  if (!contraction.reduce.commutative)
    return Reason{"rows-not-tiles", "its operator is not known to be commutative, and tiles come in any order",
                  "use an operator that is, or reduce_comm"};
  const auto is_float_of = [&](const Operand& neutral) { return is_float(values.type(neutral).element); };
  const auto op = as_binary_op(contraction.reduce.op);
  if (options.deterministic && op != BinaryOp::min && op != BinaryOp::max &&
      std::ranges::any_of(contraction.reduce.neutral, is_float_of))
    return Reason{"rows-not-tiles", "floats are rounded, so that it shows in which order tiles come",
                  "leave out `deterministic`"};
  const std::set<Value> read = free_values(contraction.reduce.op, values);
  for (const ContractionDim& dim : contraction.dims)
    if (read.contains(dim.index))
      return Reason{"rows-not-tiles", "its operator depends on where the sum goes", "let the operator be the same"};
  return std::nullopt;
}

}  // namespace

std::variant<Contracted, Reason> contract(const Stm& kernel, const Contraction& contraction, const SparseArrays& arrays,
                                          Value base, const LoweringOptions& options, Builder& host) {
  ValueTable& values = host.values();
  const SparseArray& array = arrays.at(base);
  const std::string name = "`" + values.name(base) + "`";
  const auto each_operand = [&](const auto& visit) {
    for (const auto* operands : {&contraction.operands, &contraction.uniform})
      for (const ContractionOperand& operand : *operands) visit(operand);
  };
  std::optional<Reason> reason;
  std::vector<Role> roles;
  each_operand([&](const ContractionOperand& operand) {
    if (!operand.is_plain() && !reason)
      reason = Reason{"no-contraction",
                      "`" + values.name(operand.base) + "` is read under a condition, or where an array says",
                      {}};
    if (operand.base != base) return;
    if (const auto here = role_of(operand, contraction, array)) roles.push_back(*here);
  });
  if (reason) return *reason;
  const auto read = [&](const ContractionOperand& operand) { return operand.base == base; };
  if (std::ranges::none_of(contraction.operands, read) && std::ranges::none_of(contraction.uniform, read))
    return Reason{"no-contraction", name + " is no operand of the sum", {}};
  if (roles.empty())
    return Reason{"operand-not-whole", name + " is not read as a whole, row by row or column by column",
                  "contract the whole matrix, and take a part of what comes out"};
  const auto is_summed = [&](const Role& role) {
    return (role.row < contraction.space_rank) != (role.column < contraction.space_rank);
  };
  std::erase_if(roles, [&](const Role& role) { return !is_summed(role); });
  if (roles.empty())
    return Reason{"no-contraction", "the sum goes over rows and columns of " + name,
                  "sum each row first, and then the rows' sums"};
  // Where it is read at two places: the one whose own dim is an outer one, so that there may be rows of sums; row by
  // row.
  const auto cost = [&](const Role& role) {
    const bool by_columns = role.column < contraction.space_rank;
    const std::size_t own = by_columns ? role.column : role.row;
    return std::pair(own + 1 == contraction.space_rank && contraction.space_rank > 1, by_columns);
  };
  const Role role = *std::ranges::min_element(roles, {}, cost);
  const bool row_in_space = role.row < contraction.space_rank;
  const std::size_t own = row_in_space ? role.row : role.column, summed = row_in_space ? role.column : role.row;
  SparseOperands ours;
  each_operand([&](const ContractionOperand& operand) {
    const auto found = arrays.find(operand.base);
    if (found == arrays.end() || found->second.pattern != array.pattern) return;
    const auto here = role_of(operand, contraction, found->second);
    if (here && here->row == role.row && here->column == role.column)
      ours.emplace(operand.element, SparseOperand{&found->second, here->batches});
  });
  if (auto refused = refuse(contraction, ours, base, values)) return *refused;

  Contracted result{.by_columns = !row_in_space};
  if (options.tiles) result.why_not = refuse_tiles(contraction, result.by_columns, options, values);
  result.by_tiles = options.tiles && !result.why_not;
  Sums sums(contraction, *array.pattern, ours, own, summed, !row_in_space, host);
  const bool has_rows = options.whole_rows && !result.by_tiles && sums.has_rows();
  if (has_rows) {
    if (const auto second = second_operands(contraction, ours, summed, arrays, values)) {
      sums.meet(*second);
      result.second = second->array;
    }
  }
  Stm made = kernel;
  made.attributes.push_back(
      make_attribute(attribute::sparse_product, array.pattern->name, attribute::SparseProduct::spmm));
  for (const Value check : contraction.certificates)
    if (std::ranges::find(made.certificates, check) == made.certificates.end()) made.certificates.push_back(check);
  if (result.by_tiles) {
    sums.tiles(made, options.fused);
    return result;
  }
  made.op = has_rows ? sums.rows() : sums.elements();
  host.append(std::move(made));
  return result;
}

}  // namespace apl::sparsify
