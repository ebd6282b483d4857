// The choice among plans: by the model, with the order of preference where it makes no difference.
#include <math.h>
#include <string.h>

#include "machine/tiles/shape.h"

// Plans whose costs differ by less are as good as each other. Of those for matrix units of 16 and 8 bits the one with
// most blocks beside each other is taken, which hide what each waits for; of as many, and of others, the first in order
// of preference.
static const double kPlansAlike = 1.03;

struct rated {
  float seconds;  // below 0: not valid
  int resident;   // blocks of a multiprocessor, where more of them hide what each waits for; else 1
};

static struct rated rate(const struct apl_contraction* c, const struct apl_plan* plan, const struct apl_device* device,
                         const struct apl_plan_cost* cost) {
  struct apl_mn_dim m_dim, n_dim;
  const int units = device->matrix_units && apl_has_matrix_tiles(c) &&
                    apl_plan_mainloop(c, plan, device->warp, 1, &m_dim, &n_dim) && apl_matrix_rows(&m_dim, &n_dim) >= 0;
  return (struct rated){.seconds = (float)cost->seconds, .resident = units ? cost->blocks_per_multiprocessor : 1};
}

enum { kMostPlans = 2048 };  // plans whose costs are kept; those beyond, in order of preference, are not looked at

struct search {
  const struct apl_contraction* c;
  const struct apl_device* device;
  struct apl_plan_known known;
  int visited, valid, wanted;
  struct rated costs[kMostPlans];  // by visit
  struct apl_plan found;
  int spills;                 // plans that only spill count as valid
  enum apl_plan_fault fault;  // of the plan that misses by least
  double excess;
  int64_t needed, limit;
  struct apl_plan nearest;
};

static void start_search(struct search* s, const struct apl_contraction* c, const struct apl_device* device) {
  s->c = c, s->device = device;
  memset(&s->known, 0, sizeof s->known);
  s->visited = s->valid = s->spills = 0;
  s->fault = APL_PLAN_FINE, s->excess = 0, s->needed = s->limit = 0;
}

static int evaluate(const struct apl_plan* plan, struct search* s, struct apl_plan_cost* cost) {
  struct apl_plan_shape shape;
  int64_t needed = 0, limit = 0;
  apl_plan_shape_with(s->c, plan, s->device, &s->known, &shape);
  const enum apl_plan_fault fault = apl_plan_fault_of(&shape, s->device, &needed, &limit);
  if (fault != APL_PLAN_FINE) {
    const double excess = (double)needed / (double)apl_most(limit, 1);
    if (s->fault == APL_PLAN_FINE || excess < s->excess) {
      s->fault = fault, s->excess = excess, s->needed = needed, s->limit = limit;
      s->nearest = *plan;
    }
    if (fault != APL_PLAN_REGISTERS || !s->spills) return 0;
  }
  apl_plan_cost_of(s->c, plan, &shape, s->device, cost);
  // Spilled accumulators go through memory.
  if (fault == APL_PLAN_REGISTERS) cost->seconds *= 2.0 * (double)needed / (double)apl_most(limit, 1);
  return 1;
}

static int try_plan(const struct apl_plan* plan, void* context) {
  struct search* s = context;
  struct apl_plan_cost cost = {0};
  const int valid = evaluate(plan, s, &cost);
  s->costs[s->visited] = rate(s->c, plan, s->device, &cost);
  if (!valid) s->costs[s->visited].seconds = -1;
  ++s->visited;
  s->valid += valid;
  return s->visited == kMostPlans;
}

static int find_wanted(const struct apl_plan* plan, void* context) {
  struct search* s = context;
  if (s->visited++ != s->wanted) return 0;
  s->found = *plan;
  return 1;
}

static int same_block(const struct apl_contraction* c, const struct apl_plan* a, const struct apl_plan* b) {
  for (int d = 0; d < c->space_rank; ++d)
    if (a->tile[d] != b->tile[d] || a->reg[d] != b->reg[d]) return 0;
  return 1;
}

// The cheapest plan with another block than `found`; costs that were looked at are struck out.
static int find_other(struct search* s, const struct apl_forced* forced, int visits, struct apl_plan* other) {
  const struct apl_plan best = s->found;
  for (;;) {
    s->wanted = -1;
    for (int k = 0; k < visits; ++k)
      if (s->costs[k].seconds >= 0 && (s->wanted < 0 || s->costs[k].seconds < s->costs[s->wanted].seconds))
        s->wanted = k;
    if (s->wanted < 0) return 0;
    s->visited = 0;
    apl_plan_enumerate(s->c, forced, s->device, find_wanted, s);
    if (!same_block(s->c, &best, &s->found)) {
      *other = s->found;
      return 1;
    }
    s->costs[s->wanted].seconds = -1;
  }
}

static int any_valid(const struct apl_plan* plan, void* context) {
  struct search* s = context;
  struct apl_plan_cost cost;
  return evaluate(plan, s, &cost);
}

// The largest smaller value of one forced number with which there is a valid plan.
static int64_t works_with(const struct apl_contraction* c, const struct apl_device* device, struct apl_forced* forced,
                          int32_t* number) {
  const int32_t given = *number;
  int32_t found = 0;
  for (int32_t smaller = given / 2; smaller >= 1 && found == 0; smaller /= 2) {
    struct search s;
    start_search(&s, c, device);
    *number = smaller;
    if (apl_plan_enumerate(c, forced, device, any_valid, &s)) found = smaller;
  }
  *number = given;
  return found;
}

static void find_conflict(const struct apl_contraction* c, const struct apl_device* device, struct apl_forced forced,
                          struct apl_plan_choice* choice) {
  double nearest = 0;
  for (int which = 0; which < 3; ++which)
    for (int d = 0; d < (which == APL_NUMBER_STAGES ? 1 : c->dim_count); ++d) {
      int32_t* number = which == APL_NUMBER_TILE  ? &forced.tile[d]
                        : which == APL_NUMBER_REG ? &forced.reg[d]
                                                  : &forced.stages;
      if (*number <= 1) continue;
      const int64_t works = works_with(c, device, &forced, number);
      if (works == 0 || (double)works / *number <= nearest) continue;
      nearest = (double)works / *number;
      choice->conflict_number = which;
      choice->conflict_dim = d;
      choice->conflict_works = (int32_t)works;
    }
}

int apl_plan_select(const struct apl_contraction* c, const struct apl_forced* forced, const struct apl_device* device,
                    struct apl_plan_choice* choice) {
  memset(choice, 0, sizeof *choice);
  struct search s;
  start_search(&s, c, device);
  apl_plan_enumerate(c, forced, device, try_plan, &s);
  if (s.valid == 0 && s.fault == APL_PLAN_REGISTERS) {
    // It runs, if slowly: what is given counts.
    s.spills = 1, s.visited = 0;
    apl_plan_enumerate(c, forced, device, try_plan, &s);
  }
  const int visits = s.visited;
  choice->considered = s.valid;
  if (s.valid == 0 || s.spills) choice->fault = s.fault, choice->needed = s.needed, choice->limit = s.limit;
  if (s.valid == 0) {
    choice->best = s.nearest;
    if (forced) find_conflict(c, device, *forced, choice);
    return 0;
  }
  double least = -1;
  for (int k = 0; k < visits; ++k)
    if (s.costs[k].seconds >= 0 && (least < 0 || s.costs[k].seconds < least)) least = s.costs[k].seconds;
  s.wanted = -1, s.visited = 0;
  for (int k = 0; k < visits; ++k)
    if (s.costs[k].seconds >= 0 && s.costs[k].seconds <= least * kPlansAlike &&
        (s.wanted < 0 || s.costs[k].resident > s.costs[s.wanted].resident))
      s.wanted = k;
  apl_plan_enumerate(c, forced, device, find_wanted, &s);
  choice->best = s.found;
  apl_plan_estimate(c, &choice->best, device, &choice->cost);
  choice->has_runner_up = find_other(&s, forced, visits, &choice->runner_up);
  if (choice->has_runner_up) apl_plan_estimate(c, &choice->runner_up, device, &choice->runner_up_cost);
  return 1;
}

// Whether steps are short of which the model knows too little: it charges nothing for what each one begins with (TCCG
// 01 on an H200: 175 us in steps of 2, 152 us in steps of 32, for the same predicted time).
static int is_shallow(const struct apl_contraction* c, const struct apl_plan* plan) {
  enum { kShallow = 8 };
  int64_t depth = 1, reduction = 1;
  for (int d = c->space_rank; d < c->dim_count; ++d) {
    depth = apl_times(depth, apl_most(plan->tile[d], 1));
    reduction = apl_times(reduction, apl_most(c->dims[d].size, 1));
  }
  return depth < kShallow && reduction >= 2 * kShallow;
}

int apl_plan_best_of(const struct apl_contraction* c, const struct apl_plan* plans, int count,
                     const struct apl_device* device, const unsigned char* banned) {
  struct rated costs[APL_MAX_PLANS];
  double least = 0;
  struct search s;
  struct apl_plan_cost cost;
  int found = -1, hopeless = -1;
  if (count > APL_MAX_PLANS) count = APL_MAX_PLANS;
  for (int k = 0; k < count; ++k) {
    costs[k].seconds = -1;
    if (banned && banned[k]) continue;
    // What only spills is better than nothing: a given number may ask for it.
    start_search(&s, c, device);
    if (!evaluate(&plans[k], &s, &cost)) {
      if (s.fault == APL_PLAN_REGISTERS && hopeless < 0) hopeless = k;
      continue;
    }
    costs[k] = rate(c, &plans[k], device, &cost);
    if (found < 0 || cost.seconds < least) found = k, least = cost.seconds;
  }
  // The first one is that of large sizes, for which plans were measured; the others come in no order of preference.
  int deep = -1;
  for (int k = 0; k < count; ++k) {
    const struct rated *mine = &costs[k], *other = &costs[deep < 0 ? k : deep];
    if (mine->seconds < 0 || mine->seconds > least * kPlansAlike) continue;
    if (apl_has_warps(device) && is_shallow(c, &plans[k])) continue;
    if (deep < 0 || mine->resident > other->resident ||
        (mine->resident == other->resident && deep != 0 && mine->seconds < other->seconds))
      deep = k;
  }
  if (deep >= 0) return deep;
  return found >= 0 ? found : hopeless;
}
