// What lower_core.cpp knows of a block-level contraction that it has a fast form for.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/op.h"

namespace apl::lower {

// One side of the contraction: a dim of the space, shared out among the threads of a block.
struct CoreSide {
  std::size_t dim = 0;
  std::int64_t extent = 0;                      // rows of a tile
  std::int64_t warps = 1, lanes = 1, each = 1;  // their product: warps, threads of a warp, rows of a thread
  std::int64_t vector = 1;                      // neighbouring rows of a thread
  int last_axis = 0;                            // the innermost of the result's axes in it
  std::string warp_first, first;                // variables: where the warp's rows begin, and the thread's
  std::string results;                          // table: where rows lie in the result, -1 for nowhere
};

// A tile in shared memory: rows of one side, one behind the other for every step of the depth.
struct CoreTile {
  ScalarType element{};
  std::vector<int> axes;                  // as the operand's
  std::size_t side = 0, row_axis = 0;     // the axis of the rows
  Poly stride;                            // of rows in the source, or
  std::vector<TileGuard::Part> split;     // of the dims that are flattened into them
  bool by_depth = false, by_row = false;  // what is contiguous in the source
  bool swizzled = false;
  std::string rows;  // table: where rows lie in the source
};

struct Core {
  std::array<CoreSide, 2> sides;  // slow, fast
  std::int64_t threads = 0, registers = 0, stages = 1;
  std::size_t space_rank = 0;
  std::size_t inner_depth = 0;                    // the innermost dim of the depth
  std::map<Value, CoreTile> tiles;                // by block
  std::map<Value, Value> copied;                  // the block that a copy fills, by what it gives
  std::map<std::string, std::string> alignments;  // variables for conditions
  std::string thread, lane;
  std::int64_t staging = 0;  // bytes before the tiles
};

}  // namespace apl::lower
