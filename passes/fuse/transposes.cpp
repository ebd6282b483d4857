// Transposes lifted over element-wise nests of maps.
//
//   let {P} = map(i < m, {A}, \ {row} -> {map(j < n, {row}, f)})
//   let {Pt} = rearrange(P, (1, 0))
// =>
//   let {At} = rearrange(A, (1, 0))
//   let {Pt} = map(j < n, i < m, {At}, f)
#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "ir/walk.h"
#include "passes/fuse/fuse.h"

namespace apl {

namespace {

struct Lifted {
  std::vector<Stm> views;  // of the inputs
  Stm stm;
};

std::optional<Lifted> lift(const Stm& producer, const Stm& transpose, ValueTable& values) {
  const std::vector<int>& permutation = std::get<Rearrange>(transpose.op).permutation;
  std::size_t count = 0;  // the outer dims that the permutation moves among themselves
  for (std::size_t k = 0; k < permutation.size(); ++k) {
    if (permutation[k] != static_cast<int>(k)) count = k + 1;
  }
  const std::optional<Stm> nest = collapse_nest(producer, count, values);
  if (!nest || nest->pattern.size() != 1) return std::nullopt;
  const Screma& source = std::get<Screma>(nest->op);
  if (holds_screma(*source.map.body)) return std::nullopt;  // more than elements would be computed in another order
  Lifted result;
  Screma transposed{.map = source.map};
  for (std::size_t k = 0; k < count; ++k) {
    const auto from = static_cast<std::size_t>(permutation[k]);
    transposed.widths.push_back(source.widths[from]);
    transposed.indices.push_back(source.indices[from]);
  }
  for (const Value input : source.inputs) {
    Type type = Type::array(values.type(input).element, values.type(input).shape);
    std::vector<int> all(type.rank());
    std::iota(all.begin(), all.end(), 0);
    std::copy_n(permutation.begin(), count, all.begin());
    for (std::size_t k = 0; k < count; ++k) type.shape[k] = transposed.widths[k];
    const Value view = values.add(std::move(type), values.name(input));
    result.views.push_back({.pattern = {view}, .op = Rearrange{input, std::move(all)}, .location = producer.location});
    transposed.inputs.push_back(view);
  }
  result.stm = *nest;
  result.stm.op = std::move(transposed);
  result.stm.pattern = transpose.pattern;
  return result;
}

}  // namespace

bool lift_transposes(std::vector<Stm>& stms, const std::vector<Operand>& results, ValueTable& values,
                     const Consumption& consumption) {
  std::unordered_map<Value, std::size_t> definitions;
  std::unordered_map<Value, std::size_t> uses;
  std::unordered_map<Value, bool> streamed;
  for (std::size_t k = 0; k < stms.size(); ++k) {
    for (const Value v : stms[k].pattern) definitions.emplace(v, k);
    for (const Value v : free_values(stms[k].op, values)) ++uses[v];
    if (const Screma* screma = get_if<Screma>(stms[k])) {
      for (const Value v : screma->inputs) streamed[v] = true;
    }
  }
  for (const Operand& result : results) {
    if (result.is_value()) uses[result.value()] += 1;
  }
  std::unordered_map<std::size_t, std::vector<Stm>> replaced;
  for (std::size_t k = 0; k < stms.size(); ++k) {
    const Rearrange* transpose = get_if<Rearrange>(stms[k]);
    if (transpose == nullptr || !streamed[stms[k].pattern.front()]) continue;
    const auto producer = definitions.find(transpose->array);
    if (producer == definitions.end() || uses[transpose->array] != 1 || consumption.consumed(transpose->array))
      continue;
    if (!std::holds_alternative<Screma>(stms[producer->second].op) || replaced.contains(producer->second)) continue;
    std::optional<Lifted> lifted = lift(stms[producer->second], stms[k], values);
    if (!lifted) continue;
    // Where the transpose stood: everything that the producer read is still there.
    std::vector<Stm>& made = replaced[k];
    made = std::move(lifted->views);
    made.push_back(std::move(lifted->stm));
    replaced[producer->second] = {};
  }
  if (replaced.empty()) return false;
  std::vector<Stm> result;
  for (std::size_t k = 0; k < stms.size(); ++k) {
    const auto found = replaced.find(k);
    if (found == replaced.end()) {
      result.push_back(std::move(stms[k]));
    } else {
      for (Stm& stm : found->second) result.push_back(std::move(stm));
    }
  }
  stms = std::move(result);
  return true;
}

}  // namespace apl
