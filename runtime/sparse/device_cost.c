// How long the kernels take, fitted in f16, and in SpMM of f32, by what bounds them: a launch, the rounds of gathers
// that follow each other in the longest row or window, bytes that are gathered, rounds that are issued, warps that are
// started. Of SpMM the first kernel of all that fits a matrix is chosen by it. What each costs is in the record of the
// device, which names the measurements that it was fitted to (bench/sparse_gpu/fit_spmm.py, fit.py).
//
// On the H200 SpMM's estimates err by 10 % (rows), 15 % (windows) and 14 % (staged) in root mean square; the kernels
// that they choose take 1.05 times as long as the best of the 40, for matrices that are left out of the fit. Those of
// SDDMM and dense products err by 11 and 7 %. That is enough for a choice between variants that differ, not for a
// forecast.
#include <math.h>

#include "runtime/sparse/device_kernel.h"

static double cost_larger(double a, double b) { return a > b ? a : b; }
static int64_t cost_rounds(int64_t length, int64_t each) { return (length + each - 1) / each; }
static double cost_both(double latency, double throughput) { return sqrt(latency * latency + throughput * throughput); }
// What is gathered comes from the second cache, or where B and C do not fit there, from memory.
static int cost_is_large(const struct apl_sparse_packed* f, double row_bytes) {
  return (double)(f->rows + f->columns) * row_bytes > f->device->sparse_cache_bytes;
}

// Long rows have a block of 8 warps, medium ones a warp, others a group of its lanes.
double apl_sparse_rows_cost(const struct apl_sparse_packed* f, int32_t type, double row_bytes, int64_t slices,
                            int32_t lanes, int ahead) {
  const struct apl_device* d = f->device;
  const int64_t groups = d->warp / lanes, shorts = f->records - f->longs - f->mediums;
  int64_t rounds = cost_rounds(f->longest[0], 32 * groups);
  if (rounds < cost_rounds(f->longest[1], 4 * groups)) rounds = cost_rounds(f->longest[1], 4 * groups);
  if (rounds < cost_rounds(f->longest[2], 4)) rounds = cost_rounds(f->longest[2], 4);
  const double warps = d->sparse_rows_medium * (double)f->mediums + d->sparse_rows_long * (double)f->longs +
                       d->sparse_rows_short * (double)cost_rounds(shorts, groups);
  const double issued = d->sparse_rows_issue * (double)f->row_elements / (4.0 * (double)groups);
  double bytes = row_bytes * (double)f->row_elements * 1e-6 *
                 (cost_is_large(f, row_bytes) ? d->sparse_rows_megabyte_far : d->sparse_rows_megabyte);
  if (ahead) bytes *= d->sparse_rows_ahead;
  // By length, rows that share columns are read at times of their own: what fits no cache is read again for each.
  if (f->sorted > 0 && f->statistics.shared > 1.05)
    bytes *= cost_is_large(f, row_bytes) ? d->sparse_rows_shared_far : d->sparse_rows_shared;
  // Sums of pieces, of at least 4 bytes, are written, and read by a kernel that adds them up.
  const double join =
      f->cuts > 0 ? d->sparse_join_launch + 4e-6 * row_bytes * (double)f->pieces * d->dense_write_megabyte : 0;
  // Bytes and what is issued for them overlap the better, the more bytes an element has.
  const double wide = apl_sparse_type_size(type) > 2 ? d->sparse_rows_wide : 1;
  return join + wide * cost_both((ahead ? d->sparse_rows_round_ahead : d->sparse_rows_round) * (double)rounds,
                                 bytes + (issued + warps) * (double)slices * 1e-3);
}

double apl_sparse_windows_cost(const struct apl_sparse_packed* f, double row_bytes, int64_t slices,
                               const struct apl_sparse_spmm_choice* c) {
  const int k = f->parts == 1 ? 0 : f->parts == 2 ? 1 : 2;
  const struct apl_device* d = f->device;
  const double steps[] = {d->sparse_windows_step_8, d->sparse_windows_step_16, d->sparse_windows_step_32};
  const double bytes_left[] = {1, d->sparse_windows_bytes_16, d->sparse_windows_bytes_32};
  const double tasks[] = {d->sparse_windows_task_8, d->sparse_windows_task_16, d->sparse_windows_task_32};
  const int64_t rounds = cost_rounds(f->longest_window, c->split * c->flight);
  const int is_narrow = row_bytes <= 64, usual = is_narrow ? 4 : 8;
  const double shares =
      d->sparse_windows_share * f->parts * log2((double)c->split);  // what warps that share a window exchange
  const double latency = steps[k] * (is_narrow ? d->sparse_windows_narrow : 1) * (double)rounds + shares;
  double bytes = bytes_left[k] * row_bytes * (double)(f->steps * APL_SPARSE_STEP);
  bytes *= 1e-6 * (cost_is_large(f, row_bytes) ? d->sparse_windows_megabyte_far : d->sparse_windows_megabyte);
  if (c->resident > 0) bytes *= d->sparse_windows_resident;
  // Narrow accesses are the more of them.
  if (c->window_elements < usual) bytes *= (double)usual / c->window_elements;
  return cost_both(latency, bytes + tasks[k] * (double)(f->windows * slices * c->split) * 1e-3);
}

int apl_sparse_has_matrix_units(const struct apl_device* device, int32_t type) {
  return apl_sparse_is_half(type) && device->matrix_units;
}

int32_t apl_sparse_highest_window(const struct apl_device* device, int32_t type) {
  return apl_sparse_has_matrix_units(device, type) ? 32 : 16;
}

double apl_sparse_plain_windows_cost(const struct apl_sparse_packed* f, int32_t type, double row_bytes, int64_t slices,
                                     const struct apl_sparse_spmm_choice* c) {
  const struct apl_device* d = f->device;
  const double size = (double)apl_sparse_type_size(type), width = row_bytes / size;
  const int64_t rounds = cost_rounds(f->longest_window, c->split);
  const int is_high = f->parts > 1;
  const double latency = (is_high ? d->sparse_plain_step_16 : d->sparse_plain_step_8) * (double)rounds;
  double work = 1e-6 * row_bytes * (double)(f->steps * APL_SPARSE_STEP) * d->sparse_plain_bytes *
                (cost_is_large(f, row_bytes) ? d->sparse_windows_megabyte_far : d->sparse_windows_megabyte);
  // Those of windows of 8 rows hide behind what they gather. Floats of 64 bits go at half the rate.
  if (is_high)
    work += 1e-9 * 8 * APL_SPARSE_STEP * (double)f->units * width * (size > 4 ? 2 : 1) * d->sparse_plain_gigafma;
  return cost_both(latency, work + d->sparse_plain_task * f->parts * (double)(f->windows * slices * c->split) * 1e-3);
}

// A block copies its slice of B, then a warp has a row at a time.
double apl_sparse_staged_cost(const struct apl_sparse_packed* f, int64_t slices, int32_t lanes) {
  const struct apl_device* d = f->device;
  const int64_t groups = d->warp / lanes, multiprocessors = d->multiprocessors;
  int64_t blocks = multiprocessors / slices > 0 ? multiprocessors / slices : 1;
  if (blocks > f->records) blocks = f->records;
  int64_t longest = 0;
  for (int k = 0; k < 3; ++k)
    if (longest < f->longest[k]) longest = f->longest[k];
  const int64_t mean = f->records > 0 ? cost_rounds(f->row_elements, f->records) : 0;
  int64_t rounds = cost_rounds(f->records, blocks * (d->block_threads / d->warp)) * cost_rounds(mean, 4 * groups);
  if (rounds < cost_rounds(longest, 4 * groups)) rounds = cost_rounds(longest, 4 * groups);
  const double slice_bytes = 16.0 * lanes;
  return (double)cost_rounds(blocks * slices, multiprocessors) *
         (d->sparse_staged_round * (double)rounds +
          1e-6 * d->sparse_staged_copy_megabyte * (double)f->columns * slice_bytes +
          1e-6 * d->sparse_staged_gather_megabyte * (double)f->row_elements / (double)blocks * slice_bytes);
}

double apl_sparse_microseconds(const struct apl_sparse_packed* packed, int32_t type, int64_t width) {
  int32_t elements = (int32_t)(16 / apl_sparse_type_size(type));
  while (width % elements != 0) elements /= 2;
  return apl_sparse_choose_spmm(packed, type, elements, width, NULL).microseconds;
}

double apl_sparse_sddmm_microseconds(const struct apl_sparse_sddmm_packed* packed, int32_t type, int64_t depth) {
  const struct apl_device* d = packed->device;
  const int64_t elements = 16 / apl_sparse_type_size(type);
  const double row_bytes = (double)apl_sparse_type_size(type) * (double)depth;
  const int is_large = (double)(packed->rows + packed->columns) * row_bytes > d->sparse_cache_bytes;
  if (packed->windows > 0) {
    const double rounds = (double)packed->task_steps * (double)cost_rounds(depth, 128);
    const double gathered = (double)packed->steps * APL_SPARSE_STEP * row_bytes;
    return d->sddmm_windows_launch + d->sddmm_windows_round * rounds +
           1e-6 * gathered * (is_large ? d->sddmm_windows_megabyte_far : d->sddmm_windows_megabyte) +
           1e-3 * d->sddmm_windows_step * (double)packed->steps;
  }
  const int32_t lanes = apl_sparse_power_from(cost_rounds(depth, elements), 16);
  const double gathered = 2 * row_bytes * (double)packed->nonzeros;
  return d->sddmm_list_launch + d->sddmm_list_round * (double)cost_rounds(depth, elements * lanes) +
         1e-6 * gathered * (is_large ? d->sddmm_list_megabyte_far : d->sddmm_list_megabyte) +
         1e-3 * d->sddmm_list_nonzero * (double)packed->nonzeros;
}

// Of rows times depth and depth times columns: the sum's own length, reading and writing, or operations, on the tensor
// cores for floats of 16 bits. Integers take what floats of 32 bits do, those of 64 bits what floats of 64 do.
double apl_sparse_dense_microseconds(const struct apl_device* d, int32_t type, int64_t rows, int64_t depth,
                                     int64_t columns) {
  const double m = (double)rows, k = (double)depth, n = (double)columns, size = (double)apl_sparse_type_size(type);
  const double bytes = size * 1e-6 * ((m * k + k * n) * d->dense_read_megabyte + m * n * d->dense_write_megabyte);
  const double gigaflop = apl_sparse_is_half(type) ? d->dense_gigaflop
                          : size > 4               ? d->dense_gigaflop_64
                                                   : d->dense_gigaflop_32;
  return d->dense_launch + cost_larger(1e-3 * d->dense_depth * k, cost_larger(bytes, 2e-9 * m * n * k * gigaflop));
}

int apl_sparse_prefers_dense(const struct apl_device* device, double sparse, double dense) {
  return sparse * device->dense_doubt > dense;
}
