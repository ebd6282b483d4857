// The plans worth a thought: powers of two around what is forced. T 5.3.5 prunes by hand; here the M and N extents of a
// block, its threads and its registers are chosen, and how registers are split between M and N follows from them.
#include <string.h>

#include "machine/tiles/shape.h"

enum { kGroups = APL_PLAN_DIMS };

// Free dims that the same operands vary along; `lead` gets threads and registers, `second` registers of small dims.
struct group {
  int lead, second;   // the innermost dims whose numbers are free, -1: none
  int64_t tile, reg;  // products of what is forced
  int lead_reg_free;  // whether the lead's registers are free
  int64_t size;
};

struct enumeration {
  const struct apl_contraction* c;
  const struct apl_forced* forced;
  const struct apl_device* device;
  apl_plan_visit visit;
  void* context;
  struct group groups[kGroups];
  int group_count, has_mn_dims;
  int n_group, m_group;  // groups; where there are M and N dims
  struct apl_plan plan;
};

static int forced_tile(const struct enumeration* w, int d) { return w->forced ? w->forced->tile[d] : 0; }
static int forced_reg(const struct enumeration* w, int d) { return w->forced ? w->forced->reg[d] : 0; }

static int alike(const struct apl_contraction* c, int d, int e) {
  for (int o = 0; o < c->operand_count; ++o)
    if (!apl_is_resident(c, o) && (c->operands[o].strides[d] != 0) != (c->operands[o].strides[e] != 0)) return 0;
  return 1;
}

// Groups, the one with the innermost free dim first; everything else is 1 or as forced.
static void start_enumeration(struct enumeration* w) {
  int first_of[kGroups];
  const struct apl_contraction* c = w->c;
  w->has_mn_dims = apl_plan_has_mn_dims(c);
  w->group_count = 0;
  memset(&w->plan, 0, sizeof w->plan);
  for (int d = 0; d < c->dim_count; ++d) {
    w->plan.tile[d] = forced_tile(w, d) > 0 ? forced_tile(w, d) : 1;
    w->plan.reg[d] = forced_reg(w, d) > 0 ? forced_reg(w, d) : 1;
  }
  w->plan.stages = w->forced ? w->forced->stages : 0;
  w->plan.tiles_per_block = w->forced ? w->forced->tiles_per_block : 0;
  for (int d = c->space_rank; d-- > 0;) {
    if (!apl_is_free(c, d)) continue;
    int g = 0;
    while (g < w->group_count && !alike(c, d, first_of[g])) ++g;
    if (g == w->group_count) {
      first_of[w->group_count++] = d;
      w->groups[g] = (struct group){.lead = -1, .second = -1, .tile = 1, .reg = 1, .size = 1};
    }
    struct group* group = &w->groups[g];
    group->size = apl_times(group->size, c->dims[d].size);
    const int open = !c->dims[d].fixed && forced_tile(w, d) == 0;
    if (open && group->lead < 0) {
      group->lead = d;
      group->lead_reg_free = forced_reg(w, d) == 0;
      if (!group->lead_reg_free) group->reg = apl_times(group->reg, forced_reg(w, d));
      continue;
    }
    if (open && group->second < 0 && forced_reg(w, d) == 0) group->second = d;
    group->tile = apl_times(group->tile, w->plan.tile[d]);
    group->reg = apl_times(group->reg, w->plan.reg[d]);
  }
  for (int g = 0; g < w->group_count && w->has_mn_dims; ++g) {
    if (apl_mn_of(c, first_of[g]) == 1) w->n_group = g;
    if (apl_mn_of(c, first_of[g]) == 0) w->m_group = g;
  }
  // Where only threads are forced, the innermost such dim's registers are still free.
  for (int g = 0; g < w->group_count; ++g) {
    if (w->groups[g].lead >= 0) continue;
    for (int d = c->space_rank; d-- > 0;)
      if (apl_is_free(c, d) && alike(c, d, first_of[g]) && !c->dims[d].fixed && forced_reg(w, d) == 0) {
        w->groups[g].lead = d;
        w->groups[g].lead_reg_free = 1;
        break;
      }
  }
}

static int64_t power_above(int64_t n) {
  int64_t p = 1;
  while (p < n && p < 4096) p *= 2;
  return p;
}

static int with_stages(struct enumeration* w) {
  static const int kStages[] = {3, 2};
  if (!apl_has_warps(w->device) || !w->has_mn_dims || (w->forced && w->forced->stages > 0)) {
    if (w->plan.stages == 0 && apl_has_warps(w->device)) w->plan.stages = kStages[0];
    return w->visit(&w->plan, w->context);
  }
  // Of three steps of 24 two stages are enough, and leave room for more blocks (TCCG 40 on an H200: 81 us, not 94).
  int64_t steps = 1;
  for (int d = w->c->space_rank; d < w->c->dim_count; ++d)
    steps = apl_times(steps, apl_up(apl_most(w->c->dims[d].size, 1), apl_most(w->plan.tile[d], 1)));
  const int swap = w->plan.tile[w->c->dim_count - 1] == 24 && steps <= 3;
  for (int k = 0; k < 2; ++k) {
    w->plan.stages = kStages[swap ? 1 - k : k];
    const int stop = w->visit(&w->plan, w->context);
    if (stop) return stop;
  }
  return 0;
}

// The depth: the innermost contracted dim takes what it can use, then the next ones.
static int with_depth(struct enumeration* w) {
  static const int kDepths[] = {24, 16, 32, 8, 64}, kFewSteps = 8, kLargeTile = 4096;
  const struct apl_contraction* c = w->c;
  int free_depths = 0;
  int64_t last = 0, points = 1;  // of a block's tile
  for (int d = 0; d < c->space_rank; ++d) points = apl_times(points, apl_times(w->plan.tile[d], w->plan.reg[d]));
  for (int d = c->space_rank; d < c->dim_count; ++d) free_depths += !c->dims[d].fixed && forced_tile(w, d) == 0;
  // Half of the depth only where elements are wide; on a GPU none so deep that its loop's loads take all registers.
  const int half = c->accumulator_bytes > 4 || c->dim_count - c->space_rank > 1;
  const int depths = !apl_has_warps(w->device) ? 5 : half ? 4 : 3;
  const int64_t innermost = c->dims[c->dim_count - 1].size;
  for (int k = 0; k < depths; ++k) {
    // 24 where it leaves no remainder step and 16 does, steps are few and tiles large: on an H200, TCCG 22 with depths
    // of 72 takes 7.2 ms, not 8.0, but TCCG 19 with tiles of 32 x 64 takes 339 us, not 279.
    const int divides =
        innermost % 24 == 0 && innermost % 16 != 0 && innermost <= kFewSteps * 16 && points >= kLargeTile;
    if (kDepths[k] == 24 && (!apl_has_warps(w->device) || !divides)) continue;
    int64_t left = kDepths[k], depth = 1;
    for (int d = c->dim_count; d-- > c->space_rank;) {
      if (forced_tile(w, d) > 0 || c->dims[d].fixed) continue;
      const int64_t mine = apl_most(1, apl_least(left, power_above(c->dims[d].size)));
      w->plan.tile[d] = (int32_t)mine;
      left /= mine;
      depth *= mine;
    }
    if (depth == last) continue;
    last = depth;
    const int stop = with_stages(w);
    if (stop || free_depths == 0) return stop;
  }
  return 0;
}

static void set_group(struct enumeration* w, const struct group* group, int64_t tile, int64_t reg, int64_t second) {
  if (group->lead < 0) return;
  if (forced_tile(w, group->lead) == 0) w->plan.tile[group->lead] = (int32_t)tile;
  if (group->lead_reg_free) w->plan.reg[group->lead] = (int32_t)reg;
  if (group->second >= 0) w->plan.reg[group->second] = (int32_t)second;
}

static int tile_is_free(const struct enumeration* w, const struct group* g) {
  return g->lead >= 0 && forced_tile(w, g->lead) == 0;
}

// A tile that is mostly outside helps nobody; small ones must still make warps.
static int far_too_large(int64_t rows, int64_t size) { return rows > 32 && rows >= 2 * power_above(size); }

// Blocks of matrix units: 64 rows a warpgroup along M or N, 64 to 256 along the other, 32 to 128 bytes of depth.
static int enumerate_matrix(struct enumeration* w) {
  static const int kLines[] = {128, 64, 32}, kStages[] = {4, 3, 2}, kColumns[] = {256, 128, 64};
  const struct apl_contraction* c = w->c;
  const struct group *n_group = &w->groups[w->n_group], *m_group = &w->groups[w->m_group];
  const int last = c->dim_count - 1, stages_free = !w->forced || w->forced->stages == 0;
  const int depth_free = !c->dims[last].fixed && forced_tile(w, last) == 0;
  for (int d = c->space_rank; d < c->dim_count; ++d)
    if (forced_tile(w, d) == 0) w->plan.tile[d] = 1;
  for (int groups = 2; groups >= 1; --groups)
    for (int k = 0; k < 3; ++k)
      for (int of_n = 0; of_n < 2; ++of_n) {
        const int64_t rows = 64 * groups, columns = kColumns[k];
        const int64_t n_rows = of_n ? rows : columns, m_rows = of_n ? columns : rows;
        if (n_rows >= 2 * apl_most(64, power_above(n_group->size)) ||
            m_rows >= 2 * apl_most(64, power_above(m_group->size)))
          continue;
        const int64_t n_tile = 16, m_tile = 8 * groups;
        set_group(w, n_group, n_tile, n_rows / n_tile, 1);
        set_group(w, m_group, m_tile, m_rows / m_tile, 1);
        for (int depth = 0; depth < (depth_free ? 3 : 1); ++depth) {
          const int steps = kLines[depth] / c->operands[0].bytes;
          if (depth_free) w->plan.tile[last] = steps;
          // A tile that is mostly pad helps only where it is the smallest.
          if (depth_free && depth < 2 && steps >= 2 * power_above(c->dims[last].size)) continue;
          for (int stages = 0; stages < (stages_free ? 3 : 1); ++stages) {
            if (stages_free) w->plan.stages = kStages[stages];
            const int stop = w->visit(&w->plan, w->context);
            if (stop) return stop;
          }
        }
      }
  if (stages_free) w->plan.stages = 0;
  return 0;
}

static int enumerate_mn(struct enumeration* w) {
  static const int kGpuFast[] = {8, 16, 4, 32, 2, 1}, kGpuSlow[] = {16, 8, 4, 32, 2, 1};
  static const int kCpuFast[] = {64, 128, 32, 16, 8, 4}, kCpuSlow[] = {16, 64, 32, 8, 4, 1};
  const struct group *n_group = &w->groups[w->n_group], *m_group = &w->groups[w->m_group];
  const int gpu = apl_has_warps(w->device);
  const int *n_tiles = gpu ? kGpuFast : kCpuFast, *m_tiles = gpu ? kGpuSlow : kCpuSlow;
  const int n_free = tile_is_free(w, n_group), m_free = tile_is_free(w, m_group);
  const int regs_free = n_group->lead >= 0 && n_group->lead_reg_free && m_group->lead >= 0 && m_group->lead_reg_free;
  const int64_t least = apl_times(n_group->tile, m_group->tile);
  const int any_forced = !n_free || !m_free || !regs_free;
  if (apl_has_matrix_tiles(w->c) && w->device->matrix_units && !any_forced && w->device->warp == 32) {
    const int stop = enumerate_matrix(w);
    if (stop) return stop;
  }
  for (int f = 0; f < (n_free ? 6 : 1); ++f)
    for (int s = 0; s < (m_free ? 6 : 1); ++s) {
      const int64_t n_tile = apl_times(n_group->tile, n_free ? n_tiles[f] : 1),
                    m_tile = apl_times(m_group->tile, m_free ? m_tiles[s] : 1);
      const int64_t threads = apl_times(n_tile, m_tile);
      // What is forced may be more by itself: then it is looked at with 1 along the other dim, and evaluated.
      if (gpu && (n_free || m_free) && (threads < 32 || threads > apl_most(256, least))) continue;
      // Registers along M and N: as square as can be, unless something is forced.
      for (int bits = gpu ? 7 : 0; bits >= 0; --bits)
        for (int more = 0; more <= bits; ++more) {
          const int n_bits = (bits + 1) / 2 + (more % 2 ? -(more + 1) / 2 : more / 2);
          const int m_bits = bits - n_bits;
          if (n_bits < 0 || m_bits < 0) continue;
          if (more > 0 && !any_forced) break;
          if ((n_group->lead < 0 || !n_group->lead_reg_free) && n_bits > 0) continue;
          if ((m_group->lead < 0 || !m_group->lead_reg_free) && m_bits > 0) continue;
          const int64_t n_reg = INT64_C(1) << n_bits, m_reg = INT64_C(1) << m_bits;
          if (!any_forced && (far_too_large(apl_times(n_tile, n_reg), n_group->size) ||
                              far_too_large(apl_times(m_tile, m_reg), m_group->size)))
            continue;
          set_group(w, n_group, n_free ? n_tiles[f] : 1, n_reg, 1);
          set_group(w, m_group, m_free ? m_tiles[s] : 1, m_reg, 1);
          const int stop = with_depth(w);
          if (stop) return stop;
        }
    }
  return 0;
}

// No M and N dims: the two innermost groups get threads and registers, the others stay on the grid.
static int enumerate_any(struct enumeration* w) {
  static const int kGpuTiles[] = {16, 8, 32, 4, 2, 1}, kCpuTiles[] = {64, 16, 32, 8, 4, 1};
  static const int kRegs[][2] = {{2, 4}, {8, 1}, {4, 1}, {2, 2}, {2, 1}, {1, 1}};  // of lead and second dim
  const int gpu = apl_has_warps(w->device);
  const int* tiles = gpu ? kGpuTiles : kCpuTiles;
  struct group none = {.lead = -1, .second = -1, .tile = 1, .reg = 1};
  const struct group* a = w->group_count > 0 ? &w->groups[0] : &none;
  const struct group* b = w->group_count > 1 ? &w->groups[1] : &none;
  const int a_free = tile_is_free(w, a), b_free = tile_is_free(w, b);
  for (int i = 0; i < (a_free ? 6 : 1); ++i)
    for (int j = 0; j < (b_free ? 6 : 1); ++j) {
      const int64_t threads =
          apl_times(apl_times(a->tile, a_free ? tiles[i] : 1), apl_times(b->tile, b_free ? tiles[j] : 1));
      if (gpu && threads > apl_most(512, apl_times(a->tile, b->tile)) && (a_free || b_free)) continue;
      if (gpu && threads < 32 && a_free && b_free) continue;
      for (int r = gpu ? 0 : 5; r < 6; ++r) {
        const int64_t product = kRegs[r][0] * kRegs[r][1];
        set_group(w, a, a_free ? tiles[i] : 1, a->second >= 0 ? kRegs[r][0] : product, kRegs[r][1]);
        set_group(w, b, b_free ? tiles[j] : 1, b->second >= 0 ? kRegs[r][0] : product, kRegs[r][1]);
        const int stop = with_depth(w);
        if (stop) return stop;
      }
    }
  return 0;
}

int apl_plan_enumerate(const struct apl_contraction* c, const struct apl_forced* forced,
                       const struct apl_device* device, apl_plan_visit visit, void* context) {
  struct enumeration w = {.c = c, .forced = forced, .device = device, .visit = visit, .context = context};
  start_enumeration(&w);
  return w.has_mn_dims ? enumerate_mn(&w) : enumerate_any(&w);
}
