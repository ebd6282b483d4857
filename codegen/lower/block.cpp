// Block-level kernels: how many threads a block has, what they share, what each does, and the block's results.
#include <algorithm>

#include "codegen/lower/lower.h"
#include "codegen/lower/scatter.h"
#include "codegen/lower/thread_loops.h"
#include "ir/walk.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

namespace {

// Of a block that scatters into shared memory, at most: few enough that a multiprocessor holds several blocks. Smaller
// arrays have fewer, since so many more blocks fit.
constexpr std::int64_t kScatterThreads = 512;

}  // namespace

void Kernel::run_block(const SegOp& op) {
  if (is_packed(unit_, op)) return run_packed(*this, op);
  KernelBlock& out = function_.body;
  // The block's threads: the largest T-space inside.
  threads_ = 1;
  for_each_stm(*op.body, [&](const Stm& stm) {
    std::vector<std::int64_t> space;
    if (const Scatter* scatter = get_if<Scatter>(stm); scatter && is_shared(scatter->targets.front())) {
      const Poly elements = product(unit_.function.type(scatter->targets.front()).shape);
      const std::int64_t warps = (unit_.constant(elements, "the size of an array in a block") + 31) / 32;
      space.push_back(std::clamp<std::int64_t>(32 * warps, 32, kScatterThreads));
    }
    if (const SegOp* inner = get_if<SegOp>(stm))
      for (const SegDim& dim : inner->space) space.push_back(unit_.constant(dim.bound, "a space inside a block"));
    if (const TileContract* contract = get_if<TileContract>(stm))
      for (const TileDim& dim : contract->space) space.push_back(unit_.constant(dim.tile, "a tile number"));
    threads_ = std::max(threads_, count_of(space));
  });
  barriers_ = find_barriers(op, unit_.function.values);
  mainloop_ = make_mainloop(*this, op);
  std::vector<std::string> names;
  std::vector<ExprPtr> sizes;
  for (const SegDim& dim : op.space) {
    names.push_back(unit_.name(dim.index));
    sizes.push_back(values_.poly(dim.bound));
  }
  if (mainloop_) {
    mainloop_->tile_loop(op, out);
    return;
  }
  if (unit_.target.on_device()) {
    // A grid has fewer than 2^31 blocks, and so has each of its dims: divisions of 32 bits take a third of those of 64.
    const std::string flat = unit_.fresh("block");
    out.push_back(declare(kInt, flat, call("apl_block", {})));
    bool is_outermost = true;  // nothing is divided by its size
    for (ExprPtr& size : sizes) {
      if (number(size) == 1 || std::exchange(is_outermost, false) || number(size)) continue;
      const std::string count = unit_.fresh("blocks");
      out.push_back(declare(kInt, count, size));
      size = variable(count);
    }
    const std::vector<ExprPtr> indices = unflatten(flat, sizes, names, kIndex, out, kInt);
    for (std::size_t k = 0; k < indices.size(); ++k) values_.scalars[op.space[k].index] = indices[k];
    body(*op.body, out);
    write_results(op, out);
    return;
  }
  KernelBlock inner;
  body(*op.body, inner);
  write_results(op, inner);
  for (std::size_t k = op.space.size(); k-- > 0;) {
    Stmt loop = for_loop(kIndex, names[k], sizes[k], std::move(inner));
    loop.parallel = k == 0;
    loop.collapse = static_cast<int>(op.space.size());
    inner.clear();
    inner.push_back(std::move(loop));
  }
  out.insert(out.end(), inner.begin(), inner.end());
}

void Kernel::write_results(const SegOp& op, KernelBlock& out) {
  if (barriers_.contains(nullptr)) {
    Stmt barrier;
    barrier.kind = Stmt::Kind::barrier;
    out.push_back(std::move(barrier));
  }
  const auto is_tile = [](const KernelResult& result) { return result.kind == KernelResult::Kind::regtile; };
  std::ranges::any_of(op.results, is_tile) ? write_regtiles(op, stm_, out) : scatters_->write_block_rows(op, stm_, out);
}

bool Kernel::is_shared(Value array) const {
  const Type& type = unit_.function.type(array);
  return type.memory && unit_.function.type(type.memory->block).space == Space::shared;
}

void Kernel::declare_shared(const Stm& stm, const Alloc& alloc, KernelBlock& out) {
  Value block = stm.pattern.front();
  const ValueTable& table = unit_.function.values;
  Buffer buffer;
  buffer.element = elements_[block];
  buffer.name = unit_.fresh(block_name(table, block));
  buffer.count = unit_.constant(alloc.bytes, "the size of an array in a kernel") / byte_size(buffer.element);
  if (mainloop_) buffer.count *= mainloop_->mainloop_stages(block);
  CType type{buffer.element, false};
  if (alloc.space == Space::shared) {
    buffer.kind = BufferKind::shared;
    out.push_back(shared_array(buffer.name, type, buffer.count));
  } else if (alloc.space == Space::thread) {
    buffer.kind = BufferKind::thread;
    // Where threads are loops, a block's private data are arrays with one copy a thread.
    buffer.expanded = !unit_.target.on_device() && block_level_ && !flat_thread_;
    out.push_back(declare_array(type, buffer.name, buffer.count * (buffer.expanded ? threads_ : 1)));
  } else {
    unsupported(stm.location, "an allocation of global memory inside a kernel");
  }
  buffers_[block] = std::move(buffer);
}

Stmt Kernel::shared_array(const std::string& name, CType type, std::int64_t count) {
  Stmt shared;
  shared.kind = Stmt::Kind::shared;
  shared.name = name;
  shared.type = type;
  shared.count = count;
  shared.offset = shared_bytes_;
  // 16-byte aligned, for vector access.
  shared_bytes_ += (count * byte_size(type.scalar) + 15) / 16 * 16;
  return shared;
}

std::vector<ExprPtr> Kernel::thread_indices(const std::vector<std::int64_t>& space,
                                            const std::vector<std::string>& names, KernelBlock& out) {
  (void)out;
  auto found = thread_index_cache_.find(space);
  if (found != thread_index_cache_.end()) return found->second;
  // Declared at the top of the kernel, so that every use sees them.
  KernelBlock head;
  std::string flat = unit_.fresh("thread");
  head.push_back(declare(kInt, flat, call("apl_thread", {})));
  std::vector<ExprPtr> sizes;
  std::vector<std::string> fresh;
  for (std::size_t k = 0; k < space.size(); ++k) {
    sizes.push_back(literal(space[k]));
    fresh.push_back(space[k] == 1 ? "" : unit_.fresh("t_" + names[k]));
  }
  std::vector<ExprPtr> indices = unflatten(flat, sizes, fresh, kInt, head);
  function_.body.insert(function_.body.begin(), head.begin(), head.end());
  thread_index_cache_[space] = indices;
  return indices;
}

void Kernel::inblock(const SegOp& op, const Stm& stm, KernelBlock& out) {
  std::vector<std::int64_t> space;
  std::vector<std::string> names;
  for (const SegDim& dim : op.space) {
    space.push_back(unit_.constant(dim.bound, "a space inside a block"));
    std::string name = unit_.function.values.name(dim.index);
    names.push_back(name.starts_with("t_") ? name.substr(2) : name);
  }
  for_threads(space, names, out, [&](const std::vector<ExprPtr>& at, KernelBlock& inner) {
    for (std::size_t k = 0; k < at.size(); ++k) values_.scalars[op.space[k].index] = at[k];
    body(*op.body, inner);
    for (std::size_t k = 0; k < stm.pattern.size(); ++k)
      store(stm.pattern[k], at, op.body->results[k], stm.location, inner);
  });
}

}  // namespace apl::lower
