// Tiles that a block copies to shared memory, in the general tiled kernel: element by element, or in rows where its
// threads share them evenly.
#include <algorithm>

#include <fmt/format.h>

#include "codegen/lower/lower.h"
#include "codegen/lower/thread_loops.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

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
    const ExprPtr to = element_of(op.target, at, stm.location);
    if (!op.map) {
      if (inside) value = select(inside, value, values_.operand(op.pad));
      inner.push_back(assign(to, value));
      return;
    }
    std::vector<ExprPtr> elements{value};
    for (const TileRead& read : op.also) {
      elements.push_back(affine(read.at));
      if (!read.array) continue;
      const MemoryBinding& from = *unit_.function.type(*read.array).memory;
      elements.back() =
          element_flat(from.block, plus(values_.poly(from.layout.offset()), elements.back()), stm.location);
    }
    KernelBlock mapped;
    for (std::size_t k = 0; k < elements.size(); ++k) {
      const std::string held = unit_.fresh("x");
      mapped.push_back(declare({unit_.function.type(op.map->params[k]).element, false}, held, elements[k]));
      elements[k] = variable(held);
    }
    mapped.push_back(assign(to, inline_lambda(*op.map, elements, mapped).front()));
    // What the map makes of the pad is not the pad.
    if (inside) mapped = {kernel::branch(inside, std::move(mapped), {assign(to, values_.operand(op.pad))})};
    inner.insert(inner.end(), std::make_move_iterator(mapped.begin()), std::make_move_iterator(mapped.end()));
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
  const std::int64_t elements = count_of(extents), each = elements / threads_;
  constexpr std::int64_t kAtOnce = 8;
  const bool is_split = std::ranges::any_of(op.guards, [](const TileGuard& guard) { return !guard.split.empty(); });
  // Of tiles, one beyond the other along the outermost axis, each by itself.
  const std::int64_t tiles = extents.size() > 2 ? extents[0] : 1;
  const std::size_t rows = tiles > 1 ? 1 : 0;
  const bool is_even = elements / tiles % threads_ == 0 && elements / tiles / threads_ <= kAtOnce &&
                       threads_ % (elements / tiles / extents[rows]) == 0;
  if (is_even && !is_split && op.where.empty() && op.gathers.empty() && !op.map) {
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
  const std::int64_t tiles = rows == 0 ? 1 : extents[0], elements = count_of(extents) / tiles;
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

}  // namespace apl::lower
