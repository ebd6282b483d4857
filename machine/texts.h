// Texts of this folder, compiled into the library by cmake/EmbedText.cmake.
#pragma once

#include <string_view>

namespace apl {

// The model of tiles (tiles/), which generated libraries have in them.
std::string_view plan_shape_header_text();
std::string_view plan_shape_text();
std::string_view plan_cost_text();
std::string_view plan_enumerate_text();
std::string_view plan_select_text();
std::string_view plan_variant_text();
std::string_view plan_device_text();

// Records of machines (target/records/).
std::string_view device_a100_text();
std::string_view device_h100_text();
std::string_view device_h200_text();
std::string_view device_mi300_text();
std::string_view device_gfx1100_text();
std::string_view device_gpu_text();
std::string_view device_cpu_text();

}  // namespace apl
