#include "bench/sparse/first_level.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "passes/sparse/row_group.h"

namespace apl::bench {
namespace {

using namespace sparse;

constexpr double kNever = std::numeric_limits<double>::infinity();

// The candidates of one group for cover_greedily. What a candidate costs never changes, what it newly covers does.
class FirstLevelCover {
 public:
  FirstLevelCover(const CostModel& model, const RemainderShape& remainder, const CoverFormats& formats,
                  std::int64_t columns)
      : model_(model), formats_(formats), maker_(remainder, columns) {}

  void start(const RowGroup& group) {
    group_ = &group;
    left_ = group.rows;
    left_count_ = group.entries;
    chosen_.clear();
  }

  bool done() const { return left_count_ == 0 || !formats_.block; }

  // Whole rows, of which something is left, as ELL rows or nnz segments.
  double limit() {
    if (!formats_.ell && !formats_.segment) return kNever;
    double cost = 0;
    for (const TileShape& shape : remainder()) cost += model_.cost(shape);
    return cost / static_cast<double>(left_count_);
  }

  double find_best() {
    candidates_.clear();
    double best = kNever;
    for (const int height : {8, 16, 32, 64})
      for (int window = 0; model_.has_block(height) && window < kGroupRows / height; ++window) {
        const Selection place{static_cast<std::uint8_t>(height), static_cast<std::uint8_t>(window), 1};
        std::array<std::int64_t, kGroupRows + 1> columns{}, gained{};
        for (std::size_t k = 0; k < left_.size(); ++k) {
          const auto all = static_cast<std::size_t>(std::popcount(group_->rows[k] & place.rows()));
          columns[all] += 1;
          gained[all] += std::popcount(left_[k] & place.rows());
        }
        Candidate here{place, 0, kNever};
        std::int64_t taken = 0, points = 0;
        for (std::size_t threshold = static_cast<std::size_t>(height); threshold >= 1; --threshold) {
          taken += columns[threshold];
          points += gained[threshold];
          if (points == 0) continue;
          const double cost = model_.block(height, (taken + kStepColumns - 1) / kStepColumns);
          if (cost / static_cast<double>(points) >= here.average) continue;
          here = {place, taken, cost / static_cast<double>(points)};
          here.selection.threshold = static_cast<std::uint8_t>(threshold);
        }
        if (here.average == kNever) continue;
        best = std::min(best, here.average);
        candidates_.push_back(here);
      }
    return best;
  }
  double find_replacement() { return kNever; }
  void replace() {}

  void select(double most) {
    std::sort(candidates_.begin(), candidates_.end(),
              [](const Candidate& a, const Candidate& b) { return a.average < b.average; });
    std::uint64_t rows = 0;
    for (const Candidate& candidate : candidates_) {
      if (rows != 0 && candidate.average > most) break;
      if (rows & candidate.selection.rows()) continue;
      rows |= candidate.selection.rows();
      chosen_.push_back(candidate);
      for (std::size_t k = 0; k < left_.size(); ++k) {
        const std::uint64_t window = candidate.selection.rows();
        if (std::popcount(group_->rows[k] & window) < candidate.selection.threshold) continue;
        left_count_ -= std::popcount(left_[k] & window);
        left_[k] &= ~window;
      }
    }
  }

  // The tiles of what was selected, and of the rows with something left.
  void append(std::vector<TileShape>& shapes) {
    std::uint64_t once = 0, twice = 0;
    for (const Candidate& c : chosen_) {
      twice |= once & c.selection.rows();
      once |= c.selection.rows();
    }
    for (const std::uint64_t rows : left_) twice |= once & rows;
    for (const Candidate& c : chosen_)
      shapes.push_back({TileShape::Kind::block, (twice & c.selection.rows()) != 0, c.selection.height,
                        (c.columns + kStepColumns - 1) / kStepColumns, c.columns});
    if (left_count_ == 0) return;
    const std::vector<TileShape>& others = remainder();
    shapes.insert(shapes.end(), others.begin(), others.end());
  }

 private:
  struct Candidate {
    Selection selection;
    std::int64_t columns = 0;
    double average = kNever;
  };

  const std::vector<TileShape>& remainder() {
    std::uint64_t open = 0, taken = 0;
    for (const std::uint64_t rows : left_) open |= rows;
    for (const Candidate& c : chosen_) taken |= c.selection.rows();
    RowGroup whole;
    for (std::size_t k = 0; k < left_.size(); ++k) {
      const std::uint64_t rows = group_->rows[k] & open;
      if (rows == 0) continue;
      whole.column.push_back(group_->column[k]);
      whole.rows.push_back(rows);
      whole.entries += std::popcount(rows);
    }
    double least = kNever;
    for (const Remainder format : {Remainder::ell, Remainder::segment}) {
      if (!(format == Remainder::ell ? formats_.ell : formats_.segment)) continue;
      std::vector<TileShape> shapes;
      std::vector<Selection> none;
      maker_.append(whole, none, format, shapes);
      double cost = 0;
      for (TileShape& shape : shapes) {
        shape.shared = shape.shared || (open & taken) != 0;
        cost += model_.cost(shape);
      }
      if (cost >= least) continue;
      least = cost;
      remainder_ = std::move(shapes);
    }
    return remainder_;
  }

  const CostModel& model_;
  CoverFormats formats_;
  GroupTiles maker_;
  const RowGroup* group_ = nullptr;
  std::vector<std::uint64_t> left_;
  std::int64_t left_count_ = 0;
  std::vector<Candidate> candidates_, chosen_;
  std::vector<TileShape> remainder_;
};

}  // namespace

double first_level_cost(const Csr& matrix, const Profile& profile, const SearchOptions& how,
                        const std::vector<std::int32_t>& order) {
  const std::int64_t part =
      how.problem.op == Operator::spmm ? std::min<std::int64_t>(how.problem.dense, 128) : how.problem.dense;
  const CostModel model(profile, how.problem, part);
  const RemainderShape remainder{profile.widths, profile.ell_elements, profile.segment_length};
  FirstLevelCover cover(model, remainder, how.formats, matrix.columns);
  RowGroup group;
  std::vector<TileShape> shapes;
  for (std::int64_t index = 0; index * kGroupRows < matrix.rows; ++index) {
    group.read(matrix, order, index);
    cover.start(group);
    cover_greedily(cover, how.greedy);
    cover.append(shapes);
  }
  double least = model.total(shapes);
  SearchOptions single = how;
  single.reorder = false;
  single.greedy.levels = 1;
  for (const auto& [name, cost] : search(matrix, profile, single).considered)
    if (name != "dense" && !name.starts_with("hybrid")) least = std::min(least, cost);
  return least;
}

}  // namespace apl::bench
