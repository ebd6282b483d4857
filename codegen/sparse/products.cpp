#include "codegen/sparse/products.h"

#include <algorithm>

#include "codegen/sparse/kernel.h"

namespace apl::lower {
namespace {

// The rows of B and C, and what is left of the space beside them: a dim of elements side by side, and batches.
struct ProductRows {
  DenseRows b, c;
  std::optional<Value> j;
  Poly width = 1;
  std::vector<SegDim> batches;
};
std::optional<ProductRows> rows_of_product(const SparseKernel& kernel, const std::pair<Value, Poly>& b_at, Value k,
                                           Value result, Value i) {
  const Type& type = kernel.type(result);
  const std::vector<SegDim>& space = kernel.op().space;
  std::vector<Poly> indices;
  for (const SegDim& dim : space) indices.emplace_back(dim.index);
  const std::pair c_at{type.memory->block, type.memory->layout.apply(indices)};
  const auto found = [&](std::optional<Value> j) -> std::optional<ProductRows> {
    const auto b = kernel.rows(b_at, k, j), c = kernel.rows(c_at, i, j);
    if (!b || !c) return std::nullopt;
    ProductRows rows{*b, *c, j, 1, {}};
    for (const SegDim& dim : space) {
      if (dim.index == i) continue;
      if (dim.index == j) {
        rows.width = dim.bound;
      } else {
        rows.batches.push_back(dim);
      }
    }
    return rows;
  };
  if (space.size() == 1) return found(std::nullopt);
  for (auto dim = space.rbegin(); dim != space.rend(); ++dim)
    if (!(dim->index == i))
      if (auto rows = found(dim->index)) return rows;
  return std::nullopt;
}

}  // namespace

bool has_sparse_kernels(ScalarType type, ScalarType sum, ScalarType result) {
  if (is_storage(type) || (type == ScalarType::f16 && sum != type))
    return sum == ScalarType::f32 && (result == sum || (result == type && !is_storage(type)));
  return type == sum && type == result && (is_integer(type) || is_float(type));
}

std::optional<SparseProduct> find_sparse_product(const Stm& stm, const apl::Function& function, std::string* why) {
  const SparseKernel kernel(stm, function, why);
  if (!kernel.fits()) return std::nullopt;
  const auto terms = kernel.row_terms(kernel.term(), kernel.sum().indices.front(), kernel.sum().widths.front());
  if (!terms) return std::nullopt;
  SparseProduct product;
  product.type = terms->type;
  const ScalarType result_type = kernel.element_type(kernel.result());
  if (kernel.element_type(terms->other) != product.type ||
      !has_sparse_kernels(product.type, kernel.element_type(Operand(kernel.summed())), result_type))
    return kernel.refuse("there are no kernels for its types: all must be one, or f16 or bf16 with sums in f32");
  product.is_wide = result_type != product.type;
  product.values = terms->values;
  product.row_start = terms->row_start;
  product.i = terms->i;
  // B[column[first + p]][j]
  const auto b_at = kernel.position(terms->other);
  if (!b_at) return kernel.refuse("the other factor is computed in the sum");
  const auto read = kernel.read_indices(b_at->second, terms->nonzero);
  const Value result = stm.pattern.front();
  if (read.empty() || !kernel.type(result).memory)
    return kernel.refuse("the other factor is not a row of a dense matrix");
  product.column = read.front().array;
  const auto rows = rows_of_product(kernel, *b_at, read.front().index, result, product.i);
  if (!rows) return kernel.refuse("rows of the dense operand and of the result do not both lie side by side in memory");
  const auto parameter = kernel.parameter(product.column, SoaField::column);
  if (!parameter || !kernel.parameter(product.row_start, SoaField::row_start))
    return kernel.refuse("its arrays are no arguments of the entry");
  if (rows->j && product.values.offset.mentions(*rows->j))
    return kernel.refuse("the elements differ along the rows of the dense operand");
  auto epilogue = kernel.epilogue({});
  if (!epilogue) return std::nullopt;
  product.epilogue = {kernel.summed(), *std::move(epilogue), kernel.result(), kernel.op().space};
  product.rows = parameter->rows;
  product.columns = parameter->columns;
  product.nonzeros = parameter->nonzeros;
  product.width = rows->width;
  product.j = rows->j;
  product.batches = rows->batches;
  product.b = rows->b;
  product.c = rows->c;
  return product;
}

}  // namespace apl::lower
