// The tiles that `aplc sections` tries, and what came out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "aplc/sections_device.h"
#include "ir/csr.h"
#include "ir/diagnostic.h"

namespace aplc {

struct MeasuredTile {
  Tile tile;
  std::optional<double> proxy, real;  // microseconds
  double code_bytes = 0;              // that a multiprocessor fetches, as estimated; 0 on a CPU
};

// Tiles worth a thought. On a CPU the sums of a strip must stay in registers (32 vectors of 64 bytes, of which some are
// for operands); on a GPU a block has at most 1024 threads and 48 KB of partial sums.
std::vector<Tile> tile_space(bool on_host, std::int64_t width, std::int64_t bytes);
// Those that were asked for, as `6,128,3`.
apl::Result<std::vector<Tile>> read_tiles(const std::vector<std::string>& texts);
// Takes away those whose code is over twice as long, for a multiprocessor, as the least of all: what is fetched
// decides, and no tile of that length was near the best. The bytes of each that was there.
std::map<Tile, double> prune(std::vector<Tile>& tiles, const apl::HostCsr& matrix, std::int64_t width,
                             const apl_device& device, bool keeps_all);

// Spearman's correlation of ranks.
double spearman(const std::vector<double>& x, const std::vector<double>& y);
// Proxies and kernels as points.
std::string scatter_svg(const std::vector<MeasuredTile>& all);
// The tile whose kernel is the fastest, of those that were measured; else the one whose proxy is, which is the first.
const MeasuredTile& best_of(const std::vector<MeasuredTile>& all);

}  // namespace aplc
