#include "codegen/sparse/products.h"

#include <algorithm>

#include "ir/sparse_soa.h"
#include "ir/walk.h"

namespace apl::lower {
namespace {

using Role = SparseSchedule::Role;
using Family = SparseSchedule::Family;

// A kernel with its schedule, and where its operands and results are in memory.
class Scheduled {
 public:
  Scheduled(const Stm& stm, const apl::Function& function, std::string* why)
      : stm_(stm), function_(function), why_(why), op_(get_if<SegOp>(stm)) {}

  std::nullopt_t refuse(std::string reason) const {
    if (why_ != nullptr) *why_ = std::move(reason);
    return std::nullopt;
  }

  bool is(std::initializer_list<Family> families) const {
    if (op_ == nullptr || !op_->sparse) {
      refuse("it is not one kernel that goes over non-zeros, or a pass has dropped its schedule");
    } else if (op_->sparse->family == Family::general) {
      refuse(op_->sparse->why);
    } else if (std::ranges::find(families, op_->sparse->family) != families.end()) {
      return true;
    } else {
      refuse("the runtime has no such kernels for this target");
    }
    return false;
  }

  const SegOp& op() const { return *op_; }
  const SparseSchedule& schedule() const { return *op_->sparse; }
  const Type& result() const { return function_.type(stm_.pattern.front()); }
  const Type& array(std::size_t operand) const { return function_.type(schedule().operands[operand].array); }
  const Poly& size(Role role) const { return schedule().dims[*dim_of(schedule(), role)].size; }
  Value index(Role role) const { return op_->space[*dim_of(schedule(), role)].index; }

  std::vector<SegDim> batches() const {
    std::vector<SegDim> found;
    for (std::size_t d = 0; d < op_->space.size(); ++d)
      if (schedule().dims[d].role == Role::batch) found.push_back(op_->space[d]);
    return found;
  }

  // An operand's elements from a batch's first on, a row of `role` apart.
  std::optional<DenseRows> rows(std::size_t operand, Role role) const {
    const SparseSchedule::Operand& read = schedule().operands[operand];
    const auto& memory = array(operand).memory;
    if (!memory || memory->layout.dims() != Lmad::row_major(array(operand).shape).dims()) return std::nullopt;
    return DenseRows{memory->block, memory->layout.offset() + read.offset + of_batch(read.strides),
                     read.strides[*dim_of(schedule(), role)]};
  }
  std::optional<Nonzeros> nonzeros(std::size_t operand) const {
    const auto found = rows(operand, Role::nonzero);
    return found ? std::optional(Nonzeros{found->block, found->offset}) : std::nullopt;
  }

  // The same of the results, whose dims are the first ones, but for `last`: elements of that are neighbours.
  std::optional<DenseRows> results(Role role, std::optional<Role> last) const {
    if (!result().memory) return std::nullopt;
    const Lmad& layout = result().memory->layout;
    std::vector<Poly> strides;
    for (const LmadDim& dim : layout.dims()) strides.push_back(dim.stride);
    const auto at = last ? dim_of(schedule(), *last) : std::nullopt;
    if (at && !strides[*at].is_one()) return std::nullopt;
    return DenseRows{result().memory->block, layout.offset() + of_batch(strides), strides[*dim_of(schedule(), role)]};
  }

  std::optional<SparseEpilogue> epilogue(const std::vector<Value>& given) const {
    auto found = sparse_epilogue(*op_, given, function_);
    if (const auto* reason = std::get_if<std::string>(&found)) return refuse(*reason);
    return std::get<SparseEpilogue>(std::move(found));
  }

  // Why there are no kernels for its types; empty if there are.
  bool has_kernels(ScalarType other, const SparseEpilogue& epilogue) const {
    const ScalarType type = array(0).element;
    const ScalarType sum = epilogue.sum ? function_.type(epilogue.sum).element : result().element;
    if (other == type && has_sparse_kernels(type, sum, result().element)) return true;
    refuse("there are no kernels for its types: all must be one, or f16 or bf16 with sums in f32");
    return false;
  }

  // Whether a loop can make the results from sums that are where they belong.
  bool fits_in_place(const SparseEpilogue& epilogue) const {
    if (epilogue.empty()) return true;
    if (result().element != function_.type(epilogue.sum).element) {
      refuse("the sums have another type than the results");
      return false;
    }
    for (const Stm& stm : epilogue.stms)
      for (const Value v : free_values(stm.op, function_.values))
        if (function_.type(v).memory && function_.type(v).memory->block == result().memory->block) {
          refuse("the results take the place of an array that is read after the sums");
          return false;
        }
    return true;
  }

  // The entry's array of the matrix, and its sizes.
  Value field(SoaField field) const {
    std::vector<Value> params;
    for (const Value param : function_.params)
      if (!function_.type(param).is_memory()) params.push_back(param);
    for (const SparseSoa& soa : find_soas(function_))
      if (function_.entry->params[soa.param].name == schedule().matrix)
        return params[soa.first + static_cast<std::size_t>(std::ranges::find(soa.fields, field) - soa.fields.begin())];
    return {};
  }
  Poly rows() const { return function_.type(field(SoaField::shape)).shape[1]; }

 private:
  Poly of_batch(const std::vector<Poly>& strides) const {
    Poly offset = 0;
    for (std::size_t d = 0; d < op_->space.size(); ++d)
      if (schedule().dims[d].role == Role::batch) offset += strides[d] * Poly(op_->space[d].index);
    return offset;
  }

  const Stm& stm_;
  const apl::Function& function_;
  std::string* why_;
  const SegOp* op_;
};

std::optional<SparseProduct> product_of(const Scheduled& kernel) {
  auto epilogue = kernel.epilogue({});
  if (!epilogue || !kernel.has_kernels(kernel.array(1).element, *epilogue)) return std::nullopt;
  const auto n = dim_of(kernel.schedule(), Role::n);
  const auto values = kernel.nonzeros(0);
  const auto b = kernel.rows(1, Role::column), c = kernel.results(Role::row, Role::n);
  if (!values || !b || !c)
    return kernel.refuse("rows of the dense operand and of the result do not both lie side by side in memory");
  return SparseProduct{.type = kernel.array(0).element,
                       .is_wide = kernel.result().element != kernel.array(0).element,
                       .row_start = kernel.field(SoaField::row_start),
                       .column = kernel.field(SoaField::column),
                       .values = *values,
                       .rows = kernel.rows(),
                       .columns = kernel.size(Role::column),
                       .nonzeros = kernel.size(Role::nonzero),
                       .width = n ? kernel.size(Role::n) : Poly(1),
                       .b = *b,
                       .c = *c,
                       .i = kernel.index(Role::row),
                       .j = n && *n < kernel.op().space.size() ? std::optional(kernel.index(Role::n)) : std::nullopt,
                       .batches = kernel.batches(),
                       .epilogue = *std::move(epilogue)};
}

// `on_host`: a loop over the results is its epilogue, which reads the row and the column itself.
std::optional<SparseSddmm> sddmm_of(const Scheduled& kernel, bool on_host) {
  const SparseSchedule& schedule = kernel.schedule();
  SparseSddmm sddmm;
  sddmm.type = kernel.array(0).element;
  sddmm.is_wide = kernel.result().element != sddmm.type;
  sddmm.row = kernel.field(SoaField::row);
  sddmm.column = kernel.field(SoaField::column);
  sddmm.e = kernel.index(Role::nonzero);
  sddmm.i = gathered_index(kernel.op(), sddmm.row).value_or(Value{});
  sddmm.j = gathered_index(kernel.op(), sddmm.column).value_or(Value{});
  if (schedule.operands.size() == 3) sddmm.values = kernel.nonzeros(2);
  auto epilogue = sddmm.values
                      ? std::optional(sparse_sum(kernel.op()))
                      : kernel.epilogue(on_host ? std::vector<Value>{} : std::vector{sddmm.e, sddmm.i, sddmm.j});
  if (!epilogue || !kernel.has_kernels(kernel.array(1).element, *epilogue)) return std::nullopt;
  const auto x = kernel.rows(0, Role::row), y = kernel.rows(1, Role::column);
  if (!x || !y) return kernel.refuse("rows of both dense operands do not lie side by side in memory");
  const auto result = kernel.results(Role::nonzero, Role::nonzero);
  if (!result) return kernel.refuse("the results of a batch do not lie side by side in memory");
  sddmm.x = *x;
  sddmm.y = *y;
  sddmm.result = {result->block, result->offset};
  sddmm.epilogue = *std::move(epilogue);
  sddmm.batches = kernel.batches();
  sddmm.rows = kernel.size(Role::row);
  sddmm.columns = kernel.size(Role::column);
  sddmm.nonzeros = kernel.size(Role::nonzero);
  sddmm.depth = kernel.size(Role::depth);
  return sddmm;
}

}  // namespace

bool has_sparse_kernels(ScalarType type, ScalarType sum, ScalarType result) {
  if (is_storage(type) || (type == ScalarType::f16 && sum != type))
    return sum == ScalarType::f32 && (result == sum || (result == type && !is_storage(type)));
  return type == sum && type == result && (is_integer(type) || is_float(type));
}

std::optional<SparseProduct> find_sparse_product(const Stm& stm, const apl::Function& function, std::string* why) {
  const Scheduled kernel(stm, function, why);
  return kernel.is({Family::product}) ? product_of(kernel) : std::nullopt;
}

std::optional<SparseSddmm> find_sparse_sddmm(const Stm& stm, const apl::Function& function, std::string* why) {
  const Scheduled kernel(stm, function, why);
  return kernel.is({Family::sddmm}) ? sddmm_of(kernel, false) : std::nullopt;
}

std::optional<SparseProduct> find_host_product(const Stm& stm, const apl::Function& function, std::string* why) {
  const Scheduled kernel(stm, function, why);
  auto product = kernel.is({Family::product, Family::rows}) ? product_of(kernel) : std::nullopt;
  return product && kernel.fits_in_place(product->epilogue) ? std::move(product) : std::nullopt;
}

std::optional<SparseSddmm> find_host_sddmm(const Stm& stm, const apl::Function& function, std::string* why) {
  const Scheduled kernel(stm, function, why);
  auto sddmm = kernel.is({Family::sddmm}) ? sddmm_of(kernel, true) : std::nullopt;
  return sddmm && kernel.fits_in_place(sddmm->epilogue) ? std::move(sddmm) : std::nullopt;
}

}  // namespace apl::lower
