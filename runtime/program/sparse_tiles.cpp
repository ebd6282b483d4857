#include "runtime/program/sparse_tiles.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/sparse/csr_view.h"

namespace apl::program {
namespace {

using TilesPointer = std::unique_ptr<apl_sparse_tiles, decltype(&apl_sparse_tiles_free)>;

Diagnostic no_tiles(int status) {
  return status == APL_SPARSE_OUT_OF_MEMORY
             ? make_error(Code::run_out_of_memory, {}, "out of memory for the tiles of a sparse operand")
             : make_error(Code::run_argument, {}, "the plan makes no tiles of the sparse operand");
}

template <class T>
std::vector<T> taken_from(const T* data, std::int64_t count) {
  return count == 0 ? std::vector<T>() : std::vector<T>(data, data + count);
}

// Steps of blocks become blocks of their own; where a block ends beyond the matrix, there is no row.
void add_blocks(const apl_sparse_tiles& tiles, HostTiles& made) {
  made.block_column = taken_from(tiles.block_column, tiles.steps * APL_SPARSE_STEP);
  made.block_source = taken_from(tiles.block_source, tiles.block_elements);
  for (std::int64_t k = 0; k < tiles.blocks; ++k) {
    const apl_sparse_block& block = tiles.block[k];
    for (std::int64_t step = 0; step < block.steps; ++step)
      for (std::int64_t i = 0; i < block.height; ++i) {
        const std::int64_t position = block.position + i;
        const bool is_there = position < tiles.rows;
        const auto row = static_cast<std::int32_t>(tiles.row_order && is_there ? tiles.row_order[position] : position);
        made.block_row.push_back(is_there ? row : -1);
        made.block_step.push_back(static_cast<std::int32_t>(block.first_step + step));
      }
  }
}

void add_ell(const apl_sparse_tiles& tiles, HostTiles& made) {
  made.ell_row = taken_from(tiles.ell_row, tiles.ell_rows);
  made.ell_column = taken_from(tiles.ell_column, tiles.ell_elements);
  made.ell_source = taken_from(tiles.ell_source, tiles.ell_elements);
  for (std::int64_t k = 0; k < tiles.ell_tiles; ++k)
    for (std::int32_t ell_row = 0; ell_row < tiles.ell_tile[k].ell_rows; ++ell_row)
      made.ell_start.push_back(made.ell_start.back() + tiles.ell_tile[k].width);
}

void add_segments(const apl_sparse_tiles& tiles, HostTiles& made) {
  made.segment_column = taken_from(tiles.segment_column, tiles.segment_elements);
  made.segment_source = taken_from(tiles.segment_source, tiles.segment_elements);
  for (std::int64_t k = 0; k < tiles.segments; ++k) {
    const std::int64_t first = tiles.segment[k].first, last = first + tiles.segment[k].count;
    for (std::int64_t n = first; n < last; ++n) {
      if (n + 1 < last && tiles.segment_row[n + 1] == tiles.segment_row[n]) continue;
      made.segment_row.push_back(tiles.segment_row[n]);
      made.segment_start.push_back(n + 1);
    }
  }
}

}  // namespace

Result<HostTiles> pack_tiles(const HostCsr& matrix, const apl_sparse_plan* plan) {
  const apl_sparse_csr rows = csr_view(matrix);
  std::unique_ptr<apl_sparse_plan, decltype(&apl_sparse_plan_free)> builtin(nullptr, apl_sparse_plan_free);
  if (plan == nullptr) {
    apl_sparse_plan* made = nullptr;
    if (const int status = apl_sparse_plan_builtin(&rows, &made); status != APL_SPARSE_FINE) return no_tiles(status);
    builtin.reset(made);
    plan = made;
  }
  apl_sparse_tiles* packed = nullptr;
  if (const int status = apl_sparse_pack(&rows, plan, &packed); status != APL_SPARSE_FINE) return no_tiles(status);
  const TilesPointer tiles(packed, apl_sparse_tiles_free);
  HostTiles made;
  add_blocks(*tiles, made);
  add_ell(*tiles, made);
  add_segments(*tiles, made);
  return made;
}

TileMaker tile_maker(std::vector<GivenPlan> plans, std::function<void(const PlanUse&)> see) {
  return [plans = std::move(plans), see = std::move(see)](const std::string& operand, const HostCsr& matrix,
                                                          const std::vector<SoaField>& fields) -> Result<HostTiles> {
    auto fitting = plans_for(plans, operand, csr_view(matrix));
    if (!fitting) return std::move(fitting).error();
    // Tiles of both kinds of products are those of the sums.
    const bool sddmm = std::ranges::find(fields, SoaField::ell_row) == fields.end();
    const GivenPlan* chosen = nullptr;
    for (const GivenPlan* given : *fitting) {
      PlanUse use{given, false, {}};
      if (given->plan->dense) {
        use.why = "it says `form dense`, and this program was compiled for tiles";
      } else if ((given->plan->sddmm != 0) != sddmm) {
        use.why = fmt::format("it is for operator {}, the program multiplies `{}` by {}", sddmm ? "spmm" : "sddmm",
                              operand, sddmm ? "sddmm" : "spmm");
      } else if (chosen != nullptr) {
        use.why = fmt::format("plan {} is taken", chosen->source);
      } else {
        chosen = given;
        continue;
      }
      if (see) see(use);
    }
    auto made = pack_tiles(matrix, chosen ? chosen->plan.get() : nullptr);
    if (made && chosen && see)
      see({chosen, true,
           fmt::format("its tiles: {} rows of blocks, {} ELL rows and {} rows of nnz segments", made->block_row.size(),
                       made->ell_row.size(), made->segment_row.size())});
    return made;
  };
}

}  // namespace apl::program
