#include "passes/place_memory/placer.h"

#include <fmt/format.h>
#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <set>

#include "ir/attributes.h"
#include "ir/layouts.h"
#include "ir/walk.h"

namespace apl::memory {

Placer::Placer(const Function& function, std::string file)
    : source_(function), file_(std::move(file)), result_(function) {
  const auto count = [&](const Body& body) {
    for (const Operand& x : body.results)
      if (x.is_value()) ++reads_left_[x.value()];
  };
  for_each_stm(*function.body, [&](const Stm& stm) {
    for_each_use(stm.op, [&](Value v) { ++reads_left_[v]; });
    for_each_body(stm.op, [&](const BodyPtr& body) { count(*body); });
  });
  count(*function.body);
}

Result<Function> Placer::run() {
  for (Value param : source_.params) {
    if (!source_.type(param).is_array()) continue;
    // The caller's memory: a block that no statement defines.
    Value block = result_.values.add(Type::block(Space::global), source_.values.name(param) + "_mem");
    bind(param, block, Lmad::row_major(source_.type(param).shape));
  }
  std::vector<Stm> stms;
  for (const Stm& stm : source_.body->stms) statement(stm, Level::host, stms);
  std::vector<Operand> function_results = source_.body->results;
  results(stms, function_results);
  if (error_) return std::move(*error_);
  result_.body = make_body(std::move(stms), std::move(function_results));
  return std::move(result_);
}

void Placer::fail(const Stm& stm, const std::string& what) {
  if (!error_) error_ = make_error(Code::unsupported_construct, stm.location, what);
}

const MemoryBinding* Placer::binding(Value array) const { return result_.type(array).memory.get(); }

void Placer::bind(Value array, Value block, Lmad layout) {
  Type type = result_.type(array);
  type.memory = std::make_shared<const MemoryBinding>(MemoryBinding{block, std::move(layout)});
  result_.values.set_type(array, std::move(type));
  bound_to_[block].push_back(array);
}

void Placer::bind_like(Value array, Value other) {
  Type type = result_.type(array);
  type.memory = result_.type(other).memory;
  result_.values.set_type(array, std::move(type));
  bound_to_[binding(other)->block].push_back(array);
}

void Placer::read(const std::vector<Operand>& results) {
  for (const Operand& x : results)
    if (x.is_value()) --reads_left_[x.value()];
}

Poly Placer::bytes_of(const Type& type, const Poly& elements) const {
  return elements * Poly(static_cast<std::int64_t>(byte_size(type.element)));
}

Value Placer::allocate(Space space, Poly bytes, const std::string& hint, std::vector<Stm>& out) {
  Value block = result_.values.add(Type::block(space), hint + "_mem");
  out.push_back({{block}, Alloc{std::move(bytes), space}, {}, {}, {}});
  return block;
}

BodyPtr Placer::body(const Body& source, Level level) {
  std::vector<Stm> stms;
  for (const Stm& stm : source.stms) statement(stm, level, stms);
  read(source.results);
  return make_body(std::move(stms), source.results);
}

// The result is another index function on the source's block; no code.
void Placer::view(const Stm& stm, Value source, const Lmad::Outcome& outcome, std::vector<Stm>& out) {
  if (!outcome)
    return fail(stm, fmt::format("`{}` needs a copy here: {}", result_.values.name(source), outcome.reason));
  bind(stm.pattern.front(), binding(source)->block, *outcome);
  out.push_back(stm);
}

// An array of its own: a new block, row-major.
void Placer::fresh(const Stm& stm, Level level, std::vector<Stm>& out) {
  for (Value v : stm.pattern) {
    const Type type = result_.type(v);
    if (!type.is_array()) continue;
    if (level == Level::block)
      return fail(stm, fmt::format("array `{}` at block level is neither shared nor private to threads",
                                   result_.values.name(v)));
    Space space = level == Level::host ? Space::global : Space::thread;
    Value block = allocate(space, bytes_of(type, product(type.shape)), result_.values.name(v), out);
    bind(v, block, Lmad::row_major(type.shape));
  }
  out.push_back(stm);
}

void Placer::statement(const Stm& stm, Level level, std::vector<Stm>& out) {
  if (error_) return;
  for_each_use(stm.op, [&](Value v) { --reads_left_[v]; });
  auto exact = [](Lmad lmad) { return Lmad::Outcome{std::move(lmad), {}}; };
  auto layout_of = [&](Value v) -> const Lmad& { return binding(v)->layout; };

  if (const SegOp* seg = get_if<SegOp>(stm)) return kernel(*seg, stm, level, out);
  if (const Loop* l = get_if<Loop>(stm)) return loop(*l, stm, level, out);
  if (is_branch(stm.op)) return branch(stm, level, out);
  if (const SharedArray* shared = get_if<SharedArray>(stm)) {
    Value array = stm.pattern.front();
    // The padded layout spans more elements than the shape has: up to its last point.
    Poly span = shared->layout.offset() + 1;
    for (const LmadDim& dim : shared->layout.dims()) span += (dim.size - 1) * dim.stride;
    Value block = allocate(Space::shared, bytes_of(result_.type(array), span), result_.values.name(array), out);
    bind(array, block, shared->layout);
    Stm scratch = stm;
    scratch.op = Scratch{shared->element, shared->layout.shape()};
    out.push_back(std::move(scratch));
    return;
  }
  if (const CopyTile* copy = get_if<CopyTile>(stm)) {
    bind_like(stm.pattern.front(), copy->target);
    CopyTile placed = *copy;
    const auto densely = [&](Value& source) {
      if (const auto dense = tiled_.find(source); dense != tiled_.end()) source = dense->second;
    };
    densely(placed.source);
    for (TileGather& gather : placed.gathers) densely(gather.positions);
    Stm made = stm;
    made.op = std::move(placed);
    out.push_back(std::move(made));
    return;
  }
  if (const TileContract* contract = get_if<TileContract>(stm)) {
    for (const auto& [made, accumulator] : ranges::views::zip(stm.pattern, contract->accumulators))
      bind_like(made, accumulator);
    out.push_back(stm);
    return;
  }
  if (const Update* op = get_if<Update>(stm)) return update(*op, stm, level, out);
  if (const Screma* op = get_if<Screma>(stm)) return screma(*op, stm, level, out);
  if (const Scatter* op = get_if<Scatter>(stm)) return scatter(*op, stm, level, out);
  bool array_result = !stm.pattern.empty() && result_.type(stm.pattern.front()).is_array();
  if (const Use* use = get_if<Use>(stm); use && array_result)
    return view(stm, use->x.value(), exact(layout_of(use->x.value())), out);
  if (const Rearrange* rearrange = get_if<Rearrange>(stm))
    return view(stm, rearrange->array, exact(layout_of(rearrange->array).permute(rearrange->permutation)), out);
  if (const Index* index = get_if<Index>(stm); index && array_result)
    return view(stm, index->array, exact(index_layout(layout_of(index->array), index->dims)), out);
  if (const Reshape* reshape = get_if<Reshape>(stm)) {
    const Lmad& layout = layout_of(reshape->array);
    Lmad::Outcome outcome = layout.reshape(reshape->shape);
    // That there are as many elements is the program's word: dense is dense in any shape, and one dim keeps its stride.
    if (!outcome && is_dense(reshape->array)) outcome = exact(Lmad::row_major(reshape->shape));
    if (!outcome && layout.rank() == 1 && reshape->shape.size() == 1)
      outcome = exact(Lmad(layout.offset(), {{reshape->shape.front(), layout.dims().front().stride}}));
    if (outcome || level == Level::block || level == Level::inblock) return view(stm, reshape->array, outcome, out);
    // No index function of this block has that shape: the elements move.
    // Dense ones have all shapes of as many elements; that there are as many is what a reshape means.
    const Value dense = is_dense(reshape->array) ? reshape->array : copied(reshape->array, level, out);
    Stm moved = stm;
    moved.op = Reshape{dense, reshape->shape};
    return view(moved, dense, exact(Lmad::row_major(reshape->shape)), out);
  }
  if (const ArrayLit* literal = get_if<ArrayLit>(stm); literal && level == Level::host) {
    if (literal->element.is_array()) return array_of_rows(*literal, stm, out);
    return fresh(stm, level, out);
  }
  if (array_result && level == Level::host && !get_if<Scratch>(stm))
    return fail(stm, fmt::format("`{}` makes an array at host level outside a kernel", op_name(stm.op)));
  fresh(stm, level, out);
}

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
  read(op.body->results);
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
// there before the next.
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
  const BodyPtr inner = handing_body(*op.body, level, op.params);
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

BodyPtr Placer::handing_body(const Body& source, Level level, const std::vector<Value>& targets) {
  return resolved(body(source, level), level, targets);
}

BodyPtr Placer::resolved(const BodyPtr& placed, Level level, const std::vector<Value>& targets) {
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
    if (own && first) continue;
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
  placed.map.body = handing_body(*op.map.body, level, {});
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
    reduce.op.body = handing_body(*reduce.op.body, level, accumulators);
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
  placed.map.body = handing_body(*op.map.body, Level::thread, {});
  if (op.op && !error_) {
    for (const Value param : op.op->op.params)
      if (level != Level::thread && result_.type(param).is_array())
        return fail(stm, "a histogram of rows outside a thread");
    bind_operands(*op.op, 0, out);
    placed.op->op.body = handing_body(*op.op->op.body, Level::thread, {});
  }
  stm.op = std::move(placed);
  out.push_back(std::move(stm));
}

void Placer::update(const Update& op, const Stm& stm, Level level, std::vector<Stm>& out) {
  const Value array = stm.pattern.front();
  bind_like(array, op.array);
  const bool rows = op.value.is_value() && result_.type(op.value.value()).is_array();
  if (!rows || level == Level::block || level == Level::inblock) {
    out.push_back(stm);
    return;
  }
  Stm placed = stm;
  Value value = op.value.value();
  // A part of the array that goes to another part of it.
  if (binding(value)->block == binding(op.array)->block) value = copied(value, level, out);
  if (level == Level::thread) {
    std::get<Update>(placed.op).value = value;
    out.push_back(std::move(placed));
    return;
  }
  if (op.checked) {
    // The check is that of the slice.
    const Value slice = result_.values.add(result_.type(value), result_.values.name(array));
    bind(slice, binding(array)->block, index_layout(binding(array)->layout, op.dims));
    out.push_back({.pattern = {slice}, .op = Index{op.array, op.dims, true}, .location = stm.location});
  }
  const Value part = result_.values.add(result_.type(value), result_.values.name(array));
  bind(part, binding(array)->block, index_layout(binding(array)->layout, op.dims));
  copy_into(part, value, stm.location, out);
  placed.op = Use{op.array};
  out.push_back(std::move(placed));
}

void Placer::array_of_rows(const ArrayLit& op, const Stm& stm, std::vector<Stm>& out) {
  const Value array = stm.pattern.front();
  const Type type = result_.type(array);
  bind(array, allocate(Space::global, bytes_of(type, product(type.shape)), result_.values.name(array), out),
       Lmad::row_major(type.shape));
  Stm made = stm;
  made.op = Scratch{type.element, type.shape};
  out.push_back(std::move(made));
  for (std::size_t k = 0; k < op.elements.size(); ++k) {
    const Value row = result_.values.add(type.row(), result_.values.name(array));
    bind(row, binding(array)->block,
         index_layout(binding(array)->layout, {DimIndex::fix(Poly(static_cast<std::int64_t>(k)))}));
    copy_into(row, op.elements[k].value(), stm.location, out);
  }
}

bool Placer::is_dense(Value array) const {
  return binding(array)->layout == Lmad::row_major(result_.type(array).shape);
}

Value Placer::copied(Value array, Level level, std::vector<Stm>& out) {
  const Type type = result_.type(array);
  const Value result = result_.values.add(Type::array(type.element, type.shape), result_.values.name(array));
  const Space space = level == Level::host ? Space::global : Space::thread;
  const Location location = out.empty() ? Location{} : out.back().location;
  const Value block = allocate(space, bytes_of(type, product(type.shape)), result_.values.name(result), out);
  bind(result, block, Lmad::row_major(type.shape));
  if (level == Level::host) {
    copy_into(result, array, location, out);
  } else {
    out.push_back({.pattern = {result}, .op = Copy{array}, .location = location});
  }
  return result;
}

void Placer::copy_into(Value target, Value array, Location location, std::vector<Stm>& out) {
  Builder host(result_.values);
  SegOp copy;
  std::vector<Poly> at;
  for (const Poly& size : result_.type(array).shape) {
    const Value index = result_.values.add(Type::scalar(ScalarType::i64), "i");
    copy.space.push_back({index, size});
    at.emplace_back(index);
  }
  copy.body = host.body([&](Builder& thread) { return std::vector<Operand>{thread.index(array, at, "x")}; });
  copy.results = {{KernelResult::Kind::returns, {}}};
  out.push_back({.pattern = {target}, .op = std::move(copy), .location = location});
}

// Results are row-major and each in a block of its own that is not the caller's.
void Placer::results(std::vector<Stm>& stms, std::vector<Operand>& results) {
  std::set<Value> taken;
  for (Value param : source_.params)
    if (const MemoryBinding* b = result_.type(param).is_array() ? binding(param) : nullptr) taken.insert(b->block);
  for (Operand& operand : results) {
    if (error_ || !operand.is_value() || !result_.type(operand.value()).is_array()) continue;
    Value array = operand.value();
    const MemoryBinding* where = binding(array);
    bool dense = where->layout == Lmad::row_major(result_.type(array).shape);
    if (!dense || !taken.insert(where->block).second) operand = copied(array, Level::host, stms);
  }
}

}  // namespace apl::memory
