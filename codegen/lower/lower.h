// Lowering of kernels from memory-stage IR to the kernel language.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "codegen/codegen.h"
#include "codegen/kernel/kernel_language.h"
#include "runtime/backends/context.h"
#include "runtime/names.h"

namespace apl::lower {

inline kernel::ExprPtr plus(kernel::ExprPtr a, kernel::ExprPtr b) { return kernel::add(std::move(a), std::move(b)); }

// What code generation cannot do; caught in generate().
struct Unsupported {
  Diagnostic diagnostic;
};
[[noreturn]] void unsupported(Location location, std::string what);

// A check that a kernel makes, or a call that was inlined around checks, for apl_locations[].
struct CheckLocation {
  Location location;
  int call = 0;         // by which it came where it is: one more than the number of its location
  std::string message;  // empty for a call
};

// What all entries of a file share.
struct FileScope {
  explicit FileScope(const Module& module) : calls(module.calls), known(module.known) {}

  const std::vector<Location>& calls;
  const std::vector<KnownMatrix>& known;
  std::optional<ProxyOptions> proxy;  // of products with known matrices
  std::vector<CheckLocation> locations;
  NameScope names;

  // One more than the number of the location of a call that was inlined, 0 for none.
  int call(std::uint32_t number);

 private:
  std::unordered_map<std::uint32_t, int> call_locations_;
};

struct CopiedTile;
struct Mainloop;
struct MicroKernel;
struct MnDim;
struct OperandTile;
struct PackedKernel;

// What all kernels and the host code of one entry share.
class Unit {
 public:
  Unit(const Function& function, Target target, const std::map<std::string, std::int64_t>& parameters, FileScope& file);

  const Function& function;
  const Target target;

  const std::string& name(Value value);  // a C identifier, one a value
  // A C identifier of its own, which can have the endings too.
  std::string fresh(const std::string& hint, std::initializer_list<std::string_view> endings = {}) {
    return names_in_use_.add(hint, endings);
  }
  // The same for what is seen in the whole file.
  std::string fresh_in_file(const std::string& hint, std::initializer_list<std::string_view> endings = {}) {
    return names_in_use_.add(hint, endings, &file_.names);
  }
  std::optional<std::int64_t> tile(Value value) const;  // the number of a get_size, if it is one
  const std::map<Value, std::int64_t>& tiles() const { return tiles_; }
  void set_tile(Value value, std::int64_t number) { tiles_[value] = number; }
  void forget_tile(Value value) { tiles_.erase(value); }  // it is chosen when the program runs
  std::optional<std::int64_t> fold(const Poly& p) const;  // the number, if it is made of tile numbers alone
  std::int64_t constant(const Poly& p, const std::string& what) const;  // the same, or unsupported
  int add_check(Location location, std::string message);
  int call(const Location& location) { return file_.call(location.call); }
  const std::optional<ProxyOptions>& proxy() const { return file_.proxy; }
  const KnownMatrix* known(const std::string& key) const;  // null if the module does not have it
  const Dialect& dialect() const { return *target.dialect; }

 private:
  std::map<Value, std::int64_t> tiles_;
  std::unordered_map<Value, std::string> names_;
  NameScope names_in_use_;
  FileScope& file_;
};

// Expressions over a unit's values; `scalars` overrides what a value is called (lambda parameters, thread indices).
class Values {
 public:
  Values(Unit& unit, const Dialect& dialect) : unit(unit), dialect(dialect) {}

  Unit& unit;
  const Dialect& dialect;  // of the text that they stand in: host code is C whatever the target
  std::unordered_map<Value, kernel::ExprPtr> scalars;

  kernel::ExprPtr value(Value v);
  kernel::ExprPtr operand(const Operand& x);
  kernel::ExprPtr constant(const Scalar& x);
  kernel::ExprPtr poly(const Poly& p);
  // The scalar operation as an expression.
  kernel::ExprPtr unary(UnaryOp op, ScalarType type, kernel::ExprPtr x);
  kernel::ExprPtr binary(BinaryOp op, ScalarType type, kernel::ExprPtr x, kernel::ExprPtr y);
  kernel::ExprPtr compare(CompareOp op, ScalarType type, kernel::ExprPtr x, kernel::ExprPtr y);
  kernel::ExprPtr convert(const Convert& op, ScalarType from, kernel::ExprPtr x);

 private:
  kernel::ExprPtr factor(const Factor& f);
  kernel::ExprPtr typed_call(const std::string& name, ScalarType type, std::vector<kernel::ExprPtr> args);
};

// The capacity of the failure cell, and the 0 behind them in C.
constexpr std::size_t kMaxFailureNumbers = APL_FAILURE_VALUES - 1;

// A condition under which an index or slice is wrong, and what to say then: `%lld` stands for the next number.
struct BoundsCheck {
  kernel::ExprPtr outside;
  std::string message;
  std::vector<kernel::ExprPtr> numbers;
};
// Empty for no dims.
std::vector<BoundsCheck> bounds_checks(Values& values, const Type& type, const std::vector<DimIndex>& dims);

// The space of a kernel: a SegMap, or a Scatter at host level.
SegOp kernel_frame(const Stm& stm);

// What a block of memory is called in text: as the array that it was made for.
std::string block_name(const ValueTable& values, Value block);

// One kernel: a SegMap or a Scatter at host level.
class Kernel {
  using Block = kernel::Block;
  using ExprPtr = kernel::ExprPtr;

 public:
  Kernel(Unit& unit, const Stm& stm);
  kernel::Function run();

  // What the host passes, in order: arrays' blocks, then scalars.
  const std::vector<Value>& blocks() const { return blocks_; }
  const std::vector<Value>& scalars() const { return scalar_params_; }
  bool can_fail() const { return can_fail_; }
  // Memory for threads' arrays, each of that shape; arguments after the scalars.
  struct ThreadMemory {
    std::string name;
    ScalarType element{};
    std::vector<Poly> shape;
    bool may_lack = false;  // not every thread makes the array: one that does looks whether there is memory
  };
  // How many blocks the host starts, if not one for each index of the space.
  ExprPtr tile_loop_blocks(const SegOp& op, Values& host);
  const std::vector<ThreadMemory>& scratch() const { return scratch_; }

 private:
  struct Buffer {
    std::string name;
    ScalarType element{};
    kernel::BufferKind kind{};
    std::int64_t count = 0;    // of one thread's copy, for thread blocks
    bool expanded = false;     // C: one copy a thread lies behind the other
    bool interleaved = false;  // CUDA: element k of all threads lies together
  };

  struct Bound {
    std::vector<Poly> shape;
    Location location;
  };

  void collect_params();
  void run_thread(const SegOp& op, const Scatter* scatter = nullptr);
  void run_block(const SegOp& op);

  // statements
  void body(const Body& body, Block& out);
  void statement(const Stm& stm, Block& out);
  void scalar(const Stm& stm, ExprPtr value, Block& out);
  void index(const Index& op, const Stm& stm, Block& out);
  void loop(const Loop& op, const Stm& stm, Block& out);
  void branch(const If& op, const Stm& stm, Block& out);
  void screma(const Screma& op, const Stm& stm, Block& out);
  void stream(const std::vector<Value>& inputs, const std::vector<Value>& params, const std::vector<Value>& indices,
              Location location, Block& out);
  void around_loops(const std::vector<Value>& indices, const std::vector<Poly>& widths, Block inner, Block& out);
  void check_divisor(const Binary& op, const Stm& stm, Block& out);
  void fail(int code, const Stm& stm, std::string message, std::vector<ExprPtr> numbers, Block& out);
  void fold(const ReduceOp& reduce, const std::vector<Value>& accumulators, const std::vector<Operand>& operands,
            Location location, Block& out);

  // arrays of threads (codegen/lower/arrays.cpp)
  Buffer thread_buffer(Value block);
  void thread_block(const Stm& stm, const Alloc& alloc, Block& out);
  bool array_operation(const Stm& stm, Block& out);
  void for_elements(const std::vector<Poly>& shape, Block& out,
                    const std::function<void(const std::vector<ExprPtr>&, Block&)>& fill);
  void copy_elements(Value target, Value source, Location location, Block& out);
  void open_slot(const Buffer& buffer);
  void grow(const Buffer& buffer, const std::vector<Poly>& shape, Location location, Block& out);
  Bound array_in(Value block, const Poly& bytes, std::int64_t width) const;
  void growing_block(Value block);
  void yield_value(const Operand& from, Value target, Location location, Block& out);
  void check_dims(Value array, const std::vector<DimIndex>& dims, const Stm& stm, Block& out);
  std::vector<ExprPtr> inline_lambda(const Lambda& lambda, const std::vector<ExprPtr>& arguments, Block& out);

  // scatter and histogram (codegen/lower/scatter.cpp)
  void scatter(const Scatter& op, const Stm& stm, Block& out);
  void scatter_in_block(const Scatter& op, const Stm& stm, Block& out);
  bool is_shared(Value array) const;
  kernel::Stmt for_indices_of_block(const std::string& name, const ExprPtr& bound, Block inner);
  void declare_locks(Block& out);
  void write_block_rows(const SegOp& op, const Stm& stm, Block& out);
  kernel::Stmt scattered(const Stm& stm, Value target, const std::vector<ExprPtr>& at, ExprPtr value);
  void write_rows(const Scatter& op, const Stm& stm, bool parallel, Block& out);
  void fold_rows(const Scatter& op, const Stm& stm, const std::vector<ExprPtr>& at, Block& out);
  void fold_atomically(const Scatter& op, const Stm& stm, const std::vector<ExprPtr>& at, Block& out);

  // block level
  void declare_shared(const Stm& stm, const Alloc& alloc, Block& out);
  kernel::Stmt shared_array(const std::string& name, kernel::CType type, std::int64_t count);
  std::vector<ExprPtr> split(const ExprPtr& flat, const std::vector<Poly>& bounds, Block& out);
  void inblock(const SegOp& op, const Stm& stm, Block& out);
  void copy_tile(const CopyTile& op, const Stm& stm, Block& out);
  void copy_rows(const CopyTile& op, const Stm& stm, const std::vector<std::int64_t>& extents, std::size_t rows,
                 Block& out);
  void tile_contract(const TileContract& op, const Stm& stm, Block& out);
  void write_results(const SegOp& op, Block& out);
  void write_regtiles(const SegOp& op, const Stm& stm, Block& out);
  void write_lines(const SegOp& op, const Stm& stm, const std::vector<ExprPtr>& thread,
                   const std::vector<std::int64_t>& regs, Block& out);

  // teams of threads that share reductions, on GPUs (codegen/lower/team.cpp)
  void run_team(const SegOp& op);
  void share(const Screma& op, const Stm& stm, Block& out);
  void fold_with(const Screma& op, const std::vector<Value>& accumulators, const ExprPtr& before,
                 const std::function<ExprPtr(Value)>& take, Block& out, const ExprPtr& where = nullptr);
  void share_scan(const Screma& op, const Stm& stm, Block& out);
  Block fold_element(const Screma& op, const Stm& stm, const ExprPtr& at);
  Block fold_at_once(const Screma& op, const Stm& stm, const std::string& next, const ExprPtr& at);
  void append_fallible(const Screma& op, Block work, Block& out);
  void share_in_rounds(const Screma& op, const Stm& stm, Block& out);
  void share_in_tiles(const Screma& op, const Stm& stm, Block& out);
  void uniform_in_warp(const Screma& op, const std::string& number, Block& out);
  void fold_warp(const Screma& op, const std::vector<Value>& accumulators, bool in_any_order, Block& out);
  void fold_warps(const Screma& op, const std::vector<Value>& accumulators, Block& out);

  // teams that hold rows (codegen/lower/rows.cpp)
  void share_row(const Screma& op, const Stm& stm, Block& out);
  kernel::Stmt for_rounds(const std::string& round, Block body);
  kernel::Stmt for_elements_of_row(const std::string& round, const std::string& at, Block body);
  std::string hold_row(Value row, const std::string& hint, Block& out);
  void read_rows(const Screma& op, const Stm& stm, Block& out);
  void fold_in_order(const Screma& op, const std::vector<Value>& accumulators, const std::vector<std::string>& elements,
                     const std::vector<Value>& results, Block& out);
  void write_held_rows(const SegOp& op, const std::vector<ExprPtr>& indices, Block& out);

  // loops of a thread as vectors, on CPUs (codegen/lower/vector_loops.cpp)
  Poly without_divisions(const Poly& position) const;
  void sum_in_vectors(const Screma& op, const Stm& stm, std::size_t first_read, kernel::Stmt& loop) const;
  std::optional<Block> in_columns(const SegOp& op, const Block& work, const std::vector<std::string>& names,
                                  const std::vector<ExprPtr>& sizes);

  // block level, packed (codegen/contraction/packed*.cpp)
  // Whether the kernel takes memory as a last argument, and says how much it needs where that is null.
  bool is_packed(const SegOp& op) const;
  void run_packed(const SegOp& op);
  Block packed_head(const PackedKernel& packed);
  void packed_function(const PackedKernel& packed, const std::string& ending, std::string_view kind,
                       std::string_view list, Block code, std::string_view first = "");
  void packed_widths(const PackedKernel& packed, const std::string& ending, std::string_view kind,
                     std::string_view list, std::string_view arguments, std::string_view width,
                     std::span<const std::size_t> kernels);
  Poly packed_begin(const PackedKernel& packed, std::size_t operand);
  std::string packed_source(const PackedKernel& packed, std::size_t operand);
  kernel::CType packed_type(const PackedKernel& packed, std::size_t operand) const;
  void pack_panels(PackedKernel& packed, std::size_t s);
  void compute_packed(const PackedKernel& packed, std::size_t number);
  std::string micro_rows_of_m(MicroKernel& m, std::size_t k);
  void micro_elements(MicroKernel& m, std::size_t s);
  void micro_accumulators(MicroKernel& m);
  void micro_fetch_results(MicroKernel& m);
  void micro_dots(MicroKernel& m);
  void micro_vectors(MicroKernel& m);
  void micro_columns(MicroKernel& m);
  void combine_packed(const PackedKernel& packed);
  void store_packed(const PackedKernel& packed);
  void describe_packed(const PackedKernel& packed);

  // block level, mainloop (codegen/contraction)
  std::shared_ptr<Mainloop> make_mainloop(const SegOp& op);
  void add_operand_tile(Mainloop& mainloop, const Schedule::Operand& scheduled, const TileOperand& operand,
                        const CopyTile& copy);
  void mainloop_head(Block& out);
  void fill_mainloop_tables(const SegOp& op, std::size_t s, Block& out);
  ExprPtr mainloop_stage(Value block, const ExprPtr& stage);
  std::int64_t mainloop_stages(Value block) const;  // how many copies of a block in shared memory there are
  bool is_mainloop(const Loop& loop) const;
  void find_steps(Mainloop& mainloop, const Body& body);
  void tile_loop(const SegOp& op, Block& out);
  ExprPtr tile_loop_length(Values& values, const SegOp& op);
  ExprPtr mainloop_slot(std::size_t mn, const ExprPtr& m);
  Block mainloop_prefetch(const std::string& step, const ExprPtr& stage);
  bool mainloop_reads_no_pad(const CopyTile& op, Value copied);
  void mainloop_copy(const CopyTile& op, Value copied, const ExprPtr& stage, Block& out);
  ExprPtr mainloop_alignment(const CopyTile& op, const OperandTile& tile, std::int64_t width);
  ExprPtr aligned(const std::vector<Poly>& positions, std::int64_t width);
  void finish_copies(Block& out);
  void declare_matrix_copies(Block& out);
  void place_matrix_copies(Block& out);
  ExprPtr matrix_position(const OperandTile& tile, const ExprPtr& row, const ExprPtr& step);
  Block copy_matrix_tile(const CopyTile& op, const OperandTile& tile, const CopiedTile& copied);
  ExprPtr matrix_alignment(const CopyTile& op, const OperandTile& tile);
  ExprPtr alignment_variable(const CopyTile& op, const std::vector<Poly>& positions, std::int64_t width);
  Block doubles_product(const TileContract& op, const Stm& stm, const ExprPtr& stage, const std::vector<ExprPtr>& at);
  Block matrix_product(const TileContract& op, const Stm& stm, const ExprPtr& stage, const std::vector<ExprPtr>& at);
  void start_products(const Stm& stm, Block& out);
  void finish_products(const Stm& stm, Block& out);
  void on_sums(const char* function, const Stm& stm, Block& out);
  void mainloop_contract(const TileContract& op, const Stm& stm, const ExprPtr& stage, Block& out);
  void mainloop_steps(const SegOp& op, const Stm& stm, Block& out);
  void mainloop_epilogue(const SegOp& op, const Screma& each, const Stm& stm, Block& out);
  void mainloop_write(const SegOp& op, Block& out);
  ExprPtr aligned_results(const SegOp& op);
  void matrix_write(const SegOp& op, bool contiguous, Block& out);

  // Runs `fill` for every thread of a T-space: once with this thread's indices on CUDA, in loops in C.
  template <class Fill>
  void for_threads(const std::vector<std::int64_t>& space, const std::vector<std::string>& names, Block& out,
                   Fill&& fill);
  // Nested loops over numbers known now; dims of one element make no loop.
  template <class Fill>
  void for_registers(const std::vector<std::int64_t>& counts, const std::vector<std::string>& names, Block& out,
                     Fill&& fill);
  std::vector<ExprPtr> thread_indices(const std::vector<std::int64_t>& space, const std::vector<std::string>& names,
                                      Block& out);

  // arrays
  Buffer& buffer(Value block, Location location);
  ExprPtr element_of(Value array, const std::vector<ExprPtr>& indices, Location location);
  ExprPtr element_at(Value array, const Poly& position, Location location);
  ExprPtr element_flat(Value block, ExprPtr position, Location location);
  ExprPtr layout_position(const Lmad& layout, const std::vector<ExprPtr>& indices);
  void store(Value array, const std::vector<ExprPtr>& indices, const Operand& value, Location location, Block& out);
  std::vector<ExprPtr> unflatten(const std::string& flat, const std::vector<ExprPtr>& sizes,
                                 const std::vector<std::string>& names, kernel::CType type, Block& out,
                                 std::optional<kernel::CType> divided = {});

  Unit& unit_;
  const Stm& stm_;
  Values values_;
  kernel::Function function_;
  std::vector<Value> blocks_, scalar_params_;
  std::map<Value, Buffer> buffers_;
  std::map<Value, ScalarType> elements_;        // of every block, by what is bound to it
  std::map<Value, std::vector<Bound>> arrays_;  // that are bound to each block, in the order of the text
  std::set<Value> certain_;                     // blocks that every thread makes
  std::set<Value> outside_;                     // what the kernel is given
  std::vector<ThreadMemory> scratch_;
  std::set<Value> growing_;      // blocks of arrays whose size a loop or branch decides
  Block heap_;                   // slots of threads' arrays on the heap
  ExprPtr flat_, count_;         // CUDA, thread level: this thread and how many there are
  std::map<Value, Poly> sizes_;  // what those are that the kernel computes
  std::vector<Poly> read_;       // positions of the elements that are read by position
  bool can_fail_ = false;
  bool block_level_ = false;
  ExprPtr flat_thread_;  // C, inside a T-space: which thread's copy of an expanded buffer
  std::int64_t threads_ = 256;
  std::int64_t shared_bytes_ = 0;
  std::string leave_label_;  // C: where a failed check goes on
  std::map<std::vector<std::int64_t>, std::vector<ExprPtr>> thread_index_cache_;
  std::set<const Stm*> barriers_;
  std::string locks_;                   // CUDA: the block's, if an operator folds several values in shared memory
  std::shared_ptr<Mainloop> mainloop_;  // if the kernel has the mainloop
  Block mainloop_declarations_;         // of what is known at its start
  bool copies_pending_ = false;
  std::vector<kernel::Param> packed_params_;
  struct Team {
    const Stm* reduction = nullptr;  // that it shares; null: the kernel has no teams, or they hold rows
    std::string size, shift, lane;   // variables: its threads, the logarithm of their number, this thread's
    ExprPtr has_index;               // whether there is an index for it
    std::string width;               // variable: elements of the rows that it holds; empty: it holds none
  };
  Team team_;
  std::map<Value, std::string> rows_;  // that the team holds: a thread's elements
};

// Before which statements of a block's body a barrier is needed (codegen/lower/barriers.cpp); nullptr: before its
// results.
std::set<const Stm*> find_barriers(const SegOp& op, const ValueTable& values);

// Rounds of a loop over a chunk that are unrolled on GPUs: so many loads are on their way.
constexpr std::int64_t kRoundsAtOnce = 8;
inline kernel::ExprPtr number_of(std::int64_t n) { return kernel::literal(n); }
inline kernel::Stmt scope_of(kernel::Block body) {
  kernel::Stmt scope;
  scope.kind = kernel::Stmt::Kind::scope;
  scope.body = std::move(body);
  return scope;
}
// Whether a body has loops, reductions or maps.
bool has_loops(const Body& body);

// The whole entry: host function text, and what stands before it; kernels are appended.
struct HostText {
  std::string declarations, text;
  std::vector<kernel::Function> kernels;
  std::vector<kernel::Function> lazy_kernels;  // CUDA: kernels that are compiled when they are chosen
  std::vector<KernelInfo> infos;
  std::vector<ProgramParameter> parameters;
  bool has_plans = false;
};
HostText lower_entry(Unit& unit, const CodegenOptions& options);

// generate(), with `edit` called for each kernel before it is printed: for tests that break kernels on purpose.
using KernelEdit = std::function<void(kernel::Function&)>;
Result<ProgramText> generate_edited(const Module& module, Target target, const CodegenOptions& options,
                                    const KernelEdit& edit);

}  // namespace apl::lower
