// Loops and branches: arrays that are carried or yielded, and the bodies of operators, whose results are moved alike.
#include <fmt/format.h>
#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <set>

#include "ir/layouts.h"
#include "ir/walk.h"
#include "passes/place_memory/placer.h"

namespace apl::memory {

// Whether the loop's array may lie where `initial` does: in a block of this body and exactly as large, of whose arrays
// none is read in the loop or after it, under whatever name, nor is it the place of one of the loop's `earlier` arrays.
bool Placer::takes_over(Value initial, std::span<const Operand> earlier, const std::vector<Stm>& out) const {
  if (!is_dense(initial)) return false;
  const Value block = binding(initial)->block;
  const auto in_block = [&](Value v) { return binding(v) != nullptr && binding(v)->block == block; };
  const auto read_later = [&](Value v) {
    const auto reads = reads_left_.find(v);
    return in_block(v) && reads != reads_left_.end() && reads->second > 0;
  };
  if (std::ranges::any_of(bound_to_.at(block), read_later)) return false;
  if (std::ranges::any_of(earlier, [&](const Operand& x) { return x.is_value() && in_block(x.value()); })) return false;
  const Type& type = result_.type(initial);
  const Poly bytes = bytes_of(type, product(type.shape));
  return std::ranges::any_of(out, [&](const Stm& stm) {
    const Alloc* alloc = get_if<Alloc>(stm);
    return alloc && stm.pattern.front() == block && alloc->bytes == bytes;
  });
}

// Every carried array has a block of its own for the whole loop: it starts there, and what an iteration gives is moved
// there before the next. On the host arrays that swap their roles stay where they are.
void Placer::loop(const Loop& op, Stm stm, Level level, std::vector<Stm>& out) {
  if (level == Level::block || level == Level::inblock) return tile_loop(op, std::move(stm), level, out);
  Loop placed = op;
  const Space space = level == Level::host ? Space::global : Space::thread;
  std::vector<bool> moves(op.params.size());  // arrays whose block changes with their size
  for (std::size_t k = 0; k < op.params.size(); ++k) {
    const Type type = result_.type(op.params[k]);
    if (!type.is_array()) continue;
    moves[k] = mentions_any(type, op.params);
    Value start = op.initial[k].value();
    if (!takes_over(start, std::span(placed.initial).first(k), out)) start = copied(start, level, out);
    placed.initial[k] = start;
    const auto block = [&](Value array) {
      return moves[k] ? result_.values.add(Type::block(space), result_.values.name(array) + "_mem")
                      : binding(start)->block;
    };
    bind(op.params[k], block(op.params[k]), Lmad::row_major(type.shape));
    bind(stm.pattern[k], block(stm.pattern[k]), Lmad::row_major(result_.type(stm.pattern[k]).shape));
  }
  const BodyPtr inner = resolved(body(*op.body, level), level, op.params, level == Level::host);
  if (error_) return;
  const std::vector<Operand> starts = placed.initial;
  placed.params = with_blocks(op.params, moves);
  placed.initial = with_blocks(starts, moves);
  placed.body = make_body(inner->stms, with_blocks(inner->results, moves));
  stm.pattern = with_blocks(stm.pattern, moves);
  stm.op = std::move(placed);
  out.push_back(std::move(stm));
}

bool Placer::mentions_any(const Type& type, const std::vector<Value>& values) {
  bool found = false;
  for (const Poly& size : type.shape)
    size.for_each_symbol([&](Value v) { found = found || std::ranges::find(values, v) != values.end(); });
  return found;
}

BodyPtr Placer::yielding_body(const Body& source, Level level, const std::vector<Value>& targets) {
  return resolved(body(source, level), level, targets);
}

// Whether the array fills the block of another of the targets, which is as large as its own target's.
bool Placer::may_take_turn(Value array, Value target, const std::vector<Value>& targets) const {
  if (!target || !is_dense(array)) return false;
  const Type& type = result_.type(target);
  return !mentions_any(type, targets) && std::ranges::any_of(targets, [&](Value other) {
    return other && result_.type(other).is_array() && result_.type(other).element == type.element &&
           result_.type(other).shape == type.shape && *binding(other) == *binding(array);
  });
}

BodyPtr Placer::resolved(const BodyPtr& placed, Level level, const std::vector<Value>& targets, bool turns) {
  std::vector<Stm> stms = placed->stms;
  std::vector<Operand> results = placed->results;
  std::set<Value> made, taken, there;
  for (const Stm& stm : stms)
    for (Value v : stm.pattern)
      if (result_.type(v).is_memory()) made.insert(v);
  for (std::size_t k = 0; k < results.size() && !error_; ++k) {
    if (!results[k].is_value() || !result_.type(results[k].value()).is_array()) continue;
    const Value array = results[k].value();
    const MemoryBinding* where = binding(array);
    const bool in_place = k < targets.size() && targets[k] && *where == *binding(targets[k]);
    const bool own = made.contains(where->block) && is_dense(array);
    const bool first = taken.insert(where->block).second;
    // Branches that give an array twice give one block twice.
    if (in_place && (first || there.contains(where->block))) {
      there.insert(where->block);
      continue;
    }
    if (first && (own || (turns && may_take_turn(array, targets[k], targets)))) continue;
    results[k] = copied(array, level, stms);
  }
  return make_body(std::move(stms), std::move(results));
}

// An `if`, or a `choose`.
void Placer::branch(Stm stm, Level level, std::vector<Stm>& out) {
  std::vector<BodyPtr> bodies = branches(stm.op);
  for (BodyPtr& inner : bodies) inner = body(*inner, level);
  const auto alike = [&](std::size_t k) {
    return std::ranges::all_of(bodies, [&](const BodyPtr& inner) {
      return *binding(inner->results[k].value()) == *binding(bodies.front()->results[k].value());
    });
  };
  std::vector<Value> targets(stm.pattern.size());
  std::vector<bool> moves(stm.pattern.size());
  const bool in_block = level == Level::block || level == Level::inblock;
  for (std::size_t k = 0; k < stm.pattern.size() && !error_; ++k) {
    const Value v = stm.pattern[k];
    const Type type = result_.type(v);
    if (!type.is_array()) continue;
    // All branches updated the same array in place: it stays there.
    if (alike(k)) {
      bind_like(v, bodies.front()->results[k].value());
      targets[k] = v;
      continue;
    }
    if (in_block)
      return fail(stm, fmt::format("the branches leave the array `{}` in different places", result_.values.name(v)));
    moves[k] = mentions_any(type, stm.pattern);
    const Space space = level == Level::host ? Space::global : Space::thread;
    const Value block = moves[k] ? result_.values.add(Type::block(space), result_.values.name(v) + "_mem")
                                 : allocate(space, bytes_of(type, product(type.shape)), result_.values.name(v), out);
    bind(v, block, Lmad::row_major(type.shape));
  }
  for (BodyPtr& inner : bodies) {
    if (in_block || error_) break;
    const BodyPtr done = resolved(inner, level, targets);
    if (error_) return;
    inner = make_body(done->stms, with_blocks(done->results, moves));
  }
  if (!in_block) stm.pattern = with_blocks(stm.pattern, moves);
  std::size_t next = 0;
  stm.op = map_bodies(stm.op, [&](const BodyPtr&) { return bodies[next++]; });
  out.push_back(std::move(stm));
}

// What streams into a lambda are views of the inputs.
void Placer::bind_rows(const std::vector<Value>& indices, const std::vector<Value>& inputs,
                       const std::vector<Value>& rows) {
  std::vector<DimIndex> here;
  for (Value index : indices) here.push_back(DimIndex::fix(Poly(index)));
  for (const auto& [input, row] : ranges::views::zip(inputs, rows))
    if (result_.type(row).is_array()) bind(row, binding(input)->block, index_layout(binding(input)->layout, here));
}

// What is folded is moved to where the operator sees it, from parameter `first` on: the operator knows no index.
void Placer::bind_operands(const ReduceOp& op, std::size_t first, std::vector<Stm>& out) {
  for (std::size_t k = first; k < op.op.params.size(); ++k) {
    const Value param = op.op.params[k];
    const Type type = result_.type(param);
    if (!type.is_array()) continue;
    bind(param, allocate(Space::thread, bytes_of(type, product(type.shape)), result_.values.name(param), out),
         Lmad::row_major(type.shape));
  }
}

// Inside a thread: accumulators, scanned and mapped arrays have a block each.
void Placer::screma(const Screma& op, Stm stm, Level level, std::vector<Stm>& out) {
  if (level == Level::host) return fail(stm, "a map or reduction outside a kernel");
  Screma placed = op;
  bind_rows(op.indices, op.inputs, op.map.params);
  for (const Value v : stm.pattern) {
    const Type type = result_.type(v);
    if (!type.is_array()) continue;
    if (level == Level::block) return fail(stm, "an array that a block makes and no thread has");
    bind(v, allocate(Space::thread, bytes_of(type, product(type.shape)), result_.values.name(v), out),
         Lmad::row_major(type.shape));
  }
  placed.map.body = yielding_body(*op.map.body, level, {});
  if (error_) return;
  std::size_t first = 0;
  for (ReduceOp& reduce : placed.reduces) {
    const std::size_t n = reduce.neutral.size();
    std::vector<Value> accumulators;
    for (std::size_t k = 0; k < n; ++k) {
      const Value param = reduce.op.params[k];
      accumulators.push_back(reduce.scan ? param : stm.pattern[first + k]);
      const Type type = result_.type(param);
      if (!type.is_array()) continue;
      if (!reduce.scan) {
        bind_like(param, stm.pattern[first + k]);
        continue;
      }
      bind(param, allocate(Space::thread, bytes_of(type, product(type.shape)), result_.values.name(param), out),
           Lmad::row_major(type.shape));
    }
    bind_operands(reduce, n, out);
    reduce.op.body = yielding_body(*reduce.op.body, level, accumulators);
    first += n;
  }
  stm.op = std::move(placed);
  out.push_back(std::move(stm));
}

// In place: the results lie where the targets do.
void Placer::scatter(const Scatter& op, Stm stm, Level level, std::vector<Stm>& out) {
  const auto is_shared = [&](Value v) { return result_.type(binding(v)->block).space == Space::shared; };
  if (level == Level::inblock || (level == Level::block && !std::ranges::all_of(op.targets, is_shared)))
    return fail(stm, "a scatter inside a block into an array that is not shared");
  Scatter placed = op;
  bind_rows(op.indices, op.inputs, op.map.params);
  for (const auto& [made, target] : ranges::views::zip(stm.pattern, op.targets)) bind_like(made, target);
  placed.map.body = yielding_body(*op.map.body, Level::thread, {});
  if (op.op && !error_) {
    for (const Value param : op.op->op.params)
      if (level != Level::thread && result_.type(param).is_array())
        return fail(stm, "a histogram of rows outside a thread");
    bind_operands(*op.op, 0, out);
    placed.op->op.body = yielding_body(*op.op->op.body, Level::thread, {});
  }
  stm.op = std::move(placed);
  out.push_back(std::move(stm));
}

}  // namespace apl::memory
