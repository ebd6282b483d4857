// The tiled kernel of a contraction: T listing 5, for any rank and number of reduction dims.
#include <range/v3/view/zip.hpp>

#include <algorithm>

#include "ir/schedule.h"
#include "ir/walk.h"
#include "passes/tile_contraction/tile.h"

namespace apl::tile {

Lmad shared_layout(const Contraction& contraction, const ContractionOperand& operand,
                   const std::vector<Poly>& extents) {
  std::vector<Poly> shape;
  std::optional<std::size_t> fastest;  // the axis walked by the fastest thread index
  for (std::size_t k = 0; k < operand.axes.size(); ++k) {
    auto d = static_cast<std::size_t>(operand.axes[k]);
    shape.push_back(extents[d]);
    if (d + 1 == contraction.space_rank) fastest = k;
  }
  if (fastest && *fastest + 1 < shape.size()) return Lmad::padded(shape, *fastest);
  return Lmad::row_major(shape);
}

namespace {

// One step of the reduction: where the tile starts in each reduction dim, how deep it is, what needs a guard.
struct Step {
  std::vector<Poly> start;
  std::vector<Poly> depth;
  std::vector<bool> full;
};

class KernelBuilder {
 public:
  KernelBuilder(const Contraction& contraction, const Tiling& plan, ValueTable& values)
      : contraction_(contraction), tiling_(plan), values_(values), block_{.contraction = contraction} {
    axes_ = axes_of(plan.schedule);
    for (const std::vector<std::size_t>& dims : axes_) {
      DimTiles tiles;
      Poly size = 1;
      for (std::size_t d : dims) {
        tiles.tile *= plan.dims[d].tile;
        tiles.reg *= plan.dims[d].reg;
        size *= contraction.dims[d].size;
      }
      space_.push_back(std::move(tiles));
      sizes_.push_back(std::move(size));
    }
    for (const DimTiles& tiles : plan.dims) extents_.push_back(tiles.extent());
  }

  SegOp run(Builder& host) {
    SegOp kernel;
    kernel.level = SegLevel::block;
    for (std::size_t x = 0; x < space_.size(); ++x) {
      Value block = values_.add(Type::scalar(ScalarType::i64), "b_" + name(x));
      kernel.space.push_back({block, ceil_div(sizes_[x], space_[x].extent())});
      starts_.push_back(Poly(block) * space_[x].extent());
      const ContractionDim& first = contraction_.dims[axes_[x][0]];
      if (first.dim_class == DimClass::batch || first.dim_class == DimClass::invariant)
        block_.uniform.insert_or_assign(first.index, Operand(block));
    }
    std::vector<FlatOperand> flat;
    for (const ContractionOperand& operand : contraction_.uniform) flat.push_back(flat_operand(operand, host));
    kernel.body = host.body([&](Builder& block) {
      read_uniform(block, flat);
      State state = declare(block);
      state = reduce_dim(block, contraction_.space_rank, {}, state);
      if (contraction_.after) {
        const std::vector<Value> results = make_epilogue(block, block_, state.accumulators);
        return std::vector<Operand>(results.begin(), results.end());
      }
      std::vector<Operand> results;
      for (std::size_t r : contraction_.results) results.emplace_back(state.accumulators[r]);
      return results;
    });
    std::vector<TileExtent> extents;
    bool in_order = true;
    for (std::size_t x = 0; x < space_.size(); ++x) {
      extents.push_back({sizes_[x], space_[x].tile, space_[x].reg});
      in_order = in_order && axes_[x] == std::vector{x};
    }
    for (std::size_t x = 0; x < space_.size() && !in_order; ++x)
      for (std::size_t d : axes_[x]) extents[x].split.push_back({static_cast<int>(d), contraction_.dims[d].size});
    for (std::size_t k = 0; k < kernel.body->results.size(); ++k)
      kernel.results.push_back({KernelResult::Kind::regtile, extents});
    kernel.schedule = tiling_.schedule;
    return kernel;
  }

 private:
  struct State {
    std::vector<Value> accumulators;
    std::vector<Value> tiles;
  };

  std::string name(std::size_t x) const {
    std::string name;
    for (std::size_t d : axes_[x]) name += (name.empty() ? "" : "_") + contraction_.dims[d].name;
    return name;
  }

  // The axes of an operand's tile, as TileContract numbers them. With M and N dims the rows of one step of the depth
  // lie together; else the order is that of memory.
  std::vector<int> tile_axes_of(const ContractionOperand& operand) const {
    if (!has_mn_dims(tiling_.schedule)) return operand.axes;
    std::vector<int> axes;
    for (std::size_t d = contraction_.space_rank; d < contraction_.dims.size(); ++d)
      if (operand.varies(d)) axes.push_back(static_cast<int>(d - contraction_.space_rank + space_.size()));
    for (std::size_t x = 0; x < space_.size(); ++x)
      if (std::ranges::any_of(axes_[x], [&](std::size_t d) { return operand.varies(d); }))
        axes.push_back(static_cast<int>(x));
    return axes;
  }

  Poly extent_of(int axis) const {
    auto x = static_cast<std::size_t>(axis);
    return x < space_.size() ? space_[x].extent() : extents_[x - space_.size() + contraction_.space_rank];
  }

  Lmad layout_of(const ContractionOperand& operand) const {
    if (!has_mn_dims(tiling_.schedule)) return shared_layout(contraction_, operand, extents_);
    std::vector<Poly> shape;
    for (int axis : tile_axes_of(operand)) shape.push_back(extent_of(axis));
    return Lmad::row_major(shape);
  }

  // Uniform elements are read once a block; not where nothing is reduced, when they need not be there.
  void read_uniform(Builder& block, const std::vector<FlatOperand>& flat) {
    for (std::size_t k = 0; k < flat.size(); ++k) {
      const ContractionOperand& operand = contraction_.uniform[k];
      const std::string name = values_.name(operand.element);
      const Poly steps = all_steps();
      const auto read_it = [&](Builder& body) {
        return read_element(contraction_, operand, flat[k], block_.uniform, body);
      };
      Value element;
      if (const auto known = steps.constant(); known && *known > 0) {
        element = read_it(block);
      } else {
        const Value some = block.compare(CompareOp::lt, i64_constant(0), block.size(steps, "steps"), "reduces");
        If read{some, {}, {}};
        read.then_body = block.body([&](Builder& body) { return std::vector<Operand>{read_it(body)}; });
        read.else_body = make_body({}, {Scalar::zero(values_.type(operand.element).element)});
        element = block.let_typed({name}, {values_.type(operand.element)}, std::move(read)).front();
      }
      block_.uniform.insert_or_assign(operand.element, Operand(element));
    }
  }

  Poly all_steps() const {
    Poly steps = 1;
    for (std::size_t d = contraction_.space_rank; d < contraction_.dims.size(); ++d) steps *= contraction_.dims[d].size;
    return steps;
  }

  // Tiles of what no step changes are copied here, for all steps.
  State declare(Builder& block) {
    State state;
    resident_.assign(contraction_.operands.size(), Value{});
    for (std::size_t k = 0; k < contraction_.operands.size(); ++k) {
      const ContractionOperand& operand = contraction_.operands[k];
      const Value tile = block.let(values_.name(operand.base) + "_s",
                                   SharedArray{values_.type(operand.element).element, layout_of(operand)});
      if (contraction_.is_resident(operand)) {
        resident_[k] = copy(block, operand, {}, tile, padding_of(k));
      } else {
        state.tiles.push_back(tile);
      }
    }
    // Register tiles start as the neutral elements.
    SegOp init;
    init.level = SegLevel::inblock;
    std::vector<Poly> registers;
    for (std::size_t x = 0; x < space_.size(); ++x) {
      Value thread = values_.add(Type::scalar(ScalarType::i64), "t_" + name(x));
      init.space.push_back({thread, space_[x].tile});
      registers.push_back(space_[x].reg);
    }
    init.body = block.body([&](Builder& thread) {
      std::vector<Operand> results;
      for (const Operand& neutral : contraction_.reduce.neutral)
        results.emplace_back(thread.let("init", Replicate{registers, neutral}));
      return results;
    });
    init.results.assign(contraction_.reduce.neutral.size(), {KernelResult::Kind::private_, {}});
    state.accumulators = block.let_many({"acc"}, std::move(init));
    return state;
  }

  // Loops over the tiles of reduction dim d and, inside, of the later ones. The innermost dim has a guard-free
  // main loop and one guarded remainder (T 4.3.1.1); outer dims take what is left with min.
  State reduce_dim(Builder& block, std::size_t d, Step step, State state) {
    if (d == contraction_.dims.size()) return contract(block, step, state);
    const Poly size = contraction_.dims[d].size;
    const Poly depth = tiling_.dims[d].tile;
    if (d + 1 < contraction_.dims.size()) {
      return loop(block, d, ceil_div(size, depth), state, [&](Builder& body, const Poly& start, State inner) {
        return reduce_dim(body, d + 1, extended(step, start, poly_min(depth, size - start), false), inner);
      });
    }
    if (!tiling_.padding.empty())
      return loop(block, d, ceil_div(size, depth), state, [&](Builder& body, const Poly& start, State inner) {
        return contract(body, extended(step, start, depth, false), inner);
      });
    const Poly full_tiles = floor_div(size, depth);
    state = loop(block, d, full_tiles, state, [&](Builder& body, const Poly& start, State inner) {
      return contract(body, extended(step, start, depth, true), inner);
    });
    const Poly done = full_tiles * depth;
    if (prove_equal(done, size) == Proof::yes) return state;
    Value remainder = block.size(size - done, "remainder_" + contraction_.dims[d].name);
    Value some = block.compare(CompareOp::lt, i64_constant(0), remainder, "has_remainder");
    If epilogue{some, {}, {}};
    epilogue.then_body = block.body([&](Builder& body) {
      State last = contract(body, extended(step, done, Poly(remainder), false), state);
      return operands(last);
    });
    epilogue.else_body = make_body({}, operands(state));
    return unpack(block.let_typed(state_names(state), state_types(state), std::move(epilogue)));
  }

  static Step extended(Step step, const Poly& start, const Poly& depth, bool full) {
    step.start.push_back(start);
    step.depth.push_back(depth);
    step.full.push_back(full);
    return step;
  }

  template <class Fill>
  State loop(Builder& block, std::size_t d, const Poly& bound, const State& state, Fill&& fill) {
    Loop loop;
    loop.initial = operands(state);
    std::vector<Type> types = state_types(state);
    std::vector<std::string> names = state_names(state);
    for (const auto& [type, name] : ranges::views::zip(types, names)) loop.params.push_back(values_.add(type, name));
    loop.index = values_.add(Type::scalar(ScalarType::i64), "tile_" + contraction_.dims[d].name);
    loop.bound = bound;
    loop.body = block.body([&](Builder& body) {
      return operands(fill(body, Poly(loop.index) * tiling_.dims[d].tile, unpack(loop.params)));
    });
    return unpack(block.let_typed(names, types, std::move(loop)));
  }

  // Copies the operands' tiles and contracts them.
  State contract(Builder& body, const Step& step, const State& state) {
    State next;
    TileContract contract;
    for (std::size_t k = 0; k < contraction_.operands.size(); ++k) {
      const ContractionOperand& operand = contraction_.operands[k];
      if (!resident_[k]) next.tiles.push_back(copy(body, operand, step, state.tiles[next.tiles.size()], padding_of(k)));
      contract.operands.push_back({resident_[k] ? resident_[k] : next.tiles.back(), tile_axes_of(operand)});
    }
    for (const DimTiles& tiles : space_) contract.space.push_back({tiles.tile, tiles.reg});
    contract.depth = step.depth;
    contract.accumulators = state.accumulators;
    contract.map = copy_fresh(contraction_.map, block_.uniform, values_, values_);
    contract.reduce = contraction_.reduce;
    contract.reduce.op = copy_fresh(contraction_.reduce.op, {}, values_, values_);
    next.accumulators = body.let_many({"acc"}, std::move(contract));
    return next;
  }

  // What tile `k` has where nothing is read.
  Scalar padding_of(std::size_t k) const {
    const ContractionOperand& operand = contraction_.operands[k];
    if (!operand.conditions.empty()) return operand.otherwise;
    return tiling_.padding.empty() ? Scalar::zero(values_.type(operand.element).element) : tiling_.padding[k];
  }

  // Where the block and the step start; indices of flattened dims come with the guard.
  Poly start_of(const Poly& offset, const std::vector<Poly>& strides, const Step& step) const {
    Poly start = offset;
    for (const auto& [axes, first] : ranges::views::zip(axes_, starts_))
      if (axes.size() == 1) start += first * strides[axes[0]];
    for (std::size_t e = 0; e < step.start.size(); ++e) start += step.start[e] * strides[contraction_.space_rank + e];
    return start;
  }

  TileAffine affine_of(const ContractionOperand& operand, const ContractionAffine& at, const Step& step) const {
    TileAffine made{start_of(at.offset, at.strides, step), {}};
    for (int axis : tile_axes_of(operand)) {
      const auto x = static_cast<std::size_t>(axis);
      std::vector<Poly>& strides = made.strides.emplace_back();
      if (x >= space_.size()) {
        strides.push_back(at.strides[x - space_.size() + contraction_.space_rank]);
      } else {
        for (std::size_t d : axes_[x]) strides.push_back(at.strides[d]);
      }
    }
    return made;
  }

  Value copy(Builder& body, const ContractionOperand& operand, const Step& step, Value target, const Scalar& pad) {
    std::vector<LmadDim> window;
    CopyTile copy;
    const std::size_t rank = space_.size();
    for (int axis : tile_axes_of(operand)) {
      const auto x = static_cast<std::size_t>(axis);
      if (x >= rank) {
        const std::size_t d = x - rank + contraction_.space_rank;
        window.push_back({extents_[d], operand.strides[d]});
        copy.guards.push_back({step.start[x - rank], contraction_.dims[d].size});
        if (step.full[x - rank]) copy.guards.back().bound.reset();
        continue;
      }
      TileGuard guard{starts_[x], sizes_[x]};
      // One thread, one register: the block index is the index, and it is in range.
      if (space_[x].extent().is_one()) guard.bound.reset();
      const std::vector<std::size_t>& dims = axes_[x];
      window.push_back({space_[x].extent(), dims.size() == 1 ? operand.strides[dims[0]] : Poly(0)});
      for (std::size_t d : dims)
        if (dims.size() > 1) guard.split.push_back({contraction_.dims[d].size, operand.strides[d]});
      copy.guards.push_back(std::move(guard));
    }
    copy.target = target;
    copy.source = operand.base;
    copy.window = Lmad(start_of(operand.offset, operand.strides, step), std::move(window));
    for (const ContractionCondition& condition : operand.conditions)
      copy.where.push_back({affine_of(operand, condition.at, step), condition.bound});
    for (const ContractionGather& gather : operand.gathers)
      copy.gathers.push_back({gather.base, affine_of(operand, gather.at, step), gather.stride});
    for (const ContractionRead& read : operand.also)
      copy.also.push_back({read.base, affine_of(operand, read.at, step)});
    if (operand.map) copy.map = copy_fresh(*operand.map, block_.uniform, values_, values_);
    copy.pad = pad;
    return body.let(values_.name(operand.base) + "_s", std::move(copy));
  }

  std::vector<Operand> operands(const State& state) const {
    std::vector<Operand> result(state.accumulators.begin(), state.accumulators.end());
    result.insert(result.end(), state.tiles.begin(), state.tiles.end());
    return result;
  }
  std::vector<Type> state_types(const State& state) const {
    std::vector<Type> types;
    for (const Operand& x : operands(state)) types.push_back(values_.type(x));
    return types;
  }
  std::vector<std::string> state_names(const State& state) const {
    std::vector<std::string> names;
    for (const Operand& x : operands(state)) names.push_back(values_.name(x.value()));
    return names;
  }
  State unpack(const std::vector<Value>& all) const {
    auto split = all.begin() + static_cast<std::ptrdiff_t>(contraction_.reduce.neutral.size());
    return {{all.begin(), split}, {split, all.end()}};
  }

  const Contraction& contraction_;
  const Tiling& tiling_;
  ValueTable& values_;
  Block block_;
  std::vector<std::vector<std::size_t>>& axes_ = block_.axes;
  std::vector<DimTiles>& space_ = block_.space;
  std::vector<Poly>& sizes_ = block_.sizes;
  std::vector<Poly>& starts_ = block_.starts;
  std::vector<Poly> extents_;    // T*R of a dim, depth of a reduction dim
  std::vector<Value> resident_;  // tiles of operands that no step changes; none: it has one in each step
};

}  // namespace

SegOp tile_kernel(const Contraction& contraction, const Tiling& plan, Builder& host) {
  return KernelBuilder(contraction, plan, host.values()).run(host);
}

}  // namespace apl::tile
