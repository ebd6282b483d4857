// A scan at the top is one kernel on a GPU, if blocks can publish what its operators give, each of which scans
// a tile (codegen/lower/look_back.cpp):
//
//   let {r} = scanomap(i < n, {xs}, f, op, ne)
// =>
//   let {rs} = segmap(thread) (c < 1) team(256) blocks(B) { scanomap(i < n, {xs}, f, op, ne) }
//   let {r} = rs[0]
//
// Others are done in chunks (chunks.h). On GPUs teams fold the chunks, one team scans the partial results, and teams
// scan a chunk each, starting with what the chunks before them gave. For a CPU, and where a team cannot share it,
// threads do, and partial results are scanned in the same manner:
//
//   let {parts} = each chunk, folded
//   let {ends} = the scan of parts
//   let {rows} = segmap(thread) (c < chunks) { scan(k < per, {}, \{} -> f(xs[c * per + k]), op,
//                                                   c == 0 ? ne : ends[c-1]) }
//   let {r} = the first n of rows, flattened
#include "passes/extract_kernels/scans.h"

#include <range/v3/view/zip.hpp>

#include <algorithm>

#include "ir/team.h"
#include "ir/walk.h"
#include "passes/extract_kernels/chunks.h"

namespace apl {

namespace {

using Operands = std::vector<Operand>;

// Threads that keep a GPU busy, over all segments; elements from which on a thread is worth having.
constexpr std::int64_t kThreadsOfScan = std::int64_t{1} << 17, kElementsOfScan = 32;
// Blocks that a scan at the top has before tiles grow.
constexpr std::int64_t kBlocksOfScan = 256;

// `work`, a scan, in one kernel: chunk c starts with row c-1 of `ends`, what the chunks up to there gave. The results
// are arrays of the segments' and the widths' shape; rows that the scan maps are made, too.
std::vector<Value> scan_chunks(const ChunkedWork& work, const Poly& chunks, const std::vector<Value>& ends,
                               const std::vector<std::string>& names, Builder& host,
                               const std::optional<Poly>& team = {}, bool exact = false) {
  ValueTable& values = host.values();
  const Screma& screma = work.screma;
  const Segments& segments = work.segments;
  const Poly total = product(screma.widths);
  const Poly per = elements_of_chunk(work, chunks, host);
  const Value c = values.add(Type::scalar(ScalarType::i64), "c");
  const Value k = values.add(Type::scalar(ScalarType::i64), "k");
  const auto thread_body = [&](Builder& thread, const Substitution& here) {
    const Operands neutral = neutral_elements(screma, here);
    const Value is_first = thread.compare(CompareOp::eq, Operand(c), i64_constant(0));
    const BodyPtr before = thread.body([&](Builder& other) {
      std::vector<Poly> at;
      for (const Value index : segments.indices) at.emplace_back(substitute(index, here));
      at.push_back(Poly(c) - 1);
      Operands rows;
      for (const auto& [end, name] : ranges::views::zip(ends, names)) rows.emplace_back(other.index(end, at, name));
      return rows;
    });
    Operands starts = neutral;
    if (!ends.empty()) starts = to_operands(thread.let_many(names, If{is_first, make_body({}, neutral), before}));
    // What lies beyond the last element is dropped: it is scanned, too, or there is room for it.
    const Poly own = exact ? Poly(thread.size(poly_max(0, poly_min(per, total - Poly(c) * per)), "own")) : per;
    Screma scan{.widths = {own}, .indices = {k}};
    scan.reduces = fresh_operators(screma, true, here, values);
    std::size_t next = 0;
    for (ReduceOp& reduce : scan.reduces)
      for (Operand& operand : reduce.neutral) operand = starts[next++];
    scan.map.body = thread.body([&](Builder& step) {
      const Value flat = step.size(Poly(c) * per + Poly(k), "at");
      if (exact) return element_at(screma, flat, here, step);
      const Value inside = step.compare(CompareOp::lt, flat, *as_operand(step.size(total, "total")));
      const BodyPtr element = step.body([&](Builder& then) { return element_at(screma, flat, here, then); });
      Operands padding = neutral;
      for (std::size_t n = neutral.size(); n < element->results.size(); ++n)
        padding.emplace_back(Scalar::zero(values.type(element->results[n]).element));
      const std::vector<Value> rows = step.let_many(names, If{inside, element, make_body({}, padding)});
      return Operands(rows.begin(), rows.end());
    });
    std::vector<Value> rooms;
    for (std::size_t n = 0; n < names.size() && exact; ++n)
      rooms.push_back(thread.let("room", Scratch{values.type(scan.map.body->results[n]).element, {per}}));
    Operands rows = to_operands(thread.let_many(names, std::move(scan)));
    for (std::size_t n = 0; n < rooms.size(); ++n)
      rows[n] = thread.let(names[n], Update{rooms[n], {DimIndex::slice(0, own)}, rows[n]});
    return rows;
  };
  std::vector<DimIndex> wanted;
  for (const Poly& width : segments.widths) wanted.push_back(DimIndex::slice(0, width));
  wanted.push_back(DimIndex::slice(0, total));
  std::vector<Poly> shape = segments.widths;
  shape.insert(shape.end(), screma.widths.begin(), screma.widths.end());
  std::vector<Value> results;
  for (const Value rows : kernel_over(segments, SegDim{c, chunks}, false, names, host, thread_body, team)) {
    const Value flat = host.let(values.name(rows), Reshape{rows, shape_of(segments, {chunks * per})});
    const Value all = host.let(values.name(rows), Index{flat, wanted});
    results.push_back(screma.widths.size() == 1 ? all : host.let(values.name(rows), Reshape{all, shape}));
  }
  return results;
}

// How many chunks a segment of a scan has, each of which `team` shares: a part of a warp.
Poly chunks_in_teams(const ChunkedWork& work, const Chunks& chunks, std::optional<Poly>& team, Builder& host) {
  const Poly segments = product(work.segments.widths), elements = product(work.screma.widths);
  const Poly threads = host.let("threads", GetSize{chunks.parameter, SizeClass::grid_size, kThreadsOfScan});
  const Poly most = host.let("team", GetSize{chunks.team, SizeClass::thread_block_size, kThreadsOfRow});
  team = team_of(elements, segments, threads, kElementsOfThread, poly_min(kThreadsOfRow, most), host);
  const Poly wanted =
      poly_min(floor_div(threads, poly_max(1, segments * *team)), floor_div(elements, kElementsOfScan * *team));
  return host.size(poly_max(1, wanted), "chunks");
}

// A scan of each segment by a team.
std::vector<Value> scan_in_teams(const ChunkedWork& work, const Poly& team, const std::vector<std::string>& names,
                                 Builder& host) {
  const auto thread_body = [&](Builder& thread, const Substitution& here) {
    const std::vector<Value> results = thread.let_many(names, substitute(Op(work.screma), here, host.values()));
    return Operands(results.begin(), results.end());
  };
  return kernel_over(work.segments, std::nullopt, false, names, host, thread_body, team);
}

// Whether several blocks can share the scan, as one kernel: rows of a known length may be kept in each thread.
bool can_look_back(const ChunkedWork& work, ValueTable& values) {
  return work.segments.widths.empty() && !product(work.screma.widths).constant() && can_share(work, values) &&
         look_back_words(work.screma, values) <= kMostLookBackWords;
}

// Blocks that share a scan at the top: a tile each.
Poly blocks_of_scan(const Screma& screma, const Chunks& chunks, Builder& host) {
  const Poly elements = product(screma.widths);
  const Poly least = host.let("blocks", GetSize{chunks.blocks, SizeClass::grid_size, 1});
  const Poly needed = ceil_div(elements, Poly(scan_tile(screma, host.values())));
  const Poly free = poly_min(kBlocksOfScan, ceil_div(elements, Poly(kMostTeam * kNeighboursAtOnce)));
  return host.size(poly_max(1, poly_max(needed, poly_max(free, poly_min(least, elements)))), "blocks");
}

// A scan at the top in one kernel, whose blocks have a tile each.
std::vector<Value> scan_in_blocks(const ChunkedWork& work, const Chunks& chunks, const std::vector<std::string>& names,
                                  Builder& host) {
  const Screma& screma = work.screma;
  const Poly elements = product(screma.widths), blocks = blocks_of_scan(screma, chunks, host);
  std::vector<Value> results;
  for (const Value rows : in_blocks(work, Poly(kMostTeam), blocks, names, host)) {
    const Value all = host.let(host.values().name(rows), Index{rows, {DimIndex::fix(0), DimIndex::slice(0, elements)}});
    results.push_back(screma.widths.size() == 1 ? all
                                                : host.let(host.values().name(rows), Reshape{all, screma.widths}));
  }
  return results;
}

}  // namespace

bool scans_scalars(const Screma& screma, const ValueTable& values) {
  return !screma.reduces.empty() && std::ranges::all_of(screma.reduces, &ReduceOp::scan) &&
         std::ranges::all_of(screma.map.body->results, [&](const Operand& x) { return values.type(x).is_scalar(); });
}

std::vector<Stm> make_chunked_scan(const Stm& stm, const Segments& segments, const Chunks& chunks, ValueTable& values) {
  const ChunkedWork work{segments, std::get<Screma>(stm.op), chunks.interleaved, false};
  const std::vector<std::string> names = names_of(stm.pattern, values);
  const std::vector<std::string> parts_names(names.begin(),
                                             names.begin() + static_cast<std::ptrdiff_t>(work.screma.reduced_count()));
  Builder host(values);
  host.set_location(stm.location);
  const bool shares = !chunks.team.empty() && can_share(work, values);
  if (shares && can_look_back(work, values)) return bound_to(stm, scan_in_blocks(work, chunks, names, host), host);
  std::optional<Poly> team;
  const Poly many = shares ? chunks_in_teams(work, chunks, team, host) : many_chunks(work, chunks, host);
  const auto scan_parts = [&](Builder& at) {
    const std::vector<Value> parts = fold_chunks(work, many, parts_names, at, team);
    if (shares) {
      const Poly warp = power_of_two(poly_max(1, poly_min(kThreadsOfRow, many)), "team", at);
      return scan_chunks(over_parts(work, parts, many, at.values()), 1, {}, parts_names, at, warp);
    }
    if (!chunks.least.empty()) return in_one_thread(over_parts(work, parts, many, at.values()), parts_names, at);
    const FewerChunks fewer = fold_parts(work, many, parts, parts_names, at);
    const ChunkedWork of_fewer = over_parts(fewer.of_parts, fewer.parts, fewer.count, values);
    const std::vector<Value> ends = in_one_thread(of_fewer, parts_names, at);
    return scan_chunks(fewer.of_parts, fewer.count, ends, parts_names, at);
  };
  if (shares && !segments.widths.empty() && work.screma.widths.size() == 1) {
    const auto several = [&](Builder& at) {
      const std::vector<Value> ends = scan_parts(at);
      return to_operands(scan_chunks(work, many, ends, names, at, team));
    };
    const auto whole = [&](Builder& at) { return to_operands(scan_in_teams(work, *team, names, at)); };
    return bound_to(stm, if_one_chunk(many, names, host, whole, several), host);
  }
  std::vector<Value> ends;
  if (segments.widths.empty() && chunks.least.empty()) {
    ends = scan_parts(host);
  } else {
    // One chunk reads no ends.
    const auto unread = [&](Builder& at) {
      Operands none;
      for (std::size_t k = 0; k < parts_names.size(); ++k)
        none.emplace_back(at.let(
            names[k], Scratch{values.type(work.screma.map.body->results[k]).element, shape_of(segments, {many})}));
      return none;
    };
    ends = if_one_chunk(many, parts_names, host, unread, [&](Builder& at) { return to_operands(scan_parts(at)); });
  }
  const std::vector<Value> results = scan_chunks(work, many, ends, names, host, team, !chunks.least.empty());
  return bound_to(stm, results, host);
}

std::optional<ScannedScatter> make_scanned_scatter(const Stm& scan, const Stm& scatter, bool counts,
                                                   const Chunks& chunks, ValueTable& values) {
  const ChunkedWork work{{}, std::get<Screma>(scan.op), chunks.interleaved, false};
  const Screma& screma = work.screma;
  if (chunks.team.empty() || screma.widths.size() != 1 || !can_share(work, values) || !can_look_back(work, values))
    return std::nullopt;
  Builder host(values);
  host.set_location(scatter.location);
  const Poly elements = screma.widths.front(), blocks = blocks_of_scan(screma, chunks, host);
  const Scatter& source = std::get<Scatter>(scatter.op);
  std::vector<std::string> names;
  if (counts) names.push_back(values.name(scan.pattern.front()));
  for (const Value v : scatter.pattern) names.push_back(values.name(v));
  const auto thread_body = [&](Builder& thread, const Substitution&) {
    const std::vector<Value> rows = thread.let_many(names_of(scan.pattern, values), Op(screma));
    Substitution here;
    for (const auto& [made, row] : ranges::views::zip(scan.pattern, rows)) here.insert_or_assign(made, Operand(row));
    Scatter own = std::get<Scatter>(substitute(Op(source), here, values));
    for (auto&& [target, from] : ranges::views::zip(own.targets, source.targets)) {
      const Type type = values.type(from);
      target = thread.let("room", Scratch{type.element, counts ? std::vector<Poly>{elements} : type.shape});
    }
    const std::vector<Value> written = thread.let_many(names_of(scatter.pattern, values), Op(std::move(own)));
    if (!counts) return Operands(written.begin(), written.end());
    const Value has_some = thread.compare(CompareOp::lt, i64_constant(0), *as_operand(thread.size(elements, "n")));
    const BodyPtr last = thread.body(
        [&](Builder& then) { return Operands{then.index(rows.front(), std::vector<Poly>{elements - 1}, "last")}; });
    const Value count =
        thread.let_many({"count"}, If{has_some, last, make_body({}, {screma.reduces.front().neutral.front()})}).front();
    Operands results{count};
    results.insert(results.end(), written.begin(), written.end());
    return results;
  };
  const Value c = values.add(Type::scalar(ScalarType::i64), "c");
  const std::vector<Value> made =
      kernel_over({}, SegDim{c, 1}, false, names, host, thread_body, Poly(kMostTeam), blocks);
  const Stm& kernel = *std::ranges::find_if(host.stms(), [](const Stm& stm) { return get_if<SegOp>(stm) != nullptr; });
  if (team_fault(std::get<SegOp>(kernel.op), values)) return std::nullopt;
  ScannedScatter result;
  if (counts) result.count = host.index(made.front(), std::vector<Poly>{0}, "count");
  result.written.assign(made.begin() + (counts ? 1 : 0), made.end());
  result.stms = host.take();
  return result;
}

}  // namespace apl
