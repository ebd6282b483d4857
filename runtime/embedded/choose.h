// The choice among plans of a kernel: by the model, among those with the numbers that the caller asks for, then by what
// the compiler made of them.
#ifndef APL_CHOOSE_H
#define APL_CHOOSE_H

#include "runtime/embedded/object.h"

#if APL_HAS_PLANS

// Why a plan is left out: numbers that were given are others, or its kernel spills.
enum { APL_PLAN_IS_OTHER = 1, APL_PLAN_SPILLS = 2 };

static size_t apl_parameter(const struct futhark_context* ctx, const char* name) {
  for (int32_t k = 0; k < apl_this_program.parameter_count; ++k)
    if (strcmp(apl_this_program.parameters[k].name, name) == 0) return ctx->config->parameters[k];
  return 0;
}

static int32_t apl_plan_number_of(const struct apl_plan* plan, const struct apl_plan_parameter* parameter) {
  if (parameter->number == APL_NUMBER_TILE) return plan->tile[parameter->dim];
  return parameter->number == APL_NUMBER_REG ? plan->reg[parameter->dim] : plan->stages;
}

static struct apl_choices* apl_choices_of(struct futhark_context* ctx, const struct apl_plan_set* set) {
  for (int32_t k = 0; k < ctx->choice_count; ++k)
    if (ctx->choices[k]->set == set) return ctx->choices[k];
  struct apl_choices** grown = realloc(ctx->choices, (size_t)(ctx->choice_count + 1) * sizeof *grown);
  if (!grown) return NULL;
  ctx->choices = grown;
  struct apl_choices* made = calloc(1, sizeof *made);
  if (!made) return NULL;
  made->set = set;
  // A number that was given holds for all sizes.
  for (const struct apl_plan_parameter* p = set->parameters; p && p->name; ++p) {
    const size_t wanted = apl_parameter(ctx, p->name);
    for (int32_t k = 0; k < set->count && k < APL_MAX_PLANS && wanted; ++k)
      if ((size_t)apl_plan_number_of(&set->plans[k], p) != wanted) made->banned[k] = APL_PLAN_IS_OTHER;
  }
  return ctx->choices[ctx->choice_count++] = made;
}

// Whether a number of these plans was given.
static bool apl_is_given(struct futhark_context* ctx, const struct apl_plan_set* set) {
  for (const struct apl_plan_parameter* p = set->parameters; p && p->name; ++p)
    if (apl_parameter(ctx, p->name)) return true;
  return false;
}

// What was asked for, and what there is.
static int apl_refuse_parameters(struct apl_context* base, const struct apl_plan_set* set) {
  char text[700] = "";
  size_t used = 0;
  for (const struct apl_plan_parameter* p = set->parameters; p && p->name; ++p)
    if (apl_parameter(apl_of(base), p->name) && used < sizeof text)
      used +=
          (size_t)snprintf(text + used, sizeof text - used, " %s=%zu", p->name, apl_parameter(apl_of(base), p->name));
  if (used < sizeof text) used += (size_t)snprintf(text + used, sizeof text - used, "; there are:");
  for (int32_t k = 0; k < set->count; ++k)
    for (const struct apl_plan_parameter* p = set->parameters; p && p->name; ++p)
      if (used < sizeof text)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s %s=%d", p == set->parameters && k > 0 ? "," : "",
                                 p->name, apl_plan_number_of(&set->plans[k], p));
  return apl_backend_error(base, APL_ERROR, "kernel %s was not compiled for%s", set->name, text);
}

static bool apl_same_sizes(const struct apl_contraction* a, const struct apl_contraction* b) {
  for (int32_t d = 0; d < a->dim_count; ++d) {
    if (a->dims[d].size != b->dims[d].size) return false;
    for (int32_t o = 0; o < a->operand_count; ++o)
      if (a->operands[o].strides[d] != b->operands[o].strides[d]) return false;
  }
  return true;
}

static int32_t apl_best_that_spills(struct futhark_context* ctx, const struct apl_contraction* contraction,
                                    const struct apl_plan_set* set, const struct apl_choices* choices) {
  unsigned char banned[APL_MAX_PLANS] = {0};
  for (int32_t k = 0; k < set->count && k < APL_MAX_PLANS; ++k) banned[k] = choices->banned[k] == APL_PLAN_IS_OTHER;
  return apl_plan_best_of(contraction, set->plans, set->count, &ctx->device, banned);
}

static int apl_choose(struct apl_context* base, const struct apl_contraction* contraction,
                      const struct apl_plan_set* set, int32_t* plan) {
  struct futhark_context* ctx = apl_of(base);
  struct apl_choices* choices = apl_choices_of(ctx, set);
  if (!choices) return apl_backend_error(base, APL_OUT_OF_MEMORY, "out of memory");
  for (int32_t k = 0; k < choices->known; ++k)
    if (apl_same_sizes(&choices->sizes[k], contraction)) {
      *plan = choices->plans[k];
      return APL_SUCCESS;
    }
  int32_t left = 0;
  for (int32_t k = 0; k < set->count; ++k) left += choices->banned[k] != APL_PLAN_IS_OTHER;
  if (left == 0) return apl_refuse_parameters(base, set);
  // A kernel that spills is slower than the model thinks. If all of them do, the first choice stands, for other sizes,
  // too.
  int32_t chosen = -1, first = -1;
  while (chosen < 0) {
    const int32_t best = apl_plan_best_of(contraction, set->plans, set->count, &ctx->device, choices->banned);
    if (best < 0 && first < 0) first = apl_best_that_spills(ctx, contraction, set, choices);
    if (best < 0 && first < 0)
      return apl_backend_error(base, APL_ERROR, "none of the %d plans of kernel %s fits device %s", set->count,
                               set->name, ctx->device.name);
    int32_t spilled = 0;
    if (best >= 0 && set->kernels) {
      const int status = apl_machine_prepare(ctx, set->kernels[best], &spilled);
      if (status != APL_SUCCESS) return status;
    }
    if (best < 0 || spilled == 0) {
      chosen = best < 0 ? first : best;
      break;
    }
    if (first < 0) first = best;
    choices->banned[best] = APL_PLAN_SPILLS;
    apl_log(ctx, "kernel %s spills %d bytes a thread; the next plan takes its place", set->kernels[best], spilled);
  }
  const int32_t at = choices->known < APL_KNOWN_CHOICES ? choices->known++ : choices->next++ % APL_KNOWN_CHOICES;
  choices->sizes[at] = *contraction;
  choices->plans[at] = chosen;
  *plan = chosen;
  return APL_SUCCESS;
}

static int32_t apl_plans_left(const struct apl_choices* choices) {
  int32_t left = 0;
  for (int32_t k = 0; k < choices->set->count; ++k) left += choices->banned[k] != APL_PLAN_IS_OTHER;
  return left;
}

// The same for the variants of a contraction.
static int apl_choose_variant(struct apl_context* base, const struct apl_contraction* const* contractions,
                              const struct apl_variant_set* set, int only, int64_t* variant, int64_t* splits) {
  struct futhark_context* ctx = apl_of(base);
  const struct apl_contraction* contraction = contractions[APL_VARIANT_TILED];
  struct apl_choices* choices[APL_VARIANTS] = {NULL};
  for (int v = 0; v < APL_VARIANTS; ++v) {
    if (set->plans[v]) choices[v] = apl_choices_of(ctx, set->plans[v]);
    if (set->plans[v] && !choices[v]) return apl_backend_error(base, APL_OUT_OF_MEMORY, "out of memory");
  }
  struct apl_choices* tiled = choices[APL_VARIANT_TILED];
  for (int32_t k = 0; k < tiled->known_variants; ++k)
    if (apl_same_sizes(&tiled->variants[k].sizes, contraction)) {
      *variant = tiled->variants[k].variant;
      *splits = tiled->variants[k].splits;
      return APL_SUCCESS;
    }
  // Numbers that were given ask for the variant that has them; parts have those of the whole.
  int given = 0;
  for (int v = APL_VARIANT_TILED; v < APL_VARIANTS && only == 0 && given == 0; ++v)
    if (set->plans[v] && apl_is_given(ctx, set->plans[v])) given = v;
  if (given > APL_VARIANT_TILED) {
    only = given;
    if (apl_plans_left(choices[given]) == 0) return apl_refuse_parameters(base, set->plans[given]);
  }
  struct apl_plan_list plans[APL_VARIANTS];
  struct apl_variant_lists lists = {{NULL}, {NULL}};
  for (int v = APL_VARIANT_TILED; v < APL_VARIANTS; ++v) {
    lists.contractions[v] = contractions[v];  // parts may be those of transposed operands, whichever numbers are given
    if (!choices[v] || (given == APL_VARIANT_TILED && !apl_is_given(ctx, set->plans[v]))) continue;
    plans[v] = (struct apl_plan_list){set->plans[v]->plans, set->plans[v]->count, choices[v]->banned};
    lists.plans[v] = &plans[v];
  }
  struct apl_variant_choice choice;
  int32_t left = 0;
  for (int32_t k = 0; k < set->plans[APL_VARIANT_TILED]->count; ++k) left += !tiled->banned[k];
  // Where no plan fits, the choice among them says so.
  if (left == 0 || apl_variant_select(contraction, &lists, only, &ctx->device, &choice) == 0)
    choice.variant = APL_VARIANT_TILED;
  for (const char* const* kernel = set->kernels[choice.variant]; kernel && *kernel; ++kernel) {
    int32_t spilled = 0;
    const int status = apl_machine_prepare(ctx, *kernel, &spilled);
    if (status != APL_SUCCESS) return status;
  }
  *variant = choice.variant;
  *splits = choice.variant == APL_VARIANT_SPLIT ? choice.splits : 1;
  const int32_t at =
      tiled->known_variants < APL_KNOWN_CHOICES ? tiled->known_variants++ : tiled->next_variant++ % APL_KNOWN_CHOICES;
  tiled->variants[at] = (struct apl_known_variant){*contraction, *variant, *splits};
  return APL_SUCCESS;
}

#else

static int apl_choose(struct apl_context* base, const struct apl_contraction* contraction,
                      const struct apl_plan_set* set, int32_t* plan) {
  (void)base, (void)contraction, (void)set;
  *plan = 0;
  return APL_SUCCESS;
}
static int apl_choose_variant(struct apl_context* base, const struct apl_contraction* const* contractions,
                              const struct apl_variant_set* set, int only, int64_t* variant, int64_t* splits) {
  (void)base, (void)contractions, (void)set, (void)only;
  *variant = APL_VARIANT_TILED;
  *splits = 1;
  return APL_SUCCESS;
}

#endif

#endif
