// Lowering of an entry's host code. What it says to a backend is virtual, so that one traversal of the statements
// serves the table of runtime/backends/context.h and files of plain CUDA.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "codegen/contraction/plan_kernels.h"
#include "codegen/host/block_use.h"
#include "codegen/host/variants.h"
#include "codegen/kernel/writer.h"
#include "codegen/lower/lower.h"
#include "codegen/sparse/products.h"
#include "runtime/backends/context.h"

namespace apl::lower {

// The field of apl_value::scalar for the type, and whether it has the bits of the number.
const char* field_of(ScalarType type);
bool has_own_bits(ScalarType type);

class Host {
 public:
  Host(Unit& unit, const CodegenOptions& options);
  virtual ~Host() = default;
  HostText run();

 protected:
  using ExprPtr = kernel::ExprPtr;
  struct Launched {
    kernel::Function function;
    std::string blocks;
  };

  // ---- what a backend does; the variable `status` has how it went ----
  virtual void check_status();
  virtual std::string upload_call(const std::string& to, const std::string& from, const std::string& bytes);
  virtual std::string download_call(const std::string& to, const std::string& from, const std::string& bytes);
  virtual std::string copy_call(const std::string& to, const std::string& from, const std::string& bytes);
  virtual std::string synchronise_call();
  virtual void download_scalar(const std::string& to, const std::string& from, const std::string& bytes);
  // An array that memory is for: its size is checked where the program runs.
  struct Extent {
    std::int64_t width = 1;  // bytes of an element
    std::vector<Poly> shape;
    Location location;
    bool kernel_checks = false;  // that no size is negative
    std::string rows = {};       // how many of the shape there are: a variable of the host code; empty: one
  };
  virtual void allocate(Value block, const Extent& extent);
  // Memory of threads, for an array of each: a variable for it. With `may_lack` it need not be there.
  virtual std::string reserve_threads(const std::string& hint, const Extent& extent, bool may_lack);
  // Zeros for what blocks of a kernel publish: a variable for them.
  virtual std::string reserve_zeros(const std::string& bytes);
  virtual void check_extent(const Extent& extent);
  virtual void release(const std::string& block);
  virtual void refuse_if(const ExprPtr& condition, apl_failure_code code, Location location, const std::string& message,
                         const std::vector<ExprPtr>& numbers);
  virtual std::string failure_cell() const { return "ctx->failure"; }
  virtual std::string failed_word() const { return "ctx->failed"; }
  virtual void start_kernel(const Kernel& lowering, const Launched& made, const std::vector<std::string>& arguments);
  virtual bool choose_plan(PlanKernels& plan_kernels);
  virtual void chosen_number(const PlanKernels& plan_kernels, Value v);
  virtual void launch_plan(const Stm& stm, const SegOp& op, const PlanKernels& plan_kernels);
  virtual std::string block(Value b);
  // Whether the program chooses among a contraction's variants when it runs; else it has the tiled one.
  virtual bool offers_variants() const { return true; }
  // Whether it may call functions of the file.
  virtual bool calls_functions() const { return true; }
  virtual void trace(const Assert& op);
  // Host code that asks the runtime for the kernel of a sparse product.
  virtual SparseCall write_sparse_product(const Stm& stm);

  // ---- the same for all ----
  void refuse_ranks() const;
  void run_call(const std::string& call);
  std::string text(const ExprPtr& e) const { return kernel::print(e, c_dialect()); }
  std::string text(const Poly& p) { return text(values_.poly(p)); }
  bool is_variable(Value v) const {
    const Type& type = table_.type(v);
    return type.is_scalar() && type.element != ScalarType::unit;
  }
  void name_parameters();
  std::string parameter_name(std::size_t k) const;
  std::string input(std::size_t k) const;  // the apl_value of a parameter
  void find_blocks(const Body& body);
  void find_arrays(const Body& body);
  std::optional<std::int64_t> fixed_bytes(const Extent& extent) const;
  std::string sizes_text(const Extent& extent);
  void statements();
  const std::string& capacity(Value block);
  bool is_known(const PlanKernels& plan_kernels) const;
  void add_info(const kernel::Function& function, const Stm& stm) {
    result_.infos.push_back({function.name, function.threads, function.shared_bytes, stm.location});
  }
  Launched lower_kernel(Kernel& lowering, const SegOp& op);
  std::vector<std::string> arguments_of(const Kernel& lowering);
  // The threads of a kernel for whose arrays there is memory at a time.
  struct Part {
    std::string threads;  // of the whole kernel
    std::string first, count;
  };
  std::optional<Part> part_of(const Kernel& lowering, const SegOp& op);
  void add_failure(const Kernel& lowering, std::vector<std::string>& arguments) const;
  void pack_arguments(const Kernel& lowering, const std::vector<std::string>& arguments);

  Unit& unit_;
  Values values_;
  const ValueTable& table_;
  const BlockUse use_;
  Writer out_;
  HostText result_;
  std::vector<Value> blocks_;
  bool has_capacities_ = false;
  bool awaits_checks_ = false;        // kernels of a device were launched whose checks nobody has waited for
  std::vector<std::string> scratch_;  // slots of threads' arrays

 private:
  std::string head() const;
  void bind_parameters();
  void bind_constants();
  bool reads_any(std::span<const Value> params, const std::set<Value>& read) const;
  void give_results();
  void body(const Body& body) {
    for (const Stm& stm : body.stms) statement(stm);
  }
  void statement(const Stm& stm);

  // branches and loops (codegen/host/control.cpp)
  void exchange(Value to, Value from);
  void yield_value(const Stm& stm, const Body& body, const Operand& from, Value target,
                   const std::vector<Value>& targets);
  void declare_variable(Value v, const std::string& start);
  void branch(const If& op, const Stm& stm);
  void choose(const Choose& op, const Stm& stm);
  void declare_results(const Stm& stm);
  void yield_branch(const Stm& stm, const Body& inner);
  void yield_all(const Stm& stm, const Body& inner, const std::vector<Value>& targets);
  bool moves_blocks(const Stm& stm) const;
  std::set<Value> take_turns(const std::vector<Value>& targets, const std::vector<Operand>& results);
  void loop(const Loop& op, const Stm& stm);

  // calls (codegen/host/control.cpp)
  bool is_entry() const { return unit_.function.entry.has_value(); }
  void bind_given();
  void call_function(const Apply& op, const Stm& stm);
  std::string given(const Operand& x);
  void take(const apl::Function& callee, const Stm& stm, const std::string& made);

  // memory and checks (codegen/host/data.cpp)
  void upload(const ArrayLit& op, Value array);
  void upload(const Update& op, const Stm& stm);
  void download(const Index& op, const Stm& stm);
  void check_dims(Value array, const std::vector<DimIndex>& dims, Location location);
  std::string extent_text(const Extent& extent);
  Extent extent_of(Value block, const Alloc& alloc);
  void check_results(const Stm& stm, const SegOp& op);
  void know_products(const std::vector<Poly>& shape);

  // kernels (codegen/host/launch.cpp)
  void launch(const Stm& stm);
  void launch_own(const Stm& stm);
  void launch_packed(const Stm& stm);
  void declare_parameters(const PlanKernels& plan_kernels);
  std::string reserve_packed(const std::string& kernel, const std::vector<std::string>& arguments);
  void add_scratch(const Kernel& lowering, const SegOp& op, const std::optional<Part>& part,
                   std::vector<std::string>& arguments);

  bool choose_splits(Value v);

  const std::map<std::string, std::int64_t>& parameters_;  // that were given
  std::map<Value, std::string> capacities_;
  std::map<Value, std::shared_ptr<PlanKernels>> plan_kernels_;     // by kernel
  std::map<Value, std::shared_ptr<PlanKernels>> plan_kernels_of_;  // by a number of theirs
  std::vector<std::pair<const Choose*, std::shared_ptr<Variants>>> variants_;
  struct Variant {
    Variants* variants = nullptr;
    std::int64_t number = 0;
  };
  Variant variant_;                               // the one whose branch this is
  std::map<std::size_t, std::string> constants_;  // parameters that are values of constants: what has them
  std::set<std::size_t> unread_;                  // of those that nothing reads, which are not there
  std::set<Value> known_;                         // what is bound at this point of the host code
  std::map<Value, std::vector<Extent>> arrays_;   // that lie in each block, in the order of the text
  std::set<std::vector<Poly>> kernel_checked_;    // shapes that memory was asked for, but for negative sizes
  std::set<Poly> products_;                       // of sizes of arrays that are there: numbers of elements
  Writer declarations_;
};

}  // namespace apl::lower
