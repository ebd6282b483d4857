// What a plan costs. GPU: the larger of arithmetic and shared memory, and of memory and cache traffic, overlap only in
// part (more of matrix units than of cores); latency that nothing hides comes on top, and the last wave of blocks takes
// nearly as long as the others. Constants are those with which 728 plans of 63 contractions, and the plans of tables of
// 216 more, come nearest to what they took on an H100 (bench/results/plans-h100-2026-11-26.json, bench/plans_gpu.py).
#include <math.h>
#include <string.h>

#include "machine/tiles/shape.h"

// ---- bank conflicts ----

// Passes that shared memory takes for a warp's load of `vector` 4-byte words a lane along M or N: a pairing of lanes
// needs two passes for 16 bytes, different addresses four, and a broadcast two (measured).
static double load_passes(const struct apl_mn_dim* mn, const struct apl_mn_dim* other, int64_t bytes) {
  const int paired = (mn->lanes == 4 && other->lanes == 8) || (mn->lanes == 8 && other->lanes == 4);
  const double wide = (double)(mn->vector * bytes) / 16;
  if (wide <= 0.25) return 1;
  if (paired || mn->lanes <= 2) return wide <= 0.5 ? 1 : 2 * wide;
  return wide <= 0.5 ? 2 * wide : 4 * wide;
}

// The least that such a load could take: its different words, a bank each a pass.
static double least_passes(const struct apl_mn_dim* mn, int64_t bytes, const struct apl_device* device) {
  const double words = (double)(mn->lanes * mn->vector * bytes) / 4;
  return words <= device->shared_banks ? 1 : words / device->shared_banks;
}

// Passes of a transposing copy, of one that is free of conflicts: 8 threads of a warp along the depth, the others along
// the rows; swizzled where the extent allows it.
static double transposed_passes(int64_t extent, const struct apl_device* device) {
  enum { kSwizzled = 32 };
  if (extent % kSwizzled == 0) return 1;
  int counts[APL_PLAN_MOST_LANES] = {0}, most = 1;
  for (int lane = 0; lane < device->warp; ++lane) {
    const int bank = (int)((lane % 8 * extent + lane / 8) % device->shared_banks);
    if (++counts[bank] > most) most = counts[bank];
  }
  return fmax(1, (double)most * device->shared_banks / device->warp);
}

// ---- traffic ----

// Whether what else is in a sector is gone from the cache when a block wants it: between two neighbours along the
// operand's contiguous dim lie all blocks of the dims inside of that.
static int sectors_are_lost(const struct apl_contraction* c, const struct apl_plan_operand* operand,
                            const struct apl_device* device) {
  double between = device->sector_bytes;
  int fast = -1;
  for (int d = 0; d < c->space_rank; ++d)
    if (operand->strides[d] == 1 && c->dims[d].size > 1) fast = d;
  if (fast < 0) return 0;
  for (int d = fast + 1; d < c->dim_count; ++d)
    if (operand->strides[d] != 0) between *= (double)c->dims[d].size;
  return 2 * between > (double)device->cache_bytes;
}

// What a block's tiles read, and all of the operands once, in bytes of memory.
static void traffic(const struct apl_contraction* c, const struct apl_plan_shape* s, const struct apl_device* device,
                    struct apl_plan_cost* cost) {
  double once = (double)s->points * c->result_bytes, block = 0;
  for (int o = 0; o < c->operand_count; ++o) {
    double elements = 1, steps = 1;
    for (int d = 0; d < c->dim_count; ++d)
      if (c->operands[o].strides[d] != 0) elements *= (double)c->dims[d].size;
    const double bytes = c->operands[o].computed > 0 ? c->operands[o].read_bytes : c->operands[o].bytes;
    once += elements * bytes;
    // Whole sectors come, whatever is wanted of them.
    const struct apl_tile_shape* tile = &s->tiles[o];
    double sector = 1;
    if (tile->copy == APL_COPY_SCATTERED) {
      sector = (double)device->sector_bytes / tile->bytes;
      // Memory reads two sectors at once (TCCG 06 in f64 on an H200: 2.05 ms, 2.7 GiB in sectors).
      const double kSectorsAtOnce = 2;
      if (sectors_are_lost(c, &c->operands[o], device)) once += elements * bytes * (kSectorsAtOnce * sector - 1);
    }
    if (tile->copy == APL_COPY_DEPTH && tile->depth * tile->bytes < device->sector_bytes)
      sector = (double)device->sector_bytes / (double)(tile->depth * tile->bytes);
    steps = tile->resident ? 1 : (double)s->steps;
    block += (double)tile->rows * (double)apl_least(tile->depth, s->reduction) * sector * steps *
             (c->operands[o].computed > 0 ? c->operands[o].read_bytes : tile->bytes);
  }
  cost->memory_bytes = once;
  cost->cache_bytes = block * (double)s->blocks + (double)s->points * c->result_bytes;
  if (cost->cache_bytes < once) cost->cache_bytes = once;
}

// How a block writes rows of results: along N, whose dims that lie together in the results are a row.
struct result_rows {
  int64_t bytes;      // of a row; of a single element: there is none
  int64_t at_once;    // of it and of rows behind it, that are written together
  int next, follows;  // the dim outside of the row, and whether the rows of M's tiles go along it
};

static struct result_rows rows_of_results(const struct apl_contraction* c, const struct apl_plan_shape* s) {
  // Warps of matrix units that have columns of their own write 32 at once; others lines of the block's, some rows of M
  // behind each other.
  const int64_t kColumns = 32, kRows = 4;
  int64_t together = 1;
  int slow = -1;
  struct result_rows rows = {.next = -1};
  for (int d = c->space_rank; d-- > 0 && rows.next < 0;) {
    if (c->dims[d].size == 1) continue;
    if (apl_mn_of(c, d) == 1)
      together = apl_times(together, c->dims[d].size);
    else
      rows.next = d;
  }
  for (int d = 0; d < c->space_rank; ++d)
    if (apl_mn_of(c, d) == 0) slow = d;
  for (int o = 0; o < c->operand_count; ++o)
    for (int d = 0; d < c->space_rank; ++d)
      if (apl_mn_of(c, d) == 0 && c->operands[o].strides[d] == 1 && c->dims[d].size > 1) slow = d;
  const int of_warps = s->matrix && s->mn_dims[1].warps == 1;
  rows.bytes = apl_times(together, c->widest_result);
  rows.follows = slow == rows.next && s->rows[1] >= together;
  rows.at_once = apl_least(together, of_warps ? kColumns : s->rows[1]) * c->widest_result;
  if (s->matrix && !of_warps && rows.follows) rows.at_once *= kRows;
  return rows;
}

// How many times the bytes of results their writes take. Where rows are no whole lines, and what is beside them in a
// line is another block's, memory sees pieces (TCCG 32: 24 f32 of each 384 at once take 114 us, in the order of the
// results 67).
static double partial_line_factor(const struct apl_contraction* c, const struct apl_plan_shape* s, double of_pieces,
                                  double scattered, const struct apl_device* device) {
  const int64_t kManyLines = 8;
  const struct result_rows rows = rows_of_results(c, s);
  if (rows.next < 0) return 1;
  if (rows.bytes == c->widest_result) return scattered;
  if (rows.bytes % device->line_bytes == 0 || rows.bytes >= kManyLines * device->line_bytes || rows.follows) return 1;
  return 1 + of_pieces * device->line_bytes / (double)rows.at_once;
}

// The same of matrix units where rows are no whole sectors, so that two blocks write one.
static double partial_sector_factor(const struct apl_contraction* c, const struct apl_plan_shape* s,
                                    const struct apl_device* device) {
  const double kOfWarps = 0.39, kOfBlocks = 1.0;
  const struct result_rows rows = rows_of_results(c, s);
  if (rows.bytes == c->widest_result || rows.bytes % device->sector_bytes == 0) return 1;
  return 1 + (s->mn_dims[1].warps == 1 ? kOfWarps : kOfBlocks) * device->line_bytes / (double)rows.at_once;
}

// ---- GPU ----

// How many elements of a row of a tile lie together: along the depth, or along the operand's rows.
static double contiguous_run(const struct apl_contraction* c, const struct apl_plan* plan,
                             const struct apl_plan_shape* s, int o) {
  const int64_t* strides = c->operands[o].strides;
  const int last = c->dim_count - 1;
  if (strides[last] == 1) return (double)apl_least(plan->tile[last], apl_most(c->dims[last].size, 1));
  const int64_t rows = s->tiles[o].rows;
  int64_t together = 1;
  for (int d = 0; d < c->space_rank && together < rows; ++d)
    if (strides[d] == together && c->dims[d].size > 1) together = apl_times(together, c->dims[d].size), d = -1;
  return (double)apl_least(together, rows);
}

// Steps of the matrix units of 16 and 8 bits.
struct matrix_step {
  double busy;   // what a multiprocessor has to do for it
  double alone;  // how long it takes a block that has no other beside it
};

static struct matrix_step matrix_step(const struct apl_contraction* c, const struct apl_plan* plan,
                                      const struct apl_plan_shape* s, const struct apl_device* device, double stages) {
  // Issue slots: of a thread's copy of 16 bytes, of the same through registers, of an element, of a warp's step.
  const double kCopy = 46, kPiece = 297, kScattered = 275, kStep = 220, kSinglesAtOnce = 8;
  const double kLine = 2.5;        // cycles of a line of a cache, however much of it is wanted
  const double kUnderWay = 2400;   // cycles of a copy, from its start to the barrier behind it
  const double kSlowedDown = 1.2;  // long products lower the clock
  double copies = 0, lines = 0, waits = 0;
  for (int o = 0; o < 2; ++o) {
    const struct apl_tile_shape* tile = &s->tiles[o];
    const double elements = (double)tile->rows * (double)tile->depth;
    const int by_depth = c->operands[o].strides[c->dim_count - 1] == 1;
    // Rows that run along the depth want deep steps (72 deep, 5,832 tiles: 352 us with steps of 16 on an H200, 125 with
    // 64); what begins anywhere is in one line more.
    const double run = contiguous_run(c, plan, s, o) * tile->bytes / device->line_bytes;
    lines += elements * tile->bytes / (run * device->line_bytes) * (run == floor(run) ? run : run + 1);
    const double pieces = elements * tile->bytes / 16, asked = 6 * c->operands[o].conditions;
    // Bytes whose source lies otherwise than the tile, and what is contiguous nowhere, come one by one.
    const int one_by_one = tile->copy == APL_COPY_SCATTERED || (tile->bytes == 1 && !by_depth);
    if (c->operands[o].computed > 0) {
      // Like pieces through registers, with the map of each element; without vectors each is a load of its own.
      const double apart = tile->copy == APL_COPY_SCATTERED ? kScattered : 0;
      copies += pieces * kPiece + elements * (apart + c->operands[o].computed);
      waits += ceil(pieces / (double)s->threads);
    } else if (tile->copy == APL_COPY_VECTORS) {
      copies += pieces * (kCopy + asked);
    } else if (!one_by_one) {
      copies += pieces * (kPiece + asked), waits += ceil(pieces / (double)s->threads);
    } else {
      copies += elements * (kScattered + asked), waits += ceil(elements / (double)s->threads / kSinglesAtOnce);
    }
  }
  const double warps = (double)s->threads / device->warp;
  const double issue = (copies / device->warp + warps * kStep) / device->schedulers;
  // Twice as many of 8 bits as of 16.
  const double products = (double)s->rows[0] * (double)s->rows[1] * (double)s->depth * c->operands[0].bytes / 2.0 *
                          kSlowedDown / device->matrix_fmas_per_clock;
  struct matrix_step step = {.busy = fmax(products, fmax(issue, kLine * lines))};
  const double ahead = fmax(1, fmin(stages - 1, (double)s->steps));
  step.alone = fmax(step.busy, kUnderWay / ahead + kLine * lines) + 0.7 * waits * device->load_cycles;
  return step;
}

static double gpu_copy_instructions(const struct apl_tile_shape* tile, const struct apl_plan_operand* operand,
                                    int has_mainloop) {
  const double elements = (double)tile->rows * (double)tile->depth;
  const int conditions = operand->conditions;
  if (operand->computed > 0) return elements * (12 + operand->computed);
  if (!has_mainloop) return elements * (12 + 6 * conditions);  // an index, a guard, a load and a store each
  if (conditions > 0) return elements * (12 + 6 * conditions);
  if (tile->copy == APL_COPY_VECTORS) return elements * tile->bytes / 16 * 2.5;
  // A copy in four lines holds up the others (4096^3 in f64 on an H100: 3.65 ms with both operands along the
  // depth, 2.85 along rows).
  if (tile->copy == APL_COPY_DEPTH) return elements * (tile->bytes == 8 ? 18 : 23);
  return elements * 8;
}

// What a remainder step adds where steps are few, as a factor: its code, which guards each copy, takes as long as a
// whole step, however few it has (TCCG 20 and 22 on an H200: a depth of 72 takes 8.0 ms in steps of 16, 7.2 ms in
// steps of 24).
static double remainder_share(const struct apl_contraction* c, const struct apl_plan* plan,
                              const struct apl_plan_shape* s) {
  const int last = c->dim_count - 1;
  const int64_t size = c->dims[last].size, depth = apl_most(plan->tile[last], 1);
  const int64_t kFewSteps = 8;
  if (!s->has_mainloop || s->matrix || size <= 0 || size % depth == 0 || size / depth >= kFewSteps) return 1;
  return (double)apl_up(size, depth) * (double)depth / (double)size;
}

// Blocks that take turns on a multiprocessor, and the rounds of those.
struct waves {
  double blocks, resident, rounds;
};
static struct waves waves_of(const struct apl_plan_shape* s, const struct apl_device* device) {
  struct waves waves = {.blocks = fmax(1, ceil((double)s->blocks / device->multiprocessors))};
  waves.resident = fmax(1, fmin((double)s->blocks_per_multiprocessor, waves.blocks));
  waves.rounds = ceil(waves.blocks / waves.resident);
  return waves;
}

// What short reductions, whose blocks hide no latency themselves, lose with tiles of another size than the best one,
// and with more threads. TCCG 36, 39, 40 and 43 by matrix units: 62 us in tiles of 64 x 64, 67 and 68 in twice as large
// ones, 72 in those of 128 x 128; in f32 75 us in tiles of 128 x 64, 88 with 256 threads, 81 to 88 in those of 64 x 64,
// 94 in those of 128 x 128.
static double short_reduction_factor(const struct apl_plan_shape* s, int64_t longest, double best, int64_t threads) {
  const double kOtherSize = 0.09, kMoreThreads = 1.1;
  if (s->reduction > longest) return 1;
  double points = 1, all = 1;
  for (int side = 0; side < 2; ++side) {
    const int64_t size = apl_most(s->rows_size[side], 1);
    points *= (double)apl_least(s->rows[side], size), all *= (double)size;
  }
  return (1 + kOtherSize * fabs(log2(points / fmin(best, all)))) * (s->threads > threads ? kMoreThreads : 1);
}

// Matrix units of 16 and 8 bits: what all blocks of a multiprocessor have to do, or what the rounds of blocks take that
// each wait for their own copies.
static void matrix_cost(const struct apl_contraction* c, const struct apl_plan* plan, const struct apl_plan_shape* s,
                        const struct apl_device* device, struct apl_plan_cost* cost) {
  // Issue slots that a sum takes on its way to the results; of the cache's rate what the units' copies get, which go
  // past the nearest cache.
  const double kWrite = 26, kCache = 2.2, kPieces = 0.78, kScattered = 3.4;
  const double warps = (double)s->threads / device->warp, clock = device->clock_ghz * 1e9;
  const double stages = plan->stages > 0 ? plan->stages : kPlanStages, steps = (double)s->steps;
  const struct matrix_step step = matrix_step(c, plan, s, device, stages);
  const int pairs = s->aligned_result && s->mn_dims[1].vector > 1, halves = !pairs && s->mn_dims[1].vector > 1;
  const double write = kWrite * (double)s->registers * c->result_bytes / 4 * (pairs ? 0.5 : halves ? 2 : 1);
  const struct waves waves = waves_of(s, device);
  const double busy = waves.blocks * (steps * step.busy + warps * write / device->schedulers);
  const double alone = waves.rounds * steps * step.alone;
  cost->arithmetic = busy / clock;
  cost->latency = fmax(0, alone - busy) / clock;
  const double result = (double)s->points * c->result_bytes;
  const double written =
      result * partial_line_factor(c, s, kPieces, kScattered, device) * partial_sector_factor(c, s, device);
  const double memory = (cost->memory_bytes - result + written) / (device->memory_gbs * 1e9);
  const double cache = cost->cache_bytes / (device->cache_gbs * 1e9 * kCache);
  cost->memory = sqrt(memory * memory + cache * cache);
  const double compute = cost->arithmetic + cost->latency;
  cost->read_conflicts = cost->write_conflicts = 1;
  cost->seconds = sqrt(compute * compute + cost->memory * cost->memory) + device->launch_us * 1e-6;
  cost->seconds *= short_reduction_factor(s, 32, 64 * 64, 256);
}

static void gpu_cost(const struct apl_contraction* c, const struct apl_plan* plan, const struct apl_plan_shape* s,
                     const struct apl_device* device, struct apl_plan_cost* cost) {
  const double warps = (double)apl_up(s->threads, device->warp), steps = (double)s->steps,
               reduction = (double)s->reduction;
  const double registers = (double)s->registers, stages = plan->stages > 0 ? plan->stages : kPlanStages;
  const double schedulers = device->schedulers, clock = device->clock_ghz * 1e9;
  traffic(c, s, device, cost);
  cost->waves = (double)s->blocks / (device->multiprocessors * fmax(1, (double)s->blocks_per_multiprocessor));
  cost->occupancy = (double)s->blocks_per_multiprocessor * warps * device->warp / device->multiprocessor_threads;
  if (s->matrix) return matrix_cost(c, plan, s, device, cost);
  // One step of the depth, a warp: instructions, and passes of shared memory.
  double loads = 0, passes = 0, least = 0;
  if (s->has_mainloop) {
    for (int o = 0; o < c->operand_count; ++o) {
      if (s->tiles[o].resident) continue;
      if (s->tiles[o].mn == APL_NO_MN_DIM) {
        ++loads, ++passes, ++least;
        continue;
      }
      const struct apl_mn_dim* mn = &s->mn_dims[s->tiles[o].mn];
      const double count = (double)mn->each / (double)mn->vector;
      loads += count;
      passes += count * load_passes(mn, &s->mn_dims[1 - s->tiles[o].mn], s->tiles[o].bytes);
      least += count * least_passes(mn, s->tiles[o].bytes, device);
    }
  } else {
    for (int o = 0; o < c->operand_count; ++o)
      loads += (double)s->tiles[o].registers * 2, passes += (double)s->tiles[o].registers * 2;
    least = passes / 2;
  }
  // Products of f64 by matrix units: a fifth of the instructions' time, and a fragment is loaded once for eight
  // steps.
  const int of_doubles = s->has_mainloop && c->matrix && device->matrix_units && c->operands[0].bytes == 8;
  if (of_doubles) loads /= 4, passes /= 4, least /= 4;
  // Of f32 by tf32 fragments are loaded for eight steps, too, two halves of each. Hand-written kernels do 60 to 70
  // TFLOP/s by three products (4096^3 on an H200), 104 to 137 by one, where the cores do 46.
  const double of_tf32 = s->tf32 == 3 ? 0.7 : 0.35;
  if (s->tf32) loads /= 4, passes /= 4, least /= 4;
  double copy = 0, copy_passes = 0, copy_least = 0;  // a step of the tiles, all warps
  for (int o = 0; o < c->operand_count; ++o) {
    const struct apl_tile_shape* tile = &s->tiles[o];
    if (tile->resident) continue;
    const double words = (double)tile->rows * (double)tile->depth * tile->bytes / 4;
    const double conflict = tile->copy == APL_COPY_DEPTH && s->has_mainloop ? transposed_passes(tile->rows, device) : 1;
    copy += gpu_copy_instructions(tile, &c->operands[o], s->has_mainloop) / device->warp;
    // A copy of so many lines takes as many passes, whatever the banks; one of scattered elements has a line for each.
    const double lines = tile->copy == APL_COPY_DEPTH       ? 4
                         : tile->copy == APL_COPY_SCATTERED ? 4.0 * device->warp / tile->bytes
                                                            : 1;
    copy_passes += words / device->shared_banks * fmax(conflict, lines);
    copy_least += words / device->shared_banks;
  }
  const double fma = registers * (double)c->operations *
                     (of_doubles ? 0.2
                      : s->tf32  ? of_tf32
                                 : 0.8) *
                     device->schedulers * device->warp / device->fmas_per_clock;
  const double step_overhead = s->has_mainloop ? 28 : 30;
  const double vector = s->has_mainloop && s->aligned_result ? (double)s->mn_dims[1].vector : 1;
  const double put = registers * c->result_bytes / 4 / vector;
  const double write = s->has_mainloop ? (vector > 1 || s->mn_dims[1].vector == 1 ? 0.2 : 0.4) * put : 10 * put;
  const double tables = s->has_mainloop ? 0 : warps * 100;
  const double issue = warps * (reduction * (fma + loads) + steps * step_overhead + write) + steps * copy + tables;
  double shared = warps * reduction * passes + steps * copy_passes + warps * put;
  // Warps that take turns hide each other's waiting; a warp with many products in flight hides its own.
  const struct waves waves = waves_of(s, device);
  const double per_multiprocessor = waves.blocks, resident = waves.resident;
  const double in_flight = fmax(warps * resident / schedulers, 0.25) * fmin(fma, 8);
  const double busy = fmin(1, warps * resident / schedulers) * in_flight / (in_flight + device->half_busy_in_flight);
  double instructions = issue / schedulers / busy * remainder_share(c, plan, s);
  const double block = fmax(instructions, shared);
  // Starting a block, draining it, its barriers, and copies that are still on their way. A block that computes several
  // tiles starts the next one's copies while it drains (codegen/contraction/tile_loop.cpp).
  const double kTilesPerBlock = 8, kManyBlocks = 4096;
  const double ahead = s->has_mainloop ? fmin(stages - 1, steps) : 0;
  const int tile_loop = s->has_mainloop && (double)s->blocks >= kManyBlocks && steps >= stages - 1;
  const double wait = fmax(0, device->copy_cycles - ahead * block / fmax(steps, 1) * resident);
  const double start = device->block_start_cycles;
  const double kBarrierOfWarp = 17;
  const double barrier = device->barrier_cycles + kBarrierOfWarp * warps;
  const double latency = ((tile_loop ? start / kTilesPerBlock : start) + steps * (barrier + wait)) / resident;
  // The last round of blocks takes nearly as long where it is not full.
  const double kLastRound = 0.83;
  const double left_over = (waves.rounds * resident - per_multiprocessor) * kLastRound;
  cost->arithmetic = instructions * (per_multiprocessor + left_over) / clock;
  cost->shared = shared * per_multiprocessor / clock;
  cost->latency = latency * per_multiprocessor / clock;
  cost->shared_bytes = shared * 4 * device->shared_banks * (double)s->blocks;
  cost->read_conflicts = least > 0 ? passes / least : 1;
  cost->write_conflicts = copy_least > 0 ? copy_passes / copy_least : 1;
  // Unaligned results are written in pieces of sectors.
  const double kShareOfBandwidth = 1.05, kPieces = 0.61, kOverlap = 1.3, kCache = 1.13, kAlone = 0.28;
  const double result = (double)s->points * c->result_bytes;
  const double written = s->has_mainloop && s->aligned_result ? result * partial_line_factor(c, s, kPieces, 1, device)
                                                              : device->unaligned_write * result;
  const double memory = (cost->memory_bytes + written - result) / (device->memory_gbs * 1e9 * kShareOfBandwidth);
  const double cache = cost->cache_bytes / (device->cache_gbs * 1e9 * kCache);
  cost->memory = fmax(memory, cache);
  const double compute = fmax(cost->arithmetic, cost->shared);
  cost->seconds = pow(pow(compute, kOverlap) + pow(cost->memory, kOverlap), 1 / kOverlap) + cost->latency +
                  device->launch_us * 1e-6;
  // The first blocks of a kernel start, and the last ones drain, beside nobody.
  const double kFirstAndLast = 1750;
  cost->seconds += kFirstAndLast / clock;
  if (s->has_mainloop) cost->seconds *= short_reduction_factor(s, 24, 128 * 64, 128);
  // A block alone writes back while nobody computes; two of them take turns.
  if (resident < 2) cost->seconds += kAlone * written / (device->memory_gbs * 1e9) * fmin(1, per_multiprocessor - 1);
}

// ---- CPU ----

static void cpu_cost(const struct apl_contraction* c, const struct apl_plan* plan, const struct apl_plan_shape* s,
                     const struct apl_device* device, struct apl_plan_cost* cost) {
  const double clock = device->clock_ghz * 1e9;
  // The C compiler makes vectors of the loop over the innermost threads if there are no registers in the way; many of
  // the innermost registers are nearly as good, few of them are not unrolled into vectors at all (measured).
  double threads = 1, registers = 1;
  for (int d = c->space_rank; d-- > 0;)
    if (apl_is_free(c, d) && plan->tile[d] > 1) {
      threads = plan->tile[d];
      break;
    }
  for (int d = c->space_rank; d-- > 0;)
    if (apl_is_free(c, d) && plan->reg[d] > 1) {
      registers = plan->reg[d];
      break;
    }
  double part = device->vector_rate * fmin(1, threads / 64);
  if (s->registers > 1) part = registers >= 32 ? device->unrolled_rate : device->scalar_rate;
  const double rate = fmax(device->fmas_per_clock * part, 0.1);
  double tiles = 0;
  for (int o = 0; o < c->operand_count; ++o) tiles += (double)s->tiles[o].rows * (double)s->tiles[o].depth;
  // Beyond a core's nearest cache everything comes from the next one.
  const double far = s->shared + s->block_accumulators > device->near_cache_bytes ? 2 : 1;
  const double kCopy = 2.5 * far, kResult = 4, kBlock = 300;
  const double points = (double)s->rows[0] * (double)s->rows[1];
  const double cycles = points * (double)s->reduction * (double)c->operations / rate +
                        (double)s->steps * tiles * kCopy + points * kResult + kBlock;
  const double per_multiprocessor = ceil((double)s->blocks / device->multiprocessors);
  cost->arithmetic = cycles * per_multiprocessor / clock;
  traffic(c, s, device, cost);
  cost->memory = cost->memory_bytes / (device->memory_gbs * 1e9);
  cost->seconds = fmax(cost->arithmetic, cost->memory) + device->launch_us * 1e-6;
  cost->waves = (double)s->blocks / device->multiprocessors;
  cost->occupancy = cost->read_conflicts = cost->write_conflicts = 1;
}

void apl_plan_cost_of(const struct apl_contraction* c, const struct apl_plan* plan, const struct apl_plan_shape* shape,
                      const struct apl_device* device, struct apl_plan_cost* cost) {
  memset(cost, 0, sizeof *cost);
  cost->blocks = shape->blocks;
  cost->has_mainloop = shape->has_mainloop;
  cost->threads = (int32_t)apl_least(shape->threads, INT32_MAX);
  cost->registers = (int32_t)apl_least(shape->thread_registers, INT32_MAX);
  cost->block_shared = shape->shared;
  cost->blocks_per_multiprocessor = (int32_t)shape->blocks_per_multiprocessor;
  if (shape->blocks == 0) {
    cost->seconds = device->launch_us * 1e-6;
  } else if (apl_has_warps(device)) {
    gpu_cost(c, plan, shape, device, cost);
  } else {
    cpu_cost(c, plan, shape, device, cost);
  }
  if (c->copies > 0) cost->seconds += apl_copies_estimate(c, device);
}

void apl_plan_estimate(const struct apl_contraction* c, const struct apl_plan* plan, const struct apl_device* device,
                       struct apl_plan_cost* cost) {
  struct apl_plan_shape shape;
  apl_plan_shape_of(c, plan, device, &shape);
  apl_plan_cost_of(c, plan, &shape, device, cost);
}
