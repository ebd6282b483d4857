#include "runtime/program/sparse_operands.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <type_traits>

#include "runtime/sparse/device_kernel.h"
#include "runtime/sparse/known.h"

namespace apl::program {
namespace {

// Smaller products do not pay for a kernel that is compiled when the program runs.
constexpr std::int64_t kLeastProducts = 1 << 16;
constexpr std::size_t kMostOperands = 8;

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
template <class T, auto Free>
using Owned = std::unique_ptr<T, Freed<Free>>;

int refuse(apl_context* ctx, int status) {
  std::snprintf(ctx->error, sizeof ctx->error, "sparse argument: %s", apl_sparse_status_text(status));
  return status == APL_SPARSE_OUT_OF_MEMORY ? APL_OUT_OF_MEMORY : APL_ERROR;
}

// The argument's arrays on the host.
struct HostPacked {
  std::vector<std::int64_t> row_start;
  std::vector<std::int32_t> column;
  apl_sparse_csr csr{};

  int read(apl_context* ctx, std::int64_t rows, std::int64_t columns, std::int64_t nonzeros,
           const void* device_column) {
    column.resize(static_cast<std::size_t>(nonzeros));
    const int status = ctx->backend->download(ctx, column.data(), device_column, nonzeros * 4);
    csr = {rows, columns, nonzeros, row_start.data(), column.data()};
    return status;
  }
};

bool is_worth_it(std::int64_t nonzeros, std::int64_t width) {
  return width > 0 && nonzeros > 0 && nonzeros >= (kLeastProducts + width - 1) / width;
}

// What the kernels take of a plan.
std::string taken(const apl_sparse_packed& packed, std::int32_t type) {
  std::string text = fmt::format("{} windows of {} rows{}, {} rows gathered", packed.windows, 8 * packed.parts,
                                 apl_sparse_has_matrix_units(packed.device, type) != 0 ? " on tensor cores" : "",
                                 packed.records - packed.pieces + packed.cuts);
  if (packed.cuts > 0) text += fmt::format(", {} of them in {} pieces", packed.cuts, packed.pieces);
  return text;
}

// By a library that was asked for.
std::string taken(Bridge& bridge) {
  return fmt::format("the dense product of a copy with all zeros, by {}", bridge.backend().library_name());
}

ScalarType sum_type(ScalarType type) { return byte_size(type) == 2 ? ScalarType::f32 : type; }

std::string taken(const apl_sparse_sddmm_packed& packed) {
  return packed.windows > 0 ? fmt::format("{} windows of 8 rows", packed.windows) : "a list of the non-zeros";
}

std::string taken(const apl_sparse_tiles& tiles) {
  return fmt::format("{} blocks, {} ELL rows and {} nnz segments", tiles.blocks, tiles.ell_rows, tiles.segments);
}

template <class Asked>
constexpr bool kIsSddmm = std::is_same_v<Asked, apl_sparse_sddmm_product>;

// The number of an array that was there before the call; 0: it will not be seen again.
std::uint64_t lasting(const Bridge& bridge, const void* data) {
  const std::uint64_t age = bridge.age_of(data).value_or(0);
  return bridge.is_argument(age) ? age : 0;
}

// The one of that key, made if none is kept; for a new one the oldest may go.
template <class Kept, class Key, class Release, class Make>
int find_or_make(apl_context* ctx, std::vector<Kept>& all, const Key& key, const Release& release, const Make& make,
                 Kept*& found) {
  auto known = std::ranges::find(all, key, &Kept::key);
  if (known == all.end()) {
    if (all.size() == kMostOperands) {
      release(ctx, &all.front().operand);
      all.erase(all.begin());
    }
    Kept made{.key = key};
    if (const int status = make(made); status != APL_SUCCESS) return status;
    all.push_back(made);
    known = all.end() - 1;
  }
  found = &*known;
  return APL_SUCCESS;
}

// A library's product into sums of its own, [rows][columns], with which something is done then.
template <class Use>
int with_sums(Bridge& bridge, DenseProduct dense, const Use& use) {
  apl_context* ctx = bridge.context();
  dense.result = sum_type(dense.type);
  dense.c_row = dense.columns;
  int status = ctx->backend->allocate(ctx, dense.rows * dense.columns * byte_size(dense.result), "sums", &dense.c);
  if (status != APL_SUCCESS) return status;
  status = bridge.finish(bridge.backend().library_product(dense));
  if (status == APL_SUCCESS) status = use(dense.c);
  const int released = ctx->backend->release(ctx, dense.c);
  return status != APL_SUCCESS ? status : released;
}

}  // namespace

void SparseOperands::plan(std::uint64_t age, std::vector<const GivenPlan*> plans) {
  Planned planned{age, {}};
  for (const GivenPlan* plan : plans) planned.uses.push_back({plan, false, {}});
  planned_.push_back(std::move(planned));
}

std::vector<PlanUse> SparseOperands::take_uses() {
  std::vector<PlanUse> uses;
  for (Planned& planned : planned_) uses.insert(uses.end(), planned.uses.begin(), planned.uses.end());
  planned_.clear();
  return uses;
}

PlanUse* SparseOperands::plan_for(std::uint64_t age, bool sddmm) {
  const auto planned = std::ranges::find(planned_, age, &Planned::age);
  if (planned == planned_.end()) return nullptr;
  PlanUse* found = nullptr;
  for (PlanUse& use : planned->uses) {
    const apl_sparse_plan& plan = *use.plan->plan;
    if ((plan.sddmm != 0) != sddmm) {
      if (use.why.empty())
        use.why = fmt::format("it is for operator {}, the program multiplies `{}` by {}", sddmm ? "spmm" : "sddmm",
                              use.plan->operand, sddmm ? "sddmm" : "spmm");
    } else if (plan.dense && (on_host_ || !uses_library_)) {
      use.why = "it says `form dense`, and this program was compiled for a sparse operand";
    } else if (found == nullptr) {
      found = &use;
    }
  }
  return found;
}

SparseOperands::SparseOperands(bool on_host) : on_host_(on_host) {
  cpu_.threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

template <class Asked, class Run>
int SparseOperands::run_on_host(Bridge& bridge, const Asked& asked, const Run& run, std::int32_t& done) {
  const std::uint64_t pattern = lasting(bridge, asked.column);
  PlanUse* plan = plan_for(pattern, kIsSddmm<Asked>);
  const int status =
      run(&cpu_, &asked, pattern, lasting(bridge, asked.values), plan ? plan->plan->plan.get() : nullptr, &done);
  if (status != APL_SPARSE_FINE) return refuse(bridge.context(), status);
  if (plan && done > 0) *plan = {plan->plan, true, taken(*cpu_.call.packed->tiles)};
  return APL_SUCCESS;
}

template <class Kept, class Asked, class Release>
int SparseOperands::find(Bridge& bridge, const Asked& asked, std::int64_t dense, std::int64_t depth,
                         std::vector<Kept>& all, const Release& release, Found<Kept>& found) {
  const std::uint64_t age = lasting(bridge, asked.column);
  if (age == 0) return APL_SUCCESS;
  PlanUse* plan = plan_for(age, kIsSddmm<Asked>);
  // A plan that was asked for acts, whatever the size.
  if (dense <= 0 || asked.nonzeros <= 0 || (!plan && !is_worth_it(asked.nonzeros, dense))) return APL_SUCCESS;
  found.plan = plan;
  return find_or_make(
      bridge.context(), all, Key{age, asked.type, depth}, release,
      [&](Kept& made) { return make(bridge, asked, plan, made); }, found.kept);
}

int SparseOperands::product(Bridge& bridge, const apl_sparse_product& product, std::int32_t& done) {
  apl_context* ctx = bridge.context();
  if (on_host_) return run_on_host(bridge, product, apl_sparse_cpu_product, done);
  // Widths that are alike share a packed operand.
  const auto width = static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::clamp<std::int64_t>(product.width, 32, 512))));
  Found<Product> found;
  if (const int status = find(bridge, product, product.width, width, products_, apl_sparse_release, found);
      status != APL_SUCCESS || found.kept == nullptr)
    return status;
  Product* const known = found.kept;
  PlanUse* const plan = found.plan;
  const std::uint64_t values = bridge.age_of(product.values).value_or(0);
  // Only what was there before the call is the same as before.
  const bool same = values != 0 && bridge.is_argument(values) && values == known->values;
  if (!same) {
    if (const int status = apl_sparse_set_values(ctx, &known->operand, product.values); status != APL_SUCCESS)
      return status;
    known->values = bridge.is_argument(values) ? values : 0;
  }
  const bool is_dense = plan && plan->plan->plan->dense;
  if (plan) *plan = {plan->plan, true, is_dense ? taken(bridge) : taken(known->operand.packed, product.type)};
  done = 1;
  known->operand.is_wide = product.is_wide;
  if (is_dense) return multiply(bridge, product, known->operand);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): it is read
  return apl_sparse_spmm(ctx, &known->operand, {const_cast<void*>(product.b), product.b_row},
                         {product.c, product.c_row}, product.width, nullptr, product.epilogue);
}

int SparseOperands::is_known(Bridge& bridge, const apl_known_matrix& matrix, const void* row_start, const void* column,
                             const void* values, std::int32_t& is_it) {
  is_it = 0;
  const Seen asked{lasting(bridge, row_start),
                   lasting(bridge, column),
                   lasting(bridge, values),
                   matrix.rows,
                   matrix.columns,
                   matrix.nonzeros};
  if (asked.row_start == 0 || asked.column == 0 || asked.values == 0) return APL_SUCCESS;
  const auto is_same = [&](const Seen& seen) {
    return seen.row_start == asked.row_start && seen.column == asked.column && seen.values == asked.values &&
           seen.rows == asked.rows && seen.columns == asked.columns && seen.nonzeros == asked.nonzeros;
  };
  auto known = std::ranges::find_if(seen_, is_same);
  if (known == seen_.end()) {
    // The sizes are the program's; the arrays may be shorter or longer.
    const auto bytes = static_cast<std::int64_t>(byte_size(static_cast<ScalarType>(matrix.type)));
    apl_context* ctx = bridge.context();
    std::uint64_t key = 0;
    if (bridge.bytes_of(row_start) >= (matrix.rows + 1) * 8 && bridge.bytes_of(column) >= matrix.nonzeros * 4 &&
        bridge.bytes_of(values) >= matrix.nonzeros * bytes) {
      HostPacked host;
      std::vector<std::byte> numbers(static_cast<std::size_t>(matrix.nonzeros * bytes));
      host.row_start.resize(static_cast<std::size_t>(matrix.rows) + 1);
      int status = ctx->backend->download(ctx, host.row_start.data(), row_start, (matrix.rows + 1) * 8);
      if (status == APL_SUCCESS) status = host.read(ctx, matrix.rows, matrix.columns, matrix.nonzeros, column);
      if (status == APL_SUCCESS) status = ctx->backend->download(ctx, numbers.data(), values, std::ssize(numbers));
      if (status != APL_SUCCESS) return status;
      host.csr.values = numbers.data();
      if (host.row_start.back() == matrix.nonzeros) key = apl_sparse_key(&host.csr, static_cast<std::size_t>(bytes));
    }
    if (seen_.size() == kMostOperands) seen_.erase(seen_.begin());
    seen_.push_back(asked);
    seen_.back().key = key;
    known = seen_.end() - 1;
  }
  is_it = known->key == matrix.key ? 1 : 0;
  return APL_SUCCESS;
}

// The same pattern comes again, in other arrays.
int SparseOperands::order_of(const Bridge& bridge, const apl_sparse_csr& matrix, const apl_sparse_product& product,
                             const std::vector<std::int32_t>*& order) {
  const Reordered key{apl_sparse_hash(&matrix), product.type, product.width, {}};
  auto known = std::ranges::find_if(orders_, [&](const Reordered& other) {
    return other.pattern == key.pattern && other.type == key.type && other.width == key.width;
  });
  if (known == orders_.end()) {
    apl_sparse_reordering found{};
    const int failed = apl_sparse_reorder(&matrix, &bridge.device(), product.type, product.width, &found);
    if (failed != APL_SPARSE_FINE) return failed;
    if (orders_.size() == kMostOperands) orders_.erase(orders_.begin());
    orders_.push_back(key);
    if (found.order != nullptr) orders_.back().order.assign(found.order, found.order + matrix.rows);
    std::free(found.order);
    known = orders_.end() - 1;
  }
  order = &known->order;
  return APL_SPARSE_FINE;
}

int SparseOperands::make(Bridge& bridge, const apl_sparse_product& product, const PlanUse* plan, Product& made) {
  apl_context* ctx = bridge.context();
  const apl_sparse_plan* given = plan ? plan->plan->plan.get() : nullptr;
  HostPacked host;
  host.row_start.resize(static_cast<std::size_t>(product.rows) + 1);
  int status = ctx->backend->download(ctx, host.row_start.data(), product.row_start, (product.rows + 1) * 8);
  if (status == APL_SUCCESS) status = host.read(ctx, product.rows, product.columns, product.nonzeros, product.column);
  if (status != APL_SUCCESS) return status;
  apl_sparse_options options{};
  if (plan == nullptr) {
    const std::vector<std::int32_t>* order = nullptr;
    if (const int failed = order_of(bridge, host.csr, product, order); failed != APL_SPARSE_FINE)
      return refuse(ctx, failed);
    if (!order->empty()) options.row_order = order->data();
  }
  apl_sparse_packed* raw = nullptr;
  const int failed = given && given->dense ? apl_sparse_packed_dense(&host.csr, &bridge.device(), &raw)
                                           : apl_sparse_packed_make(&host.csr, given, &bridge.device(), product.type,
                                                                    product.width, &options, &raw);
  const Owned<apl_sparse_packed, apl_sparse_packed_free> packed(raw);
  if (failed != APL_SPARSE_FINE) return refuse(ctx, failed);
  return bridge.keeping([&] { return apl_sparse_upload(ctx, packed.get(), product.type, &made.operand); });
}

int SparseOperands::multiply(Bridge& bridge, const apl_sparse_product& product, const apl_sparse_operand& operand) {
  const auto type = static_cast<ScalarType>(product.type);
  const DenseProduct dense{.type = type,
                           .result = product.is_wide ? sum_type(type) : type,
                           .rows = product.rows,
                           .columns = product.width,
                           .depth = product.columns,
                           .a = operand.value,
                           .b = product.b,
                           .c = product.c,
                           .a_row = product.columns,
                           .b_row = product.b_row,
                           .c_row = product.c_row};
  if (!product.epilogue) return bridge.finish(bridge.backend().library_product(dense));
  return with_sums(bridge, dense, [&](void* sums) {
    return apl_sparse_join(bridge.context(), &operand, sums, {product.c, product.c_row}, product.width,
                           product.epilogue);
  });
}

int SparseOperands::multiply(Bridge& bridge, const apl_sparse_sddmm_product& sddmm,
                             const apl_sparse_sddmm_operand& operand) {
  const DenseProduct dense{.type = static_cast<ScalarType>(sddmm.type),
                           .rows = sddmm.rows,
                           .columns = sddmm.columns,
                           .depth = sddmm.depth,
                           .a = sddmm.x,
                           .b = sddmm.y,
                           .a_row = sddmm.x_row,
                           .b_row = sddmm.y_row,
                           .b_by_columns = true};
  return with_sums(bridge, dense, [&](void* sums) {
    return apl_sparse_sample(bridge.context(), &operand, sddmm.values, sums, sddmm.result, sddmm.epilogue);
  });
}

int SparseOperands::sddmm(Bridge& bridge, const apl_sparse_sddmm_product& sddmm, std::int32_t& done) {
  apl_context* ctx = bridge.context();
  if (on_host_) return run_on_host(bridge, sddmm, apl_sparse_cpu_sddmm, done);
  Found<Sddmm> found;
  if (const int status = find(bridge, sddmm, sddmm.depth, sddmm.depth, sddmms_, apl_sparse_release_sddmm, found);
      status != APL_SUCCESS || found.kept == nullptr)
    return status;
  Sddmm* const known = found.kept;
  PlanUse* const plan = found.plan;
  const bool is_dense = plan && plan->plan->plan->dense;
  if (plan) *plan = {plan->plan, true, is_dense ? taken(bridge) : taken(known->operand.packed)};
  done = 1;
  known->operand.is_wide = sddmm.is_wide;
  if (is_dense) return multiply(bridge, sddmm, known->operand);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): they are read
  return apl_sparse_sddmm(ctx, &known->operand, sddmm.values, {const_cast<void*>(sddmm.x), sddmm.x_row},
                          {const_cast<void*>(sddmm.y), sddmm.y_row}, sddmm.depth, sddmm.result, sddmm.epilogue);
}

int SparseOperands::make(Bridge& bridge, const apl_sparse_sddmm_product& sddmm, const PlanUse* plan, Sddmm& made) {
  apl_context* ctx = bridge.context();
  // The rows are those of each non-zero; where each starts follows.
  std::vector<std::int32_t> row(static_cast<std::size_t>(sddmm.nonzeros));
  int status = ctx->backend->download(ctx, row.data(), sddmm.row, sddmm.nonzeros * 4);
  if (status != APL_SUCCESS) return status;
  HostPacked host;
  host.row_start.assign(static_cast<std::size_t>(sddmm.rows) + 1, 0);
  for (const std::int32_t r : row) ++host.row_start[static_cast<std::size_t>(r) + 1];
  for (std::size_t r = 1; r < host.row_start.size(); ++r) host.row_start[r] += host.row_start[r - 1];
  status = host.read(ctx, sddmm.rows, sddmm.columns, sddmm.nonzeros, sddmm.column);
  if (status != APL_SUCCESS) return status;
  const apl_sparse_plan* given = plan ? plan->plan->plan.get() : nullptr;
  apl_sparse_sddmm_packed* raw = nullptr;
  // Of all sums those of a list are taken.
  const apl_sparse_options list{.window = -1};
  const bool is_dense = given && given->dense;
  const int failed = apl_sparse_sddmm_packed_make(&host.csr, is_dense ? nullptr : given, &bridge.device(), sddmm.type,
                                                  sddmm.depth, is_dense ? &list : nullptr, &raw);
  const Owned<apl_sparse_sddmm_packed, apl_sparse_sddmm_packed_free> packed(raw);
  if (failed != APL_SPARSE_FINE) return refuse(ctx, failed);
  return bridge.keeping([&] { return apl_sparse_upload_sddmm(ctx, packed.get(), sddmm.type, &made.operand); });
}

}  // namespace apl::program
