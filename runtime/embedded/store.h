// Values in Futhark's binary format: opaque values to bytes and back.
#ifndef APL_STORE_H
#define APL_STORE_H

#include "runtime/embedded/values.h"

enum { APL_BINARY_VERSION = 2, APL_BINARY_HEAD = 7 };

static size_t apl_stored_size(const struct apl_value* value) {
  return APL_BINARY_HEAD + 8 * (size_t)value->rank + (size_t)apl_bytes(value);
}

// Head and shape; what follows are the elements, row-major.
static char* apl_store_head(char* to, const struct apl_value* value) {
  to[0] = 'b';
  to[1] = APL_BINARY_VERSION;
  to[2] = (char)value->rank;
  char name[8];
  snprintf(name, sizeof name, "%4s", apl_scalars[value->type].text);
  memcpy(to + 3, name, 4);
  memcpy(to + APL_BINARY_HEAD, value->shape, 8 * (size_t)value->rank);
  return to + APL_BINARY_HEAD + 8 * value->rank;
}

static int apl_store(struct futhark_context* ctx, const struct apl_object* object, void** bytes, size_t* size) {
  if (!apl_enter(ctx)) return APL_ERROR;
  size_t needed = 0;
  for (int32_t k = 0; k < object->type->value_count; ++k) needed += apl_stored_size(&object->items[k].value);
  *size = needed;
  // With somewhere to put the size alone, that is all that is asked for.
  if (!bytes) return apl_leave(ctx, APL_SUCCESS);
  if (!*bytes && !(*bytes = malloc(needed))) {
    apl_backend_error(&ctx->base, APL_OUT_OF_MEMORY, "out of memory: %zu bytes to store a value", needed);
    return apl_leave(ctx, APL_OUT_OF_MEMORY);
  }
  char* to = *bytes;
  int status = APL_SUCCESS;
  for (int32_t k = 0; k < object->type->value_count && status == APL_SUCCESS; ++k) {
    to = apl_store_head(to, &object->items[k].value);
    status = apl_fetch(ctx, &object->items[k], to);
    to += apl_bytes(&object->items[k].value);
  }
  return apl_leave(ctx, status);
}

static struct apl_object* apl_restore(struct futhark_context* ctx, const struct apl_api_type* type, const void* bytes) {
  if (!apl_enter(ctx)) return NULL;
  struct apl_object* made = apl_make_object(type);
  int status = made ? APL_SUCCESS : APL_OUT_OF_MEMORY;
  const char* from = bytes;
  for (int32_t k = 0; k < type->value_count && status == APL_SUCCESS; ++k) {
    struct apl_item* item = &made->items[k];
    char head[APL_BINARY_HEAD + 8 * APL_MAX_RANK];
    apl_store_head(head, &item->value);
    if (memcmp(head, from, APL_BINARY_HEAD) != 0) {
      status = apl_backend_error(&ctx->base, APL_PROGRAM_ERROR, "the stored bytes are no value of type %s", type->name);
      break;
    }
    int64_t shape[APL_MAX_RANK];
    memcpy(shape, from + APL_BINARY_HEAD, 8 * (size_t)item->value.rank);
    from += APL_BINARY_HEAD + 8 * item->value.rank;
    if (item->value.rank == 0) {
      memcpy(&item->value.scalar, from, (size_t)apl_element_size(item->value.type));
    } else {
      status = apl_fill_array(ctx, item, from, shape);
    }
    from += apl_bytes(&item->value);
  }
  if (status != APL_SUCCESS && made) {
    apl_drop_object(ctx, made);
    made = NULL;
  }
  apl_leave(ctx, status);
  return made;
}

#endif
