// Sparse arrays as dense ones: filled with what stands elsewhere, then the non-zeros are written.
#include "passes/sparsify/sparsify.h"

namespace apl::sparsify {

void make_dense(Value result, Value nonzeros, const Pattern& pattern, const std::vector<SegDim>& space,
                std::size_t row_dim, std::size_t column_dim, const Scalar& elsewhere, Builder& host) {
  ValueTable& values = host.values();
  const auto fresh = [&](const std::string& name) { return values.add(Type::scalar(ScalarType::i64), name); };
  SegOp fill{.level = SegLevel::thread, .space = {}, .body = {}, .results = {{KernelResult::Kind::returns, {}}}};
  std::vector<Poly> shape;
  for (const SegDim& dim : space) {
    fill.space.push_back({fresh(values.name(dim.index)), dim.bound});
    shape.push_back(dim.bound);
  }
  fill.body = make_body({}, {Operand(elsewhere)});
  const Type type = Type::array(elsewhere.type(), shape);
  const Value empty = host.let_typed({values.name(result) + "_fill"}, {type}, std::move(fill)).front();

  Scatter write{.rank = space.size(), .targets = {empty}};
  std::vector<DimIndex> at;
  for (std::size_t d = 0; d < space.size(); ++d) {
    if (d == column_dim) continue;
    const Value index = fresh(d == row_dim ? "e" : values.name(space[d].index));
    write.widths.push_back(d == row_dim ? pattern.nonzeros : space[d].bound);
    write.indices.push_back(index);
    at.push_back(DimIndex::fix(Poly(index)));
  }
  write.map.body = host.body([&](Builder& body) {
    std::vector<Operand> results;
    std::size_t next = 0;
    std::optional<Value> nonzero;
    for (std::size_t d = 0; d < space.size(); ++d) {
      if (d == column_dim) {
        results.emplace_back(Value{});
        continue;
      }
      const Value index = write.indices[next++];
      if (d == row_dim) nonzero = index;
      results.emplace_back(index);
    }
    for (const auto& [dim, field] : {std::pair{row_dim, SoaField::row}, std::pair{column_dim, SoaField::column}})
      results[dim] = body.convert(
          ScalarType::i64, body.index(pattern.field(field), {Poly(*nonzero)}, std::string(to_text(field))), "at");
    results.emplace_back(body.let("x", Index{nonzeros, at}));
    return results;
  });
  host.append({.pattern = {result}, .op = std::move(write)});
}

}  // namespace apl::sparsify
