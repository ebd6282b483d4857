// Scatter and histogram. Rows are computed and folded in random order; without an operator they are written in
// row-major order, so that indices that do not agree still give one result, or an error if that is asked for.
#include <fmt/format.h>

#include <unordered_set>

#include "ir/interpret/streams.h"

namespace apl::interpreter {

struct Machine::ScatterRun {
  Machine& machine;
  const Stm& stm;
  const Scatter& op;
  const Body& map;
  const BodyLifetimes& lifetimes;
  Streams streams;
  std::vector<Array> targets;

  ScatterRun(Machine& m, const Stm& s, const Scatter& o)
      : machine(m), stm(s), op(o), map(*o.map.body), lifetimes(m.lifetimes_of(map)), streams{m,        o.indices,
                                                                                             o.inputs, o.map.params,
                                                                                             {},       {},
                                                                                             {}} {}

  void start();
  void run_index(std::int64_t flat);

 private:
  bool find_row();  // false: out of bounds
  void fold();
  void replace();
  void check_same(std::size_t k) const;

  std::vector<std::int64_t> positions_;       // of the row, by target
  std::unordered_set<std::int64_t> written_;  // rows of the first target, by position
};

void Machine::ScatterRun::start() {
  streams.start(op.widths, "a scatter");
  for (std::size_t k = 0; k < op.targets.size(); ++k) {
    machine.readable(op.targets[k]);
    Array array = machine.consume(op.targets[k]);
    const bool placed = machine.type(stm.pattern[k]).memory != nullptr;
    targets.push_back(placed ? machine.bound(stm.pattern[k]) : machine.owned(std::move(array)));
  }
  positions_.resize(targets.size());
}

bool Machine::ScatterRun::find_row() {
  for (std::size_t k = 0; k < targets.size(); ++k) positions_[k] = targets[k].offset;
  for (std::size_t d = 0; d < op.rank; ++d) {
    const std::int64_t i = machine.scalar(map.results[d]).as_int();
    for (std::size_t k = 0; k < targets.size(); ++k) {
      if (i < 0 || i >= targets[k].dims[d].size) return false;
      positions_[k] += i * targets[k].dims[d].stride;
    }
  }
  return true;
}

void Machine::ScatterRun::fold() {
  const std::vector<Value>& params = op.op->op.params;
  const Body& body = *op.op->op.body;
  const std::size_t n = targets.size();
  for (std::size_t k = 0; k < n; ++k) {
    // A copy at the soac stage, since the row is overwritten while the operator's results may still show it.
    if (machine.is_scalar(params[k])) {
      machine.set(params[k], machine.element(op.targets[k], targets[k], positions_[k]));
    } else if (machine.type(params[k]).memory) {
      machine.copy_into(row_at(targets[k], op.rank, positions_[k]), machine.bound(params[k]));
      machine.alias(params[k], machine.bound(params[k]));
    } else {
      const Array row = row_at(targets[k], op.rank, positions_[k]);
      Array copy = machine.memory_.compact(row);
      machine.check_shape(params[k], copy);
      machine.count_read(copy.count());
      machine.assign(params[k], std::move(copy));
    }
    const Operand& given = map.results[op.rank + k];
    Datum operand = machine.read(given);
    machine.arrive(params[n + k], machine.on_its_way(std::move(operand), given, params[n + k]));
  }
  machine.run(body, machine.lifetimes_of(body));
  for (std::size_t k = 0; k < n; ++k) machine.write_row(targets[k], op.rank, positions_[k], body.results[k]);
}

// The row that target `k` has already must be the one that it is given again.
void Machine::ScatterRun::check_same(std::size_t k) const {
  const Operand& given = map.results[op.rank + k];
  const Array there = row_at(targets[k], op.rank, positions_[k]);
  const std::vector<std::int64_t> shape = shape_of(there);
  const bool is_scalar = given.is_constant() || machine.is_scalar(given.value());
  const Array row = is_scalar ? Array{} : machine.readable(given.value());
  const std::int64_t count = is_scalar ? 1 : count_of(shape);
  std::vector<std::int64_t> at(shape.size());
  for (std::int64_t flat = 0; flat < count; ++flat) {
    unflatten(flat, shape, at);
    std::int64_t old_position = there.offset;
    std::int64_t new_position = row.offset;
    for (std::size_t d = 0; d < at.size(); ++d) {
      old_position += at[d] * there.dims[d].stride;
      new_position += at[d] * row.dims[d].stride;
    }
    const Scalar now = is_scalar ? machine.scalar(given) : machine.memory_.load(row, new_position);
    if (machine.memory_.load(there, old_position).bits() == now.bits()) continue;
    std::string element;
    for (std::size_t d = 0; d < op.rank; ++d)
      element += fmt::format("{}{}", d == 0 ? "" : ", ", machine.scalar(map.results[d]).as_int());
    for (const std::int64_t i : at) element += fmt::format(", {}", i);
    fail(Code::run_scattered_twice, fmt::format("scatter writes element [{}] twice, with different values.", element));
  }
}

void Machine::ScatterRun::replace() {
  const bool again = machine.options_.check_scatters && !written_.insert(positions_.front()).second;
  for (std::size_t k = 0; k < targets.size(); ++k) {
    if (again) check_same(k);
    machine.write_row(targets[k], op.rank, positions_[k], map.results[op.rank + k]);
  }
}

void Machine::ScatterRun::run_index(std::int64_t flat) {
  streams.bind(flat);
  machine.run(map, lifetimes);
  if (!find_row()) return;
  op.op ? fold() : replace();
}

void Machine::exec(const Stm& stm, const Scatter& op) {
  ScatterRun run(*this, stm, op);
  run.start();
  const std::int64_t total = count_of(run.streams.widths);
  if (op.op) note_terms(op.op->neutral, total);
  const IndexOrder order(total, random_);
  // Directly on the host or in a block each index is a thread.
  const bool makes_threads = memory_.thread() < 0;
  for (std::int64_t k = 0; k < total; ++k) {
    const std::int64_t flat = op.op ? order[k] : k;
    if (makes_threads) memory_.set_thread(flat);
    run.run_index(flat);
  }
  if (makes_threads) memory_.set_thread(-1);
  for (std::size_t k = 0; k < run.targets.size(); ++k) assign(stm.pattern[k], std::move(run.targets[k]));
}

}  // namespace apl::interpreter
