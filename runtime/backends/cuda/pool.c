// The caching allocator of pool.h.
#include "runtime/backends/cuda/pool.h"

#include <stdlib.h>
#include <string.h>

struct apl_pool_block {
  uint64_t data;              // 0: the record is unused
  uint64_t bytes, requested;  // its size; what was asked for
  uint64_t released;          // the number of its last release; 0: in use
  uint32_t newer, older;      // free blocks of its class
  uint32_t next;              // in its bucket, or of the unused records
  int size_class;
};

// ---- size classes ----

int apl_pool_class_of(uint64_t bytes) {
  if (bytes <= APL_POOL_SMALLEST) return 0;
  const int power = 63 - __builtin_clzll(bytes - 1);
  const int quarter = (int)((bytes - 1 - (UINT64_C(1) << power)) >> (power - 2));
  return 4 * (power - 8) + quarter + 1;
}

uint64_t apl_pool_class_bytes(int size_class) {
  if (size_class == 0) return APL_POOL_SMALLEST;
  const int power = 8 + (size_class - 1) / 4;
  return (UINT64_C(1) << power) + ((uint64_t)((size_class - 1) % 4 + 1) << (power - 2));
}

// ---- records by address ----

static uint32_t* apl_pool_bucket(const struct apl_pool* pool, uint64_t data) {
  const uint64_t hash = data * UINT64_C(0x9e3779b97f4a7c15);  // 2^64 over the golden ratio
  return &pool->buckets[(uint32_t)(hash >> 32) & (pool->capacity - 1)];
}

static void apl_pool_insert(struct apl_pool* pool, uint32_t at) {
  uint32_t* bucket = apl_pool_bucket(pool, pool->blocks[at].data);
  pool->blocks[at].next = *bucket;
  *bucket = at;
}

// The position of the block's number in its bucket; NULL if it has none.
static uint32_t* apl_pool_find(const struct apl_pool* pool, uint64_t data) {
  if (pool->capacity == 0) return NULL;
  uint32_t* location = apl_pool_bucket(pool, data);
  while (*location != 0 && pool->blocks[*location].data != data) location = &pool->blocks[*location].next;
  return *location != 0 ? location : NULL;
}

// There is an unused record afterwards. False: no memory on the host; nothing has changed.
static int apl_pool_has_record(struct apl_pool* pool) {
  if (pool->unused != 0) return 1;
  const uint32_t old = pool->capacity, capacity = old != 0 ? 2 * old : 64;
  uint32_t* buckets = capacity > old ? calloc(capacity, sizeof *buckets) : NULL;
  struct apl_pool_block* blocks = buckets ? realloc(pool->blocks, capacity * sizeof *blocks) : NULL;
  if (!blocks) {
    free(buckets);
    return 0;
  }
  free(pool->buckets);
  pool->blocks = blocks;
  pool->buckets = buckets;
  pool->capacity = capacity;
  memset(blocks + old, 0, (capacity - old) * sizeof *blocks);
  for (uint32_t k = 1; k < old; ++k) apl_pool_insert(pool, k);  // all are used, else there was no need for more
  for (uint32_t k = capacity - 1; k > 0 && k >= old; --k) {
    blocks[k].next = pool->unused;
    pool->unused = k;
  }
  return 1;
}

// ---- free lists ----

static void apl_pool_cache(struct apl_pool* pool, uint32_t at) {
  struct apl_pool_block* block = &pool->blocks[at];
  struct apl_pool_list* list = &pool->free[block->size_class];
  block->released = ++pool->releases;
  block->newer = 0;
  block->older = list->newest;
  if (list->newest != 0)
    pool->blocks[list->newest].newer = at;
  else
    list->oldest = at;
  list->newest = at;
}

static void apl_pool_take(struct apl_pool* pool, uint32_t at) {
  struct apl_pool_block* block = &pool->blocks[at];
  struct apl_pool_list* list = &pool->free[block->size_class];
  if (block->newer != 0)
    pool->blocks[block->newer].older = block->older;
  else
    list->newest = block->older;
  if (block->older != 0)
    pool->blocks[block->older].newer = block->newer;
  else
    list->oldest = block->newer;
  block->released = 0;
}

// The block that has been free longest; 0 if none is free.
static uint32_t apl_pool_oldest(const struct apl_pool* pool) {
  uint32_t oldest = 0;
  for (int k = 0; k < APL_POOL_CLASSES; ++k) {
    const uint32_t at = pool->free[k].oldest;
    if (at != 0 && (oldest == 0 || pool->blocks[at].released < pool->blocks[oldest].released)) oldest = at;
  }
  return oldest;
}

// ---- blocks of the device ----

// Gives a block back that is in no free list.
static int apl_pool_drop(struct apl_pool* pool, uint32_t* location) {
  const uint32_t at = *location;
  struct apl_pool_block* block = &pool->blocks[at];
  const uint64_t data = block->data;
  *location = block->next;
  pool->held -= block->bytes;
  memset(block, 0, sizeof *block);
  block->next = pool->unused;
  pool->unused = at;
  return pool->source.release(pool->source.user, data);
}

// Gives free blocks back, those first that have been free longest, until no more than `most` bytes are held or none is
// free. The first error is given.
static int apl_pool_shrink(struct apl_pool* pool, uint64_t most) {
  if (pool->held <= most || pool->held == pool->in_use) return 0;
  int result = pool->source.wait(pool->source.user);
  if (result != 0) return result;
  for (uint32_t at = 0; pool->held > most && (at = apl_pool_oldest(pool)) != 0;) {
    apl_pool_take(pool, at);
    const int dropped = apl_pool_drop(pool, apl_pool_find(pool, pool->blocks[at].data));
    if (result == 0) result = dropped;
  }
  return result;
}

static int apl_pool_take_from_source(struct apl_pool* pool, uint64_t bytes, uint64_t* data) {
  *data = 0;
  const int result = pool->source.allocate(pool->source.user, bytes, data);
  return result == 0 && *data == 0 ? pool->source.out_of_memory : result;
}

// A new block of the class, not in the free lists.
static int apl_pool_grow(struct apl_pool* pool, int size_class, uint64_t requested, uint32_t* at) {
  if (!apl_pool_has_record(pool)) return pool->source.out_of_memory;
  const uint64_t least = requested != 0 ? requested : 1;
  uint64_t data = 0, bytes = pool->source.is_direct ? least : apl_pool_class_bytes(size_class);
  const uint64_t needed = pool->in_use + bytes;
  uint64_t bound = 2 * (needed > pool->peak ? needed : pool->peak);
  if (bound < APL_POOL_SLACK) bound = APL_POOL_SLACK;
  int result = apl_pool_shrink(pool, bound - bytes);
  if (result == 0) result = apl_pool_take_from_source(pool, bytes, &data);
  if (result == pool->source.out_of_memory && (bytes > least || pool->held > pool->in_use)) {
    bytes = least;
    result = apl_pool_shrink(pool, 0);
    if (result == 0) result = apl_pool_take_from_source(pool, bytes, &data);
  }
  if (result != 0) return result;
  *at = pool->unused;
  struct apl_pool_block* block = &pool->blocks[*at];
  pool->unused = block->next;
  block->data = data;
  block->bytes = bytes;
  block->size_class = size_class;
  apl_pool_insert(pool, *at);
  pool->held += bytes;
  return 0;
}

int apl_pool_allocate(struct apl_pool* pool, int64_t bytes, uint64_t* data) {
  const uint64_t requested = (uint64_t)bytes;
  if (requested > APL_POOL_LARGEST) return pool->source.out_of_memory;  // or negative
  const int size_class = apl_pool_class_of(requested);
  // Only blocks that were made when memory was short are smaller than their class.
  uint32_t at = pool->free[size_class].newest;
  while (at != 0 && pool->blocks[at].bytes < requested) at = pool->blocks[at].older;
  if (at != 0) {
    apl_pool_take(pool, at);
  } else {
    const int result = apl_pool_grow(pool, size_class, requested, &at);
    if (result != 0) return result;
  }
  struct apl_pool_block* block = &pool->blocks[at];
  block->requested = requested;
  pool->requested += requested;
  pool->in_use += block->bytes;
  if (pool->in_use > pool->peak) pool->peak = pool->in_use;
  *data = block->data;
  return 0;
}

int apl_pool_release(struct apl_pool* pool, uint64_t data) {
  uint32_t* location = apl_pool_find(pool, data);
  if (!location || pool->blocks[*location].released != 0) return APL_POOL_UNKNOWN;
  const struct apl_pool_block* block = &pool->blocks[*location];
  pool->requested -= block->requested;
  pool->in_use -= block->bytes;
  if (pool->source.is_direct) return apl_pool_drop(pool, location);
  apl_pool_cache(pool, *location);
  return 0;
}

int apl_pool_clear(struct apl_pool* pool) {
  const int result = apl_pool_shrink(pool, 0);
  pool->peak = pool->in_use;
  return result;
}

void apl_pool_close(struct apl_pool* pool) {
  for (uint32_t k = 1; k < pool->capacity; ++k)
    if (pool->blocks[k].data != 0) pool->source.release(pool->source.user, pool->blocks[k].data);
  free(pool->blocks);
  free(pool->buckets);
  const struct apl_pool_source source = pool->source;
  memset(pool, 0, sizeof *pool);
  pool->source = source;
}
