// Scans that several blocks share (ir/team.h), on GPUs, in one kernel: decoupled look-back (Merrill and Garland 2016).
// A block scans a tile of neighbouring elements and publishes what the tile gives by itself; it looks back at what the
// tiles before it published, until one says what all up to there give; it publishes the same of its own, and folds its
// elements behind it:
//
//   if (thread == 0) tile_s(0) = apl_ticket(counters, 0, blocks - 1);  // tiles are taken in the order of coming
//   for (round < 4) for (next < 4) xs_s[round * 4 + next] = f(xs((round * threads + thread) * 4 + next));
//   a thread scans its neighbours, a warp its threads by shuffles, each warp the rounds of all by shared memory
//   publish(tile, 1, what the tile gives);
//   for (last = tile - 1; ; last -= 32) { each lane asks one tile; before = the fold of them, before; }
//   publish(tile, 2, before, what the tile gives);
//   ys(..) = before, what came before in the tile, xs_s[..];
//
// A scatter behind the scan, as in a filter, takes the place of the last line: a warp's places and values go through
// shared memory, from threads that have neighbours to threads that are neighbours. Flags are counted two in a register.
//
// What is published is a value and a number, together in each cell (apl_publish), so that nothing has to be ordered. A
// tile waits for tiles alone whose blocks came before: these are there and go on. The last block that has looked back
// makes all cells zero again. With one block there is one tile, and nothing is published. Elements beyond the end are
// neutral. Each thread reads and writes its neighbours at once where they are contiguous and aligned.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/lower/neighbour_scan.h"

#include "ir/team.h"
#include "ir/walk.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

namespace {

// What is published of a tile: by itself, with all before it.
constexpr std::int64_t kOwn = 1, kWhole = 2;

}  // namespace

class LookBack : NeighbourScan {
 public:
  LookBack(Team& team, const Screma& op, const Stm& stm);
  void run(KernelBlock& out);

 private:
  Stmt steps(const std::string& step, KernelBlock body) const;
  PlaceOf place_of() const;

  void take_tile(KernelBlock& out);
  void scan_tile(KernelBlock& out);
  void publish(std::int64_t number, const Each& value, KernelBlock& out) const;
  void look(KernelBlock& out);
  void write_results(KernelBlock& out);
  ExprPtr count_at(std::size_t k, const ExprPtr& here) const;
  void write_counts(const std::string& round, KernelBlock& out);
  void read_scattered(KernelBlock& out);
  void scatter_round(const std::string& round, KernelBlock& out);
  void declare_stages(KernelBlock& out);
  void write_staged(KernelBlock& out);
  void write_ends(KernelBlock& out);
  void clear_cells(KernelBlock& out);

  const std::int64_t words_;      // cells of a tile
  const Stm* scatter_ = nullptr;  // behind the scan
  std::string thread_, lane_, warp_, tile_, cells_, counters_, number_, came_;
  std::vector<std::string> all_, before_;         // of what is held; of each value
  std::map<std::size_t, std::string> scattered_;  // inputs of the scatter that are read for it, of all rounds
  // What a scatter's lambda gives of a thread's neighbours, and of a warp's in shared memory. None: it is not staged.
  std::vector<std::string> given_, stages_;
};

LookBack::LookBack(Team& team, const Screma& op, const Stm& stm)
    : NeighbourScan(team, op, stm, tile_rounds(op, team.unit_.function.values)), words_(look_back_words(op, table_)) {
  Unit& unit = team.unit_;
  thread_ = unit.fresh("thread"), lane_ = unit.fresh("lane"), warp_ = unit.fresh("warp"), tile_ = unit.fresh("tile");
  first_ = unit.fresh("first"), count_ = unit.fresh("count"), cells_ = unit.fresh("cells");
  counters_ = unit.fresh("counters"), number_ = unit.fresh("number_s"), came_ = unit.fresh("came");
  all_ = fresh_of_each("_all"), before_ = fresh_of_each("_before");
}

void Team::look_back(const Screma& op, const Stm& stm, KernelBlock& out) { LookBack(*this, op, stm).run(out); }

void LookBack::run(KernelBlock& out) {
  counts_ = counts_flags(op_, table_);
  // Blocks wait for each other most of the time: more of them, with some registers less, hide that.
  if (words_ <= 2) hold_resident(words_ == 1 || counts_ ? 4 : 3);
  take_tile(out);
  const SegOp& kernel = std::get<SegOp>(team_.stm_.op);
  std::set<Value> kept;
  scatter_ = team_scatter(kernel);
  if (scatter_ != nullptr)
    kept.insert(std::get<Scatter>(scatter_->op).inputs.begin(), std::get<Scatter>(scatter_->op).inputs.end());
  read_elements(place_of(), true, out, kept);
  scan_tile(out);
  look(out);
  write_results(out);
  write_ends(out);
  clear_cells(out);
}

// 1, 2, 4, ... of a warp.
Stmt LookBack::steps(const std::string& step, KernelBlock body) const {
  Stmt loop = for_loop(kInt, step, number_of(warp_size_), std::move(body));
  loop.from = number_of(1);
  loop.step = variable(step);
  return loop;
}

// Neighbouring threads have neighbours in each round, and a warp has its rounds behind each other.
LookBack::PlaceOf LookBack::place_of() const {
  return [this](const ExprPtr& round) {
    const ExprPtr of_warp = infix("+", infix("*", variable(warp_), number_of(rounds_)), round);
    return infix("+", infix("*", of_warp, number_of(warp_size_)), variable(lane_));
  };
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
  out.push_back(team_.shared_array(number_, kInt, 1));
  out.push_back(declare(counter, came_, number_of(0), false));
  out.push_back(declare(kInt, tile_, zero, false));
  // The division is under way while the tile's number is fetched.
  const std::string width = team_.unit_.fresh("width"), each = team_.unit_.fresh("each");
  const ExprPtr neighbours = number_of(kNeighboursAtOnce);
  out.push_back(declare(kIndex, width, team_.values_.poly(op_.widths.front())));
  const ExprPtr share = infix("/", infix("/", infix("-", variable(width), one), blocks), neighbours);
  out.push_back(
      declare(kIndex, each, select(several, infix("*", infix("+", share, one), neighbours), variable(width))));
  const ExprPtr last = cast(counter, infix("-", blocks, one));
  const ExprPtr ticket = cast(kInt, call("apl_ticket", {variable(counters_), zero, last}));
  KernelBlock take{kernel::branch(infix("==", variable(thread_), zero), {assign(element(number_, zero), ticket)}),
                   barrier(), assign(variable(tile_), element(number_, zero))};
  out.push_back(kernel::branch(several, std::move(take)));
  out.push_back(declare(kIndex, first_, infix("*", variable(tile_), variable(each))));
  const ExprPtr left = infix("-", variable(width), variable(first_));
  out.push_back(
      declare(kInt, count_, cast(kInt, call("apl_index_max", {zero, call("apl_index_min", {variable(each), left})}))));
}

// Each thread its neighbours, each warp its threads, and what all rounds of all warps give, in each warp.
void LookBack::scan_tile(KernelBlock& out) {
  Unit& unit = team_.unit_;
  const std::string round = unit.fresh("round"), step = unit.fresh("step");
  const ExprPtr lane = variable(lane_);
  scan_neighbours(round, out);
  KernelBlock lanes;
  const ExprPtr reaches = infix("<=", variable(step), lane);
  const ExprPtr from = infix("-", lane, select(reaches, variable(step), number_of(0)));
  const Each total = [&](std::size_t k) { return element(totals_[k], variable(round)); };
  // The rounds take each step together, so that shuffles do not wait for each other.
  combine_held([&](std::size_t k) { return call("apl_shuffle", {total(k), from}); }, total, total, lanes, reaches);
  out.push_back(steps(step, {unrolled(round, 0, rounds_, std::move(lanes))}));
  // The last lane knows what each round of its warp gives.
  const std::int64_t warps = threads_ / warp_size_;
  std::vector<std::string> shared;
  KernelBlock leads, more;
  const Each of_warp = [&](std::size_t k) { return variable(all_[k]); };
  for (std::size_t k = 0; k < held_count(); ++k) {
    shared.push_back(unit.fresh(table_.name(stm_.pattern[k]) + "_warps_s"));
    out.push_back(team_.shared_array(shared[k], held_type(k), warps));
    out.push_back(declare(held_type(k), all_[k], element(totals_[k], number_of(0)), false));
    leads.push_back(assign(element(shared[k], variable(warp_)), of_warp(k)));
  }
  combine_held(of_warp, total, of_warp, more);
  out.push_back(unrolled(round, 1, rounds_, std::move(more)));
  out.push_back(kernel::branch(infix("==", lane, number_of(warp_size_ - 1)), std::move(leads)));
  out.push_back(barrier());
  // A lane for each warp.
  KernelBlock known, slots;
  for (std::size_t k = 0; k < held_count(); ++k) out.push_back(assign(variable(all_[k]), held_neutral(k)));
  for (std::size_t k = 0; k < held_count(); ++k) known.push_back(assign(variable(all_[k]), element(shared[k], lane)));
  out.push_back(kernel::branch(infix("<", lane, number_of(warps)), std::move(known)));
  const Each all = [&](std::size_t k) { return variable(all_[k]); };
  combine_held([&](std::size_t k) { return call("apl_shuffle", {all(k), from}); }, all, all, slots, reaches);
  out.push_back(steps(step, std::move(slots)));
}

void LookBack::publish(std::int64_t number, const Each& value, KernelBlock& out) const {
  std::int64_t word = 0;
  constexpr std::int64_t kWord = 4;
  for (std::size_t k = 0; k < types_.size(); ++k) {
    const ExprPtr cell = infix("+", infix("*", cast(kIndex, variable(tile_)), number_of(words_)), number_of(word));
    out.push_back(do_call("apl_publish", {variable(cells_), cell, number_of(number), value(k)}));
    word += (byte_size(types_[k]) + kWord - 1) / kWord;
  }
}

// What all tiles before give.
void LookBack::look(KernelBlock& out) {
  Unit& unit = team_.unit_;
  const ExprPtr lane = variable(lane_), zero = number_of(0), one = number_of(1), warp = number_of(warp_size_);
  const std::string last = unit.fresh("last"), goes_on = unit.fresh("goes_on"), from = unit.fresh("from"),
                    seen = unit.fresh("number"), nearest = unit.fresh("nearest"), step = unit.fresh("step");
  const CType number_type{ScalarType::u32, false};
  const std::vector<std::string> values = fresh_of_each("_seen"), ends = fresh_of_each("_end"),
                                 shared = fresh_of_each("_before_s"), whole = fresh_of_each("_whole");
  for (std::size_t k = 0; k < types_.size(); ++k) out.push_back(team_.shared_array(shared[k], type_of(k), 1));
  declare_each(
      before_, [&](std::size_t k) { return neutral(k); }, out);
  const Each value = [&](std::size_t k) { return variable(values[k]); };
  const Each before = [&](std::size_t k) { return variable(before_[k]); };
  const Each of_tile = [&](std::size_t k) { return variable(whole[k]); };
  KernelBlock first_warp;
  const std::int64_t warps = threads_ / warp_size_;
  const Each last_warp = [&](std::size_t k) { return call("apl_shuffle", {variable(all_[k]), number_of(warps - 1)}); };
  declare_each(
      whole, [&](std::size_t k) { return taken(k, last_warp); }, first_warp);
  KernelBlock own;
  publish(kOwn, of_tile, own);
  KernelBlock back{kernel::branch(infix("==", lane, zero), std::move(own)),
                   declare(kInt, last, infix("-", variable(tile_), one), false), declare(kInt, goes_on, one, false)};
  KernelBlock window;
  window.push_back(declare(kInt, from, infix("-", variable(last), lane)));
  // Before the first tile there is nothing.
  window.push_back(
      declare(number_type, seen, select(infix("<", variable(from), zero), number_of(kWhole), zero), false));
  declare_each(
      values, [&](std::size_t k) { return neutral(k); }, window);
  KernelBlock ask;
  std::int64_t word = 0;
  constexpr std::int64_t kWord = 4;
  for (std::size_t k = 0; k < types_.size(); ++k) {
    const ExprPtr cell = infix("+", infix("*", cast(kIndex, variable(from)), number_of(words_)), number_of(word));
    const ExprPtr answer = call("apl_published", {variable(cells_), cell, prefix("&", variable(values[k]))});
    // All values must be of one telling.
    if (k == 0) {
      ask.push_back(assign(variable(seen), answer));
    } else {
      const std::string also = unit.fresh("number");
      ask.push_back(declare(number_type, also, answer));
      ask.push_back(assign(variable(seen), select(infix("==", variable(also), variable(seen)), variable(seen), zero)));
    }
    word += (byte_size(types_[k]) + kWord - 1) / kWord;
  }
  Stmt wait;
  wait.kind = Stmt::Kind::while_loop;
  wait.value = infix("==", variable(seen), zero);
  wait.body = std::move(ask);
  window.push_back(std::move(wait));
  window.push_back(declare(kInt, nearest, call("apl_first_lane", {infix("==", variable(seen), number_of(kWhole))})));
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
  publish(
      kWhole, [&](std::size_t k) { return variable(ends[k]); }, leads);
  for (std::size_t k = 0; k < types_.size(); ++k) leads.push_back(assign(element(shared[k], zero), before(k)));
  first_warp.push_back(do_call("apl_warp_barrier", {}));
  first_warp.push_back(kernel::branch(infix("==", lane, zero), std::move(leads)));
  // The block asks no tile any more: who comes last is known long before it ends. The others need not wait for that.
  const ExprPtr last_block = cast(number_type, infix("-", variable(team_.team_.blocks), one));
  KernelBlock done{fence(), assign(variable(came_), call("apl_ticket", {variable(counters_), one, last_block}))};
  KernelBlock several{kernel::branch(infix("==", variable(warp_), zero), std::move(first_warp)), barrier(),
                      kernel::branch(infix("==", variable(thread_), zero), std::move(done))};
  for (std::size_t k = 0; k < types_.size(); ++k) several.push_back(assign(before(k), element(shared[k], zero)));
  out.push_back(kernel::branch(infix(">", variable(team_.team_.blocks), one), std::move(several)));
}

void LookBack::write_results(KernelBlock& out) {
  Unit& unit = team_.unit_;
  if (scatter_ != nullptr) {
    read_scattered(out);
    declare_stages(out);
  }
  const std::string round = unit.fresh("round"), next = unit.fresh("next");
  const ExprPtr lane = variable(lane_), warp = variable(warp_), one = number_of(1), zero = number_of(0);
  const ExprPtr each = number_of(kNeighboursAtOnce);
  // What comes before the warp's round, and before the thread's neighbours in it.
  const std::vector<std::string> firsts = fresh_of_each("_first"), starts = fresh_of_each("_start");
  const Each first = [&](std::size_t k) { return variable(firsts[k]); };
  const Each start = [&](std::size_t k) { return variable(starts[k]); };
  // What came before a tile is added to what it counts where an element is made.
  for (std::size_t k = 0; k < held_count(); ++k)
    out.push_back(declare(held_type(k), firsts[k], counts_ ? zero : variable(before_[k]), false));
  const ExprPtr is_later = infix(">", warp, zero), is_behind = infix(">", lane, zero);
  const ExprPtr warp_before = infix("-", warp, select(is_later, one, zero));
  const ExprPtr lane_before = infix("-", lane, select(is_behind, one, zero));
  const auto total_of = [&](const ExprPtr& which) -> Each {
    return [&, which](std::size_t k) { return call("apl_shuffle", {element(totals_[k], variable(round)), which}); };
  };
  combine_held(
      first,
      [&](std::size_t k) {
        return call("apl_shuffle", {variable(all_[k]), warp_before});
      },
      first, out, is_later);
  KernelBlock body;
  for (std::size_t k = 0; k < held_count(); ++k) body.push_back(declare(held_type(k), starts[k], first(k), false));
  combine_held(start, total_of(lane_before), start, body, is_behind);
  KernelBlock one_element;
  const Each here = [&](std::size_t k) {
    return element(elements_[k], infix("+", infix("*", variable(round), each), variable(next)));
  };
  combine_held(start, here, here, one_element);
  body.push_back(unrolled(next, 0, kNeighboursAtOnce, std::move(one_element)));
  counts_ ? write_counts(round, body) : write_elements(round, place_of(), body);
  if (scatter_ != nullptr) scatter_round(round, body);
  combine_held(first, total_of(number_of(warp_size_ - 1)), first, body);
  out.push_back(unrolled(round, 0, rounds_, std::move(body)));
}

// Value k of a scan of flags at a thread's element.
LookBack::ExprPtr LookBack::count_at(std::size_t k, const ExprPtr& here) const {
  const Each words = [&](std::size_t word) { return element(elements_[word], here); };
  return team_.values_.binary(BinaryOp::add, types_[k], variable(before_[k]), taken(k, words));
}

// The counts of a round that are results, too.
void LookBack::write_counts(const std::string& round, KernelBlock& out) {
  const std::string at = team_.unit_.fresh("at"), next = team_.unit_.fresh("next");
  const ExprPtr each = number_of(kNeighboursAtOnce);
  const ExprPtr here = infix("+", infix("*", variable(round), each), variable(next));
  KernelBlock rows, writes;
  for (std::size_t k = 0; k < types_.size(); ++k) {
    if (!is_returned(stm_.pattern[k])) continue;
    const std::string row = team_.unit_.fresh(table_.name(stm_.pattern[k]) + "_r");
    rows.push_back(declare_array(type_of(k), row, kNeighboursAtOnce));
    rows.push_back(unrolled(next, 0, kNeighboursAtOnce, {assign(element(row, variable(next)), count_at(k, here))}));
    write_neighbours(stm_.pattern[k], variable(at), row, number_of(0), writes);
  }
  if (rows.empty()) return;
  out.push_back(declare(place_type_, at, infix("*", place_of()(variable(round)), each)));
  out.insert(out.end(), rows.begin(), rows.end());
  out.insert(out.end(), writes.begin(), writes.end());
}

// What the scatter reads beside the scan's rows: as the scan read it, or else of all rounds before the first is
// written, so that the reads are under way together, if there are registers for that.
void LookBack::read_scattered(KernelBlock& out) {
  Unit& unit = team_.unit_;
  const Scatter& op = std::get<Scatter>(scatter_->op);
  const Screma reads{.widths = op.widths, .indices = op.indices, .inputs = op.inputs, .map = op.map};
  const std::string round = unit.fresh("round"), at = unit.fresh("at");
  const ExprPtr each = number_of(kNeighboursAtOnce);
  for (std::size_t k = 0; k < op.inputs.size(); ++k)
    if (const auto read = read_.find(op.inputs[k]); read != read_.end()) scattered_[k] = read->second;
  if (!fit_together(reads)) return;
  KernelBlock tile{declare(place_type_, at, infix("*", place_of()(variable(round)), each))};
  for (std::size_t k = 0; k < op.inputs.size(); ++k) {
    const ScalarType type = table_.type(op.map.params[k]).element;
    const bool is_row = std::ranges::find(stm_.pattern, op.inputs[k]) != stm_.pattern.end();
    if (type == ScalarType::unit || is_row || scattered_.contains(k)) continue;
    scattered_[k] = unit.fresh(table_.name(op.map.params[k]) + "_r");
    out.push_back(declare_array({type, false}, scattered_[k], rounds_ * kNeighboursAtOnce));
    read_input(reads, *scatter_, k, at, scattered_[k], infix("*", variable(round), each), tile);
  }
  if (tile.size() > 1) out.push_back(unrolled(round, 0, rounds_, std::move(tile)));
}

// A round's elements, and what the scan maps of them, go to where the scatter says.
void LookBack::scatter_round(const std::string& round, KernelBlock& out) {
  Unit& unit = team_.unit_;
  const Scatter& op = std::get<Scatter>(scatter_->op);
  const Screma reads{.widths = op.widths, .indices = op.indices, .inputs = op.inputs, .map = op.map};
  const std::string at = unit.fresh("at"), next = unit.fresh("next"), index = unit.name(op.indices.front());
  const ExprPtr each = number_of(kNeighboursAtOnce);
  const ExprPtr here = infix("+", infix("*", variable(round), each), variable(next));
  out.push_back(declare(place_type_, at, infix("*", place_of()(variable(round)), each)));
  KernelBlock one{declare(kIndex, index, infix("+", from_first(variable(at)), variable(next)))};
  for (std::size_t k = 0; k < op.inputs.size(); ++k) {
    const Value param = op.map.params[k];
    const ScalarType type = table_.type(param).element;
    if (type == ScalarType::unit) continue;
    ExprPtr value;
    for (std::size_t row = 0; row < types_.size(); ++row)
      if (stm_.pattern[row] == op.inputs[k]) value = counts_ ? count_at(row, here) : element(elements_[row], here);
    if (const auto row = kept_.find(op.inputs[k]); row != kept_.end()) value = element(row->second, here);
    if (const auto read = scattered_.find(k); read != scattered_.end()) value = element(read->second, here);
    if (!value) {
      const std::string array = unit.fresh(table_.name(param) + "_r");
      out.push_back(declare_array({type, false}, array, kNeighboursAtOnce));
      read_input(reads, *scatter_, k, at, array, nullptr, out);
      value = element(array, variable(next));
    }
    one.push_back(declare({type, false}, unit.name(param), value));
  }
  team_.body(*op.map.body, one);
  const ExprPtr inside = infix("<", infix("+", variable(at), variable(next)), variable(count_));
  if (stages_.empty()) {
    team_.scatter_rows(op, *scatter_, one);
    out.push_back(unrolled(next, 0, kNeighboursAtOnce, {kernel::branch(inside, std::move(one))}));
    return;
  }
  for (std::size_t k = 0; k < given_.size(); ++k)
    one.push_back(assign(element(given_[k], variable(next)), team_.values_.operand(op.map.body->results[k])));
  // Elements beyond the end go nowhere.
  out.push_back(unrolled(
      next, 0, kNeighboursAtOnce,
      {assign(element(given_.front(), variable(next)), number_of(-1)), kernel::branch(inside, std::move(one))}));
  write_staged(out);
}

// Neighbouring elements often go to neighbouring places, so neighbouring lanes should write them: the lambda's results
// go through shared memory, from lanes that have four neighbours to lanes that have one of each 32. A store of a warp
// then fills whole sectors, where one of every fourth element fills a quarter of each, four times.
void LookBack::declare_stages(KernelBlock& out) {
  const Scatter& op = std::get<Scatter>(scatter_->op);
  constexpr std::int64_t kMostBytes = 24;  // of an element: blocks of a multiprocessor share its memory
  std::int64_t bytes = 0;
  for (const Operand& result : op.map.body->results) bytes += byte_size(table_.type(result).element);
  if (bytes > kMostBytes) return;
  for (const Operand& result : op.map.body->results) {
    const CType type{table_.type(result).element, false};
    given_.push_back(team_.unit_.fresh("given"));
    stages_.push_back(team_.unit_.fresh("stage_s"));
    out.push_back(declare_array(type, given_.back(), kNeighboursAtOnce));
    out.push_back(team_.shared_array(stages_.back(), type, threads_ * kNeighboursAtOnce));
  }
}

void LookBack::write_staged(KernelBlock& out) {
  const Scatter& op = std::get<Scatter>(scatter_->op);
  const std::string next = team_.unit_.fresh("next"), target = team_.unit_.fresh("place");
  const ExprPtr each = number_of(kNeighboursAtOnce), lane = variable(lane_);
  const ExprPtr first = infix("*", infix("-", variable(thread_), lane), each);  // of the warp
  // The warp has read what it staged in the round before.
  out.push_back(do_call("apl_warp_barrier", {}));
  for (std::size_t k = 0; k < given_.size(); ++k) {
    const std::int64_t width = std::min<std::int64_t>(
        kNeighboursAtOnce, kBytesOfAccess / byte_size(table_.type(op.map.body->results[k]).element));
    for (std::int64_t from = 0; from < kNeighboursAtOnce; from += width)
      out.push_back(do_call(fmt::format("apl_store<{}>", width),
                            {variable(stages_[k]), infix("+", infix("*", variable(thread_), each), number_of(from)),
                             infix("+", variable(given_[k]), number_of(from))}));
  }
  out.push_back(do_call("apl_warp_barrier", {}));
  const ExprPtr at = infix("+", first, infix("+", infix("*", variable(next), number_of(warp_size_)), lane));
  KernelBlock one{declare(kIndex, target, element(stages_.front(), at))};
  std::vector<ExprPtr> values;
  for (std::size_t k = op.rank; k < stages_.size(); ++k) values.push_back(element(stages_[k], at));
  team_.scatter_scalars(op, *scatter_, variable(target), values, one);
  out.push_back(unrolled(next, 0, kNeighboursAtOnce, std::move(one)));
}

// Last elements of rows are what all up to the last tile give.
void LookBack::write_ends(KernelBlock& out) {
  const SegOp& kernel = std::get<SegOp>(team_.stm_.op);
  std::map<std::size_t, std::size_t> ends;  // results, and the values that they are
  for (std::size_t k = 0; k < kernel.body->results.size(); ++k)
    if (const auto value = last_of_row(kernel, kernel.body->results[k])) ends[k] = *value;
  if (ends.empty()) return;
  // What their conditions are.
  bool is_behind = false;
  for (const Stm& stm : kernel.body->stms) {
    if (is_behind && !get_if<Scatter>(stm) && !get_if<If>(stm)) team_.statement(stm, out);
    is_behind = is_behind || &stm == &stm_;
  }
  const std::vector<std::string> whole = fresh_of_each("_whole");
  const std::int64_t warps = threads_ / warp_size_;
  const Each last_warp = [&](std::size_t k) { return call("apl_shuffle", {variable(all_[k]), number_of(warps - 1)}); };
  declare_each(
      whole, [&](std::size_t k) { return taken(k, last_warp); }, out);
  const Each of_tile = [&](std::size_t k) { return variable(whole[k]); };
  KernelBlock write;
  combine([&](std::size_t k) { return variable(before_[k]); }, of_tile, of_tile, write);
  const auto or_neutral = [&](std::size_t result, std::size_t value) {
    const Stm& made = *defining_stm(*kernel.body, kernel.body->results[result].value());
    return select(team_.values_.operand(std::get<If>(made.op).condition), of_tile(value), neutral(value));
  };
  for (const auto& [result, value] : ends)
    write.push_back(
        assign(team_.element_of(team_.stm_.pattern[result], {number_of(0)}, stm_.location), or_neutral(result, value)));
  const ExprPtr is_last = infix("==", variable(tile_), infix("-", variable(team_.team_.blocks), number_of(1)));
  out.push_back(kernel::branch(infix("&&", infix("==", variable(thread_), number_of(0)), is_last), std::move(write)));
}

// By the last block that has looked back, in its first warp: nobody looks at them any more.
void LookBack::clear_cells(KernelBlock& out) {
  const ExprPtr blocks = variable(team_.team_.blocks), one = number_of(1), zero = number_of(0);
  const std::string cell = team_.unit_.fresh("cell");
  const ExprPtr last = cast({ScalarType::u32, false}, infix("-", blocks, one));
  Stmt cells = for_loop(kInt, cell, infix("*", blocks, number_of(words_)),
                        {assign(element(cells_, variable(cell)), number_of(0))});
  cells.from = variable(lane_);
  cells.step = number_of(warp_size_);
  const ExprPtr is_last = infix("==", call("apl_shuffle", {variable(came_), zero}), last);
  const ExprPtr first_warp = infix("&&", infix(">", blocks, one), infix("==", variable(warp_), zero));
  out.push_back(kernel::branch(
      first_warp, {kernel::branch(is_last, {fence(), do_call("apl_warp_barrier", {}), std::move(cells)})}));
}

}  // namespace apl::lower
