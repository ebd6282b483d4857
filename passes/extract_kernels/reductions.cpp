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
// A chunk is every chunks-th element if the operators commute, so that neighbouring threads read neighbouring
// elements; else it is contiguous, since operators are only associative.
#include "passes/extract_kernels/reductions.h"

#include <algorithm>

#include "ir/builder.h"
#include "ir/walk.h"
#include "passes/extract_kernels/nest.h"

namespace apl {

namespace {

constexpr std::int64_t kChunks = 16384;  // enough threads to keep a GPU's memory busy
constexpr std::int64_t kFewerChunks = 128;

std::vector<ReduceOp> fresh_operators(const Screma& screma, ValueTable& values) {
  std::vector<ReduceOp> result;
  for (const ReduceOp& reduce : screma.reduces)
    result.push_back({copy_fresh(reduce.op, {}, values, values), reduce.neutral, reduce.commutative});
  return result;
}

bool commutes(const ReduceOp& reduce) {
  if (reduce.commutative) return true;
  const std::optional<BinaryOp> op = as_binary_op(reduce.op);
  return op && is_commutative(*op);
}

// One array of partial results an operand of `screma`, `chunks` long.
std::vector<Value> fold_chunks(const Screma& screma, const Poly& chunks, const std::vector<std::string>& names,
                               Builder& host) {
  ValueTable& values = host.values();
  const Poly total = product(screma.widths);
  const Poly per = host.size(ceil_div(total, chunks), "per_chunk");
  const Value c = values.add(Type::scalar(ScalarType::i64), "c");
  const Value k = values.add(Type::scalar(ScalarType::i64), "k");
  const bool strided = std::ranges::all_of(screma.reduces, commutes);
  std::vector<Operand> neutral;
  for (const ReduceOp& reduce : screma.reduces)
    neutral.insert(neutral.end(), reduce.neutral.begin(), reduce.neutral.end());

  SegOp kernel{.level = SegLevel::thread, .space = {{c, chunks}}};
  kernel.body = host.body([&](Builder& thread) {
    Screma fold{.widths = {per}, .indices = {k}};
    fold.reduces = fresh_operators(screma, values);
    fold.map.body = thread.body([&](Builder& step) {
      const Value flat = step.size(strided ? Poly(k) * chunks + Poly(c) : Poly(c) * per + Poly(k), "at");
      const Value inside = step.compare(CompareOp::lt, flat, *as_operand(step.size(total, "total")));
      const BodyPtr element = step.body([&](Builder& then) {
        Substitution map;
        std::vector<Poly> at;
        Poly below = total;
        for (std::size_t d = 0; d < screma.widths.size(); ++d) {
          // Row-major: the index of dim d is what the dims behind it leave over.
          Poly behind = 1;
          for (std::size_t e = d + 1; e < screma.widths.size(); ++e) behind *= screma.widths[e];
          const Poly rest = d == 0 ? Poly(flat) : remainder(Poly(flat), below);
          const Value index = then.size(d + 1 == screma.widths.size() ? rest : floor_div(rest, behind), "i");
          at.emplace_back(index);
          map.insert_or_assign(screma.indices[d], Operand(index));
          below = behind;
        }
        for (std::size_t n = 0; n < screma.inputs.size(); ++n)
          map.insert_or_assign(screma.map.params[n],
                               Operand(then.index(screma.inputs[n], at, values.name(screma.map.params[n]))));
        const BodyPtr body = copy_fresh(screma.map.body, map, values, values);
        then.append_all(body->stms);
        return body->results;
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

}  // namespace

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
  // Never more chunks than elements, but one if there is none: its partial result is the neutral element.
  const auto chunks_of = [&](const Poly& most, const Poly& elements, const char* name) {
    return Poly(host.size(make_opaque(OpaqueKind::max, 1, make_opaque(OpaqueKind::min, most, elements)), name));
  };
  const Value most = host.let("chunks", GetSize{parameter, SizeClass::grid_size, kChunks});
  const Poly many = chunks_of(most, product(screma.widths), "chunks");
  const std::vector<Value> parts = fold_chunks(screma, many, names, host);
  const Poly few = chunks_of(kFewerChunks, many, "chunks");
  const std::vector<Value> fewer = fold_chunks(over_parts(screma, parts, many, values), few, names, host);

  Stm last = stm;
  last.op = over_parts(screma, fewer, few, values);
  std::vector<Stm> result = host.take();
  for (Stm& made : result) made.certificates = stm.certificates;
  result.push_back(make_serial_kernel(last, values));
  return result;
}

}  // namespace apl
