// Scans that several blocks share (ir/team.h), on GPUs, in one kernel: decoupled look-back (Merrill and Garland 2016).
// A block scans a tile of neighbouring elements and tells the others what the tile gives by itself; it looks back at
// what the tiles before it told, until one tells what all up to there give; it tells the same of its own, and folds its
// elements behind it:
//
//   if (thread == 0) tile_s(0) = apl_ticket(counters, 0, blocks - 1);  // tiles are taken in the order of coming
//   for (round < 4) for (next < 4) xs_s[round * 4 + next] = f(xs((round * threads + thread) * 4 + next));
//   a thread scans its neighbours, a warp its threads by shuffles, each warp the rounds of all by shared memory
//   tell(tile, 1, what the tile gives);
//   for (last = tile - 1; ; last -= 32) { each lane asks one tile; before = the fold of them, before; }
//   tell(tile, 2, before, what the tile gives);
//   ys(..) = before, what came before in the tile, xs_s[..];
//
// What is told is a value and a number, together in each cell (apl_tell), so that nothing has to be ordered. A tile
// waits for tiles alone whose blocks came before: these are there and go on. The last block to end makes all cells zero
// again. With one block there is one tile, and nothing is told. Elements beyond the end are neutral. Each thread reads
// and writes its neighbours at once where they are contiguous and aligned.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/lower/team.h"

#include "ir/team.h"
#include "ir/walk.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

namespace {

// What is told of a tile: by itself, with all before it.
constexpr std::int64_t kOwn = 1, kWhole = 2;

ExprPtr all_of(ExprPtr a, ExprPtr b) { return a ? infix("&&", std::move(a), std::move(b)) : b; }

}  // namespace

// One scan, whose parts share names.
class LookBack {
 public:
  LookBack(Team& team, const Screma& op, const Stm& stm);
  void run(KernelBlock& out);

 private:
  using Each = std::function<ExprPtr(std::size_t)>;

  std::vector<std::string> fresh_of_each(const std::string& ending);
  CType type_of(std::size_t k) const { return {types_[k], false}; }
  void declare_each(const std::vector<std::string>& names, const Each& start, KernelBlock& out) const;
  // `left` folded with `right`, into `target`, or where it does not hold `target` as it is.
  void combine(const Each& left, const Each& right, const Each& target, KernelBlock& out, const ExprPtr& where = {});
  Stmt unrolled(const std::string& name, std::int64_t from, std::int64_t bound, KernelBlock body) const;
  Stmt steps(const std::string& step, KernelBlock body) const;
  ExprPtr neutral(std::size_t k) const { return team_.values_.operand(neutral_[k]); }

  void take_tile(KernelBlock& out);
  void read_elements(KernelBlock& out);
  void write_neighbours(Value row, const ExprPtr& at, const std::string& array, const ExprPtr& first, KernelBlock& out);
  void scan_tile(KernelBlock& out);
  void tell(std::int64_t number, const Each& value, KernelBlock& out) const;
  void look(KernelBlock& out);
  void write_results(KernelBlock& out);
  void clear_cells(KernelBlock& out);

  Team& team_;
  const Screma& op_;
  const Stm& stm_;
  const ValueTable& table_;
  std::vector<ScalarType> types_;  // of the operators' values
  std::vector<Operand> neutral_;
  const std::int64_t rounds_, threads_, warp_size_;
  const std::int64_t words_;  // cells of a tile
  std::string thread_, lane_, warp_, tile_, first_, count_, cells_, counters_, number_;
  std::vector<std::string> elements_, totals_, all_, before_;  // of each value
};

LookBack::LookBack(Team& team, const Screma& op, const Stm& stm)
    : team_(team),
      op_(op),
      stm_(stm),
      table_(team.unit_.function.values),
      rounds_(scan_rounds(op, table_)),
      threads_(team.threads_),
      warp_size_(team.unit_.target.warp),
      words_(look_back_words(op, table_)) {
  for (const ReduceOp& reduce : op.reduces)
    for (std::size_t k = 0; k < reduce.neutral.size(); ++k) {
      types_.push_back(table_.type(reduce.op.params[k]).element);
      neutral_.push_back(reduce.neutral[k]);
    }
  Unit& unit = team.unit_;
  thread_ = unit.fresh("thread"), lane_ = unit.fresh("lane"), warp_ = unit.fresh("warp"), tile_ = unit.fresh("tile");
  first_ = unit.fresh("first"), count_ = unit.fresh("count"), cells_ = unit.fresh("cells");
  counters_ = unit.fresh("counters"), number_ = unit.fresh("number_s");
  elements_ = fresh_of_each("_s"), totals_ = fresh_of_each("_totals"), all_ = fresh_of_each("_all");
  before_ = fresh_of_each("_before");
}

void Team::look_back(const Screma& op, const Stm& stm, KernelBlock& out) { LookBack(*this, op, stm).run(out); }

void LookBack::run(KernelBlock& out) {
  take_tile(out);
  read_elements(out);
  scan_tile(out);
  look(out);
  write_results(out);
  clear_cells(out);
}

std::vector<std::string> LookBack::fresh_of_each(const std::string& ending) {
  std::vector<std::string> result;
  for (std::size_t k = 0; k < types_.size(); ++k)
    result.push_back(team_.unit_.fresh(table_.name(stm_.pattern[k]) + ending));
  return result;
}

void LookBack::declare_each(const std::vector<std::string>& names, const Each& start, KernelBlock& out) const {
  for (std::size_t k = 0; k < names.size(); ++k) out.push_back(declare(type_of(k), names[k], start(k), false));
}

void LookBack::combine(const Each& left, const Each& right, const Each& target, KernelBlock& out,
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

Stmt LookBack::unrolled(const std::string& name, std::int64_t from, std::int64_t bound, KernelBlock body) const {
  Stmt loop = for_loop(kInt, name, number_of(bound), std::move(body));
  loop.from = number_of(from);
  loop.unroll = true;
  return loop;
}

// 1, 2, 4, ... of a warp.
Stmt LookBack::steps(const std::string& step, KernelBlock body) const {
  Stmt loop = for_loop(kInt, step, number_of(warp_size_), std::move(body));
  loop.from = number_of(1);
  loop.step = variable(step);
  return loop;
}

// Which elements the block has.
void LookBack::take_tile(KernelBlock& out) {
  const ExprPtr blocks = variable(team_.team_.blocks), one = number_of(1), zero = number_of(0);
  const ExprPtr several = infix(">", blocks, one);
  const CType counter{ScalarType::u32, false};
  const SegOp& kernel = std::get<SegOp>(team_.stm_.op);
  constexpr std::int64_t kCounters = 2, kCell = 8;
  team_.zeros_ = {(Poly(kCell) + *kernel.blocks * (kCell * words_)) * poly_min(1, *kernel.blocks - 1), {0, kCell}};
  static_assert(kCounters * sizeof(std::uint32_t) == kCell);
  team_.function_.params.push_back({counters_, counter, BufferKind::global_out});
  team_.function_.params.push_back({cells_, {ScalarType::u64, false}, BufferKind::global_out});
  out.push_back(declare(kInt, thread_, call("apl_thread", {})));
  out.push_back(declare(kInt, lane_, call("apl_lane", {})));
  out.push_back(declare(kInt, warp_, call("apl_warp", {})));
  out.push_back(team_.shared_array(number_, kInt, kCounters));
  out.push_back(declare(kInt, tile_, zero, false));
  const ExprPtr last = cast(counter, infix("-", blocks, one));
  const ExprPtr ticket = cast(kInt, call("apl_ticket", {variable(counters_), zero, last}));
  KernelBlock take{kernel::branch(infix("==", variable(thread_), zero), {assign(element(number_, zero), ticket)}),
                   barrier(), assign(variable(tile_), element(number_, zero))};
  out.push_back(kernel::branch(several, std::move(take)));
  const std::string width = team_.unit_.fresh("width"), each = team_.unit_.fresh("each");
  const ExprPtr neighbours = number_of(kNeighboursAtOnce);
  out.push_back(declare(kIndex, width, team_.values_.poly(op_.widths.front())));
  const ExprPtr share = infix("/", infix("/", infix("-", variable(width), one), blocks), neighbours);
  out.push_back(
      declare(kIndex, each, select(several, infix("*", infix("+", share, one), neighbours), variable(width))));
  out.push_back(declare(kIndex, first_, infix("*", variable(tile_), variable(each))));
  const ExprPtr left = infix("-", variable(width), variable(first_));
  out.push_back(
      declare(kInt, count_, cast(kInt, call("apl_index_max", {zero, call("apl_index_min", {variable(each), left})}))));
}

// f of the block's elements, and the rows that it makes.
void LookBack::read_elements(KernelBlock& out) {
  Unit& unit = team_.unit_;
  const std::string round = unit.fresh("round"), next = unit.fresh("next"), at = unit.fresh("at");
  const std::string index = unit.name(op_.indices.front());
  const ExprPtr each = number_of(kNeighboursAtOnce), count = variable(count_);
  const auto place = [&] { return infix("+", infix("*", variable(round), each), variable(next)); };
  for (std::size_t k = 0; k < types_.size(); ++k)
    out.push_back(declare_array(type_of(k), elements_[k], rounds_ * kNeighboursAtOnce));
  const ExprPtr inside = infix("<", infix("+", variable(at), variable(next)), count);
  const ExprPtr here = infix("+", infix("+", variable(first_), variable(at)), variable(next));
  KernelBlock tile{declare(
      kInt, at, infix("*", infix("+", infix("*", variable(round), number_of(threads_)), variable(thread_)), each))};
  const ExprPtr whole = infix("<=", infix("+", variable(at), each), count);
  // The inputs' neighbours, by one access or by one each.
  std::map<Value, std::string> arrays;
  for (std::size_t k = 0; k < op_.inputs.size(); ++k) {
    const Value param = op_.map.params[k];
    const Type& type = table_.type(param);
    if (!type.is_scalar() || type.element == ScalarType::unit) continue;
    arrays[param] = unit.fresh(table_.name(param) + "_r");
    tile.push_back(declare_array({type.element, false}, arrays[param], kNeighboursAtOnce));
    KernelBlock at_once{declare(kIndex, index, infix("+", variable(first_), variable(at)))}, single;
    const ExprPtr can = team_.wide_read(op_, stm_, k, variable(arrays[param]), at_once);
    single.push_back(declare(kIndex, index, here));
    single.push_back(assign(element(arrays[param], variable(next)),
                            team_.element_of(op_.inputs[k], {variable(index)}, stm_.location)));
    Stmt one_by_one = unrolled(next, 0, kNeighboursAtOnce, {kernel::branch(inside, std::move(single))});
    if (can) {
      tile.push_back(kernel::branch(all_of(whole, can), std::move(at_once), {std::move(one_by_one)}));
    } else {
      tile.push_back(std::move(one_by_one));
    }
  }
  const std::vector<Operand>& made = op_.map.body->results;
  const std::vector<Operand>& rows = std::get<SegOp>(team_.stm_.op).body->results;
  const auto is_returned = [&](Value row) { return std::ranges::find(rows, Operand(row)) != rows.end(); };
  std::map<std::size_t, std::string> mapped;
  for (std::size_t k = types_.size(); k < stm_.pattern.size(); ++k) {
    if (!is_returned(stm_.pattern[k])) continue;
    mapped[k] = unit.fresh(table_.name(stm_.pattern[k]) + "_r");
    tile.push_back(declare_array({table_.type(made[k]).element, false}, mapped[k], kNeighboursAtOnce));
  }
  KernelBlock one, body;
  for (std::size_t k = 0; k < types_.size(); ++k) one.push_back(assign(element(elements_[k], place()), neutral(k)));
  if (free_values(op_.map, table_).contains(op_.indices.front())) body.push_back(declare(kIndex, index, here));
  for (const auto& [param, array] : arrays)
    body.push_back(declare({table_.type(param).element, false}, unit.name(param), element(array, variable(next))));
  team_.body(*op_.map.body, body);
  for (std::size_t k = 0; k < types_.size(); ++k)
    body.push_back(assign(element(elements_[k], place()), team_.values_.operand(made[k])));
  for (const auto& [k, array] : mapped)
    body.push_back(assign(element(array, variable(next)), team_.values_.operand(made[k])));
  one.push_back(kernel::branch(inside, std::move(body)));
  tile.push_back(unrolled(next, 0, kNeighboursAtOnce, std::move(one)));
  for (const auto& [k, array] : mapped) write_neighbours(stm_.pattern[k], variable(at), array, number_of(0), tile);
  team_.append_fallible(op_, {unrolled(round, 0, rounds_, std::move(tile))}, out);
}

// Elements of `array`, from `first` on, to the row's from position `at` of the tile on: at once where that can be.
void LookBack::write_neighbours(Value row, const ExprPtr& at, const std::string& array, const ExprPtr& first,
                                KernelBlock& out) {
  const Type& type = table_.type(row);
  if (type.element == ScalarType::unit) return;
  const std::int64_t size = byte_size(type.element);
  const std::int64_t width = std::min(kNeighboursAtOnce, kBytesOfAccess / size);
  const std::string next = team_.unit_.fresh("next");
  const ExprPtr each = number_of(kNeighboursAtOnce), here = infix("+", variable(first_), at);
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
  // The space has one index.
  const auto first_index = [&](Value v) -> std::optional<Poly> {
    const auto& space = std::get<SegOp>(team_.stm_.op).space;
    return std::ranges::find(space, v, &SegDim::index) == space.end() ? std::nullopt : std::optional(Poly(0));
  };
  if (const ExprPtr offset = team_.aligned({layout.offset().substitute(first_index)}, width))
    can = infix("&&", can, offset);
  const ExprPtr whole = infix("<=", infix("+", at, each), variable(count_));
  out.push_back(kernel::branch(infix("&&", whole, can), std::move(at_once), {std::move(one_by_one)}));
}

// Each thread its neighbours, each warp its threads, and what all rounds of all warps give, in each warp.
void LookBack::scan_tile(KernelBlock& out) {
  Unit& unit = team_.unit_;
  const std::string round = unit.fresh("round"), next = unit.fresh("next"), step = unit.fresh("step");
  const ExprPtr each = number_of(kNeighboursAtOnce), lane = variable(lane_);
  const auto at = [&](const ExprPtr& behind) {
    return [this, &round, each, behind](std::size_t k) {
      return element(elements_[k], infix("+", infix("*", variable(round), each), behind));
    };
  };
  KernelBlock neighbours;
  combine(at(infix("-", variable(next), number_of(1))), at(variable(next)), at(variable(next)), neighbours);
  out.push_back(unrolled(round, 0, rounds_, {unrolled(next, 1, kNeighboursAtOnce, std::move(neighbours))}));
  KernelBlock start, lanes;
  for (std::size_t k = 0; k < types_.size(); ++k) {
    out.push_back(declare_array(type_of(k), totals_[k], rounds_));
    start.push_back(assign(element(totals_[k], variable(round)), at(number_of(kNeighboursAtOnce - 1))(k)));
  }
  out.push_back(unrolled(round, 0, rounds_, std::move(start)));
  const ExprPtr reaches = infix("<=", variable(step), lane);
  const ExprPtr from = infix("-", lane, select(reaches, variable(step), number_of(0)));
  const Each total = [&](std::size_t k) { return element(totals_[k], variable(round)); };
  // The rounds take each step together, so that shuffles do not wait for each other.
  combine([&](std::size_t k) { return call("apl_shuffle", {total(k), from}); }, total, total, lanes, reaches);
  out.push_back(steps(step, {unrolled(round, 0, rounds_, std::move(lanes))}));
  const std::int64_t warps = threads_ / warp_size_;
  std::vector<std::string> shared;
  KernelBlock leads;
  const ExprPtr slot = infix("+", infix("*", variable(round), number_of(warps)), variable(warp_));
  for (std::size_t k = 0; k < types_.size(); ++k) {
    shared.push_back(unit.fresh(table_.name(stm_.pattern[k]) + "_warps_s"));
    out.push_back(team_.shared_array(shared[k], type_of(k), rounds_ * warps));
    leads.push_back(assign(element(shared[k], slot), total(k)));
  }
  out.push_back(
      kernel::branch(infix("==", lane, number_of(warp_size_ - 1)), {unrolled(round, 0, rounds_, std::move(leads))}));
  out.push_back(barrier());
  // A lane for each round of each warp.
  const ExprPtr is_slot = infix("<", lane, number_of(rounds_ * warps));
  KernelBlock known, slots;
  declare_each(
      all_, [&](std::size_t k) { return neutral(k); }, out);
  for (std::size_t k = 0; k < types_.size(); ++k) known.push_back(assign(variable(all_[k]), element(shared[k], lane)));
  out.push_back(kernel::branch(is_slot, std::move(known)));
  const Each all = [&](std::size_t k) { return variable(all_[k]); };
  combine([&](std::size_t k) { return call("apl_shuffle", {all(k), from}); }, all, all, slots, reaches);
  out.push_back(steps(step, std::move(slots)));
}

void LookBack::tell(std::int64_t number, const Each& value, KernelBlock& out) const {
  std::int64_t word = 0;
  constexpr std::int64_t kWord = 4;
  for (std::size_t k = 0; k < types_.size(); ++k) {
    const ExprPtr cell = infix("+", infix("*", cast(kIndex, variable(tile_)), number_of(words_)), number_of(word));
    out.push_back(do_call("apl_tell", {variable(cells_), cell, number_of(number), value(k)}));
    word += (byte_size(types_[k]) + kWord - 1) / kWord;
  }
}

// What all tiles before give.
void LookBack::look(KernelBlock& out) {
  Unit& unit = team_.unit_;
  const ExprPtr lane = variable(lane_), zero = number_of(0), one = number_of(1), warp = number_of(warp_size_);
  const std::string last = unit.fresh("last"), goes_on = unit.fresh("goes_on"), from = unit.fresh("from"),
                    told = unit.fresh("number"), nearest = unit.fresh("nearest"), step = unit.fresh("step");
  const CType number_type{ScalarType::u32, false};
  const std::vector<std::string> values = fresh_of_each("_told"), ends = fresh_of_each("_end"),
                                 shared = fresh_of_each("_before_s"), whole = fresh_of_each("_whole");
  for (std::size_t k = 0; k < types_.size(); ++k) out.push_back(team_.shared_array(shared[k], type_of(k), 1));
  declare_each(
      before_, [&](std::size_t k) { return neutral(k); }, out);
  const Each value = [&](std::size_t k) { return variable(values[k]); };
  const Each before = [&](std::size_t k) { return variable(before_[k]); };
  const Each of_tile = [&](std::size_t k) { return variable(whole[k]); };
  KernelBlock first_warp;
  // What the tile gives is what the last slot has.
  const std::int64_t slots = rounds_ * (threads_ / warp_size_);
  declare_each(
      whole,
      [&](std::size_t k) {
        return call("apl_shuffle", {variable(all_[k]), number_of(slots - 1)});
      },
      first_warp);
  KernelBlock own;
  tell(kOwn, of_tile, own);
  KernelBlock back{kernel::branch(infix("==", lane, zero), std::move(own)),
                   declare(kInt, last, infix("-", variable(tile_), one), false), declare(kInt, goes_on, one, false)};
  KernelBlock window;
  window.push_back(declare(kInt, from, infix("-", variable(last), lane)));
  // Before the first tile there is nothing.
  window.push_back(
      declare(number_type, told, select(infix("<", variable(from), zero), number_of(kWhole), zero), false));
  declare_each(
      values, [&](std::size_t k) { return neutral(k); }, window);
  KernelBlock ask;
  std::int64_t word = 0;
  constexpr std::int64_t kWord = 4;
  for (std::size_t k = 0; k < types_.size(); ++k) {
    const ExprPtr cell = infix("+", infix("*", cast(kIndex, variable(from)), number_of(words_)), number_of(word));
    const ExprPtr answer = call("apl_told", {variable(cells_), cell, prefix("&", variable(values[k]))});
    // All values must be of one telling.
    if (k == 0) {
      ask.push_back(assign(variable(told), answer));
    } else {
      const std::string also = unit.fresh("number");
      ask.push_back(declare(number_type, also, answer));
      ask.push_back(assign(variable(told), select(infix("==", variable(also), variable(told)), variable(told), zero)));
    }
    word += (byte_size(types_[k]) + kWord - 1) / kWord;
  }
  Stmt wait;
  wait.kind = Stmt::Kind::while_loop;
  wait.value = infix("==", variable(told), zero);
  wait.body = std::move(ask);
  window.push_back(std::move(wait));
  window.push_back(declare(kInt, nearest, call("apl_first_lane", {infix("==", variable(told), number_of(kWhole))})));
  // What is before that tile is in it.
  KernelBlock beyond;
  for (std::size_t k = 0; k < types_.size(); ++k) beyond.push_back(assign(value(k), neutral(k)));
  window.push_back(kernel::branch(infix(">", lane, variable(nearest)), std::move(beyond)));
  KernelBlock lanes;
  // Of the fold only the first lane's value is wanted, so what comes to the last ones does not matter.
  const ExprPtr other = infix("%", infix("+", lane, variable(step)), warp);
  combine([&](std::size_t k) { return call("apl_shuffle", {value(k), other}); }, value, value, lanes);
  window.push_back(steps(step, std::move(lanes)));
  combine([&](std::size_t k) { return call("apl_shuffle", {value(k), zero}); }, before, before, window);
  window.push_back(assign(variable(last), infix("-", variable(last), warp)));
  window.push_back(assign(variable(goes_on), infix("==", variable(nearest), warp)));
  Stmt windows;
  windows.kind = Stmt::Kind::while_loop;
  windows.value = infix("!=", variable(goes_on), zero);
  windows.body = std::move(window);
  back.push_back(std::move(windows));
  first_warp.push_back(kernel::branch(infix(">", variable(tile_), zero), std::move(back)));
  KernelBlock leads;
  declare_each(ends, of_tile, leads);
  combine(
      before, of_tile, [&](std::size_t k) { return variable(ends[k]); }, leads);
  tell(
      kWhole, [&](std::size_t k) { return variable(ends[k]); }, leads);
  for (std::size_t k = 0; k < types_.size(); ++k) leads.push_back(assign(element(shared[k], zero), before(k)));
  first_warp.push_back(kernel::branch(infix("==", lane, zero), std::move(leads)));
  KernelBlock several{kernel::branch(infix("==", variable(warp_), zero), std::move(first_warp)), barrier()};
  for (std::size_t k = 0; k < types_.size(); ++k) several.push_back(assign(before(k), element(shared[k], zero)));
  out.push_back(kernel::branch(infix(">", variable(team_.team_.blocks), one), std::move(several)));
}

void LookBack::write_results(KernelBlock& out) {
  Unit& unit = team_.unit_;
  const std::string round = unit.fresh("round"), next = unit.fresh("next"), slot = unit.fresh("slot"),
                    at = unit.fresh("at");
  const ExprPtr lane = variable(lane_), one = number_of(1), zero = number_of(0), each = number_of(kNeighboursAtOnce);
  const std::vector<std::string> starts = fresh_of_each("_start");
  const Each start = [&](std::size_t k) { return variable(starts[k]); };
  KernelBlock body;
  body.push_back(
      declare(kInt, slot, infix("+", infix("*", variable(round), number_of(threads_ / warp_size_)), variable(warp_))));
  declare_each(
      starts, [&](std::size_t k) { return variable(before_[k]); }, body);
  // Rounds and warps before it, then threads before it.
  const ExprPtr is_later = infix(">", variable(slot), zero), is_behind = infix(">", lane, zero);
  const ExprPtr slot_before = infix("-", variable(slot), select(is_later, one, zero));
  const ExprPtr lane_before = infix("-", lane, select(is_behind, one, zero));
  combine(
      start,
      [&](std::size_t k) {
        return call("apl_shuffle", {variable(all_[k]), slot_before});
      },
      start, body, is_later);
  combine(
      start,
      [&](std::size_t k) {
        return call("apl_shuffle", {element(totals_[k], variable(round)), lane_before});
      },
      start, body, is_behind);
  KernelBlock one_element;
  const Each here = [&](std::size_t k) {
    return element(elements_[k], infix("+", infix("*", variable(round), each), variable(next)));
  };
  combine(start, here, here, one_element);
  body.push_back(unrolled(next, 0, kNeighboursAtOnce, std::move(one_element)));
  body.push_back(declare(
      kInt, at, infix("*", infix("+", infix("*", variable(round), number_of(threads_)), variable(thread_)), each)));
  const std::vector<Operand>& rows = std::get<SegOp>(team_.stm_.op).body->results;
  for (std::size_t k = 0; k < types_.size(); ++k)
    if (std::ranges::find(rows, Operand(stm_.pattern[k])) != rows.end())
      write_neighbours(stm_.pattern[k], variable(at), elements_[k], infix("*", variable(round), each), body);
  out.push_back(unrolled(round, 0, rounds_, std::move(body)));
}

// By the last block to end: nobody looks at them any more.
void LookBack::clear_cells(KernelBlock& out) {
  const ExprPtr blocks = variable(team_.team_.blocks), one = number_of(1), zero = number_of(0);
  const std::string cell = team_.unit_.fresh("cell");
  const ExprPtr last = cast({ScalarType::u32, false}, infix("-", blocks, one));
  KernelBlock come{
      fence(), assign(element(number_, one), infix("==", call("apl_ticket", {variable(counters_), one, last}), last)),
      fence()};
  KernelBlock clear{assign(element(cells_, variable(cell)), number_of(0))};
  Stmt cells = for_loop(kInt, cell, infix("*", blocks, number_of(words_)), std::move(clear));
  cells.from = variable(thread_);
  cells.step = number_of(threads_);
  KernelBlock several{kernel::branch(infix("==", variable(thread_), zero), std::move(come)), barrier(),
                      kernel::branch(infix("!=", element(number_, one), zero), {std::move(cells)})};
  out.push_back(kernel::branch(infix(">", blocks, one), std::move(several)));
}

}  // namespace apl::lower
