// The text of plans, and whether one is for a matrix.
#include "runtime/sparse/sparse.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct apl_plan_reader {
  const char *at, *end;
  int64_t line;
  int64_t version;  // in the first one the words for ELL tiles and nnz segments were `lists` and `run`
  int status;
  char* message;
  size_t size;
};

static int apl_plan_fail(struct apl_plan_reader* reader, int status, const char* format, ...) {
  if (reader->status) return reader->status;
  reader->status = status;
  const int start = snprintf(reader->message, reader->size, "line %lld: ", (long long)reader->line);
  va_list arguments;
  va_start(arguments, format);
  if (start >= 0 && (size_t)start < reader->size)
    vsnprintf(reader->message + start, reader->size - (size_t)start, format, arguments);
  va_end(arguments);
  return status;
}

static void apl_plan_skip_blanks(struct apl_plan_reader* reader) {
  while (reader->at < reader->end && (*reader->at == ' ' || *reader->at == '\r')) ++reader->at;
}

static int apl_plan_line_ends(struct apl_plan_reader* reader) {
  apl_plan_skip_blanks(reader);
  return reader->at == reader->end || *reader->at == '\n';
}

static void apl_plan_next_line(struct apl_plan_reader* reader) {
  if (!apl_plan_line_ends(reader)) apl_plan_fail(reader, APL_SPARSE_MALFORMED, "more on the line than expected");
  if (reader->at < reader->end) ++reader->at;
  ++reader->line;
}

// Whether the line goes on with this word, which is then behind us.
static int apl_plan_word(struct apl_plan_reader* reader, const char* text) {
  apl_plan_skip_blanks(reader);
  const size_t length = strlen(text);
  if ((size_t)(reader->end - reader->at) < length || memcmp(reader->at, text, length) != 0) return 0;
  const char* epilogue = reader->at + length;
  if (epilogue < reader->end && *epilogue != ' ' && *epilogue != '\n' && *epilogue != '\r') return 0;
  reader->at = epilogue;
  return 1;
}

static void apl_plan_expect(struct apl_plan_reader* reader, const char* text) {
  if (!reader->status && !apl_plan_word(reader, text))
    apl_plan_fail(reader, APL_SPARSE_MALFORMED, "expected `%s`", text);
}

static const char* apl_plan_ell(const struct apl_plan_reader* reader) { return reader->version == 1 ? "lists" : "ell"; }
static const char* apl_plan_segments(const struct apl_plan_reader* reader) {
  return reader->version == 1 ? "run" : "segments";
}

static int64_t apl_plan_number(struct apl_plan_reader* reader, int64_t least, int64_t most) {
  if (reader->status) return least;
  apl_plan_skip_blanks(reader);
  int64_t value = 0;
  const char* first = reader->at;
  while (reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9' && reader->at - first < 18)
    value = value * 10 + (*reader->at++ - '0');
  if (reader->at == first || value < least || value > most) {
    apl_plan_fail(reader, APL_SPARSE_MALFORMED, "expected a number from %lld to %lld", (long long)least,
                  (long long)most);
    return least;
  }
  return value;
}

static uint64_t apl_plan_hexadecimal(struct apl_plan_reader* reader) {
  apl_plan_skip_blanks(reader);
  uint64_t value = 0;
  int digits = 0;
  for (; reader->at < reader->end && digits < 17; ++digits, ++reader->at) {
    const char c = *reader->at;
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) break;
    value = value << 4 | (uint64_t)digit;
  }
  if (digits == 0 || digits > 16) apl_plan_fail(reader, APL_SPARSE_MALFORMED, "expected a hexadecimal number");
  return value;
}

// Room for one more element of an array that doubles; 0 without memory.
static int apl_plan_grow(void** data, int64_t count, int64_t* capacity, size_t element) {
  if (count < *capacity) return 1;
  const int64_t more = *capacity ? 2 * *capacity : 16;
  void* larger = realloc(*data, (size_t)more * element);
  if (!larger) return 0;
  *data = larger;
  *capacity = more;
  return 1;
}

static void apl_read_order(struct apl_plan_reader* reader, struct apl_sparse_plan* plan) {
  apl_plan_expect(reader, "order");
  if (reader->status || apl_plan_word(reader, "natural")) return;
  // A row takes two bytes of text, so that a lie about their number allocates little.
  if (plan->rows > (reader->end - reader->at) / 2 + 1) {
    apl_plan_fail(reader, APL_SPARSE_MALFORMED, "the order of %lld rows is missing", (long long)plan->rows);
    return;
  }
  plan->row_order = malloc(((size_t)plan->rows + 1) * sizeof *plan->row_order);
  char* seen = calloc((size_t)plan->rows + 1, 1);
  if (!plan->row_order || !seen) apl_plan_fail(reader, APL_SPARSE_OUT_OF_MEMORY, "out of memory");
  for (int64_t k = 0; k < plan->rows && !reader->status; ++k) {
    const int64_t row = apl_plan_number(reader, 0, plan->rows - 1);
    if (!reader->status && seen[row])
      apl_plan_fail(reader, APL_SPARSE_MALFORMED, "row %lld is there twice", (long long)row);
    if (reader->status) break;
    seen[row] = 1;
    plan->row_order[k] = (int32_t)row;
  }
  free(seen);
}

static void apl_read_selection(struct apl_plan_reader* reader, struct apl_sparse_selection* selection) {
  const int64_t height = apl_plan_number(reader, 8, APL_SPARSE_GROUP);
  if (height != 8 && height != 16 && height != 32 && height != 64)
    apl_plan_fail(reader, APL_SPARSE_MALFORMED, "windows have 8, 16, 32 or 64 rows");
  if (reader->status || reader->at == reader->end || *reader->at++ != '@') {
    apl_plan_fail(reader, APL_SPARSE_MALFORMED, "expected `@`");
    return;
  }
  const int64_t window = apl_plan_number(reader, 0, APL_SPARSE_GROUP / height - 1);
  if (reader->end - reader->at < 2 || memcmp(reader->at, ">=", 2) != 0) {
    apl_plan_fail(reader, APL_SPARSE_MALFORMED, "expected `>=`");
    return;
  }
  reader->at += 2;
  selection->height = (uint8_t)height;
  selection->window = (uint8_t)window;
  selection->threshold = (uint8_t)apl_plan_number(reader, 1, height);
}

static void apl_read_stretches(struct apl_plan_reader* reader, struct apl_sparse_plan* plan) {
  apl_plan_expect(reader, "groups");
  const int64_t groups = (plan->rows + APL_SPARSE_GROUP - 1) / APL_SPARSE_GROUP;
  if (apl_plan_number(reader, 0, groups) != groups)
    apl_plan_fail(reader, APL_SPARSE_MALFORMED, "%lld groups expected", (long long)groups);
  apl_plan_next_line(reader);
  int64_t stretch_capacity = 0, selection_capacity = 0, selections = 0, seen = 0;
  // Each once: a second time it finds nothing.
  enum { kMostSelections = 256 };
  while (seen < groups && !reader->status) {
    struct apl_sparse_stretch stretch = {apl_plan_number(reader, 1, groups - seen), selections, 0, 0};
    for (;;) {
      if (apl_plan_word(reader, "ell")) break;
      if (apl_plan_word(reader, apl_plan_segments(reader))) {
        stretch.segments = 1;
        break;
      }
      struct apl_sparse_selection selection = {8, 0, 1};
      apl_read_selection(reader, &selection);
      if (!reader->status && stretch.selections == kMostSelections)
        apl_plan_fail(reader, APL_SPARSE_MALFORMED, "more than %d selections", kMostSelections);
      if (reader->status) return;
      if (!apl_plan_grow((void**)&plan->selection, selections, &selection_capacity, sizeof selection)) {
        apl_plan_fail(reader, APL_SPARSE_OUT_OF_MEMORY, "out of memory");
        return;
      }
      plan->selection[selections++] = selection;
      ++stretch.selections;
    }
    if (reader->status) return;
    if (!apl_plan_grow((void**)&plan->stretch, plan->stretches, &stretch_capacity, sizeof stretch)) {
      apl_plan_fail(reader, APL_SPARSE_OUT_OF_MEMORY, "out of memory");
      return;
    }
    plan->stretch[plan->stretches++] = stretch;
    seen += stretch.groups;
    apl_plan_next_line(reader);
  }
}

static void apl_read_tiling(struct apl_plan_reader* reader, struct apl_sparse_plan* plan) {
  apl_read_order(reader, plan);
  apl_plan_next_line(reader);
  apl_plan_expect(reader, apl_plan_ell(reader));
  while (!reader->status && !apl_plan_word(reader, "elements")) {
    if (plan->widths == APL_SPARSE_MAX_WIDTHS) apl_plan_fail(reader, APL_SPARSE_MALFORMED, "too many widths");
    const int64_t width = apl_plan_number(reader, plan->widths ? plan->width[plan->widths - 1] + 1 : 1, 1 << 20);
    if (!reader->status) plan->width[plan->widths++] = (int32_t)width;
  }
  if (!reader->status && plan->widths == 0) apl_plan_fail(reader, APL_SPARSE_MALFORMED, "ELL tiles without a width");
  plan->ell_elements = apl_plan_number(reader, 1, 1 << 30);
  apl_plan_expect(reader, apl_plan_segments(reader));
  plan->segment_length = apl_plan_number(reader, 1, 1 << 30);
  apl_plan_next_line(reader);
  apl_read_stretches(reader, plan);
}

static void apl_plan_read(struct apl_plan_reader* reader, struct apl_sparse_plan* plan) {
  apl_plan_expect(reader, "apl-sparse-plan");
  reader->version = apl_plan_number(reader, 1, 2);
  apl_plan_next_line(reader);
  apl_plan_expect(reader, "matrix");
  plan->rows = apl_plan_number(reader, 0, INT32_MAX);
  plan->columns = apl_plan_number(reader, 0, INT32_MAX);
  plan->nonzeros = apl_plan_number(reader, 0, INT32_MAX);
  plan->hash = apl_plan_hexadecimal(reader);
  apl_plan_next_line(reader);
  apl_plan_expect(reader, "operator");
  plan->sddmm = apl_plan_word(reader, "sddmm");
  if (!plan->sddmm) apl_plan_expect(reader, "spmm");
  apl_plan_next_line(reader);
  apl_plan_expect(reader, "dense");
  plan->dense_size = apl_plan_number(reader, 1, INT32_MAX);
  apl_plan_expect(reader, "part");
  plan->dense_part = apl_plan_number(reader, 1, INT32_MAX);
  apl_plan_next_line(reader);
  while (!reader->status && apl_plan_word(reader, "note")) {
    const char* end = memchr(reader->at, '\n', (size_t)(reader->end - reader->at));
    reader->at = end ? end : reader->end;
    apl_plan_next_line(reader);
  }
  apl_plan_expect(reader, "form");
  plan->dense = apl_plan_word(reader, "dense");
  if (!plan->dense) apl_plan_expect(reader, "tiles");
  apl_plan_next_line(reader);
  if (!plan->dense && !reader->status) apl_read_tiling(reader, plan);
  apl_plan_expect(reader, "end");
  apl_plan_next_line(reader);
  if (!reader->status && reader->at != reader->end)
    apl_plan_fail(reader, APL_SPARSE_MALFORMED, "text after the plan's end");
}

int apl_sparse_plan_parse(const char* text, size_t length, struct apl_sparse_plan** plan, char* message, size_t size) {
  char unused[1];
  struct apl_plan_reader reader = {text,           text + length, 1, 0, APL_SPARSE_FINE, size ? message : unused,
                                   size ? size : 1};
  *plan = calloc(1, sizeof **plan);
  if (!*plan) return apl_plan_fail(&reader, APL_SPARSE_OUT_OF_MEMORY, "out of memory");
  apl_plan_read(&reader, *plan);
  if (reader.status) {
    apl_sparse_plan_free(*plan);
    *plan = NULL;
  }
  return reader.status;
}

void apl_sparse_plan_free(struct apl_sparse_plan* plan) {
  if (!plan) return;
  free(plan->row_order);
  free(plan->stretch);
  free(plan->selection);
  free(plan);
}

static uint64_t apl_plan_mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

uint64_t apl_sparse_hash(const struct apl_sparse_csr* matrix) {
  uint64_t sum = 0;
  for (int64_t row = 0; row < matrix->rows; ++row) {
    uint64_t hash = (uint64_t)row + 1;
    for (int64_t k = matrix->row_start[row]; k < matrix->row_start[row + 1]; ++k)
      hash = (hash ^ (uint32_t)matrix->column[k]) * 0x9E3779B97F4A7C15u + (hash >> 29);
    sum += apl_plan_mix(hash);
  }
  return apl_plan_mix(apl_plan_mix((uint64_t)matrix->rows + 1) + 3 * apl_plan_mix((uint64_t)matrix->columns + 2) + sum);
}

int apl_sparse_plan_fits(const struct apl_sparse_plan* plan, const struct apl_sparse_csr* matrix, char* message,
                         size_t size) {
  if (plan->rows != matrix->rows || plan->columns != matrix->columns) {
    snprintf(message, size, "is for a matrix of %lld by %lld, the operand has %lld by %lld", (long long)plan->rows,
             (long long)plan->columns, (long long)matrix->rows, (long long)matrix->columns);
    return APL_SPARSE_MALFORMED;
  }
  if (plan->nonzeros != matrix->nonzeros) {
    snprintf(message, size, "is for %lld non-zeros, the operand has %lld", (long long)plan->nonzeros,
             (long long)matrix->nonzeros);
    return APL_SPARSE_MALFORMED;
  }
  const uint64_t hash = apl_sparse_hash(matrix);
  if (plan->hash == hash) return APL_SPARSE_FINE;
  snprintf(message, size, "is for another pattern: its key is %016llx, the operand's %016llx",
           (unsigned long long)plan->hash, (unsigned long long)hash);
  return APL_SPARSE_MALFORMED;
}

const char* apl_sparse_status_text(int status) {
  switch (status) {
    case APL_SPARSE_FINE: return "all is well";
    case APL_SPARSE_MALFORMED: return "the plan is for another matrix";
    case APL_SPARSE_TOO_LARGE: return "its form has more values than 32 bits can number";
    case APL_SPARSE_PADDED: return "by the plan tiles have far more padding than the matrix has elements";
    default: return "out of memory";
  }
}
