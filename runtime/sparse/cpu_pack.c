// The form of tiles that kernels of CPUs want: who sets a row and who adds to it, and chunks of groups for threads.
#include <stdlib.h>
#include <string.h>

#include "runtime/sparse/cpu.h"

// The rows of a group by their numbers: sorted, as an order of the rows may scatter them.
struct group_rows {
  int32_t row[APL_SPARSE_GROUP];
  int written[APL_SPARSE_GROUP];
  int count;
};

static int compare_rows(const void* a, const void* b) {
  const int32_t x = *(const int32_t*)a, y = *(const int32_t*)b;
  return (x > y) - (x < y);
}

static void read_rows(struct group_rows* rows, const struct apl_sparse_tiles* t, int64_t group) {
  const int64_t begin = group * APL_SPARSE_GROUP;
  rows->count = (int)(t->rows - begin < APL_SPARSE_GROUP ? t->rows - begin : APL_SPARSE_GROUP);
  for (int k = 0; k < rows->count; ++k) {
    rows->row[k] = t->row_order ? t->row_order[begin + k] : (int32_t)(begin + k);
    rows->written[k] = 0;
  }
  if (t->row_order) qsort(rows->row, (size_t)rows->count, sizeof rows->row[0], compare_rows);
}

// Whether the row was written before; it is from now on.
static int write_row(struct group_rows* rows, int32_t row) {
  int low = 0, high = rows->count - 1;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (rows->row[middle] < row) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  const int before = rows->written[low];
  rows->written[low] = 1;
  return before;
}

static int32_t target_of(struct group_rows* rows, int32_t row) { return write_row(rows, row) ? ~row : row; }

static int64_t count_stripes(const struct apl_sparse_tiles* t) {
  int64_t stripes = 0;
  for (int64_t k = 0; k < t->runs; ++k)
    for (int64_t n = 0; n < t->run[k].count; ++n)
      stripes += n == 0 || t->run_row[t->run[k].first + n] != t->run_row[t->run[k].first + n - 1];
  return stripes;
}

// Multiplications of a group for each iteration of the dense loop; a row costs something even without.
static int64_t work_of_group(const struct apl_sparse_cpu_form* form, int64_t group) {
  const struct apl_sparse_tiles* t = form->tiles;
  int64_t work = APL_SPARSE_GROUP;
  if (form->rows)
    return work + form->stripe_first[form->group_stripe[group + 1]] - form->stripe_first[form->group_stripe[group]];
  for (int64_t k = t->group_block[group]; k < t->group_block[group + 1]; ++k)
    work += t->block[k].steps * APL_SPARSE_STEP * t->block[k].height / 2;
  for (int64_t k = t->group_lists[group]; k < t->group_lists[group + 1]; ++k)
    work += (int64_t)t->list_tile[k].lists * t->list_tile[k].width;
  for (int64_t k = t->group_run[group]; k < t->group_run[group + 1]; ++k) work += t->run[k].count;
  return work;
}

static void fill_group(struct apl_sparse_cpu_form* form, int64_t group, int64_t* clear) {
  const struct apl_sparse_tiles* t = form->tiles;
  struct group_rows rows;
  read_rows(&rows, t, group);
  for (int64_t k = t->group_block[group]; k < t->group_block[group + 1]; ++k)
    for (int64_t i = 0; i < t->block[k].height && t->block[k].position + i < t->rows; ++i) {
      const int64_t position = t->block[k].position + i;
      const int32_t row = t->row_order ? t->row_order[position] : (int32_t)position;
      if (write_row(&rows, row)) form->block_adds[k] |= (uint64_t)1 << i;
    }
  for (int64_t k = t->group_lists[group]; k < t->group_lists[group + 1]; ++k)
    for (int64_t n = t->list_tile[k].first_list; n < t->list_tile[k].first_list + t->list_tile[k].lists; ++n)
      form->list_target[n] = target_of(&rows, t->list_row[n]);
  for (int64_t k = t->group_run[group]; k < t->group_run[group + 1]; ++k)
    for (int64_t n = t->run[k].first; n < t->run[k].first + t->run[k].count; ++n) {
      if (n > t->run[k].first && t->run_row[n] == t->run_row[n - 1]) continue;
      form->stripe_target[form->stripes] = target_of(&rows, t->run_row[n]);
      form->stripe_first[form->stripes++] = n;
    }
  for (int k = 0; k < rows.count; ++k)
    if (!rows.written[k]) form->clear[(*clear)++] = rows.row[k];
}

static int longest_first(const void* a, const void* b) {
  const struct apl_sparse_chunk *x = a, *y = b;
  if (x->work != y->work) return x->work < y->work ? 1 : -1;
  return (x->begin > y->begin) - (x->begin < y->begin);
}

// Neighbours stay together, as they share rows of B; about eight chunks for each thread even out the rest.
static void cut_chunks(struct apl_sparse_cpu_form* form, int threads) {
  enum { kChunksEach = 8, kLeastWork = 512 };
  const int64_t groups = form->tiles->groups;
  int64_t all = 0;
  for (int64_t group = 0; group < groups; ++group) all += work_of_group(form, group);
  int64_t wanted = all / (kChunksEach * (int64_t)(threads < 1 ? 1 : threads)) + 1;
  if (threads <= 1) wanted = all;
  if (wanted < kLeastWork) wanted = kLeastWork;
  for (int64_t begin = 0; begin < groups;) {
    struct apl_sparse_chunk chunk = {begin, begin, 0};
    while (chunk.end < groups && (chunk.end == begin || chunk.work < wanted))
      chunk.work += work_of_group(form, chunk.end++);
    begin = chunk.end;
    form->chunk[form->chunks++] = chunk;
  }
  qsort(form->chunk, (size_t)form->chunks, sizeof form->chunk[0], longest_first);
}

int apl_sparse_cpu_form_new(const struct apl_sparse_tiles* tiles, int threads, struct apl_sparse_cpu_form** made) {
  *made = NULL;
  struct apl_sparse_cpu_form* form = calloc(1, sizeof *form);
  if (!form) return APL_SPARSE_OUT_OF_MEMORY;
  form->tiles = tiles;
  const size_t stripes = (size_t)count_stripes(tiles), groups = (size_t)tiles->groups + 1;
  form->block_adds = calloc((size_t)tiles->blocks + 1, sizeof *form->block_adds);
  form->list_target = malloc(((size_t)tiles->lists + 1) * sizeof *form->list_target);
  form->stripe_target = malloc((stripes + 1) * sizeof *form->stripe_target);
  form->stripe_first = malloc((stripes + 1) * sizeof *form->stripe_first);
  form->group_stripe = malloc(groups * sizeof *form->group_stripe);
  form->clear = malloc(((size_t)tiles->rows + 1) * sizeof *form->clear);
  form->group_clear = malloc(groups * sizeof *form->group_clear);
  form->chunk = malloc(groups * sizeof *form->chunk);
  if (!form->block_adds || !form->list_target || !form->stripe_target || !form->stripe_first || !form->group_stripe ||
      !form->clear || !form->group_clear || !form->chunk) {
    apl_sparse_cpu_form_free(form);
    return APL_SPARSE_OUT_OF_MEMORY;
  }
  int64_t clear = 0;
  for (int64_t group = 0; group < tiles->groups; ++group) {
    form->group_stripe[group] = form->stripes;
    form->group_clear[group] = clear;
    fill_group(form, group, &clear);
  }
  form->group_stripe[tiles->groups] = form->stripes;
  form->stripe_first[form->stripes] = tiles->run_elements;
  form->group_clear[tiles->groups] = clear;
  cut_chunks(form, threads);
  *made = form;
  return APL_SPARSE_FINE;
}

int apl_sparse_cpu_form_rows(const struct apl_sparse_csr* matrix, int threads, struct apl_sparse_cpu_form** made) {
  *made = NULL;
  struct apl_sparse_cpu_form* form = calloc(1, sizeof *form);
  if (!form) return APL_SPARSE_OUT_OF_MEMORY;
  const int64_t groups = (matrix->rows + APL_SPARSE_GROUP - 1) / APL_SPARSE_GROUP;
  const size_t rows = (size_t)matrix->rows;
  struct apl_sparse_tiles* t = form->rows = calloc(1, sizeof *t);
  form->stripe_target = malloc((rows + 1) * sizeof *form->stripe_target);
  form->stripe_first = malloc((rows + 1) * sizeof *form->stripe_first);
  form->group_stripe = malloc(((size_t)groups + 1) * sizeof *form->group_stripe);
  form->group_clear = calloc((size_t)groups + 1, sizeof *form->group_clear);
  form->chunk = malloc(((size_t)groups + 1) * sizeof *form->chunk);
  if (!t || !form->stripe_target || !form->stripe_first || !form->group_stripe || !form->group_clear || !form->chunk) {
    apl_sparse_cpu_form_free(form);
    return APL_SPARSE_OUT_OF_MEMORY;
  }
  form->tiles = t;
  t->rows = matrix->rows;
  t->columns = matrix->columns;
  t->nonzeros = t->run_elements = matrix->nonzeros;
  t->groups = groups;
  t->group_block = t->group_lists = t->group_run = form->group_clear;  // all are empty
  form->stripes = matrix->rows;
  for (int64_t row = 0; row < matrix->rows; ++row) form->stripe_target[row] = (int32_t)row;
  memcpy(form->stripe_first, matrix->row_start, (rows + 1) * sizeof *form->stripe_first);
  for (int64_t group = 0; group <= groups; ++group)
    form->group_stripe[group] = group < groups ? group * APL_SPARSE_GROUP : matrix->rows;
  apl_sparse_cpu_form_columns(form, matrix->column, NULL);
  cut_chunks(form, threads);
  *made = form;
  return APL_SPARSE_FINE;
}

void apl_sparse_cpu_form_columns(struct apl_sparse_cpu_form* form, const int32_t* column, const int32_t* row) {
  // They are read.
  form->rows->run_column = (int32_t*)(uintptr_t)column;
  form->rows->run_row = (int32_t*)(uintptr_t)row;
}

void apl_sparse_cpu_form_free(struct apl_sparse_cpu_form* form) {
  if (!form) return;
  free(form->rows);
  free(form->block_adds);
  free(form->list_target);
  free(form->stripe_target);
  free(form->stripe_first);
  free(form->group_stripe);
  free(form->clear);
  free(form->group_clear);
  free(form->chunk);
  free(form);
}

int apl_sparse_cpu_is_half(enum apl_sparse_type type) {
  return type == APL_SPARSE_F16 || type == APL_SPARSE_F16_WIDE || type == APL_SPARSE_BF16_WIDE;
}
static size_t packed_bytes(enum apl_sparse_type type) {
  return apl_sparse_cpu_is_half(type) ? sizeof(float) : apl_sparse_type_bytes(type);
}

size_t apl_sparse_cpu_values_bytes(const struct apl_sparse_cpu_form* form, enum apl_sparse_type type) {
  const struct apl_sparse_tiles* t = form->tiles;
  return (size_t)(t->block_elements + t->list_elements + t->run_elements + 1) * packed_bytes(type);
}

// Without sources: as they are.
#define APL_SPARSE_GATHER(from_type, to_type)                                                       \
  for (int64_t k = 0; k < count; ++k) {                                                             \
    const int64_t from = source ? source[k] : k;                                                    \
    ((to_type*)packed)[at + k] = from < 0 ? (to_type)0 : (to_type)((const from_type*)values)[from]; \
  }

static void gather(enum apl_sparse_type type, const int32_t* source, int64_t count, const void* values, int64_t at,
                   void* packed) {
  switch (type) {
    case APL_SPARSE_F32:
    case APL_SPARSE_I32: APL_SPARSE_GATHER(uint32_t, uint32_t); break;
    case APL_SPARSE_F64:
    case APL_SPARSE_I64: APL_SPARSE_GATHER(uint64_t, uint64_t); break;
    case APL_SPARSE_I8: APL_SPARSE_GATHER(uint8_t, uint8_t); break;
    case APL_SPARSE_I16: APL_SPARSE_GATHER(uint16_t, uint16_t); break;
#ifdef __FLT16_MAX__
    case APL_SPARSE_F16:
    case APL_SPARSE_F16_WIDE: APL_SPARSE_GATHER(_Float16, float); break;
#endif
    case APL_SPARSE_BF16_WIDE:
      APL_SPARSE_GATHER(uint16_t, uint32_t);
      for (int64_t k = 0; k < count; ++k) ((uint32_t*)packed)[at + k] <<= 16;
      break;
    default: break;
  }
}

void apl_sparse_cpu_values(const struct apl_sparse_cpu_form* form, enum apl_sparse_type type, const void* values,
                           void* packed) {
  const struct apl_sparse_tiles* t = form->tiles;
  gather(type, t->block_source, t->block_elements, values, 0, packed);
  gather(type, t->list_source, t->list_elements, values, t->block_elements, packed);
  gather(type, t->run_source, t->run_elements, values, t->block_elements + t->list_elements, packed);
}
