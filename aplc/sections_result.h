// What `aplc sections` says of what it measured: a table, the choice, JSON.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "aplc/sections_search.h"
#include "aplc/sections_tiles.h"

namespace aplc {

struct SectionsResult {
  std::vector<MeasuredTile> all;        // the fastest proxy first
  std::optional<double> sparse, dense;  // microseconds of the kernels of any sparse operand, and of the dense product
  std::size_t finalists = 1;            // of so many proxies the kernels are compiled
  std::size_t tile_space = 0;           // tiles whose code was estimated
  double proxy_seconds = 0, seconds = 0;

  // Nothing if no kernel was measured.
  std::optional<double> constant() const { return best_of(all).real; }
  enum class Choice { none, constant, sparse, dense };
  Choice choice() const;
};

// Whether all kernels were measured, which says how well proxies rank them; and whether they are a GPU's.
struct SectionsShown {
  bool exhaustive = false, on_device = false;
};

void print_result(const SectionsResult& result, const SectionsSearch& search, const SectionsShown& shown);
// Adds to what says what was measured.
void add_result(nlohmann::ordered_json& json, const SectionsResult& result, const SectionsSearch& search,
                const SectionsShown& shown);

}  // namespace aplc
