// SpMM: the rules that choose a kernel, and its launch.
#include <stdio.h>

#include "codegen/runtime/sparse/device_kernel.h"

enum { kWideColumns = 64, kFewTasks = 1500, kFewNonzeros = 20000, kUsualWarps = 8, kStagedWarps = 32 };
enum { kStagedBytes = 100 * 1024, kManyStagedRows = 2000, kCacheBytes = 36 << 20 };

// B through shared memory, in slices of so many lanes: where its copies are few beside what is gathered, and there are
// too few rows to keep the processors busy with rounds of gathers.
static int stage_spmm(const struct apl_sparse_form* f, int32_t type, struct apl_sparse_spmm_choice* c, int64_t columns,
                      const struct apl_sparse_options* options) {
  const int32_t asked = options ? options->staged : 0;
  int32_t lanes = options && options->lanes > 0 ? options->lanes : 4;
  while (lanes > 2 && f->columns * lanes * 16 > kStagedBytes) lanes /= 2;
  const int fits = f->parts == 0 && c->elements * apl_sparse_type_size(type) == 16 &&
                   f->columns * lanes * 16 <= kStagedBytes && f->records > 0;
  if (asked < 0 || !fits) return 0;
  const int64_t slices = (columns + lanes - 1) / lanes;
  const int64_t copies = APL_SPARSE_PROCESSORS / slices > 0 ? APL_SPARSE_PROCESSORS / slices : 1;
  const int is_worth_it =
      f->records >= APL_SPARSE_PROCESSORS && f->records < kManyStagedRows && f->nonzeros > 2 * copies * f->columns;
  if (asked == 0 && !is_worth_it) return 0;
  c->lanes = lanes;
  c->warps = kStagedWarps;
  return 1;
}

struct apl_sparse_spmm_choice apl_sparse_choose_spmm(const struct apl_sparse_form* f, int32_t type, int32_t elements,
                                                     int64_t width, const struct apl_sparse_options* options) {
  const int64_t size = apl_sparse_type_size(type), columns = (width + elements - 1) / elements;
  struct apl_sparse_spmm_choice c = {.elements = elements, .warps = kUsualWarps, .flight = 1, .split = 1, .slices = 1};
  c.lanes = apl_sparse_power_from(columns, 16);
  // Slices of B that stay in the second cache, where rows of B are gathered often; no narrower than the lines of memory
  // like. Small matrices have too few groups for wide ones.
  if (f->nonzeros < kFewNonzeros && c.lanes > 8) c.lanes = 8;
  while (c.lanes > 8 && f->statistics.mean >= 50 && c.lanes * elements > kWideColumns &&
         f->columns * c.lanes * elements * size > kCacheBytes)
    c.lanes /= 2;
  if (options && options->lanes > 0) c.lanes = options->lanes;
  if (f->parts > 0) {
    // A warp has 8 times so many columns of C.
    c.window_elements = elements > 4 && width <= 32 ? 4 : elements;
    const int64_t slices = (width + 8 * c.window_elements - 1) / (8 * c.window_elements);
    c.flight = f->parts == 1 ? 2 : 1;
    const int64_t steps = f->steps / (f->windows > 0 ? f->windows : 1);
    while (c.split < 8 && f->windows * slices * c.split < kFewTasks && steps >= 2 * c.split * c.flight) c.split *= 2;
    if (f->parts == 4 && c.split == 1) c.split = 2;
    if (options && options->split > 0) c.split = options->split;
    if (options && options->slices > 0) c.slices = options->slices;
    if (f->records == 0) c.warps = c.split * c.slices > 4 ? c.split * c.slices : 4;
  }
  if (f->parts > 0 && c.split * c.slices > c.warps) c.slices = c.warps / c.split;
  c.staged = stage_spmm(f, type, &c, columns, options);
  if (options && options->resident > 0) c.resident = options->resident;
  c.ahead = options && options->ahead > 0;
  return c;
}

static int name_spmm(struct apl_sparse_kernel* kernel, const struct apl_sparse_operand* a,
                     const struct apl_sparse_spmm_choice* c, const struct apl_sparse_after* after) {
  const char *written = NULL, *type = apl_sparse_type_name(a->type, &written);
  if (!type) return 0;
  const int32_t parts = a->form.parts, lanes = a->form.records > 0 ? c->lanes : 0;
  kernel->length = 0;
  snprintf(kernel->name, sizeof kernel->name, "apl_spmm_%s_%dx%d_%d_%dx%d_%d_%d_%d_%d%s%s%s%s", type, lanes,
           c->elements, c->warps, parts, c->window_elements, c->flight, c->split, c->slices, c->resident,
           c->ahead ? "_ahead" : "", c->staged ? "_staged" : "", after ? "_" : "", after ? after->type : "");
  apl_sparse_define(kernel, "NAME", "%s", kernel->name);
  apl_sparse_define(kernel, "TYPE", "%s", written);
  apl_sparse_define(kernel, "AFTER", "%s", after ? after->type : "apl_sparse_same");
  apl_sparse_define(kernel, "STAGED", "%d", c->staged);
  if (c->resident > 0)
    apl_sparse_define(kernel, "BOUNDS", "%d, %d", 32 * c->warps, c->resident);
  else
    apl_sparse_define(kernel, "BOUNDS", "%d", 32 * c->warps);
  apl_sparse_define(kernel, "AHEAD", "%d", c->ahead);
  apl_sparse_define(kernel, "LANES", "%d", lanes);
  apl_sparse_define(kernel, "ELEMENTS", "%d", c->elements);
  apl_sparse_define(kernel, "WARPS", "%d", c->warps);
  apl_sparse_define(kernel, "PARTS", "%d", parts);
  apl_sparse_define(kernel, "WINDOW_ELEMENTS", "%d", c->window_elements);
  apl_sparse_define(kernel, "FLIGHT", "%d", c->flight);
  apl_sparse_define(kernel, "SPLIT", "%d", c->split);
  apl_sparse_define(kernel, "SLICES", "%d", c->slices);
  return 1;
}

int apl_sparse_spmm(struct apl_context* ctx, const struct apl_sparse_operand* a, struct apl_sparse_dense b,
                    struct apl_sparse_dense c, int64_t width, const struct apl_sparse_options* options,
                    const struct apl_sparse_after* after) {
  static const enum apl_sparse_text kRows[] = {APL_SPARSE_TEXT_WARP, APL_SPARSE_TEXT_NUMBERS, APL_SPARSE_TEXT_ROWS,
                                               APL_SPARSE_TEXT_SPMM};
  static const enum apl_sparse_text kStaged[] = {APL_SPARSE_TEXT_WARP, APL_SPARSE_TEXT_NUMBERS, APL_SPARSE_TEXT_ROWS,
                                                 APL_SPARSE_TEXT_STAGED, APL_SPARSE_TEXT_SPMM};
  static const enum apl_sparse_text kAll[] = {APL_SPARSE_TEXT_WARP, APL_SPARSE_TEXT_NUMBERS, APL_SPARSE_TEXT_ROWS,
                                              APL_SPARSE_TEXT_WINDOWS, APL_SPARSE_TEXT_SPMM};
  const struct apl_sparse_form* f = &a->form;
  if (f->rows == 0 || width == 0) return APL_SUCCESS;
  const char* wrong = apl_sparse_misfit(width, &b, &c);
  if (wrong) return apl_sparse_fail(ctx, APL_ERROR, wrong);
  const int64_t size = apl_sparse_type_size(a->type);
  const struct apl_sparse_spmm_choice choice =
      apl_sparse_choose_spmm(f, a->type, apl_sparse_widest(size, &b, &c, width), width, options);
  struct apl_sparse_kernel kernel;
  if (!name_spmm(&kernel, a, &choice, after))
    return apl_sparse_fail(ctx, APL_ERROR, "sparse products have no kernels for this type");
  int status = choice.staged   ? apl_sparse_load_kernel(ctx, &kernel, after, kStaged, 5)
               : f->parts == 0 ? apl_sparse_load_kernel(ctx, &kernel, after, kRows, 4)
                               : apl_sparse_load_kernel(ctx, &kernel, after, kAll, 5);
  if (status) return status;

  int32_t b_row = (int32_t)b.row, c_row = (int32_t)c.row, short_width = (int32_t)width, nothing = 0;
  int32_t records = f->records, longs = f->longs, mediums = f->mediums, windows = f->windows;
  void *b_data = b.data, *c_data = c.data, *with = after && after->value ? (void*)after->value : &nothing;
  void *record = a->record, *column = a->row_column, *value = a->value;
  const int64_t row_slices = (width + choice.lanes * choice.elements - 1) / (choice.lanes * choice.elements);
  const int64_t sum_size = a->type == APL_F16 ? 4 : size;
  if (choice.staged) {
    int64_t each = APL_SPARSE_PROCESSORS / row_slices > 0 ? APL_SPARSE_PROCESSORS / row_slices : 1;
    if (each > records) each = records;
    int32_t blocks = (int32_t)each, b_rows = (int32_t)f->columns;
    void* args[] = {&record, &column, &value,  &records, &blocks,      &b_data,
                    &b_row,  &b_rows, &c_data, &c_row,   &short_width, with};
    return apl_sparse_start(ctx, &kernel, each * row_slices, choice.warps * 32,
                            f->columns * choice.lanes * choice.elements * size, args, 12);
  }
  const int64_t groups = 32 / choice.lanes, shorts = records - longs - mediums;
  int32_t row_blocks = (int32_t)(longs + (mediums + choice.warps - 1) / choice.warps +
                                 (shorts + choice.warps * groups - 1) / (choice.warps * groups));
  int32_t window_blocks = 0, slice_groups = 0;
  int64_t shared_bytes = longs > 0 ? choice.warps * choice.lanes * choice.elements * sum_size : 0;
  if (f->parts > 0) {
    const int64_t columns = 8 * choice.window_elements * choice.slices,
                  each = choice.warps / choice.split / choice.slices;
    slice_groups = (int32_t)((width + columns - 1) / columns);
    window_blocks = (int32_t)((windows + each - 1) / each);
    const int64_t words = (choice.window_elements + 1) / 2;
    const int64_t exchange = choice.split > 1 ? choice.warps * 32 * f->parts * words * 4 * 4 : 0;
    if (exchange > shared_bytes) shared_bytes = exchange;
  }
  void *window = a->window, *part = a->part, *window_row = a->window_row, *step_column = a->step_column;
  void* step_value = value ? (char*)value + f->row_elements * size : NULL;
  void* args[] = {&record,       &column, &value,      &longs,       &mediums,    &records,     &row_blocks,
                  &window,       &part,   &window_row, &step_column, &step_value, &windows,     &window_blocks,
                  &slice_groups, &b_data, &b_row,      &c_data,      &c_row,      &short_width, with};
  return apl_sparse_start(ctx, &kernel, (int64_t)window_blocks * slice_groups + row_blocks * row_slices,
                          choice.warps * 32, shared_bytes, args, sizeof args / sizeof args[0]);
}
