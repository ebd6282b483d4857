#include "passes/extract_kernels/histogram_parts.h"

#include <range/v3/view/zip.hpp>

#include "ir/walk.h"
#include "passes/extract_kernels/reductions.h"

namespace apl {

HistogramParts::HistogramParts(const Stm& kernel, ValueTable& values)
    : op(std::get<Scatter>(kernel.op)), values_(values), kernel_(kernel) {
  while (is_segment(leading)) ++leading;
  const std::vector<Poly>& shape = values.type(op.targets.front()).shape;
  const auto rank = static_cast<std::ptrdiff_t>(op.rank), first = static_cast<std::ptrdiff_t>(leading);
  segments.assign(op.widths.begin(), op.widths.begin() + first);
  widths.assign(op.widths.begin() + first, op.widths.end());
  bins.assign(shape.begin() + first, shape.begin() + rank);
  for (const Value target : op.targets) names.push_back(values.name(target));
}

// Its index is that of the space: threads of different ones fold into different elements.
bool HistogramParts::is_segment(std::size_t d) const {
  if (d + 1 >= op.widths.size() || d + 1 >= op.rank) return false;
  return op.map.body->results[d] == Operand(op.indices[d]) && values_.type(op.targets.front()).shape[d] == op.widths[d];
}

ReduceOp HistogramParts::fresh_operator() const {
  return {copy_fresh(op.op->op, {}, values_, values_), op.op->neutral, true, false};
}

std::vector<SegDim> HistogramParts::space(Substitution& here) const {
  std::vector<SegDim> result;
  for (std::size_t d = 0; d < leading; ++d) {
    const Value index = fresh_index(values_.name(op.indices[d]));
    here.insert_or_assign(op.indices[d], Operand(index));
    result.push_back({index, segments[d]});
  }
  return result;
}

HistogramParts::Operands HistogramParts::row(Value flat, const Substitution& segment, Builder& out) const {
  Substitution here = segment;
  std::size_t d = leading;
  for (const Value index : split_index(widths, flat, out)) here.insert_or_assign(op.indices[d++], Operand(index));
  const BodyPtr body = copy_fresh(op.map.body, here, values_, values_);
  out.append_all(body->stms);
  return {body->results.begin() + static_cast<std::ptrdiff_t>(leading), body->results.end()};
}

HistogramParts::Operands HistogramParts::placed_row(Value flat, const Substitution& segment, Builder& out,
                                                    const BinPosition& position) const {
  const Operands all = row(flat, segment, out);
  Operands result{bin_of(all, out, position)};
  result.insert(result.end(), all.begin() + static_cast<std::ptrdiff_t>(bins.size()), all.end());
  return result;
}

Operand HistogramParts::bin_of(const Operands& row, Builder& out, const BinPosition& position) const {
  std::optional<Value> inside;
  Poly flat;
  const auto both = [&](Value test) { inside = inside ? out.binary(BinaryOp::conj, *inside, test, "inside") : test; };
  for (const auto& [count, at] : ranges::views::zip(bins, row)) {
    both(out.compare(CompareOp::le, i64_constant(0), at));
    both(out.compare(CompareOp::lt, at, *as_operand(out.size(count, "bound"))));
    flat = flat * count + as_poly(at);
  }
  const BodyPtr found = out.body([&](Builder& then) { return Operands{then.size(position(flat), "bin")}; });
  return out.let("bin", If{*inside, found, make_body({}, {i64_constant(-1)})});
}

HistogramParts::Operands HistogramParts::merged(const std::vector<Value>& copies, const std::vector<Poly>& parts,
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
  if (!of_sums.least.empty()) of_sums.most = 1;
  host.append_all(make_chunked_reduction(sums, each, of_sums, values_));
  return into_targets(sums.pattern, host);
}

HistogramParts::Operands HistogramParts::into_targets(const std::vector<Value>& sums, Builder& host) const {
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
    std::vector<Poly> position = at;
    position.emplace_back(thread.size(flat, "bin"));
    for (std::size_t k = 0; k < count(); ++k) results.emplace_back(thread.index(sums[k], position, names[k]));
    return results;
  });
  last.op = fresh_operator();
  const std::vector<Value> made = host.let_many(names, std::move(last));
  return {made.begin(), made.end()};
}

std::vector<Stm> HistogramParts::either(const std::string& prefix, const std::string& name, Value pays,
                                        const BodyPtr& then, Builder& host) const {
  Substitution none;
  const BodyPtr as_it_is =
      copy_fresh(make_body({kernel_}, {kernel_.pattern.begin(), kernel_.pattern.end()}), none, values_, values_);
  const std::vector<Value> results = host.let_many(
      names,
      Choose{Choose::By::first, prefix + ".variant", {{name, pays, then}, {"whole", Scalar::boolean(true), as_it_is}}});
  return bound_to(kernel_, results, host);
}

}  // namespace apl
