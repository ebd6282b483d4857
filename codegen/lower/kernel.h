// Lowering of one kernel from memory-stage IR to the kernel language: the kernel, and what its parts know of it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "codegen/lower/unit.h"

namespace apl::lower {

// The space of a kernel: a SegMap, or a Scatter at host level.
SegOp kernel_frame(const Stm& stm);

// What a block of memory is called in text: as the array that it was made for.
std::string block_name(const ValueTable& values, Value block);

class MainloopPart;
class Scatters;
class Team;
class VectorLoops;

// One kernel: a SegMap or a Scatter at host level. Here are its frame, its buffers, and statements of one thread and of
// a block; what has ideas of its own is a part.
class Kernel {
  friend class KernelPart;
  using Block = kernel::Block;
  using ExprPtr = kernel::ExprPtr;

 public:
  Kernel(Unit& unit, const Stm& stm);
  ~Kernel();
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  // How many blocks it is compiled for on a multiprocessor; 0: as many as the compiler likes.
  void set_resident(std::int64_t blocks) { function_.resident = blocks; }
  kernel::Function run();
  // Not the kernel, but a function that kernels call, whose code is the body of the kernel's statement.
  kernel::Function run_called(const std::string& name);

  // What the host passes, in order: arrays' blocks, then scalars.
  const std::vector<Value>& blocks() const { return blocks_; }
  const std::vector<Value>& scalars() const { return scalar_params_; }
  bool can_fail() const { return can_fail_; }
  bool sees_failed() const { return sees_failed_; }
  // Memory for threads' arrays, each of that shape; arguments after the scalars. Where the kernel runs in parts, the
  // first thread of the launch and how many there is memory for come behind.
  struct ThreadMemory {
    std::string name;
    ScalarType element{};
    std::vector<Poly> shape;
    bool may_lack = false;  // not every thread makes the array: one that does looks whether there is memory
  };
  // How many blocks the host starts, if not one for each index of the space; null: one for each.
  ExprPtr tile_loop_blocks(const SegOp& op, Values& host) const;
  const std::vector<ThreadMemory>& scratch() const { return scratch_; }
  bool runs_in_parts() const { return runs_in_parts_; }
  // Bytes of zeros for what blocks publish, and where in them each argument behind the scratch begins.
  struct Zeros {
    Poly bytes;
    std::vector<std::int64_t> offsets;
  };
  const std::optional<Zeros>& zeros() const { return zeros_; }

  struct Buffer {
    std::string name;
    ScalarType element{};
    kernel::BufferKind kind{};
    std::int64_t count = 0;    // of one thread's copy, for thread blocks
    bool expanded = false;     // C: one copy a thread lies behind the other
    bool interleaved = false;  // CUDA: element k of all threads lies together
  };

 private:
  struct Bound {
    std::vector<Poly> shape;
    Location location;
  };

  void collect_params();
  void see_failed();
  void run_thread(const SegOp& op, const Scatter* scatter = nullptr);
  void run_block(const SegOp& op);

  // statements
  void body(const Body& body, Block& out);
  void statement(const Stm& stm, Block& out);
  void scalar(const Stm& stm, ExprPtr value, Block& out);
  void index(const Index& op, const Stm& stm, Block& out);
  void loop(const Loop& op, const Stm& stm, Block& out);
  void branch(const If& op, const Stm& stm, Block& out);
  void call_function(const Apply& op, const Stm& stm, Block& out);
  void screma(const Screma& op, const Stm& stm, Block& out);
  void stream(const std::vector<Value>& inputs, const std::vector<Value>& params, const std::vector<Value>& indices,
              Location location, Block& out);
  void around_loops(const std::vector<Value>& indices, const std::vector<Poly>& widths, Block inner, Block& out);
  void check_divisor(const Binary& op, const Stm& stm, Block& out);
  bool divides_uniformly(const Binary& op) const;
  void fail(int code, const Stm& stm, std::string message, std::vector<ExprPtr> numbers, Block& out);
  void fold(const ReduceOp& reduce, const std::vector<Value>& accumulators, const std::vector<Operand>& operands,
            Location location, Block& out);
  void fold_partial(const Screma& op, const std::vector<Value>& accumulators,
                    const std::function<ExprPtr(std::size_t)>& partial, Location location, Block& out);

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

  // block level
  bool is_shared(Value array) const;
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
  bool runs_in_parts_ = false;
  std::optional<Zeros> zeros_;
  std::set<Value> growing_;  // blocks of arrays whose size a loop or branch decides
  Block heap_;               // slots of threads' arrays on the heap
  ExprPtr flat_, count_;     // CUDA, thread level: this thread and how many there are
  bool can_fail_ = false;
  bool sees_failed_ = false;
  bool block_level_ = false;
  ExprPtr flat_thread_;  // C, inside a T-space: which thread's copy of an expanded buffer
  std::int64_t threads_ = 256;
  std::int64_t shared_bytes_ = 0;
  std::string leave_label_;  // C: where a failed check goes on
  std::map<std::vector<std::int64_t>, std::vector<ExprPtr>> thread_index_cache_;
  std::set<const Stm*> barriers_;
  const std::unique_ptr<Scatters> scatters_;
  const std::unique_ptr<VectorLoops> vector_loops_;
  std::unique_ptr<Team> team_;              // GPUs: if a team of threads does what is one thread's elsewhere
  std::unique_ptr<MainloopPart> mainloop_;  // if the kernel has the mainloop
};

// A part of a kernel's lowering: what it shares with the kernel, and what it may ask of it. What no other part needs to
// know is the part's own.
class KernelPart {
 protected:
  using Block = kernel::Block;
  using ExprPtr = kernel::ExprPtr;

  explicit KernelPart(Kernel& kernel);
  ~KernelPart() = default;

  Kernel::Buffer& buffer(Value block, Location location) { return kernel_.buffer(block, location); }
  ExprPtr element_of(Value array, const std::vector<ExprPtr>& indices, Location location) {
    return kernel_.element_of(array, indices, location);
  }
  void store(Value array, const std::vector<ExprPtr>& indices, const Operand& value, Location location, Block& out) {
    kernel_.store(array, indices, value, location, out);
  }
  std::vector<ExprPtr> unflatten(const std::string& flat, const std::vector<ExprPtr>& sizes,
                                 const std::vector<std::string>& names, kernel::CType type, Block& out) {
    return kernel_.unflatten(flat, sizes, names, type, out);
  }
  void for_elements(const std::vector<Poly>& shape, Block& out,
                    const std::function<void(const std::vector<ExprPtr>&, Block&)>& fill) {
    kernel_.for_elements(shape, out, fill);
  }
  void yield_value(const Operand& from, Value target, Location location, Block& out) {
    kernel_.yield_value(from, target, location, out);
  }

  void body(const Body& body, Block& out) { kernel_.body(body, out); }
  void statement(const Stm& stm, Block& out) { kernel_.statement(stm, out); }
  void stream(const std::vector<Value>& inputs, const std::vector<Value>& params, const std::vector<Value>& indices,
              Location location, Block& out) {
    kernel_.stream(inputs, params, indices, location, out);
  }
  ExprPtr layout_position(const Lmad& layout, const std::vector<ExprPtr>& indices) {
    return kernel_.layout_position(layout, indices);
  }
  void around_loops(const std::vector<Value>& indices, const std::vector<Poly>& widths, Block inner, Block& out) {
    kernel_.around_loops(indices, widths, std::move(inner), out);
  }
  void fold(const ReduceOp& reduce, const std::vector<Value>& accumulators, const std::vector<Operand>& operands,
            Location location, Block& out) {
    kernel_.fold(reduce, accumulators, operands, location, out);
  }
  std::vector<ExprPtr> inline_lambda(const Lambda& lambda, const std::vector<ExprPtr>& arguments, Block& out) {
    return kernel_.inline_lambda(lambda, arguments, out);
  }

  // What the scatter's function gave goes to where it says, while other threads do the same.
  void scatter_rows(const Scatter& op, const Stm& stm, Block& out);
  void scatter_scalars(const Scatter& op, const Stm& stm, const ExprPtr& at, const std::vector<ExprPtr>& values,
                       Block& out);

  bool is_shared(Value array) const { return kernel_.is_shared(array); }
  void declare_shared(const Stm& stm, const Alloc& alloc, Block& out) { kernel_.declare_shared(stm, alloc, out); }
  kernel::Stmt shared_array(const std::string& name, kernel::CType type, std::int64_t count) {
    return kernel_.shared_array(name, type, count);
  }

  // Whether positions made of these are multiples of `width` elements, as a condition on the sizes; null: always.
  ExprPtr aligned(const std::vector<Poly>& positions, std::int64_t width);

  Unit& unit_;
  const Stm& stm_;
  Values& values_;
  kernel::Function& function_;
  const std::set<Value>& outside_;
  std::vector<Kernel::ThreadMemory>& scratch_;
  std::optional<Kernel::Zeros>& zeros_;
  std::int64_t& threads_;
  std::int64_t& shared_bytes_;

 private:
  Kernel& kernel_;
};

// The mainloop of a block-level contraction on GPUs (codegen/contraction): a kernel that has one leaves to it what the
// contraction's statements are, which are tiles and loops over them elsewhere.
class MainloopPart {
 public:
  virtual ~MainloopPart() = default;

  virtual void tile_loop(const SegOp& op, kernel::Block& out) = 0;  // the kernel's body
  virtual kernel::ExprPtr tile_loop_blocks(const SegOp& op, Values& host) const = 0;
  virtual std::int64_t mainloop_stages(Value block) const = 0;  // how many copies of a block in shared memory there are
  virtual bool is_mainloop(const Loop& loop) const = 0;
  virtual void mainloop_steps(const SegOp& op, const Stm& stm, kernel::Block& out) = 0;
  virtual void mainloop_copy(const CopyTile& op, Value copied, const kernel::ExprPtr& stage, kernel::Block& out) = 0;
  virtual void mainloop_contract(const TileContract& op, const Stm& stm, const kernel::ExprPtr& stage,
                                 kernel::Block& out) = 0;
  virtual void mainloop_epilogue(const SegOp& op, const Screma& each, const Stm& stm, kernel::Block& out) = 0;
  virtual void finish_copies(kernel::Block& out) = 0;
};
// Null if the kernel has none.
std::unique_ptr<MainloopPart> make_mainloop(Kernel& kernel, const SegOp& op);

// Packed contractions on CPUs (codegen/contraction/packed*.cpp): the kernel takes memory as a last argument, and says
// how much it needs where that is null.
bool is_packed(const Unit& unit, const SegOp& op);
void run_packed(Kernel& kernel, const SegOp& op);

}  // namespace apl::lower
