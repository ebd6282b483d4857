#include "bench/sparse_gpu/variants.h"

#include <fmt/format.h>

#include <algorithm>

namespace apl::bench {

std::vector<PackedVariant> spmm_variants(const sparse::Csr& matrix, int highest_window) {
  std::vector<PackedVariant> all;
  const bool is_large = matrix.nonzeros() > 3'000'000;
  struct Classes {
    int warp_row, block_row, sorted;
  };
  for (const Classes& c : {Classes{8, 24, 1}, {8, 48, 1}, {8, 96, 1}, {24, 256, 1}, {24, 256, -1}, {32, 512, -1}}) {
    if (is_large && c.block_row < 256) continue;
    PackedVariant packed;
    packed.options = {
        .window = -1, .warp_row = c.warp_row, .block_row = c.block_row, .piece = -1, .sorted = c.sorted, .staged = -1};
    for (const int lanes : {4, 8, 16}) {
      apl_sparse_options options = packed.options;
      options.lanes = lanes;
      packed.variants.push_back(
          {fmt::format("rows {}/{}{} lanes {}", c.warp_row, c.block_row, c.sorted > 0 ? " sorted" : "", lanes),
           options});
    }
    apl_sparse_options options = packed.options;
    options.lanes = 16;
    options.ahead = 1;
    packed.variants.push_back(
        {fmt::format("rows {}/{}{} lanes 16 ahead", c.warp_row, c.block_row, c.sorted > 0 ? " sorted" : ""), options});
    options.ahead = 0;
    options.resident = 6;
    packed.variants.push_back(
        {fmt::format("rows {}/{}{} lanes 16 resident 6", c.warp_row, c.block_row, c.sorted > 0 ? " sorted" : ""),
         options});
    all.push_back(std::move(packed));
  }
  std::int64_t longest = 0;
  for (std::int64_t row = 0; row < matrix.rows; ++row) longest = std::max(longest, matrix.length(row));
  for (const int piece : {256, 512, 1024, 2048, 4096}) {
    if (longest <= piece) continue;
    for (const Classes& c : {Classes{8, 48, 1}, Classes{24, 256, 1}}) {
      PackedVariant packed;
      packed.options = {.window = -1, .warp_row = c.warp_row, .block_row = c.block_row, .piece = piece, .sorted = 1};
      packed.variants.push_back(
          {fmt::format("rows {}/{} pieces of {}", c.warp_row, c.block_row, piece), packed.options});
      all.push_back(std::move(packed));
    }
  }
  if (matrix.columns <= 1600) {
    PackedVariant packed;
    packed.options = {.window = -1, .piece = -1, .staged = 1};
    packed.variants.push_back({"staged", packed.options});
    all.push_back(std::move(packed));
  }
  for (const int window : {8, 16, 32}) {
    if (window > highest_window) break;
    PackedVariant packed;
    packed.options = {.window = window};
    for (const int split : {1, 2, 4, 8})
      for (const int slices : {1, 2}) {
        if (is_large && split * slices > 2) continue;
        if (split == 8 && slices == 2) continue;
        apl_sparse_options options = packed.options;
        options.split = split;
        options.slices = slices;
        packed.variants.push_back({fmt::format("windows of {} split {} slices {}", window, split, slices), options});
        if (window != 32 || split * slices > 2) continue;
        options.resident = 4;
        packed.variants.push_back({fmt::format("windows of 32 split {} slices {} resident 4", split, slices), options});
      }
    all.push_back(std::move(packed));
  }
  return all;
}

std::vector<Variant> sddmm_variants(bool has_windows) {
  std::vector<Variant> all{{"list", {.window = -1}}};
  if (!has_windows) return all;
  for (const int task : {2, 8, 32})
    all.push_back({fmt::format("windows, tasks of {}", task), {.window = 8, .task = task}});
  return all;
}

}  // namespace apl::bench
