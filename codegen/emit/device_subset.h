// The part of device.h that some kernels use.
#pragma once

#include <string>
#include <string_view>

#include "machine/target/target.h"

namespace apl {

// The definitions of `header`, as the dialect's compiler sees them, that `text` needs, in their order and with their
// comments.
std::string device_subset(std::string_view header, std::string_view text, const Dialect& dialect);

}  // namespace apl
