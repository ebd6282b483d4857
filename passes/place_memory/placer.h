// Walks one function from kernel to memory stage: binds every array to a block through an index function.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "ir/builder.h"
#include "ir/reads.h"

namespace apl::memory {

// Throws nothing: what cannot be placed ends in `error()`.
class Placer {
 public:
  Placer(const Function& function, std::string file);
  Result<Function> run();

 private:
  enum class Level : std::uint8_t { host, thread, block, inblock };

  BodyPtr body(const Body& source, Level level);
  void statement(const Stm& stm, Level level, std::vector<Stm>& out);
  void kernel(const SegOp& op, Stm stm, Level level, std::vector<Stm>& out);
  static Lmad kernel_layout(const Type& type, std::size_t space, const Stm& stm);
  void build_in_place(const SegOp& op, const Stm& stm, std::vector<Stm>& stms);
  void build_parts_in_place(const std::vector<Operand>& results, std::vector<Stm>& stms);
  void scalar_kernel(const SegOp& op, const Stm& stm, std::vector<Stm>& out);
  void loop(const Loop& op, const Stm& source, Level level, std::vector<Stm>& out);
  void tile_loop(const Loop& op, Stm stm, Level level, std::vector<Stm>& out);
  void move_private(Value from, Value to, std::vector<Stm>& out);
  static Lmad shared_layout(const Type& type, std::size_t space);
  void branch(const Stm& source, Level level, std::vector<Stm>& out);
  std::vector<Value> branch_targets(const Stm& source, const std::vector<BodyPtr>& bodies, Level level) const;
  void call(const Apply& op, Stm stm, Level level, std::vector<Stm>& out);
  void screma(const Screma& op, Stm stm, Level level, std::vector<Stm>& out);
  void scatter(const Scatter& op, Stm stm, Level level, std::vector<Stm>& out);
  void bind_rows(const std::vector<Value>& indices, const std::vector<Value>& inputs, const std::vector<Value>& rows);
  void bind_operands(const ReduceOp& op, std::size_t first, std::vector<Stm>& out);
  void update(const Update& op, const Stm& stm, Level level, std::vector<Stm>& out);
  void array_of_rows(const ArrayLit& op, const Stm& stm, std::vector<Stm>& out);
  // The body of a loop, branch or operator, whose array results go to where `targets` lie (an invalid one: to no
  // known block). What would be overwritten before it is read, or is scattered at host level, is copied first.
  BodyPtr yielding_body(const Body& source, Level level, const std::vector<Value>& targets);
  // Whether a result of a body may stay in the block where it lies, which is handed on.
  using MayHandOn = std::function<bool(Value result, Value target)>;
  BodyPtr resolved(const BodyPtr& placed, Level level, const std::vector<Value>& targets,
                   const MayHandOn& may_hand_on = {});
  bool may_take_turn(Value array, Value target, const std::vector<Value>& targets) const;
  std::set<Value> blocks_made_in(const Body& placed) const;
  Value moving_block(Space space, Value array);
  static bool mentions_any(const Type& type, const std::vector<Value>& values);
  // Before each array that moves, its block: where sizes change, blocks are parameters and results beside their arrays.
  template <class T>
  std::vector<T> with_blocks(const std::vector<T>& items, const std::vector<bool>& moves) const {
    std::vector<T> result;
    for (std::size_t k = 0; k < items.size(); ++k) {
      if (moves[k]) result.push_back(binding(value_of(items[k]))->block);
      result.push_back(items[k]);
    }
    return result;
  }
  static Value value_of(Value v) { return v; }
  static Value value_of(const Operand& x) { return x.value(); }
  void tile_sources(const Body& body, std::vector<Stm>& out);
  // Whether the block in which the array lies may become that of another array: one of this level's own, which it
  // fills, and nothing in it is `read_again`. Where blocks `move`, it may be the block of an array whose size changes.
  bool gives_up_block(Value array, Level level, bool moves, const std::function<bool(Value)>& read_again) const;
  void view(const Stm& stm, Value source, const Lmad::Outcome& outcome, std::vector<Stm>& out);
  void fresh(const Stm& stm, Level level, std::vector<Stm>& out);
  void results(std::vector<Stm>& stms, std::vector<Operand>& results);

  Value allocate(Space space, Poly bytes, const std::string& hint, std::vector<Stm>& out);
  void bind(Value array, Value block, Lmad layout);
  void bind_like(Value array, Value other);  // the same block and layout: in place
  const MemoryBinding* binding(Value array) const;
  Poly bytes_of(const Type& type, const Poly& elements) const;
  // A row-major copy of `array` in a block of its own; at host level made by a SegMap.
  Value copied(Value array, Level level, std::vector<Stm>& out);
  // `target`, which lies somewhere already, gets the elements of `array`: a SegMap at host level.
  void copy_into(Value target, Value array, Location location, std::vector<Stm>& out);
  bool is_dense(Value array) const;
  void fail(const Stm& stm, const std::string& what);

  const Function& source_;
  std::string file_;
  Function result_;
  std::optional<Diagnostic> error_;
  std::unordered_map<Value, Value> tiled_;  // row-major copies of arrays that this kernel takes tiles of
  std::unordered_map<Value, std::vector<SegDim>> private_to_;  // by block: the threads that have a copy each
  const Reads reads_;                                          // of the source
  std::unordered_map<Value, Poly> bytes_;                      // of blocks that are allocated
  std::set<Value> moving_;                                     // blocks that are values, of arrays whose sizes change
  std::unordered_map<Value, std::vector<Value>> bound_to_;     // by block; arrays that were moved since stay
};

}  // namespace apl::memory
