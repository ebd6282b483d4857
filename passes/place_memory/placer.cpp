#include "passes/place_memory/placer.h"

#include <fmt/format.h>

#include <set>

#include "ir/layouts.h"
#include "ir/walk.h"

namespace apl::memory {

Placer::Placer(const Function& function, std::string file)
    : source_(function), file_(std::move(file)), result_(function) {}

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
}

void Placer::bind_like(Value array, Value other) {
  Type type = result_.type(array);
  type.memory = result_.type(other).memory;
  result_.values.set_type(array, std::move(type));
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
    if (space == Space::thread && !product(type.shape).constant()) {
      // Tile numbers are constants when the kernel is compiled; anything else would need memory per thread.
      bool tiles_only = level == Level::inblock;
      if (!tiles_only)
        return fail(stm,
                    fmt::format("array `{}` of a size known only at run time inside a thread", result_.values.name(v)));
    }
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
  if (const If* i = get_if<If>(stm)) return branch(*i, stm, level, out);
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
    out.push_back(stm);
    return;
  }
  if (const TileContract* contract = get_if<TileContract>(stm)) {
    for (std::size_t k = 0; k < stm.pattern.size(); ++k) bind_like(stm.pattern[k], contract->accumulators[k]);
    out.push_back(stm);
    return;
  }
  if (const Update* update = get_if<Update>(stm)) {
    bind_like(stm.pattern.front(), update->array);
    out.push_back(stm);
    return;
  }
  bool array_result = !stm.pattern.empty() && result_.type(stm.pattern.front()).is_array();
  if (const Use* use = get_if<Use>(stm); use && array_result)
    return view(stm, use->x.value(), exact(layout_of(use->x.value())), out);
  if (const Rearrange* rearrange = get_if<Rearrange>(stm))
    return view(stm, rearrange->array, exact(layout_of(rearrange->array).permute(rearrange->permutation)), out);
  if (const Index* index = get_if<Index>(stm); index && array_result)
    return view(stm, index->array, exact(index_layout(layout_of(index->array), index->dims)), out);
  if (const Reshape* reshape = get_if<Reshape>(stm)) {
    Lmad::Outcome outcome = layout_of(reshape->array).reshape(reshape->shape);
    if (outcome || level != Level::host) return view(stm, reshape->array, outcome, out);
    // No index function of this block has that shape: the elements move.
    Value dense = copied(reshape->array, out);
    Stm moved = stm;
    moved.op = Reshape{dense, reshape->shape};
    return view(moved, dense, layout_of(dense).reshape(reshape->shape), out);
  }
  if (array_result && level == Level::host)
    return fail(stm, fmt::format("`{}` makes an array at host level outside a kernel", op_name(stm.op)));
  fresh(stm, level, out);
}

void Placer::kernel(const SegOp& op, Stm stm, Level level, std::vector<Stm>& out) {
  Level inner = op.level == SegLevel::thread  ? Level::thread
                : op.level == SegLevel::block ? Level::block
                                              : Level::inblock;
  SegOp placed = op;
  for (std::size_t k = 0; k < stm.pattern.size(); ++k) {
    Value array = stm.pattern[k];
    const Type type = result_.type(array);
    if (!type.is_array()) {
      fail(stm, "a kernel without parallel dims gives a scalar: no memory for it");
      return;
    }
    if (op.results[k].kind == KernelResult::Kind::private_) {
      // One copy a thread: the space dims do not move the address.
      std::vector<LmadDim> dims;
      Lmad row = Lmad::row_major(type.row(op.space.size()).shape);
      for (const SegDim& dim : op.space) dims.push_back({dim.bound, 0});
      dims.insert(dims.end(), row.dims().begin(), row.dims().end());
      Value block = allocate(Space::thread, bytes_of(type, row.element_count()), result_.values.name(array), out);
      bind(array, block, Lmad(0, std::move(dims)));
    } else if (level == Level::host) {
      Value block = allocate(Space::global, bytes_of(type, product(type.shape)), result_.values.name(array), out);
      bind(array, block, Lmad::row_major(type.shape));
    } else {
      fail(stm, "a kernel inside a kernel returns an array that is not private");
      return;
    }
  }
  std::vector<Stm> stms;
  for (const Stm& s : op.body->stms) statement(s, inner, stms);
  if (error_) return;
  // A private result made by the body itself is built in the result's block, not copied into it.
  for (std::size_t k = 0; k < op.body->results.size(); ++k) {
    const Operand& value = op.body->results[k];
    if (op.results[k].kind != KernelResult::Kind::private_ || !value.is_value()) continue;
    for (std::size_t s = 0; s < stms.size(); ++s) {
      const Alloc* alloc = get_if<Alloc>(stms[s]);
      const MemoryBinding* made = binding(value.value());
      if (!alloc || !made || stms[s].pattern.front() != made->block) continue;
      Lmad layout = made->layout;
      bind(value.value(), binding(stm.pattern[k])->block, std::move(layout));
      stms.erase(stms.begin() + static_cast<std::ptrdiff_t>(s));
      break;
    }
  }
  placed.body = make_body(std::move(stms), op.body->results);
  stm.op = std::move(placed);
  out.push_back(std::move(stm));
}

// Merge parameters live where they start; the body must leave each in the same place.
void Placer::loop(const Loop& op, Stm stm, Level level, std::vector<Stm>& out) {
  for (std::size_t k = 0; k < op.params.size(); ++k) {
    if (!result_.type(op.params[k]).is_array()) continue;
    if (level != Level::block && level != Level::inblock)
      return fail(stm,
                  fmt::format("a loop that carries the array `{}` outside a block", result_.values.name(op.params[k])));
    bind_like(op.params[k], op.initial[k].value());
    bind_like(stm.pattern[k], op.initial[k].value());
  }
  Loop placed = op;
  placed.body = body(*op.body, level);
  if (error_) return;
  for (std::size_t k = 0; k < op.params.size(); ++k)
    if (result_.type(op.params[k]).is_array() && !(*binding(op.body->results[k].value()) == *binding(op.params[k])))
      return fail(stm, fmt::format("a loop that changes where the array `{}` lies", result_.values.name(op.params[k])));
  stm.op = std::move(placed);
  out.push_back(std::move(stm));
}

void Placer::branch(const If& op, Stm stm, Level level, std::vector<Stm>& out) {
  If placed = op;
  placed.then_body = body(*op.then_body, level);
  placed.else_body = body(*op.else_body, level);
  if (error_) return;
  for (std::size_t k = 0; k < stm.pattern.size(); ++k) {
    if (!result_.type(stm.pattern[k]).is_array()) continue;
    const Operand& a = op.then_body->results[k];
    const Operand& b = op.else_body->results[k];
    if (!(*binding(a.value()) == *binding(b.value())))
      return fail(stm, fmt::format("the branches leave the array `{}` in different places",
                                   result_.values.name(stm.pattern[k])));
    bind_like(stm.pattern[k], a.value());
  }
  stm.op = std::move(placed);
  out.push_back(std::move(stm));
}

Value Placer::copied(Value array, std::vector<Stm>& out) {
  Builder host(result_.values);
  const Type type = result_.type(array);
  SegOp copy;
  std::vector<Poly> at;
  for (const Poly& size : type.shape) {
    Value index = result_.values.add(Type::scalar(ScalarType::i64), "i");
    copy.space.push_back({index, size});
    at.emplace_back(index);
  }
  copy.body = host.body([&](Builder& thread) { return std::vector<Operand>{thread.index(array, at, "x")}; });
  copy.results = {{KernelResult::Kind::returns, {}}};
  Value result = result_.values.add(Type::array(type.element, type.shape), result_.values.name(array) + "_copy");
  Value block = allocate(Space::global, bytes_of(type, product(type.shape)), result_.values.name(result), out);
  bind(result, block, Lmad::row_major(type.shape));
  out.push_back({{result}, std::move(copy), {}, {}, {}});
  return result;
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
    if (!dense || !taken.insert(where->block).second) operand = copied(array, stms);
  }
}

}  // namespace apl::memory
