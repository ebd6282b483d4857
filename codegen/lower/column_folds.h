// Maps on GPUs that fold columns of elements of few bits: threads take several neighbouring columns each.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/lower/lower.h"

namespace apl::lower {

class ColumnFolds : KernelPart {
 public:
  ColumnFolds(Kernel& kernel, const SegOp& op);

  // Whether the map is of this form.
  bool have_neighbours() const;
  void run();

 private:
  struct Read {
    Value element;  // a parameter of the fold's function, or what it reads
    Poly position;
    std::string source;  // the buffer
    std::int64_t count;  // neighbours, or one element for all of them
  };

  std::optional<Poly> row_of(const Poly& position) const;
  Poly result_position(Value result) const;
  void add_read(Value element, Value array, const std::vector<DimIndex>& dims, Location location);
  bool is_read(Value element) const;
  Block at_once(const std::string& thread, const std::vector<ExprPtr>& sizes);
  Block fold_rows(const std::string& from, std::int64_t count, const std::string& first, const std::string& next,
                  const std::vector<std::string>& folded);

  const SegOp& op_;
  const Stm* fold_ = nullptr;
  std::vector<Read> reads_;
};

}  // namespace apl::lower
