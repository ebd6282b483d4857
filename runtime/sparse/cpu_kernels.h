// Products over the tiles of a group, for one type of elements and one instruction set. Included by cpu.c with
//   APL_SPARSE_NAME(name)    the name of a function here
//   APL_SPARSE_ELEMENT       what operands hold
//   APL_SPARSE_REAL          what is added up; packed values are of this type
//   APL_SPARSE_RESULT        what results hold; not defined: elements
//   APL_SPARSE_HALVES        if elements are halves and sums are floats
//   APL_SPARSE_BFLOATS       if elements are upper halves of floats and sums are floats; results must be, too
//   APL_SPARSE_WORDS         if sums have 32 bits
//   APL_SPARSE_VECTOR        bytes of a vector of sums
// Sums live in registers for a slice of the dense loop: at most eight vectors of a row, or two of each of four rows.
#define element APL_SPARSE_ELEMENT
#define real APL_SPARSE_REAL
#ifdef APL_SPARSE_RESULT
#define output APL_SPARSE_RESULT
#else
#define output APL_SPARSE_ELEMENT
#endif
#ifdef APL_SPARSE_BFLOATS
#define NUMBER(x) apl_sparse_bfloat(x)
#else
#define NUMBER(x) ((real)(x))
#endif
#define vector APL_SPARSE_NAME(vector_of)
// Unrolled before anything else looks at them, so that sums are registers and never an array.
#define EACH(index, count) _Pragma("GCC unroll 8") for (int index = 0; index < (count); ++index)
#define LANES ((int64_t)(APL_SPARSE_VECTOR / sizeof(real)))

typedef real vector __attribute__((vector_size(APL_SPARSE_VECTOR)));
#if defined(APL_SPARSE_HALVES) && defined(__F16C__) && APL_SPARSE_VECTOR == 32
#define LOAD(p) ((vector)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(p))))
#define STORE_HALVES(p, v) _mm_storeu_si128((__m128i*)(p), _mm256_cvtps_ph((__m256)(v), _MM_FROUND_TO_NEAREST_INT))
#elif defined(APL_SPARSE_HALVES)
typedef apl_sparse_half APL_SPARSE_NAME(halves) __attribute__((vector_size(APL_SPARSE_VECTOR / 2)));
typedef APL_SPARSE_NAME(halves) APL_SPARSE_NAME(unaligned) __attribute__((aligned(1), may_alias));
#define LOAD(p) __builtin_convertvector(*(const APL_SPARSE_NAME(unaligned)*)(p), vector)
#define STORE_HALVES(p, v) (*(APL_SPARSE_NAME(unaligned)*)(p) = __builtin_convertvector(v, APL_SPARSE_NAME(halves)))
#elif defined(APL_SPARSE_BFLOATS)
typedef uint16_t APL_SPARSE_NAME(shorts) __attribute__((vector_size(APL_SPARSE_VECTOR / 2)));
typedef APL_SPARSE_NAME(shorts) APL_SPARSE_NAME(unaligned) __attribute__((aligned(1), may_alias));
typedef uint32_t APL_SPARSE_NAME(words) __attribute__((vector_size(APL_SPARSE_VECTOR)));
#define LOAD(p) \
  ((vector)(__builtin_convertvector(*(const APL_SPARSE_NAME(unaligned)*)(p), APL_SPARSE_NAME(words)) << 16))
#endif
#if defined(APL_SPARSE_HALVES) && !defined(APL_SPARSE_RESULT)
#define LOAD_OUTPUT(p) LOAD(p)
#define STORE(p, v) STORE_HALVES(p, v)
#else
typedef vector APL_SPARSE_NAME(outputs) __attribute__((aligned(1), may_alias));
#define LOAD_OUTPUT(p) ((vector) * (const APL_SPARSE_NAME(outputs)*)(p))
#define STORE(p, v) (*(APL_SPARSE_NAME(outputs)*)(p) = (v))
#endif
#ifndef LOAD
#define LOAD(p) LOAD_OUTPUT(p)
#endif

// C = A B: columns of one row, for `vectors` vectors from b on. `ahead`: rows of B are fetched some elements before
// they are used.
APL_SPARSE_INLINE void APL_SPARSE_NAME(row_slice)(const int32_t* column, const real* value, int64_t count,
                                                  const element* b, int64_t stride, output* c, int adds,
                                                  const int vectors, const int ahead) {
  vector sum[8], other[4];
  EACH(v, vectors) sum[v] = adds ? LOAD_OUTPUT(c + v * LANES) : (vector){0};
  int64_t k = 0;
  // Few sums depend on each other too closely: two columns at a time.
  if (vectors <= 4 && count > 1) {
    EACH(v, vectors) other[v] = (vector){0};
    for (; k + 1 < count; k += 2) {
      const element *first = b + column[k] * stride, *second = b + column[k + 1] * stride;
      if (ahead) {
        APL_SPARSE_FETCH(b + column[k + APL_SPARSE_AHEAD] * stride, vectors * APL_SPARSE_VECTOR);
        APL_SPARSE_FETCH(b + column[k + 1 + APL_SPARSE_AHEAD] * stride, vectors * APL_SPARSE_VECTOR);
      }
      EACH(v, vectors) {
        sum[v] += value[k] * LOAD(first + v * LANES);
        other[v] += value[k + 1] * LOAD(second + v * LANES);
      }
    }
    EACH(v, vectors) sum[v] += other[v];
  }
  for (; k < count; ++k) {
    const element* row = b + column[k] * stride;
    if (ahead) APL_SPARSE_FETCH(b + column[k + APL_SPARSE_AHEAD] * stride, vectors * APL_SPARSE_VECTOR);
    EACH(v, vectors) sum[v] += value[k] * LOAD(row + v * LANES);
  }
  EACH(v, vectors) STORE(c + v * LANES, sum[v]);
}

// What is left of a row after whole vectors: fewer than LANES columns.
static void APL_SPARSE_NAME(row_remainder)(const int32_t* column, const real* value, int64_t count, const element* b,
                                           int64_t stride, output* c, int adds, int64_t remainder) {
  real sum[APL_SPARSE_VECTOR];
  for (int64_t j = 0; j < remainder; ++j) sum[j] = adds ? (real)c[j] : 0;
  for (int64_t k = 0; k < count; ++k)
    for (int64_t j = 0; j < remainder; ++j) sum[j] += value[k] * NUMBER(b[column[k] * stride + j]);
  for (int64_t j = 0; j < remainder; ++j) c[j] = (output)sum[j];
}

APL_SPARSE_INLINE void APL_SPARSE_NAME(put_one)(const struct apl_sparse_cpu_call* call, const struct task* task,
                                                int32_t target, real sum) {
  output* c = (output*)call->c + (target < 0 ? ~target : target) * call->c_stride + task->begin;
  *c = (output)(real)(target < 0 ? (real)*c + sum : sum);
}

// A column of B at a time is a dot product: four sums, as they must not wait for each other.
APL_SPARSE_INLINE void APL_SPARSE_NAME(one)(const struct apl_sparse_cpu_call* call, const struct task* task,
                                            const int32_t* column, const real* value, int64_t count, int32_t target,
                                            const int64_t stride) {
  const element* b = (const element*)call->b + task->begin;
  real sum = 0, second = 0, third = 0, fourth = 0;
  int64_t k = 0;
  for (; count >= 12 && k + 3 < count; k += 4) {
    sum += value[k] * NUMBER(b[column[k] * stride]);
    APL_SPARSE_NO_GATHER;
    second += value[k + 1] * NUMBER(b[column[k + 1] * stride]);
    APL_SPARSE_NO_GATHER;
    third += value[k + 2] * NUMBER(b[column[k + 2] * stride]);
    APL_SPARSE_NO_GATHER;
    fourth += value[k + 3] * NUMBER(b[column[k + 3] * stride]);
  }
  for (; k < count; ++k) {
    sum += value[k] * NUMBER(b[column[k] * stride]);
    APL_SPARSE_NO_GATHER;
  }
  const real all = (real)((real)(sum + second) + (real)(third + fourth));
  APL_SPARSE_NAME(put_one)(call, task, target, all);
}

// ELL rows of the same width, four at a time: neither a wait for sums nor a branch that nobody foresees.
APL_SPARSE_INLINE void APL_SPARSE_NAME(ones)(const struct apl_sparse_cpu_call* call, const struct task* task,
                                             const struct apl_sparse_ell* tile, const real* value,
                                             const int64_t stride) {
  const int32_t *column = call->packed->tiles->ell_column + tile->first_element,
                *target = call->packed->ell_target + tile->first_ell_row;
  const element* b = (const element*)call->b + task->begin;
  const int64_t width = tile->width;
  int64_t list = 0;
  for (; width < 16 && list + 3 < tile->ell_rows; list += 4, column += 4 * width, value += 4 * width) {
    const int32_t *second_column = column + width, *third_column = column + 2 * width,
                  *fourth_column = column + 3 * width;
    const real *second_value = value + width, *third_value = value + 2 * width, *fourth_value = value + 3 * width;
    real sum = 0, second = 0, third = 0, fourth = 0;
    for (int64_t k = 0; k < width; ++k) {
      sum += value[k] * NUMBER(b[column[k] * stride]);
      APL_SPARSE_NO_GATHER;
      second += second_value[k] * NUMBER(b[second_column[k] * stride]);
      APL_SPARSE_NO_GATHER;
      third += third_value[k] * NUMBER(b[third_column[k] * stride]);
      APL_SPARSE_NO_GATHER;
      fourth += fourth_value[k] * NUMBER(b[fourth_column[k] * stride]);
    }
    APL_SPARSE_NAME(put_one)(call, task, target[list], sum);
    APL_SPARSE_NAME(put_one)(call, task, target[list + 1], second);
    APL_SPARSE_NAME(put_one)(call, task, target[list + 2], third);
    APL_SPARSE_NAME(put_one)(call, task, target[list + 3], fourth);
  }
  for (; list < tile->ell_rows; ++list, column += width, value += width)
    APL_SPARSE_NAME(one)(call, task, column, value, width, target[list], stride);
}

// nnz segments with one column of B, and rows of the matrix itself, of which nothing but what they have is read.
APL_SPARSE_INLINE void APL_SPARSE_NAME(segment_ones)(const struct apl_sparse_cpu_call* call, const struct task* task,
                                                     int64_t group, const int64_t stride) {
  const struct apl_sparse_cpu_packed* packed = call->packed;
  const int64_t begin = packed->group_stripe[group], end = packed->group_stripe[group + 1], c_stride = call->c_stride;
  const struct apl_sparse_tiles* t = packed->tiles;
  const int32_t *column = t->segment_column, *target = packed->rows ? NULL : packed->stripe_target;
  const int64_t* start = packed->stripe_first;
  const real* value = (const real*)call->values + t->block_elements + t->ell_elements;
  const element* b = (const element*)call->b + task->begin;
  output* c = (output*)call->c + task->begin;
  int64_t k = start[begin];
  for (int64_t stripe = begin; stripe < end; ++stripe) {
    const int64_t last = start[stripe + 1];
    real sum = 0, second = 0, third = 0, fourth = 0;
    for (; k + 3 < last; k += 4) {
      sum += value[k] * NUMBER(b[column[k] * stride]);
      second += value[k + 1] * NUMBER(b[column[k + 1] * stride]);
      third += value[k + 2] * NUMBER(b[column[k + 2] * stride]);
      fourth += value[k + 3] * NUMBER(b[column[k + 3] * stride]);
      __asm__("" : "+r"(k));  // as APL_SPARSE_NO_GATHER
    }
    for (; k < last; ++k) {
      sum += value[k] * NUMBER(b[column[k] * stride]);
      __asm__("" : "+r"(k));
    }
    const real all = (real)((real)(sum + second) + (real)(third + fourth));
    if (target) {
      APL_SPARSE_NAME(put_one)(call, task, target[stripe], all);
    } else {
      c[stripe * c_stride] = (output)all;
    }
  }
}

// ELL rows and nnz segments of a group with one column of B.
APL_SPARSE_INLINE void APL_SPARSE_NAME(group_ones)(const struct apl_sparse_cpu_call* call, const struct task* task,
                                                   int64_t group, const int64_t stride) {
  const struct apl_sparse_cpu_packed* packed = call->packed;
  const struct apl_sparse_tiles* t = packed->tiles;
  const real* ell_value = (const real*)call->values + t->block_elements;
  for (int64_t k = t->group_ell[group]; k < t->group_ell[group + 1]; ++k)
    APL_SPARSE_NAME(ones)(call, task, &t->ell_tile[k], ell_value + t->ell_tile[k].first_element, stride);
  APL_SPARSE_NAME(segment_ones)(call, task, group, stride);
}

APL_SPARSE_APART void APL_SPARSE_NAME(row)(const struct apl_sparse_cpu_call* call, const struct task* task,
                                           const int32_t* column, const real* value, int64_t count, int32_t target,
                                           int ahead) {
  const int adds = target < 0;
  const element* b = (const element*)call->b + task->begin;
  output* c = (output*)call->c + (adds ? ~target : target) * call->c_stride + task->begin;
  int64_t left = task->count;
#define APL_SPARSE_SLICE(vectors)                                                               \
  {                                                                                             \
    if (ahead) {                                                                                \
      APL_SPARSE_NAME(row_slice)(column, value, count, b, call->b_stride, c, adds, vectors, 1); \
    } else {                                                                                    \
      APL_SPARSE_NAME(row_slice)(column, value, count, b, call->b_stride, c, adds, vectors, 0); \
    }                                                                                           \
    b += (vectors)*LANES;                                                                       \
    c += (vectors)*LANES;                                                                       \
    left -= (vectors)*LANES;                                                                    \
  }
  while (left >= 8 * LANES) APL_SPARSE_SLICE(8);
  if (left >= 4 * LANES) APL_SPARSE_SLICE(4);
  if (left >= 2 * LANES) APL_SPARSE_SLICE(2);
  if (left >= LANES) APL_SPARSE_SLICE(1);
#undef APL_SPARSE_SLICE
  if (left > 0) APL_SPARSE_NAME(row_remainder)(column, value, count, b, call->b_stride, c, adds, left);
}

// Four rows of a block: each row of B that is read serves them all. Rows from `rows` on are not there.
APL_SPARSE_INLINE void APL_SPARSE_NAME(four_rows)(const struct apl_sparse_cpu_call* call, const int32_t* column,
                                                  const real* value, int64_t steps, int64_t step_elements,
                                                  const element* b, output* const c[4], uint64_t adds, int64_t rows,
                                                  const int vectors) {
  vector sum[4][2];
  EACH(i, 4)
  EACH(v, vectors) sum[i][v] = i < rows && (adds >> i & 1) ? LOAD_OUTPUT(c[i] + v * LANES) : (vector){0};
  for (int64_t step = 0; step < steps; ++step, column += APL_SPARSE_STEP, value += step_elements)
    for (int j = 0; j < APL_SPARSE_STEP; ++j) {
      const element* row = b + column[j] * call->b_stride;
      EACH(v, vectors) {
        const vector here = LOAD(row + v * LANES);
        EACH(i, 4) sum[i][v] += value[i * APL_SPARSE_STEP + j] * here;
      }
    }
  EACH(i, 4)
  EACH(v, vectors) if (i < rows) STORE(c[i] + v * LANES, sum[i][v]);
}

static void APL_SPARSE_NAME(block_remainder)(const struct apl_sparse_cpu_call* call, const int32_t* column,
                                             const real* value, int64_t steps, int64_t step_elements, const element* b,
                                             output* c, int adds, int64_t remainder) {
  for (int64_t step = 0; step < steps; ++step, column += APL_SPARSE_STEP, value += step_elements, adds = 1)
    APL_SPARSE_NAME(row_remainder)(column, value, APL_SPARSE_STEP, b, call->b_stride, c, adds, remainder);
}

// With one column of B: elements of the column are gathered once for eight rows.
static void APL_SPARSE_NAME(block_vector)(const struct apl_sparse_cpu_call* call, const struct task* task,
                                          int64_t index, int64_t first) {
  const struct apl_sparse_tiles* t = call->packed->tiles;
  const struct apl_sparse_block* block = &t->block[index];
  const int32_t* column = t->block_column + block->first_step * APL_SPARSE_STEP;
  const real* value = (const real*)call->values + block->first_element + first * APL_SPARSE_STEP;
  const element* b = (const element*)call->b + task->begin;
  real sum[8][APL_SPARSE_STEP] = {0};
  for (int64_t step = 0; step < block->steps; ++step) {
    real x[APL_SPARSE_STEP];
    for (int j = 0; j < APL_SPARSE_STEP; ++j) x[j] = NUMBER(b[column[j] * call->b_stride]);
    for (int i = 0; i < 8; ++i)
      for (int j = 0; j < APL_SPARSE_STEP; ++j) sum[i][j] += value[i * APL_SPARSE_STEP + j] * x[j];
    column += APL_SPARSE_STEP;
    value += block->height * APL_SPARSE_STEP;
  }
  for (int64_t i = 0; i < 8 && block->position + first + i < t->rows; ++i) {
    real all = 0;
    for (int j = 0; j < APL_SPARSE_STEP; ++j) all += sum[i][j];
    output* c = (output*)call->c + cpu_row_at(t, block->position + first + i) * call->c_stride + task->begin;
    *c = (output)(real)(call->packed->block_adds[index] >> (first + i) & 1 ? (real)*c + all : all);
  }
}

static void APL_SPARSE_NAME(block)(const struct apl_sparse_cpu_call* call, const struct task* task, int64_t index) {
  const struct apl_sparse_tiles* t = call->packed->tiles;
  const struct apl_sparse_block* block = &t->block[index];
  const int32_t* column = t->block_column + block->first_step * APL_SPARSE_STEP;
  const int64_t step_elements = block->height * APL_SPARSE_STEP;
  if (task->count == 1) {
    for (int64_t first = 0; first < block->height; first += 8) APL_SPARSE_NAME(block_vector)(call, task, index, first);
    return;
  }
  for (int64_t first = 0; first < block->height; first += 4) {
    const int64_t left = t->rows - block->position - first, rows = left < 4 ? left : 4;
    if (rows <= 0) break;
    const real* value = (const real*)call->values + block->first_element + first * APL_SPARSE_STEP;
    const uint64_t adds = call->packed->block_adds[index] >> first;
    const element* b = (const element*)call->b + task->begin;
    output* c[4] = {0, 0, 0, 0};
    for (int64_t i = 0; i < rows; ++i)
      c[i] = (output*)call->c + cpu_row_at(t, block->position + first + i) * call->c_stride + task->begin;
    int64_t done = 0;
    for (; task->count - done >= 2 * LANES; done += 2 * LANES) {
      APL_SPARSE_NAME(four_rows)(call, column, value, block->steps, step_elements, b + done, c, adds, rows, 2);
      for (int64_t i = 0; i < rows; ++i) c[i] += 2 * LANES;
    }
    for (; task->count - done >= LANES; done += LANES) {
      APL_SPARSE_NAME(four_rows)(call, column, value, block->steps, step_elements, b + done, c, adds, rows, 1);
      for (int64_t i = 0; i < rows; ++i) c[i] += LANES;
    }
    for (int64_t i = 0; i < rows && done < task->count; ++i) APL_SPARSE_NAME(block_remainder)
    (call, column, value + i * APL_SPARSE_STEP, block->steps, step_elements, b + done, c[i], adds >> i & 1,
     task->count - done);
  }
}

#if defined(APL_SPARSE_WORDS) && defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define APL_SPARSE_FOUR_LANES
#endif
#endif
#include "runtime/sparse/cpu_sddmm.h"
#undef APL_SPARSE_FOUR_LANES

// All tiles of a group: the one traversal of them, for products and SDDMM.
static void APL_SPARSE_NAME(group)(const struct apl_sparse_cpu_call* call, const struct task* task, int64_t group) {
  const struct apl_sparse_cpu_packed* packed = call->packed;
  const struct apl_sparse_tiles* t = packed->tiles;
  const real *ell_value = (const real*)call->values + t->block_elements, *segment_value = ell_value + t->ell_elements;
  for (int64_t k = t->group_block[group]; k < t->group_block[group + 1]; ++k) {
    if (call->sddmm) {
      APL_SPARSE_NAME(sddmm_block)(call, k);
    } else {
      APL_SPARSE_NAME(block)(call, task, k);
    }
  }
  if (task->count == 1 && !call->sddmm) {
    if (call->b_stride == 1) {
      APL_SPARSE_NAME(group_ones)(call, task, group, 1);
    } else {
      APL_SPARSE_NAME(group_ones)(call, task, group, call->b_stride);
    }
  }
  const int rows = task->count > 1 || call->sddmm;
  // Few non-zeros a row: four of them at a time, whatever their rows are.
  const int64_t few = 12;
  const int64_t first_segment_element = packed->stripe_first ? packed->stripe_first[packed->group_stripe[group]] : 0;
  const int64_t segments =
      packed->stripe_first ? packed->stripe_first[packed->group_stripe[group + 1]] - first_segment_element : 0;
  const int are_segments_short =
      call->sddmm && t->segment_row && segments < few * (packed->group_stripe[group + 1] - packed->group_stripe[group]);
  for (int64_t k = t->group_ell[group]; rows && k < t->group_ell[group + 1]; ++k) {
    const struct apl_sparse_ell* tile = &t->ell_tile[k];
    if (call->sddmm && tile->width < few) {
      APL_SPARSE_NAME(sddmm_ell)(call, tile, ell_value + tile->first_element, task->far);
      continue;
    }
    const int64_t end = tile->first_element + (int64_t)tile->ell_rows * tile->width;
    const int ahead = task->far && end + APL_SPARSE_AHEAD <= t->ell_elements;
    for (int64_t list = tile->first_ell_row, at = tile->first_element; at < end; ++list, at += tile->width) {
      if (call->sddmm) {
        int64_t wanted = tile->width;
        while (wanted > 0 && t->ell_source[at + wanted - 1] < 0) --wanted;
        APL_SPARSE_NAME(sddmm_row)
        (call, t->ell_row[list], t->ell_column + at, t->ell_source + at, 0, ell_value + at, wanted,
         task->far ? t->ell_elements - at - 4 : 0);
      } else {
        APL_SPARSE_NAME(row)
        (call, task, t->ell_column + at, ell_value + at, tile->width, packed->ell_target[list], ahead);
      }
    }
  }
  if (are_segments_short) APL_SPARSE_NAME(sddmm_pairs)
  (call, t->segment_row + first_segment_element, t->segment_column + first_segment_element,
   t->segment_source ? t->segment_source + first_segment_element : NULL, first_segment_element,
   segment_value + first_segment_element, segments, task->far ? t->segment_elements - first_segment_element - 8 : 0);
  for (int64_t k = packed->group_stripe[group]; rows && !are_segments_short && k < packed->group_stripe[group + 1];
       ++k) {
    const int64_t at = packed->stripe_first[k], count = packed->stripe_first[k + 1] - at;
    const int32_t target = packed->stripe_target[k];
    if (call->sddmm) {
      APL_SPARSE_NAME(sddmm_row)
      (call, target < 0 ? ~target : target, t->segment_column + at, t->segment_source ? t->segment_source + at : NULL,
       at, segment_value + at, count, task->far ? t->segment_elements - at - 4 : 0);
    } else {
      APL_SPARSE_NAME(row)
      (call, task, t->segment_column + at, segment_value + at, count, target,
       task->far && at + count + APL_SPARSE_AHEAD <= t->segment_elements);
    }
  }
  for (int64_t k = packed->group_clear[group]; !call->sddmm && k < packed->group_clear[group + 1]; ++k)
    memset((output*)call->c + packed->clear[k] * call->c_stride + task->begin, 0, (size_t)task->count * sizeof(output));
}

#undef element
#undef output
#undef NUMBER
#undef real
#undef vector
#undef LANES
#undef EACH
#undef LOAD
#undef LOAD_OUTPUT
#undef STORE_HALVES
#undef STORE
