// Elements that a thread of a scan reads, scans by itself and writes: four neighbours at once where they are contiguous
// and aligned, one by one elsewhere and at the end. Elements beyond the end are neutral.
#include "codegen/lower/neighbour_scan.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/team.h"
#include "ir/walk.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

namespace {

constexpr std::int64_t kFlagBits = 16, kFlagCount = 1 << kFlagBits;

}  // namespace

NeighbourScan::NeighbourScan(Team& team, const Screma& op, const Stm& stm, std::int64_t rounds)
    : team_(team),
      op_(op),
      stm_(stm),
      table_(team.unit_.function.values),
      rounds_(rounds),
      threads_(team.threads_),
      warp_size_(team.unit_.target.warp) {
  for (const ReduceOp& reduce : op.reduces)
    for (std::size_t k = 0; k < reduce.neutral.size(); ++k) {
      types_.push_back(table_.type(reduce.op.params[k]).element);
      neutral_.push_back(reduce.neutral[k]);
    }
  elements_ = fresh_of_each("_s"), totals_ = fresh_of_each("_totals");
}

std::vector<std::string> NeighbourScan::fresh_of_each(const std::string& ending) {
  std::vector<std::string> result;
  for (std::size_t k = 0; k < types_.size(); ++k)
    result.push_back(team_.unit_.fresh(table_.name(stm_.pattern[k]) + ending));
  return result;
}

void NeighbourScan::declare_each(const std::vector<std::string>& names, const Each& start, KernelBlock& out) const {
  for (std::size_t k = 0; k < names.size(); ++k) out.push_back(declare(type_of(k), names[k], start(k), false));
}

void NeighbourScan::combine(const Each& left, const Each& right, const Each& target, KernelBlock& out,
                            const ExprPtr& where) {
  KernelBlock block;
  std::size_t first = 0;
  std::vector<ExprPtr> made;
  for (const ReduceOp& reduce : op_.reduces) {
    const std::size_t count = reduce.neutral.size();
    std::vector<ExprPtr> arguments;
    for (const bool behind : {false, true})
      for (std::size_t k = first; k < first + count; ++k) {
        const std::string name = team_.unit_.fresh(behind ? "right" : "left");
        block.push_back(declare(type_of(k), name, behind ? right(k) : left(k)));
        arguments.push_back(variable(name));
      }
    for (const ExprPtr& result : team_.inline_lambda(reduce.op, arguments, block)) {
      const std::string name = team_.unit_.fresh("next");
      block.push_back(declare(type_of(made.size()), name, result));
      made.push_back(variable(name));
    }
    first += count;
  }
  for (std::size_t k = 0; k < made.size(); ++k)
    block.push_back(assign(target(k), where ? select(where, made[k], target(k)) : made[k]));
  out.push_back(scope_of(std::move(block)));
}

void NeighbourScan::combine_held(const Each& left, const Each& right, const Each& target, KernelBlock& out,
                                 const ExprPtr& where) {
  if (!counts_) return combine(left, right, target, out, where);
  for (std::size_t k = 0; k < held_count(); ++k) {
    if (!where) {
      out.push_back(assign(target(k), infix("+", left(k), right(k))));
      continue;
    }
    // All lanes shuffle.
    const std::string sum = team_.unit_.fresh("sum");
    out.push_back(declare(kInt, sum, infix("+", left(k), right(k))));
    out.push_back(assign(target(k), select(where, variable(sum), target(k))));
  }
}

NeighbourScan::ExprPtr NeighbourScan::held_neutral(std::size_t k) const { return counts_ ? number_of(0) : neutral(k); }

NeighbourScan::ExprPtr NeighbourScan::taken(std::size_t k, const Each& words) const {
  if (!counts_) return words(k);
  if (types_.size() == 1) return cast(type_of(k), words(0));
  const ExprPtr word = words(k / 2);
  return cast(type_of(k),
              k % 2 == 0 ? infix("&", word, number_of(kFlagCount - 1)) : infix(">>", word, number_of(kFlagBits)));
}

Stmt NeighbourScan::unrolled(const std::string& name, std::int64_t from, std::int64_t bound, KernelBlock body) const {
  Stmt loop = for_loop(kInt, name, number_of(bound), std::move(body));
  loop.from = number_of(from);
  loop.unroll = true;
  return loop;
}

void NeighbourScan::hold_resident(std::int64_t blocks) {
  constexpr std::size_t kSmallBody = 4;
  const bool is_small = op_.map.body->stms.size() <= kSmallBody && op_.inputs.size() <= 1;
  if (is_small && team_.unit_.dialect().bounds_have_blocks) team_.function_.resident = blocks;
}

bool NeighbourScan::is_returned(Value row) const {
  const std::vector<Operand>& rows = std::get<SegOp>(team_.stm_.op).body->results;
  return std::ranges::find(rows, Operand(row)) != rows.end();
}

ExprPtr NeighbourScan::from_first(const ExprPtr& at) const {
  return first_.empty() ? at : infix("+", variable(first_), at);
}

void NeighbourScan::read_input(const Screma& op, const Stm& stm, std::size_t input, const std::string& at,
                               const std::string& array, const ExprPtr& offset, KernelBlock& out) {
  const std::string next = team_.unit_.fresh("next"), index = team_.unit_.name(op.indices.front());
  const ExprPtr count = variable(count_), first = from_first(variable(at));
  const auto behind = [&](const ExprPtr& e) { return offset ? infix("+", e, offset) : e; };
  KernelBlock at_once{declare(kIndex, index, first)}, single;
  const ExprPtr can = team_.wide_read(op, stm, input, behind(variable(array)), at_once);
  single.push_back(declare(kIndex, index, infix("+", first, variable(next))));
  single.push_back(assign(element(array, behind(variable(next))),
                          team_.element_of(op.inputs[input], {variable(index)}, stm.location)));
  const ExprPtr inside = infix("<", infix("+", variable(at), variable(next)), count);
  Stmt one_by_one = unrolled(next, 0, kNeighboursAtOnce, {kernel::branch(inside, std::move(single))});
  const ExprPtr whole = infix("<=", infix("+", variable(at), number_of(kNeighboursAtOnce)), count);
  out.push_back(can ? kernel::branch(infix("&&", whole, can), std::move(at_once), {std::move(one_by_one)})
                    : std::move(one_by_one));
}

bool NeighbourScan::fit_together(const Screma& reads) const {
  constexpr std::int64_t kWord = 4, kMostRegisters = 32;
  std::int64_t words = 0;
  for (std::size_t k = 0; k < reads.inputs.size(); ++k) {
    const Type& type = table_.type(reads.map.params[k]);
    const bool is_row = std::ranges::find(stm_.pattern, reads.inputs[k]) != stm_.pattern.end();
    if (type.is_scalar() && type.element != ScalarType::unit && !is_row)
      words += (byte_size(type.element) + kWord - 1) / kWord;
  }
  return words * rounds_ * kNeighboursAtOnce <= kMostRegisters;
}

// f of the block's elements, and the rows that it makes.
void NeighbourScan::read_elements(const PlaceOf& place_of, bool together, KernelBlock& out,
                                  const std::set<Value>& kept) {
  Unit& unit = team_.unit_;
  const std::string round = unit.fresh("round"), next = unit.fresh("next"), at = unit.fresh("at");
  const std::string index = unit.name(op_.indices.front());
  const ExprPtr each = number_of(kNeighboursAtOnce), count = variable(count_);
  const auto place = [&] { return infix("+", infix("*", variable(round), each), variable(next)); };
  for (std::size_t k = 0; k < held_count(); ++k)
    out.push_back(declare_array(held_type(k), elements_[k], rounds_ * kNeighboursAtOnce));
  const ExprPtr inside = infix("<", infix("+", variable(at), variable(next)), count);
  const ExprPtr here = infix("+", from_first(variable(at)), variable(next));
  const Stmt place_here = declare(place_type_, at, infix("*", place_of(variable(round)), each));
  KernelBlock tile{place_here}, before{place_here};
  together = together && fit_together(op_);
  KernelBlock& reads = together ? before : tile;
  const std::int64_t held = together ? rounds_ * kNeighboursAtOnce : kNeighboursAtOnce;
  std::map<Value, std::string> arrays;
  for (std::size_t k = 0; k < op_.inputs.size(); ++k) {
    const Value param = op_.map.params[k];
    const Type& type = table_.type(param);
    if (!type.is_scalar() || type.element == ScalarType::unit) continue;
    arrays[param] = unit.fresh(table_.name(param) + "_r");
    if (together) read_[op_.inputs[k]] = arrays[param];
    (together ? out : tile).push_back(declare_array({type.element, false}, arrays[param], held));
    read_input(op_, stm_, k, at, arrays[param], together ? infix("*", variable(round), each) : nullptr, reads);
  }
  if (together && !arrays.empty()) out.push_back(unrolled(round, 0, rounds_, std::move(before)));
  const std::vector<Operand>& made = op_.map.body->results;
  std::map<std::size_t, std::string> mapped;
  for (std::size_t k = types_.size(); k < stm_.pattern.size(); ++k) {
    const Value row = stm_.pattern[k];
    if (kept.contains(row)) {
      kept_[row] = unit.fresh(table_.name(row) + "_kept");
      out.push_back(declare_array({table_.type(made[k]).element, false}, kept_[row], rounds_ * kNeighboursAtOnce));
    }
    if (!is_returned(row)) continue;
    mapped[k] = unit.fresh(table_.name(stm_.pattern[k]) + "_r");
    tile.push_back(declare_array({table_.type(made[k]).element, false}, mapped[k], kNeighboursAtOnce));
  }
  KernelBlock one, body;
  for (std::size_t k = 0; k < held_count(); ++k) one.push_back(assign(element(elements_[k], place()), held_neutral(k)));
  if (free_values(op_.map, table_).contains(op_.indices.front())) body.push_back(declare(kIndex, index, here));
  for (const auto& [param, array] : arrays)
    body.push_back(declare({table_.type(param).element, false}, unit.name(param),
                           element(array, together ? place() : variable(next))));
  team_.body(*op_.map.body, body);
  const auto flag = [&](std::size_t k) { return cast(kInt, team_.values_.operand(made[k])); };
  for (std::size_t k = 0; k < held_count(); ++k) {
    const bool is_pair = counts_ && 2 * k + 1 < types_.size();
    const ExprPtr value = !counts_  ? team_.values_.operand(made[k])
                          : is_pair ? infix("+", flag(2 * k), infix("*", flag(2 * k + 1), number_of(kFlagCount)))
                                    : flag(2 * k);
    body.push_back(assign(element(elements_[k], place()), value));
  }
  for (const auto& [k, array] : mapped)
    body.push_back(assign(element(array, variable(next)), team_.values_.operand(made[k])));
  for (std::size_t k = types_.size(); k < stm_.pattern.size(); ++k)
    if (const auto row = kept_.find(stm_.pattern[k]); row != kept_.end())
      body.push_back(assign(element(row->second, place()), team_.values_.operand(made[k])));
  one.push_back(kernel::branch(inside, std::move(body)));
  tile.push_back(unrolled(next, 0, kNeighboursAtOnce, std::move(one)));
  for (const auto& [k, array] : mapped) write_neighbours(stm_.pattern[k], variable(at), array, number_of(0), tile);
  team_.append_fallible(op_, {unrolled(round, 0, rounds_, std::move(tile))}, out);
}

// Each round's neighbours by themselves, and what they give.
void NeighbourScan::scan_neighbours(const std::string& round, KernelBlock& out) {
  const std::string next = team_.unit_.fresh("next");
  const ExprPtr each = number_of(kNeighboursAtOnce);
  const auto at = [&](const ExprPtr& behind) {
    return [this, &round, each, behind](std::size_t k) {
      return element(elements_[k], infix("+", infix("*", variable(round), each), behind));
    };
  };
  KernelBlock neighbours, start;
  combine_held(at(infix("-", variable(next), number_of(1))), at(variable(next)), at(variable(next)), neighbours);
  out.push_back(unrolled(round, 0, rounds_, {unrolled(next, 1, kNeighboursAtOnce, std::move(neighbours))}));
  for (std::size_t k = 0; k < held_count(); ++k) {
    out.push_back(declare_array(held_type(k), totals_[k], rounds_));
    start.push_back(assign(element(totals_[k], variable(round)), at(number_of(kNeighboursAtOnce - 1))(k)));
  }
  out.push_back(unrolled(round, 0, rounds_, std::move(start)));
}

// What a round's elements became.
void NeighbourScan::write_elements(const std::string& round, const PlaceOf& place_of, KernelBlock& out) {
  const auto value_rows = stm_.pattern.begin() + static_cast<std::ptrdiff_t>(types_.size());
  if (std::none_of(stm_.pattern.begin(), value_rows, [&](Value row) { return is_returned(row); })) return;
  const std::string at = team_.unit_.fresh("at");
  const ExprPtr each = number_of(kNeighboursAtOnce);
  out.push_back(declare(place_type_, at, infix("*", place_of(variable(round)), each)));
  for (std::size_t k = 0; k < types_.size(); ++k)
    if (is_returned(stm_.pattern[k]))
      write_neighbours(stm_.pattern[k], variable(at), elements_[k], infix("*", variable(round), each), out);
}

void NeighbourScan::write_neighbours(Value row, const ExprPtr& at, const std::string& array, const ExprPtr& first,
                                     KernelBlock& out) {
  const Type& type = table_.type(row);
  if (type.element == ScalarType::unit) return;
  const std::int64_t size = byte_size(type.element);
  const std::int64_t width = std::min(kNeighboursAtOnce, kBytesOfAccess / size);
  const std::string next = team_.unit_.fresh("next");
  const ExprPtr each = number_of(kNeighboursAtOnce), here = from_first(at);
  const Lmad& layout = type.memory->layout;
  const Kernel::Buffer& buffer = team_.buffer(type.memory->block, stm_.location);
  KernelBlock at_once, single;
  single.push_back(assign(team_.element_of(row, {infix("+", here, variable(next))}, stm_.location),
                          element(array, infix("+", first, variable(next)))));
  Stmt one_by_one =
      unrolled(next, 0, kNeighboursAtOnce,
               {kernel::branch(infix("<", infix("+", at, variable(next)), variable(count_)), std::move(single))});
  if (layout.dims().front().stride != Poly(1)) {
    out.push_back(std::move(one_by_one));
    return;
  }
  for (std::int64_t k = 0; k < kNeighboursAtOnce; k += width)
    at_once.push_back(do_call(fmt::format("apl_store<{}>", width),
                              {variable(buffer.name), team_.layout_position(layout, {infix("+", here, number_of(k))}),
                               infix("+", variable(array), infix("+", first, number_of(k)))}));
  ExprPtr can = call(fmt::format("apl_aligned<{}>", width * size), {variable(buffer.name)});
  const auto first_index = [&](Value v) -> std::optional<Poly> {
    const auto& space = std::get<SegOp>(team_.stm_.op).space;
    const auto dim = std::ranges::find(space, v, &SegDim::index);
    return dim != space.end() && dim->bound.is_one() ? std::optional(Poly(0)) : std::nullopt;
  };
  if (const ExprPtr offset = team_.aligned({layout.offset().substitute(first_index)}, width))
    can = infix("&&", can, offset);
  const ExprPtr whole = infix("<=", infix("+", at, each), variable(count_));
  out.push_back(kernel::branch(infix("&&", whole, can), std::move(at_once), {std::move(one_by_one)}));
}

}  // namespace apl::lower
