// Which histograms are done in two levels, and how a few threads do it, which have memory of their own: thread c folds
// the indices of chunk c into row c of copies of the bins.
//
//   let {h} = hist(i < n, {}, \{} -> {b, x}, {xs} at 1, op, ne)
// =>
//   let {copies} = segmap(thread) (c < chunks) {
//     let {zero} = replicate([k], ne)
//     let {own} = hist(i < per, {}, \{} -> {b, x} of index c*per + i, {zero} at 1, op, ne)
//     return {returns own}
//   }
//   ... and as for blocks (block_histogram.cpp): copies are folded, and then into xs
#include "passes/extract_kernels/histograms.h"

#include <algorithm>

#include "ir/walk.h"
#include "passes/extract_kernels/histogram_parts.h"

namespace apl {

namespace {

// Indices of a chunk, for each bin, from which on it pays that its thread has bins of its own: to set one and to fold
// it in the end takes about as long as to fold an element into it.
constexpr std::int64_t kIndicesOfBin = 2;

// No array of its own: whatever is an array is a view.
bool lambda_makes_arrays(const Body& body, const ValueTable& values) {
  bool found = false;
  for_each_stm(body, [&](const Stm& stm) {
    const bool view = get_if<Index>(stm) || get_if<Rearrange>(stm) || get_if<Reshape>(stm) || get_if<Use>(stm);
    const bool array = std::ranges::any_of(stm.pattern, [&](Value v) { return values.type(v).is_array(); });
    found = found || (array && !view);
  });
  return found;
}

}  // namespace

std::optional<std::string> why_one_level(const Stm& kernel, const ValueTable& values) {
  const Scatter& op = std::get<Scatter>(kernel.op);
  const auto own = [&](std::size_t d) { return op.map.body->results[d] == Operand(op.indices[d]); };
  bool all = op.widths.size() <= op.rank;
  for (std::size_t d = 0; all && d < op.widths.size(); ++d) all = own(d);
  if (all) return "each index has an element of its own";
  for (const Value target : op.targets)
    if (values.type(target).element == ScalarType::unit) return "there is nothing to fold";
  return std::nullopt;
}

std::vector<Stm> make_chunked_histogram(const Stm& kernel, const std::string& prefix,
                                        const std::function<Chunks()>& chunks, ValueTable& values) {
  const HistogramParts histogram(kernel, values);
  Builder host(values);
  host.set_location(kernel.location);
  const Chunks own = chunks();
  const Poly most = host.let("chunks", GetSize{own.parameter, SizeClass::thread_count, own.most});
  const Poly from = host.let("from", GetSize{prefix + ".from", SizeClass::threshold, kHistogramFrom});
  const Poly bins = host.size(product(histogram.bins), "bins");
  const Poly indices = product(histogram.widths);
  const Poly each = floor_div(most, poly_max(1, product(histogram.segments)));
  const Poly count =
      host.size(poly_max(1, poly_min(each, floor_div(indices, poly_max(from, kIndicesOfBin * bins)))), "chunks");
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
      Scatter fold{.widths = {thread.size(histogram.indices_of(c, per), "own")}, .indices = {i}};
      fold.rank = histogram.bins.size();
      for (std::size_t k = 0; k < histogram.count(); ++k)
        fold.targets.push_back(thread.let(histogram.names[k], Replicate{histogram.bins, histogram.op.op->neutral[k]}));
      fold.map.body = thread.body([&](Builder& step) {
        const Value flat = step.size(per * Poly(c) + Poly(i), "at");
        return histogram.row(flat, here, step);
      });
      fold.op = histogram.fresh_operator();
      const std::vector<Value> rows = thread.let_many(histogram.names, std::move(fold));
      return HistogramParts::Operands(rows.begin(), rows.end());
    });
    threads.results.assign(histogram.count(), {.kind = KernelResult::Kind::returns, .extents = {}});
    std::vector<Poly> flat = histogram.segments;
    flat.insert(flat.end(), {count, bins});
    std::vector<Value> copies = then.let_many(histogram.names, std::move(threads));
    if (histogram.bins.size() > 1)
      for (Value& v : copies) v = then.let(values.name(v), Reshape{v, flat});
    return histogram.merged(copies, {count}, chunks, then);
  });
  return histogram.either(prefix, "chunks", several, in_chunks, host);
}

std::optional<std::pair<Stm, Stm>> map_before_scatter(const Stm& stm, ValueTable& values) {
  const Scatter& op = std::get<Scatter>(stm.op);
  if (!can_fail(*op.map.body, values) && !lambda_makes_arrays(*op.map.body, values)) return std::nullopt;
  Stm before = stm, after = stm;
  before.pattern.clear();
  Screma map{.widths = op.widths, .indices = op.indices, .inputs = op.inputs, .map = op.map};
  Scatter scatter = op;
  scatter.inputs.clear();
  scatter.map.params.clear();
  std::vector<Operand> given, taken;
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
