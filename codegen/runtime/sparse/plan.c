// The text of plans.
#include "codegen/runtime/sparse/sparse.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reader {
  const char *at, *end;
  int64_t line;
  int status;
  char* message;
  size_t size;
};

static int fail(struct reader* reader, int status, const char* format, ...) {
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

static void skip_blanks(struct reader* reader) {
  while (reader->at < reader->end && (*reader->at == ' ' || *reader->at == '\r')) ++reader->at;
}

static int line_ends(struct reader* reader) {
  skip_blanks(reader);
  return reader->at == reader->end || *reader->at == '\n';
}

static void next_line(struct reader* reader) {
  if (!line_ends(reader)) fail(reader, APL_SPARSE_MALFORMED, "more on the line than expected");
  if (reader->at < reader->end) ++reader->at;
  ++reader->line;
}

// Whether the line goes on with this word, which is then behind us.
static int word(struct reader* reader, const char* text) {
  skip_blanks(reader);
  const size_t length = strlen(text);
  if ((size_t)(reader->end - reader->at) < length || memcmp(reader->at, text, length) != 0) return 0;
  const char* after = reader->at + length;
  if (after < reader->end && *after != ' ' && *after != '\n' && *after != '\r') return 0;
  reader->at = after;
  return 1;
}

static void expect(struct reader* reader, const char* text) {
  if (!reader->status && !word(reader, text)) fail(reader, APL_SPARSE_MALFORMED, "expected `%s`", text);
}

static int64_t number(struct reader* reader, int64_t least, int64_t most) {
  if (reader->status) return least;
  skip_blanks(reader);
  int64_t value = 0;
  const char* first = reader->at;
  while (reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9' && reader->at - first < 18)
    value = value * 10 + (*reader->at++ - '0');
  if (reader->at == first || value < least || value > most) {
    fail(reader, APL_SPARSE_MALFORMED, "expected a number from %lld to %lld", (long long)least, (long long)most);
    return least;
  }
  return value;
}

static uint64_t hexadecimal(struct reader* reader) {
  skip_blanks(reader);
  uint64_t value = 0;
  int digits = 0;
  for (; reader->at < reader->end && digits < 17; ++digits, ++reader->at) {
    const char c = *reader->at;
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) break;
    value = value << 4 | (uint64_t)digit;
  }
  if (digits == 0 || digits > 16) fail(reader, APL_SPARSE_MALFORMED, "expected a hexadecimal number");
  return value;
}

// Room for one more element of an array that doubles; 0 without memory.
static int grow(void** data, int64_t count, int64_t* room, size_t element) {
  if (count < *room) return 1;
  const int64_t more = *room ? 2 * *room : 16;
  void* larger = realloc(*data, (size_t)more * element);
  if (!larger) return 0;
  *data = larger;
  *room = more;
  return 1;
}

static void read_order(struct reader* reader, struct apl_sparse_plan* plan) {
  expect(reader, "order");
  if (reader->status || word(reader, "natural")) return;
  // A row takes two bytes of text, so that a lie about their number allocates little.
  if (plan->rows > (reader->end - reader->at) / 2 + 1) {
    fail(reader, APL_SPARSE_MALFORMED, "the order of %lld rows is missing", (long long)plan->rows);
    return;
  }
  plan->row_order = malloc(((size_t)plan->rows + 1) * sizeof *plan->row_order);
  char* seen = calloc((size_t)plan->rows + 1, 1);
  if (!plan->row_order || !seen) fail(reader, APL_SPARSE_OUT_OF_MEMORY, "out of memory");
  for (int64_t k = 0; k < plan->rows && !reader->status; ++k) {
    const int64_t row = number(reader, 0, plan->rows - 1);
    if (!reader->status && seen[row]) fail(reader, APL_SPARSE_MALFORMED, "row %lld is there twice", (long long)row);
    if (reader->status) break;
    seen[row] = 1;
    plan->row_order[k] = (int32_t)row;
  }
  free(seen);
}

static void read_selection(struct reader* reader, struct apl_sparse_selection* selection) {
  const int64_t height = number(reader, 8, APL_SPARSE_GROUP);
  if (height != 8 && height != 16 && height != 32 && height != 64)
    fail(reader, APL_SPARSE_MALFORMED, "windows have 8, 16, 32 or 64 rows");
  if (reader->status || reader->at == reader->end || *reader->at++ != '@') {
    fail(reader, APL_SPARSE_MALFORMED, "expected `@`");
    return;
  }
  const int64_t window = number(reader, 0, APL_SPARSE_GROUP / height - 1);
  if (reader->end - reader->at < 2 || memcmp(reader->at, ">=", 2) != 0) {
    fail(reader, APL_SPARSE_MALFORMED, "expected `>=`");
    return;
  }
  reader->at += 2;
  selection->height = (uint8_t)height;
  selection->window = (uint8_t)window;
  selection->threshold = (uint8_t)number(reader, 1, height);
}

static void read_stretches(struct reader* reader, struct apl_sparse_plan* plan) {
  expect(reader, "groups");
  const int64_t groups = (plan->rows + APL_SPARSE_GROUP - 1) / APL_SPARSE_GROUP;
  if (number(reader, 0, groups) != groups)
    fail(reader, APL_SPARSE_MALFORMED, "%lld groups expected", (long long)groups);
  next_line(reader);
  int64_t stretch_room = 0, selection_room = 0, selections = 0, seen = 0;
  while (seen < groups && !reader->status) {
    struct apl_sparse_stretch stretch = {number(reader, 1, groups - seen), selections, 0, 0};
    for (;;) {
      if (word(reader, "ell")) break;
      if (word(reader, "run")) {
        stretch.runs = 1;
        break;
      }
      struct apl_sparse_selection selection = {8, 0, 1};
      read_selection(reader, &selection);
      if (reader->status) return;
      if (!grow((void**)&plan->selection, selections, &selection_room, sizeof selection)) {
        fail(reader, APL_SPARSE_OUT_OF_MEMORY, "out of memory");
        return;
      }
      plan->selection[selections++] = selection;
      ++stretch.selections;
    }
    if (reader->status) return;
    if (!grow((void**)&plan->stretch, plan->stretches, &stretch_room, sizeof stretch)) {
      fail(reader, APL_SPARSE_OUT_OF_MEMORY, "out of memory");
      return;
    }
    plan->stretch[plan->stretches++] = stretch;
    seen += stretch.groups;
    next_line(reader);
  }
}

static void read_tiling(struct reader* reader, struct apl_sparse_plan* plan) {
  read_order(reader, plan);
  next_line(reader);
  expect(reader, "lists");
  while (!reader->status && !word(reader, "elements")) {
    if (plan->widths == APL_SPARSE_MAX_WIDTHS) fail(reader, APL_SPARSE_MALFORMED, "too many widths");
    const int64_t width = number(reader, plan->widths ? plan->width[plan->widths - 1] + 1 : 1, 1 << 20);
    if (!reader->status) plan->width[plan->widths++] = (int32_t)width;
  }
  if (!reader->status && plan->widths == 0) fail(reader, APL_SPARSE_MALFORMED, "lists without a width");
  plan->list_elements = number(reader, 1, 1 << 30);
  expect(reader, "run");
  plan->run_length = number(reader, 1, 1 << 30);
  next_line(reader);
  read_stretches(reader, plan);
}

static void read_plan(struct reader* reader, struct apl_sparse_plan* plan) {
  expect(reader, "apl-sparse-plan");
  number(reader, 1, 1);
  next_line(reader);
  expect(reader, "matrix");
  plan->rows = number(reader, 0, INT32_MAX);
  plan->columns = number(reader, 0, INT32_MAX);
  plan->nonzeros = number(reader, 0, INT32_MAX);
  plan->hash = hexadecimal(reader);
  next_line(reader);
  expect(reader, "operator");
  plan->sddmm = word(reader, "sddmm");
  if (!plan->sddmm) expect(reader, "spmm");
  next_line(reader);
  expect(reader, "dense");
  plan->dense_size = number(reader, 1, INT32_MAX);
  expect(reader, "part");
  plan->dense_part = number(reader, 1, INT32_MAX);
  next_line(reader);
  while (!reader->status && word(reader, "note")) {
    const char* end = memchr(reader->at, '\n', (size_t)(reader->end - reader->at));
    reader->at = end ? end : reader->end;
    next_line(reader);
  }
  expect(reader, "form");
  plan->dense = word(reader, "dense");
  if (!plan->dense) expect(reader, "tiles");
  next_line(reader);
  if (!plan->dense && !reader->status) read_tiling(reader, plan);
  expect(reader, "end");
  next_line(reader);
  if (!reader->status && reader->at != reader->end) fail(reader, APL_SPARSE_MALFORMED, "text after the plan's end");
}

int apl_sparse_plan_parse(const char* text, size_t length, struct apl_sparse_plan** plan, char* message, size_t size) {
  char unused[1];
  struct reader reader = {text, text + length, 1, APL_SPARSE_FINE, size ? message : unused, size ? size : 1};
  *plan = calloc(1, sizeof **plan);
  if (!*plan) return fail(&reader, APL_SPARSE_OUT_OF_MEMORY, "out of memory");
  read_plan(&reader, *plan);
  if (reader.status) {
    apl_sparse_plan_free(*plan);
    *plan = NULL;
  }
  return reader.status;
}
