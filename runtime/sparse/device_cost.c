// How long the kernels take, in f16 on an H200, by what bounds them: a launch, the rounds of gathers that follow each
// other in the longest row or window, bytes that are gathered, rounds that are issued, warps that are started. Of SpMM
// the first kernel of all that fits a matrix is chosen by it.
//
// SpMM's numbers are what bench/sparse_gpu/fit_spmm.py finds in bench/results/sparse-sweep-h200-2026-11-22.json (124
// products of 23 matrices, each by some 40 kernels): they err by 10 % (rows), 15 % (windows) and 14 % (staged) in root
// mean square; the kernels that they choose take 1.05 times as long as the best of the 40, for matrices that are left
// out of the fit. Those of SDDMM and dense products are what bench/sparse_gpu/fit.py finds in
// bench/results/sparse-h200-2026-11-21.json, and err by 11 and 7 %. That is enough for a choice between variants that
// differ, not for a forecast.
#include <math.h>

#include "runtime/sparse/device_kernel.h"

const double apl_sparse_launch_microseconds = 1.83, apl_sparse_staged_launch_microseconds = 1.36;

// What is gathered comes from the second cache, or where B and C do not fit there, from memory.
static const double kCacheBytes = 40e6;

static double cost_larger(double a, double b) { return a > b ? a : b; }
static int64_t cost_rounds(int64_t length, int64_t each) { return (length + each - 1) / each; }
static double cost_both(double latency, double throughput) { return sqrt(latency * latency + throughput * throughput); }
static int cost_is_large(const struct apl_sparse_packed* f, double row_bytes) {
  return (double)(f->rows + f->columns) * row_bytes > kCacheBytes;
}

// Long rows have a block of 8 warps, medium ones a warp, others a group of its lanes.
double apl_sparse_rows_cost(const struct apl_sparse_packed* f, double row_bytes, int64_t slices, int32_t lanes,
                            int ahead) {
  const int64_t groups = 32 / lanes, shorts = f->records - f->longs - f->mediums;
  int64_t rounds = cost_rounds(f->longest[0], 32 * groups);
  if (rounds < cost_rounds(f->longest[1], 4 * groups)) rounds = cost_rounds(f->longest[1], 4 * groups);
  if (rounds < cost_rounds(f->longest[2], 4)) rounds = cost_rounds(f->longest[2], 4);
  const double warps =
      0.261 * (double)f->mediums + 1.98 * (double)f->longs + 0.306 * (double)cost_rounds(shorts, groups);
  const double issued = 0.119 * (double)f->row_elements / (4.0 * (double)groups);
  double bytes = row_bytes * (double)f->row_elements * (cost_is_large(f, row_bytes) ? 0.0566e-6 : 0.02e-6);
  if (ahead) bytes *= 0.877;
  if (f->sorted > 0 && f->statistics.shared > 1.05) bytes *= 0.962;
  return cost_both((ahead ? 0.356 : 0.405) * (double)rounds, bytes + (issued + warps) * (double)slices * 1e-3);
}

double apl_sparse_windows_cost(const struct apl_sparse_packed* f, double row_bytes, int64_t slices,
                               const struct apl_sparse_spmm_choice* c) {
  const int k = f->parts == 1 ? 0 : f->parts == 2 ? 1 : 2;
  static const double kStep[] = {0.571, 0.348, 0.361}, kBytes[] = {1, 0.952, 0.962}, kTask[] = {0.617, 1.11, 2.83};
  const int64_t rounds = cost_rounds(f->longest_window, c->split * c->flight);
  const int is_narrow = row_bytes <= 64, usual = is_narrow ? 4 : 8;
  const double shares = 0.172 * f->parts * log2((double)c->split);  // what warps that share a window tell each other
  const double latency = kStep[k] * (is_narrow ? 0.753 : 1) * (double)rounds + shares;
  double bytes = kBytes[k] * row_bytes * (double)(f->steps * APL_SPARSE_STEP);
  bytes *= cost_is_large(f, row_bytes) ? 0.205e-6 : 0.138e-6;
  if (c->resident > 0) bytes *= 0.973;
  // Narrow accesses are the more of them.
  if (c->window_elements < usual) bytes *= (double)usual / c->window_elements;
  return cost_both(latency, bytes + kTask[k] * (double)(f->windows * slices * c->split) * 1e-3);
}

// A block copies its slice of B, then a warp has a row at a time.
double apl_sparse_staged_cost(const struct apl_sparse_packed* f, int64_t slices, int32_t lanes) {
  const int64_t groups = 32 / lanes;
  int64_t blocks = APL_SPARSE_MULTIPROCESSORS / slices > 0 ? APL_SPARSE_MULTIPROCESSORS / slices : 1;
  if (blocks > f->records) blocks = f->records;
  int64_t longest = 0;
  for (int k = 0; k < 3; ++k)
    if (longest < f->longest[k]) longest = f->longest[k];
  const int64_t mean = f->records > 0 ? cost_rounds(f->row_elements, f->records) : 0;
  int64_t rounds = cost_rounds(f->records, blocks * 32) * cost_rounds(mean, 4 * groups);
  if (rounds < cost_rounds(longest, 4 * groups)) rounds = cost_rounds(longest, 4 * groups);
  const double slice_bytes = 16.0 * lanes;
  return (double)cost_rounds(blocks * slices, APL_SPARSE_MULTIPROCESSORS) *
         (0.193 * (double)rounds + 31.8e-6 * (double)f->columns * slice_bytes +
          8.72e-6 * (double)f->row_elements / (double)blocks * slice_bytes);
}

double apl_sparse_microseconds(const struct apl_sparse_packed* packed, int64_t width) {
  const int32_t elements = width % 8 == 0 ? 8 : width % 4 == 0 ? 4 : width % 2 == 0 ? 2 : 1;
  return apl_sparse_choose_spmm(packed, APL_F16, elements, width, NULL).microseconds;
}

double apl_sparse_sddmm_microseconds(const struct apl_sparse_sddmm_packed* packed, int64_t depth) {
  const double row_bytes = 2.0 * (double)depth;
  const int is_large = (double)(packed->rows + packed->columns) * row_bytes > kCacheBytes;
  if (packed->windows > 0) {
    const double rounds = (double)packed->task_steps * (double)cost_rounds(depth, 128);
    const double gathered = (double)packed->steps * APL_SPARSE_STEP * row_bytes;
    return 2.07 + 0.487 * rounds + gathered * (is_large ? 0.189e-6 : 0.103e-6) + 58.7e-6 * (double)packed->steps;
  }
  const int32_t lanes = apl_sparse_power_from(cost_rounds(depth, 8), 16);
  const double gathered = 2 * row_bytes * (double)packed->nonzeros;
  return 1.61 + 0.333 * (double)cost_rounds(depth, 8 * lanes) + gathered * (is_large ? 0.111e-6 : 0.0688e-6) +
         2.48e-6 * (double)packed->nonzeros;
}

// Of rows times depth and depth times columns: the sum's own length, reading and writing, or the tensor cores.
double apl_sparse_dense_microseconds(int64_t rows, int64_t depth, int64_t columns) {
  const double m = (double)rows, k = (double)depth, n = (double)columns;
  const double bytes = 2 * (m * k + k * n) * 0.210e-6 + 2 * m * n * 0.313e-6;
  return 2.50 + cost_larger(1.47e-3 * k, cost_larger(bytes, 2 * m * n * k * 1.61e-9));
}

int apl_sparse_prefers_dense(double sparse, double dense) {
  static const double kDoubt = 1.2;  // the estimates together err by about so much
  return sparse * kDoubt > dense;
}
