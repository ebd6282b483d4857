// Kernels for one instruction set, with vectors of APL_SPARSE_VECTOR bytes; APL_SPARSE_SET(name) names them.
// APL_SPARSE_FLOATS: of floating-point types alone.
#define APL_SPARSE_NAME(name) APL_SPARSE_SET(name##_f32)
#define APL_SPARSE_ELEMENT float
#define APL_SPARSE_REAL float
#include "codegen/runtime/sparse/cpu_kernels.h"
#undef APL_SPARSE_NAME
#undef APL_SPARSE_ELEMENT
#undef APL_SPARSE_REAL

#define APL_SPARSE_NAME(name) APL_SPARSE_SET(name##_f64)
#define APL_SPARSE_ELEMENT double
#define APL_SPARSE_REAL double
#include "codegen/runtime/sparse/cpu_kernels.h"
#undef APL_SPARSE_NAME
#undef APL_SPARSE_ELEMENT
#undef APL_SPARSE_REAL

#ifdef __FLT16_MAX__
#define APL_SPARSE_NAME(name) APL_SPARSE_SET(name##_f16)
#define APL_SPARSE_ELEMENT _Float16
#define APL_SPARSE_REAL float
#define APL_SPARSE_HALVES
#include "codegen/runtime/sparse/cpu_kernels.h"
#undef APL_SPARSE_NAME
#undef APL_SPARSE_ELEMENT
#undef APL_SPARSE_REAL
#undef APL_SPARSE_HALVES
#endif

#ifndef APL_SPARSE_FLOATS
// Unsigned: they wrap. Products of narrow types are made in int, and cut off again.
#define APL_SPARSE_NAME(name) APL_SPARSE_SET(name##_i8)
#define APL_SPARSE_ELEMENT uint8_t
#define APL_SPARSE_REAL uint8_t
#include "codegen/runtime/sparse/cpu_kernels.h"
#undef APL_SPARSE_NAME
#undef APL_SPARSE_ELEMENT
#undef APL_SPARSE_REAL

#define APL_SPARSE_NAME(name) APL_SPARSE_SET(name##_i16)
#define APL_SPARSE_ELEMENT uint16_t
#define APL_SPARSE_REAL uint16_t
#include "codegen/runtime/sparse/cpu_kernels.h"
#undef APL_SPARSE_NAME
#undef APL_SPARSE_ELEMENT
#undef APL_SPARSE_REAL

#define APL_SPARSE_NAME(name) APL_SPARSE_SET(name##_i32)
#define APL_SPARSE_ELEMENT uint32_t
#define APL_SPARSE_REAL uint32_t
#include "codegen/runtime/sparse/cpu_kernels.h"
#undef APL_SPARSE_NAME
#undef APL_SPARSE_ELEMENT
#undef APL_SPARSE_REAL

#define APL_SPARSE_NAME(name) APL_SPARSE_SET(name##_i64)
#define APL_SPARSE_ELEMENT uint64_t
#define APL_SPARSE_REAL uint64_t
#include "codegen/runtime/sparse/cpu_kernels.h"
#undef APL_SPARSE_NAME
#undef APL_SPARSE_ELEMENT
#undef APL_SPARSE_REAL

#endif

static group_function* const APL_SPARSE_SET(groups)[APL_SPARSE_TYPES] = {
    [APL_SPARSE_F32] = APL_SPARSE_SET(group_f32), [APL_SPARSE_F64] = APL_SPARSE_SET(group_f64),
#ifdef __FLT16_MAX__
    [APL_SPARSE_F16] = APL_SPARSE_SET(group_f16),
#endif
#ifndef APL_SPARSE_FLOATS
    [APL_SPARSE_I8] = APL_SPARSE_SET(group_i8),   [APL_SPARSE_I16] = APL_SPARSE_SET(group_i16),
    [APL_SPARSE_I32] = APL_SPARSE_SET(group_i32), [APL_SPARSE_I64] = APL_SPARSE_SET(group_i64),
#endif
};

#undef APL_SPARSE_SET
#undef APL_SPARSE_VECTOR
#undef APL_SPARSE_FLOATS
