#include "passes/sparse/row_group.h"

#include <algorithm>
#include <bit>

#include "passes/sparse/bits.h"

namespace apl::sparse {

void RowGroup::read(const Csr& matrix, const std::vector<std::int32_t>& order, std::int64_t index) {
  key_.clear();
  const std::int64_t begin = index * kGroupRows, end = std::min(begin + kGroupRows, matrix.rows);
  for (std::int64_t position = begin; position < end; ++position) {
    const std::int64_t row = order.empty() ? position : order[static_cast<std::size_t>(position)];
    for (const std::int32_t c : matrix.row(row))
      key_.push_back(static_cast<std::uint64_t>(c) << 6 | static_cast<std::uint64_t>(position - begin));
  }
  entries = static_cast<std::int64_t>(key_.size());
  if (entries < 1024) {
    std::sort(key_.begin(), key_.end());
  } else {
    constexpr int kDigit = 11;
    const int bits = std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(matrix.columns - 1, 0)));
    other_.resize(key_.size());
    for (int shift = 6; shift < 6 + bits; shift += kDigit) {
      std::array<std::int64_t, 1 << kDigit> next{};
      for (const std::uint64_t key : key_) ++next[key >> shift & (next.size() - 1)];
      std::int64_t sum = 0;
      for (std::int64_t& n : next) sum += std::exchange(n, sum);
      for (const std::uint64_t key : key_)
        other_[static_cast<std::size_t>(next[key >> shift & (next.size() - 1)]++)] = key;
      key_.swap(other_);
    }
  }
  column.clear();
  rows.clear();
  for (const std::uint64_t key : key_) {
    const auto c = static_cast<std::int32_t>(key >> 6);
    if (column.empty() || column.back() != c) {
      column.push_back(c);
      rows.push_back(0);
    }
    rows.back() |= std::uint64_t{1} << (key & 63);
  }
}

void GroupTiles::append(const RowGroup& group, std::vector<Selection>& selections, Remainder remainder,
                        std::vector<TileShape>& shapes) {
  tiles_.clear();
  select(group, selections);
  gather_remainder(group);
  if (!remainder_column_.empty()) remainder == Remainder::ell ? make_ell() : make_segments();
  std::uint64_t once = 0, twice = 0;
  for (const Tile& tile : tiles_) {
    twice |= once & tile.rows;
    once |= tile.rows;
  }
  for (Tile& tile : tiles_) {
    tile.shape.shared = tile.shape.shared || (tile.rows & twice) != 0;
    shapes.push_back(tile.shape);
  }
}

void GroupTiles::select(const RowGroup& group, std::vector<Selection>& selections) {
  left_ = group.rows;
  std::erase_if(selections, [&](const Selection& selection) {
    const std::uint64_t window = selection.rows();
    std::int64_t taken = 0;
    for (std::uint64_t& left : left_) {
      if (count_bits(left & window) < selection.threshold) continue;
      left &= ~window;
      ++taken;
    }
    if (taken == 0) return true;
    const std::int64_t steps = (taken + kStepColumns - 1) / kStepColumns;
    tiles_.push_back({{TileShape::Kind::block, false, selection.height, steps, taken}, window});
    return false;
  });
}

void GroupTiles::gather_remainder(const RowGroup& group) {
  std::array<std::int64_t, kGroupRows> next{};
  for (std::uint64_t left : left_)
    for (; left; left &= left - 1) ++next[static_cast<std::size_t>(std::countr_zero(left))];
  row_first_[0] = 0;
  for (std::size_t row = 0; row < next.size(); ++row) {
    row_first_[row + 1] = row_first_[row] + next[row];
    next[row] = row_first_[row];
  }
  remainder_column_.resize(static_cast<std::size_t>(row_first_.back()));
  for (std::size_t k = 0; k < left_.size(); ++k)
    for (std::uint64_t left = left_[k]; left; left &= left - 1)
      remainder_column_[static_cast<std::size_t>(next[static_cast<std::size_t>(std::countr_zero(left))]++)] =
          group.column[k];
}

// How many columns of these elements were not seen since `now_` changed.
std::int64_t GroupTiles::distinct(std::int64_t first, std::int64_t count) {
  std::int64_t found = 0;
  for (std::int64_t k = first; k < first + count; ++k) {
    std::uint32_t& stamp = stamp_[static_cast<std::size_t>(remainder_column_[static_cast<std::size_t>(k)])];
    found += stamp != now_;
    stamp = now_;
  }
  return found;
}

void GroupTiles::make_ell() {
  const std::int64_t longest = remainder_.widths.back();
  for (std::size_t index = 0; index < remainder_.widths.size(); ++index) {
    const std::int64_t width = remainder_.widths[index],
                       most = std::max<std::int64_t>(1, remainder_.ell_elements / width);
    Tile tile{{TileShape::Kind::ell, false, 0, width, 0}, 0};
    const auto finish = [&] {
      if (tile.shape.rows > 0) tiles_.push_back(tile);
      tile = {{TileShape::Kind::ell, false, 0, width, 0}, 0};
      ++now_;
    };
    ++now_;
    for (std::size_t row = 0; row < static_cast<std::size_t>(kGroupRows); ++row)
      for (std::int64_t first = row_first_[row]; first < row_first_[row + 1]; first += longest) {
        const std::int64_t count = std::min(longest, row_first_[row + 1] - first);
        if (width_for(remainder_.widths, count) != index) continue;
        tile.shape.columns += distinct(first, count);
        tile.rows |= std::uint64_t{1} << row;
        if (++tile.shape.rows == most) finish();
      }
    finish();
  }
}

void GroupTiles::make_segments() {
  const auto all = static_cast<std::int64_t>(remainder_column_.size());
  for (std::int64_t first = 0; first < all; first += remainder_.segment_length) {
    const std::int64_t count = std::min(remainder_.segment_length, all - first);
    Tile tile{{TileShape::Kind::segment, false, 0, count, 0}, 0};
    for (std::size_t row = 0; row < static_cast<std::size_t>(kGroupRows); ++row)
      if (row_first_[row] < first + count && row_first_[row + 1] > first && row_first_[row] < row_first_[row + 1])
        tile.rows |= std::uint64_t{1} << row;
    tile.shape.rows = count_bits(tile.rows);
    ++now_;
    tile.shape.columns = distinct(first, count);
    tiles_.push_back(tile);
  }
}

}  // namespace apl::sparse
