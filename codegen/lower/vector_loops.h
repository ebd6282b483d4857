// Loops of a thread on a CPU in a form that the C compiler makes vectors of.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "codegen/lower/lower.h"

namespace apl::lower {

// Nothing but scalars and elements: no loop, check or memory of its own.
bool is_straight(const kernel::Block& block);
// The constant factor of `symbol` in the position; nullopt: it is none, or not known.
std::optional<std::int64_t> step_along(const Poly& position, Value symbol);

class VectorLoops : KernelPart {
 public:
  explicit VectorLoops(Kernel& kernel) : KernelPart(kernel) {}

  // What the lowering of statements tells: sizes that the kernel computes, and positions of elements that it reads,
  // which come back in the form to be written.
  void note_size(Value size, const Poly& value) { sizes_.insert_or_assign(size, value); }
  const Poly& note_read(const Poly& position) { return read_.emplace_back(without_divisions(position)); }
  std::size_t reads() const { return read_.size(); }

  // `first_read`: the number of reads before those of the loop.
  void sum_in_vectors(const Screma& op, const Stm& stm, std::size_t first_read, kernel::Stmt& loop) const;
  // A scan of `sums`, what is folded, and the stores behind; nullopt: OpenMP knows its operators not, or it maps rows,
  // too.
  std::optional<kernel::Stmt> scan_in_vectors(const Screma& op, const Stm& stm, std::size_t first_read,
                                              const Block& sums, const Block& stores) const;
  // A fold by a commutative operator of any kind (vector_folds.cpp). `fold` folds the partial results, which are called
  // as `partial` says.
  using Partial = std::function<ExprPtr(std::size_t)>;
  void fold_in_lanes(const Screma& op, const Stm& stm, std::size_t first_read, Block& out,
                     const std::function<void(const Partial& partial, Block&)>& fold) const;
  // A fold over a few elements, whose number is a constant, becomes straight code, so that the loop around it can be
  // made vectors of: a window of a stencil.
  void unroll_window(const Screma& op, kernel::Stmt& loop) const;
  std::optional<Block> in_columns(const SegOp& op, const Block& work, const std::vector<std::string>& names,
                                  const std::vector<ExprPtr>& sizes);
  // A kernel that reads along one of its dims and writes along another, square by square, so that every line that a
  // square reads or writes is in the first cache until all of it is used. nullopt: that is not its form. `work` is what
  // one index does.
  std::optional<Block> in_squares(const SegOp& op, const Block& work, const std::vector<std::string>& names,
                                  const std::vector<ExprPtr>& sizes);

 private:
  Poly without_divisions(const Poly& position) const;

  std::map<Value, Poly> sizes_;
  std::vector<Poly> read_;
};

}  // namespace apl::lower
