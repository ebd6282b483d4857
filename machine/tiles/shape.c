// The block that a plan makes, and whether a device can run it.
#include "machine/tiles/shape.h"

#include <string.h>

enum { kTableEntry = 8 };

int apl_mn_share(int64_t warp, int64_t threads, int64_t registers, int64_t vector, struct apl_mn_dim* m_dim,
                 struct apl_mn_dim* n_dim) {
  int64_t best = 0, square = 1;
  if (threads % warp != 0) return 0;
  // Lanes along M and N, the squarest first.
  while (4 * square * square <= warp) square *= 2;
  for (int64_t few = square; few >= 1; few /= 2)
    for (int flipped = 0; flipped <= (few * few != warp); ++flipped) {
      const int64_t m_lanes = flipped ? warp / few : few, n_lanes = warp / m_lanes;
      for (int64_t each = 1; each <= registers; each *= 2) {
        const int64_t other = registers / each;
        if ((other & (other - 1)) != 0 || each * other != registers) continue;
        if (m_dim->extent % (m_lanes * each) != 0 || n_dim->extent % (n_lanes * other) != 0) continue;
        const int64_t cost =
            each + other + (each < vector ? 4 * (vector - each) : 0) + (other < vector ? 4 * (vector - other) : 0);
        if (best != 0 && best <= cost) continue;
        best = cost;
        m_dim->lanes = m_lanes, m_dim->each = each, m_dim->vector = apl_least(vector, each);
        n_dim->lanes = n_lanes, n_dim->each = other, n_dim->vector = apl_least(vector, other);
      }
    }
  if (best == 0) return 0;
  m_dim->warps = m_dim->extent / (m_dim->lanes * m_dim->each);
  n_dim->warps = n_dim->extent / (n_dim->lanes * n_dim->each);
  return 1;
}

int apl_plan_has_mn_dims(const struct apl_contraction* c) {
  for (int d = 0; d < c->space_rank; ++d)
    if (c->dims[d].kind == APL_DIM_M) return 1;
  return 0;
}

// Whether 16-byte vectors along `inner`, the innermost dim of M or N, are aligned everywhere. Dims of M or N that lie
// together with it in the operand are one with it.
static int vectors_fit(const struct apl_contraction* c, int o, int inner) {
  const int64_t width = 16 / c->operands[o].bytes;
  const int64_t* strides = c->operands[o].strides;
  if (width <= 1 || strides[inner] != 1) return 0;
  int64_t together = c->dims[inner].size;
  int apart = inner;  // dims of M or N before this one are not in it
  for (int d = inner; d-- > 0;) {
    if (apl_mn_of(c, d) != apl_mn_of(c, inner)) continue;
    if (strides[d] != together) break;
    together = apl_times(together, c->dims[d].size);
    apart = d;
  }
  if (together % width != 0) return 0;
  for (int d = 0; d < c->dim_count; ++d) {
    const int one = d >= apart && d <= inner && apl_mn_of(c, d) == apl_mn_of(c, inner);
    if (!one && strides[d] % width != 0 && c->dims[d].size > 1) return 0;
  }
  return 1;
}

// The same along the innermost contracted dim.
static int depth_vectors_fit(const struct apl_contraction* c, int o) {
  const int64_t width = 16 / c->operands[o].bytes, last = c->dim_count - 1;
  if (c->operands[o].strides[last] != 1 || c->dims[last].size % width != 0) return 0;
  for (int d = 0; d < last; ++d)
    if (c->operands[o].strides[d] % width != 0 && c->dims[d].size > 1) return 0;
  return 1;
}

// Neighbouring rows of a thread: 16 bytes of the widest element, four at most.
static int64_t rows_together(const struct apl_contraction* c) {
  int widest = c->widest_result;
  for (int o = 0; o < c->operand_count; ++o)
    if (c->operands[o].bytes > widest) widest = c->operands[o].bytes;
  return apl_least(apl_most(16 / apl_most(widest, 1), 1), 4);
}

// Matrix units multiply 64 rows of one operand, 16 for each of four warps, by up to 256 of the other, of elements of 16
// or of 8 bits; their sums lie as those of PTX's wgmma, which are those of mma.m16n8 side by side. Tiles lie in lines
// of 32, 64 or 128 bytes.
enum { kMatrixWarps = 4, kMatrixRows = 64, kMatrixColumns = 64, kMostMatrixColumns = 256 };

int apl_has_matrix_tiles(const struct apl_contraction* c) {
  return c->matrix && c->operand_count == 2 && c->operands[0].bytes <= 2;
}

int apl_matrix_rows(const struct apl_mn_dim* m_dim, const struct apl_mn_dim* n_dim) {
  const struct apl_mn_dim* dims[2] = {m_dim, n_dim};
  for (int rows = 0; rows < 2; ++rows) {
    const struct apl_mn_dim *p = dims[rows], *q = dims[1 - rows];
    if (p->lanes == 8 && p->each == 2 && p->vector == 1 && p->warps % kMatrixWarps == 0 && q->lanes == 4 &&
        q->warps == 1 && q->vector == 2 && q->extent % kMatrixColumns == 0)
      return rows;
  }
  return -1;
}

// The same for a block of so many threads. 0: it is not theirs.
static int matrix_share(const struct apl_contraction* c, const struct apl_plan* plan, int64_t warp, int64_t threads,
                        struct apl_mn_dim* m_dim, struct apl_mn_dim* n_dim) {
  const int64_t line = (int64_t)plan->tile[c->dim_count - 1] * c->operands[0].bytes;
  if (!apl_has_matrix_tiles(c) || warp != 32 || (line != 32 && line != 64 && line != 128)) return 0;
  int of[2] = {-1, -1};
  for (int o = 0; o < 2; ++o)
    for (int d = 0; d < c->space_rank; ++d)
      if (apl_mn_of(c, d) >= 0 && c->operands[o].strides[d] != 0) of[o] = apl_mn_of(c, d);
  if (of[0] < 0 || of[1] < 0 || of[0] == of[1]) return 0;
  struct apl_mn_dim* dims[2] = {m_dim, n_dim};
  for (int rows = 0; rows < 2; ++rows) {
    struct apl_mn_dim *p = dims[rows], *q = dims[1 - rows];
    if (threads % (kMatrixWarps * warp) != 0 || p->extent != threads / 2 || q->extent % kMatrixColumns != 0 ||
        q->extent > kMostMatrixColumns || (q->extent & (q->extent - 1)) != 0)
      continue;
    p->warps = threads / warp, p->lanes = 8, p->each = 2, p->vector = 1;
    q->warps = 1, q->lanes = 4, q->each = q->extent / 4, q->vector = 2;
    return 1;
  }
  return 0;
}

int apl_tf32_products(const struct apl_contraction* c) {
  return c->operand_count == 2 && c->operands[0].bytes == 4 ? c->matrix : 0;
}

// Products of f32 by tf32 take tiles as the cores have them: of a warp's lanes eight lie along N, whose threads have
// four neighbours at a time, and four along M, with eight. Fewest rows are loaded for a step; those of N come twice.
static int tf32_share(const struct apl_contraction* c, int64_t warp, int64_t threads, int64_t registers,
                      struct apl_mn_dim* m_dim, struct apl_mn_dim* n_dim) {
  enum { kMLanes = 4, kMRows = 8, kNLanes = 8, kNRows = 4 };
  int64_t best = 0;
  if (apl_tf32_products(c) == 0 || warp != kMLanes * kNLanes || threads % warp != 0) return 0;
  for (int64_t each = kNRows; each * kMRows <= registers; each *= 2) {
    const int64_t other = registers / each;
    if (each * other != registers || (other & (other - 1)) != 0 || n_dim->extent % (kNLanes * each) != 0 ||
        m_dim->extent % (kMLanes * other) != 0 || (best != 0 && best <= 2 * each + other))
      continue;
    best = 2 * each + other;
    *m_dim = (struct apl_mn_dim){.extent = m_dim->extent, .lanes = kMLanes, .each = other, .vector = kMRows};
    *n_dim = (struct apl_mn_dim){.extent = n_dim->extent, .lanes = kNLanes, .each = each, .vector = kNRows};
  }
  if (best == 0) return 0;
  m_dim->warps = m_dim->extent / (kMLanes * m_dim->each);
  n_dim->warps = n_dim->extent / (kNLanes * n_dim->each);
  return 1;
}

int apl_plan_mainloop(const struct apl_contraction* c, const struct apl_plan* plan, int64_t warp, int matrix_units,
                      struct apl_mn_dim* m_dim, struct apl_mn_dim* n_dim) {
  int64_t threads = 1, registers = 1;
  memset(m_dim, 0, sizeof *m_dim), memset(n_dim, 0, sizeof *n_dim);
  m_dim->extent = n_dim->extent = 1;
  if (c->general || !apl_plan_has_mn_dims(c)) return 0;
  for (int d = 0; d < c->space_rank; ++d) {
    const int64_t extent = apl_times(plan->tile[d], plan->reg[d]);
    threads = apl_times(threads, plan->tile[d]), registers = apl_times(registers, plan->reg[d]);
    if (apl_mn_of(c, d) < 0 && extent != 1) return 0;
    if (apl_mn_of(c, d) == 0) m_dim->extent = apl_times(m_dim->extent, extent);
    if (apl_mn_of(c, d) == 1) n_dim->extent = apl_times(n_dim->extent, extent);
  }
  if (matrix_units &&
      (matrix_share(c, plan, warp, threads, m_dim, n_dim) || tf32_share(c, warp, threads, registers, m_dim, n_dim)))
    return 1;
  return m_dim->extent > 1 && n_dim->extent > 1 &&
         apl_mn_share(warp, threads, registers, rows_together(c), m_dim, n_dim);
}

static void find_tiles(const struct apl_contraction* c, const struct apl_plan* plan, struct apl_plan_shape* shape) {
  int inner[2] = {-1, -1};  // the innermost dim of M and of N
  for (int d = 0; d < c->space_rank; ++d)
    if (apl_mn_of(c, d) >= 0) inner[apl_mn_of(c, d)] = d;
  // Of M the one along which its operand is contiguous comes last (ir/schedule.h).
  for (int o = 0; o < c->operand_count; ++o)
    for (int d = 0; d < c->space_rank && !apl_is_resident(c, o); ++d)
      if (apl_mn_of(c, d) == 0 && c->operands[o].strides[d] == 1 && c->dims[d].size > 1) inner[0] = d;
  for (int o = 0; o < c->operand_count; ++o) {
    const struct apl_plan_operand* operand = &c->operands[o];
    struct apl_tile_shape* tile = &shape->tiles[o];
    tile->bytes = operand->bytes;
    tile->resident = apl_is_resident(c, o);
    for (int d = 0; d < c->space_rank; ++d)
      if (apl_mn_of(c, d) >= 0 && operand->strides[d] != 0) tile->along[apl_mn_of(c, d)] = 1;
    tile->rows = tile->depth = tile->registers = 1;
    int unit_space = 0, unit_depth = 0;
    for (int d = 0; d < c->dim_count; ++d) {
      if (operand->strides[d] == 0) continue;
      const int64_t extent = (int64_t)plan->tile[d] * (d < c->space_rank ? plan->reg[d] : 1);
      if (d >= c->space_rank)
        tile->depth = apl_times(tile->depth, extent);
      else if (apl_is_free(c, d))
        tile->rows = apl_times(tile->rows, extent), tile->registers = apl_times(tile->registers, plan->reg[d]);
      if (operand->strides[d] == 1 && extent > 1) *(d < c->space_rank ? &unit_space : &unit_depth) = 1;
    }
    tile->mn = APL_NO_MN_DIM;
    if (shape->has_mn_dims && tile->resident) {
      tile->copy = APL_COPY_ROWS;
    } else if (shape->has_mn_dims) {
      for (int d = 0; d < c->space_rank; ++d)
        if (apl_mn_of(c, d) >= 0 && operand->strides[d] != 0) tile->mn = apl_mn_of(c, d);
      const int last = c->dim_count - 1;
      if (tile->mn == APL_NO_MN_DIM)
        tile->copy = APL_COPY_ROWS;
      else if (operand->strides[last] == 1)
        tile->copy = APL_COPY_DEPTH;
      else if (operand->strides[inner[tile->mn]] == 1)
        tile->copy = vectors_fit(c, o, inner[tile->mn]) && tile->rows % (16 / operand->bytes) == 0 ? APL_COPY_VECTORS
                                                                                                   : APL_COPY_ROWS;
      else
        tile->copy = APL_COPY_SCATTERED;
    } else {
      tile->copy = unit_space || unit_depth ? APL_COPY_ROWS : APL_COPY_SCATTERED;
    }
  }
}

// The mainloop's shared memory, as codegen/contraction/tile_loop.cpp lays it out: stages of tiles, tables of rows,
// write-back.
static int64_t mainloop_shared(const struct apl_contraction* c, const struct apl_plan_shape* shape, int64_t stages) {
  int64_t bytes = 0, tables[2] = {1, 1}, stage = 0;
  for (int o = 0; o < c->operand_count; ++o) {
    const struct apl_tile_shape* tile = &shape->tiles[o];
    for (int s = 0; s < 2; ++s) tables[s] += c->operands[o].row_numbers[s];
    if (tile->resident) continue;
    bytes += apl_up(apl_times(apl_times(tile->rows, tile->depth), stages * tile->bytes), 16) * 16;
    stage = apl_most(stage, apl_times(tile->rows, tile->depth) * tile->bytes);
    if (tile->mn != APL_NO_MN_DIM) ++tables[tile->mn];
  }
  for (int s = 0; s < 2; ++s)
    bytes += tables[s] * (apl_up((s == 0 ? 2 : 1) * shape->mn_dims[s].extent * kTableEntry, 16) * 16);
  if (shape->mn_dims[1].vector > 1 && !shape->matrix)
    bytes += shape->threads * shape->mn_dims[1].each * (c->stored_sum_bytes ? c->stored_sum_bytes : c->result_bytes);
  // Results of matrix units go through the last step's tiles if those have room for them.
  if (shape->matrix) {
    const struct apl_mn_dim *m_dim = &shape->mn_dims[0], *n_dim = &shape->mn_dims[1];
    // A warp's eight rows of 32 columns, or 16 rows of the block's; lines are apart by more (write_back.cpp).
    enum { kWarpRows = 8, kWarpLine = 40, kBlockRows = 16, kBlockApart = 4 };
    const int64_t staged =
        n_dim->warps == 1 ? m_dim->warps * kWarpRows * kWarpLine : kBlockRows * (n_dim->extent + kBlockApart);
    const int64_t element = c->stored_sum_bytes ? c->stored_sum_bytes : c->widest_result;
    if (staged * element > stage) bytes += staged * element;
  }
  return bytes;
}

// The general kernel pads each row of a tile by at most one element.
static int64_t general_shared(const struct apl_contraction* c, const struct apl_plan* plan,
                              const struct apl_plan_shape* shape) {
  int64_t bytes = 0;
  for (int o = 0; o < c->operand_count; ++o) {
    const struct apl_tile_shape* tile = &shape->tiles[o];
    int64_t shortest = 0;
    for (int d = 0; d < c->dim_count; ++d) {
      const int64_t extent = (int64_t)plan->tile[d] * (d < c->space_rank ? plan->reg[d] : 1);
      if (c->operands[o].strides[d] != 0 && extent > 1 && (shortest == 0 || extent < shortest)) shortest = extent;
    }
    int64_t elements = apl_times(tile->rows, tile->depth);
    if (shortest > 0 && !shape->has_mn_dims) elements += elements / shortest;
    bytes += apl_up(apl_times(elements, tile->bytes), 16) * 16;
  }
  return bytes;
}

static void estimate_registers(const struct apl_contraction* c, struct apl_plan_shape* shape) {
  const int64_t lanes = apl_up(apl_most(c->accumulator_bytes, 4), 4);
  const int64_t accumulators = apl_times(shape->registers, lanes);
  // Measured with ptxas on the products of matrices: what is left goes to addresses, and grows with what is unrolled.
  enum {
    kOtherRegisters = 52,
    kFewest = 96,
    kFewCopies = 16,
    kCopies = 2,
    kRows = 3,
    kOneProduct = 28,
    kThreeProducts = 32,
    kEpilogue = 8,
    kEpilogueArray = 14,
    kCondition = 6,
    kManyDoubles = 128,
    kFewPieces = 8
  };
  int64_t fragments = 0, spread = 0, pieces = 0;
  for (int o = 0; o < c->operand_count; ++o) {
    const struct apl_tile_shape* tile = &shape->tiles[o];
    int64_t each = shape->has_mainloop && tile->mn != APL_NO_MN_DIM ? shape->mn_dims[tile->mn].each : tile->registers;
    if (shape->has_mainloop && tile->resident)
      each = (tile->along[0] ? shape->mn_dims[0].each : 1) * (tile->along[1] ? shape->mn_dims[1].each : 1);
    spread = apl_most(spread, (int64_t)kCondition * c->operands[o].conditions);
    fragments += shape->matrix ? 0 : each * apl_up(tile->bytes, 4);
    // Of tf32 the parts of both halves of eight steps: all of M's rows, four of N's.
    if (shape->tf32) fragments += tile->mn == 0 ? (shape->tf32 == 3 ? each : 0) : (shape->tf32 == 3 ? 16 : 8) - each;
    // Copies are unrolled, and many of them keep many addresses; more so where a thread changes rows between them.
    const int64_t copies = shape->has_mainloop && !tile->resident ? tile->rows * tile->depth / shape->threads : 0;
    const int changes = tile->copy != APL_COPY_DEPTH && tile->rows > shape->threads;
    // Where a piece of 16 bytes comes from is kept; of the first ones the rest has room.
    if (shape->matrix)
      pieces += tile->rows * tile->depth * tile->bytes / 16 / shape->threads;
    else
      spread = apl_most(spread, changes ? copies * kRows : apl_most(copies - kFewCopies, 0) * kCopies);
  }
  // One product of tf32 with 128 accumulators takes 233 registers, three with 64 take 195, and with 128 spill some
  // bytes.
  if (shape->tf32) fragments += shape->tf32 == 3 ? kThreeProducts : kOneProduct;
  // Units of f64 load both halves of a step ahead, and the fewer sums there are, the more steps: beside 128 registers
  // of sums the rest has been enough, beside 64 it takes up to 166 in all, beside 32 up to 136.
  const int doubles = shape->has_mainloop && c->matrix && c->operand_count == 2 && c->operands[0].bytes == 8;
  if (doubles) fragments += apl_most(kManyDoubles - accumulators, 0) * 5 / 16;
  // More of them where steps are deep: with sums in 16 registers more than 128 in all.
  if (doubles && shape->depth > kFewCopies) fragments += apl_most(kManyDoubles - accumulators, 0) / 8;
  fragments += 2 * apl_most(pieces - kFewPieces, 0);
  // What the epilogue reads is loaded ahead, with an address for each row.
  const int64_t of_array = shape->tf32 ? 2 * shape->mn_dims[0].each : kEpilogueArray;
  // Where results are stored, it has room beside the sums.
  const int64_t after = shape->has_mainloop && c->epilogue_arrays > 0 && c->stored_sum_bytes == 0
                            ? kEpilogue + of_array * c->epilogue_arrays
                            : 0;
  shape->needed_registers = accumulators + fragments + after +
                            (shape->has_mainloop ? kOtherRegisters + accumulators / 8 + spread : kOtherRegisters / 2);
  shape->thread_registers = apl_most(shape->needed_registers, shape->has_mainloop ? kFewest : 0);
  shape->block_accumulators = apl_times(apl_times(shape->threads, shape->registers), apl_most(c->accumulator_bytes, 4));
}

void apl_plan_shape_of(const struct apl_contraction* c, const struct apl_plan* plan, const struct apl_device* device,
                       struct apl_plan_shape* shape) {
  struct apl_plan_known known = {0};
  apl_plan_shape_with(c, plan, device, &known, shape);
}

// Whether the block can be shared out as the mainloop wants it. Plans come in the order of their blocks.
static int share_block(const struct apl_contraction* c, const struct apl_plan* plan, const struct apl_device* device,
                       struct apl_plan_known* known, struct apl_plan_shape* shape) {
  if (device->matrix_units && c->matrix) {
    for (int s = 0; s < 2; ++s) shape->mn_dims[s] = (struct apl_mn_dim){.extent = shape->rows[s]};
    shape->matrix = matrix_share(c, plan, device->warp, shape->threads, &shape->mn_dims[0], &shape->mn_dims[1]);
    // Tiles of 8 bits lie by depth, whatever their source does.
    for (int o = 0; shape->matrix && o < c->operand_count; ++o)
      if (depth_vectors_fit(c, o))
        shape->tiles[o].copy = APL_COPY_VECTORS;
      else if (c->operands[o].bytes == 1 && shape->tiles[o].copy == APL_COPY_VECTORS)
        shape->tiles[o].copy = APL_COPY_ROWS;
    if (shape->matrix) return 1;
    shape->tf32 = tf32_share(c, device->warp, shape->threads, shape->registers, &shape->mn_dims[0], &shape->mn_dims[1])
                      ? apl_tf32_products(c)
                      : 0;
    if (shape->tf32) return 1;
  }
  const int alike = known->filled == 2 && known->threads == shape->threads && known->registers == shape->registers &&
                    known->mn_dims[0].extent == shape->rows[0] && known->mn_dims[1].extent == shape->rows[1];
  if (!alike) {
    known->filled = 2, known->threads = shape->threads, known->registers = shape->registers;
    memset(known->mn_dims, 0, sizeof known->mn_dims);
    for (int s = 0; s < 2; ++s) known->mn_dims[s].extent = shape->rows[s];
    known->shared = apl_mn_share(device->warp, shape->threads, shape->registers, rows_together(c), &known->mn_dims[0],
                                 &known->mn_dims[1]);
  }
  memcpy(shape->mn_dims, known->mn_dims, sizeof shape->mn_dims);
  return known->shared;
}

void apl_plan_shape_with(const struct apl_contraction* c, const struct apl_plan* plan, const struct apl_device* device,
                         struct apl_plan_known* known, struct apl_plan_shape* shape) {
  memset(shape, 0, sizeof *shape);
  if (!known->filled) {
    known->has_mn_dims = apl_plan_has_mn_dims(c);
    known->filled = 1;
  }
  shape->has_mn_dims = known->has_mn_dims;
  shape->threads = shape->registers = shape->depth = shape->blocks = shape->points = 1;
  shape->rows[0] = shape->rows[1] = shape->rows_size[0] = shape->rows_size[1] = 1;
  shape->steps = shape->reduction = 1;
  int own_axes = 1;  // all of one element a block
  for (int d = 0; d < c->dim_count; ++d) {
    const int64_t size = c->dims[d].size;
    if (d >= c->space_rank) {
      shape->depth = apl_times(shape->depth, plan->tile[d]);
      shape->steps = apl_times(shape->steps, apl_up(apl_most(size, 0), apl_most(plan->tile[d], 1)));
      shape->reduction = apl_times(shape->reduction, size);
      continue;
    }
    shape->points = apl_times(shape->points, size);
    if (!apl_is_free(c, d)) {
      shape->blocks = apl_times(shape->blocks, size);
      continue;
    }
    const int64_t extent = apl_times(plan->tile[d], plan->reg[d]);
    shape->threads = apl_times(shape->threads, plan->tile[d]);
    shape->registers = apl_times(shape->registers, plan->reg[d]);
    const int mn = apl_mn_of(c, d);
    if (mn >= 0) {
      shape->rows[mn] = apl_times(shape->rows[mn], extent);
      shape->rows_size[mn] = apl_times(shape->rows_size[mn], size);
      continue;
    }
    // An axis of its own.
    own_axes = own_axes && extent == 1;
    if (!shape->has_mn_dims) shape->rows[1] = apl_times(shape->rows[1], extent);
    shape->blocks = apl_times(shape->blocks, apl_up(size, apl_most(extent, 1)));
  }
  if (shape->has_mn_dims)
    for (int s = 0; s < 2; ++s)
      shape->blocks = apl_times(shape->blocks, apl_up(shape->rows_size[s], apl_most(shape->rows[s], 1)));
  find_tiles(c, plan, shape);

  for (int s = 0; s < 2; ++s) shape->mn_dims[s].extent = shape->rows[s];
  shape->has_mainloop = shape->has_mn_dims && !c->general && own_axes && device->mainloop && shape->rows[0] > 1 &&
                        shape->rows[1] > 1 && share_block(c, plan, device, known, shape);
  const int64_t stages = plan->stages > 0 ? plan->stages : kPlanStages;
  shape->shared = shape->has_mainloop ? mainloop_shared(c, shape, stages) : general_shared(c, plan, shape);
  estimate_registers(c, shape);
  // The N dims' innermost dims that follow each other in the result are one.
  int64_t together = 1;
  for (int d = c->space_rank; shape->has_mn_dims && d-- > 0;) {
    if (apl_mn_of(c, d) == 1) together = apl_times(together, c->dims[d].size);
    if (apl_mn_of(c, d) != 1 && together > 1) break;
  }
  shape->aligned_result = shape->has_mn_dims && together % apl_most(shape->mn_dims[1].vector, 1) == 0;
  // The N dims must hold the innermost dim that has more than one element, or nothing is contiguous.
  for (int d = c->space_rank; d-- > 0;) {
    if (c->dims[d].size == 1) continue;
    if (shape->has_mn_dims && apl_mn_of(c, d) != 1) shape->aligned_result = 0;
    break;
  }

  shape->blocks_per_multiprocessor = 1;
  if (!apl_has_warps(device)) return;
  const int64_t warps = apl_up(shape->threads, device->warp);
  const int64_t registers = apl_up(apl_least(shape->thread_registers, device->thread_registers), 8) * 8;
  int64_t resident = device->multiprocessor_blocks;
  // Each scheduler has its share of the registers, for whole warps.
  const int64_t schedulers = apl_most(device->schedulers, 1);
  const int64_t resident_warps = device->registers / schedulers / apl_most(registers * device->warp, 1) * schedulers;
  resident = apl_least(resident, resident_warps / warps);
  resident = apl_least(resident, device->multiprocessor_shared / (shape->shared + device->reserved_shared));
  resident = apl_least(resident, device->multiprocessor_threads / apl_most(warps * device->warp, 1));
  shape->blocks_per_multiprocessor = resident;
}

enum apl_plan_fault apl_plan_fault_of(const struct apl_plan_shape* shape, const struct apl_device* device,
                                      int64_t* needed, int64_t* limit) {
  const int gpu = apl_has_warps(device);
  if (gpu && shape->threads > device->block_threads) {
    *needed = shape->threads, *limit = device->block_threads;
    return APL_PLAN_THREADS;
  }
  // On a CPU tiles and accumulators of all threads must stay in the core's cache.
  const int64_t shared = gpu ? shape->shared : shape->shared + shape->block_accumulators;
  if (shared > device->block_shared) {
    *needed = shared, *limit = device->block_shared;
    return APL_PLAN_SHARED;
  }
  if (gpu) {
    const int64_t threads = apl_up(shape->threads, device->warp) * device->warp;
    *limit = apl_least(device->thread_registers, device->registers / threads / 8 * 8);
    *needed = shape->needed_registers;
    if (*needed > *limit) return APL_PLAN_REGISTERS;
    // A grid has one dim.
    *needed = shape->blocks, *limit = INT32_MAX;
    if (*needed > *limit) return APL_PLAN_BLOCKS;
  }
  *needed = *limit = 0;
  return APL_PLAN_FINE;
}

enum apl_plan_fault apl_plan_check(const struct apl_contraction* c, const struct apl_plan* plan,
                                   const struct apl_device* device, int64_t* needed, int64_t* limit) {
  *limit = 1;
  for (int d = 0; d < c->dim_count; ++d) {
    *needed = apl_least(plan->tile[d], d < c->space_rank ? plan->reg[d] : 1);
    if (*needed < 1) return APL_PLAN_RANGE;
  }
  struct apl_plan_shape shape;
  apl_plan_shape_of(c, plan, device, &shape);
  return apl_plan_fault_of(&shape, device, needed, limit);
}
