// Products over non-zeros as sparsify makes them for few threads.
#include "codegen/sparse/kernel.h"

namespace apl::lower {
namespace {

// A row of the result: sums, or what a map makes of them.
struct RowOfResults {
  Operand sums;
  const Screma* map = nullptr;
};

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

std::optional<RowOfResults> find_row(const SparseKernel& kernel) {
  const Screma* map = kernel.defined_by<Screma>(kernel.result());
  if (map == nullptr) return RowOfResults{kernel.result()};
  if (!map->reduces.empty() || map->scans() || map->widths.size() != 1 || map->inputs.size() != 1 ||
      map->map.body->results.size() != 1)
    return std::nullopt;
  return RowOfResults{Operand(map->inputs.front()), map};
}

// The loop over the non-zeros that makes the sums.
const Loop* find_outer_loop(const SparseKernel& kernel, const Operand& sums) {
  const Loop* loop = kernel.defined_by<Loop>(sums);
  if (loop == nullptr || !loop->index || loop->params.size() != 1) return nullptr;
  const Replicate* zeros = kernel.defined_by<Replicate>(loop->initial.front());
  const bool from_zero = zeros != nullptr && zeros->value.is_constant() &&
                         zeros->value.constant() == Scalar::zero(zeros->value.constant().type());
  return from_zero ? loop : nullptr;
}

std::optional<RowsOfSums> find_rows_of_sums(const SparseKernel& kernel, const Operand& sums) {
  const Loop* over_p = find_outer_loop(kernel, sums);
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

std::optional<SparseEpilogue> find_epilogue(const SparseKernel& kernel, const Screma* map) {
  if (map == nullptr) return SparseEpilogue{.sum = {}, .stms = {}, .result = kernel.result(), .space = {}};
  const Value sum = map->map.params.front();
  const Operand result = map->map.body->results.front();
  auto stms = kernel.epilogue(map->map.body.get(), result, sum, {});
  if (!stms) return std::nullopt;
  SparseEpilogue epilogue{sum, *std::move(stms), result, kernel.op().space};
  epilogue.space.push_back({map->indices.front(), map->widths.front()});
  return epilogue;
}

}  // namespace

std::optional<SparseProduct> find_sparse_rows(const Stm& stm, const apl::Function& function, std::string* why) {
  const SparseKernel kernel(stm, function, why);
  if (why != nullptr) why->clear();  // what speaks against a single sum
  if (!kernel.is_sparse() || kernel.op().body->results.size() != 1) return std::nullopt;
  const auto row = find_row(kernel);
  const auto sums = row ? find_rows_of_sums(kernel, row->sums) : std::nullopt;
  auto epilogue = sums ? find_epilogue(kernel, row->map) : std::nullopt;
  const auto terms = epilogue ? kernel.row_terms(sums->product, sums->p, sums->count) : std::nullopt;
  if (!terms) return std::nullopt;
  const Type& type = kernel.type(stm.pattern.front());
  if (!type.memory || type.rank() != kernel.op().space.size() + 1 || kernel.element_type(terms->other) != terms->type ||
      !has_sparse_kernels(terms->type, sums->sum, type.element))
    return std::nullopt;
  // B[column[first + p]][j] and C[i][j]
  const auto b_at = kernel.position(terms->other);
  const auto read = b_at ? kernel.read_indices(b_at->second, terms->nonzero) : std::vector<SparseKernel::ReadIndex>{};
  if (read.empty()) return std::nullopt;
  std::vector<Poly> indices;
  for (const SegDim& dim : kernel.op().space) indices.emplace_back(dim.index);
  indices.emplace_back(sums->j);
  const auto b_rows = kernel.rows(*b_at, read.front().index, sums->j);
  const auto c_rows = kernel.rows({type.memory->block, type.memory->layout.apply(indices)}, terms->i, sums->j);
  const auto parameter = kernel.parameter(read.front().array, SoaField::column);
  if (!b_rows || !c_rows || !parameter || !kernel.parameter(terms->row_start, SoaField::row_start)) return std::nullopt;
  return SparseProduct{.type = terms->type,
                       .is_wide = type.element != terms->type,
                       .row_start = terms->row_start,
                       .column = read.front().array,
                       .values = terms->values,
                       .rows = parameter->rows,
                       .columns = parameter->columns,
                       .nonzeros = parameter->nonzeros,
                       .width = sums->width,
                       .b = *b_rows,
                       .c = *c_rows,
                       .i = terms->i,
                       .j = sums->j,
                       .batches = terms->others,
                       .epilogue = *std::move(epilogue)};
}

std::optional<SparseProduct> find_host_product(const Stm& stm, const apl::Function& function, std::string* why) {
  std::string reason;
  auto product = find_sparse_rows(stm, function, &reason);
  if (!product) product = find_sparse_product(stm, function, reason.empty() ? why : nullptr);
  if (!product && why != nullptr && why->empty()) *why = reason;
  if (!product) return std::nullopt;
  const SparseKernel kernel(stm, function, nullptr);
  const std::string why_not = kernel.why_not_in_place(product->epilogue);
  if (why_not.empty()) return product;
  if (why != nullptr) *why = why_not;
  return std::nullopt;
}

}  // namespace apl::lower
