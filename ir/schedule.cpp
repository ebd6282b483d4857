#include "ir/schedule.h"

#include <fmt/format.h>
#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <map>
#include <set>

#include "ir/attributes.h"
#include "ir/walk.h"

namespace apl {

std::string_view to_text(Schedule::Unit unit) {
  switch (unit) {
    case Schedule::Unit::general: return "general";
    case Schedule::Unit::simt: return "simt";
    case Schedule::Unit::matrix: return "matrix";
    case Schedule::Unit::packed: return "packed";
  }
  return "general";
}

std::string_view to_text(Schedule::Role role) {
  switch (role) {
    case Schedule::Role::batch: return "batch";
    case Schedule::Role::invariant: return "invariant";
    case Schedule::Role::free: return "free";
    case Schedule::Role::m: return "m";
    case Schedule::Role::n: return "n";
    case Schedule::Role::depth: return "depth";
  }
  return {};
}

std::string_view to_text(Schedule::Remainder remainder) {
  return remainder == Schedule::Remainder::padded ? "padded" : "peeled";
}

bool Schedule::Operand::varies(std::size_t dim) const {
  return !strides[dim].is_zero() ||
         std::ranges::any_of(gathers, [&](const std::vector<Poly>& index) { return !index[dim].is_zero(); });
}

bool is_resident(const Schedule& schedule, const Schedule::Operand& operand) {
  for (std::size_t d = space_rank(schedule); d < schedule.dims.size(); ++d)
    if (operand.varies(d)) return false;
  return true;
}

std::size_t space_rank(const Schedule& schedule) {
  return static_cast<std::size_t>(
      std::ranges::count_if(schedule.dims, [](const Schedule::Dim& dim) { return dim.role != Schedule::Role::depth; }));
}

bool has_mn_dims(const Schedule& schedule) {
  return std::ranges::any_of(schedule.dims, [](const Schedule::Dim& dim) { return dim.role == Schedule::Role::m; });
}

bool is_scalar_code(const Lambda& lambda, const ValueTable& values) {
  bool scalar = true;
  for_each_stm(*lambda.body, [&](const Stm& stm) {
    for (const Value v : stm.pattern) scalar = scalar && values.type(v).is_scalar();
    for_each_binder(stm.op, [&](Value v) { scalar = scalar && values.type(v).is_scalar(); });
  });
  return scalar && std::ranges::all_of(lambda.params, [&](Value v) { return values.type(v).is_scalar(); });
}

namespace {

// Whether the map is the product of its two parameters, each converted to `wide` before.
bool is_widened_product(const Lambda& map, ScalarType wide) {
  std::map<Value, Value> widened;
  const Binary* product = nullptr;
  for (const Stm& stm : map.body->stms) {
    const Convert* convert = get_if<Convert>(stm);
    const bool widens = convert != nullptr && convert->to == wide && !convert->same_bits && convert->x.is_value();
    if (product != nullptr || (!widens && get_if<Binary>(stm) == nullptr)) return false;
    if (widens) {
      widened.emplace(stm.pattern.front(), convert->x.value());
    } else {
      product = get_if<Binary>(stm);
      if (product->op != BinaryOp::mul || map.body->results[0] != Operand(stm.pattern.front())) return false;
    }
  }
  if (product == nullptr || !product->x.is_value() || !product->y.is_value()) return false;
  const auto x = widened.find(product->x.value()), y = widened.find(product->y.value());
  if (x == widened.end() || y == widened.end()) return false;
  return std::set{x->second, y->second} == std::set{map.params[0], map.params[1]};
}

}  // namespace

int matrix_products(const Lambda& map, const Lambda& op, const std::vector<Attribute>& attributes,
                    const ValueTable& values) {
  using enum ScalarType;
  if (map.params.size() != 2 || map.body->results.size() != 1 || as_binary_op(op) != BinaryOp::add) return 0;
  const ScalarType x = values.type(map.params[0]).element, y = values.type(map.params[1]).element;
  const ScalarType sum = values.type(op.params[0]).element;
  const auto are = [&](std::initializer_list<ScalarType> types) {
    return std::ranges::find(types, x) != types.end() && std::ranges::find(types, y) != types.end();
  };
  if (sum == f64) return x == f64 && as_binary_op(map) == BinaryOp::mul ? 1 : 0;
  if (sum == i32 || sum == u32) return are({i8, u8}) && is_widened_product(map, sum) ? 1 : 0;
  if (sum != f32) return 0;
  if (are({f32}) && as_binary_op(map) == BinaryOp::mul)
    return has_attribute(attributes, attribute::f32_3xtf32) ? 3 : has_attribute(attributes, attribute::tf32) ? 1 : 0;
  return are({f16, bf16}) && x == y && is_widened_product(map, sum) ? 1 : 0;
}

std::vector<std::vector<std::size_t>> axes_of(const Schedule& schedule) {
  std::vector<std::vector<std::size_t>> axes;
  std::vector<std::size_t> m, n;
  for (std::size_t d = 0; d < space_rank(schedule); ++d) {
    const Schedule::Role role = schedule.dims[d].role;
    if (role == Schedule::Role::m) {
      m.push_back(d);
    } else if (role == Schedule::Role::n) {
      n.push_back(d);
    } else {
      axes.push_back({d});
    }
  }
  // Along M results are not contiguous anyway: innermost is where the operand is, with those that lie together with it.
  for (std::size_t last = 0; last + 1 < m.size(); ++last) {
    const auto operand = std::ranges::find_if(schedule.operands, [&](const Schedule::Operand& o) {
      return o.strides[m[last]].is_one() && !is_resident(schedule, o);
    });
    if (operand == schedule.operands.end()) continue;
    std::size_t first = last;
    while (first > 0 && operand->strides[m[first - 1]] == operand->strides[m[first]] * schedule.dims[m[first]].size)
      --first;
    const auto at = [&](std::size_t k) { return m.begin() + static_cast<std::ptrdiff_t>(k); };
    std::rotate(at(first), at(last + 1), m.end());
    break;
  }
  if (!m.empty()) axes.push_back(std::move(m));
  if (!n.empty()) axes.push_back(std::move(n));
  return axes;
}

const Screma* epilogue_map(const SegOp& threads, const ValueTable& values) {
  const Screma* each = nullptr;
  for (const Stm& stm : threads.body->stms) {
    if (each != nullptr) return nullptr;
    if (const Index* row = get_if<Index>(stm)) {
      // What the thread has of an accumulator.
      bool whole = row->dims.size() == threads.space.size() && values.type(stm.pattern.front()).is_array();
      for (std::size_t d = 0; whole && d < threads.space.size(); ++d)
        whole = !row->dims[d].is_slice() && row->dims[d].start == Poly(threads.space[d].index);
      if (!whole) return nullptr;
    } else if (!get_if<Alloc>(stm)) {
      each = get_if<Screma>(stm);
      if (each == nullptr || !each->reduces.empty() || each->widths.size() != threads.space.size()) return nullptr;
      if (threads.body->results.size() != stm.pattern.size()) return nullptr;
      for (const auto& [made, result] : ranges::views::zip(stm.pattern, threads.body->results))
        if (result != Operand(made)) return nullptr;
    }
  }
  return each;
}

std::optional<ScheduleStep> schedule_step(const Body& body) {
  ScheduleStep step;
  for (const Stm& stm : body.stms) {
    if (step.contract != nullptr) return std::nullopt;
    if (const CopyTile* copy = get_if<CopyTile>(stm); copy && !stm.pattern.empty()) {
      step.copies.emplace_back(copy, stm.pattern.front());
    } else if ((step.contract = get_if<TileContract>(stm)) == nullptr) {
      return std::nullopt;
    }
  }
  if (step.contract == nullptr) return std::nullopt;
  return step;
}

namespace {

using Fault = std::optional<std::string>;

// One kernel against its schedule, an invariant a function.
class Holds {
 public:
  Holds(const Stm& stm, const SegOp& kernel, const ValueTable& values)
      : stm_(stm), kernel_(kernel), schedule_(*kernel.schedule), values_(values) {}

  Fault run() {
    if (kernel_.body == nullptr || stm_.pattern.size() != kernel_.body->results.size())
      return "the kernel has other results";
    if (Fault fault = dims()) return fault;
    if (Fault fault = roles()) return fault;
    if (Fault fault = results()) return fault;
    if (Fault fault = steps(*kernel_.body, rank_)) return fault;
    if (contracts_.empty()) return "the block contracts no tiles";
    for (const TileContract* contract : contracts_)
      if (Fault fault = contraction(*contract)) return fault;
    if (copies_.size() > resident_.size()) return "a tile is copied that no contraction reads";
    for (const SegOp* threads : segmaps_)
      if (Fault fault = after(*threads)) return fault;
    return std::nullopt;
  }

 private:
  std::size_t depth() const { return schedule_.dims.size() - rank_; }

  Fault dims() {
    rank_ = space_rank(schedule_);
    for (std::size_t d = 0; d < schedule_.dims.size(); ++d) {
      const Schedule::Dim& dim = schedule_.dims[d];
      if ((dim.role == Schedule::Role::depth) != (d >= rank_)) return "its depth dims are not the last ones";
      if (d >= rank_ && !dim.reg.is_one()) return "a depth dim has registers";
      // A number must be somebody's to choose, and of one dim alone.
      for (const Poly* number : {&dim.tile, &dim.reg}) {
        if (!number->is_one() && !number->symbol()) return "a tile number is neither a parameter nor 1";
        if (number->symbol() && !parameters_.insert(*number->symbol()).second) return "two numbers are one parameter";
      }
    }
    if (!schedule_.splits.is_one() && schedule_.splits != schedule_.dims.front().size)
      return "the parts of the reduction are not its outermost dim";
    if (depth() == 0) return "it has no depth dim";
    for (const Schedule::Operand& operand : schedule_.operands) {
      if (operand.strides.size() != schedule_.dims.size()) return "an operand has not one stride a dim";
      for (const auto* several : {&operand.conditions, &operand.gathers})
        for (const std::vector<Poly>& strides : *several)
          if (strides.size() != schedule_.dims.size()) return "an operand has not one stride a dim";
      if (operand.copy_bytes != 0 && operand.copy_bytes != 4 && operand.copy_bytes != 16)
        return "copies are of 0, 4 or 16 bytes";
    }
    axes_ = axes_of(schedule_);
    if (kernel_.level != SegLevel::block || axes_.size() != kernel_.space.size())
      return fmt::format("it has {} dims of the space, the block {}", axes_.size(), kernel_.space.size());
    if (schedule_.unit != Schedule::Unit::general && !has_mn_dims(schedule_)) return "there are no M and N dims";
    return std::nullopt;
  }

  bool varies(std::size_t operand, std::size_t d) const { return schedule_.operands[operand].varies(d); }
  bool is_streamed(std::size_t operand) const { return !is_resident(schedule_, schedule_.operands[operand]); }

  Poly extent_of(std::size_t d) const { return schedule_.dims[d].tile * schedule_.dims[d].reg; }

  Fault roles() {
    using Role = Schedule::Role;
    const std::size_t all = schedule_.operands.size();
    std::vector<bool> of_m, of_n;
    for (std::size_t d = 0; d < rank_; ++d) {
      const Role role = schedule_.dims[d].role;
      // Operands that no step changes stay in registers.
      std::vector<bool> varying;
      for (std::size_t o = 0; o < all; ++o) varying.push_back(is_streamed(o) && varies(o, d));
      const auto count = static_cast<std::size_t>(std::ranges::count(varying, true));
      if (role == Role::invariant && count != 0) return "an operand varies along an invariant dim";
      if (role == Role::batch && count == 0) return "no operand varies along a batch dim";
      // They are dims of the grid.
      if ((role == Role::batch || role == Role::invariant) && !extent_of(d).is_one())
        return "a batch or invariant dim has tiles";
      if (role != Role::m && role != Role::n) continue;
      std::vector<bool>& known = role == Role::m ? of_m : of_n;
      if (known.empty()) known = varying;
      if (known != varying) return fmt::format("dims of {} differ in their operands", role == Role::m ? "M" : "N");
    }
    if (of_m.empty() != of_n.empty()) return "there is an M or an N dim alone";
    for (const auto& [along_m, along_n] : ranges::views::zip(of_m, of_n))
      if (along_m && along_n) return "an operand varies along M and N dims, and along the depth";
    return std::nullopt;
  }

  Poly product_of(const std::vector<std::size_t>& dims, Poly Schedule::Dim::*number) const {
    Poly product = 1;
    for (std::size_t d : dims) product *= schedule_.dims[d].*number;
    return product;
  }
  Poly extent(std::size_t axis) const {
    return product_of(axes_[axis], &Schedule::Dim::tile) * product_of(axes_[axis], &Schedule::Dim::reg);
  }

  Fault results() {
    if (kernel_.results.empty()) return "the kernel has no results";
    bool in_order = true;
    for (std::size_t x = 0; x < axes_.size(); ++x) in_order = in_order && axes_[x] == std::vector{x};
    for (const KernelResult& result : kernel_.results) {
      if (result.kind != KernelResult::Kind::regtile || result.extents.size() != axes_.size())
        return "a result is no register tile";
      for (std::size_t x = 0; x < axes_.size(); ++x) {
        const TileExtent& one = result.extents[x];
        if (one.tile != product_of(axes_[x], &Schedule::Dim::tile) ||
            one.reg != product_of(axes_[x], &Schedule::Dim::reg) ||
            one.bound != product_of(axes_[x], &Schedule::Dim::size))
          return "a result's tile is not that of its dims";
        if (one.split.size() != (in_order ? 0 : axes_[x].size())) return "a result's dims are not those of the tiles";
        for (std::size_t p = 0; p < one.split.size(); ++p)
          if (static_cast<std::size_t>(one.split[p].axis) != axes_[x][p] ||
              one.split[p].bound != schedule_.dims[axes_[x][p]].size)
            return "a result's dims are not those of the tiles";
      }
    }
    const MemoryBinding* first = nullptr;
    for (const auto& [made, result] : ranges::views::zip(stm_.pattern, kernel_.body->results)) {
      const MemoryBinding* where = values_.type(made).memory.get();
      if (where == nullptr) continue;
      if (first == nullptr) first = where;
      if (where->layout != first->layout) return "results do not lie alike in memory";
      if (Fault fault = accumulator(result)) return fault;
    }
    return std::nullopt;
  }

  Fault accumulator(const Operand& result) {
    const Value value = result.is_value() ? result.value() : Value{};
    if (!value || !values_.type(value).memory) return "a result is no register tile in memory";
    const Type& type = values_.type(value);
    if (type.element == ScalarType::unit) return "a result has no elements";
    const Value block = type.memory->block;
    Poly bytes = byte_size(type.element);
    for (std::size_t x = 0; x < axes_.size(); ++x) bytes *= product_of(axes_[x], &Schedule::Dim::reg);
    if (values_.type(block).space != Space::thread) return "an accumulator does not lie in registers";
    registers_.emplace(block, bytes);
    return std::nullopt;
  }

  // A body of loops over depth dims, from the outermost on.
  Fault steps(const Body& body, std::size_t d) {
    if (auto step = schedule_step(body)) {
      contracts_.push_back(step->contract);
      for (const auto& [copy, tile] : step->copies) copies_[tile] = copy;
      return std::nullopt;
    }
    const bool outside = &body == kernel_.body.get();
    int loops = 0, branches = 0;
    for (const Stm& stm : body.stms) {
      if (const Loop* loop = get_if<Loop>(stm)) {
        if (++loops > 1 || d >= schedule_.dims.size() || !loop->index) return "the depth is not one loop a dim";
        if (loop->initial.size() != loop->params.size() || loop->body->results.size() != loop->params.size())
          return "the loop has other results";
        for (const auto& [param, initial, result] :
             ranges::views::zip(loop->params, loop->initial, loop->body->results))
          if (!stays(initial, param) || !stays(result, param))
            return "the loop moves a tile or an accumulator in memory";
        if (Fault fault = steps(*loop->body, d + 1)) return fault;
      } else if (const If* remainder = get_if<If>(stm); remainder && (loops > 0 || !outside)) {
        // What is left of the innermost dim.
        auto step = schedule_step(*remainder->then_body);
        if (!step || !remainder->else_body->stms.empty() || ++branches > 1 ||
            remainder->then_body->results.size() != stm.pattern.size() ||
            remainder->else_body->results.size() != stm.pattern.size())
          return "what is left of the depth is not one more step";
        for (const auto& [made, full, partial] :
             ranges::views::zip(stm.pattern, remainder->then_body->results, remainder->else_body->results))
          if (!stays(full, made) || !stays(partial, made))
            return "the remainder moves a tile or an accumulator in memory";
        contracts_.push_back(step->contract);
        for (const auto& [copy, tile] : step->copies) copies_[tile] = copy;
      } else if (const SegOp* threads = get_if<SegOp>(stm)) {
        segmaps_.push_back(threads);
      } else if (const Alloc* alloc = get_if<Alloc>(stm); alloc && !stm.pattern.empty()) {
        const auto wanted = registers_.find(stm.pattern.front());
        if (wanted != registers_.end() && alloc->bytes != wanted->second)
          return "an accumulator has other elements than the tile";
      } else if (const CopyTile* copy = get_if<CopyTile>(stm); copy && outside && loops == 0 && !stm.pattern.empty()) {
        copies_[stm.pattern.front()] = copy;
        resident_.insert(stm.pattern.front());
      } else if (has_tiles(stm)) {
        return "a step of the depth does more than to copy and contract tiles";
      }
    }
    if (!outside && loops == 0) return "a step of the depth does more than to copy and contract tiles";
    return std::nullopt;
  }

  static bool has_tiles(const Stm& stm) {
    bool found = get_if<CopyTile>(stm) || get_if<TileContract>(stm);
    for_each_body(stm.op, [&](const BodyPtr& body) {
      for (const Stm& inner : body->stms) found = found || has_tiles(inner);
    });
    return found;
  }

  bool stays(const Operand& from, Value to) const {
    if (!from.is_value()) return false;
    const auto &source = values_.type(from.value()).memory, &target = values_.type(to).memory;
    return (source == nullptr && target == nullptr) || (source && target && *source == *target);
  }

  Fault contraction(const TileContract& contract) {
    if (contract.space.size() != axes_.size() || contract.depth.size() != depth() ||
        contract.operands.size() != schedule_.operands.size())
      return "a contraction of tiles has other dims or operands";
    if (schedule_.unit == Schedule::Unit::matrix &&
        matrix_products(contract.map, contract.reduce.op, stm_.attributes, values_) == 0)
      return "a contraction of tiles is no sum of products that matrix units know";
    for (const auto& [axes, tiled] : ranges::views::zip(axes_, contract.space))
      if (tiled.tile != product_of(axes, &Schedule::Dim::tile) || tiled.reg != product_of(axes, &Schedule::Dim::reg))
        return "a contraction's tile is not that of its dims";
    for (std::size_t o = 0; o < contract.operands.size(); ++o) {
      const auto copy = copies_.find(contract.operands[o].tile);
      if (copy == copies_.end()) return "a contraction reads a tile that is not copied in the same step";
      if (resident_.contains(copy->first) == is_streamed(o))
        return "a tile is copied once that steps change, or not once";
      if (Fault fault = operand(o, contract.operands[o], *copy->second))
        return fmt::format("the tile of {}: {}", schedule_.operands[o].name, *fault);
      if (Fault fault = place(o, contract.operands[o])) return fault;
      if (is_streamed(o)) copies_.erase(copy);
    }
    return std::nullopt;
  }

  // What is affine in the dims has these strides along the axes of a window.
  bool goes_along(const TileAffine& at, const std::vector<Poly>& strides, const TileOperand& read) const {
    std::vector<bool> runs(schedule_.dims.size(), false);
    for (std::size_t k = 0; k < read.axes.size(); ++k) {
      const auto axis = static_cast<std::size_t>(read.axes[k]);
      const std::vector<std::size_t> dims =
          axis >= axes_.size() ? std::vector{axis - axes_.size() + rank_} : axes_[axis];
      if (at.strides[k].size() != dims.size()) return false;
      for (std::size_t p = 0; p < dims.size(); ++p) {
        if (at.strides[k][p] != strides[dims[p]]) return false;
        runs[dims[p]] = true;
      }
    }
    for (const auto& [stride, along] : ranges::views::zip(strides, runs))
      if (!stride.is_zero() && !along) return false;
    return true;
  }

  // All steps have an operand's tile in one place, that of no other, and read it alike.
  Fault place(std::size_t o, const TileOperand& read) {
    const auto& memory = values_.type(read.tile).memory;
    const Value block = memory ? memory->block : Value{};
    if (places_.size() == o) {
      for (const auto& [axes, other] : places_)
        if (block && other == block) return "two operands have one tile";
      places_.emplace_back(read.axes, block);
    }
    if (places_[o] != std::pair(read.axes, block))
      return "steps of the depth have an operand's tile in different places";
    return std::nullopt;
  }

  Fault operand(std::size_t o, const TileOperand& read, const CopyTile& copy) {
    const Schedule::Operand& operand = schedule_.operands[o];
    const Type& tile = values_.type(read.tile);
    if (operand.element != tile.element || tile.element == ScalarType::unit) return "it has another element type";
    if (copy.map && (!is_streamed(o) || operand.copy_bytes != 0)) return "it is computed, but not through registers";
    const std::size_t rank = read.axes.size();
    if (copy.window.rank() != rank || copy.guards.size() != rank || (tile.memory && tile.memory->layout.rank() != rank))
      return "it has another rank";
    for (const int axis : read.axes)
      if (axis < 0 || static_cast<std::size_t>(axis) >= axes_.size() + depth()) return "it has a dim that is not there";
    std::vector<bool> runs(schedule_.dims.size(), false);
    for (std::size_t k = 0; k < read.axes.size(); ++k) {
      const auto axis = static_cast<std::size_t>(read.axes[k]);
      const LmadDim& window = copy.window.dims()[k];
      const TileGuard& guard = copy.guards[k];
      if (axis >= axes_.size()) {
        const std::size_t d = axis - axes_.size() + rank_;
        if (window.size != schedule_.dims[d].tile || window.stride != operand.strides[d] || !guard.split.empty())
          return "its window is another along the depth";
        if (guard.bound && *guard.bound != schedule_.dims[d].size) return "its guard is not where the depth ends";
        runs[d] = true;
        continue;
      }
      const std::vector<std::size_t>& dims = axes_[axis];
      if (window.size != extent(axis)) return "its window is another than the block's tile";
      // What is out of range is dropped with the result.
      if (guard.bound && (*guard.bound != product_of(dims, &Schedule::Dim::size) ||
                          guard.start != Poly(kernel_.space[axis].index) * extent(axis)))
        return "its guard is not where the results end";
      if (dims.size() == 1 ? window.stride != operand.strides[dims[0]] || !guard.split.empty()
                           : guard.split.size() != dims.size())
        return "its window has other strides";
      for (const auto& [part, dim] : ranges::views::zip(guard.split, dims))
        if (part.bound != schedule_.dims[dim].size || part.stride != operand.strides[dim])
          return "its window has other strides";
      for (std::size_t d : dims) runs[d] = true;
    }
    for (std::size_t d = 0; d < schedule_.dims.size(); ++d)
      if (varies(o, d) && !runs[d]) return "its window leaves out a dim";
    if (copy.where.size() != operand.conditions.size() || copy.gathers.size() != operand.gathers.size())
      return "it is read under other conditions, or where other arrays say";
    for (const auto& [condition, declared] : ranges::views::zip(copy.where, operand.conditions))
      if (condition.at.strides.size() != rank || !goes_along(condition.at, declared, read))
        return "it is read under other conditions";
    for (const auto& [gather, declared] : ranges::views::zip(copy.gathers, operand.gathers))
      if (gather.at.strides.size() != rank || !goes_along(gather.at, declared, read))
        return "it is read where other arrays say";
    if (!tile.memory) return std::nullopt;
    if (values_.type(tile.memory->block).space != Space::shared || !tile.memory->layout.offset().is_zero())
      return "it is not an array of its own in shared memory";
    if (!values_.type(copy.source).memory) return "its array is nowhere in memory";
    for (const TileGather& gather : copy.gathers)
      if (!values_.type(gather.positions).memory) return "an array of indices is nowhere in memory";
    for (const TileRead& read : copy.also)
      if (read.array && !values_.type(*read.array).memory) return "an array is nowhere in memory";
    if (!has_mn_dims(schedule_) || !is_streamed(o)) return std::nullopt;
    for (std::size_t k = 0; k < read.axes.size(); ++k) {
      const auto axis = static_cast<std::size_t>(read.axes[k]);
      const bool row = axis + 2 >= axes_.size() && axis < axes_.size();
      if (row && !tile.memory->layout.dims()[k].stride.is_one()) return "its rows are not contiguous in shared memory";
    }
    return std::nullopt;
  }

  // The segmaps beside the steps: the accumulators' start, and the epilogue.
  Fault after(const SegOp& threads) {
    if (schedule_.unit == Schedule::Unit::general || epilogue_map(threads, values_) != nullptr) return std::nullopt;
    // All threads do the same: it does not matter which of them has which element.
    const std::set<Value> free = free_values(*threads.body, values_);
    for (const SegDim& dim : threads.space)
      if (free.contains(dim.index)) return "code after the reduction is not one map over a thread's elements";
    return std::nullopt;
  }

  const Stm& stm_;
  const SegOp& kernel_;
  const Schedule& schedule_;
  const ValueTable& values_;
  std::size_t rank_ = 0;
  std::vector<std::vector<std::size_t>> axes_;
  std::map<Value, Poly> registers_;  // bytes of the results' accumulators, by block
  std::vector<const TileContract*> contracts_;
  std::map<Value, const CopyTile*> copies_;  // that no contraction has read yet, by what they give
  std::set<Value> resident_;                 // those before the loops, which all contractions read
  std::vector<const SegOp*> segmaps_;
  std::set<Value> parameters_;
  std::vector<std::pair<std::vector<int>, Value>> places_;  // of operands: axes and block
};

}  // namespace

std::optional<std::string> schedule_fault(const Stm& kernel, const ValueTable& values) {
  const SegOp* op = get_if<SegOp>(kernel);
  if (op == nullptr || !op->schedule) return std::nullopt;
  return Holds(kernel, *op, values).run();
}

}  // namespace apl
