// The interpreter: runs the statements of one function at a time over two flat tables of values.
// Each group of operations has a file of its own beside this header.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/interpret.h"
#include "ir/interpret/error.h"
#include "ir/interpret/lifetimes.h"
#include "ir/interpret/memory.h"
#include "ir/interpret/order.h"

namespace apl::interpreter {

struct ColumnLambda;  // a lambda as columns, where it can be (columns.h)

// A value on its way from one name to another.
struct Datum {
  bool is_scalar = true;
  Scalar scalar;
  Array array;  // or a memory block
};

// The operations of scalars that a statement is: 1 or 0.
std::int64_t scalar_operations(const Op& op);

class Machine {
 public:
  Machine(const Module& module, const InterpretOptions& options);

  std::vector<HostValue> run_entry(const Function& function, const std::vector<HostValue>& arguments);

 private:
  struct ScremaRun;  // screma.h

  // The values of a function that runs.
  struct Frame {
    const Function* function = nullptr;
    const FunctionLifetimes* lifetimes = nullptr;
    std::vector<Scalar> scalars;  // by value id
    std::vector<Array> arrays;    // by value id; blocks too
  };

  // The inblock index (thread) that runs: what private results are read by.
  struct Thread {
    bool active = false;
    std::vector<std::int64_t> bounds;
    std::vector<std::int64_t> at;
  };

  // ---- frames and bodies (machine.cpp)
  Frame make_frame(const Function& function);
  std::vector<Datum> call(const Function& function, const std::vector<Datum>& sizes, std::vector<Datum> params);
  void run(const Body& body, const BodyLifetimes& lifetimes);
  void tick(std::int64_t steps = 1);
  void note_terms(const std::vector<Operand>& accumulators, std::int64_t terms) const;
  void check_kept(Value written, Value kept);
  const BodyLifetimes& lifetimes_of(const Body& body) const { return frame_->lifetimes->bodies.at(&body); }

  // ---- entries (entry.cpp)
  std::vector<Datum> bind_arguments(const Function& function, const std::vector<HostValue>& arguments,
                                    std::vector<Datum>& sizes);
  Datum from_host(const HostValue& value);
  HostValue to_host(const Datum& datum, std::size_t position);
  void trace(const Assert& op);

  // ---- values (values.cpp)
  const Type& type(Value v) const { return frame_->function->values.type(v); }
  const std::string& name(Value v) const { return frame_->function->values.name(v); }
  bool is_scalar(Value v) const { return frame_->lifetimes->is_scalar[v.id]; }
  Scalar& slot(Value v) { return frame_->scalars[v.id]; }
  const Scalar& scalar(const Operand& x) const { return x.is_value() ? frame_->scalars[x.value().id] : x.constant(); }
  std::int64_t integer(const Poly& poly) const;
  std::vector<std::int64_t> sizes(const std::vector<Poly>& polys, std::string_view what);  // none negative
  // An array that may be read: it exists, and is not private to threads.
  const Array& readable(Value v);
  const Array& any_array(Value v);
  Array take(Value v);     // moved out if the statement that runs is its last reader
  Array consume(Value v);  // moved out in any case
  Datum read(const Operand& x);
  Datum take_datum(const Operand& x);
  Datum take_result(const Body& body, const BodyLifetimes& lifetimes, std::size_t k);
  Scalar element(Value array_name, const Array& array, std::int64_t position);

  // ---- binding (bind.cpp)
  void set(Value v, const Scalar& scalar) { frame_->scalars[v.id] = scalar; }
  // Where the type of `v` says that it lies (memory stage).
  Array bound(Value v);
  // The array whose elements the running statement is about to write: in its block, or fresh.
  Array destination(Value v, Fill fill = Fill::zero);
  // `v` is what `array` is, or at the memory stage: what lies where the type of `v` says.
  void alias(Value v, Array array);
  void bind(Value v, Datum datum);
  // What loops, branches and reductions yield (control.cpp).
  Datum on_its_way(Datum datum, const Operand& from, Value target, bool is_exchanged = false);
  bool is_exchanged(const Loop& op, const Operand& result) const;
  void arrive(Value target, Datum datum);
  void assign(Value v, Array array) { frame_->arrays[v.id] = std::move(array); }
  void check_shape(Value v, const Array& array);
  // A row or element of `to` becomes the operand's value.
  void write_row(const Array& to, std::size_t outer, std::int64_t position, const Operand& value);
  void copy_into(const Array& from, const Array& to);
  // A version of the array that may be written: itself where nobody else sees its storage.
  Array owned(Array array);

  // ---- operations
  void exec(const Stm& stm, const Use& op);
  void exec(const Stm& stm, const Unary& op);
  void exec(const Stm& stm, const Binary& op);
  void exec(const Stm& stm, const Compare& op);
  void exec(const Stm& stm, const Convert& op);
  void exec(const Stm& stm, const SizeExpr& op);
  void exec(const Stm& stm, const Index& op);
  void exec(const Stm& stm, const Update& op);
  void exec(const Stm& stm, const Iota& op);
  void exec(const Stm& stm, const Replicate& op);
  void exec(const Stm& stm, const Scratch& op);
  void exec(const Stm& stm, const Copy& op);
  void exec(const Stm& stm, const Rearrange& op);
  void exec(const Stm& stm, const Manifest& op);
  void exec(const Stm& stm, const Reshape& op);
  void exec(const Stm& stm, const ArrayLit& op);
  void exec(const Stm& stm, const Assert& op);
  void exec(const Stm& stm, const If& op);
  void exec(const Stm& stm, const Choose& op);
  void run_branch(const Stm& stm, const Body& body);
  void exec(const Stm& stm, const Loop& op);
  void exec(const Stm& stm, const Apply& op);
  std::vector<Value>::const_iterator bind_result_sizes(const Stm& stm, const Function& callee,
                                                       const std::vector<Datum>& results);
  void exec(const Stm& stm, const GetSize& op);
  void exec(const Stm& stm, const Screma& op);
  void exec(const Stm& stm, const Scatter& op);
  void exec(const Stm& stm, const Derivative& op);
  void exec(const Stm& stm, const SegOp& op);
  void exec(const Stm& stm, const SharedArray& op);
  void exec(const Stm& stm, const CopyTile& op);
  void exec(const Stm& stm, const TileContract& op);
  void exec(const Stm& stm, const Alloc& op);
  void exec(const Stm& stm, std::monostate op);

  // ---- what statements cost (work.cpp)
  void count_read(std::int64_t elements) {
    if (work_ != nullptr) work_->read += elements;
  }
  void count_written(std::int64_t elements) {
    if (work_ != nullptr) work_->written += elements;
  }
  void count_allocated(std::int64_t elements) {
    if (work_ != nullptr) work_->allocated += elements;
  }
  void count_copied(const Array& from);                 // to a fresh array
  void count_copy(const Array& from, const Array& to);  // nothing where both are one place
  void count_lanes(const Body& body, std::int64_t times);
  void count_columns(const ScremaRun& run, std::int64_t done);
  std::int64_t elements_in_block(Value block, std::int64_t bytes);

  // ---- parts of operations
  Array sliced(Value name, const Array& array, const std::vector<DimIndex>& dims, bool checked);
  void check_private(Value name, const Array& array, const std::vector<DimIndex>& dims);
  struct Streams;   // streams.h
  class ColumnRun;  // screma_columns.cpp
  // Runs what it can in columns, and says how many of the first indices that were.
  std::int64_t run_in_columns(ScremaRun& run, std::int64_t total);
  ColumnLambda& columns_of(const std::vector<Value>& indices, const Lambda& lambda);
  struct ScatterRun;   // scatter.cpp
  struct Contraction;  // tile_contract.cpp
  void write_result(const SegOp& op, std::size_t k, const Array& to, const std::vector<std::int64_t>& at);
  void write_regtile(const KernelResult& result, const Array& tile, const Array& to,
                     const std::vector<std::int64_t>& at);

  const Module& module_;
  const InterpretOptions& options_;
  Random random_;
  Memory memory_;
  Frame* frame_ = nullptr;
  const StmLifetimes* stm_lifetimes_ = nullptr;
  Thread thread_;
  bool in_block_ = false;
  int depth_ = 0;
  WorkCount* const counting_;                          // null: nothing is counted
  Work* work_ = nullptr;                               // of the statement that runs; null likewise
  std::unordered_map<const Storage*, Array> origins_;  // of arrays that are taken along, while work is counted
  std::vector<int> block_widths_;                      // by value id: bytes of the elements in a block
  const Function* block_widths_function_ = nullptr;
  std::uint64_t ticks_ = 0;
  std::unordered_map<std::string_view, FunctionLifetimes> lifetimes_;  // by function name
  std::unordered_map<const Body*, std::shared_ptr<ColumnLambda>> columns_;
};

// A scalar as it stands in a message: without its type.
std::string plain_text(const Scalar& scalar);

}  // namespace apl::interpreter
