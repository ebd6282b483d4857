#include "passes/extract_kernels/block_kernel.h"

#include <algorithm>

namespace apl {

std::vector<Stm> needed_for(const std::vector<Stm>& all, std::set<Value> roots, const ValueTable& values) {
  std::vector<Stm> result;
  for (std::size_t k = all.size(); k-- > 0;) {
    const Stm& stm = all[k];
    if (std::ranges::none_of(stm.pattern, [&](Value v) { return roots.contains(v); })) continue;
    roots.merge(free_values(stm.op, values));
    result.insert(result.begin(), stm);
  }
  return result;
}

std::set<Value> read_by(const std::vector<Stm>& stms, const ValueTable& values) {
  std::set<Value> read;
  for (const Stm& stm : stms) read.merge(free_values(stm.op, values));
  return read;
}

std::optional<Match> match_reduction(std::vector<Stm> around, const std::vector<std::pair<Value, Poly>>& space,
                                     const Stm& reduction, const HostViews& views, ValueTable& values) {
  std::vector<Stm> all;
  std::set<Value> roots = read_by({reduction}, values);
  around = needed_for(around, roots, values);
  roots.merge(read_by(around, values));
  std::set<Value> seen;
  for (bool more = true; more;) {
    more = false;
    for (const Value v : std::set<Value>(roots)) {
      const auto view = views.find(v);
      if (view == views.end() || !seen.insert(v).second) continue;
      all.insert(all.begin(), view->second);
      roots.merge(free_values(view->second.op, values));
      more = true;
    }
  }
  append(all, around);
  all.push_back(reduction);
  Substitution indices;
  SegOp kernel{.level = SegLevel::thread};
  std::vector<Poly> shape;
  for (const auto& [index, size] : space) {
    const Value fresh = values.add(Type::scalar(ScalarType::i64), values.name(index));
    indices.insert_or_assign(index, Operand(fresh));
    kernel.space.push_back({fresh, size});
    shape.push_back(size);
  }
  kernel.body = copy_fresh(make_body(std::move(all), {reduction.pattern[0]}), indices, values, values);
  kernel.results = {{KernelResult::Kind::returns, {}}};
  const Value result = values.add(values.type(reduction.pattern[0]).array_of(shape), "r");
  return match_alone({.pattern = {result}, .op = std::move(kernel), .location = reduction.location}, values);
}

std::optional<std::string> unfit_for_tiles(const Contraction& contraction, bool exact) {
  const std::size_t query = contraction.space_rank - 2, other = contraction.space_rank - 1;
  if (contraction.dims.size() != contraction.space_rank + 1) return "they are reduced over several dims";
  if (!contraction.uniform.empty()) return "they read what is the same for all queries and keys";
  for (const ContractionOperand& operand : contraction.operands) {
    if (operand.index) return "they use an index";
    if (!operand.is_plain()) return "an operand is read under a condition, or where an array of indices says";
    if (operand.varies(query) == operand.varies(other) || !operand.varies(other + 1))
      return "an operand goes along both of their dims, or none";
    if (exact && !operand.exact) return "a branch may keep an operand from being read outside of its array";
  }
  return std::nullopt;
}

void BlockKernel::outer_space(SegOp& kernel, const std::vector<const Contraction*>& contractions) {
  for (std::size_t w = 0; w < outer_; ++w) {
    const Value block = values_.add(Type::scalar(ScalarType::i64), "b");
    kernel.space.push_back({block, widths_[w]});
    here_.insert_or_assign(indices_[w], Operand(block));
    for (const Contraction* contraction : contractions)
      here_.insert_or_assign(contraction->dims[w].index, Operand(block));
  }
}

std::vector<Value> BlockKernel::in_block(Builder& block, const std::vector<std::string>& names, const Poly& along,
                                         const std::function<Results(Builder&, const Thread&)>& fill) {
  SegOp threads{.level = SegLevel::inblock};
  Thread thread;
  const auto dim = [&](const char* name, const Poly& bound) {
    const Value index = values_.add(Type::scalar(ScalarType::i64), name);
    threads.space.push_back({index, bound});
    thread.own.push_back(DimIndex::fix(Poly(index)));
    return index;
  };
  for (std::size_t w = 0; w < outer_; ++w) dim("t", 1);
  thread.along = dim("t_k", along);
  thread.query = dim("t_q", query_threads_);
  threads.body = block.body([&](Builder& inner) {
    std::vector<Operand> results;
    for (const auto& [result, kind] : fill(inner, thread)) {
      results.push_back(result);
      threads.results.push_back({kind, {}});
    }
    return results;
  });
  return block.let_many(names, std::move(threads));
}

std::vector<Poly> BlockKernel::registers(const Poly& along) const {
  std::vector<Poly> shape(outer_, Poly(1));
  shape.push_back(along);
  shape.push_back(queries_);
  return shape;
}

Value BlockKernel::each(Builder& thread, const std::string& name, const Poly& along, const std::vector<Value>& rows,
                        const std::function<Operand(Builder&, Value, Value, const std::vector<Value>&)>& fill) {
  return thread
      .screma({name}, registers(along), rows,
              [&](Builder& inner, BoundValues all) {
                const std::vector<Value> elements(all.begin() + static_cast<std::ptrdiff_t>(outer_) + 2, all.end());
                return std::vector<Operand>{fill(inner, all[outer_], all[outer_ + 1], elements)};
              },
              {})
      .front();
}

std::vector<Value> BlockKernel::each_query(Builder& thread, const std::vector<std::string>& names,
                                           const std::vector<Value>& rows, const FillMany& fill) {
  return thread.screma(names, {queries_}, rows, fill, {});
}

Value BlockKernel::folded(Builder& inner, BinaryOp op, const Scalar& neutral, const Poly& width,
                          const std::function<Value(Builder&, Value)>& element) {
  return inner
      .screma({"x"}, {width}, {}, [&](Builder& k, BoundValues all) { return std::vector<Operand>{element(k, all[0])}; },
              {inner.reduce_op(op, neutral)})
      .front();
}
Value BlockKernel::register_of(Builder& builder, Value rows, Value along, Value query) const {
  std::vector<Poly> at(outer_, Poly(0));
  at.emplace_back(along);
  at.emplace_back(query);
  return builder.index(rows, at);
}
Value BlockKernel::shared_by_query(Builder& builder, Value rows, Value other, const Thread& thread, Value query) const {
  std::vector<Poly> at(outer_, Poly(0));
  at.emplace_back(other);
  at.emplace_back(thread.query);
  at.emplace_back(query);
  return builder.index(rows, at);
}

BlockKernel::Tile BlockKernel::make_tile(Builder& block, const Contraction& contraction,
                                         const ContractionOperand& operand, std::size_t dim, const Poly& extent,
                                         const Poly& steps, int axis) {
  const std::size_t reduced = contraction.space_rank;
  Tile tile{&operand, dim, reduced, extent, steps, contraction.dims[dim].size, contraction.dims[reduced].size};
  const ScalarType element = values_.type(operand.base).element;
  tile.by_dim = operand.strides[dim].is_one() && !operand.strides[reduced].is_one();
  // A row's stride is a multiple of 16 bytes; a transposed copy writes with it, in more banks then.
  const Poly row = extent + Poly(tile.by_dim ? 0 : static_cast<std::int64_t>(16 / byte_size(element)));
  const LmadDim along{extent, 1}, across{steps, row};
  tile.axes = tile.by_dim ? std::vector{depth_axis(), axis} : std::vector{axis, depth_axis()};
  tile.shared =
      block.let(values_.name(operand.base) + "_s",
                SharedArray{element, Lmad(0, tile.by_dim ? std::vector{across, along} : std::vector{along, across})});
  return tile;
}

Value BlockKernel::copy(Builder& block, const Tile& tile, Value target, const Poly& start,
                        const Poly& first_step) const {
  const ContractionOperand& operand = *tile.operand;
  Poly offset = operand.offset + start * operand.strides[tile.dim] + first_step * operand.strides[tile.reduced];
  for (std::size_t w = 0; w < outer_; ++w) offset += operand.strides[w] * as_poly(here_.at(indices_[w]));
  const LmadDim along{tile.extent, operand.strides[tile.dim]}, across{tile.steps, operand.strides[tile.reduced]};
  const TileGuard inside{start, tile.bound, {}}, steps_inside{first_step, tile.steps_bound, {}};
  CopyTile copy;
  copy.target = target;
  copy.source = operand.base;
  copy.window = Lmad(offset, tile.by_dim ? std::vector{across, along} : std::vector{along, across});
  copy.guards = tile.by_dim ? std::vector{steps_inside, inside} : std::vector{inside, steps_inside};
  copy.pad = Scalar::zero(values_.type(operand.base).element);
  return block.let(values_.name(operand.base) + "_s", std::move(copy));
}

Value BlockKernel::contract(Builder& block, const Contraction& contraction, const Poly& along, const Poly& depth,
                            Value sums, const std::vector<TileOperand>& operands) {
  TileContract made;
  for (std::size_t w = 0; w < outer_; ++w) made.space.push_back({1, 1});
  made.space.push_back({threads_, along});
  made.space.push_back({query_threads_, queries_});
  made.depth = {depth};
  made.accumulators = {sums};
  made.operands = operands;
  made.map = copy_fresh(contraction.map, here_, values_, values_);
  made.reduce = contraction.reduce;
  made.reduce.op = copy_fresh(contraction.reduce.op, {}, values_, values_);
  return block.let("sums", std::move(made));
}

Operand BlockKernel::size(Builder& builder, const Poly& value) const {
  const auto known = as_operand(value);
  return known ? *known : Operand(builder.size(value, "size"));
}

bool BlockKernel::has_reads(const std::vector<Stm>& stms) {
  bool reads = false;
  const auto look = [&](const Stm& stm) { reads = reads || get_if<Index>(stm) != nullptr; };
  for (const Stm& stm : stms) {
    look(stm);
    for_each_body(stm.op, [&](const BodyPtr& inner) { for_each_stm(*inner, look); });
  }
  return reads;
}

std::vector<Operand> BlockKernel::copied(Builder& code, const std::vector<Stm>& stms,
                                         const std::vector<Operand>& results, Substitution here) const {
  const BodyPtr copy = copy_fresh(make_body(stms, results), here, values_, values_);
  code.append_all(copy->stms);
  return copy->results;
}

}  // namespace apl
