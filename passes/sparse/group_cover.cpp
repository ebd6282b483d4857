#include "passes/sparse/group_cover.h"

#include <algorithm>
#include <bit>

#include "passes/sparse/bits.h"

namespace apl::sparse {
namespace {

constexpr std::array<int, 4> kHeights = {8, 16, 32, 64};
constexpr double kNever = std::numeric_limits<double>::infinity();

// A histogram of non-zeros in a window, one place a count.
using Histogram = std::array<std::int32_t, kGroupRows + 1>;

}  // namespace

void GroupCover::start(const RowGroup& group) {
  left_ = group.rows;
  left_count_ = group.entries;
  left_columns_ = static_cast<std::int64_t>(left_.size());
  length_.fill(0);
  for (std::uint64_t rows : left_)
    for (; rows; rows &= rows - 1) ++length_[static_cast<std::size_t>(std::countr_zero(rows))];
  taken_.clear();
  withdrawn_ = 0;
}

double GroupCover::block_cost(std::int64_t height, std::int64_t columns) const {
  return model_.block(height, (columns + kStepColumns - 1) / kStepColumns);
}

// ELL rows as GroupTiles makes them, but for the distinct columns of each tile, which are bounded instead of counted.
double GroupCover::ell_cost(bool shared) const {
  const std::int64_t longest = remainder_.widths.back();
  std::array<std::int64_t, 32> ell_rows{}, points{};
  for (const std::int64_t length : length_) {
    if (length == 0) continue;
    const std::int64_t whole = length / longest, more = length % longest;
    ell_rows[remainder_.widths.size() - 1] += whole;
    points[remainder_.widths.size() - 1] += whole * longest;
    if (more == 0) continue;
    const std::size_t index = width_for(remainder_.widths, more);
    ++ell_rows[index];
    points[index] += more;
  }
  double cost = 0;
  for (std::size_t index = 0; index < remainder_.widths.size(); ++index) {
    if (ell_rows[index] == 0) continue;
    const std::int64_t width = remainder_.widths[index],
                       most = std::max<std::int64_t>(1, remainder_.ell_elements / width);
    const std::int64_t tiles = (ell_rows[index] + most - 1) / most;
    const std::int64_t columns = std::min(points[index] / tiles, left_columns_);
    cost += static_cast<double>(tiles) *
            model_.cost({TileShape::Kind::ell, shared, ell_rows[index] / tiles, width, columns});
  }
  return cost;
}

double GroupCover::segment_cost(bool shared) const {
  const std::int64_t segments = (left_count_ + remainder_.segment_length - 1) / remainder_.segment_length;
  const std::int64_t here = left_count_ / segments;
  const std::int64_t rows = kGroupRows - std::count(length_.begin(), length_.end(), 0);
  return static_cast<double>(segments) *
         model_.cost({TileShape::Kind::segment, shared, std::max<std::int64_t>(1, rows / segments), here,
                      std::min(here, left_columns_)});
}

double GroupCover::limit() const {
  if (!formats_.ell && !formats_.segment) return kNever;
  const bool shared = std::any_of(taken_.begin(), taken_.end(), [](const Taken& t) { return t.live; });
  const double ell_rows = formats_.ell ? ell_cost(shared) : kNever,
               segments = formats_.segment ? segment_cost(shared) : kNever;
  return std::min(ell_rows, segments) / static_cast<double>(left_count_);
}

double GroupCover::find_best() {
  // One pass over the columns counts for all 15 windows; those of one height lie one after the other.
  std::array<Histogram, 15> histograms{};
  for (const std::uint64_t rows : left_) {
    if (rows == 0) continue;
    const std::uint64_t eights = byte_counts(rows), sixteens = (eights + (eights >> 8)) & 0x00FF00FF00FF00FFU,
                        halves = (sixteens + (sixteens >> 16)) & 0x0000FFFF0000FFFFU;
    for (std::size_t k = 0; k < 8; ++k) ++histograms[k][eights >> (8 * k) & 0xFF];
    for (std::size_t k = 0; k < 4; ++k) ++histograms[8 + k][sixteens >> (16 * k) & 0xFF];
    ++histograms[12][halves & 0xFF];
    ++histograms[13][halves >> 32];
    ++histograms[14][(halves + (halves >> 32)) & 0xFF];
  }
  candidates_.clear();
  std::size_t number = 0;
  double best = kNever;
  for (const int height : kHeights)
    for (int window = 0; window < kGroupRows / height; ++window, ++number) {
      if (!model_.has_block(height)) continue;
      Candidate candidate;
      std::int64_t columns = 0, points = 0;
      for (int threshold = height; threshold >= 1; --threshold) {
        const std::int64_t here = histograms[number][static_cast<std::size_t>(threshold)];
        if (here == 0) continue;
        columns += here;
        points += here * threshold;
        const double average = block_cost(height, columns) / static_cast<double>(points);
        if (average >= candidate.average) continue;
        candidate = {{static_cast<std::uint8_t>(height), static_cast<std::uint8_t>(window),
                      static_cast<std::uint8_t>(threshold)},
                     average};
      }
      best = std::min(best, candidate.average);
      if (candidate.average < kNever) candidates_.push_back(candidate);
    }
  return best;
}

double GroupCover::inside(const Selection& window, std::int64_t& points) {
  double cost = 0;
  points = 0;
  for (const Taken& taken : taken_) {
    if (!taken.live || (taken.selection.rows() & ~window.rows()) != 0) continue;
    if (cost == 0) inside_.assign(left_.size(), 0);
    cost += taken.cost;
    points += taken.points;
    for (std::size_t k = 0; k < taken.index.size(); ++k) inside_[taken.index[k]] |= taken.bits[k];
  }
  return cost;
}

double GroupCover::find_replacement() {
  replacement_ = {};
  for (const int height : {16, 32, 64}) {
    if (!model_.has_block(height)) continue;
    for (int window = 0; window < kGroupRows / height; ++window) {
      Selection selection{static_cast<std::uint8_t>(height), static_cast<std::uint8_t>(window), 1};
      std::int64_t given_back = 0;
      const double saved = inside(selection, given_back);
      if (given_back == 0) continue;
      Histogram histogram{};
      for (std::size_t k = 0; k < left_.size(); ++k)
        ++histogram[static_cast<std::size_t>(count_bits((left_[k] | inside_[k]) & selection.rows()))];
      std::int64_t columns = 0, points = 0;
      for (int threshold = height; threshold >= 1; --threshold) {
        const std::int64_t here = histogram[static_cast<std::size_t>(threshold)];
        if (here == 0) continue;
        columns += here;
        points += here * threshold;
        // Of what is given back some may stay open: only what is gained beyond it counts.
        if (points <= given_back) continue;
        const double average = (block_cost(height, columns) - saved) / static_cast<double>(points - given_back);
        if (average >= replacement_.average) continue;
        selection.threshold = static_cast<std::uint8_t>(threshold);
        replacement_ = {selection, average};
      }
    }
  }
  return replacement_.average;
}

void GroupCover::add_block(const Selection& selection) {
  Taken taken{selection, 0, 0, {}, {}, true};
  const std::uint64_t window = selection.rows();
  for (std::size_t k = 0; k < left_.size(); ++k) {
    const std::uint64_t bits = left_[k] & window;
    if (count_bits(bits) < selection.threshold) continue;
    left_[k] &= ~window;
    left_columns_ -= left_[k] == 0;
    taken.index.push_back(static_cast<std::uint32_t>(k));
    taken.bits.push_back(bits);
    taken.points += count_bits(bits);
    for (std::uint64_t rows = bits; rows; rows &= rows - 1) --length_[static_cast<std::size_t>(std::countr_zero(rows))];
  }
  left_count_ -= taken.points;
  taken.cost = block_cost(selection.height, static_cast<std::int64_t>(taken.index.size()));
  taken_.push_back(std::move(taken));
}

void GroupCover::give_back(Taken& taken) {
  taken.live = false;
  ++withdrawn_;
  left_count_ += taken.points;
  for (std::size_t k = 0; k < taken.index.size(); ++k) {
    std::uint64_t& left = left_[taken.index[k]];
    left_columns_ += left == 0;
    left |= taken.bits[k];
    for (std::uint64_t rows = taken.bits[k]; rows; rows &= rows - 1)
      ++length_[static_cast<std::size_t>(std::countr_zero(rows))];
  }
}

void GroupCover::select(double most) {
  std::sort(candidates_.begin(), candidates_.end(),
            [](const Candidate& a, const Candidate& b) { return a.average < b.average; });
  std::uint64_t rows = 0;
  for (const Candidate& candidate : candidates_) {
    if (rows != 0 && candidate.average > most) break;
    if (rows & candidate.selection.rows()) continue;  // worth less after the one before
    rows |= candidate.selection.rows();
    add_block(candidate.selection);
  }
}

void GroupCover::replace() {
  for (Taken& taken : taken_)
    if (taken.live && (taken.selection.rows() & ~replacement_.selection.rows()) == 0) give_back(taken);
  add_block(replacement_.selection);
}

void GroupCover::finish(std::vector<Selection>& selections) const {
  selections.clear();
  for (const Taken& taken : taken_)
    if (taken.live) selections.push_back(taken.selection);
}

}  // namespace apl::sparse
