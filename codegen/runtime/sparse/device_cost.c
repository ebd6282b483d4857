// How long the kernels take, in f16 on an H200, by what bounds them: gathered bytes, the tensor cores' steps, a launch.
// Fitted to measurements (bench/sparse_gpu); good for a choice between ways that differ, not for a forecast.
#include "codegen/runtime/sparse/device_form.h"

// Bytes a microsecond: gathered from the second cache, and from memory where B and C do not fit there.
static const double kGatheredBytes = 8.6e6, kMemoryBytes = 4.2e6, kCacheBytes = 40e6;

double apl_sparse_microseconds(const struct apl_sparse_form* form, int64_t width) {
  static const double kRowsLaunch = 2.3, kWindowsLaunch = 3.5;
  // Nanoseconds for a gathered row of 128 elements, by the parts that it is shared by.
  const double gather = form->parts == 4 ? 0.060 : form->parts == 2 ? 0.0495 : 0.041;
  const double row_bytes = 2.0 * (double)width, dense_bytes = (double)(form->rows + form->columns) * row_bytes;
  const double rate = dense_bytes > kCacheBytes ? kMemoryBytes : kGatheredBytes;
  double time = form->parts > 0 ? kWindowsLaunch : kRowsLaunch;
  time += (double)form->row_elements * row_bytes / rate;
  time += (double)form->steps * APL_SPARSE_STEP * (double)width / 128 * gather / 1000;
  return time;
}

double apl_sparse_dense_microseconds(int64_t rows, int64_t columns, int64_t width) {
  static const double kLaunch = 3.3, kOperations = 7e8;
  const double elements = (double)rows * (double)columns;
  const double operations = 2 * elements * (double)width / kOperations;
  // Weights of up to the second cache's size are read from there.
  const double bytes = 2 * elements / (2 * elements > kCacheBytes ? kMemoryBytes : 1.2 * kMemoryBytes);
  return kLaunch + (operations > bytes ? operations : bytes);
}
