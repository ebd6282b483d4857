// A reduction over the columns of an array reads neighbouring elements if neighbouring threads fold neighbouring
// columns, one over its rows if they fold neighbouring chunks of one row. Every element that the map function reads has
// a say.
#include "passes/extract_kernels/segment_order.h"

#include <algorithm>

#include "ir/layouts.h"
#include "ir/walk.h"

namespace apl {

namespace {

bool is_view(const Stm& stm) {
  return get_if<Index>(stm) || get_if<Rearrange>(stm) || get_if<Reshape>(stm) || get_if<Use>(stm);
}

// The views that the values are made by, in order.
void add_views(const std::set<Value>& wanted, const HostViews& views, const ValueTable& values, std::set<Value>& added,
               std::vector<Stm>& out) {
  for (const Value v : wanted) {
    const auto view = views.find(v);
    if (view == views.end() || !added.insert(v).second) continue;
    add_views(free_values(view->second.op, values), views, values, added, out);
    out.push_back(view->second);
  }
}

// All that the reduction does for one element, at the top of a function of what it reads.
Function one_element(const Screma& screma, const Segments& segments, const HostViews& views, const ValueTable& values) {
  Function function;
  function.values = values;
  std::vector<Stm> stms = segments.prefix;
  std::vector<DimIndex> here;
  for (const Value index : screma.indices) here.push_back(DimIndex::fix(index));
  for (std::size_t n = 0; n < screma.inputs.size(); ++n)
    stms.push_back({.pattern = {screma.map.params[n]}, .op = Index{screma.inputs[n], here}});
  stms.insert(stms.end(), screma.map.body->stms.begin(), screma.map.body->stms.end());
  const BodyPtr body = make_body(stms, {});
  std::vector<Stm> all;
  std::set<Value> added;
  add_views(free_values(*body, values), views, values, added, all);
  all.insert(all.end(), stms.begin(), stms.end());
  function.body = make_body(std::move(all), {});
  for (const Value v : free_values(*function.body, values)) function.params.push_back({v});
  return function;
}

// 1 if neighbours along `index` read neighbouring elements, 0 if the same, nullopt if elements apart.
std::optional<int> step_along(Value index, const Poly& position) {
  const std::optional<Poly::Linear> linear = position.linear_in(index);
  const std::optional<std::int64_t> step = linear ? linear->coefficient.constant() : std::nullopt;
  if (!step || *step < -1 || *step > 1) return std::nullopt;
  return *step == 0 ? 0 : 1;
}

}  // namespace

void note_view(const Stm& stm, HostViews& views) {
  if (stm.pattern.size() == 1 && is_view(stm)) views.insert_or_assign(stm.pattern.front(), stm);
}

bool segments_lie_side_by_side(const Stm& stm, const Segments& segments, const HostViews& views,
                               const ValueTable& values) {
  if (segments.indices.empty()) return false;
  const Screma& screma = std::get<Screma>(stm.op);
  const Function function = one_element(screma, segments, views, values);
  const Layouts layouts(function);
  std::unordered_map<Value, Poly> sizes;
  const auto written_out = [&](const Poly& p) {
    return p.substitute([&](Value v) -> std::optional<Poly> {
      const auto found = sizes.find(v);
      return found == sizes.end() ? std::nullopt : std::optional(found->second);
    });
  };
  int side_by_side = 0, apart = 0;
  for_each_stm(*function.body, [&](const Stm& inner) {
    if (const SizeExpr* size = get_if<SizeExpr>(inner))
      sizes.insert_or_assign(inner.pattern.front(), written_out(size->value));
    if (!get_if<Index>(inner) || !values.type(inner.pattern.front()).is_scalar()) return;
    const Layout* layout = layouts.find(inner.pattern.front());
    if (layout == nullptr) return;
    const Poly position = written_out(layout->lmad.offset());
    const std::optional<int> segment = step_along(segments.indices.back(), position);
    const std::optional<int> element = step_along(screma.indices.back(), position);
    if (segment == 1 && !element) ++side_by_side;
    if (element == 1 && !segment) ++apart;
  });
  return side_by_side > apart;
}

}  // namespace apl
