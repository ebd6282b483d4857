// Scans on GPUs whose threads have neighbouring elements: what tiles of a block (look_back.cpp) and rows of a team
// (row_scan.cpp) have in common.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/lower/team.h"

namespace apl::lower {

// One scan, whose parts share names. A thread has kNeighboursAtOnce neighbours in each of several rounds.
class NeighbourScan {
 protected:
  using ExprPtr = kernel::ExprPtr;
  using Block = kernel::Block;
  using Each = std::function<ExprPtr(std::size_t)>;              // of the operators' values
  using PlaceOf = std::function<ExprPtr(const ExprPtr& round)>;  // which neighbours those of a round are

  NeighbourScan(Team& team, const Screma& op, const Stm& stm, std::int64_t rounds);

  std::vector<std::string> fresh_of_each(const std::string& ending);
  kernel::CType type_of(std::size_t k) const { return {types_[k], false}; }
  // As what a block has of them is held: as they are, or, where flags are counted, two in a word, since what a tile
  // gives of each fits 16 bits.
  std::size_t held_count() const { return counts_ ? (types_.size() + 1) / 2 : types_.size(); }
  kernel::CType held_type(std::size_t k) const { return counts_ ? kernel::kInt : type_of(k); }
  ExprPtr held_neutral(std::size_t k) const;
  // Value k of what is held.
  ExprPtr taken(std::size_t k, const Each& words) const;
  ExprPtr neutral(std::size_t k) const { return team_.values_.operand(neutral_[k]); }
  void declare_each(const std::vector<std::string>& names, const Each& start, Block& out) const;
  // `left` folded with `right`, into `target`, or where it does not hold `target` as it is.
  void combine(const Each& left, const Each& right, const Each& target, Block& out, const ExprPtr& where = {});
  // The same of what is held.
  void combine_held(const Each& left, const Each& right, const Each& target, Block& out, const ExprPtr& where = {});
  kernel::Stmt unrolled(const std::string& name, std::int64_t from, std::int64_t bound, Block body) const;
  // As many blocks on a multiprocessor, if what is scanned is simple enough for the registers that leaves.
  void hold_resident(std::int64_t blocks);
  bool is_returned(Value row) const;
  ExprPtr from_first(const ExprPtr& at) const;

  // `kept`: rows that the scan maps, of which all elements of a thread stay in registers; arrays for them are declared.
  // `together`: all rounds are read before the first is looked at, so that their reads are under way together, if there
  // are registers for that.
  void read_elements(const PlaceOf& place_of, bool together, Block& out, const std::set<Value>& kept = {});
  // Whether a thread has registers for all that is read, rows of the scan left out.
  bool fit_together(const Screma& reads) const;
  // A round's neighbours of an input, from place `at` of the tile on, into `array` from `offset` on (null: from its
  // first).
  void read_input(const Screma& op, const Stm& stm, std::size_t input, const std::string& at, const std::string& array,
                  const ExprPtr& offset, Block& out);
  void scan_neighbours(const std::string& round, Block& out);
  void write_elements(const std::string& round, const PlaceOf& place_of, Block& out);
  // Elements of `array`, from `first` on, to the row's from position `at` of the tile on: at once where that can be.
  void write_neighbours(Value row, const ExprPtr& at, const std::string& array, const ExprPtr& first, Block& out);

  Team& team_;
  const Screma& op_;
  const Stm& stm_;
  const ValueTable& table_;
  std::vector<ScalarType> types_;  // of the operators' values
  std::vector<Operand> neutral_;
  const std::int64_t rounds_, threads_, warp_size_;
  bool counts_ = false;        // flags
  std::string first_, count_;  // variables: the first of the elements, if it is not that of the row; how many there are
  kernel::CType place_type_ = kernel::kInt;
  std::vector<std::string> elements_, totals_;  // of what is held: all elements of a thread; what each round's give
  std::map<Value, std::string> kept_;           // the same of mapped rows that are kept
  std::map<Value, std::string> read_;           // the same of arrays that are read for all rounds together
};

}  // namespace apl::lower
