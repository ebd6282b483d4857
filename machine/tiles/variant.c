// How a contraction is computed: tiled, in parts, with transposed operands, or one thread a point. All but the last are
// priced by their plans; what comes beside them (joining parts, kernels before) here.
#include <math.h>
#include <string.h>

#include "machine/tiles/shape.h"

// Variants that differ by less are as good as each other, and the earlier one stays.
static const double kVariantsAlike = 1.15;
// The same kernel with fewer conflicts: the two prices have the same errors.
static const double kTransposedAlike = 1.04;
// A load that waits for memory or the cache, in cycles; so many of one thread are under way at once.
static const double kLoadsAhead = 4;

static int64_t points_of(const struct apl_contraction* c) {
  int64_t points = 1;
  for (int d = 0; d < c->space_rank; ++d) points = apl_times(points, c->dims[d].size);
  return points;
}

static int64_t reduction_of(const struct apl_contraction* c, int from) {
  int64_t reduction = 1;
  for (int d = from; d < c->dim_count; ++d) reduction = apl_times(reduction, c->dims[d].size);
  return reduction;
}

int apl_contraction_parts(const struct apl_contraction* c, int64_t splits, struct apl_contraction* parts) {
  const int cut = c->space_rank;
  if (c->dim_count >= APL_PLAN_DIMS || cut >= c->dim_count || splits < 1) return 0;
  *parts = *c;
  ++parts->dim_count, ++parts->space_rank;
  const int64_t length = c->dims[cut].size / splits;
  for (int d = c->dim_count; d > 0; --d) parts->dims[d] = c->dims[d - 1];
  parts->dims[0] = (struct apl_plan_dim){splits, APL_DIM_BATCH, 1};
  parts->dims[cut + 1].size = length;
  for (int o = 0; o < c->operand_count; ++o) {
    for (int d = c->dim_count; d > 0; --d) parts->operands[o].strides[d] = c->operands[o].strides[d - 1];
    parts->operands[o].strides[0] = apl_times(c->operands[o].strides[cut], length);
  }
  // Parts are written as they were accumulated.
  parts->result_bytes = c->accumulator_bytes;
  parts->widest_result = (int32_t)apl_least(c->accumulator_bytes, 8);
  parts->epilogue_arrays = 0;  // the join does what comes after
  return 1;
}

// One thread a point reads what all parts left, one after the other, then what no part took.
double apl_join_estimate(const struct apl_contraction* c, int64_t splits, const struct apl_device* device) {
  const double points = (double)points_of(c), clock = device->clock_ghz * 1e9;
  const double rest = (double)(c->dims[c->space_rank].size % splits) * (double)reduction_of(c, c->space_rank + 1);
  const double bytes = points * (double)splits * c->accumulator_bytes + points * c->result_bytes;
  const double reads = bytes / ((bytes < (double)device->cache_bytes ? device->cache_gbs : device->memory_gbs) * 1e9);
  const double chain = ((double)splits + rest * c->operand_count) * device->load_cycles / kLoadsAhead;
  const double threads = (double)device->multiprocessors * device->multiprocessor_threads;
  const double waves = fmax(1, points / threads);
  return fmax(reads, chain * waves / clock) + device->launch_us * 1e-6;
}

// Tiles through shared memory: all is read and written once, elements below 4 bytes more slowly (measured on an H100).
double apl_copies_estimate(const struct apl_contraction* c, const struct apl_device* device) {
  const double kSmallElements = 0.56, kLaunches = 3;
  const double share = c->operands[0].bytes >= 4 ? 1 : c->operands[0].bytes == 2 ? kSmallElements : kSmallElements / 2;
  return c->copies * kLaunches * device->launch_us * 1e-6 +
         2 * (double)c->copied_bytes / (device->memory_gbs * 1e9 * share);
}

// How many lines of a warp's elements a load touches, with lanes along the innermost space dims.
static double lines_touched(const struct apl_contraction* c, const struct apl_plan_operand* operand,
                            const struct apl_device* device) {
  int64_t lanes = 1;
  double lines = 1;
  for (int d = c->space_rank; d-- > 0 && lanes < device->warp;) {
    const int64_t mine = apl_least(apl_most(c->dims[d].size, 1), apl_up(device->warp, lanes));
    if (operand->strides[d] == 1)
      lines = fmax(lines, ceil((double)(mine * operand->bytes) / device->line_bytes));
    else if (operand->strides[d] != 0)
      lines *= (double)mine;
    lanes *= mine;
  }
  return fmin(lines, device->warp);
}

double apl_packed_estimate(const struct apl_contraction* c, const struct apl_device* device) {
  const double points = (double)points_of(c), reduction = (double)reduction_of(c, c->space_rank);
  const double peak = device->multiprocessors * device->clock_ghz * 1e9 * device->fmas_per_clock;
  double bytes = points * c->result_bytes;
  for (int o = 0; o < c->operand_count; ++o) {
    double elements = 1;
    for (int d = 0; d < c->dim_count; ++d)
      if (c->operands[o].strides[d] != 0) elements *= (double)c->dims[d].size;
    bytes += elements * c->operands[o].bytes;
  }
  const double arithmetic = points * reduction * c->operations / (peak * device->packed_rate);
  return fmax(arithmetic, bytes / (device->memory_gbs * 1e9)) + device->launch_us * 1e-6;
}

double apl_untiled_estimate(const struct apl_contraction* c, const struct apl_device* device) {
  const double points = (double)points_of(c), reduction = (double)reduction_of(c, c->space_rank);
  const double clock = device->clock_ghz * 1e9;
  if (points == 0) return device->launch_us * 1e-6;
  if (!apl_has_warps(device)) {
    const double cycles = points * reduction * (c->operations / 2.0 + c->operand_count);
    return cycles / device->multiprocessors / clock + device->launch_us * 1e-6;
  }
  const double warps = ceil(points / device->warp);
  double lines = 0, sectors = 0, once = points * c->result_bytes, chain = 0;
  for (int o = 0; o < c->operand_count; ++o) {
    const struct apl_plan_operand* operand = &c->operands[o];
    const double touched = lines_touched(c, operand, device);
    int innermost_depth = 0, reuse = 1;
    double elements = 1;
    for (int d = 0; d < c->dim_count; ++d) {
      if (operand->strides[d] == 0) continue;
      elements *= (double)c->dims[d].size;
      if (d >= c->space_rank && operand->strides[d] == 1 && c->dims[d].size > 1) innermost_depth = 1;
    }
    // What lies along the depth is there for the next steps.
    if (innermost_depth) reuse = device->sector_bytes / operand->bytes;
    once += elements * operand->bytes;
    lines += touched;
    sectors += touched * (touched > 4 ? 1 : (double)device->line_bytes / device->sector_bytes) / reuse;
    chain += 1;
  }
  const double fma = (double)c->operations * device->schedulers * device->warp / device->fmas_per_clock;
  const double issue = warps * (reduction * (fma + 4.0 * c->operand_count) + 60);
  const double per_multiprocessor = ceil(warps / device->multiprocessors);
  const double resident = fmin(per_multiprocessor, (double)device->multiprocessor_threads / device->warp);
  const double busy = fmin(1, resident / (4.0 * device->schedulers));
  const double instructions = issue / warps * per_multiprocessor / device->schedulers / busy;
  const double passes = per_multiprocessor * reduction * lines;
  const double compute = fmax(instructions, passes) / clock;
  const double memory = once / (device->memory_gbs * 1e9);
  const double cache = warps * reduction * sectors * device->sector_bytes / (device->cache_gbs * 1e9);
  const double traffic = fmax(memory, fmin(cache, passes / clock * 2 + memory));
  const double waves = ceil(per_multiprocessor / fmax(resident, 1));
  // Measured on an H200: 150 cycles a step of two loads, where they hit the nearest cache.
  const double latency = waves * (500 + reduction * chain * device->load_cycles / kLoadsAhead / 2) / clock;
  return fmax(sqrt(compute * compute + traffic * traffic), latency) + device->launch_us * 1e-6;
}

// Every copy is guarded, in every step, and the last step is as deep as the others; there is no second code.
double apl_padded_estimate(const struct apl_contraction* c, const struct apl_plan* plan,
                           const struct apl_device* device) {
  // Measured on an H200 (bench/results, ablation): 2 to 6 % where nothing is left over.
  const double kGuarded = 1.04;
  struct apl_contraction whole = *c;
  struct apl_plan_cost cost;
  const int last = c->dim_count - 1;
  whole.dims[last].size = apl_times(apl_up(c->dims[last].size, plan->tile[last]), plan->tile[last]);
  apl_plan_estimate(&whole, plan, device, &cost);
  return device->launch_us * 1e-6 + (cost.seconds - device->launch_us * 1e-6) * kGuarded;
}

// The best plan's time; below 0: there is none.
static double best_time(const struct apl_contraction* c, const struct apl_plan_list* list,
                        const struct apl_device* device, struct apl_plan* plan) {
  struct apl_plan_cost cost;
  if (list->plans == NULL) {
    struct apl_plan_choice choice;
    if (!apl_plan_select(c, NULL, device, &choice)) return -1;
    *plan = choice.best;
    return choice.cost.seconds;
  }
  const int best = apl_plan_best_of(c, list->plans, list->count, device, list->banned);
  if (best < 0) return -1;
  *plan = list->plans[best];
  apl_plan_estimate(c, plan, device, &cost);
  return cost.seconds;
}

// Parts of which hardly anything is left over, near `wanted`.
static int64_t even_parts(int64_t length, int64_t wanted) {
  int64_t best = wanted;
  for (int64_t s = wanted; s >= 2 && s * 8 >= wanted * 7; --s)
    if (length % s < length % best) best = s;
  return best;
}

struct split_search {
  const struct apl_contraction* c;
  const struct apl_device* device;
  int64_t tried;
  double seconds;
  int64_t splits;
};

static void try_parts(struct split_search* s, const struct apl_plan_list* list, int64_t wanted) {
  enum { kShortest = 32 };  // of a part
  const int64_t length = s->c->dims[s->c->space_rank].size;
  wanted = apl_least(wanted, length / kShortest);
  if (wanted < 2) return;
  const int64_t splits = even_parts(length, wanted);
  struct apl_contraction parts;
  struct apl_plan plan;
  if (!apl_contraction_parts(s->c, splits, &parts)) return;
  const double time = best_time(&parts, list, s->device, &plan);
  if (time < 0) return;
  const double all = time + apl_join_estimate(s->c, splits, s->device);
  if (s->splits > 1 && all >= s->seconds) return;
  s->seconds = all, s->splits = splits;
}

// So many parts that the multiprocessors are busy, a few times over, with the blocks of each plan in the list.
static void split(struct split_search* s, const struct apl_plan_list* list) {
  static const int kWaves[] = {1, 2, 3, 4, 6, 8, 16};
  int64_t tried[64];
  int count = 0;
  for (int k = 0; k < (list->plans ? list->count : 4); ++k) {
    struct apl_contraction two;
    struct apl_plan_shape shape;
    int64_t blocks = INT64_C(1) << (2 * k);
    if (list->plans) {
      if (!apl_contraction_parts(s->c, 1, &two)) return;
      apl_plan_shape_of(&two, &list->plans[k], s->device, &shape);
      blocks = shape.blocks;
    }
    for (unsigned w = 0; w < sizeof kWaves / sizeof kWaves[0] && blocks > 0; ++w) {
      const int64_t wanted = (int64_t)s->device->multiprocessors * kWaves[w] / blocks;
      int known = 0;
      for (int t = 0; t < count; ++t) known = known || tried[t] == wanted;
      if (known || count == 64) continue;
      tried[count++] = wanted;
      try_parts(s, list, wanted);
    }
  }
}

const char* apl_variant_name(int variant) {
  switch ((enum apl_variant)variant) {
    case APL_VARIANT_TILED: return "tiled";
    case APL_VARIANT_SPLIT: return "split";
    case APL_VARIANT_UNTILED: return "untiled";
    case APL_VARIANT_TRANSPOSED: return "transposed";
    case APL_VARIANT_ALIGNED: return "aligned";
    case APL_VARIANTS: break;
  }
  return "";
}

const struct apl_contraction* apl_contraction_to_split(const struct apl_contraction* whole,
                                                       const struct apl_variant_lists* lists) {
  const struct apl_contraction* transposed = lists->contractions[APL_VARIANT_TRANSPOSED];
  return whole->parts_transposed && transposed ? transposed : whole;
}

// Seconds; below 0 where a program does not have it.
static double price(enum apl_variant variant, const struct apl_contraction* whole,
                    const struct apl_variant_lists* lists, const struct apl_device* device,
                    struct apl_variant_choice* choice) {
  const struct apl_contraction* c = lists->contractions[variant] ? lists->contractions[variant] : whole;
  const struct apl_plan_list* plans = lists->plans[variant];
  struct apl_plan plan;
  switch (variant) {
    case APL_VARIANT_TILED: {
      const double seconds = best_time(c, plans, device, &plan);
      if (seconds >= 0) choice->padded_seconds = apl_padded_estimate(c, &plan, device);
      return seconds;
    }
    case APL_VARIANT_SPLIT: {
      if (!plans || points_of(c) <= 0) return -1;
      struct split_search s = {.c = apl_contraction_to_split(c, lists), .device = device, .splits = 1};
      split(&s, plans);
      choice->splits = s.splits;
      return s.splits > 1 ? s.seconds : -1;
    }
    case APL_VARIANT_UNTILED: return apl_untiled_estimate(c, device);
    case APL_VARIANT_TRANSPOSED:
    case APL_VARIANT_ALIGNED: return plans ? best_time(c, plans, device, &plan) : -1;
    case APL_VARIANTS: break;
  }
  return -1;
}

int apl_variant_select(const struct apl_contraction* c, const struct apl_variant_lists* lists, int only,
                       const struct apl_device* device, struct apl_variant_choice* choice) {
  memset(choice, 0, sizeof *choice);
  choice->splits = 1;
  choice->seconds[0] = choice->padded_seconds = -1;
  double least = -1;
  for (int v = APL_VARIANT_TILED; v < APL_VARIANTS; ++v) {
    choice->seconds[v] = price((enum apl_variant)v, c, lists, device, choice);
    if (choice->seconds[v] < 0 || (only != 0 && only != v)) continue;
    const double alike = v >= APL_VARIANT_TRANSPOSED ? kTransposedAlike : kVariantsAlike;
    if (least >= 0 && choice->seconds[v] * alike >= least) continue;
    least = choice->seconds[v], choice->variant = v;
  }
  return choice->variant != 0;
}
