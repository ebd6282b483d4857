// Padding instead of a remainder: elements beyond the end of the reduction are put into all tiles at once, so that one
// tuple p of them with map(p) = neutral is enough. It is found by evaluating the map function; there is no algebra on
// operands that are not known (0 * inf is NaN).
#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <limits>

#include "ir/interpret.h"
#include "passes/tile_contraction/tile.h"

namespace apl::tile {
namespace {

constexpr std::size_t kMostPaddings = 4096;

// 0, 1, -1, infinities, the smallest and the largest number, neutral elements of the type.
std::vector<Scalar> padding_candidates(ScalarType type, const std::vector<Operand>& neutral) {
  std::vector<Scalar> result;
  const auto add = [&](const Scalar& s) {
    if (std::find(result.begin(), result.end(), s) == result.end()) result.push_back(s);
  };
  add(Scalar::zero(type));
  for (const Operand& n : neutral)
    if (n.constant().type() == type) add(n.constant());
  if (type == ScalarType::boolean) {
    add(Scalar::boolean(true));
  } else if (is_integer(type)) {
    add(Scalar::integer(type, 1));
    add(Scalar::integer(type, -1));
    const std::uint64_t top = std::uint64_t{1} << (bit_width(type) - 1);
    add(Scalar::from_bits(type, is_signed(type) ? top : 0));
    add(Scalar::from_bits(type, is_signed(type) ? top - 1 : ~std::uint64_t{0}));
  } else if (is_float(type)) {
    const double largest = largest_float(type);
    for (double sign : {1.0, -1.0}) {
      add(Scalar::floating(type, sign));
      add(Scalar::floating(type, sign * std::numeric_limits<double>::infinity()));
      add(Scalar::floating(type, sign * largest));
    }
  }
  return result;
}

// The map function as an entry, on scalars.
Module map_module(const Contraction& contraction, const ValueTable& values) {
  Function function;
  function.name = "map";
  function.entry = EntryInfo{.name = "map", .params = {}, .param_values = {}, .results = {}};
  function.params = contraction.map.params;
  function.body = contraction.map.body;
  function.values = values;
  for (const Operand& result : contraction.map.body->results) {
    function.results.push_back(values.type(result));
    function.entry->results.emplace_back();
  }
  for (Value v : function.params) {
    function.entry->params.push_back({values.name(v), ""});
    function.entry->param_values.push_back(1);
  }
  Module module;
  module.stage = Stage::kernel;
  module.functions.push_back(std::make_shared<const Function>(std::move(function)));
  return module;
}

}  // namespace

Padding neutral_padding(const Contraction& contraction, const ValueTable& values) {
  const std::size_t inner = contraction.dims.size() - 1;
  Padding padding;
  for (const ContractionOperand& operand : contraction.operands)
    if (!operand.varies(inner)) {
      padding.reason = "the map function uses `" + values.name(operand.base) + "`, which is not padded along `" +
                       contraction.dims[inner].name + "`";
      return padding;
    }
  for (Value v : free_values(contraction.map, values)) {
    padding.reason = "the map function uses `" + values.name(v) + "`, which is not padded";
    return padding;
  }
  for (const Operand& neutral : contraction.reduce.neutral)
    if (!neutral.is_constant()) {
      padding.reason = "the neutral element is no constant";
      return padding;
    }
  std::vector<std::vector<Scalar>> choices;
  std::size_t tuples = 1;
  for (const auto& [operand, param] : ranges::views::zip(contraction.operands, contraction.map.params)) {
    // A tile has one value where nothing is read.
    choices.push_back(operand.conditions.empty()
                          ? padding_candidates(values.type(param).element, contraction.reduce.neutral)
                          : std::vector{operand.otherwise});
    tuples = std::min(kMostPaddings, tuples * choices.back().size());
  }
  const Module module = map_module(contraction, values);
  for (std::size_t n = 0; n < tuples; ++n) {
    std::vector<Scalar> tuple;
    std::vector<HostValue> arguments;
    std::size_t remainder = n;
    for (const std::vector<Scalar>& of : choices) {
      tuple.push_back(of[remainder % of.size()]);
      arguments.push_back(HostValue::scalar(tuple.back()));
      remainder /= of.size();
    }
    const auto results = interpret(module, "map", arguments);
    if (!results) continue;
    bool neutral = true;
    for (std::size_t k = 0; k < results->size(); ++k)
      neutral = neutral && (*results)[k].at(0) == contraction.reduce.neutral[k].constant();
    if (!neutral) continue;
    padding.elements = std::move(tuple);
    return padding;
  }
  padding.reason = "no padding was found for which the map function gives the neutral element";
  return padding;
}

}  // namespace apl::tile
