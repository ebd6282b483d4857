// The C API: what callers give as arguments, and the arrays that they get.
#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "capi/apl.h"
#include "capi/handles.h"
#include "capi/objects.h"
#include "ir/host_value.h"

using apl::capi::bad_argument;
using apl::capi::Errors;
using apl::capi::free_handle;
using apl::capi::guarded;
using apl::capi::is_live;

namespace apl::capi {

Result<BorrowedValue> borrowed(const apl_input& input) {
  if (input.size < sizeof(apl_input)) return bad_argument("apl_input::size is smaller than the structure");
  BorrowedValue value;
  if (input.matrix) {
    if (!is_live(input.matrix)) return bad_argument("`matrix` was freed or is no such object");
    value.matrix = input.matrix->matrix;
    return value;
  }
  if (input.type < APL_TYPE_I8 || input.type > APL_TYPE_UNIT) return bad_argument("no scalar type has this number");
  value.type = static_cast<ScalarType>(input.type);
  std::int64_t count = 1;
  if (input.rank > kMaxRank)
    return bad_argument(fmt::format("an array has {} dims at most, not {}", kMaxRank, input.rank));
  if (input.rank > 0 && input.shape == nullptr) return bad_argument("an array without a shape");
  for (std::size_t k = 0; k < input.rank; ++k) {
    if (input.shape[k] < 0) return bad_argument(fmt::format("an array's dim {} has size {}", k, input.shape[k]));
    if (__builtin_mul_overflow(count, input.shape[k], &count))
      return bad_argument("an array of more than 2^63 elements");
  }
  if (std::int64_t bytes = 0; __builtin_mul_overflow(count, byte_size(value.type), &bytes))
    return bad_argument("an array of more than 2^63 bytes");
  value.shape.assign(input.shape, input.shape + input.rank);
  value.data = input.data;
  value.on_device = input.on_device != 0;
  if (input.data == nullptr && count > 0 && byte_size(value.type) > 0) return bad_argument("an argument without data");
  return value;
}

Status check_lists(const apl_input* inputs, size_t input_count, apl_array** outputs, size_t capacity) {
  if (inputs == nullptr && input_count > 0) return bad_argument("`inputs` is null");
  if (outputs == nullptr && capacity > 0) return bad_argument("`outputs` is null");
  return Unit{};
}

// Stores as many as there is room for.
Status store(std::vector<std::unique_ptr<apl_array>> made, apl_array** outputs, std::size_t capacity,
             std::size_t* count) {
  if (count) *count = made.size();
  for (std::size_t k = 0; k < made.size() && k < capacity; ++k) outputs[k] = made[k].release();
  return Unit{};
}

Result<HostCsr> csr_of(const apl_csr& given, bool values) {
  if (given.size < sizeof(apl_csr)) return bad_argument("apl_csr::size is smaller than the structure");
  if (given.rows < 0 || given.columns < 0 || given.row_start == nullptr)
    return bad_argument("a matrix has sizes of 0 or more, and starts of rows");
  if (given.rows >= std::int64_t{1} << 59) return bad_argument(fmt::format("a matrix of {} rows", given.rows));
  for (std::int64_t row = 0; row < given.rows; ++row)
    if (given.row_start[row + 1] < given.row_start[row])
      return bad_argument(fmt::format("row {} of a matrix ends before it starts", row));
  const std::int64_t nonzeros = given.row_start[given.rows];
  if (nonzeros < 0 || (nonzeros > 0 && given.column == nullptr) || (values && nonzeros > 0 && given.values == nullptr))
    return bad_argument("a matrix has a column and a value for each non-zero");
  if (given.type < APL_TYPE_I8 || given.type > APL_TYPE_BOOL) return bad_argument("no scalar type has this number");
  HostCsr matrix;
  matrix.rows = given.rows;
  matrix.columns = given.columns;
  matrix.row_start.assign(given.row_start, given.row_start + given.rows + 1);
  matrix.column.assign(given.column, given.column + nonzeros);
  matrix.values = HostValue::zeros(static_cast<ScalarType>(given.type), {nonzeros});
  if (values && !matrix.values.data.empty())
    std::memcpy(matrix.values.data.data(), given.values, matrix.values.data.size());
  return matrix;
}

}  // namespace apl::capi

extern "C" {

void apl_array_free(apl_array* array) { free_handle(array); }
apl_scalar_type apl_array_type(const apl_array* array) {
  if (!is_live(array)) return APL_TYPE_UNIT;
  return static_cast<apl_scalar_type>(array->owned ? array->owned->type() : array->host.type);
}
size_t apl_array_rank(const apl_array* array) {
  if (!is_live(array)) return 0;
  return array->owned ? array->owned->shape().size() : array->host.shape.size();
}
const int64_t* apl_array_shape(const apl_array* array) {
  if (!is_live(array)) return nullptr;
  return array->owned ? array->owned->shape().data() : array->host.shape.data();
}
void* apl_array_data(const apl_array* array) {
  if (!is_live(array)) return nullptr;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): the handle is not what it holds
  return array->owned ? array->owned->data() : const_cast<std::byte*>(array->host.data.data());
}
int apl_array_on_device(const apl_array* array) {
  return is_live(array) && array->owned && array->owned->on_device() ? 1 : 0;
}
size_t apl_array_bytes(const apl_array* array) {
  if (!is_live(array)) return 0;
  if (!array->owned) return array->host.data.size();
  auto bytes = static_cast<std::size_t>(apl::byte_size(array->owned->type()));
  for (const std::int64_t size : array->owned->shape()) bytes *= static_cast<std::size_t>(size);
  return bytes;
}

apl_fault apl_array_read(const apl_array* array, void* host) {
  Errors errors;  // an array has no place for them
  return guarded(errors, nullptr, {{"array", array}}, [&]() -> apl::Status {
    if (host == nullptr && apl_array_bytes(array) > 0) return bad_argument("`host` is null");
    if (!array->owned) {
      if (!array->host.data.empty()) std::memcpy(host, array->host.data.data(), array->host.data.size());
      return apl::Unit{};
    }
    auto value = array->owned->fetch();
    if (!value) return std::move(value).error();
    if (!value->data.empty()) std::memcpy(host, value->data.data(), value->data.size());
    return apl::Unit{};
  });
}

}  // extern "C"
