// Loops and branches: arrays that are carried or yielded, and the bodies of operators, whose results are moved alike.
#include <fmt/format.h>
#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <set>

#include "ir/layouts.h"
#include "ir/walk.h"
#include "passes/place_memory/placer.h"

namespace apl::memory {

bool Placer::gives_up_block(Value array, Level level, bool moves, const std::function<bool(Value)>& read_again) const {
  if (!is_dense(array)) return false;
  const Value block = binding(array)->block;
  const Type& type = result_.type(array);
  if (result_.type(block).space != (level == Level::host ? Space::global : Space::thread)) return false;
  if (const auto bytes = bytes_.find(block); bytes != bytes_.end()) {
    if (bytes->second != bytes_of(type, product(type.shape))) return false;
  } else if (!moves || !moving_.contains(block)) {
    return false;
  }
  return std::ranges::none_of(bound_to_.at(block), [&](Value v) {
    return binding(v) != nullptr && binding(v)->block == block && read_again(v);
  });
}

// Every carried array has a block of its own for the whole loop: it starts there, and what an iteration gives is moved
// there before the next. That block is where the array lies before, if nothing else needs what is there. On the host
// arrays that swap their roles stay where they are.
void Placer::loop(const Loop& op, const Stm& source, Level level, std::vector<Stm>& out) {
  if (level == Level::block || level == Level::inblock) return tile_loop(op, source, level, out);
  Stm stm = source;
  Loop placed = op;
  const Space space = level == Level::host ? Space::global : Space::thread;
  std::vector<bool> moves(op.params.size());  // arrays whose block changes with their size
  std::set<Value> taken;
  for (std::size_t k = 0; k < op.params.size(); ++k) {
    const Type type = result_.type(op.params[k]);
    if (!type.is_array()) continue;
    moves[k] = mentions_any(type, op.params);
    Value start = op.initial[k].value();
    const bool takes_over =
        !taken.contains(binding(start)->block) &&
        gives_up_block(start, level, moves[k], [&](Value v) { return reads_.in_or_after(source, v); });
    if (!takes_over) start = copied(start, level, out);
    taken.insert(binding(start)->block);
    placed.initial[k] = start;
    const auto block = [&](Value array) { return moves[k] ? moving_block(space, array) : binding(start)->block; };
    bind(op.params[k], block(op.params[k]), Lmad::row_major(type.shape));
    bind(stm.pattern[k], block(stm.pattern[k]), Lmad::row_major(result_.type(stm.pattern[k]).shape));
  }
  const MayHandOn takes_turn = [&](Value result, Value target) { return may_take_turn(result, target, op.params); };
  const BodyPtr inner =
      resolved(body(*op.body, level), level, op.params, level == Level::host ? takes_turn : MayHandOn{});
  if (error_) return;
  const std::vector<Operand> starts = placed.initial;
  placed.params = with_blocks(op.params, moves);
  placed.initial = with_blocks(starts, moves);
  placed.body = make_body(inner->stms, with_blocks(inner->results, moves));
  stm.pattern = with_blocks(stm.pattern, moves);
  stm.op = std::move(placed);
  out.push_back(std::move(stm));
}

// The block of an array whose size a loop or branch decides: a value like the array.
Value Placer::moving_block(Space space, Value array) {
  const Value block = result_.values.add(Type::block(space), result_.values.name(array) + "_mem");
  moving_.insert(block);
  return block;
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

BodyPtr Placer::resolved(const BodyPtr& placed, Level level, const std::vector<Value>& targets,
                         const MayHandOn& may_hand_on) {
  std::vector<Stm> stms = placed->stms;
  std::vector<Operand> results = placed->results;
  const std::set<Value> made = blocks_made_in(*placed);
  std::set<Value> there, taken;  // blocks with a result that stays in them, or is handed on with them
  const auto target = [&](std::size_t k) { return k < targets.size() ? targets[k] : Value{}; };
  const auto is_array = [&](const Operand& x) { return x.is_value() && result_.type(x.value()).is_array(); };
  // Branches that give an array twice give one block twice.
  const auto is_in_place = [&](std::size_t k) {
    return target(k) && *binding(results[k].value()) == *binding(target(k));
  };
  for (std::size_t k = 0; k < results.size(); ++k)
    if (is_array(results[k]) && is_in_place(k)) there.insert(binding(results[k].value())->block);
  for (std::size_t k = 0; k < results.size() && !error_; ++k) {
    if (!is_array(results[k]) || is_in_place(k)) continue;
    const Value array = results[k].value(), block = binding(array)->block;
    const bool first = !there.contains(block) && taken.insert(block).second;
    const bool own = made.contains(block) && is_dense(array);
    if (first && (own || (may_hand_on && may_hand_on(array, target(k))))) continue;
    results[k] = copied(array, level, stms);
  }
  return make_body(std::move(stms), std::move(results));
}

std::set<Value> Placer::blocks_made_in(const Body& placed) const {
  std::set<Value> made;
  for (const Stm& stm : placed.stms)
    for (const Value v : stm.pattern)
      if (result_.type(v).is_memory()) made.insert(v);
  return made;
}

// Where the results of a branch lie that have no block of their own: where all branches leave them, else in the block
// from around of which one branch gives the array, as one that it updated or left as it was, if nobody needs what else
// lies there. The other branches then move theirs there.
std::vector<Value> Placer::branch_targets(const Stm& source, const std::vector<BodyPtr>& bodies, Level level) const {
  const auto result = [&](std::size_t branch, std::size_t k) { return bodies[branch]->results[k].value(); };
  std::vector<Value> like(source.pattern.size());
  std::set<Value> taken;
  for (std::size_t k = 0; k < source.pattern.size(); ++k) {
    if (!result_.type(source.pattern[k]).is_array()) continue;
    bool alike = true;
    for (std::size_t b = 1; b < bodies.size(); ++b) alike = alike && *binding(result(b, k)) == *binding(result(0, k));
    if (!alike) continue;
    like[k] = result(0, k);
    taken.insert(binding(like[k])->block);
  }
  if (level == Level::block || level == Level::inblock) return like;
  const auto read_again = [&](Value v) { return reads_.after(source, v); };
  for (std::size_t b = 0; b < bodies.size(); ++b) {
    const std::set<Value> made = blocks_made_in(*bodies[b]);
    for (std::size_t k = 0; k < source.pattern.size(); ++k) {
      const Type& type = result_.type(source.pattern[k]);
      if (like[k] || !type.is_array() || mentions_any(type, source.pattern)) continue;
      const Value array = result(b, k), block = binding(array)->block;
      if (made.contains(block) || taken.contains(block) || !gives_up_block(array, level, false, read_again)) continue;
      like[k] = array;
      taken.insert(block);
    }
  }
  return like;
}

// An `if`, or a `choose`.
void Placer::branch(const Stm& source, Level level, std::vector<Stm>& out) {
  Stm stm = source;
  std::vector<BodyPtr> bodies = branches(stm.op);
  for (BodyPtr& inner : bodies) inner = body(*inner, level);
  if (error_) return;
  const std::vector<Value> like = branch_targets(source, bodies, level);
  std::vector<Value> targets(stm.pattern.size());
  std::vector<bool> moves(stm.pattern.size());
  std::set<Value> target_blocks;
  const bool in_block = level == Level::block || level == Level::inblock;
  for (std::size_t k = 0; k < stm.pattern.size(); ++k) {
    const Value v = stm.pattern[k];
    const Type type = result_.type(v);
    if (!type.is_array()) continue;
    if (like[k]) {
      bind_like(v, like[k]);
      targets[k] = v;
      target_blocks.insert(binding(v)->block);
      continue;
    }
    if (in_block)
      return fail(stm, fmt::format("the branches leave the array `{}` in different places", result_.values.name(v)));
    moves[k] = mentions_any(type, stm.pattern);
    const Space space = level == Level::host ? Space::global : Space::thread;
    const Value block = moves[k] ? moving_block(space, v)
                                 : allocate(space, bytes_of(type, product(type.shape)), result_.values.name(v), out);
    bind(v, block, Lmad::row_major(type.shape));
  }
  // On the host blocks are exchanged: those of targets among each other, or one that nobody needs any more for a
  // target's.
  const auto read_again = [&](Value v) { return reads_.after(source, v); };
  const MayHandOn may_hand_on = [&](Value result, Value target) {
    const bool is_target = target_blocks.contains(binding(result)->block);
    return (!is_target || may_take_turn(result, target, targets)) && gives_up_block(result, level, !target, read_again);
  };
  for (BodyPtr& inner : bodies) {
    if (in_block) break;
    const BodyPtr done = resolved(inner, level, targets, level == Level::host ? may_hand_on : MayHandOn{});
    if (error_) return;
    inner = make_body(done->stms, with_blocks(done->results, moves));
  }
  if (!in_block) stm.pattern = with_blocks(stm.pattern, moves);
  std::size_t next = 0;
  stm.op = map_bodies(stm.op, [&](const BodyPtr&) { return bodies[next++]; });
  out.push_back(std::move(stm));
}

// A function's arguments lie row-major in blocks that stay the caller's, as those of an entry; what it gives comes in
// blocks of its own.
void Placer::call(const Apply& op, Stm stm, Level level, std::vector<Stm>& out) {
  if (level != Level::host) return out.push_back(std::move(stm));
  Apply placed = op;
  for (Operand& x : placed.arguments)
    if (x.is_value() && result_.type(x.value()).is_array() && !is_dense(x.value())) x = copied(x.value(), level, out);
  std::vector<Value> pattern;
  for (const Value v : stm.pattern) {
    if (const Type type = result_.type(v); type.is_array()) {
      const Value block = result_.values.add(Type::block(Space::global), result_.values.name(v) + "_mem");
      pattern.push_back(block);
      bind(v, block, Lmad::row_major(type.shape));
    }
    pattern.push_back(v);
  }
  stm.pattern = std::move(pattern);
  stm.op = std::move(placed);
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
