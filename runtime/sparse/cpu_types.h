// Kernels for one instruction set, with vectors of APL_SPARSE_VECTOR bytes; APL_SPARSE_SET(name) names them.
// APL_SPARSE_FLOATS: of floating-point types alone. APL_SPARSE_WANTS_F32 and the others: whether there are any of this
// type.
#if APL_SPARSE_WANTS_F32
#define APL_SPARSE_NAME(name) APL_SPARSE_SET(name##_f32)
#define APL_SPARSE_WORDS
#define APL_SPARSE_ELEMENT float
#define APL_SPARSE_REAL float
#include "runtime/sparse/cpu_kernels.h"
#undef APL_SPARSE_NAME
#undef APL_SPARSE_ELEMENT
#undef APL_SPARSE_REAL
#undef APL_SPARSE_WORDS
#endif

#if APL_SPARSE_WANTS_F64
#define APL_SPARSE_NAME(name) APL_SPARSE_SET(name##_f64)
#define APL_SPARSE_ELEMENT double
#define APL_SPARSE_REAL double
#include "runtime/sparse/cpu_kernels.h"
#undef APL_SPARSE_NAME
#undef APL_SPARSE_ELEMENT
#undef APL_SPARSE_REAL
#endif

#ifdef __FLT16_MAX__
__extension__ typedef _Float16 apl_sparse_half;  // no type of ISO C
#endif

#ifdef __FLT16_MAX__
#if APL_SPARSE_WANTS_F16
#define APL_SPARSE_NAME(name) APL_SPARSE_SET(name##_f16)
#define APL_SPARSE_WORDS
#define APL_SPARSE_ELEMENT apl_sparse_half
#define APL_SPARSE_REAL float
#define APL_SPARSE_HALVES
#include "runtime/sparse/cpu_kernels.h"
#undef APL_SPARSE_NAME
#undef APL_SPARSE_ELEMENT
#undef APL_SPARSE_REAL
#undef APL_SPARSE_WORDS
#undef APL_SPARSE_HALVES
#endif
#endif

#ifdef __FLT16_MAX__
#if APL_SPARSE_WANTS_F16_WIDE
#define APL_SPARSE_NAME(name) APL_SPARSE_SET(name##_f16_wide)
#define APL_SPARSE_WORDS
#define APL_SPARSE_ELEMENT apl_sparse_half
#define APL_SPARSE_REAL float
#define APL_SPARSE_RESULT float
#define APL_SPARSE_HALVES
#include "runtime/sparse/cpu_kernels.h"
#undef APL_SPARSE_NAME
#undef APL_SPARSE_ELEMENT
#undef APL_SPARSE_REAL
#undef APL_SPARSE_RESULT
#undef APL_SPARSE_WORDS
#undef APL_SPARSE_HALVES
#endif
#endif

#if APL_SPARSE_WANTS_BF16_WIDE
#define APL_SPARSE_NAME(name) APL_SPARSE_SET(name##_bf16_wide)
#define APL_SPARSE_WORDS
#define APL_SPARSE_ELEMENT uint16_t
#define APL_SPARSE_REAL float
#define APL_SPARSE_RESULT float
#define APL_SPARSE_BFLOATS
#include "runtime/sparse/cpu_kernels.h"
#undef APL_SPARSE_NAME
#undef APL_SPARSE_ELEMENT
#undef APL_SPARSE_REAL
#undef APL_SPARSE_RESULT
#undef APL_SPARSE_WORDS
#undef APL_SPARSE_BFLOATS
#endif

#ifndef APL_SPARSE_FLOATS
// Unsigned: they wrap. Products of narrow types are made in int, and cut off again.
#if APL_SPARSE_WANTS_I8
#define APL_SPARSE_NAME(name) APL_SPARSE_SET(name##_i8)
#define APL_SPARSE_ELEMENT uint8_t
#define APL_SPARSE_REAL uint8_t
#include "runtime/sparse/cpu_kernels.h"
#undef APL_SPARSE_NAME
#undef APL_SPARSE_ELEMENT
#undef APL_SPARSE_REAL
#endif

#if APL_SPARSE_WANTS_I16
#define APL_SPARSE_NAME(name) APL_SPARSE_SET(name##_i16)
#define APL_SPARSE_ELEMENT uint16_t
#define APL_SPARSE_REAL uint16_t
#include "runtime/sparse/cpu_kernels.h"
#undef APL_SPARSE_NAME
#undef APL_SPARSE_ELEMENT
#undef APL_SPARSE_REAL
#endif

#if APL_SPARSE_WANTS_I32
#define APL_SPARSE_NAME(name) APL_SPARSE_SET(name##_i32)
#define APL_SPARSE_WORDS
#define APL_SPARSE_ELEMENT uint32_t
#define APL_SPARSE_REAL uint32_t
#include "runtime/sparse/cpu_kernels.h"
#undef APL_SPARSE_NAME
#undef APL_SPARSE_ELEMENT
#undef APL_SPARSE_REAL
#undef APL_SPARSE_WORDS
#endif

#if APL_SPARSE_WANTS_I64
#define APL_SPARSE_NAME(name) APL_SPARSE_SET(name##_i64)
#define APL_SPARSE_ELEMENT uint64_t
#define APL_SPARSE_REAL uint64_t
#include "runtime/sparse/cpu_kernels.h"
#undef APL_SPARSE_NAME
#undef APL_SPARSE_ELEMENT
#undef APL_SPARSE_REAL
#endif

#endif

static group_function* const APL_SPARSE_SET(groups)[APL_SPARSE_TYPES] = {
#if APL_SPARSE_WANTS_F32
    [APL_SPARSE_F32] = APL_SPARSE_SET(group_f32),
#endif
#if APL_SPARSE_WANTS_F64
    [APL_SPARSE_F64] = APL_SPARSE_SET(group_f64),
#endif
#ifdef __FLT16_MAX__
#if APL_SPARSE_WANTS_F16
    [APL_SPARSE_F16] = APL_SPARSE_SET(group_f16),
#endif
#if APL_SPARSE_WANTS_F16_WIDE
    [APL_SPARSE_F16_WIDE] = APL_SPARSE_SET(group_f16_wide),
#endif
#endif
#if APL_SPARSE_WANTS_BF16_WIDE
    [APL_SPARSE_BF16_WIDE] = APL_SPARSE_SET(group_bf16_wide),
#endif
#ifndef APL_SPARSE_FLOATS
#if APL_SPARSE_WANTS_I8
    [APL_SPARSE_I8] = APL_SPARSE_SET(group_i8),
#endif
#if APL_SPARSE_WANTS_I16
    [APL_SPARSE_I16] = APL_SPARSE_SET(group_i16),
#endif
#if APL_SPARSE_WANTS_I32
    [APL_SPARSE_I32] = APL_SPARSE_SET(group_i32),
#endif
#if APL_SPARSE_WANTS_I64
    [APL_SPARSE_I64] = APL_SPARSE_SET(group_i64),
#endif
#endif
};

#undef APL_SPARSE_SET
#undef APL_SPARSE_VECTOR
#undef APL_SPARSE_FLOATS
