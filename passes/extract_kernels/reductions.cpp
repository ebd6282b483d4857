// A reduction on a GPU is one kernel: a team of threads (ir/team.h), or several blocks of them, fold it:
//
//   let {r} = redomap(i < n, {xs}, f, op, ne)
// =>
//   let {rs} = segmap(thread) (c < 1) team(T) blocks(B) { redomap(i < n, {xs}, f, op, ne) }
//   let {r} = rs[0]
//
// Of several dims it is the same of all its elements in one, and where a thread has a segment for itself another kernel
// with nested loops, which divide nothing: which one is launched is decided by the sizes.
//
// So is a scan at the top, if blocks can publish what its operators give. Teams and blocks are numbers of the
// host, computed from the sizes (team_of, blocks_of). For a CPU, and where a team cannot share it, threads fold a chunk
// each, fewer threads fold what those gave, and one thread folds the rest:
//
//   let {parts} = segmap(thread) (c < chunks) { redomap(k < own, {}, \{} -> f(xs[c * per + k]), op, ne) }
//   ...
//
// Other scans go on from there. On GPUs teams fold the chunks, one team scans the partial results, and teams scan a
// chunk each, starting with what the chunks before them gave. Where a team cannot share it, threads do, and partial
// results are scanned in the same manner:
//
//   let {ends} = the scan of parts
//   let {rows} = segmap(thread) (c < chunks) { scan(k < per, {}, \{} -> f(xs[c * per + k]), op,
//                                                   c == 0 ? ne : ends[c-1]) }
//   let {r} = the first n of rows, flattened
//
// Interleaved, a thread's chunk is every chunks-th element if the operators commute, so that neighbouring threads read
// neighbouring elements; else it is contiguous, since operators are only associative.
//
// Inside maps all of it happens in segments: each kernel has the maps' dims before its own, and there are fewer chunks
// the more segments there are. With one chunk a segment nothing is left to be done after the first kernel.
//
// By columns, where the elements of neighbouring segments lie side by side, the maps' dims come last, and partial
// results lie likewise: segmap(thread) (c < chunks, i < m).
#include "passes/extract_kernels/reductions.h"

#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <numeric>

#include "ir/attributes.h"
#include "ir/builder.h"
#include "ir/team.h"
#include "ir/walk.h"
#include "passes/analysis/contractions.h"
#include "passes/extract_kernels/nest.h"

namespace apl {

namespace {

using Operands = std::vector<Operand>;

Operands to_operands(const std::vector<Value>& results) { return {results.begin(), results.end()}; }

constexpr std::int64_t kFewerChunks = 128;
// Elements from which on a chunk of a CPU's thread is worth having, if no element takes a loop.
constexpr std::int64_t kElementsOfChunk = 16384;
// Of reductions on GPUs: threads that keep one busy, over all segments; elements, or partial results, from which on a
// thread is worth having; threads that share a row even where there are many rows, so that they read neighbours.
constexpr std::int64_t kThreadsOfReduction = std::int64_t{1} << 18;
constexpr std::int64_t kElementsOfThread = 8, kPartsOfThread = 2;
constexpr std::int64_t kThreadsOfRow = 32;
// The same of scans: one warp scans the chunks' partial results.
constexpr std::int64_t kThreadsOfScan = std::int64_t{1} << 17, kElementsOfScan = 32;
// Blocks that a scan at the top has before tiles grow.
constexpr std::int64_t kBlocksOfScan = 256;
// A team folds the partial results of a column, which lie apart.
constexpr std::int64_t kMostPartsOfColumn = 8192;

// The operators in a kernel, with what `here` says of values outside it.
std::vector<ReduceOp> fresh_operators(const Screma& screma, const Substitution& here, ValueTable& values) {
  std::vector<ReduceOp> result;
  for (const ReduceOp& reduce : screma.reduces) {
    result.push_back({copy_fresh(reduce.op, here, values, values), reduce.neutral, reduce.commutative, reduce.scan});
    for (Operand& neutral : result.back().neutral) neutral = substitute(neutral, here);
  }
  return result;
}

// The same, folding or scanning whatever they did before.
std::vector<ReduceOp> fresh_operators(const Screma& screma, bool scan, const Substitution& here, ValueTable& values) {
  std::vector<ReduceOp> result = fresh_operators(screma, here, values);
  for (ReduceOp& reduce : result) reduce.scan = scan;
  return result;
}

Operands neutral_elements(const Screma& screma, const Substitution& here) {
  Operands result;
  for (const ReduceOp& reduce : screma.reduces)
    for (const Operand& neutral : reduce.neutral) result.push_back(substitute(neutral, here));
  return result;
}

// A kernel over the segments and, if given, one more dim, which the results have last. `fill` gets the values that
// stand in it for the segments'.
using Fill = std::function<Operands(Builder& thread, const Substitution& here)>;
std::vector<Value> kernel_over(const Segments& segments, std::optional<SegDim> own, bool by_columns,
                               const std::vector<std::string>& names, Builder& host, const Fill& fill,
                               const std::optional<Poly>& team = {}, const std::optional<Poly>& blocks = {}) {
  ValueTable& values = host.values();
  SegOp kernel{.level = SegLevel::thread};
  kernel.team = team;
  kernel.blocks = blocks;
  Substitution here;
  for (const auto& [old, width] : ranges::views::zip(segments.indices, segments.widths)) {
    const Value index = values.add(Type::scalar(ScalarType::i64), values.name(old));
    here.insert_or_assign(old, Operand(index));
    kernel.space.push_back({index, width});
  }
  by_columns = by_columns && own && !kernel.space.empty();
  if (own) kernel.space.insert(by_columns ? kernel.space.begin() : kernel.space.end(), *own);
  const BodyPtr prefix = copy_fresh(make_body(segments.prefix, {}), here, values, values);
  kernel.body = host.body([&](Builder& thread) {
    thread.append_all(prefix->stms);
    return fill(thread, here);
  });
  kernel.results.assign(kernel.body->results.size(), {.kind = KernelResult::Kind::returns, .extents = {}});
  std::vector<Value> results = host.let_many(names, std::move(kernel));
  host.stms().back().attributes.push_back(make_attribute(attribute::chunks));
  if (!by_columns) return results;
  for (Value& v : results) {
    std::vector<int> behind(values.type(v).rank());
    std::iota(behind.begin(), behind.end(), 0);
    const auto segment_dims = static_cast<std::ptrdiff_t>(segments.widths.size());
    std::rotate(behind.begin(), behind.begin() + 1, behind.begin() + segment_dims + 1);
    v = host.rearrange(v, behind, values.name(v));
  }
  return results;
}

// The shape of one result a segment and, behind it, dims of its own.
std::vector<Poly> shape_of(const Segments& segments, std::initializer_list<Poly> own = {}) {
  std::vector<Poly> shape = segments.widths;
  shape.insert(shape.end(), own.begin(), own.end());
  return shape;
}

}  // namespace

Operands element_at(const Screma& screma, Value flat, const Substitution& here, Builder& out) {
  ValueTable& values = out.values();
  Substitution map = here;
  std::vector<Poly> at;
  for (const Value index : split_index(screma.widths, flat, out)) {
    map.insert_or_assign(screma.indices[at.size()], Operand(index));
    at.emplace_back(index);
  }
  for (const auto& [input, param] : ranges::views::zip(screma.inputs, screma.map.params))
    map.insert_or_assign(param, Operand(out.index(substitute(input, here), at, values.name(param))));
  const BodyPtr body = copy_fresh(screma.map.body, map, values, values);
  out.append_all(body->stms);
  return body->results;
}

namespace {

// What is folded: an operation in each segment.
struct Work {
  Segments segments;
  Screma screma;
  bool interleaved, by_columns;
};

// On GPUs it is a quotient, which kernels are given: as a size it would be computed where it is read, in their loops.
Poly elements_of_chunk(const Work& work, const Poly& chunks, Builder& host) {
  const Poly total = product(work.screma.widths);
  if (!work.interleaved || chunks == Poly(1)) return host.size(ceil_div(total, chunks), "per_chunk");
  return host.binary(BinaryOp::quot, host.size(total + chunks - 1), *as_operand(chunks), "per_chunk");
}

// One array of partial results an operand, of `chunks` in each segment, which so many threads share.
std::vector<Value> fold_chunks(const Work& work, const Poly& chunks, const std::vector<std::string>& names,
                               Builder& host, const std::optional<Poly>& team = {}) {
  ValueTable& values = host.values();
  const Screma& screma = work.screma;
  const Poly total = product(screma.widths);
  const Poly per = elements_of_chunk(work, chunks, host);
  const Value c = values.add(Type::scalar(ScalarType::i64), "c");
  const Value k = values.add(Type::scalar(ScalarType::i64), "k");
  const bool strided = work.interleaved && !team && !screma.scans() && folds_in_any_order(screma);
  const auto thread_body = [&](Builder& thread, const Substitution& here) {
    const Operands neutral = neutral_elements(screma, here);
    Screma fold{.widths = {per}, .indices = {k}};
    fold.reduces = fresh_operators(screma, false, here, values);
    // As many as are left: of neighbours, or of every so-manieth.
    const Poly left = strided ? ceil_div(total - Poly(c), chunks) : poly_min(per, total - Poly(c) * per);
    fold.widths = {chunks == Poly(1) ? total : Poly(thread.size(poly_max(0, left), "own"))};
    fold.map.body = thread.body([&](Builder& step) {
      const Value flat = step.size(strided ? Poly(k) * chunks + Poly(c) : Poly(c) * per + Poly(k), "at");
      Operands rows = element_at(screma, flat, here, step);
      rows.resize(neutral.size());  // a scan's mapped rows are made later
      return rows;
    });
    const std::vector<Value> parts = thread.let_many(names, std::move(fold));
    return Operands(parts.begin(), parts.end());
  };
  return kernel_over(work.segments, SegDim{c, chunks}, work.by_columns, names, host, thread_body, team);
}

// The same operators over the `count` partial results of each segment.
Work over_parts(const Work& work, const std::vector<Value>& parts, const Poly& count, ValueTable& values) {
  Work result{work.segments,
              {.widths = {count}, .indices = {values.add(Type::scalar(ScalarType::i64), "c")}, .inputs = parts},
              work.interleaved,
              work.by_columns};
  std::vector<DimIndex> segment;
  for (const Value index : work.segments.indices) segment.push_back(DimIndex::fix(index));
  Operands rows;
  for (Value& part : result.screma.inputs) {
    if (!segment.empty()) {
      const Value own = values.add(values.type(part).row(segment.size()), values.name(part));
      result.segments.prefix.push_back({.pattern = {own}, .op = Index{part, segment}});
      part = own;
    }
    const Value row = values.add(values.type(part).row(), values.name(part));
    result.screma.map.params.push_back(row);
    rows.emplace_back(row);
  }
  result.screma.map.body = make_body({}, std::move(rows));
  result.screma.reduces = fresh_operators(work.screma, {}, values);
  return result;
}

// The operation itself, in one thread a segment.
std::vector<Value> in_one_thread(const Work& work, const std::vector<std::string>& names, Builder& host) {
  return kernel_over(work.segments, std::nullopt, false, names, host, [&](Builder& thread, const Substitution& here) {
    const Op own = substitute(Op(work.screma), here, host.values());
    const std::vector<Value> results = thread.let_many(names, own);
    return Operands(results.begin(), results.end());
  });
}

// The whole operation of each segment in a kernel, whose results have a dim of one element behind the segments'.
std::vector<Value> in_blocks(const Work& work, const Poly& team, const Poly& blocks,
                             const std::vector<std::string>& names, Builder& host) {
  ValueTable& values = host.values();
  const Value c = values.add(Type::scalar(ScalarType::i64), "c");
  const auto thread_body = [&](Builder& thread, const Substitution& here) {
    Op own = substitute(Op(work.screma), here, values);
    Screma& screma = std::get<Screma>(own);
    // A reduction of reductions would become one of several widths: elements are found by their place in all of them.
    bool nests = false;
    for_each_stm(*screma.map.body, [&](const Stm& stm) { nests = nests || get_if<Screma>(stm) != nullptr; });
    if (screma.widths.size() != 1 || nests) {
      const Value k = values.add(Type::scalar(ScalarType::i64), "k");
      const Screma of_dims = screma;
      const Poly total = product(of_dims.widths);
      screma = {.widths = {total}, .indices = {k}};
      screma.reduces = fresh_operators(of_dims, {}, values);  // another kernel may have them, too
      screma.map.body = thread.body(
          [&](Builder& step) { return element_at(of_dims, step.size(Poly(c) * total + Poly(k), "at"), {}, step); });
    }
    const std::vector<Value> results = thread.let_many(names, std::move(own));
    return Operands(results.begin(), results.end());
  };
  return kernel_over(work.segments, SegDim{c, 1}, false, names, host, thread_body, team, blocks);
}

// How many chunks a segment has: never more than elements, but one if there is none: its partial result is the neutral
// element.
Poly chunks_of(const Poly& most, const Poly& elements, Builder& host) {
  return host.size(make_opaque(OpaqueKind::max, 1, make_opaque(OpaqueKind::min, most, elements)), "chunks");
}

// Whether it gives the same whatever elements are folded together first: nothing is rounded.
bool is_exact(const Screma& screma, const ValueTable& values) {
  return std::ranges::all_of(screma.reduces, [&](const ReduceOp& reduce) {
    return std::ranges::all_of(reduce.op.body->stms, [&](const Stm& stm) {
      const Binary* binary = get_if<Binary>(stm);
      if (binary != nullptr && (binary->op == BinaryOp::min || binary->op == BinaryOp::max)) return true;
      const If* branch = get_if<If>(stm);
      if (branch != nullptr) return branch->then_body->stms.empty() && branch->else_body->stms.empty();
      return std::ranges::none_of(
          stm.pattern, [&](Value v) { return !values.type(v).is_scalar() || is_float(values.type(v).element); });
    });
  });
}

// As many chunks as keep the machine busy, over all segments. Where sums are rounded their number does not depend on
// that of a CPU's threads, so that the results do not; a scan goes over its elements only once where there is one.
Poly many_chunks(const Work& work, const Chunks& chunks, Builder& host) {
  if (chunks.most == 1) return 1;
  const bool threads = !chunks.least.empty() && (work.screma.scans() || is_exact(work.screma, host.values()));
  Poly most = host.let(
      "chunks", GetSize{chunks.parameter, threads ? SizeClass::thread_count : SizeClass::grid_size, chunks.most});
  if (!work.segments.widths.empty())
    most = floor_div(most, make_opaque(OpaqueKind::max, 1, product(work.segments.widths)));
  const Poly elements = product(work.screma.widths);
  return chunks.least.empty() ? chunks_of(most, elements, host) : few_chunks(work.screma, elements, most, chunks, host);
}

// The partial results of a few chunks, of those of many.
struct Fewer {
  Work of_parts;
  Poly count;
  std::vector<Value> parts;
};
Fewer fold_parts(const Work& work, const Poly& many, const std::vector<Value>& parts,
                 const std::vector<std::string>& names, Builder& host) {
  Fewer result{over_parts(work, parts, many, host.values()), chunks_of(kFewerChunks, many, host), {}};
  result.parts = fold_chunks(result.of_parts, result.count, names, host);
  return result;
}

// `work`, a scan, in one kernel: chunk c starts with row c-1 of `ends`, what the chunks up to there gave. The results
// are arrays of the segments' and the widths' shape; rows that the scan maps are made, too.
std::vector<Value> scan_chunks(const Work& work, const Poly& chunks, const std::vector<Value>& ends,
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

// Where the count is 1, what `one` makes, else what `more` does.
std::vector<Value> if_one(const Poly& count, const std::string& name, const std::vector<std::string>& names,
                          Builder& host, const std::function<Operands(Builder&)>& one,
                          const std::function<Operands(Builder&)>& more) {
  const Value is_one = host.compare(CompareOp::eq, *as_operand(count), i64_constant(1), name);
  const BodyPtr then = host.body(one);
  const BodyPtr otherwise = host.body(more);
  return host.let_many(names, If{is_one, then, otherwise});
}

// The same of chunks of a segment: what they gave is all there is if there is one.
std::vector<Value> if_one_chunk(const Poly& chunks, const std::vector<std::string>& names, Builder& host,
                                const std::function<Operands(Builder&)>& one,
                                const std::function<Operands(Builder&)>& more) {
  return if_one(chunks, "one_chunk", names, host, one, more);
}

std::vector<std::string> names_of(const std::vector<Value>& pattern, const ValueTable& values) {
  std::vector<std::string> names;
  for (const Value v : pattern) names.push_back(values.name(v));
  return names;
}

// Whether several threads can share the operation in a segment.
bool can_share(const Work& work, ValueTable& values) {
  SegOp kernel{.level = SegLevel::thread, .space = {{values.add(Type::scalar(ScalarType::i64), "i"), Poly(1)}}};
  Screma fold = work.screma;
  fold.widths = {Poly(1)};
  std::vector<Stm> stms = work.segments.prefix;
  stms.push_back({.pattern = {}, .op = Use{}});
  for (const Operand& row : fold.map.body->results) {
    const Type type = values.type(row);
    stms.back().pattern.push_back(values.add(fold.scans() ? Type::array(type.element, {Poly(1)}) : type, "part"));
  }
  Operands results(stms.back().pattern.begin(), stms.back().pattern.end());
  stms.back().op = std::move(fold);
  kernel.body = make_body(std::move(stms), std::move(results));
  return !team_fault(kernel, values);
}

// The largest power of two that is no more than `number`, which is at least 1.
Value power_of_two(const Poly& number, const std::string& name, Builder& host) {
  const Value whole = host.size(number, name);
  const Value digits = host.binary(BinaryOp::sub, i64_constant(63), host.unary(UnaryOp::clz, whole), "digits");
  return host.binary(BinaryOp::shl, i64_constant(1), digits, name);
}

// The threads that share `elements`: so many that each has `each` elements. More than a warp only where there are less
// than `threads` otherwise, and more than one, if threads with segments of their own read neighbours, too.
Poly team_of(const Poly& elements, const Poly& segments, const Poly& threads, std::int64_t each, const Poly& most,
             Builder& host, bool neighbours_anyway = false) {
  const Poly free = poly_max(neighbours_anyway ? 1 : kThreadsOfRow, floor_div(threads, poly_max(1, segments)));
  const Poly wanted = poly_min(floor_div(elements, each), poly_min(free, poly_min(most, kMostTeam)));
  return power_of_two(poly_max(1, wanted), "team", host);
}

// How many chunks a segment of a scan has, each of which `team` shares: a part of a warp.
Poly chunks_in_teams(const Work& work, const Chunks& chunks, std::optional<Poly>& team, Builder& host) {
  const Poly segments = product(work.segments.widths), elements = product(work.screma.widths);
  const Poly threads = host.let("threads", GetSize{chunks.parameter, SizeClass::grid_size, kThreadsOfScan});
  const Poly most = host.let("team", GetSize{chunks.team, SizeClass::thread_block_size, kThreadsOfRow});
  team = team_of(elements, segments, threads, kElementsOfThread, poly_min(kThreadsOfRow, most), host);
  const Poly wanted =
      poly_min(floor_div(threads, poly_max(1, segments * *team)), floor_div(elements, kElementsOfScan * *team));
  return host.size(poly_max(1, wanted), "chunks");
}

// How many blocks share a reduction in each segment: as many as there are threads left, each of which has its elements.
Poly blocks_of(const Poly& elements, const Poly& segments, const Poly& threads, const std::string& parameter,
               Builder& host) {
  const Poly least = host.let("blocks", GetSize{parameter, SizeClass::grid_size, 1});
  const Poly wanted = poly_min(floor_div(threads, poly_max(1, segments) * kMostTeam),
                               floor_div(elements, kElementsOfThread * kMostTeam));
  return host.size(poly_max(1, poly_max(wanted, poly_min(least, elements))), "blocks");
}

// A reduction in each segment, by a team or by several blocks.
std::vector<Value> fold_in_blocks(const Work& work, const Chunks& chunks, const std::vector<std::string>& names,
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
std::vector<Value> fold_by_columns(const Work& work, const Chunks& chunks, const std::vector<std::string>& names,
                                   Builder& host) {
  const Poly segments = product(work.segments.widths), elements = product(work.screma.widths);
  const Poly threads = host.let("threads", GetSize{chunks.parameter, SizeClass::grid_size, kThreadsOfReduction});
  const Poly most = host.let("team", GetSize{chunks.team, SizeClass::thread_block_size, kMostTeam});
  const Poly wanted = poly_min(floor_div(threads, poly_max(1, segments)), floor_div(elements, kElementsOfThread));
  const Poly many = host.size(poly_max(1, poly_min(kMostPartsOfColumn, wanted)), "chunks");
  const std::vector<Poly>& widths = work.segments.widths;
  // One chunk in each segment, folded by threads that lie as its elements do.
  const auto fold_whole = [&](const Work& whole, const std::optional<Poly>& threads_each, Builder& at) {
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
    Work parts = over_parts(work, fold_chunks(work, many, names, at), many, at.values());
    parts.by_columns = false;
    return fold_whole(parts, team_of(many, segments, threads, kPartsOfThread, most, at), at);
  };
  return if_one_chunk(
      many, names, host, [&](Builder& at) { return fold_whole(work, {}, at); }, fold_parts);
}

// A scan of each segment by a team.
std::vector<Value> scan_in_teams(const Work& work, const Poly& team, const std::vector<std::string>& names,
                                 Builder& host) {
  const auto thread_body = [&](Builder& thread, const Substitution& here) {
    const std::vector<Value> results = thread.let_many(names, substitute(Op(work.screma), here, host.values()));
    return Operands(results.begin(), results.end());
  };
  return kernel_over(work.segments, std::nullopt, false, names, host, thread_body, team);
}

// Whether several blocks can share the scan, as one kernel: rows of a known length may be kept in each thread.
bool can_look_back(const Work& work, ValueTable& values) {
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
std::vector<Value> scan_in_blocks(const Work& work, const Chunks& chunks, const std::vector<std::string>& names,
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

Poly few_chunks(const Screma& screma, const Poly& elements, const Poly& most, const Chunks& chunks, Builder& host) {
  const bool straight = std::ranges::none_of(screma.map.body->stms, [](const Stm& stm) {
    bool has_bodies = get_if<Apply>(stm) != nullptr;
    if (get_if<If>(stm) == nullptr) for_each_body(stm.op, [&](const BodyPtr&) { has_bodies = true; });
    return has_bodies;
  });
  const Poly least = host.let("least", GetSize{chunks.least, SizeClass::threshold, straight ? kElementsOfChunk : 1});
  return chunks_of(most, floor_div(elements, least), host);
}

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

std::vector<Value> split_index(const std::vector<Poly>& widths, Value flat, Builder& out) {
  std::vector<Value> result;
  Poly below = product(widths);
  for (std::size_t d = 0; d < widths.size(); ++d) {
    // The index of dim d is what the dims behind it leave over.
    Poly behind = 1;
    for (std::size_t e = d + 1; e < widths.size(); ++e) behind *= widths[e];
    const Poly rest = d == 0 ? Poly(flat) : remainder(Poly(flat), below);
    result.push_back(out.size(d + 1 == widths.size() ? rest : floor_div(rest, behind), "i"));
    below = behind;
  }
  return result;
}

std::vector<Stm> bound_to(const Stm& stm, const std::vector<Value>& results, Builder& host) {
  std::vector<Stm> stms = host.take();
  for (const auto& [made, result] : ranges::views::zip(stm.pattern, results))
    stms.push_back({.pattern = {made}, .op = Use{Operand(result)}, .location = stm.location});
  for (Stm& made : stms) made.certificates = stm.certificates;
  return stms;
}

bool reduces_scalars(const Screma& screma, const ValueTable& values) {
  return !screma.reduces.empty() && screma.map.body->results.size() == screma.reduced_count() &&
         std::ranges::none_of(screma.reduces, &ReduceOp::scan) &&
         std::ranges::all_of(screma.map.body->results, [&](const Operand& x) { return values.type(x).is_scalar(); });
}

bool scans_scalars(const Screma& screma, const ValueTable& values) {
  return !screma.reduces.empty() && std::ranges::all_of(screma.reduces, &ReduceOp::scan) &&
         std::ranges::all_of(screma.map.body->results, [&](const Operand& x) { return values.type(x).is_scalar(); });
}

std::vector<Stm> make_chunked_scan(const Stm& stm, const Segments& segments, const Chunks& chunks, ValueTable& values) {
  const Work work{segments, std::get<Screma>(stm.op), chunks.interleaved, false};
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
    const Fewer fewer = fold_parts(work, many, parts, parts_names, at);
    const Work of_fewer = over_parts(fewer.of_parts, fewer.parts, fewer.count, values);
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
  const Work work{{}, std::get<Screma>(scan.op), chunks.interleaved, false};
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

std::vector<Stm> make_chunked_reduction(const Stm& stm, const Segments& segments, const Chunks& chunks,
                                        ValueTable& values) {
  const Work work{segments, std::get<Screma>(stm.op), chunks.interleaved, chunks.by_columns};
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
    const Fewer fewer = fold_parts(work, many, parts, names, at);
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
