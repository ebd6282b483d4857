// Results of kernels: where they lie, and what threads make there at once instead of copying it.

#include <algorithm>

#include "ir/attributes.h"
#include "ir/layouts.h"
#include "ir/walk.h"
#include "passes/place_memory/placer.h"

namespace apl::memory {

void Placer::kernel(const SegOp& op, Stm stm, Level level, std::vector<Stm>& out) {
  Level inner = op.level == SegLevel::thread  ? Level::thread
                : op.level == SegLevel::block ? Level::block
                                              : Level::inblock;
  if (op.space.empty() && level == Level::host) return scalar_kernel(op, stm, out);
  if (level == Level::host && inner == Level::block) tile_sources(*op.body, out);
  SegOp placed = op;
  for (std::size_t k = 0; k < stm.pattern.size(); ++k) {
    Value array = stm.pattern[k];
    const Type type = result_.type(array);
    if (op.results[k].kind == KernelResult::Kind::private_) {
      // One copy a thread: the space dims do not move the address.
      std::vector<LmadDim> dims;
      Lmad row = Lmad::row_major(type.row(op.space.size()).shape);
      for (const SegDim& dim : op.space) dims.push_back({dim.bound, 0});
      dims.insert(dims.end(), row.dims().begin(), row.dims().end());
      Value block = allocate(Space::thread, bytes_of(type, row.element_count()), result_.values.name(array), out);
      bind(array, block, Lmad(0, std::move(dims)));
      private_to_.insert_or_assign(block, op.space);
    } else if (inner == Level::inblock && op.results[k].kind == KernelResult::Kind::returns) {
      if (op.space.empty()) return fail(stm, "an array of a block that no thread makes");
      const Value block = allocate(Space::shared, bytes_of(type, product(type.shape)), result_.values.name(array), out);
      bind(array, block, shared_layout(type, op.space.size()));
    } else if (level == Level::host) {
      Value block = allocate(Space::global, bytes_of(type, product(type.shape)), result_.values.name(array), out);
      bind(array, block, kernel_layout(type, op.space.size(), stm));
    } else {
      fail(stm, "a kernel inside a kernel returns an array that is not private");
      return;
    }
  }
  std::vector<Stm> stms;
  for (const Stm& s : op.body->stms) statement(s, inner, stms);
  if (level == Level::host) tiled_.clear();
  if (error_) return;
  // A private result made by the body itself is built in the result's block, not copied into it.
  for (std::size_t k = 0; k < op.body->results.size(); ++k) {
    const Operand& value = op.body->results[k];
    if (op.results[k].kind != KernelResult::Kind::private_ || !value.is_value()) continue;
    for (std::size_t s = 0; s < stms.size(); ++s) {
      const Alloc* alloc = get_if<Alloc>(stms[s]);
      const MemoryBinding* made = binding(value.value());
      if (!alloc || !made || stms[s].pattern.front() != made->block) continue;
      // Only if nothing else lies in that block.
      int bound = 0;
      for (std::uint32_t id = 0; id < result_.values.size(); ++id)
        if (const MemoryBinding* other = binding(Value{id})) bound += other->block == made->block ? 1 : 0;
      if (bound != 1 || !is_dense(value.value())) break;
      Lmad layout = made->layout;
      bind(value.value(), binding(stm.pattern[k])->block, std::move(layout));
      stms.erase(stms.begin() + static_cast<std::ptrdiff_t>(s));
      break;
    }
  }
  if (level == Level::host && op.level == SegLevel::thread) {
    build_in_place(op, stm, stms);
    build_parts_in_place(op.body->results, stms);
  }
  placed.body = make_body(std::move(stms), op.body->results);
  stm.op = std::move(placed);
  out.push_back(std::move(stm));
}

// Tiles are windows of row-major arrays: a source that lies otherwise (a result built within a view) is copied before.
void Placer::tile_sources(const Body& body, std::vector<Stm>& out) {
  for_each_stm(body, [&](const Stm& stm) {
    const CopyTile* copy = get_if<CopyTile>(stm);
    if (copy == nullptr) return;
    std::vector<Value> sources{copy->source};
    for (const TileGather& gather : copy->gathers) sources.push_back(gather.positions);
    for (const TileRead& read : copy->also)
      if (read.array) sources.push_back(*read.array);
    for (Value source : sources) {
      const MemoryBinding* lies = tiled_.contains(source) ? nullptr : binding(source);
      if (lies != nullptr && lies->layout.strides() != Lmad::row_major(result_.type(source).shape).strides())
        tiled_.emplace(source, copied(source, Level::host, out));
    }
  });
}

// Row-major; or, if coalesce says so, with the dims of the space innermost.
Lmad Placer::kernel_layout(const Type& type, std::size_t space, const Stm& stm) {
  const bool apart = has_attribute(stm.attributes, attribute::interleaved);
  if (!apart || type.rank() <= space) return Lmad::row_major(type.shape);
  std::vector<Poly> shape = type.row(space).shape;
  shape.insert(shape.end(), type.shape.begin(), type.shape.begin() + static_cast<std::ptrdiff_t>(space));
  std::vector<int> permutation;
  for (std::size_t d = 0; d < type.rank(); ++d)
    permutation.push_back(static_cast<int>(d < space ? type.rank() - space + d : d - space));
  return Lmad::row_major(shape).permute(permutation);
}

// The row that a thread makes in memory of its own and returns is made in the result instead, if its size is known only
// when the program runs: small arrays are better off in registers.
void Placer::build_in_place(const SegOp& op, const Stm& stm, std::vector<Stm>& stms) {
  std::vector<DimIndex> here;
  for (const SegDim& dim : op.space) here.push_back(DimIndex::fix(Poly(dim.index)));
  for (std::size_t k = 0; k < op.body->results.size(); ++k) {
    const Operand& value = op.body->results[k];
    if (!value.is_value() || !result_.type(value.value()).is_array()) continue;
    const MemoryBinding made = *binding(value.value());
    if (product(result_.type(value.value()).shape).constant() || !is_dense(value.value())) continue;
    const auto alloc = std::ranges::find_if(
        stms, [&](const Stm& s) { return get_if<Alloc>(s) != nullptr && s.pattern.front() == made.block; });
    if (alloc == stms.end() || std::ranges::count(op.body->results, value) != 1) continue;
    std::vector<Value> there;  // all that lies in the block
    bool alike = true;
    for (std::uint32_t id = 0; id < result_.values.size(); ++id) {
      const MemoryBinding* other = binding(Value{id});
      if (other == nullptr || other->block != made.block) continue;
      there.push_back(Value{id});
      alike = alike && other->layout == made.layout;
    }
    if (!alike) continue;
    const MemoryBinding to = *binding(stm.pattern[k]);
    for (const Value v : there) bind(v, to.block, index_layout(to.layout, here));
    stms.erase(alloc);
  }
}

// The beginning, or another part, of an array with nothing in it yet is made there, so that the update copies nothing:
//
//   let {room : [m]f32} = scratch([m]f32)
//   let {part : [k]f32} = scan(...)
//   let {whole : [m]f32} = room with [0 :+ k] = part
void Placer::build_parts_in_place(const std::vector<Operand>& results, std::vector<Stm>& stms) {
  for (std::size_t s = 0; s < stms.size(); ++s) {
    const Update* update = get_if<Update>(stms[s]);
    if (update == nullptr || update->checked || !update->value.is_value()) continue;
    const Value part = update->value.value(), room = update->array;
    if (!result_.type(part).is_array() || product(result_.type(part).shape).constant() || !is_dense(part)) continue;
    const auto used_here_alone = [&](Value v) {
      return std::ranges::find(results, Operand(v)) == results.end() &&
             std::ranges::count_if(
                 stms, [&](const Stm& other) { return free_values(other.op, result_.values).contains(v); }) == 1;
    };
    // It is there before the part is.
    bool empty = false;
    for (std::size_t k = 0; k < s && std::ranges::find(stms[k].pattern, part) == stms[k].pattern.end(); ++k)
      empty = empty || (get_if<Scratch>(stms[k]) != nullptr && stms[k].pattern.front() == room);
    if (!empty || !used_here_alone(room) || !used_here_alone(part)) continue;
    const Value block = binding(part)->block;
    const auto alloc = std::ranges::find_if(
        stms, [&](const Stm& other) { return get_if<Alloc>(other) != nullptr && other.pattern.front() == block; });
    std::size_t there = 0;
    for (std::uint32_t id = 0; id < result_.values.size(); ++id)
      if (const MemoryBinding* other = binding(Value{id})) there += other->block == block ? 1 : 0;
    if (alloc == stms.end() || there != 1) continue;
    const MemoryBinding to = *binding(room);
    // Memory of the thread is there only behind what makes it.
    const bool own = std::ranges::any_of(
        stms, [&](const Stm& other) { return get_if<Alloc>(other) != nullptr && other.pattern.front() == to.block; });
    if (own) continue;
    bind(part, to.block, index_layout(to.layout, update->dims));
    s -= alloc < stms.begin() + static_cast<std::ptrdiff_t>(s) ? 1 : 0;
    stms.erase(alloc);
  }
}

// A space without dims has one index: an array of one element each, of which the results are the elements.
void Placer::scalar_kernel(const SegOp& op, const Stm& stm, std::vector<Stm>& out) {
  SegOp boxed = op;
  Stm made = stm;
  boxed.space.push_back({result_.values.add(Type::scalar(ScalarType::i64), "i"), Poly(1)});
  for (Value& v : made.pattern) v = result_.values.add(result_.type(v).array_of({Poly(1)}), result_.values.name(v));
  made.op = boxed;
  kernel(boxed, made, Level::host, out);
  for (std::size_t k = 0; k < stm.pattern.size() && !error_; ++k) {
    Stm element{
        .pattern = {stm.pattern[k]}, .op = Index{made.pattern[k], {DimIndex::fix(Poly(0))}}, .location = stm.location};
    statement(element, Level::host, out);
  }
}

}  // namespace apl::memory
