#include "passes/place_memory/placer.h"

#include <fmt/format.h>
#include <range/v3/view/zip.hpp>

#include <set>

#include "ir/layouts.h"
#include "ir/walk.h"

namespace apl::memory {

Placer::Placer(const Function& function, std::string file)
    : source_(function), file_(std::move(file)), result_(function), reads_(function) {}

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

Poly Placer::bytes_of(const Type& type, const Poly& elements) const {
  return elements * Poly(static_cast<std::int64_t>(byte_size(type.element)));
}

Value Placer::allocate(Space space, Poly bytes, const std::string& hint, std::vector<Stm>& out) {
  Value block = result_.values.add(Type::block(space), hint + "_mem");
  bytes_.emplace(block, bytes);
  out.push_back({{block}, Alloc{std::move(bytes), space}, {}, {}, {}});
  return block;
}

BodyPtr Placer::body(const Body& source, Level level) {
  std::vector<Stm> stms;
  for (const Stm& stm : source.stms) statement(stm, level, stms);
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
  auto exact = [](Lmad lmad) { return Lmad::Outcome{std::move(lmad), {}}; };
  auto layout_of = [&](Value v) -> const Lmad& { return binding(v)->layout; };

  if (const SegOp* seg = get_if<SegOp>(stm)) return kernel(*seg, stm, level, out);
  if (const Loop* l = get_if<Loop>(stm)) return loop(*l, stm, level, out);
  if (is_branch(stm.op)) return branch(stm, level, out);
  if (const Apply* apply = get_if<Apply>(stm)) return call(*apply, stm, level, out);
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
    for (TileRead& read : placed.also)
      if (read.array) densely(*read.array);
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
