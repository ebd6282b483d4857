// Arrays that grow while an operand is packed.
#ifndef APL_SPARSE_PACKED_ARRAYS_H
#define APL_SPARSE_PACKED_ARRAYS_H

#include <stdint.h>
#include <stdlib.h>

// Room for `count` elements of `size` bytes, of which none is there yet; 0 without memory. Never null for nothing.
static inline void* apl_sparse_array(int64_t count, size_t size) { return calloc((size_t)count + 1, size); }

// Room for `more` elements beyond `count`; 0 without memory.
static inline int apl_sparse_grow(void** data, int64_t count, int64_t more, int64_t* capacity, size_t size) {
  if (count + more <= *capacity) return 1;
  const int64_t larger = (count + more) + (count + more) / 2 + 64;
  void* moved = realloc(*data, (size_t)larger * size);
  if (!moved) return 0;
  *data = moved;
  *capacity = larger;
  return 1;
}

#endif
