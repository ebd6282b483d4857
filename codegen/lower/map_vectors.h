// Maps on GPUs whose threads have several neighbouring elements each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codegen/lower/lower.h"

namespace apl::lower {

class MapVectors : KernelPart {
 public:
  MapVectors(Kernel& kernel, const SegOp& op);

  // How many neighbours a thread takes; 1: the map is not of this form.
  std::int64_t neighbours() const { return neighbours_; }
  void run();

 private:
  struct Read {
    const Stm* stm = nullptr;
    Poly position;
    std::string source, array;  // the buffer; what holds the neighbours
  };

  bool is_split() const;
  Poly element_position(Value result) const;
  std::optional<Poly> row_of(const Poly& position) const;
  std::optional<Poly> neighbours_of(const Stm& stm) const;

  ExprPtr can_be_wide();
  Block at_once(const std::string& first);
  Block one_by_one(const std::string& flat);
  std::vector<ExprPtr> indices_from(const std::string& flat, const std::vector<std::string>& names, Block& out);

  const SegOp& op_;
  std::int64_t neighbours_ = 1;
  std::vector<std::string> names_;  // of the indices
  std::vector<ExprPtr> sizes_;
  std::vector<Read> reads_;
};

}  // namespace apl::lower
