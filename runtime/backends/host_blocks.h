// Memory of the host for arrays. What is given back is kept for the next array of its size, so that its pages need not
// be made again: to write an array of many megabytes first takes several times as long as to write it once more.
#ifndef APL_HOST_BLOCKS_H
#define APL_HOST_BLOCKS_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

enum {
  kHostLine = 64,               // a block begins with a line that says how large it is
  kHostKeptBlocks = 16,         // given back and kept, at most
  kHostLeastKept = 128 * 1024,  // bytes of such a block, at least: smaller ones the C library keeps itself
  kHostLargePage = 2 * 1024 * 1024
};

struct apl_host_block {
  int64_t bytes, room;
};

// Live and kept blocks are never more than the live ones once were.
struct apl_host_blocks {
  int64_t live, peak, kept;  // bytes
  struct apl_host_block* blocks[kHostKeptBlocks];
  int32_t count;
};

// `bytes`, at least one; NULL: there are not so many. Large blocks lie in large pages where the system has them: fewer
// faults, and fewer misses of the translation buffer where an array is read along a dim that is not contiguous.
static inline void* apl_host_pages(int64_t bytes) {
  const size_t size = ((size_t)bytes + kHostLine - 1) / kHostLine * kHostLine;
  char* const block = (char*)aligned_alloc(kHostLine, size);
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  if (block != NULL && size >= 2 * (size_t)kHostLargePage) {
    const size_t ahead = (kHostLargePage - (size_t)(uintptr_t)block % kHostLargePage) % kHostLargePage;
    // A hint, which may be refused.
    (void)madvise(block + ahead, (size - ahead) / kHostLargePage * kHostLargePage, MADV_HUGEPAGE);
  }
#endif
  return block;
}

static inline void apl_host_drop(struct apl_host_blocks* of, int32_t number) {
  of->kept -= of->blocks[number]->room;
  free(of->blocks[number]);
  of->blocks[number] = of->blocks[--of->count];
}
static inline void apl_host_drop_all(struct apl_host_blocks* of) {
  while (of->count > 0) apl_host_drop(of, of->count - 1);
}

// Begins at a line; NULL: there is not so much memory.
static inline void* apl_host_take(struct apl_host_blocks* of, int64_t bytes) {
  if (bytes < 0 || bytes > INT64_MAX / 2) return NULL;
  const int64_t room = bytes + 1;
  int32_t best = -1;
  for (int32_t k = 0; k < of->count; ++k) {
    const int64_t has = of->blocks[k]->room;
    if (has >= room && has - room <= room / 4 && (best < 0 || has < of->blocks[best]->room)) best = k;
  }
  struct apl_host_block* block = NULL;
  if (best >= 0) {
    block = of->blocks[best];
    of->kept -= block->room;
    of->blocks[best] = of->blocks[--of->count];
  } else {
    while (of->count > 0 && of->live + of->kept + room > of->peak) apl_host_drop(of, 0);
    block = (struct apl_host_block*)apl_host_pages(room + kHostLine);
    if (block == NULL && of->count > 0) {
      apl_host_drop_all(of);
      block = (struct apl_host_block*)apl_host_pages(room + kHostLine);
    }
    if (block == NULL) return NULL;
    block->room = room;
  }
  block->bytes = bytes;
  of->live += block->room;
  if (of->live > of->peak) of->peak = of->live;
  return (char*)block + kHostLine;
}

static inline int64_t apl_host_bytes(const void* data) {
  return ((const struct apl_host_block*)((const char*)data - kHostLine))->bytes;
}

static inline void apl_host_give(struct apl_host_blocks* of, void* data) {
  if (data == NULL) return;
  struct apl_host_block* const block = (struct apl_host_block*)((char*)data - kHostLine);
  of->live -= block->room;
#ifndef __SANITIZE_ADDRESS__  // which sees what is read after it was given back
  if (block->room >= kHostLeastKept) {
    if (of->count == kHostKeptBlocks) apl_host_drop(of, 0);
    of->kept += block->room;
    of->blocks[of->count++] = block;
    return;
  }
#endif
  free(block);
}

#endif
