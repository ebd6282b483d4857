// What each part of the tiled form is worth, and what one set of numbers loses against the best for each instance.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace apl::bench {

struct AblationOptions {
  std::string backend, examples;
  bool small = false;
  int runs = 5;
};

// Prints a table each and adds them to `all`; false if something could not be measured.
bool run_ablation(const AblationOptions& options, nlohmann::ordered_json& all);
bool run_parameter_sets(const AblationOptions& options, nlohmann::ordered_json& all);

// Products of matrices tiled, split, not tiled, and as the model chooses.
bool run_variants(const AblationOptions& options, nlohmann::ordered_json& all);

// Times around calls: source to text of a rank-12 contraction; the first call, from a cache, with new sizes.
bool run_calls(const AblationOptions& options, nlohmann::ordered_json& all);

}  // namespace apl::bench
