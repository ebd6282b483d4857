// Host code of an entry in the words of the dialect's own runtime, for kernel files: arguments and results are the
// caller's memory, and nothing waits but what must.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/host/host.h"

namespace apl::lower {

// What the entry is called in the file: `main` and the like are taken.
std::string name_in_kernel_file(const apl::Function& entry);

class PlainHost : public Host {
 public:
  PlainHost(Unit& unit, const CodegenOptions& options) : Host(unit, options), device_(options.device) {}

  // The function, and the kernels that it launches. It calls helpers by the names of runtime/backends/scalar.h
  // (codegen/emit/host_subset.h).
  HostText run_file();

  // A contraction, with its kernel and what is said of it before the kernels.
  struct Contraction {
    std::string name, kernel;
    std::vector<std::string> comments;
    std::vector<int> passed_over;  // what kernels of its better plans spill
    bool has_next = false;         // there is a plan behind this one
  };
  const std::vector<Contraction>& contractions() const { return contractions_; }
  bool has_temporaries() const { return has_temporaries_; }
  bool can_fail() const { return can_fail_; }
  bool allocates_results() const { return !allocated_.empty(); }

 private:
  // How an array that the entry gives comes to the caller.
  enum class Passing : std::uint8_t {
    in_place,   // kernels write to the caller's memory
    copied,     // the block is one of those that loops and branches exchange: copied at the end
    allocated,  // the entry decides how many elements there are: the caller gets the block
  };

  void name_results();
  void find_exchanged(const Body& body);
  void give_result(std::size_t k);
  static std::string element_type(ScalarType type);
  std::vector<std::string> parameters() const;
  void declare_temporary(const std::string& name);
  std::string api(std::string_view name) const;
  std::string checked_bytes(const Extent& extent);
  std::string kernel_name(const kernel::Function& function) const;
  void describe(const PlanKernels& plan_kernels, const kernel::Function& function, const std::string& result);

  void check_status() override;
  std::string upload_call(const std::string& to, const std::string& from, const std::string& bytes) override;
  std::string download_call(const std::string& to, const std::string& from, const std::string& bytes) override;
  std::string copy_call(const std::string& to, const std::string& from, const std::string& bytes) override;
  std::string synchronise_call() override;
  void download_scalar(const std::string& to, const std::string& from, const std::string& bytes) override;
  void check_extent(const Extent& extent) override { checked_bytes(extent); }
  void allocate(Value block, const Extent& extent) override;
  std::string reserve_threads(const std::string& hint, const Extent& wanted, bool may_lack) override;
  std::string reserve_zeros(const std::string& bytes) override;
  void release(const std::string& name) override;
  std::string block(Value b) override;
  void refuse_if(const ExprPtr& condition, apl_failure_code code, Location location, const std::string& message,
                 const std::vector<ExprPtr>& numbers) override;
  std::string failure_cell() const override { return "failure"; }
  std::string failed_word() const override { return "failure"; }  // its first word, in the device's memory
  void start_kernel(const Kernel& lowering, const Launched& made, const std::vector<std::string>& arguments) override;
  bool choose_plan(PlanKernels& plan_kernels) override;
  void chosen_number(const PlanKernels& plan_kernels, Value v) override;
  void launch_plan(const Stm& stm, const SegOp& op, const PlanKernels& plan_kernels) override;
  bool offers_variants() const override { return false; }
  bool calls_functions() const override { return false; }
  void trace(const Assert&) override {}  // what a project calls prints nothing
  // There is no runtime: the program's own kernel is right for all matrices.
  SparseCall write_sparse_product(const Stm&) override { return {}; }

  std::string device_;
  std::vector<std::string> results_;  // what each is called as a parameter
  std::vector<Passing> passing_;
  std::map<Value, std::string> result_of_;        // the caller's memory, by the block that it stands for
  std::map<std::size_t, std::string> allocated_;  // the parameter for the sizes of a result, by the result
  std::set<Value> exchanged_;                     // blocks that loops and branches may exchange for others
  std::vector<Contraction> contractions_;
  bool has_temporaries_ = false, can_fail_ = false;
};

}  // namespace apl::lower
