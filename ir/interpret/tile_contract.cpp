// The register-tiled contraction of tiles (T listing 4).
#include <fmt/format.h>

#include "ir/interpret/machine.h"

namespace apl::interpreter {
namespace {

// What the strides give at every index of `shape`, in row-major order.
std::vector<std::int64_t> offsets(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides) {
  std::vector<std::int64_t> result{0};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::vector<std::int64_t> next;
    next.reserve(result.size() * static_cast<std::size_t>(shape[d]));
    for (std::int64_t base : result)
      for (std::int64_t i = 0; i < shape[d]; ++i) next.push_back(base + i * strides[d]);
    result = std::move(next);
  }
  return result;
}

}  // namespace

// A tile or an accumulator: where element (t, q, r) lies is base(t) + depth[q] + registers[r].
struct Machine::Contraction {
  struct OperandSide {
    Value name;
    Array array;
    std::vector<std::int64_t> thread_strides;  // of one step of t in each space dim
    std::vector<std::int64_t> depth;
    std::vector<std::int64_t> registers;

    std::int64_t base(const std::vector<std::int64_t>& t) const {
      std::int64_t position = array.offset;
      for (std::size_t d = 0; d < t.size(); ++d) position += t[d] * thread_strides[d];
      return position;
    }
  };

  std::vector<std::int64_t> threads, registers, depth;
  std::vector<OperandSide> tiles;
  std::vector<OperandSide> accumulators;

  OperandSide tile(Machine& machine, const TileOperand& operand) const {
    const std::size_t n = threads.size();
    OperandSide side{operand.tile, machine.readable(operand.tile), std::vector<std::int64_t>(n), {}, {}};
    std::vector<std::int64_t> register_strides(n);
    std::vector<std::int64_t> depth_strides(depth.size());
    for (std::size_t axis = 0; axis < operand.axes.size(); ++axis) {
      const auto d = static_cast<std::size_t>(operand.axes[axis]);
      const Dim& dim = side.array.dims[axis];
      const std::int64_t reach = d < n ? threads[d] * registers[d] : depth[d - n];
      if (reach > dim.size)
        fail(Code::bug_internal, fmt::format("axis {} of tile `{}` has {} elements, {} are read.", axis + 1,
                                             machine.name(operand.tile), dim.size, reach));
      if (d < n) {
        side.thread_strides[d] += registers[d] * dim.stride;
        register_strides[d] += dim.stride;
      } else {
        depth_strides[d - n] += dim.stride;
      }
    }
    side.registers = offsets(registers, register_strides);
    side.depth = offsets(depth, depth_strides);
    return side;
  }

  OperandSide accumulator(Machine& machine, Value v, Array array) const {
    const std::size_t n = threads.size();
    OperandSide side{v, std::move(array), {}, {}, {}};
    std::vector<std::int64_t> register_strides;
    for (std::size_t d = 0; d < n; ++d) {
      const bool fits = side.array.rank() == 2 * n && side.array.dims[d].size == threads[d] &&
                        side.array.dims[n + d].size == registers[d];
      if (!fits)
        fail(Code::run_shape_mismatch,
             fmt::format("accumulator `{}` of shape {} does not have the extents of its space.", machine.name(v),
                         shape_text(shape_of(side.array))));
      side.thread_strides.push_back(side.array.dims[d].stride);
      register_strides.push_back(side.array.dims[n + d].stride);
    }
    side.registers = offsets(registers, register_strides);
    return side;
  }
};

void Machine::exec(const Stm& stm, const TileContract& op) {
  Contraction run;
  for (const TileDim& dim : op.space) {
    run.threads.push_back(sizes({dim.tile}, "a tile").front());
    run.registers.push_back(sizes({dim.reg}, "a tile").front());
  }
  run.depth = sizes(op.depth, "a tile");
  for (const TileOperand& operand : op.operands) run.tiles.push_back(run.tile(*this, operand));
  const std::size_t n = op.accumulators.size();
  std::vector<Contraction::OperandSide> before;  // memory stage: where the accumulators come from
  for (std::size_t k = 0; k < n; ++k) {
    Value v = op.accumulators[k];
    Array array = take(v);
    if (type(stm.pattern[k]).memory) {
      before.push_back(run.accumulator(*this, v, array));
      array = bound(stm.pattern[k]);
    } else {
      array = owned(std::move(array));
    }
    array.private_rank = run.threads.size();
    run.accumulators.push_back(run.accumulator(*this, v, std::move(array)));
  }

  const BodyLifetimes& map_lifetimes = lifetimes_of(*op.map.body);
  const BodyLifetimes& reduce_lifetimes = lifetimes_of(*op.reduce.op.body);
  const auto registers = static_cast<std::size_t>(count_of(run.registers));
  const auto depth = static_cast<std::size_t>(count_of(run.depth));
  const std::int64_t total = count_of(run.threads);
  {
    const ParallelScope scope(memory_);
    const IndexOrder order(total, random_);
    std::vector<std::int64_t> t;
    std::vector<std::int64_t> tile_base(run.tiles.size());
    std::vector<std::int64_t> base(n);
    for (std::int64_t step = 0; step < total; ++step) {
      unflatten(order[step], run.threads, t);
      memory_.begin_index();
      memory_.set_thread(order[step]);
      for (std::size_t k = 0; k < run.tiles.size(); ++k) tile_base[k] = run.tiles[k].base(t);
      for (std::size_t k = 0; k < n; ++k) base[k] = run.accumulators[k].base(t);
      for (std::size_t k = 0; k < before.size(); ++k) {
        const auto strides = static_cast<std::ptrdiff_t>(run.threads.size());
        auto row = [&](const Contraction::OperandSide& side) {
          return row_at(side.array, static_cast<std::size_t>(strides), side.base(t));
        };
        memory_.copy(row(before[k]), row(run.accumulators[k]));
      }
      for (std::size_t q = 0; q < depth; ++q) {
        for (std::size_t r = 0; r < registers; ++r) {
          for (std::size_t k = 0; k < run.tiles.size(); ++k) {
            const Contraction::OperandSide& tile = run.tiles[k];
            set(op.map.params[k], element(tile.name, tile.array, tile_base[k] + tile.depth[q] + tile.registers[r]));
          }
          this->run(*op.map.body, map_lifetimes);
          for (std::size_t k = 0; k < n; ++k) {
            const Contraction::OperandSide& acc = run.accumulators[k];
            set(op.reduce.op.params[k], element(acc.name, acc.array, base[k] + acc.registers[r]));
            set(op.reduce.op.params[n + k], scalar(op.map.body->results[k]));
          }
          this->run(*op.reduce.op.body, reduce_lifetimes);
          count_written(static_cast<std::int64_t>(n));
          for (std::size_t k = 0; k < n; ++k)
            memory_.store(run.accumulators[k].array, base[k] + run.accumulators[k].registers[r],
                          scalar(op.reduce.op.body->results[k]));
        }
      }
    }
  }
  for (std::size_t k = 0; k < n; ++k) {
    check_shape(stm.pattern[k], run.accumulators[k].array);
    assign(stm.pattern[k], std::move(run.accumulators[k].array));
  }
}

}  // namespace apl::interpreter
