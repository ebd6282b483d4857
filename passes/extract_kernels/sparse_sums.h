// Sums over sparse operands.
#pragma once

#include "ir/module.h"

namespace apl {

// Reductions inside of maps that read an operand that the entry calls sparse, or what may be sparse like it, are marked
// `#[sparse_sum]`: sparsify makes them sums over a row's non-zeros, which a thread does alone. A function without
// sparse operands is the same.
BodyPtr keep_sparse_sums(const Function& function);

}  // namespace apl
