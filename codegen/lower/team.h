// Kernels of teams of threads on GPUs (ir/team.h).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "codegen/lower/lower.h"

namespace apl::lower {

class Team : KernelPart {
  friend class NeighbourScan;
  friend class LookBack;
  friend class RowScan;

 public:
  explicit Team(Kernel& kernel) : KernelPart(kernel) {}

  void run_team(const SegOp& op);
  // Whether the team does the statement together, which is one thread's elsewhere.
  bool shares(const Stm& stm) const { return holds_rows() || &stm == team_.reduction; }
  void share(const Screma& op, const Stm& stm, Block& out);

 private:
  bool holds_rows() const { return !team_.width.empty(); }

  void fold_with(const Screma& op, const std::vector<Value>& accumulators, const ExprPtr& before,
                 const std::function<ExprPtr(Value)>& take, Block& out, const ExprPtr& where = nullptr);
  Block fold_element(const Screma& op, const Stm& stm, const ExprPtr& at);
  Block fold_at_once(const Screma& op, const Stm& stm, const std::string& next, const ExprPtr& at);
  void append_fallible(const Screma& op, Block work, Block& out);
  ExprPtr wide_read(const Screma& op, const Stm& stm, std::size_t input, const ExprPtr& to, Block& read);
  // An element of an array that a reduction goes along: the value of it, where it lies, and that without the index.
  struct WideRead {
    Value element;
    Poly position, rest;
    std::string source;
  };
  std::vector<WideRead> wide_reads(const Screma& op, const Stm& stm);
  std::int64_t neighbours_of(const std::vector<WideRead>& reads) const;
  ExprPtr can_read_wide(const std::vector<WideRead>& reads);
  Block fold_vectors(const Screma& op, const Stm& stm, const std::vector<WideRead>& reads, const ExprPtr& first,
                     std::int64_t count);
  Block share_in_vectors(const Screma& op, const Stm& stm, const std::vector<WideRead>& reads, const ExprPtr& bound);
  void share_in_rounds(const Screma& op, const Stm& stm, Block& out);
  void share_in_tiles(const Screma& op, const Stm& stm, Block& out);
  void uniform_in_warp(const Screma& op, const std::string& number, Block& out);
  void fold_warp(const Screma& op, const std::vector<Value>& accumulators, bool in_any_order, Block& out);
  void fold_warps(const Screma& op, const std::vector<Value>& accumulators, Block& out);

  void share_scan(const Screma& op, const Stm& stm, Block& out);  // codegen/lower/row_scan.cpp

  // several blocks for an index: reductions here, scans in codegen/lower/look_back.cpp
  void part_of_block(const ExprPtr& width, Block& out);
  void fold_blocks(const Screma& op, const std::vector<Value>& accumulators, Block& out);
  void look_back(const Screma& op, const Stm& stm, Block& out);

  // rows that the team holds (codegen/lower/rows.cpp)
  void share_row(const Screma& op, const Stm& stm, Block& out);
  bool keeps_no_order(const SegOp& op) const;
  kernel::Stmt for_groups(const std::string& group, Block body);
  kernel::Stmt each_of_group(const std::string& group, const std::string& round, const std::string& at, Block body);
  kernel::Stmt for_rounds(const std::string& round, Block body);
  kernel::Stmt for_elements_of_row(const std::string& round, const std::string& at, Block body);
  std::string hold_row(Value row, const std::string& hint, Block& out);
  void read_rows(const Screma& op, const Stm& stm, Block& out);
  void fold_in_order(const Screma& op, const std::vector<Value>& accumulators, const std::vector<std::string>& elements,
                     const std::vector<Value>& results, Block& out);
  struct Neighbours {
    std::string array, held;  // the buffer, and a thread's elements of the row
    Poly rest;                // where the row begins
  };
  std::optional<Neighbours> neighbours_in(Value row, const std::vector<DimIndex>& indices, const std::string& held,
                                          Location location, ExprPtr& can);
  void in_vectors(const std::string& access, const std::vector<Neighbours>& rows, const ExprPtr& can,
                  const std::string& round, const std::string& at, Block others, Block beyond, Block& out);
  void write_held_rows(const SegOp& op, const std::vector<ExprPtr>& indices, Block& out);

  struct Threads {
    const Stm* reduction = nullptr;  // that they share; null: they hold rows
    std::string size, shift, lane;   // variables: how many, the logarithm of it, this one
    ExprPtr has_index;               // whether there is an index for the team
    std::string width;               // variable: elements of the rows that they hold; empty: they hold none
    // Variables: how many neighbours of a group a thread has, and how far its elements of a group are apart. Empty: one
    // element, and those of the team's threads in turn.
    std::string each, apart;
    // Of several blocks: variables for how many, for the index that this one works on, and for its part of it; and for
    // its first element and how many it has. Empty: there are none.
    std::string blocks, index, part, first, count;
  };
  Threads team_;
  std::map<Value, std::string> rows_;  // that the team holds: a thread's elements
};

}  // namespace apl::lower
