// Kernels with a sum for each non-zero: SDDMM, and whatever a program makes of its sums.
#include <algorithm>

#include "codegen/sparse/kernel.h"

namespace apl::lower {
namespace {

// X[row[e]][k] and Y[column[e]][k], where e is one of the kernel's indices.
struct SampledRows {
  SegDim e;
  SparseKernel::ReadIndex row, column;
  DenseRows x, y;
};

std::optional<SampledRows> sampled_rows(const SparseKernel& kernel, const SegDim& e, const std::pair<Value, Poly>& x_at,
                                        const std::pair<Value, Poly>& y_at) {
  const Value k = kernel.sum().indices.front();
  SampledRows found{.e = e, .row = {}, .column = {}, .x = {}, .y = {}};
  const auto find = [&](const std::pair<Value, Poly>& at, SoaField field, SparseKernel::ReadIndex& index,
                        DenseRows& dense) {
    for (const SparseKernel::ReadIndex& read : kernel.read_indices(at.second, Poly(e.index))) {
      if (!kernel.parameter(read.array, field)) continue;
      const auto rows = kernel.rows(at, read.index, k);
      if (!rows || rows->offset.mentions(e.index)) continue;
      index = read;
      dense = *rows;
      return true;
    }
    return false;
  };
  if (!find(x_at, SoaField::row, found.row, found.x) || !find(y_at, SoaField::column, found.column, found.y))
    return std::nullopt;
  return found;
}

// In either order of the factors.
std::optional<SampledRows> sampled_rows(const SparseKernel& kernel, const Binary& times) {
  const auto x_at = kernel.position(kernel.bare(times.x)), y_at = kernel.position(kernel.bare(times.y));
  if (!x_at || !y_at) return kernel.refuse("the factors are computed in the kernel");
  for (const SegDim& e : kernel.op().space) {
    if (auto found = sampled_rows(kernel, e, *x_at, *y_at)) return found;
    if (auto found = sampled_rows(kernel, e, *y_at, *x_at)) return found;
  }
  return kernel.refuse("rows of both dense operands do not lie side by side in memory");
}

// If the result is the sum times an element of A, or its like, and nothing else: where these are.
std::optional<Nonzeros> only_factor(const SparseKernel& kernel, const SparseSddmm& sddmm) {
  const Binary* scaled = kernel.defined_by<Binary>(kernel.bare(kernel.result()));
  if (scaled == nullptr || scaled->op != BinaryOp::mul) return std::nullopt;
  const auto is_sum = [&](const Operand& x) { return kernel.bare(x) == Operand(kernel.summed()); };
  if (is_sum(scaled->x) == is_sum(scaled->y)) return std::nullopt;
  const Operand a = kernel.bare(is_sum(scaled->x) ? scaled->y : scaled->x);
  const auto at = kernel.element_type(a) == sddmm.type ? kernel.position(a) : std::nullopt;
  return at ? kernel.nonzeros(*at, Poly(sddmm.e)) : std::nullopt;
}

}  // namespace

std::optional<SparseSddmm> find_sparse_sddmm(const Stm& stm, const apl::Function& function, std::string* why) {
  const SparseKernel kernel(stm, function, why);
  if (!kernel.fits()) return std::nullopt;
  const Binary* times = kernel.defined_by<Binary>(kernel.term());
  if (times == nullptr || times->op != BinaryOp::mul) return kernel.refuse("its terms are not products of two numbers");
  SparseSddmm sddmm;
  sddmm.type = kernel.element_type(kernel.bare(times->x));
  const ScalarType result_type = kernel.element_type(kernel.result());
  if (kernel.element_type(kernel.bare(times->y)) != sddmm.type ||
      !has_sparse_kernels(sddmm.type, kernel.element_type(Operand(kernel.summed())), result_type))
    return kernel.refuse("there are no kernels for its types: all must be one, or f16 or bf16 with sums in f32");
  sddmm.is_wide = result_type != sddmm.type;
  const auto rows = sampled_rows(kernel, *times);
  if (!rows) return std::nullopt;
  sddmm.e = rows->e.index;
  sddmm.i = rows->row.index;
  sddmm.j = rows->column.index;
  sddmm.row = rows->row.array;
  sddmm.column = rows->column.array;
  sddmm.x = rows->x;
  sddmm.y = rows->y;
  for (const SegDim& dim : kernel.op().space)
    if (!(dim.index == sddmm.e)) sddmm.batches.push_back(dim);

  const Type& result = kernel.type(stm.pattern.front());
  std::vector<Poly> indices;
  for (const SegDim& dim : kernel.op().space) indices.emplace_back(dim.index);
  const auto locations =
      result.memory ? kernel.nonzeros({result.memory->block, result.memory->layout.apply(indices)}, Poly(sddmm.e))
                    : std::nullopt;
  if (!locations) return kernel.refuse("the results of a batch do not lie side by side in memory");
  sddmm.result = *locations;
  sddmm.values = only_factor(kernel, sddmm);
  sddmm.epilogue = {kernel.summed(), {}, kernel.result(), kernel.op().space};
  if (!sddmm.values) {
    auto epilogue = kernel.epilogue({sddmm.e, sddmm.i, sddmm.j});
    if (!epilogue) return std::nullopt;
    sddmm.epilogue.stms = *std::move(epilogue);
  }
  const auto parameter = kernel.parameter(sddmm.column, SoaField::column);
  sddmm.rows = parameter->rows;
  sddmm.columns = parameter->columns;
  sddmm.nonzeros = parameter->nonzeros;
  sddmm.depth = kernel.sum().widths.front();
  return sddmm;
}

std::optional<SparseSddmm> find_host_sddmm(const Stm& stm, const apl::Function& function, std::string* why) {
  auto sddmm = find_sparse_sddmm(stm, function, why);
  if (!sddmm || sddmm->epilogue.empty()) return sddmm;
  // The loop over the results reads the row and the column itself.
  const SparseKernel kernel(stm, function, why);
  auto epilogue = kernel.epilogue({});
  if (!epilogue) return std::nullopt;
  sddmm->epilogue.stms = *std::move(epilogue);
  const std::string why_not = kernel.why_not_in_place(sddmm->epilogue);
  if (why_not.empty()) return sddmm;
  if (why != nullptr) *why = why_not;
  return std::nullopt;
}

}  // namespace apl::lower
