// Kernels that reductions, scans, histograms and filters are made of: threads or teams fold chunks of an operation's
// elements, in each segment.
//
//   let {parts} = segmap(thread) (c < chunks) { redomap(k < own, {}, \{} -> f(xs[c * per + k]), op, ne) }
//
// Interleaved, a thread's chunk is every chunks-th element if the operators commute, so that neighbouring threads read
// neighbouring elements; else it is contiguous, since operators are only associative.
//
// Inside maps all of it happens in segments: each kernel has the maps' dims before its own, and there are fewer chunks
// the more segments there are. By columns, where the elements of neighbouring segments lie side by side, the maps' dims
// come last, and partial results lie likewise: segmap(thread) (c < chunks, i < m).
#include "passes/extract_kernels/chunks.h"

#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <numeric>

#include "ir/attributes.h"
#include "ir/team.h"
#include "ir/walk.h"
#include "passes/extract_kernels/nest.h"

namespace apl {

using Operands = std::vector<Operand>;

namespace {

constexpr std::int64_t kFewerChunks = 128;
// Elements from which on a chunk of a CPU's thread is worth having, if no element takes a loop.
constexpr std::int64_t kElementsOfChunk = 16384;

// The operators in a kernel, with what `here` says of values outside it.
std::vector<ReduceOp> fresh_operators(const Screma& screma, const Substitution& here, ValueTable& values) {
  std::vector<ReduceOp> result;
  for (const ReduceOp& reduce : screma.reduces) {
    result.push_back({copy_fresh(reduce.op, here, values, values), reduce.neutral, reduce.commutative, reduce.scan});
    for (Operand& neutral : result.back().neutral) neutral = substitute(neutral, here);
  }
  return result;
}

}  // namespace

Operands to_operands(const std::vector<Value>& results) { return {results.begin(), results.end()}; }

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

std::vector<Value> kernel_over(const Segments& segments, std::optional<SegDim> own, bool by_columns,
                               const std::vector<std::string>& names, Builder& host, const Fill& fill,
                               const std::optional<Poly>& team, const std::optional<Poly>& blocks) {
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

std::vector<Poly> shape_of(const Segments& segments, std::initializer_list<Poly> own) {
  std::vector<Poly> shape = segments.widths;
  shape.insert(shape.end(), own.begin(), own.end());
  return shape;
}

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

Poly elements_of_chunk(const ChunkedWork& work, const Poly& chunks, Builder& host) {
  const Poly total = product(work.screma.widths);
  if (!work.interleaved || chunks == Poly(1)) return host.size(ceil_div(total, chunks), "per_chunk");
  return host.binary(BinaryOp::quot, host.size(total + chunks - 1), *as_operand(chunks), "per_chunk");
}

std::vector<Value> fold_chunks(const ChunkedWork& work, const Poly& chunks, const std::vector<std::string>& names,
                               Builder& host, const std::optional<Poly>& team) {
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

ChunkedWork over_parts(const ChunkedWork& work, const std::vector<Value>& parts, const Poly& count,
                       ValueTable& values) {
  ChunkedWork result{work.segments,
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

std::vector<Value> in_one_thread(const ChunkedWork& work, const std::vector<std::string>& names, Builder& host) {
  return kernel_over(work.segments, std::nullopt, false, names, host, [&](Builder& thread, const Substitution& here) {
    const Op own = substitute(Op(work.screma), here, host.values());
    const std::vector<Value> results = thread.let_many(names, own);
    return Operands(results.begin(), results.end());
  });
}

std::vector<Value> in_blocks(const ChunkedWork& work, const Poly& team, const Poly& blocks,
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

namespace {

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

}  // namespace

Poly many_chunks(const ChunkedWork& work, const Chunks& chunks, Builder& host) {
  if (chunks.most == 1) return 1;
  const bool threads = !chunks.least.empty() && (work.screma.scans() || is_exact(work.screma, host.values()));
  Poly most = host.let(
      "chunks", GetSize{chunks.parameter, threads ? SizeClass::thread_count : SizeClass::grid_size, chunks.most});
  if (!work.segments.widths.empty())
    most = floor_div(most, make_opaque(OpaqueKind::max, 1, product(work.segments.widths)));
  const Poly elements = product(work.screma.widths);
  return chunks.least.empty() ? chunks_of(most, elements, host) : few_chunks(work.screma, elements, most, chunks, host);
}

Poly few_chunks(const Screma& screma, const Poly& elements, const Poly& most, const Chunks& chunks, Builder& host) {
  const bool straight = std::ranges::none_of(screma.map.body->stms, [](const Stm& stm) {
    bool has_bodies = get_if<Apply>(stm) != nullptr;
    if (get_if<If>(stm) == nullptr) for_each_body(stm.op, [&](const BodyPtr&) { has_bodies = true; });
    return has_bodies;
  });
  const Poly least = host.let("least", GetSize{chunks.least, SizeClass::threshold, straight ? kElementsOfChunk : 1});
  return chunks_of(most, floor_div(elements, least), host);
}

FewerChunks fold_parts(const ChunkedWork& work, const Poly& many, const std::vector<Value>& parts,
                       const std::vector<std::string>& names, Builder& host) {
  FewerChunks result{over_parts(work, parts, many, host.values()), chunks_of(kFewerChunks, many, host), {}};
  result.parts = fold_chunks(result.of_parts, result.count, names, host);
  return result;
}

std::vector<Value> if_one(const Poly& count, const std::string& name, const std::vector<std::string>& names,
                          Builder& host, const std::function<Operands(Builder&)>& one,
                          const std::function<Operands(Builder&)>& more) {
  const Value is_one = host.compare(CompareOp::eq, *as_operand(count), i64_constant(1), name);
  const BodyPtr then = host.body(one);
  const BodyPtr otherwise = host.body(more);
  return host.let_many(names, If{is_one, then, otherwise});
}

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

bool can_share(const ChunkedWork& work, ValueTable& values) {
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

Value power_of_two(const Poly& number, const std::string& name, Builder& host) {
  const Value whole = host.size(number, name);
  const Value digits = host.binary(BinaryOp::sub, i64_constant(63), host.unary(UnaryOp::clz, whole), "digits");
  return host.binary(BinaryOp::shl, i64_constant(1), digits, name);
}

Poly team_of(const Poly& elements, const Poly& segments, const Poly& threads, std::int64_t each, const Poly& most,
             Builder& host, bool neighbours_anyway) {
  const Poly free = poly_max(neighbours_anyway ? 1 : kThreadsOfRow, floor_div(threads, poly_max(1, segments)));
  const Poly wanted = poly_min(floor_div(elements, each), poly_min(free, poly_min(most, kMostTeam)));
  return power_of_two(poly_max(1, wanted), "team", host);
}

}  // namespace apl
