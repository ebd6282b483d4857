// Results that were computed twice, with sums in f64 and in the program's own types, and what may come of a third way.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/host_value.h"
#include "ir/interpret.h"

namespace apl::suite {

// What the order of additions may change. With n terms of a type that rounds by at most u, the sum of random errors
// grows as sqrt(n) * u; that of the longest and coarsest reduction of a run is kept.
class Rounding {
 public:
  void reduced(ScalarType type, std::int64_t terms);  // for InterpretOptions::reduced
  double relative() const { return relative_; }

 private:
  double relative_ = 0;
};

// Nullopt if `got` may be the result of a program that gives `wide` with sums in f64, and `plain` with sums in their
// own types, one term after the other; else what differs, in words. Values that are the same in both must agree as
// `difference` (values.h) has it. Other arrays of floats may hold what lies between the two, and beyond them by the
// largest of: what `difference` allows; the largest distance between the two in that array; `rounding` times the
// largest number of `wide`.
std::optional<std::string> difference(const std::vector<HostValue>& got, const std::vector<HostValue>& wide,
                                      const std::vector<HostValue>& plain, const Rounding& rounding);

}  // namespace apl::suite
