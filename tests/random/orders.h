// Random pipelines: what a user may write with `--pipeline` and `--disable`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace apl::random_tests {

// Passes with options, each of which takes the stage that those before it leave. Most begin with inline, and end at the
// memory stage, with passes after place-memory.
std::vector<std::string> random_order(std::uint64_t seed);

// Passes of the standard pipeline without which it is still one that can be run.
std::vector<std::string> random_disabled(std::uint64_t seed);

}  // namespace apl::random_tests
