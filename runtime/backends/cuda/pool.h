// A caching allocator of device memory: released blocks are kept in free lists by size class and serve later
// allocations of their class, so that results whose sizes vary from call to call reuse each other's memory. Plain C11,
// for the CUDA backend and for generated libraries; memory itself comes from three functions, so that it runs without a
// GPU.
//
// **Size classes.** Sizes are rounded up to 256 bytes (the alignment of cuMemAlloc), then to one of four classes in
// each power of two: 256, 320, 384, 448, 512, 640, ... A block is less than a quarter larger than what was asked for.
//
// **Bound.** Blocks held, in use and free, never exceed twice the largest number of bytes in use at a time since the
// pool was made or cleared, or APL_POOL_SLACK if that is more: before more is taken from the device, the blocks that
// have been free longest go back. The largest number and not the present one, because between two calls hardly
// anything is in use: by the present one each call would give back what the next one needs. Twice, because blocks are
// needed in other classes at other times: one half can be in use in some classes while the other half is free in
// others. Below the slack the driver's calls cost more than the memory is worth.
//
// **Failure.** When the device has no memory left, all free blocks go back and the allocation is tried once more, then
// with the size that was asked for instead of that of its class.
//
// **Order.** Work that uses a block may still run when the block is released: all work must be submitted to one stream,
// where later work follows it. `wait` is called before blocks go back to the device.
#ifndef APL_POOL_H
#define APL_POOL_H

#include <stdint.h>

// A library of one file keeps these functions to itself.
#ifndef APL_POOL_API
#define APL_POOL_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define APL_POOL_SMALLEST UINT64_C(256)
#define APL_POOL_LARGEST (UINT64_C(1) << 56)  // no device has as much; sums of such sizes do not overflow
#define APL_POOL_SLACK (UINT64_C(64) << 20)
#define APL_POOL_CLASSES (4 * (56 - 8) + 1)
#define APL_POOL_UNKNOWN (-1)  // of apl_pool_release: not a block in use

// Where memory comes from. Results are 0 or an error, not negative.
struct apl_pool_source {
  void* user;
  int (*allocate)(void* user, uint64_t bytes, uint64_t* data);  // of at least one byte
  int (*release)(void* user, uint64_t data);
  int (*wait)(void* user);  // for all submitted work
  int out_of_memory;        // the error for which the allocation is tried again; the pool's own one, too
  // Nothing is cached and no size is rounded: blocks go back when they are released, without waiting. For an allocator
  // that does all this itself.
  int is_direct;
};

struct apl_pool_block;

// Zeroed, then with its source, it is an empty pool.
struct apl_pool {
  struct apl_pool_source source;
  // Bytes as asked for of the blocks in use; the size of the blocks in use, and of all blocks.
  uint64_t requested, in_use, held;
  uint64_t peak;  // the most that `in_use` has been, since the pool was made or cleared

  // Private: records of blocks, numbered from 1, and a hash table by address; 0 is none.
  struct apl_pool_block* blocks;
  uint32_t *buckets, capacity, unused;
  struct apl_pool_list {
    uint32_t newest, oldest;
  } free[APL_POOL_CLASSES];
  uint64_t releases;
};

// The smallest class for a size, at most APL_POOL_LARGEST, and the size of a class.
APL_POOL_API int apl_pool_class_of(uint64_t bytes);
APL_POOL_API uint64_t apl_pool_class_bytes(int size_class);

// A block of at least `bytes`, an address of its own even for none. On an error of the source the pool stays usable.
APL_POOL_API int apl_pool_allocate(struct apl_pool* pool, int64_t bytes, uint64_t* data);
APL_POOL_API int apl_pool_release(struct apl_pool* pool, uint64_t data);
// Gives all free blocks back.
APL_POOL_API int apl_pool_clear(struct apl_pool* pool);
// Gives all blocks back, those in use as well; the pool is empty then. After all work is done: it does not wait.
APL_POOL_API void apl_pool_close(struct apl_pool* pool);

#ifdef __cplusplus
}
#endif
#endif
