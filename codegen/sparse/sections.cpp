#include "codegen/sparse/sections.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>

namespace apl {
namespace {

// Takes rows one by one, and knows how many columns each other row shares with those of the section.
class Rows {
 public:
  explicit Rows(const HostCsr& matrix)
      : matrix_(matrix),
        taken_(static_cast<std::size_t>(matrix.rows)),
        shared_(taken_.size()),
        touched_by_(taken_.size()),
        column_of_(static_cast<std::size_t>(matrix.columns)),
        column_start_(static_cast<std::size_t>(matrix.columns) + 1) {
    for (const std::int32_t column : matrix.column) ++column_start_[static_cast<std::size_t>(column) + 1];
    std::partial_sum(column_start_.begin(), column_start_.end(), column_start_.begin());
    by_column_.resize(matrix.column.size());
    std::vector<std::int64_t> next = column_start_;
    for (std::int64_t row = 0; row < matrix.rows; ++row) {
      if (matrix.length(row) > 0) by_length_.push_back(static_cast<std::int32_t>(row));
      for (const std::int32_t column : matrix.row(row))
        by_column_[static_cast<std::size_t>(next[static_cast<std::size_t>(column)]++)] = static_cast<std::int32_t>(row);
    }
    std::ranges::stable_sort(by_length_, [&](std::int32_t a, std::int32_t b) { return length(a) > length(b); });
  }

  // The next section's rows, none if there are no more.
  std::vector<std::int32_t> take(std::int64_t count) {
    ++section_;
    candidates_.clear();
    std::vector<std::int32_t> rows;
    while (std::ssize(rows) < count) {
      const std::int32_t row = rows.empty() ? longest() : nearest(rows.front());
      if (row < 0) break;
      taken_[static_cast<std::size_t>(row)] = true;
      rows.push_back(row);
      if (std::ssize(rows) < count) touch(row);
    }
    std::ranges::sort(rows);
    return rows;
  }

 private:
  std::int64_t length(std::int32_t row) const { return matrix_.length(row); }
  bool is_taken(std::int32_t row) const { return taken_[static_cast<std::size_t>(row)]; }

  std::int32_t longest() {
    while (first_ < by_length_.size() && is_taken(by_length_[first_])) ++first_;
    return first_ < by_length_.size() ? by_length_[first_] : -1;
  }

  std::int32_t nearest(std::int32_t seed) {
    std::erase_if(candidates_, [&](std::int32_t row) { return is_taken(row); });
    const auto is_worse = [&](std::int32_t a, std::int32_t b) {
      const std::int64_t more = shared(a) - shared(b);
      if (more != 0) return more < 0;
      const std::int64_t nearer = std::abs(length(b) - length(seed)) - std::abs(length(a) - length(seed));
      return nearer != 0 ? nearer < 0 : a > b;
    };
    const auto best = std::ranges::max_element(candidates_, is_worse);
    return best == candidates_.end() ? longest() : *best;
  }

  std::int64_t shared(std::int32_t row) const { return shared_[static_cast<std::size_t>(row)]; }

  // The columns of the row are the section's.
  void touch(std::int32_t row) {
    for (const std::int32_t column : matrix_.row(row)) {
      const auto c = static_cast<std::size_t>(column);
      if (column_of_[c] == section_) continue;
      column_of_[c] = section_;
      // Who shares a column with a thousand others shares it with no one in particular.
      constexpr std::int64_t kCommon = 1 << 12;
      if (column_start_[c + 1] - column_start_[c] > kCommon) continue;
      for (std::int64_t k = column_start_[c]; k < column_start_[c + 1]; ++k) {
        const std::int32_t other = by_column_[static_cast<std::size_t>(k)];
        if (is_taken(other)) continue;
        const auto o = static_cast<std::size_t>(other);
        if (touched_by_[o] != section_) {
          touched_by_[o] = section_;
          shared_[o] = 0;
          candidates_.push_back(other);
        }
        ++shared_[o];
      }
    }
  }

  const HostCsr& matrix_;
  std::vector<bool> taken_;
  std::vector<std::int64_t> shared_, touched_by_, column_of_;  // the last two: the number of a section
  std::vector<std::int64_t> column_start_;
  std::vector<std::int32_t> by_column_, by_length_, candidates_;
  std::size_t first_ = 0;
  std::int64_t section_ = 0;
};

Section section_of(const HostCsr& matrix, std::vector<std::int32_t> rows, std::int64_t pieces,
                   std::int64_t most_terms) {
  std::map<std::int32_t, SectionColumn> columns;
  std::int64_t terms = 0;
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (std::int64_t k = matrix.row_start[static_cast<std::size_t>(rows[r])];
         k < matrix.row_start[static_cast<std::size_t>(rows[r]) + 1]; ++k, ++terms) {
      SectionColumn& column = columns[matrix.column[static_cast<std::size_t>(k)]];
      column.column = matrix.column[static_cast<std::size_t>(k)];
      column.terms.push_back({static_cast<std::int32_t>(r), k});
    }
  pieces = std::min(std::max(pieces, (terms + most_terms - 1) / most_terms), std::ssize(columns));
  Section section{std::move(rows), std::vector<std::vector<SectionColumn>>(static_cast<std::size_t>(pieces))};
  std::int64_t before = 0;
  for (auto& [number, column] : columns) {
    const std::int64_t piece = std::min(before * pieces / terms, pieces - 1);
    before += std::ssize(column.terms);
    section.pieces[static_cast<std::size_t>(piece)].push_back(std::move(column));
  }
  std::erase_if(section.pieces, [](const auto& piece) { return piece.empty(); });
  return section;
}

}  // namespace

std::int64_t Section::loads() const {
  std::int64_t count = 0;
  for (const auto& piece : pieces) count += std::ssize(piece);
  return count;
}

std::int64_t Section::terms() const {
  std::int64_t count = 0;
  for (const auto& piece : pieces)
    for (const SectionColumn& column : piece) count += std::ssize(column.terms);
  return count;
}

Sections make_sections(const HostCsr& matrix, std::int64_t rows, std::int64_t pieces, std::int64_t most_terms) {
  Sections made;
  for (std::int64_t row = 0; row < matrix.rows; ++row)
    if (matrix.length(row) == 0) made.empty_rows.push_back(static_cast<std::int32_t>(row));
  Rows left(matrix);
  for (std::vector<std::int32_t> taken = left.take(rows); !taken.empty(); taken = left.take(rows))
    made.sections.push_back(section_of(matrix, std::move(taken), pieces, most_terms));
  std::ranges::stable_sort(made.sections, [](const Section& a, const Section& b) { return a.terms() > b.terms(); });
  return made;
}

}  // namespace apl
