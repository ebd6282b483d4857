// The texts of the headers that generated programs include, compiled into the library by cmake/EmbedText.cmake.
#pragma once

#include <string_view>

namespace apl {

std::string_view context_header_text();  // backends/context.h, with the header of plans that it includes
std::string_view scalar_header_text();   // backends/scalar.h, for host files
std::string_view threads_header_text();  // backends/threads.h, for parallel loops on CPUs
std::string_view packed_header_text();   // backends/packed.h, for contractions on CPUs
std::string_view thread_pool_text();     // backends/thread_pool.h, for generated libraries
std::string_view host_blocks_text();     // backends/host_blocks.h, for generated libraries
std::string_view device_header_text();   // device/device.h, for kernels

// For kernels of sparse products (sparse/device_operand.h).
std::string_view device_warp_text();
std::string_view sparse_numbers_text();
std::string_view sparse_rows_text();
std::string_view sparse_windows_text();
std::string_view sparse_staged_text();
std::string_view sparse_spmm_text();
std::string_view sparse_sddmm_text();
std::string_view sparse_values_text();
std::string_view sparse_join_text();
std::string_view sparse_plain_windows_text();
std::string_view sparse_sample_text();

// What generated libraries have in them beside the above (embedded/).
std::string_view cuda_functions_text();
std::string_view cuda_heap_text();
std::string_view cuda_pool_header_text();
std::string_view cuda_pool_text();
std::string_view sparse_csr_header_text();
std::string_view sparse_sparse_header_text();
std::string_view sparse_cpu_header_text();
std::string_view sparse_cpu_types_header_text();
std::string_view sparse_cpu_kernels_header_text();
std::string_view sparse_cpu_sddmm_header_text();
std::string_view sparse_cpu_operands_header_text();
std::string_view sparse_group_code_text();
std::string_view sparse_plan_code_text();
std::string_view sparse_builtin_code_text();
std::string_view sparse_pack_code_text();
std::string_view sparse_cpu_code_text();
std::string_view sparse_cpu_pack_code_text();
std::string_view sparse_cpu_operands_code_text();
std::string_view sparse_device_operand_header_text();
std::string_view sparse_device_kernel_header_text();
std::string_view sparse_operand_arrays_header_text();
std::string_view sparse_device_kernel_code_text();
std::string_view sparse_device_cost_code_text();
std::string_view sparse_device_pack_code_text();
std::string_view sparse_reorder_code_text();
std::string_view sparse_device_resolve_code_text();
std::string_view sparse_device_spmm_code_text();
std::string_view sparse_device_sddmm_code_text();
std::string_view sparse_device_sddmm_pack_code_text();
std::string_view sparse_device_operand_code_text();
std::string_view sparse_known_header_text();
std::string_view sparse_known_code_text();
std::string_view library_known_text();
std::string_view library_api_text();
std::string_view library_api_cuda_text();
std::string_view library_object_text();
std::string_view library_choose_text();
std::string_view library_host_text();
std::string_view library_nvrtc_text();
std::string_view library_products_text();
std::string_view library_cuda_text();
std::string_view library_cuda_context_text();
std::string_view library_context_text();
std::string_view library_values_text();
std::string_view library_items_text();
std::string_view library_sums_text();
std::string_view library_sparse_values_text();
std::string_view library_sparse_plan_text();
std::string_view library_store_text();
std::string_view library_text_text();
std::string_view library_matrix_text();
std::string_view library_options_text();
std::string_view library_executable_text();
std::string_view library_server_state_text();
std::string_view library_server_values_text();
std::string_view library_server_text();

}  // namespace apl
