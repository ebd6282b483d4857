// Products over the non-zeros of arguments, by kernels of the runtime: packed operands are made at the first
// call with them, and kept for the next. On the host by those for CPUs, which the program's threads then do.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/program/bridge.h"
#include "runtime/program/sparse_plans.h"
#include "runtime/sparse/cpu_operands.h"
#include "runtime/sparse/device_operand.h"

namespace apl::program {

class SparseOperands {
 public:
  explicit SparseOperands(bool on_host);
  ~SparseOperands() { apl_sparse_cpu_forget(&cpu_); }
  SparseOperands(const SparseOperands&) = delete;
  SparseOperands& operator=(const SparseOperands&) = delete;

  // `done` stays 0 if the program's own kernel is to be launched: small products, arrays that are no arguments.
  int product(Bridge& bridge, const apl_sparse_product& product, std::int32_t& done);
  int sddmm(Bridge& bridge, const apl_sparse_sddmm_product& sddmm, std::int32_t& done);
  // Whether these arrays of an argument are the matrix. They are read once for each argument.
  int is_known(Bridge& bridge, const apl_known_matrix& matrix, const void* row_start, const void* column,
               const void* values, std::int32_t& is_it);
  // Plans that say `form dense` run the dense product of the backend's library; else they are not used.
  void use_library() { uses_library_ = true; }
  bool uses_library() const { return uses_library_; }
  // Of the host: what was asked for last, by each of the threads.
  void work() { apl_sparse_cpu_work(&cpu_.call); }

  // Plans for the argument whose columns are in the block of that age, in the calls that follow.
  void plan(std::uint64_t age, std::vector<const GivenPlan*> plans);
  // What became of them since they were given; they are forgotten.
  std::vector<PlanUse> take_uses();

 private:
  // An argument is known by its columns' block.
  struct Key {
    std::uint64_t age = 0;
    std::int32_t type = 0;
    std::int64_t depth = 0;  // iterations of the dense loop, roughly for products: the packed operand depends on it
    bool operator==(const Key&) const = default;
  };
  struct Product {
    Key key;
    apl_sparse_operand operand{};
    std::uint64_t values = 0;  // whose are in the packed operand; 0: to be set again
  };
  struct Sddmm {
    Key key;
    apl_sparse_sddmm_operand operand{};
  };
  template <class Asked, class Run>
  int run_on_host(Bridge& bridge, const Asked& asked, const Run& run, std::int32_t& done);
  // An operand that was made before, or is now, and the plan for it.
  template <class Kept>
  struct Found {
    Kept* kept = nullptr;  // null: the program's own kernel is to run
    PlanUse* plan = nullptr;
  };
  // `dense`: iterations of the dense loop; `depth`: those that the operand is kept for.
  template <class Kept, class Asked, class Release>
  int find(Bridge& bridge, const Asked& asked, std::int64_t dense, std::int64_t depth, std::vector<Kept>& all,
           const Release& release, Found<Kept>& found);
  int make(Bridge& bridge, const apl_sparse_product& product, const PlanUse* plan, Product& made);
  int make(Bridge& bridge, const apl_sparse_sddmm_product& sddmm, const PlanUse* plan, Sddmm& made);

  // The dense products, by the backend's library.
  static int multiply(Bridge& bridge, const apl_sparse_product& product, const apl_sparse_operand& operand);
  static int multiply(Bridge& bridge, const apl_sparse_sddmm_product& sddmm, const apl_sparse_sddmm_operand& operand);

  // Orders of rows that were made where there is no plan, for the latest patterns; empty: as they are. It is good until
  // the next call.
  struct Reordered {
    std::uint64_t pattern = 0;
    std::int32_t type = 0;
    std::int64_t width = 0;
    std::vector<std::int32_t> order;
  };
  int order_of(const Bridge& bridge, const apl_sparse_csr& matrix, const apl_sparse_product& product,
               const std::vector<std::int32_t>*& order);
  std::vector<Reordered> orders_;

  // The plan for an operator, if one was given for the argument.
  PlanUse* plan_for(std::uint64_t age, bool sddmm);

  // Arrays of arguments whose key was computed.
  struct Seen {
    std::uint64_t row_start = 0, column = 0, values = 0;
    std::int64_t rows = 0, columns = 0, nonzeros = 0;
    std::uint64_t key = 0;
  };
  std::vector<Seen> seen_;

  struct Planned {
    std::uint64_t age;
    std::vector<PlanUse> uses;
  };
  std::vector<Planned> planned_;
  const bool on_host_;
  bool uses_library_ = false;
  apl_sparse_cpu_operands cpu_{};
  std::vector<Product> products_;
  std::vector<Sddmm> sddmms_;
};

}  // namespace apl::program
