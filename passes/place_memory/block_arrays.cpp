// Arrays of a block: what its threads share, and what a loop over tiles carries.
#include <fmt/format.h>

#include <set>

#include "ir/layouts.h"
#include "passes/place_memory/placer.h"

namespace apl::memory {

// What the threads of a block make for each other is shared memory. Rows of as many dims as the threads have lie as
// register tiles do: element (t, r) of T threads and R registers is at t*R + r along each dim, so that the two can be
// merged into one dim of a tile. Other rows lie behind each other.
Lmad Placer::shared_layout(const Type& type, std::size_t space) {
  if (type.rank() != 2 * space) return Lmad::row_major(type.shape);
  std::vector<Poly> shape;
  std::vector<int> permutation(type.rank());
  for (std::size_t d = 0; d < space; ++d) {
    shape.push_back(type.shape[d]);
    shape.push_back(type.shape[space + d]);
    permutation[d] = static_cast<int>(2 * d);
    permutation[space + d] = static_cast<int>(2 * d + 1);
  }
  return Lmad::row_major(shape).permute(permutation);
}

// Each thread moves its own copy.
void Placer::move_private(Value from, Value to, std::vector<Stm>& out) {
  SegOp move{.level = SegLevel::inblock};
  std::vector<DimIndex> own;
  for (const SegDim& dim : private_to_.at(binding(from)->block)) {
    const Value index = result_.values.add(Type::scalar(ScalarType::i64), result_.values.name(dim.index));
    move.space.push_back({index, dim.bound});
    own.push_back(DimIndex::fix(Poly(index)));
  }
  Builder builder(result_.values);
  move.body = builder.body([&](Builder& thread) {
    const Value row = thread.let(result_.values.name(from), Index{from, own});
    if (result_.type(row).is_array()) bind(row, binding(from)->block, index_layout(binding(from)->layout, own));
    return std::vector<Operand>{row};
  });
  move.results = {{KernelResult::Kind::private_, {}}};
  out.push_back({.pattern = {to}, .op = std::move(move)});
}

// Merge parameters live where they start. Tiles in shared memory stay there; what a thread has for itself is moved
// back at the end of each iteration, which costs nothing where it lies in registers.
void Placer::tile_loop(const Loop& op, Stm stm, Level level, std::vector<Stm>& out) {
  for (std::size_t k = 0; k < op.params.size(); ++k) {
    if (!result_.type(op.params[k]).is_array()) continue;
    bind_like(op.params[k], op.initial[k].value());
    bind_like(stm.pattern[k], op.initial[k].value());
  }
  const BodyPtr inner = body(*op.body, level);
  if (error_) return;
  std::vector<Stm> stms = inner->stms;
  std::vector<Operand> results = inner->results;
  std::set<Value> carried;
  for (const Value param : op.params)
    if (const MemoryBinding* where = binding(param)) carried.insert(where->block);
  for (std::size_t k = 0; k < op.params.size(); ++k) {
    if (!result_.type(op.params[k]).is_array()) continue;
    const MemoryBinding from = *binding(results[k].value()), to = *binding(op.params[k]);
    if (from == to) continue;
    if (!private_to_.contains(from.block) || !private_to_.contains(to.block) || carried.contains(from.block))
      return fail(stm, fmt::format("a loop that changes where the array `{}` lies", result_.values.name(op.params[k])));
    const Value moved = result_.values.add(result_.type(results[k].value()), result_.values.name(op.params[k]));
    bind(moved, to.block, to.layout);
    move_private(results[k].value(), moved, stms);
    results[k] = moved;
  }
  Loop placed = op;
  placed.body = make_body(std::move(stms), std::move(results));
  stm.op = std::move(placed);
  out.push_back(std::move(stm));
}

}  // namespace apl::memory
