// A histogram in two levels, the first of which is in shared memory:
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
// It does not pay where there are few indices, or fewer than twice the bins, or more than kMostRoundsOfBins rounds:
// then, by a branch of the host, one thread an index folds into the result, where so many bins keep threads out of each
// other's way. That is also why there are no copies in global memory.
//
// Leading dims whose indices are those of the space (histograms in maps) are segments: each has copies of its own.
#include <algorithm>

#include "ir/walk.h"
#include "passes/extract_kernels/histogram_parts.h"

namespace apl {

namespace {

using Operands = std::vector<Operand>;

constexpr std::int64_t kBytesOfBlock = 32768;  // of shared memory, for a block's copies
constexpr std::int64_t kBlocks = 528;          // enough for all multiprocessors
// Indices of all segments from which on it pays: on an H100 it takes 18 us for 20,000 indices into 256 bins and atomic
// steps on the bins 9 (bench/thresholds_gpu.py); these take a quarter of a nanosecond an index more.
constexpr std::int64_t kBlocksFrom = 32768;
constexpr std::int64_t kMostCopies = 32;  // as many as a warp has threads
constexpr std::int64_t kMostRoundsOfBins = 4;
constexpr std::size_t kLightStms = 16;  // of a lambda that each round may run again

// Whether to compute the rows again costs about what reading them costs.
bool is_light(const Body& body) {
  bool nested = false;
  for (const Stm& stm : body.stms) for_each_body(stm.op, [&](const BodyPtr&) { nested = true; });
  return !nested && body.stms.size() <= kLightStms;
}

// A number of the host that is known when the kernel starts.
Poly histogram_number(const std::string& name, SizeClass kind, std::int64_t usual, const std::string& hint,
                      Builder& host) {
  return host.let(hint, GetSize{name, kind, usual});
}

// What a block has and does. Everything is counted in elements.
struct HistogramBlocks {
  Poly shared;  // of a shared array
  Poly row;     // from one copy of a segment's bins to the next
  Poly rounds, copies, used, blocks, per;
};

std::vector<Value> fold_in_blocks(const HistogramParts& histogram, const HistogramBlocks& n, Value copy_mask,
                                  Builder& host) {
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
    Scatter fold{.widths = {block.size(histogram.indices_of(g, n.per), "own")}, .indices = {i}};
    fold.targets = block.let_many(histogram.names, std::move(clear));
    fold.map.body = block.body([&](Builder& thread) {
      const Value flat = thread.size(n.per * Poly(g) + Poly(i), "at");
      const Value copy = thread.binary(BinaryOp::conj, i, copy_mask, "copy");
      return histogram.placed_row(flat, here, thread,
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
std::vector<Value> rows_of_blocks(const HistogramParts& histogram, const HistogramBlocks& n,
                                  const std::vector<Value>& made, Builder& host) {
  std::vector<Value> result;
  std::vector<Poly> shape = histogram.segments;
  shape.push_back(n.blocks);
  std::vector<DimIndex> all;
  for (const Poly& size : shape) all.push_back(DimIndex::slice(0, size));
  for (std::size_t k = 0; k < made.size(); ++k) {
    std::vector<Poly> flat = shape, rows = shape;
    flat.push_back(n.rounds * n.used);
    rows.insert(rows.end(), {n.copies, n.row});
    const std::string& name = histogram.names[k];
    const Value whole = host.let(name, Reshape{made[k], flat});
    std::vector<DimIndex> copies = all;
    copies.push_back(DimIndex::slice(0, n.copies * n.row));
    const Value apart = host.let(name, Reshape{host.let(name, Index{whole, copies}), rows});
    std::vector<DimIndex> wanted = all;
    wanted.push_back(DimIndex::slice(0, n.copies));
    wanted.push_back(DimIndex::slice(0, product(histogram.bins)));
    result.push_back(host.let(name, Index{apart, wanted}));
  }
  return result;
}

}  // namespace

std::vector<Stm> make_block_histogram(const Stm& kernel, const std::string& prefix,
                                      const std::function<Chunks()>& chunks, ValueTable& values) {
  const HistogramParts histogram(kernel, values);
  Builder host(values);
  host.set_location(kernel.location);
  std::int64_t bytes = 0;
  for (std::size_t k = 0; k < histogram.count(); ++k)
    bytes += static_cast<std::int64_t>(byte_size(histogram.element(k)));
  HistogramBlocks n;
  n.shared = histogram_number(prefix + ".bins", SizeClass::tile_size, kBytesOfBlock / bytes, "bins", host);
  const Poly most = histogram_number(prefix + ".blocks", SizeClass::grid_size, kBlocks, "blocks", host);
  const Poly from = histogram_number(prefix + ".from", SizeClass::threshold, kBlocksFrom, "from", host);
  const Poly bins = product(histogram.bins), indices = product(histogram.widths);
  n.row = host.binary(BinaryOp::disj, *as_operand(host.size(bins, "bins")), i64_constant(1), "row");
  n.rounds = host.size(ceil_div(n.row, n.shared), "rounds");
  const std::int64_t rounds = is_light(*histogram.op.map.body) ? kMostRoundsOfBins : 1;
  const Value fits = host.compare(CompareOp::le, *as_operand(n.rounds), i64_constant(rounds), "fits");
  const Value least = host.size(poly_max(poly_min(from, kHistogramFrom), 2 * bins), "least");
  const Value enough = host.compare(CompareOp::le, least, host.size(indices, "indices"), "enough");
  const Value many =
      host.compare(CompareOp::le, *as_operand(from), host.size(product(histogram.segments) * indices, "all"), "many");
  const Value both = host.binary(BinaryOp::conj, enough, many, "both");
  const Value pays = host.binary(BinaryOp::conj, fits, both, "pays");
  const BodyPtr in_blocks = host.body([&](Builder& then) {
    const Poly room = poly_min(floor_div(n.shared, n.row), floor_div(indices, 4 * n.row));
    const Value copies = then.size(poly_max(1, poly_min(kMostCopies, room)), "copies");
    const Value digits = then.binary(BinaryOp::sub, i64_constant(63), then.unary(UnaryOp::clz, copies), "digits");
    n.copies = then.binary(BinaryOp::shl, i64_constant(1), digits, "copies");
    const Value copy_mask = then.size(n.copies - 1, "copy_mask");
    n.used = then.size(poly_min(n.shared, n.copies * n.row), "used");
    const Poly kernels = poly_max(1, product(histogram.segments) * n.rounds);
    n.blocks = then.size(poly_max(1, poly_min(floor_div(most, kernels), floor_div(indices, n.used))), "blocks");
    n.per = then.size(ceil_div(indices, n.blocks), "per_block");
    const std::vector<Value> made = fold_in_blocks(histogram, n, copy_mask, then);
    return histogram.merged(rows_of_blocks(histogram, n, made, then), {n.blocks, n.copies}, chunks, then);
  });
  return histogram.either(prefix, "blocks", pays, in_blocks, host);
}

}  // namespace apl
