// Split reductions, for few results of long sums: the outermost reduction dim is cut into equal parts, a dim of the
// grid,
//
//   partial : [splits][m][n] = the tiled contraction over floor_div(q, splits) steps, for each part
//   C = segmap(thread) (i < m, j < n) {
//     sum  = reduce(s < splits, {partial[.., i, j]}, op)
//     remainder = redomap(k < q - splits*floor_div(q, splits), {}, map, op)     what is left over
//     return {op(sum, remainder), with the epilogue}
//   }
//
// Parts follow each other in the order of the reduction, so that any associative operator will do. Where operands would
// be read scattered the contraction is that of transposed ones (transposed.cpp), in the parts and in what joins them.
#include <range/v3/view/zip.hpp>

#include "passes/tile_contraction/tile.h"

namespace apl::tile {
namespace {

Poly split_part_length(const Contraction& contraction, const Poly& splits) {
  return floor_div(contraction.dims[contraction.space_rank].size, splits);
}

std::vector<Operand> lambda_applied(const Lambda& lambda, const std::vector<Operand>& arguments, Builder& out) {
  const Lambda fresh = copy_fresh(lambda, {}, out.values(), out.values());
  return inline_lambda(fresh, arguments, out.values(), out.stms());
}

}  // namespace

bool may_split(const Contraction& contraction) {
  constexpr std::int64_t kShort = 64;
  const auto size = contraction.dims[contraction.space_rank].size.constant();
  return !size || *size >= kShort;
}

Contraction split_part(const Contraction& contraction, const Poly& splits, ValueTable& values) {
  Contraction part = contraction;
  const std::size_t cut = contraction.space_rank;
  const Poly length = split_part_length(contraction, splits);
  const Value index = values.add(Type::scalar(ScalarType::i64), "part");
  part.dims[cut].size = length;
  part.dims.insert(part.dims.begin(), {index, splits, DimClass::batch, "part"});
  ++part.space_rank;
  for (auto* operands : {&part.operands, &part.uniform})
    for (ContractionOperand& operand : *operands) {
      for_each_affine(operand, [&](const Poly&, std::vector<Poly>& strides) {
        const Poly along = strides[cut] * length;
        strides.insert(strides.begin(), along);
      });
      for (int& axis : operand.axes) ++axis;
      operand.exact = false;
      if (operand.varies(0)) operand.axes.insert(operand.axes.begin(), 0);
    }
  part.after.reset();
  part.results.clear();
  for (std::size_t k = 0; k < part.reduce.neutral.size(); ++k) part.results.push_back(k);
  return part;
}

SegOp join_parts(const Contraction& contraction, const Poly& splits, const std::vector<Value>& partial, Builder& host) {
  ValueTable& values = host.values();
  const auto index_value = [&](const std::string& name) { return values.add(Type::scalar(ScalarType::i64), name); };
  std::vector<FlatOperand> arrays, uniform;
  for (const ContractionOperand& operand : contraction.operands) arrays.push_back(flat_operand(operand, host));
  for (const ContractionOperand& operand : contraction.uniform) uniform.push_back(flat_operand(operand, host));

  SegOp kernel{.level = SegLevel::thread};
  Substitution here;
  std::vector<DimIndex> mine{DimIndex::slice(0, splits)};
  for (std::size_t d = 0; d < contraction.space_rank; ++d) {
    const ContractionDim& dim = contraction.dims[d];
    const Value index = index_value(dim.name);
    kernel.space.push_back({index, dim.size});
    here.insert_or_assign(dim.index, Operand(index));
    mine.push_back(DimIndex::fix(Poly(index)));
  }
  kernel.body = host.body([&](Builder& thread) {
    Screma sums;
    sums.widths = {splits};
    sums.indices = {index_value("part")};
    std::vector<Type> types;
    std::vector<std::string> names;
    for (std::size_t k = 0; k < partial.size(); ++k) {
      sums.inputs.push_back(thread.let("parts", Index{partial[k], mine}));
      types.push_back(Type::scalar(values.type(partial[k]).element));
      names.push_back("sum");
    }
    sums.map = thread.lambda(types, names, [](Builder&, const std::vector<Value>& elements) {
      return std::vector<Operand>(elements.begin(), elements.end());
    });
    const auto operation = [&] {
      ReduceOp reduce = contraction.reduce;
      reduce.op = copy_fresh(contraction.reduce.op, here, values, values);
      return reduce;
    };
    sums.reduces = {operation()};
    std::vector<Value> reduced = thread.let_many({"sum"}, std::move(sums));

    // What is left over, from the start of the cut dim on.
    Screma remainder;
    Substitution element = here;
    for (std::size_t d = contraction.space_rank; d < contraction.dims.size(); ++d) {
      const Poly& size = contraction.dims[d].size;
      const Poly done = d == contraction.space_rank ? splits * split_part_length(contraction, splits) : Poly(0);
      remainder.widths.push_back(size - done);
      remainder.indices.push_back(index_value(contraction.dims[d].name));
    }
    remainder.map.body = thread.body([&](Builder& body) {
      for (std::size_t d = contraction.space_rank; d < contraction.dims.size(); ++d) {
        const Poly done = contraction.dims[d].size - remainder.widths[d - contraction.space_rank];
        const Poly at = done + Poly(remainder.indices[d - contraction.space_rank]);
        const auto known = as_operand(at);
        element.insert_or_assign(contraction.dims[d].index, known ? *known : Operand(body.size(at, "at")));
      }
      const auto read = [&](const ContractionOperand& operand, const FlatOperand& from) {
        return read_element(contraction, operand, from, element, body);
      };
      for (const auto& [source, array] : ranges::views::zip(contraction.uniform, uniform))
        element.insert_or_assign(source.element, Operand(read(source, array)));
      std::vector<Operand> elements;
      for (const auto& [operand, array] : ranges::views::zip(contraction.operands, arrays))
        elements.emplace_back(read(operand, array));
      const Lambda map = copy_fresh(contraction.map, element, values, values);
      return inline_lambda(map, elements, values, body.stms());
    });
    remainder.reduces = {operation()};
    const std::vector<Value> left = thread.let_many({"remainder"}, std::move(remainder));

    std::vector<Operand> arguments(reduced.begin(), reduced.end());
    arguments.insert(arguments.end(), left.begin(), left.end());
    const std::vector<Operand> whole = lambda_applied(operation().op, arguments, thread);
    if (contraction.after) {
      // It may ask for elements that are the same for all products, too.
      Substitution known = here;
      const std::set<Value> used = free_values(*contraction.after, values);
      for (std::size_t k = 0; k < uniform.size(); ++k)
        if (const ContractionOperand& operand = contraction.uniform[k]; used.contains(operand.element))
          known.insert_or_assign(operand.element,
                                 Operand(read_element(contraction, operand, uniform[k], here, thread)));
      return lambda_applied(copy_fresh(*contraction.after, known, values, values), whole, thread);
    }
    std::vector<Operand> results;
    for (std::size_t r : contraction.results) results.push_back(whole[r]);
    return results;
  });
  kernel.results.assign(kernel.body->results.size(), {KernelResult::Kind::returns, {}});
  return kernel;
}

}  // namespace apl::tile
