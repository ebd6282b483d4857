// Block-level kernels: shared arrays, inblock SegMaps, tile copies, register-tiled contraction, write-back.
#include <algorithm>
#include <ranges>

#include <fmt/format.h>

#include "codegen/lower/lower.h"
#include "codegen/lower/register_loops.h"
#include "codegen/lower/scatter.h"
#include "ir/builder.h"
#include "ir/walk.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

namespace {

std::int64_t product_of(const std::vector<std::int64_t>& numbers) {
  std::int64_t product = 1;
  for (std::int64_t n : numbers) product *= n;
  return product;
}

// Of a block that scatters into shared memory, at most: few enough that a multiprocessor holds several blocks. Smaller
// arrays have fewer, since so many more blocks fit.
constexpr std::int64_t kScatterThreads = 512;

// A position goes on by additions, of which compilers would make a multiplication of 64 bits each.
Stmt go_on(const std::string& position, const std::string& by) {
  return assign(variable(position), call("apl_anew", {plus(variable(position), variable(by))}));
}

// "T_a" and "R_a" give "a".
std::string dim_of(const Poly& tile, const ValueTable& values) {
  auto symbol = tile.symbol();
  if (!symbol) return "x";
  const std::string& name = values.name(*symbol);
  return name.size() > 2 && name[1] == '_' ? name.substr(2) : name;
}

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
    threads_ = std::max(threads_, product_of(space));
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

template <class Fill>
void Kernel::for_threads(const std::vector<std::int64_t>& space, const std::vector<std::string>& names,
                         KernelBlock& out, Fill&& fill) {
  if (unit_.target.on_device()) {
    std::vector<ExprPtr> at = thread_indices(space, names, out);
    if (product_of(space) == threads_) {
      fill(at, out);
      return;
    }
    KernelBlock inner;
    fill(at, inner);
    out.push_back(kernel::branch(infix("<", call("apl_thread", {}), literal(product_of(space))), std::move(inner)));
    return;
  }
  std::vector<ExprPtr> at;
  std::vector<std::string> loops;
  ExprPtr flat = literal(std::int64_t{0});
  for (std::size_t k = 0; k < space.size(); ++k) {
    loops.push_back(space[k] == 1 ? "" : unit_.fresh("t_" + names[k]));
    at.push_back(space[k] == 1 ? literal(std::int64_t{0}) : variable(loops.back()));
    flat = plus(mul(flat, literal(space[k])), at.back());
  }
  ExprPtr outer = std::exchange(flat_thread_, flat);
  KernelBlock inner;
  fill(at, inner);
  flat_thread_ = outer;
  for (std::size_t k = space.size(); k-- > 0;)
    if (space[k] != 1) {
      KernelBlock body = std::move(inner);
      inner.clear();
      inner.push_back(for_loop(kInt, loops[k], literal(space[k]), std::move(body)));
    }
  out.insert(out.end(), inner.begin(), inner.end());
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

// The indices that row-major position `flat` stands for.
std::vector<ExprPtr> Kernel::split(const ExprPtr& flat, const std::vector<Poly>& bounds, KernelBlock& out) {
  if (bounds.size() == 1) return {flat};
  std::vector<ExprPtr> sizes;
  std::vector<std::string> names;
  for (const Poly& bound : bounds) {
    sizes.push_back(values_.poly(bound));
    names.push_back(unit_.fresh("i"));
  }
  const std::string whole = unit_.fresh("flat");
  out.push_back(declare(kIndex, whole, flat));
  return unflatten(whole, sizes, names, kIndex, out);
}

void Kernel::copy_tile(const CopyTile& op, const Stm& stm, KernelBlock& out) {
  const std::string name = unit_.function.values.name(op.source);
  std::vector<std::int64_t> extents;
  std::vector<ExprPtr> sizes;
  std::vector<std::string> names;
  for (const LmadDim& dim : op.window.dims()) {
    extents.push_back(unit_.constant(dim.size, "the size of a tile"));
    sizes.push_back(literal(extents.back()));
    names.push_back(extents.back() == 1 ? "" : unit_.fresh("i"));
  }
  auto element = [&](const std::vector<ExprPtr>& at, KernelBlock& inner) {
    ExprPtr inside;
    for (std::size_t k = 0; k < at.size(); ++k) {
      const TileGuard& guard = op.guards[k];
      if (!guard.bound) continue;
      ExprPtr test = infix("<", plus(values_.poly(guard.start), at[k]), values_.poly(*guard.bound));
      inside = inside ? infix("&&", inside, test) : test;
    }
    // The source in row-major order is the source's block: bases are dense.
    ExprPtr position = values_.poly(op.window.offset());
    std::vector<std::vector<ExprPtr>> parts(at.size());  // indices of dims that are flattened
    for (std::size_t k = 0; k < at.size(); ++k) {
      const TileGuard& guard = op.guards[k];
      position = plus(position, mul(at[k], values_.poly(op.window.dims()[k].stride)));
      parts[k] = {at[k]};
      if (guard.split.empty()) continue;
      std::vector<Poly> bounds;
      for (const TileGuard::Part& part : guard.split) bounds.push_back(part.bound);
      parts[k] = split(plus(values_.poly(guard.start), at[k]), bounds, inner);
      for (std::size_t p = 0; p < parts[k].size(); ++p)
        position = plus(position, mul(parts[k][p], values_.poly(guard.split[p].stride)));
    }
    const auto affine = [&](const TileAffine& number) {
      ExprPtr sum = values_.poly(number.start);
      for (std::size_t k = 0; k < parts.size(); ++k)
        for (std::size_t p = 0; p < parts[k].size(); ++p)
          sum = plus(sum, mul(parts[k][p], values_.poly(number.strides[k][p])));
      return sum;
    };
    for (const TileCondition& condition : op.where) {
      const std::string number = unit_.fresh("at");
      inner.push_back(declare(kIndex, number, affine(condition.at)));
      const auto also = [&](const ExprPtr& test) { inside = inside ? infix("&&", inside, test) : test; };
      also(infix("<=", number_of(0), variable(number)));
      if (condition.bound) also(infix("<", variable(number), values_.poly(*condition.bound)));
    }
    for (const TileGather& gather : op.gathers) {
      const MemoryBinding& from = *unit_.function.type(gather.positions).memory;
      const ExprPtr there = plus(values_.poly(from.layout.offset()), affine(gather.at));
      position =
          plus(position, mul(cast(kIndex, element_flat(from.block, there, stm.location)), values_.poly(gather.stride)));
    }
    const Type& source = unit_.function.type(op.source);
    position = plus(values_.poly(source.memory->layout.offset()), position);
    ExprPtr value = element_flat(source.memory->block, position, stm.location);
    if (inside) value = select(inside, value, values_.operand(op.pad));
    inner.push_back(assign(element_of(op.target, at, stm.location), value));
  };
  out.push_back(comment(fmt::format("tile of {}", name)));
  if (!unit_.target.on_device()) {
    std::vector<ExprPtr> at;
    for (std::size_t k = 0; k < extents.size(); ++k)
      at.push_back(extents[k] == 1 ? literal(std::int64_t{0}) : variable(names[k]));
    KernelBlock inner;
    element(at, inner);
    for (std::size_t k = extents.size(); k-- > 0;)
      if (extents[k] != 1) {
        KernelBlock body = std::move(inner);
        inner.clear();
        inner.push_back(for_loop(kInt, names[k], sizes[k], std::move(body)));
      }
    out.insert(out.end(), inner.begin(), inner.end());
    return;
  }
  // Neighbouring threads take neighbouring elements of the tile, whose axes lie as in memory.
  KernelBlock inner;
  std::string flat = unit_.fresh("i");
  const std::int64_t elements = product_of(extents), each = elements / threads_;
  constexpr std::int64_t kAtOnce = 8;
  const bool is_split = std::ranges::any_of(op.guards, [](const TileGuard& guard) { return !guard.split.empty(); });
  // Of tiles, one beyond the other along the outermost axis, each by itself.
  const std::int64_t tiles = extents.size() > 2 ? extents[0] : 1;
  const std::size_t rows = tiles > 1 ? 1 : 0;
  const bool is_even = elements / tiles % threads_ == 0 && elements / tiles / threads_ <= kAtOnce &&
                       threads_ % (elements / tiles / extents[rows]) == 0;
  if (is_even && !is_split && op.where.empty() && op.gathers.empty()) {
    copy_rows(op, stm, extents, rows, out);
    return;
  }
  if (elements % threads_ == 0 && each <= kAtOnce) {
    // So many elements for each thread: all are on their way before the first one is written.
    const std::string nth = unit_.fresh("e");
    inner.push_back(declare(kInt, flat, plus(call("apl_thread", {}), mul(variable(nth), literal(threads_)))));
    const std::vector<ExprPtr> at = unflatten(flat, sizes, names, kInt, inner);
    element(at, inner);
    Stmt loop = for_loop(kInt, nth, literal(each), std::move(inner));
    loop.unroll = true;
    out.push_back(std::move(loop));
    return;
  }
  std::vector<ExprPtr> at = unflatten(flat, sizes, names, kInt, inner);
  element(at, inner);
  Stmt loop = for_loop(kInt, flat, literal(elements), std::move(inner));
  loop.from = call("apl_thread", {});
  loop.step = literal(threads_);
  out.push_back(std::move(loop));
}

// A copy in which a thread's elements differ only in their row, and in their tile where rows are the second axis: what
// they have in common is worked out once.
void Kernel::copy_rows(const CopyTile& op, const Stm& stm, const std::vector<std::int64_t>& extents, std::size_t rows,
                       KernelBlock& out) {
  const Type& source = unit_.function.type(op.source);
  const std::int64_t tiles = rows == 0 ? 1 : extents[0], elements = product_of(extents) / tiles;
  const std::int64_t apart = threads_ / (elements / extents[rows]);  // rows between two elements of a thread
  std::vector<ExprPtr> sizes, at;
  std::vector<std::string> names;
  for (std::size_t k = rows; k < extents.size(); ++k) {
    sizes.push_back(literal(extents[k]));
    names.push_back(extents[k] == 1 ? "" : unit_.fresh("i"));
  }
  const std::string flat = unit_.fresh("thread"), from = unit_.fresh("from"), further = unit_.fresh("further"),
                    left = unit_.fresh("left"), nth = unit_.fresh("e");
  KernelBlock head{declare(kInt, flat, call("apl_thread", {}))};
  at = unflatten(flat, sizes, names, kInt, head);
  at.insert(at.begin(), rows, number_of(0));
  ExprPtr position = plus(values_.poly(source.memory->layout.offset()), values_.poly(op.window.offset()));
  for (std::size_t k = 0; k < at.size(); ++k)
    position = plus(position, mul(at[k], values_.poly(op.window.dims()[k].stride)));
  head.push_back(declare(kIndex, from, position, false));
  head.push_back(declare(kIndex, further, mul(number_of(apart), values_.poly(op.window.dims()[rows].stride))));
  // How many rows are left from the thread's first one on: none where it is outside by another axis.
  ExprPtr inside;
  for (std::size_t k = rows + 1; k < at.size(); ++k) {
    if (!op.guards[k].bound) continue;
    const ExprPtr test = infix("<", plus(values_.poly(op.guards[k].start), at[k]), values_.poly(*op.guards[k].bound));
    inside = inside ? infix("&&", inside, test) : test;
  }
  ExprPtr count = number_of(extents[rows]);
  if (op.guards[rows].bound) {
    const ExprPtr start = plus(values_.poly(op.guards[rows].start), at[rows]);
    count = call("apl_index_min", {count, infix("-", values_.poly(*op.guards[rows].bound), start)});
  }
  const bool guarded = inside || op.guards[rows].bound || (tiles > 1 && op.guards[0].bound);
  if (guarded) head.push_back(declare(kInt, left, inside ? select(inside, count, number_of(0)) : count));
  // All elements of a tile are on their way before the first one is written.
  const auto tile = [&](const ExprPtr& nth_tile, const std::string& rows_left, const std::string& position_in) {
    const ExprPtr row = mul(variable(nth), number_of(apart));
    std::vector<ExprPtr> to = at;
    to[rows] = plus(to[rows], row);
    if (tiles > 1) to[0] = nth_tile;
    ExprPtr value = element_flat(source.memory->block, variable(position_in), stm.location);
    if (guarded) value = select(infix("<", row, variable(rows_left)), value, values_.operand(op.pad));
    KernelBlock copy{assign(element_of(op.target, to, stm.location), value), go_on(position_in, further)};
    Stmt loop = for_loop(kInt, nth, number_of(elements / threads_), std::move(copy));
    loop.unroll = true;
    return loop;
  };
  if (tiles == 1) {
    head.push_back(tile(nullptr, left, from));
  } else {
    const std::string nth_tile = unit_.fresh("tile"), here = unit_.fresh("here"), there = unit_.fresh("left");
    KernelBlock each{declare(kIndex, here, variable(from), false)};
    if (op.guards[0].bound) {
      const ExprPtr test =
          infix("<", plus(values_.poly(op.guards[0].start), variable(nth_tile)), values_.poly(*op.guards[0].bound));
      each.push_back(declare(kInt, there, select(test, variable(left), number_of(0))));
    }
    each.push_back(tile(variable(nth_tile), op.guards[0].bound ? there : left, here));
    each.push_back(assign(variable(from), plus(variable(from), values_.poly(op.window.dims()[0].stride))));
    Stmt loop = for_loop(kInt, nth_tile, number_of(tiles), std::move(each));
    loop.unroll = true;
    head.push_back(std::move(loop));
  }
  out.insert(out.end(), head.begin(), head.end());
}

void Kernel::tile_contract(const TileContract& op, const Stm& stm, KernelBlock& out) {
  const ValueTable& table = unit_.function.values;
  const std::size_t rank = op.space.size();
  std::vector<std::int64_t> tiles, regs;
  std::vector<std::string> names, reg_names;
  for (const TileDim& dim : op.space) {
    tiles.push_back(unit_.constant(dim.tile, "a tile number"));
    regs.push_back(unit_.constant(dim.reg, "a tile number"));
    names.push_back(dim_of(dim.tile, table));
    reg_names.push_back("r_" + names.back());
  }
  for_threads(tiles, names, out, [&](const std::vector<ExprPtr>& thread, KernelBlock& inner) {
    // Depth loops; a depth of one makes none.
    std::vector<ExprPtr> depth_index;
    std::vector<std::string> depth_names;
    for (const Poly& depth : op.depth) {
      bool one = unit_.fold(depth) == 1;
      depth_names.push_back(one ? "" : unit_.fresh("q"));
      depth_index.push_back(one ? literal(std::int64_t{0}) : variable(depth_names.back()));
    }
    KernelBlock step;
    // Each operand's registers: its R-slices, read once a step.
    std::vector<std::string> registers;
    std::vector<std::vector<std::size_t>> operand_dims;
    for (const TileOperand& operand : op.operands) {
      std::vector<std::size_t> dims;
      for (int axis : operand.axes)
        if (static_cast<std::size_t>(axis) < rank && regs[static_cast<std::size_t>(axis)] > 1)
          dims.push_back(static_cast<std::size_t>(axis));
      std::sort(dims.begin(), dims.end());
      std::vector<std::int64_t> counts;
      std::vector<std::string> loop_names;
      for (std::size_t d : dims) counts.push_back(regs[d]), loop_names.push_back(reg_names[d]);
      std::string name = unit_.fresh(table.name(operand.tile).substr(0, table.name(operand.tile).find("_s")) + "_r");
      CType type{table.type(operand.tile).element, false};
      auto read = [&](const std::vector<ExprPtr>& r) {
        std::vector<ExprPtr> at;
        for (int axis : operand.axes) {
          auto d = static_cast<std::size_t>(axis);
          if (d >= rank) {
            at.push_back(depth_index[d - rank]);
            continue;
          }
          auto where = std::find(dims.begin(), dims.end(), d);
          ExprPtr reg =
              where == dims.end() ? literal(std::int64_t{0}) : r[static_cast<std::size_t>(where - dims.begin())];
          at.push_back(plus(mul(thread[d], literal(regs[d])), reg));
        }
        return element_of(operand.tile, at, stm.location);
      };
      if (dims.empty()) {
        step.push_back(declare(type, name, read({})));
      } else {
        step.push_back(declare_array(type, name, product_of(counts)));
        for_registers(counts, loop_names, step, [&](const std::vector<ExprPtr>& r, KernelBlock& body) {
          ExprPtr flat = literal(std::int64_t{0});
          for (std::size_t k = 0; k < r.size(); ++k) flat = plus(mul(flat, literal(counts[k])), r[k]);
          body.push_back(assign(kernel::element(name, flat), read(r)));
        });
      }
      registers.push_back(name);
      operand_dims.push_back(dims);
    }
    for_registers(regs, reg_names, step, [&](const std::vector<ExprPtr>& r, KernelBlock& body) {
      std::vector<ExprPtr> elements;
      for (std::size_t o = 0; o < op.operands.size(); ++o) {
        ExprPtr flat = literal(std::int64_t{0});
        for (std::size_t d : operand_dims[o]) flat = plus(mul(flat, literal(regs[d])), r[d]);
        elements.push_back(operand_dims[o].empty() ? variable(registers[o]) : kernel::element(registers[o], flat));
      }
      std::vector<ExprPtr> mapped = inline_lambda(op.map, elements, body);
      std::vector<ExprPtr> at = thread, arguments;
      at.insert(at.end(), r.begin(), r.end());
      std::vector<ExprPtr> accumulators;
      for (Value acc : op.accumulators) accumulators.push_back(element_of(acc, at, stm.location));
      arguments = accumulators;
      arguments.insert(arguments.end(), mapped.begin(), mapped.end());
      std::vector<ExprPtr> reduced = inline_lambda(op.reduce.op, arguments, body);
      // All results first: one may be computed from another's old value.
      for (std::size_t k = 0; k < reduced.size() && reduced.size() > 1; ++k) {
        std::string name = unit_.fresh("next");
        body.push_back(declare({table.type(op.accumulators[k]).element, false}, name, reduced[k]));
        reduced[k] = variable(name);
      }
      for (std::size_t k = 0; k < reduced.size(); ++k) body.push_back(assign(accumulators[k], reduced[k]));
    });
    for (std::size_t e = op.depth.size(); e-- > 0;)
      if (!depth_names[e].empty()) {
        bool constant = unit_.fold(op.depth[e]).has_value();
        KernelBlock body = std::move(step);
        step.clear();
        step.push_back(for_loop(constant ? kInt : kIndex, depth_names[e], values_.poly(op.depth[e]), std::move(body)));
      }
    inner.insert(inner.end(), step.begin(), step.end());
  });
}

void Kernel::write_regtiles(const SegOp& op, const Stm& stm, KernelBlock& out) {
  for (const KernelResult& result : op.results)
    if (result.kind != KernelResult::Kind::regtile)
      unsupported(stm.location, "a block-level result that is no register tile");
  if (op.results.empty()) return;
  const std::vector<TileExtent>& extents = op.results[0].extents;
  const ValueTable& table = unit_.function.values;
  std::vector<std::int64_t> tiles, regs;
  std::vector<std::string> names;
  for (const TileExtent& extent : extents) {
    tiles.push_back(unit_.constant(extent.tile, "a tile number"));
    regs.push_back(unit_.constant(extent.reg, "a tile number"));
    names.push_back(dim_of(extent.tile, table));
  }
  out.push_back(comment("write-back; what is out of range is dropped"));
  const auto several = [&](std::size_t d) { return regs[d] > 1; };
  const auto dims = std::views::iota(std::size_t{0}, extents.size());
  const bool is_split = std::ranges::any_of(extents, [](const TileExtent& extent) { return !extent.split.empty(); });
  const auto lines = std::ranges::count_if(dims, several);
  if (unit_.target.on_device() && op.results.size() == 1 && !is_split && (lines == 1 || lines == 2)) {
    for_threads(tiles, names, out, [&](const std::vector<ExprPtr>& thread, KernelBlock& inner) {
      write_lines(op, stm, thread, regs, inner);
    });
    return;
  }
  for_threads(tiles, names, out, [&](const std::vector<ExprPtr>& thread, KernelBlock& inner) {
    // A guard as far out as its dim's index is known.
    std::vector<ExprPtr> reg, global;
    std::vector<std::string> loops, index_names;
    for (std::size_t d = 0; d < extents.size(); ++d) {
      loops.push_back(regs[d] == 1 ? "" : unit_.fresh("r_" + names[d]));
      reg.push_back(regs[d] == 1 ? literal(std::int64_t{0}) : variable(loops.back()));
      index_names.push_back(unit_.fresh(names[d] == "x" ? "i" : "i_" + names[d]));
      global.push_back(variable(index_names.back()));
    }
    KernelBlock body;
    std::vector<ExprPtr> at = thread;
    at.insert(at.end(), reg.begin(), reg.end());
    std::vector<ExprPtr> place = global;
    for (std::size_t d = 0; d < extents.size(); ++d) {
      if (extents[d].split.empty()) continue;
      if (d == 0) place.assign(op.results[0].regtile_shape().size(), nullptr);
      std::vector<Poly> bounds;
      for (const TileExtent::Part& part : extents[d].split) bounds.push_back(part.bound);
      const std::vector<ExprPtr> digits = split(global[d], bounds, body);
      for (std::size_t p = 0; p < digits.size(); ++p)
        place[static_cast<std::size_t>(extents[d].split[p].axis)] = digits[p];
    }
    for (std::size_t k = 0; k < op.results.size(); ++k)
      body.push_back(assign(element_of(stm.pattern[k], place, stm.location),
                            element_of(op.body->results[k].value(), at, stm.location)));
    for (std::size_t d = extents.size(); d-- > 0;) {
      ExprPtr start = mul(values_.value(op.space[d].index), literal(tiles[d] * regs[d]));
      ExprPtr index = plus(start, plus(mul(thread[d], literal(regs[d])), reg[d]));
      KernelBlock guarded{declare(kIndex, index_names[d], index)};
      if (tiles[d] * regs[d] == 1) {
        guarded.insert(guarded.end(), body.begin(), body.end());
      } else {
        guarded.push_back(
            kernel::branch(infix("<", variable(index_names[d]), values_.poly(extents[d].bound)), std::move(body)));
      }
      body = std::move(guarded);
      if (regs[d] != 1) {
        Stmt loop = for_loop(kInt, loops[d], literal(regs[d]), std::move(body));
        loop.unroll = true;
        body.clear();
        body.push_back(std::move(loop));
      }
    }
    inner.insert(inner.end(), body.begin(), body.end());
  });
}

// A thread's registers along one dim, or lines of them along another: where the first one goes is worked out once, and
// how many of them are inside.
void Kernel::write_lines(const SegOp& op, const Stm& stm, const std::vector<ExprPtr>& thread,
                         const std::vector<std::int64_t>& regs, KernelBlock& out) {
  const std::vector<TileExtent>& extents = op.results[0].extents;
  const MemoryBinding& target = *unit_.function.type(stm.pattern[0]).memory;
  const auto along = static_cast<std::size_t>(std::ranges::max_element(regs) - regs.begin());
  std::size_t across = extents.size();  // the dim of lines, if there are several
  ExprPtr inside, left, lines_left, position = values_.poly(target.layout.offset());
  KernelBlock body;
  for (std::size_t d = 0; d < extents.size(); ++d) {
    const std::int64_t tile = unit_.constant(extents[d].tile, "a tile number") * regs[d];
    const std::string index = unit_.fresh("i");
    const ExprPtr start = mul(values_.value(op.space[d].index), number_of(tile));
    body.push_back(declare(kIndex, index, plus(start, mul(thread[d], number_of(regs[d])))));
    position = plus(position, mul(variable(index), values_.poly(target.layout.dims()[d].stride)));
    const ExprPtr bound = values_.poly(extents[d].bound);
    const ExprPtr inside_of = call("apl_index_min", {number_of(regs[d]), infix("-", bound, variable(index))});
    if (d == along) {
      left = inside_of;
    } else if (regs[d] > 1) {
      across = d;
      lines_left = inside_of;
    } else if (tile > 1) {
      const ExprPtr test = infix("<", variable(index), bound);
      inside = inside ? infix("&&", inside, test) : test;
    }
  }
  const std::string count = unit_.fresh("left"), to = unit_.fresh("to"), apart = unit_.fresh("apart"),
                    r = unit_.fresh("r"), line = unit_.fresh("line"), at_line = unit_.fresh("to");
  body.push_back(declare(kInt, count, inside ? select(inside, left, number_of(0)) : left));
  body.push_back(declare(kIndex, to, position, false));
  body.push_back(declare(kIndex, apart, values_.poly(target.layout.dims()[along].stride)));
  const bool one_line = across == extents.size();
  std::vector<ExprPtr> at = thread;
  for (std::size_t d = 0; d < extents.size(); ++d)
    at.push_back(d == along ? variable(r) : d == across ? variable(line) : number_of(0));
  const std::string& here = one_line ? to : at_line;
  KernelBlock write{assign(element_flat(target.block, variable(here), stm.location),
                           element_of(op.body->results[0].value(), at, stm.location))};
  KernelBlock one{kernel::branch(infix("<", variable(r), variable(count)), std::move(write)), go_on(here, apart)};
  Stmt elements = for_loop(kInt, r, number_of(regs[along]), std::move(one));
  elements.unroll = true;
  if (one_line) {
    body.push_back(std::move(elements));
  } else {
    const std::string lines = unit_.fresh("lines");
    body.push_back(declare(kInt, lines, lines_left));
    KernelBlock each{declare(kIndex, at_line, variable(to), false), std::move(elements)};
    KernelBlock all{kernel::branch(infix("<", variable(line), variable(lines)), std::move(each)),
                    assign(variable(to), plus(variable(to), values_.poly(target.layout.dims()[across].stride)))};
    Stmt loop = for_loop(kInt, line, number_of(regs[across]), std::move(all));
    loop.unroll = true;
    body.push_back(std::move(loop));
  }
  out.insert(out.end(), body.begin(), body.end());
}

}  // namespace apl::lower
