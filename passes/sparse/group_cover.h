// The candidates of one group of rows for the greedy algorithm: block tiles of 15 windows (of 8, 16, 32 and 64 rows),
// each with the columns that have at least so many non-zeros left.
//
// Candidates of different groups share no non-zero, so algorithm 2 falls apart into groups: no queue over all is
// needed, groups run in parallel, and the search can stop after any of them. What couples them is the cost at which
// what is left can be had as ELL rows or nnz segments, and that is the limit below.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "passes/sparse/row_group.h"

namespace apl::sparse {

class GroupCover {
 public:
  GroupCover(const CostModel& model, const RemainderShape& remainder, CoverFormats formats)
      : model_(model), remainder_(remainder), formats_(formats) {}

  void start(const RowGroup& group);

  // As cover_greedily wants them.
  bool done() const { return left_count_ == 0 || !formats_.block; }
  double limit() const;
  double find_best();
  double find_replacement();
  void select(double most);
  void replace();

  // The selections that stand, in the order in which they were made.
  void finish(std::vector<Selection>& selections) const;
  std::int64_t withdrawn() const { return withdrawn_; }

 private:
  struct Taken {
    Selection selection;
    double cost = 0;
    std::int64_t points = 0;
    std::vector<std::uint32_t> index;  // of columns
    std::vector<std::uint64_t> bits;   // of each
    bool live = true;
  };
  struct Candidate {
    Selection selection;
    double average = std::numeric_limits<double>::infinity();
  };

  double ell_cost(bool shared) const;
  double segment_cost(bool shared) const;
  double block_cost(std::int64_t height, std::int64_t columns) const;
  void add_block(const Selection& selection);
  void give_back(Taken& taken);
  // The bits that selections inside the window took, by column; and what they cost.
  double inside(const Selection& window, std::int64_t& points);

  const CostModel& model_;
  const RemainderShape& remainder_;
  CoverFormats formats_;
  std::vector<std::uint64_t> left_, inside_;
  std::array<std::int64_t, kGroupRows> length_{};  // left in each row
  std::int64_t left_count_ = 0, left_columns_ = 0, withdrawn_ = 0;
  std::vector<Taken> taken_;
  std::vector<Candidate> candidates_;
  Candidate replacement_;
};

}  // namespace apl::sparse
