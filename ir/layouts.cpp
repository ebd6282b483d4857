#include "ir/layouts.h"

#include "ir/walk.h"

namespace apl {

Lmad index_layout(const Lmad& source, const std::vector<DimIndex>& dims) {
  Lmad result = source;
  std::size_t at = 0;  // fixed dims vanish, so the position in the result lags behind
  for (const DimIndex& dim : dims) {
    if (dim.is_slice()) {
      result = result.slice(at++, dim.start, *dim.count, dim.stride);
    } else {
      result = result.index(at, dim.start);
    }
  }
  return result;
}

Layouts::Layouts(const Function& function) : function_(function) {
  for (Value param : function.params) own_base(param);
  enter(*function.body);
}

const Layout* Layouts::find(Value value) const {
  auto found = layouts_.find(value);
  return found == layouts_.end() ? nullptr : &found->second;
}

const std::string& Layouts::why(Value value) const {
  static const std::string kScalar = "it is computed, not read from an array";
  auto found = reasons_.find(value);
  return found == reasons_.end() ? kScalar : found->second;
}

void Layouts::own_base(Value value) {
  const Type& type = function_.type(value);
  if (type.is_array()) layouts_[value] = {value, Lmad::row_major(type.shape)};
}

void Layouts::derive(Value result, Value source, const Lmad::Outcome& outcome) {
  const Layout* layout = find(source);
  if (layout && outcome) {
    layouts_[result] = {layout->base, *outcome};
  } else {
    reasons_[result] = layout ? outcome.reason : why(source);
  }
}

void Layouts::enter(const Body& body) {
  for (const Stm& stm : body.stms) statement(stm);
}

void Layouts::bind_rows(const std::vector<Value>& indices, const std::vector<Value>& inputs,
                        const std::vector<Value>& rows) {
  std::vector<DimIndex> here;
  for (Value index : indices) here.push_back(DimIndex::fix(Poly(index)));
  for (std::size_t k = 0; k < inputs.size() && k < rows.size(); ++k) {
    const Layout* input = find(inputs[k]);
    Lmad::Outcome row{};
    if (input) row.lmad = index_layout(input->lmad, here);
    derive(rows[k], inputs[k], row);
  }
}

void Layouts::statement(const Stm& stm) {
  const Value result = stm.pattern.empty() ? Value{} : stm.pattern.front();
  auto view = [&](Value source, auto&& of) {
    const Layout* layout = find(source);
    derive(result, source, layout ? of(layout->lmad) : Lmad::Outcome{});
  };
  auto exact = [](Lmad lmad) { return Lmad::Outcome{std::move(lmad), {}}; };

  if (const Use* use = get_if<Use>(stm); use && use->x.is_value()) {
    if (find(use->x.value())) view(use->x.value(), exact);
  } else if (const Rearrange* rearrange = get_if<Rearrange>(stm)) {
    view(rearrange->array, [&](const Lmad& l) { return exact(l.permute(rearrange->permutation)); });
  } else if (const Reshape* reshape = get_if<Reshape>(stm)) {
    view(reshape->array, [&](const Lmad& l) { return l.reshape(reshape->shape); });
  } else if (const Index* index = get_if<Index>(stm)) {
    view(index->array, [&](const Lmad& l) { return exact(index_layout(l, index->dims)); });
  } else {
    if (const Screma* screma = get_if<Screma>(stm)) bind_rows(screma->indices, screma->inputs, screma->map.params);
    if (const Scatter* scatter = get_if<Scatter>(stm))
      bind_rows(scatter->indices, scatter->inputs, scatter->map.params);
    if (const Loop* loop = get_if<Loop>(stm))
      for (Value param : loop->params) own_base(param);
    for_each_body(stm.op, [&](const BodyPtr& body) { enter(*body); });
    for (Value v : stm.pattern) own_base(v);
  }
}

}  // namespace apl
