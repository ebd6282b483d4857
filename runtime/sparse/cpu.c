// Kernels for all types, for every instruction set that pays, and the choice among them.
#include "runtime/sparse/cpu.h"

#include <string.h>

#if !defined(__GNUC__)
#error "vectors need GCC or Clang"
#endif
#ifdef __x86_64__
#include <immintrin.h>
#endif

// A library of one file says which types it has.
#ifndef APL_SPARSE_SOME_TYPES
#define APL_SPARSE_WANTS_F32 1
#define APL_SPARSE_WANTS_F64 1
#define APL_SPARSE_WANTS_F16 1
#define APL_SPARSE_WANTS_F16_WIDE 1
#define APL_SPARSE_WANTS_BF16_WIDE 1
#define APL_SPARSE_WANTS_I8 1
#define APL_SPARSE_WANTS_I16 1
#define APL_SPARSE_WANTS_I32 1
#define APL_SPARSE_WANTS_I64 1
#endif

enum { APL_SPARSE_AHEAD = 12 };  // elements that are fetched before they are used
#define APL_SPARSE_INLINE static inline __attribute__((always_inline))
#define APL_SPARSE_APART static __attribute__((noinline))
// Gathering instructions are slower than single loads: this keeps compilers from using them.
#define APL_SPARSE_NO_GATHER __asm__ volatile("" : : : "memory")
#define APL_SPARSE_FETCH(p, bytes) \
  for (int64_t line = 0; line < (int64_t)(bytes); line += 64) __builtin_prefetch((const char*)(p) + line)

// The upper half of a float.
static inline float apl_sparse_bfloat(uint16_t bits) {
  const uint32_t word = (uint32_t)bits << 16;
  float number;
  memcpy(&number, &word, sizeof number);
  return number;
}

// A part of the dense loop, for groups.
struct task {
  int64_t begin, count;
  int far;  // rows of B lie in no near cache
};
typedef void group_function(const struct apl_sparse_cpu_call* call, const struct task* task, int64_t group);

static int64_t cpu_row_at(const struct apl_sparse_tiles* tiles, int64_t position) {
  return tiles->row_order ? tiles->row_order[position] : position;
}

#if defined(__AVX512F__)
#define APL_SPARSE_SET(name) name##_basic
#define APL_SPARSE_VECTOR 64
#elif defined(__AVX2__)
#define APL_SPARSE_SET(name) name##_basic
#define APL_SPARSE_VECTOR 32
#else
#define APL_SPARSE_SET(name) name##_basic
#define APL_SPARSE_VECTOR 16
#endif
#include "runtime/sparse/cpu_types.h"

// Compilers that have no instruction set given may still use those that the processor has.
#if defined(__x86_64__) && !defined(__AVX2__) && !defined(__clang__)
#define APL_SPARSE_CHOICE
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#define APL_SPARSE_SET(name) name##_avx2
#define APL_SPARSE_VECTOR 32
#define APL_SPARSE_FLOATS
#include "runtime/sparse/cpu_types.h"
#pragma GCC pop_options
#endif

static group_function* group_of(enum apl_sparse_type type) {
#ifdef APL_SPARSE_CHOICE
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && groups_avx2[type]) return groups_avx2[type];
#endif
  return groups_basic[type];
}

size_t apl_sparse_type_bytes(enum apl_sparse_type type) {
  static const size_t kBytes[APL_SPARSE_TYPES] = {4, 8, 2, 2, 2, 1, 2, 4, 8};
  return kBytes[type];
}

int apl_sparse_cpu_has(enum apl_sparse_type type) { return group_of(type) != NULL; }

static int64_t part_of(const struct apl_sparse_cpu_call* call) {
  return call->sddmm || call->part <= 0 || call->part > call->dense ? call->dense : call->part;
}

void apl_sparse_cpu_work(struct apl_sparse_cpu_call* call) {
  enum { kNear = 512 << 10 };
  const struct apl_sparse_cpu_packed* packed = call->packed;
  group_function* const group = group_of(call->type);
  const int64_t part = part_of(call), parts = call->dense > 0 && !call->sddmm ? (call->dense + part - 1) / part : 1;
  const int64_t row_bytes = part * (int64_t)apl_sparse_type_bytes(call->type);
  struct task task = {0, part, packed->tiles->columns * row_bytes > kNear && part > 1};
  // Part by part: what all of them need of B stays in the caches.
  for (;;) {
    const int64_t number = __atomic_fetch_add(&call->next, 1, __ATOMIC_RELAXED);
    if (number >= parts * packed->chunks) return;
    const struct apl_sparse_chunk* chunk = &packed->chunk[number % packed->chunks];
    task.begin = number / packed->chunks * part;
    task.count = call->dense - task.begin < part ? call->dense - task.begin : part;
    for (int64_t index = chunk->begin; index < chunk->end; ++index) group(call, &task, index);
  }
}

int apl_sparse_cpu_threads(const struct apl_sparse_cpu_call* call, int threads) {
  // Of a single column each multiplication waits for an element of its own; of several, vectors do eight at once.
  enum { kWorthIt = 20000, kWorthItAlone = 10000 };
  const int64_t each = call->dense == 1 ? kWorthItAlone : kWorthIt;
  const int64_t most = call->packed->tiles->nonzeros * (call->dense < 1 ? 1 : call->dense) / each;
  const int64_t tasks = most < call->packed->chunks ? most : call->packed->chunks;
  return tasks < 1 ? 1 : tasks < threads ? (int)tasks : threads;
}
