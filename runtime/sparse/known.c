#include "runtime/sparse/known.h"

#include <string.h>

uint64_t apl_sparse_key(const struct apl_sparse_csr* matrix, size_t value_bytes) {
  uint64_t hash = apl_sparse_hash(matrix) ^ value_bytes;
  const unsigned char* values = matrix->values;
  const size_t bytes = values ? (size_t)matrix->nonzeros * value_bytes : 0;
  for (size_t k = 0; k < bytes; k += sizeof(uint64_t)) {
    uint64_t word = 0;
    const size_t left = bytes - k;
    memcpy(&word, values + k, left < sizeof word ? left : sizeof word);
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
  }
  return hash;
}
