// The non-zeros of 64 rows by column, and the tiles that selections make of them. runtime/sparse/pack.c makes
// the same tiles for real.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "passes/sparse/cost.h"
#include "passes/sparse/matrix.h"

namespace apl::sparse {

constexpr std::int64_t kGroupRows = 64, kStepColumns = 16;

// Of window number `window` of `height` rows, the columns with at least `threshold` non-zeros that nobody took before.
struct Selection {
  std::uint8_t height = 8, window = 0, threshold = 1;

  int offset() const { return height * window; }
  std::uint64_t rows() const {
    return (height == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << height) - 1) << offset();
  }
  bool operator==(const Selection&) const = default;
};

// The formats that a plan may use.
struct CoverFormats {
  bool block = true, ell = true, segment = true;
};

// How what the selections leave is stored.
struct RemainderShape {
  std::vector<std::int64_t> widths;  // of ELL rows
  std::int64_t ell_elements = 1024, segment_length = 128;
};
enum class Remainder : std::uint8_t { ell, segment };

struct RowGroup {
  std::vector<std::int32_t> column;
  std::vector<std::uint64_t> rows;  // of each column
  std::int64_t entries = 0;

  // `order`: the row at each position; empty: as they are.
  void read(const Csr& matrix, const std::vector<std::int32_t>& order, std::int64_t index);

 private:
  std::vector<std::uint64_t> key_, other_;
};

// Makes shapes of tiles; keeps its memory from group to group.
class GroupTiles {
 public:
  GroupTiles(const RemainderShape& remainder, std::int64_t columns)
      : remainder_(remainder), stamp_(static_cast<std::size_t>(columns), 0) {}

  // Appends the shapes of the tiles; selections that take nothing are removed.
  void append(const RowGroup& group, std::vector<Selection>& selections, Remainder remainder,
              std::vector<TileShape>& shapes);

 private:
  struct Tile {
    TileShape shape;
    std::uint64_t rows = 0;
  };

  void select(const RowGroup& group, std::vector<Selection>& selections);
  void gather_remainder(const RowGroup& group);
  void make_ell();
  void make_segments();
  std::int64_t distinct(std::int64_t first, std::int64_t count);

  const RemainderShape& remainder_;
  std::vector<std::uint64_t> left_;
  std::vector<Tile> tiles_;
  std::vector<std::int32_t> remainder_column_;
  std::array<std::int64_t, kGroupRows + 1> row_first_{};
  std::vector<std::uint32_t> stamp_;
  std::uint32_t now_ = 0;
};

// The smallest width that holds so many; the last for rows that are cut.
inline std::size_t width_for(const std::vector<std::int64_t>& widths, std::int64_t count) {
  std::size_t index = 0;
  while (index + 1 < widths.size() && widths[index] < count) ++index;
  return index;
}

}  // namespace apl::sparse
