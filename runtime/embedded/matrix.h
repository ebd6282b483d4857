// Sparse operands of programs that read values: Matrix Market files, and dense matrices whose zeros are left out.
#ifndef APL_MATRIX_H
#define APL_MATRIX_H

#include "runtime/embedded/sparse_values.h"
#include "runtime/embedded/text.h"

struct apl_entry_read {
  int32_t row, column;
  union {
    double number;
    int64_t integer;
  } value;
};
struct apl_entries_read {
  struct apl_entry_read* list;
  int64_t count, capacity;
};

static bool apl_add_entry(struct apl_entries_read* to, struct apl_entry_read entry) {
  if (to->count == to->capacity) {
    const int64_t capacity = 2 * to->capacity + 1024;
    struct apl_entry_read* grown = realloc(to->list, sizeof *grown * (size_t)capacity);
    if (!grown) return false;
    to->list = grown;
    to->capacity = capacity;
  }
  to->list[to->count++] = entry;
  return true;
}

static int apl_compare_entries(const void* a, const void* b) {
  const struct apl_entry_read *x = a, *y = b;
  if (x->row != y->row) return x->row < y->row ? -1 : 1;
  return (x->column > y->column) - (x->column < y->column);
}

// Entries at one position are added.
static bool apl_sparse_of_entries(struct futhark_context* ctx, struct apl_reader* in, struct apl_object* object,
                                  int64_t rows, int64_t columns, struct apl_entries_read* entries) {
  const int32_t type = object->items[1].value.type;
  const int64_t size = apl_element_size(type);
  int64_t* start = calloc((size_t)rows + 1, sizeof *start);
  int32_t* column = malloc(sizeof *column * (size_t)(entries->count + 1));
  char* values = malloc((size_t)(entries->count * size) + 8);
  bool ok = start && column && values;
  if (!ok) apl_unreadable(in, "out of memory");
  if (ok && entries->count > 0)
    qsort(entries->list, (size_t)entries->count, sizeof *entries->list, apl_compare_entries);
  int64_t count = 0;
  for (int64_t k = 0; k < entries->count && ok;) {
    struct apl_entry_read entry = entries->list[k++];
    for (; k < entries->count && apl_compare_entries(&entry, &entries->list[k]) == 0; ++k) {
      if (apl_is_float(type)) {
        entry.value.number += entries->list[k].value.number;
      } else {
        entry.value.integer = (int64_t)((uint64_t)entry.value.integer + (uint64_t)entries->list[k].value.integer);
      }
    }
    if (apl_is_float(type)) {
      apl_put_float(type, entry.value.number, values + count * size);
    } else {
      memcpy(values + count * size, &entry.value.integer, (size_t)size);
    }
    column[count++] = entry.column;
    start[entry.row + 1] = count;
  }
  for (int64_t i = 0; i < rows && ok; ++i)
    if (start[i + 1] < start[i]) start[i + 1] = start[i];  // an empty row
  const struct apl_sparse_csr matrix = {rows, columns, count, start, column, values};
  if (ok) ok = apl_fill_sparse(ctx, object, &matrix) == APL_SUCCESS;
  free(start);
  free(column);
  free(values);
  return ok;
}

static bool apl_read_number(struct apl_reader* in, int32_t type, struct apl_entry_read* entry, double sign) {
  char* end;
  if (apl_is_float(type)) {
    entry->value.number = sign * strtod(in->at, &end);
  } else {
    entry->value.integer = (int64_t)sign * strtoll(in->at, &end, 10);
    if (*end == '.') return apl_unreadable(in, "a matrix of %s has whole numbers", apl_scalars[type].text);
  }
  if (end == in->at) return apl_unreadable(in, "an entry of a matrix has no value");
  in->at = end;
  return true;
}

static bool apl_read_count(struct apl_reader* in, int64_t least, int64_t most, int64_t* number) {
  char* end;
  *number = strtoll(in->at, &end, 10);
  if (end == in->at) return apl_unreadable(in, "a matrix file has a number less than it says");
  in->at = end;
  return (*number >= least && *number <= most) || apl_unreadable(in, "%lld in a matrix file is not from %lld to %lld",
                                                                 (long long)*number, (long long)least, (long long)most);
}

static void apl_skip_line(struct apl_reader* in) {
  while (in->at < in->end && *in->at != '\n') ++in->at;
  if (in->at < in->end) ++in->at;
}

// Coordinates with numbers or without. The text ends with a 0.
static bool apl_read_matrix_market(struct futhark_context* ctx, struct apl_reader* in, struct apl_object* object) {
  const int32_t type = object->items[1].value.type;
  const int64_t bytes = in->end - in->at;
  char kind[16], field[16], symmetry[24];
  if (sscanf(in->at, "%*[%]MatrixMarket matrix %15s %15s %23s", kind, field, symmetry) != 3 ||
      strcmp(kind, "coordinate") != 0)
    return apl_unreadable(in, "a sparse operand is a matrix market file of coordinates");
  const bool is_pattern = strcmp(field, "pattern") == 0, is_skew = strcmp(symmetry, "skew-symmetric") == 0;
  const bool is_symmetric = is_skew || strcmp(symmetry, "symmetric") == 0;
  if (!is_pattern && strcmp(field, "real") != 0 && strcmp(field, "integer") != 0)
    return apl_unreadable(in, "%s matrices are not known", field);
  if (!is_symmetric && strcmp(symmetry, "general") != 0)
    return apl_unreadable(in, "%s matrices are not known", symmetry);
  apl_skip_line(in);
  while (in->at < in->end && (*in->at == '%' || *in->at == '\n' || *in->at == '\r')) apl_skip_line(in);
  // Whatever the sizes say, memory is bounded by the text.
  const int64_t most = 1000000 + 8 * bytes;
  int64_t rows, columns, count;
  if (!apl_read_count(in, 0, most, &rows) || !apl_read_count(in, 0, most, &columns) ||
      !apl_read_count(in, 0, INT64_MAX, &count))
    return false;
  struct apl_entries_read entries = {NULL, 0, 0};
  bool ok = true;
  for (int64_t k = 0; k < count && ok; ++k) {
    int64_t i, j;
    struct apl_entry_read entry = {0, 0, {0}};
    ok = apl_read_count(in, 1, rows, &i) && apl_read_count(in, 1, columns, &j);
    if (!ok) break;
    entry.row = (int32_t)(i - 1);
    entry.column = (int32_t)(j - 1);
    const char* number = in->at;
    if (is_pattern && apl_is_float(type)) entry.value.number = 1;
    if (is_pattern && !apl_is_float(type)) entry.value.integer = 1;
    if (!is_pattern) ok = apl_read_number(in, type, &entry, 1);
    if (ok && is_symmetric && i < j) ok = apl_unreadable(in, "a symmetric matrix has an entry above its diagonal");
    if (ok && !apl_add_entry(&entries, entry)) ok = apl_unreadable(in, "out of memory");
    if (!ok || !is_symmetric || i == j) continue;
    const char* next = in->at;
    in->at = number;
    if (!is_pattern) apl_read_number(in, type, &entry, is_skew ? -1 : 1);
    in->at = next;
    entry.row = (int32_t)(j - 1);
    entry.column = (int32_t)(i - 1);
    if (!apl_add_entry(&entries, entry)) ok = apl_unreadable(in, "out of memory");
  }
  while (in->at < in->end && isspace((unsigned char)*in->at)) ++in->at;
  if (ok && in->at != in->end)
    ok = apl_unreadable(in, "a matrix file goes on after its %lld entries", (long long)count);
  if (ok) ok = apl_sparse_of_entries(ctx, in, object, rows, columns, &entries);
  free(entries.list);
  return ok;
}

// A dense matrix in one of the formats of values.
static bool apl_read_dense_matrix(struct futhark_context* ctx, struct apl_reader* in, struct apl_object* object) {
  struct apl_value value = {.type = object->items[1].value.type, .rank = 2};
  struct apl_elements_read elements = {NULL, 0, 0};
  bool ok = apl_read_data(in, &value, &elements);
  const int64_t rows = value.shape[0], columns = value.shape[1], size = apl_element_size(value.type);
  int64_t* start = ok ? calloc((size_t)rows + 1, sizeof *start) : NULL;
  int32_t* column = ok ? malloc(sizeof *column * (size_t)(rows * columns + 1)) : NULL;
  if (ok && !(start && column)) ok = apl_unreadable(in, "out of memory");
  int64_t count = 0;
  for (int64_t i = 0; i < rows && ok; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const char* from = elements.data + (i * columns + j) * size;
      uint64_t bits = 0;
      memcpy(&bits, from, (size_t)size);
      // Zeros of either sign are none.
      if (bits == 0 || (apl_is_float(value.type) && bits == (uint64_t)1 << (8 * size - 1))) continue;
      memmove(elements.data + count * size, from, (size_t)size);
      column[count++] = (int32_t)j;
    }
    start[i + 1] = count;
  }
  const char nothing = 0;
  const struct apl_sparse_csr matrix = {rows, columns, count, start, column, elements.data ? elements.data : &nothing};
  if (ok) ok = apl_fill_sparse(ctx, object, &matrix) == APL_SUCCESS;
  free(start);
  free(column);
  free(elements.data);
  return ok;
}

// A value of any type; `in` may be a matrix file for a sparse one.
static bool apl_read_object(struct futhark_context* ctx, struct apl_reader* in, struct apl_object* object) {
  if (object->type->soa) {
    if (in->end - in->at > 2 && (strncmp(in->at, "%%Matr", 6) == 0 || strncmp(in->at, "%Matr", 5) == 0))
      return apl_read_matrix_market(ctx, in, object);
    return apl_read_dense_matrix(ctx, in, object);
  }
  for (int32_t part = 0; part < object->type->value_count; ++part)
    if (!apl_read_item(ctx, in, &object->items[part])) return false;
  return true;
}

#endif
