// A client of any generated library: it calls every entry with small arguments made from the types that the library
// says they have, looks at all of the results, and gives everything back. The library is a part of this file, so that
// its tables can be read: cc -DLIBRARY='"name.c"' client.c. Allocations come through __wrap_malloc and so on
// (-Wl,--wrap=malloc,...), which can let one of them fail.
//   client values      every entry, with several sizes
//   client faults [S]  the same again for every k (or every S-th): allocation number k fails
//   client threads     eight threads, a context each
#include LIBRARY

#define WRAPPED __attribute__((visibility("default"))) extern
WRAPPED void* __real_malloc(size_t bytes);
WRAPPED void* __real_calloc(size_t count, size_t bytes);
WRAPPED void* __real_realloc(void* data, size_t bytes);
WRAPPED void* __real_aligned_alloc(size_t alignment, size_t bytes);
WRAPPED void __real_free(void* data);
void* __wrap_malloc(size_t bytes);
void* __wrap_calloc(size_t count, size_t bytes);
void* __wrap_realloc(void* data, size_t bytes);
void* __wrap_aligned_alloc(size_t alignment, size_t bytes);
void __wrap_free(void* data);

static int64_t allocations, blocks_in_use, failing_allocation;

static bool fails(void) { return __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED) == failing_allocation; }
static void* counted(void* block) {
  if (block) __atomic_add_fetch(&blocks_in_use, 1, __ATOMIC_RELAXED);
  return block;
}
void* __wrap_malloc(size_t bytes) { return fails() ? NULL : counted(__real_malloc(bytes)); }
void* __wrap_calloc(size_t count, size_t bytes) { return fails() ? NULL : counted(__real_calloc(count, bytes)); }
void* __wrap_aligned_alloc(size_t alignment, size_t bytes) {
  return fails() ? NULL : counted(__real_aligned_alloc(alignment, bytes));
}
void* __wrap_realloc(void* data, size_t bytes) {
  if (fails()) return NULL;
  void* block = __real_realloc(data, bytes);
  return data ? block : counted(block);
}
void __wrap_free(void* data) {
  if (data) __atomic_sub_fetch(&blocks_in_use, 1, __ATOMIC_RELAXED);
  __real_free(data);
}

// How one use of an entry went.
struct outcome {
  bool has_failed, is_silent;  // somebody said that something failed; somebody did so without a text
  int status;                  // of the entry
  uint64_t hash;               // of all values that came back
};

static void look_at(struct outcome* outcome, const void* data, size_t bytes) {
  const unsigned char* from = data;
  for (size_t k = 0; k < bytes; ++k) outcome->hash = (outcome->hash ^ from[k]) * 0x100000001b3u;
}

// A failure comes with a text, unless the text is what there was no memory for.
static bool is_fine(struct futhark_context* ctx, int status, struct outcome* outcome) {
  char* text = futhark_context_get_error(ctx);
  const bool failed = status != APL_SUCCESS;
  if (failed || text) outcome->has_failed = true;
  if (failed && !text && (status == APL_OUT_OF_MEMORY || failing_allocation == 0)) outcome->is_silent = true;
  free(text);
  return !failed;
}

enum { MOST_ELEMENTS = 1 << 16, MOST_INPUTS = 64 };

// Small numbers, so that many of them are indices.
static void fill(const struct apl_api_type* type, void* data, int64_t count, int64_t n) {
  for (int64_t k = 0; k < count; ++k) {
    const int64_t x = n > 0 ? (k * 7 + 3) % n : 2;
    const double number = (double)x + 0.5;
    switch (type->element) {
      case APL_F32: ((float*)data)[k] = (float)number; break;
      case APL_F64: ((double*)data)[k] = number; break;
      case APL_F16: ((uint16_t*)data)[k] = (uint16_t)(0x3c00 + 64 * x); break;
      case APL_BF16: ((uint16_t*)data)[k] = (uint16_t)(0x3f80 + 8 * x); break;
      case APL_BOOL: ((uint8_t*)data)[k] = x % 2 == 0; break;
      default: memcpy((char*)data + k * apl_element_size(type->element), &x, (size_t)apl_element_size(type->element));
    }
  }
}

static struct apl_object* make_array(struct futhark_context* ctx, const struct apl_api_type* type, int64_t n) {
  static const int64_t buffer_guard = 0;
  int64_t shape[APL_MAX_RANK], count = 1;
  for (int32_t d = 0; d < type->rank; ++d) shape[d] = n, count *= n;
  if (count > MOST_ELEMENTS) return NULL;
  // Not an allocation of the library's.
  void* data = __real_malloc((size_t)count * 8 + sizeof buffer_guard);
  fill(type, data, count, n);
  struct apl_object* made = apl_new_array(ctx, type, data, shape);
  __real_free(data);
  return made;
}

#if APL_HAS_SPARSE_TYPES
// The diagonal and what is beside it.
static struct apl_object* make_sparse(struct futhark_context* ctx, const struct apl_api_type* type, int64_t n) {
  int64_t row_start[16] = {0};
  int32_t column[32];
  double values[32];
  int64_t nonzeros = 0;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = i; j < n && j < i + 2; ++j) column[nonzeros++] = (int32_t)j;
    row_start[i + 1] = nonzeros;
  }
  fill(type->values[1], values, nonzeros, 3);
  return apl_new_sparse(ctx, type, n, n, row_start, column, values);
}
#endif

static struct apl_object* make_object(struct futhark_context* ctx, const struct apl_api_type* type, int64_t n,
                                      struct outcome* outcome) {
  struct apl_object* made = NULL;
  int status = APL_SUCCESS;
  if (type->kind == APL_API_ARRAY) {
    made = make_array(ctx, type, n);
#if APL_HAS_SPARSE_TYPES
  } else if (type->soa) {
    made = make_sparse(ctx, type, n);
#endif
  } else if (type->field_count > 0) {
    const void* fields[MOST_INPUTS] = {0};
    double scalars[MOST_INPUTS] = {0};
    bool all = type->field_count <= MOST_INPUTS;
    for (int32_t f = 0; f < type->field_count && all; ++f) {
      const struct apl_api_type* part = type->fields[f].type;
      if (part->kind == APL_API_SCALAR) {
        fill(part, &scalars[f], 1, n);
        fields[f] = &scalars[f];
      } else {
        fields[f] = make_object(ctx, part, n, outcome);
        all = fields[f] != NULL;
      }
    }
    if (all) status = apl_new_opaque(ctx, type, fields, &made);
    if (all) is_fine(ctx, status, outcome);
    for (int32_t f = 0; f < type->field_count && f < MOST_INPUTS; ++f)
      if (fields[f] && type->fields[f].type->kind != APL_API_SCALAR)
        is_fine(ctx, apl_free_object(ctx, (struct apl_object*)(uintptr_t)fields[f]), outcome);
    return made;
  } else {
    // An array of tuples has no constructor: its values in a stored form, one behind the other.
    struct apl_object* parts[MOST_INPUTS] = {0};
    size_t size = 0;
    char *bytes = __real_malloc(MOST_ELEMENTS * 16), *to = bytes;
    bool all = type->value_count <= MOST_INPUTS;
    for (int32_t k = 0; k < type->value_count && all; ++k) {
      parts[k] = make_object(ctx, type->values[k], n, outcome);
      void* at = to;
      all = parts[k] && is_fine(ctx, apl_store(ctx, parts[k], &at, &size), outcome);
      to += size;
    }
    if (all) made = apl_restore(ctx, type, bytes);
    if (all && !made) is_fine(ctx, APL_OUT_OF_MEMORY, outcome);
    for (int32_t k = 0; k < type->value_count && k < MOST_INPUTS; ++k)
      if (parts[k]) is_fine(ctx, apl_free_object(ctx, parts[k]), outcome);
    __real_free(bytes);
    return made;
  }
  if (!made) is_fine(ctx, APL_OUT_OF_MEMORY, outcome);
  return made;
}

// All that can be asked of a result.
static void look_at_object(struct futhark_context* ctx, const struct apl_object* object, struct outcome* outcome) {
  const struct apl_api_type* type = object->type;
  if (type->kind == APL_API_ARRAY) {
    const struct apl_value* value = &object->items[0].value;
    const int64_t bytes = apl_bytes(value);
    void* data = __real_malloc((size_t)bytes + 1);
    if (is_fine(ctx, apl_values_of(ctx, object, data), outcome)) look_at(outcome, data, (size_t)bytes);
    look_at(outcome, value->shape, sizeof *value->shape * (size_t)value->rank);
    __real_free(data);
    const int64_t first[APL_MAX_RANK] = {0};
    double element = 0;
    if (apl_elements(value) > 0 && is_fine(ctx, apl_index_of(ctx, object, first, &element), outcome))
      look_at(outcome, &element, (size_t)apl_element_size(value->type));
    return;
  }
  if (type->soa) return;
  for (int32_t f = 0; f < type->field_count; ++f) {
    struct apl_object* part = NULL;
    double scalar = 0;
    const struct apl_api_type* field = type->fields[f].type;
    const bool is_scalar = field->kind == APL_API_SCALAR;
    if (!is_fine(ctx, apl_project(ctx, object, f, is_scalar ? (void*)&scalar : (void*)&part), outcome)) continue;
    look_at(outcome, &scalar, sizeof scalar);
    if (is_scalar) continue;
    look_at_object(ctx, part, outcome);
    is_fine(ctx, apl_free_object(ctx, part), outcome);
  }
  void* bytes = NULL;
  size_t size = 0;
  if (!is_fine(ctx, apl_store(ctx, object, &bytes, &size), outcome)) return;
  look_at(outcome, bytes, size);
  struct apl_object* again = apl_restore(ctx, type, bytes);
  if (!again) is_fine(ctx, APL_OUT_OF_MEMORY, outcome);
  if (again) is_fine(ctx, apl_free_object(ctx, again), outcome);
  free(bytes);
}

static void call(struct futhark_context* ctx, const struct apl_api_entry* entry, int64_t n, struct outcome* outcome) {
  const void* inputs[MOST_INPUTS] = {0};
  double scalars[MOST_INPUTS] = {0};
  struct apl_object* objects[MOST_INPUTS] = {0};
  bool all = true;
  for (int32_t k = 0; k < entry->input_count && all; ++k) {
    if (entry->inputs[k]->kind == APL_API_SCALAR) {
      fill(entry->inputs[k], &scalars[k], 1, n);
      inputs[k] = &scalars[k];
    } else {
      inputs[k] = objects[k] = make_object(ctx, entry->inputs[k], n, outcome);
      all = objects[k] != NULL;
    }
  }
  double scalar = 0;
  struct apl_object* result = NULL;
  const bool is_scalar = entry->output->kind == APL_API_SCALAR;
  outcome->status = APL_ERROR;
  if (all) {
    outcome->status = apl_call_entry(ctx, entry, inputs, is_scalar ? (void*)&scalar : (void*)&result);
    if (is_fine(ctx, outcome->status, outcome) && is_scalar) look_at(outcome, &scalar, sizeof scalar);
    if (outcome->status == APL_SUCCESS && !is_scalar) look_at_object(ctx, result, outcome);
    if (result) is_fine(ctx, apl_free_object(ctx, result), outcome);
  }
  for (int32_t k = 0; k < entry->input_count; ++k)
    if (objects[k]) is_fine(ctx, apl_free_object(ctx, objects[k]), outcome);
}

// A context from its making to its end, with one call of the entry, or two.
static struct outcome use(const struct apl_api_entry* entry, int64_t n, int threads, int calls) {
  struct outcome outcome = {.status = APL_ERROR};
  struct futhark_context_config* cfg = futhark_context_config_new();
  if (!cfg) return (struct outcome){.has_failed = true, .status = APL_OUT_OF_MEMORY};
  futhark_context_config_set_num_threads(cfg, threads);
  futhark_context_config_set_cache_file(cfg, "unused");
  struct futhark_context* ctx = futhark_context_new(cfg);
  if (ctx) {
    char* text = futhark_context_get_error(ctx);
    if (text) {
      outcome.has_failed = true;
      free(text);
    } else {
      for (int k = 0; k < calls; ++k) call(ctx, entry, n, &outcome);
      is_fine(ctx, futhark_context_sync(ctx), &outcome);
      is_fine(ctx, futhark_context_clear_caches(ctx), &outcome);
      char* report = futhark_context_report(ctx);
      if (!report) outcome.has_failed = true;
      free(report);
      if (ctx->bytes != 0 && !outcome.has_failed) {
        fprintf(stderr, "%s: %lld bytes of arrays are left\n", entry->name, (long long)ctx->bytes);
        outcome.is_silent = true;
      }
    }
    futhark_context_free(ctx);
  } else {
    outcome.has_failed = true;
  }
  futhark_context_config_free(cfg);
  return outcome;
}

static const int64_t sizes[] = {5, 1, 0, 8};
enum { SIZES = sizeof sizes / sizeof *sizes };

static int complain(const struct apl_api_entry* entry, int64_t n, const char* what) {
  fprintf(stderr, "%s with sizes of %lld: %s\n", entry->name, (long long)n, what);
  return 1;
}

static int check_values(bool* has_result) {
  int wrong = 0;
  for (const struct apl_api_entry* entry = apl_this_program.entries; entry->name; ++entry)
    for (int s = 0; s < SIZES; ++s) {
      const int64_t before = blocks_in_use;
      const struct outcome first = use(entry, sizes[s], 2, 1);
      if (first.status == APL_SUCCESS) *has_result = true;
      if (first.is_silent) wrong += complain(entry, sizes[s], "an error without a text, or arrays that stay");
      const struct outcome again = use(entry, sizes[s], 1, 1);
      if (first.hash != again.hash) wrong += complain(entry, sizes[s], "another result the second time");
      if (blocks_in_use != before) wrong += complain(entry, sizes[s], "memory is not given back");
    }
  return wrong;
}

static int check_faults(int64_t step) {
  int wrong = 0;
  int64_t faults = 0, survived = 0;
  for (const struct apl_api_entry* entry = apl_this_program.entries; entry->name; ++entry) {
    // Once, so that what the compiler's runtime keeps for its threads is there.
    const struct outcome usual = use(entry, sizes[0], 1, 2);
    for (int64_t k = 1;; k += step) {
      const int64_t before = blocks_in_use;
      allocations = 0;
      failing_allocation = k;
      const struct outcome outcome = use(entry, sizes[0], 1, 2);
      const bool has_ended = allocations < k;
      failing_allocation = 0;
      char where[80];
      snprintf(where, sizeof where, "allocation %lld fails: ", (long long)k);
      if (blocks_in_use != before) fprintf(stderr, "%s", where), wrong += complain(entry, sizes[0], "a leak");
      if (has_ended) break;
      ++faults;
      survived += !outcome.has_failed;
      if (outcome.is_silent)
        fprintf(stderr, "%s", where), wrong += complain(entry, sizes[0], "an error without a text");
      if (!outcome.has_failed && outcome.hash != usual.hash)
        fprintf(stderr, "%s", where), wrong += complain(entry, sizes[0], "another result, and no error");
    }
  }
  printf("%lld faults, %lld of no consequence\n", (long long)faults, (long long)survived);
  return wrong;
}

enum { THREADS = 8, MOST_ENTRIES = 256 };
static uint64_t expected[MOST_ENTRIES];

static void* use_all(void* number) {
  int64_t wrong = 0;
  for (int round = 0; round < 2; ++round)
    for (int k = 0; k < MOST_ENTRIES && apl_this_program.entries[k].name; ++k) {
      // Not all of them the same at a time.
      const struct apl_api_entry* entry = &apl_this_program.entries[k];
      if (use(entry, sizes[0], 1, 2).hash != expected[k])
        wrong += complain(entry, sizes[0], "another result beside other contexts");
    }
  *(int64_t*)number = wrong;
  return NULL;
}

static int check_threads(void) {
  pthread_t threads[THREADS];
  int64_t wrong[THREADS] = {0}, all = 0;
  for (int k = 0; k < MOST_ENTRIES && apl_this_program.entries[k].name; ++k)
    expected[k] = use(&apl_this_program.entries[k], sizes[0], 1, 2).hash;
  for (int t = 0; t < THREADS; ++t)
    if (pthread_create(&threads[t], NULL, use_all, &wrong[t]) != 0) return 1;
  for (int t = 0; t < THREADS; ++t) pthread_join(threads[t], NULL), all += wrong[t];
  return (int)all;
}

int main(int count, char** arguments) {
  const char* mode = count > 1 ? arguments[1] : "values";
  if (strcmp(mode, "threads") == 0) return check_threads() != 0;
  if (strcmp(mode, "faults") == 0) return check_faults(count > 2 ? atoll(arguments[2]) : 1) != 0;
  bool has_result = false;
  const int wrong = check_values(&has_result);
  if (!has_result) fprintf(stderr, "no entry has a result for these arguments\n");
  return wrong != 0 || !has_result;
}
