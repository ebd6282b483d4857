// A reduction on a GPU is one kernel: a team of threads (ir/team.h), or several blocks of them, fold it:
//
//   let {r} = redomap(i < n, {xs}, f, op, ne)
// =>
//   let {rs} = segmap(thread) (c < 1) team(T) blocks(B) { redomap(i < n, {xs}, f, op, ne) }
//   let {r} = rs[0]
//
// Of several dims it is the same of all its elements in one, and where a thread has a segment for itself another kernel
// with nested loops, which divide nothing: which one is launched is decided by the sizes. Teams and blocks are numbers
// of the host, computed from the sizes (team_of, blocks_of).
//
// By columns, where the elements of neighbouring segments lie side by side, threads fold a chunk each, and a second
// kernel folds what those gave. For a CPU, and where a team cannot share it, threads fold a chunk each, fewer threads
// fold what those gave, and one thread folds the rest (chunks.h).
#include "passes/extract_kernels/reductions.h"

#include <algorithm>

#include "ir/team.h"
#include "ir/walk.h"
#include "passes/extract_kernels/chunks.h"

namespace apl {

namespace {

using Operands = std::vector<Operand>;

// Threads that keep a GPU busy, over all segments; partial results from which on a thread is worth having.
constexpr std::int64_t kThreadsOfReduction = std::int64_t{1} << 18, kPartsOfThread = 2;
// A team folds the partial results of a column, which lie apart.
constexpr std::int64_t kMostPartsOfColumn = 8192;

// How many blocks share a reduction in each segment: as many as there are threads left, each of which has its elements.
Poly blocks_of(const Poly& elements, const Poly& segments, const Poly& threads, const std::string& parameter,
               Builder& host) {
  const Poly least = host.let("blocks", GetSize{parameter, SizeClass::grid_size, 1});
  const Poly wanted = poly_min(floor_div(threads, poly_max(1, segments) * kMostTeam),
                               floor_div(elements, kElementsOfThread * kMostTeam));
  return host.size(poly_max(1, poly_max(wanted, poly_min(least, elements))), "blocks");
}

// A reduction in each segment, by a team or by several blocks.
std::vector<Value> fold_in_blocks(const ChunkedWork& work, const Chunks& chunks, const std::vector<std::string>& names,
                                  Builder& host) {
  const Poly segments = product(work.segments.widths), elements = product(work.screma.widths);
  const Poly threads = host.let("threads", GetSize{chunks.parameter, SizeClass::grid_size, kThreadsOfReduction});
  const Poly most = host.let("team", GetSize{chunks.team, SizeClass::thread_block_size, kMostTeam});
  const bool windows = reads_windows(work.screma, work.segments.indices);
  const Poly team = team_of(elements, segments, threads, kElementsOfThread, most, host, windows);
  const Poly blocks = blocks_of(elements, segments, threads, chunks.blocks, host);
  const auto shared = [&](Builder& at) {
    Operands all;
    for (const Value each : in_blocks(work, team, blocks, names, at))
      all.emplace_back(work.segments.widths.empty()
                           ? at.let(at.values().name(each), Index{each, {DimIndex::fix(0)}})
                           : at.let(at.values().name(each), Reshape{each, work.segments.widths}));
    return all;
  };
  const bool has_dims = work.screma.widths.size() > 1 && !work.segments.widths.empty();
  if (has_dims)
    return if_one(
        host.size(team * blocks, "shares"), "alone", names, host,
        [&](Builder& at) { return to_operands(in_one_thread(work, names, at)); }, shared);
  std::vector<Value> results;
  for (const Operand& each : shared(host)) results.push_back(each.value());
  return results;
}

// A reduction of columns: a thread for each of several chunks, and a second kernel that folds what those give.
std::vector<Value> fold_by_columns(const ChunkedWork& work, const Chunks& chunks, const std::vector<std::string>& names,
                                   Builder& host) {
  const Poly segments = product(work.segments.widths), elements = product(work.screma.widths);
  const Poly threads = host.let("threads", GetSize{chunks.parameter, SizeClass::grid_size, kThreadsOfReduction});
  const Poly most = host.let("team", GetSize{chunks.team, SizeClass::thread_block_size, kMostTeam});
  const Poly wanted = poly_min(floor_div(threads, poly_max(1, segments)), floor_div(elements, kElementsOfThread));
  const Poly many = host.size(poly_max(1, poly_min(kMostPartsOfColumn, wanted)), "chunks");
  const std::vector<Poly>& widths = work.segments.widths;
  // One chunk in each segment, folded by threads that lie as its elements do.
  const auto fold_whole = [&](const ChunkedWork& whole, const std::optional<Poly>& threads_each, Builder& at) {
    std::vector<DimIndex> first;
    for (const Poly& width : widths) first.push_back(DimIndex::slice(0, width));
    first.push_back(DimIndex::fix(0));
    Operands all;
    for (const Value part : fold_chunks(whole, 1, names, at, threads_each))
      all.emplace_back(whole.by_columns ? at.let(at.values().name(part), Index{part, first})
                                        : at.let(at.values().name(part), Reshape{part, widths}));
    return all;
  };
  const auto fold_parts = [&](Builder& at) {
    ChunkedWork parts = over_parts(work, fold_chunks(work, many, names, at), many, at.values());
    parts.by_columns = false;
    return fold_whole(parts, team_of(many, segments, threads, kPartsOfThread, most, at), at);
  };
  return if_one_chunk(
      many, names, host, [&](Builder& at) { return fold_whole(work, {}, at); }, fold_parts);
}

}  // namespace

bool reads_windows(const Screma& reduction, const std::vector<Value>& indices) {
  const auto coefficient = [](const Poly& p, const std::vector<Value>& along) {
    std::optional<Poly> found;
    for (const Value index : along)
      if (const auto linear = p.linear_in(index); linear && !linear->coefficient.is_zero()) found = linear->coefficient;
    return found;
  };
  return std::ranges::any_of(reduction.map.body->stms, [&](const Stm& stm) {
    const Index* read = get_if<Index>(stm);
    return read != nullptr && std::ranges::any_of(read->dims, [&](const DimIndex& dim) {
             const std::optional<Poly> along = coefficient(dim.start, reduction.indices);
             return along && along == coefficient(dim.start, indices);
           });
  });
}

bool reduces_scalars(const Screma& screma, const ValueTable& values) {
  return !screma.reduces.empty() && screma.map.body->results.size() == screma.reduced_count() &&
         std::ranges::none_of(screma.reduces, &ReduceOp::scan) &&
         std::ranges::all_of(screma.map.body->results, [&](const Operand& x) { return values.type(x).is_scalar(); });
}

std::vector<Stm> make_chunked_reduction(const Stm& stm, const Segments& segments, const Chunks& chunks,
                                        ValueTable& values) {
  const ChunkedWork work{segments, std::get<Screma>(stm.op), chunks.interleaved, chunks.by_columns};
  const std::vector<std::string> names = names_of(stm.pattern, values);
  Builder host(values);
  host.set_location(stm.location);
  if (!chunks.team.empty() && can_share(work, values))
    return bound_to(
        stm, work.by_columns ? fold_by_columns(work, chunks, names, host) : fold_in_blocks(work, chunks, names, host),
        host);
  const Poly many = many_chunks(work, chunks, host);
  const std::vector<Value> parts = fold_chunks(work, many, names, host);
  const auto fold_rest = [&](Builder& at) {
    if (!chunks.least.empty()) return in_one_thread(over_parts(work, parts, many, values), names, at);
    const FewerChunks fewer = fold_parts(work, many, parts, names, at);
    return in_one_thread(over_parts(fewer.of_parts, fewer.parts, fewer.count, values), names, at);
  };
  std::vector<Value> results;
  if (segments.widths.empty()) {
    results = fold_rest(host);
  } else {
    std::vector<DimIndex> only;
    for (const Poly& width : segments.widths) only.push_back(DimIndex::slice(0, width));
    only.push_back(DimIndex::fix(0));
    const auto one_each = [&](Builder& at) {
      Operands all;
      for (const Value part : parts)
        all.emplace_back(work.by_columns ? at.let(values.name(part), Index{part, only})
                                         : at.let(values.name(part), Reshape{part, segments.widths}));
      return all;
    };
    if (many == Poly(1)) {
      for (const Operand& each : one_each(host)) results.push_back(each.value());
    } else {
      results = if_one_chunk(many, names, host, one_each, [&](Builder& at) { return to_operands(fold_rest(at)); });
    }
  }
  return bound_to(stm, results, host);
}

}  // namespace apl
