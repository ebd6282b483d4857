// Products over non-zeros in the form that sparsify gives them for few threads.
#include "codegen/sparse_kernel.h"

namespace apl::lower {
namespace {

// sums[j] += product, for p < count and j < width; sums are zeros before.
struct RowsOfSums {
  Operand product;
  Value j, p;
  Poly count, width;
  ScalarType sum{};
};

bool is_index(const std::vector<DimIndex>& dims, Value index) {
  return dims.size() == 1 && !dims[0].is_slice() && dims[0].start == Poly(index);
}

// The loop over the non-zeros whose sums are the result, perhaps rounded.
const Loop* find_outer_loop(const SparseKernel& kernel) {
  Operand sums = kernel.result();
  if (const Screma* rounding = kernel.defined_by<Screma>(sums)) {
    if (!rounding->reduces.empty() || rounding->widths.size() != 1 || rounding->inputs.size() != 1 ||
        rounding->map.body->results.size() != 1 ||
        !(kernel.bare(rounding->map.body->results.front()) == Operand(rounding->map.params.front())))
      return nullptr;
    sums = Operand(rounding->inputs.front());
  }
  const Loop* loop = kernel.defined_by<Loop>(sums);
  if (loop == nullptr || !loop->index || loop->params.size() != 1) return nullptr;
  const Replicate* zeros = kernel.defined_by<Replicate>(loop->initial.front());
  const bool from_zero = zeros != nullptr && zeros->value.is_constant() &&
                         zeros->value.constant() == Scalar::zero(zeros->value.constant().type());
  return from_zero ? loop : nullptr;
}

std::optional<RowsOfSums> find_rows_of_sums(const SparseKernel& kernel) {
  const Loop* over_p = find_outer_loop(kernel);
  const Loop* over_j = over_p != nullptr ? kernel.defined_by<Loop>(over_p->body->results.front()) : nullptr;
  if (over_j == nullptr || !over_j->index || over_j->params.size() != 1) return std::nullopt;
  const Copy* before = kernel.defined_by<Copy>(over_j->initial.front());
  const Operand row(over_p->params.front());
  if (!((before != nullptr ? Operand(before->array) : over_j->initial.front()) == row)) return std::nullopt;
  // row[j] becomes row[j] + product, or the other way round.
  const Value here = over_j->params.front();
  const Update* update = kernel.defined_by<Update>(over_j->body->results.front());
  if (update == nullptr || update->array != here || !is_index(update->dims, over_j->index)) return std::nullopt;
  const Binary* add = kernel.defined_by<Binary>(update->value);
  if (add == nullptr || add->op != BinaryOp::add) return std::nullopt;
  const auto is_old = [&](const Operand& x) {
    const Index* old = kernel.defined_by<Index>(x);
    return old != nullptr && old->array == here && is_index(old->dims, over_j->index);
  };
  if (is_old(add->x) == is_old(add->y)) return std::nullopt;
  return RowsOfSums{is_old(add->x) ? add->y : add->x,  over_j->index, over_p->index, over_p->bound, over_j->bound,
                    kernel.element_type(update->value)};
}

}  // namespace

std::optional<SparseProduct> find_sparse_rows(const Stm& stm, const apl::Function& function) {
  const SparseKernel kernel(stm, function, nullptr);
  if (!kernel.is_sparse() || kernel.op().body->results.size() != 1) return std::nullopt;
  const auto sums = find_rows_of_sums(kernel);
  const Binary* times = sums ? kernel.defined_by<Binary>(sums->product) : nullptr;
  if (times == nullptr || times->op != BinaryOp::mul) return std::nullopt;
  SparseProduct product;
  const Value result = stm.pattern.front();
  const Type& type = kernel.type(result);
  if (!type.memory || type.rank() != kernel.op().space.size() + 1) return std::nullopt;
  product.type = type.element;
  for (const Operand& factor : {times->x, times->y})
    if (kernel.element_type(kernel.bare(factor)) != product.type) return std::nullopt;
  if (!has_sparse_kernels(product.type, sums->sum)) return std::nullopt;
  // values[first + p], on either side of the product, where p goes from row_start[i] to row_start[i + 1].
  std::optional<Value> first;
  Operand b;
  Poly at;
  for (const auto& [x, y] : {std::pair{times->x, times->y}, std::pair{times->y, times->x}}) {
    const Index* value = kernel.defined_by<Index>(kernel.bare(x));
    if (value == nullptr || value->dims.size() != 1 || value->dims[0].is_slice() || !kernel.is_whole(value->array))
      continue;
    at = value->dims[0].start;
    first = (at - Poly(sums->p)).symbol();
    if (!first) continue;
    product.values = value->array;
    b = kernel.bare(y);
    break;
  }
  if (!first) return std::nullopt;
  Poly count = sums->count;
  if (const SizeExpr* size = count.symbol() ? kernel.defined_by<SizeExpr>(Operand(*count.symbol())) : nullptr)
    count = size->value;
  const Poly last = count + Poly(*first);
  std::optional<Value> starts;
  for (const SegDim& dim : kernel.op().space) {
    if (starts) {
      product.batches.push_back(dim);
      continue;
    }
    starts = kernel.element_of(Operand(*first), Poly(dim.index));
    if (starts)
      product.i = dim.index;
    else
      product.batches.push_back(dim);
  }
  if (!starts || !last.symbol() || kernel.element_of(Operand(*last.symbol()), Poly(product.i) + 1) != starts)
    return std::nullopt;
  product.row_start = *starts;
  // B[column[first + p]][j]
  const auto b_at = kernel.position(b);
  std::optional<Value> k;
  if (b_at)
    b_at->second.for_each_symbol([&](Value v) {
      const auto column = kernel.narrow(v);
      const auto array = column ? kernel.element_of(*column, at) : std::nullopt;
      if (!array) return;
      k = v;
      product.column = *array;
    });
  if (!k) return std::nullopt;
  std::vector<Poly> indices;
  for (const SegDim& dim : kernel.op().space) indices.emplace_back(dim.index);
  indices.emplace_back(sums->j);
  const auto b_rows = kernel.rows(*b_at, *k, sums->j);
  const auto c_rows = kernel.rows({type.memory->block, type.memory->layout.apply(indices)}, product.i, sums->j);
  const auto parameter = kernel.parameter(product.column, BundleField::column);
  if (!b_rows || !c_rows || !parameter || !kernel.parameter(product.row_start, BundleField::row_start))
    return std::nullopt;
  product.rows = parameter->rows;
  product.columns = parameter->columns;
  product.nonzeros = parameter->nonzeros;
  product.width = sums->width;
  product.j = sums->j;
  product.b = *b_rows;
  product.c = *c_rows;
  product.result = kernel.result();
  return product;
}

std::optional<SparseProduct> find_host_product(const Stm& stm, const apl::Function& function) {
  auto product = find_sparse_product(stm, function);
  if (!product) product = find_sparse_rows(stm, function);
  // What stands behind the sum is no code of theirs.
  return product && product->after.empty() ? product : std::nullopt;
}

}  // namespace apl::lower
