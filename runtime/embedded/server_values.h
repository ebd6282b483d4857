// A server's commands on records, arrays and sum types: `words` are what follows the command's name.
#ifndef APL_SERVER_VALUES_H
#define APL_SERVER_VALUES_H

#include <errno.h>

#include "runtime/embedded/server_state.h"

// ---- records ----

// A tuple, a record, or the unit.
static bool apl_is_record(const struct apl_api_type* type) {
  return type->kind == APL_API_OPAQUE && !type->item && type->variant_count == 0 && !type->soa;
}

static void apl_do_project(struct apl_server* server, char** words, int count) {
  (void)count;
  const struct apl_object* from = apl_is_new(server, words[0]) ? apl_get(server, words[1]) : NULL;
  const struct apl_api_field* field = from ? apl_get_field(server, from->type, words[2]) : NULL;
  if (!field) return;
  struct apl_object* made = apl_make_object(field->type);
  if (!made) apl_die("out of memory");
  apl_take_items(made->items, from->items + field->first, field->type->value_count);
  apl_set(server, words[0], made);
}

static void apl_do_new(struct apl_server* server, char** words, int count) {
  const struct apl_api_type* type = apl_is_new(server, words[0]) ? apl_get_type(server, words[1]) : NULL;
  if (!type) return;
  if (!apl_is_record(type)) {
    apl_refuse(server, "Not a record type: %s", type->name);
    return;
  }
  if (count != 2 + type->field_count) {
    apl_refuse(server, "%s has %d fields", type->name, type->field_count);
    return;
  }
  struct apl_object* made = apl_make_object(type);
  if (!made) apl_die("out of memory");
  for (int32_t f = 0; f < type->field_count; ++f) {
    const struct apl_object* part = apl_get(server, words[2 + f]);
    if (part && part->type != type->fields[f].type)
      apl_refuse(server, "Field %s is a %s, not a %s", type->fields[f].name, type->fields[f].type->name,
                 part->type->name);
    if (server->failed) {
      apl_drop_object(server->ctx, made);
      return;
    }
    apl_take_items(made->items + type->fields[f].first, part->items, part->type->value_count);
  }
  apl_set(server, words[0], made);
}

// ---- arrays ----

static bool apl_is_array(const struct apl_api_type* type) { return type->kind == APL_API_ARRAY || type->item; }
// What `elemtype` says.
static const char* apl_item_name(const struct apl_api_type* type) {
  return type->item ? type->item->name : apl_scalars[type->element].text;
}
static bool apl_is_item_of(const struct apl_object* object, const struct apl_api_type* type) {
  return type->item ? object->type == type->item
                    : object->type->kind == APL_API_SCALAR && object->type->element == type->element;
}
static struct apl_object* apl_get_array(struct apl_server* server, const char* name) {
  struct apl_object* object = apl_get(server, name);
  if (!object || apl_is_array(object->type)) return object;
  apl_refuse(server, "Not an array: %s", name);
  return NULL;
}
static const struct apl_api_type* apl_get_array_type(struct apl_server* server, const char* name) {
  const struct apl_api_type* type = apl_get_type(server, name);
  if (!type || apl_is_array(type)) return type;
  apl_refuse(server, "Not an array type: %s", type->name);
  return NULL;
}
// As many integers as the type has outer dims.
static bool apl_get_integers(struct apl_server* server, const char* what, const struct apl_api_type* type, char** words,
                             int count, int64_t* numbers) {
  if (count < apl_outer_rank(type)) {
    apl_refuse(server, "%d %s are wanted, not %d", apl_outer_rank(type), what, count);
    return false;
  }
  for (int32_t d = 0; d < apl_outer_rank(type); ++d) {
    char* end = NULL;
    errno = 0;
    numbers[d] = strtoll(words[d], &end, 10);
    if (errno == 0 && *end == '\0' && end != words[d]) continue;
    apl_refuse(server, "Not an integer: %s", words[d]);
    return false;
  }
  return true;
}

static void apl_do_index(struct apl_server* server, char** words, int count) {
  int64_t indices[APL_MAX_RANK];
  struct futhark_context* ctx = server->ctx;
  const struct apl_object* array = apl_is_new(server, words[0]) ? apl_get_array(server, words[1]) : NULL;
  if (!array) return;
  if (count - 2 > apl_outer_rank(array->type)) {
    apl_refuse(server, "%d indices are wanted, not %d", apl_outer_rank(array->type), count - 2);
    return;
  }
  if (!apl_get_integers(server, "indices", array->type, words + 2, count - 2, indices)) return;
  struct apl_object* made = NULL;
  int status = APL_SUCCESS;
  if (array->type->item) {
    status = apl_index_item(ctx, array, indices, &made);
  } else {
    const struct apl_api_type* type = apl_get_type(server, apl_item_name(array->type));
    if (!type) return;
    made = apl_make_object(type);
    if (!made) apl_die("out of memory");
    status = apl_index_of(ctx, array, indices, &made->items[0].value.scalar);
  }
  if (apl_server_check(server, status)) {
    apl_set(server, words[0], made);
  } else {
    apl_drop_object(ctx, made);
  }
}
static void apl_do_set(struct apl_server* server, char** words, int count) {
  int64_t indices[APL_MAX_RANK];
  struct apl_object* array = apl_get_array(server, words[0]);
  const struct apl_object* element = array ? apl_get(server, words[1]) : NULL;
  if (!element) return;
  if (count - 2 > apl_outer_rank(array->type)) {
    apl_refuse(server, "%d indices are wanted, not %d", apl_outer_rank(array->type), count - 2);
    return;
  }
  if (!apl_get_integers(server, "indices", array->type, words + 2, count - 2, indices)) return;
  if (!apl_is_item_of(element, array->type)) {
    apl_refuse(server, "Elements of %s are of type %s, not %s", words[0], apl_item_name(array->type),
               element->type->name);
    return;
  }
  apl_server_check(server, apl_set_item(server->ctx, array, apl_argument(element), indices));
}
static void apl_do_new_array(struct apl_server* server, char** words, int count) {
  int64_t shape[APL_MAX_RANK], wanted = 1;
  const struct apl_api_type* type = apl_is_new(server, words[0]) ? apl_get_array_type(server, words[1]) : NULL;
  if (!type || !apl_get_integers(server, "sizes", type, words + 2, count - 2, shape)) return;
  const int32_t rank = apl_outer_rank(type);
  const int given = count - 2 - rank;
  for (int32_t d = 0; d < rank; ++d) {
    if (shape[d] < 0) {
      apl_refuse(server, "The size of dim %d is negative: %lld", d, (long long)shape[d]);
      return;
    }
    // A line has not more words, so more values than this cannot have been given.
    if (wanted != 0 && shape[d] != 0)
      wanted = wanted > APL_SERVER_WORDS || shape[d] > APL_SERVER_WORDS ? APL_SERVER_WORDS + 1 : wanted * shape[d];
    if (shape[d] == 0) wanted = 0;
  }
  if (wanted != given) {
    apl_refuse(server, "%s%lld values are wanted, not %d", wanted > APL_SERVER_WORDS ? "more than " : "",
               (long long)(wanted > APL_SERVER_WORDS ? APL_SERVER_WORDS : wanted), given);
    return;
  }
  const void* elements[APL_SERVER_WORDS + 1] = {NULL};
  const int64_t size = type->item ? 0 : apl_element_size(type->element);
  char* scalars = type->item ? NULL : calloc((size_t)given + 1, (size_t)size);
  if (!type->item && !scalars) apl_die("out of memory");
  for (int e = 0; e < given && !server->failed; ++e) {
    const struct apl_object* element = apl_get(server, words[2 + rank + e]);
    if (element && !apl_is_item_of(element, type)) {
      apl_refuse(server, "Value %d is a %s, not a %s", e, element->type->name, apl_item_name(type));
    } else if (element) {
      elements[e] = element;
      if (scalars) memcpy(scalars + e * size, &element->items[0].value.scalar, (size_t)size);
    }
  }
  struct apl_object* made = NULL;
  if (!server->failed) {
    int status = APL_SUCCESS;
    if (type->item) {
      status = apl_new_of_items(server->ctx, type, elements, shape, &made);
    } else {
      made = apl_new_array(server->ctx, type, scalars, shape);
      // What was copied to the device is there before its text goes.
      status = made ? futhark_context_sync(server->ctx) : APL_ERROR;
    }
    if (apl_server_check(server, status)) apl_set(server, words[0], made);
  }
  free(scalars);
}
static void apl_do_zip(struct apl_server* server, char** words, int count) {
  const struct apl_api_type* type = apl_is_new(server, words[0]) ? apl_get_type(server, words[1]) : NULL;
  if (!type) return;
  if (!type->item || type->field_count == 0) {
    apl_refuse(server, "Not an array of records: %s", type->name);
    return;
  }
  if (count != 2 + type->field_count) {
    apl_refuse(server, "%s has %d fields", type->item->name, type->field_count);
    return;
  }
  const void* fields[APL_SERVER_WORDS];
  for (int32_t f = 0; f < type->field_count; ++f) {
    const struct apl_object* part = apl_get(server, words[2 + f]);
    if (part && part->type != type->fields[f].type)
      apl_refuse(server, "The array of the field %s is a %s, not a %s", type->fields[f].name,
                 type->fields[f].type->name, part->type->name);
    if (server->failed) return;
    fields[f] = part;
  }
  struct apl_object* made = NULL;
  if (apl_server_check(server, apl_zip(server->ctx, type, fields, &made))) apl_set(server, words[0], made);
}
static void apl_do_unzip(struct apl_server* server, char** words, int count) {
  const struct apl_object* from = apl_get(server, words[0]);
  if (!from) return;
  const struct apl_api_type* type = from->type;
  if (!type->item || type->field_count == 0) {
    apl_refuse(server, "Not an array of records: %s", words[0]);
    return;
  }
  if (count != 1 + type->field_count) {
    apl_refuse(server, "%s has %d fields", type->item->name, type->field_count);
    return;
  }
  for (int32_t f = 0; f < type->field_count; ++f)
    if (!apl_is_new(server, words[1 + f])) return;
  for (int32_t f = 0; f < type->field_count && apl_is_new(server, words[1 + f]); ++f) {
    const struct apl_api_field* field = &type->fields[f];
    struct apl_object* made = apl_make_object(field->type);
    if (!made) apl_die("out of memory");
    apl_take_items(made->items, from->items + field->first, field->type->value_count);
    apl_set(server, words[1 + f], made);
  }
}

// ---- sum types ----

static const struct apl_api_type* apl_get_sum_type(struct apl_server* server, const char* name) {
  const struct apl_api_type* type = apl_get_type(server, name);
  if (!type || type->variant_count > 0) return type;
  apl_refuse(server, "Not a sum type: %s", type->name);
  return NULL;
}
static void apl_do_variants(struct apl_server* server, char** words, int count) {
  (void)count;
  const struct apl_api_type* type = apl_get_sum_type(server, words[0]);
  for (int32_t v = 0; type && v < type->variant_count; ++v) {
    puts(type->variants[v].name);
    for (int32_t p = 0; p < type->variants[v].part_count; ++p) printf("- %s\n", type->variants[v].parts[p].type->name);
  }
}
static void apl_do_variant(struct apl_server* server, char** words, int count) {
  (void)count;
  const struct apl_object* object = apl_get(server, words[0]);
  if (object && object->type->variant_count == 0) {
    apl_refuse(server, "Not a value of a sum type: %s", words[0]);
  } else if (object) {
    puts(object->type->variants[apl_variant_of(object)].name);
  }
}
static void apl_do_construct(struct apl_server* server, char** words, int count) {
  const struct apl_api_type* type = apl_is_new(server, words[0]) ? apl_get_sum_type(server, words[1]) : NULL;
  if (!type) return;
  int32_t number = 0;
  while (number < type->variant_count && strcmp(type->variants[number].name, words[2]) != 0) ++number;
  if (number == type->variant_count) {
    apl_refuse(server, "Type %s has no variant %s", type->name, words[2]);
    return;
  }
  const struct apl_api_variant* variant = &type->variants[number];
  if (count != 3 + variant->part_count) {
    apl_refuse(server, "Variant %s has %d values", variant->name, variant->part_count);
    return;
  }
  struct apl_object* made = apl_make_object(type);
  if (!made) apl_die("out of memory");
  for (int32_t p = 0; p < variant->part_count && !server->failed; ++p) {
    const struct apl_object* part = apl_get(server, words[3 + p]);
    if (part && part->type != variant->parts[p].type) {
      apl_refuse(server, "Value %d of variant %s is a %s, not a %s", p, variant->name, variant->parts[p].type->name,
                 part->type->name);
    } else if (part) {
      apl_put_part(made, variant, p, part->items);
    }
  }
  if (!server->failed && apl_server_check(server, apl_finish_variant(server->ctx, made, number))) {
    apl_set(server, words[0], made);
  } else {
    apl_drop_object(server->ctx, made);
  }
}
static void apl_do_destruct(struct apl_server* server, char** words, int count) {
  const struct apl_object* object = apl_get(server, words[0]);
  if (!object) return;
  if (object->type->variant_count == 0) {
    apl_refuse(server, "Not a value of a sum type: %s", words[0]);
    return;
  }
  const struct apl_api_variant* variant = &object->type->variants[apl_variant_of(object)];
  if (count != 1 + variant->part_count) {
    apl_refuse(server, "Variant %s has %d values", variant->name, variant->part_count);
    return;
  }
  for (int32_t p = 0; p < variant->part_count; ++p)
    if (!apl_is_new(server, words[1 + p])) return;
  for (int32_t p = 0; p < variant->part_count && apl_is_new(server, words[1 + p]); ++p) {
    struct apl_object* made = apl_make_object(variant->parts[p].type);
    if (!made) apl_die("out of memory");
    apl_get_part(made->items, variant, p, object);
    apl_set(server, words[1 + p], made);
  }
}

#endif
