#include "codegen/sparse_products.h"

#include <algorithm>

#include "codegen/sparse_kernel.h"

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

bool has_sparse_kernels(ScalarType type, ScalarType sum) {
  if (type != sum) return type == ScalarType::f16 && sum == ScalarType::f32;
  return is_integer(type) || type == ScalarType::f16 || type == ScalarType::f32 || type == ScalarType::f64;
}

std::optional<SparseProduct> find_sparse_product(const Stm& stm, const apl::Function& function, std::string* why) {
  const SparseKernel kernel(stm, function, why);
  if (!kernel.fits()) return std::nullopt;
  const Binary* times = kernel.defined_by<Binary>(kernel.term());
  if (times == nullptr || times->op != BinaryOp::mul) return kernel.refuse("its terms are not products of two numbers");
  Operand a = kernel.bare(times->x), b = kernel.bare(times->y);

  SparseProduct product;
  product.type = kernel.element_type(a);
  product.sum = kernel.summed();
  const ScalarType sum_type = kernel.element_type(Operand(kernel.summed()));
  if (kernel.element_type(b) != product.type || kernel.element_type(kernel.result()) != product.type ||
      !has_sparse_kernels(product.type, sum_type))
    return kernel.refuse("there are no kernels for its types: all must be one, or f16 with sums in f32");
  // values[first + p], where the sum goes from row_start[i] to row_start[i + 1]; on either side of the product.
  std::optional<Value> first, values;
  Poly at;
  for (const auto& [x, y] : {std::pair{a, b}, std::pair{b, a}}) {
    const Index* value = kernel.defined_by<Index>(x);
    if (value == nullptr || value->dims.size() != 1 || value->dims[0].is_slice() || !kernel.is_whole(value->array))
      continue;
    at = value->dims[0].start;
    first = (at - Poly(kernel.sum().indices.front())).symbol();
    if (!first) continue;
    values = value->array;
    b = y;
    break;
  }
  if (!first) return kernel.refuse("its terms are not the non-zeros of a row, one after the other");
  product.values = *values;
  Poly width = kernel.sum().widths.front();
  if (const SizeExpr* size = width.symbol() ? kernel.defined_by<SizeExpr>(Operand(*width.symbol())) : nullptr)
    width = size->value;
  const Poly last = width + Poly(*first);
  std::optional<Value> starts;
  for (const SegDim& dim : kernel.op().space) {
    starts = kernel.element_of(Operand(*first), Poly(dim.index));
    if (!starts) continue;
    product.i = dim.index;
    break;
  }
  if (!starts || !last.symbol() || kernel.element_of(Operand(*last.symbol()), Poly(product.i) + 1) != starts)
    return kernel.refuse("the sum does not go over the non-zeros of a row (transposed operands go by columns)");
  product.row_start = *starts;
  // B[column[first + p]][j]
  const auto b_at = kernel.position(b);
  if (!b_at) return kernel.refuse("the other factor is computed in the sum");
  std::optional<Value> k;
  b_at->second.for_each_symbol([&](Value v) {
    const auto column = kernel.narrow(v);
    const auto array = column ? kernel.element_of(*column, at) : std::nullopt;
    if (!array) return;
    k = v;
    product.column = *array;
  });
  const Value result = stm.pattern.front();
  if (!k || !kernel.type(result).memory) return kernel.refuse("the other factor is not a row of a dense matrix");
  const auto rows = rows_of_product(kernel, *b_at, *k, result, product.i);
  if (!rows) return kernel.refuse("rows of the dense operand and of the result do not both lie side by side in memory");
  const auto parameter = kernel.parameter(product.column, BundleField::column);
  if (!parameter || !kernel.parameter(product.row_start, BundleField::row_start))
    return kernel.refuse("its arrays are no arguments of the entry");
  // C is the sum, perhaps rounded, or something is made of it first.
  product.result = kernel.result();
  if (!(kernel.bare(kernel.result()) == Operand(kernel.summed()))) {
    auto after = kernel.after();
    if (!after) return std::nullopt;
    product.after = *std::move(after);
  }
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

std::optional<SparseSampling> find_sparse_sampling(const Stm& stm, const apl::Function& function, std::string* why) {
  const SparseKernel kernel(stm, function, why);
  if (!kernel.fits()) return std::nullopt;
  if (kernel.op().space.size() != 1) return kernel.refuse("there are more dims than the non-zeros (batches)");
  const Value e = kernel.op().space[0].index;
  const Binary* scaled = kernel.defined_by<Binary>(kernel.bare(kernel.result()));
  const Binary* times = kernel.defined_by<Binary>(kernel.term());
  if (scaled == nullptr || scaled->op != BinaryOp::mul || times == nullptr || times->op != BinaryOp::mul)
    return kernel.refuse("the result is not an element times a sum of products");
  const bool sum_first = kernel.bare(scaled->x) == Operand(kernel.summed());
  const Operand a = kernel.bare(sum_first ? scaled->y : scaled->x);
  if (!(kernel.bare(sum_first ? scaled->x : scaled->y) == Operand(kernel.summed())))
    return kernel.refuse("something is done between the sum and its product with the element");
  const Operand x = kernel.bare(times->x), y = kernel.bare(times->y);

  SparseSampling sampling;
  sampling.type = kernel.element_type(a);
  for (const Operand& operand : {x, y, kernel.result()})
    if (kernel.element_type(operand) != sampling.type)
      return kernel.refuse("there are no kernels for its types: all must be one, or f16 with sums in f32");
  if (!has_sparse_kernels(sampling.type, kernel.element_type(Operand(kernel.summed()))))
    return kernel.refuse("there are no kernels for its types: all must be one, or f16 with sums in f32");
  const auto values = kernel.element_of(a, Poly(e));
  const auto x_at = kernel.position(x), y_at = kernel.position(y);
  const Type& result = kernel.type(stm.pattern.front());
  if (!values || !x_at || !y_at || !result.memory || result.rank() != 1 ||
      !(result.memory->layout == Lmad::row_major(result.shape)))
    return kernel.refuse("the factors or the element are computed in the kernel");
  sampling.values = *values;
  sampling.result = stm.pattern.front();
  // X[row[e]][k] and Y[column[e]][k], in either order.
  const Value k = kernel.sum().indices.front();
  const auto rows_by = [&](const std::pair<Value, Poly>& at, BundleField field, Value& array) {
    std::optional<DenseRows> rows;
    at.second.for_each_symbol([&](Value v) {
      const auto index = kernel.narrow(v);
      const auto from = index ? kernel.element_of(*index, Poly(e)) : std::nullopt;
      if (!from || !kernel.parameter(*from, field)) return;
      array = *from;
      rows = kernel.rows(at, v, k);
    });
    return rows;
  };
  auto x_rows = rows_by(*x_at, BundleField::row, sampling.row);
  auto y_rows = rows_by(*y_at, BundleField::column, sampling.column);
  if (!x_rows || !y_rows) {
    x_rows = rows_by(*y_at, BundleField::row, sampling.row);
    y_rows = rows_by(*x_at, BundleField::column, sampling.column);
  }
  if (!x_rows || !y_rows) return kernel.refuse("rows of both dense operands do not lie side by side in memory");
  const auto parameter = kernel.parameter(sampling.column, BundleField::column);
  sampling.rows = parameter->rows;
  sampling.columns = parameter->columns;
  sampling.nonzeros = parameter->nonzeros;
  sampling.depth = kernel.sum().widths.front();
  sampling.x = *x_rows;
  sampling.y = *y_rows;
  return sampling;
}

}  // namespace apl::lower
