// Tiles from a plan: group by group the selections act on bit masks of the rows that each column still has.
#include <stdlib.h>
#include <string.h>

#include "runtime/sparse/sparse.h"

struct packer {
  const struct apl_sparse_csr* matrix;
  const struct apl_sparse_plan* plan;
  struct apl_sparse_tiles* tiles;
  struct apl_sparse_group group;
  uint64_t* left;  // rows of each column of the group that no tile has yet
  int64_t left_capacity;
  int64_t block_capacity, column_capacity, element_capacity;
  int64_t tile_capacity, list_capacity, list_element_capacity;
  int64_t run_capacity, run_element_capacity;
  int64_t length[APL_SPARSE_GROUP];  // entries left of each row of the group
  int64_t row_first[APL_SPARSE_GROUP + 1];
  int32_t *remainder_column, *remainder_source;
  int64_t remainder_capacity;
  int64_t most;  // elements that blocks and ELL rows may have
  int failed;    // an apl_sparse_status
};

// Room for `more` elements after `count`; what `failed` says stays.
static void* grown(struct packer* packer, void* data, int64_t count, int64_t more, int64_t* capacity, size_t element) {
  if (count + more <= *capacity) return data;
  int64_t wanted = *capacity + *capacity / 2;
  if (wanted < count + more) wanted = count + more + 64;
  void* larger = realloc(data, (size_t)wanted * element);
  if (!larger) {
    packer->failed = APL_SPARSE_OUT_OF_MEMORY;
    return data;
  }
  *capacity = wanted;
  return larger;
}

// Windows of 8 to 32 rows need no more, whatever the matrix: 16 columns are filled up, and columns of 32 rows.
static int64_t most_elements(const struct apl_sparse_csr* matrix) {
  enum { kTimes = 32, kAlways = 1 << 22 };
  return kTimes * (matrix->nonzeros + matrix->rows) + kAlways;
}

// Padding is counted before there is memory for it: a plan may say anything.
static void count_elements(struct packer* packer, int64_t more) {
  if (packer->tiles->block_elements + packer->tiles->ell_elements + more > packer->most)
    packer->failed = APL_SPARSE_PADDED;
}

static int count_bits(uint64_t x) {
  x -= x >> 1 & 0x5555555555555555u;
  x = (x & 0x3333333333333333u) + (x >> 2 & 0x3333333333333333u);
  x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0Fu;
  return (int)(x * 0x0101010101010101u >> 56);
}

// A position in the columns, and one in the elements, of each step of a block.
static void add_steps(struct packer* p, int64_t steps, int32_t height) {
  struct apl_sparse_tiles* t = p->tiles;
  const int64_t columns = steps * APL_SPARSE_STEP, elements = columns * height;
  count_elements(p, elements);
  if (p->failed) return;
  t->block_column =
      grown(p, t->block_column, t->steps * APL_SPARSE_STEP, columns, &p->column_capacity, sizeof(int32_t));
  t->block_source = grown(p, t->block_source, t->block_elements, elements, &p->element_capacity, sizeof(int32_t));
  if (p->failed) return;
  memset(t->block_source + t->block_elements, 0xFF, (size_t)elements * sizeof(int32_t));
  t->steps += steps;
  t->block_elements += elements;
}

static void select_block(struct packer* p, int64_t group_index, struct apl_sparse_selection selection) {
  struct apl_sparse_tiles* t = p->tiles;
  const struct apl_sparse_group* g = &p->group;
  const int offset = selection.window * selection.height;
  const uint64_t window = (selection.height == 64 ? ~(uint64_t)0 : ((uint64_t)1 << selection.height) - 1) << offset;
  int64_t taken = 0;
  for (int64_t k = 0; k < g->columns; ++k) taken += count_bits(p->left[k] & window) >= selection.threshold;
  if (taken == 0) return;
  t->block = grown(p, t->block, t->blocks, 1, &p->block_capacity, sizeof *t->block);
  if (p->failed) return;
  struct apl_sparse_block block = {group_index * APL_SPARSE_GROUP + offset, t->steps,
                                   (taken + APL_SPARSE_STEP - 1) / APL_SPARSE_STEP, t->block_elements,
                                   selection.height};
  add_steps(p, block.steps, block.height);
  if (p->failed) return;
  int32_t* column = t->block_column + block.first_step * APL_SPARSE_STEP;
  int64_t at = 0;
  for (int64_t k = 0; k < g->columns; ++k) {
    uint64_t here = p->left[k] & window;
    if (count_bits(here) < selection.threshold) continue;
    p->left[k] &= ~window;
    column[at] = g->column[k];
    const int64_t step = at / APL_SPARSE_STEP, place = at % APL_SPARSE_STEP;
    int32_t* source = t->block_source + block.first_element + step * APL_SPARSE_STEP * block.height + place;
    for (int bit = 0; here; ++bit, here >>= 1) {
      if (!(here & 1)) continue;
      const int64_t index = count_bits(g->rows[k] & (((uint64_t)1 << bit) - 1));
      source[(bit - offset) * APL_SPARSE_STEP] = g->source[g->first[k] + index];
    }
    ++at;
  }
  for (; at < block.steps * APL_SPARSE_STEP; ++at) column[at] = column[at - 1];
  t->block[t->blocks++] = block;
}

// What is left of the group, row by row.
static int64_t gather_remainder(struct packer* p) {
  const struct apl_sparse_group* g = &p->group;
  memset(p->length, 0, sizeof p->length);
  int64_t count = 0;
  for (int64_t k = 0; k < g->columns; ++k)
    for (uint64_t left = p->left[k]; left; left &= left - 1, ++count) ++p->length[count_bits((left & -left) - 1)];
  if (count == 0) return 0;
  if (count > p->remainder_capacity) {
    free(p->remainder_column);
    free(p->remainder_source);
    p->remainder_capacity = count + count / 2;
    p->remainder_column = malloc((size_t)p->remainder_capacity * sizeof(int32_t));
    p->remainder_source = malloc((size_t)p->remainder_capacity * sizeof(int32_t));
    if (!p->remainder_column || !p->remainder_source) p->failed = APL_SPARSE_OUT_OF_MEMORY;
  }
  if (p->failed) return 0;
  int64_t next[APL_SPARSE_GROUP];
  p->row_first[0] = 0;
  for (int row = 0; row < APL_SPARSE_GROUP; ++row) {
    next[row] = p->row_first[row];
    p->row_first[row + 1] = p->row_first[row] + p->length[row];
  }
  for (int64_t k = 0; k < g->columns; ++k)
    for (uint64_t left = p->left[k]; left; left &= left - 1) {
      const int row = count_bits((left & -left) - 1);
      const int64_t index = count_bits(g->rows[k] & ((left & -left) - 1));
      p->remainder_column[next[row]] = g->column[k];
      p->remainder_source[next[row]++] = g->source[g->first[k] + index];
    }
  return count;
}

static int32_t row_at(const struct packer* p, int64_t position) {
  return p->plan->row_order ? p->plan->row_order[position] : (int32_t)position;
}

static void add_segments(struct packer* p, int64_t group_index, int64_t count) {
  struct apl_sparse_tiles* t = p->tiles;
  const int64_t most = p->plan->segment_length, segments = (count + most - 1) / most;
  int64_t capacity = p->run_element_capacity;
  t->segment = grown(p, t->segment, t->segments, segments, &p->run_capacity, sizeof *t->segment);
  t->segment_row = grown(p, t->segment_row, t->segment_elements, count, &capacity, sizeof(int32_t));
  capacity = p->run_element_capacity;
  t->segment_column = grown(p, t->segment_column, t->segment_elements, count, &capacity, sizeof(int32_t));
  t->segment_source =
      grown(p, t->segment_source, t->segment_elements, count, &p->run_element_capacity, sizeof(int32_t));
  if (p->failed) return;
  for (int64_t first = 0; first < count; first += most) {
    const int64_t here = count - first < most ? count - first : most;
    t->segment[t->segments++] = (struct apl_sparse_segment){t->segment_elements + first, (int32_t)here};
  }
  for (int row = 0; row < APL_SPARSE_GROUP; ++row)
    for (int64_t k = p->row_first[row]; k < p->row_first[row + 1]; ++k)
      t->segment_row[t->segment_elements + k] = row_at(p, group_index * APL_SPARSE_GROUP + row);
  memcpy(t->segment_column + t->segment_elements, p->remainder_column, (size_t)count * sizeof(int32_t));
  memcpy(t->segment_source + t->segment_elements, p->remainder_source, (size_t)count * sizeof(int32_t));
  t->segment_elements += count;
}

// Which width holds so many; the last for those that are cut.
static int width_index(const struct apl_sparse_plan* plan, int64_t count) {
  int index = 0;
  while (index + 1 < plan->widths && plan->width[index] < count) ++index;
  return index;
}

// One ELL row: elements [first, first + count) of the remainder, padded with its last column.
static void add_ell_row(struct packer* p, int32_t width, int32_t row, int64_t first, int64_t count) {
  struct apl_sparse_tiles* t = p->tiles;
  int64_t capacity = p->list_element_capacity;
  count_elements(p, width);
  if (p->failed) return;
  t->ell_row = grown(p, t->ell_row, t->ell_rows, 1, &p->list_capacity, sizeof(int32_t));
  t->ell_column = grown(p, t->ell_column, t->ell_elements, width, &capacity, sizeof(int32_t));
  t->ell_source = grown(p, t->ell_source, t->ell_elements, width, &p->list_element_capacity, sizeof(int32_t));
  if (p->failed) return;
  t->ell_row[t->ell_rows++] = row;
  for (int64_t k = 0; k < width; ++k) {
    const int64_t from = first + (k < count ? k : count - 1);
    t->ell_column[t->ell_elements] = p->remainder_column[from];
    t->ell_source[t->ell_elements++] = k < count ? p->remainder_source[from] : -1;
  }
}

static void add_ell(struct packer* p, int64_t group_index) {
  struct apl_sparse_tiles* t = p->tiles;
  const struct apl_sparse_plan* plan = p->plan;
  const int64_t longest = plan->width[plan->widths - 1];
  for (int index = 0; index < plan->widths; ++index) {
    const int32_t width = plan->width[index];
    const int64_t most = plan->ell_elements / width > 0 ? plan->ell_elements / width : 1;
    int64_t in_tile = most;
    for (int row = 0; row < APL_SPARSE_GROUP; ++row)
      for (int64_t first = p->row_first[row]; first < p->row_first[row + 1]; first += longest) {
        const int64_t left = p->row_first[row + 1] - first, count = left < longest ? left : longest;
        if (width_index(plan, count) != index) continue;
        if (in_tile == most) {
          t->ell_tile = grown(p, t->ell_tile, t->ell_tiles, 1, &p->tile_capacity, sizeof *t->ell_tile);
          if (p->failed) return;
          t->ell_tile[t->ell_tiles++] = (struct apl_sparse_ell){t->ell_rows, t->ell_elements, 0, width};
          in_tile = 0;
        }
        add_ell_row(p, width, row_at(p, group_index * APL_SPARSE_GROUP + row), first, count);
        if (p->failed) return;
        ++t->ell_tile[t->ell_tiles - 1].ell_rows;
        ++in_tile;
      }
  }
}

static void pack_group(struct packer* p, int64_t index, const struct apl_sparse_stretch* stretch) {
  struct apl_sparse_tiles* t = p->tiles;
  t->group_block[index] = t->blocks;
  t->group_ell[index] = t->ell_tiles;
  t->group_segment[index] = t->segments;
  if (apl_sparse_group_read(&p->group, p->matrix, p->plan->row_order, index)) p->failed = APL_SPARSE_OUT_OF_MEMORY;
  if (p->failed || p->group.entries == 0) return;
  p->left = grown(p, p->left, 0, p->group.columns, &p->left_capacity, sizeof *p->left);
  if (p->failed) return;
  memcpy(p->left, p->group.rows, (size_t)p->group.columns * sizeof *p->left);
  for (int64_t k = 0; k < stretch->selections && !p->failed; ++k)
    select_block(p, index, p->plan->selection[stretch->first + k]);
  const int64_t remainder = p->failed ? 0 : gather_remainder(p);
  if (remainder == 0) return;
  if (stretch->segments) {
    add_segments(p, index, remainder);
  } else {
    add_ell(p, index);
  }
}

int apl_sparse_pack(const struct apl_sparse_csr* matrix, const struct apl_sparse_plan* plan,
                    struct apl_sparse_tiles** tiles) {
  *tiles = NULL;
  char differs[200];
  if (plan->dense || apl_sparse_plan_fits(plan, matrix, differs, sizeof differs)) return APL_SPARSE_MALFORMED;
  struct packer p = {.matrix = matrix,
                     .plan = plan,
                     .tiles = calloc(1, sizeof(struct apl_sparse_tiles)),
                     .most = most_elements(matrix)};
  if (!p.tiles) return APL_SPARSE_OUT_OF_MEMORY;
  struct apl_sparse_tiles* t = p.tiles;
  t->rows = matrix->rows;
  t->columns = matrix->columns;
  t->nonzeros = matrix->nonzeros;
  t->groups = (matrix->rows + APL_SPARSE_GROUP - 1) / APL_SPARSE_GROUP;
  const size_t starts = (size_t)t->groups + 1;
  t->group_block = calloc(starts, sizeof(int64_t));
  t->group_ell = calloc(starts, sizeof(int64_t));
  t->group_segment = calloc(starts, sizeof(int64_t));
  if (!t->group_block || !t->group_ell || !t->group_segment) p.failed = APL_SPARSE_OUT_OF_MEMORY;
  if (plan->row_order && !p.failed) {
    t->row_order = malloc(((size_t)matrix->rows + 1) * sizeof(int32_t));
    if (!t->row_order) p.failed = APL_SPARSE_OUT_OF_MEMORY;
    if (!p.failed) memcpy(t->row_order, plan->row_order, (size_t)matrix->rows * sizeof(int32_t));
  }
  int64_t index = 0;
  for (int64_t s = 0; s < plan->stretches && !p.failed; ++s)
    for (int64_t k = 0; k < plan->stretch[s].groups && !p.failed; ++k) pack_group(&p, index++, &plan->stretch[s]);
  if (!p.failed) {
    t->group_block[t->groups] = t->blocks;
    t->group_ell[t->groups] = t->ell_tiles;
    t->group_segment[t->groups] = t->segments;
  }
  apl_sparse_group_free(&p.group);
  free(p.left);
  free(p.remainder_column);
  free(p.remainder_source);
  if (p.failed) {
    apl_sparse_tiles_free(t);
    return p.failed;
  }
  *tiles = t;
  return APL_SPARSE_FINE;
}

void apl_sparse_tiles_free(struct apl_sparse_tiles* tiles) {
  if (!tiles) return;
  void* const parts[] = {tiles->row_order,   tiles->group_block,    tiles->group_ell,     tiles->group_segment,
                         tiles->block,       tiles->block_column,   tiles->block_source,  tiles->ell_tile,
                         tiles->ell_row,     tiles->ell_column,     tiles->ell_source,    tiles->segment,
                         tiles->segment_row, tiles->segment_column, tiles->segment_source};
  for (size_t k = 0; k < sizeof parts / sizeof parts[0]; ++k) free(parts[k]);
  free(tiles);
}
