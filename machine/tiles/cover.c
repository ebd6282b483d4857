// A few plans for many sizes: what an ahead-of-time compiler has to compile.
#include <string.h>

#include "machine/tiles/shape.h"

enum { kCoverSamples = 128, kCoverCandidates = 96 };

struct cover_table {
  struct apl_plan plans[kCoverCandidates];
  float ratios[kCoverCandidates][kCoverSamples];  // cost by the cost of the sample's best plan; 0: not valid
  unsigned char taken[kCoverCandidates];
  int count;
};

static int same_plan(const struct apl_contraction* c, const struct apl_plan* a, const struct apl_plan* b) {
  for (int d = 0; d < c->dim_count; ++d)
    if (a->tile[d] != b->tile[d] || a->reg[d] != b->reg[d]) return 0;
  return a->stages == b->stages && a->tiles_per_block == b->tiles_per_block;
}

static void add_candidate(struct cover_table* t, const struct apl_contraction* c, const struct apl_plan* plan) {
  for (int k = 0; k < t->count; ++k)
    if (same_plan(c, &t->plans[k], plan)) return;
  if (t->count < kCoverCandidates) t->plans[t->count++] = *plan;
}

int apl_plan_cover(const struct apl_contraction* contractions, int count, const struct apl_forced* forced,
                   const struct apl_device* device, double factor, int most, struct apl_plan* plans, double* worst) {
  struct cover_table t;
  double least[kCoverSamples] = {0};
  float reached[kCoverSamples];
  if (count > kCoverSamples) count = kCoverSamples;
  t.count = 0;
  memset(t.taken, 0, sizeof t.taken);
  struct apl_plan_choice choice;
  for (int s = 0; s < count; ++s) {
    least[s] = 0, reached[s] = 0;
    if (!apl_plan_select(&contractions[s], forced, device, &choice)) continue;
    add_candidate(&t, &contractions[s], &choice.best);
    if (choice.has_runner_up) add_candidate(&t, &contractions[s], &choice.runner_up);
    least[s] = choice.cost.seconds;
    if (choice.has_runner_up && choice.runner_up_cost.seconds < least[s]) least[s] = choice.runner_up_cost.seconds;
  }
  for (int k = 0; k < t.count; ++k)
    for (int s = 0; s < count; ++s) {
      int64_t needed, limit;
      struct apl_plan_cost cost;
      t.ratios[k][s] = 0;
      const enum apl_plan_fault fault = apl_plan_check(&contractions[s], &t.plans[k], device, &needed, &limit);
      if (least[s] <= 0 || (fault != APL_PLAN_FINE && fault != APL_PLAN_REGISTERS)) continue;
      apl_plan_estimate(&contractions[s], &t.plans[k], device, &cost);
      t.ratios[k][s] = (float)(cost.seconds / least[s]);
    }
  // The first contraction's best plan, then greedily: the plan after which the samples are worst off by least, those
  // beyond the factor first. Of many, the last is the second contraction's best one.
  const int has_last = most > 4 && count > 1 && least[1] > 0;
  int used = 0;
  while (used < most - has_last) {
    int next = used == 0 && least[0] > 0 ? 0 : -1;
    double best = 0;
    for (int k = 0; k < t.count && next != 0; ++k) {
      if (t.taken[k]) continue;
      double gain = 0;
      for (int s = 0; s < count; ++s) {
        if (t.ratios[k][s] <= 0) continue;
        // What nothing serves yet counts as a hundred times its best.
        const double before = reached[s] > 0 ? reached[s] : 100;
        if (before <= factor || t.ratios[k][s] >= before) continue;
        gain += (before < 100 ? before : 100) - (t.ratios[k][s] < factor ? factor : t.ratios[k][s]);
      }
      if (gain > best) best = gain, next = k;
    }
    if (next < 0) break;
    t.taken[next] = 1;
    plans[used++] = t.plans[next];
    for (int s = 0; s < count; ++s)
      if (t.ratios[next][s] > 0 && (reached[s] <= 0 || t.ratios[next][s] < reached[s])) reached[s] = t.ratios[next][s];
  }
  if (has_last) {
    apl_plan_select(&contractions[1], forced, device, &choice);
    int is_new = 1;
    for (int k = 0; k < used; ++k) is_new &= !same_plan(&contractions[1], &plans[k], &choice.best);
    if (is_new) plans[used++] = choice.best;
  }
  *worst = 0;
  for (int s = 0; s < count; ++s)
    if (reached[s] > *worst) *worst = reached[s];
  return used;
}
