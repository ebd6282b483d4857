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
  const auto find = [&](const std::pair<Value, Poly>& at, BundleField field, SparseKernel::ReadIndex& index,
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
  if (!find(x_at, BundleField::row, found.row, found.x) || !find(y_at, BundleField::column, found.column, found.y))
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
std::optional<Nonzeros> only_factor(const SparseKernel& kernel, const SparseSampling& sampling) {
  const Binary* scaled = kernel.defined_by<Binary>(kernel.bare(kernel.result()));
  if (scaled == nullptr || scaled->op != BinaryOp::mul) return std::nullopt;
  const auto is_sum = [&](const Operand& x) { return kernel.bare(x) == Operand(kernel.summed()); };
  if (is_sum(scaled->x) == is_sum(scaled->y)) return std::nullopt;
  const Operand a = kernel.bare(is_sum(scaled->x) ? scaled->y : scaled->x);
  const auto at = kernel.element_type(a) == sampling.type ? kernel.position(a) : std::nullopt;
  return at ? kernel.nonzeros(*at, Poly(sampling.e)) : std::nullopt;
}

}  // namespace

std::optional<SparseSampling> find_sparse_sampling(const Stm& stm, const apl::Function& function, std::string* why) {
  const SparseKernel kernel(stm, function, why);
  if (!kernel.fits()) return std::nullopt;
  const Binary* times = kernel.defined_by<Binary>(kernel.term());
  if (times == nullptr || times->op != BinaryOp::mul) return kernel.refuse("its terms are not products of two numbers");
  SparseSampling sampling;
  sampling.type = kernel.element_type(kernel.bare(times->x));
  const ScalarType result_type = kernel.element_type(kernel.result());
  if (kernel.element_type(kernel.bare(times->y)) != sampling.type ||
      !has_sparse_kernels(sampling.type, kernel.element_type(Operand(kernel.summed())), result_type))
    return kernel.refuse("there are no kernels for its types: all must be one, or f16 or bf16 with sums in f32");
  sampling.is_wide = result_type != sampling.type;
  const auto rows = sampled_rows(kernel, *times);
  if (!rows) return std::nullopt;
  sampling.e = rows->e.index;
  sampling.i = rows->row.index;
  sampling.j = rows->column.index;
  sampling.row = rows->row.array;
  sampling.column = rows->column.array;
  sampling.x = rows->x;
  sampling.y = rows->y;
  for (const SegDim& dim : kernel.op().space)
    if (!(dim.index == sampling.e)) sampling.batches.push_back(dim);

  const Type& result = kernel.type(stm.pattern.front());
  std::vector<Poly> indices;
  for (const SegDim& dim : kernel.op().space) indices.emplace_back(dim.index);
  const auto places =
      result.memory ? kernel.nonzeros({result.memory->block, result.memory->layout.apply(indices)}, Poly(sampling.e))
                    : std::nullopt;
  if (!places) return kernel.refuse("the results of a batch do not lie side by side in memory");
  sampling.result = *places;
  sampling.values = only_factor(kernel, sampling);
  sampling.after = {kernel.summed(), {}, kernel.result(), kernel.op().space};
  if (!sampling.values) {
    auto after = kernel.after({sampling.e, sampling.i, sampling.j});
    if (!after) return std::nullopt;
    sampling.after.stms = *std::move(after);
  }
  const auto parameter = kernel.parameter(sampling.column, BundleField::column);
  sampling.rows = parameter->rows;
  sampling.columns = parameter->columns;
  sampling.nonzeros = parameter->nonzeros;
  sampling.depth = kernel.sum().widths.front();
  return sampling;
}

std::optional<SparseSampling> find_host_sampling(const Stm& stm, const apl::Function& function, std::string* why) {
  auto sampling = find_sparse_sampling(stm, function, why);
  if (!sampling || sampling->after.empty()) return sampling;
  // The loop over the results reads the row and the column itself.
  const SparseKernel kernel(stm, function, why);
  auto after = kernel.after({});
  if (!after) return std::nullopt;
  sampling->after.stms = *std::move(after);
  const std::string why_not = kernel.why_not_in_place(sampling->after);
  if (why_not.empty()) return sampling;
  if (why != nullptr) *why = why_not;
  return std::nullopt;
}

}  // namespace apl::lower
