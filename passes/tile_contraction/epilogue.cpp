// The epilogue, code after the reduction: an inblock SegMap in which every thread goes through its register tile,
//
//   out = segmap(inblock) (t_a < T_a, t_b < T_b) {
//     row = acc[t_a, t_b]
//     scaled = map(r_a < R_a, r_b < R_b, {row}, \{c} -> {
//       a_at = size(b_a*T_a*R_a + t_a*R_a + r_a) ...
//       inside = a_at < a && b_at < b
//       y = if inside { the epilogue, at this index } else { zeros }
//       in {y} })
//     return {private scaled}
//   }
//
// What the code reads lies inside its arrays where the index is in range; elsewhere the result is dropped anyway.
#include <range/v3/view/zip.hpp>

#include "passes/tile_contraction/tile.h"

namespace apl::tile {
namespace {

Operand inside_both(Builder& builder, const std::optional<Operand>& a, Operand b) {
  return a ? Operand(builder.binary(BinaryOp::conj, *a, b, "inside")) : b;
}

}  // namespace

std::vector<Value> make_epilogue(Builder& builder, const Block& block, const std::vector<Value>& accumulators) {
  const Contraction& contraction = block.contraction;
  ValueTable& values = builder.values();
  const auto index_value = [&](const std::string& name) { return values.add(Type::scalar(ScalarType::i64), name); };
  SegOp threads;
  threads.level = SegLevel::inblock;
  Screma each;
  std::vector<DimIndex> mine;
  std::vector<Poly> at;  // the position along each axis
  for (const auto& [tiles, start] : ranges::views::zip(block.space, block.starts)) {
    const Value thread = index_value("t"), reg = index_value("r");
    threads.space.push_back({thread, tiles.tile});
    mine.push_back(DimIndex::fix(Poly(thread)));
    each.widths.push_back(tiles.reg);
    each.indices.push_back(reg);
    at.push_back(tiles.extent().is_one() ? start : start + Poly(thread) * tiles.reg + Poly(reg));
  }
  threads.body = builder.body([&](Builder& thread) {
    std::vector<Type> types;
    std::vector<std::string> names;
    for (Value acc : accumulators) {
      each.inputs.push_back(thread.let("row", Index{acc, mine}));
      types.push_back(Type::scalar(values.type(acc).element));
      names.push_back(values.name(acc));
    }
    each.map = thread.lambda(types, names, [&](Builder& element, const std::vector<Value>& reduced) {
      Substitution indices = block.uniform;
      std::optional<Operand> inside;
      for (std::size_t x = 0; x < block.space.size(); ++x) {
        const std::vector<std::size_t>& dims = block.axes[x];
        Poly position = at[x];
        if (!block.space[x].extent().is_one()) {
          const Value here = element.size(position, "at");
          const auto bound = as_operand(block.sizes[x]);
          const Operand size = bound ? *bound : Operand(element.size(block.sizes[x], "size"));
          inside = inside_both(element, inside, element.compare(CompareOp::lt, here, size, "inside"));
          position = Poly(here);
        }
        std::vector<Poly> shape;
        for (std::size_t d : dims) shape.push_back(contraction.dims[d].size);
        const std::vector<Poly> split = dims.size() == 1 ? std::vector{position} : unflatten_index(position, shape);
        for (std::size_t k = 0; k < dims.size(); ++k) {
          const ContractionDim& dim = contraction.dims[dims[k]];
          const auto known = as_operand(split[k]);
          indices.insert_or_assign(dim.index, known ? *known : Operand(element.size(split[k], dim.name + "_at")));
        }
      }
      const Lambda after = copy_fresh(*contraction.after, indices, values, values);
      Substitution parameters;
      for (const auto& [param, value] : ranges::views::zip(after.params, reduced))
        parameters.insert_or_assign(param, Operand(value));
      const BodyPtr code = substitute(after.body, parameters, values);
      if (!inside) {
        element.append_all(code->stms);
        return code->results;
      }
      If guarded{*inside, code, {}};
      std::vector<Operand> zeros;
      std::vector<Type> scalars;
      for (const Operand& result : code->results) {
        scalars.push_back(values.type(result));
        zeros.emplace_back(Scalar::zero(scalars.back().element));
      }
      guarded.else_body = make_body({}, std::move(zeros));
      const std::vector<Value> results = element.let_typed({"y"}, scalars, std::move(guarded));
      return std::vector<Operand>(results.begin(), results.end());
    });
    const std::vector<Value> rows = thread.let_many({"after"}, std::move(each));
    return std::vector<Operand>(rows.begin(), rows.end());
  });
  threads.results.assign(contraction.after->body->results.size(), {KernelResult::Kind::private_, {}});
  return builder.let_many({"after"}, std::move(threads));
}

}  // namespace apl::tile
