// How long the kernels take, in f16 on an H200, by what bounds them: a launch, the rounds of gathers that follow each
// other in the longest row or window, bytes that are gathered, blocks that are started.
//
// The numbers are what bench/sparse_gpu/fit.py finds in bench/results/sparse-h200-2026-11-21.json (248 products, cuBLAS
// beside them): they err by 10 % (SpMM), 11 % (SDDMM) and 7 % (dense), in root mean square, and by 12, 16 and 7 % for
// matrices that are left out of the fit. That is enough for a choice between ways that differ, not for a forecast.
#include "codegen/runtime/sparse/device_kernel.h"

// What is gathered comes from the second cache, or where B and C do not fit there, from memory.
static const double kCacheBytes = 40e6;

static double cost_larger(double a, double b) { return a > b ? a : b; }
static int64_t cost_rounds(int64_t length, int64_t each) { return (length + each - 1) / each; }

// What all gathers and blocks together take, and what the longest row takes.
static double cost_of_rows(const struct apl_sparse_form* f, const struct apl_sparse_spmm_choice* c, int64_t width,
                           int is_large) {
  const int64_t groups = 32 / c->lanes, shorts = f->records - f->longs - f->mediums;
  int64_t rounds = cost_rounds(f->longest[0], 4 * c->warps * groups);
  if (rounds < cost_rounds(f->longest[1], 4 * groups)) rounds = cost_rounds(f->longest[1], 4 * groups);
  if (rounds < cost_rounds(f->longest[2], 4)) rounds = cost_rounds(f->longest[2], 4);
  const int64_t slices = cost_rounds(width, c->lanes * c->elements);
  const int64_t blocks =
      (f->longs + cost_rounds(f->mediums, c->warps) + cost_rounds(shorts, c->warps * groups)) * slices;
  const double bytes = 2.0 * (double)width * (double)f->row_elements;
  return cost_larger(0.547 * (double)rounds, bytes * (is_large ? 0.110e-6 : 0.0868e-6) + 2.08e-3 * (double)blocks);
}

// A block copies its slice of B, then a warp has a row at a time.
static double cost_of_staged(const struct apl_sparse_form* f, const struct apl_sparse_spmm_choice* c, int64_t width) {
  const int64_t groups = 32 / c->lanes, slices = cost_rounds(width, c->lanes * c->elements);
  int64_t blocks = APL_SPARSE_PROCESSORS / slices > 0 ? APL_SPARSE_PROCESSORS / slices : 1;
  if (blocks > f->records) blocks = f->records;
  const int64_t longest = f->longest[0] > f->longest[1] ? f->longest[0] : f->longest[1];
  const int64_t mean = f->records > 0 ? cost_rounds(f->row_elements, f->records) : 0;
  int64_t rounds = cost_rounds(f->records, blocks * c->warps) * cost_rounds(mean, 4 * groups);
  if (rounds < cost_rounds(longest, 4 * groups)) rounds = cost_rounds(longest, 4 * groups);
  const double slice_bytes = 16.0 * c->lanes;
  return (double)cost_rounds(blocks * slices, APL_SPARSE_PROCESSORS) *
         (0.356 * (double)rounds + 35.3e-6 * (double)f->columns * slice_bytes +
          6.73e-6 * (double)f->row_elements / (double)blocks * slice_bytes);
}

double apl_sparse_microseconds(const struct apl_sparse_form* form, int64_t width) {
  const int64_t elements = width % 8 == 0 ? 8 : width % 4 == 0 ? 4 : width % 2 == 0 ? 2 : 1;
  const struct apl_sparse_spmm_choice c = apl_sparse_choose_spmm(form, APL_F16, (int32_t)elements, width, NULL);
  const double row_bytes = 2.0 * (double)width;
  const int is_large = (double)(form->rows + form->columns) * row_bytes > kCacheBytes;
  if (c.staged) return 1.03 + cost_of_staged(form, &c, width);
  const double rows = form->records > 0 ? cost_of_rows(form, &c, width, is_large) : 0;
  if (form->parts == 0) return 1.68 + rows;
  const double gathered = (double)form->steps * APL_SPARSE_STEP * row_bytes;
  return 3.39 + rows + 0.227 * (double)form->longest_window / c.split + gathered * (is_large ? 0.236e-6 : 0.113e-6);
}

double apl_sparse_samples_microseconds(const struct apl_sparse_samples* samples, int64_t depth) {
  const double row_bytes = 2.0 * (double)depth;
  const int is_large = (double)(samples->rows + samples->columns) * row_bytes > kCacheBytes;
  if (samples->windows > 0) {
    const double rounds = (double)samples->task_steps * (double)cost_rounds(depth, 128);
    const double gathered = (double)samples->steps * APL_SPARSE_STEP * row_bytes;
    return 2.07 + 0.487 * rounds + gathered * (is_large ? 0.189e-6 : 0.103e-6) + 58.7e-6 * (double)samples->steps;
  }
  const int32_t lanes = apl_sparse_power_from(cost_rounds(depth, 8), 16);
  const double gathered = 2 * row_bytes * (double)samples->nonzeros;
  return 1.61 + 0.333 * (double)cost_rounds(depth, 8 * lanes) + gathered * (is_large ? 0.111e-6 : 0.0688e-6) +
         2.48e-6 * (double)samples->nonzeros;
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
