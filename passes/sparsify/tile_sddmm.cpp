// Samples over the elements of tiles: a `scatter`, since no two elements are the same non-zero, and every non-zero is
// one.
//
//   let {S_values : [A_nonzeros]f32} =
//     scatter(e < 16*A_block_rows + A_ell_elements + A_segment_elements, {}, \{} -> {
//         row, column, source = if e < 16*A_block_rows { an element of a block } else { of an ELL row, or of a segment
//         } s = if 0 <= source { the kernel's body for A[row, column] } else { 0 } in {source, s}
//       }, {scratch} at 1)
#include <range/v3/view/zip.hpp>

#include "ir/walk.h"
#include "passes/sparsify/sparsify.h"

namespace apl::sparsify {
namespace {

class TileSddmm {
 public:
  TileSddmm(const Sddmm& sddmm, const std::vector<SegDim>& space, const Pattern& pattern, Builder& host)
      : sddmm_(sddmm), space_(space), pattern_(pattern), host_(host), values_(host.values()) {
    for (const Scalar& elsewhere : sddmm.elsewhere) types_.push_back(Type::scalar(elsewhere.type()));
  }

  std::vector<Value> run(bool fused) {
    std::vector<Value> targets;
    const std::vector<Type> types = result_types(sddmm_.kernel.op, values_);
    for (const Type& type : types) targets.push_back(host_.let("unset", Scratch{type.element, type.shape}));
    for (const std::vector<TileKind>& kinds : tile_kernels(fused)) {
      Stm made = sddmm_.kernel;
      made.op = kernel(kinds, targets);
      made.pattern.clear();
      for (const auto& [type, name] : ranges::views::zip(types, sddmm_.names))
        made.pattern.push_back(values_.add(type, name));
      targets = made.pattern;
      host_.append(std::move(made));
    }
    return targets;
  }

 private:
  Poly count(TileKind kind) const {
    const auto& counts = pattern_.sizes.counts;
    switch (kind) {
      case TileKind::blocks: return kBlockWidth * counts.at(SoaExtent::block_rows);
      case TileKind::ell: return counts.at(SoaExtent::ell_elements);
      case TileKind::segments: break;
    }
    return counts.at(SoaExtent::segment_elements);
  }

  Value read(SoaField field, const Poly& at, Builder& out) const {
    return out.index(pattern_.field(field), {at}, std::string(to_text(field)));
  }

  // Row, column and source (i32) of an element.
  std::vector<Operand> element(TileKind kind, const Poly& at, Builder& out) const {
    using F = SoaField;
    if (kind == TileKind::ell)
      return {read(F::ell_element_row, at, out), read(F::ell_column, at, out), read(F::ell_source, at, out)};
    if (kind == TileKind::segments)
      return {read(F::segment_element_row, at, out), read(F::segment_column, at, out),
              read(F::segment_source, at, out)};
    const Poly row = out.size(floor_div(at, kBlockWidth), "block_row");
    const Value step = out.convert(ScalarType::i64, read(F::block_step, row, out), "step");
    const Poly column = kBlockWidth * Poly(step) + at - kBlockWidth * row;
    return {read(F::block_row, row, out), read(F::block_column, column, out), read(F::block_source, at, out)};
  }

  Scatter kernel(const std::vector<TileKind>& kinds, const std::vector<Value>& targets) {
    Scatter made{.widths = {}, .indices = {}, .inputs = {}, .map = {}, .rank = space_.size() - 1};
    made.targets = targets;
    std::vector<Poly> counts;
    Poly all;
    for (const TileKind kind : kinds) {
      counts.push_back(count(kind));
      all += counts.back();
    }
    Substitution others;
    Poly at;
    for (std::size_t d = 0; d < space_.size(); ++d) {
      if (d == sddmm_.column_dim) continue;
      const bool elements = d == sddmm_.row_dim;
      made.widths.push_back(elements ? all : space_[d].bound);
      made.indices.push_back(
          values_.add(Type::scalar(ScalarType::i64), elements ? "e" : values_.name(space_[d].index)));
      if (elements) at = Poly(made.indices.back());
      if (!elements) others.insert_or_assign(space_[d].index, Operand(made.indices.back()));
    }
    made.map.body = host_.body([&](Builder& thread) { return element_and_results(kinds, counts, at, others, thread); });
    return made;
  }

  std::vector<Operand> element_and_results(const std::vector<TileKind>& kinds, const std::vector<Poly>& counts,
                                           const Poly& at, const Substitution& others, Builder& thread) {
    const Type index = Type::scalar(ScalarType::i32);
    const std::vector<Operand> found =
        branch_on_tiles(kinds, counts, at, {"row", "column", "source"}, {index, index, index}, thread,
                        [&](TileKind kind, const Poly& here, Builder& out) { return element(kind, here, out); });
    const Value source = thread.convert(ScalarType::i64, found[2], "nonzero");
    If there;
    there.condition = thread.compare(CompareOp::le, i64_constant(0), source, "there");
    there.then_body = thread.body([&](Builder& out) {
      const Value row = out.convert(ScalarType::i64, found[0], values_.name(sddmm_.location.row));
      const Value column = out.convert(ScalarType::i64, found[1], values_.name(sddmm_.location.column));
      return sddmm_at(sddmm_, row, column, source, others, out);
    });
    std::vector<Operand> elsewhere;
    for (const Scalar& x : sddmm_.elsewhere) elsewhere.emplace_back(x);
    there.else_body = make_body({}, std::move(elsewhere));
    const std::vector<Value> samples = thread.let_typed({"sample"}, types_, std::move(there));
    std::vector<Operand> results;
    for (std::size_t d = 0; d < space_.size(); ++d)
      if (d != sddmm_.column_dim) results.push_back(d == sddmm_.row_dim ? Operand(source) : others.at(space_[d].index));
    results.insert(results.end(), samples.begin(), samples.end());
    return results;
  }

  const Sddmm& sddmm_;
  const std::vector<SegDim>& space_;
  const Pattern& pattern_;
  Builder& host_;
  ValueTable& values_;
  std::vector<Type> types_;
};

}  // namespace

std::vector<Value> sddmm_tiles(const Sddmm& sddmm, const std::vector<SegDim>& space, const Pattern& pattern, bool fused,
                               Builder& host) {
  return TileSddmm(sddmm, space, pattern, host).run(fused);
}

}  // namespace apl::sparsify
