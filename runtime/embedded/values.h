// Arrays and opaque values of a generated library. Every handle of the C API points to an apl_object.
#ifndef APL_VALUES_H
#define APL_VALUES_H

#include "runtime/embedded/context.h"
#if APL_HAS_SPARSE_TYPES
#include "runtime/sparse/sparse.h"
#endif

// Memory of an array, shared by all values that have it.
struct apl_storage {
  void* data;
  int64_t references;
  uint64_t number;  // that no other had before; 0: the caller may change it
  bool is_callers;
};

struct apl_item {
  struct apl_value value;
  struct apl_storage* storage;  // of an array
};

struct apl_object {
  const struct apl_api_type* type;
  struct apl_sparse_plan* plans[2];  // of a sparse operand: for products, and for SDDMM
  struct apl_item items[];
};

enum apl_scalar_kind {
  apl_kind_signed_integer,
  apl_kind_unsigned_integer,
  apl_kind_floating,
  apl_kind_boolean,
  apl_kind_unit
};
enum apl_scalar_arithmetic { apl_computed_own, apl_computed_single, apl_computed_never };
static const struct apl_scalar_facts {
  const char* text;
  enum apl_scalar_kind kind;
  enum apl_scalar_arithmetic arithmetic;
  int bytes, bits, mantissa, lowest;
} apl_scalars[] = {
#define APL_SCALAR(name, NAME, text, kind, arithmetic, bytes, bits, mantissa, lowest, kernel_type, host_type) \
  {text, apl_kind_##kind, apl_computed_##arithmetic, bytes, bits, mantissa, lowest},
#include "ir/scalar_types.def"
};

// Memory of one; that of unit is never looked at.
static int64_t apl_element_size(int32_t type) { return apl_scalars[type].bytes > 0 ? apl_scalars[type].bytes : 1; }
static bool apl_is_float(int32_t type) { return apl_scalars[type].kind == apl_kind_floating; }
// Kept, converted, and never computed with: may be given as f32, which is rounded.
static bool apl_is_storage(int32_t type) { return apl_scalars[type].arithmetic == apl_computed_never; }

// Floats of less than 32 bits. Numbers are counted in units of the last place: a mantissa that rounds up carries into
// the exponent.
static uint64_t apl_narrow_bits(int32_t type, double x) {
  const struct apl_scalar_facts* f = &apl_scalars[type];
  const uint64_t sign = signbit(x) ? (uint64_t)1 << (f->bits - 1) : 0;
  const uint64_t infinity = (uint64_t)(3 - 2 * f->lowest) << f->mantissa;
  const double magnitude = fabs(x);
  if (isnan(x)) return infinity | (uint64_t)1 << (f->mantissa - 1);
  if (magnitude == 0) return sign;
  if (isinf(x)) return sign | infinity;
  const int exponent = ilogb(magnitude) < f->lowest ? f->lowest : ilogb(magnitude);
  if (exponent > 1 - f->lowest) return sign | infinity;
  const uint64_t units = (uint64_t)rint(ldexp(magnitude, f->mantissa - exponent));
  return sign | (units + ((uint64_t)(exponent - f->lowest) << f->mantissa));
}
static double apl_narrow_number(int32_t type, uint64_t bits) {
  const struct apl_scalar_facts* f = &apl_scalars[type];
  const uint64_t sign = (uint64_t)1 << (f->bits - 1), magnitude = bits & (sign - 1);
  const int exponent = (int)(magnitude >> f->mantissa);
  const uint64_t one = (uint64_t)1 << f->mantissa, fraction = magnitude & (one - 1);
  double number = ldexp((double)(exponent == 0 ? fraction : fraction + one),
                        (exponent ? exponent : 1) - 1 + f->lowest - f->mantissa);
  if (exponent == 3 - 2 * f->lowest) number = fraction ? NAN : INFINITY;
  return bits & sign ? -number : number;
}

// Of an array that exists.
static int64_t apl_elements(const struct apl_value* value) {
  int64_t count = 1;
  for (int32_t d = 0; d < value->rank; ++d) count *= value->shape[d];
  return count;
}
static int64_t apl_bytes(const struct apl_value* value) { return apl_elements(value) * apl_element_size(value->type); }

static struct apl_object* apl_make_object(const struct apl_api_type* type) {
  struct apl_object* object = calloc(1, sizeof *object + (size_t)type->value_count * sizeof object->items[0]);
  if (!object) return NULL;
  object->type = type;
  for (int32_t k = 0; k < type->value_count; ++k) {
    const struct apl_api_type* part = type->kind == APL_API_OPAQUE ? type->values[k] : type;
    object->items[k].value.type = part->element;
    object->items[k].value.rank = part->rank;
  }
  return object;
}

static int apl_drop_storage(struct futhark_context* ctx, struct apl_storage* storage) {
  if (!storage || --storage->references > 0) return APL_SUCCESS;
  const int status = storage->is_callers ? APL_SUCCESS : ctx->base.backend->release(&ctx->base, storage->data);
  free(storage);
  return status;
}

static int apl_drop_object(struct futhark_context* ctx, struct apl_object* object) {
  int status = APL_SUCCESS;
  if (!object) return status;
  for (int32_t k = 0; k < object->type->value_count; ++k) {
    const int dropped = apl_drop_storage(ctx, object->items[k].storage);
    if (status == APL_SUCCESS) status = dropped;
  }
#if APL_HAS_SPARSE_TYPES
  for (int k = 0; k < 2; ++k) apl_sparse_plan_free(object->plans[k]);
#endif
  free(object);
  return status;
}

// Makes the item own `data`; the caller's memory is only borrowed.
static int apl_own(struct futhark_context* ctx, struct apl_item* item, void* data, bool is_callers) {
  item->storage = calloc(1, sizeof *item->storage);
  if (!item->storage) {
    if (!is_callers) ctx->base.backend->release(&ctx->base, data);
    return apl_backend_error(&ctx->base, APL_OUT_OF_MEMORY, "out of memory");
  }
  item->storage->data = item->value.data = data;
  item->storage->references = 1;
  item->storage->number = is_callers ? 0 : ++ctx->storages;
  item->storage->is_callers = is_callers;
  return APL_SUCCESS;
}

// The caller's sizes, if there can be such an array; and its bytes.
static int apl_set_shape(struct futhark_context* ctx, struct apl_item* item, const int64_t* shape, int64_t* bytes) {
  const struct apl_extent extent = {apl_element_size(item->value.type), shape, item->value.rank, 0, 0, 0, false};
  int status = APL_SUCCESS;
  for (int32_t d = 0; d < item->value.rank && status == APL_SUCCESS; ++d)
    if (shape[d] < 0) status = apl_refuse_size(&ctx->base, extent, shape[d]);
  if (status == APL_SUCCESS) status = apl_bytes_of(&ctx->base, extent, bytes);
  for (int32_t d = 0; d < item->value.rank && status == APL_SUCCESS; ++d) item->value.shape[d] = shape[d];
  return status;
}

static int apl_fill_array(struct futhark_context* ctx, struct apl_item* item, const void* data, const int64_t* shape) {
  int64_t bytes = 0;
  void* block = NULL;
  int status = apl_set_shape(ctx, item, shape, &bytes);
  if (status == APL_SUCCESS) status = ctx->base.backend->allocate(&ctx->base, bytes, "an array", &block);
  if (status == APL_SUCCESS) status = apl_own(ctx, item, block, false);
  if (status == APL_SUCCESS) status = ctx->base.backend->upload(&ctx->base, block, data, bytes);
  return status;
}

static struct apl_object* apl_new_array(struct futhark_context* ctx, const struct apl_api_type* type, const void* data,
                                        const int64_t* shape) {
  if (!apl_enter(ctx)) return NULL;
  struct apl_object* object = apl_make_object(type);
  int status = object ? apl_fill_array(ctx, &object->items[0], data, shape) : APL_OUT_OF_MEMORY;
  if (status != APL_SUCCESS) {
    apl_drop_object(ctx, object);
    object = NULL;
  }
  apl_leave(ctx, status);
  return object;
}

static struct apl_object* apl_new_raw_array(struct futhark_context* ctx, const struct apl_api_type* type, void* data,
                                            const int64_t* shape) {
  if (!apl_enter(ctx)) return NULL;
  struct apl_object* object = apl_make_object(type);
  int64_t bytes = 0;
  int status = object ? apl_set_shape(ctx, &object->items[0], shape, &bytes) : APL_OUT_OF_MEMORY;
  if (status == APL_SUCCESS) status = apl_own(ctx, &object->items[0], data, true);
  if (status != APL_SUCCESS) {
    apl_drop_object(ctx, object);
    object = NULL;
  }
  apl_leave(ctx, status);
  return object;
}

static int apl_free_object(struct futhark_context* ctx, struct apl_object* object) {
  if (!apl_enter(ctx)) return APL_ERROR;
  return apl_leave(ctx, apl_drop_object(ctx, object));
}

// All of an item's bytes, on the host.
static int apl_fetch(struct futhark_context* ctx, const struct apl_item* item, void* to) {
  if (item->value.rank == 0) {
    memcpy(to, &item->value.scalar, (size_t)apl_element_size(item->value.type));
    return APL_SUCCESS;
  }
  // What a failed kernel left is nobody's business.
  const int status = ctx->base.backend->synchronise(&ctx->base);
  return status != APL_SUCCESS ? status
                               : ctx->base.backend->download(&ctx->base, to, item->value.data, apl_bytes(&item->value));
}

static int apl_values_of(struct futhark_context* ctx, const struct apl_object* array, void* to) {
  if (!apl_enter(ctx)) return APL_ERROR;
  return apl_leave(ctx, apl_fetch(ctx, &array->items[0], to));
}

static int apl_index_of(struct futhark_context* ctx, const struct apl_object* array, const int64_t* indices, void* to) {
  if (!apl_enter(ctx)) return APL_ERROR;
  const struct apl_value* value = &array->items[0].value;
  int64_t at = 0;
  for (int32_t d = 0; d < value->rank; ++d) {
    if (indices[d] < 0 || indices[d] >= value->shape[d]) {
      apl_backend_error(&ctx->base, APL_ERROR, "index %lld is out of bounds: dim %d has size %lld",
                        (long long)indices[d], d, (long long)value->shape[d]);
      return apl_leave(ctx, APL_ERROR);
    }
    at = at * value->shape[d] + indices[d];
  }
  const int64_t size = apl_element_size(value->type);
  int status = ctx->base.backend->synchronise(&ctx->base);
  if (status == APL_SUCCESS)
    status = ctx->base.backend->download(&ctx->base, to, (const char*)value->data + at * size, size);
  return apl_leave(ctx, status);
}

// ---- opaque values ----

// The parts share their memory with the whole.
static void apl_take_items(struct apl_item* to, const struct apl_item* from, int32_t count) {
  for (int32_t k = 0; k < count; ++k) {
    to[k] = from[k];
    if (to[k].storage) ++to[k].storage->references;
  }
}

// A field: a scalar is written to `out`, of anything else a handle.
static int apl_project(struct futhark_context* ctx, const struct apl_object* object, int32_t field, void* out) {
  if (!apl_enter(ctx)) return APL_ERROR;
  const struct apl_api_field* part = &object->type->fields[field];
  const struct apl_item* items = object->items + part->first;
  if (part->type->kind == APL_API_SCALAR) {
    memcpy(out, &items->value.scalar, (size_t)apl_element_size(items->value.type));
    return apl_leave(ctx, APL_SUCCESS);
  }
  struct apl_object* made = apl_make_object(part->type);
  if (!made) {
    apl_backend_error(&ctx->base, APL_OUT_OF_MEMORY, "out of memory");
    return apl_leave(ctx, APL_OUT_OF_MEMORY);
  }
  apl_take_items(made->items, items, part->type->value_count);
  memcpy(out, &made, sizeof made);
  return apl_leave(ctx, APL_SUCCESS);
}

// Of fields: pointers to scalars, or handles.
static int apl_new_opaque(struct futhark_context* ctx, const struct apl_api_type* type, const void* const* fields,
                          struct apl_object** out) {
  *out = NULL;
  if (!apl_enter(ctx)) return APL_ERROR;
  struct apl_object* made = apl_make_object(type);
  if (!made) {
    apl_backend_error(&ctx->base, APL_OUT_OF_MEMORY, "out of memory");
    return apl_leave(ctx, APL_OUT_OF_MEMORY);
  }
  for (int32_t f = 0; f < type->field_count; ++f) {
    const struct apl_api_field* part = &type->fields[f];
    struct apl_item* items = made->items + part->first;
    if (part->type->kind == APL_API_SCALAR) {
      memcpy(&items->value.scalar, fields[f], (size_t)apl_element_size(items->value.type));
    } else {
      apl_take_items(items, ((const struct apl_object*)fields[f])->items, part->type->value_count);
    }
  }
  *out = made;
  return apl_leave(ctx, APL_SUCCESS);
}

// ---- calls ----

// `inputs`: handles, or pointers to scalars; `out`: of a scalar, or of a handle.
static int apl_call_entry(struct futhark_context* ctx, const struct apl_api_entry* entry, const void* const* inputs,
                          void* out) {
  if (!apl_enter(ctx)) return APL_ERROR;
  const struct apl_api_type* type = entry->output;
  int32_t count = 0;
  for (int32_t k = 0; k < entry->input_count; ++k) count += entry->inputs[k]->value_count;
  struct apl_value* values = calloc((size_t)(count + type->value_count), sizeof *values);
  struct apl_argument* arguments = calloc((size_t)count + 1, sizeof *arguments);
  struct apl_object* made = apl_make_object(type);
  int status = values && arguments && made ? APL_SUCCESS : APL_OUT_OF_MEMORY;
  ctx->arguments = arguments;
  ctx->argument_count = 0;
  if (status != APL_SUCCESS) apl_backend_error(&ctx->base, status, "out of memory");
  for (int32_t k = 0, at = 0; k < entry->input_count && status == APL_SUCCESS; ++k) {
    const struct apl_api_type* input = entry->inputs[k];
    if (input->kind == APL_API_SCALAR) {
      values[at].type = input->element;
      memcpy(&values[at++].scalar, inputs[k], (size_t)apl_element_size(input->element));
      continue;
    }
    const int32_t* picks = entry->picks[k];
    for (int32_t part = 0; part < (picks ? picks[0] : input->value_count); ++part) {
      const struct apl_object* object = inputs[k];
      const struct apl_item* item = &object->items[picks ? picks[part + 1] : part];
      if (item->storage)
        arguments[ctx->argument_count++] =
            (struct apl_argument){item->value.data, item->storage->number, object->plans};
      values[at++] = item->value;
    }
  }
  if (status == APL_SUCCESS) {
    const double start = apl_now();
    struct apl_value* results = values + count;
    const int before = apl_swap_threads(ctx->config->threads);
    status = entry->function(&ctx->base, values, results);
    apl_swap_threads(before);
    if (ctx->profiling) apl_add_event(ctx, entry->name, false, start, apl_now());
    const int32_t made_count = status == APL_SUCCESS ? type->value_count : 0;
    for (int32_t k = 0; k < made_count; ++k) {
      made->items[k].value = results[k];
      if (results[k].rank == 0) continue;
      // Where one cannot be kept, those after it are nobody's.
      if (status == APL_SUCCESS) {
        status = apl_own(ctx, &made->items[k], results[k].data, false);
      } else {
        ctx->base.backend->release(&ctx->base, results[k].data);
      }
    }
  }
  if (status == APL_SUCCESS && type->kind == APL_API_SCALAR) {
    memcpy(out, &made->items[0].value.scalar, (size_t)apl_element_size(type->element));
    free(made);
  } else if (status == APL_SUCCESS) {
    memcpy(out, &made, sizeof made);
  } else {
    if (made) apl_drop_object(ctx, made);
    if (type->kind != APL_API_SCALAR) memset(out, 0, sizeof made);
  }
  free(values);
  free(arguments);
  ctx->arguments = NULL;
  ctx->argument_count = 0;
  if (status != APL_SUCCESS && !ctx->base.error[0]) apl_backend_error(&ctx->base, status, "the entry failed");
  return apl_leave(ctx, status);
}

#endif
