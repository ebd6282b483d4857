// SpMM's arrays: rows by class, windows with their shared and own steps.
#include "runtime/sparse/device_kernel.h"

#include <string.h>

#include "runtime/sparse/device_kernel.h"
#include "runtime/sparse/operand_arrays.h"

enum { kPackedUnit = 8 * APL_SPARSE_STEP };

static int64_t packed_steps(int64_t columns) { return (columns + APL_SPARSE_STEP - 1) / APL_SPARSE_STEP; }

// Adds the steps that the group's windows of 8, 16 and 32 rows would have; how many columns 8 rows meet.
static int64_t look_at_windows(const struct apl_sparse_group* group, uint64_t in_windows,
                               struct apl_sparse_statistics* statistics) {
  enum { kParts = APL_SPARSE_GROUP / 8 };
  int64_t all = 0, own[3][kParts] = {{0}}, shared[3][kParts] = {{0}};
  for (int64_t c = 0; c < group->columns; ++c) {
    unsigned met = 0;  // parts
    const uint64_t rows = group->rows[c] & in_windows;
    for (int part = 0; part < kParts; ++part) met |= (unsigned)((rows >> (8 * part) & 255) != 0) << part;
    for (int k = 0; k < 3; ++k)
      for (int window = 0; window < kParts >> k; ++window) {
        const unsigned here = met >> (window << k) & ((1u << (1 << k)) - 1);
        const int is_shared = (here & (here - 1)) != 0;
        shared[k][window] += is_shared;
        for (int part = window << k; !is_shared && part < (window + 1) << k; ++part) own[k][part] += met >> part & 1;
      }
  }
  for (int k = 0; k < 3; ++k)
    for (int window = 0; window < kParts >> k; ++window) {
      int64_t steps = packed_steps(shared[k][window]);
      statistics->units[k] += (double)(steps << k);
      for (int part = window << k; part < (window + 1) << k; ++part) {
        steps += packed_steps(own[k][part]);
        statistics->units[k] += (double)packed_steps(own[k][part]);
      }
      statistics->steps[k] += (double)steps;
      if (statistics->longest_window[k] < steps) statistics->longest_window[k] = (int32_t)steps;
    }
  for (int part = 0; part < kParts; ++part) all += own[0][part];
  return all;
}

// A row that is so much longer than others is in no window, which would be as long: rows can be cut.
static int64_t apart_from(const struct apl_sparse_statistics* statistics) {
  enum { kLeastApart = 2048 };
  return statistics->mean * 8 > kLeastApart ? (int64_t)(statistics->mean * 8) : kLeastApart;
}

// By so many of the groups.
static int measure_some(const struct apl_sparse_csr* matrix, const int32_t* row_order, int64_t wanted,
                        struct apl_sparse_statistics* statistics) {
  *statistics =
      (struct apl_sparse_statistics){.rows = matrix->rows, .columns = matrix->columns, .nonzeros = matrix->nonzeros};
  for (int64_t row = 0; row < matrix->rows; ++row) {
    const int64_t length = matrix->row_start[row + 1] - matrix->row_start[row];
    if (length > statistics->longest) statistics->longest = length;
  }
  if (matrix->rows > 0) statistics->mean = (double)matrix->nonzeros / (double)matrix->rows;
  const int64_t groups = (matrix->rows + APL_SPARSE_GROUP - 1) / APL_SPARSE_GROUP;
  struct apl_sparse_group group = {0};
  int64_t entries = 0, vectors = 0, looks = 0;
  for (int64_t g = 0; g < groups; g += groups / wanted + 1) {
    if (apl_sparse_group_read(&group, matrix, row_order, g)) return APL_SPARSE_OUT_OF_MEMORY;
    uint64_t in_windows = ~(uint64_t)0;
    int64_t apart = 0;
    for (int64_t r = 0; r < APL_SPARSE_GROUP && g * APL_SPARSE_GROUP + r < matrix->rows; ++r) {
      const int64_t row = row_order ? row_order[g * APL_SPARSE_GROUP + r] : g * APL_SPARSE_GROUP + r;
      const int64_t length = matrix->row_start[row + 1] - matrix->row_start[row];
      if (length < apart_from(statistics)) continue;
      in_windows &= ~((uint64_t)1 << r);
      apart += length;
    }
    entries += group.entries - apart;
    vectors += look_at_windows(&group, in_windows, statistics);
    ++looks;
  }
  apl_sparse_group_free(&group);
  if (vectors > 0) statistics->shared = (double)entries / (double)vectors;
  for (int k = 0; k < 3 && looks > 0; ++k) {
    statistics->steps[k] *= (double)groups / (double)looks;
    statistics->units[k] *= (double)groups / (double)looks;
  }
  return APL_SPARSE_FINE;
}

int apl_sparse_measure(const struct apl_sparse_csr* matrix, const int32_t* row_order,
                       struct apl_sparse_statistics* statistics) {
  enum { kPackedLooks = 256 };
  return measure_some(matrix, row_order, kPackedLooks, statistics);
}

struct packed_maker {
  const struct apl_sparse_csr* matrix;
  const struct apl_sparse_plan* plan;
  struct apl_sparse_options options;  // none is 0 any more, as far as they are about packing
  struct apl_sparse_packed* packed;
  struct apl_sparse_composition rows;  // in the plan's order
  int64_t step_capacity;
};

static int32_t packed_row_at(const struct packed_maker* m, int64_t position) {
  return m->rows.row_order ? m->rows.row_order[position] : (int32_t)position;
}

// The height that has most of the rows that the plan selects, at most `highest`; 0: it selects none.
static int32_t height_of_plan(const struct apl_sparse_plan* plan, int32_t highest) {
  int64_t rows[APL_SPARSE_GROUP + 1] = {0};
  for (int64_t s = 0; plan && s < plan->stretches; ++s)
    for (int64_t k = 0; k < plan->stretch[s].selections; ++k) {
      const int height = plan->selection[plan->stretch[s].first + k].height;
      rows[height < highest ? height : highest] += plan->stretch[s].groups * height;
    }
  int32_t most = 0;
  for (int32_t height = 8; height <= 32; height *= 2)
    if (rows[height] > rows[most]) most = height;
  return most;
}

static int64_t packed_halves(const struct apl_sparse_csr* matrix) { return (matrix->rows + 31) / 32; }

// Rows are gathered or in windows of one height, whichever the model likes better; a plan has chosen.
// Gives what the product then takes, if there was a choice.
static double resolve_packed(struct packed_maker* m, int32_t type, int64_t width) {
  const struct apl_sparse_statistics* s = &m->packed->statistics;
  struct apl_sparse_options* o = &m->options;
  const int32_t highest = apl_sparse_highest_window(m->packed->device, type);
  if (o->window > highest) o->window = highest;
  if (o->window == 0 && m->plan && m->plan->stretches > 0) {
    o->window = height_of_plan(m->plan, highest);
    if (o->window == 0) o->window = -1;
  }
  if (o->window != 0) return 0;
  const struct apl_device* device = m->packed->device;
  struct apl_sparse_options rows = *o;
  const double gathered = apl_sparse_resolve_rows(m->matrix, &m->rows, device, type, width, s, &rows);
  double in_windows = apl_sparse_resolve_windows(m->matrix, device, type, width, s, &o->window);
  if (s->longest >= m->rows.apart) {
    memset(m->rows.kind, APL_SPARSE_IN_WINDOWS, (size_t)packed_halves(m->matrix));
    rows = m->options;
    in_windows += apl_sparse_resolve_rows(m->matrix, &m->rows, device, type, width, s, &rows) - device->sparse_launch;
    memset(m->rows.kind, APL_SPARSE_GATHERED, (size_t)packed_halves(m->matrix));
  }
  if (in_windows >= gathered) o->window = -1;
  return in_windows >= gathered ? gathered : in_windows;
}

// A plan's selections are windows where kernels have them; what it has no selections for is gathered, in segments if it
// says so.
static void compose_packed(struct packed_maker* m) {
  const int has_windows = m->options.window > 0;
  if (!m->plan || m->plan->stretches == 0) {
    if (has_windows) memset(m->rows.kind, APL_SPARSE_IN_WINDOWS, (size_t)packed_halves(m->matrix));
    return;
  }
  int64_t group = 0;
  for (int64_t s = 0; s < m->plan->stretches; ++s) {
    const struct apl_sparse_stretch* stretch = &m->plan->stretch[s];
    const unsigned char other = stretch->segments ? APL_SPARSE_IN_SEGMENTS : APL_SPARSE_GATHERED;
    unsigned char kind[2] = {other, other};
    for (int64_t k = 0; k < stretch->selections && has_windows; ++k) {
      const struct apl_sparse_selection* selection = &m->plan->selection[stretch->first + k];
      const int begin = selection->window * selection->height, end = begin + selection->height;
      if (begin < 32) kind[0] = APL_SPARSE_IN_WINDOWS;
      if (end > 32) kind[1] = APL_SPARSE_IN_WINDOWS;
    }
    for (int64_t k = 0; k < stretch->groups; ++k, ++group) {
      m->rows.kind[2 * group] = kind[0];
      m->rows.kind[2 * group + 1] = kind[1];
    }
  }
}

static int64_t packed_row_length(const struct packed_maker* m, int32_t row) {
  return m->matrix->row_start[row + 1] - m->matrix->row_start[row];
}

// Rows of a class stand together, the longest class first; a counting sort over what they are sorted by.
static int64_t packed_sort_key(const struct packed_maker* m, int64_t length) {
  if (m->options.sorted > 0 || length >= m->options.block_row) return length;
  return length >= m->options.warp_row ? m->options.warp_row : 0;
}

// The pieces of the row at this position of the plan's order: their length, and how many there are.
static int64_t packed_pieces(const struct packed_maker* m, int64_t position, int64_t length, int64_t* each) {
  const int64_t padded = (length + 3) / 4 * 4;
  *each = apl_sparse_piece(&m->rows, position, length, m->options.piece);
  return *each < padded ? (padded + *each - 1) / *each : 1;
}

static int64_t packed_piece_length(int64_t length, int64_t each, int64_t piece) {
  return length - piece * each < each ? length - piece * each : each;
}

// Counts the records of each sort key.
static int64_t count_packed_rows(struct packed_maker* m, int64_t* count) {
  struct apl_sparse_packed* f = m->packed;
  int64_t largest = 0, records = 0;
  for (int64_t position = 0; position < f->rows; ++position) {
    const int64_t length = packed_row_length(m, packed_row_at(m, position));
    if (!apl_sparse_is_gathered(&m->rows, position, length)) continue;
    int64_t each = 0;
    const int64_t pieces = packed_pieces(m, position, length, &each);
    if (pieces > 1) {
      ++f->cuts;
      f->pieces += (int32_t)pieces;
    }
    for (int64_t piece = 0; piece < pieces; ++piece) {
      const int64_t here = packed_piece_length(length, each, piece), key = packed_sort_key(m, here);
      ++records;
      f->row_elements += (here + 3) / 4 * 4;
      ++count[key];
      if (key > largest) largest = key;
      f->longs += here >= m->options.block_row;
      f->mediums += here >= m->options.warp_row && here < m->options.block_row;
      int32_t* longest = &f->longest[here >= m->options.block_row ? 0 : here >= m->options.warp_row ? 1 : 2];
      if (*longest < here) *longest = (int32_t)((here + 3) / 4 * 4);
    }
  }
  f->records = (int32_t)records;
  f->row_elements = (f->row_elements + 15) / 16 * 16;
  // The largest keys come first.
  for (int64_t key = largest, sum = 0; key >= 0; --key) {
    const int64_t here = count[key];
    count[key] = sum;
    sum += here;
  }
  return records;
}

static void place_packed_rows(struct packed_maker* m, int64_t* count) {
  struct apl_sparse_packed* f = m->packed;
  int32_t cut = 0, numbered = 0;  // pieces
  for (int64_t position = 0; position < f->rows; ++position) {
    const int32_t row = packed_row_at(m, position);
    const int64_t length = packed_row_length(m, row);
    if (!apl_sparse_is_gathered(&m->rows, position, length)) continue;
    int64_t each = 0;
    const int64_t pieces = packed_pieces(m, position, length, &each);
    if (pieces > 1) {
      const int32_t whole[4] = {row, numbered, (int32_t)pieces, 0};
      memcpy(f->cut + 4 * (int64_t)cut++, whole, sizeof whole);
    }
    for (int64_t piece = 0; piece < pieces; ++piece) {
      const int64_t here = packed_piece_length(length, each, piece);
      int32_t* record = f->record + 4 * count[packed_sort_key(m, here)]++;
      record[0] = row;
      record[1] = (int32_t)(piece * each);  // in the row, for now
      record[2] = (int32_t)((here + 3) / 4 * 4);
      record[3] = pieces > 1 ? ++numbered : 0;
    }
  }
}

static int make_packed_rows(struct packed_maker* m) {
  struct apl_sparse_packed* f = m->packed;
  int64_t* count = apl_sparse_array(
      f->statistics.longest + 2 > m->options.warp_row + 2 ? f->statistics.longest + 2 : m->options.warp_row + 2,
      sizeof *count);
  if (!count) return APL_SPARSE_OUT_OF_MEMORY;
  const int64_t records = count_packed_rows(m, count);
  f->record = apl_sparse_array(4 * records, sizeof *f->record);
  f->cut = apl_sparse_array(4 * (int64_t)f->cuts, sizeof *f->cut);
  f->row_column = apl_sparse_array(f->row_elements, sizeof *f->row_column);
  if (f->row_elements > INT32_MAX || !f->record || !f->cut || !f->row_column) {
    free(count);
    return f->row_elements > INT32_MAX ? APL_SPARSE_TOO_LARGE : APL_SPARSE_OUT_OF_MEMORY;
  }
  place_packed_rows(m, count);
  free(count);
  int64_t start = 0;
  for (int64_t k = 0; k < records; ++k) {
    int32_t* record = f->record + 4 * k;
    const int64_t offset = record[1], first = m->matrix->row_start[record[0]] + offset,
                  length = packed_row_length(m, record[0]) - offset;
    record[1] = (int32_t)start;
    for (int64_t n = 0; n < record[2]; ++n) {
      f->row_column[start + n] = m->matrix->column[first + (n < length ? n : length - 1)];
      if (n < length) f->slot[first + n] = (uint32_t)(start + n);
    }
    start += record[2];
  }
  return APL_SPARSE_FINE;
}

// Fills the steps of one level: a column and a mask of rows at a time.
struct packed_level {
  int64_t first_step, first_unit;
  int32_t parts, columns;
};

static int begin_packed_column(struct packed_maker* m, struct packed_level* level, int32_t column) {
  struct apl_sparse_packed* f = m->packed;
  if (level->columns % APL_SPARSE_STEP == 0) {
    if (!apl_sparse_grow((void**)&f->step_column, f->steps * APL_SPARSE_STEP, APL_SPARSE_STEP, &m->step_capacity,
                         sizeof *f->step_column))
      return APL_SPARSE_OUT_OF_MEMORY;
    // A step that is not full repeats its first column.
    for (int k = 0; k < APL_SPARSE_STEP; ++k) f->step_column[f->steps * APL_SPARSE_STEP + k] = column;
    ++f->steps;
    f->units += level->parts;
  }
  f->step_column[level->first_step * APL_SPARSE_STEP + level->columns++] = column;
  return APL_SPARSE_FINE;
}

// Rows of the mask are those of the level's parts; `source` their non-zeros in that order.
static int add_packed_column(struct packed_maker* m, struct packed_level* level, int32_t column, uint32_t mask,
                             const int32_t* source) {
  if (begin_packed_column(m, level, column)) return APL_SPARSE_OUT_OF_MEMORY;
  const int64_t slot = (level->columns - 1) % APL_SPARSE_STEP, step = (level->columns - 1) / APL_SPARSE_STEP;
  for (int row = 0; row < 32; ++row) {
    if ((mask >> row & 1) == 0) continue;
    const int64_t unit = level->first_unit + step * level->parts + row / 8;
    m->packed->slot[*source++] =
        (uint32_t)(m->packed->row_elements + unit * kPackedUnit + row % 8 * APL_SPARSE_STEP + slot);
  }
  return APL_SPARSE_FINE;
}

static int packed_parts_met(uint32_t mask) {
  return ((mask & 0xff) != 0) + ((mask & 0xff00) != 0) + ((mask & 0xff0000) != 0) + ((mask & 0xff000000u) != 0);
}

// What the column has in the window that begins at this row of the group, and where its non-zeros stand.
static uint32_t packed_mask(const struct apl_sparse_group* group, int64_t k, int begin, int height,
                            const int32_t** source) {
  const uint64_t below = begin == 0 ? 0 : group->rows[k] & (((uint64_t)1 << begin) - 1);
  *source = group->source + group->first[k] + __builtin_popcountll(below);
  return (uint32_t)(group->rows[k] >> begin & (((uint64_t)1 << height) - 1));
}

static int make_packed_window(struct packed_maker* m, const struct apl_sparse_group* group, int64_t position,
                              int begin) {
  struct apl_sparse_packed* f = m->packed;
  const int height = 8 * f->parts, is_one = f->parts == 1;
  int32_t* window = f->window + 4 * f->windows;
  int32_t* rows = f->window_row + (int64_t)f->windows * height;
  for (int r = 0; r < height; ++r) {
    rows[r] = position + begin + r < f->rows ? packed_row_at(m, position + begin + r) : -1;
    if (rows[r] >= 0 && packed_row_length(m, rows[r]) >= m->rows.apart) rows[r] = -1;
  }
  struct packed_level shared = {f->steps, f->units, f->parts, 0};
  if (f->units > INT32_MAX - 4 * (group->columns + 16) || f->steps > INT32_MAX - group->columns - 16)
    return APL_SPARSE_TOO_LARGE;
  const int32_t* source = NULL;
  for (int64_t k = 0; k < group->columns; ++k) {
    const uint32_t mask = packed_mask(group, k, begin, height, &source);
    if (mask == 0 || (!is_one && packed_parts_met(mask) < 2)) continue;
    if (add_packed_column(m, &shared, group->column[k], mask, source)) return APL_SPARSE_OUT_OF_MEMORY;
  }
  window[0] = f->windows;
  window[1] = (int32_t)shared.first_step;
  window[2] = (int32_t)(f->steps - shared.first_step);
  window[3] = (int32_t)shared.first_unit;
  for (int h = 0; h < f->parts; ++h) {
    struct packed_level own = {f->steps, f->units, 1, 0};
    for (int64_t k = 0; k < group->columns && !is_one; ++k) {
      const uint32_t mask = packed_mask(group, k, begin, height, &source);
      if (mask >> (8 * h) == 0 || (mask & 0xffu << (8 * h)) == 0 || packed_parts_met(mask) != 1) continue;
      if (add_packed_column(m, &own, group->column[k], mask >> (8 * h), source)) return APL_SPARSE_OUT_OF_MEMORY;
    }
    int32_t* part = f->part + 2 * ((int64_t)f->windows * f->parts + h);
    part[0] = (int32_t)own.first_step;
    part[1] = (int32_t)(f->steps - own.first_step);
  }
  if (f->steps - shared.first_step > f->longest_window) f->longest_window = (int32_t)(f->steps - shared.first_step);
  ++f->windows;
  return APL_SPARSE_FINE;
}

// Takes rows out of the group that are gathered though they stand in it.
static void leave_out_apart(const struct packed_maker* m, struct apl_sparse_group* group, int64_t position) {
  uint64_t apart = 0;
  for (int64_t r = 0; r < APL_SPARSE_GROUP && position + r < m->packed->rows; ++r)
    apart |= (uint64_t)(packed_row_length(m, packed_row_at(m, position + r)) >= m->rows.apart) << r;
  for (int64_t k = 0; k < group->columns && apart != 0; ++k) {
    int32_t *from = group->source + group->first[k], *to = from;
    for (uint64_t left = group->rows[k]; left != 0; left &= left - 1, ++from)
      if ((left & (~left + 1) & apart) == 0) *to++ = *from;
    group->rows[k] &= ~apart;
  }
}

static int make_packed_windows(struct packed_maker* m) {
  struct apl_sparse_packed* f = m->packed;
  const int height = m->options.window;
  int64_t count = 0;
  for (int64_t half = 0; half * 32 < f->rows; ++half)
    count += m->rows.kind[half] == APL_SPARSE_IN_WINDOWS ? 32 / height : 0;
  if (count == 0) return APL_SPARSE_FINE;
  f->parts = height / 8;
  f->window = apl_sparse_array(4 * count, sizeof *f->window);
  f->part = apl_sparse_array(2 * count * f->parts, sizeof *f->part);
  f->window_row = apl_sparse_array(count * height, sizeof *f->window_row);
  if (!f->window || !f->part || !f->window_row) return APL_SPARSE_OUT_OF_MEMORY;
  struct apl_sparse_group group = {0};
  int status = APL_SPARSE_FINE;
  for (int64_t g = 0; g * APL_SPARSE_GROUP < f->rows && !status; ++g) {
    const unsigned char* kind = m->rows.kind + 2 * g;
    if (kind[0] != APL_SPARSE_IN_WINDOWS && kind[1] != APL_SPARSE_IN_WINDOWS) continue;
    status = apl_sparse_group_read(&group, m->matrix, m->rows.row_order, g);
    if (!status) leave_out_apart(m, &group, g * APL_SPARSE_GROUP);
    for (int begin = 0; begin < APL_SPARSE_GROUP && !status; begin += height)
      if (kind[begin / 32] == APL_SPARSE_IN_WINDOWS && g * APL_SPARSE_GROUP + begin < f->rows)
        status = make_packed_window(m, &group, g * APL_SPARSE_GROUP, begin);
  }
  apl_sparse_group_free(&group);
  return status;
}

// Few windows: those with most steps first, so that no block begins late with much to do.
static int sort_packed_windows(struct apl_sparse_packed* f) {
  enum { kFewWindows = 4096 };
  if (f->windows > kFewWindows || f->windows < 2) return APL_SPARSE_FINE;
  int64_t* count = apl_sparse_array(f->steps + 1, sizeof *count);
  int32_t* sorted = apl_sparse_array(4 * (int64_t)f->windows, sizeof *sorted);
  if (count && sorted) {
    for (int pass = 0; pass < 2; ++pass) {
      for (int64_t k = 0; k < f->windows; ++k) {
        const int64_t end = k + 1 < f->windows ? f->window[4 * (k + 1) + 1] : f->steps;
        int64_t* here = &count[f->steps - (end - f->window[4 * k + 1])];
        if (pass == 1) memcpy(sorted + 4 * *here, f->window + 4 * k, 4 * sizeof *sorted);
        ++*here;
      }
      for (int64_t key = 0, sum = 0; key <= f->steps && pass == 0; ++key) {
        const int64_t here = count[key];
        count[key] = sum;
        sum += here;
      }
    }
    free(f->window);
    f->window = sorted;
    sorted = NULL;
  }
  const int is_fine = count && !sorted;
  free(count);
  free(sorted);
  return is_fine ? APL_SPARSE_FINE : APL_SPARSE_OUT_OF_MEMORY;
}

int apl_sparse_packed_make(const struct apl_sparse_csr* matrix, const struct apl_sparse_plan* plan,
                           const struct apl_device* device, int32_t type, int64_t width,
                           const struct apl_sparse_options* options, struct apl_sparse_packed** packed) {
  enum { kUsualWidth = 128 };
  *packed = NULL;
  if (width <= 0) width = kUsualWidth;
  if (plan && (plan->rows != matrix->rows || plan->columns != matrix->columns || plan->nonzeros != matrix->nonzeros))
    return APL_SPARSE_MALFORMED;
  if (matrix->rows > INT32_MAX || matrix->nonzeros > INT32_MAX) return APL_SPARSE_TOO_LARGE;
  struct packed_maker m = {.matrix = matrix, .plan = plan, .packed = calloc(1, sizeof(struct apl_sparse_packed))};
  if (!m.packed) return APL_SPARSE_OUT_OF_MEMORY;
  if (options) m.options = *options;
  struct apl_sparse_packed* f = m.packed;
  f->device = device;
  f->rows = matrix->rows;
  f->columns = matrix->columns;
  f->nonzeros = matrix->nonzeros;
  f->slot = apl_sparse_array(matrix->nonzeros, sizeof *f->slot);
  m.rows.kind = calloc((size_t)packed_halves(matrix) + 2, 1);
  m.rows.row_order = plan ? plan->row_order : m.options.row_order;
  m.rows.segment = plan ? (plan->segment_length + 3) / 4 * 4 : 0;
  int status =
      f->slot && m.rows.kind ? apl_sparse_measure(matrix, m.rows.row_order, &f->statistics) : APL_SPARSE_OUT_OF_MEMORY;
  if (!status) {
    m.rows.apart = m.options.apart > 0 ? m.options.apart : apart_from(&f->statistics);
    resolve_packed(&m, type, width);
    compose_packed(&m);
    apl_sparse_resolve_rows(matrix, &m.rows, device, type, width, &f->statistics, &m.options);
    f->sorted = m.options.sorted;
    status = make_packed_rows(&m);
  }
  if (!status) status = make_packed_windows(&m);
  if (!status) status = sort_packed_windows(f);
  f->values = f->row_elements + f->units * kPackedUnit;
  if (!status && f->values > UINT32_MAX) status = APL_SPARSE_TOO_LARGE;
  free(m.rows.kind);
  if (status) {
    apl_sparse_packed_free(f);
    return status;
  }
  *packed = f;
  return APL_SPARSE_FINE;
}

int apl_sparse_time_of_order(const struct apl_sparse_csr* matrix, const int32_t* row_order,
                             const struct apl_device* device, int32_t type, int64_t width,
                             struct apl_sparse_statistics* statistics, double* microseconds) {
  enum { kOrderLooks = 48 };
  struct apl_sparse_packed shape = {.device = device, .rows = matrix->rows, .columns = matrix->columns};
  struct packed_maker m = {.matrix = matrix, .packed = &shape};
  m.rows.row_order = row_order;
  m.rows.kind = calloc((size_t)packed_halves(matrix) + 2, 1);
  const int status =
      m.rows.kind ? measure_some(matrix, row_order, kOrderLooks, &shape.statistics) : APL_SPARSE_OUT_OF_MEMORY;
  m.rows.apart = apart_from(&shape.statistics);
  if (!status) *microseconds = resolve_packed(&m, type, width);
  *statistics = shape.statistics;
  free(m.rows.kind);
  return status;
}

void apl_sparse_packed_free(struct apl_sparse_packed* packed) {
  if (!packed) return;
  void* const arrays[] = {packed->record, packed->row_column, packed->cut,         packed->window,
                          packed->part,   packed->window_row, packed->step_column, packed->slot};
  for (size_t k = 0; k < sizeof arrays / sizeof arrays[0]; ++k) free(arrays[k]);
  free(packed);
}
