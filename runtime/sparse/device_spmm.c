// SpMM: the kernel that takes least by the model, and its launch.
#include <stdio.h>

#include "runtime/sparse/device_kernel.h"

enum { kWideColumns = 64, kSmallRows = 5000, kUsualWarps = 8, kShortRow = 16 };

struct spmm_case {
  const struct apl_sparse_packed* packed;
  const struct apl_sparse_options* options;  // none of them null
  int32_t type;
  int64_t size, width;  // bytes of an element, columns of C
  double row_bytes;
};

static int64_t rounded_up(int64_t number, int64_t by) { return (number + by - 1) / by; }

// How many lanes have a row, and whether they load its columns ahead.
static double choose_rows(const struct spmm_case* a, struct apl_sparse_spmm_choice* c) {
  const struct apl_sparse_packed* f = a->packed;
  if (f->records == 0) return 0;
  const int64_t columns = rounded_up(a->width, c->elements);
  int32_t most = apl_sparse_power_from(columns, 16);
  // Slices of B that stay in the second cache, where rows of B are gathered often; no narrower than the lines of memory
  // like.
  while (most > 8 && f->statistics.mean >= 50 && most * c->elements > kWideColumns &&
         (double)(f->columns * most * c->elements * a->size) > f->device->sparse_slice_cache_bytes)
    most /= 2;
  // Of wide elements, where rows are of a few rounds and come from memory, half of the columns are a slice that stays
  // in the second cache sooner, and a kernel with fewer registers.
  const int is_far = (double)(f->rows + f->columns) * a->row_bytes > f->device->sparse_cache_bytes;
  if (most == 16 && a->size >= 4 && is_far && f->row_elements < kShortRow * (int64_t)f->records) most = 8;
  // Groups of few lanes are many: that is for small matrices.
  int32_t fewest = f->rows < kSmallRows ? 4 : most == 16 ? 8 : most;
  if (fewest > most) fewest = most;
  if (a->options->lanes > 0) most = fewest = a->options->lanes;
  double least = 0;
  for (int32_t lanes = most; lanes >= fewest; lanes /= 2)
    for (int ahead = 0; ahead <= (lanes == 16); ++ahead) {
      if (a->options->ahead != 0 && ahead != (a->options->ahead > 0)) continue;
      const double time = apl_sparse_rows_cost(f, a->type, a->row_bytes, rounded_up(columns, lanes), lanes, ahead);
      if (least > 0 && time >= least) continue;
      least = time;
      c->lanes = lanes;
      c->ahead = ahead;
    }
  return least;
}

// How many warps share a window.
static double choose_windows(const struct spmm_case* a, struct apl_sparse_spmm_choice* c) {
  const struct apl_sparse_packed* f = a->packed;
  if (f->parts == 0) return 0;
  const int has_units = apl_sparse_has_matrix_units(f->device, a->type);
  // A warp has 8 times so many columns of C; without matrix units a lane has them.
  c->window_elements = c->elements > 4 && (a->width <= 32 || !has_units) ? 4 : c->elements;
  while (!has_units && c->window_elements > 1 && a->width <= f->device->warp * c->window_elements / 2)
    c->window_elements /= 2;
  const int64_t slices = rounded_up(a->width, (has_units ? 8 : f->device->warp) * c->window_elements);
  c->flight = f->parts == 1 && has_units ? 2 : 1;
  if (a->options->slices > 0) c->slices = a->options->slices;
  double least = 0;
  struct apl_sparse_spmm_choice best = *c;
  for (c->split = 1; c->split <= 8; c->split *= 2) {
    if (a->options->split > 0 && c->split != a->options->split) continue;
    // Four blocks a multiprocessor are fewer registers than high windows would take: for the many that hide each other.
    if (!has_units) {
      const double time = apl_sparse_plain_windows_cost(f, a->type, a->row_bytes, slices, c);
      if (least > 0 && time >= least) continue;
      least = time;
      best = *c;
      continue;
    }
    for (c->resident = 0; c->resident <= (f->parts == 4 && f->records == 0 && c->split <= 2 ? 4 : 0);
         c->resident += 4) {
      const double time = apl_sparse_windows_cost(f, a->row_bytes, slices, c);
      if (least > 0 && time >= least) continue;
      least = time;
      best = *c;
    }
  }
  *c = best;
  if (f->records == 0) c->warps = c->split * c->slices > 4 ? c->split * c->slices : 4;
  if (c->split * c->slices > c->warps) c->slices = c->warps / c->split;
  return least;
}

// B through shared memory, in slices of so many lanes. Negative: it does not fit.
static double choose_staged(const struct spmm_case* a, const struct apl_sparse_spmm_choice* c, int32_t* lanes) {
  const struct apl_sparse_packed* f = a->packed;
  *lanes = a->options->lanes > 0 ? a->options->lanes : 4;
  while (*lanes > 2 && f->columns * *lanes * 16 > f->device->sparse_staged_bytes) *lanes /= 2;
  const int fits = f->parts == 0 && f->cuts == 0 && c->elements * a->size == 16 &&
                   f->columns * *lanes * 16 <= f->device->sparse_staged_bytes && f->records > 0;
  if (a->options->staged < 0 || !fits) return -1;
  return f->device->sparse_staged_launch +
         apl_sparse_staged_cost(f, rounded_up(rounded_up(a->width, c->elements), *lanes), *lanes);
}

struct apl_sparse_spmm_choice apl_sparse_choose_spmm(const struct apl_sparse_packed* f, int32_t type, int32_t elements,
                                                     int64_t width, const struct apl_sparse_options* options) {
  static const struct apl_sparse_options kOpen = {0};
  const int64_t size = apl_sparse_type_size(type);
  const struct spmm_case a = {f, options ? options : &kOpen, type, size, width, (double)(width * size)};
  struct apl_sparse_spmm_choice c = {
      .elements = elements, .lanes = 1, .warps = kUsualWarps, .flight = 1, .split = 1, .slices = 1};
  const double rows = choose_rows(&a, &c), windows = choose_windows(&a, &c);
  // In one kernel with high windows, rows have the fewer warps for the registers that those take.
  const struct apl_device* d = f->device;
  const double fused = f->parts == 4 ? d->sparse_fused_32 : f->parts == 2 ? d->sparse_fused_16 : 1;
  c.microseconds = d->sparse_launch + fused * rows + windows;
  // Without matrix units windows have fewer warps then, too.
  if (rows > 0 && windows > 0 && !apl_sparse_has_matrix_units(d, type))
    c.microseconds =
        d->sparse_launch + (rows + windows) * (f->parts > 1 ? d->sparse_plain_fused_16 : d->sparse_plain_fused_8);
  int32_t lanes = 0;
  const double staged = choose_staged(&a, &c, &lanes);
  if (staged >= 0 && (staged < c.microseconds || a.options->staged > 0)) {
    c.microseconds = staged;
    c.staged = 1;
    c.lanes = lanes;
    c.warps = f->device->block_threads / f->device->warp;
    c.ahead = 0;
  }
  if (a.options->resident > 0) c.resident = a.options->resident;
  return c;
}

static int name_spmm(struct apl_sparse_kernel* kernel, const struct apl_sparse_operand* a,
                     const struct apl_sparse_spmm_choice* c, const struct apl_sparse_epilogue* epilogue) {
  const char *written = NULL, *type = apl_sparse_type_name(a->type, &written), *suffix;
  const char* result = apl_sparse_result_type(a->type, a->is_wide, &suffix);
  if (!type) return 0;
  const int32_t parts = a->packed.parts, lanes = a->packed.records > 0 ? c->lanes : 0;
  const int units = apl_sparse_has_matrix_units(a->packed.device, a->type);
  kernel->length = 0;
  kernel->warp = a->packed.device->warp;
  snprintf(kernel->name, sizeof kernel->name, "apl_spmm_%s%s_%dx%d_%d_%s%dx%d_%d_%d_%d_%d%s%s%s%s%s", type, suffix,
           lanes, c->elements, c->warps, units || parts == 0 ? "" : "p", parts, c->window_elements, c->flight, c->split,
           c->slices, c->resident, c->ahead ? "_ahead" : "", a->packed.cuts > 0 ? "_cut" : "",
           c->staged ? "_staged" : "", epilogue ? "_" : "", epilogue ? epilogue->type : "");
  apl_sparse_define(kernel, "NAME", "%s", kernel->name);
  apl_sparse_define(kernel, "TYPE", "%s", written);
  apl_sparse_define(kernel, "RESULT", "%s", result);
  apl_sparse_define(kernel, "EPILOGUE", "%s", epilogue ? epilogue->type : "apl_sparse_same");
  apl_sparse_define(kernel, "STAGED", "%d", c->staged);
  if (c->resident > 0)
    apl_sparse_define(kernel, "BOUNDS", "%d, %d", kernel->warp * c->warps, c->resident);
  else
    apl_sparse_define(kernel, "BOUNDS", "%d", kernel->warp * c->warps);
  apl_sparse_define(kernel, "AHEAD", "%d", c->ahead);
  apl_sparse_define(kernel, "CUT", "%d", a->packed.cuts > 0);
  apl_sparse_define(kernel, "LANES", "%d", lanes);
  apl_sparse_define(kernel, "ELEMENTS", "%d", c->elements);
  apl_sparse_define(kernel, "WARPS", "%d", c->warps);
  apl_sparse_define(kernel, "PARTS", "%d", parts);
  apl_sparse_define(kernel, "MATRIX_UNITS", "%d", units);
  apl_sparse_define(kernel, "WINDOW_ELEMENTS", "%d", c->window_elements);
  apl_sparse_define(kernel, "FLIGHT", "%d", c->flight);
  apl_sparse_define(kernel, "SPLIT", "%d", c->split);
  apl_sparse_define(kernel, "SLICES", "%d", c->slices);
  return 1;
}

// Wide results are written by up to 16 bytes, too: more elements than that are several accesses.
static int32_t widest_of_spmm(const struct apl_sparse_operand* a, const struct apl_sparse_dense* b,
                              const struct apl_sparse_dense* c, int64_t width) {
  const int64_t size = apl_sparse_type_size(a->type);
  if (!a->is_wide || !apl_sparse_is_half(a->type)) return apl_sparse_widest(size, b, c, width);
  const int32_t of_b = apl_sparse_widest(size, b, b, width), of_c = apl_sparse_widest(sizeof(float), c, c, width);
  return of_c == 16 / sizeof(float) || of_b < of_c ? of_b : of_c;
}

int apl_sparse_join(struct apl_context* ctx, const struct apl_sparse_operand* a, void* pieces,
                    struct apl_sparse_dense c, int64_t width, const struct apl_sparse_epilogue* epilogue) {
  static const enum apl_sparse_text kParts[] = {APL_SPARSE_TEXT_WARP, APL_SPARSE_TEXT_NUMBERS, APL_SPARSE_TEXT_JOIN};
  const char *written = NULL, *type = apl_sparse_type_name(a->type, &written), *suffix;
  const char* result = apl_sparse_result_type(a->type, a->is_wide, &suffix);
  struct apl_sparse_kernel kernel = {.warp = a->packed.device->warp};
  snprintf(kernel.name, sizeof kernel.name, "apl_spmm_join_%s%s%s%s", type, suffix, epilogue ? "_" : "",
           epilogue ? epilogue->type : "");
  apl_sparse_define(&kernel, "JOIN", "%s", kernel.name);
  apl_sparse_define(&kernel, "TYPE", "%s", written);
  apl_sparse_define(&kernel, "RESULT", "%s", result);
  apl_sparse_define(&kernel, "EPILOGUE", "%s", epilogue ? epilogue->type : "apl_sparse_same");
  const int status = apl_sparse_load_kernel(ctx, &kernel, epilogue, kParts, 3);
  if (status) return status;
  enum { kJoinThreads = 128 };
  int32_t column_blocks = (int32_t)((width + kJoinThreads - 1) / kJoinThreads), nothing = 0;
  int32_t c_row = (int32_t)c.row, short_width = (int32_t)width;
  void *cut = a->cut, *with = epilogue && epilogue->value ? (void*)epilogue->value : &nothing;
  void* args[] = {&cut, &pieces, &column_blocks, &c.data, &c_row, &short_width, with};
  return apl_sparse_start(ctx, &kernel, (int64_t)a->packed.cuts * column_blocks, kJoinThreads, 0, args,
                          sizeof args / sizeof args[0]);
}

int apl_sparse_spmm(struct apl_context* ctx, const struct apl_sparse_operand* a, struct apl_sparse_dense b,
                    struct apl_sparse_dense c, int64_t width, const struct apl_sparse_options* options,
                    const struct apl_sparse_epilogue* epilogue) {
  static const enum apl_sparse_text kRows[] = {APL_SPARSE_TEXT_WARP, APL_SPARSE_TEXT_NUMBERS, APL_SPARSE_TEXT_ROWS,
                                               APL_SPARSE_TEXT_SPMM};
  static const enum apl_sparse_text kStaged[] = {APL_SPARSE_TEXT_WARP, APL_SPARSE_TEXT_NUMBERS, APL_SPARSE_TEXT_ROWS,
                                                 APL_SPARSE_TEXT_STAGED, APL_SPARSE_TEXT_SPMM};
  static const enum apl_sparse_text kPlain[] = {APL_SPARSE_TEXT_WARP,          APL_SPARSE_TEXT_NUMBERS,
                                                APL_SPARSE_TEXT_ROWS,          APL_SPARSE_TEXT_WINDOWS,
                                                APL_SPARSE_TEXT_PLAIN_WINDOWS, APL_SPARSE_TEXT_SPMM};
  static const enum apl_sparse_text kAll[] = {APL_SPARSE_TEXT_WARP, APL_SPARSE_TEXT_NUMBERS, APL_SPARSE_TEXT_ROWS,
                                              APL_SPARSE_TEXT_WINDOWS, APL_SPARSE_TEXT_SPMM};
  const struct apl_sparse_packed* f = &a->packed;
  const int32_t warp = f->device->warp;
  if (f->rows == 0 || width == 0) return APL_SUCCESS;
  const char* wrong = apl_sparse_misfit(width, &b, &c);
  if (wrong) return apl_sparse_fail(ctx, APL_ERROR, wrong);
  const int64_t size = apl_sparse_type_size(a->type);
  const struct apl_sparse_spmm_choice choice =
      apl_sparse_choose_spmm(f, a->type, widest_of_spmm(a, &b, &c, width), width, options);
  struct apl_sparse_kernel kernel;
  if (!name_spmm(&kernel, a, &choice, epilogue))
    return apl_sparse_fail(ctx, APL_ERROR, "sparse products have no kernels for this type");
  const int has_units = apl_sparse_has_matrix_units(f->device, a->type);
  int status = choice.staged   ? apl_sparse_load_kernel(ctx, &kernel, epilogue, kStaged, 5)
               : f->parts == 0 ? apl_sparse_load_kernel(ctx, &kernel, epilogue, kRows, 4)
               : !has_units    ? apl_sparse_load_kernel(ctx, &kernel, epilogue, kPlain, 6)
                               : apl_sparse_load_kernel(ctx, &kernel, epilogue, kAll, 5);
  if (status) return status;

  int32_t b_row = (int32_t)b.row, c_row = (int32_t)c.row, short_width = (int32_t)width, nothing = 0;
  int32_t records = f->records, longs = f->longs, mediums = f->mediums, windows = f->windows;
  void *b_data = b.data, *c_data = c.data, *with = epilogue && epilogue->value ? (void*)epilogue->value : &nothing;
  void *record = a->record, *column = a->row_column, *value = a->value;
  const int64_t row_slices = (width + choice.lanes * choice.elements - 1) / (choice.lanes * choice.elements);
  const int64_t sum_size = apl_sparse_is_half(a->type) ? 4 : size;
  if (choice.staged) {
    const int64_t multiprocessors = f->device->multiprocessors;
    int64_t each = multiprocessors / row_slices > 0 ? multiprocessors / row_slices : 1;
    if (each > records) each = records;
    int32_t blocks = (int32_t)each, b_rows = (int32_t)f->columns;
    void* args[] = {&record, &column, &value,  &records, &blocks,      &b_data,
                    &b_row,  &b_rows, &c_data, &c_row,   &short_width, with};
    return apl_sparse_start(ctx, &kernel, each * row_slices, choice.warps * warp,
                            f->columns * choice.lanes * choice.elements * size, args, 12);
  }
  const int64_t groups = warp / choice.lanes, shorts = records - longs - mediums;
  int32_t row_blocks = (int32_t)(longs + (mediums + choice.warps - 1) / choice.warps +
                                 (shorts + choice.warps * groups - 1) / (choice.warps * groups));
  int32_t window_blocks = 0, slice_groups = 0;
  int64_t shared_bytes = longs > 0 ? choice.warps * choice.lanes * choice.elements * sum_size : 0;
  if (f->parts > 0) {
    const int64_t columns = (has_units ? 8 : warp) * choice.window_elements * choice.slices,
                  each = choice.warps / choice.split / choice.slices;
    slice_groups = (int32_t)((width + columns - 1) / columns);
    window_blocks = (int32_t)((windows + each - 1) / each);
    // Sums that a lane has of a part of 8 rows.
    const int64_t sums = has_units ? (choice.window_elements + 1) / 2 * 4 : 8 * choice.window_elements;
    const int64_t exchange = choice.split > 1 ? choice.warps * warp * f->parts * sums * sum_size : 0;
    if (exchange > shared_bytes) shared_bytes = exchange;
  }
  void *window = a->window, *part = a->part, *window_row = a->window_row, *step_column = a->step_column;
  void* pieces = NULL;
  void* step_value = value ? (char*)value + f->row_elements * size : NULL;
  void* args[] = {&record,     &column,        &value,        &longs,      &mediums,     &records,
                  &row_blocks, &window,        &part,         &window_row, &step_column, &step_value,
                  &windows,    &window_blocks, &slice_groups, &b_data,     &b_row,       &c_data,
                  &c_row,      &short_width,   &pieces,       with};
  if (f->cuts > 0)
    status = ctx->backend->allocate(ctx, f->pieces * width * sum_size, "the sums of pieces of rows", &pieces);
  if (status) return status;
  status = apl_sparse_start(ctx, &kernel, (int64_t)window_blocks * slice_groups + row_blocks * row_slices,
                            choice.warps * warp, shared_bytes, args, sizeof args / sizeof args[0]);
  if (f->cuts == 0) return status;
  if (!status) status = apl_sparse_join(ctx, a, pieces, c, width, epilogue);
  const int released = ctx->backend->release(ctx, pieces);
  return status ? status : released;
}
