// A histogram in two levels:
//
//   let {h} = hist(i < n, {}, \{} -> {b, x}, {xs} at 1, op, ne)
// =>
//   let {copies} = segmap(block) (g < blocks, p < rounds) {
//     let {sub} = shared(..)                                              bins p*S .. p*S + S of all
//     let {clear} = scatter(i < S, {}, \{} -> {i, ne}, {sub} at 1)
//     let {own} = hist(i < per, {}, \{} -> {b - p*S, x} of index g*per + i, {clear} at 1, op, ne)
//     return {returns own}
//   }
//   let {sums} = map(b < k) { reduce(g < blocks, {copies[.., b]}, op, ne) }       in chunks, as any other
//   let {h} = hist(b < k, {}, \{} -> {b, sums[b]}, {xs} at 1, op, ne)
//
// A scatter directly in a block is done by its threads together; threads fold into shared memory in atomic steps. Where
// there are few bins, a block has several copies of them (a power of two), which neighbouring threads take turns at:
// row r of copies[g] begins at r * (k | 1), so that equal bins lie in different banks. Where there are many, rounds:
// blocks that go through the same indices each have a part of the bins.
//
// It does not pay where there are few indices, or fewer than twice the bins, or more than kMostRounds rounds: then, by
// a branch of the host, one thread an index folds into the result, where so many bins keep threads out of each other's
// way. That is also why there are no copies in global memory.
//
// For a few threads, which have memory of their own: thread c folds the indices of chunk c into row c of the copies.
//
// Leading dims whose indices are those of the space (histograms in maps) are segments: each has copies of its own.
#include "passes/extract_kernels/histograms.h"

#include <algorithm>
#include <set>

#include "ir/walk.h"
#include "passes/analysis/cheap.h"

namespace apl {

namespace {

using Operands = std::vector<Operand>;

constexpr std::int64_t kBytesOfBlock = 32768;  // of shared memory, for a block's copies
constexpr std::int64_t kBlocks = 528;          // enough for all multiprocessors
constexpr std::int64_t kMostCopies = 32;       // as many as a warp has threads
constexpr std::int64_t kMostRounds = 4;
constexpr std::int64_t kFrom = 2048;  // indices of a segment; below, more kernels cost more than they save

// How a histogram falls apart.
class Histogram {
 public:
  Histogram(const Stm& kernel, ValueTable& values)
      : op(std::get<Scatter>(kernel.op)), names(), values_(values), kernel_(kernel) {
    while (is_segment(leading)) ++leading;
    const std::vector<Poly>& shape = values.type(op.targets.front()).shape;
    const auto rank = static_cast<std::ptrdiff_t>(op.rank), first = static_cast<std::ptrdiff_t>(leading);
    segments.assign(op.widths.begin(), op.widths.begin() + first);
    widths.assign(op.widths.begin() + first, op.widths.end());
    bins.assign(shape.begin() + first, shape.begin() + rank);
    for (const Value target : op.targets) names.push_back(values.name(target));
  }

  const Scatter& op;
  std::size_t leading = 0;                   // segment dims
  std::vector<Poly> segments, widths, bins;  // of all; of one segment
  std::vector<std::string> names;            // of the targets

  std::size_t count() const { return op.targets.size(); }
  ScalarType element(std::size_t k) const { return values_.type(op.targets[k]).element; }

  // The space of a kernel over the segments and more, and what stands in it for the segments' indices.
  std::vector<SegDim> space(Substitution& here) const {
    std::vector<SegDim> result;
    for (std::size_t d = 0; d < leading; ++d) {
      const Value index = fresh_index(values_.name(op.indices[d]));
      here.insert_or_assign(op.indices[d], Operand(index));
      result.push_back({index, segments[d]});
    }
    return result;
  }
  Value fresh_index(const std::string& name) const { return values_.add(Type::scalar(ScalarType::i64), name); }
  ReduceOp fresh_operator() const { return {copy_fresh(op.op->op, {}, values_, values_), op.op->neutral, true, false}; }

  // Index `flat` of a segment, if there is such a one: where among its bins, or -1, and the values.
  Operands row(const Value flat, const Substitution& segment, Builder& out,
               const std::function<Poly(const Poly&)>& place) const {
    const Operand total = *as_operand(out.size(product(widths), "total"));
    std::vector<std::string> results{"bin"};
    results.insert(results.end(), names.begin(), names.end());
    Operands nothing{i64_constant(-1)};
    nothing.insert(nothing.end(), op.op->neutral.begin(), op.op->neutral.end());
    const BodyPtr found = out.body([&](Builder& then) {
      Substitution here = segment;
      std::size_t d = leading;
      for (const Value index : split_index(widths, flat, then)) here.insert_or_assign(op.indices[d++], Operand(index));
      const BodyPtr body = copy_fresh(op.map.body, here, values_, values_);
      then.append_all(body->stms);
      Operands row{bin_of(body->results, then, place)};
      row.insert(row.end(), body->results.begin() + static_cast<std::ptrdiff_t>(op.rank), body->results.end());
      return row;
    });
    const Value inside = out.compare(CompareOp::lt, flat, total);
    const std::vector<Value> rows = out.let_many(results, If{inside, found, make_body({}, nothing)});
    return {rows.begin(), rows.end()};
  }

  // What blocks or chunks have is folded, and then into the targets. `copies`: an array a target, of a shape that ends
  // with what `parts` counts and one segment's bins, flat.
  Operands merged(const std::vector<Value>& copies, const std::vector<Poly>& parts,
                  const std::function<Chunks()>& chunks, Builder& host) const {
    Segments each{segments, {}, {}};
    for (std::size_t d = 0; d < leading; ++d) each.indices.push_back(fresh_index(values_.name(op.indices[d])));
    std::vector<DimIndex> at;
    for (const Value index : each.indices) at.push_back(DimIndex::fix(index));
    for (const Poly& part : parts) at.push_back(DimIndex::slice(0, part));
    each.widths.push_back(product(bins));
    each.indices.push_back(fresh_index("b"));
    at.push_back(DimIndex::fix(each.indices.back()));
    Screma fold{.widths = parts};
    for (std::size_t k = 0; k < parts.size(); ++k) fold.indices.push_back(fresh_index("c"));
    Stm sums;
    Operands rows;
    for (std::size_t k = 0; k < count(); ++k) {
      const Value own = values_.add(Type::array(element(k), parts), names[k]);
      each.prefix.push_back({.pattern = {own}, .op = Index{copies[k], at}});
      fold.inputs.push_back(own);
      fold.map.params.push_back(values_.add(Type::scalar(element(k)), names[k]));
      rows.emplace_back(fold.map.params.back());
      sums.pattern.push_back(values_.add(Type::array(element(k), each.widths), names[k]));
    }
    fold.map.body = make_body({}, rows);
    fold.reduces.push_back(fresh_operator());
    sums.op = std::move(fold);
    Chunks of_sums = chunks();
    of_sums.by_columns = true;  // neighbouring bins lie side by side
    host.append_all(make_chunked_reduction(sums, each, of_sums, values_));
    return into_targets(sums.pattern, host);
  }

  // The histogram as it is, for a body beside the other.
  BodyPtr as_it_is() const {
    Substitution none;
    return copy_fresh(make_body({kernel_}, {kernel_.pattern.begin(), kernel_.pattern.end()}), none, values_, values_);
  }

 private:
  bool is_segment(std::size_t d) const {
    if (d + 1 >= op.widths.size() || d + 1 >= op.rank) return false;
    return op.map.body->results[d] == Operand(op.indices[d]) &&
           values_.type(op.targets.front()).shape[d] == op.widths[d];
  }

  // Where `place` says that the row-major position of the bin lies; -1 if there is no such bin.
  Operand bin_of(const Operands& results, Builder& out, const std::function<Poly(const Poly&)>& place) const {
    std::optional<Value> inside;
    Poly flat;
    const auto both = [&](Value test) { inside = inside ? out.binary(BinaryOp::conj, *inside, test, "inside") : test; };
    for (std::size_t d = leading; d < op.rank; ++d) {
      const Operand& i = results[d];
      both(out.compare(CompareOp::le, i64_constant(0), i));
      both(out.compare(CompareOp::lt, i, *as_operand(out.size(bins[d - leading], "bound"))));
      flat = flat * bins[d - leading] + as_poly(i);
    }
    const BodyPtr found = out.body([&](Builder& then) { return Operands{then.size(place(flat), "bin")}; });
    return out.let("bin", If{*inside, found, make_body({}, {i64_constant(-1)})});
  }

  Operands into_targets(const std::vector<Value>& sums, Builder& host) const {
    Scatter last{.widths = segments, .indices = {}, .inputs = {}, .map = {}, .rank = op.rank, .targets = op.targets};
    last.widths.insert(last.widths.end(), bins.begin(), bins.end());
    Operands results;
    std::vector<Poly> at;
    Poly flat;
    for (std::size_t d = 0; d < op.rank; ++d) {
      last.indices.push_back(fresh_index(d < leading ? values_.name(op.indices[d]) : "b"));
      results.emplace_back(last.indices.back());
      if (d < leading) at.emplace_back(last.indices.back());
      if (d >= leading) flat = flat * bins[d - leading] + Poly(last.indices.back());
    }
    last.map.body = host.body([&](Builder& thread) {
      std::vector<Poly> place = at;
      place.emplace_back(thread.size(flat, "bin"));
      for (std::size_t k = 0; k < count(); ++k) results.emplace_back(thread.index(sums[k], place, names[k]));
      return results;
    });
    last.op = fresh_operator();
    const std::vector<Value> made = host.let_many(names, std::move(last));
    return {made.begin(), made.end()};
  }

  ValueTable& values_;
  const Stm& kernel_;
};

// No array of its own: whatever is an array is a view.
bool makes_arrays(const Body& body, const ValueTable& values) {
  bool found = false;
  for_each_stm(body, [&](const Stm& stm) {
    const bool view = get_if<Index>(stm) || get_if<Rearrange>(stm) || get_if<Reshape>(stm) || get_if<Use>(stm);
    const bool array = std::ranges::any_of(stm.pattern, [&](Value v) { return values.type(v).is_array(); });
    found = found || (array && !view);
  });
  return found;
}

// A number of the host that is known when the kernel starts.
Poly number(const std::string& name, SizeClass kind, std::int64_t usual, const std::string& hint, Builder& host) {
  return host.let(hint, GetSize{name, kind, usual});
}

std::vector<Stm> either(const Stm& kernel, const Histogram& histogram, Value apart, const BodyPtr& then,
                        Builder& host) {
  const std::vector<Value> results = host.let_many(histogram.names, If{apart, then, histogram.as_it_is()});
  return bound_to(kernel, results, host);
}

// What a block has and does. Everything is counted in elements.
struct Blocks {
  Poly shared;  // of a shared array
  Poly row;     // from one copy of a segment's bins to the next
  Poly rounds, copies, used, blocks, per;
};

std::vector<Value> fold_in_blocks(const Histogram& histogram, const Blocks& n, Value turn, Builder& host) {
  SegOp kernel{.level = SegLevel::block, .space = {}, .body = {}, .results = {}};
  Substitution here;
  kernel.space = histogram.space(here);
  const Value g = histogram.fresh_index("g"), p = histogram.fresh_index("p");
  kernel.space.push_back({g, n.blocks});
  kernel.space.push_back({p, n.rounds});
  kernel.body = host.body([&](Builder& block) {
    Scatter clear{.widths = {n.used}, .indices = {histogram.fresh_index("i")}};
    for (std::size_t k = 0; k < histogram.count(); ++k)
      clear.targets.push_back(
          block.let(histogram.names[k], SharedArray{histogram.element(k), Lmad::row_major({n.shared})}));
    Operands neutral{clear.indices.front()};
    neutral.insert(neutral.end(), histogram.op.op->neutral.begin(), histogram.op.op->neutral.end());
    clear.map.body = make_body({}, std::move(neutral));
    const Value i = histogram.fresh_index("i");
    Scatter fold{.widths = {n.per}, .indices = {i}};
    fold.targets = block.let_many(histogram.names, std::move(clear));
    fold.map.body = block.body([&](Builder& thread) {
      const Value flat = thread.size(n.per * Poly(g) + Poly(i), "at");
      const Value copy = thread.binary(BinaryOp::conj, i, turn, "copy");
      return histogram.row(flat, here, thread,
                           [&](const Poly& bin) { return Poly(copy) * n.row + bin - Poly(p) * n.used; });
    });
    fold.op = histogram.fresh_operator();
    Operands rows;
    for (const Value own : block.let_many(histogram.names, std::move(fold)))
      rows.emplace_back(block.let(block.values().name(own), Index{own, {DimIndex::slice(0, n.used)}}));
    return rows;
  });
  kernel.results.assign(histogram.count(), {.kind = KernelResult::Kind::returns, .extents = {}});
  return host.let_many(histogram.names, std::move(kernel));
}

// What the blocks have of a segment, over all rounds: rows of bins. A bin of copy r stands at r * row + bin.
std::vector<Value> rows_of_blocks(const Histogram& histogram, const Blocks& n, const std::vector<Value>& made,
                                  Builder& host) {
  std::vector<Value> result;
  std::vector<Poly> shape = histogram.segments;
  shape.push_back(n.blocks);
  std::vector<DimIndex> first, bins;
  for (const Poly& size : shape) first.push_back(DimIndex::slice(0, size));
  bins = first;
  for (std::size_t k = 0; k < made.size(); ++k) {
    std::vector<Poly> flat = shape, rows = shape;
    flat.push_back(n.rounds * n.used);
    rows.insert(rows.end(), {n.copies, n.row});
    const std::string& name = histogram.names[k];
    const Value whole = host.let(name, Reshape{made[k], flat});
    std::vector<DimIndex> copies = first;
    copies.push_back(DimIndex::slice(0, n.copies * n.row));
    const Value apart = host.let(name, Reshape{host.let(name, Index{whole, copies}), rows});
    std::vector<DimIndex> wanted = bins;
    wanted.push_back(DimIndex::slice(0, n.copies));
    wanted.push_back(DimIndex::slice(0, product(histogram.bins)));
    result.push_back(host.let(name, Index{apart, wanted}));
  }
  return result;
}

}  // namespace

std::optional<OneLevel> why_one_level(const Stm& kernel, const ValueTable& values) {
  const Scatter& op = std::get<Scatter>(kernel.op);
  const auto own = [&](std::size_t d) { return op.map.body->results[d] == Operand(op.indices[d]); };
  bool all = op.widths.size() <= op.rank;
  for (std::size_t d = 0; all && d < op.widths.size(); ++d) all = own(d);
  if (all) return OneLevel{"own-element", "each index has an element of its own"};
  for (const Value target : op.targets)
    if (values.type(target).element == ScalarType::unit) return OneLevel{"own-element", "there is nothing to fold"};
  return std::nullopt;
}

std::vector<Stm> make_block_histogram(const Stm& kernel, const std::string& prefix,
                                      const std::function<Chunks()>& chunks, ValueTable& values) {
  const Histogram histogram(kernel, values);
  Builder host(values);
  host.set_location(kernel.location);
  std::int64_t bytes = 0;
  for (std::size_t k = 0; k < histogram.count(); ++k)
    bytes += static_cast<std::int64_t>(byte_size(histogram.element(k)));
  Blocks n;
  n.shared = number(prefix + ".bins", SizeClass::tile_size, kBytesOfBlock / bytes, "bins", host);
  const Poly most = number(prefix + ".blocks", SizeClass::grid_size, kBlocks, "blocks", host);
  const Poly from = number(prefix + ".from", SizeClass::threshold, kFrom, "from", host);
  const Poly bins = product(histogram.bins), indices = product(histogram.widths);
  n.row = host.binary(BinaryOp::disj, *as_operand(host.size(bins, "bins")), i64_constant(1), "row");
  n.rounds = host.size(ceil_div(n.row, n.shared), "rounds");
  // Each round computes the rows again.
  const std::int64_t rounds = is_cheap(*histogram.op.map.body, values) ? kMostRounds : 1;
  const Value fits = host.compare(CompareOp::le, *as_operand(n.rounds), i64_constant(rounds), "fits");
  const Value least = host.size(poly_max(from, 2 * bins), "least");
  const Value enough = host.compare(CompareOp::le, least, host.size(indices, "indices"), "enough");
  const Value pays = host.binary(BinaryOp::conj, fits, enough, "pays");
  const BodyPtr in_blocks = host.body([&](Builder& then) {
    const Poly room = poly_min(floor_div(n.shared, n.row), floor_div(indices, 4 * n.row));
    const Value copies = then.size(poly_max(1, poly_min(kMostCopies, room)), "copies");
    const Value digits = then.binary(BinaryOp::sub, i64_constant(63), then.unary(UnaryOp::clz, copies), "digits");
    n.copies = then.binary(BinaryOp::shl, i64_constant(1), digits, "copies");
    const Value turn = then.size(n.copies - 1, "turn");
    n.used = then.size(poly_min(n.shared, n.copies * n.row), "used");
    const Poly kernels = poly_max(1, product(histogram.segments) * n.rounds);
    n.blocks = then.size(poly_max(1, poly_min(floor_div(most, kernels), floor_div(indices, n.used))), "blocks");
    n.per = then.size(ceil_div(indices, n.blocks), "per_block");
    const std::vector<Value> made = fold_in_blocks(histogram, n, turn, then);
    return histogram.merged(rows_of_blocks(histogram, n, made, then), {n.blocks, n.copies}, chunks, then);
  });
  return either(kernel, histogram, pays, in_blocks, host);
}

std::vector<Stm> make_chunked_histogram(const Stm& kernel, const std::string& prefix,
                                        const std::function<Chunks()>& chunks, ValueTable& values) {
  const Histogram histogram(kernel, values);
  Builder host(values);
  host.set_location(kernel.location);
  const Chunks own = chunks();
  const Poly most = number(own.parameter, SizeClass::grid_size, own.most, "chunks", host);
  const Poly from = number(prefix + ".from", SizeClass::threshold, kFrom, "from", host);
  const Poly bins = host.size(product(histogram.bins), "bins");
  const Poly indices = product(histogram.widths);
  const Poly each = floor_div(most, poly_max(1, product(histogram.segments)));
  const Poly count = host.size(poly_max(1, poly_min(each, floor_div(indices, poly_max(from, 4 * bins)))), "chunks");
  const Value several = host.compare(CompareOp::lt, i64_constant(1), *as_operand(count), "several");
  const BodyPtr in_chunks = host.body([&](Builder& then) {
    const Poly per = then.size(ceil_div(indices, count), "per_chunk");
    SegOp threads{.level = SegLevel::thread, .space = {}, .body = {}, .results = {}};
    Substitution here;
    threads.space = histogram.space(here);
    const Value c = histogram.fresh_index("c");
    threads.space.push_back({c, count});
    threads.body = then.body([&](Builder& thread) {
      const Value i = histogram.fresh_index("i");
      Scatter fold{.widths = {per}, .indices = {i}};
      for (std::size_t k = 0; k < histogram.count(); ++k)
        fold.targets.push_back(thread.let(histogram.names[k], Replicate{{bins}, histogram.op.op->neutral[k]}));
      fold.map.body = thread.body([&](Builder& step) {
        const Value flat = step.size(per * Poly(c) + Poly(i), "at");
        return histogram.row(flat, here, step, [](const Poly& bin) { return bin; });
      });
      fold.op = histogram.fresh_operator();
      const std::vector<Value> rows = thread.let_many(histogram.names, std::move(fold));
      return Operands(rows.begin(), rows.end());
    });
    threads.results.assign(histogram.count(), {.kind = KernelResult::Kind::returns, .extents = {}});
    return histogram.merged(then.let_many(histogram.names, std::move(threads)), {count}, chunks, then);
  });
  return either(kernel, histogram, several, in_chunks, host);
}

std::optional<std::pair<Stm, Stm>> map_before_scatter(const Stm& stm, ValueTable& values) {
  const Scatter& op = std::get<Scatter>(stm.op);
  if (!can_fail(*op.map.body, values) && !makes_arrays(*op.map.body, values)) return std::nullopt;
  Stm before = stm, after = stm;
  before.pattern.clear();
  Screma map{.widths = op.widths, .indices = op.indices, .inputs = op.inputs, .map = op.map};
  Scatter scatter = op;
  scatter.inputs.clear();
  scatter.map.params.clear();
  Operands given, taken;
  for (Value& index : scatter.indices) index = values.add(values.type(index), values.name(index));
  for (const Operand& result : op.map.body->results) {
    const auto own = std::ranges::find_if(op.indices, [&](Value index) { return result == Operand(index); });
    if (own != op.indices.end()) {
      taken.emplace_back(scatter.indices[static_cast<std::size_t>(own - op.indices.begin())]);
      continue;
    }
    if (result.is_constant()) {
      taken.push_back(result);
      continue;
    }
    const Type type = values.type(result);
    const std::string name = values.name(result.value());
    given.push_back(result);
    before.pattern.push_back(values.add(type.array_of(op.widths), name));
    scatter.inputs.push_back(before.pattern.back());
    scatter.map.params.push_back(values.add(type, name));
    taken.emplace_back(scatter.map.params.back());
  }
  map.map.body = make_body(op.map.body->stms, std::move(given));
  scatter.map.body = make_body({}, std::move(taken));
  before.op = std::move(map);
  after.op = std::move(scatter);
  return std::pair{std::move(before), std::move(after)};
}

}  // namespace apl
