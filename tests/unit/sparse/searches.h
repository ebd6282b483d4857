// What tests of the search search with.
#pragma once

#include "passes/sparse/search.h"

namespace apl::sparse_test {

// A device on which launching costs nothing and the dense product everything, so that tiles decide.
inline sparse::Profile tile_profile(int workers) {
  sparse::Profile profile = *sparse::builtin_profile("h200");
  profile.launch = 0;
  profile.workers = workers;
  profile.dense_launch = 1e12;
  return profile;
}

inline sparse::SearchOptions options_for(sparse::Operator op, std::int64_t dense) {
  sparse::SearchOptions options;
  options.problem = {op, dense, 2};
  options.threads = 2;
  return options;
}

}  // namespace apl::sparse_test
