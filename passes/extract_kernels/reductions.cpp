// A reduction at the top in three kernels: threads fold a chunk each, fewer threads fold what those gave, and one
// thread folds the rest.
//
//   let {r} = redomap(i < n, {xs}, f, op, ne)
// =>
//   let {parts} = segmap(thread) (c < chunks) { redomap(k < per, {}, \{} -> if in(c, k) then f(xs[at(c, k)]) else ne,
//                                                       op, ne) }
//   let {fewer} = segmap(thread) (c < 128) { the same over parts }
//   let {r} = segmap(thread) () { reduce(c < 128, {fewer}, op, ne) }
//
// A scan goes on from there: the partial results are scanned in the same manner, and threads scan a chunk each,
// starting with what the chunks before them gave:
//
//   let {ends} = the scan of parts
//   let {rows} = segmap(thread) (c < chunks) { scan(k < per, {}, \{} -> f(xs[c * per + k]), op, c == 0 ? ne :
//   ends[c-1]) } let {r} = the first n of rows, flattened
//
// A chunk is every chunks-th element if the operators commute, so that neighbouring threads read neighbouring
// elements; else it is contiguous, since operators are only associative.
#include "passes/extract_kernels/reductions.h"

#include <algorithm>

#include "ir/builder.h"
#include "ir/walk.h"
#include "passes/extract_kernels/nest.h"

namespace apl {

namespace {

using Operands = std::vector<Operand>;

constexpr std::int64_t kChunks = 16384;  // enough threads to keep a GPU's memory busy
constexpr std::int64_t kFewerChunks = 128;

std::vector<ReduceOp> fresh_operators(const Screma& screma, ValueTable& values) {
  std::vector<ReduceOp> result;
  for (const ReduceOp& reduce : screma.reduces)
    result.push_back({copy_fresh(reduce.op, {}, values, values), reduce.neutral, reduce.commutative, reduce.scan});
  return result;
}

bool commutes(const ReduceOp& reduce) {
  if (reduce.commutative) return true;
  const std::optional<BinaryOp> op = as_binary_op(reduce.op);
  return op && is_commutative(*op);
}

// The same, folding or scanning whatever they did before.
std::vector<ReduceOp> fresh_operators(const Screma& screma, bool scan, ValueTable& values) {
  std::vector<ReduceOp> result = fresh_operators(screma, values);
  for (ReduceOp& reduce : result) reduce.scan = scan;
  return result;
}

Operands neutral_elements(const Screma& screma) {
  Operands result;
  for (const ReduceOp& reduce : screma.reduces)
    result.insert(result.end(), reduce.neutral.begin(), reduce.neutral.end());
  return result;
}

// What the map function of `screma` gives at position `flat`, row-major over its widths.
Operands element_at(const Screma& screma, Value flat, Builder& out) {
  ValueTable& values = out.values();
  Substitution map;
  std::vector<Poly> at;
  Poly below = product(screma.widths);
  for (std::size_t d = 0; d < screma.widths.size(); ++d) {
    // The index of dim d is what the dims behind it leave over.
    Poly behind = 1;
    for (std::size_t e = d + 1; e < screma.widths.size(); ++e) behind *= screma.widths[e];
    const Poly rest = d == 0 ? Poly(flat) : remainder(Poly(flat), below);
    const Value index = out.size(d + 1 == screma.widths.size() ? rest : floor_div(rest, behind), "i");
    at.emplace_back(index);
    map.insert_or_assign(screma.indices[d], Operand(index));
    below = behind;
  }
  for (std::size_t n = 0; n < screma.inputs.size(); ++n)
    map.insert_or_assign(screma.map.params[n],
                         Operand(out.index(screma.inputs[n], at, values.name(screma.map.params[n]))));
  const BodyPtr body = copy_fresh(screma.map.body, map, values, values);
  out.append_all(body->stms);
  return body->results;
}

// One array of partial results an operand of `screma`, `chunks` long.
std::vector<Value> fold_chunks(const Screma& screma, const Poly& chunks, const std::vector<std::string>& names,
                               Builder& host) {
  ValueTable& values = host.values();
  const Poly total = product(screma.widths);
  const Poly per = host.size(ceil_div(total, chunks), "per_chunk");
  const Value c = values.add(Type::scalar(ScalarType::i64), "c");
  const Value k = values.add(Type::scalar(ScalarType::i64), "k");
  const bool strided = !screma.scans() && std::ranges::all_of(screma.reduces, commutes);
  const Operands neutral = neutral_elements(screma);

  SegOp kernel{.level = SegLevel::thread, .space = {{c, chunks}}};
  kernel.body = host.body([&](Builder& thread) {
    Screma fold{.widths = {per}, .indices = {k}};
    fold.reduces = fresh_operators(screma, false, values);
    fold.map.body = thread.body([&](Builder& step) {
      const Value flat = step.size(strided ? Poly(k) * chunks + Poly(c) : Poly(c) * per + Poly(k), "at");
      const Value inside = step.compare(CompareOp::lt, flat, *as_operand(step.size(total, "total")));
      const BodyPtr element = step.body([&](Builder& then) {
        Operands rows = element_at(screma, flat, then);
        rows.resize(neutral.size());  // a scan's mapped rows are made later
        return rows;
      });
      const std::vector<Value> folded = step.let_many(names, If{inside, element, make_body({}, neutral)});
      return std::vector<Operand>(folded.begin(), folded.end());
    });
    const std::vector<Value> parts = thread.let_many(names, std::move(fold));
    return std::vector<Operand>(parts.begin(), parts.end());
  });
  kernel.results.assign(neutral.size(), {.kind = KernelResult::Kind::returns, .extents = {}});
  return host.let_many(names, std::move(kernel));
}

// The same operators over arrays of partial results.
Screma over_parts(const Screma& screma, const std::vector<Value>& parts, const Poly& count, ValueTable& values) {
  Screma result{.widths = {count}, .indices = {values.add(Type::scalar(ScalarType::i64), "c")}, .inputs = parts};
  std::vector<Operand> rows;
  for (const Value part : parts) {
    const Value row = values.add(values.type(part).row(), values.name(part));
    result.map.params.push_back(row);
    rows.emplace_back(row);
  }
  result.map.body = make_body({}, std::move(rows));
  result.reduces = fresh_operators(screma, values);
  return result;
}

// Partial results of many chunks, and of few chunks of those.
struct Folded {
  Poly many, few;
  Screma of_parts;  // the operators over the partial results of many
  std::vector<Value> fewer;
};
Folded fold_twice(const Screma& screma, const std::string& parameter, const std::vector<std::string>& names,
                  Builder& host) {
  // Never more chunks than elements, but one if there is none: its partial result is the neutral element.
  const auto chunks_of = [&](const Poly& most, const Poly& elements) {
    return Poly(host.size(make_opaque(OpaqueKind::max, 1, make_opaque(OpaqueKind::min, most, elements)), "chunks"));
  };
  Folded result;
  const Value most = host.let("chunks", GetSize{parameter, SizeClass::grid_size, kChunks});
  result.many = chunks_of(most, product(screma.widths));
  const std::vector<Value> parts = fold_chunks(screma, result.many, names, host);
  result.of_parts = over_parts(screma, parts, result.many, host.values());
  result.few = chunks_of(kFewerChunks, result.many);
  result.fewer = fold_chunks(result.of_parts, result.few, names, host);
  return result;
}

// `screma`, a scan, in one kernel: chunk c starts with row c-1 of `ends`, what the chunks up to there gave. The results
// are arrays of the widths' shape; rows that `screma` maps are made, too.
std::vector<Value> scan_chunks(const Screma& screma, const Poly& chunks, const std::vector<Value>& ends,
                               const std::vector<std::string>& names, Builder& host) {
  ValueTable& values = host.values();
  const Poly total = product(screma.widths);
  const Poly per = host.size(ceil_div(total, chunks), "per_chunk");
  const Value c = values.add(Type::scalar(ScalarType::i64), "c");
  const Value k = values.add(Type::scalar(ScalarType::i64), "k");
  const Operands neutral = neutral_elements(screma);

  SegOp kernel{.level = SegLevel::thread, .space = {{c, chunks}}};
  kernel.body = host.body([&](Builder& thread) {
    const Value is_first = thread.compare(CompareOp::eq, Operand(c), i64_constant(0));
    const BodyPtr before = thread.body([&](Builder& other) {
      Operands rows;
      for (std::size_t n = 0; n < ends.size(); ++n) rows.emplace_back(other.index(ends[n], {Poly(c) - 1}, names[n]));
      return rows;
    });
    const std::vector<Value> starts = thread.let_many(names, If{is_first, make_body({}, neutral), before});
    Screma scan{.widths = {per}, .indices = {k}};
    scan.reduces = fresh_operators(screma, true, values);
    std::size_t next = 0;
    for (ReduceOp& reduce : scan.reduces)
      for (Operand& operand : reduce.neutral) operand = starts[next++];
    scan.map.body = thread.body([&](Builder& step) {
      const Value flat = step.size(Poly(c) * per + Poly(k), "at");
      const Value inside = step.compare(CompareOp::lt, flat, *as_operand(step.size(total, "total")));
      const BodyPtr element = step.body([&](Builder& then) { return element_at(screma, flat, then); });
      // What lies beyond the last element is dropped.
      Operands padding = neutral;
      for (std::size_t n = neutral.size(); n < element->results.size(); ++n)
        padding.emplace_back(Scalar::zero(values.type(element->results[n]).element));
      const std::vector<Value> rows = step.let_many(names, If{inside, element, make_body({}, padding)});
      return Operands(rows.begin(), rows.end());
    });
    const std::vector<Value> rows = thread.let_many(names, std::move(scan));
    return Operands(rows.begin(), rows.end());
  });
  kernel.results.assign(names.size(), {.kind = KernelResult::Kind::returns, .extents = {}});
  std::vector<Value> results;
  for (const Value rows : host.let_many(names, std::move(kernel))) {
    const Value flat = host.let(values.name(rows), Reshape{rows, {chunks * per}});
    const Value all = host.let(values.name(rows), Index{flat, {DimIndex::slice(0, total)}});
    results.push_back(screma.widths.size() == 1 ? all : host.let(values.name(rows), Reshape{all, screma.widths}));
  }
  return results;
}

}  // namespace

std::optional<std::vector<Stm>> make_chunked_scan(const Stm& stm, const std::string& parameter, ValueTable& values) {
  const Screma& screma = std::get<Screma>(stm.op);
  const auto scans = [](const ReduceOp& reduce) { return reduce.scan; };
  if (!std::ranges::all_of(screma.reduces, scans)) return std::nullopt;
  std::vector<std::string> names;
  for (std::size_t k = 0; k < stm.pattern.size(); ++k) {
    if (!values.type(screma.map.body->results[k]).is_scalar()) return std::nullopt;
    names.push_back(values.name(stm.pattern[k]));
  }
  const std::vector<std::string> parts_names(names.begin(),
                                             names.begin() + static_cast<std::ptrdiff_t>(screma.reduced_count()));
  Builder host(values);
  host.set_location(stm.location);
  const Folded folded = fold_twice(screma, parameter, parts_names, host);

  Screma last = over_parts(screma, folded.fewer, folded.few, values);
  Stm ends{.op = std::move(last), .location = stm.location};
  for (const Value part : folded.fewer) ends.pattern.push_back(values.add(values.type(part), values.name(part)));
  const std::vector<Value> ends_of_few = ends.pattern;
  host.append(make_serial_kernel(ends, values));
  const std::vector<Value> ends_of_many = scan_chunks(folded.of_parts, folded.few, ends_of_few, parts_names, host);
  const std::vector<Value> results = scan_chunks(screma, folded.many, ends_of_many, names, host);
  std::vector<Stm> result = host.take();
  for (std::size_t k = 0; k < results.size(); ++k)
    result.push_back({.pattern = {stm.pattern[k]}, .op = Use{Operand(results[k])}, .location = stm.location});
  for (Stm& made : result) made.certificates = stm.certificates;
  return result;
}

std::optional<std::vector<Stm>> make_chunked_reduction(const Stm& stm, const std::string& parameter,
                                                       ValueTable& values) {
  const Screma& screma = std::get<Screma>(stm.op);
  if (screma.map.body->results.size() != screma.reduced_count()) return std::nullopt;
  std::vector<std::string> names;
  for (const Value v : stm.pattern) {
    if (!values.type(v).is_scalar()) return std::nullopt;
    names.push_back(values.name(v));
  }
  Builder host(values);
  host.set_location(stm.location);
  const Folded folded = fold_twice(screma, parameter, names, host);

  Stm last = stm;
  last.op = over_parts(screma, folded.fewer, folded.few, values);
  std::vector<Stm> result = host.take();
  for (Stm& made : result) made.certificates = stm.certificates;
  result.push_back(make_serial_kernel(last, values));
  return result;
}

}  // namespace apl
