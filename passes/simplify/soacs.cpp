// Inputs and results of map, reduce and redomap, inputs of scatter.
//   screma(w, {iota(w), xs}, \ {i, x} -> ...)   =>   screma(j < w, {xs}, \ {x} -> ... j for i ...)
//   an input that is a replicate => its element; the same input twice => once; a copy => what it copies
//   screma(w < m*n, {reshape(A, [m*n])}, f)  =>  screma(i < m, j < n, {A}, f)      and a reshape of what it maps;
//   likewise if f computes w / n or w % n
//   screma(w < m, {A}, \ {row} -> rearrange(row, (1, 0)))  =>  rearrange(A, (0, 2, 1))      and the like for other
//   views a mapped result that is the same for every index => replicate; that is an input's row => the input; that is
//   the index => iota
#include <algorithm>
#include <numeric>
#include <set>

#include "passes/simplify/simplifier.h"

namespace apl {

template <class Soac>
Fired Simplifier::soac_inputs(Stm& stm, const Soac& op) {
  Soac result = op;
  result.inputs.clear();
  result.map.params.clear();
  Out before;  // what computes rows at the start of the lambda
  for (std::size_t k = 0; k < op.inputs.size(); ++k) {
    const Value param = op.map.params[k];
    const Value input = op.inputs[k];
    const std::size_t outer = op.widths.size();
    const auto keep = [&](Value array) {
      result.inputs.push_back(array);
      result.map.params.push_back(param);
    };
    const auto same = std::ranges::find(result.inputs, input);
    if (same != result.inputs.end()) {
      bind(param, result.map.params[static_cast<std::size_t>(same - result.inputs.begin())]);
      continue;
    }
    if (consumption_.consumed(input)) {
      keep(input);
    } else if (const auto* iota = definition<Iota>(input); iota != nullptr && outer == 1) {
      const std::optional<Operand> element = iota_element(*iota, op.indices[0], stm.location, before);
      element ? bind(param, *element) : keep(input);
    } else if (const auto* replicate = definition<Replicate>(input);
               replicate != nullptr && replicate->shape.size() >= outer) {
      std::vector<Poly> rest(replicate->shape.begin() + static_cast<std::ptrdiff_t>(outer), replicate->shape.end());
      Operand row = replicate->value;
      if (!rest.empty()) {
        const Value value = values().add(values().type(param), values().name(param));
        before.push_back({.pattern = {value}, .op = Replicate{std::move(rest), row}, .location = stm.location});
        row = value;
      }
      bind(param, row);
    } else if (const auto* copy = definition<Copy>(input); copy != nullptr && !consumption_.consumed(copy->array)) {
      keep(copy->array);
    } else {
      keep(input);
    }
  }
  if (result.inputs == op.inputs) return Fired::none;
  if (!before.empty()) {
    before.insert(before.end(), op.map.body->stms.begin(), op.map.body->stms.end());
    result.map.body = make_body(std::move(before), op.map.body->results);
  }
  stm.op = std::move(result);
  return Fired::again;
}

Fired Simplifier::scatter(Stm& stm, const Scatter& op) { return soac_inputs(stm, op); }

Fired Simplifier::screma(Stm& stm, const Screma& op) {
  if (soac_inputs(stm, op) == Fired::again) return Fired::again;
  // The reshapes of its inputs would be arrays without memory. In kernels dims matter to contractions, which have
  // several operands; what goes through one array is shared by threads along one width.
  const bool placed = module_.stage == Stage::memory;
  const bool shared = module_.stage == Stage::kernel && op.inputs.size() == 1;
  if (!placed && !shared && screma_of_flattened(stm, op) == Fired::gone) return Fired::gone;
  return screma_results(stm, op);
}

Fired Simplifier::screma_results(Stm& stm, const Screma& op) {
  // What a team's kernel returns is what its threads made.
  if (in_team_) return Fired::none;
  const std::size_t reduced = op.reduced_count();
  const auto bound_inside = [&](Value v) {
    return std::ranges::find(op.indices, v) != op.indices.end() ||
           std::ranges::find(op.map.params, v) != op.map.params.end() || defining_stm(*op.map.body, v) != nullptr;
  };
  for (std::size_t k = reduced; k < stm.pattern.size(); ++k) {
    const Value result = stm.pattern[k];
    if (replaced_.contains(result)) continue;
    const Operand row = rewrite(op.map.body->results[k]);
    if (row.is_constant() || !bound_inside(row.value())) {
      if (values().type(row).is_scalar()) {
        bind(result, emit(stm, values().name(result), Replicate{op.widths, row}));
      }
      continue;
    }
    if (op.widths.size() == 1 && row == Operand(op.indices[0])) {
      bind(result,
           emit(stm, values().name(result), Iota{ScalarType::i64, op.widths[0], i64_constant(0), i64_constant(1)}));
      continue;
    }
    if (map_of_view(stm, op, k, row.value())) continue;
    const auto param = std::ranges::find(op.map.params, row.value());
    if (param == op.map.params.end()) continue;
    const Value input = op.inputs[static_cast<std::size_t>(param - op.map.params.begin())];
    if (!may_be_one(result, input)) continue;
    bind(result, input);
  }
  return Fired::none;
}

// A mapped result that is a view of an input's row is that view of the input, with the widths in front. Where the
// result has to be an array of its own, and the view has the dims in another order, it is a copy in that order.
bool Simplifier::map_of_view(const Stm& stm, const Screma& op, std::size_t k, Value row) {
  const Value result = stm.pattern[k];
  const Stm* made = defining_stm(*op.map.body, row);
  const bool is_own = consumption_.consumed(result) || consumption_.escapes(result);
  if (made == nullptr || (is_own && !std::holds_alternative<Rearrange>(made->op))) return false;
  const auto input_of = [&](Value param) -> std::optional<Value> {
    const auto at = std::ranges::find(op.map.params, param);
    if (at == op.map.params.end()) return std::nullopt;
    const Value input = op.inputs[static_cast<std::size_t>(at - op.map.params.begin())];
    return consumption_.consumed(input) ? std::nullopt : std::optional(input);
  };
  std::set<Value> local(op.indices.begin(), op.indices.end());
  local.insert(op.map.params.begin(), op.map.params.end());
  for (const Stm& inner : op.map.body->stms) local.insert(inner.pattern.begin(), inner.pattern.end());
  const auto invariant = [&](const Poly& p) {
    bool all = true;
    p.for_each_symbol([&](Value v) { all = all && !local.contains(v); });
    return all;
  };
  const std::size_t outer = op.widths.size();
  std::optional<Op> view;
  if (const auto* rearrange = get_if<Rearrange>(*made)) {
    std::vector<int> permutation(outer);
    std::iota(permutation.begin(), permutation.end(), 0);
    for (const int dim : rearrange->permutation) permutation.push_back(dim + static_cast<int>(outer));
    if (const auto input = input_of(rearrange->array)) {
      if (is_own) {
        view = Manifest{*input, std::move(permutation)};
      } else {
        view = Rearrange{*input, std::move(permutation)};
      }
    }
  } else if (const auto* reshape = get_if<Reshape>(*made)) {
    std::vector<Poly> shape = op.widths;
    shape.insert(shape.end(), reshape->shape.begin(), reshape->shape.end());
    const auto input = input_of(reshape->array);
    if (input && std::ranges::all_of(reshape->shape, invariant)) view = Reshape{*input, std::move(shape)};
  } else if (const auto* index = get_if<Index>(*made)) {
    std::vector<DimIndex> dims;
    for (const Poly& width : op.widths) dims.push_back(DimIndex::slice(0, width));
    dims.insert(dims.end(), index->dims.begin(), index->dims.end());
    const bool fixed = std::ranges::all_of(index->dims, [&](const DimIndex& dim) {
      return invariant(dim.start) && invariant(dim.stride) && (!dim.count || invariant(*dim.count));
    });
    const auto input = input_of(index->array);
    // For no row at all the index was never looked at.
    if (input && fixed && in_bounds(values().type(index->array), index->dims)) view = Index{*input, std::move(dims)};
  }
  if (!view) return false;
  bind(result, emit(stm, values().name(result), std::move(*view)));
  return true;
}

// The dims that an input of a Screma over one width was flattened from.
std::optional<std::vector<Poly>> Simplifier::flattened_dims(const Screma& op) const {
  if (op.widths.size() != 1) return std::nullopt;
  for (std::size_t k = 0; k < op.inputs.size(); ++k) {
    const auto* view = definition<Reshape>(op.inputs[k]);
    if (view == nullptr) continue;
    const std::vector<Poly>& shape = function_.values.type(view->array).shape;
    const std::size_t row = function_.values.type(op.map.params[k]).rank();
    if (shape.size() < row + 2) continue;
    const auto split = shape.end() - static_cast<std::ptrdiff_t>(row);
    std::vector<Poly> dims(shape.begin(), split);
    const auto units = std::ranges::count_if(dims, [](const Poly& dim) { return dim.is_one(); });
    if (std::ssize(dims) - units < 2) continue;  // no more dims than before
    if (product(dims) == op.widths[0] && std::equal(split, shape.end(), view->shape.begin() + 1, view->shape.end())) {
      return dims;
    }
  }
  return std::nullopt;
}

// A dim of a Screma that its lambda takes apart again, x / n and x % n: the dims that it does as if it were.
std::optional<std::pair<std::size_t, std::vector<Poly>>> Simplifier::divided_dim(const Screma& op) const {
  if (op.scans()) return std::nullopt;
  std::optional<std::pair<std::size_t, std::vector<Poly>>> found;
  for_each_stm(*op.map.body, [&](const Stm& inner) {
    const auto* binary = get_if<Binary>(inner);
    if (binary == nullptr || found || !binary->x.is_value()) return;
    const bool divides = division_of(binary->op).has_value();
    const auto at = std::ranges::find(op.indices, binary->x.value());
    if (!divides || at == op.indices.end()) return;
    const auto d = static_cast<std::size_t>(at - op.indices.begin());
    const Poly inside = rewrite(as_poly(binary->y));
    const std::optional<Poly> outside = op.widths[d].divide_exact(inside);
    if (!outside || inside.is_one() || outside->is_one() || !size_like(inside) || !size_like(*outside)) return;
    if (non_negative(inside) && non_negative(*outside)) found.emplace(d, std::vector<Poly>{*outside, inside});
  });
  return found;
}

// Flattening hides the layout of what was transposed; the dims themselves can always be said.
Fired Simplifier::screma_of_flattened(Stm& stm, const Screma& op) {
  if (const std::optional<std::vector<Poly>> dims = flattened_dims(op)) return split_dim(stm, op, 0, *dims);
  if (const auto divided = divided_dim(op)) return split_dim(stm, op, divided->first, divided->second);
  return Fired::none;
}

// Dim `split` of the Screma as the dims that it is the product of. Inputs that were flat from the start are
// unflattened, which is a view of any layout.
Fired Simplifier::split_dim(Stm& stm, const Screma& op, std::size_t split, const std::vector<Poly>& dims) {
  Screma result = op;
  result.widths.clear();
  result.indices.clear();
  Poly position;
  for (std::size_t d = 0; d < op.widths.size(); ++d) {
    if (d != split) {
      result.widths.push_back(op.widths[d]);
      result.indices.push_back(op.indices[d]);
      continue;
    }
    for (const Poly& dim : dims) {
      const Value index = values().add(Type::scalar(ScalarType::i64), values().name(op.indices[d]));
      result.widths.push_back(dim);
      result.indices.push_back(index);
      position = position * dim + Poly(index);
    }
  }
  const Value flat = values().add(Type::scalar(ScalarType::i64), values().name(op.indices[split]));
  Out body{{.pattern = {flat}, .op = SizeExpr{position}, .location = stm.location}};
  body.insert(body.end(), op.map.body->stms.begin(), op.map.body->stms.end());
  bind(op.indices[split], flat);
  result.map.body = make_body(std::move(body), op.map.body->results);
  for (std::size_t k = 0; k < op.inputs.size(); ++k) {
    std::vector<Poly> shape = result.widths;
    const std::vector<Poly>& row = values().type(op.map.params[k]).shape;
    shape.insert(shape.end(), row.begin(), row.end());
    result.inputs[k] = emit(stm, values().name(op.inputs[k]), Reshape{op.inputs[k], std::move(shape)}).value();
  }
  Stm made = stm;
  const std::vector<Poly> widths = result.widths;
  made.op = std::move(result);
  for (std::size_t k = 0; k < stm.pattern.size(); ++k) {
    if (!op.is_array(k)) continue;
    const Type& row = values().type(op.map.body->results[k]);
    made.pattern[k] = values().add(row.array_of(widths), values().name(stm.pattern[k]));
  }
  const std::vector<Value> pattern = made.pattern;
  statement(std::move(made));
  for (std::size_t k = 0; k < stm.pattern.size(); ++k) {
    if (!op.is_array(k)) continue;
    const Operand mapped = rewrite(Operand(pattern[k]));
    bind(stm.pattern[k],
         emit(stm, values().name(stm.pattern[k]), Reshape{mapped.value(), values().type(stm.pattern[k]).shape}));
  }
  return Fired::gone;
}

}  // namespace apl
