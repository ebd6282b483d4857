// SDDMM: its launch.
#include <stdio.h>

#include "runtime/sparse/device_kernel.h"

// Terms of a piece are 32 times so many: more would take the registers that keep gathers in flight.
enum { kSampleQuads = 4, kSampleWarps = 4, kCoordinateWarps = 8 };

int apl_sparse_sddmm(struct apl_context* ctx, const struct apl_sparse_sddmm_operand* a, const void* values,
                     struct apl_sparse_dense x, struct apl_sparse_dense y, int64_t depth, void* result,
                     const struct apl_sparse_epilogue* epilogue) {
  static const enum apl_sparse_text kParts[] = {APL_SPARSE_TEXT_WARP, APL_SPARSE_TEXT_NUMBERS, APL_SPARSE_TEXT_SDDMM};
  const struct apl_sparse_sddmm_packed* f = &a->packed;
  const char *written = NULL, *type = apl_sparse_type_name(a->type, &written), *suffix;
  const char* result_type = apl_sparse_result_type(a->type, a->is_wide, &suffix);
  if (!type) return apl_sparse_fail(ctx, APL_ERROR, "sparse products have no kernels for this type");
  if (f->nonzeros == 0) return APL_SUCCESS;
  const char* wrong = apl_sparse_misfit(depth, &x, &y);
  if (wrong) return apl_sparse_fail(ctx, APL_ERROR, wrong);
  const int is_windows = f->windows > 0;
  const int64_t size = apl_sparse_type_size(a->type);
  const int32_t wide = apl_sparse_widest(size, &x, &y, depth);
  const int64_t all_quads = depth > 32 ? (depth + 31) / 32 : 1;
  const int is_one_piece = all_quads <= kSampleQuads;
  const int32_t quads = !is_windows ? 0 : is_one_piece ? (int32_t)all_quads : kSampleQuads;
  const int is_whole = depth % (is_windows ? 32 * quads : 32) == 0;
  const int32_t lanes = apl_sparse_power_from((depth + wide - 1) / wide, 16),
                warps = is_windows ? kSampleWarps : kCoordinateWarps;
  struct apl_sparse_kernel kernel = {.warp = f->device->warp};
  snprintf(kernel.name, sizeof kernel.name, "apl_sddmm_%s%s_%d_%d%s%s_%dx%d%s%s%s", type, suffix, warps, quads,
           is_one_piece ? "" : "_pieces", is_whole ? "" : "_rest", is_windows ? 0 : lanes, wide,
           values ? "_scaled" : "", epilogue ? "_" : "", epilogue ? epilogue->type : "");
  apl_sparse_define(&kernel, "NAME", "%s", kernel.name);
  apl_sparse_define(&kernel, "TYPE", "%s", written);
  apl_sparse_define(&kernel, "RESULT", "%s", result_type);
  apl_sparse_define(&kernel, "EPILOGUE", "%s", epilogue ? epilogue->type : "apl_sparse_same");
  apl_sparse_define(&kernel, "QUADS", "%d", quads);
  apl_sparse_define(&kernel, "ONE_PIECE", "%d", is_one_piece);
  apl_sparse_define(&kernel, "WHOLE", "%d", is_whole);
  apl_sparse_define(&kernel, "LANES", "%d", lanes);
  apl_sparse_define(&kernel, "ELEMENTS", "%d", wide);
  apl_sparse_define(&kernel, "WARPS", "%d", warps);
  apl_sparse_define(&kernel, "SCALED", "%d", values != NULL);
  const int status = apl_sparse_load_kernel(ctx, &kernel, epilogue, kParts, 3);
  if (status) return status;
  int32_t x_row = (int32_t)x.row, y_row = (int32_t)y.row, short_depth = (int32_t)depth, nothing = 0;
  int32_t tasks = f->tasks, nonzeros = (int32_t)f->nonzeros;
  void *x_data = x.data, *y_data = y.data, *with = epilogue && epilogue->value ? (void*)epilogue->value : &nothing;
  void *task = a->task, *first = a->start, *row = a->row, *column = a->column, *mask = a->mask;
  void *window_row = a->window_row, *step_column = a->step_column;
  if (is_windows) {
    void* args[] = {&task,   &first, &window_row, &step_column, &mask,        &tasks,  &values,
                    &x_data, &x_row, &y_data,     &y_row,       &short_depth, &result, with};
    return apl_sparse_start(ctx, &kernel, (tasks + warps - 1) / warps, warps * f->device->warp, 0, args, 14);
  }
  const int64_t each = 4 * (warps * f->device->warp / lanes);
  // Results of a batch begin anywhere.
  const int wide_results = a->is_wide && apl_sparse_is_half(a->type);
  const uintptr_t written_at_once = !wide_results && size < 4 ? 4 * (uintptr_t)size : 16;
  int32_t are_aligned = (uintptr_t)result % written_at_once == 0;
  void* args[] = {&row,    &column, &values,      &nonzeros, &x_data,      &x_row,
                  &y_data, &y_row,  &short_depth, &result,   &are_aligned, with};
  return apl_sparse_start(ctx, &kernel, (nonzeros + each - 1) / each, warps * f->device->warp, 0, args, 12);
}
