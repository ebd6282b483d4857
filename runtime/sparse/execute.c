// What tiles mean: products over the tiles as plain loops, one after the other. Compiled kernels are held against
// it.
#include "runtime/sparse/sparse.h"

#define real float
#define APL_SPARSE_NAME(name) name##_f32
#include "runtime/sparse/execute_type.h"
#undef APL_SPARSE_NAME
#undef real

#define real double
#define APL_SPARSE_NAME(name) name##_f64
#include "runtime/sparse/execute_type.h"
#undef APL_SPARSE_NAME
#undef real
