// What the estimates of device_cost.c depend on, as numbers beside the times that they are fitted to (fit.py).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "runtime/sparse/device_operand.h"

namespace apl::bench {

nlohmann::json shape_of(const apl_sparse_packed& packed);
nlohmann::json shape_of(const apl_sparse_sddmm_packed& samples);

}  // namespace apl::bench
