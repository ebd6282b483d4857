// What kernels at block level have in common that go through tiles of keys for a tile of queries (attentions, folds
// over pairs): threads along the keys and along the queries, registers of a thread, tiles in shared memory.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/builder.h"
#include "ir/walk.h"
#include "passes/analysis/contractions.h"
#include "passes/extract_kernels/segment_order.h"

namespace apl {

// The statements of `all` that `roots` need, in order.
std::vector<Stm> needed_for(const std::vector<Stm>& all, std::set<Value> roots, const ValueTable& values);
std::set<Value> read_by(const std::vector<Stm>& stms, const ValueTable& values);
inline void append(std::vector<Stm>& to, const std::vector<Stm>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

// A reduction in a kernel of one thread an index over the space, of what it needs of `around`, matched alone; views of
// the host are looked through.
std::optional<Match> match_reduction(std::vector<Stm> around, const std::vector<std::pair<Value, Poly>>& space,
                                     const Stm& reduction, const HostViews& views, ValueTable& values);

// Why a contraction of queries, the second dim from the end of its space, with the last one does not fit: each operand
// goes along one of the two, and along the depth. `exact`: operands must be whole arrays.
std::optional<std::string> unfit_for_tiles(const Contraction& contraction, bool exact);

class BlockKernel {
 protected:
  // Of a map over `indices`, the last of which is the query; the others have a block each.
  BlockKernel(std::vector<Value> indices, std::vector<Poly> widths, ValueTable& values)
      : indices_(std::move(indices)), widths_(std::move(widths)), values_(values), outer_(widths_.size() - 1) {}

  // Dims of the kernel's space for the outer indices, which stand for those of the map and of the contraction.
  void outer_space(SegOp& kernel, const std::vector<const Contraction*>& contractions);

  // An inblock SegMap over the threads; `fill` sees the thread's own index, and where its keys or columns, and its
  // queries begin in a tile. With `along` 1 only the first thread of each query runs.
  struct Thread {
    std::vector<DimIndex> own;
    Value along, query;
  };
  using Results = std::vector<std::pair<Operand, KernelResult::Kind>>;
  std::vector<Value> in_block(Builder& block, const std::vector<std::string>& names, const Poly& along,
                              const std::function<Results(Builder&, const Thread&)>& fill);
  std::vector<Value> in_block(Builder& block, const std::vector<std::string>& names,
                              const std::function<Results(Builder&, const Thread&)>& fill) {
    return in_block(block, names, threads_, fill);
  }

  std::vector<Poly> registers(const Poly& along) const;
  // For each of a thread's registers; `fill` sees their indices along and across, then the rows' elements.
  Value each(Builder& thread, const std::string& name, const Poly& along, const std::vector<Value>& rows,
             const std::function<Operand(Builder&, Value, Value, const std::vector<Value>&)>& fill);
  // For each of a thread's queries; `fill` sees its index and the rows' elements.
  std::vector<Value> each_query(Builder& thread, const std::vector<std::string>& names, const std::vector<Value>& rows,
                                const FillMany& fill);
  // Over registers of a thread, or what all threads of a query have in shared memory.
  Value folded(Builder& inner, BinaryOp op, const Scalar& neutral, const Poly& width,
               const std::function<Value(Builder&, Value)>& element);
  Value register_of(Builder& builder, Value rows, Value along, Value query) const;
  Value shared_by_query(Builder& builder, Value rows, Value other, const Thread& thread, Value query) const;

  // An operand's tile: along a dim of the space and one that is reduced. In shared memory neighbours along the former
  // lie together; the axes are in the order in which the operand has them in memory, so that copies read neighbours.
  struct Tile {
    const ContractionOperand* operand;
    std::size_t dim, reduced;  // of the contraction
    Poly extent, steps;        // of the tile
    Poly bound, steps_bound;   // of the dims
    bool by_dim = false;       // neighbours in memory lie along the dim
    Value shared;              // the array
    std::vector<int> axes;     // as tile_contract numbers them
  };
  Tile make_tile(Builder& block, const Contraction& contraction, const ContractionOperand& operand, std::size_t dim,
                 const Poly& extent, const Poly& steps, int axis);
  Value copy(Builder& block, const Tile& tile, Value target, const Poly& start, const Poly& first_step) const;
  // Products of tiles added to `sums`, of T_k x T_q threads with so many registers along.
  Value contract(Builder& block, const Contraction& contraction, const Poly& along, const Poly& depth, Value sums,
                 const std::vector<TileOperand>& operands);
  int key_axis() const { return static_cast<int>(outer_); }
  int query_axis() const { return static_cast<int>(outer_) + 1; }
  int depth_axis() const { return static_cast<int>(outer_) + 2; }

  Operand size(Builder& builder, const Poly& value) const;
  static bool has_reads(const std::vector<Stm>& stms);
  // A copy of the statements, with values for what they stand for; their results.
  std::vector<Operand> copied(Builder& code, const std::vector<Stm>& stms, const std::vector<Operand>& results,
                              Substitution here) const;

  std::vector<Value> indices_;
  std::vector<Poly> widths_;
  ValueTable& values_;
  std::size_t outer_;
  Poly threads_, query_threads_, queries_, keys_;  // T_k, T_q, R_q, R_k
  Poly first_query_, first_key_;                   // of the tiles
  Substitution here_;                              // indices of the map, and of contractions, as the block's
};

}  // namespace apl
