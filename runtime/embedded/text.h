// Values in Futhark's text and binary formats, for programs that read and write them.
#ifndef APL_TEXT_H
#define APL_TEXT_H

#include <ctype.h>
#include <math.h>

#include "runtime/embedded/store.h"

struct apl_reader {
  const char *at, *end;
  char problem[200];
};

static bool apl_unreadable(struct apl_reader* in, const char* format, ...) __attribute__((format(printf, 2, 3)));
static bool apl_unreadable(struct apl_reader* in, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (!in->problem[0]) vsnprintf(in->problem, sizeof in->problem, format, arguments);
  va_end(arguments);
  return false;
}

// Blanks and comments.
static void apl_skip(struct apl_reader* in) {
  while (in->at < in->end) {
    if (isspace((unsigned char)*in->at)) {
      ++in->at;
    } else if (in->end - in->at >= 2 && in->at[0] == '-' && in->at[1] == '-') {
      while (in->at < in->end && *in->at != '\n') ++in->at;
    } else {
      return;
    }
  }
}
static bool apl_accept(struct apl_reader* in, const char* word) {
  apl_skip(in);
  const size_t length = strlen(word);
  if ((size_t)(in->end - in->at) < length || memcmp(in->at, word, length) != 0) return false;
  in->at += length;
  return true;
}

static void apl_put_float(int32_t type, double x, void* to) {
  const float single = (float)x;
  const uint64_t narrow = type == APL_F64 || type == APL_F32 ? 0 : apl_narrow_bits(type, x);
  memcpy(to,
         type == APL_F64   ? (const void*)&x
         : type == APL_F32 ? (const void*)&single
                           : (const void*)&narrow,
         (size_t)apl_element_size(type));
}

// A number, true or false.
static bool apl_read_scalar(struct apl_reader* in, int32_t type, void* to) {
  apl_skip(in);
  char word[80];
  size_t length = 0;
  for (; in->at < in->end && length + 1 < sizeof word && (isalnum((unsigned char)*in->at) || strchr("+-._", *in->at));
       ++in->at)
    if (*in->at != '_') word[length++] = *in->at;
  word[length] = '\0';
  const char* name = apl_scalars[type].text;
  if (type == APL_BOOL) {
    const bool value = strcmp(word, "true") == 0;
    memcpy(to, &value, 1);
    return value || strcmp(word, "false") == 0 || apl_unreadable(in, "`%s` is no bool", word);
  }
  char special[16];
  const bool is_single = apl_is_storage(type) && length > 3 &&
                         (!strcmp(word + length - 3, "f32") || !strncmp(word + (word[0] == '-'), "f32.", 4));
  if (is_single) name = "f32";
  if (apl_is_float(type)) {
    snprintf(special, sizeof special, "-%s.inf", name);
    if (strcmp(word, special + 1) == 0) return apl_put_float(type, INFINITY, to), true;
    if (strcmp(word, special) == 0) return apl_put_float(type, -INFINITY, to), true;
    snprintf(special, sizeof special, "%s.nan", name);
    if (strcmp(word, special) == 0) return apl_put_float(type, NAN, to), true;
  }
  const size_t suffix = strlen(name);
  const bool is_hex = strstr(word, "0x") != NULL;
  if (length > suffix && strcmp(word + length - suffix, name) == 0) word[length - suffix] = '\0';
  char* end = word;
  if (apl_is_float(type)) {
    const double value = strtod(word, &end);
    apl_put_float(type, is_single ? (double)(float)value : value, to);
  } else {
    const char* digits = word + (word[0] == '-');
    const int base = is_hex ? 16 : strncmp(digits, "0b", 2) == 0 ? 2 : 10;
    if (base != 10) digits += 2;
    uint64_t value = strtoull(digits, &end, base);
    if (word[0] == '-') value = 0 - value;
    memcpy(to, &value, (size_t)apl_element_size(type));  // of a little-endian machine, as the binary format is
  }
  return (length && !*end) || apl_unreadable(in, "`%s` is no %s", word, name);
}

struct apl_elements_read {
  char* data;
  size_t bytes, capacity;
};
static bool apl_add_element(struct apl_elements_read* to, const void* element, size_t size) {
  if (to->bytes + size > to->capacity) {
    const size_t capacity = 2 * to->capacity + 4096;
    char* grown = realloc(to->data, capacity);
    if (!grown) return false;
    to->data = grown;
    to->capacity = capacity;
  }
  memcpy(to->data + to->bytes, element, size);
  to->bytes += size;
  return true;
}

// `[a, b]`, nested; dims that are not known yet are -1.
static bool apl_read_array(struct apl_reader* in, struct apl_value* value, int32_t dim, struct apl_elements_read* to) {
  if (dim == value->rank) {
    char element[8];
    return apl_read_scalar(in, value->type, element) &&
           (apl_add_element(to, element, (size_t)apl_element_size(value->type)) || apl_unreadable(in, "out of memory"));
  }
  if (value->type == APL_U8 && dim + 1 == value->rank && apl_accept(in, "\"")) {
    int64_t count = 0;
    for (; in->at < in->end && *in->at != '"'; ++in->at, ++count)
      if (!apl_add_element(to, in->at, 1)) return apl_unreadable(in, "out of memory");
    ++in->at;
    if (value->shape[dim] >= 0 && value->shape[dim] != count) return apl_unreadable(in, "rows of different lengths");
    value->shape[dim] = count;
    return true;
  }
  if (!apl_accept(in, "[")) return apl_unreadable(in, "an array of %d dims is wanted", value->rank);
  int64_t count = 0;
  while (!apl_accept(in, "]")) {
    if (count > 0 && !apl_accept(in, ",")) return apl_unreadable(in, "`,` or `]` is wanted");
    if (count > 0 && apl_accept(in, "]")) break;
    if (!apl_read_array(in, value, dim + 1, to)) return false;
    ++count;
  }
  if (value->shape[dim] >= 0 && value->shape[dim] != count) return apl_unreadable(in, "rows of different lengths");
  value->shape[dim] = count;
  return true;
}

static bool apl_read_empty(struct apl_reader* in, struct apl_value* value) {
  int64_t count = 1;
  for (int32_t d = 0; d < value->rank; ++d) {
    if (!apl_accept(in, "[")) return apl_unreadable(in, "an empty array of %d dims is wanted", value->rank);
    char* end;
    value->shape[d] = strtoll(in->at, &end, 10);
    in->at = end;
    count *= value->shape[d];
    if (!apl_accept(in, "]")) return apl_unreadable(in, "`]` is wanted");
  }
  const bool is_typed =
      apl_accept(in, apl_scalars[value->type].text) || (apl_is_storage(value->type) && apl_accept(in, "f32"));
  if (!is_typed || !apl_accept(in, ")") || count != 0)
    return apl_unreadable(in, "an empty array of %s is wanted", apl_scalars[value->type].text);
  return true;
}

static bool apl_read_binary(struct apl_reader* in, struct apl_value* value, struct apl_elements_read* to) {
  char head[APL_BINARY_HEAD + 8 * APL_MAX_RANK];
  apl_store_head(head, value);
  const size_t shape_bytes = 8 * (size_t)value->rank;
  if ((size_t)(in->end - in->at) < APL_BINARY_HEAD + shape_bytes || memcmp(head, in->at, APL_BINARY_HEAD) != 0)
    return apl_unreadable(in, "a binary value of %d dims of %s is wanted", value->rank, apl_scalars[value->type].text);
  memcpy(value->shape, in->at + APL_BINARY_HEAD, shape_bytes);
  in->at += APL_BINARY_HEAD + shape_bytes;
  size_t left = (size_t)(in->end - in->at) / (size_t)apl_element_size(value->type);
  for (int32_t d = 0; d < value->rank; ++d) {
    if (value->shape[d] < 0 || (value->shape[d] > 0 && (left /= (size_t)value->shape[d]) == 0))
      return apl_unreadable(in, "a binary value is cut off");
    if (value->shape[d] == 0) left = SIZE_MAX;
  }
  const size_t bytes = (size_t)apl_bytes(value);
  if ((size_t)(in->end - in->at) < bytes) return apl_unreadable(in, "a binary value is cut off");
  to->data = malloc(bytes + 1);
  if (!to->data) return apl_unreadable(in, "out of memory");
  memcpy(to->data, in->at, bytes);
  in->at += bytes;
  return true;
}

// The same; what is kept alone may be given as f32, which is rounded.
static bool apl_read_binary_or_round(struct apl_reader* in, struct apl_value* value, struct apl_elements_read* to) {
  const int32_t kept = value->type;
  const bool is_single = apl_is_storage(kept) && in->end - in->at >= APL_BINARY_HEAD && !memcmp(in->at + 3, " f32", 4);
  if (!is_single) return apl_read_binary(in, value, to);
  value->type = APL_F32;
  const bool ok = apl_read_binary(in, value, to);
  for (int64_t k = 0; ok && k < apl_elements(value); ++k) {
    float single;
    memcpy(&single, to->data + 4 * k, sizeof single);
    const uint64_t bits = apl_narrow_bits(kept, single);
    memcpy(to->data + apl_element_size(kept) * k, &bits, (size_t)apl_element_size(kept));
  }
  value->type = kept;
  return ok;
}

// Of a value of this type and rank: its shape, and its elements or its scalar. An error is in the reader.
static bool apl_read_data(struct apl_reader* in, struct apl_value* value, struct apl_elements_read* elements) {
  for (int32_t d = 0; d < value->rank; ++d) value->shape[d] = -1;
  apl_skip(in);
  bool ok = true;
  if (in->end - in->at >= 2 && in->at[0] == 'b' && in->at[1] == APL_BINARY_VERSION) {
    ok = apl_read_binary_or_round(in, value, elements);
    if (ok && value->rank == 0) memcpy(&value->scalar, elements->data, (size_t)apl_element_size(value->type));
  } else if (value->rank == 0) {
    ok = apl_read_scalar(in, value->type, &value->scalar);
  } else {
    ok = apl_accept(in, "empty(") ? apl_read_empty(in, value) : apl_read_array(in, value, 0, elements);
    for (int32_t d = 0; d < value->rank && ok; ++d)
      if (value->shape[d] < 0) ok = apl_unreadable(in, "the sizes of an empty array are not known: empty([0][1]i32)");
  }
  return ok;
}

// A value of the item's type. An error is in the reader, or in the context.
static bool apl_read_item(struct futhark_context* ctx, struct apl_reader* in, struct apl_item* item) {
  struct apl_value* value = &item->value;
  struct apl_elements_read elements = {NULL, 0, 0};
  bool ok = apl_read_data(in, value, &elements);
  if (ok && value->rank > 0) {
    int64_t shape[APL_MAX_RANK];
    memcpy(shape, value->shape, sizeof shape);
    ok = apl_fill_array(ctx, item, elements.data, shape) == APL_SUCCESS;
  }
  free(elements.data);
  return ok;
}

// ---- writing ----

static void apl_write_float(FILE* out, double x, int32_t type) {
  const char* name = apl_scalars[type].text;
  char digits[40];
  if (isnan(x)) {
    fprintf(out, "%s.nan", name);
  } else if (isinf(x)) {
    fprintf(out, "%s%s.inf", x < 0 ? "-" : "", name);
  } else {
    // The fewest digits that give the same number.
    for (int precision = 1; precision <= 17; ++precision) {
      snprintf(digits, sizeof digits, "%.*g", precision, x);
      const double again = strtod(digits, NULL);
      if (type == APL_F64   ? again == x
          : type == APL_F32 ? (float)again == (float)x
                            : apl_narrow_bits(type, again) == apl_narrow_bits(type, x))
        break;
    }
    fprintf(out, "%s%s%s", digits, strpbrk(digits, ".e") ? "" : ".0", name);
  }
}

static void apl_write_element(FILE* out, int32_t type, const void* at) {
  int64_t integer = 0;
  const size_t size = (size_t)apl_element_size(type);
  memcpy(&integer, at, size);
  float single;
  double number;
  if (apl_is_float(type) && size < sizeof single) {
    apl_write_float(out, apl_narrow_number(type, (uint64_t)integer), type);
    return;
  }
  switch (type) {
    case APL_BOOL: fputs(integer ? "true" : "false", out); return;
    case APL_UNIT: fputs("()", out); return;
    case APL_F32: memcpy(&single, at, 4), apl_write_float(out, single, type); return;
    case APL_F64: memcpy(&number, at, 8), apl_write_float(out, number, type); return;
    case APL_U8:
    case APL_U16:
    case APL_U32:
    case APL_U64: fprintf(out, "%llu%s", (unsigned long long)integer, apl_scalars[type].text); return;
    default: {
      const int unused = 64 - 8 * (int)size;
      integer = (int64_t)((uint64_t)integer << unused) >> unused;
      fprintf(out, "%lld%s", (long long)integer, apl_scalars[type].text);
    }
  }
}

static const char* apl_write_array(FILE* out, const struct apl_value* value, int32_t dim, const char* from) {
  if (dim == value->rank) {
    apl_write_element(out, value->type, from);
    return from + apl_element_size(value->type);
  }
  fputc('[', out);
  for (int64_t k = 0; k < value->shape[dim]; ++k) {
    if (k > 0) fputs(", ", out);
    from = apl_write_array(out, value, dim + 1, from);
  }
  fputc(']', out);
  return from;
}

// One item: a line of text, or bytes.
static int apl_write_item(struct futhark_context* ctx, FILE* out, const struct apl_item* item, bool binary) {
  const struct apl_value* value = &item->value;
  const size_t bytes = (size_t)apl_bytes(value);
  char* data = malloc(bytes + 8);
  if (!data) return apl_backend_error(&ctx->base, APL_OUT_OF_MEMORY, "out of memory");
  const int status = apl_fetch(ctx, item, data);
  if (status == APL_SUCCESS && binary) {
    char head[APL_BINARY_HEAD + 8 * APL_MAX_RANK];
    fwrite(head, 1, (size_t)(apl_store_head(head, value) - head), out);
    fwrite(data, 1, bytes, out);
  } else if (status == APL_SUCCESS) {
    if (value->rank > 0 && apl_elements(value) == 0) {
      fputs("empty(", out);
      for (int32_t d = 0; d < value->rank; ++d) fprintf(out, "[%lld]", (long long)value->shape[d]);
      fprintf(out, "%s)", apl_scalars[value->type].text);
    } else {
      apl_write_array(out, value, 0, data);
    }
    fputc('\n', out);
  }
  free(data);
  return status;
}

// All of a file, the caller's to free; a 0 stands behind it.
static char* apl_read_all(FILE* in, size_t* size) {
  char* text = NULL;
  size_t used = 0, capacity = 0;
  for (;;) {
    if (used + 1 >= capacity) {
      capacity = 2 * capacity + 65536;
      char* grown = realloc(text, capacity);
      if (!grown) break;
      text = grown;
    }
    const size_t got = fread(text + used, 1, capacity - used - 1, in);
    if (got == 0) break;
    used += got;
  }
  if (text) text[used] = '\0';
  *size = used;
  return text;
}
static char* apl_read_file(const char* name, size_t* size) {
  FILE* in = fopen(name, "rb");
  char* text = in ? apl_read_all(in, size) : NULL;
  if (in) fclose(in);
  return text;
}

#endif
