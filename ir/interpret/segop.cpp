// SegMap at its three levels, and what becomes of its results.
#include <fmt/format.h>

#include "ir/interpret/machine.h"

namespace apl::interpreter {
namespace {

// Leaves a level as it was entered, however the level is left.
template <class T>
class Restore {
 public:
  explicit Restore(T& variable) : variable_(variable), before_(variable) {}
  ~Restore() { variable_ = std::move(before_); }
  Restore(const Restore&) = delete;
  Restore& operator=(const Restore&) = delete;

 private:
  T& variable_;
  T before_;
};

}  // namespace

void Machine::exec(const Stm& stm, const SegOp& op) {
  std::vector<Poly> polys;
  for (const SegDim& dim : op.space) polys.push_back(dim.bound);
  const std::vector<std::int64_t> bounds = sizes(polys, "a space");
  const std::int64_t total = count_of(bounds);
  std::vector<Array> results;
  for (std::size_t k = 0; k < stm.pattern.size(); ++k) {
    if (is_scalar(stm.pattern[k])) {
      // A space without dims has one index, and its scalar results stay scalars.
      results.emplace_back();
      continue;
    }
    const bool covered = op.results[k].kind != KernelResult::Kind::regtile;
    results.push_back(destination(stm.pattern[k], covered ? Fill::zero : Fill::undefined));
    if (op.results[k].kind == KernelResult::Kind::private_) results.back().private_rank = bounds.size();
  }

  {
    const Restore<bool> block(in_block_);
    const Restore<Thread> thread(thread_);
    const ParallelScope scope(memory_);
    in_block_ = op.level != SegLevel::thread;
    const bool is_thread = op.level != SegLevel::block;
    thread_ = {is_thread, bounds, {}};
    const BodyLifetimes& lifetimes = lifetimes_of(*op.body);
    const IndexOrder order(total, random_);
    std::vector<std::int64_t> at;
    for (std::int64_t k = 0; k < total; ++k) {
      const std::int64_t flat = order[k];
      unflatten(flat, bounds, at);
      memory_.begin_index();
      memory_.set_thread(is_thread ? flat : -1);
      for (std::size_t d = 0; d < at.size(); ++d) set(op.space[d].index, Scalar::integer(ScalarType::i64, at[d]));
      if (is_thread) thread_.at = at;
      run(*op.body, lifetimes);
      for (std::size_t r = 0; r < results.size(); ++r) {
        if (!is_scalar(stm.pattern[r])) {
          write_result(op, r, results[r], at);
        } else {
          set(stm.pattern[r], scalar(op.body->results[r]));
        }
      }
    }
  }
  for (std::size_t k = 0; k < results.size(); ++k)
    if (!is_scalar(stm.pattern[k])) assign(stm.pattern[k], std::move(results[k]));
}

void Machine::write_result(const SegOp& op, std::size_t k, const Array& to, const std::vector<std::int64_t>& at) {
  const Operand& value = op.body->results[k];
  if (op.results[k].kind == KernelResult::Kind::regtile)
    return write_regtile(op.results[k], any_array(value.value()), to, at);
  std::int64_t position = to.offset;
  for (std::size_t d = 0; d < at.size(); ++d) position += at[d] * to.dims[d].stride;
  write_row(to, at.size(), position, value);
}

void Machine::write_regtile(const KernelResult& result, const Array& tile, const Array& to,
                            const std::vector<std::int64_t>& at) {
  const std::size_t n = result.extents.size();
  std::vector<std::int64_t> threads;
  std::vector<std::int64_t> registers;
  std::vector<std::int64_t> block_offset;
  std::vector<std::vector<std::size_t>> axes;  // of the result, by extent
  for (std::size_t d = 0; d < n; ++d) {
    threads.push_back(integer(result.extents[d].tile));
    registers.push_back(integer(result.extents[d].reg));
    block_offset.push_back(at[d] * threads[d] * registers[d]);
    axes.emplace_back();
    for (const TileExtent::Part& part : result.extents[d].split) axes[d].push_back(static_cast<std::size_t>(part.axis));
    if (axes[d].empty()) axes[d].push_back(d);
    if (tile.rank() != 2 * n || tile.dims[d].size != threads[d] || tile.dims[n + d].size != registers[d])
      fail(Code::run_shape_mismatch, fmt::format("a register tile of shape {} does not have the extents of its result.",
                                                 shape_text(shape_of(tile))));
  }
  const ParallelScope scope(memory_);
  const IndexOrder order(count_of(threads), random_);
  std::vector<std::int64_t> t;
  std::vector<std::int64_t> r;
  for (std::int64_t k = 0; k < count_of(threads); ++k) {
    unflatten(order[k], threads, t);
    memory_.begin_index();
    memory_.set_thread(order[k]);
    for (std::int64_t flat = 0; flat < count_of(registers); ++flat) {
      unflatten(flat, registers, r);
      Array from{tile.storage, tile.element, tile.offset, {}};
      Array target{to.storage, to.element, to.offset, {}};
      bool is_inside = true;
      for (std::size_t d = 0; d < n; ++d) {
        std::int64_t i = block_offset[d] + t[d] * registers[d] + r[d];
        from.offset += t[d] * tile.dims[d].stride + r[d] * tile.dims[n + d].stride;
        for (std::size_t p = axes[d].size(); p-- > 0 && is_inside;) {
          const Dim& dim = to.dims[axes[d][p]];
          is_inside = p > 0 ? dim.size > 0 : i < dim.size;
          if (!is_inside) break;
          target.offset += (p > 0 ? i % dim.size : i) * dim.stride;
          i /= p > 0 ? dim.size : 1;
        }
      }
      if (!is_inside) continue;
      count_copy(from, target);
      memory_.copy(from, target);
    }
  }
}

}  // namespace apl::interpreter
