// Folds over pairs: reductions inside a map whose elements are made of what belongs to the map's index and of what
// belongs to the reduction's, as the distances of all pairs of points.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/module.h"
#include "passes/extract_kernels/segment_order.h"

namespace apl {

// A map in one kernel at block level, and when that pays.
struct TiledFold {
  std::vector<Stm> before;  // of the host: the condition and what it needs
  Value pays;
  std::vector<Stm> kernel;
  std::vector<Value> results;
  Poly queries, keys;
  std::vector<std::string> reused;  // arrays whose elements are used by several queries
};

// `flat`: a map without inputs (flatten). nullopt: its lambda is not one reduction of scalars with operators that
// commute between code of scalars; or what it reads for each element belongs to one index of the map alone, so that
// nothing is used again; or something can fail. `prefix` begins the names of tuning parameters.
std::optional<TiledFold> tile_fold(const Stm& flat, const HostViews& views, const std::string& prefix,
                                   ValueTable& values);

}  // namespace apl
