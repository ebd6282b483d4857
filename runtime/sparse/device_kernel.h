// What the calls of device_operand.h share: element types, a kernel's name and text, a launch.
#ifndef APL_SPARSE_DEVICE_KERNEL_H
#define APL_SPARSE_DEVICE_KERNEL_H

#include "runtime/sparse/device_operand.h"

#ifdef __cplusplus
extern "C" {
#endif

APL_SPARSE_API int64_t apl_sparse_type_size(int32_t type);
// Whether it has 16 bits and sums of 32: what tensor cores multiply here.
APL_SPARSE_API int apl_sparse_is_half(int32_t type);
// The types of results as a kernel writes them, and what its name has behind that of the elements' type.
APL_SPARSE_API const char* apl_sparse_result_type(int32_t type, int32_t is_wide, const char** suffix);
// The type's name in kernels' names, and as kernels write it; null for types without kernels.
APL_SPARSE_API const char* apl_sparse_type_name(int32_t type, const char** written);

APL_SPARSE_API int apl_sparse_fail(struct apl_context* ctx, int status, const char* message);

struct apl_sparse_kernel {
  char name[160];
  char defines[1024];
  size_t length;  // of the defines
  int32_t warp;   // threads of a warp
};
// #define APL_SPARSE_WHAT value
APL_SPARSE_API void apl_sparse_define(struct apl_sparse_kernel* kernel, const char* what, const char* format, ...);
// Compiles the kernel unless it is there. `after`, if any, stands before the last of the parts.
APL_SPARSE_API int apl_sparse_load_kernel(struct apl_context* ctx, const struct apl_sparse_kernel* kernel,
                                          const struct apl_sparse_epilogue* epilogue, const enum apl_sparse_text* parts,
                                          int count);
APL_SPARSE_API int apl_sparse_start(struct apl_context* ctx, const struct apl_sparse_kernel* kernel, int64_t blocks,
                                    int32_t threads, int64_t shared_bytes, void** args, int32_t count);

// Adds up the sums of the pieces of rows, and does with them what is done after the sum.
APL_SPARSE_API int apl_sparse_join(struct apl_context* ctx, const struct apl_sparse_operand* a, void* pieces,
                                   struct apl_sparse_dense c, int64_t width,
                                   const struct apl_sparse_epilogue* epilogue);

// What kernel of SpMM runs, with what numbers.
struct apl_sparse_spmm_choice {
  int32_t elements, lanes, warps;                  // of rows
  int32_t window_elements, flight, split, slices;  // of windows
  int staged, resident, ahead;
  double microseconds;  // by the model
};
// That which takes least by the model. `elements`: of the widest access.
APL_SPARSE_API struct apl_sparse_spmm_choice apl_sparse_choose_spmm(const struct apl_sparse_packed* packed,
                                                                    int32_t type, int32_t elements, int64_t width,
                                                                    const struct apl_sparse_options* options);

// Microseconds, by the model, beyond the launch of a kernel: rows that so many lanes gather, for so many slices of C's
// columns; windows, for columns that have `row_bytes` a row of B; rows that gather from shared memory.
APL_SPARSE_API double apl_sparse_rows_cost(const struct apl_sparse_packed* packed, int32_t type, double row_bytes,
                                           int64_t slices, int32_t lanes, int ahead);
APL_SPARSE_API double apl_sparse_windows_cost(const struct apl_sparse_packed* packed, double row_bytes, int64_t slices,
                                              const struct apl_sparse_spmm_choice* choice);
// Windows without matrix units, for any type.
APL_SPARSE_API double apl_sparse_plain_windows_cost(const struct apl_sparse_packed* packed, int32_t type,
                                                    double row_bytes, int64_t slices,
                                                    const struct apl_sparse_spmm_choice* choice);
// Whether windows of this type go over matrix units, and how many rows they have at most.
APL_SPARSE_API int apl_sparse_has_matrix_units(const struct apl_device* device, int32_t type);
APL_SPARSE_API int32_t apl_sparse_highest_window(const struct apl_device* device, int32_t type);
APL_SPARSE_API double apl_sparse_staged_cost(const struct apl_sparse_packed* packed, int64_t slices, int32_t lanes);

// Which kernels have which rows.
enum apl_sparse_rows_kind { APL_SPARSE_GATHERED, APL_SPARSE_IN_WINDOWS, APL_SPARSE_IN_SEGMENTS };
struct apl_sparse_composition {
  unsigned char* kind;       // of each 32 rows, in this order:
  const int32_t* row_order;  // null: as they are
  int64_t apart;             // rows of so many non-zeros are gathered, wherever they stand
  int64_t segment;           // pieces of the rows in segments are no longer
};
// Whether the rows' part has the row, and the length of its pieces, a multiple of 4, for rows that are cut into pieces
// of at most `piece` (0: none is).
APL_SPARSE_API int apl_sparse_is_gathered(const struct apl_sparse_composition* composition, int64_t position,
                                          int64_t length);
APL_SPARSE_API int64_t apl_sparse_piece(const struct apl_sparse_composition* composition, int64_t position,
                                        int64_t length, int32_t piece);

// Fills in how rows are cut into pieces and classes, or the height of windows, where the options leave it open; gives
// what the product takes by the model.
APL_SPARSE_API double apl_sparse_resolve_rows(const struct apl_sparse_csr* matrix,
                                              const struct apl_sparse_composition* composition,
                                              const struct apl_device* device, int32_t type, int64_t width,
                                              const struct apl_sparse_statistics* statistics,
                                              struct apl_sparse_options* options);
APL_SPARSE_API double apl_sparse_resolve_windows(const struct apl_sparse_csr* matrix, const struct apl_device* device,
                                                 int32_t type, int64_t width,
                                                 const struct apl_sparse_statistics* statistics, int32_t* height);

// What the product takes by the model with the rows in this order (null: as they are), in microseconds, and what it
// looks at, by few of the groups.
APL_SPARSE_API int apl_sparse_time_of_order(const struct apl_sparse_csr* matrix, const int32_t* row_order,
                                            const struct apl_device* device, int32_t type, int64_t width,
                                            struct apl_sparse_statistics* statistics, double* microseconds);

// The widest access, in elements, at which both arrays' rows and their lengths allow it.
APL_SPARSE_API int32_t apl_sparse_widest(int64_t size, const struct apl_sparse_dense* a,
                                         const struct apl_sparse_dense* b, int64_t length);
// The least power of two that is no less than the number, but at most `most`.
APL_SPARSE_API int32_t apl_sparse_power_from(int64_t number, int32_t most);
// What is wrong with the sizes, or null.
APL_SPARSE_API const char* apl_sparse_misfit(int64_t columns, const struct apl_sparse_dense* a,
                                             const struct apl_sparse_dense* b);

#ifdef __cplusplus
}
#endif

#endif
