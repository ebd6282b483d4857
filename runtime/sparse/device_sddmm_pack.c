// SDDMM's arrays: a list of coordinates, or windows of 8 rows with masks.
#include <string.h>

#include "runtime/sparse/device_kernel.h"
#include "runtime/sparse/operand_arrays.h"

enum { kSampleHeight = 8 };

struct sddmm_maker {
  const struct apl_sparse_csr* matrix;
  const int32_t* row_order;
  struct apl_sparse_sddmm_packed* packed;
  int32_t task_steps;
  int64_t column_capacity, mask_capacity, task_capacity, start_capacity;
};

static int make_sample_list(struct sddmm_maker* s) {
  struct apl_sparse_sddmm_packed* f = s->packed;
  f->row = apl_sparse_array(f->nonzeros + 4, sizeof *f->row);
  f->column = apl_sparse_array(f->nonzeros + 4, sizeof *f->column);
  if (!f->row || !f->column) return APL_SPARSE_OUT_OF_MEMORY;
  for (int64_t row = 0; row < f->rows; ++row)
    for (int64_t k = s->matrix->row_start[row]; k < s->matrix->row_start[row + 1]; ++k) {
      f->row[k] = (int32_t)row;
      f->column[k] = s->matrix->column[k];
    }
  return APL_SPARSE_FINE;
}

static int add_sample_task(struct sddmm_maker* s, int32_t window, int64_t first, int64_t steps, const int32_t* start) {
  struct apl_sparse_sddmm_packed* f = s->packed;
  if (!apl_sparse_grow((void**)&f->task, 4 * (int64_t)f->tasks, 4, &s->task_capacity, sizeof *f->task) ||
      !apl_sparse_grow((void**)&f->start, kSampleHeight * (int64_t)f->tasks, kSampleHeight, &s->start_capacity,
                       sizeof *f->start))
    return APL_SPARSE_OUT_OF_MEMORY;
  const int32_t task[4] = {window, (int32_t)first, (int32_t)steps, 0};
  if (f->task_steps < steps) f->task_steps = (int32_t)steps;
  memcpy(f->task + 4 * (int64_t)f->tasks, task, sizeof task);
  memcpy(f->start + kSampleHeight * (int64_t)f->tasks, start, kSampleHeight * sizeof *start);
  ++f->tasks;
  return APL_SPARSE_FINE;
}

static int make_sample_step(struct sddmm_maker* s, int32_t column) {
  struct apl_sparse_sddmm_packed* f = s->packed;
  if (!apl_sparse_grow((void**)&f->step_column, f->steps * APL_SPARSE_STEP, APL_SPARSE_STEP, &s->column_capacity,
                       sizeof *f->step_column) ||
      !apl_sparse_grow((void**)&f->mask, f->steps * kSampleHeight, kSampleHeight, &s->mask_capacity, sizeof *f->mask))
    return APL_SPARSE_OUT_OF_MEMORY;
  for (int k = 0; k < APL_SPARSE_STEP; ++k) f->step_column[f->steps * APL_SPARSE_STEP + k] = column;
  memset(f->mask + f->steps * kSampleHeight, 0, kSampleHeight * sizeof *f->mask);
  ++f->steps;
  return APL_SPARSE_FINE;
}

static int make_sample_window(struct sddmm_maker* s, const struct apl_sparse_group* group, int64_t position,
                              int begin) {
  struct apl_sparse_sddmm_packed* f = s->packed;
  int32_t start[kSampleHeight];
  for (int r = 0; r < kSampleHeight; ++r) {
    const int64_t at = position + begin + r;
    const int32_t row = at >= f->rows ? -1 : s->row_order ? s->row_order[at] : (int32_t)at;
    f->window_row[kSampleHeight * (int64_t)f->windows + r] = row;
    start[r] = row < 0 ? 0 : (int32_t)s->matrix->row_start[row];
  }
  int64_t first = f->steps, columns = 0;
  for (int64_t k = 0; k < group->columns; ++k) {
    const uint32_t rows = (uint32_t)(group->rows[k] >> begin) & 0xff;
    if (rows == 0) continue;
    if (columns % APL_SPARSE_STEP == 0 && make_sample_step(s, group->column[k])) return APL_SPARSE_OUT_OF_MEMORY;
    const int64_t slot = columns++ % APL_SPARSE_STEP;
    f->step_column[(f->steps - 1) * APL_SPARSE_STEP + slot] = group->column[k];
    for (int r = 0; r < kSampleHeight; ++r)
      if (rows >> r & 1) f->mask[(f->steps - 1) * kSampleHeight + r] |= (uint16_t)(1u << slot);
  }
  for (; first < f->steps; first += s->task_steps) {
    const int64_t steps = f->steps - first < s->task_steps ? f->steps - first : s->task_steps;
    if (add_sample_task(s, f->windows, first, steps, start)) return APL_SPARSE_OUT_OF_MEMORY;
    for (int64_t step = first; step < first + steps; ++step)
      for (int r = 0; r < kSampleHeight; ++r) start[r] += __builtin_popcount(f->mask[step * kSampleHeight + r]);
  }
  ++f->windows;
  return APL_SPARSE_FINE;
}

static int make_sample_windows(struct sddmm_maker* s) {
  struct apl_sparse_sddmm_packed* f = s->packed;
  f->window_row = apl_sparse_array((f->rows / kSampleHeight + 1) * kSampleHeight, sizeof *f->window_row);
  if (!f->window_row) return APL_SPARSE_OUT_OF_MEMORY;
  struct apl_sparse_group group = {0};
  int status = APL_SPARSE_FINE;
  for (int64_t g = 0; g * APL_SPARSE_GROUP < f->rows && !status; ++g) {
    status = apl_sparse_group_read(&group, s->matrix, s->row_order, g);
    for (int begin = 0; begin < APL_SPARSE_GROUP && !status; begin += kSampleHeight)
      if (g * APL_SPARSE_GROUP + begin < f->rows) status = make_sample_window(s, &group, g * APL_SPARSE_GROUP, begin);
    if (f->steps > INT32_MAX / 2) status = APL_SPARSE_TOO_LARGE;
  }
  apl_sparse_group_free(&group);
  return status;
}

// Whether half of a plan's groups, or more, have selections: then all rows are in windows. 0 without a plan's word.
static int32_t sample_wish(const struct apl_sparse_plan* plan) {
  if (!plan || plan->stretches == 0) return 0;
  int64_t groups = 0, selected = 0;
  for (int64_t k = 0; k < plan->stretches; ++k) {
    groups += plan->stretch[k].groups;
    if (plan->stretch[k].selections > 0) selected += plan->stretch[k].groups;
  }
  return selected > 0 && 2 * selected >= groups ? kSampleHeight : -1;
}

int apl_sparse_sddmm_packed_make(const struct apl_sparse_csr* matrix, const struct apl_sparse_plan* plan,
                                 const struct apl_device* device, int32_t type, int64_t depth,
                                 const struct apl_sparse_options* options, struct apl_sparse_sddmm_packed** packed) {
  *packed = NULL;
  if (plan && (plan->rows != matrix->rows || plan->columns != matrix->columns || plan->nonzeros != matrix->nonzeros))
    return APL_SPARSE_MALFORMED;
  if (matrix->rows > INT32_MAX || matrix->nonzeros > INT32_MAX - 4) return APL_SPARSE_TOO_LARGE;
  struct sddmm_maker s = {.matrix = matrix, .row_order = plan ? plan->row_order : NULL};
  s.packed = calloc(1, sizeof *s.packed);
  if (!s.packed) return APL_SPARSE_OUT_OF_MEMORY;
  struct apl_sparse_sddmm_packed* f = s.packed;
  f->device = device;
  f->rows = matrix->rows;
  f->columns = matrix->columns;
  f->nonzeros = matrix->nonzeros;
  int status = apl_sparse_measure(matrix, s.row_order, &f->statistics);
  // The product of a window's rows and a step's columns is made whole: with few terms that pays where they share
  // columns, else where there are enough of them (bench/results/sparse-sampled-h100-2026-11-26.json).
  const int32_t wish = options && options->window != 0 ? options->window : sample_wish(plan);
  const int can = apl_sparse_is_half(type) && device->matrix_units;
  const double shared = f->statistics.shared;
  const int64_t least = depth <= 32 ? (shared >= 1.7 ? 100000 : INT64_MAX) : shared >= 1.3 ? 40000 : 90000;
  const int is_worth_it = matrix->nonzeros >= least;
  // Few steps or terms: short tasks, so that there are enough of them.
  const double steps = shared > 0 ? (double)matrix->nonzeros / (shared * APL_SPARSE_STEP) : 0;
  s.task_steps = options && options->task > 0                              ? options->task
                 : depth <= 32 || f->statistics.mean < 24 || steps < 15000 ? 2
                                                                           : 8;
  if (!status)
    status = can && (wish > 0 || (wish == 0 && is_worth_it)) ? make_sample_windows(&s) : make_sample_list(&s);
  if (status) {
    apl_sparse_sddmm_packed_free(f);
    return status;
  }
  *packed = f;
  return APL_SPARSE_FINE;
}

void apl_sparse_sddmm_packed_free(struct apl_sparse_sddmm_packed* packed) {
  if (!packed) return;
  void* const arrays[] = {packed->row,        packed->column,      packed->task, packed->start,
                          packed->window_row, packed->step_column, packed->mask};
  for (size_t k = 0; k < sizeof arrays / sizeof arrays[0]; ++k) free(arrays[k]);
  free(packed);
}
