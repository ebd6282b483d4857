// Values of sum types: the number of a constructor, of type u8, and places that the payloads of all constructors share.
#ifndef APL_SUMS_H
#define APL_SUMS_H

#include "runtime/embedded/values.h"

static int apl_variant_of(const struct apl_object* object) {
  uint8_t number = 0;
  memcpy(&number, &object->items[0].value.scalar, sizeof number);
  return number;
}

// A part's values go to their places, or come from them.
static void apl_put_part(struct apl_object* to, const struct apl_api_variant* variant, int32_t part,
                         const struct apl_item* from) {
  const struct apl_api_field* field = &variant->parts[part];
  for (int32_t k = 0; k < field->type->value_count; ++k)
    apl_take_items(&to->items[variant->places[field->first + k]], &from[k], 1);
}
static void apl_get_part(struct apl_item* to, const struct apl_api_variant* variant, int32_t part,
                         const struct apl_object* from) {
  const struct apl_api_field* field = &variant->parts[part];
  for (int32_t k = 0; k < field->type->value_count; ++k)
    apl_take_items(&to[k], &from->items[variant->places[field->first + k]], 1);
}

// Sets the number. Arrays that this constructor has no use for have no elements.
static int apl_finish_variant(struct futhark_context* ctx, struct apl_object* made, int32_t number) {
  const uint8_t tag = (uint8_t)number;
  const int64_t nothing[APL_MAX_RANK] = {0};
  int status = APL_SUCCESS;
  memcpy(&made->items[0].value.scalar, &tag, sizeof tag);
  for (int32_t k = 1; k < made->type->value_count && status == APL_SUCCESS; ++k)
    if (made->items[k].value.rank > 0 && !made->items[k].storage)
      status = apl_fill_array(ctx, &made->items[k], nothing, nothing);
  return status;
}

// Of the payload's parts: pointers to scalars, or handles.
static int apl_construct(struct futhark_context* ctx, const struct apl_api_type* type, int32_t number,
                         const void* const* parts, struct apl_object** out) {
  *out = NULL;
  if (!apl_enter(ctx)) return APL_ERROR;
  const struct apl_api_variant* variant = &type->variants[number];
  struct apl_object* made = apl_make_object(type);
  int status = made ? APL_SUCCESS : apl_backend_error(&ctx->base, APL_OUT_OF_MEMORY, "out of memory");
  for (int32_t p = 0; p < variant->part_count && status == APL_SUCCESS; ++p) {
    const struct apl_api_field* part = &variant->parts[p];
    if (part->type->kind == APL_API_SCALAR) {
      struct apl_value* value = &made->items[variant->places[part->first]].value;
      memcpy(&value->scalar, parts[p], (size_t)apl_element_size(value->type));
    } else {
      apl_put_part(made, variant, p, ((const struct apl_object*)parts[p])->items);
    }
  }
  if (status == APL_SUCCESS) status = apl_finish_variant(ctx, made, number);
  if (status != APL_SUCCESS && made) {
    apl_drop_object(ctx, made);
    made = NULL;
  }
  *out = made;
  return apl_leave(ctx, status);
}

// The payload of a value of this constructor, part by part: a scalar is written to where its pointer points, of
// anything else a handle.
static int apl_destruct(struct futhark_context* ctx, const struct apl_object* object, int32_t number,
                        void* const* parts) {
  if (!apl_enter(ctx)) return APL_ERROR;
  const struct apl_api_variant* variant = &object->type->variants[number];
  int status = APL_SUCCESS;
  if (apl_variant_of(object) != number)
    status = apl_backend_error(&ctx->base, APL_PROGRAM_ERROR, "the value is a #%s, not a #%s",
                               object->type->variants[apl_variant_of(object)].name, variant->name);
  for (int32_t p = 0; p < variant->part_count && status == APL_SUCCESS; ++p) {
    const struct apl_api_field* part = &variant->parts[p];
    if (part->type->kind == APL_API_SCALAR) {
      const struct apl_value* value = &object->items[variant->places[part->first]].value;
      memcpy(parts[p], &value->scalar, (size_t)apl_element_size(value->type));
      continue;
    }
    struct apl_object* made = apl_make_object(part->type);
    if (made) {
      apl_get_part(made->items, variant, p, object);
    } else {
      status = apl_backend_error(&ctx->base, APL_OUT_OF_MEMORY, "out of memory");
    }
    memcpy(parts[p], &made, sizeof made);
  }
  return apl_leave(ctx, status);
}

#endif
