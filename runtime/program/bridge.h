// context.h's function table over a Backend: what generated host code calls.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "runtime/backends/backend.h"

namespace apl::program {

class SparseOperands;

// A context and what stands behind its `state`. A diagnostic is kept beside the context's text, so that its code and
// location survive C. Blocks are counted, so that none is lost when an entry fails.
class Bridge {
 public:
  Bridge(std::unique_ptr<Backend> backend, const apl_location* locations);
  ~Bridge();
  Bridge(const Bridge&) = delete;
  Bridge& operator=(const Bridge&) = delete;

  Backend& backend() { return *backend_; }
  const Backend& backend() const { return *backend_; }
  apl_context* context() { return &context_; }

  // For which device plans are chosen, and where their texts are (may be null).
  struct Plans {
    apl_device device{};
    std::function<void(std::string)> log;
    const apl_lazy_kernel* lazy_kernels = nullptr;
  };
  void plans(Plans plans);
  // The program's; may be null.
  void constants(const apl_constant* constants) { constants_ = constants; }
  const apl_device& device() const { return plans_.device; }
  SparseOperands& sparse() { return *sparse_; }

  // Forgets the last error: a call begins.
  void clear_error();
  // Whether the end of an entry waits for its kernels. If not, what they find wrong is reported by `wait`, or by the
  // next call that waits.
  void wait_at_end(bool wait) { waits_ = wait; }
  Status wait();
  // The diagnostic of a call that ended with this status, not APL_SUCCESS.
  Diagnostic error(int status) const;
  Diagnostic error_inside(int status) const;

  Result<void*> allocate(std::int64_t bytes, const char* what);
  Status release(void* data);
  // All blocks allocated after the mark; the first failure is given.
  std::uint64_t mark() const { return next_; }
  Status release_since(std::uint64_t mark);
  // A block that a call allocated outlives it.
  void keep(const void* data);
  std::int64_t peak_bytes() const { return peak_bytes_; }
  std::int64_t launches() const { return launches_; }

  // When the block was allocated, as a number that no other has; nullopt for what is no block.
  std::optional<std::uint64_t> age_of(const void* data) const;
  std::int64_t bytes_of(const void* data) const;  // 0 for what is no block
  // Whether the block was there before the call.
  bool is_argument(std::uint64_t age) const { return age < call_; }
  // What `make` allocates outlives the call.
  int keeping(const std::function<int()>& make);
  // The status as an apl_status, with the context's text.
  int finish(const Status& status) { return finish(&context_, status); }

 private:
  static Bridge& of(apl_context* ctx) { return *static_cast<Bridge*>(ctx->state); }
  static int finish(apl_context* ctx, const Status& status);
  static int synchronise(apl_context* ctx);
  static int end_entry(apl_context* ctx);
  static apl_backend table_for(const Backend& backend);
  int fail(Diagnostic error, int status);

  // What was chosen for a kernel with the sizes of its last calls, and which of its plans spilled.
  struct Choices {
    std::vector<std::pair<apl_contraction, std::int32_t>> known;
    std::size_t next = 0;
    std::vector<unsigned char> spilled;
  };
  static int choose(apl_context* ctx, const apl_contraction* contraction, const apl_plan_set* set, std::int32_t* plan);
  Result<std::int32_t> choose(const apl_contraction& contraction, const apl_plan_set& set);
  // The same for the variants of a contraction.
  struct VariantChoices {
    struct Known {
      apl_contraction contraction;
      std::int64_t variant, splits;
    };
    std::vector<Known> known;
    std::size_t next = 0;
  };
  static int choose_variant(apl_context* ctx, const apl_contraction* const* contractions, const apl_variant_set* set,
                            int only, std::int64_t* variant, std::int64_t* splits);
  Status choose_variant(const apl_contraction* const* contractions, const apl_variant_set& set, int only,
                        std::int64_t& variant, std::int64_t& splits);
  Status load_kernel(const std::string& kernel);

  static int constant(apl_context* ctx, std::int32_t number, const apl_value** values);
  static int sparse_product(apl_context* ctx, const apl_sparse_product* product, std::int32_t* done);
  static int sparse_sddmm_product(apl_context* ctx, const apl_sparse_sddmm_product* sddmm, std::int32_t* done);
  static void sparse_work(apl_context* ctx);
  static int is_known_matrix(apl_context* ctx, const apl_known_matrix* matrix, const void* row_start,
                             const void* column, const void* values, std::int32_t* is_it);

  struct Block {
    std::int64_t bytes;
    std::uint64_t number;
    bool kept = false;
  };

  std::unique_ptr<Backend> backend_;
  apl_backend table_;
  apl_context context_{};
  std::optional<Diagnostic> error_;
  std::map<void*, Block> blocks_;
  Plans plans_;
  std::map<std::string, const char*> lazy_kernels_;  // texts that are not compiled yet
  std::set<std::string, std::less<>> loaded_;        // names of texts that came through the table
  std::map<const apl_plan_set*, Choices> choices_;
  std::map<const apl_variant_set*, VariantChoices> variants_;
  std::unique_ptr<SparseOperands> sparse_;
  const apl_constant* constants_ = nullptr;
  std::map<std::int32_t, std::vector<apl_value>> made_constants_;  // by number
  std::uint64_t next_ = 1, call_ = 1;                              // 0: of blocks that are kept
  bool keeping_ = false, waits_ = true;
  std::int64_t bytes_ = 0, peak_bytes_ = 0, launches_ = 0;
};

}  // namespace apl::program
