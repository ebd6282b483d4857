// Sums over the tiles of a plan, all tiles at once. Tiles of one row add to one element, so each kernel is a `hist`
// into sums that start as the neutral element:
//
//   let {zeros : [n][b]f32} = segmap(thread) (i < n, j < b) { return {returns 0} }
//   let {C : [n][b]f32} =
//     hist(t < A_block_rows + A_ell_rows + A_segment_rows, j < b, {}, \{} -> {
//         row, c = if t < A_block_rows { a row of a block: the sum over its 16 columns }
//                  else { if t - A_block_rows < A_ell_rows { an ELL row } else { what a segment has of a row } }
//         in {row, j, c}
//       }, {zeros} at 2, add)
//
// or, unfused, three of them, each for one kind of tiles. Elements of tiles say which non-zero they are; padding (-1)
// is the neutral element, as absent elements are. Rows of blocks beyond the matrix are -1, too: `hist` drops them, and
// nothing is read there, since all of their elements are padding.
#include "ir/attributes.h"
#include "ir/walk.h"
#include "passes/sparsify/sums.h"

namespace apl::sparsify {
namespace {

struct TileFields {
  SoaExtent rows;
  SoaField row, start, column, source;
};

// Blocks have no starts: their rows have kBlockWidth elements each.
TileFields fields_of(TileKind kind) {
  using F = SoaField;
  switch (kind) {
    case TileKind::blocks:
      return {SoaExtent::block_rows, F::block_row, F::block_step, F::block_column, F::block_source};
    case TileKind::ell: return {SoaExtent::ell_rows, F::ell_row, F::ell_start, F::ell_column, F::ell_source};
    case TileKind::segments: break;
  }
  return {SoaExtent::segment_rows, F::segment_row, F::segment_start, F::segment_column, F::segment_source};
}

}  // namespace

std::vector<std::vector<TileKind>> tile_kernels(bool fused) {
  if (fused) return {{TileKind::blocks, TileKind::ell, TileKind::segments}};
  return {{TileKind::blocks}, {TileKind::ell}, {TileKind::segments}};
}

std::vector<Operand> branch_on_tiles(const std::vector<TileKind>& kinds, const std::vector<Poly>& counts,
                                     const Poly& at, const std::vector<std::string>& names,
                                     const std::vector<Type>& types, Builder& out,
                                     const std::function<std::vector<Operand>(TileKind, const Poly&, Builder&)>& leaf) {
  if (kinds.size() == 1) return leaf(kinds.front(), at, out);
  const auto operand = [&](const Poly& poly, const char* name) {
    const auto known = as_operand(poly);
    return known ? *known : Operand(out.size(poly, name));
  };
  If choice;
  choice.condition = out.compare(CompareOp::lt, operand(at, "tile"), operand(counts.front(), "count"), "here");
  choice.then_body = out.body([&](Builder& inner) { return leaf(kinds.front(), at, inner); });
  choice.else_body = out.body([&](Builder& inner) {
    return branch_on_tiles({kinds.begin() + 1, kinds.end()}, {counts.begin() + 1, counts.end()}, at - counts.front(),
                           names, types, inner, leaf);
  });
  const std::vector<Value> results = out.let_typed(names, types, std::move(choice));
  return {results.begin(), results.end()};
}

std::vector<Operand> Sums::tile_row(TileKind kind, const Poly& at, Substitution here, Builder& out) {
  const TileFields fields = fields_of(kind);
  const auto read = [&](Builder& body, SoaField field, const Poly& where) {
    return body.index(pattern_.field(field), {where}, std::string(to_text(field)));
  };
  const Value row = out.convert(ScalarType::i64, read(out, fields.row, at), "row");
  here.insert_or_assign(contraction_.dims[own_].index, Operand(row));
  // Where the row's columns and sources begin, and how many there are.
  Poly columns, sources, width = kBlockWidth;
  if (kind == TileKind::blocks) {
    columns = kBlockWidth * Poly(out.convert(ScalarType::i64, read(out, fields.start, at), "step"));
    sources = kBlockWidth * at;
  } else {
    columns = sources = Poly(read(out, fields.start, at));
    width = Poly(out.size(Poly(read(out, fields.start, at + 1)) - sources, "count"));
  }
  Screma sum;
  for (std::size_t d = contraction_.space_rank; d < contraction_.dims.size(); ++d) {
    sum.widths.push_back(d == summed_ ? width : contraction_.dims[d].size);
    sum.indices.push_back(index_value(d == summed_ ? "p" : values_.name(contraction_.dims[d].index)));
    here.insert_or_assign(contraction_.dims[d].index, Operand(sum.indices.back()));
  }
  const Poly p(sum.indices[summed_ - contraction_.space_rank]);
  std::vector<Type> types;
  for (const Operand& neutral : contraction_.reduce.neutral) types.push_back(values_.type(neutral));
  const auto term_of = [&](Value source, Builder& body) {
    const std::string& name = values_.name(contraction_.dims[summed_].index);
    const Value other = body.convert(ScalarType::i64, read(body, fields.column, columns + p), name);
    const Value nonzero = body.convert(ScalarType::i64, source, "nonzero");
    return term(elements_at(other, Poly(nonzero), here, body), here, body);
  };
  sum.map.body = out.body([&](Builder& element) {
    const Value source = read(element, fields.source, sources + p);
    if (kind == TileKind::segments) return term_of(source, element);  // nothing is padded
    If there;
    there.condition = element.compare(CompareOp::le, Operand(Scalar::integer(ScalarType::i32, 0)), source, "there");
    there.then_body = element.body([&](Builder& body) { return term_of(source, body); });
    there.else_body = make_body({}, contraction_.reduce.neutral);
    const std::vector<Value> terms = element.let_typed({"term"}, types, std::move(there));
    return std::vector<Operand>(terms.begin(), terms.end());
  });
  ReduceOp reduce = contraction_.reduce;
  reduce.op = copy_fresh(contraction_.reduce.op, here, values_, values_);
  sum.reduces = {std::move(reduce)};
  std::vector<Operand> results{Operand(row)};
  for (const Value part : out.let_many({"part"}, std::move(sum))) results.emplace_back(part);
  return results;
}

Scatter Sums::tile_kernel(const std::vector<TileKind>& kinds, const std::vector<Value>& targets) {
  Scatter made{.widths = {}, .indices = {}, .inputs = {}, .map = {}, .rank = contraction_.space_rank};
  made.targets = targets;
  std::vector<Poly> counts;
  Poly all;
  for (const TileKind kind : kinds) {
    counts.push_back(pattern_.sizes.counts.at(fields_of(kind).rows));
    all += counts.back();
  }
  Substitution here;
  for (std::size_t d = 0; d < contraction_.space_rank; ++d) {
    const ContractionDim& dim = contraction_.dims[d];
    made.widths.push_back(d == own_ ? all : dim.size);
    made.indices.push_back(index_value(d == own_ ? "t" : values_.name(dim.index)));
    if (d != own_) here.insert_or_assign(dim.index, Operand(made.indices.back()));
  }
  std::vector<Type> types{Type::scalar(ScalarType::i64)};
  std::vector<std::string> names{"row"};
  for (const Operand& neutral : contraction_.reduce.neutral) {
    types.push_back(values_.type(neutral));
    names.emplace_back("part");
  }
  made.map.body = host_.body([&](Builder& thread) {
    const std::vector<Operand> parts =
        branch_on_tiles(kinds, counts, Poly(made.indices[own_]), names, types, thread,
                        [&](TileKind kind, const Poly& at, Builder& out) { return tile_row(kind, at, here, out); });
    std::vector<Operand> results;
    for (std::size_t d = 0; d < contraction_.space_rank; ++d)
      results.push_back(d == own_ ? parts.front() : Operand(made.indices[d]));
    results.insert(results.end(), parts.begin() + 1, parts.end());
    return results;
  });
  made.op = contraction_.reduce;
  made.op->op = copy_fresh(contraction_.reduce.op, {}, values_, values_);
  return made;
}

void Sums::tiles(const Stm& kernel, bool fused) {
  const std::size_t count = contraction_.reduce.neutral.size();
  bool as_they_are = !contraction_.after && contraction_.results.size() == count;
  for (std::size_t r = 0; r < contraction_.results.size() && as_they_are; ++r)
    as_they_are = contraction_.results[r] == r;

  std::vector<Value> sums;
  for (const Operand& neutral : contraction_.reduce.neutral) {
    SegOp fill;
    open_space(fill, contraction_.space_rank);
    fill.body = make_body({}, {neutral});
    fill.results = {{KernelResult::Kind::returns, {}}};
    sums.push_back(host_.let("neutral", std::move(fill)));
  }
  const auto kernels = tile_kernels(fused);
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    Stm made = kernel;
    made.op = tile_kernel(kernels[k], sums);
    if (k + 1 < kernels.size() || !as_they_are) {
      made.pattern.clear();
      for (const Value target : sums) made.pattern.push_back(values_.add(values_.type(target), "sums"));
    }
    sums = made.pattern;
    host_.append(std::move(made));
  }
  if (as_they_are) return;

  SegOp after;
  open_space(after, contraction_.space_rank);
  std::vector<Poly> at;
  for (const SegDim& dim : after.space) at.emplace_back(dim.index);
  after.body = host_.body([&](Builder& thread) {
    std::vector<Operand> elements;
    for (const Value array : sums) elements.emplace_back(thread.index(array, at, "sum"));
    return epilogue(elements, here_, thread);
  });
  after.results.assign(after.body->results.size(), {KernelResult::Kind::returns, {}});
  Stm last = kernel;
  erase_attribute(last.attributes, attribute::sparse_product);
  last.op = std::move(after);
  host_.append(std::move(last));
}

}  // namespace apl::sparsify
