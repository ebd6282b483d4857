// The reference executor for one element type: `real`, names ending in APL_SPARSE_NAME. Included by execute.c.

struct APL_SPARSE_NAME(product) {
  const real *values, *b;
  real* c;
  int64_t dense, begin, count;  // columns of B and C, and which of them are computed
};

static void APL_SPARSE_NAME(multiply)(void* state, int32_t source, int64_t row, int64_t column) {
  const struct APL_SPARSE_NAME(product)* p = state;
  const real value = p->values[source];
  const real* b = p->b + column * p->dense + p->begin;
  real* c = p->c + row * p->dense + p->begin;
  for (int64_t j = 0; j < p->count; ++j) c[j] += value * b[j];
}

void APL_SPARSE_NAME(apl_sparse_spmm)(const struct apl_sparse_tiles* tiles, const real* values, const real* b,
                                      int64_t dense, int64_t part, real* c) {
  for (int64_t k = 0; k < tiles->rows * dense; ++k) c[k] = 0;
  const int64_t step = part > 0 ? part : dense;
  for (int64_t begin = 0; begin < dense; begin += step) {
    struct APL_SPARSE_NAME(product) product = {values, b, c, dense, begin, dense - begin < step ? dense - begin : step};
    visit_elements(tiles, APL_SPARSE_NAME(multiply), &product);
  }
}

struct APL_SPARSE_NAME(sampled) {
  const real *values, *x, *y;
  real* result;
  int64_t dense;
};

static void APL_SPARSE_NAME(sample)(void* state, int32_t source, int64_t row, int64_t column) {
  const struct APL_SPARSE_NAME(sampled)* s = state;
  real sum = 0;
  for (int64_t k = 0; k < s->dense; ++k) sum += s->x[row * s->dense + k] * s->y[column * s->dense + k];
  s->result[source] = s->values[source] * sum;
}

void APL_SPARSE_NAME(apl_sparse_sddmm)(const struct apl_sparse_tiles* t, const real* values, const real* x,
                                       const real* y, int64_t dense, real* result) {
  struct APL_SPARSE_NAME(sampled) sampled = {values, x, y, result, dense};
  visit_elements(t, APL_SPARSE_NAME(sample), &sampled);
}
