// The numbers of SpMM's kernels that the options leave open: those whose product takes least by the model
// (device_cost.c).
#include "runtime/sparse/device_kernel.h"
#include "runtime/sparse/operand_arrays.h"

// Where rows are cut into classes, and whether they are sorted within them.
struct resolve_class {
  int32_t warp_row, block_row, sorted;
};
static const struct resolve_class kResolveClasses[] = {{8, 24, 1},   {8, 48, 1},    {8, 96, 1},
                                                       {24, 256, 1}, {24, 256, -1}, {32, 512, -1}};

static double resolve_time(const struct apl_sparse_packed* shape, int32_t type, int64_t width) {
  const int64_t size = apl_sparse_type_size(type);
  int32_t elements = size > 0 ? (int32_t)(16 / size) : 1;
  while (width % elements != 0) elements /= 2;
  return apl_sparse_choose_spmm(shape, type, elements, width, NULL).microseconds;
}

int apl_sparse_is_gathered(const struct apl_sparse_composition* composition, int64_t position, int64_t length) {
  return composition->kind[position / 32] != APL_SPARSE_IN_WINDOWS || length >= composition->apart;
}

int64_t apl_sparse_piece(const struct apl_sparse_composition* composition, int64_t position, int64_t length,
                         int32_t piece) {
  const int64_t padded = (length + 3) / 4 * 4;
  int64_t most = piece > 0 ? piece : padded;
  if (composition->kind[position / 32] == APL_SPARSE_IN_SEGMENTS && composition->segment < most)
    most = composition->segment;
  if (padded <= most) return padded;
  const int64_t pieces = (padded + most - 1) / most;
  return ((padded + pieces - 1) / pieces + 3) / 4 * 4;
}

// Adds to the shape the rows that are in no window.
static void shape_rows(struct apl_sparse_packed* shape, const struct apl_sparse_csr* matrix,
                       const struct apl_sparse_composition* composition, const struct resolve_class* c, int32_t piece) {
  shape->sorted = c->sorted;
  for (int64_t position = 0; position < matrix->rows; ++position) {
    const int64_t row = composition->row_order ? composition->row_order[position] : position;
    const int64_t length = matrix->row_start[row + 1] - matrix->row_start[row], padded = (length + 3) / 4 * 4;
    if (!apl_sparse_is_gathered(composition, position, length)) continue;
    const int64_t each = apl_sparse_piece(composition, position, length, piece);
    const int k = each >= c->block_row ? 0 : each >= c->warp_row ? 1 : 2;
    const int32_t pieces = each < padded ? (int32_t)((padded + each - 1) / each) : 1;
    if (pieces > 1) {
      ++shape->cuts;
      shape->pieces += pieces;
    }
    shape->records += pieces;
    shape->row_elements += padded;
    shape->longs += k == 0 ? pieces : 0;
    shape->mediums += k == 1 ? pieces : 0;
    if (shape->longest[k] < each) shape->longest[k] = (int32_t)each;
  }
}

// Neighbours that share columns find them in the first cache, if they stay neighbours; short ones are better sorted, so
// that a warp's groups have alike much, where they are not the wider.
static int may_stay(const struct apl_sparse_statistics* s, int32_t type, int64_t width) {
  enum { kWideRow = 256 };
  return s->mean >= 24 || (s->shared >= 1.1 && width * apl_sparse_type_size(type) >= kWideRow);
}

double apl_sparse_resolve_rows(const struct apl_sparse_csr* matrix, const struct apl_sparse_composition* composition,
                               const struct apl_device* device, int32_t type, int64_t width,
                               const struct apl_sparse_statistics* s, struct apl_sparse_options* o) {
  // A piece is worth it where a block has many rounds of a row.
  static const int32_t kPieces[] = {4096, 2048, 1024, 512};
  const struct apl_sparse_options asked = *o;
  double least = 0;
  o->piece = asked.piece < 0 ? 0 : asked.piece;
  for (size_t k = 0; k < sizeof kResolveClasses / sizeof kResolveClasses[0]; ++k) {
    struct resolve_class c = kResolveClasses[k];
    if (c.sorted < 0 && asked.sorted == 0 && !may_stay(s, type, width)) continue;
    // Long rows are many: each as a block would be too many of them.
    if (s->rows >= 50000 && c.block_row < 2 * s->mean) c.block_row = (int32_t)(2 * s->mean);
    if (asked.warp_row > 0) c.warp_row = asked.warp_row;
    if (asked.block_row > 0) c.block_row = asked.block_row;
    if (asked.sorted != 0) c.sorted = asked.sorted;
    if (c.block_row < c.warp_row) c.block_row = c.warp_row;
    struct apl_sparse_packed shape = {.device = device,
                                      .statistics = *s,
                                      .rows = matrix->rows,
                                      .columns = matrix->columns,
                                      .nonzeros = matrix->nonzeros};
    const struct apl_sparse_packed empty = shape;
    for (size_t p = 0; p <= sizeof kPieces / sizeof kPieces[0]; ++p) {
      const int32_t piece = p == 0 ? asked.piece : kPieces[p - 1];
      if (p > 0 && (asked.piece != 0 || s->longest <= piece)) continue;
      shape = empty;
      shape_rows(&shape, matrix, composition, &c, piece);
      const double time = resolve_time(&shape, type, width);
      if (least > 0 && time >= least) continue;
      least = time;
      o->warp_row = c.warp_row;
      o->block_row = c.block_row;
      o->sorted = c.sorted;
      o->piece = piece > 0 ? piece : 0;
    }
  }
  return least;
}

double apl_sparse_resolve_windows(const struct apl_sparse_csr* matrix, const struct apl_device* device, int32_t type,
                                  int64_t width, const struct apl_sparse_statistics* s, int32_t* height) {
  double least = 0;
  for (int k = 0; 8 << k <= apl_sparse_highest_window(device, type); ++k) {
    const struct apl_sparse_packed shape = {.device = device,
                                            .statistics = *s,
                                            .rows = matrix->rows,
                                            .columns = matrix->columns,
                                            .nonzeros = matrix->nonzeros,
                                            .parts = 1 << k,
                                            .windows = (int32_t)((matrix->rows + (8 << k) - 1) / (8 << k)),
                                            .steps = (int64_t)s->steps[k],
                                            .units = (int64_t)s->units[k],
                                            .longest_window = s->longest_window[k]};
    const double time = resolve_time(&shape, type, width);
    if (least > 0 && time >= least) continue;
    least = time;
    *height = 8 << k;
  }
  return least;
}
