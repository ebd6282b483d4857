// Map, reduce, scan and redomap. The map function runs in random order; what it gives is folded in row-major order.
// Scalar code runs in columns (screma_columns.cpp); what it cannot do, or what fails there, runs here index by index.
#include "ir/interpret/screma.h"

#include <algorithm>

namespace apl::interpreter {

void Machine::ScremaRun::start() {
  streams.start(op.widths, "a map");
  for (const ReduceOp& reduce : op.reduces) {
    reduce_lifetimes.push_back(&machine.lifetimes_of(*reduce.op.body));
    for (const Operand& neutral : reduce.neutral) accumulators.push_back(machine.read(neutral));
  }
  for (const ReduceOp& reduce : op.reduces)
    for (std::size_t k = 0; k < reduce.neutral.size(); ++k) {
      const std::size_t n = homes.size();
      const Value home = reduce.scan ? reduce.op.params[k] : stm.pattern[n];
      homes.push_back(home);
      scanned.push_back(reduce.scan ? machine.destination(stm.pattern[n]) : Array{});
      if (!accumulators[n].is_scalar && machine.type(home).memory)
        machine.arrive(home, machine.on_its_way(std::move(accumulators[n]), reduce.neutral[k], home)),
            accumulators[n] = machine.read(home);
    }
  for (const Datum& accumulator : accumulators) scalars_only = scalars_only && accumulator.is_scalar;
  for (std::size_t k = accumulators.size(); k < stm.pattern.size(); ++k)
    mapped.push_back(machine.destination(stm.pattern[k]));
}

void Machine::ScremaRun::run_index(std::int64_t flat) {
  streams.bind(flat);
  machine.run(map, map_lifetimes);
  for (std::size_t k = 0; k < mapped.size(); ++k)
    machine.write_row(mapped[k], streams.widths.size(), streams.position_in(mapped[k]),
                      map.results[accumulators.size() + k]);
}

// What the operator has after index `flat`, as an element of the scanned array.
void Machine::ScremaRun::note(std::int64_t flat, std::size_t k) {
  const Array& to = scanned[k];
  unflatten(flat, streams.widths, streams.at);
  const std::int64_t position = streams.position_in(to);
  if (accumulators[k].is_scalar) {
    machine.count_written(1);
    return machine.memory_.store(to, position, accumulators[k].scalar);
  }
  machine.copy_into(accumulators[k].array, row_at(to, streams.widths.size(), position));
}

void Machine::ScremaRun::fold_scalars(std::int64_t flat, const Scalar* operands) {
  std::size_t first = 0;
  for (std::size_t r = 0; r < op.reduces.size(); ++r) {
    const ReduceOp& reduce = op.reduces[r];
    const std::size_t n = reduce.neutral.size();
    for (std::size_t k = 0; k < n; ++k) {
      machine.set(reduce.op.params[k], accumulators[first + k].scalar);
      machine.set(reduce.op.params[n + k], operands[first + k]);
    }
    machine.run(*reduce.op.body, *reduce_lifetimes[r]);
    for (std::size_t k = 0; k < n; ++k) accumulators[first + k].scalar = machine.scalar(reduce.op.body->results[k]);
    for (std::size_t k = 0; k < n && reduce.scan; ++k) note(flat, first + k);
    first += n;
  }
}

void Machine::ScremaRun::fold(std::int64_t flat, std::vector<Datum> operands) {
  std::size_t first = 0;
  for (std::size_t r = 0; r < op.reduces.size(); ++r) {
    const ReduceOp& reduce = op.reduces[r];
    const std::size_t n = reduce.neutral.size();
    for (std::size_t k = 0; k < n; ++k) {
      machine.bind(reduce.op.params[k], std::move(accumulators[first + k]));
      const Value param = reduce.op.params[n + k];
      machine.arrive(param, machine.on_its_way(std::move(operands[first + k]), map.results[first + k], param));
    }
    machine.run(*reduce.op.body, *reduce_lifetimes[r]);
    // At the memory stage each accumulator has memory.
    const Body& body = *reduce.op.body;
    std::vector<Datum> next;
    for (std::size_t k = 0; k < n; ++k)
      next.push_back(
          machine.on_its_way(machine.take_result(body, *reduce_lifetimes[r], k), body.results[k], homes[first + k]));
    for (std::size_t k = 0; k < n; ++k) {
      const Value home = homes[first + k];
      const bool placed = !next[k].is_scalar && machine.type(home).memory;
      if (placed) machine.arrive(home, std::move(next[k]));
      accumulators[first + k] = placed ? machine.read(home) : std::move(next[k]);
      if (reduce.scan) note(flat, first + k);
    }
    first += n;
  }
}

void Machine::ScremaRun::finish() {
  for (std::size_t k = 0; k < stm.pattern.size(); ++k) {
    Value v = stm.pattern[k];
    if (k >= accumulators.size()) {
      machine.assign(v, std::move(mapped[k - accumulators.size()]));
    } else if (homes[k] != v) {
      machine.assign(v, std::move(scanned[k]));
    } else if (accumulators[k].is_scalar || !machine.type(v).memory) {
      machine.bind(v, std::move(accumulators[k]));
    }
  }
}

void Machine::exec(const Stm& stm, const Screma& op) {
  ScremaRun run(*this, stm, op);
  run.start();
  const std::int64_t total = count_of(run.streams.widths);
  const std::size_t reduced = run.accumulators.size();
  for (const ReduceOp& reduce : op.reduces) note_terms(reduce.neutral, total);
  const std::int64_t done = run_in_columns(run, total);
  count_columns(run, done);
  if (reduced == 0) {
    const IndexOrder order(total - done, random_);
    for (std::int64_t k = 0; k < total - done; ++k) run.run_index(done + order[k]);
  } else if (!run.scalars_only) {
    // Rows may lie in one block that the next index overwrites: each is folded at once.
    for (std::int64_t flat = 0; flat < total; ++flat) {
      run.run_index(flat);
      std::vector<Datum> operands;
      for (std::size_t k = 0; k < reduced; ++k) operands.push_back(take_result(run.map, run.map_lifetimes, k));
      run.fold(flat, std::move(operands));
    }
  } else {
    // Random order inside chunks, so that the operands that wait for their turn stay few.
    constexpr std::int64_t kChunk = 64;
    std::vector<Scalar> operands(reduced * static_cast<std::size_t>(std::min(total, kChunk)));
    for (std::int64_t first = done; first < total; first += kChunk) {
      const std::int64_t count = std::min(kChunk, total - first);
      const IndexOrder order(count, random_);
      for (std::int64_t k = 0; k < count; ++k) {
        const std::int64_t i = order[k];
        run.run_index(first + i);
        for (std::size_t r = 0; r < reduced; ++r)
          operands[static_cast<std::size_t>(i) * reduced + r] = scalar(run.map.results[r]);
      }
      for (std::int64_t i = 0; i < count; ++i)
        run.fold_scalars(first + i, &operands[static_cast<std::size_t>(i) * reduced]);
    }
  }
  run.finish();
}

}  // namespace apl::interpreter
