// Whether a large product is right, without computing it: for any weights of the dims,
//   sum over all i, j of v_i w_j C_ij = sum over q of (sum over i of v_i A_iq) (sum over j of w_j B_qj).
// Elements are small integers, so that floats are exact; weights are random and the sums are modulo 2^64. A wrong
// element is missed once in 2^63 times or so.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/host_value.h"
#include "tests/contractions/spec.h"

namespace apl::contraction_tests {

// f32 arrays of integers from -2 to 2, for a sum of products without views.
std::vector<HostValue> small_integers(const Spec& spec, const testing::Sizes& sizes, std::uint64_t seed);

// Nothing, or what is wrong: one element with its indices, if it is among the sampled ones.
std::optional<std::string> wrong_sum(const Spec& spec, const testing::Sizes& sizes,
                                     const std::vector<HostValue>& inputs, const HostValue& result);

}  // namespace apl::contraction_tests
