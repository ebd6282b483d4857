// Elements of arrays: of scalars, and of opaque values, whose arrays are those of their parts.
#ifndef APL_ITEMS_H
#define APL_ITEMS_H

#include "runtime/embedded/values.h"

// How many dims of the array are those of elements, and the type of one.
static int32_t apl_outer_rank(const struct apl_api_type* type) {
  return type->item ? type->outer : type->kind == APL_API_ARRAY ? type->rank : 0;
}
static const int64_t* apl_outer_shape(const struct apl_object* array) { return array->items[0].value.shape; }

// Where the element starts, in elements of the array; -1, with an error, if there is none.
static int64_t apl_item_number(struct futhark_context* ctx, const struct apl_object* array, const int64_t* indices) {
  const int64_t* shape = apl_outer_shape(array);
  int64_t at = 0;
  for (int32_t d = 0; d < apl_outer_rank(array->type); ++d) {
    if (indices[d] < 0 || indices[d] >= shape[d]) {
      apl_backend_error(&ctx->base, APL_ERROR, "index %lld is out of bounds: dim %d has size %lld",
                        (long long)indices[d], d, (long long)shape[d]);
      return -1;
    }
    at = at * shape[d] + indices[d];
  }
  return at;
}

static bool apl_same_dims(const int64_t* a, const int64_t* b, int32_t rank) {
  for (int32_t d = 0; d < rank; ++d)
    if (a[d] != b[d]) return false;
  return true;
}

// Of units nothing is kept, and memory of them may be anything.
static bool apl_has_memory(const struct apl_value* value) { return apl_scalars[value->type].kind != apl_kind_unit; }

// The value of an element into or out of the array's memory, which has one of these behind the other.
static int apl_put_item(struct futhark_context* ctx, const struct apl_item* array, int64_t at,
                        const struct apl_item* from) {
  const struct apl_backend* backend = ctx->base.backend;
  const int64_t bytes = apl_bytes(&from->value);
  char* to = (char*)array->value.data + at * bytes;
  if (bytes == 0 || !apl_has_memory(&from->value)) return APL_SUCCESS;
  return from->value.rank == 0 ? backend->upload(&ctx->base, to, &from->value.scalar, bytes)
                               : backend->copy(&ctx->base, to, from->value.data, bytes);
}
static int apl_get_item(struct futhark_context* ctx, const struct apl_item* array, int64_t at, struct apl_item* to) {
  const struct apl_backend* backend = ctx->base.backend;
  int status = APL_SUCCESS;
  int64_t bytes = apl_element_size(to->value.type);
  void* block = NULL;
  if (to->value.rank == 0) {
    if (!apl_has_memory(&to->value)) return APL_SUCCESS;
    status = backend->synchronise(&ctx->base);
    if (status != APL_SUCCESS) return status;
    return backend->download(&ctx->base, &to->value.scalar, (const char*)array->value.data + at * bytes, bytes);
  }
  status = apl_set_shape(ctx, to, array->value.shape + (array->value.rank - to->value.rank), &bytes);
  if (status == APL_SUCCESS) status = backend->allocate(&ctx->base, bytes, "an element", &block);
  if (status == APL_SUCCESS) status = apl_own(ctx, to, block, false);
  if (status == APL_SUCCESS && bytes > 0 && apl_has_memory(&to->value))
    status = backend->copy(&ctx->base, block, (const char*)array->value.data + at * bytes, bytes);
  return status;
}

// An element of an array of opaque values.
static int apl_index_item(struct futhark_context* ctx, const struct apl_object* array, const int64_t* indices,
                          struct apl_object** out) {
  if (!apl_enter(ctx)) return APL_ERROR;
  const int64_t at = apl_item_number(ctx, array, indices);
  if (at < 0) return apl_leave(ctx, APL_ERROR);
  struct apl_object* made = apl_make_object(array->type->item);
  int status = made ? APL_SUCCESS : APL_OUT_OF_MEMORY;
  for (int32_t k = 0; status == APL_SUCCESS && k < array->type->value_count; ++k)
    status = apl_get_item(ctx, &array->items[k], at, &made->items[k]);
  if (status != APL_SUCCESS) {
    apl_drop_object(ctx, made);
    made = NULL;
  }
  *out = made;
  return apl_leave(ctx, status);
}

// Replaces an element in place: whatever shares the array's memory sees it. Elements are handles or pointers to
// scalars, as for entries.
static int apl_set_item(struct futhark_context* ctx, struct apl_object* array, const void* element,
                        const int64_t* indices) {
  if (!apl_enter(ctx)) return APL_ERROR;
  const struct apl_api_type* type = array->type;
  const int64_t at = apl_item_number(ctx, array, indices);
  int status = at < 0 ? APL_ERROR : APL_SUCCESS;
  struct apl_item scalar = {{0}, NULL};
  scalar.value.type = array->items[0].value.type;
  const struct apl_item* from = type->item ? ((const struct apl_object*)element)->items : &scalar;
  if (!type->item) memcpy(&scalar.value.scalar, element, (size_t)apl_element_size(scalar.value.type));
  for (int32_t k = 0; status == APL_SUCCESS && k < type->value_count; ++k) {
    const struct apl_value *whole = &array->items[k].value, *part = &from[k].value;
    if (!apl_same_dims(whole->shape + (whole->rank - part->rank), part->shape, part->rank))
      status = apl_backend_error(&ctx->base, APL_ERROR, "the element's sizes are not those of the array's elements");
  }
  for (int32_t k = 0; status == APL_SUCCESS && k < type->value_count; ++k) {
    struct apl_storage* storage = array->items[k].storage;
    status = apl_put_item(ctx, &array->items[k], at, &from[k]);
    // Its contents are others now.
    if (storage->number != 0) {
      apl_machine_forget(ctx, storage->number);
      storage->number = ++ctx->storages;
    }
  }
  return apl_leave(ctx, status);
}

// An array of elements, which are all of the same sizes, in row-major order. Without any, dims of the elements are 0.
static int apl_new_of_items(struct futhark_context* ctx, const struct apl_api_type* type, const void* const* elements,
                            const int64_t* shape, struct apl_object** out) {
  *out = NULL;
  if (!apl_enter(ctx)) return APL_ERROR;
  struct apl_object* made = apl_make_object(type);
  int status = made ? APL_SUCCESS : APL_OUT_OF_MEMORY;
  int64_t count = 1;
  for (int32_t k = 0; status == APL_SUCCESS && k < type->value_count; ++k) {
    struct apl_item* item = &made->items[k];
    int64_t dims[APL_MAX_RANK] = {0}, bytes = 0;
    void* block = NULL;
    memcpy(dims, shape, (size_t)type->outer * sizeof dims[0]);
    if (k == 0) {
      // Of the outer dims alone: that there can be so many is known where the memory is.
      int64_t all = 0;
      struct apl_item outer = {{0}, NULL};
      outer.value.type = item->value.type;
      outer.value.rank = type->outer;
      status = apl_set_shape(ctx, &outer, shape, &all);
      count = status == APL_SUCCESS ? apl_elements(&outer.value) : 0;
    }
    if (status == APL_SUCCESS && count > 0) {
      const struct apl_value* first = &((const struct apl_object*)elements[0])->items[k].value;
      memcpy(dims + type->outer, first->shape, (size_t)first->rank * sizeof dims[0]);
      for (int64_t e = 1; e < count && status == APL_SUCCESS; ++e) {
        const struct apl_value* other = &((const struct apl_object*)elements[e])->items[k].value;
        if (!apl_same_dims(first->shape, other->shape, first->rank))
          status = apl_backend_error(&ctx->base, APL_ERROR, "elements 0 and %lld have different sizes", (long long)e);
      }
    }
    if (status == APL_SUCCESS) status = apl_set_shape(ctx, item, dims, &bytes);
    if (status == APL_SUCCESS) status = ctx->base.backend->allocate(&ctx->base, bytes, "an array", &block);
    if (status == APL_SUCCESS) status = apl_own(ctx, item, block, false);
    for (int64_t e = 0; e < count && status == APL_SUCCESS; ++e)
      status = apl_put_item(ctx, item, e, &((const struct apl_object*)elements[e])->items[k]);
  }
  if (status == APL_SUCCESS) {
    *out = made;
  } else {
    apl_drop_object(ctx, made);
  }
  return apl_leave(ctx, status);
}

// An array of records from those of their fields, whose memory it shares.
static int apl_zip(struct futhark_context* ctx, const struct apl_api_type* type, const void* const* fields,
                   struct apl_object** out) {
  *out = NULL;
  if (!apl_enter(ctx)) return APL_ERROR;
  const struct apl_object* first = fields[0];
  for (int32_t f = 1; f < type->field_count; ++f) {
    const struct apl_object* other = fields[f];
    if (apl_same_dims(apl_outer_shape(first), apl_outer_shape(other), type->outer)) continue;
    apl_backend_error(&ctx->base, APL_ERROR, "arrays of the fields %s and %s have different sizes",
                      type->fields[0].name, type->fields[f].name);
    return apl_leave(ctx, APL_ERROR);
  }
  struct apl_object* made = apl_make_object(type);
  for (int32_t f = 0; made && f < type->field_count; ++f)
    apl_take_items(made->items + type->fields[f].first, ((const struct apl_object*)fields[f])->items,
                   type->fields[f].type->value_count);
  *out = made;
  return apl_leave(ctx, made ? APL_SUCCESS : APL_OUT_OF_MEMORY);
}

#endif
