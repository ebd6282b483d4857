// Forms on a device.
#include <stdio.h>
#include <string.h>

#include "runtime/sparse/device_kernel.h"

static int upload_array(struct apl_context* ctx, const void* host, int64_t count, size_t size, void** data) {
  *data = NULL;
  if (count == 0 || host == NULL) return APL_SUCCESS;
  const int64_t bytes = count * (int64_t)size;
  const int status = ctx->backend->allocate(ctx, bytes, "a sparse operand", data);
  return status ? status : ctx->backend->upload(ctx, *data, host, bytes);
}

static int release_arrays(struct apl_context* ctx, void** const* arrays, size_t count) {
  int status = APL_SUCCESS;
  for (size_t k = 0; k < count; ++k) {
    const int released = *arrays[k] ? ctx->backend->release(ctx, *arrays[k]) : APL_SUCCESS;
    if (released) status = released;
    *arrays[k] = NULL;
  }
  return status;
}

int apl_sparse_upload(struct apl_context* ctx, const struct apl_sparse_packed* packed, int32_t type,
                      struct apl_sparse_operand* operand) {
  *operand = (struct apl_sparse_operand){.type = type, .packed = *packed};
  struct apl_sparse_packed* f = &operand->packed;
  f->record = f->row_column = f->cut = f->window = f->part = f->window_row = f->step_column = NULL;
  f->slot = NULL;
  const struct {
    const void* host;
    int64_t count;
    void** data;
  } arrays[] = {{packed->record, 4 * (int64_t)packed->records, &operand->record},
                {packed->row_column, packed->row_elements, &operand->row_column},
                {packed->cut, 4 * (int64_t)packed->cuts, &operand->cut},
                {packed->window, 4 * (int64_t)packed->windows, &operand->window},
                {packed->part, 2 * (int64_t)packed->windows * packed->parts, &operand->part},
                {packed->window_row, 8 * (int64_t)packed->windows * packed->parts, &operand->window_row},
                {packed->step_column, APL_SPARSE_STEP * packed->steps, &operand->step_column},
                {packed->slot, packed->nonzeros, &operand->slot}};
  int status = APL_SUCCESS;
  for (size_t k = 0; k < sizeof arrays / sizeof arrays[0] && !status; ++k)
    status = upload_array(ctx, arrays[k].host, arrays[k].count, sizeof(int32_t), arrays[k].data);
  if (!status && packed->values > 0)
    status = ctx->backend->allocate(ctx, packed->values * apl_sparse_type_size(type), "the values of a sparse operand",
                                    &operand->value);
  if (status) {
    char error[sizeof ctx->error];
    memcpy(error, ctx->error, sizeof error);
    apl_sparse_release(ctx, operand);
    memcpy(ctx->error, error, sizeof error);
  }
  return status;
}

int apl_sparse_release(struct apl_context* ctx, struct apl_sparse_operand* o) {
  void** const arrays[] = {&o->record,     &o->row_column,  &o->cut,  &o->window, &o->part,
                           &o->window_row, &o->step_column, &o->slot, &o->value};
  return release_arrays(ctx, arrays, sizeof arrays / sizeof arrays[0]);
}

int apl_sparse_upload_sddmm(struct apl_context* ctx, const struct apl_sparse_sddmm_packed* packed, int32_t type,
                            struct apl_sparse_sddmm_operand* operand) {
  *operand = (struct apl_sparse_sddmm_operand){.type = type, .packed = *packed};
  struct apl_sparse_sddmm_packed* f = &operand->packed;
  f->row = f->column = f->task = f->start = f->window_row = f->step_column = NULL;
  f->mask = NULL;
  const int64_t listed = packed->row ? (packed->nonzeros + 3) / 4 * 4 : 0;
  const struct {
    const void* host;
    int64_t count;
    void** data;
  } arrays[] = {{packed->row, listed, &operand->row},
                {packed->column, listed, &operand->column},
                {packed->task, 4 * (int64_t)packed->tasks, &operand->task},
                {packed->start, 8 * (int64_t)packed->tasks, &operand->start},
                {packed->window_row, 8 * (int64_t)packed->windows, &operand->window_row},
                {packed->step_column, APL_SPARSE_STEP * packed->steps, &operand->step_column},
                {packed->mask, 4 * packed->steps, &operand->mask}};
  int status = APL_SUCCESS;
  for (size_t k = 0; k < sizeof arrays / sizeof arrays[0] && !status; ++k)
    status = upload_array(ctx, arrays[k].host, arrays[k].count, sizeof(int32_t), arrays[k].data);
  if (status) {
    char error[sizeof ctx->error];
    memcpy(error, ctx->error, sizeof error);
    apl_sparse_release_sddmm(ctx, operand);
    memcpy(ctx->error, error, sizeof error);
  }
  return status;
}

int apl_sparse_release_sddmm(struct apl_context* ctx, struct apl_sparse_sddmm_operand* o) {
  void** const arrays[] = {&o->row, &o->column, &o->task, &o->start, &o->window_row, &o->step_column, &o->mask};
  return release_arrays(ctx, arrays, sizeof arrays / sizeof arrays[0]);
}

int apl_sparse_set_values(struct apl_context* ctx, struct apl_sparse_operand* operand, const void* values) {
  static const enum apl_sparse_text kParts[] = {APL_SPARSE_TEXT_WARP, APL_SPARSE_TEXT_NUMBERS, APL_SPARSE_TEXT_VALUES};
  const char *written = NULL, *type = apl_sparse_type_name(operand->type, &written);
  if (!type) return apl_sparse_fail(ctx, APL_ERROR, "sparse products have no kernels for this type");
  int64_t count = operand->packed.values, nonzeros = operand->packed.nonzeros;
  if (count == 0) return APL_SUCCESS;
  const int32_t warp = operand->packed.device->warp;
  struct apl_sparse_kernel clear = {.warp = warp}, slot = {.warp = warp};
  snprintf(clear.name, sizeof clear.name, "apl_sparse_clear_%s", type);
  snprintf(slot.name, sizeof slot.name, "apl_sparse_place_%s", type);
  apl_sparse_define(&clear, "TYPE", "%s", written);
  apl_sparse_define(&clear, "CLEAR", "%s", clear.name);
  apl_sparse_define(&clear, "PLACE", "%s", slot.name);
  int status = apl_sparse_load_kernel(ctx, &clear, NULL, kParts, 3);
  void* clear_args[] = {&operand->value, &count};
  if (!status) status = apl_sparse_start(ctx, &clear, (count + 255) / 256, 256, 0, clear_args, 2);
  void* slot_args[] = {&values, &operand->slot, &nonzeros, &operand->value};
  if (!status) status = apl_sparse_start(ctx, &slot, (nonzeros + 255) / 256, 256, 0, slot_args, 4);
  return status;
}
