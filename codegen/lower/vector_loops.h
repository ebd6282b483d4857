// Loops of a thread on a CPU in a form that the C compiler makes vectors of.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "codegen/lower/lower.h"

namespace apl::lower {

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
  std::optional<Block> in_columns(const SegOp& op, const Block& work, const std::vector<std::string>& names,
                                  const std::vector<ExprPtr>& sizes);

 private:
  Poly without_divisions(const Poly& position) const;

  std::map<Value, Poly> sizes_;
  std::vector<Poly> read_;
};

}  // namespace apl::lower
