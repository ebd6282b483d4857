// The texts of the headers that generated programs include, compiled into the library by cmake/EmbedText.cmake.
#pragma once

#include <string_view>

namespace apl {

std::string_view context_header_text();  // context.h
std::string_view scalar_header_text();   // scalar.h, for host files
std::string_view device_header_text();   // device.h, for kernels
std::string_view plan_header_text();     // plan_select.h, which context.h includes

// For kernels of sparse products (sparse/device_form.h).
std::string_view device_warp_text();
std::string_view sparse_numbers_text();
std::string_view sparse_rows_text();
std::string_view sparse_windows_text();
std::string_view sparse_staged_text();
std::string_view sparse_spmm_text();
std::string_view sparse_sddmm_text();
std::string_view sparse_values_text();

// Device records (devices.h).
std::string_view device_a100_text();
std::string_view device_h100_text();
std::string_view device_h200_text();
std::string_view device_gpu_text();
std::string_view device_cpu_text();

}  // namespace apl
