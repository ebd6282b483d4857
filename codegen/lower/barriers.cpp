// Where a block needs barriers. Operations inside a block run one after the other for all threads (that is what an
// inblock SegMap means), but threads do not wait for each other without a barrier. Only shared memory is seen by other
// threads, so a barrier is needed before an operation exactly if it
//   - reads a shared block that was written since the last barrier,
//   - writes a shared block that was read or written since the last barrier.
// The sets of read and written blocks are carried through straight-line code; a branch joins its two ends; a loop is
// entered with the join of its entry and its own end, to a fixed point, so that hazards over the back edge count.
#include <utility>

#include "codegen/lower/lower.h"
#include "ir/walk.h"

namespace apl::lower {
namespace {

struct State {
  std::set<Value> read, written;
  bool operator==(const State&) const = default;
};

State join(State a, const State& b) {
  a.read.insert(b.read.begin(), b.read.end());
  a.written.insert(b.written.begin(), b.written.end());
  return a;
}

class Planner {
 public:
  explicit Planner(const ValueTable& values) : values_(values) {}

  State body(const Body& body, State state) {
    for (const Stm& stm : body.stms) state = statement(stm, std::move(state));
    return state;
  }
  // The rows that the block returns are read by all its threads.
  void results(const SegOp& op, const State& state) {
    for (std::size_t k = 0; k < op.results.size(); ++k) {
      const Operand& result = op.body->results[k];
      if (op.results[k].kind == KernelResult::Kind::regtile || !result.is_value()) continue;
      if (auto block = shared_block(result.value()); block && state.written.contains(*block)) before_.insert(nullptr);
    }
  }
  std::set<const Stm*> take() { return std::move(before_); }

 private:
  std::optional<Value> shared_block(Value array) const {
    const Type& type = values_.type(array);
    if (!type.memory || values_.type(type.memory->block).space != Space::shared) return std::nullopt;
    return type.memory->block;
  }

  State statement(const Stm& stm, State state) {
    if (const Loop* loop = get_if<Loop>(stm)) {
      // Barriers are recorded on the last walk alone: earlier states are smaller, and a barrier that they need
      // later in the body may be spared by one that the full state needs earlier.
      bool recording = std::exchange(recording_, false);
      State entry = state;
      for (State next = join(entry, body(*loop->body, entry)); !(next == entry);
           next = join(entry, body(*loop->body, entry)))
        entry = next;
      recording_ = recording;
      return join(state, body(*loop->body, entry));
    }
    if (const If* branch = get_if<If>(stm))
      return join(body(*branch->then_body, state), body(*branch->else_body, state));
    std::set<Value> reads, writes;
    if (const CopyTile* copy = get_if<CopyTile>(stm)) {
      if (auto block = shared_block(copy->target)) writes.insert(*block);
      if (auto block = shared_block(copy->source)) reads.insert(*block);
      for (const TileRead& read : copy->also)
        if (auto block = read.array ? shared_block(*read.array) : std::nullopt) reads.insert(*block);
    } else if (const TileContract* contract = get_if<TileContract>(stm)) {
      for (const TileOperand& operand : contract->operands)
        if (auto block = shared_block(operand.tile)) reads.insert(*block);
    } else if (const SegOp* inblock = get_if<SegOp>(stm)) {
      for (Value v : free_values(*inblock->body, values_))
        if (auto block = shared_block(v)) reads.insert(*block);
      for (Value v : stm.pattern)
        if (auto block = shared_block(v)) writes.insert(*block);
    } else if (const Scatter* scatter = get_if<Scatter>(stm)) {
      for (Value v : free_values(stm.op, values_))
        if (auto block = shared_block(v)) reads.insert(*block);
      for (Value v : scatter->targets)
        if (auto block = shared_block(v)) writes.insert(*block);
    } else if (const Index* index = get_if<Index>(stm)) {
      if (values_.type(stm.pattern.front()).is_scalar())
        if (auto block = shared_block(index->array)) reads.insert(*block);
    } else if (const Update* update = get_if<Update>(stm)) {
      if (auto block = shared_block(update->array)) writes.insert(*block);
    }
    bool hazard = false;
    for (Value block : reads) hazard = hazard || state.written.count(block) != 0;
    for (Value block : writes) hazard = hazard || state.written.count(block) != 0 || state.read.count(block) != 0;
    if (hazard) {
      if (recording_) before_.insert(&stm);
      state = {};
    }
    state.read.insert(reads.begin(), reads.end());
    state.written.insert(writes.begin(), writes.end());
    return state;
  }

  const ValueTable& values_;
  std::set<const Stm*> before_;
  bool recording_ = true;
};

}  // namespace

std::set<const Stm*> find_barriers(const SegOp& op, const ValueTable& values) {
  Planner planner(values);
  planner.results(op, planner.body(*op.body, {}));
  return planner.take();
}

}  // namespace apl::lower
