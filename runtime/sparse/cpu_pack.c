// The packed operand that kernels of CPUs want: who sets a row and who adds to it, and chunks of groups for threads.
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
  for (int64_t k = 0; k < t->segments; ++k)
    for (int64_t n = 0; n < t->segment[k].count; ++n)
      stripes += n == 0 || t->segment_row[t->segment[k].first + n] != t->segment_row[t->segment[k].first + n - 1];
  return stripes;
}

// Multiplications of a group for each iteration of the dense loop; a row costs something even without.
static int64_t work_of_group(const struct apl_sparse_cpu_packed* packed, int64_t group) {
  const struct apl_sparse_tiles* t = packed->tiles;
  int64_t work = APL_SPARSE_GROUP;
  if (packed->rows)
    return work + packed->stripe_first[packed->group_stripe[group + 1]] -
           packed->stripe_first[packed->group_stripe[group]];
  for (int64_t k = t->group_block[group]; k < t->group_block[group + 1]; ++k)
    work += t->block[k].steps * APL_SPARSE_STEP * t->block[k].height / 2;
  for (int64_t k = t->group_ell[group]; k < t->group_ell[group + 1]; ++k)
    work += (int64_t)t->ell_tile[k].ell_rows * t->ell_tile[k].width;
  for (int64_t k = t->group_segment[group]; k < t->group_segment[group + 1]; ++k) work += t->segment[k].count;
  return work;
}

static void fill_group(struct apl_sparse_cpu_packed* packed, int64_t group, int64_t* clear) {
  const struct apl_sparse_tiles* t = packed->tiles;
  struct group_rows rows;
  read_rows(&rows, t, group);
  for (int64_t k = t->group_block[group]; k < t->group_block[group + 1]; ++k)
    for (int64_t i = 0; i < t->block[k].height && t->block[k].position + i < t->rows; ++i) {
      const int64_t position = t->block[k].position + i;
      const int32_t row = t->row_order ? t->row_order[position] : (int32_t)position;
      if (write_row(&rows, row)) packed->block_adds[k] |= (uint64_t)1 << i;
    }
  for (int64_t k = t->group_ell[group]; k < t->group_ell[group + 1]; ++k)
    for (int64_t n = t->ell_tile[k].first_ell_row; n < t->ell_tile[k].first_ell_row + t->ell_tile[k].ell_rows; ++n)
      packed->ell_target[n] = target_of(&rows, t->ell_row[n]);
  for (int64_t k = t->group_segment[group]; k < t->group_segment[group + 1]; ++k)
    for (int64_t n = t->segment[k].first; n < t->segment[k].first + t->segment[k].count; ++n) {
      if (n > t->segment[k].first && t->segment_row[n] == t->segment_row[n - 1]) continue;
      packed->stripe_target[packed->stripes] = target_of(&rows, t->segment_row[n]);
      packed->stripe_first[packed->stripes++] = n;
    }
  for (int k = 0; k < rows.count; ++k)
    if (!rows.written[k]) packed->clear[(*clear)++] = rows.row[k];
}

static int longest_first(const void* a, const void* b) {
  const struct apl_sparse_chunk *x = a, *y = b;
  if (x->work != y->work) return x->work < y->work ? 1 : -1;
  return (x->begin > y->begin) - (x->begin < y->begin);
}

// Neighbours stay together, as they share rows of B; about eight chunks for each thread even out the rest.
static void cut_chunks(struct apl_sparse_cpu_packed* packed, int threads) {
  enum { kChunksEach = 8, kLeastWork = 512 };
  const int64_t groups = packed->tiles->groups;
  int64_t all = 0;
  for (int64_t group = 0; group < groups; ++group) all += work_of_group(packed, group);
  int64_t wanted = all / (kChunksEach * (int64_t)(threads < 1 ? 1 : threads)) + 1;
  if (threads <= 1) wanted = all;
  if (wanted < kLeastWork) wanted = kLeastWork;
  for (int64_t begin = 0; begin < groups;) {
    struct apl_sparse_chunk chunk = {begin, begin, 0};
    while (chunk.end < groups && (chunk.end == begin || chunk.work < wanted))
      chunk.work += work_of_group(packed, chunk.end++);
    begin = chunk.end;
    packed->chunk[packed->chunks++] = chunk;
  }
  qsort(packed->chunk, (size_t)packed->chunks, sizeof packed->chunk[0], longest_first);
}

int apl_sparse_cpu_packed_new(const struct apl_sparse_tiles* tiles, int threads, struct apl_sparse_cpu_packed** made) {
  *made = NULL;
  struct apl_sparse_cpu_packed* packed = calloc(1, sizeof *packed);
  if (!packed) return APL_SPARSE_OUT_OF_MEMORY;
  packed->tiles = tiles;
  const size_t stripes = (size_t)count_stripes(tiles), groups = (size_t)tiles->groups + 1;
  packed->block_adds = calloc((size_t)tiles->blocks + 1, sizeof *packed->block_adds);
  packed->ell_target = malloc(((size_t)tiles->ell_rows + 1) * sizeof *packed->ell_target);
  packed->stripe_target = malloc((stripes + 1) * sizeof *packed->stripe_target);
  packed->stripe_first = malloc((stripes + 1) * sizeof *packed->stripe_first);
  packed->group_stripe = malloc(groups * sizeof *packed->group_stripe);
  packed->clear = malloc(((size_t)tiles->rows + 1) * sizeof *packed->clear);
  packed->group_clear = malloc(groups * sizeof *packed->group_clear);
  packed->chunk = malloc(groups * sizeof *packed->chunk);
  if (!packed->block_adds || !packed->ell_target || !packed->stripe_target || !packed->stripe_first ||
      !packed->group_stripe || !packed->clear || !packed->group_clear || !packed->chunk) {
    apl_sparse_cpu_packed_free(packed);
    return APL_SPARSE_OUT_OF_MEMORY;
  }
  int64_t clear = 0;
  for (int64_t group = 0; group < tiles->groups; ++group) {
    packed->group_stripe[group] = packed->stripes;
    packed->group_clear[group] = clear;
    fill_group(packed, group, &clear);
  }
  packed->group_stripe[tiles->groups] = packed->stripes;
  packed->stripe_first[packed->stripes] = tiles->segment_elements;
  packed->group_clear[tiles->groups] = clear;
  cut_chunks(packed, threads);
  *made = packed;
  return APL_SPARSE_FINE;
}

int apl_sparse_cpu_packed_rows(const struct apl_sparse_csr* matrix, int threads, struct apl_sparse_cpu_packed** made) {
  *made = NULL;
  struct apl_sparse_cpu_packed* packed = calloc(1, sizeof *packed);
  if (!packed) return APL_SPARSE_OUT_OF_MEMORY;
  const int64_t groups = (matrix->rows + APL_SPARSE_GROUP - 1) / APL_SPARSE_GROUP;
  const size_t rows = (size_t)matrix->rows;
  struct apl_sparse_tiles* t = packed->rows = calloc(1, sizeof *t);
  packed->stripe_target = malloc((rows + 1) * sizeof *packed->stripe_target);
  packed->stripe_first = malloc((rows + 1) * sizeof *packed->stripe_first);
  packed->group_stripe = malloc(((size_t)groups + 1) * sizeof *packed->group_stripe);
  packed->group_clear = calloc((size_t)groups + 1, sizeof *packed->group_clear);
  packed->chunk = malloc(((size_t)groups + 1) * sizeof *packed->chunk);
  if (!t || !packed->stripe_target || !packed->stripe_first || !packed->group_stripe || !packed->group_clear ||
      !packed->chunk) {
    apl_sparse_cpu_packed_free(packed);
    return APL_SPARSE_OUT_OF_MEMORY;
  }
  packed->tiles = t;
  t->rows = matrix->rows;
  t->columns = matrix->columns;
  t->nonzeros = t->segment_elements = matrix->nonzeros;
  t->groups = groups;
  t->group_block = t->group_ell = t->group_segment = packed->group_clear;  // all are empty
  packed->stripes = matrix->rows;
  for (int64_t row = 0; row < matrix->rows; ++row) packed->stripe_target[row] = (int32_t)row;
  memcpy(packed->stripe_first, matrix->row_start, (rows + 1) * sizeof *packed->stripe_first);
  for (int64_t group = 0; group <= groups; ++group)
    packed->group_stripe[group] = group < groups ? group * APL_SPARSE_GROUP : matrix->rows;
  apl_sparse_cpu_packed_columns(packed, matrix->column, NULL);
  cut_chunks(packed, threads);
  *made = packed;
  return APL_SPARSE_FINE;
}

void apl_sparse_cpu_packed_columns(struct apl_sparse_cpu_packed* packed, const int32_t* column, const int32_t* row) {
  // They are read.
  packed->rows->segment_column = (int32_t*)(uintptr_t)column;
  packed->rows->segment_row = (int32_t*)(uintptr_t)row;
}

void apl_sparse_cpu_packed_free(struct apl_sparse_cpu_packed* packed) {
  if (!packed) return;
  free(packed->rows);
  free(packed->block_adds);
  free(packed->ell_target);
  free(packed->stripe_target);
  free(packed->stripe_first);
  free(packed->group_stripe);
  free(packed->clear);
  free(packed->group_clear);
  free(packed->chunk);
  free(packed);
}

int apl_sparse_cpu_is_half(enum apl_sparse_type type) {
  return type == APL_SPARSE_F16 || type == APL_SPARSE_F16_WIDE || type == APL_SPARSE_BF16_WIDE;
}
static size_t packed_bytes(enum apl_sparse_type type) {
  return apl_sparse_cpu_is_half(type) ? sizeof(float) : apl_sparse_type_bytes(type);
}

size_t apl_sparse_cpu_values_bytes(const struct apl_sparse_cpu_packed* packed, enum apl_sparse_type type) {
  const struct apl_sparse_tiles* t = packed->tiles;
  return (size_t)(t->block_elements + t->ell_elements + t->segment_elements + 1) * packed_bytes(type);
}

// Without sources: as they are.
#define APL_SPARSE_GATHER(from_type, to_type)                                                              \
  for (int64_t k = 0; k < count; ++k) {                                                                    \
    const int64_t from = source ? source[k] : k;                                                           \
    ((to_type*)packed_values)[at + k] = from < 0 ? (to_type)0 : (to_type)((const from_type*)values)[from]; \
  }

static void gather(enum apl_sparse_type type, const int32_t* source, int64_t count, const void* values, int64_t at,
                   void* packed_values) {
#ifdef __FLT16_MAX__
  __extension__ typedef _Float16 half;  // no type of ISO C
#endif
  switch (type) {
    case APL_SPARSE_F32:
    case APL_SPARSE_I32: APL_SPARSE_GATHER(uint32_t, uint32_t); break;
    case APL_SPARSE_F64:
    case APL_SPARSE_I64: APL_SPARSE_GATHER(uint64_t, uint64_t); break;
    case APL_SPARSE_I8: APL_SPARSE_GATHER(uint8_t, uint8_t); break;
    case APL_SPARSE_I16: APL_SPARSE_GATHER(uint16_t, uint16_t); break;
#ifdef __FLT16_MAX__
    case APL_SPARSE_F16:
    case APL_SPARSE_F16_WIDE: APL_SPARSE_GATHER(half, float); break;
#endif
    case APL_SPARSE_BF16_WIDE:
      APL_SPARSE_GATHER(uint16_t, uint32_t);
      for (int64_t k = 0; k < count; ++k) ((uint32_t*)packed_values)[at + k] <<= 16;
      break;
    default: break;
  }
}

void apl_sparse_cpu_values(const struct apl_sparse_cpu_packed* packed, enum apl_sparse_type type, const void* values,
                           void* packed_values) {
  const struct apl_sparse_tiles* t = packed->tiles;
  gather(type, t->block_source, t->block_elements, values, 0, packed_values);
  gather(type, t->ell_source, t->ell_elements, values, t->block_elements, packed_values);
  gather(type, t->segment_source, t->segment_elements, values, t->block_elements + t->ell_elements, packed_values);
}
